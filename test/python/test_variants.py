#===----------------------------------------------------------------------===#
#
# Part of attn, an attention compiler.
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===----------------------------------------------------------------------===#
"""Several variants of one kernel, and the rule that picks one."""

import json
import os
import pathlib
import re
import subprocess
import sys

import attn
import pytest
from attn import _capi

PLANS = ["#attn.plan<target = sm_80, block_q = 64, block_k = 32, warps = 4>",
         "#attn.plan<target = sm_80, block_q = 128, block_k = 64, warps = 4, stages = 2>"]
RULE = f"query_length <= 100 -> {PLANS[0]}; {PLANS[1]}"


def test_a_rule_that_is_given():
    artifact = attn.compile(attn.attention("bf16", 64), plan=RULE)
    assert artifact.manifest["rule"] == "query_length <= 100 -> 0; 1"
    assert [variant["plan"] for variant in artifact.manifest["variants"]] == PLANS
    assert "remark: compiled in 2 variants: " + RULE in artifact.log
    assert attn.Artifact.load(artifact.bytes).manifest == artifact.manifest


def test_variants_are_the_kernels_of_their_plans():
    """But for the names."""
    text = attn.attention("bf16", 64, variants=["causal"])
    both = attn.compile(text, plan=RULE).manifest
    for variant, plan in zip(both["variants"], PLANS):
        (alone,) = attn.compile(text, plan=plan).manifest["variants"]
        for kernel, other in zip(variant["kernels"], alone["kernels"], strict=True):
            kernel["entry"] = other["entry"]
        assert variant == alone


def test_rules_and_plans_are_part_of_the_cache_key(tmp_path):
    text = attn.attention("bf16", 64)
    rules = [RULE, RULE.replace("100", "200"), RULE.replace("block_k = 64", "block_k = 32"),
             RULE.replace("query_length", "key_length"), PLANS[0]]
    made = [attn.compile(text, plan=rule, cache=tmp_path) for rule in rules]
    assert not any(artifact.from_cache for artifact in made)
    again = [attn.compile(text, plan=rule, cache=tmp_path) for rule in rules]
    assert all(artifact.from_cache for artifact in again)
    assert [artifact.bytes for artifact in again] == [artifact.bytes for artifact in made]
    assert len({artifact.bytes for artifact in made}) == len(rules)


def sizes(query_length, key_length=64, batch_heads=4, multiprocessors=132):
    return dict(query_length=query_length, key_length=key_length, batch_heads=batch_heads,
                multiprocessors=multiprocessors)


@pytest.mark.parametrize("length, number", [(0, 0), (100, 0), (101, 1)])
def test_sizes_ask_for_one_variant(length, number):
    """It is the kernel that it is among all, and says which one of which rule."""
    text = attn.attention("bf16", 64)
    every = attn.compile(text, plan=RULE).manifest
    artifact = attn.compile(text, plan=RULE, sizes=sizes(length))
    made = attn.Artifact.load(artifact.bytes).manifest
    (alone,), wanted = made["variants"], every["variants"][number]
    for kernel, other in zip(alone["kernels"], wanted["kernels"], strict=True):
        kernel["entry"] = other["entry"]
    assert alone == wanted
    assert (made["rule"], made["of_rule"], made["variant_of_rule"]) == ("0", every["rule"], number)
    assert f"remark: compiled in variant {number} of '{every['rule']}'" in artifact.log
    assert "of_rule" not in every and "variant_of_rule" not in every


@pytest.mark.parametrize("condition, others", [
    ("key_length > 64", dict(key_length=65)), ("batch_heads == 5", dict(batch_heads=5)),
    ("batch_heads * query_length <= 3 * multiprocessors", dict(multiprocessors=134))])
def test_every_size_counts(condition, others):
    text, rule = attn.attention("bf16", 64), f"{condition} -> {PLANS[0]}; {PLANS[1]}"
    numbers = [attn.compile(text, plan=rule, sizes={**sizes(100), **given}).manifest["variant_of_rule"]
               for given in (others, {})]
    assert numbers == [0, 1]


def test_cases_of_one_plan_are_one_variant(tmp_path):
    rule = f"query_length <= 100 -> {PLANS[0]}; query_length <= 200 -> {PLANS[1]}; {PLANS[0]}"
    made = [attn.compile(attn.attention("bf16", 64), plan=rule, cache=tmp_path, sizes=sizes(length))
            for length in (50, 150, 250)]
    assert [artifact.manifest["variant_of_rule"] for artifact in made] == [0, 1, 0]
    assert made[0].manifest["of_rule"] == "query_length <= 100 -> 0; query_length <= 200 -> 1; 0"
    assert [artifact.from_cache for artifact in made] == [False, False, True]


def test_sizes_say_nothing_of_one_plan(tmp_path):
    text = attn.attention("bf16", 64)
    made = attn.compile(text, plan=PLANS[0], cache=tmp_path, sizes=sizes(50))
    assert "of_rule" not in made.manifest and "variant" not in made.log
    again = attn.compile(text, plan=PLANS[0], cache=tmp_path)
    assert again.from_cache and again.bytes == made.bytes


def test_the_cache_knows_variants_and_not_sizes(tmp_path):
    text, options = attn.attention("bf16", 64), dict(plan=RULE, cache=tmp_path)
    made = [attn.compile(text, sizes=sizes(length), **options) for length in (1, 100, 101, 9000)]
    assert [artifact.from_cache for artifact in made] == [False, True, False, True]
    assert [artifact.manifest["variant_of_rule"] for artifact in made] == [0, 0, 1, 1]
    assert made[0].bytes == made[1].bytes and made[2].bytes == made[3].bytes
    every = attn.compile(text, **options)
    assert not every.from_cache and len(every.manifest["variants"]) == 2


def test_all_variants_serve_all_sizes(tmp_path):
    """What was compiled without sizes is not compiled again with some."""
    text, options = attn.attention("bf16", 64), dict(plan=RULE, cache=tmp_path)
    every = attn.compile(text, **options)
    made = attn.compile(text, sizes=sizes(100), **options)
    assert made.from_cache and made.bytes == every.bytes


def test_sizes_of_a_function_and_its_gradients():
    made = attn.compile(attn.attention("bf16", 64), plan=RULE, backward_plan=PLANS[0], with_backward=True,
                        sizes=sizes(101)).manifest
    assert made["variant_of_rule"] == 1
    assert "variant_of_rule" not in made["companions"][0]


WINDOW = """%d = arith.subi %i, %j : i32
      %reach = arith.constant {} : i32
      %near = arith.cmpi slt, %d, %reach : i32
      %before = arith.cmpi sge, %i, %j : i32
      %m = arith.andi %near, %before : i1
      attn.yield %m : i1"""
DECODE = dict(query_length=1, key_length=16384, batch_heads=32)


def plan_for(text, **changes):
    (variant,) = attn.compile(text, target="sm_90a", sizes={**sizes(1), **DECODE, **changes}).manifest["variants"]
    return variant["plan"]


@pytest.mark.parametrize("changes, shared", [
    ({}, ", split_keys = 16, packed_heads = 8>"), (dict(batch_heads=16), ", split_keys = 32, packed_heads = 8>"),
    (dict(batch_heads=8), ", split_keys = 64, packed_heads = 8>"),
    (dict(batch_heads=17), ", split_keys = 16, packed_heads = 8>"),
    (dict(batch_heads=16, key_length=8191), ", split_keys = 16, packed_heads = 8>"),
    (dict(query_length=8, batch_heads=64), ", split_keys = 8, packed_heads = 8>"),
    (dict(batch_heads=65), ", split_keys = 4, packed_heads = 8>"),
    (dict(key_length=4095), ", split_keys = 8, packed_heads = 8>"),
    (dict(key_length=2047), ", split_keys = 4, packed_heads = 8>"),
    (dict(batch_heads=132), ", split_keys = 4, packed_heads = 8>"),
    (dict(batch_heads=133), ", split_keys = 2, packed_heads = 8>"),
    (dict(batch_heads=264), ", split_keys = 2, packed_heads = 8>"),
    (dict(batch_heads=264, key_length=2047), ", packed_heads = 8>"),
    (dict(batch_heads=265), ", packed_heads = 8>"), (dict(key_length=1023), ", packed_heads = 8>"),
    (dict(batch_key_heads=16), ", split_keys = 8, packed_heads = 8>"), (dict(batch_key_heads=32), ", split_keys = 4>"),
    (dict(batch_key_heads=32, query_length=64), ", split_keys = 4>"),
    (dict(batch_key_heads=32, key_length=1023), ">"),
    (dict(query_length=9), ", split_keys = 16, packed_heads = 4>"),
    (dict(query_length=17), ", split_keys = 8, packed_heads = 2>"),
    (dict(query_length=64), ", split_keys = 4>"), (dict(query_length=65), ", split_keys = 8>"),
    (dict(query_length=66), ", split_keys = 8>"), (dict(query_length=67), ", split_keys = 4>"),
    (dict(query_length=65, key_length=8191), ", split_keys = 2>"), (dict(query_length=65, key_length=4095), ">"),
    (dict(query_length=264), ", split_keys = 2>"), (dict(query_length=265), ">"),
    (dict(query_length=1024, batch_heads=8), ", split_keys = 2>"), (dict(query_length=1025, batch_heads=1), ">")], ids=str)
def test_few_queries_with_many_keys(changes, shared):
    """They share keys and tiles, where the sizes of a launch ask for one variant."""
    plan = plan_for(attn.attention("bf16", 64, variants=["causal"]), **changes)
    assert plan.endswith(shared)
    assert ("split_keys" in plan, "packed_heads" in plan) == ("split_keys" in shared, "packed_heads" in shared)


@pytest.mark.parametrize("dim, changes, shared", [
    (64, {}, "stages = 4, scheduler = grid, blocks_per_sm = 2, split_keys = 16"),
    (64, dict(key_length=1025, batch_heads=1024), "stages = 4, scheduler = grid, blocks_per_sm = 2, packed_heads = 8"),
    (64, dict(key_length=1024, batch_heads=1024), "stages = 3, scheduler = grid, blocks_per_sm = 3, packed_heads = 8"),
    (128, {}, "stages = 3, scheduler = grid, blocks_per_sm = 2, split_keys = 16"),
    (128, dict(batch_heads=1024), "stages = 2, scheduler = grid, blocks_per_sm = 2, packed_heads = 8"),
    (256, {}, "stages = 2, scheduler = grid, split_keys = 16")])
def test_blocks_of_few_queries_share_a_multiprocessor(dim, changes, shared):
    """Where shared memory holds two, or of narrow heads with few keys three."""
    assert shared in plan_for(attn.attention("bf16", dim), **changes)


@pytest.mark.parametrize("heads, kv_heads, shared", [
    (32, 32, ", split_keys = 4>"), (32, 16, ", split_keys = 8, packed_heads = 2>"),
    (18, 3, ", split_keys = 16, packed_heads = 4>"), (32, 1, ", split_keys = 32, packed_heads = 8>")])
def test_heads_that_are_known_say_how_many_share_a_tile(heads, kv_heads, shared):
    text = attn.attention("bf16", 64, heads=heads, kv_heads=kv_heads)
    assert plan_for(text, batch_heads=heads).endswith(shared)


def test_a_kernel_for_all_sizes_has_no_parts_of_keys():
    text = attn.attention("bf16", 64)
    every = attn.compile(text, target="sm_90a").manifest
    assert not any("split_keys" in v["plan"] or "packed_heads" in v["plan"] for v in every["variants"])
    one = attn.compile(text, target="sm_90a", sizes={**sizes(1), **DECODE, "query_length": 4096}).manifest
    assert one["variants"][0]["plan"] in [v["plan"] for v in every["variants"]]
    assert one["of_rule"].startswith(
        "query_length <= 64 and batch_heads <= batch_key_heads and key_length >= 16384 and "
        "64 * batch_heads <= multiprocessors -> 0; ")


def test_measured_plans_come_before_those_for_few_queries(tmp_path):
    plan = "#attn.plan<target = sm_90a, block_q = 64, block_k = 32, warps = 4, stages = 2>"
    measured = dict(target="sm_90a", element="bf16", head_dim=64, value_head_dim=64, masked=False, scored=False,
                    device="Mine", shapes="", queries=1, measured=1, plans=[dict(seconds=1e-3, plan=plan)])
    q, rows = "tensor<?x?x1x64xbf16>", "tensor<?x?x1xf32>"
    text = attn.attention("bf16", 64).replace("tensor<?x?x?xf32>", rows)
    text = re.sub(r"(%q: |: \(|-> \(|return %o, %lse : )tensor<\?x\?x\?x64xbf16>", rf"\1{q}", text)
    results = tmp_path / "results.json"
    results.write_text(json.dumps(dict(attn_results=1, what="", results=[measured])))
    options = dict(target="sm_90a", sizes={**sizes(1), **DECODE})
    (known,) = attn.compile(text, results=str(results), gpu="Mine", **options).manifest["variants"]
    (picked,) = attn.compile(text, **options).manifest["variants"]
    assert known["plan"] == plan and "split_keys" in picked["plan"]


@pytest.mark.parametrize("options, shared", [
    (dict(dropout_p=0.5), ">"), (dict(variants=["window<left = 511, right = 0>"]), ", packed_heads = 8>"),
    (dict(variants=["window<left = 4096, right = 0>"]), ", split_keys = 16, packed_heads = 8>"),
    (dict(mask=WINDOW.format(512)), ", packed_heads = 8>"),
    (dict(mask=WINDOW.format(4096)), ", split_keys = 16, packed_heads = 8>"),
    (dict(captures=[("table", "tensor<?xi32>")], mask="""%t = attn.capture_load %table[%j] : tensor<?xi32>
      %m = arith.cmpi eq, %t, %i : i32
      attn.yield %m : i1"""), ", split_keys = 16, packed_heads = 8>"),
    (dict(captures=[("start", "tensor<?xi32>")], mask="""%t = attn.capture_load %start[%b] : tensor<?xi32>
      %m = arith.cmpi sge, %j, %t : i32
      attn.yield %m : i1"""), ", split_keys = 16, packed_heads = 8>")],
    ids=["dropout", "short window", "long window", "short window as a mask", "long window as a mask", "data", "padding"])
def test_masks_of_few_queries(options, shared):
    """A window shows few keys, which are not worth parts."""
    plan = plan_for(attn.attention("bf16", 64, **options))
    assert plan.endswith(shared)
    assert ("split_keys" in plan, "packed_heads" in plan) == ("split_keys" in shared, "packed_heads" in shared)


@pytest.mark.parametrize("wrong, error, message", [
    (sizes(-1), attn.AttnError, "attnCompile: sizes: query_length is -1, wanted 0 or more"),
    (sizes(1, multiprocessors=0), attn.AttnError, "attnCompile: sizes: multiprocessors is 0, wanted 1 or more"),
    (sizes(1, batch_heads=1.5), TypeError, "sizes: batch_heads: wanted an integer, got 1.5"),
    ({**sizes(1), "batch_key_heads": -1}, attn.AttnError, "sizes: batch_key_heads is -1, wanted 0 or more"),
    (dict(query_length=1), ValueError,
     "sizes: wanted query_length, key_length, batch_heads, multiprocessors, got query_length"),
    ({**sizes(1), "heads": 2}, ValueError, "got query_length, key_length, batch_heads, multiprocessors, heads")])
def test_wrong_sizes(wrong, error, message):
    with pytest.raises(error, match=message):
        attn.compile(attn.attention("bf16", 64), plan=RULE, sizes=wrong)


def test_the_cpu_takes_no_sizes():
    with pytest.raises(ValueError, match='sizes are for a GPU, got target="cpu"'):
        attn.compile(attn.attention("f32", 16), "cpu", sizes=sizes(1))


def test_a_program_for_the_cpu_has_one():
    plan = "#attn.plan<target = cpu, block_q = 8, block_k = 8>"
    with pytest.raises(attn.AttnError, match="got a rule over 2 cases, expected one plan"):
        attn.compile(attn.attention("f32", 16), "cpu", plan=f"query_length < 8 -> {plan}; {plan}")
    kernel = attn.compile(attn.attention("f32", 16), "cpu", plan=plan)
    numpy = pytest.importorskip("numpy")
    q = numpy.zeros((1, 1, 4, 16), numpy.float32)
    assert kernel.choose_variant(q, q, q, q.copy(), numpy.zeros((1, 1, 4), numpy.float32)) == (0, "")


LAUNCHES = """
import sys
import attn

class Tensor:
    def __init__(self, number, kind, *shape):
        self.__cuda_array_interface__ = dict(
            data=(number << 40, False), shape=shape, typestr=kind, version=3, strides=None)

attn.use_library(sys.argv[1])
artifact = attn.compile(attn.attention("f16", 64), plan=sys.argv[2])
for variant in (None, 0, 1):
    kernel = artifact.on_device(variant=variant)
    for length in (100, 101):
        tensors = [Tensor(i + 1, "<f2", 1, 2, length, 64) for i in range(4)]
        tensors.append(Tensor(5, "<f4", 1, 2, length))
        kernel.launch(*tensors)
        print(variant, length, *kernel.choose_variant(*tensors), sep="|")
print(artifact.on_device(variant=1).manifest["rule"])
try:
    artifact.on_device(variant=2)
except attn.AttnError as error:
    print(error)
"""


def test_launches_take_the_variant_of_their_lengths():
    """On a stand-in for the driver, which a build of the tests has."""
    library = pathlib.Path(_capi._path)
    driver = library.parent.parent / "test" / "Unit" / "FakeDriver"
    if not driver.is_dir():
        pytest.skip("no stand-in for the driver was built")
    path = pathlib.Path(attn.__file__).parents[1]
    done = subprocess.run(
        [sys.executable, "-c", LAUNCHES, str(library), RULE], text=True, capture_output=True,
        env={**os.environ, "LD_LIBRARY_PATH": str(driver), "PYTHONPATH": str(path)})
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        "None|100|0|query_length <= 100, with query_length = 100",
        "None|101|1|no condition holds, with query_length = 101",
        "0|100|0|", "0|101|0|", "1|100|1|", "1|101|1|", "1",
        "attnLoadVariant: artifact 'attention' has no variant 2, its variants are 0 to 1"]
