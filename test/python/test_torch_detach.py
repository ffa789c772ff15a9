#===----------------------------------------------------------------------===#
#
# Part of attn, an attention compiler.
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===----------------------------------------------------------------------===#
"""Score functions that stop gradients, with detach(), torch.no_grad() or a like of them:
gradients go where PyTorch's go."""

import functools

import pytest

torch = pytest.importorskip("torch", reason="gradients are PyTorch's")
pytest.importorskip("torch.nn.attention.flex_attention", reason="this PyTorch has no flex attention")

import attn.torch  # noqa: E402
from attn.torch import flex_attention, trace  # noqa: E402
from test_torch_flex import eager, near, same, tensors  # noqa: E402

N = 21


def without(stop):
    """s w, where w is a weight that is made inside of `stop`."""
    def make(t):
        def score(s, b, h, q, k):
            with stop():
                weight = torch.sigmoid(s * t[h])
            return s * weight + t[h] * (q - k) * 0.1
        return score
    return make


def straight_through(t):
    def score(s, b, h, q, k):
        y = s * t[h]
        return y + (y.round() - y).detach()
    return score


def with_gradients_inside(t):
    @torch.no_grad()
    def score(s, b, h, q, k):
        weight = torch.sigmoid(s)
        with torch.enable_grad():
            return s * weight + t[h] * k * 0.1
    return score


def switched(t):
    def score(s, b, h, q, k):
        torch.set_grad_enabled(False)
        weight = torch.where(q > k, t[h], s)
        element = t[h]
        torch.set_grad_enabled(True)
        return s * weight * element + t[h] * k * 0.1
    return score


def in_place(t):
    def score(s, b, h, q, k):
        with torch.no_grad():
            weight = s * t[h]
            weight.mul_(0.5).add_(t[h])
        return s * weight.tanh() + t[h] * k * 0.1
    return score


SCORES = {
    "detach": lambda t: lambda s, b, h, q, k: s * t[h] * torch.sigmoid(s.detach()),
    "an element": lambda t: lambda s, b, h, q, k: s + t[q % 4].detach() * t[h],
    "a tensor": lambda t: lambda s, b, h, q, k: s + t.detach()[q % 4] * t[h],
    "straight through": straight_through,
    "no_grad": without(torch.no_grad),
    "set_grad_enabled": without(functools.partial(torch.set_grad_enabled, False)),
    "switched": switched,
    "enable_grad": with_gradients_inside,
    "in place": in_place,
}


def slopes():
    torch.manual_seed(3)
    return torch.nn.Parameter(torch.rand(4) + 0.5)


@pytest.mark.parametrize("name", SCORES)
def test_gradients(name):
    same(SCORES[name], q_shape=(1, 4, N, 8), parameters=[slopes()])


def test_several_results():
    """Vectors, and operations with several results: against the whole scores, since flex
    attention of PyTorch 2.15 has other gradients of stack() and unbind()."""
    q, k, v = tensors(*[(1, 4, N, 8)] * 3)
    t, results = slopes(), []

    def score(s, b, h, i, j):
        rows = torch.stack([s, t[h], s * t[h]])
        with torch.no_grad():
            first, _, last = rows.unbind()
        return first * rows[1] + last * rows[0] + rows.detach()[2] * rows[1]

    def unfused(q, k, v):
        s, slope = q @ k.mT / 8**0.5, t[:, None, None]
        s = s.detach() * slope + (s * slope).detach() * s + (s * slope).detach() * slope
        return s.softmax(-1) @ v
    for attend in (lambda *x: flex_attention(*x, score), unfused):
        results.append(torch.autograd.grad(attend(q, k, v).square().sum(), (q, k, v, t)))
    for a, b in zip(*results):
        near(a, b, torch.float32, room=12.0)


@pytest.mark.parametrize("one, other", [
    (without(torch.no_grad), without(torch.inference_mode)),
    (SCORES["detach"], lambda t: lambda s, b, h, q, k: s * t[h] * torch.sigmoid(s.data)),
    (SCORES["detach"], lambda t: lambda s, b, h, q, k: s * t[h] * torch.sigmoid(s.detach().requires_grad_(False))),
], ids=["inference_mode", "data", "requires_grad_"])
def test_other_names(one, other):
    """What PyTorch refuses under vmap stops the same."""
    t = slopes()
    assert trace.region(other(t), "score").lines == trace.region(one(t), "score").lines


@pytest.mark.parametrize("first", [True, False])
def test_whatever_comes_first(first):
    """A function that was known without gradients has them later, and the other way."""
    q, k, v = tensors(*[(1, 4, N, 8)] * 3)
    t, scale = slopes(), 1.0 + first  # no function that another test has made known

    def score(s, b, h, i, j):
        with torch.no_grad():
            weight = torch.sigmoid(s * t[h])
        return s * weight * scale
    wanted = torch.autograd.grad(eager(q, k, v, score)[0].square().sum(), (q, k))
    for _ in range(2):
        for has_gradients in (first, not first):
            with torch.set_grad_enabled(has_gradients):
                o = flex_attention(q, k, v, score)
            assert o.requires_grad == has_gradients
            if has_gradients:
                for a, b in zip(torch.autograd.grad(o.square().sum(), (q, k)), wanted):
                    near(a, b, torch.float32, room=12.0)


@pytest.mark.parametrize("name", ["detach", "no_grad", "straight through"])
def test_in_a_graph(name):
    torch._dynamo.reset()
    q, k, v = tensors(*[(1, 4, N, 8)] * 3)
    t = slopes()

    def model(q, k, v):
        return flex_attention(q * 2, k, v, SCORES[name](t))
    results = []
    for function in (torch.compile(model, fullgraph=True, backend="aot_eager"), model):
        results.append(torch.autograd.grad(function(q, k, v).square().sum(), (q, k, t)))
    for a, b in zip(*results):
        near(a, b, torch.float32, room=12.0)


def test_lines():
    """Bits stand where gradients stop, and nowhere else."""
    t = slopes()
    score = trace.region(lambda s, b, h, q, k: s * s.detach() + (q - k).float().detach(), "score")
    assert score.lines.count("arith.bitcast") == 2
    score = trace.region(lambda s, b, h, q, k: s * t[h].detach().detach(), "score")
    assert score.lines.count("arith.bitcast") == 2
    mask = trace.region(lambda b, h, q, k: q.detach() >= k, "mask")
    assert "bitcast" not in mask.lines


def test_a_function_of_autograd_is_differentiated():
    """PyTorch has no gradients inside of its forward; nobody asked for that."""
    class Twice(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, gradient):
            return gradient * 2
    assert "bitcast" not in trace.region(lambda s, b, h, q, k: Twice.apply(s), "score").lines


@pytest.mark.parametrize("name", ["in place", "detach_"])
def test_refused(name):
    """A number with gradients that another takes the place of, of which they know nothing;
    what PyTorch refuses."""
    def in_place(s, b, h, q, k):
        y = s * 2
        with torch.no_grad():
            y.mul_(3)
        return y
    score = {"in place": in_place, "detach_": lambda s, b, h, q, k: (s * 2).detach_() * s}[name]
    said = r"test_torch_detach\.py:\d+: score_mod: .*(inside of torch\.no_grad|use detach\(\))"
    with pytest.raises(trace.TraceError, match=said):
        trace.region(score, "score")
