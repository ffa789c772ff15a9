#===----------------------------------------------------------------------===#
#
# Part of attn, an attention compiler.
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===----------------------------------------------------------------------===#
"""Activations of scores, through torch.compile(backend="attn"): values and gradients against
those of float64."""

import pytest

torch = pytest.importorskip("torch", reason="activations are those of PyTorch")

from torch.nn import functional as F  # noqa: E402

from attn.torch import backend  # noqa: E402

BATCH, HEADS, LENGTH, DIM = 2, 2, 19, 16
ACTIVATIONS = {
    "sigmoid": torch.sigmoid,
    "silu": F.silu,
    "silu in place": lambda x: F.silu(x, inplace=True),
    "gelu": F.gelu,
    "gelu by tanh": lambda x: F.gelu(x, approximate="tanh"),
    "leaky_relu": lambda x: F.leaky_relu(x, 0.2),
    "leaky_relu_": lambda x: F.leaky_relu_(x, negative_slope=0.1),
    "module": torch.nn.LeakyReLU(),
    "elu": F.elu,
    "elu of half": lambda x: F.elu(x, alpha=0.5),
    "softplus": F.softplus,
    "softplus of two": lambda x: F.softplus(x, beta=2.0, threshold=5.0),
    "logsigmoid": F.logsigmoid,
    "hardtanh": F.hardtanh,
    "relu6": F.relu6,
    "softsign": F.softsign,
    "hardsigmoid": F.hardsigmoid,
    "hardswish": F.hardswish,
    "mish": F.mish,
    "celu": F.celu,
    "celu of two": lambda x: F.celu(x, alpha=2.0),
    "selu": F.selu,
    "tanhshrink": F.tanhshrink,
    "softshrink": F.softshrink,
    "hardshrink": lambda x: F.hardshrink(x, 0.2),
    "threshold": lambda x: F.threshold(x, 0.1, -3.0),
    "reciprocal": lambda x: (x.abs() + 1).reciprocal(),
    "frac": torch.frac,
    "trunc": lambda x: x - torch.trunc(x) / 2,
    "round": lambda x: x + torch.round(x * 2),
    "tan": lambda x: torch.tan(torch.tanh(x)),
    "sinh": lambda x: torch.sinh(torch.tanh(x)),
    "cosh": lambda x: torch.cosh(torch.tanh(x)),
    "expm1": lambda x: torch.expm1(-x.abs()),
    "erfc": torch.erfc,
    "log10": lambda x: torch.log10(x.abs() + 1),
    "atan": torch.atan,
    "asin": lambda x: torch.asin(0.9 * torch.tanh(x)),
    "acos": lambda x: torch.acos(0.9 * torch.tanh(x)),
    "asinh": torch.asinh,
    "acosh": lambda x: torch.acosh(x.abs() + 1.5),
    "atanh": lambda x: torch.atanh(0.9 * torch.tanh(x)),
    "addcmul": lambda x: torch.addcmul(x, x, x.tanh(), value=0.1),
    "addcdiv": lambda x: torch.addcdiv(x, x, x.abs() + 1),
    "lerp": lambda x: torch.lerp(x, x.tanh(), 0.3),
    "positive": lambda x: +x * x.sgn(),
    "relu": F.relu,
    "relu in place": lambda x: F.relu(x, inplace=True),
    "clamp": lambda x: x.clamp(0, 0.5),
    "clamp from below": lambda x: x.clamp(min=0),
    "clamp from above": lambda x: x.clamp_max(0),
    "clamp of crossed bounds": lambda x: x * x.clamp(0.5, -0.25),
    "maximum": lambda x: torch.maximum(x, torch.zeros_like(x)),
    "a choice that is open": lambda x: torch.where(x > 0, x, 0.0),
    "a choice that is closed": lambda x: torch.where(x >= 0, x, 0.0),
    "a choice that is filled": lambda x: x.masked_fill(x < 0, 0.0),
    "a choice that is not filled": lambda x: x.masked_fill(~(x > 0), 0.0),
    "logit": lambda x: torch.logit(0.1 + 0.8 * torch.sigmoid(x)),
    "logaddexp": lambda x: torch.logaddexp(x, -2 * x),
    "logaddexp of a number": lambda x: torch.logaddexp(x, torch.full_like(x, 0.5)),
    "fmod": lambda x: torch.fmod(x, 0.75),
    "remainder": lambda x: torch.remainder(x, 0.75),
    "operator of remainders": lambda x: x % 3,
    "sign of roots": lambda x: x.sign() * (x.abs() + 1).sqrt(),
}


def attend(activation):
    def attention(q, k, v):
        return activation(q @ k.mT / 4).softmax(-1) @ v
    return attention


def compiled(function, found):
    torch._dynamo.reset()
    return torch.compile(function, backend=lambda graph, examples: backend.backend(
        graph, examples, inner="eager", listener=found.extend))


def distance(got, wanted):
    return (got.double() - wanted).abs().max().item()


@pytest.mark.parametrize("factor", [1, 100], ids=["scores near 0", "large scores"])
@pytest.mark.parametrize("name", ACTIVATIONS)
def test_activation(name, factor):
    """Some keys are 0, and so are their scores: there a slope is that of one side."""
    torch.manual_seed(0)
    function, found = attend(ACTIVATIONS[name]), []
    q, k, v = (torch.randn(BATCH, HEADS, LENGTH, DIM) for _ in range(3))
    q *= factor
    k[0, 0, :5] = 0
    inputs = [x.requires_grad_() for x in (q, k, v)]
    wide = [x.detach().double().requires_grad_() for x in inputs]
    got, plain, wanted = compiled(function, found)(*inputs), function(*inputs), function(*wide)
    assert [each.raised for each in found] == [True], found
    assert distance(got, wanted) <= 2 * distance(plain, wanted) + 1e-6
    upstream = torch.randn_like(got)
    gradients = (torch.autograd.grad(result, of, upstream.to(result.dtype))
                 for result, of in ((got, inputs), (plain, inputs), (wanted, wide)))
    for mine, its, exact in zip(*gradients):
        assert distance(mine, exact) <= 3 * distance(its, exact) + 1e-5


# Bounds by a choice, which is the bound or the score where that is not a number.
CHOICES = {
    "at least": lambda s: torch.where(s <= 0.1, 0.1, s),
    "at most": lambda s: torch.where(s >= 0.1, 0.1, s),
    "at least, filled": lambda s: s.masked_fill(s < 0.1, 0.1),
    "at least, else the bound": lambda s: torch.where(s > 0.1, s, 0.1),
    "at most, else the bound": lambda s: torch.where(s < 0.1, s, 0.1),
    "not at most": lambda s: torch.where(~(s > 0.1), s, 0.1),
}


@pytest.mark.parametrize("name", [*ACTIVATIONS, *CHOICES])
def test_nan_stays(name):
    function, found = attend({**ACTIVATIONS, **CHOICES}[name]), []
    q, k, v = (torch.randn(BATCH, HEADS, LENGTH, DIM) for _ in range(3))
    q[0, 1, 6, 0] = float("nan")
    got, wanted = compiled(function, found)(q, k, v), function(q, k, v)
    assert [each.raised for each in found] == [True], found
    torch.testing.assert_close(got, wanted, atol=1e-5, rtol=1e-5, equal_nan=True)


@pytest.mark.parametrize("name, activation", [
    ("special_i0", torch.special.i0), ("fmax", lambda x: torch.fmax(x, torch.ones(()))), ("digamma", torch.digamma)])
def test_what_is_not_read_is_named(name, activation):
    function, found = attend(activation), []
    inputs = [torch.randn(BATCH, HEADS, LENGTH, DIM) for _ in range(3)]
    assert torch.equal(compiled(function, found)(*inputs), function(*inputs))
    assert [each.remark for each in found] == [f"{name} is not an operation that is read"]


def test_a_number_from_elsewhere():
    def function(q, k, v, slope):
        return F.leaky_relu(q @ k.mT, slope.item()).softmax(-1) @ v

    inputs, found = [torch.randn(BATCH, HEADS, LENGTH, DIM) for _ in range(3)], []
    with torch._dynamo.config.patch(capture_scalar_outputs=True):
        got = compiled(function, found)(*inputs, torch.tensor(0.3))
    assert torch.equal(got, function(*inputs, torch.tensor(0.3))) and not any(each.raised for each in found)


def test_softmin():
    def function(q, k, v):
        return F.softmin(q @ k.mT / 4, dim=-1) @ v

    inputs, found = [torch.randn(BATCH, HEADS, LENGTH, DIM) for _ in range(3)], []
    got = compiled(function, found)(*inputs)
    assert [each.raised for each in found] == [True], found
    torch.testing.assert_close(got, function(*inputs), atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("heads", [1, HEADS])
def test_prelu(heads):
    """A slope that is learned, for all or for each head."""
    def attention(q, k, v, slope):
        return F.prelu(q @ k.mT / 4, slope).softmax(-1) @ v

    torch.manual_seed(0)
    inputs = [torch.randn(BATCH, HEADS, LENGTH, DIM) for _ in range(3)] + [torch.rand(heads)]
    check_learned(attention, inputs)


def test_logaddexp_of_a_bias():
    def attention(q, k, v, bias):
        return torch.logaddexp(q @ k.mT / 4, bias).softmax(-1) @ v

    torch.manual_seed(0)
    inputs = [torch.randn(BATCH, HEADS, LENGTH, DIM) for _ in range(3)] + [torch.randn(HEADS, LENGTH, LENGTH)]
    check_learned(attention, inputs)


def check_learned(attention, inputs):
    inputs, found = [x.requires_grad_() for x in inputs], []
    wide = [x.detach().double().requires_grad_() for x in inputs]
    got, wanted = compiled(attention, found)(*inputs), attention(*wide)
    assert [each.raised for each in found] == [True], found
    upstream = torch.randn_like(got)
    pairs = zip(torch.autograd.grad(got, inputs, upstream), torch.autograd.grad(wanted, wide, upstream.double()))
    for mine, exact in ((got, wanted), *pairs):
        assert distance(mine, exact) <= 2e-5 * max(1.0, exact.abs().max().item())


@pytest.mark.parametrize("change", [
    lambda s: torch.remainder(s, -0.75), lambda s: torch.fmod(s, s.detach().abs() + 1), lambda s: torch.remainder(3.0, s)],
    ids=["negative", "of scores", "of a number"])
def test_remainders_that_are_not_read(change):
    found = []
    q, k, v = (torch.randn(BATCH, HEADS, LENGTH, DIM) for _ in range(3))
    got = compiled(attend(change), found)(q, k, v)
    assert [each.raised for each in found] == [False], found
    assert distance(got, attend(change)(q, k, v)) == 0
