#===----------------------------------------------------------------------===#
#
# Part of attn, an attention compiler.
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===----------------------------------------------------------------------===#
"""Times of calls that take turns in random order, each after L2 was overwritten."""

import statistics

L2_BYTES = 256 << 20  # more than any L2


def flush_buffer(torch):
    """What is overwritten so that nothing of a call before is in L2."""
    return torch.empty(L2_BYTES, dtype=torch.uint8, device="cuda")


def medians(options, torch, flush, rng, contestants):
    """{name: median milliseconds} of options.rounds after options.warmup turns of functions
    by name; everything is queued before it is read."""
    events = {name: [] for name in contestants}
    for turn in range(options.warmup + options.rounds):
        names = list(contestants)
        rng.shuffle(names)
        for name in names:
            start, stop = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            flush.zero_()
            start.record()
            contestants[name]()
            stop.record()
            if turn >= options.warmup:
                events[name].append((start, stop))
    torch.cuda.synchronize()
    return {
        name: statistics.median(start.elapsed_time(stop) for start, stop in pairs)
        for name, pairs in events.items()
    }
