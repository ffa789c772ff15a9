#===----------------------------------------------------------------------===#
#
# Part of attn, an attention compiler.
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===----------------------------------------------------------------------===#
"""Tensors whose elements are scalars of a region, and what indexing makes of them.

A Symbol of no dimensions is a scalar. One with dimensions is a function from indices
to scalars, so that a view is another function and nothing is read before one element
is asked for: `bias[b][h]` is two views, `bias[b][h][q, k]` one read.

A view knows what it is a view of, so that what is written to one of both is seen in the
other. All else keeps the elements that were there when it was made: loader() gives them.
"""

import itertools

import torch

from . import halves
from .scalars import Value, is_float

# Elements that a sum, or a product with a vector, may write one after the other.
MAX_UNROLLED = 256


class Symbol(torch.Tensor):
    """A tensor of PyTorch whose elements the region computes.

    load    its elements; None: it is a view
    base    the Symbol that it is a view of, and
    to_old  what maps its indices to those of the base
    stride  what PyTorch would have, which tells where reshape() and contiguous() copy"""

    __torch_function__ = torch._C._disabled_torch_function_impl

    @staticmethod
    def __new__(cls, tracer, shape, dtype, load, base=None, to_old=None, stride=None):
        return torch.Tensor._make_wrapper_subclass(
            cls, tuple(shape), strides=stride, dtype=dtype, device=tracer.captures.device)

    def __init__(self, tracer, shape, dtype, load, base=None, to_old=None, stride=None):
        self.tracer, self.base, self.to_old = tracer, base, to_old
        self.why_kept = None  # why nothing can be written to it
        self.stops = False  # whether it is a view through which no gradients go
        self.assign(load)

    def assign(self, load):
        """Gives it other elements, where it is no view."""
        if not self.shape and load is not None:
            number = load(())
            load = lambda index: number  # noqa: E731: one scalar, computed once
        self._load = load
        if self.base is not None and not self.shape:
            self.element()  # an index that is out of range is said here

    def loader(self):
        """What loads its elements as they are now, whatever is written later."""
        if self.base is None:
            return self._load
        load, to_old = self.base.loader(), self.to_old
        if self.stops:
            before, load = load, lambda index: self._without_gradients(before(index))
        if self.shape:
            return lambda index: load(to_old(index))
        number = load(to_old(()))
        return lambda index: number

    def _without_gradients(self, x):
        writer = self.tracer.writer
        return halves.applied(writer, lambda elements: writer.stopped(elements[0]), [x], [self.dtype], self.dtype,
                              self.dtype, rounds=False)

    def element(self, index=()):
        return self.loader()(tuple(index))

    def root(self):
        """What it is a view of in the end."""
        return self if self.base is None else self.base.root()

    def is_stopped(self):
        """Whether no gradients go to what it is a view of."""
        return self.stops or self.base is not None and self.base.is_stopped()

    def __repr__(self):
        return f"<value of the {self.tracer.what}: {self.dtype}, shape {tuple(self.shape)}>"

    @classmethod
    def __torch_dispatch__(cls, function, types, args=(), kwargs=None):
        from . import aten

        return aten.dispatch(function, args, kwargs or {})


def scalar(tracer, x, dtype):
    return Symbol(tracer, (), dtype, lambda index: x)


def moves(symbol):
    """Whether an element may have a gradient."""
    if not is_float(symbol.dtype):
        return False
    writer = symbol.tracer.writer
    return symbol.numel() > MAX_UNROLLED or any(
        isinstance(x, Value) and writer.moves(x)
        for x in map(symbol.element, itertools.product(*map(range, symbol.shape))))


def stopped(symbol):
    """A view of all of it through which no gradients go, if there are any."""
    result = view(symbol, symbol.shape, lambda index: index, symbol.stride())
    result.stops = symbol.tracer.has_gradients
    return result


def copy(symbol):
    """One that nothing else writes to."""
    return Symbol(symbol.tracer, symbol.shape, symbol.dtype, symbol.loader())


def is_integer(symbol):
    return symbol.dtype != torch.bool and not symbol.dtype.is_floating_point


# Views

def _broadcast_index(symbol, shape):
    skipped, sizes = len(shape) - symbol.dim(), tuple(symbol.shape)
    return lambda index: tuple(0 if size == 1 else i for i, size in zip(index[skipped:], sizes))


def broadcast(symbol, shape):
    """The loader of `symbol` as one of a larger shape."""
    load, to_old = symbol.loader(), _broadcast_index(symbol, shape)
    return lambda index: load(to_old(index))


def view(symbol, shape, to_old, stride=None):
    """A view of that shape; to_old maps its indices to those of `symbol`."""
    return Symbol(symbol.tracer, shape, symbol.dtype, None, symbol, to_old, stride)


def expand(symbol, shape):
    lead = len(shape) - symbol.dim()
    if lead < 0:
        raise ValueError(f"a tensor of shape {tuple(symbol.shape)} does not fit into one of shape {tuple(shape)}")
    sizes = [symbol.shape[d - lead] if size == -1 else size for d, size in enumerate(shape)]
    stride = [0] * lead + [0 if old == 1 and new != 1 else step
                           for old, new, step in zip(symbol.shape, sizes[lead:], symbol.stride())]
    return view(symbol, sizes, _broadcast_index(symbol, sizes), stride)


def permute(symbol, order):
    order = [d % symbol.dim() for d in order]
    return view(symbol, [symbol.shape[d] for d in order],
                lambda index: tuple(index[order.index(d)] for d in range(len(order))),
                [symbol.stride(d) for d in order])


def unsqueeze(symbol, dim):
    dim %= symbol.dim() + 1
    shape = [*symbol.shape[:dim], 1, *symbol.shape[dim:]]
    step = symbol.shape[dim] * symbol.stride(dim) if dim < symbol.dim() else 1
    stride = [*symbol.stride()[:dim], step, *symbol.stride()[dim:]]
    return view(symbol, shape, lambda index: (*index[:dim], *index[dim + 1:]), stride)


def squeeze(symbol, dims):
    gone = {d % symbol.dim() for d in dims if symbol.dim() and symbol.shape[d] == 1}
    kept = [d for d in range(symbol.dim()) if d not in gone]

    def to_old(index):
        index = iter(index)
        return tuple(0 if d in gone else next(index) for d in range(symbol.dim()))
    return view(symbol, [symbol.shape[d] for d in kept], to_old, [symbol.stride(d) for d in kept])


def select(symbol, dim, at):
    dim %= symbol.dim()
    at = normalised(symbol.tracer, at, symbol.shape[dim])
    return view(symbol, [*symbol.shape[:dim], *symbol.shape[dim + 1:]],
                lambda index: (*index[:dim], at, *index[dim:]),
                [*symbol.stride()[:dim], *symbol.stride()[dim + 1:]])


def narrow(symbol, dim, start, stop, step):
    dim %= symbol.dim()
    start, stop, step = slice(start, stop, step).indices(symbol.shape[dim])
    count = len(range(start, stop, step))
    writer = symbol.tracer.writer

    def to_old(index):
        at = writer.integer("mul", index[dim], step, torch.int32)
        return (*index[:dim], writer.integer("add", at, start, torch.int32), *index[dim + 1:])
    stride = [*symbol.stride()[:dim], symbol.stride(dim) * step, *symbol.stride()[dim + 1:]]
    return view(symbol, [*symbol.shape[:dim], count, *symbol.shape[dim + 1:]], to_old, stride)


def reshape(symbol, shape):
    count = symbol.numel()
    if -1 in shape:
        known = -torch.Size(shape).numel()
        shape = [count // known if size == -1 else size for size in shape]
    writer = symbol.tracer.writer

    def to_old(index):
        flat = 0
        for i, size in zip(index, shape):
            flat = writer.integer("add", writer.integer("mul", flat, size, torch.int32), i, torch.int32)
        old = []
        for size in reversed(symbol.shape):
            old.insert(0, writer.remainder("floordiv", flat, size, torch.int32) if len(old) + 1 < symbol.dim()
                       else flat)
            flat = writer.divide("floordiv", flat, size, torch.int32)
        return tuple(old)
    return view(symbol, shape, to_old, _reshaped_stride(symbol, shape))


def _reshaped_stride(symbol, shape):
    if symbol.is_contiguous():
        return None
    try:
        like = torch.empty_strided(symbol.shape, symbol.stride(), device="meta")
        return like.view(shape).stride()
    except RuntimeError:  # what PyTorch would copy
        return None


# Indices

def normalised(tracer, at, size):
    """An index from 0 on: negative ones count from the end, as PyTorch has it."""
    if not isinstance(at, Value):
        if not -size <= at < size:
            raise IndexError(f"index {at} is out of range for a dimension of size {size}")
        return at % size
    writer = tracer.writer
    low, high = writer.range(at)
    if at.type == "i64":  # sizes fit i32, so that what does not is out of range
        at = writer.ranged(at.to("i32"), (max(low, -2**31), min(high, 2**31 - 1)))
    if low >= 0:
        return at
    writer.is_wide = True
    moved = writer.integer("add", at, size, torch.int32)
    if high < 0:
        return moved
    negative = writer.compare("lt", at, 0)
    chosen = writer.where(negative, moved, at, torch.int32)
    return writer.ranged(chosen, (min(0, low + size), max(high, size - 1)))


def index(tracer, base, given):
    """base[given], where some of it is known to the kernel only."""
    given = given if isinstance(given, tuple) else (given,)
    given = [_checked_index(tracer, item) for item in given]
    taken = sum(item is not None and item is not Ellipsis for item in given)
    if taken > base.dim():
        raise IndexError(f"too many indices ({taken}) for a tensor of {base.dim()} dimensions")
    if given.count(Ellipsis) > 1:
        raise IndexError("an index can have one ellipsis (...)")
    where = given.index(Ellipsis) if Ellipsis in given else len(given)
    rest = [slice(None)] * (base.dim() - taken)
    given = given[:where] + rest + given[where + 1:]
    dim, arrays = 0, []
    for item in given:
        if item is None:
            base = unsqueeze(base, dim)
        elif isinstance(item, slice):
            if item != slice(None):
                base = narrow(base, dim, *map(_known_bound, (item.start, item.stop, item.step)))
        elif isinstance(item, torch.Tensor) and item.shape:
            arrays += [None] * (dim - len(arrays)) + [item]
        else:
            base = select(base, dim, item.element() if isinstance(item, Symbol) else item)
            continue
        dim += 1
    return gather_arrays(base, arrays) if arrays else base


def _known_bound(bound):
    if isinstance(bound, torch.Tensor):
        raise TypeError("a slice wants bounds that are known when the kernel is made")
    return bound


def _checked_index(tracer, item):
    if item is None or item is Ellipsis or isinstance(item, slice):
        return item
    if isinstance(item, bool) or getattr(item, "dtype", None) == torch.bool:
        raise TypeError("a mask as an index has results of a size that is not known: use torch.where")
    if isinstance(item, torch.Tensor):
        if item.dtype.is_floating_point:
            raise IndexError("tensors used as indices must be integers: use .int()")
        return tracer.lift(item)
    if isinstance(item, (list, tuple)):
        return tracer.lift(torch.tensor(item))
    return int(item)


def gather_arrays(base, arrays):
    """base[arrays], one integer Symbol per dimension or None for all of it."""
    tracer = base.tracer
    arrays = [None if a is None else tracer.lift(a) for a in arrays]
    arrays += [None] * (base.dim() - len(arrays))
    dims = [d for d, a in enumerate(arrays) if a is not None]
    for d in dims:
        if not is_integer(arrays[d]):
            raise TypeError("a mask as an index has results of a size that is not known: use torch.where")
    common = torch.broadcast_shapes(*(arrays[d].shape for d in dims))
    loads = {d: broadcast(arrays[d], common) for d in dims}
    is_together = dims == list(range(dims[0], dims[-1] + 1))
    first = dims[0] if is_together else 0
    free = [d for d in range(base.dim()) if d not in loads]
    sizes = [base.shape[d] for d in free]
    shape = [*sizes[:first], *common, *sizes[first:]]

    def to_old(at):
        inside = at[first:first + len(common)]
        others = iter([*at[:first], *at[first + len(common):]])
        return tuple(normalised(tracer, loads[d](inside), base.shape[d]) if d in loads else next(others)
                     for d in range(base.dim()))
    return view(base, shape, to_old)


def gather(symbol, dim, at):
    """torch.gather: at[i, j] along dim."""
    dim %= max(1, symbol.dim())
    load = at.loader()
    return view(symbol, at.shape, lambda index: (
        *index[:dim], normalised(symbol.tracer, load(index), symbol.shape[dim]), *index[dim + 1:]))


# Several elements

def choose(tracer, elements, at, dtype):
    """elements[at] of a list: one of them, or a chain of selects."""
    if not isinstance(at, Value):
        return elements[at]
    writer = tracer.writer

    def chosen(elements):
        result = elements[-1]
        for number, element in list(enumerate(elements))[-2::-1]:
            result = writer.where(writer.compare("eq", at, number), element, result, dtype)
        return result
    return halves.applied(writer, chosen, elements, [dtype] * len(elements), dtype, dtype, rounds=False)


def stack(tracer, symbols, dim, dtype):
    rank = symbols[0].dim() + 1
    dim %= rank
    shape = [*symbols[0].shape[:dim], len(symbols), *symbols[0].shape[dim:]]
    loads = [symbol.loader() for symbol in symbols]

    def load(index):
        rest = (*index[:dim], *index[dim + 1:])
        return choose(tracer, [load(rest) for load in loads], index[dim], dtype)
    return Symbol(tracer, shape, dtype, load)


def reduce(tracer, symbol, dims, keepdim, dtype, start, join, cast=True):
    """All elements along dims joined, one after the other."""
    dims = range(symbol.dim()) if dims is None or dims == [] else [d % symbol.dim() for d in dims]
    sizes = [range(symbol.shape[d]) if d in dims else (0,) for d in range(symbol.dim())]
    count = 1
    for size in sizes:
        count *= len(size)
    if count > MAX_UNROLLED:
        raise ValueError(f"a kernel would have {count} terms for each score, wanted {MAX_UNROLLED} at most")
    shape = [1 if d in dims else s for d, s in enumerate(symbol.shape) if keepdim or d not in dims]
    load_term = symbol.loader()

    def load(index):
        if not keepdim:
            index = list(index)
            for d in sorted(dims):
                index.insert(d, 0)
        points = [tuple(point[d] if d in dims else index[d] for d in range(symbol.dim()))
                  for point in itertools.product(*sizes)]

        def joined(elements):
            result = start
            for element in elements:
                if cast:
                    element = tracer.writer.cast(element, symbol.dtype, dtype)
                result = element if result is None else join(result, element)
            return result
        return halves.applied(tracer.writer, joined, [load_term(at) for at in points], [symbol.dtype] * len(points),
                              symbol.dtype, dtype, not dtype.is_floating_point)
    return Symbol(tracer, shape, dtype, load)
