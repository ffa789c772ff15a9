#===----------------------------------------------------------------------===#
#
# Part of attn, an attention compiler.
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===----------------------------------------------------------------------===#
"""Where query, key and value come from: the factors of products, taken from before what
is done to their elements and heads.
"""

import collections

from .. import nodes
from ..indices import Index, Unread, joined, product, quotient

import torch

# A factor of a product before what is done to each element; `at` is the operation that
# reads its memory.
Operand = collections.namedtuple("Operand", "node indices steps at", defaults=(None,))


def substituted(index, positions):
    """An index over letters of the output as one over positions of attention."""
    digits = []
    for digit in index.digits:
        own = positions[digit.var].digits
        total = product(each.size for each in own)
        if digit.div == 1 and quotient(total, digit.size) == 1:
            digits += own
            continue
        rest, taken = list(own), []
        skipped = 1
        while skipped != digit.div:
            skipped = skipped * rest.pop().size
        while product(each.size for each in taken) != digit.size:
            if not rest:
                raise Unread("a reshape that takes dimensions apart unevenly")
            taken.insert(0, rest.pop())
        digits += taken
    return Index(joined(digits), index.offset)


def walk(graph, node, indices, at):
    """(node, indices, steps, at) from a factor of a product, which `at` reads, back to what
    it is made of."""
    steps = ()
    while True:
        yield node, indices, steps, at
        try:
            if graph.resolve(node, at) is not node or not isinstance(node, torch.fx.Node):
                return
            kind, dtype = nodes.name(node), nodes.value(node).dtype
            if nodes.cuts_gradients(node):
                return
            if nodes.is_view(node) and not (kind == "getitem" and not nodes.is_tensor(node.args[0])):
                copies = nodes.storage(node) != nodes.storage(node.args[0])
                indices, at, node = nodes.viewed(node, indices), node if copies else at, node.args[0]
                if not all(isinstance(index, Index) for index in indices):
                    return
            elif kind == "to" and nodes.is_tensor(node.args[0]) and nodes.value(node.args[0]).device \
                    == nodes.value(node).device and nodes.value(node.args[0]).dtype.is_floating_point:
                if nodes.value(node.args[0]).dtype.itemsize > dtype.itemsize:
                    return  # rounded: the kernel is one of the narrow type
                if nodes.value(node.args[0]).dtype != dtype:
                    steps = (("cast", dtype), *steps)
                node, at = node.args[0], node
            elif kind in ("mul", "div") and not node.kwargs and not nodes.writes_to(node):
                first, second = node.args
                if kind == "mul" and nodes.known(first) is not None:
                    first, second = second, first
                if not nodes.is_tensor(first) or nodes.known(second) is None \
                        or nodes.value(first).dtype != dtype:
                    return
                steps = ((kind, nodes.known(second), dtype), *steps)
                node, at = first, node
            elif kind == "dropout" and nodes.drops_nothing(node):
                node, at = node.args[0], node
            else:
                return
        except Unread:
            return


def _heads_of(indices):
    return frozenset(digit for index in indices for digit in index.digits if digit.var == "h")


def operand(graph, node, indices, at, dims, extents, is_query):
    """Where a factor of a product is taken from, and (steps, heads) of _arranged: before
    what is done to its elements and to its heads, where the fewest steps are left. Heads
    that are repeated in an order that no kernel has are taken behind that."""
    states = list(walk(graph, node, indices, at))
    last, best, reason = states[-1], None, None
    for state in reversed(states):
        if state[2] != last[2] or _count(_heads_of(state[1])) != _count(_heads_of(last[1])):
            if best is not None:
                break
            last = state
        found = Operand(*state)
        try:
            arranged = _arranged(found, dims, extents, is_query)
        except Unread as error:
            reason = reason or error
            continue
        if best is None or len(arranged[0]) <= len(best[1][0]):
            best = found, arranged
    if best is None:
        raise reason
    return best


def _count(digits):
    return product(digit.size for digit in digits)


def _arranged(operand, dims, extents, is_query):
    """(steps, heads) that make (b, heads, length, dim) of an operand."""
    steps, digits = [], []
    for index, size in zip(operand.indices, nodes.shape(operand.node)):
        if index.offset != 0 and index.digits:
            raise Unread("a part of queries, keys or values")
        if not index.digits:
            steps.append(("select", len(digits), index.offset))
            continue
        if len(index.digits) > 1:
            sizes = [digit.size if isinstance(digit.size, int) else -1 for digit in index.digits]
            if sizes.count(-1) > 1:
                raise Unread("several unknown sizes in one dimension")
            steps.append(("unflatten", len(digits), tuple(sizes)))
        if quotient(product(digit.size for digit in index.digits), size) != 1:
            raise Unread("a part of queries, keys or values")
        digits += index.digits
    wanted, order, heads = ["b", *dims], [], 1
    groups = []
    for var in wanted:
        own = sorted((digit for digit in digits if digit.var == var),
                     key=lambda digit: (digit.div == 1, -digit.div if isinstance(digit.div, int) else 0))
        groups.append(own)
        order += [digits.index(digit) for digit in own]
        found = joined(own)
        if len(found) > 1:
            raise Unread("heads or batches that are apart")
        is_whole = not found or (found[0].div == 1 and found[0].size == extents[var])
        if var == "h":
            heads = found[0].size if found else 1
            if found and not is_whole and found[0].div * found[0].size != extents["h"]:
                raise Unread("heads that are a part of a group")
        elif not is_whole:
            raise Unread("a part of batches or positions")
    if len(order) != len(digits):
        raise Unread("positions that are not those of attention")
    if order != list(range(len(order))):
        steps.append(("permute", tuple(order)))
    for place, (var, own) in enumerate(zip(wanted, groups)):
        if len(own) > 1:
            steps.append(("flatten", place, place + len(own) - 1))
        elif not own:
            steps.append(("unsqueeze", place))
    for place, (var, own) in enumerate(zip(wanted, groups)):
        if not own and extents[var] != 1 and (var != "h" or is_query):
            steps.append(("expand", place, var))
    if is_query:
        heads = extents["h"]
    return tuple(steps), heads
