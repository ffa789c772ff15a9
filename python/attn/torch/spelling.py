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
    A diagonal and each nth of positions that are set to a number are masks, too. softmin becomes
    the softmax that it is, and type_as a cast, which reads one tensor."""
    for node in list(graph.nodes):
        if nodes.is_tensor(node) and nodes.written_name(node) == "type_as" and len(node.args) == 2:
            _spell_type_as(graph, node)
        elif nodes.name(node) == "softmin" and isinstance(nodes.argument(node, 1, "dim"), int):
            _spell_softmin(graph, node)
        elif nodes.name(node) in _FILLS and not node.users and nodes.writes_to(node):
            _spell_diagonal(graph, node)
        elif node.op == "call_function" and node.target is operator.setitem and not node.users:
            target, items, number = node.args
            found = _mask(target, items)
            if not nodes.is_tensor(target) or not _is_number_of(number, nodes.value(target).dtype):
                continue
            if found is not None:
                _spell_one(graph, node, target, *found, number)
            elif nodes.name(target) == "diagonal" and items in (slice(None), Ellipsis):
                _spell_diagonal(graph, node)
            else:
                _spell_steps(graph, node, target, items, number)


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


_FILLS = {"fill": 1, "zero": None, "fill_diagonal": 1}  # where they have their number


def _called(graph, node, function, *args):
    """A call before a node."""
    with graph.inserting_before(node):
        new = graph.call_function(function, args)
    with torch.no_grad():
        new.meta = {**node.meta, "example_value": function(*torch.fx.map_arg(args, nodes.value))}
    return new


def _places(graph, node, target, dim):
    """The numbers of positions of a dimension, along which they lie."""
    held = nodes.value(target)
    size = nodes.shape(target)[dim]
    size = size if isinstance(size, int) else _called(graph, node, torch.Tensor.size, target, dim)
    with graph.inserting_before(node):
        new = graph.call_function(torch.arange, (size,), {"device": held.device})
    new.meta = {**node.meta, "example_value": held.new_empty((held.shape[dim],), dtype=torch.int64)}
    for _ in range(len(held.shape) - 1 - dim):
        new = _called(graph, node, torch.unsqueeze, new, -1)
    return new


def _filled(graph, node, target, mask, number):
    with graph.inserting_before(node):
        filled = graph.call_method("masked_fill_", (target, mask, number))
    filled.meta = {**node.meta, "example_value": nodes.value(target)}
    graph.erase_node(node)


def _spell_diagonal(graph, node):
    """A number for the diagonal of the last two dimensions, as masked_fill_ of the whole."""
    view, place = node.args[0], _FILLS.get(nodes.name(node))
    number = node.args[2] if node.target is operator.setitem else 0 if place is None else nodes.argument(node, place, "value")
    target, offset = view, 0
    if nodes.name(node) == "fill_diagonal":
        if len(nodes.shape(view)) != 2 or nodes.argument(node, 2, "wrap", False):
            return
    elif nodes.name(view) != "diagonal":
        return
    else:
        target, rank = nodes.argument(view, 0, "input"), len(nodes.shape(view)) + 1
        offset, *dims = (nodes.argument(view, n, name, default) for n, (name, default) in enumerate(
            (("offset", 0), ("dim1", 0), ("dim2", 1)), 1))
        if not all(isinstance(each, int) for each in (offset, *dims)) or [dim % rank for dim in dims] != [rank - 2, rank - 1]:
            return
    if not _is_number_of(number, nodes.value(target).dtype):
        return
    rank = len(nodes.shape(target))
    distance = _called(graph, node, torch.sub, *(_places(graph, node, target, rank - n) for n in (1, 2)))
    _filled(graph, node, target, _called(graph, node, torch.eq, distance, offset), number)


def _spell_steps(graph, node, target, items, number):
    """A number for each nth of positions, as masked_fill_ of the whole."""
    items, rank = list(items) if isinstance(items, tuple) else [items], len(nodes.shape(target))
    if any(not isinstance(item, (slice, int)) and item is not Ellipsis or isinstance(item, bool) for item in items):
        return
    if Ellipsis in items:
        at = items.index(Ellipsis)
        items[at:at + 1] = [slice(None)] * (rank - len(items) + 1)
    items = [slice(item, item + 1 or None) if isinstance(item, int) else item for item in items]
    wanted = [(dim, item) for dim, item in enumerate(items) if item != slice(None)]
    if Ellipsis in items or all(item.step in (None, 1) for _, item in wanted) \
            or not all(part is None or isinstance(part, int) for _, item in wanted for part in (item.start, item.stop, item.step)):
        return
    sizes = nodes.shape(target)
    if any(not isinstance(sizes[dim], int) and (item.stop is not None or (item.start or 0) < 0) for dim, item in wanted):
        return
    mask = None
    for dim, item in wanted:
        start, stop, step = item.indices(sizes[dim]) if isinstance(sizes[dim], int) else (item.start or 0, None, item.step or 1)
        place = _places(graph, node, target, dim)
        flags = [_called(graph, node, torch.ge, place, start)]
        if stop is not None:
            flags.append(_called(graph, node, torch.lt, place, stop))
        if step != 1:
            rest = _called(graph, node, torch.remainder, _called(graph, node, torch.sub, place, start), step)
            flags.append(_called(graph, node, torch.eq, rest, 0))
        for flag in flags:
            mask = flag if mask is None else _called(graph, node, torch.logical_and, mask, flag)
    _filled(graph, node, target, mask, number)


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
