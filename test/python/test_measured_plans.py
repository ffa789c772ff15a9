#===----------------------------------------------------------------------===#
#
# Part of attn, an attention compiler.
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===----------------------------------------------------------------------===#
"""The measured plans that come with the compiler, by the name of the GPU."""

import json
import pathlib
import re

import attn
import pytest

FILE = pathlib.Path(__file__).resolve().parents[2] / "share" / "attn" / "plans.json"
ENTRIES = json.loads(FILE.read_text())["results"]


def program(entry, queries=None):
    """The kernel of an entry, with the shapes that it was measured with."""
    dim = entry["head_dim"]
    text = attn.attention(entry["element"], dim, variants=["causal"] if entry["masked"] else [])
    batch, heads, measured = map(int, re.match(r"q (\d+)x(\d+)x(\d+)x", entry["shapes"]).groups())
    assert measured == entry["queries"]
    sizes = f"{batch}x{heads}x{queries or measured}x"
    return re.sub(r"tensor<(\?x)+", f"tensor<{sizes}", str(text))


def name(entry):
    return f"{entry['device']} {entry['target']} {entry['head_dim']} {entry['masked']}"


@pytest.mark.parametrize("entry", ENTRIES, ids=name)
def test_every_one_is_taken(entry):
    """It is legal, the fastest of its entry, and not taken for another length."""
    assert not (entry["scored"] or entry.get("captured") or entry.get("dropout"))
    seconds = [measured["seconds"] for measured in entry["plans"]]
    assert seconds == sorted(seconds)
    best = entry["plans"][0]["plan"]
    artifact = attn.compile(program(entry), entry["target"], gpu=entry["device"])
    assert artifact.manifest["variants"][0]["plan"] == best
    assert "remark: plan of '" in artifact.log and entry["device"] in artifact.log
    other = attn.compile(program(entry, 8192), entry["target"], gpu=entry["device"])
    pick = attn.compile(program(entry, 8192), entry["target"])
    assert (other.bytes, other.log) == (pick.bytes, "")


def test_the_gpu_is_part_of_the_cache_key(tmp_path):
    entry = next(entry for entry in ENTRIES if entry["head_dim"] == 64)
    plans = set()
    for is_cached in (False, True):
        for gpu in (None, entry["device"]):
            artifact = attn.compile(program(entry), entry["target"], cache=tmp_path, gpu=gpu)
            assert artifact.from_cache == is_cached
            plans.add(artifact.manifest["variants"][0]["plan"])
    assert len(plans) == 2


def test_a_name_that_nobody_measured():
    entry = ENTRIES[0]
    artifact = attn.compile(program(entry), entry["target"], gpu="Abacus")
    assert "plans.json' has no plans for 'Abacus', but for 'NVIDIA H200'" in artifact.log
    assert artifact.bytes == attn.compile(program(entry), entry["target"]).bytes


def test_a_gpu_is_no_cpu():
    with pytest.raises(attn.AttnError, match="got gpu 'NVIDIA H200', the target is cpu"):
        attn.compile(attn.attention("f32", 16), "cpu", gpu="NVIDIA H200")
