#===----------------------------------------------------------------------===#
#
# Part of attn, an attention compiler.
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===----------------------------------------------------------------------===#
"""Masks as public models have them, cases of flex_case_table: what they show is not told
from the form of their conditions.
"""

from flex_case_table import case


@case(per="batch")
def drafts_of_steps(torch, device, heads, length):
    """EAGLE-3 (Li et al., 2025), training: tokens of the target, and one's own place in later steps."""
    step = max(length // 3, 1)
    lengths = torch.tensor([step, step * 3 // 5], device=device)

    def mask(b, h, q, k):
        target = (q - 2 >= k) & (k < lengths[b])
        return target | ((k >= step) & (k % step < lengths[b]) & ((k - q) % step == 0))
    return None, lambda: mask, []


@case()
def three_streams(torch, device, heads, length):
    """Block diffusion with a second noised stream: blocks of 12 tokens, of which the clean ones are seen."""
    stream, size = max(length // 3, 1), 12

    def block(i):
        return torch.where(i < stream, i, torch.where(i < 2 * stream, i - stream, i - 2 * stream)) // size

    def mask(b, h, q, k):
        is_clean, sees_clean = q >= 2 * stream, k >= 2 * stream
        own, other = block(q), block(k)
        return ((own == other) & (is_clean == sees_clean)) | (sees_clean & ((own > other) | (is_clean & (own == other))))
    return None, lambda: mask, []


@case()
def coarse_centres(torch, device, heads, length):
    """Video attention between resolutions: windows about centres that are no integers."""
    text, width = 26, 15
    height = max((length - text) // width, 1)

    def mask(b, h, q, k):
        coarse = q // 3
        x, y = (coarse % 4 + 0.5) * (width / 4), (coarse // 4 % 5 + 0.5) * (height / 5)
        column = torch.remainder(k - text, width)
        row = torch.div(k - text, width, rounding_mode="floor")
        columns = (column >= torch.floor((x - 2.6).clamp(min=0))) & (column < torch.ceil((x + 2.6).clamp(max=width)))
        rows = (row >= torch.floor((y - 3.4).clamp(min=0))) & (row < torch.ceil((y + 3.4).clamp(max=height)))
        return (k < text) | (columns & rows)
    return None, lambda: mask, []


@case()
def ring(torch, device, heads, length):
    """Detectors of particles: a window that wraps around, at a length in a tensor of one number."""
    around = torch.tensor([length - 5], device=device)

    def mask(b, h, q, k):
        near = (q - k).abs() <= 33
        return near | (q - k + around[0] <= 33) | (k - q + around[0] <= 33)
    return None, lambda: mask, []


@case()
def sparse_globals(torch, device, heads, length):
    """A band, and every 512th token, which sees all and is seen by all."""
    return None, lambda: lambda b, h, q, k: ((q - k).abs() <= 64) | (k % 512 == 0) | (q % 512 == 0), []


@case()
def landmarks(torch, device, heads, length):
    """Landmark tokens (Mohtashami and Jaggi, 2023): one's own 64 keys, and the last of each 64."""
    return None, lambda: lambda b, h, q, k: (q >= k) & ((q // 64 == k // 64) | (k % 64 == 63)), []
