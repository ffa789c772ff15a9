#===----------------------------------------------------------------------===#
#
# Part of attn, an attention compiler.
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===----------------------------------------------------------------------===#
"""The script that measures first calls runs, and they compile."""

import json
import os
import pathlib
import subprocess
import sys

import pytest

pytest.importorskip("torch", reason="no PyTorch")

from attn import _capi  # noqa: E402

SCRIPT = pathlib.Path(__file__).parents[1] / "Benchmark" / "first_calls.py"


def test_figures(tmp_path):
    done = subprocess.run(
        [sys.executable, str(SCRIPT), "--lib", str(_capi._path), "--device=cpu", "--dims=8", "--lengths=16",
         "--bar=0", "--json", str(tmp_path / "figures.json")],
        text=True, capture_output=True, env={**os.environ, "OMP_NUM_THREADS": "1"})
    assert done.returncode == 1, done.stderr  # nothing is that fast
    header, *rows = json.loads((tmp_path / "figures.json").read_text())["cases"]
    assert [row[:3] for row in rows] == [[8, False, 16], [8, True, 16]]
    for row in rows:
        figures = dict(zip(header, row, strict=True))
        assert figures["half as long"] < figures["call"]  # which compiled
        assert figures["both"] >= figures["backward"] > 0
