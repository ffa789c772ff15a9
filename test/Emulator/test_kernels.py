#===----------------------------------------------------------------------===#
#
# Part of attn, an attention compiler.
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===----------------------------------------------------------------------===#
"""The PTX that the compiler emits, executed without a GPU.

Random programs and shapes against float64; every block size of the tail cases;
and bugs planted in good PTX, each of which has to be noticed.
"""

import dataclasses
import re

import attn
import numpy as np
import pytest
from cases import Case, make_case
from emulate import Artifact
from emulated_case import Inputs, run
from memory import Fault
from tensor_cores import multiply_accumulate_tf32

PLAIN = Case(index=1, seed=1, element="bf16", head_dim=64, value_dim=64, batch=1,
             kv_heads=1, group=2, queries=70, keys=200, layouts=("bshd",) * 4,
             padding=((0, 0),) * 4)
PLAN = "#attn.plan<target = sm_80, block_q = 64, block_k = 32, warps = 4, stages = 2>"


def compiled(case, plan=None):
    return Artifact(attn.compile(case.program(), target="sm_80", plan=plan).bytes)


def small(index):
    """A case of the GPU suite with lengths and heads a Python program can do."""
    case = make_case(7, index, longest=170)
    return dataclasses.replace(case, batch=min(case.batch, 2), kv_heads=min(case.kv_heads, 2),
                               group=min(case.group, 4))


def test_random_program(index):
    case = small(index)
    assert run(case, compiled(case), blocks=2) == [], case.describe()


@pytest.mark.parametrize("queries, keys", [(1, 1), (63, 31), (64, 32), (65, 33), (128, 96), (3, 257)])
@pytest.mark.parametrize("causal", ["", "bottom_right", "top_left"])
def test_tile_boundaries(queries, keys, causal):
    case = dataclasses.replace(PLAIN, queries=queries, keys=keys, causal=causal, group=1)
    assert run(case, compiled(case, PLAN)) == []


@pytest.mark.parametrize("head_dim, causal", [(64, ""), (128, "bottom_right"), (40, "top_left")])
def test_three_products_of_tf32(head_dim, causal):
    case = dataclasses.replace(PLAIN, element="f32", head_dim=head_dim, value_dim=head_dim,
                               causal=causal, queries=65, keys=130, group=1)
    assert run(case, compiled(case)) == []


@pytest.mark.parametrize("target", ["sm_80", "sm_90a"])
def test_sums_of_tf32_round_to_nearest(target):
    """Tensor cores cut off: sums of numbers of one sign end far below."""
    case = dataclasses.replace(PLAIN, element="f32", queries=64, keys=400, group=1)
    inputs = Inputs(case)
    for array in (inputs.query, inputs.key, inputs.value):
        array.set(np.abs(array.values()))
    artifact = Artifact(attn.compile(case.program(), target=target).bytes)
    assert run(case, artifact, inputs=inputs) == []


IEEE = dataclasses.replace(PLAIN, element="f32", f32_products="ieee", queries=65, keys=130, group=1)


@pytest.mark.parametrize("target", ["sm_80", "sm_90a"])
@pytest.mark.parametrize("change", [
    dict(), dict(head_dim=40, value_dim=72, causal="top_left"), dict(keys=2),
    dict(head_dim=128, value_dim=128, magnitude=10.0), dict(softcap=5.0, alibi="bottom_right")])
def test_products_of_ieee(target, change):
    case = dataclasses.replace(IEEE, **change)
    artifact = Artifact(attn.compile(case.program(), target=target).bytes)
    assert not any(i.opcode[0] == "mma" for i in artifact.kernel.instructions)
    assert run(case, artifact, blocks=1) == []


@pytest.mark.parametrize("plan", [
    "block_q = 64, block_k = 32, warps = 4, q_in_registers = true",
    "block_q = 128, block_k = 16, warps = 4, stages = 2", "block_q = 16, block_k = 32, warps = 1"])
def test_plans_of_ieee(plan):
    assert run(IEEE, compiled(IEEE, f"#attn.plan<target = sm_80, {plan}>"), blocks=1) == []


@pytest.mark.parametrize("target", ["sm_80", "sm_90a"])
def test_one_key_is_its_value(target):
    """The unfused evaluation makes no error there, so none is allowed."""
    case = dataclasses.replace(IEEE, window=(0, 0, "bottom_right"), queries=130, magnitude=10.0)
    inputs = Inputs(case)
    artifact = Artifact(attn.compile(case.program(), target=target).bytes)
    assert run(case, artifact, inputs=inputs) == []
    assert (inputs.output.values() == inputs.value.values()).all()


def test_tensor_cores_cut_off():
    """A product beside a large accumulator loses its last bits, towards zero."""
    def step(accumulator, products):
        left = np.array(products + [0.0] * (8 - len(products))).reshape(1, 1, 8)
        total = np.full((1, 1, 1), accumulator)
        return float(multiply_accumulate_tf32(left, np.ones((1, 8, 1)), total)[0, 0, 0])
    assert step(0.0, [1.5, 0.25]) == 1.75
    assert step(1.0, [2.0**-23] * 4) == 1 + 2.0**-21
    assert step(1.0, [2.0**-24 * 1.75] * 4) == 1 + 2.0**-22  # each as 2^-24
    assert step(1.0, [2.0**-25] * 8) == 1.0
    assert step(-1.0, [-(2.0**-24)]) == -1.0


@pytest.mark.parametrize("element, magnitude", [("bf16", 80.0), ("f16", 8.0), ("f16", 80.0), ("f32", 80.0)])
def test_maximum_is_found_again(element, magnitude):
    """Scores so far apart that the maximum of the first block does not do."""
    case = dataclasses.replace(PLAIN, element=element, magnitude=magnitude, group=1)
    assert run(case, compiled(case), blocks=1) == []


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("stages", [1, 2, 3])
def test_warps_out_of_step(stages, seed):
    """No result may depend on how far one warp is ahead of another."""
    plan = PLAN.replace("stages = 2", f"stages = {stages}")
    assert run(PLAIN, compiled(PLAIN, plan), blocks=1, seed=seed) == []


def planted(change):
    """Whether some order of the warps shows the bug that `change` plants."""
    artifact = attn.compile(PLAIN.program(), target="sm_80", plan=PLAN).bytes
    good = Artifact(artifact)
    count = change(good.kernel.instructions)
    assert count, "nothing to change in this kernel"
    for seed in range(6):
        try:
            if run(PLAIN, good, blocks=1, seed=seed):
                return True
        except Fault:
            return True
    return False


def drop(instructions, pattern):
    """Turns the instructions whose text matches into moves to nowhere."""
    count = 0
    for instruction in instructions:
        if re.match(pattern, instruction.text):
            instruction.opcode, instruction.operands = ["mov", "b32"], ["_", "0"]
            count += 1
    return count


@pytest.mark.parametrize("pattern", [r"bar\.sync", r"cp\.async\.wait_group", r"cp\.async\.commit_group",
                                     r"shfl\.sync", r"mma\.sync", r"cp\.async\.cg"])
def test_missing_instruction_is_noticed(pattern):
    assert planted(lambda instructions: drop(instructions, pattern))


def test_late_wait_is_noticed():
    def one_more_in_flight(instructions):
        waits = [i for i in instructions if i.opcode[:3] == ["cp", "async", "wait_group"]]
        for wait in waits:
            wait.operands = [str(int(wait.operands[0]) + 1)]
        return len(waits)
    assert planted(one_more_in_flight)


def test_wrong_matrix_is_noticed():
    def not_transposed(instructions):
        loads = [i for i in instructions if i.opcode[0] == "ldmatrix" and "trans" in i.opcode]
        for load in loads:
            load.opcode = [word for word in load.opcode if word != "trans"]
        return len(loads)
    assert planted(not_transposed)
