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
nothing but autograd; all others go through torch.ops.attn, as the first two do.
"""

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
        self.kernel = _Kernel(kernels.forward(program, q.device, kernels.lengths(q, k)), tensors, tensors)
        o, lse = tensors[-2:]
        o = o.transpose(1, 2) if swaps else o
        self._o, self._lse, self._device = (o.shape, o.stride()), (lse.shape, lse.stride()), q.device
        self._gradients = {}  # by PyTorch's switch, which a form is chosen by, and layouts

    def start(self, addresses, given):
        """(o, lse) of the tensors (q, k, v, *operands) at these addresses."""
        o = given[0].new_empty_strided(*self._o)
        lse = torch.empty_strided(*self._lse, dtype=torch.float32, device=self._device)
        addresses += (o.data_ptr(), lse.data_ptr())
        self.kernel.launch(addresses, given)
        return o, lse

    def gradients(self, saved, d_o, d_lse):
        """Of q, k and v, where operands need none, after start() made the last two of
        (q, k, v, *operands, o, lse); None where it has to go another way."""
        given = (*saved, d_o) if d_lse is None else (*saved, d_o, d_lse)
        if any([type(x) not in PLAIN for x in given]) or torch.is_grad_enabled() or not is_plain(saved[0]):
            return None
        layouts = (forms.is_strict(), *[(x.shape, x.stride(), x.dtype, x.device) for x in given])
        known = self._gradients.get(layouts)
        if known is None:
            self._note(layouts, given, len(saved))
            return None
        kernel, shapes = known
        addresses = kernel.addresses(given)
        if addresses is None:
            return None
        found = [x.new_empty_strided(*shape) for x, shape in zip(given, shapes)]
        addresses += [x.data_ptr() for x in found]
        kernel.launch(addresses, given)
        return found

    def _note(self, layouts, given, count):
        """Prepares gradients of tensors like these, when they are seen again."""
        if layouts not in self._gradients:
            if len(self._gradients) >= _MAX_GRADIENTS:
                self._gradients.clear()
            self._gradients[layouts] = None
            return
        with torch.no_grad():
            seen = [x.detach() for x in given]
            if self.swaps:
                for number in (0, 1, 2, count - 2, count):
                    seen[number] = seen[number].transpose(1, 2)
            (q, k, v, *operands, o, lse), (d_o, *d_lse) = seen[:count], seen[count:]
            found = launches.empty_gradients(q, k, v, operands, self.program, False)[:3]
            kernel, values, _ = launches.gradient_launch(
                d_o, d_lse[0] if d_lse else None, q, k, v, operands, o, lse, found, self.program, False)
            kernel = _Kernel(kernel, values, [*seen, *found])
            found = [x.transpose(1, 2) if self.swaps else x for x in found]
            self._gradients[layouts] = kernel, [(x.shape, x.stride()) for x in found]


_MAX_GRADIENTS = 16  # of a launch


class _Attention(torch.autograd.Function):
    """A known launch with gradients."""

    @staticmethod
    def forward(ctx, launch, addresses, *given):
        o, lse = launch.start(addresses, given)
        ctx.set_materialize_grads(False)
        ctx.launch = launch
        ctx.save_for_backward(*given, o, lse)
        return o, lse

    @staticmethod
    def backward(ctx, d_o, d_lse):
        saved, launch = ctx.saved_tensors, ctx.launch
        if d_o is not None and not any(ctx.needs_input_grad[5:]) and not launches.differentiable(launch.program, False):
            found = launch.gradients(saved, d_o, d_lse)
            if found is not None:
                return None, None, *found, *[None] * (len(saved) - 5)
        q, k, v, *operands, o, lse = saved
        if launch.swaps:
            q, k, v, o = (x.transpose(1, 2) for x in (q, k, v, o))
            d_o = None if d_o is None else d_o.transpose(1, 2)
        *found, others = ops.gradients(
            launch.program, q, k, v, operands, o, lse, ctx.needs_input_grad[5:], d_o, d_lse)
        if launch.swaps:
            found = [None if x is None else x.transpose(1, 2) for x in found]
        return None, None, *found, *others


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
    if torch.is_grad_enabled() and any([x.requires_grad for x in given]):
        return _Attention.apply(launch, addresses, *given)
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


def _is_constant(value):
    """Whether a value is always what it was: a tensor is not, nor is what holds one."""
    if isinstance(value, tuple):
        return all(map(_is_constant, value))
    return value is None or isinstance(value, (bool, int, float, str, torch.dtype, torch.device, type, Token))
