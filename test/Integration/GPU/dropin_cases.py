#!/usr/bin/env python3
#===----------------------------------------------------------------------===#
#
# Part of attn, an attention compiler.
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===----------------------------------------------------------------------===#
"""The drop-ins of attn.torch on CUDA tensors, forward and backward.

    dropin_cases.py --lib build/lib/libattn.so
    dropin_cases.py --lib ... --only varlen --jobs 4        in four processes (case_pool.py)
    dropin_cases.py --lib ... --part 1/4                    a fourth of the cases
    dropin_cases.py --lib ... --time --json dropins.json    the host's time of a call

flash-attn's functions over its matrix of kinds (head dimensions, lengths, groups of
heads, causal, windows, slopes, softcap, dropout, packed sequences, caches), and
scaled_dot_product_attention with every kind of mask, against float64, by the rule of the
numerics contract (error_rule.py): an error may be twice that of an unfused evaluation in
the elements of the inputs, that of a gradient three times. After --time-limit seconds no
new case is begun: those left out are counted. --device cpu: a dry run without a GPU
(slow: choose with --only). Exit code 0: all passed; 1: some did not; 77: no GPU.
"""

import argparse
import itertools
import pathlib
import statistics
import sys
import time

import case_pool
import error_rule
import results
import unfused
from gpu import SKIP, find_torch

ROOT = pathlib.Path(__file__).resolve().parents[3]
for place in ("python", "test/python"):
    sys.path.insert(0, str(ROOT / place))

WHAT = "Drop-ins of attn.torch against float64, forward and backward"
DIMS = (32, 40, 59, 64, 80, 96, 111, 128, 160, 192, 224, 256)
LENGTHS = [(1, 147), (113, 203), (128, 217), (113, 211), (108, 256), (256, 512), (512, 256), (1024, 1024),
           (1023, 1024), (257, 1)]
HEADS = [(6, 6), (6, 2), (6, 1)]


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    case_pool.add_arguments(parser)
    parser.add_argument("--time", action="store_true", help="the host's time of warm calls, no cases")
    return case_pool.parse(parser)


class Tensors:
    """Random tensors of one case."""

    def __init__(self, torch, device, seed):
        self.torch, self.device = torch, device
        self.generator = torch.Generator(device).manual_seed(seed)

    def __call__(self, *shape, dtype):
        values = self.torch.randn(shape, generator=self.generator, device=self.device)
        return values.to(dtype).requires_grad_()

    def flags(self, *shape):
        return self.torch.rand(shape, generator=self.generator, device=self.device) > 0.4

    def slopes(self, *shape):
        return self.torch.rand(shape, generator=self.generator, device=self.device)


ELEMENTS = {"torch.float32": "f32", "torch.float16": "f16", "torch.bfloat16": "bf16"}


def judge(what, got, exact, rough, dtype, bound, failures):
    """Appends what is wrong: `bound` of error_rule says what the error may be, given that
    of `rough`."""
    if got.shape != exact.shape:
        failures.append(f"{what}: shape {tuple(got.shape)}, wanted {tuple(exact.shape)}")
        return
    if not exact.numel():
        return
    got, exact, rough = (x.detach().double() for x in (got, exact, rough))
    error = (got - exact).masked_fill(got == exact, 0.0).abs().max().item()
    unfused = (rough - exact).masked_fill((rough == exact) | exact.isinf(), 0.0).abs().max().item()
    largest = exact.masked_fill(exact.isinf(), 0.0).abs().max().item()
    limit = bound(ELEMENTS[str(dtype)], unfused, largest)
    if not error <= limit:
        failures.append(f"{what}: error {error:.3g}, allowed {limit:.3g}")


def lse_bound(element, unfused, largest):
    return error_rule.lse_bound(largest, 0.0)


def judge_all(torch, dtype, got, exact, rough, leaves):
    """Failures of (out, lse or None) and of the gradients of `leaves`."""
    failures = []
    judge("out", got[0], exact[0], rough[0], dtype, error_rule.error_bound, failures)
    if got[1] is not None:
        judge("lse", got[1], exact[1], exact[1], torch.float32, lse_bound, failures)
    if not leaves:
        return failures
    d_out = torch.randn_like(got[0])
    gradients = [torch.autograd.grad(out, leaves, d_out.to(out.dtype)) for out in (got[0], exact[0], rough[0])]
    for number, three in enumerate(zip(*gradients)):
        judge(f"gradient {number}", *three, dtype, error_rule.gradient_bound, failures)
    return failures


#===----------------------------------------------------------------------===#
# flash-attn
#===----------------------------------------------------------------------===#

def kinds():
    from torch_reference import Kind

    return {
        "plain": (Kind(), 0),
        "causal": (Kind(causal=True), 0),
        "local": (Kind(window=(60, 20)), 0),
        "left": (Kind(window=(33, -1)), 0),
        "causal-local": (Kind(causal=True, window=(100, 7)), 0),
        "alibi": (Kind(), 2),
        "causal-alibi": (Kind(causal=True), 1),
        "softcap": (Kind(softcap=5.0, scale=0.3), 0),
        "causal-softcap-alibi": (Kind(causal=True, softcap=20.0), 2),
    }


def dense(torch, make, dtype, dim, heads, kind, rank, lengths):
    from attn.torch import flash
    from torch_reference import attend

    failures = []
    for queries, keys in lengths:
        q = make(2, queries, heads[0], dim, dtype=dtype)
        k, v = (make(2, keys, heads[1], dim, dtype=dtype) for _ in "kv")
        slopes = make.slopes(*(2, heads[0])[2 - rank:]) if rank else None
        out, lse, _ = flash.flash_attn_func(q, k, v, alibi_slopes=slopes, return_attn_probs=True,
                                            **kind.arguments())
        found = judge_all(torch, dtype, (out, lse), attend(q, k, v, kind, slopes),
                          attend(q, k, v, kind, slopes, precision=dtype), (q, k, v))
        failures += [f"{queries} queries, {keys} keys: {said}" for said in found]
    return failures


def same_bits(torch, make, dtype, dim):
    from attn.torch import flash

    qkv = make(2, 777, 3, 4, dim, dtype=dtype)
    d_out = torch.randn(2, 777, 4, dim, device=qkv.device).to(dtype)
    gradients = [torch.autograd.grad(flash.flash_attn_qkvpacked_func(qkv, causal=True, deterministic=True), qkv, d_out)[0]
                 for _ in range(20)]
    return [] if all(torch.equal(each, gradients[0]) for each in gradients) else ["gradients differ"]


def dropout(torch, make, dtype, dim):
    """Values are unit vectors at first: out is the weights that are left."""
    from attn.torch import flash
    from torch_reference import Kind, attend

    kind = Kind(causal=True)
    q, k = make(2, 200, 4, dim, dtype=dtype), make(2, 250, 2, dim, dtype=dtype)
    v = make(2, 250, 2, dim, dtype=dtype)
    identity = torch.eye(250, 250, device=q.device, dtype=dtype)[None, :, None].expand(2, 250, 2, 250)
    key = 99
    torch.manual_seed(key)
    left = flash.flash_attn_func(q, k, identity, dropout_p=0.2, causal=True).transpose(1, 2)
    weights = attend(q, k, identity, kind)[0].transpose(1, 2)
    seen = weights > 1e-3
    share = ((left == 0) & seen).sum().item() / seen.sum().item()
    keep = (left != 0).double() / 0.8
    torch.manual_seed(key)
    out = flash.flash_attn_func(q, k, v, dropout_p=0.2, causal=True)
    failures = [] if 0.17 < share < 0.23 else [f"{share:.3f} of the weights are dropped, wanted 0.2"]
    # Weights too small for their type look dropped, and change nothing.
    return failures + judge_all(torch, dtype, (out, None), attend(q, k, v, kind, keep=keep),
                                attend(q, k, v, kind, keep=keep, precision=dtype), (q, k, v))


def offsets(torch, device, lengths):
    starts = [0, *itertools.accumulate(lengths)]
    return starts, torch.tensor(starts, dtype=torch.int32, device=device)


def varlen(torch, make, dtype, dim, heads, kind, rank, queries, keys):
    from attn.torch import flash
    from torch_reference import attend_packed

    starts_q, cu_q = offsets(torch, make.device, queries)
    starts_k, cu_k = (starts_q, cu_q) if keys is None else offsets(torch, make.device, keys)
    q = make(starts_q[-1], heads[0], dim, dtype=dtype)
    k, v = (make(starts_k[-1], heads[1], dim, dtype=dtype) for _ in "kv")
    slopes = make.slopes(*(len(queries), heads[0])[2 - rank:]) if rank else None
    out, lse, _ = flash.flash_attn_varlen_func(
        q, k, v, cu_q, cu_k, max(queries), max(keys or queries), alibi_slopes=slopes,
        return_attn_probs=True, **kind.arguments())
    given = (q, k, v, starts_q, starts_k, kind, slopes)
    return judge_all(torch, dtype, (out, lse), attend_packed(*given),
                     attend_packed(*given, precision=dtype), (q, k, v))


def packed(torch, make, dtype, dim):
    """The forms that take q, k and v as one tensor."""
    from attn.torch import flash
    from torch_reference import Kind, attend, attend_packed

    kind = Kind(causal=True)
    qkv, kv = make(2, 300, 3, 4, dim, dtype=dtype), make(2, 350, 2, 2, dim, dtype=dtype)
    q = make(2, 300, 4, dim, dtype=dtype)
    starts, cu = offsets(torch, make.device, (100, 0, 200))
    flat = make(300, 3, 4, dim, dtype=dtype)

    def both(reference, *given):
        return reference(*given), reference(*given, precision=dtype)

    out = flash.flash_attn_qkvpacked_func(qkv, causal=True)
    failures = judge_all(torch, dtype, (out, None), *both(attend, *qkv.unbind(2), kind), (qkv,))
    out = flash.flash_attn_kvpacked_func(q, kv, causal=True)
    failures += judge_all(torch, dtype, (out, None), *both(attend, q, *kv.unbind(2), kind), (q, kv))
    out = flash.flash_attn_varlen_qkvpacked_func(flat, cu, 200, causal=True)
    return failures + judge_all(
        torch, dtype, (out, None), *both(attend_packed, *flat.unbind(1), starts, starts, kind), (flat,))


def cache(torch, make, dtype, dim, heads, kind, queries, is_paged):
    """New keys are appended; what rotation does, the tests on the CPU say."""
    from attn.torch import flash
    from torch_reference import attend

    batch, room, page, lengths = 4, 1024, 256, [900, 3, 511, 256]
    memory = [make(batch, room, heads[1], dim, dtype=dtype).detach() for _ in "kv"]
    q = make(batch, queries, heads[0], dim, dtype=dtype).detach()
    new = [make(batch, queries, heads[1], dim, dtype=dtype).detach() for _ in "kv"]
    given, table = [x.clone() for x in memory], None
    if is_paged:  # entry b has the pages b, b + batch, ...
        given = [x.unflatten(1, (-1, page)).transpose(0, 1).flatten(0, 1).contiguous() for x in memory]
        table = torch.arange(batch)[:, None] + batch * torch.arange(room // page)
        table = table.to(make.device, torch.int32)
    out, lse = flash.flash_attn_with_kvcache(
        q, *given, *new, block_table=table, return_softmax_lse=True,
        cache_seqlens=torch.tensor(lengths, dtype=torch.int32, device=make.device), **kind.arguments())
    if is_paged:
        given = [x.unflatten(0, (-1, batch)).transpose(0, 1).flatten(1, 2) for x in given]
    failures = []
    for b, length in enumerate(lengths):
        for whole, fresh in zip(memory, new):
            whole[b, length:length + queries] = fresh[b]
        own = (q[b:b + 1], *(whole[b:b + 1, :length + queries] for whole in memory), kind)
        found = judge_all(torch, dtype, (out[b:b + 1], lse[b:b + 1]), attend(*own),
                          attend(*own, precision=dtype), ())
        failures += [f"entry {b}: {said}" for said in found]
    if not all(torch.equal(a, b) for a, b in zip(given, memory)):
        failures.append("the cache is not what it should be")
    return failures


def flash_cases(torch):
    """(name, function of the tensors) of each."""
    wanted, names = kinds(), list(kinds())
    dtypes = {"bf16": torch.bfloat16, "f16": torch.float16, "f32": torch.float32}
    cases = []

    def add(name, function, *arguments):
        cases.append((name, lambda make: function(torch, make, *arguments)))

    for number, (element, dim) in enumerate(itertools.product(dtypes, DIMS)):
        name = names[(number + number // len(DIMS)) % len(names)]
        lengths = [LENGTHS[(number + step) % len(LENGTHS)] for step in (0, 3, 7)]
        add(f"flash-{element}-{dim}-{name}", dense, dtypes[element], dim, HEADS[number % 3],
            *wanted[name], lengths)
    for dim, name in itertools.product((64, 128), names):
        add(f"flash-kinds-bf16-{dim}-{name}", dense, dtypes["bf16"], dim, HEADS[len(name) % 3],
            *wanted[name], LENGTHS)
    for element, dim in (("bf16", 64), ("f16", 128), ("f32", 80)):
        add(f"bits-{element}-{dim}", same_bits, dtypes[element], dim)
        add(f"packed-{element}-{dim}", packed, dtypes[element], dim)
    unequal = (147, 0, 1, 512, 64), (203, 17, 0, 256, 1)
    for number, name in enumerate(names):
        for is_same in (False, True):
            add(f"varlen-{name}{'-same' * is_same}", varlen, dtypes[("bf16", "f16")[number % 2]],
                (64, 128, 96)[number % 3], HEADS[number % 3], *wanted[name], unequal[0],
                None if is_same else unequal[1])
    for number, (name, queries, is_paged) in enumerate(
            itertools.product(("plain", "causal", "local"), (1, 17), (False, True))):
        add(f"cache-{name}-{queries}{'-paged' * is_paged}", cache, dtypes["bf16"], (64, 128)[number % 2],
            HEADS[number % 3], wanted[name][0], queries, is_paged)
    return cases


#===----------------------------------------------------------------------===#
# PyTorch's function
#===----------------------------------------------------------------------===#

MASKS = [None, (200, 333), (4, 200, 333), (2, 1, 200, 333), (2, 4, 200, 333), (2, 1, 1, 333), (1, 333),
         (200, 1)]


def sdpa(torch, make, dtype, dim, shape, is_float, is_causal, kv_heads):
    from attn.torch import scaled_dot_product_attention

    model = torch.nn.functional.scaled_dot_product_attention
    q = make(2, 4, 200, dim, dtype=dtype)
    k, v = (make(2, kv_heads, 333, dim, dtype=dtype) for _ in "kv")
    mask = None
    if shape is not None:
        mask = make(*shape, dtype=dtype) if is_float else make.flags(*shape)
        if not is_float and shape[-2] == 200:
            mask[..., 5, :] = False
    options = dict(is_causal=is_causal, enable_gqa=kv_heads != 4)
    out = scaled_dot_product_attention(q, k, v, mask, **options)

    def reference(precision):
        bias = mask.to(precision) if is_float else mask
        with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):
            return model(q.to(precision), k.to(precision), v.to(precision), bias, **options), None

    # The gradient of a bias shows what the rounded output does to delta, which PyTorch's
    # unfused backward does not read: rows that see one key have none, but for that.
    everything = None if mask is None else torch.broadcast_to(mask, (2, 4, 200, 333))

    def score(x, b, h, i, j):
        return x + everything[b, h, i, j]

    def visible(b, h, i, j):
        return (j <= i) if is_causal else everything[b, h, i, j]

    masked = is_causal or (everything is not None and not is_float)
    rough = unfused.attend(torch, q.float(), k.float(), v.float(), score if is_float else None,
                           visible if masked else None, dtype=dtype)
    leaves = (q, k, v, mask) if is_float else (q, k, v)
    return judge_all(torch, dtype, (out, None), reference(torch.float64), rough, leaves)


def sdpa_cases(torch):
    dtypes = {"bf16": torch.bfloat16, "f16": torch.float16, "f32": torch.float32}
    cases = []

    def add(name, *arguments):
        cases.append((name, lambda make: sdpa(torch, make, *arguments)))

    for number, (element, dtype) in enumerate(dtypes.items()):
        dim, kv_heads = (64, 128, 59)[number], (4, 2, 1)[number]
        add(f"sdpa-{element}-causal", dtype, dim, None, False, True, kv_heads)
        for shape in MASKS:
            for is_float in (False, True) if shape else (False,):
                words = "x".join(map(str, shape)) if shape else "none"
                add(f"sdpa-{element}-{'bias' if is_float else 'mask'}-{words}", dtype, dim, shape,
                    is_float, False, kv_heads)
    return cases


#===----------------------------------------------------------------------===#
# Time of the host
#===----------------------------------------------------------------------===#

def host_time(torch, device, call, batches=60, calls=20):
    """Median microseconds between call and return."""
    times = []
    for batch in range(batches + 3):
        if device == "cuda":
            torch.cuda.synchronize()
        for _ in range(calls):
            start = time.perf_counter()
            call()
            times.append(time.perf_counter() - start)
    return statistics.median(times[3 * calls:]) * 1e6


def measure(torch, device):
    """Rows: what is called, microseconds of ours and of PyTorch's."""
    import attn.torch as ours

    model = torch.nn.functional.scaled_dot_product_attention
    dtype = torch.bfloat16 if device == "cuda" else torch.float32
    q, k, v = (torch.randn(2, 8, 512, 64, device=device, dtype=dtype) for _ in "qkv")
    flat = [x.transpose(1, 2).contiguous() for x in (q, k, v)]
    packed = [x.flatten(0, 1) for x in flat]
    cu = torch.tensor([0, 300, 1024], dtype=torch.int32, device=device)
    mask = torch.rand(512, 512, device=device) > 0.5
    bias = torch.randn(2, 1, 512, 512, device=device, dtype=dtype)
    lengths = torch.tensor([400, 500], dtype=torch.int32, device=device)
    one, leaves = flat[0][:, :1], [x.clone().requires_grad_() for x in (q, k, v)]
    d_out = torch.randn_like(q)

    def step(function):
        def call():
            torch.autograd.grad(function(*leaves, is_causal=True), leaves, d_out)
        return call

    ours_sdpa = ours.scaled_dot_product_attention
    calls = {
        "sdpa": (lambda: ours_sdpa(q, k, v), lambda: model(q, k, v)),
        "sdpa causal": (lambda: ours_sdpa(q, k, v, is_causal=True), lambda: model(q, k, v, is_causal=True)),
        "sdpa mask": (lambda: ours_sdpa(q, k, v, mask), lambda: model(q, k, v, mask)),
        "sdpa bias": (lambda: ours_sdpa(q, k, v, bias), lambda: model(q, k, v, bias)),
        "sdpa causal, forward and backward": (step(ours_sdpa), step(model)),
        "attention causal": (lambda: ours.attention(q, k, v, causal=True), None),
        "flash_attn_func causal": (lambda: ours.flash_attn_func(*flat, causal=True), None),
        "flash_attn_varlen_func causal":
            (lambda: ours.flash_attn_varlen_func(*packed, cu, cu, 724, 724, causal=True), None),
        "flash_attn_with_kvcache, one new key":
            (lambda: ours.flash_attn_with_kvcache(one, *flat[1:], one, one, cache_seqlens=lengths,
                                                  causal=True), None),
    }
    rows = []
    for name, (mine, theirs) in calls.items():
        with torch.set_grad_enabled("backward" in name):
            row = {"call": name, "us": round(host_time(torch, device, mine), 1)}
            if theirs:
                row["us_of_torch"] = round(host_time(torch, device, theirs), 1)
        print(f"{name:40} {row['us']:8.1f} us" + (f"   torch {row['us_of_torch']:8.1f} us" if theirs else ""),
              flush=True)
        rows.append(row)
    return rows


def all_cases(torch):
    """{name: function of the tensors}"""
    dropouts = [(f"dropout-{dim}", lambda make, dim=dim: dropout(torch, make, torch.bfloat16, dim)) for dim in (64, 128)]
    return dict(flash_cases(torch) + sdpa_cases(torch) + dropouts)


def check(torch, name, options):
    cases = all_cases(torch)
    failures = cases[name](Tensors(torch, options.device, list(cases).index(name)))
    return case_pool.Verdict("\n    ".join(failures), not failures)


def main():
    options = parse_arguments()
    torch = find_torch("cpu" if options.device == "cpu" else "sm_80")
    if torch is None:
        return SKIP
    if not options.time:
        return case_pool.main(options, case_pool.chosen(options, all_cases(torch)), check, WHAT)
    case_pool.load(options)
    report = {"what": "Microseconds of the host between call and return, median; shapes (2, 8, 512, 64)",
              "command": results.command(), "environment": case_pool.environment(torch, options),
              "times": results.table(measure(torch, options.device))}
    if options.json:
        results.write(options.json, report)
    return 0


if __name__ == "__main__":
    sys.exit(main())
