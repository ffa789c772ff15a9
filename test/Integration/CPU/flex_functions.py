#===----------------------------------------------------------------------===#
#
# Part of attn, an attention compiler.
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===----------------------------------------------------------------------===#
"""Score and mask functions as people give them to flex attention, each a function of a
Maker that returns one: those that PyTorch tests its own with, and relatives."""

import math
import sys

INFINITY = math.inf


class Maker:
    """What functions capture. The same seed gives the same tensors, in another type.

    b, heads, s, t   sizes of queries and keys.
    learned(...)     floats with a gradient, in the type of queries (single: float32);
                     in float64 where `precision` is. `leaves` are these.
    numbers(...)     floats without.
    """

    def __init__(self, torch, sizes, dtype, device, seed, precision=None):
        self.torch, self.dtype, self.device, self.precision = torch, dtype, device, precision
        self.b, self.heads, self.s, self.t = sizes
        self.leaves = []
        self._generator = torch.Generator().manual_seed(seed)

    def _normal(self, shape, dtype):
        made = self.torch.randn(shape, generator=self._generator).to(dtype)
        return made.to(self.device, self.precision or dtype)

    def learned(self, *shape, single=False):
        self.leaves.append(self._normal(shape, self.torch.float32 if single else self.dtype).requires_grad_())
        return self.leaves[-1]

    def numbers(self, *shape, single=False):
        return self._normal(shape, self.torch.float32 if single else self.dtype)

    def integers(self, low, high, *shape, dtype="int32"):
        made = self.torch.randint(low, high, shape, generator=self._generator)
        return made.to(self.device, getattr(self.torch, dtype))

    def longest(self):
        return max(self.s, self.t)

    def documents(self, count=4):
        """The number of the document of each position."""
        starts = self.integers(0, self.longest(), count - 1)
        return (self.torch.arange(self.longest(), device=self.device)[:, None] >= starts).sum(1)


# ---------------------------------------------------------------------------
# Scores
# ---------------------------------------------------------------------------


def times_two(m):
    return lambda x, b, h, q, k: x * 2


def squared(m):
    return lambda x, b, h, q, k: x * x


def causal_score(m):
    return lambda x, b, h, q, k: m.torch.where(q >= k, x, -INFINITY)


def inverse_causal_score(m):
    return lambda x, b, h, q, k: m.torch.where(q <= k, x, float("-inf"))


def relative(m):
    return lambda x, b, h, q, k: x + (q - k)


def relative_causal(m):
    return lambda x, b, h, q, k: m.torch.where(q >= k, x + (q - k), -INFINITY)


def alibi(m):
    return lambda x, b, h, q, k: x + (k - q) * m.torch.exp2(-((h + 1) * 8.0 / m.heads))


def head_offset(m):
    offset = m.numbers(m.heads)
    return lambda x, b, h, q, k: x * offset[h]


def trigonometry(m):
    return lambda x, b, h, q, k: m.torch.sin(m.torch.cos(x)) + m.torch.tan(b)


def branching_trigonometry(m):
    def score(x, b, h, q, k):
        cosine, sine = m.torch.cos(x), m.torch.sin(x)
        return cosine * sine + m.torch.tan(b)
    return score


def documents_score(m):
    ids = m.documents()
    return lambda x, b, h, q, k: m.torch.where((q >= k) & (ids[q] == ids[k]), x, -INFINITY)


def index_twice(m):
    table = m.numbers(m.b, m.s, single=True)
    return lambda x, b, h, q, k: x + table[b][q]


def index_thrice(m):
    table = m.numbers(4, m.b, m.heads, m.s, single=True)
    return lambda x, b, h, q, k: x + table[0][b, h][q]


def index_by_tensor(m):
    table, which = m.numbers(m.b, m.heads, 4, m.s, single=True), m.integers(0, 4)
    return lambda x, b, h, q, k: x + table[b][h][which, q]


def even_keys(m):
    return lambda x, b, h, q, k: m.torch.where(k % 2 == 0, x, float("-inf"))


def composed(m):
    first, second = relative(m), inverse_causal_score(m)
    return lambda x, b, h, q, k: second(first(x, b, h, q, k), b, h, q, k)


def each_dimension(m):
    heads, batch, tokens = (m.numbers(size, single=True) for size in (m.heads, m.b, m.s))
    return lambda x, b, h, q, k: x + tokens[q] + batch[b] + heads[h]


def halves(m):
    second = m.torch.zeros(m.longest(), dtype=m.torch.bool, device=m.device)
    second[m.longest() // 2:] = True
    return lambda x, b, h, q, k: m.torch.where(second[q] == second[k], x, float("-inf"))


def bias_of_queries_and_keys(m):
    table = m.numbers(m.s, m.t)
    return lambda x, b, h, q, k: x + table[q, k]


def bias_of_batch(m):
    table = m.numbers(m.b, m.s, m.t)
    return lambda x, b, h, q, k: x + table[b, q, k]


def bias_of_all(m):
    table = m.numbers(m.b, m.heads, m.s, m.t)
    return lambda x, b, h, q, k: x + table[b, h, q, k]


def bias_from_view(m):
    rows = m.numbers(m.b * m.heads, m.s, -(-m.t // 8), 1).view(m.b, m.heads, m.s, -1, 1).squeeze(-1)
    return lambda x, b, h, q, k: x + rows[b, h, q, k // 8]


def relative_table(m):
    table = m.numbers(m.s + m.t)
    return lambda x, b, h, q, k: x + table[(q - k) + m.t]


def causal_or_first(m):
    first = m.integers(0, m.t, m.b)

    def score(x, b, h, q, k):
        return m.torch.where(((q <= first[b]) & (k <= first[b])) | (q >= k), x, -INFINITY)
    return score


def near_in_two_dimensions(m):
    def score(x, b, h, q, k):
        return m.torch.where(((q / 8 - k / 8).abs() <= 3) | ((q % 8 - k % 8).abs() <= 3), x, float("-inf"))
    return score


def silu(m):
    return lambda x, b, h, q, k: m.torch.nn.functional.silu(x)


def gelu_softcap(m):
    return lambda x, b, h, q, k: 3 * m.torch.tanh(m.torch.nn.functional.gelu(x) / 3)


def quotient(m):
    return lambda x, b, h, q, k: x - q // (1 + k)


def low_scores(m):
    most = m.integers(1, 3, m.b)

    def score(x, b, h, q, k):
        return m.torch.where((x <= most[b]) & (q >= k), x, -INFINITY)
    return score


def integer_scale(m):
    scale = m.torch.ones((), dtype=m.torch.int32, device=m.device)
    return lambda x, b, h, q, k: x + scale


def reduction(m):
    rows = m.numbers(m.b, 8, single=True)
    return lambda x, b, h, q, k: x + rows[b].sum(dim=-1)


def latent(m):
    queries, keys = m.numbers(m.b, m.heads, m.s, 4), m.numbers(m.b, m.t, 4)
    return lambda x, b, h, q, k: x + 0.5 * m.torch.dot(queries[b, h, q], keys[b, k])


def modular(m):
    table = m.numbers(7, 5)
    return lambda x, b, h, q, k: x + table[q % 7, k % 5]


# With gradients of what is captured


def learned_relative(m):
    table = m.learned(2 * m.longest())
    return lambda x, b, h, q, k: x + table[m.torch.abs(q - k)]


def learned_bias(m):
    table = m.learned(m.s, m.t)
    return lambda x, b, h, q, k: x + table[q, k]


def learned_head_bias(m):
    table = m.learned(m.heads, m.s, m.t)
    return lambda x, b, h, q, k: x + table[h, q, k]


def learned_full_bias(m):
    table = m.learned(m.b, m.heads, m.s, m.t)
    return lambda x, b, h, q, k: x + table[b, h, q, k]


def learned_factor(m):
    table = m.learned(m.s)
    return lambda x, b, h, q, k: x * table[q]


def learned_window(m):
    table = m.learned(17)
    return lambda x, b, h, q, k: x + table[m.torch.clamp(q - k + 8, 0, 16)]


def learned_keys(m):
    table = m.learned(m.t)
    return lambda x, b, h, q, k: x + table[k]


def learned_rows(m):
    table, which = m.learned(m.b, m.heads, 4, m.s), m.torch.tensor(0, device=m.device)
    return lambda x, b, h, q, k: x + table[b, h, which, q]


def learned_indirect(m):
    table, offset = m.learned(m.s), m.integers(0, m.s, m.s, dtype="int64")
    return lambda x, b, h, q, k: x + table[offset[q]]


def learned_symmetric(m):
    table = m.learned(m.longest())
    return lambda x, b, h, q, k: x + table[q] + table[k]


def learned_flipped(m):
    table = m.learned(m.t, m.s)
    return lambda x, b, h, q, k: x + table[k, q]


def learned_gate(m):
    gate = m.learned(m.heads)
    return lambda x, b, h, q, k: x * m.torch.sigmoid(gate[h].to(m.torch.float32))


def learned_pair(m):
    queries, keys = m.learned(m.s), m.learned(m.t)
    return lambda x, b, h, q, k: x + queries[q] + keys[k]


def learned_clamped(m):
    table = m.learned(m.heads, 33, single=True)
    return lambda x, b, h, q, k: x + table[h, m.torch.clamp(q - k, -16, 16) + 16]


def learned_number(m):
    factor = m.learned(single=True)
    return lambda x, b, h, q, k: x * factor


def learned_bias_and_gate(m):
    table, gate = m.learned(m.heads, m.s, m.t, single=True), m.learned(m.b, m.heads, single=True)
    return lambda x, b, h, q, k: (x + table[h, q, k]) * m.torch.sigmoid(gate[b, h])


# ---------------------------------------------------------------------------
# Masks
# ---------------------------------------------------------------------------


def everything(m):
    from torch.nn.attention.flex_attention import noop_mask

    return noop_mask


def causal(m):
    return lambda b, h, q, k: q >= k


def inverse_causal(m):
    return lambda b, h, q, k: q <= k


def window(m):
    return lambda b, h, q, k: (q >= k) & (q - k <= 9)


def band(m):
    return lambda b, h, q, k: (q - k).abs() < 7


def prefix(m):
    lengths = m.integers(0, m.t, m.b)
    return lambda b, h, q, k: (k < lengths[b]) | (q >= k)


def documents(m):
    ids = m.documents()
    return lambda b, h, q, k: ids[q] == ids[k]


def causal_documents(m):
    from torch.nn.attention.flex_attention import and_masks

    return and_masks(causal(m), documents(m))


def global_tokens(m):
    from torch.nn.attention.flex_attention import or_masks

    return or_masks(window(m), lambda b, h, q, k: k < 3, lambda b, h, q, k: q < 2)


def lengths(m):
    counts = m.integers(0, m.t + 1, m.b)
    return lambda b, h, q, k: k < counts[b]


def by_head(m):
    return lambda b, h, q, k: m.torch.where(h % 2 == 0, q >= k, q <= k)


def chosen_heads(m):
    kinds = m.integers(0, 2, m.heads).bool()
    return lambda b, h, q, k: m.torch.where(kinds[h], q >= k, (q - k).abs() < 5)


def empty_rows(m):
    return lambda b, h, q, k: (q >= k) & (q >= 5) & (q != 11)


def nothing(m):
    return lambda b, h, q, k: q < 0


def neighbourhood(m):
    def mask(b, h, q, k):
        return ((q // 8 - k // 8).abs() <= 1) & ((q % 8 - k % 8).abs() <= 2)
    return mask


def dilated(m):
    return lambda b, h, q, k: ((q - k) % 3 == 0) & (q >= k)


def blocks(m):
    return lambda b, h, q, k: q // 16 == k // 16


def offset(m):
    offsets = m.integers(0, m.t, m.b)
    return lambda b, h, q, k: q + offsets[b] >= k


def flags(m):
    shown = m.integers(0, 3, m.s, m.t) > 0
    return lambda b, h, q, k: shown[q, k]


def all_flags(m):
    shown = m.integers(0, 3, m.b, m.heads, m.s, m.t) > 0
    return lambda b, h, q, k: shown[b, h, q, k] & (q >= k)


def image_spans(m):
    first, length = m.integers(0, m.longest(), m.b, 2), m.integers(1, 20, m.b, 2)

    def mask(b, h, q, k):
        shown = q >= k
        for n in range(2):
            start, end = first[b, n], first[b, n] + length[b, n]
            shown = shown | ((q >= start) & (q < end) & (k >= start) & (k < end))
        return shown
    return mask


def _those(start, end):
    """The functions of this file between two of them, by name."""
    found = {name: function for name, function in vars(sys.modules[__name__]).items()
             if callable(function) and getattr(function, "__module__", "") == __name__ and not name.startswith("_")}
    lines = [function.__code__.co_firstlineno for function in (start, end)]
    return {name: function for name, function in found.items()
            if hasattr(function, "__code__") and lines[0] <= function.__code__.co_firstlineno <= lines[1]}


SCORES = _those(times_two, learned_bias_and_gate)
MASKS = _those(everything, image_spans)
