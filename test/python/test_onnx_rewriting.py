#===----------------------------------------------------------------------===#
#
# Part of attn, an attention compiler.
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===----------------------------------------------------------------------===#
"""softmax(Q Kᵀ) V in ONNX graphs: what is found, that it computes the same, what stays
and why."""

import math

import attn.onnx
import numpy
import pytest

onnx = pytest.importorskip("onnx", minversion="1.19")

from onnx import TensorProto, helper, numpy_helper  # noqa: E402
from onnx.reference import ReferenceEvaluator  # noqa: E402


def random(*shape, dtype=numpy.float32):
    return numpy.random.default_rng(shape).standard_normal(shape).astype(dtype)


class Builder:
    """A model, node by node."""

    def __init__(self, **inputs):
        self.inputs, self.nodes, self.constants, self.symbols = inputs, [], [], {}

    def __getattr__(self, kind):
        def add(*names, outputs=1, **attributes):
            names = [name if isinstance(name, str) else self.constant(name) for name in names]
            results = [f"{kind.lower()}_{len(self.nodes)}_{number}" for number in range(outputs)]
            self.nodes.append(helper.make_node(kind, names, results, **attributes))
            return results[0] if outputs == 1 else results
        return add

    def constant(self, value):
        if not isinstance(value, numpy.ndarray):
            value = numpy.array(value, numpy.float32 if isinstance(value, float) else numpy.int64)
        self.constants.append(numpy_helper.from_array(value, f"constant_{len(self.constants)}"))
        return self.constants[-1].name

    def transposed(self, k):
        rank = self.inputs[k].ndim if k in self.inputs else 4
        return self.Transpose(k, perm=[*range(rank - 2), rank - 1, rank - 2])

    def model(self, *results, rank=4, kind=TensorProto.FLOAT, opsets=(helper.make_opsetid("", 20),)):
        inputs = [helper.make_tensor_value_info(
            name, helper.np_dtype_to_tensor_dtype(array.dtype), self.symbols.get(name, array.shape))
            for name, array in self.inputs.items()]
        outputs = [helper.make_tensor_value_info(name, kind, [None] * rank) for name in results]
        graph = helper.make_graph(self.nodes, "graph", inputs, outputs, initializer=self.constants)
        return helper.make_model(graph, opset_imports=opsets, ir_version=10)


def block(q=(2, 4, 5, 8), k=(2, 4, 7, 8), v=(2, 4, 7, 12), dtype=numpy.float32, **others):
    return Builder(q=random(*q, dtype=dtype), k=random(*k, dtype=dtype) + dtype(0.5),
                   v=random(*v, dtype=dtype), **others)


def fused(model):
    """The FusedAttention nodes of the rewritten model, with their attributes."""
    new, findings = attn.onnx.rewrite(model)
    onnx.checker.check_model(new)
    nodes = [node for node in new.graph.node if node.domain == "attn"]
    assert [finding.node for finding in findings] == ["attn.FusedAttention"] * len(nodes), findings
    return new, [{one.name: helper.get_attribute_value(one) for one in node.attribute} for node in nodes]


def check(build, *results, left=None, tolerance=2e-6, **options):
    """That a model is rewritten to one node and `left` others, and computes the same."""
    model = build.model(*results, **options)
    onnx.checker.check_model(model)
    new, (attributes,) = fused(model)
    kinds = sorted(node.op_type for node in new.graph.node)
    assert kinds == sorted(["FusedAttention", *(left or [])])
    with numpy.errstate(invalid="ignore"):
        expected = ReferenceEvaluator(model).run(None, build.inputs)[0]
    session = attn.onnx.Backend.prepare(model)
    assert all(finding.node for finding in session.findings)
    y = session.run(build.inputs)[0]
    assert y.dtype == expected.dtype and y.shape == expected.shape
    numpy.testing.assert_allclose(y.astype(float), expected.astype(float), rtol=10 * tolerance, atol=tolerance)
    return attributes


@pytest.mark.parametrize("place", ["scores", "q", "k", "both", "shape"])
def test_scale(place):
    b = block()
    q, k = "q", b.transposed("k")
    if place in ("q", "both"):
        q = b.Mul(0.5, q)
    if place in ("k", "both"):
        k = b.Div(k, numpy.array([4], numpy.float32))
    scores = b.MatMul(q, k)
    if place == "scores":
        scores = b.Div(scores, 2.0)
    if place == "shape":
        size = b.Gather(b.Shape("q"), -1)
        scores = b.Div(scores, b.Sqrt(b.Cast(size, to=TensorProto.FLOAT)))
    attributes = check(b, b.MatMul(b.Softmax(scores), "v"))
    scale = {"q": 0.5, "k": 0.25, "both": 0.125}.get(place, 1)
    assert attributes["scale"] == scale and attributes["empty_rows"] == b"nan"
    if place in ("scores", "shape"):
        assert attributes["steps"] == [b"multiply"]
        assert attributes["values"] == pytest.approx([0.5 if place == "scores" else 8**-0.5])


def test_masks_and_rows_without_a_key():
    """They are NaN in a softmax, and so they stay."""
    hidden = random(2, 1, 5, 7) > 0
    hidden[1, 0, 2] = True
    b = block(hidden=hidden, bias=random(4, 1, 7))
    scores = b.Add("bias", b.MatMul("q", b.transposed("k")))
    scores = b.Where("hidden", -math.inf, scores)
    attributes = check(b, b.MatMul(b.Softmax(scores, axis=3), "v"), left=["Not"])
    assert attributes["steps"] == [b"add", b"select"]


def test_finite_masks_and_dropout():
    shown = random(5, 7) > 0
    shown[3] = False
    b = block(shown=shown)
    scores = b.Where("shown", b.Mul(b.Identity(b.MatMul("q", b.transposed("k"))), 0.25), -1e4)
    weights = b.Dropout(b.Softmax(scores))
    attributes = check(b, b.MatMul(weights, "v"))
    assert attributes["steps"] == [b"multiply", b"select"] and attributes["values"] == [0.25, -1e4]


def test_guards():
    """Rows without a key are 0 where the graph says so, those with NaN where it does."""
    bias = numpy.where(random(5, 7) > 0, 0, -math.inf).astype(numpy.float32)
    bias[3] = -math.inf
    b = block(bias=bias)
    b.inputs["q"][1, 2, 0] = math.nan
    weights = b.Softmax(b.Add(b.MatMul("q", b.transposed("k")), "bias"))
    result = b.MatMul(b.Where(b.IsNaN(weights), 0.0, weights), "v")
    assert check(b, result)["empty_rows"] == b"zero_nan"
    assert (attn.onnx.Backend.run_model(b.model(result), b.inputs)[0][1, 2, 0] == 0).all()

    b = block(bias=bias)
    weights = b.Softmax(b.Add(b.MatMul("q", b.transposed("k")), "bias"))
    empty = b.Equal(b.ReduceMax("bias", -1), numpy.array([-math.inf], numpy.float32))
    assert check(b, b.MatMul(b.Where(empty, 0.0, weights), "v"))["empty_rows"] == b"zero"


@pytest.mark.parametrize("spelling", ["div", "mul"])
def test_softcap(spelling):
    b = block()
    scores = b.MatMul("q", b.transposed("k"))
    inner = b.Div(scores, 2.0) if spelling == "div" else b.Mul(scores, 0.5)
    attributes = check(b, b.MatMul(b.Softmax(b.Mul(2.0, b.Tanh(inner))), "v"))
    assert attributes["steps"] == [b"softcap"] if spelling == "div" else [b"multiply", b"multiply", b"softcap"]


def test_two_products():
    """The second product of a sum of scores is a mask like any other."""
    b = block(table=random(4, 8, 7))
    scores = b.Add(b.MatMul("q", b.transposed("k")), b.MatMul("q", "table"))
    attributes = check(b, b.MatMul(b.Softmax(scores), "v"), left=["MatMul"])
    assert attributes["steps"] == [b"add"]


@pytest.mark.parametrize("shapes, bias", [
    (((6, 5, 8), (6, 7, 8), (6, 7, 8)), (5, 7)),
    (((5, 8), (7, 8), (7, 8)), (1,)),
    (((1, 4, 1, 8), (2, 1, 7, 8), (2, 1, 7, 8)), (3, 1, 5, 1)[1:]),
    (((1, 4, 5, 8), (2, 4, 1, 8), (1, 4, 7, 8)), (7,)),
])
def test_broadcasting(shapes, bias):
    b = block(*shapes, bias=random(*bias))
    scores = b.Add(b.MatMul("q", b.transposed("k")), "bias")
    check(b, b.MatMul(b.Softmax(scores), "v"), rank=len(shapes[0]))


@pytest.mark.parametrize("layout", ["merged", "given", "other"])
def test_keys(layout):
    """Kᵀ of another layout: one Transpose makes K of it, or none."""
    b = block()
    if layout == "merged":
        b.inputs["k"] = random(2, 7, 4, 8)
        keys, left = b.Transpose("k", perm=[0, 2, 3, 1]), ["Transpose"]
    elif layout == "given":
        b.inputs["k"] = random(2, 4, 8, 7)
        keys, left = "k", ["Transpose"]
    else:
        keys, left = b.Mul(b.Transpose(b.Mul("k", 3.0), perm=[0, 1, 3, 2]), 0.5), []
    check(b, b.MatMul(b.Softmax(b.MatMul("q", keys)), "v"), left=left)


@pytest.mark.parametrize("both", [True, False])
def test_groups(both):
    """Heads that are repeated for groups of queries, of any length."""
    b = block(k=(2, 2, 7, 8), v=(2, 2 if both else 4, 7, 8))
    b.symbols = dict(q=("b", 4, "q", 8), k=("b", 2, "t", 8), v=("b", 2 if both else 4, "t", 8))

    def repeated(name):
        size = b.Shape(name, start=2, end=3)
        wide = b.Expand(b.Unsqueeze(name, numpy.array([2])), b.Concat(
            b.Shape(name, start=0, end=1), numpy.array([2, 2]), size, numpy.array([8]), axis=0))
        return b.Reshape(wide, b.Concat(
            b.Shape(name, start=0, end=1), numpy.array([4]), size, numpy.array([8]), axis=0))

    k, v = repeated("k"), repeated("v") if both else "v"
    result = b.MatMul(b.Softmax(b.MatMul("q", b.transposed(k))), v)
    check(b, result, left=[] if both else ["Concat", "Concat", "Expand", "Reshape", "Shape", "Shape", "Shape",
                                             "Unsqueeze"])


def test_half_precision():
    b = block(dtype=numpy.float16)
    scores = b.Cast(b.MatMul("q", b.transposed("k")), to=TensorProto.FLOAT)
    weights = b.Cast(b.Softmax(scores), to=TensorProto.FLOAT16)
    check(b, b.MatMul(weights, "v"), kind=TensorProto.FLOAT16, tolerance=2e-3)


SPLIT = ["Concat", "Constant", "Reshape", "Shape"]


@pytest.mark.parametrize("v", [3, 4])
def test_regrouped_scores(v):
    """Scores of (batch * heads, ...), to which a mask of (batch, heads, ...) is added."""
    b = block((8, 5, 8), (8, 7, 8), (8, 7, 8) if v == 3 else (2, 4, 7, 8), slopes=random(8, 1, 7), row=random(1, 1, 7),
              mask=random(2, 1, 5, 7))
    scores = b.Add(b.Add(b.MatMul("q", b.transposed("k")), "slopes"), "row")
    scores = b.Add(b.Reshape(scores, numpy.array([2, 4, 5, 7])), "mask")
    weights = b.Softmax(scores)
    if v == 3:
        weights = b.Reshape(weights, numpy.array([8, 5, 7]))
    check(b, b.MatMul(weights, "v"), left=SPLIT * (5 if v == 3 else 3), rank=v)


def test_regrouped_weights():
    b = block(v=(8, 7, 8))
    weights = b.Reshape(b.Softmax(b.MatMul("q", b.transposed("k"))), numpy.array([8, 5, 7]))
    check(b, b.MatMul(weights, "v"), left=SPLIT * 2, rank=3)


def test_other_reshapes_stay():
    b = block((8, 5, 8), (8, 7, 8), (8, 5, 8))
    scores = b.Reshape(b.MatMul("q", b.transposed("k")), numpy.array([8, 7, 5]))
    stays(b, b.MatMul(b.Softmax(scores), "v"), "made by Reshape: wanted scores", rank=3)
    b = block((8, 5, 8), (8, 7, 8), (2, 4, 7, 8), mask=random(5, 7))
    scores = b.Add(b.MatMul("q", b.transposed("k")), "mask")
    scores = b.Reshape(b.Reshape(scores, numpy.array([2, 4, 5, 7])), numpy.array([8, 5, 7]))
    scores = b.Reshape(scores, numpy.array([4, 2, 5, 7]))
    b.inputs["v"] = random(4, 2, 7, 8)
    stays(b, b.MatMul(b.Softmax(scores), "v"), "regrouped into 2 and 4 heads")
    b = block((8, 5, 8), (8, 7, 8), (2, 4, 7, 8), mask=random(8, 5, 7))
    b.symbols = dict(mask=("n", 5, 7))
    scores = b.Reshape(b.Add(b.MatMul("q", b.transposed("k")), "mask"), numpy.array([2, 4, 5, 7]))
    stays(b, b.MatMul(b.Softmax(scores), "v"), "'mask': n before what is regrouped into 4 heads")


def test_layer():
    """A layer of a transformer: projections around, two attentions, another softmax."""
    x, w = random(2, 6, 16), [random(16, 16) / 4 for _ in range(8)]
    b = Builder(x=x)

    def heads(y, matrix):
        return b.Transpose(b.Reshape(b.MatMul(y, matrix), numpy.array([0, 0, 2, 8])), perm=[0, 2, 1, 3])

    y = "x"
    for number in (0, 4):
        q, k, v = (heads(y, w[number + i]) for i in range(3))
        weights = b.Softmax(b.Mul(b.MatMul(q, b.transposed(k)), 8**-0.5))
        o = b.Reshape(b.Transpose(b.MatMul(weights, v), perm=[0, 2, 1, 3]), numpy.array([0, 0, 16]))
        y = b.Add(y, b.MatMul(o, w[number + 3]))
    model = b.model(b.Softmax(y), rank=3)
    session = attn.onnx.Backend.prepare(model)
    assert [finding.node is None for finding in session.findings] == [False, False, True]
    assert session.findings[2].reason.endswith("are a result of the model")
    numpy.testing.assert_allclose(session.run([x])[0], ReferenceEvaluator(model).run(None, {"x": x})[0], rtol=1e-5)


def stays(build, result, message, rank=4, **options):
    new, (finding,) = attn.onnx.rewrite(build.model(*([result] if isinstance(result, str) else result),
                                                    rank=rank, **options))
    assert finding.node is None and message in finding.reason, finding
    assert [node.op_type for node in new.graph.node] == [node.op_type for node in build.nodes]


def test_what_others_read_stays():
    b = block()
    weights = b.Softmax(b.MatMul("q", b.transposed("k")))
    stays(b, [b.MatMul(weights, "v"), weights], "the weights are a result of the model")
    b = block()
    scores = b.MatMul("q", b.transposed("k"))
    stays(b, [b.MatMul(b.Softmax(scores), "v"), b.Neg(scores)], "the scores are read by Neg, Softmax")
    b = block()
    scores = b.MatMul("q", b.transposed("k"))
    weights, dropped = b.Softmax(scores), b.constant(numpy.array(True))
    weights, mask = b.Dropout(weights, 0.5, dropped, outputs=2)
    stays(b, b.MatMul(weights, "v"), "the weights go to Dropout")


def test_what_is_no_attention_stays():
    b = block(v=(2, 4, 12, 5))
    stays(b, b.MatMul("v", b.Softmax(b.MatMul("q", b.transposed("k")))), "the weights go to MatMul")
    b = block()
    stays(b, b.MatMul(b.Softmax(b.Relu(b.MatMul("q", b.transposed("k")))), "v"), "made by Relu: wanted scores")
    b = block()
    stays(b, b.Neg(b.Softmax(b.MatMul("q", b.transposed("k")))), "the weights go to Neg")
    b = block(q=(2, 4, 7, 8), v=(2, 4, 7, 7))
    stays(b, b.MatMul(b.Softmax(b.MatMul("q", b.transposed("k")), axis=2), "v"), "a softmax over axis 2 of rank 4")
    b = block(factor=random(4, 1, 1))
    scores = b.Mul(b.MatMul("q", b.transposed("k")), "factor")
    stays(b, b.MatMul(b.Softmax(scores), "v"), "Mul of scores: wanted a constant number")
    b = block(one=random(1, 7), two=random(5, 1))
    stays(b, b.MatMul(b.Softmax(b.Add("one", "two")), "v"), "'one', an input or a constant: wanted scores")


def test_what_kernels_lack_stays():
    b = block(dtype=numpy.float64)
    stays(b, b.MatMul(b.Softmax(b.MatMul("q", b.transposed("k"))), "v"), "elements of double",
          kind=TensorProto.DOUBLE)
    b = block()
    weights = b.Softmax(b.Cast(b.MatMul("q", b.transposed("k")), to=TensorProto.DOUBLE))
    stays(b, b.MatMul(b.Cast(weights, to=TensorProto.FLOAT), "v"), "a Cast to double")
    b = block()
    weights = b.Cast(b.Softmax(b.MatMul("q", b.transposed("k"))), to=TensorProto.FLOAT16)
    stays(b, b.MatMul(b.Cast(weights, to=TensorProto.FLOAT), "v"), "a Cast to float16")
    b = block(q=(1, 1, 2, 257), k=(1, 1, 2, 257), v=(1, 1, 2, 8))
    stays(b, b.MatMul(b.Softmax(b.MatMul("q", b.transposed("k"))), "v"), "Q has a head size of 257")
    b = block()
    b.symbols = dict(v=(2, 4, 7, "e"))
    stays(b, b.MatMul(b.Softmax(b.MatMul("q", b.transposed("k"))), "v"), "V has a head size of ?")
    b = block(q=(1, 2, 4, 5, 8), k=(1, 2, 4, 7, 8), v=(1, 2, 4, 7, 8))
    stays(b, b.MatMul(b.Softmax(b.MatMul("q", b.transposed("k"))), "v"), "Kᵀ has rank 5", rank=5)


def test_a_guard_of_another_mask_stays():
    b = block(bias=random(5, 7), other=random(5, 7))
    weights = b.Softmax(b.Add(b.MatMul("q", b.transposed("k")), "bias"))
    empty = b.Equal(b.ReduceMax("other", -1), numpy.array([-math.inf], numpy.float32))
    stays(b, b.MatMul(b.Where(empty, 0.0, weights), "v"), "'other': rows without a key are those of this mask")


def test_a_scale_that_can_be_overridden_stays():
    b = block()
    scores = b.Mul(b.MatMul("q", b.transposed("k")), 0.5)
    model = b.model(b.MatMul(b.Softmax(scores), "v"))
    model.graph.input.append(helper.make_tensor_value_info(b.constants[0].name, TensorProto.FLOAT, []))
    _, (finding,) = attn.onnx.rewrite(model)
    assert "Mul of scores: wanted a constant number" in finding.reason


def test_functions_are_inlined():
    b = block()
    b.MatMul(b.Softmax(b.MatMul("q", b.transposed("k"))), "v")
    opsets = [helper.make_opsetid("", 20), helper.make_opsetid("own", 1)]
    result = b.nodes[-1].output[0]
    function = helper.make_function("own", "Attend", ["q", "k", "v"], [result], b.nodes, opsets[:1])
    b.nodes = [helper.make_node("Attend", ["q", "k", "v"], ["y"], domain="own")]
    model = b.model("y", opsets=opsets)
    model.functions.append(function)
    new, _ = fused(model)
    assert [node.op_type for node in new.graph.node] == ["FusedAttention"]
