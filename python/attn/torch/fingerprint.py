#===----------------------------------------------------------------------===#
#
# Part of attn, an attention compiler.
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===----------------------------------------------------------------------===#
"""What a Python function would do with the same arguments, as a key: its code, and all
that the code can reach by the names in it (members.py). Two functions of one key differ
in nothing but the elements of tensors."""

import array
import collections
import enum
import functools
import sys
import types

import torch

from . import members
from .members import names_of

_PLAIN = (bool, int, str, bytes, type(None), type(Ellipsis), torch.dtype, torch.device, torch.layout)
_MAX_ITEMS, _MAX_DEPTH = 64, 8
_MAX_NUMBERS = 4096  # of a list that has nothing else
# What finds names that are not in the code.
_CONSTANT = (torch._ops.OpOverload, torch._ops.OpOverloadPacket, types.MethodDescriptorType, types.WrapperDescriptorType,
             types.ClassMethodDescriptorType)
_REFLECTING = frozenset(("eval", "exec", "globals", "locals", "vars", "__dict__", "__getattribute__", "__import__",
                         "import_module", "attrgetter", "methodcaller"))


class Unknown(Exception):
    """The function reaches something whose state has no key."""


def is_plain(value):
    """Whether a value is its own key, with its type."""
    return isinstance(value, _PLAIN) and type(value) in _PLAIN


def is_itself(value, names=frozenset()):
    """Whether there is one such object, and nothing that changes in what code with these
    names reaches of it."""
    if isinstance(value, _CONSTANT):
        return True
    if isinstance(value, types.BuiltinFunctionType):
        owner = value.__self__
        return owner is None or isinstance(owner, (types.ModuleType, type)) and members.is_library(
            value if isinstance(owner, types.ModuleType) else owner)
    if isinstance(value, types.ModuleType):
        library, *rest = value.__name__.split(".")
        return library in members.LIBRARIES and not (library == "numpy" and "random" in (*rest, *names))
    if isinstance(value, type):
        return members.is_library(value)
    return isinstance(value, types.FunctionType) and members.is_library(value) and not value.__closure__


def is_simple(function):
    """Whether a function reaches no more than cells, defaults and names of its module."""
    code = function.__code__
    return not (function.__dict__ or function.__kwdefaults__ or members.modules_of(code)) \
        and names_of(code).isdisjoint(_REFLECTING)


def tensor_key(x, names):
    """All of a tensor but its elements, where code with these names finds nothing of others in
    it."""
    if type(x) not in (torch.Tensor, torch.nn.Parameter, torch.nn.Buffer) or x.layout != torch.strided:
        raise Unknown
    if not names.isdisjoint(x.__dict__):
        raise Unknown
    return x.dtype, x.shape, x.stride(), x.device, x.requires_grad, x.is_neg(), x.is_conj()


class Walk:
    """Keys of several functions; `leaves` are the tensors that they reach. names: those that
    code uses which the functions reach, as any of it may look at any object; `found` are
    those that the walk came across."""

    def __init__(self, leaves=None, names=frozenset()):
        self.leaves, self.found = [] if leaves is None else leaves, set()
        self._names, self._seen = names, {}

    def key(self, value, depth=0):
        if is_plain(value):
            return type(value), value
        if isinstance(value, torch.Tensor):
            return self._tensor(value)
        if type(value) is float:
            return "float", value.hex()
        if is_itself(value, self._names):
            return "itself", value
        if depth > _MAX_DEPTH:
            raise Unknown
        if id(value) in self._seen:
            return "seen", self._seen[id(value)][0]
        self._seen[id(value)] = len(self._seen), value  # which keeps its id
        return self._compound(value, depth + 1)

    def _tensor(self, x):
        key = tensor_key(x, self._names)
        number = next((number for number, leaf in enumerate(self.leaves) if leaf is x), len(self.leaves))
        if number == len(self.leaves):
            self.leaves.append(x)
        return "tensor", number, key

    def _compound(self, value, depth):
        if isinstance(value, functools.partial):
            return "partial", self.key((value.func, value.args, value.keywords), depth)
        if isinstance(value, types.FunctionType):
            return self._function(value, depth)
        if isinstance(value, types.MethodType):
            if not isinstance(value.__func__, types.FunctionType):
                raise Unknown
            return "method", self.key(value.__func__, depth), self.key(value.__self__, depth)
        if isinstance(value, types.BuiltinFunctionType):
            if isinstance(value.__self__, (types.ModuleType, type)):  # a clock, say
                raise Unknown
            return "of", value.__name__, self.key(value.__self__, depth)
        if isinstance(value, enum.Enum):
            return "enum", value, self.key(value._value_, depth), self.key(type(value), depth)
        if isinstance(value, type):
            return self._class(value, depth)
        if isinstance(value, range):
            return "range", value.start, value.stop, value.step
        if isinstance(value, _numpy_number()):
            return type(value), value.dtype.str, value.tobytes()
        if type(value) in _COLLECTIONS or isinstance(value, (list, tuple)):
            return self._collection(value, depth)
        if members.is_open(type(value)):
            return self._object(value, depth)
        raise Unknown

    def _collection(self, value, depth):
        kind = type(value)
        if isinstance(value, (list, tuple)) and len(value) > _MAX_ITEMS:
            return kind, _numbers(value)
        if len(value) > _MAX_ITEMS:
            raise Unknown
        if kind in (dict, collections.OrderedDict, collections.defaultdict):
            made = self.key(getattr(value, "default_factory", None), depth)
            return kind, made, tuple((self.key(k, depth), self.key(x, depth)) for k, x in value.items())
        items = kind, tuple(self.key(item, depth) for item in value)
        if kind in _COLLECTIONS or members.is_library(kind):
            return items
        if not members.is_open(kind, (list, tuple)):
            raise Unknown
        return *items, self._object(value, depth)

    def _function(self, function, depth):
        code = function.__code__
        if is_itself(function):
            return "itself", function
        if "_torchdynamo_orig_callable" in vars(function):  # which torch.compile calls
            return "compiled", self.key(function._torchdynamo_orig_callable, depth)
        inside = names_of(code)
        if not inside.isdisjoint(_REFLECTING):
            raise Unknown
        self.found |= inside
        cells = [cell.cell_contents for cell in function.__closure__ or ()]
        modules = members.modules_of(code)
        if None in modules.values():
            raise Unknown
        state = {name: x for name, x in vars(function).items()
                 if name == "__wrapped__" or name in self._names or name in inside}
        reached = {name: function.__globals__[name] for name in inside if name in function.__globals__}
        parts = [self.key(part, depth) for part in (*cells, function.__defaults__, function.__kwdefaults__)]
        for found in (reached, modules, state):
            parts.append(tuple((name, self.key(found[name], depth)) for name in sorted(found)))
        return "function", code, tuple(parts)

    def _object(self, value, depth):
        kind = type(value)
        state = members.state_of(value)
        names, found = members.of_class(kind, members.names_in(value, state, self._names), state)
        names = members.names_in(value, state, names)
        if "__getattr__" in state:  # of a module
            raise Unknown
        reached = {name: state[name] for name in names if name in state}
        if isinstance(value, torch.nn.Module):
            reached.update(members.called_of(state))
        return (kind, tuple((name, self.key(reached[name], depth)) for name in sorted(reached)),
                self._members(found, depth))

    def _class(self, value, depth):
        if type(value) is not type and not members.is_library(type(value)) or not members.is_written(value):
            raise Unknown
        _, found = members.of_class(value, self._names)
        return "class", value, self._members(found, depth)

    def _members(self, found, depth):
        return tuple((name, tuple(self.key(part, depth) for attribute in attributes
                                  for part in members.functions_of(attribute) or [attribute]))
                     for name, attributes in sorted(found.items()))


def walked(functions):
    """(the key of the functions, the tensors that they reach, the names that code uses which
    they reach)."""
    names = frozenset()
    while True:
        walk = Walk(names=names)
        key = tuple(map(walk.key, functions))
        if walk.found <= names:
            return key, walk.leaves, names
        names |= walk.found


_COLLECTIONS = (list, tuple, set, frozenset, dict, collections.OrderedDict, collections.defaultdict)


def _numbers(value):
    """The key of many numbers of one type."""
    kinds = set(map(type, value)) if len(value) <= _MAX_NUMBERS and type(value) in (list, tuple) else ()
    if kinds == {float}:
        return float, array.array("d", value).tobytes()
    if len(kinds) != 1 or not kinds <= {int, bool, str}:
        raise Unknown
    return *kinds, tuple(value)


def _numpy_number():
    """The class of NumPy's scalars, where somebody uses NumPy."""
    return getattr(sys.modules.get("numpy"), "generic", ())
