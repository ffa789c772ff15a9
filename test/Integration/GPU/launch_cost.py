#!/usr/bin/env python3
#===----------------------------------------------------------------------===#
#
# Part of attn, an attention compiler.
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===----------------------------------------------------------------------===#
"""What launches cost: time of the host.

    launch_cost.py --lib build/lib/libattn.so --target sm_90a --json launch.json
    launch_cost.py --lib build/lib/libattn.so --target sm_90a --calls --json calls.json

Without --calls, what a rule over variants costs: the same plan alone, as the one of
two variants that is taken, and as one of four; through Python (launch), and the C
interface with prepared arguments (attnLaunch). With --calls, what each way to launch
costs: kernels of 3, 5 and 10 arguments and the gradients, `launch` of an artifact,
`launch` and `launch_prepared` of a kernel, attnLaunch in a loop in C (where there is
a C compiler), on the same tensors and on four sets of them in turn, and beside them
PyTorch's scaled_dot_product_attention.

The kernels take turns in random order, each for a batch of launches that is waited
for; a figure is the median of batches. --stand-in: no GPU, the tests' stand-in for
the driver (LD_LIBRARY_PATH=build/test/Unit/FakeDriver), with memory of the host;
what PyTorch's stream and attention cost is not measured then.
"""

import argparse
import ctypes
import itertools
import pathlib
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

import results
from gpu import SKIP, find_torch

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "python"))

CALLS = "Microseconds of the host for a launch, by ways to call it"
WHAT = "Microseconds of the host for a launch, by variants of the artifact"
PLAN = "#attn.plan<target = {}, block_q = 64, block_k = {}, warps = 4>"


def parse_arguments():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--lib", required=True)
    parser.add_argument("--target", default="sm_90a")
    parser.add_argument("--batches", type=int, default=200)
    parser.add_argument("--launches", type=int, default=100, help="of a batch")
    parser.add_argument("--calls", action="store_true")
    parser.add_argument("--stand-in", action="store_true")
    parser.add_argument("--json")
    return parser.parse_args()


def rules(target):
    """{name: plan or rule}; the shape below is in the last case of each."""
    plan = PLAN.format(target, 64)
    others = [PLAN.format(target, 16 * n) for n in (2, 3, 5)]
    lengths = [f"query_length <= {n + 1} -> {other}" for n, other in enumerate(others)]
    few = f"batch_heads * query_length <= 1 * multiprocessors and query_length <= 1 -> {others[0]}"
    return {"one plan": plan, "two variants": f"{lengths[0]}; {plan}",
            "two variants by blocks": f"{few}; {plan}",
            "four variants": "; ".join([*lengths, plan])}


class HostTensor:
    def __init__(self, numpy, shape, typestr):
        self.array = numpy.zeros(shape, typestr)
        pointer = self.array.__array_interface__["data"][0]
        self.__cuda_array_interface__ = {"shape": shape, "typestr": typestr, "version": 3,
                                         "data": (pointer, False), "strides": None}


def make_tensors(options):
    """(q, k, v, o, lse, a function that waits), in f16; None without a GPU."""
    shape = (1, 8, 256, 64)
    if options.stand_in:
        import numpy

        tensors = [HostTensor(numpy, shape, "<f2") for _ in range(4)]
        return *tensors, HostTensor(numpy, shape[:3], "<f4"), lambda: None
    torch = find_torch(options.target)
    if torch is None:
        return None
    tensors = [torch.zeros(shape, device="cuda", dtype=torch.float16) for _ in range(4)]
    return *tensors, torch.zeros(shape[:3], device="cuda"), torch.cuda.synchronize


class Calls:
    """The ways to launch one function, on tensors of one length."""

    BATCH, HEADS, LENGTH, DIM = 1, 8, 256, 64
    SETS = 4

    def __init__(self, options, torch, name):
        self.options, self.torch, self.name = options, torch, name

    def text(self):
        import attn

        if self.name == "10 arguments":
            captures = [("first", "tensor<?xi32>"), ("last", "tensor<?xi32>"), ("bias", "tensor<?x?xf32>"),
                        ("gain", "tensor<?xf32>"), ("window", "i32")]
            return attn.attention("f16", self.DIM, captures=captures,
                                  mask=lambda p: (p.j >= p.first[p.b]) & (p.j < p.last[p.b])
                                  & (p.i - p.j < p.window),
                                  score=lambda p: p.x * p.gain[p.h] + p.bias[p.i, p.j])
        text = attn.attention("f16", self.DIM, lse=self.name != "3 arguments")
        if self.name == "3 arguments":  # keys are values, too
            header, body = text.split("{", 1)
            header = header.replace(f", %v: tensor<?x?x?x{self.DIM}xf16>", "")
            text = header + "{" + body.replace("%q, %k, %v", "%q, %k, %k")
        return text

    def tensor(self, info):
        """Zeros for an argument."""
        sizes = dict(first=[self.BATCH], last=[self.BATCH], bias=[self.LENGTH, self.LENGTH],
                     gain=[self.HEADS])
        shape = sizes.get(info["name"], [self.BATCH, self.HEADS, self.LENGTH, self.DIM])
        kinds = {"f16": self.torch.float16, "f32": self.torch.float32, "i32": self.torch.int32}
        return self.torch.zeros(shape[:len(info["shape"])], dtype=kinds[info["element"]],
                                device="cpu" if self.options.stand_in else "cuda")

    def make(self, loop):
        """{way: seconds of that many launches}"""
        import attn

        artifact = attn.compile(self.text(), self.options.target,
                                with_backward=self.name == "gradients")
        if self.name == "gradients":
            artifact = artifact.backward
        kernel = artifact.on_device()
        if self.options.stand_in:
            kernel._device, artifact._kernels[-1] = "cpu", kernel
        infos = kernel.manifest["arguments"]
        sets = [[self.tensor(info) if info["tensor"] else 64 for info in infos]
                for _ in range(self.SETS)]
        values = sets[0]
        arguments = [kernel.prepare(*one) for one in sets]
        ways = {"artifact.launch": repeat(lambda: artifact.launch(*values)),
                "kernel.launch": repeat(lambda: kernel.launch(*values)),
                "launch_prepared": repeat(lambda: kernel.launch_prepared(arguments[0]))}
        in_turn = itertools.cycle(sets)
        ways["kernel.launch, in turn"] = repeat(lambda: kernel.launch(*next(in_turn)))
        if loop:
            ways["attnLaunch"] = self.in_c(loop, kernel, arguments[:1])
            ways["attnLaunch, in turn"] = self.in_c(loop, kernel, arguments)
        if self.name == "5 arguments" and not self.options.stand_in:
            attend = self.torch.nn.functional.scaled_dot_product_attention
            ways["PyTorch's attention"] = repeat(lambda: attend(*values[:3]))
        return ways


    @staticmethod
    def in_c(loop, kernel, sets):
        import attn

        launch = attn._capi.library().attnLaunch
        places = (ctypes.c_void_p * len(sets))(*map(ctypes.addressof, sets))

        def seconds(count):
            took = loop(launch, kernel._handle, places, len(sets), len(sets[0]), None, count)
            if took < 0:
                raise attn._capi.error()
            return took

        return seconds


def repeat(call):
    def seconds(count):
        start = time.perf_counter()
        for _ in range(count):
            call()
        return time.perf_counter() - start

    return seconds


def build_loop(folder):
    """launch_loop.c's function; None without a C compiler."""
    compiler = next(filter(None, map(shutil.which, ("cc", "gcc", "clang", "clang-22"))), None)
    if compiler is None:
        print("no C compiler: no attnLaunch in a loop")
        return None
    path = pathlib.Path(folder) / "loop.so"
    source = pathlib.Path(__file__).with_name("launch_loop.c")
    subprocess.run([compiler, "-O2", "-shared", "-fPIC", f"-I{ROOT / 'include'}", str(source),
                    "-o", str(path)], check=True)
    loop = ctypes.CDLL(str(path)).timeLaunches
    loop.restype = ctypes.c_double
    loop.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int,
                     ctypes.c_size_t, ctypes.c_void_p, ctypes.c_int]
    return loop


def do_not_write_down():
    """Tells the stand-in to count launches and nothing else."""
    record = ctypes.CDLL("libcuda.so.1")._Z10fakeRecordv  # FakeRecord::isShared comes first
    record.restype = ctypes.POINTER(ctypes.c_bool)
    record()[0] = True


def measure_calls(options):
    torch = find_torch("cpu" if options.stand_in else options.target)
    if torch is None:
        return SKIP
    import attn

    attn.use_library(options.lib)
    if options.stand_in:
        do_not_write_down()
    with tempfile.TemporaryDirectory() as folder:
        loop = build_loop(folder)
    calls = {(name, way): call for name in ("3 arguments", "5 arguments", "10 arguments", "gradients")
             for way, call in Calls(options, torch, name).make(loop).items()}
    seconds = {key: [] for key in calls}
    rng = random.Random(1)
    for batch in range(options.batches + 5):
        for key in rng.sample(list(calls), len(calls)):
            took = calls[key](options.launches)
            if not options.stand_in:
                torch.cuda.synchronize()
            if batch >= 5:
                seconds[key].append(took / options.launches)
    rows = [{"function": name, "way": way, "us": round(statistics.median(samples) * 1e6, 2)}
            for (name, way), samples in seconds.items()]
    for row in rows:
        print(f"{row['function']:14} {row['way']:22} {row['us']:8.2f} us", flush=True)
    if options.json:
        results.write(options.json, {"what": CALLS, "command": results.command(),
                                     "summary": {"launches": options.batches * options.launches},
                                     "cases": results.table(rows)})
    return 0


def main():
    options = parse_arguments()
    if options.calls:
        return measure_calls(options)
    made = make_tensors(options)
    if made is None:
        return SKIP
    *tensors, wait = made
    import attn

    attn.use_library(options.lib)
    calls = {}
    for name, plan in rules(options.target).items():
        artifact = attn.compile(attn.attention("f16", 64), options.target, plan=plan)
        kernel = artifact.on_device()
        arguments = kernel.prepare(*tensors)
        calls[name, "Python"] = lambda kernel=kernel: kernel.launch(*tensors)
        calls[name, "C"] = lambda kernel=kernel, arguments=arguments: kernel.launch_prepared(arguments)
    seconds = {key: [] for key in calls}
    rng = random.Random(1)
    for batch in range(options.batches + 5):
        for key in rng.sample(list(calls), len(calls)):
            call = calls[key]
            start = time.perf_counter()
            for _ in range(options.launches):
                call()
            stop = time.perf_counter()
            wait()
            if batch >= 5:
                seconds[key].append((stop - start) / options.launches)
    rows = []
    for (name, way), samples in seconds.items():
        alone = statistics.median(seconds["one plan", way])
        median = statistics.median(samples)
        rows.append({"way": way, "artifact": name, "us": round(median * 1e6, 3),
                     "more than one plan": round((median - alone) * 1e6, 3)})
        print(f"{way:8} {name:24} {median * 1e6:8.2f} us  {(median - alone) * 1e6:+7.2f}", flush=True)
    if options.json:
        results.write(options.json, {"what": WHAT, "command": results.command(),
                                     "summary": {"launches": options.batches * options.launches},
                                     "cases": results.table(rows)})
    return 0


if __name__ == "__main__":
    sys.exit(main())
