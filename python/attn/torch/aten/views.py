#===----------------------------------------------------------------------===#
#
# Part of attn, an attention compiler.
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===----------------------------------------------------------------------===#
"""Views of tensors, and their elements at indices."""

from .. import symbols
from ..symbols import Symbol
from .handlers import HANDLERS, handles


def _as_view(function):
    return lambda tracer, x, *args, **named: function(x, *args, **named)


def _number(tracer, at):
    return at.element() if isinstance(at, Symbol) else at


handles("view", "_unsafe_view", "reshape", "_reshape_alias", "view_copy")(
    lambda tracer, x, shape, *_: symbols.reshape(x, list(shape)))
handles("flatten")(lambda tracer, x, start=0, end=-1: symbols.reshape(x, [-1]))
handles("expand", "expand_copy")(lambda tracer, x, shape, **_: symbols.expand(x, list(shape)))
handles("permute", "permute_copy")(_as_view(symbols.permute))
handles("unsqueeze", "unsqueeze_copy")(_as_view(symbols.unsqueeze))
handles("select", "select_copy")(lambda tracer, x, dim, at: symbols.select(x, dim, _number(tracer, at)))
handles("index_select")(lambda tracer, x, dim, at: symbols.gather_arrays(
    x, [None] * (dim % x.dim()) + [at if at.dim() else symbols.unsqueeze(at, 0)]))
handles("index", "_unsafe_index")(lambda tracer, x, at: symbols.gather_arrays(x, list(at)))
handles("gather")(lambda tracer, x, dim, at, **_: symbols.gather(x, dim, at))
handles("take")(lambda tracer, x, at: symbols.gather_arrays(symbols.reshape(x, [-1]), [at]))
handles("embedding")(lambda tracer, weight, at, *_, **__: symbols.gather_arrays(weight, [at]))


@handles("squeeze", "squeeze_copy")
def _squeeze(tracer, x, dim=None):
    dims = range(x.dim()) if dim is None else [dim] if isinstance(dim, int) else dim
    return symbols.squeeze(x, dims)


@handles("transpose", "transpose_copy", "swapaxes")
def _transpose(tracer, x, first, second):
    order = list(range(x.dim()))
    order[first], order[second] = order[second], order[first]
    return symbols.permute(x, order)


handles("t", "t_copy", "numpy_T")(lambda tracer, x: symbols.permute(x, list(range(x.dim()))[::-1]))


@handles("slice", "slice_copy")
def _slice(tracer, x, dim=0, start=None, end=None, step=1):
    return symbols.narrow(x, dim, start, end, step)


@handles("narrow")
def _narrow(tracer, x, dim, start, length):
    return symbols.narrow(x, dim, start, start + length, 1)


@handles("unbind", "unbind_copy")
def unbind(tracer, x, dim=0):
    return tuple(symbols.select(x, dim, at) for at in range(x.shape[dim]))


@handles("split", "split_with_sizes")
def _split(tracer, x, sizes, dim=0):
    total = x.shape[dim]
    if isinstance(sizes, int):
        sizes = [min(sizes, total - start) for start in range(0, total, sizes)]
    starts = [sum(sizes[:number]) for number in range(len(sizes))]
    return tuple(symbols.narrow(x, dim, a, a + size, 1) for a, size in zip(starts, sizes))


@handles("diff")
def _diff(tracer, x, n=1, dim=-1, *_):
    return HANDLERS["sub"](tracer, symbols.narrow(x, dim, 1, None, 1), symbols.narrow(x, dim, 0, -1, 1))
