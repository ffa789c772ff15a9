#===----------------------------------------------------------------------===#
#
# Part of attn, an attention compiler.
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===----------------------------------------------------------------------===#
"""The programs that compare and time models of transformers, on the CPU, small."""

import json
import pathlib
import subprocess
import sys

import pytest

import attn

torch = pytest.importorskip("torch", reason="models are PyTorch's")
pytest.importorskip("transformers", reason="models are those of transformers")

INTEGRATION = pathlib.Path(__file__).resolve().parents[1] / "Integration"
sys.path.insert(0, str(INTEGRATION / "GPU"))
sys.path.insert(0, str(INTEGRATION / "CPU"))
import families  # noqa: E402
import model_errors  # noqa: E402


@pytest.fixture
def lib():
    attn._capi.library()
    return attn._capi._path


def run(path, *arguments):
    done = subprocess.run([sys.executable, INTEGRATION / path, *arguments], capture_output=True, text=True)
    return done.returncode, done.stdout


def test_families_in_bf16(lib):
    code, said = run("CPU/families.py", "--lib", lib, "--dtype", "bf16", "--only", "llama,qwen2", "--jobs", "2")
    assert code == 0 and "2 passed, 0 failed, 0 left out" in said, said


def test_families_without_time(lib):
    code, said = run("CPU/families.py", "--lib", lib, "--only", "llama", "--time-limit", "0")
    assert code == 1 and "0 passed, 0 failed, 1 left out" in said, said


@pytest.mark.parametrize("verdicts, agrees, draws", [
    ([True], True, 1), ([False, True, True, True], True, 4), ([False, True, False, True], False, 4), ([None], None, 1)])
def test_a_family_that_misses_is_drawn_again(monkeypatch, verdicts, agrees, draws):
    seen = []
    monkeypatch.setattr(families, "draw", lambda *given: seen.append(given[-1]) or (f"draw {len(seen)}", verdicts[len(seen) - 1]))
    options = type("Options", (), {"dtype": "bf16"})
    line, verdict = families.compare(torch, None, attn, "llama", options)
    assert (verdict, seen) == (agrees, list(range(draws)))
    assert line == "; other weights: ".join(f"draw {n + 1}" for n in range(draws))
    seen.clear()
    options.dtype = "f32"
    assert families.compare(torch, None, attn, "llama", options)[1] is verdicts[0] and len(seen) == 1


def judged(scale):
    """Whether a gradient may be off by `scale` times what eager is off by."""
    exact = torch.linspace(-1, 1, 100).double()
    rough = (exact + 0.01).bfloat16()
    off = (exact + scale * (rough.double() - exact)).float()
    return model_errors.judge("bf16", (rough, {"w": off}), (rough, {"w": rough}), (exact, {"w": exact}))[1]


def test_errors_of_eager_are_the_measure():
    assert judged(2.9) and not judged(3.1) and not judged(float("nan"))


def test_models_are_timed(lib, tmp_path):
    file = tmp_path / "models.json"
    code, said = run("GPU/end_to_end.py", "--lib", lib, "--device", "cpu", "--tiny", "--json", file, "--only",
                     "gpt-oss", "--contestants", "attn,sdpa,eager")
    assert code == 0 and "1 passed, 0 failed, 0 left out" in said, said
    names, *rows = json.loads(file.read_text())["rows"]
    rows = [dict(zip(names, row)) for row in rows]
    assert len(rows) == 6
    assert all(row["ms"] > 0 and row["differs"] <= 0.05 for row in rows if row["error"] is None)
    assert all("error" not in row or row["error"] is None or "scaled_dot_product_attention" in row["error"]
               for row in rows), rows  # gpt-oss does not take it
    assert {row["model"] for row in rows if row["error"]} == {"gpt-oss"}
