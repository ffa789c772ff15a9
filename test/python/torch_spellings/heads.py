#===----------------------------------------------------------------------===#
#
# Part of attn, an attention compiler.
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===----------------------------------------------------------------------===#
"""Heads and batches that only some of query, key and value have, head dimensions of any
size, and sinks in front of the keys."""

import torch
import torch.nn.functional as F

from .table import BATCH, DIM, HEADS, LENGTH, OTHER, spelling

SINK = [(HEADS,)]
GROUPED = [(BATCH, HEADS, LENGTH, DIM), (BATCH, 2, OTHER, DIM), (BATCH, 2, OTHER, DIM)]


@spelling(of=[(LENGTH, DIM), (BATCH, OTHER, DIM)])
def learned_queries_without_a_batch(queries, x):
    """One set of queries for all texts, which takes fewer tokens out of each."""
    return torch.matmul(torch.matmul(queries, x.transpose(-1, -2)).mul(DIM**-0.5).softmax(dim=-1), x)


@spelling(of=[(LENGTH, HEADS, DIM), (BATCH, OTHER, HEADS, DIM), (BATCH, OTHER, HEADS, DIM)])
def queries_that_all_texts_share(q, k, v):
    weights = torch.einsum("ihd,bjhd->bhij", q, k).mul(0.3).softmax(-1)
    return torch.einsum("bhij,bjhd->bihd", weights, v)


@spelling(of=GROUPED)
def heads_that_take_turns(q, k, v):
    """Query heads 0 and 2 see the first head of keys, 1 and 3 the second."""
    k, v = (x[:, None].expand(-1, HEADS // 2, -1, -1, -1).reshape(x.shape[0], HEADS, -1, DIM) for x in (k, v))
    return F.softmax(q @ k.mT * 0.3, dim=-1) @ v


@spelling(of=[(BATCH, HEADS, LENGTH, DIM), (BATCH, OTHER, DIM), (BATCH, HEADS, OTHER, DIM)])
def one_key_for_all_heads(q, k, v):
    """Values are those of heads."""
    weights = torch.einsum("bhid,bjd->bhij", q, k).mul(0.3).softmax(-1)
    return torch.einsum("bhij,bhjd->bhid", weights, v)


@spelling(of=[(BATCH, HEADS, LENGTH, 20), (BATCH, HEADS, OTHER, 20), (BATCH, HEADS, OTHER, 5)])
def heads_of_an_odd_dimension(q, k, v):
    scores = (q @ k.mT) * 20**-0.5
    seen = torch.arange(k.shape[2]) <= torch.arange(q.shape[2])[:, None]
    return scores.masked_fill(~seen, float("-inf")).softmax(-1) @ v


@spelling(of=[(BATCH, HEADS, LENGTH, 12)] * 3)
def odd_heads_of_a_call(q, k, v):
    return F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(2)


@spelling(*SINK)
def a_sink_in_front(q, k, v, sink):
    """The first of the weights is that of the sink."""
    s = q @ k.mT * 0.3
    first = sink[None, :, None, None].expand(*s.shape[:3], 1)
    return torch.cat((first, s), dim=-1).softmax(dim=-1)[..., 1:] @ v


@spelling(*SINK)
def a_sink_in_front_of_what_its_largest_is_taken_from(q, k, v, sink):
    s = (q @ k.mT * 0.3).masked_fill(torch.ones(q.shape[2], k.shape[2]).triu(1) > 0, float("-inf"))
    both = torch.cat([sink.reshape(1, -1, 1, 1).expand(s.shape[0], -1, s.shape[2], -1), s], dim=-1)
    both = both - both.max(dim=-1, keepdim=True).values
    return F.softmax(both, dim=-1, dtype=torch.float32)[:, :, :, 1:].contiguous() @ v
