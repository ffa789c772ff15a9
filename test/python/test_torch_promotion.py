#===----------------------------------------------------------------------===#
#
# Part of attn, an attention compiler.
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===----------------------------------------------------------------------===#
"""Types of what functions of scores and masks compute: halves that decide, promotion, and
integers and floats at their ends, element by element against eager PyTorch."""

import math

import pytest

torch = pytest.importorskip("torch", reason="functions of PyTorch need PyTorch")
flex = pytest.importorskip("torch.nn.attention.flex_attention", reason="this PyTorch has no flex attention")

from attn.torch import flex_attention, trace  # noqa: E402
from test_torch_trace import B, H, K, Q, reference, scores, values  # noqa: E402

HALVES = [torch.float16, torch.bfloat16]
F = torch.nn.functional
NEAR, DOUBLE = torch.tensor(0.15), torch.tensor(0.15, dtype=torch.float64)
FLOATS = torch.tensor([0.31, 0.05, 0.77, 0.4, 0.8, 0.1, 0.99])
BYTES, SIGNED = torch.tensor([0, 1, 200, 255, 128, 127, 9], dtype=torch.uint8), torch.tensor([100, -128, 127, -100, 3, 60, -7], dtype=torch.int8)
SHORTS = torch.tensor([32767, -32768, 1, 300, -300, 0, 5], dtype=torch.int16)
WIDE = torch.tensor([2**40 + 1, -2**40 - 1, 2**24 + 1, 2**24, 2**53 + 1, 5, -7])
SMALL = torch.tensor([1, 2, -3, -1, 7, -9, 4], dtype=torch.int32)
FLAGS = torch.arange(7) % 2 == 0
EDGES = torch.tensor([0.1, 0.4, 0.8])


def of_halves(x):
    """What decides by halves x, and what is f32 behind it."""
    return [
        lambda s, b, h, q, k: x[k] <= 0.15, lambda s, b, h, q, k: x[k] == 0.15, lambda s, b, h, q, k: x[k] <= NEAR,
        lambda s, b, h, q, k: NEAR >= x[k], lambda s, b, h, q, k: x[k] <= FLOATS[q], lambda s, b, h, q, k: (x[q] - x[k]).abs() <= 0.15,
        lambda s, b, h, q, k: (x[q] - x[k]).abs().float() * 2 <= 0.3, lambda s, b, h, q, k: x[q] * x[k] + x[q] > 0.1,
        lambda s, b, h, q, k: torch.floor(x[q] * 20 + x[k]), lambda s, b, h, q, k: (x[q] * 20 + x[k]).int(),
        lambda s, b, h, q, k: torch.sign(x[q] - x[k] * 1.001), lambda s, b, h, q, k: torch.round(x[q] * 30),
        lambda s, b, h, q, k: (x[q] - x[k] * 1.001).bool(), lambda s, b, h, q, k: x[q] // 0.05, lambda s, b, h, q, k: (x[q] / x[k].clamp(min=0.05)) % 1,
        lambda s, b, h, q, k: torch.where(x[q] + x[k] > 0.3, s, s * 2), lambda s, b, h, q, k: torch.where(q > k, x[k], 0.15),
        lambda s, b, h, q, k: torch.where(q > k, x[k], NEAR) == 0.15, lambda s, b, h, q, k: x[k].clamp(0.12, 0.31) == 0.12,
        lambda s, b, h, q, k: x[k].masked_fill(q > k, 0.15), lambda s, b, h, q, k: torch.full_like(x[k], 0.15),
        lambda s, b, h, q, k: torch.stack([x[q], x[k], x[q]]).sum() > 0.3, lambda s, b, h, q, k: torch.stack([x[q], x[k]]).mean() <= 0.2,
        lambda s, b, h, q, k: torch.stack([x[q] + 0.1, x[k]])[q % 2] == 0.15, lambda s, b, h, q, k: (x[k] * 20) == q,
        lambda s, b, h, q, k: x[k] + q * 100 > 300.2, lambda s, b, h, q, k: torch.isclose(x[q], x[k] + 0.05),
        lambda s, b, h, q, k: F.threshold(x[k] + 0.05, 0.15, 7.0) == 7.0, lambda s, b, h, q, k: torch.exp(x[k]) <= 1.2,
        lambda s, b, h, q, k: torch.logical_and(x[q] - x[k] * 1.001, q), lambda s, b, h, q, k: s * (x[q] + x[k]) > 0.3,
    ]


OTHERS = [
    lambda s, b, h, q, k: (SIGNED[k] + 1) + (SIGNED[k] * 2) - SIGNED[q] * SIGNED[k], lambda s, b, h, q, k: SIGNED[k].abs(),
    lambda s, b, h, q, k: SHORTS[k].abs(), lambda s, b, h, q, k: -SIGNED[k] + SIGNED[k] // 3, lambda s, b, h, q, k: BYTES[k] - BYTES[q],
    lambda s, b, h, q, k: -BYTES[k] + ~BYTES[q], lambda s, b, h, q, k: BYTES[k] + SIGNED[q], lambda s, b, h, q, k: SIGNED[k] < 300,
    lambda s, b, h, q, k: BYTES[k] > -1, lambda s, b, h, q, k: FLAGS[k] + FLAGS[q], lambda s, b, h, q, k: FLAGS[k] * 2.5 + (FLAGS[k] & q),
    lambda s, b, h, q, k: WIDE[k] / (q + 1), lambda s, b, h, q, k: WIDE[k] > 16777216.0, lambda s, b, h, q, k: WIDE[k] == 16777217.0,
    lambda s, b, h, q, k: WIDE[k] + NEAR, lambda s, b, h, q, k: (q / (k * 0)).clamp(-5, 5), lambda s, b, h, q, k: (q - 3) // SMALL[k] + (q - 3) % SMALL[k],
    lambda s, b, h, q, k: FLOATS[k] == 0.1, lambda s, b, h, q, k: torch.stack([SIGNED[k], SIGNED[q]]).sum() + torch.stack([q > k, k > 3]).sum(),
    # Shifts by negative numbers, and beyond the width.
    lambda s, b, h, q, k: q << (k * 20 - 20), lambda s, b, h, q, k: (q - 3) >> (k * 20 - 20), lambda s, b, h, q, k: (WIDE[k] << (k * 20 - 20)) % 4096,
    lambda s, b, h, q, k: WIDE[k] >> (k * 20 - 20), lambda s, b, h, q, k: SIGNED[q] << (k - 1).to(torch.int8), lambda s, b, h, q, k: BYTES[k] >> (k * 3).to(torch.uint8),
    lambda s, b, h, q, k: 2 ** (q % 5) + 2 ** (k - 3), lambda s, b, h, q, k: 2 ** (k * 10 + q), lambda s, b, h, q, k: 2 ** (k * 9).long() % 4095,
    # Quotients of floats that are rounded up to whole numbers.
    lambda s, b, h, q, k: (k * 0.1) // 0.1, lambda s, b, h, q, k: (k * 0.1) % 0.1, lambda s, b, h, q, k: (k * 0.1 - 0.3) // -0.1, lambda s, b, h, q, k: (k * 0.1 - 0.3) % -0.2,
    lambda s, b, h, q, k: torch.fmod(k * 0.1 - 0.3, 0.1), lambda s, b, h, q, k: (k * 1e4 + FLOATS[q]) % 0.3, lambda s, b, h, q, k: ((k - 3.0) // (k * 0.0)).clamp(-3, 3),
    lambda s, b, h, q, k: torch.isnan(k % (q * 0.0)), lambda s, b, h, q, k: s % 0.7 + s // 0.3,
]
SEARCHES = [
    lambda s, b, h, q, k: torch.bucketize(FLOATS[k], EDGES), lambda s, b, h, q, k: torch.bucketize(FLOATS[k], EDGES, right=True),
    lambda s, b, h, q, k: torch.bucketize(torch.where(q > k, math.nan, s), EDGES), lambda s, b, h, q, k: torch.searchsorted(FLOATS.sort()[0], FLOATS[k]),
    lambda s, b, h, q, k: torch.bucketize((FLOATS[k] + FLOATS[q]).half(), EDGES.half()), lambda s, b, h, q, k: torch.bucketize(torch.stack([FLOATS[k], s]), EDGES).sum(),
]


def agree(functions):
    for number, (function, got) in enumerate(zip(functions, values([(function, "score") for function in functions]), strict=True)):
        wanted = reference(function, "score", scores()).broadcast_to(got.shape).float()
        torch.testing.assert_close(got, wanted, rtol=2e-6, atol=1e-6, equal_nan=True, msg=lambda text: f"number {number}: {text}")


@pytest.mark.parametrize("dtype", HALVES)
def test_halves_that_decide(dtype):
    agree(of_halves((torch.arange(7) % 10 * 0.05).to(dtype)))


@pytest.mark.parametrize("functions", [OTHERS[:19], OTHERS[19:], SEARCHES], ids=["promotion", "ends", "searches"])
def test_values(functions):
    agree(functions)


@pytest.mark.parametrize("dtype", HALVES)
def test_masks_of_blocks(dtype):
    length = 40
    x = (torch.arange(length) % 10 * 0.05).to(dtype)
    query, value = torch.zeros(1, 1, length, 16), torch.randn(1, 1, length, 16)
    for mask in (lambda b, h, q, k: x[k] <= 0.15, lambda b, h, q, k: (x[k] == 0.15) | (q == k), lambda b, h, q, k: x[k] <= NEAR,
                 lambda b, h, q, k: (x[q] - x[k]).abs() <= 0.15, lambda b, h, q, k: (x[q] + x[k] > 0.3) | (q == k)):
        blocks = flex.create_block_mask(mask, 1, 1, length, length, device="cpu")
        _, lse = flex_attention(query, query, value, block_mask=blocks, return_lse=True)
        assert torch.equal(lse.exp().round().int(), flex.create_mask(mask, 1, 1, length, length, device="cpu").sum(-1).int())


def test_smooth_scores_are_not_rounded():
    """As in kernels of torch.compile; what decides is, and constants are where they are traced."""
    x = torch.rand(7).bfloat16()

    def lines(function, kind):
        return trace.region(function, kind).lines
    smooth = lines(lambda s, b, h, q, k: s + x[q] * x[k] + torch.exp(x[q] - x[k]), "score")
    assert "truncf" not in smooth
    compared = lines(lambda b, h, q, k: x[k] <= 0.15, "mask")
    assert "truncf" not in compared and f"{0.150390625:.17e}" in compared
    near = lines(lambda b, h, q, k: (x[q] - x[k]).abs() <= 0.15, "mask")
    assert near.count("f32 to bf16") == 1
    both = lines(lambda s, b, h, q, k: torch.where(x[q] + x[k] > 0.3, s + (x[q] + x[k]), s), "score")
    assert both.count("f32 to bf16") == 1 and both.count("addf") == 2


def test_gradients_of_halves():
    """They flow as before, past what decides."""
    x = (torch.arange(9) % 10 * 0.05).bfloat16().requires_grad_()
    q, k, v = (torch.randn(1, 1, 9, 16) for _ in range(3))

    def attend(x, score):
        return (q @ k.mT / 4 + score).softmax(-1) @ v
    got = flex_attention(q, k, v, lambda s, b, h, i, j: s + torch.where(x[i] + x[j] > 0.3, x[j] * 2, (x[i] * 20).floor() + x[i] % 0.1))
    y = x.float()
    rows, columns = y[:, None], y[None]
    rest = (x.detach() % 0.1).float()[:, None] + (rows - rows.detach())
    wanted = attend(y, torch.where((x[:, None] + x[None]) > 0.3, columns * 2, (x.detach() * 20).floor().float()[:, None] + rest))
    torch.testing.assert_close(got, wanted, atol=1e-5, rtol=1e-5)
    upstream = torch.randn_like(got)
    mine, its = (torch.autograd.grad((o * upstream).sum(), x)[0].float() for o in (got, wanted))
    torch.testing.assert_close(mine, its, atol=0.02, rtol=0.02)
