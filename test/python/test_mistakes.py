#===----------------------------------------------------------------------===#
#
# Part of attn, an attention compiler.
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===----------------------------------------------------------------------===#
"""Mistakes in programs: none passes in silence, each is named in the words of the
one who made it."""

import warnings

import attn
import numpy
import pytest
from attn import elements, expression, masks

TABLE = [("ids", "tensor<?xi32>"), ("four", "tensor<4xf32>"), ("shown", "tensor<?xi1>"), ("half", "f16")]


def refused(kind, words, captures=TABLE, **options):
    with pytest.raises(kind) as caught:
        attn.attention("f32", 16, captures=captures, **options)
    assert words in str(caught.value)


def forgotten(p):
    p.j <= p.i


@pytest.mark.parametrize("mask, words", [
    (forgotten, "the mask function returned nothing, wanted a comparison or a flag: is a `return` missing?"),
    (lambda p: 0.5, "a mask wants a comparison or a flag, got 0.5"),
    (lambda p: 1, "a mask wants a comparison or a flag, got 1"),
    (lambda p: "no", "a mask wants a comparison or a flag, got 'no'"),
    (lambda p: (p.j <= p.i, True), "got tuple"),
    (lambda p: p.j - p.i, "a mask wants a comparison or a flag, got a number (i32)"),
    (lambda p: p.shown, "got the captured tensor 'shown' as a whole: index it, as in p.shown[p.j]"),
    (lambda p: p.ids == 3, "the captured tensor 'ids' as a whole: index it"),
    (lambda p: p.j in p.ids, "not iterable"),
    (lambda p: p.shown[p.j] > p.shown[p.i], "wanted numbers, got flags"),
    (lambda p: (p.j <= p.i) & 5, "wanted two flags or two numbers, got a flag (i1) and 5"),
    (lambda p: p.j == True, "wanted two flags or two numbers, got a number (i32) and True"),  # noqa: E712
    (lambda p: p.j == "3", "wanted a number or a value of the region, got '3'"),
    (lambda p: p.j == numpy.arange(3), "wanted a number or a value of the region, got ndarray"),
    (lambda p: p.j // 2.0 == 3, "// and % want integers"),
    (lambda p: p.j << 32 == 3, "wanted a shift by 0 to 31, got 32"),
    (lambda p: p.ids[p.j / 2] == 3, "wanted integers as indices, got a number (f32)"),
    (lambda p: p.ids[2.0] == 3, "wanted integers as indices, got 2.0"),
    (lambda p: expression.exp(2.0) > p.j, "wanted a value of the region, got 2.0"),
    (lambda p: expression.minimum(2, 3) > p.j, "wanted a value of the region, got 2 and 3"),
    (lambda p: expression.where(p.i > 3, "a", "b"), "wanted a number or a value of the region, got 'a'"),
    (lambda p: expression.where(p.i > 3, True, 0.5), "wanted two flags or two numbers, got True and 0.5"),
    (lambda b, h, i, j: i >= j, "wanted a function of one argument, a position with p.b, p.h, p.i and p.j"),
    (3.0, "mask: wanted a function of a position, or lines of MLIR, got 3.0"),
])
def test_masks(mask, words):
    refused(TypeError, words, mask=mask)


@pytest.mark.parametrize("mask, kind, words", [
    (lambda p: p.id[p.j] == 0, AttributeError, "a position has no 'id' (did you mean 'ids'?): it has b, h, i, j, ids"),
    (lambda p: p.x > 0, AttributeError, "a mask does not see p.x"),
    (lambda p: p.four[4] > 0, IndexError, "index 4 of 'four', tensor<4xf32>, is out of range"),
    (lambda p: p.ids[-1] > 0, IndexError, "index -1 of 'ids'"),
    (lambda p: p.j < 3 * 10**9, OverflowError, "3000000000 does not fit i32"),
    (lambda p: p.half < 1e6, OverflowError, "1000000.0 does not fit f16"),
    ("%m = arith.constant true", ValueError, "wanted lines of MLIR that end in attn.yield"),
])
def test_masks_with_other_exceptions(mask, kind, words):
    refused(kind, words, mask=mask)


@pytest.mark.parametrize("score, words", [
    (lambda p: None, "the score function returned nothing, wanted a number"),
    (lambda p: p.j <= p.i, "a score wants a number, got a flag (i1): where() makes a score of a flag"),
    (lambda p: True, "a score wants a number, got True"),
    (lambda p: "x", "a score wants a number, got 'x'"),
    (lambda p: p.x + (p.j <= p.i), "wanted two flags or two numbers, got a number (f32) and a flag (i1)"),
    (lambda p: p.x + (p.j <= p.i) * -1e9, "wanted two flags or two numbers"),
    (lambda p: p.x + p.four, "the captured tensor 'four' as a whole"),
    (masks.chain(masks.softcap(3.0), lambda p: None), "the score function returned nothing"),
    (True, "score: wanted a function of a position, or lines of MLIR, got True"),
])
def test_scores(score, words):
    refused(TypeError, words, score=score)


def test_a_float_is_a_float():
    text = attn.attention("f32", 16, score=lambda p: p.x + (p.j - p.i) * 1e9)
    assert "arith.sitofp" in text and "arith.muli" not in text
    text = attn.attention("f32", 16, score=lambda p: p.x + (p.j - p.i) * numpy.float32(2))
    assert "arith.sitofp" in text
    text = attn.attention("f32", 16, mask=lambda p: p.j < numpy.int64(7))
    assert "arith.constant 7 : i32" in text
    text = attn.attention("f32", 16, mask=lambda p: p.j < 7.0)
    assert "arith.cmpf olt" in text


def test_numbers_of_numpy_in_front():
    """NumPy leaves the operator to the value."""
    text = attn.attention("f32", 16, score=lambda p: numpy.float64(2) * p.x)
    assert "arith.mulf %v0, %x : f32" in text


@pytest.mark.parametrize("score, seen", [
    (lambda p: 0.5, "0.5 everywhere"),
    (lambda p: p.i * 0.5, "a function of the position alone"),
    ("%y = arith.constant 0.5 : f32\nattn.yield %y : f32", "made without %x"),
])
def test_a_score_that_ignores_x(score, seen):
    with pytest.warns(UserWarning, match="the score ignores x") as caught:
        attn.attention("f32", 16, score=score)
    assert seen in str(caught[0].message)
    assert caught[0].filename == __file__


def test_scores_that_warn_of_nothing():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        attn.attention("f32", 16, score=lambda p: p.x)
        attn.attention("f32", 16, score=lambda p: expression.where(p.j > p.i, -1e9, p.x * 2))
        assert "arith.constant 5.0" in attn.attention("f32", 16, score=0.5)


@pytest.mark.parametrize("name", [
    "float16", "half", "f16", "torch.float16", numpy.float16, numpy.dtype("float16")])
def test_names_of_elements(name):
    assert attn.attention(name, 64) == attn.attention("f16", 64)


def test_names_of_elements_elsewhere():
    class Torch:  # torch.bfloat16 has no name but what it prints
        def __str__(self):
            return "torch.bfloat16"

    assert attn.attention(Torch(), 64) == attn.attention("bf16", 64)
    text = attn.attention("f32", 16, captures=[("t", f"tensor<?x4x{Torch()}>"), ("n", numpy.int64), ("m", bool)],
                          score=lambda p: p.x + p.t[p.i, 3].to(numpy.float32) + p.n.to("float16"))
    assert "%t: tensor<?x4xbf16>, %n: i64, %m: i1" in text
    assert elements.element(numpy.bool_) == "i1"


@pytest.mark.parametrize("element, words", [
    ("f8", "unknown element type 'f8': wanted f16 (float16), bf16 (bfloat16) or f32 (float32)"),
    ("flaot32", "unknown element type 'flaot32' (did you mean 'float32'?)"),
    (numpy.float64, "wanted elements of f16 (float16), bf16 (bfloat16) or f32 (float32), got f64 (float64)"),
    ("int8", "got i8 (int8)"),
    (float, "'float' has other sizes in other places"),
])
def test_elements(element, words):
    with pytest.raises(ValueError) as caught:
        attn.attention(element, 64)
    assert words in str(caught.value)


@pytest.mark.parametrize("name, type, words", [
    ("q", "i32", "cannot be called 'q': that is an argument or result"),
    ("lse", "i32", "cannot be called 'lse': that is an argument or result"),
    ("x", "i32", "cannot be called 'x': that is a part of the position"),
    ("j", "i32", "cannot be called 'j': that is a part of the position"),
    ("keys", "i32", "cannot be called 'keys': that is p.keys is the number of keys"),
    ("twice", "i32", "cannot be called 'twice': that is another capture"),
    ("a b", "i32", "cannot be called 'a b'"),
    ("_lines", "i32", "cannot be called '_lines'"),
    ("n", "uint16", "capture 'n': uint16: regions read integers with a sign"),
    ("n", "tensor<?xint33>", "capture 'n': unknown element type 'int33' (did you mean 'int32'?)"),
    ("n", "tensor<?,f32>", "capture 'n': unknown element type '?,f32'"),
    ("n", "vector<4xf32>", "capture 'n': wanted a type like 'i32' or 'tensor<?x8xf32>'"),
])
def test_captures(name, type, words):
    refused(ValueError, words, captures=[("twice", "i32"), (name, type)])


def test_what_is_taken_depends_on_the_program():
    attn.attention("f32", 16, captures=[("sink", "i32"), ("seed", "i32")])
    refused(ValueError, "cannot be called 'sink'", captures=[("sink", "i32")], sink=True)
    refused(ValueError, "cannot be called 'seed'", captures=[("seed", "i32")], dropout_p=0.5)


@pytest.mark.parametrize("options, kind, words", [
    (dict(variants="causal"), TypeError, "variants: wanted a list, as in ['causal'], got the text 'causal'"),
    (dict(variants=["casual"]), ValueError, "unknown variant 'casual' (did you mean 'causal'?)"),
    (dict(variants=[masks.causal]), TypeError, "variants: wanted texts like 'causal'"),
    (dict(sorted_captures="ids"), TypeError, "sorted_captures: wanted a list, as in ['ids']"),
    (dict(sorted_captures=["id"]), ValueError, "no capture is called 'id' (did you mean 'ids'?)"),
    (dict(sorted_captures=["four"]), ValueError, "wanted tensors of integers, 'four' is tensor<4xf32>"),
    (dict(aligned_captures=["fou"]), ValueError, "aligned_captures: no capture is called 'fou' (did you mean 'four'?)"),
    (dict(captures=["ids"]), TypeError, "captures: wanted (name, type) pairs, got 'ids'"),
    (dict(heads=8, kv_heads=3), ValueError, "8 heads over 3 key heads: wanted a multiple"),
    (dict(heads=0), ValueError, "heads: wanted '?' or at least 1, got 0"),
    (dict(batch="many"), TypeError, "batch: wanted an integer, got 'many'"),
    (dict(value_dim=20), ValueError, "value_dim: wanted a multiple of 8 up to 256, got 20"),
    (dict(scale=float("nan")), ValueError, "scale: wanted a finite number, got nan"),
    (dict(dropout_p=1), ValueError, "dropout_p: wanted a share of at least 0 and below 1, got 1"),
    (dict(name="a b"), ValueError, "name: wanted a letter"),
])
def test_options(options, kind, words):
    refused(kind, words, **{"captures": TABLE, **options})


def test_variants_with_their_prefix():
    assert (attn.attention("f32", 16, variants=["#attn.causal"])
            == attn.attention("f32", 16, variants=["causal"]))


def test_errors_quote_the_line():
    with pytest.raises(attn.AttnError) as caught:
        attn.compile(attn.attention("f32", 16, variants=["softcap<zero>"]), target="cpu")
    message, line, mark = str(caught.value).split("\n")[:3]
    assert "error: " in message and "softcap<zero>" in line
    assert line[mark.index("^"):].startswith("zero")


def test_errors_quote_a_part_of_a_long_line():
    text = attn.attention("f32", 16, captures=[(f"c{n}", "i32") for n in range(40)], numerics="fast = true")
    with pytest.raises(attn.AttnError) as caught:
        attn.compile(text, target="cpu")
    line = str(caught.value).split("\n")[1]
    assert "numerics<fast = true>" in line and len(line) < 200


def test_texts_that_are_none():
    with pytest.raises(TypeError, match="wanted MLIR text, got function"):
        attn.compile(lambda p: p.x)
    with pytest.raises(ValueError, match="has a NUL in it"):
        attn.compile(attn.attention("f32", 16), plan="#attn.plan<\0")
