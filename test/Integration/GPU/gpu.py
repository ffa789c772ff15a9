#===----------------------------------------------------------------------===#
#
# Part of attn, an attention compiler.
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===----------------------------------------------------------------------===#
"""Is there a GPU to run on, and what runs there."""

SKIP = 77  # what ctest and lit take for "skipped"


def find_torch(target="sm_80"):
    """PyTorch, if it is there and sees a GPU that runs kernels for `target`
    ("cpu": any machine); otherwise None, and why is printed."""
    try:
        import torch
    except ImportError:
        print("skipped: no PyTorch")
        return None
    if target == "cpu":
        return torch
    if not torch.cuda.is_available():
        print("skipped: PyTorch sees no GPU")
        return None
    if target == "sm_90a" and torch.cuda.get_device_capability() != (9, 0):
        print("skipped: this GPU does not run sm_90a")
        return None
    return torch


def plan_of(kernel, *arguments):
    """The plan by which a launch on these arguments runs."""
    if "plan" in kernel.manifest:  # of a library that knows no variants
        return kernel.manifest["plan"]
    number, _ = kernel.choose_variant(*arguments)
    return kernel.manifest["variants"][number]["plan"]


def plan_of_tiles(target, text):
    """128x64x8x4/8*4@grid: block_q, block_k, warps, stages, parts of the keys and packed
    heads unless they are one, and a scheduler unless it is auto."""
    sizes, _, scheduler = text.partition("@")
    sizes, _, heads = sizes.partition("*")
    sizes, _, parts = sizes.partition("/")
    block_q, block_k, warps, stages = sizes.split("x")
    split = f", split_keys = {parts}" if parts else ""
    split += f", packed_heads = {heads}" if heads else ""
    return (f"#attn.plan<target = {target}, block_q = {block_q}, block_k = {block_k}, "
            f"warps = {warps}, stages = {stages}, scheduler = {scheduler or 'auto'}{split}>")
