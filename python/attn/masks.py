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

They look at positions as they are: query 0 beside key 0. The variants of the
operation ("causal", "window<...>") join the last query with the last key.
"""

from . import expression


def causal():
    """Keys up to the query's own position."""
    return lambda p: p.j <= p.i


def window(left, right=0):
    """Keys from `left` positions in front of the query to `right` behind it."""
    return lambda p: (p.j >= p.i - left) & (p.j <= p.i + right)


def prefix(length):
    """The first `length` keys for all, later ones causally (prefix-LM); a
    number, or the name of a capture: a scalar or one number per batch entry."""
    return lambda p: (p.j < _number(p, length)) | (p.j <= p.i)


def global_and_window(count, left, right=0):
    """The first `count` positions see all and are seen by all; the others see a
    window."""
    near = window(left, right)
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


def alibi(slopes):
    """A score: a slope per head, captured, times the distance behind."""
    return lambda p: p.x + getattr(p, slopes)[p.h] * (p.j - p.i)


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
