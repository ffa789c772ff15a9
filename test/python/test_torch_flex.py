#===----------------------------------------------------------------------===#
#
# Part of attn, an attention compiler.
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===----------------------------------------------------------------------===#
"""attn.torch.flex_attention against PyTorch's own, evaluated in eager mode on the CPU in
float64, with PyTorch's gradients of that."""

import functools
import inspect
import math

import pytest

torch = pytest.importorskip("torch", reason="a drop-in for PyTorch needs PyTorch")
flex = pytest.importorskip("torch.nn.attention.flex_attention", reason="this PyTorch has no flex attention")

import attn  # noqa: E402
import attn.torch  # noqa: E402
from attn.torch import flex_attention  # noqa: E402

create_block_mask = functools.partial(flex.create_block_mask, device="cpu")


def eager(q, k, v, score_mod=None, block_mask=None, scale=None):
    """(o, lse) by PyTorch's own unfused evaluation, which its flex attention for the
    CPU refuses to differentiate."""
    from torch._higher_order_ops.flex_attention import math_attention

    if block_mask is None:
        block_mask = flex._create_empty_block_mask(q, k)
    scale = 1 / math.sqrt(q.shape[3]) if scale is None else scale
    o, lse = math_attention(q, k, v, score_mod or flex._identity, block_mask.as_tuple(), scale, {})[:2]
    return o, lse * math.log(2.0)


def tensors(*shapes, dtype=torch.float32):
    torch.manual_seed(7)
    return [torch.randn(shape).to(dtype).requires_grad_() for shape in shapes]


def doubled(x):
    return x.detach().double().requires_grad_(x.requires_grad)


def near(got, wanted, dtype, room=4.0):
    got, wanted = got.detach().double(), wanted.detach().double()
    assert got.shape == wanted.shape and (got.isinf() == wanted.isinf()).all() and not got.isnan().any()
    got, wanted = got.nan_to_num(posinf=0, neginf=0), wanted.nan_to_num(posinf=0, neginf=0)
    bound = room * torch.finfo(dtype).eps * max(wanted.abs().max().item(), 0.5) + 2e-5
    assert (got - wanted).abs().max() <= bound


def same(make, q_shape=(2, 4, 37, 16), k_shape=None, dtype=torch.float32, parameters=(), backward=None,
         value_dim=None, **options):
    """make(*parameters) gives the score_mod, or (score_mod, mask_mod). Gradients are
    compared where there are parameters, unless it is said."""
    backward = bool(parameters) if backward is None else backward
    k_shape = k_shape or q_shape
    v_shape = (*k_shape[:3], value_dim or k_shape[3])
    inputs = [*tensors(q_shape, k_shape, v_shape, dtype=dtype), *parameters]
    results = []
    for attend, leaves, as_dtype in ((flex_attention, inputs, dtype),
                                     (eager, [doubled(x) for x in inputs], torch.float64)):
        mods = make(*leaves[3:])
        score_mod, mask_mod = mods if isinstance(mods, tuple) else (mods, None)
        block_mask = mask_mod and create_block_mask(mask_mod, q_shape[0], q_shape[1], q_shape[2], k_shape[2],
                                                    BLOCK_SIZE=32)
        if attend is flex_attention:
            aux = q_shape[1] != k_shape[1]
            o, lse = flex_attention(*leaves[:3], score_mod, block_mask, return_lse=True, enable_gqa=aux, **options)
        else:
            o, lse = eager(*leaves[:3], score_mod, block_mask, **options)
        gradients = []
        if backward:
            torch.manual_seed(8)
            d_o, d_lse = torch.randn(o.shape), torch.randn(lse.shape)
            shown = lse.detach() != -math.inf
            loss = (o * d_o.to(as_dtype)).sum() + (lse[shown] * d_lse[shown]).sum()
            gradients = torch.autograd.grad(loss, leaves)
        results.append([o, lse, *gradients])
    for number, (got, wanted) in enumerate(zip(*results)):
        near(got, wanted, dtype if number != 1 else torch.float32, room=4.0 if number < 2 else 12.0)


H = 4
HALF = torch.float16


def parameter(*shape):
    torch.manual_seed(11)
    return torch.nn.Parameter(torch.randn(shape))


IDS = torch.tensor([0] * 10 + [1] * 12 + [2] * 15)
PREFIX = torch.tensor([5, 0])
OFFSETS = torch.tensor([0, 10, 22, 37])
FIRST = torch.tensor([2, 11, 30], dtype=torch.int32)


def causal(b, h, q, k):
    return q >= k


def alibi(s, b, h, q, k):
    return s + (k - q) * torch.exp2(-((h + 1) * 8.0 / H))


def jagged(offsets, score):
    """A score on the positions inside of packed documents, as jagged tensors have them."""
    ids = torch.repeat_interleave(torch.arange(3), offsets.diff())
    return lambda s, b, h, q, k: score(s, ids[q], h, q - offsets[ids[q]], k - offsets[ids[k]])


def natten(b, h, q, k):
    x, y, u, v = q // 8, q % 8, k // 8, k % 8
    return ((x.clamp(1, 3) - u).abs() <= 1) & ((y.clamp(2, 5) - v).abs() <= 2)


CASES = {
    "nothing": dict(make=lambda: None),
    "causal score": dict(backward=True, make=lambda: lambda s, b, h, q, k: torch.where(q >= k, s, -float("inf"))),
    "inverse causal score": dict(make=lambda: lambda s, b, h, q, k: torch.where(q <= k, s, float("-inf"))),
    "times two": dict(make=lambda: lambda s, b, h, q, k: s * 2),
    "squared": dict(backward=True, make=lambda: lambda s, b, h, q, k: s * s),
    "relative": dict(make=lambda: lambda s, b, h, q, k: s + (q - k)),
    "relative causal": dict(make=lambda: lambda s, b, h, q, k: torch.where(q >= k, s + (q - k), -math.inf)),
    "alibi": dict(make=lambda: (alibi, causal)),
    "softcap": dict(backward=True, make=lambda: (lambda s, b, h, q, k: 5 * torch.tanh(s / 5), causal)),
    "trigonometry": dict(make=lambda: lambda s, b, h, q, k: torch.sin(torch.cos(s)) * s + torch.tan(b)),
    "composed": dict(make=lambda: lambda s, b, h, q, k: 5 * torch.tanh(alibi(s, b, h, q, k) / 5)),
    "head scale": dict(make=lambda g: lambda s, b, h, q, k: s * g[h], parameters=[parameter(H)]),
    "slopes": dict(backward=False, make=lambda g: (lambda s, b, h, q, k: s - g.abs()[h] * (q - k).abs(), causal), parameters=[parameter(H)]),
    "gain": dict(make=lambda g: lambda s, b, h, q, k: s * g, parameters=[parameter()]),
    "gain of the cpu": dict(make=lambda g: lambda s, b, h, q, k: s * g, parameters=[torch.tensor(0.3)], backward=False),
    "bias": dict(make=lambda t: lambda s, b, h, q, k: s + t[b, h, q, k], parameters=[parameter(2, H, 37, 37)]),
    "bias in steps": dict(make=lambda t: lambda s, b, h, q, k: s + t[h][q, k], parameters=[parameter(H, 37, 37)], backward=False),
    "key bias": dict(backward=False, make=lambda t: lambda s, b, h, q, k: s + t[b, k], parameters=[parameter(2, 37)]),
    "relative table": dict(make=lambda t: lambda s, b, h, q, k: s + t[h, torch.clamp(q - k + 8, 0, 16)], parameters=[parameter(H, 17)]),
    "relative table, whole": dict(backward=False, make=lambda t: lambda s, b, h, q, k: s + t[q - k + 36, h], parameters=[parameter(73, H)]),
    "rows and columns": dict(make=lambda r, c: lambda s, b, h, q, k: s + r[b, h, q, k // 8] + c[b, h, q, k % 8],
                             parameters=[parameter(2, H, 37, 5), parameter(2, H, 37, 8)]),
    "heads last": dict(make=lambda t: lambda s, b, h, q, k: s + t[q, k, h], parameters=[parameter(37, 37, H)]),
    "activation": dict(make=lambda: lambda s, b, h, q, k: torch.log(torch.nn.functional.gelu(s) + 1)),
    "latent": dict(make=lambda a, c: lambda s, b, h, q, k: s + 0.5 * torch.dot(a[b, h, q], c[b, h // H, k]),
                   parameters=[torch.randn(2, H, 37, 4), torch.randn(2, 1, 37, 4)], backward=False),
    "jagged": dict(make=lambda: (jagged(OFFSETS, alibi), lambda b, h, q, k: (IDS[q] == IDS[k]) & (q >= k))),
    "window": dict(make=lambda: (None, lambda b, h, q, k: (q >= k) & (q - k <= 6))),
    "prefix": dict(make=lambda: (None, lambda b, h, q, k: (k < PREFIX[b]) | (q >= k))),
    "documents": dict(make=lambda: (None, lambda b, h, q, k: IDS[q] == IDS[k])),
    "documents, causal": dict(make=lambda: (None, flex.and_masks(causal, lambda b, h, q, k: k >= OFFSETS[IDS[q]]))),
    "or": dict(make=lambda: (None, flex.or_masks(causal, lambda b, h, q, k: IDS[k] == 0))),
    "empty rows": dict(backward=True, make=lambda: (None, lambda b, h, q, k: (q >= k) & (q != 5) & (q < 33))),
    "empty": dict(make=lambda: (None, lambda b, h, q, k: k < 0)),
    "by head": dict(make=lambda: (alibi, lambda b, h, q, k: torch.where(h % 2 == 0, q >= k, q <= k))),
    "natten": dict(make=lambda: (None, natten), q_shape=(1, 2, 40, 8)),
    "more keys": dict(make=lambda: (alibi, causal), q_shape=(1, H, 9, 16), k_shape=(1, H, 21, 16)),
    "fewer keys": dict(make=lambda: (alibi, causal), q_shape=(1, H, 21, 16), k_shape=(1, H, 9, 16)),
    "groups": dict(backward=True, make=lambda: (alibi, causal), k_shape=(2, 2, 37, 16)),
    "one key head": dict(make=lambda: (alibi, lambda b, h, q, k: q - k < 9), k_shape=(2, 1, 37, 16)),
    "value size": dict(make=lambda: alibi, value_dim=24),
    "odd sizes": dict(make=lambda: (alibi, causal), q_shape=(1, H, 11, 12), value_dim=10),
    "scale": dict(make=lambda: (alibi, causal), scale=0.4),
    "f16": dict(backward=True, make=lambda: (alibi, causal), dtype=HALF),
    "bf16": dict(make=lambda: (lambda s, b, h, q, k: 5 * torch.tanh(s / 5), causal), dtype=torch.bfloat16),
    "decoding": dict(make=lambda: (None, lambda b, h, q, k: q + 20 >= k), q_shape=(2, H, 1, 16), k_shape=(2, H, 37, 16)),
    "both hide": dict(make=lambda: (lambda s, b, h, q, k: torch.where(q - k < 9, s * 2, -math.inf), causal)),
    "score hides by score": dict(make=lambda: lambda s, b, h, q, k: torch.where((s > -0.5) | (q == k), s, -math.inf)),
}


@pytest.mark.parametrize("name", CASES)
def test_case(name):
    same(**CASES[name])


def small(batch=2, heads=2, length=32, dim=8):
    return [x.detach() for x in tensors(*[(batch, heads, length, dim)] * 3)]


def test_signature_is_pytorchs():
    got, wanted = (inspect.signature(f).parameters for f in (flex_attention, flex.flex_attention))
    assert [(p.name, p.default, p.kind) for p in got.values()] == \
        [(p.name, p.default, p.kind) for p in wanted.values()]


def test_agrees_with_the_eager_function():
    q, k, v = small()
    mask = create_block_mask(causal, None, None, 32, 32)
    near(flex_attention(q, k, v, alibi, mask), flex.flex_attention(q, k, v, alibi, mask), torch.float32)


def test_results():
    q, k, v = small()
    o = flex_attention(q, k, v)
    assert isinstance(o, torch.Tensor) and o.dtype == q.dtype
    both = flex_attention(q, k, v, return_lse=True)
    assert len(both) == 2 and both[1].dtype == torch.float32 and both[1].shape == (2, 2, 32)
    if hasattr(flex, "AuxRequest"):
        _, aux = flex_attention(q, k, v, return_aux=flex.AuxRequest(lse=True))
        assert isinstance(aux, flex.AuxOutput) and torch.equal(aux.lse, both[1]) and aux.max_scores is None
        assert flex_attention(q, k, v, return_aux=flex.AuxRequest())[1] == (None, None)


def test_one_batch_of_keys():
    q, k, v = small(batch=3)
    mask = create_block_mask(causal, 3, 1, 32, 32)
    near(flex_attention(q, k[:1], v[:1], block_mask=mask), eager(q, k[:1], v[:1], block_mask=mask)[0], torch.float32)


def blocks(*rows, full=None):
    """A BlockMask that only says which blocks of 16 there are."""
    def table(rows):
        shown = torch.tensor(rows)[None, None]
        return shown.sum(-1, dtype=torch.int32), shown.argsort(dim=-1, descending=True, stable=True).int()
    return flex.BlockMask.from_kv_blocks(*table(rows), *(table(full) if full else ()), BLOCK_SIZE=16)


def test_blocks_without_a_mask_mod():
    q, k, v = small(length=48)
    mask = blocks([1, 0, 0], [0, 0, 1], [0, 0, 0], full=[[0, 1, 0], [0, 0, 0], [0, 0, 0]])
    shown = torch.tensor([[1, 1, 0], [0, 0, 1], [0, 0, 0]]).bool().repeat_interleave(16, 0).repeat_interleave(16, 1)
    wanted = create_block_mask(lambda b, h, i, j: shown[i, j], None, None, 48, 48)
    o, lse = flex_attention(q, k, v, alibi, mask, return_lse=True)
    for got, want in zip((o, lse), eager(q, k, v, alibi, wanted)):
        near(got, want, torch.float32)
    assert (o[:, :, 32:] == 0).all() and (lse[:, :, 32:] == -math.inf).all()


def test_blocks_that_say_more_than_the_mask_mod():
    q, k, v = small(length=48)
    mask = blocks([1, 0, 0], [0, 1, 0], [0, 0, 1], full=[[0, 0, 0], [0, 0, 0], [1, 0, 0]])
    mask.mask_mod = causal

    def wanted(b, h, i, j):
        return (i >= j) & ((i // 16 == j // 16) | ((i >= 32) & (j < 16)))
    near(flex_attention(q, k, v, None, mask), eager(q, k, v, None, create_block_mask(wanted, 1, 1, 48, 48))[0],
         torch.float32)
    mask.full_kv_num_blocks = mask.full_kv_num_blocks * 0
    near(flex_attention(q, k, v, None, mask), eager(q, k, v, None, create_block_mask(
        lambda b, h, i, j: wanted(b, h, i, j) & (i // 16 == j // 16), 1, 1, 48, 48))[0], torch.float32)


def test_blocks_of_create_block_mask_say_no_more():
    from attn.torch.flex import _maps

    for mask_mod in (causal, natten, flex.noop_mask, CASES["prefix"]["make"]()[1]):
        for size in (16, 32):
            assert _maps(create_block_mask(mask_mod, 2, 1, 40, 40, BLOCK_SIZE=size)) is None


def test_all_blocks_without_a_mask_mod():
    q, k, v = small(length=48)
    near(flex_attention(q, k, v, None, blocks([1] * 3, [1] * 3, [1] * 3)), eager(q, k, v)[0], torch.float32)
    near(flex_attention(q, k, v, None, create_block_mask(flex.noop_mask, 1, 1, 48, 48)), eager(q, k, v)[0],
         torch.float32)


def test_paged_cache():
    """Pages of 16 keys in any order, with a mask and a score on logical positions."""
    q, k, v = small(batch=2, length=48)
    page = torch.tensor([[5, 0, 3], [1, 4, 2]])
    caches = [torch.zeros(1, 2, 96, 8) for _ in range(2)]
    for b in range(2):
        for number in range(3):
            for cache, x in zip(caches, (k, v)):
                at = int(page[b, number]) * 16
                cache[0, :, at:at + 16] = x[b, :, number * 16:number * 16 + 16]
    logical = torch.full((2, 6), -1).scatter(1, page, torch.arange(3).expand(2, 3))

    def mask(b, h, i, j):
        number = logical[b, j // 16]
        return torch.where(number >= 0, causal(b, h, i, number * 16 + j % 16), False)

    def score(s, b, h, i, j):
        number = logical[b, j // 16]
        return torch.where(number >= 0, alibi(s, b, h, i, number * 16 + j % 16), float("-inf"))
    block_mask = create_block_mask(mask, 2, 1, 48, 96)
    wanted = eager(q, k, v, alibi, create_block_mask(causal, 1, 1, 48, 48))[0]
    near(flex_attention(q, *caches, score, block_mask), wanted, torch.float32)


def test_second_call_compiles_nothing(monkeypatch):
    from attn.torch import kernels

    q, k, v = small()

    def call(slopes):
        return flex_attention(q, k, v, lambda s, b, h, i, j: s + slopes[h] * (i - j))
    call(torch.ones(2))
    made = []
    monkeypatch.setattr(attn, "compile", lambda *a, **n: made.append(a))
    monkeypatch.setattr(kernels, "compile", lambda *a, **n: made.append(a), raising=False)
    call(torch.zeros(2))
    q, k, v = small(length=48)
    call(torch.zeros(2))
    assert not made


@pytest.mark.parametrize("bound", [
    torch.relu, lambda s: s.clamp(min=0), lambda s: s.clamp(0, 0.5), lambda s: s.clamp_max(0.0),
    torch.nn.functional.relu6, lambda s: torch.maximum(s, 0 * s)])
def test_slopes_of_scores_that_are_bounds(bound):
    """Scores of keys of zeros are 0; their slope is PyTorch's."""
    q, k, v = tensors(*[(1, 2, 19, 16)] * 3)
    with torch.no_grad():
        k[:, :, :5] = 0
    exact = [doubled(x) for x in (q, k, v)]
    got = flex_attention(q, k, v, score_mod=lambda score, b, h, i, j: bound(score))
    wanted = bound(exact[0] @ exact[1].mT / 4).softmax(-1) @ exact[2]
    upstream = torch.randn_like(got)
    for mine, its in ((got, wanted), *zip(torch.autograd.grad(got, (q, k, v), upstream),
                                          torch.autograd.grad(wanted, exact, upstream.double()))):
        near(mine, its, torch.float32)


def test_causal_score_is_a_mask():
    from attn.torch import trace

    score, mask = trace.regions(lambda s, b, h, q, k: torch.where(q >= k, s, -math.inf), None)
    assert score is None and mask.lines == "%v0 = arith.cmpi sge, %i, %j : i32\nattn.yield %v0 : i1"


def test_autocast():
    q, k, v = small()
    with torch.autocast("cpu", torch.bfloat16):
        o = flex_attention(q, k, v, alibi)
    assert o.dtype == torch.bfloat16
    near(o, eager(*(x.bfloat16().double() for x in (q, k, v)), alibi)[0], torch.bfloat16)


def test_narrower_keys():
    q, k, v = small()
    k, v = k.half(), v.bfloat16()
    near(flex_attention(q, k, v), eager(q.double(), k.double(), v.double())[0], torch.float32)


def refused(error, said, *args, **named):
    with pytest.raises(error, match=said):
        flex_attention(*args, **named)


def test_errors_are_pytorchs():
    q, k, v = small()
    mask = create_block_mask(causal, 1, 1, 32, 32)
    both = [
        (ValueError, "same embedding dimension", (q, k[..., :4], v), {}),
        (ValueError, "enable_gqa=True", (q, k[:, :1], v[:, :1]), {}),
        (ValueError, "multiple of kv heads", (q[:, :1], k, v), dict(enable_gqa=True)),
        (ValueError, "same batch size", (q, k[:1], v[:1]), {}),
        (NotImplementedError, "4D", (q[0], k[0], v[0]), {}),
        (RuntimeError, "smaller length", (q, k, v, None, create_block_mask(causal, 1, 1, 16, 32)), {}),
        (RuntimeError, "larger length", (q[:, :, :16], k, v, None, mask), {}),
        (RuntimeError, "sliced BlockMask", (q, k, v, None, mask[:, :, 0]), {}),
        (ValueError, "BACKEND", (q, k, v), dict(kernel_options={"BACKEND": "FASTEST"})),
    ]
    if hasattr(flex, "AuxRequest"):
        both.append((ValueError, "both return_lse and return_aux", (q, k, v),
                     dict(return_lse=True, return_aux=flex.AuxRequest(lse=True))))
    for error, said, args, named in both:
        refused(error, said, *args, **named)
        with pytest.raises((error, ValueError)):  # what PyTorch 2.11 raises about lengths
            flex.flex_attention(*args, **named)


def test_own_errors():
    q, k, v = small()
    refused(TypeError, "float64", q.double(), k.double(), v.double())
    refused(ValueError, "same dtype", q.half(), k, v)
    refused(TypeError, "block_mask: wanted a BlockMask", q, k, v, None, causal)
    refused(ValueError, "'BLOCK_K'", q, k, v, kernel_options={"BLOCK_K": 64})
    flex_attention(q, k, v, kernel_options={"BLOCK_M": 64, "num_warps": 4, "bwd_BLOCK_M1": 32})
    if hasattr(flex, "AuxRequest"):
        refused(NotImplementedError, "max_scores", q, k, v, return_aux=flex.AuxRequest(max_scores=True))
    table = torch.zeros(4, dtype=torch.float64)
    refused(attn.torch.trace.TraceError, r"test_torch_flex\.py:\d+: score_mod: .*float64", q, k, v,
            lambda s, b, h, i, j: s + table[h])
