#!/usr/bin/env python3
#===----------------------------------------------------------------------===#
#
# Part of attn, an attention compiler.
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===----------------------------------------------------------------------===#
"""Captured maps of blocks of several sizes: the plan that the compiler takes beside
tiles of other sizes.

    block_maps.py --lib build/lib/libattn.so --json block-maps.json --commit $(git rev-parse HEAD)
    block_maps.py --lib ... --dims 64 --blocks 64x64 --tiles 128x128x8x2,64x64x4x4
                  block_q x block_k x warps x stages
    block_maps.py --lib ... --backward --tiles 128x64x8x2        the gradients

A map shows some of the blocks of queries and keys, drawn at random, and those on the
diagonal: map[i // queries, j // keys] != 0. What the contestants compute is compared, in
one process they take turns in random order, L2 is overwritten before each launch, and a
figure is the median of CUDA-event times.
"""

import argparse
import pathlib
import random
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
sys.path.insert(0, str(HERE.parents[2] / "python"))

import results  # noqa: E402
from bench import environment, numbers  # noqa: E402
from gpu import SKIP, find_torch, plan_of, plan_of_tiles  # noqa: E402
from turns import flush_buffer, medians  # noqa: E402
from variants import HIDDEN  # noqa: E402

WHAT = "Maps of blocks by the compiler's plan, and by tiles of other sizes"
TOLERANCE = 0.05  # of the largest value, between two plans


def parse_arguments():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--lib", required=True)
    parser.add_argument("--target", default="sm_90a")
    parser.add_argument("--dims", default="64,96,128,256")
    parser.add_argument("--blocks", default="128x128,128x64,64x128,64x64,32x32", help="queries x keys")
    parser.add_argument("--shown", default="0.02,0.15", help="parts of the blocks")
    parser.add_argument("--tiles", default="128x128x8x2,128x64x8x2,64x64x4x2", help="plans that compete")
    parser.add_argument("--backward", action="store_true", help="the gradients, not the forward")
    parser.add_argument("--batch", type=int, default=1)
    parser.add_argument("--length", type=int, default=8192)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--warmup", type=int, default=2)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json")
    parser.add_argument("--commit", default="")
    options = parser.parse_args()
    options.element, options.gqa, options.logits, options.hot = "bf16", 1, 1.0, False
    options.hidden = HIDDEN
    return options


def draw_map(torch, rng, length, queries, keys, shown):
    rows = [[int(rng.random() < shown or i * queries // keys == j) for j in range(-(-length // keys))]
            for i in range(-(-length // queries))]
    return torch.tensor(rows, device="cuda", dtype=torch.int32)


def make_program(dim, queries, keys):
    import attn

    return attn.attention(
        "bf16", dim, captures=[("map", "tensor<?x?xi32>")],
        mask=lambda p: p.map[p.i // queries, p.j // keys] != 0,
    )


def run_case(options, torch, flush, rng, dim, blocks, shown):
    import attn

    queries, keys = (int(size) for size in blocks.split("x"))
    heads, text = HIDDEN // dim, make_program(dim, queries, keys)

    def make():
        sizes = (options.batch, options.length, heads, dim)
        return torch.randn(sizes, device="cuda", dtype=torch.bfloat16).transpose(1, 2)

    q, k, v, o, d_o, d_q, d_k, d_v = (make() for _ in range(8))
    lse = torch.empty(options.batch, heads, options.length, device="cuda")
    map = draw_map(torch, rng, options.length, queries, keys, shown)
    arguments, found = (q, k, v, map, o, lse), o
    if options.backward:
        attn.compile(text, options.target).on_device().launch(*arguments)
        arguments, found = (*arguments, d_o, d_q, d_k, d_v), d_k
    stream = torch.cuda.current_stream().cuda_stream
    contestants, row = {}, {"d": dim, "blocks": blocks, "shown": shown, "contestants": {}}
    expected = None
    for name in ["default", *filter(None, options.tiles.split(","))]:
        plan = "" if name == "default" else plan_of_tiles(options.target, name)
        if options.target != "sm_90a":
            plan = plan.replace(", scheduler = auto", "")
        try:
            kernel = attn.compile(text, options.target, plan, backward=options.backward).on_device()
            prepared = kernel.prepare(*arguments)
        except attn.AttnError as error:
            row["contestants"][name] = {"plan": plan, "error": str(error)}
            print(f"d={dim:<4} {blocks} {name}: {error}", flush=True)
            continue
        found.fill_(float("nan"))
        kernel.launch_prepared(prepared, stream)
        torch.cuda.synchronize()
        value = found.float()
        expected = value.clone() if expected is None else expected
        worst = (value - expected).abs().nan_to_num(float("inf")).max().item()
        if worst > TOLERANCE * max(1.0, expected.abs().max().item()):
            raise SystemExit(f"d={dim} {blocks} {name}: off by {worst}")
        row["contestants"][name] = {"plan": plan_of(kernel, *arguments)}
        contestants[name] = lambda kernel=kernel, prepared=prepared: kernel.launch_prepared(
            prepared, stream
        )
    for name, ms in medians(options, torch, flush, rng, contestants).items():
        entry = row["contestants"][name]
        entry["ms"] = round(ms, 4)
        # How many times as fast as these the compiler's plan is.
        default = row["contestants"]["default"].get("ms", ms)
        entry["of_default"] = round(default / ms, 3)
        print(f"d={dim:<4} {blocks:<8} {shown:<5} {name:<12} {ms:8.4f} ms  {entry['of_default']:.3f} of the default",
              flush=True)
    return row


def main():
    options = parse_arguments()
    torch = find_torch(options.target)
    if not torch:
        return SKIP
    import attn

    attn.use_library(options.lib)
    torch.manual_seed(options.seed)
    rng = random.Random(options.seed)
    flush = flush_buffer(torch)
    rows = [
        run_case(options, torch, flush, rng, dim, blocks, shown)
        for dim in numbers(options.dims)
        for blocks in options.blocks.split(",")
        for shown in map(float, options.shown.split(","))
    ]
    if options.json:
        results.write(options.json, results.contest(WHAT, environment(options, torch), rows))
    return 0


if __name__ == "__main__":
    sys.exit(main())
