#===----------------------------------------------------------------------===#
#
# Part of attn, an attention compiler.
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===----------------------------------------------------------------------===#
"""Fused attention on NumPy arrays: programs, their kernels, and what kernels want of
arrays.

A program has *steps*, what happens to a score between Q Kᵀ and the softmax, in order:

    ("multiply", number)            x * number
    ("softcap", number)             number * tanh(x / number)
    ("add", array)                  x + array
    ("select", array, number)       x where the array of flags holds, else the number

The arrays broadcast to the scores, (batch, heads, queries, keys), as NumPy's do. A
kernel is compiled once for each text and kept in this process.
"""

import functools
import math

import numpy

from .. import attention as program
from .. import compile, elements, expression, masks

LARGEST_HEAD = 256
_KEPT = 256  # kernels


class Refused(NotImplementedError):
    """What the kernels cannot do as it was asked for; the message says why."""


def element(what, array, wanted=("f16", "bf16", "f32")):
    """MLIR's name of an array's elements, or Refused."""
    if array.dtype.name == "float64":
        raise Refused(f"{what}: kernels compute in f32, got float64: the result would be less "
                      "precise than its type says")
    try:
        return elements.element(array.dtype, wanted)
    except ValueError as error:
        raise Refused(f"{what}: {error}") from None


def readable(array):
    """The array, or a copy where kernels cannot take its strides: rows lie at once."""
    size = array.itemsize
    strides = [stride for stride, length in zip(array.strides, array.shape) if length != 1]
    is_row = array.shape[-1] == 1 or array.strides[-1] == size
    if is_row and array.flags.aligned and all(s >= 0 and s % size == 0 for s in strides):
        return array
    return numpy.ascontiguousarray(array)


@functools.lru_cache(maxsize=_KEPT)
def kernel(text):
    """The kernel of a text, compiled when it is asked for first."""
    return compile(text, target="cpu")


class _Operands:
    """The captures of a program, and what they are in this launch."""

    def __init__(self):
        self.types, self.values = [], []

    def _add(self, type, value):
        name = f"c{len(self.types)}"
        self.types.append((name, type))
        self.values.append(value)
        return name

    def number(self, value):
        """The name of an i32."""
        return self._add("i32", int(value))

    def array(self, array, kinds):
        """A function from a position to the element of an array that broadcasts;
        dimensions of one element have no index."""
        letters = [letter for letter, size in zip("bhij"[4 - array.ndim:], array.shape) if size != 1]
        sizes = [size for size in array.shape if size != 1]
        kind = element("a mask", array, kinds)
        values = readable(array.reshape(sizes or [1]))
        name = self._add(f"tensor<{'?x' * values.ndim}{kind}>", values)
        return lambda p: getattr(p, name)[tuple(getattr(p, letter) for letter in letters) or 0]


def _score(steps, operands):
    """(score, mask): functions of a position, None where there is nothing to do.
    Keys that the last steps hide are masked, so that kernels may pass over them."""
    parts, shown = [], []
    for number, (name, *values) in enumerate(steps):
        if name == "multiply":
            parts.append(lambda p, by=values[0]: p.x * float(by))
        elif name == "softcap":
            parts.append(masks.softcap(float(values[0])))
        elif name == "add":
            read = operands.array(values[0], ("f16", "bf16", "f32"))
            parts.append(lambda p, read=read: p.x + read(p).to("f32"))
        elif name == "select":
            read, other = operands.array(values[0], ("i1",)), float(values[1])
            if other == -math.inf and all(step[0] == "select" for step in steps[number:]):
                shown.append(read)
            else:
                parts.append(lambda p, read=read, other=other: expression.where(read(p), p.x, other))
        else:
            raise ValueError(f"wanted a step multiply, softcap, add or select, got {name!r}")
    return masks.chain(*parts) if parts else None, shown


def _bounds(operands, offset, left, right, lengths, mask_keys):
    """Masks by position: from `left` keys before the query's own to `right` after it
    (None: no bound), where query i has key i + offset beside it; `offset` is a number or
    one for each batch entry. Keys at and after `lengths` of each entry, and at and after
    `mask_keys`, are hidden."""
    shown = []
    if left is not None or right is not None:
        if numpy.ndim(offset):
            per_entry = operands.array(numpy.asarray(offset, numpy.int32).reshape(-1, 1, 1, 1), ("i32",))
        elif offset:
            name = operands.number(offset)

        def own(p):
            if numpy.ndim(offset):
                return p.i + per_entry(p)
            return p.i + getattr(p, name) if offset else p.i

        if right is not None:
            shown.append(lambda p: p.j <= (own(p) + right if right else own(p)))
        if left is not None:
            shown.append(lambda p: p.j >= own(p) - left)
    if lengths is not None:
        length = operands.array(numpy.asarray(lengths, numpy.int32).reshape(-1, 1, 1, 1), ("i32",))
        shown.append(lambda p: p.j < length(p))
    if mask_keys is not None:
        keys = operands.number(mask_keys)
        shown.append(lambda p: p.j < getattr(p, keys))
    return shown


def _padded(array):
    """Rows of zeros after it, up to a multiple of 8: they add nothing to products."""
    missing = -array.shape[-1] % 8
    if not missing and array.shape[-1]:
        return readable(array)
    wide = numpy.zeros((*array.shape[:-1], max(array.shape[-1] + missing, 8)), array.dtype)
    wide[..., :array.shape[-1]] = array
    return wide


def run(q, k, v, *, scale, steps=(), offset=0, left=None, right=None, lengths=None, mask_keys=None,
        heads_inside=False):
    """(o, lse) of q (batch, heads, queries, d), k (batch, kv_heads, keys, d) and v
    (batch, kv_heads, keys, e), of one element type, at any strides. o is (batch, heads,
    queries, e) of that type, with heads_inside a transposed view of (batch, queries,
    heads, e); lse is f32. Rows that see no key are 0, their lse -inf."""
    kinds = [element(what, array) for what, array in (("Q", q), ("K", k), ("V", v))]
    if len(set(kinds)) > 1:
        raise Refused(f"wanted Q, K and V of one element type, got {', '.join(kinds)}")
    for what, array in (("Q and K", q), ("V", v)):
        if array.shape[-1] > LARGEST_HEAD:
            raise Refused(f"{what}: kernels have heads of {LARGEST_HEAD} elements at most, got "
                          f"{array.shape[-1]}")
    sizes, width = q.shape[:3], v.shape[-1]
    q, k, v = map(_padded, (q, k, v))
    order = (0, 2, 1) if heads_inside else (0, 1, 2)
    o = numpy.empty([*(sizes[axis] for axis in order), v.shape[-1]], q.dtype).transpose(*order, 3)
    lse = numpy.empty(sizes, numpy.float32)
    if not k.shape[2]:
        o[...], lse[...] = 0, -math.inf
    elif o.size:
        operands = _Operands()
        score, shown = _score(steps, operands)
        shown += _bounds(operands, offset, left, right, lengths, mask_keys)
        text = program(kinds[0], q.shape[-1], v.shape[-1], scale=float(scale), captures=operands.types,
                       score=score, mask=masks.both(*shown) if shown else None)
        kernel(text).launch(q, k, v, *operands.values, o, lse)
    return o[..., :width], lse
