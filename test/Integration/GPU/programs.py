#!/usr/bin/env python3
#===----------------------------------------------------------------------===#
#
# Part of attn, an attention compiler.
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===----------------------------------------------------------------------===#
"""Compiles the programs of test/Programs, which are written in the Warp room,
runs them on a GPU and compares them with float64: bf16 and f16, the programs of
sm_80 and, where the GPU runs them, those of sm_90a. Results are NaN before each
launch, and twice launched are the same where nothing is added in memory.

    programs.py --lib build/lib/libattn.so [--ptxas PATH]

Exit code 0: all as wanted; 1: not; 77: no GPU.
"""

import argparse
import pathlib
import sys

from gpu import SKIP, find_torch

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "python"))

DIM, PAGE, SCALE = 64, 16, 0.125


def attend(torch, q, k, v):
    """o and lse in float64."""
    x = (q.double() @ k.double().transpose(-1, -2)) * SCALE
    if k.shape[-2] == 0:
        return torch.zeros_like(q).double(), torch.full(q.shape[:-1], -torch.inf,
                                                         device=q.device).double()
    return torch.softmax(x, -1) @ v.double(), torch.logsumexp(x, -1)


class Runs:
    """Each gives the arguments of a program, and for some of them what they must be
    after it."""

    def __init__(self, torch, element):
        self.torch = torch
        self.element = {"bf16": torch.bfloat16, "f16": torch.float16}[element]

    def draw(self, *sizes):
        return self.torch.randn(*sizes, device="cuda").to(self.element)

    def split_keys(self, heads, queries, keys):
        q, k, v = (self.draw(heads, rows, DIM) for rows in (queries, keys, keys))
        o, lse = attend(self.torch, q, k, v)
        return [q, k, v, self.torch.empty_like(q), lse.float()], {3: o, 4: lse}

    def paged_keys(self, batch, heads, queries, lengths):
        torch = self.torch
        width = max(1, -(-max(lengths) // PAGE))
        pages = batch * width + 3
        order = torch.randperm(pages, device="cuda")[: batch * width].view(batch, width)
        q = self.draw(batch, heads, queries, DIM)
        k, v = (self.draw(pages, heads, PAGE, DIM) for _ in range(2))
        table = order.clone()
        for b, length in enumerate(lengths):  # of pages that nobody asks for
            table[b, -(-length // PAGE):] = 0
        outputs, sums = torch.empty_like(q).double(), torch.empty(
            batch, heads, queries, device="cuda").double()
        for b, length in enumerate(lengths):
            keys, values = (x[order[b]].transpose(0, 1).reshape(heads, -1, DIM)[:, :length]
                            for x in (k, v))
            outputs[b], sums[b] = attend(torch, q[b], keys, values)
        arguments = [q, k, v, table.int(), torch.tensor(lengths, device="cuda").int(),
                     torch.empty_like(q), sums.float()]
        return arguments, {5: outputs, 6: sums}

    def backward(self, heads, queries, keys):
        torch = self.torch
        q, k, v, do = (self.draw(heads, rows, DIM) for rows in (queries, keys, keys, queries))
        exact = [x.double().requires_grad_() for x in (q, k, v)]
        o, lse = attend(torch, *exact)
        o.backward(do.double())
        delta = (o * do.double()).sum(-1)
        arguments = [q, k, v, do, lse.detach().float(), delta.detach().float()]
        arguments += [torch.empty_like(x) for x in (q, k, v)]
        return arguments, {6: exact[0].grad, 7: exact[1].grad, 8: exact[2].grad}


CASES = [
    ("split-keys", "split_keys", (2, 100, 300)),
    ("split-keys", "split_keys", (1, 64, 64)),
    ("split-keys", "split_keys", (3, 1, 4001)),
    ("paged-keys", "paged_keys", (2, 2, 70, [150, 37])),
    ("paged-keys", "paged_keys", (3, 4, 129, [1, 1000, 64])),
    ("backward", "backward", (2, 100, 150)),
    ("backward", "backward", (1, 64, 64)),
    ("backward", "backward", (4, 1001, 777)),  # rows of lse that TMA cannot take
]


def error(torch, got, wanted, element):
    """The largest one, in units of what is allowed."""
    finite = torch.isfinite(wanted)
    if not bool((got.double() == wanted)[~finite].all()):
        return float("inf")
    if not bool(finite.any()):
        return 0.0
    largest = max(1e-3, float(wanted[finite].abs().max()))
    units = {torch.float32: 1e-5, torch.bfloat16: 2.0**-6, torch.float16: 2.0**-9}
    worst = (got.double() - wanted)[finite].abs().max()
    return float("inf") if bool(worst.isnan()) else float(worst) / (largest * units[got.dtype])


def run(torch, kernel, arguments, expected):
    """The largest error of two launches, and whether their bits are the same."""
    worst, bits = 0.0, []
    for _ in range(2):
        for number in expected:
            arguments[number].fill_(float("nan"))
        kernel.launch(*arguments)
        torch.cuda.synchronize()
        for number, wanted in expected.items():
            worst = max(worst, error(torch, arguments[number], wanted, arguments[0].dtype))
        bits.append([arguments[number].clone() for number in expected])
    return worst, all(torch.equal(a, b) for a, b in zip(*bits))


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--lib", required=True)
    parser.add_argument("--ptxas", help="as of attn.compile; default: the driver's compiler")
    parser.add_argument("--only", default="", help="a part of the names of programs")
    options = parser.parse_args()
    torch = find_torch()
    if torch is None:
        return SKIP
    import attn

    attn.use_library(options.lib)
    torch.manual_seed(1)
    targets = {"sm80": "sm_80"}
    if torch.cuda.get_device_capability() == (9, 0):
        targets["sm90"] = "sm_90a"
    bad = count = 0
    for suffix, target in targets.items():
        for element in ("bf16", "f16"):
            for program, make, sizes in CASES:
                name = f"{program}-{suffix} {element} {sizes}"
                if options.only not in name:
                    continue
                count += 1
                try:
                    text = (ROOT / f"test/Programs/{program}-{suffix}.mlir").read_text()
                    artifact = attn.compile(text.replace("bf16", element), target=target,
                                            ptxas=options.ptxas)
                    arguments, expected = getattr(Runs(torch, element), make)(*sizes)
                    worst, is_same = run(torch, artifact.on_device(), arguments, expected)
                    adds = program == "backward"  # in no order
                    ok = worst <= 1 and (is_same or adds)
                    words = "" if is_same else ", two launches differ"
                    print(f"{'ok  ' if ok else 'FAIL'} {name}: error {worst:.3g}{words}",
                          flush=True)
                    bad += not ok
                except Exception as reason:
                    bad += 1
                    print(f"FAIL {name}: {type(reason).__name__}: {reason}", flush=True)
    print(f"{count - bad} of {count} as wanted")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
