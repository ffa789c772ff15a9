#===----------------------------------------------------------------------===#
#
# Part of attn, an attention compiler.
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===----------------------------------------------------------------------===#
"""Views of tensors, and their elements at indices."""

import torch

from .. import symbols
from ..symbols import Symbol
from .handlers import Unsupported, handles


def _as_view(function):
    return lambda tracer, x, *args, **named: function(x, *args, **named)


def _number(tracer, at):
    return at.element() if isinstance(at, Symbol) else at


handles("view", "_unsafe_view", "reshape", "_reshape_alias", "view_copy")(
    lambda tracer, x, shape, stride=None: symbols.reshape(x, list(shape)))
handles("expand", "expand_copy")(lambda tracer, x, shape: symbols.expand(x, list(shape)))
handles("permute", "permute_copy")(_as_view(symbols.permute))
handles("unsqueeze", "unsqueeze_copy")(_as_view(symbols.unsqueeze))
handles("select", "select_copy")(lambda tracer, x, dim, at: symbols.select(x, dim, _number(tracer, at)))
handles("index_select")(lambda tracer, x, dim, at: symbols.gather_arrays(
    x, [None] * (dim % x.dim()) + [at if at.dim() else symbols.unsqueeze(at, 0)]))
handles("index", "_unsafe_index")(lambda tracer, x, at: symbols.gather_arrays(x, list(at)))
handles("gather")(lambda tracer, x, dim, at: symbols.gather(x, dim, at))
handles("take")(lambda tracer, x, at: symbols.gather_arrays(symbols.reshape(x, [-1]), [at]))


@handles("broadcast_in_dim")
def _broadcast_in_dim(tracer, x, shape, dims):
    sizes = [1] * len(shape)
    for size, d in zip(x.shape, dims):
        sizes[d] = size
    return symbols.expand(symbols.reshape(x, sizes), list(shape))


@handles("flatten")
def _flatten(tracer, x, start=0, end=-1):
    rank = max(x.dim(), 1)
    shape = list(x.shape) or [1]
    start, end = start % rank, end % rank
    return symbols.reshape(x, [*shape[:start], torch.Size(shape[start:end + 1]).numel(), *shape[end + 1:]])


@handles("embedding")
def _embedding(tracer, weight, at, padding_idx=-1, scale_grad_by_freq=False, sparse=False):
    if scale_grad_by_freq:
        raise Unsupported("gradients are not divided by how often an index is there")
    found, w = symbols.gather_arrays(weight, [at]), tracer.writer
    if padding_idx < 0:
        return found

    def load(index):
        """That row of the table has no gradient."""
        x, number = found.element(index), at.element(index[:at.dim()])
        return w.where(w.compare("eq", number, padding_idx), w.stopped(x), x, torch.float32)
    return Symbol(tracer, found.shape, found.dtype, load)


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
