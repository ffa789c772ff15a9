#===----------------------------------------------------------------------===#
#
# Part of attn, an attention compiler.
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===----------------------------------------------------------------------===#
"""Which dimensions of a graph are the batch, heads, queries and keys of attention."""

from .. import nodes
from ..indices import ZERO, Digit, Index, Unread, joined, product, quotient, whole
from .operands import walk


class Positions:
    """Positions of attention for the letters of the output of an Outline.

    at         {letter: Index over b, h, i, j}
    canonical  the sizes of b, h, i, j, and of d and e, the head dimensions
    factors    (queries, their letters, keys, their letters, the letter that is summed)"""

    def __init__(self, outline, product, outer):
        self.outline, self.product = outline, product
        self.at = self._plan(outer)

    def _plan(self, outer):
        """Positions of attention for the letters of the output."""
        sizes_of = self.outline.sizes
        a, b, first, second, result = nodes.product_letters(self.outline.scores)
        key = [x for x in result if self.outline.key in {digit.var for digit in self.product[x].digits}]
        if len(key) != 1 or self.product[key[0]] != whole(self.outline.key, self.outline.sizes[self.outline.key]):
            raise Unread("the keys of the scores are not those of the weights")
        key = key[0]
        if key in first:
            a, b, first, second = b, a, second, first
        if key in first:
            raise Unread("both factors of the scores have keys")
        summed = [x for x in first if x is not None and x not in result]
        if len(summed) != 1 or summed[0] not in second:
            raise Unread("the product of queries and keys sums over other than one dimension")
        rows = [x for x in result if x in first and x not in second]
        if not rows:
            raise Unread("queries and keys do not have positions of their own")
        unknown = [x for x in rows if not isinstance(nodes.shape(self.outline.scores)[result.index(x)], int)]
        row = (unknown or rows)[-1]
        row_vars = self.product[row].digits
        if len(row_vars) > 1 or self.product[row].offset != 0 or (
                row_vars and (row_vars[0].div != 1 or row_vars[0].var not in outer)):
            raise Unread("the queries of the scores are not those of the output")
        if row_vars:
            row_var = row_vars[0].var
        else:  # one query
            row_var = next((x for x in reversed(outer) if self.outline.sizes[x] == 1), None)
        others = [x for x in outer if x != row_var]
        positions = {self.outline.key: whole("j", self.outline.sizes[self.outline.key])}
        rows_size = 1 if row_var is None else self.outline.sizes[row_var]
        if row_var is not None:
            positions[row_var] = whole("i", rows_size)
        batch, heads = self._batch_and_heads(others)
        if len(others) > 1 and all(isinstance(size, int) for _, _, size in batch):
            self.outline.attempts = 2
            if self.outline.attempt == 1:
                batch, heads = [], [*batch, *heads]
        sizes = {"b": product(size for _, _, size in batch), "h": product(size for _, _, size in heads)}
        if not isinstance(sizes["h"], int):
            raise Unread(f"{sizes['h']} heads: wanted a number that is known")
        parts = {letter: [] for letter in others}
        for var, group in (("b", batch), ("h", heads)):
            div = 1
            for letter, own_div, size in reversed(group):
                parts[letter].append((own_div, Digit(var, div, size)))
                div = div * size
        for letter, own in parts.items():  # at most two: batches before heads
            own.sort(key=lambda part: part[0] == 1)
            positions[letter] = Index(joined([digit for _, digit in own]), 0)
        self.canonical = {"b": sizes["b"], "h": sizes["h"], "i": rows_size, "j": sizes_of[self.outline.key],
                          "d": nodes.shape(a)[first.index(summed[0])], "e": sizes_of[self.outline.value_dim]}
        for dim in "de":
            if not isinstance(self.canonical[dim], int):
                raise Unread("a head dimension that is not known")
        self.factors = a, first, b, second, summed[0]
        return positions

    def _batch_and_heads(self, letters):
        """Digits (letter, div, size) of the letters that are batch, and heads."""
        whole_of = [(x, 1, self.outline.sizes[x]) for x in letters]
        if len(letters) == 0:
            return [], []
        if len(letters) == 1:
            heads = self._heads_in(letters[0])
            if heads is None:
                return whole_of, []
            return [(letters[0], heads, quotient(self.outline.sizes[letters[0]], heads))], [(letters[0], 1, heads)]
        last = len(letters) - 1
        if last == 1 and not isinstance(whole_of[1][2], int) and isinstance(whole_of[0][2], int):
            return whole_of[1:], whole_of[:1]
        is_group = last > 1 and (letters[last] not in self.outline.of_values or self._product_lacks(letters[last]))
        first = last - 1 if is_group else last
        return whole_of[:first], whole_of[first:]

    def _product_lacks(self, letter):
        """Whether keys have no position for a letter of the output."""
        _, _, first, second, result = nodes.product_letters(self.outline.scores)
        for x in result:
            if self.product[x].digits and self.product[x].digits[0].var == letter:
                return x not in first or x not in second
        return False

    def _heads_in(self, letter):
        """How many heads are in one dimension with batches; None: none that are seen."""
        found = set()
        for x, index in self.product.items():
            found |= {digit.size for digit in index.digits if digit.var == letter and digit.div == 1}
        a, b, first, second, _ = nodes.product_letters(self.outline.scores)
        for node, own in ((a, first), (b, second), (self.outline.values, self.outline.of_values)):
            indices = []
            for x, size in zip(own, nodes.shape(node)):
                at = self.product.get(x) if node is not self.outline.values else (
                    whole(x, self.outline.sizes[x]) if x in self.outline.sizes else None)
                indices.append(whole("d", size) if at is None and x is not None else at or ZERO)
            for _, state, *_ in walk(self.outline.graph, node, indices, self.outline.output):
                for index in state:
                    found |= {digit.size for digit in index.digits if digit.var == letter and digit.div == 1}
        smaller = [size for size in found if isinstance(size, int) and size != self.outline.sizes[letter] and size > 1]
        return max(smaller) if smaller else None
