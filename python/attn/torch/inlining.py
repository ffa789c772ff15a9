#===----------------------------------------------------------------------===#
#
# Part of attn, an attention compiler.
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===----------------------------------------------------------------------===#
"""Functions of PyTorch that hold attention and stand in a graph as one node, taken apart."""

import torch
from torch.fx.experimental.proxy_tensor import make_fx
from torch.utils import _pytree as pytree

from . import nodes

_WHOLE = ("multi_head_attention_forward",)


def inline(graph):
    """Puts the operations of nn.MultiheadAttention in the place of its one node."""
    for node in list(graph.nodes):
        if nodes.name(node) in _WHOLE and nodes.value(node) is not None:
            _inline_one(graph, node)


def _inline_one(graph, node):
    """Nothing happens where it cannot be traced."""
    leaves, tree = pytree.tree_flatten((node.args, node.kwargs))
    numbers = [n for n, leaf in enumerate(leaves) if isinstance(leaf, torch.fx.Node)]
    given = [leaves[n] for n in numbers]
    is_used = [bool([user for user in node.users if user.args[1] == n and user.users]) for n in range(2)]
    if any(nodes.name(user) != "getitem" for user in node.users):
        return

    def function(*values):
        filled = list(leaves)
        for number, value in zip(numbers, values):
            filled[number] = value
        args, kwargs = pytree.tree_unflatten(filled, tree)
        results = node.target(*args, **kwargs)
        return tuple(result for result, used in zip(results, is_used) if used)

    examples = [nodes.value(leaf) for leaf in given]
    try:
        inner = make_fx(function, tracing_mode="symbolic", pre_dispatch=True,
                        _allow_non_fake_inputs=True)(*examples).graph
    except Exception:  # the node stays as it is
        return
    inner.eliminate_dead_code()
    if any(each.op in ("get_attr", "call_module") for each in inner.nodes):
        return
    places = iter(given)
    copies = {}
    with graph.inserting_before(node):
        for each in inner.nodes:
            if each.op == "placeholder":
                copies[each] = next(places)
            elif each.op == "output":
                results = [copies[result] for result in each.args[0]]
            else:
                copies[each] = graph.node_copy(each, copies.get)
                # A kernel's result may lie in memory otherwise than the one traced.
                if each.target is torch.ops.aten.view.default:
                    copies[each].target = torch.ops.aten.reshape.default
                copies[each].meta["stack_trace"] = node.meta.get("stack_trace")
    rest = iter(results)
    by_number = {n: next(rest) for n in range(2) if is_used[n]}
    for user in list(node.users):
        if user.users:
            user.replace_all_uses_with(by_number[user.args[1]])
        graph.erase_node(user)
    graph.erase_node(node)
