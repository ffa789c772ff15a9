#===----------------------------------------------------------------------===#
#
# Part of attn, an attention compiler.
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===----------------------------------------------------------------------===#
"""Runs a command whose standard output is a terminal; says what came there,
then what it wrote to standard error."""

import os
import pty
import subprocess
import sys

ours, theirs = pty.openpty()
process = subprocess.Popen(sys.argv[1:], stdout=theirs, stderr=subprocess.PIPE)
os.close(theirs)
count = 0
while True:
    try:
        block = os.read(ours, 65536)
    except OSError:  # nobody has it open any more
        break
    if not block:
        break
    count += len(block)
errors = process.stderr.read().decode()
print(f"status {process.wait()}, {count} bytes on the terminal")
print(errors, end="")
