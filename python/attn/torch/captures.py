#===----------------------------------------------------------------------===#
#
# Part of attn, an attention compiler.
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===----------------------------------------------------------------------===#
"""The tensors that a function reads, and how a region reads them.

Tensors that the function made of nothing but numbers are constants: their elements at
known indices are numbers of the region. Others are captured, in the form that kernels
read best.
"""

import math
from typing import Callable, List, NamedTuple, Tuple

import torch

from .. import evaluate
from ..elements import listed
from . import aten
from .scalars import ELEMENTS, LIMITS, NAMES, Value
from .symbols import Symbol

POSITIONS = {"b": "%b", "h": "%h", "q_idx": "%i", "kv_idx": "%j"}
_MOVED = "moved"  # begins the names of captures that no other region shares
_FEW = 256  # elements of a query or key that a kernel sums one by one


class Region(NamedTuple):
    """lines     MLIR, for attn.attention(score=) or (mask=)
    captures  (name, type, tensor): what the lines read
    sources   the tensors that the function had, for each capture
    makers    what makes of a source the captured tensor"""

    lines: str
    captures: List[Tuple[str, str, torch.Tensor]]
    sources: List[torch.Tensor]
    makers: List[Callable[[torch.Tensor], torch.Tensor]]


class _Captured:
    """A tensor of the function, and what makes of it the tensor that the region reads:
    outside of the trace, where autograd sees it."""

    def __init__(self, source, make, name, type, how=None):
        self.source, self.make, self.name, self.type = source, make, name, type
        self.how = how  # not None: other elements than those of the source


class Captures:
    """What the function of a Tracer reads.

    device    where captured tensors with dimensions have to lie; None: where they lie."""

    def __init__(self, tracer, device):
        self.tracer, self.writer = tracer, tracer.writer
        self.is_placed = device is not None
        self.device = torch.device(device) if self.is_placed else torch.device("cpu")
        self.captured = []
        self._constants = {}  # by id: tensors that the function made of nothing but numbers
        self._symbols = {}
        self.made = {}  # by _cdata: memory of what the function made itself

    # Tensors

    def lifted(self):
        """Tensors that became Symbols."""
        return [x for x, _ in self._symbols.values()]

    def is_constant(self, tensor):
        return id(tensor) in self._constants

    def make_constant(self, result):
        for tensor in result if isinstance(result, (tuple, list)) else [result]:
            if isinstance(tensor, torch.Tensor):
                self._constants[id(tensor)] = tensor

    def symbol(self, x):
        """A tensor as a Symbol."""
        if id(x) not in self._symbols:
            made = Symbol(self.tracer, x.shape, x.dtype, self._loader(x))
            made.is_captured = True
            made.why_kept = "a captured tensor cannot be written to"
            self._symbols[id(x)] = x, made
        return self._symbols[id(x)][1]

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
        shape = [x.shape[dim] for dim in kept] or [1]

        def load(index):
            index = [index[dim] for dim in kept] or [0]
            # Kernels of gradients are made for the number of elements, if these are few.
            sizes = [size if x.requires_grad and size <= _FEW and _is_computed(i) else "?"
                     for size, i in zip(shape, index)]
            type = f"tensor<{'x'.join(map(str, sizes))}x{ELEMENTS[x.dtype]}>"
            change = self._placed(index, shape) if x.requires_grad else None
            if change is None:
                return self._load(self._capture(x, make, type), index, x.dtype)
            index, moved, how = change
            type = f"tensor<{'?x' * len(index)}{ELEMENTS[x.dtype]}>"
            return self._load(self._capture(x, lambda x: moved(make(x)), type, how), index, x.dtype)
        return load

    def _placed(self, index, shape):
        """Where gradients want another tensor: (its indices, what makes it, a key). They
        have kernels where query and key are the last two indices, and where one of them is
        beside computed ones with few elements, as in t[h, q, k % 8], not those of
        t[h, q, k // 8], which is t'[h, q, k]."""
        names = [i.name if isinstance(i, Value) else None for i in index]
        if not {"%i", "%j"} & set(names):
            return None
        others = [size for i, size in zip(index, shape) if _is_computed(i)]
        if others and names.count("%i") + names.count("%j") == 1 and math.prod(others) <= _FEW:
            return None
        names, gathered, texts = names[:], {}, []
        for dim, i in enumerate(index):
            position = self._position(i) if names[dim] not in (None, *POSITIONS.values()) else None
            if position is not None:
                self.writer.is_wide = True  # the tensor is made for as many positions
                if self.tracer.sizes is not None:
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
        positions = {"%i": self.tracer.positions["q_idx"], "%j": self.tracer.positions["kv_idx"]}
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
        at = numpy.arange(self.tracer.sizes[2 if position == "%i" else 3], dtype="int32")
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
        source = next((x for x, made in self._symbols.values() if made is symbol), None)
        if source is None:
            raise aten.Unsupported("wanted a captured tensor to search in, got one that the function computes")
        device = self.device if self.is_placed else source.device
        return self._capture(source, lambda x: x.to(device=device, dtype=torch.int32), "tensor<?xi32>")

    # The region

    def region(self, lines, taken, shared):
        """The region of lines: captures get names that are not `taken`, or those that
        `shared` has for the same tensors."""
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


def _is_computed(index):
    """Whether an index is none of the positions themselves, and no number."""
    return isinstance(index, Value) and index.name not in POSITIONS.values()


def _signed(tensor):
    """Bytes as the compiler reads them, with a sign; _widened() takes it away."""
    return tensor.view(torch.int8) if tensor.dtype == torch.uint8 else tensor
