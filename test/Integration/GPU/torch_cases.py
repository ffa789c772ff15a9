#!/usr/bin/env python3
#===----------------------------------------------------------------------===#
#
# Part of attn, an attention compiler.
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===----------------------------------------------------------------------===#
"""attn.torch on a GPU: attention() forward and backward against PyTorch's eager
evaluation in float64, and what else PyTorch does around it: streams, threads, graphs,
torch.compile, several GPUs.

    torch_cases.py --lib build/lib/libattn.so
    torch_cases.py --lib ... --jobs 8 --time-limit 300 --json f.json
    torch_cases.py --lib ... --device cpu --only causal    a test of this program itself

Errors may be three times those of the eager evaluation in the type of the inputs, and
two units in the last place of the largest value. Cases run in several processes
(case_pool.py). Exit code 0: all right; 1: not; 77: no GPU.
"""

import argparse
import math
import pathlib
import sys
import threading
import time

import case_pool

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3] / "python"))

WHAT = "attn.torch beside PyTorch's eager evaluation in float64"
torch = None
DEVICE = "cuda"
TYPES = []  # the case in hand checks these
ELEMENTS = {"bf16": "bfloat16", "f16": "float16", "f32": "float32"}
CASES = {}  # the function of attn, and the elements


def case(function):
    """One that is run once, for all types."""
    CASES[function.__name__] = function, tuple(ELEMENTS)
    return function


def case_of_types(function):
    """One for each type that `types` names."""
    CASES.update({f"{function.__name__}-{element}": (function, (element,)) for element in ELEMENTS})
    return function


# ---------------------------------------------------------------------------
# What is right
# ---------------------------------------------------------------------------


def eager(q, k, v, *, bias=None, shown=None, cap=None, sink=None, scale=None, keep=None, dtype=None):
    """(o, lse), each step in `dtype` (None: float64)."""
    dtype = dtype or torch.float64
    group = q.shape[1] // k.shape[1]
    q, k, v = (x.to(dtype) for x in (q, k, v))
    k, v = (x.repeat_interleave(group, 1) for x in (k, v))
    x = q @ k.transpose(2, 3) * (q.shape[-1] ** -0.5 if scale is None else scale)
    if cap is not None:
        x = cap * torch.tanh(x / cap)
    if bias is not None:
        x = x + bias.to(dtype)
    if shown is not None:
        x = x.masked_fill(~shown, -math.inf)
    if sink is not None:
        x = torch.cat([x, sink.to(dtype)[None, :, None, None].expand(*x.shape[:3], 1)], 3)
    empty = (x == -math.inf).all(3, keepdim=True)
    x = x.masked_fill(empty, 0.0)
    lse = torch.logsumexp(x, 3).masked_fill(empty[..., 0], -math.inf)
    w = torch.softmax(x, 3).masked_fill(empty, 0.0)[..., :k.shape[2]]
    if keep is not None:
        w = w * keep.to(dtype)
    return w @ v, lse


def error(got, exact):
    got, exact = got.double(), exact.double()
    where = ~exact.isinf()
    if not where.any():
        return 0.0, 0.0
    return (got - exact)[where].abs().max().item(), exact[where].abs().max().item()


def near(name, got, exact, plain, dtype):
    assert got.shape == exact.shape, f"{name}: shape {tuple(got.shape)}, wanted {tuple(exact.shape)}"
    assert not got.isnan().any(), f"{name}: NaN"
    assert torch.equal(got.isinf(), exact.isinf()), f"{name}: infinities elsewhere"
    (off, size), (allowed, _) = error(got, exact), error(plain, exact)
    unit = torch.finfo(dtype).eps
    if dtype == torch.float32:
        unit = 2.0**-20  # split products
    bound = 3 * allowed + 2 * unit * size + 2e-5
    assert off <= bound, f"{name}: off by {off:.3g}, wanted at most {bound:.3g} (eager {allowed:.3g})"


def compare(attention, wanted, leaves, dtype):
    """Forward, and the gradients of o and lse, beside `wanted(dtype)`."""
    o, lse = attention()
    (exact_o, exact_lse), (plain_o, plain_lse) = wanted(None), wanted(dtype)
    near("o", o, exact_o, plain_o, dtype)
    near("lse", lse, exact_lse, plain_lse, torch.float32)
    d_o = torch.randn(o.shape, device=o.device).to(dtype)
    d_lse = torch.randn(lse.shape, device=o.device).masked_fill(lse == -math.inf, 0.0)

    def gradients(o, lse):
        lse = lse.masked_fill(lse == -math.inf, 0.0)
        return torch.autograd.grad([o, lse], leaves, [d_o.to(o.dtype), d_lse.to(lse.dtype)])
    for number, (got, exact, plain) in enumerate(
            zip(gradients(o, lse), gradients(exact_o, exact_lse), gradients(plain_o, plain_lse))):
        near(f"gradient {number}", got, exact, plain, dtype)


def tensors(dtype, *, batch=2, heads=4, kv_heads=2, queries=133, keys=201, dim=64, value_dim=None):
    shapes = [(batch, heads, queries, dim), (batch, kv_heads, keys, dim), (batch, kv_heads, keys, value_dim or dim)]
    return [torch.randn(shape, device=DEVICE).to(dtype).requires_grad_() for shape in shapes]


def positions(q, k):
    """The key beside a query, (s, 1), and the number of a key, (1, t)."""
    queries, keys = q.shape[2], k.shape[2]
    i = torch.arange(queries, device=DEVICE)[:, None] + keys - queries
    return i, torch.arange(keys, device=DEVICE)[None, :]


def random(*shape):
    return torch.randn(shape, device=DEVICE, requires_grad=True)


def types():
    return TYPES


# ---------------------------------------------------------------------------
# Options, in all types
# ---------------------------------------------------------------------------


def check(attn, options, described, dtypes=None, others=(), **sizes):
    """`options` of attention beside those of eager, which `described(q, k)` gives."""
    for dtype in dtypes or types():
        x = tensors(dtype, **sizes)
        compare(lambda: attn.torch.attention(*x, return_lse=True, **options),
                lambda to: eager(*x, dtype=to, **described(*x[:2])), [*x, *others], dtype)


def lower(q, k):
    i, j = positions(q, k)
    return j <= i


@case_of_types
def plain(attn):
    check(attn, {}, lambda q, k: {})


@case_of_types
def causal(attn):
    for dim in (64, 128, 96):
        check(attn, dict(causal=True), lambda q, k: dict(shown=lower(q, k)), dim=dim)


@case
def wide_heads(attn):
    check(attn, dict(causal=True), lambda q, k: dict(shown=lower(q, k)), [torch.bfloat16], dim=256)
    check(attn, dict(causal=True), lambda q, k: dict(shown=lower(q, k)), [torch.bfloat16], dim=192, value_dim=128)


@case_of_types
def odd_heads(attn):
    check(attn, {}, lambda q, k: {}, dim=20, value_dim=36)


@case
def long_causal(attn):
    check(attn, dict(causal=True), lambda q, k: dict(shown=lower(q, k)), [torch.bfloat16], batch=1,
          queries=1500, keys=1500)


@case
def few_queries(attn):
    for queries in (1, 7):
        check(attn, dict(causal=True), lambda q, k: dict(shown=lower(q, k)), [torch.bfloat16], queries=queries, keys=700)


@case_of_types
def window_and_softcap(attn):
    def described(q, k):
        i, j = positions(q, k)
        return dict(shown=(j >= i - 40) & (j <= i + 3), cap=2.0)
    check(attn, dict(window=(40, 3), softcap=2.0), described)


@case_of_types
def alibi(attn):
    slopes = torch.rand(2, 4, device=DEVICE, requires_grad=True)

    def described(q, k):
        i, j = positions(q, k)
        return dict(shown=j <= i, bias=-slopes[:, :, None, None].double() * (i - j).abs())
    check(attn, dict(causal=True, alibi=slopes), described, others=[slopes])


@case_of_types
def sink(attn):
    logits = random(4)
    check(attn, dict(causal=True, sink=logits), lambda q, k: dict(shown=lower(q, k), sink=logits), others=[logits])


@case_of_types
def functions(attn):
    """A score that reads a bias with a gradient, and a mask that reads numbers."""
    bias = random(4, 133, 201)
    kinds = torch.randint(0, 3, (2, 201), device=DEVICE)

    def described(q, k):
        return dict(bias=bias[None] * 0.5, shown=(kinds < 2)[:, None, None].expand(2, 1, 133, 201))
    check(attn, dict(score=lambda x, b, h, i, j: x + bias[h, i, j] * 0.5,
                     mask=lambda b, h, i, j: kinds[b, j] < 2), described, others=[bias])


@case_of_types
def scalar_of_the_gpu(attn):
    """A captured tensor of no dimensions with a gradient."""
    factor = torch.tensor(0.7, device=DEVICE, requires_grad=True)
    for dtype in types():
        x = tensors(dtype)
        compare(lambda: attn.torch.attention(*x, return_lse=True, score=lambda s, b, h, i, j: s * factor),
                lambda to: eager(x[0] * factor, *x[1:], dtype=to) if to is None else eager(x[0] * factor.to(to), *x[1:], dtype=to),
                [*x, factor], dtype)


@case_of_types
def tangents(attn):
    """Of o and lse, from those of queries, keys and values (forward mode)."""
    sizes = dict(dim=64), dict(dim=128, kv_heads=4), dict(dim=96, queries=300, keys=100)

    def described(q, k):
        return dict(shown=lower(q, k), cap=3.0)
    for dtype in types():
        for size in sizes:
            x = tuple(y.detach() for y in tensors(dtype, **size))
            moved = tuple(y.detach() for y in tensors(dtype, **size))
            got = torch.func.jvp(lambda *x: attn.torch.attention(*x, causal=True, softcap=3.0, return_lse=True), x, moved)

            def wanted(to):
                # Rows without keys stand still. A tangent of -inf is NaN for eager.
                y, t = (tuple(z.to(to or torch.float64) for z in z) for z in (x, moved))
                return torch.func.jvp(lambda *y: eager(*y, dtype=to, **described(*y[:2])), y, t)
            exact, plain = wanted(None), wanted(dtype)
            for name, of, at in ("o", 0, dtype), ("lse", 1, torch.float32):
                near(name, got[0][of], exact[0][of], plain[0][of], at)
                near(f"tangent of {name}", got[1][of], *(z[1][of].nan_to_num(0.0) for z in (exact, plain)), dtype)


@case_of_types
def lengths(attn):
    lens = torch.tensor([140, 0], device=DEVICE)

    def described(q, k):
        i = torch.arange(q.shape[2], device=DEVICE)[:, None] + lens[:, None, None, None] - q.shape[2]
        j = torch.arange(k.shape[2], device=DEVICE)[None, :]
        return dict(shown=(j <= i) & (j < lens[:, None, None, None]))
    check(attn, dict(causal=True, kv_lens=lens), described)


@case_of_types
def empty_rows(attn):
    check(attn, dict(causal=True), lambda q, k: dict(shown=lower(q, k)), queries=300, keys=100)


@case_of_types
def documents(attn):
    """Packed sequences: each by itself is what is right."""
    for queries, keys in ([[30, 0, 120, 77]] * 2, [[30, 0, 120, 77], [64, 9, 150, 0]]):
        offsets = [torch.tensor([0, *x], device=DEVICE).cumsum(0).int() for x in (queries, keys)]
        own = dict(cu_seqlens_q=offsets[0])
        if queries != keys:
            own["cu_seqlens_k"] = offsets[1]
        for options in ({}, {"causal": True}, {"causal": True, "window": (50, 0)}):
            for dtype in types():
                shapes = [(sum(queries), 4, 64), (sum(keys), 2, 64), (sum(keys), 2, 64)]
                x = [torch.randn(shape, device=DEVICE).to(dtype).requires_grad_() for shape in shapes]

                def wanted(to):
                    parts = []
                    for one in zip(x[0].split(queries), x[1].split(keys), x[2].split(keys)):
                        one = [part.transpose(0, 1)[None] for part in one]
                        i, j = positions(*one[:2])
                        shown = (j <= i) if "causal" in options else (j >= 0) & (i > -math.inf)
                        if "window" in options:
                            shown = shown & (j >= i - 50)
                        parts.append(eager(*one, dtype=to, shown=shown))
                    return (torch.cat([o[0].transpose(0, 1) for o, _ in parts]),
                            torch.cat([lse[0] for _, lse in parts], 1))
                compare(lambda: attn.torch.attention(*x, return_lse=True, **own, **options), wanted, x, dtype)


# ---------------------------------------------------------------------------
# Tensors that lie otherwise
# ---------------------------------------------------------------------------


@case_of_types
def layouts(attn):
    def leaf(x):
        return x.detach().requires_grad_()
    for dtype in types():
        x = tensors(dtype)
        ways = {
            "turned": [leaf(y.transpose(1, 2).contiguous().transpose(1, 2)) for y in x],
            "columns": [leaf(y.transpose(2, 3).contiguous().transpose(2, 3)) for y in x],
            "every other": [leaf(torch.stack([y, y], 4).flatten(3)[..., ::2]) for y in x],
            "unaligned": [leaf(torch.nn.functional.pad(y, (1, 0))[..., 1:]) for y in x],
        }
        for name, y in ways.items():
            try:
                compare(lambda: attn.torch.attention(*y, causal=True, return_lse=True),
                        lambda to: eager(*y, dtype=to, shown=lower(*y[:2])), y, dtype)
            except AssertionError as problem:
                raise AssertionError(f"{name}: {problem}") from None
        y = [leaf(z.transpose(1, 2).contiguous()) for z in x]
        o = attn.torch.attention(*y, causal=True, layout="bshd")
        assert o.is_contiguous() and torch.equal(o.transpose(1, 2), attn.torch.attention(*x, causal=True))


@case_of_types
def expanded(attn):
    """One head for all, one number for all gradients."""
    for dtype in types():
        q = tensors(dtype)[0]
        k, v = (torch.randn(1, 1, 201, 64, device=DEVICE).to(dtype).requires_grad_() for _ in range(2))
        wide = [x.expand(2, 4, 201, 64) for x in (k, v)]
        compare(lambda: attn.torch.attention(q, *wide, return_lse=True), lambda to: eager(q, *wide, dtype=to), [q, k, v], dtype)
        attn.torch.attention(q, *wide).sum().backward()


@case
def nothing(attn):
    for sizes in (dict(batch=0), dict(queries=0), dict(keys=0)):
        x = tensors(torch.bfloat16, **sizes)
        o, lse = attn.torch.attention(*x, causal=True, return_lse=True)
        assert (o == 0).all() and (lse == -math.inf).all()
        o.sum().backward()
        assert all((y.grad == 0).all() for y in x)


# ---------------------------------------------------------------------------
# Dropout
# ---------------------------------------------------------------------------


@case_of_types
def dropout(attn):
    """With values that show the weights: the share, the mean, and the gradients."""
    for dtype in types():
        q, k, _ = tensors(dtype, kv_heads=4, keys=64)
        v = torch.eye(64, device=DEVICE).expand(2, 4, 64, 64).to(dtype).clone().requires_grad_()
        state = torch.get_rng_state()
        keep = (attn.torch.attention(q, k, v, dropout_p=0.4) != 0) / 0.6
        assert abs((keep == 0).double().mean().item() - 0.4) < 0.02

        def same():
            torch.set_rng_state(state)
            return attn.torch.attention(q, k, v, dropout_p=0.4, return_lse=True)
        compare(same, lambda to: eager(q, k, v, keep=keep, dtype=to), [q, k, v], dtype)
        o = attn.torch.attention(q, k, v).double()
        mean = sum(attn.torch.attention(q, k, v, dropout_p=0.4).double() for _ in range(100)) / 100
        assert (mean - o).abs().mean() < 0.15 * o.abs().mean()


# ---------------------------------------------------------------------------
# Around it
# ---------------------------------------------------------------------------


def step(attn, x, **options):
    """o and the gradients of q, k, v."""
    o = attn.torch.attention(*x, causal=True, deterministic=True, **options)
    return [o, *torch.autograd.grad(o.float().square().sum(), x)]


def alike(got, wanted):
    return all(torch.equal(a, b) for a, b in zip(got, wanted))


@case
def never_waits(attn):
    if DEVICE == "cpu":
        return
    x = tensors(torch.bfloat16)
    slopes = torch.rand(4, device=DEVICE, requires_grad=True)
    lens = torch.tensor([100, 201], device=DEVICE)
    options = dict(causal=True, alibi=slopes, dropout_p=0.1, kv_lens=lens)
    for mode in ("default", "error"):
        torch.cuda.set_sync_debug_mode(mode)
        try:
            attn.torch.attention(*x, **options).sum().backward()
        finally:
            torch.cuda.set_sync_debug_mode("default")


@case
def number_of_the_gpu(attn):
    """A number of a program that lies on the GPU would have to be waited for."""
    if DEVICE == "cpu":
        return
    q = torch.zeros(1, 1, 5, 64, device=DEVICE, dtype=torch.bfloat16)
    program = attn.attention("bf16", 64, captures=[("n", "i32")], mask=lambda p: p.j < p.n)
    attn.torch.run(program, q, q, q, [torch.tensor(3)])
    try:
        attn.torch.run(program, q, q, q, [torch.tensor(3, device=DEVICE)])
    except attn.AttnError as problem:
        assert "operand 'n' is a number: wanted a tensor of the CPU" in str(problem)
    else:
        raise AssertionError("wanted an error")


@case
def streams(attn):
    """In the current stream, behind what is there."""
    if DEVICE == "cpu":
        return
    x = tensors(torch.bfloat16, queries=700, keys=700)
    wanted = step(attn, x)
    torch.cuda.synchronize()
    for _ in range(5):
        side = torch.cuda.Stream()
        with torch.cuda.stream(side):
            torch.cuda._sleep(20_000_000)
            y = [torch.empty_like(z).copy_(z.detach()).requires_grad_() for z in x]
            got = step(attn, y)
        side.synchronize()
        assert alike(got, wanted), "another stream"


@case
def threads(attn):
    x = tensors(torch.bfloat16)
    wanted, wrong = step(attn, x), []

    def work():
        stream = torch.cuda.Stream() if DEVICE == "cuda" else None
        with torch.cuda.stream(stream):
            for _ in range(20):
                got = step(attn, [y.detach().requires_grad_() for y in x])
                if stream:
                    stream.synchronize()
                if not alike(got, wanted):
                    wrong.append(1)
    if DEVICE == "cuda":
        torch.cuda.synchronize()
    workers = [threading.Thread(target=work) for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert not wrong, f"{len(wrong)} of 80 launches differ"


@case
def cuda_graph(attn):
    """Forward and backward captured once, run on other numbers."""
    if DEVICE == "cpu":
        return
    for options in ({}, {"alibi": True, "sink": random(4)}, {"layout": "bshd"}):
        x = tensors(torch.bfloat16, queries=200, keys=200, heads=4, kv_heads=4)
        warm = torch.cuda.Stream()
        warm.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(warm):
            for _ in range(3):
                step(attn, x, **options)
        torch.cuda.current_stream().wait_stream(warm)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            got = step(attn, x, **options)
        for _ in range(3):
            with torch.no_grad():
                for y in x:
                    y.copy_(torch.randn_like(y))
            graph.replay()
            torch.cuda.synchronize()
            assert alike(got, step(attn, x, **options)), f"{options}"


def compiled(attn, backend):
    def model(q, k, v, logits, offsets):
        o, lse = attn.torch.attention(q * 2, k, v, causal=True, sink=logits, layout="bshd", return_lse=True)
        packed = attn.torch.attention(*(y.flatten(0, 1) for y in (o, k, v)), cu_seqlens_q=offsets)
        return packed.float().square().mean() + lse.mean()
    torch._dynamo.reset()
    fast = torch.compile(model, fullgraph=True, dynamic=True, backend=backend)
    for number, length in enumerate((100, 133, 260)):
        x = [torch.randn(2, length, 4, 64, device=DEVICE).bfloat16().requires_grad_() for _ in range(3)]
        x.append(random(4))
        offsets = torch.tensor([0, length, 2 * length], device=DEVICE)
        with torch._dynamo.config.patch(error_on_recompile=number > 0):
            got = fast(*x, offsets)
            gradients = torch.autograd.grad(got, x)
        wanted = model(*x, offsets)
        assert torch.allclose(got, wanted, rtol=1e-3)
        for a, b in zip(gradients, torch.autograd.grad(wanted, x)):
            assert torch.allclose(a.float(), b.float(), rtol=0.02, atol=0.02 * b.abs().max().item())


@case
def compile_aot_eager(attn):
    compiled(attn, "aot_eager")


@case
def compile_inductor(attn):
    compiled(attn, "inductor")


@case
def compile_functions(attn):
    """Score and mask functions made inside of what is compiled."""
    bias, factor = random(4, 512), random(1)

    def model(q, k, v):
        shown = q[0, 0, :, 0] > 0
        return attn.torch.attention(
            q * 2, k, v, causal=True, score=lambda x, b, h, i, j: x * factor[0] + bias[h, i - j + 256],
            mask=lambda b, h, i, j: shown[i] | (i == j))
    for backend in ("aot_eager", "inductor"):
        torch._dynamo.reset()
        fast = torch.compile(model, fullgraph=True, dynamic=True, backend=backend)
        for number, length in enumerate((100, 133)):
            x = tensors(torch.bfloat16, queries=length, keys=length)
            leaves = [*x, bias, factor]
            with torch._dynamo.config.patch(error_on_recompile=number > 0):
                o = fast(*x)
                got = torch.autograd.grad(o.float().square().mean(), leaves)
            wanted = model(*x)
            assert torch.allclose(o.float(), wanted.float(), atol=0.02), backend
            for a, b in zip(got, torch.autograd.grad(wanted.float().square().mean(), leaves)):
                assert torch.allclose(a.float(), b.float(), rtol=0.02, atol=0.02 * b.abs().max().item()), backend


@case
def torch_func(attn):
    """Gradients of each entry by itself."""
    x = [torch.randn(3, 2, 4, 50, 64, device=DEVICE).bfloat16() for _ in range(3)]

    def loss(*y):
        return attn.torch.attention(*y, causal=True).float().square().sum()
    got = torch.vmap(torch.func.grad(loss, argnums=(0, 1, 2)))(*x)
    for n in range(3):
        leaves = [y[n].detach().requires_grad_() for y in x]
        assert alike([y[n] for y in got], torch.autograd.grad(loss(*leaves), leaves))


@case
def compile_cudagraphs(attn):
    if DEVICE == "cpu":
        return
    torch._dynamo.reset()
    x = tensors(torch.bfloat16)
    fast = torch.compile(lambda *y: attn.torch.attention(*y, causal=True, deterministic=True),
                         mode="reduce-overhead", fullgraph=True)
    for _ in range(4):
        torch.compiler.cudagraph_mark_step_begin()
        o = fast(*x)
        got = [o.clone(), *torch.autograd.grad(o.float().square().sum(), x)]
        assert alike(got, step(attn, x))


@case
def checkpoint(attn):
    import torch.utils.checkpoint

    q, k, v = tensors(torch.bfloat16)

    def block(q):
        return attn.torch.attention(q * 1.5, k, v, dropout_p=0.3)
    torch.manual_seed(3)
    o = torch.utils.checkpoint.checkpoint(block, q, use_reentrant=False)
    got = [o, *torch.autograd.grad(o.float().sum(), q)]
    torch.manual_seed(3)
    o = block(q)
    assert alike(got, [o, *torch.autograd.grad(o.float().sum(), q)])


@case
def autocast(attn):
    x = tensors(torch.float32)
    with torch.autocast(DEVICE, torch.bfloat16):
        o = attn.torch.attention(*x, causal=True)
    assert o.dtype == torch.bfloat16
    o.float().sum().backward()
    assert all(y.grad.dtype == torch.float32 for y in x)


@case
def vmap(attn):
    x = [torch.randn(3, 2, 4, 50, 64, device=DEVICE).bfloat16() for _ in range(3)]
    got = torch.vmap(lambda *y: attn.torch.attention(*y, causal=True))(*x)
    assert torch.equal(got, torch.stack([attn.torch.attention(*y, causal=True) for y in zip(*x)]))


@case
def several_gpus(attn):
    """On a GPU that is not the current one."""
    if DEVICE == "cpu" or torch.cuda.device_count() < 2:
        print("several_gpus: one GPU only")
        return
    x = tensors(torch.bfloat16)
    wanted = step(attn, x)
    got = step(attn, [y.detach().to("cuda:1").requires_grad_() for y in x])
    assert torch.cuda.current_device() == 0 and got[0].device.index == 1
    assert alike([y.to("cuda:0") for y in got], wanted)


@case
def times(attn):
    """Printed, not judged: the first call, the first of another process, and the host's
    share of a call."""
    from attn.torch import kernels

    x = tensors(torch.bfloat16, dim=112)
    for what in ("compiled", "from disk"):
        kernels._loaded.clear()
        kernels._compiled.clear()
        start = time.perf_counter()
        o = attn.torch.attention(*x, causal=True)
        middle = time.perf_counter()
        o.sum().backward()
        end = time.perf_counter()
        print(f"times: first call, {what}: {middle - start:.2f} s forward, {end - middle:.2f} s backward")
    y = [z.detach() for z in x]
    start = time.perf_counter()
    for _ in range(300):
        attn.torch.attention(*y, causal=True)
    print(f"times: {(time.perf_counter() - start) / 300 * 1e6:.0f} us of the host per forward call")
    if DEVICE == "cuda":
        torch.cuda.synchronize()


def use(pytorch, device, elements=tuple(ELEMENTS)):
    """What the functions of this file work with."""
    global torch, DEVICE, TYPES
    torch, DEVICE, TYPES = pytorch, device, [getattr(pytorch, ELEMENTS[element]) for element in elements]


def run_case(pytorch, name, options):
    import attn

    function, elements = CASES[name]
    use(pytorch, options.device, elements)
    function(attn)
    return case_pool.Verdict("", True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options = case_pool.parse(case_pool.add_arguments(parser, lib_required=False))
    return case_pool.main(options, case_pool.chosen(options, CASES), run_case, WHAT, alone=("times",))


if __name__ == "__main__":
    sys.exit(main())
