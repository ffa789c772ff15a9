#===----------------------------------------------------------------------===#
#
# Part of attn, an attention compiler.
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===----------------------------------------------------------------------===#
"""A matrix of cases by name: which of them are drawn, and run (case_pool.py). For
flex_matrix.py and flash_matrix.py."""

import argparse
import functools
import pathlib
import random
import sys
import warnings
import zlib

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "GPU"))
sys.path.insert(0, str(HERE.parents[2] / "python"))

import case_pool  # noqa: E402

DTYPES = ("float32", "bfloat16", "float16")


def parse_arguments(doc, count):
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    case_pool.add_arguments(parser, lib_required=False, device="cpu")
    parser.add_argument("--count", type=int, default=count, help="cases, of all that there are; 0: all")
    parser.add_argument("--seed", type=int, default=1, help="which cases are drawn, and their tensors")
    parser.add_argument("--lengthen", type=int, default=1, help="lengths are so many times as long")
    parser.add_argument("--list", action="store_true", help="the names of the cases drawn, nothing else")
    return case_pool.parse(parser)


def seed_of(name, seed):
    return zlib.crc32(f"{seed} {name}".encode())


def drawn(options, cases, first_of):
    """The names to run: all kinds (`first_of` a name) come once before one comes twice."""
    names = case_pool.chosen(options, cases)
    random.Random(options.seed).shuffle(names)
    seen, order = {}, {}
    for name in names:
        kind = first_of(name)
        order[name] = seen[kind] = seen.get(kind, 0) + 1
    names.sort(key=order.get)
    return names[:options.count or None]


def _verdict(check, torch, name, options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        wrong = check(torch, name, options)
    return case_pool.Verdict("; ".join(wrong), not wrong)


def main(options, cases, check, first_of):
    """Runs check(torch, name, options), which returns a list of what is wrong; the exit
    code of case_pool.main."""
    names = drawn(options, cases, first_of)
    if options.list:
        print("\n".join(names))
        return 0
    print(f"{len(names)} drawn of {len(cases)}", flush=True)
    return case_pool.main(options, names, functools.partial(_verdict, check), pathlib.Path(sys.argv[0]).stem)
