#===----------------------------------------------------------------------===#
#
# Part of attn, an attention compiler.
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===----------------------------------------------------------------------===#
"""Scores, masks and biases that are written to in part: in a kernel that is a choice."""

import pytest

torch = pytest.importorskip("torch", reason="in-place operations are those of PyTorch")

from attn.torch import backend  # noqa: E402

BATCH, HEADS, LENGTH, DIM = 2, 3, 37, 16
HIDDEN = torch.arange(LENGTH) % 3 == 1
CASES = {}


def case(*shape, raised=True):
    """Of q, k, v and a bias of this shape, if there is one."""
    def note(function):
        CASES[function] = shape, raised
        return function
    return note


def attend(scores, v):
    return scores.softmax(-1) @ v


@case()
def number_from_a_key_on(q, k, v):
    scores = q @ k.mT / 4
    scores[..., 30:] = float("-inf")
    return attend(scores, v)


@case()
def number_in_a_corner(q, k, v):
    scores = q @ k.mT / 4
    scores[:, :, -7:, :3] = -1e9
    return attend(scores, v)


@case()
def number_behind_all(q, k, v):
    scores = q @ k.mT / 4
    scores[..., LENGTH + 3:] = 7
    scores[:, 1:1] = 5
    return attend(scores, v)


@case()
def number_of_one_batch_and_head(q, k, v):
    scores = q @ k.mT / 4
    scores[1, 2, 3:, None, 5:9] = 2
    return attend(scores, v)


@case()
def numbers_over_each_other(q, k, v):
    scores = q @ k.mT / 4
    scores[:, :, 5:20, 5:20] = 1
    scores[:, :, 10:30] = 2
    scores[..., 15] = -1e9
    return attend(scores, v)


@case()
def number_at_a_part_of_a_part(q, k, v):
    scores = q @ k.mT / 4
    scores[:, 1:][:, :, 3:].mT[:, :, 4:9] = -1
    return attend(scores, v)


@case()
def mask_at_a_view(q, k, v):
    scores = q @ k.mT / 4
    scores[:, :, 1:].masked_fill_(HIDDEN, -1e4)
    return attend(scores, v)


@case()
def mask_at_another_shape(q, k, v):
    scores = torch.bmm(q.flatten(0, 1), k.flatten(0, 1).mT) / 4
    scores.view(BATCH, HEADS, LENGTH, LENGTH)[:, 1].masked_fill_(HIDDEN, -1e4)
    return torch.bmm(scores.softmax(-1), v.flatten(0, 1)).view_as(v)


@case()
def mask_at_the_transposed(q, k, v):
    scores = q @ k.mT / 4
    scores.transpose(0, 1).masked_fill_(HIDDEN[:BATCH, None, None], -1e4)
    return attend(scores, v)


@case()
def class_token(q, k, v):
    scores = q @ k.mT / 4
    scores[..., 0] = scores[..., 0] * 0.5
    scores[:, :, 0, 1:] *= 2
    scores[:, :, 0, 0].add_(1)
    return attend(scores, v)


@case(HEADS, LENGTH - 1, LENGTH - 1)
def bias_behind_a_class_token(q, k, v, bias):
    scores = q @ k.mT / 4
    scores[:, :, 1:, 1:] += bias
    return attend(scores, v)


@case(HEADS, LENGTH - 1, LENGTH - 1)
def bias_set_behind_a_class_token(q, k, v, bias):
    scores = q @ k.mT / 4
    scores[:, :, 1:, 1:] = scores[:, :, 1:, 1:] + bias
    return attend(scores, v)


@case(HEADS, 1, 7)
def scores_that_are_set(q, k, v, bias):
    scores = q @ k.mT / 4
    scores[..., 11:18] = bias
    return attend(scores, v)


@case(1)
def number_of_a_tensor(q, k, v, bias):
    scores = q @ k.mT / 4
    scores[..., :3] = bias[0]
    return attend(scores, v)


@case(11, HEADS)
def table_behind_a_class_token(q, k, v, bias):
    scores, near = q @ k.mT / 4, torch.arange(LENGTH - 1)
    distance = (near[:, None] - near).clamp(-5, 5) + 5
    scores[:, :, 1:, 1:] += bias[distance].permute(2, 0, 1)
    return attend(scores, v)


@case()
def mask_like_scores(q, k, v):
    scores = q @ k.mT / 4
    hidden = torch.zeros_like(scores, dtype=torch.bool)
    hidden[..., 3] = True
    hidden[:, 1, :, 5:] = True
    return attend(scores.masked_fill(hidden, -1e9), v)


@case()
def view_before_a_write(q, k, v):
    scores = q @ k.mT / 4
    turned = scores.mT
    scores[..., 5:] = 1
    return attend(turned, v)


@case(raised=False)
def scores_moved(q, k, v):
    scores = q @ k.mT / 4
    scores[..., 1:] = scores[..., :-1].clone()
    return attend(scores, v)


@case()
def every_second(q, k, v):
    scores = q @ k.mT / 4
    scores[..., ::2] = 0
    return attend(scores, v)


@case()
def every_third_of_some_queries(q, k, v):
    scores = q @ k.mT / 4
    scores[:, 1, 4:-5:3, 1::2] = -1e9
    return attend(scores, v)


@case()
def diagonal(q, k, v):
    scores = q @ k.mT / 4
    scores.diagonal(dim1=-2, dim2=-1).fill_(-1e9)
    return attend(scores, v)


@case()
def diagonal_beside_it(q, k, v):
    scores = q @ k.mT / 4
    torch.diagonal(scores, 1, 2, 3).zero_()
    scores.diagonal(-2, -2, -1)[:] = 0.5
    return attend(scores, v)


@case()
def diagonal_by_a_step(q, k, v):
    scores = q @ k.mT / 4
    scores.flatten(2)[..., ::LENGTH + 1] = -1e9
    return attend(scores, v)


@case()
def diagonal_of_one_head(q, k, v):
    scores = q[0, 0] @ k[0, 0].mT / 4
    scores.fill_diagonal_(-1e9)
    return attend(scores, v[0, 0])


@case()
def heads_of_one_half(q, k, v):
    scores = q @ k.mT / 4
    scores[:, :HEADS // 2] *= 2
    scores[:, HEADS // 2:] = scores[:, HEADS // 2:] + 1
    return attend(scores, v)


@case(raised=False)
def every_second_changes(q, k, v):
    scores = q @ k.mT / 4
    scores[..., ::2] *= 0.5
    return attend(scores, v)


@case(raised=False)
def diagonal_over_heads(q, k, v):
    scores = q @ k.mT / 4
    scores.diagonal(dim1=1, dim2=-1).fill_(0.5)
    return attend(scores, v)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=["f32", "bf16"])
@pytest.mark.parametrize("function", CASES, ids=lambda function: function.__name__)
def test_part(function, dtype):
    torch.manual_seed(1)
    shape, is_raised = CASES[function]
    inputs = [torch.randn(BATCH, HEADS, LENGTH, DIM) for _ in range(3)] + ([torch.randn(shape)] if shape else [])
    inputs = [x.to(dtype).requires_grad_() for x in inputs]
    wide = [x.detach().double().requires_grad_() for x in inputs]
    torch._dynamo.reset()
    found = []
    compiled = torch.compile(function, backend=lambda graph, examples: backend.backend(
        graph, examples, inner="eager", listener=found.extend))
    got, plain, wanted = compiled(*inputs), function(*inputs), function(*wide)
    upstream = torch.randn_like(got)
    for mine, its, exact in zip(*([result, *torch.autograd.grad(result, of, upstream.to(result.dtype))]
                                  for result, of in ((got, inputs), (plain, inputs), (wanted, wide)))):
        bound = 2 * (its - exact).abs().max() + 1e-5
        assert (mine - exact).abs().max() <= bound
    assert [each.raised for each in found] == [is_raised], found


def test_lengths_that_change():
    def function(q, k, v):
        scores = q @ k.mT / 4
        scores[..., 30:] = -1e9
        scores[:, :, -5:, :4] = 1
        scores[..., 1::3] = 0.25
        scores.diagonal(dim1=-2, dim2=-1).fill_(0.5)
        return attend(scores, v)

    torch._dynamo.reset()
    found = []
    compiled = torch.compile(function, backend=lambda graph, examples: backend.backend(
        graph, examples, inner="eager", listener=found.extend))
    for length in (40, 57, 71):
        inputs = [torch.randn(BATCH, HEADS, length, DIM) for _ in range(3)]
        torch.testing.assert_close(compiled(*inputs), function(*inputs), atol=2e-5, rtol=2e-5)
    assert [each.raised for each in found] == [True, True], found


@pytest.mark.parametrize("reads", [lambda scores: scores, lambda scores: scores.mT], ids=["itself", "a view"])
@pytest.mark.parametrize("is_before", [True, False], ids=["before", "after"])
def test_scores_that_are_read_again(reads, is_before):
    """They are written to, although no kernel needs them."""
    def function(q, k, v):
        scores = q @ k.mT / 4
        other = reads(scores)
        if is_before:
            scores.masked_fill_(HIDDEN, -5)
        attention = attend(scores, v)
        scores.mul_(2)
        return attention, other

    inputs = [torch.randn(BATCH, HEADS, LENGTH, DIM) for _ in range(3)]
    torch._dynamo.reset()
    found = []
    compiled = torch.compile(function, backend=lambda graph, examples: backend.backend(
        graph, examples, inner="eager", listener=found.extend))
    torch.testing.assert_close(compiled(*inputs), function(*inputs), atol=2e-5, rtol=2e-5)
    assert [each.raised for each in found] == [True], found


def test_nothing_is_left():
    """A graph has no scores any more, where nothing but the attention read them."""
    def function(q, k, v):
        scores = q @ k.mT / 4
        scores[..., 5:] += 1
        scores.masked_fill_(torch.ones(LENGTH, LENGTH).triu(1).bool(), -1e9)
        return attend(scores, v)

    graphs = []

    def note(graph, examples):
        result = backend.backend(graph, examples, inner="eager")
        graphs.append(graph.graph)
        return result

    torch._dynamo.reset()
    torch.compile(function, backend=note)(*[torch.randn(BATCH, HEADS, LENGTH, DIM) for _ in range(3)])
    assert [node.name.split("_")[0] for node in graphs[0].nodes if node.op.startswith("call")] == ["forward", "getitem"]
