#===----------------------------------------------------------------------===#
#
# Part of attn, an attention compiler.
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===----------------------------------------------------------------------===#
"""Arguments of PyTorch's operations in score functions: each that changes a result is obeyed
or refused."""

import functools

import pytest

torch = pytest.importorskip("torch", reason="functions of PyTorch need PyTorch")
pytest.importorskip("torch.nn.attention.flex_attention", reason="this PyTorch has no flex attention")

import attn.torch  # noqa: E402
from attn.torch import flex_attention, trace  # noqa: E402
from test_torch_flex import near, tensors  # noqa: E402
from test_torch_trace import BIAS, IDS, SLOPES, reference, scores, values  # noqa: E402

F = torch.nn.functional
HALVES = torch.tensor([1.0, float("inf"), -float("inf"), 2.0], dtype=torch.float16)

SCORES = {
    "round to decimals": lambda s, b, h, q, k: torch.round(s, decimals=1) + s.round(decimals=2) * 3,
    "round to tens": lambda s, b, h, q, k: torch.round(s * 40, decimals=-1) + torch.round(s * 900, decimals=-2),
    "round": lambda s, b, h, q, k: torch.round(s * 4) + torch.round(s * 5, decimals=0) + torch.round(q),
    "alpha": lambda s, b, h, q, k: torch.add(s, k, alpha=2) + torch.sub(q, k, alpha=3) + torch.rsub(s, k, alpha=0.5),
    "rounding_mode": lambda s, b, h, q, k: torch.div(s, 0.3, rounding_mode="floor") + torch.div(s, 0.3, rounding_mode="trunc"),
    "keepdim": lambda s, b, h, q, k: s + BIAS[b, h].sum(1, keepdim=True)[q, 0] + BIAS[b, h].amax(1, keepdim=True).sum(),
    "keepdim of flags": lambda s, b, h, q, k: s + (BIAS[b, h] > 1).any(1, keepdim=True)[q, 0] + (BIAS[b, h] > -2).all(0)[k],
    "dtype of sums": lambda s, b, h, q, k: s + torch.stack([s, s * 2]).sum(dtype=torch.int32) + (IDS[k].reshape(1) > 0).sum(dtype=torch.int32) / 2,
    "approximate": lambda s, b, h, q, k: F.gelu(s * 3, approximate="tanh") + F.gelu(s),
    "softplus": lambda s, b, h, q, k: F.softplus(s, beta=2.0, threshold=1.0) + F.celu(s, alpha=0.7) + F.elu(s, alpha=0.3),
    "out_int32": lambda s, b, h, q, k: s + torch.bucketize(k, IDS, out_int32=True) + torch.searchsorted(IDS, k, side="right"),
    "diff": lambda s, b, h, q, k: s + torch.diff(BIAS[b, h, q], n=2)[1] + torch.diff(BIAS[b, h, q], prepend=BIAS[b, h, 0, :2])[k],
    "flatten": lambda s, b, h, q, k: s + BIAS[b].flatten(0, 1)[h, k] + BIAS[b].flatten(1)[h, q],
    "nan_to_num of halves": lambda s, b, h, q, k: s + torch.nan_to_num(HALVES[h]) + torch.nan_to_num(q),
    "threshold of integers": lambda s, b, h, q, k: s + F.threshold(q, 1, 7) // 2,
    "lerp, addcmul": lambda s, b, h, q, k: torch.lerp(s, s * 3, 0.25) + torch.addcdiv(s, s, SLOPES[h] + 9, value=2),
    "norm": lambda s, b, h, q, k: s + torch.linalg.vector_norm(BIAS[b, h], dim=1, keepdim=True)[q, 0],
}


@functools.lru_cache(None)
def found():
    return dict(zip(SCORES, values([(function, "score") for function in SCORES.values()])))


@pytest.mark.parametrize("name", SCORES)
def test_values(name):
    wanted = reference(SCORES[name], "score", scores()).broadcast_to(found()[name].shape).float()
    torch.testing.assert_close(found()[name], wanted, rtol=2e-5, atol=2e-5)


def test_padding_idx():
    """That row of a table has no gradient: against the whole scores, since flex attention of
    PyTorch 2.15 has other gradients of elements of vectors."""
    q, k, v = tensors(*[(1, 2, 17, 8)] * 3)
    torch.manual_seed(5)
    table, at, results = torch.nn.Parameter(torch.randn(4, 2)), torch.arange(17) % 4, []

    def score(s, b, h, i, j):
        return s * F.embedding(i % 4, table, padding_idx=1)[0] + F.embedding(j % 4, table, padding_idx=3)[1]

    def unfused(q, k, v):
        factor, bias = (F.embedding(at, table, padding_idx=row)[:, n] for n, row in enumerate((1, 3)))
        return (q @ k.mT / 8**0.5 * factor[:, None] + bias).softmax(-1) @ v
    for attend in (lambda *x: flex_attention(*x, score), unfused):
        o = attend(q, k, v)
        results.append((o, *torch.autograd.grad(o.square().sum(), (q, k, v, table))))
    for one, other in zip(*results):
        near(one, other, torch.float32, room=12.0)


REFUSED = {
    "decimals": lambda s, b, h, q, k: s + torch.round(q, decimals=-1),
    "scale_grad_by_freq": lambda s, b, h, q, k: s + F.embedding(h, BIAS[0, 0, :4], scale_grad_by_freq=True)[2],
    "dtype": lambda s, b, h, q, k: s + torch.stack([s, s * 2]).sum(dtype=torch.float64),
    "ord": lambda s, b, h, q, k: s + torch.linalg.vector_norm(BIAS[b, h, q], ord=3),
    "max_norm": lambda s, b, h, q, k: s + F.embedding(h, BIAS[0, 0, :4], max_norm=1.0)[2],
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name):
    with pytest.raises(trace.TraceError, match=r"test_torch_arguments\.py:\d+: score_mod: "):
        trace.region(REFUSED[name], "score")
