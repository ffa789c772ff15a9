#===----------------------------------------------------------------------===#
#
# Part of attn, an attention compiler.
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===----------------------------------------------------------------------===#
"""What code can reach of an object and of its class: attributes by the names in the code,
and methods that operators, len(), float() and the like call by names of their own."""

import abc
import collections
import dis
import functools
import sys
import types
import typing

import torch

LIBRARIES = ("torch", "math", "operator", "numpy", "functools", "builtins", "typing", "itertools", "abc", "enum",
              "collections", "dataclasses", "types")
# Those that hold nothing but attributes.
_OPEN = (object, typing.Generic, types.SimpleNamespace, types.ModuleType)
# Those of a library, too, that do not look at attributes of objects which others made.
_BARE = (*_OPEN, typing.Protocol, abc.ABC, torch.nn.Module)
# What goes through all attributes.
_GOING_THROUGH = frozenset(("getattr", *(lead + name for lead in ("", "named_") for name in (
    "parameters", "buffers", "modules", "children")), "state_dict", "get_submodule", "get_parameter", "get_buffer"))
_HEAP, _IMMUTABLE = 1 << 9, 1 << 8  # flags of types: classes of Python are the former, not the latter
# Methods that make an object, copy it, or show it to people.
_MAKING = frozenset(("__init__", "__new__", "__post_init__"))
_ASIDE = frozenset(("__repr__", "__del__", "__init_subclass__", "__class_getitem__", "__set_name__", "__setattr__",
                    "__delattr__", "__reduce__", "__reduce_ex__", "__getstate__", "__setstate__", "__getnewargs__",
                    "__copy__", "__deepcopy__", "__dir__", "__sizeof__", "__subclasshook__", "__hash__"))
# What gives a class's objects attributes that lie elsewhere: the last one items of tuples.
_SLOTS = (types.MemberDescriptorType, types.GetSetDescriptorType, type(collections.namedtuple("_", "x").x))


def is_library(value):
    return (getattr(value, "__module__", None) or "").split(".")[0].lstrip("_") in LIBRARIES


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


@functools.lru_cache(maxsize=4096)
def _imported(code):
    found = {step.argval for step in dis.get_instructions(code) if step.opname == "IMPORT_NAME"}
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            found |= _imported(constant)
    return frozenset(found)


def modules_of(code):
    """What the code imports, {name: module or None}, but for libraries."""
    names = {name for full in _imported(code) if full.split(".")[0] not in LIBRARIES
             for name in (full, full.split(".")[0])}
    return {name: sys.modules.get(name) for name in names}


def is_open(kind, known=()):
    """Whether an object of a class is its attributes, besides what it has of `known` classes,
    and these are found where they lie."""
    for base in kind.__mro__:
        if base in _OPEN or base in known:
            continue
        if not base.__flags__ & _HEAP or base.__flags__ & _IMMUTABLE or "__getattribute__" in base.__dict__:
            return False
        if "__getattr__" in base.__dict__ and base is not torch.nn.Module:
            return False
    return True


def is_written(kind):
    """Whether a class is one of Python or of a library; of others nobody knows what their
    methods look at."""
    return all(base.__flags__ & _HEAP and not base.__flags__ & _IMMUTABLE or is_library(base) for base in kind.__mro__)


@functools.lru_cache(maxsize=1024)
def _slots(kind):
    return [(name, slot) for base in kind.__mro__ if not is_library(base)
            for name, slot in base.__dict__.items() if type(slot) is types.MemberDescriptorType]


def state_of(value):
    """The attributes of an object itself."""
    state = dict(getattr(value, "__dict__", ()))
    if isinstance(value, torch.nn.Module):
        state.update({**value._parameters, **value._buffers, **value._modules})
    for name, slot in _slots(type(value)):
        try:
            state[name] = slot.__get__(value)
        except AttributeError:  # nothing in it
            pass
    return state


def called_of(state):
    """What a call of a module calls besides the forward() of its class: a forward() of its own,
    its hooks, and those of all modules."""
    found = {name: x for name, x in state.items() if name == "forward" or name.startswith("_forward_") and x}
    everyone = torch.nn.modules.module
    for name in ("_global_forward_hooks", "_global_forward_pre_hooks"):
        if getattr(everyone, name, None):
            found[name] = getattr(everyone, name)
    return found


def names_in(value, state, names):
    """The names, with those of the state that code with these names may look at, by itself or
    by a class of a library."""
    if not names.isdisjoint(_GOING_THROUGH) or any(
            is_library(base) and base not in _BARE for base in type(value).__mro__):
        return names | state.keys()
    return names


def functions_of(attribute):
    """Those of Python that a method or property of a class consists of."""
    if isinstance(attribute, (staticmethod, classmethod)):
        attribute = attribute.__func__
    elif isinstance(attribute, property):
        attribute = attribute.fget
    elif isinstance(attribute, functools.cached_property):
        attribute = attribute.func
    return [attribute] if isinstance(attribute, types.FunctionType) else []


def of_class(kind, names, state=None):
    """(the names, with those that methods have), {name: attributes of the class, and of its
    bases, which super() finds}) of what is not of a library. state: of an object, which goes
    before what its class has; None: the class itself is called, too."""
    skipped = _ASIDE if state is None else _ASIDE | _MAKING
    names, found, bases = set(names), {}, kind.__mro__
    queue = [*names, "forward"]
    for base in bases:
        if not is_library(base):
            queue += [name for name, attribute in base.__dict__.items()
                      if name.startswith("__") and name not in skipped and functions_of(attribute)]
    while queue:
        name = queue.pop()
        if name in found:
            continue
        attributes = _attributes(bases, name, state)
        if attributes:
            found[name] = attributes
        for function in (function for attribute in attributes for function in functions_of(attribute)):
            if not is_library(function):
                more = names_of(function.__code__) - names
                names |= more
                queue += more
    return frozenset(names), found


def _attributes(bases, name, state):
    """Those of a name, up to the first one of a library."""
    found = []
    for base in bases:
        if name not in base.__dict__:
            continue
        if is_library(base):
            break
        attribute = base.__dict__[name]
        if not (isinstance(attribute, _SLOTS) or state and name in state and not hasattr(type(attribute), "__set__")):
            found.append(attribute)
    return found
