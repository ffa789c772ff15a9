#===----------------------------------------------------------------------===#
#
# Part of attn, an attention compiler.
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===----------------------------------------------------------------------===#
"""Launches of a kernel again and again, of which nothing changes but where tensors lie."""

import ctypes

from . import _capi

_WORDS = ctypes.sizeof(_capi.Argument) // 8  # of an argument: kind, address, rank, sizes, strides
_ADDRESS = 1  # the word with the address


class Prepared:
    """Launches of `kernel` on tensors with the sizes and strides of `values`.

    workspace_bytes  what such a launch needs, on tensors whose addresses are multiples of
                     `alignment`, as those of `values` are: others may be copied.
    scalars          the numbers of the arguments that are no tensors.

    Several threads may launch at once. The tensors are not kept alive; only their
    addresses are new at each launch, so the caller has to know that sizes, strides,
    elements and devices are those of `values`."""

    def __init__(self, kernel, values):
        arguments = kernel.prepare(*values)
        self.workspace_bytes = 0 if kernel._device == "cpu" else kernel.prepared_workspace_bytes(arguments)
        self._kernel, self._pointer, self._count = kernel, kernel._pointer, arguments.packed[1]
        self._template, self._shapes = bytes(arguments), arguments.kept[1:]
        self._words = ctypes.c_uint64 * (_WORDS * len(arguments))
        self._arguments = _capi.Argument * len(arguments)
        infos = kernel.manifest["arguments"]
        tensors = [number for number, info in enumerate(infos) if info["tensor"]]
        self.scalars = [number for number, info in enumerate(infos) if not info["tensor"]]
        self._infos = infos
        self._places = [_WORDS * number + _ADDRESS for number in tensors]
        words = self._words.from_buffer_copy(self._template)
        self.alignment = _alignment(max(1, *(info["alignment"] for info in infos)),
                                    [words[place] for place in self._places])
        self._free = []  # of what launches write to: one for each thread inside launch()
        self._launch, self._launch_with_workspace = _capi.launchers()

    def launch(self, addresses, stream=None, workspace=None, scalars=()):
        """addresses  of the tensors, in the order of the arguments.
        stream     its handle, on a GPU.
        workspace  None or (address, bytes).
        scalars    (number of the argument, value) pairs, for each of them."""
        try:
            place, words, arguments = self._free.pop()
        except IndexError:
            place, words, arguments = self._made()
        for word, address in zip(self._places, addresses):
            words[word] = address
        for number, value in scalars:
            self._kernel._fill_scalar(arguments[number], self._infos[number], value)
        if stream is not None:
            stream = _capi.pointer(stream)
        if workspace is None:
            failed = self._launch(self._pointer, place, self._count, stream)
        else:
            address, size = workspace
            failed = self._launch_with_workspace(self._pointer, place, self._count, _capi.pointer(address),
                                                 _capi.size(size), stream)
        self._free.append((place, words, arguments))
        if failed:
            raise _capi.error()

    def _made(self):
        words = self._words.from_buffer_copy(self._template)
        return _capi.pointer(ctypes.addressof(words)), words, self._arguments.from_buffer(words)


def _alignment(wanted, addresses):
    """The largest power of two that divides them all, up to `wanted`, another one."""
    together = wanted
    for address in addresses:
        together |= address
    return together & -together
