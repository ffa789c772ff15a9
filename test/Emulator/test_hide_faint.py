#===----------------------------------------------------------------------===#
#
# Part of attn, an attention compiler.
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===----------------------------------------------------------------------===#
"""Linear biases with tile-hide-faint, on the emulated GPU: how many keys each head's
width keeps, what is computed of them, and numbers that are not finite."""

import dataclasses
import types

import attn
import numpy as np
import pytest

from cases import Case
from emulate import Artifact, launch
from emulated_case import Array, Inputs, judge

PLANS = {
    "sm_80": "block_q = 64, block_k = 32, warps = 4",
    "sm_90a": "block_q = 128, block_k = 64, warps = 8",
}
CASE = Case(index=1, seed=1, element="bf16", head_dim=64, value_dim=64, batch=1, kv_heads=2, group=1,
            queries=700, keys=700, layouts=("bhsd",) * 4, padding=((0, 0),) * 4)
# Scores and masks. The weight falls from the nearest key on where the slope is positive.
FORMS = {
    "causal": (lambda p: p.x + p.slope[p.h] * (p.j - p.i), lambda p: p.j <= p.i),
    "window": (lambda p: p.x - p.slope[p.h] * (p.i - p.j), lambda p: (p.j <= p.i) & (p.i - p.j < 300)),
    "last": (lambda p: p.x + p.slope[p.h] * p.j, None),
    "first": (lambda p: p.x - p.slope[p.h] * p.j, None),
    "distance": (lambda p: p.x - p.slope[p.h] * abs(p.i - p.j), None),
    "distance_window": (lambda p: p.x - p.slope[p.h] * abs(p.j - p.i),
                        lambda p: (p.j < p.i + 150) & (p.i - p.j <= 200)),
    "first_causal": (lambda p: p.x + p.slope[p.h] * (p.i - p.j), lambda p: p.j <= p.i),
}
SLOPES = [2.0, 0.5, 0.0, -1.0]


class SlopedInputs(Inputs):
    def __init__(self, case, name):
        self.name, self.form, self.head = name, FORMS[name], 0
        super().__init__(case)
        self.slopes = Array("f32", (case.heads,)).set(np.resize(SLOPES, case.heads))
        self.captures = [self.slopes]

    def at(self, h, x=None):
        rows, columns = np.indices((self.case.queries, self.case.keys), sparse=True)
        return types.SimpleNamespace(x=x, h=h, i=rows, j=columns, slope=self.slopes.values())

    def visible(self, b):
        shape = self.case.queries, self.case.keys
        mask = self.form[1]
        return np.broadcast_to(mask(self.at(self.head)) if mask else True, shape)

    def has_score(self):
        return True

    def score(self, x, b, h):
        return self.form[0](self.at(h, x))

    def evaluate(self, b, h, exact):
        self.head = h
        return super().evaluate(b, h, exact)

    def widths(self):
        """Of each head; 2^30 and more keeps all keys."""
        case, found = self.case, np.zeros((self.case.batch, self.case.heads))
        # Each query has a key at its position.
        has_peak = not self.name.startswith("distance") or case.queries <= case.keys
        for b, h in np.ndindex(*found.shape):
            kv = h // case.group
            rows = [self.query.values()[b, h], self.key.values()[b, kv], self.value.values()[b, kv]]
            is_finite = all(np.isfinite(tile).all() for tile in rows)
            most = [(tile ** 2).sum(axis=1).max() for tile in rows]
            slope = self.slopes.values()[h]
            is_known = has_peak and slope > 0 and is_finite
            gap = 2.002 * case.scale_value * np.sqrt(most[0] * most[1]) + 110
            found[b, h] = gap / slope if is_known else 2.0 ** 30
        return found


def compiled(case, form, target, **options):
    text = attn.attention(case.element, case.head_dim, case.value_dim, batch=case.batch, heads=case.heads,
                          kv_heads=case.kv_heads, captures=[("slope", "tensor<?xf32>")],
                          score=form[0], mask=form[1])
    plan = f"#attn.plan<target = {target}, {PLANS[target]}, stages = 2>"
    return Artifact(attn.compile(text, target, plan, enable=["tile-hide-faint"], **options).bytes)


def run(case, name, target, inputs=None, **options):
    artifact = compiled(case, FORMS[name], target, **options)
    assert [kernel["entry"] for kernel in artifact.variant["kernels"]] == [
        "attention_key_norms", "attention_query_norms", "attention_widths", "attention"]
    inputs = inputs or SlopedInputs(case, name)
    launch(artifact, inputs.tensors())
    [widths] = [w.bits.view(np.int32) for w in artifact.workspaces
                if w.element == "i32" and len(w.shape) == 2]
    wanted = inputs.widths().ravel()
    assert (np.abs(widths - wanted) <= 1 + 1e-4 * wanted).all(), (widths, wanted)
    return inputs


@pytest.mark.parametrize("name", FORMS)
@pytest.mark.parametrize("target", PLANS)
def test_forms(target, name):
    case = dataclasses.replace(CASE, kv_heads=4)
    inputs = run(case, name, target)
    assert (inputs.widths() < case.keys).any()
    assert judge(case, inputs, complete=True) == []


@pytest.mark.parametrize("change", [
    dict(queries=130, keys=650), dict(queries=650, keys=130), dict(queries=1, keys=515),
    dict(batch=2, kv_heads=1, group=2, queries=200, keys=333),
    dict(element="f16", head_dim=128, value_dim=128, queries=300, keys=300),
    dict(element="f32", head_dim=40, value_dim=48, queries=150, keys=420),
    dict(head_dim=80, value_dim=32, queries=300, keys=257, magnitude=3.0)], ids=str)
@pytest.mark.parametrize("name", ["causal", "first", "distance"])
@pytest.mark.parametrize("target", PLANS)
def test_programs(target, name, change):
    case = dataclasses.replace(CASE, **change)
    assert judge(case, run(case, name, target), complete=True) == []


@pytest.mark.parametrize("dropped", ["tile-peel-masks", "tile-reverse-keys", "tile-overlap-products",
                                     "tile-group-bounds", "warp-specialize", "warp-persist"])
def test_without(dropped):
    case = dataclasses.replace(CASE, kv_heads=1, queries=300, keys=500)
    assert judge(case, run(case, "causal", "sm_90a", disable=[dropped]), complete=True) == []


@pytest.mark.parametrize("where", ["query", "key", "value"])
@pytest.mark.parametrize("number", [np.inf, np.nan])
@pytest.mark.parametrize("target", PLANS)
def test_not_finite(target, number, where):
    """Nothing is left out of a head with such a number, and of others what was."""
    case = dataclasses.replace(CASE, queries=320, keys=320)
    inputs = SlopedInputs(case, "causal")
    array = getattr(inputs, where)
    values = array.values()
    values[0, 0, 3, 5] = number
    array.set(values)
    run(case, "causal", target, inputs)
    assert (inputs.widths()[0] >= 2.0 ** 30).tolist() == [True, False]
    o = inputs.output.values()[0]
    if where == "value":  # A weight of 0 times inf, or NaN, is NaN.
        assert not np.isfinite(o[0, 3:, 5]).any()
    assert np.isfinite(o[1]).all()
