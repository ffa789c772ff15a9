#===----------------------------------------------------------------------===#
#
# Part of attn, an attention compiler.
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===----------------------------------------------------------------------===#
"""Gradients from Python: a function and its gradients on the CPU against float64 and
against differences of the function itself; both in one artifact for a GPU."""

import pickle

import attn
import numpy
import pytest


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


def random_arrays(seed, *shapes):
    rng = numpy.random.default_rng(seed)
    return [rng.standard_normal(shape).astype(numpy.float32) for shape in shapes]


def test_forward_and_backward():
    q, k, v, d_o, sink = random_arrays(3, (2, 4, 21, 24), (2, 2, 33, 24), (2, 2, 33, 40),
                                       (2, 4, 21, 40), (4,))
    o, lse = numpy.full_like(d_o, numpy.nan), numpy.empty((2, 4, 21), numpy.float32)
    program = attn.attention("f32", 24, 40, variants=["causal"], sink=True)
    kernel = attn.compile(program, target="cpu", with_backward=True)
    kernel.launch(q, k, v, sink, o, lse)

    got = [numpy.full_like(array, numpy.nan) for array in (q, k, v, sink)]
    kernel.backward.launch(q, k, v, sink, o, lse, d_o, *got)
    wanted = reference(q, k, v, d_o, numpy.tri(21, 33, 33 - 21, dtype=bool), sink)
    for gradient, exact in zip(got, wanted):
        assert numpy.abs(gradient - exact).max() < 1e-4

    with pytest.raises(attn.AttnError, match="dimension 2 of 'd_o' must equal dimension 2 of 'q'"):
        kernel.backward.launch(q, k, v, sink, o, lse, d_o[:, :, :20], *got)


def test_row_of_nan_is_seen():
    """A row whose lse another forward gives as +inf has no weights, but is not without keys."""
    q, k, v, d_o = random_arrays(5, *[(1, 1, 9, 16)] * 4)
    o, lse = numpy.zeros_like(q), numpy.zeros((1, 1, 9), numpy.float32)
    o[0, 0, 3], lse[0, 0, 3], lse[0, 0, 5] = numpy.nan, numpy.inf, -numpy.inf
    o[0, 0, 5] = numpy.nan  # without keys: nobody asks what it is
    got = [numpy.zeros_like(q) for _ in range(3)]
    kernel = attn.compile(attn.attention("f32", 16), target="cpu", backward=True)
    kernel.launch(q, k, v, o, lse, d_o, *got)
    seen = numpy.isnan(got[0]).any(-1)[0, 0]
    assert seen[3] and seen.sum() == 1 and numpy.isnan(got[1]).all() and not numpy.isnan(got[2]).any()


def test_differences():
    """A score function of one's own and a gradient of lse: along a random direction
    the loss sum(o * d_o) + sum(lse * d_lse) changes as the gradients say."""
    program = attn.attention("f32", 16, variants=["softcap<3.0 : f32>"],
                             mask=lambda p: (p.i - p.j < 9) & (p.j - p.i < 5))
    kernel = attn.compile(program, target="cpu", with_backward=True, lse_gradient=True)
    roles = [info["roles"] for info in kernel.backward.manifest["arguments"]]
    assert roles == [["query"], ["key"], ["value"], ["output"], ["lse"], ["d_output"], ["d_lse"],
                     ["d_query"], ["d_key"], ["d_value"]]
    shape = (1, 2, 19, 16)
    *inputs, d_o, d_lse = random_arrays(5, shape, shape, shape, shape, shape[:3])

    def run(*inputs):
        o, lse = numpy.empty(shape, numpy.float32), numpy.empty(shape[:3], numpy.float32)
        kernel.launch(*inputs, o, lse)
        return o, lse

    def loss(*inputs):
        o, lse = run(*inputs)
        return (o.astype(float) * d_o).sum() + (lse.astype(float) * d_lse).sum()

    gradients = [numpy.full(shape, numpy.nan, numpy.float32) for _ in inputs]
    kernel.backward.launch(*inputs, *run(*inputs), d_o, d_lse, *gradients)
    step = 1e-2
    for number, direction in enumerate(random_arrays(6, shape, shape, shape)):
        direction /= numpy.linalg.norm(direction)
        ends = [loss(*(x + sign * step * direction if i == number else x for i, x in enumerate(inputs)))
                for sign in (1, -1)]
        slope = (gradients[number].astype(float) * direction).sum()
        assert abs((ends[0] - ends[1]) / (2 * step) - slope) < 1e-3 * max(1, abs(slope))


def test_alone():
    """The gradients as a kernel of their own are the same."""
    program = attn.attention("f32", 16)
    alone = attn.compile(program, target="cpu", backward=True)
    both = attn.compile(program, target="cpu", with_backward=True)
    assert alone.functions == ["attention_backward"] and alone.backward is alone
    assert both.functions == ["attention", "attention_backward"]
    shape = (1, 1, 7, 16)
    arrays = random_arrays(8, shape, shape, shape, shape, shape[:3], shape)
    results = [[numpy.empty(shape, numpy.float32) for _ in range(3)] for _ in range(3)]
    again = pickle.loads(pickle.dumps(both))
    for kernel, gradients in zip((alone, both.backward, again.backward), results):
        kernel.launch(*arrays, *gradients)
    for gradients in zip(*results):
        assert all((gradient == gradients[0]).all() for gradient in gradients)


def test_artifact():
    """One artifact with both, listed and taken apart; each has its plan."""
    program = attn.attention("bf16", 64, variants=["causal"])
    plan = "#attn.plan<target = sm_80, block_q = 64, block_k = 32, warps = 4>"
    artifact = attn.compile(program, with_backward=True, backward_plan=plan)
    again = pickle.loads(pickle.dumps(attn.Artifact.load(artifact.bytes)))
    for one in (artifact, again):
        assert one.functions == ["attention", "attention_backward"]
        assert one.function("attention") is one
        assert one.function("attention_backward") is one.backward
        assert one.backward.functions == ["attention_backward"]
        assert one.backward.manifest == artifact.manifest["companions"][0]
        assert [variant["plan"] for variant in one.backward.manifest["variants"]] == [plan]
    assert artifact.manifest["variants"][0]["plan"] != plan
    assert len(artifact.backward.manifest["variants"][0]["workspaces"]) >= 2
    assert artifact.backward.ptx == attn.compile(program, backward=True, plan=plan).ptx
    assert artifact.ptx == attn.compile(program).ptx
    with pytest.raises(attn.AttnError, match="no function is called 'attention_backwards' "
                       "\\(did you mean 'attention_backward'"):
        artifact.function("attention_backwards")


def test_cached(tmp_path):
    """What is kept for one choice of functions is not taken for another."""
    program = attn.attention("bf16", 64)
    choices = [{}, {"backward": True}, {"with_backward": True}, {"backward": True, "lse_gradient": True}]
    made = [attn.compile(program, cache=tmp_path, **choice) for choice in choices]
    assert not any(artifact.from_cache for artifact in made)
    for choice, artifact in zip(choices, made):
        again = attn.compile(program, cache=tmp_path, **choice)
        assert again.from_cache and again.bytes == artifact.bytes


def test_mistakes():
    program = attn.attention("f32", 16)
    with pytest.raises(ValueError, match="the gradients alone, or both"):
        attn.compile(program, backward=True, with_backward=True)
    with pytest.raises(ValueError, match="lse_gradient=True comes with"):
        attn.compile(program, lse_gradient=True)
    with pytest.raises(ValueError, match="capture_gradients=False comes with"):
        attn.compile(program, capture_gradients=False)
    with pytest.raises(ValueError, match="backward_plan comes with with_backward=True"):
        attn.compile(program, backward=True, backward_plan="#attn.plan<>")
    with pytest.raises(attn.AttnError, match="there are no gradients of 'attention'"):
        attn.compile(program, target="cpu").backward
    with pytest.raises(attn.AttnError, match="has 0 attention operations, wanted 1"):
        attn.compile("func.func @f() { return }", backward=True)


def test_captures():
    """Whether captures of floats have gradients can be said."""
    program = attn.attention("f32", 16, captures=[("slope", "tensor<?xf32>")],
                             score=lambda p: p.x * p.slope[p.h])
    kernel = attn.compile(program, with_backward=True, capture_gradients=False).backward
    assert not any("d_capture" in info["roles"] for info in kernel.manifest["arguments"])
    shape = (1, 2, 5, 16)
    *arrays, slope = random_arrays(2, shape, shape, shape, shape, shape[:3], shape, (2,))
    kernel = attn.compile(program, target="cpu", backward=True, capture_gradients=False)
    gradients = [numpy.empty(shape, numpy.float32) for _ in range(3)]
    pickle.loads(pickle.dumps(kernel)).launch(*arrays[:3], slope, *arrays[3:], *gradients)
    assert all(numpy.isfinite(gradient).all() for gradient in gradients)


def test_promises():
    """compile(..., debug=True) looks at what the gradients read, too."""
    program = attn.attention("f32", 16, captures=[("offsets", "tensor<?xi32>")],
                             mask=attn.masks.documents("offsets"))
    kernel = attn.compile(program, target="cpu", with_backward=True, debug=True)
    shape = (1, 1, 4, 16)
    arrays = random_arrays(9, shape, shape, shape, shape, shape[:3], *[shape] * 4)
    offsets = numpy.array([0, 2, 4], numpy.int32)
    kernel.backward.launch(*arrays[:3], offsets, *arrays[3:])
    offsets[0] = 3
    with pytest.raises(attn.AttnError, match="capture 'offsets' is not sorted"):
        kernel.backward.launch(*arrays[:3], offsets, *arrays[3:])
