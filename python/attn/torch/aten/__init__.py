#===----------------------------------------------------------------------===#
#
# Part of attn, an attention compiler.
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===----------------------------------------------------------------------===#
"""What the operations of ATen are in a region.

PyTorch's own dispatcher brings every spelling, a + b, torch.add, Tensor.add_, here as
one of a few hundred operations; the modules beside this one handle those that a score
or a mask has use for.
"""

import torch
from torch.overrides import enable_reentrant_dispatch

from .. import writes
from ..symbols import Symbol
from . import arithmetic, functions, items, reductions, searches, tensors, vectors, views  # noqa: F401: they fill HANDLERS
from .handlers import HANDLERS, INERT, Unsupported, convert, stopped  # noqa: F401: for the tracer


def _tracer(args):
    for arg in args:
        if isinstance(arg, Symbol):
            return arg.tracer
        if isinstance(arg, (list, tuple)):
            found = _tracer(arg)
            if found is not None:
                return found
    return None


def _lifted(tracer, arg):
    if isinstance(arg, torch.Tensor):
        return tracer.lift(arg)
    if isinstance(arg, (list, tuple)):
        return type(arg)(_lifted(tracer, item) for item in arg)
    return arg


def dispatch(function, args, kwargs):
    """`function` of ATen on arguments of which one is a Symbol."""
    tracer = _tracer([*args, *kwargs.values()])
    namespace, name = function._schema.name.split("::")
    with tracer.reporting(f"{namespace}.{name}"):
        if torch.Tag.nondeterministic_seeded in function.tags:
            raise Unsupported("random numbers would be the same at all positions: draw them where flex_attention is called")
        in_place = name.endswith("_") and not name.endswith("__") and name[:-1] in HANDLERS
        handler = HANDLERS.get(name[:-1] if in_place else name)
        if handler is None or namespace not in ("aten", "prims", "approx"):
            return writes.linked(function, args, kwargs, _decomposed(tracer, function, args, kwargs))
        if torch.Tag.inplace_view in function.tags:
            raise Unsupported("it changes the shape of a tensor in place: use the one without _")
        out = kwargs.pop("out", None)
        args = _lifted(tracer, list(args))
        result = handler(tracer, *args,
                         **{key: _lifted(tracer, value) for key, value in kwargs.items() if key not in INERT})
        if in_place:
            return _assigned(args[0], tracer.made(result))
        if out is None:
            return tracer.made(writes.linked(function, args, kwargs, result))
        if not isinstance(result, Symbol) or result.shape != out.shape:
            raise Unsupported("wanted out= of the shape of the result")
        return _assigned(out, tracer.made(result))


def _assigned(target, result):
    writes.check(target)
    if not torch.can_cast(result.dtype, target.dtype):
        raise Unsupported(f"a result of {result.dtype} cannot be written to a tensor of {target.dtype}")
    writes.write(target, result)
    return target


def _decomposed(tracer, function, args, kwargs):
    """What it does to other tensors is done as the function would, where autograd sees it."""
    table = torch._decomp.decomposition_table
    with enable_reentrant_dispatch():
        if function in table:
            with tracer.modes():
                return table[function](*args, **kwargs)
        with tracer.operations():  # Calls would take decompose() for a call of `function`
            result = function.decompose(*args, **kwargs)
    if result is NotImplemented:
        raise Unsupported("no kernel can hold this operation")
    return result
