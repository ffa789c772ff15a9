#===----------------------------------------------------------------------===#
#
# Part of attn, an attention compiler.
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===----------------------------------------------------------------------===#
"""Models of the transformers package with attention compiled here.

    import attn.transformers
    attn.transformers.register()
    model = AutoModelForCausalLM.from_pretrained(name, attn_implementation="attn")

What a model says about its masks (causal, sliding windows, chunks, packed sequences,
padding, its own functions) becomes code of the kernel; there is no tensor of queries by
keys. The rest are options of the kernel: softcap, sinks, biases of positions, dropout,
groups of heads. Tested with transformers 5.23.
"""

import functools
import warnings

from . import requirements

requirements.wanted("attn.transformers", "torch", "2.9")
requirements.wanted("attn.transformers", "transformers", "4.57")

import torch  # noqa: E402
from transformers import AttentionInterface, AttentionMaskInterface, masking_utils  # noqa: E402

from . import program  # noqa: E402
from ._capi import AttnError  # noqa: E402
from .torch import sdpa, trace  # noqa: E402
from .torch.functional import _ELEMENTS, _padded, run  # noqa: E402


def register(name="attn"):
    """Makes attn_implementation=`name` mean these kernels, for all models."""
    AttentionInterface.register(name, attention)
    AttentionMaskInterface.register(name, make_mask)


#===----------------------------------------------------------------------===#
# Masks
#===----------------------------------------------------------------------===#

class Flags(torch.Tensor):
    """A bool tensor, True where a key is seen. What a model adds to its scores, and what it
    makes floats of, is 0 there, and the lowest number of their type elsewhere: so are the
    masks of "eager", which is what such code is written for."""

    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        name = function.__name__
        if name in _ADDITIONS:
            floats = [x.dtype for x in args if isinstance(x, torch.Tensor) and x.is_floating_point()]
            args = tuple(_penalty(x, floats[0]) if floats and isinstance(x, Flags) else x for x in args)
        with torch._C.DisableTorchFunctionSubclass():
            result = function(*args, **(kwargs or {}))
            if not isinstance(result, torch.Tensor):
                return result
            if name in _CASTS and result.is_floating_point() and args[0].dtype == torch.bool:
                result = _penalty(args[0].to(result.device), result.dtype)
            is_mask = result.dtype == torch.bool and name in _MOVES | _CASTS
            return result.as_subclass(cls if is_mask else torch.Tensor)


# Models that add their masks in some layers and use the interface in others, which Dynamo
# has to be told: it takes no Flags.
_ADDERS = frozenset(("bigbird_pegasus", "git"))
_ADDITIONS = frozenset(("add", "add_", "__add__", "__radd__", "__iadd__"))
_CASTS = frozenset(("to", "type", "type_as"))
_MOVES = frozenset(("__getitem__", "view", "reshape", "expand", "expand_as", "unsqueeze", "squeeze", "transpose", "permute",
                    "contiguous", "clone", "detach", "repeat", "repeat_interleave", "narrow", "flatten", "unflatten"))


def _plain(value):
    if not isinstance(value, Flags):
        return value
    with torch._C.DisableTorchFunctionSubclass():
        return value.as_subclass(torch.Tensor)


def _penalty(flags, dtype):
    """0 where a key is seen, else the lowest number of a type."""
    seen = _plain(flags)
    return torch.zeros((), dtype=dtype, device=seen.device).masked_fill(~seen, torch.finfo(dtype).min)


class Mask:
    """What a model passes to its layers as attention_mask: which keys a query sees, as a
    function of positions. Where code of a model wants a tensor, it becomes one: Flags,
    (batch, 1, queries, keys)."""

    def __init__(self, function, padding, sizes, offsets, device, use_vmap):
        self._function, self._padding = function, padding
        self._sizes, self._offsets, self._device, self._use_vmap = sizes, offsets, device, use_vmap

    @functools.cached_property
    def region(self):
        """What a kernel computes; None where it cannot."""
        try:
            return trace.region(self._visible(), "mask", taken=("bias",))
        except (AttnError, TypeError) as error:
            _say(f"a mask is passed as a tensor: {error}")
            return None

    def _visible(self):
        q_offset, kv_offset = map(_moving, self._offsets)
        function, padding = self._function, self._padding

        def visible(b, h, q, k):
            seen = function(b, h, q if q_offset is None else q + q_offset,
                            k if kv_offset is None else k + kv_offset)
            return seen if padding is None else seen & padding[b, k]
        return visible

    @functools.cached_property
    def tensor(self):
        """Flags (batch, 1, queries, keys), True where a key is seen."""
        (batch, queries, keys), (q_offset, kv_offset) = self._sizes, self._offsets
        seen = masking_utils.sdpa_mask(
            batch, queries, keys, q_offset, kv_offset, self._function, None,
            allow_is_causal_skip=False, use_vmap=self._use_vmap, device=self._device)
        seen = seen if self._padding is None else seen & self._padding[:, None, None, :]
        return seen.as_subclass(Flags)

    def __getattr__(self, name):
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self.tensor, name)

    def __getitem__(self, index):
        return self.tensor[index]

    def __invert__(self):
        return ~self.tensor

    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        def plain(value):
            if isinstance(value, (list, tuple)):
                return type(value)(map(plain, value))
            return value.tensor if isinstance(value, Mask) else value
        return function(*plain(tuple(args)), **{key: plain(value) for key, value in (kwargs or {}).items()})


def _moving(offset):
    """An offset as what a region captures, since it differs from call to call; None: 0."""
    if isinstance(offset, torch.Tensor):
        return offset.reshape(()).to(torch.int32)
    return torch.tensor(offset, dtype=torch.int32) if offset else None


def _shown(attention_mask, queries, keys, kv_offset):
    """(batch, keys): which keys are no padding; None: all. To ask the GPU pays where there
    are many queries."""
    if attention_mask is None:
        return None
    padding = masking_utils.prepare_padding_mask(attention_mask, keys, kv_offset)
    padding = padding[:, kv_offset:kv_offset + keys].bool()
    if (queries > 1 or padding.device.type == "cpu") and bool(padding.all()):
        return None
    return padding


def make_mask(batch_size, q_length, kv_length, q_offset=0, kv_offset=0,
              mask_function=masking_utils.causal_mask_function, attention_mask=None,
              allow_is_causal_skip=True, use_vmap=False, device="cpu", **kwargs):
    """The Mask of a forward pass, as AttentionMaskInterface asks for it: query i and key j
    have the positions i + q_offset and j + kv_offset, which mask_function sees;
    attention_mask (batch, positions), if any, is False at padding. In torch.compile it is
    a tensor, and where one query meets a cache whose forward pass will be compiled (it is
    then that allow_is_causal_skip is False)."""
    sizes, offsets = (batch_size, q_length, kv_length), (q_offset, kv_offset)
    if torch.compiler.is_compiling() or (q_length == 1 and not allow_is_causal_skip):
        seen = masking_utils.sdpa_mask(
            *sizes, *offsets, mask_function, attention_mask, allow_is_causal_skip=False,
            use_vmap=use_vmap, device=device)
        if not torch.compiler.is_compiling():
            return seen.as_subclass(Flags)
        is_added = getattr(kwargs.get("config"), "model_type", None) in _ADDERS
        return _penalty(seen, kwargs.get("dtype", torch.float32)) if is_added else seen
    padding = _shown(attention_mask, q_length, kv_length, kv_offset)
    return Mask(mask_function, padding, sizes, offsets, device, use_vmap)


#===----------------------------------------------------------------------===#
# Attention
#===----------------------------------------------------------------------===#

@functools.lru_cache(maxsize=None)
def _program(element, head_dim, value_dim, scale, variants, has_sink, dropout_p, mask, captures,
             flags, bias, bias_dims):
    """A program: `mask` are lines and `captures` what they read, or else `flags` are the
    dimensions of a captured mask; `bias` is the element of captured biases, if any."""
    def at(p, dims):
        return p.bias[tuple((p.b, p.h, p.i, p.j)[dim] for dim in dims) or 0]

    captures = list(captures)
    score = None
    if flags is not None:
        captures.append(("flags", f"tensor<{'?x' * max(1, len(flags))}i1>"))

        def mask(p):
            return p.flags[tuple((p.b, p.h, p.i, p.j)[dim] for dim in flags) or 0]
    if bias is not None:
        captures.append(("bias", f"tensor<{'?x' * max(1, len(bias_dims))}{bias}>"))

        def score(p):
            return p.x + at(p, bias_dims)
    return str(program.attention(
        element, head_dim, value_dim, scale=scale, variants=variants, sink=has_sink,
        dropout_p=dropout_p or None, mask=mask, score=score, captures=captures))


@torch.compiler.assume_constant_result
def _text(*choices):
    return _program(*choices)


def _captured(tensor, query, key):
    """A mask or bias without the dimensions in which it is the same everywhere, and the
    numbers of those that stay."""
    queries, keys = query.shape[2], key.shape[2]
    tensor = tensor[..., :keys]  # masks may be made for longer caches
    tensor = sdpa._mask_of_rank_4(tensor, query.shape[:2], queries, keys)
    return sdpa._without_broadcast(tensor, queries, keys)


def _variants(query, is_causal, sliding_window, softcap):
    """Those that stand for a mask that is not there, and the softcap."""
    variants = []
    if is_causal and sliding_window:
        variants.append(f"window<left = {sliding_window - 1}, right = 0, alignment = top_left>")
    elif is_causal:
        variants.append("causal<top_left>")
    if softcap:
        variants.append(f"softcap<{float(softcap):.17e} : f32>")
    return tuple(variants)


def _compute(query, key, value, mask, bias, sink, scale, dropout, variants):
    """(batch, heads, queries, value_dim) by a kernel; mask: a Mask with a region, a bool
    tensor or None."""
    operands, lines, types, flags, element, dims = [], None, (), None, None, ()
    if isinstance(mask, Mask):
        region = mask.region
        lines, types = region.lines, tuple((name, type) for name, type, _ in region.captures)
        operands += [tensor for _, _, tensor in region.captures]
    elif mask is not None:
        captured, flags = _captured(mask, query, key)
        operands.append(captured)
    if bias is not None:
        captured, dims = _captured(bias, query, key)
        operands.append(captured)
        element = _ELEMENTS[bias.dtype]
    if dropout:
        operands[:0] = torch.randint(-2**31, 2**31, (2,), dtype=torch.int32).unbind()
    if sink is not None:
        operands.insert(0, sink.float())
    dim, value_dim = query.shape[3], value.shape[3]
    text = _text(
        _ELEMENTS[query.dtype], dim + -dim % 8, value_dim + -value_dim % 8, scale, variants,
        sink is not None, float(dropout), lines, types, flags, element, dims)
    out, _ = run(text, _padded(query), _padded(key), _padded(value), operands)
    return out[..., :value_dim] if value_dim % 8 else out


def _eager(query, key, value, mask, bias, sink, scale, dropout, is_causal, sliding_window, softcap):
    """The same by operations of PyTorch; mask: a bool tensor or None."""
    groups = query.shape[1] // key.shape[1]
    key, value = (x.repeat_interleave(groups, 1) for x in (key, value))
    scores = query @ key.transpose(2, 3) * scale
    if softcap:
        scores = softcap * torch.tanh(scores / softcap)
    if bias is not None:
        scores = scores + bias[..., :key.shape[2]]
    lowest = torch.finfo(scores.dtype).min
    if is_causal:
        seen = torch.ones(scores.shape[2:], dtype=torch.bool, device=scores.device).tril()
        mask = seen.triu(1 - sliding_window) if sliding_window else seen
    if mask is not None:
        scores = scores.masked_fill(~mask[..., :key.shape[2]], lowest)
    if sink is not None:
        logits = sink.to(scores.dtype).reshape(1, -1, 1, 1).expand(*scores.shape[:3], 1)
        scores = torch.cat([scores, logits], 3)
    weights = scores.softmax(3, dtype=torch.promote_types(scores.dtype, torch.float32)).to(query.dtype)
    if sink is not None:
        weights = weights[..., :-1]
    return torch.nn.functional.dropout(weights, dropout) @ value


@functools.lru_cache(maxsize=None)
def _say(text):
    """Once."""
    warnings.warn(f"attn.transformers: {text}", stacklevel=3)


def _why_not(query, value):
    """Why there is no kernel, or None."""
    if query.dtype not in _ELEMENTS:
        return f"no kernel for {query.dtype}"
    if max(query.shape[3], value.shape[3]) > 256:
        return f"no kernel for head dimensions above 256, got {max(query.shape[3], value.shape[3])}"
    if query.device.type not in ("cpu", "cuda"):
        return f"no kernel for tensors on {query.device}"
    return None


def attention(module, query, key, value, attention_mask, dropout=0.0, scaling=None, is_causal=None,
              sliding_window=None, softcap=None, s_aux=None, position_bias=None, cache=None, **kwargs):
    """Attention of a layer, as AttentionInterface asks for it.

    query      (batch, heads, queries, head_dim)
    key, value (batch, kv_heads, keys, head_dim)
    attention_mask  a Mask, a tensor that broadcasts to (batch, heads, queries, keys) of bool
               or of floats that are added to scores, or None: causal, with the sliding
               window, where the layer is.
    s_aux      (heads,): logits that join the denominator of the softmax.
    position_bias  added to scores, after the softcap; broadcasts as a mask does.

    Gives (batch, queries, heads, head_dim), and None for the weights, which are never in
    memory: output_attentions=True gives none. Where there is no kernel (float64, head
    dimensions above 256, other devices) PyTorch's operations compute the same, and a
    warning says so once. cache, for continuous batching, raises NotImplementedError.
    """
    if cache is not None:
        raise NotImplementedError("attn.transformers: caches of continuous batching are not served")
    if kwargs.get("output_attentions"):
        _say("weights are never in memory: output_attentions=True gives none")
    if is_causal is None:
        is_causal = getattr(module, "is_causal", True)
    is_causal = bool(is_causal) and attention_mask is None and query.shape[2] > 1
    scale = query.shape[3]**-0.5 if scaling is None else float(scaling)
    mask, bias = attention_mask, position_bias
    if isinstance(mask, Mask) and mask.region is None:
        mask = mask.tensor
    mask = _plain(mask)
    if isinstance(mask, torch.Tensor) and mask.dtype != torch.bool:
        mask, bias = None, mask if bias is None else bias + mask
    why = _why_not(query, value)
    if why is None:
        variants = _variants(query, is_causal, sliding_window, softcap)
        try:
            out = _compute(query, key, value, mask, bias, s_aux, scale, dropout, variants)
        except AttnError as error:
            why = str(error)
    if why is not None:
        _say(f"attention by PyTorch's operations: {why}")
        mask = _plain(mask.tensor) if isinstance(mask, Mask) else mask
        out = _eager(query, key, value, mask, bias, s_aux, scale, dropout, is_causal,
                     sliding_window, softcap)
    return out.transpose(1, 2).contiguous(), None
