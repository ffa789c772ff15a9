# Part of attn, an attention compiler.
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs every pass of the project on a file that has nothing for it."""

import re
import subprocess
import sys

*tool, file = sys.argv[1:]
listed = subprocess.run([*tool, "--help"], capture_output=True, text=True, check=True).stdout
own = re.findall(
    r"^      --((?:attn|tile|warp|convert-(?:linalg-to-attn|attn|tile|warp)|gpu-add-re)[\w-]*) ",
    listed, re.M)
pipelines = ["attn-cpu", "attn-gpu-to-nvvm", "attn-linalg-to-llvm", "convert-tile-to-llvm"]
passes = [name for name in own if name not in pipelines]
for name in passes:
    run = subprocess.run([*tool, file, f"--{name}", "-o", "/dev/null"], capture_output=True,
                         text=True, check=False)
    if run.returncode != 0 or "has nothing to do: it looks for" not in run.stderr:
        print(f"{name}: status {run.returncode}: {run.stderr}")
        sys.exit(1)
print("every pass warns:", len(passes))
