#===----------------------------------------------------------------------===#
#
# Part of attn, an attention compiler.
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===----------------------------------------------------------------------===#
"""Thread blocks of a PTX kernel, one after the other, run on the CPU.

All threads that stand at the same instruction execute it together, as one NumPy
operation. Where threads part, the group that is behind goes first, so that they
meet again; with a seed, warps are delayed at random as well, which is what finds
a missing barrier. What is asynchronous on the GPU is as late here as the program
allows: a copy writes its bytes when it is waited for, and until then they are
NaN. Instructions that need a whole warp wait for it.
"""

import numpy as np

from arithmetic import BITS, FUNCTIONS, NUMPY, compare
from hopper_instructions import (GENERIC_PARAMETER, PARAMETER_BASE, Hopper, follow_move,
                                 mark_unfenced)
from memory import Fault, Memory
from ptx import Address, TYPE_BYTES
from warp_instructions import WARP_INSTRUCTIONS

ALL = slice(None)
ITEM_BYTES = {type: np.dtype(dtype).itemsize for type, dtype in NUMPY.items()}
STORAGE = {1: bool, 16: np.uint16, 32: np.uint32, 64: np.uint64, 8: np.uint8}
RUNNING, AT_BARRIER, AT_WARP, DONE = range(4)
SHARED_BASE = 0x400


class Block:
    """A multiprocessor with one kernel: `run` runs one block of its grid."""

    def __init__(self, kernel, arguments, global_memory, grid, threads, shared_bytes):
        self.kernel, self.n = kernel, threads
        self.warps = threads // 32
        self.global_memory = global_memory
        self.shared = Memory("shared", 0, SHARED_BASE + shared_bytes + 2048)
        self.shared_start = self.shared.allocate(shared_bytes, 1024, 0) if shared_bytes else 0
        self.parameters = arguments
        lanes = np.arange(threads, dtype=np.uint32)
        self.special = {"%tid.x": lanes, "%tid.y": lanes * 0, "%tid.z": lanes * 0,
                        "%laneid": lanes % 32, "%warpid": lanes // 32}
        for axis, name in enumerate("xyz"):
            self.special[f"%ctaid.{name}"] = lanes * 0
            self.special[f"%nctaid.{name}"] = np.full(threads, grid[axis], np.uint32)
            self.special[f"%ntid.{name}"] = np.full(
                threads, threads if axis == 0 else 1, np.uint32)
        self.registers = {}
        self.tensor_maps = []
        self.executed = 0
        self.steps = {}  # instruction index -> compiled form, of all blocks
        self.ends = set(kernel.labels.values())

    def begin(self, block_id, seed):
        """As every block finds it: nothing of the one before."""
        for axis, name in enumerate("xyz"):
            self.special[f"%ctaid.{name}"].fill(block_id[axis])
        for register in self.registers.values():
            register.fill(0)
        self.shared.bytes.fill(0xFF)
        self.random = np.random.default_rng(seed) if seed is not None else None
        self.pc = np.zeros(self.n, np.int64)
        self.state = np.full(self.n, RUNNING)
        self.barriers = {}  # id -> [threads arrived, threads expected]
        self.waiting_on = np.zeros(self.n, np.int64)  # barrier id of a thread
        self.copies = []  # cp.async in flight: (group per thread, targets, rows)
        self.open_group = np.zeros(self.n, np.int64)  # number of the next commit
        self.hopper = Hopper(self)

    # Registers and operands -------------------------------------------------

    def type_of(self, name):
        if name in self.kernel.registers:
            return self.kernel.registers[name]
        plain = name.split("@")[0]
        prefix = plain.rstrip("0123456789")
        suffix = name[len(plain):]
        if prefix + suffix in self.kernel.registers:
            return self.kernel.registers[prefix + suffix]
        raise Fault(f"undeclared register {name}")

    def register(self, name):
        array = self.registers.get(name)
        if array is None:
            bits = BITS[self.type_of(name)]
            array = self.registers[name] = np.zeros(self.n, STORAGE[bits])
        return array

    def is_register(self, operand):
        return operand in self.registers or operand in self.kernel.registers or (
            operand.startswith("%") and operand not in self.special)

    def source(self, operand, type):
        """A function of a mask (or None for all) that gives the values."""
        dtype = NUMPY[type]
        if self.is_register(operand):
            array = self.register(operand)
        elif operand in self.special:
            array = self.special[operand]
        elif operand in self.kernel.shared:
            array = np.full(self.n, self.shared_start, dtype)
        elif operand in self.parameters:
            maps = [n for n, _, size in self.kernel.parameters if size == 128]
            if operand not in maps:
                raise Fault(f"address of parameter {operand} as a value")
            array = np.full(self.n, PARAMETER_BASE + 128 * maps.index(operand), dtype)
        else:
            array = np.full(self.n, immediate(operand, type))
        if type == "pred":
            pass
        elif array.dtype.itemsize == ITEM_BYTES[type]:
            array = array.view(dtype)
        else:  # a narrower use of a wider register
            return lambda mask: (array if mask is None else array[mask]).astype(
                STORAGE[BITS[type]]).view(dtype)
        return lambda mask: array if mask is None else array[mask]

    def target(self, operand):
        """A function (mask, values) that writes a register."""
        if operand == "_":
            return lambda mask, values: None
        array = self.register(operand)
        dtype, bytes = array.dtype, array.itemsize

        def write(mask, values):
            if values.dtype is not dtype and dtype.kind != "b":
                if values.dtype.itemsize == bytes:
                    values = values.view(dtype)
                elif values.dtype.kind == "i":  # a wider register: sign extends
                    values = values.astype(np.int64).astype(dtype)
            array[ALL if mask is None else mask] = values
        return write

    def address(self, operand):
        """A function of a mask that gives addresses."""
        if operand.base in self.kernel.shared:
            base = self.shared_start
            return lambda mask: np.full(self.count(mask), base + operand.offset, np.int64)
        if not self.is_register(operand.base):
            value = int(operand.base, 0) + operand.offset
            return lambda mask: np.full(self.count(mask), value, np.int64)
        array, offset = self.register(operand.base), operand.offset
        return lambda mask: (array if mask is None else array[mask]).astype(np.int64) + offset

    def count(self, mask):
        return self.n if mask is None else int(mask.sum())

    def memory(self, space, addresses):
        if space == "shared":
            return self.shared
        if space == "global":
            return self.global_memory
        if addresses.size and self.global_memory.contains(int(addresses[0])):
            return self.global_memory
        return self.shared

    # Control ----------------------------------------------------------------

    def run(self, block_id, seed=None, limit=50_000_000):
        """One block; with a seed, warps get out of step."""
        self.begin(block_id, seed)
        # Infinities and NaN are results like others.
        with np.errstate(all="ignore"):
            self.run_to_end(self.executed + limit)
        if self.copies:
            raise Fault("copies in flight at the end of the block")
        self.hopper.finish()

    def run_to_end(self, limit):
        while True:
            runnable = self.state == RUNNING
            if not runnable.any():
                if (self.state == DONE).all():
                    break
                if self.hopper.arrive_one():
                    continue
                self.stuck()
            if self.random is not None and self.random.random() < 0.1:
                self.hopper.arrive_one()
            self.run_group(self.pick(runnable))
            if self.executed > limit:
                raise Fault("no end in sight")
    def pick(self, runnable):
        """The threads that go next."""
        if self.random is None:
            pc = self.pc[runnable].min()
        else:
            pc = self.random.choice(np.unique(self.pc[runnable]))
        group = runnable & (self.pc == pc)
        if self.random is not None and self.random.random() < 0.5:
            warps = self.random.random(self.warps) < 0.5
            some = group & np.repeat(warps, 32)
            group = some if some.any() else group
        return group

    def run_group(self, group):
        """Executes until the group parts, waits, or reaches a label where it
        could meet others."""
        whole = bool(group.all())
        pc = int(self.pc[group][0])
        while True:
            if pc >= len(self.kernel.instructions):
                raise Fault("ran past the end of the kernel")
            step = self.steps.get(pc)
            if step is None:
                step = self.steps[pc] = self.compile(self.kernel.instructions[pc])
            self.executed += 1
            try:
                next = step(None if whole else group, pc)
            except Fault as fault:
                raise Fault(f"{fault}\n  in: {self.kernel.instructions[pc].text}") from None
            if next is None:
                pc += 1
                if whole or pc not in self.ends:
                    continue
                self.pc[group] = pc
                return
            if next >= 0 and whole and self.random is None:
                pc = next
                continue
            if next >= 0:
                self.pc[group] = next
            return

    def stuck(self):
        waiting = self.state == AT_WARP
        if waiting.any():
            pc = int(self.pc[waiting][0])
            raise Fault("a warp has parted before an instruction that needs all "
                        f"of it: {self.kernel.instructions[pc].text}")
        raise Fault(f"deadlock at barriers {sorted(set(self.waiting_on[self.state == AT_BARRIER]))}")

    def compile(self, instruction):
        opcode = instruction.opcode[0]
        if opcode == "bra":
            step = self.compile_branch(instruction)
        elif opcode in ("ret", "exit"):
            step = self.compile_exit(instruction)
        elif instruction.opcode[:3] == ["bar", "warp", "sync"]:
            step = self.guarded(instruction, self.meet_warp)
        elif opcode in ("bar", "barrier"):
            step = self.compile_barrier(instruction)
        else:
            body = self.compile_body(instruction)
            step = self.guarded(instruction, body)
        return step

    def guarded(self, instruction, body):
        if instruction.guard is None:
            return body
        guard = self.register(instruction.guard)
        negated = instruction.negated

        def step(mask, pc):
            active = ~guard if negated else guard
            if mask is not None:
                active = active & mask
            if active.all():
                return body(None, pc)
            if active.any():
                return body(active.copy(), pc)
            return None
        return step

    def compile_branch(self, instruction):
        target = self.kernel.labels[instruction.operands[0]]
        if instruction.guard is None:
            return lambda mask, pc: target
        guard, negated = self.register(instruction.guard), instruction.negated

        def step(mask, pc):
            taken = ~guard if negated else guard
            active = np.ones(self.n, bool) if mask is None else mask
            taken = taken & active
            if not taken.any():
                return None
            if (taken == active).all():
                return target
            self.pc[taken] = target
            self.pc[active & ~taken] = pc + 1
            return -1
        return step

    def compile_exit(self, instruction):
        guard = instruction.guard and self.register(instruction.guard)

        def step(mask, pc):
            active = np.ones(self.n, bool) if mask is None else mask
            leaving = active
            if guard is not None:
                leaving = active & (~guard if instruction.negated else guard)
            self.state[leaving] = DONE
            self.pc[active & ~leaving] = pc + 1
            return -1
        return step

    def meet_warp(self, mask, pc):
        """bar.warp.sync of all lanes"""
        return None if self.whole_warps(mask, pc) else -1

    def compile_barrier(self, instruction):
        """bar.sync and bar.arrive, with or without a thread count."""
        words, operands = instruction.opcode, instruction.operands
        number = self.source(operands[0], "u32")
        expected = self.source(operands[1], "u32") if len(operands) > 1 else None
        waits = "sync" in words

        def step(mask, pc):
            active = np.ones(self.n, bool) if mask is None else mask
            for id in np.unique(number(active)):
                here = active.copy()
                here[active] = number(active) == id
                count = self.n if expected is None else int(expected(here)[0])
                barrier = self.barriers.setdefault(int(id), [0, count])
                if barrier[1] != count:
                    raise Fault(f"barrier {id} with {count} threads, then with {barrier[1]}")
                barrier[0] += int(here.sum())
                self.pc[here] = pc + 1
                if waits:
                    self.state[here] = AT_BARRIER
                    self.waiting_on[here] = id
                if barrier[0] > count:
                    raise Fault(f"{barrier[0]} threads at barrier {id} of {count}")
                if barrier[0] == count:
                    self.state[(self.state == AT_BARRIER) & (self.waiting_on == id)] = RUNNING
                    del self.barriers[int(id)]
            return -1
        return step

    # Instructions -----------------------------------------------------------

    def compile_body(self, instruction):
        words, operands = instruction.opcode, instruction.operands
        special = WARP_INSTRUCTIONS.get(words[0])
        if special:
            return special(self, words[1:], operands)
        if words[0] == "ld":
            return self.compile_load(words[1:], operands)
        if words[0] == "st":
            return self.compile_store(words[1:], operands)
        if words[0] == "atom":
            return self.compile_atom(words[1:], operands)
        if words[0] == "red":
            return self.compile_red(words[1:], operands)
        if words[0] == "mov":
            return self.compile_move(words[1:], operands)
        if words[0] == "setp":
            return self.compile_compare(words[1:], operands)
        if words[0] == "selp":
            return self.compile_select(words[1:], operands)
        if words[:2] == ["cvta", "param"]:
            read, write = self.source(operands[1], "u64"), self.target(operands[0])
            return lambda mask, pc: write(mask, read(mask) + np.uint64(GENERIC_PARAMETER))
        if words[0] == "cvta" and operands[1] in self.parameters:
            raise Fault("the address of a parameter")
        if operands and words[-1] == "pred":
            return self.compile_map(words, operands)
        if words[0] not in FUNCTIONS:
            raise Fault(f"unknown instruction {instruction.text}")
        return self.compile_map(words, operands)

    def compile_map(self, words, operands):
        types, _, function = FUNCTIONS[words[0]](words[1:])
        if len(types) != len(operands) - 1:
            raise Fault(f"{'.'.join(words)} with {len(operands)} operands")
        sources = [self.source(o, t) for o, t in zip(operands[1:], types)]
        write = self.target(operands[0])

        def step(mask, pc):
            write(mask, function(*[s(mask) for s in sources]))
        return step

    def compile_move(self, words, operands):
        to, source = operands
        type = words[-1]
        if isinstance(source, list):  # pack
            part = f"b{BITS[type] // len(source)}"
            sources = [self.source(s, part) for s in source]
            write, whole = self.target(to), NUMPY[f"b{BITS[type]}"]
            shift = BITS[part]

            def step(mask, pc):
                value = 0
                for i, s in enumerate(sources):
                    value = value | s(mask).astype(whole) << whole(shift * i)
                write(mask, value)
            return step
        if isinstance(to, list):  # unpack
            part = f"b{BITS[type] // len(to)}"
            read, writes = self.source(source, f"b{BITS[type]}"), [self.target(t) for t in to]
            shift = NUMPY[f"b{BITS[type]}"](BITS[part])

            def step(mask, pc):
                value = read(mask)
                for i, write in enumerate(writes):
                    write(mask, (value >> (shift * value.dtype.type(i))).astype(NUMPY[part]))
            return step
        read, write = self.source(source, type), self.target(to)

        def move(mask, pc):
            if self.hopper.any_in_flight():
                follow_move(self, mask, to, source)
            write(mask, read(mask))
        return move

    def compile_compare(self, words, operands):
        type = words[-1]
        function = compare(words[0], type)
        combine = {"and": np.logical_and, "or": np.logical_or, "xor": np.logical_xor}
        names = operands[0].split("|")
        writes = [self.target(n) for n in names]
        a, b = self.source(operands[1], type), self.source(operands[2], type)
        extra = self.source(operands[3], "pred") if len(operands) > 3 else None
        operator = combine[words[1]] if extra else None

        def step(mask, pc):
            result = function(a(mask), b(mask))
            both = [result, ~result]
            for write, value in zip(writes, both):
                write(mask, operator(value, extra(mask)) if extra else value)
        return step

    def compile_select(self, words, operands):
        type = "b" + words[-1][1:] if words[-1] != "pred" else "pred"
        a, b = self.source(operands[1], type), self.source(operands[2], type)
        choose, write = self.source(operands[3], "pred"), self.target(operands[0])
        return lambda mask, pc: write(mask, np.where(choose(mask), a(mask), b(mask)))

    def compile_load(self, words, operands):
        type = words[-1]
        width = TYPE_BYTES[type]
        targets = operands[0] if isinstance(operands[0], list) else [operands[0]]
        writes = [self.target(t) for t in targets]
        if "param" in words:
            data = self.parameters[operands[1].base]
            start = operands[1].offset
            values = [np.frombuffer(data[start + i * width:][:width], NUMPY[type])[0]
                      for i in range(len(writes))]

            def step(mask, pc):
                for write, value in zip(writes, values):
                    write(mask, np.full(self.count(mask), value))
            return step
        space = next((w for w in words if w in ("global", "shared")), None)
        address = self.address(operands[1])

        def step(mask, pc):
            addresses = address(mask)
            memory = self.memory(space, addresses)
            self.check_vector(addresses, width * len(writes))
            for i, write in enumerate(writes):
                write(mask, memory.load(addresses + i * width, width).view(NUMPY[type]))
        return step

    def compile_store(self, words, operands):
        type = "b" + words[-1][1:]
        width = TYPE_BYTES[type]
        sources = operands[1] if isinstance(operands[1], list) else [operands[1]]
        reads = [self.source(s, type) for s in sources]
        space = next((w for w in words if w in ("global", "shared")), None)
        address = self.address(operands[0])

        def step(mask, pc):
            addresses = address(mask)
            memory = self.memory(space, addresses)
            self.check_vector(addresses, width * len(reads))
            for i, read in enumerate(reads):
                memory.store(addresses + i * width, read(mask), width)
            if memory is self.shared:
                threads = np.arange(self.n) if mask is None else np.flatnonzero(mask)
                mark_unfenced(self, threads, addresses, width * len(reads))
        return step

    def compile_atom(self, words, operands):
        """atom.global.inc.u32: one thread after the other."""
        if words != ["global", "inc", "u32"]:
            raise Fault(f"atom.{'.'.join(words)} is not emulated")
        write, address = self.target(operands[0]), self.address(operands[1])
        limit = self.source(operands[2], "u32")

        def step(mask, pc):
            before = []
            for at, last in zip(address(mask), limit(mask)):
                place = np.array([at])
                before.append(self.global_memory.load(place, 4)[0])
                after = 0 if before[-1] >= last else before[-1] + 1
                self.global_memory.store(place, np.array([after], np.uint32), 4)
            write(mask, np.array(before, np.uint32))
        return step

    def compile_red(self, words, operands):
        """red.relaxed.gpu.global.add[.v4].f32: one thread after the other."""
        if words[:4] != ["relaxed", "gpu", "global", "add"] or words[-1] != "f32":
            raise Fault(f"red.{'.'.join(words)} is not emulated")
        sources = operands[1] if isinstance(operands[1], list) else [operands[1]]
        address, reads = self.address(operands[0]), [self.source(s, "f32") for s in sources]

        def step(mask, pc):
            addresses = address(mask)
            self.check_vector(addresses, 4 * len(reads))
            for i, read in enumerate(reads):
                for at, value in zip(addresses + 4 * i, read(mask).astype(np.float32)):
                    place = np.array([at])
                    before = self.global_memory.load(place, 4).view(np.float32)
                    self.global_memory.store(place, (before + value).view(np.uint32), 4)
        return step

    @staticmethod
    def check_vector(addresses, bytes):
        if (addresses % bytes).any():
            raise Fault(f"misaligned access of {bytes} bytes")

    # What waits for a whole warp --------------------------------------------

    def whole_warps(self, mask, pc):
        """True if every warp of the group is complete; else those that are not
        are put aside until the rest has come, and the group runs again."""
        if mask is None:
            return True
        per_warp = mask.reshape(-1, 32)
        complete = per_warp.all(axis=1)
        if (complete == per_warp.any(axis=1)).all():
            return True
        aside = mask & np.repeat(~complete, 32)
        self.pc[mask] = pc
        self.state[aside] = AT_WARP
        gathered = (self.state == AT_WARP) & (self.pc == pc)
        together = np.repeat(gathered.reshape(-1, 32).all(axis=1), 32)
        self.state[together & gathered] = RUNNING
        return False


def immediate(text, type):
    """A literal operand as a value of `type`'s NumPy type."""
    dtype = np.dtype(NUMPY[type])
    if text in ("true", "false"):
        return dtype.type(text == "true")
    if text[:2] in ("0f", "0F"):
        value = np.array(int(text[2:], 16), np.uint32)
        return value.view(np.float32).astype(dtype)[()] if dtype.kind == "f" else value.astype(dtype)[()]
    if text[:2] in ("0d", "0D"):
        value = np.array(int(text[2:], 16), np.uint64)
        return value.view(np.float64).astype(dtype)[()] if dtype.kind == "f" else value[()]
    number = int(text.rstrip("U"), 0)
    if dtype.kind == "b":
        return bool(number)
    return np.array(number & (1 << (8 * dtype.itemsize)) - 1, f"u{dtype.itemsize}").view(dtype)[()]
