#===----------------------------------------------------------------------===#
#
# Part of attn, an attention compiler.
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===----------------------------------------------------------------------===#
"""Score functions that calculate with vectors which they read: layers of small networks,
products of matrices, variances, places of extremes; values and gradients beside PyTorch's."""

import pytest

torch = pytest.importorskip("torch", reason="attention on tensors of PyTorch needs PyTorch")

from attn.torch import flex_attention  # noqa: E402
from torch.nn import functional as F  # noqa: E402

LENGTH, WIDTH = 21, 5
_drawn = torch.Generator().manual_seed(3)
ROWS = torch.randn(LENGTH, WIDTH, generator=_drawn)
FIRST, SECOND = torch.randn(4, WIDTH, generator=_drawn), torch.randn(WIDTH, 4, generator=_drawn)
SHIFT = torch.randn(4, generator=_drawn)

SCORES = {
    "linear": lambda s, b, h, q, k: s + F.linear(ROWS[q] - ROWS[k], FIRST)[h],
    "linear with a bias": lambda s, b, h, q, k: s + F.linear(torch.tanh(ROWS[q] - ROWS[k]), FIRST, SHIFT).sum(),
    "a network": lambda s, b, h, q, k: s + (F.linear(F.relu(F.linear(ROWS[q], FIRST, bias=SHIFT)), SECOND) * ROWS[k]).sum(),
    "vector times matrix": lambda s, b, h, q, k: s + (ROWS[q] @ SECOND)[1] + torch.matmul(ROWS[k], SECOND)[h],
    "from the right": lambda s, b, h, q, k: s + SECOND.__rmatmul__(ROWS[q])[h] + (FIRST @ ROWS[k])[h],
    "of a score": lambda s, b, h, q, k: s + (torch.stack([s, s * 0.5, s, s, s]) @ SECOND)[2],
    "einsum": lambda s, b, h, q, k: s + torch.einsum("i,i->", ROWS[q], ROWS[k]) + torch.einsum("i,ij->j", ROWS[q], SECOND)[h],
    "products of batches": lambda s, b, h, q, k: s + torch.bmm(ROWS[q].view(1, 1, 5), ROWS[k].view(1, 5, 1)).sum(),
    "logsumexp": lambda s, b, h, q, k: torch.logsumexp(torch.stack([s, ROWS[q, 0] + ROWS[k, 1]]), 0) + torch.logsumexp(ROWS[k], -1),
    "logsumexp of nothing": lambda s, b, h, q, k: torch.where(torch.logsumexp(ROWS[q] - torch.inf, 0) < 0, s, 0.0),
    "logsumexp that keeps": lambda s, b, h, q, k: s + torch.logsumexp(ROWS[q], 0, keepdim=True)[0],
    "variances": lambda s, b, h, q, k: s + ROWS[q].var() + ROWS[k].std(0) + ROWS[q].var(unbiased=False) + torch.var(ROWS[k], 0, correction=2),
    "of all rows": lambda s, b, h, q, k: s + FIRST.var(1)[h] + FIRST.std(0, keepdim=True)[0, k % WIDTH],
    "norm of a layer": lambda s, b, h, q, k: s + (F.layer_norm(ROWS[q], (WIDTH,)) * F.layer_norm(ROWS[k], (WIDTH,), ROWS[0], ROWS[1])).sum(),
    "flips": lambda s, b, h, q, k: s + (ROWS[q].flip(0) * ROWS[k]).sum() + ROWS[q].roll(2, 0)[k % WIDTH] + SECOND.flip(0, 1)[k % WIDTH, h],
    "places": lambda s, b, h, q, k: s + (ROWS[q].argmax() - ROWS[k].argmin(-1)) * 0.5 + FIRST.argmax(0)[k % WIDTH] * 0.1,
    "places of equals": lambda s, b, h, q, k: s + (ROWS[q] > 0).int().argmax() + torch.stack([q, k, q]).argmax(0, keepdim=True)[0],
    "extremes along": lambda s, b, h, q, k: s + ROWS[q].max(0).values - ROWS[k].min(dim=-1)[0] + FIRST.max(1).indices[h] * 0.2,
}


def by_pytorch(q, k, v, score):
    x = q @ k.mT / q.shape[-1] ** 0.5
    for dims in ((None, None, None, 0), (None, None, 0, None), (None, 0, None, None), (0, None, None, None)):
        score = torch.vmap(score, (0, *dims))
    return torch.softmax(score(x, *map(torch.arange, x.shape)).float(), -1) @ v


def graded(attend, tensors, up):
    tensors = [x.clone().requires_grad_() for x in tensors]
    o = attend(*tensors)
    return [o.detach(), *torch.autograd.grad(o, tensors, up)]


@pytest.mark.parametrize("name", SCORES)
def test_values_and_gradients(name):
    torch.manual_seed(1)
    *tensors, up = torch.randn(4, 2, 4, LENGTH, 16)
    got = graded(lambda *x: flex_attention(*x, SCORES[name]), tensors, up)
    wanted = graded(lambda *x: by_pytorch(*x, SCORES[name]), tensors, up)
    torch.testing.assert_close(got, wanted, rtol=1e-4, atol=2e-5)


def test_gradients_of_a_layer():
    torch.manual_seed(2)
    *tensors, up = torch.randn(4, 1, 2, LENGTH, 16)
    layer = torch.randn(4, WIDTH), torch.randn(4)

    def with_layer(attend):
        return lambda q, k, v, weight, bias: attend(
            q, k, v, lambda s, b, h, i, j: s + F.relu(F.linear(ROWS[i] - ROWS[j], weight, bias))[h])
    got = graded(with_layer(flex_attention), [*tensors, *layer], up)
    wanted = graded(with_layer(by_pytorch), [*tensors, *layer], up)
    torch.testing.assert_close(got, wanted, rtol=1e-4, atol=1e-4)


def test_refused():
    q = torch.randn(1, 1, LENGTH, 16)
    with pytest.raises(Exception, match="topk: no kernel can hold this operation"):
        flex_attention(q, q, q, lambda s, b, h, i, j: s + ROWS[i].topk(2).values[1])
