#===----------------------------------------------------------------------===#
#
# Part of attn, an attention compiler.
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===----------------------------------------------------------------------===#
"""The operators torch.ops.attn.forward and backward: what PyTorch's dispatcher,
autograd, vmap and torch.compile know of attention.

    attn::forward(q, k, v, operands, program) -> (o, lse)
    attn::backward(d_o, d_lse, q, k, v, operands, o, lse, program, of_captures) -> gradients

`operands` are the arguments of the program behind v, scalars as tensors of one element
(of the CPU, if nothing shall wait). The gradients are those of q, k, v, the sink and,
with of_captures, of the captured floats, in the order of the arguments.
"""

import re

import torch

from . import kernels

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

_FLOATS = ("f16", "bf16", "f32")


def _is_sink(program, name):
    return re.search(rf"\bsink\(%{re.escape(name)}\)", program) is not None


def differentiable(program, of_captures):
    """The numbers of the operands that have gradients."""
    return [
        number
        for number, parameter in enumerate(kernels.parameters(program)[3:])
        if parameter.element in _FLOATS and (of_captures or _is_sink(program, parameter.name))
    ]


# ---------------------------------------------------------------------------
# What is computed
# ---------------------------------------------------------------------------


def _empty(like, sizes):
    """A result beside `like`: (b, h, s, d), in memory (b, s, h, d) where `like` has
    its heads inside, so that what a model transposed it transposes back for nothing."""
    batch, heads, length, dim = sizes
    if like.stride(1) < like.stride(2):
        return like.new_empty((batch, length, heads, dim)).transpose(1, 2)
    return like.new_empty(sizes)


def _empty_results(q, v):
    batch, heads, length, _ = q.shape
    o = _empty(q, (batch, heads, length, v.shape[3]))
    return o, q.new_empty((batch, heads, length), dtype=torch.float32)


def _empty_gradients(q, k, v, operands, program, of_captures):
    gradients = [_empty(tensor, tensor.shape) for tensor in (q, k, v)]
    return gradients + [operands[number].new_empty(operands[number].shape)
                        for number in differentiable(program, of_captures)]


def _forward(q, k, v, operands, program):
    with torch.no_grad():
        o, lse = _empty_results(q, v)
        kernels.launch(kernels.forward(program, q.device), [q, k, v, *operands, o, lse])
    return o, lse


def _backward(d_o, d_lse, q, k, v, operands, o, lse, program, of_captures):
    with torch.no_grad():
        kernel = kernels.backward(program, q.device, d_lse is not None, of_captures)
        names = [parameter.name for parameter in kernels.parameters(program)[3:]]
        gradients = _empty_gradients(q, k, v, operands, program, of_captures)
        given = {"query": q, "key": k, "value": v, "output": o, "lse": lse, "d_output": d_o, "d_lse": d_lse}
        given.update(zip(("d_query", "d_key", "d_value"), gradients))
        by_name = dict(zip(names, operands))
        # Gradients of operands: kernels write f32 and the like where tensors lie, and
        # those of scalars as tensors without dimensions.
        written, later = {}, []
        for number, gradient in zip(differentiable(program, of_captures), gradients[3:]):
            shape = kernels.parameters(program)[3 + number].shape
            place = gradient
            if shape is None or gradient.device != q.device:
                place = torch.empty(() if shape is None else gradient.shape, dtype=gradient.dtype, device=q.device)
                later.append((gradient, place))
            written["d_" + names[number]] = place
        values = []
        for info in kernel.manifest["arguments"]:
            role = info["roles"][0]
            if role in given:
                values.append(given[role])
            else:
                values.append((written if info["output"] else by_name)[info["name"]])
        kernels.launch(kernel, values)
        for gradient, place in later:
            gradient.copy_(place.reshape(gradient.shape))
    return gradients


_LIBRARY.impl("forward", _forward, "CompositeExplicitAutograd")
_LIBRARY.impl("backward", _backward, "CompositeExplicitAutograd")


@torch.library.register_fake("attn::forward")
def _fake_forward(q, k, v, operands, program):
    return _empty_results(q, v)


@torch.library.register_fake("attn::backward")
def _fake_backward(d_o, d_lse, q, k, v, operands, o, lse, program, of_captures):
    return _empty_gradients(q, k, v, operands, program, of_captures)


# ---------------------------------------------------------------------------
# Gradients
# ---------------------------------------------------------------------------


def _of_captures(program, needed):
    """Whether one of the operands whose gradient is needed is a capture."""
    sinks = differentiable(program, False)
    return any(needed[number] for number in differentiable(program, True) if number not in sinks)


def _setup_context(ctx, inputs, output):
    q, k, v, operands, program = inputs
    ctx.set_materialize_grads(False)
    ctx.program = program
    ctx.save_for_backward(q, k, v, *operands, *output)
    # What has no gradient is said where attention is called, not where backward() is.
    parameters = kernels.parameters(program)[3:]
    needed = [operand.requires_grad for operand in operands]
    if len(operands) == len(parameters) and _of_captures(program, needed):
        kernels.compile_backward(program, q.device, False, True)


def _differentiate(ctx, d_o, d_lse):
    q, k, v, *operands, o, lse = ctx.saved_tensors
    program, needed = ctx.program, ctx.needs_input_grad[3]
    none = [None] * len(operands)
    if d_o is None and d_lse is None:
        return None, None, None, none, None
    if d_o is None:
        d_o = torch.zeros_like(o)
    of_captures = _of_captures(program, needed)
    d_q, d_k, d_v, *others = torch.ops.attn.backward(
        d_o, d_lse, q, k, v, operands, o, lse, program, of_captures)
    for number, gradient in zip(differentiable(program, of_captures), others):
        if needed[number]:
            none[number] = gradient
    return d_q, d_k, d_v, none, None


def _refuse_context(ctx, inputs, output):
    pass


def _refuse(ctx, *gradients):
    raise RuntimeError("attn has no gradients of gradients: create_graph=True asked for them")


torch.library.register_autograd("attn::forward", _differentiate, setup_context=_setup_context)
torch.library.register_autograd("attn::backward", _refuse, setup_context=_refuse_context)
