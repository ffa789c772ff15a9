#===----------------------------------------------------------------------===#
#
# Part of attn, an attention compiler.
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===----------------------------------------------------------------------===#
"""Softmaxes that are written out, guarded or scaled, and products in all orders."""

import math

import torch
import torch.nn.functional as F

from .table import BATCH, DIM, HEADS, LENGTH, OTHER, QKV, WIDTH, spelling

LAST = [(BATCH, LENGTH, HEADS, DIM)] * 3


@spelling()
def exponentials_and_their_sum(q, k, v):
    s = torch.matmul(q, k.transpose(-2, -1)) * 0.3
    e = torch.exp(s)
    return (e / e.sum(dim=-1, keepdim=True)) @ v


@spelling()
def written_out_with_the_largest(q, k, v):
    s = torch.matmul(q, k.transpose(-2, -1)) * 0.3
    s = s - s.max(dim=-1, keepdim=True)[0]
    e = s.exp()
    return torch.matmul(e / torch.sum(e, dim=-1, keepdim=True), v)


@spelling()
def written_out_with_the_largest_of_all(q, k, v):
    s = torch.matmul(q, k.transpose(-2, -1)) * 0.3
    e = (s - s.max().detach()).exp()
    return torch.matmul(e / e.sum(-1, keepdim=True), v)


@spelling()
def stabilised_by_a_constant_of_the_row(q, k, v):
    """Division before a cap, as halves want it."""
    s = (q / 32) @ k.transpose(-1, -2) * DIM**-0.5
    s = (s - s.amax(dim=-1, keepdim=True)) * 32
    return s.softmax(-1) @ v


@spelling()
def written_out_by_logarithms(q, k, v):
    s = q @ k.mT * 0.3
    return torch.exp(s - torch.logsumexp(s, dim=-1, keepdim=True)) @ v


@spelling()
def exponential_of_a_log_softmax(q, k, v):
    return F.log_softmax(q @ k.mT * 0.3, dim=-1).exp() @ v


@spelling()
def divided_behind_the_product(q, k, v):
    """The sum comes last."""
    s = q @ k.mT * 0.3
    e = torch.exp(s - s.amax(-1, keepdim=True))
    return (e @ v) / e.sum(-1, keepdim=True)


@spelling()
def softmax_plus_one(q, k, v):
    """A denominator with a 1: a logit of 0 that nobody reads."""
    s = q @ k.mT * 0.3
    e = torch.exp(s)
    return (e / (1 + e.sum(-1, keepdim=True))) @ v


@spelling()
def softmax_plus_one_stabilised(q, k, v):
    s = q @ k.mT * 0.3
    top = s.amax(-1, keepdim=True).clamp(min=0)
    e = torch.exp(s - top)
    return (e / (torch.exp(-top) + e.sum(-1, keepdim=True))) @ v


@spelling()
def a_column_of_zeros(q, k, v):
    s = F.pad(q @ k.mT * 0.3, (0, 1))
    return s.softmax(-1)[..., :-1] @ v


@spelling()
def a_key_of_zeros(q, k, v):
    """As nn.MultiheadAttention adds it."""
    k, v = (torch.cat([x, x.new_zeros(x.shape[0], HEADS, 1, DIM)], dim=2) for x in (k, v))
    return (q @ k.mT * 0.3).softmax(-1) @ v


@spelling((HEADS, 1, 1))
def learned_scale_of_heads(q, k, v, scale):
    return torch.softmax((q @ k.mT) * scale, dim=-1) @ v


@spelling(())
def learned_temperature(q, k, v, temperature):
    return torch.softmax((q @ k.mT) / temperature.exp(), dim=-1) @ v


@spelling(())
def cosine(q, k, v, scale):
    q, k = F.normalize(q, dim=-1, p=2), F.normalize(k, dim=-1, p=2)
    return torch.softmax(torch.einsum("bhid,bhjd->bhij", q, k) * scale.exp().clamp(max=100.0), dim=-1) @ v


@spelling()
def keys_are_scaled(q, k, v):
    k = k * (1.0 / math.sqrt(math.sqrt(DIM)))
    q = q.div(DIM**0.25)
    return torch.matmul(F.softmax(torch.matmul(q, k.permute(0, 1, 3, 2)), -1), v)


@spelling()
def root_of_a_tensor(q, k, v):
    d = torch.tensor(k.size(-1), dtype=q.dtype)
    return F.softmax(torch.matmul(q, k.transpose(-1, -2)) / torch.sqrt(d), dim=-1) @ v


@spelling((BATCH, HEADS, LENGTH, LENGTH))
def previous_scores_are_added(q, k, v, before):
    """Residual attention."""
    s = q @ k.mT * 0.3 + before
    return s.softmax(-1) @ v


@spelling(of=LAST)
def heads_behind_lengths(q, k, v):
    a = torch.einsum("bqhd,bkhd->bhqk", q, k) / DIM**0.5
    return torch.einsum("bhql,blhd->bqhd", torch.softmax(a, dim=-1), v)


@spelling(of=LAST)
def heads_behind_all(q, k, v):
    energy = torch.einsum("nqhd,nkhd->nhqk", [q, k])
    attention = torch.softmax(energy / (WIDTH ** (1 / 2)), dim=3)
    return torch.einsum("nhql,nlhd->nqhd", [attention, v]).reshape(q.shape[0], -1, WIDTH)


@spelling(of=LAST)
def dots_of_any_batch(q, k, v):
    q, k, v = (x.transpose(1, 2) for x in (q, k, v))
    a = torch.einsum("...qd,...kd->...qk", q, k) * 0.3
    return torch.einsum("...qk,...kd->...qd", a.softmax(-1), v)


@spelling(of=[(BATCH, HEADS, LENGTH, DIM), (BATCH, HEADS, DIM, LENGTH), (BATCH, HEADS, DIM, LENGTH)])
def keys_are_columns(q, k, v):
    return torch.matmul(torch.softmax(torch.matmul(q, k) * 0.3, dim=-1), v.transpose(-1, -2))


@spelling()
def keys_times_queries(q, k, v):
    """Everything transposed."""
    s = torch.matmul(k, q.transpose(-1, -2)) * 0.3
    return torch.matmul(v.transpose(-1, -2), F.softmax(s, dim=-2)).transpose(-1, -2)


@spelling()
def weights_are_transposed(q, k, v):
    s = torch.matmul(k, q.transpose(-1, -2)) * 0.3
    return torch.matmul(F.softmax(s, dim=-2).transpose(-1, -2), v)


@spelling(of=[(BATCH, LENGTH, WIDTH)] * 3)
def heads_by_chunks(q, k, v):
    """Heads lie one behind another in the batch."""
    q, k, v = (torch.cat(torch.split(x, DIM, dim=2), dim=0) for x in (q, k, v))
    weights = F.softmax(torch.bmm(q, k.transpose(1, 2)) / DIM**0.5, dim=2)
    return torch.cat(torch.split(torch.bmm(weights, v), q.shape[0] // HEADS, dim=0), dim=2)


@spelling(of=[(BATCH, LENGTH, WIDTH)] * 3, raised=HEADS)
def heads_in_a_loop(q, k, v):
    outs = []
    for n in range(HEADS):
        a, b, c = (x[..., n * DIM: (n + 1) * DIM] for x in (q, k, v))
        outs.append(torch.softmax(a @ b.transpose(1, 2) / DIM**0.5, -1) @ c)
    return torch.cat(outs, -1)


@spelling(of=[(LENGTH, BATCH, WIDTH)] * 3)
def heads_of_fairseq(q, k, v):
    n, b, _ = q.shape
    q, k, v = (x.contiguous().view(-1, b * HEADS, DIM).transpose(0, 1) for x in (q * DIM**-0.5, k, v))
    weights = torch.bmm(q, k.transpose(1, 2))
    weights = weights.view(b, HEADS, n, n)
    weights = weights.masked_fill(torch.zeros(b, 1, 1, n, dtype=torch.bool), float("-inf"))
    probs = F.softmax(weights.view(b * HEADS, n, n), dim=-1, dtype=torch.float32)
    return torch.bmm(probs.type_as(weights), v).transpose(0, 1).contiguous().view(n, b, WIDTH)


@spelling(of=[(BATCH, LENGTH, DIM), (BATCH, OTHER, DIM), (BATCH, OTHER, 16)])
def no_heads(q, k, v):
    return torch.bmm(torch.softmax(torch.bmm(q, k.transpose(1, 2)) / 3.0, 2), v)


@spelling(of=[(LENGTH, DIM), (OTHER, DIM), (OTHER, DIM)])
def no_batch_and_no_heads(q, k, v):
    return torch.mm(F.softmax(torch.mm(q, k.t()), dim=1), v)


@spelling(of=[(BATCH, DIM), (BATCH, LENGTH, DIM)])
def one_query_without_a_dimension(q, memory):
    """Dot-product attention of sequence to sequence."""
    s = torch.bmm(memory, q.unsqueeze(2)).squeeze(2)
    return torch.bmm(F.softmax(s, dim=1).unsqueeze(1), memory).squeeze(1)


@spelling(of=[(BATCH, LENGTH, WIDTH), (BATCH, OTHER, WIDTH), (WIDTH, WIDTH)])
def bilinear_scores(q, memory, weight):
    s = torch.matmul(torch.matmul(q, weight), memory.transpose(1, 2))
    return torch.matmul(F.softmax(s, dim=-1), memory)


@spelling(of=[(BATCH, HEADS, LENGTH, DIM)] * 3, reasons="read by sum")
def written_with_sums_of_products(q, k, v):
    """No product at all."""
    s = (q.unsqueeze(-2) * k.unsqueeze(-3)).sum(-1) * 0.3
    return (s.softmax(-1).unsqueeze(-1) * v.unsqueeze(-3)).sum(-2)


@spelling(of=[(BATCH, HEADS, LENGTH, DIM)] * 3)
def tensordots_of_torch(q, k, v):
    s = torch.inner(q[0, 0], k[0, 0]) * 0.3
    return torch.linalg.matmul(s.softmax(-1), v[0, 0])


@spelling(of=[(BATCH, LENGTH, HEADS, DIM), (BATCH, LENGTH, 2, DIM), (BATCH, LENGTH, 2, DIM)])
def groups_of_heads_in_an_einsum(q, k, v):
    b, n, h, d = q.shape
    q = q.unflatten(2, (2, h // 2))
    s = torch.einsum("bqkgh,bskh->bkgqs", q, k) * d**-0.5
    s = s.masked_fill(torch.ones(n, n).triu(1).bool(), -torch.inf)
    return torch.einsum("bkgqs,bskh->bqkgh", s.softmax(-1), v).flatten(2, 3)


@spelling(of=[(BATCH, HEADS, LENGTH, DIM), (BATCH, 2, LENGTH, DIM), (BATCH, 2, LENGTH, DIM)])
def heads_repeated_in_memory(q, k, v):
    k, v = (torch.repeat_interleave(x, repeats=2, dim=1) for x in (k, v))
    s = torch.matmul(q, k.swapaxes(2, 3)).div_(math.sqrt(DIM))
    return torch.matmul(torch.nn.Softmax(dim=-1)(s), v)


@spelling(of=[(BATCH, HEADS, LENGTH, DIM), (BATCH, 2, LENGTH, DIM), (BATCH, 2, LENGTH, DIM)])
def heads_tiled(q, k, v):
    """Query head h reads key head h modulo 2."""
    k, v = k.repeat(1, 2, 1, 1), v.tile(1, 2, 1, 1)
    return torch.matmul(torch.softmax(torch.matmul(q, k.mT) * 0.3, -1), v)


@spelling(of=[(BATCH, HEADS, LENGTH, DIM), (BATCH, 1, LENGTH, DIM), (BATCH, 1, LENGTH, DIM)])
def one_key_head_as_a_long_query(q, k, v):
    """Heads and positions of multi-query attention in one product."""
    b, h, n, d = q.shape
    s = torch.bmm(q.reshape(b, h * n, d), k[:, 0].mT).view(b, h, n, n) * 0.3
    p = s.softmax(-1).view(b, h * n, n)
    return torch.bmm(p, v[:, 0]).view(b, h, n, d)


@spelling()
def arguments_with_the_names_of_numpy(q, k, v):
    s = q @ k.mT * 0.3
    e = torch.exp(s - s.max(axis=-1, keepdims=True).values)
    return e / e.sum(axis=-1, keepdims=True) @ v


@spelling()
def softmax_of_torch_special(q, k, v):
    return torch.special.softmax(q @ k.mT * 0.3, -1) @ v
