#===----------------------------------------------------------------------===#
#
# Part of attn, an attention compiler.
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===----------------------------------------------------------------------===#
"""Options of the suite; where the programs and their inputs are described."""

import pathlib
import sys

TEST = pathlib.Path(__file__).resolve().parent.parent
for folder in ("Emulator", "Integration/GPU", "Masks"):
    sys.path.insert(0, str(TEST / folder))


def pytest_addoption(parser):
    parser.addoption("--simulate", default="attn-simulate", help="path of attn-simulate")
    parser.addoption("--simulated-share", type=int, default=6,
                     help="run every n-th of the programs and targets")
