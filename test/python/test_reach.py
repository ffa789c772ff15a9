#===----------------------------------------------------------------------===#
#
# Part of attn, an attention compiler.
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===----------------------------------------------------------------------===#
"""Captured tensors that are smaller than their indices reach: refused where
sizes tell, at compile time or at launch, and nothing that may be right."""

import attn
import numpy
import pytest
from attn import debug, expression, masks

QUERIES, KEYS, HEADS, BATCH = 20, 40, 8, 3


def compiled(capture, others=(), variants=(), heads="?", **regions):
    """A kernel with a captured tensor ("t"), and (name, type, value) of others."""
    captures = [("t", capture), *((name, type) for name, type, _ in others)]
    return attn.compile(
        attn.attention("f32", 8, captures=captures, variants=variants, heads=heads, **regions),
        target="cpu")


def launch(kernel, shape, others=(), queries=QUERIES, keys=KEYS):
    element = {"f32": numpy.float32, "i32": numpy.int32, "i1": numpy.bool_}
    info = kernel.manifest["arguments"][3]
    q = numpy.ones((BATCH, HEADS, queries, 8), numpy.float32)
    k = numpy.ones((BATCH, HEADS, keys, 8), numpy.float32)
    kernel.launch(q, k, k, numpy.ones(shape, element[info["element"]]), *(value for *_, value in others),
                  numpy.empty_like(q), numpy.empty(q.shape[:3], numpy.float32))


def slope(p):
    return p.x + p.t[p.h] * (p.j - p.i)


IDS = ("ids", "tensor<?x?xi32>", numpy.ones((BATCH, KEYS), numpy.int32))


def n(value):
    return [("n", "i32", value)]


def same_document(p):
    """Searched in the row of a head."""
    return p.t.upto(p.i, p.h) == p.t.upto(p.j, p.h)


def table(reach):
    return lambda p: p.x + p.t[p.h, expression.clip(p.j - p.i + reach, 0, 2 * reach)]


# What is captured, a shape that will do, shapes that do not and the words.
REFUSED = {
    "slopes": (dict(capture="tensor<?xf32>", score=slope), (8,), [((4,), "dimension 0 of 't'", "(8 against 4)")]),
    "slopes of documents": (dict(capture="tensor<?xf32>", score=slope, others=[IDS], mask=masks.same("ids")),
                            (8,), [((7,), "(8 against 7)")]),
    "causal slopes": (dict(capture="tensor<?xf32>", score=slope, variants=["causal"]), (8,), [((4,), "(8 against 4)")]),
    "slopes in a window": (dict(capture="tensor<?xf32>", score=slope, variants=["window<left = 3, right = 2>"]),
                           (8,), [((7,), "(8 against 7)")]),
    "relative bias": (dict(capture="tensor<?x?xf32>", score=table(16)), (8, 33),
                      [((8, 17), "dimension 1 of 't'", "(33 against 17)"),
                       ((4, 33), "dimension 0 of 't'", "(8 against 4)")]),
    "bias": (dict(capture="tensor<?x?xf32>", score=lambda p: p.x + p.t[p.i, p.j]), (20, 40),
             [((19, 40), "dimension 0", "(20 against 19)"), ((20, 39), "dimension 1", "(40 against 39)"),
              ((0, 0), "(20 against 0)")]),
    "causal bias": (dict(capture="tensor<?x?xf32>", score=lambda p: p.x + p.t[p.i, p.j], variants=["causal"]),
                    (20, 40), [((20, 39), "dimension 1", "(40 against 39)")]),
    "ids": (dict(capture="tensor<?x?xi32>", mask=masks.both(masks.causal("top_left"), masks.same("t"))),
            (3, 20), [((2, 20), "dimension 0", "(3 against 2)"), ((3, 19), "dimension 1", "(20 against 19)")]),
    "lengths": (dict(capture="tensor<?xi32>", mask=masks.padding("t")), (3,), [((2,), "(3 against 2)")]),
    "block map": (dict(capture="tensor<?x?x?xi1>", mask=masks.blocks("t", 8, 16)), (8, 3, 3),
                  [((8, 2, 3), "dimension 1", "(3 against 2)"), ((8, 3, 2), "dimension 2", "(3 against 2)"),
                   ((7, 3, 3), "dimension 0", "(8 against 7)")]),
    "searched": (dict(capture="tensor<?x?xi32>", mask=same_document), (8, 5),
                 [((4, 5), "dimension 0 of 't'", "(8 against 4)"), ((7, 60), "(8 against 7)")]),
    "searched by a score": (dict(capture="tensor<?x?x?xi32>", variants=["causal<top_left>"],
                                 score=lambda p: p.x + p.t.upto(p.j, p.b, p.i // 4).to("f32")), (3, 5, 1),
                            [((2, 5, 9), "dimension 0 of 't'", "(3 against 2)"),
                             ((3, 4, 9), "dimension 1 of 't'", "(5 against 4)")]),
    "up to a scalar": (dict(capture="tensor<?xf32>", others=n(41),
                            score=lambda p: expression.where(p.j < p.n, p.x + p.t[p.j], p.x)),
                       (40,), [((39,), "(40 against 39)")]),
    "shifted by a scalar": (dict(capture="tensor<?xf32>", others=n(5), score=lambda p: p.x + p.t[p.j + p.n]),
                            (45,), [((44,), "(45 against 44)")]),
}


@pytest.mark.parametrize("name", REFUSED)
def test_launches(name):
    options, enough, refusals = REFUSED[name]
    kernel, others = compiled(**options), options.get("others", ())
    launch(kernel, enough, others)
    for shape, *words in refusals:
        with pytest.raises(attn.AttnError) as caught:
            launch(kernel, shape, others)
        for word in [*words, "is smaller than its indices reach"]:
            assert word in str(caught.value)


def test_what_is_reached_depends_on_the_lengths():
    """Short sequences need no whole table."""
    kernel = compiled("tensor<?x17xf32>", score=table(16))
    launch(kernel, (8, 17), queries=5, keys=1)
    with pytest.raises(attn.AttnError, match="dimension 1 of 't' is smaller than its indices reach"):
        launch(kernel, (8, 17), queries=1, keys=5)
    launch(kernel, (8, 17), queries=0, keys=5)
    launch(kernel, (0, 17), queries=5, keys=0)


# Smaller than some index of the region, and right.
LEGAL = {
    "a mask in front": (dict(capture="tensor<?xf32>", score=lambda p: p.x + p.t[p.j], mask=lambda p: p.j < 30), (30,)),
    "a causal table": (dict(capture="tensor<?xf32>", variants=["causal<top_left>"],
                            score=lambda p: p.x + p.t[p.j - p.i + 16]), (17,)),
    "select": (dict(capture="tensor<?xf32>", score=lambda p: p.x + expression.where(p.j < 30, p.t[p.j], 0.0)), (30,)),
    "select the other way": (
        dict(capture="tensor<?xf32>", score=lambda p: p.x + expression.where(p.j >= 30, 0.0, p.t[p.j])), (30,)),
    "select later": (dict(capture="tensor<?xf32>",
                          score=lambda p: expression.where(p.j < 30, p.x + p.t[p.j] * 2, p.x)), (30,)),
    "conjunction": (dict(capture="tensor<?xi32>", mask=lambda p: (p.j < 30) & (p.t[p.j] > 0)), (30,)),
    "disjunction": (dict(capture="tensor<?xi32>", mask=lambda p: (p.j >= 30) | (p.t[p.j] > 0)), (30,)),
    "factor": (dict(capture="tensor<?xf32>", score=lambda p: p.x + p.t[p.j] * (p.j < 30).to("f32")), (30,)),
    "selected factor": (
        dict(capture="tensor<?xf32>", score=lambda p: p.x + expression.where(p.j < 30, 2.0, 0.0) * p.t[p.j]), (30,)),
    "zero": (dict(capture="tensor<?xf32>", score=lambda p: p.x + p.t[p.j] * 0.0), (30,)),
    "clipped": (dict(capture="tensor<?xf32>", score=lambda p: p.x + p.t[expression.minimum(p.j, 29)]), (30,)),
    "bits": (dict(capture="tensor<?xf32>", score=lambda p: p.x + p.t[p.j & 15]), (16,)),
    "modulo": (dict(capture="tensor<?xf32>", score=lambda p: p.x + p.t[(p.j - p.i) % 9]), (9,)),
    "below 0": (dict(capture="tensor<?xf32>", score=lambda p: p.x + p.t[p.j - 1]), (39,)),
    "by data": (dict(capture="tensor<?xi32>", mask=lambda p: p.t[p.t[p.j]] > 0, ), (40,)),
    "shown by data": (dict(capture="tensor<?xf32>", others=n(30), mask=lambda p: p.j < p.n,
                           score=lambda p: p.x + p.t[p.j]), (30,)),
    "wrapping": (dict(capture="tensor<?xf32>",
                      score=lambda p: p.x + p.t[(p.j * 1640531527) >> 28 & 7]), (8,)),
    "searched for anything": (dict(capture="tensor<?xi32>", mask=lambda p: p.t.upto(p.j + 100) < p.j), (1,)),
    "searched in some heads": (dict(capture="tensor<?x?xi32>", mask=lambda p: (p.h >= 4) | same_document(p)), (4, 5)),
    "searched by data": (dict(capture="tensor<?x?xi32>", mask=lambda p: p.t.upto(p.j, p.t[p.h, 0]) > 0), (8, 5)),
    "searched below 0": (dict(capture="tensor<?x?xi32>", mask=lambda p: p.t.upto(p.j, p.h - 1) >= 0), (7, 5)),
    "up to a scalar": (dict(capture="tensor<?xf32>", others=n(25),
                            score=lambda p: expression.where(p.j < p.n, p.x + p.t[p.j], p.x)), (25,)),
    "nothing shown": (dict(capture="tensor<?xf32>", mask=lambda p: p.j < 0, score=lambda p: p.x + p.t[p.j]), (1,)),
}


@pytest.mark.parametrize("name", LEGAL)
def test_legal(name):
    options, shape = LEGAL[name]
    launch(compiled(**options), shape, options.get("others", ()))


def test_what_types_tell_is_refused_by_the_compiler():
    with pytest.raises(attn.AttnError) as caught:
        compiled("tensor<4xf32>", heads=8, score=lambda p: p.x + p.t[p.h])
    assert "reads index 7 of dimension 0 of 't', which has 4 elements there" in str(caught.value)
    assert "attn.capture_load %t[%h]" in str(caught.value)
    compiled("tensor<8xf32>", heads=8, score=lambda p: p.x + p.t[p.h])
    with pytest.raises(attn.AttnError) as caught:
        compiled("tensor<4x?xi32>", heads=8, mask=same_document)
    assert "reads index 7 of dimension 0 of 't', which has 4 elements there" in str(caught.value)
    assert "attn.capture_search %t[%h]" in str(caught.value)
    compiled("tensor<8x?xi32>", heads=8, mask=same_document)


def test_regions_that_double_are_given_up():
    """Sixty operations whose expressions double with each: nothing is known of them."""
    lines = ["%d0 = arith.subi %j, %i : i32"]
    lines += [f"%d{n + 1} = arith.minsi %d{n}, %d{n} : i32" for n in range(60)]
    lines += ["%y = attn.capture_load %t[%d60] : tensor<?xf32>", "%z = arith.mulf %y, %y : f32"]
    lines += [f"%z{n + 1} = arith.mulf %z{n or ''}, %z{n or ''} : f32" for n in range(60)]
    lines += ["%s = arith.addf %x, %z60 : f32", "attn.yield %s : f32"]
    text = attn.attention("f32", 8, captures=[("t", "tensor<?xf32>")], score="\n".join(lines))
    attn.compile(text, target="cpu")


def random_index(rng, p):
    index = rng.choice([p.b, p.h, p.i, p.j, p.j - p.i, p.i + p.offset - p.j, p.h + p.j, p.n])
    for _ in range(rng.integers(0, 3)):
        number = int(rng.integers(1, 9))
        index = rng.choice([lambda v: v + number, lambda v: v * number, lambda v: v // number, lambda v: v % number,
                            lambda v: expression.minimum(v, number), lambda v: expression.maximum(v, number),
                            lambda v: v & 7, lambda v: abs(v), lambda v: v >> 1,
                            lambda v: expression.where(p.i > number, v, number)])(index)
    return index


def random_flag(rng, p):
    number = int(rng.integers(0, 9))
    flag = rng.choice([lambda: p.j <= p.i, lambda: p.j < number, lambda: p.i >= p.n, lambda: p.h == number,
                       lambda: p.ids[p.j] > number, lambda: p.rows.upto(p.i, random_index(rng, p)) > number, lambda: abs(p.i - p.j) < number, lambda: p.b != 1])()
    return ~flag if rng.random() < 0.3 else flag


def random_score(rng, p):
    value = p.t[random_index(rng, p)]
    for _ in range(rng.integers(0, 3)):
        value = rng.choice([
            lambda v: expression.where(random_flag(rng, p), v, 0.0), lambda v: expression.where(random_flag(rng, p), 1.0, v),
            lambda v: v * random_flag(rng, p).to("f32"), lambda v: v * (p.j - p.i), lambda v: v + p.u[random_index(rng, p)],
            lambda v: v * p.u[p.h]])(value)
    return p.x + value


def random_mask(rng, p):
    flag = random_flag(rng, p)
    for _ in range(rng.integers(0, 3)):
        other = rng.choice([random_flag(rng, p), p.t[random_index(rng, p)] > 0])
        flag = flag & other if rng.random() < 0.5 else flag | other
    return flag


@pytest.mark.parametrize("seed", range(10))
def test_random_regions(seed):
    """What is refused reads out of range at a visible position, where it matters: so
    says debug.py, which looks at all of them."""
    rng = numpy.random.default_rng(seed)
    captures = [("t", "tensor<?xf32>"), ("u", "tensor<?xf32>"), ("ids", "tensor<?xi32>"),
                ("rows", "tensor<?x?xi32>"), ("n", "i32")]
    variants = [[], ["causal"], ["window<left = 3, right = 2, alignment = top_left>"]][seed % 3]
    text = attn.attention("f32", 8, captures=captures, variants=variants,
                          score=lambda p: random_score(rng, p), mask=lambda p: random_mask(rng, p))
    kernel = attn.compile(text, target="cpu")
    for _ in range(40):
        batch, heads, queries, keys, t, u, rows = (int(number) for number in rng.integers(1, 9, 7))
        q, k = (numpy.ones((batch, heads, length, 8), numpy.float32) for length in (queries, keys))
        values = [q, k, k, numpy.ones(t, numpy.float32), numpy.ones(u, numpy.float32),
                  rng.integers(0, 9, 8).astype(numpy.int32),
                  numpy.sort(rng.integers(0, 9, (rows, 3))).astype(numpy.int32), int(rng.integers(0, 9)),
                  numpy.empty_like(q), numpy.empty(q.shape[:3], numpy.float32)]
        try:
            kernel.describe_launch(*values)
        except attn.AttnError as error:
            assert "is smaller than its indices reach" in str(error)
            with pytest.raises(attn.AttnError, match="is read at batch entry"):
                debug.check(text, kernel.manifest["arguments"], values)


def test_deep_expressions_can_be_read_again():
    """Readers of artifacts refuse expressions that nest deeply."""
    def score(p):
        at = p.j
        for n in range(100):
            at = expression.maximum(at + 1, p.i + n) if n % 2 else expression.minimum(at, p.j + n)
        return p.x + p.t[at]

    artifact = attn.compile(attn.attention("f32", 8, captures=[("t", "tensor<?xf32>")], score=score))
    assert attn.Artifact.load(artifact.bytes).manifest == artifact.manifest
