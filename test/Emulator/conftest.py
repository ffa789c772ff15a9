#===----------------------------------------------------------------------===#
#
# Part of attn, an attention compiler.
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===----------------------------------------------------------------------===#
import pathlib
import sys

import attn

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
sys.path.insert(0, str(HERE.parent / "Integration" / "GPU"))
sys.path.insert(0, str(HERE.parent / "Masks"))
sys.path.insert(0, str(HERE.parent / "python"))

import for_processor


def pytest_addoption(parser):
    parser.addoption("--lib", help="path of libattn.so")
    parser.addoption("--cpu", help="the processor that kernels for the CPU are compiled for")
    parser.addoption("--emulated-cases", type=int, default=24,
                     help="how many random programs to emulate")
    parser.addoption("--emulated-from", type=int, default=0, help="the first one's number")
    parser.addoption("--all-masks", action="store_true",
                     help="every program of test/Masks on every target, and its definition")


def pytest_configure(config):
    if config.getoption("--lib"):
        attn.use_library(config.getoption("--lib"))
    if config.getoption("--cpu"):
        for_processor.use(config.getoption("--cpu"))


def pytest_generate_tests(metafunc):
    if "index" in metafunc.fixturenames:
        start = metafunc.config.getoption("--emulated-from")
        count = metafunc.config.getoption("--emulated-cases")
        metafunc.parametrize("index", range(start, start + count))
