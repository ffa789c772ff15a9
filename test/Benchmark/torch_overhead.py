#!/usr/bin/env python3
#===----------------------------------------------------------------------===#
#
# Part of attn, an attention compiler.
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===----------------------------------------------------------------------===#
"""What a warm call of attn.torch costs the host, in microseconds.

    torch_overhead.py --lib build/lib/libattn.so                   on the CPU
    torch_overhead.py --lib build/lib/libattn.so --device cuda --bar 15 --json overhead.json

Calls of each entry point, with and without requires_grad, beside operators of
torch.library that do nothing but allocate their result. Calls take turns in random
order, each for a batch; a figure is the median of batches. On a GPU a batch is waited
for after its time was taken, so it has to be short enough for the queue of launches.
On the CPU, where a kernel runs inside of the call, kernels are left out: all is done
but the launch itself (--with-kernels: that, too). With --bar N the exit code is 1 where
a call is more than N above the operator. On a GPU each call is made under PyTorch's
sync debug mode first: one that waits is an error.
"""

import argparse
import functools
import itertools
import os
import pathlib
import random
import statistics
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "python"), str(ROOT / "test" / "Integration" / "GPU")]

import results  # noqa: E402

EMPTY, EMPTY_WITH_GRADIENTS = "empty operator", "empty operator with autograd"
THEIRS = "PyTorch's attention"
WARM = 6  # calls until one is known


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lib", required=True)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--batches", type=int, default=40)
    parser.add_argument("--calls", type=int, default=100, help="of a batch")
    parser.add_argument("--with-kernels", action="store_true", help="on the CPU")
    parser.add_argument("--backward", action="store_true", help="calls with backward(), too")
    parser.add_argument("--time-limit", type=float, default=120, help="seconds; batches after it are left out")
    parser.add_argument("--bar", type=float, help="microseconds above the operator that does nothing")
    parser.add_argument("--json", help="file for the figures")
    return parser.parse_args()


def make_calls(torch):
    """{name: (function of (q, k, v), whether these are (b, s, h, d))}"""
    import attn.torch
    from torch.nn.attention.flex_attention import create_block_mask

    @torch.library.custom_op("attn_overhead::empty", mutates_args=())
    def empty(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        return torch.empty_like(q)

    @torch.library.custom_op("attn_overhead::differentiable", mutates_args=())
    def differentiable(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        return torch.empty_like(q)

    def keep(ctx, inputs, output):
        ctx.save_for_backward(*inputs, output)

    torch.library.register_autograd(
        differentiable, lambda ctx, d_o: (d_o, d_o, d_o), setup_context=keep)

    device = OPTIONS.device
    bias = torch.randn(2, 16, 16, device=device)

    def biased(x, b, h, i, j):
        return x + bias[h, i, j]

    blocks = create_block_mask(lambda b, h, i, j: i >= j, None, None, 16, 16, device=device)
    plain = torch.nn.functional.scaled_dot_product_attention
    return {
        EMPTY: (empty, False),
        EMPTY_WITH_GRADIENTS: (differentiable, False),
        THEIRS: (lambda q, k, v: plain(q, k, v, is_causal=True), False),
        "attention": (lambda q, k, v: attn.torch.attention(q, k, v, causal=True), False),
        "attention, bshd": (lambda q, k, v: attn.torch.attention(q, k, v, causal=True, layout="bshd"), True),
        "attention, score": (lambda q, k, v: attn.torch.attention(q, k, v, score=biased), False),
        "scaled_dot_product_attention": (
            lambda q, k, v: attn.torch.scaled_dot_product_attention(q, k, v, is_causal=True), False),
        "flash_attn_func": (lambda q, k, v: attn.torch.flash_attn_func(q, k, v, causal=True), True),
        "flex_attention": (
            lambda q, k, v: attn.torch.flex_attention(q, k, v, score_mod=biased, block_mask=blocks), False),
    }


def tensors(torch, swaps, requires_grad):
    kind = torch.float32 if OPTIONS.device == "cpu" else torch.float16
    shape = (1, 16, 2, 64) if swaps else (1, 2, 16, 64)
    return [torch.randn(shape, device=OPTIONS.device, dtype=kind).requires_grad_(requires_grad) for _ in range(3)]


def with_backward(function):
    def call(*given):
        o = function(*given)
        o.backward(o)
    return call


def leave_out_kernels():
    """Known launches on the CPU do nothing from now on, but for the call of C. That
    converts nothing, as what _capi.launchers() gives."""
    from attn import _capi
    from attn.torch import warm

    nothing = _capi.library()["attnGetApiVersion"]
    nothing.restype = None
    kernels = [launch.kernel for launch in warm._known.values() if launch is not None]
    kernels += [kernel for kernel, _ in filter(None, warm._known_gradients.values())]
    for kernel in kernels:
        kernel._prepared._launch = nothing


def measure(torch, calls):
    """{(name, whether with gradients): microseconds}"""
    synchronize, clock = torch.cuda.synchronize, time.perf_counter
    if OPTIONS.device == "cpu":  # where others may take their turns, too
        synchronize, clock = lambda: None, time.thread_time
    ready, times = {}, {}
    for (name, (function, swaps)), wants in itertools.product(calls.items(), (False, True)):
        given = tensors(torch, swaps, wants)
        if OPTIONS.backward and wants and name != EMPTY:
            function = with_backward(function)
        ready[name, wants] = functools.partial(function, *given)
    for call in ready.values():
        for _ in range(WARM):
            call()
    if OPTIONS.device == "cpu" and not OPTIONS.with_kernels:
        leave_out_kernels()
    if OPTIONS.device != "cpu":
        synchronize()
        torch.cuda.set_sync_debug_mode("error")
        for call in ready.values():
            call()
        torch.cuda.set_sync_debug_mode("default")
    end = time.monotonic() + OPTIONS.time_limit
    for _ in range(OPTIONS.batches):
        if time.monotonic() > end:
            break
        for key in random.sample(list(ready), len(ready)):
            call, count = ready[key], range(OPTIONS.calls)
            synchronize()
            call()
            start = clock()
            for _ in count:
                call()
            times.setdefault(key, []).append(1e6 * (clock() - start) / OPTIONS.calls)
            synchronize()
    return {key: statistics.median(batches) for key, batches in times.items()}


def table_of(times, calls):
    """Rows with what a call costs above the operator that does nothing."""
    rows = []
    for name, wants in itertools.product(calls, (False, True)):
        peer = EMPTY_WITH_GRADIENTS if wants else EMPTY
        rows.append({"call": name, "gradients": wants, "us": round(times[name, wants], 2),
                     "above": round(times[name, wants] - times[peer, wants], 2)})
    return rows


def main():
    import torch

    import attn

    attn.use_library(OPTIONS.lib)
    torch.set_num_threads(1)
    if OPTIONS.device != "cpu" and not torch.cuda.is_available():
        print("skipped: PyTorch has no GPU")
        return 0
    calls = make_calls(torch)
    rows = table_of(measure(torch, calls), calls)
    print(f"{'microseconds of a call':32}{'no gradients':>14}{'above':>8}{'gradients':>14}{'above':>8}")
    for plain, wants in zip(rows[::2], rows[1::2]):
        print(f"{plain['call']:32}{plain['us']:14.2f}{plain['above']:8.2f}{wants['us']:14.2f}{wants['above']:8.2f}")
    if OPTIONS.json:
        environment = {"torch": torch.__version__, "python": sys.version.split()[0], "device": "cpu"}
        if OPTIONS.device != "cpu":
            environment["device"] = torch.cuda.get_device_name()
        results.write(OPTIONS.json, {"what": "Microseconds of the host for a warm call of attn.torch",
                                     "command": results.command(), "environment": environment,
                                     "cases": results.table(rows)})
    if OPTIONS.bar is None:
        return 0
    slow = [row for row in rows if row["above"] > OPTIONS.bar and row["call"] != THEIRS]
    for row in slow:
        print(f"{row['call']}{', with gradients' * row['gradients']}: {row['above']} above, wanted {OPTIONS.bar}")
    return 1 if slow else 0


if __name__ == "__main__":
    OPTIONS = parse_arguments()
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    sys.exit(main())
