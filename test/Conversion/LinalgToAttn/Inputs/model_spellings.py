# Part of attn, an attention compiler.
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The table of spellings, part four: what importers make of models."""

from spellings import attention, kept, raised


# --- Dimensions that are kept -------------------------------------------------


def kept_sum(g, t, size=1):
    """The sum over keys at 0 of a last dimension: a constant in the map of the
    result."""
    g.sizes["1"] = size
    one = g.fill("bhi1", "1.0" if size > 1 else "0.0", t.dtype)
    return g.generic("bhij", [t], one, f"%y = arith.addf %acc, %0 : {t.dtype}", "j")


@raised
def sum_that_keeps_its_dimension(g):
    def softmax(s):
        p = g.unary("math.exp", g.binary("subf", s, g.reduce("maximumf", s, "j")))
        return g.binary("divf", p, kept_sum(g, p))

    return attention(g, *g.qkv(), softmax=softmax)


@kept
def sum_beside_another_number(g):
    """The dimension has two positions; where the weights are divided, it holds
    what it started from."""

    def softmax(s):
        p = g.unary("math.exp", g.binary("subf", s, g.reduce("maximumf", s, "j")))
        total = kept_sum(g, p, size=2)
        return g.map(
            [p],
            "%one = arith.constant 1 : index\n"
            f"%t = tensor.extract {total.name}[{{b}}, {{h}}, {{i}}, %one] : {g.typed(total)}\n"
            f"%y = arith.divf %0, %t : {p.dtype}",
        )

    return attention(g, *g.qkv(), softmax=softmax)
