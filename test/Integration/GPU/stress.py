#!/usr/bin/env python3
#===----------------------------------------------------------------------===#
#
# Part of attn, an attention compiler.
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===----------------------------------------------------------------------===#
"""Many launches of mixed programs, shapes and layouts, back to back on several
streams, from several threads, from graphs and by kernels that nobody holds when
they run: each must give, bit for bit, what the program gave when it ran alone.

    stress.py --lib build/lib/libattn.so --target sm_90a
    stress.py --lib ... --launches 10000 --streams 4 --json stress.json
    stress.py --lib ... --target cpu --launches 40   a test of this program itself

Before a launch its results are poisoned, after it they are compared, both in
the order of its stream; one kernel object runs on several streams at once. Exit
code 0: every launch right; 1: not; 3: hung (the last launches are named); 77: no
GPU.
"""

import argparse
import os
import pathlib
import random
import sys
import tempfile
import threading
import time
import warnings

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
sys.path.insert(0, str(HERE.parents[2] / "python"))

import results  # noqa: E402
import variant_table  # noqa: E402
from cases import make_case  # noqa: E402
from compiling import Compiler  # noqa: E402
from gpu import SKIP, find_torch  # noqa: E402
from variant_table import make_variants  # noqa: E402

WHAT = ("Launches on several streams, from threads, in graphs and of kernels given back: "
        "every bit that of the first run")
SHAPES = [(1, 128, 128), (2, 1000, 1000), (3, 77, 300), (1, 4, 2000), (2, 640, 0)]
VARIANTS = ["full", "causal", "alibi_causal", "window_causal", "softcap_causal", "document_causal",
            "document_random", "rel_table", "neighbourhood_2d", "sink_causal", "block_sparse"]
HEADS, KEY_HEADS = 4, 2
TABLE_LENGTH = 2048  # of what the variants capture
# Of q, k, v and o: letters from the outermost in, and elements in front.
LAYOUTS = ["bhsd", "bshd", "bhds", "bhsd+1"]


def parse_arguments():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--lib", required=True, help="path of libattn.so")
    parser.add_argument("--target", default="sm_90a", help="sm_80, sm_90a or cpu")
    parser.add_argument("--launches", type=int, default=10000)
    parser.add_argument("--streams", type=int, default=4)
    parser.add_argument("--threads", type=int, default=4)
    parser.add_argument("--random-programs", type=int, default=12)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, help="programs compiled at once")
    parser.add_argument("--hang", type=float, default=60, help="seconds without progress")
    parser.add_argument("--json", help="file for the numbers")
    return parser.parse_args()


# ---------------------------------------------------------------------------
# What is launched
# ---------------------------------------------------------------------------


def programs(options):
    """{name: text}"""
    import attn

    texts = {}
    for head_dim in (64, 128):
        variants = make_variants(TABLE_LENGTH, HEADS)
        for name in VARIANTS:
            element = "f16" if name == "softcap_causal" else "bf16"
            text = attn.attention(element, head_dim, **variants[name].program)
            texts[f"{name}-{element}-{head_dim}"] = text
    texts["dropout-bf16-64"] = attn.attention("bf16", 64, dropout_p=0.25, variants=["causal"])
    texts["full-bf16-256"] = attn.attention("bf16", 256)
    if options.target != "sm_90a":
        texts["causal-f32-64"] = attn.attention("f32", 64, variants=["causal"])
    for index in range(options.random_programs):
        texts[f"case-{index}"] = random_case(options, index).program()
    return texts


def random_case(options, index):
    return make_case(options.seed, index, 700)


def placed(torch, shape, layout, dtype, device, fill):
    """A tensor of that shape in that layout."""
    letters, _, first = layout.partition("+")
    order = ["bhsd".index(letter) for letter in letters]
    first = int(first or 0)
    count = 1
    for size in shape:
        count *= size
    flat = torch.zeros(count + first, dtype=dtype, device=device)[first:]
    view = flat.view([shape[i] for i in order]).permute([order.index(i) for i in range(4)])
    return view.copy_(fill)


class Entry:
    """A kernel with inputs, results for each stream, and what is right."""

    def __init__(self, torch, name, kernel, inputs, outputs, slots):
        self.torch, self.name, self.kernel = torch, name, kernel
        self.outputs = [[self.like(x) for x in outputs] for _ in range(slots)]
        self.arguments = [kernel.prepare(*inputs, *out) for out in self.outputs]
        self.kept = inputs
        self.wrong = [torch.zeros(1, dtype=torch.int64, device=outputs[0].device)
                      for _ in range(slots)]
        self.right = None

    def like(self, tensor):
        """Empty, with the same strides."""
        return self.torch.empty_strided(
            tensor.shape, tensor.stride(), dtype=tensor.dtype, device=tensor.device)

    def bits(self, slot):
        kinds = {2: self.torch.int16, 4: self.torch.int32}
        return [x.view(kinds[x.element_size()]) for x in self.outputs[slot]]

    def launch(self, slot, stream):
        for x in self.outputs[slot]:
            x.fill_(float("nan"))
        self.kernel.launch_prepared(self.arguments[slot], stream)

    def compare(self, slot):
        for bits, right in zip(self.bits(slot), self.right):
            self.wrong[slot] += (bits != right).sum()

    def learn(self, stream):
        """The first run, alone."""
        self.launch(0, stream)
        self.kernel.synchronize()
        self.right = [bits.clone() for bits in self.bits(0)]
        o, lse = self.outputs[0]
        if not bool(self.torch.isfinite(o).all()) or bool(self.torch.isnan(lse).any()):
            raise ValueError(f"{self.name}: a result is not finite")

    def count_wrong(self):
        return sum(int(count) for count in self.wrong)


def variant_entries(torch, name, kernel, device, slots, rng):
    kind, element, head_dim = name.split("-")
    variant = make_variants(TABLE_LENGTH, HEADS).get(kind)
    dtype = {"bf16": torch.bfloat16, "f16": torch.float16, "f32": torch.float32}[element]
    captured = variant.captured(torch) if variant else [7, 11]
    for number, (batch, queries, keys) in enumerate(SHAPES):
        layouts = [rng.choice(LAYOUTS) if number % 2 else "bhsd" for _ in range(4)]
        sizes = [(HEADS, queries), (KEY_HEADS, keys), (KEY_HEADS, keys), (HEADS, queries)]
        tensors = []
        for (heads, length), layout in zip(sizes, layouts):
            shape = (batch, heads, length, int(head_dim))
            values = torch.randn(shape, device=device)
            tensors.append(placed(torch, shape, layout, dtype, device, values))
        lse = torch.zeros(batch, HEADS, queries, device=device)
        label = f"{name} {batch}x{HEADS}x{queries}x{keys} {','.join(layouts)}"
        yield Entry(torch, label, kernel, [*tensors[:3], *captured], [tensors[3], lse], slots)


def case_entry(torch, options, name, kernel, device, slots):
    from reference import Inputs

    case = random_case(options, int(name.split("-")[1]))
    inputs = Inputs(case, device)
    *tensors, o, lse = inputs.arguments
    return Entry(torch, f"{name} {case.describe()}", kernel, tensors, [o, lse], slots)


def prepare(torch, options, device, slots):
    """All entries, each with what its first run gave."""
    import attn

    rng, entries = random.Random(options.seed), []
    torch.manual_seed(options.seed)
    texts = programs(options)
    with tempfile.TemporaryDirectory() as directory:
        compiler = Compiler(options.lib, directory, options.target, options.jobs)
        futures = {}
        if options.target != "cpu":
            futures = {name: compiler.compile(name, text) for name, text in texts.items()}
        for number, (name, text) in enumerate(texts.items()):
            if name in futures:
                _, error = futures[name].result()
                if error:
                    raise ValueError(f"{name}: {error}")
                data = (pathlib.Path(directory) / f"{name}.attn").read_bytes()
                artifact = attn.Artifact.load(data)
                kernel = artifact.on_device()
            else:
                artifact = None
                kernel = attn.compile(text, target="cpu")
            if name.startswith("case-"):
                found = [case_entry(torch, options, name, kernel, device, slots)]
            else:
                found = list(variant_entries(torch, name, kernel, device, slots, rng))
            for entry in found:
                entry.artifact = artifact
                entry.learn(None)
            entries += found
            print(f"\rprepared {number + 1} of {len(texts)} programs ", end="", flush=True)
        compiler.close()
    print(f"\n{len(entries)} cases")
    return entries


# ---------------------------------------------------------------------------
# How
# ---------------------------------------------------------------------------


class Watchdog:
    """Ends the process where nothing moves: a GPU that hangs answers nothing."""

    def __init__(self, limit):
        self.limit, self.last, self.recent = limit, time.time(), []
        threading.Thread(target=self.watch, daemon=True).start()

    def moved(self):
        self.last = time.time()

    def launched(self, name):
        self.recent = [*self.recent[-15:], name]

    def watch(self):
        while True:
            time.sleep(1)
            if time.time() - self.last > self.limit:
                print(f"\nHUNG: nothing for {self.limit:.0f} s; the last launches:", flush=True)
                for name in self.recent:
                    print("  " + name, flush=True)
                os._exit(3)


def on_streams(torch, options, entries, streams, dog):
    """In random order, on streams at random, waiting only now and then."""
    rng, start, every = random.Random(options.seed + 1), time.time(), 500
    for number in range(options.launches):
        entry, slot = rng.choice(entries), rng.randrange(len(streams))
        dog.launched(entry.name)
        with streams[slot].use():
            entry.launch(slot, streams[slot].handle)
            entry.compare(slot)
        if number % every == every - 1:
            streams[0].wait_for_all()
            dog.moved()
            rate = (number + 1) / (time.time() - start)
            print(f"\rlaunch {number + 1} of {options.launches}, {rate:.0f} a second ", end="",
                  flush=True)
    streams[0].wait_for_all()
    dog.moved()
    print()
    return options.launches


def from_threads(torch, options, entries, streams, dog):
    """Threads share the kernels, each with a stream and results of its own."""
    count, errors = options.launches // 10 // options.threads, []

    def work(slot):
        rng = random.Random(options.seed + 2 + slot)
        try:
            with streams[slot].use():
                for _ in range(count):
                    entry = rng.choice(entries)
                    entry.launch(slot, streams[slot].handle)
                    entry.compare(slot)
                    dog.moved()
        except Exception as error:
            errors.append(f"{type(error).__name__}: {error}")

    threads = [threading.Thread(target=work, args=(slot,))
               for slot in range(min(options.threads, len(streams)))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    streams[0].wait_for_all()
    if errors:
        raise RuntimeError(errors[0])
    print(f"{count * len(threads)} launches from {len(threads)} threads")
    return count * len(threads)


def from_graphs(torch, options, entries, dog, graphs=8, length=12, replays=20):
    """Graphs with two branches, which launch the same kernels at once."""
    rng, launches = random.Random(options.seed + 3), 0
    for number in range(graphs):
        chosen = rng.sample(entries, min(length, len(entries)))
        side, graph = torch.cuda.Stream(), torch.cuda.CUDAGraph()
        torch.cuda.synchronize()
        with torch.cuda.graph(graph):
            current = torch.cuda.current_stream()
            side.wait_stream(current)
            for entry in chosen:
                entry.launch(0, current.cuda_stream)
                with torch.cuda.stream(side):
                    entry.launch(1, side.cuda_stream)
            current.wait_stream(side)
        for _ in range(replays):
            graph.replay()
            for entry in chosen:
                entry.compare(0)
                entry.compare(1)
            torch.cuda.synchronize()
            dog.moved()
        launches += 2 * len(chosen) * replays
        print(f"\rgraph {number + 1} of {graphs} ", end="", flush=True)
    print()
    return launches


def given_back_first(torch, options):
    """The first kernel of the process, which nobody holds: the pool of its memory has no
    other, and gives that back to the device."""
    import attn

    shape = (2, 2048, HEADS, 64)
    q, k, v, o = (torch.randn(shape, device="cuda").bfloat16().transpose(1, 2) for _ in range(4))
    lse = torch.full(o.shape[:3], float("nan"), device="cuda")
    text = attn.attention("bf16", 64, variants=["causal"])
    attn.compile(text, target=options.target).on_device().launch(q, k, v, o, lse)
    torch.cuda.synchronize()
    if bool(torch.isnan(lse).any()):
        raise ValueError("the first kernel was given back before it had run")


def given_back(torch, entries, dog, each=3):
    """Kernels are loaded, launched and given back before the launch has run."""
    launches = 0
    for entry in entries:
        for _ in range(each):
            for x in entry.outputs[0]:
                x.fill_(float("nan"))
            entry.artifact.on_device().launch(*entry.kept, *entry.outputs[0])
            entry.compare(0)
            launches += 1
        dog.moved()
    torch.cuda.synchronize()
    print(f"{launches} launches of kernels given back")
    return launches


class CudaStream:
    def __init__(self, torch):
        self.torch, self.stream = torch, torch.cuda.Stream()
        self.handle = self.stream.cuda_stream

    def use(self):
        return self.torch.cuda.stream(self.stream)

    def wait_for_all(self):
        self.torch.cuda.synchronize()


class NoStream:
    """The CPU: a launch has run when it returns."""

    handle = None

    def use(self):
        return warnings.catch_warnings()

    def wait_for_all(self):
        pass


def run(torch, options):
    has_gpu = options.target != "cpu"
    device = "cuda" if has_gpu else "cpu"
    variant_table.DEVICE = device
    if has_gpu:
        given_back_first(torch, options)
    slots, start = max(2, options.streams), time.time()
    entries = prepare(torch, options, device, slots)
    prepared, dog = time.time() - start, Watchdog(options.hang)
    streams = [CudaStream(torch) if has_gpu else NoStream() for _ in range(slots)]
    row = {"target": options.target, "seed": options.seed, "cases": len(entries),
           "prepare_seconds": round(prepared, 1)}
    if has_gpu:
        torch.cuda.synchronize()
        row["gpu"] = torch.cuda.get_device_name()
    start = time.time()
    row["stream_launches"] = on_streams(torch, options, entries, streams, dog)
    row["stream_seconds"] = round(time.time() - start, 1)
    row["thread_launches"] = from_threads(torch, options, entries, streams, dog)
    row["graph_launches"] = from_graphs(torch, options, entries, dog) if has_gpu else 0
    row["given_back_launches"] = given_back(torch, entries, dog) if has_gpu else 0
    wrong = {entry.name: entry.count_wrong() for entry in entries if entry.count_wrong()}
    row["wrong"] = wrong
    for name, count in wrong.items():
        print(f"WRONG {name}: {count} elements differ from the first run")
    total = sum(count for key, count in row.items() if key.endswith("_launches"))
    print(f"{total} launches of {len(entries)} cases on {slots} streams, "
          f"{sum(e.kernel.relayouts > 0 for e in entries)} cases of kernels that copied tensors: "
          + (f"{len(wrong)} cases WRONG" if wrong else "every bit right"))
    return row


def main():
    options = parse_arguments()
    options.lib = str(pathlib.Path(options.lib).resolve())
    torch = find_torch(options.target)
    if torch is None:
        return SKIP
    import attn

    attn.use_library(options.lib)
    row = run(torch, options)
    if options.json:
        results.write(options.json, {"what": WHAT, "command": results.command(), **row})
    return 1 if row["wrong"] else 0


if __name__ == "__main__":
    sys.exit(main())
