#===----------------------------------------------------------------------===#
#
# Part of attn, an attention compiler.
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===----------------------------------------------------------------------===#
"""One call of a function of scores or masks, with tensors of no dimensions that record
what is done with them.
"""

import contextlib
import functools
import inspect
import math
import os
import sys

import torch
from torch._functorch import pyfunctorch
from torch.autograd import forward_ad

from .._capi import AttnError
from . import aten, symbols
from .calls import Calls, Operations
from .captures import POSITIONS, Captures
from .reads import Reads
from .scalars import Value, Writer
from .steps import Steps
from .symbols import Symbol

_ARGUMENTS = {"score": ("score", *POSITIONS), "mask": tuple(POSITIONS)}
_MAX_POSITIONS = 2**30
_FOLDERS = tuple(os.path.dirname(os.path.abspath(module)) + os.sep for module in (torch.__file__, __file__))


class TraceError(AttnError):
    """A function of scores or masks that no kernel can hold; the text names the file
    and line of the function, and the operation."""


def traced(function, kind, device, sizes):
    """(Tracer, element) of one call of a function: see trace.region."""
    _check_signature(function, kind)
    tracer = Tracer(function, kind, device)
    arguments = tracer.arguments(sizes)
    with _outside_transforms(), tracer.modes():
        result = function(*arguments)
    return tracer, tracer.result(result)


@contextlib.contextmanager
def _outside_transforms():
    """Where torch.func would wrap what is recorded in tensors of its own, and forward-mode
    AD ask for tangents of it."""
    with contextlib.ExitStack() as stack:
        if not torch.compiler.is_dynamo_compiling():
            if torch._C._functorch.peek_interpreter_stack() is not None:
                stack.enter_context(pyfunctorch.temporarily_clear_interpreter_stack())
            stack.enter_context(forward_ad._set_fwd_grad_enabled(False))
        yield


def _check_signature(function, kind):
    wanted = f"a function of ({', '.join(_ARGUMENTS[kind])})"
    if not callable(function):
        raise TypeError(f"{kind}_mod: wanted {wanted}, got {type(function).__name__}")
    try:
        inspect.signature(function).bind(*_ARGUMENTS[kind])
    except TypeError:
        raise TypeError(f"{kind}_mod: wanted {wanted}, got {function!r}") from None
    except ValueError:
        pass  # a builtin has no signature: calling it will tell


def _place(function):
    """"FILE:LINE" of a function."""
    while isinstance(function, functools.partial):
        function = function.func
    if isinstance(function, torch.nn.Module):
        function = function.forward
    function = inspect.unwrap(function)
    if not hasattr(function, "__code__") and hasattr(type(function), "__call__"):
        function = getattr(type(function).__call__, "__func__", type(function).__call__)
    function = getattr(function, "__func__", function)
    code = getattr(function, "__code__", None)
    return f"{code.co_filename}:{code.co_firstlineno}" if code else repr(function)


class Tracer:
    """One call of one function."""

    def __init__(self, function, kind, device):
        self.function, self.kind = function, kind
        self.what = kind + "_mod"
        self.reads = Reads()
        self.writer = Writer(self.reads)
        self.captures = Captures(self, device)
        self.is_repeatable = True  # nothing was drawn, or looked at where it lies
        self.writes_outside = False  # to what it did not make
        self.steps = Steps()  # by which the function made tensors of others
        self.stops_gradients = False  # by torch.no_grad() or a like of it in the function
        self.has_gradients = torch.is_grad_enabled()
        self.called = None  # what the function called last
        self.given = ()  # the tensors of that call

    @contextlib.contextmanager
    def modes(self):
        """In which calls of PyTorch are looked at."""
        with self.operations(), Calls(self):
            yield

    def operations(self):
        """The same where nothing of Python calls PyTorch."""
        return Operations(self)

    def arguments(self, sizes=None):
        self.sizes, self.positions = sizes, {}
        values, sizes = [], iter(sizes or [_MAX_POSITIONS] * 4)
        for name in _ARGUMENTS[self.kind]:
            if name == "score":
                values.append(symbols.scalar(self, Value(self.writer, "%x", "f32"), torch.float32))
            else:
                value = self.writer.ranged(Value(self.writer, POSITIONS[name], "i32"), (0, max(0, next(sizes) - 1)))
                self.positions[name] = value
                values.append(symbols.scalar(self, value, torch.int32))
        return values

    # Errors

    def where(self):
        """"FILE:LINE" of the function's code that runs now."""
        frame = sys._getframe(1)
        while frame is not None:
            name = frame.f_code.co_filename
            if not name.startswith(_FOLDERS) and not name.startswith("<") and \
                    os.path.basename(name) not in ("contextlib.py", "functools.py"):
                return f"{name}:{frame.f_lineno}"
            if frame.f_code is traced.__code__:
                break
            frame = frame.f_back
        return _place(self.function)

    @contextlib.contextmanager
    def reporting(self, operation):
        try:
            yield
        except AttnError:
            raise
        except Exception as error:
            called = self.called
            if called and called.split(".")[-1].strip("_") not in operation:
                operation = f"{called} ({operation})"
            raise TraceError(f"{self.where()}: {self.what}: {operation}: {error}") from error

    # Gradients

    def set_gradients(self, enabled):
        """The function said so, by torch.no_grad() or another name of it."""
        self.stops_gradients = not enabled

    def is_stopping(self):
        """Whether the function wants no gradients of what it does now."""
        # In forward() of an autograd.Function there are none, either: that is no wish of the
        # function, and its forward is differentiated here.
        return self.has_gradients and (
            self.stops_gradients and not torch.is_grad_enabled() or torch.is_inference_mode_enabled())

    def made(self, result):
        """What an operation returned, without gradients where the function wants none."""
        if not self.is_stopping():
            return result
        if isinstance(result, (tuple, list)):
            return (list if isinstance(result, list) else tuple)(map(self.made, result))
        if not isinstance(result, Symbol):
            return result
        return aten.stopped(self, result) if result.base is None else symbols.stopped(result)

    # Tensors

    def lift(self, x):
        """Any tensor as a Symbol; numbers as they are."""
        if isinstance(x, Symbol):
            if x.tracer is not self:
                raise aten.Unsupported("this value belongs to another call of a function")
            return x
        return self.captures.symbol(x) if isinstance(x, torch.Tensor) else x

    # The end

    def result(self, result):
        """What the function returned, as a scalar of the region."""
        place = _place(self.function)
        wanted = "a score (a number)" if self.kind == "score" else "a flag (a comparison)"
        if result is None:
            raise TraceError(f"{place}: {self.what}: returned nothing, wanted {wanted}: is a `return` missing?")
        if isinstance(result, torch.Tensor):
            with self.reporting("return"):
                result = self.lift(result)
            if result.dim():
                raise TraceError(f"{place}: {self.what}: wanted {wanted}, got a tensor of shape "
                                 f"{tuple(result.shape)}: index it to one element")
            dtype, element = result.dtype, result.element()
        elif isinstance(result, (bool, int, float)):
            dtype = {bool: torch.bool, int: torch.int64, float: torch.float32}[type(result)]
            element = result
        else:
            raise TraceError(f"{place}: {self.what}: wanted {wanted}, got {type(result).__name__}")
        if self.kind == "mask" and dtype != torch.bool:
            raise TraceError(f"{place}: {self.what}: wanted {wanted}, got {dtype}: compare it")
        return element

    def split(self, score):
        """(score where it is shown, where it is shown): a score that select makes -inf
        is hidden, if scores have no part in the condition."""
        shown = None
        while hasattr(score, "chosen"):
            condition, first, second = score.chosen
            if self.writer.reaches("%x", condition.name):
                break
            if self._hides(second):
                score = first
            elif self._hides(first):
                score, condition = second, self.writer.negate(condition)
            else:
                break
            shown = condition if shown is None else self.writer.logic("and", shown, condition)
        return score, shown

    def _hides(self, element):
        element = self.writer.known(element)
        return not isinstance(element, Value) and element == -math.inf

    def region(self, element, taken=(), shared=None, kind=None):
        """The region that yields an element."""
        value = self.writer.typed(element, "f32" if (kind or self.kind) == "score" else "i1")
        return self.captures.region(self.writer.finished(value), taken, shared)
