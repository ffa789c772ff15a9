#===----------------------------------------------------------------------===#
#
# Part of attn, an attention compiler.
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===----------------------------------------------------------------------===#
"""Lines of a user's program that nodes of a graph come from."""

import collections
import os
import re

import torch

# A file, the number of a line, and what is written there ("" where nobody knows).
Place = collections.namedtuple("Place", "file line text")

_FRAME = re.compile(r'\s*File "([^"]*)", line (\d+)')
_PYTORCH = os.path.dirname(os.path.abspath(torch.__file__)) + os.sep


def place(node):
    """The Place of a node, the last that is no code of PyTorch; None where nobody knows."""
    found, lines = [], (node.meta.get("stack_trace") or "").splitlines()
    for number, line in enumerate(lines):
        frame = _FRAME.match(line)
        if frame:
            text = lines[number + 1].strip() if number + 1 < len(lines) else ""
            found.append(Place(frame[1], int(frame[2]), "" if _FRAME.match(text) else text))
    own = [each for each in found if not each.file.startswith(_PYTORCH)]
    return (own or found or [None])[-1]


def written(node):
    """ "file:line", or "" """
    where = place(node)
    return f"{where.file}:{where.line}" if where else ""


def quoted(node):
    """ "file:line: what is written there", or "" """
    where = place(node)
    return written(node) + (f": {where.text}" if where.text else "") if where else ""
