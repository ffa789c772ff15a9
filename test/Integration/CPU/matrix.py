#===----------------------------------------------------------------------===#
#
# Part of attn, an attention compiler.
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===----------------------------------------------------------------------===#
"""A matrix of cases by name: which of them are drawn, run in threads until the time is
over, and summed up. For flex_matrix.py and flash_matrix.py."""

import argparse
import concurrent.futures
import pathlib
import random
import sys
import time
import traceback
import warnings
import zlib

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "GPU"))
sys.path.insert(0, str(HERE.parents[2] / "python"))

import results  # noqa: E402
from gpu import SKIP, find_torch  # noqa: E402

DTYPES = ("float32", "bfloat16", "float16")


def parse_arguments(doc, count):
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lib", help="path of libattn.so")
    parser.add_argument("--device", default="cpu", choices=("cpu", "cuda"))
    parser.add_argument("--count", type=int, default=count, help="cases, of all that there are; 0: all")
    parser.add_argument("--only", default="", help="parts of names, by comma: cases that have one of them")
    parser.add_argument("--seed", type=int, default=1, help="which cases are drawn, and their tensors")
    parser.add_argument("--jobs", type=int, default=1, help="threads")
    parser.add_argument("--time-limit", type=float, default=1e9, help="seconds after which no case is begun")
    parser.add_argument("--lengthen", type=int, default=1, help="lengths are so many times as long")
    parser.add_argument("--list", action="store_true", help="the names of the cases drawn, nothing else")
    parser.add_argument("--json")
    parser.add_argument("--commit", default="")
    return parser.parse_args()


def seed_of(name, seed):
    return zlib.crc32(f"{seed} {name}".encode())


def drawn(options, cases, first_of):
    """The names to run: all kinds (`first_of` a name) come once before one comes twice."""
    names = [name for name in cases if any(part in name for part in options.only.split(","))]
    random.Random(options.seed).shuffle(names)
    seen, order = {}, {}
    for name in names:
        kind = first_of(name)
        order[name] = seen[kind] = seen.get(kind, 0) + 1
    names.sort(key=order.get)
    return names[:options.count or None]


def _attempt(torch, check, name, options):
    """(words, or "" where all is right; seconds)"""
    start = time.time()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = "; ".join(check(torch, name, options))
    except Exception:
        found = traceback.format_exc()
    return found, time.time() - start


def main(options, cases, check, first_of):
    """Runs check(torch, name, options), which returns a list of what is wrong; the exit
    code: 0: nothing, 1: something, or no case, 77: no GPU."""
    torch = find_torch("cpu" if options.device == "cpu" else "sm_80")
    if torch is None:
        return SKIP
    names = drawn(options, cases, first_of)
    if options.list:
        print("\n".join(names))
        return 0
    import attn.torch

    if options.lib:
        attn.use_library(options.lib)
    attn.torch.kernels.PATIENCE = 60.0
    torch.backends.cuda.matmul.allow_tf32 = False
    start, failed, done = time.time(), [], 0
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        waiting, rest = {}, list(reversed(names))
        while rest or waiting:
            while rest and len(waiting) < options.jobs and time.time() - start < options.time_limit:
                name = rest.pop()
                waiting[pool.submit(_attempt, torch, check, name, options)] = name
            if not waiting:
                break
            for one in concurrent.futures.wait(waiting, return_when="FIRST_COMPLETED").done:
                name, (found, seconds) = waiting.pop(one), one.result()
                done += 1
                if found:
                    failed.append({"case": name, "wrong": found})
                    print(f"{name}: FAILED: {found}", flush=True)
    print(f"{done} checked of {len(names)} drawn of {len(cases)}, {len(failed)} failed, {time.time() - start:.0f} s")
    for one in failed:
        print(f"  {one['case']}: {one['wrong'].strip().splitlines()[-1][:160]}")
    if options.json:
        device = torch.cuda.get_device_name() if options.device == "cuda" else "cpu"
        results.write(options.json, {
            "what": pathlib.Path(sys.argv[0]).stem, "command": results.command(),
            "environment": {"device": device, "torch": torch.__version__, "commit": options.commit,
                            "date": time.strftime("%Y-%m-%d")},
            "summary": {"checked": done, "drawn": len(names), "cases": len(cases), "failed": len(failed)},
            "failed": failed,
        })
    return 1 if failed or not done else 0
