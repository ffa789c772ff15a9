#===----------------------------------------------------------------------===#
#
# Part of attn, an attention compiler.
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===----------------------------------------------------------------------===#
"""Scalars of a region with PyTorch's meaning: dtypes, promotion, integers.

A scalar is a number of Python, which is written where it is needed, or a Value of
expression.py. Values of a region are i1, f32 and i32; i64 only where an int64 of
PyTorch may need it: every integer has a range (the smallest and the largest it
can be), and what fits i32 is computed there.
"""

import copy
import math
import operator
import re

import torch

from .. import expression
from ..expression import Value

# The types of captured elements.
ELEMENTS = {
    torch.bool: "i1", torch.uint8: "i8", torch.int8: "i8", torch.int16: "i16",
    torch.int32: "i32", torch.int64: "i64",
    torch.float16: "f16", torch.bfloat16: "bf16", torch.float32: "f32",
}
LIMITS = {
    torch.bool: (0, 1), torch.uint8: (0, 255), torch.int8: (-2**7, 2**7 - 1),
    torch.int16: (-2**15, 2**15 - 1), torch.int32: (-2**31, 2**31 - 1),
    torch.int64: (-2**63, 2**63 - 1),
}
NAMES = re.compile(r"%\w+")  # of values, in a line
# What floats come from, and what no gradient goes through.
_FLOATS_LOADED = re.compile(r"attn\.capture_load .*x(f16|bf16|f32)>$")
_STOPPING = ("arith.bitcast", "arith.fptosi", "arith.cmpf", "attn.capture_load", "attn.capture_search")
I32 = LIMITS[torch.int32]
_MAX_MULTIPLIED = 16  # powers up to this one are products


def is_float(dtype):
    return dtype.is_floating_point


def fits(range, limits=I32):
    return range is not None and limits[0] <= range[0] and range[1] <= limits[1]


def _corners(function):
    def range(a, b):
        values = [function(x, y) for x in a for y in b]
        return min(values), max(values)
    return range


def _bits(high):
    return (1 << high.bit_length()) - 1


def _and_range(a, b):
    if a[0] < 0 and b[0] < 0:
        return I32 if fits(a) and fits(b) else None
    return 0, min(x[1] for x in (a, b) if x[0] >= 0)


def _or_range(a, b):
    if a[0] >= 0 and b[0] >= 0:
        return 0, _bits(max(a[1], b[1]))
    return I32 if fits(a) and fits(b) else None


def _truncated(a, b):
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def _shift_range(function):
    inside = _corners(function)
    return lambda a, b: inside(a, b) if 0 <= b[0] and b[1] < 63 else None


# By name: the operation, the range of its results (None: not known), the same in Python.
_INTEGERS = {
    "add": ("addi", _corners(operator.add), operator.add),
    "sub": ("subi", _corners(operator.sub), operator.sub),
    "mul": ("muli", _corners(operator.mul), operator.mul),
    "maximum": ("maxsi", lambda a, b: (max(a[0], b[0]), max(a[1], b[1])), max),
    "minimum": ("minsi", lambda a, b: (min(a[0], b[0]), min(a[1], b[1])), min),
    "and": ("andi", _and_range, operator.and_),
    "or": ("ori", _or_range, operator.or_),
    "xor": ("xori", _or_range, operator.xor),
    "shl": ("shli", _shift_range(operator.lshift), operator.lshift),
    "shr": ("shrsi", _shift_range(operator.rshift), operator.rshift),
    "floordiv": ("floordivsi", _corners(operator.floordiv), operator.floordiv),
    "truncdiv": ("divsi", _corners(_truncated), _truncated),
}
# x op c is x.
_NEUTRAL = {"add": 0, "sub": 0, "mul": 1, "or": 0, "xor": 0, "and": -1, "shl": 0, "shr": 0,
            "floordiv": 1, "truncdiv": 1}
_COMPARED = {"eq": operator.eq, "ne": operator.ne, "lt": operator.lt, "le": operator.le,
             "gt": operator.gt, "ge": operator.ge}

# Up to here an f32 is exact, and times a reciprocal off by half of one at most.
_EXACT = 2**22


class Writer(expression.Lines):
    """The code of a region; what is written twice is one value."""

    def __init__(self, reads=None):
        super().__init__()
        self._known, self._reads = {}, reads
        self.is_wide = False  # narrower ranges of positions might make it shorter

    def add(self, operation, type):
        if operation not in self._known:
            self._known[operation] = super().add(operation, type)
        return self._known[operation]

    # Types

    def range(self, x):
        if not isinstance(x, Value):
            return int(x), int(x)
        if not hasattr(x, "range"):
            x.range = (0, 1) if x.type == "i1" else LIMITS[torch.int64 if x.type == "i64" else torch.int32]
        return x.range

    def ranged(self, value, range):
        value.range = range
        return value

    def typed(self, x, type):
        """x as a Value of that type."""
        if not isinstance(x, Value):
            return self.constant(float(x) if type == "f32" else bool(x) if type == "i1" else int(x), type)
        if x.type == type:
            return x
        if type != "f32" and type != "i1":
            return self.ranged(x.to(type), self.range(x))
        return x.to(type)

    def cast(self, x, source, target):
        """What Tensor.to makes of it. Floats become int32 first, whatever the target:
        there is nothing between the whole numbers of f32 above it."""
        if not isinstance(x, Value):
            if is_float(target):
                return float(x)
            return bool(x) if target == torch.bool else self._wrap_number(int(x), target)
        if is_float(target):
            x = self.typed(x, "f32")
            if target in (torch.float16, torch.bfloat16) and source != target:
                x = x.to(ELEMENTS[target]).to("f32")
            return x
        if source == target:
            return x
        if target == torch.bool:
            return self.compare("ne", x, 0.0 if x.is_float else 0)
        if x.is_float:
            x = self.ranged(x.to("i32"), I32)
        elif x.type == "i1":
            return self.ranged(x.to("i32"), (0, 1))
        return self._wrapped(x, target)

    def _wrapped(self, x, dtype):
        limits = LIMITS[dtype]
        if fits(self.range(x), limits) or dtype == torch.int64:
            return x
        x = self.ranged(x.to("i32"), I32)
        if dtype == torch.uint8:
            return self.integer("and", x, 255, torch.int32)
        return x if dtype == torch.int32 else self.ranged(x.to(ELEMENTS[dtype]).to("i32"), limits)

    @staticmethod
    def _wrap_number(x, dtype):
        low, high = LIMITS[dtype]
        return (x - low) % (high - low + 1) + low

    # Arithmetic

    def integer(self, name, a, b, dtype):
        """a name b of two integers, a result of that dtype."""
        operation, find_range, compute = _INTEGERS[name]
        if not isinstance(a, Value) and not isinstance(b, Value):
            return self._wrap_number(compute(int(a), int(b)), dtype)
        if not isinstance(b, Value) and int(b) == _NEUTRAL.get(name):
            return a
        if not isinstance(a, Value) and name in ("add", "mul", "and", "or", "xor"):
            return self.integer(name, b, a, dtype)
        ranges = self.range(a), self.range(b)
        found = find_range(*ranges)
        narrow = fits(found) and all(map(fits, ranges))
        type = "i64" if dtype == torch.int64 and not narrow else "i32"
        self.is_wide = self.is_wide or type == "i64"
        lhs, rhs = self.typed(a, type), self.typed(b, type)
        value = self.add(f"arith.{operation} {lhs.name}, {rhs.name} : {type}", type)
        if fits(found, LIMITS[dtype]):
            return self.ranged(value, found)
        wide = LIMITS[torch.int64 if type == "i64" else torch.int32]
        return self._wrapped(self.ranged(value, wide), dtype)

    def shift(self, name, a, b, dtype):
        """"shl" or "shr": bits that are shifted out are gone, by negative numbers all of them."""
        last = LIMITS[dtype][1].bit_length() - (dtype == torch.uint8)
        if not isinstance(b, Value) or fits(self.range(b), (0, last)):
            return self.integer(name, a, b, dtype)
        self.is_wide = True
        is_beyond = self.logic("or", self.compare("lt", b, 0), self.compare("gt", b, last))
        inside = self.where(is_beyond, last, b, dtype)
        inside = self.ranged(copy.copy(self.typed(inside, "i32")), (0, last))
        shifted = self.integer(name, a, inside, dtype)
        return self.where(is_beyond, 0, shifted, dtype) if name == "shl" or dtype == torch.uint8 else shifted

    def divide(self, name, a, b, dtype):
        """"floordiv" or "truncdiv" of integers."""
        b = self.known(b)
        if isinstance(b, Value):
            return self._divide_by_data(name, a, b, dtype)[0]
        if b == 0:
            raise ZeroDivisionError("integer division by 0")
        if b == -1:
            return self.integer("sub", 0, a, dtype)
        return self.integer(name, a, b, dtype)

    def _divide_by_data(self, name, a, b, dtype):
        """(quotient, remainder): operations divide by constants only. The dividend times
        the reciprocal of the divisor, which is that of many dividends, is off by one at
        most; of large dividends what it leaves is divided in the same way."""
        i32, most = torch.int32, 2**31 - 1
        if fits(self.range(a), (1 - most, most - 1)) and not fits(self.range(b)):
            # What is larger than any dividend gives 0 or -1, as the largest int32 does.
            b = self.integer("minimum", self.integer("maximum", b, -most, dtype), most, dtype)
            b = self.typed(b, "i32")
        if not fits(self.range(a)) or not fits(self.range(b)):
            return self._divide_wide(name, a, b)
        if self.range(b)[0] < 0:
            negative = self.compare("lt", b, 0)
            a, b = (self.where(negative, self.integer("sub", 0, x, i32), x, i32) for x in (a, b))
        if not isinstance(a, Value):
            a = self.typed(a, "i32")
        reciprocal = 1.0 / self.typed(b, "f32")
        is_small = fits(self.range(a), (-_EXACT, _EXACT))
        self.is_wide = self.is_wide or not is_small
        quotient, rest = 0, a
        for _ in range(1 if is_small else 2):
            part = self.cast(self.function("math.floor", self.typed(rest, "f32") * reciprocal), torch.float32, i32)
            quotient = self.integer("add", quotient, part, i32)
            rest = self.integer("sub", rest, self.integer("mul", part, b, i32), i32)
        for test, step in ((self.compare("lt", rest, 0), -1), (self.compare("ge", rest, b), 1)):
            quotient = self.where(test, self.integer("add", quotient, step, i32), quotient, i32)
            rest = self.where(test, self.integer("sub" if step > 0 else "add", rest, b, i32), rest, i32)
        if name == "truncdiv" and self.range(a)[0] < 0:
            up = self.logic("and", self.compare("lt", a, 0), self.compare("ne", rest, 0))
            quotient = self.where(up, self.integer("add", quotient, 1, i32), quotient, i32)
        low, high = self.range(a)
        return self.ranged(self.typed(quotient, "i32"), (min(low, 0, -high), max(high, 0, -low))), rest

    def _divide_wide(self, name, a, b):
        """The same of 64 bits. Each part leaves 2**-20 of the dividend; the first one is less
        than the quotient, so that none is beyond 64 bits."""
        i64 = torch.int64
        a, b = self.typed(a, "i64"), self.typed(b, "i64")
        self.is_wide = True
        negative = self.compare("lt", b, 0)
        a, b = (self.where(negative, self.integer("sub", 0, x, i64), x, i64) for x in (a, b))
        reciprocal = 1.0 / self.typed(b, "f32")
        quotient, rest = 0, a
        for factor in (1 - 2.0**-20, 1.0, 1.0, 1.0):
            part = self.ranged((self.typed(rest, "f32") * reciprocal * factor).to("i64"), LIMITS[i64])
            quotient = self.integer("add", quotient, part, i64)
            rest = self.integer("sub", rest, self.integer("mul", part, b, i64), i64)
        for test, step in ((self.compare("lt", rest, 0), -1), (self.compare("ge", rest, b), 1)):
            quotient = self.where(test, self.integer("add", quotient, step, i64), quotient, i64)
            rest = self.where(test, self.integer("sub" if step > 0 else "add", rest, b, i64), rest, i64)
        if name == "truncdiv":
            up = self.logic("and", self.compare("lt", a, 0), self.compare("ne", rest, 0))
            quotient = self.where(up, self.integer("add", quotient, 1, i64), quotient, i64)
        return quotient, rest

    def _remainder_by_data(self, name, a, b, dtype):
        low, high = self.range(b)
        type = torch.int32 if fits((low, high)) else dtype
        quotient, rest = self._divide_by_data(name, a, b, dtype)
        if name == "floordiv" and low >= 0 and type == torch.int32:
            return self.ranged(rest, (0, max(high - 1, 0)))
        rest = self.integer("sub", a, self.integer("mul", quotient, b, type), type)
        if name == "floordiv" and isinstance(rest, Value):
            self.ranged(rest, (min(low + 1, 0), max(high - 1, 0)))
        return rest

    def remainder(self, name, a, b, dtype):
        """With the sign of the divisor ("floordiv") or the dividend ("truncdiv")."""
        b = self.known(b)
        if isinstance(b, Value):
            return self._remainder_by_data(name, a, b, dtype)
        quotient = self.divide(name, a, b, dtype)
        rest = self.integer("sub", a, self.integer("mul", quotient, b, dtype), dtype)
        if isinstance(rest, Value):
            low, high = (0, abs(b) - 1)
            if name == "floordiv" and b < 0:
                low, high = b + 1, 0
            elif name == "truncdiv" and self.range(a)[0] < 0:
                low = -high
            self.ranged(rest, (low, high))
        return rest

    def known(self, x):
        """The number in a captured scalar, if it is one: the region is then made for it."""
        tensor = getattr(x, "scalar", None)
        if tensor is None:
            return x
        if self._reads is not None:
            self._reads.add(tensor)
        return tensor.item()

    def absolute(self, x, dtype):
        low, high = self.range(x)
        if low >= 0:
            return x
        if not isinstance(x, Value):
            return self._wrap_number(abs(x), dtype)
        value = self.add(f"math.absi {x.name} : {x.type}", x.type)
        found = 0, max(-low, high)
        # The smallest one has no other sign.
        return self.ranged(value, found) if fits(found, LIMITS[dtype]) else \
            self._wrapped(self.ranged(value, LIMITS[torch.int64 if x.type == "i64" else torch.int32]), dtype)

    def compare(self, name, a, b):
        values = [x for x in (a, b) if isinstance(x, Value)]
        if not values:
            return _COMPARED[name](a, b)
        if all(x.type == "i1" for x in values):
            return self._compare_flags(name, a, b)
        if any(x.is_float for x in values) or any(isinstance(x, float) for x in (a, b)):
            type = "f32"
        else:
            ranges = self.range(a), self.range(b)
            known = self._decided(name, *ranges)
            if known is not None:
                return known
            type = "i32" if all(map(fits, ranges)) else "i64"
            self.is_wide = self.is_wide or type == "i64"
        lhs, rhs = self.typed(a, type), self.typed(b, type)
        return lhs._compare(rhs, name)

    def _compare_flags(self, name, a, b):
        if name in ("eq", "ne") and all(isinstance(x, Value) or x in (0, 1) for x in (a, b)):
            different = self.logic("xor", a, b)
            return different if name == "ne" else self.negate(different)
        as_int = [self.ranged(x.to("i32"), (0, 1)) if isinstance(x, Value) else x for x in (a, b)]
        return self.compare(name, *as_int)

    @staticmethod
    def _decided(name, a, b):
        """What ranges alone say of a comparison, if anything."""
        if name in ("lt", "ge"):
            result = True if a[1] < b[0] else False if a[0] >= b[1] else None
            return result if name == "lt" or result is None else not result
        if name in ("gt", "le"):
            result = True if a[0] > b[1] else False if a[1] <= b[0] else None
            return result if name == "gt" or result is None else not result
        if a[1] < b[0] or b[1] < a[0]:
            return name == "ne"
        return None

    # Flags

    def logic(self, name, a, b):
        """"and", "or" or "xor" of flags."""
        if not isinstance(a, Value):
            a, b = b, a
        if not isinstance(a, Value):
            return bool(_INTEGERS[name][2](bool(a), bool(b)))
        if not isinstance(b, Value):
            if name == "xor":
                return self.negate(a) if b else a
            return a if bool(b) == (name == "and") else bool(b)
        if a is b:
            return False if name == "xor" else a
        return self.add(f"arith.{_INTEGERS[name][0]} {a.name}, {b.name} : i1", "i1")

    def negate(self, a):
        if not isinstance(a, Value):
            return not a
        true = self.constant(True, "i1")
        return self.add(f"arith.xori {a.name}, {true.name} : i1", "i1")

    def where(self, condition, a, b, dtype):
        """a where the condition holds, else b; and/or where these say it."""
        if not isinstance(condition, Value):
            return a if condition else b
        if dtype == torch.bool:
            if not isinstance(a, Value):
                return self.logic("or", condition, b) if a else self.logic("and", self.negate(condition), b)
            if not isinstance(b, Value):
                return self.logic("or", self.negate(condition), a) if b else self.logic("and", condition, a)
        elif a is b:
            return a
        if is_float(dtype):
            type, found = "f32", None
        elif dtype == torch.bool:
            type, found = "i1", (0, 1)
        else:
            ranges = self.range(a), self.range(b)
            found = min(r[0] for r in ranges), max(r[1] for r in ranges)
            type = "i32" if fits(found) else "i64"
        lhs, rhs = self.typed(a, type), self.typed(b, type)
        value = self.add(f"arith.select {condition.name}, {lhs.name}, {rhs.name} : {type}", type)
        if type == "f32":
            value.chosen = condition, a, b
        return value if found is None else self.ranged(value, found)

    # Floats

    def stopped(self, x):
        """x, but no gradient goes through it: bits are integers, which have none. That is all
        they are for, the two are gone where kernels are made of the lines."""
        if not isinstance(x, Value) or x.type != "f32" or not self.moves(x):
            return x
        bits = self.add(f"arith.bitcast {x.name} : f32 to i32", "i32")
        return self.add(f"arith.bitcast {bits.name} : i32 to f32", "f32")

    def moves(self, x):
        """Whether x may have a gradient: it is computed from the score or captured floats,
        and not by way of integers, flags or stopped()."""
        definitions = dict(line.split(" = ", 1) for line in self.text)
        seen, rest = set(), [x.name]
        while rest:
            name = rest.pop()
            definition = definitions.get(name, "")
            if name == "%x" or _FLOATS_LOADED.match(definition):
                return True
            if name not in seen and not definition.startswith(_STOPPING):
                seen.add(name)
                rest += NAMES.findall(definition)
        return False

    def function(self, name, *operands):
        """An operation of math or arith on f32."""
        operands = [self.typed(x, "f32") for x in operands]
        listed = ", ".join(x.name for x in operands)
        return self.add(f"{name} {listed} : f32", "f32")

    def float_extreme(self, name, a, b):
        """The larger or smaller one, NaN where one is."""
        return self.function(f"arith.{name}f", a, b)

    def bounded(self, x, low=None, high=None):
        """x, but not below or above a number; there, and beyond, no gradient goes to x. The
        number is what math.clampf clamps, as a value on a bound has all of its gradients;
        kernels have a maximum or a minimum."""
        if low is not None:
            x = self.clamped(low, x, math.inf)
        return x if high is None else self.clamped(high, -math.inf, x)

    def clamped(self, *operands):
        """math.clampf: a value on a bound has the gradient."""
        value, low, high = (self.typed(x, "f32").name for x in operands)
        return self.add(f"math.clampf {value} to [{low}, {high}] : f32", "f32")

    def power(self, base, exponent):
        exponent = self.known(exponent)
        if isinstance(exponent, Value):
            if not isinstance(base, Value) and base == 2:
                return self.function("math.exp2", exponent)
            return self.function("math.powf", base, exponent)
        base = self.typed(base, "f32")
        if exponent == int(exponent) and abs(exponent) <= _MAX_MULTIPLIED:
            return self._integer_power(base, int(exponent))
        if exponent in (0.5, -0.5):
            return self.function("math.sqrt" if exponent > 0 else "math.rsqrt", base)
        return self.function("math.powf", base, exponent)

    def _integer_power(self, base, exponent):
        result, square, rest = None, base, abs(exponent)
        while rest:
            if rest & 1:
                result = square if result is None else result * square
            rest >>= 1
            square = square * square if rest else square
        if result is None:
            return 1.0
        return self.typed(1.0, "f32") / result if exponent < 0 else result

    def integer_power(self, base, exponent, dtype):
        exponent = self.known(exponent)
        if isinstance(exponent, Value) and not isinstance(base, Value) and base == 2:
            return self.shift("shl", 1, exponent, dtype)
        if isinstance(exponent, Value):
            raise TypeError("a power of integers wants a constant exponent, or 2 as its base: make the base a float")
        if exponent < 0:
            raise ValueError("integers to negative powers are not integers: make the base a float")
        if exponent > 64:
            raise ValueError(f"wanted an exponent up to 64, got {exponent}")
        result = 1
        for _ in range(exponent):
            result = self.integer("mul", result, base, dtype)
        return result

    # Finishing

    def finished(self, result):
        """The lines that `result` needs, in order, with values numbered anew."""
        definitions = dict(line.split(" = ", 1) for line in self.text)
        needed, rest = set(), [result.name]
        while rest:
            name = rest.pop()
            if name in definitions and name not in needed:
                needed.add(name)
                rest += NAMES.findall(definitions[name])
        names = {}
        for name in definitions:
            if name in needed:
                names[name] = f"%v{len(names)}"

        def renamed(text):
            return NAMES.sub(lambda match: names.get(match[0], match[0]), text)
        lines = [f"{names[name]} = {renamed(definitions[name])}" for name in definitions if name in needed]
        return [*lines, f"attn.yield {renamed(result.name)} : {result.type}"]
