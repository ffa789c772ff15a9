#!/usr/bin/env python3
#===----------------------------------------------------------------------===#
#
# Part of attn, an attention compiler.
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===----------------------------------------------------------------------===#
"""Short attention: the GPU's time beside PyTorch's flash (fa2) and cuDNN backends, without
that of the host.

    short.py --lib build/lib/libattn.so --json short.json --commit $(git rev-parse HEAD)
    short.py --lib ... --shapes 1x8x128,8x16x512 --dims 64
    short.py --lib ... --tiles sweep          beside what is picked: TILES with each scheduler
    short.py --lib ... --tiles 128x64x8x4@grid,256x64x16x4    block_q x block_k x warps x stages
    short.py --lib NEW --old OLD [--old-python DIR]           what a change costs, as bench.py has it

A shape is batch x heads x length. Each contestant's call is recorded in a CUDA graph
CALLS times; replays take turns in random order, and a figure is the median of
a call. Nothing is done to L2: such inputs stand in it anyway.
Exit code 0: no shape is slower than the faster peer; 1: some are, or failed; 77: no GPU.
"""

import argparse
import gc
import pathlib
import random
import statistics
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
sys.path.insert(0, str(HERE.parents[2] / "python"))

import bench  # noqa: E402
import results  # noqa: E402
from gpu import SKIP, find_torch, plan_of_tiles  # noqa: E402

WHAT = "Microseconds of the GPU for short attention, beside PyTorch's flash (fa2) and cuDNN backends"
CALLS = 20
PEERS = ("fa2", "cudnn")
TILES = {64: ("256x64x16x4", "192x128x12x1", "192x64x12x4", "128x128x8x2", "128x64x8x4", "64x128x4x2", "64x64x4x4"),
         128: ("128x64x8x4", "128x64x8x3", "128x128x8x2", "64x64x4x4", "64x128x4x2")}
SHAPES = "1x8x128,1x16x256,1x8x512,1x16x512,2x16x256,4x8x128,4x16x512,8x16x128,8x16x256,8x16x512"


def plans_of(options, dim):
    """The picked one, then those of --tiles."""
    tiles = options.tiles.split(",") if options.tiles else []
    if options.tiles == "sweep":
        tiles = [text + scheduler for text in TILES[dim] for scheduler in ("", "@grid")]
    return ["", *(plan_of_tiles(options.target, text) for text in tiles)]


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lib", required=True)
    parser.add_argument("--shapes", default=SHAPES, help="BATCHxHEADSxLENGTH, with commas between them")
    parser.add_argument("--dims", default="64,128")
    parser.add_argument("--causal", default="0,1")
    parser.add_argument("--target", default="sm_90a")
    parser.add_argument("--tiles", default="", help="plans that compete, by their tiles, or sweep")
    parser.add_argument("--old", help="another library, whose kernels take part as TARGET-old")
    parser.add_argument("--old-python", default="", help="directory of the package attn of --old")
    parser.add_argument("--time-limit", type=float, default=1e9, help="seconds, of measuring")
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--json")
    parser.add_argument("--commit", default="")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    try:
        options.shapes = [tuple(int(part) for part in shape.split("x")) for shape in options.shapes.split(",")]
        if any(len(shape) != 3 or min(shape) < 1 for shape in options.shapes):
            raise ValueError
    except ValueError:
        parser.error(f"--shapes: wanted BATCHxHEADSxLENGTH, like 1x8x128, got {options.shapes!r}")
    options.plans = {str(dim): plans_of(options, dim) for dim in bench.numbers(options.dims)} if options.tiles else None
    # What bench.py asks for besides.
    vars(options).update(element="bf16", targets=options.target, gqa=1, logits=1.0, backward=False, static=False,
                         f32_products="", peers=",".join(PEERS), hidden=0,
                         hot=False)
    return options


def record(torch, call):
    """A graph of CALLS calls."""
    call()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    gc.collect()  # a module of the shape before that went meanwhile would end the recording
    gc.disable()
    try:
        with torch.cuda.graph(graph, stream=torch.cuda.current_stream()):
            for _ in range(CALLS):
                call()
    finally:
        gc.enable()
    return graph


def measure(options, torch, rng, shape):
    """{name: median microseconds of a call}"""
    graphs = {}
    for name, call in shape.contestants.items():
        try:
            graphs[name] = record(torch, call)
        except RuntimeError as error:  # cuDNN does not let itself be recorded in some shapes
            shape.facts.setdefault(name, {})["error"] = str(error)[:200]
    events = {name: [] for name in graphs}
    for turn in range(options.rounds + 5):
        for name in rng.sample(list(graphs), len(graphs)):
            start, stop = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            start.record()
            graphs[name].replay()
            stop.record()
            if turn >= 5:
                events[name].append((start, stop))
    torch.cuda.synchronize()
    return {name: statistics.median(start.elapsed_time(stop) for start, stop in pairs) / CALLS * 1000
            for name, pairs in events.items()}


def run_shape(options, torch, rng, kernels, dim, causal, sizes):
    batch, heads, length = sizes
    shape = bench.Shape(options, torch, dim, dim, causal, length, (batch, heads))
    for peer in PEERS:
        shape.add_peer(options, torch, peer)
    for label, plan, path, error, _ in kernels[str(dim), causal, 0]:
        old = options.old_package if "-old" in label else None
        shape.add_kernel(options, torch, label, plan, path, error, old)
    times = measure(options, torch, rng, shape)
    row = {"d": dim, "causal": bool(causal), "b": batch, "h": heads, "s": length, "contestants": shape.facts}
    for name, microseconds in times.items():
        entry = shape.facts.setdefault(name, {})
        entry["ms"] = round(microseconds / 1000, 5)
        for peer in PEERS:
            if peer in times and name not in PEERS:
                entry[f"of_{peer}"] = round(times[peer] / microseconds, 3)
        if f"{name}-old" in times:
            entry["of_old"] = round(times[f"{name}-old"] / microseconds, 4)
    said = "  ".join(f"{name} {1000 * entry['ms']:.2f}" if "ms" in entry else f"{name} ERROR"
                     for name, entry in shape.facts.items())
    ours = shape.facts.get(options.target, {})
    least = min((ours.get(f"of_{peer}", 9.0) for peer in PEERS), default=9.0) if "ms" in ours else 0.0
    print(f"d={dim:<4} {'causal' if causal else 'full  '} {batch}x{heads}x{length}: {said}  ({least:.2f} of the faster)",
          flush=True)
    return row, least


def main():
    options = parse_arguments()
    for name in ("lib", "old", "old_python"):
        if getattr(options, name):
            setattr(options, name, str(pathlib.Path(getattr(options, name)).resolve()))
    import attn

    attn.use_library(options.lib)
    torch = find_torch(options.target)
    if torch is None:
        return SKIP
    options.old_package = bench.old_package(options) if options.old else None
    torch.manual_seed(options.seed)
    rng, rows, ratios, deadline = random.Random(options.seed), [], [], None
    with tempfile.TemporaryDirectory() as directory:
        kernels = bench.compile_kernels(options, pathlib.Path(directory))
        for dim, plans in (options.plans or {}).items():
            for number, plan in enumerate(plans[1:], 1):
                print(f"d={dim} {options.target}/{number}: {plan}")
        deadline = time.monotonic() + options.time_limit
        for dim in bench.numbers(options.dims):
            for causal in bench.numbers(options.causal):
                for sizes in options.shapes:
                    if time.monotonic() > deadline:
                        continue
                    with torch.cuda.stream(torch.cuda.Stream()):
                        row, least = run_shape(options, torch, rng, kernels, dim, causal, sizes)
                    rows.append(row)
                    ratios.append(least)
    missed = len(options.dims.split(",")) * len(options.causal.split(",")) * len(options.shapes) - len(rows)
    if missed:
        print(f"{missed} shapes not reached in {options.time_limit:g} s")
    slower = sum(ratio < 1 for ratio in ratios)
    print(f"{len(rows)} shapes, {slower} slower than the faster of {', '.join(PEERS)}; "
          f"beside it {statistics.geometric_mean(max(r, 1e-9) for r in ratios):.3f} in geometric mean, "
          f"lowest {min(ratios):.3f}")
    for mean in results.means(results.lines(rows)):
        if mean["beside"] == "old":
            print(f"{mean['contestant']} beside -old: {mean['geometric_mean']:.4f} in geometric mean, "
                  f"lowest {mean['lowest']}")
    if options.json:
        found = bench.environment(options, torch) | {"protocol": f"graphs of {CALLS} calls, medians of {options.rounds}"}
        results.write(options.json, results.contest(WHAT, found, rows))
    return 1 if slower or missed else 0


if __name__ == "__main__":
    sys.exit(main())
