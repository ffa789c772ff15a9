#===----------------------------------------------------------------------===#
#
# Part of attn, an attention compiler.
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===----------------------------------------------------------------------===#
"""attn.torch and the rest of PyTorch: torch.compile, opcheck, vmap, checkpoints."""

import pytest

torch = pytest.importorskip("torch", reason="attention on tensors of PyTorch needs PyTorch")

import attn  # noqa: E402
import attn.torch  # noqa: E402
import torch.utils.checkpoint  # noqa: E402

attention = attn.torch.attention


def random(*shapes):
    return [torch.randn(shape, requires_grad=True) for shape in shapes]


def test_compile():
    """One graph, compiled once for all lengths, gives what eager calls give."""
    def model(q, k, v, sink, offsets):
        o, lse = attention(q * 2, k, v, causal=True, sink=sink, window=(20, 0), layout="bshd", return_lse=True)
        packed = attention(o.flatten(0, 1), k.flatten(0, 1), v.flatten(0, 1), cu_seqlens_q=offsets)
        return packed.sum() + lse.sum()

    torch._dynamo.reset()
    compiled = torch.compile(model, fullgraph=True, dynamic=True, backend="aot_eager")
    for length in (9, 13, 22):
        tensors = random((2, length, 4, 16), (2, length, 2, 16), (2, length, 2, 16), (4,))
        offsets = torch.tensor([0, length, 2 * length])
        with torch._dynamo.config.patch(error_on_recompile=length != 9):
            got = compiled(*tensors, offsets)
            gradients = torch.autograd.grad(got, tensors)
        wanted = model(*tensors, offsets)
        assert torch.allclose(got, wanted)
        for a, b in zip(gradients, torch.autograd.grad(wanted, tensors)):
            assert torch.allclose(a, b, atol=1e-6)


def test_compiled_dropout():
    """Each call of a compiled function drops others, and its gradients know which."""
    torch._dynamo.reset()
    compiled = torch.compile(lambda q, k, v: attention(q, k, v, dropout_p=0.5), fullgraph=True, backend="aot_eager")
    q, k = random((1, 1, 16, 16), (1, 1, 16, 16))
    v = torch.eye(16).expand(1, 1, 16, 16).clone().requires_grad_()
    first, second = compiled(q, k, v), compiled(q, k, v)
    assert (first != second).any()
    d_v, = torch.autograd.grad(first.sum(), v)
    assert torch.allclose(d_v[0, 0, :, 0], first[0, 0].sum(0), atol=1e-6)


@pytest.mark.parametrize("is_turned", [False, True])
def test_opcheck(is_turned):
    program = str(attn.attention("f32", 16, captures=[("t", "tensor<?xf32>")], sink=True,
                                 score=lambda p: p.x * p.t[p.h]))
    tensors = random((2, 4, 9, 16), (2, 2, 9, 16), (2, 2, 9, 16))
    if is_turned:
        tensors = [x.detach().transpose(1, 2).contiguous().transpose(1, 2).requires_grad_() for x in tensors]
    operands = random((4,), (4,))
    torch.library.opcheck(torch.ops.attn.forward.default, (*tensors, operands, program))
    with torch.no_grad():
        o, lse = torch.ops.attn.forward(*tensors, operands, program)
    saved = [*(x.detach() for x in tensors), [x.detach() for x in operands], o, lse, program]
    checks = ("test_schema", "test_faketensor")
    for d_lse, of_captures in ((lse, True), (None, False)):
        torch.library.opcheck(torch.ops.attn.backward.default, (o, d_lse, *saved, of_captures), test_utils=checks)


def test_vmap():
    q, k, v, sink = random((3, 2, 4, 9, 16), (3, 2, 4, 9, 16), (3, 2, 4, 9, 16), (3, 4))

    def one(q, k, v, sink=None):
        return attention(q, k, v, causal=True, sink=sink)

    def check(got, wanted, *leaves):
        assert torch.equal(got, wanted)
        d_o = torch.randn(got.shape)
        for a, b in zip(*(torch.autograd.grad(x, leaves, d_o) for x in (got, wanted))):
            assert torch.allclose(a, b, atol=1e-6)
    check(torch.vmap(one)(q, k, v), torch.stack([one(*x) for x in zip(q, k, v)]), q, k, v)
    check(torch.vmap(one, in_dims=(0, None, 2))(q, k[0], v.movedim(0, 2)),
          torch.stack([one(q[n], k[0], v[n]) for n in range(3)]), q, k, v)
    check(torch.vmap(one)(q, k, v, sink), torch.stack([one(*x) for x in zip(q, k, v, sink)]), q, k, v, sink)


def test_vmap_joins_batches():
    """Where nothing depends on the entry of the batch one launch will do."""
    from attn.torch import ops

    def joins(**options):
        return ops._joins_batches(str(attn.attention("f32", 16, **options)))
    assert joins(variants=["causal"]) and joins(mask=lambda p: p.j < p.i)
    assert not joins(batch=2) and not joins(dropout_p=0.5)
    assert not joins(score=lambda p: p.x * p.b)
    assert not joins(mask=lambda p: p.j < p.b)


def test_checkpoint():
    """What is computed again drops the same weights."""
    q, k, v = random((1, 2, 16, 16), (1, 2, 16, 16), (1, 2, 16, 16))

    def block(q):
        return attention(q * 1.5, k, v, dropout_p=0.3)
    for is_reentrant in (False, True):
        torch.manual_seed(3)
        o = torch.utils.checkpoint.checkpoint(block, q, use_reentrant=is_reentrant)
        got, = torch.autograd.grad(o.square().sum(), q) if not is_reentrant else (None,)
        torch.manual_seed(3)
        again = block(q)
        assert torch.equal(o, again)
        if got is not None:
            assert torch.equal(got, torch.autograd.grad(again.square().sum(), q)[0])


def test_graph_of_export():
    """torch.export keeps attention as one operator."""
    class Model(torch.nn.Module):
        def forward(self, q, k, v):
            return attention(q, k, v, causal=True)

    tensors = [x.detach() for x in random((1, 2, 16, 16), (1, 2, 16, 16), (1, 2, 16, 16))]
    length = torch.export.Dim("length", min=2, max=4096)
    program = torch.export.export(Model(), tuple(tensors), dynamic_shapes=[{2: length}] * 3)
    calls = [node.target for node in program.graph.nodes if node.op == "call_function"]
    assert torch.ops.attn.forward.default in calls
    longer = [torch.cat([x, x], 2) for x in tensors]
    assert torch.equal(program.module()(*longer), attention(*longer, causal=True))


def test_gradients_by_torch_func():
    """torch.func.grad, and vmap over it: gradients of each entry by itself."""
    q, k, v, sink = (x.detach() for x in random((3, 2, 4, 9, 16), (3, 2, 4, 9, 16), (3, 2, 4, 9, 16), (3, 4)))

    def loss(q, k, v, sink=None):
        return attention(q, k, v, causal=True, sink=sink).square().sum()

    def wanted(*values):
        leaves = [x.detach().requires_grad_() for x in values]
        return torch.autograd.grad(loss(*leaves), leaves)
    got = torch.func.grad(loss, argnums=(0, 1, 2))(q[0], k[0], v[0])
    assert all(torch.equal(a, b) for a, b in zip(got, wanted(q[0], k[0], v[0])))
    for values in ((q, k, v), (q, k, v, sink)):
        numbers = tuple(range(len(values)))
        got = torch.vmap(torch.func.grad(loss, argnums=numbers))(*values)
        each = [wanted(*one) for one in zip(*values)]
        for number in numbers:
            assert torch.allclose(got[number], torch.stack([one[number] for one in each]), atol=1e-6)
