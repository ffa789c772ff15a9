#===----------------------------------------------------------------------===#
#
# Part of attn, an attention compiler.
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===----------------------------------------------------------------------===#
"""The attention compiler and its runtime, for Python.

    import attn
    artifact = attn.compile(text)          # text: MLIR with one attn.attention
    artifact.launch(q, k, v, o, lse)       # torch tensors on the GPU

    kernel = attn.compile(text, target="cpu")
    kernel.launch(q, k, v, o, lse)         # NumPy arrays

Nothing here needs PyTorch or NumPy to be imported; libattn.so is looked for
beside this package, then where the loader looks, or where use_library says. The
runtime alone, libattn-runtime.so, serves for all but compile().
"""

from . import expression, masks
from ._capi import AttnError, use_library, version
from .compile import compile
from .program import attention
from .raising import raise_
from .runtime import Artifact, Kernel

__all__ = [
    "Artifact",
    "AttnError",
    "Kernel",
    "attention",
    "compile",
    "expression",
    "masks",
    "raise_",
    "use_library",
    "version",
]
