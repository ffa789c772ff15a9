#===----------------------------------------------------------------------===#
#
# Part of attn, an attention compiler.
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===----------------------------------------------------------------------===#
"""Masks whose integers leave 32 bits, on the emulated GPU: they wrap around in every
kernel, and no block is left out, or shown whole, as if they did not. One function is both
the mask of the program and, of NumPy's arrays of 32 bits, what is expected."""

import types

import attn
import numpy as np
import pytest

from cases import Case
from emulate import Artifact, launch
from emulated_case import Array, Inputs, judge

HASH, MOST = 1640531527, 2**31 - 1


class Table:
    """What masks read outside of a captured tensor is 0."""

    values = np.ones(66, np.int32)

    def __getitem__(self, at):
        inside = (at >= 0) & (at < self.values.size)
        return np.where(inside, self.values[np.where(inside, at, 0)], 0)


MASKS = {
    "hash of the query": lambda p: ((p.i * HASH) >> 28) >= 3,
    "hash of chunks of keys": lambda p: ((p.j // 5 * HASH) >> 28) & 15 >= 3,
    "hash of the head": lambda p: p.h * HASH + p.i >= p.j,
    "no limit": lambda p: p.i + MOST >= p.j,
    "largest distance": lambda p: p.j + (MOST - 47) - p.i <= 7,
    "largest distance of the query": lambda p: p.i + (MOST - 47) - p.j >= 7,
    "magnitude": lambda p: abs(p.i - p.j + (MOST - 47)) >= 7,
    "quotient": lambda p: (p.j + (MOST - 100)) // 16 >= 0,
    "block": lambda p: p.table[(p.j + (MOST - 47)) // 2**25] != 0,
    "remainder": lambda p: (p.j + (MOST - 47)) % 7 >= 2,
    "last bit": lambda p: (p.i << 31) >= p.i,
    "last two bits": lambda p: (p.i << 30) + p.j >= p.i,
}
PLANS = {
    "sm_80": "block_q = 64, block_k = 32, warps = 4",
    "sm_90a": "block_q = 64, block_k = 64, warps = 4",
}


class WrappingInputs(Inputs):
    def __init__(self, case, mask):
        self.mask, self.head = mask, 0
        super().__init__(case)
        self.captures = [Array("i32", [Table.values.size]).set(Table.values)]

    def visible(self, b):
        shape = self.case.queries, self.case.keys
        rows, columns = np.indices(shape, dtype=np.int32, sparse=True)
        head = np.full((1, 1), self.head, np.int32)
        shown = self.mask(types.SimpleNamespace(b=b, h=head, i=rows, j=columns,
                                                table=Table()))
        return np.broadcast_to(shown, shape)

    def evaluate(self, b, h, exact):
        self.head = h
        return super().evaluate(b, h, exact)


@pytest.mark.parametrize("name", MASKS)
@pytest.mark.parametrize("target", PLANS)
def test_wrapping_integers(target, name):
    case = Case(index=0, seed=len(name), element="bf16", head_dim=32, value_dim=32, batch=1,
                kv_heads=2, group=1, queries=70, keys=150, layouts=("bhsd",) * 4,
                padding=((0, 0),) * 4)
    text = attn.attention("bf16", case.head_dim, heads=2, kv_heads=2, mask=MASKS[name],
                          captures=[("table", "tensor<?xi32>")])
    plan = f"#attn.plan<target = {target}, {PLANS[target]}, stages = 2>"
    inputs = WrappingInputs(case, MASKS[name])
    launch(Artifact(attn.compile(text, target, plan).bytes), inputs.tensors())
    assert judge(case, inputs, complete=True) == []
