#!/usr/bin/env python3
#===----------------------------------------------------------------------===#
#
# Part of attn, an attention compiler.
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===----------------------------------------------------------------------===#
"""Random shapes and element types, through attn.torch.scaled_dot_product_attention, beside
the fused kernels of PyTorch's: where a size that nobody chose falls off a cliff.

    shapes.py --lib build/lib/libattn.so --count 100 --seed 5
    shapes.py --lib ... --elements f32 --dims 64,128,256 --json shapes.json

Half of the shapes are timed with their gradients, half of those with as many queries as keys
under a causal mask. A figure is the GPU's time of a call, a median: the host is ahead. Results are
compared with the first peer's. PyTorch's memory-efficient kernels have no heads that share
keys: f32 has none here. What has no peer is timed alone.
Exit code 0: no shape is slower than its fastest peer; 1: some are, or differ; 77: no GPU.
"""

import argparse
import concurrent.futures
import pathlib
import random
import statistics
import sys
import time
import warnings

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
sys.path.insert(0, str(HERE.parents[2] / "python"))

import results  # noqa: E402
from gpu import SKIP, find_torch  # noqa: E402
from turns import flush_buffer  # noqa: E402

WHAT = "Random shapes beside the fastest of PyTorch's flash, cuDNN and memory-efficient kernels"
DIMS = "32,40,48,64,64,72,80,96,112,128,128,128,160,192,256"
BATCHES, HEADS = (1, 1, 2, 3, 4, 8, 16, 32), (1, 4, 6, 8, 12, 16, 24, 32, 40)
QUERIES = (1, 3, 16, 64, 77, 100, 128, 197, 256, 300, 512, 577, 777, 1024, 1025, 1500, 2048, 3000, 4096, 8192)
OTHER_KEYS = (77, 128, 256, 300, 1024, 2048, 4096, 5000, 16384)
FEWEST_FOR_GRADIENTS = 64  # queries
MOST_OPERATIONS = {"f32": 6e10}  # of the forward, for a figure in time; 3e11 of others
FEWEST_OPERATIONS, FEWEST_BYTES = 3e8, 2e7  # less is a launch and nothing else
AHEAD = 1_500_000  # clocks that the GPU waits, for the host to be ahead
ALIKE = {"f32": 2e-4, "f16": 2e-2, "bf16": 6e-2}  # of the largest number
PEERS = {"flash": "FLASH_ATTENTION", "cudnn": "CUDNN_ATTENTION", "efficient": "EFFICIENT_ATTENTION"}


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lib", required=True)
    parser.add_argument("--count", type=int, default=100, help="of shapes")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--elements", default="bf16,f16", help="bf16, f16 and f32, with commas")
    parser.add_argument("--dims", default=DIMS, help="head dimensions; one twice is drawn twice as often")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--jobs", type=int, default=8, help="programs compiled at once")
    parser.add_argument("--time-limit", type=float, default=1e9, help="seconds in all")
    parser.add_argument("--json")
    parser.add_argument("--commit", default="")
    options = parser.parse_args()
    options.elements, options.dims = options.elements.split(","), [int(dim) for dim in options.dims.split(",")]
    if unknown := set(options.elements) - set(ALIKE):
        parser.error(f"--elements: wanted bf16, f16 or f32, got {', '.join(sorted(unknown))}")
    return options


def draw(rng, options):
    """A shape: neither so small that a launch is all, nor so large that it takes long."""
    while True:
        element, dim = rng.choice(options.elements), rng.choice(options.dims)
        batch, heads, queries = rng.choice(BATCHES), rng.choice(HEADS), rng.choice(QUERIES)
        keys = rng.choice((queries, queries, queries) + OTHER_KEYS)
        key_heads = heads if element == "f32" else rng.choice([heads] + [n for n in (1, 2, 4, 8) if heads % n == 0])
        is_causal = queries == keys and rng.random() < 0.5
        has_gradients = queries >= FEWEST_FOR_GRADIENTS and rng.random() < 0.5
        operations = 4 * batch * heads * queries * keys * dim * (0.5 if is_causal else 1)
        size = 4 * batch * dim * (heads * queries + key_heads * keys)
        if operations > MOST_OPERATIONS.get(element, 3e11) or (operations < FEWEST_OPERATIONS and size < FEWEST_BYTES):
            continue
        return {"element": element, "d": dim, "b": batch, "h": heads, "kv_heads": key_heads, "sq": queries, "sk": keys,
                "causal": is_causal, "gradients": has_gradients}


class Call:
    """Tensors of a shape, and a call on them."""

    def __init__(self, torch, shape):
        self.torch, self.shape = torch, shape
        kind = {"bf16": torch.bfloat16, "f16": torch.float16, "f32": torch.float32}[shape["element"]]

        def make(heads, length):
            return torch.randn(shape["b"], heads, length, shape["d"], device="cuda", dtype=kind,
                               requires_grad=shape["gradients"])

        keys = shape["kv_heads"], shape["sk"]
        self.inputs = make(shape["h"], shape["sq"]), make(*keys), make(*keys)
        self.grown = torch.randn_like(self.inputs[0]) if shape["gradients"] else None

    def run(self, attention):
        o = attention(*self.inputs, is_causal=self.shape["causal"],
                      enable_gqa=self.shape["h"] != self.shape["kv_heads"])
        return (o, *self.torch.autograd.grad(o, self.inputs, self.grown)) if self.shape["gradients"] else (o,)

    def milliseconds(self, attention, flush, rounds):
        pairs = []
        for _ in range(rounds):
            start, stop = (self.torch.cuda.Event(enable_timing=True) for _ in range(2))
            flush.zero_()
            self.torch.cuda._sleep(AHEAD)
            start.record()
            self.run(attention)
            stop.record()
            pairs.append((start, stop))
        self.torch.cuda.synchronize()
        return statistics.median(start.elapsed_time(stop) for start, stop in pairs)


def difference(got, wanted):
    """The largest one, of the largest number of each tensor."""
    return max(float((a.float() - b.float()).abs().max()) / max(1e-6, float(b.float().abs().max()))
               for a, b in zip(got, wanted))


def compile_all(torch, attention, shapes, jobs):
    """Calls each once, several at a time; {number: what is wrong}."""
    def call(number):
        try:
            Call(torch, shapes[number]).run(attention)
            torch.cuda.synchronize()
        except Exception as error:  # noqa: BLE001: it is said with the shape
            return str(error)[:300]

    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        return {n: wrong for n, wrong in enumerate(pool.map(call, range(len(shapes)))) if wrong}


def measure(options, torch, attention, flush, shape):
    """{contestant: figures}"""
    from torch.nn.attention import SDPBackend, sdpa_kernel

    call, facts, wanted = Call(torch, shape), {}, None
    for peer, backend in PEERS.items():
        sdpa = torch.nn.functional.scaled_dot_product_attention
        try:
            with sdpa_kernel(getattr(SDPBackend, backend)):
                values = call.run(sdpa)
                torch.cuda.synchronize()
                facts[peer] = {"ms": round(call.milliseconds(sdpa, flush, options.rounds), 5)}
            wanted = wanted or values
        except RuntimeError:  # it does not take such a shape
            continue
    values = call.run(attention)
    facts["attn"] = {"ms": round(call.milliseconds(attention, flush, options.rounds), 5)}
    if wanted:
        facts["attn"]["difference"] = difference(values, wanted)
        facts["attn"]["of_fastest"] = round(min(facts[peer]["ms"] for peer in PEERS if peer in facts)
                                            / facts["attn"]["ms"], 3)
    return facts


def flat(row):
    """A shape with the figures of attn and of the fastest peer."""
    facts = dict(row["contestants"])
    ours = facts.pop("attn")
    fastest = min(facts, key=lambda name: facts[name]["ms"], default=None)
    peer = {"fastest": fastest, "fastest_ms": facts[fastest]["ms"]} if fastest else {}
    return {**results.case_of(row), "ms": ours.get("ms"), **peer, "of_fastest": ours.get("of_fastest")}


def summarize(rows):
    """How often and how much attn is faster, with gradients and without."""
    found = []
    for has_gradients in (False, True):
        ratios = [row["contestants"]["attn"]["of_fastest"] for row in rows
                  if row["gradients"] == has_gradients and "of_fastest" in row["contestants"]["attn"]]
        if ratios:
            found.append({"gradients": has_gradients, "shapes": len(ratios), "slower": sum(r < 1 for r in ratios),
                          "geometric_mean": round(statistics.geometric_mean(ratios), 3), "lowest": min(ratios)})
    return found


def describe(shape):
    words = f"{shape['element']} d={shape['d']} {shape['b']} x {shape['h']}/{shape['kv_heads']} heads, "
    words += f"{shape['sq']} x {shape['sk']}{' causal' if shape['causal'] else ''}"
    return words + (", with gradients" if shape["gradients"] else "")


def main():
    options = parse_arguments()
    options.lib = str(pathlib.Path(options.lib).resolve())
    import attn

    attn.use_library(options.lib)
    torch = find_torch()
    if torch is None:
        return SKIP
    import attn.torch

    warnings.filterwarnings("ignore", module="torch")
    begun, rng = time.monotonic(), random.Random(options.seed)
    torch.manual_seed(options.seed)
    attention, flush = attn.torch.scaled_dot_product_attention, flush_buffer(torch)
    shapes = [draw(rng, options) for _ in range(options.count)]
    wrong = compile_all(torch, attention, shapes, options.jobs)
    print(f"{len(shapes)} shapes compiled in {time.monotonic() - begun:.0f} s", flush=True)
    rows = []
    for number, shape in enumerate(shapes):
        if time.monotonic() - begun > options.time_limit:
            break
        facts = {"attn": {"error": wrong[number]}} if number in wrong else measure(options, torch, attention, flush, shape)
        ours = facts["attn"]
        if ours.get("difference", 0) > ALIKE[shape["element"]]:
            ours["error"] = f"differs by {ours['difference']:.2g} of the largest number"
        rows.append({**shape, "contestants": facts})
        figures = "  ".join(f"{name} {1000 * entry['ms']:.1f}" for name, entry in facts.items() if "ms" in entry)
        print(f"{ours.get('of_fastest', '    -')}  {describe(shape)}: {figures}  {ours.get('error', '')}", flush=True)
    if len(rows) < len(shapes):
        print(f"{len(shapes) - len(rows)} shapes not reached in {options.time_limit:g} s")
    if not rows:
        return 1
    ratios = sorted(row["contestants"]["attn"]["of_fastest"] for row in rows
                    if "of_fastest" in row["contestants"]["attn"])
    bad = sum("error" in row["contestants"]["attn"] for row in rows)
    slower = sum(ratio < 1 for ratio in ratios)
    print(f"{len(rows)} shapes, {bad} wrong, {slower} of {len(ratios)} slower than the fastest peer; beside it "
          f"{statistics.geometric_mean(ratios or [1]):.3f} in geometric mean, lowest {min(ratios, default=0):.3f}")
    if options.json:
        machine = {"gpu": torch.cuda.get_device_name(), "torch": torch.__version__, "commit": options.commit,
                   "cudnn": torch.backends.cudnn.version(), "protocol": f"medians of {options.rounds}, L2 overwritten"}
        results.write(options.json, {"what": WHAT, "command": results.command(), "environment": machine,
                                     "summary": results.table(summarize(rows)), "failures": results.failures(rows),
                                     "cases": results.table([flat(row) for row in rows])})
    return 1 if bad or slower or len(rows) < len(shapes) else 0


if __name__ == "__main__":
    sys.exit(main())
