#===----------------------------------------------------------------------===#
#
# Part of attn, an attention compiler.
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===----------------------------------------------------------------------===#
"""Whether functions are like some that were seen: of one key, as fingerprint.py has
them, found by comparing what they reach instead of by walking through it.

A likeness says no where it cannot tell: keys are what decides then. It holds no tensor
of the functions, and functions that are made anew by the same code are like each other.
"""

import math
import types

import torch

from . import fingerprint
from .warm import Token

_MAX_PARTS, _MAX_KNOWN = 64, 256
_known = {}  # by the ids of code objects, which Likenesses keep: those of such functions


class Likeness(Token):
    """What functions of one key have in common; `made` is for what was made of them, which
    has_reads tells to depend on what tensors hold."""

    def __init__(self, functions, names):
        self.made, self.has_reads = {}, False
        self.codes = list(map(_code, functions))
        parts = _Parts(names)
        self._checks = list(map(parts.whole, functions))

    def leaves(self, functions):
        """The tensors that the functions reach, as fingerprint.Walk finds them, or None
        where they are not like those."""
        found = []
        try:
            for check, function in zip(self._checks, functions):
                if not check(function, found):
                    return None
        except (ValueError, TypeError, fingerprint.Unknown):  # a cell without contents, another kind of tensor
            return None
        return found


def _code(function):
    return getattr(function, "__code__", type(function))


def find(functions):
    """(the Likeness of these functions, the tensors that they reach), or (None, None)."""
    same = _known.get(tuple([id(_code(function)) for function in functions]))
    for likeness in same or ():
        leaves = likeness.leaves(functions)
        if leaves is not None:
            return likeness, leaves
    return None, None


def learn(functions, leaves, names):
    """The Likeness of these functions, which reach these tensors, and code that uses these
    names; None where none can be."""
    likeness, _ = find(functions)
    if likeness is not None:
        return likeness
    try:
        likeness = Likeness(functions, names)
    except fingerprint.Unknown:
        return None
    found = likeness.leaves(functions)
    if found is None or len(found) != len(leaves) or any(a is not b for a, b in zip(found, leaves)):
        return None
    if len(_known) >= _MAX_KNOWN:
        _known.clear()
    same = _known.setdefault(tuple(map(id, likeness.codes)), [])
    same.insert(0, likeness)
    del same[8:]
    return likeness


class _Parts:
    """Makes check(value, leaves) for a value and what it reaches: whether another value
    has the same key. Tensors go to `leaves`."""

    def __init__(self, names):
        self._count, self._leaves, self._within = 0, [], []
        self._names = names  # that code uses which the functions reach

    def whole(self, function):
        leaves = list(self._leaves)
        try:
            return self.of(function)
        except fingerprint.Unknown:  # too much, or a function that calls itself
            self._count, self._leaves, self._within = 0, leaves, []
            return self._walked(function)

    def of(self, value):
        self._count += 1
        if self._count > _MAX_PARTS or any(value is outer for outer in self._within):
            raise fingerprint.Unknown
        if isinstance(value, torch.Tensor):
            return self._tensor(value)
        if type(value) is float:
            return _number(value)
        if fingerprint.is_itself(value, self._names) or value is None:
            return _same(value)
        if fingerprint.is_plain(value):
            return _equal(value)
        self._within.append(value)
        check = self._compound(value)
        self._within.pop()
        return check

    def _compound(self, value):
        if type(value) is types.FunctionType:
            return self._function(value)
        if type(value) in (list, tuple) and len(value) <= _MAX_PARTS:
            return _sequence(type(value), [self.of(item) for item in value])
        return self._walked(value)

    def _tensor(self, x):
        fingerprint.tensor_key(x, self._names)  # has one
        names = self._names
        kind, dtype, shape, strides, device = type(x), x.dtype, x.shape, x.stride(), x.device
        needs_gradient, is_negative, is_conjugate = x.requires_grad, x.is_neg(), x.is_conj()
        number = next((number for number, leaf in enumerate(self._leaves) if leaf is x), None)
        if number is not None:
            return lambda value, leaves: value is leaves[number]
        self._leaves.append(x)

        def check(value, leaves):
            if (type(value) is not kind or value.dtype is not dtype or value.shape != shape
                    or value.requires_grad is not needs_gradient or value.layout is not torch.strided
                    or value.stride() != strides or value.device != device
                    or value.is_neg() is not is_negative or value.is_conj() is not is_conjugate
                    or not names.isdisjoint(value.__dict__)):
                return False
            for leaf in leaves:
                if leaf is value:
                    return False
            leaves.append(value)
            return True
        return check

    def _walked(self, value):
        """By its key."""
        names = self._names
        key = fingerprint.Walk(self._leaves, names).key(value)
        return lambda other, leaves: fingerprint.Walk(leaves, names).key(other) == key

    def _function(self, function):
        code, namespace = function.__code__, function.__globals__
        if not fingerprint.is_simple(function):
            return self._walked(function)
        return self._like(function, code, namespace, fingerprint.names_of(code))

    def _like(self, function, code, namespace, names):
        cells = [self.of(cell.cell_contents) for cell in function.__closure__ or ()]
        defaults = self.of(function.__defaults__) if function.__defaults__ else None
        reached = [(name, self.of(namespace[name])) for name in sorted(names) if name in namespace]
        others, present = {name for name in names if name not in namespace}, namespace.keys()

        def check(value, leaves):
            if (type(value) is not types.FunctionType or value.__code__ is not code
                    or value.__globals__ is not namespace or value.__kwdefaults__
                    or value.__dict__ or not present.isdisjoint(others)):
                return False
            if cells:
                for cell, contents in zip(value.__closure__, cells):
                    if not contents(cell.cell_contents, leaves):
                        return False
            if value.__defaults__ if defaults is None else not defaults(value.__defaults__, leaves):
                return False
            for name, part in reached:
                if name not in namespace or not part(namespace[name], leaves):
                    return False
            return True
        return check


def _same(value):
    return lambda other, leaves: other is value


def _equal(value):
    kind = type(value)
    return lambda other, leaves: other is value or (type(other) is kind and other == value)


def _number(value):
    sign = math.copysign(1.0, value)
    if value != value:
        return lambda other, leaves: other is value
    return lambda other, leaves: other is value or (
        type(other) is float and other == value and math.copysign(1.0, other) == sign)


def _sequence(kind, parts):
    count = len(parts)

    def check(value, leaves):
        if type(value) is not kind or len(value) != count:
            return False
        for part, item in zip(parts, value):
            if not part(item, leaves):
                return False
        return True
    return check
