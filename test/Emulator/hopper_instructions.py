#===----------------------------------------------------------------------===#
#
# Part of attn, an attention compiler.
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===----------------------------------------------------------------------===#
"""Instructions that sm_90a adds: wgmma, mbarrier, TMA copies.

Everything is as late as the PTX ISA allows. A wgmma reads its operands when its
group is waited for; until then its accumulators hold poison, and its A registers
have to stay as they were. A TMA copy arrives at some later time, at the last
moment if there is no seed; from its issue on the box is poison. A TMA store reads
its box when its thread waits for that; a store that nobody waits for is a fault.
"""

import functools
from dataclasses import dataclass

import numpy as np

from floats import DECODE, f32_towards_zero
from memory import Fault

WAITING = 4  # state of a thread that waits for the phase of an mbarrier
PARAMETER_BASE = 1 << 20  # where the emulated parameters lie
GENERIC_PARAMETER = 1 << 40  # what cvta.param adds
SWIZZLE_OF_MODE = {0: 16, 1: 128, 2: 64, 3: 32}  # 0: rows of 16 bytes, which stay where they are
LANES = np.arange(32)


class Hopper:
    """What a block needs besides registers and memory."""

    def __init__(self, block):
        self.block = block
        self.barriers = {}  # address -> Barrier
        self.copies = []  # TMA copies in flight
        self.waiting = np.zeros(block.n, np.int64)  # mbarrier address of a thread
        self.groups = [[] for _ in range(block.warps)]  # committed, oldest first
        self.open = [[] for _ in range(block.warps)]  # issued, not committed
        self.flight = [{} for _ in range(block.warps)]  # register -> (tile, index)
        self.stores = {}  # thread -> TMA stores of its groups, oldest first
        self.open_stores = {}  # thread -> TMA stores, not committed
        self.unfenced = np.zeros(len(block.shared.bytes), np.int32)  # 1 + writer

    def any_in_flight(self):
        return any(self.flight)

    def arrive_one(self):
        """Lets one TMA copy arrive; False if there is none."""
        if not self.copies:
            return False
        random = self.block.random
        i = 0 if random is None else int(random.integers(len(self.copies)))
        copy = self.copies.pop(i)
        copy.arrive(self.block)
        self.barriers[copy.barrier].complete(self.block, copy.bytes)
        return True

    def finish(self):
        if self.copies:
            raise Fault("a TMA copy is in flight at the end of the block")
        if any(self.stores.values()) or any(self.open_stores.values()):
            raise Fault("a TMA store may still read shared memory at the end of the block")
        if self.any_in_flight():
            raise Fault("a wgmma is in flight at the end of the block")


@dataclass
class Barrier:
    address: int
    count: int
    pending: int
    transactions: int = 0
    phase: int = 0

    def arrive(self, block, count=1):
        self.pending -= count
        if self.pending < 0:
            raise Fault(f"more than {self.count} arrivals at the mbarrier at 0x{self.address:x}")
        self.check(block)

    def complete(self, block, bytes):
        self.transactions -= bytes
        self.check(block)

    def check(self, block):
        if self.pending or self.transactions:
            return
        self.phase ^= 1
        self.pending = self.count
        woken = (block.state == WAITING) & (block.hopper.waiting == self.address)
        block.state[woken] = 0


def barrier_at(block, address):
    barrier = block.hopper.barriers.get(int(address))
    if barrier is None:
        raise Fault(f"no mbarrier at 0x{int(address):x}")
    return barrier


def mbarrier(block, words, operands):
    """mbarrier.{init,arrive[.expect_tx],try_wait.parity,test_wait.parity}"""
    if words[0] == "init":
        address, count = block.address(operands[0]), block.source(operands[1], "u32")

        def initialise(mask, pc):
            for at, n in zip(address(mask), count(mask)):
                if at % 8:
                    raise Fault("misaligned mbarrier")
                block.hopper.barriers[int(at)] = Barrier(int(at), int(n), int(n))
        return initialise
    if words[0] == "arrive":
        address = block.address(operands[1])
        expected = block.source(operands[2], "u32") if "expect_tx" in words else None

        def arrive(mask, pc):
            bytes = expected(mask) if expected else [0] * block.count(mask)
            for at, n in zip(address(mask), bytes):
                barrier = barrier_at(block, at)
                barrier.transactions += int(n)
                barrier.arrive(block)
        return arrive
    if words[0] in ("try_wait", "test_wait") and words[1] == "parity":
        write, address = block.target(operands[0]), block.address(operands[1])
        parity = block.source(operands[2], "u32")

        def wait(mask, pc):
            threads = np.ones(block.n, bool) if mask is None else mask
            addresses, parities = address(threads), parity(threads)
            ready = np.array([barrier_at(block, a).phase != p & 1
                              for a, p in zip(addresses, parities)])
            if words[0] == "test_wait":
                # What is told late is as good as no.
                if block.random is not None:
                    ready &= block.random.random() < 0.5
                write(threads, ready)
                return None
            late = np.zeros(block.n, bool)
            late[threads] = ~ready
            if not late.any():
                write(mask, np.ones(block.count(mask), bool))
                return None
            done = threads & ~late
            if done.any():
                write(done, np.ones(int(done.sum()), bool))
                block.pc[done] = pc + 1
            block.pc[late] = pc
            block.state[late] = WAITING
            block.hopper.waiting[late] = addresses[~ready]
            return -1
        return wait
    raise Fault(f"mbarrier.{'.'.join(words)} is not emulated")


#===----------------------------------------------------------------------===#
# TMA
#===----------------------------------------------------------------------===#


@dataclass
class TensorMap:
    """What cuTensorMapEncodeTiled was told; innermost dimension first."""
    address: int
    sizes: list
    strides: list  # bytes, of dimensions 1, 2, …
    box: tuple  # columns, rows
    swizzle: int  # bytes of a row of the pattern; 0: rows lie densely
    panels: int = 1  # of a box; more: dimension 2 numbers them
    bytes: int = 2  # of an element

    def is_aligned(self, address):
        """In shared memory: the start of a pattern."""
        return address % max(8 * self.swizzle, 128) == 0


def swizzled(addresses, swizzle):
    return addresses ^ ((addresses >> 7 & (max(swizzle, 16) // 16 - 1)) << 4)


@dataclass
class TensorCopy:
    map: TensorMap
    coordinates: list
    target: int
    barrier: int

    @property
    def bytes(self):
        return self.map.panels * self.map.box[0] * self.map.box[1] * self.map.bytes

    def box(self):
        """(panel, row, column) of the box's elements."""
        columns, rows = self.map.box
        return np.ogrid[:self.map.panels, :rows, :columns]

    def places(self):
        panel, row, column = self.box()
        row = panel * self.map.box[1] + row
        step = self.map.swizzle or self.map.box[0] * self.map.bytes
        return swizzled(self.target + row * step + column * self.map.bytes, self.map.swizzle)

    def inside(self):
        """Which elements of the box the tensor has, and their addresses."""
        panel, row, column = self.box()
        x, y, *outer = self.coordinates
        if self.map.panels > 1:
            outer[0] = outer[0] + panel
        row, column = y + row, x + column
        inside = ((row >= 0) & (row < self.map.sizes[1]) & (column >= 0)
                  & (column < self.map.sizes[0]))
        address = self.map.address + column * self.map.bytes + row * self.map.strides[0]
        for at, size, stride in zip(outer, self.map.sizes[2:], self.map.strides[1:]):
            inside = inside & (0 <= at) & (at < size)
            address = address + at * stride
        return np.broadcast_arrays(inside, address)

    def store(self, block):
        inside, address = self.inside()
        places = self.places()
        offsets = places.reshape(-1) - block.shared.base
        if block.hopper.unfenced[offsets].any():
            raise Fault("TMA stores what a thread wrote without fence.proxy.async")
        bytes = self.map.bytes
        values = block.shared.load(places.reshape(-1), bytes).reshape(places.shape)
        if inside.any():
            block.global_memory.store(address[inside], values[inside], bytes)

    def poison(self, block):
        places = self.places().reshape(-1)
        block.shared.store(places, np.full(places.shape, -1, f"i{self.map.bytes}"), self.map.bytes)

    def arrive(self, block):
        inside, address = self.inside()
        values = np.zeros(inside.shape, f"u{self.map.bytes}")
        if inside.any():
            values[inside] = block.global_memory.load(address[inside], self.map.bytes)
        block.shared.store(self.places().reshape(-1), values.reshape(-1), self.map.bytes)


def tensor_map(block, operand):
    """Reads the maps that a TMA instruction names, one for each of its threads, and
    the coordinates."""
    address = block.address(operand)
    coordinates = [block.source(c, "s32") for c in operand.coordinates]

    def read(mask):
        maps = []
        for at in address(mask):
            number = int(at) - GENERIC_PARAMETER - PARAMETER_BASE
            if number < 0 or number % 128 or number // 128 >= len(block.tensor_maps):
                raise Fault("a TMA copy without the generic address of a tensor map")
            maps.append(block.tensor_maps[number // 128])
        return maps, np.array([c(mask) for c in coordinates]).T.tolist()
    return read


def tensor_store(block, operands):
    """cp.async.bulk.tensor.4d.global.shared::cta.tile.bulk_group"""
    boxes, source = tensor_map(block, operands[0]), block.address(operands[1])

    def step(mask, pc):
        threads = range(block.n) if mask is None else np.flatnonzero(mask)
        for thread, map, coordinates, at in zip(threads, *boxes(mask), source(mask)):
            if not map.is_aligned(int(at)):
                raise Fault("a TMA store from an address inside a swizzle pattern")
            block.hopper.open_stores.setdefault(int(thread), []).append(
                TensorCopy(map, coordinates, int(at), 0))
    return step


def bulk_group(block, words, operands):
    """cp.async.bulk.{commit_group,wait_group[.read]}"""
    def step(mask, pc):
        hopper = block.hopper
        for thread in range(block.n) if mask is None else np.flatnonzero(mask):
            groups = hopper.stores.setdefault(int(thread), [])
            if words[0] == "commit_group":
                groups.append(hopper.open_stores.pop(int(thread), []))
                continue
            while len(groups) > int(operands[0]):
                for copy in groups.pop(0):
                    copy.store(block)
    return step


def tensor_copy(block, words, operands):
    """cp.async.bulk: copies of boxes between global and shared memory"""
    if words[2] in ("commit_group", "wait_group"):
        return bulk_group(block, words[2:], operands)
    if words[2:5] == ["tensor", "4d", "global"]:
        return tensor_store(block, operands)
    if words[2] != "tensor" or words[3] not in ("4d", "5d") or "global" not in words:
        raise Fault(f"cp.{'.'.join(words)} is not emulated")
    target, barrier = block.address(operands[0]), block.address(operands[2])
    boxes = tensor_map(block, operands[1])

    def step(mask, pc):
        if block.count(mask) != 1:
            raise Fault(f"{block.count(mask)} threads issue one TMA copy")
        [map], [coordinates] = boxes(mask)
        if f"{len(coordinates)}d" != words[3] or (words[3] == "5d") != (map.panels > 1):
            raise Fault(f"a TMA copy of {words[3]} with a map of {map.panels} panels")
        copy = TensorCopy(map, coordinates, int(target(mask)[0]), int(barrier(mask)[0]))
        if not copy.map.is_aligned(copy.target):
            raise Fault("a TMA copy to an address inside a swizzle pattern")
        barrier_at(block, copy.barrier)
        copy.poison(block)
        block.hopper.copies.append(copy)
    return step


#===----------------------------------------------------------------------===#
# wgmma
#===----------------------------------------------------------------------===#


@dataclass
class Tile:
    """Accumulators of one warp while they belong to the tensor cores."""
    values: np.ndarray  # (N / 2, 32) f32
    users: int = 0  # instructions not yet executed


@dataclass
class Issue:
    warp: int
    tile: Tile
    kind: str
    columns: int
    left: object  # a descriptor (low, high), or a list of (register, value)
    right: tuple
    transposed: list  # of the operands that are descriptors
    accumulate: bool

    def execute(self, block):
        a = self.left_operand(block)
        b = operand(block, self.right, self.transposed[-1], self.columns)
        b = DECODE[self.kind](b).astype(np.float64)
        i = np.arange(self.columns // 2)[:, None]
        row, pair = LANES // 4, 2 * (LANES % 4)
        product = (a @ b)[row + 8 * (i >> 1 & 1), 8 * (i >> 2) + pair + (i & 1)]
        old = self.tile.values if self.accumulate else 0
        self.tile.values = f32_towards_zero(product + old)
        self.tile.users -= 1

    def left_operand(self, block):
        lanes = slice(32 * self.warp, 32 * self.warp + 32)
        if isinstance(self.left, tuple):
            rows = operand(block, self.left, self.transposed[0], 64).T  # 64 x 16
            first = 16 * (self.warp % 4)
            return DECODE[self.kind](rows[first:first + 16]).astype(np.float64)
        matrix = np.zeros((16, 16), np.float64)
        row, pair = LANES // 4, 2 * (LANES % 4)
        for i, (name, value) in enumerate(self.left):
            if (block.register(name)[lanes] != value).any():
                raise Fault(f"{name} was written while a wgmma reads it")
            matrix[row + 8 * (i & 1), pair + 8 * (i >> 1)] = DECODE[self.kind](value & 0xFFFF)
            matrix[row + 8 * (i & 1), pair + 8 * (i >> 1) + 1] = DECODE[self.kind](value >> 16)
        return matrix


def operand(block, descriptor, transposed, columns):
    """The 16 x columns box that a descriptor means, as bits; k is the row."""
    addresses = operand_addresses(descriptor, transposed, columns)
    if block.hopper.unfenced[addresses - block.shared.base].any():
        raise Fault("wgmma reads what a thread wrote without fence.proxy.async")
    return block.shared.load(addresses, 2).reshape(16, columns)


@functools.lru_cache(maxsize=1 << 12)
def operand_addresses(descriptor, transposed, columns):
    low, high = descriptor
    start, leading = (low & 0x3FFF) * 16, (low >> 16 & 0x3FFF) * 16
    stride, mode = (high & 0x3FFF) * 16, high >> 30
    width = SWIZZLE_OF_MODE[mode]
    if high >> 17 & 7:
        raise Fault("wgmma with a base offset is not emulated")
    k, n = np.arange(16)[:, None], np.arange(columns)[None, :]
    if transposed:  # MN-major
        per_panel = width // 2
        to_panel, to_rows = (leading, stride) if mode else (stride, leading)
        addresses = (start + n // per_panel * to_panel + k // 8 * to_rows + k % 8 * width
                     + n % per_panel * 2)
    else:
        in_row = k * 2 if mode else k // 8 * leading + k % 8 * 2
        addresses = start + n // 8 * stride + n % 8 * width + in_row
    return swizzled(addresses, width).reshape(-1)


def warps_of(block, mask):
    if mask is None:
        return range(block.warps)
    return np.flatnonzero(mask.reshape(-1, 32).any(axis=1))


def wgmma(block, words, operands):
    """wgmma.{fence,commit_group,wait_group,mma_async}.sync.aligned…"""
    if words[0] == "fence":
        return aligned(block, lambda mask: None)
    if words[0] == "commit_group":
        def commit(mask):
            for warp in warps_of(block, mask):
                block.hopper.groups[warp].append(block.hopper.open[warp])
                block.hopper.open[warp] = []
        return aligned(block, commit)
    if words[0] == "wait_group":
        allowed = int(operands[0])
        return aligned(block, lambda mask: [retire(block, warp, allowed)
                                            for warp in warps_of(block, mask)])
    return issue(block, words, operands)


def aligned(block, run):
    def step(mask, pc):
        if not block.whole_warps(mask, pc):
            return -1
        run(mask)
        return None
    return step


def issue(block, words, operands):
    shape, kind = words[3], words[5]
    columns = int(shape[len("m64n"):shape.index("k")])
    if not shape.endswith("k16") or words[4] != "f32" or words[6] != kind:
        raise Fault(f"wgmma.{'.'.join(words)} is not emulated")
    names = operands[0]
    if len(names) != columns // 2:
        raise Fault(f"{len(names)} accumulators for {columns} columns")
    accumulators = [block.register(name).view(np.float32) for name in names]
    in_registers = isinstance(operands[1], list)
    left = operands[1] if in_registers else block.source(operands[1], "u64")
    right = block.source(operands[2], "u64")
    accumulate = operands[3]
    if accumulate not in ("0", "1") or operands[4:6] != ["1", "1"]:
        raise Fault("wgmma with computed scales is not emulated")
    flags = operands[6:]
    if len(flags) != (1 if in_registers else 2) or not set(flags) <= {"0", "1"}:
        raise Fault(f"wgmma with the flags {flags} is not emulated")

    def run(mask):
        hopper = block.hopper
        for warp in warps_of(block, mask):
            lanes = slice(32 * warp, 32 * warp + 32)
            flight = hopper.flight[warp]
            tile = flight.get(names[0], (None, 0))[0]
            if tile is None:
                values = np.array([a[lanes].copy() for a in accumulators])
                tile = Tile(values)
                for i, name in enumerate(names):
                    flight[name] = (tile, i)
                for a in accumulators:
                    a.view(np.uint32)[lanes] = 0x7FBADBAD
            elif any(flight.get(name) != (tile, i) for i, name in enumerate(names)):
                raise Fault("a wgmma of accumulators that are partly in flight")
            tile.users += 1
            place = slice(lanes.start, lanes.start + 1)
            source = ([(name, block.register(name)[lanes].copy()) for name in left]
                      if in_registers else halves(left(None)[place][0]))
            hopper.open[warp].append(Issue(
                warp, tile, kind, columns, source, halves(right(None)[place][0]),
                [flag == "1" for flag in flags], accumulate == "1"))
    return aligned(block, run)


def halves(descriptor):
    return int(descriptor) & 0xFFFFFFFF, int(descriptor) >> 32


def retire(block, warp, allowed):
    """Executes all groups of a warp but the youngest `allowed`."""
    hopper = block.hopper
    groups = hopper.groups[warp]
    while len(groups) > allowed:
        for entry in groups.pop(0):
            entry.execute(block)
    lanes = slice(32 * warp, 32 * warp + 32)
    flight = hopper.flight[warp]
    for name, (tile, index) in list(flight.items()):
        if tile.users:
            continue
        register = block.register(name)
        if (register[lanes] != 0x7FBADBAD).any():
            raise Fault(f"accumulator {name} was written while a wgmma is in flight")
        register[lanes] = tile.values[index].view(np.uint32)
        del flight[name]


def follow_move(block, mask, target, source):
    """A move of an accumulator in flight moves its place; ptxas drops it."""
    for warp in warps_of(block, mask):
        flight = block.hopper.flight[warp]
        if source in flight:
            flight[target] = flight[source]
        else:
            flight.pop(target, None)


#===----------------------------------------------------------------------===#
# The rest
#===----------------------------------------------------------------------===#


def mark_unfenced(block, threads, targets, size):
    offsets = (targets - block.shared.base)[:, None] + np.arange(size)
    block.hopper.unfenced[offsets] = threads[:, None] + 1


def fence(block, words, operands):
    """fence.proxy.async, fence.mbarrier_init: the first is checked."""
    if words[0] != "proxy":
        return lambda mask, pc: None

    def step(mask, pc):
        unfenced = block.hopper.unfenced
        if mask is None:
            unfenced[:] = 0
        else:
            writers = np.concatenate([[False], mask])
            unfenced[writers[unfenced]] = 0
    return step


def control_launches(block, words, operands):
    """griddepcontrol: kernels are emulated one after the other."""
    if words[0] not in ("wait", "launch_dependents"):
        raise Fault(f"griddepcontrol.{words[0]}")
    return lambda mask, pc: None


def set_registers(block, words, operands):
    if int(operands[0]) % 8 or not 24 <= int(operands[0]) <= 256:
        raise Fault(f"setmaxnreg {operands[0]}")
    return aligned(block, lambda mask: None)


def elect(block, words, operands):
    write = block.target(operands[0].split("|")[1])
    return aligned(block, lambda mask: write(
        mask, np.tile(LANES == 0, block.count(mask) // 32)))


HOPPER_INSTRUCTIONS = {
    "wgmma": wgmma,
    "mbarrier": mbarrier,
    "fence": fence,
    "griddepcontrol": control_launches,
    "membar": lambda block, words, operands: lambda mask, pc: None,
    "setmaxnreg": set_registers,
    "elect": elect,
}
