#===----------------------------------------------------------------------===#
#
# Part of attn, an attention compiler.
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===----------------------------------------------------------------------===#
"""Sorted data at the key against any number of the row, by every comparison:
tile-keys-to-ranges makes ranges of keys of them. Memory of every length, repeated
and extreme elements, limits in and out of range; against brute force, which
keys show exactly."""

import attn
import numpy as np
import pytest

LEAST, GREATEST = -2**31, 2**31 - 1
COMPARE = {"eq": np.equal, "ne": np.not_equal, "slt": np.less, "sle": np.less_equal,
           "sgt": np.greater, "sge": np.greater_equal}
SWAPPED = {"eq": "eq", "ne": "ne", "slt": "sgt", "sle": "sge", "sgt": "slt", "sge": "sle"}
DATA = {"search": "attn.capture_search %data[%b], %j : tensor<?x?xi32>",
        "search before": "attn.capture_search %data[%before], %j : tensor<?x?xi32>",
        "gather": "attn.capture_load %data[%b, %j] : tensor<?x?xi32>"}
PLAN = "#attn.plan<target = cpu, block_q = 8, block_k = 8>"


def program(kind, predicate, swapped, of_rows=True):
    sides = ["%element", "%limit" if of_rows else "%limits"][::-1 if swapped else 1]
    limit = "%limit = attn.capture_load %limits[%i] : tensor<?xi32>" if of_rows else ""
    return attn.attention(
        "f32", 8, captures=[("data", "tensor<?x?xi32>"), ("limits", "tensor<?xi32>" if of_rows else "i32")],
        sorted_captures=[0], mask=f"""
            %one = arith.constant 1 : i32
            %before = arith.subi %b, %one : i32
            %element = {DATA[kind]}
            {limit}
            %m = arith.cmpi {SWAPPED[predicate] if swapped else predicate}, {', '.join(sides)} : i32
            attn.yield %m : i1""")


def element(data, kind, keys):
    """y(0) ... y(keys - 1) of one row of the memory."""
    c = np.arange(keys)
    if kind != "gather":
        return np.searchsorted(data, c, side="right")
    return np.concatenate([data, np.zeros(keys, data.dtype)])[:keys]


def cases(rng):
    """(data of two batch entries, or of none; limits; keys)"""
    extremes = [LEAST, LEAST + 1, -1, 0, 1, 2, GREATEST - 1, GREATEST]
    for keys, size, rows in [(30, 0, 2), (30, 30, 2), (30, 13, 2), (21, 40, 2), (40, 1, 1), (9, 5, 0)]:
        low, high = [(-3, 3), (0, keys), (LEAST, GREATEST)][rng.integers(3)]
        data = np.sort(rng.integers(low, high, (rows, size), endpoint=True), axis=-1)
        if size > 4:
            data[..., 0], data[..., 1], data[..., -1] = LEAST, LEAST, GREATEST
        near = rng.choice(np.append(data.ravel(), 0), 24) + rng.integers(-1, 1, 24, endpoint=True)
        limits = np.concatenate([extremes, np.clip(near, LEAST, GREATEST), np.arange(-1, size + 2)])
        yield data.astype(np.int32), limits.astype(np.int32), keys


def check(kernel, kind, predicate, data, limits, keys, rng):
    """`limits`: one number for each query, or one for all."""
    # Equal scores: lse counts the keys, and o is their mean.
    queries = np.size(limits)
    q = np.zeros((2, 1, queries, 8), np.float32)
    k, v = rng.standard_normal((2, 2, 1, keys, 8)).astype(np.float32)
    o, lse = np.full_like(q, np.nan), np.full((2, 1, queries), np.nan, np.float32)
    rows, size = data.shape
    needed = 1 if kind == "search before" else 2
    if rows < needed or (kind == "gather" and size < keys):
        with pytest.raises(attn.AttnError, match="smaller than its indices reach"):
            kernel.launch(q, k, v, data, limits, o, lse)
        return
    kernel.launch(q, k, v, data, limits, o, lse)
    for b in range(2):
        # A search before the first row finds 0; after the last it is refused.
        row = b - 1 if kind == "search before" else b
        y = element(data[row], kind, keys) if row >= 0 else np.zeros(keys)
        visible = COMPARE[predicate](y[None, :], np.atleast_1d(limits)[:, None])
        count, where = visible.sum(axis=1), (data.shape, keys, b)
        with np.errstate(divide="ignore"):
            assert np.allclose(lse[b, 0], np.log(count), atol=1e-5), where
        assert np.allclose(o[b, 0] * count[:, None], visible @ v[b, 0], atol=1e-4), where


@pytest.mark.parametrize("kind", DATA)
@pytest.mark.parametrize("predicate", COMPARE)
def test_limits_of_rows(kind, predicate):
    rng = np.random.default_rng([len(kind), *predicate.encode()])
    kernel = attn.compile(program(kind, predicate, bool(rng.integers(2))), target="cpu", plan=PLAN)
    for data, limits, keys in cases(rng):
        check(kernel, kind, predicate, data, limits, keys, rng)


@pytest.mark.parametrize("kind, predicate", [("search", "eq"), ("search before", "sgt"), ("gather", "eq"), ("gather", "ne")])
def test_one_limit(kind, predicate):
    rng = np.random.default_rng(1)
    kernel = attn.compile(program(kind, predicate, False, of_rows=False), target="cpu", plan=PLAN)
    for data, limits, keys in cases(rng):
        for limit in limits[::5]:
            check(kernel, kind, predicate, data, int(limit), keys, rng)


DISTANCES = {"slt": lambda d, w: d < w, "sle": lambda d, w: d <= w, "sgt": lambda d, w: d > w,
             "sge": lambda d, w: d >= w, "ult": lambda d, w: (d >= 0) & (d < w),
             "ule": lambda d, w: (d >= 0) & (d <= w)}


@pytest.mark.parametrize("predicate", DISTANCES)
@pytest.mark.parametrize("sides", ["%i, %j", "%j, %i"])
@pytest.mark.parametrize("absolute", [False, True])
def test_distances(predicate, sides, absolute):
    """row - key and key - row against a constant, with the end of the keys."""
    rng = np.random.default_rng(3)
    width = int(rng.integers(0, 12))
    text = attn.attention("f32", 8, mask=f"""
        %raw = arith.subi {sides} : i32
        %d = {"math.absi %raw" if absolute else "arith.subi " + sides} : i32
        %w = arith.constant {width} : i32
        %m = arith.cmpi {predicate}, %d, %w : i32
        attn.yield %m : i1""")
    kernel = attn.compile(text, target="cpu", plan=PLAN)
    for queries, keys in [(30, 30), (9, 41), (41, 9)]:
        q, o = np.zeros((1, 1, queries, 8), np.float32), np.full((1, 1, queries, 8), np.nan, np.float32)
        k, v = rng.standard_normal((2, 1, 1, keys, 8)).astype(np.float32)
        lse = np.full((1, 1, queries), np.nan, np.float32)
        kernel.launch(q, k, v, o, lse)
        i, j = np.arange(queries)[:, None], np.arange(keys)[None, :]
        d = i - j if sides[1] == "i" else j - i
        visible = DISTANCES[predicate](abs(d) if absolute else d, width)
        with np.errstate(divide="ignore"):
            assert np.allclose(lse[0, 0], np.log(visible.sum(axis=1)), atol=1e-5), (queries, keys)
        assert np.allclose(o[0, 0] * visible.sum(axis=1)[:, None], visible @ v[0, 0], atol=1e-4)


POSITIONS = {"%j": lambda i, j: j + 0 * i, "%distance": lambda i, j: i - j, "%magnitude": lambda i, j: abs(i - j),
             "%third": lambda i, j: j // 3 + 0 * i}


@pytest.mark.parametrize("predicate", COMPARE)
@pytest.mark.parametrize("position", POSITIONS)
@pytest.mark.parametrize("place", ["%i", "%h", "%j"])
def test_longer_limits(predicate, position, place):
    """Positions against numbers of 64 bits, of each row, of all scores, or of each key."""
    rng = np.random.default_rng([*predicate.encode(), *position.encode()])
    swapped = bool(rng.integers(2))
    sides = ", ".join(["%long", "%limit"][::-1 if swapped else 1])
    text = attn.attention("f32", 8, captures=[("limits", "tensor<?xi64>")], mask=f"""
        %limit = attn.capture_load %limits[{place}] : tensor<?xi64>
        %distance = arith.subi %i, %j : i32
        %magnitude = math.absi %distance : i32
        %three = arith.constant 3 : i32
        %third = arith.floordivsi %j, %three : i32
        %long = arith.extsi {position} : i32 to i64
        %m = arith.cmpi {SWAPPED[predicate] if swapped else predicate}, {sides} : i64
        attn.yield %m : i1""")
    kernel = attn.compile(text, target="cpu", plan=PLAN)
    extremes = [near + step for near in (-2**63 + 1, LEAST, -2**32, 0, GREATEST, 2**32, 2**63 - 2) for step in (-1, 0, 1)]
    for count, keys in [(50, 41), (41, 50)]:
        limits = np.concatenate([extremes, rng.integers(-keys, keys, 50 - len(extremes))]).astype(np.int64)
        heads, queries = (50, 9) if place == "%h" else (1, count)
        q, o = np.zeros((1, heads, queries, 8), np.float32), np.full((1, heads, queries, 8), np.nan, np.float32)
        k, v = rng.standard_normal((2, 1, 1, keys, 8)).astype(np.float32)
        lse = np.full((1, heads, queries), np.nan, np.float32)
        kernel.launch(q, k, v, limits, o, lse)
        h, i, j = np.ogrid[:heads, :queries, :keys]
        visible = COMPARE[predicate](POSITIONS[position](i, j), limits[{"%i": i, "%h": h, "%j": j}[place]])
        count = np.broadcast_to(visible, (heads, queries, keys)).sum(axis=2)
        with np.errstate(divide="ignore"):
            assert np.allclose(lse[0], np.log(count), atol=1e-5)
        assert np.allclose(o[0] * count[:, :, None], visible @ v[0, 0], atol=1e-4)
