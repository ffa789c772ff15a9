#===----------------------------------------------------------------------===#
#
# Part of attn, an attention compiler.
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===----------------------------------------------------------------------===#
"""Calls like earlier ones: straight to a launch that was prepared.

A call is known by a key: the layouts of its tensors, and all else that its program
depends on. The third call of a key finds a Launch, which wants nothing but addresses.
PyTorch's dispatcher has no part in it, so this is for calls to which it would add
nothing but autograd; all others go through torch.ops.attn, as the first two do where
nothing requires gradients. Gradients of such calls, the first ones too, are known by the
layouts of what they are of: the second finds its launch.
"""

import functools
import threading

import torch
from torch.autograd import forward_ad

from .. import views
from ..prepared import Prepared
from . import forms, kernels, launches, ops

_MAX_KNOWN = 1024
PLAIN = (torch.Tensor, torch.nn.Parameter)
_known = {}  # by key: a Launch, or None where it was seen once


# ---------------------------------------------------------------------------
# Which calls
# ---------------------------------------------------------------------------

_included = getattr(torch._C, "_dispatch_tls_local_include_set", None)
_excluded = getattr(torch._C, "_dispatch_tls_local_exclude_set", None)
_has_function_mode = getattr(torch._C, "_is_torch_function_mode_enabled", None)
_is_profiled = getattr(torch.autograd, "_profiler_enabled", None)
_states = {}  # what the dispatcher includes in a thread where nothing is at work: what it excludes
_autocast = 0  # what it excludes of that where autocast is off


class _Look(torch.autograd.Function):
    """What the dispatcher excludes inside of backward()."""

    @staticmethod
    def forward(ctx, x):
        return x.clone()

    @staticmethod
    def backward(ctx, d_x):
        _states[_included().raw_repr()].append(_excluded().raw_repr())
        return d_x


def _find_states():
    """In a new thread, with and without inference mode. Modes, transforms and tracers
    change these sets."""
    def find():
        global _autocast
        _autocast = _excluded().raw_repr()
        for is_inference in (False, True):
            with torch.inference_mode(is_inference):
                _states[_included().raw_repr()] = [_excluded().raw_repr()]
        _Look.apply(torch.zeros(1, device="cpu", requires_grad=True)).backward()

    if None in (_included, _excluded, _has_function_mode, _is_profiled):
        _states[None] = []  # a PyTorch that does not tell
        return
    thread = threading.Thread(target=find)
    thread.start()
    thread.join()


def is_plain(q):
    """Whether the dispatcher would do nothing but autograd to attn's operators, and
    autocast nothing to a tensor like q: no mode, transform, tracer or profiler is at
    work."""
    if not _states:
        _find_states()
    if None in _states or _has_function_mode() or _is_profiled() or forward_ad._current_level >= 0:
        return False
    wanted, excluded = _states.get(_included().raw_repr(), ()), _excluded().raw_repr()
    return excluded in wanted or (excluded | _autocast in wanted and not _is_cast(q))


def _is_cast(x):
    kind = x.device.type
    return torch.is_autocast_enabled(kind) and torch.get_autocast_dtype(kind) != x.dtype


def key(q, k, v, *rest):
    """The key of a call, or None where it has none. `rest` is what its program depends
    on besides the layouts of q, k and v."""
    if (torch.compiler.is_dynamo_compiling() or type(q) not in PLAIN or type(k) not in PLAIN
            or type(v) not in PLAIN or not is_plain(q)):
        return None
    dtype = q.dtype
    if k.dtype is not dtype or v.dtype is not dtype:
        return None  # somebody casts them first
    try:
        return (q.shape, q.stride(), k.shape, k.stride(), v.shape, v.stride(), dtype, q.device, k.device, v.device,
                _excluded().raw_repr(), rest)  # the former: what autocast is on for
    except RuntimeError:  # no such tensors
        return None


def narrower(key, token):
    """A key, for those calls of it alone that the token is of."""
    return (*key[:-1], (*key[-1], token))


def program_key(program, q, k, v, operands):
    """The key of a program on these tensors, or None."""
    if not operands:
        return key(q, k, v, program)
    if torch.compiler.is_dynamo_compiling() or any([type(operand) not in PLAIN for operand in operands]):
        return None
    return key(q, k, v, program, *[
        (operand.shape, operand.stride(), operand.dtype, operand.device, operand.requires_grad)
        for operand in operands])


class Token:
    """Something in a key that is nothing but itself."""


# ---------------------------------------------------------------------------
# What is known
# ---------------------------------------------------------------------------


class _Kernel:
    """Launches of a kernel on tensors that are laid out like `tensors`, plain ones in
    which nothing changes but elements and addresses.

    values   what the kernel takes: each is one of `tensors`, or a number as a tensor."""

    def __init__(self, kernel, values, tensors):
        device = tensors[0].device
        self._prepared = prepared = Prepared(kernel, values)
        places = {id(tensor): number for number, tensor in enumerate(tensors)}
        order = [places[id(value)] for value in values]
        self._scalars = [(number, order[number]) for number in prepared.scalars]
        order = [place for number, place in enumerate(order) if number not in prepared.scalars]
        self._order = None if order == list(range(len(tensors))) else order
        self._unaligned = prepared.alignment - 1
        self._device = device
        self._stream = None if device.type == "cpu" else views.stream_reader(device)
        size = prepared.workspace_bytes
        self._workspace = size if size > kernels.SMALL_WORKSPACE else None

    def addresses(self, tensors):
        """Of the first of all tensors, or None where they are other than they look."""
        bits, found = 0, []
        for tensor in tensors:
            if tensor.is_neg():
                return None
            address = tensor.data_ptr()
            if not address:
                return None
            bits |= address
            found.append(address)
        return None if bits & self._unaligned else found

    def launch(self, addresses, tensors):
        """addresses of all tensors; of these those are looked at that are numbers."""
        if self._order is not None:
            addresses = [addresses[place] for place in self._order]
        scalars = [(number, tensors[place]) for number, place in self._scalars]
        stream = self._stream and self._stream()
        if self._workspace is None:
            self._prepared.launch(addresses, stream, None, scalars)
        else:
            workspace = torch.empty(self._workspace, dtype=torch.uint8, device=self._device)
            self._prepared.launch(addresses, stream, (workspace.data_ptr(), self._workspace), scalars)


class _Launch:
    """Calls of a program on tensors with the layouts of these.

    swaps  whether the caller has (b, s, h, d), and these are (b, h, s, d)."""

    def __init__(self, program, q, k, v, operands, swaps, regions):
        tensors = [x.detach() for x in (q, k, v, *operands, *launches.empty_results(q, v))]
        self.program, self.swaps, self.regions = program, swaps, regions
        kernel = kernels.forward(kernels.promised(program, operands), q.device, kernels.lengths(q, k))
        self.kernel = _Kernel(kernel, tensors, tensors)
        o, lse = tensors[-2:]
        o = o.transpose(1, 2) if swaps else o
        self._o, self._lse, self._device = (o.shape, o.stride()), (lse.shape, lse.stride()), q.device

    def start(self, addresses, given):
        """(o, lse) of the tensors (q, k, v, *operands) at these addresses."""
        o = given[0].new_empty_strided(*self._o)
        lse = torch.empty_strided(*self._lse, dtype=torch.float32, device=self._device)
        addresses += (o.data_ptr(), lse.data_ptr())
        self.kernel.launch(addresses, given)
        return o, lse


class _Attention(torch.autograd.Function):
    """A program with gradients; swaps: as _Launch has it; start: what makes (o, lse) of the
    tensors (q, k, v, *operands)."""

    @staticmethod
    def forward(ctx, program, swaps, start, *given):
        o, lse = start(given)
        ctx.set_materialize_grads(False)
        ctx.program, ctx.swaps = program, swaps
        ctx.save_for_backward(*given, o, lse)
        return o, lse

    @staticmethod
    def backward(ctx, d_o, d_lse):
        saved, program, needed = ctx.saved_tensors, ctx.program, ctx.needs_input_grad[6:]
        if d_o is not None:
            found = _gradients(program, ctx.swaps, saved, needed, d_o, d_lse)
            if found is not None:
                return None, None, None, *found
        q, k, v, *operands, o, lse = saved
        if ctx.swaps:
            q, k, v, o = (x.transpose(1, 2) for x in (q, k, v, o))
            d_o = None if d_o is None else d_o.transpose(1, 2)
        *found, others = ops.gradients(program, q, k, v, operands, o, lse, needed, d_o, d_lse)
        if ctx.swaps:
            found = [None if x is None else x.transpose(1, 2) for x in found]
        return None, None, None, *found, *others


# ---------------------------------------------------------------------------
# Gradients
# ---------------------------------------------------------------------------

_MAX_GRADIENTS = 1024
# By program, PyTorch's switch, which a form is chosen by, and layouts: (kernel, what is
# like each gradient with its sizes and strides); None where it was seen once, False where
# gradients are not where the kernel writes.
_known_gradients = {}


def _gradients(program, swaps, saved, needed, d_o, d_lse):
    """Of (q, k, v, *operands), the first of what is saved, the last of which are o and lse; None
    where it has to go another way. needed: of which operands."""
    given = (*saved, d_o) if d_lse is None else (*saved, d_o, d_lse)
    if (any([type(x) not in PLAIN or not x.numel() for x in given]) or torch.is_grad_enabled()
            or not is_plain(saved[0])):
        return None
    program = ops.wanted(program, needed)
    of_captures = ops.needs_captures(program, needed)
    layouts = (program, swaps, of_captures, forms.is_strict(),
               *[(x.shape, x.stride(), x.dtype, x.device) for x in given])
    known = _known_gradients.get(layouts)
    if known is None:
        known = _note_gradients(layouts, given, len(saved))
    if not known:
        return None
    kernel, likes = known
    addresses = kernel.addresses(given)
    if addresses is None:
        return None
    found = [given[number].new_empty_strided(*shape) for number, shape in likes]
    addresses += [x.data_ptr() for x in found]
    kernel.launch(addresses, given)
    others = [None] * len(needed)
    for (number, _), gradient in zip(likes[3:], found[3:]):
        if needed[number - 3]:
            others[number - 3] = gradient
    return *found[:3], *others


def _note_gradients(layouts, given, count):
    """Prepares gradients of tensors like these, when they are seen again; what is known then."""
    if layouts not in _known_gradients:
        if len(_known_gradients) >= _MAX_GRADIENTS:
            _known_gradients.clear()
        _known_gradients[layouts] = None
        return None
    program, swaps, of_captures = layouts[:3]
    with torch.no_grad():
        seen = [x.detach() for x in given]
        if swaps:
            for number in (0, 1, 2, count - 2, count):
                seen[number] = seen[number].transpose(1, 2)
        (q, k, v, *operands, o, lse), (d_o, *d_lse) = seen[:count], seen[count:]
        found = launches.empty_gradients(q, k, v, operands, program, of_captures)
        kernel, values, later = launches.gradient_launch(
            d_o, d_lse[0] if d_lse else None, q, k, v, operands, o, lse, found, program, of_captures)
        known = False
        if not later:
            kernel = _Kernel(kernel, values, [*seen, *found])
            found = [x.transpose(1, 2) if swaps and number < 3 else x for number, x in enumerate(found)]
            numbers = (0, 1, 2, *[3 + number for number in launches.differentiable(program, of_captures)])
            known = kernel, [(number, (x.shape, x.stride())) for number, x in zip(numbers, found)]
    _known_gradients[layouts] = known
    return known


# ---------------------------------------------------------------------------
# Calls
# ---------------------------------------------------------------------------


def _has_gradients(given):
    return torch.is_grad_enabled() and any([x.requires_grad for x in given])


def first(program, q, k, v, operands):
    """(o, lse) of a call that has a key, of which nothing is known."""
    given = (q, k, v, *operands)
    if not _has_gradients(given):
        return ops.forward(q, k, v, operands, program)
    ops.check_captures(program, q, k, operands)
    return _Attention.apply(
        program, False, lambda given: launches.forward(*given[:3], given[3:], program), *given)


def attend(key, q, k, v, operands=(), leaves=None):
    """(o, lse) of a call with this key, or None where nothing is known of such calls.
    leaves: the tensors that functions reach, of which operands are made."""
    try:
        launch = _known.get(key)
    except TypeError:  # it cannot be hashed
        return None
    if launch is None:
        return None
    given = (q, k, v, *(operands if leaves is None else launch.regions.tensors(leaves)))
    addresses = launch.kernel.addresses(given)
    if addresses is None:
        return None
    if _has_gradients(given):
        return _Attention.apply(launch.program, launch.swaps, functools.partial(launch.start, addresses), *given)
    return launch.start(addresses, given)


def note(key, program, q, k, v, operands=(), swaps=False, regions=None):
    """After a call with this key, not None, that was this program on these tensors; swaps:
    they were (b, s, h, d) before; regions: the trace.KeptRegions that make operands of
    what functions reach."""
    if not _is_constant(key[-1]):
        return
    if key not in _known:
        if len(_known) >= _MAX_KNOWN:
            _known.clear()
        _known[key] = None
    elif _known.get(key) is None and all(x.numel() for x in (q, k, v, *operands)):
        with torch.no_grad():
            _known[key] = _Launch(program, q, k, v, operands, swaps, regions)


def forget():
    """All that is known."""
    _known.clear()
    _known_gradients.clear()


def _is_constant(value):
    """Whether a value is always what it was: a tensor is not, nor is what holds one."""
    if isinstance(value, tuple):
        return all(map(_is_constant, value))
    return value is None or isinstance(value, (bool, int, float, str, torch.dtype, torch.device, type, Token))
