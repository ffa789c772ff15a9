#===----------------------------------------------------------------------===#
#
# Part of attn, an attention compiler.
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===----------------------------------------------------------------------===#
"""Attention as people write it in PyTorch, and how it is compiled."""

import math

import torch
import torch.nn.functional as F
from torch import nn

from attn.torch import backend

BATCH, LENGTH, HEADS, DIM = 2, 10, 4, 8
WIDTH = HEADS * DIM
torch.set_num_threads(1)


class Attention(nn.Module):
    """Projections; `core` of a subclass is the attention."""

    kv_heads = HEADS
    has_gradients = True  # of a kind that no other model has

    def __init__(self):
        super().__init__()
        self.query = nn.Linear(WIDTH, WIDTH)
        self.keys = nn.Linear(WIDTH, self.kv_heads * DIM)
        self.value = nn.Linear(WIDTH, self.kv_heads * DIM)
        self.last = nn.Linear(WIDTH, WIDTH)
        self.make()

    def make(self):
        pass

    def forward(self, x, *others):
        b, t, _ = x.shape
        q = self.query(x).view(b, t, HEADS, DIM).transpose(1, 2)
        k = self.keys(x).view(b, t, self.kv_heads, DIM).transpose(1, 2)
        v = self.value(x).view(b, t, self.kv_heads, DIM).transpose(1, 2)
        o = self.core(q, k, v, *others)
        return self.last(o.transpose(1, 2).reshape(b, t, WIDTH))


def positions(q):
    """The numbers of queries, (t, 1), and of keys, (1, t)."""
    i = torch.arange(q.shape[2], device=q.device)
    return i[:, None], i[None, :]


MODELS = []


def model(cls):
    MODELS.append(cls)
    return cls


@model
class Plain(Attention):
    def core(self, q, k, v):
        return torch.softmax(q @ k.transpose(-2, -1) / math.sqrt(DIM), -1) @ v


@model
class NanoGPT(Attention):
    """A triangle that a buffer holds: an argument."""

    captured = (2,)

    def make(self):
        self.register_buffer("bias", torch.tril(torch.ones(32, 32)).view(1, 1, 32, 32))
        self.drop = nn.Dropout(0.0)

    def core(self, q, k, v):
        t = q.size(2)
        att = (q @ k.transpose(-2, -1)) * (1.0 / math.sqrt(k.size(-1)))
        att = att.masked_fill(self.bias[:, :, :t, :t] == 0, float("-inf"))
        return self.drop(F.softmax(att, dim=-1)) @ v


@model
class Causal(Attention):
    """A triangle of the graph: a mask of the kernel."""

    def core(self, q, k, v):
        t = q.size(2)
        hidden = torch.triu(torch.ones(t, t, dtype=torch.bool, device=q.device), diagonal=1)
        s = torch.matmul(q, k.transpose(2, 3)) * DIM**-0.5
        return torch.matmul(F.softmax(s.masked_fill(hidden, torch.finfo(s.dtype).min), dim=-1), v)


@model
class Window(Attention):
    has_gradients = False

    def core(self, q, k, v):
        i, j = positions(q)
        s = torch.einsum("bhid,bhjd->bhij", q, k) * DIM**-0.5
        s = torch.where((j <= i) & (i - j < 4), s, float("-inf"))
        return torch.einsum("bhij,bhjd->bhid", s.softmax(-1), v)


@model
class Bert(Attention):
    """A penalty for keys that are padding."""

    captured = (2,)

    def inputs(self):
        mask = torch.ones(BATCH, LENGTH)
        mask[1, 7:] = 0
        return (mask,)

    def core(self, q, k, v, mask):
        added = (1.0 - mask[:, None, None, :]) * -10000.0
        scores = torch.matmul(q, k.transpose(-1, -2)) / math.sqrt(DIM) + added
        return torch.matmul(nn.functional.softmax(scores, dim=-1), v)


@model
class T5(Attention):
    """Biases by distance, in buckets; no scale."""

    captured = (2,)

    def make(self):
        self.bias = nn.Embedding(8, HEADS)

    def core(self, q, k, v):
        i, j = positions(q)
        distance = j - i
        bucket = (distance > 0).to(torch.long) * 4 + torch.min(torch.abs(distance), torch.full_like(distance, 3))
        bias = self.bias(bucket).permute([2, 0, 1]).unsqueeze(0)
        scores = torch.matmul(q, k.transpose(3, 2))
        scores += bias
        return torch.matmul(F.softmax(scores.float(), dim=-1).type_as(scores), v)


@model
class NeoX(Attention):
    """baddbmm of batches and heads in one dimension."""

    has_gradients = False

    def core(self, q, k, v):
        b, h, t, d = q.shape
        q, k = q.reshape(b * h, t, d), k.reshape(b * h, t, d)
        scores = torch.zeros(b * h, t, t, dtype=q.dtype, device=q.device)
        scores = torch.baddbmm(scores, q, k.transpose(1, 2), beta=1.0, alpha=d**-0.5).view(b, h, t, t)
        seen = torch.tril(torch.ones((t, t), dtype=torch.bool, device=q.device)).view(1, 1, t, t)
        lowest = torch.tensor(torch.finfo(scores.dtype).min, dtype=scores.dtype, device=q.device)
        scores = torch.where(seen, scores, lowest)
        return torch.matmul(F.softmax(scores, dim=-1), v)


@model
class Llama(Attention):
    """Two heads of queries for one of keys."""

    kv_heads = 2

    @staticmethod
    def repeat(x, n):
        b, h, t, d = x.shape
        return x[:, :, None, :, :].expand(b, h, n, t, d).reshape(b, h * n, t, d)

    def core(self, q, k, v):
        t = q.shape[2]
        k, v = self.repeat(k, 2), self.repeat(v, 2)
        mask = torch.full((t, t), torch.finfo(q.dtype).min, dtype=q.dtype, device=q.device).triu(diagonal=1)[None, None]
        weights = torch.matmul(q, k.transpose(2, 3)) * DIM**-0.5 + mask[:, :, :, : k.shape[-2]]
        weights = F.softmax(weights, dim=-1, dtype=torch.float32).to(q.dtype)
        return torch.matmul(F.dropout(weights, p=0.0, training=self.training), v)


@model
class Interleaved(Llama):
    has_gradients = False

    @staticmethod
    def repeat(x, n):
        return x.repeat_interleave(n, dim=1)


@model
class GroupedQueries(Attention):
    """Queries of five dimensions."""

    kv_heads = 2

    def core(self, q, k, v):
        b, h, t, d = q.shape
        q = q.reshape(b, 2, 2, t, d)
        p = torch.softmax(torch.einsum("bkgid,bkjd->bkgij", q, k) * d**-0.5, dim=-1)
        return torch.einsum("bkgij,bkjd->bkgid", p, v).reshape(b, h, t, d)


@model
class MultiQuery(Attention):
    has_gradients = False
    kv_heads = 1

    def core(self, q, k, v):
        return F.softmax(q * DIM**-0.5 @ k.mT, dim=-1) @ v


@model
class Bloom(Attention):
    """ALiBi by what is computed in the graph, products of three dimensions."""

    captured = (1,)

    def core(self, q, k, v):
        b, h, t, d = q.shape
        slopes = torch.pow(2.0, -torch.arange(1, h + 1, dtype=torch.float32, device=q.device) * 8 / h)
        i, j = positions(q)
        alibi = (slopes[:, None, None] * (j - i)).to(q.dtype)
        q, k, v = (x.reshape(b * h, t, d) for x in (q, k, v))
        scores = torch.bmm(q, k.transpose(1, 2)).view(b, h, t, t) * d**-0.5 + alibi
        scores = scores.masked_fill(j > i, float("-inf"))
        weights = F.softmax(scores, dim=-1).view(b * h, t, t)
        return torch.bmm(weights, v).view(b, h, t, d)


@model
class MPT(Attention):
    """A bias for each head and key, which is computed once."""

    has_gradients = False
    captured = (2,)

    def make(self):
        self.register_buffer("slopes", 2.0 ** -torch.arange(1.0, HEADS + 1))

    def core(self, q, k, v):
        t = k.shape[2]
        scores = q.matmul(k.transpose(-1, -2)) * DIM**-0.5
        bias = torch.arange(1 - t, 1, dtype=torch.int32, device=q.device).view(1, 1, 1, t)
        bias = bias * self.slopes.view(1, HEADS, 1, 1)
        scores = scores + bias
        hidden = torch.ones(t, t, dtype=torch.bool, device=q.device).tril().logical_not()
        scores = scores.masked_fill(hidden.view(1, 1, t, t), torch.finfo(q.dtype).min)
        return torch.softmax(scores, dim=-1).matmul(v)


@model
class Gemma2(Llama):
    """A cap on the scores."""

    def core(self, q, k, v):
        k, v = self.repeat(k, 2), self.repeat(v, 2)
        scores = torch.matmul(q, k.transpose(2, 3)) * 0.3
        scores = scores / 5.0
        scores = torch.tanh(scores)
        scores = scores * 5.0
        i, j = positions(q)
        seen = j <= i
        nothing = torch.tensor(0.0, dtype=q.dtype, device=q.device)
        mask = torch.where(seen, nothing, torch.finfo(q.dtype).min)[None, None]
        weights = F.softmax(scores + mask, dim=-1, dtype=torch.float32).to(q.dtype)
        return torch.matmul(weights, v)


@model
class GptOss(Llama):
    """A logit for each head that joins the scores."""

    captured = (1,)

    def make(self):
        self.sinks = nn.Parameter(torch.linspace(-1, 1, HEADS))

    def core(self, q, k, v):
        k, v = self.repeat(k, 2), self.repeat(v, 2)
        weights = torch.matmul(q, k.transpose(2, 3)) * DIM**-0.5
        sinks = self.sinks.reshape(1, -1, 1, 1).expand(q.shape[0], -1, q.shape[-2], -1)
        logits = torch.cat([weights, sinks], dim=-1)
        logits = logits - logits.max(dim=-1, keepdim=True).values
        probs = F.softmax(logits, dim=-1, dtype=logits.dtype)
        return torch.matmul(probs[..., :-1], v)


@model
class ViT(Attention):
    """One projection for all; no mask."""

    has_gradients = False

    def make(self):
        self.qkv = nn.Linear(WIDTH, 3 * WIDTH)

    def forward(self, x):
        b, t, c = x.shape
        q, k, v = self.qkv(x).reshape(b, t, 3, HEADS, DIM).permute(2, 0, 3, 1, 4)
        weights = ((q * DIM**-0.5) @ k.transpose(-2, -1)).softmax(dim=-1)
        return self.last((weights @ v).transpose(1, 2).reshape(b, t, c))


@model
class Cross(Attention):
    """Keys of another sequence, and which of them are there."""

    captured = (2,)

    def inputs(self):
        there = torch.ones(BATCH, 7, dtype=torch.bool)
        there[0, 5:] = False
        return torch.randn(BATCH, 7, WIDTH), there

    def forward(self, x, context, there):
        q, k, v = (f(y).unflatten(-1, (HEADS, DIM)) for f, y in
                   ((self.query, x), (self.keys, context), (self.value, context)))
        s = torch.einsum("bqhd,bkhd->bhqk", q, k) * DIM**-0.5
        s = s.masked_fill(~there[:, None, None], -torch.inf)
        o = torch.einsum("bhqk,bkhd->bqhd", s.softmax(-1), v)
        return self.last(o.flatten(2))


@model
class Sdpa(Attention):
    def core(self, q, k, v):
        return F.scaled_dot_product_attention(q, k, v, is_causal=True)


@model
class SdpaOfMask(Llama):
    has_gradients = False

    def core(self, q, k, v):
        t = q.shape[2]
        mask = torch.arange(t, device=q.device)[None, None, None, :] <= torch.arange(t, device=q.device)[:, None]
        return F.scaled_dot_product_attention(q, k, v, attn_mask=mask.expand(q.shape[0], 1, t, t), enable_gqa=True)


@model
class TwoInOne(Attention):
    raised = 2

    def core(self, q, k, v):
        o = torch.softmax(q @ k.mT * 0.5, -1) @ v
        return torch.softmax(o @ k.mT * 0.5, -1) @ v


def compiled(module, **options):
    """The module, compiled, and where what is found is noted."""
    found = []
    listener = found.extend
    torch._dynamo.reset()
    function = torch.compile(module, backend=lambda graph, inputs: backend.backend(
        graph, inputs, inner="eager", listener=listener), **options)
    return function, found


def captured_ranks(program):
    signature = program[: program.index(" -> ")].split(", %")[3:]
    return tuple(part.count("x") for part in signature)


def assert_close(a, b, bound=2e-5):
    difference = (a - b).abs().max().item()
    assert difference <= bound * max(1.0, b.abs().max().item()), difference


def run_compiled(module, *inputs, **options):
    function, found = compiled(module, **options)
    with torch.no_grad():
        assert_close(function(*inputs), module(*inputs))
    return found
