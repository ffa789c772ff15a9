#!/usr/bin/env python3
#===----------------------------------------------------------------------===#
#
# Part of attn, an attention compiler.
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===----------------------------------------------------------------------===#
"""Captured maps of blocks of several sizes: the plan that the compiler takes beside
tiles of other sizes, FlexAttention, and other libraries.

    block_maps.py --lib build/lib/libattn.so --json block-maps.json --commit $(git rev-parse HEAD)
    block_maps.py --lib ... --dims 64 --blocks 64x64 --tiles 128x128x8x2,64x64x4x4
                  block_q x block_k x warps x stages
    block_maps.py --lib ... --flex --old before/libattn.so
    block_maps.py --lib ... --backward --tiles 128x64x8x2        the gradients

A map shows some of the blocks of queries and keys, drawn at random, and those on the
diagonal: map[i // queries, j // keys] != 0; with --moved n, map[(i + n) // queries,
(j + n) // keys] with n captured. What the contestants compute is compared, in
one process they take turns in random order, L2 is overwritten before each launch, and a
figure is the median of CUDA-event times.
"""

import argparse
import pathlib
import random
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
sys.path.insert(0, str(HERE.parents[2] / "python"))

import results  # noqa: E402
from bench import environment, numbers  # noqa: E402
from compiling import Compiler  # noqa: E402
from gpu import SKIP, find_torch, plan_of, plan_of_tiles  # noqa: E402
from turns import flush_buffer, medians  # noqa: E402
from variant_table import Variant  # noqa: E402
from variants import HIDDEN, prepare_peer  # noqa: E402

WHAT = "Maps of blocks by the compiler's plan, by tiles of other sizes, and by FlexAttention"
TOLERANCE = 0.05  # of the largest value, between two plans


def parse_arguments():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--lib", required=True)
    parser.add_argument("--target", default="sm_90a")
    parser.add_argument("--dims", default="64,96,128,256")
    parser.add_argument("--blocks", default="128x128,128x64,64x128,64x64,32x32", help="queries x keys")
    parser.add_argument("--shown", default="0.02,0.15", help="parts of the blocks")
    parser.add_argument("--tiles", default="", help="plans that compete, as 128x128x8x2")
    parser.add_argument("--old", default="", help="libraries that compete, by comma")
    parser.add_argument("--flex", action="store_true", help="FlexAttention competes; forward only")
    parser.add_argument("--moved", type=int, default=0, help="positions by which blocks are moved")
    parser.add_argument("--backward", action="store_true", help="the gradients, not the forward")
    parser.add_argument("--batch", type=int, default=1)
    parser.add_argument("--length", type=int, default=8192)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--warmup", type=int, default=2)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json")
    parser.add_argument("--commit", default="")
    options = parser.parse_args()
    options.element, options.gqa, options.logits, options.hot = "bf16", 1, 1.0, False
    options.hidden = HIDDEN
    return options


def draw_map(torch, rng, length, queries, keys, shown):
    rows = [[int(rng.random() < shown or i * queries // keys == j) for j in range(-(-length // keys))]
            for i in range(-(-length // queries))]
    return torch.tensor(rows, device="cuda", dtype=torch.int32)


def make_program(dim, queries, keys, moved):
    import attn

    captures = [("map", "tensor<?x?xi32>")]
    if not moved:
        return attn.attention(
            "bf16", dim, captures=captures,
            mask=lambda p: p.map[p.i // queries, p.j // keys] != 0,
        )
    return attn.attention(
        "bf16", dim, captures=[*captures, ("n", "i32")],
        mask=lambda p: p.map[(p.i + p.n) // queries, (p.j + p.n) // keys] != 0,
    )


class Case:
    """Tensors of one case, and what computes on them."""

    def __init__(self, options, torch, rng, dim, blocks, shown):
        self.options, self.torch, self.dim = options, torch, dim
        self.queries, self.keys = (int(size) for size in blocks.split("x"))
        self.heads = HIDDEN // dim
        self.text = make_program(dim, self.queries, self.keys, options.moved)
        self.name = f"d={dim} {blocks} {shown}"
        self.row = {"d": dim, "blocks": blocks, "shown": shown, "contestants": {}}
        self.contestants, self.expected = {}, None
        self.qkv = [self.make() for _ in range(3)]
        self.map = draw_map(
            torch, rng, options.length + options.moved, self.queries, self.keys, shown
        )
        captures = [self.map, options.moved] if options.moved else [self.map]
        self.o = self.make()
        lse = torch.empty(options.batch, self.heads, options.length, device="cuda")
        self.arguments = [*self.qkv, *captures, self.o, lse]
        self.found = self.o
        if options.backward:
            import attn

            attn.compile(self.text, options.target).on_device().launch(*self.arguments)
            d_q, d_k, d_v = (self.make() for _ in range(3))
            self.arguments += [self.make(), d_q, d_k, d_v]
            self.found = d_k

    def make(self):
        sizes = (self.options.batch, self.options.length, self.heads, self.dim)
        return self.torch.randn(sizes, device="cuda", dtype=self.torch.bfloat16).transpose(1, 2)

    def compare(self, name, value):
        value = value.float()
        self.expected = value.clone() if self.expected is None else self.expected
        worst = (value - self.expected).abs().nan_to_num(float("inf")).max().item()
        if worst > TOLERANCE * max(1.0, self.expected.abs().max().item()):
            raise SystemExit(f"{self.name} {name}: off by {worst}")

    def add_kernel(self, name, compile):
        """compile() gives an artifact."""
        import attn

        try:
            kernel = compile().on_device()
            prepared = kernel.prepare(*self.arguments)
        except attn.AttnError as error:
            self.row["contestants"][name] = {"error": str(error)}
            print(f"{self.name} {name}: {error}", flush=True)
            return
        stream = self.torch.cuda.current_stream().cuda_stream
        self.found.fill_(float("nan"))
        kernel.launch_prepared(prepared, stream)
        self.torch.cuda.synchronize()
        self.compare(name, self.found)
        self.row["contestants"][name] = {"plan": plan_of(kernel, *self.arguments)}
        self.contestants[name] = lambda: kernel.launch_prepared(prepared, stream)

    def add_flex(self):
        map, queries, keys, n = self.map, self.queries, self.keys, self.options.moved

        def mask(b, h, i, j):
            return map[(i + n) // queries, (j + n) // keys] != 0

        variant = Variant({}, flex=lambda torch: (None, mask))
        try:
            run, _ = prepare_peer(self.torch, variant, *self.qkv)
            value = run()
        except Exception as error:  # no kernel fits
            self.row["contestants"]["flex"] = {"error": str(error)[:300]}
            print(f"{self.name} flex: {str(error)[:300]}", flush=True)
            return
        self.compare("flex", value)
        self.row["contestants"]["flex"] = {}
        self.contestants["flex"] = run

    def time(self, flush, rng):
        times = medians(self.options, self.torch, flush, rng, self.contestants)
        for name, ms in times.items():
            entry = self.row["contestants"][name]
            entry["ms"] = round(ms, 4)
            # How many times as fast as the compiler's plan.
            entry["of_default"] = round(times.get("default", ms) / ms, 3)
            print(f"{self.name:<22} {name:<14} {ms:8.4f} ms  {entry['of_default']:.3f} of the default",
                  flush=True)


def run_case(options, torch, flush, rng, directory, dim, blocks, shown):
    import attn

    case = Case(options, torch, rng, dim, blocks, shown)
    for name in ["default", *filter(None, options.tiles.split(","))]:
        plan = "" if name == "default" else plan_of_tiles(options.target, name)
        if options.target != "sm_90a":
            plan = plan.replace(", scheduler = auto", "")
        case.add_kernel(name, lambda: attn.compile(
            case.text, options.target, plan, backward=options.backward))
    for library in filter(None, options.old.split(",")):
        name = pathlib.Path(library).stem
        compiler = Compiler(library, directory, options.target, backward=options.backward)
        _, error = compiler.compile(name, case.text).result()
        if error:
            raise SystemExit(f"{case.name} {name}: {error}")
        path = directory / f"{name}.attn"
        case.add_kernel(name, lambda: attn.Artifact.load(path.read_bytes()))
    if options.flex:
        case.add_flex()
    case.time(flush, rng)
    return case.row


def main():
    options = parse_arguments()
    torch = find_torch(options.target)
    if not torch:
        return SKIP
    import attn

    attn.use_library(options.lib)
    torch.manual_seed(options.seed)
    rng = random.Random(options.seed)
    flush = flush_buffer(torch)
    with tempfile.TemporaryDirectory() as directory:
        rows = [
            run_case(options, torch, flush, rng, pathlib.Path(directory), dim, blocks, shown)
            for dim in numbers(options.dims)
            for blocks in options.blocks.split(",")
            for shown in map(float, options.shown.split(","))
        ]
    if options.json:
        tokens = f"{options.length} tokens, batch {options.batch}, hidden {HIDDEN}"
        found = dict(environment(options, torch), protocol=f"{tokens}, L2 overwritten, medians")
        results.write(options.json, results.contest(WHAT, found, rows))
    return 0


if __name__ == "__main__":
    sys.exit(main())
