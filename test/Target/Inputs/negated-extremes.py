#===----------------------------------------------------------------------===#
#
# Part of attn, an attention compiler.
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===----------------------------------------------------------------------===#
"""Which signed maxima and minima of PTX have an operand that is a negation.

    negated-extremes.py FILE.ptx
"""

import pathlib
import re
import sys

extremes = 0
for kernel in pathlib.Path(sys.argv[1]).read_text().split(".visible .entry")[1:]:
    name = kernel.split("(")[0].strip()
    negations = set(re.findall(r"\bneg\.s32\s+(%r\d+)", kernel))
    for line in re.findall(r"\b(?:max|min)\.s32.*", kernel):
        extremes += 1
        if negations & set(re.findall(r"%r\d+", line)[1:]):
            print(f"{name}: {line}")
print("some are of two values" if extremes else "there are none")
