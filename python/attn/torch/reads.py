#===----------------------------------------------------------------------===#
#
# Part of attn, an attention compiler.
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===----------------------------------------------------------------------===#
"""What a function of scores or masks read of tensors while it was traced: a divisor, what
.item() gave, the flags of table[flags], whose size they are.

Its region is made for these numbers, and is right for other calls where the tensors hold
the same ones. To know, they are read again: nothing else tells of all that can write to a
tensor, through views, .data, NumPy or kernels of somebody else.
"""

import torch

from .steps import source

_MOST = 2**20  # bytes of a tensor that are compared
_BITS = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}  # by bytes


class Reads:
    """Those of one call of a function."""

    def __init__(self):
        self._found = []  # of each read, the choices of what to compare: [(tensor, _Elements)]

    def mark(self):
        return len(self._found)

    def add(self, tensor, given=()):
        """The elements of a tensor were asked for; where it is nothing that later calls have,
        those of `given` say as much: a call of PyTorch made it of these alone."""
        if any(choices[0][0][0] is tensor for choices in self._found):
            return
        with torch._C.DisableTorchFunction():
            choices = [[(tensor, _Elements.of(tensor))]]
            if given and not any(x is tensor for x in given):
                choices.append([(x, _Elements.of(x)) for x in given])
        self._found.append(choices)

    def drop(self, mark, tensors):
        """Since the mark none of these was read but by what is done again in later calls."""
        self._found[mark:] = [choices for choices in self._found[mark:]
                              if not any(choices[0][0][0] is x for x in tensors)]

    def kept(self, find):
        """[(what steps.source takes, _Elements)] for other calls, or None where these cannot
        tell. find: of a tensor, the former, or None."""
        kept = []
        for choices in self._found:
            choice = next((found for found in (_kept(choice, find) for choice in choices) if found is not None), None)
            if choice is None:
                return None
            kept += choice
        return kept


def _kept(choice, find):
    found = []
    for tensor, elements in choice:
        number = find(tensor)
        if number is None or elements is None or not elements.are_in(tensor):
            return None
        if not isinstance(number, torch.Tensor):  # which is a constant
            found.append((number, elements))
    return found


def hold(kept, leaves):
    """Whether what reached these leaves would read the same."""
    made = {}
    try:
        return all(elements.are_in(source(number, leaves, made)) for number, elements in kept)
    except Exception:  # it cannot be read, or made again: tracing says why
        return False


class _Elements:
    """A copy of what a tensor held."""

    def __init__(self, tensor):
        self._copy = _number(tensor) if tensor.numel() == 1 else _bits(tensor).clone()

    @staticmethod
    def of(tensor):
        """None, where there are too many."""
        size = tensor.element_size()
        return _Elements(tensor) if tensor.numel() * size <= _MOST and size in _BITS else None

    def are_in(self, tensor):
        """Whether a tensor of the same type holds these, to the bit."""
        if tensor.numel() == 1:
            return _number(tensor) == self._copy
        return isinstance(self._copy, torch.Tensor) and torch.equal(self._copy, _bits(tensor))


def _number(tensor):
    number = tensor.item()
    return repr(number) if type(number) in (float, complex) else number  # zero has a sign


def _bits(tensor):
    return tensor.detach().resolve_conj().resolve_neg().contiguous().view(_BITS[tensor.element_size()])
