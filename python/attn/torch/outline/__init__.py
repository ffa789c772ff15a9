#===----------------------------------------------------------------------===#
#
# Part of attn, an attention compiler.
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===----------------------------------------------------------------------===#
"""One attention of a graph as text of linalg, for attn-raise to prove.

From the product with the values back to the product of queries and keys (the spine) all
is written over the positions b, h, i, j of attention; what is beside it (masks, biases)
is read where it is computed from positions, and is an argument where it is not.
"""

from .calls import CallOutline, FlexOutline
from .spine import Outline

__all__ = ["CallOutline", "FlexOutline", "Outline"]
