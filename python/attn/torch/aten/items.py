#===----------------------------------------------------------------------===#
#
# Part of attn, an attention compiler.
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===----------------------------------------------------------------------===#
"""Tensors in which some elements are others."""

import torch

from .. import symbols, writes
from ..symbols import Symbol
from .handlers import Unsupported, handles


def _with(tracer, x, part, value):
    """x with other elements in a part, which is a function of it."""
    x = symbols.copy(x)
    if not isinstance(value, torch.Tensor):
        value = symbols.scalar(tracer, tracer.writer.cast(value, None, x.dtype), x.dtype)
    writes.write(part(x), value)
    return x


@handles("index_put", "_unsafe_index_put", "_index_put_impl")
def _index_put(tracer, x, at, value, accumulate=False, *_, **__):
    if accumulate:
        raise Unsupported("elements are not added up: wanted accumulate=False")
    if any(a is not None and not symbols.is_integer(a) for a in at):
        raise Unsupported("wanted integers as indices: for a mask use torch.where or masked_fill")
    return _with(tracer, x, lambda x: symbols.gather_arrays(x, list(at)), value)


@handles("scatter")
def _scatter(tracer, x, dim, at, value, reduce=None):
    if reduce is not None:
        raise Unsupported("elements are not added up: wanted no reduce=")
    if isinstance(value, Symbol):
        for d, size in enumerate(at.shape):
            value = symbols.narrow(value, d, 0, size, 1)
    return _with(tracer, x, lambda x: symbols.gather(x, dim, at), value)


@handles("index_fill", "index_copy")
def _index_fill(tracer, x, dim, at, value):
    at = at if at.dim() else symbols.unsqueeze(at, 0)
    return _with(tracer, x, lambda x: symbols.gather_arrays(x, [None] * (dim % x.dim()) + [at]), value)
