#===----------------------------------------------------------------------===#
#
# Part of attn, an attention compiler.
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===----------------------------------------------------------------------===#
"""Softcaps by two formulas: a polynomial for warps whose scores are all below 0.8 of
the cap (warp-expand-tanh), and powers of two for the others."""

import dataclasses

import attn
import numpy as np
import pytest
from cases import Case
from emulate import Artifact, launch
from emulated_case import Array, Inputs, judge

CAP = 20.0  # the polynomial is for scores below 16
PLAIN = Case(index=1, seed=1, element="bf16", head_dim=64, value_dim=64, batch=1,
             kv_heads=1, group=1, queries=150, keys=200, layouts=("bshd",) * 4,
             padding=((0, 0),) * 4, softcap=CAP)
PLANS = {"sm_80": "#attn.plan<target = sm_80, block_q = 64, block_k = 32, warps = 4, stages = 2>",
         "sm_90a": "#attn.plan<target = sm_90a, block_q = 128, block_k = 64, warps = 8, stages = 2>"}
TARGETS = list(PLANS)
# The leading coefficient, in f32.
COEFFICIENT = np.float32(0.39999805)


def small(query, key):
    pass


def large(query, key):
    """Each is 32 or -32, give or take 5."""
    query[..., 0] = 16.0
    key[..., 0] = np.where(np.arange(key.shape[2]) % 3 == 1, -16.0, 16.0)


def mixed(query, key):
    """Every other warp has 16 rows of them."""
    query *= np.where(np.arange(query.shape[2]) // 16 % 2, 16.0, 1.0)[:, None]


def one(query, key):
    """One row of one warp has one in the last block."""
    query[..., 37, 0] = 16.0
    key[..., 190, 0] = 16.0


def compiled(case, target, enable=("warp-expand-tanh",), program=None):
    return Artifact(attn.compile(program or case.program(), target=target, plan=PLANS[target],
                                 enable=enable).bytes)


def run(case, artifact, change, seed=None, captures=()):
    inputs = Inputs(case)
    inputs.captures += captures
    query, key = inputs.query.values(), inputs.key.values()
    change(query, key)
    inputs.query.set(query)
    inputs.key.set(key)
    launch(artifact, inputs.tensors(), seed=seed)
    return inputs


@pytest.mark.parametrize("variant", [dict(), dict(causal="bottom_right"), dict(element="f16", head_dim=128)], ids=str)
@pytest.mark.parametrize("change", [small, large, mixed, one])
@pytest.mark.parametrize("target", TARGETS)
def test_scores(target, change, variant):
    case = dataclasses.replace(PLAIN, **variant)
    assert judge(case, run(case, compiled(case, target), change), complete=True) == []


@pytest.mark.parametrize("target", TARGETS)
def test_warps_out_of_step(target):
    """Warps of a group go two ways, while products are in flight."""
    artifact = compiled(PLAIN, target)
    for seed in range(3):
        assert judge(PLAIN, run(PLAIN, artifact, mixed, seed), complete=True) == []


@pytest.mark.parametrize("change", [small, large, mixed])
@pytest.mark.parametrize("target", TARGETS)
def test_factor_of_each_head(target, change):
    """It is read when the kernel runs, and takes the 2.5 that the test of the bits wants."""
    def shrunk(query, key):
        change(query, key)
        query /= 8.0

    case = dataclasses.replace(PLAIN, group=2, scale=1.0)
    score = f"""%factor = attn.capture_load %factors[%h] : tensor<?xf32>
      %cap = arith.constant {CAP} : f32
      %part = arith.mulf %x, %factor : f32
      %y = math.tanh %part : f32
      %score = arith.mulf %y, %cap : f32
      attn.yield %score : f32"""
    program = attn.attention("bf16", 64, scale=1.0, captures=[("factors", "tensor<?xf32>")], score=score)
    factors = Array("f32", (case.heads,)).set(np.full(case.heads, 1 / CAP))
    artifact = compiled(case, target, program=program)
    assert judge(case, run(case, artifact, shrunk, captures=[factors]), complete=True) == []


@pytest.mark.parametrize("target", TARGETS)
def test_infinities(target):
    """tanh of an infinite score is 1 or -1: it is the cap, and counts."""
    def change(query, key):
        query[..., 0] = np.abs(query[..., 0]) + 0.25
        key[..., 3::7, 0] = -np.inf
        key[..., 5::7, 0] = np.inf
    with np.errstate(invalid="ignore"):
        inputs = run(PLAIN, compiled(PLAIN, target), change)
        assert judge(PLAIN, inputs, complete=True) == []


@pytest.mark.parametrize("target", TARGETS)
def test_no_number(target):
    """It reaches the row that sees it, and no other."""
    def change(query, key):
        query[..., 37, 0] = np.nan
    inputs = run(PLAIN, compiled(PLAIN, target), change)
    rows = np.arange(PLAIN.queries) == 37
    assert np.isnan(inputs.lse.values()[0, 0][rows]).all()
    assert np.isnan(inputs.output.values()[0, 0][rows]).all()
    assert np.isfinite(inputs.output.values()[0, 0][~rows]).all()


@pytest.mark.parametrize("target", TARGETS)
def test_wrong_coefficient_is_noticed(target):
    """By the warps that use it."""
    artifact = compiled(PLAIN, target)
    bits, wrong = (f"0f{number.view(np.uint32):08X}" for number in (COEFFICIENT, COEFFICIENT * np.float32(0.99)))
    count = 0
    for instruction in artifact.kernel.instructions:
        if bits in instruction.operands:
            instruction.operands = [wrong if operand == bits else operand for operand in instruction.operands]
            count += 1
    assert count
    assert judge(PLAIN, run(PLAIN, artifact, small), complete=True)
    assert judge(PLAIN, run(PLAIN, artifact, large), complete=True) == []


def test_sm80_on_request():
    """Where nothing else is said one formula serves all."""
    asked, usual = (compiled(PLAIN, "sm_80", enable).module.text.count("vote.sync.any")
                    for enable in (["warp-expand-tanh"], None))
    assert asked > usual
