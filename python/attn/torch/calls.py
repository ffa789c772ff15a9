#===----------------------------------------------------------------------===#
#
# Part of attn, an attention compiler.
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===----------------------------------------------------------------------===#
"""What a function calls while it is traced: calls of PyTorch that a Symbol is part of go
to aten, others run.
"""

import torch
from torch.overrides import TorchFunctionMode, resolve_name
from torch.utils._python_dispatch import TorchDispatchMode

from . import aten, symbols
from .symbols import Symbol


def _has_symbol(values):
    return any(isinstance(x, Symbol) or isinstance(x, (list, tuple)) and _has_symbol(x)
               or isinstance(x, slice) and _has_symbol((x.start, x.stop, x.step)) for x in values)


_ASKING = frozenset(("item", "tolist", "numpy", "__array__", "__bool__", "__int__", "__float__", "__index__",
                     "__contains__", "equal", "is_nonzero", "allclose", "data_ptr"))


class Calls(TorchFunctionMode):
    """Indices, which PyTorch would ask for their numbers, and where() with numbers."""

    def __init__(self, tracer):
        super().__init__()
        self.tracer = tracer

    def __torch_function__(self, function, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        tracer = self.tracer
        if function is torch.Tensor.__getitem__:
            if _has_symbol(args):
                with tracer.reporting("Tensor.__getitem__"):
                    return symbols.index(tracer, tracer.lift(args[0]), args[1])
        elif function in (torch.where, torch.Tensor.where):
            if _has_symbol([*args, *kwargs.values()]):
                with tracer.reporting("torch.where"):
                    return _where(tracer, function is torch.Tensor.where, args, kwargs)
        elif getattr(function, "__name__", "") in _ASKING:
            tracer.is_repeatable = False
        elif function is torch.tensor and args and not isinstance(args[0], (list, tuple)):
            kwargs = {**kwargs, "device": None}  # a number, wherever it would lie
        before, tracer.called = tracer.called, resolve_name(function) or getattr(function, "__name__", None)
        try:
            result = function(*args, **kwargs)
        finally:
            tracer.called = before
        tracer.steps.add(function, args, kwargs, result)
        return result


def _where(tracer, is_method, args, kwargs):
    names = ["input", "condition", "other"] if is_method else ["condition", "input", "other"]
    given = {**dict(zip(names, args)), **kwargs}
    if "self" in given:
        given["input"] = given.pop("self")
    values = [tracer.lift(given.get(name)) for name in ("condition", "input", "other")]
    return aten.HANDLERS["where"](tracer, *values)


class Operations(TorchDispatchMode):
    """What the function does with no Symbol, and which results are constants."""

    def __init__(self, tracer):
        super().__init__()
        self.tracer = tracer

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        tensors = [x for x in torch.utils._pytree.tree_leaves((args, kwargs)) if isinstance(x, torch.Tensor)]
        if any(isinstance(x, Symbol) for x in tensors):
            return aten.dispatch(function, args, dict(kwargs))
        if torch.Tag.nondeterministic_seeded in function.tags:
            self.tracer.is_repeatable = False
            return function(*args, **kwargs)
        is_constant = function is torch.ops.aten.lift_fresh.default or \
            all(map(self.tracer.captures.is_constant, tensors))
        if is_constant and not tensors and kwargs.get("device") is not None:
            here = function(*args, **{**kwargs, "device": torch.device("cpu")})
            result = here if here.dim() == 0 else function(*args, **kwargs)
        else:
            result = function(*args, **kwargs)
        if is_constant:
            self.tracer.captures.make_constant(result)
        return result
