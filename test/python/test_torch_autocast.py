#===----------------------------------------------------------------------===#
#
# Part of attn, an attention compiler.
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===----------------------------------------------------------------------===#
"""Attention under torch.autocast: products of f32 tensors are of 16 bits, as those that a
norm of queries and keys or a rotation in f32 leaves, and softmax is of f32."""

import math

import pytest

torch = pytest.importorskip("torch")
F = torch.nn.functional

from attn.torch import backend  # noqa: E402

BATCH, HEADS, LENGTH, DIM = 2, 3, 37, 16


def plain(q, k, v, dtype=None):
    return (q @ k.mT / 4).softmax(-1) @ v


def causal(q, k, v, dtype=None):
    scores = torch.matmul(q, k.transpose(-1, -2)) * DIM ** -0.5
    hidden = torch.ones(scores.shape[-2:], dtype=torch.bool).triu(1)
    return torch.matmul(scores.masked_fill(hidden, float("-inf")).softmax(-1), v)


def biased(q, k, v, dtype=None):
    """An additive bias of f32 makes scores of f32."""
    distance = torch.arange(q.shape[-2])[:, None] - torch.arange(k.shape[-2])
    return F.softmax(q @ k.mT / 4 - 0.1 * distance.abs().float(), -1) @ v


def normed(q, k, v, dtype):
    """Queries and keys of f32, values of 16 bits."""
    q, k = F.layer_norm(q, (DIM,)).float(), F.layer_norm(k, (DIM,)).float()
    return plain(q, k, v.to(dtype))


def rotated(q, k, v, dtype=None):
    angles = torch.arange(LENGTH)[:, None] * 10 ** -torch.linspace(0, 2, DIM // 2)
    cos, sin = torch.cat([angles.cos()] * 2, -1), torch.cat([angles.sin()] * 2, -1)

    def turn(x):
        first, second = x.chunk(2, -1)
        return x * cos + torch.cat([-second, first], -1) * sin
    return plain(turn(q), turn(k), v)


def einsum(q, k, v, dtype=None):
    weights = torch.einsum("bhqd,bhkd->bhqk", q, k).div(math.sqrt(DIM)).softmax(-1)
    return torch.einsum("bhqk,bhkd->bhqd", weights, v)


def batched(q, k, v, dtype=None):
    q, k, v = (x.flatten(0, 1) for x in (q, k, v))
    scores = torch.baddbmm(torch.zeros(BATCH * HEADS, LENGTH, LENGTH), q, k.mT, beta=0, alpha=0.25)
    return torch.bmm(scores.softmax(-1), v).view(BATCH, HEADS, LENGTH, DIM)


def exactly(q, k, v, dtype):
    """Softmax in f32 by name, and weights of the values' type."""
    v = v.to(dtype)
    return torch.softmax(q @ k.mT / 4, -1, dtype=torch.float32).to(v.dtype) @ v


FUNCTIONS = [plain, causal, biased, normed, rotated, einsum, batched, exactly]


@pytest.mark.parametrize("place", ["around", "inside"])
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=["bf16", "f16"])
@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda each: each.__name__)
def test_products_of_f32(function, dtype, place):
    """Errors are those of PyTorch's own evaluation in 16 bits, or nearly."""
    def inside(*inputs):
        with torch.autocast("cpu", dtype):
            return function(*inputs)

    torch.manual_seed(1)
    torch._dynamo.reset()
    inputs, found = [torch.randn(BATCH, HEADS, LENGTH, DIM, requires_grad=True) for _ in range(3)], []
    compiled = torch.compile(inside if place == "inside" else function, backend=lambda graph, examples: backend.backend(
        graph, examples, inner="eager", listener=found.extend))
    with torch.autocast("cpu", dtype, enabled=place == "around"):
        got = compiled(*inputs, dtype)
    rounded, wanted = inside(*inputs, dtype), function(*inputs, torch.float32)
    assert [each.raised for each in found] == [True], found
    assert got.dtype == rounded.dtype == dtype
    d_o = torch.randn_like(wanted)
    results = [(each, *torch.autograd.grad(each, inputs, d_o.to(each.dtype))) for each in (got, rounded, wanted)]
    for mine, its, exact in zip(*results):
        assert mine.dtype == its.dtype
        error, allowed = ((x.float() - exact).abs().max().item() for x in (mine, its))
        assert error <= 2 * allowed + 1e-3
