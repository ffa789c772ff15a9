# Part of attn, an attention compiler.
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Mutations of what a program means: it stays one, and computes something else.

Constants, predicates and operands change, in the regions of attn.attention and
around them; conditions and operations are added; types and sizes change. Regions
are read line by line: `%name = operation operands : type`.
"""

import re

PREDICATES = {
    "arith.cmpi": "eq ne slt sle sgt sge ult ule ugt uge".split(),
    "arith.cmpf": "oeq ogt oge olt ole one ueq ugt uge ult ule une ord uno".split(),
}
INTEGERS = [0, 1, -1, 2, 3, 5, 7, 8, 13, 16, 31, 32, 33, 63, 64, 65, 100, 127, 128,
            255, 256, 1000, 4096, 65535, 2**30, 2**31 - 1, -(2**31)]
# Finite scores: the error rule is about them, and the mask about -inf.
FLOATS = ["0.0", "-0.0", "1.0", "-1.0", "0.5", "2.0", "1.0e-3", "30.0", "1.0e-30", "100.0"]
BINARY = {
    "i": "addi subi muli andi ori xori minsi maxsi minui maxui shli shrsi shrui".split(),
    "f": "addf subf mulf maximumf minimumf maxnumf minnumf".split(),
}
UNARY = {
    "i": ["math.absi", "math.ctpop", "math.ctlz", "math.cttz"],
    "f": ["arith.negf", "math.absf", "math.tanh", "math.sin", "math.cos", "math.floor",
          "math.ceil", "math.atan", "math.erf", "math.roundeven"],
}
DIVISIONS = "divsi remsi divui remui floordivsi ceildivsi".split()
WIDTHS = ["i8", "i16", "i32", "i64"]

REGION = re.compile(r"(score|mask)\(([^)]*)\) \{\n(.*?)\n\s*\}", re.S)
DEFINED = re.compile(r"^\s*(%[\w$.-]+) = ([\w.]+) (.*) : ([^:]*)$")
NAME = re.compile(r"%[\w$.-]+")


class Region:
    """The lines of a region and the types of their values."""

    def __init__(self, kind, arguments, body, rng):
        self.kind, self.rng = kind, rng
        self.lines = body.split("\n")
        self.fresh = 0
        self.arguments = {}
        for argument in re.findall(r"(%[\w$.-]+): ([^%]*?)(?:, (?=%)|$)", arguments):
            self.arguments[argument[0]] = argument[1].strip()

    def types(self, end=None):
        """What may be read before line `end`."""
        known = dict(self.arguments)
        for line in self.lines[:end]:
            match = DEFINED.match(line)
            if not match:
                continue
            name, operation, _, type = match.groups()
            if operation in PREDICATES:
                type = "i1"
            elif operation.startswith("attn."):
                found = re.search(r"x([a-z]+\d+)", type)
                type = "i32" if operation.endswith("search") else found and found.group(1)
            else:
                type = type.split(" to ")[-1].split(",")[-1]
            known[name] = (type or "").strip()
        return known

    def named(self, type, known=None):
        known = known or self.types(self.last)
        values = [name for name, own in known.items() if own == type]
        return self.rng.choice(values) if values else None

    @property
    def last(self):
        for number, line in reversed(list(enumerate(self.lines))):
            if "attn.yield" in line:
                return number
        return len(self.lines)

    def add(self, text):
        """A line before the yield; its new value."""
        self.fresh += 1
        name = f"%new{self.rng.randrange(10**9)}"
        self.lines.insert(self.last, f"      {name} = {text}")
        return name

    def constant(self, type):
        if type == "i1":
            return self.add(f"arith.constant {self.rng.choice(['true', 'false'])}")
        if type.startswith("i"):
            number = self.rng.choice(INTEGERS) % (1 << int(type[1:]))
            number -= (1 << int(type[1:])) * (number >> (int(type[1:]) - 1))
            return self.add(f"arith.constant {number} : {type}")
        return self.add(f"arith.constant {self.rng.choice(FLOATS)} : {type}")

    def value(self, type):
        return (self.rng.randrange(4) and self.named(type)) or self.constant(type)

    def operation(self, type):
        """Something new of `type`, i32 or f32."""
        kind = self.rng.randrange(8)
        letter = type[0]
        if kind == 0:
            return self.add(f"{self.rng.choice(UNARY[letter])} {self.value(type)} : {type}")
        if kind == 1:
            return self.add(f"arith.select {self.condition()}, {self.value(type)},"
                            f" {self.value(type)} : {type}")
        if kind == 2 and letter == "i":
            divisor = self.add(f"arith.constant {self.rng.choice([1, 2, 3, 7, 16, 64])} : {type}")
            name = self.rng.choice(DIVISIONS)
            return self.add(f"arith.{name} {self.value(type)}, {divisor} : {type}")
        if kind == 2:
            return self.add(f"arith.sitofp {self.value('i32')} : i32 to {type}")
        if kind == 3 and letter == "i":
            narrow = self.rng.choice(["i8", "i16"])
            low = self.add(f"arith.trunci {self.value(type)} : {type} to {narrow}")
            cast = self.rng.choice(["extsi", "extui"])
            return self.add(f"arith.{cast} {low} : {narrow} to {type}")
        name = self.rng.choice(BINARY[letter])
        return self.add(f"arith.{name} {self.value(type)}, {self.value(type)} : {type}")

    def condition(self):
        predicate = self.rng.choice(PREDICATES["arith.cmpi"])
        operand = self.operation if self.rng.randrange(3) == 0 else self.value
        left, right = operand("i32"), self.value("i32")
        return self.add(f"arith.cmpi {predicate}, {left}, {right} : i32")

    def extend(self):
        """What is yielded joins something new."""
        match = re.match(r"(\s*attn\.yield )(%[\w$.-]+)( : .*)", self.lines[self.last])
        if not match:
            return
        head, old, tail = match.groups()
        if self.kind == "mask":
            name = self.rng.choice(["andi", "andi", "ori", "xori"])
            new = self.add(f"arith.{name} {old}, {self.condition()} : i1")
        else:
            name = self.rng.choice(["addf", "addf", "subf", "mulf", "maximumf", "minimumf"])
            other = self.operation("f32")
            # Within what the weights of a few keys can tell apart.
            bounded = self.add(f"math.tanh {other} : f32")
            new = self.add(f"arith.{name} {old}, {bounded} : f32")
        self.lines[self.last] = head + new + tail

    def change_operand(self):
        places = [n for n, line in enumerate(self.lines) if DEFINED.match(line)]
        if not places:
            return
        number = self.rng.choice(places)
        known = self.types(number)
        head, _, tail = self.lines[number].partition(" = ")
        operands = [m for m in NAME.finditer(tail) if m.group(0) in known]
        if not operands:
            return
        place = self.rng.choice(operands)
        new = self.named(known[place.group(0)], known)
        self.lines[number] = head + " = " + tail[: place.start()] + new + tail[place.end() :]

    def change_predicate(self):
        for number, line in self.rng.sample(list(enumerate(self.lines)), len(self.lines)):
            match = re.search(r"(arith\.cmp[if]) (\w+),", line)
            if match:
                new = self.rng.choice(PREDICATES[match.group(1)])
                self.lines[number] = line.replace(match.group(0), f"{match.group(1)} {new},")
                return

    def change_constant(self):
        for number, line in self.rng.sample(list(enumerate(self.lines)), len(self.lines)):
            match = re.search(r"arith\.constant (\S+) : (i\d+|f32)", line)
            if not match:
                continue
            type = match.group(2)
            new = self.rng.choice(FLOATS) if type == "f32" else str(self.rng.choice(INTEGERS))
            if type != "f32":
                width = int(type[1:])
                new = str((int(new) + (1 << (width - 1))) % (1 << width) - (1 << (width - 1)))
            self.lines[number] = line.replace(match.group(0), f"arith.constant {new} : {type}")
            return

    def mutate(self):
        kinds = [self.extend, self.extend, self.change_operand, self.change_predicate,
                 self.change_constant, self.change_constant]
        self.rng.choice(kinds)()


def mutate_region(text, rng):
    regions = list(REGION.finditer(text))
    if not regions:
        return add_region(text, rng)
    match = rng.choice(regions)
    region = Region(match.group(1), match.group(2), match.group(3), rng)
    for _ in range(rng.choice([1, 1, 2, 3])):
        region.mutate()
    return text[: match.start(3)] + "\n".join(region.lines) + text[match.end(3) :]


def add_region(text, rng):
    """A mask for an attention without regions and captures."""
    match = re.search(r"attn\.attention %\w+, %\w+, %\w+( \{[^{}]*\})?", text)
    if not match or "captures(" in text:
        return text
    region = Region("mask", "%b: i32, %h: i32, %i: i32, %j: i32",
                    "      attn.yield %none : i1", rng)
    region.lines[-1] = f"      attn.yield {region.condition()} : i1"
    body = "\n".join(region.lines)
    mask = f"\n    mask(%b: i32, %h: i32, %i: i32, %j: i32) {{\n{body}\n    }}\n    "
    return text[: match.end()] + mask + text[match.end() :]


def mutate_types(text, rng):
    element = rng.choice(["bf16", "f16", "f32"])
    for old in ("bf16", "f16"):
        text = re.sub(rf"x{old}>", f"x{element}>", text)
    return text


def mutate_sizes(text, rng):
    """One static size wherever it stands, or a size that becomes known."""
    sizes = sorted(set(re.findall(r"(?<=[x<])\d+(?=x)", text)), key=int)
    if not sizes:
        return text
    old = rng.choice(sizes)
    new = rng.choice("1 2 3 4 5 8 16 24 31 33 40 64 72 96 128 130 200 256".split())
    return re.sub(rf"(?<=[x<]){old}(?=x)", new, text)


def mutate_meaning(text, rng):
    if "attn.attention" not in text:
        return text
    for _ in range(rng.choice([1, 1, 2, 3])):
        kind = rng.randrange(10)
        if kind < 7:
            text = mutate_region(text, rng)
        elif kind < 8:
            text = mutate_types(text, rng)
        else:
            text = mutate_sizes(text, rng)
    return text
