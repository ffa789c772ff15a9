#===----------------------------------------------------------------------===#
#
# Part of attn, an attention compiler.
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===----------------------------------------------------------------------===#
"""The cases of the GPU suite, on the CPU: their programs mean what their
references compute, so that a difference on a GPU is the kernel's."""

import pathlib
import sys

import attn
import numpy
import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "Integration" / "GPU"))
import sanitize  # noqa: E402
from cases import make_case  # noqa: E402


class HostTensor:
    """Stands in for sanitize.Tensor: the array itself."""

    def __init__(self, device, array, typestr, fill=True):
        self.array = array
        self.__array_interface__ = array.__array_interface__

    def read(self):
        return self.array


class NoDevice:
    def free_all(self):
        pass


class HostCompiler:
    """Stands in for the package: programs become kernels of this process."""

    class Loaded:
        def __init__(self, kernel):
            self.kernel = kernel

        def on_device(self):
            return self.kernel

    def compile(self, text, target):  # of the case; here it is the CPU
        return self.Loaded(attn.compile(text, target="cpu"))


@pytest.mark.parametrize("case", sanitize.cases(), ids=lambda case: str(case.index))
def test_sanitizer_case(case, monkeypatch):
    monkeypatch.setattr(sanitize, "Tensor", HostTensor)
    assert sanitize.run_case(numpy, HostCompiler(), NoDevice(), case)


def test_cases_are_functions_of_their_numbers():
    first = [make_case(1, index).describe() for index in range(300)]
    assert first == [make_case(1, index).describe() for index in range(300)]
    assert first != [make_case(2, index).describe() for index in range(300)]


def test_cases_cover_what_they_must():
    cases = [make_case(1, index) for index in range(300)]
    assert {case.element for case in cases} == {"f16", "bf16"}
    assert {case.group for case in cases} == {1, 4, 8}
    assert {64, 80, 96, 128, 192, 256} <= {case.head_dim for case in cases}
    assert {case.head_dim for case in cases} == set(range(40, 257, 8))
    assert max(max(case.queries, case.keys) for case in cases) > 2900
    for feature in ("causal", "window", "softcap", "alibi", "bias", "documents"):
        assert sum(bool(getattr(case, feature)) for case in cases) >= 30
    assert {layout for case in cases for layout in case.layouts} == {"bshd", "bhsd"}
    assert sum(case.queries % 2 and case.keys % 2 and case.queries != case.keys for case in cases) >= 50
