#===----------------------------------------------------------------------===#
#
# Part of attn, an attention compiler.
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===----------------------------------------------------------------------===#
"""Score and mask regions written as Python functions of a position.

    mask = lambda p: (p.j <= p.i) & (p.ids[p.b, p.i] == p.ids[p.b, p.j])
    attn.attention("bf16", 128, captures=[("ids", "tensor<?x?xi32>")], mask=mask)

A function gets one argument: its attributes are b, h, i and j, x in a score, the
captures by their names, and the sizes queries, keys and heads (offset is keys -
queries). It is called once, when the program is made; what it does with these
values becomes lines of MLIR. Python's if, and, or and not cannot be seen that way:
use where(), &, | and ~. Integers are i32 unless captured otherwise; a float among
them, 1e9 or 2.0, makes floats of them.
"""

import re

from . import elements
from .elements import FLOATS, WIDTHS

_NAMES = re.compile(r"%\w+")
_COMPARISONS = {"eq": ("eq", "oeq"), "ne": ("ne", "une"), "lt": ("slt", "olt"),
                "le": ("sle", "ole"), "gt": ("sgt", "ogt"), "ge": ("sge", "oge")}
# inf, -inf and NaN as MLIR writes them, and the largest finite number.
_SPECIAL = {"f16": ("0x7C00", "0xFC00", "0x7E00", 65504.0),
            "bf16": ("0x7F80", "0xFF80", "0x7FC0", 3.3895313892515355e38),
            "f32": ("0x7F800000", "0xFF800000", "0x7FC00000", 3.4028234663852886e38)}


class Lines:
    """The code of one region while it is written."""

    def __init__(self):
        self.text = []

    def add(self, operation, type):
        value = Value(self, f"%v{len(self.text)}", type)
        self.text.append(f"{value.name} = {operation}")
        return value

    def constant(self, number, type):
        if type in FLOATS:
            return self.add(f"arith.constant {_literal(float(number), type)} : {type}", type)
        if type == "i1":
            return self.add(f"arith.constant {str(bool(number)).lower()}", type)
        limit = 2 ** (WIDTHS[type] - 1)
        if not -limit <= number < limit:
            raise OverflowError(f"{number} does not fit {type}: write it as a float, or let the "
                                "other side be wider, as in .to('i64')")
        return self.add(f"arith.constant {number} : {type}", type)

    def reaches(self, name, result):
        """Whether `result` is computed from `name`."""
        definitions = dict(line.split(" = ", 1) for line in self.text)
        seen, rest = set(), [result]
        while rest:
            value = rest.pop()
            if value not in seen:
                seen.add(value)
                rest += _NAMES.findall(definitions.get(value, ""))
        return name in seen


def _literal(number, type):
    infinity, negative, nan, largest = _SPECIAL[type]
    if number != number:
        return nan
    if number in (float("inf"), float("-inf")):
        return infinity if number > 0 else negative
    if abs(number) > largest:
        raise OverflowError(f"{number} does not fit {type}")
    return f"{number:.17e}"


def is_flag(value):
    """True and False, NumPy's too."""
    return isinstance(value, bool) or type(value).__name__ in ("bool", "bool_")


def describe(value):
    """What a mistaken value is, for a message."""
    if isinstance(value, Capture):
        name = value.name[1:]
        return f"the captured tensor {name!r} as a whole: index it, as in p.{name}[p.j]"
    if isinstance(value, Value):
        return f"a flag ({value.type})" if value.type == "i1" else f"a number ({value.type})"
    return repr(value) if isinstance(value, (str, bool, int, float)) else type(value).__name__


def number(value):
    """A Python number, of NumPy's too; a float stays one, also where it is whole."""
    if type(value).__module__ == "numpy" and getattr(value, "shape", None) == ():
        value = value.item()
    if isinstance(value, (bool, int, float)):
        return value
    raise TypeError(f"wanted a number or a value of the region, got {describe(value)}")


class Value:
    """A scalar of a region."""

    __array_ufunc__ = None  # NumPy's numbers leave operators to the methods here

    def __init__(self, lines, name, type):
        self.lines, self.name, self.type = lines, name, type

    @property
    def is_float(self):
        return self.type in FLOATS

    def __bool__(self):
        raise TypeError("a value of a region is not known here: use where(), &, | and ~")

    def _binary(self, other, integer, real, flipped=False):
        lhs, rhs = _alike(self, other)
        if flipped:
            lhs, rhs = rhs, lhs
        name = real if lhs.is_float else integer
        if name is None:
            raise TypeError(f"no such operation on {lhs.type}")
        if lhs.type == "i1" and integer not in ("andi", "ori", "xori"):
            raise TypeError("wanted numbers, got flags (i1): use where() or .to()")
        return self.lines.add(f"arith.{name} {lhs.name}, {rhs.name} : {lhs.type}", lhs.type)

    def _compare(self, other, name):
        lhs, rhs = _alike(self, other)
        if lhs.type == "i1" and name not in ("eq", "ne"):
            raise TypeError("wanted numbers, got flags (i1): use where() or .to()")
        kind = "cmpf" if lhs.is_float else "cmpi"
        predicate = _COMPARISONS[name][lhs.is_float]
        return self.lines.add(f"arith.{kind} {predicate}, {lhs.name}, {rhs.name} : {lhs.type}", "i1")

    def _divide(self, other, name):
        if not isinstance(other, Value):
            other = number(other)
        if self.is_float or not isinstance(other, int) or is_flag(other) or other in (0, -1):
            raise TypeError("// and % want integers and a constant other than 0 and -1")
        return self._binary(other, name, None)

    def __add__(self, other):
        return self._binary(other, "addi", "addf")

    def __radd__(self, other):
        return self._binary(other, "addi", "addf", flipped=True)

    def __sub__(self, other):
        return self._binary(other, "subi", "subf")

    def __rsub__(self, other):
        return self._binary(other, "subi", "subf", flipped=True)

    def __mul__(self, other):
        return self._binary(other, "muli", "mulf")

    def __rmul__(self, other):
        return self._binary(other, "muli", "mulf", flipped=True)

    def __truediv__(self, other):
        return _real(self)._binary(other, None, "divf")

    def __rtruediv__(self, other):
        return _real(self)._binary(other, None, "divf", flipped=True)

    def __floordiv__(self, other):
        return self._divide(other, "floordivsi")

    def __mod__(self, other):
        """With the sign of the divisor, as Python has it."""
        return self - self // other * other

    def __and__(self, other):
        return self._binary(other, "andi", None)

    def __or__(self, other):
        return self._binary(other, "ori", None)

    def __xor__(self, other):
        return self._binary(other, "xori", None)

    __rand__, __ror__, __rxor__ = __and__, __or__, __xor__

    def _shift(self, other, name):
        if not isinstance(other, Value) and not 0 <= number(other) < WIDTHS[self.type]:
            raise TypeError(f"wanted a shift by 0 to {WIDTHS[self.type] - 1}, got {other}")
        return self._binary(other, name, None)

    def __lshift__(self, other):
        return self._shift(other, "shli")

    def __rshift__(self, other):
        return self._shift(other, "shrsi")

    def __invert__(self):
        return self._binary(-1 if self.type != "i1" else True, "xori", None)

    def __neg__(self):
        if self.is_float:
            return self.lines.add(f"arith.negf {self.name} : {self.type}", self.type)
        return 0 - self

    def __abs__(self):
        name = "math.absf" if self.is_float else "math.absi"
        return self.lines.add(f"{name} {self.name} : {self.type}", self.type)

    def __eq__(self, other):
        return self._compare(other, "eq")

    def __ne__(self, other):
        return self._compare(other, "ne")

    def __lt__(self, other):
        return self._compare(other, "lt")

    def __le__(self, other):
        return self._compare(other, "le")

    def __gt__(self, other):
        return self._compare(other, "gt")

    def __ge__(self, other):
        return self._compare(other, "ge")

    __hash__ = None

    def to(self, type):
        """Converted; a flag becomes 0 or 1, a float loses its fraction."""
        type = elements.element(type)
        if type == self.type:
            return self
        wider = WIDTHS[type] > WIDTHS[self.type]
        if self.is_float and type in FLOATS:
            if WIDTHS[type] == WIDTHS[self.type]:
                return self.to("f32").to(type)
            name = "extf" if wider else "truncf"
        elif self.is_float:
            if type == "i1":
                raise TypeError("a float is no flag: compare it")
            name = "fptosi"
        elif type in FLOATS:
            name = "uitofp" if self.type == "i1" else "sitofp"
        elif wider:
            name = "extui" if self.type == "i1" else "extsi"
        else:
            name = "trunci"
        return self.lines.add(f"arith.{name} {self.name} : {self.type} to {type}", type)


class Capture:
    """A captured tensor: t[p.b, p.j] reads an element, 0 outside."""

    __array_ufunc__ = None
    __hash__ = __iter__ = None

    def __init__(self, lines, name, type):
        self.lines, self.name, self.type = lines, name, type
        self.sizes, self.element = elements.shape_and_element(type)
        self.rank = len(self.sizes)

    def _names(self, indices, sizes):
        indices = indices if isinstance(indices, tuple) else (indices,)
        if len(indices) != len(sizes):
            raise IndexError(f"{self.type} wants {len(sizes)} indices here, got {len(indices)}")
        return ", ".join(self._index(index, size).name for index, size in zip(indices, sizes))

    def _index(self, index, size):
        if not isinstance(index, Value):
            index = number(index)
            if isinstance(index, int) and not 0 <= index < (2**31 if size is None else size):
                raise IndexError(f"index {index} of {self.name[1:]!r}, {self.type}, is out of range")
        if index.is_float if isinstance(index, Value) else isinstance(index, float):
            raise TypeError(f"wanted integers as indices, got {describe(index)}: "
                            "use // for /, or .to('i32')")
        return (index if isinstance(index, Value) else self.lines.constant(index, "i32")).to("i32")

    def __getitem__(self, indices):
        names = self._names(indices, self.sizes)
        return self.lines.add(f"attn.capture_load {self.name}[{names}] : {self.type}", self.element)

    def upto(self, value, *leading):
        """How many elements are <= value in the row that the leading indices
        give; it has to be sorted."""
        names = self._names(leading, self.sizes[:-1])
        value = value if isinstance(value, Value) else self.lines.constant(number(value), "i32")
        if value.is_float:
            raise TypeError(f"wanted an integer to search for, got {describe(value)}")
        return self.lines.add(
            f"attn.capture_search {self.name}[{names}], {value.to('i32').name} : {self.type}", "i32")

    def _refuse(self, *_):
        raise TypeError(f"wanted a number, got {describe(self)}")

    __bool__ = __eq__ = __ne__ = __lt__ = __le__ = __gt__ = __ge__ = _refuse
    __add__ = __sub__ = __mul__ = __truediv__ = __and__ = __or__ = __neg__ = __invert__ = _refuse
    __radd__ = __rsub__ = __rmul__ = __rtruediv__ = __rand__ = __ror__ = _refuse


def _real(value):
    if not isinstance(value, Value):
        raise TypeError(f"wanted a value of the region, got {describe(value)}")
    return value if value.is_float else value.to("f32")


def _alike(lhs, rhs):
    """Both of one type: floats win, then the wider; numbers take the other's,
    but no float becomes an integer."""
    if not isinstance(lhs, Value) and not isinstance(rhs, Value):
        raise TypeError(f"wanted a value of the region, got {describe(lhs)} and {describe(rhs)}")
    if not isinstance(lhs, Value):
        rhs, lhs = _alike(rhs, lhs)
        return lhs, rhs
    if not isinstance(rhs, Value):
        rhs = number(rhs)
        if lhs.type == "i1" and not isinstance(rhs, float) and rhs in (0, 1):
            rhs = bool(rhs)
        if is_flag(rhs) != (lhs.type == "i1"):
            raise TypeError(f"wanted two flags or two numbers, got {describe(lhs)} and {rhs}: "
                            "use where(), or .to() for 0 and 1")
        if isinstance(rhs, float) and not lhs.is_float:
            lhs = lhs.to("f32")
        return lhs, lhs.lines.constant(rhs, lhs.type)
    if lhs.type == rhs.type:
        return lhs, rhs
    if "i1" in (lhs.type, rhs.type):
        raise TypeError(f"wanted two flags or two numbers, got {describe(lhs)} and {describe(rhs)}: "
                        "use where(), or .to() for 0 and 1")
    if lhs.is_float or rhs.is_float:
        type = lhs.type if not rhs.is_float else rhs.type if not lhs.is_float else "f32"
    else:
        type = max(lhs.type, rhs.type, key=WIDTHS.get)
    return lhs.to(type), rhs.to(type)


def where(condition, if_true, if_false):
    """if_true where the condition holds, else if_false."""
    if not isinstance(condition, Value) or condition.type != "i1":
        raise TypeError("where() wants a comparison first")
    lines = condition.lines
    if not isinstance(if_true, Value) and not isinstance(if_false, Value):
        both = [number(if_true), number(if_false)]
        if is_flag(both[0]) != is_flag(both[1]):
            raise TypeError(f"wanted two flags or two numbers, got {both[0]} and {both[1]}")
        type = "i1" if all(map(is_flag, both)) else (
            "i32" if all(isinstance(v, int) for v in both) else "f32")
        if_true = lines.constant(both[0], type)
    lhs, rhs = _alike(if_true, if_false)
    return lines.add(f"arith.select {condition.name}, {lhs.name}, {rhs.name} : {lhs.type}", lhs.type)


def minimum(lhs, rhs):
    lhs, rhs = _alike(lhs, rhs)
    return lhs._binary(rhs, "minsi", "minnumf")


def maximum(lhs, rhs):
    lhs, rhs = _alike(lhs, rhs)
    return lhs._binary(rhs, "maxsi", "maxnumf")


def clip(value, low, high):
    return minimum(maximum(value, low), high)


def _function(name):
    def call(value):
        value = _real(value)
        return value.lines.add(f"math.{name} {value.name} : {value.type}", value.type)
    call.__name__ = name
    return call


exp, exp2, log, log2, tanh, sqrt, sin, cos, floor = (
    _function(name) for name in
    ("exp", "exp2", "log", "log2", "tanh", "sqrt", "sin", "cos", "floor"))
