#===----------------------------------------------------------------------===#
#
# Part of attn, an attention compiler.
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===----------------------------------------------------------------------===#
"""Lines of a region at many positions at once, for debug.py.

Integers and flags are exact. A value may be unknown (None): the score, and what
operations make that are not listed here. Each value knows where it depends on an
element out of range: its taint. A select, a conjunction or a factor of 0 that drops
the element drops the taint.
"""

import collections
import re

Known = collections.namedtuple("Known", "value taint")

_LINE = re.compile(r"%([\w.$-]+)\s*=\s*([\w.]+)\s*(.*)")
_NAMES = re.compile(r"%([\w.$-]+)")
# What NumPy computes with.
TYPES = {"i1": "bool", "i8": "int8", "i16": "int16", "i32": "int32", "i64": "int64",
          "f16": "float16", "bf16": "float32", "f32": "float32"}
_ORDERS = {"eq": "equal", "ne": "not_equal", "lt": "less", "le": "less_equal",
           "gt": "greater", "ge": "greater_equal"}
# Of NumPy, on operands of one type.
_SIMPLE = {
    "addi": "add", "subi": "subtract", "muli": "multiply", "minsi": "minimum", "maxsi": "maximum",
    "ori": "bitwise_or", "andi": "bitwise_and", "xori": "bitwise_xor", "shli": "left_shift",
    "shrsi": "right_shift", "floordivsi": "floor_divide", "absi": "absolute", "addf": "add",
    "subf": "subtract", "mulf": "multiply", "divf": "divide", "negf": "negative", "absf": "absolute",
}
_UNSIGNED = {"divui": "floor_divide", "remui": "remainder", "minui": "minimum", "maxui": "maximum",
             "shrui": "right_shift"}


class Region:
    """The values of a region, by name."""

    def __init__(self, numpy, captured, scalars):
        """`captured` tensors, and scalars, which may differ by position."""
        self.numpy, self.captured = numpy, captured
        self.values = {name: Known(value, numpy.False_) for name, value in scalars.items()}
        self.strays = []  # (capture, dimension, its size, indices, where they are out of range)

    def run(self, lines):
        """What the region yields."""
        with self.numpy.errstate(all="ignore"):
            for line in lines:
                line = line.split("//")[0].strip()
                if line.startswith("attn.yield"):
                    return self._named(_NAMES.search(line)[1])
                match = _LINE.match(line)
                if match:
                    self.values[match[1]] = self._evaluate(match[2], match[3])
        return self._unknown([])

    def describe(self, where, shape):
        """The first index out of range at a position of as many."""
        for name, dim, size, index, outside in self.strays:
            if self.numpy.broadcast_to(outside, shape)[where]:
                index = int(self.numpy.broadcast_to(index, shape)[where])
                return (f"capture {name!r}: index {index} of dimension {dim}, which has {size} "
                        "elements, is read")
        raise AssertionError("a taint without a source")

    def _named(self, name):
        return self.values.get(name) or self._unknown([])

    def _unknown(self, operands):
        taint = self.numpy.False_
        for operand in operands:
            taint = taint | operand.taint
        return Known(None, taint)

    def _evaluate(self, operation, rest):
        dialect, _, name = operation.partition(".")
        if name in ("capture_load", "capture_search"):
            return self._load(name, rest)
        body, _, types = rest.rpartition(":")
        types = [type.strip() for type in types.split(" to ")]
        if name == "constant":
            return self._constant(body or rest, types[0])
        operands = [self._named(operand) for operand in _NAMES.findall(body)]
        if name == "select":
            return self._select(*operands)
        value = None
        if all(operand.value is not None for operand in operands):
            value = self._value(name, body, types, [operand.value for operand in operands])
        return Known(value, self._taint(name, types[0], operands))

    def _constant(self, text, type):
        text = text.strip()
        if text in ("true", "false"):
            return Known(self.numpy.asarray(text == "true"), self.numpy.False_)
        if type not in TYPES or text.startswith("0x"):
            return self._unknown([])
        number = float(text) if "f" in type else int(text)
        return Known(self.numpy.asarray(number).astype(TYPES[type]), self.numpy.False_)

    def _select(self, condition, if_true, if_false):
        numpy = self.numpy
        if condition.value is None:
            return self._unknown([condition, if_true, if_false])
        taint = condition.taint | numpy.where(condition.value, if_true.taint, if_false.taint)
        if if_true.value is None or if_false.value is None:
            return Known(None, taint)
        return Known(numpy.where(condition.value, if_true.value, if_false.value), taint)

    def _taint(self, name, type, operands):
        taint = self._unknown(operands).taint
        if len(operands) != 2:
            return taint
        # What an operand leaves to the other's say.
        if type == "i1" and name in ("andi", "ori"):
            drops = (lambda value: ~value) if name == "andi" else (lambda value: value)
        elif name in ("muli", "mulf", "andi"):
            drops = (lambda value: value == 0)
        else:
            return taint
        for operand in operands:
            if operand.value is not None:
                taint = taint & ~(drops(operand.value) & ~operand.taint)
        return taint

    def _value(self, name, body, types, values):
        numpy = self.numpy
        if name in ("cmpi", "cmpf"):
            return self._compare(body.split(",")[0].strip(), values)
        if name in _SIMPLE and types[0] in TYPES:
            return getattr(numpy, _SIMPLE[name])(*values)
        if name in _UNSIGNED:
            signed = values[0].dtype
            unsigned = [value.astype(f"uint{8 * signed.itemsize}") for value in values]
            return getattr(numpy, _UNSIGNED[name])(*unsigned).astype(signed)
        if name in ("divsi", "remsi"):
            quotient = numpy.trunc(values[0] / values[1]).astype(values[0].dtype)
            return quotient if name == "divsi" else values[0] - quotient * values[1]
        if name == "ceildivsi":
            return values[0] // values[1] + (values[0] % values[1] != 0)
        target = types[-1]
        if name in ("extsi", "trunci", "sitofp", "extf", "truncf", "fptosi") and target in TYPES:
            if name in ("extsi", "sitofp") and types[0] == "i1":
                values = [-values[0].astype("int8")]
            if name == "trunci" and target == "i1":
                return (values[0] & 1).astype(bool)
            return values[0].astype(TYPES[target])
        if name in ("extui", "uitofp") and target in TYPES:
            size = values[0].dtype.itemsize
            values = values if types[0] == "i1" else [values[0].astype(f"uint{8 * size}")]
            return values[0].astype(TYPES[target])
        return None

    def _compare(self, predicate, values):
        numpy = self.numpy
        if predicate in _ORDERS:
            return getattr(numpy, _ORDERS[predicate])(*values)
        kind, order = predicate[0], predicate[1:]
        if order not in _ORDERS:
            return None
        if kind == "u" and values[0].dtype.kind == "i":
            values = [value.astype(f"uint{8 * value.dtype.itemsize}") for value in values]
        result = getattr(numpy, _ORDERS[order])(*values)
        if values[0].dtype.kind == "f":
            unordered = numpy.isnan(values[0]) | numpy.isnan(values[1])
            result = result | unordered if kind == "u" else result & ~unordered
        return result

    def _load(self, name, rest):
        numpy = self.numpy
        buffer, *operands = _NAMES.findall(rest)
        array = self.captured[buffer]
        values = [self._named(operand) for operand in operands]
        taint = self._unknown(values).taint
        if any(value.value is None for value in values):
            return Known(None, taint)
        indices = values if name == "capture_load" else values[:-1]
        inside, clipped = numpy.True_, []
        for dim, (index, size) in enumerate(zip(indices, array.shape)):
            outside = (index.value < 0) | (index.value >= size)
            self.strays.append((buffer, dim, size, index.value, outside))
            inside, taint = inside & ~outside, taint | outside
            clipped.append(numpy.clip(index.value, 0, max(size - 1, 0)))
        if 0 in array.shape:
            return Known(numpy.zeros((), array.dtype if name == "capture_load" else "int32"), taint)
        if name == "capture_load":
            value = array[tuple(clipped)] if clipped else array
            return Known(numpy.where(inside, value, numpy.zeros((), array.dtype)), taint)
        if any(index.ndim for index in clipped):
            return Known(None, taint)  # rows that differ by position
        counted = numpy.searchsorted(array[tuple(clipped)], values[-1].value, side="right")
        return Known(numpy.where(inside, counted, 0).astype("int32"), taint)
