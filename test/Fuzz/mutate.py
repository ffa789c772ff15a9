#!/usr/bin/env python3
# Part of attn, an attention compiler.
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Mutates the programs of the test suite and looks for tools that fall over.

usage: mutate.py --tools=build/bin [--seed=N] [--count=N | --cpu-seconds=N]
                 [--out=DIR] [--quiet]
                 [--tool=attn-opt|attn-compile|attn-run|attn-simulate]
                 [--meaning] [--limit=SECONDS] [--memory=GIB]

Every chunk of every .mlir file under test/ is a seed. A mutant is a seed with
a few tokens, lines or whole names changed, or, with --meaning, a program that
means something else (meaning.py). It runs through the passes of the file it
came from, or through passes drawn at random. A wrong program must be refused
with a diagnostic: a signal, a failed assertion, a sanitizer report, an "LLVM
ERROR", IR that does not survive a round trip, no end within the limits of
processor time and memory, or a result that the tool itself finds wrong is a
finding. Findings are reduced and written to --out, one .mlir each with its
command in the first line. One seed gives one sequence of mutants; exits 1 when
something was found.

A finding that is fixed stays as a test in test/Regression.
"""

import argparse
import hashlib
import os
import random
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile

from meaning import mutate_meaning

HERE = os.path.dirname(os.path.abspath(__file__))
TEST = os.path.dirname(HERE)

TOKEN = re.compile(
    r'"(?:[^"\\]|\\.)*"|[%@#!^][\w.$-]+|\d+\.\d+(?:e[+-]?\d+)?|\d+'
    r"|[A-Za-z_][\w.]*|->|::|\?x|[^\s\w]|\s+"
)

# What a mutation puts in place of a token of the same kind, or of any token.
INTEGERS = """0 1 -1 2 3 7 8 15 16 17 31 32 40 63 64 65 127 128 256 264 1024
    4096 65536 2147483647 2147483648 4294967296 9223372036854775807
    9223372036854775808 -9223372036854775808""".split()
FLOATS = """0.0 -0.0 1.0 -1.0 1.0e-45 3.4e38 1.0e39 1.0e308 0x7F800000 0xFF800000
    0x7FC00000 0x7FF0000000000000""".split()
TYPES = """f16 bf16 f32 f64 tf32 f8E4M3FN i1 i8 i16 i32 i64 i128 index none
    complex<f32> tensor<f32> tensor<*xf32> tensor<?x?x?x?xbf16>
    tensor<1x1x1x8xf16> tensor<0x1x4x64xf16> memref<?xf32> vector<4xf32>
    vector<1x1xf32> vector<[4]xf32> memref<4x?xf32,strided<[?,1],offset:?>>
    !warp.frag<16x8xf32,acc,1> !warp.slot<64x64xbf16>
    !warp.ring<2,64x64xbf16>""".split()
WORDS = """? x , : ( ) < > [ ] { } = -> "" return func.func attn.yield
    attn.attention tile.load tile.store warp.mma captures score mask scale
    variants numerics plan #attn.causal #attn.causal<top_left>
    #attn.window<left=-1> #attn.softcap<0.0> #attn.alibi dense<0.0> true false
    unit loc(unknown) attributes""".split()

# Passes for a program that does not come with its own.
PIPELINES = [
    "",
    "--canonicalize --cse",
    "--attn-expand-variants",
    "--attn-expand-variants --attn-simplify --canonicalize",
    "--attn-plan=target=sm_80",
    "--attn-plan=target=cpu",
    "--attn-expand-variants --attn-print-plans",
    "--attn-expand-variants --convert-attn-to-linalg",
    "--attn-expand-variants --convert-attn-to-linalg=precision=input"
    " --attn-linalg-to-llvm",
    "--attn-to-tile=target=sm_80",
    "--attn-to-tile=target=sm_80 --tile-order-blocks --tile-peel-masks"
    " --tile-fold-exp2 --tile-expand-softmax",
    "--attn-to-tile=target=sm_80 --tile-peel-masks --tile-fold-exp2"
    " --tile-expand-softmax --convert-tile-to-warp --warp-buffer"
    " --warp-assign-resources --convert-warp-to-gpu",
    "--attn-cpu",
    "--attn-sm80",
    "--attn-sm80=lazy-max=false buffer=false",
    "--attn-sm90",
    "--attn-sm90=specialize=false make-async=false",
    "--attn-sm90=double-buffer=true",
    "--attn-to-tile=target=sm_90a overlap-products=true lazy-max=true"
    " --convert-tile-to-warp --warp-defer-sum --warp-specialize"
    " --warp-make-async --warp-insert-turns"
    " --warp-assign-resources=shared-limit=232448 --convert-warp-to-gpu",
    "--tile-order-blocks",
    "--tile-overlap-products",
    "--tile-lazy-max",
    "--tile-peel-masks",
    "--tile-peel-scores",
    "--tile-hide-faint",
    "--tile-peel-masks --tile-hide-faint --tile-reverse-keys",
    "--tile-share-blocks",
    "--tile-group-bounds",
    "--tile-keys-to-ranges",
    "--tile-reverse-keys",
    "--tile-fold-exp2",
    "--tile-expand-softmax",
    "--tile-merge-factors",
    "--tile-loop-heads",
    "--convert-tile-to-loops",
    "--convert-tile-to-llvm",
    "--convert-tile-to-warp",
    "--warp-buffer",
    "--warp-defer-sum",
    "--warp-double-buffer",
    "--warp-double-buffer --warp-specialize --warp-make-async --warp-insert-turns",
    "--warp-specialize",
    "--warp-make-async",
    "--warp-insert-turns",
    "--warp-assign-resources",
    "--convert-warp-to-gpu",
]
# At the blanks before flags: options of one pass are separated by blanks.
PIPELINES = [[f for f in re.split(r" (?=--)", p) if f] for p in PIPELINES]
# Rooms in order, of which a random pipeline takes some passes each.
ROOMS = [
    ["--attn-expand-variants", "--attn-expand-math", "--attn-simplify"],
    ["--attn-plan=target=cpu", "--attn-plan=target=sm_80", "--attn-plan=target=sm_90a",
     "--attn-plan"],
    ["--attn-recompute"],
    ["--convert-attn-to-tile", "--convert-attn-to-linalg",
     "--convert-attn-to-linalg=precision=input"],
    ["--tile-order-blocks", "--tile-list-blocks", "--tile-peel-masks",
     "--tile-peel-scores", "--tile-hide-faint", "--tile-share-blocks", "--tile-group-bounds", "--tile-keys-to-ranges",
     "--tile-reverse-keys", "--tile-fold-exp2", "--tile-overlap-products"],
    ["--tile-expand-scores"],
    ["--tile-lazy-max", "--canonicalize", "--cse"],
    ["--tile-expand-softmax", "--tile-merge-factors", "--tile-loop-heads"],
    ["--convert-tile-to-warp", "--convert-tile-to-loops", "--convert-tile-to-llvm"],
    ["--warp-defer-sum", "--warp-persist", "--warp-order-tiles", "--warp-double-buffer",
     "--warp-buffer",
     "--warp-specialize", "--warp-delay-exchange", "--warp-make-async", "--warp-insert-turns",
     "--warp-share-columns", "--warp-stage-stores", "--warp-deepen-rings",
     "--warp-test-ahead", "--warp-run-beside", "--warp-start-early", "--warp-expand-tanh", "--warp-turn-ends",
     "--canonicalize"],
    ["--warp-assign-resources", "--warp-assign-resources=shared-limit=232448"],
    ["--convert-warp-to-gpu"],
    ["--gpu-share-warp-number", "--gpu-hide-inductions", "--gpu-order-integers",
     "--attn-gpu-to-nvvm", "--gpu-add-relayouts"],
]
# What a room is nothing without.
NEEDED = [1, 2, 3, 5, 6, 8, 9]
COMPILE = [
    ["--target=sm_80", "--emit=ptx"],
    ["--target=sm_90a", "--emit=ptx"],
    ["--target=sm_90a", "--emit=ptx", "--disable-pass=warp-specialize"],
    ["--target=sm_90a", "--emit=ptx", "--enable-pass=warp-double-buffer"],
    ["--target=cpu", "--emit=llvm"],
]
RUN = [["--target=cpu", "--check", "--shape=b=1,h=2,hkv=1,sq=5,sk=7"]]
SIMULATE = [
    ["--target=sm_80", "--seeds=2", "--shape=b=1,h=2,hkv=1,sq=5,sk=70"],
    ["--target=sm_90a", "--seeds=2", "--shape=b=1,h=2,hkv=1,sq=5,sk=70"],
    ["--target=sm_90a", "--seeds=2", "--shape=b=1,h=2,hkv=1,sq=5,sk=270",
     "--enable-pass=warp-double-buffer"],
]
CHECKING = ["attn-run", "attn-simulate"]
# What they exit with when the result is not that of float64.
WRONG_RESULT = 2

BAD = re.compile(
    r"LLVM ERROR|Assertion `|UNREACHABLE|PLEASE submit|AddressSanitizer|"
    r"runtime error:|roundTrip testing|Stack dump|terminate called|"
    r"bad_alloc|promised interface|SUMMARY: |the compiler itself failed"
)


class Corpus:
    """The chunks of all tests, each with the passes its file runs."""

    def __init__(self):
        self.chunks = []
        self.lines = []
        for root, directories, files in os.walk(TEST):
            directories.sort()
            if os.path.basename(root) in ("python", "Unit"):
                continue
            for file in sorted(files):
                if file.endswith(".mlir"):
                    self.add(os.path.join(root, file))
        tokens = {t for _, text, _ in self.chunks for t in TOKEN.findall(text)}
        self.operations = sorted(t for t in tokens if OPERATION.match(t))

    def add(self, path):
        with open(path, encoding="utf-8") as f:
            text = f.read()
        commands = []
        for line in re.findall(r"RUN:.*?attn-opt ([^|\n]*)", text):
            flags = [w for w in line.split() if w.startswith("-")]
            flags = [
                w
                for w in flags
                if not re.match(
                    r"--?(split-input-file|verify-diagnostics|o$|show|help|version"
                    r"|mlir-|emit-bytecode|dump|load|irdl|pass-pipeline|run-repro)",
                    w,
                )
                and "'" not in w
                and '"' not in w
            ]
            commands.append(flags)
        for chunk in re.split(r"(?m)^\s*// -----.*$", text):
            chunk = re.sub(r"(?m)\s*//.*$", "", chunk)
            for unit in programs(chunk):
                self.chunks.append((path, unit, commands))
                self.lines += [l for l in unit.split("\n") if l.strip()]


def programs(chunk):
    """Each function or module at the left margin by itself, with the aliases."""
    aliases, units = [], []
    for line in chunk.split("\n"):
        if re.match(r"[#!][\w.-]+ *=", line):
            aliases.append(line)
        elif re.match(r"[\w\"%]", line):
            units.append([line])
        elif units:
            units[-1].append(line)
        elif line.strip():
            aliases.append(line)
    for unit in units:
        yield "\n".join(aliases + unit).strip() + "\n"


OPERATION = re.compile(r"(attn|tile|warp|arith|math|vector|scf|memref|tensor)\.\w+$")
TYPE = re.compile(r"((bf|f|i)\d+|index)$")


def mutate_tokens(text, rng, corpus):
    tokens = TOKEN.findall(text)
    places = [i for i, t in enumerate(tokens) if not t.isspace()]
    if not places:
        return text
    if rng.randrange(5):
        # Punctuation rarely leaves a program; the rest often does.
        places = [i for i in places if re.match(r"\w|[%@#]", tokens[i])] or places
    i = rng.choice(places)
    token = tokens[i]
    kind = rng.randrange(20)
    if kind == 0:
        tokens[i] = ""
    elif kind == 1:
        tokens[i] = token + " " + token
    elif kind == 2:
        j = rng.choice(places)
        tokens[i], tokens[j] = tokens[j], tokens[i]
    elif kind == 3:
        tokens[i] = tokens[rng.choice(places)]
    elif kind == 4:
        tokens[i] = rng.choice(WORDS + TYPES)
    elif token.isdigit():
        tokens[i] = rng.choice(INTEGERS + ["?"])
    elif re.match(r"\d+\.", token):
        tokens[i] = rng.choice(FLOATS)
    elif re.match(r"[%@#!^]\w", token):
        tokens[i] = rng.choice([t for t in tokens if t[:1] == token[0]])
    elif TYPE.match(token):
        tokens[i] = rng.choice(TYPES)
    elif OPERATION.match(token):
        tokens[i] = rng.choice(corpus.operations)
    else:
        same = [t for t in tokens if re.match(r"[a-z_]+$", t)]
        tokens[i] = rng.choice(same + WORDS)
    return "".join(tokens)


def mutate_everywhere(text, rng):
    """One name, size or type changed wherever it stands: often still a program."""
    words = sorted(set(re.findall(r"\d+|\b(?:bf|f|i)\d+\b|\b[a-z_]+\b", text)))
    if not words:
        return text
    word = rng.choice(words)
    if word.isdigit():
        new = rng.choice(INTEGERS + ["?"])
    elif TYPE.match(word):
        new = rng.choice(TYPES)
    else:
        new = rng.choice(words + WORDS)
    return re.sub(
        rf"(?<![A-Za-z_\d]){re.escape(word)}(?![A-Za-wyz_\d])", lambda _: new, text
    )


def mutate_lines(text, rng, corpus):
    lines = text.split("\n")
    i = rng.randrange(len(lines))
    kind = rng.randrange(5)
    if kind == 0:
        del lines[i]
    elif kind == 1:
        lines.insert(i, lines[i])
    elif kind == 2:
        j = rng.randrange(len(lines))
        lines[i], lines[j] = lines[j], lines[i]
    elif kind == 3:
        lines[i] = rng.choice(corpus.lines)
    else:
        lines.insert(i, rng.choice(corpus.lines))
    return "\n".join(lines)


def mutate(text, rng, corpus):
    for _ in range(rng.choice([1, 1, 1, 1, 2, 2, 3])):
        kind = rng.randrange(10)
        if kind < 5:
            text = mutate_tokens(text, rng, corpus)
        elif kind < 9:
            text = mutate_everywhere(text, rng)
        else:
            text = mutate_lines(text, rng, corpus)
    if rng.randrange(50) == 0:
        text = text[: rng.randrange(len(text) + 1)]
    if rng.randrange(50) == 0 and text:
        i = rng.randrange(len(text))
        text = text[:i] + chr(rng.choice([0, 1, 9, 34, 127, 255, 955])) + text[i:]
    return text.replace("// -----", "//")


class Runner:
    def __init__(self, tools, limit, memory):
        self.tools = tools
        self.memory = int(memory * 2**30)
        self.upstream = shutil.which("mlir-opt-22") or shutil.which("mlir-opt")
        self.limit = limit
        self.passes = self.known_passes()

    def known_passes(self):
        out = subprocess.run(
            [os.path.join(self.tools, "attn-opt"), "--help"],
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        return set(re.findall(r"--([\w-]+)", out))

    def known(self, flags):
        return [f for f in flags if f.lstrip("-").split("=")[0] in self.passes]

    def command(self, tool, flags):
        command = [os.path.join(self.tools, tool)]
        if tool == "attn-opt":
            command += ["--verify-roundtrip", "--mlir-disable-threading"]
            command += ["--split-input-file"]
        return command + list(flags)

    def run(self, tool, flags, text, limit=None):
        """None when all is well, else what is wrong (the same text for the same
        fault, as far as can be told)."""

        seconds = int(limit or self.limit)

        def confine():
            # AddressSanitizer reserves terabytes that it never uses.
            if "ASAN_OPTIONS" not in os.environ:
                resource.setrlimit(resource.RLIMIT_AS, (self.memory, self.memory))
            resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))

        with tempfile.NamedTemporaryFile(
            "w", suffix=".mlir", encoding="utf-8", errors="replace"
        ) as f:
            f.write(text)
            f.flush()
            try:
                result = subprocess.run(
                    self.command(tool, flags) + [f.name],
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.PIPE,
                    # The machine may have something else to do.
                    timeout=10 * seconds,
                    preexec_fn=confine,
                )
            except subprocess.TimeoutExpired:
                return "no end within the time limit"
        if result.returncode in (-signal.SIGXCPU, -signal.SIGKILL):
            return "no end within the time limit"
        error = result.stderr.decode("utf-8", "replace")
        if tool in CHECKING and result.returncode == WRONG_RESULT:
            return "wrong result"
        if result.returncode >= 0 and not BAD.search(error):
            return None
        return signature(result.returncode, error)


# The parser or a verifier of MLIR itself, before any pass of ours.
OF_MLIR = "fault of MLIR while parsing"


def signature(code, error):
    frames = re.findall(r"(?:attn|mlir)::[\w:]+", error)
    own = [f for f in frames if f.startswith("attn::") and "runGuarded" not in f]
    if not own and "mlir::parseAsmSourceFile" in error:
        return OF_MLIR
    for pattern in (r"Assertion `.*", r"LLVM ERROR: .*", r"UNREACHABLE.*"):
        m = re.search(pattern, error)
        if m:
            return re.sub(r"'[^']*'|0x[0-9a-f]+|\d+", "_", m.group(0))[:160]
    if "roundTrip testing" in error:
        return "round trip"
    where = (own or frames or [""])[0]
    m = BAD.search(error)
    what = m.group(0) if m else f"signal {-code}"
    return f"fault {what} {where}".strip()


def reduced(text, still):
    """Lines, then tokens, taken away while the fault stays."""
    for split, join in ((lambda t: t.split("\n"), "\n"), (TOKEN.findall, "")):
        parts = split(text)
        size = max(1, len(parts) // 2)
        tries = 0
        while size and tries < 400:
            i = 0
            while i < len(parts) and tries < 400:
                fewer = parts[:i] + parts[i + size :]
                tries += 1
                if still(join.join(fewer)):
                    parts = fewer
                else:
                    i += size
            size //= 2
        text = join.join(parts)
    return text


def is_upstream(runner, text):
    """True when MLIR's own driver falls over the program, without our passes."""
    if not runner.upstream:
        return False
    with tempfile.NamedTemporaryFile("w", suffix=".mlir", errors="replace") as f:
        f.write(re.sub(r"#(attn|tile|warp)\.\w+(<[^<>]*>)?", "unit", text))
        f.flush()
        try:
            result = subprocess.run(
                [runner.upstream, "--allow-unregistered-dialect", f.name],
                capture_output=True,
                timeout=runner.limit,
            )
        except subprocess.TimeoutExpired:
            return True
    return result.returncode < 0


class Findings:
    def __init__(self, out, quiet):
        self.out = out
        self.upstream = 0
        self.quiet = quiet
        self.seen = {}
        self.known = set()

    def add(self, runner, tool, flags, text, fault):
        key = (tool, fault)
        if fault == OF_MLIR:
            self.upstream += 1
            return
        if key in self.known and is_upstream(runner, text):
            return
        self.seen[key] = self.seen.get(key, 0) + 1
        if self.seen[key] > 1:
            return
        if not fault.startswith("no end"):
            text = reduced(text, lambda t: runner.run(tool, flags, t) == fault)
        if is_upstream(runner, text):
            self.upstream += 1
            del self.seen[key]
            self.known.add(key)
            return
        command = " ".join([tool] + flags)
        print(f"FOUND {fault}\n      {command}", flush=True)
        if not self.quiet:
            print(text, flush=True)
        if self.out:
            os.makedirs(self.out, exist_ok=True)
            name = hashlib.sha256(repr(key).encode()).hexdigest()[:12]
            with open(os.path.join(self.out, name + ".mlir"), "w") as f:
                f.write(f"// {command}\n// {fault}\n{text}\n")


def culprits(runner, tool, flags, mutants):
    """Halves the batch until single mutants are left."""
    fault = runner.run(tool, flags, "\n// -----\n".join(mutants))
    if fault is None:
        return
    if len(mutants) == 1:
        yield mutants[0], fault
        return
    half = len(mutants) // 2
    yield from culprits(runner, tool, flags, mutants[:half])
    yield from culprits(runner, tool, flags, mutants[half:])


def flags_for(tool, commands, runner, rng):
    if tool == "attn-compile":
        return rng.choice(COMPILE)
    if tool == "attn-run":
        return rng.choice(RUN)
    if tool == "attn-simulate":
        return rng.choice(SIMULATE)
    own = [c for c in map(runner.known, commands) if c]
    if own and rng.randrange(3):
        return rng.choice(own)
    if rng.randrange(2):
        return runner.known(random_pipeline(rng))
    return runner.known(rng.choice(PIPELINES))


def random_pipeline(rng):
    """Passes of the rooms up to one of them; now and then in a wrong order."""
    last = rng.randrange(1, len(ROOMS) + 1)
    passes = []
    for number, room in enumerate(ROOMS[:last]):
        few = 1 if number in NEEDED else rng.randrange(min(4, len(room)) + 1)
        sample = rng.sample(room, few)
        # In another order most end at once: passes need forms.
        passes += sample if rng.randrange(4) == 0 else sorted(sample, key=room.index)
    if rng.randrange(6) == 0:
        rng.shuffle(passes)
    return passes


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--tools", required=True)
    parser.add_argument("--tool", default="attn-opt")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--cpu-seconds", type=float, default=0)
    parser.add_argument("--batch", type=int, default=25)
    parser.add_argument("--limit", type=float, default=30)
    parser.add_argument("--memory", type=float, default=4)
    parser.add_argument("--meaning", action="store_true")
    parser.add_argument("--out", default="")
    parser.add_argument("--quiet", action="store_true")
    options = parser.parse_args()

    rng = random.Random(options.seed)
    corpus = Corpus()
    if options.meaning:
        corpus.chunks = [
            chunk
            for chunk in corpus.chunks
            if "attn.attention" in chunk[1] and not re.search("invalid|BadInput", chunk[0])
        ]
    runner = Runner(options.tools, options.limit, options.memory)
    findings = Findings(options.out, options.quiet)
    batch = options.batch if options.tool == "attn-opt" else 1
    done = 0

    def spent():
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        return used.ru_utime + used.ru_stime

    while (
        spent() < options.cpu_seconds if options.cpu_seconds else done < options.count
    ):
        _, seed, commands = rng.choice(corpus.chunks)
        flags = flags_for(options.tool, commands, runner, rng)
        mutants = [
            mutate_meaning(seed, rng) if options.meaning else mutate(seed, rng, corpus)
            for _ in range(batch)
        ]
        done += len(mutants)
        for mutant, fault in culprits(runner, options.tool, flags, mutants):
            findings.add(runner, options.tool, flags, mutant, fault)
    print(
        f"{options.tool}: {done} mutants of {len(corpus.chunks)} programs, "
        f"{len(findings.seen)} faults, {findings.upstream} of MLIR's own, "
        f"{spent():.0f} s of CPU",
        flush=True,
    )
    return 1 if findings.seen else 0


if __name__ == "__main__":
    sys.exit(main())
