#===----------------------------------------------------------------------===#
#
# Part of attn, an attention compiler.
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===----------------------------------------------------------------------===#
"""Second derivatives: tangents of gradients, in float64.

What attn-push-tangents makes of the definition of the gradients against
differences of these, along random steps of all that the function reads.
"""

import sys

import numpy
from definition import Program, parse_options
from gradient_cases import CASES
from gradients import STEPS

NAMES = ["plain", "one_group", "sink", "dropout_and_sink", "rows_without_keys", "window",
         "softcap", "everything", "bias_masked", "slopes", "scalars"]
PASSES = ["--attn-differentiate=lse-gradient=true", "--attn-expand-variants", "--attn-expand-math",
          "--convert-attn-to-linalg=precision=f64", "--attn-push-tangents", "--attn-linalg-to-llvm"]


def move(values, tangents, step):
    return [value if tangent is None else
            (value + step * tangent).astype(value.dtype) if isinstance(value, numpy.ndarray)
            else value + step * tangent
            for value, tangent in zip(values, tangents)]


def difference(f, values, tangents):
    d = [[(high - low) / (2 * h) for high, low in
          zip(f(move(values, tangents, h)), f(move(values, tangents, -h)))] for h in STEPS]
    second = [[(4 * b - a) / 3 for a, b in zip(d[i], d[i + 1])] for i in range(2)]
    return [(16 * b - a) / 15 for a, b in zip(*second)]


def check(case, program, rng):
    """What is wrong, in words."""
    shape = case.shape
    inputs = case.make_inputs(rng)
    numbers = case.differentiated()
    rows = (shape.b, shape.h, shape.sq)
    d_output = (numpy.round(rng.standard_normal((*rows, shape.dv)) * 32) / 32).astype(numpy.float32)
    d_lse = (numpy.round(rng.standard_normal(rows) * 32) / 32).astype(numpy.float32)
    # The definition in float64 reads neither output nor lse.
    saved = [numpy.zeros((*rows, shape.dv), numpy.float32), numpy.zeros(rows, numpy.float32)]
    values = [*inputs, *saved, d_output, d_lse]
    tangents = [None] * len(values)
    for number in [*numbers, len(values) - 2, len(values) - 1]:
        value = values[number]
        tangents[number] = (rng.integers(-1, 2, value.shape).astype(numpy.float32)
                            if isinstance(value, numpy.ndarray) else 1.0)

    def gradients(moved):
        results = [numpy.empty(numpy.shape(inputs[number])) for number in numbers]
        return program.call(case.name + "_backward", moved, results)

    # Every argument of floats has a tangent; that of saved results is 0.
    floating = [number for number, value in enumerate(values)
                if isinstance(value, float) or getattr(value, "dtype", None) == numpy.float32]
    given = [tangents[number] if tangents[number] is not None else values[number] * 0 for number in floating]
    got = [numpy.empty(numpy.shape(inputs[number])) for number in numbers * 2]
    program.call(case.name + "_backward_jvp", [*values, *given], got)
    plain, moving = got[: len(numbers)], got[len(numbers):]
    for number, value, same in zip(numbers, plain, gradients(values)):
        if not numpy.array_equal(value, same):
            yield f"input {number}: the gradient is not that of {case.name}_backward"
    for number, value, wanted in zip(numbers, moving, difference(gradients, values, tangents)):
        limit = 3e-6 * (1 + numpy.abs(wanted).max(initial=0))
        if not numpy.abs(value - wanted).max(initial=0) < limit:
            yield f"input {number}: the second derivative is off by {numpy.abs(value - wanted).max()}"


def main():
    options = parse_options(__doc__)
    cases = [case for case in CASES if case.name in NAMES and (not options.only or options.only in case.name)]
    program = Program(cases, options, PASSES, "f64")
    failures = 0
    for number, case in enumerate(cases):
        for complaint in check(case, program, numpy.random.default_rng(number)):
            print(f"{case.name}: {complaint}")
            failures += 1
    print(f"{len(cases)} cases, {failures} failures")
    return 1 if failures or not cases else 0


if __name__ == "__main__":
    sys.exit(main())
