#!/usr/bin/env python3
#===----------------------------------------------------------------------===#
#
# Part of attn, an attention compiler.
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===----------------------------------------------------------------------===#
"""Gradients through attn.torch by two programs and by one, beside the form that a call gets and
the fused kernels of PyTorch's, for launches of every size: few tiles, few queries with many keys.

    gradient_sizes.py --lib build/lib/libattn.so --dims 64,128
    gradient_sizes.py --lib ... --dims 80,96 --sizes 1x8x64x8192,2x16x1024x1024 --json sizes.json

A size is BATCHxHEADSxQUERIESxKEYS; one with as many queries as keys is timed with a causal mask,
too. Two programs add up in a fixed order, one in any (attn/torch/forms.py). A figure is the GPU's
time of the gradients alone, in microseconds, a median: the host is ahead and L2 overwritten.
Exit code 0: each call gets the faster form, or one within --tolerance of it, and gradients are
alike; 1: some do not, or differ; 77: no GPU.
"""

import argparse
import concurrent.futures
import pathlib
import random
import sys
import time
import warnings

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
sys.path.insert(0, str(HERE.parents[2] / "python"))

import results  # noqa: E402
from gpu import SKIP, find_torch  # noqa: E402
from shapes import AHEAD, ALIKE, PEERS, difference  # noqa: E402
from turns import flush_buffer  # noqa: E402

WHAT = "Microseconds of gradients by two programs and by one, of the form that a call gets, and of PyTorch's kernels"
SIZES = ("1x8x64x8192,1x8x300x2000,2x16x64x4096,1x16x128x1024,4x16x77x1024,4x16x1024x77,4x16x256x256,8x16x128x128,"
         "16x16x197x197,1x8x512x512,1x16x512x512,8x16x512x512,1x8x1024x1024,2x8x1024x1024,4x16x1024x1024,"
         "1x16x2048x2048,4x16x2048x2048,1x4x4096x4096,2x16x4096x4096,1x8x8192x8192")
FORMS = {"two": True, "one": False, "call": None}  # deterministic= of a call


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lib", required=True)
    parser.add_argument("--sizes", default=SIZES, help="BATCHxHEADSxQUERIESxKEYS, with commas")
    parser.add_argument("--dims", default="64,128", help="head dimensions")
    parser.add_argument("--element", default="bf16", choices=sorted(ALIKE))
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--jobs", type=int, default=8, help="programs compiled at once")
    parser.add_argument("--tolerance", type=float, default=0.05, help="what the choice of a form may lose")
    parser.add_argument("--time-limit", type=float, default=1e9, help="seconds in all")
    parser.add_argument("--json")
    parser.add_argument("--commit", default="")
    options = parser.parse_args()
    try:
        options.sizes = [tuple(map(int, size.split("x"))) for size in options.sizes.split(",")]
        if wrong := next((size for size in options.sizes if len(size) != 4), None):
            raise ValueError(f"got {len(wrong)} numbers")
    except ValueError as error:
        parser.error(f"--sizes: wanted sizes as 1x8x64x8192, {error}")
    options.dims = [int(dim) for dim in options.dims.split(",")]
    return options


def list_cases(options):
    """(d, causal, batch, heads, queries, keys)"""
    return [(dim, causal, *size) for dim in options.dims for size in options.sizes
            for causal in ((False, True) if size[2] == size[3] else (False,))]


def always_one(forms):
    """Calls with deterministic=False get sums in any order whatever their sizes."""
    chosen = forms.chosen

    def replaced(program, *rest):
        facts = forms._facts(program)
        return facts.any_order if facts and not facts.is_switched else chosen(program, *rest)

    forms.chosen = replaced


class Gradients:
    """The tensors of a case; its gradients by a function."""

    def __init__(self, torch, options, case):
        self.torch, (dim, self.causal, batch, heads, queries, keys) = torch, case
        kind = {"bf16": torch.bfloat16, "f16": torch.float16, "f32": torch.float32}[options.element]
        self.inputs = [torch.randn(batch, heads, length, dim, device="cuda", dtype=kind, requires_grad=True)
                       for length in (queries, keys, keys)]
        self.grown = torch.randn_like(self.inputs[0])

    def of(self, attention):
        """A function that computes them, of what it kept from the forward."""
        o = attention(*self.inputs, self.causal)
        return lambda: self.torch.autograd.grad(o, self.inputs, self.grown, retain_graph=True)


def contestants(torch, attn_torch):
    """{name: function of q, k, v and causal}"""
    from torch.nn.attention import SDPBackend, sdpa_kernel

    def form(deterministic):
        return lambda q, k, v, causal: attn_torch.attention(q, k, v, causal=causal, deterministic=deterministic)

    def peer(backend):
        def run(q, k, v, causal):
            with sdpa_kernel(getattr(SDPBackend, backend)):
                return torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=causal)
        return run

    return {**{name: form(value) for name, value in FORMS.items()}, **{name: peer(value) for name, value in PEERS.items()}}


def compile_all(torch, options, cases, functions):
    """Computes gradients of each form once, several at a time; {(case, name): what is wrong}."""
    def call(wanted):
        case, name = wanted
        try:
            Gradients(torch, options, case).of(functions[name])()
            torch.cuda.synchronize()
        except Exception as error:  # noqa: BLE001: it is said with the case
            return str(error)[:300]

    wanted = [(case, name) for case in cases for name in FORMS]
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        return {key: wrong for key, wrong in zip(wanted, pool.map(call, wanted)) if wrong}


def measure(torch, options, rng, flush, case, functions, wrong):
    """{contestant: {"us": …} or {"error": …}}"""
    gradients, facts, runs, values = Gradients(torch, options, case), {}, {}, {}
    for name, function in functions.items():
        if (case, name) in wrong:
            facts[name] = {"error": wrong[case, name]}
            continue
        try:
            run = gradients.of(function)
            values[name], runs[name], facts[name] = run(), run, {}
        except RuntimeError as error:
            if name in FORMS:
                facts[name] = {"error": str(error)[:300]}
    first = next((values[name] for name in PEERS if name in values), None)
    for name in FORMS:
        if first and name in values and (much := difference(values[name], first)) > ALIKE[options.element]:
            facts[name]["error"] = f"differs by {much:.2g} of the largest number"
    events = {name: [] for name in runs}
    for _ in range(options.rounds):
        for name in rng.sample(sorted(runs), len(runs)):
            start, stop = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            flush.zero_()
            torch.cuda._sleep(AHEAD)
            start.record()
            runs[name]()
            stop.record()
            events[name].append((start, stop))
    torch.cuda.synchronize()
    for name, pairs in events.items():
        times = sorted(start.elapsed_time(stop) for start, stop in pairs)
        facts[name]["us"] = round(1000 * times[len(times) // 2], 1)
    return facts


def flat(row, options):
    """A case, its figures, and what the call's are of the faster form's and of the fastest peer's."""
    times = {name: entry["us"] for name, entry in row["contestants"].items() if "us" in entry and "error" not in entry}
    found = {**results.case_of(row), **times}
    if {"two", "one", "call"} <= set(times):
        found["of_forms"] = round(min(times["two"], times["one"]) / times["call"], 3)
    peers = [times[name] for name in PEERS if name in times]
    if peers and "call" in times:
        found["of_fastest"] = round(min(peers) / times["call"], 3)
    return found


def main():
    options = parse_arguments()
    import attn

    attn.use_library(str(pathlib.Path(options.lib).resolve()))
    torch = find_torch()
    if torch is None:
        return SKIP
    import attn.torch

    warnings.filterwarnings("ignore", module="torch")
    always_one(attn.torch.forms)
    begun, rng, flush = time.monotonic(), random.Random(1), flush_buffer(torch)
    cases, functions, rows = list_cases(options), contestants(torch, attn.torch), []
    wrong = compile_all(torch, options, cases, functions)
    print(f"{len(cases)} cases compiled in {time.monotonic() - begun:.0f} s", flush=True)
    for case in cases:
        if time.monotonic() - begun > options.time_limit:
            break
        names = dict(zip(("d", "causal", "b", "h", "sq", "sk"), case))
        row = {**names, "contestants": measure(torch, options, rng, flush, case, functions, wrong)}
        rows.append(row)
        figures = flat(row, options)
        cells = [f"{name} {value}" for name, value in figures.items() if name not in names]
        errors = [f"{name}: {entry['error']}" for name, entry in row["contestants"].items() if "error" in entry]
        print(f"d={case[0]:<4}{'causal' if case[1] else 'full  '} {'x'.join(map(str, case[2:])):<16} "
              + "  ".join(cells + errors), flush=True)
    table, failed = [flat(row, options) for row in rows], results.failures(rows)
    lost = [row for row in table if row.get("of_forms", 1) < 1 - options.tolerance]
    print(f"{len(rows)} of {len(cases)} cases, {len(failed)} failures, {len(lost)} where a call gets the slower form")
    if options.json:
        machine = {"gpu": torch.cuda.get_device_name(), "torch": torch.__version__, "commit": options.commit,
                   "cudnn": torch.backends.cudnn.version(), "element": options.element,
                   "protocol": f"medians of {options.rounds}, L2 overwritten"}
        results.write(options.json, {"what": WHAT, "command": results.command(), "environment": machine,
                                     "failures": failed, "cases": results.table(table)})
    return 1 if failed or lost or len(rows) < len(cases) else 0


if __name__ == "__main__":
    sys.exit(main())
