#===----------------------------------------------------------------------===#
#
# Part of attn, an attention compiler.
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===----------------------------------------------------------------------===#
"""Score and mask functions in attn.torch.attention, beside its other options: values and
gradients, those of what they capture too."""

import pytest

torch = pytest.importorskip("torch", reason="attention on tensors of PyTorch needs PyTorch")

import attn  # noqa: E402
import attn.torch  # noqa: E402
from test_torch_attention import check, close, eager, inputs, lower  # noqa: E402


def test_score_and_mask():
    """A bias with a gradient, a table that both read, softcap before them."""
    tensors = inputs((2, 4, 13, 16), (2, 2, 19, 16))
    bias = torch.randn(4, 13, 19, requires_grad=True)
    kinds = torch.randint(0, 3, (2, 19))

    def score(x, b, h, i, j):
        return x + bias[h, i, j] * (kinds[b, j] == 1)

    def mask(b, h, i, j):
        return (kinds[b, j] < 2) | (j == 0)

    def wanted():
        shown = (kinds < 2)[:, None, None] | (torch.arange(19) == 0)
        return eager(*tensors, cap=3.0, bias=bias * (kinds == 1)[:, None, None],
                     shown=shown & lower(13, 19, 6))
    check(dict(score=score, mask=mask, softcap=3.0, causal=True), wanted, tensors, [bias])


def test_inside_of_documents():
    """In packed sequences functions see the document and positions inside of it."""
    lengths = [3, 9, 5]
    offsets = torch.tensor([0, 3, 12, 17], dtype=torch.int32)
    q, k, v = (torch.randn(17, 2, 16) for _ in range(3))
    table = torch.randn(3, 9)
    o = attn.torch.attention(q, k, v, cu_seqlens_q=offsets, score=lambda x, b, h, i, j: x + table[b, j] * i,
                             mask=lambda b, h, i, j: j <= i + b)
    for number, parts in enumerate(zip(*(x.split(lengths) for x in (o, q, k, v)))):
        got, *own = (x.transpose(0, 1)[None] for x in parts)
        length = lengths[number]
        bias = table[number, :length] * torch.arange(length)[:, None]
        close(got, eager(*own, bias=bias, shown=lower(length, length, number))[0], torch.float32)


def test_one_program():
    """Equal functions have equal programs, whatever they capture; a capture of the same name
    as another in the other function is another."""
    from attn.torch import kernels

    q = torch.randn(1, 2, 9, 16)
    tables = [torch.randn(9) for _ in range(2)]
    for table in tables:
        other = torch.randn(9)
        before = len(kernels._compiled)
        attn.torch.attention(q, q, q, score=lambda x, b, h, i, j: x + table[j], mask=lambda b, h, i, j: other[i] < other[j] + 9,
                             softcap=7.0)
    assert len(kernels._compiled) == before


def test_refused():
    """What has no gradient is said by attention, not by backward()."""
    q = torch.randn(1, 2, 9, 16)
    table = torch.randn(9, 9, 5, requires_grad=True)

    def score(x, b, h, i, j):
        return x * table[i, j, (i + j) % 5]
    with torch.no_grad():
        attn.torch.attention(q, q, q, score=score)
    with pytest.raises(attn.AttnError, match="whose sums have no kernel(.|\n)*%moved0"):
        attn.torch.attention(q, q, q, score=score)


class Biased(torch.nn.Module):
    """Functions made where they are used, of parameters and of what was computed before."""

    def __init__(self):
        super().__init__()
        self.bias = torch.nn.Parameter(torch.randn(4, 19))
        self.factor = torch.nn.Parameter(torch.tensor(0.7))

    def forward(self, q, k, v, sink):
        shown = q[0, 0, :, 0] > 0

        def score(x, b, h, i, j):
            return x * self.factor + self.bias[h][(i - j).abs().clamp(max=18)]

        def mask(b, h, i, j):
            return shown[i] | shown[j] | (i == j)
        return attn.torch.attention(q * 2, k, v, sink=sink, score=score, mask=mask, causal=True)


@pytest.mark.parametrize("backend", ["aot_eager", "eager"])
def test_compiled(backend):
    """One graph for all lengths, with the gradients of what functions capture."""
    torch._dynamo.reset()
    model = Biased()
    compiled = torch.compile(model, fullgraph=True, dynamic=True, backend=backend)
    for length in (9, 12):
        tensors = inputs((2, 4, length, 16), (2, 2, length, 16))
        tensors.append(torch.randn(4, requires_grad=True))
        with torch._dynamo.config.patch(error_on_recompile=length != 9):
            got = compiled(*tensors)
            leaves = [*tensors, *model.parameters()]
            gradients = torch.autograd.grad(got.square().sum(), leaves)
        wanted = model(*tensors)
        assert torch.equal(got, wanted)
        for a, b in zip(gradients, torch.autograd.grad(wanted.square().sum(), leaves)):
            assert torch.allclose(a, b, atol=1e-6)
    with torch.inference_mode():
        assert torch.equal(compiled(*tensors), wanted)


def test_compiled_score_alone():
    torch._dynamo.reset()
    q, k, v = inputs((1, 2, 9, 20), (1, 2, 9, 20))

    def model(q, k, v, table):
        return attn.torch.attention(q, k, v, score=lambda x, b, h, i, j: table[j], return_lse=True)
    got = torch.compile(model, fullgraph=True, backend="aot_eager")(q, k, v, torch.randn(9))
    assert all(x.shape[:3] == (1, 2, 9) for x in got)
    hidden = torch.compile(lambda *x: attn.torch.attention(*x, mask=lambda b, h, i, j: i < 0), fullgraph=True, backend="aot_eager")
    assert (hidden(q, k, v) == 0).all()
