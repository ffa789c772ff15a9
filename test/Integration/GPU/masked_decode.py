#!/usr/bin/env python3
#===----------------------------------------------------------------------===#
#
# Part of attn, an attention compiler.
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===----------------------------------------------------------------------===#
"""Few queries with many keys, under masks and scores: attn.torch.flex_attention against
PyTorch's unfused evaluation in float64, and times beside torch.compile(flex_attention).

    masked_decode.py --lib build/lib/libattn.so                     is it right?
    masked_decode.py --lib ... --time --json masked-decode.json     and how fast?
    masked_decode.py --lib ... --shapes 2x8/2x3x777 --dims 80 --only window,tree
    masked_decode.py --lib ... --device cpu --only padding          a test of this program itself

A shape is batch x heads/key heads x queries x keys; the queries are the last ones of the
keys. Errors are judged as in flex_cases.py. For times each side's call is recorded in a
CUDA graph; they take turns in random order, L2 is overwritten before each, and a figure is
the median of CUDA-event times. The block mask of PyTorch is made before. --jobs processes
ask what is right, and compile what is timed; times are taken in one.
Exit code 0: all right; 1: not; 77: no GPU.
"""

import argparse
import gc
import math
import pathlib
import random
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
sys.path.insert(0, str(HERE.parents[2] / "python"))

import case_pool  # noqa: E402
import results  # noqa: E402
import unfused  # noqa: E402
from case_pool import Verdict  # noqa: E402
from decode import parse_shape  # noqa: E402
from flex_cases import by_pytorch  # noqa: E402
from gpu import SKIP, find_torch  # noqa: E402
from turns import flush_buffer, medians  # noqa: E402

WHAT = "Few queries with many keys under masks and scores: attn.torch.flex_attention beside torch.compile(flex_attention)"
CHECKED = "2x6/2x1x1500,3x8/1x5x1111,1x4/4x16x2100,2x8/2x40x1300,1x4/2x130x4200"
TIMED = ("8x32/8x1x8192,1x32/8x1x32768,64x32/8x1x2048,256x32/8x1x512,64x32/32x1x1024,1x32/8x16x32768,"
         "1x32/8x128x32768,8x32/32x1x4096")
CASES = {}


def case(function):
    """Adds a function of (torch, device, batch, heads, queries, keys) that returns
    (score_mod, mask_mod), either None."""
    CASES[function.__name__] = function
    return function


def causal(first):
    return lambda b, h, q, k: q + first >= k


def place_of(torch, device, queries, keys):
    """The place of the first query, as a tensor: another one at each step."""
    return torch.tensor(keys - queries, device=device)


@case
def constant_place(torch, device, batch, heads, queries, keys):
    return None, causal(keys - queries)


@case
def place(torch, device, batch, heads, queries, keys):
    return None, causal(place_of(torch, device, queries, keys))


@case
def lengths(torch, device, batch, heads, queries, keys):
    """Each sequence has its own length, of which the last one is all."""
    first = torch.tensor([keys - queries - 37 * b for b in range(batch)], device=device).clamp(min=0).to(torch.int32)
    return None, lambda b, h, q, k: q + first[b] >= k


@case
def padding(torch, device, batch, heads, queries, keys):
    """The first keys of a sequence are none."""
    first, starts = place_of(torch, device, queries, keys), torch.arange(batch, device=device) * 53 % (keys // 2)
    return None, lambda b, h, q, k: (q + first >= k) & (k >= starts[b])


@case
def window(torch, device, batch, heads, queries, keys):
    first, reach = place_of(torch, device, queries, keys), keys // 8
    return None, lambda b, h, q, k: (q + first >= k) & (q + first - k < reach)


@case
def sinks_and_window(torch, device, batch, heads, queries, keys):
    """StreamingLLM (Xiao et al., 2023)."""
    first, reach = place_of(torch, device, queries, keys), keys // 8
    return None, lambda b, h, q, k: (q + first >= k) & ((q + first - k < reach) | (k < 4))


@case
def chunks(torch, device, batch, heads, queries, keys):
    first, size = place_of(torch, device, queries, keys), max(keys // 4, 1)
    return None, lambda b, h, q, k: (q + first >= k) & ((q + first) // size == k // size)


@case
def alibi(torch, device, batch, heads, queries, keys):
    first, slopes = place_of(torch, device, queries, keys), torch.exp2(-torch.arange(1, heads + 1, device=device) * 8.0 / heads)
    return lambda s, b, h, q, k: s - slopes[h] * (q + first - k), causal(first)


@case
def softcap(torch, device, batch, heads, queries, keys):
    return (lambda s, b, h, q, k: 30 * torch.tanh(s / 30)), causal(place_of(torch, device, queries, keys))


@case
def relative_bias(torch, device, batch, heads, queries, keys):
    first, table = place_of(torch, device, queries, keys), torch.randn(heads, 257, device=device)
    return lambda s, b, h, q, k: s + table[h, (q + first - k).clamp(0, 256)], causal(first)


@case
def documents(torch, device, batch, heads, queries, keys):
    ids = torch.randint(0, 8, (batch, keys), generator=torch.Generator().manual_seed(1)).sort()[0].to(torch.int32).to(device)
    first = place_of(torch, device, queries, keys)
    return None, lambda b, h, q, k: (ids[b, q + first] == ids[b, k]) & (q + first >= k)


@case
def heads_apart(torch, device, batch, heads, queries, keys):
    """Half of the heads see a window, the others all."""
    first, reach = place_of(torch, device, queries, keys), keys // 8
    return None, lambda b, h, q, k: (q + first >= k) & ((h % 2 == 0) | (q + first - k < reach))


@case
def tree(torch, device, batch, heads, queries, keys):
    """SpecInfer (Miao et al., 2023): a query sees what is before all of them, and its ancestors."""
    parents = torch.rand(queries, queries, generator=torch.Generator().manual_seed(2)) < 0.4
    seen = (parents.tril() | torch.eye(queries, dtype=torch.bool)).to(device)
    first = keys - queries
    return None, lambda b, h, q, k: (k < first) | seen[q, (k - first).clamp(0, queries - 1)]


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    case_pool.add_arguments(parser)
    parser.add_argument("--shapes", default=CHECKED, help="those that results are checked of")
    parser.add_argument("--timed-shapes", default=TIMED)
    parser.add_argument("--dims", default="64,128")
    parser.add_argument("--elements", default="bfloat16")
    parser.add_argument("--time", action="store_true", help="of all cases, if they are right")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--warmup", type=int, default=2)
    parser.add_argument("--seed", type=int, default=1)
    options = case_pool.parse(parser)
    for shape in (*options.shapes.split(","), *options.timed_shapes.split(",")):
        try:
            parse_shape(shape)
        except ValueError:
            parser.error(f"wanted shapes BATCHxHEADS/KEYHEADSxQUERIESxKEYS, like {CHECKED}, got {shape!r}")
    return options


def inputs(torch, options, shape, dim, dtype):
    batch, heads, key_heads, queries, keys = parse_shape(shape)
    return [torch.randn(batch, length, count, dim, device=options.device).to(dtype).transpose(1, 2)
            for count, length in ((heads, queries), (key_heads, keys), (key_heads, keys))]


def functions(torch, options, name, shape):
    """score_mod and mask_mod of a case, and its block mask."""
    from torch.nn.attention.flex_attention import create_block_mask

    batch, heads, _, queries, keys = parse_shape(shape)
    score, mask = CASES[name](torch, options.device, batch, heads, queries, keys)
    per_head = heads if name == "heads_apart" else None
    return score, mask, create_block_mask(mask, batch, per_head, queries, keys, device=options.device)


def check(torch, name, options):
    """Whether "case shape dim element" is right."""
    from attn.torch import flex_attention

    name, shape, dim, element = name.split(" ")
    dtype, dim = getattr(torch, element), int(dim)
    q, k, v = inputs(torch, options, shape, dim, dtype)
    score, mask, block_mask = functions(torch, options, name, shape)
    o, lse = flex_attention(q, k, v, score, block_mask, enable_gqa=True, return_lse=True)
    again = flex_attention(q, k, v, score, block_mask, enable_gqa=True)
    exact = by_pytorch(torch, q.double(), k.double(), v.double(), score, block_mask)
    plain, _ = unfused.attend(torch, q.float(), k.float(), v.float(), score, mask, dtype=dtype)
    lost = unfused.truncation(torch, q, k, dim**-0.5)
    wrong = [f"{what}: {found}" for what, found in (
        ("o", unfused.disagreement(o, exact[0]) or unfused.judge_output(
            torch, o, exact[0], plain, v.double().abs().max().item(), lost)),
        ("lse", unfused.disagreement(lse, exact[1]) or unfused.judge_lse(torch, lse, exact[1], lost=lost))) if found]
    if not torch.equal(o, again):
        wrong.append("not the same bits twice")
    return Verdict("; ".join(wrong), not wrong)


def sides_of_case(torch, name, options):
    """The two sides of "case shape dim" as functions without arguments."""
    from attn.torch import flex_attention
    from torch.nn.attention import flex_attention as module

    torch._dynamo.reset()
    name, shape, dim = name.split(" ")
    q, k, v = inputs(torch, options, shape, int(dim), torch.bfloat16)
    score, _, block_mask = functions(torch, options, name, shape)
    peer = torch.compile(module.flex_attention, dynamic=False)
    return {side: lambda attend=attend: attend(q, k, v, score, block_mask, enable_gqa=True)
            for side, attend in (("attn", flex_attention), ("flex", peer))}


def first_calls(torch, name, options):
    failed = []
    for side, call in sides_of_case(torch, name, options).items():
        try:
            with torch.no_grad():
                call()
        except Exception as error:
            failed.append(f"{side}: {str(error)[:200]}")
    return Verdict("; ".join(failed), not [text for text in failed if text.startswith("attn")])


def record(torch, call):
    """A graph of one call, as a function."""
    with torch.cuda.stream(torch.cuda.Stream()):
        for _ in range(2):
            call()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    gc.collect()  # a module of the case before that went meanwhile would end the recording
    gc.disable()
    try:
        with torch.cuda.graph(graph):
            call()
    finally:
        gc.enable()
    return graph.replay


def measured(options, torch, names):
    if options.jobs > 1:
        case_pool.Loop(options, first_calls, names).run().conclude()
    rng, flush = random.Random(options.seed), flush_buffer(torch)

    def time_one(torch, name, options):
        replays = {}
        for side, call in sides_of_case(torch, name, options).items():
            try:
                with torch.no_grad():
                    replays[side] = record(torch, call)
            except Exception as error:  # flex_attention has no kernel for some shapes
                print(f"{name}: {side}: {str(error)[:100]}", flush=True)
        times = medians(options, torch, flush, rng, replays)
        case_name, shape, dim = name.split(" ")
        row = {"case": case_name, "shape": shape, "d": int(dim),
               **{f"{side}_us": round(1e3 * ms, 1) for side, ms in times.items()}}
        if len(times) == 2:
            row["attn_of_flex"] = round(times["flex"] / times["attn"], 3)
        return Verdict(f"{row.get('attn_of_flex', 0):.2f}x", "attn" in times, [row])
    alone = argparse.Namespace(**{**vars(options), "jobs": 1})
    return case_pool.Loop(alone, time_one, names).run().conclude()


def main():
    options = parse_arguments()
    torch = find_torch("cpu" if options.device == "cpu" else "sm_80")
    if torch is None:
        return SKIP

    def combined(shapes):
        return case_pool.chosen(options, [f"{name} {shape} {dim}" for shape in shapes.split(",") for name in CASES
                                          for dim in options.dims.split(",")])
    checked = [f"{name} {element}" for name in combined(options.shapes) for element in options.elements.split(",")]
    loops, rows, speed = [case_pool.Loop(options, check, checked).run().conclude()], [], []
    if options.time and options.device == "cuda":
        loops.append(measured(options, torch, combined(options.timed_shapes)))
        rows = loops[1].rows
        ratios = [row["attn_of_flex"] for row in rows if "attn_of_flex" in row]
        speed = [{"cases": len(ratios), "lowest": min(ratios),
                  "geometric_mean": round(math.exp(sum(map(math.log, ratios)) / len(ratios)), 3)}] if ratios else []
        for mean in speed:
            print(f"{mean['geometric_mean']:.3f} times the speed of torch.compile(flex_attention) in geometric mean of "
                  f"{mean['cases']}, lowest {mean['lowest']:.3f}")
    if options.json:
        report = loops[0].report()
        report["times"] = {**(loops[1].report() if len(loops) > 1 else {}), "speed": speed}
        results.write(options.json, {"what": WHAT, "command": results.command(),
                                     "environment": case_pool.environment(torch, options), **report,
                                     "rows": results.table(rows)})
    return max(loop.code() for loop in loops)


if __name__ == "__main__":
    sys.exit(main())
