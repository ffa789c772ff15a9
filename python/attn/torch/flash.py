#===----------------------------------------------------------------------===#
#
# Part of attn, an attention compiler.
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===----------------------------------------------------------------------===#
"""The functions of the flash-attn package (version 2.8), with its signatures.

    from attn.torch.flash import flash_attn_func, flash_attn_varlen_func

Tensors are (batch, length, heads, head_dim), packed ones (total, heads, head_dim);
causal masks and windows join the last query with the last key of a sequence; a row
that sees no key is 0 and its lse +inf. Of all functions:

    dropout_p      the share of weights to drop, at least 0 and below 1. The seed is
                   drawn from PyTorch's generator of the CPU.
    softmax_scale  None: 1 / sqrt(head_dim).
    window_size    (left, right): keys beside the query's own that it sees; below 0:
                   all. causal=True makes right 0.
    softcap        above 0: scores become softcap * tanh(scores / softcap).
    alibi_slopes   (heads,) or (batch, heads) of float32: a slope times the distance
                   of query and key is taken from each score.
    deterministic  True: equal calls have gradients of equal bits. False: these may be
                   sums in any order, where that is faster, unless
                   torch.use_deterministic_algorithms asks for such gradients.
    return_attn_probs  True: (out, lse, None). Weights are never in memory, so there
                   is no third result, and with dropout, where it would show what was
                   dropped, asking for it is an error.

More than the model takes: float32, values of another head dimension than keys,
softcap together with dropout, pages of any size, and tensors on the CPU; alibi_slopes
and lse have gradients.
"""

import collections
import functools

import torch

from .. import program
from . import forms, warm
from .functional import _ELEMENTS, _padded, call

_UNBOUNDED = 2**30  # windows count no further

# What all functions take, after their tensors.
_Options = collections.namedtuple("_Options", "dropout_p scale causal window softcap slopes numerics")

# What a program depends on. `frame` says where sequences are, see _FRAMES; `slopes` is
# the rank of alibi_slopes, or 0; `numerics` are those of forms.py.
_Form = collections.namedtuple(
    "_Form", "element head_dim value_dim frame scale dropout_p left right softcap slopes numerics")


#===----------------------------------------------------------------------===#
# Programs
#===----------------------------------------------------------------------===#

# Where the queries and keys of a sequence are: `captures`, by name, those that are
# sorted among them, the batch entry of a position, the key beside its query, and which
# keys are of its sequence. `alignment` is that of variants that mean the same, if any.
_Frame = collections.namedtuple("_Frame", "captures entry diagonal visible alignment")


def _sequence(p):
    """The number of the query's sequence, from 1 on."""
    return p.queries_at.upto(p.i)


def _varlen_diagonal(p):
    number = _sequence(p)
    return p.i + (p.keys_at[number] - p.queries_at[number])


def _pages_diagonal(p):
    number = _sequence(p)
    return p.i + (p.bounds[number * 2 - 1] - p.queries_at[number])


_FRAMES = {
    # Every batch entry is a sequence.
    "dense": _Frame((), lambda p: p.b, lambda p: p.i + p.offset, None, "bottom_right"),
    # Sequences one after the other, keys beside their queries.
    "packed": _Frame(("queries_at",), lambda p: _sequence(p) - 1, lambda p: p.i,
                     lambda p: p.queries_at.upto(p.j) == _sequence(p), "top_left"),
    # Queries and keys of sequences after each other, not equally long.
    "varlen": _Frame(("queries_at", "keys_at"), lambda p: _sequence(p) - 1, _varlen_diagonal,
                     lambda p: p.keys_at.upto(p.j) == _sequence(p), None),
    # The same, with gaps between the keys: bounds are where those of each sequence
    # begin and end.
    "pages": _Frame(("queries_at", "bounds"), lambda p: _sequence(p) - 1, _pages_diagonal,
                    lambda p: p.bounds.upto(p.j) == _sequence(p) * 2 - 1, None),
    # The first keys of each batch entry, or those from `starts` on.
    "cache": _Frame(("lengths",), lambda p: p.b, lambda p: p.i + (p.lengths[p.b] - p.queries),
                    lambda p: p.j < p.lengths[p.b], None),
    "padded": _Frame(("lengths", "starts"), lambda p: p.b,
                     lambda p: p.i + (p.lengths[p.b] - p.queries),
                     lambda p: (p.j >= p.starts[p.b]) & (p.j < p.lengths[p.b]), None),
}
_SORTED = ("queries_at", "keys_at", "bounds")


def _mask(form, frame):
    """The variants and the mask of a form."""
    variants, parts = [], [frame.visible] if frame.visible else []
    if frame.alignment and (form.left, form.right) == (-1, 0):
        variants = [f"causal<{frame.alignment}>"]
    elif frame.alignment and (form.left, form.right) != (-1, -1):
        variants = [f"window<left = {form.left}, right = {form.right}, "
                    f"alignment = {frame.alignment}>"]
    elif not frame.alignment and form.right >= 0:
        parts.append(lambda p: p.j <= frame.diagonal(p) + form.right)
    if not frame.alignment and form.left >= 0:
        parts.append(lambda p: p.j >= frame.diagonal(p) - form.left)
    if not parts:
        return variants, None
    return variants, lambda p: functools.reduce(lambda a, b: a & b, [part(p) for part in parts])


def _alibi(form, frame):
    def score(p):
        slope = p.slopes[p.h] if form.slopes == 1 else p.slopes[frame.entry(p), p.h]
        return p.x - slope * abs(frame.diagonal(p) - p.j)
    return score


@functools.lru_cache(maxsize=None)
def _program(form):
    """The program of a form, whose arguments after v are: seed and offset where there is
    dropout, the captures of the frame, the slopes."""
    frame = _FRAMES[form.frame]
    captures = [(name, "tensor<?xi32>") for name in frame.captures]
    if form.slopes:
        captures.append(("slopes", f"tensor<{'?x' * form.slopes}f32>"))
    variants, mask = _mask(form, frame)
    if form.softcap:
        variants.append(f"softcap<{form.softcap:.17e} : f32>")
    return str(program.attention(
        form.element, form.head_dim, form.value_dim, scale=form.scale, variants=variants,
        captures=captures, score=_alibi(form, frame) if form.slopes else None, mask=mask,
        sorted_captures=[name for name in frame.captures if name in _SORTED],
        dropout_p=form.dropout_p or None, numerics=form.numerics))


@torch.compiler.assume_constant_result
def _text(*form):
    return _program(_Form(*form))


#===----------------------------------------------------------------------===#
# Checks
#===----------------------------------------------------------------------===#

def _check_shape(name, tensor, wanted):
    if tuple(tensor.shape) != tuple(wanted):
        raise RuntimeError(f"{name}: wanted the shape {tuple(wanted)}, got {tuple(tensor.shape)}")


def _check_rank(name, tensor, words):
    if not isinstance(tensor, torch.Tensor):
        raise TypeError(f"{name}: wanted a tensor, got {type(tensor).__name__}")
    if tensor.dim() != len(words):
        raise RuntimeError(f"{name}: wanted ({', '.join(words)}), got the shape {tuple(tensor.shape)}")


def _check_inputs(q, k, v):
    """Elements, devices and heads; the last two dimensions are heads and head_dim."""
    if q.dtype not in _ELEMENTS:
        raise RuntimeError(f"q: wanted float16, bfloat16 or float32, got {q.dtype}")
    if not q.dtype == k.dtype == v.dtype:
        raise RuntimeError(f"k, v: wanted the elements of q, {q.dtype}, got {k.dtype} and {v.dtype}")
    if not q.device == k.device == v.device:
        raise RuntimeError(f"k, v: wanted the device of q, {q.device}, got {k.device} and {v.device}")
    q_shape, k_shape, v_shape = tuple(q.shape), tuple(k.shape), tuple(v.shape)
    (heads, dim), (kv_heads, key_dim), value_dim = q_shape[-2:], k_shape[-2:], v_shape[-1]
    if kv_heads < 1 or heads % kv_heads:
        raise RuntimeError(f"k: {kv_heads} heads do not divide the {heads} heads of q")
    if key_dim != dim:
        raise RuntimeError(f"k: wanted the head dimension of q, {dim}, got {key_dim}")
    for name, size in (("q", dim), ("v", value_dim)):
        if not 1 <= size <= 256:
            raise RuntimeError(f"{name}: wanted a head dimension of 1 to 256, got {size}")
    if v_shape[:-1] != k_shape[:-1]:
        raise RuntimeError(f"v: wanted the shape {(*k_shape[:-1], value_dim)}, got {v_shape}")


def _check_integers(name, tensor, shape, device):
    if not isinstance(tensor, torch.Tensor):
        raise TypeError(f"{name}: wanted a tensor, got {type(tensor).__name__}")
    if tensor.dtype != torch.int32:
        raise RuntimeError(f"{name}: wanted int32, got {tensor.dtype}")
    if tensor.device != device:
        raise RuntimeError(f"{name}: wanted the device of q, {device}, got {tensor.device}")
    _check_shape(name, tensor, shape)


def _check_offsets(name, tensor, device):
    _check_rank(name, tensor, ("batch + 1",))
    if len(tensor) < 1:
        raise RuntimeError(f"{name}: wanted batch + 1 offsets, got none")
    _check_integers(name, tensor, tensor.shape, device)


def _check_slopes(slopes, batch, heads, device):
    if slopes.dtype != torch.float32:
        raise RuntimeError(f"alibi_slopes: wanted float32, got {slopes.dtype}")
    if slopes.device != device:
        raise RuntimeError(f"alibi_slopes: wanted the device of q, {device}, got {slopes.device}")
    if tuple(slopes.shape) not in ((heads,), (batch, heads)):
        raise RuntimeError(f"alibi_slopes: wanted the shape {(heads,)} or {(batch, heads)}, got "
                           f"{tuple(slopes.shape)}")


def _options(dropout_p, softmax_scale, causal, window_size, softcap, alibi_slopes,
             deterministic=False, return_attn_probs=False):
    if not 0 <= dropout_p < 1:
        raise RuntimeError(f"dropout_p: wanted at least 0 and below 1, got {dropout_p}")
    if return_attn_probs and dropout_p > 0:
        raise NotImplementedError(
            "return_attn_probs: the weights and what was dropped of them are never in memory; "
            "with dropout_p=0 (out, lse, None) can be had")
    left, right = window_size
    return _Options(dropout_p, softmax_scale, causal, (left, 0 if causal else right), softcap,
                    alibi_slopes, forms.numerics(True if deterministic else None))


#===----------------------------------------------------------------------===#
# Calls
#===----------------------------------------------------------------------===#

def _bound(count):
    return count if 0 <= count < _UNBOUNDED else -1


def _attend(q, k, v, frame, captures, options, batch, key=None):
    """out (b, s, h, d) and lse (b, h, s) of tensors (b, s, h, d) that were checked; with
    a key (warm.py) where these are the caller's."""
    dim, value_dim, slopes = q.shape[-1], v.shape[-1], options.slopes
    if slopes is not None:
        _check_slopes(slopes, batch, q.shape[-2], q.device)
    left, right = options.window
    drops = float(options.dropout_p)
    text = _text(
        _ELEMENTS[q.dtype], dim + -dim % 8, value_dim + -value_dim % 8, frame,
        dim**-0.5 if options.scale is None else float(options.scale), drops,
        _bound(left), _bound(right), max(0.0, float(options.softcap)),
        0 if slopes is None else slopes.dim(), options.numerics)
    operands = list(captures)
    if drops:
        operands[:0] = torch.randint(-2**31, 2**31, (2,), dtype=torch.int32).unbind()
    if slopes is not None:
        operands.append(slopes)
    if dim % 8 or value_dim % 8:
        key = None
    q, k, v = (_padded(tensor).transpose(1, 2) for tensor in (q, k, v))
    out, lse = call(text, q, k, v, operands, key, swaps=True)
    out = out.transpose(1, 2)
    return out if value_dim % 8 == 0 else out[..., :value_dim], lse


def _results(out, lse, wants_more):
    """What the functions return: lse with +inf for rows without keys."""
    if not wants_more:
        return out
    return out, lse.masked_fill(lse == float("-inf"), float("inf")), None


def flash_attn_func(q, k, v, dropout_p=0.0, softmax_scale=None, causal=False,
                    window_size=(-1, -1), softcap=0.0, alibi_slopes=None, deterministic=False,
                    return_attn_probs=False):
    """Attention of q (batch, queries, heads, head_dim) on k and v (batch, keys, kv_heads,
    head_dim), where kv_heads divides heads: (batch, queries, heads, head_dim).

    The other arguments are those of the module's docstring; with return_attn_probs=True
    (out, lse, None), lse (batch, heads, queries) of float32.
    """
    key = None
    if alibi_slopes is None and dropout_p == 0:
        key = warm.key(q, k, v, "flash", softmax_scale, bool(causal), window_size, softcap,
                       bool(deterministic))
        results = key and warm.attend(key, q, k, v)
        if results is not None:
            return _results(*results, return_attn_probs)
    options = _options(dropout_p, softmax_scale, causal, window_size, softcap, alibi_slopes,
                       deterministic, return_attn_probs)
    for name, tensor, length in (("q", q, "queries"), ("k", k, "keys"), ("v", v, "keys")):
        _check_rank(name, tensor, ("batch", length, "heads", "head_dim"))
    _check_inputs(q, k, v)
    if k.shape[0] != q.shape[0]:
        raise RuntimeError(f"k: wanted the batch of q, {q.shape[0]}, got {k.shape[0]}")
    out, lse = _attend(q, k, v, "dense", (), options, len(q), key)
    return _results(out, lse, return_attn_probs)


def flash_attn_qkvpacked_func(qkv, dropout_p=0.0, softmax_scale=None, causal=False,
                              window_size=(-1, -1), softcap=0.0, alibi_slopes=None,
                              deterministic=False, return_attn_probs=False):
    """flash_attn_func of qkv (batch, length, 3, heads, head_dim)."""
    _check_rank("qkv", qkv, ("batch", "length", "3", "heads", "head_dim"))
    _check_shape("qkv", qkv, (*qkv.shape[:2], 3, *qkv.shape[3:]))
    return flash_attn_func(*qkv.unbind(2), dropout_p, softmax_scale, causal, window_size, softcap,
                           alibi_slopes, deterministic, return_attn_probs)


def flash_attn_kvpacked_func(q, kv, dropout_p=0.0, softmax_scale=None, causal=False,
                             window_size=(-1, -1), softcap=0.0, alibi_slopes=None,
                             deterministic=False, return_attn_probs=False):
    """flash_attn_func of q (batch, queries, heads, head_dim) and kv (batch, keys, 2,
    kv_heads, head_dim)."""
    _check_rank("kv", kv, ("batch", "keys", "2", "heads", "head_dim"))
    _check_shape("kv", kv, (*kv.shape[:2], 2, *kv.shape[3:]))
    return flash_attn_func(q, *kv.unbind(2), dropout_p, softmax_scale, causal, window_size, softcap,
                           alibi_slopes, deterministic, return_attn_probs)


def _pages(block_table, cu_seqlens_k, k):
    """Where the keys of each sequence begin and end once its pages are after each other."""
    capacity = block_table.shape[1] * k.shape[1]
    begin = torch.arange(len(block_table), dtype=torch.int32, device=k.device) * capacity
    return torch.stack((begin, begin + cu_seqlens_k.diff()), 1).flatten()


def _gathered(cache, block_table):
    """The pages of each sequence: (batch, keys, heads, head_dim). Pages that a table does
    not use may have any number."""
    return cache[block_table.clamp(0, len(cache) - 1)].flatten(1, 2)


def flash_attn_varlen_func(q, k, v, cu_seqlens_q, cu_seqlens_k, max_seqlen_q, max_seqlen_k,
                           dropout_p=0.0, softmax_scale=None, causal=False, window_size=(-1, -1),
                           softcap=0.0, alibi_slopes=None, deterministic=False,
                           return_attn_probs=False, block_table=None):
    """Attention inside of sequences that are packed one after the other.

    q              (total_q, heads, head_dim)
    k, v           (total_k, kv_heads, head_dim), or with a block_table pages of a cache:
                   (pages, page_size, kv_heads, head_dim), which are copied.
    cu_seqlens_q, cu_seqlens_k  (batch + 1,) of int32: where sequences begin, and the
                   last ends. Where both are one tensor, keys are beside their queries, and
                   programs are simpler. Sequences may be empty.
    max_seqlen_q, max_seqlen_k  not needed: any value.
    block_table    (batch, pages of a sequence) of int32.

    Gives out (total_q, heads, head_dim); with return_attn_probs=True (out, lse, None),
    lse (heads, total_q). What rows after the last sequence hold is not defined. The other
    arguments are those of the module's docstring.
    """
    options = _options(dropout_p, softmax_scale, causal, window_size, softcap, alibi_slopes,
                       deterministic, return_attn_probs)
    _check_rank("q", q, ("total_q", "heads", "head_dim"))
    words = ("total_k",) if block_table is None else ("pages", "page_size")
    _check_rank("k", k, (*words, "heads", "head_dim"))
    _check_rank("v", v, (*words, "heads", "head_dim"))
    _check_inputs(q, k, v)
    _check_offsets("cu_seqlens_q", cu_seqlens_q, q.device)
    _check_integers("cu_seqlens_k", cu_seqlens_k, cu_seqlens_q.shape, q.device)
    batch = len(cu_seqlens_q) - 1
    if block_table is not None:
        _check_rank("block_table", block_table, ("batch", "pages"))
        _check_integers("block_table", block_table, (batch, block_table.shape[1]), q.device)
        frame, captures = "pages", (cu_seqlens_q, _pages(block_table, cu_seqlens_k, k))
        k, v = (_gathered(tensor, block_table).flatten(0, 1) for tensor in (k, v))
    elif cu_seqlens_k is cu_seqlens_q:
        frame, captures = "packed", (cu_seqlens_q,)
    else:
        frame, captures = "varlen", (cu_seqlens_q, cu_seqlens_k)
    out, lse = _attend(q[None], k[None], v[None], frame, captures, options, batch)
    return _results(out[0], lse[0], return_attn_probs)


def flash_attn_varlen_qkvpacked_func(qkv, cu_seqlens, max_seqlen, dropout_p=0.0, softmax_scale=None,
                                     causal=False, window_size=(-1, -1), softcap=0.0,
                                     alibi_slopes=None, deterministic=False,
                                     return_attn_probs=False):
    """flash_attn_varlen_func of qkv (total, 3, heads, head_dim)."""
    _check_rank("qkv", qkv, ("total", "3", "heads", "head_dim"))
    _check_shape("qkv", qkv, (len(qkv), 3, *qkv.shape[2:]))
    return flash_attn_varlen_func(
        *qkv.unbind(1), cu_seqlens, cu_seqlens, max_seqlen, max_seqlen, dropout_p, softmax_scale,
        causal, window_size, softcap, alibi_slopes, deterministic, return_attn_probs)


def flash_attn_varlen_kvpacked_func(q, kv, cu_seqlens_q, cu_seqlens_k, max_seqlen_q, max_seqlen_k,
                                    dropout_p=0.0, softmax_scale=None, causal=False,
                                    window_size=(-1, -1), softcap=0.0, alibi_slopes=None,
                                    deterministic=False, return_attn_probs=False):
    """flash_attn_varlen_func of q (total_q, heads, head_dim) and kv (total_k, 2, kv_heads,
    head_dim)."""
    _check_rank("kv", kv, ("total_k", "2", "heads", "head_dim"))
    _check_shape("kv", kv, (len(kv), 2, *kv.shape[2:]))
    return flash_attn_varlen_func(
        q, *kv.unbind(1), cu_seqlens_q, cu_seqlens_k, max_seqlen_q, max_seqlen_k, dropout_p,
        softmax_scale, causal, window_size, softcap, alibi_slopes, deterministic, return_attn_probs)


#===----------------------------------------------------------------------===#
# Caches
#===----------------------------------------------------------------------===#

def _rotated(tensor, cos, sin, positions, is_interleaved):
    """Rotary embedding of (batch, length, heads, head_dim) at positions (batch, length)."""
    half = cos.shape[1]
    if is_interleaved:
        first, second = slice(0, 2 * half, 2), slice(1, 2 * half, 2)
    else:
        first, second = slice(0, half), slice(half, 2 * half)
    cos, sin = (table[positions].unsqueeze(2).float() for table in (cos, sin))
    a, b = tensor[..., first].float(), tensor[..., second].float()
    result = tensor.clone()
    result[..., first] = (a * cos - b * sin).to(tensor.dtype)
    result[..., second] = (a * sin + b * cos).to(tensor.dtype)
    return result


def _check_rotary(q, cos, sin, capacity):
    _check_rank("rotary_cos", cos, ("length", "rotary_dim / 2"))
    if sin is None:
        raise RuntimeError("rotary_cos comes with rotary_sin")
    _check_shape("rotary_sin", sin, cos.shape)
    for name, table in (("rotary_cos", cos), ("rotary_sin", sin)):
        if table.dtype != q.dtype or table.device != q.device:
            raise RuntimeError(f"{name}: wanted {q.dtype} on {q.device} as q, got {table.dtype} on "
                               f"{table.device}")
    if cos.shape[1] % 8 or 2 * cos.shape[1] > q.shape[-1]:
        raise RuntimeError("rotary_cos: wanted a rotary_dim that is a multiple of 16 and at most "
                           f"{q.shape[-1]}, got {2 * cos.shape[1]}")
    if len(cos) < capacity:
        raise RuntimeError(f"rotary_cos: wanted positions up to the size of the cache, {capacity}, "
                           f"got {len(cos)}")


def _append(cache, new, entries, positions, block_table):
    """Writes new keys or values into the cache at `positions` (batch, length)."""
    if block_table is None:
        cache[entries.unsqueeze(1), positions] = new
        return
    size = cache.shape[1]
    pages = block_table.long().gather(1, positions.div(size, rounding_mode="floor"))
    cache[pages, positions % size] = new


def _check_cache(q, k_cache, v_cache, cache_seqlens, cache_batch_idx, cache_leftpad, block_table):
    _check_rank("q", q, ("batch", "queries", "heads", "head_dim"))
    for name, cache in (("k_cache", k_cache), ("v_cache", v_cache)):
        _check_rank(name, cache, ("batch", "keys", "heads", "head_dim"))
    _check_inputs(q, k_cache, v_cache)
    batch = len(q)
    for name, tensor in (("cache_seqlens", cache_seqlens), ("cache_batch_idx", cache_batch_idx),
                         ("cache_leftpad", cache_leftpad)):
        if tensor is not None:
            _check_integers(name, tensor, (batch,), q.device)
    if block_table is not None:
        if cache_batch_idx is not None:
            raise RuntimeError("cache_batch_idx: a cache of pages has its block_table for that")
        _check_rank("block_table", block_table, ("batch", "pages"))
        _check_integers("block_table", block_table, (batch, block_table.shape[1]), q.device)
    elif cache_batch_idx is None and len(k_cache) != batch:
        raise RuntimeError(f"k_cache: wanted the batch of q, {batch}, got {len(k_cache)}")


def _check_new(q, k, v, k_cache, v_cache, cache_seqlens):
    if v is None:
        raise RuntimeError("k comes with v")
    if cache_seqlens is None:
        raise RuntimeError("k: cache_seqlens has to say where new keys go")
    for name, new, cache in (("k", k, k_cache), ("v", v, v_cache)):
        _check_rank(name, new, ("batch", "new keys", "heads", "head_dim"))
        _check_shape(name, new, (len(q), k.shape[1], *cache.shape[2:]))
        if new.dtype != q.dtype or new.device != q.device:
            raise RuntimeError(f"{name}: wanted {q.dtype} on {q.device} as q, got {new.dtype} on "
                               f"{new.device}")


@torch.no_grad()
def flash_attn_with_kvcache(q, k_cache, v_cache, k=None, v=None, rotary_cos=None, rotary_sin=None,
                            cache_seqlens=None, cache_batch_idx=None, cache_leftpad=None,
                            block_table=None, softmax_scale=None, causal=False,
                            window_size=(-1, -1), softcap=0.0, rotary_interleaved=True,
                            alibi_slopes=None, num_splits=0, return_softmax_lse=False):
    """Attention on a cache of keys and values, after new ones were written into it.

    q              (batch, queries, heads, head_dim)
    k_cache, v_cache  (batch, keys, kv_heads, head_dim), or with a block_table
                   (pages, page_size, kv_heads, head_dim). Changed in place where there
                   are new keys, which have to fit: a position past the end is an
                   IndexError on the CPU and a failed assertion on a GPU.
    k, v           (batch, new keys, kv_heads, head_dim): written from cache_seqlens on.
    rotary_cos, rotary_sin  (length, rotary_dim / 2): q and k are rotated, k by its
                   places in the cache; q by the same where it is causal or has a
                   window, else all of it by the first of these places. Wants k and v.
    cache_seqlens  a number, or (batch,) of int32: keys that are in the cache already;
                   None: all of it.
    cache_batch_idx  (batch,) of int32: which entries of the cache are the queries',
                   which are copied.
    cache_leftpad  (batch,) of int32: where keys begin; None: 0.
    block_table    (batch, pages of a sequence) of int32: pages are copied.
    rotary_interleaved  True: dimensions 0 and 1, 2 and 3, … are rotated together;
                   False: the first half with the second.
    num_splits     any value: the compiler decides.

    The last query is joined with the last key, new ones included; the other arguments are
    those of the module's docstring. Gives out (batch, queries, heads, head_dim); with
    return_softmax_lse=True (out, lse), lse (batch, heads, queries). There are no
    gradients, as in the model.
    """
    options = _options(0.0, softmax_scale, causal, window_size, softcap, alibi_slopes)
    if isinstance(cache_seqlens, int):
        cache_seqlens = torch.full((len(q),), cache_seqlens, dtype=torch.int32, device=q.device)
    _check_cache(q, k_cache, v_cache, cache_seqlens, cache_batch_idx, cache_leftpad, block_table)
    if k is None and (v is not None or rotary_cos is not None):
        raise RuntimeError(f"{'v' if v is not None else 'rotary_cos'} comes with k")
    lengths, entries = cache_seqlens, cache_batch_idx
    if k is not None:
        _check_new(q, k, v, k_cache, v_cache, cache_seqlens)
        places = cache_seqlens.long().unsqueeze(1)
        positions = places + torch.arange(k.shape[1], device=q.device)
        if rotary_cos is not None:
            capacity = k_cache.shape[1] * (1 if block_table is None else block_table.shape[1])
            _check_rotary(q, rotary_cos, rotary_sin, capacity)
            k = _rotated(k, rotary_cos, rotary_sin, positions, rotary_interleaved)
            steps = torch.arange(q.shape[1], device=q.device)
            is_local = options.window != (-1, -1)
            q = _rotated(q, rotary_cos, rotary_sin, places + steps * is_local, rotary_interleaved)
        rows = torch.arange(len(q), device=q.device) if entries is None else entries.long()
        _append(k_cache, k, rows, positions, block_table)
        _append(v_cache, v, rows, positions, block_table)
        lengths = cache_seqlens + k.shape[1]
    if block_table is not None:
        k_cache, v_cache = (_gathered(cache, block_table) for cache in (k_cache, v_cache))
    elif entries is not None:
        k_cache, v_cache = (cache.index_select(0, entries) for cache in (k_cache, v_cache))
    frame, captures = "dense", ()
    if lengths is None and cache_leftpad is not None:
        lengths = torch.full_like(cache_leftpad, k_cache.shape[1])
    if lengths is not None:
        frame, captures = "cache", (lengths,)
    if cache_leftpad is not None:
        frame, captures = "padded", (lengths, cache_leftpad)
    out, lse = _attend(q, k_cache, v_cache, frame, captures, options, len(q))
    return _results(out, lse, True)[:2] if return_softmax_lse else out
