#===----------------------------------------------------------------------===#
#
# Part of attn, an attention compiler.
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===----------------------------------------------------------------------===#
"""What the operators of ops.py compute: launches of kernels on tensors, and the tensors
that they write.
"""

import functools
import re

import torch

from .._capi import AttnError
from . import forms, kernels

_FLOATS = ("f16", "bf16", "f32")


def _is_sink(program, name):
    return re.search(rf"\bsink\(%{re.escape(name)}\)", program) is not None


@functools.lru_cache(maxsize=None)
def differentiable(program, of_captures):
    """The numbers of the operands that have gradients."""
    return [
        number
        for number, parameter in enumerate(kernels.parameters(program)[3:])
        if parameter.element in _FLOATS and number not in kernels.constants(program)
        and (of_captures or _is_sink(program, parameter.name))
    ]


def _empty(like, sizes):
    """A result beside `like`: (b, h, s, d), in memory (b, s, h, d) where `like` has
    its heads inside, so that what a model transposed it transposes back for nothing."""
    batch, heads, length, dim = sizes
    if like.stride(1) < like.stride(2):
        return like.new_empty((batch, length, heads, dim)).transpose(1, 2)
    return like.new_empty(sizes)


def empty_results(q, v):
    batch, heads, length, _ = q.shape
    o = _empty(q, (batch, heads, length, v.shape[3]))
    return o, q.new_empty((batch, heads, length), dtype=torch.float32)


def empty_gradients(q, k, v, operands, program, of_captures):
    gradients = [_empty(tensor, tensor.shape) for tensor in (q, k, v)]
    return gradients + [operands[number].new_empty(operands[number].shape)
                        for number in differentiable(program, of_captures)]


def _check_operands(operands, program):
    wanted = kernels.parameters(program)[3:]
    if len(operands) != len(wanted):
        names = ", ".join(parameter.name for parameter in wanted) or "none"
        raise AttnError(f"operands: wanted {len(wanted)} ({names}), got {len(operands)}")
    for parameter, operand in zip(wanted, operands):
        if parameter.shape is None and operand.device.type != "cpu":
            raise AttnError(f"operand '{parameter.name}' is a number: wanted a tensor of the CPU, got one on "
                            f"{operand.device}, which would have to be waited for")


def forward(q, k, v, operands, program):
    _check_operands(operands, program)
    with torch.no_grad():
        o, lse = empty_results(q, v)
        kernel = kernels.forward(kernels.promised(program, operands), q.device, kernels.lengths(q, k))
        kernels.launch(kernel, [q, k, v, *operands, o, lse])
    return o, lse


def gradient_launch(d_o, d_lse, q, k, v, operands, o, lse, gradients, program, of_captures):
    """(the kernel, its arguments, (gradient, where it is written first) pairs)"""
    program = kernels.promised(program, operands)
    kernel = forms.backward(program, q, k, operands, d_lse is not None, of_captures)
    names = [parameter.name for parameter in kernels.parameters(program)[3:]]
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
    return kernel, values, later


def backward(d_o, d_lse, q, k, v, operands, o, lse, program, of_captures):
    with torch.no_grad():
        gradients = empty_gradients(q, k, v, operands, program, of_captures)
        if lse.numel() == 0:  # no query, nothing that depends on anything
            return [gradient.zero_() for gradient in gradients]
        kernel, values, later = gradient_launch(
            d_o, d_lse, q, k, v, operands, o, lse, gradients, program, of_captures)
        kernels.launch(kernel, values)
        for gradient, place in later:
            gradient.copy_(place.reshape(gradient.shape))
    return gradients


def jvp(t_q, t_k, t_v, q, k, v, operands, program):
    _check_operands(operands, program)
    with torch.no_grad():
        o, lse = empty_results(q, v)
        t_o, t_lse = empty_results(q, v)
        program = kernels.promised(program, operands)
        kernels.launch(kernels.tangents(program, q.device), [q, k, v, *operands, t_q, t_k, t_v, o, lse, t_o, t_lse])
    return t_o, t_lse
