#===----------------------------------------------------------------------===#
#
# Part of attn, an attention compiler.
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===----------------------------------------------------------------------===#
"""Elements of embeddings, of gathers and of what tensors index, as scalar code."""

import torch

from . import nodes
from .indices import ZERO, Computed, Scalar, Unread


class Gathers:
    """What a Body has of them."""

    def _read_embedding(self, node, indices, dtype):
        first, second = nodes.argument(node, 0, "input"), nodes.argument(node, 1, "weight")
        if nodes.value(first).dtype.is_floating_point:  # torch.embedding has them the other way round
            first, second = second, first
        if any(nodes.argument(node, n, key) for n, key in ((3, "max_norm"), (6, "sparse"))):
            raise Unread("embedding with max_norm or sparse")
        at = self.cast(self.read(first, indices[:-1], node), torch.int64)
        return self.read(second, [Computed(at), indices[-1]], node)

    def _read_index_select(self, node, indices, dtype):
        dim = nodes.argument(node, 1, "dim") % len(indices)
        at = self.cast(self.read(nodes.argument(node, 2, "index"), [indices[dim]], node), torch.int64)
        return self.read(node.args[0], [*indices[:dim], Computed(at), *indices[dim + 1:]], node)

    def _read_gather(self, node, indices, dtype):
        dim = nodes.argument(node, 1, "dim") % len(indices)
        at = self.cast(self.read(nodes.argument(node, 2, "index"), indices, node), torch.int64)
        return self.read(node.args[0], [*indices[:dim], Computed(at), *indices[dim + 1:]], node)

    def _advanced(self, node):
        items = node.args[1] if isinstance(node.args[1], (tuple, list)) else [node.args[1]]
        return any(nodes.is_tensor(item) for item in items)

    def _read_getitem(self, node, indices, dtype):
        """Tensors as indices, side by side."""
        source, items = node.args[0], node.args[1]
        if not nodes.is_tensor(source):
            raise Unread("a part of several results")
        items = list(items) if isinstance(items, (tuple, list)) else [items]
        sizes = nodes.shape(source)
        where = [n for n, item in enumerate(items) if nodes.is_tensor(item)]
        if where != list(range(where[0], where[-1] + 1)) or any(
                item is None or item is Ellipsis or (item != slice(None) if isinstance(item, slice) else
                                                     not nodes.is_tensor(item)) for item in items):
            raise Unread("indices that are tensors beside others")
        shapes = [nodes.shape(items[n]) for n in where]
        rank = max(map(len, shapes))
        inner = indices[where[0]:where[0] + rank]
        wide = nodes.shape(node)[where[0]:where[0] + rank]
        computed = []
        for n, own in zip(where, shapes):
            if nodes.value(items[n]).dtype == torch.bool:
                raise Unread("an index of flags")
            part = [ZERO if a == 1 and b != 1 else index
                    for a, b, index in zip(own, wide[rank - len(own):], inner[rank - len(own):])]
            at = self.cast(self.read(items[n], part, node), torch.int64)
            if at.is_natural:
                computed.append(Computed(at))
                continue
            zero, length = self.number(0, torch.int64), self._operand(node, nodes.value(source).shape[n], [], torch.int64)
            negative = Scalar(self.emit(f"arith.cmpi slt, {at.name}, {zero.name} : i64"), torch.bool, False)
            behind = self._binary("add", at, length, torch.int64)
            computed.append(Computed(self._select(negative, behind, at, torch.int64)))
        result = [*indices[:where[0]], *computed, *indices[where[0] + rank:]]
        if len(result) != len(sizes):
            raise Unread("indices that are tensors beside others")
        return self.read(source, result, node)
