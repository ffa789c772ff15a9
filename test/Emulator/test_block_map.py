#===----------------------------------------------------------------------===#
#
# Part of attn, an attention compiler.
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===----------------------------------------------------------------------===#
"""Masks that only data decide: kernels before the attention list the key
blocks. The lists are looked at, and the results, on the emulated GPU."""

import dataclasses

import attn
import emulate
import numpy as np
import pytest
from cases import Case
from emulate import Artifact, launch
from emulated_case import Array, Inputs, judge

CASE = Case(index=1, seed=1, element="bf16", head_dim=64, value_dim=64, batch=1,
            kv_heads=1, group=1, queries=90, keys=250, layouts=("bhsd",) * 4,
            padding=((0, 0),) * 4)

PLANS = {
    "sm_80": "#attn.plan<target = sm_80, block_q = 64, block_k = 32, warps = 4, stages = 2>",
    "sm_90a": "#attn.plan<target = sm_90a, block_q = 128, block_k = 64, warps = 8, stages = 2>",
}
BLOCK = {"sm_80": (64, 32), "sm_90a": (128, 64)}

# A captured map says which squares of 32 x 48 show; per head or for all.
MASK = """
  %rows = arith.constant 32 : i32
  %columns = arith.constant 48 : i32
  %zero = arith.constant 0 : i32
  %bi = arith.divsi %i, %rows : i32
  %bj = arith.divsi %j, %columns : i32
  %e = attn.capture_load %map[HEAD, %bi, %bj] : tensor<?x?x?xi32>
  %shown = arith.cmpi ne, %e, %zero : i32
  attn.yield %shown : i1
"""


class BlockMapInputs(Inputs):
    def __init__(self, case, per_head, density, square=(32, 48)):
        super().__init__(case)
        rows, columns = self.square = square
        shape = (case.heads if per_head else 1, -(-case.queries // rows), -(-case.keys // columns))
        rng = np.random.default_rng(7)
        self.map = (rng.random(shape) < density).astype(np.int32)
        self.captures = [Array("i32", shape).set(self.map)]
        self.head = 0

    def visible(self, b):
        squares = self.map[self.head % len(self.map)]
        shown = np.repeat(np.repeat(squares, self.square[0], axis=0), self.square[1], axis=1)
        return (shown[: self.case.queries, : self.case.keys] != 0) & super().visible(b)

    def evaluate(self, b, h, exact):
        self.head = h
        return super().evaluate(b, h, exact)


def program(case, per_head, square=(32, 48)):
    return attn.attention(case.element, case.head_dim, batch=case.batch, heads=case.heads,
                          kv_heads=case.kv_heads,
                          variants=[f"causal<{case.causal}>"] if case.causal else [],
                          captures=[("map", "tensor<?x?x?xi32>")],
                          mask=MASK.replace("HEAD", "%h" if per_head else "%zero")
                          .replace("32 : i32", f"{square[0]} : i32")
                          .replace("48 : i32", f"{square[1]} : i32"))


def expected_lists(visible, block):
    """(partial, full) per query block."""
    rows, columns = block
    lists = []
    for q in range(0, visible.shape[0], rows):
        partial, full = [], []
        for n in range(-(-visible.shape[1] // columns)):
            tile = visible[q : q + rows, n * columns : (n + 1) * columns]
            if tile.shape[1] == columns and tile.all():
                full.append(n)
            elif tile.any():
                partial.append(n)
        lists.append((partial, full))
    return lists


@pytest.mark.parametrize("density, per_head", [(0.0, False), (0.15, True), (0.9, False)])
@pytest.mark.parametrize("target", ["sm_80", "sm_90a"])
def test_block_map(target, density, per_head):
    case = dataclasses.replace(CASE, group=2) if per_head else CASE
    inputs = BlockMapInputs(case, per_head, density)
    artifact = Artifact(attn.compile(program(case, per_head), target, PLANS[target]).bytes)
    # Idle warps of sm_90a do what blocks without keys are for.
    helpers = ["attention_block_states", "attention_block_lists", "attention_empty_blocks"]
    helpers = helpers[:2] if target == "sm_90a" else helpers
    kernels = artifact.variant["kernels"]
    assert [k["entry"] for k in kernels] == [*helpers, "attention"]
    outputs = [n for n, info in enumerate(artifact.manifest["arguments"]) if info["output"]]
    assert all(k["results"] in ([], outputs) for k in kernels)
    assert [bool(k["results"]) for k in kernels] == [n >= 2 for n in range(len(kernels))]
    assert ["warps = 4" in k["plan"] for k in kernels[:-1]] == [False] * len(helpers)
    launch(artifact, inputs.tensors())

    states, counts, lists = artifact.workspaces[-3:]
    heads = case.heads if per_head else 1
    assert counts.shape == [1, heads, -(-case.queries // BLOCK[target][0]), 2]
    counts = counts.bits.view(np.int32).reshape(counts.shape)
    lists = lists.bits.view(np.int32).reshape(lists.shape)
    for h in range(heads):
        inputs.head = h
        for q, (partial, full) in enumerate(expected_lists(inputs.visible(0), BLOCK[target])):
            assert list(counts[0, h, q]) == [len(partial), len(full)]
            listed = partial + full + [-(-case.keys // BLOCK[target][1])]
            assert list(lists[0, h, q, : len(listed)]) == listed
    assert judge(case, inputs, complete=True) == []


@pytest.mark.parametrize("square, causal", [((128, 64), ""), ((64, 32), ""), ((256, 192), ""),
                                            ((128, 32), ""), ((256, 192), "bottom_right"),
                                            ((128, 64), "top_left")])
@pytest.mark.parametrize("target", ["sm_80", "sm_90a"])
def test_many_pairs_at_once(target, square, causal):
    """Pairs of few groups, some in each lane: more tiles and blocks than a warp
    takes, and ends in the middle of tiles and blocks. Causal ones by bounds, and
    the last tile first."""
    block = BLOCK[target]
    case = dataclasses.replace(CASE, queries=17 * block[0] + 5, keys=18 * block[1] - 3,
                               causal=causal)
    inputs = BlockMapInputs(case, False, 0.1 if causal else 0.03, square)
    artifact = Artifact(attn.compile(program(case, False, square), target, PLANS[target]).bytes)
    launch(artifact, inputs.tensors())
    states, counts, lists = (memory.bits.view(np.int8 if number == 0 else np.int32)
                             .reshape(memory.shape)
                             for number, memory in enumerate(artifact.workspaces[-3:]))
    blocks = -(-case.keys // block[1])
    wanted = expected_lists(inputs.visible(0), block)
    for tile, (partial, full) in enumerate(reversed(wanted) if causal else wanted):
        assert list(np.flatnonzero(states[0, 0, tile])) == sorted(partial + full)
        assert list(counts[0, 0, tile]) == [len(partial), len(full)]
        listed = partial + full + [blocks]
        assert list(lists[0, 0, tile, : len(listed)]) == listed
    assert judge(case, inputs, complete=True) == []


def test_groups_that_lanes_do_not_divide():
    """48 keys are 12 groups of 4 columns that are alike."""
    plan = PLANS["sm_80"].replace("block_k = 32", "block_k = 48")
    inputs = BlockMapInputs(CASE, False, 0.4, square=(64, 100))
    artifact = Artifact(attn.compile(program(CASE, False, (64, 100)), "sm_80", plan).bytes)
    launch(artifact, inputs.tensors())
    assert judge(CASE, inputs, complete=True) == []


def test_without_the_pass():
    """Slower, and the same."""
    inputs = BlockMapInputs(CASE, False, 0.3)
    artifact = Artifact(attn.compile(program(CASE, False), "sm_80", PLANS["sm_80"],
                                     disable=["tile-list-blocks"]).bytes)
    assert len(artifact.kernels) == 1 and artifact.variant["workspaces"] == []
    launch(artifact, inputs.tensors())
    assert judge(CASE, inputs, complete=True) == []


# Query blocks that see something, of those of 128 rows, for each head.
WORK = {"none": [[0, 0, 0, 0, 0], [0, 0, 0, 0, 0]], "ends": [[1, 0, 0, 0, 1], [0, 0, 0, 0, 1]],
        "middle": [[0, 0, 1, 0, 0], [0, 1, 1, 1, 0]], "all": [[1] * 5] * 2}


@pytest.mark.parametrize("work", WORK)
@pytest.mark.parametrize("scheduler", ["grid", "static", "dynamic"])
def test_idle_tiles(scheduler, work, monkeypatch):
    """Blocks pass over tiles in which nothing shows, however they come by tiles;
    the results of these are zeros, or what the sink leaves."""
    monkeypatch.setattr(emulate, "MULTIPROCESSORS", 3)
    case = dataclasses.replace(CASE, queries=520, keys=100, group=2)
    inputs = BlockMapInputs(case, True, 0.8)
    rows = np.array(WORK[work], np.int32).repeat(4, axis=1)[:, : inputs.map.shape[1]]
    inputs.map *= rows[:, :, None]
    inputs.captures[0].set(inputs.map)
    plan = PLANS["sm_90a"].replace("stages = 2", f"stages = 2, scheduler = {scheduler}")
    artifact = Artifact(attn.compile(program(case, True), "sm_90a", plan).bytes)
    launch(artifact, inputs.tensors())
    assert judge(case, inputs, complete=True) == []
    for description, memory in zip(artifact.variant["workspaces"], artifact.workspaces):
        if description["restored"]:
            assert not memory.bits.any()


# Documents in any order, each batch entry's own; a query is the last one, or one of
# those before it.
DOCUMENTS = """
  %first = arith.constant FIRST : i32
  %place = arith.addi %i, %first : i32
  %mine = attn.capture_load %ids[%b, %place] : tensor<?x?xi32>
  %one = attn.capture_load %ids[%b, %j] : tensor<?x?xi32>
  %shown = arith.cmpi eq, %mine, %one : i32
  attn.yield %shown : i1
"""


class DocumentInputs(Inputs):
    def __init__(self, case):
        super().__init__(case)
        rng = np.random.default_rng(8)
        # 40 keys in a row, so that blocks show all, some and nothing; one of them alone.
        ids = rng.integers(0, 5, (case.batch, 1 + case.keys // 40)).astype(np.int32)
        self.ids = np.repeat(ids, 40, axis=1)[:, : case.keys]
        self.ids[:, -1] = 9
        self.captures = [Array("i32", self.ids.shape).set(self.ids)]

    def visible(self, b):
        mine = self.ids[b, self.case.keys - self.case.queries :]
        return mine[:, None] == self.ids[b][None, :]


@pytest.mark.parametrize("queries", [1, 23, 70])
@pytest.mark.parametrize("split_keys", [1, 3])
@pytest.mark.parametrize("target", ["sm_80", "sm_90a"])
def test_tiles_of_several_heads(target, split_keys, queries):
    """Of a mask that is the same for them; parts of the keys share one list."""
    case = dataclasses.replace(CASE, batch=2, kv_heads=2, group=3, queries=queries)
    inputs = DocumentInputs(case)
    text = attn.attention(case.element, case.head_dim, batch=case.batch, heads=case.heads, kv_heads=case.kv_heads,
                          captures=[("ids", "tensor<?x?xi32>")],
                          mask=DOCUMENTS.replace("FIRST", str(case.keys - queries)))
    plan = PLANS[target].replace("block_q = 128", "block_q = 64").replace("warps = 8", "warps = 4")
    plan = plan.replace(">", f", split_keys = {split_keys}, packed_heads = 2>")
    artifact = Artifact(attn.compile(text, target, plan).bytes)
    assert sum("block_states" in k["entry"] for k in artifact.variant["kernels"]) == 1
    launch(artifact, inputs.tensors())
    rows, columns = 32, BLOCK[target][1]
    (counts,) = (w for w in artifact.workspaces if w.shape == [2, 1, -(-queries // rows), 2])
    counts = counts.bits.view(np.int32).reshape(counts.shape)
    for b in range(case.batch):
        for q, (partial, full) in enumerate(expected_lists(inputs.visible(b), (rows, columns))):
            assert list(counts[b, 0, q]) == [len(partial), len(full)]
    assert judge(case, inputs, complete=True) == []


def test_heads_of_a_tile_with_masks_of_their_own():
    """There is no list for them, and the results are right all the same."""
    case = dataclasses.replace(CASE, group=2, queries=5)
    inputs = BlockMapInputs(case, True, 0.5)
    plan = PLANS["sm_80"].replace(">", ", packed_heads = 2>")
    artifact = Artifact(attn.compile(program(case, True), "sm_80", plan).bytes)
    assert len(artifact.kernels) == 1
    launch(artifact, inputs.tensors())
    assert judge(case, inputs, complete=True) == []
