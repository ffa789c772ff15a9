#===----------------------------------------------------------------------===#
#
# Part of attn, an attention compiler.
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===----------------------------------------------------------------------===#
"""scaled_dot_product_attention on tensors of the CPU, against PyTorch's in float64."""

import inspect
import math

import pytest

torch = pytest.importorskip("torch", reason="PyTorch's function needs PyTorch")

from attn.torch.sdpa import scaled_dot_product_attention  # noqa: E402
from torch_reference import check_close, check_gradients  # noqa: E402

F16, BF16, F32 = torch.float16, torch.bfloat16, torch.float32
model = torch.nn.functional.scaled_dot_product_attention


def tensor(*shape, dtype=F32):
    return torch.randn(shape, dtype=torch.float64).to(dtype).requires_grad_()


@pytest.fixture(autouse=True)
def seed():
    torch.manual_seed(11)


def check(q, k, v, mask=None, **options):
    """Out and gradients beside PyTorch's; the mask's, too, where it has any."""
    out = scaled_dot_product_attention(q, k, v, mask, **options)
    exact = mask if mask is None or mask.dtype == torch.bool else mask.double()
    wanted = model(q.double(), k.double(), v.double(), exact, **options)
    assert out.dtype == q.dtype
    check_close(out, wanted, q.dtype)
    leaves = [x for x in (q, k, v, mask) if x is not None and x.requires_grad]
    if leaves and torch.is_grad_enabled():
        d_out = torch.randn(out.shape).to(out.dtype)
        check_gradients(out, wanted, leaves, d_out, q.dtype, "qkvm")


#===----------------------------------------------------------------------===#
# Elements and masks
#===----------------------------------------------------------------------===#


@pytest.mark.parametrize("dtype, dim, value_dim, is_causal", [
    (F32, 32, 32, False), (F32, 32, 32, True), (BF16, 64, 64, True), (F16, 59, 20, False)])
def test_elements(dtype, dim, value_dim, is_causal):
    """Causal masks join the first query with the first key."""
    for queries, keys in ((1, 47), (33, 70), (70, 33)):
        q, k = tensor(2, 3, queries, dim, dtype=dtype), tensor(2, 3, keys, dim, dtype=dtype)
        check(q, k, tensor(2, 3, keys, value_dim, dtype=dtype), is_causal=is_causal)


def without_a_row(mask):
    mask[..., 2, :] = False
    return mask


MASKS = [(20, 37), (3, 20, 37), (2, 1, 20, 37), (2, 3, 20, 37), (2, 1, 1, 37), (1, 37), (20, 1), (1, 1, 1, 1),
         (3, 1, 37)]


@pytest.mark.parametrize("shape", MASKS)
def test_flags(shape):
    q, k, v = tensor(2, 3, 20, 32), tensor(2, 3, 37, 32), tensor(2, 3, 37, 32)
    mask = torch.rand(shape) > 0.3
    for each in (q, k, v):
        each.requires_grad_(shape in MASKS[:2])  # gradients are compiled for two shapes
    check(q, k, v, without_a_row(mask) if shape[-2:-1] == (20,) else mask)


@pytest.mark.parametrize("shape", MASKS)
def test_biases(shape):
    q, k, v = tensor(2, 3, 20, 32), tensor(2, 3, 37, 32), tensor(2, 3, 37, 32)
    mask = torch.randn(shape)
    mask.requires_grad_(shape in MASKS[::4])
    for each in (q, k, v):
        each.requires_grad_(mask.requires_grad)
    check(q, k, v, mask)


def test_a_row_that_sees_nothing_is_zero():
    q, k, v = tensor(1, 2, 20, 32), tensor(1, 2, 37, 32), tensor(1, 2, 37, 32)
    mask = without_a_row(torch.rand(20, 37) > 0.3)
    bias = torch.zeros(20, 37).masked_fill(~mask, -math.inf)
    for each in (mask, bias):
        out = scaled_dot_product_attention(q, k, v, each)
        assert (out[:, :, 2] == 0).all()
        assert (torch.autograd.grad(out.sum(), q)[0][:, :, 2] == 0).all()
    check(q, k, v, bias)


def test_biases_of_other_elements():
    q, k, v = tensor(1, 2, 9, 64, dtype=BF16), tensor(1, 2, 17, 64, dtype=BF16), tensor(1, 2, 17, 64, dtype=BF16)
    with torch.no_grad():
        check(q, k, v, torch.randn(9, 17))
        check(q, k, v, torch.randn(9, 17).to(BF16))


def test_masks_with_strides():
    q, k, v = torch.randn(2, 3, 20, 32), torch.randn(2, 3, 37, 32), torch.randn(2, 3, 37, 32)
    mask = torch.rand(37, 20) > 0.5
    check(q, k, v, mask.T)
    check(q, k, v, (torch.rand(2, 1, 20, 80) > 0.5)[..., 3:77:2])


#===----------------------------------------------------------------------===#
# Shapes
#===----------------------------------------------------------------------===#

SHAPES = [  # query, key, value, mask
    ((20, 32), (37, 32), (37, 32), (20, 37)),
    ((3, 20, 32), (3, 37, 32), (3, 37, 32), (3, 20, 37)),
    ((2, 2, 3, 20, 32), (2, 2, 3, 37, 32), (2, 2, 3, 37, 32), (20, 37)),
    ((2, 2, 3, 20, 32), (1, 2, 3, 37, 32), (2, 1, 3, 37, 32), (2, 1, 3, 20, 37)),
    ((2, 3, 20, 32), (3, 37, 32), (3, 37, 32), (1, 1, 20, 37)),
    ((2, 3, 20, 32), (2, 1, 37, 32), (2, 1, 37, 32), (20, 37)),
    ((2, 3, 20, 32), (2, 3, 37, 32), (2, 1, 37, 32), (20, 37)),
    ((2, 1, 20, 32), (2, 3, 37, 32), (2, 3, 37, 32), (20, 37)),
    ((1, 3, 20, 32), (2, 3, 37, 32), (2, 3, 37, 32), (20, 37)),
]


@pytest.mark.parametrize("query, key, value, mask", SHAPES)
def test_leading_dimensions(query, key, value, mask):
    q, k, v = tensor(*query), tensor(*key), tensor(*value)
    check(q, k, v)
    with torch.no_grad():
        check(q, k, v, torch.rand(mask) > 0.3)


GROUPS = [
    ((2, 6, 20, 32), (2, 3, 37, 32), (2, 3, 37, 32)),
    ((2, 6, 20, 32), (2, 1, 37, 32), (2, 1, 37, 32)),
    ((2, 6, 20, 32), (2, 3, 37, 32), (2, 1, 37, 32)),
    ((6, 20, 32), (3, 37, 32), (3, 37, 32)),
    ((2, 6, 20, 32), (1, 3, 37, 32), (1, 3, 37, 32)),
    ((2, 2, 6, 20, 32), (2, 2, 3, 37, 32), (2, 2, 3, 37, 32)),
]


@pytest.mark.parametrize("query, key, value", GROUPS)
def test_groups(query, key, value):
    check(tensor(*query), tensor(*key), tensor(*value), enable_gqa=True)


@pytest.mark.parametrize("sizes", [(2, 3, 20, 0), (2, 3, 0, 37), (0, 3, 20, 37)])
def test_nothing_to_do(sizes):
    batch, heads, queries, keys = sizes
    q, k = torch.randn(batch, heads, queries, 32), torch.randn(batch, heads, keys, 32)
    out = scaled_dot_product_attention(q, k, k)
    assert out.shape == q.shape and (out == 0).all()


def test_memory_lies_as_the_query_does():
    q, k, v = (torch.randn(2, 20, 3, 32).transpose(1, 2) for _ in "qkv")
    assert scaled_dot_product_attention(q, k, v).transpose(1, 2).is_contiguous()


#===----------------------------------------------------------------------===#
# Options
#===----------------------------------------------------------------------===#


def test_scale():
    q, k, v = (torch.randn(1, 2, 20, 32) for _ in "qkv")
    for scale in (1, -0.25, 1e-05):
        wanted = (q.double() @ k.double().mT * scale).softmax(-1) @ v.double()
        check_close(scaled_dot_product_attention(q, k, v, scale=scale), wanted, F32)


def test_dropout():
    """The values are unit vectors: out is the weights that are left."""
    q, k = tensor(2, 3, 40, 32), tensor(2, 3, 32, 32)
    identity = torch.eye(32).expand(2, 3, 32, 32)

    def call(values):
        torch.manual_seed(3)
        return scaled_dot_product_attention(q, k, values, dropout_p=0.3)

    left = call(identity)
    assert torch.equal(call(identity), left)
    assert 0.25 < (left == 0).double().mean() < 0.35
    v = tensor(2, 3, 32, 32)
    keep = (left != 0).double() / 0.7
    wanted = ((q.double() @ k.double().mT * 32**-0.5).softmax(-1) * keep) @ v.double()
    out = call(v)
    check_close(out, wanted, F32)
    check_gradients(out, wanted, (q, k, v), torch.randn(out.shape), F32, "qkv")
    assert (scaled_dot_product_attention(q, k, v, dropout_p=1.0) == 0).all()


def test_autocast():
    q, k, v = (torch.randn(1, 2, 20, 64) for _ in "qkv")
    mask = torch.randn(20, 20)
    with torch.autocast("cpu", BF16):
        out = scaled_dot_product_attention(q, k, v, mask)
        assert out.dtype == model(q, k, v, mask).dtype == BF16
    check_close(out, model(q.double(), k.double(), v.double(), mask.double()), BF16)


def test_one_graph():
    """Nothing of it breaks a graph of torch.compile."""
    q, k, v = tensor(2, 3, 20, 32), tensor(2, 3, 37, 32), tensor(2, 3, 37, 32)
    mask = torch.rand(20, 37) > 0.3
    compiled = torch.compile(scaled_dot_product_attention, fullgraph=True, backend="aot_eager")
    out = compiled(q, k, v, mask)
    assert torch.equal(out, scaled_dot_product_attention(q, k, v, mask))
    wanted = model(q, k, v, mask)
    check_gradients(out, wanted.double(), (q, k, v), torch.randn(out.shape), F32, "qkv")


#===----------------------------------------------------------------------===#
# Signature and errors
#===----------------------------------------------------------------------===#


def test_signature_is_the_models():
    signature = inspect.signature(scaled_dot_product_attention)
    assert str(signature) == ("(query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, *, "
                              "scale=None, enable_gqa=False)")


Q, K = torch.zeros(2, 3, 5, 8), torch.zeros(2, 3, 7, 8)
FLAGS = torch.ones(5, 7, dtype=torch.bool)


@pytest.mark.parametrize("call, said", [
    (lambda f: f(Q, K, K, FLAGS, is_causal=True), "Explicit attn_mask should not be set when is_causal=True"),
    (lambda f: f(Q, K, K, FLAGS.int()), "Expected attn_mask dtype to be bool or float or to match query dtype"),
    (lambda f: f(Q, K, K, FLAGS.half()), "Expected attn_mask dtype to be bool or float or to match query dtype"),
    (lambda f: f(Q, K.half(), K), "Expected query, key, and value to have the same dtype"),
    (lambda f: f(Q, K.to("meta"), K), "Expected query, key, and value to have the same device type"),
    (lambda f: f(Q[0, 0, 0], K, K), "at least 2 dimensional"),
    (lambda f: f(Q, K, K, dropout_p=1.5), "dropout probability has to be between 0 and 1, but got 1.5"),
    (lambda f: f(Q, K[:, :2], K[:, :2], enable_gqa=True),
     "Number of heads in key and value must divide (the )?number of heads in query"),
])
def test_errors_are_the_models(call, said):
    for function in (model, scaled_dot_product_attention):
        with pytest.raises(RuntimeError, match=said):
            call(function)


@pytest.mark.parametrize("call, said", [
    (lambda f: f(Q.double(), K.double(), K.double()), "query: wanted float16, bfloat16 or float32, got torch.float64"),
    (lambda f: f(Q, K[..., :4], K), "key: wanted the last size of query, 8, got 4"),
    (lambda f: f(Q, K, K[:, :, :4]), "value: wanted the length of key, 7, got 4"),
    (lambda f: f(Q, K, K, FLAGS[:, :6]), r"broadcasts to \(2, 3, 5, 7\), got \(5, 6\)"),
    (lambda f: f(Q[:1], K[:1], K[:1], FLAGS.expand(2, 1, 5, 7)), r"broadcasts to \(1, 3, 5, 7\)"),
    (lambda f: f(Q, K[:, :2], K[:, :2]), r"do not broadcast: \(2, 3\), \(2, 2\) and \(2, 2\)"),
    (lambda f: f(*[torch.zeros(1, 1, 5, 264)] * 3), "query: wanted a last size of 1 to 256, got 264"),
])
def test_other_errors(call, said):
    with pytest.raises(RuntimeError, match=said):
        call(scaled_dot_product_attention)


def test_what_is_no_tensor():
    with pytest.raises(TypeError, match="argument 'attn_mask' must be Tensor, not list"):
        scaled_dot_product_attention(Q, K, K, [1])
    with pytest.raises(TypeError, match="argument 'key' must be Tensor, not NoneType"):
        scaled_dot_product_attention(Q, None, K)
