#!/usr/bin/env python3
#===----------------------------------------------------------------------===#
#
# Part of attn, an attention compiler.
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===----------------------------------------------------------------------===#
"""What README.md says of measurements is what test/Benchmark/results holds.

    readme.py            compares; exit code 1 where they differ
    readme.py --write    puts the numbers of the results into README.md

A table stands between <!-- results: NAME --> and <!-- end --> and is written
whole. Sentences stay where people edit them: SENTENCES has those with numbers,
{} for each number, and where the numbers come from.
"""

import decimal
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
RESULTS = ROOT / "test" / "Benchmark" / "results"
sys.path.insert(0, str(ROOT / "test" / "Integration" / "GPU"))

import results  # noqa: E402

NUMBER = r"(\d(?:[\d.,]*\d)?)"


def read(name):
    return results.read(RESULTS / f"{name}.json")


def rows(name, table="cases", **wanted):
    """The rows of a table in which the named columns have these values."""
    found = [row for row in results.rows_of(read(name)[table])
             if all(row.get(key) == value for key, value in wanted.items())]
    if not found:
        raise LookupError(f"{name}.json: no row of {table} with {wanted}")
    return found


def rounded(number, digits=2):
    """With so many digits after the point; halves go up."""
    unit = decimal.Decimal(1).scaleb(-digits)
    return str(decimal.Decimal(str(number)).quantize(unit, decimal.ROUND_HALF_UP))


# ---------------------------------------------------------------------------
# Where the numbers come from
# ---------------------------------------------------------------------------


def mean(name, contestant, peer):
    """The geometric mean of the ratios and the lowest one."""
    row, = rows(name, "summary", contestant=contestant, beside=peer)
    return [rounded(row["geometric_mean"]), rounded(row["lowest"])]


def where(name, contestant, peer):
    """The head dimension and the length of the lowest ratio."""
    row, = rows(name, "summary", contestant=contestant, beside=peer)
    return [row["d"], str(row["s"])]


def versions():
    found = read("forward")["environment"]
    cudnn = f"{found['cudnn'] // 10000}.{found['cudnn'] // 100 % 100}"
    return [cudnn, ".".join(found["torch"].split(".")[:2])]


def functions():
    """How many functions FlexAttention stands beside, and how fast."""
    average, lowest = mean("variants", "sm_90a", "flex")
    return [average, str(len({row["variant"] for row in rows("variants")})), lowest]


def passed(name):
    counts = read(name)["summary"]
    return [str(counts["passed"]), str(counts["cases"])]


def rates(kind):
    return [rounded(row["of_causal"]) for row in rows("rates", contestant=kind)]


def one_percent():
    """Microseconds of the sparsest mask."""
    return [rounded(1000 * row["ms"], 0)
            for row in rows("variants", contestant="sm_90a", variant="block_sparse_1_percent")]


def spills():
    """Head dimensions of what spills, and the most bytes: windows on sm_80."""
    found = [row for row in rows("compile", "kernels") if row["spill_store_bytes"]]
    if {(row["target"], row["mask"]) for row in found} != {("sm_80", "window")}:
        raise LookupError(f"compile.json: other kernels spill than windows on sm_80: {found}")
    dims = sorted({row["head_dim"] for row in found})
    return [*map(str, dims), str(max(row["spill_store_bytes"] for row in found))]


def finite_scores():
    """f32 cases and programs with scores of any size: all, and those that passed."""
    document = read("finite-scores")

    def counts(start, *names):
        table, = [value for key, value in document.items() if key.startswith(start)]
        pairs = [re.match(r"(\d+) of (\d+)", table[name]).groups() for name in names]
        return [f"{sum(int(pair[i]) for pair in pairs):,}" for i in (1, 0)]

    return counts("f32, three TF32", "sm_80", "sm_90a") + counts(
        "random scores", "sm_80", "sm_90a", "cpu")


def f32_speed():
    """The lowest and the highest TFLOP/s of three TF32, and of PyTorch: at d = 64, and at
    d = 128 without and with a causal mask."""
    found = []
    for dim, masks in (("64", (False, True)), ("128", (False,)), ("128", (True,))):
        taken = [row for row in rows("forward-f32") if row["d"] == dim and row["causal"] in masks]
        theirs = [row["tflops"] for row in taken if row["contestant"] == "efficient"]
        ours = [row["tflops"] for row in taken if row["contestant"] != "efficient"]
        found += [rounded(speed, 0) for speeds in (ours, theirs) for speed in (min(speeds), max(speeds))]
    return found


def random_shapes(name):
    """Shapes without gradients and with: how many, how fast beside the fastest peer, how many slower."""
    found = []
    for row in rows(name, "summary"):
        found += [str(row["shapes"]), rounded(row["geometric_mean"]), str(row["slower"]), rounded(row["lowest"])]
    return found


def masked_decode():
    """Beside FlexAttention: in how many masks and scores, at how many shapes, how fast."""
    speed, = read("masked-decode")["times"]["speed"]
    cases = rows("masked-decode", "rows")
    return [str(len({row[column] for row in cases})) for column in ("case", "shape")] + [
        rounded(speed["geometric_mean"]), rounded(speed["lowest"])]


SENTENCES = [
    ("cuDNN {} are those of PyTorch {},", versions),
    ("sm_80 is {} of FlashAttention-2 (lowest {}, d = {} at {}),",
     lambda: mean("forward", "sm_80", "fa2") + where("forward", "sm_80", "fa2")),
    ("sm_90a {} of cuDNN (lowest {}, d = {} at {});",
     lambda: mean("forward", "sm_90a", "cudnn") + where("forward", "sm_90a", "cudnn")),
    ("at the power limit (`--hot`) {} (lowest {}).",
     lambda: mean("forward-hot", "sm_90a", "cudnn")),
    ("and 192/128 it is {} (lowest {}, d = {} at {}).",
     lambda: mean("forward-dims", "sm_90a", "cudnn") + where("forward-dims", "sm_90a", "cudnn")),
    ("sm_90a is {} times as fast over {} score and mask functions at d = 64 and 128 (lowest {};",
     functions),
    ("--target sm_90a --cases 300 --seed 1 # {} of {}; sm_80:", lambda: passed("suite-sm_90a")),
    ("; sm_80: {}\n", lambda: passed("suite-sm_80")[:1]),
    ("one binary, 1 to 1,048,576 keys: {} of {}\n", lambda: passed("lengths")),
    ("(1024 keys of 8192: {} of the causal kernel's rate per visited tile at d = 64, {} at"
     " d = 128: `rates.json`)", lambda: rates("window")),
    ("ALiBi with 8192 keys is {} and {} times as fast as the causal kernel at d = 64 and 128 (`rates.json`)",
     lambda: rates("alibi")),
    ("takes {} us at d = 64 and {} us at d = 128,", one_percent),
    ("on sm_80 windows at d = {} and {} spill up to {} bytes", spills),
    ("in {} masks and scores at {} shapes, d = 64 and 128: {} of its speed in geometric mean, lowest {}",
     masked_decode),
    ("Of {} random f32 cases {} obey C20, of {} programs with scores of any size {}"
     " (`finite-scores.json`", finite_scores),
    ("added in f32: on an H100 {} to {} TFLOP/s at d = 64, where PyTorch's memory-efficient attention has"
     " {} to {}, and {} to {} at d = 128 ({} to {}), {} to {} there with a causal mask ({} to {}:", f32_speed),
    ("Of {} random f32 shapes on an H200 the forward is {} times as fast as the fastest of PyTorch's fused kernels in"
     " geometric mean ({} slower, lowest {}), of {} with gradients {} times ({} slower, lowest {}:"
     " `shapes-f32.json`)", lambda: random_shapes("shapes-f32")),
    ("Of {} random shapes of 16-bit elements on an H200 the forward is {} times as fast as the fastest of PyTorch's"
     " fused kernels in geometric mean ({} slower, lowest {}), of {} with gradients {} times ({} slower, lowest {}:"
     " `shapes.json`)", lambda: random_shapes("shapes")),
]


def forward():
    """TFLOP/s of d = 64, 128 and 256 at three lengths."""
    columns = ["fa2", "cudnn", "sm_80", "sm_90a"]
    yield "| d | causal | length | FA2 | cuDNN | sm_80 | sm_90a |"
    yield "|---|---|---|---|---|---|---|"
    speeds = {}
    for row in rows("forward"):
        case = speeds.setdefault((row["d"], row["causal"], row["s"]), {})
        case[row["contestant"]] = rounded(row["tflops"], 0)
    for (d, causal, length), case in speeds.items():
        if length in (1024, 4096, 16384):
            cells = [d, "yes" if causal else "no", str(length), *(case[name] for name in columns)]
            yield f"| {' | '.join(cells)} |"


TABLES = {"forward": forward}

# ---------------------------------------------------------------------------
# README.md
# ---------------------------------------------------------------------------


def pattern(sentence):
    """Any white space stands for any other: lines may be filled."""
    parts = [re.sub(r"(\\?\s)+", r"\\s+", re.escape(part)) for part in sentence.split("{}")]
    return re.compile(NUMBER.join(parts))


def updated(text):
    """The text with the numbers of the results, and what was wrong in it."""
    wrong = []
    for name, table in TABLES.items():
        begin, end = f"<!-- results: {name} -->\n", "<!-- end -->\n"
        before, _, rest = text.partition(begin)
        present, _, after = rest.partition(end)
        wanted = "".join(line + "\n" for line in table())
        if not rest or end not in rest:
            wrong.append(f"no table between {begin.strip()} and {end.strip()}")
        elif present != wanted:
            wrong.append(f"the table {name} is not that of the results")
            text = before + begin + wanted + end + after
    for sentence, numbers in SENTENCES:
        found = list(pattern(sentence).finditer(text))
        if len(found) != 1:
            wrong.append(f"found {len(found)} times, wanted once: {sentence!r}")
            continue
        match, wanted = found[0], numbers()
        for group in range(len(wanted), 0, -1):
            if match[group] != wanted[group - 1]:
                line = text.count("\n", 0, match.start(group)) + 1
                wrong.append(f"line {line}: got {match[group]}, the results say"
                             f" {wanted[group - 1]}: {sentence.strip()!r}")
                text = text[: match.start(group)] + wanted[group - 1] + text[match.end(group) :]
    return text, wrong


def main():
    path = ROOT / "README.md"
    text, wrong = updated(path.read_text(encoding="utf-8"))
    if "--write" in sys.argv[1:]:
        path.write_text(text, encoding="utf-8")
        _, wrong = updated(text)
    for line in wrong:
        print(f"README.md: {line}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
