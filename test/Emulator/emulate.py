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
from memory import Fault, Memory

ELEMENT_BYTES = {"f16": 2, "bf16": 2, "f32": 4, "f64": 8, "i1": 1, "i8": 1,
                 "i16": 2, "i32": 4, "i64": 8}
GLOBAL_BASE = 0x7F0000000000
MULTIPROCESSORS = 132  # of the device that is emulated


class Artifact:
    """Of several variants the one that the rule takes where no condition holds,
    unless another one is asked for by its number."""

    def __init__(self, data, variant=-1):
        magic, length, rest = data.split(b"\n", 2)
        if not magic.startswith(b"attn-artifact"):
            raise ValueError(f"not an artifact: {magic[:20]!r}")
        self.manifest = json.loads(rest[: int(length)])
        start = int(length)
        if rest[start : start + 1] == b"\n":
            start += 1
        text = rest[start : start + self.manifest["ptx_bytes"]].decode()
        self.module = ptx.Module(text)
        self.variant = self.manifest["variants"][variant]
        self.kernels = [self.module[k["entry"]] for k in self.variant["kernels"]]
        self.relayouts = {r["element_bytes"]: r for r in self.manifest["relayouts"]}
        self.kernel = self.kernels[-1]  # the one that computes the results


class Tensor:
    """A strided array in emulated memory: bits of `element`, strides in
    elements, whose first element is number `first` of the storage."""

    def __init__(self, element, shape, strides, bits, first=0):
        self.element, self.shape, self.strides = element, shape, strides
        self.bits, self.first = bits, first  # one-dimensional, of the storage
        self.base = None

    @property
    def address(self):
        return self.base + self.first * ELEMENT_BYTES[self.element]


class Scalar:
    """A scalar argument, as it lies in the parameters."""

    def __init__(self, element, value):
        dtype = {"f32": np.float32, "f64": np.float64}.get(element, np.int64)
        self.element, self.value = element, value
        self.bytes = dtype(value).tobytes()[: ELEMENT_BYTES[element]]


def evaluate(expression, tensors):
    if isinstance(expression, int):
        return expression
    kind, *rest = expression
    if kind == "dim":
        return tensors[rest[0]].shape[rest[1]]
    if kind == "scalar":
        return tensors[rest[0]].value
    if kind == "multiprocessors":
        return MULTIPROCESSORS
    a, b = (evaluate(e, tensors) for e in rest)
    return {"add": lambda: a + b, "sub": lambda: a - b, "mul": lambda: a * b,
            "floordiv": lambda: a // b, "ceildiv": lambda: -(-a // b),
            "mod": lambda: a % b, "min": lambda: min(a, b), "max": lambda: max(a, b)}[kind]()


def parameters(kernel, tensors):
    """Bytes of each kernel parameter: a strided memref descriptor per tensor."""
    values = []
    for tensor in tensors:
        if isinstance(tensor, Scalar):
            values.append(tensor.bytes)
            continue
        words = [tensor.address, tensor.address, 0, *tensor.shape, *tensor.strides]
        values += [struct.pack("<q", word) for word in words]
    values += [b""] * sum(size == 128 for _, _, size in kernel.parameters)
    if len(values) != len(kernel.parameters):
        raise ValueError(f"{len(kernel.parameters)} parameters, {len(values)} values")
    return {name: value[:size] + bytes(max(0, size - len(value)))
            for (name, _, size), value in zip(kernel.parameters, values)}


def workspace(description, tensors):
    """Memory between the kernels: poison, unless it has to be zero."""
    shape = [evaluate(e, tensors) for e in description["sizes"]]
    strides = [int(np.prod(shape[i + 1:])) for i in range(len(shape))]
    count = int(np.prod(shape)) * ELEMENT_BYTES[description["element"]]
    fill = 0 if description["zeroed"] else 0xAD
    return Tensor(description["element"], shape, strides, np.full(count, fill, np.uint8))


def tensor_map(description, tensors, memory):
    """As the runtime makes it: four dimensions, the innermost first; with several
    panels, the number of the panel after the row."""
    tensor = tensors[description["argument"]]
    box, panels = (description["columns"], description["rows"]), description["panels"]
    bytes = ELEMENT_BYTES[tensor.element]
    if 0 in tensor.shape:
        # Shows zeros: one element, and what lies outside.
        zeros = memory.allocate(16)
        memory.slice(zeros, 16)[:] = 0
        return TensorMap(zeros, [1] * 5, [16] * 4, box, description["swizzle"], panels, bytes)
    sizes, strides = list(tensor.shape[::-1]), list(tensor.strides[::-1])
    sizes += [1] * (4 - len(sizes))
    strides = [s * bytes for s in strides[1:]]
    strides += [16] * (3 - len(strides))
    strides = [s if n > 1 else 16 for s, n in zip(strides, sizes[1:])]
    if any(s % 16 for s in strides):
        raise ValueError("a tensor map with strides that are no multiple of 16 bytes")
    if panels > 1:
        sizes = [box[0], sizes[1], sizes[0] // box[0], *sizes[2:]]
        strides.insert(1, box[0] * bytes)
    return TensorMap(tensor.address, sizes, strides, box, description["swizzle"], panels,
                     bytes)


def fits(tensor, alignment):
    """Whether kernels take the tensor as it lies."""
    bytes = ELEMENT_BYTES[tensor.element]
    steps = [s for s, n in zip(tensor.strides[:-1], tensor.shape[:-1]) if n != 1]
    return (None not in tensor.strides and tensor.address % max(alignment, bytes) == 0
            and (tensor.shape[-1:] == [1] or tensor.strides[-1:] in ([], [1]))
            and all(s >= 0 and s * bytes % max(alignment, bytes) == 0 for s in steps))


def view_of(tensor, view):
    """(the tensor as kernels see it, its dimensions one by one), as the runtime
    makes it of the parts that the manifest lists; no strides where the parts of a
    dimension do not lie one after the other."""
    if not view:
        return tensor, Tensor(tensor.element, tensor.shape, tensor.strides, tensor.bits, tensor.first)
    known = [1] * len(tensor.shape)
    for dim, size, _ in (part for parts in view for part in parts):
        known[dim] *= max(size, 1) if size >= 0 else 1
    sizes, strides, flat = [], [], ([], [])
    for parts in view:
        pairs = [(size if size >= 0 else tensor.shape[dim] // known[dim], tensor.strides[dim] * step)
                 for dim, size, step in parts]
        pairs = [pair for pair in pairs if pair[0] != 1]
        sizes.append(int(np.prod([n for n, _ in pairs])))
        fits = all(a[1] == b[0] * b[1] for a, b in zip(pairs, pairs[1:]))
        strides.append((pairs[-1][1] if pairs else 0) if fits else None)
        flat[0].extend(n for n, _ in pairs)
        flat[1].extend(s for _, s in pairs)
    seen = Tensor(tensor.element, sizes, strides, tensor.bits, tensor.first)
    parts = Tensor(tensor.element, *flat, tensor.bits, tensor.first)
    seen.base = parts.base = tensor.base
    return seen, parts


def packed_copy(tensor, alignment, memory):
    """A tensor of the same shape with rows one after the other."""
    bytes = ELEMENT_BYTES[tensor.element]
    row = -(-tensor.shape[-1] * bytes // max(alignment, bytes)) * max(alignment, bytes) // bytes
    sizes = [*tensor.shape[:-1], row]
    strides = [int(np.prod(sizes[i + 1:])) for i in range(len(sizes))]
    copy = Tensor(tensor.element, tensor.shape, strides,
                  np.full(int(np.prod(sizes)) * bytes, 0xAD, np.uint8))
    place([copy], memory)
    return copy


def relayout(artifact, source, target, memory, seed):
    """Runs the artifact's kernel that copies one tensor into the other."""
    sizes, strides = list(source.shape), [list(t.strides) for t in (source, target)]
    i = 1
    while len(sizes) > 4 and i < len(sizes):  # neighbours that are one in both
        if all(s[i - 1] == sizes[i] * s[i] for s in strides):
            sizes[i - 1 : i + 1] = [sizes[i - 1] * sizes[i]]
            for s in strides:
                del s[i - 1]
        else:
            i += 1
    rest = 4 - len(sizes)
    four = [Tensor(t.element, [1] * rest + sizes, [0] * rest + s, t.bits, t.first)
            for t, s in zip((source, target), strides)]
    four[0].base, four[1].base = source.base, target.base
    description = artifact.relayouts[ELEMENT_BYTES[source.element]]
    kernel = artifact.module[description["entry"]]
    sizes = four[0].shape
    grid = [-(-sizes[2] * sizes[3] // description["elements"]), sizes[1], sizes[0]]
    description = {**description, "grid": grid, "shared_bytes": 0}
    return run_kernel(description, kernel, parameters(kernel, four), [], four, memory, None, seed)


def place(tensors, memory):
    for tensor in tensors:
        size = tensor.bits.nbytes
        tensor.base = memory.allocate(size)
        memory.slice(tensor.base, size)[:] = tensor.bits.view(np.uint8)


def launch(artifact, tensors, blocks=None, seed=None, memory_bytes=1 << 25):
    """Runs the blocks of the grid (all, or those that `blocks` lists as (x, y,
    z)), of kernels before the last one all; afterwards each tensor's bits
    are what memory holds."""
    manifest = artifact.manifest
    infos = manifest["arguments"]
    seen = [t if isinstance(t, Scalar) else view_of(t, info["view"])[0]
            for t, info in zip(tensors, infos)]
    for check in manifest["checks"]:
        if evaluate(check["lhs"], seen) != evaluate(check["rhs"], seen):
            raise ValueError(check["message"])
    memory = Memory("global", GLOBAL_BASE, memory_bytes)
    workspaces = [workspace(w, seen) for w in artifact.variant["workspaces"]]
    inside = [t for t in [*tensors, *workspaces] if isinstance(t, Tensor)]
    place(inside, memory)
    executed, behind, views = 0, [], list(tensors)
    for i, (tensor, info) in enumerate(zip(tensors, infos)):
        if isinstance(tensor, Scalar):
            continue
        views[i], parts = view_of(tensor, info["view"])
        parts.base = tensor.base
        if 0 in tensor.shape or fits(views[i], info["alignment"]):
            continue
        views[i] = packed_copy(views[i], info["alignment"], memory)
        # The copy, in the same parts: its rows lie densely where they are split.
        packed = views[i]
        if parts.shape != packed.shape:
            steps = [int(np.prod(parts.shape[k + 1:])) for k in range(len(parts.shape))]
            packed = Tensor(packed.element, parts.shape, steps, packed.bits)
            packed.base = views[i].base
        if info["output"]:
            behind.append((packed, parts))
        else:
            executed += relayout(artifact, parts, packed, memory, seed)
    for description, kernel in zip(artifact.variant["kernels"], artifact.kernels):
        arguments = parameters(kernel, [*views, *workspaces])
        maps = [tensor_map(m, [*views, *workspaces], memory)
                for m in description["tensor_maps"]]
        chosen = blocks if kernel is artifact.kernel else None
        executed += run_kernel(description, kernel, arguments, maps, seen, memory,
                               chosen, seed)
    for copy, tensor in behind:
        executed += relayout(artifact, copy, tensor, memory, seed)
    for tensor in inside:
        tensor.bits[:] = memory.slice(tensor.base, tensor.bits.nbytes).view(tensor.bits.dtype)
    artifact.workspaces = workspaces  # what they held at the end
    if blocks is None or len(blocks) == np.prod(grid_of(artifact, seen)):
        for description, left in zip(artifact.variant["workspaces"], workspaces):
            if description["restored"] and left.bits.any():
                raise Fault("a workspace that has to be zero again is not")
    return executed


def run_kernel(description, kernel, arguments, maps, tensors, memory, blocks, seed):
    grid = [evaluate(e, tensors) for e in description["grid"]]
    if blocks is None:
        blocks = [(x, y, z) for z in range(grid[2]) for y in range(grid[1])
                  for x in range(grid[0])]
    block = Block(kernel, arguments, memory, grid, description["threads"],
                  description["shared_bytes"])
    block.tensor_maps = maps
    for number, block_id in enumerate(blocks):
        block.run(block_id, None if seed is None else seed + number)
    return block.executed


def grid_of(artifact, tensors):
    """Of the kernel that computes the results."""
    return [evaluate(e, tensors) for e in artifact.variant["kernels"][-1]["grid"]]


if __name__ == "__main__":
    if len(sys.argv) != 2 or sys.argv[1].startswith("-"):
        sys.exit(__doc__)
    with open(sys.argv[1], "rb") as file:
        opened = Artifact(file.read())
    print(json.dumps({k: v for k, v in opened.manifest.items() if k != "checks"}, indent=1))
    for kernel in opened.kernels:
        print(f"{kernel.name}: {len(kernel.instructions)} instructions")
