#===----------------------------------------------------------------------===#
#
# Part of attn, an attention compiler.
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===----------------------------------------------------------------------===#
"""attn.torch.attention on tensors of the CPU, forward and backward, against PyTorch's
eager evaluation in float64."""

import math

import pytest

torch = pytest.importorskip("torch", reason="attention on tensors of PyTorch needs PyTorch")

import attn  # noqa: E402
import attn.torch  # noqa: E402


def eager(q, k, v, *, bias=None, shown=None, cap=None, sink=None, scale=None, keep=None):
    """(o, lse) in float64; `shown` (…, s, t) of keys, `bias` on scores, `keep` of weights."""
    group = q.shape[1] // k.shape[1]
    k, v = (x.double().repeat_interleave(group, 1) for x in (k, v))
    x = q.double() @ k.transpose(2, 3) * (q.shape[-1] ** -0.5 if scale is None else scale)
    if cap is not None:
        x = cap * torch.tanh(x / cap)
    if bias is not None:
        x = x + bias
    if shown is not None:
        x = x.masked_fill(~shown, -math.inf)
    if sink is not None:
        logits = sink.double()[None, :, None, None].expand(*x.shape[:3], 1)
        x = torch.cat([x, logits], 3)
    empty = (x == -math.inf).all(3, keepdim=True)
    lse = torch.logsumexp(x.masked_fill(empty, 0.0), 3).masked_fill(empty[..., 0], -math.inf)
    w = torch.softmax(x.masked_fill(empty, 0.0), 3).masked_fill(empty, 0.0)[..., :k.shape[2]]
    if keep is not None:
        w = w * keep
    return w @ v, lse


def close(got, wanted, dtype, room=3.0):
    """As near to float64 as the type lets it be."""
    got, wanted = got.detach().double(), wanted.detach().double()
    assert got.shape == wanted.shape
    assert (got.isinf() == wanted.isinf()).all() and not got.isnan().any()
    where = ~wanted.isinf()
    if where.any():
        largest = wanted[where].abs().max().item()
        error = (got[where] - wanted[where]).abs().max().item()
        assert error <= room * torch.finfo(dtype).eps * max(largest, 0.5) + 1e-5


def inputs(q_shape, k_shape, value_dim=None, dtype=torch.float32, seed=0):
    torch.manual_seed(seed)
    v_shape = (*k_shape[:3], value_dim or k_shape[3])
    return [torch.randn(shape).to(dtype).requires_grad_() for shape in (q_shape, k_shape, v_shape)]


def check(options, wanted, tensors, others=(), dtype=torch.float32):
    """attention(*tensors, **options) and its gradients beside those of `wanted`, a
    function that gives (o, lse) in float64."""
    o, lse = attn.torch.attention(*tensors, return_lse=True, **options)
    exact_o, exact_lse = wanted()
    assert o.dtype == dtype and lse.dtype == torch.float32
    close(o, exact_o, dtype)
    close(lse, exact_lse, torch.float32, 30)
    d_o = torch.randn(o.shape).to(dtype)
    d_lse = torch.randn(lse.shape).masked_fill(lse == -math.inf, 0.0)
    leaves = [*tensors, *others]
    got = torch.autograd.grad([o, lse], leaves, [d_o, d_lse])
    exact = torch.autograd.grad([exact_o, exact_lse], leaves, [d_o.double(), d_lse.double()])
    for gradient, right, leaf in zip(got, exact, leaves):
        assert gradient.dtype == leaf.dtype
        close(gradient, right, dtype, 20)


def lower(queries, keys, offset):
    """Where key j is at most query i's own, i + offset."""
    return torch.arange(keys)[None, :] <= torch.arange(queries)[:, None] + offset


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_causal_with_groups(dtype):
    tensors = inputs((2, 4, 21, 24), (2, 2, 33, 24), 40, dtype)
    check(dict(causal=True), lambda: eager(*tensors, shown=lower(21, 33, 12)), tensors, dtype=dtype)


def test_run():
    """A program of one's own."""
    q, k, v = inputs((1, 2, 9, 16), (1, 2, 9, 16))
    slopes = torch.rand(2, requires_grad=True)
    program = attn.attention("f32", 16, captures=[("slopes", "tensor<?xf32>")],
                             score=lambda p: p.x * p.slopes[p.h])
    o, lse = attn.torch.run(program, q, k, v, [slopes])
    exact_o, exact_lse = eager(q * slopes.detach()[None, :, None, None], k, v)
    close(o, exact_o, torch.float32)
    close(lse, exact_lse, torch.float32)
    (o.sum() + lse.sum()).backward()
    leaves = [slopes.detach().clone().requires_grad_(), *(x.detach().clone().requires_grad_() for x in (q, k, v))]
    o, lse = eager(leaves[1] * leaves[0][None, :, None, None], *leaves[2:])
    (o.sum() + lse.sum()).backward()
    for got, wanted in zip((slopes, q, k, v), leaves):
        close(got.grad, wanted.grad, torch.float32, 20)
