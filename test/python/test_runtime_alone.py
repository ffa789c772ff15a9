#===----------------------------------------------------------------------===#
#
# Part of attn, an attention compiler.
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===----------------------------------------------------------------------===#
"""The package on libattn-runtime.so: all but the compiler."""

import os
import pathlib
import subprocess
import sys

import attn
from attn import _capi

PROGRAM = """
import pathlib, sys
import attn
attn.use_library(sys.argv[1])
data = pathlib.Path(sys.argv[2]).read_bytes()
artifact = attn.Artifact.load(data)
assert artifact.bytes == data
print(artifact.manifest["target"], len(artifact.ptx) > 0)
try:
    artifact.on_device()
except attn.AttnError as error:
    print("no GPU" if "driver" in str(error) or "GPU" in str(error) else error)
else:
    print("no GPU")  # there is one
for target in "sm_80", "cpu":
    try:
        attn.compile("module {}", target=target)
    except attn.AttnError as error:
        print(error)
"""


def test_runtime_alone(tmp_path):
    artifact = attn.compile(attn.attention("bf16", 64))
    (tmp_path / "f.attn").write_bytes(artifact.bytes)
    runtime = pathlib.Path(_capi._path).with_name("libattn-runtime.so")
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, runtime, tmp_path / "f.attn"],
        env={**os.environ, "PYTHONPATH": str(pathlib.Path(attn.__file__).parents[1])},
        capture_output=True,
        text=True,
    )
    refused = (
        f"{runtime} holds the runtime alone and cannot compile: "
        "attn.use_library wants libattn.so for that"
    )
    assert done.stdout.splitlines() == ["sm_80 True", "no GPU", refused, refused], done
