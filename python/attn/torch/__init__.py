#===----------------------------------------------------------------------===#
#
# Part of attn, an attention compiler.
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===----------------------------------------------------------------------===#
"""Attention on tensors of PyTorch, with gradients, on the GPU and on the CPU.

    import attn.torch
    o = attn.torch.attention(q, k, v, causal=True)     # (b, h, s, d)

`import attn` does not import PyTorch; this does. Kernels are compiled at the first call
that needs them; those for GPUs are kept on disk.
"""

from .. import requirements

requirements.wanted("attn.torch", "torch", "2.9")

from .backend import Explanation, enable, explain, register  # noqa: E402
from .flash import (  # noqa: E402
    flash_attn_func,
    flash_attn_kvpacked_func,
    flash_attn_qkvpacked_func,
    flash_attn_varlen_func,
    flash_attn_varlen_kvpacked_func,
    flash_attn_varlen_qkvpacked_func,
    flash_attn_with_kvcache,
)
from .flex import flex_attention  # noqa: E402
from .functional import attention, precompile, run  # noqa: E402
from .sdpa import scaled_dot_product_attention  # noqa: E402

register()

__all__ = [
    "Explanation",
    "attention",
    "enable",
    "explain",
    "flash_attn_func",
    "flash_attn_kvpacked_func",
    "flash_attn_qkvpacked_func",
    "flash_attn_varlen_func",
    "flash_attn_varlen_kvpacked_func",
    "flash_attn_varlen_qkvpacked_func",
    "flash_attn_with_kvcache",
    "flex_attention",
    "precompile",
    "run",
    "scaled_dot_product_attention",
]
