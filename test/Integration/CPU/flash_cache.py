#===----------------------------------------------------------------------===#
#
# Part of attn, an attention compiler.
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===----------------------------------------------------------------------===#
"""flash_attn_with_kvcache for flash_matrix.py: what is in the cache afterwards, and each
entry of the batch by itself."""

import math

PAGE = 16


def rotated(torch, x, cos, sin, places, is_interleaved):
    """(s, h, d) at places (s,), in float64 as complex numbers."""
    half = cos.shape[1]
    parts = x[..., :2 * half].double()
    parts = parts.unflatten(-1, (half, 2)) if is_interleaved else parts.unflatten(-1, (2, half)).mT
    turn = torch.complex(cos[places].double(), sin[places].double())[:, None]
    turned = torch.view_as_real(torch.view_as_complex(parts.contiguous()) * turn)
    turned = turned.flatten(-2) if is_interleaved else turned.mT.flatten(-2)
    return torch.cat([turned.to(x.dtype), x[..., 2 * half:]], -1)


class Cache:
    """What the options of a case ask for, as the function takes it."""

    def __init__(self, torch, case):
        self.torch, self.case, flags, device = torch, case, case.flags, case.device
        q = case.given[0]
        self.q, self.batch, self.count = q, q.shape[0], q.shape[1]
        self.new = self.count if "new" in flags else 0
        room = -(-(case.t + self.new) // PAGE) * PAGE
        rng = case.rng
        self.lengths = [rng.randint(0 if self.new else 1, case.t) for _ in range(self.batch)]
        self.padding = [rng.randint(0, n) if "leftpad" in flags and "paged" not in flags else 0 for n in self.lengths]
        self.has_index = "index" in flags and "paged" not in flags
        entries = 2 * self.batch if self.has_index else self.batch
        self.entries = rng.sample(range(entries), self.batch) if self.has_index else list(range(self.batch))
        self.memory = [case.normal(entries, room, case.kv_heads, case.dim) for _ in "kv"]
        self.fresh = [case.normal(self.batch, self.new, case.kv_heads, case.dim) for _ in "kv"]
        half = min(case.dim // 4 // 8 * 8, case.dim // 2)
        self.is_rotated = bool(self.new and "rotary" in flags and half)
        angles = torch.rand((room, half), generator=case.generator).to(device) * 6
        self.turns = [angles.cos().to(case.dtype), angles.sin().to(case.dtype)]
        self.pages = None
        if "paged" in flags:
            order = torch.randperm(entries * room // PAGE, generator=case.generator).to(device)
            self.pages = order.unflatten(0, (entries, -1))
        self.given = [self.as_pages(x) for x in self.memory]

    def as_pages(self, x):
        if self.pages is None:
            return x.clone()
        made = self.torch.empty_like(x.unflatten(1, (-1, PAGE)).flatten(0, 1))
        made[self.pages.flatten()] = x.unflatten(1, (-1, PAGE)).flatten(0, 1)
        return made

    def as_entries(self, x):
        return x if self.pages is None else x[self.pages].flatten(1, 2)

    def call(self):
        import attn.torch

        case = self.case

        def integers(values):
            return self.torch.tensor(values, dtype=self.torch.int32, device=case.device)
        more = dict(zip(("k", "v"), self.fresh)) if self.new else {}
        if self.is_rotated:
            more.update(rotary_cos=self.turns[0], rotary_sin=self.turns[1],
                        rotary_interleaved="halves" not in case.flags)
        if self.has_index:
            more["cache_batch_idx"] = integers(self.entries)
        if any(self.padding):
            more["cache_leftpad"] = integers(self.padding)
        if self.pages is not None:
            more["block_table"] = self.pages.int()
        return attn.torch.flash_attn_with_kvcache(
            self.q, *self.given, cache_seqlens=integers(self.lengths), causal="causal" in case.flags,
            window_size=case.window, alibi_slopes=case.slopes, return_softmax_lse=True, **more)

    def wanted(self, b):
        """(q, keys, values) of an entry; writes what is new into the memory."""
        case, length, torch = self.case, self.lengths[b], self.torch
        q, fresh = self.q[b], [x[b] for x in self.fresh]
        if self.is_rotated:
            places = length + torch.arange(max(self.new, self.count), device=case.device)
            is_interleaved = "halves" not in case.flags
            fresh[0] = rotated(torch, fresh[0], *self.turns, places[:self.new], is_interleaved)
            moves = "causal" in case.flags or case.window != (-1, -1)
            steps = places[:self.count] if moves else places[:1].expand(self.count)
            q = rotated(torch, q, *self.turns, steps, is_interleaved)
        for memory, one in zip(self.memory, fresh):
            memory[self.entries[b], length:length + self.new] = one
        return q, *(memory[self.entries[b], self.padding[b]:length + self.new] for memory in self.memory)


def check_cache(torch, make, functions, name, options):
    """A list of what is wrong."""
    import unfused

    case = make(torch, name, options)
    cache = Cache(torch, case)
    out, lse = cache.call()
    wrong, element = [], unfused.NAMES[str(case.dtype)]
    for b in range(cache.batch):
        q, k, v = (x[None].transpose(1, 2) for x in cache.wanted(b))
        s, t = q.shape[2], k.shape[2]
        if t == 0:
            if (out[b] != 0).any() or not (lse[b] == math.inf).all():
                wrong.append(f"entry {b}: no key, and not out = 0, lse = inf")
            continue
        slopes = case.slopes if case.slopes is None or case.slopes.dim() == 1 else case.slopes[b:b + 1]
        score, mask = functions(torch, case.flags, s, t, case.window, slopes, 0.0)
        exact, exact_lse = unfused.attend(torch, q.double(), k.double(), v.double(), score, mask)
        plain, _ = unfused.attend(torch, q.float(), k.float(), v.float(), score, mask, dtype=case.dtype)
        _, single = unfused.attend(torch, q.double(), k.double(), v.double(), score, mask, score_type=torch.float32)
        lost = unfused.truncation(torch, q, k, case.dim**-0.5)
        g, g_lse = out[b].transpose(0, 1)[None], lse[b][None]
        g_lse = g_lse.masked_fill(g_lse == math.inf, -math.inf)
        found = unfused.disagreement(g, exact) or unfused.judge_output(
            torch, g, exact, plain, v.double().abs().max().item(), lost, element == "f32" and options.device == "cuda")
        found = found or unfused.disagreement(g_lse, exact_lse) or unfused.judge_lse(torch, g_lse, exact_lse, single, lost)
        if found:
            wrong.append(f"entry {b}: {found}")
    for what, got, memory in zip("kv", cache.given, cache.memory):
        error = (cache.as_entries(got).double() - memory.double()).abs().max().item()
        if error > 2 * torch.finfo(case.dtype).eps * memory.abs().max().item():
            wrong.append(f"{what}_cache: error {error:.3g}")
    return wrong
