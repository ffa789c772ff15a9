# Part of attn, an attention compiler.
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The table of spellings, part five: weights that are hidden after the softmax, and
what is subtracted before it."""

from spellings import INFINITY, attention, kept, masked, raised


def hidden_far(g, s, m, number="-10000.0"):
    return g.map(
        [s, m],
        f"%n = arith.constant {number} : {s.dtype}\n"
        f"%y = arith.select %1, %0, %n : {s.dtype}",
    )


def zero_unless(g, p, m):
    return g.map(
        [p, m],
        f"%z = arith.constant 0.0 : {p.dtype}\n"
        f"%y = arith.select %1, %0, %z : {p.dtype}",
    )


@raised
def weights_hidden_like_scores(g):
    qkv, m = g.qkv(), g.arg("bij", "i1")
    return attention(
        g,
        *qkv,
        between=lambda s: hidden_far(g, s, m),
        after=lambda p: zero_unless(g, p, m),
    )


@raised
def weights_times_their_mask(g):
    qkv, m = g.qkv(), g.arg("bj", "i1")

    def after(p):
        number = g.map([m], f"%y = arith.uitofp %0 : i1 to {p.dtype}", dtype=p.dtype)
        return g.binary("mulf", p, number)

    return attention(
        g, *qkv, between=lambda s: hidden_far(g, s, m), after=after
    )


@raised
def weights_of_rows_hidden(g):
    qkv, m, rows = g.qkv(), g.arg("bj", "i1"), g.arg("bi", "i1")
    return attention(
        g,
        *qkv,
        between=lambda s: masked(g, s, m),
        after=lambda p: zero_unless(g, p, rows),
    )


@raised
def weights_that_are_no_numbers(g):
    qkv, m = g.qkv(), g.arg("bij", "i1")
    return attention(
        g,
        *qkv,
        between=lambda s: masked(g, s, m),
        after=lambda p: g.map(
            [p],
            f"%z = arith.constant 0.0 : {p.dtype}\n"
            f"%c = arith.cmpf uno, %0, %0 : {p.dtype}\n"
            f"%y = arith.select %c, %z, %0 : {p.dtype}",
        ),
    )


@kept
def weights_hidden_by_another_mask(g):
    qkv, m, other = g.qkv(), g.arg("bij", "i1"), g.arg("bij", "i1")
    return attention(
        g,
        *qkv,
        between=lambda s: hidden_far(g, s, m),
        after=lambda p: zero_unless(g, p, other),
    )


@kept
def weights_hidden_by_one_of_two_masks(g):
    """Rows that the other hides are means over all that this one shows."""
    qkv, m, other = g.qkv(), g.arg("bij", "i1"), g.arg("bij", "i1")
    return attention(
        g,
        *qkv,
        between=lambda s: hidden_far(g, hidden_far(g, s, m), other),
        after=lambda p: zero_unless(g, p, m),
    )


@kept
def weights_hidden_where_scores_are_seen(g):
    """A fill of -1 hides nothing."""
    qkv, m = g.qkv(), g.arg("bij", "i1")
    return attention(
        g,
        *qkv,
        between=lambda s: hidden_far(g, s, m, "-1.0"),
        after=lambda p: zero_unless(g, p, m),
    )


def scaled_after_the_maximum(g, s, factor):
    """(s - max s) * factor"""
    less = g.binary("subf", s, g.reduce("maximumf", s, "j", INFINITY[s.dtype]))
    return g.scale(less, factor)


@raised
def maximum_before_a_scale(g):
    return attention(
        g, *g.qkv(), between=lambda s: scaled_after_the_maximum(g, s, "32.0")
    )
