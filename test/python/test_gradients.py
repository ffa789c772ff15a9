#===----------------------------------------------------------------------===#
#
# Part of attn, an attention compiler.
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===----------------------------------------------------------------------===#
"""Gradients are a function of tensors like another: forward and backward from
Python on the CPU, against float64."""

import pathlib
import subprocess

import attn
import numpy
import pytest


@pytest.fixture
def tool(request):
    path = pathlib.Path(request.config.getoption("--lib")).parents[1] / "bin" / "attn-compile"
    if not path.exists():
        pytest.skip("attn-compile is not built")
    return path


def gradients_of(tool, program):
    """The text of @NAME_backward."""
    command = [tool, "-", "--backward", "--target=cpu", "--emit=attn"]
    return subprocess.run(command, input=program, capture_output=True, text=True, check=True).stdout


def reference(q, k, v, d_o, mask, sink):
    """The gradients of q, k, v and the sink in float64."""
    q, k, v, d_o, sink = (array.astype(numpy.float64) for array in (q, k, v, d_o, sink))
    group, scale = q.shape[1] // k.shape[1], q.shape[-1] ** -0.5
    keys, values = k.repeat(group, axis=1), v.repeat(group, axis=1)
    x = numpy.where(mask, numpy.einsum("bhid,bhjd->bhij", q, keys) * scale, -numpy.inf)
    lse = numpy.log(numpy.exp(x).sum(-1) + numpy.exp(sink)[None, :, None])
    p = numpy.exp(x - lse[..., None])
    dp = numpy.einsum("bhie,bhje->bhij", d_o, values)
    delta = (p * dp).sum(-1)
    dx = p * (dp - delta[..., None]) * scale

    def join(gradient):
        b, h, n, d = gradient.shape
        return gradient.reshape(b, h // group, group, n, d).sum(2)

    return (
        numpy.einsum("bhij,bhjd->bhid", dx, keys),
        join(numpy.einsum("bhij,bhid->bhjd", dx, q)),
        join(numpy.einsum("bhij,bhie->bhje", p, d_o)),
        (-numpy.exp(sink[None, :, None] - lse) * delta).sum((0, 2)),
    )


def test_forward_and_backward(tool):
    rng = numpy.random.default_rng(3)

    def random(*shape):
        return rng.standard_normal(shape).astype(numpy.float32)

    q, k, v = random(2, 4, 21, 24), random(2, 2, 33, 24), random(2, 2, 33, 40)
    d_o, sink = random(2, 4, 21, 40), random(4)
    o, lse = numpy.full_like(d_o, numpy.nan), numpy.empty((2, 4, 21), numpy.float32)
    program = attn.attention("f32", 24, 40, variants=["causal"], sink=True)
    attn.compile(program, target="cpu").launch(q, k, v, sink, o, lse)

    backward = attn.compile(gradients_of(tool, program), target="cpu")
    got = [numpy.full_like(array, numpy.nan) for array in (q, k, v, sink)]
    backward.launch(q, k, v, sink, o, lse, d_o, *got)
    wanted = reference(q, k, v, d_o, numpy.tri(21, 33, 33 - 21, dtype=bool), sink)
    for gradient, exact in zip(got, wanted):
        assert numpy.abs(gradient - exact).max() < 1e-4

    with pytest.raises(Exception, match="dimension 2 of 'd_o' must equal dimension 2 of 'q'"):
        backward.launch(q, k, v, sink, o, lse, d_o[:, :, :20], *got)
