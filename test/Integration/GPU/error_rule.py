#===----------------------------------------------------------------------===#
#
# Part of attn, an attention compiler.
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===----------------------------------------------------------------------===#
"""The error rule of the numerics contract (C20 of attn.attention), in numbers.

With r in float64, t0 the unfused evaluation in the input type, e(t) the largest
|t - r|, and u one unit in the last place of that type at the largest |r|:

    e(o) <= max(2 e(t0), u) + 1e-5
    rmse(o) <= 1.001 max(rmse(t0), rmse(r rounded to the type))
    rmse(o) <= 1.001 max(2 rmse(t0), rmse(r rounded to the type))
                                                   where c is large
    rmse(o) <= 2 rmse(t0) + 2^-22 max |value|      where f32 products are split
    |lse - r| <= 1e-4 + c + one unit of f32 at |r|
    e(g) <= max(3 e(g0), u) + 1e-4                 of gradients (C16 of
                                                   attn.attention_backward)

with c what tensor cores cut off of scores; it is large beyond one unit in the
last place of the type at 1/2: weights lose more to it than to their rounding.
What the score function itself loses in f32 is not granted here: the functions of
these suites need none. Nor is C16's second reference for gradients of captures.
Root mean squares are judged from 4096 elements on: those of fewer scatter."""

import math

DIGITS = {"bf16": 8, "f16": 11, "f32": 24}
LARGEST = {"bf16": (2 - 2.0**-7) * 2.0**127, "f16": 65504.0, "f32": math.inf}
ENOUGH = 4096


def last_place(element, size):
    """One unit in the last place of `element` at `size`."""
    return 2.0 ** (math.frexp(size)[1] - DIGITS[element]) if size and math.isfinite(size) else 0.0


def error_bound(element, unfused, largest_result):
    """Of the largest error, given that of t0."""
    return max(2 * unfused, last_place(element, largest_result)) + 1e-5


def gradient_bound(element, unfused, largest_result):
    """The same of a gradient, given that of g0, its unfused evaluation."""
    return max(3 * unfused, last_place(element, largest_result)) + 1e-4


def rmse_bound(element, unfused, rounded, largest_value, split, cut_off):
    """Of the root mean square error, given those of t0 and of r rounded."""
    if split:
        return 2 * unfused + 2.0**-22 * largest_value
    if cut_off > last_place(element, 0.5):
        unfused *= 2
    return 1.001 * max(unfused, rounded)


def lse_bound(lse, cut_off):
    """Of the error of one lse."""
    return 1e-4 + cut_off + last_place("f32", abs(lse))
