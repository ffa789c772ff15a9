#===----------------------------------------------------------------------===#
#
# Part of attn, an attention compiler.
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===----------------------------------------------------------------------===#
"""Slopes of functions in scores at points where they jump, or where a part of them is
infinite: those of PyTorch. One program has all functions, each of elements of its own of a
captured tensor, with a weight that differs by position."""

import functools

import pytest

torch = pytest.importorskip("torch", reason="slopes are PyTorch's")

import attn.torch  # noqa: E402
from attn.torch import flex_attention, trace  # noqa: E402
from test_torch_flex import tensors  # noqa: E402

F = torch.nn.functional
N = 7


def norm(*x):
    return torch.linalg.vector_norm(torch.stack(x))


POINTS = {
    "relu": (F.relu, 0.0), "relu above": (F.relu, 3.0), "relu below": (F.relu, -3.0),
    "relu6 low": (F.relu6, 0.0), "relu6 high": (F.relu6, 6.0), "relu6 inside": (F.relu6, 2.0),
    "hardtanh low": (F.hardtanh, -1.0), "hardtanh high": (F.hardtanh, 1.0), "hardtanh inside": (F.hardtanh, 0.5),
    "clamp to a minimum": (lambda x: x.clamp(min=0.5), 0.5), "clamp to a maximum": (lambda x: x.clamp(max=1), 1.0),
    "clamp low": (lambda x: x.clamp(-1, 1), -1.0), "clamp high": (lambda x: x.clamp(-1, 1), 1.0),
    "clamp inside": (lambda x: x.clamp(-1, 1), 0.5), "clamp outside": (lambda x: x.clamp(-1, 1), 1.5),
    "clamp crossed": (lambda x: x.clamp(2, 1), 1.0), "clamp to one": (lambda x: x.clamp(1, 1), 1.0),
    "clamp of halves": (lambda x: x.half().clamp(min=0).float(), 0.0), "clamp_min": (lambda x: torch.clamp_min(x, 0), 0.0),
    "clamp to a tensor": (lambda x, low: x.clamp(min=low), 0.0, 0.0), "maximum": (torch.maximum, 0.0, 0.0),
    "threshold": (lambda x: F.threshold(x, 1.0, 5.0), 1.0), "leaky_relu": (F.leaky_relu, 0.0), "elu": (F.elu, 0.0),
    "hardsigmoid low": (F.hardsigmoid, -3.0), "hardsigmoid high": (F.hardsigmoid, 3.0),
    "hardswish low": (F.hardswish, -3.0), "hardswish high": (F.hardswish, 3.0),
    "logit low": (lambda x: torch.logit(x, eps=0.25), 0.25), "logit high": (lambda x: torch.logit(x, eps=0.25), 0.75),
    "logit outside": (lambda x: torch.logit(x, eps=0.25), 0.125), "logaddexp": (torch.logaddexp, 0.5, 0.5),
    "logaddexp of others": (torch.logaddexp, 0.5, 1.5), "hardshrink": (lambda x: F.hardshrink(x, 0.5), 0.5),
    "softshrink": (lambda x: F.softshrink(x, 0.5), 0.5), "abs": (torch.abs, 0.0), "sign": (torch.sign, 0.0),
    "xlogy": (torch.xlogy, 0.0, 2.0), "xlogy of 0": (lambda x: torch.xlogy(x, torch.tensor(0.0)), 0.0), "copysign": (torch.copysign, 0.0, 1.0),
    "norm of zeros": (norm, 0.0, 0.0), "norm": (norm, 1.0, 2.0), "sinc": (torch.sinc, 0.0),
    "power of 0": (lambda x: x**0, 0.0), "mish": (F.mish, 0.0), "logsigmoid": (F.logsigmoid, 0.0),
}
# Where a part of them overflows.
for _name, _function in dict(sigmoid=torch.sigmoid, silu=F.silu, softplus=F.softplus, elu=F.elu, celu=F.celu,
                             selu=F.selu, gelu=F.gelu, mish=F.mish, logsigmoid=F.logsigmoid, tanh=torch.tanh,
                             softsign=F.softsign).items():
    POINTS.update({f"{_name} at {x}": (_function, float(x)) for x in (-100, -90, -20, 20, 90, 100)})
POINTS["softplus far"] = lambda x: F.softplus(x, 2, 70), 30.0
# PyTorch before 2.15 has a slope of 1 where a clamp to a number begins.
AT_BOUNDS = ("clamp to a minimum", "clamp to a maximum", "clamp low", "clamp high", "clamp to one",
             "clamp of halves", "clamp_min", "clamp to a tensor")


@functools.lru_cache(None)
def slopes():
    """By name: (ours, PyTorch's), sums over all positions."""
    numbers = [number for _, *points in POINTS.values() for number in points]
    table = torch.nn.Parameter(torch.tensor([numbers]))
    weights = 1 + torch.arange(len(POINTS)) % 5, torch.arange(len(POINTS)) % 3
    places, q, k, v = iter(range(len(numbers))), *tensors(*[(1, 1, N, 8)] * 3)
    own = {name: [next(places) for _ in points] for name, (_, *points) in POINTS.items()}

    def total(s, element, i, j):
        for (name, (function, *points)), a, b in zip(POINTS.items(), *(each.tolist() for each in weights)):
            # Less what it is there, so that weights of keys do not vanish.
            value = function(*map(torch.tensor, points)).item()
            s = s + (function(*map(element, own[name])) - value) * ((j * a - i * b) * 0.02)
        return s

    def mine(q, k, v):
        return flex_attention(q, k, v, lambda s, b, h, i, j: total(s, lambda n: table[h, n], i, j))

    def unfused(q, k, v):
        at = torch.arange(N)
        return total(q @ k.mT / 8**0.5, lambda n: table[0, n], at[:, None], at).softmax(-1) @ v
    found = [torch.autograd.grad(attend(q, k, v).square().sum() * 10, table)[0][0] for attend in (mine, unfused)]
    return {name: [each[places] for each in found] for name, places in own.items()}


@pytest.mark.parametrize("name", POINTS)
def test_slope(name):
    if name in AT_BOUNDS and torch.autograd.functional.jacobian(lambda x: x.clamp(min=0), torch.tensor(0.0)):
        pytest.skip("PyTorch had other slopes at bounds of clamp() before 2.15")
    got, wanted = slopes()[name]
    torch.testing.assert_close(got, wanted, rtol=1e-4, atol=1e-4)


def test_bounds_are_one_operation():
    """Which kernels have as a maximum or a minimum."""
    def lines(function):
        return [line.split(" = ")[-1].split(" ")[0] for line in trace.region(function, "score").lines.split("\n")]
    assert lines(lambda s, b, h, q, k: F.relu(s)) == ["arith.constant"] * 2 + ["math.clampf", "attn.yield"]
    assert lines(lambda s, b, h, q, k: s.clamp(0, 1)).count("math.clampf") == 2


def test_values_that_are_no_numbers():
    """NaN stays NaN; infinities are bounded."""
    q, k, v = (torch.ones(1, 1, 1, 8) for _ in range(3))
    table = torch.tensor([[float("nan"), float("inf"), -float("inf")]])
    for place, wanted in enumerate((float("nan"), 3.0, 0.0)):
        def score(s, b, h, i, j):
            x = table[h, place]
            return F.relu(x).clamp(max=1) + x.clamp(0, 1) + F.relu6(x.clamp(max=1)) + s * 0
        lse = flex_attention(q, k, v, score, return_lse=True)[1].item()
        assert lse == wanted or lse != lse and wanted != wanted
