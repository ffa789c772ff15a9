#===----------------------------------------------------------------------===#
#
# Part of attn, an attention compiler.
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===----------------------------------------------------------------------===#
"""How tensor cores sum products of tf32 (Khattak and Mikaitis, "Accurate Models
of NVIDIA Tensor Cores", 2025).

A few products and the accumulator are added at once: each is shifted to the
largest exponent among them and cut off some bits after the last of f32; their
exact sum is then cut to f32. Nothing is rounded to nearest, so that errors of
many steps on one accumulator add up instead of cancelling.
"""

import numpy as np

from floats import f32_towards_zero

# Of the processors that kernels are compiled for the coarsest, the A100: four
# products at once, one bit after the last (H100 and H200: eight, and two).
PRODUCTS, EXTRA_BITS = 4, 1
FRACTION_BITS = 23
NO_EXPONENT = -(1 << 12)  # of 0: below all others


def exponent(values):
    """e of 2^e <= |value| < 2^(e + 1)."""
    return np.where(values == 0, NO_EXPONENT, np.frexp(values)[1] - 1)


def multiply_accumulate_tf32(left, right, accumulator):
    """left (warps, m, k), right (warps, k, n), accumulator (warps, m, n), all
    exact in float64; f32."""
    total = accumulator
    for first in range(0, left.shape[2], PRODUCTS):
        factors = slice(first, first + PRODUCTS)
        a, b = left[:, :, factors, None], right[:, None, factors, :]
        products = a * b
        # That of a product is the sum of its factors', even if it is one larger.
        largest = (exponent(a) + exponent(b)).max(axis=2)
        largest = np.maximum(largest, exponent(total))
        unit = np.ldexp(1.0, np.maximum(largest, -126) - FRACTION_BITS - EXTRA_BITS)
        parts = np.trunc(products / unit[:, :, None]).sum(axis=2) + np.trunc(total / unit)
        total = f32_towards_zero(parts * unit).astype(np.float64)
    return total.astype(np.float32)
