#===----------------------------------------------------------------------===#
#
# Part of attn, an attention compiler.
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===----------------------------------------------------------------------===#
"""PTX text to a list of instructions.

Reads what a compiler emits for one kernel: directives, labels, guarded
instructions, nested scopes `{ .reg …; … }` as inline assembly brings them.
"""

import re
from dataclasses import dataclass, field


@dataclass
class Instruction:
    opcode: list  # "mul.lo.s32" -> ["mul", "lo", "s32"]
    operands: list  # str; list of str for {a, b}; Address for [a + 4]
    guard: str = None  # register
    negated: bool = False
    text: str = ""


@dataclass
class Address:
    base: str
    offset: int = 0
    coordinates: list = field(default_factory=list)  # [map, {x, y, …}]


@dataclass
class Kernel:
    name: str
    parameters: list  # (name, type, byte count)
    instructions: list
    labels: dict  # label -> index of the instruction after it
    registers: dict  # prefix or name -> type, e.g. "%r" -> "b32"
    shared: list  # names of extern shared arrays
    max_threads: int = 0


TYPE_BYTES = {"b8": 1, "u8": 1, "s8": 1, "b16": 2, "u16": 2, "s16": 2, "f16": 2,
              "b32": 4, "u32": 4, "s32": 4, "f32": 4,
              "b64": 8, "u64": 8, "s64": 8, "f64": 8}


# An operand: a braced list, an address (which may hold one), or plain text.
OPERAND = re.compile(r"(?:\{[^}]*\}|\[[^\]]*\]|\([^)]*\)|[^,{\[(])+")


def split_operands(text):
    """Splits at commas outside of braces and brackets."""
    parts = text.split(",") if "{" not in text and "[" not in text and "(" not in text \
        else OPERAND.findall(text)
    return [p for p in map(str.strip, parts) if p]


ADDRESS = re.compile(r"([^+\s]+)\s*(?:\+\s*(-?\w+))?")
GUARD = re.compile(r"@(!?)([\w%$.]+)\s+")


def parse_address(text):
    parts = split_operands(text[1:-1].strip())
    coordinates = []
    if len(parts) > 1:
        coordinates = split_operands(parts[1].strip("{} "))
    match = ADDRESS.fullmatch(parts[0])
    if not match:
        raise SyntaxError(f"address {text}")
    return Address(match[1], int(match[2] or "0", 0), coordinates)


def parse_operand(text):
    if text.startswith("{"):
        return split_operands(text[1:-1])
    if text.startswith("["):
        return parse_address(text)
    return text


STATEMENT = re.compile(r"\s*(?:([{}])|([\w$%]+)\s*:(?!:)|([^;]*);)")


def statements(body):
    """Yields ("open"|"close"|"label"|"statement", text)."""
    body = body.rstrip()
    i = 0
    while i < len(body):
        match = STATEMENT.match(body, i)
        if not match:
            raise SyntaxError(f"no statement: {body[i:i + 80]!r}")
        brace, label, statement = match.groups()
        if brace:
            yield ("open" if brace == "{" else "close"), ""
        elif label:
            yield "label", label
        else:
            yield "statement", " ".join(statement.split())
        i = match.end()


class Scopes:
    """Names declared inside `{ }` hide outer ones; they get a suffix."""

    def __init__(self):
        self.stack, self.count = [{}], 0

    def push(self):
        self.count += 1
        self.stack.append({})

    def declare(self, name):
        if len(self.stack) > 1:
            self.stack[-1][name] = f"{name}@{self.count}"
        return self.resolve(name)

    def resolve(self, name):
        if len(self.stack) == 1:  # (holds nothing: names out there stay as they are)
            return name
        for scope in reversed(self.stack):
            if name in scope:
                return scope[name]
        return name

    def operand(self, operand):
        if isinstance(operand, list):
            return [self.resolve(o) for o in operand]
        if isinstance(operand, Address):
            return Address(self.resolve(operand.base), operand.offset,
                           [self.resolve(c) for c in operand.coordinates])
        if "|" in operand:
            return "|".join(self.resolve(o.strip()) for o in operand.split("|"))
        return self.resolve(operand)


def labels_of(body_statements):
    """Labels inside a scope are local to it: name them apart beforehand."""
    scopes, names, stack = 0, {}, [0]
    for kind, text in body_statements:
        if kind == "open":
            scopes += 1
            stack.append(scopes)
        elif kind == "close":
            stack.pop()
        elif kind == "label":
            names.setdefault(text, []).append(tuple(stack))
    return names


class Module(dict):
    """The kernels of a PTX module by name, each read when it is asked for."""

    def __init__(self, text):
        super().__init__()
        text = re.sub(r"//[^\n]*", "", text)
        self.text = re.sub(r"/\*.*?\*/", "", text, flags=re.S)
        self.shared = re.findall(r"\.extern\s+\.shared[^;]*?\s([\w$]+)\[\]\s*;", self.text)
        entries = re.finditer(r"\.entry\s+([\w$]+)\s*\((.*?)\)([^{]*)\{", self.text, re.S)
        self.entries = {entry[1]: entry for entry in entries}
        if not self.entries:
            raise SyntaxError("no .entry in this PTX")

    def __missing__(self, name):
        self[name] = parse_kernel(self.text, self.entries[name], self.shared)
        return self[name]


def body_of(text, start):
    """What lies between the brace before `start` and the one that closes it."""
    depth = 1
    for brace in re.compile("[{}]").finditer(text, start):
        depth += 1 if brace[0] == "{" else -1
        if depth == 0:
            return text[start : brace.start()]
    raise SyntaxError("a kernel without an end")


def parse_kernel(text, entry, shared):
    parameters = []
    for piece in split_operands(entry[2]):
        words = piece.split()
        name = words[-1]
        array = re.fullmatch(r"([\w$]+)\[(\d+)\]", name)
        type = next(w[1:] for w in words if w[1:] in TYPE_BYTES)
        size = TYPE_BYTES[type] * (int(array[2]) if array else 1)
        parameters.append((array[1] if array else name, type, size))
    limit = re.search(r"\.(?:maxntid|reqntid)\s+(\d+)", entry[3])
    kernel = Kernel(entry[1], parameters, [], {}, {}, shared,
                    int(limit[1]) if limit else 0)

    body = list(statements(body_of(text, entry.end())))
    scopes, scope_path, count = Scopes(), [0], 0
    known_labels = labels_of(body)

    def label_name(name):
        paths = known_labels.get(name)
        if not paths:
            raise SyntaxError(f"unknown label {name}")
        best = [p for p in paths if p == tuple(scope_path)[: len(p)]]
        if not best:
            raise SyntaxError(f"label {name} is not visible here")
        return f"{name}@{max(best, key=len)}"

    for kind, line in body:
        if kind == "open":
            count += 1
            scopes.push()
            scope_path.append(count)
        elif kind == "close":
            scopes.stack.pop()
            scope_path.pop()
        elif kind == "label":
            kernel.labels[label_name(line)] = len(kernel.instructions)
        elif line.startswith(".reg"):
            type, names = re.fullmatch(r"\.reg\s+\.(\w+)\s+(.*)", line).groups()
            for name in names.split(","):
                name = re.sub(r"<\d+>", "", name.strip())
                kernel.registers[scopes.declare(name)] = type
        elif line.startswith("."):
            continue  # .pragma, .loc
        else:
            guard, negated = None, False
            if line.startswith("@"):
                match = GUARD.match(line)
                negated, guard = bool(match[1]), scopes.resolve(match[2])
                line = line[match.end():]
            opcode, _, rest = line.partition(" ")
            words = opcode.split(".")
            operands = [parse_operand(o) for o in split_operands(rest)]
            if words[0] == "bra":
                operands = [label_name(operands[0])]
            elif len(scopes.stack) > 1 or "|" in rest:
                operands = [scopes.operand(o) for o in operands]
            kernel.instructions.append(Instruction(words, operands, guard, negated, line))
    return kernel
