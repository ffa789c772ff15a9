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

from . import aten, symbols, writes
from .symbols import Symbol


def _has_symbol(values):
    return any(isinstance(x, Symbol) or isinstance(x, (list, tuple)) and _has_symbol(x)
               or isinstance(x, slice) and _has_symbol((x.start, x.stop, x.step)) for x in values)


# What gives others the memory of a tensor.
_POINTING = frozenset(("numpy", "__array__", "__dlpack__", "data_ptr", "storage", "untyped_storage"))
# What looks at elements where nothing is dispatched.
_LOOKING = frozenset(("tolist", "tensor_split", "_pack_padded_sequence"))
# What asks for a type, a device or sizes.
_SHAPING = frozenset(("to", "type_as", "expand_as", "view_as", "reshape_as"))
# What changes the shape of a vector in place.
_PRODUCTS = frozenset(("matmul", "__matmul__", "__rmatmul__", "linear"))
_FLAGS = (torch.bool, torch.uint8)  # as indices
_DEPENDS_ON_DATA = {torch.Tag.data_dependent_output, torch.Tag.dynamic_output_shape}


def _tensors(values):
    """Those that are no Symbols."""
    found = []
    for x in torch.utils._pytree.tree_leaves(values):
        found += [x] if not isinstance(x, slice) else [x.start, x.stop, x.step]
    return [x for x in found if isinstance(x, torch.Tensor) and not isinstance(x, Symbol)]


class Calls(TorchFunctionMode):
    """Indices, which PyTorch would ask for their numbers, and where() with numbers."""

    def __init__(self, tracer):
        super().__init__()
        self.tracer = tracer

    def __torch_function__(self, function, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        tracer, name = self.tracer, getattr(function, "__name__", "")
        if function is torch.Tensor.__getitem__:
            if _has_symbol(args):
                with tracer.reporting("Tensor.__getitem__"):
                    found = symbols.index(tracer, tracer.lift(args[0]), args[1])
                    return tracer.made(symbols.copy(found) if _gathers(args[1]) else found)
        elif function is torch.Tensor.__setitem__:
            if _has_symbol(args):
                with tracer.reporting("Tensor.__setitem__"):
                    return writes.set_item(tracer, *args)
        elif function in (torch.where, torch.Tensor.where):
            if _has_symbol([*args, *kwargs.values()]):
                with tracer.reporting("torch.where"):
                    return tracer.made(_where(tracer, function is torch.Tensor.where, args, kwargs))
        elif name == "__set__" and function.__self__ is torch.Tensor.data and _has_symbol(args):
            with tracer.reporting("Tensor.data"):
                raise aten.Unsupported("the memory of a tensor is replaced: use copy_()")
        elif name == "detach_" and _has_symbol(args):
            with tracer.reporting("Tensor.detach_"):
                raise aten.Unsupported("gradients are not stopped in place: use detach()")
        elif name in _PRODUCTS and _has_symbol([*args, *kwargs.values()]):
            with tracer.reporting(name):
                product = aten.vectors.times_matrix(name, args, kwargs)
                if product is not None:
                    return product
        elif name == "_set_grad_enabled":
            tracer.set_gradients(*args)
        elif name in _POINTING:
            tracer.is_repeatable = False
        elif name in _LOOKING:
            for tensor in _tensors((args, kwargs)):
                tracer.reads.add(tensor)
        elif function is torch.tensor and args and not isinstance(args[0], (list, tuple)):
            kwargs = {**kwargs, "device": None}  # a number, wherever it would lie
        before, mark = (tracer.called, tracer.given), tracer.reads.mark()
        tracer.called = resolve_name(function) or name
        tracer.given = _tensors((args[1:] if function is torch.Tensor.new_tensor else args, kwargs))
        try:
            result = function(*args, **kwargs)
        finally:
            given, (tracer.called, tracer.given) = tracer.given, before
        if tracer.captures.is_constant(result):
            for tensor in given:  # torch.tensor([n, 2]) tells nobody that it reads n
                if name not in _SHAPING and not tracer.captures.is_constant(tensor):
                    tracer.reads.add(tensor)
        elif function is torch.Tensor.__getitem__:
            tracer.reads.drop(mark, _places(args[1]))
        tracer.steps.add(function, args, kwargs, result)
        return result


def _gathers(index):
    """Whether target[index] is a copy: with tensors among the indices, and as flex attention
    of PyTorch calls functions, also with nothing but numbers (TransformGetItemToIndex)."""
    items = index if isinstance(index, tuple) else (index,)
    return any(isinstance(x, (torch.Tensor, list)) for x in items) or all(isinstance(x, int) for x in items)


def _places(index):
    """The tensors of an index that say which element is taken, but not of what size the
    result is: a Step reads them again."""
    items = index if isinstance(index, tuple) else (index,)
    if any(isinstance(x, slice) and _tensors(x) for x in items):
        return []
    return [x for x in items if isinstance(x, torch.Tensor) and x.dtype not in _FLAGS]


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
        self._made = tracer.captures.made

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        tensors = [x for x in torch.utils._pytree.tree_leaves((args, kwargs)) if isinstance(x, torch.Tensor)]
        if any(isinstance(x, Symbol) for x in tensors):
            return aten.dispatch(function, args, dict(kwargs))
        if function._schema.is_mutable:
            with self.tracer.reporting(function._schema.name.replace("::", ".")):
                self._check_written(function, args, kwargs)
        result = self._run(function, args, kwargs, tensors)
        given = {storage._cdata for storage in map(_storage, tensors) if storage is not None}
        for storage in map(_storage, torch.utils._pytree.tree_leaves(result)):
            if storage is not None and storage._cdata not in given:
                self._made[storage._cdata] = storage
        return result

    def _check_written(self, function, args, kwargs):
        """Kernels read what is in memory when they run. A function that writes to what was
        there before is called for each of its calls, once."""
        values = {**dict(zip((x.name for x in function._schema.arguments), args)), **kwargs}
        written = [values.get(x.name) for x in function._schema.arguments if x.alias_info and x.alias_info.is_write]
        read = {storage._cdata for storage in map(_storage, self.tracer.captures.lifted()) if storage is not None}
        for tensor in torch.utils._pytree.tree_leaves(written):
            if isinstance(tensor, torch.Tensor):
                storage = _storage(tensor)
                if storage is None or storage._cdata in read:
                    raise aten.Unsupported("a tensor is written to after positions said what is read of it: "
                                           "use clone() before")
                if storage._cdata not in self._made:
                    self.tracer.is_repeatable, self.tracer.writes_outside = False, True

    def _run(self, function, args, kwargs, tensors):
        if torch.Tag.nondeterministic_seeded in function.tags:  # which writes to a generator
            self.tracer.is_repeatable, self.tracer.writes_outside = False, True
            return function(*args, **kwargs)
        if not _DEPENDS_ON_DATA.isdisjoint(function.tags):
            for tensor in _read(function, args, tensors):
                if not self.tracer.captures.is_constant(tensor):
                    self.tracer.reads.add(tensor, self.tracer.given)
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


def _storage(tensor):
    """The memory of a tensor, or None."""
    if not isinstance(tensor, torch.Tensor) or isinstance(tensor, Symbol):
        return None
    try:
        return tensor.untyped_storage()
    except (RuntimeError, NotImplementedError):  # of tensors that transforms wrap
        return None


def _read(function, args, tensors):
    """Of the tensors those whose elements say what the result is, or how large."""
    if function is torch.ops.aten.index.Tensor:
        tensors = [x for x in args[1] if x is not None and x.dtype in _FLAGS]
    return tensors
