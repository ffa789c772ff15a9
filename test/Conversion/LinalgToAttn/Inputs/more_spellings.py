# Part of attn, an attention compiler.
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The second half of the table: types, groups, scores, results, and what must
not match."""

from graph import FINFO
from spellings import INFINITY, attention, causal, kept, masked, raised

# --- Element types ----------------------------------------------------------


def half(g):
    return "f16" if g.dtype == "f32" else g.dtype


@raised
def types_softmax_in_f32(g):
    """Products accumulate in f32, weights are rounded, so is the output."""
    t = half(g)
    q, k, v = g.qkv(dtype=t)
    s = g.einsum("bhid,bhjd->bhij", q, k, dtype="f32")
    p = g.cast(g.softmax(g.scale(s, "0.25")), t)
    return g.returns(g.cast(g.einsum("bhij,bhje->bhie", p, v, dtype="f32"), t))


@raised
def types_scores_rounded_then_f32(g):
    t = half(g)
    q, k, v = g.qkv(dtype=t)
    s = g.scale(g.einsum("bhid,bhjd->bhij", q, k), "0.25")
    p = g.cast(g.softmax(g.cast(s, "f32")), t)
    return g.returns(g.einsum("bhij,bhje->bhie", p, v))


@raised
def types_casts_of_whole_tensors(g):
    t = half(g)
    q, k, v = g.qkv(dtype=t)
    s = g.scale(g.einsum("bhid,bhjd->bhij", q, k), "0.25")
    p = g.cast(g.softmax(g.cast(s, "f32", whole=True)), t, whole=True)
    return g.returns(g.einsum("bhij,bhje->bhie", p, v))


@raised
def types_operands_extended_first(g):
    t = half(g)
    q, k, v = g.qkv(dtype=t)
    q, k, v = g.cast(q, "f32"), g.cast(k, "f32"), g.cast(v, "f32")
    s = g.scale(g.einsum("bhid,bhjd->bhij", q, k), "0.25")
    return g.returns(g.cast(g.einsum("bhij,bhje->bhie", g.softmax(s), v), t))


@raised
def types_output_stays_f32(g):
    t = half(g)
    q, k, v = g.qkv(dtype=t)
    s = g.einsum("bhid,bhjd->bhij", q, k, dtype="f32")
    return g.returns(g.einsum("bhij,bhje->bhie", g.softmax(s), g.cast(v, "f32")))


@raised
def types_query_scaled_after_cast(g):
    t = half(g)
    q, k, v = g.qkv(dtype=t)
    q = g.scale(g.cast(q, "f32"), "0.25")
    s = g.einsum("bhid,bhjd->bhij", q, g.cast(k, "f32"))
    p = g.softmax(s)
    return g.returns(g.cast(g.einsum("bhij,bhje->bhie", p, g.cast(v, "f32")), t))


@raised
def types_division_after_product_in_f32(g):
    t = half(g)
    q, k, v = g.qkv(dtype=t)
    s = g.einsum("bhid,bhjd->bhij", q, k, dtype="f32")
    p = g.unary("math.exp", g.binary("subf", s, g.reduce("maximumf", s, "j")))
    o = g.einsum("bhij,bhje->bhie", g.cast(p, t), v, dtype="f32")
    return g.returns(g.cast(g.binary("divf", o, g.reduce("addf", p, "j")), t))


# --- Groups of query heads ----------------------------------------------------


def grouped(g):
    """h = k * g; q has h heads, key and value have k."""
    g.dynamic = g.dynamic.replace("h", "").replace("k", "").replace("g", "")
    return g.arg("bhid"), g.arg("bkjd"), g.arg("bkje")


def repeat(g, t, last):
    """expand to groups by linalg.broadcast, then collapse"""
    wide = g.broadcast(t, "bkgj" + last)
    return g.reshape(wide, ["b", "kg", "j", last], True, "bhj" + last)


@raised
def groups_by_broadcast_and_collapse(g):
    q, k, v = grouped(g)
    return attention(g, q, repeat(g, k, "d"), repeat(g, v, "e"))


@raised
def groups_by_generic_and_collapse(g):
    q, k, v = grouped(g)
    c = "%z = arith.constant false\n%y = arith.select %z, %0, %0 : " + g.dtype
    k = g.reshape(g.map([k], c, "bkgjd"), ["b", "kg", "j", "d"], True, "bhjd")
    v = g.reshape(g.map([v], c, "bkgje"), ["b", "kg", "j", "e"], True, "bhje")
    return attention(g, q, k, v)


@raised
def groups_by_expanded_query(g):
    """The query is b x k x g x i x d, key and value are read as they are."""
    q, k, v = grouped(g)
    q = g.reshape(q, ["b", "kg", "i", "d"], False, "bkgid")
    s = g.scale(g.einsum("bkgid,bkjd->bkgij", q, k), "0.25")
    o = g.einsum("bkgij,bkje->bkgie", g.softmax(s), v)
    return g.returns(g.reshape(o, ["b", "kg", "i", "e"], True, "bhie"))


@raised
def groups_of_rank_5_arguments(g):
    q, k, v = g.arg("bkgid"), g.arg("bkjd"), g.arg("bkje")
    s = g.scale(g.einsum("bkgid,bkjd->bkgij", q, k), "0.25")
    return g.returns(g.einsum("bkgij,bkje->bkgie", g.softmax(s), v))


@raised
def groups_by_gather(g):
    """repeat_interleave as a generic that reads head h / 2. Only known sizes
    say that it reads all of the tensor."""
    g.dynamic = ""
    q, k, v = grouped(g)

    def gather(t, last):
        return g.generic(
            "bhj" + last,
            [],
            g.empty("bhj" + last),
            "%two = arith.constant 2 : index\n%kh = arith.divui {h}, %two : index\n"
            f"%y = tensor.extract {t.name}[{{b}}, %kh, {{j}}, {{{last}}}] : {g.typed(t)}",
        )

    return attention(g, q, gather(k, "d"), gather(v, "e"))


@raised
def groups_repeated_as_tiles(g):
    """Head h reads key head h mod k."""
    q, k, v = grouped(g)

    def tile(t, last):
        wide = g.broadcast(t, "bgkj" + last)
        return g.reshape(wide, ["b", "gk", "j", last], True, "bhj" + last)

    return attention(g, q, tile(k, "d"), tile(v, "e"))


@raised
def groups_of_one_key_head(g):
    """Multi-query: key and value have no heads at all."""
    q, k, v = g.arg("bhid"), g.arg("bjd"), g.arg("bje")
    s = g.scale(g.einsum("bhid,bjd->bhij", q, k), "0.25")
    return g.returns(g.einsum("bhij,bje->bhie", g.softmax(s), v))


@raised
def groups_of_one_key_head_broadcast(g):
    q, k, v = g.arg("bhid"), g.arg("bjd"), g.arg("bje")
    return attention(g, q, g.broadcast(k, "bhjd"), g.broadcast(v, "bhje"))


@raised
def groups_without_batch(g):
    q, k, v = g.arg("kgid"), g.arg("kjd"), g.arg("kje")
    s = g.einsum("kgid,kjd->kgij", q, k)
    return g.returns(g.einsum("kgij,kje->kgie", g.softmax(s), v))


@raised
def groups_with_causal_mask(g):
    q, k, v = grouped(g)
    return attention(
        g,
        q,
        repeat(g, k, "d"),
        repeat(g, v, "e"),
        between=lambda s: causal(g, s),
    )


@raised
def groups_with_bias_per_head(g):
    q, k, v = grouped(g)
    b = g.arg("hij")
    q = g.reshape(q, ["b", "kg", "i", "d"], False, "bkgid")
    b = g.reshape(b, ["kg", "i", "j"], False, "kgij")
    s = g.binary("addf", g.einsum("bkgid,bkjd->bkgij", q, k), b)
    o = g.einsum("bkgij,bkje->bkgie", g.softmax(s), v)
    return g.returns(g.reshape(o, ["b", "kg", "i", "e"], True, "bhie"))


# --- Functions of the score ----------------------------------------------------


def softcap(g, s, cap="30.0"):
    return g.map(
        [s],
        f"%c = arith.constant {cap} : {s.dtype}\n%d = arith.divf %0, %c : {s.dtype}\n"
        f"%t = math.tanh %d : {s.dtype}\n%y = arith.mulf %t, %c : {s.dtype}",
    )


@raised
def score_softcap(g):
    return attention(g, *g.qkv(), between=lambda s: softcap(g, s))


@raised
def score_softcap_then_causal(g):
    return attention(g, *g.qkv(), between=lambda s: causal(g, softcap(g, s)))


@raised
def score_softcap_after_mask(g):
    """tanh(-inf) is -1: this mask is no mask, and stays in the score."""
    return attention(g, *g.qkv(), between=lambda s: softcap(g, causal(g, s)))


@raised
def score_bias_per_head(g):
    b = g.arg("hij")
    return attention(g, *g.qkv(), between=lambda s: g.binary("addf", s, b))


@raised
def score_bias_of_keys(g):
    b = g.arg("j")
    return attention(g, *g.qkv(), between=lambda s: g.binary("addf", s, b))


@raised
def score_bias_of_rows(g):
    """Cancels in the softmax."""
    b = g.arg("bi")
    return attention(g, *g.qkv(), between=lambda s: g.binary("addf", s, b))


@raised
def score_bias_subtracted(g):
    b = g.arg("bhij")
    return attention(g, *g.qkv(), between=lambda s: g.binary("subf", s, b))


@raised
def score_bias_scaled_with_it(g):
    b = g.arg("hij")
    return attention(
        g,
        *g.qkv(),
        scale=False,
        between=lambda s: g.scale(g.binary("addf", s, b), "0.25"),
    )


@raised
def score_alibi(g):
    slopes = g.arg("h")
    return attention(
        g,
        *g.qkv(),
        between=lambda s: g.map(
            [s, slopes],
            "%i = arith.index_cast {i} : index to i32\n%j = arith.index_cast {j} : index to i32\n"
            f"%d = arith.subi %j, %i : i32\n%f = arith.sitofp %d : i32 to {s.dtype}\n"
            f"%b = arith.mulf %1, %f : {s.dtype}\n%y = arith.addf %0, %b : {s.dtype}",
        ),
    )


@raised
def score_relative_bias_table(g):
    """T5: a table read at a clamped distance."""
    g.sizes["t"] = 9
    table = g.arg("th")
    q, k, v = g.qkv()
    s = g.einsum("bhid,bhjd->bhij", q, k)
    y = g.map(
        [s],
        "%d = arith.subi {j}, {i} : index\n%lo = arith.constant -4 : index\n"
        "%hi = arith.constant 4 : index\n%a = arith.maxsi %d, %lo : index\n"
        "%b = arith.minsi %a, %hi : index\n%r = arith.addi %b, %hi : index\n"
        f"%t = tensor.extract {table.name}[%r, {{h}}] : {g.typed(table)}\n"
        f"%y = arith.addf %0, %t : {s.dtype}",
    )
    return g.returns(g.einsum("bhij,bhje->bhie", g.softmax(y), v))


@raised
def score_bias_gathered_by_positions(g):
    """A table read at positions that are themselves captured."""
    g.sizes["t"] = 4
    table, ids = g.arg("th"), g.arg("bj", "i32")
    return attention(
        g,
        *g.qkv(),
        between=lambda s: g.map(
            [s, ids],
            "%r = arith.index_cast %1 : i32 to index\n"
            f"%t = tensor.extract {table.name}[%r, {{h}}] : {g.typed(table)}\n"
            f"%y = arith.addf %0, %t : {s.dtype}",
        ),
    )


@raised
def score_bias_of_another_product(g):
    """The bias is a product of tensors of its own, computed before."""
    g.sizes["r"] = 8
    a, b = g.arg("hir"), g.arg("hjr")
    bias = g.einsum("hir,hjr->hij", a, b)
    return attention(g, *g.qkv(), between=lambda s: g.binary("addf", s, bias))


@raised
def score_squared(g):
    return attention(g, *g.qkv(), between=lambda s: g.binary("mulf", s, s))


@raised
def score_relu(g):
    return attention(
        g,
        *g.qkv(),
        between=lambda s: g.map(
            [s],
            f"%z = arith.constant 0.0 : {s.dtype}\n%y = arith.maximumf %0, %z : {s.dtype}",
        ),
    )


@raised
def score_temperature_of_rows(g):
    t = g.arg("bi")
    return attention(g, *g.qkv(), between=lambda s: g.binary("mulf", s, t))


@raised
def score_sum_of_two_products(g):
    """Content and position: one is the product, the other a bias."""
    g.sizes["r"] = 8
    q, k, v = g.qkv()
    a, b = g.arg("bhir"), g.arg("bhjr")
    s = g.einsum("bhid,bhjd->bhij", q, k)
    t = g.einsum("bhir,bhjr->bhij", a, b)
    p = g.softmax(g.binary("addf", s, t))
    return g.returns(g.einsum("bhij,bhje->bhie", p, v))


# --- What else is computed ---------------------------------------------------------


@raised
def result_lse(g):
    q, k, v = g.qkv(dtype="f32")
    s = g.einsum("bhid,bhjd->bhij", q, k)
    top = g.reduce("maximumf", s, "j")
    p = g.unary("math.exp", g.binary("subf", s, top))
    total = g.reduce("addf", p, "j")
    lse = g.binary("addf", top, g.unary("math.log", total))
    o = g.einsum("bhij,bhje->bhie", g.binary("divf", p, total), v)
    return g.returns(o, lse)


@raised
def result_used_twice(g):
    attention(g, *g.qkv())
    o = g.results[0]
    return g.returns(o, g.scale(o, "2.0"))


@raised
def result_projected(g):
    attention(g, *g.qkv())
    g.sizes["n"] = 24
    w = g.arg("hen")
    o = g.results[0]
    return g.returns(
        g.generic(
            "binhe",
            [type(o)(o.name, "bhie", o.dtype), w],
            g.fill("bin"),
            f"%m = arith.mulf %0, %1 : {g.dtype}\n%y = arith.addf %acc, %m : {g.dtype}",
            "he",
        )
    )


@raised
def result_with_residual(g):
    attention(g, *g.qkv())
    x = g.arg("bhie")
    return g.returns(g.binary("addf", g.results[0], x))


@raised
def two_attentions_in_a_row(g):
    g.sizes.update(j=12, d=8)
    q, k, v = g.qkv()
    attention(g, q, k, v)
    o = g.results[0]
    return attention(g, type(o)(o.name, "bhid", o.dtype), k, v)


@raised
def mask_shared_by_two(g):
    q, k, v = g.qkv()
    m = g.generic(
        "ij", [], g.empty("ij", "i1"), "%y = arith.cmpi sge, {i}, {j} : index"
    )
    attention(g, q, k, v, between=lambda s: masked(g, s, m))
    a = g.results[0]
    attention(g, q, k, v, between=lambda s: masked(g, g.scale(s, "0.5"), m))
    return g.returns(a, g.results[0])


# --- Not attention -------------------------------------------------------------


@kept
def softmax_over_queries(g):
    return attention(g, *g.qkv(), softmax=lambda s: g.softmax(s, "i"))


@kept
def softmax_over_heads(g):
    return attention(g, *g.qkv(), softmax=lambda s: g.softmax(s, "h"))


@kept
def softmax_over_queries_square(g):
    """All sizes alike: only the dimension number is wrong."""
    g.sizes.update(b=8, h=8, i=8, j=8, d=8, e=8)
    return attention(g, *g.qkv(), softmax=lambda s: g.softmax(s, "i"))


@kept
def sum_over_queries(g):
    def softmax(s):
        p = g.unary("math.exp", g.binary("subf", s, g.reduce("maximumf", s, "j")))
        return g.binary("divf", p, g.reduce("addf", p, "i"))

    return attention(g, *g.qkv(), softmax=softmax)


@kept
def maximum_over_queries(g):
    def softmax(s):
        p = g.unary("math.exp", g.binary("subf", s, g.reduce("maximumf", s, "i")))
        return g.binary("divf", p, g.reduce("addf", p, "j"))

    return attention(g, *g.qkv(), softmax=softmax)


@kept
def maximum_is_a_minimum(g):
    def softmax(s):
        top = g.reduce("minimumf", s, "j", "0x7F800000" if s.dtype == "f32" else "0x7C00" if s.dtype == "f16" else "0x7F80")
        p = g.unary("math.exp", g.binary("subf", s, top))
        return g.binary("divf", p, g.reduce("addf", p, "j"))

    return attention(g, *g.qkv(), softmax=softmax)


@kept
def maximum_starts_from_zero(g):
    def softmax(s):
        p = g.unary(
            "math.exp", g.binary("subf", s, g.reduce("maximumf", s, "j", "0.0"))
        )
        return g.binary("divf", p, g.reduce("addf", p, "j"))

    return attention(g, *g.qkv(), softmax=softmax)


@kept
def maximum_of_other_scores(g):
    q, k, v = g.qkv()
    s = g.einsum("bhid,bhjd->bhij", q, k)
    t = g.arg("bhij")
    p = g.unary("math.exp", g.binary("subf", s, g.reduce("maximumf", t, "j")))
    w = g.binary("divf", p, g.reduce("addf", p, "j"))
    return g.returns(g.einsum("bhij,bhje->bhie", w, v))


@kept
def maximum_added(g):
    def softmax(s):
        p = g.unary("math.exp", g.binary("addf", s, g.reduce("maximumf", s, "j")))
        return g.binary("divf", p, g.reduce("addf", p, "j"))

    return attention(g, *g.qkv(), softmax=softmax)


@kept
def maximum_missing_under_low_constants(g):
    """Where a row has such scores alone, the sum is 0 and the graph has NaN."""
    m = g.arg("ij", "i1")

    def softmax(s):
        p = g.unary("math.exp", s)
        return g.binary("divf", p, g.reduce("addf", p, "j"))

    return attention(
        g,
        *g.qkv(),
        between=lambda s: g.map(
            [s, m],
            f"%n = arith.constant {FINFO[s.dtype]} : {s.dtype}\n"
            f"%y = arith.select %1, %0, %n : {s.dtype}",
        ),
        softmax=softmax,
    )


@kept
def sum_is_a_product(g):
    def softmax(s):
        p = g.unary("math.exp", g.binary("subf", s, g.reduce("maximumf", s, "j")))
        return g.binary("divf", p, g.reduce("mulf", p, "j", "1.0"))

    return attention(g, *g.qkv(), softmax=softmax)


@kept
def sum_is_a_maximum(g):
    def softmax(s):
        p = g.unary("math.exp", g.binary("subf", s, g.reduce("maximumf", s, "j")))
        return g.binary("divf", p, g.reduce("maximumf", p, "j"))

    return attention(g, *g.qkv(), softmax=softmax)


@kept
def sum_starts_from_one(g):
    """1 + sum: an additional key of score 0."""

    def softmax(s):
        p = g.unary("math.exp", g.binary("subf", s, g.reduce("maximumf", s, "j")))
        return g.binary("divf", p, g.reduce("addf", p, "j", "1.0"))

    return attention(g, *g.qkv(), softmax=softmax)


@kept
def sum_with_epsilon(g):
    def softmax(s):
        p = g.unary("math.exp", g.binary("subf", s, g.reduce("maximumf", s, "j")))
        total = g.map(
            [g.reduce("addf", p, "j")],
            f"%c = arith.constant 0.01 : {s.dtype}\n%y = arith.addf %0, %c : {s.dtype}",
        )
        return g.binary("divf", p, total)

    return attention(g, *g.qkv(), softmax=softmax)


@kept
def sum_of_scores(g):
    """Divided by the sum of the scores, not of their exponentials."""

    def softmax(s):
        p = g.unary("math.exp", g.binary("subf", s, g.reduce("maximumf", s, "j")))
        return g.binary("divf", p, g.reduce("addf", s, "j"))

    return attention(g, *g.qkv(), softmax=softmax)


@kept
def sum_of_squares(g):
    def softmax(s):
        p = g.unary("math.exp", g.binary("subf", s, g.reduce("maximumf", s, "j")))
        return g.binary("divf", p, g.reduce("addf", g.binary("mulf", p, p), "j"))

    return attention(g, *g.qkv(), softmax=softmax)


@kept
def sum_missing(g):
    def softmax(s):
        return g.unary("math.exp", g.binary("subf", s, g.reduce("maximumf", s, "j")))

    return attention(g, *g.qkv(), softmax=softmax)


@kept
def exponential_of_another_base_in_sum(g):
    def softmax(s):
        x = g.binary("subf", s, g.reduce("maximumf", s, "j"))
        p = g.unary("math.exp", x)
        return g.binary("divf", p, g.reduce("addf", g.unary("math.exp2", x), "j"))

    return attention(g, *g.qkv(), softmax=softmax)


@kept
def exponential_missing(g):
    def softmax(s):
        return g.binary("divf", s, g.reduce("addf", s, "j"))

    return attention(g, *g.qkv(), softmax=softmax)


@kept
def exponential_is_a_sigmoid(g):
    def softmax(s):
        return g.map(
            [s],
            f"%n = arith.negf %0 : {s.dtype}\n%p = math.exp %n : {s.dtype}\n"
            f"%c = arith.constant 1.0 : {s.dtype}\n%d = arith.addf %c, %p : {s.dtype}\n"
            f"%y = arith.divf %c, %d : {s.dtype}",
        )

    return attention(g, *g.qkv(), softmax=softmax)


@kept
def mask_multiplied_after_softmax(g):
    m = g.arg("bhij")
    return attention(g, *g.qkv(), after=lambda p: g.binary("mulf", p, m))


@kept
def mask_selected_after_softmax(g):
    m = g.arg("ij", "i1")
    return attention(
        g,
        *g.qkv(),
        after=lambda p: g.map(
            [p, m],
            f"%z = arith.constant 0.0 : {p.dtype}\n%y = arith.select %1, %0, %z : {p.dtype}",
        ),
    )


@kept
def causal_after_softmax(g):
    return attention(g, *g.qkv(), after=lambda p: causal(g, p, hide="0.0"))


@kept
def weights_scaled(g):
    return attention(g, *g.qkv(), after=lambda p: g.scale(p, "1.25"))


@kept
def weights_scaled_per_head(g):
    c = g.arg("h")
    return attention(g, *g.qkv(), after=lambda p: g.binary("mulf", p, c))


@kept
def weights_squared(g):
    return attention(g, *g.qkv(), after=lambda p: g.binary("mulf", p, p))


@kept
def weights_added_to(g):
    b = g.arg("ij")
    return attention(g, *g.qkv(), after=lambda p: g.binary("addf", p, b))


@kept
def weights_returned(g):
    q, k, v = g.qkv()
    p = g.softmax(g.einsum("bhid,bhjd->bhij", q, k))
    return g.returns(g.einsum("bhij,bhje->bhie", p, v), p)


@kept
def weights_summed_elsewhere(g):
    q, k, v = g.qkv()
    p = g.softmax(g.einsum("bhid,bhjd->bhij", q, k))
    o = g.einsum("bhij,bhje->bhie", p, v)
    return g.returns(o, g.reduce("addf", p, "i"))


@kept
def scores_returned(g):
    q, k, v = g.qkv()
    s = g.einsum("bhid,bhjd->bhij", q, k)
    return g.returns(g.einsum("bhij,bhje->bhie", g.softmax(s), v), s)


@kept
def maximum_returned(g):
    q, k, v = g.qkv()
    s = g.einsum("bhid,bhjd->bhij", q, k)
    top = g.reduce("maximumf", s, "j")
    p = g.unary("math.exp", g.binary("subf", s, top))
    w = g.binary("divf", p, g.reduce("addf", p, "j"))
    return g.returns(g.einsum("bhij,bhje->bhie", w, v), top)


@kept
def weights_transposed(g):
    """P^T V with square P: the sum runs over queries."""
    g.sizes.update(i=8, j=8)
    g.dynamic = g.dynamic.replace("i", "").replace("j", "")
    q, k, v = g.arg("bhid"), g.arg("bhjd"), g.arg("bhie")
    p = g.softmax(g.einsum("bhid,bhjd->bhij", q, k))
    return g.returns(g.einsum("bhij,bhie->bhje", p, v))


@kept
def weights_read_crosswise(g):
    """The product reads P[j, i] of a square P."""
    g.sizes.update(i=8, j=8)
    g.dynamic = g.dynamic.replace("i", "").replace("j", "")
    q, k, v = g.qkv()
    p = g.softmax(g.einsum("bhid,bhjd->bhij", q, k))
    return g.returns(g.einsum("bhji,bhje->bhie", p, v))


@kept
def key_permuted_by_heads(g):
    """All of one size: the head of the key is its length."""
    g.sizes.update(b=8, h=8, i=8, j=8, d=8, e=8)
    g.dynamic = ""
    q, k, v = g.qkv()
    s = g.einsum("bhid,bhdj->bhij", q, g.transpose(k, "bdjh"))
    return g.returns(g.einsum("bhij,bhje->bhie", g.softmax(s), v))


@kept
def values_sum_over_heads_too(g):
    q, k, v = g.qkv()
    p = g.softmax(g.einsum("bhid,bhjd->bhij", q, k))
    return g.returns(
        g.generic(
            "biehj",
            [p, v],
            g.fill("bie"),
            f"%m = arith.mulf %0, %1 : {g.dtype}\n%y = arith.addf %acc, %m : {g.dtype}",
            "hj",
        )
    )


@kept
def values_are_the_weights(g):
    """P P^T"""
    g.sizes.update(i=8, e=8)
    g.dynamic = g.dynamic.replace("i", "")
    q, k = g.arg("bhid"), g.arg("bhjd")
    p = g.softmax(g.einsum("bhid,bhjd->bhij", q, k))
    return g.returns(g.einsum("bhij,bhej->bhie", p, p))


@kept
def values_added_to_the_output(g):
    """The product starts from a tensor."""
    c = g.arg("bhie")
    q, k, v = g.qkv()
    p = g.softmax(g.einsum("bhid,bhjd->bhij", q, k))
    return g.returns(g.einsum("bhij,bhje->bhie", p, v, init=c))


@kept
def values_by_maximum(g):
    """max_j P V instead of a sum."""
    q, k, v = g.qkv()
    p = g.softmax(g.einsum("bhid,bhjd->bhij", q, k))
    return g.returns(
        g.generic(
            "bhiej",
            [p, v],
            g.fill("bhie", "0xFF800000" if g.dtype == "f32" else FINFO[g.dtype]),
            f"%m = arith.mulf %0, %1 : {g.dtype}\n%y = arith.maximumf %acc, %m : {g.dtype}",
            "j",
        )
    )


@kept
def product_of_maxima(g):
    """max_d q k instead of a sum."""
    q, k, v = g.qkv()
    s = g.generic(
        "bhijd",
        [q, k],
        g.fill("bhij", "0xFF800000" if g.dtype == "f32" else FINFO[g.dtype]),
        f"%m = arith.mulf %0, %1 : {g.dtype}\n%y = arith.maximumf %acc, %m : {g.dtype}",
        "d",
    )
    return g.returns(g.einsum("bhij,bhje->bhie", g.softmax(s), v))


@kept
def product_of_differences(g):
    """-|q - k|^2 as a score."""
    q, k, v = g.qkv()
    s = g.generic(
        "bhijd",
        [q, k],
        g.fill("bhij"),
        f"%x = arith.subf %0, %1 : {g.dtype}\n%m = arith.mulf %x, %x : {g.dtype}\n"
        f"%y = arith.addf %acc, %m : {g.dtype}",
        "d",
    )
    return g.returns(g.einsum("bhij,bhje->bhie", g.softmax(s), v))


@kept
def product_weighted_inside(g):
    """sum_d q k w_d: the weights of the head dimension are no scale."""
    q, k, v = g.qkv()
    w = g.arg("d")
    s = g.generic(
        "bhijd",
        [q, k, w],
        g.fill("bhij"),
        f"%a = arith.mulf %0, %1 : {g.dtype}\n%m = arith.mulf %a, %2 : {g.dtype}\n"
        f"%y = arith.addf %acc, %m : {g.dtype}",
        "d",
    )
    return g.returns(g.einsum("bhij,bhje->bhie", g.softmax(s), v))


@kept
def product_missing(g):
    """A softmax of given scores."""
    s, v = g.arg("bhij"), g.arg("bhje")
    return g.returns(g.einsum("bhij,bhje->bhie", g.softmax(s), v))


@kept
def product_of_two_queries(g):
    """The scores do not depend on keys that the values share."""
    q, k, v = g.arg("bhid"), g.arg("hjd"), g.arg("bhje")
    s = g.einsum("bhid,hjd->bhij", q, k)
    return g.returns(g.einsum("bhij,bhje->bhie", g.softmax(s), v))


@kept
def key_heads_differ_from_value_heads(g):
    q, k, v = g.arg("bhid"), g.arg("bhjd"), g.arg("bje")
    s = g.einsum("bhid,bhjd->bhij", q, k)
    return g.returns(g.einsum("bhij,bje->bhie", g.softmax(s), v))


@raised
def head_dimension_of_12(g):
    """Padded with zeros to 16."""
    g.sizes["d"] = 12
    return attention(g, *g.qkv())


@raised
def value_dimension_of_10(g):
    """Padded with zeros to 16, of which the first 10 are the result."""
    g.sizes["e"] = 10
    return attention(g, *g.qkv())


@kept
def head_dimension_of_512(g):
    g.sizes["d"] = 512
    return attention(g, *g.qkv())


@kept
def elements_of_f64(g):
    q, k, v = g.qkv(dtype="f64")
    s = g.einsum("bhid,bhjd->bhij", q, k)
    top = g.reduce("maximumf", s, "j", "0xFFF0000000000000")
    p = g.unary("math.exp", g.binary("subf", s, top))
    w = g.binary("divf", p, g.reduce("addf", p, "j"))
    return g.returns(g.einsum("bhij,bhje->bhie", w, v))


@kept
def half_of_the_keys_in_the_sum(g):
    g.sizes.update(j=16, t=8)
    g.dynamic = g.dynamic.replace("j", "")

    def softmax(s):
        p = g.unary("math.exp", g.binary("subf", s, g.reduce("maximumf", s, "j")))
        part = type(p)(g.new(), "bhit", p.dtype)
        sizes = ", ".join(g.known.get(d, g.size(d)) for d in "bhit")
        g.emit(
            f"{part.name} = tensor.extract_slice {p.name}[0, 0, 0, 0] [{sizes}] "
            f"[1, 1, 1, 1] : {g.typed(p)} to {g.typed(part)}"
        )
        total = g.reduce("addf", part, "t")
        return g.binary("divf", p, total)

    return attention(g, *g.qkv(), softmax=softmax)


@kept
def normalized_scores(g):
    """The scores are divided by their own sum first."""
    q, k, v = g.qkv()
    s = g.einsum("bhid,bhjd->bhij", q, k)
    s = g.binary("divf", s, g.reduce("addf", s, "j"))
    return g.returns(g.einsum("bhij,bhje->bhie", g.softmax(s), v))


@kept
def gated_product_of_a_perceptron(g):
    """silu(x W) U: an exponential between two products."""
    g.sizes.update(n=16, m=8)
    x, w, u = g.arg("in"), g.arg("nj"), g.arg("jm")
    h = g.einsum("in,nj->ij", x, w)
    a = g.map(
        [h],
        f"%n = arith.negf %0 : {g.dtype}\n%p = math.exp %n : {g.dtype}\n"
        f"%c = arith.constant 1.0 : {g.dtype}\n%d = arith.addf %c, %p : {g.dtype}\n"
        f"%y = arith.divf %0, %d : {g.dtype}",
    )
    return g.returns(g.einsum("ij,jm->im", a, u))


@kept
def score_of_unknown_function(g):
    """arith.remf is not among the functions of scores."""
    b = g.arg("ij")
    return attention(
        g,
        *g.qkv(),
        between=lambda s: g.map([s, b], f"%y = arith.remf %0, %1 : {s.dtype}"),
    )


@kept
def mask_of_integer_division_by_a_value(g):
    n = g.arg("b", "i32")
    return attention(
        g,
        *g.qkv(),
        between=lambda s: g.map(
            [s, n],
            "%j = arith.index_cast {j} : index to i32\n%o = arith.constant 5 : i32\n"
            "%d = arith.addi %1, %o : i32\n%r = arith.remsi %j, %d : i32\n"
            "%z = arith.constant 2 : i32\n%c = arith.cmpi sgt, %r, %z : i32\n"
            f"%n = arith.constant {INFINITY[s.dtype]} : {s.dtype}\n"
            f"%y = arith.select %c, %0, %n : {s.dtype}",
        ),
    )
