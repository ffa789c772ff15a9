#===----------------------------------------------------------------------===#
#
# Part of attn, an attention compiler.
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===----------------------------------------------------------------------===#
"""Random programs whose scores have terms of any size, against float64.

Scores get distances times anything up to 1e35, penalties down to the lowest
number of f32, constants, caps and -inf; masks hide what they like, whole rows
too; f16, bf16 and f32, sinks and dropout. attn-run --check judges each: none may
be NaN where the definition is finite, all must obey the error rule.

  random_scores.py --bin build/bin --cases 2000
  random_scores.py --bin build/bin --target sm_90a --cases 300 --jobs 16
"""

import argparse
import concurrent.futures
import pathlib
import random
import subprocess
import sys
import tempfile

LOWEST = "0xFF7FFFFF"  # of f32
HIDDEN = "0xFF800000"  # -inf
RATES = ["0.0625", "-0.5", "1.0e+3", "1.0e+8", "-1.0e+8", "1.0e+30", "-1.0e+35"]
PENALTIES = [LOWEST, LOWEST, "-1.0e+30", "-1.0e+9", "-1.0e+4", HIDDEN, "1.0e+9", "3.0e+38"]
CONSTANTS = [LOWEST, "-1.0e+30", "3.0e+38", "0.0", "-7.5"]
# Not two of these in one score. f32 rounds such a sum to more than there is
# between two keys, or overflows: the score itself is another one than in f64, and
# no rule can tell what a kernel adds to that. (For the same reason 1.0e+9 and not
# 1.0e+8 above: f32 then keeps nothing of x, where of x + 1.0e+8 it keeps whether x
# is above 4, which is chance.)
HUGE = {value for value in RATES + PENALTIES + CONSTANTS
        if value == LOWEST or value != HIDDEN and abs(float(value)) > 1e6}


class Region:
    """Lines of scalar code on i, j and x."""

    def __init__(self, rng):
        self.rng, self.lines, self.is_huge = rng, [], False

    def add(self, text, type=None):
        name = f"%v{len(self.lines)}"
        self.lines.append(f"{name} = {text}" + (f" : {type}" if type else ""))
        return name

    def integer(self, value):
        return self.add(f"arith.constant {value}", "i32")

    def number(self, value):
        return self.add(f"arith.constant {value}", "f32")

    def condition(self, depth=0):
        draw, rng = self.rng.random(), self.rng
        if depth < 2 and draw < 0.35:
            a, b = self.condition(depth + 1), self.condition(depth + 1)
            return self.add(f"arith.{rng.choice(['andi', 'ori', 'xori'])} {a}, {b}", "i1")
        if draw < 0.5:
            position = rng.choice(["%i", "%j"])
            limit = self.integer(rng.choice([0, 1, 5, 31, 64, 100]))
            return self.add(f"arith.cmpi {rng.choice(['slt', 'sge'])}, {position}, {limit}", "i32")
        if draw < 0.75:
            shifted = self.add(f"arith.addi %i, {self.integer(rng.choice([0, 0, 1, -3, 40]))}", "i32")
            return self.add(f"arith.cmpi {rng.choice(['sle', 'sgt'])}, %j, {shifted}", "i32")
        sum = rng.choice(["%i", "%j", self.add("arith.addi %i, %j", "i32")])
        rest = self.add(f"arith.remui {sum}, {self.integer(rng.choice([2, 3, 5, 16]))}", "i32")
        return self.add(f"arith.cmpi {rng.choice(['eq', 'ne'])}, {rest}, {self.integer(0)}", "i32")

    def choose(self, values):
        value = self.rng.choice([v for v in values if not (self.is_huge and v in HUGE)])
        self.is_huge |= value in HUGE
        return self.number(value)

    def score(self):
        rng, x = self.rng, "%x"
        for _ in range(rng.randint(1, 3)):
            kind = rng.choice(["distance", "penalty", "penalty", "constant", "cap", "factor"])
            if kind == "distance":
                distance = self.add(f"arith.subi {rng.choice(['%j, %i', '%i, %j'])}", "i32")
                distance = self.add(f"arith.sitofp {distance} : i32 to f32")
                term = self.add(f"arith.mulf {distance}, {self.choose(RATES)}", "f32")
                x = self.add(f"arith.{rng.choice(['addf', 'subf'])} {x}, {term}", "f32")
            elif kind == "penalty":
                values = [self.choose(PENALTIES), self.number("0.0")]
                rng.shuffle(values)
                term = self.add(f"arith.select {self.condition()}, {', '.join(values)}", "f32")
                x = self.add(f"arith.addf {x}, {term}", "f32")
            elif kind == "constant":
                x = self.add(f"arith.select {self.condition()}, {self.choose(CONSTANTS)}, {x}", "f32")
            elif kind == "cap" and x == "%x":
                cap = self.number("30.0")
                x = self.add(f"arith.mulf {self.add(f'math.tanh {x}', 'f32')}, {cap}", "f32")
            elif kind == "factor" and not self.is_huge:
                x = self.add(f"arith.mulf {x}, {self.number(rng.choice(['0.5', '4.0', '-1.0']))}", "f32")
        return x


def program(number, seed):
    """The text of one program, and the sizes and scalars that attn-run takes."""
    rng = random.Random(f"{seed} {number}")
    element, dim = rng.choice(["bf16", "f16", "f32"]), rng.choice([16, 32, 64])
    tensor = f"tensor<?x?x?x{dim}x{element}>"
    arguments, types = ["%q", "%k", "%v"], [tensor] * 3
    options, attributes = "", []
    if rng.random() < 0.2:
        arguments.append("%sink")
        types.append("tensor<?xf32>")
        options += " sink(%sink)"
    if rng.random() < 0.2:
        arguments += ["%seed", "%offset"]
        types += ["i32", "i32"]
        options += " dropout(%seed, %offset)"
        attributes.append("dropout_p = 0.25 : f64")
    regions = ""
    positions = "%b: i32, %h: i32, %i: i32, %j: i32"
    if rng.random() < 0.9:
        score = Region(rng)
        result = score.score()
        lines = "".join(f"      {line}\n" for line in score.lines)
        regions += f"    score(%x: f32, {positions}) {{\n{lines}      attn.yield {result} : f32\n    }}\n"
    if rng.random() < 0.6:
        mask = Region(rng)
        result = mask.condition()
        lines = "".join(f"      {line}\n" for line in mask.lines)
        regions += f"    mask({positions}) {{\n{lines}      attn.yield {result} : i1\n    }}\n"
    signature = ", ".join(f"{name}: {type}" for name, type in zip(arguments, types))
    attributes = f" {{{', '.join(attributes)}}}" if attributes else ""
    text = (f"func.func @attention({signature}) -> ({tensor}, tensor<?x?x?xf32>) {{\n"
            f"  %o, %lse = attn.attention %q, %k, %v{options}{attributes}\n{regions}"
            f"    : ({', '.join(types)}) -> ({tensor}, tensor<?x?x?xf32>)\n"
            f"  return %o, %lse : {tensor}, tensor<?x?x?xf32>\n}}\n")
    keys = rng.choice([1, 7, 64, 100, 129, 200])
    queries = rng.choice([1, 5, 64, 130])
    group = rng.choice([1, 2])
    call = [f"--shape=b={rng.choice([1, 2])},h={2 * group},hkv=2,sq={queries},sk={keys}"]
    if "%seed" in arguments:
        call += [f"--scalar=seed={number}", "--scalar=offset=7"]
    return text, call


def run(number, options, directory):
    text, call = program(number, options.seed)
    path = pathlib.Path(directory) / f"{number}.mlir"
    path.write_text(text)
    command = [options.bin / "attn-run", path, f"--target={options.target}", *call,
               f"--seed={number}", "--check"]
    call = " ".join(call)
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    except subprocess.TimeoutExpired:
        return number, text, call, "took more than 120 s"
    if done.returncode == 0:
        return number, text, call, ""
    lines = [line for line in (done.stdout + done.stderr).splitlines() if "FAIL" in line or "error" in line]
    return number, text, call, f"status {done.returncode}: " + "; ".join(lines[:3])


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", type=pathlib.Path, required=True, help="where attn-run is")
    parser.add_argument("--target", default="cpu")
    parser.add_argument("--cases", type=int, default=100)
    parser.add_argument("--first", type=int, default=0, help="the first case's number")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--keep", type=pathlib.Path, help="where failing programs go")
    options = parser.parse_args()
    wrong = 0
    with tempfile.TemporaryDirectory() as directory, \
            concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        numbers = range(options.first, options.first + options.cases)
        for count, (number, text, call, failure) in enumerate(
                pool.map(lambda n: run(n, options, directory), numbers), 1):
            if failure:
                wrong += 1
                print(f"case {number} ({call}): {failure}", flush=True)
                if options.keep:
                    options.keep.mkdir(parents=True, exist_ok=True)
                    (options.keep / f"{number}.mlir").write_text(f"// {call}\n{text}")
            if count % 100 == 0:
                print(f"{count} of {options.cases}, {wrong} wrong", file=sys.stderr, flush=True)
    print(f"{options.cases - wrong} of {options.cases} programs obey the error rule on {options.target}")
    return 1 if wrong or not options.cases else 0


if __name__ == "__main__":
    sys.exit(main())
