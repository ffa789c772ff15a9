# Part of attn, an attention compiler.
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The table of spellings, part four: what importers make of models."""

from graph import FINFO, Tensor
from more_spellings import repeat
from sink_spellings import by_concatenation, explicit, joined
from spellings import INFINITY, attention, causal, kept, masked, raised


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


# --- Maxima that are subtracted more than once ----------------------------------


def shifted(g, s, over="j"):
    return g.binary("subf", s, g.reduce("maximumf", s, over, INFINITY[s.dtype]))


@raised
def maximum_subtracted_before_the_softmax(g):
    return attention(g, *g.qkv(), between=lambda s: shifted(g, s))


@raised
def maximum_subtracted_three_times(g):
    def between(s):
        return shifted(g, shifted(g, causal(g, s)))

    return attention(g, *g.qkv(), between=between, softmax=g.spelled_softmax)


@raised
def maximum_subtracted_with_a_sink(g):
    """The sink stands after the last key while maxima are subtracted."""
    q, k, v = g.qkv()
    sink = g.arg("h")

    def softmax(s):
        return g.softmax(shifted(g, s, "n"), "n")

    return attention(g, q, k, v, softmax=by_concatenation(g, sink, softmax))


@raised
def maximum_subtracted_under_a_guard(g):
    """A row whose maximum is infinite subtracts 0, in all places."""

    def between(s):
        top = g.reduce("maximumf", s, "j", INFINITY[s.dtype])
        return g.binary("subf", s, finite(g, top))

    return attention(g, *g.qkv(), between=between)


def finite(g, top):
    return g.map(
        [top],
        f"%z = arith.constant 0.0 : {top.dtype}\n"
        f"%w = arith.constant {INFINITY[top.dtype].replace('0xF', '0x7')} : {top.dtype}\n"
        f"%a = math.absf %0 : {top.dtype}\n"
        f"%c = arith.cmpf oeq, %a, %w : {top.dtype}\n"
        f"%y = arith.select %c, %z, %0 : {top.dtype}",
    )


@raised
def logarithm_of_the_sum_under_a_guard(g):
    """exp(s - logsumexp(s)) with 0 in place of an infinite maximum."""

    def softmax(s):
        top = finite(g, g.reduce("maximumf", s, "j"))
        p = g.unary("math.exp", g.binary("subf", s, top))
        lse = g.map(
            [g.reduce("addf", p, "j"), top],
            f"%l = math.log %0 : {s.dtype}\n%y = arith.addf %l, %1 : {s.dtype}",
        )
        return g.unary("math.exp", g.binary("subf", s, lse))

    return attention(g, *g.qkv(), softmax=softmax)


@kept
def maximum_subtracted_from_the_scores_alone(g):
    """The sink joins what the maximum was subtracted from: it is not a logit."""
    q, k, v = g.qkv()
    sink = g.arg("h")
    softmax = by_concatenation(g, sink, lambda s: g.softmax(s, "n"))
    return attention(g, q, k, v, between=lambda s: shifted(g, s), softmax=softmax)


@kept
def more_than_the_maximum_subtracted_from_the_scores_alone(g):
    """So is this one, where a number stands beside the maximum."""
    q, k, v = g.qkv()
    sink = g.arg("h")

    def between(s):
        top = g.map([g.reduce("maximumf", s, "j")],
                    f"%c = arith.constant 0.5 : {s.dtype}\n%y = arith.addf %0, %c : {s.dtype}")
        return g.binary("subf", s, top)

    softmax = by_concatenation(g, sink, lambda s: g.spelled_softmax(s, "n"))
    return attention(g, q, k, v, between=between, softmax=softmax)


@kept
def maximum_over_queries_subtracted_first(g):
    return attention(g, *g.qkv(), between=lambda s: shifted(g, s, "i"))


@kept
def maximum_subtracted_twice_from_the_weights(g):
    """exp(x - m) with x = s - m, divided by the sum of exp(x)."""

    def softmax(s):
        top = g.reduce("maximumf", s, "j")
        x = g.binary("subf", s, top)
        p = g.unary("math.exp", g.binary("subf", x, top))
        return g.binary("divf", p, g.reduce("addf", g.unary("math.exp", x), "j"))

    return attention(g, *g.qkv(), softmax=softmax)


# --- Masks of bits --------------------------------------------------------------


def triangle(g, condition, dtype="i1"):
    """A triangle as importers write torch.tril and torch.triu of ones."""
    m = g.generic("ij", [], g.empty("ij", "i1"), f"%y = arith.cmpi {condition} : index")
    if dtype == "i1":
        return m
    op = "uitofp" if dtype.strip("b").startswith("f") else "extui"
    return g.map([m], f"%y = arith.{op} %0 : i1 to {dtype}", dtype=dtype)


@raised
def mask_of_a_negated_triangle(g):
    """tril().logical_not() hides with the lowest number: a mask, for every row sees
    its first key."""
    qkv = g.qkv()
    m = triangle(g, "sge, {i}, {j}")
    m = g.map([m], "%z = arith.constant false\n%y = arith.cmpi eq, %0, %z : i1")
    return attention(
        g,
        *qkv,
        between=lambda s: g.map(
            [s, m],
            f"%n = arith.constant {(INFINITY if s.dtype == 'f16' else FINFO)[s.dtype]} : {s.dtype}\n"
            f"%y = arith.select %1, %n, %0 : {s.dtype}",
        ),
    )


def window(g, dtype, op, kind):
    """triu(ones, -3) * tril(ones) == 1"""
    body = f"%w = arith.constant 3 : index\n%e = arith.addi {{j}}, %w : index\n%y = arith.cmpi sge, %e, {{i}} : index"
    upper = g.generic("ij", [], g.empty("ij", "i1"), body)
    cast = "uitofp" if op == "mulf" else "extui"
    upper = g.map([upper], f"%y = arith.{cast} %0 : i1 to {dtype}", dtype=dtype)
    both = g.binary(op, upper, triangle(g, "sle, {j}, {i}", dtype))
    one = "1.0" if op == "mulf" else "1"
    return g.map(
        [both],
        f"%c = arith.constant {one} : {dtype}\n%y = arith.{kind} %0, %c : {dtype}",
        dtype="i1",
    )


@raised
def mask_of_a_product_of_floats(g):
    qkv = g.qkv()
    m = window(g, "f32", "mulf", "cmpf oeq,")
    return attention(g, *qkv, between=lambda s: masked(g, s, m))


@raised
def mask_of_a_product_of_integers(g):
    qkv = g.qkv()
    m = window(g, "i64", "muli", "cmpi eq,")
    return attention(g, *qkv, between=lambda s: masked(g, s, m))


@raised
def mask_of_a_product_that_never_holds(g):
    """0 or 1 is not 2 but below it: every key is visible."""
    qkv = g.qkv()
    m = window(g, "i64", "muli", "cmpi ugt,")
    m = g.map([m], "%o = arith.constant true\n%y = arith.cmpi ne, %0, %o : i1")
    return attention(g, *qkv, between=lambda s: masked(g, s, m))


# --- Rows without a key, as what is added to the scores says ----------------------


def zero_where_hidden(g, p, bias, condition="oeq", hidden=None):
    """0 in rows where the largest bias is -inf."""
    top = g.reduce("maximumf", bias, "j", INFINITY[p.dtype])
    return g.map(
        [p, top],
        f"%n = arith.constant {hidden or INFINITY[p.dtype]} : {p.dtype}\n"
        f"%c = arith.cmpf {condition}, %1, %n : {p.dtype}\n"
        f"%z = arith.constant 0.0 : {p.dtype}\n"
        f"%y = arith.select %c, %z, %0 : {p.dtype}",
    )


def with_guarded_bias(g, bias, added=None, between=lambda s: s, **how):
    return attention(
        g,
        *g.qkv(),
        between=lambda s: between(g.binary("addf", s, added or bias)),
        after=lambda p: zero_where_hidden(g, p, bias, **how),
    )


def bias_of(g, m):
    return g.map(
        [m],
        f"%n = arith.constant {INFINITY[g.dtype]} : {g.dtype}\n"
        f"%z = arith.constant 0.0 : {g.dtype}\n"
        f"%y = arith.select %0, %z, %n : {g.dtype}",
        dtype=g.dtype,
    )


@raised
def guard_of_a_bias(g):
    return with_guarded_bias(g, g.arg("ij"))


@raised
def guard_of_a_mask_as_a_bias(g):
    return with_guarded_bias(g, bias_of(g, g.arg("bij", "i1")))


@raised
def guard_of_two_masks_as_a_bias(g):
    first, second = bias_of(g, g.arg("bij", "i1")), bias_of(g, g.arg("bij", "i1"))
    return with_guarded_bias(g, g.binary("addf", first, second))


@raised
def guard_of_another_bias(g):
    return with_guarded_bias(g, g.arg("ij"), added=g.arg("ij"))


@raised
def guard_of_another_mask_as_a_bias(g):
    first, second = bias_of(g, g.arg("bij", "i1")), bias_of(g, g.arg("bij", "i1"))
    return with_guarded_bias(g, first, added=second)


@raised
def guard_of_a_bias_under_a_cap(g):
    """-inf becomes a number: the keys of such a row are visible."""
    return with_guarded_bias(g, g.arg("ij"), between=lambda s: g.unary("math.tanh", s))


@raised
def guard_of_a_bias_that_is_not_infinite(g):
    return with_guarded_bias(g, g.arg("ij"), hidden="0.0")


@raised
def guard_of_a_bias_negated(g):
    return with_guarded_bias(g, g.arg("ij"), condition="une")


# --- Sizes that are computed ----------------------------------------------------


def integer(g, dims):
    """The product of the sizes of some letters as i64, guarded against what is
    negative as importers do."""
    value = g.constant(1, "i64")
    zero, one = g.constant(0, "i64"), g.constant(1, "i64")
    for dim in dims:
        size = g.new()
        if dim in g.dynamic:
            g.emit(f"{size} = arith.index_cast {g.known[dim]} : index to i64")
        else:
            size = g.constant(g.sizes[dim], "i64")
        product, below, chosen = g.new(), g.new(), g.new()
        g.emit(f"{product} = arith.muli {size}, {value} : i64")
        g.emit(f"{below} = arith.cmpi slt, {product}, {zero} : i64")
        g.emit(f"{chosen} = arith.select {below}, {one}, {product} : i64")
        value = chosen
    return value


def computed_reshape(g, t, groups, dims):
    """tensor.reshape; `groups` are the letters that each size is a product of."""
    sizes = [integer(g, group) for group in groups]
    for size, dim in zip(sizes, dims):
        if dim in g.dynamic and dim not in g.known:
            g.known[dim] = g.new()
            g.emit(f"{g.known[dim]} = arith.index_cast {size} : i64 to index")
    shape, out = g.new(), Tensor(g.new(), dims, t.dtype)
    kind = f"tensor<{len(sizes)}xi64>"
    g.emit(f"{shape} = tensor.from_elements {', '.join(sizes)} : {kind}")
    g.emit(
        f"{out.name} = tensor.reshape {t.name}({shape}) : "
        f"({g.typed(t)}, {kind}) -> {g.typed(out)}"
    )
    return out


def broadcast_alike(g, t, over="", by=None):
    """Reads 0 where a dimension has size 1: by its own size, or `by`."""
    lines, places = [], []
    for number, dim in enumerate(t.dims):
        places.append(f"{{{dim}}}")
        if dim not in over:
            continue
        lines += [
            f"%n{dim} = arith.constant {number} : index",
            f"%s{dim} = tensor.dim {t.name}, %n{dim} : {g.typed(t)}",
            f"%o{dim} = arith.constant 1 : index",
            f"%c{dim} = arith.cmpi eq, {by or f'%s{dim}'}, %o{dim} : index",
            f"%z{dim} = arith.constant 0 : index",
            f"%p{dim} = arith.select %c{dim}, %z{dim}, {{{dim}}} : index",
        ]
        places[-1] = f"%p{dim}"
    lines.append(f"%y = tensor.extract {t.name}[{', '.join(places)}] : {g.typed(t)}")
    return g.generic(t.dims, [], g.empty(t.dims, t.dtype), "\n".join(lines))


def with_computed_sizes(g, weights=lambda g, p: p):
    g.dynamic = "bijn"
    q, k, v = g.qkv()
    q, v = broadcast_alike(g, q, "bi"), broadcast_alike(g, v, "bj")
    k = g.transpose(k, "bhdj")
    q3 = computed_reshape(g, q, ["bh", "i", "d"], "nid")
    k3 = computed_reshape(g, k, ["bh", "d", "j"], "ndj")
    s = g.named("batch_matmul", q3, k3, "nij")
    s = g.scale(computed_reshape(g, s, ["b", "h", "i", "j"], "bhij"), "0.25")
    p = broadcast_alike(g, weights(g, g.softmax(s)), "bij")
    p3 = computed_reshape(g, p, ["bh", "i", "j"], "nij")
    o = g.named("batch_matmul", p3, computed_reshape(g, v, ["bh", "j", "e"], "nje"), "nie")
    return g.returns(computed_reshape(g, o, ["b", "h", "i", "e"], "bhie"))


@raised
def sizes_that_are_computed(g):
    return with_computed_sizes(g)


@raised
def sizes_that_are_asserted(g):
    """The batch of the query is another argument's, as an assertion says."""
    g.dynamic = "bijc"
    q, k, v = g.arg("cid"), g.arg("bjd"), g.arg("bje")
    c = g.new()
    g.emit(f"{c} = arith.cmpi eq, {g.known['c']}, {g.known['b']} : index")
    g.emit(f'cf.assert {c}, "other batches"')
    s = g.named("batch_matmul", broadcast_to(g, q, "bid"), g.transpose(k, "bdj"), "bij")
    return g.returns(g.named("batch_matmul", g.softmax(s), v, "bie"))


def broadcast_to(g, t, dims):
    """t[b == 1 ? 0 : b, ...] as a tensor of `dims`, which name the same places."""
    return g.generic(
        dims,
        [],
        g.empty(dims, t.dtype),
        "%n = arith.constant 0 : index\n%o = arith.constant 1 : index\n"
        f"%s = tensor.dim {t.name}, %n : {g.typed(t)}\n"
        "%c = arith.cmpi eq, %s, %o : index\n"
        f"%p = arith.select %c, %n, {{{dims[0]}}} : index\n"
        f"%y = tensor.extract {t.name}[%p, {{{dims[1]}}}, {{{dims[2]}}}] : {g.typed(t)}",
    )


@kept
def weights_of_one_key_for_all(g):
    """The size that is compared with 1 is not that of the keys."""
    def weights(g, p):
        return broadcast_alike(g, p, "j", g.known["b"])

    return with_computed_sizes(g, weights)


@kept
def weights_reshaped_into_unknown_parts(g):
    """Rows and keys trade places in a reshape of known products only."""
    g.dynamic = "ij"
    q, k, v = g.qkv("")
    s = g.einsum("id,jd->ij", q, k)
    p = computed_reshape(g, g.softmax(s), ["j", "i"], "ji")
    return g.returns(g.einsum("ji,je->ie", p, v))


def sliced(g, p, end):
    """The keys up to `end` of j and a sink: bounds as importers compute them."""
    g.dynamic += "" if "n" in g.dynamic else "n"
    names = [g.new() for _ in range(9)]
    whole, low, lowest, less, below, chosen, least, length, size = names
    zero, one, last = (g.constant(x, "index") for x in (0, -1, end))
    for line in (
        f"{low} = arith.constant 0 : index",
        f"{whole} = arith.addi {g.known['j']}, {g.constant(1, 'index')} : index",
        f"{lowest} = arith.minsi {g.known['n']}, {zero} : index",
        f"{less} = arith.addi {whole}, {last} : index",
        f"{below} = arith.cmpi slt, {less}, {zero} : index",
        f"{chosen} = arith.select {below}, {one}, {less} : index",
        f"{least} = arith.minsi {chosen}, {whole} : index",
        f"{length} = arith.subi {least}, {lowest} : index",
        f"{size} = arith.maxsi {length}, {low} : index",
    ):
        g.emit(line)
    out = Tensor(g.new(), "bhij", p.dtype)
    sizes = [g.known.get(d, g.size(d)) for d in "bhi"] + [size]
    g.emit(
        f"{out.name} = tensor.extract_slice {p.name}[0, 0, 0, {lowest}] "
        f"[{', '.join(sizes)}] [1, 1, 1, 1] : {g.typed(p)} to {g.typed(out)}"
    )
    return out


def with_a_sliced_sink(g, end):
    g.dynamic = "bij"
    q, k, v = g.qkv()
    sink = g.arg("h")

    def softmax(s):
        return sliced(g, g.softmax(joined(g, s, sink), "n"), end)

    return attention(g, q, k, v, softmax=softmax)


@raised
def sink_before_a_computed_end(g):
    return with_a_sliced_sink(g, -1)


@kept
def sink_and_keys_before_another_end(g):
    """One key less than there are."""
    return with_a_sliced_sink(g, -2)


@raised
def channels_in_front_of_heads_and_positions(g):
    """Head dimension, heads, positions: what is summed over are positions of an image, and
    rows and keys its channels; values lie so, too."""
    q, k, v = g.arg("bdhi"), g.arg("bdhj"), g.arg("behj")
    s = g.einsum("bhid,bhdj->bhij", g.transpose(q, "bhid"), g.transpose(k, "bhdj"))
    p = g.softmax(g.scale(s, "0.25"))
    return g.returns(g.einsum("bhij,bhje->bhie", p, g.transpose(v, "bhje")))
