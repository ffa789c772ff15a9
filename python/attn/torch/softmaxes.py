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
from .exponentials import as_softmax, divided_product, reduced_dim

__all__ = ["as_softmax", "behind_moves", "divided", "divided_product", "is_softmax", "reduced_dim"]

_MAX_STEPS = 12  # from a denominator to the sum in it


def is_softmax(graph, node):
    """Whether a node is a softmax, of a library or written out, or looks like one."""
    return nodes.is_tensor(node) and any(
        kind(graph, node) is not None for kind in (as_softmax, divided_product, divided))


def divided(graph, node):
    """(numerator, denominator) of a division by what is made of the sum of exponentials
    that are in the numerator; else None."""
    if nodes.name(node) != "div" or len(node.args) != 2 or node.kwargs or not all(map(nodes.is_tensor, node.args)) \
            or not graph.keeps(node.args[0], node):
        return None
    numerator, denominator = node.args
    exponential = behind_moves(numerator)
    if nodes.product_letters(exponential):
        factors = [behind_moves(factor) for factor in nodes.product_letters(exponential)[:2]]
        exponential = next((factor for factor in factors if nodes.name(factor) == "exp"), None)
    if exponential is None or nodes.name(exponential) != "exp" or not _is_sum_of(denominator, exponential):
        return None
    return numerator, denominator


def behind_moves(node):
    """What a tensor is before views and casts of it."""
    while nodes.is_tensor(node) and (nodes.is_view(node) or nodes.name(node) == "to"):
        node = node.args[0]
    return node


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
