#===----------------------------------------------------------------------===#
#
# Part of attn, an attention compiler.
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===----------------------------------------------------------------------===#
"""From a PyTorch function on scalars to a region of MLIR.

    score = trace.region(lambda score, b, h, q, k: score + bias[h, q, k], "score")
    text = attn.attention("f16", 64, score=score.lines,
                          captures=[(name, type) for name, type, _ in score.captures])

The function is called once, with tensors of no dimensions that record what is done
with them (symbols.py). What it does to other tensors alone, views and conversions
too, PyTorch does: the result is captured, and its gradient flows where PyTorch's
does. Numbers of Python are constants of the region; numbers that change from call
to call are better captured, as tensors of no dimensions.
"""

import re
from typing import List, NamedTuple

import torch

from . import fingerprint, likeness
from .captures import Region
from .scalars import NAMES
from .steps import Step
from .tracer import TraceError, traced  # noqa: F401: who traces catches it


def region(function, kind, taken=(), *, device=None, shared=None, sizes=None):
    """The region of `function`.

    function  score_mod(score, b, h, q_idx, kv_idx) or mask_mod(b, h, q_idx, kv_idx),
              as torch.nn.attention.flex_attention has them. score is float32, the
              others are int32.
    kind      "score" or "mask".
    taken     names that captures cannot have.
    device    where the kernel will run: captured tensors with dimensions have to lie
              there. None: where they lie.
    shared    another Region: tensors that it captures have its names.
    sizes     (batch, heads, queries, keys), the largest that the region has to serve.
              None: 2^30 each. Where they tell that an index is not negative, or that an
              int64 fits i32, the lines are shorter.

    Raises TraceError where no kernel can do what the function does."""
    def trace(sizes):
        tracer, element = traced(function, kind, device, sizes)
        return [tracer], [tracer.region(element, taken, shared)]
    if shared is not None:
        return _narrowed(trace, sizes)[1][0]
    return _remembered((function,), (kind, tuple(taken), device), sizes, trace)[0]


def regions(score_mod, mask_mod, taken=(), *, device=None, sizes=None):
    """(score, mask): the Regions of both, None where there is nothing to do. A score
    that is -inf under a condition on positions, as in torch.where(q >= k, score, -inf),
    becomes a score and a mask, which says what kernels need not compute."""
    def trace(sizes):
        tracers, score, mask, hidden = [], None, None, None
        if score_mod is not None:
            tracer, element = traced(score_mod, "score", device, sizes)
            tracers.append(tracer)
            element, shown = tracer.split(element)
            score = tracer.region(element, taken)
            if shown is not None:
                hidden = tracer.region(shown, taken, score, "mask")
            if score.lines == "attn.yield %x : f32":
                score = None
        if mask_mod is not None:
            tracer, element = traced(mask_mod, "mask", device, sizes)
            tracers.append(tracer)
            known = [one for one in (score, hidden) if one is not None]
            if element is not True:
                mask = tracer.region(element, taken, _joined(known) if known else None)
        if mask is not None and hidden is not None:
            return tracers, [score, _both(hidden, mask)]
        return tracers, [score, mask if hidden is None else hidden]
    return tuple(_remembered((score_mod, mask_mod), ("both", tuple(taken), device), sizes, trace))


def _narrowed(trace, sizes):
    """trace(sizes), but for any sizes where that makes no difference; and whether it
    makes one."""
    tracers, found = trace(None)
    if sizes is not None and any(tracer.writer.is_wide for tracer in tracers):
        return *trace(sizes), True
    return tracers, found, False


# What functions became, by their fingerprints: regions without tensors, or _WIDE
# where the key has to have the sizes, too.
_KNOWN, _WIDE, _MAX_KNOWN = {}, object(), 1024


def _state(key):
    return key, torch.get_default_dtype(), torch.is_autocast_enabled("cpu"), torch.is_autocast_enabled("cuda")


def _remembered(functions, key, sizes, trace):
    """The regions that trace(sizes) makes of the functions; known ones get their tensors
    from the functions."""
    state = _state(key)
    seen, leaves = likeness.find(functions)
    kept = seen and seen.made.get((state, sizes))
    if kept is not None:
        return kept.filled(leaves)
    walk = fingerprint.Walk()
    try:
        key = (*state, tuple(map(walk.key, functions)))
        known = _KNOWN.get(key)
        is_sized = known is _WIDE
        if is_sized:
            key = key, sizes
            known = _KNOWN.get(key)
    except (fingerprint.Unknown, TypeError, ValueError):  # or what is empty, or cannot be hashed
        return _narrowed(trace, sizes)[1]
    found = None
    if known is None:
        tracers, found, is_wide = _narrowed(trace, sizes)
        if len(_KNOWN) >= _MAX_KNOWN:
            _KNOWN.clear()
        if is_wide and not is_sized:
            _KNOWN[key] = _WIDE
            key = key, sizes
        if not all(tracer.is_repeatable and tracer.writer.is_repeatable for tracer in tracers):
            return found
        kept = [one and _Kept.of(one, walk.leaves, tracers) for one in found]
        if not all(one is None or isinstance(one, _Kept) for one in kept):
            return found
        known = _KNOWN[key] = KeptRegions(kept, walk.leaves)
    seen = likeness.learn(functions, walk.leaves)
    if seen is not None:
        if len(seen.made) >= _MAX_SIZES:
            seen.made.clear()
        seen.made[state, sizes] = known
    return known.filled(walk.leaves) if found is None else found


_MAX_SIZES = 64  # for each of which functions of one likeness are kept


def known_regions(seen, taken=(), *, device=None, sizes=None):
    """The KeptRegions of a Likeness of (score_mod, mask_mod), or None: what regions() gives
    for functions like these, but for the tensors."""
    return seen.made.get((_state(("both", tuple(taken), device)), sizes))


class KeptRegions:
    """What functions became, without their tensors."""

    def __init__(self, kept, leaves):
        self._kept, self._makers, names = kept, [], set()
        for one in kept:
            for name, _, number, maker in one.captures if one else ():
                if name not in names:
                    names.add(name)
                    source = _source(number, leaves, {})
                    self._makers.append((number, None if maker(source) is source else maker))

    def filled(self, leaves):
        """The regions, with the tensors that these functions reach."""
        made = {}
        return [one and one.filled(leaves, made) for one in self._kept]

    def tensors(self, leaves):
        """Those that the regions capture, each name once."""
        made = {}
        sources = [(_source(number, leaves, made), maker) for number, maker in self._makers]
        return [source if maker is None else maker(source) for source, maker in sources]


def _source(number, leaves, made):
    """A leaf by its number, what a Step makes of leaves, or the tensor itself."""
    if isinstance(number, int):
        return leaves[number]
    return number.make(leaves, made) if isinstance(number, Step) else number


class _Kept(NamedTuple):
    """A Region whose tensors are the function's: (name, type, number of the leaf, the Step
    that makes it of leaves, or the tensor that the function always makes, maker)."""

    lines: str
    captures: List[tuple]

    @staticmethod
    def of(region, leaves, tracers):
        """None, where a tensor is neither; False is no region."""
        captures = []
        for (name, type, _), source, maker in zip(region.captures, region.sources, region.makers):
            number = next((number for number, leaf in enumerate(leaves) if leaf is source), None)
            if number is None and any(tracer.captures.is_constant(source) for tracer in tracers):
                number = source
            if number is None:
                steps = (tracer.steps.of(source, leaves, tracer.captures.is_constant) for tracer in tracers)
                number = next((step for step in steps if step is not None), None)
            if number is None:
                return False
            captures.append((name, type, number, maker))
        return _Kept(region.lines, captures)

    def filled(self, leaves, made):
        sources = [_source(number, leaves, made) for _, _, number, _ in self.captures]
        captures = [(name, type, maker(source))
                    for (name, type, _, maker), source in zip(self.captures, sources)]
        return Region(self.lines, captures, sources, [maker for *_, maker in self.captures])


def _joined(several):
    """The captures of several regions."""
    captured = {}
    for one in several:
        for capture, *made in zip(one.captures, one.sources, one.makers):
            captured.setdefault(capture[0], (capture, *made))
    return Region("", *([parts[number] for parts in captured.values()] for number in range(3)))


def _both(one, other):
    """What both masks show."""
    captured = _joined([one, other])
    texts, flags = [], []
    for letter, mask in zip("vw", (one, other)):
        *body, last = re.sub(r"%v(\d+)", rf"%{letter}\1", mask.lines).split("\n")
        texts += body
        flags.append(NAMES.search(last)[0])
    texts += [f"%shown = arith.andi {', '.join(flags)} : i1", "attn.yield %shown : i1"]
    return captured._replace(lines="\n".join(texts))
