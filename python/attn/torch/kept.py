#===----------------------------------------------------------------------===#
#
# Part of attn, an attention compiler.
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===----------------------------------------------------------------------===#
"""What functions of scores and masks became, kept for calls like the one that was traced.
"""

from typing import List, NamedTuple

from . import reads
from .captures import Region
from .steps import source
from .warm import Token

_MAX_VARIANTS = 8


class Variants:
    """What functions of one key became: KeptRegions for all that they may have read."""

    def __init__(self):
        self._kept, self.has_reads = [], False

    def add(self, kept):
        self._kept.insert(0, kept)
        del self._kept[_MAX_VARIANTS:]
        self.has_reads = self.has_reads or kept.has_reads

    def of(self, leaves):
        """The one for what the tensors hold now, or None."""
        return next((kept for kept in self._kept if kept.serves(leaves)), None)


class KeptRegions(Token):
    """What functions became, without their tensors.

    held  what the functions read, as reads.hold has it: the regions serve where tensors
          hold that."""

    @staticmethod
    def of(found, leaves, tracers):
        """Those of the Regions that tracers made, or None, where other calls need others."""
        def find(tensor):
            return _number(tensor, leaves, tracers)
        if not all(tracer.is_repeatable for tracer in tracers):
            return None
        kept = [one and _Kept.of(one, find) for one in found]
        if not all(one is None or isinstance(one, _Kept) for one in kept):
            return None
        held = []
        for tracer in tracers:
            more = tracer.reads.kept(find)
            if more is None or more and tracer.steps.has_written:
                return None
            held += more
        return KeptRegions(kept, leaves, held)

    def __init__(self, kept, leaves, held):
        self._kept, self._makers, names = kept, [], set()
        self._held, self.has_reads = held, bool(held)
        for one in kept:
            for name, _, number, maker in one.captures if one else ():
                if name not in names:
                    names.add(name)
                    made_of = source(number, leaves, {})
                    self._makers.append((number, None if maker(made_of) is made_of else maker))

    def serves(self, leaves):
        """Whether these are the regions of functions that reach these tensors."""
        return not self.has_reads or reads.hold(self._held, leaves)

    def filled(self, leaves):
        """The regions, with the tensors that these functions reach."""
        made = {}
        return [one and one.filled(leaves, made) for one in self._kept]

    def tensors(self, leaves):
        """Those that the regions capture, each name once."""
        made = {}
        sources = [(source(number, leaves, made), maker) for number, maker in self._makers]
        return [tensor if maker is None else maker(tensor) for tensor, maker in sources]


def is_known_by(kept, variant):
    """Whether a key says that these are the regions of its calls; variant: the KeptRegions
    that are a part of it."""
    return kept is not None and (variant is kept or not kept.has_reads)


class _Kept(NamedTuple):
    """A Region whose tensors are the function's: (name, type, number of the leaf, the Step
    that makes it of leaves, or the tensor that the function always makes, maker)."""

    lines: str
    captures: List[tuple]

    @staticmethod
    def of(region, find):
        """None, where a tensor is neither; False is no region."""
        captures = []
        for (name, type, _), tensor, maker in zip(region.captures, region.sources, region.makers):
            number = find(tensor)
            if number is None:
                return False
            captures.append((name, type, number, maker))
        return _Kept(region.lines, captures)

    def filled(self, leaves, made):
        sources = [source(number, leaves, made) for _, _, number, _ in self.captures]
        captures = [(name, type, maker(tensor))
                    for (name, type, _, maker), tensor in zip(self.captures, sources)]
        return Region(self.lines, captures, sources, [maker for *_, maker in self.captures])


def _number(tensor, leaves, tracers):
    """What steps.source takes for a tensor: the number of a leaf, a constant itself, the
    Step that makes it of leaves; or None, where it is none of these."""
    number = next((number for number, leaf in enumerate(leaves) if leaf is tensor), None)
    if number is None and any(tracer.captures.is_constant(tensor) for tracer in tracers):
        number = tensor
    if number is None:
        steps = (tracer.steps.of(tensor, leaves, tracer.captures.is_constant) for tracer in tracers)
        number = next((step for step in steps if step is not None), None)
    return number
