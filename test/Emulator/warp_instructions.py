#===----------------------------------------------------------------------===#
#
# Part of attn, an attention compiler.
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===----------------------------------------------------------------------===#
"""Instructions of whole warps, and asynchronous copies.

Fragment layouts as in the PTX ISA: "Matrix Fragments for mma.m16n8k16", "…
mma.m16n8k8", "ldmatrix". Each builder takes the block, the words of the opcode
after the first and the operands, and returns a step (mask, pc).
"""

import numpy as np

from floats import DECODE, f32_towards_zero, tf32
from hopper_instructions import HOPPER_INSTRUCTIONS, mark_unfenced, tensor_copy
from memory import Fault
from tensor_cores import multiply_accumulate_tf32

LANES = np.arange(32)


def aligned(block, run):
    """A step that runs once all lanes of its warps are there."""
    def step(mask, pc):
        if not block.whole_warps(mask, pc):
            return -1
        run(mask)
        return None
    return step


def per_warp(values):
    """(threads,) -> (warps, 32)"""
    return values.reshape(-1, 32)


def shuffle(block, words, operands):
    """shfl.sync.{bfly,idx,up,down}.b32 d[|p], a, b, c, membermask"""
    mode = words[1]
    names = operands[0].split("|")
    write = block.target(names[0])
    write_valid = block.target(names[1]) if len(names) > 1 else None
    value, by = block.source(operands[1], "b32"), block.source(operands[2], "u32")
    clamp, members = block.source(operands[3], "u32"), block.source(operands[4], "u32")

    def run(mask):
        if (members(mask) != 0xFFFFFFFF).any():
            raise Fault("shfl.sync of a part of a warp is not emulated")
        values, steps, c = map(per_warp, (value(mask), by(mask), clamp(mask)))
        segment = (c >> 8) & 31
        bound = (LANES & segment) | ((c & 31) & ~segment)
        lowest = LANES & segment
        if mode == "bfly":
            lane = LANES ^ steps.astype(np.int64)
            valid = lane <= bound
        elif mode == "idx":
            lane = lowest | (steps.astype(np.int64) & ~segment)
            valid = lane <= bound
        elif mode == "up":
            lane = LANES - steps.astype(np.int64)
            valid = lane >= (LANES & segment)
        else:
            lane = LANES + steps.astype(np.int64)
            valid = lane <= bound
        lane = np.where(valid, lane, LANES)
        write(mask, np.take_along_axis(values, lane, axis=1).reshape(-1))
        if write_valid:
            write_valid(mask, np.broadcast_to(valid, values.shape).reshape(-1))
    return aligned(block, run)


def vote(block, words, operands):
    """vote.sync.{any,all,uni}.pred, vote.sync.ballot.b32"""
    write, value = block.target(operands[0]), block.source(operands[1].lstrip("!"), "pred")
    negated = operands[1].startswith("!")
    kind = words[1]

    def run(mask):
        values = per_warp(value(mask) ^ negated)
        if kind == "ballot":
            bits = (values.astype(np.uint64) << LANES.astype(np.uint64)).sum(axis=1)
            result = bits.astype(np.uint32)
        elif kind == "any":
            result = values.any(axis=1)
        elif kind == "all":
            result = values.all(axis=1)
        else:
            result = values.all(axis=1) | ~values.any(axis=1)
        write(mask, np.repeat(result, 32))
    return aligned(block, run)


def reduce_lanes(block, words, operands):
    """redux.sync.{min,max}.s32"""
    kind, element = words[1], words[2]
    if kind not in ("min", "max") or element != "s32":
        raise Fault("redux.sync other than min or max of s32 is not emulated")
    write, value = block.target(operands[0]), block.source(operands[1], "s32")
    members = block.source(operands[2], "u32")
    reduction = np.min if kind == "min" else np.max

    def run(mask):
        if (members(mask) != 0xFFFFFFFF).any():
            raise Fault("redux.sync of a part of a warp is not emulated")
        values = per_warp(value(mask))
        write(mask, np.repeat(reduction(values, axis=1).view(np.uint32), 32))
    return aligned(block, run)


def load_matrix(block, words, operands):
    """ldmatrix.sync.aligned.m8n8.x{1,2,4}[.trans].shared.b16"""
    if "m8n8" not in words or "b16" not in words:
        raise Fault("ldmatrix other than m8n8 b16 is not emulated")
    transposed = "trans" in words
    targets = operands[0] if isinstance(operands[0], list) else [operands[0]]
    writes = [block.target(t) for t in targets]
    address = block.address(operands[1])

    def run(mask):
        addresses = per_warp(address(mask))
        warps = len(addresses)
        for m, write in enumerate(writes):
            rows = block.shared.load_block(addresses[:, 8 * m:8 * m + 8].reshape(-1), 16)
            matrix = rows.reshape(warps, 8, 16).copy().view(np.uint16)  # 8 x 8
            if transposed:
                matrix = matrix.transpose(0, 2, 1)
            low = matrix[:, LANES // 4, 2 * (LANES % 4)].astype(np.uint32)
            high = matrix[:, LANES // 4, 2 * (LANES % 4) + 1].astype(np.uint32)
            write(mask, (low | high << 16).reshape(-1))
    return aligned(block, run)


def store_matrix(block, words, operands):
    """stmatrix.sync.aligned.m8n8.x{1,2,4}[.trans].shared.b16"""
    transposed = "trans" in words
    values = operands[1] if isinstance(operands[1], list) else [operands[1]]
    reads = [block.source(v, "b32") for v in values]
    address = block.address(operands[0])

    def run(mask):
        addresses = per_warp(address(mask))
        threads = per_warp(np.arange(block.n) if mask is None else np.flatnonzero(mask))
        warps = len(addresses)
        for m, read in enumerate(reads):
            value = per_warp(read(mask))
            matrix = np.zeros((warps, 8, 8), np.uint16)
            matrix[:, LANES // 4, 2 * (LANES % 4)] = value & 0xFFFF
            matrix[:, LANES // 4, 2 * (LANES % 4) + 1] = value >> 16
            if transposed:
                matrix = matrix.transpose(0, 2, 1)
            rows = np.ascontiguousarray(matrix).view(np.uint8).reshape(warps * 8, 16)
            lanes = slice(8 * m, 8 * m + 8)
            block.shared.store_block(addresses[:, lanes].reshape(-1), rows)
            mark_unfenced(block, threads[:, lanes].reshape(-1), addresses[:, lanes].reshape(-1), 16)
    return aligned(block, run)


def halves(registers, decode):
    """b32 registers (each (warps, 32)) -> list of (low, high) as f32."""
    return [(decode(r & 0xFFFF), decode(r >> 16)) for r in registers]


def place(matrix, rows, columns, values):
    matrix[:, rows, columns] = values


def operand_a(registers, kind, k):
    warps = len(registers[0])
    matrix = np.zeros((warps, 16, k), np.float32)
    row, pair = LANES // 4, LANES % 4
    if kind == "tf32":
        for i, value in enumerate(registers):
            place(matrix, row + 8 * (i & 1), pair + 4 * (i >> 1), tf32(value))
        return matrix
    for i, (low, high) in enumerate(halves(registers, DECODE[kind])):
        place(matrix, row + 8 * (i & 1), 2 * pair + 8 * (i >> 1), low)
        place(matrix, row + 8 * (i & 1), 2 * pair + 1 + 8 * (i >> 1), high)
    return matrix


def operand_b(registers, kind, k):
    warps = len(registers[0])
    matrix = np.zeros((warps, k, 8), np.float32)
    column, pair = LANES // 4, LANES % 4
    if kind == "tf32":
        for i, value in enumerate(registers):
            place(matrix, pair + 4 * i, column, tf32(value))
        return matrix
    for i, (low, high) in enumerate(halves(registers, DECODE[kind])):
        place(matrix, 2 * pair + 8 * i, column, low)
        place(matrix, 2 * pair + 1 + 8 * i, column, high)
    return matrix


def multiply_accumulate(block, words, operands):
    """mma.sync.aligned.m16n8k{8,16}.row.col.f32.T.T.f32"""
    shape, kind = words[2], words[6]
    k = {"m16n8k16": 16, "m16n8k8": 8}.get(shape)
    if k is None or words[5] != "f32" or words[8] != "f32":
        raise Fault(f"mma.{'.'.join(words)} is not emulated")
    d = [block.target(o) for o in operands[0]]
    a, b = ([block.source(o, "b32") for o in operands[i]] for i in (1, 2))
    c = [block.source(o, "f32") for o in operands[3]]
    row, pair = LANES // 4, LANES % 4

    def run(mask):
        left = operand_a([per_warp(r(mask)) for r in a], kind, k)
        right = operand_b([per_warp(r(mask)) for r in b], kind, k)
        left, right = left.astype(np.float64), right.astype(np.float64)
        accumulator = np.zeros((len(left), 16, 8))
        for i, read in enumerate(c):
            place(accumulator, row + 8 * (i >> 1), 2 * pair + (i & 1), per_warp(read(mask)))
        if kind == "tf32":
            result = multiply_accumulate_tf32(left, right, accumulator)
        else:
            result = f32_towards_zero(left @ right + accumulator)
        for i, write in enumerate(d):
            part = result[:, row + 8 * (i >> 1), 2 * pair + (i & 1)]
            write(mask, part.reshape(-1))
    return aligned(block, run)


def copy_async(block, words, operands):
    """cp.async.{ca,cg}.shared.global, commit_group, wait_group, wait_all"""
    if words[1] == "commit_group":
        def commit(mask, pc):
            block.open_group[slice(None) if mask is None else mask] += 1
        return commit
    if words[1] in ("wait_group", "wait_all"):
        allowed = int(operands[0]) if operands else 0

        def wait(mask, pc):
            threads = np.ones(block.n, bool) if mask is None else mask
            if words[1] == "wait_all":
                block.open_group[threads] += 1
            finish_copies(block, threads, block.open_group - allowed)
        return wait
    if words[1] == "bulk":
        return tensor_copy(block, words, operands)
    target, source = block.address(operands[0]), block.address(operands[1])
    size = int(operands[2])
    source_size = block.source(operands[3], "u32") if len(operands) > 3 else None

    def step(mask, pc):
        count = block.count(mask)
        targets, sources = target(mask), source(mask)
        sizes = source_size(mask) if source_size else np.full(count, size, np.uint32)
        if ((sizes != size) & (sizes != 0)).any():
            raise Fault("cp.async of a part of its bytes is not emulated")
        rows = np.zeros((count, size), np.uint8)
        full = sizes == size
        # Only bytes that are read are checked: a copy of 0 bytes reads nothing.
        rows[full] = block.global_memory.load_block(sources[full], size)
        poison = np.full((count, size), 0xFF, np.uint8)
        block.shared.store_block(targets, poison)
        threads = np.arange(block.n) if mask is None else np.flatnonzero(mask)
        block.copies.append((threads, block.open_group[threads].copy(), targets, rows))
    return step


def finish_copies(block, threads, before):
    """Writes the bytes of the groups of `threads` numbered below `before`."""
    rest = []
    for owner, group, targets, rows in block.copies:
        done = threads[owner] & (group < before[owner])
        if done.any():
            block.shared.store_block(targets[done], rows[done])
            mark_unfenced(block, owner[done], targets[done], rows.shape[1])
        if not done.all():
            rest.append((owner[~done], group[~done], targets[~done], rows[~done]))
    block.copies = rest


WARP_INSTRUCTIONS = {
    "shfl": shuffle,
    "vote": vote,
    "redux": reduce_lanes,
    "ldmatrix": load_matrix,
    "stmatrix": store_matrix,
    "mma": multiply_accumulate,
    "cp": copy_async,
    **HOPPER_INSTRUCTIONS,
}
