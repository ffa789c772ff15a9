#===----------------------------------------------------------------------===#
#
# Part of attn, an attention compiler.
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===----------------------------------------------------------------------===#
"""Attention of vision models."""

import math

import torch
import torch.nn.functional as F
from torch import nn

from .table import BATCH, DIM, HEADS, LENGTH, OTHER, QKV, WIDTH, spelling

WINDOW = 4  # positions of a window are 4 by 4
TOKENS = WINDOW * WINDOW
PACKED = [(BATCH, LENGTH, 3 * WIDTH)]
IMAGE = [(BATCH, 8, 8, 3 * WIDTH)]


def unpacked(qkv, heads=HEADS):
    b, n, c = qkv.shape
    return qkv.reshape(b, n, 3, heads, c // 3 // heads).permute(2, 0, 3, 1, 4)


@spelling((DIM,), (DIM,), of=PACKED)
def norms_of_queries_and_keys(qkv, first, second):
    q, k, v = unpacked(qkv).unbind(0)
    q, k = F.layer_norm(q, (DIM,), first), F.layer_norm(k, (DIM,), second)
    q = q * DIM**-0.5
    attn = q @ k.transpose(-2, -1)
    attn = attn.softmax(dim=-1)
    x = attn @ v
    return x.transpose(1, 2).reshape(qkv.shape[0], -1, WIDTH)


@spelling((BATCH, OTHER, 2 * WIDTH), of=[(BATCH, LENGTH, WIDTH)])
def reduced_keys(x, reduced):
    """Keys of a smaller image, as pyramid transformers have them."""
    b, n, c = x.shape
    q = x.reshape(b, n, HEADS, c // HEADS).permute(0, 2, 1, 3)
    kv = reduced.reshape(b, -1, 2, HEADS, c // HEADS).permute(2, 0, 3, 1, 4)
    k, v = kv[0], kv[1]
    attn = (q @ k.transpose(-2, -1)) * DIM**-0.5
    return (attn.softmax(dim=-1) @ v).transpose(1, 2).reshape(b, n, c)


def relative_index(size):
    at = torch.stack(torch.meshgrid(torch.arange(size), torch.arange(size), indexing="ij")).flatten(1)
    away = (at[:, :, None] - at[:, None, :]).permute(1, 2, 0).contiguous()
    away[:, :, 0] += size - 1
    away[:, :, 1] += size - 1
    away[:, :, 0] *= 2 * size - 1
    return away.sum(-1)


def windows_of(x):
    b, h, w, c = x.shape
    x = x.view(b, h // WINDOW, WINDOW, w // WINDOW, WINDOW, c)
    return x.permute(0, 1, 3, 2, 4, 5).contiguous().view(-1, TOKENS, c)


def image_of(windows, h, w):
    b = windows.shape[0] // (h * w // TOKENS)
    x = windows.view(b, h // WINDOW, w // WINDOW, WINDOW, WINDOW, -1)
    return x.permute(0, 1, 3, 2, 4, 5).contiguous().view(b, h, w, -1)


def shift_mask(h, w, shift):
    regions, count = torch.zeros(1, h, w, 1), 0
    slices = (slice(0, -WINDOW), slice(-WINDOW, -shift), slice(-shift, None))
    for rows in slices:
        for columns in slices:
            regions[:, rows, columns, :] = count
            count += 1
    own = windows_of(regions).view(-1, TOKENS)
    differs = own.unsqueeze(1) - own.unsqueeze(2)
    return differs.masked_fill(differs != 0, -100.0).masked_fill(differs == 0, 0.0)


@spelling(((2 * WINDOW - 1) ** 2, HEADS), relative_index(WINDOW), of=IMAGE)
def swin(qkv, table, index):
    b, h, w, _ = qkv.shape
    q, k, v = unpacked(windows_of(qkv))
    attn = (q * DIM**-0.5) @ k.transpose(-2, -1)
    bias = table[index.view(-1)].view(TOKENS, TOKENS, -1)
    attn = attn + bias.permute(2, 0, 1).contiguous().unsqueeze(0)
    x = (attn.softmax(-1) @ v).transpose(1, 2).reshape(-1, TOKENS, WIDTH)
    return image_of(x, h, w)


@spelling(((2 * WINDOW - 1) ** 2, HEADS), relative_index(WINDOW), shift_mask(8, 8, 2), of=IMAGE)
def swin_of_shifted_windows(qkv, table, index, mask):
    b, h, w, _ = qkv.shape
    q, k, v = unpacked(windows_of(torch.roll(qkv, (-2, -2), (1, 2))))
    windows = q.shape[0]
    attn = (q * DIM**-0.5) @ k.transpose(-2, -1)
    bias = table[index.view(-1)].view(TOKENS, TOKENS, -1)
    attn = attn + bias.permute(2, 0, 1).contiguous().unsqueeze(0)
    count = mask.shape[0]
    attn = attn.view(windows // count, count, HEADS, TOKENS, TOKENS) + mask.unsqueeze(1).unsqueeze(0)
    attn = attn.view(-1, HEADS, TOKENS, TOKENS)
    x = (attn.softmax(-1) @ v).transpose(1, 2).reshape(windows, TOKENS, WIDTH)
    return torch.roll(image_of(x, h, w), (2, 2), (1, 2))


@spelling((HEADS, 1, 1), ((2 * WINDOW - 1) ** 2, HEADS), relative_index(WINDOW), of=[(BATCH, TOKENS, 3 * WIDTH)])
def swin_of_cosines(qkv, logit_scale, table, index):
    q, k, v = unpacked(qkv)
    attn = F.normalize(q, dim=-1) @ F.normalize(k, dim=-1).transpose(-2, -1)
    scale = torch.clamp(logit_scale, max=math.log(1.0 / 0.01)).exp()
    attn = attn * scale
    bias = table[index.view(-1)].view(TOKENS, TOKENS, -1).permute(2, 0, 1).contiguous()
    attn = attn + 16 * torch.sigmoid(bias).unsqueeze(0)
    return (attn.softmax(dim=-1) @ v).transpose(1, 2).reshape(-1, TOKENS, WIDTH)


@spelling((HEADS, 16, 16), of=[(BATCH, 2, 2, TOKENS, 3 * WIDTH)])
def maxvit_of_grids(qkv, bias):
    """Windows are two dimensions beside the batch."""
    b, x, y, n, c = qkv.shape
    q, k, v = (part.reshape(b, x, y, n, HEADS, DIM).permute(0, 1, 2, 4, 3, 5) for part in qkv.chunk(3, dim=-1))
    sim = torch.einsum("bxyhid,bxyhjd->bxyhij", q * DIM**-0.5, k) + bias
    out = torch.einsum("bxyhij,bxyhjd->bxyhid", sim.softmax(-1), v)
    return out.permute(0, 1, 2, 4, 3, 5).reshape(b, x, y, n, WIDTH)


@spelling((HEADS, 16), torch.arange(256).view(16, 16) % 16, of=[(BATCH, 16, HEADS * 4 * DIM)])
def levit(qkv, biases, index):
    """Keys of half the dimension, values of twice."""
    b, n, _ = qkv.shape
    q, k, v = qkv.view(b, n, HEADS, -1).split([DIM, DIM, 2 * DIM], dim=3)
    q, k, v = q.permute(0, 2, 1, 3), k.permute(0, 2, 3, 1), v.permute(0, 2, 1, 3)
    attn = q @ k * DIM**-0.5 + biases[:, index]
    return (attn.softmax(dim=-1) @ v).transpose(1, 2).reshape(b, n, -1)


@spelling((HEADS, HEADS), (HEADS,), (HEADS, HEADS), of=PACKED, reasons="linear is not read as one")
def talking_heads(qkv, before, bias, after):
    b, n, _ = qkv.shape
    q, k, v = unpacked(qkv)
    attn = q * DIM**-0.5 @ k.transpose(-2, -1)
    attn = F.linear(attn.permute(0, 2, 3, 1), before, bias).permute(0, 3, 1, 2)
    attn = attn.softmax(dim=-1)
    attn = F.linear(attn.permute(0, 2, 3, 1), after).permute(0, 3, 1, 2)
    return (attn @ v).transpose(1, 2).reshape(b, n, -1)


@spelling((WIDTH, 1), of=[(BATCH, LENGTH, WIDTH), (BATCH, LENGTH, 2 * WIDTH)])
def class_token_alone(x, kv, weight):
    """One query, whose dimension is made for it."""
    b, n, c = x.shape
    q = (x[:, 0] * weight.T).unsqueeze(1).reshape(b, 1, HEADS, DIM).permute(0, 2, 1, 3)
    k, v = kv.reshape(b, n, 2, HEADS, DIM).permute(2, 0, 3, 1, 4)
    attn = ((q * DIM**-0.5) @ k.transpose(-2, -1)).softmax(dim=-1)
    return (attn @ v).transpose(1, 2).reshape(b, 1, c)


@spelling((HEADS, 1, 1), of=[(BATCH, 12, 3 * WIDTH)])
def attention_over_channels(qkv, temperature):
    """Rows and keys are channels, and what is summed over are positions: attention, of a
    head dimension that is a length, and known."""
    b, n, c = qkv.shape
    q, k, v = qkv.reshape(b, n, 3, HEADS, DIM).permute(2, 0, 3, 4, 1)
    q, k = F.normalize(q, dim=-1), F.normalize(k, dim=-1)
    attn = (q @ k.transpose(-2, -1)) * temperature
    return (attn.softmax(dim=-1) @ v).permute(0, 3, 1, 2).reshape(b, n, c // 3)


def positions_of_axis(size):
    return torch.arange(size)[:, None] - torch.arange(size)[None, :] + size - 1


@spelling((2 * WINDOW - 1, DIM), (2 * WINDOW - 1, DIM), positions_of_axis(WINDOW), of=[(BATCH, TOKENS, 3 * WIDTH)])
def decomposed_positions(qkv, table_h, table_w, at):
    """Biases by row and by column of the image, of the query itself."""
    b, n, _ = qkv.shape
    q, k, v = qkv.reshape(b, n, 3, HEADS, -1).permute(2, 0, 3, 1, 4).reshape(3, b * HEADS, n, -1).unbind(0)
    attn = (q * DIM**-0.5) @ k.transpose(-2, -1)
    own = q.reshape(b * HEADS, WINDOW, WINDOW, DIM)
    rel_h = torch.einsum("bhwc,hkc->bhwk", own, table_h[at])
    rel_w = torch.einsum("bhwc,wkc->bhwk", own, table_w[at])
    attn = (attn.view(b * HEADS, WINDOW, WINDOW, WINDOW, WINDOW) + rel_h[:, :, :, :, None]
            + rel_w[:, :, :, None, :]).view(b * HEADS, n, n)
    x = attn.softmax(dim=-1) @ v
    return x.view(b, HEADS, WINDOW, WINDOW, -1).permute(0, 2, 3, 1, 4).reshape(b, n, -1)


@spelling((TOKENS + 3, HEADS), torch.arange(25).view(5, 5) % 19, of=[(BATCH, 5, 3 * WIDTH)])
def beit(qkv, table, index):
    b, n, _ = qkv.shape
    q, k, v = unpacked(qkv)
    attn = (q * DIM**-0.5) @ k.transpose(-2, -1)
    bias = table[index.view(-1)].view(n, n, -1).permute(2, 0, 1).contiguous()
    attn = attn + bias.unsqueeze(0)
    return (attn.softmax(dim=-1) @ v).transpose(1, 2).reshape(b, n, -1)


@spelling(of=[(BATCH, 4 * DIM, 4, 4)])
def non_local_block(x):
    """Channels first, and the weights transposed."""
    b, c, h, w = x.shape
    q = x.view(b, c, h * w).permute(0, 2, 1)
    k = (x * 0.5).view(b, c, h * w)
    v = x.sin().view(b, c, h * w)
    attention = torch.softmax(torch.bmm(q, k), dim=-1)
    out = torch.bmm(v, attention.permute(0, 2, 1))
    return out.view(b, c, h, w)


@spelling(of=[(BATCH, 4 * DIM, 4, 4)])
def self_attention_of_a_gan(x):
    """Weights whose columns are queries: softmax over rows."""
    b, c, h, w = x.shape
    f, g, v = x.view(b, c, -1)[:, :8], x.view(b, c, -1)[:, 8:16], x.view(b, c, -1)
    beta = F.softmax(torch.bmm(f.transpose(1, 2), g), dim=1)
    return torch.bmm(v, beta).view(b, c, h, w)


@spelling(of=[(BATCH, 3 * WIDTH, 4, 4)])
def channels_first_with_einsum(qkv):
    b, c, h, w = qkv.shape
    q, k, v = (part.reshape(b, HEADS, DIM, h * w) for part in qkv.chunk(3, dim=1))
    sim = torch.einsum("bhdi,bhdj->bhij", q * DIM**-0.5, k)
    out = torch.einsum("bhij,bhdj->bhid", sim.softmax(dim=-1), v)
    return out.permute(0, 1, 3, 2).reshape(b, WIDTH, h, w)


@spelling(of=[(BATCH, WIDTH, 4, 4), (TOKENS + 1, WIDTH)])
def pool_of_an_image(x, embedding):
    """The mean is the one query."""
    b, c, h, w = x.shape
    x = x.flatten(start_dim=2).permute(2, 0, 1)
    x = torch.cat([x.mean(dim=0, keepdim=True), x], dim=0) + embedding[:, None, :]
    q, k, v = (part.view(-1, b * HEADS, DIM).transpose(0, 1) for part in (x[:1], x * 0.5, x.cos()))
    weights = F.softmax(torch.bmm(q * DIM**-0.5, k.transpose(1, 2)), dim=-1)
    return torch.bmm(weights, v).transpose(0, 1).reshape(1, b, c)[0]


@spelling(of=[(BATCH, 4, TOKENS, 3 * WIDTH)])
def patches_beside_the_batch(qkv):
    """Each pixel of a patch attends to the same of other patches."""
    b, p, n, _ = qkv.shape
    q, k, v = (part.view(b, p, n, HEADS, DIM).transpose(2, 3) for part in qkv.chunk(3, dim=-1))
    dots = torch.matmul(q, k.transpose(-1, -2)) * DIM**-0.5
    return torch.matmul(dots.softmax(-1), v).transpose(2, 3).reshape(b, p, n, WIDTH)


@spelling(of=[(BATCH, 8, 8, 3 * WIDTH)], raised=2)
def rows_then_columns(qkv):
    """Axial attention: the other axis is part of the batch."""
    def along(x, dim):
        x = x.movedim(dim, 2)
        b, m, n, _ = x.shape
        q, k, v = (part.reshape(b * m, n, HEADS, DIM).permute(0, 2, 1, 3) for part in x.chunk(3, -1))
        o = ((q @ k.transpose(-1, -2)) / DIM**0.5).softmax(-1) @ v
        return o.permute(0, 2, 1, 3).reshape(b, m, n, WIDTH).movedim(2, dim)
    return along(qkv, 1) + along(qkv, 2)


@spelling((BATCH, LENGTH, WIDTH), (BATCH, OTHER, WIDTH), of=[(BATCH, LENGTH, WIDTH), (BATCH, OTHER, WIDTH)])
def detection_cross_attention(queries, memory, query_position, position):
    b = queries.shape[0]
    q = (queries + query_position).view(b, -1, HEADS, DIM).transpose(1, 2)
    k = (memory + position).view(b, -1, HEADS, DIM).transpose(1, 2)
    v = memory.view(b, -1, HEADS, DIM).transpose(1, 2)
    scores = torch.matmul(q, k.transpose(2, 3)) * DIM**-0.5
    return torch.matmul(scores.softmax(-1), v).transpose(1, 2).flatten(2)


@spelling(of=[(BATCH, LENGTH, 3 * WIDTH)], reasons="no product")
def outlook(x):
    """Weights that no product of queries and keys makes."""
    b, n, _ = x.shape
    weights = x[..., : n * HEADS].reshape(b, n, HEADS, -1).permute(0, 2, 1, 3)[..., :n]
    return torch.softmax(weights * 0.3, -1) @ x[..., :WIDTH].reshape(b, n, HEADS, DIM).transpose(1, 2)


@spelling((HEADS,), (HEADS, LENGTH, LENGTH), of=PACKED, reasons=("several operations: sum, truediv", "several operations: sum, truediv"))
def gated_positions(qkv, gate, positions):
    """A mean of two softmaxes, of contents and of positions."""
    q, k, v = unpacked(qkv)
    patch = (q @ k.transpose(-2, -1) * DIM**-0.5).softmax(-1)
    where = positions.softmax(-1)
    gating = torch.sigmoid(gate).view(1, -1, 1, 1)
    attn = (1.0 - gating) * patch + gating * where
    attn = attn / attn.sum(dim=-1).unsqueeze(-1)
    return attn @ v


@spelling(of=[(BATCH, LENGTH, 3 * WIDTH), (HEADS, HEADS, 1, 1)], reasons="conv2d is not an operation that is read")
def heads_mixed_by_a_convolution(qkv, weight):
    q, k, v = unpacked(qkv)
    attn = F.conv2d(q @ k.transpose(-2, -1) * 0.3, weight)
    return attn.softmax(-1) @ v


@spelling(of=QKV)
def diagonal_hidden_with_learned_temperature_of_rows(q, k, v):
    """A temperature that each query computes."""
    warm = q.mean(-1, keepdim=True).exp()
    dots = q @ k.transpose(-1, -2) * warm
    mask = torch.eye(dots.shape[-1], dtype=torch.bool)
    return dots.masked_fill(mask, -torch.finfo(dots.dtype).max).softmax(-1) @ v


class LocallySelfAttention(nn.Module):
    """Attention for small data: a temperature that is learned, no token sees itself."""

    def __init__(self):
        super().__init__()
        self.temperature = nn.Parameter(torch.log(torch.tensor(DIM**-0.5)))

    def forward(self, qkv):
        q, k, v = unpacked(qkv)
        dots = torch.matmul(q, k.transpose(-1, -2)) * self.temperature.exp()
        mask = torch.eye(dots.shape[-1], device=dots.device, dtype=torch.bool)
        dots = dots.masked_fill(mask, -torch.finfo(dots.dtype).max)
        return torch.matmul(dots.softmax(-1), v).transpose(1, 2).flatten(2)


spelling(of=PACKED)(LocallySelfAttention)
