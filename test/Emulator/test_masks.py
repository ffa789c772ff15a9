#===----------------------------------------------------------------------===#
#
# Part of attn, an attention compiler.
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===----------------------------------------------------------------------===#
"""Every program of test/Masks, on every target, against NumPy in float64; and
the definition that attn-run checks with against the same."""

import pathlib
import subprocess
import zlib

import masks
import numpy as np
import pytest
from emulate import Scalar
from mask_case import MaskInputs, check, compiled

# (queries, keys): beside and on the borders of blocks.
LENGTHS = [(70, 130), (130, 70), (64, 64), (1, 97), (97, 161), (100, 33)]


@pytest.mark.parametrize("target", ["cpu", "sm_80", "sm_90a"])
@pytest.mark.parametrize("name", masks.names())
def test_program(name, target):
    number = zlib.crc32(name.encode())
    queries, keys = LENGTHS[number % len(LENGTHS)]
    inputs = MaskInputs(name, queries, keys, seed=number)
    blocks = None if target == "cpu" else 2
    assert check(compiled(name, target), inputs, blocks) == []


def attn_run(pytestconfig):
    library = pytestconfig.getoption("--lib")
    tool = pathlib.Path(library or "").resolve().parent.parent / "bin" / "attn-run"
    if not library or not tool.exists():
        pytest.skip("attn-run is not beside the library")
    return tool


def with_definition():
    """What has own code in the definition, and some of the others: it is slow."""
    special = [name for name in masks.names()
               if masks.Mask(name).sink or masks.Mask(name).dropout
               or "capture_search" in masks.Mask(name).text]
    return sorted({*special, *masks.names()[::8]})


@pytest.mark.parametrize("name", with_definition())
def test_definition(name, tmp_path, pytestconfig):
    """The kernels agree with NumPy; so, then, does what agrees with them."""
    inputs = MaskInputs(name, 37, 50, seed=1)
    sizes = [f"b={inputs.sizes.batch}", f"h={inputs.sizes.heads}", f"hkv={inputs.sizes.kv_heads}",
             f"sq={inputs.sizes.queries}", f"sk={inputs.sizes.keys}"]
    options = []
    for argument, value in inputs.named():
        if isinstance(value, Scalar):
            options.append(f"--scalar={argument}={value.value!r}")
            continue
        file = tmp_path / f"{argument}.npy"
        np.save(file, value.values().astype(np.int64 if value.element[0] == "i" else np.float64))
        options.append(f"--input={argument}={file}")
    program = masks.DIRECTORY / f"{name}.mlir"
    done = subprocess.run([attn_run(pytestconfig), program, "--check", "--shape=" + ",".join(sizes), *options],
                          capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
