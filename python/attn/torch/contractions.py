#===----------------------------------------------------------------------===#
#
# Part of attn, an attention compiler.
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===----------------------------------------------------------------------===#
"""Products of tensors, spelled as those of two that are read as products, and as plain
multiplications: einsum of three factors, of lists of numbers, of nothing that is summed or of
more than one letter; tensordot; linear without parameters; a factor of weights that is the same
for all keys or all queries of a row.

    einsum("bhqd,bhkd,bhk->bhqk", q, k, g)   einsum("bhqd,bhkd->bhqk", q, k) * g[:, :, None]
    (softmax(scores) * g) @ v                (softmax(scores) @ v) * g, where g is of rows
    q @ k.mT in 16 bits, of f32 tensors      q.bfloat16() @ k.mT.bfloat16(), as autocast casts them
"""

import itertools

import torch

from . import nodes, softmaxes
from .indices import product

_LETTERS = "abcdefghijklmnopqrstuvwxyz"
_CAST = ("matmul", "bmm", "__matmul__", "mm", "linalg_matmul", "baddbmm", "addmm", "einsum")


def spell(graph):
    """Nothing happens to what cannot be spelled in such a way."""
    order = nodes.Graph(graph)
    for node in list(graph.nodes):
        if nodes.name(node) in _CAST and nodes.is_tensor(node) and nodes.value(node).dtype in (torch.float16, torch.bfloat16):
            _spell_casts(graph, node)
    for node in list(graph.nodes):
        if nodes.name(node) not in ("linear", "einsum", "tensordot") or not nodes.is_tensor(node) or order.transforms(node):
            continue
        if nodes.name(node) == "linear":
            _spell_linear(graph, node)
            continue
        found = _letters_of(node)
        if found is not None and _spell_product(graph, node, *found):
            node.replace_all_uses_with(node.prev)
            graph.erase_node(node)
    for node in list(graph.nodes):
        if nodes.name(node) == "mul" and nodes.is_tensor(node) and not nodes.writes_to(node) and len(node.args) == 2:
            for weights, gate in (node.args, node.args[::-1]):
                if nodes.is_tensor(weights) and softmaxes.as_softmax(nodes.Graph(graph), softmaxes.behind_moves(weights)):
                    _spell_gate(graph, node, weights, gate)
                    break


class _Writer:
    """Writes nodes like another one, before it."""

    def __init__(self, graph, node):
        self.graph, self.node = graph, node

    def call(self, function, *args):
        with self.graph.inserting_before(self.node):
            new = self.graph.call_function(function, args)
        with torch.set_grad_enabled(nodes.value(self.node).requires_grad):
            made = function(*torch.fx.map_arg(args, nodes.value))
        new.meta = {**self.node.meta, "example_value": made}
        return new

    def arranged(self, x, own, wanted):
        """A tensor with its dimensions as `wanted` has their letters, those that it lacks as 1."""
        order = [own.index(letter) for letter in wanted if letter in own]
        if order != list(range(len(own))):
            x = self.call(torch.permute, x, tuple(order))
        for dim, letter in enumerate(wanted):
            if letter not in own:
                x = self.call(torch.unsqueeze, x, dim)
        return x

    def flattened(self, x, own, together):
        """(tensor, letters) with the last letters in one dimension."""
        kept = [letter for letter in own if letter not in together]
        x = self.arranged(x, own, kept + together)
        return self.call(torch.flatten, x, len(kept), -1), kept + together[:1]

    def einsum(self, factors, result):
        return self.call(torch.einsum, f"{','.join(''.join(own) for _, own in factors)}->{''.join(result)}",
                         *(x for x, _ in factors))


def _spell_casts(graph, node):
    """Of a product under autocast. Parameters stay: their casts are kept from layer to layer."""
    wide = [x for x in node.all_input_nodes if nodes.is_tensor(x) and nodes.value(x).dtype == torch.float32]
    if any(isinstance(nodes.value(x), torch.nn.Parameter) for x in wide):
        return
    for x in wide:
        cast = _Writer(graph, node).call(torch.Tensor.to, x, nodes.value(node).dtype)
        node.replace_input_with(x, cast)


def _spell_linear(graph, node):
    """Of a weight that is no parameter."""
    first, weight, bias = (nodes.argument(node, n, name) for n, name in enumerate(("input", "weight", "bias")))
    if bias is not None or not (nodes.is_tensor(first) and nodes.is_tensor(weight)) or len(nodes.shape(first)) < 2 \
            or len(nodes.shape(weight)) != 2 or len({nodes.value(x).dtype for x in (node, first, weight)}) != 1 or any(isinstance(nodes.value(x), torch.nn.Parameter) for x in (first, weight)):
        return
    write = _Writer(graph, node)
    new = write.call(torch.matmul, first, write.call(torch.t, weight))
    node.replace_all_uses_with(new)
    graph.erase_node(node)


def _letters_of(node):
    """([(factor, letters)], letters of the result) of einsum or tensordot; None: of one that is
    not spelled out."""
    if nodes.name(node) == "tensordot":
        found = _of_tensordot(node)
    else:
        found = None if node.kwargs else _of_einsum(*node.args)
    if found is None:
        return None
    factors, result = found
    if any(not nodes.is_tensor(x) or len(set(own)) != len(own) or len(own) != len(nodes.shape(x)) for x, own in factors):
        return None
    if any(nodes.value(x).dtype != nodes.value(node).dtype for x, _ in factors):  # under autocast
        return None
    sizes = {}  # none of which is 1 beside more
    for x, own in factors:
        for letter, size in zip(own, nodes.shape(x)):
            if sizes.setdefault(letter, size) != size:
                return None
    return factors, result


def _of_einsum(first, *rest):
    if nodes.is_tensor(first):  # einsum(a, [0, 1], b, [1, 2], [0, 2])
        given = [first, *rest]
        result = given.pop() if len(given) % 2 else None
        pairs = list(zip(given[::2], given[1::2]))
        if result is None or not all(isinstance(n, int) and 0 <= n < 26 for _, own in [*pairs, (None, result)] for n in own):
            return None
        factors = [(x, [_LETTERS[n] for n in own]) for x, own in pairs]
        result = [_LETTERS[n] for n in result]
    else:
        if len(rest) == 1 and isinstance(rest[0], (tuple, list)):
            rest = rest[0]
        if not isinstance(first, str) or "->" not in first or "." in first:
            return None
        inputs, _, result = first.replace(" ", "").partition("->")
        factors, result = list(zip(rest, map(list, inputs.split(",")))), list(result)
        if len(factors) != len(rest):
            return None
    return factors, result


def _of_tensordot(node):
    a, b = (nodes.argument(node, n, name) for n, name in enumerate("ab"))
    dims = nodes.argument(node, 2, "dims", 2)
    if not (nodes.is_tensor(a) and nodes.is_tensor(b)) or node.kwargs.get("out") is not None:
        return None
    first, second = len(nodes.shape(a)), len(nodes.shape(b))
    if isinstance(dims, int):
        dims = list(range(first - dims, first)), list(range(dims))
    if not isinstance(dims, (tuple, list)) or len(dims) != 2 or not all(isinstance(x, (tuple, list)) for x in dims):
        return None
    own, other = list(_LETTERS[:first]), list(_LETTERS[first:first + second])
    for x, y in zip(*dims):
        other[y] = own[x]
    if any(nodes.shape(a)[x] != nodes.shape(b)[y] for x, y in zip(*dims)):
        return None
    summed = {own[x] for x in dims[0]}
    return [(a, own), (b, other)], [x for x in own + other if x not in summed]


def _spell_product(graph, node, factors, result):
    """Whether the node before now computes it."""
    write, is_changed = _Writer(graph, node), nodes.name(node) == "tensordot" or not isinstance(node.args[0], str)
    while len(factors) > 2:
        pair, between = _pair(factors, result)
        if pair is None:
            return False
        rest = [factor for factor in factors if factor not in pair]
        factors, is_changed = [(_product(write, *pair, between), between), *rest], True
    if len(factors) != 2:
        return False
    (_, first), (_, second) = factors
    summed = {x for x in (*first, *second) if x not in result}
    if not summed <= set(first) & set(second):
        return False  # a sum of one factor
    if not is_changed and len(summed) == 1:
        return False  # it is one that is read
    _product(write, *factors, result)
    return True


def _pair(factors, result):
    """(two factors, letters of their product), which is no larger than what there is."""
    sizes = {letter: size for x, own in factors for letter, size in zip(own, nodes.shape(x))}
    held = [own for _, own in factors] + [result]
    for pair in itertools.combinations(factors, 2):
        others = {letter for factor in factors if factor not in pair for letter in factor[1]} | set(result)
        between = list(dict.fromkeys(letter for _, own in pair for letter in own if letter in others))
        known = [product(sizes[letter] for letter in own) for own in (*held, between)]
        is_small = any(set(between) <= set(own) for own in held) or all(
            isinstance(n, int) for n in known) and known[-1] <= max(known[:-1])
        if is_small:
            return pair, between
    return None, None


def _product(write, a, b, result):
    """The product of two factors; each is a tensor and its letters."""
    letters = [*a[1], *b[1]]
    if set(letters) == set(result):
        return write.call(torch.mul, *(write.arranged(x, own, result) for x, own in (a, b)))
    summed = [x for x in a[1] if x in b[1] and x not in result]
    if len(summed) > 1:
        a, b = (write.flattened(x, own, summed) for x, own in (a, b))
    return write.einsum([a, b], result)


def _spell_gate(graph, node, weights, gate):
    """Weights times a number of each row, or of each key, and then values: that changes results
    or values."""
    user = next(iter(node.users), None)
    found = nodes.product_letters(user) if len(node.users) == 1 and nodes.is_tensor(user) else None
    if not nodes.is_tensor(gate) or found is None or nodes.name(user) in nodes.ADDED or (found[0] is node) == (found[1] is node) \
            or len(weights.users) != 1 or not nodes.value(gate).is_floating_point():
        return
    a, b, of_a, of_b, result = found
    own, others, values = (of_a, of_b, b) if a is node else (of_b, of_a, a)
    if len({nodes.value(x).dtype for x in (node, weights, gate, values, user)}) != 1 or None in [*own, *others] \
            or nodes.shape(weights) != nodes.shape(node):
        return
    sizes = nodes.shape(gate)
    of_gate = [None if size == 1 else letter for letter, size in zip(own[len(own) - len(sizes):], sizes)]
    used = [letter for letter in of_gate if letter is not None]
    key, = [letter for letter in own if letter not in result] or [None]
    order = nodes.Graph(graph)
    if order.transforms(user) or order.writes(gate, node, user) \
            or order.is_without_gradients(node) != order.is_without_gradients(user):
        return
    write = _Writer(graph, user)
    if key not in used:
        narrow = _squeezed(write, gate, of_gate)
        user.replace_input_with(node, weights)
        arranged = write.arranged(narrow, used, result)
        with graph.inserting_after(user):
            new = graph.call_function(torch.mul, (user, arranged))
        new.meta = dict(user.meta)
        user.replace_all_uses_with(new, delete_user_cb=lambda each: each is not new)
    elif set(used) <= set(others):
        changed = write.call(torch.mul, values, write.arranged(_squeezed(write, gate, of_gate), used, others))
        user.replace_input_with(values, changed)
        user.replace_input_with(node, weights)
    else:
        return
    graph.erase_node(node)


def _squeezed(write, x, letters):
    for dim in reversed([dim for dim, letter in enumerate(letters) if letter is None]):
        x = write.call(torch.squeeze, x, dim)
    return x
