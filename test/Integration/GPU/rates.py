#!/usr/bin/env python3
#===----------------------------------------------------------------------===#
#
# Part of attn, an attention compiler.
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===----------------------------------------------------------------------===#
"""What a window and an ALiBi score cost beside the causal kernel, per tile that
is visited.

    rates.py --lib build/lib/libattn.so --json rates.json --commit $(git rev-parse HEAD)
    rates.py --lib ... --dims 64 --lengths 8192 --window 1024
    rates.py --lib ... --dims 64 --tiles 128x128x8x2,192x64x12x4@static    the window by other
                  plans, too: block_q x block_k x warps x stages
    rates.py --lib ... --window 256 --without warp-insert-turns    and without an optional pass

All kernels of a head dimension take turns in one process, in random order, L2 is
overwritten before each launch, and a figure is the median of CUDA-event times.
A rate is 4 d FLOPs for every pair of a row and a key of the tiles (block_q x
block_k of the kernel's plan) in which the mask shows anything.
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

WHAT = "A window of keys and an ALiBi score beside the causal kernel, per tile that is visited"


def parse_arguments():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--lib", required=True)
    parser.add_argument("--target", default="sm_90a")
    parser.add_argument("--dims", default="64,128")
    parser.add_argument("--lengths", default="8192")
    parser.add_argument("--batch", type=int, default=2)
    parser.add_argument("--window", type=int, default=1024, help="keys that a row sees")
    parser.add_argument("--tiles", default="", help="plans of windows that compete, by their tiles")
    parser.add_argument("--without", default="", help="optional passes without each of which the window competes")
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--warmup", type=int, default=4)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json")
    parser.add_argument("--commit", default="")
    options = parser.parse_args()
    options.element, options.gqa, options.logits, options.hot = "bf16", 1, 1.0, False
    options.hidden = HIDDEN
    return options


def count_visited(plan, length, window):
    """Pairs of rows and keys in the tiles of which the mask shows a part."""
    block_q, block_k = (int(plan.split(f"{key} = ")[1].split(",")[0]) for key in ("block_q", "block_k"))
    tiles = 0
    for first in range(0, length, block_q):
        last = min(first + block_q, length) - 1
        lowest = max(first - window + 1, 0) if window else 0
        tiles += last // block_k - lowest // block_k + 1
    return tiles * block_q * block_k


def run_shape(options, torch, flush, rng, dim, length):
    import attn

    heads = HIDDEN // dim
    left = options.window - 1
    window = [f"window<left = {left}, right = 0>"], options.window
    programs = {
        "causal": (["causal"], 0, "", None),
        "window": (*window, "", None),
        "alibi": (["alibi", "causal"], 0, "", None),
    }
    for text in filter(None, options.tiles.split(",")):
        programs[text] = (*window, plan_of_tiles(options.target, text), None)
    for name in filter(None, options.without.split(",")):
        programs[f"no {name}"] = (*window, "", [name])

    def make():
        sizes = (options.batch, length, heads, dim)
        return torch.randn(sizes, device="cuda", dtype=torch.bfloat16).transpose(1, 2)

    q, k, v, o = make(), make(), make(), make()
    lse = torch.empty(options.batch, heads, length, device="cuda")
    stream = torch.cuda.current_stream().cuda_stream
    contestants, row = {}, {"d": dim, "s": length, "contestants": {}}
    for name, (variants, window, plan, disable) in programs.items():
        text = attn.attention("bf16", dim, variants=variants)
        try:
            kernel = attn.compile(text, options.target, plan, disable=disable).on_device()
        except attn.AttnError as error:
            row["contestants"][name] = {"plan": plan, "error": str(error)}
            print(f"d={dim:<4} {name}: {error}", flush=True)
            continue
        arguments = kernel.prepare(q, k, v, o, lse)
        contestants[name] = lambda kernel=kernel, arguments=arguments: kernel.launch_prepared(
            arguments, stream
        )
        plan = plan_of(kernel, q, k, v, o, lse)
        pairs = count_visited(plan, length, window)
        row["contestants"][name] = {
            "plan": plan,
            "flops": 4 * options.batch * heads * dim * pairs,
        }
    width = max(map(len, programs))
    for name, ms in medians(options, torch, flush, rng, contestants).items():
        entry = row["contestants"][name]
        entry["ms"] = round(ms, 4)
        entry["tflops_on_visited"] = round(entry.pop("flops") / ms / 1e9, 1)
        causal = row["contestants"]["causal"]["tflops_on_visited"]
        entry["of_causal"] = round(entry["tflops_on_visited"] / causal, 3)
        print(
            f"d={dim:<4} s={length:<6} {name:<{width}} {ms:8.4f} ms  "
            f"{entry['tflops_on_visited']:6.1f} TFLOP/s on visited tiles, {entry['of_causal']:.3f} of causal",
            flush=True,
        )
    return row


def main():
    options = parse_arguments()
    torch = find_torch()
    if not torch:
        return SKIP
    import attn

    attn.use_library(options.lib)
    torch.manual_seed(options.seed)
    rng = random.Random(options.seed)
    flush = flush_buffer(torch)
    rows = [
        run_shape(options, torch, flush, rng, dim, length)
        for dim in numbers(options.dims)
        for length in numbers(options.lengths)
    ]
    if options.json:
        results.write(options.json, results.contest(WHAT, environment(options, torch), rows))
    return 0


if __name__ == "__main__":
    sys.exit(main())
