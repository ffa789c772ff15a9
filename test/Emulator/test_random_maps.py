#===----------------------------------------------------------------------===#
#
# Part of attn, an attention compiler.
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===----------------------------------------------------------------------===#
"""Random masks of maps that are captured, quotients, remainders and bounds, on the
emulated GPU: what lists of blocks say of these, whatever the tiles. One function is
both the mask of the program and, of NumPy's arrays, what is expected."""

import random
import types

import attn
import numpy as np
import pytest

from cases import Case
from emulate import Artifact, launch
from emulated_case import Array, Inputs, judge

TILES = {
    "sm_80": ["block_q = 64, block_k = 32, warps = 4", "block_q = 64, block_k = 64, warps = 4",
              "block_q = 128, block_k = 64, warps = 4"],
    "sm_90a": ["block_q = 128, block_k = 64, warps = 8", "block_q = 64, block_k = 64, warps = 4",
               "block_q = 192, block_k = 64, warps = 12", "block_q = 128, block_k = 128, warps = 8"],
}


class RandomMask:
    """`mask(p)` of positions p, and the maps that it reads by p's attributes."""

    def __init__(self, rng, case):
        self.rng, self.case, self.maps = rng, case, {}
        self.mask = self.draw(depth=2)

    def draw_quotient(self):
        """A function of a position, and how many values it has below a length."""
        size = self.rng.choice([16, 32, 48, 64, 64, 100, 128, 128, 192, 256])
        shift = self.rng.choice([0, 0, 0, 0, size, 16, 7])
        period = self.rng.choice([None, None, None, 3])

        def quotient(position):
            number = (position + shift) // size
            return number % period if period else number

        return quotient, lambda length: period or (length + shift) // size + 1

    def draw_map(self):
        (rows, count_rows), (columns, count_columns) = self.draw_quotient(), self.draw_quotient()
        name = f"map{len(self.maps)}"
        of_batch, of_head = self.rng.random() < 0.2, self.rng.random() < 0.25
        shape = [self.case.batch] * of_batch + [self.case.heads] * of_head
        shape += [count_rows(self.case.queries), count_columns(self.case.keys)]
        values = np.random.default_rng(self.rng.randrange(2**30)).random(shape)
        self.maps[name] = (values < self.rng.choice([0.02, 0.1, 0.4, 0.8])).astype(np.int32)

        def shows(p):
            heads = [p.b] * of_batch + [p.h] * of_head
            return getattr(p, name)[(*heads, rows(p.i), columns(p.j))] != 0

        return shows

    def draw(self, depth):
        kind = self.rng.random()
        if depth and kind < 0.5:
            left, right = self.draw(depth - 1), self.draw(depth - 1)
            return self.rng.choice([lambda p: left(p) & right(p), lambda p: left(p) | right(p),
                                    lambda p: left(p) & ~right(p)])
        if kind < 0.8:
            return self.draw_map()
        if kind < 0.87:
            offset = self.rng.choice([0, 0, 20, -30])
            return lambda p: p.j <= p.i + offset
        if kind < 0.94:
            width = self.rng.choice([10, 40, 130])
            return lambda p: abs(p.i - p.j) <= width
        (rows, _), (columns, _) = self.draw_quotient(), self.draw_quotient()
        count = self.rng.choice([2, 3])
        return lambda p: (rows(p.i) + columns(p.j)) % count == 0


class RandomInputs(Inputs):
    def __init__(self, case, drawn):
        self.drawn, self.head = drawn, 0
        super().__init__(case)
        self.captures = [Array("i32", list(map.shape)).set(map) for map in drawn.maps.values()]

    def visible(self, b):
        shape = self.case.queries, self.case.keys
        rows, columns = np.indices(shape, sparse=True)
        shown = self.drawn.mask(types.SimpleNamespace(b=b, h=self.head, i=rows, j=columns,
                                                      **self.drawn.maps))
        return np.broadcast_to(shown, shape)

    def evaluate(self, b, h, exact):
        self.head = h
        return super().evaluate(b, h, exact)


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("target", TILES)
def test_random_mask(target, seed):
    rng = random.Random(f"{target} {seed}")
    case = Case(index=seed, seed=seed, element="bf16", head_dim=32, value_dim=32,
                batch=rng.choice([1, 1, 2]), kv_heads=rng.choice([1, 2]), group=rng.choice([1, 1, 2]),
                queries=rng.choice([33, 64, 128, 150, 257]),
                keys=rng.choice([17, 64, 129, 256, 300]), layouts=("bhsd",) * 4,
                padding=((0, 0),) * 4)
    drawn = RandomMask(rng, case)
    captures = [(name, f"tensor<{'?x' * map.ndim}i32>") for name, map in drawn.maps.items()]
    text = attn.attention("bf16", case.head_dim, batch=case.batch, heads=case.heads,
                          kv_heads=case.kv_heads, captures=captures, mask=drawn.mask)
    plan = f"#attn.plan<target = {target}, {rng.choice(TILES[target])}, stages = 2>"
    artifact = Artifact(attn.compile(text, target, plan).bytes)
    inputs = RandomInputs(case, drawn)
    launch(artifact, inputs.tensors())
    assert judge(case, inputs, complete=True) == []
