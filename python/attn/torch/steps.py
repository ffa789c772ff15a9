#===----------------------------------------------------------------------===#
#
# Part of attn, an attention compiler.
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===----------------------------------------------------------------------===#
"""How a function of scores or masks makes tensors of those that it captures, as in
offsets[0] or pages.unbind(-1): done again for other tensors, without calling the
function.
"""

import contextlib

import torch
from torch.utils._pytree import tree_flatten, tree_leaves, tree_unflatten

_IN_PLACE = {f"__{name}__" for name in ("setitem", "iadd", "isub", "imul", "itruediv", "ifloordiv", "imod", "iand", "ior",
                                        "ixor", "ipow", "ilshift", "irshift", "imatmul", "delitem", "set")}


def _writes(function, kwargs):
    schema = getattr(function, "_schema", None)  # of torch.ops
    if schema is not None:
        return schema.is_mutable
    name = getattr(function, "__name__", "")
    return name in _IN_PLACE or name.endswith("_") and not name.endswith("__") or bool(kwargs.get("inplace")) or \
        kwargs.get("out") is not None


def state():
    """What else a call depends on, which a function may set for a part of itself."""
    return torch.get_default_dtype(), *[
        torch.get_autocast_dtype(kind) if torch.is_autocast_enabled(kind) else None for kind in ("cpu", "cuda")]


def source(number, leaves, made):
    """A leaf by its number, what a Step makes of leaves, or the tensor itself."""
    if isinstance(number, int):
        return leaves[number]
    return number.make(leaves, made) if isinstance(number, Step) else number


class Step:
    """One call of a function of PyTorch, or one of its results."""

    def __init__(self, function, spec, flat, sources, stops):
        self._function, self._spec, self._flat, self._sources = function, spec, flat, sources
        self._stops = stops  # gradients

    def make(self, leaves, made):
        """The tensor, of these leaves; `made` has what other steps made of them."""
        if self not in made:
            flat = list(self._flat)
            for position, number in self._sources:
                flat[position] = source(number, leaves, made)
            args, kwargs = tree_unflatten(flat, self._spec)
            with torch.no_grad() if self._stops else contextlib.nullcontext():
                made[self] = self._function(*args, **kwargs)
        return made[self]


class Part(Step):
    """One of several results of a step."""

    def __init__(self, step, number):
        self._step, self._number = step, number

    def make(self, leaves, made):
        return self._step.make(leaves, made)[self._number]


class Steps:
    """The calls of one call of a function, but for those with positions or scores."""

    def __init__(self):
        self._calls, self._steps = [], {}
        self._state, self._has_gradients = state(), torch.is_grad_enabled()
        # Nothing is written to, and no state is set, but for torch.no_grad() where this can be
        # told from the state that the function is called in.
        self._is_in_order, self.has_written = True, False

    def add(self, function, args, kwargs, result):
        several = result if isinstance(result, (tuple, list)) else [result]
        is_set = not self._has_gradients and getattr(function, "__name__", "") == "_set_grad_enabled"
        writes = _writes(function, kwargs)
        self.has_written = self.has_written or writes
        if writes or is_set or self._state != state():
            self._is_in_order = False
        elif any(isinstance(x, torch.Tensor) for x in several):
            self._calls.append((function, args, kwargs, result, self._has_gradients and not torch.is_grad_enabled()))

    def of(self, tensor, leaves, is_constant):
        """The Step that makes a tensor of leaves and of what is_constant knows, or None."""
        if not self._is_in_order:
            return None
        for call in self._calls:
            result = call[3]
            if any(x is tensor for x in tree_leaves(call[1:3])):
                continue  # it was there before, and is what contiguous() and the like return
            if result is tensor:
                return self._step(call, leaves, is_constant)
            if isinstance(result, (tuple, list)) and any(x is tensor for x in result):
                step = self._step(call, leaves, is_constant)
                return step and Part(step, next(n for n, x in enumerate(result) if x is tensor))
        return None

    def _step(self, call, leaves, is_constant):
        if id(call) not in self._steps:
            function, args, kwargs, _, stops = call
            flat, spec = tree_flatten((args, kwargs))
            sources = []
            for position, x in enumerate(flat):
                if isinstance(x, slice):
                    flat[position] = _of_numbers(x)
                if not isinstance(x, torch.Tensor):
                    continue
                number = next((number for number, leaf in enumerate(leaves) if leaf is x), None)
                if number is None and is_constant(x):
                    continue
                if number is None:
                    number = self.of(x, leaves, is_constant)
                if number is None:
                    return None
                flat[position] = None
                sources.append((position, number))
            self._steps[id(call)] = Step(function, spec, flat, sources, stops)
        return self._steps[id(call)]


def _of_numbers(x):
    """A slice whose bounds may be tensors, which were read: Reads says of what."""
    return slice(*(int(bound) if isinstance(bound, torch.Tensor) else bound for bound in (x.start, x.stop, x.step)))
