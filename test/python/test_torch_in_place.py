#===----------------------------------------------------------------------===#
#
# Part of attn, an attention compiler.
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===----------------------------------------------------------------------===#
"""Attention in which something is written to in place: what a kernel reads is what was
there at that place of the program."""

import pytest

torch = pytest.importorskip("torch", reason="in-place operations are those of PyTorch")

from torch.nn import functional as F  # noqa: E402

from attn.torch import backend  # noqa: E402

BATCH, HEADS, LENGTH, DIM = 2, 3, 37, 16
WEIGHT = torch.linspace(-1, 1, DIM * DIM).reshape(DIM, DIM).sin()
CASES = []


def case(function):
    CASES.append(function)
    return function


def attend(scores, v):
    return scores.softmax(-1) @ v


# Queries and keys.


@case
def query_by_imul(q, k, v):
    q = F.linear(q, WEIGHT)
    q *= DIM**-0.5
    return attend(q @ k.mT, v)


@case
def query_by_itruediv(q, k, v):
    q = F.linear(q, WEIGHT)
    q /= DIM**0.5
    return attend(q @ k.mT, v)


@case
def key_by_div_of_a_view(q, k, v):
    k = F.linear(k, WEIGHT)
    k.transpose(1, 2).div_(4)
    return attend(q @ k.mT, v)


@case
def query_twice(q, k, v):
    q = q + 1
    q *= 0.5
    q.mul_(0.5)
    return attend(q @ k.mT, v)


@case
def value_behind_the_weights(q, k, v):
    v = F.linear(v, WEIGHT)
    weights = (q @ k.mT / 4).softmax(-1)
    v *= 3
    return weights @ v


@case
def both_at_once(q, k, v):
    factors = [q * 1.0, k * 1.0]
    torch._foreach_mul_(factors, 0.5)
    return attend(factors[0] @ factors[1].mT, v)


# Biases and masks.


@case
def bias_in_part_and_whole(q, k, v):
    bias = torch.zeros(LENGTH, LENGTH)
    bias[:, 5:9] = 1.0
    bias *= -3.0
    return attend(q @ k.mT / 4 + bias, v)


@case
def mask_inverted(q, k, v):
    hidden = torch.zeros(LENGTH, LENGTH, dtype=torch.bool)
    hidden[:, 9:] = True
    hidden.logical_not_()
    return attend((q @ k.mT / 4).masked_fill(hidden, -1e9), v)


@case
def mask_by_ixor(q, k, v):
    hidden = torch.zeros(LENGTH, LENGTH, dtype=torch.bool)
    hidden[:, 4:9] = True
    hidden ^= torch.ones(LENGTH, dtype=torch.bool)
    return attend((q @ k.mT / 4).masked_fill(hidden, -1e9), v)


@case
def mask_of_ones(q, k, v):
    bias = torch.empty(LENGTH, LENGTH).fill_(1).triu_(1).mul_(-1e9)
    return attend(q @ k.mT / 4 + bias, v)


@case
def bias_interpolated(q, k, v):
    bias = F.interpolate(k[:, :, :8, :8], (LENGTH, LENGTH), mode="bilinear")
    bias *= 3.0
    return attend(q @ k.mT / 4 + bias, v)


@case
def bias_zeroed(q, k, v):
    bias = torch.empty(LENGTH, LENGTH)
    bias.zero_()
    bias += torch.arange(LENGTH) / 10
    return attend(q @ k.mT / 4 + bias, v)


# Scores.


@case
def scores_by_exp(q, k, v):
    weights = (q @ k.mT / 4).exp_()
    return (weights / weights.sum(-1, keepdim=True)) @ v


@case
def scores_by_sub_and_exp(q, k, v):
    scores = q @ k.mT / 4
    scores -= scores.amax(-1, keepdim=True)
    scores.exp_()
    scores /= scores.sum(-1, keepdim=True)
    return scores @ v


@case
def scores_by_inplace(q, k, v):
    scores = q @ k.mT / 4
    F.relu(scores, inplace=True)
    return attend(scores, v)


@case
def scores_by_a_module(q, k, v):
    scores = q @ k.mT / 4
    torch.nn.Hardtanh(-0.5, 0.5, inplace=True)(scores)
    return attend(scores, v)


@case
def scores_into_out(q, k, v):
    scores = q @ k.mT
    torch.mul(scores, 0.25, out=scores)
    return attend(scores, v)


# Numbers at a mask.

LATER = torch.ones(LENGTH, LENGTH).triu(1).bool()


@case
def number_at_a_mask(q, k, v):
    scores = q @ k.mT / 4
    scores[LATER.expand(BATCH, HEADS, LENGTH, LENGTH)] = -1e6
    return attend(scores, v)


@case
def number_at_a_mask_behind_batches(q, k, v):
    scores = q @ k.mT / 4
    scores[:, :, LATER] = float("-inf")
    return attend(scores, v)


@case
def number_at_a_mask_of_keys(q, k, v):
    scores = q @ k.mT / 4
    scores[..., torch.arange(LENGTH) > 20] = -1e9
    return attend(scores, v)


@case
def number_at_a_mask_of_batches_and_heads(q, k, v):
    """All scores of a head are one number, in one of the batches."""
    scores = q @ k.mT / 4
    scores[torch.eye(BATCH, HEADS).bool()] = 1
    return attend(scores, v)


@case
def number_at_a_mask_of_a_bias(q, k, v):
    bias = torch.zeros(LENGTH, LENGTH)
    bias[LATER] = float("-inf")
    return attend(q @ k.mT / 4 + bias, v)


@case
def numbers_at_two_masks(q, k, v):
    scores = q @ k.mT / 4
    scores[:, :, LATER] = -1e9
    scores[:, :, LATER.mT, ...] = 0.5
    return attend(scores, v)


@case
def number_at_a_mask_that_changes(q, k, v):
    scores, hidden = q @ k.mT / 4, LATER.clone()
    scores[:, :, hidden] = -1e9
    hidden.logical_not_()
    return attend(scores, v)


@case
def number_at_a_mask_of_scores_that_are_returned(q, k, v):
    scores = q @ k.mT / 4
    scores[:, :, LATER] = -1e9
    return attend(scores, v) + scores[..., :1]


@case
def number_at_a_mask_of_a_part(q, k, v):
    scores = q @ k.mT / 4
    scores[:, 0, LATER] = -1e9
    return attend(scores, v)


@case
def number_at_a_mask_of_a_view(q, k, v):
    scores = q @ k.mT / 4
    scores.mT[:, :, LATER] = -1e9
    return attend(scores, v)


@case
def number_at_a_place(q, k, v):
    scores = q @ k.mT / 4
    scores[:, :, torch.arange(3), torch.arange(3)] = -1e9
    return attend(scores, v)


@case
def tensor_at_a_mask(q, k, v):
    scores = q @ k.mT / 4
    scores[:, :, LATER] = v[0, 0, 0, 0]
    return attend(scores, v)


@case
def bias_beside_one_that_is_written_to(q, k, v):
    """Of equal shapes in one memory."""
    both = torch.zeros(2, LENGTH, LENGTH)
    bias, other = both
    other.fill_(3).triu_()
    return attend(q @ k.mT / 4 + bias, v)


@case
def half_of_queries_beside_one_that_is_written_to(q, k, v):
    q = q * 1.0
    first, second = q[..., :8], q[..., 8:]
    second.mul_(3)
    return attend(first @ k[..., :8].mT, v)


# What a kernel may be of, and is.
FUSED = {number_at_a_mask, number_at_a_mask_behind_batches, number_at_a_mask_of_keys, number_at_a_mask_of_a_bias,
         number_at_a_mask_of_batches_and_heads, numbers_at_two_masks, query_by_imul, query_by_itruediv, query_twice, bias_in_part_and_whole, mask_inverted, mask_by_ixor, mask_of_ones,
         bias_interpolated, bias_zeroed, scores_by_exp, scores_by_inplace}


@pytest.mark.parametrize("has_gradients", [False, True], ids=["values", "gradients"])
@pytest.mark.parametrize("function", CASES, ids=lambda function: function.__name__)
def test_in_place(function, has_gradients):
    torch.manual_seed(1)
    inputs = [torch.randn(BATCH, HEADS, LENGTH, DIM, requires_grad=has_gradients) for _ in range(3)]
    if has_gradients and function in (scores_into_out, scores_by_sub_and_exp, scores_by_exp, number_at_a_mask_that_changes):
        pytest.skip("autograd does not differentiate it")
    torch._dynamo.reset()
    found = []
    with torch.set_grad_enabled(has_gradients):
        compiled = torch.compile(function, backend=lambda graph, examples: backend.backend(
            graph, examples, inner="eager", listener=found.extend))
        wanted, got = function(*inputs), compiled(*inputs)
        torch.testing.assert_close(got, wanted, atol=2e-5, rtol=2e-5)
        if has_gradients:
            upstream = torch.randn_like(wanted)
            for mine, its in zip(torch.autograd.grad(got, inputs, upstream), torch.autograd.grad(wanted, inputs, upstream)):
                torch.testing.assert_close(mine, its, atol=1e-4, rtol=1e-4)
    if function in FUSED:
        assert [each.raised for each in found] == [True], found


def test_inputs_are_written_to():
    """What a graph writes to is written to, also where a kernel reads it."""
    def written(q, k, v, bias):
        bias[LATER] = -1e6
        return attend(q @ k.mT / 4 + bias, v)

    inputs = [torch.randn(BATCH, HEADS, LENGTH, DIM) for _ in range(3)]
    first, second = torch.zeros(LENGTH, LENGTH), torch.zeros(LENGTH, LENGTH)
    torch._dynamo.reset()
    got = torch.compile(written, backend="attn", options={"inner": "eager"})(*inputs, first)
    torch.testing.assert_close(got, written(*inputs, second), atol=2e-5, rtol=2e-5)
    assert torch.equal(first, second)
