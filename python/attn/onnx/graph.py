#===----------------------------------------------------------------------===#
#
# Part of attn, an attention compiler.
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===----------------------------------------------------------------------===#
"""What is known of the values of an ONNX graph: who makes and reads them, shapes,
small constants."""

import collections

import numpy
import onnx
from onnx import numpy_helper
from onnx.reference import ReferenceEvaluator

_SMALL = 64  # elements of a constant that is looked at
_FOLDED = {
    "Add", "Cast", "Concat", "Constant", "ConstantOfShape", "Div", "Equal", "Expand", "Gather",
    "Identity", "Mul", "Neg", "Not", "Pow", "Reciprocal", "Reshape", "Slice", "Sqrt", "Squeeze", "Sub",
    "Unsqueeze", "Where",
}


def attribute(node, name, default=None):
    """The value of an attribute."""
    for one in node.attribute:
        if one.name == name:
            return onnx.helper.get_attribute_value(one)
    return default


class Graph:
    """The main graph of a model, whose shapes are inferred first."""

    def __init__(self, model):
        inferred = onnx.shape_inference.infer_shapes(model, data_prop=True).graph
        self.opset = max([one.version for one in model.opset_import if one.domain in ("", "ai.onnx")],
                         default=onnx.defs.onnx_opset_version())
        self.nodes = list(model.graph.node)
        self.outputs = {value.name for value in model.graph.output}
        self.makers = {name: node for node in self.nodes for name in node.output if name}
        self.readers = collections.defaultdict(list)  # a node twice where it reads twice
        for node in self.nodes:
            for name in reads(node):
                self.readers[name].append(node)
        self._types = {value.name: value.type.tensor_type
                       for values in (inferred.value_info, inferred.input, inferred.output)
                       for value in values}
        given = {value.name for value in model.graph.input}
        self._tensors = {one.name: one for one in model.graph.initializer}
        for name, one in self._tensors.items():
            self._types.setdefault(name, onnx.helper.make_tensor_type_proto(
                one.data_type, one.dims).tensor_type)
        self._constants = {name: one for name, one in self._tensors.items() if name not in given}
        self._known = {}
        self.fresh = set()  # names of values that are to come

    def maker(self, name):
        """The node that makes a value; None of inputs, constants and other domains."""
        node = self.makers.get(name)
        return node if node is not None and node.domain in ("", "ai.onnx") else None

    def kind(self, name):
        """The number of a value's element type, 0 where it is not known."""
        return self._types[name].elem_type if name in self._types else 0

    def dims(self, name):
        """Sizes: numbers, names, or None; None as a whole where the rank is not known."""
        if name not in self._types or not self._types[name].HasField("shape"):
            return None
        return [one.dim_value if one.HasField("dim_value") else one.dim_param or None
                for one in self._types[name].shape.dim]

    def rank(self, name):
        dims = self.dims(name)
        return None if dims is None else len(dims)

    def known(self, name):
        """The value as an array, if it is a small constant or follows from shapes."""
        if name not in self._known:
            self._known[name] = None  # of itself, in graphs that are none
            self._known[name] = self._evaluate(name)
        return self._known[name]

    def scalar(self, name):
        """The element of a known value that has but one and raises no rank, as a float;
        None if it is no such."""
        value = self.known(name)
        is_number = value is not None and value.size == 1 and value.ndim <= 2
        return float(value.reshape(())) if is_number else None

    def _evaluate(self, name):
        if name in self._constants:
            tensor = self._constants[name]
            is_small = numpy.prod(tensor.dims, dtype=int) <= _SMALL
            return numpy_helper.to_array(tensor) if is_small else None
        node = self.maker(name)
        if node is None:
            return None
        if node.op_type == "Shape":
            return _whole(self._shape(node))
        if node.op_type == "CastLike":  # whose numbers are what matters
            return self.known(node.input[0])
        if node.op_type not in _FOLDED:
            return None
        values = {}
        for place, one in enumerate(node.input):
            value = self.known(one) if one else None
            if value is None and not place and node.op_type in ("Gather", "Slice"):
                value = self._part_of_shape(one)
            if one and value is None:
                return None
            values[one] = value
        return self._run(node, values)

    def _shape(self, node):
        """The sizes that a Shape node gives."""
        dims = self.dims(node.input[0])
        return None if dims is None else dims[attribute(node, "start", 0):attribute(node, "end")]

    def _part_of_shape(self, name):
        """Sizes of which some are known, the others are -2**62."""
        node = self.maker(name)
        dims = self._shape(node) if node is not None and node.op_type == "Shape" else None
        if dims is None:
            return None
        return numpy.array([one if isinstance(one, int) else _UNKNOWN for one in dims], numpy.int64)

    def _run(self, node, values):
        if any(value is not None and value.size > _SMALL for value in values.values()):
            return None
        single = onnx.helper.make_graph(
            [node], "constant",
            [onnx.helper.make_tensor_value_info(
                name, onnx.helper.np_dtype_to_tensor_dtype(value.dtype), value.shape)
             for name, value in values.items() if value is not None],
            [onnx.helper.make_empty_tensor_value_info(node.output[0])])
        opset = onnx.helper.make_opsetid("", self.opset)
        evaluator = ReferenceEvaluator(onnx.helper.make_model(single, opset_imports=[opset]))
        result = evaluator.run(None, {name: value for name, value in values.items() if value is not None})[0]
        has_unknown = result.dtype == numpy.int64 and (result == _UNKNOWN).any()
        return None if has_unknown or result.size > _SMALL else result


_UNKNOWN = -2**62


def _whole(dims):
    if dims is None or not all(isinstance(one, int) for one in dims):
        return None
    return numpy.array(dims, numpy.int64)


def reads(node):
    """What a node reads, in its subgraphs, too."""
    names = list(node.input)
    for one in node.attribute:
        for graph in ([one.g] if one.HasField("g") else []) + list(one.graphs):
            for inner in graph.node:
                names += reads(inner)
            names += [value.name for value in graph.output]
    return names
