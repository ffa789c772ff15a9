#!/usr/bin/env python3
#===----------------------------------------------------------------------===#
#
# Part of attn, an attention compiler.
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===----------------------------------------------------------------------===#
"""Tunes a few programs on the GPU with attn-bench, and checks that the compiler
takes from the file what was fastest.

    tune.py --bin build/bin --target sm_90a --results h200.json
    tune.py --bin ... --dims 64,128 --queries 4096 --seconds 170
    tune.py --bin ... --queries 512,1024,2048,4096,8192,16384 --batch-heads 0,8 \\
            --artifacts folder
    tune.py --bin ... --backward --dims 64,128 --queries 1024,4096,16384 \\
            --results h100.json --seconds 500

--backward: the gradients, everything that a call launches. Of several lengths, and numbers of batch entries times heads (0: as many as make
16384 tokens), comes a rule, which is printed, and with --artifacts an artifact.
Exit code 0: each winner, or the rule, is what the compiler takes with the file;
1: not; 77: no GPU.
"""

import argparse
import json
import pathlib
import re
import subprocess
import sys
import tempfile
import time

from gpu import SKIP

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3] / "python"))

NO_DEVICE = 3
TOKENS, HIDDEN = 16384, 2048


def parse_arguments():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--bin", required=True, help="where attn-bench and attn-compile are")
    parser.add_argument("--target", default="sm_90a")
    parser.add_argument("--dims", default="128", help="head dimensions, with commas")
    parser.add_argument("--variants", default="causal", help="causal, full or both, with commas")
    parser.add_argument("--queries", default="4096", help="lengths of a sequence, with commas")
    parser.add_argument("--backward", action="store_true", help="tune the gradients instead")
    parser.add_argument("--batch-heads", default="0",
                        help="how many batch entries times heads, with commas")
    parser.add_argument("--artifacts", help="a folder for what is compiled with the file")
    parser.add_argument("--repeats", type=int, default=10)
    parser.add_argument("--seconds", type=float, default=170, help="no new program after these")
    parser.add_argument("--results", help="the file of results; default: a temporary one")
    return parser.parse_args()


def command_of(options, tool, source, *more):
    command = [str(pathlib.Path(options.bin) / tool), str(source), f"--target={options.target}"]
    return command + ["--backward"] * options.backward + list(more)


def picked(options, source, results=None):
    """The plans of the compiler, as it prints them: one, or a rule. (The first kernel of
    gradients has one of its own; a header begins with that of the whole.)"""
    command = command_of(options, "attn-compile", source, "--emit=header")
    command += [f"--results={results}"] if results else []
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    rule = re.search(r"remark: compiled in \d+ variants: (.*)", done.stderr)
    return rule[1] if rule else re.search(r"#attn\.plan<[^>]*>", done.stdout)[0]


def shapes(options, dim):
    """For attn-bench: every length with every number of batch entries and heads."""
    for batch_heads in map(int, options.batch_heads.split(",")):
        for queries in map(int, options.queries.split(",")):
            batch, heads = max(1, TOKENS // queries), HIDDEN // dim
            if batch_heads:
                batch, heads = 1, batch_heads
            yield f"b={batch},h={heads},sq={queries},sk={queries}"


def tune(options, source, dim, results):
    """The report of attn-bench; None without a GPU."""
    first, *others = shapes(options, dim)
    command = command_of(options, "attn-bench", source, "--tune", "--json")
    command += [f"--shape={first}", f"--results={results}"]
    command += [f"--also={shape}" for shape in others]
    command += [f"--repeats={options.repeats}"]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True)  # progress is on stderr
    if done.returncode == NO_DEVICE:
        return None
    done.check_returncode()
    return json.loads(done.stdout)


def write_artifact(options, source, results):
    folder = pathlib.Path(options.artifacts)
    folder.mkdir(parents=True, exist_ok=True)
    name = f"{source.stem}{'-backward' * options.backward}-{options.target}.attn"
    subprocess.run(command_of(options, "attn-compile", source, f"--results={results}",
                              "-o", str(folder / name)), check=True)


def report(name, measured, before):
    """Prints the fastest plans; those that no other was faster than."""
    rows = sorted((row for row in measured["candidates"] if "median_s" in row),
                  key=lambda row: row["median_s"])
    refused = len(measured["candidates"]) - len(rows)
    print(f"\n{name}: {len(rows)} plans measured, {refused} refused")
    for row in rows[:5] + [row for row in rows[5:] if row["plan"] == before]:
        mark = "  (the pick without the file)" if row["plan"] == before else ""
        print(f"  {row['median_s'] * 1e6:9.1f} us  {row['plan']}{mark}")
    return [row["plan"] for row in rows if row["median_s"] == rows[0]["median_s"]]


def main():
    options = parse_arguments()
    import attn

    start, bad = time.time(), 0
    with tempfile.TemporaryDirectory() as directory:
        results = pathlib.Path(options.results or pathlib.Path(directory) / "results.json")
        for dim in map(int, options.dims.split(",")):
            for variant in options.variants.split(","):
                if time.time() - start > options.seconds:
                    print(f"no time left for {variant} d={dim}")
                    continue
                source = pathlib.Path(directory) / f"{variant}-{dim}.mlir"
                variants = ["causal"] if variant == "causal" else []
                source.write_text(attn.attention("bf16", dim, variants=variants))
                before = picked(options, source)
                measured = tune(options, source, dim, results)
                if measured is None:
                    print("skipped: no GPU")
                    return SKIP
                name = f"{variant} d={dim} {options.target}{' backward' * options.backward}"
                for one in measured.get("reports", [measured]):
                    best = report(f"{name} {one['shapes'][0]}", one, before)
                if "rule" in measured:
                    best = [measured["rule"]]
                    print(f"  rule: {measured['rule']}")
                after = picked(options, source, results)
                if after not in best:
                    bad += 1
                    print(f"WRONG: with the file the compiler picks {after}")
                else:
                    change = "changes the pick" if after != before else "confirms the pick"
                    print(f"  the file {change} ({time.time() - start:.0f} s)", flush=True)
                if options.artifacts:
                    write_artifact(options, source, results)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
