#!/usr/bin/env python3
#===----------------------------------------------------------------------===#
#
# Part of attn, an attention compiler.
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===----------------------------------------------------------------------===#
"""Speed beside PyTorch's flash and cuDNN backends, in one process.

    bench.py --lib build/lib/libattn.so --json out.json --commit $(git rev-parse HEAD)
    bench.py --lib ... --targets sm_80 --dims 128 --lengths 4096 --plans plans.json
                  several plans of the same kernel against each other:
                  {"128": ["#attn.plan<...>", ...], "64": [...]}
    bench.py --lib ... --dims 80,96,112,160,192,192x128 --lengths 1024,4096,8192
                  QKxV: head dimensions that differ
    bench.py --lib ... --hidden 4096 --gqa 4 --dims 128   32 query heads, 8 of keys
    bench.py --lib ... --backward             the gradients: everything that each launches.
                  TARGET: two programs, the default; TARGET-sums: sums in any order, one
                  program or two by the length (gradient_forms.py times both)
    bench.py --lib ... --hot --rounds 5        launch upon launch, at the power limit
    bench.py --lib ... --element f16 --logits 8           logits of deviation 8
    bench.py --lib ... --element f32 --peers efficient    [--f32-products ieee]
    bench.py --lib NEW --old OLD --peers ''        what a change costs: both
                  libraries' kernels, old over new. With --old-python DIR, the
                  python/ of OLD's tree, each library launches its own, whose
                  artifacts the other one may refuse.

The field's protocol: 16384 tokens in all, hidden size 2048, so batch =
16384/length (the nearest number, at least 1) and heads = 2048/dim; (batch,
length, heads, dim) in memory; FLOPs 4 b h s s d, half of that when causal, 2.5
times as many for the gradients. For
each shape the contestants take turns in random order, L2 is overwritten before
each launch, and a figure is the median of CUDA-event times. The GPU is kept
busy: nothing waits in between. With --hot a contestant's turn is HOT_SECONDS of
launches one after the other, and L2 is left alone: the chip reaches its power
limit, as it does under a long job.
"""

import argparse
import importlib.util
import json
import pathlib
import random
import statistics
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
sys.path.insert(0, str(HERE.parents[2] / "python"))

import results  # noqa: E402
from compiling import Compiler  # noqa: E402
from gpu import SKIP, find_torch, plan_of  # noqa: E402
from turns import flush_buffer, medians  # noqa: E402

TOKENS = 16384
HOT_SECONDS = 0.02
SMALL_WORKSPACE = 1 << 20
WHAT = {
    False: "Forward speed beside PyTorch's flash (fa2) and cuDNN backends",
    True: "Speed of the gradients beside PyTorch's flash (fa2) and cuDNN backends: all that each launches",
}
# Programs that compete: what stands behind the target's name, and the numerics.
FORMS = {False: {"": None}, True: {"": None, "-sums": "deterministic = false"}}


def parse_arguments():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--lib", required=True)
    parser.add_argument("--old", help="another library, whose kernels take part as TARGET-old")
    parser.add_argument("--old-python", default="", help="directory of the package attn of --old")
    parser.add_argument("--element", default="bf16")
    parser.add_argument("--f32-products", default="", help="tf32x3 or ieee, with f32")
    parser.add_argument("--backward", action="store_true", help="the gradients, not the forward")
    parser.add_argument("--targets", default="sm_80,sm_90a")
    parser.add_argument("--dims", default="64,128,256")
    parser.add_argument("--lengths", default="512,1024,2048,4096,8192,16384")
    parser.add_argument("--causal", default="0,1")
    parser.add_argument("--hidden", type=int, default=2048, help="query heads times head_dim")
    parser.add_argument("--gqa", type=int, default=1, help="query heads to a head of keys")
    parser.add_argument("--logits", type=float, default=1.0, help="their standard deviation")
    parser.add_argument("--plans", help="JSON file: dim to a list of plans")
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--warmup", type=int, default=5)
    parser.add_argument("--hot", action="store_true", help="launch upon launch, L2 warm")
    parser.add_argument("--static", action="store_true", help="batch and heads in the types")
    parser.add_argument("--peers", default="fa2,cudnn", help="of fa2, cudnn, efficient")
    parser.add_argument("--artifacts", help="directory that keeps programs and artifacts")
    parser.add_argument("--dry-run", action="store_true", help="compile only")
    parser.add_argument("--json")
    parser.add_argument("--commit", default="")
    parser.add_argument("--time-limit", type=float, default=1e9)
    parser.add_argument("--seed", type=int, default=1)
    return parser.parse_args()


def numbers(text):
    return [int(number) for number in text.split(",")]


def dims_of(options):
    """[(name, head_dim, value_dim)]"""
    dims = []
    for name in options.dims.split(","):
        parts = [int(part) for part in name.split("x")]
        dims.append((name, parts[0], parts[-1]))
    return dims


def shape_of(options, dim, length):
    return max(1, round(TOKENS / length)), options.hidden // dim


def programs(options, attn):
    """(dim name, causal, length or 0, form, text)"""
    for dim_name, dim, value_dim in dims_of(options):
        for causal in numbers(options.causal):
            for length in numbers(options.lengths) if options.static else [0]:
                sizes = {}
                if length:
                    batch, heads = shape_of(options, dim, length)
                    sizes = dict(batch=batch, heads=heads, kv_heads=heads // options.gqa)
                for form, numerics in FORMS[options.backward].items():
                    if options.f32_products:
                        products = f"f32_products = {options.f32_products}"
                        numerics = f"{products}, {numerics}" if numerics else products
                    yield dim_name, causal, length, form, attn.attention(
                        options.element, dim, value_dim=value_dim, numerics=numerics,
                        variants=["causal"] if causal else [], **sizes)


def compile_kernels(options, directory):
    """{(dim name, causal, length or 0): [(label, plan, path, error, seconds)]}"""
    import attn

    plans = options.plans or {}
    if isinstance(plans, str):
        plans = json.loads(pathlib.Path(plans).read_text())
    compilers = {(target, suffix): Compiler(library, directory, target, python=python,
                                            backward=options.backward)
                 for target in options.targets.split(",")
                 for suffix, library, python in (
                     ("", options.lib, ""), ("-old", options.old, options.old_python)) if library}
    pending = []
    for (target, suffix), compiler in compilers.items():
        for dim_name, causal, length, form, text in programs(options, attn):
            for i, plan in enumerate(plans.get(dim_name, [""])):
                if plan and f"target = {target}," not in plan:
                    continue
                label = f"{target}{form}{suffix}" + (f"/{i}" if plan else "")
                kind = "causal" if causal else "full"
                name = f"bench-{target}{form}{suffix}-d{dim_name}-{kind}-{length}-{i}"
                future = compiler.compile(name, text, plan)
                pending.append(((dim_name, causal, length), label, plan, name, future))
    kernels = {}
    for key, label, plan, name, future in pending:
        seconds, error = future.result()
        if error:
            print(f"{name} {plan}: {error}", flush=True)
        log = directory / f"{name}.attn.log"
        if log.exists():
            print(f"{name}: {log.read_text().strip()}", flush=True)
        path = directory / f"{name}.attn"
        kernels.setdefault(key, []).append((label, plan, path, error, seconds))
    for compiler in compilers.values():
        compiler.close()
    return kernels


def old_package(options):
    """The package attn that launches what --old has compiled."""
    if not options.old_python:
        import attn

        return attn
    place = pathlib.Path(options.old_python) / "attn"
    spec = importlib.util.spec_from_file_location(
        "attn_old", place / "__init__.py", submodule_search_locations=[str(place)]
    )
    package = sys.modules["attn_old"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(package)
    package.use_library(options.old)
    return package


def environment(options, torch):
    row = {
        "gpu": torch.cuda.get_device_name(),
        "torch": torch.__version__,
        "cudnn": torch.backends.cudnn.version(),
        "commit": options.commit,
        "date": time.strftime("%Y-%m-%d"),
        "element": options.element,
        "query_heads_per_kv_head": options.gqa,
        "logits_deviation": options.logits,
        "protocol": f"{TOKENS} tokens, hidden {options.hidden}, (batch, length, heads, dim), medians"
        + (f"; turns of {HOT_SECONDS} s, L2 warm" if options.hot else ""),
    }
    command = "nvidia-smi --query-gpu=driver_version,power.limit,clocks.max.sm --format=csv,noheader"
    try:
        output = subprocess.run(command.split(), capture_output=True, text=True)
        row["nvidia_smi"] = output.stdout.strip().splitlines()[0]
    except (OSError, IndexError):
        pass
    return row


def attend(options, torch, name, q, k, v, causal):
    from torch.nn.attention import SDPBackend, sdpa_kernel

    backend = {
        "fa2": SDPBackend.FLASH_ATTENTION,
        "cudnn": SDPBackend.CUDNN_ATTENTION,
        "efficient": SDPBackend.EFFICIENT_ATTENTION,
    }[name]
    with sdpa_kernel(backend):
        return torch.nn.functional.scaled_dot_product_attention(
            q, k, v, is_causal=causal, enable_gqa=options.gqa > 1
        )


class Shape:
    """The tensors of one shape and who competes on them."""

    def __init__(self, options, torch, dim, value_dim, causal, length, batch_and_heads=None):
        batch, heads = batch_and_heads or shape_of(options, dim, length)
        self.flops = 2 * batch * heads * length * length * (dim + value_dim) / (2 if causal else 1)
        dtype = {"bf16": torch.bfloat16, "f16": torch.float16, "f32": torch.float32}[
            options.element
        ]

        def make(heads, columns, factor=1.0):
            sizes = (batch, length, heads, columns)
            values = torch.randn(sizes, device="cuda") * factor
            return values.to(dtype).transpose(1, 2)

        kv_heads = heads // options.gqa
        self.q, self.o = make(heads, dim, options.logits), make(heads, value_dim)
        self.k, self.v = make(kv_heads, dim), make(kv_heads, value_dim)
        self.lse = torch.empty(batch, heads, length, device="cuda")
        self.values = self.q, self.k, self.v, self.o, self.lse
        self.causal = bool(causal)
        self.contestants, self.facts, self.keep = {}, {}, []

    def peer(self, options, torch, name):
        """What launches a peer, and gives what it computes."""
        def run():
            with torch.no_grad():
                return attend(options, torch, name, self.q, self.k, self.v, self.causal)

        return run

    def poison(self):
        self.o.fill_(float("nan"))

    def difference(self):
        """From what the peer before has computed, if there is one."""
        if hasattr(self, "expected"):
            return float((self.o.float() - self.expected.float()).abs().max())
        return None

    def add_peer(self, options, torch, name):
        try:
            run = self.peer(options, torch, name)
            self.expected = run()
            torch.cuda.synchronize()
        except Exception as error:
            self.facts[name] = {"error": str(error)[:200]}
            return
        self.contestants[name] = run

    def add_kernel(self, options, torch, label, plan, path, error, attn=None, variant=None):
        """`attn`: the package that launches it; default: this tree's. `variant`: which one
        of the artifact, whatever its rule."""
        if attn is None:
            import attn
        facts = self.facts[label] = {"plan": plan}
        if error:
            facts["error"] = error[:500]
            return
        try:
            artifact = attn.Artifact.load(path.read_bytes())
            kernel = artifact.on_device() if variant is None else artifact.on_device(variant=variant)
            facts["plan"] = plan_of(kernel, *self.values)
            facts["registers"] = kernel.registers
            facts["local_bytes"] = kernel.local_bytes
            self.poison()
            kernel.launch(*self.values)
            torch.cuda.synchronize()
            difference = self.difference()
            if difference is not None:
                facts["difference"] = difference
                if not difference < 0.05:
                    facts["error"] = f"differs from the peer by {difference:.3g}"
                    return
        except attn.AttnError as failure:
            facts["error"] = str(failure)[:500]
            return
        arguments = kernel.prepare(*self.values)
        size = kernel.workspace_bytes(*self.values)
        # As attn.torch does: small ones the runtime keeps, and clears once.
        space = torch.empty(size, dtype=torch.uint8, device="cuda") if size > SMALL_WORKSPACE else None
        stream = torch.cuda.current_stream().cuda_stream
        self.keep.append((arguments, space))
        self.contestants[label] = lambda: kernel.launch_prepared(arguments, stream, space)

    def measure_hot(self, options, torch, rng):
        """{name: median milliseconds} of turns of many launches."""

        def run(name, count):
            start, stop = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            start.record()
            for _ in range(count):
                self.contestants[name]()
            stop.record()
            torch.cuda.synchronize()
            return start.elapsed_time(stop) / count

        counts = {}
        for name in self.contestants:
            run(name, 2)
            counts[name] = max(1, round(1000 * HOT_SECONDS / run(name, 5)))
        samples = {name: [] for name in self.contestants}
        for turn in range(options.rounds + 1):
            names = list(self.contestants)
            rng.shuffle(names)
            for name in names:
                sample = run(name, counts[name])
                if turn > 0:
                    samples[name].append(sample)
        return {name: statistics.median(values) for name, values in samples.items()}

    def measure(self, options, torch, flush, rng):
        """{name: median milliseconds}; everything is queued before it is read."""
        if options.hot:
            return self.measure_hot(options, torch, rng)
        return medians(options, torch, flush, rng, self.contestants)


class Gradients(Shape):
    """The same for the gradients of q, k and v."""

    def __init__(self, options, torch, *shape):
        super().__init__(options, torch, *shape)
        self.flops *= 2.5
        self.d_o = torch.randn_like(self.o)
        self.results = [torch.empty_like(tensor) for tensor in (self.q, self.k, self.v)]
        self.forward(torch)
        self.values += self.d_o, *self.results

    def forward(self, torch):
        """o and lse, head by head in f32."""
        group = self.q.shape[1] // self.k.shape[1]
        length = self.q.shape[2]
        hidden = torch.ones(length, length, device="cuda", dtype=torch.bool).triu(1)
        for b in range(self.q.shape[0]):
            for h in range(self.q.shape[1]):
                k, v = (tensor[b, h // group].float() for tensor in (self.k, self.v))
                x = self.q[b, h].float() @ k.T * self.q.shape[3] ** -0.5
                x = x.masked_fill_(hidden, float("-inf")) if self.causal else x
                self.lse[b, h] = torch.logsumexp(x, dim=1)
                self.o[b, h] = (x.sub_(self.lse[b, h, :, None]).exp_() @ v).to(self.o.dtype)

    def peer(self, options, torch, name):
        leaves = [tensor.detach().requires_grad_() for tensor in (self.q, self.k, self.v)]
        o = attend(options, torch, name, *leaves, self.causal)
        return lambda: torch.autograd.grad(o, leaves, self.d_o, retain_graph=True)

    def poison(self):
        for tensor in self.results:
            tensor.fill_(float("nan"))

    def difference(self):
        """The largest, as a part of the largest gradient."""
        if not hasattr(self, "expected"):
            return None
        return max(
            float((got.float() - wanted.float()).abs().max() / wanted.float().abs().max())
            for got, wanted in zip(self.results, self.expected)
        )


def run_shape(options, torch, flush, rng, kernels, dims, causal, length):
    dim_name, dim, value_dim = dims
    kind = Gradients if options.backward else Shape
    shape = kind(options, torch, dim, value_dim, causal, length)
    peers = list(filter(None, options.peers.split(",")))
    for peer in peers:
        shape.add_peer(options, torch, peer)
    key = (dim_name, causal, length if options.static else 0)
    for label, plan, path, error, _ in kernels.get(key, []):
        old = options.old_package if "-old" in label else None
        shape.add_kernel(options, torch, label, plan, path, error, old)
    row = {"d": dim_name, "causal": bool(causal), "s": length}
    times = shape.measure(options, torch, flush, rng)
    row["contestants"] = shape.facts
    for name, milliseconds in times.items():
        entry = row["contestants"].setdefault(name, {})
        entry["ms"] = round(milliseconds, 5)
        entry["tflops"] = round(shape.flops / milliseconds / 1e9, 1)
        for peer in peers:
            if peer in times and name not in peers:
                entry[f"of_{peer}"] = round(times[peer] / milliseconds, 3)
        if f"{name}-old" in times:
            entry["of_old"] = round(times[f"{name}-old"] / milliseconds, 4)
    cells = []
    for name, entry in row["contestants"].items():
        if "ms" not in entry:
            cells.append(f"{name} ERROR {entry.get('error', '')[:200]}")
            continue
        text = f"{name} {entry['tflops']:6.1f}"
        if name not in peers:
            ratios = [f"{entry[f'of_{peer}']:.3f} of {peer}" for peer in [*peers, "old"] if f"of_{peer}" in entry]
            text += f" ({', '.join(ratios + [str(entry['registers']) + ' regs'])}"
            text += f", {entry['local_bytes']} B local)" if entry["local_bytes"] else ")"
        cells.append(text)
    print(f"d={dim_name:<7} {'causal' if causal else 'full  '} s={length:<5}  " + "   ".join(cells), flush=True)
    return row


def summary(options, rows):
    """Geometric mean and minimum of each ratio, and a table."""
    peers = list(filter(None, options.peers.split(",")))
    labels = []
    for row in rows:
        labels += [name for name in row["contestants"] if name not in peers + labels]
    for mean in results.means(results.lines(rows)):
        print(
            f"{mean['contestant']} / {mean['beside']}: geometric mean {mean['geometric_mean']:.3f}"
            f" of {mean['cases']}, lowest {mean['lowest']:.3f} "
            f"(d={mean['d']} {'causal' if mean['causal'] else 'full'} s={mean['s']})"
        )
    columns = peers + labels
    print("\n| d | causal | s | " + " | ".join(columns) + " |")
    print("|---" * (3 + len(columns)) + "|")
    for row in rows:
        cells = [str(row["contestants"].get(name, {}).get("tflops", "-")) for name in columns]
        print(f"| {row['d']} | {'yes' if row['causal'] else 'no'} | {row['s']} | " + " | ".join(cells) + " |")


def main():
    options = parse_arguments()
    options.lib = str(pathlib.Path(options.lib).resolve())
    if options.old:
        options.old = str(pathlib.Path(options.old).resolve())
    if options.old_python:
        options.old_python = str(pathlib.Path(options.old_python).resolve())
    import attn

    attn.use_library(options.lib)
    with tempfile.TemporaryDirectory() as temporary:
        directory = pathlib.Path(options.artifacts or temporary)
        kernels = compile_kernels(options, directory)
        if options.dry_run:
            errors = sum(bool(item[3]) for items in kernels.values() for item in items)
            print(f"{sum(map(len, kernels.values())) - errors} kernels compiled, {errors} refused")
            return 1 if errors else 0
        torch = find_torch()
        if torch is None:
            return SKIP
        torch.manual_seed(options.seed)
        rng = random.Random(options.seed)
        flush = flush_buffer(torch)
        options.old_package = old_package(options)
        found = environment(options, torch)
        print(json.dumps(found), flush=True)
        rows, deadline = [], time.time() + options.time_limit
        for dims in dims_of(options):
            for causal in numbers(options.causal):
                for length in numbers(options.lengths):
                    if time.time() > deadline:
                        print("time limit reached")
                        break
                    try:
                        rows.append(
                            run_shape(options, torch, flush, rng, kernels, dims, causal, length)
                        )
                    except Exception as error:
                        print(f"d={dims[0]} causal={causal} s={length}: {error}", flush=True)
                    if options.json:
                        results.write(options.json, results.contest(WHAT[options.backward], found, rows))
        summary(options, rows)
    errors = sum(
        "error" in entry
        for row in rows
        for name, entry in row["contestants"].items()
        if name.startswith("sm_")
    )
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main())
