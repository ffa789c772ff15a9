#===----------------------------------------------------------------------===#
#
# Part of attn, an attention compiler.
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===----------------------------------------------------------------------===#
"""Attention of encoders, and of decoders that see an encoder."""

import math

import torch
import torch.nn.functional as F
from torch import nn

from .table import BATCH, DIM, HEADS, LENGTH, OTHER, QKV, WIDTH, spelling

CROSS = [(BATCH, HEADS, LENGTH, DIM), (BATCH, HEADS, OTHER, DIM), (BATCH, HEADS, OTHER, DIM)]
SHOWN = torch.ones(BATCH, LENGTH)
SHOWN[1, 7:] = 0
THERE = torch.ones(BATCH, OTHER)
THERE[0, 5:] = 0


def folded(x):
    return x.reshape(x.shape[0] * x.shape[1], x.shape[2], x.shape[3])


@spelling(torch.randn(LENGTH, LENGTH), torch.randn(LENGTH, LENGTH), SHOWN)
def bert_of_relative_keys(q, k, v, unused, unused_too, shown):
    scores = torch.matmul(q, k.transpose(-1, -2))
    scores = scores / math.sqrt(DIM)
    lowest = torch.finfo(scores.dtype).min
    extended = (1.0 - shown[:, None, None, :].to(dtype=scores.dtype)) * lowest
    scores = scores + extended
    probs = nn.functional.softmax(scores, dim=-1)
    context = torch.matmul(probs, v)
    context = context.permute(0, 2, 1, 3).contiguous()
    return context.view(context.size()[:-2] + (WIDTH,))


@spelling((63, DIM), of=QKV)
def relative_keys_and_queries(q, k, v, table):
    """Biases that queries and keys make with embeddings of distances."""
    n, m = q.shape[2], k.shape[2]
    left = torch.arange(n, dtype=torch.long).view(-1, 1)
    right = torch.arange(m, dtype=torch.long).view(1, -1)
    embedding = F.embedding(left - right + 31, table).to(dtype=q.dtype)
    scores = torch.matmul(q, k.transpose(-1, -2))
    scores = scores + torch.einsum("bhld,lrd->bhlr", q, embedding) + torch.einsum("bhrd,lrd->bhlr", k, embedding)
    return torch.matmul(F.softmax(scores / math.sqrt(DIM), dim=-1), v)


def buckets(distance, count=8, furthest=16):
    result = (distance > 0).to(torch.long) * (count // 2)
    away, exact = torch.abs(distance), count // 4
    large = exact + (torch.log(away.float() / exact) / math.log(furthest / exact) * (count // 2 - exact)).to(torch.long)
    large = torch.min(large, torch.full_like(large, count // 2 - 1))
    return result + torch.where(away < exact, away, large)


@spelling((8, HEADS), SHOWN, raised=2)
def t5_of_shared_biases(q, k, v, table, shown):
    """Buckets by logarithms, computed once for two layers."""
    n = q.shape[2]
    at = torch.arange(n, dtype=torch.long)
    bias = F.embedding(buckets(at[None, :] - at[:, None]), table).permute([2, 0, 1]).unsqueeze(0)
    bias = bias + (1.0 - shown[:, None, None, :]) * torch.finfo(q.dtype).min
    for _ in range(2):
        scores = torch.matmul(q, k.transpose(3, 2))
        scores += bias
        q = torch.matmul(F.softmax(scores.float(), dim=-1).type_as(scores), v)
    return q


@spelling((HEADS, 1, 1), THERE, of=CROSS)
def bart_cross_attention(q, k, v, gate, there):
    b, h, n, d = q.shape
    m = k.shape[2]
    mask = (1.0 - there[:, None, None, :]).expand(b, 1, n, m)
    mask = mask.masked_fill(mask.bool(), torch.finfo(q.dtype).min)
    q, k, v = folded(q * d**-0.5), folded(k), folded(v)
    weights = torch.bmm(q, k.transpose(1, 2))
    weights = weights.view(b, h, n, m) + mask
    weights = F.softmax(weights.view(b * h, n, m), dim=-1)
    out = torch.bmm(F.dropout(weights, p=0.0, training=True), v)
    return out.view(b, h, n, d) * gate


@spelling(of=[(BATCH, LENGTH, WIDTH), (BATCH, LENGTH, WIDTH), (BATCH, LENGTH, WIDTH)])
def whisper(q, k, v):
    """Queries and keys scaled by the fourth root each."""
    b, n, _ = q.shape
    scale = (WIDTH // HEADS) ** -0.25
    q = q.view(b, n, HEADS, -1).permute(0, 2, 1, 3) * scale
    k = k.view(b, n, HEADS, -1).permute(0, 2, 3, 1) * scale
    v = v.view(b, n, HEADS, -1).permute(0, 2, 1, 3)
    mask = torch.empty(n, n).fill_(-torch.inf).triu_(1)
    qk = q @ k
    qk = qk + mask[:n, :n]
    qk = qk.float()
    w = F.softmax(qk, dim=-1).to(q.dtype)
    return (w @ v).permute(0, 2, 1, 3).flatten(start_dim=2)


def shifted(x):
    """Relative to absolute positions, through a padding."""
    b, h, n, m = x.size()
    x = torch.cat([torch.zeros(b, h, n, 1, dtype=x.dtype), x], dim=-1)
    return x.view(b, h, m + 1, n)[:, :, 1:].view(b, h, n, m)[:, :, :, : m // 2 + 1]


@spelling((1, HEADS, 2 * LENGTH - 1, DIM), (HEADS, DIM), (HEADS, DIM), SHOWN)
def conformer(q, k, v, positions, u, w, shown):
    """The relative shift of Transformer-XL."""
    n = q.shape[2]
    with_u = (q.transpose(1, 2) + u).transpose(1, 2)
    with_w = (q.transpose(1, 2) + w).transpose(1, 2)
    ac = torch.matmul(with_u, k.transpose(-2, -1))
    bd = shifted(torch.matmul(with_w, positions.transpose(-2, -1)))
    scores = (ac + bd) / math.sqrt(DIM)
    hidden = shown[:, None, None, :].eq(0)
    scores = scores.masked_fill(hidden, torch.finfo(scores.dtype).min)
    return torch.matmul(torch.softmax(scores, dim=-1).masked_fill(hidden, 0.0), v)


@spelling((2 * LENGTH, HEADS, DIM), (HEADS, DIM), (HEADS, DIM), of=[(LENGTH, BATCH, HEADS, DIM)] * 3)
def transformer_xl(q, k, v, positions, u, w):
    """Lengths first, heads last; the shift by views of what is padded."""
    n, m = q.shape[0], k.shape[0]
    ac = torch.einsum("ibnd,jbnd->ijbn", q + u, k)
    bd = torch.einsum("ibnd,jnd->ijbn", q + w, positions[:m])
    padded = torch.cat([torch.zeros((n, 1, *bd.shape[2:])), bd], dim=1)
    bd = padded.view(m + 1, n, *bd.shape[2:])[1:].view_as(bd)
    score = (ac + bd) * (1 / DIM**0.5)
    hidden = torch.triu(torch.ones(n, m), diagonal=1 + m - n).bool()
    score = score.float().masked_fill(hidden[:, :, None, None], -1e30).type_as(score)
    return torch.einsum("ijbn,jbnd->ibnd", F.softmax(score, dim=1), v)


@spelling((2 * LENGTH, HEADS, DIM), (2 * LENGTH, HEADS, DIM), SHOWN)
def deberta(q, k, v, position_keys, position_queries, shown):
    """From contents to positions and back, gathered by distance; hidden weights are 0."""
    b, h, n, d = q.shape
    scale = math.sqrt(d * 3)
    q, k, v = folded(q), folded(k), folded(v)
    scores = torch.bmm(q, k.transpose(-1, -2) / scale)
    at = torch.arange(n)
    distance = at[:, None] - at[None, :]
    pk = position_keys.permute(1, 0, 2).repeat(b, 1, 1)
    c2p = torch.bmm(q, pk.transpose(-1, -2))
    index = torch.clamp(distance + LENGTH, 0, 2 * LENGTH - 1)
    scores = scores + torch.gather(c2p, dim=-1, index=index.unsqueeze(0).expand(b * h, n, n)) / scale
    pq = position_queries.permute(1, 0, 2).repeat(b, 1, 1)
    p2c = torch.bmm(k, pq.transpose(-1, -2))
    index = torch.clamp(-distance + LENGTH, 0, 2 * LENGTH - 1)
    p2c = torch.gather(p2c, dim=-1, index=index.unsqueeze(0).expand(b * h, n, n)).transpose(-1, -2)
    scores = (scores + p2c / scale).view(-1, h, n, n)
    both = shown[:, None, None, :] * shown[:, None, :, None]
    hidden = ~both.to(torch.bool)
    scores = scores.masked_fill(hidden, torch.finfo(scores.dtype).min)
    weights = torch.softmax(scores, -1)
    return torch.bmm(weights.view(-1, n, n), v).view(b, h, n, d)


@spelling(of=[(BATCH, 8, HEADS, DIM)] * 3, reasons="read by sum")
def sliding_chunks(q, k, v):
    """Overlapping chunks, whose diagonals become rows of a band: scores are not a product."""
    b, n, h, d = q.shape
    w = 2

    def chunks(x):
        x = x.transpose(1, 2).reshape(b * h, n // (2 * w), 2 * w, d)
        size, stride = list(x.size()), list(x.stride())
        size[1], stride[1] = size[1] * 2 - 1, stride[1] // 2
        return x.reshape(b * h, -1).as_strided(size, stride)
    band = torch.einsum("bcxd,bcyd->bcxy", chunks(q), chunks(k))
    band = F.pad(band, (0, 0, 0, 1)).view(*band.shape[:-2], band.shape[-1], band.shape[-2] + 1)[..., : 2 * w + 1]
    weights = F.softmax(band.float(), -1)
    return weights.sum(1) @ v.transpose(1, 2).reshape(b * h, n, d)[:, : 2 * w + 1]


@spelling(of=[(BATCH, HEADS, 12, DIM)] * 3)
def blocks_with_neighbours(q, k, v):
    """Each block of queries sees three of keys, rolled beside each other."""
    b, h, n, d = q.shape
    q, k, v = (x.view(b, h, n // 4, 4, d) for x in (q, k, v))
    keys, values = (torch.cat([x.roll(1, 2), x, x.roll(-1, 2)], dim=3) for x in (k, v))
    band = torch.einsum("bhlqd,bhlkd->bhlqk", q, keys) * d**-0.5
    seen = torch.ones(3, 12, dtype=torch.bool)
    seen[0, :4] = False
    seen[-1, 8:] = False
    band = band + (1.0 - seen[None, None, :, None, :].float()) * -10000.0
    return torch.einsum("bhlqk,bhlkd->bhlqd", F.softmax(band, dim=-1), values).reshape(b, h, n, d)


@spelling(torch.randint(0, 4, (BATCH, HEADS, LENGTH)), of=[(BATCH, HEADS, LENGTH, DIM)] * 2)
def hashed_buckets(qk, v, bucket):
    """Queries that are their keys, which see those of their bucket."""
    k = F.normalize(qk, p=2, dim=-1)
    dots = torch.einsum("bhie,bhje->bhij", qk, k) * DIM**-0.5
    own = torch.eye(qk.shape[2], dtype=torch.bool)
    dots.masked_fill_(own, -5e4)
    other = bucket[:, :, :, None] != bucket[:, :, None, :]
    dots.masked_fill_(other, torch.finfo(dots.dtype).min)
    logsumexp = torch.logsumexp(dots, dim=-1, keepdim=True)
    return torch.einsum("bhij,bhje->bhie", torch.exp(dots - logsumexp).type_as(dots), v)


@spelling((1, 5, WIDTH), of=[(BATCH, LENGTH, WIDTH), (BATCH, LENGTH, 2 * WIDTH)])
def few_latents(x, kv, latents):
    """Queries that are parameters."""
    b = x.shape[0]
    q = latents.expand(b, -1, -1).reshape(b, 5, HEADS, DIM).permute(0, 2, 1, 3)
    k, v = (part.view(b, -1, HEADS, DIM).permute(0, 2, 1, 3) for part in kv.chunk(2, dim=-1))
    sim = torch.einsum("bhid,bhjd->bhij", q * DIM**-0.5, k)
    sim = sim - sim.amax(dim=-1, keepdim=True).detach()
    return torch.einsum("bhij,bhjd->bhid", sim.softmax(dim=-1), v).transpose(1, 2).flatten(2)


@spelling(torch.tensor([[False, True] + [False] * 4 + [True] + [False] * (LENGTH - 7)] * BATCH), (1,), of=[
    (BATCH, HEADS, LENGTH, DIM), (BATCH, HEADS, 2 * OTHER, DIM), (BATCH, HEADS, 2 * OTHER, DIM)])
def texts_that_see_their_last_image(q, k, v, media, alpha):
    """By how many images came before; rows without one are 0; a gate of tanh."""
    q = q * DIM**-0.5
    sim = torch.einsum("...id,...jd->...ij", q, k)
    text_time = media.cumsum(dim=-1)
    media_time = torch.arange(2) + 1
    seen = torch.eq(text_time[:, None, :, None], media_time.repeat_interleave(OTHER)[None, None, None, :])
    sim = sim.masked_fill(~seen, -torch.finfo(sim.dtype).max)
    sim = sim - sim.amax(dim=-1, keepdim=True).detach()
    attn = sim.softmax(dim=-1)
    without = (text_time == 0)[:, None, :, None]
    attn = attn.masked_fill(without, 0.0)
    return torch.einsum("...ij,...jd->...id", attn, v) * alpha.tanh()


@spelling(torch.rand(BATCH, LENGTH) > 0.2)
def esm(q, k, v, shown):
    """Scaled before a rotation, hidden keys by a filled mask."""
    q = q * DIM**-0.5
    t = torch.arange(q.shape[2]).type_as(torch.ones(1))
    freqs = torch.einsum("i,j->ij", t, 1.0 / (10000 ** (torch.arange(0, DIM, 2).float() / DIM)))
    emb = torch.cat((freqs, freqs), dim=-1)
    cos, sin = emb.cos()[None, None, :, :], emb.sin()[None, None, :, :]

    def turned(x):
        a, b = x.chunk(2, dim=-1)
        return (x * cos) + (torch.cat((-b, a), dim=-1) * sin)
    scores = torch.matmul(turned(q), turned(k).transpose(-1, -2))
    scores = scores + torch.zeros(shown.shape)[:, None, None].masked_fill(~shown[:, None, None, :], -3.4e38)
    return torch.matmul(F.softmax(scores, dim=-1), v)


@spelling(of=QKV)
def sparse_queries_by_their_scores(q, k, v):
    """Which queries attend is chosen by data; the others have a mean."""
    scores = q @ k.mT
    top = (scores.amax(-1) - scores.mean(-1)).topk(4, sorted=False)[1]
    chosen = q.gather(2, top[..., None].expand(-1, -1, -1, DIM))
    own = torch.softmax(chosen @ k.mT * DIM**-0.5, dim=-1) @ v
    context = v.mean(dim=-2, keepdim=True).expand(*v.shape).clone()
    return context.scatter(2, top[..., None].expand(-1, -1, -1, DIM), own)


@spelling(of=[(BATCH, HEADS, 12, DIM)] * 3, raised=2, reasons="read by cumsum")
def landmarks(q, k, v):
    """Three softmaxes, with what stands for an inverse between them."""
    b, h, n, d = q.shape
    ql, kl = (x.reshape(b, h, 4, 3, d).mean(-2) for x in (q, k))
    first = F.softmax(q @ kl.mT * 0.3, -1)
    second = F.softmax(ql @ kl.mT * 0.3, -1)
    third = F.softmax(ql @ k.mT * 0.3, -1)
    return first @ second.cumsum(-1) @ (third @ v)


@spelling(SHOWN, of=[(BATCH, LENGTH, HEADS, DIM)] * 3)
def one_padded_block_that_sees_neighbours(q, k, v, shown):
    """All of it is one block here, which is a guard of the graph where lengths are unknown."""
    n, size = q.shape[1], 16

    def blocks(x):
        x = F.pad(x, [0, 0] * (x.dim() - 2) + [0, -n % size])
        return x.reshape(x.shape[0], x.shape[1] // size, size, *x.shape[2:])

    def beside(x):
        x = F.pad(x, [0, 0] * (x.dim() - 2) + [1, 1])
        count = x.shape[1] - 2
        return torch.cat([x[:, at:at + count] for at in range(3)], dim=2)

    own, others = blocks(shown), beside(blocks(shown))
    at = torch.arange(3 * size)
    near = (at[None, :] - at[size:-size, None]).abs() < size
    seen = torch.logical_and(torch.logical_and(own[..., None] > 0.5, others[:, :, None, :] > 0.5), near)
    penalty = torch.where(seen.unsqueeze(1), 0.0, -1e10).transpose(1, 2)
    scores = torch.einsum("...qhd,...khd->...hqk", blocks(q), beside(blocks(k)))
    scores += penalty
    out = torch.einsum("...hqk,...khd->...qhd", F.softmax(scores, dim=-1), beside(blocks(v)))
    return out.reshape(out.shape[0], -1, HEADS, DIM)[:, :n]


@spelling(torch.randn(4, 2, 2))
def padded_block_of_an_unknown_length(q, k, v, table):
    """Three blocks, whose size is that of a table: a guard of the graph where lengths are
    unknown."""
    b, h, n, d = q.shape
    size = (n + -n % 4) // 3
    q, k, v = (F.pad(x, (0, 0, 0, -n % 4)).reshape(b, h, 3, size, d) for x in (q, k, v))
    scores = (q @ k.mT * 0.3).reshape(b, h, 3, size, 2, 2) + table
    return (scores.reshape(b, h, 3, size, size).softmax(-1) @ v).reshape(b, h, -1, d)[:, :, :n]
