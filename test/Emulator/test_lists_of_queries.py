#===----------------------------------------------------------------------===#
#
# Part of attn, an attention compiler.
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===----------------------------------------------------------------------===#
"""Gradients of keys under masks that only data decide go through lists of blocks of
queries: what stands in these, on the emulated GPU, against NumPy."""

import attn
import numpy as np
import pytest
from emulate import Artifact, launch
from masks import Mask
from mask_case import PLANS
from test_block_map import expected_lists
from test_mask_gradients import GradientInputs

BLOCK = {"sm_80": (64, 32), "sm_90a": (64, 64)}  # rows of keys, columns of queries
LENGTHS = [(150, 97), (97, 150)]


def compile_lists(name, target, disable=None):
    """The gradients, of which only the lists of queries are computed."""
    compiled = attn.compile(Mask(name).text, target, PLANS[target], backward=True, disable=disable)
    artifact = Artifact(compiled.bytes)
    listed = [(info, kernel) for info, kernel in zip(artifact.variant["kernels"], artifact.kernels)
              if "_d_key_value_block_" in info["entry"]]
    artifact.variant["kernels"] = [info for info, _ in listed]
    artifact.kernels = [kernel for _, kernel in listed]
    return artifact


@pytest.mark.parametrize("queries, keys", LENGTHS)
@pytest.mark.parametrize("target", ["sm_80", "sm_90a"])
@pytest.mark.parametrize("name", ["documents", "block-sparse", "holes-temperature"])
def test_lists(name, target, queries, keys):
    inputs = GradientInputs(name, queries, keys, seed=5)
    artifact = compile_lists(name, target)
    assert len(artifact.kernels) == 2
    launch(artifact, [array.tensor for array in inputs.arguments()])
    elements = [workspace["element"] for workspace in artifact.variant["workspaces"]]
    # States of queries by keys come first.
    first = elements.index("i8", elements.index("i8") + 1)
    counts, lists = (memory.bits.view(np.int32).reshape(memory.shape)
                     for memory in artifact.workspaces[first + 1 : first + 3])
    rows, columns = BLOCK[target]
    last = (queries - 1) // columns
    for h in range(counts.shape[1]):  # once where the mask does not see the head
        inputs.head = h
        # Keys behind the end are hidden.
        visible = np.pad(inputs.visible(0).T, ((0, -keys % rows), (0, 0)))
        wanted = expected_lists(visible, BLOCK[target])
        assert counts.shape[2] == len(wanted)
        for tile, (partial, full) in enumerate(wanted):
            number, others = counts[0, h, tile]
            listed = list(lists[0, h, tile, : number + others + 1])
            assert listed.pop() == last + 1
            found = listed[:number], listed[number:]
            # What lies behind the last query the mask may show; a score does not.
            if name != "holes-temperature" and last in found[1]:
                found[1].remove(last)
                partial.remove(last)
            assert found == (partial, full)


def test_a_range_is_not_listed():
    """Sequences that offsets bound leave a range of queries to each key."""
    assert compile_lists("varlen", "sm_90a").kernels == []
