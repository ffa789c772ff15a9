#===----------------------------------------------------------------------===#
#
# Part of attn, an attention compiler.
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===----------------------------------------------------------------------===#
"""Where ptxas is looked for, and what happens without one, or with one that fails."""

import attn
import pytest
from attn import assembler

TEXT = attn.attention("bf16", 64, variants=["causal"], name="wanted")


def program(folder, release, run="exit 0"):
    """A ptxas that says this release."""
    path = folder / "bin" / "ptxas"
    path.parent.mkdir(parents=True)
    path.write_text(f"#!/bin/sh\nif [ \"$1\" = --version ]; then echo 'tools, release {release}, V{release}.1'; "
                    f"exit; fi\n{run}\n")
    path.chmod(0o755)
    return str(path)


@pytest.fixture
def nowhere(tmp_path, monkeypatch):
    """A machine without ptxas; gives a folder."""
    for variable in assembler.ROOTS:
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))
    monkeypatch.setattr(assembler, "PACKAGES", ())
    assembler.find.cache_clear()
    yield tmp_path
    assembler.find.cache_clear()


def test_without_one_the_driver_compiles(nowhere):
    assert assembler.find() == ""
    made = attn.compile(TEXT, ptxas="")
    assert made.manifest["variants"][0]["kernels"][0]["registers"] == -1


def test_the_order(nowhere, monkeypatch):
    monkeypatch.setenv("PATH", f"{nowhere}/path/bin:/bin:/usr/bin")
    wanted = [program(nowhere / "home", "12.9"), program(nowhere / "path", "12.8")]
    monkeypatch.setenv("CUDA_HOME", str(nowhere / "home"))
    found = [each for each in assembler.candidates() if each]
    assert found == wanted and assembler.find() == wanted[0]


def test_old_ones_and_what_does_not_run_are_passed_over(nowhere, monkeypatch):
    monkeypatch.setenv("CUDA_HOME", str(nowhere / "old"))
    program(nowhere / "old", "11.8")
    monkeypatch.setenv("CUDA_PATH", str(nowhere / "broken"))
    program(nowhere / "broken", "").replace("ptxas", "")
    good = program(nowhere / "path", "12.1")
    monkeypatch.setenv("PATH", f"{nowhere}/path/bin:/bin:/usr/bin")
    assert assembler.find() == good


def test_packages_bring_one(nowhere, monkeypatch):
    (nowhere / "site" / "triton").mkdir(parents=True)
    (nowhere / "site" / "triton" / "__init__.py").write_text("raise ImportError('is not imported')\n")
    path = program(nowhere / "site" / "triton" / "backends" / "nvidia", "12.8")
    monkeypatch.syspath_prepend(str(nowhere / "site"))
    monkeypatch.setattr(assembler, "PACKAGES", (("no_such_package", "bin/ptxas"), ("triton", "backends/nvidia/bin/ptxas")))
    monkeypatch.delitem(__import__("sys").modules, "triton", raising=False)
    monkeypatch.setenv("PATH", "/bin:/usr/bin")
    assert assembler.find() == path


def test_where_it_fails_the_driver_compiles(nowhere, monkeypatch):
    program(nowhere / "full", "13.0", "echo no space left >&2; exit 3")
    monkeypatch.setenv("PATH", f"{nowhere}/full/bin:/bin:/usr/bin")
    with pytest.warns(RuntimeWarning, match="no space left.*the driver compiles"):
        made = attn.compile(TEXT, ptxas="")
    assert made.manifest["variants"][0]["kernels"][0]["registers"] == -1
    with pytest.raises(attn.AttnError, match="no space left"):
        attn.compile(TEXT, ptxas=assembler.find())
    monkeypatch.setenv("PATH", f"{nowhere}/other/bin:/bin:/usr/bin")
    assembler.find.cache_clear()
    program(nowhere / "other", "12.4", """
while [ $# -gt 0 ]; do if [ "$1" = -o ]; then printf image > "$2"; fi; shift; done
echo "ptxas info    : (C7510) Potential Performance Loss: wgmma.mma_async instructions are serialized due to x in f" >&2
""")
    with pytest.warns(RuntimeWarning, match="no code by .*serialized.*the driver compiles"):
        made = attn.compile(TEXT, target="sm_90a", ptxas="")
    assert made.manifest["variants"][0]["kernels"][0]["registers"] == -1
    with pytest.raises(attn.AttnError, match="expected"):
        attn.compile("func.func @f(", ptxas="")
