# Part of attn, an attention compiler.
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The table of spellings, part six: sums of some of the exponentials, what stands
beside a sum or under it, and masks of the last key."""

from graph import Tensor
from sink_spellings import by_concatenation, without_last
from spellings import INFINITY, attention, kept, masked, raised
from weight_spellings import hidden_far, zero_unless


def top_of(g, s):
    return g.reduce("maximumf", s, "j")


def exponentials(g, s, top=None):
    return g.unary("math.exp", g.binary("subf", s, top or top_of(g, s)))


def times(g, p, m):
    number = g.map([m], f"%y = arith.uitofp %0 : i1 to {p.dtype}", dtype=p.dtype)
    return g.binary("mulf", p, number)


def with_number(g, op, t, number):
    return g.map(
        [t], f"%c = arith.constant {number} : {t.dtype}\n%y = arith.{op} %0, %c : {t.dtype}"
    )


def over_sum(g, p, summed=None, change=lambda total: total):
    return g.binary("divf", p, change(g.reduce("addf", summed or p, "j")))


def divided_behind(g, change=lambda p: p, total_of=lambda total: total):
    """exp(s) V over a sum of exp(s), with no maximum anywhere."""
    q, k, v = g.qkv()
    p = change(g.unary("math.exp", g.scale(g.einsum("bhid,bhjd->bhij", q, k), "0.25")))
    total = total_of(g.reduce("addf", p, "j"))
    o = g.einsum("bhij,bhje->bhie", p, v)
    return g.returns(g.binary("divf", o, total))


# --- Sums of some --------------------------------------------------------------


@raised
def sum_of_what_is_seen(g):
    """As softmax(s, where=m) of JAX."""
    qkv, m = g.qkv(), g.arg("bj", "i1")

    def softmax(s):
        p = exponentials(g, s, top_of(g, masked(g, s, m)))
        return zero_unless(g, over_sum(g, p, zero_unless(g, p, m)), m)

    return attention(g, *qkv, softmax=softmax)


@raised
def sum_of_weights_times_a_mask(g):
    qkv, m = g.qkv(), g.arg("ij", "i1")

    def softmax(s):
        return over_sum(g, times(g, exponentials(g, s), m))

    return attention(g, *qkv, softmax=softmax)


@raised
def sum_of_weights_times_a_mask_behind_the_product(g):
    m = g.arg("ij", "i1")
    return divided_behind(g, lambda p: times(g, p, m))


@raised
def sum_of_weights_under_a_mask_behind_the_product(g):
    m = g.arg("ij", "i1")
    return divided_behind(g, lambda p: zero_unless(g, p, m))


@kept
def sum_of_less_than_the_weights(g):
    qkv, m = g.qkv(), g.arg("ij", "i1")

    def softmax(s):
        p = exponentials(g, s)
        return over_sum(g, p, times(g, p, m))

    return attention(g, *qkv, softmax=softmax)


@kept
def sum_of_others_than_the_weights(g):
    qkv, m, other = g.qkv(), g.arg("ij", "i1"), g.arg("ij", "i1")

    def softmax(s):
        p = exponentials(g, s)
        return over_sum(g, times(g, p, m), times(g, p, other))

    return attention(g, *qkv, softmax=softmax)


@kept
def sum_of_weights_times_numbers(g):
    """A mask of integers from 0 to 255 is none."""
    qkv, m = g.qkv(), g.arg("ij", "i8")

    def softmax(s):
        p = exponentials(g, s)
        number = g.map([m], f"%y = arith.uitofp %0 : i8 to {p.dtype}", dtype=p.dtype)
        return over_sum(g, g.binary("mulf", p, number))

    return attention(g, *qkv, softmax=softmax)


# --- What stands under a sum ---------------------------------------------------


def with_floor(g, number, mask=None, hidden=None):
    qkv = g.qkv()

    def softmax(s):
        s = hidden(s) if hidden else s
        p = exponentials(g, s)
        p = mask(p) if mask else p
        return over_sum(g, p, change=lambda t: with_number(g, "maximumf", t, number))

    return attention(g, *qkv, softmax=softmax)


@raised
def floor_under_a_sum(g):
    return with_floor(g, "0.001")


@raised
def floor_under_a_sum_of_what_is_seen(g):
    """Scores that are far are hidden by a product with the mask, too."""
    m = g.arg("bij", "i1")
    return with_floor(g, "0.001", lambda p: times(g, p, m), lambda s: hidden_far(g, s, m))


@kept
def floor_that_sums_reach(g):
    return with_floor(g, "2.0")


@kept
def floor_under_a_sum_of_some(g):
    """The largest of all may be hidden: what is left may be as small as you like."""
    m = g.arg("ij", "i1")
    return with_floor(g, "0.001", lambda p: times(g, p, m))


@kept
def floor_under_a_sum_without_a_maximum(g):
    return divided_behind(g, total_of=lambda t: with_number(g, "maximumf", t, "0.001"))


# --- What stands beside a sum --------------------------------------------------


@raised
def one_beside_a_sum(g):
    return divided_behind(g, total_of=lambda t: with_number(g, "addf", t, "1.0"))


@raised
def exponential_of_zero_beside_a_sum(g):
    def softmax(s):
        top = with_number(g, "maximumf", top_of(g, s), "0.0")
        beside = g.map([top], f"%n = arith.negf %0 : {s.dtype}\n%y = math.exp %n : {s.dtype}")
        return over_sum(g, exponentials(g, s, top), change=lambda t: g.binary("addf", t, beside))

    return attention(g, *g.qkv(), softmax=softmax)


@raised
def number_behind_the_scores(g):
    q, k, v = g.qkv()
    softmax = by_concatenation(g, g.fill("h", "0.5"), lambda s: g.spelled_softmax(s, "n"))
    return attention(g, q, k, v, softmax=softmax)


@raised
def number_padded_behind_the_scores(g):
    def softmax(s):
        g.sizes["n"] = g.sizes["j"] + 1
        g.dynamic += "n" if "j" in g.dynamic else ""
        out, zero = Tensor(g.new(), "bhin", s.dtype), g.constant("0.0", s.dtype)
        g.emit(f"{out.name} = tensor.pad {s.name} low[0, 0, 0, 0] high[0, 0, 0, 1] {{")
        g.emit("^bb0(%pb: index, %ph: index, %pi: index, %pj: index):")
        g.emit(f"  tensor.yield {zero} : {s.dtype}")
        g.emit(f"}} : {g.typed(s)} to {g.typed(out)}")
        if "n" in g.dynamic:
            at, g.known["n"] = g.new(), g.new()
            g.emit(f"{at} = arith.constant 3 : index")
            g.emit(f"{g.known['n']} = tensor.dim {out.name}, {at} : {g.typed(out)}")
        return without_last(g, g.spelled_softmax(out, "n"))

    return attention(g, *g.qkv(), softmax=softmax)


@raised
def number_beside_a_sum_that_is_not_seen(g):
    """1 and 1e-8 are 1."""
    return attention(
        g,
        *g.qkv(),
        softmax=lambda s: over_sum(
            g, exponentials(g, s), change=lambda t: with_number(g, "addf", t, "1.0e-8")
        ),
    )


@kept
def number_beside_a_sum_of_less_than_one(g):
    """Beside exp(s - max s) it is another logit for each row."""
    return attention(
        g,
        *g.qkv(),
        softmax=lambda s: over_sum(
            g, exponentials(g, s), change=lambda t: with_number(g, "addf", t, "0.001")
        ),
    )


# --- Rows that see no key ------------------------------------------------------


def proper(g, t, condition, number):
    """t where a condition of it holds, else a number."""
    return g.map(
        [t],
        f"%w = arith.constant {number} : {t.dtype}\n"
        f"%i = arith.constant {INFINITY[t.dtype]} : {t.dtype}\n"
        f"%z = arith.constant 0.0 : {t.dtype}\n"
        f"%a = math.absf %0 : {t.dtype}\n%f = arith.negf %i : {t.dtype}\n"
        f"%c = arith.cmpf {condition} : {t.dtype}\n"
        f"%y = arith.select %c, %0, %w : {t.dtype}",
    )


def with_proper(g, top_condition, total_of):
    qkv, m = g.qkv(), g.arg("ij", "i1")

    def softmax(s):
        s = masked(g, s, m)
        p = exponentials(g, s, proper(g, top_of(g, s), top_condition, "0.0"))
        return over_sum(g, p, change=total_of)

    return attention(g, *qkv, softmax=softmax)


@raised
def maximum_where_it_is_finite(g):
    return with_proper(g, "one, %a, %f", lambda t: proper(g, t, "ogt, %0, %z", "1.0"))


@raised
def maximum_where_it_is_above_the_lowest(g):
    """And 1 more where the sum is 0."""
    one_more = (
        "%z = arith.constant 0.0 : T\n%c = arith.cmpf oeq, %0, %z : T\n"
        "%n = arith.uitofp %c : i1 to T\n%y = arith.addf %0, %n : T"
    )
    return with_proper(
        g, "ogt, %0, %i", lambda t: g.map([t], one_more.replace("T", t.dtype))
    )


@kept
def maximum_where_it_is_positive(g):
    """Below, 0 is subtracted: all weights may be too small to count."""
    return with_proper(g, "ogt, %0, %z", lambda t: t)


@raised
def weights_without_what_is_no_number(g):
    """nan_to_num replaces infinities, too."""
    qkv, m = g.qkv(), g.arg("ij", "i1")

    def after(p):
        T = p.dtype
        return g.map(
            [p],
            f"%z = arith.constant 0.0 : {T}\n%l = arith.constant {INFINITY[T]} : {T}\n"
            f"%h = arith.negf %l : {T}\n%n = arith.constant 3.0e4 : {T}\n"
            f"%c = arith.cmpf une, %0, %0 : {T}\n%1 = arith.select %c, %z, %0 : {T}\n"
            f"%d = arith.cmpf oeq, %1, %h : {T}\n%2 = arith.select %d, %n, %1 : {T}\n"
            f"%e = arith.cmpf oeq, %2, %l : {T}\n%y = arith.select %e, %n, %2 : {T}",
        )

    return attention(g, *qkv, between=lambda s: masked(g, s, m), after=after)


@raised
def results_without_what_is_infinite(g):
    """Of an infinite value: the graph goes on to replace it."""
    g = attention(g, *g.qkv())
    o, T = g.results[0], g.dtype
    return g.returns(g.map(
        [o],
        f"%l = arith.constant {INFINITY[T]} : {T}\n%h = arith.negf %l : {T}\n"
        f"%n = arith.constant 3.0e4 : {T}\n%d = arith.cmpf oeq, %0, %h : {T}\n"
        f"%y = arith.select %d, %n, %0 : {T}",
    ))


# --- Logarithms ----------------------------------------------------------------


def logarithm(g, s, p, top):
    return g.map(
        [g.reduce("addf", p, "j"), top],
        f"%a = math.absf %0 : {s.dtype}\n%l = math.log %a : {s.dtype}\n"
        f"%y = arith.addf %l, %1 : {s.dtype}",
    )


@raised
def logarithm_of_the_magnitude_of_a_sum(g):
    """As logsumexp of JAX has it."""

    def softmax(s):
        top = proper(g, top_of(g, s), "one, %a, %f", "0.0")
        lse = logarithm(g, s, exponentials(g, s, top), top)
        return g.unary("math.exp", g.binary("subf", s, lse))

    return attention(g, *g.qkv(), softmax=softmax)


@raised
def powers_of_ten(g):
    def softmax(s):
        p = g.map(
            [s, top_of(g, s)],
            f"%t = arith.constant 10.0 : {s.dtype}\n%x = arith.subf %0, %1 : {s.dtype}\n"
            f"%y = math.powf %t, %x : {s.dtype}",
        )
        return over_sum(g, p)

    return attention(g, *g.qkv(), softmax=softmax)


# --- The last key --------------------------------------------------------------


def at_last_key(g, code):
    last = g.sizes["j"] - 1

    def between(s):
        return g.map(
            [s],
            f"%l = arith.constant {last} : index\n%c = arith.cmpi slt, {{j}}, %l : index\n"
            f"%i = arith.constant {INFINITY[s.dtype]} : {s.dtype}\n"
            f"%n = arith.constant 2.0 : {s.dtype}\n%z = arith.constant 0.0 : {s.dtype}\n"
            + code.replace("T", s.dtype),
        )

    return attention(g, *g.qkv(), between=between)


@raised
def last_key_hidden(g):
    return at_last_key(g, "%y = arith.select %c, %0, %i : T")


@raised
def last_key_with_a_bias(g):
    return at_last_key(g, "%b = arith.select %c, %z, %n : T\n%y = arith.addf %0, %b : T")


@raised
def last_key_with_a_score_of_its_own(g):
    """It has a value: no sink."""
    return at_last_key(g, "%y = arith.select %c, %0, %n : T")
