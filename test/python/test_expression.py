#===----------------------------------------------------------------------===#
#
# Part of attn, an attention compiler.
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===----------------------------------------------------------------------===#
"""Regions written as Python functions, on the CPU against NumPy."""

import attn
import numpy
import pytest
from attn import expression, masks

QUERIES, KEYS, HEADS, BATCH = 40, 52, 2, 2


def run(captures=(), arrays=(), **regions):
    """(o, lse) of a kernel and its inputs."""
    rng = numpy.random.default_rng(1)
    q, k, v = (rng.standard_normal((BATCH, HEADS, length, 16)).astype(numpy.float32)
               for length in (QUERIES, KEYS, KEYS))
    o = numpy.empty((BATCH, HEADS, QUERIES, 16), numpy.float32)
    lse = numpy.empty((BATCH, HEADS, QUERIES), numpy.float32)
    text = attn.attention("f32", 16, captures=captures, **regions)
    attn.compile(text, target="cpu").launch(q, k, v, *arrays, o, lse)
    return q, k, v, o, lse


def expected(q, k, v, visible, score=lambda x, b, h, i, j: x):
    i, j = numpy.arange(QUERIES)[:, None], numpy.arange(KEYS)[None, :]
    o, lse = numpy.empty(q.shape[:3] + (16,)), numpy.empty(q.shape[:3])
    for b in range(BATCH):
        for h in range(HEADS):
            x = score(q[b, h].astype(float) @ k[b, h].T / 4, b, h, i, j)
            x = numpy.where(visible(b, h, i, j), x, -numpy.inf)
            top = x.max(axis=1, keepdims=True)
            p = numpy.exp(x - numpy.where(numpy.isinf(top), 0, top))
            total = p.sum(axis=1, keepdims=True)
            o[b, h] = p @ v[b, h] / numpy.where(total == 0, 1, total)
            with numpy.errstate(divide="ignore"):
                lse[b, h] = (top + numpy.log(total))[:, 0]
    return o, lse


def check(visible, evaluated=lambda x, b, h, i, j: x, **options):
    q, k, v, o, lse = run(**options)
    wanted_o, wanted_lse = expected(q, k, v, visible, evaluated)
    numpy.testing.assert_allclose(o, wanted_o, atol=2e-5)
    numpy.testing.assert_allclose(lse, wanted_lse, atol=1e-4)


OFFSETS = numpy.array([0, 13, 13, 30, 52], numpy.int32)
LENGTHS = numpy.array([52, 7], numpy.int64)
IDS = numpy.sort(numpy.random.default_rng(2).integers(0, 4, (BATCH, KEYS)), axis=1).astype(numpy.int16)
MAP = numpy.random.default_rng(3).random((HEADS, 5, 7)) < 0.5


def document(i):
    return numpy.searchsorted(OFFSETS, i, side="right")


SHIFT = KEYS - QUERIES  # of bottom_right
MASKS = {
    "causal": (masks.causal(), lambda b, h, i, j: j <= i + SHIFT),
    "causal top left": (masks.causal("top_left"), lambda b, h, i, j: j <= i),
    "window": (masks.window(5, 2), lambda b, h, i, j: (j >= i + SHIFT - 5) & (j <= i + SHIFT + 2)),
    "window to the left": (masks.window(5, -1), lambda b, h, i, j: j >= i + SHIFT - 5),
    "window to the right": (masks.window(-1, 3, "top_left"), lambda b, h, i, j: j <= i + 3),
    "no window": (masks.window(-1, -1), lambda b, h, i, j: j >= 0),
    "sizes": (lambda p: (p.j < p.keys - 3) & (p.i < p.queries - 2) & (p.h < p.heads - 1),
              lambda b, h, i, j: (j < KEYS - 3) & (i < QUERIES - 2) & (h < HEADS - 1)),
    "prefix": (masks.prefix(9), lambda b, h, i, j: (j < 9) | (j <= i)),
    "global": (masks.global_and_window(3, 4), lambda b, h, i, j: (j < 3) | (i < 3) | ((j >= i - 4) & (j <= i))),
    "dilated": (masks.dilated(3), lambda b, h, i, j: abs(i - j) % 3 == 0),
    "chunked": (masks.chunked(16), lambda b, h, i, j: i // 16 == j // 16),
    "image": (masks.neighbourhood((7, 8), (1, 2)),
              lambda b, h, i, j: (abs(i // 8 - j // 8) <= 1) & (abs(i % 8 - j % 8) <= 2)),
    "volume": (masks.neighbourhood((3, 4, 5), (0, 1, 2)), lambda b, h, i, j:
               (i // 20 == j // 20) & (abs(i // 5 % 4 - j // 5 % 4) <= 1) & (abs(i % 5 - j % 5) <= 2)),
    "outside": (masks.outside(masks.window(3, 3, "top_left")), lambda b, h, i, j: abs(i - j) > 3),
    "either": (masks.either(masks.chunked(8), masks.causal("top_left")), lambda b, h, i, j: (i // 8 == j // 8) | (j <= i)),
    "by head": (lambda p: expression.where(p.h == 0, p.j <= p.i, p.j >= p.i),
                lambda b, h, i, j: j <= i if h == 0 else j >= i),
    "bits": (lambda p: (p.i ^ p.j) & 5 != 1, lambda b, h, i, j: (i ^ j) & 5 != 1),
    "shifts": (lambda p: (p.i << 2) >> 3 == p.j - (1 - p.j) // 3 * 0, lambda b, h, i, j: (i << 2) >> 3 == j),
    "negative modulo": (lambda p: (p.j - p.i) % 5 < 2, lambda b, h, i, j: (j - i) % 5 < 2),
    "everything": (lambda p: True, lambda b, h, i, j: j >= 0),
}


@pytest.mark.parametrize("name", MASKS)
def test_mask(name):
    mask, visible = MASKS[name]
    check(visible, mask=mask)


def test_documents():
    check(lambda b, h, i, j: (document(i) == document(j)) & (j <= i),
          captures=[("offsets", "tensor<?xi32>")], arrays=[OFFSETS], sorted_captures=["offsets"],
          mask=masks.both(masks.documents("offsets"), masks.causal("top_left")))


def test_captures():
    check(lambda b, h, i, j: (IDS[b][i] == IDS[b][j]) & (j < LENGTHS[b]) & MAP[h, i // 8, j // 8],
          captures=[("ids", "tensor<?x?xi16>"), ("lengths", "tensor<?xi64>"), ("map", "tensor<?x?x?xi1>")],
          arrays=[IDS, LENGTHS, MAP],
          mask=masks.both(masks.same("ids"), masks.padding("lengths"), masks.blocks("map", 8, 8)))


def test_scores():
    rng = numpy.random.default_rng(4)
    slopes = rng.random(HEADS).astype(numpy.float32)
    table = rng.standard_normal((HEADS, 21)).astype(numpy.float32)
    bias = rng.standard_normal((QUERIES, KEYS)).astype(numpy.float16)

    def score(x, b, h, i, j):
        x = x - slopes[h] * abs(i + SHIFT - j)
        x = x + table[h, numpy.clip(j - i + 10, 0, 20)]
        return 3 * numpy.tanh((x + bias) / 3)
    check(lambda b, h, i, j: j >= 0, score, arrays=[slopes, table, bias],
          captures=[("slopes", "tensor<?xf32>"), ("table", "tensor<?x21xf32>"), ("rest", "tensor<?x?xf16>")],
          score=masks.chain(masks.alibi("slopes"), masks.relative_bias("table", 10), masks.bias("rest"),
                            masks.softcap(3.0)))


VARIANTS = {
    "causal": dict(mask=masks.causal()),
    "causal<top_left>": dict(mask=masks.causal("top_left")),
    "window<left = 5, right = 2>": dict(mask=masks.window(5, 2)),
    "window<left = 5, right = -1, alignment = top_left>": dict(mask=masks.window(5, -1, "top_left")),
    "softcap<3.0 : f32>": dict(score=masks.softcap(3.0)),
    "alibi": dict(score=masks.alibi()),
    "alibi<top_left>": dict(score=masks.alibi(alignment="top_left")),
}


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("heads", ["?", HEADS])
def test_one_meaning_per_name(variant, heads):
    *_, o, lse = run(**VARIANTS[variant], heads=heads)
    *_, wanted_o, wanted_lse = run(variants=[variant], heads=heads)
    numpy.testing.assert_allclose(o, wanted_o, atol=1e-6)
    numpy.testing.assert_allclose(lse, wanted_lse, atol=1e-6)


def test_alibi_of_captured_slopes():
    slopes = 2.0 ** (-8 * numpy.arange(1, HEADS + 1, dtype=numpy.float32) / HEADS)
    *_, o, _ = run(score=masks.alibi("slopes"), captures=[("slopes", "tensor<?xf32>")], arrays=[slopes])
    *_, wanted, _ = run(variants=["alibi"])
    numpy.testing.assert_allclose(o, wanted, atol=1e-6)


@pytest.mark.parametrize("make, words", [
    (lambda: masks.causal("left"), "wanted the alignment 'bottom_right' or 'top_left', got 'left'"),
    (lambda: masks.window(-2, 0), "wanted a number of keys or -1, got -2"),
])
def test_alignments_and_windows(make, words):
    with pytest.raises(ValueError, match=words):
        make()


def test_functions():
    def score(p):
        far = expression.sqrt(abs(p.i - p.j).to("f32") + 1.0)
        return expression.maximum(p.x, -1) / far + expression.exp2(-far) * expression.sin(p.j * 0.5) - 1
    def wanted(x, b, h, i, j):
        far = numpy.sqrt(abs(i - j) + 1.0)
        return numpy.maximum(x, -1) / far + 2.0**-far * numpy.sin(j * 0.5) - 1
    check(lambda b, h, i, j: j >= 0, wanted, score=score)


@pytest.mark.parametrize("mask, message", [
    (lambda p: p.j <= p.i and p.j > 3, "not known here"),
    (lambda p: p.j - p.i, "wants a comparison"),
    (lambda p: (p.j <= p.i) + 1, "wanted numbers, got flags"),
    (lambda p: p.i // p.j == 0, "a constant other than 0"),
    (lambda p: p.i % 0 == 0, "a constant other than 0"),
    (lambda p: (p.i & (p.j <= p.i)), "two flags or two numbers"),
    (lambda p: expression.where(p.i, 1, 0), "wants a comparison first"),
])
def test_mistakes(mask, message):
    with pytest.raises(TypeError, match=message):
        attn.attention("f32", 16, mask=mask)


def test_unknown_capture():
    with pytest.raises(AttributeError, match="ids"):
        attn.attention("f32", 16, mask=lambda p: p.ids[p.i] == 0)
    with pytest.raises(IndexError, match="wants 2 indices"):
        attn.attention("f32", 16, captures=[("t", "tensor<?x?xi32>")], mask=lambda p: p.t[p.i] == 0)
    with pytest.raises(ValueError, match="no capture is called 'u'"):
        attn.attention("f32", 16, captures=[("t", "tensor<?xi32>")], sorted_captures=["u"])
