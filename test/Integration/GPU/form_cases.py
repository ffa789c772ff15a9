#!/usr/bin/env python3
#===----------------------------------------------------------------------===#
#
# Part of attn, an attention compiler.
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===----------------------------------------------------------------------===#
"""Both forms of the gradients of attn.torch on a GPU: right, chosen as the rule says
(attn/torch/forms.py), and how long they take.

    form_cases.py --lib build/lib/libattn.so
    form_cases.py --lib ... --time --json forms.json       times alone, of 16384 tokens
    form_cases.py --lib ... --device cpu --only causal     a test of this program itself

Errors are judged as torch_cases.py has it. Times are medians of CUDA events around
torch.autograd.grad, of deterministic=True and of what the rule chooses, in bf16 with
2048 / d heads. Exit code 0: all right; 1: not; 77: no GPU.
"""

import argparse
import statistics
import sys

import case_pool
import torch_cases as eager_cases
from torch_cases import alike, eager, near, positions, tensors

WHAT = "Gradients of attn.torch with sums in a fixed order, and in any"
# Options, the head dimension, and a length from which on sums in any order pay.
CASES = {
    "plain": (dict(), 64, 600), "causal": (dict(causal=True), 64, 1000), "wide": (dict(causal=True), 128, 3100),
    "softcap": (dict(softcap=5.0), 64, 600), "window": (dict(causal=True, window=(400, 0)), 64, 1000),
}
TIMED = {
    "plain": dict(), "causal": dict(causal=True), "softcap": dict(causal=True, softcap=20.0),
    "window": dict(causal=True, window=(1024, 0)), "alibi": dict(causal=True, alibi=True),
}
LENGTHS = (512, 1024, 2048, 4096, 8192)


def gradients(torch, call, leaves):
    """The gradients, and whether their sums were in any order."""
    from attn.torch import forms, kernels

    chosen, texts = forms.chosen, []
    forms.chosen = lambda *given: texts.append(chosen(*given)) or texts[-1]
    try:
        found = torch.autograd.grad(call().float().square().sum(), leaves)
    finally:
        forms.chosen = chosen
    return found, any(kernels.in_order(text) != text for text in texts)


def check(torch, name, options):
    """Each form against eager; in a fixed order with equal bits."""
    import attn.torch
    from attn.torch import kernels

    eager_cases.use(torch, options.device)
    given, dim, length = CASES[name]
    target = kernels.target(*kernels.place(torch.device(options.device)))[0]
    sink = torch.randn(2, device=options.device, requires_grad=True)
    # With no more keys than queries two programs run beside each other here.
    x = [*tensors(torch.bfloat16, batch=1, heads=2, kv_heads=1, queries=length, keys=length + 1, dim=dim), sink]

    def by_eager(to):
        i, j = positions(*x[:2])
        shown = (j <= i) if "causal" in given else j + 0 * i >= 0
        shown = shown & (j >= i - given["window"][0]) if "window" in given else shown
        o, _ = eager(*x[:3], dtype=to, shown=shown, cap=given.get("softcap"), sink=sink)
        return torch.autograd.grad(o.square().sum(), x)
    exact, plain = by_eager(None), by_eager(torch.bfloat16)
    for deterministic in (True, None):
        def call():
            return attn.torch.attention(*x[:3], sink=sink, deterministic=deterministic, **given)
        got, is_any = gradients(torch, call, x)
        assert is_any == (target == "sm_90a" and deterministic is None), "another form than wanted"
        for number, (g, e, p) in enumerate(zip(got, exact, plain)):
            near(f"deterministic={deterministic}: gradient {number}", g, e, p, torch.bfloat16)
        if deterministic:
            assert alike(got, gradients(torch, call, x)[0]), "other bits"
    return case_pool.Verdict("", True)


def milliseconds(torch, call, rounds=15, warmup=3):
    spent = []
    for _ in range(rounds + warmup):
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        call()
        end.record()
        torch.cuda.synchronize()
        spent.append(start.elapsed_time(end))
    return statistics.median(spent[warmup:])


def time_one(torch, name, options):
    import attn.torch

    kind, dim, length = name.split(" ")
    dim, length = int(dim), int(length)
    x = [torch.randn(16384 // length, 2048 // dim, length, dim, device=options.device).bfloat16().requires_grad_()
         for _ in range(3)]
    row = {"case": kind, "d": dim, "s": length}
    for column, deterministic in (("in_order_ms", True), ("chosen_ms", None)):
        def call():
            return attn.torch.attention(*x, deterministic=deterministic, **TIMED[kind])
        row["any_order"] = gradients(torch, call, x)[1]  # of the first call: later ones are prepared
        o = call()
        d_o = torch.randn_like(o)
        row[column] = round(milliseconds(torch, lambda: torch.autograd.grad(o, x, d_o, retain_graph=True)), 4)
    row["speed"] = round(row["in_order_ms"] / row["chosen_ms"], 3)
    return case_pool.Verdict(", ".join(f"{key} {value}" for key, value in list(row.items())[3:]), True, [row])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    case_pool.add_arguments(parser)
    parser.add_argument("--time", action="store_true", help="how long both take, one after the other")
    options = case_pool.parse(parser)
    if not options.time:
        return case_pool.main(options, case_pool.chosen(options, CASES), check, WHAT)
    options.jobs = 1
    names = [f"{kind} {dim} {length}" for kind in TIMED for dim in (64, 128) for length in LENGTHS]
    return case_pool.main(options, case_pool.chosen(options, names), time_one, WHAT)


if __name__ == "__main__":
    sys.exit(main())
