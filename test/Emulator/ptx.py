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
    labels: dict  # label -> index of the instruction behind it
    registers: dict  # prefix or name -> type, e.g. "%r" -> "b32"
    shared: list  # names of extern shared arrays
    max_threads: int = 0


TYPE_BYTES = {"b8": 1, "u8": 1, "s8": 1, "b16": 2, "u16": 2, "s16": 2, "f16": 2,
              "b32": 4, "u32": 4, "s32": 4, "f32": 4,
              "b64": 8, "u64": 8, "s64": 8, "f64": 8}


def split_operands(text):
    """Splits at commas outside of braces and brackets."""
    parts, depth, start = [], 0, 0
    for i, c in enumerate(text):
        if c in "{[(":
            depth += 1
        elif c in "}])":
            depth -= 1
        elif c == "," and depth == 0:
            parts.append(text[start:i].strip())
            start = i + 1
    parts.append(text[start:].strip())
    return [p for p in parts if p]


def parse_address(text):
    parts = split_operands(text[1:-1].strip())
    coordinates = []
    if len(parts) > 1:
        coordinates = split_operands(parts[1].strip("{} "))
    match = re.fullmatch(r"([^+\s]+)\s*(?:\+\s*(-?\w+))?", parts[0])
    if not match:
        raise SyntaxError(f"address {text}")
    return Address(match[1], int(match[2] or "0", 0), coordinates)


def parse_operand(text):
    if text.startswith("{"):
        return split_operands(text[1:-1])
    if text.startswith("["):
        return parse_address(text)
    return text


def statements(body):
    """Yields ("open"|"close"|"label"|"statement", text)."""
    i = 0
    while True:
        while i < len(body) and body[i].isspace():
            i += 1
        if i == len(body):
            return
        if body[i] in "{}":
            yield ("open" if body[i] == "{" else "close"), ""
            i += 1
            continue
        label = re.compile(r"([\w$%]+)\s*:(?!:)").match(body, i)
        if label:
            yield "label", label[1]
            i = label.end()
            continue
        end = body.index(";", i)
        yield "statement", " ".join(body[i:end].split())
        i = end + 1


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


def parse(text):
    """The kernels of a PTX module by name."""
    text = re.sub(r"//[^\n]*", "", text)
    text = re.sub(r"/\*.*?\*/", "", text, flags=re.S)
    shared = re.findall(r"\.extern\s+\.shared[^;]*?\s([\w$]+)\[\]\s*;", text)
    entries = re.finditer(r"\.entry\s+([\w$]+)\s*\((.*?)\)([^{]*)\{", text, re.S)
    kernels = [parse_kernel(text, entry, shared) for entry in entries]
    if not kernels:
        raise SyntaxError("no .entry in this PTX")
    return {kernel.name: kernel for kernel in kernels}


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

    depth, i = 1, entry.end()
    while depth:
        depth += {"{": 1, "}": -1}.get(text[i], 0)
        i += 1
    body = list(statements(text[entry.end() : i - 1]))
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
            match = re.match(r"@(!?)([\w%$.]+)\s+", line)
            if match:
                negated, guard = bool(match[1]), scopes.resolve(match[2])
                line = line[match.end():]
            opcode, _, rest = line.partition(" ")
            operands = [parse_operand(o) for o in split_operands(rest)]
            if opcode.split(".")[0] == "bra":
                operands = [label_name(operands[0])]
            else:
                operands = [scopes.operand(o) for o in operands]
            kernel.instructions.append(Instruction(
                opcode.split("."), operands, guard, negated, line))
    return kernel
