#===----------------------------------------------------------------------===#
#
# Part of attn, an attention compiler.
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===----------------------------------------------------------------------===#
"""Kernels for sm_90a on the emulated GPU, against float64; and bugs planted in
them, each of which has to be noticed."""

import dataclasses
import random
import re

import attn
import pytest
from cases import Case
from emulate import Artifact
from emulated_case import Inputs, run
from machine import Block
from memory import Fault
from test_kernels import drop

PLAIN = Case(index=1, seed=1, element="bf16", head_dim=64, value_dim=64, batch=1,
             kv_heads=1, group=2, queries=150, keys=200, layouts=("bshd",) * 4,
             padding=((0, 0),) * 4)


def plan(block_q=128, block_k=64, stages=2, scheduler="auto"):
    return (f"#attn.plan<target = sm_90a, block_q = {block_q}, block_k = {block_k}, "
            f"warps = {block_q // 16}, stages = {stages}, scheduler = {scheduler}>")


def compiled(case, text=None, disable=None, enable=None):
    return Artifact(attn.compile(case.program(), target="sm_90a", plan=text or plan(),
                                 disable=disable, enable=enable).bytes)


OPTIONAL = ["tile-order-blocks", "tile-peel-masks", "tile-group-bounds", "tile-reverse-keys",
            "tile-fold-exp2", "tile-overlap-products", "tile-lazy-max", "warp-defer-sum", "warp-persist",
            "warp-specialize", "warp-delay-exchange", "warp-buffer", "warp-make-async", "warp-insert-turns",
            "warp-stage-stores", "warp-deepen-rings", "warp-test-ahead",
            "warp-run-beside", "warp-start-early", "warp-expand-tanh"]
DROPPED = [[name] for name in OPTIONAL] + [OPTIONAL] + [
    random.Random(seed).sample(OPTIONAL, random.Random(seed).randint(2, 8)) for seed in range(12)]


@pytest.mark.parametrize("causal", ["", "bottom_right"])
@pytest.mark.parametrize("head_dim", [64, 128, 80, 256])
def test_head_dims(head_dim, causal):
    case = dataclasses.replace(PLAIN, head_dim=head_dim, value_dim=head_dim, causal=causal)
    assert run(case, compiled(case), blocks=2) == []


@pytest.mark.parametrize("queries, keys", [(1, 1), (127, 63), (128, 64), (129, 65), (5, 257)])
def test_lengths(queries, keys):
    case = dataclasses.replace(PLAIN, queries=queries, keys=keys, causal="top_left")
    assert run(case, compiled(case), blocks=2) == []


@pytest.mark.parametrize("change", [dict(element="f16"), dict(head_dim=192, value_dim=128),
                                    dict(kv_heads=2, group=3, batch=2), dict(softcap=20.0)])
def test_programs(change):
    case = dataclasses.replace(PLAIN, **change)
    assert run(case, compiled(case), blocks=2) == []


@pytest.mark.parametrize("element, magnitude", [("bf16", 4.0), ("bf16", 80.0), ("f16", 8.0), ("f16", 80.0)])
def test_maximum_is_found_again(element, magnitude):
    """Scores so far apart that the maximum of the first block does not do."""
    case = dataclasses.replace(PLAIN, element=element, magnitude=magnitude, keys=400, causal="bottom_right")
    assert run(case, compiled(case), blocks=1) == []


@pytest.mark.parametrize("dropped", [[], ["tile-overlap-products"], ["tile-reverse-keys"]], ids=",".join)
@pytest.mark.parametrize("change", [dict(causal="bottom_right"), dict(window=(70, 0, "bottom_right")),
                                    dict(causal="top_left", queries=70, keys=300)], ids=str)
def test_scores_that_grow(change, dropped):
    """From the last key to the first: rows see nothing in the first blocks."""
    case = dataclasses.replace(PLAIN, **{"keys": 230, "alibi": "bottom_right", **change})
    assert run(case, compiled(case, disable=dropped), blocks=2) == []


def test_first_block_shows_rows_nothing():
    case = dataclasses.replace(PLAIN, window=(70, 20, "top_left"), keys=300, queries=300)
    assert run(case, compiled(case), blocks=2) == []


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("stages", [1, 2])
def test_warps_out_of_step(stages, seed):
    assert run(PLAIN, compiled(PLAIN, plan(stages=stages)), blocks=1, seed=seed) == []


@pytest.mark.parametrize("seed", [None, 0])
@pytest.mark.parametrize("multiprocessors", [1, 3])
def test_blocks_take_several_tiles(multiprocessors, seed, monkeypatch):
    monkeypatch.setattr("emulate.MULTIPROCESSORS", multiprocessors)
    case = dataclasses.replace(PLAIN, batch=2, queries=300, keys=130)
    assert run(case, compiled(case), seed=seed) == []


@pytest.mark.parametrize("seed", [None, 0])
@pytest.mark.parametrize("multiprocessors", [1, 2, 3])
def test_blocks_draw_tiles(multiprocessors, seed, monkeypatch):
    """Tiles of unequal work; the last draw leaves the counter as it was."""
    monkeypatch.setattr("emulate.MULTIPROCESSORS", multiprocessors)
    case = dataclasses.replace(PLAIN, batch=2, queries=300, keys=130 + 64 * multiprocessors,
                               causal="top_left")
    artifact = compiled(case)
    assert run(case, artifact, seed=seed) == []
    [counter] = artifact.workspaces
    assert not counter.bits.any()


@pytest.mark.parametrize("multiprocessors", [5, 6])
def test_nothing_is_drawn_where_each_tile_has_a_block(multiprocessors, monkeypatch):
    """Six tiles: with a multiprocessor for each there is no counter, and nobody asks for it."""
    drawn, compile_atom = [], Block.compile_atom

    def compile_counted(block, words, operands):
        draw = compile_atom(block, words, operands)

        def step(mask, pc):
            drawn.append(pc)
            return draw(mask, pc)
        return step

    monkeypatch.setattr(Block, "compile_atom", compile_counted)
    monkeypatch.setattr("emulate.MULTIPROCESSORS", multiprocessors)
    case = dataclasses.replace(PLAIN, queries=300, causal="top_left")
    artifact = compiled(case)
    assert run(case, artifact) == []
    [counter] = artifact.workspaces
    assert (counter.bits.size, len(drawn)) == ((4, 6) if multiprocessors < 6 else (0, 0))


@pytest.mark.parametrize("scheduler", ["grid", "static", "dynamic"])
@pytest.mark.parametrize("causal", ["", "bottom_right"])
def test_schedulers(causal, scheduler, monkeypatch):
    monkeypatch.setattr("emulate.MULTIPROCESSORS", 2)
    case = dataclasses.replace(PLAIN, batch=2, queries=200, keys=130, causal=causal)
    assert run(case, compiled(case, plan(scheduler=scheduler))) == []


@pytest.mark.parametrize("scheduler", ["static", "dynamic"])
def test_only_one_tile_for_each_head(scheduler, monkeypatch):
    """The block number is always 0."""
    monkeypatch.setattr("emulate.MULTIPROCESSORS", 2)
    case = dataclasses.replace(PLAIN, queries=60, keys=77, causal="top_left")
    assert run(case, compiled(case, plan(scheduler=scheduler))) == []


@pytest.mark.parametrize("kv_heads, group", [(7, 5), (37, 1), (9, 4)])
def test_heads_in_groups(kv_heads, group, monkeypatch):
    """More heads than a group has, and an odd rest."""
    monkeypatch.setattr("emulate.MULTIPROCESSORS", 5)
    case = dataclasses.replace(PLAIN, batch=1, kv_heads=kv_heads, group=group, queries=70, keys=70,
                               causal="bottom_right")
    assert run(case, compiled(case, plan(block_q=64))) == []


@pytest.mark.parametrize("dropped", DROPPED, ids=",".join)
def test_passes_may_be_dropped(dropped, monkeypatch):
    """Any of the optional passes: the kernel is slower, never wrong."""
    monkeypatch.setattr("emulate.MULTIPROCESSORS", 2)
    for causal in ["", "bottom_right"]:
        case = dataclasses.replace(PLAIN, causal=causal)
        enable = ["warp-double-buffer"] if len(dropped) > 1 else None
        kernel = compiled(case, disable=dropped, enable=enable)
        assert run(case, kernel, blocks=1, seed=1) == []


@pytest.mark.parametrize("seed", [None, 1])
@pytest.mark.parametrize("block_q", [128, 192, 256])
@pytest.mark.parametrize("change", [dict(), dict(causal="bottom_right"), dict(window=(70, 20, "top_left"))], ids=str)
def test_ends_take_turns(change, block_q, seed, monkeypatch):
    """Tile after tile, all groups take as many turns."""
    monkeypatch.setattr("emulate.MULTIPROCESSORS", 2)
    case = dataclasses.replace(PLAIN, queries=300, keys=300, **change)
    kernel = compiled(case, plan(block_q, stages=4), enable=["warp-turn-ends"])
    turns = [k.module.text.count("bar.arrive") for k in (kernel, compiled(case, plan(block_q, stages=4)))]
    assert turns[0] == turns[1] + 2
    assert run(case, kernel, seed=seed) == []


@pytest.mark.parametrize("seed", [None, 0, 1])
@pytest.mark.parametrize("block_q", [192, 256])
@pytest.mark.parametrize("window", [(70, 0), (20, 130)], ids=str)
def test_groups_go_through_windows_alone(window, block_q, seed, monkeypatch):
    """Without turns, each through the blocks that its own rows see."""
    monkeypatch.setattr("emulate.MULTIPROCESSORS", 2)
    case = dataclasses.replace(PLAIN, queries=500, keys=450, window=(*window, "bottom_right"))
    kernel = compiled(case, plan(block_q, stages=4), disable=["warp-insert-turns"])
    assert run(case, kernel, seed=seed) == []


@pytest.mark.parametrize("enable", [["warp-test-ahead"], ["warp-test-ahead", "warp-double-buffer"]], ids=",".join)
@pytest.mark.parametrize("change", [dict(), dict(causal="bottom_right"), dict(window=(70, 20, "top_left"))], ids=str)
@pytest.mark.parametrize("stages, seed", [(1, None), (1, 1), (2, 2), (3, 3)])
def test_items_are_tested_ahead(stages, seed, change, enable):
    """With a seed half of the answers are no."""
    case = dataclasses.replace(PLAIN, queries=300, keys=500, **change)
    kernel = compiled(case, plan(stages=stages), enable=enable)
    assert "mbarrier.test_wait" in kernel.module.text
    assert run(case, kernel, blocks=2, seed=seed) == []


def test_three_groups_test_ahead():
    case = dataclasses.replace(PLAIN, queries=200, keys=300)
    kernel = compiled(case, plan(block_q=192))
    assert "mbarrier.test_wait" in kernel.module.text
    assert run(case, kernel, blocks=1, seed=1) == []
    assert "mbarrier.test_wait" not in compiled(case).module.text


@pytest.mark.parametrize("head_dim", [64, 128])
@pytest.mark.parametrize("keys", [60, 64, 130, 192, 256, 320])
def test_weights_in_two_sets_of_registers(keys, head_dim):
    """None to four steps in the loops: the same bits as in one set."""
    case = dataclasses.replace(PLAIN, keys=keys, head_dim=head_dim, value_dim=head_dim, queries=130,
                               causal="bottom_right", magnitude=8.0)
    results = []
    for enable in [None, ["warp-double-buffer"]]:
        inputs = Inputs(case)
        assert run(case, compiled(case, enable=enable), blocks=1, seed=keys, inputs=inputs) == []
        results.append((inputs.output.view.tobytes(), inputs.lse.view.tobytes()))
    assert results[0] == results[1]


def is_noticed(change):
    good = compiled(PLAIN)
    assert change(good.kernel.instructions), "nothing to change in this kernel"
    for seed in range(4):
        try:
            if run(PLAIN, good, blocks=1, seed=seed):
                return True
        except Fault:
            return True
    return False


@pytest.mark.parametrize("pattern", [r"wgmma\.wait_group", r"wgmma\.commit_group", r"wgmma\.mma_async",
                                     r"cp\.async\.bulk\.wait_group", r"cp\.async\.bulk\.commit_group",
                                     r"cp\.async\.bulk\.tensor\.4d\.global", r"fence\.proxy"])
def test_missing_instruction_is_noticed(pattern):
    assert is_noticed(lambda instructions: drop(instructions, pattern))


@pytest.mark.parametrize("pattern", [r".*st\.shared\.b32"])
def test_missing_number_is_noticed(pattern, monkeypatch):
    """A tile that is drawn, told to the other lanes, and to the consumer."""
    monkeypatch.setattr("emulate.MULTIPROCESSORS", 1)
    case = dataclasses.replace(PLAIN, causal="top_left", keys=130)
    good = compiled(case)
    assert drop(good.kernel.instructions, pattern)
    try:
        assert run(case, good)
    except Fault:
        pass


def test_wrong_transpose_is_noticed():
    def flip(instructions):
        products = [i for i in instructions if i.opcode[:2] == ["wgmma", "mma_async"]]
        for product in products:
            product.operands[-1] = "1" if product.operands[-1] == "0" else "0"
        return len(products)
    assert is_noticed(flip)


def test_wrong_descriptor_is_noticed():
    def other_panel(instructions):
        count = 0
        for i in instructions:
            if re.match(r"add\.s32 low, .*, 2$", i.text):
                i.operands[-1], count = "4", count + 1
        return count
    assert is_noticed(other_panel)


@pytest.mark.parametrize("dropped", [[], ["tile-overlap-products"], ["warp-specialize"], ["tile-lazy-max"], OPTIONAL],
                         ids=",".join)
@pytest.mark.parametrize("change", [{}, dict(causal="bottom_right"), dict(alibi="top_left", head_dim=128),
                                    dict(documents=True), dict(value_dim=128, group=1)])
def test_no_keys(change, dropped, monkeypatch):
    """o = 0 and lse = -inf, whatever a box of nothing shows."""
    monkeypatch.setattr("emulate.MULTIPROCESSORS", 2)
    case = dataclasses.replace(PLAIN, keys=0, **change)
    case.value_dim = change.get("value_dim", case.head_dim)
    assert run(case, compiled(case, disable=dropped)) == []
