#===----------------------------------------------------------------------===#
#
# Part of attn, an attention compiler.
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===----------------------------------------------------------------------===#
"""Tangents of the definition against differences of the forward, in float64, and
those of the kernel against the definition.

The cases are those of gradients. Queries, keys and values move by -1, 0 or 1
times steps of powers of two, which change no other bit of them; three central
differences are extrapolated to an error of the sixth power of the step. The
kernel has blocks so small that there are several of each.
"""

import sys

import numpy
from definition import Program, parse_options
from gradient_cases import CASES, narrow_inputs
from gradients import STEPS, stored

PLAN = "#attn.plan<target=cpu,block_q=2,block_k=2>"


def results_of(case, count):
    shape = case.shape
    rows = (shape.b, shape.h, shape.sq)
    return [numpy.empty((*rows, shape.dv) if number % 2 == 0 else rows) for number in range(count)]


def difference(case, program, inputs, tangents):
    """What o and lse change by, along the tangents."""

    def at(step):
        moved = list(inputs)
        for number, tangent in enumerate(tangents):
            moved[number] = (inputs[number] + step * tangent).astype(inputs[number].dtype)
        results = results_of(case, 2)
        program.call(case.name, stored(case, moved), results)
        return results

    with numpy.errstate(invalid="ignore"):  # -inf less -inf
        d = [[(high - low) / (2 * h) for high, low in zip(at(h), at(-h))] for h in STEPS]
    second = [[(4 * b - a) / 3 for a, b in zip(d[i], d[i + 1])] for i in range(2)]
    return [(16 * b - a) / 15 for a, b in zip(*second)]


def check(case, exact, others, rng):
    """What is wrong, in words."""
    inputs = case.make_inputs(rng)
    tangents = [rng.integers(-1, 2, value.shape).astype(case.dtype()) for value in inputs[:3]]
    forward, got = results_of(case, 2), results_of(case, 4)
    exact.call(case.name, stored(case, inputs), forward)
    exact.call(case.name + "_jvp", stored(case, [*inputs, *tangents]), got)
    for name, value, wanted in zip(["o", "lse"], got, forward):
        if not numpy.array_equal(value, wanted, equal_nan=True):
            yield f"{name} is not that of the forward"
    empty = numpy.isneginf(forward[1])
    if (got[2][empty] != 0).any() or (got[3][empty] != 0).any():
        yield "a row without keys has a tangent"
    wanted = difference(case, exact, inputs, tangents)
    wanted[1][empty] = 0
    for name, value, limit_of in zip(["t_o", "t_lse"], got[2:], wanted):
        limit = 1e-6 * (1 + numpy.abs(limit_of).max(initial=0))
        if not numpy.abs(value - limit_of).max(initial=0) < limit:
            yield f"{name} is off by {numpy.abs(value - limit_of).max()}"
    for which, other in others.items():
        if case.name not in other.names:
            continue
        rounded = [numpy.empty(value.shape, numpy.float32) for value in got]
        other.call(case.name + "_jvp", stored(case, [*inputs, *tangents]), rounded)
        if not numpy.array_equal(numpy.isneginf(rounded[1]), empty):
            yield f"{which}: lse has other rows without keys"
        got[1][empty] = rounded[1][empty] = 0
        for name, value, plain in zip(["o", "lse", "t_o", "t_lse"], got, rounded):
            limit = 3e-6 * (1 + numpy.abs(value).max(initial=0))
            if not numpy.abs(value - plain).max(initial=0) < limit:
                yield f"{which}: {name} is off by {numpy.abs(value - plain).max()}"


def main():
    options = parse_options(__doc__)
    cases = [case for case in [*CASES, *narrow_inputs()] if not options.only or options.only in case.name]
    differentiate = "--attn-differentiate=mode=jvp"
    exact = Program(cases, options, [differentiate, "--attn-oracle=precision=f64"], "f64")
    parts = [case for case in cases if case.element == "f32" and not case.name.startswith("op_")]
    others = {
        "f32": Program(parts, options, [differentiate, "--attn-oracle=precision=input"], "input"),
        "kernel": Program(parts, options, [differentiate, f"--attn-cpu=plan={PLAN}"], "kernel"),
    }
    failures = 0
    for number, case in enumerate(cases):
        for complaint in check(case, exact, others, numpy.random.default_rng(number)):
            print(f"{case.name}: {complaint}")
            failures += 1
    print(f"{len(cases)} cases, {failures} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
