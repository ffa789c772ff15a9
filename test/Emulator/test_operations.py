#===----------------------------------------------------------------------===#
#
# Part of attn, an attention compiler.
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===----------------------------------------------------------------------===#
"""Every operation that a region may hold, on an emulated GPU and on the CPU.

One head computes one operation: a program selects by head among up to 32 of
them. With queries of 0 and one visible key the score is what the operation
gives for that query's operands, and so is lse.
"""

import attn
import numpy as np
import pytest
from emulate import Artifact, launch
from emulated_case import Array
from mask_case import numpy_view

FLOATS, INTEGERS = ["f16", "bf16", "f32"], ["i8", "i16", "i32", "i64"]
WIDTH = {"i1": 1, "i8": 8, "i16": 16, "f16": 16, "bf16": 16, "i32": 32, "f32": 32, "i64": 64}
# (operand type, lines with %a, %b and the result %r, result type)
CASES = []


def add(type, lines, result=None):
    CASES.append((type, lines, result or type))


for type in FLOATS:
    for name in ["arith.addf", "arith.subf", "arith.mulf", "arith.divf", "arith.maximumf", "arith.minimumf",
                 "arith.maxnumf", "arith.minnumf", "math.atan2", "math.copysign"]:
        add(type, f"%r = {name} %a, %b : {type}")
    for name in ["arith.negf", "math.absf", "math.atan", "math.cbrt", "math.ceil", "math.cos", "math.erf",
                 "math.erfc", "math.exp", "math.exp2", "math.expm1", "math.floor", "math.round", "math.roundeven",
                 "math.sin", "math.tanh", "math.trunc", "math.asinh", "math.sinh", "math.cosh"]:
        add(type, f"%r = {name} %a : {type}")
    for name in ["log", "log2", "log10", "log1p", "sqrt", "rsqrt"]:
        add(type, f"%p = math.absf %a : {type}\n%r = math.{name} %p : {type}")
    for name in ["acos", "asin", "atanh", "tan"]:
        add(type, f"%c = arith.constant 0.1 : {type}\n%p = math.sin %a : {type}\n"
                  f"%s = arith.mulf %p, %c : {type}\n%r = math.{name} %s : {type}")
    # Logarithms of which an integer is made: of any number, of subnormal ones, of 0.
    for name in ["log", "log2"]:
        for factor in ["1.0", "1.0e+30", "1.0e-40", "0.0"]:
            add(type, f"%w = arith.extf %a : {type} to f32\n" * (type != "f32")
                + f"%p = math.absf {'%a' if type == 'f32' else '%w'} : f32\n%c = arith.constant {factor} : f32\n"
                f"%m = arith.mulf %p, %c : f32\n%s = math.{name} %m : f32\n%e = arith.fptosi %s : f32 to i32\n"
                f"%lo = arith.constant -1000 : i32\n%k = arith.cmpi sgt, %e, %lo : i32\n"
                f"%hi = arith.constant -7.0 : f32\n%r = arith.select %k, %s, %hi : f32", "f32")
    # The axes, where the quotient of the coordinates is 0, infinite or NaN, and a diagonal.
    origin, left = f"%s = arith.subf %a, %a : {type}\n", f"%p = math.absf %b : {type}\n%m = arith.negf %p : {type}\n"
    for y, x in ["ss", "sm", "cs", "sc", "cm", "mc", "as", "aa"]:
        add(type, f"{origin}%c = arith.negf %s : {type}\n{left}%r = math.atan2 %{y}, %{x} : {type}")
    add(type, f"%p = math.absf %a : {type}\n%r = math.powf %p, %b : {type}")
    add(type, f"%r = math.fma %a, %b, %a : {type}")
    add(type, f"%lo = arith.constant -1.0 : {type}\n%hi = arith.constant 0.5 : {type}\n"
              f"%r = math.clampf %a to [%lo, %hi] : {type}")
    add(type, f"%c = arith.constant 3 : i32\n%r = math.fpowi %a, %c : {type}, i32")
    add(type, f"%s, %r = math.sincos %a : {type}")
    for name in ["isnan", "isinf", "isfinite", "isnormal"]:
        add(type, f"%r = math.{name} %a : {type}", "i1")
    for predicate in ["oeq", "ogt", "ole", "ord", "ueq", "ult", "une", "uno"]:
        add(type, f"%r = arith.cmpf {predicate}, %a, %b : {type}", "i1")
    for integer in INTEGERS:
        add(type, f"%r = arith.fptosi %a : {type} to {integer}", integer)
        add(type, f"%p = math.absf %a : {type}\n%r = arith.fptoui %p : {type} to {integer}", integer)
        add(integer, f"%r = arith.sitofp %a : {integer} to {type}", type)
        add(integer, f"%c = arith.constant 31 : {integer}\n%p = arith.andi %a, %c : {integer}\n"
                     f"%r = arith.uitofp %p : {integer} to {type}", type)
for type in INTEGERS:
    for name in ["addi", "subi", "muli", "andi", "ori", "xori", "maxsi", "maxui", "minsi", "minui"]:
        add(type, f"%s = arith.{name} %a, %b : {type}\n%c = arith.constant 100 : {type}\n"
                  f"%r = arith.remsi %s, %c : {type}")
    for name in ["divsi", "divui", "remsi", "remui", "ceildivsi", "ceildivui", "floordivsi", "shli", "shrsi", "shrui"]:
        add(type, f"%c = arith.constant 3 : {type}\n%s = arith.{name} %a, %c : {type}\n"
                  f"%m = arith.constant 127 : {type}\n%r = arith.andi %s, %m : {type}")
    # By less than 0, and by the width and more.
    for name in ["shli", "shrsi", "shrui"]:
        add(type, f"%s = arith.{name} %a, %b : {type}\n%m = arith.constant 127 : {type}\n"
                  f"%r = arith.andi %s, %m : {type}")
    for name in ["absi", "ctlz", "cttz", "ctpop"]:
        add(type, f"%r = math.{name} %a : {type}")
    add(type, f"%c = arith.constant 3 : {type}\n%e = arith.andi %b, %c : {type}\n%s = math.ipowi %a, %e : {type}\n"
              f"%m = arith.constant 127 : {type}\n%r = arith.andi %s, %m : {type}")
    for predicate in ["eq", "slt", "sge", "ult", "uge"]:
        add(type, f"%r = arith.cmpi {predicate}, %a, %b : {type}", "i1")
    add(type, f"%s, %r = arith.addui_extended %a, %b : {type}, i1", "i1")
    if type != "i64":
        add(type, f"%s, %r = arith.mulsi_extended %a, %b : {type}")
        add(type, f"%s, %r = arith.mului_extended %a, %b : {type}")
    for wider in INTEGERS:
        if WIDTH[type] < WIDTH[wider]:
            add(type, f"%r = arith.extsi %a : {type} to {wider}", wider)
            add(type, f"%r = arith.extui %a : {type} to {wider}", wider)
            add(wider, f"%r = arith.trunci %a : {wider} to {type}", type)
for type, other in [("f16", "i16"), ("bf16", "i16"), ("f32", "i32")]:
    add(type, f"%r = arith.bitcast %a : {type} to {other}", other)
# Of distances of thousands, and of a million.
for factor in [1000.0, 30000.0, 500000.0]:
    for name in ["sin", "cos"]:
        add("f32", f"%c = arith.constant {factor} : f32\n%p = arith.mulf %a, %c : f32\n%r = math.{name} %p : f32")
for factor in ["1000.0", "1.0e+30"]:
    add("f32", f"%c = arith.constant {factor} : f32\n%p = arith.mulf %a, %c : f32\n%r = math.asinh %p : f32")
for type in ["f16", "bf16"]:
    add(type, f"%r = arith.extf %a : {type} to f32", "f32")
    add("f32", f"%r = arith.truncf %a : f32 to {type}", type)
for type in [*FLOATS, *INTEGERS]:
    add(type, f"%k = arith.cmpi sgt, %h, %j : i32\n%r = arith.select %k, %a, %b : {type}")

HEADS, LENGTH = 32, 64
BATCHES = [CASES[n : n + HEADS] for n in range(0, len(CASES), HEADS)]


def to_f32(type):
    if type == "f32":
        return "%f = arith.addf %r, %zero : f32"
    name = "extf" if type in FLOATS else "uitofp" if type == "i1" else "sitofp"
    return f"%f = arith.{name} %r : {type} to f32"


def program(cases):
    types = sorted({type for type, _, _ in cases})
    captures = [(f"{side}_{type}", f"tensor<?x{type}>") for type in types for side in "ab"]
    lines = ["%zero = arith.constant 0.0 : f32"]
    lines += [f"%{name}_at = attn.capture_load %{name}[%i] : {type}" for name, type in captures]
    chosen = "%zero"
    for number, (type, body, result) in enumerate(cases):
        for line in [*body.splitlines(), to_f32(result)]:
            for name in ["r", "f", "s", "p", "c", "m", "e", "k", "w", "lo", "hi"]:
                line = line.replace(f"%{name} ", f"%{name}_{number} ").replace(f"%{name},", f"%{name}_{number},")
                line = line.replace(f"%{name}]", f"%{name}_{number}]")
            lines.append(line.replace("%a ", f"%a_{type}_at ").replace("%a,", f"%a_{type}_at,")
                         .replace("%b ", f"%b_{type}_at ").replace("%b,", f"%b_{type}_at,"))
        lines += [f"%n_{number} = arith.constant {number} : i32",
                  f"%is_{number} = arith.cmpi eq, %h, %n_{number} : i32",
                  f"%y_{number} = arith.select %is_{number}, %f_{number}, {chosen} : f32"]
        chosen = f"%y_{number}"
    lines.append(f"attn.yield {chosen} : f32")
    return types, attn.attention("bf16", 16, captures=captures, score="\n".join(lines), mask=lambda p: p.i == p.j)


def arrays(types):
    """q, k, v, the operands, o and lse."""
    rng = np.random.default_rng(5)
    shape = (1, HEADS, LENGTH, 16)
    result = [Array("bf16", shape).set(np.zeros(shape)) for _ in range(3)]
    for type in types:
        for _ in "ab":
            values = rng.integers(-90, 91, LENGTH) if type[0] == "i" else 2 * rng.standard_normal(LENGTH)
            result.append(Array(type, (LENGTH,)).set(values))
    return [*result, Array("bf16", shape), Array("f32", shape[:3])]


@pytest.mark.parametrize("number", range(len(BATCHES)))
def test_operations(number):
    cases = BATCHES[number]
    types, text = program(cases)
    host, device = arrays(types), arrays(types)
    attn.compile(text, target="cpu").launch(*map(numpy_view, host))
    plan = "#attn.plan<target = sm_80, block_q = 64, block_k = 16, warps = 4, stages = 1>"
    kernel = Artifact(attn.compile(text, target="sm_80", plan=plan).bytes)
    # One block of queries: the grid numbers the heads.
    launch(kernel, [array.tensor for array in device],
           blocks=[(head, 0, 0) for head in range(len(cases))])
    wanted, got = (group[-1].values()[0] for group in (host, device))
    for head, (type, body, result) in enumerate(cases):
        # One unit in the last place of the result's type, and what the GPU's
        # approximations of f32 may be off.
        precision = {"f16": 2.0**-9, "bf16": 2.0**-6}.get(result, 2.0**-18)
        precision = max(precision, {"f16": 2.0**-9, "bf16": 2.0**-6}.get(type, 0)) if result in FLOATS else precision
        np.testing.assert_allclose(got[head], wanted[head], rtol=precision, atol=1e-5,
                                   err_msg=f"{body} : {type}")
