#===----------------------------------------------------------------------===#
#
# Part of attn, an attention compiler.
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===----------------------------------------------------------------------===#
"""Attention of pairs, graphs, diffusion and recommendation: two biases, gates, heads in
the batch."""

import math

import torch
import torch.nn.functional as F

from .table import BATCH, DIM, HEADS, LENGTH, OTHER, QKV, WIDTH, spelling

FIVE = [(BATCH, 5, LENGTH, HEADS, DIM)] * 3


@spelling((BATCH, 1, HEADS, LENGTH, LENGTH), (BATCH, 5, LENGTH, WIDTH), torch.rand(BATCH, 5, 1, 1, LENGTH) > 0.2, of=FIVE)
def evoformer_of_rows(q, k, v, pairs, gate, shown):
    """Rows of an alignment: a bias of pairs, a mask by row, and a gate."""
    bias = 1e9 * (shown.to(q.dtype) - 1)
    q, k, v = (x.transpose(-2, -3) for x in (q * DIM**-0.5, k, v))
    a = torch.matmul(q, k.permute(0, 1, 2, 4, 3))
    a += bias
    a += pairs
    a = F.softmax(a, -1)
    o = torch.matmul(a, v).transpose(-2, -3)
    o = o * torch.sigmoid(gate).view(gate.shape[:-1] + (HEADS, -1))
    return o.reshape(o.shape[:-2] + (WIDTH,))


@spelling((BATCH, LENGTH, LENGTH, HEADS), torch.rand(BATCH, LENGTH, LENGTH) > 0.2, of=[(BATCH, LENGTH, LENGTH, WIDTH)] * 3)
def triangle_around_a_node(q, k, v, bias, shown):
    """Each row of pairs attends along itself; its bias is of the third edge."""
    b, n, m, _ = q.shape
    q, k, v = (x.reshape(b, n, m, HEADS, DIM).permute(0, 1, 3, 2, 4) for x in (q, k, v))
    logits = torch.einsum("bihqc,bihkc->bihqk", q, k) / math.sqrt(DIM)
    logits = logits + bias.permute(0, 3, 1, 2)[:, None] + torch.where(shown, 0.0, -1e9)[:, :, None, None, :]
    return torch.einsum("bihqk,bihkc->biqhc", logits.softmax(-1), v).flatten(3)


@spelling(of=[(BATCH, 64, WIDTH), (BATCH, OTHER, WIDTH), (BATCH, OTHER, WIDTH)])
def stable_diffusion(q, k, v):
    """Heads go into the batch and come back."""
    def to_batch(x):
        b, n, c = x.shape
        return x.reshape(b, n, HEADS, c // HEADS).permute(0, 2, 1, 3).reshape(b * HEADS, n, c // HEADS)
    q, k, v = to_batch(q), to_batch(k), to_batch(v)
    scores = torch.baddbmm(
        torch.empty(q.shape[0], q.shape[1], k.shape[1], dtype=q.dtype), q, k.transpose(-1, -2), beta=0,
        alpha=DIM**-0.5)
    probs = scores.float().softmax(dim=-1).to(v.dtype)
    out = torch.bmm(probs, v)
    b, n, d = out.shape
    return out.reshape(b // HEADS, HEADS, n, d).permute(0, 2, 1, 3).reshape(b // HEADS, n, d * HEADS)


@spelling(torch.rand(BATCH, OTHER) > 0.3, of=[(BATCH, LENGTH, WIDTH), (BATCH, OTHER, WIDTH), (BATCH, OTHER, WIDTH)])
def latent_diffusion_with_a_mask(q, k, v, mask):
    """The mask is repeated for the heads in the batch."""
    b = q.shape[0]
    q, k, v = (x.view(b, -1, HEADS, DIM).permute(0, 2, 1, 3).flatten(0, 1) for x in (q, k, v))
    sim = torch.einsum("b i d, b j d -> b i j", q, k) * DIM**-0.5
    lowest = -torch.finfo(sim.dtype).max
    mask = mask.reshape(b, -1)[:, None].expand(b, HEADS, -1).reshape(b * HEADS, -1).unsqueeze(1)
    sim.masked_fill_(~mask, lowest)
    out = torch.einsum("b i j, b j d -> b i d", sim.softmax(dim=-1), v)
    return out.view(b, HEADS, -1, DIM).permute(0, 2, 1, 3).flatten(2)


@spelling((HEADS, DIM, 4), (HEADS, DIM, 4), of=QKV)
def image_and_memory_keys(q, k, v, memory_k, memory_v):
    """Keys and values that are parameters, before the others."""
    b = q.shape[0]
    keys, values = (x.permute(0, 2, 1)[None].expand(b, -1, -1, -1) for x in (memory_k, memory_v))
    k, v = torch.cat((keys, k), dim=2), torch.cat((values, v), dim=2)
    return ((q @ k.mT) * DIM**-0.5).softmax(-1) @ v


@spelling((16, HEADS), torch.randint(0, 16, (BATCH, LENGTH, LENGTH)), (BATCH, LENGTH, LENGTH, HEADS), of=QKV)
def graphormer(q, k, v, table, distance, edges):
    bias = F.embedding(distance, table).permute(0, 3, 1, 2)
    a = torch.matmul(q * DIM**-0.5, k.transpose(2, 3))
    a = a + bias + edges.permute(0, 3, 1, 2)
    hidden = distance.eq(0).unsqueeze(1)
    hidden = hidden & ~torch.eye(q.shape[2], dtype=torch.bool)
    a = a.masked_fill(hidden.to(torch.bool), float("-inf"))
    return F.softmax(a, dim=-1).matmul(v)


@spelling((BATCH, HEADS, LENGTH), (BATCH, HEADS, LENGTH), torch.rand(LENGTH, LENGTH) > 0.6, of=[(BATCH, HEADS, LENGTH, DIM)], reasons="no product")
def graph_attention(x, source, target, edges):
    """Scores that are sums of what rows and columns have."""
    e = F.leaky_relu(source.unsqueeze(-1) + target.unsqueeze(-2), 0.2)
    e = torch.where(edges | torch.eye(x.shape[2], dtype=torch.bool), e, -9e15 * torch.ones_like(e))
    return F.softmax(e, dim=-1) @ x


@spelling((BATCH, HEADS, LENGTH, LENGTH), torch.randint(0, 2, (BATCH, LENGTH, LENGTH)), of=QKV)
def scores_times_adjacency(q, k, v, weight, adjacency):
    """Edges multiply the scores, and those that are missing hide them."""
    s = torch.matmul(q, k.transpose(-2, -1)) / math.sqrt(DIM)
    adjacency = adjacency.unsqueeze(1).float()
    s = s * weight
    s = s * adjacency + (1 - adjacency) * -1e9
    return F.softmax(s, -1) @ v


@spelling((LENGTH, LENGTH, HEADS), of=[(LENGTH, HEADS, DIM)] * 3)
def pair_bias_with_heads_last(q, k, v, bias):
    s = torch.einsum("ihd,jhd->ijh", q, k) * DIM**-0.5 + bias
    return torch.einsum("ijh,jhd->ihd", torch.softmax(s, dim=1), v)


@spelling((HEADS,), (BATCH, LENGTH, HEADS, 4, 3), (BATCH, LENGTH, HEADS, 4, 3), of=QKV)
def invariant_points(q, k, v, weight, q_points, k_points):
    """Distances of points, summed beside the product."""
    s = torch.matmul(q, k.transpose(-1, -2)) * math.sqrt(1.0 / (3 * DIM))
    away = ((q_points.unsqueeze(-4) - k_points.unsqueeze(-5)) ** 2).sum(-1)
    own = F.softplus(weight).view(1, 1, 1, HEADS, 1) * math.sqrt(1.0 / (3 * (4 * 9.0 / 2)))
    s = s + (torch.sum(away * own, dim=-1) * -0.5).permute(0, 3, 1, 2)
    return torch.softmax(s, -1) @ v


@spelling((BATCH, LENGTH), of=QKV)
def recency_of_events(q, k, v, times):
    """A bias by the logarithm of the time between, a mask by which came first."""
    between = (times[:, :, None] - times[:, None, :]).abs()
    s = q @ k.mT * DIM**-0.5 - torch.log1p(between)[:, None]
    later = times[:, None, :] > times[:, :, None]
    return s.masked_fill(later[:, None], -1e9).softmax(-1) @ v


@spelling(torch.randint(0, 3, (BATCH, LENGTH)), of=QKV)
def set_transformer_of_segments(q, k, v, segment):
    """Scores divided by the root of the whole width; sets of several sizes in a row."""
    same = segment[:, None, :, None] == segment[:, None, None, :]
    a = torch.where(same, q @ k.mT / math.sqrt(WIDTH), torch.full((), -torch.inf))
    return q + torch.softmax(a, 3) @ v


@spelling(torch.tensor([[4, 2, 9], [1, 0, 3], [5, 8, 7]]), of=[(BATCH, HEADS, 3, DIM), (BATCH, HEADS, LENGTH, DIM), (BATCH, HEADS, LENGTH, DIM)])
def few_queries_with_their_own_windows(q, k, v, centre):
    """Where a query looks is data."""
    at = torch.arange(k.shape[2])
    near = (at - centre.unsqueeze(-1)).abs() <= 2
    bias = -0.5 * (at - centre.unsqueeze(-1)).float() ** 2 / 4.0
    s = (q @ k.mT) / DIM**0.5 + bias[:, None]
    return s.masked_fill(~near[:, None], torch.finfo(s.dtype).min).softmax(-1) @ v


@spelling(of=[(BATCH, LENGTH, 4, WIDTH)] * 3)
def blocks_of_an_unknown_number(q, k, v):
    """Batch and number of blocks are one batch."""
    q, k, v = (x.view(x.shape[0], x.shape[1], 4, HEADS, DIM) for x in (q, k, v))
    scores = torch.einsum("...qhd,...khd->...hqk", q, k)
    return torch.einsum("...hqk,...khd->...qhd", scores.softmax(-1), v).flatten(3)
