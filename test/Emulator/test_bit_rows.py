#===----------------------------------------------------------------------===#
#
# Part of attn, an attention compiler.
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===----------------------------------------------------------------------===#
"""Masks that are truth values in memory, of each pair or of each key, on the emulated GPU:
rows that lanes read together, and rows that are not aligned or not whole."""

import types

import attn
import numpy as np
import pytest

from cases import Case
from emulate import Artifact, launch
from emulated_case import Array, Inputs, judge

MASKS = {
    "pairs": lambda p: p.seen[p.i, p.j],
    "causal pairs": lambda p: (p.i >= p.j) & p.seen[p.i, p.j],
    "keys": lambda p: p.given[p.h, p.j],
    "keys or pairs": lambda p: p.given[p.h, p.j] | p.seen[p.i, p.j],
}
PLANS = {
    "sm_80": ["block_q = 64, block_k = 32, warps = 4", "block_q = 64, block_k = 96, warps = 4"],
    "sm_90a": ["block_q = 64, block_k = 64, warps = 4", "block_q = 128, block_k = 128, warps = 8"],
}
CAPTURES = [("seen", "tensor<?x?xi1>"), ("given", "tensor<?x?xi1>")]


class BitInputs(Inputs):
    def __init__(self, case, mask, first):
        self.mask, self.head = mask, 0
        super().__init__(case)
        draw = np.random.default_rng(case.seed)
        self.seen = draw.random((case.queries, case.keys)) < 0.4
        self.given = draw.random((case.heads, case.keys)) < 0.3
        self.captures = [Array("i1", list(bits.shape), f"bhsd+{first}").set(bits)
                         for bits in (self.seen, self.given)]

    def visible(self, b):
        rows, columns = np.indices((self.case.queries, self.case.keys), sparse=True)
        return self.mask(types.SimpleNamespace(b=b, h=self.head, i=rows, j=columns,
                                               seen=self.seen, given=self.given))

    def evaluate(self, b, h, exact):
        self.head = h
        return super().evaluate(b, h, exact)


@pytest.mark.parametrize("keys,first", [(256, 0), (256, 1), (200, 0), (131, 0)])
@pytest.mark.parametrize("plan", [0, 1])
@pytest.mark.parametrize("name", MASKS)
@pytest.mark.parametrize("target", PLANS)
def test_bit_rows(target, name, plan, keys, first):
    case = Case(index=0, seed=keys + first, element="bf16", head_dim=32, value_dim=32, batch=1,
                kv_heads=2, group=1, queries=140, keys=keys, layouts=("bhsd",) * 4,
                padding=((0, 0),) * 4)
    text = attn.attention("bf16", case.head_dim, heads=2, kv_heads=2, mask=MASKS[name],
                          captures=CAPTURES)
    plan = f"#attn.plan<target = {target}, {PLANS[target][plan]}, stages = 2>"
    inputs = BitInputs(case, MASKS[name], first)
    launch(Artifact(attn.compile(text, target, plan).bytes), inputs.tensors())
    assert judge(case, inputs, complete=True) == []
