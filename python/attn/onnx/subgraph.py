#===----------------------------------------------------------------------===#
#
# Part of attn, an attention compiler.
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===----------------------------------------------------------------------===#
"""The node that softmax(Q Kᵀ) V becomes (rewriting.py), on NumPy arrays."""

import numpy

from .fused import run


def evaluate(q, k, v, *operands, scale=1.0, steps=(), values=(), empty_rows="nan"):
    """softmax(steps(scale Q Kᵀ)) V as MatMul, Add, Where and Softmax compute it.

    q         (batch, heads, queries, d), k (batch, heads, keys, d), v (batch, heads,
              keys, e), or without the first dimensions. They broadcast to each other and
              to the operands as those of the operators do; heads of k and v may divide
              those of q, each then serves as many.
    steps     "multiply", "softcap", "add", "select" (fused.py); add and select take one of
              the operands each, in order, all but add one of the values, at their places.
    empty_rows  what rows become that see no key: "nan"; "zero"; "zero_nan", which is zero
              for rows with NaN among their weights, too.
    """
    rank = max(array.ndim for array in (q, k, v, *operands))
    q, k, v, *operands = (array.reshape((1,) * (4 - array.ndim) + array.shape)
                          for array in (q, k, v, *operands))
    q, k, v = _broadcast(q, k, v, operands)
    given, rest = [], iter(operands)
    for name, value in zip(steps, values):
        given.append((name, *([next(rest)] if name in ("add", "select") else []),
                      *([] if name == "add" else [value])))
    o, lse = run(q, k, v, scale=scale, steps=given)
    if empty_rows == "nan":
        o[lse == -numpy.inf] = numpy.nan
    elif empty_rows == "zero_nan":
        o[numpy.isnan(lse)] = 0
    return o.reshape(o.shape[4 - rank:])


def _broadcast(q, k, v, operands):
    def size(*sizes):
        return numpy.broadcast_shapes(*((one,) for one in sizes))[0]

    operands = [array.shape for array in operands]
    batch = size(q.shape[0], k.shape[0], v.shape[0], *(shape[0] for shape in operands))
    heads = size(q.shape[1], *(shape[1] for shape in operands))
    queries = size(q.shape[2], *(shape[2] for shape in operands))
    keys = size(k.shape[2], *(shape[3] for shape in operands))
    own = k.shape[1]
    if own != v.shape[1] or heads % own:  # no groups: as MatMul has them
        own = heads = size(heads, own, v.shape[1])
    if v.shape[2] != keys:
        raise ValueError(f"{keys} keys and {v.shape[2]} rows of V")
    return (numpy.broadcast_to(q, (batch, heads, queries, q.shape[3])),
            numpy.broadcast_to(k, (batch, own, keys, k.shape[3])),
            numpy.broadcast_to(v, (batch, own, keys, v.shape[3])))
