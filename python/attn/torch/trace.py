#===----------------------------------------------------------------------===#
#
# Part of attn, an attention compiler.
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===----------------------------------------------------------------------===#
"""From a PyTorch function on scalars to a region of MLIR.

    score = trace.region(lambda score, b, h, q, k: score + bias[h, q, k], "score")
    text = attn.attention("f16", 64, score=score.lines,
                          captures=[(name, type) for name, type, _ in score.captures])

The function is called once, with tensors of no dimensions that record what is done
with them (symbols.py). What it does to other tensors alone, views and conversions
too, PyTorch does: the result is captured, and its gradient flows where PyTorch's
does. Numbers of Python are constants of the region; numbers that change from call
to call are better captured, as tensors of no dimensions.
"""

import contextlib
import functools
import inspect
import math
import os
import re
import sys
from typing import Callable, List, NamedTuple, Tuple

import torch
from torch.overrides import TorchFunctionMode, resolve_name
from torch.utils._python_dispatch import TorchDispatchMode

from .. import evaluate
from .._capi import AttnError
from ..elements import listed
from . import aten, fingerprint, symbols
from .scalars import ELEMENTS, LIMITS, NAMES, Value, Writer
from .symbols import Symbol

_ARGUMENTS = {"score": ("score", "b", "h", "q_idx", "kv_idx"), "mask": ("b", "h", "q_idx", "kv_idx")}
_NAMES = {"b": "%b", "h": "%h", "q_idx": "%i", "kv_idx": "%j"}
_MAX_POSITIONS = 2**30
_MOVED = "moved"  # begins the names of captures that no other region shares
_FOLDERS = tuple(os.path.dirname(os.path.abspath(module)) + os.sep for module in (torch.__file__, __file__))


class TraceError(AttnError):
    """A function of scores or masks that no kernel can hold; the text names the file
    and line of the function, and the operation."""


class Region(NamedTuple):
    """lines     MLIR, for attn.attention(score=) or (mask=)
    captures  (name, type, tensor): what the lines read
    sources   the tensors that the function had, for each capture
    makers    what makes of a source the captured tensor"""

    lines: str
    captures: List[Tuple[str, str, torch.Tensor]]
    sources: List[torch.Tensor]
    makers: List[Callable[[torch.Tensor], torch.Tensor]]


def region(function, kind, taken=(), *, device=None, shared=None, sizes=None):
    """The region of `function`.

    function  score_mod(score, b, h, q_idx, kv_idx) or mask_mod(b, h, q_idx, kv_idx),
              as torch.nn.attention.flex_attention has them. score is float32, the
              others are int32.
    kind      "score" or "mask".
    taken     names that captures cannot have.
    device    where the kernel will run: captured tensors with dimensions have to lie
              there. None: where they lie.
    shared    another Region: tensors that it captures have its names.
    sizes     (batch, heads, queries, keys), the largest that the region has to serve.
              None: 2^30 each. Where they tell that an index is not negative, or that an
              int64 fits i32, the lines are shorter.

    Raises TraceError where no kernel can do what the function does."""
    def trace(sizes):
        tracer, element = _traced(function, kind, device, sizes)
        return [tracer], [tracer.region(element, taken, shared)]
    if shared is not None:
        return _narrowed(trace, sizes)[1][0]
    return _remembered((function,), (kind, tuple(taken), device), sizes, trace)[0]


def regions(score_mod, mask_mod, taken=(), *, device=None, sizes=None):
    """(score, mask): the Regions of both, None where there is nothing to do. A score
    that is -inf under a condition on positions, as in torch.where(q >= k, score, -inf),
    becomes a score and a mask, which says what kernels need not compute."""
    def trace(sizes):
        tracers, score, mask, hidden = [], None, None, None
        if score_mod is not None:
            tracer, element = _traced(score_mod, "score", device, sizes)
            tracers.append(tracer)
            element, shown = tracer.split(element)
            score = tracer.region(element, taken)
            if shown is not None:
                hidden = tracer.region(shown, taken, score, "mask")
            if score.lines == "attn.yield %x : f32":
                score = None
        if mask_mod is not None:
            tracer, element = _traced(mask_mod, "mask", device, sizes)
            tracers.append(tracer)
            known = [one for one in (score, hidden) if one is not None]
            if element is not True:
                mask = tracer.region(element, taken, _joined(known) if known else None)
        if mask is not None and hidden is not None:
            return tracers, [score, _both(hidden, mask)]
        return tracers, [score, mask if hidden is None else hidden]
    return tuple(_remembered((score_mod, mask_mod), ("both", tuple(taken), device), sizes, trace))


def _narrowed(trace, sizes):
    """trace(sizes), but for any sizes where that makes no difference; and whether it
    makes one."""
    tracers, found = trace(None)
    if sizes is not None and any(tracer.writer.is_wide for tracer in tracers):
        return *trace(sizes), True
    return tracers, found, False


# What functions became, by their fingerprints: regions without tensors, or _WIDE
# where the key has to have the sizes, too.
_KNOWN, _WIDE, _MAX_KNOWN = {}, object(), 1024


def _remembered(functions, key, sizes, trace):
    """The regions that trace(sizes) makes of the functions; known ones get their tensors
    from the functions."""
    walk = fingerprint.Walk()
    try:
        key = (key, tuple(map(walk.key, functions)), torch.get_default_dtype(),
               torch.is_autocast_enabled("cpu"), torch.is_autocast_enabled("cuda"))
        known = _KNOWN.get(key)
        is_sized = known is _WIDE
        if is_sized:
            key = key, sizes
            known = _KNOWN.get(key)
    except (fingerprint.Unknown, TypeError, ValueError):  # or what is empty, or cannot be hashed
        return _narrowed(trace, sizes)[1]
    if known is not None:
        return [one and one.filled(walk.leaves) for one in known]
    tracers, found, is_wide = _narrowed(trace, sizes)
    if len(_KNOWN) >= _MAX_KNOWN:
        _KNOWN.clear()
    if is_wide and not is_sized:
        _KNOWN[key] = _WIDE
        key = key, sizes
    if all(tracer.is_repeatable and tracer.writer.is_repeatable for tracer in tracers):
        kept = [one and _Kept.of(one, walk.leaves, tracers) for one in found]
        if all(one is None or isinstance(one, _Kept) for one in kept):
            _KNOWN[key] = kept
    return found


class _Kept(NamedTuple):
    """A Region whose tensors are the function's: (name, type, number of the leaf or
    the tensor that the function always makes, maker)."""

    lines: str
    captures: List[tuple]

    @staticmethod
    def of(region, leaves, tracers):
        """None, where a tensor is neither; False is no region."""
        captures = []
        for (name, type, _), source, maker in zip(region.captures, region.sources, region.makers):
            number = next((number for number, leaf in enumerate(leaves) if leaf is source), None)
            if number is None:
                if not any(tracer.is_constant(source) for tracer in tracers):
                    return False
                number = source
            captures.append((name, type, number, maker))
        return _Kept(region.lines, captures)

    def filled(self, leaves):
        sources = [leaves[number] if isinstance(number, int) else number for _, _, number, _ in self.captures]
        captures = [(name, type, maker(source))
                    for (name, type, _, maker), source in zip(self.captures, sources)]
        return Region(self.lines, captures, sources, [maker for *_, maker in self.captures])


def _traced(function, kind, device, sizes):
    _check_signature(function, kind)
    tracer = Tracer(function, kind, device)
    arguments = tracer.arguments(sizes)
    with _Real(tracer), _Calls(tracer):
        result = function(*arguments)
    return tracer, tracer.result(result)


def _joined(several):
    """The captures of several regions."""
    captured = {}
    for one in several:
        for capture, *made in zip(one.captures, one.sources, one.makers):
            captured.setdefault(capture[0], (capture, *made))
    return Region("", *([parts[number] for parts in captured.values()] for number in range(3)))


def _both(one, other):
    """What both masks show."""
    captured = _joined([one, other])
    texts, flags = [], []
    for letter, mask in zip("vw", (one, other)):
        *body, last = re.sub(r"%v(\d+)", rf"%{letter}\1", mask.lines).split("\n")
        texts += body
        flags.append(NAMES.search(last)[0])
    texts += [f"%shown = arith.andi {', '.join(flags)} : i1", "attn.yield %shown : i1"]
    return captured._replace(lines="\n".join(texts))


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


class _Captured:
    """A tensor of the function, and what makes of it the tensor that the region reads:
    outside of the trace, where autograd sees it."""

    def __init__(self, source, make, name, type, how=None):
        self.source, self.make, self.name, self.type = source, make, name, type
        self.how = how  # not None: other elements than those of the source


class Tracer:
    """One call of one function."""

    def __init__(self, function, kind, device):
        self.function, self.kind = function, kind
        self.is_placed = device is not None
        self.device = torch.device(device) if self.is_placed else torch.device("cpu")
        self.what = kind + "_mod"
        self.writer = Writer()
        self.captured = []
        self._constants = {}  # by id: tensors that the function made of nothing but numbers
        self._lifted = {}
        self.is_repeatable = True  # nothing was asked for its elements
        self.called = None  # what the function called last

    def arguments(self, sizes=None):
        self.sizes, self.positions = sizes, {}
        values, sizes = [], iter(sizes or [_MAX_POSITIONS] * 4)
        for name in _ARGUMENTS[self.kind]:
            if name == "score":
                values.append(symbols.scalar(self, Value(self.writer, "%x", "f32"), torch.float32))
            else:
                value = self.writer.ranged(Value(self.writer, _NAMES[name], "i32"), (0, max(0, next(sizes) - 1)))
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
            if frame.f_code is region.__code__:
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

    # Tensors

    def is_constant(self, tensor):
        return id(tensor) in self._constants

    def make_constant(self, result):
        for tensor in result if isinstance(result, (tuple, list)) else [result]:
            if isinstance(tensor, torch.Tensor):
                self._constants[id(tensor)] = tensor

    def lift(self, x):
        """Any tensor as a Symbol; numbers as they are."""
        if isinstance(x, Symbol):
            if x.tracer is not self:
                raise aten.Unsupported("this value belongs to another call of a function")
            return x
        if not isinstance(x, torch.Tensor):
            return x
        if id(x) not in self._lifted:
            self._lifted[id(x)] = x, Symbol(self, x.shape, x.dtype, self._loader(x))
        return self._lifted[id(x)][1]

    def _loader(self, x):
        if self.is_constant(x) and x.dim() == 0:
            number = x.item()
            return lambda index: number
        if x.dtype not in ELEMENTS:
            names = [str(dtype) for dtype in ELEMENTS]
            raise aten.Unsupported(f"wanted a captured tensor of {listed(names)}, got {x.dtype}")
        if x.dim() == 0:
            return self._scalar_loader(x)
        if self.is_constant(x):
            numbers = x.cpu() if x.device != self.device else x
            element = self._tensor_loader(x)
            return lambda index: element(index) if any(isinstance(i, Value) for i in index) \
                else numbers[index].item()
        if self.is_placed and x.device != self.device:
            raise aten.Unsupported(f"wanted a captured tensor on {self.device}, got one on {x.device}")
        return self._tensor_loader(x)

    def _scalar_loader(self, x):
        if x.device.type == "cpu" and not x.requires_grad:
            found = self._capture(x, _signed, ELEMENTS[x.dtype])
            value = Value(self.writer, "%" + found.name, found.type)
            value = self._widened(value, x.dtype)
            value.scalar = x
            return lambda index: value
        device = self.device if self.is_placed else x.device
        found = self._capture(x, lambda x: _signed(x.reshape(1).to(device)), f"tensor<1x{ELEMENTS[x.dtype]}>")
        return lambda index: self._load(found, (0,), x.dtype)

    def _tensor_loader(self, x):
        # What expand() made has one element to read; the dimension whose elements lie
        # side by side comes last.
        kept = [dim for dim in range(x.dim()) if x.stride(dim) or x.shape[dim] == 1]
        if kept and not x.requires_grad and x.stride(kept[-1]) != 1:
            kept.sort(key=lambda dim: -x.stride(dim))
        device = self.device if self.is_constant(x) else x.device
        is_whole = kept == list(range(x.dim()))
        at = tuple(slice(None) if dim in kept else 0 for dim in range(x.dim()))
        left = sorted(kept)
        order = [left.index(dim) for dim in kept]

        def make(tensor):
            if not is_whole:
                tensor = tensor[at].permute(order) if kept else tensor[at].reshape(1)
            return _signed(tensor.to(device).resolve_neg())
        type = f"tensor<{'?x' * max(1, len(kept))}{ELEMENTS[x.dtype]}>"

        def load(index):
            index = [index[dim] for dim in kept] or [0]
            change = self._placed(index) if x.requires_grad else None
            if change is None:
                return self._load(self._capture(x, make, type), index, x.dtype)
            index, moved, how = change
            return self._load(self._capture(x, lambda x: moved(make(x)), type, how), index, x.dtype)
        return load

    def _placed(self, index):
        """Where gradients want another tensor: (its indices, what makes it, a key). They
        have kernels where query and key are the last two indices, and none where one of
        them is beside a computed one, as in t[h, q, k // 8], which is t'[h, q, k]."""
        names = [i.name if isinstance(i, Value) else None for i in index]
        if not {"%i", "%j"} & set(names):
            return None
        names, gathered, texts = names[:], {}, []
        for dim, i in enumerate(index):
            position = self._position(i) if names[dim] not in (None, *_NAMES.values()) else None
            if position is not None:
                self.writer.is_wide = True  # the tensor is made for as many positions
                if self.sizes is not None:
                    numbers = self._numbers(i, position)
                    if numbers is not None:
                        gathered[dim], names[dim] = numbers, position
                        texts.append((dim, *self.writer.finished(i)))
        order = [dim for dim, name in enumerate(names) if name not in ("%i", "%j")]
        if names.count("%i") == names.count("%j") == 1:
            order += [names.index("%i"), names.index("%j")]
        else:
            order = list(range(len(names)))
        if not gathered and (order[-2:] == list(range(len(names)))[-2:] or names[-2:] == ["%j", "%i"]):
            return None

        made = {}

        def moved(tensor):
            for dim, numbers in gathered.items():
                if (dim, tensor.device) not in made:
                    at = torch.tensor(numbers).clamp(0, tensor.shape[dim] - 1)
                    made[dim, tensor.device] = at.to(tensor.device)
                tensor = tensor.index_select(dim, made[dim, tensor.device])
            return tensor.permute(order)
        positions = {"%i": self.positions["q_idx"], "%j": self.positions["kv_idx"]}
        index = [positions[names[dim]] if dim in gathered else index[dim] for dim in order]
        return index, moved, (*texts, *order)

    def _position(self, value):
        """"%i" or "%j", where the value depends on this alone."""
        used = {name for line in self.writer.finished(value) for name in NAMES.findall(line)
                if not name.startswith("%v")}
        return used.pop() if len(used) == 1 and used < {"%i", "%j"} else None

    def _numbers(self, value, position):
        """Its numbers at all positions, where NumPy can tell."""
        try:
            import numpy
        except ImportError:
            return None
        at = numpy.arange(self.sizes[2 if position == "%i" else 3], dtype="int32")
        found = evaluate.Region(numpy, {}, {position[1:]: at}).run(self.writer.finished(value)).value
        return None if found is None else numpy.broadcast_to(found, at.shape).tolist()

    def _load(self, found, index, dtype):
        at = ", ".join(self.writer.typed(i, "i32").name for i in index)
        element = ELEMENTS[dtype]
        return self._widened(
            self.writer.add(f"attn.capture_load %{found.name}[{at}] : {found.type}", element), dtype)

    def _widened(self, value, dtype):
        """A captured element as the writer wants values: f32, or an integer with a range."""
        if value.type in ("f16", "bf16"):
            return value.to("f32")
        if value.type in ("i8", "i16"):
            value = value.to("i32")
            if dtype == torch.uint8:
                value = self.writer.ranged(value, LIMITS[torch.int8])
                return self.writer.integer("and", value, 255, torch.int32)
            return self.writer.ranged(value, LIMITS[dtype])
        return value

    def _capture(self, source, make, type, how=None):
        for found in self.captured:
            if found.source is source and found.type == type and found.how == how:
                return found
        found = _Captured(source, make, f"captured{len(self.captured)}", type, how)
        self.captured.append(found)
        return found

    def searched(self, symbol):
        """The capture of a table of integers, as i32, that will be searched."""
        source = next((x for x, lifted in self._lifted.values() if lifted is symbol), None)
        if source is None:
            raise aten.Unsupported("wanted a captured tensor to search in, got one that the function computes")
        device = self.device if self.is_placed else source.device
        return self._capture(source, lambda x: x.to(device=device, dtype=torch.int32), "tensor<?xi32>")

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
        return self._region(self.writer.finished(value), taken, shared)

    def _region(self, lines, taken, shared):
        text = "\n".join(lines)
        words = set(NAMES.findall(text))
        captures, sources, makers, names = [], [], [], {}
        known = [] if shared is None else list(zip(shared.sources, shared.captures))
        used = {*taken, *(name for name, _, _ in (shared.captures if shared else ()))}
        for found in self.captured:
            if "%" + found.name not in words:
                continue
            same = next((capture for source, capture in known
                         if source is found.source and capture[1] == found.type
                         and found.how is None and not capture[0].startswith(_MOVED)), None)
            if same is None:
                prefix = "t" if found.how is None else _MOVED
                name = next(n for n in (f"{prefix}{number}" for number in range(len(used) + 1)) if n not in used)
                used.add(name)
                same = name, found.type, found.make(found.source)
            names["%" + found.name] = "%" + same[0]
            captures.append(same)
            sources.append(found.source)
            makers.append(found.make)
        text = NAMES.sub(lambda match: names.get(match[0], match[0]), text)
        return Region(text, captures, sources, makers)


def _signed(tensor):
    """Bytes as the compiler reads them, with a sign; _widened() takes it away."""
    return tensor.view(torch.int8) if tensor.dtype == torch.uint8 else tensor


def _has_symbol(values):
    return any(isinstance(x, Symbol) or isinstance(x, (list, tuple)) and _has_symbol(x)
               or isinstance(x, slice) and _has_symbol((x.start, x.stop, x.step)) for x in values)


_ASKING = frozenset(("item", "tolist", "numpy", "__array__", "__bool__", "__int__", "__float__", "__index__",
                     "__contains__", "equal", "is_nonzero", "allclose", "data_ptr"))


class _Calls(TorchFunctionMode):
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
            return function(*args, **kwargs)
        finally:
            tracer.called = before


def _where(tracer, is_method, args, kwargs):
    names = ["input", "condition", "other"] if is_method else ["condition", "input", "other"]
    given = {**dict(zip(names, args)), **kwargs}
    if "self" in given:
        given["input"] = given.pop("self")
    values = [tracer.lift(given.get(name)) for name in ("condition", "input", "other")]
    return aten.HANDLERS["where"](tracer, *values)


class _Real(TorchDispatchMode):
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
        is_constant = all(map(self.tracer.is_constant, tensors)) or function is torch.ops.aten.lift_fresh.default
        if is_constant and not tensors and kwargs.get("device") is not None:
            here = function(*args, **{**kwargs, "device": torch.device("cpu")})
            result = here if here.dim() == 0 else function(*args, **kwargs)
        else:
            result = function(*args, **kwargs)
        if is_constant:
            self.tracer.make_constant(result)
        return result
