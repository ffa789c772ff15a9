#===----------------------------------------------------------------------===#
#
# Part of attn, an attention compiler.
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===----------------------------------------------------------------------===#
"""Spellings of attention in PyTorch, in the manner of public models: a table, which the
modules beside this one fill, by what they are about."""

from . import calls, decoders, encoders, heads, masks, near, pairs, softmaxes, vision  # noqa: F401: they fill it
from .table import SPELLINGS, Spelling, make, mark

__all__ = ["SPELLINGS", "Spelling", "make", "mark"]
