#!/usr/bin/env python3
# Part of attn, an attention compiler.
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The table of spellings: graphs that are attention, and graphs that look it.

usage: spellings.py [--all] [--as=TYPE] [--list] [NAME...]

Writes one function per spelling; with --all one per spelling, element type and
static or unknown sizes, with --as in one type and known sizes. A function called raised_… must become attn.attention,
one called kept_… must not.
"""

import sys

from graph import FINFO, Graph

TABLE = []  # (name, build, raises)


def raised(build):
    """A spelling that must be raised."""
    TABLE.append((build.__name__, build, True))
    return build


def kept(build):
    """A graph that must stay as it is."""
    TABLE.append((build.__name__, build, False))
    return build


def attention(g, q, k, v, p="bh", between=None, softmax=None, after=None, scale=True):
    """The plain spelling with one part replaced; `p` are the batch letters."""
    s = g.einsum(f"{p}id,{p}jd->{p}ij", q, k)
    if scale:
        s = g.scale(s, "0.25")
    if between:
        s = between(s)
    weights = (softmax or Graph.softmax)(*([g, s] if not softmax else [s]))
    if after:
        weights = after(weights)
    return g.returns(g.einsum(f"{p}ij,{p}je->{p}ie", weights, v))


# --- Where the scale stands ------------------------------------------------


@raised
def scale_absent(g):
    return attention(g, *g.qkv(), scale=False)


@raised
def scale_after_product(g):
    return attention(g, *g.qkv())


@raised
def scale_by_division(g):
    return attention(
        g,
        *g.qkv(),
        scale=False,
        between=lambda s: g.map(
            [s], f"%c = arith.constant 4.0 : {s.dtype}\n%y = arith.divf %0, %c : {s.dtype}"
        ),
    )


@raised
def scale_by_division_by_root(g):
    return attention(
        g,
        *g.qkv(),
        scale=False,
        between=lambda s: g.map(
            [s],
            f"%c = arith.constant 16.0 : {s.dtype}\n%r = math.sqrt %c : {s.dtype}\n"
            f"%y = arith.divf %0, %r : {s.dtype}",
        ),
    )


@raised
def scale_by_reciprocal_root(g):
    return attention(
        g,
        *g.qkv(),
        scale=False,
        between=lambda s: g.map(
            [s],
            f"%c = arith.constant 16.0 : {s.dtype}\n%r = math.rsqrt %c : {s.dtype}\n"
            f"%y = arith.mulf %r, %0 : {s.dtype}",
        ),
    )


@raised
def scale_on_query(g):
    q, k, v = g.qkv()
    return attention(g, g.scale(q, "0.25"), k, v, scale=False)


@raised
def scale_on_key(g):
    q, k, v = g.qkv()
    return attention(g, q, g.scale(k, "0.25"), v, scale=False)


@raised
def scale_split_over_both(g):
    q, k, v = g.qkv()
    return attention(g, g.scale(q, "0.5"), g.scale(k, "0.5"), v, scale=False)


@raised
def scale_on_all_three_places(g):
    q, k, v = g.qkv()
    return attention(g, g.scale(q, "0.5"), g.scale(k, "2.0"), v)


@raised
def scale_inside_the_contraction(g):
    q, k, v = g.qkv()
    s = g.generic(
        "bhijd",
        [q, k],
        g.fill("bhij"),
        f"%c = arith.constant 0.25 : {g.dtype}\n%a = arith.mulf %0, %c : {g.dtype}\n"
        f"%m = arith.mulf %a, %1 : {g.dtype}\n%y = arith.addf %acc, %m : {g.dtype}",
        "d",
    )
    return g.returns(g.einsum("bhij,bhje->bhie", g.softmax(s), v))


@raised
def scale_as_whole_tensor(g):
    return attention(
        g,
        *g.qkv(),
        scale=False,
        between=lambda s: g.elementwise("arith.mulf", s, g.fill(s.dims, "0.25")),
    )


@raised
def scale_as_argument(g):
    c = g.scalar_arg(g.dtype)
    return attention(
        g,
        *g.qkv(),
        scale=False,
        between=lambda s: g.map([s], f"%y = arith.mulf %0, {c} : {s.dtype}"),
    )


@raised
def scale_as_tensor_of_rank_0(g):
    c = g.arg("")
    return attention(
        g, *g.qkv(), scale=False, between=lambda s: g.binary("mulf", s, c)
    )


@raised
def scale_per_head(g):
    c = g.arg("h")
    return attention(
        g, *g.qkv(), scale=False, between=lambda s: g.binary("mulf", s, c)
    )


@raised
def scale_negative(g):
    return attention(g, *g.qkv(), scale=False, between=lambda s: g.scale(s, "-0.25"))


# --- How the key is transposed ----------------------------------------------


@raised
def key_by_transpose(g):
    q, k, v = g.qkv()
    kt = g.transpose(k, "bhdj")
    return g.returns(
        g.einsum(
            "bhij,bhje->bhie", g.softmax(g.einsum("bhid,bhdj->bhij", q, kt)), v
        )
    )


@raised
def key_by_generic_transpose(g):
    q, k, v = g.qkv()
    kt = g.map([k], f"%y = arith.addf %0, %z : {g.dtype}".replace("%z", "%0"), "bhdj") \
        if False else g.generic_transpose(k, "bhdj")
    return g.returns(
        g.einsum(
            "bhij,bhje->bhie", g.softmax(g.einsum("bhid,bhdj->bhij", q, kt)), v
        )
    )


@raised
def key_stored_transposed(g):
    q, k, v = g.arg("bhid"), g.arg("bhdj"), g.arg("bhje")
    return g.returns(
        g.einsum("bhij,bhje->bhie", g.softmax(g.einsum("bhid,bhdj->bhij", q, k)), v)
    )


@raised
def key_transposed_twice(g):
    q, k, v = g.qkv()
    kt = g.transpose(g.transpose(k, "bhdj"), "bhjd")
    return attention(g, q, kt, v)


@raised
def key_first_in_product(g):
    q, k, v = g.qkv()
    s = g.einsum("bhjd,bhid->bhij", k, q)
    return g.returns(g.einsum("bhij,bhje->bhie", g.softmax(s), v))


@raised
def factors_swapped(g):
    q, k, v = g.qkv()
    s = g.einsum("bhid,bhjd->bhij", q, k, swap=True)
    return g.returns(g.einsum("bhje,bhij->bhie", v, g.softmax(s), swap=True))


@raised
def scores_transposed(g):
    """S^T = K Q^T, softmax over its rows."""
    q, k, v = g.qkv()
    s = g.einsum("bhjd,bhid->bhji", k, q)
    return g.returns(g.einsum("bhji,bhje->bhie", g.softmax(s, "j"), v))


@raised
def output_transposed(g):
    q, k, v = g.qkv()
    p = g.softmax(g.einsum("bhid,bhjd->bhij", q, k))
    return g.returns(g.einsum("bhij,bhje->bhei", p, v))


# --- Ranks and layouts ----------------------------------------------------


@raised
def rank_2(g):
    return attention(g, *g.qkv(""), p="")


@raised
def rank_2_matmul(g):
    q, k, v = g.qkv("")
    kt = g.transpose(k, "dj")
    s = g.scale(g.named("matmul", q, kt, "ij"), "0.25")
    return g.returns(g.named("matmul", g.softmax(s), v, "ie"))


@raised
def rank_2_matmul_with_maps(g):
    q, k, v = g.qkv("")
    maps = (
        "indexing_maps = [affine_map<(i, j, d) -> (i, d)>, "
        "affine_map<(i, j, d) -> (j, d)>, affine_map<(i, j, d) -> (i, j)>]"
    )
    s = g.scale(g.named("matmul", q, k, "ij", attributes=maps), "0.25")
    return g.returns(g.named("matmul", g.softmax(s), v, "ie"))


@raised
def rank_3(g):
    return attention(g, *g.qkv("b"), p="b")


@raised
def rank_3_batch_matmul(g):
    q, k, v = g.qkv("b")
    kt = g.transpose(k, "bdj")
    s = g.scale(g.named("batch_matmul", q, kt, "bij"), "0.25")
    return g.returns(g.named("batch_matmul", g.softmax(s), v, "bie"))


@raised
def rank_3_batch_matmul_with_maps(g):
    q, k, v = g.qkv("b")
    maps = (
        "indexing_maps = [affine_map<(b, i, j, d) -> (b, i, d)>, "
        "affine_map<(b, i, j, d) -> (b, j, d)>, affine_map<(b, i, j, d) -> (b, i, j)>]"
    )
    s = g.scale(g.named("batch_matmul", q, k, "bij", attributes=maps), "0.25")
    return g.returns(g.named("batch_matmul", g.softmax(s), v, "bie"))


@raised
def rank_4_collapsed_to_3(g):
    """Batch and head become one dimension around linalg.batch_matmul."""
    g.sizes["n"] = g.sizes["b"] * g.sizes["h"]
    g.dynamic = g.dynamic.replace("b", "").replace("h", "")
    q, k, v = g.qkv()
    q3 = g.reshape(q, ["bh", "i", "d"], True, "nid")
    k3 = g.reshape(k, ["bh", "j", "d"], True, "njd")
    v3 = g.reshape(v, ["bh", "j", "e"], True, "nje")
    s = g.named("batch_matmul", q3, g.transpose(k3, "ndj"), "nij")
    o = g.named("batch_matmul", g.softmax(g.scale(s, "0.25")), v3, "nie")
    return g.returns(g.reshape(o, ["bh", "i", "e"], False, "bhie"))


@raised
def rank_5(g):
    """Two batch dimensions."""
    return attention(g, *g.qkv("cbh"), p="cbh")


@raised
def layout_length_before_heads(g):
    q, k, v = g.arg("bihd"), g.arg("bjhd"), g.arg("bjhe")
    s = g.scale(g.einsum("bihd,bjhd->bhij", q, k), "0.25")
    return g.returns(g.einsum("bhij,bjhe->bihe", g.softmax(s), v))


@raised
def layout_by_transposes(g):
    """Projections are b, length, heads, dim; transposed around attention."""
    q, k, v = g.arg("bihd"), g.arg("bjhd"), g.arg("bjhe")
    q, k, v = g.transpose(q, "bhid"), g.transpose(k, "bhjd"), g.transpose(v, "bhje")
    s = g.scale(g.einsum("bhid,bhjd->bhij", q, k), "0.25")
    o = g.einsum("bhij,bhje->bhie", g.softmax(s), v)
    return g.returns(g.transpose(o, "bihe"))


@raised
def layout_of_projections(g):
    """b, length, (heads dim): expanded, transposed, and back."""
    g.sizes["n"] = g.sizes["h"] * g.sizes["d"]
    g.sizes["m"] = g.sizes["h"] * g.sizes["e"]
    g.dynamic = g.dynamic.replace("h", "")
    q, k, v = g.arg("bin"), g.arg("bjn"), g.arg("bjm")
    q = g.transpose(g.reshape(q, ["b", "i", "hd"], False, "bihd"), "bhid")
    k = g.transpose(g.reshape(k, ["b", "j", "hd"], False, "bjhd"), "bhdj")
    v = g.transpose(g.reshape(v, ["b", "j", "he"], False, "bjhe"), "bhje")
    s = g.scale(g.einsum("bhid,bhdj->bhij", q, k), "0.25")
    o = g.transpose(g.einsum("bhij,bhje->bhie", g.softmax(s), v), "bihe")
    return g.returns(g.reshape(o, ["b", "i", "he"], True, "bim"))


@raised
def layout_heads_before_batch(g):
    return attention(g, *g.qkv("hb"), p="hb")


@raised
def decode_one_query(g):
    g.sizes["i"] = 1
    g.dynamic = g.dynamic.replace("i", "")
    return attention(g, *g.qkv())


@raised
def one_batch(g):
    g.sizes["b"] = 1
    g.dynamic = g.dynamic.replace("b", "")
    return attention(g, *g.qkv())


@raised
def square_sizes(g):
    """Every size is that of the head dimension: only maps tell them apart."""
    g.sizes.update(b=8, h=8, i=8, j=8, d=8, e=8)
    return attention(g, *g.qkv())


@raised
def self_attention_of_one_tensor(g):
    g.sizes["j"] = g.sizes["i"]
    x = g.arg("bhid")
    g.known["j"] = g.known.get("i")
    s = g.einsum("bhid,bhjd->bhij", x, x)
    return g.returns(g.einsum("bhij,bhjd->bhid", g.softmax(s), x))


@raised
def product_by_multiply_and_reduce(g):
    q, k, v = g.qkv()
    m = g.map([q, k], f"%y = arith.mulf %0, %1 : {g.dtype}", "bhijd")
    s = g.reduce("addf", m, "d")
    return g.returns(g.einsum("bhij,bhje->bhie", g.softmax(s), v))


@raised
def product_by_fma(g):
    q, k, v = g.qkv()
    s = g.generic(
        "bhijd", [q, k], g.fill("bhij"), f"%y = math.fma %0, %1, %acc : {g.dtype}", "d"
    )
    return g.returns(g.einsum("bhij,bhje->bhie", g.softmax(s), v))


# --- How the softmax is spelled --------------------------------------------


@raised
def softmax_spelled(g):
    return attention(g, *g.qkv(), softmax=g.spelled_softmax)


@raised
def softmax_with_maxnum(g):
    return attention(
        g, *g.qkv(), softmax=lambda s: g.spelled_softmax(s, maximum="maxnumf")
    )


@raised
def softmax_max_by_select(g):
    def softmax(s):
        top = g.generic(
            s.dims,
            [s],
            g.fill(s.dims.replace("j", ""), "0xFF800000" if s.dtype == "f32" else FINFO[s.dtype], s.dtype),
            f"%c = arith.cmpf ogt, %0, %acc : {s.dtype}\n"
            f"%y = arith.select %c, %0, %acc : {s.dtype}",
            "j",
        )
        p = g.unary("math.exp", g.binary("subf", s, top))
        return g.binary("divf", p, g.reduce("addf", p, "j"))

    return attention(g, *g.qkv(), softmax=softmax)


@raised
def softmax_by_linalg_reduce(g):
    def softmax(s):
        top = g.linalg_reduce("maximumf", s, "j")
        p = g.unary("math.exp", g.binary("subf", s, top))
        return g.binary("divf", p, g.linalg_reduce("addf", p, "j"))

    return attention(g, *g.qkv(), softmax=softmax)


@raised
def softmax_by_linalg_broadcast(g):
    def softmax(s):
        top = g.broadcast(g.linalg_reduce("maximumf", s, "j"), s.dims)
        p = g.elementwise("math.exp", g.elementwise("arith.subf", s, top))
        total = g.broadcast(g.linalg_reduce("addf", p, "j"), s.dims)
        return g.elementwise("arith.divf", p, total)

    return attention(g, *g.qkv(), softmax=softmax)


@raised
def softmax_keeping_dimension(g):
    """Row statistics with a last dimension of 1, read by a map with a 0."""

    def keep(t):
        dims = t.dims + "1"
        return g.reshape(t, ["b", "h", "i1"], False, dims)

    def softmax(s):
        top = keep(g.reduce("maximumf", s, "j"))
        p = g.unary("math.exp", g.binary("subf", s, top))
        return g.binary("divf", p, keep(g.reduce("addf", p, "j")))

    g.sizes["1"] = 1
    return attention(g, *g.qkv(), softmax=softmax)


@raised
def softmax_without_maximum(g):
    def softmax(s):
        p = g.unary("math.exp", s)
        return g.binary("divf", p, g.reduce("addf", p, "j"))

    return attention(g, *g.qkv(), softmax=softmax)


@raised
def softmax_by_reciprocal(g):
    def softmax(s):
        p = g.unary("math.exp", g.binary("subf", s, g.reduce("maximumf", s, "j")))
        r = g.map(
            [g.reduce("addf", p, "j")],
            f"%c = arith.constant 1.0 : {s.dtype}\n%y = arith.divf %c, %0 : {s.dtype}",
        )
        return g.binary("mulf", p, r)

    return attention(g, *g.qkv(), softmax=softmax)


@raised
def softmax_by_exp2(g):
    def softmax(s):
        t = g.scale(s, "1.44269504")
        p = g.unary("math.exp2", g.binary("subf", t, g.reduce("maximumf", t, "j")))
        return g.binary("divf", p, g.reduce("addf", p, "j"))

    return attention(g, *g.qkv(), softmax=softmax)


@raised
def softmax_by_exp2_of_difference(g):
    def softmax(s):
        x = g.binary("subf", s, g.reduce("maximumf", s, "j"))
        p = g.unary("math.exp2", g.scale(x, "1.44269504"))
        return g.binary("divf", p, g.reduce("addf", p, "j"))

    return attention(g, *g.qkv(), softmax=softmax)


@raised
def softmax_base_2(g):
    """2^x weights: a scale of ln 2."""

    def softmax(s):
        p = g.unary("math.exp2", g.binary("subf", s, g.reduce("maximumf", s, "j")))
        return g.binary("divf", p, g.reduce("addf", p, "j"))

    return attention(g, *g.qkv(), softmax=softmax)


@raised
def softmax_of_log_softmax(g):
    def softmax(s):
        x = g.binary("subf", s, g.reduce("maximumf", s, "j"))
        total = g.reduce("addf", g.unary("math.exp", x), "j")
        return g.unary("math.exp", g.binary("subf", x, g.unary("math.log", total)))

    return attention(g, *g.qkv(), softmax=softmax)


@raised
def softmax_by_logsumexp(g):
    def softmax(s):
        top = g.reduce("maximumf", s, "j")
        p = g.unary("math.exp", g.binary("subf", s, top))
        lse = g.binary("addf", top, g.unary("math.log", g.reduce("addf", p, "j")))
        return g.unary("math.exp", g.binary("subf", s, lse))

    return attention(g, *g.qkv(), softmax=softmax)


@raised
def softmax_scaled_inside(g):
    """exp(scale * (s - max s)): the scale stands after the maximum."""

    def softmax(s):
        x = g.binary("subf", s, g.reduce("maximumf", s, "j"))
        p = g.unary("math.exp", g.scale(x, "0.25"))
        return g.binary("divf", p, g.reduce("addf", p, "j"))

    return attention(g, *g.qkv(), softmax=softmax, scale=False)


@raised
def softmax_exp_and_sum_fused(g):
    """The sum computes its own exponentials."""

    def softmax(s):
        top = g.reduce("maximumf", s, "j")
        total = g.generic(
            s.dims,
            [s, top],
            g.fill(top.dims),
            f"%x = arith.subf %0, %1 : {s.dtype}\n%p = math.exp %x : {s.dtype}\n"
            f"%y = arith.addf %acc, %p : {s.dtype}",
            "j",
        )
        return g.map(
            [s, top, total],
            f"%x = arith.subf %0, %1 : {s.dtype}\n%p = math.exp %x : {s.dtype}\n"
            f"%y = arith.divf %p, %2 : {s.dtype}",
        )

    return attention(g, *g.qkv(), softmax=softmax)


@raised
def softmax_inside_the_product(g):
    """P V computes the weights where it multiplies them."""
    q, k, v = g.qkv()
    s = g.einsum("bhid,bhjd->bhij", q, k)
    top = g.reduce("maximumf", s, "j")
    p = g.unary("math.exp", g.binary("subf", s, top))
    total = g.reduce("addf", p, "j")
    return g.returns(
        g.generic(
            "bhiej",
            [s, top, total, v],
            g.fill("bhie"),
            f"%x = arith.subf %0, %1 : {g.dtype}\n%p = math.exp %x : {g.dtype}\n"
            f"%w = arith.divf %p, %2 : {g.dtype}\n%m = arith.mulf %w, %3 : {g.dtype}\n"
            f"%y = arith.addf %acc, %m : {g.dtype}",
            "j",
        )
    )


@raised
def softmax_divided_after_the_product(g):
    q, k, v = g.qkv()
    s = g.scale(g.einsum("bhid,bhjd->bhij", q, k), "0.25")
    p = g.unary("math.exp", g.binary("subf", s, g.reduce("maximumf", s, "j")))
    o = g.einsum("bhij,bhje->bhie", p, v)
    return g.returns(g.binary("divf", o, g.reduce("addf", p, "j")))


@raised
def softmax_multiplied_after_the_product(g):
    q, k, v = g.qkv()
    s = g.scale(g.einsum("bhid,bhjd->bhij", q, k), "0.25")
    p = g.unary("math.exp", g.binary("subf", s, g.reduce("maximumf", s, "j")))
    o = g.einsum("bhij,bhje->bhie", p, v)
    r = g.map(
        [g.reduce("addf", p, "j")],
        f"%c = arith.constant 1.0 : {g.dtype}\n%y = arith.divf %c, %0 : {g.dtype}",
    )
    return g.returns(g.binary("mulf", o, r))


@raised
def softmax_on_transposed_scores(g):
    def softmax(s):
        t = g.transpose(s, "bhji")
        return g.transpose(g.softmax(t, "j"), "bhij")

    return attention(g, *g.qkv(), softmax=softmax)


@raised
def softmax_with_operands_swapped(g):
    """max(x, acc) and sum x + acc."""

    def softmax(s):
        rows = s.dims.replace("j", "")
        top = g.generic(
            s.dims,
            [s],
            g.fill(rows, "0xFF800000" if s.dtype == "f32" else FINFO[s.dtype]),
            f"%y = arith.maximumf %0, %acc : {s.dtype}",
            "j",
        )
        p = g.unary("math.exp", g.binary("subf", s, top))
        total = g.generic(
            s.dims, [p], g.fill(rows), f"%y = arith.addf %0, %acc : {s.dtype}", "j"
        )
        return g.binary("divf", p, total)

    return attention(g, *g.qkv(), softmax=softmax)


@raised
def softmax_of_recomputed_scores(g):
    """The maximum is that of a second product of the same operands."""
    q, k, v = g.qkv()
    s = g.einsum("bhid,bhjd->bhij", q, k)
    t = g.einsum("bhid,bhjd->bhij", q, k, swap=True)
    p = g.unary("math.exp", g.binary("subf", s, g.reduce("maximumf", t, "j")))
    w = g.binary("divf", p, g.reduce("addf", p, "j"))
    return g.returns(g.einsum("bhij,bhje->bhie", w, v))


# --- Rows that see nothing ---------------------------------------------------


def guard(g, t, at, constant):
    """select(t == at, constant, t)"""
    return g.map(
        [t],
        f"%a = arith.constant {at} : {t.dtype}\n%c = arith.constant {constant} : {t.dtype}\n"
        f"%e = arith.cmpf oeq, %0, %a : {t.dtype}\n"
        f"%y = arith.select %e, %c, %0 : {t.dtype}",
    )


INFINITY = {"f32": "0xFF800000", "f16": "0xFC00", "bf16": "0xFF80"}


def masked(g, s, m):
    return g.map(
        [s, m],
        f"%n = arith.constant {INFINITY[s.dtype]} : {s.dtype}\n"
        f"%y = arith.select %1, %0, %n : {s.dtype}",
    )


@raised
def guard_of_maximum(g):
    m = g.arg("ij", "i1")

    def softmax(s):
        top = guard(g, g.reduce("maximumf", s, "j"), INFINITY[s.dtype], "0.0")
        p = g.unary("math.exp", g.binary("subf", s, top))
        total = guard(g, g.reduce("addf", p, "j"), "0.0", "1.0")
        return g.binary("divf", p, total)

    return attention(
        g, *g.qkv(), between=lambda s: masked(g, s, m), softmax=softmax
    )


@raised
def guard_of_weights_by_maximum(g):
    m = g.arg("ij", "i1")

    def softmax(s):
        top = g.reduce("maximumf", s, "j")
        p = g.unary("math.exp", g.binary("subf", s, top))
        w = g.binary("divf", p, g.reduce("addf", p, "j"))
        return g.map(
            [w, top],
            f"%n = arith.constant {INFINITY[s.dtype]} : {s.dtype}\n"
            f"%z = arith.constant 0.0 : {s.dtype}\n"
            f"%e = arith.cmpf oeq, %1, %n : {s.dtype}\n"
            f"%y = arith.select %e, %z, %0 : {s.dtype}",
        )

    return attention(
        g, *g.qkv(), between=lambda s: masked(g, s, m), softmax=softmax
    )


@raised
def guard_of_weights_by_any(g):
    """As torch's safe softmax: 0 where all scores are -inf."""
    m = g.arg("ij", "i1")

    def softmax(s):
        w = g.softmax(s)
        hidden = g.map(
            [s],
            f"%n = arith.constant {INFINITY[s.dtype]} : {s.dtype}\n"
            f"%y = arith.cmpf oeq, %0, %n : {s.dtype}",
            dtype="i1",
        )
        none = g.generic(
            s.dims,
            [hidden],
            g.fill(s.dims.replace("j", ""), "true", "i1"),
            "%y = arith.andi %acc, %0 : i1",
            "j",
        )
        return g.map(
            [w, none],
            f"%z = arith.constant 0.0 : {s.dtype}\n"
            f"%y = arith.select %1, %z, %0 : {s.dtype}",
        )

    return attention(
        g, *g.qkv(), between=lambda s: masked(g, s, m), softmax=softmax
    )


@raised
def guard_of_maximum_by_lowest(g):
    def softmax(s):
        top = g.reduce("maximumf", s, "j", FINFO[s.dtype])
        p = g.unary("math.exp", g.binary("subf", s, top))
        return g.binary("divf", p, g.reduce("addf", p, "j"))

    return attention(g, *g.qkv(), softmax=softmax)


# --- Masks ------------------------------------------------------------------


def causal(g, s, condition="%c = arith.cmpi ule, {j}, {i} : index", hide=None):
    hide = hide or INFINITY[s.dtype]
    return g.map(
        [s],
        f"{condition}\n%n = arith.constant {hide} : {s.dtype}\n"
        f"%y = arith.select %c, %0, %n : {s.dtype}",
    )


@raised
def mask_causal(g):
    return attention(g, *g.qkv(), between=lambda s: causal(g, s))


@raised
def mask_causal_inverted(g):
    return attention(
        g,
        *g.qkv(),
        between=lambda s: g.map(
            [s],
            f"%c = arith.cmpi ugt, {{j}}, {{i}} : index\n"
            f"%n = arith.constant {INFINITY[s.dtype]} : {s.dtype}\n"
            f"%y = arith.select %c, %n, %0 : {s.dtype}",
        ),
    )


@raised
def mask_causal_in_i32(g):
    return attention(
        g,
        *g.qkv(),
        between=lambda s: causal(
            g,
            s,
            "%a = arith.index_cast {i} : index to i32\n"
            "%b = arith.index_cast {j} : index to i32\n"
            "%d = arith.subi %a, %b : i32\n%z = arith.constant 0 : i32\n"
            "%c = arith.cmpi sge, %d, %z : i32",
        ),
    )


@raised
def mask_causal_in_i64(g):
    return attention(
        g,
        *g.qkv(),
        between=lambda s: causal(
            g,
            s,
            "%a = arith.index_cast {i} : index to i64\n"
            "%b = arith.index_cast {j} : index to i64\n"
            "%c = arith.cmpi sge, %a, %b : i64",
        ),
    )


@raised
def mask_causal_with_finfo(g):
    return attention(
        g, *g.qkv(), between=lambda s: causal(g, s, hide=FINFO[s.dtype])
    )


@raised
def mask_causal_from_the_last_corner(g):
    """Key j is visible to query i up to i + keys - queries."""
    q, k, v = g.qkv()
    at, sq, sk, gap = g.new(), g.new(), g.new(), g.new()
    g.emit(f"{at} = arith.constant 2 : index")
    g.emit(f"{sq} = tensor.dim {q.name}, {at} : {g.typed(q)}")
    g.emit(f"{sk} = tensor.dim {k.name}, {at} : {g.typed(k)}")
    g.emit(f"{gap} = arith.subi {sk}, {sq} : index")
    return attention(
        g,
        q,
        k,
        v,
        between=lambda s: causal(
            g,
            s,
            f"%l = arith.addi {{i}}, {gap} : index\n%c = arith.cmpi sle, {{j}}, %l : index",
        ),
    )


@raised
def mask_causal_as_tensor_from_iota(g):
    """The triangle is a tensor of i1 of its own."""
    q, k, v = g.qkv()
    m = g.generic(
        "ij", [], g.empty("ij", "i1"), "%y = arith.cmpi sge, {i}, {j} : index"
    )
    return attention(g, q, k, v, between=lambda s: masked(g, s, m))


@raised
def mask_causal_as_bias_from_iota(g):
    q, k, v = g.qkv()
    m = g.generic(
        "ij",
        [],
        g.empty("ij"),
        "%c = arith.cmpi sge, {i}, {j} : index\n"
        f"%z = arith.constant 0.0 : {g.dtype}\n%n = arith.constant {INFINITY[g.dtype]} : {g.dtype}\n"
        f"%y = arith.select %c, %z, %n : {g.dtype}",
    )
    return attention(g, q, k, v, between=lambda s: g.binary("addf", s, m))


@raised
def mask_causal_by_generate(g):
    q, k, v = g.qkv()
    m = g.empty("ij", "i1")
    out = type(m)(g.new(), "ij", "i1")
    sizes = ", ".join(g.known[d] for d in "ij" if d in g.dynamic)
    g.emit(f"{out.name} = tensor.generate {sizes} {{")
    g.emit("^bb0(%i: index, %j: index):")
    g.emit("  %c = arith.cmpi sge, %i, %j : index")
    g.emit("  tensor.yield %c : i1")
    g.emit(f"}} : {g.typed(out)}")
    return attention(g, q, k, v, between=lambda s: masked(g, s, out))


@raised
def mask_window(g):
    return attention(
        g,
        *g.qkv(),
        between=lambda s: causal(
            g,
            s,
            "%w = arith.constant 5 : index\n%d = arith.subi {i}, {j} : index\n"
            "%z = arith.constant 0 : index\n%a = arith.cmpi sge, %d, %z : index\n"
            "%b = arith.cmpi slt, %d, %w : index\n%c = arith.andi %a, %b : i1",
        ),
    )


@raised
def mask_two_selects(g):
    """A window inside of a causal mask, one select after the other."""
    return attention(
        g,
        *g.qkv(),
        between=lambda s: causal(
            g,
            causal(g, s),
            "%w = arith.constant 5 : index\n%d = arith.addi {j}, %w : index\n"
            "%c = arith.cmpi sgt, %d, {i} : index",
        ),
    )


@raised
def mask_prefix(g):
    return attention(
        g,
        *g.qkv(),
        between=lambda s: causal(
            g,
            s,
            "%w = arith.constant 3 : index\n%a = arith.cmpi ule, {j}, {i} : index\n"
            "%b = arith.cmpi ult, {j}, %w : index\n%c = arith.ori %a, %b : i1",
        ),
    )


@raised
def mask_dilated(g):
    return attention(
        g,
        *g.qkv(),
        between=lambda s: causal(
            g,
            s,
            "%w = arith.constant 2 : index\n%a = arith.remui {i}, %w : index\n"
            "%b = arith.remui {j}, %w : index\n%c = arith.cmpi eq, %a, %b : index",
        ),
    )


@raised
def mask_blocks(g):
    return attention(
        g,
        *g.qkv(),
        between=lambda s: causal(
            g,
            s,
            "%w = arith.constant 5 : index\n%a = arith.divui {i}, %w : index\n"
            "%b = arith.divui {j}, %w : index\n%c = arith.cmpi uge, %a, %b : index",
        ),
    )


@raised
def mask_boolean_argument(g):
    m = g.arg("bhij", "i1")
    return attention(g, *g.qkv(), between=lambda s: masked(g, s, m))


@raised
def mask_boolean_of_lower_rank(g):
    m = g.arg("ij", "i1")
    return attention(g, *g.qkv(), between=lambda s: masked(g, s, m))


@raised
def mask_boolean_with_unit_dimension(g):
    """b x 1 x i x j, as frameworks store it."""
    g.sizes["1"] = 1
    m = g.arg("b1ij", "i1")
    return attention(g, *g.qkv(), between=lambda s: masked(g, s, m))


@raised
def mask_boolean_that_hides(g):
    m = g.arg("bij", "i1")
    return attention(
        g,
        *g.qkv(),
        between=lambda s: g.map(
            [s, m],
            f"%n = arith.constant {INFINITY[s.dtype]} : {s.dtype}\n"
            f"%y = arith.select %1, %n, %0 : {s.dtype}",
        ),
    )


@raised
def mask_boolean_with_finfo(g):
    """A row may see nothing: equal weights then, so the choice is a score."""
    m = g.arg("bij", "i1")
    return attention(
        g,
        *g.qkv(),
        between=lambda s: g.map(
            [s, m],
            f"%n = arith.constant {FINFO[s.dtype]} : {s.dtype}\n"
            f"%y = arith.select %1, %0, %n : {s.dtype}",
        ),
    )


@raised
def mask_padding_of_keys(g):
    m = g.arg("bj", "i1")
    return attention(g, *g.qkv(), between=lambda s: masked(g, s, m))


@raised
def mask_padding_by_lengths(g):
    n = g.arg("b", "i32")
    return attention(
        g,
        *g.qkv(),
        between=lambda s: g.map(
            [s, n],
            "%j = arith.index_cast {j} : index to i32\n%c = arith.cmpi slt, %j, %1 : i32\n"
            f"%n = arith.constant {INFINITY[s.dtype]} : {s.dtype}\n"
            f"%y = arith.select %c, %0, %n : {s.dtype}",
        ),
    )


@raised
def mask_padding_by_lengths_of_i64(g):
    n = g.arg("b", "i64")
    return attention(
        g,
        *g.qkv(),
        between=lambda s: g.map(
            [s, n],
            "%j = arith.index_cast {j} : index to i64\n%c = arith.cmpi slt, %j, %1 : i64\n"
            f"%n = arith.constant {INFINITY[s.dtype]} : {s.dtype}\n"
            f"%y = arith.select %c, %0, %n : {s.dtype}",
        ),
    )


@raised
def mask_of_documents(g):
    qd, kd = g.arg("bi", "i32"), g.arg("bj", "i32")
    return attention(
        g,
        *g.qkv(),
        between=lambda s: g.map(
            [s, qd, kd],
            "%c = arith.cmpi eq, %1, %2 : i32\n"
            f"%n = arith.constant {INFINITY[s.dtype]} : {s.dtype}\n"
            f"%y = arith.select %c, %0, %n : {s.dtype}",
        ),
    )


@raised
def mask_additive(g):
    m = g.arg("bhij")
    return attention(g, *g.qkv(), between=lambda s: g.binary("addf", s, m))


@raised
def mask_additive_on_the_left(g):
    m = g.arg("ij")
    return attention(
        g,
        *g.qkv(),
        between=lambda s: g.map([s, m], f"%y = arith.addf %1, %0 : {s.dtype}"),
    )


@raised
def mask_additive_from_bits(g):
    """(1 - mask) * lowest, added."""
    m = g.arg("bj", "i1")
    return attention(
        g,
        *g.qkv(),
        between=lambda s: g.map(
            [s, m],
            f"%f = arith.uitofp %1 : i1 to {s.dtype}\n%o = arith.constant 1.0 : {s.dtype}\n"
            f"%r = arith.subf %o, %f : {s.dtype}\n%n = arith.constant {FINFO[s.dtype]} : {s.dtype}\n"
            f"%b = arith.mulf %r, %n : {s.dtype}\n%y = arith.addf %0, %b : {s.dtype}",
        ),
    )


@raised
def mask_additive_of_minus_ten_thousand(g):
    m = g.arg("bj")
    return attention(
        g,
        *g.qkv(),
        between=lambda s: g.map(
            [s, m],
            f"%o = arith.constant 1.0 : {s.dtype}\n%r = arith.subf %o, %1 : {s.dtype}\n"
            f"%n = arith.constant -10000.0 : {s.dtype}\n%b = arith.mulf %r, %n : {s.dtype}\n"
            f"%y = arith.addf %0, %b : {s.dtype}",
        ),
    )


@raised
def mask_as_start_of_the_product(g):
    """The accumulator starts from the bias."""
    m = g.arg("bhij")
    q, k, v = g.qkv()
    s = g.einsum("bhid,bhjd->bhij", q, k, init=m)
    return g.returns(g.einsum("bhij,bhje->bhie", g.softmax(s), v))


@raised
def mask_before_scale(g):
    """-inf stays -inf under a positive scale."""
    q, k, v = g.qkv()
    s = g.scale(causal(g, g.einsum("bhid,bhjd->bhij", q, k)), "0.25")
    return g.returns(g.einsum("bhij,bhje->bhie", g.softmax(s), v))


@raised
def mask_and_bias(g):
    m, b = g.arg("ij", "i1"), g.arg("hij")
    return attention(
        g, *g.qkv(), between=lambda s: masked(g, g.binary("addf", s, b), m)
    )


@raised
def bias_after_mask(g):
    m, b = g.arg("ij", "i1"), g.arg("hij")
    return attention(
        g, *g.qkv(), between=lambda s: g.binary("addf", masked(g, s, m), b)
    )


@raised
def mask_of_a_slice(g):
    """The corner of a larger triangle."""
    m = g.arg("tu", "i1")
    g.sizes.update(t=64, u=64)
    g.args[-1] = f"{m.name}: {g.typed(m)}"
    q, k, v = g.qkv()
    out = type(m)(g.new(), "ij", "i1")
    sizes = ", ".join(g.known.get(d, g.size(d)) for d in "ij")
    g.emit(
        f"{out.name} = tensor.extract_slice {m.name}[0, 0] [{sizes}] [1, 1] : "
        f"{g.typed(m)} to {g.typed(out)}"
    )
    return attention(g, q, k, v, between=lambda s: masked(g, s, out))


# --- The table ----------------------------------------------------------------

CONFIGURATIONS = [
    (dtype, dynamic) for dtype in ("f32", "f16", "bf16") for dynamic in ("", "bhij")
]


def functions(names=(), every=False, only=None):
    """The text of each function, and its name."""
    for number, (name, build, raises) in enumerate(TABLE):
        if names and name not in names:
            continue
        chosen = CONFIGURATIONS if every else [CONFIGURATIONS[number % 6]]
        for dtype, dynamic in [(only, "")] if only else chosen:
            label = f"{'raised' if raises else 'kept'}_{name}"
            if every:
                label += f"_{dtype}_{'dynamic' if dynamic else 'static'}"
            yield label, build(Graph(label, dtype, dynamic)).text()


def main(arguments):
    if "--list" in arguments:
        for name, _, raises in TABLE:
            print("raised" if raises else "kept  ", name)
        return
    names = [a for a in arguments if not a.startswith("--")]
    types = [a[len("--as=") :] for a in arguments if a.startswith("--as=")]
    for _, text in functions(names, "--all" in arguments, types and types[0]):
        print(text)


if __name__ == "__main__":
    sys.modules["spellings"] = sys.modules["__main__"]
    import more_spellings  # noqa: F401 (fills the table)
    import sink_spellings  # noqa: F401
    import model_spellings  # noqa: F401
    import weight_spellings  # noqa: F401
    import sum_spellings  # noqa: F401

    main(sys.argv[1:])
