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
import pytest
from mask_case import MaskInputs, check, compiled

# (queries, keys): beside and on the borders of blocks.
LENGTHS = [(70, 130), (130, 70), (64, 64), (1, 97), (97, 161), (100, 33)]


def is_special(name):
    """Has code of its own in kernels and in the definition."""
    mask = masks.Mask(name)
    return bool(mask.sink or mask.dropout or "capture_search" in mask.text)


def programs(config):
    """Each program on the CPU and on one GPU, the special ones on both; with
    --all-masks all of them."""
    for name in masks.names():
        yield name, "cpu"
        both = config.getoption("--all-masks") or is_special(name)
        for number, target in enumerate(["sm_80", "sm_90a"]):
            if both or zlib.crc32(name.encode()) // 8 % 2 == number:
                yield name, target


def definitions(config):
    """The special ones, and some of the others: they are slow."""
    for number, name in enumerate(masks.names()):
        if config.getoption("--all-masks") or is_special(name) or number % 12 == 0:
            yield name


def pytest_generate_tests(metafunc):
    if metafunc.function is test_program:
        metafunc.parametrize("name, target", list(programs(metafunc.config)))
    if metafunc.function is test_definition:
        metafunc.parametrize("name", list(definitions(metafunc.config)))


def test_program(name, target):
    number = zlib.crc32(name.encode())
    queries, keys = LENGTHS[number % len(LENGTHS)]
    inputs = MaskInputs(name, queries, keys, seed=number)
    blocks = None if target == "cpu" else 2
    assert check(compiled(name, target), inputs, blocks) == []


def find_tool(pytestconfig, name):
    library = pytestconfig.getoption("--lib")
    tool = pathlib.Path(library or "").resolve().parent.parent / "bin" / name
    if not library or not tool.exists():
        pytest.skip(f"{name} is not beside the library")
    return tool


def test_definition(name, tmp_path, pytestconfig):
    """The kernels agree with NumPy; so, then, does what agrees with them."""
    inputs = MaskInputs(name, 37, 50, seed=1)
    program = masks.DIRECTORY / f"{name}.mlir"
    done = subprocess.run([find_tool(pytestconfig, "attn-run"), program, "--target=cpu", "--check", *inputs.flags(tmp_path)],
                          capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
