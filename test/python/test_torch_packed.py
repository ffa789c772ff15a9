#===----------------------------------------------------------------------===#
#
# Part of attn, an attention compiler.
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===----------------------------------------------------------------------===#
"""Packed documents (cu_seqlens) and keys whose number differs (kv_lens): each document
and each entry by itself is what is right."""

import pytest

torch = pytest.importorskip("torch", reason="attention on tensors of PyTorch needs PyTorch")

import attn.torch  # noqa: E402
from test_torch_attention import close, eager  # noqa: E402

QUERIES, KEYS = [3, 0, 9, 5], [7, 2, 9, 0]


def offsets(lengths):
    return torch.tensor([0, *lengths]).cumsum(0).to(torch.int32)


def visible(queries, keys, options):
    """Where a query sees a key: bottom right unless causal says otherwise."""
    shift = 0 if options.get("causal") == "top_left" else keys - queries
    i, j = torch.arange(queries)[:, None] + shift, torch.arange(keys)[None, :]
    shown = torch.ones(queries, keys, dtype=torch.bool)
    if options.get("causal"):
        shown &= j <= i
    left, right = options.get("window", (-1, -1))
    if left >= 0:
        shown &= j >= i - left
    if right >= 0:
        shown &= j <= i + right
    return shown, (i - j).abs()


def check(leaves, got, wanted, seed=0):
    torch.manual_seed(seed)
    (o, lse), (exact_o, exact_lse) = got, wanted
    close(o, exact_o, torch.float32)
    close(lse, exact_lse, torch.float32, 30)
    d_o, d_lse = torch.randn(o.shape), torch.randn(lse.shape)
    exact_lse, lse = (x.masked_fill(x.isinf(), 0.0) for x in (exact_lse, lse))
    gradients = [torch.autograd.grad([a, b], leaves, [d_o.to(a.dtype), d_lse.to(b.dtype)], allow_unused=True)
                 for a, b in ((o, lse), (exact_o, exact_lse))]
    for a, b in zip(*gradients):
        close(a, torch.zeros_like(a) if b is None else b, torch.float32, 20)


@pytest.mark.parametrize("is_same", [True, False])
@pytest.mark.parametrize("options", [
    {"causal": True}, {"causal": "top_left"}, {"window": (2, 1), "alibi": True}], ids=str)
def test_documents(options, is_same):
    torch.manual_seed(0)
    keys = QUERIES if is_same else KEYS
    q = torch.randn(sum(QUERIES), 4, 16, requires_grad=True)
    k, v = (torch.randn(sum(keys), 2, 16, requires_grad=True) for _ in range(2))
    own = {"cu_seqlens_q": offsets(QUERIES)}
    if not is_same:
        own["cu_seqlens_k"] = offsets(keys).long()
    got = attn.torch.attention(q, k, v, return_lse=True, **own, **options)
    parts = []
    for q_part, k_part, v_part in zip(q.split(QUERIES), k.split(keys), v.split(keys)):
        shown, distance = visible(len(q_part), len(k_part), options)
        bias = None
        if "alibi" in options:
            bias = -(2.0 ** (-2.0 * torch.arange(1, 5)))[:, None, None] * distance
        o, lse = eager(*(x.transpose(0, 1)[None] for x in (q_part, k_part, v_part)), shown=shown, bias=bias)
        parts.append((o[0].transpose(0, 1), lse[0]))
    check([q, k, v], got, (torch.cat([o for o, _ in parts]), torch.cat([lse for _, lse in parts], 1)))


@pytest.mark.parametrize("options", [
    {}, {"causal": "top_left"}, {"causal": True, "window": (3, 0), "alibi": True}], ids=str)
def test_lengths(options):
    torch.manual_seed(0)
    lengths = [11, 0, 19, 4]
    q = torch.randn(4, 4, 6, 16, requires_grad=True)
    k, v = (torch.randn(4, 2, 19, 16, requires_grad=True) for _ in range(2))
    got = attn.torch.attention(q, k, v, kv_lens=torch.tensor(lengths), return_lse=True, **options)
    parts = []
    for number, length in enumerate(lengths):
        shown, distance = visible(6, length, options)
        bias = None
        if "alibi" in options:
            bias = -(2.0 ** (-2.0 * torch.arange(1, 5)))[:, None, None] * distance
        one = slice(number, number + 1)
        parts.append(eager(q[one], k[one, :, :length], v[one, :, :length], shown=shown, bias=bias))
    check([q, k, v], got, [torch.cat(part) for part in zip(*parts)])


def test_mistakes():
    q = torch.zeros(9, 2, 8)
    with pytest.raises(ValueError, match="got cu_seqlens_k without cu_seqlens_q"):
        attn.torch.attention(q, q, q, cu_seqlens_k=offsets([9]))
    with pytest.raises(ValueError, match="got kv_lens and cu_seqlens"):
        attn.torch.attention(q, q, q, cu_seqlens_q=offsets([9]), kv_lens=offsets([]))
    with pytest.raises(ValueError, match=r"cu_seqlens_k: wanted the shape \(2,\), got the shape \(3,\)"):
        attn.torch.attention(q, q, q, cu_seqlens_q=offsets([9]), cu_seqlens_k=offsets([4, 5]))
    with pytest.raises(ValueError, match="layout: with cu_seqlens"):
        attn.torch.attention(q, q, q, cu_seqlens_q=offsets([9]), layout="bshd")
    with pytest.raises(ValueError, match="cu_seqlens_q: wanted one dimension"):
        attn.torch.attention(q, q, q, cu_seqlens_q=offsets([9])[None])
