#===----------------------------------------------------------------------===#
#
# Part of attn, an attention compiler.
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===----------------------------------------------------------------------===#
"""The variants that are timed beside FlexAttention, each said twice: as a
program of ours, and as the functions that FlexAttention takes."""

import dataclasses
import random
from typing import Callable

WINDOW, PREFIX, SOFTCAP, DOCUMENT = 1024, 2048, 30.0, 1300
DEVICE = "cuda"  # where captured tensors lie
CAUSAL = "%c = arith.cmpi sge, %i, %j : i32\n"


@dataclasses.dataclass
class Variant:
    program: dict  # arguments of attn.attention
    flex: Callable = lambda torch: (None, None)  # (score_mod, mask_mod)
    captured: Callable = lambda torch: []  # the tensors captured, in order
    sink: Callable = lambda torch: None


def causal(b, h, i, j):
    return i >= j


def table_lookup(torch, values, dtype=None):
    return torch.tensor(values, device=DEVICE, dtype=dtype)


def make_variants(length, heads):
    """{name: Variant} for one length and number of heads."""
    rng = random.Random(length)
    fixed_documents = [i // DOCUMENT for i in range(length)]
    cuts = sorted(rng.sample(range(1, length), 19))
    offsets = [0, *cuts, length]
    random_documents = [sum(cut <= i for cut in cuts) for i in range(length)]
    slopes = [2.0 ** (-8.0 * (h + 1) / heads) for h in range(heads)]
    blocks = length // 128
    block_map = [[rng.random() < 0.01 or i == j for j in range(blocks)] for i in range(blocks)]
    few = set(rng.sample(range(blocks * blocks), max(1, blocks * blocks // 100)))
    one_percent = [[i * blocks + j in few for j in range(blocks)] for i in range(blocks)]

    def documents(torch, ids=fixed_documents):
        doc = table_lookup(torch, ids, torch.int32)
        return None, lambda b, h, i, j: (doc[i] == doc[j]) & (i >= j)

    def alibi(torch):
        slope = table_lookup(torch, slopes, torch.float32)
        return (lambda x, b, h, i, j: x + slope[h] * (j - i)), causal

    def relative_table(torch):
        table = relative_values(torch)
        return (lambda x, b, h, i, j: x + table[h, (i - j).clamp(-128, 128) + 128]), causal

    def relative_values(torch):
        generator = torch.Generator().manual_seed(7)
        return torch.randn(heads, 257, generator=generator).to(DEVICE)

    def neighbourhood(torch):
        def near(b, h, i, j):
            rows = (i // 128 - j // 128).abs() <= 6
            return rows & ((i % 128 - j % 128).abs() <= 6)

        return None, near

    def blocks_of(torch, block_map=block_map):
        present = table_lookup(torch, block_map, torch.bool)
        return None, lambda b, h, i, j: present[i // 128, j // 128]

    ids = "tensor<?xi32>"
    return {
        "full": Variant({}),
        "causal": Variant({"variants": ["causal"]}, lambda torch: (None, causal)),
        "causal_region": Variant(
            {"mask": CAUSAL + "attn.yield %c : i1"}, lambda torch: (None, causal)
        ),
        "alibi_causal": Variant(
            {"variants": ["alibi", "causal"]}, alibi
        ),
        "window_causal": Variant(
            {"variants": [f"window<left = {WINDOW}, right = 0>"]},
            lambda torch: (None, lambda b, h, i, j: (i >= j) & (i - j <= WINDOW)),
        ),
        "softcap_causal": Variant(
            {"variants": [f"softcap<{SOFTCAP} : f32>", "causal"]},
            lambda torch: (lambda x, b, h, i, j: SOFTCAP * torch.tanh(x / SOFTCAP), causal),
        ),
        "document_causal": Variant(
            {
                "variants": ["causal"],
                "captures": [("doc", ids)],
                "sorted_captures": [0],
                "mask": f"""%m = attn.capture_load %doc[%i] : {ids}
                            %n = attn.capture_load %doc[%j] : {ids}
                            %s = arith.cmpi eq, %m, %n : i32
                            attn.yield %s : i1""",
            },
            documents,
            lambda torch: [table_lookup(torch, fixed_documents, torch.int32)],
        ),
        "document_random": Variant(
            {
                "variants": ["causal"],
                "captures": [("offsets", ids)],
                "mask": f"""%m = attn.capture_search %offsets[], %i : {ids}
                            %n = attn.capture_search %offsets[], %j : {ids}
                            %s = arith.cmpi eq, %m, %n : i32
                            attn.yield %s : i1""",
            },
            lambda torch: documents(torch, random_documents),
            lambda torch: [table_lookup(torch, offsets, torch.int32)],
        ),
        "prefix_lm": Variant(
            {
                "mask": CAUSAL
                + f"""%p = arith.constant {PREFIX} : i32
                      %d = arith.cmpi slt, %j, %p : i32
                      %m = arith.ori %c, %d : i1
                      attn.yield %m : i1"""
            },
            lambda torch: (None, lambda b, h, i, j: (j < PREFIX) | (i >= j)),
        ),
        "rel_bias": Variant(
            {
                "score": """%d = arith.subi %i, %j : i32
                            %f = arith.sitofp %d : i32 to f32
                            %y = arith.addf %x, %f : f32
                            attn.yield %y : f32"""
            },
            lambda torch: (lambda x, b, h, i, j: x + (i - j), None),
        ),
        "rel_table": Variant(
            {
                "variants": ["causal"],
                "captures": [("table", "tensor<?x?xf32>")],
                "score": """%lo = arith.constant -128 : i32
                            %hi = arith.constant 128 : i32
                            %d = arith.subi %i, %j : i32
                            %e = arith.maxsi %d, %lo : i32
                            %g = arith.minsi %e, %hi : i32
                            %n = arith.addi %g, %hi : i32
                            %t = attn.capture_load %table[%h, %n] : tensor<?x?xf32>
                            %y = arith.addf %x, %t : f32
                            attn.yield %y : f32""",
            },
            relative_table,
            lambda torch: [relative_values(torch)],
        ),
        "dilated": Variant(
            {
                "mask": CAUSAL
                + """%two = arith.constant 2 : i32
                     %zero = arith.constant 0 : i32
                     %w = arith.constant 2048 : i32
                     %d = arith.subi %i, %j : i32
                     %r = arith.remsi %d, %two : i32
                     %e = arith.cmpi eq, %r, %zero : i32
                     %n = arith.cmpi sle, %d, %w : i32
                     %f = arith.andi %e, %n : i1
                     %m = arith.andi %c, %f : i1
                     attn.yield %m : i1"""
            },
            lambda torch: (
                None,
                lambda b, h, i, j: (i >= j) & ((i - j) % 2 == 0) & (i - j <= 2048),
            ),
        ),
        "neighbourhood_2d": Variant(
            {
                "mask": """%w = arith.constant 128 : i32
                           %six = arith.constant 6 : i32
                           %iy = arith.divui %i, %w : i32
                           %jy = arith.divui %j, %w : i32
                           %ix = arith.remui %i, %w : i32
                           %jx = arith.remui %j, %w : i32
                           %dy = arith.subi %iy, %jy : i32
                           %dx = arith.subi %ix, %jx : i32
                           %ay = math.absi %dy : i32
                           %ax = math.absi %dx : i32
                           %my = arith.cmpi sle, %ay, %six : i32
                           %mx = arith.cmpi sle, %ax, %six : i32
                           %m = arith.andi %my, %mx : i1
                           attn.yield %m : i1"""
            },
            neighbourhood,
        ),
        "sink_causal": Variant(
            {"variants": ["causal"], "sink": True},
            lambda torch: (None, causal),
            lambda torch: [torch.linspace(-2.0, 2.0, heads, device=DEVICE)],
            lambda torch: torch.linspace(-2.0, 2.0, heads, device=DEVICE),
        ),
        "block_sparse": Variant(
            {
                "captures": [("present", "tensor<?x?xi1>")],
                "mask": """%w = arith.constant 128 : i32
                           %iy = arith.divui %i, %w : i32
                           %jy = arith.divui %j, %w : i32
                           %m = attn.capture_load %present[%iy, %jy] : tensor<?x?xi1>
                           attn.yield %m : i1"""
            },
            blocks_of,
            lambda torch: [table_lookup(torch, block_map, torch.bool)],
        ),
        "block_sparse_1_percent": Variant(
            {
                "captures": [("present", "tensor<?x?xi1>")],
                "mask": """%w = arith.constant 128 : i32
                           %iy = arith.divui %i, %w : i32
                           %jy = arith.divui %j, %w : i32
                           %m = attn.capture_load %present[%iy, %jy] : tensor<?x?xi1>
                           attn.yield %m : i1"""
            },
            lambda torch: blocks_of(torch, one_percent),
            lambda torch: [table_lookup(torch, one_percent, torch.bool)],
        ),
    }
