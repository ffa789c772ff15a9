#===----------------------------------------------------------------------===#
#
# Part of attn, an attention compiler.
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===----------------------------------------------------------------------===#
"""Gradients of tables that are read by distances of an image or a video, on the CPU against
float64. The indices are the same functions for both."""

import types

import attn
import numpy as np
import pytest
import table_reference

PLAN = "#attn.plan<target = cpu, block_q = 24, block_k = 10>"


def clip(m, value, low, high):
    return m.minimum(m.maximum(value, low), high)


def image(columns, rows):
    """A table by the distance in rows and columns."""
    return (2 * rows - 1, 2 * columns - 1), lambda p, m: (
        p.i // columns - p.j // columns + rows - 1, p.i % columns - p.j % columns + columns - 1)


def window(side):
    """Windows of side x side behind one another."""
    size = side * side

    def indices(p, m):
        a, b = p.i % size, p.j % size
        return a // side - b // side + side - 1, a % side - b % side + side - 1
    return (2 * side - 1, 2 * side - 1), indices


def video(frames, rows, columns):
    def indices(p, m):
        size = rows * columns
        return (p.j // size - p.i // size + frames - 1, p.j // columns % rows - p.i // columns % rows + rows - 1,
                p.j % columns - p.i % columns + columns - 1)
    return (2 * frames - 1, 2 * rows - 1, 2 * columns - 1), indices


TABLES = {
    "12 columns": image(12, 9),  # two rows of it are a block of queries
    "7 columns": image(7, 16),  # 21 queries of 24
    "24 columns": image(24, 5),
    "32 columns": image(32, 4),  # two blocks of queries for a row
    "65 columns": image(65, 2),
    "windows": window(4),
    "a video": video(9, 3, 4),
    "frames of 60": video(2, 6, 10),
    "limited rows": ((5, 23), lambda p, m: (
        clip(m, p.i // 12 - p.j // 12, -2, 2) + 2, p.i % 12 - p.j % 12 + 11)),
    "limited columns": ((17, 5), lambda p, m: (
        p.i // 12 - p.j // 12 + 8, clip(m, p.i % 12 - p.j % 12, -2, 2) + 2)),
    "one index": ((17 * 23,), lambda p, m: (
        (p.i // 12 - p.j // 12 + 8) * 23 + p.i % 12 - p.j % 12 + 11,)),
    "steps": ((11,), lambda p, m: (
        m.minimum(abs(p.i // 9 - p.j // 9) + abs(p.i % 9 - p.j % 9), 10),)),
    "rows alone": ((21,), lambda p, m: (p.i // 10 - p.j // 10 + 10,)),
    "columns alone": ((19,), lambda p, m: (p.j % 10 - p.i % 10 + 9,)),
    "the same twice": ((23, 23), lambda p, m: (
        p.i % 12 - p.j % 12 + 11, p.i % 12 - p.j % 12 + 11)),
    "a sequence": ((260,), lambda p, m: (p.i - p.j + 130,)),
    # No digits: 7 does not divide 12.
    "two images": ((11, 23), lambda p, m: (
        p.i // 21 - p.j // 21 + 5, p.i % 12 - p.j % 12 + 11)),
    "moved": ((21, 23), lambda p, m: (
        (p.i + 6) // 12 - (p.j + 6) // 12 + 10, p.i % 12 - p.j % 12 + 11)),
}


@pytest.mark.parametrize("queries, keys, plan", [(100, 107, PLAN), (107, 30, ""), (9, 90, PLAN)])
@pytest.mark.parametrize("name", TABLES)
def test_gradient(name, queries, keys, plan):
    shape, indices_of = TABLES[name]
    rng = np.random.default_rng(queries)
    q, d_o = (rng.standard_normal((2, 2, queries, 16)).astype("f4") for _ in range(2))
    k, v = (rng.standard_normal((2, 1, keys, 16)).astype("f4") for _ in range(2))
    table = rng.standard_normal((2, *shape)).astype("f4")
    p = types.SimpleNamespace(i=np.arange(queries)[:, None], j=np.arange(keys)[None, :])
    is_causal = keys <= queries
    o, lse, wanted = table_reference.evaluate(
        q, k, v, d_o, table, (np.arange(2).reshape(2, 1, 1), *indices_of(p, np)), (p.j <= p.i) | (not is_causal))
    text = attn.attention(
        "f32", 16, captures=[("table", f"tensor<{'?x' * table.ndim}f32>")],
        score=lambda p: p.x + p.table[(p.h, *indices_of(p, attn.expression))],
        mask=(lambda p: p.j <= p.i) if is_causal else None)
    kernel = attn.compile(text, target="cpu", backward=True, plan=plan)
    got = [np.full_like(array, np.nan) for array in (q, k, v, table)]
    kernel.launch(q, k, v, table, o.astype("f4"), lse.astype("f4"), d_o, *got)
    assert np.abs(got[3] - wanted).max() < 1e-4
