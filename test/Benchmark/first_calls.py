#!/usr/bin/env python3
#===----------------------------------------------------------------------===#
#
# Part of attn, an attention compiler.
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===----------------------------------------------------------------------===#
"""How long the first call of a program takes, and its first backward(), in seconds.

    first_calls.py --lib build/lib/libattn.so --bar 1 --json first.json     on a GPU
    first_calls.py --lib build/lib/libattn.so --device cpu --dims 8 --lengths 16

For each head dimension, mask and length, with nothing on disk: a call without gradients;
then, with all kernels forgotten, one with gradients, its backward(), and both together;
then a call of half as many queries and keys, which may be of another plan. Before all,
one of another program loads what any call needs. With --bar N the exit code is 1 where a
call without gradients takes longer than N.
"""

import argparse
import json
import pathlib
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "python")]

COLUMNS = ["d", "causal", "length", "call", "call with gradients", "backward", "both", "half as long"]


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lib", required=True)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--dims", type=int, nargs="+", default=[64, 128])
    parser.add_argument("--lengths", type=int, nargs="+", default=[512, 8192])
    parser.add_argument("--time-limit", type=float, default=120, help="seconds; cases after it are left out")
    parser.add_argument("--bar", type=float, help="seconds that a call without gradients may take")
    parser.add_argument("--json", help="file for the figures")
    return parser.parse_args()


def measure(torch, attn, device, dim, causal, length):
    from attn.torch import kernels, warm

    def forget():
        for table in (kernels._compiled, kernels._loaded, kernels._rules):
            table.clear()
        warm.forget()

    def timed(function):
        start = time.perf_counter()
        result = function()
        if device != "cpu":
            torch.cuda.synchronize()
        return result, time.perf_counter() - start

    dtype = torch.float32 if device == "cpu" else torch.bfloat16
    q, k, v = torch.randn(3, 1, 4, length, dim, dtype=dtype, device=device)
    half = [x[:, :, :length // 2].contiguous() for x in (q, k, v)]
    forget()
    _, alone = timed(lambda: attn.torch.attention(q, k, v, causal=causal))
    _, other = timed(lambda: attn.torch.attention(*half, causal=causal))
    forget()
    for x in (q, k, v):
        x.requires_grad_()
    o, first = timed(lambda: attn.torch.attention(q, k, v, causal=causal))
    _, backward = timed(lambda: torch.autograd.grad(o, (q, k, v), o))
    return [dim, causal, length, *[round(each, 3) for each in (alone, first, backward, first + backward, other)]]


def main():
    options = parse_arguments()
    import torch

    import attn.torch
    from attn.torch import kernels

    attn.use_library(options.lib)
    kernels.CACHE, kernels.PATIENCE = None, 1e6
    end = time.monotonic() + options.time_limit
    measure(torch, attn, options.device, 32, False, 64)
    rows = []
    print(*COLUMNS, sep="  ")
    for dim in options.dims:
        for causal in (False, True):
            for length in options.lengths:
                if time.monotonic() < end:
                    rows.append(measure(torch, attn, options.device, dim, causal, length))
                    print(*rows[-1], sep="  ", flush=True)
    if options.json:
        device = "cpu" if options.device == "cpu" else torch.cuda.get_device_name()
        pathlib.Path(options.json).write_text(json.dumps(
            {"device": device, "processors": kernels._processors(), "cases": [COLUMNS, *rows]}, indent=1) + "\n")
    return options.bar is not None and any(row[3] > options.bar for row in rows)


if __name__ == "__main__":
    sys.exit(main())
