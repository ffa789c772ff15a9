#===----------------------------------------------------------------------===#
#
# Part of attn, an attention compiler.
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===----------------------------------------------------------------------===#
"""What is said where a package, or a GPU, is not there."""

import importlib
import sys
import types

import attn
import numpy
import pytest
from attn import requirements


@pytest.mark.parametrize("who, missing, lowest", [
    ("attn.torch", "torch", "2.9"), ("attn.transformers", "torch", "2.9"), ("attn.transformers", "transformers", "4.57")])
def test_missing_packages_are_named(monkeypatch, who, missing, lowest):
    for name in [*sys.modules]:
        if name.startswith(("attn.torch", "attn.transformers")):
            monkeypatch.delitem(sys.modules, name)
    if missing == "transformers":
        monkeypatch.setitem(sys.modules, "torch", types.SimpleNamespace(__version__="2.9.0+cpu"))
    monkeypatch.setitem(sys.modules, missing, None)
    with pytest.raises(ModuleNotFoundError) as caught:
        importlib.import_module(who)
    assert str(caught.value) == (f"{who} wants {missing} {lowest} or newer, which is not installed: "
                                 f"pip install '{missing}>={lowest}'")


def test_versions(monkeypatch):
    def has(version):
        monkeypatch.setitem(sys.modules, "torch", types.SimpleNamespace(__version__=version))
        requirements.wanted("attn.torch", "torch", "2.9")
    for version in ("2.9.0", "2.15.0+cu132", "2.10", "3.0.0a0+git123", "2.9"):
        has(version)
    with pytest.raises(ImportError, match=r"attn.torch wants torch 2.9 or newer, got 2.8.1\+cpu: pip install 'torch>=2.9'"):
        has("2.8.1+cpu")


def test_what_a_package_lacks_is_no_missing_package(monkeypatch, tmp_path):
    (tmp_path / "half_there.py").write_text("import not_there_at_all\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ModuleNotFoundError, match="'not_there_at_all'"):
        requirements.wanted("attn.half", "half_there", "1.0")


def test_arrays_of_numpy_for_a_kernel_of_a_gpu():
    artifact = attn.compile(attn.attention("f32", 16))
    assert repr(artifact) == "<attn.Artifact 'attention' for sm_80>"
    q, lse = numpy.zeros((1, 1, 3, 16), numpy.float32), numpy.zeros((1, 1, 3), numpy.float32)
    # The second: on a machine with a GPU.
    with pytest.raises(attn.AttnError, match='tensors on the CPU want compile.text, target="cpu".|got one on cpu'):
        artifact.launch(q, q, q, q, lse)
