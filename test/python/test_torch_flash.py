#===----------------------------------------------------------------------===#
#
# Part of attn, an attention compiler.
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===----------------------------------------------------------------------===#
"""The functions of flash-attn on tensors of the CPU, against float64: out, lse and
gradients."""

import inspect
import math

import pytest

torch = pytest.importorskip("torch", reason="flash-attn's functions need PyTorch")

from attn.torch import flash  # noqa: E402
from torch_reference import Kind, attend, attend_packed, check_close, check_gradients  # noqa: E402

F16, BF16, F32 = torch.float16, torch.bfloat16, torch.float32
PLAIN, CAUSAL = Kind(), Kind(causal=True)
LOCAL = Kind(window=(9, 4))


def tensor(*shape, dtype=F32):
    return torch.randn(shape, dtype=torch.float64).to(dtype).requires_grad_()


def offsets(*lengths):
    starts = [0]
    for length in lengths:
        starts.append(starts[-1] + length)
    return starts, torch.tensor(starts, dtype=torch.int32)


@pytest.fixture(autouse=True)
def seed():
    torch.manual_seed(7)


#===----------------------------------------------------------------------===#
# flash_attn_func and its packed forms
#===----------------------------------------------------------------------===#

# Element, head_dim, heads, kv_heads, what, rank of the slopes, lengths: programs do not
# depend on heads and lengths.
DENSE = [
    (F32, 32, 2, 2, PLAIN, 0, [(1, 147), (113, 203), (64, 128)]),
    (BF16, 64, 6, 2, CAUSAL, 0, [(1, 147), (108, 256), (203, 113), (128, 128)]),
    (F16, 40, 4, 1, LOCAL, 0, [(113, 203), (64, 128), (147, 1)]),
    (F16, 59, 2, 1, CAUSAL, 0, [(64, 65), (113, 20)]),
    (F32, 80, 2, 2, CAUSAL, 1, [(65, 64)]),
    (F32, 32, 4, 2, Kind(window=(-1, 5)), 2, [(33, 70)]),
    (BF16, 96, 3, 1, Kind(softcap=3.0, scale=0.5), 0, [(50, 65)]),
    (F16, 128, 2, 2, Kind(causal=True, window=(12, 9)), 0, [(64, 96), (40, 17)]),
]


@pytest.mark.parametrize("dtype, dim, heads, kv_heads, kind, rank, lengths", DENSE)
def test_dense(dtype, dim, heads, kv_heads, kind, rank, lengths):
    slopes = None if not rank else torch.rand((2, heads)[2 - rank:])
    for queries, keys in lengths:
        q = tensor(2, queries, heads, dim, dtype=dtype)
        k, v = (tensor(2, keys, kv_heads, dim, dtype=dtype) for _ in "kv")
        out, lse, weights = flash.flash_attn_func(
            q, k, v, alibi_slopes=slopes, return_attn_probs=True, **kind.arguments())
        wanted, wanted_lse = attend(q, k, v, kind, slopes)
        assert weights is None and out.dtype == dtype and lse.dtype == F32
        check_close(out, wanted, dtype)
        check_close(lse, wanted_lse, F32, "lse")
        if rank < 2:  # else below
            d_out = torch.randn(out.shape).to(dtype)
            check_gradients(out, wanted, (q, k, v), d_out, dtype, "qkv")


def test_memory_is_the_models():
    q, k, v = (tensor(2, 9, 4, 32) for _ in "qkv")
    assert flash.flash_attn_func(q, k, v).is_contiguous()
    qkv = tensor(2, 9, 3, 4, 32)
    assert flash.flash_attn_qkvpacked_func(qkv).is_contiguous()


def test_packed_tensors():
    qkv = tensor(2, 40, 3, 2, 64, dtype=BF16)
    out = flash.flash_attn_qkvpacked_func(qkv, causal=True)
    wanted, _ = attend(*qkv.unbind(2), CAUSAL)
    check_close(out, wanted, BF16)
    check_gradients(out, wanted, (qkv,), torch.randn(out.shape).to(BF16), BF16)

    q, kv = tensor(2, 40, 4, 64, dtype=BF16), tensor(2, 51, 2, 2, 64, dtype=BF16)
    out, lse, _ = flash.flash_attn_kvpacked_func(q, kv, causal=True, return_attn_probs=True)
    wanted, wanted_lse = attend(q, *kv.unbind(2), CAUSAL)
    check_close(out, wanted, BF16)
    check_close(lse, wanted_lse, F32, "lse")
    check_gradients(out, wanted, (q, kv), torch.randn(out.shape).to(BF16), BF16)


def test_slopes_and_lse_have_gradients():
    q, k, v = tensor(2, 33, 4, 32), tensor(2, 70, 2, 32), tensor(2, 70, 2, 32)
    slopes, kind = torch.rand(2, 4, requires_grad=True), Kind(window=(-1, 5))
    out, lse, _ = flash.flash_attn_func(q, k, v, alibi_slopes=slopes, return_attn_probs=True,
                                        **kind.arguments())
    wanted, wanted_lse = attend(q, k, v, kind, slopes)
    check_gradients(out.sum() + lse.sum(), wanted.sum() + wanted_lse.sum(), (q, k, v, slopes),
                    torch.tensor(1.0), F32)


def test_values_of_another_head_dim():
    q, k, v = tensor(1, 20, 2, 32), tensor(1, 30, 2, 32), tensor(1, 30, 2, 20)
    check_close(flash.flash_attn_func(q, k, v), attend(q, k, v, PLAIN)[0], F32)


def test_dropout():
    """The values are unit vectors: out is the weights that are left."""
    q, k = tensor(2, 40, 4, 32), tensor(2, 64, 2, 32)
    identity = torch.eye(64)[None, :, None].expand(2, 64, 2, 64)
    v = tensor(2, 64, 2, 64)

    def call(values):
        torch.manual_seed(3)
        return flash.flash_attn_func(q, k, values, dropout_p=0.3, causal=True)

    left = call(identity).transpose(1, 2)
    assert torch.equal(call(identity).transpose(1, 2), left)
    torch.manual_seed(4)
    other = flash.flash_attn_func(q, k, identity, dropout_p=0.3, causal=True).transpose(1, 2)
    assert not torch.equal(other, left)
    weights = attend(q, k, identity, CAUSAL)[0].transpose(1, 2)
    seen = weights > 1e-6
    assert 0.25 < ((left == 0) & seen).sum() / seen.sum() < 0.35
    keep = (left != 0).double() / 0.7
    check_close(left, weights * keep, F32)
    out, (wanted, _) = call(v), attend(q, k, v, CAUSAL, keep=keep)
    check_close(out, wanted, F32)
    check_gradients(out, wanted, (q, k, v), torch.randn(out.shape), F32)


def test_gradients_are_deterministic():
    qkv = tensor(2, 40, 3, 2, 64, dtype=BF16)
    for deterministic in (False, True):
        outs = [flash.flash_attn_qkvpacked_func(qkv, causal=True, deterministic=deterministic)
                for _ in range(2)]
        gradients = [torch.autograd.grad(out.float().square().sum(), qkv)[0] for out in outs]
        assert torch.equal(*gradients)


#===----------------------------------------------------------------------===#
# Packed sequences
#===----------------------------------------------------------------------===#

# As DENSE; lengths of sequences, of queries and of keys where these are others.
VARLEN = [
    (F32, 32, 4, 2, PLAIN, 0, (33, 0, 50, 1), (40, 9, 0, 21)),
    (BF16, 64, 2, 2, CAUSAL, 0, (40, 0, 65, 3), (70, 4, 33, 0)),
    (BF16, 64, 4, 1, CAUSAL, 0, (0, 60, 1, 47, 0), None),
    (F16, 59, 2, 1, LOCAL, 2, (33, 40), (70, 21)),
    (F32, 40, 2, 2, Kind(window=(7, -1), softcap=2.0), 1, (50, 0, 30), None),
]


@pytest.mark.parametrize("dtype, dim, heads, kv_heads, kind, rank, queries, keys", VARLEN)
def test_varlen(dtype, dim, heads, kv_heads, kind, rank, queries, keys):
    starts_q, cu_q = offsets(*queries)
    starts_k, cu_k = (starts_q, cu_q) if keys is None else offsets(*keys)
    slopes = None if not rank else torch.rand((len(queries), heads)[2 - rank:])
    q = tensor(starts_q[-1], heads, dim, dtype=dtype)
    k, v = (tensor(starts_k[-1], kv_heads, dim, dtype=dtype) for _ in "kv")
    out, lse, _ = flash.flash_attn_varlen_func(
        q, k, v, cu_q, cu_k, max(queries), max(keys or queries), alibi_slopes=slopes,
        return_attn_probs=True, **kind.arguments())
    wanted, wanted_lse = attend_packed(q, k, v, starts_q, starts_k, kind, slopes)
    assert out.is_contiguous() == (dim % 8 == 0) and out.dtype == dtype
    check_close(out, wanted, dtype)
    check_close(lse, wanted_lse, F32, "lse")
    d_out = torch.randn(out.shape).to(dtype)
    check_gradients(out, wanted, (q, k, v), d_out, dtype, "qkv")


def test_varlen_of_packed_tensors():
    starts, cu = offsets(20, 0, 33)
    qkv = tensor(53, 3, 2, 64, dtype=BF16)
    out = flash.flash_attn_varlen_qkvpacked_func(qkv, cu, 33, causal=True)
    wanted, _ = attend_packed(*qkv.unbind(1), starts, starts, CAUSAL)
    check_close(out, wanted, BF16)
    check_gradients(out, wanted, (qkv,), torch.randn(out.shape).to(BF16), BF16)

    starts_k, cu_k = offsets(30, 5, 20)
    q, kv = tensor(53, 4, 64, dtype=BF16), tensor(55, 2, 2, 64, dtype=BF16)
    out, lse, _ = flash.flash_attn_varlen_kvpacked_func(q, kv, cu, cu_k, 33, 30, causal=True,
                                                        return_attn_probs=True)
    wanted, wanted_lse = attend_packed(q, *kv.unbind(1), starts, starts_k, CAUSAL)
    check_close(out, wanted, BF16)
    check_close(lse, wanted_lse, F32, "lse")
    check_gradients(out, wanted, (q, kv), torch.randn(out.shape).to(BF16), BF16)


def test_one_graph():
    """Nothing of it breaks a graph of torch.compile."""
    starts, cu = offsets(20, 0, 33)
    qkv = tensor(53, 3, 2, 64, dtype=BF16)

    @torch.compile(fullgraph=True, backend="aot_eager")
    def compiled(qkv, cu):
        return flash.flash_attn_varlen_qkvpacked_func(qkv, cu, 33, causal=True)

    out = compiled(qkv, cu)
    wanted, _ = attend_packed(*qkv.unbind(1), starts, starts, CAUSAL)
    check_close(out, wanted, BF16)
    check_gradients(out, wanted, (qkv,), torch.randn(out.shape).to(BF16), BF16)


def test_varlen_with_pages():
    """Sequences of 13, 0 and 9 keys on pages of 4, in any order."""
    starts_q, cu_q = offsets(5, 2, 9)
    starts_k, cu_k = offsets(13, 0, 9)
    pages = torch.randn(9, 4, 2, 32), torch.randn(9, 4, 2, 32)
    table = torch.tensor([[5, 0, 8, 2], [-1, 99, 0, 0], [1, 7, 3, -1]], dtype=torch.int32)
    used = torch.cat([table[0], table[2, :3]])
    kept = torch.tensor([*range(13), *range(16, 25)])
    k, v = (cache[used.long()].flatten(0, 1)[kept] for cache in pages)
    q = torch.randn(16, 4, 32)
    out, lse, _ = flash.flash_attn_varlen_func(q, *pages, cu_q, cu_k, 9, 13, causal=True,
                                               return_attn_probs=True, block_table=table)
    wanted, wanted_lse = attend_packed(q, k, v, starts_q, starts_k, CAUSAL)
    check_close(out, wanted, F32)
    check_close(lse, wanted_lse, F32, "lse")


#===----------------------------------------------------------------------===#
# Caches
#===----------------------------------------------------------------------===#


def rotated(x, cos, sin, positions, is_interleaved):
    """(s, h, d) at positions (s,), in float64 as complex numbers."""
    half = cos.shape[1]
    parts = x[..., :2 * half].double()
    parts = parts.unflatten(-1, (half, 2)) if is_interleaved else parts.unflatten(-1, (2, half)).mT
    turn = torch.complex(cos[positions].double(), sin[positions].double())[:, None]
    turned = torch.view_as_real(torch.view_as_complex(parts.contiguous()) * turn)
    turned = turned.flatten(-2) if is_interleaved else turned.mT.flatten(-2)
    return torch.cat([turned.to(x.dtype), x[..., 2 * half:]], -1)


CACHES = [  # kind, new keys, rotary: None or is_interleaved, batch index, padding, pages
    (PLAIN, 0, None, False, False, False),
    (CAUSAL, 3, None, False, False, False),
    (CAUSAL, 5, True, True, False, False),
    (LOCAL, 3, False, False, True, False),
    (PLAIN, 3, True, False, False, True),
    (CAUSAL, 1, False, False, False, True),
]


@pytest.mark.parametrize("kind, new, rotary, has_index, has_padding, is_paged", CACHES)
def test_kvcache(kind, new, rotary, has_index, has_padding, is_paged):
    lengths, padding, batch = [20, 7, 30], [3, 0, 11] if has_padding else [0] * 3, 3
    cache = [torch.randn(5 if has_index else batch, 48, 2, 32) for _ in "kv"]
    entries = [4, 0, 2] if has_index else [0, 1, 2]
    q = torch.randn(batch, 3, 4, 32)
    k, v = (torch.randn(batch, new, 2, 32) for _ in "kv")
    angles = torch.rand(48, 8) * 6
    cos, sin = angles.cos(), angles.sin()
    table = None
    given = [x.clone() for x in cache]
    if is_paged:  # entry b has the pages b, b + 3, b + 6, ...
        given = [x.unflatten(1, (6, 8)).transpose(0, 1).flatten(0, 1).contiguous() for x in cache]
        table = (torch.arange(3)[:, None] + 3 * torch.arange(6)).int()
    more = {}
    if new:
        more.update(k=k, v=v)
    if rotary is not None:
        more.update(rotary_cos=cos, rotary_sin=sin, rotary_interleaved=rotary)
    if has_index:
        more["cache_batch_idx"] = torch.tensor(entries, dtype=torch.int32)
    if has_padding:
        more["cache_leftpad"] = torch.tensor(padding, dtype=torch.int32)
    out, lse = flash.flash_attn_with_kvcache(
        q, *given, cache_seqlens=torch.tensor(lengths, dtype=torch.int32), block_table=table,
        return_softmax_lse=True, **more, **kind.arguments())
    if is_paged:
        given = [x.unflatten(0, (6, 3)).transpose(0, 1).flatten(1, 2) for x in given]
    for b in range(batch):
        own_q, own_k = q[b], k[b]
        if rotary is not None:
            places = lengths[b] + torch.arange(max(new, 3))
            own_k = rotated(own_k, cos, sin, places[:new], rotary)
            steps = places[:3] if kind.causal or kind.window != (-1, -1) else places[:1].expand(3)
            own_q = rotated(own_q, cos, sin, steps, rotary)
        end = lengths[b] + new
        for memory, fresh in zip(cache, (own_k, v[b])):
            memory[entries[b], lengths[b]:end] = fresh
        keys, values = (memory[entries[b], padding[b]:end][None] for memory in cache)
        wanted, wanted_lse = attend(own_q[None], keys, values, kind)
        check_close(out[b:b + 1], wanted, F32)
        check_close(lse[b:b + 1], wanted_lse, F32, "lse")
    for got, wanted in zip(given, cache):
        check_close(got, wanted, F32, "cache")


def test_kvcache_without_lengths():
    q, k, v = torch.randn(2, 1, 4, 32), torch.randn(2, 9, 2, 32), torch.randn(2, 9, 2, 32)
    check_close(flash.flash_attn_with_kvcache(q, k, v), attend(q, k, v, PLAIN)[0], F32)
    check_close(flash.flash_attn_with_kvcache(q, k, v, cache_seqlens=4),
                attend(q, k[:, :4], v[:, :4], PLAIN)[0], F32)


#===----------------------------------------------------------------------===#
# Signatures and errors
#===----------------------------------------------------------------------===#

_REST = ("dropout_p=0.0, softmax_scale=None, causal=False, window_size=(-1, -1), softcap=0.0, "
         "alibi_slopes=None, deterministic=False, return_attn_probs=False")
SIGNATURES = {
    "flash_attn_func": f"(q, k, v, {_REST})",
    "flash_attn_qkvpacked_func": f"(qkv, {_REST})",
    "flash_attn_kvpacked_func": f"(q, kv, {_REST})",
    "flash_attn_varlen_func": "(q, k, v, cu_seqlens_q, cu_seqlens_k, max_seqlen_q, max_seqlen_k, "
                              f"{_REST}, block_table=None)",
    "flash_attn_varlen_qkvpacked_func": f"(qkv, cu_seqlens, max_seqlen, {_REST})",
    "flash_attn_varlen_kvpacked_func": "(q, kv, cu_seqlens_q, cu_seqlens_k, max_seqlen_q, "
                                       f"max_seqlen_k, {_REST})",
    "flash_attn_with_kvcache":
        "(q, k_cache, v_cache, k=None, v=None, rotary_cos=None, rotary_sin=None, "
        "cache_seqlens=None, cache_batch_idx=None, cache_leftpad=None, block_table=None, "
        "softmax_scale=None, causal=False, window_size=(-1, -1), softcap=0.0, "
        "rotary_interleaved=True, alibi_slopes=None, num_splits=0, return_softmax_lse=False)",
}


@pytest.mark.parametrize("name", SIGNATURES)
def test_signatures_are_the_models(name):
    assert str(inspect.signature(getattr(flash, name))) == SIGNATURES[name]


def short(*shape, **options):
    return torch.zeros(shape, **options)


Q, K = short(2, 5, 4, 32), short(2, 7, 2, 32)
INDICES = torch.zeros(2, dtype=torch.int32)


@pytest.mark.parametrize("call, said", [
    (lambda: flash.flash_attn_func(Q, K, K, dropout_p=1.0), "dropout_p: wanted at least 0 and below 1"),
    (lambda: flash.flash_attn_func(Q[0], K, K), "q: wanted (batch, queries, heads, head_dim)"),
    (lambda: flash.flash_attn_func(Q.double(), K, K), "q: wanted float16, bfloat16 or float32"),
    (lambda: flash.flash_attn_func(Q, K.half(), K), "k, v: wanted the elements of q"),
    (lambda: flash.flash_attn_func(Q, K.to("meta"), K), "k, v: wanted the device of q"),
    (lambda: flash.flash_attn_func(Q[:, :, :3], K, K), "2 heads do not divide the 3 heads of q"),
    (lambda: flash.flash_attn_func(Q, K[..., :16], K), "k: wanted the head dimension of q, 32"),
    (lambda: flash.flash_attn_func(Q, K, K[:, :6]), "v: wanted the shape (2, 7, 2, 32)"),
    (lambda: flash.flash_attn_func(Q, K[:1], K[:1]), "k: wanted the batch of q, 2, got 1"),
    (lambda: flash.flash_attn_func(short(1, 3, 2, 264), *[short(1, 3, 2, 264)] * 2), "1 to 256, got 264"),
    (lambda: flash.flash_attn_func(Q, K, K, alibi_slopes=short(3)), "alibi_slopes: wanted the shape (4,) or (2, 4)"),
    (lambda: flash.flash_attn_func(Q, K, K, alibi_slopes=short(4).half()), "alibi_slopes: wanted float32"),
    (lambda: flash.flash_attn_qkvpacked_func(short(2, 5, 2, 4, 32)), "qkv: wanted the shape (2, 5, 3, 4, 32)"),
    (lambda: flash.flash_attn_kvpacked_func(Q, short(2, 5, 3, 4, 32)), "kv: wanted the shape (2, 5, 2, 4, 32)"),
    (lambda: flash.flash_attn_varlen_func(Q[0], K[0], K[0], INDICES.long(), INDICES, 5, 7),
     "cu_seqlens_q: wanted int32"),
    (lambda: flash.flash_attn_varlen_func(Q[0], K[0], K[0], INDICES, INDICES[:1], 5, 7),
     "cu_seqlens_k: wanted the shape (2,)"),
    (lambda: flash.flash_attn_varlen_func(Q[0], K, K, INDICES, INDICES, 5, 7), "k: wanted (total_k, heads, head_dim)"),
    (lambda: flash.flash_attn_with_kvcache(Q, K, K, k=K, cache_seqlens=0), "k comes with v"),
    (lambda: flash.flash_attn_with_kvcache(Q, K, K, v=K, cache_seqlens=0), "v comes with k"),
    (lambda: flash.flash_attn_with_kvcache(Q, K, K, k=K, v=K), "cache_seqlens has to say"),
    (lambda: flash.flash_attn_with_kvcache(Q, K[:1], K[:1]), "k_cache: wanted the batch of q"),
    (lambda: flash.flash_attn_with_kvcache(Q, K, K, rotary_cos=short(9, 8)), "rotary_cos comes with k"),
    (lambda: flash.flash_attn_with_kvcache(Q, K, K, K, K, short(7, 4), short(7, 4), 0), "a multiple of 16"),
    (lambda: flash.flash_attn_with_kvcache(Q, K, K, K, K, short(6, 8), short(6, 8), 0), "the size of the cache, 7"),
    (lambda: flash.flash_attn_with_kvcache(Q, K, K, cache_batch_idx=INDICES, block_table=INDICES[:, None]),
     "has its block_table"),
])
def test_errors(call, said):
    with pytest.raises(RuntimeError) as error:
        call()
    assert said in str(error.value)


def test_weights_under_dropout_are_refused():
    with pytest.raises(NotImplementedError, match="never in memory"):
        flash.flash_attn_func(Q, K, K, dropout_p=0.1, return_attn_probs=True)


def test_a_row_without_keys_has_lse_of_plus_infinity():
    out, lse, _ = flash.flash_attn_func(Q, K[:, :0], K[:, :0], return_attn_probs=True)
    assert (out == 0).all() and (lse == math.inf).all()
