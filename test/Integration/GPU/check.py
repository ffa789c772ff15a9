#===----------------------------------------------------------------------===#
#
# Part of attn, an attention compiler.
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===----------------------------------------------------------------------===#
"""Runs one case and compares it with the error rule of the numerics contract:
with r in float64 and t0 the unfused evaluation in the input type,

  max |o - r| <= max(2 max |t0 - r|, u) + 1e-5,  |lse - r| <= 1e-4,
  RMSE(o) <= max(RMSE(t0), RMSE of r rounded to the output type)

with u one unit in the last place of max |r|; where f32 products are split into
three of tf32, RMSE(o) <= 2 RMSE(t0) + 2^-22 max |v|; lse may be off by what
tensor cores cut off of large scores, too. A row without a visible key has
o = 0 and lse = -inf, the same launch gives the same bits, and no byte outside
the results changes. Where the input type cannot hold the scores (N14), t0 is
not defined and the rounding of f32 scores is what is allowed. PyTorch."""

import math

import torch

from reference import BITS, Inputs

# float32 cannot hold a large lse to 1e-4: one unit in its last place more.
LSE_TOLERANCE, LSE_RELATIVE = 1e-4, 2.0**-22
# What a dot product of hundreds of terms in f32 may be off, of scores that only
# f32 can hold.
SCORE_RELATIVE = 2.0**-20


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
    largest = 0.0  # |r|
    empty_rows = count = 0
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
            allowed = LSE_TOLERANCE + LSE_RELATIVE * exact_lse[seen].abs()
            allowed = allowed + case.score_truncation * inputs.largest_score
            if inputs.score_slack():
                allowed = allowed + SCORE_RELATIVE * inputs.largest_score
            worst_lse = max(worst_lse, float((error_lse / allowed).max()))
            squares["o"] += float(error.square().sum())
            squares["t0"] += float(error0.square().sum())
            rounded = exact[seen].to(inputs.output.view.dtype).double()
            squares["rounded"] += float((rounded - exact[seen]).square().sum())
            largest = max(largest, float(exact[seen].abs().max()))
            count += error.numel()
    rmse = {key: math.sqrt(value / max(count, 1)) for key, value in squares.items()}
    if bad_finite:
        failures.append("o is not finite")
    if bad_empty:
        failures.append("a row without a visible key is not o = 0, lse = -inf")
    slack = inputs.score_slack()
    unit = _unit(largest, inputs.output.view.dtype)
    if not worst["e_o"] <= max(2 * worst["e_t0"], unit) + 1e-5 + slack:
        failures.append(
            f"e(o) {worst['e_o']:.3g} > max(2 * {worst['e_t0']:.3g}, {unit:.3g})"
            f" + 1e-5 + {slack:.3g}"
        )
    value = float(inputs.value.abs().max()) if inputs.value.numel() else 0.0
    allowed = case.rmse_factor * rmse["t0"] + case.rmse_more * value
    allowed = max(allowed, rmse["rounded"])
    if not rmse["o"] <= allowed and not slack:
        failures.append(f"RMSE(o) {rmse['o']:.6g} > {allowed:.6g} (t0: {rmse['t0']:.6g})")
    if not worst_lse <= 1:
        failures.append(f"lse error {worst['e_lse']:.3g}")
    return {
        **worst,
        "rmse_o": rmse["o"],
        "rmse_t0": rmse["t0"],
        "rmse_allowed": allowed,
        "empty_rows": empty_rows,
    }
