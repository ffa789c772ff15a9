#===----------------------------------------------------------------------===#
#
# Part of attn, an attention compiler.
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===----------------------------------------------------------------------===#
"""attn.torch.flex_attention inside of graphs of torch.compile, against itself outside."""

import pytest

torch = pytest.importorskip("torch", reason="a drop-in for PyTorch needs PyTorch")
pytest.importorskip("torch.nn.attention.flex_attention", reason="this PyTorch has no flex attention")

import attn.torch  # noqa: E402
from attn.torch import flex_attention  # noqa: E402
from test_torch_flex import CASES, H, alibi, blocks, causal, create_block_mask, near, parameter, small, tensors  # noqa: E402


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_one_graph(backend):
    """Under torch.compile one graph serves all lengths, with gradients of what is captured."""
    torch._dynamo.reset()
    table = parameter(2, 17)

    def model(q, k, v, block_mask):
        def score(s, b, h, i, j):
            return 20 * torch.tanh((s + table[h, torch.clamp(i - j, -8, 8) + 8]) / 20)
        o, lse = flex_attention(q * 2, k, v, score, block_mask, return_lse=True, enable_gqa=True)
        return o.square().sum() + lse.sum()

    compiled = torch.compile(model, fullgraph=True, dynamic=True, backend=backend)
    for length in (37, 45, 50):
        leaves = [*tensors((2, 2, length, 16), (2, 1, length, 16), (2, 1, length, 16)), table]
        mask = create_block_mask(causal, 2, 2, length, length)
        with torch._dynamo.config.patch(error_on_recompile=length != 37):
            got = compiled(*leaves[:3], mask)
            gradients = torch.autograd.grad(got, leaves)
        wanted = model(*leaves[:3], mask)
        near(got, wanted, torch.float32)
        for a, b in zip(gradients, torch.autograd.grad(wanted, leaves)):
            near(a, b, torch.float32, room=12.0)


@pytest.mark.parametrize("name", [
    "causal score", "bias in steps", "rows and columns", "latent", "by head", "odd sizes", "jagged"])
def test_in_a_graph(name):
    """Functions that Dynamo reads are those that are read without it."""
    torch._dynamo.reset()
    case = dict(CASES[name])
    make, parameters, q_shape = case["make"], case.get("parameters", ()), case.get("q_shape", (2, H, 37, 16))
    inputs = tensors(q_shape, q_shape, (*q_shape[:3], case.get("value_dim", q_shape[3])))

    def model(q, k, v, block_mask):
        mods = make(*parameters)
        score = mods[0] if isinstance(mods, tuple) else mods
        return flex_attention(q, k, v, score, block_mask, case.get("scale"))
    mods = make(*parameters)
    mask = create_block_mask(mods[1], q_shape[0], q_shape[1], *q_shape[2:3] * 2) if isinstance(mods, tuple) else None
    got = torch.compile(model, fullgraph=True, backend="aot_eager")(*inputs, mask)
    near(got, model(*inputs, mask), torch.float32)


def test_blocks_in_a_graph():
    """Blocks count where there is no mask_mod."""
    torch._dynamo.reset()
    q, k, v = small(length=48)
    compiled = torch.compile(lambda *x: flex_attention(*x[:3], alibi, x[3]), fullgraph=True, backend="aot_eager")
    for mask in (blocks([1, 0, 0], [0, 0, 1], [0, 0, 0], full=[[0, 1, 0], [0, 0, 0], [0, 0, 0]]),
                 blocks([1, 1, 0], [0, 0, 1], [0, 0, 0], full=[[0, 0, 1], [0, 0, 0], [1, 0, 0]])):
        near(compiled(q, k, v, mask), flex_attention(q, k, v, alibi, mask), torch.float32)


def test_a_mask_made_in_the_graph():
    torch._dynamo.reset()
    q, k, v = small()

    def model(q, k, v):
        return flex_attention(q, k, v, alibi, create_block_mask(causal, 2, 2, 32, 32))
    near(torch.compile(model, fullgraph=True, backend="aot_eager")(q, k, v), model(q, k, v), torch.float32)


def test_views_of_one_tensor():
    """q, k and v as one linear layer gives them; a function that is a module."""
    torch._dynamo.reset()

    class Layer(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.table, self.scale = parameter(2, 33), 0.3

        def forward(self, x, b, h, i, j):
            return x + self.table[h, (i - j).clamp(-16, 16) + 16]
    layer = Layer()

    def model(qkv):
        q, k, v = (x.unflatten(-1, (2, 16)).transpose(1, 2) for x in qkv.chunk(3, -1))
        return flex_attention(q, k, v, layer, scale=layer.scale)
    qkv, = tensors((2, 21, 96))
    got, wanted = torch.compile(model, fullgraph=True, backend="aot_eager")(qkv), model(qkv)
    near(got, wanted, torch.float32)
    leaves = [qkv, layer.table]
    for a, b in zip(*(torch.autograd.grad(x.square().sum(), leaves) for x in (got, wanted))):
        near(a, b, torch.float32, room=12.0)


def test_scale_and_sizes_that_are_symbols():
    """With dynamic=True every number is one at first."""
    torch._dynamo.reset()
    scale, inputs = 0.4, tensors((1, 2, 11, 12), (1, 2, 11, 12), (1, 2, 11, 10))
    for given in (lambda *x: flex_attention(*x, alibi, scale=scale), lambda *x: flex_attention(*x, alibi)):
        near(torch.compile(given, fullgraph=True, dynamic=True, backend="eager")(*inputs), given(*inputs), torch.float32)


def test_a_function_that_dynamo_cannot_read():
    """Without fullgraph=True it is read as it is outside of graphs."""
    torch._dynamo.reset()

    def score(x, b, h, i, j):
        print("read")
        return alibi(x, b, h, i, j)

    def model(q, k, v):
        return flex_attention(q * 2, k, v, score) + 1
    inputs = small()
    near(torch.compile(model, backend="eager")(*inputs), model(*inputs), torch.float32)
    assert torch._C._len_torch_function_stack() == 0
    torch._dynamo.reset()
    with pytest.raises(torch._dynamo.exc.Unsupported):
        torch.compile(model, fullgraph=True, backend="eager")(*inputs)
    assert torch._C._len_torch_function_stack() == 0
