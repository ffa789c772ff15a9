#===----------------------------------------------------------------------===#
#
# Part of attn, an attention compiler.
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===----------------------------------------------------------------------===#
"""The kernels of gradients, on the CPU, against their definition in float64.

Output and lse are those of the forward in float64, rounded. A gradient may be
off by three times as much as the definition in the type of the inputs is (C16
of attn.attention_backward). Workspaces and results start as NaN.
"""

import dataclasses
import re
import sys

import numpy
from definition import Program, parse_options
from gradient_cases import CASES, Case, Shape, fixed, normal

BLOCKS = Shape(b=1, h=2, hkv=1, sq=37, sk=70, d=24, dv=40)
SCORE = """
    %two = arith.constant 2.0 : f32
    %half = arith.divf %x, %two : f32
    %bent = math.tanh %half : f32
    %r = arith.mulf %bent, %two : f32
    %d = arith.subi %i, %j : i32
    %f = arith.sitofp %d : i32 to f32
    %step = arith.constant 0.0078125 : f32
    %bias = arith.mulf %f, %step : f32
    %y = arith.addf %r, %bias : f32
    attn.yield %y : f32"""
STRIDED = """
    %n = arith.constant 3 : i32
    %d = arith.subi %i, %j : i32
    %rest = arith.remsi %d, %n : i32
    %zero = arith.constant 0 : i32
    %m = arith.cmpi eq, %rest, %zero : i32
    attn.yield %m : i1"""
DOCUMENTS = """
    %a = attn.capture_load %ids[%b, %i] : tensor<1x70xi32>
    %c = attn.capture_load %ids[%b, %j] : tensor<1x70xi32>
    %m = arith.cmpi eq, %a, %c : i32
    attn.yield %m : i1"""
# A temperature of queries: NaN past the last one, where it is 0 / 0.
TEMPERATURE = """
    %n = attn.capture_load %counts[%i] : tensor<37xi32>
    %t = arith.sitofp %n : i32 to f32
    %y = arith.divf %x, %t : f32
    attn.yield %y : f32"""
IDS = fixed(numpy.repeat(numpy.arange(7, dtype=numpy.int32), 10)[None])
COUNTS = fixed(numpy.arange(1, 38, dtype=numpy.int32))



def table(type, indices, code="", others=(), operation="addf", **options):
    """A score with an element of a table; the code makes what its indices are
    computed of."""
    *sizes, element = re.fullmatch("tensor<(.*)>", type)[1].split("x")
    dtype = {"f32": numpy.float32, "f16": numpy.float16}[element]
    maker = normal(*map(int, sizes))
    score = f"""{code}
    %t = attn.capture_load %table[{indices}] : {type}
    {"%w = arith.extf %t : f16 to f32" if element == "f16" else ""}
    %y = arith.{operation} %x, {"%w" if element == "f16" else "%t"} : f32
    attn.yield %y : f32"""
    captures = [("table", type, lambda rng: numpy.asarray(maker(rng)).astype(dtype)), *others]
    return {"shape": SHARED, **options, "score": score, "captures": captures}


SHARED = Shape(b=2, h=4, hkv=2, sq=37, sk=70, d=24, dv=40)
DISTANCE = """
    %c = arith.constant 36 : i32
    %d = arith.subi %j, %i : i32
    %n = arith.addi %d, %c : i32"""
CLAMPED = """
    %low = arith.constant -5 : i32
    %high = arith.constant 6 : i32
    %five = arith.constant 5 : i32
    %d = arith.subi %j, %i : i32
    %e = arith.maxsi %d, %low : i32
    %f = arith.minsi %e, %high : i32
    %n = arith.addi %f, %five : i32"""
BUCKETS = """
    %d = arith.subi %j, %i : i32
    %e = math.absi %d : i32
    %n = attn.capture_load %buckets[%e] : tensor<70xi32>"""
IMAGE = """
    %width = arith.constant 9 : i32
    %three = arith.constant 3 : i32
    %iy = arith.divui %i, %width : i32
    %ix = arith.remui %i, %width : i32
    %jy = arith.divui %j, %width : i32
    %jx = arith.remui %j, %width : i32
    %dy = arith.subi %jy, %iy : i32
    %dx = arith.subi %jx, %ix : i32
    %row = arith.addi %dy, %three : i32
    %column = arith.addi %dx, %three : i32"""
GROUP = """
    %two = arith.constant 2 : i32
    %g = arith.divsi %h, %two : i32"""
CAUSAL = "variants = [#attn.causal]"
# Of all keys of every third row: f32 does not hold log(n) in an lse of this size.
PENALTY = """
    %three = arith.constant 3 : i32
    %zero = arith.constant 0 : i32
    %none = arith.constant 0.0 : f32
    %penalty = arith.constant -1.0e30 : f32
    %r = arith.remui %i, %three : i32
    %is = arith.cmpi eq, %r, %zero : i32
    %t = arith.select %is, %penalty, %none : f32
    %y = arith.addf %x, %t : f32
    attn.yield %y : f32"""
PENALTIES = numpy.where(numpy.arange(37)[:, None] % 3 == 0, -1e30, 0)
TABLES = {
    "table_by_head": table("tensor<4xf32>", "%h"),
    "table_by_batch": table("tensor<2xf32>", "%b"),
    "table_by_head_and_batch": table("tensor<4x2xf32>", "%h, %b", attributes=CAUSAL),
    "table_of_a_number": table("tensor<f32>", "", operation="mulf"),
    "table_of_a_number_in_f16": table("tensor<f16>", "", operation="mulf"),
    "table_by_constant": table("tensor<3x4xf32>", "%one, %h", "%one = arith.constant 1 : i32"),
    "table_by_group": table("tensor<2x2xf32>", "%b, %g", GROUP),
    "table_full": table("tensor<2x4x37x70xf32>", "%b, %h, %i, %j", attributes=CAUSAL),
    "table_by_batch_and_pair": table("tensor<2x37x70xf32>", "%b, %i, %j", dropout=0.3),
    "table_by_head_and_pair": table("tensor<1x4x37x70xf32>", "%zero, %h, %i, %j", "%zero = arith.constant 0 : i32"),
    "table_by_group_and_pair": table("tensor<2x70x37xf16>", "%g, %j, %i", GROUP),
    "table_by_pair": table("tensor<40x80xf32>", "%i, %j", attributes=CAUSAL),
    "table_by_query": table("tensor<37xf32>", "%i"),
    "table_by_key": table("tensor<2x70xf32>", "%b, %j", attributes=CAUSAL),
    "table_by_key_and_head": table("tensor<70x4xf32>", "%j, %h"),
    "table_by_query_twice": table("tensor<40x38xf32>", "%i, %i"),
    "table_by_distance": table("tensor<4x106xf32>", "%h, %n", DISTANCE),
    "table_by_distance_first": table("tensor<100x4xf16>", "%n, %h", DISTANCE, attributes=CAUSAL),
    "table_clamped": table("tensor<2x12xf32>", "%b, %n", CLAMPED, is_dynamic=True),
    "table_by_image": table("tensor<7x4x6xf32>", "%row, %h, %column", IMAGE),
    "table_by_sum": table("tensor<2x130xf16>", "%b, %n", "%n = arith.addi %i, %j : i32", attributes=CAUSAL),
    "table_by_score": table("tensor<3xf32>", "%n", "%n = arith.fptosi %x : f32 to i32", shape=BLOCKS),
    "table_of_buckets": table("tensor<8x4xf32>", "%n, %h", BUCKETS, others=[
        ("buckets", "tensor<70xi32>", fixed(numpy.minimum(numpy.arange(70) // 3, 7).astype(numpy.int32)))]),
}

PARTS = {
    "plain": {},
    "even": {"shape": Shape(b=2, h=2, hkv=2, sq=32, sk=64, d=32, dv=32)},
    "wide": {"shape": Shape(b=1, h=1, hkv=1, sq=20, sk=33, d=144, dv=136)},
    "causal": {"attributes": "variants = [#attn.causal]"},
    "causal_long": {"attributes": "variants = [#attn.causal]", "shape": Shape(1, 2, 2, 90, 35, 16, 16)},
    "window": {"attributes": "variants = [#attn.window<left = 9, right = 3>]", "is_dynamic": True},
    # Weights of 0 and 1, although 1 of a last place of lse is a large number.
    "large_scores": {"attributes": "scale = 3145728.0"},
    "huge_scores": {"attributes": "scale = 3.9876839873547476e+36, variants = [#attn.causal]"},
    "score": {"score": SCORE},
    "score_causal": {"score": SCORE, "attributes": "variants = [#attn.causal<top_left>]", "is_dynamic": True},
    "strided": {"mask": STRIDED},
    "documents": {"mask": DOCUMENTS, "captures": [("ids", "tensor<1x70xi32>", IDS)]},
    "temperature": {"score": TEMPERATURE, "captures": [("counts", "tensor<37xi32>", COUNTS)]},
    "penalty": {"score": PENALTY, "attributes": CAUSAL},
    "penalty_with_sink": {"score": PENALTY, "dropout": 0.3,
                          "sink": lambda rng: numpy.array([-1e30, 0.5], numpy.float32)},
    "penalty_of_table": {**table("tensor<37x70xf32>", "%i, %j"), "captures": [
        ("table", "tensor<37x70xf32>", lambda rng: (normal(37, 70)(rng) + PENALTIES).astype(numpy.float32))]},
    "sink": {"sink": normal(2)},
    "dropout": {"dropout": 0.3},
    "everything": {"score": SCORE, "sink": normal(2), "dropout": 0.25, "is_dynamic": True,
                   "attributes": "variants = [#attn.causal, #attn.softcap<3.0>, #attn.alibi]"},
    **TABLES,
}
# Those that another type has, too, and those that no other type can hold.
IN_BOTH = ("even", "everything", "penalty")
IN_F32 = ("large_scores", "huge_scores")
UNIT = {"f32": 2.0**-23, "f16": 2.0**-10}


def make_cases():
    for element in UNIT:
        for name, part in PARTS.items():
            if name in IN_BOTH or (element == "f32") == (name in IN_F32):
                yield Case(f"blocks_{name}_{element}", element=element, **{"shape": BLOCKS, **part})
    for case in CASES:
        yield dataclasses.replace(case, check=None)


def gradients_of(case, program, inputs, rows, dtype=None):
    results = []
    for number in case.differentiated():
        input = numpy.asarray(inputs[number])
        own = numpy.float32 if isinstance(inputs[number], float) else input.dtype
        results.append(numpy.full(input.shape, numpy.nan, dtype or own))
    return program.call(case.name + "_backward", [*inputs, *rows], results)


def check(case, programs, rng):
    """What is wrong, in words."""
    inputs = case.make_inputs(rng)
    shape = case.shape
    o = numpy.empty((shape.b, shape.h, shape.sq, shape.dv))
    lse = numpy.empty((shape.b, shape.h, shape.sq))
    programs["f64"].call(case.name, inputs, [o, lse])
    d_output = normal(*o.shape)(rng).astype(case.dtype())
    d_lse = normal(*lse.shape)(rng)
    # Of a row without keys it may be anything.
    d_lse[numpy.isneginf(lse)] = numpy.nan
    rows = [o.astype(case.dtype()), lse.astype(numpy.float32), d_output, d_lse]
    exact = gradients_of(case, programs["f64"], inputs, rows, numpy.float64)
    narrow = gradients_of(case, programs["input"], inputs, rows)
    kernels = gradients_of(case, programs["kernels"], inputs, rows)
    again = gradients_of(case, programs["kernels"], inputs, rows)
    for number, r, g0, g, other in zip(case.differentiated(), exact, narrow, kernels, again):
        if g.tobytes() != other.tobytes():
            yield f"input {number}: two launches differ"
        error = numpy.abs(g.astype(float) - r).max(initial=0)
        unit = max(UNIT[case.element], numpy.finfo(g.dtype).eps) * numpy.abs(r).max(initial=0)
        limit = max(3 * numpy.abs(g0.astype(float) - r).max(initial=0), unit) + 1e-4
        if not error <= limit:
            yield f"input {number} {list(g.shape)}: error {error}, allowed {limit}"


def main():
    options = parse_options(__doc__)
    cases = [case for case in make_cases() if not options.only or options.only in case.name]
    differentiate = "--attn-differentiate=lse-gradient=true"
    pipelines = {"f64": "--attn-oracle=precision=f64", "input": "--attn-oracle=precision=input",
                 "kernels": "--attn-cpu"}
    programs = {name: Program(cases, options, [differentiate, pipeline], name)
                for name, pipeline in pipelines.items()}
    failures = 0
    for number, case in enumerate(cases):
        for complaint in check(case, programs, numpy.random.default_rng(number)):
            print(f"{case.name}: {complaint}")
            failures += 1
    print(f"{len(cases)} cases, {failures} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
