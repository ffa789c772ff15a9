#===----------------------------------------------------------------------===#
#
# Part of attn, an attention compiler.
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===----------------------------------------------------------------------===#
"""Gradients of the definition against differences of the forward, in float64.

Inputs are numbers of f32, f16 or bf16 on a grid, so that steps of powers of two are exact;
three central differences are extrapolated to an error of the sixth power of the
step. L is a sum of outputs and finite lse with random factors.
"""

import sys

import numpy
from definition import Program, parse_options
from gradient_cases import CASES, CONVENTIONS, narrow_inputs

STEPS = [2.0**-5, 2.0**-6, 2.0**-7]


def stored(case, values):
    """As programs take them: tensors of bf16 as bits."""
    if case.element != "bf16":
        return values
    captured = range(len(case.tensors()), len(case.make_inputs(numpy.random.default_rng(0))))
    return [(value.view(numpy.uint32) >> 16).astype(numpy.uint16)
            if numpy.ndim(value) == 4 and number not in captured else value
            for number, value in enumerate(values)]


def loss(case, program, inputs, d_output, d_lse):
    shape = case.shape
    o = numpy.empty((shape.b, shape.h, shape.sq, shape.dv))
    lse = numpy.empty((shape.b, shape.h, shape.sq))
    program.call(case.name, stored(case, inputs), [o, lse])
    seen = numpy.isfinite(lse)
    return (o * d_output).sum() + (lse[seen] * d_lse[seen]).sum()


def difference(f, inputs, number, index):
    """dL over a change of one element."""

    def at(step):
        moved = list(inputs)
        if isinstance(inputs[number], numpy.ndarray):
            moved[number] = inputs[number].copy()
            moved[number][index] += step
        else:
            moved[number] = inputs[number] + step
        return f(moved)

    d = [(at(h) - at(-h)) / (2 * h) for h in STEPS]
    second = [(4 * d[i + 1] - d[i]) / 3 for i in range(2)]
    return (16 * second[1] - second[0]) / 15


def backward(case, program, inputs, d_output, d_lse, dtype, forward=None):
    """The gradients of the floating inputs, by their numbers. What is saved of
    the forward is a promise that the definition in float64 does not need: zeros
    without `forward`."""
    shape = case.shape
    o = numpy.zeros((shape.b, shape.h, shape.sq, shape.dv))
    lse = numpy.zeros((shape.b, shape.h, shape.sq))
    if forward:
        forward.call(case.name, stored(case, inputs), [o, lse])
    o, lse = o.astype(case.dtype()), lse.astype(numpy.float32)
    numbers = case.differentiated()
    results = [
        numpy.empty(numpy.shape(inputs[number]), dtype) for number in numbers
    ]
    program.call(case.name + "_backward", stored(case, [*inputs, o, lse, d_output, d_lse]), results)
    return dict(zip(numbers, results))


def check(case, exact, narrow, rng):
    """What is wrong, in words."""
    inputs = case.make_inputs(rng)
    shape = case.shape
    d_output = rng.standard_normal((shape.b, shape.h, shape.sq, shape.dv))
    d_output = numpy.clip(numpy.round(d_output * 32) / 32, -4, 4)  # numbers of bf16
    d_lse = numpy.round(rng.standard_normal((shape.b, shape.h, shape.sq)) * 64) / 64
    d_output, d_lse = d_output.astype(case.dtype()), d_lse.astype(numpy.float32)
    gradients = backward(case, exact, inputs, d_output, d_lse, numpy.float64)
    rounded = gradients
    if case.name in narrow.names:
        rounded = backward(case, narrow, inputs, d_output, d_lse, numpy.float32, forward=exact)
    for number, gradient in gradients.items():
        limit = 1e-6 * (1 + numpy.abs(gradient).max(initial=0))
        if not numpy.isfinite(gradient).all():
            yield f"input {number} has a gradient that is not finite"
        if not numpy.abs(gradient - rounded[number]).max(initial=0) < 30 * limit:
            yield f"input {number}: f32 is off by {numpy.abs(gradient - rounded[number]).max()}"
        indices = list(numpy.ndindex(gradient.shape))
        picked = rng.permutation(len(indices))[: case.samples]
        for index in (indices[place] for place in picked):
            wanted = difference(
                lambda moved: loss(case, exact, moved, d_output, d_lse), inputs, number, index)
            if not abs(gradient[index] - wanted) < limit:
                yield f"input {number}{list(index)}: got {gradient[index]}, wanted {wanted}"
    if case.check:
        yield from case.check(inputs, gradients)


def check_convention(convention, program, rng):
    """The slope at a point without derivative, as a ratio of two gradients."""
    case = convention.case
    inputs = case.make_inputs(rng)
    d_output = rng.standard_normal((1, 1, 1, 8)).astype(numpy.float32)
    d_lse = numpy.ones((1, 1, 1), numpy.float32)
    gradients = backward(case, program, inputs, d_output, d_lse, numpy.float64)
    first, second, dy = (gradients[number] for number in (3, 4, 5))
    for name, got, wanted in [("first", first, convention.first), ("second", second, convention.second)]:
        if not numpy.allclose(got / dy, wanted, atol=1e-6, equal_nan=True):
            yield f"by the {name}: got {got / dy}, wanted {wanted}"


def main():
    options = parse_options(__doc__)

    def chosen(name):
        return not options.only or options.only in name

    cases = [case for case in [*CASES, *narrow_inputs()] if chosen(case.name)]
    conventions = [entry for entry in CONVENTIONS if chosen(entry.case.name)]
    differentiate = "--attn-differentiate=lse-gradient=true"
    exact = Program([*cases, *(entry.case for entry in conventions)], options,
                    [differentiate, "--attn-oracle=precision=f64"], "f64")
    narrow = Program([case for case in cases if case.element == "f32" and not case.name.startswith("op_")],
                     options, [differentiate, "--attn-oracle=precision=input"], "input")
    failures = 0
    for number, case in enumerate(cases):
        for complaint in check(case, exact, narrow, numpy.random.default_rng(number)):
            print(f"{case.name}: {complaint}")
            failures += 1
    for entry in conventions:
        for complaint in check_convention(entry, exact, numpy.random.default_rng(1)):
            print(f"{entry.case.name}: {complaint}")
            failures += 1
    print(f"{len(cases) + len(conventions)} cases, {failures} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
