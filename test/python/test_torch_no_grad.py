#===----------------------------------------------------------------------===#
#
# Part of attn, an attention compiler.
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===----------------------------------------------------------------------===#
"""Attention of which a part is inside of torch.no_grad, or detached: gradients go where
PyTorch's go."""

import pytest

torch = pytest.importorskip("torch", reason="torch.no_grad is PyTorch's")

from attn.torch import backend  # noqa: E402

BATCH, HEADS, LENGTH, DIM = 2, 3, 37, 16


def scores_of(q, k, v, slopes):
    with torch.no_grad():
        scores = q @ k.mT / 4
    return (scores - slopes).softmax(-1) @ v


def weights(q, k, v, slopes):
    with torch.no_grad():
        weights = (q @ k.mT / 4 - slopes).softmax(-1)
    return weights @ v


def weights_of_values_without_gradients(q, k, v, slopes):
    with torch.no_grad():
        weights = (q @ k.mT / 4 - slopes).softmax(-1)
    return weights @ v.detach() + v


def bias(q, k, v, slopes):
    with torch.no_grad():
        bias = slopes * torch.arange(LENGTH).to(q.dtype)
    return (q @ k.mT / 4 - bias).softmax(-1) @ v


def factors(q, k, v, slopes):
    with torch.no_grad():
        q, v = q * 0.25, v.transpose(1, 2).contiguous()
    return (q @ k.mT - slopes).softmax(-1) @ v.transpose(1, 2)


def maximum(q, k, v, slopes):
    scores = q @ k.mT / 4 - slopes
    with torch.no_grad():
        top = scores.amax(-1, keepdim=True)
    exponential = (scores - top).exp()
    return (exponential / exponential.sum(-1, keepdim=True)) @ v


def whole(q, k, v, slopes):
    with torch.no_grad():
        attention = (q @ k.mT / 4 - slopes).softmax(-1) @ v
    return attention + v


def straight_through(q, k, v, slopes):
    scores = q @ k.mT / 4 - slopes
    return (scores + (scores.round() - scores).detach()).softmax(-1) @ v


def detached_gate(q, k, v, slopes):
    scores = q @ k.mT / 4 - slopes
    return (scores * torch.sigmoid(scores.detach())).softmax(-1) @ v


def data_gate(q, k, v, slopes):
    scores = q @ k.mT / 4 - slopes
    return (scores * torch.sigmoid(scores.data)).softmax(-1) @ v


def detached_factor(q, k, v, slopes):
    return (q @ k.mT / 4 - slopes * slopes.detach()).softmax(-1) @ v


FUSED = {scores_of: False, weights: False, weights_of_values_without_gradients: False, bias: True, factors: True,
         maximum: True, whole: True,
         straight_through: False, detached_gate: False, data_gate: False, detached_factor: True}


@pytest.mark.parametrize("function", FUSED, ids=lambda function: function.__name__)
def test_gradients(function):
    torch.manual_seed(0)
    inputs = [torch.randn(BATCH, HEADS, LENGTH, DIM) for _ in range(3)] + [torch.rand(HEADS, 1, 1)]
    inputs, found = [x.requires_grad_() for x in inputs], []
    torch._dynamo.reset()
    compiled = torch.compile(function, backend=lambda graph, examples: backend.backend(
        graph, examples, inner="eager", listener=found.extend))
    got, wanted = compiled(*inputs), function(*inputs)
    torch.testing.assert_close(got, wanted, atol=2e-5, rtol=2e-5)
    upstream = torch.randn_like(wanted)
    for mine, its in zip(*(torch.autograd.grad(result, inputs, upstream, allow_unused=True) for result in (got, wanted))):
        assert (mine is None) == (its is None)
        if its is not None:
            torch.testing.assert_close(mine, its, atol=1e-4, rtol=1e-4)
    assert [each.raised for each in found] == [FUSED[function]], found


def test_the_reason():
    found = []
    inputs = [torch.randn(BATCH, HEADS, LENGTH, DIM, requires_grad=True) for _ in range(3)]
    torch._dynamo.reset()
    torch.compile(weights, backend=lambda graph, examples: backend.backend(
        graph, examples, inner="eager", listener=found.extend))(*inputs, torch.zeros(HEADS, 1, 1))
    remark, = [each.remark for each in found]
    assert remark == "torch.no_grad for a part of attention"
