#!/usr/bin/env python3
#===----------------------------------------------------------------------===#
#
# Part of attn, an attention compiler.
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===----------------------------------------------------------------------===#
"""Times of whole models of transformers, forward and in a step of training, by the
attention that they are told to use.

    end_to_end.py --lib build/lib/libattn.so --json models.json
    end_to_end.py --lib ... --only gemma2 --contestants attn,flex,eager
    end_to_end.py --lib ... --device cpu --tiny              a test of this program itself

The models have random weights in bf16, a few layers with the heads and dimensions of real
ones, and one batch of 8192 tokens; they end before the head over the vocabulary. Of
experts there are as many as one token takes: which ones is then no matter of rounding.

Contestants: attn_implementation "attn", "sdpa", "flex" (flex_attention) and "eager", and
torch.compile(backend="attn") of the eager model ("backend") beside Inductor alone, of
the first of sdpa and flex that the model takes ("inductor"). One that the model does not
take, or that memory does not hold, is named with the reason. They share the weights and
take turns in random order; a figure is the median of rounds, in milliseconds of the wall
clock from an idle GPU to an idle GPU. A step is forward and backward.

Each output is compared with that of "attn": the root mean square of the difference may be
0.05 of that of the output. After --time-limit seconds no new model and no new round is
begun. Exit code 0: all agree; 1: some do not, or attn failed; 77: no GPU or no transformers.
"""

import argparse
import pathlib
import random
import statistics
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
sys.path.insert(0, str(HERE.parents[2] / "python"))

import case_pool  # noqa: E402
import results  # noqa: E402
from case_pool import Verdict  # noqa: E402
from gpu import SKIP, find_torch  # noqa: E402

WHAT = "Milliseconds of models of transformers at one length, by their attention"
IMPLEMENTATIONS = {"attn": "attn", "sdpa": "sdpa", "flex": "flex_attention", "eager": "eager"}
COMPILED = ("backend", "inductor")
PEERS = ("sdpa", "flex", "eager", "inductor")
FEWEST = 5  # rounds that a median is taken of
SMALL = dict(vocab_size=1024, pad_token_id=0, bos_token_id=1, eos_token_id=2)

# name: (kind of transformers, its configuration, what --tiny changes, whether texts are packed)
LLAMA = dict(hidden_size=4096, intermediate_size=14336, num_attention_heads=32, num_key_value_heads=8,
             num_hidden_layers=2, max_position_embeddings=131072)
TINY = dict(hidden_size=64, intermediate_size=96, num_attention_heads=4, num_key_value_heads=2, head_dim=16)
MODELS = {
    "llama": ("llama", LLAMA, TINY, False),  # of 3.1 8B
    "llama-packed": ("llama", LLAMA, TINY, True),
    "gemma2": ("gemma2", dict(  # of 27B: one layer sees a window, one all; softcap
        hidden_size=4608, intermediate_size=36864, num_attention_heads=32, num_key_value_heads=16, head_dim=128,
        query_pre_attn_scalar=144, sliding_window=4096, num_hidden_layers=2, max_position_embeddings=8192),
        dict(TINY, sliding_window=100), False),
    "gpt-oss": ("gpt_oss", dict(  # of 20b: one layer sees a window, one all; sinks
        hidden_size=2880, intermediate_size=2880, num_attention_heads=64, num_key_value_heads=8, head_dim=64,
        sliding_window=128, num_hidden_layers=2, num_local_experts=4, num_experts_per_tok=4),
        dict(TINY, sliding_window=100, num_local_experts=2, num_experts_per_tok=2), False),
}


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    case_pool.add_arguments(parser)
    parser.add_argument("--contestants", default=",".join([*IMPLEMENTATIONS, *COMPILED]))
    parser.add_argument("--tokens", type=int, default=8192)
    parser.add_argument("--tiny", action="store_true", help="small models, 256 tokens, two rounds")
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    options = case_pool.parse(parser)
    options.jobs, known = 1, (*IMPLEMENTATIONS, *COMPILED)
    options.contestants = [name for name in options.contestants.split(",") if name]
    for name in options.contestants:
        if name not in known:
            parser.error(f"--contestants: wanted some of {', '.join(known)}, got {name!r}")
    if options.tiny:
        options.tokens, options.rounds = min(options.tokens, 256), min(options.rounds, 2)
    return options


# ---------------------------------------------------------------------------
# Who competes
# ---------------------------------------------------------------------------


def make_config(transformers, name, options):
    kind, given, tiny, _ = MODELS[name]
    config = transformers.AutoConfig.for_model(kind, **{**SMALL, **given, **(tiny if options.tiny else {})})
    config.use_cache = False
    return config


def make_inputs(torch, name, options):
    generator = torch.Generator().manual_seed(options.seed)
    inputs = {"input_ids": torch.randint(3, 1000, (1, options.tokens), generator=generator)}
    if MODELS[name][3]:
        rng, tokens = random.Random(options.seed), options.tokens
        cuts = [0, *sorted(rng.sample(range(1, tokens), max(3, tokens // 500))), tokens]
        inputs["position_ids"] = torch.cat([torch.arange(b - a) for a, b in zip(cuts, cuts[1:])])[None]
    return {key: x.to(options.device) for key, x in inputs.items()}


def wait(torch, options):
    if options.device == "cuda":
        torch.cuda.synchronize()


class Contestant:
    """One model and how it is called."""

    def __init__(self, torch, options, call, inputs):
        self.torch, self.options, self.call, self.inputs = torch, options, call, inputs
        self.passes = {"forward": self.forward, "step": self.step}

    def forward(self):
        with self.torch.no_grad():
            return self.call(**self.inputs).last_hidden_state

    def step(self):
        self.model.zero_grad(set_to_none=True)
        output = self.call(**self.inputs).last_hidden_state
        output.backward(output.detach())
        return output

    @property
    def model(self):
        return getattr(self.call, "_orig_mod", self.call)

    def first(self):
        """The output, seconds of the first calls, and gigabytes that a step needs."""
        torch, cuda = self.torch, self.options.device == "cuda"
        start = time.time()
        output = self.forward()
        self.step()
        wait(torch, self.options)
        seconds = time.time() - start
        if cuda:
            before = torch.cuda.memory_allocated()
            torch.cuda.reset_peak_memory_stats()
            self.step()
            memory = (torch.cuda.max_memory_allocated() - before) / 1e9
        self.model.zero_grad(set_to_none=True)
        return output, round(seconds, 1), round(memory, 2) if cuda else None

    def milliseconds(self, what):
        wait(self.torch, self.options)
        start = time.perf_counter()
        self.passes[what]()
        wait(self.torch, self.options)
        spent = 1e3 * (time.perf_counter() - start)
        self.model.zero_grad(set_to_none=True)
        return spent


def make_call(torch, transformers, name, contestant, options, weights):
    """What is called; `weights` are those of the first model, for all."""
    def model_of(implementation):
        torch.manual_seed(options.seed)
        config = make_config(transformers, name, options)
        with torch.device(options.device):
            made = transformers.AutoModel.from_config(config, dtype=torch.bfloat16,
                                                      attn_implementation=implementation)
        weights.update({} if weights else made.state_dict())
        made.load_state_dict(weights, assign=True)
        return made.train()

    if contestant == "backend":
        return torch.compile(model_of("eager"), backend="attn")
    if contestant == "inductor":
        try:
            return torch.compile(model_of("sdpa"))
        except ValueError:  # the model knows what sdpa lacks
            return torch.compile(model_of("flex_attention"))
    return model_of(IMPLEMENTATIONS[contestant])


def gather(torch, transformers, name, options):
    """({contestant: Contestant}, {contestant: columns}, [what failed])"""
    inputs, weights, outputs = make_inputs(torch, name, options), {}, {}
    able, columns, failures = {}, {}, []
    for contestant in options.contestants:
        if time.time() > options.until:
            columns[contestant] = {"error": "no time was left"}
            continue
        try:
            call = make_call(torch, transformers, name, contestant, options, weights)
            each = Contestant(torch, options, call, inputs)
            outputs[contestant], seconds, memory = each.first()
            able[contestant], columns[contestant] = each, {"first_s": seconds, "step_GB": memory}
            print(f"{name}: {contestant}: {seconds} s at first", flush=True)
        except Exception as problem:  # not taken, or no memory
            call = each = None
            columns[contestant] = {"error": f"{type(problem).__name__}: {' '.join(str(problem).split())[:160]}"}
            print(f"{name}: {contestant}: {columns[contestant]['error']}", flush=True)
            if contestant in ("attn", "backend"):
                failures.append({"model": name, "contestant": contestant, **columns[contestant]})
        if options.device == "cuda":
            torch.cuda.empty_cache()
    wanted = outputs.get("attn")
    for contestant, output in outputs.items() if wanted is not None else ():
        size, off = (x.float().square().mean().sqrt().item() for x in (wanted, output - wanted))
        columns[contestant]["differs"] = round(off / size, 4)
        if not off <= 0.05 * size:
            failures.append({"model": name, "contestant": contestant, "error": f"differs by {off / size:.3g}"})
            print(f"{name}: {contestant} differs from attn by {off / size:.3g}", flush=True)
    return able, columns, failures


# ---------------------------------------------------------------------------
# How fast?
# ---------------------------------------------------------------------------


def measure(torch, transformers, name, options, rng):
    """(rows, failures) of one model."""
    torch._dynamo.reset()
    able, columns, failures = gather(torch, transformers, name, options)
    rows = []
    for what in ("forward", "step"):
        times = {contestant: [] for contestant in able}
        for number in range(options.rounds + 1):  # the first is not counted
            if number > min(FEWEST, options.rounds) and time.time() > options.until:
                break
            for contestant in rng.sample(list(able), len(able)):
                spent = able[contestant].milliseconds(what)
                if number:
                    times[contestant].append(spent)
        medians = {contestant: statistics.median(spent) for contestant, spent in times.items()}
        for contestant in options.contestants:
            row = {"model": name, "pass": what, "contestant": contestant}
            if contestant in medians:
                row.update(ms=round(medians[contestant], 3), rounds=len(times[contestant]))
                if contestant in ("attn", "backend"):
                    row.update({f"of_{peer}": round(medians[peer] / medians[contestant], 3)
                                for peer in PEERS if peer in medians})
            rows.append({**row, **columns[contestant]})
        print(f"{name:13} {what:8} " + ", ".join(f"{each} {ms:.1f} ms" for each, ms in medians.items()), flush=True)
        for row in rows[-len(options.contestants):]:
            ratios = [f"{key[3:]} {ratio:.2f}x" for key, ratio in row.items() if key.startswith("of_")]
            if ratios:
                print(f"{'':22} speed of {row['contestant']} beside {', '.join(ratios)}", flush=True)
    return rows, failures


def slower(rows):
    """The rows in which attn loses, in words."""
    return [f"{row['model']} {row['pass']}: {row['contestant']} beside {key[3:]} {ratio:.3f}"
            for row in rows for key, ratio in row.items() if key.startswith("of_") and ratio < 1]


def main():
    options = parse_arguments()
    torch = find_torch("cpu" if options.device == "cpu" else "sm_80")
    if torch is None:
        return SKIP
    try:
        import transformers
    except ImportError as missing:
        print(f"skipped: {missing}")
        return SKIP
    import attn.transformers

    transformers.utils.logging.set_verbosity_error()
    attn.transformers.register()
    rng = random.Random(options.seed)

    def check(torch, name, options):
        rows, failures = measure(torch, transformers, name, options, rng)
        return Verdict("; ".join(f"{one['contestant']}: {one['error']}" for one in failures), not failures, rows)
    loop = case_pool.Loop(options, check, case_pool.chosen(options, MODELS)).run()
    behind = slower(loop.rows)
    print(f"slower: {'; '.join(behind) or 'never'}")
    loop.conclude()
    if options.json:
        results.write(options.json, {
            "what": WHAT, "command": results.command(),
            "environment": {**case_pool.environment(torch, options), "transformers": transformers.__version__},
            "tokens": options.tokens, "slower": behind, **loop.report(),
            "rows": results.table(loop.rows, last=("error",)),
        })
    return loop.code()


if __name__ == "__main__":
    sys.exit(main())
