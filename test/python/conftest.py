#===----------------------------------------------------------------------===#
#
# Part of attn, an attention compiler.
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===----------------------------------------------------------------------===#

import attn
import for_processor


def pytest_addoption(parser):
    parser.addoption("--lib", help="path of libattn.so")
    parser.addoption("--cpu", help="the processor that kernels for the CPU are compiled for")


def pytest_configure(config):
    if config.getoption("--lib"):
        attn.use_library(config.getoption("--lib"))
    if config.getoption("--cpu"):
        for_processor.use(config.getoption("--cpu"))
