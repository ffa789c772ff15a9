#!/usr/bin/env python3
#===----------------------------------------------------------------------===#
#
# Part of attn, an attention compiler.
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===----------------------------------------------------------------------===#
"""The functions of flash-attn over the matrix that flash-attn tests them with: head
dimensions, lengths, kinds of heads, causal, windows, slopes, softcap, dropout, packed
sequences; out, lse and gradients against float64 by the error rule. Dropped weights are
read from a call whose values are unit vectors.

    flash_matrix.py --lib build/lib/libattn.so                        on the CPU
    flash_matrix.py --lib ... --device cuda --count 1000 --lengthen 4 --time-limit 500
    flash_matrix.py --lib ... --only "varlen d256",kvcache

Exit code 0: all right; 1: not; 77: no PyTorch, or no GPU.
"""

import itertools
import math
import random
import sys

import matrix
from flash_cache import check_cache

FUNCTIONS = ("func", "qkvpacked", "kvpacked", "varlen", "varlen_qkvpacked", "varlen_kvpacked")
DIMS = (16, 32, 40, 59, 64, 80, 96, 111, 128, 160, 192, 224, 256)
LENGTHS = ((1, 147), (113, 203), (128, 217), (113, 211), (108, 256), (97, 97), (128, 128), (200, 200), (256, 128),
           (127, 193), (239, 1), (3, 250), (64, 200), (1, 1), (2, 2), (5, 5), (17, 17), (31, 32), (32, 31))
FLAGS = ("causal", "local", "alibi", "softcap", "dropout", "deterministic")
HEADS = {"mha": (6, 6), "gqa": (6, 2), "mqa": (6, 1)}
DROPPED = 0.17
LONGEST_IDENTITY = 256  # of the values that show what was dropped


def all_cases():
    """Names: function, head dimension, lengths, type, heads, and flags."""
    rng, names = random.Random(0), []
    for function, dim, (s, t), dtype in itertools.product(FUNCTIONS, DIMS, LENGTHS, matrix.DTYPES):
        if "qkvpacked" in function:
            s = t
        heads = "mha" if "qkvpacked" in function else rng.choice(list(HEADS))
        flags = [flag for flag in FLAGS if rng.random() < (0.5 if flag in ("causal", "local") else 0.25)]
        if "softcap" in flags and "dropout" in flags:
            flags.remove("dropout")
        names.append(" ".join([function, f"d{dim}", f"{s}x{t}", dtype, heads, *flags]))
    for dim, (s, t), dtype, heads in itertools.product((32, 59, 64, 80, 128, 256), LENGTHS, matrix.DTYPES, HEADS):
        flags = [flag for flag in ("causal", "local", "alibi", "new", "rotary", "halves", "leftpad", "index", "paged")
                 if rng.random() < 0.4]
        names.append(" ".join(["kvcache", f"d{dim}", f"{s}x{t}", dtype, heads, *flags]))
    return list(dict.fromkeys(names))


def functions(torch, flags, s, t, window, slopes, softcap):
    """(score, mask) of one sequence, or of a batch of them: the last query is joined with
    the last key."""
    def score(x, b, h, q, k):
        if softcap:
            x = softcap * torch.tanh(x / softcap)
        if slopes is not None:
            slope = slopes[b, h] if slopes.dim() == 2 else slopes[h]
            x = x - slope * (q + (t - s) - k).abs()
        return x

    def mask(b, h, q, k):
        shown = k >= 0
        if "causal" in flags:
            shown = shown & (k <= q + (t - s))
        if window[0] >= 0:
            shown = shown & (k >= q + (t - s) - window[0])
        if window[1] >= 0:
            shown = shown & (k <= q + (t - s) + window[1])
        return shown
    return (score if softcap or slopes is not None else None), mask


class Case:
    """A name's options and tensors."""

    def __init__(self, torch, name, options):
        self.torch, self.device = torch, options.device
        self.function, dim, lengths, dtype, heads, *self.flags = name.split(" ")
        self.dim, self.dtype = int(dim[1:]), getattr(torch, dtype)
        self.heads, self.kv_heads = HEADS[heads]
        self.seed = matrix.seed_of(name, options.seed)
        self.generator = torch.Generator().manual_seed(self.seed)
        self.rng = random.Random(self.seed)
        self.s, self.t = (n * options.lengthen if n > 3 else n for n in map(int, lengths.split("x")))
        self.is_packed = self.function.startswith("varlen")
        self.batch = 3 if self.is_packed else 2
        self.window = (self.rng.randrange(self.t), self.rng.randrange(self.t)) if "local" in self.flags else (-1, -1)
        self.softcap = 50.0 if "softcap" in self.flags else 0.0
        self.slopes = None
        if "alibi" in self.flags:
            shape = (self.batch, self.heads) if self.rng.random() < 0.5 else (self.heads,)
            self.slopes = (torch.rand(shape, generator=self.generator) * 0.3).to(self.device)
        self._make_tensors()
        self.dropout = DROPPED if "dropout" in self.flags and self.keys() <= LONGEST_IDENTITY else 0.0
        self.keep = self._kept() if self.dropout else None

    def normal(self, *shape):
        return self.torch.randn(shape, generator=self.generator).to(self.dtype).to(self.device)

    def _make_tensors(self):
        """q, k, v as the function sees them, and the lengths of sequences."""
        if self.is_packed:
            self.keys_of = [self.rng.randint(0, self.t) for _ in range(self.batch)]
            same = "qkvpacked" in self.function or self.rng.random() < 0.3
            self.queries_of = self.keys_of if same else [self.rng.randint(0, self.s) for _ in range(self.batch)]
            self.queries_of[0], self.keys_of[0] = (max(1, x[0]) for x in (self.queries_of, self.keys_of))
            self.is_same = same
            sizes = [(sum(self.queries_of),), (sum(self.keys_of),)]
        else:
            sizes = [(self.batch, self.s), (self.batch, self.t)]
        if "qkvpacked" in self.function:
            self.given = [self.normal(*sizes[0], 3, self.heads, self.dim)]
        elif "kvpacked" in self.function:
            self.given = [self.normal(*sizes[0], self.heads, self.dim), self.normal(*sizes[1], 2, self.kv_heads, self.dim)]
        else:
            self.given = [self.normal(*sizes[0], self.heads, self.dim),
                          *(self.normal(*sizes[1], self.kv_heads, self.dim) for _ in range(2))]
        if self.softcap and "qkvpacked" not in self.function:
            self.given[0] = self.given[0] * 5
        self.d_o = self.normal(*sizes[0], self.heads, self.dim)
        self.d_lse = self.torch.randn(
            (self.heads, *sizes[0]) if self.is_packed else (self.batch, self.heads, self.s),
            generator=self.generator).to(self.device)

    def keys(self):
        return sum(self.keys_of) if self.is_packed else self.t

    def split(self, given):
        """(q, k, v) of the tensors given."""
        if "qkvpacked" in self.function:
            return given[0].unbind(-3)
        return (given[0], *given[1].unbind(-3)) if "kvpacked" in self.function else tuple(given)

    def call(self, given, name=None):
        import attn.torch

        name = name or self.function
        call, options = getattr(attn.torch, f"flash_attn_{name}" + ("_func" if name != "func" else "")), dict(
            dropout_p=self.dropout, causal="causal" in self.flags, window_size=self.window, softcap=self.softcap,
            alibi_slopes=self.slopes, deterministic="deterministic" in self.flags)
        arguments = list(given)
        if self.is_packed:
            starts = [self.torch.tensor([0, *x], device=self.device).cumsum(0).int()
                      for x in (self.queries_of, self.keys_of)]
            if self.is_same:
                starts[1] = starts[0]
            longest = [max(self.queries_of), max(self.keys_of)]
            arguments += [starts[0], longest[0]] if "qkvpacked" in name else [*starts, *longest]
        self.torch.manual_seed(self.seed % 2**31)
        if self.dropout:  # which refuses to return more than out
            return call(*arguments, **options), None
        return call(*arguments, return_attn_probs=True, **options)[:2]

    def _kept(self):
        """Factors of the weights, (..., h, s, t): values that are unit vectors show them."""
        torch = self.torch
        q, k, _ = (x.float() for x in self.split(self.given))
        size = self.keys()
        v = torch.eye(size, device=self.device)[:, None].expand(size, k.shape[-2], size)
        v = v if self.is_packed else v.expand(self.batch, -1, -1, -1)
        left = self.call([q * 1e-3, k, v], "varlen" if self.is_packed else "func")[0]
        return (left.transpose(-2, -3) != 0).double() / (1 - self.dropout)

    def gradients(self, o, lse, leaves):
        loss = (o * self.d_o.to(o.dtype)).sum()
        if lse is not None and not self.dropout:
            shown = lse.detach().isfinite()
            loss = loss + (lse[shown] * self.d_lse[shown].to(lse.dtype)).sum()
        found = self.torch.autograd.grad(loss, leaves, allow_unused=True, materialize_grads=True)
        return [o.detach(), lse if lse is None else lse.detach(), *found]

    def ours(self):
        leaves = [x.detach().requires_grad_() for x in self.given]
        return self.gradients(*self.call(leaves), leaves)

    def unfused(self, precision, dtype=None, score_type=None):
        leaves = [x.detach().to(precision).requires_grad_() for x in self.given]
        q, k, v = self.split(leaves)
        slopes = self.slopes if self.slopes is None else self.slopes.to(precision)
        if not self.is_packed:
            o, lse = self._sequences(q, k, v, slopes, self.keep, dtype, score_type)
            return self.gradients(o, lse, leaves)
        outs, lses, rows, keys = [], [], 0, 0
        for n, (s, t) in enumerate(zip(self.queries_of, self.keys_of)):
            at, there = slice(rows, rows + s), slice(keys, keys + t)
            own = slopes if slopes is None or slopes.dim() == 1 else slopes[n:n + 1]
            keep = None if self.keep is None else self.keep[None, :, at, there]
            o, lse = self._sequences(q[None, at], k[None, there], v[None, there], own, keep, dtype, score_type)
            outs.append(o[0])
            lses.append(lse[0])
            rows, keys = rows + s, keys + t
        return self.gradients(self.torch.cat(outs), self.torch.cat(lses, 1), leaves)

    def _sequences(self, q, k, v, slopes, keep, dtype, score_type):
        import unfused

        s, t = q.shape[1], k.shape[1]
        if s == 0 or t == 0:
            o = q.new_zeros((*q.shape[:3], v.shape[3]))
            return o, q.new_full((q.shape[0], q.shape[2], s), math.inf)
        score, mask = functions(self.torch, self.flags, s, t, self.window, slopes, self.softcap)
        keep = keep if keep is None else keep.to(q.dtype)
        o, lse = unfused.attend(self.torch, *(x.transpose(1, 2) for x in (q, k, v)), score, mask, None, dtype, keep,
                                score_type)
        return o.transpose(1, 2), lse.masked_fill(lse == -math.inf, math.inf)


def check(torch, name, options):
    """A list of what is wrong."""
    import unfused

    if name.startswith("kvcache"):
        return check_cache(torch, Case, functions, name, options)
    case = Case(torch, name, options)
    got, exact, plain = case.ours(), case.unfused(torch.float64), case.unfused(torch.float32, case.dtype)
    wrong, element = [], unfused.NAMES[str(case.dtype)]
    q, k, v = case.split(case.given)
    lost = 0.5 * 2.0**-23 * case.dim**-0.5 * q.double().norm(dim=-1).max().item() * k.double().norm(dim=-1).max().item()
    lost *= 3 * -(-case.dim // 8) if element == "f32" else -(-case.dim // 16)
    for what, g, e, p in zip(["o", "lse", *(f"d_{n}" for n in range(len(got) - 2))], got, exact, plain):
        if g is None:
            continue
        found = unfused.disagreement(g, e)
        if not found and what == "o":
            found = unfused.judge_output(torch, g, e, p, v.double().abs().max().item(), lost,
                                         element == "f32" and options.device == "cuda")
        elif not found and what == "lse":
            single = case.unfused(torch.float64, score_type=torch.float32)[1]
            found = unfused.judge_lse(torch, g, e, single, lost)
        elif not found:
            found = unfused.judge_gradient(torch, g, e, p, element)
        if found:
            wrong.append(f"{what}: {found}")
    return wrong


if __name__ == "__main__":
    sys.exit(matrix.main(matrix.parse_arguments(__doc__, 150), all_cases(), check,
                         lambda name: " ".join(name.split(" ")[:2])))
