#!/usr/bin/env python3
#===----------------------------------------------------------------------===#
#
# Part of attn, an attention compiler.
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===----------------------------------------------------------------------===#
"""Random attention programs, compiled by libattn.so and checked on the GPU.

    suite.py --lib build/lib/libattn.so --cases 300 --seed 1
    suite.py --lib ... --only 17,42          these cases of the same seed
    suite.py --lib ... --dry-run             compile all, run none (no GPU)
    suite.py --lib ... --element f32 --f32-products ieee    f32 without tensor cores
    suite.py --lib ... --target cpu --longest 100   the CPU target, as a test of
                                             this program itself
    suite.py --lib ... --long 262144 [--backward]   one head, one very long sequence:
                                             memory and sampled rows
    suite.py --lib ... --huge                tensors of more than 2^31 elements

Programs are compiled in processes of their own and run in a worker process: a
crash, a hang or a broken CUDA context costs one case. Exit code 0: all passed;
1: some did not; 77: there is no GPU.
"""

import argparse
import dataclasses
import json
import os
import pathlib
import queue
import random
import re
import subprocess
import sys
import tempfile
import threading
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
sys.path.insert(0, str(HERE.parents[2] / "python"))

import results  # noqa: E402
import suite_summary  # noqa: E402
from cases import make_case  # noqa: E402
from compiling import Compiler  # noqa: E402
from gpu import SKIP  # noqa: E402

WORKER_READY = "ready"
WHAT = "Random programs against float64, by the error rule (C20)"


def parse_arguments():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--lib", required=True, help="path of libattn.so")
    parser.add_argument("--cases", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", help="numbers of cases, with commas")
    parser.add_argument("--longest", type=int, default=3000, help="longest sequence")
    parser.add_argument("--target", default="sm_80", help="sm_80, sm_90a or cpu")
    parser.add_argument("--plan", default="", help="one plan for all; default: the pick")
    parser.add_argument("--artifacts", help="directory that keeps programs and artifacts")
    parser.add_argument("--reuse", action="store_true", help="take what is there already")
    parser.add_argument("--dry-run", action="store_true", help="compile only")
    parser.add_argument("--long", type=int, help="length of one long sequence")
    parser.add_argument("--backward", action="store_true", help="with --long: its gradients")
    parser.add_argument("--huge", action="store_true", help="tensors of more than 2^31 elements")
    parser.add_argument("--jobs", type=int, help="programs compiled at once")
    parser.add_argument("--workers", type=int, default=3, help="processes that run cases")
    parser.add_argument("--element", help="f16, bf16 or f32 for all cases")
    parser.add_argument("--f32-products", default="", help="tf32x3 or ieee, of f32 cases")
    parser.add_argument("--random-passes", action="store_true", help="a random subset of passes per case")
    parser.add_argument("--json", help="file for the summary, and what failed")
    parser.add_argument("--commit", default="", help="recorded in the JSON")
    parser.add_argument("--time-limit", type=float, default=1e9, help="seconds in all")
    parser.add_argument("--case-limit", type=float, default=90, help="seconds per case")
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    return parser.parse_args()


def selected(options):
    if options.only:
        numbers = [int(number) for number in options.only.split(",")]
    else:
        numbers = range(options.cases)
    return [the_case(options, number) for number in numbers]


def the_case(options, number):
    case = make_case(options.seed, number, options.longest)
    if options.element:
        case.element = options.element
        if case.bias_element != "f32":
            case.bias_element = options.element
    if case.element == "f32":
        case.f32_products = options.f32_products
    return case


def case_name(case):
    return f"case-{case.index:04d}"


# ---------------------------------------------------------------------------
# The worker: one JSON object per line on standard output
# ---------------------------------------------------------------------------


def say(**row):
    print(json.dumps(row), flush=True)


def environment(options):
    import torch

    row = {"torch": torch.__version__, "commit": options.commit}
    if options.target != "cpu":
        row["gpu"] = torch.cuda.get_device_name()
        try:
            command = "nvidia-smi --query-gpu=driver_version --format=csv,noheader"
            output = subprocess.run(command.split(), capture_output=True, text=True)
            row["driver"] = output.stdout.strip().splitlines()[0]
        except (OSError, IndexError):
            row["driver"] = "unknown"
    return row


def load_kernel(options, directory, case):
    """The kernel of a case, once its compilation is done; or an error text."""
    import attn

    name = case_name(case)
    if options.target == "cpu":
        text = (directory / f"{name}.mlir").read_text()
        return attn.compile(text, target="cpu", plan=options.plan or None)
    artifact = attn.Artifact.load((directory / f"{name}.attn").read_bytes())
    # Whatever the rule picks for the lengths of this case: all are right for all.
    return artifact.on_device(variant=case.index % len(artifact.manifest["variants"]))


def worker(options):
    """Reads numbers of cases from standard input and runs them."""
    try:
        import torch
    except ImportError:
        say(skip=f"{sys.executable} has no PyTorch")
        return SKIP
    import attn

    attn.use_library(options.lib)
    directory = pathlib.Path(options.worker)
    device = "cpu" if options.target == "cpu" else "cuda"
    if device == "cuda":
        if not torch.cuda.is_available():
            say(skip="PyTorch sees no GPU")
            return SKIP
        torch.cuda.init()
        torch.backends.cuda.matmul.allow_tf32 = False
        torch.zeros(1, device=device)  # the context that modules go into
    from check import check

    say(**{WORKER_READY: True, **environment(options)})
    for line in sys.stdin:
        case = the_case(options, int(line))
        try:
            kernel = load_kernel(options, directory, case)

            def launch(*arguments):
                kernel.launch(*arguments)
                kernel.synchronize()

            row = check(case, launch, device)
            row["registers"] = kernel.registers
            row["local_bytes"] = kernel.local_bytes
            number = case.index % len(kernel.manifest["variants"])
            row["plan"] = kernel.manifest["variants"][number]["plan"]
        except attn.AttnError as error:
            row = {"failures": [f"attn: {error}"]}
        except torch.cuda.OutOfMemoryError if hasattr(
            torch.cuda, "OutOfMemoryError"
        ) else MemoryError:
            torch.cuda.empty_cache()
            row = {"failures": ["the reference ran out of memory"]}
        except Exception as error:  # the report is the point
            row = {"failures": [f"{type(error).__name__}: {str(error)[:500]}"]}
        broken = any("CUDA_ERROR" in text or "CUDA error" in text for text in row["failures"])
        say(index=case.index, **row)
        if broken:
            os._exit(3)  # the context is lost; a new worker goes on
    return 0


class Worker:
    """A worker process and the lines it says."""

    def __init__(self, options, directory):
        command = [sys.executable, __file__, "--worker", str(directory)]
        command += ["--lib", options.lib, "--seed", str(options.seed)]
        command += ["--longest", str(options.longest), "--target", options.target]
        command += ["--plan", options.plan, "--commit", options.commit]
        command += ["--element", options.element] if options.element else []
        command += ["--f32-products", options.f32_products]
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.lines = queue.Queue()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self):
        for line in self.process.stdout:
            try:
                self.lines.put(json.loads(line))
            except ValueError:
                print(line, end="", file=sys.stderr)
        self.lines.put(None)

    def ask(self, index, timeout):
        """The row of a case; {"died": ...} or {"hung": ...} if there is none."""
        try:
            if index is not None:
                self.process.stdin.write(f"{index}\n")
                self.process.stdin.flush()
            row = self.lines.get(timeout=timeout)
        except queue.Empty:
            self.stop()
            return {"hung": f"no answer in {timeout:.0f} s"}
        except BrokenPipeError:
            row = None
        if row is None:
            return {"died": f"the worker left with code {self.process.wait()}"}
        return row

    def is_alive(self):
        return self.process.poll() is None

    def stop(self):
        self.process.kill()
        self.process.wait()


# ---------------------------------------------------------------------------
# The main process
# ---------------------------------------------------------------------------


def optional_passes(options, case):
    """Those of the target: the compiler lists them to who names another one."""
    import attn

    attn.use_library(options.lib)
    try:
        attn.compile(case.program(), target=options.target, disable="?")
    except attn.AttnError as error:
        return re.findall(r"[a-z0-9-]+", str(error).split("expected one of")[1].split("\n")[0])
    raise RuntimeError("the compiler takes '?' for an optional pass")


def random_passes(options, case, passes):
    """What runs of the optional passes, and what does not, as lists of names.
    A case's are drawn from the seed and its number."""
    rng = random.Random(f"{options.seed}/{case.index}")
    run = [name for name in passes if rng.random() < 0.5]
    return ",".join(run), ",".join(name for name in passes if name not in run)


def compile_all(options, directory, cases):
    compiler = Compiler(options.lib, directory, options.target, options.jobs)
    passes = optional_passes(options, cases[0]) if options.random_passes else []
    futures = {}
    for case in cases:
        done = directory / f"{case_name(case)}.attn"
        if not (options.reuse and done.exists()):
            enable, disable = random_passes(options, case, passes)
            if passes:
                (directory / f"{case_name(case)}.passes").write_text(f"enable={enable} disable={disable}\n")
            futures[case.index] = compiler.compile(
                case_name(case), case.program(), options.plan, disable, enable
            )
    return compiler, futures


class Runner:
    """Runs cases one after the other in a worker of its own, and starts a new
    worker where one was lost."""

    def __init__(self, options, directory):
        self.options, self.directory = options, directory
        self.worker, self.hello = None, {}

    def start(self):
        """What the worker said at its start; starts one if none is alive."""
        if self.worker is None or not self.worker.is_alive():
            self.worker = Worker(self.options, self.directory)
            self.hello = self.worker.ask(None, 300)
        return self.hello

    def run(self, case):
        for _ in range(2):
            if WORKER_READY not in self.start():
                return {"failures": [f"no worker: {self.hello}"]}
            row = self.worker.ask(case.index, self.options.case_limit)
            if "died" in row or "hung" in row:
                return {"failures": [row.get("died") or row["hung"]]}
            if row.get("index") == case.index:
                time.sleep(0.2 if row["failures"] else 0)  # it may be leaving
                return row
        return {"failures": ["the worker answers out of order"]}

    def close(self):
        if self.worker:
            self.worker.stop()


def finish_case(options, future, runner, case, deadline):
    """The row of one case, whatever happens."""
    seconds, error = 0.0, ""
    if time.time() > deadline:
        row = {"failures": ["not run: the time limit was reached"]}
    else:
        if future:
            seconds, error = future.result()
        if error:
            row = {"failures": [f"compile: {error}"]}
        elif options.dry_run:
            row = {"failures": []}
        else:
            row = runner.run(case)
    row.update(index=case.index, compile_seconds=round(seconds, 3))
    row["case"] = dataclasses.asdict(case)
    return row


def run_all(options, directory, cases):
    """The rows of all cases and the environment; None if there is no GPU."""
    first = Runner(options, directory)
    if not options.dry_run:
        hello = first.start()
        if "skip" in hello:
            print(f"skipped: {hello['skip']}")
            return None, None
        print(json.dumps(hello), flush=True)
    compiler, futures = compile_all(options, directory, cases)
    deadline = time.time() + options.time_limit
    waiting, done = queue.SimpleQueue(), queue.SimpleQueue()
    for case in cases:
        waiting.put(case)

    def work(runner):
        while True:
            try:
                case = waiting.get_nowait()
            except queue.Empty:
                break
            future = futures.get(case.index)
            done.put((case, finish_case(options, future, runner, case, deadline)))
        runner.close()

    count = 1 if options.dry_run else max(1, min(options.workers, len(cases)))
    runners = [first] + [Runner(options, directory) for _ in range(count - 1)]
    for runner in runners:
        threading.Thread(target=work, args=(runner,), daemon=True).start()
    rows = []
    while len(rows) < len(cases):
        case, row = done.get()
        rows.append(row)
        progress(len(rows), len(cases), case, row)
    compiler.close()
    return sorted(rows, key=lambda row: row["index"]), first.hello


def progress(done, total, case, row):
    verdict = "FAIL" if row["failures"] else "ok  "
    numbers = ""
    if "e_o" in row:
        numbers = f" e {row['e_o']:.2e}/{row['e_t0']:.2e} lse {row['e_lse']:.1e}"
        if row["empty_rows"]:
            numbers += f" empty {row['empty_rows']}"
        if row.get("local_bytes", 0) > 0:
            numbers += f" local {row['local_bytes']}"
    print(f"[{done}/{total}] {verdict} #{case.index} {case.describe()}{numbers}", flush=True)
    for failure in row["failures"]:
        print("      " + failure.replace("\n", "\n      "), flush=True)


def main():
    options = parse_arguments()
    options.lib = str(pathlib.Path(options.lib).resolve())
    if options.worker:
        return worker(options)
    if options.long or options.huge:
        from long import run_huge, run_long

        return run_long(options) if options.long else run_huge(options)
    with tempfile.TemporaryDirectory() as temporary:
        directory = pathlib.Path(options.artifacts or temporary)
        rows, found = run_all(options, directory, selected(options))
    if rows is None:
        return SKIP
    command = results.command()
    summary = suite_summary.summarize(rows, command)
    suite_summary.show(summary)
    if options.json:
        found = {name: value for name, value in found.items() if name != WORKER_READY}
        document = {"what": WHAT, "command": command, "environment": found, **summary}
        results.write(options.json, document)
    return 0 if summary["summary"]["passed"] == len(rows) else 1


if __name__ == "__main__":
    sys.exit(main())
