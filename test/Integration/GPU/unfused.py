#===----------------------------------------------------------------------===#
#
# Part of attn, an attention compiler.
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===----------------------------------------------------------------------===#
"""Attention in PyTorch's operations, every score in memory, with gradients: in float64
(r of the error rule), or with every step rounded to the type of the inputs (t0, and g0
of C16 of attn.attention_backward, which takes delta from the output as it was rounded).

    o, lse = attend(torch, q, k, v, score, mask, scale)             # r: tensors of float64
    o, lse = attend(torch, q, k, v, score, mask, scale, dtype)      # t0: of float32

score is a function of (x, b, h, i, j), mask of (b, h, i, j), of one element each, as
torch.nn.attention.flex_attention has them, or None. keep: factors of the weights, of
dropout. judge() says what differs by more than the error rule allows."""

import functools
import math

import error_rule

NAMES = {"torch.float16": "f16", "torch.bfloat16": "bf16", "torch.float32": "f32"}


@functools.lru_cache(maxsize=None)
def _functions(torch):
    """Rounding and the softmax with their gradients."""

    class Rounded(torch.autograd.Function):
        """To a type that keeps larger numbers as they are, and so the gradient."""

        @staticmethod
        def forward(ctx, x, dtype):
            ctx.dtype = dtype
            return rounded(x, dtype)

        @staticmethod
        def backward(ctx, d_x):
            return rounded(d_x, ctx.dtype), None

    class Weighted(torch.autograd.Function):
        """(o, lse) of scores and values."""

        @staticmethod
        def forward(ctx, x, v, keep, dtype):
            lse = x.logsumexp(3)
            w = (x - lse[..., None]).exp().masked_fill((lse == -math.inf)[..., None], 0.0)
            kept = rounded(w if keep is None else w * keep, dtype)
            o = rounded(kept @ v, dtype)
            ctx.save_for_backward(x, w, kept, v, o, keep)
            ctx.dtype = dtype
            return o, lse

        @staticmethod
        def backward(ctx, d_o, d_lse):
            x, w, kept, v, o, keep = ctx.saved_tensors
            d_w = rounded(d_o @ v.transpose(2, 3), ctx.dtype)
            d_w = d_w if keep is None else d_w * keep
            delta = (d_o * o).sum(3) - d_lse
            d_x = w * (d_w - delta[..., None])
            d_x = torch.where(x == -math.inf, torch.zeros_like(d_x), d_x)
            return rounded(d_x, ctx.dtype), kept.transpose(2, 3) @ d_o, None, None

    def rounded(x, dtype):
        if dtype is None or dtype == torch.float32:
            return x
        return torch.where(x.abs() > torch.finfo(dtype).max, x, x.to(dtype).to(x.dtype))

    return Rounded.apply, Weighted.apply


def everywhere(torch, function, given, sizes, device):
    """The function at all (batch, head, query, key); `given`: (b, h, i, j) tensors that
    come before the indices."""
    from torch._dynamo._trace_wrapped_higher_order_op import TransformGetItemToIndex

    count = len(given)
    for at in (3, 2, 1, 0):
        dims = [None] * 4
        dims[at] = 0
        function = torch.vmap(function, in_dims=(0,) * count + tuple(dims), out_dims=0)
    places = [torch.arange(size, dtype=torch.int32, device=device) for size in sizes]
    with TransformGetItemToIndex():
        return function(*given, *places)


def attend(torch, q, k, v, score=None, mask=None, scale=None, dtype=None, keep=None, score_type=None):
    rounded, weighted = _functions(torch)
    group = q.shape[1] // k.shape[1]
    k, v = (x.expand(q.shape[0], -1, -1, -1).repeat_interleave(group, 1) for x in (k, v))
    scale = 1 / math.sqrt(q.shape[3]) if scale is None else scale
    sizes = (*q.shape[:3], k.shape[2])
    x = rounded(q @ k.transpose(2, 3) * scale, dtype)
    if score is not None:
        x = everywhere(torch, score, (x.to(score_type or x.dtype),), sizes, q.device).to(x.dtype)
        x = rounded(x, dtype)
    if mask is not None:
        x = x.masked_fill(~everywhere(torch, mask, (), sizes, q.device), -math.inf)
    return weighted(x, v, keep, dtype)


# ---------------------------------------------------------------------------
# The error rule
# ---------------------------------------------------------------------------


def _finite(x):
    return x.detach().double().nan_to_num(posinf=0, neginf=0)


def _errors(got, exact):
    """(largest, root of the mean square)"""
    error = (_finite(got) - exact).abs()
    return (error.max().item(), error.square().mean().sqrt().item()) if error.numel() else (0.0, 0.0)


def truncation(torch, q, k, scale):
    """What tensor cores cut off of scores (c of the error rule)."""
    if not q.numel() or not k.numel():
        return 0.0
    norms = [x.detach().double().norm(dim=3).max().item() for x in (q, k)]
    steps = 3 * -(-q.shape[3] // 8) if q.dtype == torch.float32 else -(-q.shape[3] // 16)
    return 0.5 * 2.0**-23 * abs(scale) * norms[0] * norms[1] * steps


def judge_output(torch, o, exact, plain, largest_value, lost=0.0, is_split=False):
    """What is wrong with o, "" if nothing; `lost` is c of the rule."""
    element, exact = NAMES[str(o.dtype)], _finite(exact)
    largest = exact.abs().max().item() if exact.numel() else 0.0
    (e, rmse), (e0, rmse0) = _errors(o, exact), _errors(plain, exact)
    bound = error_rule.error_bound(element, e0, largest)
    if not e <= bound:
        return f"error {e:.3g}, allowed {bound:.3g} (unfused {e0:.3g})"
    if element == "f32" and rmse0 == 0:  # every row sees one key: there is no error to compare with
        return ""
    bound = error_rule.rmse_bound(element, rmse0, _errors(exact.to(o.dtype), exact)[1], largest_value, is_split, lost)
    if exact.numel() >= error_rule.ENOUGH and not rmse <= bound:
        return f"RMSE {rmse:.4g}, allowed {bound:.4g} (unfused {rmse0:.4g})"
    return ""


def judge_lse(torch, lse, exact, single=None, lost=0.0):
    """The same of lse; `single` is that of scores whose function alone is in float32,
    where this function loses something."""
    exact = _finite(exact)
    loss = 0.0 if single is None else _errors(single, exact)[0]
    allowed = 1e-4 + lost + 2 * loss + exact.abs() * 2.0**-23
    over = ((_finite(lse) - exact).abs() - allowed).max().item() if exact.numel() else 0.0
    return f"error {over:.3g} more than allowed" if not over <= 0 else ""


def judge_gradient(torch, gradient, exact, plain, element):
    """The same of a gradient of a kernel of `element` ("bf16")."""
    own = NAMES[str(gradient.dtype)]
    coarser = min(own, element, key=lambda name: error_rule.DIGITS[name])
    exact = _finite(exact)
    e, e0 = _errors(gradient, exact)[0], _errors(plain.to(gradient.dtype), exact)[0]
    largest = exact.abs().max().item() if exact.numel() else 0.0
    bound = error_rule.gradient_bound(coarser, e0, largest)
    return f"error {e:.3g}, allowed {bound:.3g} (unfused {e0:.3g})" if not e <= bound else ""


def disagreement(got, exact):
    """Where one is not finite and the other is, or the shapes differ; "" if nowhere."""
    if got.shape != exact.shape:
        return f"shape {tuple(got.shape)}, wanted {tuple(exact.shape)}"
    if got.isnan().any():
        return "NaN"
    return "" if bool((got.isinf() == exact.isinf()).all()) else "infinite where it should not be, or finite"
