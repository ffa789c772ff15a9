#===----------------------------------------------------------------------===#
#
# Part of attn, an attention compiler.
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===----------------------------------------------------------------------===#
"""The programs of test/Masks on attn-simulate: their warp kernels under several
orders of the warps."""

import subprocess
import zlib

import masks
import numpy as np
import pytest
from emulate import Scalar
from mask_case import PLANS, MaskInputs

LENGTHS = [(70, 130), (130, 70), (64, 64), (1, 97), (97, 161), (100, 33)]
TYPES = {"f32": np.float32, "f16": np.float16, "bf16": "V2", "i1": np.bool_, "i8": np.int8,
         "i16": np.int16, "i32": np.int32, "i64": np.int64}


def flags(inputs, folder):
    """What tells attn-simulate the arguments beside q, k and v."""
    named = [(f"c{i}", array) for i, array in enumerate(inputs.captures)]
    extra = inputs.extra
    if inputs.sink_values is not None:
        named.append(("sink", extra[0]))
        extra = extra[1:]
    named += zip(("seed", "offset"), extra)
    for name, array in named:
        if isinstance(array, Scalar):
            yield f"--scalar={name}={array.value}"
        else:
            path = folder / f"{name}.npy"
            np.save(path, array.view.view(TYPES[array.element]))
            yield f"--input={name}={path}"


@pytest.mark.parametrize("target", ["sm_80", "sm_90a"])
@pytest.mark.parametrize("name", masks.names())
def test_program(name, target, tmp_path, request):
    number = zlib.crc32(name.encode())
    share = request.config.getoption("--simulated-share")
    if (number + 2 * (target == "sm_80")) % share:
        pytest.skip("only every %d-th; --simulated-share=1 runs all" % share)
    queries, keys = LENGTHS[number % len(LENGTHS)]
    inputs = MaskInputs(name, queries, keys, seed=number)
    tool = request.config.getoption("--simulate")
    command = [tool, masks.DIRECTORY / f"{name}.mlir", f"--target={target}", "--seeds=4",
               f"--plan={PLANS[target]}", f"--shape=b=2,h=2,hkv=1,sq={queries},sk={keys}",
               *flags(inputs, tmp_path)]
    result = subprocess.run(command, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
