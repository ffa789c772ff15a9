#===----------------------------------------------------------------------===#
#
# Part of attn, an attention compiler.
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===----------------------------------------------------------------------===#
"""Kernels by program and device: compiled once, whoever asks; what the texts of programs
say of their arguments."""

import threading

import pytest

torch = pytest.importorskip("torch", reason="attention on tensors of PyTorch needs PyTorch")

import attn  # noqa: E402
import attn.torch  # noqa: E402
from attn.torch import kernels  # noqa: E402

CPU = torch.device("cpu")


@pytest.fixture
def compiled(monkeypatch):
    """What was compiled, with empty tables."""
    calls = []

    def compile(program, **options):
        calls.append(options)
        return attn.compile(program, **options)
    monkeypatch.setattr(kernels, "_compile", compile)
    monkeypatch.setattr(kernels, "_compiled", kernels._Table(kernels._make_compiled))
    monkeypatch.setattr(kernels, "_loaded", kernels._Table(kernels._make_loaded))
    return calls


def test_parameters():
    program = attn.attention("bf16", 16, 24, sink=True, dropout_p=0.5, captures=[("ids", "tensor<?x8xi32>"), ("n", "f32")])
    assert kernels.parameters(str(program)) == [
        ("q", [None, None, None, 16], "bf16"), ("k", [None, None, None, 16], "bf16"),
        ("v", [None, None, None, 24], "bf16"), ("sink", [None], "f32"), ("seed", None, "i32"),
        ("offset", None, "i32"), ("ids", [None, 8], "i32"), ("n", None, "f32")]
    named = "!t = tensor<?x2x?x32xf16>\nfunc.func @f(%a: !t, %b : f32 {x.y = [1, 2]}) -> (!t) {}"
    assert kernels.parameters(named) == [("a", [None, 2, None, 32], "f16"), ("b", None, "f32")]
    with pytest.raises(attn.AttnError, match="wanted the text of a program with a func.func, got none"):
        kernels.parameters("module {}")


def test_threads(compiled):
    """Threads that want one kernel at once get one, and it is compiled once."""
    program, found = str(attn.attention("f32", 8)), []
    start = threading.Barrier(4)

    def find():
        start.wait()
        found.append(kernels.forward(program, CPU))
    threads = [threading.Thread(target=find) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(compiled) == 1 and len(found) == 4 and all(kernel is found[0] for kernel in found)


def test_error_is_not_kept(compiled):
    """A program that cannot be compiled says so to everybody who asks."""
    program = str(attn.attention("f32", 8)).replace("attn.attention", "attn.attentive")
    for _ in range(2):
        with pytest.raises(attn.AttnError, match="attentive"):
            kernels.forward(program, CPU)
    assert len(compiled) == 2


def test_gradients_when_needed(compiled):
    """No gradient is compiled that nobody needs, and not that of lse."""
    q = torch.randn(1, 1, 5, 8, requires_grad=True)
    o, lse = attn.torch.attention(q, q, q, return_lse=True)
    assert compiled == [dict(target="cpu")]
    o.sum().backward()
    wanted = dict(target="cpu", backward=True, lse_gradient=False, capture_gradients=False)
    assert compiled[1:] == [wanted]


def test_precompile(compiled):
    programs = [attn.attention("f32", 8), attn.attention("f32", 8, scale=0.5)]
    attn.torch.precompile(programs, "cpu")
    assert len(compiled) == 4
    q = torch.randn(1, 1, 5, 8, requires_grad=True)
    for program in programs:
        attn.torch.run(program, q, q, q)[0].sum().backward()
    assert len(compiled) == 4
    attn.torch.precompile(programs[0], "cpu", gradients=False)
    assert len(compiled) == 4


def test_progress(compiled, monkeypatch, capsys):
    """Silence, unless it takes long."""
    program = str(attn.attention("f32", 8))
    monkeypatch.setattr(kernels, "PATIENCE", 1000.0)
    kernels.forward(program, CPU)
    assert capsys.readouterr().err == ""
    kernels._compiled.clear()
    kernels._loaded.clear()
    monkeypatch.setattr(kernels, "PATIENCE", 0.0)
    kernels.forward(program, CPU)
    first, last = capsys.readouterr().err.splitlines()
    assert first == "attn: compiling attention, f32, head_dim 8, for cpu ..."
    assert last.startswith("attn: compiling attention, f32, head_dim 8, for cpu: done after ")


def test_targets(monkeypatch):
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda index: "GPU")
    for capability, wanted in [((8, 0), "sm_80"), ((8, 9), "sm_80"), ((9, 0), "sm_90a"), ((12, 0), "sm_80")]:
        monkeypatch.setattr(torch.cuda, "get_device_capability", lambda index: capability)
        assert kernels.target.__wrapped__("cuda", 0) == (wanted, "GPU")
        # What ptxas makes runs on GPUs of the same generation.
        assert kernels._assembler(wanted, "GPU") == ("" if capability[0] < 10 else None)
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda index: (7, 5))
    with pytest.raises(attn.AttnError, match="GPU has compute capability 7.5, wanted 8.0 or newer"):
        kernels.target.__wrapped__("cuda", 0)
    with pytest.raises(attn.AttnError, match="wanted tensors on the CPU or on an NVIDIA GPU, got them on meta"):
        attn.torch.attention(*[torch.zeros(1, 1, 5, 8, device="cpu")] * 3).to("meta")
        kernels.forward(str(attn.attention("f32", 8)), torch.device("meta"))


def test_for_a_gpu(tmp_path, monkeypatch):
    """What is compiled for a GPU is kept on disk."""
    monkeypatch.setattr(kernels, "CACHE", str(tmp_path))
    program = str(attn.attention("bf16", 64))
    made = [kernels._make_compiled(program, "sm_80", "NVIDIA A100", gradients)
            for gradients in (None, kernels.Gradients(False, False)) for _ in range(2)]
    assert [artifact.from_cache for artifact in made] == [False, True, False, True]
