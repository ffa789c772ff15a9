#===----------------------------------------------------------------------===#
#
# Part of attn, an attention compiler.
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===----------------------------------------------------------------------===#
"""Exponentials of scores that are divided by their sum, as the softmax that they are.

    e = exp(s), exp2(s), 2 ** s, softmax(s), of these what a mask leaves
    e / e.sum(-1, True), e * (1 / e.sum(-1, True)), normalize(e, p=1, dim=-1), exp(s - logsumexp(s))

A number c beside the sum of exp(s) is the logit log(c) of a key without a value. Beside a sum
that is 1 at least, as that of exp(s - s.amax(-1, True)) is, one that f32 does not see is none.
"""

import collections
import math

import torch

from . import nodes
from .indices import ZERO, Unread, whole

# softmax(changed scores) over a dimension.
#   changes  what happens to the scores first: ("mul", number), or ("hide", mask, how): nothing is
#            seen where a mask `how` ("is" or "is not") 0, or outside of the
#            triangle of a node `how` ("tril" or "triu")
#   sink     a logit that joins the sum, the same number for all; None: none
Softmax = collections.namedtuple("Softmax", "scores dim changes sink", defaults=((), None))

# What the keys of a row have in common with exponentials of scores.
#   exponent   what they are the exponentials of, before changes; None where they are in proportion
#   has_unit   whether the sum of a row is 1 at least
_Exponentials = collections.namedtuple("_Exponentials", "scores changes exponent has_unit")

# A product that is divided: softmax(scores) is in place of `weights`, of which `factor` of the product is
# made. `order` has the dimensions of the product for those of the quotient.
DividedProduct = collections.namedtuple("DividedProduct", "product factor weights softmax order")

_UNSEEN = 2.0**-24  # 1 and this are 1 in f32
_NORMS = ("norm", "linalg_norm", "linalg_vector_norm")
_REPEATED = ("exp", "exp2", "sub", "mul", "max", "to", "same")  # what may be computed twice


def as_softmax(graph, node):
    """The Softmax that a node is, whatever else may come to the same; else None."""
    kind = nodes.name(node)
    if kind == "softmax":
        return Softmax(nodes.argument(node, 0, "input"), nodes.argument(node, 1, "dim"))
    if kind not in ("exp", "div", "mul", "normalize") or not nodes.is_tensor(node):
        return None
    try:
        return getattr(_Match(graph, node), "of_" + kind)()
    except Unread:
        return None


def divided_product(graph, node):
    """The DividedProduct that a node is; else None."""
    if nodes.name(node) not in ("div", "mul") or not nodes.is_tensor(node):
        return None
    for numerator, *divisor in _Match(graph, node).quotients():
        try:
            found = _Match(graph, node).of_product(numerator, *divisor)
        except Unread:
            continue
        if found is not None:
            return found
    return None


class _Match:
    """How a node is made of scores. What it reads is what was made: nothing is written to it in
    between."""

    def __init__(self, graph, node):
        self.graph, self.node = graph, node

    # -----------------------------------------------------------------------
    # Nodes and what they read
    # -----------------------------------------------------------------------

    def _kept(self, given, reader):
        """A tensor that a node reads, as it was made."""
        if not nodes.is_tensor(given) or not self.graph.keeps(given, reader):
            raise Unread("a tensor that was written to")
        if nodes.cuts_gradients(given):
            raise Unread("what gets no gradients")
        return given

    def _operand(self, node, position, keyword):
        return self._kept(nodes.argument(node, position, keyword), node)

    def _behind(self, node, indices, reader):
        """What a tensor is before views and casts of it, with its indices and its reader."""
        while True:
            node = self._kept(node, reader)
            if nodes.is_view(node) and not (nodes.name(node) == "getitem" and not nodes.is_tensor(node.args[0])):
                indices = nodes.viewed(node, indices)
            elif nodes.name(node) != "to" or not nodes.value(node).is_floating_point():
                return node, indices, reader
            reader, node = node, node.args[0]

    @staticmethod
    def _indices(node, shape):
        """Indices of what broadcasts to a shape, of which those of dimension n are x{n}."""
        sizes = nodes.shape(node)
        wide = _markers(shape)[len(shape) - len(sizes):]
        return [ZERO if size == 1 else marker for size, marker in zip(sizes, wide)]

    def _is_alike(self, one, other, steps=6):
        """Whether two nodes hold the same: they are one, or made in one way of the same."""
        if one is other:
            return True
        if steps == 0 or not (nodes.is_tensor(one) and nodes.is_tensor(other)) or one.target != other.target \
                or nodes.name(one) not in _REPEATED or len(one.args) != len(other.args) or one.kwargs != other.kwargs:
            return False
        return all(self._is_alike(a, b, steps - 1) and self.graph.keeps(a, one) and self.graph.keeps(b, other)
                   if isinstance(a, torch.fx.Node) else a == b for a, b in zip(one.args, other.args))

    # -----------------------------------------------------------------------
    # The ways to divide
    # -----------------------------------------------------------------------

    def of_exp(self):
        """exp(log_softmax(s)), exp(s - logsumexp(s)), exp(s - log(exp(s).sum()))"""
        exponent = self._operand(self.node, 0, "input")
        kind = nodes.name(exponent)
        if kind == "log_softmax":
            return self._softmax(self._operand(exponent, 0, "input"), nodes.argument(exponent, 1, "dim"))
        if kind != "sub" or not _is_plain(exponent):
            return None
        scores = self._operand(exponent, 0, "input")
        if nodes.shape(scores) != nodes.shape(exponent):
            return None
        rest, markers = exponent.args[1], _markers(nodes.shape(exponent))
        rest, indices, _ = self._behind(rest, self._indices(rest, nodes.shape(exponent)), exponent)
        if nodes.name(rest) == "logsumexp":
            source, dim = self._reduced(rest, indices, markers)
            return self._softmax(scores, dim) if self._is_alike(source, scores) else None
        if nodes.name(rest) != "log":
            return None
        x, dim, added = self._sum(rest.args[0], indices, rest, markers)
        if nodes.name(x) != "exp" or not self._is_alike(self._operand(x, 0, "input"), scores):
            return None
        return self._quotient(x, dim, added)

    def of_div(self):
        """x / x.sum()"""
        for x, *divisor in self.quotients():
            if nodes.shape(x) == nodes.shape(self.node):
                of_sum, dim, added = self._sum(*divisor, _markers(nodes.shape(x)))
                reader = self.node
                while not self._is_alike(x, of_sum):
                    x = self._kept(x, reader)
                    if nodes.name(x) not in ("to", "same"):
                        return None
                    reader, x = x, x.args[0]
                return self._quotient(self._kept(x, reader), dim, added)
        return None

    of_mul = of_div

    def quotients(self):
        """(what is divided, the divisor, its indices, its reader) of a / z, and of a * (1 / z)."""
        if not _is_plain(self.node):
            return
        shape = nodes.shape(self.node)
        for x, rest in (self.node.args, self.node.args[::-1]):
            if nodes.name(self.node) == "div":
                yield x, rest, self._indices(rest, shape), self.node
                return
            try:
                inverse, indices, _ = self._behind(rest, self._indices(rest, shape), self.node)
            except Unread:
                continue
            divisor = _inverted(inverse)
            if nodes.is_tensor(divisor) and nodes.shape(divisor) == nodes.shape(inverse):
                yield x, divisor, indices, inverse

    def of_product(self, numerator, divisor, indices, reader):
        """(x @ values) / x.sum()"""
        shape = nodes.shape(self.node)
        if nodes.shape(numerator) != shape:
            return None
        product, at, _ = self._behind(numerator, _markers(shape), self.node)
        letters = nodes.product_letters(product)
        if letters is None or nodes.name(product) in nodes.ADDED or len(at) != len(shape):
            return None
        own = dict(zip(letters[4], at))
        order = sorted(range(len(at)), key=lambda n: _markers(shape).index(at[n]) if at[n] != ZERO else -1)
        if [at[n] for n in order if at[n] != ZERO] != [each for each in _markers(shape) if each != ZERO]:
            return None  # other views than those that move dimensions
        order = _with_ones(order, at, shape)
        for factor, of_factor in zip(letters[:2], letters[2:4]):
            x, reader_of_x = self._kept(factor, product), product
            while nodes.name(x) in ("to", "same"):
                reader_of_x, x = x, self._kept(x.args[0], x)
            try:
                of_sum, dim, added = self._sum(divisor, indices, reader, [ZERO if x is None else own.get(x) for x in of_factor])
            except Unread:
                continue
            if self._is_alike(x, of_sum) and of_factor[dim] not in own:
                return DividedProduct(product, factor, x, self._quotient(x, dim, added), order)
        return None

    def of_normalize(self):
        x, power, dim, least = (nodes.argument(self.node, n, name, default) for n, (name, default) in enumerate(
            (("input", None), ("p", 2.0), ("dim", 1), ("eps", 1e-12))))
        if nodes.known(power) != 1 or not isinstance(dim, int):
            return None
        return self._quotient(self._kept(x, self.node), dim % len(nodes.shape(x)), ("clamp", least))

    # -----------------------------------------------------------------------
    # The sum
    # -----------------------------------------------------------------------

    def _sum(self, node, indices, reader, wanted):
        """(x, dim, what is added) of a sum over a dimension of x, of which these are the indices but
        for that dimension."""
        node, indices, reader = self._behind(node, indices, reader)
        kind, added = nodes.name(node), None
        if kind in ("add", "clamp", "clamp_min"):
            first, second = nodes.argument(node, 0, "input"), nodes.argument(node, 1, "other" if kind == "add" else "min")
            if kind == "add" and not nodes.is_tensor(first):
                first, second = second, first
            others = set(node.kwargs) - {"input", "other", "min"}
            if others or len(node.args) > 2 or not nodes.is_tensor(first):
                raise Unread("a sum with more")
            if kind == "add" and nodes.is_tensor(second):
                first, added = self._beside(node, indices, first, second)
            else:
                added = "add" if kind == "add" else "clamp", second
            node, indices, reader = self._behind(first, indices, node)
        source, dim = self._reduced(node, indices, wanted)
        return source, dim, added

    def _beside(self, node, indices, *addends):
        """(sum, ("exp", what makes a logit of 0)) of exp(x).sum() + exp(-top)"""
        for first, second in (addends, addends[::-1]):
            inner, _, _ = self._behind(second, indices, node)
            if nodes.name(inner) == "exp" and nodes.name(self._operand(inner, 0, "input")) == "neg" \
                    and nodes.shape(first) == nodes.shape(second) == nodes.shape(node):
                return first, ("exp", self._operand(self._operand(inner, 0, "input"), 0, "input"))
        raise Unread("a sum with more")

    def _reduced(self, node, indices, wanted):
        """(x, dim) of a sum of x, or the logarithm of exponentials' sum."""
        kind, place = nodes.name(node), 1
        if kind in _NORMS:
            place = 2
            if nodes.known(nodes.argument(node, 1, "p", node.kwargs.get("ord"))) != 1:
                raise Unread("a norm of another power")
        if kind == "einsum":
            source, dim, indices = self._summed_by_letters(node, indices)
        elif kind in ("sum", "logsumexp", *_NORMS):
            source, dim = self._operand(node, 0, "A" if "A" in node.kwargs else "input"), reduced_dim(node, place)
            if dim is not None and nodes.argument(node, place + 1, "keepdim", False) is True:
                indices = indices[:dim] + indices[dim + 1:]
        else:
            raise Unread("no sum")
        if dim is None or len(nodes.shape(source)) != len(wanted) or list(indices) != wanted[:dim] + wanted[dim + 1:] \
                or nodes.value(node).dtype.itemsize < nodes.value(source).dtype.itemsize:
            raise Unread("a sum of something else")
        reader = node
        while nodes.name(source) in ("to", "same") and kind != "logsumexp":
            reader, source = source, source.args[0]
            source = self._kept(source, reader)
        return source, dim

    def _summed_by_letters(self, node, indices):
        """(x, dim, indices) of einsum("bhij->bhi", x)"""
        text, *operands = node.args
        given, _, result = text.replace(" ", "").partition("->") if isinstance(text, str) else ("", "", "")
        gone = [letter for letter in given if letter not in result]
        if len(operands) != 1 or not given.isalpha() or len(set(given)) != len(given) or len(gone) != 1 \
                or len(given) != len(result) + 1:
            raise Unread("an einsum of more")
        own = dict(zip(result, indices))
        return self._kept(operands[0], node), given.index(gone[0]), [own[letter] for letter in given if letter in own]

    # -----------------------------------------------------------------------
    # What is divided
    # -----------------------------------------------------------------------

    def _quotient(self, x, dim, added):
        """The Softmax of x over its sum with what is added to it."""
        found = self._exponentials(x, dim)
        sink = None
        if added is not None:
            how, number = added
            if how == "exp":
                found, sink = self._without_top(found, number), 0.0
            else:
                number = nodes.known(number)
                if number is None or not 0 <= number < math.inf:
                    raise Unread("a number beside the sum")
                is_unseen = found.has_unit and number <= (_UNSEEN if how == "add" else 0.5)
                if number > 0 and not is_unseen:
                    if how != "add" or found.exponent is not found.scores:
                        raise Unread("a number beside the sum")
                    sink = math.log(number)
        return self._softmax(found.scores, dim, found.changes, sink)

    def _exponentials(self, x, dim):
        """The _Exponentials that x is."""
        kind, shape = nodes.name(x), nodes.shape(x)
        if kind == "softmax" or kind in ("div", "mul", "normalize", "exp"):
            found = as_softmax(self.graph, x)
            if found is not None and found.sink is None and isinstance(found.dim, int) and found.dim % len(shape) == dim:
                return _Exponentials(found.scores, found.changes, None, True)
        if kind in ("exp", "exp2"):
            return self._of_scores(self._operand(x, 0, "input"), 1 if kind == "exp" else math.log(2), dim)
        if kind == "pow" and nodes.known(nodes.argument(x, 0, "self")) is not None and nodes.is_tensor(nodes.argument(x, 1, "exponent")):
            base = nodes.known(nodes.argument(x, 0, "self"))
            if not 0 < base < math.inf:
                raise Unread("powers of what is not positive")
            return self._of_scores(self._operand(x, 1, "exponent"), math.log(base), dim)
        if kind in ("to", "same"):
            return self._exponentials(self._operand(x, 0, "input"), dim)
        for rest, mask, how in self._masked(x):
            if nodes.is_tensor(rest) and nodes.shape(rest) == shape and nodes.is_tensor(mask):
                found = self._exponentials(self._kept(rest, x), dim)
                hidden = "hide", mask if mask is x else self._kept(mask, x), how
                return found._replace(changes=(*found.changes, hidden), has_unit=False)
        raise Unread("no exponentials")

    def _of_scores(self, scores, factor, dim):
        """Of powers of scores, and of scores less the largest of their row."""
        changes, is_topped, exponent = (("mul", factor),) * (factor != 1), False, scores
        if nodes.name(scores) == "sub" and _is_plain(scores) and factor > 0:
            inner, top = scores.args
            is_topped = self._is_top(scores, inner, top, dim)
            scores = self._kept(inner, scores) if is_topped else scores
        return _Exponentials(scores, changes, exponent, is_topped)

    def _is_top(self, reader, scores, top, dim):
        """Whether one is the largest of the scores, for all of the dimension."""
        indices = self._indices(top, nodes.shape(scores))
        while nodes.is_view(top) or nodes.name(top) in ("to", "detach", "getitem"):
            if not self.graph.keeps(top, reader):
                return False
            if nodes.name(top) == "getitem" and not nodes.is_tensor(top.args[0]):
                if top.args[1] != 0:
                    return False
                reader, top = top, top.args[0]
                break
            indices = nodes.viewed(top, indices) if nodes.is_view(top) else indices
            reader, top = top, top.args[0]
        if nodes.name(top) != "max" or reduced_dim(top) != dim or not self.graph.keeps(top, reader):
            return False
        source, reader = nodes.argument(top, 0, "input"), top
        while nodes.name(source) in ("detach", "same") and self.graph.keeps(source, reader):
            reader, source = source, source.args[0]
        if nodes.argument(top, 2, "keepdim", False) is True:
            indices = indices[:dim] + indices[dim + 1:]
        wanted = _markers(nodes.shape(scores))
        return source is scores and self.graph.keeps(source, reader) and list(indices) == wanted[:dim] + wanted[dim + 1:]

    def _without_top(self, found, top):
        """Of exp(s - top), beside which there is exp(-top): s, beside which there is 1."""
        exponent = found.exponent
        if exponent is None or found.changes or nodes.name(exponent) != "sub" or not _is_plain(exponent) \
                or self._kept(exponent.args[1], exponent) is not top:
            raise Unread("a number beside the sum")
        return found._replace(scores=self._kept(exponent.args[0], exponent))

    def _masked(self, x):
        """[(exponentials, mask, when that hides)], where x may be what a mask leaves of them."""
        kind, args = nodes.name(x), x.args
        if kind == "mul" and len(args) == 2 and not x.kwargs:
            return [(a, b, "is") for a, b in (args, args[::-1]) if nodes.is_tensor(b) and self._is_binary(b, x)]
        if kind in ("tril", "triu"):
            return [(nodes.argument(x, 0, "input"), x, kind)]
        if kind == "masked_fill" and nodes.known(nodes.argument(x, 2, "value")) == 0:
            return [(nodes.argument(x, 0, "input"), nodes.argument(x, 1, "mask"), "is not")]
        if kind == "where" and x.op == "call_function" and len(args) == 3:
            return [(a, args[0], how) for a, b, how in ((args[1], args[2], "is"), (args[2], args[1], "is not"))
                    if nodes.known(b) == 0]
        return []

    def _is_binary(self, node, reader):
        """Whether nothing but 0 and 1 is in a tensor."""
        if not self.graph.keeps(node, reader):
            return False
        kind = nodes.name(node)
        if nodes.value(node).dtype.is_floating_point and nodes.value(node).requires_grad:
            return False
        if nodes.value(node).dtype == torch.bool or kind in ("ones", "zeros", "ones_like", "zeros_like", "eye"):
            return True
        if nodes.is_view(node) or kind in ("to", "tril", "triu"):
            return nodes.is_tensor(node.args[0]) and self._is_binary(node.args[0], node)
        if kind in ("mul", "minimum", "maximum") and len(node.args) == 2:
            return all(nodes.is_tensor(each) and self._is_binary(each, node) for each in node.args)
        if kind in ("sub", "rsub") and len(node.args) == 2 and not node.kwargs:
            one, mask = node.args if kind == "sub" else node.args[::-1]
            return nodes.known(one) == 1 and nodes.is_tensor(mask) and self._is_binary(mask, node)
        return False

    def _softmax(self, scores, dim, changes=(), sink=None):
        """The Softmax that the node is: it reads what the nodes before it have read."""
        for tensor in (scores, *(change[1] for change in changes if change[0] == "hide")):
            self._kept(tensor, self.node)
        return Softmax(scores, dim, changes, sink)


def _is_plain(node):
    """Whether it is of two tensors, and of nothing else."""
    return len(node.args) == 2 and not node.kwargs and all(map(nodes.is_tensor, node.args))


def _markers(shape):
    return [whole(f"x{n}", size) for n, size in enumerate(shape)]


def _inverted(node):
    """z of 1 / z; None of anything else."""
    kind, args = nodes.name(node), node.args
    if kind == "reciprocal":
        return nodes.argument(node, 0, "input")
    if kind == "div" and len(args) == 2 and not node.kwargs and nodes.known(args[0]) == 1:
        return args[1]
    if kind == "pow" and nodes.known(nodes.argument(node, 1, "exponent")) == -1:
        return nodes.argument(node, 0, "input")
    return None


def _with_ones(order, at, shape):
    """An order of dimensions in which those of size 1 stand where the shape has them."""
    ones, rest = [n for n in order if at[n] == ZERO], [n for n in order if at[n] != ZERO]
    return [ones.pop(0) if size == 1 else rest.pop(0) for size in shape]


def reduced_dim(node, place=1):
    """The one dimension that a reduction runs over, from 0, which its argument number `place` says;
    None where it is another number of them."""
    dim = nodes.argument(node, place, "dim")
    if isinstance(dim, (tuple, list)):
        dim, = dim if len(dim) == 1 else (None,)
    source = nodes.argument(node, 0, "input", node.kwargs.get("A"))
    rank = len(nodes.shape(source))
    return dim % rank if isinstance(dim, int) and not isinstance(dim, bool) else None
