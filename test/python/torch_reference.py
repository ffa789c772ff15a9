#===----------------------------------------------------------------------===#
#
# Part of attn, an attention compiler.
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===----------------------------------------------------------------------===#
"""Attention in float64 as flash-attn defines it, and what an error may be."""

import dataclasses
import math

import torch

# Of outputs and of gradients, relative to the largest wanted value (1 at least).
TOLERANCE = {torch.float32: (1e-5, 5e-5), torch.float16: (1.5e-3, 6e-3), torch.bfloat16: (1.2e-2, 5e-2)}


@dataclasses.dataclass(frozen=True)
class Kind:
    """What the functions of flash-attn have in common."""

    causal: bool = False
    window: tuple = (-1, -1)
    softcap: float = 0.0
    scale: float = None

    def arguments(self):
        return dict(causal=self.causal, window_size=self.window, softcap=self.softcap,
                    softmax_scale=self.scale)


def visible(kind, queries, keys, device=None):
    """(queries, keys), the last query beside the last key."""
    distance = (torch.arange(keys, device=device)[None, :]
                - torch.arange(queries, device=device)[:, None] - (keys - queries))
    left, right = kind.window
    seen = torch.ones(queries, keys, dtype=torch.bool, device=device)
    if kind.causal or right >= 0:
        seen &= distance <= (0 if kind.causal else right)
    if left >= 0:
        seen &= distance >= -left
    return seen, distance.abs()


def attend(q, k, v, kind, slopes=None, keep=None, precision=torch.float64):
    """out (b, s, h, d) and lse (b, h, s) of tensors (b, s, h, d), in float64 or another
    precision; slopes (h,) or (b, h), keep: factors of the weights."""
    q, k, v = (x.to(precision).transpose(1, 2) for x in (q, k, v))
    group = q.shape[1] // k.shape[1]
    k, v = (x.repeat_interleave(group, 1) for x in (k, v))
    x = q @ k.transpose(2, 3) * (q.shape[-1]**-0.5 if kind.scale is None else kind.scale)
    if kind.softcap > 0:
        x = kind.softcap * torch.tanh(x / kind.softcap)
    seen, distance = visible(kind, q.shape[2], k.shape[2], q.device)
    if slopes is not None:
        slopes = slopes.to(precision)
        x = x - (slopes if slopes.dim() == 2 else slopes[None])[:, :, None, None] * distance
    x = x.masked_fill(~seen, -math.inf)
    empty = ~seen.any(1)
    x = x.masked_fill(empty[:, None], 0.0)
    lse = x.logsumexp(3).masked_fill(empty, math.inf) if k.shape[2] else torch.full(
        x.shape[:3], math.inf, dtype=x.dtype, device=x.device)
    w = x.softmax(3).masked_fill(empty[:, None], 0.0)
    if keep is not None:
        w = w * keep.to(precision)
    return (w @ v).transpose(1, 2), lse


def attend_packed(q, k, v, starts_q, starts_k, kind, slopes=None, precision=torch.float64):
    """out (total, h, d) and lse (h, total) of packed sequences; starts are lists."""
    outs, lses = [], []
    for number in range(len(starts_q) - 1):
        rows = slice(starts_q[number], starts_q[number + 1])
        keys = slice(starts_k[number], starts_k[number + 1])
        own = slopes if slopes is None or slopes.dim() == 1 else slopes[number:number + 1]
        out, lse = attend(q[None, rows], k[None, keys], v[None, keys], kind, own,
                          precision=precision)
        outs.append(out[0])
        lses.append(lse[0])
    return torch.cat(outs), torch.cat(lses, 1)


def check_close(got, wanted, dtype, what="out", is_gradient=False):
    assert got.shape == wanted.shape, f"{what}: {tuple(got.shape)}, wanted {tuple(wanted.shape)}"
    got, wanted = got.detach().double(), wanted.detach().double()
    same = got == wanted  # infinities
    error = (got - wanted).masked_fill(same, 0.0).abs()
    largest = wanted.masked_fill(wanted.isinf(), 0.0).abs().max().item() if wanted.numel() else 0.0
    worst = error.max().item() if error.numel() else 0.0
    limit = TOLERANCE[dtype][is_gradient] * max(1.0, largest)
    assert worst <= limit, f"{what}: error {worst:.3g}, allowed {limit:.3g}"


def check_gradients(got, wanted, leaves, d_got, dtype, names=None):
    """Those of `leaves` for one and the same d_got."""
    ours = torch.autograd.grad(got, leaves, d_got, retain_graph=True)
    theirs = torch.autograd.grad(wanted, leaves, d_got.double(), retain_graph=True)
    for number, (a, b) in enumerate(zip(ours, theirs)):
        check_close(a, b, dtype, f"gradient {names[number] if names else number}", True)
