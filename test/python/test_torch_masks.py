#===----------------------------------------------------------------------===#
#
# Part of attn, an attention compiler.
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===----------------------------------------------------------------------===#
"""Masks that are made like a tensor, of parts, or written to in part: they are code of the
kernel, which gets no tensor of queries by keys."""

import pytest

torch = pytest.importorskip("torch", reason="masks are made by PyTorch")
import torch.nn.functional as F  # noqa: E402

from attn.torch import backend  # noqa: E402
from torch_models import captured_ranks  # noqa: E402

BATCH, HEADS, LENGTH, DIM = 2, 3, 21, 8
LOW = float("-inf")
CASES = {}


def case(*ranks):
    """A mask or bias of the scores; the kernel captures a tensor of the first rank, and of the last
    where lengths are unknown, or none."""
    def note(function):
        CASES[function] = ranks
        return function
    return note


# Like another tensor, which has gradients and gives none.

@case()
def new_full(s, flags):
    return torch.triu(s.new_full(s.shape[-2:], LOW), 1)


@case()
def new_ones(s, flags):
    return s.new_ones(s.shape[-2:]).tril() == 0


@case()
def zeros_like(s, flags):
    return torch.zeros_like(s).masked_fill_(torch.ones(s.shape[-2:], dtype=torch.bool).triu(1), LOW)


@case()
def ones_like(s, flags):
    return torch.ones_like(s).triu(1).bool()


@case()
def full_like(s, flags):
    return torch.where(torch.ones(s.shape[-2:]).tril() > 0, torch.full_like(s, 0.5), LOW)


# One after the other.

@case()
def behind_a_cache(s, flags):
    """As llama has it."""
    m = torch.full((s.shape[-2] - 6, s.shape[-1] - 6), LOW).triu(1)
    return torch.vstack([torch.zeros(6, s.shape[-1]), torch.hstack([torch.zeros(m.shape[0], 6), m])])


@case()
def three_parts(s, flags):
    n = s.shape[-1]
    return torch.cat([torch.zeros(n, 2), torch.full((n, n - 5), LOW).triu(-2), torch.full((n, 3), LOW)], dim=-1)


@case()
def padded(s, flags):
    n = s.shape[-1]
    return ~F.pad(torch.ones(n - 4, n - 3, dtype=torch.bool).tril(), (1, 2, 3, 1), value=True)


@case(2)
def joined_with_an_argument(s, flags):
    """Which is captured, as nothing is read beyond its end."""
    return ~torch.cat([flags[:, :4], torch.ones(BATCH, s.shape[-1] - 4, dtype=torch.bool)], -1)[:, None, None]


@case(1, 2)
def padded_positions(s, flags):
    """Of an unknown length the bias is captured, as a position might be below 0."""
    n = s.shape[-1]
    places = F.pad(torch.arange(n - 1)[None].expand(n, n - 1), (1, 0), value=3)
    return flags[0].float()[places]


# Written to in part.

@case()
def global_tokens(s, flags):
    m = torch.ones(s.shape[-2:], dtype=torch.bool).tril() & ~torch.ones(s.shape[-2:], dtype=torch.bool).tril(-4)
    m[:3] = True
    m[:, :2] = True
    return ~m


@case()
def blocks(s, flags):
    m = torch.full(s.shape[-2:], LOW)
    for first, end in ((0, 4), (4, 9), (9, s.shape[-1])):
        m[first:end, first:end] = 0
    return m


@case()
def numbers(s, flags):
    m = torch.zeros(s.shape[-2:])
    m[2:5, 3:] = LOW
    m[-1] = 0.5
    m[:, -1] = 1.0
    return m


@case()
def what_is_written_later(s, flags):
    m = torch.ones(s.shape[-2:], dtype=torch.bool).tril()
    m[:3] = True
    kept = m.clone()
    m[:, :2] = False
    return ~kept


@case(2)
def written_to_an_argument(s, flags):
    m = flags[:, None, :].expand(BATCH, s.shape[-2], s.shape[-1]).clone()
    m[..., :2] = True
    return ~m[:, None]


@pytest.mark.parametrize("is_dynamic", [False, True], ids=["known", "unknown"])
@pytest.mark.parametrize("mask", CASES, ids=lambda function: function.__name__)
def test_mask(mask, is_dynamic):
    def function(q, k, v, flags):
        s = q @ k.mT / 3
        m = mask(s, flags)
        return (s.masked_fill(m, LOW) if m.dtype == torch.bool else s + m).softmax(-1) @ v

    torch.manual_seed(0)
    inputs = [torch.randn(BATCH, HEADS, LENGTH, DIM).requires_grad_() for _ in range(3)]
    flags = torch.rand(BATCH, LENGTH) > 0.3
    torch._dynamo.reset()
    for x, dim in [*((x, 2) for x in inputs), (flags, 1)] if is_dynamic else ():
        torch._dynamo.mark_dynamic(x, dim)
    found = []
    compiled = torch.compile(function, backend=lambda graph, examples: backend.backend(
        graph, examples, inner="eager", listener=found.extend))
    got, wanted = compiled(*inputs, flags), function(*inputs, flags)
    assert [each.raised for each in found] == [True], found
    ranks = CASES[mask]
    assert captured_ranks(found[0].program) == (ranks[-1:] if is_dynamic else ranks[:1]), found[0].program
    upstream = torch.randn_like(wanted)
    for mine, its in zip(*([result, *torch.autograd.grad(result, inputs, upstream)] for result in (got, wanted))):
        torch.testing.assert_close(mine, its, atol=2e-5, rtol=2e-5)
