#===----------------------------------------------------------------------===#
#
# Part of attn, an attention compiler.
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===----------------------------------------------------------------------===#
"""ONNX's operator Attention of opsets 23, 24 and 25 on NumPy arrays."""

import collections
import math

import numpy

from .fused import Refused, run

# What the operator gives, in its order; None where it was not asked for.
Outputs = collections.namedtuple("Outputs", "Y present_key present_value qk_matmul_output")

# TensorProto's numbers of the types that softmax_precision may ask for. Kernels have f32.
_PRECISIONS = {1: "float", 10: "float16", 11: "double", 16: "bfloat16"}
_QK_MODES = ("scaled", "softcapped", "biased", "weights")


def attention(
    q, k, v, attn_mask=None, past_key=None, past_value=None, nonpad_kv_seqlen=None, *,
    is_causal=0, kv_num_heads=None, left_window_size=-1, q_num_heads=None,
    qk_matmul_output_mode=0, right_window_size=-1, scale=None, softcap=0.0,
    softmax_precision=None, qk_matmul_output=False,
):
    """ONNX's Attention by a fused kernel: (Y, present_key, present_value,
    qk_matmul_output), named like that.

    q, k, v   (batch, heads, length, head size), or (batch, length, heads * head size)
              with q_num_heads and kv_num_heads; then Y has that form, too. NumPy arrays
              of float16, float32, or ml_dtypes' bfloat16, all of one type.
    attn_mask flags, or floats that are added to scores; broadcasts to (batch, heads,
              queries, keys). A last dimension that is shorter hides the keys after it.
    past_key, past_value  (batch, kv heads, length, head size): come before k and v;
              present_key and present_value are all of them.
    nonpad_kv_seqlen  (batch,) integers: how many keys of each entry there are.
    is_causal 1: query i sees keys up to i + offset. The offset is the length of
              past_key, or nonpad_kv_seqlen - queries, or 0: without a cache the first
              query stands beside the first key.
    left_window_size, right_window_size  of opset 25: bounds around i + offset; -1: none.
    scale     None: 1 / sqrt(head size).
    softcap   0: none; else softcap * tanh(x / softcap), before masks.
    softmax_precision  float, float16 or bfloat16 (their numbers in TensorProto): the
              softmax is computed in f32, at least what is asked for. double is refused.
    qk_matmul_output  True: give that output, as qk_matmul_output_mode says (0 scaled
              scores, 1 after the softcap, 2 after masks, 3 weights). A fused kernel
              never has these: NumPy computes them beside it, in f32, at the cost of
              a plain attention without P V.

    Rows that see no key give 0. Raises Refused for what kernels cannot do (float64,
    integer masks, heads above 256), ValueError for what the operator does not allow.
    """
    q, k, v = (_array(*pair) for pair in (("Q", q), ("K", k), ("V", v)))
    is_flat = q.ndim == 3
    q, k, v = _with_heads(q, k, v, q_num_heads, kv_num_heads)
    k, v = _after_past(k, v, past_key, past_value)
    _check_sizes(q, k, v)
    if is_causal not in (0, 1):
        raise ValueError(f"is_causal: wanted 0 or 1, got {is_causal!r}")
    lengths = _lengths(nonpad_kv_seqlen, q, k, past_key)
    offset = 0 if past_key is None else numpy.shape(past_key)[2]
    if lengths is not None:
        offset = lengths - q.shape[2]
    left = _window("left_window_size", left_window_size)
    right = _window("right_window_size", right_window_size)
    if is_causal:
        right = 0
    steps = _steps(softcap)
    mask = _mask(attn_mask, q, k)
    mask_keys = None
    if mask is not None:
        steps.append(("select", mask, -math.inf) if mask.dtype == bool else ("add", mask))
        mask_keys = mask.shape[-1] if mask.shape[-1] < k.shape[2] else None
    if softmax_precision is not None:
        _check_precision(softmax_precision)
    if qk_matmul_output_mode not in range(len(_QK_MODES)):
        raise ValueError(f"qk_matmul_output_mode: wanted 0 to 3, got {qk_matmul_output_mode!r}")
    scale = q.shape[3] ** -0.5 if scale is None else _scale(scale)
    y, _ = run(q, k, v, scale=scale, steps=steps, offset=offset, left=left, right=right,
               lengths=lengths, mask_keys=mask_keys, heads_inside=is_flat)
    scores = None
    if qk_matmul_output:
        bias = _bias(q, k, mask, offset, left, right, lengths)
        scores = _scores(q, k, scale, softcap, bias, qk_matmul_output_mode)
    if is_flat:
        y = y.transpose(0, 2, 1, 3).reshape(y.shape[0], y.shape[2], -1)
    return Outputs(y, k, v, scores)


def _array(what, value):
    array = numpy.asarray(value)
    if array.ndim not in (3, 4):
        raise ValueError(f"{what}: wanted rank 3 or 4, got shape {array.shape}")
    return array


def _with_heads(q, k, v, q_num_heads, kv_num_heads):
    """(batch, heads, length, head size) of each."""
    if len({array.ndim for array in (q, k, v)}) > 1:
        raise ValueError(f"wanted Q, K and V of one rank, got shapes {q.shape}, {k.shape}, {v.shape}")
    counts = {"q_num_heads": q_num_heads, "kv_num_heads": kv_num_heads}
    if q.ndim == 4:
        for (name, count), array in zip(counts.items(), (q, k)):
            if count is not None and count != array.shape[1]:
                raise ValueError(f"{name}: {count} heads, of inputs of rank 4 that have {array.shape[1]}")
        return q, k, v
    result = []
    for what, array, name in (("Q", q, "q_num_heads"), ("K", k, "kv_num_heads"), ("V", v, "kv_num_heads")):
        count = counts[name]
        if not count or count < 0:
            raise ValueError(f"{name}: inputs of rank 3 want a number of heads, got {count!r}")
        if array.shape[2] % count:
            raise ValueError(f"{what}: {array.shape[2]} elements a row are no multiple of {name}={count}")
        result.append(array.reshape(*array.shape[:2], count, -1 if array.size else array.shape[2] // count)
                      .transpose(0, 2, 1, 3))
    return result


def _after_past(k, v, past_key, past_value):
    if (past_key is None) != (past_value is None):
        raise ValueError("past_key and past_value come together, got one of them")
    if past_key is None:
        return k, v
    joined = []
    for name, past, new in (("past_key", past_key, k), ("past_value", past_value, v)):
        past = numpy.asarray(past)
        if past.ndim != 4 or past.shape[:2] != new.shape[:2] or past.shape[3] != new.shape[3]:
            raise ValueError(f"{name}: wanted (batch, heads, length, head size) beside {new.shape}, "
                             f"got {past.shape}")
        if past.dtype != new.dtype:
            raise ValueError(f"{name}: wanted elements of {new.dtype}, got {past.dtype}")
        joined.append(numpy.concatenate((past, new), axis=2))
    return joined


def _check_sizes(q, k, v):
    if not q.shape[0] == k.shape[0] == v.shape[0]:
        raise ValueError(f"wanted one batch size, got {q.shape[0]}, {k.shape[0]} and {v.shape[0]}")
    if k.shape[1:3] != v.shape[1:3]:
        raise ValueError(f"wanted K and V with the same heads and length, got {k.shape} and {v.shape}")
    if q.shape[3] != k.shape[3] or not q.shape[3]:
        raise ValueError(f"wanted Q and K with one head size above 0, got {q.shape[3]} and {k.shape[3]}")
    if not k.shape[1] or q.shape[1] % k.shape[1]:
        raise ValueError(f"{q.shape[1]} query heads over {k.shape[1]} key heads: wanted a multiple")


def _lengths(nonpad, q, k, past_key):
    if nonpad is None:
        return None
    lengths = numpy.asarray(nonpad)
    if past_key is not None:
        raise ValueError("nonpad_kv_seqlen and past_key: the operator allows one of them")
    if lengths.shape != q.shape[:1] or lengths.dtype.kind != "i":
        raise ValueError(f"nonpad_kv_seqlen: wanted {q.shape[:1]} integers, got shape {lengths.shape} "
                         f"of {lengths.dtype}")
    if lengths.size and not 0 <= lengths.min() <= lengths.max() <= k.shape[2]:
        raise ValueError(f"nonpad_kv_seqlen: wanted numbers from 0 to the {k.shape[2]} keys, got "
                         f"{lengths.min()} to {lengths.max()}")
    return lengths.astype(numpy.int64)


def _window(name, size):
    if size is None or size == -1:
        return None
    if size < -1:
        raise ValueError(f"{name}: wanted -1 or a number of keys, got {size}")
    return min(int(size), 2**30)


def _steps(softcap):
    if softcap is None or softcap == 0:
        return []
    if not 0 < softcap < math.inf:
        raise ValueError(f"softcap: wanted 0 or a positive number, got {softcap}")
    return [("softcap", softcap)]


def _scale(scale):
    if not 0 <= scale < math.inf:  # the operator multiplies q and k by its square root
        raise ValueError(f"scale: wanted a number of at least 0, got {scale}")
    return float(scale)


def _check_precision(number):
    if number not in _PRECISIONS:
        raise ValueError(f"softmax_precision: wanted one of {sorted(_PRECISIONS)}, got {number}")
    if _PRECISIONS[number] == "double":
        raise Refused("softmax_precision: kernels compute the softmax in f32, got 11 (double)")


def _mask(mask, q, k):
    """The mask, if it broadcasts to the scores."""
    if mask is None:
        return None
    mask = numpy.asarray(mask)
    scores = (*q.shape[:3], k.shape[2])
    if mask.dtype.kind in "iu":
        raise Refused(f"attn_mask: elements of {mask.dtype}: the operator says what flags and floats "
                      "mean, and nothing about integers")
    if mask.dtype != bool and mask.dtype != q.dtype:
        raise Refused(f"attn_mask: wanted flags or elements of {q.dtype}, as Q has them, got {mask.dtype}")
    if not 1 <= mask.ndim <= 4:
        raise ValueError(f"attn_mask: wanted rank 1 to 4, got shape {mask.shape}")
    fits = all(size in (1, wanted) for size, wanted in zip(mask.shape[-2::-1], scores[-2::-1]))
    if not fits or mask.shape[-1] > scores[-1]:
        raise ValueError(f"attn_mask: shape {mask.shape} does not broadcast to {scores}")
    if mask.shape[-1] == 1 and scores[-1] > 1:
        raise Refused(f"attn_mask: one column for {scores[-1]} keys is to broadcast by one sentence of "
                      "the operator and to hide all keys but the first by another")
    return mask


def _bias(q, k, mask, offset, left, right, lengths):
    """What is added to scores, in f32; it broadcasts to them."""
    queries, keys = q.shape[2], k.shape[2]
    shown = numpy.ones((1, 1, 1, keys), bool)
    own = numpy.arange(queries)[:, None] + numpy.reshape(offset, (-1, 1, 1, 1))
    if right is not None:
        shown = shown & (numpy.arange(keys) <= own + right)
    if left is not None:
        shown = shown & (numpy.arange(keys) >= own - left)
    if lengths is not None:
        shown = shown & (numpy.arange(keys) < lengths.reshape(-1, 1, 1, 1))
    bias = numpy.float32(0)
    if mask is not None:
        missing = [(0, 0)] * (mask.ndim - 1) + [(0, keys - mask.shape[-1])]
        if mask.dtype == bool:
            shown = shown & numpy.pad(mask, missing)
        else:
            bias = numpy.pad(mask.astype(numpy.float32), missing, constant_values=-math.inf)
    return numpy.where(shown, bias, numpy.float32(-math.inf))


def _scores(q, k, scale, softcap, bias, mode):
    """qk_matmul_output in the type of Q, computed in f32."""
    mode, kind = _QK_MODES[mode], q.dtype
    repeated = numpy.repeat(k, q.shape[1] // k.shape[1], axis=1).astype(numpy.float32)
    x = numpy.matmul(q.astype(numpy.float32), repeated.swapaxes(2, 3)) * numpy.float32(scale)
    if mode != "scaled" and softcap:
        x = numpy.float32(softcap) * numpy.tanh(x / numpy.float32(softcap))
    if mode in ("biased", "weights"):
        x = x + bias
    if mode == "weights":
        top = x.max(axis=-1, keepdims=True, initial=-math.inf)
        weights = numpy.exp(x - numpy.where(top == -math.inf, 0, top))
        total = weights.sum(axis=-1, keepdims=True)
        x = weights / numpy.where(total == 0, 1, total)
    return x.astype(kind)
