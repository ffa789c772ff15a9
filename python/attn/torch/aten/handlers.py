#===----------------------------------------------------------------------===#
#
# Part of attn, an attention compiler.
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===----------------------------------------------------------------------===#
"""Handlers of operations, by name, and what most of them are made of: a formula for
each element.

A handler gets the tracer, Symbols where PyTorch had tensors, and the arguments; it
returns a Symbol. A formula gets a Writer, the type that PyTorch computes in, and
scalars: Values, or numbers of Python.
"""

import torch
from torch._prims_common import ELEMENTWISE_TYPE_PROMOTION_KIND as Kind
from torch._prims_common import elementwise_dtypes

from .. import halves, symbols
from ..scalars import LIMITS, is_float
from ..symbols import Symbol

HANDLERS = {}
# Arguments that change no element, and no handler gets: where and how tensors lie.
INERT = frozenset(("layout", "device", "pin_memory", "non_blocking", "memory_format", "implicit", "sparse_grad"))


class Unsupported(Exception):
    """What the region cannot say; the tracer adds who asked for it."""


def handles(*names):
    def register(function):
        for name in names:
            HANDLERS[name] = function
        return function
    return register


def pointwise(tracer, compute, operands, kind, dtype=None, decides=False, rounds=True):
    """compute(dtype, *scalars) for all elements of the operands, which become
    the type that `kind` of promotion gives.

    decides: results jump where operands change a little; see halves.py. rounds: they may be no
    halves where the operands are."""
    compared = kind == Kind.ALWAYS_BOOL
    given = [halves.stand_in(x) for x in operands] if compared else operands
    used, result = elementwise_dtypes(*given, type_promotion_kind=kind)
    result = result if dtype is None else dtype
    common = elementwise_dtypes(*given, type_promotion_kind=Kind.NO_OPMATH)[1]
    if torch.float64 in (used, result):
        raise Unsupported("this is float64, and scores are float32")
    if used.is_complex or result.is_complex:
        raise Unsupported("there are no complex numbers in a kernel")
    shapes = [x.shape for x in operands if isinstance(x, Symbol)]
    shape = torch.broadcast_shapes(*shapes)
    loads = [operand(tracer, x, used, shape) for x in operands]
    types = [x.dtype if isinstance(x, Symbol) else None for x in operands]

    def computed(elements):
        return compute(used, *elements)
    return Symbol(tracer, shape, result, lambda index: halves.applied(
        tracer.writer, computed, [load(index) for load in loads], types, common, result,
        decides or not is_float(result), rounds))


def operand(tracer, x, dtype, shape):
    """What loads an element of x, broadcast to a shape, as a scalar to compute with in dtype."""
    writer = tracer.writer
    if not isinstance(x, Symbol):
        number = writer.cast(x, None, dtype)
        return lambda index: number
    load = symbols.broadcast(x, shape)
    # Halves are f32 between operations, but where they decide: halves.py.
    target = torch.float32 if is_float(dtype) else dtype
    source = torch.float32 if is_float(x.dtype) else x.dtype

    def converted(index):
        element = load(index)
        # A captured scalar stays one where nothing has to be converted.
        return element if source == target else writer.cast(element, source, target)
    return converted


def convert(tracer, x, dtype):
    """x.to(dtype)."""
    if dtype is None or dtype == x.dtype:
        return x
    if dtype == torch.float64:
        raise Unsupported("this is float64, and scores are float32")
    if not (is_float(dtype) or dtype in LIMITS):
        raise Unsupported(f"there is no {dtype} in a kernel")
    load = symbols.broadcast(x, x.shape)
    if not is_float(x.dtype):
        return Symbol(tracer, x.shape, dtype, lambda index: tracer.writer.cast(load(index), x.dtype, dtype))
    return Symbol(tracer, x.shape, dtype, lambda index: halves.applied(
        tracer.writer, lambda elements: tracer.writer.cast(elements[0], x.dtype, dtype), [load(index)], [x.dtype], x.dtype, dtype,
        not is_float(dtype)))


def stopped(tracer, x):
    """x.detach(), a copy."""
    return symbols.copy(symbols.stopped(x))


def unary(names, compute, kind=Kind.INT_TO_FLOAT, **how):
    """Handles operations of one tensor: compute(writer, dtype, a)."""
    def handler(tracer, x):
        return pointwise(tracer, lambda dtype, a: compute(tracer.writer, dtype, a), [x], kind, **how)
    handles(*names)(handler)


def binary(names, compute, kind=Kind.DEFAULT, **how):
    """Handles operations of two: compute(writer, dtype, a, b)."""
    def handler(tracer, a, b):
        return pointwise(tracer, lambda dtype, x, y: compute(tracer.writer, dtype, x, y), [a, b], kind, **how)
    handles(*names)(handler)


def as_float(w, a):
    return w.typed(a, "f32")


def as_flag(w, dtype, a):
    return w.cast(a, torch.float32 if is_float(dtype) else dtype, torch.bool)


def no_flags(function):
    """A formula that refuses flags."""
    def checked(w, dtype, *args):
        if dtype == torch.bool:
            raise Unsupported("this is no operation on flags")
        return function(w, dtype, *args)
    return checked
