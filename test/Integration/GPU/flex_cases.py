#!/usr/bin/env python3
#===----------------------------------------------------------------------===#
#
# Part of attn, an attention compiler.
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===----------------------------------------------------------------------===#
"""attn.torch.flex_attention on a GPU: results and gradients against PyTorch's unfused
evaluation of the same functions in float64, and times beside torch.compile(flex_attention).

    flex_cases.py --lib build/lib/libattn.so                        is it right?
    flex_cases.py --lib ... --time --time-limit 500 --json f.json   and how fast?
    flex_cases.py --lib ... --device cpu --only causal              a test of this program itself

Errors are judged by the error rule, against an unfused evaluation that rounds each step
and takes delta from the rounded output, as the kernels do: the sums of a table's gradient
are off by what that rounding does to a whole row, which PyTorch's backward does not have. Times are of bf16, hidden size 2048,
batch 2, medians of CUDA events; both sides take turns in random order and L2 is
overwritten before each. Backward is torch.autograd.grad alone, with the gradients of parameters where
there are some. The block mask of PyTorch is made before. What is right is asked in --jobs
processes (case_pool.py), times are taken in one; --compile-first has all that is timed
compiled in --jobs processes before, into both sides' caches, and so no time of first calls.
Exit code 0: all right; 1: not; 77: no GPU.
"""

import argparse
import math
import pathlib
import random
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
sys.path.insert(0, str(HERE.parents[2] / "python"))

import case_pool  # noqa: E402
import model_case_table  # noqa: E402, F401
import paper_case_table  # noqa: E402, F401
import results  # noqa: E402
import unfused  # noqa: E402
from case_pool import Verdict  # noqa: E402
from flex_case_table import CASES  # noqa: E402
from gpu import SKIP, find_torch  # noqa: E402
from turns import flush_buffer, medians  # noqa: E402

HIDDEN, BATCH = 2048, 2
WHAT = "attn.torch.flex_attention beside torch.compile(flex_attention)"


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    case_pool.add_arguments(parser)
    parser.add_argument("--dims", default="64,128")
    parser.add_argument("--elements", default="bfloat16", help="those that results are checked in")
    parser.add_argument("--checked-length", type=int, default=500)
    parser.add_argument("--time", action="store_true", help="of what is right, the time")
    parser.add_argument("--compile-first", action="store_true", help="in --jobs processes, before times are taken")
    parser.add_argument("--length", type=int, default=8192)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--warmup", type=int, default=3)
    parser.add_argument("--seed", type=int, default=1)
    return case_pool.parse(parser)


# ---------------------------------------------------------------------------
# Right?
# ---------------------------------------------------------------------------


def by_pytorch(torch, q, k, v, score, block_mask):
    """(o, lse) by PyTorch, every score in memory, in the type of q."""
    from torch._higher_order_ops.flex_attention import math_attention
    from torch.nn.attention import flex_attention as module

    block_mask = block_mask or module._create_empty_block_mask(q, k)
    o, lse = math_attention(q, k, v, score or module._identity, block_mask.as_tuple(), 1 / math.sqrt(q.shape[3]), {})[:2]
    return o, lse * math.log(2.0)


def leaves_of(torch, tensors, parameters, dtype=None):
    """Copies in `dtype`, or in their own."""
    return [x.detach().to(dtype or x.dtype).requires_grad_() for x in (*tensors, *parameters)]


def gradients(torch, attend, leaves, d_o):
    o, lse = attend(*leaves)
    shown = lse.detach() != -math.inf
    loss = (o * d_o.to(o.dtype)).sum() + lse[shown].sum().to(o.dtype)
    return [o.detach(), lse.detach(), *torch.autograd.grad(loss, leaves)]


def check(torch, name, options):
    """Whether "case dim element" is right."""
    from attn.torch import flex_attention, forms
    from torch.nn.attention.flex_attention import create_block_mask

    name, dim, element = name.split(" ")
    dim, dtype, length = int(dim), getattr(torch, element), options.checked_length
    heads, kv_heads = (2, 1) if options.device == "cpu" else (4, 2)
    score, mask, parameters = CASES[name](torch, options.device, heads, length)
    tensors = [torch.randn(BATCH, h, length, dim, device=options.device).to(dtype) for h in (heads, kv_heads, kv_heads)]
    d_o = torch.randn(BATCH, heads, length, dim, device=options.device).to(dtype)
    block_mask = mask and create_block_mask(mask(), BATCH, heads, length, length, device=options.device)

    def ours(q, k, v, *given):
        return flex_attention(q, k, v, score and score(*given), block_mask, enable_gqa=True, return_lse=True)

    def exactly(q, k, v, *given):
        return by_pytorch(torch, q, k, v, score and score(*given), block_mask)

    def rounded(q, k, v, *given):
        return unfused.attend(torch, q, k, v, score and score(*given), mask and mask(), dtype=dtype)
    exact = gradients(torch, exactly, leaves_of(torch, tensors, parameters, torch.float64), d_o)
    plain = gradients(torch, rounded, leaves_of(torch, tensors, parameters, torch.float32), d_o)
    got = gradients(torch, ours, leaves_of(torch, tensors, parameters), d_o)
    again = gradients(torch, ours, leaves_of(torch, tensors, parameters), d_o)
    lost, is_split = unfused.truncation(torch, *tensors[:2], dim**-0.5), element == "float32" and options.device == "cuda"
    wrong = []
    names = ["o", "lse", "d_q", "d_k", "d_v", *(f"d_parameter {number}" for number in range(len(parameters)))]
    for what, g, p, e, a in zip(names, got, plain, exact, again, strict=True):
        found = unfused.disagreement(g, e)
        if not found and what == "o":
            found = unfused.judge_output(torch, g, e, p, tensors[2].double().abs().max().item(), lost, is_split)
        elif not found and what == "lse":
            found = unfused.judge_lse(torch, g, e, lost=lost)
        elif not found:
            found = unfused.judge_gradient(torch, g, e, p, unfused.NAMES[str(dtype)])
        if found:
            wrong.append(f"{what}: {found}")
        # Gradients may be sums in any order, but for those of few keys.
        if not torch.equal(g, a) and (what in ("o", "lse") or length <= forms.FEW_KEYS):
            wrong.append(f"{what}: not the same bits twice")
    return Verdict("; ".join(wrong), not wrong)


# ---------------------------------------------------------------------------
# How fast?
# ---------------------------------------------------------------------------


def host_time(torch, call, count=20):
    """Milliseconds of the CPU for one call, where the GPU has nothing to wait for."""
    call()
    torch.cuda.synchronize()
    start = time.perf_counter()
    for _ in range(count):
        call()
    spent = time.perf_counter() - start
    torch.cuda.synchronize()
    return 1e3 * spent / count


def block_mask_of(module, torch, mask, per, heads, length):
    """The block mask of a mask_mod; that of each head by itself, since all at once do not fit
    into memory."""
    if per != "head":
        batch = BATCH if per == "batch" else None
        return module.create_block_mask(mask, batch, None, length, length, device="cuda")

    def of_head(head):
        head = torch.tensor(head, device="cuda")
        return module.create_block_mask(lambda b, h, q, k: mask(b, head, q, k), None, None, length, length, device="cuda")
    parts = [of_head(head) for head in range(heads)]
    blocks = [torch.cat([getattr(part, what) for part in parts], 1)
              for what in ("kv_num_blocks", "kv_indices", "full_kv_num_blocks", "full_kv_indices")]
    return module.BlockMask.from_kv_blocks(*blocks, BLOCK_SIZE=parts[0].BLOCK_SIZE, mask_mod=mask)


def sides_of_case(options, torch, name, dim):
    """What takes turns, as functions without arguments; the leaves, and what flows back."""
    from attn.torch import flex_attention
    from torch.nn.attention import flex_attention as module

    torch._dynamo.reset()
    heads, length = HIDDEN // dim, options.length
    score, mask, parameters = CASES[name](torch, "cuda", heads, length)
    leaves = [torch.randn(BATCH, length, heads, dim, device="cuda", dtype=torch.bfloat16).transpose(1, 2)
              for _ in range(3)]
    leaves = [x.detach().requires_grad_() for x in (*leaves, *parameters)]
    block_mask = mask and block_mask_of(module, torch, mask(), CASES[name].per, heads, length)
    made = score and score(*leaves[3:])
    peer = torch.compile(module.flex_attention, dynamic=False)
    return {
        "attn": lambda: flex_attention(*leaves[:3], made, block_mask),
        "flex": lambda: peer(*leaves[:3], made, block_mask),
    }, leaves, torch.randn_like(leaves[0])


def first_calls(torch, name, options):
    """Compiles what is timed of "case dim"."""
    name, dim = name.split(" ")
    sides, leaves, d_o = sides_of_case(options, torch, name, int(dim))
    failed = []
    for side, call in sides.items():
        try:
            torch.autograd.grad(call(), leaves, d_o, retain_graph=True)  # as when timed
        except Exception as error:
            failed.append(f"{side}: {str(error)[:300]}")
    return Verdict("; ".join(failed), not failed)


def rows_of_case(options, torch, flush, rng, name, dim):
    sides, leaves, d_o = sides_of_case(options, torch, name, dim)
    forward, backward, first = {}, {}, {}
    for side, call in sides.items():
        try:
            start = time.time()
            o = call()
            torch.autograd.grad(o, leaves, d_o, retain_graph=True)
            torch.cuda.synchronize()
            first[side] = round(time.time() - start, 2)
        except Exception as error:  # too much memory, or no kernel: the other one is timed alone
            print(f"{name} d = {dim}: {side}: {str(error)[:300]}", flush=True)
            continue

        def forward_alone(call=call):
            with torch.no_grad():
                call()
        forward[side] = forward_alone
        backward[side] = lambda o=o: torch.autograd.grad(o, leaves, d_o, retain_graph=True)
    rows = []
    for what, contestants in (("forward", forward), ("backward", backward)):
        times = medians(options, torch, flush, rng, contestants)
        row = {"case": name, "d": dim, "pass": what, **{f"{side}_ms": round(ms, 4) for side, ms in times.items()}}
        if len(times) == 2:
            row["attn_of_flex"] = round(times["flex"] / times["attn"], 3)
        if what == "forward":
            if not options.compile_first:
                row.update({f"{side}_first_call_s": seconds for side, seconds in first.items()})
            row.update({f"{side}_host_ms": round(host_time(torch, call), 4) for side, call in forward.items()})
        rows.append(row)
        print(f"{name:14} d = {dim:3} {what:8} " + ", ".join(f"{side} {ms:.3f} ms" for side, ms in times.items())
              + (f": {row['attn_of_flex']:.2f}x" if "attn_of_flex" in row else ""), flush=True)
    return rows


def summary_of(rows):
    found = []
    for what in ("forward", "backward"):
        ratios = [row["attn_of_flex"] for row in rows if row["pass"] == what and "attn_of_flex" in row]
        if ratios:
            found.append({"pass": what, "cases": len(ratios), "lowest": min(ratios),
                          "geometric_mean": round(math.exp(sum(map(math.log, ratios)) / len(ratios)), 3)})
    return found


def measured(options, torch, names):
    """The times of cases, "case dim", one by one."""
    if options.compile_first and options.jobs > 1:
        case_pool.Loop(options, first_calls, names).run().conclude()
    rng, flush = random.Random(options.seed), flush_buffer(torch)

    def time_one(torch, name, options):
        name, dim = name.split(" ")
        rows = rows_of_case(options, torch, flush, rng, name, int(dim))
        return Verdict("", True, rows)
    alone = argparse.Namespace(**{**vars(options), "jobs": 1})
    return case_pool.Loop(alone, time_one, names).run().conclude()


def main():
    options = parse_arguments()
    torch = find_torch("cpu" if options.device == "cpu" else "sm_80")
    if torch is None:
        return SKIP
    names = case_pool.chosen(options, [f"{name} {dim}" for name in CASES for dim in options.dims.split(",")])
    checked = [f"{name} {element}" for name in names for element in options.elements.split(",")]
    loops = [case_pool.Loop(options, check, checked).run().conclude()]
    report, rows = loops[0].report(), []
    if options.time and options.device == "cuda":
        loops.append(measured(options, torch, names))
        rows = loops[1].rows
        report["times"] = {**loops[1].report(), "speed": summary_of(rows)}
        for mean in report["times"]["speed"]:
            print(f"{mean['pass']}: {mean['geometric_mean']:.3f} times the speed of torch.compile(flex_attention) in "
                  f"geometric mean of {mean['cases']}, lowest {mean['lowest']:.3f}")
    if options.json:
        results.write(options.json, {"what": WHAT, "command": results.command(),
                                     "environment": case_pool.environment(torch, options), **report,
                                     "rows": results.table(rows)})
    return max(loop.code() for loop in loops)


if __name__ == "__main__":
    sys.exit(main())
