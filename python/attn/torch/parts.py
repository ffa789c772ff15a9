#===----------------------------------------------------------------------===#
#
# Part of attn, an attention compiler.
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===----------------------------------------------------------------------===#
"""Elements of tensors that are written to in part, as by scores[..., 5:] = 0: those that are
written where something is written, else those that were there.

A write is at a view of the tensor. The indices of an element of the tensor are those of one
of the view, less where that begins, and bounds tell whether the view has it at all. What is
written is read without that question: what a kernel captures of it gets zeros around it.
"""

import operator

from . import nodes
from .indices import ZERO, Index, Unread, reshaped, whole

import torch

_RESHAPES = ("reshape", "flatten", "unflatten")
_COPIES = ("expand", "repeat_interleave")


class _Part:
    """An element that is asked for, of a tensor of which a view is written to; `bounds` say
    where the view is: (index, first, last + 1, how many there are)."""

    def __init__(self, node, indices, bounds):
        self.node, self.indices, self.bounds = node, indices, bounds
        self.fixed = [bound[:3] for bound in bounds]


def element(body, node, indices, at, write):
    """The element of a node where `at` reads it, behind its last write, which is not to the
    whole."""
    target = next(target for target in nodes.writes_to(write) if nodes.storage(target) == nodes.storage(node))
    views = _views(node, target)
    if views is None:  # the node is a view itself
        if not nodes.is_view(node) or nodes.storage(node.args[0]) != nodes.storage(node):
            raise Unread("a tensor that is written to in part", write)
        return body.read(node.args[0], nodes.viewed(node, indices), at)
    if _writes_itself(write):
        return body.read(node, indices, write)
    own, parts = indices, []
    for view in views:
        own = _through(own, view.args[0], nodes.shape(view), view, parts)
    if write.target is operator.setitem:
        own = _through(own, target, tuple(map(nodes.size, _at_items(write).shape)), write, parts)
    flag = _inside(body, [bound for part in parts for bound in part.bounds])
    if flag is False:
        return body.read(node, indices, write)
    new = _written(body, write, own, at, [part for part in parts if part.bounds])
    if flag is True:
        return new
    return body._select(flag, new, body.read(node, indices, write), nodes.value(node).dtype)


def writes_a_number(write):
    """Whether a number is written to a part, or 0 by zero_()."""
    if write.target is operator.setitem:
        return isinstance(write.args[2], (bool, int, float))
    given = {"fill": nodes.argument(write, 1, "value"), "zero": 0}.get(nodes.name(write))
    return isinstance(given, (bool, int, float))


def _views(node, target):
    """The views of a node's memory that make the target, the first first; None: it is not made
    of it."""
    result = []
    while not nodes.is_same_memory(target, node):
        if not nodes.is_view(target) or nodes.storage(target.args[0]) != nodes.storage(target):
            return None
        result.insert(0, target)
        target = target.args[0]
    return result


def _at_items(write):
    """The view that an item is, as a tensor without elements."""
    target, items, _ = write.args
    given = items if isinstance(items, tuple) else (items,)
    known = torch.fx.map_arg(given, nodes.value)
    if any(isinstance(item, (torch.Tensor, list)) for item in known):
        raise Unread("a tensor that is written to in part", write)
    return nodes.value(target)[known]


def _writes_itself(write):
    """What Python makes of scores[a] += b: the view is written to, then given to itself."""
    if write.target is not operator.setitem or not nodes.is_tensor(write.args[2]):
        return False
    given, place = nodes.value(write.args[2]), _at_items(write)
    return nodes.storage(write.args[2]) == nodes.storage(write.args[0]) and given.shape == place.shape and \
        given.stride() == place.stride() and given.storage_offset() == place.storage_offset()


def _through(indices, node, shape, view, parts):
    """Indices of a view of that shape, for those of the node that it is a view of, which go to
    `parts`."""
    kind, source = nodes.name(view), nodes.shape(node)
    if kind in _RESHAPES:
        return reshaped(indices, source, shape)
    if kind in _COPIES:
        raise Unread(f"a write to {kind}", view)
    markers = [whole(f"part{n}", size) for n, size in enumerate(shape)]
    places = nodes.item_indices(source, view.args[1], markers) if kind == "setitem" else nodes.viewed(view, markers)
    result, bounds = [ZERO] * len(shape), []
    for index, place, size in zip(indices, places, source):
        if not isinstance(index, Index) or not isinstance(place, Index):
            raise Unread("a part that begins at what is computed", view)
        count = 1
        if place.digits:
            n = int(place.digits[0].var[len("part"):])
            count, result[n] = shape[n], Index(index.digits, index.offset - place.offset)
        if count != size:
            bounds.append((index, place.offset, place.offset + count, size))
    parts.append(_Part(node, indices, bounds))
    return result


def _inside(body, bounds):
    """Whether an element is inside of the bounds: a scalar, True or False."""
    flag = True
    for index, first, behind, size in bounds:
        tests = [("sge", first)] * (first != 0) + [("slt", behind)] * (behind != size)
        for how, bound in tests:
            if not index.digits and isinstance(bound, int) and isinstance(index.offset, int):
                if index.offset >= bound if how == "slt" else index.offset < bound:
                    return False
                continue
            place, limit = body.integer(index), body.emit(f"arith.index_cast {body._size(bound)} : index to i64")
            name = body.emit(f"arith.cmpi {how}, {place.name}, {limit} : i64")
            flag = body.flag(name) if flag is True else body._binary("and", flag, body.flag(name), torch.bool)
    return flag


def within(body, node, indices):
    """Indices of an element, as those of the element that is asked for where it is that one: in
    scores[..., 0] += 1 the key is 0."""
    for part in reversed(body.parts):
        if nodes.is_same_memory(node, part.node) and all(
                index == wanted or isinstance(index, Index) and not index.digits
                and (wanted, index.offset, index.offset + 1) in part.fixed
                for index, wanted in zip(indices, part.indices)):
            return part.indices
    return indices


def _written(body, write, indices, at, parts):
    """The element of what is written."""
    before, body.parts = body.parts, body.parts + parts
    try:
        if write.target is not operator.setitem:
            return body.read(write, indices, at)
        given, dtype = write.args[2], nodes.value(write.args[0]).dtype
        if not nodes.is_tensor(given):
            return body._operand(write, given, [], dtype)
        sizes = nodes.shape(given)
        if len(sizes) > len(indices):
            raise Unread("an item of more dimensions", write)
        inner, wide = indices[len(indices) - len(sizes):], tuple(map(nodes.size, _at_items(write).shape))
        own = [ZERO if n == 1 and outer != 1 else index
               for n, outer, index in zip(sizes, wide[len(wide) - len(sizes):], inner)]
        return body.cast(body.read(given, own, write), dtype)
    finally:
        body.parts = before
