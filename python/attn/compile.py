#===----------------------------------------------------------------------===#
#
# Part of attn, an attention compiler.
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===----------------------------------------------------------------------===#
"""Text in, artifacts out."""

import ctypes
import os

from . import _capi
from .runtime import Artifact, Kernel


def _bytes(text):
    return None if text is None else os.fsencode(text)


def _names(passes):
    """Pass names as the C interface takes them: with commas between them."""
    return passes if passes is None or isinstance(passes, str) else ",".join(passes)


def compile(
    text, target="sm_80", plan=None, cache=None, ptxas=None, disable=None, enable=None,
    results=None,
):
    """Compiles MLIR text with one function that holds one attn.attention.

    target  "sm_80", "sm_90a": gives an Artifact; "cpu": gives a Kernel of this process.
    plan    "#attn.plan<...>"; None: the compiler picks one.
    cache   a directory that keeps artifacts between runs, "" for the user's
            cache directory; None: no cache.
    ptxas   the ptxas to use, or the root of a CUDA Toolkit; "": the one on the
            PATH, if any; None: the driver compiles the PTX at load.
    disable names of optional passes ("tile-rotate") that shall not run,
    enable  or shall run although the target does not by default: lists, or
            strings with commas. The kernel gets slower or faster, never wrong.
    results a file of measured plans, as attn-bench writes it: the fastest one
            is taken where no plan is given.
    """
    library = _capi.library()
    source = text.encode() if isinstance(text, str) else bytes(text)
    options = _capi.CompileOptions(
        struct_size=ctypes.sizeof(_capi.CompileOptions),
        target=_bytes(target),
        plan=_bytes(plan),
        cache_directory=_bytes(cache),
        ptxas=_bytes(ptxas),
        disabled_passes=_bytes(_names(disable)),
        enabled_passes=_bytes(_names(enable)),
        results_file=_bytes(results),
    )
    if target == "cpu":
        handle = library.attnCompileForCPU(source, len(source), options)
        wrap = Kernel
    else:
        handle = library.attnCompile(source, len(source), options)
        wrap = Artifact
    if not handle:
        raise _capi.error()
    return wrap(handle)
