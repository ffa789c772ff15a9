#===----------------------------------------------------------------------===#
#
# Part of attn, an attention compiler.
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===----------------------------------------------------------------------===#
"""Launches on plain tensors of PyTorch and numbers, each in one call of C."""

import ctypes
import sys

from . import _capi, views

LAUNCHED, FAILED, COPIED, NOT_PLAIN = range(4)


class Launches:
    """Those of the kernel with this handle. `infos` are its arguments; `device` and
    `index` say where it runs: "cpu" or "cuda", and the number of the GPU, -1: any."""

    def __init__(self, handle, infos):
        self._handle = handle
        self._call = getattr(_capi.library(), "attnLaunchObjects", None)
        self._first = next((number for number, info in enumerate(infos) if info["tensor"]), None)
        self._exchange = None  # that `_python` was made for
        self._python = self._place = self._stream = None

    def launch(self, values, stream, device, index):
        """LAUNCHED; COPIED: and launches of this kernel have copied tensors; FAILED, with
        a message in C; or NOT_PLAIN: nothing is done, and who looks at each of the tuple
        `values` says what is wrong, if anything.

        stream  its handle, or None: PyTorch's current one."""
        exchange = views.exchange()
        if exchange is not self._exchange:
            self._prepare(exchange, device, index)
        if self._place is None:
            return NOT_PLAIN
        try:
            if self._stream is not None and stream is None:
                stream = self._stream(values[self._first].get_device() if index < 0 else index)
            return self._call(self._handle, self._place, values, exchange.is_grad_enabled(), stream)
        except Exception:  # of PyTorch
            return NOT_PLAIN

    def _prepare(self, exchange, device, index):
        self._exchange, self._place = exchange, None
        if exchange is None or self._call is None or self._first is None:
            return
        if device == "cuda":
            self._stream = getattr(sys.modules["torch"]._C, "_cuda_getCurrentRawStream", None)
            if self._stream is None:
                return
        self._python = _python(exchange, device, index)
        self._place = ctypes.addressof(self._python)


def _python(exchange, device, index):
    """AttnPython."""
    def address(name):
        return ctypes.cast(getattr(ctypes.pythonapi, name), ctypes.c_void_p).value

    functions = [address(name) for name in _capi.Python.FUNCTIONS]
    kept = [False, int, bool, float, *exchange.kinds, *_NAMES]
    python = _capi.Python(
        ctypes.sizeof(_capi.Python), (ctypes.c_void_p * len(functions))(*functions),
        (ctypes.c_void_p * len(kept))(*map(id, kept)), exchange.address,
        2 if device == "cuda" else 1, index if device == "cuda" else -1)
    python.kept = kept
    return python


_NAMES = sys.intern("is_neg"), sys.intern("requires_grad")
