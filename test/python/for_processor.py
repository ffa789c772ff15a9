#===----------------------------------------------------------------------===#
#
# Part of attn, an attention compiler.
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===----------------------------------------------------------------------===#
"""A suite whose kernels for the CPU are for one processor (--cpu)."""

import functools

import attn


def use(processor):
    plain = attn.compile

    @functools.wraps(plain)
    def compile(text, target="sm_80", **options):
        if target == "cpu":
            options.setdefault("cpu", processor)
        return plain(text, target, **options)

    attn.compile = compile
