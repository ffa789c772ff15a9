#===----------------------------------------------------------------------===#
#
# Part of attn, an attention compiler.
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===----------------------------------------------------------------------===#
"""Memory of the emulated GPU, and the errors an emulated program can make.

Every byte is either mapped or not: a load or a store that touches one byte
outside what was mapped, or that is not aligned to its width, is a Fault, as a
sanitizer would report it on a GPU.
"""

import numpy as np


class Fault(Exception):
    """The program did what no correct program does."""


WORD = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}


class Memory:
    """A range of addresses, of which parts are mapped."""

    def __init__(self, name, base, size):
        size = -(-size // 16) * 16
        self.name, self.base = name, base
        self.bytes = np.full(size, 0xFF, np.uint8)  # NaN in every format
        self.mapped = np.zeros(size, bool)
        self.views = {w: self.bytes.view(t) for w, t in WORD.items()}
        self.end = 0

    def allocate(self, size, alignment=256, red_zone=256):
        """Maps `size` bytes after what was mapped before, and returns their
        address; at least `red_zone` bytes on both sides stay unmapped."""
        start = -(-(self.end + red_zone) // alignment) * alignment
        if start + size + red_zone > len(self.bytes):
            raise Fault(f"{self.name} memory is full: {size} bytes wanted")
        self.mapped[start : start + size] = True
        self.end = start + size
        return self.base + start

    def contains(self, address):
        return self.base <= address < self.base + len(self.bytes)

    def slice(self, address, size):
        """The bytes themselves, for whoever sets up or reads the memory."""
        return self.bytes[address - self.base : address - self.base + size]

    def _offsets(self, addresses, width, what):
        offsets = addresses.astype(np.int64) - self.base
        if offsets.size == 0:
            return offsets
        bad = (offsets < 0) | (offsets + width > len(self.bytes))
        if not bad.any():
            bad = ~(self.mapped[offsets] & self.mapped[offsets + width - 1])
        if bad.any():
            raise Fault(f"{what} of {width} bytes outside the mapped {self.name} "
                        f"memory, at 0x{int(addresses[bad][0]):x} "
                        f"({int(bad.sum())} threads)")
        if (offsets % width).any():
            wrong = addresses[offsets % width != 0][0]
            raise Fault(f"misaligned {what} of {width} bytes at 0x{int(wrong):x} "
                        f"in {self.name} memory")
        return offsets

    def load(self, addresses, width):
        """One word of `width` bytes per address."""
        offsets = self._offsets(addresses, width, "load")
        return self.views[width][offsets // width]

    def store(self, addresses, values, width):
        offsets = self._offsets(addresses, width, "store")
        self.views[width][offsets // width] = values

    def load_block(self, addresses, size):
        """`size` bytes per address, as rows; aligned to `size`."""
        offsets = self._offsets(addresses, size, "load")
        return self.bytes[offsets[:, None] + np.arange(size)]

    def store_block(self, addresses, rows):
        size = rows.shape[1]
        offsets = self._offsets(addresses, size, "store")
        self.bytes[offsets[:, None] + np.arange(size)] = rows
