#===----------------------------------------------------------------------===#
#
# Part of attn, an attention compiler.
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===----------------------------------------------------------------------===#
"""Conversions, tensors like others, and tensors of several."""

from torch._prims_common import ELEMENTWISE_TYPE_PROMOTION_KIND as Kind
from torch._prims_common import elementwise_dtypes

from .. import halves, symbols
from ..symbols import Symbol
from .handlers import Unsupported, convert, handles
from .views import unbind


@handles("_to_copy", "to", "convert_element_type")
def _to(tracer, x, dtype=None, non_blocking=False, copy=False, memory_format=None):
    """Whether it is a copy is seen where views are linked."""
    return convert(tracer, x, dtype)


def _filled(tracer, shape, dtype, value):
    number = halves.rounded(tracer.writer, tracer.writer.cast(value, None, dtype), dtype)
    return Symbol(tracer, shape, dtype, lambda index: number)


def _like(value):
    def handler(tracer, x, *given, dtype=None):
        fill = given[0] if value is None else value
        return _filled(tracer, x.shape, dtype or x.dtype, fill)
    return handler


def _new(value):
    def handler(tracer, x, size, *given, dtype=None):
        fill = given[0] if value is None else value
        return _filled(tracer, size, dtype or x.dtype, fill)
    return handler


for _name, _value in (("zeros", 0), ("ones", 1), ("full", None), ("empty", 0)):
    handles(_name + "_like")(_like(_value))
    handles("new_" + _name)(_new(_value))
handles("fill")(lambda tracer, x, value: convert(tracer, value, x.dtype) if isinstance(value, Symbol)
                else _filled(tracer, x.shape, x.dtype, value))
handles("zero")(lambda tracer, x: _filled(tracer, x.shape, x.dtype, 0))
handles("copy")(lambda tracer, x, source, non_blocking=False: symbols.expand(convert(tracer, source, x.dtype), x.shape))


@handles("_local_scalar_dense", "item", "is_nonzero", "equal")
def _known_only_there(tracer, *_):
    raise Unsupported("its value is known in the kernel only: for if, and, or, not use torch.where, &, | "
                      "and ~, for min() and max() torch.minimum and torch.maximum, and no int(), float() "
                      "or .item()")


def _joined_dtype(tensors):
    return elementwise_dtypes(*tensors, type_promotion_kind=Kind.NO_OPMATH)[1]


@handles("stack")
def _stack(tracer, tensors, dim=0):
    dtype = _joined_dtype(tensors)
    return symbols.stack(tracer, [convert(tracer, x, dtype) for x in tensors], dim, dtype)


@handles("cat", "concat", "concatenate")
def _cat(tracer, tensors, dim=0):
    dtype = _joined_dtype(tensors)
    parts = [part for x in tensors for part in unbind(tracer, convert(tracer, x, dtype), dim)]
    if len(parts) > symbols.MAX_UNROLLED:
        raise Unsupported(f"{len(parts)} parts, wanted {symbols.MAX_UNROLLED} at most")
    return symbols.stack(tracer, parts, dim, dtype)
