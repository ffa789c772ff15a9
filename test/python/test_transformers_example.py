#===----------------------------------------------------------------------===#
#
# Part of attn, an attention compiler.
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===----------------------------------------------------------------------===#
"""The example that trains a T5 (test/Examples/train_relative_bias.py): its curves agree,
it notices when they do not, and it refuses wrong options."""

import pathlib
import runpy
import sys
import warnings
import xml.etree.ElementTree

import attn
import pytest

torch = pytest.importorskip("torch", minversion="2.9")
pytest.importorskip("transformers", minversion="4.57")
import attn.transformers  # noqa: E402

SCRIPT = pathlib.Path(__file__).parents[2] / "test" / "Examples" / "train_relative_bias.py"
SMALL = ("--device", "cpu", "--steps", "6", "--batch", "4", "--length", "20")


@pytest.fixture
def train(monkeypatch):
    """Runs the script with options."""
    def run(*given):
        monkeypatch.setattr(sys, "argv", [str(SCRIPT), *map(str, given)])
        with warnings.catch_warnings():
            return runpy.run_path(str(SCRIPT))
    return run


def test_curves_agree(train, tmp_path, capsys):
    found = train(*SMALL, "--plot", tmp_path / "losses.svg")
    assert len(found["losses"]["attn"]) == 6 and found["apart"] < 1e-4
    assert found["gradients"]["attn"].abs().max() > 0
    assert capsys.readouterr().out.endswith("they agree\n")
    found["draw_svg"](tmp_path / "plain.svg")  # and where there is no matplotlib
    curves = xml.etree.ElementTree.parse(tmp_path / "plain.svg").getroot().findall("{*}polyline")
    assert [len(curve.get("points").split()) for curve in curves] == [6, 6]
    assert (tmp_path / "losses.svg").stat().st_size > 500


def test_a_bias_without_gradient_is_noticed(train, monkeypatch):
    before = attn.transformers.attention

    def attention(*args, position_bias=None, **named):
        return before(*args, position_bias=position_bias.detach(), **named)
    monkeypatch.setattr(attn.transformers, "attention", attention)
    with pytest.raises(SystemExit, match="they do not agree"):
        train(*SMALL, "--plot", "")


@pytest.mark.parametrize("options, message", [
    (("--steps", 0), "--steps: wanted 1 or more, got 0"),
    (("--length", 3), "--length: wanted more than 3, got 3"),
    (("--plot", "losses.txt"), "--plot: wanted a name that ends with"),
    (("--dtype", "int8"), "--dtype: invalid choice"),
])
def test_wrong_options(train, capsys, options, message):
    with pytest.raises(SystemExit, match="2"):
        train(*options)
    assert message in capsys.readouterr().err
