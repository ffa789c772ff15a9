#===----------------------------------------------------------------------===#
#
# Part of attn, an attention compiler.
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===----------------------------------------------------------------------===#
"""Arithmetic, comparisons and choices of two or three tensors, element by element."""

import math

import torch
from torch._prims_common import ELEMENTWISE_TYPE_PROMOTION_KIND as Kind
from torch._prims_common import elementwise_dtypes

from .. import halves, symbols
from ..scalars import Value, is_float
from ..symbols import Symbol
from .handlers import HANDLERS, Unsupported, as_flag, as_float, binary, convert, handles, no_flags, operand, pointwise


def _arithmetic(name, on_flags):
    def compute(w, dtype, a, b):
        if is_float(dtype):
            if not isinstance(a, Value) and not isinstance(b, Value):
                a = as_float(w, a)
            return {"add": lambda: a + b, "sub": lambda: a - b, "mul": lambda: _product(w, a, b)}[name]()
        if dtype == torch.bool:
            if on_flags is None:
                raise Unsupported("flags are not subtracted: use ^ or ~")
            return w.logic(on_flags, a, b)
        return w.integer(name, a, b, dtype)
    return compute


def _product(w, a, b):
    if not isinstance(b, Value) and b == 1:
        return a
    if not isinstance(a, Value) and a == 1:
        return b
    return a * b


add, sub, mul = (_arithmetic(*pair) for pair in (("add", "or"), ("sub", None), ("mul", "and")))


def _with_alpha(compute, flipped):
    def handler(tracer, a, b, alpha=1):
        if flipped:
            a, b = b, a
        if alpha != 1:
            if flipped:
                a = HANDLERS["mul"](tracer, a, alpha) if isinstance(a, Symbol) else a * alpha
            else:
                b = HANDLERS["mul"](tracer, b, alpha) if isinstance(b, Symbol) else b * alpha
        return pointwise(tracer, lambda dtype, x, y: compute(tracer.writer, dtype, x, y), [a, b], Kind.DEFAULT)
    return handler


def _rsub(tracer, a, b, alpha=1):
    """b - alpha a"""
    return _with_alpha(sub, False)(tracer, b, a, alpha)


handles("add")(_with_alpha(add, False))
handles("sub", "subtract")(_with_alpha(sub, False))
handles("rsub")(_rsub)
binary(["mul", "multiply"], mul)


@handles("div", "divide", "true_divide")
def _div(tracer, a, b, rounding_mode=None):
    w = tracer.writer
    if rounding_mode is None:
        return pointwise(tracer, lambda dtype, x, y: as_float(w, x) / as_float(w, y), [a, b], Kind.INT_TO_FLOAT)
    name = {"floor": "floordiv", "trunc": "truncdiv"}[rounding_mode]

    def compute(dtype, x, y):
        if is_float(dtype) and rounding_mode == "floor":
            return _quotient_and_rest(w, "floor", x, y)[0]
        if is_float(dtype):
            return w.function("math.trunc", as_float(w, x) / as_float(w, y))
        return w.divide(name, x, y, dtype)
    return pointwise(tracer, _no_flag_operands(compute), [a, b], Kind.DEFAULT, decides=True)


def _no_flag_operands(compute):
    def checked(dtype, *args):
        if dtype == torch.bool:
            raise Unsupported("this is no operation on flags")
        return compute(dtype, *args)
    return checked


@handles("floor_divide")
def _floor_divide(tracer, a, b):
    return _div(tracer, a, b, rounding_mode="floor")


def _quotient_and_rest(w, rounding, a, b):
    """Of floats, "floor" or "trunc" of a / b and what is left. The quotient of f32 may have
    been rounded up to a whole number, 0.3 / 0.1 to 3: the rest, which one fma gives
    exactly, has the wrong sign then. PyTorch takes it first, by fmod()."""
    a, b = as_float(w, a), as_float(w, b)
    quotient = w.function("math." + rounding, a / b)
    rest = w.function("math.fma", -quotient, b, a)
    signs = w.logic("xor", w.compare("lt", rest, 0.0), w.compare("lt", b if rounding == "floor" else a, 0.0))
    is_beyond = w.logic("and", signs, w.compare("ne", rest, 0.0))
    step = 1.0 if rounding == "floor" else w.function("math.copysign", 1.0, quotient)
    return (w.where(is_beyond, quotient - step, quotient, torch.float32),
            w.where(is_beyond, rest + b * step if rounding == "trunc" else rest + b, rest, torch.float32))


def _rest(name, rounding):
    def compute(w, dtype, a, b):
        if not is_float(dtype):
            return w.remainder(name, a, b, dtype)
        return _quotient_and_rest(w, rounding, a, b)[1]
    return no_flags(compute)


binary(["remainder"], _rest("floordiv", "floor"), decides=True)
binary(["fmod"], _rest("truncdiv", "trunc"), decides=True)


def _bitwise(name):
    def compute(w, dtype, a, b):
        if is_float(dtype):
            raise Unsupported("floats have no bits here: convert them, or compare")
        return w.logic(name, a, b) if dtype == torch.bool else w.integer(name, a, b, dtype)
    return compute


for _names, _word in ((("bitwise_and", "__and__"), "and"), (("bitwise_or", "__or__"), "or"),
                      (("bitwise_xor", "__xor__"), "xor")):
    binary(_names, _bitwise(_word))


def _shift(name):
    def compute(w, dtype, a, b):
        if is_float(dtype) or dtype == torch.bool:
            raise Unsupported("wanted integers to shift")
        if not isinstance(b, Value) and not 0 <= b < 64:
            raise Unsupported(f"wanted a shift by 0 to 63, got {b}")
        return w.shift(name, a, b, dtype)
    return compute


binary(["bitwise_left_shift", "__lshift__"], _shift("shl"))
binary(["bitwise_right_shift", "__rshift__"], _shift("shr"))
for _name in ("and", "or", "xor"):
    binary(["logical_" + _name],
            lambda w, dtype, a, b, name=_name: w.logic(name, as_flag(w, dtype, a), as_flag(w, dtype, b)),
            Kind.ALWAYS_BOOL)
for _short, _long in (("eq", "equal_to"), ("ne", "not_equal"), ("lt", "less"), ("le", "less_equal"),
                      ("gt", "greater"), ("ge", "greater_equal")):
    binary([_short, _long], lambda w, dtype, a, b, name=_short: w.compare(name, a, b), Kind.ALWAYS_BOOL)


def extreme(name):
    def compute(w, dtype, a, b):
        if is_float(dtype):
            return w.float_extreme(name, a, b)
        if dtype == torch.bool:
            return w.logic("or" if name == "maximum" else "and", a, b)
        return w.integer(name, a, b, dtype)
    return compute


binary(["maximum"], extreme("maximum"), rounds=False)
binary(["minimum"], extreme("minimum"), rounds=False)
for _name, _long in (("fmax", "maximum"), ("fmin", "minimum")):
    binary([_name], lambda w, dtype, a, b, name=_long: w.function(
        "arith.maxnumf" if name == "maximum" else "arith.minnumf", a, b) if is_float(dtype)
        else extreme(name)(w, dtype, a, b))
binary(["atan2", "arctan2"], lambda w, dtype, a, b: w.function("math.atan2", a, b), Kind.INT_TO_FLOAT)
binary(["copysign"], lambda w, dtype, a, b: w.function("math.copysign", a, b), Kind.INT_TO_FLOAT)
binary(["hypot"], lambda w, dtype, a, b: w.function(
    "math.sqrt", as_float(w, a) * as_float(w, a) + as_float(w, b) * as_float(w, b)))


@handles("logaddexp")
def _logaddexp(tracer, a, b):
    w = tracer.writer

    def compute(dtype, x, y):
        x, y = as_float(w, x), as_float(w, y)
        # Of equal ones, which may be infinite, each has half of the gradient.
        difference = w.where(w.compare("eq", x, y), 0.0, x - y, torch.float32)
        return w.float_extreme("maximum", x, y) + w.function("math.log1p", w.function("math.exp", -abs(difference)))
    return pointwise(tracer, compute, [a, b], Kind.DEFAULT)


@handles("pow")
def _pow(tracer, base, exponent):
    w = tracer.writer

    def compute(dtype, x, y):
        if is_float(dtype):
            return w.power(x, exponent if not isinstance(exponent, Symbol) else y)
        return w.integer_power(x, y, dtype)
    return pointwise(tracer, _no_flag_operands(compute), [base, exponent], Kind.BOOL_TO_LONG)


# More operands

@handles("where")
def _where(tracer, condition, a=None, b=None):
    if a is None:
        raise Unsupported("where() with one argument has results of a size that is not known")
    if condition.dtype != torch.bool:
        raise Unsupported(f"where() wants a condition of flags, got {condition.dtype}")
    result = elementwise_dtypes(halves.stand_in(a), halves.stand_in(b), type_promotion_kind=Kind.NO_OPMATH)[1]
    if result == torch.float64:
        raise Unsupported("this is float64, and scores are float32")
    shape = torch.broadcast_shapes(condition.shape, *(x.shape for x in (a, b) if isinstance(x, Symbol)))
    choose = symbols.broadcast(condition, shape)
    first, second = (operand(tracer, x, result, shape) for x in (a, b))
    types = [x.dtype if isinstance(x, Symbol) else None for x in (a, b)]
    kind, w = torch.float32 if is_float(result) else result, tracer.writer

    def load(index):
        chosen, given = choose(index), [first(index), second(index)]
        if result in halves.HALVES:
            given = [halves.rounded(w, x, result) if type is None else x for x, type in zip(given, types)]
        return halves.applied(w, lambda both: w.where(chosen, *both, kind), given, types, result, result, rounds=False)
    return Symbol(tracer, shape, result, load)


@handles("masked_fill")
def _masked_fill(tracer, x, mask, value):
    return convert(tracer, _where(tracer, mask, value, x), x.dtype)


@handles("clamp", "clip")
def _clamp(tracer, x, min=None, max=None):
    """At a number x has no gradient, of two equal tensors each has half of it."""
    for bound, name, side in ((min, "maximum", "low"), (max, "minimum", "high")):
        if isinstance(bound, Symbol):
            x = HANDLERS[name](tracer, x, bound)
        elif bound is not None:
            x = pointwise(tracer, _bounded(tracer.writer, name, side), [x, bound], Kind.DEFAULT)
    return x


def _bounded(w, name, side):
    def compute(dtype, x, bound):
        return w.bounded(x, **{side: bound}) if is_float(dtype) else extreme(name)(w, dtype, x, bound)
    return compute


handles("clamp_min")(lambda tracer, x, low: _clamp(tracer, x, low))
handles("clamp_max")(lambda tracer, x, high: _clamp(tracer, x, None, high))
handles("hardtanh")(lambda tracer, x, low=-1.0, high=1.0: _clamp(tracer, x, low, high))
handles("relu6")(lambda tracer, x: _clamp(tracer, x, 0, 6))


@handles("lerp")
def _lerp(tracer, start, end, weight):
    difference = HANDLERS["sub"](tracer, end, start)
    return HANDLERS["add"](tracer, start, HANDLERS["mul"](tracer, difference, weight))


@handles("addcmul")
def _addcmul(tracer, x, a, b, value=1):
    return HANDLERS["add"](tracer, x, HANDLERS["mul"](tracer, a, b), alpha=value)


@handles("addcdiv")
def _addcdiv(tracer, x, a, b, value=1):
    return HANDLERS["add"](tracer, x, _div(tracer, a, b), alpha=value)


@handles("xlogy")
def _xlogy(tracer, a, b):
    w = tracer.writer

    def compute(dtype, x, y):
        # 0 where the logarithm is finite is 0 without being told, and has a gradient.
        is_finite = w.logic("and", w.compare("gt", y, 0.0), w.compare("lt", y, math.inf))
        nothing = w.logic("and", w.compare("eq", x, 0.0), w.logic("and", w.negate(is_finite), w.compare("eq", y, y)))
        logarithm = w.function("math.log", w.where(nothing, 1.0, y, torch.float32))
        return w.where(nothing, 0.0, as_float(w, x) * logarithm, torch.float32)
    return pointwise(tracer, compute, [a, b], Kind.INT_TO_FLOAT)
