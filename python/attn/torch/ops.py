#===----------------------------------------------------------------------===#
#
# Part of attn, an attention compiler.
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===----------------------------------------------------------------------===#
"""The operators torch.ops.attn.forward, backward and jvp: what PyTorch's dispatcher,
autograd, vmap and torch.compile know of attention.

    attn::forward(q, k, v, operands, program) -> (o, lse)
    attn::backward(d_o, d_lse, q, k, v, operands, o, lse, program, of_captures) -> gradients
    attn::jvp(t_q, t_k, t_v, q, k, v, operands, program) -> (t_o, t_lse)

`operands` are the arguments of the program after v, scalars as tensors of one element
(of the CPU, if nothing shall wait). The gradients are those of q, k, v, the sink and,
with of_captures, of the captured floats, in the order of the arguments. The tangents
t_o and t_lse are how far o and lse move with q, k and v (forward-mode AD).
"""

import functools
import re

import torch
from torch.autograd import forward_ad

from . import forms, kernels, launches

_LIBRARY = torch.library.Library("attn", "FRAGMENT")
_LIBRARY.define(
    "forward(Tensor q, Tensor k, Tensor v, Tensor[] operands, str program) -> (Tensor, Tensor)",
    tags=(torch.Tag.pt2_compliant_tag,),
)
_LIBRARY.define(
    "backward(Tensor d_o, Tensor? d_lse, Tensor q, Tensor k, Tensor v, Tensor[] operands, Tensor o, "
    "Tensor lse, str program, bool of_captures) -> Tensor[]",
    tags=(torch.Tag.pt2_compliant_tag,),
)
_LIBRARY.define(
    "jvp(Tensor t_q, Tensor t_k, Tensor t_v, Tensor q, Tensor k, Tensor v, Tensor[] operands, str program) "
    "-> (Tensor, Tensor)",
    tags=(torch.Tag.pt2_compliant_tag,),
)

_LIBRARY.impl("forward", launches.forward, "CompositeExplicitAutograd")
_LIBRARY.impl("backward", launches.backward, "CompositeExplicitAutograd")
_LIBRARY.impl("jvp", launches.jvp, "CompositeExplicitAutograd")


@torch.library.register_fake("attn::forward")
def _fake_forward(q, k, v, operands, program):
    return launches.empty_results(q, v)


@torch.library.register_fake("attn::backward")
def _fake_backward(d_o, d_lse, q, k, v, operands, o, lse, program, of_captures):
    return launches.empty_gradients(q, k, v, operands, program, of_captures)


@torch.library.register_fake("attn::jvp")
def _fake_jvp(t_q, t_k, t_v, q, k, v, operands, program):
    return launches.empty_results(q, v)


# ---------------------------------------------------------------------------
# Gradients
# ---------------------------------------------------------------------------


def needs_captures(program, needed):
    """Whether one of the operands whose gradient is needed is a capture."""
    if not any(needed):
        return False
    sinks = launches.differentiable(program, False)
    return any(needed[number] for number in launches.differentiable(program, True) if number not in sinks)


@functools.lru_cache(maxsize=4096)
def _wanted(program, needed):
    return kernels.with_constants(
        program, [number for number in launches.differentiable(program, True) if not needed[number]])


def wanted(program, needed):
    """The program in which captures whose gradients are not needed have none, where others
    have one. needed: of which operands."""
    return _wanted(program, tuple(map(bool, needed))) if needs_captures(program, needed) else program


def begin_gradients(program, q, k, v, operands):
    """Before a program's first call on a GPU: gradients that will be needed begin to be
    compiled, beside the kernel of the call."""
    is_wrong = any([not isinstance(x, torch.Tensor) for x in (q, k, v, *operands)]) or q.dim() != 4 or k.dim() != 4
    if is_wrong or kernels.place(q.device)[0] != "cuda":
        return
    program = kernels.promised(program, operands)
    if kernels.is_known(program, q.device):
        return
    needed = [operand.requires_grad for operand in operands]
    if any((q.requires_grad, k.requires_grad, v.requires_grad, *needed)) \
            and len(operands) == len(kernels.parameters(program)[3:]):
        program = wanted(program, needed)
        of_captures = needs_captures(program, needed)
        text = forms.chosen(program, q, k, operands)
        kernels.begin_backward(text, q.device, False, of_captures, kernels.lengths(q, k))


def _setup_context(ctx, inputs, output):
    q, k, v, operands, program = inputs
    ctx.set_materialize_grads(False)
    ctx.program = program
    ctx.save_for_backward(q, k, v, *operands, *output)
    check_captures(program, q, k, operands)


def check_captures(program, q, k, operands):
    """What has no gradient is said where attention is called, not where backward() is."""
    parameters = kernels.parameters(program)[3:]
    needed = [operand.requires_grad for operand in operands]
    if len(operands) == len(parameters) and needs_captures(program, needed):
        forms.check(wanted(program, needed), q, k, operands, True)


def _differentiate(ctx, d_o, d_lse):
    return _gradients(ctx, ctx.needs_input_grad[3], d_o, d_lse)


def _gradients(ctx, needed, d_o, d_lse):
    """Of q, k, v, a list of those of operands, and None; `needed` says of which operands."""
    q, k, v, *operands, o, lse = ctx.saved_tensors
    return *gradients(ctx.program, q, k, v, operands, o, lse, needed, d_o, d_lse), None


def gradients(program, q, k, v, operands, o, lse, needed, d_o, d_lse):
    """Of q, k, v, and a list of those of operands; `needed` says of which operands."""
    none = [None] * len(operands)
    if d_o is None and d_lse is None:
        return None, None, None, none
    if d_o is None:
        d_o = torch.zeros_like(o)
    program = wanted(program, needed)
    of_captures = needs_captures(program, needed)
    d_q, d_k, d_v, *others = backward(
        d_o, d_lse, q, k, v, operands, o, lse, program, of_captures)
    for number, gradient in zip(launches.differentiable(program, of_captures), others):
        if needed[number]:
            none[number] = gradient
    return d_q, d_k, d_v, none


def _refuse_context(ctx, inputs, output):
    pass


def _refuse(ctx, *gradients):
    raise RuntimeError("attn has no gradients of gradients or tangents: create_graph=True, or torch.func, asked "
                       "for them")


torch.library.register_autograd("attn::forward", _differentiate, setup_context=_setup_context)
torch.library.register_autograd("attn::backward", _refuse, setup_context=_refuse_context)
torch.library.register_autograd("attn::jvp", _refuse, setup_context=_refuse_context)


# ---------------------------------------------------------------------------
# vmap
# ---------------------------------------------------------------------------


def _joins_batches(program):
    """Whether more entries of the batch are nothing but more of the same: the program
    knows neither their number nor which one it is at."""
    if kernels.parameters(program)[0].shape[0] is not None or " dropout(" in program:
        return False
    regions = re.findall(r"\b(?:score|mask)\(", program)
    names = re.findall(r"\b(?:score|mask)\((?:%\w+: f32, )?%(\w+): i32", program)
    return len(names) == len(regions) and all(
        len(re.findall(rf"%{re.escape(name)}\b", program)) == names.count(name) for name in names)


def _is_batched(dims):
    return any(_is_batched(dim) if isinstance(dim, (list, tuple)) else dim is not None for dim in dims)


def _entry(value, dim, number):
    """Of a tensor, or a list of them, the part that one call sees."""
    if isinstance(value, (list, tuple)):
        return [_entry(one, its, number) for one, its in zip(value, dim)]
    return value if dim is None else value.select(dim, number)


def _one_by_one(operator, size, in_dims, arguments):
    results = [operator(*(_entry(value, dim, number) for value, dim in zip(arguments, in_dims)))
               for number in range(size)]
    return [torch.stack(list(tensors)) for tensors in zip(*results)]


def _joined(value, dim, size):
    """(size, b, ...) as (size * b, ...)."""
    value = value.expand(size, *value.shape) if dim is None else value.movedim(dim, 0)
    return value.flatten(0, 1)


def _map(operator, info, in_dims, tensors, operands, program, others, is_simple):
    """One call for all where batches join, else one for each. `tensors` and
    `in_dims[:len(tensors)]` are those with a batch, before the rest."""
    count, size = len(tensors), info.batch_size
    operand_dims = in_dims[count]
    if not is_simple or size == 0 or _is_batched(operand_dims) or not _joins_batches(program):
        return None
    joined = [None if x is None else _joined(x, dim, size) for x, dim in zip(tensors, in_dims)]
    results = operator(*joined, operands, program, *others)
    return [x.unflatten(0, (size, -1)) for x in results]


def _map_forward(info, in_dims, q, k, v, operands, program):
    results = _map(forward, info, in_dims, [q, k, v], operands, program, (), True)
    if results is None:
        results = _one_by_one(forward, info.batch_size, in_dims, (q, k, v, operands, program))
    return tuple(results), (0, 0)


def _map_backward(info, in_dims, *arguments):
    d_o, d_lse, q, k, v, operands, o, lse, program, of_captures = arguments

    def reordered(d_o, d_lse, q, k, v, o, lse, operands, program, of_captures):
        return backward(d_o, d_lse, q, k, v, operands, o, lse, program, of_captures)

    dims = [*in_dims[:5], in_dims[6], in_dims[7], in_dims[5]]
    results = _map(reordered, info, dims, [d_o, d_lse, q, k, v, o, lse], operands, program, (of_captures,),
                   not launches.differentiable(program, of_captures))
    if results is None:
        results = _one_by_one(backward, info.batch_size, in_dims, arguments)
    return results, [0] * len(results)


def _map_jvp(info, in_dims, t_q, t_k, t_v, q, k, v, operands, program):
    results = _map(jvp, info, in_dims, [t_q, t_k, t_v, q, k, v], operands, program, (), True)
    if results is None:
        results = _one_by_one(jvp, info.batch_size, in_dims, (t_q, t_k, t_v, q, k, v, operands, program))
    return tuple(results), (0, 0)


torch.library.register_vmap("attn::forward", _map_forward)
torch.library.register_vmap("attn::jvp", _map_jvp)
torch.library.register_vmap("attn::backward", _map_backward)


# ---------------------------------------------------------------------------
# torch.func
# ---------------------------------------------------------------------------


class _Attention(torch.autograd.Function):
    """The operator for torch.func.grad and its like, which do not take those of
    register_autograd."""

    @staticmethod
    def forward(program, q, k, v, *operands):
        return torch.ops.attn.forward(q, k, v, list(operands), program)

    @staticmethod
    def setup_context(ctx, inputs, output):
        program, q, k, v, *operands = inputs
        _setup_context(ctx, (q, k, v, operands, program), output)
        ctx.save_for_forward(q, k, v, *operands)

    @staticmethod
    def backward(ctx, d_o, d_lse):
        d_q, d_k, d_v, others, _ = _gradients(ctx, ctx.needs_input_grad[4:], d_o, d_lse)
        return None, d_q, d_k, d_v, *others

    @staticmethod
    def jvp(ctx, _, *tangents):
        program, (q, k, v, *operands) = ctx.program, ctx.saved_tensors
        for parameter, tangent in zip(kernels.parameters(program)[3:], tangents[3:]):
            if tangent is not None:
                raise RuntimeError(f"attn has tangents of query, key and value alone, got one of '{parameter.name}'")
        moved = [torch.zeros_like(x) if tangent is None else tangent for x, tangent in zip((q, k, v), tangents)]
        return jvp(*moved, q, k, v, operands, program)

    @staticmethod
    def vmap(info, in_dims, program, q, k, v, *operands):
        dims = [*in_dims[1:4], list(in_dims[4:]), None]
        return _map_forward(info, dims, q, k, v, list(operands), program)


class _Gradients(torch.autograd.Function):
    """The same for the gradients, which torch.func takes for something to differentiate."""

    @staticmethod
    def forward(program, of_captures, d_o, d_lse, q, k, v, o, lse, *operands):
        return tuple(torch.ops.attn.backward(d_o, d_lse, q, k, v, list(operands), o, lse, program, of_captures))

    @staticmethod
    def setup_context(ctx, inputs, output):
        pass

    backward = staticmethod(_refuse)

    @staticmethod
    def vmap(info, in_dims, program, of_captures, d_o, d_lse, q, k, v, o, lse, *operands):
        dims = [*in_dims[2:7], list(in_dims[9:]), *in_dims[7:9], None, None]
        results, places = _map_backward(
            info, dims, d_o, d_lse, q, k, v, list(operands), o, lse, program, of_captures)
        return tuple(results), tuple(places)


def _in_transform():
    """Whether a transform of torch.func is at work."""
    return not torch.compiler.is_dynamo_compiling() and torch._C._functorch.peek_interpreter_stack() is not None


def _in_forward_mode():
    """Whether tensors may carry tangents (torch.autograd.forward_ad)."""
    return not torch.compiler.is_dynamo_compiling() and forward_ad._current_level >= 0


def forward(q, k, v, operands, program):
    """torch.ops.attn.forward, under torch.func and forward-mode AD too."""
    if _in_transform() or _in_forward_mode():
        return _Attention.apply(program, q, k, v, *operands)
    return torch.ops.attn.forward(q, k, v, operands, program)


def backward(d_o, d_lse, q, k, v, operands, o, lse, program, of_captures):
    """torch.ops.attn.backward, under torch.func too."""
    if _in_transform():
        return list(_Gradients.apply(program, of_captures, d_o, d_lse, q, k, v, o, lse, *operands))
    return torch.ops.attn.backward(d_o, d_lse, q, k, v, operands, o, lse, program, of_captures)


class _Tangents(torch.autograd.Function):
    """The same for the tangents."""

    @staticmethod
    def forward(program, t_q, t_k, t_v, q, k, v, *operands):
        return torch.ops.attn.jvp(t_q, t_k, t_v, q, k, v, list(operands), program)

    setup_context = staticmethod(_refuse_context)
    backward = staticmethod(_refuse)

    @staticmethod
    def vmap(info, in_dims, program, t_q, t_k, t_v, q, k, v, *operands):
        return _map_jvp(info, [*in_dims[1:7], list(in_dims[7:]), None], t_q, t_k, t_v, q, k, v, list(operands), program)


def jvp(t_q, t_k, t_v, q, k, v, operands, program):
    """torch.ops.attn.jvp, under torch.func too."""
    if _in_transform():
        return _Tangents.apply(program, t_q, t_k, t_v, q, k, v, *operands)
    return torch.ops.attn.jvp(t_q, t_k, t_v, q, k, v, operands, program)
