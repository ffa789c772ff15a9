#!/usr/bin/env python3
#===----------------------------------------------------------------------===#
#
# Part of attn, an attention compiler.
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===----------------------------------------------------------------------===#
"""The cases of flex_cases.py: score and mask functions as people write them for
flex_attention."""

import math
import random

CASES = {}


def case(per=""):
    """Adds a function of (torch, device, heads, length) that returns (score_mod, mask_mod,
    parameters); score_mod and mask_mod are functions of the parameters. per: "batch" or
    "head", where the mask differs from one to the next."""
    def add(function):
        CASES[function.__name__], function.per = function, per
        return function
    return add


def causal_mask(b, h, q, k):
    return q >= k


@case()
def causal(torch, device, heads, length):
    return None, lambda: causal_mask, []


@case()
def alibi(torch, device, heads, length):
    def score(s, b, h, q, k):
        return s + (k - q) * torch.exp2(-((h + 1) * 8.0 / heads))
    return lambda: score, lambda: causal_mask, []


@case()
def softcap(torch, device, heads, length):
    return lambda: lambda s, b, h, q, k: 20 * torch.tanh(s / 20), lambda: causal_mask, []


@case()
def window(torch, device, heads, length):
    reach = length // 8
    return None, lambda: lambda b, h, q, k: (q >= k) & (q - k < reach), []


@case()
def documents(torch, device, heads, length):
    generator = random.Random(5)
    starts = sorted(generator.sample(range(1, length), 11))
    ids = torch.zeros(length, dtype=torch.int32)
    for start in starts:
        ids[start:] += 1
    ids = ids.to(device)
    return None, lambda: lambda b, h, q, k: (ids[q] == ids[k]) & (q >= k), []


@case(per="batch")
def prefix(torch, device, heads, length):
    prefixes = torch.tensor([length // 4, length // 3], device=device, dtype=torch.int32)
    return None, lambda: lambda b, h, q, k: (k < prefixes[b]) | (q >= k), []


@case()
def relative_bias(torch, device, heads, length):
    reach = 128
    table = torch.randn(heads, 2 * reach + 1, device=device)

    def make(table):
        return lambda s, b, h, q, k: s + table[h, torch.clamp(q - k, -reach, reach) + reach]
    return make, None, [table]


@case()
def neighbourhood(torch, device, heads, length):
    width = 2 ** (int(math.log2(length)) // 2)

    def mask(b, h, q, k):
        return ((q // width - k // width).abs() <= 6) & ((q % width - k % width).abs() <= 6)
    return None, lambda: mask, []


# Masks and scores of papers: Sparse Transformer (Child et al., 2019), StreamingLLM (Xiao
# et al., 2023), T5 (Raffel et al., 2019), dilated neighbourhoods.


@case()
def first_and_near(torch, device, heads, length):
    return None, lambda: lambda b, h, q, k: (q >= k) & ((q - k < 512) | (k < 4)), []


@case()
def strided(torch, device, heads, length):
    return None, lambda: lambda b, h, q, k: (q >= k) & ((q - k < 128) | ((q - k) % 128 == 0)), []


@case()
def fixed(torch, device, heads, length):
    return None, lambda: lambda b, h, q, k: (q >= k) & ((q // 128 == k // 128) | (k % 128 >= 112)), []


@case()
def bucketed_bias(torch, device, heads, length):
    """32 buckets: one for each of 16 distances, and 16 that grow to 128."""
    table = torch.randn(heads, 32, device=device)
    distances = torch.arange(length, device=device)
    far = 16 + (torch.log(distances.clamp(min=1) / 16) / math.log(128 / 16) * 16).long()
    buckets = torch.where(distances < 16, distances, far.clamp(max=31)).to(torch.int32)

    def make(table):
        return lambda s, b, h, q, k: s + table[h, buckets[(q - k).clamp(min=0)]]
    return make, lambda: causal_mask, [table]


@case()
def dilated_window(torch, device, heads, length):
    return None, lambda: lambda b, h, q, k: ((q - k).abs() < length // 8) & ((q - k) % 4 == 0), []


@case()
def alibi_in_window(torch, device, heads, length):
    reach = length // 8

    def score(s, b, h, q, k):
        return s + (k - q) * torch.exp2(-((h + 1) * 8.0 / heads))
    return lambda: score, lambda: lambda b, h, q, k: (q >= k) & (q - k < reach), []


@case()
def global_and_near(torch, device, heads, length):
    """Longformer and BigBird: a window to both sides, and 64 tokens that see and are seen."""
    return None, lambda: lambda b, h, q, k: ((q - k).abs() <= 256) | (q < 64) | (k < 64), []
