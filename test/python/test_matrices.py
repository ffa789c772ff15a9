#===----------------------------------------------------------------------===#
#
# Part of attn, an attention compiler.
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===----------------------------------------------------------------------===#
"""The matrices of drop-ins (test/Integration/CPU): a few of their cases run, and a wrong
result is found."""

import pathlib
import subprocess
import sys

import pytest

pytest.importorskip("torch", reason="drop-ins for PyTorch need PyTorch")
pytest.importorskip("torch.nn.attention.flex_attention", reason="this PyTorch has no flex attention")

FOLDER = pathlib.Path(__file__).resolve().parents[1] / "Integration" / "CPU"


def run(name, lib, *options):
    done = subprocess.run([sys.executable, FOLDER / name, *(("--lib", lib) if lib else ()), *options], capture_output=True, text=True)
    return done.returncode, done.stdout + done.stderr


@pytest.mark.parametrize("name, only, said", [
    ("flex_matrix.py", "learned_window - plain bfloat16,- prefix decode float32", "2 passed, 0 failed"),
    ("flash_matrix.py", "kvpacked d40 17x17,kvcache d59 5x5 float16 gqa", "2 passed, 0 failed"),
])
def test_matrix(pytestconfig, name, only, said):
    code, output = run(name, pytestconfig.getoption("lib"), "--only", only, "--count", "2")
    assert code == 0 and said in output, output


def test_wrong_results_are_found(monkeypatch):
    """A table's gradient, an output and a logarithm that are a little off."""
    import torch

    monkeypatch.syspath_prepend(str(FOLDER.parent / "GPU"))
    import unfused

    torch.manual_seed(0)
    q, k, v, bias = (torch.randn(1, 2, 30, 16, requires_grad=True) for _ in range(4))
    bias = bias[0, :, :, :1].detach().requires_grad_()

    def evaluate(precision, dtype=None):
        leaves = [x.detach().to(precision).requires_grad_() for x in (q, k, v, bias)]
        o, lse = unfused.attend(torch, *leaves[:3], lambda x, b, h, i, j: x + leaves[3][h, j, 0],
                                lambda b, h, i, j: i >= j, dtype=dtype)
        return [o, lse, *torch.autograd.grad(o.square().sum() + lse.sum(), leaves)]
    exact, plain = evaluate(torch.float64), evaluate(torch.float32, torch.bfloat16)
    o, lse, *gradients = [x.detach().float() for x in exact]
    o = o.bfloat16()
    assert not unfused.judge_output(torch, o, exact[0], plain[0], 3.0)
    assert unfused.judge_output(torch, o * 1.05, exact[0], plain[0], 3.0)
    assert not unfused.judge_lse(torch, lse, exact[1])
    assert unfused.judge_lse(torch, lse + 2e-3, exact[1])
    for gradient, e, p in zip(gradients, exact[2:], plain[2:]):
        assert not unfused.judge_gradient(torch, gradient, e, p, "bf16")
        assert unfused.judge_gradient(torch, gradient * 1.1, e, p, "bf16")
    assert unfused.disagreement(lse.masked_fill(lse > 0, float("inf")), exact[1])
