#===----------------------------------------------------------------------===#
#
# Part of attn, an attention compiler.
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===----------------------------------------------------------------------===#
"""The script that measures what warm calls cost runs, and its calls are warm."""

import json
import os
import pathlib
import subprocess
import sys

import pytest

pytest.importorskip("torch", reason="no PyTorch")

from attn import _capi  # noqa: E402

SCRIPT = pathlib.Path(__file__).parents[1] / "Benchmark" / "torch_overhead.py"


def run(*options):
    return subprocess.run(
        [sys.executable, str(SCRIPT), "--lib", str(_capi._path), "--batches=3", "--calls=20", *options],
        text=True, capture_output=True, env={**os.environ, "OMP_NUM_THREADS": "1"})


def test_figures(tmp_path):
    done = run("--json", str(tmp_path / "figures.json"), "--bar=1000")
    assert done.returncode == 0, done.stderr
    header, *rows = json.loads((tmp_path / "figures.json").read_text())["cases"]
    assert header == ["call", "gradients", "us", "above"]
    names = {name for name, *_ in rows}
    assert {"attention", "scaled_dot_product_attention", "flash_attn_func", "flex_attention"} < names
    assert all(us > 0 for _, _, us, _ in rows)
    assert all(name in done.stdout for name in names)
