#===----------------------------------------------------------------------===#
#
# Part of attn, an attention compiler.
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===----------------------------------------------------------------------===#
"""The CPU target from Python, with NumPy."""

import warnings

import attn
import numpy
import pytest


def reference(q, k, v, scale, mask=None, score=lambda x: x):
    """(o, lse) in float64."""
    q, k, v = (array.astype(numpy.float64) for array in (q, k, v))
    group = q.shape[1] // k.shape[1]
    k, v = k.repeat(group, axis=1), v.repeat(group, axis=1)
    x = score(numpy.einsum("bhid,bhjd->bhij", q, k) * scale)
    if mask is not None:
        x = numpy.where(mask, x, -numpy.inf)
    top = x.max(axis=-1, keepdims=True)
    top = numpy.where(numpy.isinf(top), 0, top)
    p = numpy.exp(x - top)
    total = p.sum(axis=-1, keepdims=True)
    o = numpy.einsum("bhij,bhje->bhie", p / numpy.where(total == 0, 1, total), v)
    with numpy.errstate(divide="ignore"):
        return o, (top + numpy.log(total))[..., 0]


def tensors(batch, heads, kv_heads, queries, keys, dim, dtype=numpy.float32):
    rng = numpy.random.default_rng(1)
    q = rng.standard_normal((batch, heads, queries, dim)).astype(dtype)
    k = rng.standard_normal((batch, kv_heads, keys, dim)).astype(dtype)
    v = rng.standard_normal((batch, kv_heads, keys, dim)).astype(dtype)
    o = numpy.full((batch, heads, queries, dim), numpy.nan, dtype)
    lse = numpy.full((batch, heads, queries), numpy.nan, numpy.float32)
    return q, k, v, o, lse


@pytest.mark.parametrize("element, tolerance", [("f32", 2e-6), ("f16", 2e-3)])
def test_causal(element, tolerance):
    dtype = {"f32": numpy.float32, "f16": numpy.float16}[element]
    q, k, v, o, lse = tensors(2, 4, 2, 21, 33, 40, dtype)
    kernel = attn.compile(attn.attention(element, 40, variants=["causal"]), target="cpu")
    kernel.launch(q, k, v, o, lse)
    mask = numpy.tri(21, 33, 33 - 21, dtype=bool)
    expected, expected_lse = reference(q, k, v, 40**-0.5, mask)
    assert numpy.abs(o - expected).max() < tolerance
    assert numpy.abs(lse - expected_lse).max() < 1e-4


def test_bf16_travels_as_bits():
    q, k, v, o, lse = tensors(1, 2, 1, 13, 18, 48)

    def to_bits(array):
        return (array.view(numpy.uint32) >> 16).astype(numpy.uint16)

    def to_floats(bits):
        return (bits.astype(numpy.uint32) << 16).view(numpy.float32)

    bits = [to_bits(array) for array in (q, k, v)]
    o_bits = to_bits(o)
    attn.compile(attn.attention("bf16", 48), target="cpu").launch(*bits, o_bits, lse)
    expected, _ = reference(*map(to_floats, bits), 48**-0.5)
    assert numpy.abs(to_floats(o_bits) - expected).max() < 1e-2


def test_rows_without_a_key():
    q, k, v, o, lse = tensors(1, 1, 1, 9, 4, 40)
    kernel = attn.compile(attn.attention("f32", 40, variants=["causal"]), target="cpu")
    kernel.launch(q, k, v, o, lse)
    assert (o[0, 0, :5] == 0).all()
    assert (lse[0, 0, :5] == -numpy.inf).all()
    assert numpy.isfinite(o).all()


def test_captures_and_scalars():
    q, k, v, o, lse = tensors(1, 2, 2, 10, 12, 16)
    bias = numpy.random.default_rng(2).standard_normal((10, 12)).astype(numpy.float32)
    text = attn.attention(
        "f32",
        16,
        scale=0.5,
        captures=[("bias", "tensor<?x?xf32>"), ("factor", "f32"), ("first", "i32")],
        score="""
            %value = attn.capture_load %bias[%i, %j] : tensor<?x?xf32>
            %term = arith.mulf %value, %factor : f32
            %sum = arith.addf %x, %term : f32
            attn.yield %sum : f32
        """,
        mask="""
            %seen = arith.cmpi sge, %j, %first : i32
            attn.yield %seen : i1
        """,
    )
    kernel = attn.compile(text, target="cpu")
    kernel.launch(q, k, v, bias, 2.0, 3, o, lse)
    mask = numpy.arange(12)[None, :] >= 3
    expected, _ = reference(q, k, v, 0.5, mask, lambda x: x + 2.0 * bias)
    assert numpy.abs(o - expected).max() < 5e-6


def test_strided_layout():
    q, k, v, o, lse = tensors(2, 3, 3, 17, 19, 24)

    def heads_inside(array):
        moved = numpy.empty_like(array.transpose(0, 2, 1, 3), order="C")
        moved[...] = array.transpose(0, 2, 1, 3)
        return moved.transpose(0, 2, 1, 3)

    kernel = attn.compile(attn.attention("f32", 24), target="cpu")
    strided = heads_inside(o)
    kernel.launch(heads_inside(q), k, heads_inside(v), strided, lse)
    kernel.launch(q, k, v, o, lse)
    assert (strided == o).all()


def test_rows_with_gaps_are_copied():
    q, k, v, o, lse = tensors(2, 3, 3, 17, 19, 24)
    kernel = attn.compile(attn.attention("f32", 24), target="cpu")
    assert kernel.describe_launch(q, k, v, o, lse) == []
    kernel.launch(q, k, v, o, lse)
    assert kernel.relayouts == 0

    def across(array):
        moved = array.swapaxes(-1, -2).copy()
        return moved.swapaxes(-1, -2)[:, ::-1][:, ::-1]

    other = across(o), numpy.zeros((*lse.shape, 2), numpy.float32)[..., 1]
    other[0][...] = 0
    backwards = k[:, ::-1].copy()[:, ::-1]
    lines = kernel.describe_launch(q, backwards, across(v), *other)
    assert [line.split()[0] for line in lines] == ["'k'", "'v'", "'o'", "'lse'"]
    assert "none below 0" in lines[0] and "after the kernel" in lines[2]
    with pytest.warns(UserWarning, match="'k' is copied first"):
        kernel.launch(q, backwards, across(v), *other)
    assert kernel.relayouts == 4
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # it was said
        kernel.launch(q, backwards, across(v), *other)
    assert (other[0] == o).all() and (other[1] == lse).all()


def test_plan_is_taken():
    plan = "#attn.plan<target = cpu, block_q = 16, block_k = 16>"
    kernel = attn.compile(attn.attention("f32", 16), target="cpu", plan=plan)
    assert "block_q = 16" in kernel.manifest["variants"][0]["plan"]


def test_mask_that_only_data_decide():
    """The blocks are listed first, unless the pass is left out; the workspace is
    the kernel's own business here."""
    q, k, v, o, lse = tensors(1, 2, 1, 50, 70, 8)
    shown = numpy.random.default_rng(3).random((50, 70)) < 0.1
    shown[:32, 32:64] = True
    text = attn.attention(
        "f32", 8, captures=[("shown", "tensor<?x?xi1>")],
        mask="""
            %m = attn.capture_load %shown[%i, %j] : tensor<?x?xi1>
            attn.yield %m : i1
        """,
    )
    expected, _ = reference(q, k, v, 8**-0.5, shown)
    for disable in ([], ["tile-list-blocks"]):
        kernel = attn.compile(text, target="cpu", disable=disable)
        assert kernel.workspace_bytes(q, k, v, shown, o, lse) == 0
        o[...] = numpy.nan
        kernel.launch(q, k, v, shown, o, lse, workspace=numpy.empty(0, numpy.uint8))
        assert numpy.abs(o - expected).max() < 5e-6


def test_workspace_of_another_kind():
    q, k, v, o, lse = tensors(1, 1, 1, 5, 6, 8)
    kernel = attn.compile(attn.attention("f32", 8), target="cpu")
    with pytest.raises(attn.AttnError, match="workspace: wanted a contiguous tensor of bytes"):
        kernel.launch(q, k, v, o, lse, workspace=numpy.empty(4, numpy.float32))


def test_small_numbers_are_floats_of_mlir():
    """Python writes 1e-05, MLIR wants 1.0e-05."""
    text = attn.attention("f32", 16, scale=1e-05, dropout_p=2e-07)
    assert "scale = 1.0e-05 : f64" in text and "dropout_p = 2.0e-07 : f64" in text
    attn.compile(text, target="cpu")


def test_result_without_lse():
    q, k, v, o, _ = tensors(1, 1, 1, 5, 6, 8)
    kernel = attn.compile(attn.attention("f32", 8, lse=False), target="cpu")
    kernel.launch(q, k, v, o)
    assert numpy.abs(o - reference(q, k, v, 8**-0.5)[0]).max() < 2e-6


def test_products_of_ieee():
    q, k, v, o, lse = tensors(1, 1, 1, 5, 6, 8)
    numerics = "f32_products = ieee"
    kernel = attn.compile(attn.attention("f32", 8, numerics=numerics), target="cpu")
    kernel.launch(q, k, v, o, lse)
    assert numpy.abs(o - reference(q, k, v, 8**-0.5)[0]).max() < 2e-6
    with pytest.raises(attn.AttnError, match="f32_products = ieee .* of f32 only, got 'bf16'"):
        attn.compile(attn.attention("bf16", 8, numerics=numerics), target="cpu")
