#!/usr/bin/env python3
#===----------------------------------------------------------------------===#
#
# Part of attn, an attention compiler.
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===----------------------------------------------------------------------===#
"""attn.torch.flex_attention over the matrix that PyTorch tests its own with: score and
mask functions (flex_functions.py), each alone and drawn pairs of both, by shapes and
element types. o, lse and the gradients of q, k, v and of what is captured against
PyTorch's eager evaluation in float64, by the error rule.

    flex_matrix.py --lib build/lib/libattn.so                          on the CPU
    flex_matrix.py --lib ... --device cuda --count 1000 --lengthen 5 --time-limit 500
    flex_matrix.py --lib ... --only learned_,bfloat16

Exit code 0: all right; 1: not; 77: no PyTorch, or no GPU.
"""

import dataclasses
import math
import random
import sys

import matrix
from flex_functions import MASKS, SCORES, Maker

PAIRS = 150  # drawn of scores and masks, besides each alone


@dataclasses.dataclass(frozen=True)
class Shape:
    b: int = 2
    heads: int = 4
    kv_heads: int = 4
    s: int = 64
    t: int = 64
    d: int = 16
    dv: int = 0  # 0: d
    kv_b: int = 0  # 0: b
    strides: str = ""  # "bshd", "columns": each row has elements behind it
    block: tuple = ()
    scale: float = None


SHAPES = {
    "plain": Shape(), "d64": Shape(d=64, s=72, t=72), "d128": Shape(d=128, s=48, t=48), "s37": Shape(s=37, t=37),
    "s277": Shape(b=1, heads=2, kv_heads=2, s=277, t=277), "short_queries": Shape(s=32, t=64),
    "long_queries": Shape(s=80, t=48), "four_to_one": Shape(heads=8, kv_heads=2, s=16, t=72, d=64),
    "two_to_one": Shape(kv_heads=2, s=45, t=45), "one_key_head": Shape(kv_heads=1, s=45, t=61),
    "one_batch_of_keys": Shape(b=3, kv_b=1, kv_heads=2, s=40, t=40), "decode": Shape(b=3, heads=8, kv_heads=2, s=1, t=130, d=64),
    "few_queries": Shape(b=5, heads=4, kv_heads=4, s=3, t=77, d=32, kv_b=1), "d17": Shape(d=17, s=33, t=33),
    "d24": Shape(d=24, s=33, t=50), "d94": Shape(d=94, s=33, t=33), "d121": Shape(d=121, b=1, s=40, t=40),
    "d256": Shape(d=256, b=1, heads=2, kv_heads=1, s=40, t=40), "wide_values": Shape(d=16, dv=32, s=50, t=50),
    "narrow_values": Shape(d=64, dv=24, s=50, t=50), "transposed": Shape(strides="bshd", s=50, t=61),
    "columns": Shape(strides="columns", s=50, t=61), "blocks_of_16_by_32": Shape(block=(16, 32), s=70, t=90),
    "blocks_of_64": Shape(block=(64, 64), s=70, t=90), "scaled": Shape(scale=0.4, s=40, t=40),
}


def all_cases():
    """Names: score, mask, shape, type."""
    rng = random.Random(0)
    both = [(score, "-") for score in SCORES] + [("-", mask) for mask in MASKS]
    both += [(rng.choice(list(SCORES)), rng.choice(list(MASKS))) for _ in range(PAIRS)]
    return [f"{score} {mask} {shape} {dtype}" for score, mask in dict.fromkeys(both) for shape in SHAPES
            for dtype in matrix.DTYPES]


def make_tensor(torch, shape, dtype, device, strides, generator):
    values = torch.randn(shape, generator=generator).to(dtype).to(device)
    if strides == "bshd":
        return values.transpose(1, 2).contiguous().transpose(1, 2)
    if strides == "columns":
        place = torch.full((*shape[:3], shape[3] + 9), math.nan, dtype=dtype, device=device)
        place[..., 1:1 + shape[3]] = values
        return place[..., 1:1 + shape[3]]
    return values


class Case:
    """One name: its tensors, and what each side makes of them."""

    def __init__(self, torch, name, options):
        self.torch, self.device = torch, options.device
        self.score, self.mask, shape, dtype = name.split(" ")
        self.dtype, self.shape = getattr(torch, dtype), SHAPES[shape]
        if options.lengthen != 1:
            factor = options.lengthen
            self.shape = dataclasses.replace(self.shape, s=self.shape.s * factor if self.shape.s > 3 else self.shape.s,
                                             t=self.shape.t * factor)
        self.seed = matrix.seed_of(name, options.seed)
        generator, one = torch.Generator().manual_seed(self.seed), self.shape
        sizes = [(one.b, one.heads, one.s, one.d), (one.kv_b or one.b, one.kv_heads, one.t, one.d),
                 (one.kv_b or one.b, one.kv_heads, one.t, one.dv or one.d), (one.b, one.heads, one.s, one.dv or one.d)]
        self.inputs = [make_tensor(torch, size, self.dtype, self.device, one.strides, generator) for size in sizes]
        self.d_o = self.inputs.pop()
        self.d_lse = torch.randn(sizes[0][:3], generator=generator).to(self.device)
        self.scale = 1 / math.sqrt(one.d) if one.scale is None else one.scale

    def functions(self, precision=None):
        """(score, mask, leaves of both)"""
        one = self.shape
        maker = Maker(self.torch, (one.b, one.heads, one.s, one.t), self.dtype, self.device, self.seed, precision)
        score = None if self.score == "-" else SCORES[self.score](maker)
        mask = None if self.mask == "-" else MASKS[self.mask](maker)
        return score, mask, maker.leaves

    def block_mask(self, mask):
        from torch.nn.attention.flex_attention import create_block_mask, noop_mask

        one = self.shape
        if mask is None and not one.kv_b and not one.block:
            return None
        options = dict(BLOCK_SIZE=one.block) if one.block else {}
        return create_block_mask(mask or noop_mask, one.b, one.heads, one.s, one.t, device=self.device, **options)

    def leaves(self, precision=None):
        return [x.detach().to(precision or x.dtype).requires_grad_() for x in self.inputs]

    def gradients(self, o, lse, leaves):
        """[o, lse, the gradients of leaves]"""
        shown = lse.detach().isfinite()
        loss = (o * self.d_o.to(o.dtype)).sum() + (lse[shown] * self.d_lse[shown].to(lse.dtype)).sum()
        found = self.torch.autograd.grad(loss, leaves, allow_unused=True, materialize_grads=True)
        return [o.detach(), lse.detach(), *found]

    def ours(self):
        from attn.torch import flex_attention

        score, mask, learned = self.functions()
        leaves, one = self.leaves(), self.shape
        if one.strides:
            leaves = [x.requires_grad_() for x in self.inputs]
        o, lse = flex_attention(*leaves, score, self.block_mask(mask), one.scale, one.heads != one.kv_heads,
                                return_lse=True)
        return self.gradients(o, lse, leaves + learned)

    def exact(self):
        """By PyTorch, in float64."""
        from torch._higher_order_ops.flex_attention import math_attention
        from torch.nn.attention import flex_attention as module

        score, mask, learned = self.functions(self.torch.float64)
        leaves = self.leaves(self.torch.float64)
        block_mask = self.block_mask(mask) or module._create_empty_block_mask(*leaves[:2])
        o, lse = math_attention(*leaves, score or module._identity, block_mask.as_tuple(), self.scale, {})[:2]
        return self.gradients(o, lse * math.log(2.0), leaves + learned)

    def plain(self):
        """Unfused, rounded after each step."""
        import unfused

        score, mask, learned = self.functions(self.torch.float32)
        leaves = self.leaves(self.torch.float32)
        o, lse = unfused.attend(self.torch, *leaves, score, mask, self.scale, self.dtype)
        return self.gradients(o, lse, leaves + learned)

    def lse_of_single_scores(self):
        import unfused

        with self.torch.no_grad():
            score, mask, _ = self.functions(self.torch.float32)
            leaves = self.leaves(self.torch.float64)
            return unfused.attend(self.torch, *leaves, score, mask, self.scale, score_type=self.torch.float32)[1]


def check(torch, name, options):
    """A list of what is wrong."""
    import unfused

    case = Case(torch, name, options)
    got, exact, plain = case.ours(), case.exact(), case.plain()
    wrong = []
    lost = unfused.truncation(torch, *case.inputs[:2], case.scale)
    largest = case.inputs[2].double().abs().max().item()
    names = ["o", "lse", "d_q", "d_k", "d_v", *(f"d_captured{n}" for n in range(len(got) - 5))]
    for what, g, e, p in zip(names, got, exact, plain):
        found = unfused.disagreement(g, e)
        if not found and what == "o":
            found = unfused.judge_output(torch, g, e, p, largest, lost,
                                         case.dtype == torch.float32 and options.device == "cuda")
        elif not found and what == "lse":
            found = unfused.judge_lse(torch, g, e, case.lse_of_single_scores(), lost)
        elif not found:
            found = unfused.judge_gradient(torch, g, e, p, unfused.NAMES[str(case.dtype)])
        if found:
            wrong.append(f"{what}: {found}")
    return wrong


def kind(name):
    score, mask, *_ = name.split(" ")
    return f"{score} {mask}"


if __name__ == "__main__":
    sys.exit(matrix.main(matrix.parse_arguments(__doc__, 150), all_cases(), check, kind))
