#===----------------------------------------------------------------------===#
#
# Part of attn, an attention compiler.
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===----------------------------------------------------------------------===#
"""Random programs as people write them: masks of two to four conditions
(intervals of keys and of distances, quotients, remainders, tables, documents)
under and, or and not; scores of one to six operations; or both."""

import random

DIMS = [40, 48, 64, 64, 64, 72, 80, 96, 112, 128, 128, 128, 160, 192, 256]
POSITIONS = "%b: i32, %h: i32, %i: i32, %j: i32"
WIDTHS = [1, 4, 16, 64, 100, 128, 512, 1024]
PERIODS = [2, 3, 4, 8, 16, 17, 64, 128]
KINDS = ["interval", "interval", "interval", "quotient", "remainder", "table", "documents"]


class Region:
    """Lines of scalar code; `name` in the words of a person."""

    def __init__(self, rng, captures):
        self.rng, self.captures, self.lines = rng, captures, []

    def add(self, text, type=None):
        name = f"%v{len(self.lines)}"
        self.lines.append(f"{name} = {text}" + (f" : {type}" if type else ""))
        return name

    def integer(self, value):
        return self.add(f"arith.constant {value}", "i32")

    def number(self, value):
        return self.add(f"arith.constant {value:e}", "f32")

    def compare(self, predicate, a, b):
        return self.add(f"arith.cmpi {predicate}, {a}, {b}", "i32")

    def capture(self, type, is_sorted=False):
        """A new one of that type."""
        self.captures.append((type, is_sorted))
        return f"%c{len(self.captures) - 1}"

    def load(self, type, *indices):
        return self.add(f"attn.capture_load {self.capture(type)}[{', '.join(indices)}]", type)

    def text(self, kind, argument, result, type):
        types = "".join(f", %c{n}: {t}" for n, (t, _) in enumerate(self.captures))
        lines = "".join(f"      {line}\n" for line in self.lines)
        return f"    {kind}({argument}{POSITIONS}{types}) {{\n{lines}      attn.yield {result} : {type}\n    }}\n"

    # Conditions: the value, and what it says.

    def distance(self):
        first, second = self.rng.choice([("%i", "%j"), ("%j", "%i")])
        return self.add(f"arith.subi {first}, {second}", "i32"), f"{first[1]} - {second[1]}"

    def interval(self):
        kind, width = self.rng.choice(["causal", "behind", "ahead", "first", "window", "rows"]), self.rng.choice(WIDTHS)
        if kind == "causal":
            return self.compare("sle", "%j", "%i"), "j <= i"
        if kind == "first":
            return self.compare("slt", "%j", self.integer(width)), f"j < {width}"
        if kind == "rows":
            return self.compare("sge", "%i", self.integer(width)), f"i >= {width}"
        if kind == "window":
            distance = self.add(f"math.absi {self.distance()[0]}", "i32")
            return self.compare("sle", distance, self.integer(width)), f"|i - j| <= {width}"
        distance, said = self.distance()
        predicate, sign = ("slt", "<") if kind == "behind" else ("sge", ">=")
        return self.compare(predicate, distance, self.integer(width)), f"{said} {sign} {width}"

    def quotient(self):
        width = self.rng.choice(PERIODS)
        number = self.integer(width)
        parts = [self.add(f"arith.divui {position}, {number}", "i32") for position in ("%i", "%j")]
        predicate, sign = self.rng.choice([("eq", "=="), ("sge", ">="), ("ne", "!=")])
        return self.compare(predicate, *parts), f"i / {width} {sign} j / {width}"

    def remainder(self):
        width = self.rng.choice(PERIODS)
        kind, number = self.rng.choice(["key", "distance", "both", "some"]), self.integer(width)
        if kind == "both":
            parts = [self.add(f"arith.remui {position}, {number}", "i32") for position in ("%i", "%j")]
            return self.compare("eq", *parts), f"i % {width} == j % {width}"
        if kind == "distance":
            distance, said = self.distance()
            rest = self.add(f"arith.remsi {distance}, {number}", "i32")
            return self.compare("eq", rest, self.integer(0)), f"({said}) % {width} == 0"
        rest = self.add(f"arith.remui %j, {number}", "i32")
        if kind == "key":
            return self.compare("eq", rest, self.integer(width - 1)), f"j % {width} == {width - 1}"
        some = self.rng.randint(1, width)
        return self.compare("slt", rest, self.integer(some)), f"j % {width} < {some}"

    def table(self):
        kind = self.rng.choice(["length", "start", "width", "keys", "blocks"])
        if kind == "length":
            return self.compare("slt", "%j", self.load("tensor<?xi32>", "%b")), "j < length[b]"
        if kind == "start":
            return self.compare("sge", "%j", self.load("tensor<?xi32>", "%b")), "j >= start[b]"
        if kind == "width":
            limit = self.load("tensor<?xi32>", "%h")
            return self.compare("slt", self.distance()[0], limit), "distance < width[h]"
        if kind == "keys":
            return self.add(f"attn.capture_load {self.capture('tensor<?x?xi1>')}[%b, %j]", "tensor<?x?xi1>"), "keep[b, j]"
        number = self.integer(64)
        parts = [self.add(f"arith.divui {position}, {number}", "i32") for position in ("%i", "%j")]
        return self.add(f"attn.capture_load {self.capture('tensor<?x?xi1>')}[{', '.join(parts)}]",
                        "tensor<?x?xi1>"), "block[i / 64, j / 64]"

    def documents(self):
        if self.rng.random() < 0.5:
            type, operation, parts = "tensor<?xi32>", "attn.capture_search", []
            name, said = self.capture(type, is_sorted=True), "document of i == of j, by offsets"
            parts = [self.add(f"attn.capture_search {name}[], {position}", type) for position in ("%i", "%j")]
        else:
            type = "tensor<?xi32>"
            name = self.capture(type, is_sorted=self.rng.random() < 0.7)
            said = "ids[i] == ids[j]" + (", sorted" if self.captures[-1][1] else "")
            parts = [self.add(f"attn.capture_load {name}[{position}]", type) for position in ("%i", "%j")]
        return self.compare("eq", *parts), said

    def condition(self, count):
        """`count` conditions, joined."""
        if count == 1:
            value, said = getattr(self, self.rng.choice(KINDS))()
            if self.rng.random() < 0.2:
                true = self.add("arith.constant true")
                return self.add(f"arith.xori {value}, {true}", "i1"), f"not ({said})"
            return value, said
        first = self.rng.randint(1, count - 1)
        (a, said_a), (b, said_b) = self.condition(first), self.condition(count - first)
        name, word = self.rng.choice([("andi", "and"), ("andi", "and"), ("ori", "or")])
        return self.add(f"arith.{name} {a}, {b}", "i1"), f"({said_a} {word} {said_b})"

    # Scores.

    def score(self, count):
        x, said = "%x", "x"
        for _ in range(count):
            x, said = self.operation(x, said)
        return x, said

    def operation(self, x, said):
        kind = self.rng.choice(["factor", "slope", "cap", "bias", "bias", "penalty", "key", "curve"])
        add = lambda term: self.add(f"arith.addf {x}, {term}", "f32")
        if kind == "factor":
            return self.add(f"arith.mulf {x}, {self.number(self.rng.choice([0.5, 1.7]))}", "f32"), f"c ({said})"
        if kind == "slope":
            distance = self.add(f"arith.sitofp {self.distance()[0]} : i32 to f32")
            slope = self.load("tensor<?xf32>", "%h")
            return add(self.add(f"arith.mulf {distance}, {slope}", "f32")), f"{said} + slope[h] (j - i)"
        if kind == "cap":
            cap = self.number(self.rng.choice([20.0, 50.0]))
            part = self.add(f"math.tanh {self.add(f'arith.divf {x}, {cap}', 'f32')}", "f32")
            return self.add(f"arith.mulf {part}, {cap}", "f32"), f"cap ({said})"
        if kind == "bias":
            if self.rng.random() < 0.3:
                return add(self.load("tensor<?x?x?x?xf32>", "%b", "%h", "%i", "%j")), f"{said} + bias[b, h, i, j]"
            limit = self.rng.choice([32, 128, 512])
            distance = self.add(f"arith.addi {self.distance()[0]}, {self.integer(limit)}", "i32")
            distance = self.add(f"arith.maxsi {distance}, {self.integer(0)}", "i32")
            distance = self.add(f"arith.minsi {distance}, {self.integer(2 * limit)}", "i32")
            return add(self.load("tensor<?x?xf32>", "%h", distance)), f"{said} + near[h, distance]"
        if kind == "penalty":
            condition, what = self.condition(1)
            term = self.add(f"arith.select {condition}, {self.number(-4.0)}, {self.number(0.0)}", "f32")
            return add(term), f"{said} - 4 [{what}]"
        if kind == "key":
            return add(self.load("tensor<?x?xf32>", "%b", "%j")), f"{said} + of[b, j]"
        square = self.add(f"math.absf {x}", "f32")
        root = self.add(f"math.sqrt {square}", "f32")
        return self.add(f"arith.subf {x}, {root}", "f32"), f"({said}) - sqrt"


class Program:
    """The one of a number: `text`, and `said`, what it computes."""

    def __init__(self, seed, number, elements=("bf16", "f16")):
        rng = random.Random(f"{seed} {number}")
        self.number, self.dim, self.element = number, rng.choice(DIMS), rng.choice(elements)
        draw, regions, said, captures = rng.random(), [], [], []
        if draw < 0.7:
            mask = Region(rng, captures)
            value, what = mask.condition(rng.randint(2, 4))
            regions.append((mask, "mask", "", value, "i1"))
            said.append(f"mask {what}")
        if draw > 0.4:
            score = Region(rng, captures)
            value, what = score.score(rng.randint(1, 6))
            regions.insert(0, (score, "score", "%x: f32, ", value, "f32"))
            said.append(f"score {what}")
        self.said = f"{self.element} d = {self.dim}: " + "; ".join(said)
        bodies = "".join(region.text(kind, argument, value, type)
                         for region, kind, argument, value, type in regions)
        self.text = self._function(bodies, captures)

    def _function(self, bodies, captures):
        tensor, lse = f"tensor<?x?x?x{self.dim}x{self.element}>", "tensor<?x?x?xf32>"
        names = [f"%t{n}" for n in range(len(captures))]
        types = [tensor] * 3 + [type for type, _ in captures]
        arguments = ", ".join(f"{n}: {t}" for n, t in zip(["%q", "%k", "%v"] + names, types))
        given = f" captures({', '.join(names)})" if names else ""
        sorted_ones = [str(n) for n, (_, is_sorted) in enumerate(captures) if is_sorted]
        if sorted_ones:
            given += f" {{sorted_captures = array<i64: {', '.join(sorted_ones)}>}}"
        return (f"// {self.said}\nfunc.func @attention({arguments}) -> ({tensor}, {lse}) {{\n"
                f"  %o, %lse = attn.attention %q, %k, %v{given}\n{bodies}"
                f"    : ({', '.join(types)}) -> ({tensor}, {lse})\n"
                f"  return %o, %lse : {tensor}, {lse}\n}}\n")
