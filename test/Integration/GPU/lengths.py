#!/usr/bin/env python3
#===----------------------------------------------------------------------===#
#
# Part of attn, an attention compiler.
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===----------------------------------------------------------------------===#
"""One binary for every length: causal + window + documents, 1 to 1,048,576 keys.

    lengths.py --lib build/lib/libattn.so --target sm_90a --json lengths.json

The kernel is compiled once. Documents are told by their sorted offsets, which
are all the memory that the mask takes: what a launch needs besides is printed
(the counter of a scheduler: bytes, whatever the length). Rows around the ends of
documents and blocks, and random ones, are compared with float64.
"""

import argparse
import pathlib
import sys

import results
from gpu import SKIP, find_torch

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[2] / "python"))

WINDOW, ROWS = 1024, 96
LENGTHS = "1,2,63,64,65,1000,4097,65536,1048576"
EXTRA_LIMIT = 1024  # bytes of a launch
WHAT = "One binary for every length: causal, window of 1024 keys, documents; sampled rows against float64"


def parse_arguments():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--lib", required=True)
    parser.add_argument("--target", default="sm_90a")
    parser.add_argument("--dims", default="64,128")
    parser.add_argument("--heads", type=int, default=2)
    parser.add_argument("--lengths", default=LENGTHS)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json")
    return parser.parse_args()


def program(attn, dim):
    ids = "tensor<?xi32>"
    return attn.attention(
        "bf16",
        dim,
        variants=[f"window<left = {WINDOW}, right = 0>"],
        captures=[("offsets", ids)],
        mask=f"""%m = attn.capture_search %offsets[], %i : {ids}
                 %n = attn.capture_search %offsets[], %j : {ids}
                 %s = arith.cmpi eq, %m, %n : i32
                 attn.yield %s : i1""",
    )


def make_offsets(torch, length):
    """0, then sorted random ends of documents, then the length."""
    count = max(1, min(200, length // 700))
    cuts = torch.randint(0, length + 1, (count,)).sort().values
    return torch.cat([torch.zeros(1).long(), cuts, torch.tensor([length])]).int()


def sample_rows(torch, length, offsets):
    near = [int(x) + d for x in offsets[:20] for d in (-1, 0)]
    near += [0, length - 1] + [n + d for n in (64, 128, 256, 1024, length // 2) for d in (-1, 0, 1)]
    near += torch.randint(0, length, (ROWS,)).tolist()
    return sorted({row for row in near if 0 <= row < length})[:ROWS]


def exact_row(torch, q, k, v, row, offsets):
    """(o, lse) of one row of all heads, in float64: keys of its document."""
    document = int(torch.searchsorted(offsets, torch.tensor(row), right=True)) - 1
    first = max(int(offsets[document]), row - WINDOW)
    keys, values = (x[0, :, first : row + 1].double() for x in (k, v))
    scores = (keys @ q[0, :, row].double()[:, :, None])[..., 0] * q.shape[-1] ** -0.5
    weights = torch.softmax(scores, dim=1)
    return (weights[:, None] @ values)[:, 0], torch.logsumexp(scores, dim=1)


def check_length(torch, kernel, dim, heads, length):
    offsets = make_offsets(torch, length)
    shape = (1, heads, length, dim)
    q, k, v = (torch.randn(shape, device="cuda", dtype=torch.bfloat16) for _ in range(3))
    o = torch.full_like(q, float("nan"))
    lse = torch.full(shape[:3], float("nan"), device="cuda")
    captured = offsets.cuda()
    kernel.launch(q, k, v, captured, o, lse)
    start, stop = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    start.record()
    kernel.launch(q, k, v, captured, o, lse)
    stop.record()
    torch.cuda.synchronize()
    worst = worst_lse = 0.0
    for row in sample_rows(torch, length, offsets):
        exact, exact_lse = exact_row(torch, q, k, v, row, offsets)
        worst = max(worst, float((o[0, :, row].double() - exact).abs().max()))
        worst_lse = max(worst_lse, float((lse[0, :, row].double() - exact_lse).abs().max()))
    extra = kernel.workspace_bytes(q, k, v, captured, o, lse)
    is_finite = bool(o.isfinite().all()) and bool(lse.isfinite().all())
    # Half an ulp of results up to 4, and of weights.
    right = worst < 2e-2 and worst_lse < 1e-3 and is_finite and extra <= EXTRA_LIMIT
    return {
        "d": dim,
        "s": length,
        "documents": len(offsets) - 1,
        "error_o": worst,
        "error_lse": worst_lse,
        "finite": is_finite,
        "workspace_bytes": extra,
        "ms": round(start.elapsed_time(stop), 4),
        "passed": right,
    }


def report(torch, rows):
    return {
        "what": WHAT,
        "command": results.command(),
        "environment": {"gpu": torch.cuda.get_device_name(), "torch": torch.__version__},
        "summary": {"cases": len(rows), "passed": sum(row["passed"] for row in rows)},
        "cases": results.table(rows),
    }


def main():
    options = parse_arguments()
    torch = find_torch()
    if torch is None:
        return SKIP
    import attn

    attn.use_library(options.lib)
    torch.manual_seed(options.seed)
    rows = []
    for dim in map(int, options.dims.split(",")):
        kernel = attn.compile(program(attn, dim), target=options.target).on_device()
        for length in map(int, options.lengths.split(",")):
            row = check_length(torch, kernel, dim, options.heads, length)
            rows.append(row)
            print(
                f"{'ok  ' if row['passed'] else 'FAIL'} d={dim:<4} s={length:<8} {row['documents']:>4} documents"
                f"  o {row['error_o']:.1e}  lse {row['error_lse']:.1e}"
                f"  {row['workspace_bytes']} B  {row['ms']} ms",
                flush=True,
            )
            torch.cuda.empty_cache()
            if options.json:
                results.write(options.json, report(torch, rows))
    return 0 if all(row["passed"] for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
