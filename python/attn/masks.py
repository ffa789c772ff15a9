#===----------------------------------------------------------------------===#
#
# Part of attn, an attention compiler.
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===----------------------------------------------------------------------===#
"""Masks and scores that have names, as functions of a position (expression.py).

    from attn import masks
    mask = masks.both(masks.causal(), masks.documents("offsets"))
    attn.attention("bf16", 128, captures=[("offsets", "tensor<?xi32>")],
                   sorted_captures=["offsets"], mask=mask)

causal, window, softcap and alibi are the variants of the operation that have these
names: they join the last query with the last key ("bottom_right"), or the first
with the first ("top_left"). All others look at positions as they are, query 0 beside
key 0; where there are more keys than queries, give those that you join with them
the alignment "top_left".
"""

import operator

from . import expression


def _diagonal(p, alignment):
    """The key beside query i."""
    return p.i + p.offset if alignment == "bottom_right" else p.i


def _check_alignment(alignment):
    if alignment not in ("bottom_right", "top_left"):
        raise ValueError(f"wanted the alignment 'bottom_right' or 'top_left', got {alignment!r}")


def causal(alignment="bottom_right"):
    """Keys up to the query's own."""
    _check_alignment(alignment)
    return lambda p: p.j <= _diagonal(p, alignment)


def window(left, right, alignment="bottom_right"):
    """Keys from `left` positions before the query's own to `right` after it;
    -1: no bound."""
    _check_alignment(alignment)
    for bound in (left, right):
        if operator.index(bound) < -1:
            raise ValueError(f"wanted a number of keys or -1, got {bound}")

    def mask(p):
        i = _diagonal(p, alignment)
        if left < 0 or right < 0:
            return p.j <= i + right if right >= 0 else p.j >= i - left if left >= 0 else True
        return (p.j >= i - left) & (p.j <= i + right)
    return mask


def prefix(length):
    """The first `length` keys for all, later ones causally (prefix-LM); a
    number, or the name of a capture: a scalar or one number per batch entry."""
    return lambda p: (p.j < _number(p, length)) | (p.j <= p.i)


def global_and_window(count, left, right=0):
    """The first `count` positions see all and are seen by all; the others see a
    window."""
    near = window(left, right, "top_left")
    return lambda p: (p.j < count) | (p.i < count) | near(p)


def dilated(step):
    """Keys at a distance that is a multiple of `step`."""
    return lambda p: abs(p.i - p.j) % step == 0


def chunked(size):
    """Keys of the query's own chunk of `size` positions."""
    return lambda p: p.i // size == p.j // size


def neighbourhood(sizes, distances):
    """Positions of a grid, the last dimension fastest: keys that are in each
    dimension at most so far away. neighbourhood((64, 128), (6, 6)) is a window
    of 13 by 13 in an image 128 wide."""
    if len(sizes) != len(distances):
        raise ValueError(f"{len(sizes)} sizes and {len(distances)} distances")

    def mask(p):
        i, j, result = p.i, p.j, None
        for size, distance in list(zip(sizes, distances))[:0:-1]:
            near = abs(i % size - j % size) <= distance
            result = near if result is None else result & near
            i, j = i // size, j // size
        near = abs(i - j) <= distances[0]
        return near if result is None else result & near
    return mask


def documents(offsets):
    """Keys of the query's own document: `offsets` names a sorted capture, a
    tensor<?xi32> of where documents begin (cu_seqlens)."""
    return lambda p: getattr(p, offsets).upto(p.i) == getattr(p, offsets).upto(p.j)


def same(ids):
    """Keys with the query's number: `ids` names a capture of one number per
    position, or per batch entry and position."""
    def mask(p):
        tensor = getattr(p, ids)
        if tensor.rank == 1:
            return tensor[p.i] == tensor[p.j]
        return tensor[p.b, p.i] == tensor[p.b, p.j]
    return mask


def padding(lengths):
    """The first keys of each batch entry, as many as the capture says."""
    return lambda p: p.j < _number(p, lengths)


def blocks(map, rows, columns):
    """Blocks of `rows` by `columns` that a captured map shows: of rank 2, of
    rank 3 by head, or of rank 4 by batch entry and head."""
    def mask(p):
        tensor = getattr(p, map)
        return tensor[(p.b, p.h, p.i // rows, p.j // columns)[4 - tensor.rank:]] != 0
    return mask


def both(*masks):
    """What all of them show."""
    return _joined(masks, lambda a, b: a & b)


def either(*masks):
    """What one of them shows, or more."""
    return _joined(masks, lambda a, b: a | b)


def outside(mask):
    """What it hides."""
    return lambda p: ~mask(p)


def softcap(cap):
    """A score: cap * tanh(x / cap)."""
    return lambda p: expression.tanh(p.x / cap) * cap


def alibi(slopes=None, alignment="bottom_right"):
    """A score: x less a slope per head times the distance from the query's own key.
    `slopes` names a capture of them; None: 2^(-8 (h + 1) / heads)."""
    _check_alignment(alignment)

    def score(p):
        if slopes is None:
            slope = expression.exp2((p.h + 1) * (-8.0 / p.heads))
        else:
            slope = getattr(p, slopes)[p.h]
        return p.x - slope * abs(_diagonal(p, alignment) - p.j)
    return score


def relative_bias(table, reach):
    """A score: plus table[h, j - i + reach], the distance clipped to reach."""
    return lambda p: p.x + getattr(p, table)[p.h, expression.clip(p.j - p.i + reach, 0, 2 * reach)]


def bias(tensor):
    """A score: plus a captured tensor, of rank 2 (i, j), 3 (h, i, j) or 4."""
    def score(p):
        captured = getattr(p, tensor)
        return p.x + captured[(p.b, p.h, p.i, p.j)[4 - captured.rank:]]
    return score


def chain(*scores):
    """One score after the other."""
    def score(p):
        for part in scores:
            p.x = part(p)
            if p.x is None:
                return None
        return p.x
    return score


def _number(p, value):
    if not isinstance(value, str):
        return value
    captured = getattr(p, value)
    return captured[p.b] if isinstance(captured, expression.Capture) else captured


def _joined(masks, join):
    if not masks:
        raise ValueError("wanted at least one mask")

    def mask(p):
        result = masks[0](p)
        for other in masks[1:]:
            result = join(result, other(p))
        return result
    return mask
