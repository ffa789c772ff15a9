#===----------------------------------------------------------------------===#
#
# Part of attn, an attention compiler.
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===----------------------------------------------------------------------===#
"""Inputs of a case, and what attention of them is: in float64 (r of the error
rule) and unfused in the input type with a float32 softmax (t0). PyTorch."""

import torch

DTYPES = {"f16": torch.float16, "bf16": torch.bfloat16, "f32": torch.float32}
# Bits of a NaN that fills what must not be read, and what must be written.
POISON = {torch.float16: 0x7FAD, torch.bfloat16: 0x7FAD, torch.float32: 0x7FC0DEAD}
BITS = {torch.float16: torch.int16, torch.bfloat16: torch.int16, torch.float32: torch.int32}


class Padded:
    """A (batch, heads, length, dim) view into poisoned storage."""

    def __init__(self, shape, layout, padding, dtype, device):
        batch, heads, length, dim = shape
        rows, columns = padding
        lengths = (length + rows, dim + columns)
        if layout == "bshd":
            sizes = (batch, lengths[0], heads, lengths[1])
        else:
            sizes = (batch, heads, *lengths)
        count = sizes[0] * sizes[1] * sizes[2] * sizes[3]
        edge = 64  # elements before and after
        self.storage = torch.empty(count + 2 * edge, dtype=dtype, device=device)
        self.poison()
        view = self.storage[edge : edge + count].view(sizes)
        if layout == "bshd":
            view = view.transpose(1, 2)
        self.view = view[:, :, :length, :dim]
        inside = torch.zeros_like(self.storage, dtype=torch.bool)
        mark = inside[edge : edge + count].view(sizes)
        if layout == "bshd":
            mark = mark.transpose(1, 2)
        mark[:, :, :length, :dim] = True
        self.outside = ~inside

    def poison(self):
        bits = BITS[self.storage.dtype]
        self.storage.view(bits).fill_(POISON[self.storage.dtype])

    def is_outside_untouched(self):
        bits = self.storage.view(BITS[self.storage.dtype])[self.outside]
        return bool((bits == POISON[self.storage.dtype]).all())


class Inputs:
    """The tensors of a case; `arguments` in the order of its program."""

    def __init__(self, case, device):
        self.case, self.device = case, device
        generator = torch.Generator(device=device)
        generator.manual_seed(1000003 * case.seed + case.index)

        def normal(shape, factor=1.0):
            values = torch.randn(shape, generator=generator, device=device)
            return values * factor

        dtype = DTYPES[case.element]
        kv = (case.batch, case.kv_heads, case.keys)
        shapes = [
            (case.batch, case.heads, case.queries, case.head_dim),
            (*kv, case.head_dim),
            (*kv, case.value_dim),
        ]
        self.padded = []
        for i, shape in enumerate(shapes):
            padded = Padded(shape, case.layouts[i], case.padding[i], dtype, device)
            padded.view.copy_(normal(shape, case.magnitude if i == 0 else 1.0))
            self.padded.append(padded)
        self.query, self.key, self.value = (padded.view for padded in self.padded)
        self.captures = []
        self.bias = None
        if case.bias:
            shape = case.bias_shape()
            storage = torch.full(
                [size + 3 for size in shape],
                float("nan"),
                dtype=DTYPES[case.bias_element],
                device=device,
            )
            self.bias = storage[tuple(slice(0, size) for size in shape)]
            self.bias.copy_(normal(shape))
            self.captures.append(self.bias)
        if case.documents:
            documents = max(1, max(case.queries, case.keys) // 500)
            for length in (case.queries, case.keys):
                steps = torch.arange(length, device=device, dtype=torch.int32)
                ids = steps * documents // max(length, 1)
                self.captures.append(ids.to(torch.int32).expand(case.batch, -1).contiguous())
        shape = (case.batch, case.heads, case.queries, case.value_dim)
        self.output = Padded(shape, case.layouts[3], case.padding[3], dtype, device)
        edge = 64
        self.lse_storage = torch.empty(
            case.batch * case.heads * case.queries + 2 * edge,
            dtype=torch.float32,
            device=device,
        )
        self.lse = self.lse_storage[edge:-edge].view(shape[:3])
        self.largest_score = 0.0  # of those evaluated, before the score function

    @property
    def arguments(self):
        tensors = [self.query, self.key, self.value, *self.captures]
        return [*tensors, self.output.view, self.lse]

    def poison_outputs(self):
        self.output.poison()
        self.lse_storage.view(torch.int32).fill_(POISON[torch.float32])

    def is_outside_untouched(self):
        edges = self.lse_storage.view(torch.int32)
        return self.output.is_outside_untouched() and bool(
            (edges[:64] == POISON[torch.float32]).all()
            and (edges[-64:] == POISON[torch.float32]).all()
        )

    def _positions(self):
        i = torch.arange(self.case.queries, device=self.device)[:, None]
        j = torch.arange(self.case.keys, device=self.device)[None, :]
        return i, j

    def _offset(self, alignment):
        case = self.case
        return case.keys - case.queries if alignment == "bottom_right" else 0

    def visible(self, b):
        """(queries, keys): the mask of batch entry b, the same for all heads."""
        case = self.case
        i, j = self._positions()
        mask = torch.ones((case.queries, case.keys), dtype=torch.bool, device=self.device)
        if case.causal:
            mask &= j <= i + self._offset(case.causal)
        if case.window:
            left, right, alignment = case.window
            distance = j - (i + self._offset(alignment))
            if left >= 0:
                mask &= distance >= -left
            if right >= 0:
                mask &= distance <= right
        if case.documents:
            queries, keys = self.captures[-2:]
            mask &= queries[b][:, None] == keys[b][None, :]
        return mask

    def score(self, x, b, h):
        """The score function on scores x (queries, keys) of one head."""
        case = self.case
        i, j = self._positions()
        if case.softcap:
            x = case.softcap * torch.tanh(x / case.softcap)
        if case.alibi:
            slope = 2.0 ** (-8.0 * (h + 1) / case.heads)
            distance = (i + self._offset(case.alibi) - j).abs()
            x = x - slope * distance.to(x.dtype)
        if self.bias is not None:
            at = dict(b=b, h=h, i=slice(None), j=slice(None))
            bias = self.bias[tuple(at[index] for index in case.bias)].to(x.dtype)
            if "j" in case.bias and "i" not in case.bias:
                bias = bias[None, :]
            x = x + bias
        return x

    def evaluate(self, b, h, exact):
        """o (queries, value_dim), lse (queries,) of one head: in float64, or as
        t0: each unfused step rounded to the input type."""
        case = self.case
        compute = torch.float64 if exact else torch.float32
        if case.keys == 0:
            o = torch.zeros(case.queries, case.value_dim, dtype=compute, device=self.device)
            return o, torch.full_like(o[:, 0], float("-inf"))
        kv = h // case.group
        q, k, v = (
            tensor.to(compute)
            for tensor in (self.query[b, h], self.key[b, kv], self.value[b, kv])
        )
        dtype = DTYPES[case.element]

        def rounded(x):
            return x if exact else x.to(dtype).to(compute)

        def stored(x):
            """A score that the type cannot hold stays in f32."""
            return torch.where(x.abs() > torch.finfo(dtype).max, x, rounded(x))

        x = q @ k.T * case.scale_value
        self.largest_score = max(self.largest_score, float(x.abs().max()))
        x = stored(x)
        if case.softcap or case.alibi or case.bias:
            x = stored(self.score(x, b, h))
        x = x.masked_fill(~self.visible(b), float("-inf"))
        lse = torch.logsumexp(x, dim=1)
        p = torch.exp(x - lse[:, None])
        p = p.masked_fill((lse == float("-inf"))[:, None], 0.0)
        return rounded(rounded(p) @ v), lse
