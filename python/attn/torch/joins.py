#===----------------------------------------------------------------------===#
#
# Part of attn, an attention compiler.
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===----------------------------------------------------------------------===#
"""Elements of tensors that are joined from others, or have numbers around them, as masks of
keys of a cache and of new ones: choices by the position, where all of it is computed. What is
captured is captured as a whole, as nothing may be read beyond its ends."""

from . import nodes
from .indices import Index, Unread

_ROWS, _COLUMNS = ("vstack", "row_stack"), ("hstack", "column_stack")
JOINED = ("cat", *_ROWS, *_COLUMNS, "pad")


class Joins:
    """A part of reading.Body."""

    def _read_joined(self, node, indices, dtype):
        if nodes.name(node) == "pad":
            return self._read_pad(node, indices, dtype)
        tensors, dim = nodes.argument(node, 0, "tensors"), nodes.argument(node, 1, "dim", 0)
        if nodes.name(node) in (*_ROWS, *_COLUMNS):
            dim = 0 if nodes.name(node) in _ROWS else 1
        if not isinstance(tensors, (tuple, list)) or not isinstance(dim, int) or \
                any(len(nodes.shape(each)) != len(indices) or len(indices) < 2 for each in tensors):
            raise Unread("tensors one after the other")
        dim %= len(indices)
        ends, first = [], 0
        for each in tensors:
            ends.append((each, first, first + nodes.shape(each)[dim]))
            first = ends[-1][2]
        result = None
        for each, first, end in reversed(ends):
            if first == end:
                continue
            element = self.cast(self._computed_at(node, each, indices, {dim: first}), dtype)
            result = element if result is None else self._select(self._is_before(indices[dim], end), element, result, dtype)
        return result

    def _read_pad(self, node, indices, dtype):
        widths, source = nodes.argument(node, 1, "pad"), nodes.argument(node, 0, "input")
        number = nodes.argument(node, 3, "value", 0)
        if nodes.argument(node, 2, "mode", "constant") != "constant" or not isinstance(widths, (tuple, list)) \
                or not all(isinstance(each, int) and each >= 0 for each in widths) or len(indices) < 2:
            raise Unread("pad")
        rank = len(indices)
        fronts = {rank - 1 - n: widths[2 * n] for n in range(len(widths) // 2)}
        result = self._computed_at(node, source, indices, fronts)
        outside = self.number(0 if number is None else nodes.known(number), dtype)
        for n in range(len(widths) // 2):
            dim, (front, back) = rank - 1 - n, widths[2 * n:2 * n + 2]
            if back:
                result = self._select(self._is_before(indices[dim], front + nodes.shape(source)[dim]), result, outside, dtype)
            if front:
                result = self._select(self._is_before(indices[dim], front), outside, result, dtype)
        return result

    def _is_before(self, index, end):
        place, limit = self.integer(index), self.emit(f"arith.index_cast {self._size(end)} : index to i64")
        return self.flag(self.emit(f"arith.cmpi slt, {place.name}, {limit} : i64"))

    def _computed_at(self, node, source, indices, fronts):
        """The element of a source, which begins at a position of each dimension, where nothing is
        captured for it."""
        own = []
        for dim, (index, size) in enumerate(zip(indices, nodes.shape(source))):
            front = fronts.get(dim, 0)
            if not isinstance(index, Index):
                raise Unread("a part of what is joined, at what is computed")
            own.append(Index((), 0) if size == 1 else Index(index.digits, index.offset - front))
        if self.outline.is_spine(source):
            raise Unread("scores that are joined to others")
        before, self.is_joining = self.is_joining, True
        try:
            return self.read(source, own, node)
        finally:
            self.is_joining = before
