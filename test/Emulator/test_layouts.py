#===----------------------------------------------------------------------===#
#
# Part of attn, an attention compiler.
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===----------------------------------------------------------------------===#
"""Tensors in layouts that kernels do not take, which the runtime copies with
kernels of the artifact: on the emulated GPU, bit for bit as in a good layout."""

import dataclasses

import attn
import numpy as np
import pytest
from cases import Case
from emulate import Artifact, launch
from emulated_case import Array, Inputs, judge
from test_cpu import reference
from test_views import PROGRAMS

PLAIN = Case(index=1, seed=1, element="bf16", head_dim=40, value_dim=24, batch=2,
             kv_heads=1, group=2, queries=40, keys=50, layouts=("bhsd",) * 4,
             padding=((0, 0),) * 4, causal="bottom_right", bias="hij", bias_element="f32")
GOOD = ("bhsd",) * 4


def compiled(case, target):
    return Artifact(attn.compile(case.program(), target=target).bytes)


def result(case, artifact, change=None):
    inputs = Inputs(case)
    if change:
        change(inputs)
    launch(artifact, inputs.tensors())
    assert judge(case, inputs, complete=True) == []
    return inputs.output.view.copy(), inputs.lse.view.copy()


@pytest.mark.parametrize("target", ["sm_80", "sm_90a"])
@pytest.mark.parametrize("layouts, padding", [
    (("bhsd+1", "bhsd", "bhsd", "bhsd"), (0, 0)),
    (("bhsd", "bshd+3", "bhsd", "bhsd"), (0, 0)),
    (("bhsd", "bhsd", "bhds", "bhsd"), (0, 0)),
    (("bhsd", "bhsd", "bhsd", "shbd+7"), (0, 0)),
    (GOOD, (1, 1)),
    (("dshb",) * 4, (2, 3)),
])
def test_same_bits(target, layouts, padding):
    artifact = compiled(PLAIN, target)
    bad = dataclasses.replace(PLAIN, layouts=layouts, padding=(padding,) * 4)
    for a, b in zip(result(PLAIN, artifact), result(bad, artifact)):
        assert (a == b).all()


def test_f32():
    case = dataclasses.replace(PLAIN, element="f32", layouts=("bhds",) * 4, batch=1, group=1,
                               head_dim=32, value_dim=32, bias="")
    result(case, compiled(case, "sm_80"))


@pytest.mark.parametrize("target", ["sm_80", "sm_90a"])
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_views(target, program):
    """Arguments in other dimensions than the attention's."""
    text, q_shape, k_shape, o_shape, lse_shape, seen = program()
    text = text.replace("16xf32", "16xbf16").replace("64xf32", "64xbf16")
    artifact = Artifact(attn.compile(text, target=target).bytes)
    rng = np.random.default_rng(1)
    arrays = [Array("bf16", shape).set(rng.standard_normal(shape))
              for shape in (q_shape, k_shape, k_shape)]
    o, lse = Array("bf16", o_shape), Array("f32", lse_shape)
    launch(artifact, [array.tensor for array in (*arrays, o, lse)])
    q, k, v = (seen(array.values()) for array in arrays)
    expected, expected_lse = reference(q, k, v, 0.25)
    assert np.abs(seen(o.values()) - expected).max() < 0.02
    assert np.abs(lse.values().reshape(expected_lse.shape) - expected_lse).max() < 1e-4


def strided(array):
    """The same values, two elements apart, lying backwards."""
    other = Array(array.element, array.shape[:-1] + (2 * array.shape[-1],))
    sizes = array.view.shape
    other.view = other.view[..., ::2]
    other.shape, other.tensor.shape = sizes, list(sizes)
    other.tensor.strides[-1] = 2
    if len(sizes) > 1:
        other.view = other.view[::-1]
        other.tensor.first += (sizes[0] - 1) * other.tensor.strides[0]
        other.tensor.strides[0] *= -1
    other.view[...] = array.view
    return other


@pytest.mark.parametrize("bias", ["h", "bj", "hij", "bhij"])
def test_captures_and_lse(bias):
    case = dataclasses.replace(PLAIN, bias=bias)
    artifact = compiled(case, "sm_80")

    def change(inputs):
        inputs.bias = inputs.captures[0] = strided(inputs.bias)
        lse = inputs.lse.storage.shape
        inputs.lse.storage = np.full((*lse, 3), inputs.lse.storage.flat[0], np.uint32)
        inputs.lse.untouched = np.ones((*lse, 3), bool)
        inputs.lse.untouched[..., 0] = False
        inputs.lse.view = inputs.lse.storage[..., 0]
        tensor = inputs.lse.tensor
        tensor.bits, tensor.strides = inputs.lse.storage.reshape(-1), [3 * s for s in tensor.strides]

    for a, b in zip(result(case, artifact), result(case, artifact, change)):
        assert (a == b).all()
