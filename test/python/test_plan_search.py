#===----------------------------------------------------------------------===#
#
# Part of attn, an attention compiler.
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===----------------------------------------------------------------------===#
"""Plans whose kernels spill are replaced once, and the cache remembers by which."""

import pathlib

import attn
import pytest

PTXAS = pathlib.Path(__file__).resolve().parents[1] / "Pipelines/Inputs/counting-ptxas"
TEXT = attn.attention("bf16", 128, variants=["causal"], name="wanted")


@pytest.fixture
def assembler(tmp_path, monkeypatch):
    """Gives the number of runs; the first two spill."""
    count = tmp_path / "count"
    monkeypatch.setenv("COUNT", str(count))
    monkeypatch.setenv("SPILLS", "88 40 0 0 0 0 0 0")
    return lambda: len(count.read_text().splitlines()) if count.exists() else 0


def plan_of(artifact):
    return artifact.manifest["variants"][0]["plan"]


def test_the_cache_remembers_the_search(assembler, tmp_path):
    options = dict(ptxas=str(PTXAS), cache=str(tmp_path / "cache"))
    first = attn.compile(TEXT, **options)
    assert assembler() == 3 and not first.from_cache
    assert "spills 88 bytes" in first.log and "which spills nothing" in first.log
    again = attn.compile(TEXT, **options)
    assert again.from_cache and assembler() == 3
    assert plan_of(again) == plan_of(first)


def test_the_plan_that_was_taken_is_a_plan(assembler, tmp_path):
    """Given by hand it is the same kernel; so is the first one, which is then kept."""
    options = dict(ptxas=str(PTXAS), cache=str(tmp_path / "cache"))
    picked = plan_of(attn.compile(TEXT, **options))
    by_hand = attn.compile(TEXT, plan=picked, **options)
    assert not by_hand.from_cache and by_hand.log == "" and plan_of(by_hand) == picked
    spilling = "#attn.plan<target = sm_80, block_q = 128, block_k = 48, warps = 4, stages = 2>"
    assert picked != spilling
    assert plan_of(attn.compile(TEXT, plan=spilling, **options)) == spilling


def test_one_variant_is_searched_for(assembler, tmp_path):
    """As if it were the only plan; it stays the part of the rule that was asked for."""
    sizes = dict(query_length=100000, key_length=1, batch_heads=1000, multiprocessors=1)
    options = dict(target="sm_90a", sizes=sizes, ptxas=str(PTXAS), cache=str(tmp_path / "cache"))
    artifact = attn.compile(TEXT, **options)
    made = artifact.manifest
    assert assembler() == 3 and "which spills nothing" in artifact.log
    rule, plans = made["of_rule"], attn.compile(TEXT, target="sm_90a").manifest
    # Before the cases of all sizes come those of few queries: seven numbers of parts for heads
    # by themselves, and for 8, 4, 2 and 1 in a tile, and three for full tiles.
    assert rule.count(";") == plans["rule"].count(";") + 38 and rule.endswith(f"; {made['variant_of_rule']}")
    assert plan_of(artifact) != plans["variants"][-1]["plan"]
    assert attn.compile(TEXT, **options).from_cache and assembler() == 3


@pytest.mark.parametrize("spills, runs", [("480", 1), ("488", 2)])
def test_plans_for_few_queries_may_spill_a_little(assembler, monkeypatch, spills, runs):
    """They wait for memory, and larger tiles would be for more queries."""
    monkeypatch.setenv("SPILLS", f"{spills} 0 0 0 0 0 0 0")
    monkeypatch.setenv("ENTRY", "wanted_parts")
    sizes = dict(query_length=1, key_length=16384, batch_heads=32, multiprocessors=132)
    artifact = attn.compile(TEXT, "sm_90a", ptxas=str(PTXAS), cache=None, sizes=sizes)
    assert assembler() == runs and ("split_keys = 16" in plan_of(artifact))


PLACE = "%i0 = arith.extsi %i : i32 to i64\n%i1 = arith.addi %i0, %place : i64\n%j1 = arith.extsi %j : i32 to i64\n"
DISTANCE = PLACE + """%d = arith.subi %i1, %j1 : i64
  %zero = arith.constant 0 : i64
  %last = arith.constant 256 : i64
  %d0 = arith.maxsi %d, %zero : i64
  %d1 = arith.minsi %d0, %last : i64
  %at = arith.trunci %d1 : i64 to i32
  %t = attn.capture_load %table[%h, %at] : tensor<?x?xf32>
  %y = arith.addf %x, %t : f32
  attn.yield %y : f32"""


def test_what_is_estimated_to_spill_a_little_is_assembled(assembler, monkeypatch):
    """Its estimate is below what such a plan may spill, and no other plan is asked for."""
    monkeypatch.setenv("SPILLS", "8 0")
    mask = PLACE + "%m = arith.cmpi sge, %i1, %j1 : i64\nattn.yield %m : i1"
    text = attn.attention("bf16", 64, score=DISTANCE, mask=mask, name="wanted",
                          captures=[("place", "i64"), ("table", "tensor<?x?xf32>")])
    sizes = dict(query_length=1, key_length=512, batch_heads=2048, multiprocessors=132)
    made = attn.compile(text, "sm_90a", ptxas=str(PTXAS), cache=None, sizes=sizes).manifest
    assert made["ptx_bytes"] > 0 and made["cubin_bytes"] > 0 and assembler() == 1


@pytest.mark.parametrize("spills, runs", [("288 0", 1), ("296 0", 2)])
def test_gradients_may_spill_a_little(assembler, monkeypatch, spills, runs):
    """Smaller tiles are slower than what that costs."""
    monkeypatch.setenv("SPILLS", spills)
    monkeypatch.setenv("ENTRY", "wanted_backward_d_query")
    attn.compile(TEXT, ptxas=str(PTXAS), backward=True)
    assert assembler() == runs


@pytest.mark.parametrize("length, entry, ending", [
    (None, "d_query", "stages = 2>"), (None, "variant1_d_key_value", "stages = 2>"), (100, "d_query", ", scores = twice>")])
def test_forms_of_gradients_that_spill(assembler, monkeypatch, length, entry, ending):
    """Two programs for few queries, one for many: what is taken for all lengths leaves open
    how many; for few queries there stay two."""
    monkeypatch.setenv("SPILLS", "296 0")
    monkeypatch.setenv("ENTRY", f"wanted_backward_{entry}")
    text = attn.attention("bf16", 128, numerics="deterministic = false", name="wanted")
    sizes = length and dict(query_length=length, key_length=100, batch_heads=1, multiprocessors=1)
    artifact = attn.compile(text, ptxas=str(PTXAS), backward=True, sizes=sizes)
    assert assembler() == 2 and "which spills nothing" in artifact.log
    (variant,) = artifact.manifest["variants"]
    assert variant["plan"].endswith(ending)
    assert "of_rule" in artifact.manifest if length else "of_rule" not in artifact.manifest
