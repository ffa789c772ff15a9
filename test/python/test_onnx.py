#===----------------------------------------------------------------------===#
#
# Part of attn, an attention compiler.
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===----------------------------------------------------------------------===#
"""Attention of ONNX: onnx's own test runner, the operator against onnx.reference in
float64, what is refused."""

import math
import unittest
import warnings

import attn.onnx
import numpy
import pytest

onnx = pytest.importorskip("onnx", minversion="1.23")  # older references know no rows without a key
ml_dtypes = pytest.importorskip("ml_dtypes")  # which onnx needs

from onnx import helper, numpy_helper  # noqa: E402
from onnx.reference import ReferenceEvaluator  # noqa: E402

# In these onnx.reference rounds to f16 after each step, and is off by more than the
# runner allows; test_half_precision looks at the same calls in float64.
ROUNDED = ("test_attention_4d_fp16", "test_attention_4d_causal_fp16", "test_attention_4d_causal_fp16_expanded",
           "test_attention_4d_gqa_with_past_and_present_fp16_expanded")
REFUSED = {"test_attention_local_window_gqa_rank4_mask_cpu": "kernels compute the softmax in f32"}


def random(*shape, dtype=numpy.float32, seed=0):
    return numpy.random.default_rng([seed, *shape]).standard_normal(shape).astype(dtype)


def model_of(nodes, inputs, outputs, opset=23, initializers=(), others=(), rank=4):
    """A model of nodes; `inputs` are named arrays, outputs have one rank."""
    values = [helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)
              for name, array in inputs.items()]
    kind = helper.np_dtype_to_tensor_dtype(next(iter(inputs.values())).dtype)
    results = [helper.make_tensor_value_info(name, kind, [None] * rank) for name in outputs]
    graph = helper.make_graph(nodes, "graph", values, results, initializer=[
        numpy_helper.from_array(array, name) for name, array in initializers])
    opsets = [helper.make_opsetid("", opset), *(helper.make_opsetid(name, 1) for name in others)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=10)


def reference(q, k, v, attn_mask=None, past_key=None, past_value=None, nonpad_kv_seqlen=None,
              opset=24, **attributes):
    """The operator in float64, by onnx.reference."""
    given = dict(Q=q, K=k, V=v, attn_mask=attn_mask, past_key=past_key, past_value=past_value,
                 nonpad_kv_seqlen=nonpad_kv_seqlen)
    if attn_mask is not None:  # whose rows onnx.reference counts before it broadcasts them
        sizes = numpy.broadcast_shapes(attn_mask.shape[:-1], (*q.shape[:2], q.shape[-2]))
        given["attn_mask"] = numpy.broadcast_to(attn_mask, (*sizes, attn_mask.shape[-1]))
    inputs = {name: array.astype(numpy.float64) if array.dtype.kind in "fV" else array
              for name, array in given.items() if array is not None}
    names = [name if name in inputs else "" for name in given]
    outputs = ["Y", "present_key", "present_value", "scores"]
    node = helper.make_node("Attention", names, outputs, **attributes)
    return ReferenceEvaluator(model_of([node], inputs, outputs, opset)).run(None, inputs)


@pytest.fixture(scope="module")
def cases():
    """{name: test} of onnx's runner, for our backend."""
    from onnx.backend.test.runner import Runner

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the tests of other operators
        runner = Runner(attn.onnx.Backend, __name__,
                        test_kwargs={name: {"rtol": 3e-3} for name in ROUNDED})
    suite = runner.test_cases["OnnxBackendNodeModelTest"]
    return {name: suite(name) for name in dir(suite)
            if name.startswith("test_attention_") and name.endswith("_cpu")}


def failures(tests):
    result = unittest.TestResult()
    unittest.TestSuite(tests).run(result)
    assert result.testsRun == len(tests) and not result.skipped
    return {test.id().split(".")[-1]: text for test, text in result.failures + result.errors}


def test_runner(cases):
    tests = [test for name, test in cases.items() if "_expanded" not in name]
    assert len(tests) >= 60
    failed = failures(tests)
    expected = {name: reason for name, reason in REFUSED.items() if name in cases}
    assert failed.keys() == expected.keys(), "\n".join(failed.values())
    for name, reason in expected.items():
        assert "attn.onnx.fused.Refused" in failed[name] and reason in failed[name]
    if onnx.__version__.startswith("1.23."):
        assert len(tests) == 93 and len(failed) == 1


def test_runner_with_bodies_of_functions(cases):
    """The operator as its graph of others is rewritten, save where scores or weights are
    results, too. One of five runs."""
    from onnx.backend.test.loader import load_model_tests

    expanded = [name for name in cases if "_expanded" in name]
    assert not failures([cases[name] for name in expanded[::5]])
    reasons = []
    for case in load_model_tests(kind="node"):
        if case.name + "_cpu" in expanded:
            (finding,) = attn.onnx.rewrite(case.model)[1]
            reasons += [finding.reason] if finding.node is None else []
    assert all("Identity" in reason and "wanted one reader" in reason for reason in reasons)
    assert len(expanded) >= 60 and len(reasons) <= len(expanded) // 5


@pytest.mark.parametrize("dtype, ulp", [(numpy.float16, 2**-10), (ml_dtypes.bfloat16, 2**-7)])
@pytest.mark.parametrize("causal", [0, 1])
def test_half_precision(dtype, ulp, causal):
    q, k, v = (numpy.random.default_rng(seed).random((2, 3, length, 8)).astype(dtype)
               for seed, length in enumerate((4, 6, 6)))
    y = attn.onnx.attention(q, k, v, is_causal=causal).Y
    assert y.dtype == dtype
    expected = reference(q, k, v, is_causal=causal)[0]
    assert (abs(y.astype(numpy.float64) - expected) <= ulp * abs(expected)).all()


def close(y, expected):
    assert y.shape == expected.shape and y.dtype == numpy.float32
    numpy.testing.assert_allclose(y, expected, rtol=2e-5, atol=2e-6)


MASKS = {
    "columns": random(7) > 0,
    "heads": random(4, 1, 7),
    "entries": random(2, 1, 1, 7) > 0,
    "all": random(2, 4, 5, 7),
    "short": random(5, 4),
    "short flags": random(2, 1, 5, 3) > 0,
    "none": numpy.zeros((5, 7), bool),
    "infinite": numpy.where(random(4, 5, 7) > 0, random(4, 5, 7), -math.inf).astype(numpy.float32),
    "lowest": numpy.where(random(5, 7) > 0, 0, numpy.finfo(numpy.float32).min).astype(numpy.float32),
}


@pytest.mark.parametrize("mask, causal", [*((mask, 1) for mask in MASKS), ("all", 0), ("short flags", 0)])
def test_masks(mask, causal):
    q, k, v = random(2, 4, 5, 12), random(2, 2, 7, 12, seed=1), random(2, 2, 7, 20, seed=2)
    kwargs = dict(attn_mask=MASKS[mask], is_causal=causal, softcap=3.0, scale=0.5)
    for mode in (1, 2, 3):
        outputs = attn.onnx.attention(q, k, v, **kwargs, qk_matmul_output_mode=mode, qk_matmul_output=True)
        expected = reference(q, k, v, **kwargs, qk_matmul_output_mode=mode)
        for got, wanted in zip(outputs, expected):
            close(got, wanted)


def test_scaled_scores():
    """Mode 0 is before the softcap, which onnx.reference applies all the same."""
    q, k = random(2, 4, 5, 12), random(2, 2, 7, 12, seed=1)
    outputs = attn.onnx.attention(q, k, k, softcap=3.0, qk_matmul_output=True)
    close(outputs.qk_matmul_output, reference(q, k, k)[3])
    close(outputs.Y, reference(q, k, k, softcap=3.0)[0])


@pytest.mark.parametrize("mask, causal", [("columns", 0), ("columns", 1), ("short flags", 1), ("infinite", 1)])
def test_lengths(mask, causal):
    q, k, v = random(2, 4, 5, 8), random(2, 2, 7, 8, seed=1), random(2, 2, 7, 8, seed=2)
    kwargs = dict(attn_mask=MASKS[mask], is_causal=causal, nonpad_kv_seqlen=numpy.array([7, 3]))
    outputs = attn.onnx.attention(q, k, v, **kwargs, qk_matmul_output_mode=3, qk_matmul_output=True)
    expected = reference(q, k, v, **kwargs, qk_matmul_output_mode=3)
    close(outputs.Y, expected[0])
    close(outputs.qk_matmul_output, expected[3])
    if causal:
        assert (outputs.Y[1, :, :2] == 0).all()  # more queries than keys


@pytest.mark.parametrize("past", [0, 1, 6])
def test_past_and_flat_inputs(past):
    q, k, v = random(2, 5, 4 * 6), random(2, 5, 2 * 6, seed=1), random(2, 5, 2 * 10, seed=2)
    kwargs = dict(past_key=random(2, 2, past, 6), past_value=random(2, 2, past, 10), is_causal=1,
                  q_num_heads=4, kv_num_heads=2)
    outputs = attn.onnx.attention(q, k, v, **kwargs)
    expected = reference(q, k, v, **kwargs)
    assert outputs.qk_matmul_output is None
    for got, wanted in zip(outputs[:3], expected):
        close(got, wanted)


@pytest.mark.parametrize("cache, causal, left, right", [
    ("none", 0, 2, 1), ("past", 1, 2, 1), ("lengths", 0, -1, 1), ("past", 0, 0, -1), ("lengths", 1, 2, 3)])
def test_windows(cache, causal, left, right):
    if onnx.defs.onnx_opset_version() < 25 or onnx.defs.get_schema("Attention").since_version < 25:
        pytest.skip(f"onnx {onnx.__version__} has no windows")
    q, k, v = random(2, 4, 5, 8), random(2, 2, 7, 8, seed=1), random(2, 2, 7, 8, seed=2)
    kwargs = dict(is_causal=causal, left_window_size=left, right_window_size=right)
    if cache == "past":
        kwargs |= dict(past_key=random(2, 2, 3, 8), past_value=random(2, 2, 3, 8))
    if cache == "lengths":
        kwargs |= dict(nonpad_kv_seqlen=numpy.array([7, 4]))
    close(attn.onnx.attention(q, k, v, **kwargs).Y, reference(q, k, v, **kwargs, opset=25)[0])


def test_strides_and_sizes():
    """Transposed and reversed arrays, no keys, no queries."""
    q, k, v = random(2, 5, 4, 8), random(2, 4, 8, 7, seed=1), random(2, 4, 7, 8, seed=2)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # of tensors that a launch would copy
        y = attn.onnx.attention(q.transpose(0, 2, 1, 3), k.swapaxes(2, 3)[:, ::-1], v[:, ::-1]).Y
    close(y, reference(q.transpose(0, 2, 1, 3), k.swapaxes(2, 3)[:, ::-1], v[:, ::-1])[0])
    assert (attn.onnx.attention(random(1, 2, 3, 8), random(1, 2, 0, 8), random(1, 2, 0, 8)).Y == 0).all()
    assert attn.onnx.attention(random(1, 2, 0, 8), random(1, 2, 3, 8), random(1, 2, 3, 6)).Y.shape == (1, 2, 0, 6)


Q = random(1, 2, 3, 8)


@pytest.mark.parametrize("changed, message", [
    (dict(q=Q.astype(float)), "Q: kernels compute in f32, got float64"),
    (dict(q=Q.astype(numpy.float16)), "one element type, got f16, f32, f32"),
    (dict(q=random(1, 2, 3, 257), k=random(1, 2, 3, 257)), "Q and K: kernels have heads of 256"),
    (dict(attn_mask=numpy.ones((3, 3), numpy.int32)), "attn_mask: elements of int32"),
    (dict(attn_mask=numpy.ones((3, 3))), "attn_mask: wanted flags or elements of float32, .* got float64"),
    (dict(attn_mask=numpy.ones((3, 1), bool)), "attn_mask: one column for 3 keys"),
    (dict(softmax_precision=11), "softmax_precision: .* got 11"),
])
def test_refused(changed, message):
    with pytest.raises(attn.onnx.Refused, match=message):
        attn.onnx.attention(**dict(q=Q, k=Q, v=Q) | changed)


@pytest.mark.parametrize("changed, message", [
    (dict(q=Q[0, 0]), r"Q: wanted rank 3 or 4, got shape \(3, 8\)"),
    (dict(q=Q[0]), "of one rank"),
    (dict(k=Q[..., :4]), "one head size above 0, got 8 and 4"),
    (dict(q=Q[..., :0], k=Q[..., :0]), "one head size above 0, got 0 and 0"),
    (dict(k=Q[:, :, :2]), "same heads and length"),
    (dict(q=random(1, 3, 3, 8)), "3 query heads over 2 key heads"),
    (dict(q=random(2, 2, 3, 8)), "one batch size, got 2, 1 and 1"),
    (dict(q_num_heads=4), "q_num_heads: 4 heads, of inputs of rank 4 that have 2"),
    (dict(q=Q[0], k=Q[0], v=Q[0]), "q_num_heads: inputs of rank 3 want a number"),
    (dict(q=Q[0], k=Q[0], v=Q[0], q_num_heads=3, kv_num_heads=2), "8 elements a row are no multiple"),
    (dict(past_key=Q), "past_key and past_value come together"),
    (dict(past_key=Q[..., :4], past_value=Q), "past_key: wanted"),
    (dict(past_key=Q.astype(numpy.float16), past_value=Q), "past_key: wanted elements of float32"),
    (dict(past_key=Q, past_value=Q, nonpad_kv_seqlen=numpy.array([3])), "allows one of them"),
    (dict(nonpad_kv_seqlen=numpy.array([4])), "from 0 to the 3 keys, got 4 to 4"),
    (dict(nonpad_kv_seqlen=numpy.array([1, 2])), r"wanted \(1,\) integers"),
    (dict(attn_mask=numpy.ones((2, 3), bool)), r"\(2, 3\) does not broadcast to \(1, 2, 3, 3\)"),
    (dict(attn_mask=numpy.ones((3, 4), bool)), "does not broadcast"),
    (dict(attn_mask=numpy.array(True)), "wanted rank 1 to 4"),
    (dict(is_causal=2), "is_causal: wanted 0 or 1, got 2"),
    (dict(left_window_size=-2), "left_window_size: wanted -1"),
    (dict(softcap=-1.0), "softcap: wanted 0 or a positive number"),
    (dict(scale=-1.0), "scale: wanted a number of at least 0"),
    (dict(softmax_precision=7), "softmax_precision: wanted one of"),
    (dict(qk_matmul_output_mode=4), "qk_matmul_output_mode: wanted 0 to 3, got 4"),
])
def test_mistakes(changed, message):
    with pytest.raises(ValueError, match=message):
        attn.onnx.attention(**dict(q=Q, k=Q, v=Q) | changed)


def test_backend():
    """A node, a model, outputs by name, devices."""
    node = helper.make_node("Attention", ["q", "k", "v"], ["y", "", "", "scores"], is_causal=1)
    inputs = {"q": Q, "k": Q, "v": Q}
    expected = reference(Q, Q, Q, is_causal=1)
    for outputs in (
        attn.onnx.Backend.run_node(node, list(inputs.values()), opset_version=23),
        attn.onnx.Backend.run_model(model_of([node], inputs, ["y", "scores"]), inputs),
    ):
        close(outputs["y"], expected[0])
        close(outputs.scores, expected[3])
    assert attn.onnx.Backend.supports_device("CPU") and not attn.onnx.Backend.supports_device("CUDA")
    with pytest.raises(ValueError, match="wanted the device 'CPU', got 'CUDA:0'"):
        attn.onnx.Backend.prepare(model_of([node], inputs, ["y"]), "CUDA:0")
