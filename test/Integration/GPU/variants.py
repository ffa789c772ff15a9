#!/usr/bin/env python3
#===----------------------------------------------------------------------===#
#
# Part of attn, an attention compiler.
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===----------------------------------------------------------------------===#
"""Score and mask functions beside FlexAttention, in one process.

    variants.py --lib build/lib/libattn.so --json out.json --commit $(git rev-parse HEAD)
    variants.py --lib ... --only causal,prefix_lm --dims 128

bf16, hidden size 2048, batch 2, 8192 tokens; (batch, length, heads, dim) in
memory. Each variant is compiled once by torch.compile(flex_attention), with its
block mask, and once per target here; they take turns in random order, L2 is
overwritten before each launch, and a figure is the median of CUDA-event times.
The block mask of FlexAttention is made before the clock starts; what a kernel of
ours needs to find its blocks runs inside its launch, and is timed.
"""

import argparse
import pathlib
import random
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
sys.path.insert(0, str(HERE.parents[2] / "python"))

import results  # noqa: E402
from bench import environment  # noqa: E402
from compiling import Compiler  # noqa: E402
from gpu import SKIP, find_torch, plan_of  # noqa: E402
from turns import flush_buffer, medians  # noqa: E402
from variant_table import make_variants  # noqa: E402

HIDDEN = 2048
WHAT = "Score and mask functions beside FlexAttention (flex)"


def parse_arguments():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--lib", required=True)
    parser.add_argument("--targets", default="sm_80,sm_90a")
    parser.add_argument("--dims", default="64,128")
    parser.add_argument("--batch", type=int, default=2)
    parser.add_argument("--length", type=int, default=8192)
    parser.add_argument("--only", default="", help="names of variants, by comma")
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--warmup", type=int, default=4)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--dry-run", action="store_true", help="compile our kernels only")
    parser.add_argument("--json")
    parser.add_argument("--commit", default="")
    parser.add_argument("--time-limit", type=float, default=1e9)
    options = parser.parse_args()
    options.element, options.hidden, options.gqa, options.logits = "bf16", HIDDEN, 1, 1.0
    options.hot = False
    options.lib = str(pathlib.Path(options.lib).resolve())
    return options


def chosen(options, dim):
    only = [name for name in options.only.split(",") if name]
    table = make_variants(options.length, HIDDEN // dim)
    return {name: v for name, v in table.items() if not only or name in only}


def compile_all(options, directory):
    """{(dim, variant, target): path or error}"""
    import attn

    pending = {}
    for target in options.targets.split(","):
        compiler = Compiler(options.lib, directory, target)
        for dim in map(int, options.dims.split(",")):
            for name, variant in chosen(options, dim).items():
                text = attn.attention("bf16", dim, **variant.program)
                file = f"{name}-{dim}-{target}"
                pending[dim, name, target] = (file, compiler.compile(file, text))
    found = {}
    for key, (file, future) in pending.items():
        _, error = future.result()
        if error:
            print(f"{file}: {error}", flush=True)
        found[key] = (directory / f"{file}.attn", error)
    return found


def prepare_peer(torch, variant, q, k, v):
    """(a function that runs FlexAttention, its block mask or None)"""
    from torch.nn.attention.flex_attention import create_block_mask, flex_attention

    torch._dynamo.reset()
    length = q.shape[2]
    score, mask = variant.flex(torch)
    block_mask = None
    if mask is not None:
        block_mask = create_block_mask(mask, None, None, length, length, device="cuda")
    compiled = torch.compile(flex_attention, dynamic=False)
    sink = variant.sink(torch)

    def run():
        with torch.no_grad():
            if sink is None:
                return compiled(q, k, v, score_mod=score, block_mask=block_mask)
            o, lse = compiled(q, k, v, score_mod=score, block_mask=block_mask, return_lse=True)
            return o * torch.sigmoid(lse - sink[None, :, None])[..., None].to(o.dtype)

    return run, block_mask


def run_variant(options, torch, flush, rng, dim, name, variant, compiled):
    import attn

    heads = HIDDEN // dim

    def make():
        sizes = (options.batch, options.length, heads, dim)
        return torch.randn(sizes, device="cuda", dtype=torch.bfloat16).transpose(1, 2)

    q, k, v, o = make(), make(), make(), make()
    lse = torch.empty(options.batch, heads, options.length, device="cuda")
    row = {"d": dim, "variant": name, "contestants": {}}
    contestants, keep, expected, density = {}, [], None, 1.0
    try:
        start = time.time()
        run, block_mask = prepare_peer(torch, variant, q, k, v)
        expected = run()
        torch.cuda.synchronize()
        row["contestants"]["flex"] = {"first_call_s": round(time.time() - start, 2)}
        contestants["flex"] = run
        if block_mask is not None:
            density = 1 - block_mask.sparsity() / 100
    except Exception as error:
        row["contestants"]["flex"] = {"error": str(error)[:300]}
    row["block_density"] = round(density, 4)
    stream = torch.cuda.current_stream().cuda_stream
    for target in options.targets.split(","):
        path, error = compiled[dim, name, target]
        facts = row["contestants"][target] = {}
        if error:
            facts["error"] = error[:300]
            continue
        try:
            kernel = attn.Artifact.load(path.read_bytes()).on_device()
            captured = variant.captured(torch)
            o.fill_(float("nan"))
            kernel.launch(q, k, v, *captured, o, lse)
            torch.cuda.synchronize()
            facts["plan"] = plan_of(kernel, q, k, v, *captured, o, lse)
            facts["registers"] = kernel.registers
            if expected is not None:
                facts["difference"] = float((o.float() - expected.float()).abs().max())
                if not facts["difference"] < 0.05:
                    facts["error"] = f"differs from FlexAttention by {facts['difference']:.3g}"
                    continue
            arguments = kernel.prepare(q, k, v, *captured, o, lse)
            keep += [arguments, captured]
            contestants[target] = lambda kernel=kernel, arguments=arguments: kernel.launch_prepared(
                arguments, stream
            )
        except attn.AttnError as failure:
            facts["error"] = str(failure)[:300]
    for label, ms in medians(options, torch, flush, rng, contestants).items():
        entry = row["contestants"].setdefault(label, {})
        entry["ms"] = round(ms, 4)
        flops = 4 * options.batch * heads * options.length**2 * dim * density
        entry["tflops_on_visited"] = round(flops / ms / 1e9, 1)
    flex = row["contestants"].get("flex", {}).get("ms")
    cells = []
    for label, entry in row["contestants"].items():
        if flex and "ms" in entry and label != "flex":
            entry["of_flex"] = round(flex / entry["ms"], 3)
        cells.append(
            f"{label} {entry['ms']:.3f} ms" + (f" ({entry['of_flex']:.2f}x)" if "of_flex" in entry else "")
            if "ms" in entry
            else f"{label} ERROR {entry.get('error')}"
        )
    print(f"d={dim:<4} {name:<20} density {density:.3f}  " + "   ".join(cells), flush=True)
    return row


def main():
    options = parse_arguments()
    import attn

    attn.use_library(options.lib)
    with tempfile.TemporaryDirectory() as temporary:
        compiled = compile_all(options, pathlib.Path(temporary))
        if options.dry_run:
            refused = sum(bool(error) for _, error in compiled.values())
            print(f"{len(compiled) - refused} kernels compiled, {refused} refused")
            return 1 if refused else 0
        torch = find_torch()
        if torch is None:
            return SKIP
        torch.manual_seed(options.seed)
        rng = random.Random(options.seed)
        flush = flush_buffer(torch)
        rows, deadline = [], time.time() + options.time_limit
        for dim in map(int, options.dims.split(",")):
            for name, variant in chosen(options, dim).items():
                if time.time() > deadline:
                    print("time limit reached")
                    break
                rows.append(
                    run_variant(options, torch, flush, rng, dim, name, variant, compiled)
                )
                if options.json:
                    found = dict(environment(options, torch), protocol=" ".join(__doc__.split("\n\n")[2].split()))
                    results.write(options.json, results.contest(WHAT, found, rows))
    for mean in results.means(results.lines(rows)):
        print(
            f"{mean['contestant']} / flex: geometric mean {mean['geometric_mean']:.3f} of"
            f" {mean['cases']}, lowest {mean['lowest']:.3f} ({mean['variant']}, d={mean['d']})"
        )
    return 1 if any("error" in e for row in rows for e in row["contestants"].values()) else 0


if __name__ == "__main__":
    sys.exit(main())
