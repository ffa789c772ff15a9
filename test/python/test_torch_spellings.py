#===----------------------------------------------------------------------===#
#
# Part of attn, an attention compiler.
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===----------------------------------------------------------------------===#
"""Attention as models spell it (torch_spellings/), with torch.compile(backend="attn")
against eager: what becomes a kernel, and that results are those of eager.

A quarter of the spellings run, and all that are near to attention; a third of these with unknown
lengths, the others with known ones, and a tenth with gradients. ATTN_ALL_SPELLINGS=1 runs all
of them in all ways.
"""

import os
import zlib

import pytest

torch = pytest.importorskip("torch", reason="spellings are those of PyTorch")

from attn.torch import backend  # noqa: E402
from torch_spellings import SPELLINGS, make, mark  # noqa: E402

ALL = os.environ.get("ATTN_ALL_SPELLINGS") == "1"


def is_chosen(spelling, share):
    """One of so many, the same each time."""
    return ALL or zlib.crc32(f"{share} {spelling.name}".encode()) % share == 0


def flat(results):
    return [x for result in results for x in flat(result)] if isinstance(results, (tuple, list)) else [results]


def gradients(results, sources, upstream):
    used = [(result, d) for result, d in zip(results, upstream) if result.requires_grad]
    return torch.autograd.grad([x for x, _ in used], sources, [d for _, d in used], allow_unused=True)


def assert_close(got, wanted, bound, what):
    difference = (got - wanted).abs().max().item() if wanted.numel() else 0.0
    assert difference <= bound * max(1.0, wanted.abs().max().item()), f"{what}: {difference}"


def check(spelling, dynamic, has_gradients):
    function, inputs = make(spelling)
    sources = [x for x in inputs if x.requires_grad]
    sources += list(function.parameters()) if isinstance(function, torch.nn.Module) else []
    with torch.set_grad_enabled(has_gradients):
        wanted, found = flat(function(*inputs)), []
        torch._dynamo.reset()
        if dynamic:
            for x in inputs:
                mark(x)
        compiled = torch.compile(function, dynamic=dynamic, backend=lambda graph, examples: backend.backend(
            graph, examples, inner="eager", listener=found.extend))
        got = flat(compiled(*inputs))
    remarks = "\n".join(f"{each.raised}: {each.remark} {each.edge}" for each in found)
    assert sum(each.raised for each in found) == spelling.raised, remarks
    refused = [each.remark for each in found if not each.raised]
    assert len(refused) == len(spelling.reasons), remarks
    for words, remark in zip(spelling.reasons, refused):
        assert words in remark, remarks
    for number, (a, b) in enumerate(zip(got, wanted)):
        assert_close(a, b, 2e-5, f"result {number}")
    if not has_gradients or not any(result.requires_grad for result in wanted):
        return
    upstream = [torch.randn_like(result) for result in wanted]
    for number, (a, b) in enumerate(zip(gradients(got, sources, upstream), gradients(wanted, sources, upstream))):
        if b is not None and a is not None:
            assert_close(a, b, 1e-4, f"gradient {number}")
        else:
            assert a is b, f"gradient {number}"


CHOSEN = [each for each in SPELLINGS if is_chosen(each, 4) or each.function.__module__.endswith("near")]
KNOWN = [each for each in CHOSEN if ALL or not is_chosen(each, 3)]
UNKNOWN = [each for each in CHOSEN if is_chosen(each, 3)]


@pytest.mark.parametrize("spelling", KNOWN, ids=lambda spelling: spelling.name)
def test_known_lengths(spelling):
    check(spelling, None, is_chosen(spelling, 10))


@pytest.mark.parametrize("spelling", UNKNOWN, ids=lambda spelling: spelling.name)
def test_unknown_lengths(spelling):
    check(spelling, True, is_chosen(spelling, 10))


def nan_to_num(w):
    return torch.nan_to_num(w, 0.0)


def where_isnan(w):
    return torch.where(torch.isnan(w), 0.0, w)


@pytest.mark.parametrize("guard", [nan_to_num, where_isnan])
@pytest.mark.parametrize("bad", ["q", "k"])
@pytest.mark.parametrize("number", [float("nan"), float("inf")])
def test_guards_clear_rows_with_nan(guard, bad, number):
    """Those that see no key, and those with a NaN of an input; gradients of q and k have
    it in both."""
    def guarded(q, k, v, seen):
        return guard((q @ k.mT * 0.3).masked_fill(~seen, float("-inf")).softmax(-1)) @ v

    q, k, v = (torch.rand(2, 4, 10, 8) for _ in range(3))
    seen = torch.ones(10, 10, dtype=torch.bool).tril()
    seen[2] = False
    {"q": q, "k": k}[bad][0, 1, 6, 0] = number
    inputs = [x.requires_grad_() for x in (q, k, v)]
    found = []
    torch._dynamo.reset()
    got = torch.compile(guarded, backend=lambda graph, examples: backend.backend(
        graph, examples, inner="eager", listener=found.extend))(*inputs, seen)
    wanted = guarded(*inputs, seen)
    assert [each.raised for each in found] == [True]
    assert (wanted[0, 1, 6] == 0).all() and (wanted[:, :, 2] == 0).all()
    assert_close(got, wanted, 2e-5, "result")
    upstream = torch.randn_like(got)
    for a, b in zip(*(torch.autograd.grad(result, inputs[:2], upstream) for result in (got, wanted))):
        assert a[0, 1].isnan().any() and b[0, 1].isnan().any()


@pytest.mark.parametrize("name", ["vmap", "grad", "vjp", "jvp"])
@pytest.mark.parametrize("inner", ["eager", "aot_eager"])
def test_transforms(name, inner):
    """Of forward mode, and of what has gradients itself, there is no kernel."""
    def plain(q, k, v):
        return torch.softmax(q @ k.mT * 0.3, -1) @ v

    transforms = {
        "vmap": lambda q, k, v: torch.vmap(plain)(q, k, v),
        "grad": lambda q, k, v: torch.func.grad(lambda x: plain(x, k, v).square().sum())(q),
        "vjp": lambda q, k, v: torch.func.vjp(plain, q, k, v)[1](q)[0],
        "jvp": lambda q, k, v: torch.func.jvp(lambda x: plain(x, k, v), (q,), (k,))[1],
    }
    for has_gradients in (False, True):
        q, k, v = (torch.randn(3, 4, 10, 8, requires_grad=has_gradients) for _ in range(3))
        found = []
        torch._dynamo.reset()
        got = torch.compile(transforms[name], backend=lambda graph, inputs: backend.backend(
            graph, inputs, inner=inner, listener=found.extend))(q, k, v)
        assert_close(got, transforms[name](q, k, v), 2e-5, name)
        raised = name == "vmap" or name != "jvp" and not has_gradients
        assert [each.raised for each in found] == [raised], found
        if not raised:
            assert f"inside of torch.func.{'jvp' if name == 'jvp' else 'grad'}" in found[0].remark
