#===----------------------------------------------------------------------===#
#
# Part of attn, an attention compiler.
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===----------------------------------------------------------------------===#
"""What is refused, and in which words."""

import attn
import numpy
import pytest


@pytest.fixture(scope="module")
def kernel():
    return attn.compile(attn.attention("f32", 16), target="cpu")


def arguments(**changes):
    values = dict(
        q=numpy.zeros((1, 2, 5, 16), numpy.float32),
        k=numpy.zeros((1, 2, 7, 16), numpy.float32),
        v=numpy.zeros((1, 2, 7, 16), numpy.float32),
        o=numpy.zeros((1, 2, 5, 16), numpy.float32),
        lse=numpy.zeros((1, 2, 5), numpy.float32),
    )
    values.update(changes)
    return values.values()


def refused(kernel, values, *words):
    with pytest.raises(attn.AttnError) as caught:
        kernel.launch(*values)
    for word in words:
        assert word in str(caught.value)


def test_launch_is_fine(kernel):
    kernel.launch(*arguments())


def test_number_of_arguments(kernel):
    refused(kernel, list(arguments())[:3], "takes 5 arguments", "q, k, v, o, lse", "got 3")


def test_element_type(kernel):
    wrong = numpy.zeros((1, 2, 7, 16), numpy.float64)
    refused(kernel, arguments(k=wrong), "argument 'k'", "wanted elements of f32, got f8")


def test_shape(kernel):
    wrong = numpy.zeros((1, 2, 7, 24), numpy.float32)
    refused(kernel, arguments(k=wrong), "('k')", "?x?x?x16", "1x2x7x24")


def test_sizes_must_agree(kernel):
    wrong = numpy.zeros((1, 2, 8, 16), numpy.float32)
    refused(kernel, arguments(v=wrong), "8")


def test_results_may_not_overlap(kernel):
    wrong = numpy.lib.stride_tricks.as_strided(
        numpy.zeros(16, numpy.float32), (1, 2, 5, 16), (0, 0, 0, 4))
    refused(kernel, arguments(o=wrong), "('o')", "may not overlap")


def test_device(kernel):
    class OnDevice:
        __cuda_array_interface__ = {
            "shape": (1, 2, 7, 16),
            "typestr": "<f4",
            "data": (4096, False),
            "strides": None,
            "version": 3,
        }

    refused(kernel, arguments(k=OnDevice()), "argument 'k'", "on cpu, got one on cuda")


def test_not_a_tensor(kernel):
    refused(kernel, arguments(q=3), "argument 'q'", "wanted a torch tensor", "got int")


def test_malformed_text():
    with pytest.raises(attn.AttnError, match=r"1:1: error: "):
        attn.compile("nonsense", target="cpu")


def test_unknown_target():
    with pytest.raises(attn.AttnError, match="sm_12345"):
        attn.compile(attn.attention("bf16", 64), target="sm_12345")


def test_malformed_plan():
    with pytest.raises(attn.AttnError):
        attn.compile(attn.attention("f32", 64), target="cpu", plan="#attn.plan<nothing>")


def test_not_an_artifact():
    with pytest.raises(attn.AttnError, match="not an attn artifact"):
        attn.Artifact.load(b"ELF")


def test_version():
    assert attn.version().count(".") == 2
