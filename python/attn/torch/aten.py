#===----------------------------------------------------------------------===#
#
# Part of attn, an attention compiler.
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===----------------------------------------------------------------------===#
"""What the operations of ATen are in a region.

PyTorch's own dispatcher brings every spelling, a + b, torch.add, Tensor.add_, here as
one of a few hundred operations; handlers below know those that a score or a mask has
use for. A handler gets the tracer, Symbols where PyTorch had tensors, and the
arguments; it returns a Symbol.
"""

import math

import torch
from torch._prims_common import ELEMENTWISE_TYPE_PROMOTION_KIND as Kind
from torch._prims_common import elementwise_dtypes

from . import symbols
from .scalars import LIMITS, Value, is_float
from .symbols import Symbol

_HANDLERS = {}


class Unsupported(Exception):
    """What the region cannot say; trace.py adds who asked for it."""


def handles(*names):
    def register(function):
        for name in names:
            _HANDLERS[name] = function
        return function
    return register


def _tracer(args):
    for arg in args:
        if isinstance(arg, Symbol):
            return arg.tracer
        if isinstance(arg, (list, tuple)):
            found = _tracer(arg)
            if found is not None:
                return found
    return None


def _lifted(tracer, arg):
    if isinstance(arg, torch.Tensor):
        return tracer.lift(arg)
    if isinstance(arg, (list, tuple)):
        return type(arg)(_lifted(tracer, item) for item in arg)
    return arg


def dispatch(function, args, kwargs):
    """`function` of ATen on arguments of which one is a Symbol."""
    tracer = _tracer([*args, *kwargs.values()])
    namespace, name = function._schema.name.split("::")
    with tracer.reporting(f"{namespace}.{name}"):
        in_place = name.endswith("_") and not name.endswith("__") and name[:-1] in _HANDLERS
        handler = _HANDLERS.get(name[:-1] if in_place else name)
        if handler is None or namespace not in ("aten", "prims", "approx"):
            return _decomposed(function, args, kwargs)
        out = kwargs.pop("out", None)
        result = handler(tracer, *_lifted(tracer, list(args)),
                         **{key: _lifted(tracer, value) for key, value in kwargs.items()})
        target = args[0] if in_place else out
        return result if target is None else _assigned(tracer, target, result)


def _assigned(tracer, target, result):
    if not isinstance(target, Symbol):
        raise Unsupported("a captured tensor cannot be written to")
    result = convert(tracer, result, target.dtype)
    target.assign(symbols.broadcast(result, target.shape))
    return target


def _decomposed(function, args, kwargs):
    table = torch._decomp.decomposition_table
    if function in table:
        return table[function](*args, **kwargs)
    result = function.decompose(*args, **kwargs)
    if result is NotImplemented:
        raise Unsupported("no kernel can hold this operation")
    return result


# Elements

def pointwise(tracer, compute, operands, kind, dtype=None):
    """compute(dtype, *scalars) for all elements of the operands, which become
    the type that `kind` of promotion gives."""
    used, result = elementwise_dtypes(*operands, type_promotion_kind=kind)
    result = result if dtype is None else dtype
    if torch.float64 in (used, result):
        raise Unsupported("this is float64, and scores are float32")
    if used.is_complex or result.is_complex:
        raise Unsupported("there are no complex numbers in a kernel")
    shapes = [x.shape for x in operands if isinstance(x, Symbol)]
    shape = torch.broadcast_shapes(*shapes)
    loads = [_operand(tracer, x, used, shape) for x in operands]
    return Symbol(tracer, shape, result, lambda index: compute(used, *(load(index) for load in loads)))


def _operand(tracer, x, dtype, shape):
    writer = tracer.writer
    if not isinstance(x, Symbol):
        number = writer.cast(x, None, dtype)
        return lambda index: number
    load = symbols.broadcast(x, shape)
    # Halves are f32 between operations; only explicit conversions round.
    target = torch.float32 if is_float(dtype) else dtype
    source = torch.float32 if is_float(x.dtype) else x.dtype

    def converted(index):
        element = load(index)
        # A captured scalar stays one where nothing has to be converted.
        return element if source == target else writer.cast(element, source, target)
    return converted


def convert(tracer, x, dtype):
    """x.to(dtype)."""
    if dtype is None or dtype == x.dtype:
        return x
    if dtype == torch.float64:
        raise Unsupported("this is float64, and scores are float32")
    if not (is_float(dtype) or dtype in LIMITS):
        raise Unsupported(f"there is no {dtype} in a kernel")
    load = symbols.broadcast(x, x.shape)
    return Symbol(tracer, x.shape, dtype, lambda index: tracer.writer.cast(load(index), x.dtype, dtype))


def _unary(names, compute, kind=Kind.INT_TO_FLOAT):
    def handler(tracer, x, **_):
        return pointwise(tracer, lambda dtype, a: compute(tracer.writer, dtype, a), [x], kind)
    handles(*names)(handler)


def _function(name):
    return lambda w, dtype, a: w.function(name, a)


for _name in ("exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sqrt", "rsqrt", "sin", "cos",
              "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh", "asinh", "acosh", "atanh", "erf",
              "erfc"):
    _unary([_name], _function("math." + _name))
_unary(["special_erfc"], _function("math.erfc"))


def _f(w, a):
    return w.typed(a, "f32")


def _sigmoid(w, a):
    return 1.0 / (w.function("math.exp", -_f(w, a)) + 1.0)


def _logistic_log(w, a):
    """log(sigmoid(a)), without overflow."""
    a = _f(w, a)
    small = w.function("math.log1p", w.function("math.exp", -abs(a)))
    return w.float_extreme("minimum", a, 0.0) - small


def _softplus_value(w, a):
    a = _f(w, a)
    return w.float_extreme("maximum", a, 0.0) + w.function("math.log1p", w.function("math.exp", -abs(a)))


_unary(["sigmoid"], lambda w, dtype, a: _sigmoid(w, a))
_unary(["silu"], lambda w, dtype, a: _f(w, a) * _sigmoid(w, a), Kind.DEFAULT)
_unary(["mish"], lambda w, dtype, a: _f(w, a) * w.function("math.tanh", _softplus_value(w, a)), Kind.DEFAULT)
_unary(["log_sigmoid"], lambda w, dtype, a: _logistic_log(w, a), Kind.DEFAULT)
_unary(["reciprocal"], lambda w, dtype, a: 1.0 / _f(w, a))
_unary(["deg2rad"], lambda w, dtype, a: _f(w, a) * (math.pi / 180))
_unary(["rad2deg"], lambda w, dtype, a: _f(w, a) * (180 / math.pi))


@handles("log_sigmoid_forward")
def _log_sigmoid_forward(tracer, x):
    result = _HANDLERS["log_sigmoid"](tracer, x)
    return result, result


def _integer_or_float(on_integer, on_float):
    def compute(w, dtype, a):
        return on_float(w, _f(w, a)) if is_float(dtype) else on_integer(w, dtype, a)
    return compute


def _same(w, dtype, a):
    return a


def _no_flags(function):
    def checked(w, dtype, *args):
        if dtype == torch.bool:
            raise Unsupported("this is no operation on flags")
        return function(w, dtype, *args)
    return checked


_unary(["abs", "absolute"], _integer_or_float(
    lambda w, dtype, a: a if dtype == torch.bool else w.absolute(a, dtype), lambda w, a: abs(a)), Kind.DEFAULT)
_unary(["neg", "negative"], _integer_or_float(
    _no_flags(lambda w, dtype, a: w.integer("sub", 0, a, dtype)), lambda w, a: -a), Kind.DEFAULT)
for _names, _math in ((("floor",), "floor"), (("ceil",), "ceil"), (("trunc", "fix"), "trunc"),
                      (("round",), "roundeven")):
    _unary(_names, _integer_or_float(_same, lambda w, a, name=_math: w.function("math." + name, a)),
           Kind.DEFAULT)
_unary(["frac"], lambda w, dtype, a: _f(w, a) - w.function("math.trunc", a), Kind.DEFAULT)
_unary(["square"], _integer_or_float(
    lambda w, dtype, a: w.integer("mul", a, a, dtype), lambda w, a: a * a), Kind.DEFAULT)
_unary(["positive", "clone", "detach", "alias", "lift_fresh", "lift", "contiguous", "detach_copy",
        "alias_copy", "view_of"], _same, Kind.NO_OPMATH)


def _sign_of_float(w, a):
    positive, negative = w.compare("gt", a, 0.0), w.compare("lt", a, 0.0)
    return w.where(positive, 1.0, w.where(negative, -1.0, 0.0, torch.float32), torch.float32)


_unary(["sign", "sgn"], _integer_or_float(
    lambda w, dtype, a: a if dtype == torch.bool else w.integer(
        "minimum", w.integer("maximum", a, -1, dtype), 1, dtype), _sign_of_float), Kind.DEFAULT)
_unary(["relu"], _integer_or_float(
    lambda w, dtype, a: w.integer("maximum", a, 0, dtype),
    lambda w, a: w.float_extreme("maximum", a, 0.0)), Kind.DEFAULT)
_unary(["logical_not"], lambda w, dtype, a: w.negate(_flag(w, dtype, a)), Kind.ALWAYS_BOOL)
_unary(["bitwise_not"], lambda w, dtype, a: w.negate(a) if dtype == torch.bool else
       w.integer("xor", a, -1, dtype), Kind.DEFAULT)


def _is(name):
    def compute(w, dtype, a):
        if not is_float(dtype):
            return name == "isfinite"
        a = _f(w, a)
        return w.add(f"math.{name} {a.name} : f32", "i1")
    return compute


for _name in ("isnan", "isinf", "isfinite"):
    _unary([_name], _is(_name), Kind.ALWAYS_BOOL)


def _flag(w, dtype, a):
    return w.cast(a, torch.float32 if is_float(dtype) else dtype, torch.bool)


# Two operands

def _binary(names, compute, kind=Kind.DEFAULT):
    def handler(tracer, a, b, **_):
        return pointwise(tracer, lambda dtype, x, y: compute(tracer.writer, dtype, x, y), [a, b], kind)
    handles(*names)(handler)


def _arithmetic(name, on_flags):
    def compute(w, dtype, a, b):
        if is_float(dtype):
            if not isinstance(a, Value) and not isinstance(b, Value):
                a = _f(w, a)
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


_add, _sub, _mul = (_arithmetic(*pair) for pair in (("add", "or"), ("sub", None), ("mul", "and")))


def _with_alpha(compute, flipped):
    def handler(tracer, a, b, alpha=1, **_):
        if flipped:
            a, b = b, a
        if alpha != 1:
            if flipped:
                a = _HANDLERS["mul"](tracer, a, alpha) if isinstance(a, Symbol) else a * alpha
            else:
                b = _HANDLERS["mul"](tracer, b, alpha) if isinstance(b, Symbol) else b * alpha
        return pointwise(tracer, lambda dtype, x, y: compute(tracer.writer, dtype, x, y), [a, b], Kind.DEFAULT)
    return handler


def _rsub(tracer, a, b, alpha=1, **_):
    """b - alpha a"""
    return _with_alpha(_sub, False)(tracer, b, a, alpha)


handles("add")(_with_alpha(_add, False))
handles("sub", "subtract")(_with_alpha(_sub, False))
handles("rsub")(_rsub)
_binary(["mul", "multiply"], _mul)


@handles("div", "divide", "true_divide")
def _div(tracer, a, b, rounding_mode=None, **_):
    w = tracer.writer
    if rounding_mode is None:
        return pointwise(tracer, lambda dtype, x, y: _f(w, x) / _f(w, y), [a, b], Kind.INT_TO_FLOAT)
    name = {"floor": "floordiv", "trunc": "truncdiv"}[rounding_mode]
    rounded = "math." + rounding_mode

    def compute(dtype, x, y):
        if is_float(dtype):
            return w.function(rounded, _f(w, x) / _f(w, y))
        return w.divide(name, x, y, dtype)
    return pointwise(tracer, _no_flag_operands(compute), [a, b], Kind.DEFAULT)


def _no_flag_operands(compute):
    def checked(dtype, *args):
        if dtype == torch.bool:
            raise Unsupported("this is no operation on flags")
        return compute(dtype, *args)
    return checked


@handles("floor_divide")
def _floor_divide(tracer, a, b, **_):
    return _div(tracer, a, b, rounding_mode="floor")


def _rest(name, rounded):
    def compute(w, dtype, a, b):
        if not is_float(dtype):
            return w.remainder(name, a, b, dtype)
        a, b = _f(w, a), _f(w, b)
        return a - w.function(rounded, a / b) * b
    return _no_flags(compute)


_binary(["remainder"], _rest("floordiv", "math.floor"))
_binary(["fmod"], _rest("truncdiv", "math.trunc"))


def _bitwise(name):
    def compute(w, dtype, a, b):
        if is_float(dtype):
            raise Unsupported("floats have no bits here: convert them, or compare")
        return w.logic(name, a, b) if dtype == torch.bool else w.integer(name, a, b, dtype)
    return compute


for _names, _word in ((("bitwise_and", "__and__"), "and"), (("bitwise_or", "__or__"), "or"),
                      (("bitwise_xor", "__xor__"), "xor")):
    _binary(_names, _bitwise(_word))


def _shift(name):
    def compute(w, dtype, a, b):
        if is_float(dtype) or dtype == torch.bool:
            raise Unsupported("wanted integers to shift")
        if not isinstance(b, Value) and not 0 <= b < 64:
            raise Unsupported(f"wanted a shift by 0 to 63, got {b}")
        return w.integer(name, a, b, dtype)
    return compute


_binary(["bitwise_left_shift", "__lshift__"], _shift("shl"))
_binary(["bitwise_right_shift", "__rshift__"], _shift("shr"))
for _name in ("and", "or", "xor"):
    _binary(["logical_" + _name],
            lambda w, dtype, a, b, name=_name: w.logic(name, _flag(w, dtype, a), _flag(w, dtype, b)),
            Kind.ALWAYS_BOOL)
for _short, _long in (("eq", "equal_to"), ("ne", "not_equal"), ("lt", "less"), ("le", "less_equal"),
                      ("gt", "greater"), ("ge", "greater_equal")):
    _binary([_short, _long], lambda w, dtype, a, b, name=_short: w.compare(name, a, b), Kind.ALWAYS_BOOL)


def _extreme(name):
    def compute(w, dtype, a, b):
        if is_float(dtype):
            return w.float_extreme(name, a, b)
        if dtype == torch.bool:
            return w.logic("or" if name == "maximum" else "and", a, b)
        return w.integer(name, a, b, dtype)
    return compute


_binary(["maximum"], _extreme("maximum"))
_binary(["minimum"], _extreme("minimum"))
for _name, _long in (("fmax", "maximum"), ("fmin", "minimum")):
    _binary([_name], lambda w, dtype, a, b, name=_long: w.function(
        "arith.maxnumf" if name == "maximum" else "arith.minnumf", a, b) if is_float(dtype)
        else _extreme(name)(w, dtype, a, b))
_binary(["atan2", "arctan2"], lambda w, dtype, a, b: w.function("math.atan2", a, b), Kind.INT_TO_FLOAT)
_binary(["copysign"], lambda w, dtype, a, b: w.function("math.copysign", a, b), Kind.INT_TO_FLOAT)
_binary(["hypot"], lambda w, dtype, a, b: w.function("math.sqrt", _f(w, a) * _f(w, a) + _f(w, b) * _f(w, b)))


@handles("logaddexp")
def _logaddexp(tracer, a, b):
    w = tracer.writer

    def compute(dtype, x, y):
        x, y = _f(w, x), _f(w, y)
        small = w.function("math.log1p", w.function("math.exp", -abs(x - y)))
        return w.where(w.compare("eq", x, y), x + math.log(2.0), w.float_extreme("maximum", x, y) + small,
                       torch.float32)
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
    used, result = elementwise_dtypes(a, b, type_promotion_kind=Kind.NO_OPMATH)
    if result == torch.float64:
        raise Unsupported("this is float64, and scores are float32")
    shape = torch.broadcast_shapes(condition.shape, *(x.shape for x in (a, b) if isinstance(x, Symbol)))
    choose = symbols.broadcast(condition, shape)
    first, second = (_operand(tracer, x, result, shape) for x in (a, b))
    return Symbol(tracer, shape, result, lambda index: tracer.writer.where(
        choose(index), first(index), second(index), torch.float32 if is_float(result) else result))


@handles("masked_fill")
def _masked_fill(tracer, x, mask, value):
    return convert(tracer, _where(tracer, mask, value, x), x.dtype)


@handles("clamp", "clip")
def _clamp(tracer, x, min=None, max=None, **_):
    if min is not None:
        x = _HANDLERS["maximum"](tracer, x, min)
    return x if max is None else _HANDLERS["minimum"](tracer, x, max)


handles("clamp_min")(lambda tracer, x, low: _clamp(tracer, x, low))
handles("clamp_max")(lambda tracer, x, high: _clamp(tracer, x, None, high))
handles("hardtanh")(lambda tracer, x, low=-1.0, high=1.0: _clamp(tracer, x, low, high))
handles("relu6")(lambda tracer, x: _clamp(tracer, x, 0, 6))


def _float_rule(compute):
    """A handler of one tensor and numbers, on floats."""
    def handler(tracer, x, *numbers, **named):
        return pointwise(tracer, lambda dtype, a: compute(tracer.writer, _f(tracer.writer, a), *numbers, **named),
                         [x], Kind.INT_TO_FLOAT)
    return handler


@handles("softplus")
@_float_rule
def _softplus(w, a, beta=1, threshold=20):
    scaled = a * float(beta)
    return w.where(w.compare("gt", scaled, float(threshold)), a,
                   w.function("math.log1p", w.function("math.exp", scaled)) / float(beta), torch.float32)


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
    low = w.function("math.expm1", a * float(input_scale)) * (float(alpha) * float(scale))
    return w.where(w.compare("gt", a, 0.0), a * float(scale), low, torch.float32)


@handles("hardsigmoid")
@_float_rule
def _hardsigmoid(w, a):
    return w.float_extreme("minimum", w.float_extreme("maximum", a + 3.0, 0.0), 6.0) / 6.0


@handles("hardswish")
@_float_rule
def _hardswish(w, a):
    return a * _hardsigmoid_value(w, a)


def _hardsigmoid_value(w, a):
    return w.float_extreme("minimum", w.float_extreme("maximum", a + 3.0, 0.0), 6.0) / 6.0


@handles("logit")
@_float_rule
def _logit(w, a, eps=None):
    if eps is not None:
        a = w.float_extreme("minimum", w.float_extreme("maximum", a, float(eps)), 1.0 - float(eps))
    return w.function("math.log", a / (1.0 - a))


@handles("threshold")
@_float_rule
def _threshold(w, a, threshold, value):
    return w.where(w.compare("le", a, float(threshold)), float(value), a, torch.float32)


@handles("nan_to_num")
@_float_rule
def _nan_to_num(w, a, nan=None, posinf=None, neginf=None):
    largest = torch.finfo(torch.float32).max
    a = w.where(w.compare("ne", a, a), 0.0 if nan is None else float(nan), a, torch.float32)
    a = w.where(w.compare("eq", a, math.inf), largest if posinf is None else float(posinf), a, torch.float32)
    return w.where(w.compare("eq", a, -math.inf), -largest if neginf is None else float(neginf), a,
                   torch.float32)


@handles("lerp")
def _lerp(tracer, start, end, weight):
    difference = _HANDLERS["sub"](tracer, end, start)
    return _HANDLERS["add"](tracer, start, _HANDLERS["mul"](tracer, difference, weight))


@handles("addcmul")
def _addcmul(tracer, x, a, b, value=1):
    return _HANDLERS["add"](tracer, x, _HANDLERS["mul"](tracer, a, b), alpha=value)


@handles("addcdiv")
def _addcdiv(tracer, x, a, b, value=1):
    return _HANDLERS["add"](tracer, x, _div(tracer, a, b), alpha=value)


@handles("xlogy")
def _xlogy(tracer, a, b):
    w = tracer.writer
    return pointwise(tracer, lambda dtype, x, y: w.where(
        w.compare("eq", x, 0.0), 0.0, _f(w, x) * w.function("math.log", y), torch.float32),
        [a, b], Kind.INT_TO_FLOAT)


# Conversions, and tensors like others

@handles("_to_copy", "to", "convert_element_type")
def _to(tracer, x, dtype=None, **_):
    return convert(tracer, x, dtype)


def _filled(tracer, shape, dtype, value):
    number = tracer.writer.cast(value, None, dtype)
    return Symbol(tracer, shape, dtype, lambda index: number)


def _like(value):
    def handler(tracer, x, *given, dtype=None, **_):
        fill = given[0] if value is None else value
        return _filled(tracer, x.shape, dtype or x.dtype, fill)
    return handler


def _new(value):
    def handler(tracer, x, size, *given, dtype=None, **_):
        fill = given[0] if value is None else value
        return _filled(tracer, size, dtype or x.dtype, fill)
    return handler


for _name, _value in (("zeros", 0), ("ones", 1), ("full", None), ("empty", 0)):
    handles(_name + "_like")(_like(_value))
    handles("new_" + _name)(_new(_value))
handles("fill")(lambda tracer, x, value: convert(tracer, value, x.dtype) if isinstance(value, Symbol)
                else _filled(tracer, x.shape, x.dtype, value))
handles("zero")(lambda tracer, x: _filled(tracer, x.shape, x.dtype, 0))
handles("copy")(lambda tracer, x, source, *_: symbols.expand(convert(tracer, source, x.dtype), x.shape))


@handles("_local_scalar_dense", "item", "is_nonzero", "equal")
def _known_only_there(tracer, *_):
    raise Unsupported("its value is known in the kernel only: for if, and, or, not use torch.where, &, | "
                      "and ~, for min() and max() torch.minimum and torch.maximum, and no int(), float() "
                      "or .item()")


# Views

def _as_view(function):
    return lambda tracer, x, *args, **named: function(x, *args, **named)


def _number(tracer, at):
    return at.element() if isinstance(at, Symbol) else at


handles("view", "_unsafe_view", "reshape", "_reshape_alias", "view_copy")(
    lambda tracer, x, shape, *_: symbols.reshape(x, list(shape)))
handles("flatten")(lambda tracer, x, start=0, end=-1: symbols.reshape(x, [-1]))
handles("expand", "expand_copy")(lambda tracer, x, shape, **_: symbols.expand(x, list(shape)))
handles("permute", "permute_copy")(_as_view(symbols.permute))
handles("unsqueeze", "unsqueeze_copy")(_as_view(symbols.unsqueeze))
handles("select", "select_copy")(lambda tracer, x, dim, at: symbols.select(x, dim, _number(tracer, at)))
handles("index_select")(lambda tracer, x, dim, at: symbols.gather_arrays(
    x, [None] * (dim % x.dim()) + [at if at.dim() else symbols.unsqueeze(at, 0)]))
handles("index", "_unsafe_index")(lambda tracer, x, at: symbols.gather_arrays(x, list(at)))
handles("gather")(lambda tracer, x, dim, at, **_: symbols.gather(x, dim, at))
handles("take")(lambda tracer, x, at: symbols.gather_arrays(symbols.reshape(x, [-1]), [at]))
handles("embedding")(lambda tracer, weight, at, *_, **__: symbols.gather_arrays(weight, [at]))


@handles("squeeze", "squeeze_copy")
def _squeeze(tracer, x, dim=None):
    dims = range(x.dim()) if dim is None else [dim] if isinstance(dim, int) else dim
    return symbols.squeeze(x, dims)


@handles("transpose", "transpose_copy", "swapaxes")
def _transpose(tracer, x, first, second):
    order = list(range(x.dim()))
    order[first], order[second] = order[second], order[first]
    return symbols.permute(x, order)


handles("t", "t_copy", "numpy_T")(lambda tracer, x: symbols.permute(x, list(range(x.dim()))[::-1]))


@handles("slice", "slice_copy")
def _slice(tracer, x, dim=0, start=None, end=None, step=1):
    return symbols.narrow(x, dim, start, end, step)


@handles("narrow")
def _narrow(tracer, x, dim, start, length):
    return symbols.narrow(x, dim, start, start + length, 1)


@handles("unbind", "unbind_copy")
def _unbind(tracer, x, dim=0):
    return tuple(symbols.select(x, dim, at) for at in range(x.shape[dim]))


@handles("split", "split_with_sizes")
def _split(tracer, x, sizes, dim=0):
    total = x.shape[dim]
    if isinstance(sizes, int):
        sizes = [min(sizes, total - start) for start in range(0, total, sizes)]
    starts = [sum(sizes[:number]) for number in range(len(sizes))]
    return tuple(symbols.narrow(x, dim, a, a + size, 1) for a, size in zip(starts, sizes))


@handles("diff")
def _diff(tracer, x, n=1, dim=-1, *_):
    return _HANDLERS["sub"](tracer, symbols.narrow(x, dim, 1, None, 1), symbols.narrow(x, dim, 0, -1, 1))


# Several tensors, several elements

def _joined_dtype(tensors):
    return elementwise_dtypes(*tensors, type_promotion_kind=Kind.NO_OPMATH)[1]


@handles("stack")
def _stack(tracer, tensors, dim=0, **_):
    dtype = _joined_dtype(tensors)
    return symbols.stack(tracer, [convert(tracer, x, dtype) for x in tensors], dim, dtype)


@handles("cat", "concat", "concatenate")
def _cat(tracer, tensors, dim=0, **_):
    dtype = _joined_dtype(tensors)
    parts = [part for x in tensors for part in _unbind(tracer, convert(tracer, x, dtype), dim)]
    if len(parts) > symbols.MAX_UNROLLED:
        raise Unsupported(f"{len(parts)} parts, wanted {symbols.MAX_UNROLLED} at most")
    return symbols.stack(tracer, parts, dim, dtype)


def _dims(dim):
    return None if dim is None else [dim] if isinstance(dim, int) else list(dim)


@handles("sum")
def _sum(tracer, x, dim=None, keepdim=False, dtype=None, **_):
    dtype = dtype or (x.dtype if is_float(x.dtype) else torch.int64)
    return symbols.reduce(tracer, x, _dims(dim), keepdim, dtype, None,
                          lambda a, b: _add(tracer.writer, dtype, a, b))


@handles("mean")
def _mean(tracer, x, dim=None, keepdim=False, dtype=None, **_):
    total = _sum(tracer, x, dim, keepdim, dtype)
    return _div(tracer, total, x.numel() // max(1, total.numel()))


@handles("prod")
def _prod(tracer, x, dim=None, keepdim=False, dtype=None, **_):
    dtype = dtype or (x.dtype if is_float(x.dtype) else torch.int64)
    return symbols.reduce(tracer, x, _dims(dim), keepdim, dtype, None,
                          lambda a, b: _mul(tracer.writer, dtype, a, b))


def _any_or_all(name, start):
    def handler(tracer, x, dim=None, keepdim=False, **_):
        return symbols.reduce(tracer, convert(tracer, x, torch.bool), _dims(dim), keepdim, torch.bool, start,
                              lambda a, b: tracer.writer.logic(name, a, b))
    return handler


handles("any")(_any_or_all("or", False))
handles("all")(_any_or_all("and", True))


def _largest(name):
    def handler(tracer, x, dim=None, keepdim=False, **_):
        return symbols.reduce(tracer, x, _dims(dim), keepdim, x.dtype, None,
                              lambda a, b: _extreme(name)(tracer.writer, x.dtype, a, b))
    return handler


handles("amax")(_largest("maximum"))
handles("amin")(_largest("minimum"))


def _total_extreme(name, long):
    def handler(tracer, x, *args, **named):
        if args or named:
            raise Unsupported(f"{name}() along a dimension returns positions, too: use a{name}()")
        return _largest(long)(tracer, x)
    return handler


handles("max")(_total_extreme("max", "maximum"))
handles("min")(_total_extreme("min", "minimum"))


@handles("dot", "vdot", "inner")
def _dot(tracer, a, b):
    return _sum(tracer, _HANDLERS["mul"](tracer, a, b), -1)


@handles("mv")
def _mv(tracer, a, b):
    return _sum(tracer, _HANDLERS["mul"](tracer, a, b), -1)


@handles("mm")
def _mm(tracer, a, b):
    return _sum(tracer, _HANDLERS["mul"](tracer, symbols.unsqueeze(a, 2), symbols.unsqueeze(b, 0)), 1)


@handles("linalg_vector_norm")
def _norm(tracer, x, ord=2, dim=None, keepdim=False, dtype=None):
    if ord != 2:
        raise Unsupported(f"wanted the norm of order 2, got {ord}")
    return _HANDLERS["sqrt"](tracer, _sum(tracer, _HANDLERS["square"](tracer, x), dim, keepdim, dtype))


# Searches

def _search(tracer, table, x, right):
    if not symbols.is_integer(x) or not symbols.is_integer(table):
        raise Unsupported("wanted integers to search for among integers")
    if table.dim() != 1:
        raise Unsupported(f"wanted a sorted tensor of one dimension, got {table.dim()}")
    w, found = tracer.writer, tracer.searched(table)

    def compute(dtype, element):
        upto = element if right else w.integer("sub", element, 1, torch.int32)
        value = w.typed(upto, "i32")
        count = w.add(f"attn.capture_search %{found.name}[], {value.name} : {found.type}", "i32")
        return w.ranged(count, (0, table.shape[0]))
    return pointwise(tracer, compute, [x], Kind.NO_OPMATH, torch.int64)


@handles("searchsorted")
def _searchsorted(tracer, table, x, out_int32=False, right=False, side=None, sorter=None, **_):
    if sorter is not None:
        raise Unsupported("wanted a sorted tensor, got a sorter")
    return _search(tracer, table, x, right or side == "right")


@handles("bucketize")
def _bucketize(tracer, x, table, out_int32=False, right=False, **_):
    return _search(tracer, table, x, right)


handles("tanh_approx")(_HANDLERS["tanh"])
