#===----------------------------------------------------------------------===#
#
# Part of attn, an attention compiler.
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===----------------------------------------------------------------------===#

import attn


def pytest_addoption(parser):
    parser.addoption("--lib", help="path of libattn.so")


def pytest_configure(config):
    if config.getoption("--lib"):
        attn.use_library(config.getoption("--lib"))
