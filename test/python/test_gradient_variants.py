#===----------------------------------------------------------------------===#
#
# Part of attn, an attention compiler.
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===----------------------------------------------------------------------===#
"""Gradients whose sums may be in any order: two programs for few queries, one for many."""

import importlib
import os
import pathlib
import subprocess
import sys

import attn
import pytest
from attn import _capi

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "Integration" / "GPU"))

HEADS = dict(heads=1, kv_heads=1)  # which share no key head
TEXT = attn.attention("bf16", 128, variants=["causal"], numerics="deterministic = false", **HEADS)
MOST = 2245  # queries and keys of two programs, causal, d = 128, sm_90a
# Before that: few keys, few tiles.
RULE = ("key_length <= 512 -> 0; key_length <= query_length and batch_heads * key_length <= 128 * multiprocessors "
        "and batch_heads * query_length <= 256 * multiprocessors -> 0; batch_heads * key_length <= 128 * multiprocessors -> 1; "
        "key_length >= 512 and batch_heads * key_length <= 256 * multiprocessors -> 1; "
        "key_length >= 512 and batch_heads * query_length <= 128 * multiprocessors and "
        "3 * batch_heads <= multiprocessors -> 1; query_length <= 384 -> 0; "
        f"query_length <= {MOST} and key_length <= {MOST} -> 0; 1")


def sizes(queries, keys=None, heads=512):
    return dict(query_length=queries, key_length=keys or queries, batch_heads=heads, multiprocessors=132)


def compiled(text=TEXT, **options):
    return attn.compile(text, target="sm_90a", backward=True, **options)


def entries(variant):
    return [kernel["entry"].split("backward_")[-1].replace("variant1_", "") for kernel in variant["kernels"]]


def test_both_forms_by_the_number_of_queries():
    made = compiled().manifest
    assert made["rule"] == RULE
    two, one = made["variants"]
    assert two["plan"].endswith(", scores = twice>") and "scores" not in one["plan"]
    assert "d_query" in entries(two) and "round_query" not in entries(two)
    assert "round_query" in entries(one) and "d_query" not in entries(one)
    assert sorted(r for k in two["kernels"] for r in k["results"]) == sorted(
        r for k in one["kernels"] for r in k["results"]), "both define all gradients"


@pytest.mark.parametrize("queries, keys, heads, number", [
    (1, 1, 512, 0), (MOST, MOST, 512, 0), (MOST + 1, MOST + 1, 512, 1), (4096, 77, 80, 0),
    (512, 512, 33, 0), (513, 513, 32, 0), (513, 513, 34, 1), (513, 514, 32, 1), (513, 513, 66, 0), (1024, 1024, 16, 0), (1024, 1024, 33, 1), (1024, 1024, 34, 0),
    (256, 32768, 16, 1), (300, 2000, 132, 0), (128, 2000, 44, 1), (128, 2000, 45, 0), (384, 9000, 512, 0), (385, 9000, 512, 1)])
def test_sizes_ask_for_one_form(queries, keys, heads, number):
    """It is the one that it is among both."""
    artifact = compiled(sizes=sizes(queries, keys, heads))
    (alone,), wanted = artifact.manifest["variants"], compiled().manifest["variants"][number]
    assert entries(alone) == entries(wanted)
    for kernel, other in zip(alone["kernels"], wanted["kernels"], strict=True):
        kernel["entry"] = other["entry"]
    assert alone == wanted
    assert artifact.manifest["of_rule"] == RULE
    assert artifact.manifest["variant_of_rule"] == number


def test_sizes_of_a_function_and_its_gradients():
    made = attn.compile(TEXT, target="sm_90a", with_backward=True, sizes=sizes(MOST)).manifest
    (gradients,) = made["companions"]
    (alone,) = gradients["variants"]
    assert gradients["variant_of_rule"] == 0 and "d_query" in entries(alone)


def test_few_queries_are_as_in_order():
    """Two programs by the same plan: the same kernels, so the same bits."""
    few = compiled(sizes=sizes(512)).manifest["variants"][0]
    (ordered,) = compiled(TEXT.replace("deterministic = false", "deterministic = true")).manifest["variants"]
    assert few["plan"].replace(", scores = twice", "") == ordered["plan"]
    for part in [few, *few["kernels"]]:
        part["plan"] = part["plan"].replace(", scores = twice", "")
    assert few == ordered


def test_the_cache_knows_the_form(tmp_path):
    made = [compiled(cache=tmp_path, sizes=sizes(queries)) for queries in (512, MOST, MOST + 1, 9000)]
    assert [artifact.from_cache for artifact in made] == [False, True, False, True]
    every = compiled(cache=tmp_path)
    assert not every.from_cache and len(every.manifest["variants"]) == 2
    assert compiled(cache=tmp_path, sizes=sizes(512)).from_cache


def test_the_plan_of_a_variant_gives_its_kernels():
    for number, variant in enumerate(compiled().manifest["variants"]):
        (again,) = compiled(plan=variant["plan"]).manifest["variants"]
        assert entries(again) == entries(variant), number


@pytest.mark.parametrize("changes", [
    dict(numerics="deterministic = true"), dict(numerics=None), dict(head_dim=160), dict(element="f32", head_dim=128),
    dict(head_dim=64, value_dim=128), dict(dropout_p=0.5), dict(variants=["softcap<5.0 : f32>"])], ids=str)
def test_one_form_is_one_variant(changes):
    options = dict(element="bf16", head_dim=128, variants=["causal"], numerics="deterministic = false", **HEADS)
    options.update(changes)
    element, head_dim = options.pop("element"), options.pop("head_dim")
    made = compiled(attn.attention(element, head_dim, **options)).manifest
    assert made["rule"] == "0" and len(made["variants"]) == 1


def parts_of(**given):
    return [variant["plan"].partition("split_keys = ")[2].split(">")[0] for variant in compiled(**given).manifest["variants"]]


@pytest.mark.parametrize("queries, keys, heads, parts", [
    (64, 8192, 8, "16"), (64, 4095, 8, "8"), (64, 8192, 9, "8"), (129, 8192, 8, "16"), (300, 2000, 8, "4"), (512, 2048, 8, "4"),
    (513, 2048, 8, ""), (64, 511, 8, ""), (64, 512, 22, "2"), (64, 512, 23, ""), (2048, 8192, 8, "")])
def test_blocks_share_the_keys_of_few_queries(queries, keys, heads, parts):
    """In a fixed order: the kernel of d_query has few blocks, each with many keys."""
    text = attn.attention("bf16", 128, **HEADS)
    assert parts_of(text=text, sizes=sizes(queries, keys, heads)) == [parts]


def test_whose_keys_are_shared():
    """Kernels for one launch, and no program that can be one."""
    few = sizes(64, 8192, 8)
    assert parts_of(text=attn.attention("bf16", 128, **HEADS)) == [""] and parts_of(sizes=few) == [""]
    wide = compiled(attn.attention("bf16", 256, numerics="deterministic = false", **HEADS), sizes=few).manifest["variants"][0]
    assert "split_keys = 16" in wide["plan"] and {"d_query", "sum_query"} <= set(entries(wide))


ENOUGH = "batch_key_heads * key_length >= 240 * multiprocessors"
ONE_EACH = "batch_key_heads * key_length >= 112 * multiprocessors and batch_key_heads * key_length <= 128 * multiprocessors"


@pytest.mark.parametrize("heads, more", [(dict(heads=8, kv_heads=2), ""), ({}, "batch_heads > batch_key_heads and ")])
@pytest.mark.parametrize("variants, most, cases", [
    (["causal"], "key_length <= 8192 and ", (ENOUGH,)), ([], "", (ENOUGH, ONE_EACH))])
def test_blocks_of_keys_go_through_the_heads_that_share_them(heads, more, variants, most, cases):
    """Where there are enough of them: no kernel adds up what heads give, and no workspace holds it."""
    text = attn.attention("bf16", 128, variants=variants, **heads)
    made = compiled(text).manifest
    more += "batch_heads * key_length <= 131072 * batch_key_heads and " + most
    assert made["rule"] == "".join(f"{more}{case} -> 0; " for case in cases) + "1"
    loops, heads_apart = made["variants"]
    assert 'with = ["tile-loop-heads"]' in loops["plan"] and "tile-loop-heads" not in heads_apart["plan"]
    assert [entry for entry in entries(heads_apart) if entry not in entries(loops)] == ["sum_value", "sum_key"]
    assert len(heads_apart["workspaces"]) == len(loops["workspaces"]) + 2
    for keys, key_heads, number in ((512, 64, 0), (512, 15, 1), (40000, 64, 1)):
        chosen = compiled(text, sizes=dict(sizes(keys, heads=4 * key_heads), batch_key_heads=key_heads)).manifest
        assert ("tile-loop-heads" in chosen["variants"][0]["plan"]) == (number == 0)
        assert "split_keys" not in chosen["variants"][0]["plan"]


def test_heads_that_share_no_keys_and_other_targets_have_no_such_blocks():
    shared = attn.attention("bf16", 128, variants=["causal"], heads=8, kv_heads=2)
    assert "tile-loop-heads" not in str(attn.compile(shared, target="sm_80", backward=True).manifest)
    alone = compiled(attn.attention("bf16", 128, variants=["causal"], **HEADS)).manifest
    assert alone["rule"] == "0" and "tile-loop-heads" not in str(alone)


def test_shared_heads_behind_a_mask_in_any_order():
    """One program adds to gradients of queries: its blocks stay those of one head, and two
    programs, whose blocks go through several, are as fast up to more queries."""
    text = attn.attention("bf16", 128, variants=["causal"], numerics="deterministic = false", heads=8, kv_heads=2)
    for queries, kernel, loops in ((MOST + 1, "d_query", True), (4097, "round_query", False)):
        (alone,) = compiled(text, sizes=dict(sizes(queries), batch_key_heads=128)).manifest["variants"]
        assert kernel in entries(alone) and ("tile-loop-heads" in alone["plan"]) == loops


LAUNCHES = """
import sys
import attn

class Tensor:
    def __init__(self, number, kind, *shape):
        self.__cuda_array_interface__ = dict(
            data=(number << 40, False), shape=shape, typestr=kind, version=3, strides=None)

attn.use_library(sys.argv[1])
artifact = attn.compile(sys.argv[2], target="sm_90a", backward=True)
for variant in (None, 0, 1):
    kernel = artifact.on_device(variant=variant)
    for length in map(int, sys.argv[3:]):
        tensors = [Tensor(i + 1, "<f2", 20, 1, length, 128) for i in range(9)]
        tensors[4] = Tensor(5, "<f4", 20, 1, length)
        kernel.launch(*tensors)
        print(variant, length, kernel.choose_variant(*tensors)[0], kernel.workspace_bytes(*tensors))
"""


def test_launches_and_workspaces_are_those_of_the_form():
    """On a stand-in for the driver, which a build of the tests has."""
    library = pathlib.Path(_capi._path)
    driver = library.parent.parent / "test" / "Unit" / "FakeDriver"
    if not driver.is_dir():
        pytest.skip("no stand-in for the driver was built")
    path = pathlib.Path(attn.__file__).parents[1]
    text = TEXT.replace("bf16", "f16")
    done = subprocess.run(
        [sys.executable, "-c", LAUNCHES, str(library), text, str(MOST), str(MOST + 1)], text=True,
        capture_output=True, env={**os.environ, "LD_LIBRARY_PATH": str(driver), "PYTHONPATH": str(path)})
    assert done.returncode == 0, done.stderr
    rows = [line.split() for line in done.stdout.splitlines()]
    assert [row[:3] for row in rows] == [
        [kind, str(length), number] for kind, numbers in (("None", "01"), ("0", "00"), ("1", "11"))
        for length, number in zip((MOST, MOST + 1), numbers)]
    bytes_of = {tuple(row[:2]): int(row[3]) for row in rows}
    for length, number in ((MOST, "0"), (MOST + 1, "1")):
        assert bytes_of["None", str(length)] == bytes_of[number, str(length)]
        parts_of_d_query = 4 * 20 * 128 * length  # of f32
        assert bytes_of["1", str(length)] - bytes_of["0", str(length)] > 0.9 * parts_of_d_query


def test_what_is_beside_products():
    """gradient_parts.py: a kernel that begins early counts from where the one before ends."""
    gradient_parts = importlib.import_module("gradient_parts")
    launch = [(0, 10, "f_rows"), (4, 40, "f_d_query"), (38, 80, "f_d_key_value"), (70, 100, "f_round_query")]
    later = [(begin + 200, end + 200, name) for begin, end, name in launch]
    parts, whole, beside = gradient_parts.parts_of([launch, later, launch])
    assert parts == [("f_rows", 10), ("f_d_query", 30), ("f_d_key_value", 40), ("f_round_query", 20)]
    assert (whole, beside) == (100, 30)


def test_what_the_timing_program_makes_of_times(capsys):
    """gradient_forms.py runs on a GPU; what it concludes is the same anywhere."""
    gradient_forms = importlib.import_module("gradient_forms")
    times = {512: (0.5, 0.6), 1024: (0.9, 0.95), 2048: (1.5, 1.4), 4096: (2.8, 2.4)}
    assert 1024 < gradient_forms.crossing(times) < 2048
    assert gradient_forms.crossing({512: (1.0, 1.2), 1024: (2.4, 2.0)}) == pytest.approx(724, abs=1)
    assert gradient_forms.crossing({512: (2.0, 1.0)}) == 0
    assert gradient_forms.crossing({512: (1.0, 2.0)}) == float("inf")
    assert gradient_forms.judge(times, 1024, 0.03) == {}
    assert list(gradient_forms.judge(times, 4096, 0.03)) == [2048, 4096]
    assert list(gradient_forms.judge(times, 600, 0.03)) == [1024]
    rule = gradient_forms.Rule.of(compiled().manifest)
    assert rule == RULE and gradient_forms.limit_of(rule) == MOST and gradient_forms.limit_of("0") is None
    assert gradient_forms.limit_of("batch <= 3 -> 0; 1") is None
    assert gradient_forms.limit_of("query_length >= 3 -> 0; 1") is None
    assert gradient_forms.variants_of(rule, 9000) == gradient_forms.variants_of(rule, 90) == (0, 1)
    several = gradient_forms.Rule("key_length <= 192 -> 0; batch_heads <= multiprocessors -> 1; query_length <= 780 and "
                                  "key_length <= 900 -> 0; query_length <= 950 and key_length <= 900 -> 2; "
                                  "query_length <= 4096 -> 3; 1")
    several.two = (0, 2)
    assert gradient_forms.limit_of(several) == 900
    assert [gradient_forms.variants_of(several, length) for length in (90, 780, 781, 4096, 4097)] == [
        (0, 3), (0, 3), (2, 3), (2, 3), (2, 1)]
    assert rule.two == (0,)
    rows = [{"d": 128, "causal": True, "s": length, "contestants": {
        "sm_90a-two": {"ms": two}, "sm_90a-one": {"ms": one}}} for length, (two, one) in times.items()]
    (found,) = gradient_forms.summarize(rows, {("sm_90a", 128, True): rule}, 0.03)
    assert found["limit"] == MOST and found["slower_at"] == [2048] and found["lost"] == 0.071
    assert f"the rule says {MOST}, and loses 7.1% at 2048" in capsys.readouterr().out
