#===----------------------------------------------------------------------===#
#
# Part of attn, an attention compiler.
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===----------------------------------------------------------------------===#
"""torch.compile(model, backend="attn"): attention as people write it, against eager."""

import pathlib
import sys

import pytest

torch = pytest.importorskip("torch")
import torch.nn.functional as F  # noqa: E402
from torch import nn  # noqa: E402

import attn.torch  # noqa: E402
from attn.torch import backend  # noqa: E402
from torch_models import (  # noqa: E402
    BATCH, DIM, HEADS, LENGTH, MODELS, WIDTH, Attention, Causal, Plain, Sdpa, assert_close, captured_ranks,
    compiled, run_compiled,
)

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "Integration" / "GPU"))
import backend_cases  # noqa: E402


def check_found(found, cls):
    assert [each.raised for each in found] == [True] * getattr(cls, "raised", 1), found
    assert captured_ranks(found[0].program) == getattr(cls, "captured", ()), found[0].program


@pytest.mark.parametrize("cls", MODELS, ids=lambda cls: cls.__name__)
def test_against_eager(cls):
    torch.manual_seed(0)
    module = cls()
    others = module.inputs() if hasattr(module, "inputs") else ()
    x = torch.randn(BATCH, LENGTH, WIDTH, requires_grad=True)
    d = torch.randn(BATCH, LENGTH, WIDTH)
    wanted = module(x, *others)
    inputs = [x, *module.parameters()]
    if not cls.has_gradients:
        with torch.no_grad():
            function, found = compiled(module, dynamic=True)
            assert_close(function(x, *others), wanted)
        check_found(found, cls)
        return
    gradients = torch.autograd.grad(wanted, inputs, d, allow_unused=True)
    function, found = compiled(module, dynamic=True)
    got = function(x, *others)
    check_found(found, cls)
    assert_close(got, wanted)
    for a, b in zip(torch.autograd.grad(got, inputs, d, allow_unused=True), gradients):
        assert (a is None) == (b is None)
        if b is not None:
            assert_close(a, b, 1e-4)


class CallOfFiveDimensions(Attention):
    """What is not written as a program of its own goes to the drop-in function."""

    def core(self, q, k, v):
        return F.scaled_dot_product_attention(q[None], k[None], v[None], dropout_p=0.0)[0]


class CallOfLearnedBias(Attention):
    def make(self):
        self.table = nn.Parameter(torch.randn(HEADS, 64, 64))

    def core(self, q, k, v):
        t = q.shape[2]
        return F.scaled_dot_product_attention(q, k, v, attn_mask=self.table[:, :t, :t])


@pytest.mark.parametrize("cls, has_program", [(CallOfFiveDimensions, False), (CallOfLearnedBias, True)])
def test_calls(cls, has_program):
    found, = run_compiled(cls(), torch.randn(BATCH, LENGTH, WIDTH))
    assert found.raised and (found.program is not None) == has_program, found


class MultiHead(nn.Module):
    """PyTorch's own module; Dynamo gives it as one node."""

    def __init__(self, takes, **options):
        super().__init__()
        self.attention = nn.MultiheadAttention(WIDTH, HEADS, batch_first=True)
        self.takes, self.options = takes, options

    def forward(self, x, hidden):
        o, weights = self.attention(x, x, x, key_padding_mask=hidden, **self.options)
        return o if self.takes == 1 else o + weights.sum()


@pytest.mark.parametrize(
    "module, kind, raised",
    [
        (MultiHead(1, need_weights=False), "scaled_dot_product_attention", True),
        (MultiHead(1), "softmax", True),
        (MultiHead(2), "softmax", False),
    ],
    ids=["alone", "weights unused", "weights used"],
)
def test_multihead_attention(module, kind, raised):
    hidden = torch.zeros(BATCH, LENGTH, dtype=torch.bool)
    hidden[0, 7:] = True
    found, = run_compiled(module, torch.randn(BATCH, LENGTH, WIDTH), hidden, dynamic=True)
    assert (found.kind, found.raised) == (kind, raised), found
    assert "test_torch_backend.py" in found.place, found  # not where PyTorch's module is written


def test_layer_of_pytorch_trains():
    torch.manual_seed(0)
    module = nn.TransformerEncoderLayer(WIDTH, HEADS, 64, dropout=0.0, batch_first=True)
    x = torch.randn(BATCH, LENGTH, WIDTH)
    torch._dynamo.reset()
    explanation = attn.torch.explain(module, x)
    assert explanation.raised == len(explanation) == 1
    got, wanted = torch.compile(module, backend="attn", options={"inner": "aot_eager"})(x), module(x)
    assert_close(got, wanted)
    a, b = (torch.autograd.grad(o.square().sum(), list(module.parameters())) for o in (got, wanted))
    for own, theirs in zip(a, b):
        assert_close(own, theirs, 1e-4)


class Checkpointed(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = Causal()

    def forward(self, x):
        return torch.utils.checkpoint.checkpoint(self.inner, x, use_reentrant=False)


def test_graphs_in_graphs():
    found, = run_compiled(Checkpointed(), torch.randn(BATCH, LENGTH, WIDTH))
    assert found.raised


class Pooled(nn.Module):
    """One query of all, as vision models pool: batch and heads are one dimension beside
    the length of 1."""

    def __init__(self):
        super().__init__()
        self.probe = nn.Parameter(torch.randn(1, 1, WIDTH))
        self.attention = nn.MultiheadAttention(WIDTH, HEADS, batch_first=True)

    def forward(self, x):
        return self.attention(self.probe.repeat(x.shape[0], 1, 1), x, x)[0][:, 0]


def test_one_query():
    found, = run_compiled(Pooled(), torch.randn(BATCH, LENGTH, WIDTH))
    assert found.raised


class Layouts(nn.Module):
    """Heads last, softmax in the middle."""

    def forward(self, q, k, v):
        s = torch.einsum("bihd,bjhd->bijh", q, k).mul(0.3).softmax(2)
        return torch.einsum("bijh,bjhd->bihd", s, v)


def test_other_places_of_heads_and_keys():
    found, = run_compiled(Layouts(), *(torch.randn(BATCH, LENGTH, HEADS, DIM) for _ in range(3)))
    assert found.raised
    found, = run_compiled(lambda q, k, v: torch.softmax(q @ k.T, -1) @ v,
                          *(torch.randn(LENGTH, WIDTH) for _ in range(3)))
    assert found.raised


class Rotated(Attention):
    """Queries of bf16 that are computed in f32, as positions are rotated."""

    def core(self, q, k, v):
        q = (q * torch.linspace(0.5, 1.5, DIM)).to(v.dtype)
        return torch.softmax(q @ k.mT, -1) @ v


def test_rounded_queries_stay_narrow():
    x = torch.randn(BATCH, LENGTH, WIDTH, dtype=torch.bfloat16)
    module = Rotated().bfloat16()
    function, found = compiled(module)
    with torch.no_grad():
        assert_close(function(x).float(), module(x).float(), 2e-2)
    assert [each.raised for each in found] == [True], found
    assert "f32" not in found[0].program.split(" -> ")[0], found[0].program


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")
@pytest.mark.parametrize("cls", MODELS, ids=lambda cls: cls.__name__)
def test_on_gpu(cls):
    said, agrees = backend_cases.check(cls, "cuda")
    assert agrees, said


@pytest.mark.parametrize("element", ["bf16", "f16"])
def test_program_for_gpus(element):
    said, agrees = backend_cases.check(Causal, "cpu", element, inner="eager")
    assert agrees, said


# ---------------------------------------------------------------------------
# What stays as it is
# ---------------------------------------------------------------------------


class Returned(Attention):
    def forward(self, x):
        b, t, _ = x.shape
        q = self.query(x).view(b, t, HEADS, DIM).transpose(1, 2)
        weights = torch.softmax(q @ q.mT, -1)
        return torch.cat([(weights @ q).flatten(), weights.flatten()])


class OverQueries(Attention):
    def core(self, q, k, v):
        return torch.softmax(q @ k.mT, -2) @ v


class PairMask(Attention):
    def core(self, q, k, v):
        kept = torch.linspace(-1, 1, LENGTH * LENGTH).sin()
        weights = torch.softmax(q @ k.mT, -1)
        weights = weights.to(q.dtype) * kept.view(LENGTH, LENGTH)
        return weights @ v


class NoProduct(Attention):
    def core(self, q, k, v):
        return torch.softmax(q.sum(-1, keepdim=True) + k.sum(-1).unsqueeze(-2), -1) @ v


class Unknown(Attention):
    def core(self, q, k, v):
        s = q @ k.mT
        s = torch.cumsum(s, -1)
        s = s * 2.0
        return torch.softmax(s, -1) @ v


class WrittenLater(Attention):
    """What is written to between the scores and the values."""

    def core(self, q, k, v):
        bias = (q @ k.mT).mean((0, 1))
        s = torch.softmax(q @ k.mT + bias, -1)
        bias[0] = 5.0
        return s @ (v + bias.sum())


@pytest.mark.parametrize(
    "cls, remark, text",
    [
        (Returned, "the weights are read by several operations: flatten, matmul", "torch.cat([(weights @ q).flatten()"),
        (OverQueries, "softmax runs over other positions than the keys of the product", "q @ k.mT, -2"),
        (PairMask, "the weights are multiplied", "* kept.view(LENGTH, LENGTH)"),
        (NoProduct, "no product of queries and keys is before the softmax", "q.sum(-1"),
        (Unknown, "cumsum is not an operation that is read", "torch.cumsum(s, -1)"),
        (WrittenLater, "written to", "bias[0] = 5.0"),
    ],
)
def test_what_is_not_raised_says_why(cls, remark, text):
    found, = run_compiled(cls(), torch.randn(BATCH, LENGTH, WIDTH))
    assert not found.raised and found.program is None
    assert remark in found.remark
    assert "test_torch_backend.py:" in found.place
    assert "test_torch_backend.py:" in found.edge and text in found.edge, found


def test_dropout_stays_in_training():
    module = Plain()
    module.core = lambda q, k, v: F.dropout(torch.softmax(q @ k.mT, -1), 0.5, module.training) @ v
    x = torch.randn(BATCH, LENGTH, WIDTH)
    function, found = compiled(module)
    function(x)
    assert not found[0].raised and "dropout drops weights" in found[0].remark
    module.eval()
    function, found = compiled(module)
    function(x)
    assert found[0].raised


class InPlace(Attention):
    """Scores that are changed where they lie."""

    def core(self, q, k, v):
        s = q @ k.mT
        s *= DIM**-0.5
        t = q.shape[2]
        s.masked_fill_(torch.arange(t)[None, :] > torch.arange(t)[:, None], float("-inf"))
        return s.softmax(-1) @ v


def test_scores_that_are_changed_in_place():
    found, = run_compiled(InPlace(), torch.randn(BATCH, LENGTH, WIDTH))
    assert found.raised and "mask" in found.remark


# ---------------------------------------------------------------------------
# The backend
# ---------------------------------------------------------------------------


def test_another_length_compiles_nothing():
    module, count = Causal(), []
    torch._dynamo.reset()
    function = torch.compile(module, backend=lambda graph, inputs: count.append(0) or backend.backend(
        graph, inputs, inner="eager"), dynamic=True)
    for length in (10, 16, 33):
        x = torch.randn(BATCH, length, WIDTH)
        with torch.no_grad():
            assert_close(function(x), module(x))
    assert len(count) == 1


@pytest.mark.parametrize("inner", ["eager", "aot_eager", "inductor"])
def test_by_name(inner):
    if inner == "inductor" and not backend._has_inductor(frozenset(["cpu"])):
        pytest.skip("Inductor has no compiler here")
    torch.manual_seed(0)
    module, x = Causal(), torch.randn(BATCH, LENGTH, WIDTH, requires_grad=True)
    torch._dynamo.reset()
    got = torch.compile(module, backend="attn", options={"inner": inner}, dynamic=True)(x)
    wanted = module(x)
    assert_close(got, wanted)
    a, b = (torch.autograd.grad(o.square().sum(), [x, *module.parameters()]) for o in (got, wanted))
    for own, theirs in zip(a, b):
        assert_close(own, theirs, 1e-4)


def test_wrong_options():
    for options, words in (({"inner": "outer"}, "wanted inductor, aot_eager or eager, got 'outer'"),
                           ({"inner": "eager", "max_autotune": True}, "max_autotune")):
        torch._dynamo.reset()
        with pytest.raises(Exception, match=words):
            torch.compile(Plain(), backend="attn", options=options)(torch.randn(1, 4, WIDTH))


def test_enable():
    if not backend._has_inductor(frozenset(["cpu"])):
        pytest.skip("Inductor has no compiler here")
    from torch._inductor import config

    module, x = Causal(), torch.randn(BATCH, LENGTH, WIDTH)
    seen, before = [], config.pre_grad_custom_pass
    config.pre_grad_custom_pass = lambda graph: seen.append("other")
    try:
        attn.torch.enable()
        attn.torch.enable()
        torch._dynamo.reset()
        inner = config.pre_grad_custom_pass

        def watched(graph):
            inner(graph)
            seen.extend(str(node.target) for node in graph.nodes)

        config.pre_grad_custom_pass = watched
        with torch.no_grad():
            assert_close(torch.compile(module)(x), module(x))
        config.pre_grad_custom_pass = inner
        attn.torch.enable(False)
        assert config.pre_grad_custom_pass is inner.before
    finally:
        config.pre_grad_custom_pass = before
    assert seen[0] == "other" and seen.count("attn.forward.default") == 1


def test_explain():
    class Two(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.second, self.third = Causal(), PairMask(), Sdpa()

        def forward(self, x):
            return self.third(self.second(self.first(x)))

    explanation = attn.torch.explain(Two(), torch.randn(BATCH, LENGTH, WIDTH))
    assert isinstance(explanation, attn.torch.Explanation)
    assert explanation.raised == 2 and len(explanation) == 3 and explanation.graphs == 1
    assert [found.kind for found in explanation] == ["softmax", "softmax", "scaled_dot_product_attention"]
    assert explanation[0].program.startswith("func.func @attention(")
    assert "\n" not in explanation[0].program  # Inductor writes it into a comment
    text = str(explanation)
    assert text.startswith("2 of 3 softmaxes and calls of attention raised, in 1 graph\n")
    assert "not raised softmax" in text and "the weights are multiplied" in text
    assert ": weights = weights.to(q.dtype) * kept.view(LENGTH, LENGTH)\n" in text and explanation[0].edge == ""


def test_explain_takes_sizes_as_torch_compile_does():
    """Heads and head dimensions of a function are those of its inputs."""
    def plain(q, k, v):
        return torch.softmax(q @ k.mT / q.shape[-1] ** 0.5, -1) @ v

    inputs = [torch.randn(BATCH, HEADS, LENGTH, 16) for _ in range(3)]
    explanation = attn.torch.explain(plain, *inputs)
    assert [each.raised for each in explanation] == [True], explanation
    for x in inputs:
        torch._dynamo.mark_dynamic(x, 2)
    assert attn.torch.explain(plain, *inputs).raised == 1
    for x in inputs:
        torch._dynamo.mark_dynamic(x, 3)
    explanation = attn.torch.explain(plain, *inputs)
    assert [each.remark for each in explanation] == ["a head dimension that is not known"]


def test_explain_without_a_graph():
    assert "PyTorch made no graph of it: TORCH_LOGS=graph_breaks" in str(attn.torch.Explanation())


# ---------------------------------------------------------------------------
# flex_attention
# ---------------------------------------------------------------------------


def flex(q, k, v, score, mask, slopes):
    from torch.nn.attention.flex_attention import create_block_mask, flex_attention

    def biased(s, b, h, i, j):
        return s + slopes[h] * (j - i)

    def window(b, h, i, j):
        return (i >= j) & (i - j < 5)

    blocks = create_block_mask(window, None, None, q.shape[2], k.shape[2], device="cpu") if mask else None
    return flex_attention(q, k, v, score_mod=biased if score else None, block_mask=blocks)


@pytest.mark.parametrize("score, mask", [(False, False), (True, True)])
def test_flex_attention(score, mask):
    torch.manual_seed(0)
    # PyTorch lets no gradients through flex_attention on the CPU.
    q, k, v = (torch.randn(BATCH, HEADS, LENGTH, 16) for _ in range(3))
    slopes = torch.randn(HEADS)
    i, j = torch.arange(LENGTH)[:, None], torch.arange(LENGTH)[None, :]
    s = q @ k.mT / 4
    if score:
        s = s + slopes[:, None, None] * (j - i)
    if mask:
        s = s.masked_fill((j > i) | (i - j >= 5), float("-inf"))
    wanted = s.softmax(-1) @ v
    function, found = compiled(lambda q, k, v, slopes: flex(q, k, v, score, mask, slopes))
    got = function(q, k, v, slopes)
    assert [each.raised for each in found] == [True] and found[0].kind == "flex_attention", found
    assert captured_ranks(found[0].program) == ((1,) if score else ())
    assert (" mask(" in found[0].program) == mask
    assert_close(got, wanted)


def test_faults_are_remarks(monkeypatch):
    from attn.torch import replacing

    monkeypatch.setattr(replacing, "_weights", lambda graph, softmax: 1 // 0)
    found, = run_compiled(Plain(), torch.randn(BATCH, LENGTH, WIDTH))
    assert not found.raised and "ZeroDivisionError" in found.remark
