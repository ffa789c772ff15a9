#===----------------------------------------------------------------------===#
#
# Part of attn, an attention compiler.
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===----------------------------------------------------------------------===#
"""The gradients of sm_80, and of sm_90a in any order, lane by lane, against float64."""

import attn
import numpy as np
import pytest
from emulate import Artifact, launch
from emulated_case import Array

ANY_ORDER = "deterministic = false"


def plan_of(block_q, block_k, warps, more="", target="sm_80"):
    return (f"#attn.plan<target = {target}, block_q = {block_q}, block_k = {block_k}, "
            f"warps = {warps}, stages = 2{more}>")


def exact_gradients(q, k, v, d_o, causal, cap=None):
    """(o, lse, d_q, d_k, d_v), of matrices"""
    scale = 1 / np.sqrt(q.shape[1])
    scores = q @ k.T * scale
    slope = scale
    if cap:
        bent = np.tanh(scores / cap)
        scores, slope = cap * bent, scale * (1 - bent**2)
    if causal:
        row, column = np.ogrid[:len(q), :len(k)]
        scores = np.where(column - row <= len(k) - len(q), scores, -np.inf)
    lse = np.logaddexp.reduce(scores, axis=1)
    with np.errstate(invalid="ignore"):  # rows without a key
        p = np.nan_to_num(np.exp(scores - lse[:, None]))
    o = p @ v
    d_s = p * (d_o @ v.T - (d_o * o).sum(axis=1, keepdims=True)) * slope
    return o, lse, d_s @ k, d_s.T @ q, p.T @ d_o


def gradients(dim, plan, queries, keys, numerics=None, causal=False, seed=None, variant=-1, target="sm_80",
              large=0, heads=(1, 1), cap=None, enable=None, element="bf16", endless=None):
    """(computed, exact), each d_q, d_k and d_v by head, of `heads` of queries and of keys; the first
    `large` queries are 256 times as large, and what goes back to the output `endless` is infinite"""
    rng = np.random.default_rng([dim, queries, keys])
    group = heads[0] // heads[1]
    sizes = [(heads[0], queries), (heads[1], keys), (heads[1], keys), (heads[0], queries)]
    inputs = [Array(element, (1, *size, dim)).set(rng.standard_normal((1, *size, dim))) for size in sizes]
    inputs[0].set(inputs[0].values() * np.where(np.arange(queries) < large, 256, 1)[:, None])
    if endless is not None:
        inputs[3].set(np.where(np.arange(queries)[:, None] == endless, np.inf, inputs[3].values()))
    q, k, v, d_o = [array.values()[0] for array in inputs]
    of_heads = [exact_gradients(q[head], k[head // group], v[head // group], d_o[head], causal, cap)
                for head in range(heads[0])]
    o, lse, d_q, *of_keys = map(np.stack, zip(*of_heads))
    exact = [d_q] + [part.reshape(heads[1], group, keys, dim).sum(axis=1) for part in of_keys]
    results = [Array(element, (1, *values.shape)) for values in exact]
    variants = [f"softcap<{cap} : f32>"] * bool(cap) + ["causal"] * causal
    text = attn.attention(element, dim, variants=variants, numerics=numerics, heads=heads[0], kv_heads=heads[1])
    artifact = Artifact(attn.compile(text, target=target, plan=plan, backward=True, enable=enable).bytes, variant)
    *qkv, d_o = inputs
    forward = [Array(element, (1, *o.shape)).set(o[None]), Array("f32", (1, *lse.shape)).set(lse[None])]
    launch(artifact, [array.tensor for array in [*qkv, *forward, d_o, *results]], seed=seed)
    assert all(array.is_outside_untouched() for array in results)
    return [array.values()[0] for array in results], exact


def are_close(computed, exact):
    """Weights and their gradients are rounded to 8 bits before the products."""
    return all(np.abs(have - want).max() <= np.abs(want).max() / 50
               for have, want in zip(computed, exact))


@pytest.mark.parametrize("dim", [64, 96])
def test_short_products_share_columns(dim):
    """32 rows of d_query for four warps: two of them have half of the columns, in
    whole patterns of the swizzle; where these are none two programs do it."""
    assert are_close(*gradients(dim, plan_of(64, 32, 4), 70, 130, ANY_ORDER))


@pytest.mark.parametrize("dim, element", [(48, "bf16"), (72, "f16"), (80, "bf16"), (96, "f16"), (112, "bf16")])
def test_groups_share_columns_of_narrow_panels(dim, element):
    """Half of 48, 80 and 112 columns is panels of 16 bytes, of 96 of 32; of 72 the last panel of 80 is outside."""
    plan = plan_of(128, 64, 8, target="sm_90a")
    for seed in (None, 1):
        assert are_close(*gradients(dim, plan, 70, 130, ANY_ORDER, causal=True, target="sm_90a", seed=seed,
                                    heads=(2, 1), element=element))


@pytest.mark.parametrize("dim, tiles, target, element", [
    (64, (64, 64, 4), "sm_80", "bf16"), (192, (128, 64, 8), "sm_90a", "f16"), (64, (64, 32, 4), "sm_90a", "f32")])
def test_blocks_share_keys_of_d_query(dim, tiles, target, element):
    """Their sums are added in their order; a part of the last one's keys is behind the mask."""
    plan = plan_of(*tiles, target=target).replace("stages = 2", "stages = 1, split_keys = 3")
    case = (dim, plan, 70, 330, None, True)
    parts, exact = gradients(*case, target=target, element=element, heads=(2, 1), seed=1)
    again, _ = gradients(*case, target=target, element=element, heads=(2, 1), seed=2)
    assert are_close(parts, exact) and all(map(np.array_equal, parts, again))


@pytest.mark.parametrize("dim", [64, 128])
def test_both_forms_of_one_artifact(dim):
    """Two programs for few queries, which give the bits of sums in order, and one for many."""
    few, exact = gradients(dim, None, 70, 130, ANY_ORDER, causal=True, variant=0)
    many, _ = gradients(dim, None, 70, 130, ANY_ORDER, causal=True, variant=1)
    ordered, _ = gradients(dim, None, 70, 130, causal=True)
    assert are_close(few, exact) and are_close(many, exact)
    assert all(map(np.array_equal, few, ordered))


@pytest.mark.parametrize("numerics", [None, ANY_ORDER])
@pytest.mark.parametrize("plan", [(64, 64, 4), (128, 64, 8)])
def test_warps_in_a_grid(plan, numerics):
    """P and dS go through slots, in any order of the warps; the bits stay."""
    case = (70, 130, numerics, plan[2] == 8)
    for seed in range(2):
        in_grid, exact = gradients(128, plan_of(*plan), *case, seed=seed)
        assert are_close(in_grid, exact)
    stacked, _ = gradients(128, plan_of(*plan, ', without = ["warp-share-columns"]'), *case)
    assert all(np.array_equal(a, b) for a, b in zip(in_grid, stacked))


@pytest.mark.parametrize("target", ["sm_80", "sm_90a"])
@pytest.mark.parametrize("dim, tiles", [(64, (64, 16, 4)), (80, (64, 32, 4)), (48, (64, 32, 8)), (64, (32, 32, 8))])
def test_products_of_f32_share_columns(dim, tiles, target):
    """Four warps have parts of d_query, of d = 80 in the midst of a pattern of the swizzle; of eight
    two or four have parts of all products, whose left operands go through slots."""
    plan = plan_of(*tiles, target=target).replace(", stages = 2", "")
    for numerics in [ANY_ORDER, None]:
        computed, exact = gradients(dim, plan, 70, 100, numerics, causal=True, target=target, element="f32")
        for have, want in zip(computed, exact):
            assert np.abs(have - want).max() <= np.abs(want).max() * 2e-6


@pytest.mark.parametrize("tiles", [(64, 16, 4), (64, 32, 8)])
def test_one_infinite_row_of_f32(tiles):
    """Its gradient is NaN, as are those of keys; those of other queries in its tile are computed again."""
    plan = plan_of(*tiles).replace(", stages = 2", "")
    with np.errstate(invalid="ignore"):
        computed, exact = gradients(64, plan, 70, 100, ANY_ORDER, element="f32", endless=5)
    d_q, d_k, d_v = (have[0] for have in computed)
    others = np.arange(70) != 5
    assert np.isnan(d_q[5]).all() and np.isnan(d_k).all() and np.isposinf(d_v).all()
    assert np.abs(d_q - exact[0][0])[others].max() <= np.abs(exact[0][0][others]).max() * 2e-6


@pytest.mark.parametrize("seed", [None, 0])
@pytest.mark.parametrize("dim, block_k, more", [(64, 64, ""), (64, 128, ", consumer_registers = 240"),
                                                (128, 64, ', with = ["warp-test-ahead"]')])
def test_one_program_of_warpgroups(dim, block_k, more, seed):
    """dS of a step is stored for the next one, while the step's products run."""
    plan = plan_of(128, block_k, 8, more, "sm_90a")
    for causal, sizes in [(False, (130, 150)), (True, (200, 260)), (True, (1, 300))]:
        assert are_close(*gradients(dim, plan, *sizes, ANY_ORDER, causal, seed, target="sm_90a"))


@pytest.mark.parametrize("numerics", [None, ANY_ORDER])
@pytest.mark.parametrize("target, more", [("sm_90a", ""), ("sm_90a", ', with = ["tile-loop-heads"]'),
                                          ("sm_80", ', with = ["tile-loop-heads"]')])
def test_shared_key_heads(target, more, numerics):
    """A block of keys goes through the heads that share it, or a kernel adds up what their blocks give."""
    for causal, sizes in [(False, (130, 150)), (True, (70, 140))]:
        assert are_close(*gradients(64, plan_of(128, 64, 8, more, target), *sizes, numerics, causal,
                                    target=target, heads=(4, 2)))


@pytest.mark.parametrize("target", ["sm_80", "sm_90a"])
@pytest.mark.parametrize("numerics", [None, ANY_ORDER])
def test_far_rows(target, numerics):
    """lse is above 512 for most of the first 64 rows and for no other: both arms of the weights,
    in the steps of a block of keys and in the warps of a block of queries."""
    plan = plan_of(128, 64, 8, target=target)
    assert are_close(*gradients(64, plan, 130, 150, numerics, target=target, large=64))


@pytest.mark.parametrize("cap, large", [(20.0, 0), (2.0, 0), (40.0, 40)])
@pytest.mark.parametrize("numerics", [None, ANY_ORDER])
@pytest.mark.parametrize("target", ["sm_80", "sm_90a"])
def test_softcap(target, numerics, cap, large):
    """Scores below 0.8 of the cap, about it, and in some warps far above: tanh by two formulas."""
    plan = plan_of(128, 64, 8, target=target)
    for causal in [False, True]:
        assert are_close(*gradients(64, plan, 130, 150, numerics, causal, target=target, large=large, cap=cap,
                                    enable=["warp-expand-tanh"]))
