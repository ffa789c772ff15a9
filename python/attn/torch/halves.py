#===----------------------------------------------------------------------===#
#
# Part of attn, an attention compiler.
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===----------------------------------------------------------------------===#
"""Scalars of float16 and bfloat16.

PyTorch rounds what each operation makes of halves; torch.compile makes kernels that
compute with float32 and round nothing in between, which is what scores do here: it is
faster, and nearer to the truth. But where halves decide, in a comparison, floor() or an
index, a rounding is no small difference: z == 0.15 compares with the half next to 0.15,
and masks hold what eager PyTorch says of them. So each scalar that is computed from halves
knows another one, exact(): what PyTorch would have there, rounded after each operation. It
is written only where something decides by it.
"""

import copy

import torch

from .scalars import Value, is_float

HALVES = (torch.float16, torch.bfloat16)
# By dtype, a tensor of no dimensions and one of one, as promotion of types sees them.
_LIKE = {}


def stand_in(x):
    """What a comparison or where() of flex attention promotes: positions are dimensions of
    what depends on them (torch.vmap), but not of a captured tensor of none."""
    if not isinstance(x, torch.Tensor) or not x.dtype.is_floating_point:
        return x
    is_flat = x.dim() == 0 and getattr(x, "is_captured", False)
    if (x.dtype, is_flat) not in _LIKE:
        _LIKE[x.dtype, is_flat] = torch.empty(() if is_flat else (1,), dtype=x.dtype)
    return _LIKE[x.dtype, is_flat]


def rounded(writer, x, dtype):
    """A float as one of that dtype."""
    if dtype not in HALVES:
        return x
    if not isinstance(x, Value):
        return torch.tensor(x, dtype=dtype).item()
    return writer.cast(x, torch.float32, dtype)


def exact(x):
    """What PyTorch would have here."""
    make = getattr(x, "exact", None)
    if make is None:
        return x
    if not hasattr(x, "made"):
        x.made = make()
    return x.made


def applied(writer, compute, elements, types, common, dtype, decides=False, rounds=True):
    """compute(elements), a scalar of `dtype`.

    types    of the elements, None of a number
    common   that PyTorch converts them to
    decides  it jumps where elements change a little
    rounds   it may be no half where the elements are"""
    if common not in HALVES and dtype not in HALVES and not any(hasattr(x, "exact") for x in elements):
        return compute(elements)

    def computed():
        given = [exact(x) for x in elements]
        if common in HALVES:
            given = [x if type == common or not is_float_scalar(x) else rounded(writer, x, common)
                     for x, type in zip(given, types)]
        result = compute(given)
        return rounded(writer, result, dtype) if rounds else result
    return computed() if decides else with_exact(compute(elements), computed)


def is_float_scalar(x):
    return x.is_float if isinstance(x, Value) else isinstance(x, float)


def with_exact(x, make):
    """x, that PyTorch has as make()."""
    if not isinstance(x, Value):
        return make()
    x = copy.copy(x)
    x.exact = make
    if hasattr(x, "made"):
        del x.made
    return x
