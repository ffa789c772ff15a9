#===----------------------------------------------------------------------===#
#
# Part of attn, an attention compiler.
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===----------------------------------------------------------------------===#
"""What the installed package does with an artifact and with a program."""

import pathlib
import sys

import attn

artifact = attn.Artifact.load(pathlib.Path(sys.argv[1]).read_bytes())
try:
    attn.compile(attn.attention("f32", 16), target="cpu")
    why = ""
except attn.AttnError as error:
    why = str(error)
print(f"{artifact.manifest['name']}, can compile: {not why}")
print(why)
