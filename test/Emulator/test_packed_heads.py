#===----------------------------------------------------------------------===#
#
# Part of attn, an attention compiler.
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===----------------------------------------------------------------------===#
"""Rows of several query heads in a tile, on the emulated GPUs."""

import dataclasses

import attn
import pytest
from emulate import Artifact
from emulated_case import run
from test_kernels import PLAIN

CASE = dataclasses.replace(PLAIN, kv_heads=2, group=4, queries=3, keys=150)
PLANS = {
    "sm_80": "#attn.plan<target = sm_80, block_q = 64, block_k = 32, warps = 4, stages = 2, packed_heads = 4>",
    "sm_90a": "#attn.plan<target = sm_90a, block_q = 64, block_k = 32, warps = 4, stages = 2, packed_heads = 4>",
    "shared": "#attn.plan<target = sm_90a, block_q = 64, block_k = 32, warps = 4, scheduler = grid, blocks_per_sm = 2, "
              "split_keys = 16, packed_heads = 4>",
    "split": "#attn.plan<target = sm_90a, block_q = 128, block_k = 32, warps = 8, split_keys = 2, packed_heads = 16>",
}


@pytest.mark.parametrize("plan", PLANS)
@pytest.mark.parametrize("change", [
    dict(causal="bottom_right"), dict(group=6, queries=20, head_dim=128, value_dim=80, alibi="bottom_right")], ids=str)
def test_packed_heads(plan, change):
    case = dataclasses.replace(CASE, **change)
    target = "sm_80" if plan == "sm_80" else "sm_90a"
    artifact = Artifact(attn.compile(case.program(), target=target, plan=PLANS[plan]).bytes)
    assert run(case, artifact) == []


@pytest.mark.parametrize("target", ["sm_80", "sm_90a"])
@pytest.mark.parametrize("change", [dict(causal="bottom_right"), dict(window=(40, 0, "bottom_right")), dict(alibi="bottom_right")], ids=str)
def test_parts_of_full_tiles(target, change):
    """Queries fill several tiles, each of which shares out the keys that it sees."""
    case = dataclasses.replace(CASE, queries=150, keys=270, **change)
    plan = PLANS[target].replace("packed_heads = 4", "split_keys = 3")
    assert run(case, Artifact(attn.compile(case.program(), target=target, plan=plan).bytes)) == []


@pytest.mark.parametrize("target", ["sm_80", "sm_90a"])
@pytest.mark.parametrize("change, shared, blocks", [
    (dict(kv_heads=2, group=1, keys=90, alibi="bottom_right"), "", 3),
    (dict(kv_heads=1, queries=1, keys=1100, window=(700, 0, "bottom_right")), "packed_heads = 8", 2),
    (dict(kv_heads=1, queries=2, keys=1100, causal="bottom_right"), "split_keys = 4, packed_heads = 8", 2),
    (dict(group=3, queries=20, head_dim=128, value_dim=128, causal="bottom_right"), "packed_heads = 2", 2),
    (dict(kv_heads=3, group=1, queries=40, head_dim=128, value_dim=96), "", 2)], ids=str)
def test_plans_that_sizes_pick(target, change, shared, blocks):
    """Of few queries, one variant for the sizes of a launch."""
    case = dataclasses.replace(CASE, **change)
    heads = case.batch * case.kv_heads
    sizes = dict(query_length=case.queries, key_length=case.keys, batch_heads=heads * case.group,
                 batch_key_heads=heads, multiprocessors=4)
    artifact = Artifact(attn.compile(case.program(), target=target, sizes=sizes).bytes)
    plan = artifact.manifest["variants"][0]["plan"]
    assert shared in plan and ("split_keys" in plan) == ("split_keys" in shared)
    assert (f"blocks_per_sm = {blocks}" in plan) == (target == "sm_90a")
    assert run(case, artifact) == []


@pytest.mark.parametrize("target", ["sm_80", "sm_90a"])
@pytest.mark.parametrize("change, wanted", [
    (dict(kv_heads=2, group=1, queries=1, keys=700, causal="bottom_right"), "block_q = 16, block_k = 32, split_keys = 8>"),
    (dict(kv_heads=2, group=1, queries=20, keys=300), "block_q = 32, block_k = 32, warps = 2, split_keys = 4>"),
    (dict(kv_heads=1, queries=2, keys=600, window=(300, 0, "bottom_right"), f32_products="ieee"),
     "block_q = 64, block_k = 64, warps = 4, split_keys = 4, packed_heads = 8>"),
    (dict(kv_heads=1, group=2, queries=16, keys=330, head_dim=128, value_dim=96),
     "block_q = 64, block_k = 32, warps = 4, split_keys = 4, packed_heads = 4>"),
    (dict(kv_heads=1, group=2, queries=150, keys=270, alibi="bottom_right"),
     "block_q = 64, block_k = 64, warps = 4, split_keys = 2>")], ids=str)
def test_plans_of_f32_that_sizes_pick(target, change, wanted):
    """A warp for each 16 rows, and parts of few keys."""
    case = dataclasses.replace(CASE, element="f32", **change)
    heads = case.batch * case.kv_heads
    sizes = dict(query_length=case.queries, key_length=case.keys, batch_heads=heads * case.group,
                 batch_key_heads=heads, multiprocessors=16)
    artifact = Artifact(attn.compile(case.program(), target=target, sizes=sizes).bytes)
    plan = artifact.manifest["variants"][0]["plan"]
    assert wanted in plan, plan
    assert run(case, artifact) == []
