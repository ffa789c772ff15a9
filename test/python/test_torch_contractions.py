#===----------------------------------------------------------------------===#
#
# Part of attn, an attention compiler.
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===----------------------------------------------------------------------===#
"""Products of attention that PyTorch has other names for, and factors of weights."""

import pytest

torch = pytest.importorskip("torch", reason="torch.einsum is PyTorch's")

from torch.nn import functional as F  # noqa: E402

from attn.torch import backend  # noqa: E402

BATCH, HEADS, LENGTH, DIM = 2, 3, 37, 16
FULL, FLAT = (BATCH, HEADS, LENGTH, DIM), (LENGTH, DIM)
CASES = {}


def case(*shapes, raised=True):
    """Of tensors of these shapes."""
    def note(function):
        CASES[function] = shapes, raised
        return function
    return note


def attend(scores, v):
    return (scores / 4).softmax(-1) @ v


@case(FLAT, FLAT, FLAT)
def two_linears(q, k, v):
    return F.linear(F.softmax(F.linear(q, k) / 4, -1), v.t())


@case(FLAT, FLAT, FLAT, (LENGTH,))
def addmm_of_a_row(q, k, v, bias):
    return attend(torch.addmm(bias, q, k.t()), v)


@case(FLAT, FLAT, FLAT, (LENGTH, LENGTH))
def addmm_with_factors(q, k, v, bias):
    return attend(bias.addmm(q, k.t(), beta=0.5, alpha=0.3), v)


@case(FLAT, FLAT, FLAT, (LENGTH, DIM), raised=False)
def addmm_of_weights(q, k, v, bias):
    return torch.addmm(bias, (q @ k.t() / 4).softmax(-1), v)


@case(FULL, FULL, FULL, (BATCH, HEADS, LENGTH))
def factor_of_keys(q, k, v, factor):
    return attend(torch.einsum("bhqd,bhkd,bhk->bhqk", q, k, factor), v)


@case(FULL, FULL, FULL, (BATCH, HEADS, LENGTH))
def factor_of_keys_first(q, k, v, factor):
    return attend(torch.einsum("bhk,bhqd,bhkd->bhqk", factor, q, k), v)


@case(FULL, FULL, FULL, (HEADS, DIM))
def factor_of_dimensions(q, k, v, factor):
    return attend(torch.einsum("bhqd,hd,bhkd->bhqk", q, factor, k), v)


@case(FULL, FULL, FULL, (DIM, DIM))
def bilinear(q, k, v, matrix):
    return attend(torch.einsum("bhqd,de,bhke->bhqk", q, matrix, k) / 4, v)


@case(FULL, FULL, FULL, (BATCH, HEADS, LENGTH, LENGTH))
def factor_of_pairs(q, k, v, factor):
    return attend(torch.einsum("bhqd,bhkd,bhqk->bhqk", q, k, factor), v)


@case(FULL, FULL, FULL, (HEADS,))
def factor_of_heads(q, k, v, factor):
    return attend(torch.einsum("bhij,h->bhij", q @ k.mT, factor), v)


@case(FULL, FULL, FULL, (BATCH, HEADS, LENGTH))
def factor_of_rows_of_weights(q, k, v, factor):
    weights = (q @ k.mT / 4).softmax(-1)
    return torch.einsum("bhqk,bhkd,bhq->bhqd", weights, v, factor)


@case((BATCH, LENGTH, 8, 3), (BATCH, LENGTH, 8, 3), (BATCH, LENGTH, DIM))
def two_letters_that_are_summed(q, k, v):
    return attend(torch.einsum("bncx,bmcx->bnm", q, k), v)


@case((BATCH, LENGTH, DIM), (BATCH, LENGTH, DIM), (BATCH, LENGTH, DIM))
def lists_of_numbers(q, k, v):
    weights = (torch.einsum(q, [0, 1, 2], k, [0, 3, 2], [0, 1, 3]) / 4).softmax(-1)
    return torch.einsum(weights, [0, 1, 3], v, [0, 3, 2], [0, 1, 2])


@case(FLAT, FLAT, FLAT)
def tensordot(q, k, v):
    return torch.tensordot(torch.softmax(torch.tensordot(q, k, dims=([1], [1])) / 4, -1), v, dims=1)


@case(FULL, FULL, FULL, (1, HEADS, 1, 1))
def gate_of_heads(q, k, v, gate):
    return ((q @ k.mT / 4).softmax(-1) * gate.sigmoid()) @ v


@case(FULL, FULL, FULL, (LENGTH, 1))
def gate_of_queries(q, k, v, gate):
    return (gate * (q @ k.mT / 4).softmax(-1)) @ v


@case(FULL, FULL, FULL, (BATCH, 1, 1, LENGTH))
def gate_of_keys(q, k, v, gate):
    return torch.einsum("bhij,bhjd->bihd", (q @ k.mT / 4).softmax(-1) * gate, v)


@case(FULL, FULL, FULL, (BATCH, HEADS, LENGTH, LENGTH), raised=False)
def gate_of_pairs(q, k, v, gate):
    return ((q @ k.mT / 4).softmax(-1) * gate) @ v


@case(FULL, FULL, FULL)
def types_that_are_of_others(q, k, v):
    """As protein language models have it: a cast that only says what type another is of."""
    scores = q @ k.mT / 4
    exact = F.softmax(scores, dim=-1, dtype=torch.float32)
    scores = exact.type_as(scores)
    return F.dropout(exact.type_as(scores), p=0.1, training=False) @ v


@case(FULL, FULL, FULL)
def zeros_like_weights(q, k, v):
    hidden = torch.arange(LENGTH)[:, None] < 5
    weights = (q @ k.mT / 4).masked_fill(hidden, float("-inf")).softmax(-1)
    return torch.where(torch.isnan(weights), torch.zeros_like(weights), weights) @ v


@case(FULL, FULL, FULL, raised=False)
def without_a_softmax(q, k, v):
    return torch.einsum("bhnd,bhmd,bhme->bhne", q, k, v)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=["f32", "bf16"])
@pytest.mark.parametrize("function", CASES, ids=lambda function: function.__name__)
def test_product(function, dtype):
    torch.manual_seed(1)
    shapes, is_raised = CASES[function]
    inputs = [torch.randn(shape).to(dtype).requires_grad_() for shape in shapes]
    wide = [x.detach().double().requires_grad_() for x in inputs]
    torch._dynamo.reset()
    found = []
    compiled = torch.compile(function, backend=lambda graph, examples: backend.backend(
        graph, examples, inner="eager", listener=found.extend))
    got, plain, wanted = compiled(*inputs), function(*inputs), function(*wide)
    upstream = torch.randn_like(got)
    results = [[result, *torch.autograd.grad(result, of, upstream.to(result.dtype))]
               for result, of in ((got, inputs), (plain, inputs), (wanted, wide))]
    for mine, its, exact in zip(*results):
        if exact.isnan().any():  # of rows that see no key
            continue
        bound = 2 * (its - exact).abs().max() + (2e-5 if dtype == torch.float32 else 2e-2) * (1 + exact.abs().max())
        assert (mine - exact).abs().max() <= bound
    if function is not without_a_softmax:
        assert [each.raised for each in found] == [is_raised], found


def test_large_products_stay():
    """No product of two factors is larger than what there is."""
    graphs = []

    def note(graph, examples):
        graphs.append(graph.graph)
        return backend.backend(graph, examples, inner="eager")

    q, k, v = (torch.randn(1, 1, 100, 8) for _ in range(3))
    torch._dynamo.reset()
    torch.compile(without_a_softmax, backend=note)(q, k, v)
    assert all(node.meta["example_value"].numel() <= q.numel() for node in graphs[0].nodes if node.op == "call_function")


def test_a_gate_that_is_written_to():
    def function(q, k, v, gate):
        gate = gate * 1
        weights = (q @ k.mT / 4).softmax(-1) * gate
        gate.mul_(2)
        return (weights @ v) * gate

    inputs = [*(torch.randn(FULL) for _ in range(3)), torch.randn(HEADS, 1, 1)]
    torch._dynamo.reset()
    got = torch.compile(function, backend="attn", options={"inner": "eager"})(*inputs)
    torch.testing.assert_close(got, function(*inputs), atol=2e-5, rtol=2e-5)


def test_under_autocast():
    """Under autocast einsum casts its factors, each of which is then read so."""
    def function(q, k, v, factor):
        with torch.autocast("cpu", torch.bfloat16):
            return attend(torch.einsum("bhqd,bhkd,h->bhqk", q, k, factor), v)

    inputs = [*(torch.randn(FULL) for _ in range(3)), torch.randn(HEADS)]
    torch._dynamo.reset()
    got = torch.compile(function, backend="attn", options={"inner": "eager"})(*inputs)
    wanted = function(*inputs)
    assert got.dtype == wanted.dtype
    torch.testing.assert_close(got, wanted, atol=5e-2, rtol=5e-2)
