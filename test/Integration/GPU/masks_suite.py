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

Inputs, their places in memory (with red zones) and the judgement are those of
test/Emulator; only the launch differs. Plans: the default and a small one.
"""

import argparse
import concurrent.futures
import pathlib
import sys
import zlib

import results
from gpu import SKIP, find_torch

ROOT = pathlib.Path(__file__).resolve().parents[3]
for place in ("python", "test/Emulator", "test/Masks", "test/Integration/GPU"):
    sys.path.insert(0, str(ROOT / place))

WHAT = "Every program of test/Masks on the GPU against NumPy in float64; two plans each"
LENGTHS = [(200, 333), (333, 200), (128, 256), (1, 500), (517, 517), (300, 65)]


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--lib", required=True)
    parser.add_argument("--targets", default="sm_80,sm_90a")
    parser.add_argument("--only", default="", help="names, by comma")
    parser.add_argument("--jobs", type=int, default=14)
    parser.add_argument("--json", help="file for the summary, and what failed")
    parser.add_argument("--commit", default="", help="recorded in the JSON")
    options = parser.parse_args()
    torch = find_torch()
    if torch is None:
        return SKIP
    import attn
    import masks

    attn.use_library(str(pathlib.Path(options.lib).resolve()))
    from emulate import Scalar
    from emulated_case import judge
    from mask_case import PLANS, MaskInputs, numpy_view

    names = options.only.split(",") if options.only else masks.names()
    wanted = [
        (name, target, plan)
        for name in names
        for target in options.targets.split(",")
        for plan in (None, PLANS[target])
    ]

    def prepare(name):
        queries, keys = LENGTHS[zlib.crc32(name.encode()) % len(LENGTHS)]
        return MaskInputs(name, queries, keys, seed=5)

    def compile(item):
        name, target, plan = item
        return attn.compile(masks.Mask(name).text, target=target, plan=plan)

    bits = {1: torch.int8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
    floats = {"f16": torch.float16, "bf16": torch.bfloat16, "f32": torch.float32, "i1": torch.bool}

    def to_gpu(array):
        """(the whole storage, red zones too; the view of it)"""
        size = array.storage.itemsize
        flat = torch.from_numpy(array.storage.view(f"i{size}").reshape(-1).copy()).cuda()
        view = flat.view(floats.get(array.element, bits[size]))
        return flat, view.as_strided(array.tensor.shape, array.tensor.strides)

    def from_gpu(array, flat):
        values = flat.cpu().numpy().view(array.storage.dtype)
        array.storage[...] = values.reshape(array.storage.shape)

    failed = []
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        artifacts = pool.map(compile, wanted)
        for (name, target, plan), artifact in zip(wanted, artifacts):
            inputs = prepare(name)
            values, keep = [], []
            for array in inputs.arguments():
                if isinstance(array, Scalar):
                    values.append(array.value)
                    continue
                flat, tensor = to_gpu(array)
                values.append(tensor)
                keep.append((array, flat))
            try:
                artifact.launch(*values)
                torch.cuda.synchronize()
                for array, flat in keep[-2:]:
                    from_gpu(array, flat)
                failures = judge(inputs.case, inputs, complete=True)
            except attn.AttnError as error:
                failures = [str(error)]
            if failures:
                failed.append({"program": name, "target": target,
                               "plan": plan or artifact.manifest["variants"][0]["plan"], "failures": failures})
                print(f"FAIL {name} {target} {plan or 'default plan'}: {failures}", flush=True)
    print(f"{len(wanted) - len(failed)} of {len(wanted)} runs passed")
    if options.json:
        results.write(options.json, {
            "what": WHAT,
            "command": results.command(),
            "environment": {"gpu": torch.cuda.get_device_name(), "commit": options.commit},
            "summary": {"programs": len(names), "runs": len(wanted),
                        "passed": len(wanted) - len(failed)},
            "failures": failed,
        })
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
