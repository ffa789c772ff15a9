#===----------------------------------------------------------------------===#
#
# Part of attn, an attention compiler.
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===----------------------------------------------------------------------===#
"""The text of the program that a call of attention() needs, from what it was given.

Equal calls have equal texts, made once: a text is what kernels are found by. Positions
of packed sequences (cu_seqlens) are those inside of a document: score and mask
functions see the number of the document as b, and i and j from its first query and
key on.
"""

import collections
import re
import warnings
from functools import lru_cache

from .. import attention as _attention
from .. import expression

# What a program depends on, hashable. causal: "", "bottom_right" or "top_left"; window:
# (left, right), -1 for no bound; alibi: "", "named" (slopes by number of the head),
# "h" or "bh" (captured); packed: "", "one" (queries and keys have the same offsets) or
# "two"; numerics: those of forms.py; score, mask: lines of MLIR; captures: (name, type) pairs of theirs.
Choice = collections.namedtuple(
    "Choice",
    "element head_dim value_dim scale causal window softcap alibi has_sink dropout_p has_lens "
    "packed numerics score mask captures",
)

NAMES = SLOPES, LENS, QUERY_OFFSETS, KEY_OFFSETS = "slopes", "kv_lens", "cu_seqlens_q", "cu_seqlens_k"
_LINE = re.compile(r"(%\w+)\s*=\s*(.*)")
_NAME = re.compile(r"%\w+")


def own_captures(choice):
    """(name, type) of what the program captures besides what its functions do, in
    the order of its operands."""
    captures = []
    if choice.alibi in ("h", "bh"):
        captures.append((SLOPES, "tensor<?xf32>" if choice.alibi == "h" else "tensor<?x?xf32>"))
    if choice.has_lens:
        captures.append((LENS, "tensor<?xi32>"))
    if choice.packed:
        captures.append((QUERY_OFFSETS, "tensor<?xi32>"))
    if choice.packed == "two":
        captures.append((KEY_OFFSETS, "tensor<?xi32>"))
    return captures


def one_line(program):
    """The text of a program without line ends: Inductor writes the arguments of
    operators into comments of the code that it makes."""
    return " ".join(line.strip() for line in program.splitlines())


@lru_cache(maxsize=None)
def text(choice):
    """The program of a choice, in one line."""
    variants, score, mask = _variants(choice), [], []
    if choice.packed or choice.has_lens:
        variants, mask = [], [_visible(choice)]
    if choice.softcap is not None:  # in this order, and before the score of the caller
        variants.append(f"softcap<{choice.softcap!r} : f64>")
    if choice.alibi == "named" and not choice.packed and not choice.has_lens:
        variants.append(f"alibi<{_alignment(choice)}>")
    elif choice.alibi:
        score.append(_slope(choice))
    if choice.score is not None:
        score.append(_inlined(choice.score, choice))
    if choice.mask is not None:
        mask.append(_inlined(choice.mask, choice))
    with warnings.catch_warnings():  # a score may ignore the products here
        warnings.filterwarnings("ignore", message="the score ignores x")
        return one_line(str(_attention(
            choice.element, choice.head_dim, choice.value_dim, scale=choice.scale, variants=variants,
            captures=[*own_captures(choice), *choice.captures],
            score=_chained(score) if score else None, mask=_all(mask) if mask else None,
            sink=choice.has_sink, dropout_p=choice.dropout_p, numerics=choice.numerics,
            sorted_captures=[name for name, _ in own_captures(choice) if name in (QUERY_OFFSETS, KEY_OFFSETS)],
        )))


def _alignment(choice):
    return choice.causal or "bottom_right"


def _variants(choice):
    variants = [f"causal<{choice.causal}>"] if choice.causal else []
    left, right = choice.window
    if (left, right) != (-1, -1):
        variants.append(f"window<left = {left}, right = {right}, alignment = {_alignment(choice)}>")
    return variants


def _chained(scores):
    def score(p):
        for part in scores:
            p.x = part(p)
        return p.x
    return score


def _all(masks):
    def mask(p):
        result = masks[0](p)
        for part in masks[1:]:
            result = result & part(p)
        return result
    return mask


# ---------------------------------------------------------------------------
# Where queries and keys lie beside each other
# ---------------------------------------------------------------------------


def _documents(p, choice):
    """The captured offsets of queries and of keys, and the document of the query, from
    1 on."""
    if not hasattr(p, "_document"):  # searched once
        p._document = getattr(p, QUERY_OFFSETS).upto(p.i)
    queries = getattr(p, QUERY_OFFSETS)
    keys = getattr(p, KEY_OFFSETS) if choice.packed == "two" else queries
    return queries, keys, p._document


def _distances(p, choice):
    """(of the query, of the key) from where both are joined: equal for the query's
    own key, smaller for keys before it."""
    if choice.packed == "two":
        queries, keys, document = _documents(p, choice)
        if choice.causal == "top_left":
            document = document - 1
        return p.i - queries[document], p.j - keys[document]
    if choice.has_lens and choice.causal != "top_left":
        return p.i + (getattr(p, LENS)[p.b] - p.queries), p.j
    if choice.packed or choice.causal == "top_left":
        return p.i, p.j
    return p.i + p.offset, p.j


def _visible(choice):
    """The mask of packed sequences and of keys whose number differs, with what the
    variants are elsewhere."""
    def mask(p):
        if choice.packed:
            _, keys, document = _documents(p, choice)
            shown = document == keys.upto(p.j)
        else:
            shown = p.j < getattr(p, LENS)[p.b]
        left, right = choice.window
        if choice.causal:
            right = 0 if right < 0 else min(right, 0)
        if (left, right) != (-1, -1):
            i, j = _distances(p, choice)
            if right >= 0:
                shown = shown & (j <= (i + right if right else i))
            if left >= 0:
                shown = shown & (j >= i - left)
        return shown
    return mask


def _slope(choice):
    """ALiBi."""
    def score(p):
        i, j = _distances(p, choice)
        if choice.alibi == "named":
            slope = expression.exp2((p.h + 1) * (-8.0 / p.heads))
        elif choice.alibi == "h":
            slope = getattr(p, SLOPES)[p.h]
        else:
            batch = _documents(p, choice)[2] - 1 if choice.packed else p.b
            slope = getattr(p, SLOPES)[batch, p.h]
        return p.x - slope * abs(i - j)
    return score


def _inlined(region, choice):
    """Lines of MLIR as a function of a position."""
    def function(p):
        lines, used = p._lines, set(_NAME.findall(region))
        names = {"%x": p.x.name} if "%x" in used else {}
        if choice.packed:
            queries, keys, document = _documents(p, choice)
            inside = {"%b": lambda: document - 1, "%i": lambda: p.i - queries[document - 1],
                      "%j": lambda: p.j - keys[document - 1]}
            names.update((name, made().name) for name, made in inside.items() if name in used)
        for line in region.strip().splitlines():
            line = line.strip()
            match = _LINE.match(line)
            code = _NAME.sub(lambda name: names.get(name[0], name[0]), match[2] if match else line)
            if match:
                names[match[1]] = f"%v{len(lines.text)}"
                lines.text.append(f"{names[match[1]]} = {code}")
            elif line.startswith("attn.yield"):
                value, type = re.match(r"attn\.yield (%\w+)\s*:\s*(\w+)", code).groups()
                return expression.Value(lines, value, type)
        raise ValueError(f"wanted lines of MLIR that end in attn.yield, got {region!r}")
    return function
