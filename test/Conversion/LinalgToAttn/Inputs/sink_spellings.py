# Part of attn, an attention compiler.
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The table of spellings, part three: attention sinks, logits per head that join
the denominator alone."""

from graph import LOWEST, Tensor
from spellings import attention, kept, raised


def sizes(g, dims):
    return ", ".join(g.known.get(d, g.size(d)) for d in dims)


def joined(g, s, sink):
    """The scores with the sink after the last key, as letter n."""
    g.sizes["n"] = g.sizes["j"] + 1
    if "j" in g.dynamic and "n" not in g.dynamic:
        g.dynamic += "n"
    wide = g.broadcast(sink, "bhi1")
    out = Tensor(g.new(), "bhin", s.dtype)
    g.emit(
        f"{out.name} = tensor.concat dim(3) {s.name}, {wide.name} : "
        f"({g.typed(s)}, {g.typed(wide)}) -> {g.typed(out)}"
    )
    if "n" in g.dynamic:
        at, g.known["n"] = g.new(), g.new()
        g.emit(f"{at} = arith.constant 3 : index")
        g.emit(f"{g.known['n']} = tensor.dim {out.name}, {at} : {g.typed(out)}")
    return out


def without_last(g, p):
    out = Tensor(g.new(), "bhij", p.dtype)
    g.emit(
        f"{out.name} = tensor.extract_slice {p.name}[0, 0, 0, 0] [{sizes(g, 'bhij')}] "
        f"[1, 1, 1, 1] : {g.typed(p)} to {g.typed(out)}"
    )
    return out


def by_concatenation(g, sink, softmax):
    return lambda s: without_last(g, softmax(joined(g, s, sink)))


@raised
def sink_by_concatenation(g):
    q, k, v = g.qkv()
    sink = g.arg("h")
    return attention(g, q, k, v, softmax=by_concatenation(g, sink, lambda s: g.softmax(s, "n")))


@raised
def sink_by_concatenation_spelled(g):
    q, k, v = g.qkv()
    sink = g.arg("h")
    spelled = by_concatenation(g, sink, lambda s: g.spelled_softmax(s, "n"))
    return attention(g, q, k, v, softmax=spelled)


@raised
def sink_behind_a_causal_mask(g):
    q, k, v = g.qkv()
    sink = g.arg("h")

    def masked(s):
        return g.map(
            [s],
            "%c = arith.cmpi sle, {j}, {i} : index\n"
            f"%n = arith.constant {LOWEST[s.dtype]} : {s.dtype}\n"
            f"%y = arith.select %c, %0, %n : {s.dtype}",
        )

    softmax = by_concatenation(g, sink, lambda s: g.softmax(s, "n"))
    return attention(g, q, k, v, between=masked, softmax=softmax)


def explicit(g, s, sink, top, exponential="math.exp"):
    """exp(s - m) / (sum exp(s - m) + exp(sink - m))"""
    p = g.unary(exponential, g.binary("subf", s, top))
    total = g.reduce("addf", p, "j")
    own = g.map(
        [sink, top],
        f"%d = arith.subf %0, %1 : {s.dtype}\n%y = {exponential} %d : {s.dtype}",
        top.dims,
    )
    return g.binary("divf", p, g.binary("addf", total, own))


@raised
def sink_in_the_denominator(g):
    q, k, v = g.qkv()
    sink = g.arg("h")
    return attention(
        g, q, k, v, softmax=lambda s: explicit(g, s, sink, g.reduce("maximumf", s, "j"))
    )


@raised
def sink_in_the_denominator_and_the_maximum(g):
    q, k, v = g.qkv()
    sink = g.arg("h")

    def softmax(s):
        top = g.reduce("maximumf", s, "j")
        return explicit(g, s, sink, g.map([top, sink], f"%y = arith.maximumf %0, %1 : {s.dtype}"))

    return attention(g, q, k, v, softmax=softmax)


@raised
def sink_of_grouped_heads(g):
    q, k, v = g.arg("bkgid"), g.arg("bkjd"), g.arg("bkje")
    sink = g.arg("kg")
    s = g.scale(g.einsum("bkgid,bkjd->bkgij", q, k), "0.25")
    top = g.reduce("maximumf", s, "j")
    p = g.unary("math.exp", g.binary("subf", s, top))
    own = g.map(
        [sink, top],
        f"%d = arith.subf %0, %1 : {s.dtype}\n%y = math.exp %d : {s.dtype}",
        "bkgi",
    )
    p = g.binary("divf", p, g.binary("addf", g.reduce("addf", p, "j"), own))
    return g.returns(g.einsum("bkgij,bkje->bkgie", p, v))


def gated(g, gate, own_maximum=False, temperature="1.0", joins=False):
    """softmax(s) V, times what `gate` makes of the lse of the scaled s."""
    q, k, v = g.qkv()
    sink = g.arg("h")
    s = g.scale(g.einsum("bhid,bhjd->bhij", q, k), "0.25")
    top = g.reduce("maximumf", s, "j")
    p = g.unary("math.exp", g.binary("subf", s, top))
    total = g.reduce("addf", p, "j")
    weights = explicit(g, s, sink, top) if joins else g.binary("divf", p, total)
    out = g.einsum("bhij,bhje->bhie", weights, v)
    if own_maximum:  # as a log-sum-exp that is another operation of the model
        s = g.scale(s, temperature)
        top = g.map(
            [g.reduce("maximumf", s, "j")],
            f"%zero = arith.constant 0.0 : {s.dtype}\n"
            f"%inf = arith.constant {INFINITY[s.dtype]} : {s.dtype}\n"
            f"%a = math.absf %0 : {s.dtype}\n"
            f"%c = arith.cmpf oeq, %a, %inf : {s.dtype}\n"
            f"%y = arith.select %c, %zero, %0 : {s.dtype}",
        )
        total = g.reduce("addf", g.unary("math.exp", g.binary("subf", s, top)), "j")
    lse = g.binary("addf", g.unary("math.log", total), top)
    weight = g.map(
        [lse, sink],
        f"%one = arith.constant 1.0 : {s.dtype}\n" + gate.replace("T", s.dtype),
    )
    return out, weight


SIGMOID = """%d = arith.subf %0, %1 : T
%n = arith.negf %d : T
%x = math.exp %n : T
%z = arith.addf %x, %one : T
%y = arith.divf %one, %z : T"""
INFINITY = {"f16": "0x7C00", "bf16": "0x7F80", "f32": "0x7F800000"}


@raised
def sink_by_a_gate(g):
    """sigmoid(lse - sink): what is left of a sum that a sink joins."""
    out, weight = gated(g, SIGMOID)
    return g.returns(g.binary("mulf", out, weight))


@raised
def sink_by_a_gate_of_its_own_maximum(g):
    out, weight = gated(g, SIGMOID, own_maximum=True)
    return g.returns(g.binary("mulf", out, weight))


@kept
def gate_of_other_scores(g):
    out, weight = gated(g, SIGMOID, own_maximum=True, temperature="0.5")
    return g.returns(g.binary("mulf", out, weight))


@kept
def gate_of_weights_with_a_sink(g):
    """Two sinks: one joins the sum, the other is a gate."""
    out, weight = gated(g, SIGMOID, own_maximum=True, joins=True)
    return g.returns(g.binary("mulf", out, weight))


@kept
def sink_with_another_reference(g):
    q, k, v = g.qkv()
    sink = g.arg("h")

    def softmax(s):
        top = g.reduce("maximumf", s, "j")
        p = g.unary("math.exp", g.binary("subf", s, top))
        own = g.map([sink, top], f"%y = math.exp %0 : {s.dtype}", "bhi")
        return g.binary("divf", p, g.binary("addf", g.reduce("addf", p, "j"), own))

    return attention(g, q, k, v, softmax=softmax)


@kept
def sink_twice_in_the_denominator(g):
    q, k, v = g.qkv()
    sink = g.arg("h")

    def softmax(s):
        double = g.map([sink], f"%y = arith.addf %0, %0 : {s.dtype}")
        top = g.reduce("maximumf", s, "j")
        joined_top = g.map([top, sink], f"%y = arith.maximumf %0, %1 : {s.dtype}")
        return explicit(g, s, double, joined_top)

    return attention(g, q, k, v, softmax=softmax)


@kept
def sink_of_rows(g):
    q, k, v = g.qkv()
    sink = g.arg("i")
    return attention(
        g, q, k, v, softmax=lambda s: explicit(g, s, sink, g.reduce("maximumf", s, "j"))
    )


@kept
def sink_that_takes_part(g):
    """Two more keys than values: the slice begins after the first key."""
    q, k, v = g.qkv()
    sink = g.arg("h")

    def softmax(s):
        p = g.softmax(joined(g, s, sink), "n")
        out = Tensor(g.new(), "bhij", p.dtype)
        g.emit(
            f"{out.name} = tensor.extract_slice {p.name}[0, 0, 0, 1] [{sizes(g, 'bhij')}] "
            f"[1, 1, 1, 1] : {g.typed(p)} to {g.typed(out)}"
        )
        return out

    return attention(g, q, k, v, softmax=softmax)
