#!/usr/bin/env python3
#===----------------------------------------------------------------------===#
#
# Part of attn, an attention compiler.
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===----------------------------------------------------------------------===#
"""What each optional pass is worth: the kernel with it, and the kernel without;
of a pass that is off by default, or not used everywhere, the kernel as it is, and
with all of it.

    ablation.py --lib build/lib/libattn.so --json ablation.json --commit $(git rev-parse HEAD)
    ablation.py --lib ... --dims 128 --lengths 8192 --passes tile-lazy-max,warp-persist
    ablation.py --lib ... --backward [--numerics 'deterministic = false']   the gradients

Times as bench.py takes them: one process, random order, L2 overwritten, medians.
Cycles come from a second run of the same launches under Nsight Compute (ncu),
which reads how many cycles the multiprocessors were busy: that times their
number, divided by the pairs of query and key tiles that are visited. Where ncu
is not there or may not read counters, they are left out, and it is said.
"""

import argparse
import csv
import pathlib
import random
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
sys.path.insert(0, str(HERE.parents[2] / "python"))

import results  # noqa: E402
from bench import Gradients, Shape, dims_of, environment, numbers  # noqa: E402
from compiling import Compiler  # noqa: E402
from gpu import SKIP, find_torch  # noqa: E402
from turns import flush_buffer  # noqa: E402

# Pass: why it is there. The order is the one in which they run.
PASSES = {
    "tile-order-blocks": "full blocks come first, so that the masked ones are the last of a row",
    "tile-peel-masks": "blocks that the mask hides are not visited, full ones run without the mask",
    "tile-peel-scores": "blocks in which a bias by distance is one number read it once (no effect on others)",
    "tile-group-bounds": "a warpgroup passes over blocks that only other rows of its tile see",
    "tile-reverse-keys": "scores that grow with the key have their maximum in the first block (no effect on others)",
    "tile-fold-exp2": "the scale and log2 e become one factor inside the exponent's multiply-add",
    "tile-overlap-products": "a block's Q K^T is issued with the block before's P V: two products over one softmax",
    "tile-lazy-max": "no row maximum after the first block, unless a sum says that one is due",
    "tile-merge-factors": "constant factors of scores and gradients are one product (no effect without a score function)",
    "warp-defer-sum": "the sums of a row's four threads meet once per tile, not once per block",
    "warp-persist": "a thread block takes tile after tile: the next loads overlap the last stores",
    "warp-order-tiles": "a grid begins its longest tiles first (no effect on thread blocks that stay)",
    "warp-double-buffer": "the next weights are made while P V reads the last, in other registers",
    "warp-specialize": "one warp loads by TMA, the others compute, with registers moved between them",
    "warp-buffer": "key and value tiles are loaded ahead (where no warp is set apart for it)",
    "warp-make-async": "products run while other instructions are issued",
    "warp-insert-turns": "warpgroups take turns at the tensor cores: one multiplies, one exponentiates",
    "warp-stage-stores": "the output leaves through shared memory in whole lines",
    "warp-deepen-rings": "what is loaded next has a second slot beside the one in use",
    "warp-test-ahead": "loops of three groups or more, without masks, test items before they await them",
    "warp-run-beside": "idle warps write rows without keys (no effect but on masks of data)",
    "warp-start-early": "kernels after the first are there when the one before ends (gradients, keys in parts)",
    "warp-expand-tanh": "tanh of small scores is a polynomial (no effect on others than softcaps)",
    "warp-turn-ends": "a tile's first and last product take turns, as those between",
}
# Those that change gradients alone.
OF_GRADIENTS = {
    "warp-delay-exchange": "what warps write for each other is read one step later",
    "warp-share-columns": "warps in a grid read the operands of products less often (sm_80)",
}
# Those that are off by default, or not everywhere.
ADDED = ["+warp-double-buffer"]
METRIC = "sm__cycles_active.avg"
WHAT = "What each optional pass is worth: the kernel without it, or with all of it, beside the default"


def parse_arguments():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--lib", required=True)
    parser.add_argument("--target", default="sm_90a")
    parser.add_argument("--element", default="bf16")
    parser.add_argument("--dims", default="64,128")
    parser.add_argument("--lengths", default="1024,8192")
    parser.add_argument("--causal", default="0,1")
    parser.add_argument("--passes", default="", help="those to drop or add (+name), one at a time; default: all")
    parser.add_argument("--plan", default="")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--warmup", type=int, default=3)
    parser.add_argument("--backward", action="store_true", help="the gradients; counts no cycles")
    parser.add_argument("--numerics", default="", help="fields of #attn.numerics")
    parser.add_argument("--no-cycles", action="store_true", help="do not call ncu")
    parser.add_argument("--json")
    parser.add_argument("--commit", default="")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--artifacts", help=argparse.SUPPRESS)
    parser.add_argument("--only-launch", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    options.hidden, options.gqa, options.logits, options.peers = 2048, 1, 1.0, ""
    options.hot = False
    options.no_cycles |= options.backward
    return options


def changes(options):
    """Names of contestants, with the pass that each does without and the one that is added."""
    passes = {**PASSES, **OF_GRADIENTS} if options.backward else PASSES
    names = options.passes.split(",") if options.passes else [*passes, *ADDED]
    found = {"all passes": ("", "")}
    for name in names:
        if name.startswith("+"):
            found[f"with {name[1:]}"] = ("", name[1:])
        else:
            found[f"no {name}"] = (name, "")
    return found


def cases(options):
    for dims in dims_of(options):
        for causal in numbers(options.causal):
            yield dims, causal


def file_name(dims, causal, change):
    dropped, added = change
    what = f"no-{dropped}" if dropped else f"with-{added}" if added else "all"
    return f"{dims[0]}-{'causal' if causal else 'full'}-{what}"


def compile_all(options, directory):
    """{file name: error or ""}"""
    import attn

    compiler = Compiler(options.lib, directory, options.target, backward=options.backward)
    futures = {}
    for dims, causal in cases(options):
        _, dim, value_dim = dims
        variants = ["causal"] if causal else []
        text = attn.attention(options.element, dim, value_dim=value_dim, variants=variants,
                              numerics=options.numerics)
        for change in changes(options).values():
            name = file_name(dims, causal, change)
            futures[name] = compiler.compile(name, text, options.plan, *change)
    errors = {name: future.result()[1] for name, future in futures.items()}
    compiler.close()
    return errors


def visited_pairs(plan, batch, heads, length, causal):
    """Pairs of query and key tiles that have something to see."""
    block_q, block_k = (int(plan.split(f"{key} = ")[1].split(",")[0]) for key in ("block_q", "block_k"))
    pairs = 0
    for first in range(0, length, block_q):
        keys = min(first + block_q, length) if causal else length
        pairs += -(-keys // block_k)
    return pairs * batch * heads


def count_cycles(options, directory):
    """[cycles of the n-th launch], or a sentence why not."""
    ncu = shutil.which("ncu")
    if options.no_cycles or not ncu:
        return "ncu is not on the PATH" if not ncu else "not asked for"
    command = [ncu, "--clock-control", "none", "--csv", "--metrics", METRIC]
    command += ["--kernel-name", "regex:^attention", sys.executable, __file__]
    command += sys.argv[1:] + ["--artifacts", str(directory), "--only-launch"]
    result = subprocess.run(command, capture_output=True, text=True, timeout=300)
    lines = [line for line in result.stdout.splitlines() if line.startswith('"')]
    rows = [row for row in csv.DictReader(lines) if row.get("Metric Name") == METRIC]
    if result.returncode or not rows:
        return (result.stdout + result.stderr)[-300:]
    return [float(row["Metric Value"].replace(",", "")) for row in rows]


def each_shape(options, torch):
    for dims, causal in cases(options):
        for length in numbers(options.lengths):
            torch.manual_seed(options.seed)
            make = Gradients if options.backward else Shape
            yield dims, causal, length, make(options, torch, dims[1], dims[2], causal, length)


def add_kernels(options, torch, shape, dims, causal, directory, errors):
    for label, change in changes(options).items():
        name = file_name(dims, causal, change)
        shape.add_kernel(options, torch, label, options.plan, directory / f"{name}.attn", errors.get(name, ""))


def launch_only(options, torch, directory):
    """What runs under ncu: add_kernel launches each kernel once."""
    for dims, causal, _, shape in each_shape(options, torch):
        present = {
            file_name(dims, causal, change): ""
            if (directory / f"{file_name(dims, causal, change)}.attn").exists()
            else "not compiled"
            for change in changes(options).values()
        }
        add_kernels(options, torch, shape, dims, causal, directory, present)


def row_of(shape, dims, causal, length, times, cycles, multiprocessors):
    row = {"d": dims[0], "causal": bool(causal), "s": length, "contestants": shape.facts}
    best = times.get("all passes")
    for label, facts in shape.facts.items():
        if label not in times:
            continue
        facts["ms"] = round(times[label], 5)
        facts["tflops"] = round(shape.flops / times[label] / 1e9, 1)
        if best:
            facts["of_all_passes"] = round(best / times[label], 3)
        if isinstance(cycles, list) and cycles:
            batch, heads = shape.q.shape[0], shape.q.shape[1]
            pairs = visited_pairs(facts["plan"], batch, heads, length, causal)
            facts["cycles_per_block"] = round(cycles.pop(0) * multiprocessors / pairs)
    return row


def show(row):
    kind = "causal" if row["causal"] else "full"
    print(f"d={row['d']} {kind} s={row['s']}", flush=True)
    for label, facts in row["contestants"].items():
        if "tflops" not in facts:
            print(f"  {label:<22} {facts.get('error', '')[:150]}")
            continue
        print(
            f"  {label:<22} {facts['tflops']:6.1f} TFLOP/s  {facts.get('of_all_passes', 0):.3f}"
            f"  {facts.get('cycles_per_block', '-'):>6} cycles  {facts['registers']:>3} regs"
            f"  {facts['local_bytes']} B local"
        )


def main():
    options = parse_arguments()
    options.lib = str(pathlib.Path(options.lib).resolve())
    import attn

    attn.use_library(options.lib)
    with tempfile.TemporaryDirectory() as temporary:
        directory = pathlib.Path(options.artifacts or temporary)
        torch = find_torch()
        if torch is None:
            return SKIP
        if options.only_launch:
            launch_only(options, torch, directory)
            return 0
        errors = compile_all(options, directory)
        cycles = count_cycles(options, directory)
        if isinstance(cycles, str):
            print(f"no cycles: {cycles}", flush=True)
        found = environment(options, torch)
        found["cycles"] = METRIC if isinstance(cycles, list) else cycles
        rng = random.Random(options.seed)
        flush = flush_buffer(torch)
        multiprocessors = torch.cuda.get_device_properties(0).multi_processor_count
        rows = []
        for dims, causal, length, shape in each_shape(options, torch):
            add_kernels(options, torch, shape, dims, causal, directory, errors)
            times = shape.measure(options, torch, flush, rng)
            rows.append(row_of(shape, dims, causal, length, times, cycles, multiprocessors))
            show(rows[-1])
            if options.json:
                results.write(options.json, results.contest(WHAT, found, rows, passes={
                    **PASSES, **(OF_GRADIENTS if options.backward else {})}))
    return 1 if any("error" in f for row in rows for f in row["contestants"].values()) else 0


if __name__ == "__main__":
    sys.exit(main())
