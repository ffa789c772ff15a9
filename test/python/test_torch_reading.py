#===----------------------------------------------------------------------===#
#
# Part of attn, an attention compiler.
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===----------------------------------------------------------------------===#
"""What torch.compile(backend="attn") reads of graphs: operators and types, against eager."""

import pytest

torch = pytest.importorskip("torch")
import torch.nn.functional as F  # noqa: E402
from torch import nn  # noqa: E402

from torch_models import (  # noqa: E402
    BATCH, HEADS, LENGTH, WIDTH, Attention, Causal, Llama, assert_close, compiled, run_compiled,
)

# Of scores s (b, h, i, j), positions i (t, 1) and j (1, t), a table (64, HEADS) and flags
# (b, t): what is added to the scores, or flags of what is seen.
OPERATORS = {
    "arithmetic": [
        lambda s, i, j, table, flags: (i - j) * 0.25,
        lambda s, i, j, table, flags: torch.sub(i, j, alpha=2) / 7,
        lambda s, i, j, table, flags: 1.5 - s.mul(0.5),
        lambda s, i, j, table, flags: torch.rsub(s, 2.0) * 0.1,
        lambda s, i, j, table, flags: s.neg() * 0.2 + s.square() * 0.1,
        lambda s, i, j, table, flags: torch.add(s, s, alpha=-0.5),
        lambda s, i, j, table, flags: s.clamp(-0.5, 0.75),
        lambda s, i, j, table, flags: torch.abs(s) ** 2,
    ],
    "functions": [
        lambda s, i, j, table, flags: torch.tanh(s) * 2,
        lambda s, i, j, table, flags: s.sigmoid() + torch.exp(-s.abs()),
        lambda s, i, j, table, flags: torch.log((i - j).abs() + 1.0),
        lambda s, i, j, table, flags: torch.sqrt(s * s + 1.0) - torch.rsqrt(s.pow(2) + 1.0),
        lambda s, i, j, table, flags: F.relu(s) + torch.sin(s) * torch.cos(s),
        lambda s, i, j, table, flags: torch.floor(s * 2) + torch.ceil(s * 3),
        lambda s, i, j, table, flags: torch.maximum(s, torch.zeros_like(s)) + torch.minimum(s, s * 0.5),
        lambda s, i, j, table, flags: torch.log1p(s.abs()) + torch.exp2(s) + torch.erf(s),
    ],
    "integers": [
        lambda s, i, j, table, flags: ((i * 3 + j) % 5).to(s.dtype),
        lambda s, i, j, table, flags: ((i - j) // 3).float(),
        lambda s, i, j, table, flags: torch.div(i - j, 4, rounding_mode="floor") * 0.5,
        lambda s, i, j, table, flags: torch.remainder(j - i, 3).type_as(s),
        lambda s, i, j, table, flags: ((i & 3) | (j ^ 1)).to(torch.int32).to(s.dtype),
        lambda s, i, j, table, flags: torch.clamp(i - j, min=-2, max=3).double().float(),
        lambda s, i, j, table, flags: torch.maximum(i, j).float() - torch.min(i, j).float(),
    ],
    "comparisons": [
        lambda s, i, j, table, flags: (i >= j) | (j - i < 3),
        lambda s, i, j, table, flags: ~(i == j + 4) & torch.ne(j, i + 5),
        lambda s, i, j, table, flags: torch.logical_or(i.gt(j), torch.le(j, 8)),
        lambda s, i, j, table, flags: torch.logical_not(torch.logical_and(j == 3, i == 2)),
        lambda s, i, j, table, flags: flags[:, None, None, :] | (i == j),
        lambda s, i, j, table, flags: torch.logical_xor(i == j, i != j),
    ],
    "choices": [
        lambda s, i, j, table, flags: torch.where(i > j, s, 0.5),
        lambda s, i, j, table, flags: s.where(j > 1, torch.full_like(s, 0.25)),
        lambda s, i, j, table, flags: s.masked_fill(j == 2, -1.0),
        lambda s, i, j, table, flags: torch.tril(s, diagonal=1) - s.triu(2),
        lambda s, i, j, table, flags: torch.ones(s.shape[-2:]).tril(),
        lambda s, i, j, table, flags: torch.eye(s.shape[-1]) + torch.zeros(s.shape[-1]),
        lambda s, i, j, table, flags: flags.to(s.dtype)[:, None, None, :] * 0.5,
        lambda s, i, j, table, flags: s.new_full((1,), 0.5) + s.new_zeros(1) + torch.scalar_tensor(0.125),
    ],
    "gathers": [
        lambda s, i, j, table, flags: F.embedding(i + j, table).permute(2, 0, 1),
        lambda s, i, j, table, flags: table[i - j + 20].movedim(-1, 0),
        lambda s, i, j, table, flags: table[:, 1][(i - j).abs()],
        lambda s, i, j, table, flags: table.index_select(0, j[0])[:, 0],
        lambda s, i, j, table, flags: table.T[:, None, None, 5].unsqueeze(0),
        lambda s, i, j, table, flags: table.t().select(1, 2).view(1, HEADS, 1, 1).expand(2, -1, -1, -1),
        lambda s, i, j, table, flags: table.narrow(0, 3, 1).reshape(HEADS, 1, 1).squeeze(-1).unsqueeze(-1),
    ],
    "views": [
        lambda s, i, j, table, flags: (s * 0.5).flatten(0, 1).unflatten(0, (s.shape[0], HEADS)),
        lambda s, i, j, table, flags: s.transpose(2, 3).swapaxes(-1, -2).contiguous() * 0.5,
        lambda s, i, j, table, flags: s.permute(0, 2, 1, 3).permute(0, 2, 1, 3).clone() * 0.25,
        lambda s, i, j, table, flags: s[:, :, :, None].squeeze(3)[..., 0:] * 0.125,
        lambda s, i, j, table, flags: (j - i).expand(1, 1, -1, -1)[0, 0] * 0.0625,
        lambda s, i, j, table, flags: s.double().float() * 0.25,
    ],
}


@pytest.mark.parametrize("group", OPERATORS)
def test_operators(group):
    class Module(Attention):
        def make(self):
            self.table = nn.Parameter(torch.randn(64, HEADS), requires_grad=False)

        def core(self, q, k, v, flags):
            t = q.shape[2]
            i, j = torch.arange(t)[:, None], torch.arange(t)[None, :]
            first = s = q @ k.mT * 0.3
            for operator in OPERATORS[group]:
                given = operator(first, i, j, self.table, flags)
                s = s + given if given.dtype != torch.bool else s.masked_fill(~given, float("-inf"))
            return s.softmax(-1) @ v

    flags = torch.rand(BATCH, LENGTH) > 0.5
    found, = run_compiled(Module(), torch.randn(BATCH, LENGTH, WIDTH), flags)
    assert found.raised, found


@pytest.mark.parametrize("dtype, bound", [(torch.bfloat16, 3e-2), (torch.float16, 5e-3)])
def test_halves(dtype, bound):
    """Scores are rounded where eager rounds them, or not at all."""
    module, x = Llama().to(dtype), torch.randn(BATCH, LENGTH, WIDTH, dtype=dtype)
    function, found = compiled(module)
    with torch.no_grad():
        assert_close(function(x).float(), module(x).float(), bound)
    assert found[0].raised and "xf32>, %" not in found[0].program


def test_bias_of_halves():
    """Its elements are extended inside of the scores."""
    class Biased(Attention):
        def core(self, q, k, v, bias):
            return (q @ k.mT * 0.3 + bias).softmax(-1) @ v

    module, x = Biased().bfloat16(), torch.randn(BATCH, LENGTH, WIDTH, dtype=torch.bfloat16)
    bias = torch.randn(LENGTH, LENGTH, dtype=torch.bfloat16)
    function, found = compiled(module)
    with torch.no_grad():
        assert_close(function(x, bias).float(), module(x, bias).float(), 3e-2)
    assert found[0].raised, found


def test_autocast():
    module, x = Causal(), torch.randn(BATCH, LENGTH, WIDTH)
    function, found = compiled(module)
    with torch.no_grad(), torch.autocast("cpu", torch.bfloat16):
        assert_close(function(x).float(), module(x).float(), 3e-2)
    assert found[0].raised
