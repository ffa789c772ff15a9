# Part of attn, an attention compiler.
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Programs that are larger than people write them: large.py KIND NUMBER"""

import sys

Q = "tensor<?x?x?x64xbf16>"
LSE = "tensor<?x?x?xf32>"
COORDS = "%b: i32, %h: i32, %i: i32, %j: i32"


def program(score=None, mask=None, sorted_capture=False, attributes=""):
    capture = ", %c0: tensor<?xi32>" if sorted_capture else ""
    region = ", %c: tensor<?xi32>" if sorted_capture else ""
    if sorted_capture:
        attributes = "{sorted_captures = array<i64: 0>}"
    text = f"func.func @f(%q: {Q}, %k: {Q}, %v: {Q}{capture}) -> ({Q}, {LSE}) {{\n"
    text += "  %o, %lse = attn.attention %q, %k, %v"
    text += " captures(%c0) " if sorted_capture else " "
    text += attributes + "\n"
    if score:
        text += f"  score(%x: f32, {COORDS}{region}) {{\n{score}  }}\n"
    if mask:
        text += f"  mask({COORDS}{region}) {{\n{mask}  }}\n"
    types = ", tensor<?xi32>" if sorted_capture else ""
    text += f"  : ({Q}, {Q}, {Q}{types}) -> ({Q}, {LSE})\n"
    return text + f"  return %o, %lse : {Q}, {LSE}\n}}\n"


class Chain:
    """Operations, each of which reads the one before."""

    def __init__(self, first, number, step):
        self.text, self.last = "", first
        for n in range(number):
            self.text += "".join(f"    {line}\n" for line in step(n, self.last))
            self.last = f"%r{n}"

    def ended(self, *lines):
        return self.text + "".join(f"    {line}\n" for line in lines)


def compared(chain):
    compare = f"%m = arith.cmpi sge, {chain.last}, %j : i32"
    return chain.ended(compare, "attn.yield %m : i1")


def flags(number, predicate, join):
    """j compared with so many numbers."""
    step = lambda n, last: [
        f"%k{n} = arith.constant {3 * n} : i32",
        f"%e{n} = arith.cmpi {predicate}, %j, %k{n} : i32",
        f"%r{n} = arith.{join} {last}, %e{n} : i1",
    ]
    chain = Chain("%first", number, step)
    first = "    %first = arith.cmpi sge, %i, %j : i32\n"
    return program(mask=first + chain.ended(f"attn.yield {chain.last} : i1"))


def doublings(number):
    step = lambda n, last: [f"%r{n} = arith.addi {last}, {last} : i32"]
    return program(mask=compared(Chain("%i", number, step)))


def sorted_doublings(number):
    # Sums of two that differ, which nothing folds.
    names = ["%i", "%h"]
    text = ""
    for n in range(number):
        names.append(f"%r{n}")
        text += f"    %r{n} = arith.addi {names[-2]}, {names[-3]} : i32\n"
    text += f"    %e = attn.capture_load %c[{names[-1]}] : tensor<?xi32>\n"
    text += "    %m = arith.cmpi sge, %e, %j : i32\n    attn.yield %m : i1\n"
    return program(mask=text, sorted_capture=True)


def minima(number):
    step = lambda n, last: [
        f"%k{n} = arith.constant {n + 5} : i32",
        f"%s{n} = arith.addi %j, %k{n} : i32",
        f"%r{n} = arith.minsi {last}, %s{n} : i32",
    ]
    return program(mask=compared(Chain("%i", number, step)))


def sums(number):
    step = lambda n, last: [
        f"%k{n} = arith.constant {n + 0.5} : f32",
        f"%r{n} = arith.addf {last}, %k{n} : f32",
    ]
    chain = Chain("%x", number, step)
    return program(score=chain.ended(f"attn.yield {chain.last} : f32"))


def powers(number):
    step = lambda n, last: [f"%r{n} = arith.addf {last}, {last} : f32"]
    chain = Chain("%x", number, step)
    return program(score=chain.ended(f"attn.yield {chain.last} : f32"))


def variants(number):
    names = ["#attn.causal", "#attn.window<left = 9>", "#attn.softcap<9.0 : f32>"]
    listed = ", ".join(names[n % 3] for n in range(number))
    return program(attributes=f"{{variants = [{listed}]}}")


def captures(number):
    """The same tensor captured so many times."""
    names = [f"%c{n}" for n in range(number)]
    inner = "".join(f", {name}: tensor<8xf32>" for name in names)
    outer = ", ".join(["%t"] * number)
    types = ", tensor<8xf32>" * number
    return (
        f"func.func @f(%q: {Q}, %k: {Q}, %v: {Q}, %t: tensor<8xf32>)"
        f" -> ({Q}, {LSE}) {{\n"
        f"  %o, %lse = attn.attention %q, %k, %v captures({outer})\n"
        f"  score(%x: f32, {COORDS}{inner}) {{\n"
        f"    %e = attn.capture_load {names[-1]}[%h] : tensor<8xf32>\n"
        "    %y = arith.addf %x, %e : f32\n    attn.yield %y : f32\n  }\n"
        f"  : ({Q}, {Q}, {Q}{types}) -> ({Q}, {LSE})\n"
        f"  return %o, %lse : {Q}, {LSE}\n}}\n"
    )


def graph(number):
    """One linalg operation with a body of sums of sums."""
    step = lambda n, last: [f"%r{n} = arith.addf {last}, {last} : f32"]
    chain = Chain("%a", number, step)
    tensor = "tensor<8x8xf32>"
    return (
        "#m = affine_map<(d0, d1) -> (d0, d1)>\n"
        f"func.func @f(%q: {tensor}, %k: {tensor}, %v: {tensor}) -> {tensor} {{\n"
        "  %zero = arith.constant 0.0 : f32\n"
        f"  %e = tensor.empty() : {tensor}\n"
        f"  %z = linalg.fill ins(%zero : f32) outs(%e : {tensor}) -> {tensor}\n"
        f"  %s = linalg.matmul ins(%q, %k : {tensor}, {tensor})\n"
        f"    outs(%z : {tensor}) -> {tensor}\n"
        "  %t = linalg.generic {indexing_maps = [#m, #m],"
        ' iterator_types = ["parallel", "parallel"]}\n'
        f"    ins(%s : {tensor}) outs(%e : {tensor}) {{\n"
        "  ^bb0(%a: f32, %out: f32):\n"
        + chain.ended(f"linalg.yield {chain.last} : f32")
        + f"  }} -> {tensor}\n"
        f"  %p = linalg.softmax dimension(1) ins(%t : {tensor})"
        f" outs(%e : {tensor}) -> {tensor}\n"
        f"  %o = linalg.matmul ins(%p, %v : {tensor}, {tensor})\n"
        f"    outs(%z : {tensor}) -> {tensor}\n"
        f"  return %o : {tensor}\n}}\n"
    )


KINDS = {
    "doublings": doublings,
    "sorted": sorted_doublings,
    "minima": minima,
    "equal": lambda n: flags(n, "eq", "ori"),
    "unequal": lambda n: flags(n, "ne", "andi"),
    "parity": lambda n: flags(n, "slt", "xori"),
    "sums": sums,
    "powers": powers,
    "variants": variants,
    "captures": captures,
    "graph": graph,
}

print(KINDS[sys.argv[1]](int(sys.argv[2])))
