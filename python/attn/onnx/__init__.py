#===----------------------------------------------------------------------===#
#
# Part of attn, an attention compiler.
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===----------------------------------------------------------------------===#
"""ONNX's Attention, and softmax(Q Kᵀ) V in ONNX models, by kernels for the CPU.

    import attn.onnx
    y, present_key, present_value, _ = attn.onnx.attention(q, k, v, is_causal=1)

    session = attn.onnx.Backend.prepare(model)     # an onnx.backend.base.Backend
    y, = session.run([q, k, v])

    model, findings = attn.onnx.rewrite(model)     # softmax(Q Kᵀ) V becomes one node

`attention` wants NumPy alone, the rest the package onnx (1.19 or later). The nodes
of a model that are no attention run in onnx.reference. docs/onnx.md says what runs.
"""

from .fused import Refused
from .operator import attention

__all__ = ["Backend", "Refused", "attention", "rewrite"]


def __getattr__(name):  # what imports onnx
    if name == "Backend":
        from .backend import Backend

        return Backend
    if name == "rewrite":
        from .rewriting import rewrite

        return rewrite
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
