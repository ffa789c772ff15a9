#===----------------------------------------------------------------------===#
#
# Part of attn, an attention compiler.
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===----------------------------------------------------------------------===#
"""An artifact launched on the emulated GPU.

    python3 emulate.py kernel.attn          what the kernel is, block by block

As `attn-compile --emit=artifact` wrote it; its PTX is what runs.
"""

import json
import struct
import sys

import numpy as np

import ptx
from hopper_instructions import TensorMap
from machine import Block
from memory import Memory

ELEMENT_BYTES = {"f16": 2, "bf16": 2, "f32": 4, "f64": 8, "i1": 1, "i8": 1,
                 "i16": 2, "i32": 4, "i64": 8}
GLOBAL_BASE = 0x7F0000000000


class Artifact:
    def __init__(self, data):
        magic, length, rest = data.split(b"\n", 2)
        if not magic.startswith(b"attn-artifact"):
            raise ValueError(f"not an artifact: {magic[:20]!r}")
        self.manifest = json.loads(rest[: int(length)])
        start = int(length)
        if rest[start : start + 1] == b"\n":
            start += 1
        text = rest[start : start + self.manifest["ptx_bytes"]].decode()
        self.kernel = ptx.parse(text)


class Tensor:
    """A strided array in emulated memory: bits of `element`, strides in
    elements, `room` bytes mapped so that each byte outside is a fault."""

    def __init__(self, element, shape, strides, bits):
        self.element, self.shape, self.strides = element, shape, strides
        self.bits = bits  # one-dimensional, of the storage
        self.address = None


def evaluate(expression, tensors):
    if isinstance(expression, int):
        return expression
    kind, *rest = expression
    if kind == "dim":
        return tensors[rest[0]].shape[rest[1]]
    a, b = (evaluate(e, tensors) for e in rest)
    return {"add": lambda: a + b, "sub": lambda: a - b, "mul": lambda: a * b,
            "floordiv": lambda: a // b, "ceildiv": lambda: -(-a // b),
            "mod": lambda: a % b, "min": lambda: min(a, b), "max": lambda: max(a, b)}[kind]()


def parameters(kernel, tensors):
    """Bytes of each kernel parameter: a strided memref descriptor per tensor."""
    values = []
    for tensor in tensors:
        values += [tensor.address, tensor.address, 0, *tensor.shape, *tensor.strides]
    values += [0] * sum(size == 128 for _, _, size in kernel.parameters)
    if len(values) != len(kernel.parameters):
        raise ValueError(f"{len(kernel.parameters)} parameters, {len(values)} values")
    return {name: struct.pack("<q", value)[:size] + bytes(max(0, size - 8))
            for (name, _, size), value in zip(kernel.parameters, values)}


def tensor_map(description, tensors):
    """As the runtime makes it: four dimensions, the innermost first."""
    tensor = tensors[description["argument"]]
    bytes = ELEMENT_BYTES[tensor.element]
    sizes, strides = list(tensor.shape[::-1]), list(tensor.strides[::-1])
    sizes += [1] * (4 - len(sizes))
    strides = [s * bytes for s in strides[1:]]
    strides += [16] * (3 - len(strides))
    strides = [s if n > 1 else 16 for s, n in zip(strides, sizes[1:])]
    if any(s % 16 for s in strides):
        raise ValueError("a tensor map with strides that are no multiple of 16 bytes")
    return TensorMap(tensor.address, sizes, strides,
                     (description["columns"], description["rows"]), description["swizzle"])


def launch(artifact, tensors, blocks=None, seed=None, memory_bytes=1 << 25):
    """Runs the blocks of the grid (all, or those that `blocks` lists as (x, y,
    z)); afterwards each tensor's bits are what memory holds."""
    manifest = artifact.manifest
    for check in manifest["checks"]:
        if evaluate(check["lhs"], tensors) != evaluate(check["rhs"], tensors):
            raise ValueError(check["message"])
    memory = Memory("global", GLOBAL_BASE, memory_bytes)
    for tensor in tensors:
        size = tensor.bits.nbytes
        tensor.address = memory.allocate(size)
        memory.slice(tensor.address, size)[:] = tensor.bits.view(np.uint8)
    grid = [evaluate(e, tensors) for e in manifest["grid"]]
    if blocks is None:
        blocks = [(x, y, z) for z in range(grid[2]) for y in range(grid[1])
                  for x in range(grid[0])]
    arguments = parameters(artifact.kernel, tensors)
    maps = [tensor_map(m, tensors) for m in manifest.get("tensor_maps", [])]
    executed = 0
    for number, block_id in enumerate(blocks):
        block = Block(artifact.kernel, arguments, memory, grid, block_id,
                      manifest["threads"], manifest["shared_bytes"],
                      None if seed is None else seed + number)
        block.tensor_maps = maps
        block.run()
        executed += block.executed
    for tensor in tensors:
        tensor.bits[:] = memory.slice(tensor.address, tensor.bits.nbytes).view(tensor.bits.dtype)
    return executed


def grid_of(artifact, tensors):
    return [evaluate(e, tensors) for e in artifact.manifest["grid"]]


if __name__ == "__main__":
    if len(sys.argv) != 2 or sys.argv[1].startswith("-"):
        sys.exit(__doc__)
    with open(sys.argv[1], "rb") as file:
        opened = Artifact(file.read())
    print(json.dumps({k: v for k, v in opened.manifest.items() if k != "checks"}, indent=1))
    print(f"{len(opened.kernel.instructions)} instructions")
