#===----------------------------------------------------------------------===#
#
# Part of attn, an attention compiler.
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===----------------------------------------------------------------------===#
"""Attention of decoders."""

import math

import torch
import torch.nn.functional as F
from torch import nn

from .table import BATCH, DIM, HEADS, LENGTH, OTHER, QKV, WIDTH, spelling

GROUPED = [(BATCH, HEADS, LENGTH, DIM), (BATCH, 2, LENGTH, DIM), (BATCH, 2, LENGTH, DIM)]
LATENT = [(BATCH, LENGTH, HEADS * 24), (BATCH, LENGTH, 16), (BATCH, LENGTH, 1, 8)]
TRIANGLE = torch.tril(torch.ones(32, 32, dtype=torch.bool)).view(1, 1, 32, 32)


def rotated(x, cos, sin):
    half = x.shape[-1] // 2
    return x * cos + torch.cat((-x[..., half:], x[..., :half]), dim=-1) * sin


def angles(length, dim, device=None):
    t = torch.arange(length, device=device, dtype=torch.float32)
    inverse = 1.0 / (10000 ** (torch.arange(0, dim, 2, device=device).float() / dim))
    both = torch.cat((torch.outer(t, inverse),) * 2, dim=-1)
    return both.cos(), both.sin()


def repeated(x, n):
    b, h, t, d = x.shape
    return x[:, :, None].expand(b, h, n, t, d).reshape(b, h * n, t, d)


@spelling(TRIANGLE)
def gptj(q, k, v, seen):
    """In f32, with a buffer, and a number that is a tensor."""
    n, m = q.size(-2), k.size(-2)
    mask = seen[:, :, m - n: m, :m]
    q, k = q.to(torch.float32), k.to(torch.float32)
    weights = torch.matmul(q, k.transpose(-1, -2))
    value = torch.tensor(torch.finfo(weights.dtype).min, dtype=weights.dtype).to(weights.device)
    weights = torch.where(mask, weights, value)
    weights = weights / torch.sqrt(torch.tensor(DIM, dtype=torch.float32)).to(torch.get_default_dtype())
    weights = nn.functional.softmax(weights, dim=-1).to(v.dtype)
    return torch.matmul(weights, v)


@spelling(of=[(BATCH, LENGTH, 3 * WIDTH)])
def codegen(qkv):
    """Packed by parts of a machine: query, value, key."""
    b, n, _ = qkv.shape
    parts = qkv.reshape(b, n, 2, -1)
    q, v, k = torch.split(parts, WIDTH // 2, dim=-1)
    q, k, v = (x.reshape(b, n, 2, HEADS // 2, DIM).reshape(b, n, HEADS, DIM).permute(0, 2, 1, 3)
               for x in (q, k, v))
    causal = torch.tril(torch.ones((n, n), dtype=torch.bool, device=q.device))[None, None]
    s = torch.matmul(q.float(), k.float().transpose(-1, -2)) / (DIM**0.5)
    s = torch.where(causal, s, torch.tensor(-1e9, dtype=s.dtype))
    return torch.matmul(s.softmax(-1).to(v.dtype), v).permute(0, 2, 1, 3).flatten(2)


@spelling(torch.ones(BATCH, LENGTH))
def opt(q, k, v, shown):
    """Scores that are cut off below, batches and heads in one dimension."""
    b, h, n, d = q.shape
    past = torch.full((n, n), torch.finfo(q.dtype).min)
    at = torch.arange(n)
    past.masked_fill_(at < (at + 1).view(n, 1), 0)
    expanded = shown[:, None, None, :].expand(b, 1, n, n)
    inverted = 1.0 - expanded
    mask = inverted.masked_fill(inverted.to(torch.bool), torch.finfo(q.dtype).min) + past[None, None]
    q, k, v = ((x * s).reshape(b * h, -1, d) for x, s in ((q, d**-0.5), (k, 1.0), (v, 1.0)))
    weights = torch.bmm(q, k.transpose(1, 2)).view(b, h, n, n) + mask
    weights = torch.max(weights, torch.tensor(torch.finfo(weights.dtype).min)).view(b * h, n, n)
    weights = F.softmax(weights, dim=-1)
    return torch.bmm(F.dropout(weights, p=0.1, training=False), v).view(b, h, n, d)


def slopes(heads):
    return torch.tensor([2.0 ** (-8.0 * (n + 1) / heads) for n in range(heads)])


@spelling(torch.ones(BATCH, LENGTH), of=[(BATCH, LENGTH, 3 * WIDTH)])
def bloom_of_a_padded_text(qkv, shown):
    """ALiBi by the numbers of tokens that are there, joined by baddbmm."""
    b, n, _ = qkv.shape
    q, k, v = (x.squeeze(3) for x in qkv.view(b, n, HEADS, 3, DIM).split(1, dim=3))
    at = ((shown.cumsum(dim=-1) - 1) * shown)[:, None, :]
    alibi = (slopes(HEADS)[..., None] * at).reshape(b * HEADS, 1, n)
    q = q.transpose(1, 2).reshape(b * HEADS, n, DIM)
    k = k.permute(0, 2, 3, 1).reshape(b * HEADS, DIM, n)
    v = v.transpose(1, 2).reshape(b * HEADS, n, DIM)
    scores = alibi.baddbmm(batch1=q, batch2=k, beta=1.0, alpha=1.0 / math.sqrt(DIM)).view(b, HEADS, n, n)
    hidden = torch.triu(torch.ones(n, n, dtype=torch.bool), 1)[None, None] | (shown[:, None, None, :] == 0)
    weights = torch.masked_fill(scores.to(torch.float), hidden, torch.finfo(scores.dtype).min)
    weights = F.softmax(weights, dim=-1, dtype=torch.float32).to(q.dtype).view(b * HEADS, n, n)
    return torch.bmm(weights, v).view(b, HEADS, n, DIM).permute(0, 2, 1, 3).reshape(b, n, WIDTH)


@spelling(of=[(BATCH, LENGTH, (HEADS + 2) * DIM)])
def falcon(qkv):
    """One head of keys, behind the queries."""
    b, n, _ = qkv.shape
    parts = qkv.view(b, n, HEADS + 2, DIM)
    q, k, v = (x.transpose(1, 2) for x in (parts[..., :-2, :], parts[..., [-2], :], parts[..., [-1], :]))
    mask = torch.triu(torch.full((n, n), float("-inf")), diagonal=1)
    scores = q @ k.transpose(-1, -2)
    scores /= math.sqrt(DIM)
    scores = F.softmax(scores + mask, dim=-1, dtype=q.dtype)
    return (scores @ v).permute(0, 2, 1, 3).reshape(b, n, -1)


@spelling(of=[(BATCH, LENGTH, 2, 4, DIM)])
def falcon_of_groups(qkv):
    """Two queries, a key and a value in each group."""
    b, n, groups, _, d = qkv.shape
    q, k, v = qkv[:, :, :, :-2], qkv[:, :, :, [-2]], qkv[:, :, :, [-1]]
    k, v = torch.broadcast_to(k, q.shape), torch.broadcast_to(v, q.shape)
    q, k, v = (x.flatten(2, 3).transpose(1, 2).reshape(b, 4, n, d) for x in (q, k, v))
    s = torch.matmul(q, k.transpose(2, 3)) / math.sqrt(d)
    seen = torch.ones(n, n, dtype=torch.bool).tril()
    return torch.matmul(s.masked_fill(~seen, -1e9).softmax(-1), v)


@spelling((1, HEADS, 1, 32), TRIANGLE[0, 0], of=QKV)
def mpt_of_a_buffer(q, k, v, bias, seen):
    """A bias that is cut to the last keys."""
    n, m = q.shape[2], k.shape[2]
    weight = q.matmul(k.transpose(-1, -2)) * (1 / math.sqrt(DIM))
    first = max(0, bias.size(-1) - m)
    weight = weight + bias[:, :, :, first:]
    hidden = ~seen[-n:, -m:]
    weight = weight.masked_fill(hidden.view(1, 1, n, m), -1e30)
    return torch.softmax(weight, dim=-1).matmul(v)


@spelling((DIM,), (DIM,), (DIM,), (DIM,), of=QKV)
def persimmon(q, k, v, a, b, c, d):
    """Norms, and a rotation of half of each head."""
    q, k = F.layer_norm(q, (DIM,), a, b), F.layer_norm(k, (DIM,), c, d)
    cos, sin = angles(q.shape[2], DIM // 2)
    q, k = (torch.cat((rotated(x[..., :4], cos, sin), x[..., 4:]), dim=-1) for x in (q, k))
    mask = torch.full((q.shape[2], q.shape[2]), -math.inf).triu_(1)
    s = torch.matmul(q, k.transpose(2, 3)) / math.sqrt(DIM) + mask
    return torch.matmul(F.softmax(s, dtype=torch.float32, dim=-1).to(q.dtype), v)


@spelling((DIM,), (DIM,), of=GROUPED)
def rms_norms_of_heads(q, k, v, a, b):
    """Norms behind a rotation in complex numbers."""
    def norm(x, weight):
        x = x.float()
        return weight * (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6))
    q, k = norm(q, a), norm(k, b)
    cos, sin = angles(q.shape[2], DIM)
    q, k = rotated(q, cos, sin), rotated(k, cos, sin)
    q, k, v = q, repeated(k, 2), repeated(v, 2)
    s = torch.matmul(q, k.transpose(2, 3)) / math.sqrt(DIM)
    at = torch.arange(q.shape[2])
    mask = torch.zeros(q.shape[2], q.shape[2]).masked_fill(at[:, None] < at[None, :], torch.finfo(q.dtype).min)
    return torch.matmul(F.softmax(s + mask, dim=-1, dtype=torch.float32).to(q.dtype), v)


@spelling(of=GROUPED, raised=2)
def a_cap_and_windows_in_turn(q, k, v):
    def layer(q, window):
        n = q.shape[2]
        s = torch.matmul(q, repeated(k, 2).transpose(2, 3)) * 0.25
        s = torch.tanh(s / 3.0) * 3.0
        seen = torch.ones(n, n, dtype=torch.bool).tril()
        if window:
            seen = torch.logical_and(seen, torch.triu(torch.ones_like(seen), diagonal=-(window - 1)))
        mask = torch.zeros(n, n).masked_fill(seen.logical_not(), -2.3819763e38)
        return torch.matmul(F.softmax(s + mask, dim=-1), repeated(v, 2))
    return layer(layer(q, 4), None)


@spelling((16, 2 * HEADS * 16), of=LATENT)
def latent_keys(q, latent, rope, up):
    """Keys of 24 dimensions, 8 of which are rotated and shared by the heads; values of 16."""
    b, n, _ = q.shape
    q = q.view(b, n, HEADS, 24).transpose(1, 2)
    k, v = (latent @ up).view(b, n, HEADS, 32).transpose(1, 2).split([16, 16], dim=-1)
    cos, sin = angles(n, 8)
    shared = rotated(rope.transpose(1, 2), cos, sin)
    keys = k.new_empty(b, HEADS, n, 24)
    keys[:, :, :, :16] = k
    keys[:, :, :, 16:] = shared
    queries = torch.cat([q[..., :16], rotated(q[..., 16:], cos, sin)], dim=-1)
    s = torch.matmul(queries, keys.transpose(2, 3)) * 24**-0.5
    s = s + torch.full((n, n), -torch.inf).triu(1)
    return torch.matmul(F.softmax(s, dim=-1, dtype=torch.float32).to(q.dtype), v).transpose(1, 2).flatten(2)


@spelling((HEADS, 32, 16), of=LATENT)
def latent_keys_absorbed(q, latent, rope, up):
    """Two products are the scores, and the latent is the value of all heads."""
    b, n, _ = q.shape
    q = q.view(b, n, HEADS, 24)
    nope = torch.einsum("bshd,hdc->bshc", q[..., :16], up[:, :16])
    scores = (torch.einsum("bshc,btc->bsht", nope, latent)
              + torch.einsum("bshr,btr->bsht", q[..., 16:], rope[:, :, 0])) * 24**-0.5
    scores = scores + torch.full((n, n), float("-inf")).triu_(1).unsqueeze(1)
    scores = scores.softmax(dim=-1, dtype=torch.float32).type_as(q)
    x = torch.einsum("bsht,btc->bshc", scores, latent)
    return torch.einsum("bshc,hdc->bshd", x, up[:, 16:])


@spelling(of=[(LENGTH, BATCH, HEADS, DIM), (LENGTH, BATCH, 2, DIM), (LENGTH, BATCH, 2, DIM)])
def chatglm(q, k, v):
    """The length first, and a product that begins from an empty tensor."""
    n, b, h, d = q.shape
    k, v = (x.unsqueeze(-2).expand(-1, -1, -1, 2, -1).contiguous().view(n, b, h, d) for x in (k, v))
    q, k = q.view(n, b * h, d), k.view(n, b * h, d)
    start = torch.empty(b * h, n, n, dtype=q.dtype, device=q.device)
    s = torch.baddbmm(start, q.transpose(0, 1), k.transpose(0, 1).transpose(1, 2), beta=0.0, alpha=d**-0.5)
    s = s.view(b, h, n, n).float() * 1.5
    mask = torch.ones(b, 1, n, n, dtype=torch.bool)
    mask.tril_()
    s = s.masked_fill(~mask, float("-inf"))
    p = F.softmax(s, dim=-1).type_as(v).view(b * h, n, n)
    v = v.view(n, b * h, d)
    return torch.bmm(p, v.transpose(0, 1)).view(b, h, n, d).permute(2, 0, 1, 3).reshape(n, b, h * d)


@spelling(of=GROUPED)
def llama4_temperature(q, k, v):
    """Queries are scaled by what their position is; chunks."""
    n = q.shape[2]
    at = torch.arange(n)
    scale = torch.log1p(torch.floor((at.float() + 1.0) / 4.0)) * 0.1 + 1.0
    q = (q * scale.view(1, 1, n, 1)).to(q.dtype)
    seen = (at[None, :] <= at[:, None]) & (at[:, None] // 4 == at[None, :] // 4)
    s = torch.matmul(q, repeated(k, 2).transpose(2, 3)) * DIM**-0.5
    s = s + torch.where(seen, 0.0, torch.finfo(s.dtype).min)
    return torch.matmul(s.float().softmax(-1).to(q.dtype), repeated(v, 2))


@spelling((HEADS,), of=[(LENGTH, 2, 2, DIM), (LENGTH, 2, DIM), (LENGTH, 2, DIM)])
def sinks_in_a_column(q, k, v, s):
    """Without a batch; heads of queries two by two."""
    n = q.shape[0]
    k = k[:, :, None, :].expand(-1, -1, 2, -1)
    v = v[:, :, None, :].expand(-1, -1, 2, -1)
    s = s.reshape(2, 2, 1, 1).expand(-1, -1, n, -1)
    mask = torch.triu(q.new_full((n, n), -float("inf")), diagonal=1)
    mask += torch.tril(mask.new_full((n, n), -float("inf")), diagonal=-4)
    qk = torch.einsum("qhmd,khmd->hmqk", q, k)
    qk *= DIM**-0.5
    qk += mask[None, None, :, :]
    qk = torch.cat([qk, s], dim=-1)
    w = torch.softmax(qk, dim=-1)[..., :-1]
    return torch.einsum("hmqk,khmd->qhmd", w, v).reshape(n, -1)


@spelling(TRIANGLE.float(), of=[(BATCH, LENGTH, 3 * WIDTH)])
def mingpt(qkv, seen):
    b, n, c = qkv.shape
    q, k, v = qkv.split(WIDTH, dim=2)
    k, q, v = (x.view(b, n, HEADS, WIDTH // HEADS).transpose(1, 2) for x in (k, q, v))
    att = (q @ k.transpose(-2, -1)) * (1.0 / math.sqrt(k.size(-1)))
    att = att.masked_fill(seen[:, :, :n, :n] == 0, float("-inf"))
    y = F.dropout(F.softmax(att, dim=-1), 0.1, False) @ v
    return y.transpose(1, 2).contiguous().view(b, n, WIDTH)


@spelling(TRIANGLE, of=QKV)
def gpt2_of_layers(q, k, v, seen):
    """Scores are divided by the number of the layer, in several steps."""
    n, m = q.size(-2), k.size(-2)
    s = torch.matmul(q, k.transpose(-1, -2))
    s = s / torch.full([], v.size(-1) ** 0.5, dtype=s.dtype, device=s.device)
    s = s / float(2 + 1)
    mask = torch.full([], torch.finfo(s.dtype).min, dtype=s.dtype, device=s.device)
    s = torch.where(seen[:, :, m - n: m, :m], s.to(s.dtype), mask)
    return torch.matmul(nn.functional.softmax(s, dim=-1).type(v.dtype), v)


@spelling(of=[(LENGTH, HEADS, DIM), (LENGTH, HEADS, DIM), (LENGTH, HEADS, DIM)])
def no_batch(q, k, v):
    s = torch.einsum("ihd,jhd->hij", q, k) / math.sqrt(DIM)
    s = s - 1e9 * torch.triu(torch.ones(q.shape[0], q.shape[0]), 1)
    return torch.einsum("hij,jhd->ihd", s.softmax(-1), v)


@spelling((BATCH, HEADS, OTHER, DIM), (BATCH, HEADS, OTHER, DIM), of=QKV)
def keys_behind_a_cache(q, k, v, past_k, past_v):
    """The cache and the new keys, one after the other."""
    k, v = torch.cat((past_k, k), dim=-2), torch.cat((past_v, v), dim=-2)
    n, m = q.shape[2], k.shape[2]
    seen = torch.ones(n, m, dtype=torch.bool).tril(diagonal=m - n)
    s = (q @ k.mT) * DIM**-0.5
    return s.masked_fill(seen.logical_not(), -torch.inf).softmax(-1) @ v


@spelling(torch.zeros(BATCH, HEADS, 16, DIM), torch.zeros(BATCH, HEADS, 16, DIM), torch.arange(3, 3 + LENGTH), of=QKV)
def keys_written_into_a_cache(q, k, v, keys, values, at):
    """By position; what is not written yet is hidden."""
    keys, values = keys.index_copy(2, at, k), values.index_copy(2, at, v)
    seen = torch.arange(16)[None, :] <= at[:, None]
    s = (q @ keys.mT) * DIM**-0.5
    s = s + torch.where(seen, 0.0, -torch.inf)[None, None]
    return s.softmax(-1) @ values


@spelling(of=QKV, raised=0)
def retention(q, k, v):
    """A decay in the place of a softmax: nothing to raise."""
    at = torch.arange(q.shape[2])
    decay = torch.where(at[:, None] >= at, 0.9 ** (at[:, None] - at).clamp(min=0).float(), 0.0)
    return (q @ k.mT * DIM**-0.5 * decay) @ v


@spelling(of=QKV, reasons=("no product", "no product"))
def linear_attention(q, k, v):
    """Two softmaxes, one over the dimensions of a head and one over positions."""
    q, k = q.softmax(dim=-1) * DIM**-0.5, k.softmax(dim=-2)
    context = torch.einsum("bhnd,bhne->bhde", k, v)
    return torch.einsum("bhnd,bhde->bhne", q, context)
