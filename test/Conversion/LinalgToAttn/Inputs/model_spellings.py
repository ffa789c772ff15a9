# Part of attn, an attention compiler.
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The table of spellings, part four: what importers make of models."""

from more_spellings import repeat
from sink_spellings import explicit
from spellings import attention, kept, masked, raised


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


# --- Batches and heads in one dimension -----------------------------------------


def known_heads(g):
    g.dynamic = g.dynamic.replace("b", "").replace("h", "")
    g.sizes["n"] = g.sizes["b"] * g.sizes["h"]


def collapsed(g, t):
    """bh.. as n.."""
    return g.reshape(t, ["bh", *t.dims[2:]], True, "n" + t.dims[2:])


def expanded(g, t):
    return g.reshape(t, ["bh", *t.dims[1:]], False, "bh" + t.dims[1:])


def by_batch_products(g, q, k, v, between):
    """As torch.matmul is lowered: products of three dimensions between views,
    all else of four."""
    q, k, v = collapsed(g, q), collapsed(g, g.transpose(k, "bhdj")), collapsed(g, v)
    s = g.scale(expanded(g, g.named("batch_matmul", q, k, "nij")), "0.25")
    p = collapsed(g, between(s))
    return expanded(g, g.named("batch_matmul", p, v, "nie"))


@raised
def heads_behind_a_view(g):
    known_heads(g)
    o = by_batch_products(g, *g.qkv(), g.softmax)
    return g.returns(g.transpose(o, "bihe"))


@raised
def heads_with_a_sink_behind_a_view(g):
    known_heads(g)
    q, k, v = g.qkv()
    sink = g.arg("h")

    def softmax(s):
        top = g.reduce("maximumf", s, "j")
        return explicit(g, s, sink, top)

    return g.returns(by_batch_products(g, q, k, v, softmax))


@raised
def heads_that_a_mask_tells_from_batches(g):
    """All is of three dimensions but for the mask of a batch."""
    known_heads(g)
    q, k, v = g.qkv("n")
    m = g.arg("bij", "i1")
    s = g.scale(g.named("batch_matmul", q, g.transpose(k, "ndj"), "nij"), "0.25")
    p = g.softmax(masked(g, expanded(g, s), m))
    return g.returns(g.named("batch_matmul", collapsed(g, p), v, "nie"))


@raised
def heads_across_views(g):
    """A projection of batch x (heads dimension), read as (batch heads) x dimension."""
    known_heads(g)
    g.sizes.update(m=g.sizes["h"] * g.sizes["d"], t=g.sizes["n"] * g.sizes["d"])
    g.sizes.update(e=g.sizes["d"])

    def operand(length):
        x = g.reshape(g.arg(length + "bm"), [length, "bm"], True, length + "t")
        x = g.reshape(x, [length, "nd"], False, length + "nd")
        return g.transpose(x, "n" + length + "d")

    q, k, v = operand("i"), operand("j"), operand("j")
    s = g.scale(g.einsum("nid,njd->nij", q, k), "0.25")
    return g.returns(g.einsum("nij,njd->nid", g.softmax(s), v))


@raised
def groups_of_one_row(g):
    """One query: heads of a group are not rows."""
    g.sizes["i"] = 1
    g.dynamic = g.dynamic.replace("i", "").replace("b", "").replace("h", "")
    q, k, v = g.arg("bhid"), g.arg("bkjd"), g.arg("bkje")
    k, v = repeat(g, k, "d"), repeat(g, v, "e")
    known_heads(g)
    return g.returns(by_batch_products(g, q, k, v, g.softmax))


@raised
def sink_of_groups_without_a_batch(g):
    """The only shared dimension numbers heads of keys, as the sink says."""
    q, k, v = g.arg("kgid"), g.arg("kjd"), g.arg("kje")
    sink = g.arg("kg")
    s = g.scale(g.einsum("kgid,kjd->kgij", q, k), "0.25")
    p = explicit(g, s, sink, g.reduce("maximumf", s, "j"))
    return g.returns(g.einsum("kgij,kje->kgie", p, v))


@kept
def sink_of_batches_behind_a_view(g):
    """One number for each batch, not for each head."""
    known_heads(g)
    q, k, v = g.qkv()
    sink = g.arg("b")

    def softmax(s):
        top = g.reduce("maximumf", s, "j")
        return explicit(g, s, sink, top)

    return g.returns(by_batch_products(g, q, k, v, softmax))
