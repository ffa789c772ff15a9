#===----------------------------------------------------------------------===#
#
# Part of attn, an attention compiler.
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===----------------------------------------------------------------------===#
"""torch.nn.functional.scaled_dot_product_attention, by compiled kernels."""

import functools

import torch

from .. import program
from . import forms, warm
from .functional import _ELEMENTS, _padded, call

_MASKS = {torch.bool: "i1", **_ELEMENTS}


@functools.lru_cache(maxsize=None)
def _program(element, head_dim, value_dim, scale, is_causal, dropout_p, mask, dims):
    """A program whose last argument is the mask, if any: of elements `mask`, with those
    dimensions of (batch, heads, queries, keys) that `dims` numbers."""
    def at(p):
        return p.bias[tuple((p.b, p.h, p.i, p.j)[dim] for dim in dims) or 0]

    captures, score, visible = [], None, None
    if mask is not None:
        captures = [("bias", f"tensor<{'?x' * max(1, len(dims))}{mask}>")]
        if mask == "i1":
            visible = at
        else:
            def score(p):
                return p.x + at(p)
    return str(program.attention(
        element, head_dim, value_dim, scale=scale, dropout_p=dropout_p or None, captures=captures,
        variants=["causal<top_left>"] if is_causal else [], score=score, mask=visible,
        numerics=forms.numerics(None)))


@torch.compiler.assume_constant_result
def _text(*choices):
    return _program(*choices)


#===----------------------------------------------------------------------===#
# Checks
#===----------------------------------------------------------------------===#

def _check_tensors(query, key, value):
    for name, tensor in (("query", query), ("key", key), ("value", value)):
        if not isinstance(tensor, torch.Tensor):
            raise TypeError(f"scaled_dot_product_attention(): argument '{name}' must be Tensor, not "
                            f"{type(tensor).__name__}")
        if tensor.is_nested or tensor.layout != torch.strided:
            raise RuntimeError(f"{name}: wanted a dense tensor, got a "
                               f"{'nested' if tensor.is_nested else tensor.layout} one")
    if not query.dtype == key.dtype == value.dtype:
        raise RuntimeError("Expected query, key, and value to have the same dtype, but got "
                           f"{query.dtype}, {key.dtype} and {value.dtype}")
    if not query.device == key.device == value.device:
        raise RuntimeError("Expected query, key, and value to have the same device type, but got "
                           f"{query.device}, {key.device} and {value.device}")
    if query.dtype not in _ELEMENTS:
        raise RuntimeError(f"query: wanted float16, bfloat16 or float32, got {query.dtype}")


def _check_shapes(query, key, value):
    if min(len(query), len(key), len(value)) < 2:
        raise RuntimeError("Expected query, key, and value to all be at least 2 dimensional, but "
                           f"got {len(query)}, {len(key)} and {len(value)}")
    if key[-1] != query[-1]:
        raise RuntimeError(f"key: wanted the last size of query, {query[-1]}, got {key[-1]}")
    if value[-2] != key[-2]:
        raise RuntimeError(f"value: wanted the length of key, {key[-2]}, got {value[-2]}")
    for name, shape in (("query", query), ("value", value)):
        if not 1 <= shape[-1] <= 256:
            raise RuntimeError(f"{name}: wanted a last size of 1 to 256, got {shape[-1]}")


def _check_mask(mask, query):
    if not isinstance(mask, torch.Tensor):
        raise TypeError("scaled_dot_product_attention(): argument 'attn_mask' must be Tensor, not "
                        f"{type(mask).__name__}")
    if mask.dtype not in (torch.bool, torch.float32, query.dtype):
        raise RuntimeError("Expected attn_mask dtype to be bool or float or to match query dtype, "
                           f"but got attn_mask.dtype: {mask.dtype} and query.dtype: {query.dtype}")
    if mask.device != query.device:
        raise RuntimeError(f"attn_mask: wanted the device of query, {query.device}, got {mask.device}")


#===----------------------------------------------------------------------===#
# Shapes
#===----------------------------------------------------------------------===#

def _broadcast(*shapes):
    try:
        return torch.broadcast_shapes(*shapes)
    except RuntimeError:
        listed = "{}, {} and {}".format(*map(tuple, shapes))
        raise RuntimeError("the leading dimensions of query, key and value do not broadcast: "
                           f"{listed}") from None


def _leading(query, key, value, enable_gqa):
    """The leading sizes of the result, and key and value with heads that are 1, those of
    the query or, with enable_gqa, a divisor of them."""
    if not enable_gqa:
        return _broadcast(*(t.shape[:-2] for t in (query, key, value))), key, value
    if min(query.dim(), key.dim(), value.dim()) < 3:
        raise RuntimeError("enable_gqa wants a dimension of heads, got "
                           f"{tuple(query.shape)}, {tuple(key.shape)} and {tuple(value.shape)}")
    heads, key_heads, value_heads = (t.shape[-3] for t in (query, key, value))
    if not key_heads or not value_heads or heads % key_heads or heads % value_heads:
        raise RuntimeError("Number of heads in key and value must divide the number of heads in query, "
                           f"got {key_heads}, {value_heads} and {heads}")
    if key_heads != value_heads:
        key = key.repeat_interleave(heads // key_heads, -3)
        value = value.repeat_interleave(heads // value_heads, -3)
    return (*_broadcast(*(t.shape[:-3] for t in (query, key, value))), heads), key, value


def _heads_of_keys(leading, key, value, enable_gqa):
    """How many heads the kernel sees in key and value."""
    heads = [t.shape[-3] if t.dim() > 2 else 1 for t in (key, value)]
    if heads[0] == heads[1] and (enable_gqa or heads[0] == 1):
        return heads[0]
    return leading[-1]


def _with_rank_4(tensor, batch, heads):
    """Leading sizes `batch` and `heads`, the first ones as one."""
    shape = (*batch, heads, *tensor.shape[-2:])
    if tensor.shape != shape:
        tensor = tensor.expand(shape)
    return tensor if len(shape) == 4 else tensor.reshape(-1, *shape[-3:])


def _is_plain(query, key, value, enable_gqa):
    """Whether tensors of these shapes are what the kernel takes, as most are."""
    if not (len(query) == len(key) == len(value) == 4 and query[0] == key[0] == value[0]
            and key[1] == value[1]):
        return False
    return query[1] == key[1] or (enable_gqa and key[1] > 0 and query[1] % key[1] == 0)


def _kernel_tensors(query, key, value, enable_gqa):
    """The leading sizes of the result, and (b, h, s, d) that broadcast as the tensors do."""
    shapes = query.shape, key.shape, value.shape
    _check_shapes(*shapes)
    if _is_plain(*shapes, enable_gqa):
        return shapes[0][:2], query, key, value
    leading, key, value = _leading(query, key, value, enable_gqa)
    *batch, heads = (1, 1, *leading)[min(2, len(leading)):]
    kv_heads = _heads_of_keys(leading or (1,), key, value, enable_gqa)
    return (leading, _with_rank_4(query, batch, heads), _with_rank_4(key, batch, kv_heads),
            _with_rank_4(value, batch, kv_heads))


def _mask_of_rank_4(mask, leading, queries, keys):
    """The mask with 4 dimensions, some of them 1."""
    wanted = (*leading, queries, keys)
    rank = len(wanted)
    is_wide = mask.dim() > rank or any(
        size not in (1, full) for size, full in zip(mask.shape[::-1], wanted[::-1]))
    if is_wide:
        raise RuntimeError(f"attn_mask: wanted a shape that broadcasts to {wanted}, got "
                           f"{tuple(mask.shape)}")
    shape = (1,) * (max(4, rank) - mask.dim()) + tuple(mask.shape)
    mask = mask.reshape(shape)
    if rank <= 4:
        return mask
    if all(size == 1 for size in shape[:-3]):
        return mask.reshape(1, *shape[-3:])
    return mask.expand(*leading[:-1], *shape[-3:]).reshape(-1, *shape[-3:])


def _without_broadcast(mask, queries, keys):
    """The mask without the dimensions in which it is the same everywhere, and the numbers
    of those that stay."""
    kept = [dim for dim, full in enumerate((0, 0, queries, keys))
            if mask.shape[dim] != 1 or full == 1]
    return mask.reshape([mask.shape[dim] for dim in kept] or [1]), tuple(kept)


def _cast(tensors):
    """As autocast casts arguments."""
    device = tensors[0].device.type if isinstance(tensors[0], torch.Tensor) else "cpu"
    if device not in ("cpu", "cuda") or not torch.is_autocast_enabled(device):
        return tensors
    type = torch.get_autocast_dtype(device)
    return [t.to(type) if isinstance(t, torch.Tensor) and t.is_floating_point() else t
            for t in tensors]


def scaled_dot_product_attention(query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False,
                                 *, scale=None, enable_gqa=False):
    """softmax(scale * query key^T + attn_mask) value, as PyTorch's function of this name.

    query      (..., heads, L, E) of float16, bfloat16 or float32; leading dimensions may be
               any number, none too, and broadcast.
    key        (..., heads, S, E)
    value      (..., heads, S, Ev); E and Ev are at most 256.
    attn_mask  a tensor that broadcasts to (..., heads, L, S): bool, True where a key is
               seen, or float32 or the elements of query, added to scores. Dimensions in
               which it is 1 cost no memory. A mask of floats may require gradients.
    dropout_p  the share of weights to drop, 0 to 1, always applied; the seed is drawn from
               PyTorch's generator of the CPU.
    is_causal  True: query i sees keys 0 to i. Not beside attn_mask.
    scale      None: 1 / sqrt(E).
    enable_gqa  True: the heads of key and value may be fewer than those of query, and
               divide them.

    Gives (..., heads, L, Ev). Rows that see no key are 0, as PyTorch has them. Other
    element types, nested and sparse tensors raise RuntimeError. Under autocast arguments
    are cast as PyTorch's function casts them.
    """
    if attn_mask is not None and is_causal:
        raise RuntimeError("_scaled_dot_product_attention: Explicit attn_mask should not be set "
                           "when is_causal=True")
    if not 0 <= dropout_p <= 1:
        raise RuntimeError(f"dropout probability has to be between 0 and 1, but got {dropout_p}")
    known = None
    if attn_mask is None and dropout_p == 0:
        known = warm.key(query, key, value, "sdpa", bool(is_causal), scale, bool(enable_gqa))
        results = known and warm.attend(known, query, key, value)
        if results is not None:
            return results[0]
    query, key, value, attn_mask = _cast([query, key, value, attn_mask])
    _check_tensors(query, key, value)
    leading, q, k, v = _kernel_tensors(query, key, value, enable_gqa)
    queries, dim, value_dim = q.shape[2], q.shape[3], v.shape[3]
    operands, element, dims = [], None, ()
    if attn_mask is not None:
        _check_mask(attn_mask, query)
        keys = k.shape[2]
        bias, dims = _without_broadcast(
            _mask_of_rank_4(attn_mask, leading, queries, keys), queries, keys)
        operands, element = [bias], _MASKS[bias.dtype]
    drops_all = dropout_p == 1
    if dropout_p and not drops_all:
        operands[:0] = torch.randint(-2**31, 2**31, (2,), dtype=torch.int32).unbind()
    text = _text(
        _ELEMENTS[q.dtype], dim + -dim % 8, value_dim + -value_dim % 8,
        dim**-0.5 if scale is None else float(scale), bool(is_causal),
        0.0 if drops_all else float(dropout_p), element, dims)
    if dim % 8 or value_dim % 8 or q is not query or k is not key or v is not value:
        known = None
    out, _ = call(text, _padded(q), _padded(k), _padded(v), operands, known)
    if value_dim % 8:
        out = out[..., :value_dim]
    if drops_all:
        out = torch.nn.functional.dropout(out, 1.0)
    return out if len(leading) == 2 else out.reshape(*leading, queries, value_dim)
