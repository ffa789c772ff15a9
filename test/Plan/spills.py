#===----------------------------------------------------------------------===#
#
# Part of attn, an attention compiler.
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===----------------------------------------------------------------------===#
"""Whether random programs spill registers with the plan that the compiler picks,
and what it takes to compile them: to a cubin, without a GPU, by attn-compile and
ptxas, as processes of their own.

  spills.py --bin build/bin
  spills.py --bin build/bin --count 300 --jobs 2 --time-limit 600 --json spills.json
  spills.py --bin build/bin --backward --count 50
  spills.py --bin build/bin --only 17 --target sm_80 --keep programs

Seconds are of processors: of the compiler and of ptxas together. Exit code 0: no
program spills, none fails, and none takes more than --seconds; 1: one does; 77:
there is no ptxas.
"""

import argparse
import concurrent.futures
import json
import os
import pathlib
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "Inputs"))
from random_programs import Program

SKIP = 77
COMPILE_LIMIT = 120  # seconds, of one program


def read_kernels(artifact):
    """What the manifest of an artifact says of its kernels, by their plan."""
    _, size, rest = artifact.split(b"\n", 2)
    manifest = json.loads(rest[: int(size)])
    return [(variant["plan"], kernel) for function in [manifest, *manifest.get("companions", [])]
            for variant in function["variants"] for kernel in variant["kernels"]]


def compile_program(program, target, options, directory):
    """The result as a dictionary."""
    path = pathlib.Path(directory) / f"{program.number}-{target}"
    path.with_suffix(".mlir").write_text(program.text)
    command = [options.bin / "attn-compile", path.with_suffix(".mlir"), f"--target={target}",
               "-o", path.with_suffix(".attn"), *options.option]
    if options.backward:
        command.append("--backward")
    with open(path.with_suffix(".log"), "w") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True)
        timer = threading.Timer(COMPILE_LIMIT, lambda: os.killpg(process.pid, signal.SIGKILL))
        timer.start()
        # The usage of this process and of those that it waited for.
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        timer.cancel()
    log = path.with_suffix(".log").read_text()
    result = {"number": program.number, "target": target, "dim": program.dim,
              "program": program.said, "seconds": round(usage.ru_utime + usage.ru_stime, 3),
              "spilled": 0, "plans": [], "tried": len(re.findall("remark: plan .* spills", log))}
    if process.returncode != 0:
        lines = [line for line in log.splitlines() if "error" in line]
        result["error"] = f"status {process.returncode}: " + "; ".join(lines[:2])
        return result
    kernels = read_kernels(path.with_suffix(".attn").read_bytes())
    result["plans"] = sorted({plan for plan, _ in kernels})
    result["registers"] = max(kernel["registers"] for _, kernel in kernels)
    # Of the worst kernel: both ways, since what is loaded may be a constant.
    result["spilled"] = max(max(kernel["spill_store_bytes"], kernel["spill_load_bytes"])
                            for _, kernel in kernels)
    path.with_suffix(".attn").unlink()
    return result


def is_bad(result, options):
    return "error" in result or result["spilled"] > 0 or result["seconds"] > options.seconds


def summarize(results, options):
    for target in options.target:
        mine = [r for r in results if r["target"] == target]
        done = [r for r in mine if "error" not in r]
        if not done:
            print(f"{target}: none of {len(mine)} programs compiled")
            continue
        spilling = sorted((r for r in done if r["spilled"]), key=lambda r: -r["spilled"])
        seconds = sorted(r["seconds"] for r in done)
        again = sum(r["tried"] > 0 for r in done)
        print(f"{target}: {len(done)} programs, {len(spilling)} spill"
              + (f", {spilling[0]['spilled']} bytes the worst" if spilling else "")
              + f"; {again} took another plan because the first one spilled; seconds: median "
              f"{statistics.median(seconds):.2f}, worst {seconds[-1]:.2f}; {len(mine) - len(done)} failed")
        for result in spilling[: options.worst]:
            print(f"  {result['spilled']:5} bytes: {result['number']}, {result['program']}")
            print(f"              {'; '.join(result['plans'])}")
        for result in sorted(done, key=lambda r: -r["seconds"])[: options.worst]:
            if result["seconds"] > options.seconds:
                print(f"  {result['seconds']:5.2f} s: {result['number']}, {result['program']}")
        for result in mine:
            if "error" in result:
                print(f"  {result['number']}: {result['error']}")
    print(f"{sum(not is_bad(r, options) for r in results)} of {len(results)} are as wanted")


def read_options():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", type=pathlib.Path, required=True, help="where attn-compile is")
    parser.add_argument("--count", type=int, default=300, help="of programs, each for both targets")
    parser.add_argument("--first", type=int, default=0, help="the first program's number")
    parser.add_argument("--only", type=int, action="append", help="a program's number; repeatable")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--target", action="append", choices=["sm_80", "sm_90a"])
    parser.add_argument("--elements", default="bf16,f16", help="types of elements, and f32")
    parser.add_argument("--backward", action="store_true", help="their gradients instead")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--time-limit", type=float, help="seconds after which no program is begun")
    parser.add_argument("--seconds", type=float, default=2.5, help="that a program may take")
    parser.add_argument("--worst", type=int, default=10, help="how many to show")
    parser.add_argument("--json", type=pathlib.Path, help="where the results go")
    parser.add_argument("--keep", type=pathlib.Path, help="where programs and logs stay")
    parser.add_argument("--option", action="append", default=[], help="of attn-compile; repeatable")
    options = parser.parse_args()
    options.elements = options.elements.split(",")
    options.target = options.target or ["sm_80", "sm_90a"]
    if options.keep:
        options.keep.mkdir(parents=True, exist_ok=True)
    return options


def main():
    options = read_options()
    start, results = time.monotonic(), []
    numbers = options.only or range(options.first, options.first + options.count)

    def work(case):
        if options.time_limit and time.monotonic() - start > options.time_limit:
            return None
        number, target = case
        return compile_program(Program(options.seed, number, options.elements), target, options, directory)

    with tempfile.TemporaryDirectory() as temporary, \
            concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        directory = options.keep or temporary
        cases = [(number, target) for number in numbers for target in options.target]
        for result in pool.map(work, cases):
            if result is None:
                continue
            if result.get("registers") == -1:
                print("there is no ptxas")
                return SKIP
            results.append(result)
    if len(results) < len(cases):
        print(f"after {options.time_limit:g} s: {len(results)} of {len(cases)}")
    summarize(results, options)
    if options.json:
        options.json.write_text(json.dumps(results, indent=1) + "\n")
    return 1 if not results or any(is_bad(r, options) for r in results) else 0


if __name__ == "__main__":
    sys.exit(main())
