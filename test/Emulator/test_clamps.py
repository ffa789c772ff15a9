#===----------------------------------------------------------------------===#
#
# Part of attn, an attention compiler.
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===----------------------------------------------------------------------===#
"""Masks that read a table at a limited distance, on the emulated GPU: the limits lie within
the table, so that a distance beyond them would read another element of it."""

import types

import attn
import numpy as np
import pytest
from attn.expression import maximum, minimum

from cases import Case
from emulate import Artifact, launch
from emulated_case import Array, Inputs, judge

MASKS = {
    "both": lambda p, most, least: p.table[least(most(p.i - p.j, -7), 21) + 40],
    "least": lambda p, most, least: p.table[most(p.i - p.j, 0) + 3],
    "most": lambda p, most, least: p.table[least(p.j - p.i, 9) + 150],
    "inner": lambda p, most, least: p.table[most(p.i - p.j + 5, 2) - 2],
}
PLANS = {
    "sm_80": "block_q = 64, block_k = 32, warps = 4",
    "sm_90a": "block_q = 64, block_k = 64, warps = 4",
}


class TableInputs(Inputs):
    def __init__(self, case, mask):
        self.mask = mask
        super().__init__(case)
        self.table = (np.random.default_rng(5).random(400) < 0.5).astype(np.int32)
        self.captures = [Array("i32", [400]).set(self.table)]

    def visible(self, b):
        rows, columns = np.indices((self.case.queries, self.case.keys), sparse=True)
        p = types.SimpleNamespace(i=rows, j=columns, table=self.table)
        return self.mask(p, np.maximum, np.minimum) != 0


@pytest.mark.parametrize("name", MASKS)
@pytest.mark.parametrize("target", PLANS)
def test_clamps(target, name):
    case = Case(index=0, seed=3, element="bf16", head_dim=32, value_dim=32, batch=1, kv_heads=1,
                group=1, queries=140, keys=150, layouts=("bhsd",) * 4, padding=((0, 0),) * 4)
    text = attn.attention("bf16", case.head_dim, heads=1, kv_heads=1,
                          captures=[("table", "tensor<?xi32>")],
                          mask=lambda p: MASKS[name](p, maximum, minimum) != 0)
    plan = f"#attn.plan<target = {target}, {PLANS[target]}, stages = 2>"
    inputs = TableInputs(case, MASKS[name])
    launch(Artifact(attn.compile(text, target, plan).bytes), inputs.tensors())
    assert judge(case, inputs, complete=True) == []
