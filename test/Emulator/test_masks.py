#===----------------------------------------------------------------------===#
#
# Part of attn, an attention compiler.
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===----------------------------------------------------------------------===#
"""Every program of test/Masks, on every target, against NumPy in float64."""

import zlib

import masks
import pytest
from mask_case import MaskInputs, check, compiled

# (queries, keys): beside and on the borders of blocks.
LENGTHS = [(70, 130), (130, 70), (64, 64), (1, 97), (97, 161), (100, 33)]


@pytest.mark.parametrize("target", ["cpu", "sm_80", "sm_90a"])
@pytest.mark.parametrize("name", masks.names())
def test_program(name, target):
    number = zlib.crc32(name.encode())
    queries, keys = LENGTHS[number % len(LENGTHS)]
    inputs = MaskInputs(name, queries, keys, seed=number)
    blocks = None if target == "cpu" else 4
    assert check(compiled(name, target), inputs, blocks) == []
