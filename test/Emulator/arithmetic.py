#===----------------------------------------------------------------------===#
#
# Part of attn, an attention compiler.
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===----------------------------------------------------------------------===#
"""Arithmetic instructions: one register per thread in, one out.

`FUNCTIONS` maps the first word of an opcode to a function that, given the rest
of it, returns (operand types, result type, NumPy function).
"""

import numpy as np

from floats import DECODE, ENCODE, f32_to_bf16, f32_to_f16
from memory import Fault

NUMPY = {"b8": np.uint8, "u8": np.uint8, "s8": np.int8,
         "b16": np.uint16, "u16": np.uint16, "s16": np.int16,
         "b32": np.uint32, "u32": np.uint32, "s32": np.int32, "f32": np.float32,
         "b64": np.uint64, "u64": np.uint64, "s64": np.int64, "f64": np.float64,
         "f16": np.uint16, "bf16": np.uint16, "f16x2": np.uint32,
         "bf16x2": np.uint32, "pred": bool}
BITS = {t: 1 if t == "pred" else np.dtype(n).itemsize * 8 for t, n in NUMPY.items()}
ROUNDINGS = {"rn", "rz", "rm", "rp", "rna", "approx", "full", "ftz", "sat", "wide",
             "lo", "hi", "rni", "rzi", "rmi", "rpi", "NaN", "satfinite"}


def is_float(type):
    return type[0] in "fb" and type not in ("b8", "b16", "b32", "b64")


def wide(function):
    """Arithmetic of f32 carried out in f64 and rounded once."""
    return lambda *operands: function(*[o.astype(np.float64) for o in operands]).astype(np.float32)


def narrow_floats(type, function):
    """The f32 function on 16-bit floats, alone or in pairs."""
    element = type.removesuffix("x2")
    decode, encode = DECODE[element], ENCODE[element]

    def run(*operands):
        if not type.endswith("x2"):
            return encode(function(*[decode(o) for o in operands]))
        low = encode(function(*[decode(o & 0xFFFF) for o in operands]))
        high = encode(function(*[decode(o >> 16) for o in operands]))
        return low.astype(np.uint32) | high.astype(np.uint32) << 16
    return run


def arithmetic(integer, floating, is_rounded_once=True):
    """A function of integers or floats of one type; NumPy rounds that of floats
    once, or its steps."""
    def build(words):
        type = words[-1]
        count = integer.__code__.co_argcount
        if not is_float(type):
            return [type] * count, type, integer
        function = floating(words) if floating else None
        if function is None:
            raise Fault(f"no float form of {words}")
        if type == "f64":
            return [type] * count, type, function
        in_f32 = function if is_rounded_once else wide(function)
        if type == "f32":
            return [type] * count, type, in_f32
        return [type] * count, type, narrow_floats(type, in_f32)
    return build


def clamped(build):
    """With .relu, what is below 0 becomes 0."""
    def checked(words):
        if "relu" not in words:
            return build(words)
        types, result, function = build([w for w in words if w != "relu"])
        if is_float(result):
            raise Fault(f"no float form of {words}")
        return types, result, lambda a, b: np.maximum(function(a, b), 0)
    return checked


def maximum(words):
    return np.maximum if "NaN" in words else np.fmax


def minimum(words):
    return np.minimum if "NaN" in words else np.fmin


def multiply(words):
    type = words[-1]
    if is_float(type):
        return arithmetic(lambda a, b: a * b, lambda w: np.multiply)(words)
    if "wide" in words:
        double = {"u32": "u64", "s32": "s64", "u16": "u32", "s16": "s32"}[type]
        return [type, type], double, lambda a, b: a.astype(NUMPY[double]) * b.astype(NUMPY[double])
    if "hi" in words:
        if type.endswith("64"):
            def high(a, b):
                return np.array([(int(x) * int(y)) >> 64 & (2**64 - 1) for x, y in
                                 zip(*np.broadcast_arrays(a, b))], np.uint64).view(NUMPY[type])
            return [type, type], type, high
        double = np.int64 if type[0] == "s" else np.uint64
        bits = BITS[type]
        return [type, type], type, lambda a, b: ((a.astype(double) * b.astype(double)) >> bits).astype(NUMPY[type])
    return [type, type], type, lambda a, b: a * b


def multiply_add(words):
    (a, b), result, product = multiply(words)
    return [a, b, result], result, lambda x, y, z: product(x, y) + z


def integer_divide(a, b):
    """Truncates; a divisor of 0 gives all ones, as the hardware does."""
    if a.dtype.kind == "u":
        return np.where(b == 0, ~a * 0 + np.iinfo(a.dtype).max, a // np.where(b == 0, 1, b))
    safe = np.where(b == 0, 1, b)
    quotient = np.abs(a) // np.abs(safe)
    return np.where(b == 0, -1, np.where((a < 0) != (b < 0), -quotient, quotient)).astype(a.dtype)


def division(words):
    type = words[-1]
    if is_float(type):
        def build(a, b):
            return a
        return arithmetic(build, lambda w: np.divide)(words)
    return [type, type], type, integer_divide


def remainder(words):
    type = words[-1]
    return [type, type], type, lambda a, b: (a - integer_divide(a, b) * b).astype(a.dtype)


def shift_left(words):
    type = words[-1]
    bits = BITS[type]
    return [type, "u32"], type, lambda a, n: np.where(n >= bits, 0, a << np.minimum(n, bits - 1).astype(a.dtype)).astype(a.dtype)


def shift_right(words):
    type = words[-1]
    bits = BITS[type]

    def shift(a, n):
        n = np.minimum(n, bits)
        half = (a >> np.minimum(n, bits - 1).astype(a.dtype))
        if a.dtype.kind == "i":
            return half
        return np.where(n >= bits, 0, half).astype(a.dtype)
    return [type, "u32"], type, shift


def funnel_shift(words):
    left, clamp = words[0] == "l", words[1] == "clamp"

    def shift(low, high, n):
        n = np.minimum(n, 32) if clamp else n & 31
        both = high.astype(np.uint64) << np.uint64(32) | low
        if left:
            return ((both << n.astype(np.uint64)) >> np.uint64(32)).astype(np.uint32)
        return (both >> n.astype(np.uint64)).astype(np.uint32)
    return ["b32", "b32", "u32"], "b32", shift


def bit_field(words):
    type = words[-1]

    def extract(a, position, length):
        shifted = a.astype(np.int64) >> position.astype(np.int64)
        mask = (np.int64(1) << length.astype(np.int64)) - 1
        value = shifted & mask
        if type[0] == "s":
            sign = np.where(length > 0, np.int64(1) << np.maximum(length.astype(np.int64) - 1, 0), 0)
            value = (value ^ sign) - sign
        return value.astype(NUMPY[type])
    return [type, "u32", "u32"], type, extract


def bit_field_insert(words):
    type = words[-1]

    def insert(a, b, position, length):
        mask = ((np.uint64(1) << length.astype(np.uint64)) - np.uint64(1)) << position.astype(np.uint64)
        value = (b.astype(np.uint64) & ~mask) | ((a.astype(np.uint64) << position.astype(np.uint64)) & mask)
        return value.astype(NUMPY[type])
    return [type, type, "u32", "u32"], type, insert


def permute_bytes(words):
    def permute(a, b, selector):
        both = b.astype(np.uint64) << np.uint64(32) | a
        result = np.zeros_like(a)
        for i in range(4):
            nibble = (selector >> np.uint32(4 * i)) & 0xF
            byte = (both >> ((nibble & 7).astype(np.uint64) * 8)) & np.uint64(0xFF)
            byte = np.where(nibble & 8, np.where(byte & np.uint64(0x80), 0xFF, 0), byte)
            result |= byte.astype(np.uint32) << np.uint32(8 * i)
        return result
    return ["b32", "b32", "b32"], "b32", permute


def lookup3(words):
    def combine(a, b, c, table):
        result = np.zeros_like(a)
        table = int(table.flat[0])
        for i in range(8):
            if table >> i & 1:
                result |= ((a if i & 4 else ~a) & (b if i & 2 else ~b) & (c if i & 1 else ~c))
        return result
    return ["b32"] * 4, "b32", combine


def unary(function):
    def build(words):
        type = words[-1]
        if type == "f64":
            return [type], type, function
        if type == "f32":
            return [type], type, wide(function)
        return [type], type, narrow_floats(type, wide(function))
    return build


def signed(float_mask):
    """neg, abs: on the sign bit for floats."""
    def build(words):
        type = words[-1]
        if not is_float(type):
            return [type], type, (np.negative if float_mask == "xor" else np.abs)
        bits = {"f32": "b32", "f64": "b64"}.get(type, NUMPY[type]().dtype.itemsize == 2 and "b16" or "b32")
        one = {"f32": 1 << 31, "f64": 1 << 63, "f16": 1 << 15, "bf16": 1 << 15}.get(type, 0x80008000)
        sign = NUMPY[bits](one)
        if float_mask == "xor":
            return [bits], bits, lambda a: a ^ sign
        return [bits], bits, lambda a: a & ~sign
    return build


def copy_sign(words):
    type = words[-1]
    return [type, type], type, lambda sign, value: np.copysign(value, sign)


def leading_zeros(words):
    bits = BITS[words[-1]]
    return [words[-1]], "u32", lambda a: np.array([bits - int(x).bit_length() for x in a], np.uint32)


def logical(function):
    def build(words):
        return [words[-1]] * function.__code__.co_argcount, words[-1], function
    return build


COMPARE = {"eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal,
           "gt": np.greater, "ge": np.greater_equal, "lo": np.less, "ls": np.less_equal,
           "hi": np.greater, "hs": np.greater_equal}


def compare(operator, type):
    """The NumPy function of a setp comparison."""
    if is_float(type):
        if operator in ("num", "nan"):
            return lambda a, b: (np.isnan(a) | np.isnan(b)) == (operator == "nan")
        unordered = operator.endswith("u") and operator != "u"
        base = COMPARE[operator[:-1] if unordered else operator]

        def run(a, b):
            nan = np.isnan(a) | np.isnan(b)
            return (base(a, b) | nan) if unordered else (base(a, b) & ~nan)
        if type in DECODE:
            decode = DECODE[type]
            return lambda a, b: run(decode(a), decode(b))
        return run
    return COMPARE[operator]


def convert(words):
    """cvt: to type, from type; packed forms take two sources."""
    words = [w for w in words if w not in ("rn", "ftz", "sat", "satfinite")]
    rounding = [w for w in words if w in ("rni", "rzi", "rmi", "rpi", "rz", "rm", "rp", "rna")]
    to, source = [w for w in words if w in NUMPY or w == "tf32"][:2]
    if to in ("bf16x2", "f16x2"):
        encode = f32_to_bf16 if to == "bf16x2" else f32_to_f16
        return ["f32", "f32"], to, lambda high, low: (
            encode(high).astype(np.uint32) << 16 | encode(low))
    if to == "tf32":
        def round_tf32(value):
            bits = value.view(np.uint32).astype(np.uint64)
            half = (bits + 0x1000) if "rna" in rounding else bits + 0xFFF + (bits >> 13 & 1)
            result = (half & 0xFFFFE000).astype(np.uint32)
            return np.where(np.isnan(value), np.uint32(0x7FFFE000), result).astype(np.uint32)
        return ["f32"], "b32", round_tf32

    def run(value):
        if source in DECODE:
            value = DECODE[source](value)
        integral = {"rzi": np.trunc, "rmi": np.floor, "rpi": np.ceil, "rni": np.rint}
        if to in ENCODE:
            if is_float(source) and rounding and rounding[0] in integral:
                value = integral[rounding[0]](value)
            return ENCODE[to](value.astype(np.float32))
        if is_float(to) or not is_float(source):
            if is_float(to) and rounding:
                value = {"rzi": np.trunc, "rz": lambda v: v, "rmi": np.floor,
                         "rpi": np.ceil, "rni": np.rint}[rounding[0]](value)
            return value.astype(NUMPY[to])
        value = {"rzi": np.trunc, "rmi": np.floor, "rpi": np.ceil,
                 "rni": np.rint}[rounding[0]](value.astype(np.float64))
        limits = np.iinfo(NUMPY[to])
        value = np.where(np.isnan(value), 0, np.clip(value, limits.min, limits.max))
        return value.astype(NUMPY[to])
    return [source], to, run


FUNCTIONS = {
    "add": arithmetic(lambda a, b: a + b, lambda w: np.add),
    "sub": arithmetic(lambda a, b: a - b, lambda w: np.subtract),
    "max": clamped(arithmetic(lambda a, b: np.maximum(a, b), maximum)),
    "min": clamped(arithmetic(lambda a, b: np.minimum(a, b), minimum)),
    "mul": multiply,
    "mad": multiply_add,
    "fma": arithmetic(lambda a, b, c: a * b + c, lambda w: lambda a, b, c: a * b + c,
                      is_rounded_once=False),
    "div": division,
    "rem": remainder,
    "shl": shift_left,
    "shr": shift_right,
    "shf": funnel_shift,
    "bfe": bit_field,
    "bfi": bit_field_insert,
    "prmt": permute_bytes,
    "lop3": lookup3,
    "neg": signed("xor"),
    "abs": signed("and"),
    "copysign": copy_sign,
    "and": logical(lambda a, b: a & b),
    "or": logical(lambda a, b: a | b),
    "xor": logical(lambda a, b: a ^ b),
    "not": logical(lambda a: ~a),
    "ex2": unary(np.exp2),
    "lg2": unary(np.log2),
    "rcp": unary(np.reciprocal),
    "sqrt": unary(np.sqrt),
    "rsqrt": unary(lambda a: 1 / np.sqrt(a)),
    "sin": unary(np.sin),
    "cos": unary(np.cos),
    "tanh": unary(np.tanh),
    "cvt": convert,
    "popc": lambda words: ([words[-1]], "u32", lambda a: np.array([bin(x).count("1") for x in a], np.uint32)),
    "clz": leading_zeros,
    "cvta": lambda words: (["b64"], "b64", lambda a: a),
}
