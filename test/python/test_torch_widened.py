#===----------------------------------------------------------------------===#
#
# Part of attn, an attention compiler.
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===----------------------------------------------------------------------===#
"""Queries, keys and values of 16 bits that a graph widens to float32, through
torch.compile(backend="attn"): the kernel is one of f32, and its result is not rounded."""

import pytest

torch = pytest.importorskip("torch", reason="the graphs are those of PyTorch")

from torch.nn import functional as F  # noqa: E402

from attn.torch import backend  # noqa: E402

BATCH, HEADS, LENGTH, DIM = 2, 4, 37, 16
NARROW = [torch.bfloat16, torch.float16]
CASES = []


def case(function):
    CASES.append(function)
    return function


def scores_of(q, k):
    return q @ k.mT / 4


@case
def all_are_widened(q, k, v):
    q, k, v = q.float(), k.float(), v.float()
    return scores_of(q, k).softmax(-1) @ v


@case
def and_the_result_is_rounded(q, k, v):
    kind = q.dtype
    q, k, v = q.float(), k.float(), v.float()
    return (scores_of(q, k).softmax(-1) @ v).to(kind)


@case
def weights_are_widened(q, k, v):
    return scores_of(q, k).softmax(-1).float() @ v.float()


@case
def scores_are_widened(q, k, v):
    return scores_of(q, k).float().softmax(-1) @ v.float()


@case
def widened_and_scaled(q, k, v):
    q, k, v = q.float() * 0.5, k.float(), v.float()
    return scores_of(q, k).softmax(-1) @ v


@case
def widened_and_normalised(q, k, v):
    q, k = F.normalize(q.float(), dim=-1), F.normalize(k.float(), dim=-1)
    return (scores_of(q, k) * 10).softmax(-1) @ v.float()


@case
def by_einsum_of_groups(q, k, v):
    k, v = k[:, :2].float(), v[:, :2].float()
    q = q.float().unflatten(1, (2, 2))
    s = torch.einsum("bkgid,bkjd->bkgij", q, k) * 0.3
    return torch.einsum("bkgij,bkjd->bkgid", s.softmax(-1), v).flatten(1, 2)


@case
def last_queries_and_a_mask_of_lengths(q, k, v):
    """The mask reads sizes of queries and keys."""
    q, k, v = q[:, :, 30:].float(), k.float(), v.float()
    hidden = torch.ones(q.shape[2], k.shape[2], dtype=torch.bool).triu(k.shape[2] - q.shape[2] + 1)
    return scores_of(q, k).masked_fill(hidden, -torch.inf).softmax(-1) @ v


@case
def odd_head_dimensions(q, k, v):
    q, k, v = q[..., :11].float(), k[..., :11].float(), v[..., :5].float()
    return scores_of(q, k).softmax(-1) @ v


def compiled(function, found, dynamic=None):
    torch._dynamo.reset()
    return torch.compile(function, dynamic=dynamic, backend=lambda graph, examples: backend.backend(
        graph, examples, inner="eager", listener=found.extend))


def assert_near(got, wanted, bound):
    difference, largest = (got.double() - wanted.double()).abs().max().item(), wanted.abs().max().item()
    assert difference <= bound * max(1.0, largest), difference


@pytest.mark.parametrize("dtype", NARROW, ids=str)
@pytest.mark.parametrize("function", CASES, ids=lambda function: function.__name__)
def test_widened(function, dtype):
    """Against the same numbers in wide types from the start."""
    torch.manual_seed(0)
    inputs = [torch.randn(BATCH, HEADS, LENGTH, DIM).to(dtype).requires_grad_() for _ in range(3)]
    wide = [x.detach().double().requires_grad_() for x in inputs]
    found = []
    got, wanted = compiled(function, found)(*inputs), function(*wide)
    assert [each.raised for each in found] == [True], found
    assert "in f32, to which queries, keys or values are widened" in found[0].remark
    assert got.dtype == function(*inputs).dtype
    unit = torch.finfo(dtype).eps
    assert_near(got, wanted, 2e-6 if got.dtype == torch.float32 else unit)
    upstream = torch.randn_like(got)
    for mine, its in zip(torch.autograd.grad(got, inputs, upstream),
                         torch.autograd.grad(wanted, wide, upstream.to(wanted.dtype))):
        assert mine.dtype == dtype
        assert_near(mine, its, unit)


def test_unknown_lengths():
    def masked(q, k, v):
        return last_queries_and_a_mask_of_lengths(q, k, v)

    inputs = [torch.randn(BATCH, HEADS, LENGTH, DIM).bfloat16() for _ in range(3)]
    for x in inputs:
        torch._dynamo.mark_static(x, 1)
        torch._dynamo.mark_static(x, 3)
    found = []
    got = compiled(masked, found, True)(*inputs)
    assert [each.raised for each in found] == [True], found
    assert_near(got, masked(*inputs), 2e-6)


def test_rounded_and_widened():
    """Scores live in f32, whatever a graph rounds them to; queries and keys are rounded."""
    def rounded(q, k, v):
        s = (q.bfloat16() @ k.bfloat16().mT).float() * 0.3
        return s.softmax(-1).to(v.dtype) @ v

    q, k, v = (torch.randn(BATCH, HEADS, LENGTH, DIM) for _ in range(3))
    found = []
    got = compiled(rounded, found)(q, k, v)
    assert [each.raised for each in found] == [True], found
    wanted = (q.bfloat16().double() @ k.bfloat16().double().mT * 0.3).softmax(-1) @ v.double()
    assert got.dtype == torch.float32
    assert_near(got, wanted, 2e-6)


def test_weights_that_are_rounded():
    """With values of 16 bits the kernel is one of 16 bits, and the result has them."""
    def rounded(q, k, v):
        return scores_of(q.float(), k.float()).softmax(-1).to(v.dtype) @ v

    q, k, v = (torch.randn(BATCH, HEADS, LENGTH, DIM).bfloat16() for _ in range(3))
    found = []
    got = compiled(rounded, found)(q, k, v)
    assert [each.raised for each in found] == [True] and "widened" not in found[0].remark, found
    assert got.dtype == torch.bfloat16
    assert_near(got, scores_of(q.double(), k.double()).softmax(-1) @ v.double(), 2 * torch.finfo(torch.bfloat16).eps)


def test_doubles_stay_in_eager():
    def doubled(q, k, v):
        q, k, v = q.double(), k.double(), v.double()
        return scores_of(q, k).softmax(-1) @ v

    inputs = [torch.randn(BATCH, HEADS, LENGTH, DIM) for _ in range(3)]
    found = []
    got = compiled(doubled, found)(*inputs)
    assert [each.raised for each in found] == [False] and "could not be read" not in found[0].remark, found
    assert torch.equal(got, doubled(*inputs))
