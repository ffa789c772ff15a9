#===----------------------------------------------------------------------===#
#
# Part of attn, an attention compiler.
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===----------------------------------------------------------------------===#
"""Infinite keys: a score of -inf counts for nothing, with no mask at all, and a
row of them is 0 (C17); +inf reaches the row as NaN (C23)."""

import dataclasses

import attn
import numpy as np
import pytest
from cases import Case
from emulate import Artifact, launch
from emulated_case import Inputs, judge
from mask_case import PLANS, numpy_view

PLAIN = Case(index=1, seed=1, element="bf16", head_dim=32, value_dim=32, batch=1,
             kv_heads=1, group=1, queries=70, keys=130, layouts=("bshd",) * 4,
             padding=((0, 0),) * 4)


def run(case, target, change):
    inputs = Inputs(case)
    query, key = inputs.query.values(), inputs.key.values()
    change(query, key)
    inputs.query.set(query)
    inputs.key.set(key)
    program = attn.compile(case.program(), target=target, plan=PLANS[target])
    if target == "cpu":
        arrays = [inputs.query, inputs.key, inputs.value, inputs.output, inputs.lse]
        program.launch(*map(numpy_view, arrays))
    else:
        launch(Artifact(program.bytes), inputs.tensors())
    return inputs


TARGETS = [("cpu", "f32"), ("cpu", "bf16"), ("sm_80", "f32"), ("sm_80", "bf16"), ("sm_90a", "bf16")]


@pytest.mark.parametrize("variant", [{}, dict(causal="top_left"), dict(softcap=0.0, window=(20, 20, "top_left"))])
@pytest.mark.parametrize("target, element", TARGETS)
def test_minus_infinity_counts_for_nothing(target, element, variant):
    def change(query, key):
        query[..., 0] = np.abs(query[..., 0]) + 0.25
        key[..., 0] = np.where(np.arange(PLAIN.keys) % 3 == 1, -np.inf, key[..., 0])
        key[..., :40, 0] = -np.inf  # a whole block, and rows that see no other key
    case = dataclasses.replace(PLAIN, element=element, **variant)
    assert judge(case, run(case, target, change), complete=True) == []


@pytest.mark.parametrize("target, element", TARGETS)
def test_nothing_else(target, element):
    def change(query, key):
        query[..., 0] = np.abs(query[..., 0]) + 0.25
        key[..., 0] = -np.inf
    case = dataclasses.replace(PLAIN, element=element)
    inputs = run(case, target, change)
    assert (inputs.output.values() == 0).all()
    assert np.isneginf(inputs.lse.values()).all()


@pytest.mark.parametrize("target, element", TARGETS)
def test_plus_infinity_is_seen(target, element):
    def change(query, key):
        query[..., 0] = np.abs(query[..., 0]) + 0.25
        key[..., 7, 0] = np.inf
    case = dataclasses.replace(PLAIN, element=element)
    assert np.isnan(run(case, target, change).output.values()).all()
