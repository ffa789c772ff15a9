#===----------------------------------------------------------------------===#
#
# Part of attn, an attention compiler.
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===----------------------------------------------------------------------===#
"""Integers and choices that regions make of floats: as they are written.

The score is the bucket of the distance, and each row sees the first key alone:
its lse is the bucket, whatever the rest of a kernel rounds.
"""

import attn
import numpy as np
import pytest

QUERIES = 600
F = np.float32


def log(x):
    """The f32 next to the logarithm."""
    return np.log(x.astype(np.float64)).astype(F)


def t5_by_quotients(r):
    """log(r / 8) / 2.7726 * 8, as T5 has its buckets."""
    lines = """
        %ratio = arith.divf %r, %c8 : f32
        %log = math.log %ratio : f32
        %part = arith.divf %log, %c2_7726 : f32
        %times = arith.mulf %part, %c8 : f32"""
    return lines, log(r / F(8)) / F(2.7726) * F(8), None


def t5_by_products(r):
    """Six buckets from 8 to 16; 256 is on the border of the thirtieth."""
    lines = """
        %ratio = arith.mulf %r, %c0_125 : f32
        %log = math.log %ratio : f32
        %part = arith.mulf %log, %c1_442695 : f32
        %times = arith.mulf %part, %c6 : f32"""
    x = log(r * F(0.125))
    return lines, x * F(1.442695) * F(6), x * (F(1.442695) * F(6))


def there_and_back(r):
    lines = """
        %part = arith.mulf %r, %c0_024390243902439025 : f32
        %times = arith.mulf %part, %c41 : f32"""
    return lines, r * F(1 / 41) * F(41), r * (F(1 / 41) * F(41))


def sum_of_products(r):
    lines = """
        %part = arith.mulf %r, %c0_7 : f32
        %times = arith.addf %part, %c0_3 : f32"""
    fused = (r.astype(np.float64) * np.float64(F(0.7)) + np.float64(F(0.3))).astype(F)
    return lines, r * F(0.7) + F(0.3), fused


def rounded_to_f16(r):
    lines = """
        %part = arith.mulf %r, %c0_334 : f32
        %narrow = arith.truncf %part : f32 to f16
        %times = arith.extf %narrow : f16 to f32"""
    x = r * F(0.334)
    return lines, x.astype(np.float16).astype(F), x


FORMULAS = [t5_by_quotients, t5_by_products, there_and_back, sum_of_products, rounded_to_f16]


def buckets(lines, decision):
    """What a kernel makes of the distances 1 ... QUERIES."""
    names = {word.strip(",") for word in lines.split() if word.startswith("%c")}
    constants = "\n".join(f"{name} = arith.constant {float(name[2:].replace('_', '.'))!r} : f32"
                          for name in sorted(names))
    text = attn.attention("f32", 16, score=f"""
            %one = arith.constant 1 : i32
            %d = arith.subi %i, %j : i32
            %n = arith.addi %d, %one : i32
            %r = arith.sitofp %n : i32 to f32
            {constants}
            {lines}
            {decision}
            %score = arith.addf %y, %x : f32
            attn.yield %score : f32
        """, mask="""
            %zero = arith.constant 0 : i32
            %first = arith.cmpi eq, %j, %zero : i32
            attn.yield %first : i1
        """)
    shape = (1, 1, QUERIES, 16)
    q, k, v = (np.zeros(shape, F) for _ in range(3))
    o, lse = np.zeros(shape, F), np.zeros(shape[:3], F)
    attn.compile(text, target="cpu").launch(q, k, v, o, lse)
    assert np.abs(lse - np.rint(lse)).max() < 1e-3
    return np.rint(lse[0, 0])


DECISIONS = {
    "fptosi": ("""
        %bucket = arith.fptosi %times : f32 to i32
        %y = arith.sitofp %bucket : i32 to f32""", np.trunc),
    "floor": ("%y = math.floor %times : f32", np.floor),
    "ceil": ("%y = math.ceil %times : f32", np.ceil),
    "roundeven": ("""
        %half = arith.constant 0.5 : f32
        %moved = arith.addf %times, %half : f32
        %y = math.roundeven %moved : f32""", lambda x: np.rint(x + F(0.5))),
    "cmpf": ("""
        %whole = math.roundeven %times : f32
        %less = arith.cmpf olt, %times, %whole : f32
        %below = arith.constant 1.0 : f32
        %other = arith.constant 2.0 : f32
        %y = arith.select %less, %below, %other : f32""", lambda x: np.where(x < np.rint(x), 1, 2)),
}


@pytest.mark.parametrize("decision", DECISIONS)
@pytest.mark.parametrize("formula", FORMULAS, ids=lambda formula: formula.__name__)
def test_bucket(formula, decision):
    r = np.arange(1, QUERIES + 1).astype(F)
    lines, written, other = formula(r)
    text, decide = DECISIONS[decision]
    assert (buckets(lines, text) == decide(written)).all()
    # The distances must tell one evaluation from another.
    if decision == "fptosi" and other is not None:
        assert (decide(written) != decide(other)).any()
