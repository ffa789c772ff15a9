#!/usr/bin/env python3
#===----------------------------------------------------------------------===#
#
# Part of attn, an attention compiler.
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===----------------------------------------------------------------------===#
"""The two forms of gradients whose sums may be in any order, two programs and one, at every
length: up to which number of queries two are faster, beside what the compiler's rule says.

    gradient_forms.py --lib build/lib/libattn.so --json forms.json --commit $(git rev-parse HEAD)
    gradient_forms.py --lib ... --targets sm_80 --dims 64 --lengths 512,600,700,800 --hot

Shapes and times are those of bench.py --backward. Both forms are one artifact, of which each
variant is launched at every length; two programs must give the bits that sums in order have.
A limit is where the times of two neighbouring lengths say that both forms are as fast.
Exit code 0: at each length the rule takes the faster form, or one within --tolerance of it;
1: it does not, or something failed; 77: no GPU.
"""

import argparse
import math
import pathlib
import random
import re
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
sys.path.insert(0, str(HERE.parents[2] / "python"))

import bench  # noqa: E402
import results  # noqa: E402
from gpu import SKIP, find_torch  # noqa: E402
from turns import flush_buffer  # noqa: E402

WHAT = "Milliseconds of gradients whose sums may be in any order: two programs, and one"
LENGTHS = "256,512,768,1024,1536,2048,3072,4096"
FORMS = ("two", "one")  # the variants, by their numbers


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lib", required=True)
    parser.add_argument("--targets", default="sm_90a")
    parser.add_argument("--dims", default="64,128")
    parser.add_argument("--causal", default="0,1")
    parser.add_argument("--lengths", default=LENGTHS)
    parser.add_argument("--element", default="bf16")
    parser.add_argument("--gqa", type=int, default=1, help="query heads to a head of keys")
    parser.add_argument("--hot", action="store_true", help="launch upon launch, L2 warm")
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--warmup", type=int, default=5)
    parser.add_argument("--tolerance", type=float, default=0.03, help="what the rule may lose")
    parser.add_argument("--time-limit", type=float, default=1e9, help="seconds, of measuring")
    parser.add_argument("--dry-run", action="store_true", help="compile only")
    parser.add_argument("--json")
    parser.add_argument("--commit", default="")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    # What bench.py asks for besides.
    vars(options).update(backward=True, plans=None, old=None, old_python="", f32_products="", hidden=2048,
                         logits=1.0, static=False, peers="fa2")
    return options


class Rule(str):
    """The rule of an artifact, of which the variants `two` are two programs."""

    two = (0,)

    @classmethod
    def of(cls, manifest):
        rule = cls(manifest["rule"])
        rule.two = tuple(number for number, variant in enumerate(manifest["variants"])
                         if any(kernel["entry"].endswith("_d_query") for kernel in variant["kernels"]))
        return rule


def limits_of(rule):
    """[(most queries and keys, variant)] of the cases that say so, the last without a limit:
    of 'query_length <= 780 and key_length <= 900 -> 0; 1' [(780, 0), (inf, 1)]. Cases of few
    tiles are left out: the shapes measured have many. None for another rule."""
    *cases, last = rule.split("; ")
    limits = []
    for case in cases:
        condition, variant = case.split(" -> ")
        if "multiprocessors" in condition:
            continue
        found = [re.fullmatch(r"(?:query|key)_length <= (\d+)", part) for part in condition.split(" and ")]
        if not all(found):
            return None
        limits.append((min(int(match[1]) for match in found), int(variant)))
    return limits + [(math.inf, int(last))] if limits else None


def limit_of(rule):
    """The most queries and keys of two programs."""
    two = getattr(rule, "two", (0,))
    limits = [limit for limit, variant in limits_of(rule) or () if variant in two]
    return max(limits, default=None)


def variants_of(rule, length):
    """The variants of two programs and of one, for a length whatever it is."""
    two = getattr(rule, "two", (0,))

    def first(is_two):
        cases = [(limit, variant) for limit, variant in limits_of(rule) if (variant in two) == is_two]
        return next((variant for limit, variant in cases if length <= limit), cases[-1][1])

    return first(True), first(False)


def crossing(times):
    """Of {length: (time of two programs, of one)} the length where both are as fast: 0 or
    infinite where one of them is faster at all lengths; from the first length on at which
    one program is faster."""
    last = None
    for length, (two, one) in sorted(times.items()):
        gain = math.log(two / one)  # of one program
        if gain > 0:
            if last is None:
                return 0
            before, lost = last
            return round(before * (length / before) ** (-lost / (gain - lost)))
        last = length, gain
    return math.inf


def judge(times, limit, tolerance):
    """The lengths at which the rule takes a form that is slower by more than `tolerance`, with
    what it loses there."""
    lost = {}
    for length, (two, one) in times.items():
        taken, other = (two, one) if length <= limit else (one, two)
        if taken > other * (1 + tolerance):
            lost[length] = taken / other - 1
    return lost


def run_shape(options, torch, flush, rng, kernels, rules, dim, causal, length):
    """A row of the results."""
    shape = bench.Gradients(options, torch, dim, dim, causal, length)
    shape.add_peer(options, torch, "fa2")
    bits = {}
    for label, plan, path, error, _ in kernels[str(dim), causal, 0]:
        names = {label: None}
        if label.endswith("-sums"):
            rule = rules[label[:-5], dim, bool(causal)]
            names = {f"{label[:-5]}-{form}": variant
                     for form, variant in zip(FORMS, variants_of(rule, length))}
        for name, variant in names.items():
            shape.add_kernel(options, torch, name, plan, path, error, variant=variant)
            bits[name] = [gradient.clone() for gradient in shape.results]
    for target in options.targets.split(","):
        two = shape.facts[f"{target}-two"]
        # Of longer rows sums in order may have another plan.
        is_few = length <= limit_of(rules[target, dim, bool(causal)])
        if is_few and not all(map(torch.equal, bits[f"{target}-two"], bits[target])):
            two.setdefault("error", "has other bits than sums in order")
    times = shape.measure(options, torch, flush, rng)
    for name, milliseconds in times.items():
        shape.facts.setdefault(name, {})["ms"] = round(milliseconds, 5)
    cells = [f"{name} {entry['ms']:.4f}" if "error" not in entry else f"{name} ERROR {entry['error'][:200]}"
             for name, entry in shape.facts.items()]
    print(f"d={dim:<4} {'causal' if causal else 'full  '} s={length:<5} " + "  ".join(cells), flush=True)
    return {"d": dim, "causal": bool(causal), "s": length, "contestants": shape.facts}


def summarize(rows, rules, tolerance):
    """A row for each target, dimension and mask: where the forms are as fast, and what the
    rule says and loses."""
    summary = []
    for (target, dim, causal), rule in rules.items():
        times = {}
        for row in rows:
            entries = [row["contestants"].get(f"{target}-{form}", {}) for form in FORMS]
            if (row["d"], row["causal"]) == (dim, causal) and all("ms" in entry for entry in entries):
                times[row["s"]] = [entry["ms"] for entry in entries]
        limit = limit_of(rule)
        lost = judge(times, limit, tolerance)
        found = crossing(times)
        summary.append({
            "target": target, "d": dim, "causal": causal, "limit": limit,
            "as_fast_at": None if math.isinf(found) else found, "slower_at": sorted(lost),
            "lost": round(max(lost.values(), default=0.0), 3)})
        print(f"{target} d={dim} {'causal' if causal else 'full'}: both forms are as fast at "
              f"{'no length, two programs are faster' if math.isinf(found) else found}; the rule says {limit}"
              + (f", and loses {max(lost.values()):.1%} at {', '.join(map(str, sorted(lost)))}" if lost else ""))
    return summary


def main():
    options = parse_arguments()
    options.lib = str(pathlib.Path(options.lib).resolve())
    import attn

    attn.use_library(options.lib)
    rows, rules = [], {}
    with tempfile.TemporaryDirectory() as directory:
        kernels = bench.compile_kernels(options, pathlib.Path(directory))
        for (dim, causal, _), compiled in kernels.items():
            for label, _, path, error, _ in compiled:
                if error:
                    return 1
                if label.endswith("-sums"):
                    rule = Rule.of(attn.Artifact.load(path.read_bytes()).manifest)
                    rules[label[:-5], int(dim), bool(causal)] = rule
        for key, rule in rules.items():
            if limit_of(rule) is None:
                print(f"{key}: wanted variants by the number of queries, got the rule {rule!r}")
                return 1
        if options.dry_run:
            print(f"{len(rules)} artifacts of two forms compiled")
            return 0
        torch = find_torch()
        if torch is None:
            return SKIP
        torch.manual_seed(options.seed)
        rng, flush = random.Random(options.seed), flush_buffer(torch)
        wanted = [(dim, causal, length) for dim in bench.numbers(options.dims)
                  for causal in bench.numbers(options.causal) for length in bench.numbers(options.lengths)]
        deadline = time.monotonic() + options.time_limit
        for shape in wanted:
            if time.monotonic() < deadline:
                rows.append(run_shape(options, torch, flush, rng, kernels, rules, *shape))
        environment = bench.environment(options, torch)
    summary = summarize(rows, rules, options.tolerance)
    failed = results.failures(rows)
    if len(rows) < len(wanted):
        print(f"{len(wanted) - len(rows)} shapes not reached in {options.time_limit:g} s")
    print(f"{len(rows)} shapes, {len(failed)} failures, {sum(len(row['slower_at']) for row in summary)} "
          f"where the rule loses more than {options.tolerance:.0%}")
    if options.json:
        results.write(options.json, results.contest(WHAT, environment, rows, limits=results.table(summary)))
    return 1 if failed or len(rows) < len(wanted) or any(row["slower_at"] for row in summary) else 0


if __name__ == "__main__":
    sys.exit(main())
