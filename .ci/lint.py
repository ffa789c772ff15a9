#!/usr/bin/env python3
# Part of attn, an attention compiler.
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Checks what a compiler cannot: who includes whom, names, forbidden words.

usage: .ci/lint.py [--list] [--junit=FILE]

Prints one line per rule and every violation as file:line; exits 1 when there
is one. Works on the files git tracks.
"""

import os
import re
import subprocess
import sys
from xml.sax.saxutils import escape, quoteattr

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))

# Each room with the rooms it may include (itself is understood). The order is
# that of the libraries: Support <- Layout <- IR <- Transforms <- Conversion
# <- Target <- Pipelines <- Execute <- Check <- Tune, Execute <- CAPI, and
# Support <- Runtime <- Execute.
BASE = ["Support", "Layout"]
ALL_IR = BASE + ["Dialect/Attn/IR", "Dialect/Tile/IR", "Dialect/Warp/IR"]
COMPILER = ALL_IR + [
    "Dialect/Attn/Analysis",
    "Dialect/Attn/Transforms",
    "Dialect/Tile/Analysis",
    "Dialect/Tile/Transforms",
    "Dialect/Warp/Analysis",
    "Dialect/Warp/Transforms",
    "Plan",
]
MAY_INCLUDE = {
    "Support": [],
    "Layout": ["Support"],
    "Dialect/Attn/IR": BASE,
    "Dialect/Tile/IR": BASE + ["Dialect/Attn/IR"],
    "Dialect/Warp/IR": BASE,
    "Dialect/Attn/Analysis": BASE + ["Dialect/Attn/IR"],
    "Dialect/Attn/Transforms": BASE + ["Dialect/Attn/IR", "Dialect/Attn/Analysis"],
    "Dialect/Tile/Analysis": BASE + ["Dialect/Tile/IR", "Dialect/Attn/IR"],
    "Dialect/Tile/Transforms": BASE
    + ["Dialect/Tile/IR", "Dialect/Tile/Analysis", "Dialect/Attn/IR"],
    "Dialect/Warp/Analysis": BASE + ["Dialect/Warp/IR"],
    "Dialect/Warp/Transforms": BASE + ["Dialect/Warp/IR", "Dialect/Warp/Analysis"],
    "Plan": BASE + ["Dialect/Attn/IR", "Dialect/Attn/Analysis"],
    "Conversion": COMPILER,
    "Simulator": BASE + ["Dialect/Warp/IR", "Dialect/Warp/Analysis", "Conversion"],
    "Target": COMPILER + ["Conversion"],
    "Runtime": ["Support"],
    "Pipelines": COMPILER + ["Conversion", "Target"],
    "Execute": COMPILER + ["Conversion", "Pipelines", "Target", "Runtime"],
    "Check": COMPILER + ["Conversion", "Pipelines", "Runtime", "Execute"],
    "Tune": COMPILER + ["Pipelines", "Runtime", "Execute", "Check"],
    "CAPI": BASE + ["Pipelines", "Runtime", "Execute"],
}
ROOMS = sorted(MAY_INCLUDE, key=len, reverse=True)


def tracked():
    out = subprocess.run(
        ["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.split("\n")
    return [f for f in out if f and os.path.isfile(os.path.join(ROOT, f))]


FILES = tracked()
TEXT = {}


def text(file):
    if file not in TEXT:
        with open(os.path.join(ROOT, file), encoding="utf-8", errors="replace") as f:
            TEXT[file] = f.read()
    return TEXT[file]


def room_of(path):
    """The room of a path below lib, include/attn or test/lib, or of an include."""
    for room in ROOMS:
        if path.startswith(room + "/"):
            return room
    return None


def below(file):
    for top in ("include/attn/", "lib/", "test/lib/"):
        if file.startswith(top):
            return file[len(top) :]
    return None


def sources(*suffixes):
    return [f for f in FILES if f.endswith(suffixes)]


def grep(files, pattern, message):
    """Lines outside comments that match."""
    expression = re.compile(pattern)
    for file in files:
        for number, line in enumerate(text(file).split("\n"), 1):
            code = line.split("//")[0] if file.endswith((".h", ".cpp", ".td")) else line
            if expression.search(code):
                yield f"{file}:{number}: {message}: {line.strip()}"


IN_LIB = [f for f in sources(".h", ".cpp", ".td") if below(f)]


def include_directions():
    """a library includes only the libraries below it"""
    for file in IN_LIB:
        room = room_of(below(file))
        if room is None:
            yield f"{file}:1: not in a room that .ci/lint.py knows"
            continue
        for number, line in enumerate(text(file).split("\n"), 1):
            m = re.match(r'\s*(?:#\s*)?include\s+["<]attn/([^">]+)[">]', line)
            if not m:
                continue
            other = room_of(m.group(1))
            if other != room and other not in MAY_INCLUDE[room]:
                yield f"{file}:{number}: {room} may not include {m.group(1)}"


def runtime_without_mlir():
    """Runtime, and the headers of Support it uses, include no MLIR or LLVM"""
    todo = [f for f in IN_LIB if room_of(below(f)) == "Runtime"]
    seen = set(todo)
    while todo:
        file = todo.pop()
        for number, line in enumerate(text(file).split("\n"), 1):
            m = re.match(r'\s*#\s*include\s+["<]([^">]+)[">]', line)
            if not m:
                continue
            name = m.group(1)
            if name.startswith(("mlir/", "llvm/")):
                yield f"{file}:{number}: the runtime includes {name}"
            header = "include/" + name
            if header in FILES and header not in seen:
                seen.add(header)
                todo.append(header)


def layout_without_ir():
    """Layout is algebra: no MLIR"""
    files = [f for f in IN_LIB if room_of(below(f)) == "Layout"]
    yield from grep(files, r'#\s*include\s+"mlir/', "Layout includes MLIR")


def c_header_is_plain():
    """the C header includes only the C library"""
    files = [f for f in FILES if f.startswith("include/attn-c/")]
    yield from grep(files, r'#\s*include\s+"(?!attn-c/)', "not plain C")


def no_process_state():
    """no getenv and no cl::opt in lib: options and plan fields only"""
    # XDG_CACHE_HOME and HOME define where the user's caches are.
    files = [f for f in IN_LIB if f != "lib/Runtime/Cache.cpp"]
    yield from grep(files, r"\bgetenv\s*\(", "environment")
    yield from grep(IN_LIB, r"\bcl::(opt|list|bits)\b", "process-wide switch")


def no_string_attributes():
    """no attribute of the project is looked up by a string literal in lib"""
    files = [f for f in IN_LIB if f.endswith((".cpp", ".h"))]
    yield from grep(files, r'\bgetAttr(OfType<[^>]*>)?\(\s*"', "attribute by name")


def no_statistics():
    """no pass has a Statistic: the distribution's MLIR is built without them"""
    # Its constructor then lays out another class than a build with assertions
    # expects, and counting writes over the heap.
    files = [f for f in IN_LIB if f.endswith("Passes.td")]
    yield from grep(files, r"\bStatistic\s*<", "statistic")


def no_abort():
    """nothing in lib ends the process or fakes a result"""
    yield from grep(
        IN_LIB,
        r"\b(report_fatal_error|std::abort|std::exit|::exit|abort)\s*\(",
        "ends the process",
    )


def headers_name_no_namespace():
    """no `using namespace` in headers, but for attn/Support/LLVM.h"""
    files = [f for f in sources(".h") if f.startswith("include/")]
    files.remove("include/attn/Support/LLVM.h")
    yield from grep(files, r"\busing\s+namespace\b", "using namespace")


def banners():
    """every source names itself and its licence at the top"""
    for file in sources(".h", ".cpp", ".td", ".c", ".h.in"):
        if not file.startswith(("include/", "lib/", "tools/", "test/")):
            continue
        head = text(file).split("\n", 12)[:12]
        name = re.sub(r"\.in$", "", os.path.basename(file))
        if name not in head[0]:
            yield f"{file}:1: the first line does not say {name}"
        elif head[0].startswith("//") and not head[0].endswith("===//"):
            yield f"{file}:1: the first line goes on in the second"
        if not any("SPDX-License-Identifier" in line for line in head):
            yield f"{file}:1: no SPDX-License-Identifier"


def no_drawers():
    """no file is named Utils, Common, Misc or Helpers"""
    for file in FILES:
        if re.search(r"(Utils?|Common|Misc|Helpers?)\.(cpp|h|td)$", file):
            yield f"{file}:1: name it after the noun it holds"


def no_machine_paths():
    """no path of one machine; tools are found through CMake and PATH"""
    files = [f for f in FILES if not f.startswith((".ci/lint.py", "test/Benchmark/"))]
    pattern = r"/usr/lib/llvm-|/usr/local/cuda|/root/|/work/|\.\./shared"
    yield from grep(files, pattern, "path of one machine")


def one_numbering():
    """the contract has one numbering, that of attn.attention: (C1) and on"""
    files = sources(".h", ".cpp", ".td", ".py", ".md")
    yield from grep(files, r"\(N\d+\)|\b[Rr]ule N\d", "a number of another list")


def one_name_one_type():
    """no two types of lib, or of what it shows, have one name"""
    first = {}
    definition = re.compile(r"(?:class|struct|union|enum(?: class)?) (?:\[\[\w+\]\] )?(\w+)(?: final)?(?: \{|\s*:|$)")
    for file in sources(".h", ".cpp"):
        if not below(file):
            continue
        for number, line in enumerate(text(file).split("\n"), 1):
            # Those within another type are named after it: they are indented.
            m = definition.match(re.sub(r"^template <.*?> (?=class|struct)", "", line))
            if m and first.setdefault(m.group(1), file) != file:
                yield f"{file}:{number}: '{m.group(1)}' is a type of {first[m.group(1)]} too"


def no_loose_todo():
    """a TODO carries an issue number"""
    files = [f for f in sources(".h", ".cpp", ".td", ".py", ".c", ".sh", ".mlir")]
    for file in files:
        if file == ".ci/lint.py":
            continue
        for number, line in enumerate(text(file).split("\n"), 1):
            if re.search(r"\b(TODO|FIXME|XXX)\b(?!\(#\d+\))", line):
                yield f"{file}:{number}: {line.strip()}"


def whitespace():
    """no tabs, no trailing blanks, a newline at the end"""
    for file in FILES:
        if file.endswith((".png", ".bin", ".bc")) or "/Inputs/" in file:
            continue
        body = text(file)
        if body and not body.endswith("\n"):
            yield f"{file}: no newline at the end"
        for number, line in enumerate(body.split("\n"), 1):
            if line != line.rstrip() or ("\t" in line and not file.endswith(".mk")):
                yield f"{file}:{number}: blank at the end of the line, or a tab"


def passes():
    for file in FILES:
        if file.endswith("Passes.td"):
            for m in re.finditer(r'\bdef\s+\w+\s*:\s*Pass<\s*"([\w-]+)"', text(file)):
                number = text(file)[: m.start()].count("\n") + 1
                yield file, number, m.group(1)


def passes_are_tested():
    """every pass runs in a lit test, by its flag or in a pipeline"""
    tests = [text(f) for f in FILES if f.startswith("test/")]
    for file, number, flag in passes():
        flags = rf"(?<![\w-])-{{0,2}}{flag}(?![\w-])"
        if not any(re.search(flags, t) for t in tests):
            yield f"{file}:{number}: no test runs {flag}"


def gpu_pass_is_named(file, number, rest):
    """Its room is the conversion that makes the code it works on."""
    name = "".join(w.capitalize() for w in rest.split("-")) + ".cpp"
    for source in FILES:
        folder, base = os.path.split(source)
        if base == name and folder.startswith("lib/Conversion/"):
            if f"test/{folder[len('lib/') :]}/{rest}.mlir" not in FILES:
                yield f"{file}:{number}: gpu-{rest} has no {rest}.mlir beside its room's tests"
            return
    yield f"{file}:{number}: gpu-{rest} is not in a file {name} of lib/Conversion"


def conversions_have_twins():
    """a source of Conversion/WarpToGPU has a test of its name"""
    folder = "lib/Conversion/WarpToGPU/"
    for file in FILES:
        if not file.startswith(folder) or not file.endswith(".cpp"):
            continue
        name = os.path.basename(file)[: -len(".cpp")]
        twin = re.sub(r"([a-z0-9])([A-Z])", r"\1-\2", name).lower()
        # The pass itself has the tests of its parts.
        if name != "WarpToGPU" and f"test/Conversion/WarpToGPU/{twin}.mlir" not in FILES:
            yield f"{file}:1: no test/Conversion/WarpToGPU/{twin}.mlir"


def passes_are_named():
    """file = pass = test: tile-peel-masks is PeelMasks.cpp and peel-masks.mlir"""
    for file, number, flag in passes():
        if flag.startswith("gpu-"):
            yield from gpu_pass_is_named(file, number, flag[len("gpu-") :])
        m = re.match(r"(attn|tile|warp)-(.+)", flag)
        if not m or "Transforms" not in file:
            continue
        dialect, rest = m.groups()
        name = "".join(w.capitalize() for w in rest.split("-")).lower()
        folder = f"lib/Dialect/{dialect.capitalize()}/Transforms/"
        stems = [
            os.path.basename(f)[: -len(".cpp")].lower()
            for f in FILES
            if f.startswith(folder) and f.endswith(".cpp")
        ]
        if not any(stem.startswith(name) or name.startswith(stem) for stem in stems):
            yield f"{file}:{number}: {flag} is not in a file of its name in {folder}"
        if f"test/Dialect/{dialect.capitalize()}/{rest}.mlir" not in FILES:
            yield (
                f"{file}:{number}: {flag} has no test/Dialect/"
                f"{dialect.capitalize()}/{rest}.mlir"
            )


RULES = [
    include_directions,
    runtime_without_mlir,
    layout_without_ir,
    c_header_is_plain,
    no_process_state,
    no_string_attributes,
    no_statistics,
    no_abort,
    headers_name_no_namespace,
    banners,
    no_drawers,
    no_machine_paths,
    one_numbering,
    one_name_one_type,
    no_loose_todo,
    whitespace,
    passes_are_tested,
    passes_are_named,
    conversions_have_twins,
]


def write_junit(path, results):
    with open(path, "w", encoding="utf-8") as f:
        f.write('<testsuites><testsuite name="lint">\n')
        for rule, found in results:
            f.write(f'<testcase classname="lint" name={quoteattr(rule.__name__)}>')
            if found:
                f.write(f"<failure>{escape(chr(10).join(found))}</failure>")
            f.write("</testcase>\n")
        f.write("</testsuite></testsuites>\n")


def main():
    if "--list" in sys.argv[1:]:
        for rule in RULES:
            print(rule.__doc__)
        return 0
    results = [(rule, list(rule())) for rule in RULES]
    for rule, found in results:
        print(f"{'FAIL' if found else 'ok':4} {rule.__doc__}")
        for violation in found:
            print(f"       {violation}")
    for argument in sys.argv[1:]:
        if argument.startswith("--junit="):
            write_junit(argument[len("--junit=") :], results)
    failed = sum(bool(found) for _, found in results)
    print(f"lint: {len(results) - failed} passed, {failed} failed")
    return 1 if failed else 0


sys.exit(main())
