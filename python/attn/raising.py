#===----------------------------------------------------------------------===#
#
# Part of attn, an attention compiler.
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===----------------------------------------------------------------------===#
"""Attention found in graphs of linalg."""

import collections

from . import _capi
from .compile import _quoted

# `log` has a line for each graph that looks like attention.
Raised = collections.namedtuple("Raised", "text log")


def raise_(text):
    """What attn-raise makes of MLIR text, as (text, log).

    text  functions of linalg, tensor, arith and math, on tensors. Graphs in them that
          are proved to compute attention come back as attn.attention; what is not stays
          as it is.

    log is a list, with a line for each graph that looks like attention: "12:8: raised:
    attention with scale 0.125, mask", or "12:8: not raised: " and the edge that failed.
    The place is that of the graph's last product in `text`. Raises AttnError where the
    text is no MLIR, or the library is too old.
    """
    if not isinstance(text, (str, bytes, bytearray)):
        raise TypeError(f"wanted MLIR text, got {type(text).__name__}")
    library = _capi.compiler("attnRaise")
    source = text.encode() if isinstance(text, str) else bytes(text)
    handle = library.attnRaise(source, len(source))
    if not handle:
        raise _capi.AttnError(_quoted(str(_capi.error()), source))
    try:
        log = _capi.string(library.attnRaisedGetLog, handle)
        return Raised(_capi.string(library.attnRaisedGetText, handle), log.splitlines())
    finally:
        library.attnRaisedDestroy(handle)
