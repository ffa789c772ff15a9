#===----------------------------------------------------------------------===#
#
# Part of attn, an attention compiler.
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===----------------------------------------------------------------------===#
"""16-bit floats as NumPy has half of them."""

import numpy as np


def bf16_to_f32(bits):
    return (np.asarray(bits).astype(np.uint32) << 16).view(np.float32)


def f32_to_bf16(values):
    """Round to nearest even; NaN to the canonical one."""
    values = np.ascontiguousarray(values, np.float32)
    bits = values.view(np.uint32)
    rounded = (bits.astype(np.uint64) + 0x7FFF + ((bits >> 16) & 1)) >> 16
    return np.where(np.isnan(values), 0x7FFF, rounded).astype(np.uint16)


def f16_to_f32(bits):
    return np.ascontiguousarray(bits, np.uint16).view(np.float16).astype(np.float32)


def f32_to_f16(values):
    with np.errstate(over="ignore", invalid="ignore"):
        return np.asarray(values, np.float32).astype(np.float16).view(np.uint16)


def tf32(bits):
    """What a tf32 operand register means: the low 13 bits are ignored."""
    return (np.asarray(bits, np.uint32) & np.uint32(0xFFFFE000)).view(np.float32)


def f32_towards_zero(values):
    """How tensor cores round a sum: they cut it off."""
    values = np.ascontiguousarray(values, np.float64)
    bits = values.view(np.uint64) & np.uint64(0xFFFFFFFFE0000000)
    fits = np.abs(values) < 2.0**128
    return np.where(fits, bits.view(np.float64), values).astype(np.float32)


DECODE = {"bf16": bf16_to_f32, "f16": f16_to_f32}
ENCODE = {"bf16": f32_to_bf16, "f16": f32_to_f16}
