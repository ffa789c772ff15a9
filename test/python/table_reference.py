#===----------------------------------------------------------------------===#
#
# Part of attn, an attention compiler.
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===----------------------------------------------------------------------===#
"""Attention with a bias that is read from a table, in float64."""

import numpy as np


def evaluate(q, k, v, d_o, table, indices, mask):
    """(o, lse, gradient of the table), where `indices` of the table stretch to batch entries,
    heads, queries and keys; those out of range read 0."""
    o, lse, (gradient,) = evaluate_reads(q, k, v, d_o, [(table, indices)], mask)
    return o, lse, gradient


def evaluate_reads(q, k, v, d_o, reads, mask):
    """The same of the sum of several reads, with what goes back to each."""
    shape = (*q.shape[:3], k.shape[2])
    places, x = [], 0.0
    for table, indices in reads:
        indices = np.array([np.broadcast_to(index, shape) for index in indices])
        sizes = np.array(table.shape).reshape(-1, 1, 1, 1, 1)
        is_inside = ((indices >= 0) & (indices < sizes)).all(0)
        indices = tuple(np.clip(indices, 0, sizes - 1))
        places.append((indices, is_inside))
        x = x + table.astype(np.float64)[indices] * is_inside
    q, k, v, d_o = (array.astype(np.float64) for array in (q, k, v, d_o))
    group = q.shape[1] // k.shape[1]
    k, v = k.repeat(group, axis=1), v.repeat(group, axis=1)
    x = x + np.einsum("bhid,bhjd->bhij", q, k) * q.shape[-1] ** -0.5
    x = np.where(mask, x, -np.inf)
    lse = np.log(np.exp(x).sum(-1))
    weights = np.exp(x - lse[..., None])
    o = weights @ v
    d_x = weights * (d_o @ v.swapaxes(2, 3) - (d_o * o).sum(-1, keepdims=True))
    gradients = []
    for (table, _), (indices, is_inside) in zip(reads, places):
        gradients.append(np.zeros(table.shape))
        np.add.at(gradients[-1], indices, d_x * is_inside)
    return o, lse, gradients
