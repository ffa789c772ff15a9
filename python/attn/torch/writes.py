#===----------------------------------------------------------------------===#
#
# Part of attn, an attention compiler.
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===----------------------------------------------------------------------===#
"""Writes to Symbols: what operations in place do, out= and items that are set.

What is written to a view is written to those elements of what it is a view of, so that
all other views see it, those made before and those made later.
"""

import itertools

import torch

from . import aten, halves, symbols
from .scalars import Value
from .symbols import Symbol


def check(target):
    """Whether something can be written to a tensor."""
    if not isinstance(target, Symbol):
        raise aten.Unsupported("what depends on positions cannot be written to a captured tensor, or one of numbers: "
                               "use torch.where, torch.stack, or new_zeros() of a score")
    reason = target.root().why_kept or target.why_kept
    if reason is not None:
        raise aten.Unsupported(reason)
    if (target.tracer.is_stopping() or target.is_stopped()) and symbols.moves(target.root()):
        raise aten.Unsupported("what has gradients is not written to inside of torch.no_grad() or through detach(): "
                               "make another value, or use detach().clone()")


def write(target, value):
    """target[...] = value, a Symbol that is broadcast."""
    check(target)
    if torch.broadcast_shapes(value.shape, target.shape) != target.shape:
        raise aten.Unsupported(f"a tensor of shape {tuple(value.shape)} does not fit into one of shape {tuple(target.shape)}")
    value = aten.convert(target.tracer, value, target.dtype)
    _write(target, symbols.broadcast(value, target.shape))


def _write(target, load):
    base = target.base
    if base is None:
        target.assign(load)
    else:
        _write(base, _with(base, target, load))


def _with(base, part, load):
    """The loader of `base` with other elements at those of its view `part`."""
    if part.numel() > symbols.MAX_UNROLLED:
        raise aten.Unsupported(f"{part.numel()} elements are written, wanted {symbols.MAX_UNROLLED} at most")
    before, writer = base.loader(), base.tracer.writer
    dtype = torch.float32 if base.dtype.is_floating_point else base.dtype
    places = [(part.to_old(at), at) for at in itertools.product(*map(range, part.shape))]
    known = [place for place, _ in places if not any(isinstance(i, Value) for i in place)]
    if len(set(known)) < len(known):
        raise aten.Unsupported("one element is written to several times: use clone() first")

    def loaded(index):
        choices = []  # of what may be written here, the last first
        for place, at in reversed(places):
            is_here = _are_equal(writer, place, index)
            if is_here is not False:
                choices.append((is_here, at))
            if is_here is True:
                break
        result = None if choices and choices[-1][0] is True else before(index)
        for is_here, at in reversed(choices):
            result = halves.applied(
                writer, lambda both, is_here=is_here: writer.where(is_here, *both, dtype), [load(at), result],
                [base.dtype] * 2, base.dtype, base.dtype, rounds=False)
        return result
    return loaded


def _are_equal(writer, place, index):
    result = True
    for one, other in zip(place, index):
        result = writer.logic("and", result, writer.compare("eq", one, other))
    return result


def set_item(tracer, target, index, value):
    """target[index] = value."""
    check(target)
    if isinstance(value, torch.Tensor):
        value = tracer.lift(value)
        while value.dim() > 0 and value.shape[0] == 1:  # which PyTorch drops
            value = symbols.select(value, 0, 0)
    else:
        value = symbols.scalar(tracer, tracer.writer.cast(value, None, target.dtype), target.dtype)
    if isinstance(index, Symbol) and index.dtype == torch.bool and index.shape == target.shape and not value.dim():
        write(target, aten.HANDLERS["where"](tracer, index, aten.convert(tracer, value, target.dtype), target))
    else:
        write(symbols.index(tracer, target, index), value)


_NO_VIEW = "PyTorch makes a view here that cannot be followed: use clone() before writing"


def linked(function, args, kwargs, result):
    """What an operation returns, which is a view where PyTorch says so, and else none."""
    returns = function._schema.returns
    if function._schema.is_mutable or not returns:
        return result
    if isinstance(result, (tuple, list)):
        info = returns if len(returns) == len(result) else [returns[0]] * len(result)
        kind = list if isinstance(result, list) else tuple  # which decompositions name
        return kind(_linked(x, part.alias_info, args) for x, part in zip(result, info))
    is_copy = returns[0].alias_info is None or _copies(function, args, kwargs)
    return _linked(result, None if is_copy else returns[0].alias_info, args)


def _copies(function, args, kwargs):
    """Whether reshape(), contiguous() and the like, which get here in inference mode, copy."""
    if not torch._C._dispatch_has_kernel_for_dispatch_key(function.name(), "CompositeImplicitAutograd") or \
            not isinstance(args[0], Symbol) or any(isinstance(x, torch.Tensor) for x in args[1:]):
        return False
    like = torch.empty_strided(args[0].shape, args[0].stride(), dtype=args[0].dtype, device="meta")
    try:
        made = function(like, *args[1:], **{key: x for key, x in kwargs.items() if key != "device"})
    except RuntimeError:  # nothing that PyTorch would do
        return True
    return made.untyped_storage()._cdata != like.untyped_storage()._cdata


def _linked(result, alias, args):
    if not isinstance(result, Symbol):
        return result
    base = args[0] if args and isinstance(args[0], Symbol) else None
    if alias is None:
        return symbols.copy(result) if result.base is not None or any(result is x for x in args) else result
    if base is not None and result is base:
        return symbols.view(base, base.shape, lambda index: index, base.stride())
    if base is not None and result.root() is not base.root():
        if result.shape == base.shape and result.dtype == base.dtype and result.base is None:
            return symbols.view(base, base.shape, lambda index: index, base.stride())
        result.why_kept = base.root().why_kept = _NO_VIEW
    return result
