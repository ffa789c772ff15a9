#===----------------------------------------------------------------------===#
#
# Part of attn, an attention compiler.
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===----------------------------------------------------------------------===#
"""Operations of a graph, spelled as those that are read; they compute the same."""

import operator

import torch

from . import nodes


def spell(graph):
    """Puts masked_fill_ in the place of each item that is set at a mask to a number, which is
    a write to the whole: results and gradients are the same, and so is what gradients keep.
    softmin becomes the softmax that it is, and type_as a cast, which reads one tensor."""
    for node in list(graph.nodes):
        if nodes.is_tensor(node) and nodes.written_name(node) == "type_as" and len(node.args) == 2:
            _spell_type_as(graph, node)
        elif nodes.name(node) == "softmin" and isinstance(nodes.argument(node, 1, "dim"), int):
            _spell_softmin(graph, node)
        elif node.op == "call_function" and node.target is operator.setitem and not node.users:
            target, items, number = node.args
            found = _mask(target, items)
            if found is not None and _is_number_of(number, nodes.value(target).dtype):
                _spell_one(graph, node, target, *found, number)


def _mask(target, items):
    """(mask, how many dimensions of the target are behind those of it) of target[:, :, mask];
    None: of other items."""
    items = list(items) if isinstance(items, tuple) else [items]
    where = [n for n, item in enumerate(items) if nodes.is_tensor(item)]
    if not nodes.is_tensor(target) or len(where) != 1:
        return None
    mask = items[where[0]]
    held, rank = nodes.value(mask), len(nodes.shape(mask))
    if held.dtype != torch.bool or rank == 0 or held.device != nodes.value(target).device:
        return None
    others = [item for item in items if item is not mask]
    if any(not isinstance(item, slice) and item is not Ellipsis or isinstance(item, slice) and item != slice(None)
           for item in others) or others.count(Ellipsis) > 1:
        return None
    whole, before = nodes.shape(target), items[:where[0]]
    first = len(before)
    if Ellipsis in before:
        first = len(whole) - rank - (len(items) - len(before) - 1)
    # A mask of other sizes is an error of the graph's.
    return (mask, len(whole) - first - rank) if whole[first:first + rank] == nodes.shape(mask) else None


def _is_number_of(given, dtype):
    return isinstance(given, bool) if dtype == torch.bool else \
        dtype.is_floating_point and isinstance(given, (int, float))


def _spell_one(graph, node, target, mask, behind, number):
    with graph.inserting_before(node):
        for _ in range(behind):
            wide = graph.call_method("unsqueeze", (mask, -1))
            wide.meta = {**node.meta, "example_value": nodes.value(mask).unsqueeze(-1)}
            mask = wide
        filled = graph.call_method("masked_fill_", (target, mask, number))
        filled.meta = {**node.meta, "example_value": nodes.value(target)}
    graph.erase_node(node)


def _spell_type_as(graph, node):
    source, other = node.args
    if nodes.value(source).device != nodes.value(other).device:
        return
    with graph.inserting_before(node):
        cast = graph.call_method("to", (source, nodes.value(node).dtype))
    cast.meta = dict(node.meta)
    node.replace_all_uses_with(cast)
    graph.erase_node(node)
    if nodes.written_name(other) == "to" and not other.users:
        graph.erase_node(other)


def _spell_softmin(graph, node):
    source, dtype = nodes.argument(node, 0, "input"), nodes.argument(node, 3, "dtype")
    with graph.inserting_before(node):
        negative = graph.call_method("neg", (source,))
        negative.meta = {**node.meta, "example_value": nodes.value(source).neg()}
        result = graph.call_method("softmax", (negative, nodes.argument(node, 1, "dim")), {"dtype": dtype} if dtype else {})
        result.meta = dict(node.meta)
    node.replace_all_uses_with(result)
    graph.erase_node(node)
