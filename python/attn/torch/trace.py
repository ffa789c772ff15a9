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

import operator
import re

import torch

from . import fingerprint, likeness, steps
from .captures import Region
from .kept import KeptRegions, Variants
from .scalars import NAMES
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
    return _remembered((function,), (kind, tuple(taken), device), sizes, trace)[0][0]


def regions(score_mod, mask_mod, taken=(), *, device=None, sizes=None):
    """(score, mask): the Regions of both, None where there is nothing to do. A score
    that is -inf under a condition on positions, as in torch.where(q >= k, score, -inf),
    becomes a score and a mask, which says what kernels need not compute."""
    return known_regions(score_mod, mask_mod, taken, device=device, sizes=sizes)[0]


def known_regions(score_mod, mask_mod, taken=(), *, device=None, sizes=None):
    """(regions(), the KeptRegions that give them to calls like this one or None)."""
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
    found, kept = _remembered((score_mod, mask_mod), ("both", tuple(taken), device), sizes, trace)
    return tuple(found), kept


def _narrowed(trace, sizes, is_same=lambda: True):
    """trace(sizes), but for any sizes where that makes no difference; and whether it
    makes one. is_same: whether functions are as they were before: those that change what
    they reach are called once."""
    tracers, found = trace(None)
    if sizes is not None and any(tracer.writer.is_wide for tracer in tracers) and \
            not any(tracer.writes_outside for tracer in tracers) and is_same():
        return *trace(sizes), True
    return tracers, found, False


# What functions became, by their fingerprints: Variants, or _WIDE where the key has to
# have the sizes, too.
_KNOWN, _WIDE, _MAX_KNOWN = {}, object(), 1024


# Nobody can look into it, or it is empty, or cannot be hashed.
_UNKNOWN = fingerprint.Unknown, TypeError, ValueError


def _is_same(functions, reached, leaves):
    """Whether functions reach what they did, as those do that count no calls."""
    try:
        now, tensors, _ = fingerprint.walked(functions)
    except _UNKNOWN:
        return False
    return now == reached and len(tensors) == len(leaves) and all(map(operator.is_, tensors, leaves))


def _state(key):
    # Without gradients a function's own torch.no_grad() says nothing.
    return key, torch.is_grad_enabled(), *steps.state()


def _remembered(functions, key, sizes, trace):
    """(the regions that trace(sizes) makes of the functions, the KeptRegions of them or None);
    known ones get their tensors from the functions."""
    state = _state(key)
    seen, leaves = likeness.find(functions)
    variants = seen and seen.made.get((state, sizes))
    kept = variants and variants.of(leaves)
    if kept:
        return kept.filled(leaves), kept
    try:
        reached, leaves, names = fingerprint.walked(functions)
        key = *state, reached
        variants = _KNOWN.get(key)
        is_sized = variants is _WIDE
        if is_sized:
            key = key, sizes
            variants = _KNOWN.get(key)
    except _UNKNOWN:
        return trace(sizes)[1], None
    kept, found = variants and variants.of(leaves), None
    if not kept:
        def is_same():
            return _is_same(functions, reached, leaves)
        tracers, found, is_wide = _narrowed(trace, sizes, is_same)
        if not is_same():
            return found, None
        if len(_KNOWN) >= _MAX_KNOWN:
            _KNOWN.clear()
        if is_wide and not is_sized:
            _KNOWN[key] = _WIDE
            key = key, sizes
        kept = KeptRegions.of(found, leaves, tracers)
        if kept is None:
            return found, None
        variants = _KNOWN.setdefault(key, Variants())
        variants.add(kept)
    seen = likeness.learn(functions, leaves, names)
    if seen is not None:
        if len(seen.made) >= _MAX_SIZES:
            seen.made.clear()
        seen.made[state, sizes] = variants
        seen.has_reads = seen.has_reads or variants.has_reads
    return (kept.filled(leaves) if found is None else found), kept


_MAX_SIZES = 64  # for each of which functions of one likeness are kept
def variant(seen, leaves, taken=(), *, device=None, sizes=None):
    """Of a Likeness of (score_mod, mask_mod), the KeptRegions that serve these tensors, or
    None: regions() gives the same, but for the tensors."""
    variants = seen.made.get((_state(("both", tuple(taken), device)), sizes))
    return variants and variants.of(leaves)


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
