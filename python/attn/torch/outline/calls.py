#===----------------------------------------------------------------------===#
#
# Part of attn, an attention compiler.
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===----------------------------------------------------------------------===#
"""The outlines of calls of scaled_dot_product_attention and flex_attention: there is
nothing to find, but what their masks and scores are computed from.
"""

from .. import nodes
from ..indices import ZERO, Unread, whole
from ..reading import TYPES, Body, Scalar, computed_in
from .attention import Attention
from .operands import Operand

import torch


class CallOutline(Attention):
    """Of a call of scaled_dot_product_attention."""

    def __init__(self, graph, call):
        self.graph, self.output, self.spine, self.scores = graph, call, frozenset(), None
        names = ("query", "key", "value", "attn_mask", "dropout_p", "is_causal")
        defaults = (None, None, None, None, 0.0, False)
        (self._query, self._keys, self.values, self._mask, dropout, self._causal) = (
            nodes.argument(call, n, name, default) for n, (name, default) in enumerate(zip(names, defaults)))
        self._scale, self._grouped = call.kwargs.get("scale"), call.kwargs.get("enable_gqa", False)
        if nodes.known(dropout) != 0:
            raise Unread("dropout drops weights")
        if self._scale is not None and nodes.known(self._scale) is None:
            raise Unread("a scale that is computed")
        if nodes.known(self._causal) is None:
            raise Unread("is_causal is computed")
        self._set_factors()

    def _set_factors(self):
        """Checks query, key and value, and takes their sizes."""
        self.replaced, self.like = self.output, self._query
        q, k, v = (nodes.shape(each) for each in (self._query, self._keys, self.values))
        if not len(q) == len(k) == len(v) == 4:
            raise Unread(f"a query of {len(q)} dimensions, wanted 4")
        if len({nodes.value(each).dtype for each in (self._query, self._keys, self.values)}) != 1:
            raise Unread("query, key and value of several types")
        heads = (q[1], k[1], v[1])
        if not all(isinstance(size, int) for size in (*heads, q[3], v[3])):
            raise Unread("heads or a head dimension that are not known")
        if k[1] != v[1] or (not self._grouped and q[1] != k[1]) or q[1] % k[1]:
            raise Unread(f"heads {q[1]}, {k[1]} and {v[1]} of query, key and value")
        if not q[0] == k[0] == v[0]:
            raise Unread("batches of several sizes")
        self.canonical = {"b": q[0], "h": q[1], "i": q[2], "j": k[2], "d": q[3], "e": v[3]}

    def text(self):
        self._begin(self.canonical, ["b", "h", "i"], "j")
        self._operands = {"q": Operand(self._query, (), ()), "k": Operand(self._keys, (), ()),
                          "v": Operand(self.values, (), ())}
        self._kv_heads = {"k": nodes.shape(self._keys)[1], "v": nodes.shape(self.values)[1]}
        for name, node in (("q", self._query), ("k", self._keys), ("v", self.values)):
            self.function.operand(name, node, (), nodes.shape(node)[1], nodes.shape(node)[3])
        self.function.read_sizes()
        name, type, variables = self._written_product()
        body, dtype = Body(self, ["b", "h", "i", "j"]), nodes.value(self.like).dtype
        wide = computed_in(dtype)
        scale = nodes.known(self._scale) if self._scale is not None else self.canonical["d"] ** -0.5
        scores = body._binary("mul", Scalar("%in0", wide, False), body.number(scale, wide), wide)
        at = [whole(var, self.canonical[var]) for var in "bhij"]
        scores = self._changed(body, scores, at, wide)
        empty, type = self.function.empty(variables, TYPES[wide])
        scores = self.function.generic(
            variables, [(name, type, variables)], (empty, type, variables), body.lines, scores.name)
        weights = self.function.softmax(scores, type, variables)
        self._positions = dict(zip("bhie", [*at[:3], whole("e", self.canonical["e"])]))
        self.of_output = "bhie"
        return self._text(self.function.cast((weights, type, variables), wide, dtype))

    def _changed(self, body, scores, at, wide):
        """Scores with the mask."""
        hidden = body.number(float("-inf"), wide)
        if self._causal:
            visible = body.emit(f"arith.cmpi sle, {body.integer(at[3]).name}, {body.integer(at[2]).name} : i64")
            scores = body._select(Scalar(visible, torch.bool, False), scores, hidden, wide)
        if self._mask is not None:
            sizes = nodes.shape(self._mask)
            own = [ZERO if n == 1 else index for n, index in zip(sizes, at[4 - len(sizes):])]
            mask = body.read(self._mask, own, self.output)
            scores = body._select(mask, scores, hidden, wide) if mask.dtype == torch.bool \
                else body._binary("add", scores, body.cast(mask, wide), wide)
        return scores


_NO_BLOCKS = 1 << 30  # the block of a BlockMask that is none


class FlexOutline(CallOutline):
    """Of a call of flex_attention, whose functions are graphs of scalars."""

    def __init__(self, graph, call, modules):
        (self._query, self._keys, self.values, score, blocks, self._scale, options, *captured) = call.args
        self.graph, self.output, self.spine, self.scores = graph, call, frozenset(), None
        self._grouped = True
        if self._scale is not None and nodes.known(self._scale) is None:
            raise Unread("a scale that is computed")
        users = [user for user in call.users if user.users]
        if [nodes.argument(user, 1, "index") for user in users] != [0]:
            raise Unread("flex_attention returns more than the output")
        self._set_factors()
        self.replaced = users[0]
        self._functions, self._outer_of = [], {}
        for function, inputs, buffers in ((score, 5, captured[0]), (blocks[-1], 4, captured[1])):
            inner = getattr(modules, function.target).graph
            places = [node for node in inner.nodes if node.op == "placeholder"]
            result, = next(node for node in inner.nodes if node.op == "output").args
            for node in inner.nodes:
                graph.order[node] = graph.order[call]
            self._outer_of.update(zip(places[inputs:], buffers))
            result = result[0] if isinstance(result, (tuple, list)) else result
            if not isinstance(result, torch.fx.Node):
                raise Unread("a function that returns a number")
            self._functions.append((places[:inputs], result))
        sees_all = nodes.name(self._functions[1][1]) in ("new_ones", "ones")
        if sees_all and min(each for each in blocks[-3:-1] if isinstance(each, int)) < _NO_BLOCKS:
            raise Unread("a BlockMask without a function")

    def dtype_of(self, node):
        """Scores are f32 between the operations of the functions."""
        dtype = nodes.value(node).dtype
        is_inner = node.graph is not self.output.graph and nodes.name(node) != "to"
        return torch.float32 if is_inner and dtype in (torch.float16, torch.bfloat16) else dtype

    def is_spine(self, node):
        return node.graph is not self.output.graph

    def element(self, node, indices, body):
        outer = self._outer_of.get(node)
        if isinstance(outer, torch.fx.Node):
            return body.read(outer, indices, self.output)
        return None

    def _changed(self, body, scores, at, wide):
        positions = [body.cast(body.integer(index), torch.int32)._replace(is_natural=True) for index in at]
        (score_inputs, score), (mask_inputs, mask) = self._functions
        body.bind(score_inputs, [scores, *positions])
        body.bind(mask_inputs, positions)
        scores = body.cast(body.read(score, [], self.output), wide)
        visible = body.cast(body.read(mask, [], self.output), torch.bool)
        return body._select(visible, scores, body.number(float("-inf"), wide), wide)
