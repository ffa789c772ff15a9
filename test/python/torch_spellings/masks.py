#===----------------------------------------------------------------------===#
#
# Part of attn, an attention compiler.
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===----------------------------------------------------------------------===#
"""Masks, as models write them."""

import torch
import torch.nn.functional as F

from .table import BATCH, DIM, HEADS, LENGTH, OTHER, QKV, spelling

SHOWN = torch.ones(BATCH, LENGTH)
SHOWN[1, 7:] = 0
SHOWN[2, 9:] = 0
FLAGS = SHOWN.bool()
DOCUMENTS = torch.tensor([[0] * 4 + [1] * 6, [0] * 7 + [1] * 3, [0, 1, 1, 2, 2, 2, 3, 3, 4, 4]])


def scores_of(q, k):
    return torch.matmul(q, k.transpose(-2, -1)) / DIM**0.5


@spelling(FLAGS)
def lowest_by_a_where(q, k, v, shown):
    s = scores_of(q, k)
    both = torch.tril(torch.ones_like(s[0, 0], dtype=torch.bool))[None] & shown[:, None, :]
    return torch.where(both[:, None], s, torch.finfo(s.dtype).min).softmax(-1) @ v


@spelling()
def minus_ten_thousand(q, k, v):
    s = scores_of(q, k)
    hidden = torch.triu(torch.ones(s.shape[-2:]), 1) == 1
    return s.masked_fill(hidden, -1e4).softmax(-1) @ v


@spelling(SHOWN)
def one_minus_a_mask_by_broadcasts(q, k, v, shown):
    n = q.shape[2]
    at = torch.arange(n)
    causal = at[None, None, :].repeat(q.shape[0], n, 1) <= at[None, :, None]
    mask = causal.to(shown.dtype)[:, None, :, :] * shown[:, None, None, :]
    mask = (1.0 - mask) * -10000.0
    return (scores_of(q, k) + mask).softmax(-1) @ v


@spelling(SHOWN)
def logarithm_of_a_mask(q, k, v, shown):
    return (scores_of(q, k) + torch.log(shown)[:, None, None]).softmax(-1) @ v


@spelling(SHOWN)
def scores_times_a_mask(q, k, v, shown):
    """What is hidden is 0 first, then far below."""
    m = shown[:, None, None, :]
    return (scores_of(q, k) * m - 1e10 * (1 - m)).softmax(-1) @ v


@spelling()
def triangle_of_floats_times_scores(q, k, v):
    """The first GPT's way."""
    s = scores_of(q, k)
    b = torch.tril(torch.ones(s.shape[-2:])).view(1, 1, *s.shape[-2:])
    return (s * b + -1e9 * (1 - b)).softmax(-1) @ v


@spelling(DOCUMENTS)
def documents_by_their_numbers(q, k, v, numbers):
    same = numbers.unsqueeze(-1).eq(numbers.unsqueeze(-2))
    mask = same.unsqueeze(1) & torch.ones(same.shape[-2:], dtype=torch.bool).tril()
    return scores_of(q, k).masked_fill(mask.logical_not(), -torch.inf).softmax(-1) @ v


@spelling((DOCUMENTS.diff(dim=1, prepend=DOCUMENTS[:, :1]) != 0).long())
def documents_by_where_they_begin(q, k, v, begins):
    numbers = torch.cumsum(begins, dim=-1)
    mask = (numbers[:, None, :, None] == numbers[:, None, None, :]).tril()
    return scores_of(q, k).masked_fill(~mask, torch.finfo(q.dtype).min).softmax(-1) @ v


@spelling(torch.tensor([10, 7, 9]))
def lengths(q, k, v, count):
    at = torch.arange(k.shape[2])
    hidden = at.expand(count.shape[0], -1) >= count.unsqueeze(1)
    return scores_of(q, k).masked_fill(hidden[:, None, None], float("-inf")).softmax(-1) @ v


@spelling(FLAGS)
def window_and_padding_by_bits(q, k, v, shown):
    n = q.shape[2]
    i, j = torch.meshgrid(torch.arange(n), torch.arange(n), indexing="ij")
    near = torch.bitwise_and(j <= i, torch.bitwise_not(i - j > 3))
    mask = near.__and__(shown[:, None, None, :])
    mask |= torch.eye(n, dtype=torch.bool)
    return scores_of(q, k).masked_fill_(mask ^ True, -torch.inf).softmax(-1) @ v


@spelling()
def prefix_of_a_language_model(q, k, v):
    n = q.shape[2]
    mask = torch.tril(torch.ones(n, n))
    mask[:, :4] = 1
    s = scores_of(q, k) + (mask - 1.0) * 1e9
    return s.softmax(-1) @ v


@spelling()
def blocks_written_in_a_loop(q, k, v):
    n = q.shape[2]
    mask = torch.full((n, n), -torch.inf)
    for first in (0, 4, 8):
        mask[first: first + 4, first: first + 4] = 0
    return (scores_of(q, k) + mask).softmax(-1) @ v


@spelling()
def dilated(q, k, v):
    at = torch.arange(q.shape[2])
    away = at[:, None] - at[None, :]
    mask = (away % 3 == 0) | (away.abs() < 2)
    return scores_of(q, k).masked_fill(~mask, -1e30).softmax(-1) @ v


@spelling(torch.rand(BATCH, LENGTH, LENGTH) > 0.3)
def rows_that_see_nothing_become_zero(q, k, v, seen):
    seen = seen.clone()
    seen[0, 2] = False
    s = scores_of(q, k).masked_fill(~seen[:, None], float("-inf"))
    return torch.nan_to_num(s.softmax(-1), 0.0) @ v


@spelling(torch.rand(BATCH, LENGTH, LENGTH) > 0.3)
def weights_that_are_no_numbers_become_zero(q, k, v, seen):
    seen = seen.clone()
    seen[0, 2] = False
    w = scores_of(q, k).masked_fill(~seen[:, None], float("-inf")).softmax(-1)
    return torch.where(torch.isnan(w), 0.0, w) @ v


@spelling(FLAGS)
def weights_are_hidden_once_more(q, k, v, shown):
    """The fill may be any that is far below."""
    m = shown[:, None, None, :]
    s = scores_of(q, k).masked_fill(m == 0, -1e9)
    return s.softmax(-1).masked_fill(m == 0, 0.0) @ v


@spelling(FLAGS)
def weights_times_their_mask(q, k, v, shown):
    m = shown[:, None, None, :].to(q.dtype)
    s = scores_of(q, k) + (1 - m) * -1e9
    return (s.softmax(-1) * m) @ v


@spelling(FLAGS)
def rows_of_padding_become_zero(q, k, v, shown):
    """A mask of queries, after the softmax."""
    s = scores_of(q, k).masked_fill(~shown[:, None, None, :], -1e9)
    return s.softmax(-1).masked_fill(~shown[:, None, :, None], 0.0) @ v


@spelling((1, HEADS, 1, 1), of=QKV, reasons="the weights are multiplied with an element")
def heads_that_are_switched_off(q, k, v, kept):
    return (scores_of(q, k).softmax(-1) * kept) @ v


@spelling(torch.rand(BATCH, 1, LENGTH, LENGTH) > 0.3, raised=3)
def one_mask_of_three_layers(q, k, v, seen):
    mask = torch.zeros(seen.shape).masked_fill_(~seen, -1e30)
    for _ in range(3):
        q = q + (scores_of(q, k) + mask).softmax(-1) @ v
    return q


@spelling(torch.randint(0, 2, (BATCH, LENGTH), dtype=torch.uint8))
def bytes_that_hide(q, k, v, hidden):
    s = scores_of(q, k)
    return (s - 1e9 * hidden[:, None, None, :].type_as(s)).softmax(-1) @ v


@spelling(torch.randint(0, 2, (BATCH, LENGTH)))
def integers_that_show(q, k, v, shown):
    at = torch.arange(q.shape[2])
    mask = (at[:, None] >= at) * (shown[:, None, None, :] > 0)
    s = scores_of(q, k)
    return s.masked_fill(mask == 0, torch.finfo(s.dtype).min).softmax(-1) @ v


@spelling(torch.randint(0, 3, (BATCH, LENGTH)))
def images_that_see_all_of_themselves(q, k, v, kind):
    """Causal, but for blocks of one kind."""
    is_image = kind == 1
    begins = is_image & ~F.pad(is_image, (1, 0), value=0)[:, :-1]
    group = torch.where(is_image, torch.cumsum(begins.int(), dim=1) - 1, -1)
    same = (group[:, :, None] == group[:, None, :]) & (group[:, :, None] >= 0)
    seen = torch.ones(q.shape[2], q.shape[2], dtype=torch.bool).tril() | same
    return scores_of(q, k).masked_fill(~seen[:, None], -torch.inf).softmax(-1) @ v


@spelling(torch.randn(BATCH, HEADS, LENGTH, LENGTH))
def keys_above_a_threshold_of_data(q, k, v, noise):
    s = scores_of(q, k)
    return torch.where(noise > 0, s, s - 30.0).softmax(-1) @ v


@spelling(of=[(BATCH, HEADS, LENGTH, DIM), (BATCH, HEADS, OTHER, DIM), (BATCH, HEADS, OTHER, DIM)])
def causal_of_the_last_queries(q, k, v):
    n, m = q.shape[-2], k.shape[-2]
    mask = torch.ones((n, m), dtype=torch.bool).triu(m - n + 1)
    s = torch.einsum("bhid,bhjd->bhij", q, k) * DIM**-0.5
    return s.masked_fill(mask, -torch.finfo(s.dtype).max).softmax(dim=-1, dtype=torch.float32) @ v


@spelling()
def no_key_of_the_first_row(q, k, v):
    """Strictly before: a finite mask, and the row of all that is the same."""
    n = q.shape[2]
    hidden = torch.ones(n, n).triu() > 0
    return scores_of(q, k).masked_fill(hidden, -1e9).softmax(-1) @ v


@spelling(torch.tensor([3, 0, 2]))
def padding_on_the_left(q, k, v, pads):
    n = q.shape[2]
    at = torch.arange(n)
    seen = (at[None, :] <= at[:, None])[None] & (at[None, None, :] >= pads[:, None, None])
    bias = torch.zeros(seen.shape, dtype=q.dtype)
    bias = bias.masked_fill(torch.logical_not(seen), torch.finfo(q.dtype).min)
    return (scores_of(q, k) + bias.unsqueeze(1)).softmax(-1) @ v
