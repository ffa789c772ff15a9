#===----------------------------------------------------------------------===#
#
# Part of attn, an attention compiler.
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===----------------------------------------------------------------------===#
"""What is near to attention and is none, or is attention of another kind than it seems:
none of these may become what it is not."""

import torch
import torch.nn.functional as F

from .table import BATCH, DIM, HEADS, LENGTH, OTHER, QKV, WIDTH, spelling

SQUARE = [(BATCH, HEADS, 8, 8)] * 3


def scores_of(q, k):
    return torch.matmul(q, k.transpose(-2, -1)) * 0.3


@spelling(reasons="over other positions than the keys")
def over_queries(q, k, v):
    return scores_of(q, k).softmax(-2) @ v


@spelling(reasons="over other positions than the keys")
def over_heads(q, k, v):
    return scores_of(q, k).softmax(1) @ v


@spelling(of=SQUARE, reasons="over other positions than the keys")
def over_the_wrong_side_of_a_square(q, k, v):
    """Keys, queries and dimensions are eight each."""
    return torch.softmax(q @ k * 0.3, dim=-2) @ v


@spelling(of=SQUARE)
def a_square_without_a_transpose(q, k, v):
    """Attention, of keys that are columns."""
    return torch.softmax(q @ k * 0.3, dim=-1) @ v


@spelling(of=SQUARE)
def a_square_whose_weights_are_transposed_twice(q, k, v):
    return (v.mT @ torch.softmax(k @ q * 0.3, dim=-2)).mT


@spelling(of=SQUARE, reasons="over other positions than the keys")
def a_square_whose_weights_are_transposed_once(q, k, v):
    return torch.softmax(q @ k.mT * 0.3, dim=-1).mT @ v


@spelling(reasons="")
def over_keys_and_queries(q, k, v):
    s = scores_of(q, k)
    return s.flatten(-2).softmax(-1).view_as(s) @ v


@spelling(torch.rand(LENGTH, LENGTH) > 0.4, reasons="the weights are 0 where")
def a_mask_after_the_softmax(q, k, v, seen):
    return (scores_of(q, k).softmax(-1) * seen) @ v


@spelling(torch.rand(LENGTH, LENGTH) > 0.4, reasons="the weights are 0 where")
def another_mask_after_the_softmax(q, k, v, seen):
    s = scores_of(q, k).masked_fill(torch.ones(LENGTH, LENGTH).triu(1).bool()[: q.shape[2], : q.shape[2]], -1e9)
    return s.softmax(-1).masked_fill(~seen, 0.0) @ v


@spelling(torch.rand(LENGTH, LENGTH) > 0.4)
def a_product_with_a_mask_that_is_not_hidden_before(q, k, v, seen):
    """Scores of 0 still count."""
    return (scores_of(q, k) * seen).softmax(-1) @ v


@spelling(torch.rand(LENGTH, LENGTH) > 0.4)
def a_small_penalty(q, k, v, seen):
    """What is 'hidden' by -1 is seen."""
    return (scores_of(q, k) + (1 - seen.float()) * -1.0).softmax(-1) @ v


@spelling(torch.rand(LENGTH, LENGTH) > 0.4)
def a_mask_the_wrong_way(q, k, v, seen):
    """A positive fill: what is filled wins."""
    return scores_of(q, k).masked_fill(seen, 1e4).softmax(-1) @ v


@spelling()
def a_mask_of_the_smallest_number(q, k, v):
    """finfo.tiny for finfo.min: a fill of 0, as it were."""
    s = scores_of(q, k)
    hidden = torch.ones(s.shape[-2:], dtype=torch.bool).triu(1)
    return s.masked_fill(hidden, torch.finfo(s.dtype).tiny).softmax(-1) @ v


@spelling(reasons="the scores hold a sum")
def a_mask_of_values(q, k, v):
    """Scores hide themselves."""
    s = scores_of(q, k)
    return torch.where(s > -0.5, s, -torch.inf).softmax(-1) @ v


@spelling(reasons="a part of several results")
def a_mask_of_the_largest_values(q, k, v):
    """The third largest of a row is the threshold."""
    s = scores_of(q, k)
    third = s.topk(3, dim=-1).values[..., -1:]
    return s.masked_fill(s < third, -torch.inf).softmax(-1) @ v


@spelling()
def scores_that_are_read_twice(q, k, v):
    s = scores_of(q, k)
    return s.softmax(-1) @ v, s


@spelling(reasons="also returned")
def weights_that_are_returned(q, k, v):
    w = scores_of(q, k).softmax(-1)
    return w @ v, w


@spelling(reasons="read by several")
def weights_that_are_measured(q, k, v):
    w = scores_of(q, k).softmax(-1)
    return w @ v, -(w * torch.log(w + 1e-9)).sum(-1)


@spelling((BATCH, HEADS, LENGTH, DIM), reasons="read by several")
def two_products_of_one_softmax(q, k, v, u):
    w = scores_of(q, k).softmax(-1)
    return w @ v, w @ u


@spelling((BATCH, HEADS, LENGTH, DIM), (BATCH, HEADS, LENGTH, DIM), (), reasons=("the weights are multiplied", "the weights are multiplied"))
def difference_of_two_softmaxes(q, k, v, other_q, other_k, weight):
    w = scores_of(q, k).softmax(-1) - weight.sigmoid() * scores_of(other_q, other_k).softmax(-1)
    return w @ v


@spelling((BATCH, HEADS, LENGTH, DIM), (BATCH, HEADS, LENGTH, DIM), (), raised=2)
def difference_of_two_attentions(q, k, v, other_q, other_k, weight):
    return scores_of(q, k).softmax(-1) @ v - weight.sigmoid() * (scores_of(other_q, other_k).softmax(-1) @ v)


@spelling(raised=0)
def sigmoid_of_scores(q, k, v):
    return torch.sigmoid(scores_of(q, k) - 2.3) @ v


@spelling(raised=0)
def squares_of_scores(q, k, v):
    s = F.relu(scores_of(q, k)) ** 2
    return (s / (s.sum(-1, keepdim=True) + 1e-6)) @ v


@spelling(reasons="multiplied with math.exp")
def softmax_and_a_power(q, k, v):
    return scores_of(q, k).softmax(-1) ** 2 @ v


@spelling(reasons="several operations: sum")
def weights_divided_by_their_sums_over_queries(q, k, v):
    """Slots: keys share themselves among queries, then rows are made means."""
    w = scores_of(q, k).softmax(dim=-2) + 1e-8
    return (w / w.sum(-1, keepdim=True)) @ v


@spelling(reasons="several operations: sum")
def normalised_twice(q, k, v):
    w = scores_of(q, k).softmax(-1)
    w = w / (w.sum(dim=-2, keepdim=True) + 1e-6)
    return w @ v


@spelling(reasons=("read by softmax", ""))
def softmax_of_a_softmax(q, k, v):
    return scores_of(q, k).softmax(-1).softmax(-1) @ v


@spelling(reasons="the weights are multiplied")
def weights_and_the_identity(q, k, v):
    w = scores_of(q, k).softmax(-1)
    return (w + torch.eye(w.shape[-1])) @ v


@spelling(reasons="several operations: gt")
def the_largest_weights_only(q, k, v):
    w = scores_of(q, k).softmax(-1)
    return torch.where(w > 0.1, w, 0.0) @ v


@spelling(reasons="read by several")
def weights_sampled(q, k, v):
    w = scores_of(q, k).softmax(-1)
    hard = torch.zeros_like(w).scatter_(-1, w.argmax(-1, keepdim=True), 1.0)
    return (hard - w.detach() + w) @ v


@spelling(raised=0)
def a_denominator_with_more(q, k, v):
    """The sum of other exponentials."""
    s = scores_of(q, k)
    e = s.exp()
    return (e / (s * 0.5).exp().sum(-1, keepdim=True)) @ v


@spelling(reasons="")
def a_denominator_of_all_rows(q, k, v):
    e = scores_of(q, k).exp()
    return (e / e.sum((-2, -1), keepdim=True)) @ v


@spelling(reasons="")
def a_denominator_along_queries(q, k, v):
    e = scores_of(q, k).exp()
    return (e / e.sum(-2, keepdim=True)) @ v


@spelling(raised=0)
def numerators_of_other_scores(q, k, v):
    s = scores_of(q, k)
    e = s.exp()
    return ((s + torch.eye(s.shape[-1])).exp() / e.sum(-1, keepdim=True)) @ v


@spelling(raised=0)
def scores_divided_by_their_sum(q, k, v):
    s = scores_of(q, k).abs()
    return (s / s.sum(-1, keepdim=True)) @ v


@spelling(reasons="mean is not an operation")
def scores_with_their_mean_over_queries(q, k, v):
    """What is subtracted is another number for each key."""
    s = scores_of(q, k)
    return (s - s.mean(dim=-2, keepdim=True)).softmax(-1) @ v


@spelling(reasons="in two places")
def scores_with_their_largest_of_queries(q, k, v):
    s = scores_of(q, k)
    return (s - s.amax(dim=-2, keepdim=True)).softmax(-1) @ v


@spelling(reasons="no product")
def normalised_scores(q, k, v):
    s = scores_of(q, k)
    return F.layer_norm(s, s.shape[-1:]).softmax(-1) @ v


@spelling(reasons="roll is not")
def keys_that_move_along(q, k, v):
    """Scores are rolled, which no position of attention can say."""
    return torch.roll(scores_of(q, k), 1, -1).softmax(-1) @ v


@spelling(reasons="flip is not")
def keys_in_reverse(q, k, v):
    return scores_of(q, k).flip(-1).softmax(-1) @ v


@spelling()
def keys_and_values_in_reverse(q, k, v):
    return scores_of(q, k.flip(2)).softmax(-1) @ v.flip(2)


@spelling(of=[(BATCH, HEADS, LENGTH, DIM), (BATCH, HEADS, 8, DIM), (BATCH, HEADS, LENGTH, DIM)], reasons="the keys of the scores")
def fewer_keys_than_values(q, k, v):
    """Scores of eight keys and two columns of zeros."""
    s = torch.cat([scores_of(q, k), q.new_zeros(q.shape[0], HEADS, q.shape[2], 2)], -1)
    return s.softmax(-1) @ v[:, :, :10]


@spelling(reasons="read by avg_pool2d")
def a_convolution_of_weights(q, k, v):
    w = scores_of(q, k).softmax(-1)
    return F.avg_pool2d(w, 3, 1, 1) @ v


@spelling(reasons="a slice with a step")
def changed_in_place_before(q, k, v):
    s = scores_of(q, k)
    s[..., ::2] *= 0.5
    return s.softmax(-1) @ v


@spelling(reasons="matmul, setitem")
def changed_in_place_after(q, k, v):
    w = scores_of(q, k).softmax(-1).clone()
    w[..., 0] = 0.0
    return w @ v


@spelling(torch.randn(BATCH, HEADS, LENGTH, DIM))
def values_that_are_changed_between(q, k, v, more):
    more = more.clone()
    s = scores_of(q, more.sin())
    w = s.softmax(-1)
    more.add_(1.0)
    return w @ (v + more)


@spelling(torch.zeros(LENGTH, LENGTH))
def a_mask_that_is_changed_between(q, k, v, bias):
    bias = bias.clone()
    s = scores_of(q, k) + bias
    bias.fill_(3.0)
    return s.softmax(-1) @ v + bias.mean()


@spelling(raised=0)
def sparsemax(q, k, v):
    s = scores_of(q, k)
    z, _ = s.sort(dim=-1, descending=True)
    total = z.cumsum(-1) - 1
    rank = torch.arange(1, s.shape[-1] + 1)
    support = (rank * z > total).sum(-1, keepdim=True)
    tau = total.gather(-1, support - 1) / support
    return torch.clamp(s - tau, min=0) @ v


@spelling((HEADS,), reasons="other positions than the keys")
def a_sink_in_front_and_the_last_key_left_out(q, k, v, sink):
    """What is left out is the last key, and no sink."""
    s = q @ k.mT * 0.3
    first = sink[None, :, None, None].expand(*s.shape[:3], 1)
    return torch.cat((first, s), dim=-1).softmax(dim=-1)[..., :-1] @ v


@spelling(reasons="the queries of the scores are not those of the output")
def the_largest_score_of_a_key(q, k, v):
    """A query that is a maximum over queries, as in BiDAF."""
    s = scores_of(k, q[:, :, :OTHER]).max(-1).values
    return s.softmax(-1).unsqueeze(-2) @ v


@spelling(of=[(BATCH, LENGTH, DIM), (BATCH, OTHER, DIM)], reasons="the queries of the scores are not those of the output")
def the_largest_score_of_a_key_without_heads(context, question):
    s = scores_of(context, question).amax(-1)
    return s.softmax(-1).unsqueeze(1) @ context


@spelling(of=[(BATCH, LENGTH, DIM), (BATCH, OTHER, DIM)], reasons="the queries of the scores are not those of the output")
def the_sum_of_the_scores_of_a_key(context, question):
    s = scores_of(context, question).sum(-1)
    return s.softmax(-1).unsqueeze(1) @ context


@spelling((LENGTH,), reasons="the softmax: linear is not read as one")
def a_product_by_linear(q, k, v, bias):
    return F.linear(q[0, 0], k[0, 0], bias).softmax(-1) @ v[0, 0]


@spelling((LENGTH, LENGTH), reasons="the softmax: addbmm is not read as one")
def a_product_that_is_added(q, k, v, bias):
    return torch.addbmm(bias, q[0], k[0].mT).softmax(-1) @ v[0, 0]


@spelling((HEADS,), reasons="the softmax: einsum is not read as one")
def a_product_of_three(q, k, v, scale):
    return torch.einsum("b...id,b...jd,...->b...ij", q, k, scale).softmax(-1) @ v


@spelling(reasons="the softmax: cdist is not read as one")
def distances(q, k, v):
    return (-torch.cdist(q, k)).softmax(-1) @ v


@spelling(reasons="the weights are also returned or kept in an attribute")
class weights_that_are_kept(torch.nn.Module):
    def forward(self, q, k, v):
        self.weights = scores_of(q, k).softmax(-1)
        return self.weights @ v


@spelling(raised=0)
def a_softmax_of_torch_masked(q, k, v):
    """It has a mask."""
    s = scores_of(q, k)
    return torch.masked.softmax(s, -1, mask=torch.ones_like(s, dtype=torch.bool).tril()) @ v


@torch.compiler.allow_in_graph
def softmax(scores, dim):
    """One node of a graph, which computes something else."""
    return torch.softmax(scores * 2, dim)


@torch.compiler.allow_in_graph
def tanh(scores):
    return torch.tanh(scores) * 5


@spelling(raised=0)
def a_function_that_is_called_softmax(q, k, v):
    return softmax(scores_of(q, k), -1) @ v


@spelling(reasons="tanh is not an operation")
def a_function_that_is_called_tanh(q, k, v):
    return tanh(scores_of(q, k)).softmax(-1) @ v
