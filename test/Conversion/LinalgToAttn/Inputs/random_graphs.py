#!/usr/bin/env python3
# Part of attn, an attention compiler.
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Random graphs of attention, and of what looks like it.

usage: random_graphs.py SEED COUNT

A function called raised_N is attention in a random spelling; one called
kept_N_WHAT was broken by one perturbation, which it names. Both are executed
before and after raising: what may not be told by the name is told by numbers.
"""

import random
import sys

from graph import FINFO, Graph, Tensor
from spellings import INFINITY


class Spelling:
    """Choices of one graph. `broken` is a perturbation, or empty."""

    def __init__(self, g, rng, broken):
        self.g, self.rng, self.broken = g, rng, broken
        self.low = False  # a score may be a low constant
        self.p = rng.choice(["", "b", "bh", "bh", "bh", "cbh"])

    def flip(self, odds=0.5):
        return self.rng.random() < odds

    def constant(self, t, lines):
        return self.g.map([t], lines.replace("T", t.dtype))

    # Operands.

    def operand(self, dims):
        """An argument in some layout, brought to `dims`."""
        g, rng = self.g, self.rng
        kind = rng.choice(["plain", "plain", "transposed", "cast"])
        if kind == "cast" and g.dtype == "f32":
            return g.cast(g.arg(dims, rng.choice(["f16", "bf16"])), "f32")
        if kind == "transposed" and len(dims) >= 3:
            # length before heads
            stored = dims[:-3] + dims[-2] + dims[-3] + dims[-1]
            return g.transpose(g.arg(stored), dims)
        return g.arg(dims)

    def heads(self, last, length="j"):
        """Key or value, with heads repeated in some way."""
        g, rng, p = self.g, self.rng, self.p
        if not self.grouped:
            return self.operand(p + length + last)
        batch = p[:-1]
        t = g.arg(batch + "k" + length + last)
        if self.flip():
            wide = g.broadcast(t, batch + "kg" + length + last)
        else:
            c = "%z = arith.constant false\n%y = arith.select %z, %0, %0 : T"
            wide = g.map(
                [t], c.replace("T", t.dtype), batch + "kg" + length + last
            )
        groups = list(batch) + ["kg", length, last]
        return g.reshape(wide, groups, True, batch + "h" + length + last)

    # Scores.

    def product(self, q, k):
        g, rng, p = self.g, self.rng, self.p
        kind = rng.choice(["einsum", "einsum", "swapped", "transposed", "named", "fma"])
        acc = "f32" if self.half and self.flip() else g.dtype
        if kind == "transposed":
            kt = g.transpose(k, p + "dj")
            return g.einsum(f"{p}id,{p}dj->{p}ij", q, kt, dtype=acc)
        if kind == "named" and len(p) <= 1:
            kt = g.transpose(k, p + "dj")
            op = "batch_matmul" if p else "matmul"
            return g.named(op, q, kt, p + "ij", dtype=acc)
        if kind == "fma" and acc == g.dtype:
            body = f"%y = math.fma %0, %1, %acc : {acc}"
            return g.generic(p + "ijd", [q, k], g.fill(p + "ij"), body, "d")
        return g.einsum(f"{p}id,{p}jd->{p}ij", q, k, dtype=acc, swap=kind == "swapped")

    def scaled(self, t, value):
        if self.flip():
            lines = f"%c = arith.constant {1 / value} : T\n%y = arith.divf %0, %c : T"
            return self.constant(t, lines)
        if self.flip():
            return self.g.elementwise("arith.mulf", t, self.g.fill(t.dims, str(value), t.dtype))
        return self.g.scale(t, str(value))

    def index_mask(self):
        """Lines that define %c of {i} and {j}."""
        w = self.rng.randint(2, 9)
        k = f"%w = arith.constant {w} : index\n"
        return self.rng.choice(
            [
                "%c = arith.cmpi ule, {j}, {i} : index",
                "%c = arith.cmpi sge, {i}, {j} : index",
                k + "%d = arith.addi {i}, %w : index\n%c = arith.cmpi slt, {j}, %d : index",
                k + "%a = arith.divui {i}, %w : index\n%b = arith.divui {j}, %w : index\n"
                "%c = arith.cmpi eq, %a, %b : index",
                k + "%d = arith.subi {i}, {j} : index\n%a = math.absi %d : index\n"
                "%c = arith.cmpi sle, %a, %w : index",
                k + "%a = arith.cmpi ule, {j}, {i} : index\n%b = arith.cmpi ult, {j}, %w : index\n"
                "%c = arith.ori %a, %b : i1",
                "%a = arith.index_cast {i} : index to i32\n%b = arith.index_cast {j} : index to i32\n"
                "%c = arith.cmpi sle, %b, %a : i32",
            ]
        )

    def mask(self, s):
        g, rng, p = self.g, self.rng, self.p
        hide = rng.choice([INFINITY, INFINITY, FINFO])[s.dtype]
        kind = rng.choice(["index", "index", "iota", "argument", "bias", "bits", "padding"])
        self.low |= kind == "bits" or hide == FINFO[s.dtype]
        select = f"%n = arith.constant {hide} : {s.dtype}\n%y = arith.select %c, %0, %n : {s.dtype}"
        if kind == "index":
            return g.map([s], self.index_mask() + "\n" + select)
        dims = rng.choice([p + "ij", "ij", p[:1] + "ij"])
        if kind == "bias":
            b = g.arg(dims, s.dtype)
            order = "%1, %0" if self.flip() else "%0, %1"
            return g.map([s, b], f"%y = arith.addf {order} : {s.dtype}")
        if kind == "bits":
            m = g.arg(dims, "i1")
            return g.map(
                [s, m],
                f"%f = arith.uitofp %1 : i1 to {s.dtype}\n%o = arith.constant 1.0 : {s.dtype}\n"
                f"%r = arith.subf %o, %f : {s.dtype}\n%n = arith.constant -10000.0 : {s.dtype}\n"
                f"%b = arith.mulf %r, %n : {s.dtype}\n%y = arith.addf %0, %b : {s.dtype}",
            )
        if kind == "padding" and p:
            n = g.arg(p[0], "i32")
            return g.map(
                [s, n],
                "%j = arith.index_cast {j} : index to i32\n%c = arith.cmpi sle, %j, %1 : i32\n" + select,
            )
        if kind == "iota":
            lines = self.index_mask()
            m = g.generic("ij", [], g.empty("ij", "i1"), lines.replace("%c =", "%y ="))
        else:
            m = g.arg(dims, "i1")
        return g.map([s, m], select.replace("%c,", "%1,"))

    def softcap(self, s):
        return self.constant(
            s,
            "%c = arith.constant 20.0 : T\n%d = arith.divf %0, %c : T\n"
            "%t = math.tanh %d : T\n%y = arith.mulf %t, %c : T",
        )

    # Weights.

    def reduction(self, op, t, over, init=None):
        if self.flip():
            return self.g.linalg_reduce(op, t, over, init)
        return self.g.reduce(op, t, over, init)

    def normalized(self, s):
        """exp(s - max) and its sum."""
        g, b = self.g, self.broken
        over = "i" if b == "sum over queries" else "j"
        start = "0.0" if b == "maximum from zero" else None
        top_of = self.index_free(s) if b == "maximum of a part" else s
        op = "minimumf" if b == "minimum" else self.rng.choice(["maximumf", "maxnumf"])
        if b == "minimum":
            start = {"f32": "0x7F800000", "f16": "0x7C00", "bf16": "0x7F80"}[s.dtype]
        if self.flip(0.2) and not b and not self.low:
            p = g.unary("math.exp", s)
        else:
            top = self.reduction(op, top_of, "j", start)
            x = g.binary("addf" if b == "maximum added" else "subf", s, top)
            p = g.unary("math.exp", x)
        start = "1.0" if b == "sum from one" else None
        op = "maximumf" if b == "maximum of weights" else "addf"
        total = self.reduction(op, p, over, start)
        if b == "epsilon":
            total = self.constant(
                total, "%c = arith.constant 0.125 : T\n%y = arith.addf %0, %c : T"
            )
        return p, total

    def index_free(self, s):
        return self.g.scale(s, "0.75")

    def weights(self, s):
        g, b = self.g, self.broken
        if b == "softmax over queries":
            return g.softmax(s, "i")
        spelled = b or self.flip()
        if not spelled or b in ("mask after", "weights scaled", "weights squared", "weights returned", "crosswise"):
            return g.softmax(s)
        p, total = self.normalized(s)
        if b == "not divided":
            return p
        return g.binary("divf", p, total)

    def build(self):
        g, rng, b = self.g, self.rng, self.broken
        self.half = g.dtype != "f32"
        self.grouped = self.p.endswith("h") and self.flip(0.3)
        if self.grouped:
            for letter in "hkg":
                g.dynamic = g.dynamic.replace(letter, "")
        p = self.p
        if p == "cbh":
            # Two batch dimensions are one of attention: a mask that reads them
            # needs the size of the second.
            g.dynamic = g.dynamic.replace("b", "")
        q, k = self.operand(p + "id"), self.heads("d")
        places = rng.choice([[], ["q"], ["k"], ["s"], ["s"], ["q", "k"]])
        if "q" in places:
            q = self.scaled(q, 0.25)
        if "k" in places:
            k = self.scaled(k, 0.5)
        s = self.product(q, k)
        if "s" in places:
            s = self.scaled(s, 0.25)
        if self.flip(0.2):
            s = self.softcap(s)
        for _ in range(rng.choice([0, 1, 1, 2])):
            s = self.mask(s)
        if self.half and s.dtype == g.dtype and self.flip():
            s = g.cast(s, "f32", whole=self.flip())
        w = self.weights(s)
        if b == "mask after":
            m = g.arg("ij", "i1")
            w = g.map(
                [w, m],
                f"%z = arith.constant 0.0 : {w.dtype}\n%y = arith.select %1, %0, %z : {w.dtype}",
            )
        if b == "weights scaled":
            w = g.scale(w, "1.5")
        if b == "weights squared":
            w = g.binary("mulf", w, w)
        kept = w
        w = g.cast(w, g.dtype)
        v = self.heads("e")
        spec = f"{p}ij,{p}je->{p}ie"
        if b == "crosswise":
            spec = f"{p}ji,{p}je->{p}ie"
        if b == "product starts elsewhere":
            c = g.arg(p + "ie")
            return g.returns(g.einsum(spec, w, v, init=c))
        if self.flip(0.2) and len(p) >= 2 and b != "crosswise":
            spec = f"{p}ij,{p}je->{p[:-1]}i{p[-1]}e"
        o = g.einsum(spec, w, v, swap=self.flip())
        if b == "weights returned":
            return g.returns(o, kept)
        if self.flip(0.2):
            return g.returns(g.transpose(o, o.dims[0] + o.dims[1:][::-1]) if self.flip(0.3) else o)
        return g.returns(o)


PERTURBATIONS = [
    "softmax over queries",
    "sum over queries",
    "maximum from zero",
    "maximum of a part",
    "minimum",
    "maximum added",
    "sum from one",
    "maximum of weights",
    "epsilon",
    "not divided",
    "mask after",
    "weights scaled",
    "weights squared",
    "weights returned",
    "crosswise",
    "product starts elsewhere",
]


def make(seed, number):
    rng = random.Random(seed * 1000003 + number)
    broken = rng.choice(PERTURBATIONS) if rng.random() < 0.4 else ""
    sizes = {"i": rng.choice([3, 5, 8]), "j": rng.choice([4, 8, 11]), "d": 8, "e": 16}
    if broken in ("crosswise", "sum over queries", "softmax over queries") or rng.random() < 0.3:
        # All alike: only maps tell the dimensions apart.
        sizes = {letter: 8 for letter in "bhijde"}
        sizes.update(k=4, g=2)
    dynamic = rng.choice(["", "", "bhij", "ij", "j"])
    if broken in ("crosswise", "sum over queries"):
        dynamic = ""
    name = f"kept_{number}_{broken.replace(' ', '_')}" if broken else f"raised_{number}"
    g = Graph(name, rng.choice(["f32", "f32", "f16", "bf16"]), dynamic, sizes)
    return Spelling(g, rng, broken).build().text()


def main():
    seed, count = int(sys.argv[1]), int(sys.argv[2])
    for number in range(count):
        print(make(seed, number))


if __name__ == "__main__":
    main()
