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

import pytest

torch = pytest.importorskip("torch", reason="softmaxes are those of PyTorch")

from attn.torch import backend  # noqa: E402

LENGTH, DIM = 21, 8
HIDDEN = torch.ones(LENGTH, LENGTH).triu(1).bool()


def exponentials(s):
    return torch.exp(s - s.amax(-1, keepdim=True))


def check(attend, raised, has_gradients=True):
    """attend(scores, values)"""
    def function(q, k, v):
        return attend(q @ k.mT * 0.3, v)

    torch.manual_seed(0)
    inputs = [torch.randn(2, 3, LENGTH, DIM).requires_grad_() for _ in range(3)]
    exact, found = [x.detach().double().requires_grad_() for x in inputs], []
    torch._dynamo.reset()
    compiled = torch.compile(function, backend=lambda graph, examples: backend.backend(
        graph, examples, inner="eager", listener=found.extend))
    with torch.set_grad_enabled(has_gradients):
        got, wanted = compiled(*inputs), function(*exact)
    assert any(each.raised for each in found) == raised, found
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
    (logarithms_are_written, False), (products_are_written, False), (scores_are_written_behind_the_exponentials, True),
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
