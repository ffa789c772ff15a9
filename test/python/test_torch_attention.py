#===----------------------------------------------------------------------===#
#
# Part of attn, an attention compiler.
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===----------------------------------------------------------------------===#
"""attn.torch.attention on tensors of the CPU, forward and backward, against PyTorch's
eager evaluation in float64."""

import math

import pytest

torch = pytest.importorskip("torch", reason="attention on tensors of PyTorch needs PyTorch")

import attn  # noqa: E402
import attn.torch  # noqa: E402


def eager(q, k, v, *, bias=None, shown=None, cap=None, sink=None, scale=None, keep=None):
    """(o, lse) in float64; `shown` (…, s, t) of keys, `bias` on scores, `keep` of weights."""
    group = q.shape[1] // k.shape[1]
    k, v = (x.double().repeat_interleave(group, 1) for x in (k, v))
    x = q.double() @ k.transpose(2, 3) * (q.shape[-1] ** -0.5 if scale is None else scale)
    if cap is not None:
        x = cap * torch.tanh(x / cap)
    if bias is not None:
        x = x + bias
    if shown is not None:
        x = x.masked_fill(~shown, -math.inf)
    if sink is not None:
        logits = sink.double()[None, :, None, None].expand(*x.shape[:3], 1)
        x = torch.cat([x, logits], 3)
    empty = (x == -math.inf).all(3, keepdim=True)
    lse = torch.logsumexp(x.masked_fill(empty, 0.0), 3).masked_fill(empty[..., 0], -math.inf)
    w = torch.softmax(x.masked_fill(empty, 0.0), 3).masked_fill(empty, 0.0)[..., :k.shape[2]]
    if keep is not None:
        w = w * keep
    return w @ v, lse


def close(got, wanted, dtype, room=3.0):
    """As near to float64 as the type lets it be."""
    got, wanted = got.detach().double(), wanted.detach().double()
    assert got.shape == wanted.shape
    assert (got.isinf() == wanted.isinf()).all() and not got.isnan().any()
    where = ~wanted.isinf()
    if where.any():
        largest = wanted[where].abs().max().item()
        error = (got[where] - wanted[where]).abs().max().item()
        assert error <= room * torch.finfo(dtype).eps * max(largest, 0.5) + 1e-5


def inputs(q_shape, k_shape, value_dim=None, dtype=torch.float32, seed=0):
    torch.manual_seed(seed)
    v_shape = (*k_shape[:3], value_dim or k_shape[3])
    return [torch.randn(shape).to(dtype).requires_grad_() for shape in (q_shape, k_shape, v_shape)]


def check(options, wanted, tensors, others=(), dtype=torch.float32):
    """attention(*tensors, **options) and its gradients beside those of `wanted`, a
    function that gives (o, lse) in float64."""
    o, lse = attn.torch.attention(*tensors, return_lse=True, **options)
    exact_o, exact_lse = wanted()
    assert o.dtype == dtype and lse.dtype == torch.float32
    close(o, exact_o, dtype)
    close(lse, exact_lse, torch.float32, 30)
    d_o = torch.randn(o.shape).to(dtype)
    d_lse = torch.randn(lse.shape).masked_fill(lse == -math.inf, 0.0)
    leaves = [*tensors, *others]
    got = torch.autograd.grad([o, lse], leaves, [d_o, d_lse])
    exact = torch.autograd.grad([exact_o, exact_lse], leaves, [d_o.double(), d_lse.double()])
    for gradient, right, leaf in zip(got, exact, leaves):
        assert gradient.dtype == leaf.dtype
        close(gradient, right, dtype, 20)


def lower(queries, keys, offset):
    """Where key j is at most query i's own, i + offset."""
    return torch.arange(keys)[None, :] <= torch.arange(queries)[:, None] + offset


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_causal_with_groups(dtype):
    tensors = inputs((2, 4, 21, 24), (2, 2, 33, 24), 40, dtype)
    check(dict(causal=True), lambda: eager(*tensors, shown=lower(21, 33, 12)), tensors, dtype=dtype)


def test_run():
    """A program of one's own."""
    q, k, v = inputs((1, 2, 9, 16), (1, 2, 9, 16))
    slopes = torch.rand(2, requires_grad=True)
    program = attn.attention("f32", 16, captures=[("slopes", "tensor<?xf32>")],
                             score=lambda p: p.x * p.slopes[p.h])
    o, lse = attn.torch.run(program, q, k, v, [slopes])
    exact_o, exact_lse = eager(q * slopes.detach()[None, :, None, None], k, v)
    close(o, exact_o, torch.float32)
    close(lse, exact_lse, torch.float32)
    (o.sum() + lse.sum()).backward()
    leaves = [slopes.detach().clone().requires_grad_(), *(x.detach().clone().requires_grad_() for x in (q, k, v))]
    o, lse = eager(leaves[1] * leaves[0][None, :, None, None], *leaves[2:])
    (o.sum() + lse.sum()).backward()
    for got, wanted in zip((slopes, q, k, v), leaves):
        close(got.grad, wanted.grad, torch.float32, 20)


def test_operands():
    """What run() is given beside what the program wants."""
    q = torch.zeros(1, 1, 5, 8)
    program = attn.attention("f32", 8, captures=[("n", "i32")], mask=lambda p: p.j < p.n)
    assert attn.torch.run(program, q, q, q, [torch.tensor(3)])[0].shape == q.shape
    for operands, message in (([], r"operands: wanted 1 \(n\), got 0"),
                              ([torch.zeros(2)], "argument 'n': wanted a number, got a tensor of shape")):
        with pytest.raises(attn.AttnError, match=message):
            attn.torch.run(program, q, q, q, operands)
    with pytest.raises(attn.AttnError, match="argument 'k': wanted elements of f32"):
        attn.torch.run(program, q, q.half(), q, [torch.tensor(3)])


def test_empty_rows():
    """Queries before the first key see nothing."""
    tensors = inputs((1, 2, 40, 16), (1, 2, 13, 16))
    check(dict(causal=True), lambda: eager(*tensors, shown=lower(40, 13, -27)), tensors)


@pytest.mark.parametrize("shape", [(0, 2, 7, 5), (2, 2, 0, 5), (2, 2, 7, 0), (2, 0, 7, 5)])
def test_nothing(shape):
    """No batch, no queries, no keys, no heads of queries."""
    batch, heads, queries, keys = shape
    q, k, v = inputs((batch, heads, queries, 16), (batch, 2, keys, 16))
    o, lse = attn.torch.attention(q, k, v, causal=True, return_lse=True)
    assert o.shape == q.shape and (o == 0).all()
    assert lse.shape == q.shape[:3] and (lse == -math.inf).all()
    o.sum().backward()
    assert all(x.grad.shape == x.shape and (x.grad == 0).all() for x in (q, k, v))


def test_layouts():
    """What lies otherwise gives the same; results lie as q does."""
    q, k, v = inputs((2, 4, 21, 24), (2, 2, 33, 24))
    d_o = torch.randn(q.shape)
    o = attn.torch.attention(q, k, v, causal=True)
    assert o.is_contiguous()
    right = [o, *torch.autograd.grad(o, (q, k, v), d_o)]

    def compare(q, k, v, layout="bhsd"):
        o = attn.torch.attention(q, k, v, causal=True, layout=layout)
        turned = (lambda x: x.transpose(1, 2)) if layout == "bshd" else (lambda x: x)
        got = [o, *torch.autograd.grad(o, (q, k, v), turned(d_o))]
        assert all((turned(a) == b).all() for a, b in zip(got, right))
        return o

    def leaf(x):
        return x.detach().requires_grad_()
    turned = [leaf(x.transpose(1, 2).contiguous()) for x in (q, k, v)]
    assert compare(*turned, layout="bshd").is_contiguous()
    compare(*(leaf(x.transpose(1, 2)) for x in turned))
    compare(*(leaf(x.detach().permute(0, 1, 3, 2).contiguous().permute(0, 1, 3, 2)) for x in (q, k, v)))
    compare(*(leaf(torch.cat([x, x], 3)[..., :24]) for x in (q, k, v)))


def test_expanded():
    """Tensors whose heads or batch are one in memory have the gradients of sums."""
    q, _, _ = inputs((2, 4, 13, 16), (1, 1, 1, 8))
    k, v = (torch.randn(1, 1, 19, 16, requires_grad=True) for _ in range(2))
    wide = [x.expand(2, 4, 19, 16) for x in (k, v)]
    o = attn.torch.attention(q, *wide)
    exact, _ = eager(q, *wide)
    close(o, exact, torch.float32)
    d_o = torch.randn(o.shape)
    got, right = (torch.autograd.grad(x, (q, k, v), d_o.to(x.dtype)) for x in (o, exact))
    for a, b in zip(got, right):
        close(a, b, torch.float32, 20)
    d_q, = torch.autograd.grad(attn.torch.attention(q, *wide).sum(), q)  # d_o is one number in memory
    close(d_q, torch.autograd.grad(eager(q, *wide)[0].sum(), q)[0], torch.float32, 20)


def test_odd_head_dims():
    tensors = inputs((1, 2, 9, 20), (1, 2, 9, 20), 5)
    check(dict(), lambda: eager(*tensors), tensors)


def test_autocast():
    q, k, v = inputs((1, 2, 9, 16), (1, 2, 9, 16))
    with torch.autocast("cpu", torch.bfloat16):
        o = attn.torch.attention(q, k, v)
    assert o.dtype == torch.bfloat16
    close(o, eager(q, k, v)[0], torch.bfloat16)
    o.sum().backward()
    assert q.grad.dtype == torch.float32


def test_some_need_gradients():
    """Of k alone, and of lse alone."""
    q, k, v = (x.detach() for x in inputs((1, 2, 9, 16), (1, 2, 9, 16)))
    k.requires_grad_()
    _, lse = attn.torch.attention(q, k, v, return_lse=True)
    got, = torch.autograd.grad(lse.sum(), k)
    close(got, torch.autograd.grad(eager(q, k, v)[1].sum(), k)[0], torch.float32, 20)
    with torch.no_grad():
        assert not attn.torch.attention(q, k, v).requires_grad


def test_gradients_of_gradients():
    q, k, v = inputs((1, 2, 9, 16), (1, 2, 9, 16))
    d_q, = torch.autograd.grad(attn.torch.attention(q, k, v).sum(), q, create_graph=True)
    with pytest.raises(RuntimeError, match="attn has no gradients of gradients"):
        d_q.sum().backward()


@pytest.mark.parametrize("options, message", [
    (dict(q=torch.zeros(2, 3, 8)), "q: wanted 4 dimensions, got the shape"),
    (dict(q=torch.zeros(1, 2, 3, 8, dtype=torch.float64)), "q: wanted float16, bfloat16 or float32, got torch.float64"),
    (dict(k=torch.zeros(1, 2, 3, 8, dtype=torch.float16)), "k: wanted torch.float32 as q has, got torch.float16"),
    (dict(k=torch.zeros(1, 2, 3, 8, device="meta")), "k: wanted a tensor on cpu where q is, got one on meta"),
    (dict(k=torch.zeros(3, 2, 3, 8)), "k: wanted a batch of 1 as q has, got 3"),
    (dict(v=torch.zeros(1, 1, 3, 8)), "v: wanted 2 heads as k has, got 1"),
    (dict(v=torch.zeros(1, 2, 4, 8)), "v: wanted a length of 3 as k has, got 4"),
    (dict(k=torch.zeros(1, 2, 3, 16)), "k: wanted heads of 8 elements as q has, got 16"),
    (dict(q=torch.zeros(1, 3, 3, 8)), "q: wanted a multiple of the 2 heads of k, got 3"),
    (dict(q=torch.zeros(1, 2, 3, 264), k=torch.zeros(1, 2, 3, 264)), "q: wanted 1 to 256 elements in a head, got 264"),
    (dict(causal="left"), "causal: wanted True, False, 'bottom_right' or 'top_left', got 'left'"),
    (dict(window=-2), "window: wanted .* got -2"),
    (dict(softcap=-1.0), "softcap: wanted a number above 0, got -1.0"),
    (dict(dropout_p=1.0), "dropout_p: wanted a share of at least 0 and below 1, got 1.0"),
    (dict(layout="sbhd"), "layout: wanted 'bhsd' or 'bshd', got 'sbhd'"),
    (dict(sink=torch.zeros(3)), r"sink: wanted the shape \(2,\), got \(3,\)"),
    (dict(sink=torch.zeros(2, dtype=torch.int32)), "sink: wanted a tensor of floats, got a tensor of torch.int32"),
    (dict(alibi=torch.zeros(2, 2)), r"alibi: wanted the shape \(1, 2\), got \(2, 2\)"),
    (dict(kv_lens=torch.zeros(2)), "kv_lens: wanted a tensor of int32 or int64, got a tensor of torch.float32"),
    (dict(kv_lens=torch.zeros(2, dtype=torch.int32)), r"kv_lens: wanted the shape \(1,\), got the shape \(2,\)"),
    (dict(cu_seqlens_k=torch.zeros(2, dtype=torch.int32)), "q: wanted 3 dimensions with cu_seqlens"),
])
def test_mistakes(options, message):
    tensors = {name: options.pop(name, torch.zeros(1, 2, 3, 8)) for name in "qkv"}
    with pytest.raises((TypeError, ValueError), match=message):
        attn.torch.attention(**tensors, **options)
