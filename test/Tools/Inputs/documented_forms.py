# ===- documented_forms.py - passes need the forms their texts name ------------===#
#
# Part of attn, an attention compiler.
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===-----------------------------------------------------------------------===#
"""Runs every pass whose text says "Needs: `<form>`" on a program of tensors."""

import pathlib
import re
import subprocess
import sys

*tool, file, headers = sys.argv[1:]
passes = []
for text in pathlib.Path(headers).rglob("Passes.td"):
    for body in re.split(r"^def ", text.read_text(encoding="utf-8"), flags=re.M)[1:]:
        flag = re.search(r'Pass<"([\w-]+)"', body)
        form = re.search(r"Needs: `((?:tile|warp)-\w+)`", body)
        if form:
            passes.append((flag.group(1), form.group(1)))
for flag, form in sorted(passes):
    run = subprocess.run([*tool, file, f"--{flag}", "-o", "/dev/null"], capture_output=True,
                         text=True, check=False)
    wanted = (f"error: {flag} needs {form}, got an attn.attention; "
              "run it after convert-attn-to-tile")
    if run.returncode != 1 or wanted not in run.stderr:
        print(f"{flag}: expected '{wanted}', got status {run.returncode}: {run.stderr}")
        sys.exit(1)
print("every form is the documented one:", len(passes))
