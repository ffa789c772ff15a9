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
    "sink": {"sink": normal(2)},
    "dropout": {"dropout": 0.3},
    "everything": {"score": SCORE, "sink": normal(2), "dropout": 0.25, "is_dynamic": True,
                   "attributes": "variants = [#attn.causal, #attn.softcap<3.0>, #attn.alibi]"},
}
# Those that another type has, too, and those that no other type can hold.
IN_BOTH = ("even", "everything")
IN_F32 = ("large_scores", "huge_scores")
UNIT = {"f32": 2.0**-23, "f16": 2.0**-10}


def is_supported(case):
    """Kernels give no gradients of captures."""
    return not any("f32" in type for _, type, _ in case.captures)


def make_cases():
    for element in UNIT:
        for name, part in PARTS.items():
            if name in IN_BOTH or (element == "f32") == (name in IN_F32):
                yield Case(f"blocks_{name}_{element}", element=element, **{"shape": BLOCKS, **part})
    for case in filter(is_supported, CASES):
        yield dataclasses.replace(case, check=None)


def gradients_of(case, program, inputs, rows, dtype=None):
    results = []
    for number in case.differentiated():
        input = inputs[number]
        results.append(numpy.empty(input.shape, dtype or input.dtype))
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
        unit = UNIT[case.element] * numpy.abs(r).max(initial=0)
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
