#===----------------------------------------------------------------------===#
#
# Part of attn, an attention compiler.
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===----------------------------------------------------------------------===#
"""What happens in which order in the loops of a kernel's machine code.

    nvdisasm -c kernel.cubin | python3 loops.py

One line per event of each innermost loop with tensor core instructions: their
runs, barriers and waits, and how many exponentials lie between. ptxas orders
instructions as it likes; this is where one sees what became of a schedule.
"""

import re
import sys

EVENTS = {"HGMMA": "products", "HMMA": "products", "WARPGROUP.ARRIVE": "fence",
          "BAR.SYNC": "meet", "BAR.ARV": "pass on", "VOTE": "vote"}


def read(lines):
    """(label, None) and (opcode, operands), in order."""
    for line in lines:
        if label := re.match(r"\s*(\.L_x_\d+):", line):
            yield label[1], None
        elif code := re.match(r"\s*/\*[0-9a-f]+\*/\s+(?:@!?U?P\w+\s+)?([A-Z][\w.]*)(.*?);", line):
            yield code[1], code[2]


def is_product(opcode):
    return opcode.startswith(("HGMMA", "HMMA"))


def innermost_loops(program):
    places = {name: i for i, (name, operands) in enumerate(program) if operands is None}
    loops = []
    for i, (opcode, operands) in enumerate(program):
        target = re.search(r"\.L_x_\d+", operands or "") if opcode.startswith("BRA") else None
        if target and places.get(target[0], len(program)) < i:
            body = range(places[target[0]], i)
            # Retries of a wait lie after the end and jump back into the kernel.
            opcodes = [program[j][0] for j in body]
            if any(map(is_product, opcodes)) and "EXIT" not in opcodes:
                loops.append(body)
    return [loop for loop in loops
            if not any(other != loop and other.start >= loop.start and other.stop <= loop.stop
                       for other in loops)]


def name_of(opcode, operands):
    if "DEPBAR" in opcode:
        count = re.search(r"gsb0, (0x\w+)", operands)
        return f"wait {int(count[1], 16)}" if count else None
    for prefix, name in EVENTS.items():
        if opcode.startswith(prefix):
            return name
    return None


def summarize(body):
    exponentials, last, count = 0, None, 0
    for opcode, operands in body:
        if opcode.startswith("MUFU.EX2"):
            exponentials += 1
        name = name_of(opcode, operands or "")
        if name is None:
            continue
        if name == last and name == "products":
            count += 1
            continue
        if last == "products":
            yield f"{count} products"
        if exponentials:
            yield f"{exponentials} exponentials"
        exponentials, count = 0, 1
        if name != "products":
            yield name
        last = name
    if last == "products":
        yield f"{count} products"
    if exponentials:
        yield f"{exponentials} exponentials"


if __name__ == "__main__":
    program = list(read(sys.stdin))
    for loop in innermost_loops(program):
        print("loop")
        for line in summarize([program[j] for j in loop]):
            print("  " + line)
