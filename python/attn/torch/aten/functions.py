#===----------------------------------------------------------------------===#
#
# Part of attn, an attention compiler.
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===----------------------------------------------------------------------===#
"""Functions of one tensor, element by element."""

import math

import torch
from torch._prims_common import ELEMENTWISE_TYPE_PROMOTION_KIND as Kind

from .. import halves, symbols
from ..scalars import is_float
from .handlers import HANDLERS, Unsupported, as_flag, as_float, handles, no_flags, pointwise, stopped, unary


def _function(name):
    return lambda w, dtype, a: w.function(name, a)


for _name in ("exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sqrt", "rsqrt", "sin", "cos",
              "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh", "asinh", "acosh", "atanh", "erf",
              "erfc"):
    unary([_name], _function("math." + _name))
unary(["special_erfc"], _function("math.erfc"))


# Operations are differentiated one by one: what overflows, and what is not chosen, has to
# be finite, or 0 times infinity is the gradient.
_LARGEST = 88.0  # of which exp is finite


def _sigmoid(w, a):
    return 1.0 / (w.function("math.exp", w.bounded(-as_float(w, a), high=_LARGEST)) + 1.0)


def _logistic_log(w, a):
    """log(sigmoid(a)), without overflow."""
    a = as_float(w, a)
    small = w.function("math.log1p", w.function("math.exp", -abs(a)))
    return w.float_extreme("minimum", a, 0.0) - small


def _softplus_value(w, a):
    a = as_float(w, a)
    return w.float_extreme("maximum", a, 0.0) + w.function("math.log1p", w.function("math.exp", -abs(a)))


unary(["sigmoid"], lambda w, dtype, a: _sigmoid(w, a))
unary(["silu"], lambda w, dtype, a: as_float(w, a) * _sigmoid(w, a), Kind.DEFAULT)
unary(["mish"], lambda w, dtype, a: as_float(w, a) * w.function("math.tanh", _softplus_value(w, a)), Kind.DEFAULT)
unary(["log_sigmoid"], lambda w, dtype, a: _logistic_log(w, a), Kind.DEFAULT)
unary(["reciprocal"], lambda w, dtype, a: 1.0 / as_float(w, a))
unary(["deg2rad"], lambda w, dtype, a: as_float(w, a) * (math.pi / 180))
unary(["rad2deg"], lambda w, dtype, a: as_float(w, a) * (180 / math.pi))


@handles("log_sigmoid_forward")
def _log_sigmoid_forward(tracer, x):
    result = HANDLERS["log_sigmoid"](tracer, x)
    return result, result


def _integer_or_float(on_integer, on_float):
    def compute(w, dtype, a):
        return on_float(w, as_float(w, a)) if is_float(dtype) else on_integer(w, dtype, a)
    return compute


def _same(w, dtype, a):
    return a


unary(["abs", "absolute"], _integer_or_float(
    lambda w, dtype, a: a if dtype == torch.bool else w.absolute(a, dtype), lambda w, a: abs(a)), Kind.DEFAULT, rounds=False)
unary(["neg", "negative"], _integer_or_float(
    no_flags(lambda w, dtype, a: w.integer("sub", 0, a, dtype)), lambda w, a: -a), Kind.DEFAULT, rounds=False)
for _names, _math in ((("floor",), "floor"), (("ceil",), "ceil"), (("trunc", "fix"), "trunc")):
    unary(_names, _integer_or_float(_same, lambda w, a, name=_math: w.function("math." + name, a)),
           Kind.DEFAULT, decides=True, rounds=False)


@handles("round")
def _round(tracer, x, decimals=0):
    def compute(dtype, a):
        if not is_float(dtype):
            if decimals:
                raise Unsupported("integers are not rounded to decimals: make them floats")
            return a
        w, power = tracer.writer, 10.0 ** abs(decimals)
        a = as_float(w, a)
        if decimals > 0:
            return w.function("math.roundeven", a * power) / power
        return w.function("math.roundeven", a / power) * power if decimals else w.function("math.roundeven", a)
    return pointwise(tracer, compute, [x], Kind.DEFAULT, decides=True, rounds=decimals != 0)


unary(["frac"], lambda w, dtype, a: as_float(w, a) - w.function("math.trunc", a), Kind.DEFAULT, decides=True)
unary(["square"], _integer_or_float(
    lambda w, dtype, a: w.integer("mul", a, a, dtype), lambda w, a: a * a), Kind.DEFAULT)
unary(["positive", "clone", "alias", "lift_fresh", "lift", "contiguous", "alias_copy", "view_of"], _same,
       Kind.NO_OPMATH, rounds=False)


@handles("detach")
def _detach(tracer, x):
    """It shares its memory with x."""
    return symbols.stopped(x)


handles("detach_copy")(stopped)


def _sign_of_float(w, a):
    positive, negative = w.compare("gt", a, 0.0), w.compare("lt", a, 0.0)
    return w.where(positive, 1.0, w.where(negative, -1.0, 0.0, torch.float32), torch.float32)


unary(["sign", "sgn"], _integer_or_float(
    lambda w, dtype, a: a if dtype == torch.bool else w.integer(
        "minimum", w.integer("maximum", a, -1, dtype), 1, dtype), _sign_of_float), Kind.DEFAULT, decides=True, rounds=False)
unary(["relu"], _integer_or_float(
    lambda w, dtype, a: w.integer("maximum", a, 0, dtype),
    lambda w, a: w.bounded(a, 0.0)), Kind.DEFAULT)
unary(["logical_not"], lambda w, dtype, a: w.negate(as_flag(w, dtype, a)), Kind.ALWAYS_BOOL)
unary(["bitwise_not"], lambda w, dtype, a: w.negate(a) if dtype == torch.bool else
       w.integer("xor", a, -1, dtype), Kind.DEFAULT)


def _is(name):
    def compute(w, dtype, a):
        if not is_float(dtype):
            return name == "isfinite"
        a = as_float(w, a)
        return w.add(f"math.{name} {a.name} : f32", "i1")
    return compute


for _name in ("isnan", "isinf", "isfinite"):
    unary([_name], _is(_name), Kind.ALWAYS_BOOL)


def _float_rule(compute):
    """A handler of one tensor and numbers, on floats."""
    def handler(tracer, x, *numbers, **named):
        return pointwise(tracer, lambda dtype, a: compute(tracer.writer, as_float(tracer.writer, a), *numbers, **named),
                         [x], Kind.INT_TO_FLOAT)
    return handler


@handles("softplus")
@_float_rule
def _softplus(w, a, beta=1, threshold=20):
    scaled = a * float(beta)
    is_large = w.compare("gt", scaled, float(threshold))
    small = w.function("math.log1p", w.function("math.exp", w.where(is_large, 0.0, scaled, torch.float32)))
    return w.where(is_large, a, small / float(beta), torch.float32)


@handles("gelu")
@_float_rule
def _gelu(w, a, approximate="none"):
    if approximate == "tanh":
        inner = (a + a * a * a * 0.044715) * math.sqrt(2 / math.pi)
        return a * 0.5 * (w.function("math.tanh", inner) + 1.0)
    return a * 0.5 * (w.function("math.erf", a * math.sqrt(0.5)) + 1.0)


@handles("leaky_relu")
@_float_rule
def _leaky_relu(w, a, slope=0.01):
    return w.where(w.compare("gt", a, 0.0), a, a * float(slope), torch.float32)


@handles("elu")
@_float_rule
def _elu(w, a, alpha=1, scale=1, input_scale=1):
    is_above = w.compare("gt", a, 0.0)
    low = w.where(is_above, 0.0, a * float(input_scale), torch.float32)
    low = w.function("math.expm1", low) * (float(alpha) * float(scale))
    return w.where(is_above, a * float(scale), low, torch.float32)


@handles("celu")
@_float_rule
def _celu(w, a, alpha=1.0):
    is_above = w.compare("gt", a, 0.0)
    low = w.function("math.expm1", w.where(is_above, 0.0, a / float(alpha), torch.float32)) * float(alpha)
    return w.where(is_above, a, low, torch.float32)


@handles("hardsigmoid")
@_float_rule
def _hardsigmoid(w, a):
    return _hardsigmoid_value(w, a)


@handles("hardswish")
@_float_rule
def _hardswish(w, a):
    return a * _hardsigmoid_value(w, a)


def _hardsigmoid_value(w, a):
    return w.bounded(a + 3.0, 0.0, 6.0) / 6.0


@handles("logit")
@_float_rule
def _logit(w, a, eps=None):
    if eps is not None:
        a = w.clamped(a, float(eps), 1.0 - float(eps))  # here a bound has the gradient
    return w.function("math.log", a / (1.0 - a))


@handles("threshold")
def _threshold(tracer, x, threshold, value):
    w = tracer.writer

    def compute(dtype, a):
        limit, other = (w.cast(number, None, dtype) for number in (threshold, value))
        return w.where(w.compare("le", a, limit), other, a, dtype)
    return pointwise(tracer, compute, [x], Kind.NO_OPMATH, decides=True)


@handles("sinc")
@_float_rule
def _sinc(w, a):
    """1 at 0, where the slope is 0."""
    angle, is_zero = a * math.pi, w.compare("eq", a, 0.0)
    angle = w.where(is_zero, 1.0, angle, torch.float32)
    return w.where(is_zero, 1.0, w.function("math.sin", angle) / angle, torch.float32)


@handles("nan_to_num")
def _nan_to_num(tracer, x, nan=None, posinf=None, neginf=None):
    if not is_float(x.dtype):
        return x
    w, largest = tracer.writer, torch.finfo(x.dtype).max

    def compute(dtype, a):
        a = w.where(w.compare("ne", a, a), 0.0 if nan is None else float(nan), a, torch.float32)
        a = w.where(w.compare("eq", a, math.inf), largest if posinf is None else float(posinf), a, torch.float32)
        return w.where(w.compare("eq", a, -math.inf), -largest if neginf is None else float(neginf), a,
                       torch.float32)
    return pointwise(tracer, compute, [x], Kind.DEFAULT)


handles("tanh_approx")(HANDLERS["tanh"])
