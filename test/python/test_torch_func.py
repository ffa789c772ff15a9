#===----------------------------------------------------------------------===#
#
# Part of attn, an attention compiler.
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===----------------------------------------------------------------------===#
"""torch.func and forward-mode AD over calls of attn.torch, beside PyTorch's operations."""

import pytest

torch = pytest.importorskip("torch")

import attn  # noqa: E402
import attn.torch  # noqa: E402
from torch.autograd import forward_ad  # noqa: E402

D, S, T = 16, 20, 30
BIAS = torch.randn(3, 2, T, generator=torch.Generator().manual_seed(7))


@pytest.fixture
def tensors():
    generator = torch.Generator().manual_seed(3)
    return [torch.randn(3, 2, 2, length, D, generator=generator) for length in (S, T, T)]


def with_bias(q, k, v, bias):
    return attn.torch.flex_attention(q, k, v, lambda s, b, h, i, j: torch.tanh(s) + 0.5 * bias[h, j])


def with_bias_eagerly(q, k, v, bias):
    return (torch.tanh(q @ k.mT / D**0.5) + 0.5 * bias[:, None]).softmax(-1) @ v


def capped(q, k, v):
    return attn.torch.attention(q, k, v, softcap=5.0, causal=True)


def capped_eagerly(q, k, v):
    scores = 5 * torch.tanh(q @ k.mT / D**0.5 / 5)
    return scores.masked_fill(torch.ones(S, T).tril(T - S) == 0, -torch.inf).softmax(-1) @ v


def loss(function):
    return lambda *arguments: function(*arguments).square().sum()


# Each takes a function of q, k, v and a bias, and tensors that are three of each.
TRANSFORMS = {
    "grad": lambda f, q, k, v, t: torch.func.grad(loss(f), (0, 1, 2, 3))(q[0], k[0], v[0], t[0]),
    "vjp": lambda f, q, k, v, t: torch.func.vjp(f, q[0], k[0], v[0], t[0])[1](q[1]),
    "vmap": lambda f, q, k, v, t: torch.func.vmap(f)(q, k, v, t),
    "vmap of grad": lambda f, q, k, v, t: torch.func.vmap(torch.func.grad(loss(f), (0, 3)))(q, k, v, t),
    "jvp": lambda f, q, k, v, t: torch.func.jvp(
        lambda q, k, v: f(q, k, v, t[0]), (q[0], k[0], v[0]), (q[1], k[1], v[1])),
    "jvp along keys": lambda f, q, k, v, t: torch.func.jvp(lambda k: f(q[0], k, v[0], t[0]), (k[0],), (k[1],)),
    "vmap of jvp": lambda f, q, k, v, t: torch.func.vmap(
        lambda tangent: torch.func.jvp(lambda q: f(q, k[0], v[0], t[0]), (q[0],), (tangent,))[1])(q),
    "jacfwd": lambda f, q, k, v, t: torch.func.jacfwd(lambda v: f(q[0], k[0], v, t[0]).mean((0, 1, 3)))(v[0]),
    "jacrev": lambda f, q, k, v, t: torch.func.jacrev(lambda q: f(q, k[0], v[0], t[0]).mean((0, 1, 2)))(q[0]),
    "linearize": lambda f, q, k, v, t: torch.func.linearize(lambda v: f(q[0], k[0], v, t[0]), v[0])[1](v[1]),
}


@pytest.mark.parametrize("name", TRANSFORMS)
def test_transforms(tensors, name):
    """Of a function whose score captures what is differentiated, too."""
    got = TRANSFORMS[name](with_bias, *tensors, BIAS)
    wanted = TRANSFORMS[name](with_bias_eagerly, *tensors, BIAS)
    torch.testing.assert_close(got, wanted, rtol=1e-4, atol=1e-4)


def test_functions_are_traced_outside_of_transforms(tensors):
    """What a transform makes of a recorded value is no captured tensor."""
    seen = []

    def score(s, b, h, i, j):
        seen.append(type(s))
        return torch.where(i >= j, s * 2, s)

    q, k, v = (x[0] for x in tensors)
    program = []

    def call(q):
        o, lse = attn.torch.attention(q, k, v, score=score, return_lse=True)
        program.append(torch._C._functorch.peek_interpreter_stack() is not None)
        return o.sum() + lse.sum()
    torch.func.grad(call)(q)
    assert program == [True] and all(kind is not torch.Tensor for kind in seen)


def test_dual_tensors(tensors):
    q, k, v = (x[0] for x in tensors)
    tangent = tensors[0][1]
    wanted = torch.func.jvp(lambda q: capped_eagerly(q, k, v), (q,), (tangent,))[1]
    with forward_ad.dual_level():
        moved = forward_ad.unpack_dual(capped(forward_ad.make_dual(q, tangent), k, v))
        resting = forward_ad.unpack_dual(capped(q, k, v))
    torch.testing.assert_close(moved.tangent, wanted, rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(moved.primal, capped_eagerly(q, k, v), rtol=1e-4, atol=1e-5)
    assert resting.tangent is None


def test_tangents_of_lse(tensors):
    q, k, v = (x[0] for x in tensors)
    got = torch.func.jvp(lambda q: attn.torch.attention(q, k, v, return_lse=True)[1], (q,), (q,))
    wanted = torch.func.jvp(lambda q: (q @ k.mT / D**0.5).logsumexp(-1), (q,), (q,))
    torch.testing.assert_close(got, wanted, rtol=1e-4, atol=1e-5)


def test_a_row_without_keys_does_not_move(tensors):
    q, k, v = (x[0] for x in tensors)
    o, moved = torch.func.jvp(lambda q: attn.torch.attention(q, k, v, mask=lambda b, h, i, j: j > i + 25), (q,), (q,))
    assert o[:, :, 5:].count_nonzero() == 0 and moved[:, :, 5:].count_nonzero() == 0
    assert moved[:, :, :3].count_nonzero() and moved.isfinite().all()


def test_halves(tensors):
    q, k, v = (x[0].bfloat16() for x in tensors)
    got = torch.func.jvp(capped, (q, k, v), (k[:, :, :S], k, v))
    wanted = torch.func.jvp(capped_eagerly, *[tuple(x.double() for x in each) for each in ((q, k, v), (k[:, :, :S], k, v))])
    for g, w in zip(got, wanted):
        assert g.dtype == torch.bfloat16
        torch.testing.assert_close(g.double(), w, rtol=3e-2, atol=3e-2)


def test_what_has_no_tangents(tensors):
    q, k, v = (x[0] for x in tensors)
    with pytest.raises(RuntimeError, match="attn has tangents of query, key and value alone, got one of 'sink'"):
        torch.func.jvp(lambda sink: attn.torch.attention(q, k, v, sink=sink), (torch.zeros(2),), (torch.ones(2),))
    with pytest.raises(RuntimeError, match="attn has no gradients of gradients or tangents"):
        torch.func.grad(lambda q: torch.func.jvp(lambda q: capped(q, k, v), (q,), (q,))[1].sum())(q)


def test_the_operator(tensors):
    q, k, v = (x[0] for x in tensors)
    program = str(attn.attention("f32", D, variants=["causal"]))
    torch.library.opcheck(torch.ops.attn.jvp.default, (q, k, v, q, k, v, [], program))


def test_compiled_alone(tensors):
    """attn.compile(jvp=True): arguments and results by name, and what does not go with it."""
    text = attn.attention("f32", D)
    kernel = attn.compile(text, target="cpu", jvp=True)
    assert kernel.manifest["name"] == "attention_jvp"
    assert [one["roles"][0] for one in kernel.manifest["arguments"]] == [
        "query", "key", "value", "t_query", "t_key", "t_value", "output", "lse", "t_output", "t_lse"]
    q, k, v = (x[0].contiguous() for x in tensors)
    o, moved = torch.empty_like(q), torch.empty_like(q)
    lse, lse_moved = torch.empty(2, 2, S), torch.empty(2, 2, S)
    kernel.launch(q, k, v, q, k, v, o, lse, moved, lse_moved)
    wanted = torch.func.jvp(lambda q, k, v: (q @ k.mT / D**0.5).softmax(-1) @ v, (q, k, v), (q, k, v))
    torch.testing.assert_close((o, moved), wanted, rtol=1e-4, atol=1e-5)
    assert attn.compile(text, target="sm_90a", jvp=True).manifest["name"] == "attention_jvp"
    for other in ("backward", "with_backward"):
        with pytest.raises(ValueError, match=f"got jvp=True and {other}=True: tangents or gradients"):
            attn.compile(text, jvp=True, **{other: True})
