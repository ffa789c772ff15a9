#===----------------------------------------------------------------------===#
#
# Part of attn, an attention compiler.
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===----------------------------------------------------------------------===#
"""Searches in sorted tensors."""

import torch
from torch._prims_common import ELEMENTWISE_TYPE_PROMOTION_KIND as Kind

from .. import symbols
from ..scalars import is_float
from .handlers import HANDLERS, Unsupported, convert, handles, pointwise

_MOST_FLOATS = 64  # each is compared with


def _search(tracer, table, x, right, is_narrow):
    if table.dim() != 1:
        raise Unsupported(f"wanted a sorted tensor of one dimension, got {table.dim()}")
    if is_float(x.dtype) and is_float(table.dtype):
        count = _count(tracer, table, x, right)
        return convert(tracer, count, torch.int32) if is_narrow else count
    if not symbols.is_integer(x) or not symbols.is_integer(table):
        raise Unsupported("wanted integers to search for among integers, or floats among floats")
    w, found = tracer.writer, tracer.captures.searched(table)

    def compute(dtype, element):
        upto = element if right else w.integer("sub", element, 1, torch.int32)
        value = w.typed(upto, "i32")
        count = w.add(f"attn.capture_search %{found.name}[], {value.name} : {found.type}", "i32")
        return w.ranged(count, (0, table.shape[0]))
    return pointwise(tracer, compute, [x], Kind.NO_OPMATH, torch.int32 if is_narrow else torch.int64)


def _count(tracer, table, x, right):
    """How many of a few floats are no larger, or smaller than x; all are, of what is not a
    number."""
    if table.shape[0] > _MOST_FLOATS:
        raise Unsupported(f"wanted {_MOST_FLOATS} floats to search in at most, got {table.shape[0]}")
    if not table.shape[0]:
        return HANDLERS["zeros_like"](tracer, x, dtype=torch.int64)
    compare = HANDLERS["gt" if right else "ge"]
    behind = [HANDLERS["logical_not"](tracer, compare(tracer, symbols.select(table, 0, n), x)) for n in range(table.shape[0])]
    return HANDLERS["sum"](tracer, symbols.stack(tracer, behind, 0, torch.bool), 0)


@handles("searchsorted")
def _searchsorted(tracer, table, x, out_int32=False, right=False, side=None, sorter=None):
    if sorter is not None:
        raise Unsupported("wanted a sorted tensor, got a sorter")
    return _search(tracer, table, x, right or side == "right", out_int32)


@handles("bucketize")
def _bucketize(tracer, x, table, out_int32=False, right=False):
    return _search(tracer, table, x, right, out_int32)
