#===----------------------------------------------------------------------===#
#
# Part of attn, an attention compiler.
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===----------------------------------------------------------------------===#
"""The options of attn.torch.attention: windows, softcaps, slopes, sinks, dropout; forward
and backward, against PyTorch's eager evaluation in float64."""

import pytest

torch = pytest.importorskip("torch", reason="attention on tensors of PyTorch needs PyTorch")

import attn.torch  # noqa: E402
from test_torch_attention import check, close, eager, inputs  # noqa: E402


def test_window_and_softcap():
    tensors = inputs((1, 2, 21, 16), (1, 1, 33, 16))
    i, j = torch.arange(21)[:, None] + 12, torch.arange(33)[None, :]
    shown = (j >= i - 9) & (j <= i + 4)
    check(dict(window=(9, 4), softcap=2.0), lambda: eager(*tensors, shown=shown, cap=2.0), tensors)


def test_window_of_one_number():
    q, k, v = inputs((1, 1, 21, 16), (1, 1, 21, 16))
    i, j = torch.arange(21)[:, None], torch.arange(21)[None, :]
    o = attn.torch.attention(q, k, v, window=3, causal="top_left", scale=0.5)
    close(o, eager(q, k, v, shown=(j >= i - 3) & (j <= i), scale=0.5)[0], torch.float32)


def test_top_left():
    q, k, v = inputs((1, 2, 21, 16), (1, 1, 33, 16))
    o, lse = attn.torch.attention(q, k, v, causal="top_left", alibi=True, return_lse=True)
    i, j = torch.arange(21)[:, None], torch.arange(33)[None, :]
    slopes = torch.tensor([2.0**-4, 2.0**-8], dtype=torch.float64)[:, None, None]
    exact = eager(q, k, v, shown=j <= i, bias=-slopes * (i - j).abs())
    close(o, exact[0], torch.float32)
    close(lse, exact[1], torch.float32)


@pytest.mark.parametrize("is_wide", [False, True])
def test_slopes(is_wide):
    tensors = inputs((2, 4, 13, 16), (2, 2, 19, 16))
    slopes = torch.rand((2, 4) if is_wide else (4,), requires_grad=True)
    i, j = torch.arange(13)[:, None] + 6, torch.arange(19)[None, :]

    def wanted():
        each = slopes.double().expand(2, 4)[:, :, None, None]
        return eager(*tensors, shown=j <= i, bias=-each * (i - j).abs())
    check(dict(causal=True, alibi=slopes), wanted, tensors, [slopes])


def test_sink():
    tensors = inputs((2, 4, 13, 16), (2, 2, 19, 16), dtype=torch.bfloat16)
    sink = torch.randn(4, requires_grad=True)
    check(dict(sink=sink), lambda: eager(*tensors, sink=sink), tensors, [sink], torch.bfloat16)


def test_dropout():
    """The weights that are left are larger, the share is right, gradients know which."""
    torch.manual_seed(0)
    q, k = (torch.randn(2, 2, 32, 32, requires_grad=True) for _ in range(2))
    v = torch.eye(32).expand(2, 2, 32, 32).clone().requires_grad_()
    torch.manual_seed(4)
    weights, lse = attn.torch.attention(q, k, v, dropout_p=0.4, return_lse=True)
    keep = (weights.detach() != 0) / 0.6
    assert abs((keep == 0).double().mean() - 0.4) < 0.03
    exact, exact_lse = eager(q, k, v, keep=keep)
    close(weights, exact, torch.float32)
    close(lse, exact_lse, torch.float32)
    d_o = torch.randn(weights.shape)
    got, right = (torch.autograd.grad(x, (q, k, v), d_o.to(x.dtype)) for x in (weights, exact))
    for a, b in zip(got, right):
        close(a, b, torch.float32, 20)
    again = attn.torch.attention(q, k, v, dropout_p=0.4)
    assert (again != weights).any()
    torch.manual_seed(4)
    assert (attn.torch.attention(q, k, v, dropout_p=0.4) == weights).all()
