#===----------------------------------------------------------------------===#
#
# Part of attn, an attention compiler.
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===----------------------------------------------------------------------===#
"""The table of spellings: functions of tensors as models have them."""

import collections

import torch

BATCH, HEADS, LENGTH, OTHER, DIM = 3, 4, 10, 7, 8
WIDTH = HEADS * DIM
QKV = [(BATCH, HEADS, LENGTH, DIM)] * 3

# function  of tensors
# inputs    shapes of random floats that have gradients, and tensors that have none
# raised    how many attentions become kernels
# reasons   of each that does not, words of its remark
Spelling = collections.namedtuple("Spelling", "name function inputs raised reasons")

SPELLINGS = []


def spelling(*more, of=QKV, raised=None, reasons=()):
    """Puts a function (or what makes a module) into the table. It is called with tensors
    of the shapes `of` and `more`, or those tensors. One attention of it becomes a kernel,
    none where there are reasons."""
    def note(function):
        made = (reasons,) if isinstance(reasons, str) else reasons
        count = int(not made) if raised is None else raised
        SPELLINGS.append(Spelling(function.__name__, function, [*of, *more], count, made))
        return function
    return note


def make(spelling):
    """(function, inputs)"""
    torch.manual_seed(0)
    inputs = [each if isinstance(each, torch.Tensor) else torch.randn(each).requires_grad_()
              for each in spelling.inputs]
    function = spelling.function() if isinstance(spelling.function, type) else spelling.function
    return function, inputs


def mark(x):
    """Says that only batches and lengths of an input are unknown, as linear layers make it
    of what models get."""
    for dim, size in enumerate(x.shape):
        if size not in (BATCH, LENGTH, OTHER):
            torch._dynamo.mark_static(x, dim)
