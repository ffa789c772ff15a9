#===----------------------------------------------------------------------===#
#
# Part of attn, an attention compiler.
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===----------------------------------------------------------------------===#
"""Which form of the gradients a call gets: with sums in a fixed order, or in any.

In a fixed order two programs compute scores, seven products in all, and equal calls have
equal bits. In any order it is one program with five products, in which blocks of keys add
to the gradients of queries as they end; for few queries, where that was measured, the
compiler takes the two programs there, too. A program lets sums be in any order where its
numerics say `deterministic = false`; then each call decides, when its gradients are
computed, by PyTorch's switch (torch.use_deterministic_algorithms) and by its sizes.
"""

import functools
import re
from collections import namedtuple

import torch

from .._capi import AttnError
from . import kernels

# Sums in any order are faster, by target and head dimension, where a query sees more keys
# than this on average; a dimension that is not here is as the next one. From
# test/Benchmark/results/gradient-forms.json (an H100, bf16): at d = 64 the speed is 0.97 of
# that in a fixed order with 1024 keys behind a causal mask and 1.03 with 1536, 1.07 with
# 1024 of no mask; at d = 128 0.88 with 512 and 1.05 with 1024 of no mask. Behind a causal
# mask it takes 2245 keys, but up to these the compiler takes two programs in any order, too.
# Up to d = 48, and 72 to 112: an H200.
MOST_KEYS_IN_ORDER = {("sm_90a", 32): 400, ("sm_90a", 40): 400, ("sm_90a", 48): 400,
                      ("sm_90a", 64): 866, ("sm_90a", 72): 400, ("sm_90a", 80): 527, ("sm_90a", 96): 811,
                      ("sm_90a", 112): 871, ("sm_90a", 128): 856}
# Of f32 sums in any order are faster from about 100 keys on, wide ones also where each tile of two
# programs has a multiprocessor (an H200, d = 64, 128 and 256; code for sm_80 on it, 1024 keys).
F32_TARGETS, WIDEST_SIDE_BY_SIDE = ("sm_80", "sm_90a"), 80
# A launch with few tiles is small: there one program is faster from fewer keys on. From timings
# on an H200 (lib/Plan/GradientPlans.cpp, which chooses in the same way).
ROWS_OF_TILE, FEW_KEYS, FEW_MASKED_KEYS, MANY_KEYS = 128, 192, 512, 512
# Of few queries it is so where heads are few: one in so many multiprocessors, by head dimension.
FEW_QUERIES, NARROW, PER_NARROW_HEAD, PER_HEAD = 384, 64, 6, 3
WIDEST_WITH_DROPOUT = 64  # that was measured

_SWITCHED = "deterministic = false"
_FREE = "deterministic = false, fast_math = true"  # the same numerics; PyTorch's switch does not count
_DOCUMENTS = ("cu_seqlens_q", "queries_at")  # captures that have one element more than there are

# Of a program that lets sums be in any order: the texts with sums in a fixed one and in
# any, one for all programs that differ in that alone; whether PyTorch's switch counts;
# what the rule asks for. documents: the number of the operand that says where sequences
# begin, or None.
_Facts = namedtuple("_Facts", "in_order any_order is_switched element dims has_dropout has_mask window documents")


def numerics(deterministic):
    """The numerics of a program that attention(deterministic=) calls for."""
    if deterministic is None:
        return _SWITCHED
    if deterministic is True or deterministic is False:
        return None if deterministic else _FREE
    raise TypeError(f"deterministic: wanted True, False or None, got {deterministic!r}")


@functools.lru_cache(maxsize=None)
def with_numerics(program, numerics):
    """A program without numerics, with these."""
    attribute = f"numerics = #attn.numerics<{numerics}>"
    match = re.search(r"= attn\.attention (?:%[\w$.-]+(?:, )?)+(?: (?:sink|dropout|captures)\([^)]*\))*( \{)?", program)
    if numerics is None or match is None or "#attn.numerics" in program:
        return program
    rest = program[match.end():]
    return program[:match.end()] + (f"{attribute}, {rest}" if match[1] else f" {{{attribute}}}{rest}")


@functools.lru_cache(maxsize=None)
def _facts(program):
    in_order = kernels.in_order(program)
    if in_order == program:
        return None
    parameters = kernels.parameters(program)
    names = [parameter.name for parameter in parameters[3:]]
    window = re.search(r"#attn\.window<left = (-?\d+), right = (-?\d+)", program)
    is_causal = "#attn.causal" in program
    left, right = map(int, window.groups()) if window else (-1, -1)
    right = min(right, 0) if is_causal and right >= 0 else 0 if is_causal else right
    return _Facts(
        in_order, program.replace(_FREE, _SWITCHED), _FREE not in program, parameters[0].element, {parameters[0].shape[-1], parameters[2].shape[-1]},
        " dropout(" in program,
        is_causal or window is not None or " mask(" in program,
        left + right + 1 if left >= 0 and right >= 0 else None,
        next((names.index(name) for name in _DOCUMENTS if name in names), None))


def is_small(queries, keys, heads, multiprocessors, facts):
    """Whether there are so few tiles that a second program would mostly wait; heads: batch
    times heads of the queries."""
    tiles = ROWS_OF_TILE * multiprocessors  # one for each
    if keys < MANY_KEYS:
        return heads * keys <= tiles
    most_heads = multiprocessors // (PER_NARROW_HEAD if max(facts.dims) <= NARROW else PER_HEAD)
    return heads * keys <= 2 * tiles or (heads * queries <= tiles and heads <= most_heads)


def is_side_by_side(queries, keys, heads, multiprocessors, facts):
    """Whether each tile of two programs has a multiprocessor: the two run beside each other."""
    rows = ROWS_OF_TILE * multiprocessors * (2 if facts.has_mask else 1)
    if keys > queries or heads * keys > rows // 2:
        return False
    return max(facts.dims) <= WIDEST_SIDE_BY_SIDE if facts.element == "f32" else heads * queries <= rows


def most_keys_in_order(target, dim):
    return next((most for (name, widest), most in sorted(MOST_KEYS_IN_ORDER.items()) if name == target and dim <= widest), None)


def pays(target, facts, queries, keys, small=False):
    """The rule: whether sums in any order are faster."""
    dim = max(facts.dims)
    if facts.has_dropout and dim > WIDEST_WITH_DROPOUT:
        return False
    if facts.element == "f32":
        return target in F32_TARGETS
    most = most_keys_in_order(target, dim) if len(facts.dims) == 1 else None
    if most is None:
        return False
    if small:
        return (keys > (FEW_MASKED_KEYS if facts.has_mask else FEW_KEYS)
                and (facts.window is None or facts.window > FEW_KEYS))
    seen = keys / 2 if facts.has_mask else keys
    return queries > FEW_QUERIES and (seen if facts.window is None else min(seen, facts.window)) > most


def is_strict():
    """Whether PyTorch's switch asks for equal bits; with warn_only, too."""
    return torch.are_deterministic_algorithms_enabled()


_refused = set()  # programs that the compiler does not take with sums in any order


def chosen(program, q, k, operands):
    """The text whose gradients are those of this call, for q (b, h, s, d) and k."""
    facts = _facts(program)
    if facts is None:
        return program
    if (facts.is_switched and is_strict()) or facts.any_order in _refused:
        return facts.in_order
    keys, (where, index) = k.shape[2], kernels.place(q.device)
    target, small = kernels.target(where, index)[0], False
    if where == "cuda":
        sizes = q.shape[2], keys, q.shape[0] * q.shape[1], kernels.multiprocessors(index)
        if target == "sm_90a" and is_side_by_side(*sizes, facts):
            return facts.in_order
        small = is_small(*sizes, facts)
    if facts.documents is not None:
        keys /= max(1, operands[facts.documents].shape[0] - 1)
    return facts.any_order if pays(target, facts, q.shape[2], keys, small) else facts.in_order


def backward(program, q, k, operands, of_lse, of_captures):
    """kernels.backward of the form that this call gets."""
    text, lengths = chosen(program, q, k, operands), kernels.lengths(q, k)
    try:
        return kernels.backward(text, q.device, of_lse, of_captures, lengths)
    except AttnError:
        in_order = kernels.in_order(text)
        if in_order == text:
            raise
        kernel = kernels.backward(in_order, q.device, of_lse, of_captures, lengths)
        _refused.add(text)  # an error of both is none of the form
        return kernel


def check(program, q, k, operands, of_captures):
    """Compiles the form that a call will get: what cannot be differentiated is an error."""
    known = all(isinstance(size, int) for x in (q, k, *operands) for size in x.shape)
    program = kernels.promised(program, operands)
    text = chosen(program, q, k, operands) if known else kernels.in_order(program)
    kernels.compile_backward(text, q.device, False, of_captures, kernels.lengths(q, k) if known else None)


def possible(program, device, lengths):
    """The texts that gradients of calls may need on a device; lengths: (queries, keys) of
    the calls, or None."""
    facts = _facts(program)
    if facts is None:
        return [program]
    if (facts.is_switched and is_strict()) or facts.any_order in _refused:
        return [facts.in_order]
    target = kernels.target(*kernels.place(device))[0]
    if lengths is None:
        return [facts.in_order] + [facts.any_order] * pays(target, facts, 1 << 30, 1 << 30)
    # How many heads there are is not said.
    forms = {pays(target, facts, *lengths, small) for small in (False, True)}
    return [facts.any_order if each else facts.in_order for each in sorted(forms)]
