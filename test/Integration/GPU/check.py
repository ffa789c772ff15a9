#===----------------------------------------------------------------------===#
#
# Part of attn, an attention compiler.
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===----------------------------------------------------------------------===#
"""Runs one case and compares it with the error rule (error_rule.py); a row
without a visible key has o = 0 and lse = -inf, the same launch gives the same
bits, and no byte outside the results changes. PyTorch."""

import math

import torch

import error_rule
from reference import BITS, Inputs


def _bits(inputs):
    view = inputs.output.view.contiguous()
    return view.view(BITS[view.dtype]).clone(), inputs.lse.view(torch.int32).clone()


def _unit(magnitude, dtype):
    """In the last place of a number of this magnitude."""
    exponent = math.frexp(max(magnitude, torch.finfo(dtype).tiny))[1] - 1
    return torch.finfo(dtype).eps * 2.0**exponent


def check(case, launch, device):
    """A dictionary of numbers, with "failures": what was broken, in words.
    launch(*arguments) runs the kernel and waits for it."""
    inputs = Inputs(case, device)
    inputs.poison_outputs()
    launch(*inputs.arguments)
    first = _bits(inputs)
    failures = []
    if not inputs.is_outside_untouched():
        failures.append("wrote outside the results")
    inputs.poison_outputs()
    launch(*inputs.arguments)
    if not all(torch.equal(a, b) for a, b in zip(first, _bits(inputs))):
        failures.append("two launches differ")
    row = {"failures": failures}
    row.update(_errors(case, inputs, failures))
    return row


def _errors(case, inputs, failures):
    worst = {"e_o": 0.0, "e_t0": 0.0, "e_lse": 0.0}
    squares = {"o": 0.0, "t0": 0.0, "rounded": 0.0}
    empty_rows = count = 0
    largest = 0.0
    bad_empty = bad_finite = False
    worst_lse = 0.0  # in units of what is allowed
    for b in range(case.batch):
        for h in range(case.heads):
            exact, exact_lse = inputs.evaluate(b, h, exact=True)
            plain, _ = inputs.evaluate(b, h, exact=False)
            o, lse = inputs.output.view[b, h], inputs.lse[b, h]
            empty = exact_lse == float("-inf")
            empty_rows += int(empty.sum())
            if bool((o[empty] != 0).any()) or bool((lse[empty] != float("-inf")).any()):
                bad_empty = True
            seen = ~empty
            if not bool(seen.any()):
                continue
            error = (o.double() - exact).abs()[seen]
            error0 = (plain.double() - exact).abs()[seen]
            error_lse = (lse.double() - exact_lse).abs()[seen]
            # A NaN is an infinite error.
            bad_finite |= not bool(torch.isfinite(error).all())
            error = torch.nan_to_num(error, nan=math.inf)
            error_lse = torch.nan_to_num(error_lse, nan=math.inf)
            worst["e_o"] = max(worst["e_o"], float(error.max()))
            worst["e_t0"] = max(worst["e_t0"], float(error0.max()))
            worst["e_lse"] = max(worst["e_lse"], float(error_lse.max()))
            loss = case.score_truncation * inputs.largest_score
            allowed = torch.tensor([error_rule.lse_bound(value, loss) for value in
                                    exact_lse[seen].tolist()], dtype=torch.float64, device=error_lse.device)
            worst_lse = max(worst_lse, float((error_lse / allowed).max()))
            rounded = exact.to(inputs.output.view.dtype).double() - exact
            largest = max(largest, float(exact[seen].abs().max()))
            squares["o"] += float(error.square().sum())
            squares["t0"] += float(error0.square().sum())
            squares["rounded"] += float(rounded[seen].square().sum())
            count += error.numel()
    rmse = {key: math.sqrt(value / max(count, 1)) for key, value in squares.items()}
    if bad_finite:
        failures.append("o is not finite")
    if bad_empty:
        failures.append("a row without a visible key is not o = 0, lse = -inf")
    bound = error_rule.error_bound(case.element, worst["e_t0"], largest)
    if not worst["e_o"] <= bound:
        failures.append(f"e(o) {worst['e_o']:.3g} > {bound:.3g}, e(t0) {worst['e_t0']:.3g}")
    bound = error_rule.rmse_bound(case.element, rmse["t0"], rmse["rounded"],
                                  float(inputs.value.double().abs().max()) if count else 0.0,
                                  case.is_split, case.score_truncation * inputs.largest_score)
    if count >= error_rule.ENOUGH and not rmse["o"] <= bound:
        failures.append(f"RMSE(o) {rmse['o']:.6g} > {bound:.6g}, RMSE(t0) {rmse['t0']:.6g}")
    if not worst_lse <= 1:
        failures.append(f"lse error {worst['e_lse']:.3g}")
    return {
        **worst,
        "rmse_o": rmse["o"],
        "rmse_t0": rmse["t0"],
        "rmse_allowed": bound,
        "empty_rows": empty_rows,
    }
