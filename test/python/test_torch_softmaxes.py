#===----------------------------------------------------------------------===#
#
# Part of attn, an attention compiler.
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===----------------------------------------------------------------------===#
"""Softmaxes that are written by hand, with torch.compile(backend="attn") against eager in
float64: what becomes a kernel, values and gradients."""

import math

import pytest

torch = pytest.importorskip("torch", reason="softmaxes are those of PyTorch")

import torch.nn.functional as F  # noqa: E402

from attn.torch import backend  # noqa: E402

LENGTH, DIM = 21, 8
HIDDEN = torch.ones(LENGTH, LENGTH).triu(1).bool()


def exponentials(s):
    return torch.exp(s - s.amax(-1, keepdim=True))


def check(attend, raised, has_gradients=True, dynamic=None):
    """attend(scores, values)"""
    def function(q, k, v):
        return attend(q @ k.mT * 0.3, v)

    torch.manual_seed(0)
    inputs = [torch.randn(2, 3, LENGTH, DIM).requires_grad_() for _ in range(3)]
    exact, found = [x.detach().double().requires_grad_() for x in inputs], []
    torch._dynamo.reset()
    for x in inputs if dynamic else []:
        for dim in (1, 3):
            torch._dynamo.mark_static(x, dim)
    compiled = torch.compile(function, dynamic=dynamic, backend=lambda graph, examples: backend.backend(
        graph, examples, inner="eager", listener=found.extend))
    with torch.set_grad_enabled(has_gradients):
        got, wanted = compiled(*inputs), function(*exact)
    assert [each.raised for each in found] in ([[True]] if raised else [[], [False]]), found
    pairs = [(got, wanted)]
    if has_gradients:
        upstream = torch.randn_like(got)
        pairs += zip(torch.autograd.grad(got, inputs, upstream, allow_unused=True),
                     torch.autograd.grad(wanted, exact, upstream.double(), allow_unused=True))
    for a, b in pairs:
        assert (a is None) == (b is None)
        if b is not None:
            torch.testing.assert_close(a.double(), b, rtol=2e-5, atol=2e-5 * max(1, b.abs().max().item()))


# ---------------------------------------------------------------------------
# What is written to, without gradients
# ---------------------------------------------------------------------------


def exponentials_are_written(s, v):
    e = s.exp()
    z = e.sum(-1, True)
    e.masked_fill_(HIDDEN, 0.0)
    return e / z @ v


def sums_are_written(s, v):
    e = s.exp()
    z = e.sum(-1, True)
    z.add_(1.0)
    return e / z @ v


def scores_are_written_before_the_exponentials(s, v):
    rest = s.logsumexp(-1, True)
    s.mul_(2)
    return torch.exp(s - rest) @ v


def logarithms_are_written(s, v):
    t = torch.log_softmax(s, -1)
    t.mul_(2)
    return t.exp() @ v


def products_are_written(s, v):
    e = s.exp()
    o = e @ v
    o.mul_(2)
    return o / e.sum(-1, True)


def the_largest_is_written(s, v):
    """The sum may be less than what is added to it."""
    top = s.amax(-1, True)
    top.add_(30)
    e = torch.exp(s - top)
    return e / (e.sum(-1, True) + 2.0**-24) @ v


def scores_are_written_behind_the_exponentials(s, v):
    e = s.exp()
    s.zero_()
    return e / e.sum(-1, True) @ v


def scores_are_written_behind_their_largest(s, v):
    t = s - s.amax(-1, True)
    s.mul_(2)
    return t.softmax(-1) @ v


@pytest.mark.parametrize("attend, raised", [
    (exponentials_are_written, False), (sums_are_written, False), (scores_are_written_before_the_exponentials, False),
    (logarithms_are_written, False), (products_are_written, False), (the_largest_is_written, False),
    (scores_are_written_behind_the_exponentials, True),
    (scores_are_written_behind_their_largest, True)])
def test_writes(attend, raised):
    check(attend, raised, has_gradients=False)


# ---------------------------------------------------------------------------
# What gets no gradients
# ---------------------------------------------------------------------------


def sums_without_gradients(s, v):
    e = exponentials(s)
    return e / e.sum(-1, True).detach() @ v


def sums_behind_the_product_without_gradients(s, v):
    e = exponentials(s)
    return e @ v / e.sum(-1, True).detach()


def logarithms_of_sums_without_gradients(s, v):
    return torch.exp(s - s.logsumexp(-1, True).detach()) @ v


def the_largest_without_gradients(s, v):
    e = torch.exp(s - s.amax(-1, keepdim=True).detach())
    return e / e.sum(-1, True) @ v


@pytest.mark.parametrize("attend, raised", [
    (sums_without_gradients, False), (sums_behind_the_product_without_gradients, False),
    (logarithms_of_sums_without_gradients, False), (the_largest_without_gradients, True)])
def test_detached(attend, raised):
    check(attend, raised)


# ---------------------------------------------------------------------------
# Ways to divide by the sum
# ---------------------------------------------------------------------------


def logarithm_twice(s):
    top = s.amax(-1, True)
    return torch.exp(s - top - (s - top).exp().sum(-1, True).log())


def e_twice(s):
    return torch.nan_to_num(exponentials(s) / exponentials(s).sum(-1, True), nan=0.0)


QUOTIENTS = {
    "reciprocal": lambda s: (e := exponentials(s)) * e.sum(-1, True).reciprocal(),
    "one over": lambda s: (1 / (e := s.exp()).sum(-1))[..., None] * e,
    "power of -1": lambda s: (e := exponentials(s)) * e.sum(-1, True) ** -1,
    "norm": lambda s: (e := exponentials(s)) / e.norm(p=1, dim=-1, keepdim=True),
    "norm of linalg": lambda s: (e := exponentials(s)) / torch.linalg.norm(e, ord=1, dim=-1, keepdim=True),
    "vector norm": lambda s: (e := exponentials(s)) / torch.linalg.vector_norm(e, 1, dim=-1, keepdim=True),
    "normalize": lambda s: F.normalize(exponentials(s), p=1, dim=-1),
    "normalize a softmax": lambda s: F.normalize(s.softmax(-1), p=1.0, dim=-1),
    "view": lambda s: (e := exponentials(s)) / e.sum(dim=-1).view(*s.shape[:-1], 1),
    "expand": lambda s: (e := exponentials(s)) / e.sum(dim=-1, keepdim=True).expand_as(e),
    "einsum": lambda s: (e := exponentials(s)) / torch.einsum("bhij->bhi", e)[..., None],
    "logsumexp": lambda s: torch.exp(s - torch.logsumexp(s, dim=-1)[..., None]),
    "logarithm": lambda s: torch.exp(s - torch.log(s.exp().sum(-1, keepdim=True))),
    "logarithm twice": logarithm_twice,
    "exponentials twice, guarded": e_twice,
    "logarithm, guarded": lambda s: F.log_softmax(s, -1).exp().nan_to_num(0.0),
    "exp2": lambda s: (e := torch.exp2(s * 1.4427)) / e.sum(-1, True),
    "exp2 of what the largest is taken from": lambda s: (e := torch.exp2(s - s.amax(-1, True))) / e.sum(-1, True),
    "power": lambda s: (e := 3.0 ** s) / e.sum(-1, True),
    "power below 1": lambda s: (e := torch.pow(0.5, s)) / e.sum(-1, True),
    "epsilon": lambda s: (e := exponentials(s)) / (e.sum(-1, keepdim=True) + 1e-9),
    "least": lambda s: (e := exponentials(s)) / e.sum(-1, keepdim=True).clamp(min=1e-6),
    "the largest as values": lambda s: (e := torch.exp(s - s.max(-1, keepdim=True).values.detach())) / (1e-12 + e.sum(-1, True)),
    "masked": lambda s: (e := exponentials(s) * (~HIDDEN).to(s.dtype)) / e.sum(-1, True),
    "masked by what is hidden": lambda s: (e := (1 - HIDDEN.to(s.dtype)) * s.exp()) / e.sum(-1, True),
    "filled": lambda s: (e := exponentials(s).masked_fill(HIDDEN, 0.0)) / e.sum(-1, True),
    "chosen": lambda s: (e := torch.where(HIDDEN, 0.0, exponentials(s))) / e.sum(-1, True),
    "triangle": lambda s: (e := exponentials(s).tril()) / e.sum(-1, True),
    "softmax that is masked": lambda s: (e := s.softmax(-1) * (~HIDDEN).to(s.dtype)) / e.sum(-1, True),
    "one beside the sum": lambda s: (e := s.exp()) / (1 + e.sum(-1, True)),
    "a number beside the sum of what is masked": lambda s: (e := s.exp().tril()) / (e.sum(-1, True) + 0.01),
    "one beside the sum, stable": lambda s: (e := torch.exp(s - (m := s.amax(-1, True).clamp(min=0)))) / (torch.exp(-m) + e.sum(-1, True)),
    "one beside the sum, less the largest": lambda s: (e := torch.exp(s - (m := s.amax(-1, True)))) / (torch.exp(-m) + e.sum(-1, True)),
    "zeros behind the keys": lambda s: torch.cat([s, s.new_zeros(*s.shape[:-1], 1)], -1).softmax(-1)[..., :-1],
    "a number behind the keys": lambda s: F.pad(s, (0, 1), value=-1.5).softmax(-1)[..., :-1],
}


@pytest.mark.parametrize("name", QUOTIENTS)
def test_quotients(name):
    check(lambda s, v: QUOTIENTS[name](s) @ v, True)


@pytest.mark.parametrize("name", ["one over", "normalize", "logsumexp", "epsilon", "triangle",
                                  "a number beside the sum of what is masked", "zeros behind the keys"])
def test_quotients_of_unknown_lengths(name):
    check(lambda s, v: QUOTIENTS[name](s) @ v, True, dynamic=True)


NEAR = {
    "another norm": lambda s: (e := exponentials(s)) / e.norm(p=2, dim=-1, keepdim=True),
    "normalize by another norm": lambda s: F.normalize(exponentials(s), dim=-1),
    "normalize along queries": lambda s: F.normalize(exponentials(s), p=1, dim=-2),
    "a sum that is seen": lambda s: (e := exponentials(s)) / (e.sum(-1, keepdim=True) + 1e-2),
    "a sum that may be less": lambda s: (e := s.exp()) / e.sum(-1, keepdim=True).clamp_min(20.0),
    "a mask, and a sum that may be nothing": lambda s: (e := exponentials(s).tril()) / (e.sum(-1, True) + 1e-9),
    "a softmax that is masked, and more": lambda s: (e := s.softmax(-1).tril()) / (e.sum(-1, True) + 1e-3),
    "the sum of others": lambda s: s.exp() / (2 * s).exp().sum(-1, True),
    "the sum of a part": lambda s: (e := s.exp()) / e[..., 1:].sum(-1, True),
    "the sum of other queries": lambda s: (e := s.exp()) / e.sum(-2)[..., None],
    "the sum of other heads": lambda s: (e := s.exp()) / e.sum(-1).roll(1, 1)[..., None],
    "a mask of numbers": lambda s: (e := exponentials(s) * torch.linspace(-1, 2, LENGTH)) / e.sum(-1, True),
    "sums": lambda s: (e := exponentials(s)) * e.sum(-1, True),
    "no exponentials": lambda s: (e := F.relu(s) + 0.1) / e.sum(-1, True),
    "less the largest and more, and a number behind": lambda s: F.pad(s - (s.amax(-1, True) + 1), (0, 1)).softmax(-1)[..., :-1],
    "less the largest and more, and a sink": lambda s: torch.cat(
        [s - (s.amax(-1, True) + 1), torch.linspace(0, 1, 3)[:, None, None].expand(2, 3, LENGTH, 1)], -1).softmax(-1)[..., :-1],
    "two behind the keys": lambda s: F.pad(s, (0, 2)).softmax(-1)[..., :-2],
    "one before the keys": lambda s: F.pad(s, (1, 0)).softmax(-1)[..., :-1],
}


@pytest.mark.parametrize("name", NEAR)
def test_near(name):
    check(lambda s, v: NEAR[name](s) @ v, False)


# ---------------------------------------------------------------------------
# Products that are divided
# ---------------------------------------------------------------------------

PRODUCTS = {
    "quotient": (True, lambda e, v: e @ v / e.sum(-1, True)),
    "inverse": (True, lambda e, v: (e @ v) * (1 / e.sum(-1))[..., None]),
    "inverse by einsum": (True, lambda e, v: torch.einsum("bhqd,bhq->bhqd", e @ v, 1 / e.sum(-1))),
    "moved": (True, lambda e, v: (e @ v).transpose(1, 2) / e.sum(-1).transpose(1, 2)[..., None]),
    "moved by einsum": (True, lambda e, v: torch.einsum("bhij,bhjd->dbih", e, v) / e.sum(-1).transpose(1, 2)),
    "one beside the sum": (True, lambda e, v: (e @ v) / (1 + e.sum(-1, True))),
    "masked": (True, lambda e, v: (f := e.tril()) @ v / f.sum(-1, True)),
    "the sum of all, a part of the product": (False, lambda e, v: (e.tril() @ v) / e.sum(-1, True)),
    "other heads": (False, lambda e, v: (e @ v) / e.sum(-1).roll(1, 1)[..., None]),
    "other queries": (False, lambda e, v: (e @ v) / e.sum(-2)[..., None]),
    "a product by itself": (False, lambda e, v: (e @ v) * e.sum(-1, True)),
    "a sum without gradients": (False, lambda e, v: (e @ v) * (1 / e.sum(-1, True).detach())),
}


@pytest.mark.parametrize("name", PRODUCTS)
def test_products(name):
    raised, divide = PRODUCTS[name]
    check(lambda s, v: divide(s.exp(), v), raised)


def test_products_of_halves():
    """Exponentials in f32, which the product rounds."""
    def attend(q, k, v):
        s = (q @ k.mT).float() / math.sqrt(DIM)
        e = torch.exp(s - s.amax(-1, True))
        return (e.to(v.dtype) @ v) * (1.0 / e.sum(-1, True)).to(v.dtype)

    q, k, v = (torch.randn(2, 3, LENGTH, DIM, dtype=torch.bfloat16) for _ in range(3))
    found = []
    torch._dynamo.reset()
    got = torch.compile(attend, backend=lambda graph, examples: backend.backend(
        graph, examples, inner="eager", listener=found.extend))(q, k, v)
    assert [each.raised for each in found] == [True]
    torch.testing.assert_close(got.double(), attend(q.double(), k.double(), v.double()), rtol=2e-2, atol=2e-2)
