#===----------------------------------------------------------------------===#
#
# Part of attn, an attention compiler.
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===----------------------------------------------------------------------===#
"""Which element of which tensor: indices of views as digits of the positions of attention.

A position such as the head h of 8 is one digit, (h, 1, 8); the head of its key, of 2, is
the digit (h, 4, 2): h // 4 % 2. An index of a tensor is a list of digits, the most
significant first, and a number that is added. Reshapes join digits and take them apart;
what does not come out even raises Unread.
"""

import collections

Digit = collections.namedtuple("Digit", "var div size")
Index = collections.namedtuple("Index", "digits offset")
# A scalar of a Body; `is_made` says that floats of tensors are in it, or what costs as much,
# `is_natural` that it is an integer that is not negative.
Scalar = collections.namedtuple("Scalar", "name dtype is_made is_natural", defaults=(False,))
# An index that is computed, an i64.
Computed = collections.namedtuple("Computed", "scalar")
ZERO = Index((), 0)


class Unread(Exception):
    """What cannot be read; its text says why. `node` is the node of the graph where that
    is, None where it is none in particular."""

    def __init__(self, reason, node=None):
        super().__init__(reason)
        self.node = node


def size(given):
    """A size as a number, or as the symbol it is known by. What is computed of symbols may
    be one number by a guard of the graph, which nothing puts in its place."""
    if isinstance(given, int):
        return given
    from torch.fx.experimental.symbolic_shapes import statically_known_true

    node = given.node
    if not node.expr.is_Symbol and node.has_hint() and statically_known_true(given == node.hint):
        return node.hint
    return node.expr


def quotient(a, b):
    """a / b, where that is a whole number for all values of the symbols; else None."""
    if isinstance(a, int) and isinstance(b, int):
        return a // b if b and a % b == 0 else None
    if a == b:
        return 1
    import sympy

    result = sympy.cancel(sympy.sympify(a) / b)
    if result.is_Integer:
        return int(result)
    return result if result.as_numer_denom()[1] == 1 else None


def product(sizes):
    result = 1
    for each in sizes:
        result = result * each
    return result


def whole(var, size):
    """The position itself."""
    return Index((), 0) if size == 1 else Index((Digit(var, 1, size),), 0)


def joined(digits):
    """The same digits, as few as there can be."""
    result = []
    for digit in digits:
        last = result[-1] if result else None
        if last and last.var == digit.var and last.div == digit.div * digit.size:
            result[-1] = Digit(digit.var, digit.div, last.size * digit.size)
        elif digit.size != 1:
            result.append(digit)
    return tuple(result)


def split(digits, sizes):
    """The digits of dimensions of those sizes that are one dimension with `digits`."""
    rest, parts = list(digits), []
    for wanted in reversed(sizes):
        taken, count = [], 1
        while count != wanted:
            if not rest:
                raise Unread("a reshape")
            digit, left = rest.pop(), quotient(wanted, count)
            if left is None:
                raise Unread("a reshape that takes dimensions apart unevenly")
            if quotient(left, digit.size) is None:
                more = quotient(digit.size, left)
                if more is None:
                    raise Unread("a reshape that takes dimensions apart unevenly")
                rest.append(Digit(digit.var, digit.div * left, more))
                digit = Digit(digit.var, digit.div, left)
            taken.insert(0, digit)
            count = count * digit.size
        parts.insert(0, joined(taken))
    if any(digit.size != 1 for digit in rest):
        raise Unread("a reshape")
    return parts


def reshaped(indices, shape, source):
    """Indices of a tensor of shape `source` that was reshaped to `shape`."""
    result, at, to = [], 0, 0
    while at < len(shape) or to < len(source):
        group, parts = [], []
        if at < len(shape) and shape[at] == 1:
            at += 1
            continue
        if to < len(source) and source[to] == 1:
            result.append(ZERO)
            to += 1
            continue
        if at == len(shape) or to == len(source):
            raise Unread("a reshape")
        group, parts, at, to = [at], [source[to]], at + 1, to + 1
        while True:
            wide, narrow = product(shape[n] for n in group), product(parts)
            if wide == narrow or quotient(wide, narrow) == 1:
                break
            if quotient(wide, narrow) is not None and to < len(source):
                parts.append(source[to])
                to += 1
            elif at < len(shape):
                group.append(at)
                at += 1
            elif to < len(source):
                parts.append(source[to])
                to += 1
            else:
                raise Unread("a reshape")
        if len(group) == len(parts) == 1:
            result.append(indices[group[0]])
            continue
        digits = []
        for number in group:
            index = indices[number]
            if not isinstance(index, Index) or index.offset != 0:
                raise Unread("a reshape of a part of a tensor")
            if quotient(shape[number], product(digit.size for digit in index.digits)) != 1:
                raise Unread("a reshape of a part of a tensor")
            digits += index.digits
        result += [Index(part, 0) for part in split(joined(digits), parts)]
    return result
