#===----------------------------------------------------------------------===#
#
# Part of attn, an attention compiler.
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===----------------------------------------------------------------------===#
"""What a Python function would do with the same arguments, as a key: its code, and all
that the code can reach by the names in it. Two functions of one key differ in nothing
but the elements of tensors."""

import enum
import functools
import inspect
import types

import torch

_PLAIN = (bool, int, str, bytes, type(None), type(Ellipsis), torch.dtype, torch.device, torch.layout)
_LIBRARIES = ("torch", "math", "operator", "numpy", "functools", "builtins", "typing", "itertools")
_MAX_ITEMS, _MAX_DEPTH = 64, 8


class Unknown(Exception):
    """The function reaches something whose state has no key."""


def is_plain(value):
    """Whether a value is its own key, with its type."""
    return isinstance(value, _PLAIN) and type(value) in _PLAIN


def is_itself(value):
    """Whether there is one such object, and nothing in it that changes."""
    if isinstance(value, (type, enum.Enum, types.BuiltinFunctionType, torch._ops.OpOverload,
                          torch._ops.OpOverloadPacket)):
        return True
    if isinstance(value, types.ModuleType):
        return value.__name__.split(".")[0] in _LIBRARIES
    return isinstance(value, types.FunctionType) and _is_library(value) and not value.__closure__


def tensor_key(x):
    """All of a tensor but its elements."""
    if type(x) not in (torch.Tensor, torch.nn.Parameter, torch.nn.Buffer) or x.layout != torch.strided:
        raise Unknown
    return x.dtype, x.shape, x.stride(), x.device, x.requires_grad, x.is_neg(), x.is_conj()


class Walk:
    """Keys of several functions; `leaves` are the tensors that they reach."""

    def __init__(self):
        self.leaves = []
        self._seen = {}

    def key(self, value, names=frozenset(), depth=0):
        if is_plain(value):
            return type(value), value
        if isinstance(value, torch.Tensor):
            return self._tensor(value)
        if type(value) is float:
            return "float", value.hex()
        if is_itself(value):
            return "itself", value
        if depth > _MAX_DEPTH:
            raise Unknown
        if id(value) in self._seen:
            number, known, _ = self._seen[id(value)]
            if names <= known:
                return "seen", number
        self._seen[id(value)] = len(self._seen), names, value  # which keeps its id
        return self._compound(value, names, depth + 1)

    def _tensor(self, x):
        key = tensor_key(x)
        number = next((number for number, leaf in enumerate(self.leaves) if leaf is x), len(self.leaves))
        if number == len(self.leaves):
            self.leaves.append(x)
        return "tensor", number, key

    def _compound(self, value, names, depth):
        if isinstance(value, functools.partial):
            return "partial", self.key((value.func, value.args, value.keywords), names, depth)
        if isinstance(value, types.FunctionType):
            return self._function(value, depth)
        if isinstance(value, types.MethodType):
            inside = names | names_of(value.__func__.__code__)
            return "method", self.key(value.__func__, inside, depth), self.key(value.__self__, inside, depth)
        if isinstance(value, (list, tuple)) and len(value) <= _MAX_ITEMS:
            return type(value), tuple(self.key(item, names, depth) for item in value)
        if type(value) is dict and len(value) <= _MAX_ITEMS:
            return dict, tuple((self.key(k, names, depth), self.key(item, names, depth)) for k, item in value.items())
        if hasattr(value, "__dict__"):
            return self._object(value, names, depth)
        raise Unknown

    def _function(self, function, depth):
        code = function.__code__
        if is_itself(function):
            return "itself", function
        names = names_of(code)
        cells = [cell.cell_contents for cell in function.__closure__ or ()]
        reached = [function.__globals__[name] for name in sorted(names) if name in function.__globals__]
        extra = vars(function)  # __wrapped__ and the like, of decorators
        parts = [self.key(part, names, depth) for part in (
            *cells, function.__defaults__, function.__kwdefaults__, extra.get("__wrapped__"), *reached)]
        return "function", code, tuple(parts)

    def _object(self, value, names, depth):
        kind = type(value)
        if isinstance(value, torch.nn.Module):
            state = {**vars(value), **value._parameters, **value._buffers, **value._modules}
        elif hasattr(kind, "__getattr__") or hasattr(kind, "__slots__"):
            raise Unknown
        else:
            state = vars(value)
        methods = {}
        queue = [name for name in (*names, "__call__", "forward")]
        names = set(names)
        while queue:
            name = queue.pop()
            if name in state or name in methods:
                continue
            found = inspect.getattr_static(kind, name, None)
            found = found.fget if isinstance(found, property) else found
            if isinstance(found, types.FunctionType) and not _is_library(found):
                methods[name] = found
                more = names_of(found.__code__) - names
                names |= more
                queue += more
        names = frozenset(names)
        return (kind, tuple((name, self.key(state[name], names, depth)) for name in sorted(names) if name in state),
                tuple((name, self.key(methods[name], names, depth)) for name in sorted(methods)))


def _is_library(function):
    return (function.__module__ or "").split(".")[0] in _LIBRARIES


@functools.lru_cache(maxsize=4096)
def names_of(code):
    """What the code, and code inside of it, calls things, or could with getattr."""
    names = set(code.co_names)
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            names |= names_of(constant)
        elif isinstance(constant, str):
            names.add(constant)
    return frozenset(names)
