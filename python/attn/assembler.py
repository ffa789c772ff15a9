#===----------------------------------------------------------------------===#
#
# Part of attn, an attention compiler.
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===----------------------------------------------------------------------===#
"""Where ptxas is: in a CUDA Toolkit, or in a Python package that brings one.

Without ptxas the driver compiles the PTX, and nobody hears which kernels spill registers:
the compiler then keeps its first plan, which for some masks takes 1.4 times as long.
"""

import functools
import importlib.util
import os
import pathlib
import re
import shutil
import subprocess

OLDEST = (12, 1)  # the first that knows the instructions that kernels use (PTX 8.1)
ROOTS = ("CUDAToolkit_ROOT", "CUDA_HOME", "CUDA_PATH")
# Packages of PyPI, and where a ptxas lies in each.
PACKAGES = (("nvidia", "*/bin/ptxas"), ("torch", "bin/ptxas"), ("triton", "backends/nvidia/bin/ptxas"))


def candidates():
    """Paths where a ptxas may be, the one that the user asks for first."""
    for variable in ROOTS:
        if os.environ.get(variable):
            yield os.path.join(os.environ[variable], "bin", "ptxas")
    yield shutil.which("ptxas")
    for package, pattern in PACKAGES:
        try:
            spec = importlib.util.find_spec(package)
        except (ImportError, ValueError):  # half of a package
            continue
        for folder in (spec and spec.submodule_search_locations) or ():
            yield from sorted(map(str, pathlib.Path(folder).glob(pattern)), reverse=True)


def version(path):
    """(major, minor) of a ptxas; None where it is none, or does not run."""
    try:
        said = subprocess.run([path, "--version"], capture_output=True, text=True, timeout=20).stdout
    except (OSError, subprocess.SubprocessError, UnicodeDecodeError):
        return None
    found = re.search(r"release (\d+)\.(\d+)", said)
    return found and (int(found[1]), int(found[2]))


@functools.lru_cache(maxsize=None)
def find():
    """The path of the first ptxas that runs and is new enough; "" for none."""
    for path in dict.fromkeys(candidates()):
        if path and os.access(path, os.X_OK) and (version(path) or (0, 0)) >= OLDEST:
            return path
    return ""
