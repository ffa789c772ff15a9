#===----------------------------------------------------------------------===#
#
# Part of attn, an attention compiler.
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===----------------------------------------------------------------------===#
"""Softmaxes of a graph: calls of softmax, and exponentials that are divided by their sum."""

from . import nodes

_MAX_STEPS = 12  # from a denominator to the sum in it


def is_softmax(graph, node):
    """Whether a node is a softmax, of a library or written out, or looks like one."""
    return nodes.is_tensor(node) and (as_softmax(graph, node) is not None or divided(graph, node) is not None)


def as_softmax(graph, node):
    """(scores, dim) of a node that is a softmax of scores over one dimension, whatever
    else may come to the same; else None."""
    kind = nodes.name(node)
    if kind == "softmax":
        return nodes.argument(node, 0, "input"), nodes.argument(node, 1, "dim")
    if kind == "exp":
        exponent = node.args[0]
        if not graph.keeps(exponent, node, node):
            return None
        if nodes.name(exponent) == "log_softmax":
            scores = nodes.argument(exponent, 0, "input")
            return (scores, nodes.argument(exponent, 1, "dim")) if graph.keeps(scores, exponent, node) else None
        if nodes.name(exponent) == "sub" and _is_plain(exponent):
            scores, rest = exponent.args
            dim = _reduced_dim(graph, rest, "logsumexp", scores, exponent)
            return (scores, dim) if dim is not None and graph.keeps(scores, exponent, node) else None
    # What exp_() was of is not there any more.
    if kind == "div" and _is_plain(node) and nodes.name(node.args[0]) == "exp":
        exponential, rest = node.args
        scores, dim = exponential.args[0], _reduced_dim(graph, rest, "sum", exponential, node)
        if dim is not None and graph.keeps(scores, exponential, node) and graph.keeps(exponential, node, node):
            return scores, dim
    return None


def divided(graph, node):
    """(numerator, denominator) of a division by what is made of the sum of exponentials
    that are in the numerator; else None."""
    if nodes.name(node) != "div" or not _is_plain(node) or not graph.keeps(node.args[0], node, node):
        return None
    numerator, denominator = node.args
    exponential = behind_moves(numerator)
    if nodes.product_letters(exponential):
        factors = [behind_moves(factor) for factor in nodes.product_letters(exponential)[:2]]
        exponential = next((factor for factor in factors if nodes.name(factor) == "exp"), None)
    if exponential is None or nodes.name(exponential) != "exp" or not _is_sum_of(denominator, exponential):
        return None
    return numerator, denominator


def _is_plain(node):
    return len(node.args) == 2 and not node.kwargs and all(map(nodes.is_tensor, node.args))


def behind_moves(node):
    """What a tensor is before views and casts of it."""
    while nodes.is_tensor(node) and (nodes.is_view(node) or nodes.name(node) == "to"):
        node = node.args[0]
    return node


def _reduced_dim(graph, node, kind, source, reader):
    """The dimension over which `node` is a reduction of `source` that broadcasts against it where
    `reader` reads both."""
    if not nodes.is_tensor(source) or nodes.shape(node)[-1:] == () or not graph.keeps(node, reader, reader):
        return None
    rank, added = len(nodes.shape(source)), None
    if nodes.name(node) == "unsqueeze":
        reader, added, node = node, nodes.argument(node, 1, "dim") % rank, node.args[0]
    if nodes.name(node) != kind or nodes.argument(node, 0, "input") is not source or not graph.keeps(node, reader, reader) \
            or not graph.keeps(source, node, reader):
        return None
    dim, keeps = reduced_dim(node), nodes.argument(node, 2, "keepdim", False)
    if dim is None or node.kwargs.get("dtype") is not None or not (keeps is True and added is None or added == dim):
        return None
    return dim


def reduced_dim(node):
    """The one dimension that a reduction runs over, from 0; None where it is another number
    of them."""
    dim = nodes.argument(node, 1, "dim")
    if isinstance(dim, (tuple, list)):
        dim, = dim if len(dim) == 1 else (None,)
    rank = len(nodes.shape(nodes.argument(node, 0, "input")))
    return dim % rank if isinstance(dim, int) and not isinstance(dim, bool) else None


def _is_sum_of(node, exponential):
    seen, stack = set(), [node]
    while stack and len(seen) < _MAX_STEPS:
        node = stack.pop()
        if node in seen or not nodes.is_tensor(node):
            continue
        seen.add(node)
        if nodes.name(node) == "sum":
            if behind_moves(nodes.argument(node, 0, "input")) is exponential:
                return True
            continue
        stack += node.all_input_nodes
    return False
