#===----------------------------------------------------------------------===#
#
# Part of attn, an attention compiler.
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===----------------------------------------------------------------------===#
"""Activations of torch.nn.functional as scalar code.

Each is a function of a Lines and a scalar, and of what else PyTorch's function gets. Lines
are differentiated one by one, so what is not chosen must be finite, and a number of two
branches is of the one that PyTorch takes: 0, the score of queries or keys of zeros, is one.
"""

import math


class Lines:
    """Arithmetic in a type of floats, written into a Body."""

    def __init__(self, body, dtype, kind):
        self.body, self.dtype, self.kind = body, dtype, kind

    def _scalar(self, given):
        return self.body.number(given, self.dtype) if isinstance(given, (int, float)) else given

    def two(self, how, a, b):
        return self.body._binary(how, self._scalar(a), self._scalar(b), self.dtype)

    def one(self, how, a):
        return self.body._made(self.body.emit(f"{how} {a.name} : {self.kind}"), self.dtype, a)._replace(is_made=True)

    def where(self, how, a, b, first, second):
        """first where `a how b`, which a NaN is not; else second."""
        a, b, first, second = map(self._scalar, (a, b, first, second))
        flag = self.body.emit(f"arith.cmpf {how}, {a.name}, {b.name} : {self.kind}")
        name = self.body.emit(f"arith.select {flag}, {first.name}, {second.name} : {self.kind}")
        return self.body._made(name, self.dtype, a, first, second)


def _decay(lines, x):
    """exp(-|x|), which never overflows; at 0 its slope is that of exp(-x)."""
    return lines.one("math.exp", lines.where("olt", x, 0, x, lines.two("sub", 0, x)))


_LARGEST = 3.4028234663852886e38  # of f32


def itself(lines, x):
    """A number, so that a choice of it and a bound is none of the maximum that it is otherwise: that
    shares its slope out where both are one."""
    return lines.two("minimum", x, _LARGEST)


def relu(lines, x):
    """At 0 the slope is 0; a NaN stays one."""
    return lines.where("ole", x, 0, 0, itself(lines, x))


def clamp(lines, x, low=None, high=None):
    """At the bounds, which are numbers, the slope is 0; a NaN stays one."""
    result = itself(lines, x)
    for bound, how in ((low, "ole"), (high, "oge")):
        result = lines.where(how, x, bound, bound, result) if bound is not None else result
    return lines.two("minimum", result, high) if low is not None and high is not None and low > high else result


def sigmoid(lines, x):
    e = _decay(lines, x)
    return lines.two("div", lines.where("olt", x, 0, e, 1), lines.two("add", e, 1))


def silu(lines, x):
    return lines.two("mul", x, sigmoid(lines, x))


def gelu(lines, x, approximate="none"):
    if approximate == "tanh":
        cube = lines.two("mul", lines.two("mul", x, x), x)
        inner = lines.two("add", x, lines.two("mul", cube, 0.044715))
        inner = lines.one("math.tanh", lines.two("mul", inner, math.sqrt(2 / math.pi)))
    else:
        inner = lines.one("math.erf", lines.two("mul", x, math.sqrt(0.5)))
    return lines.two("mul", lines.two("mul", x, 0.5), lines.two("add", inner, 1))


def leaky_relu(lines, x, negative_slope=0.01):
    return lines.where("ogt", x, 0, x, lines.two("mul", x, negative_slope))


def elu(lines, x, alpha=1.0):
    e = lines.one("math.exp", lines.where("ogt", x, 0, lines.two("sub", 0, x), x))
    return lines.where("ogt", x, 0, x, lines.two("mul", lines.two("sub", e, 1), alpha))


def softplus(lines, x, beta=1, threshold=20):
    scaled = x if beta == 1 else lines.two("mul", x, beta)
    e = lines.one("math.exp", lines.where("ogt", scaled, threshold, 0, scaled))
    small = lines.one("math.log1p", e)
    return lines.where("ogt", scaled, threshold, x, small if beta == 1 else lines.two("div", small, beta))


def logsigmoid(lines, x):
    """min(x, 0) - log(1 + exp(-|x|))"""
    rest = lines.one("math.log1p", _decay(lines, x))
    return lines.where("olt", x, 0, lines.two("sub", x, rest), lines.two("sub", 0, rest))


def hardtanh(lines, x, min_val=-1.0, max_val=1.0):
    """At the lower bound, which may be 0, the slope is 0; a NaN stays one."""
    return lines.where("ole", x, min_val, min_val, lines.two("minimum", x, max_val))


def relu6(lines, x):
    return hardtanh(lines, x, 0, 6)


def softsign(lines, x):
    return lines.two("div", x, lines.two("add", lines.one("math.absf", x), 1))


def sign(lines, x):
    return lines.where("ogt", x, 0, 1, lines.where("olt", x, 0, -1, 0))


def hardsigmoid(lines, x):
    middle = lines.two("add", lines.two("mul", x, 1 / 6), 0.5)
    return lines.where("ole", x, -3, 0, lines.where("oge", x, 3, 1, middle))


def hardswish(lines, x):
    return lines.two("mul", x, hardsigmoid(lines, x))


def mish(lines, x):
    return lines.two("mul", x, lines.one("math.tanh", softplus(lines, x)))


def celu(lines, x, alpha=1.0):
    return elu(lines, x) if alpha == 1 else lines.two("mul", elu(lines, lines.two("div", x, alpha)), alpha)


def selu(lines, x):
    return lines.two("mul", elu(lines, x, 1.6732632423543772), 1.0507009873554805)


def tanhshrink(lines, x):
    return lines.two("sub", x, lines.one("math.tanh", x))


def softshrink(lines, x, lambd=0.5):
    """In between it is 0, or the NaN that it is."""
    below = lines.where("olt", x, -lambd, lines.two("add", x, lambd), lines.two("mul", x, 0))
    return lines.where("ogt", x, lambd, lines.two("sub", x, lambd), below)


def hardshrink(lines, x, lambd=0.5):
    return lines.where("ole", lines.one("math.absf", x), lambd, 0, x)


def threshold(lines, x, threshold, value):
    return lines.where("ole", x, threshold, value, x)


def reciprocal(lines, x):
    return lines.two("div", 1, x)


def trunc(lines, x):
    return lines.where("olt", x, 0, lines.one("math.ceil", x), lines.one("math.floor", x))


def frac(lines, x):
    return lines.two("sub", x, trunc(lines, x))


def round(lines, x):
    """Halves go to what is even."""
    low = lines.one("math.floor", x)
    high, rest = lines.two("add", low, 1), lines.two("sub", x, low)
    even = lines.two("mul", lines.one("math.floor", lines.two("mul", low, 0.5)), 2)
    half = lines.where("oeq", even, low, low, high)
    return lines.where("ogt", rest, 0.5, high, lines.where("olt", rest, 0.5, low, half))


def expm1(lines, x):
    """exp(x) - 1; near 0 by t = tanh(x / 2), of which it is 2 t / (1 - t)."""
    size = lines.one("math.absf", x)
    t = lines.one("math.tanh", lines.two("mul", lines.where("olt", size, 0.5, x, 0), 0.5))
    near = lines.two("div", lines.two("mul", t, 2), lines.two("sub", 1, t))
    return lines.where("olt", size, 0.5, near, lines.two("sub", lines.one("math.exp", x), 1))


def erfc(lines, x):
    return lines.two("sub", 1, lines.one("math.erf", x))


def log10(lines, x):
    return lines.two("mul", lines.one("math.log", x), math.log10(math.e))


def tan(lines, x):
    return lines.two("div", lines.one("math.sin", x), lines.one("math.cos", x))


def _sides(lines, x, how):
    negative = lines.one("math.exp", lines.two("sub", 0, x))
    return lines.two("mul", lines.two(how, lines.one("math.exp", x), negative), 0.5)


def sinh(lines, x):
    return _sides(lines, x, "sub")


def cosh(lines, x):
    return _sides(lines, x, "add")


def logit(lines, x):
    return lines.one("math.log", lines.two("div", x, lines.two("sub", 1, x)))


# Of two.


def logaddexp(lines, a, b):
    """The larger one + log(1 + exp(-distance)); where they are one, both have half of the slope."""
    first, second = (lines.two("sub", x, logsigmoid(lines, lines.two("sub", x, y))) for x, y in ((a, b), (b, a)))
    return lines.where("ogt", a, b, first, second)


def prelu(lines, x, slope):
    return lines.where("ogt", x, 0, x, lines.two("mul", x, slope))


def remainder(lines, x, divisor):
    """In [0, divisor), also where the quotient is rounded."""
    rest = lines.two("sub", x, lines.two("mul", lines.one("math.floor", lines.two("div", x, divisor)), divisor))
    rest = lines.where("olt", rest, 0, lines.two("add", rest, divisor), rest)
    return lines.where("oge", rest, divisor, lines.two("sub", rest, divisor), rest)


def fmod(lines, x, divisor):
    """The remainder of |x|, with the sign of x."""
    rest = remainder(lines, lines.where("olt", x, 0, lines.two("sub", 0, x), x), divisor)
    return lines.where("olt", x, 0, lines.two("sub", 0, rest), rest)


# The functions, with the names and places of what else they get.
READ = {
    "sigmoid": (sigmoid, ()), "silu": (silu, ()), "gelu": (gelu, (("approximate", 1),)),
    "leaky_relu": (leaky_relu, (("negative_slope", 1),)), "elu": (elu, (("alpha", 1),)),
    "softplus": (softplus, (("beta", 1), ("threshold", 2))), "logsigmoid": (logsigmoid, ()),
    "hardtanh": (hardtanh, (("min_val", 1), ("max_val", 2))), "relu6": (relu6, ()),
    "softsign": (softsign, ()), "sign": (sign, ()), "hardsigmoid": (hardsigmoid, ()), "hardswish": (hardswish, ()),
    "mish": (mish, ()), "celu": (celu, (("alpha", 1),)), "selu": (selu, ()), "tanhshrink": (tanhshrink, ()),
    "softshrink": (softshrink, (("lambd", 1),)), "hardshrink": (hardshrink, (("lambd", 1),)),
    "threshold": (threshold, (("threshold", 1), ("value", 2))), "reciprocal": (reciprocal, ()), "frac": (frac, ()),
    "trunc": (trunc, ()), "round": (round, ()), "expm1": (expm1, ()), "erfc": (erfc, ()), "log10": (log10, ()),
    "tan": (tan, ()), "sinh": (sinh, ()), "cosh": (cosh, ()), "logit": (logit, ()),
}
READ_OF_TWO = {"logaddexp": logaddexp}
BY_A_NUMBER = {"remainder": remainder, "fmod": fmod}  # that is positive
