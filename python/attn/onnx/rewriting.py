#===----------------------------------------------------------------------===#
#
# Part of attn, an attention compiler.
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===----------------------------------------------------------------------===#
"""softmax(Q Kᵀ) V in ONNX graphs, as one node.

    model, findings = attn.onnx.rewrite(model)

A found subgraph (matching.py) becomes a node FusedAttention of the domain `attn`, which
computes what the nodes computed (subgraph.py). What is not proved stays as it is; there
is a Finding for each Softmax, with the edge that failed.
"""

import collections

import onnx
import onnx.inliner

from .graph import Graph, reads
from .matching import Stays, match

# Of a Softmax, by its output: what it became ("attn.FusedAttention", or None), and the
# reason if it stays.
Finding = collections.namedtuple("Finding", "softmax node reason")

DOMAIN = "attn"


def rewrite(model):
    """(model, findings): a copy of a model in which each softmax(Q Kᵀ) V that could be
    proved is one node, and a Finding for each Softmax of the main graph. Functions of
    the model are inlined first; bodies of If, Loop and Scan stay as they are."""
    if model.functions:
        model = onnx.inliner.inline_local_functions(model)
    result = onnx.ModelProto()
    result.CopyFrom(model)
    graph, findings, places = Graph(result), [], {}
    for node in graph.nodes:
        if node.op_type != "Softmax" or node.domain not in ("", "ai.onnx"):
            continue
        try:
            found = match(graph, node)
            places[found.product.output[0]] = _Nodes(graph, found).made
            findings.append(Finding(node.output[0], f"{DOMAIN}.FusedAttention", None))
        except Stays as stays:
            findings.append(Finding(node.output[0], None, str(stays)))
    if places:
        _replace(result, graph, places)
    return result, findings


class _Nodes:
    """The nodes that take the place of a MatMul with V."""

    def __init__(self, graph, found):
        self.graph, self.found, self.made = graph, found, []
        result = found.product.output[0]
        k = found.k if found.order is None else self._add("Transpose", found.k, perm=found.order)
        names = [self._split(name, graph.dims(like)) for name, like in (
            (found.q, found.q), (k, found.k), (found.v, found.v))]
        names += [self._operand(step) for step in found.steps if step.operand is not None]
        is_merged = found.heads is not None and graph.rank(found.v) == 3
        node = onnx.helper.make_node(
            "FusedAttention", names, [self._fresh("split") if is_merged else result], domain=DOMAIN,
            name=found.product.name or result, scale=found.scale, empty_rows=found.empty_rows)
        if found.steps:
            node.attribute.extend([
                onnx.helper.make_attribute("steps", [step.kind for step in found.steps]),
                onnx.helper.make_attribute("values", [float(step.number) for step in found.steps])])
        self.made.append(node)
        if is_merged:
            self._reshape(node.output[0], [-1], result)

    def _fresh(self, what):
        name = f"{self.found.product.output[0]}_{what}"
        while name in self.graph.makers or name in self.graph.readers or name in self.graph.fresh:
            name += "_"
        self.graph.fresh.add(name)
        return name

    def _add(self, kind, *names, result=None, **attributes):
        """The result of a new node."""
        result = result or self._fresh(kind.lower())
        self.made.append(onnx.helper.make_node(kind, names, [result], name=result, **attributes))
        return result

    def _reshape(self, name, front, result=None):
        """A value with these sizes before its last two."""
        front = self._add("Constant", value_ints=front)
        last = self._add("Shape", name, start=-2)
        return self._add("Reshape", name, self._add("Concat", front, last, axis=0), result=result)

    def _split(self, name, dims):
        """(batch, heads, ...) of (batch * heads, ...), where scores are regrouped."""
        if self.found.heads is None or len(dims) != 3 or dims[0] == 1:
            return name
        return self._reshape(name, [-1, self.found.heads])

    def _operand(self, step):
        name = step.operand if step.is_shown else self._add("Not", step.operand)
        return self._split(name, self.graph.dims(step.operand)) if step.rank == 3 else name


def _replace(model, graph, places):
    """Puts nodes into the places of others, and drops what nothing reads then."""
    dropped = [node for node in graph.nodes if node.output and node.output[0] in places]
    gone = {id(node) for node in dropped}
    count = collections.Counter(name for node in graph.nodes if id(node) not in gone for name in reads(node))
    count.update(name for made in places.values() for node in made for name in reads(node))
    while dropped:
        for name in reads(dropped.pop()):
            maker = graph.makers.get(name)
            if maker is None or id(maker) in gone or any(
                    count[one] or one in graph.outputs for one in maker.output):
                continue
            gone.add(id(maker))
            count.subtract(reads(maker))
            dropped.append(maker)
    nodes = []
    for node in graph.nodes:
        if id(node) not in gone:
            nodes.append(node)
        nodes += places.get(node.output[0] if node.output else None, [])
    kept = [onnx.NodeProto.FromString(node.SerializeToString()) for node in nodes]
    names = {name for node in kept for name in node.output}
    infos = [onnx.ValueInfoProto.FromString(one.SerializeToString())
             for one in model.graph.value_info if one.name in names]
    del model.graph.node[:], model.graph.value_info[:]
    model.graph.node.extend(kept)
    model.graph.value_info.extend(infos)
    if all(one.domain != DOMAIN for one in model.opset_import):
        model.opset_import.append(onnx.helper.make_opsetid(DOMAIN, 1))
