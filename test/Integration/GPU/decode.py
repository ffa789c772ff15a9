#!/usr/bin/env python3
#===----------------------------------------------------------------------===#
#
# Part of attn, an attention compiler.
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===----------------------------------------------------------------------===#
"""Few queries with many keys: plans that share the keys out (split_keys) and have rows of
several heads in a tile (packed_heads), checked against float64 and timed beside PyTorch's
flash (fa2) and cuDNN backends.

    decode.py --lib build/lib/libattn.so                  what is picked, and a sweep of tiles and parts
    decode.py --lib ... --shapes 1x32/8x1x16384 --dims 128 --tiles 64x128x4x2/8@grid,64x64x4x4/16*4@grid
    decode.py --lib ... --json decode.json --commit $(git rev-parse HEAD) --time-limit 300

"chosen" is the plan that attn.torch takes for such a call, "sm_90a" the one of a kernel for
all sizes. A shape is batch x heads/key heads x queries x keys; nothing is masked. Tiles are
block_q x block_k x warps x stages / parts * heads @ scheduler. Each contestant's call is recorded
in a CUDA graph, as in short.py, whose protocol this is.
Exit code 0: every result is right; 1: some are wrong or failed; 77: no GPU.
"""

import argparse
import copy
import pathlib
import random
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
sys.path.insert(0, str(HERE.parents[2] / "python"))

import bench  # noqa: E402
import results  # noqa: E402
import short  # noqa: E402
from gpu import SKIP, find_torch, plan_of_tiles  # noqa: E402

WHAT = "Microseconds of the GPU for few queries with many keys, beside PyTorch's flash (fa2) and cuDNN backends"
SHAPES = "1x32/8x1x16384,1x32/32x1x16384,1x32/8x16x16384,1x32/8x64x16384,4x32/8x1x8192,1x8/1x1x65536,1x32/8x1x1000"
SWEEP = [f"{tiles}{parts}{heads}@grid" for tiles in ("64x128x4x2", "64x64x4x4")
         for parts in ("", "/8", "/16", "/32", "/64") for heads in ("", "*4", "*8")]
# Of o, in units of its largest element: two roundings to bf16. Of lse, absolute.
MOST_WRONG, MOST_WRONG_LSE = 2.0**-7, 1e-3


def parse_shape(text):
    batch, heads, queries, keys = text.split("x")
    heads, _, key_heads = heads.partition("/")
    return tuple(int(part) for part in (batch, heads, key_heads or heads, queries, keys))


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lib", required=True)
    parser.add_argument("--shapes", default=SHAPES, help="BATCHxHEADS/KEYHEADSxQUERIESxKEYS, with commas between them")
    parser.add_argument("--dims", default="64,128")
    parser.add_argument("--target", default="sm_90a")
    parser.add_argument("--tiles", default=",".join(SWEEP), help="plans that compete beside the picked one")
    parser.add_argument("--time-limit", type=float, default=1e9, help="seconds, of measuring")
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--json")
    parser.add_argument("--commit", default="")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    try:
        options.shapes = [parse_shape(text) for text in options.shapes.split(",")]
    except ValueError:
        parser.error("--shapes: wanted BATCHxHEADS/KEYHEADSxQUERIESxKEYS, like 1x32/8x1x16384, "
                     f"got {options.shapes!r}")
    plans = ["", *(plan_of_tiles(options.target, text) for text in options.tiles.split(",") if text)]
    options.plans = {str(dim): plans for dim in bench.numbers(options.dims)}
    # What bench.py asks for besides.
    vars(options).update(element="bf16", targets=options.target, gqa=1, logits=1.0, causal="0", backward=False,
                         static=False, f32_products="", peers=",".join(short.PEERS), hidden=0, hot=False,
                         old=None, old_python="")
    return options


class Decode(bench.Shape):
    """As there, with lengths of queries and of keys, and float64 to compare with."""

    def __init__(self, torch, dim, sizes):
        batch, heads, key_heads, queries, keys = sizes

        def make(heads, length):
            return torch.randn(batch, length, heads, dim, device="cuda").to(torch.bfloat16).transpose(1, 2)

        self.q, self.o = make(heads, queries), make(heads, queries)
        self.k, self.v = make(key_heads, keys), make(key_heads, keys)
        self.lse = torch.empty(batch, heads, queries, device="cuda")
        self.values = self.q, self.k, self.v, self.o, self.lse
        self.causal = False
        self.contestants, self.facts, self.keep = {}, {}, []
        q = self.q.double().unflatten(1, (key_heads, heads // key_heads))
        scores = q @ self.k.double().unsqueeze(2).mT / dim**0.5
        self.exact = (scores.softmax(-1) @ self.v.double().unsqueeze(2)).flatten(1, 2)
        self.exact_lse = scores.logsumexp(-1).flatten(1, 2)

    def poison(self):
        self.o.fill_(float("nan"))
        self.lse.fill_(float("nan"))

    def difference(self):
        """Above 1, what Shape.add_kernel refuses, where something is wrong."""
        wrong = float((self.o.double() - self.exact).abs().max() / self.exact.abs().max())
        wrong_lse = float((self.lse.double() - self.exact_lse).abs().max())
        return wrong if wrong <= MOST_WRONG and wrong_lse <= MOST_WRONG_LSE else 1.0 + wrong + wrong_lse


def compile_chosen(options, torch, path, dim, sizes):
    """What attn.torch compiles for such a call, into a file; an error, or ""."""
    import attn

    batch, heads, _, queries, keys = sizes
    known = dict(query_length=queries, key_length=keys, batch_heads=batch * heads,
                 multiprocessors=torch.cuda.get_device_properties(0).multi_processor_count)
    try:
        path.write_bytes(attn.compile(attn.attention(options.element, dim), target=options.target, cache=None,
                                      ptxas="", sizes=known).bytes)
    except attn.AttnError as error:
        return str(error)
    return ""


def run_shape(options, torch, rng, kernels, directory, dim, sizes):
    batch, heads, key_heads, queries, keys = sizes
    options = copy.copy(options)
    options.gqa = heads // key_heads
    shape = Decode(torch, dim, sizes)
    for peer in short.PEERS:
        shape.add_peer(options, torch, peer)
    for label, plan, path, error, _ in kernels[str(dim), 0, 0]:
        shape.add_kernel(options, torch, label, plan, path, error)
    path = directory / "chosen.attn"
    shape.add_kernel(options, torch, "chosen", "", path, compile_chosen(options, torch, path, dim, sizes))
    for name, microseconds in short.measure(options, torch, rng, shape).items():
        shape.facts.setdefault(name, {})["ms"] = round(microseconds / 1000, 5)
    name = f"{batch}x{heads}/{key_heads}x{queries}x{keys}"
    print(f"d={dim} {name}:")
    for label, facts in sorted(shape.facts.items(), key=lambda item: item[1].get("ms", 1e9)):
        figure = f"{1000 * facts['ms']:9.2f} us" if "ms" in facts else "        -   "
        print(f"  {figure}  {label:12} {facts.get('error') or facts.get('plan', '')}", flush=True)
    row = {"d": dim, "b": batch, "h": heads, "h_key": key_heads, "s_query": queries, "s": keys,
           "contestants": shape.facts}
    failed = [label for label, facts in shape.facts.items() if label not in short.PEERS and "error" in facts]
    return row, failed


def main():
    options = parse_arguments()
    options.lib = str(pathlib.Path(options.lib).resolve())
    import attn

    attn.use_library(options.lib)
    torch = find_torch(options.target)
    if torch is None:
        return SKIP
    torch.manual_seed(options.seed)
    rng, rows, failures = random.Random(options.seed), [], 0
    with tempfile.TemporaryDirectory() as directory:
        kernels = bench.compile_kernels(options, pathlib.Path(directory))
        deadline = time.monotonic() + options.time_limit
        shapes = [(dim, sizes) for dim in bench.numbers(options.dims) for sizes in options.shapes]
        for dim, sizes in shapes:
            if time.monotonic() > deadline:
                break
            with torch.cuda.stream(torch.cuda.Stream()):
                row, failed = run_shape(options, torch, rng, kernels, pathlib.Path(directory), dim, sizes)
            rows.append(row)
            failures += len(failed)
    print(f"{len(rows)} of {len(shapes)} shapes, {failures} wrong or failed")
    if options.json:
        found = bench.environment(options, torch) | {
            "protocol": f"graphs of {short.CALLS} calls, medians of {options.rounds}"}
        results.write(options.json, results.contest(WHAT, found, rows))
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
