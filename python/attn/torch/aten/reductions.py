#===----------------------------------------------------------------------===#
#
# Part of attn, an attention compiler.
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===----------------------------------------------------------------------===#
"""Sums, products and extremes over dimensions."""

import torch
from torch._prims_common import ELEMENTWISE_TYPE_PROMOTION_KIND as Kind

from .. import symbols
from ..scalars import is_float
from .arithmetic import add, extreme, mul
from .handlers import HANDLERS, Unsupported, convert, handles, pointwise


def _sum_type(x, dtype):
    dtype = dtype or (x.dtype if is_float(x.dtype) else torch.int64)
    if dtype == torch.float64:
        raise Unsupported("this is float64, and scores are float32")
    return dtype


def _dims(dim):
    return None if dim is None else [dim] if isinstance(dim, int) else list(dim)


@handles("sum")
def _sum(tracer, x, dim=None, keepdim=False, dtype=None):
    dtype = _sum_type(x, dtype)
    return symbols.reduce(tracer, x, _dims(dim), keepdim, dtype, None,
                          lambda a, b: add(tracer.writer, dtype, a, b))


@handles("mean")
def _mean(tracer, x, dim=None, keepdim=False, dtype=None):
    total = _sum(tracer, x, dim, keepdim, dtype)
    return HANDLERS["div"](tracer, total, x.numel() // max(1, total.numel()))


@handles("prod")
def _prod(tracer, x, dim=None, keepdim=False, dtype=None):
    dtype = _sum_type(x, dtype)
    return symbols.reduce(tracer, x, _dims(dim), keepdim, dtype, None,
                          lambda a, b: mul(tracer.writer, dtype, a, b))


def _any_or_all(name, start):
    def handler(tracer, x, dim=None, keepdim=False):
        return symbols.reduce(tracer, convert(tracer, x, torch.bool), _dims(dim), keepdim, torch.bool, start,
                              lambda a, b: tracer.writer.logic(name, a, b))
    return handler


handles("any")(_any_or_all("or", False))
handles("all")(_any_or_all("and", True))


def _largest(name):
    def handler(tracer, x, dim=None, keepdim=False):
        return symbols.reduce(tracer, x, _dims(dim), keepdim, x.dtype, None,
                              lambda a, b: extreme(name)(tracer.writer, x.dtype, a, b))
    return handler


handles("amax")(_largest("maximum"))
handles("amin")(_largest("minimum"))


handles("max")(_largest("maximum"))
handles("min")(_largest("minimum"))


@handles("dot", "vdot", "inner")
def _dot(tracer, a, b):
    return _sum(tracer, HANDLERS["mul"](tracer, a, b), -1)


@handles("mv")
def _mv(tracer, a, b):
    return _sum(tracer, HANDLERS["mul"](tracer, a, b), -1)


@handles("mm")
def _mm(tracer, a, b):
    return _sum(tracer, HANDLERS["mul"](tracer, symbols.unsqueeze(a, 2), symbols.unsqueeze(b, 0)), 1)


@handles("linalg_vector_norm")
def _norm(tracer, x, ord=2, dim=None, keepdim=False, dtype=None):
    if ord != 2:
        raise Unsupported(f"wanted the norm of order 2, got {ord}")
    w, total = tracer.writer, _sum(tracer, HANDLERS["square"](tracer, x), dim, keepdim, dtype)

    def compute(used, a):
        """The root; at 0 its slope is 0."""
        is_zero = w.compare("eq", a, 0.0)
        root = w.function("math.sqrt", w.where(is_zero, 1.0, a, torch.float32))
        return w.where(is_zero, 0.0, root, torch.float32)
    return pointwise(tracer, compute, [total], Kind.INT_TO_FLOAT)
