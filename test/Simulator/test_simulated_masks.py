#===----------------------------------------------------------------------===#
#
# Part of attn, an attention compiler.
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===----------------------------------------------------------------------===#
"""The programs of test/Masks on attn-simulate, and their gradients: their warp
kernels under several orders of the warps."""

import subprocess
import zlib

import masks
import pytest
from mask_case import PLANS, MaskInputs

LENGTHS = [(70, 130), (130, 70), (64, 64), (1, 97), (97, 161), (100, 33)]
# Rows of a large lse have it as two numbers.
ALWAYS = [("gradients", "penalty-1e9")]


@pytest.mark.parametrize("target", ["sm_80", "sm_90a"])
@pytest.mark.parametrize("name", masks.names())
@pytest.mark.parametrize("what", ["forward", "gradients"])
def test_program(what, name, target, tmp_path, request):
    number, options = zlib.crc32(name.encode()), ["--seeds=4"]
    share = request.config.getoption("--simulated-share")
    if what == "gradients":
        options = ["--seeds=2", "--backward"]
        number, share = number // 7, 2 * share if share > 1 else 1
    if (what, name) not in ALWAYS and (number + 2 * (target == "sm_80")) % share:
        pytest.skip("only every %d-th; --simulated-share=1 runs all" % share)
    queries, keys = LENGTHS[number % len(LENGTHS)]
    inputs = MaskInputs(name, queries, keys, seed=number)
    tool = request.config.getoption("--simulate")
    command = [tool, masks.DIRECTORY / f"{name}.mlir", f"--target={target}",
               f"--plan={PLANS[target]}", *options, *inputs.flags(tmp_path)]
    result = subprocess.run(command, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
