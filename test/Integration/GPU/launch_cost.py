#!/usr/bin/env python3
#===----------------------------------------------------------------------===#
#
# Part of attn, an attention compiler.
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===----------------------------------------------------------------------===#
"""What a rule over variants costs a launch: time of the host.

    launch_cost.py --lib build/lib/libattn.so --target sm_90a --json launch.json

The same plan alone, as the one of two variants that is taken, and as one of four;
through Python (launch), and the C interface with prepared arguments
(attnLaunch). The kernels take turns in random order, each for a batch of launches
that is waited for; a figure is the median of batches. --stand-in: no GPU, the
tests' stand-in for the driver (LD_LIBRARY_PATH=build/test/Unit/FakeDriver), with
memory of the host.
"""

import argparse
import pathlib
import random
import statistics
import sys
import time

import results
from gpu import SKIP, find_torch

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3] / "python"))

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


def main():
    options = parse_arguments()
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
