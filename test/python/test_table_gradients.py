#===----------------------------------------------------------------------===#
#
# Part of attn, an attention compiler.
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===----------------------------------------------------------------------===#
"""Gradients of tables that are read at computed indices, some of each query or key, on the
CPU against float64. The indices are the same functions for both."""

import types

import attn
import numpy as np
import pytest
import table_reference


def clip(value, low, high):
    """Of numbers, or of expressions."""
    return (np if isinstance(value, np.ndarray) else attn.expression).clip(value, low, high)


PLAN = "#attn.plan<target = cpu, block_q = 24, block_k = 10>"
BATCH, HEADS, QUERIES, KEYS = 2, 2, 50, 61

# By name: the sizes of the table, where a letter is a number of batch entries, heads,
# queries or keys, and its indices. `paths` are numbers of pairs, `kinds` of positions.
TABLES = {
    "paths": ("h 20", lambda p: (p.h, p.paths[p.i, p.j])),
    "paths of a batch": ("b h 20", lambda p: (p.b, p.h, p.paths[p.i, p.j])),
    "many paths": ("150", lambda p: (p.paths[p.i, p.j] * 7,)),
    "no heads": ("20", lambda p: (p.paths[p.i, p.j],)),
    "kinds of both": ("h 8 8", lambda p: (p.h, p.kinds[p.i], p.kinds[p.j])),
    "kinds before heads": ("8 h 8", lambda p: (p.kinds[p.i], p.h, p.kinds[p.j])),
    "a row of each query": ("b h q 9", lambda p: (p.b, p.h, p.i, p.j // 7)),
    "a place of each query": ("b h q 7", lambda p: (p.b, p.h, p.i, p.j % 7)),
    "of queries alone": ("q 9", lambda p: (p.i, p.j // 7)),
    "queries at the end": ("h 8 q", lambda p: (p.h, p.kinds[p.j], p.i)),
    "queries in between": ("8 q h", lambda p: (p.kinds[p.j], p.i, p.h)),
    "two indices": ("h q 3 5", lambda p: (p.h, p.i, p.j % 3, p.j // 20)),
    "paths of each query": ("h q 20", lambda p: (p.h, p.i, p.paths[p.i, p.j])),
    "the query twice": ("q 60", lambda p: (p.i, p.i + p.j % 3)),
    "each key": ("h 8 k", lambda p: (p.h, p.kinds[p.i], p.j)),
    "a row of each key": ("b k h 9", lambda p: (p.b, p.j, p.h, p.i // 7)),
    "chunks of rows": ("h q 70", lambda p: (p.h, p.i, p.j + p.j % 2)),
    "quotients in chunks": ("h q 150", lambda p: (p.h, p.i, p.j // 1)),
    "quotients of keys in chunks": ("k 130", lambda p: (p.j, p.i // 1)),
    "distances of each query": ("h q 150", lambda p: (p.h, p.i, clip(p.i - p.j + 70, 0, 149))),
    "distances the other way": ("h q 150", lambda p: (p.h, p.i, clip(p.j - p.i, -9, 12) + 70)),
    "distances of each key": ("b k 150", lambda p: (p.b, p.j, clip(p.i - p.j, -20, 40) + 50)),
    "distances of each key the other way": ("k 150", lambda p: (p.j, 149 - clip(p.i - p.j + 75, 30, 90))),
    "limits on the other side, some outside": ("q 150", lambda p: (p.i, clip(p.j - p.i + 100, 90, 149))),
    "limits in chunks of others": ("q 150", lambda p: (p.i, clip(clip(p.i - p.j, -30, 1000), -1000, 3) + 90)),
    "distances without limits": ("q 300", lambda p: (p.i, p.i - p.j + 150)),
    "distances of which some are outside": ("h k 150", lambda p: (p.h, p.j, p.i - p.j + 20)),
}
SIZES = {"b": BATCH, "h": HEADS, "q": QUERIES, "k": KEYS}


@pytest.mark.parametrize("is_known, is_causal, plan", [(False, False, PLAN), (True, True, "")],
                         ids=["any size", "known size, causal"])
@pytest.mark.parametrize("name", TABLES)
def test_gradient(name, is_known, is_causal, plan):
    sizes, indices = TABLES[name]
    shape = [SIZES.get(size) or int(size) for size in sizes.split()]
    rng = np.random.default_rng(len(name))
    q, d_o = (rng.standard_normal((BATCH, HEADS, QUERIES, 16)).astype("f4") for _ in range(2))
    k, v = (rng.standard_normal((BATCH, 1, KEYS, 16)).astype("f4") for _ in range(2))
    table = rng.standard_normal(shape).astype("f4")
    paths = rng.integers(-2, 23, (QUERIES, KEYS)).astype("i4")  # some of none
    kinds = rng.integers(0, 8, max(QUERIES, KEYS)).astype("i4")
    at = np.ix_(range(BATCH), range(HEADS), range(QUERIES), range(KEYS))
    p = types.SimpleNamespace(paths=paths, kinds=kinds, **dict(zip("bhij", at)))
    o, lse, wanted = table_reference.evaluate(q, k, v, d_o, table, indices(p), (p.j <= p.i) | (not is_causal))
    type = "x".join("?" if size in SIZES or not is_known else size for size in sizes.split())
    text = attn.attention(
        "f32", 16, captures=[("paths", "tensor<?x?xi32>"), ("kinds", "tensor<?xi32>"), ("table", f"tensor<{type}xf32>")],
        score=lambda p: p.x + p.table[indices(p)], mask=(lambda p: p.j <= p.i) if is_causal else None)
    kernel = attn.compile(text, target="cpu", backward=True, plan=plan)
    got = [np.full_like(array, np.nan) for array in (q, k, v, table)]
    kernel.launch(q, k, v, paths, kinds, table, o.astype("f4"), lse.astype("f4"), d_o, *got)
    assert np.abs(got[3] - wanted).max() < 1e-4


# By name: the sizes of the tables, and which are read at which indices.
SEVERAL = {
    "two tables": (["h 20", "h 8 8"],
                   lambda p: [(0, (p.h, p.paths[p.i, p.j])), (1, (p.h, p.kinds[p.i], p.kinds[p.j]))]),
    "two reads of one": (["h 20"], lambda p: [(0, (p.h, p.paths[p.i, p.j])), (0, (p.h, p.paths[p.i, p.j] + 1))]),
    "reads of heads and of one": (["h 20"], lambda p: [(0, (p.h, p.paths[p.i, p.j])), (0, (1, p.paths[p.i, p.j] + 1))]),
    "more than there is memory for": (["150", "h 300"],
                                      lambda p: [(0, (p.paths[p.i, p.j] * 7,)), (1, (p.h, p.paths[p.i, p.j] * 13))]),
    "of queries, of keys and of pairs": (
        ["h q 7", "20", "h 8 k", "q 5", "h q 7"],
        lambda p: [(0, (p.h, p.i, p.j % 7)), (1, (p.paths[p.i, p.j],)), (2, (p.h, p.kinds[p.i], p.j)),
                   (3, (p.i, p.j % 5)), (4, (p.h, p.i, p.paths[p.i, p.j]))]),
    "a table of distances beside another": (
        ["h 41", "20"], lambda p: [(0, (p.h, clip(p.i - p.j, -20, 20) + 20)), (1, (p.paths[p.i, p.j],))]),
    "read at three places, once a quotient": (
        ["h q 9"], lambda p: [(0, (p.h, p.i, p.j // 7)), (0, (p.h, p.i, p.j % 9)), (0, (p.h, p.i, p.paths[p.i, p.j]))]),
    # What goes back to the last read comes first.
    "quotients in chunks beside another read": (
        ["h q 150"], lambda p: [(0, (p.h, p.i, (p.j * 7 + p.i) % 150)), (0, (p.h, p.i, p.j // 3))]),
    "distances in chunks beside another read": (
        ["h q 150"], lambda p: [(0, (p.h, p.i, (p.j * 5) % 150)), (0, (p.h, p.i, clip(p.i - p.j + 70, 0, 149)))]),
    "numbers of heads and of all": (["h", "1", "2", "h"],
                                    lambda p: [(0, (p.h,)), (1, (0,)), (2, (1,)), (3, (p.h,)), (2, (0,))]),
}


@pytest.mark.parametrize("is_known, is_causal, plan", [(False, False, PLAN), (True, True, "")],
                         ids=["any size", "known size, causal"])
@pytest.mark.parametrize("name", SEVERAL)
def test_several_tables(name, is_known, is_causal, plan):
    """Each pair reads all of them, so that a pass over the scores may sum for several."""
    tables, reads = SEVERAL[name]
    rng = np.random.default_rng(len(name))
    q, d_o = (rng.standard_normal((BATCH, HEADS, QUERIES, 16)).astype("f4") for _ in range(2))
    k, v = (rng.standard_normal((BATCH, 1, KEYS, 16)).astype("f4") for _ in range(2))
    shapes = [[SIZES.get(size) or int(size) for size in sizes.split()] for sizes in tables]
    values = [rng.standard_normal(shape).astype("f4") for shape in shapes]
    paths = rng.integers(-2, 23, (QUERIES, KEYS)).astype("i4")  # some of none
    kinds = rng.integers(0, 8, max(QUERIES, KEYS)).astype("i4")
    factors = [1.0, 0.5, -0.75, 0.25, 1.5]  # of reads
    at = np.ix_(range(BATCH), range(HEADS), range(QUERIES), range(KEYS))
    p = types.SimpleNamespace(paths=paths, kinds=kinds, **dict(zip("bhij", at)))
    numbers = [number for number, _ in reads(p)]
    read = [(values[number] * factor, indices) for (number, indices), factor in zip(reads(p), factors)]
    o, lse, gradients = table_reference.evaluate_reads(q, k, v, d_o, read, (p.j <= p.i) | (not is_causal))
    wanted = [sum(factor * gradient for factor, gradient, other in zip(factors, gradients, numbers) if other == number)
              for number in range(len(tables))]

    def score(p):
        x = p.x
        for (number, indices), factor in zip(reads(p), factors):
            x = x + getattr(p, f"table{number}")[indices] * factor
        return x

    types_of = ["x".join("?" if size in SIZES or not is_known else size for size in sizes.split()) for sizes in tables]
    captures = [("paths", "tensor<?x?xi32>"), ("kinds", "tensor<?xi32>"),
                *((f"table{number}", f"tensor<{type}xf32>") for number, type in enumerate(types_of))]
    text = attn.attention("f32", 16, captures=captures, score=score, mask=(lambda p: p.j <= p.i) if is_causal else None)
    kernel = attn.compile(text, target="cpu", backward=True, plan=plan)
    got = [np.full_like(array, np.nan) for array in (q, k, v, *values)]
    kernel.launch(q, k, v, paths, kinds, *values, o.astype("f4"), lse.astype("f4"), d_o, *got)
    for number, gradient in enumerate(wanted):
        assert np.abs(got[3 + number] - gradient).max() < 2e-4, f"table {number}"


TABLE = """
!t = tensor<?x?x?x{dim}xbf16>
func.func @f(%q: !t, %k: !t, %v: !t, %table: tensor<?x13x13xf32>) -> !t {{
  %o, %lse = attn.attention %q, %k, %v captures(%table)
    score(%x: f32, %b: i32, %h: i32, %i: i32, %j: i32, %t: tensor<?x13x13xf32>) {{
      %size = arith.constant 13 : i32
      %row = arith.remsi %i, %size : i32
      %column = arith.remsi %j, %size : i32
      %bias = attn.capture_load %t[%h, %row, %column] : tensor<?x13x13xf32>
      %y = arith.addf %x, %bias : f32
      attn.yield %y : f32
    }}
    : (!t, !t, !t, tensor<?x13x13xf32>) -> (!t, tensor<?x?x?xf32>)
  return %o : !t
}}"""


@pytest.mark.parametrize("dim", [64, 72, 80, 96, 112, 128])
@pytest.mark.parametrize("target", ["sm_80", "sm_90a"])
def test_sums_of_elements_have_room(dim, target):
    """Beside tiles whose last panel is wider than what is left of a row."""
    kernels = attn.compile(TABLE.format(dim=dim), target=target, backward=True).manifest["variants"][-1]["kernels"]
    assert any(kernel["entry"].endswith("_elements") for kernel in kernels)
