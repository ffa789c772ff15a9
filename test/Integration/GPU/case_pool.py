#===----------------------------------------------------------------------===#
#
# Part of attn, an attention compiler.
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===----------------------------------------------------------------------===#
"""Cases by name, in several processes that share one GPU, until the time is over.

What takes the time of most cases is compiling, of one core each. A program has the names
of its cases and a function of one of them, which is found by its name in each process:

    def check(torch, name, options):
        return Verdict(said, right)        # or it raises

    options = parse(add_arguments(argparse.ArgumentParser(...)))
    sys.exit(main(options, names, check, "what they are"))

A process takes the next case when it is idle. One that ends within a case, or whose GPU
is in error after it, fails that case alone: another process takes its place.
"""

import collections
import multiprocessing
import os
import pathlib
import sys
import threading
import time
import traceback

import results
from gpu import SKIP, find_torch

GRACE = 90.0  # seconds that a case may go on after the time limit
CHATTY = 200  # cases; of more, those that are right are not named one by one
PAUSE = 10.0  # seconds between lines about them

# right: None where the case says nothing here (what it needs is missing).
Verdict = collections.namedtuple("Verdict", "said right rows", defaults=((),))


def add_arguments(parser, lib_required=True, device="cuda"):
    """Those that each program takes."""
    parser.add_argument("--lib", required=lib_required, help="path of libattn.so")
    parser.add_argument("--device", default=device, choices=("cuda", "cpu"))
    parser.add_argument("--only", default="", help="names, or parts of them, with commas between")
    parser.add_argument("--part", default="1/1", help="K/N: the K-th of every N cases")
    parser.add_argument("--jobs", type=int, help="processes (default: on a GPU one for each core, else 1)")
    parser.add_argument("--time-limit", type=float, default=1e9, help="seconds after which no case is begun")
    parser.add_argument("--json", help="file for the summary, and what failed")
    parser.add_argument("--commit", default="", help="recorded in the JSON")
    return parser


def parse(parser):
    options = parser.parse_args()
    options.until = time.time() + options.time_limit
    if options.jobs is None:
        options.jobs = cores() if options.device == "cuda" else 1
    try:
        first, parts = map(int, options.part.split("/"))
    except ValueError:
        first = parts = 0
    if not 1 <= first <= parts:
        parser.error(f"--part: wanted K/N with K from 1 to N, got {options.part!r}")
    if options.jobs < 1:
        parser.error(f"--jobs: wanted at least 1, got {options.jobs}")
    return options


def cores():
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def chosen(options, names):
    """The names that --only and --part leave. A whole name stands for itself alone."""
    names = list(names)
    for part in filter(None, options.only.split(",")):
        if not any(part in name for name in names):
            sys.exit(f"--only: wanted a part of a name, got {part!r}; names: {', '.join(names[:60])}")
    parts = [part for part in options.only.split(",") if part and part not in names]
    whole = set(options.only.split(","))
    if options.only:
        names = [name for name in names if name in whole or any(part in name for part in parts)]
    first, step = map(int, options.part.split("/"))
    return names[first - 1::step]


def environment(torch, options):
    name = torch.cuda.get_device_name() if options.device == "cuda" else "CPU"
    return {"gpu": name, "torch": torch.__version__, "commit": options.commit, "date": time.strftime("%Y-%m-%d")}


# ---------------------------------------------------------------------------
# One case
# ---------------------------------------------------------------------------


def load(options):
    """PyTorch, with attn.torch and its library; None: no PyTorch, or no GPU."""
    torch = find_torch("cpu" if options.device == "cpu" else "sm_80")
    if torch is None:
        return None
    import attn.torch

    if options.lib:
        attn.use_library(str(pathlib.Path(options.lib).resolve()))
    attn.torch.kernels.PATIENCE = 60.0
    torch.backends.cuda.matmul.allow_tf32 = False
    if options.jobs > 1:
        torch.set_num_threads(max(1, cores() // options.jobs))
    return torch


def attempt(torch, check, name, options):
    """(Verdict, seconds, whether this process can go on)"""
    start, is_sound = time.time(), True
    try:
        torch.manual_seed(1)
        verdict = check(torch, name, options)
        if options.device == "cuda":
            torch.cuda.synchronize()
    except Exception as problem:
        said = str(problem) if isinstance(problem, AssertionError) and str(problem) else traceback.format_exc()
        verdict = Verdict(said, False)
    if options.device == "cuda":
        try:
            torch.cuda.synchronize()
            torch.cuda.empty_cache()
        except Exception:  # an error that stays
            is_sound = False
    return verdict, time.time() - start, is_sound


# ---------------------------------------------------------------------------
# Processes
# ---------------------------------------------------------------------------


def _serve(pipe, check, options):
    torch = load(options)
    while True:
        try:
            name = pipe.recv()
        except EOFError:
            return
        if name is None:
            return
        found = attempt(torch, check, name, options)
        pipe.send(found)
        if not found[2]:
            os._exit(1)


class _Process:
    """One that runs a case after the other."""

    def __init__(self, check, options):
        context = multiprocessing.get_context("spawn")
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(target=_serve, args=(theirs, check, options))
        self._process.start()
        theirs.close()

    def run(self, name, until):
        """(Verdict, seconds, whether it can go on), as attempt()."""
        start = time.time()
        try:
            self._pipe.send(name)
            if self._pipe.poll(min(max(0.0, until - time.time()), 1e6)):
                return self._pipe.recv()
            self._process.terminate()
            said = f"did not end within {GRACE:.0f} s of the time limit"
        except (EOFError, OSError):
            self._process.join(10)
            said = f"its process ended, with code {self._process.exitcode}"
        return Verdict(said, False), time.time() - start, False

    def stop(self, is_sound):
        try:
            self._pipe.send(None)
        except OSError:
            pass
        if not is_sound:
            self._process.join(10)
            self._process.kill()
        self._process.join()


class Loop:
    """Cases that were run: how many passed, and what failed or was left out. Those of
    `alone` come last, one by one."""

    def __init__(self, options, check, names, alone=()):
        self.options, self.check, self.count = options, check, len(names)
        self._last = [name for name in names if name in alone]
        names = [name for name in names if name not in alone]
        self.passed, self.skipped, self.rows, self.failed, self.left_out, self.seconds = 0, 0, [], [], [], {}
        self._rest, self._lock, self._start, self._said = collections.deque(names), threading.Lock(), time.time(), 0.0

    def run(self):
        if self.options.jobs == 1:
            self._rest += self._last
            return self._run_here()
        os.environ.setdefault("TORCHINDUCTOR_COMPILE_THREADS", "1")  # of each process
        threads = [threading.Thread(target=self._drive) for _ in range(min(self.options.jobs, len(self._rest)))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self._rest += self._last
        self._drive()
        return self

    def _run_here(self):
        torch = load(self.options)
        for name in iter(self._next, None):
            verdict, seconds, is_sound = attempt(torch, self.check, name, self.options)
            self._note(name, verdict, seconds)
            if not is_sound:
                self.left_out += self._rest
                print("the GPU is in error: no other case can run", flush=True)
                break
        return self

    def _drive(self):
        process = None
        for name in iter(self._next, None):
            process = process or _Process(self.check, self.options)
            verdict, seconds, is_sound = process.run(name, self.options.until + GRACE)
            self._note(name, verdict, seconds)
            if not is_sound:
                process.stop(False)
                process = None
        if process:
            process.stop(True)

    def _next(self):
        with self._lock:
            if time.time() > self.options.until:
                self.left_out += self._rest
                self._rest.clear()
            return self._rest.popleft() if self._rest else None

    def _note(self, name, verdict, seconds):
        with self._lock:
            self.seconds[name] = round(seconds, 1)
            self.rows += verdict.rows
            if verdict.right:
                self.passed += 1
            elif verdict.right is None:
                self.skipped += 1
            else:
                self.failed.append({"case": name, "wrong": verdict.said})
            now, done = time.time() - self._start, len(self.seconds)
            if verdict.right and self.count > CHATTY and now - self._said < PAUSE:
                return
            self._said = now
            mark = {True: "ok", False: "FAILED", None: "skipped"}[verdict.right]
            print(f"[{done}/{self.count}, {now:.0f} s] {name}: {mark}{verdict.said and ': '}{verdict.said} "
                  f"({seconds:.1f} s)", flush=True)

    def summary(self):
        return {"passed": self.passed, "failed": len(self.failed), "skipped": self.skipped,
                "left_out": len(self.left_out), "seconds": round(time.time() - self._start, 1)}

    def report(self):
        """What a file of results says."""
        slowest = sorted(self.seconds.items(), key=lambda item: -item[1])[:10]
        return {"summary": self.summary(), "failed": self.failed, "left_out": self.left_out, "slowest": dict(slowest)}

    def code(self):
        return 1 if self.failed or not self.passed else 0

    def conclude(self):
        """Prints what remains to be said."""
        for one in self.failed:
            print(f"  {one['case']}: {(one['wrong'].strip().splitlines() or ['?'])[-1][:160]}")
        if self.left_out:
            more = f" and {len(self.left_out) - 20} more" if len(self.left_out) > 20 else ""
            print(f"left out for want of time: {', '.join(self.left_out[:20])}{more}")
        skipped = f", {self.skipped} skipped" if self.skipped else ""
        print(f"{self.passed} passed, {len(self.failed)} failed{skipped}, {len(self.left_out)} left out, "
              f"{time.time() - self._start:.0f} s", flush=True)
        return self


def main(options, names, check, what, alone=()):
    """Runs the cases, those of `alone` one by one, prints and writes the summary; the exit
    code: 0: all are right, 1: some are not, or none was run, 77: no PyTorch, or no GPU."""
    torch = find_torch("cpu" if options.device == "cpu" else "sm_80")
    if torch is None:
        return SKIP
    loop = Loop(options, check, names, alone).run().conclude()
    if options.json:
        results.write(options.json, {"what": what, "command": results.command(),
                                     "environment": environment(torch, options), **loop.report(),
                                     **({"rows": results.table(loop.rows)} if loop.rows else {})})
    return loop.code()
