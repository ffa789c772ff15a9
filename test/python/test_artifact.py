#===----------------------------------------------------------------------===#
#
# Part of attn, an attention compiler.
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===----------------------------------------------------------------------===#
"""Artifacts for GPUs from Python; loading needs a GPU, the rest does not."""

import attn
import pytest

TEXT = attn.attention("bf16", 64, variants=["causal"])


@pytest.fixture(scope="module")
def artifact():
    return attn.compile(TEXT)


def test_what_it_holds(artifact):
    assert artifact.manifest["target"] == "sm_80"
    names = [info["name"] for info in artifact.manifest["arguments"]]
    assert names == ["q", "k", "v", "o", "lse"]
    roles = [info["roles"] for info in artifact.manifest["arguments"]]
    assert roles == [["query"], ["key"], ["value"], ["output"], ["lse"]]
    (variant,) = artifact.manifest["variants"]
    assert artifact.manifest["rule"] == "0"
    assert variant["plan"].startswith("#attn.plan<target = sm_80")
    (kernel,) = variant["kernels"]
    assert kernel["results"] == [3, 4]
    assert kernel["plan"] == variant["plan"]
    assert ".entry" in artifact.ptx
    assert artifact.cubin == b""
    assert not artifact.from_cache


def test_bytes(artifact):
    again = attn.Artifact.load(artifact.bytes)
    assert again.bytes == artifact.bytes
    assert again.manifest == artifact.manifest


def test_damaged_bytes(artifact):
    damaged = bytearray(artifact.bytes)
    damaged[len(damaged) // 2] ^= 1
    with pytest.raises(attn.AttnError, match="checksum differs"):
        attn.Artifact.load(damaged)


def test_cache(artifact, tmp_path):
    first = attn.compile(TEXT, cache=str(tmp_path))
    second = attn.compile(TEXT, cache=str(tmp_path))
    assert not first.from_cache
    assert second.from_cache
    assert second.bytes == first.bytes == artifact.bytes
    other = attn.compile(TEXT.replace("#attn.causal", "#attn.causal<top_left>"), cache=str(tmp_path))
    assert not other.from_cache


def test_passes_are_part_of_the_cache_key(tmp_path):
    text = attn.attention("bf16", 64)
    first = attn.compile(text, "sm_90a", cache=str(tmp_path))
    without = attn.compile(text, "sm_90a", cache=str(tmp_path), disable=["warp-specialize"])
    assert not without.from_cache
    assert without.ptx != first.ptx
    again = attn.compile(text, "sm_90a", cache=str(tmp_path), disable="warp-specialize")
    assert again.from_cache and again.bytes == without.bytes


def test_a_pass_that_is_not_optional():
    with pytest.raises(attn.AttnError, match="no optional pass on the way to sm_80"):
        attn.compile(TEXT, disable=["convert-tile-to-warp"])
    with pytest.raises(attn.AttnError, match="no optional pass on the way to cpu"):
        attn.compile(TEXT, target="cpu", enable=["warp-buffer"])


def test_damaged_cache_is_repaired(tmp_path):
    attn.compile(TEXT, cache=str(tmp_path))
    (entry,) = tmp_path.iterdir()
    entry.write_bytes(entry.read_bytes()[:1000])
    assert not attn.compile(TEXT, cache=str(tmp_path)).from_cache
    assert attn.compile(TEXT, cache=str(tmp_path)).from_cache


def test_a_cache_that_cannot_be_written_is_a_warning(tmp_path):
    (tmp_path / "file").write_text("not a directory")
    artifact = attn.compile(TEXT, cache=str(tmp_path / "file"))
    assert "warning: not cached" in artifact.log


def test_a_ptxas_that_is_not_there():
    with pytest.raises(attn.AttnError, match="no-such-ptxas"):
        attn.compile(TEXT, ptxas="/no-such-ptxas")


def test_loading_without_a_gpu(artifact):
    try:
        artifact.on_device()
    except attn.AttnError as error:
        assert "GPU" in str(error) or "driver" in str(error)
    else:
        pytest.skip("there is a GPU")
