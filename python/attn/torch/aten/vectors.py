#===----------------------------------------------------------------------===#
#
# Part of attn, an attention compiler.
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===----------------------------------------------------------------------===#
"""What is made of the elements of vectors: products of matrices, variances, places of extremes."""

import torch

from .. import halves, symbols
from ..symbols import Symbol
from . import functions, reductions  # noqa: F401: they fill HANDLERS
from .handlers import HANDLERS, Unsupported, handles


def _sum_of_products(tracer, a, b, dim):
    return HANDLERS["sum"](tracer, HANDLERS["mul"](tracer, a, b), dim)


@handles("bmm")
def _bmm(tracer, a, b):
    return _sum_of_products(tracer, symbols.unsqueeze(a, 3), symbols.unsqueeze(b, 1), 2)


def times_matrix(name, args, kwargs):
    """A vector times a matrix, by matmul() or linear(), as a matrix times a vector; None for
    what else is called. PyTorch makes a matrix of the vector, and of that a vector in place."""
    given = {**dict(zip(("input", "other", "bias"), args)), **kwargs}
    x, matrix = given.get("input"), given.get("weight" if "weight" in given else "other")
    if name == "__rmatmul__":
        x, matrix = matrix, x
    if not all(isinstance(each, torch.Tensor) for each in (x, matrix)) or (x.dim(), matrix.dim()) != (1, 2):
        return None
    product = torch.mv(matrix if name == "linear" else matrix.t(), x)
    return product if given.get("bias") is None else product + given["bias"]


@handles("logsumexp")
def _logsumexp(tracer, x, dim, keepdim=False):
    """Beside the largest, which needs no gradient, if it is a number."""
    top = HANDLERS["detach"](tracer, HANDLERS["amax"](tracer, x, dim, True))
    is_number = HANDLERS["lt"](tracer, HANDLERS["abs"](tracer, top), float("inf"))
    top = HANDLERS["where"](tracer, is_number, top, 0.0)
    total = HANDLERS["sum"](tracer, HANDLERS["exp"](tracer, HANDLERS["sub"](tracer, x, top)), dim, True)
    result = HANDLERS["add"](tracer, HANDLERS["log"](tracer, total), top)
    return result if keepdim else symbols.squeeze(result, [dim] if isinstance(dim, int) else list(dim))


@handles("var")
def _var(tracer, x, dim=None, correction=None, keepdim=False, unbiased=None, output_dtype=None):
    """aten.var has `unbiased` in place of its dimensions, or after them; prims.var the type that x has."""
    if isinstance(dim, bool):
        dim, correction = None, dim
    correction = 1 if correction is None and unbiased is None else correction if unbiased is None else unbiased
    mean = HANDLERS["mean"](tracer, x, dim, True)
    rest = HANDLERS["square"](tracer, HANDLERS["sub"](tracer, x, mean))
    total = HANDLERS["sum"](tracer, rest, dim, keepdim)
    return HANDLERS["div"](tracer, total, float(max(0, x.numel() // max(1, mean.numel()) - correction)))


@handles("var_mean")
def _var_mean(tracer, x, dim=None, correction=None, keepdim=False, unbiased=None):
    mean = HANDLERS["mean"](tracer, x, None if isinstance(dim, bool) else dim, keepdim)
    return _var(tracer, x, dim, correction, keepdim, unbiased), mean


@handles("flip", "rev")
def _flip(tracer, x, dims):
    dims = {d % x.dim() for d in dims}

    def to_old(index):
        return tuple(tracer.writer.integer("sub", x.shape[d] - 1, at, torch.int32) if d in dims else at
                     for d, at in enumerate(index))
    return symbols.copy(symbols.view(x, x.shape, to_old))


def _place(predicate):
    def handler(tracer, x, dim=None, keepdim=False):
        """Where the first of the largest, or least, is."""
        if dim is None:
            if keepdim:
                raise Unsupported("keepdim=True without a dimension")
            x, dim = symbols.reshape(x, [-1]), 0
        dim %= max(1, x.dim())
        count, w, load_term = x.shape[dim] if x.dim() else 1, tracer.writer, x.loader()
        if count > symbols.MAX_UNROLLED:
            raise Unsupported(f"wanted {symbols.MAX_UNROLLED} elements at most, got {count}")

        def place(elements):
            best, at = elements[0], 0
            for number, element in list(enumerate(elements))[1:]:
                is_better = w.compare(predicate, element, best)
                best = w.where(is_better, element, best, x.dtype)
                at = w.where(is_better, number, at, torch.int64)
            return at

        def load(index):
            after = index[dim + 1:] if keepdim else index[dim:]
            elements = [load_term((*index[:dim], at, *after) if x.dim() else ()) for at in range(count)]
            return halves.applied(w, place, elements, [x.dtype] * count, x.dtype, torch.int64, True)
        return Symbol(tracer, [*x.shape[:dim], *([1] if keepdim else []), *x.shape[dim + 1:]], torch.int64, load)
    return handler


handles("argmax")(_place("gt"))
handles("argmin")(_place("lt"))


def _extreme(name):
    """max() along a dimension returns places, too."""
    whole = HANDLERS[name]

    def handler(tracer, x, *args, **named):
        if not args and not named:
            return whole(tracer, x)
        return tuple(HANDLERS[kind + name](tracer, x, *args, **named) for kind in ("a", "arg"))
    return handler


for name in ("max", "min"):
    handles(name)(_extreme(name))
