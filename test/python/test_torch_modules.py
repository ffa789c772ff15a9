#===----------------------------------------------------------------------===#
#
# Part of attn, an attention compiler.
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===----------------------------------------------------------------------===#
"""Score functions that call what changes from call to call, modules of PyTorch with hooks
among them, and operations that PyTorch makes of others: what these do to parameters alone
has gradients, too."""

import datetime
import time

import pytest

torch = pytest.importorskip("torch", reason="modules are PyTorch's")
pytest.importorskip("torch.nn.attention.flex_attention", reason="this PyTorch has no flex attention")

from attn.torch import flex_attention, trace  # noqa: E402
from test_torch_flex import near, tensors  # noqa: E402

F = torch.nn.functional
N = 9


class Scaled(torch.nn.Module):
    def forward(self, s):
        return s * 2


class Score(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = Scaled()

    def forward(self, s, b, h, q, k):
        return self.inner(s) + k * 0.125


def plain(q, k, v, score_mod):
    """By PyTorch's operations. Its flex attention without a compiler has other gradients of
    some parameters."""
    at = [torch.arange(size) for size in (*q.shape[:3], k.shape[2])]
    for dims in ((0, None, None, None, 0), (0, None, None, 0, None), (0, None, 0, None, None), (0, 0, None, None, None)):
        score_mod = torch.vmap(score_mod, in_dims=dims)
    return torch.softmax(score_mod(q @ k.mT * q.shape[3]**-0.5, *at), -1) @ v


def numbers(function):
    """The constants in the lines of a score function that multiplies by them."""
    return trace.region(function, "score").lines


def checked(score, calls=3):
    given = tensors(*[(1, 2, N, 8)] * 3)
    for _ in range(calls):
        near(flex_attention(*given, score_mod=score), plain(*given, score), torch.float32)


HOOKS = {
    "a hook": lambda score: score.inner.register_forward_hook(lambda module, given, result: result * 3),
    "a hook before": lambda score: score.inner.register_forward_pre_hook(lambda module, given: (given[0] * 3,)),
    "a hook with keywords": lambda score: score.inner.register_forward_hook(
        lambda module, given, keywords, result: result * 3, with_kwargs=True),
    "the outer hook": lambda score: score.register_forward_hook(lambda module, given, result: result * 3),
    "everyone's hook": lambda score: torch.nn.modules.module.register_module_forward_hook(
        lambda module, given, result: result * 3),
    "everyone's hook before": lambda score: torch.nn.modules.module.register_module_forward_pre_hook(
        lambda module, given: tuple(x * 2 for x in given) if len(given) == 1 else None),
}


@pytest.mark.parametrize("name", HOOKS)
def test_hooks(name):
    score = Score()
    plain = numbers(score)
    assert numbers(score) == plain
    handle = HOOKS[name](score)
    try:
        hooked = numbers(score)
        assert hooked != plain and numbers(score) == hooked
        checked(score)
    finally:
        handle.remove()
    assert numbers(score) == plain


def test_forward_of_one_module():
    score = Score()
    plain = numbers(score)
    score.inner.forward = lambda s: s * 7
    other = numbers(score)
    score.inner.forward = lambda s: s * 9
    assert len({plain, other, numbers(score)}) == 3
    del score.inner.forward
    assert numbers(score) == plain


class Turns:
    """Counts its calls, in turns of two."""

    def __init__(self):
        self.count, self.table = 0, torch.linspace(-1, 1, 2 * N)

    def __call__(self, s, b, h, q, k):
        self.count = (self.count + 1) % 2
        return s * (self.count + 1)


class WideTurns(Turns):
    """The same, with lines that depend on sizes."""

    def __call__(self, s, b, h, q, k):
        return super().__call__(s, b, h, q, k) + self.table[q - k]


class Moves(Turns):
    """Another tensor in each call."""

    def __call__(self, s, b, h, q, k):
        self.table = self.table * 2
        return s + self.table[k]


class Finds(Turns):
    """A tensor that the first call makes."""

    kept = None

    def __call__(self, s, b, h, q, k):
        if self.kept is None:
            self.kept = self.table * 2
        return s + self.kept[k]


@pytest.mark.parametrize("kind", [Turns, WideTurns, Moves, Finds])
def test_functions_that_change_what_they_reach(kind):
    mine, other, given = kind(), kind(), tensors(*[(1, 2, N, 8)] * 3)
    for _ in range(6):
        near(flex_attention(*given, score_mod=mine), plain(*given, other), torch.float32)
        other.count, other.table = mine.count, mine.table  # however often eager calls it


def test_functions_that_count_are_called_once_a_call():
    calls = []
    given = tensors(*[(1, 2, N, 8)] * 3)
    table = torch.zeros(2 * N)

    def score(s, b, h, q, k):
        calls.append(1)
        return s + table[q - k] * len(calls)
    for number in range(1, 4):
        flex_attention(*given, score_mod=score)
        assert len(calls) == number


def test_what_a_first_call_keeps_is_known_then(monkeypatch):
    calls, trace_it = [], trace.traced
    monkeypatch.setattr(trace, "traced", lambda *given: calls.append(given) or trace_it(*given))
    score = Finds()
    for _ in range(4):
        numbers(score)
    assert len(calls) == 2


def test_other_types_under_autocast():
    """Of a product that the function makes, and of one that it makes in a type of its own."""
    given = tensors(*[(1, 2, N, 8)] * 3)
    one, other = torch.randn(2, 8) * 3, torch.randn(8, N)

    def score(s, b, h, q, k):
        with torch.autocast("cpu", torch.float16):
            inner = one @ other
        return s + (one @ other)[h, k] * 4 + inner[h, q] * k

    for dtype in (torch.bfloat16, torch.float16, torch.bfloat16, torch.float16):
        with torch.autocast("cpu", dtype):
            o, outer = flex_attention(*given, score_mod=score), (one @ other).float()
            assert trace.region(score, "score").captures[0][1].endswith("bf16>" if dtype == torch.bfloat16 else "xf16>")
        inner = (one.half() @ other.half()).float()
        q, k, v = (x.to(dtype).float() for x in given)
        wanted = plain(q, k, v, lambda s, b, h, q, k: s + outer[h, k] * 4 + inner[h, q] * k)
        near(o, wanted, dtype)


def _of_numpy():
    numpy = pytest.importorskip("numpy")
    return lambda s, b, h, q, k: s * float(numpy.random.rand())


CLOCKS = {
    "a clock": lambda: lambda s, b, h, q, k: s * (time.perf_counter() % 1),
    "a date": lambda: lambda s, b, h, q, k: s * (datetime.datetime.now().timestamp() % 1),
    "random numbers of NumPy": _of_numpy,
}


@pytest.mark.parametrize("name", CLOCKS)
def test_clocks(name):
    score = CLOCKS[name]()
    assert len({numbers(score) for _ in range(3)}) == 3


def linear(sizes):
    layers = [torch.nn.Linear(n, m) for n, m in zip(sizes, sizes[1:])]
    return torch.nn.Sequential(*[part for layer in layers for part in (layer, torch.nn.Tanh())])


class OfScore(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = linear([1, 4, 1])

    def forward(self, s, b, h, q, k):
        return s + self.inner(s.reshape(1))[0]


class OfPositions(torch.nn.Module):
    def __init__(self, kind):
        super().__init__()
        self.table, self.kind = torch.nn.Embedding(N, 3), kind
        self.weight, self.bias = (torch.nn.Parameter(torch.randn(3)) for _ in range(2))
        self.inner = linear([3, 1])

    def forward(self, s, b, h, q, k):
        one, other = self.table(q), self.table(k)
        if self.kind == "linear":
            return s + self.inner(one + other)[0]
        if self.kind == "logsumexp":
            return torch.logsumexp(torch.stack([s, one[0], other[1]]), 0)
        if self.kind == "halves of a vector":
            return s + F.glu(torch.cat([one[:2], other[:2]]), 0).sum()
        if self.kind == "parts":
            return s * torch.stack([one[0], s, other[0]]).tensor_split(2)[0].sum()
        if self.kind == "addmm":
            return s + torch.addmm(self.bias[None], one[None], self.weight.diag())[0, 0]
        if self.kind == "layer_norm":
            return s + F.layer_norm(one * other, (3,), self.weight, self.bias)[0]
        if self.kind == "variances":
            return s + one.var() * other.var(unbiased=False) + torch.stack([one, other]).var(0, correction=0).sum()
        if self.kind == "einsum":
            return s + torch.einsum("d,de,e->", one, self.weight[:, None] * self.bias, other)
        return s + F.rms_norm(one * other, (3,), self.weight)[0]


MODULES = {"an MLP of scores": OfScore}
MODULES.update({kind: lambda kind=kind: OfPositions(kind) for kind in (
    "linear", "logsumexp", "halves of a vector", "parts", "addmm", "rms_norm", "layer_norm",
    "variances", "einsum")})


@pytest.mark.parametrize("name", MODULES)
def test_gradients_of_parameters(name):
    torch.manual_seed(3)
    module, given = MODULES[name](), tensors(*[(1, 2, N, 8)] * 3)
    weights = torch.randn_like(given[0])
    used = [*given, *module.parameters()]
    results = []
    for attention in (flex_attention, plain):
        o = attention(*given, module)
        results.append((o, *torch.autograd.grad((o * weights).sum(), used, allow_unused=True)))
    for got, wanted in zip(*results):
        assert (got is None or not got.any()) if wanted is None else got is not None
        if wanted is not None:
            near(got, wanted, torch.float32)
