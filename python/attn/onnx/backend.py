#===----------------------------------------------------------------------===#
#
# Part of attn, an attention compiler.
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===----------------------------------------------------------------------===#
"""A backend for models: attention by our kernels, all else by onnx.reference."""

import numpy
import onnx
import onnx.backend.base
from onnx.reference import ReferenceEvaluator
from onnx.reference.op_run import OpRun

from . import subgraph
from .operator import attention
from .rewriting import DOMAIN, rewrite


class Attention(OpRun):
    """The operator of ONNX, for onnx.reference."""

    op_domain = ""

    def _run(self, *inputs, **attributes):
        names = [*self.onnx_node.output, "", "", "", ""][:4]
        result = attention(*inputs, qk_matmul_output=bool(names[3]), **attributes)
        empty = numpy.empty(0, result.Y.dtype)  # for outputs that nothing reads
        return tuple(empty if one is None else one for one in result)


class FusedAttention(OpRun):
    """What rewriting makes, for onnx.reference."""

    op_domain = DOMAIN

    def _run(self, *inputs, **attributes):
        return subgraph.evaluate(*inputs, **attributes),


class Session(onnx.backend.base.BackendRep):
    """A model that is ready to run. `findings` says of each Softmax in it whether it
    became part of an attention (rewriting.py)."""

    def __init__(self, model):
        model, self.findings = rewrite(model)
        self._evaluator = ReferenceEvaluator(model, new_ops=[Attention, FusedAttention])
        self._outputs = onnx.backend.base.namedtupledict(
            "Outputs", [value.name for value in model.graph.output])

    def run(self, inputs):
        """The outputs of the model, in order and by name; `inputs` are arrays in the
        order of the model, or a dictionary of them."""
        wanted = self._evaluator.input_names
        if not isinstance(inputs, dict):
            if len(inputs) > len(wanted):
                raise ValueError(f"wanted {len(wanted)} inputs ({', '.join(wanted)}), got {len(inputs)}")
            inputs = dict(zip(wanted, inputs))
        return self._outputs(*self._evaluator.run(None, inputs))


class Backend(onnx.backend.base.Backend):
    """onnx.backend.base.Backend on the CPU:

        session = Backend.prepare(model)
        y, = session.run([q, k, v])
    """

    @classmethod
    def prepare(cls, model, device="CPU", *, rtol=None, atol=None):
        """A session of a model (onnx.ModelProto). rtol and atol, tolerances that
        onnx.backend.test.runner hands on, change nothing here."""
        _check_device(cls, device)
        onnx.checker.check_model(model)
        return Session(model)

    @classmethod
    def run_node(cls, node, inputs, device="CPU", outputs_info=None, *, opset_version=None):
        """The outputs of one node on arrays, in an opset (None: the latest)."""
        _check_device(cls, device)
        names = [name for name in node.input if name]
        if len(names) != len(inputs):
            raise ValueError(f"wanted {len(names)} inputs ({', '.join(names)}), got {len(inputs)}")
        values = [onnx.helper.make_tensor_value_info(
            name, onnx.helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)
            for name, array in zip(names, inputs)]
        results = [onnx.helper.make_empty_tensor_value_info(name) for name in node.output if name]
        graph = onnx.helper.make_graph([node], "node", values, results)
        opset = onnx.helper.make_opsetid("", opset_version or onnx.defs.onnx_opset_version())
        return Session(onnx.helper.make_model(graph, opset_imports=[opset])).run(list(inputs))

    @classmethod
    def supports_device(cls, device):
        """True for "CPU"."""
        return device.split(":")[0] == "CPU"


def _check_device(backend, device):
    if not backend.supports_device(device):
        raise ValueError(f"wanted the device 'CPU', got {device!r}")
