#!/usr/bin/env python3
#===----------------------------------------------------------------------===#
#
# Part of attn, an attention compiler.
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===----------------------------------------------------------------------===#
"""Gradients by their error rule (C16 of attn.attention_backward), on a GPU or the
CPU: every program of test/Masks, and random ones.

    gradients.py --bin build/bin --target sm_90a
    gradients.py --bin ... --target cpu --parts random --count 50 --seed 7
    gradients.py --bin ... --parts masks --only causal,documents
    gradients.py --bin ... --launches 1000        the bits of so many launches
    gradients.py --bin ... --sanitizer memcheck   ten programs under
                      compute-sanitizer; or racecheck, initcheck, synccheck

attn-run --backward --check judges each: outputs and workspaces are NaN before the
first launch, which is judged; a second one must give the same bits. Captures of
floats have gradients where the target has kernels for them, else none; how many
have none is said.
Exit code 0: all passed; 1: some did not; 77: no device.
"""

import argparse
import concurrent.futures
import dataclasses
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile
import time
import zlib

import results
from backward_cases import make_case, repeated_cases, small_cases
from gpu import SKIP

ROOT = pathlib.Path(__file__).resolve().parents[3]
for place in ("python", "test/Emulator", "test/Masks"):
    sys.path.insert(0, str(ROOT / place))
WHAT = "Gradients of programs against float64, by the error rule (C16)"
MASK_LENGTHS = [(70, 130), (130, 70), (64, 64), (1, 97), (97, 161), (100, 33), (129, 200), (257, 190)]
LONGEST = {"cpu": 200}  # of random cases; else 700
NO_DEVICE = 3


def parse_arguments():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--bin", type=pathlib.Path, required=True, help="where attn-run is")
    parser.add_argument("--target", default="sm_90a", help="sm_80, sm_90a or cpu")
    parser.add_argument("--parts", default="masks,random", help="masks, random, or both by comma")
    parser.add_argument("--seed", type=int, default=1, help="of programs and data")
    parser.add_argument("--count", type=int, default=400, help="random programs")
    parser.add_argument("--longest", type=int, help="longest sequence of these")
    parser.add_argument("--share", type=int, default=1, help="only every n-th mask, by the seed")
    parser.add_argument("--only", default="", help="names of masks or numbers of cases, by comma")
    parser.add_argument("--seconds", type=float, default=1e9, help="no case starts after them")
    parser.add_argument("--case-limit", type=float, default=150, help="seconds per case")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--launches", type=int, help="launch some programs so many times, no more")
    parser.add_argument("--sanitizer", help="memcheck, racecheck, initcheck or synccheck, no more")
    parser.add_argument("--artifacts", type=pathlib.Path, help="keeps programs and inputs there")
    parser.add_argument("--json", help="file for the summary, and what failed")
    parser.add_argument("--commit", default="", help="recorded in the JSON")
    return parser.parse_args()


@dataclasses.dataclass
class Job:
    """One call of attn-run."""

    name: str
    flags: list
    repeat: str  # options of this program that run it again
    wrapper: tuple = ()  # what runs it


def write_case(case, folder, options, repeat, wrapper=()):
    place = folder / case.name
    place.mkdir(parents=True, exist_ok=True)
    (place / "program.mlir").write_text(case.text())
    return Job(case.name, [place / "program.mlir", *case.flags(options.target)], repeat, wrapper)


def write_mask(name, folder, options):
    import masks
    from mask_case import MaskInputs

    number = zlib.crc32(name.encode())
    queries, keys = masks.Mask(name).lengths(MASK_LENGTHS, number + options.seed)
    place = folder / name
    place.mkdir(parents=True, exist_ok=True)
    inputs = MaskInputs(name, queries, keys, seed=options.seed)
    flags = [masks.DIRECTORY / f"{name}.mlir", *inputs.flags(place), f"--seed={options.seed}"]
    if (number + options.seed) % 2:
        flags.append("--lse-gradient")
    return Job(name, flags, f"--parts masks --seed {options.seed} --only {name}")


def mask_names(options):
    import masks

    chosen = options.only.split(",") if options.only else masks.names()
    return [name for number, name in enumerate(sorted(chosen))
            if options.only or (number + options.seed) % options.share == 0]


def chosen(options, cases):
    return [case for case in cases if not options.only or case.name in options.only.split(",")]


def make_jobs(options, folder):
    """Each as (part, a function that prepares it)."""
    if options.sanitizer:
        wrapper = ("compute-sanitizer", "--tool", options.sanitizer, "--error-exitcode", "9")
        for case in chosen(options, small_cases()):
            yield options.sanitizer, lambda case=case: write_case(
                case, folder, options, f"--sanitizer {options.sanitizer} --only {case.name}", wrapper)
        return
    if options.launches:
        for case in chosen(options, repeated_cases()):
            yield "launches", lambda case=case: write_case(
                case, folder, options, f"--launches {options.launches} --only {case.name}")
        return
    parts = options.parts.split(",")
    if "masks" in parts:
        for name in mask_names(options):
            yield "masks", lambda name=name: write_mask(name, folder, options)
    if "random" in parts:
        numbers = [int(n) for n in options.only.split(",")] if options.only else range(options.count)
        for number in numbers:
            longest = options.longest or LONGEST.get(options.target, 700)
            repeat = f"--parts random --seed {options.seed} --longest {longest} --only {number}"
            yield "random", lambda number=number, longest=longest, repeat=repeat: write_case(
                make_case(options.seed, number, longest), folder, options, repeat)


def call(options, job):
    launches = options.launches or 2
    if "deterministic = false" in pathlib.Path(job.flags[0]).read_text():
        launches = 1
    command = [*job.wrapper, options.bin / "attn-run", *job.flags, f"--target={options.target}",
               "--backward", "--check", "--json", f"--launches={launches}"]
    try:
        return command, subprocess.run(command, capture_output=True, text=True, timeout=options.case_limit)
    except subprocess.TimeoutExpired:
        return command, None


def is_clean(options, output):
    return re.search(r"(ERROR SUMMARY: 0 errors|RACECHECK SUMMARY: 0 hazards)", output)


def judge(options, job, done):
    """(the report of attn-run, what is wrong)"""
    if done is None:
        return {}, f"took more than {options.case_limit:.0f} s"
    output = done.stdout + done.stderr
    start, end = done.stdout.find("{\n"), done.stdout.rfind("\n}")
    report = json.loads(done.stdout[start : end + 2]) if 0 <= start < end else {}
    failure = report.get("check", {}).get("failure") or report.get("difference") or ""
    if done.returncode and not failure:
        lines = [line for line in output.splitlines() if "error" in line.lower()] or output.splitlines()
        failure = f"status {done.returncode}: " + "; ".join(lines[:3])[:600]
    if not failure and job.wrapper and not is_clean(options, output):
        failure = "not clean: " + "; ".join(output.splitlines()[-3:])
    return report, failure


def run(options, part, prepare):
    """A row of the summary."""
    start = time.time()
    job = prepare()
    row = {"part": part, "name": job.name}
    command, done = call(options, job)
    if done and done.returncode == 1 and any(str(flag).startswith("--plan=") for flag in job.flags) \
            and re.search(r"plan|block_q|shared memory|registers", done.stderr):
        row["refused_plan"] = done.stderr.strip().splitlines()[0][:200]
        job.flags = [flag for flag in job.flags if not str(flag).startswith("--plan=")]
        command, done = call(options, job)
    report, row["failure"] = judge(options, job, done)
    row["status"] = done.returncode if done else None
    row["plan"] = report.get("plan", "")
    row["device"] = report.get("device", "")
    row["spills"] = report.get("spill_store_bytes", 0)
    gradients = report.get("check", {}).get("gradients", {})
    shares = [of["error"] / of["bound"] for of in gradients.values() if of["error"] is not None]
    row["share_of_bound"] = round(max(shares, default=0), 3)
    row["gradients"] = len(gradients)
    row["command"] = shlex.join(map(str, command))
    row["repeat"] = f"gradients.py --bin {options.bin} --target {options.target} {job.repeat}"
    row["seconds"] = round(time.time() - start, 1)
    return row


def summarize(part, rows):
    return {
        "part": part,
        "programs": len(rows),
        "passed": sum(not row["failure"] for row in rows),
        "gradients": sum(row["gradients"] for row in rows),
        "plans_refused": sum("refused_plan" in row for row in rows),
        "with_spills": sum(row["spills"] > 0 for row in rows),
        "largest_share_of_bound": max((row["share_of_bound"] for row in rows), default=0),
    }


def main():
    options = parse_arguments()
    start, rows, skipped = time.time(), [], 0
    with tempfile.TemporaryDirectory() as scratch, \
            concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        jobs = [(part, prepare) for part, prepare in make_jobs(options, options.artifacts or
                                                               pathlib.Path(scratch))]

        def work(job):
            return run(options, *job) if time.time() - start < options.seconds else None

        for row in pool.map(work, jobs):
            if row is None:
                skipped += 1
                continue
            rows.append(row)
            if row["status"] == NO_DEVICE and len(rows) == 1:
                print("skipped: " + row["failure"])
                pool.shutdown(cancel_futures=True)
                return SKIP
            if row["failure"]:
                print(f"FAIL {row['part']} {row['name']}: {row['failure']}; again: {row['repeat']}",
                      flush=True)
            if len(rows) % 50 == 0:
                print(f"{len(rows)} of {len(jobs)} after {time.time() - start:.0f} s", file=sys.stderr)
    parts = list(dict.fromkeys(row["part"] for row in rows))
    summary = [summarize(part, [row for row in rows if row["part"] == part]) for part in parts]
    for line in summary:
        print(f"{line['part']}: {line['passed']} of {line['programs']} passed on {options.target}, "
              f"{line['gradients']} gradients, {line['plans_refused']} plans refused, "
              f"{line['with_spills']} with spills, largest error {line['largest_share_of_bound']} of the bound")
    if skipped:
        print(f"{skipped} not run: {options.seconds:.0f} s were over")
    slow = sorted(rows, key=lambda row: -row["seconds"])[:1]
    print(f"{time.time() - start:.0f} s; slowest: " + ", ".join(f"{r['name']} {r['seconds']} s" for r in slow))
    failed = [row for row in rows if row["failure"]]
    if options.json:
        results.write(options.json, {
            "what": WHAT,
            "command": results.command(),
            "environment": {"gpu": next((row["device"] for row in rows if row["device"]), ""),
                            "commit": options.commit, "seconds": round(time.time() - start)},
            "summary": results.table(summary),
            "not_run": skipped,
            "refused_plans": sorted({row["refused_plan"] for row in rows if "refused_plan" in row}),
            "failures": [{key: row[key] for key in ("part", "name", "failure", "plan", "repeat", "command")}
                         for row in failed],
        })
    return 1 if failed or not rows else 0


if __name__ == "__main__":
    sys.exit(main())
