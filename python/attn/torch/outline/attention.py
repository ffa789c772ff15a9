#===----------------------------------------------------------------------===#
#
# Part of attn, an attention compiler.
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===----------------------------------------------------------------------===#
"""An attention that is written as a function of linalg: the two products, and what the
elements between them are read from.
"""

from .. import nodes
from ..indices import Index, Unread, joined, product
from ..reading import TYPES, Body, Scalar, computed_in, type_of
from .function import Function, dtype_of, element_of

import torch


class Attention:
    """What all outlines have. `output` is the node that is written, `replaced` the one that
    goes and `like` a tensor of its type; `spine` are the nodes between the products. After
    text(), `arguments` has what the function is called with, and `result` the positions of
    the output."""

    # -----------------------------------------------------------------------
    # What Body asks for
    # -----------------------------------------------------------------------

    keeps_floats = False  # floats are not computed in the kernel, but arguments of it
    clears_nan = False  # rows with a NaN or +inf among their scores are 0

    def dtype_of(self, node):
        """The type that the elements of a node are computed in."""
        return nodes.value(node).dtype

    def extent(self, var):
        return self.function.extents[var]

    def is_spine(self, node):
        return node in self.spine

    def is_pair(self, indices):
        """Whether an element belongs to a query and a key."""
        variables = set()
        for index in indices:
            if not isinstance(index, Index):
                return True
            variables |= {digit.var for digit in index.digits}
        keys = set(self.function.key_vars.values())
        return bool(variables & keys) and self.function.outer[-1] in variables

    def mark(self):
        return self.function.mark()

    def reset(self, mark):
        self.function.reset(mark)

    def size(self, expression):
        return self.function.size(expression)

    def element(self, node, indices, body):
        """The element of a tensor of the spine; None: to be read."""
        return None

    def leaf(self, node, indices, at, body):
        """The element of a tensor that is an argument."""
        writes = self.graph.writes(node, at, self.output)
        if writes:
            raise Unread("a tensor that is written to before its values are used", writes[0])
        held, steps, places, sizes = nodes.value(node), [], [], []
        if not isinstance(held, torch.Tensor):
            raise Unread("a part of several results")
        if held.device != nodes.value(self.like).device:
            raise Unread("a tensor of another device")
        dtype = held.dtype
        if dtype == torch.uint8:
            dtype = torch.int32
            steps.append(("to", dtype))
        removed, read = 0, []
        for dim, (index, size) in enumerate(zip(indices, nodes.shape(node))):
            if isinstance(index, Index) and not index.digits and isinstance(index.offset, int):
                steps.append(("select", dim - removed, index.offset))
                removed += 1
                continue
            if body.parts and isinstance(index, Index) and index.digits:
                index, size = self._surrounded(index, size, dim - removed, len(indices) - removed, steps)
            if isinstance(index, Index) and isinstance(index.offset, int) and index.offset > 0:
                steps.append(("behind", dim - removed, index.offset))
                index, size = index._replace(offset=0), size - index.offset
            read.append((index, size))
        for index, size in self._in_order(read, steps):
            is_heads = isinstance(index, Index) and index.offset == 0 and len(index.digits) == 1 \
                and index.digits[0].var == "h" and isinstance(size, int)
            places.append(body.position(index))
            sizes.append(str(size) if is_heads else "?")
        if not places:
            steps.append(("reshape", 1))
            places, sizes = [body.index_constant(0)], ["1"]
        type = f"tensor<{'x'.join([*sizes, type_of(dtype)])}>"
        name = self.function.argument(node, tuple(steps), type)
        scalar = Scalar(body.emit(f"tensor.extract {name}[{', '.join(places)}] : {type}"), dtype,
                        dtype.is_floating_point)
        return body.cast(scalar, held.dtype) if held.dtype != torch.uint8 else scalar

    @staticmethod
    def _surrounded(index, size, dim, rank, steps):
        """Index and size of a dimension that has zeros around what is there, where the index
        goes beyond it."""
        front = max(0, -index.offset) if isinstance(index.offset, int) else None
        back = product(digit.size for digit in index.digits) + index.offset - size
        if front is None or back != 0 and not isinstance(back, int):
            raise Unread("a part of a size that is not known")
        back = max(0, int(back))
        if front or back:
            steps.append(("pad", (0, 0) * (rank - 1 - dim) + (front, back)))
        return index._replace(offset=index.offset + front), size + front + back

    def _in_order(self, read, steps):
        """Indices and sizes of dimensions as gradients of captures want them: queries and
        keys last, and a batch or head that is one in one dimension; the steps to it."""
        def place(pair):
            variables = {digit.var for digit in pair[0].digits} if isinstance(pair[0], Index) else set()
            return 2 if variables & set(self.function.key_vars.values()) else int("i" in variables)
        order = sorted(range(len(read)), key=lambda dim: place(read[dim]))
        if order != list(range(len(read))):
            steps.append(("permute", tuple(order)))
        result = []
        for index, size in (read[dim] for dim in order):
            before, wide = result[-1] if result else (None, None)
            if isinstance(before, Index) and isinstance(index, Index) and before.offset == index.offset == 0:
                together = joined((*before.digits, *index.digits))
                if len(together) < len(before.digits) + len(index.digits) and {x.var for x in together} <= {"b", "h"}:
                    result[-1] = Index(together, 0), wide * size
                    steps.append(("flatten", len(result) - 1, len(result)))
                    continue
            result.append((index, size))
        return result

    # -----------------------------------------------------------------------
    # The function
    # -----------------------------------------------------------------------

    @property
    def arguments(self):
        return self.function.arguments

    def _begin(self, extents, outer, key, is_draft=False):
        self.function, self._tensors = Function(extents, outer, key, is_draft), {}

    def _wide(self, name, dims):
        """Keys or values, once for each query head."""
        heads, wanted = self._kv_heads[name], self.canonical["h"]
        tensor, type = "%" + name, self.function.type_of(name)
        if heads == wanted:
            return tensor, type, ["b", "h", *dims]
        kind, last = element_of(type), self.function.extents[dims[1]]
        group = wanted // heads
        wide = f"tensor<?x{heads}x{group}x?x{last}x{kind}>"
        lengths = f"{self.function.length('b')}, {self.function.length('j')}"
        empty = self.function.line(f"tensor.empty({lengths}) : {wide}")
        loops = ["b", "kv", "g", "j", dims[1]]
        tensor = self.function.generic(
            loops, [(tensor, type, ["b", "kv", "j", dims[1]])], (empty, wide, loops), [], "%in0")
        flat = f"tensor<?x{wanted}x?x{last}x{kind}>"
        name = self.function.line(f"tensor.collapse_shape {tensor} [[0], [1, 2], [3], [4]] : {wide} into {flat}")
        return name, flat, ["b", "h", *dims]

    def _sum(self, first, second, loops, variables, reduced, steps, result):
        """The generic of a product of type `result`, which is summed in f32 (or wider)."""
        dtypes = [dtype_of(element_of(x[1])) for x in (first, second)]
        wide = torch.promote_types(result, torch.float32)
        body, factors = Body(self, loops), []
        for number, (dtype, each) in enumerate(zip(dtypes, steps)):
            scalar = Scalar(f"%in{number}", dtype, True)
            for step in each:
                if step[0] == "cast":
                    scalar = body.cast(scalar, step[1])
                    continue
                inner = computed_in(step[2])
                scalar = body._binary(step[0], body.cast(scalar, inner), body.number(step[1], inner), inner)
                scalar = body.cast(scalar, step[2])
            factors.append(body.cast(body.cast(scalar, result), wide))  # under autocast
        kind = TYPES[wide]
        body.lines += [f"%product = arith.mulf {factors[0].name}, {factors[1].name} : {kind}",
                       f"%sum = arith.addf %acc, %product : {kind}"]
        init, type = self.function.filled(variables, 0, wide)
        name = self.function.generic(loops, [first, second], (init, type, variables), body.lines, "%sum", reduced)
        return name, type, variables

    def _written_product(self):
        if "product" not in self._tensors:
            query = "%q", self.function.type_of("q"), ["b", "h", "i", "d"]
            self._tensors["product"] = self._sum(
                query, self._wide("k", "jd"), ["b", "h", "i", "j", "d"], ["b", "h", "i", "j"], "d",
                [self._operands["q"].steps, self._operands["k"].steps],
                nodes.value(self.scores or self.like).dtype)
        return self._tensors["product"]

    def _text(self, weights):
        """The whole, which ends with the product of weights and values."""
        dtype = nodes.value(self.like).dtype
        name, type, variables = self._sum(weights, self._wide("v", "je"), ["b", "h", "i", "e", "j"],
                                          ["b", "h", "i", "e"], "j", [(), self._operands["v"].steps], dtype)
        if nodes.name(self.output) in nodes.ADDED:
            raise Unread(f"{nodes.name(self.output)} of weights and values")
        result = self.function.cast((name, type, variables), dtype_of(element_of(type)), dtype)
        # The positions of the output, for who brings the result into its form.
        self.result = [self._positions[x] for x in self.of_output]
        for digits in map(self.parts_of, "bhie"):
            if any(self.size_of(digit) is None for digit in self.unknown(digits)[1:]):
                raise Unread("several unknown sizes in one dimension")
        return self.function.text(result)

    def parts_of(self, var):
        """The digits of a position that are in the output, the most significant first."""
        own = [digit for index in self.result for digit in index.digits if digit.var == var]
        if len(own) > 1:
            own.sort(key=lambda digit: -digit.div if isinstance(digit.div, int) else -(1 << 62))
        return own

    @staticmethod
    def unknown(digits):
        return [digit for digit in digits if not isinstance(digit.size, int)]

    def size_of(self, digit):
        """(node, dimension) of the values where a digit is a dimension; else None."""
        letter = next((x for x, index in zip(self.of_output, self.result) if index.digits == (digit,)), None)
        of_values = getattr(self, "of_values", ())
        return (self.values, of_values.index(letter)) if letter is not None and letter in of_values else None
