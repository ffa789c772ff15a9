#!/usr/bin/env python3
#===----------------------------------------------------------------------===#
#
# Part of attn, an attention compiler.
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===----------------------------------------------------------------------===#
"""Every program of test/Masks on the GPU, against NumPy in float64.

    masks_suite.py --lib build/lib/libattn.so --targets sm_80,sm_90a
    masks_suite.py --lib ... --only causal,documents --time-limit 100
    masks_suite.py --lib ... --device cpu      the programs' code for the CPU

Inputs, their places in memory (with red zones) and the judgement are those of
test/Emulator; only the launch differs. Plans: the default and a small one. A case is a
program with all targets and plans; cases are run in --jobs processes (case_pool.py).
Exit code 0: all passed; 1: some did not, or none was run; 77: no PyTorch, or no GPU.
"""

import argparse
import pathlib
import sys
import zlib

ROOT = pathlib.Path(__file__).resolve().parents[3]
for place in ("python", "test/Emulator", "test/Masks", "test/Integration/GPU"):
    sys.path.insert(0, str(ROOT / place))

import case_pool  # noqa: E402
import masks  # noqa: E402
from case_pool import Verdict  # noqa: E402

WHAT = "Every program of test/Masks against NumPy in float64; two plans of each target"
LENGTHS = [(200, 333), (333, 200), (128, 256), (1, 500), (517, 517), (300, 65), (150, 190)]


def arguments():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    case_pool.add_arguments(parser)
    parser.add_argument("--targets", help="default: sm_80,sm_90a; of --device cpu: cpu")
    options = case_pool.parse(parser)
    if options.targets is None:
        options.targets = "cpu" if options.device == "cpu" else "sm_80,sm_90a"
    return options


class Storage:
    """An array's storage, red zones and all, on the device, and the view of it."""

    def __init__(self, torch, array, device):
        bits = {1: torch.int8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
        types = {"f16": torch.float16, "bf16": torch.bfloat16, "f32": torch.float32, "i1": torch.bool}
        size = array.storage.itemsize
        self.array = array
        self.flat = torch.from_numpy(array.storage.view(f"i{size}").reshape(-1).copy()).to(device)
        typed = self.flat.view(types.get(array.element, bits[size]))
        self.view = typed.as_strided(array.tensor.shape, array.tensor.strides)

    def read_back(self):
        values = self.flat.cpu().numpy().view(self.array.storage.dtype)
        self.array.storage[...] = values.reshape(self.array.storage.shape)


def run(torch, name, target, plan, device):
    """What is wrong."""
    import attn
    from emulate import Scalar
    from emulated_case import judge
    from mask_case import MaskInputs

    mask = masks.Mask(name)
    artifact = attn.compile(mask.text, target=target, plan=plan)
    queries, keys = mask.lengths(LENGTHS, zlib.crc32(name.encode()))
    inputs = MaskInputs(name, queries, keys, seed=5)
    given = [argument if isinstance(argument, Scalar) else Storage(torch, argument, device)
             for argument in inputs.arguments()]
    artifact.launch(*(one.value if isinstance(one, Scalar) else one.view for one in given))
    if device == "cuda":
        torch.cuda.synchronize()
    for result in given[-2:]:
        result.read_back()
    return judge(inputs.case, inputs, complete=True)


def check(torch, name, options):
    from mask_case import PLANS

    wrong = []
    for target in options.targets.split(","):
        for plan in (None, PLANS[target]):
            failures = run(torch, name, target, plan, options.device)
            wrong += [f"{target}, {plan or 'default plan'}: {failure}" for failure in failures]
    return Verdict("; ".join(wrong), not wrong)


if __name__ == "__main__":
    chosen = arguments()
    sys.exit(case_pool.main(chosen, case_pool.chosen(chosen, masks.names()), check, WHAT))
