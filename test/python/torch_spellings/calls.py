#===----------------------------------------------------------------------===#
#
# Part of attn, an attention compiler.
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===----------------------------------------------------------------------===#
"""Calls of PyTorch's own functions and modules of attention, and attention inside of its
transforms."""

import torch
import torch.nn.functional as F
from torch import nn

from .table import BATCH, DIM, HEADS, LENGTH, OTHER, QKV, WIDTH, spelling

X = [(BATCH, LENGTH, WIDTH)]
BOTH = [(BATCH, LENGTH, WIDTH), (BATCH, OTHER, WIDTH)]
GROUPED = [(BATCH, HEADS, LENGTH, DIM), (BATCH, 2, OTHER, DIM), (BATCH, 2, OTHER, DIM)]
HIDDEN = torch.zeros(BATCH, LENGTH, dtype=torch.bool)
HIDDEN[1, 7:] = True
CAUSAL = torch.triu(torch.ones(LENGTH, LENGTH, dtype=torch.bool), 1)


def module(name, make, call, *more, of=X, **expected):
    """A module of PyTorch, by `make()`, called as call(module, *inputs)."""
    class Module(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = make()

        def forward(self, *inputs):
            return call(self.inner, *inputs)

    Module.__name__ = name
    spelling(*more, of=of, **expected)(Module)


def multihead(**options):
    return lambda: nn.MultiheadAttention(WIDTH, HEADS, **{"batch_first": True, **options})


def itself(m, x, **options):
    return m(x, x, x, need_weights=False, **options)[0]


module("mha", multihead(), itself)
module("mha_of_lengths_first", multihead(batch_first=False), itself)
module("mha_without_biases", multihead(bias=False), itself)
module("mha_with_a_key_of_zeros", multihead(add_zero_attn=True), itself)
module("mha_with_a_learned_key", multihead(add_bias_kv=True), itself)
module("mha_with_both", multihead(add_bias_kv=True, add_zero_attn=True), itself)
module("mha_whose_weights_nobody_reads", multihead(), lambda m, x: m(x, x, x)[0])
module("mha_whose_weights_of_heads_nobody_reads", multihead(), lambda m, x: m(x, x, x, average_attn_weights=False)[0])
module("mha_with_weights", multihead(), lambda m, x: m(x, x, x), reasons="read by several")
module("mha_with_weights_of_heads", multihead(), lambda m, x: m(x, x, x, average_attn_weights=False), reasons="read by several")
module("mha_of_padding", multihead(), lambda m, x, h: itself(m, x, key_padding_mask=h), HIDDEN)
module("mha_of_padding_as_floats", multihead(), lambda m, x, h: itself(m, x, key_padding_mask=h),
       torch.zeros(BATCH, LENGTH).masked_fill(HIDDEN, -torch.inf))
module("mha_of_a_mask", multihead(), lambda m, x, h: itself(m, x, attn_mask=h), CAUSAL)
module("mha_of_a_mask_as_floats", multihead(), lambda m, x, h: itself(m, x, attn_mask=h),
       torch.zeros(LENGTH, LENGTH).masked_fill(CAUSAL, -torch.inf))
module("mha_of_a_mask_of_heads", multihead(), lambda m, x, h: itself(m, x, attn_mask=h),
       torch.randn(BATCH * HEADS, LENGTH, LENGTH))
module("mha_of_both_masks", multihead(), lambda m, x, a, b: itself(m, x, attn_mask=a, key_padding_mask=b),
       CAUSAL, HIDDEN)
module("mha_that_is_causal", multihead(), lambda m, x, a: itself(m, x, attn_mask=a, is_causal=True), CAUSAL)
module("mha_across", multihead(kdim=WIDTH, vdim=16), lambda m, x, y, z: m(x, y, z, need_weights=False)[0],
       of=[*BOTH, (BATCH, OTHER, 16)])
module("mha_without_a_batch", multihead(), lambda m, x: itself(m, x[0]))
module("mha_with_weights_and_masks", multihead(), lambda m, x, a, b: m(x, x, x, attn_mask=a, key_padding_mask=b)[0],
       CAUSAL, HIDDEN)

LAYER = dict(d_model=WIDTH, nhead=HEADS, dim_feedforward=48, dropout=0.0, batch_first=True)
module("encoder_layer", lambda: nn.TransformerEncoderLayer(**LAYER, norm_first=True), lambda m, x: m(x))
module("encoder_layer_of_masks", lambda: nn.TransformerEncoderLayer(**LAYER, activation="gelu"),
       lambda m, x, h: m(x, src_key_padding_mask=h), HIDDEN)
module("encoder", lambda: nn.TransformerEncoder(nn.TransformerEncoderLayer(**LAYER), 2, enable_nested_tensor=False),
       lambda m, x, a: m(x, mask=a, is_causal=True), CAUSAL, raised=2)
module("decoder_layer", lambda: nn.TransformerDecoderLayer(**LAYER), lambda m, x, y: m(x, y), of=BOTH, raised=2)
module("decoder", lambda: nn.TransformerDecoder(nn.TransformerDecoderLayer(**LAYER), 1),
       lambda m, x, y, a: m(x, y, tgt_mask=a, tgt_is_causal=True), CAUSAL, of=BOTH, raised=2)
module("transformer", lambda: nn.Transformer(WIDTH, HEADS, 1, 1, 48, 0.0, batch_first=True),
       lambda m, x, y, a: m(y, x, tgt_mask=a, tgt_is_causal=False), CAUSAL.float() * -1e9, of=BOTH, raised=3)
module("mha_in_eval", lambda: multihead()().eval(), itself)
module("attention_of_a_module_that_drops", multihead(dropout=0.5), lambda m, x: itself(m.eval(), x))


# scaled_dot_product_attention

@spelling()
def sdpa(q, k, v):
    return F.scaled_dot_product_attention(q, k, v)


@spelling(of=GROUPED)
def sdpa_of_groups(q, k, v):
    return F.scaled_dot_product_attention(q, k, v, enable_gqa=True, scale=0.5)


@spelling(torch.rand(LENGTH, LENGTH) > 0.3)
def sdpa_of_flags_of_two_dimensions(q, k, v, mask):
    return F.scaled_dot_product_attention(q, k, v, mask | torch.eye(q.shape[2], dtype=torch.bool))


@spelling(~HIDDEN)
def sdpa_of_padding(q, k, v, shown):
    return F.scaled_dot_product_attention(q, k, v, attn_mask=shown[:, None, None, :])


@spelling((1, HEADS, LENGTH, LENGTH))
def sdpa_of_a_bias(q, k, v, bias):
    return F.scaled_dot_product_attention(q, k, v, bias)


@spelling((HEADS, 1, LENGTH))
def sdpa_of_a_bias_of_keys(q, k, v, bias):
    return F.scaled_dot_product_attention(q, k, v, bias.expand(-1, q.shape[2], -1))


@spelling((HEADS, LENGTH, LENGTH), ~HIDDEN)
def sdpa_of_a_bias_and_padding(q, k, v, bias, shown):
    """A bias where keys are seen; a scale that goes into the queries."""
    bias = torch.where(shown[:, None, None, :], bias, torch.finfo(q.dtype).min)
    return F.scaled_dot_product_attention(q * 0.3, k, v, attn_mask=bias, scale=1.0)


@spelling(of=[(LENGTH, DIM)] * 3)
def sdpa_without_a_batch(q, k, v):
    return F.scaled_dot_product_attention(q, k, v, is_causal=True)


@spelling(of=[(BATCH, LENGTH, DIM), (BATCH, OTHER, DIM), (BATCH, OTHER, DIM)])
def sdpa_of_three_dimensions(q, k, v):
    return F.scaled_dot_product_attention(q, k, v, scale=DIM**-0.25)


@spelling((5, 1, 1, LENGTH, LENGTH), of=[(BATCH, 5, HEADS, LENGTH, DIM)] * 3)
def sdpa_of_five_dimensions(q, k, v, bias):
    return F.scaled_dot_product_attention(q, k, v, attn_mask=bias.movedim(0, 1))


@spelling(of=[(BATCH, HEADS, LENGTH, DIM), (1, HEADS, OTHER, DIM), (1, HEADS, OTHER, DIM)])
def sdpa_of_keys_for_all(q, k, v):
    return F.scaled_dot_product_attention(q, k.expand(q.shape[0], -1, -1, -1), v.expand(q.shape[0], -1, -1, -1))


@spelling(of=X)
def sdpa_of_windows(x):
    q, k, v = (x.unflatten(-1, (HEADS, DIM)).transpose(1, 2) for _ in range(3))
    at = torch.arange(x.shape[1])
    mask = (at[:, None] - at).abs() <= 2
    return F.scaled_dot_product_attention(q, k, v, attn_mask=mask).transpose(1, 2).flatten(-2)


# Transforms

def plain(q, k, v):
    return torch.softmax(q @ k.transpose(-2, -1) * 0.3, -1) @ v


@spelling()
def vmapped(q, k, v):
    return torch.vmap(plain)(q, k, v)


@spelling(of=[(BATCH, LENGTH, HEADS, DIM), (BATCH, LENGTH, HEADS, DIM), (BATCH, LENGTH, HEADS, DIM)])
def vmapped_over_heads(q, k, v):
    one = torch.vmap(plain, in_dims=-2, out_dims=-2)
    return torch.vmap(one)(q, k, v)


@spelling()
def without_gradients(q, k, v):
    with torch.no_grad():
        o = plain(q, k, v)
    return o + q


@spelling()
def in_inference_mode(q, k, v):
    with torch.inference_mode():
        o = plain(q.detach(), k.detach(), v.detach())
    return o.clone()


@spelling(of=[(BATCH, LENGTH, WIDTH), (WIDTH, 3 * WIDTH)])
def with_autocast_off_inside(x, weight):
    q, k, v = (x @ weight).unflatten(-1, (3, HEADS, DIM)).permute(2, 0, 3, 1, 4)
    with torch.autocast("cpu", enabled=False):
        w = (q.float() @ k.float().mT * 0.3).softmax(-1)
    return w.to(v.dtype) @ v


@spelling(raised=3)
def layers_in_a_loop(q, k, v):
    for n in range(3):
        q = q + plain(q / (n + 1), k, v)
    return q


class Scripted(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(HEADS, 1, 1))
        self.layers = nn.ModuleList([nn.Linear(WIDTH, 3 * WIDTH) for _ in range(2)])

    def forward(self, x):
        for layer in self.layers:
            qkv = layer(x).chunk(3, dim=-1)
            q, k, v = (each.view(x.shape[0], -1, HEADS, DIM).transpose(1, 2) for each in qkv)
            x = x + plain(q * self.scale, k, v).transpose(1, 2).reshape(x.shape)
        return x


def exported():
    length, batch = torch.export.Dim("length", min=2, max=64), torch.export.Dim("batch", min=2, max=64)
    return torch.export.export(Scripted(), (torch.randn(BATCH, LENGTH, WIDTH),),
                               dynamic_shapes=({0: batch, 1: length},)).module()


module("program_that_was_exported", exported, lambda m, x: m(x), raised=2)
spelling(of=X, raised=2)(Scripted)


class BranchedByData(nn.Module):
    """Of two branches of torch.cond, one is attention."""

    def forward(self, q, k, v):
        return torch.cond(q.shape[2] > 3, plain, lambda q, k, v: v * 1.0, (q, k, v))


spelling()(BranchedByData)
