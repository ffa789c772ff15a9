#!/usr/bin/env python3
#===----------------------------------------------------------------------===#
#
# Part of attn, an attention compiler.
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===----------------------------------------------------------------------===#
"""Where the time of gradients goes, kernel by kernel: what stands before and after the
products (rows, delta, zeros, sums, roundings), as a share of all.

    gradient_parts.py --lib build/lib/libattn.so --json parts.json --commit $(git rev-parse HEAD)
    gradient_parts.py --lib ... --dims 128 --causal 0 --lengths 512,1024 --hidden 4096 --gqa 4

Shapes are those of bench.py --backward, launched one after the other; torch.profiler says
when each kernel begins and ends. A kernel may begin before the one in front of it ends, and
waits: its time counts from there. A figure is the median of all launches. Exit code 0: done,
1: something failed, 77: no GPU.
"""

import argparse
import pathlib
import statistics
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
sys.path.insert(0, str(HERE.parents[2] / "python"))

import bench  # noqa: E402
import results  # noqa: E402
from gpu import SKIP, find_torch  # noqa: E402

WHAT = "Microseconds of the kernels of gradients, and the share of those without products"
PRODUCTS = ("_d_query", "_d_key_value")


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lib", required=True)
    parser.add_argument("--targets", default="sm_90a")
    parser.add_argument("--dims", default="64,128")
    parser.add_argument("--causal", default="0,1")
    parser.add_argument("--lengths", default="1024")
    parser.add_argument("--element", default="bf16")
    parser.add_argument("--hidden", type=int, default=2048, help="query heads times head_dim")
    parser.add_argument("--gqa", type=int, default=1, help="query heads to a head of keys")
    parser.add_argument("--rounds", type=int, default=30, help="launches")
    parser.add_argument("--json")
    parser.add_argument("--commit", default="")
    options = parser.parse_args()
    # What bench.py asks for besides.
    vars(options).update(backward=True, plans=None, old=None, old_python="", f32_products="", hot=False,
                         logits=1.0, static=False)
    return options


def parts_of(launches):
    """[(name, median time)] of launches, each [(begin, end, name)] in their order, and the
    medians of the whole time and of what has no products."""
    times, wholes, besides = {}, [], []
    for launch in launches:
        begin = done = launch[0][0]
        beside = 0.0
        for _, end, name in launch:
            part = end - done
            times.setdefault(name, []).append(part)
            beside += 0.0 if name.endswith(PRODUCTS) else part
            done = end
        wholes.append(done - begin)
        besides.append(beside)
    return ([(name, statistics.median(of_name)) for name, of_name in times.items()],
            statistics.median(wholes), statistics.median(besides))


def record(options, torch, run):
    """Launches as the profiler saw them."""
    activities = [torch.profiler.ProfilerActivity.CUDA]
    for _ in range(3):
        run()
    torch.cuda.synchronize()
    with torch.profiler.profile(activities=activities) as profile:
        for _ in range(options.rounds):
            run()
        torch.cuda.synchronize()
    kernels = sorted((event.time_range.start, event.time_range.end, event.name) for event in profile.events()
                     if event.device_type == torch.autograd.DeviceType.CUDA and "attention" in event.name)
    count = len(kernels) // options.rounds
    return [kernels[i * count:(i + 1) * count] for i in range(options.rounds)]


def run_shape(options, torch, kernels, dims, causal, length):
    dim_name, dim, value_dim = dims
    shape = bench.Gradients(options, torch, dim, value_dim, causal, length)
    rows = []
    for label, plan, path, error, _ in kernels[dim_name, causal, 0]:
        shape.add_kernel(options, torch, label, plan, path, error)
        if label not in shape.contestants:
            print(f"{label}: {shape.facts[label].get('error')}")
            continue
        parts, whole, beside = parts_of(record(options, torch, shape.contestants[label]))
        names = [f"{name.split('attention_backward_')[-1]} {time:.1f}" for name, time in parts]
        rows.append({"d": dim_name, "causal": bool(causal), "s": length, "contestant": label,
                     "us": round(whole, 1), "beside": round(beside, 1), "share": round(beside / whole, 3),
                     "kernels": ", ".join(names)})
        print(f"d={dim_name:<4} {'causal' if causal else 'full  '} s={length:<5} {label:12} {whole:8.1f} us, "
              f"{beside / whole:.1%} beside products: {rows[-1]['kernels']}", flush=True)
    return rows


def main():
    options = parse_arguments()
    options.lib = str(pathlib.Path(options.lib).resolve())
    import attn

    attn.use_library(options.lib)
    torch = find_torch()
    if torch is None:
        return SKIP
    wanted = [(dims, causal, length) for dims in bench.dims_of(options)
              for causal in bench.numbers(options.causal) for length in bench.numbers(options.lengths)]
    rows = []
    with tempfile.TemporaryDirectory() as directory:
        kernels = bench.compile_kernels(options, pathlib.Path(directory))
        for shape in wanted:
            rows += run_shape(options, torch, kernels, *shape)
        environment = bench.environment(options, torch)
        environment["protocol"] = (f"{bench.TOKENS} tokens, hidden {options.hidden}, (batch, length, heads, dim), "
                                   f"medians of {options.rounds} launches one after the other")
    if options.json:
        results.write(options.json, {"what": WHAT, "command": results.command(), "environment": environment,
                                     "parts": results.table(rows)})
    return 0 if len(rows) == 2 * len(wanted) * len(options.targets.split(",")) else 1


if __name__ == "__main__":
    sys.exit(main())
