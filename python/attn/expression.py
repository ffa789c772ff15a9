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

A function gets one argument: its attributes are b, h, i and j, x in a score,
and the captures by their names. It is called once, when the program is made;
what it does with these values becomes lines of MLIR. Python's if, and, or and
not cannot be seen that way: use where(), &, | and ~.
"""

_COMPARISONS = {"eq": ("eq", "oeq"), "ne": ("ne", "une"), "lt": ("slt", "olt"),
                "le": ("sle", "ole"), "gt": ("sgt", "ogt"), "ge": ("sge", "oge")}
_FLOATS = {"f16": 16, "bf16": 16, "f32": 32}
_WIDTHS = {"i1": 1, "i8": 8, "i16": 16, "i32": 32, "i64": 64, **_FLOATS}


class Lines:
    """The code of one region while it is written."""

    def __init__(self):
        self.text = []

    def add(self, operation, type):
        value = Value(self, f"%v{len(self.text)}", type)
        self.text.append(f"{value.name} = {operation}")
        return value

    def constant(self, number, type):
        if type in _FLOATS:
            return self.add(f"arith.constant {_literal(float(number))} : {type}", type)
        if type == "i1":
            return self.add(f"arith.constant {str(bool(number)).lower()}", type)
        if number != int(number):
            raise TypeError(f"{number} is no {type}")
        return self.add(f"arith.constant {int(number)} : {type}", type)


def _literal(number):
    if number != number:
        return "0x7FC00000"
    if number in (float("inf"), float("-inf")):
        return "0x7F800000" if number > 0 else "0xFF800000"
    return f"{number:.17e}"


class Value:
    """A scalar of a region."""

    def __init__(self, lines, name, type):
        self.lines, self.name, self.type = lines, name, type

    @property
    def is_float(self):
        return self.type in _FLOATS

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
        kind = "cmpf" if lhs.is_float else "cmpi"
        predicate = _COMPARISONS[name][lhs.is_float]
        return self.lines.add(f"arith.{kind} {predicate}, {lhs.name}, {rhs.name} : {lhs.type}", "i1")

    def _divide(self, other, name):
        if self.is_float or isinstance(other, Value) or other != int(other) or other in (0, -1):
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

    def __lshift__(self, other):
        return self._binary(other, "shli", None)

    def __rshift__(self, other):
        return self._binary(other, "shrsi", None)

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
        if type == self.type:
            return self
        if type not in _WIDTHS:
            raise TypeError(f"wanted one of {', '.join(_WIDTHS)}, got {type}")
        wider = _WIDTHS[type] > _WIDTHS[self.type]
        if self.is_float and type in _FLOATS:
            if _WIDTHS[type] == _WIDTHS[self.type]:
                return self.to("f32").to(type)
            name = "extf" if wider else "truncf"
        elif self.is_float:
            if type == "i1":
                raise TypeError("a float is no flag: compare it")
            name = "fptosi"
        elif type in _FLOATS:
            name = "uitofp" if self.type == "i1" else "sitofp"
        elif wider:
            name = "extui" if self.type == "i1" else "extsi"
        else:
            name = "trunci"
        return self.lines.add(f"arith.{name} {self.name} : {self.type} to {type}", type)


class Capture:
    """A captured tensor: t[p.b, p.j] reads an element, 0 outside."""

    def __init__(self, lines, name, type):
        self.lines, self.name, self.type = lines, name, type
        *dims, self.element = type.removeprefix("tensor<").removesuffix(">").split("x")
        self.rank = len(dims)

    def _names(self, indices, rank):
        indices = indices if isinstance(indices, tuple) else (indices,)
        if len(indices) != rank:
            raise IndexError(f"{self.type} wants {rank} indices here, got {len(indices)}")
        values = [index if isinstance(index, Value) else self.lines.constant(index, "i32")
                  for index in indices]
        return ", ".join(value.to("i32").name for value in values)

    def __getitem__(self, indices):
        names = self._names(indices, self.rank)
        return self.lines.add(f"attn.capture_load {self.name}[{names}] : {self.type}", self.element)

    def upto(self, value, *leading):
        """How many elements are <= value in the row that the leading indices
        give; it has to be sorted."""
        names = self._names(leading, self.rank - 1)
        value = value if isinstance(value, Value) else self.lines.constant(value, "i32")
        return self.lines.add(
            f"attn.capture_search {self.name}[{names}], {value.to('i32').name} : {self.type}", "i32")


class Position:
    """What a function of a region gets."""


def _real(value):
    return value if value.is_float else value.to("f32")


def _alike(lhs, rhs):
    """Both of one type: floats win, then the wider; numbers take the other's."""
    if not isinstance(lhs, Value) and not isinstance(rhs, Value):
        raise TypeError("wanted a value of the region, got two numbers")
    if not isinstance(lhs, Value):
        rhs, lhs = _alike(rhs, lhs)
        return lhs, rhs
    if not isinstance(rhs, Value):
        if not lhs.is_float and lhs.type != "i1" and rhs != int(rhs):
            lhs = lhs.to("f32")
        return lhs, lhs.lines.constant(rhs, lhs.type)
    if lhs.type == rhs.type:
        return lhs, rhs
    if lhs.is_float or rhs.is_float:
        type = lhs.type if not rhs.is_float else rhs.type if not lhs.is_float else "f32"
    elif "i1" in (lhs.type, rhs.type):
        raise TypeError(f"wanted two flags or two numbers, got {lhs.type} and {rhs.type}")
    else:
        type = max(lhs.type, rhs.type, key=_WIDTHS.get)
    return lhs.to(type), rhs.to(type)


def where(condition, if_true, if_false):
    """if_true where the condition holds, else if_false."""
    if not isinstance(condition, Value) or condition.type != "i1":
        raise TypeError("where() wants a comparison first")
    lines = condition.lines
    if not isinstance(if_true, Value) and not isinstance(if_false, Value):
        both = (if_true, if_false)
        type = "i1" if all(isinstance(v, bool) for v in both) else (
            "i32" if all(isinstance(v, int) for v in both) else "f32")
        if_true = lines.constant(if_true, type)
    lhs, rhs = _alike(if_true, if_false)
    return lines.add(f"arith.select {condition.name}, {lhs.name}, {rhs.name} : {lhs.type}", lhs.type)


def minimum(lhs, rhs):
    value = lhs if isinstance(lhs, Value) else rhs
    return value._binary(rhs if value is lhs else lhs, "minsi", "minnumf")


def maximum(lhs, rhs):
    value = lhs if isinstance(lhs, Value) else rhs
    return value._binary(rhs if value is lhs else lhs, "maxsi", "maxnumf")


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


def trace(function, captures, is_score):
    """The lines of a region that computes `function` of a position."""
    lines, position = Lines(), Position()
    for name in ("b", "h", "i", "j"):
        setattr(position, name, Value(lines, "%" + name, "i32"))
    if is_score:
        position.x = Value(lines, "%x", "f32")
    for name, type in captures:
        if hasattr(position, name):
            raise ValueError(f"a capture cannot be called {name!r}")
        kind = Capture if type.startswith("tensor<") else Value
        setattr(position, name, kind(lines, "%" + name, type))
    result, type = function(position), "f32" if is_score else "i1"
    if not isinstance(result, Value):
        result = lines.constant(result, type)
    if not is_score and result.type != "i1":
        raise TypeError(f"a mask wants a comparison or a flag, got {result.type}")
    result = result.to(type)
    return "\n".join([*lines.text, f"attn.yield {result.name} : {type}"])
