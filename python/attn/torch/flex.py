#===----------------------------------------------------------------------===#
#
# Part of attn, an attention compiler.
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===----------------------------------------------------------------------===#
"""torch.nn.attention.flex_attention.flex_attention by kernels of this compiler:

    from attn.torch import flex_attention      # instead of torch.compile(flex_attention)
    o = flex_attention(q, k, v, score_mod=softcap, block_mask=create_block_mask(...))
"""

import collections
import functools
import math
import operator
import warnings
import weakref

import torch

from .. import attention as _attention
from . import forms, likeness, trace, warm
from .functional import MAX_HEAD_DIM, _ELEMENTS, _autocast, _padded, _padded_run, call
from .kept import is_known_by

# Of Triton's kernels: how fast they are, or promises that make them faster.
_OPTIONS = frozenset((
    "num_warps", "num_stages", "BLOCK_M", "BLOCK_N", "BLOCK_M1", "BLOCK_N1", "BLOCK_M2", "BLOCK_N2",
    "PRESCALE_QK", "ROWS_GUARANTEED_SAFE", "BLOCKS_ARE_CONTIGUOUS", "WRITE_DQ", "FORCE_USE_FLEX_ATTENTION",
    "USE_TMA", "kpack", "matrix_instr_nonkdim", "waves_per_eu", "BACKEND", "SPLIT_KV",
))
_BACKENDS = ("AUTO", "TRITON", "FLASH", "TRITON_DECODE")
_LARGEST_BLOCK = 2**30  # the block of a BlockMask that is none

# Of programs.Choice, in graphs of torch.compile.
_NOTHING_ELSE = dict(causal="", window=(-1, -1), softcap=None, dropout_p=None, has_sink=False, alibi="",
                     has_lens=False, packed="", numerics=forms.numerics(None))

# Where this PyTorch has no flex attention that returns more than lse.
_Aux = collections.namedtuple("AuxOutput", "lse max_scores", defaults=(None, None))


def flex_attention(
    query, key, value, score_mod=None, block_mask=None, scale=None, enable_gqa=False, return_lse=False,
    kernel_options=None, *, return_aux=None,
):
    """softmax(score_mod(scale q k^T) where the mask shows) v, in one kernel, with gradients.

    A drop-in for torch.nn.attention.flex_attention.flex_attention: the same arguments,
    defaults, results and errors. Functions are compiled when they are new; neither this
    nor create_block_mask needs torch.compile.

    query       (b, h, s, d) in f16, bf16 or f32; key (b, hkv, t, d), value
                (b, hkv, t, dv), d and dv up to 256. A batch of 1 of key and value serves
                any batch of queries, where there is a block_mask.
    score_mod   score_mod(score, b, h, q_idx, kv_idx) -> score on tensors of no dimensions,
                float32 and int32. None: the scaled products as they are. What it computes
                of halves is float32 between operations, as with torch.compile, but where
                it decides, by a comparison or floor(): there it is rounded as in PyTorch.
    block_mask  a BlockMask: its mask_mod is compiled, and tells which blocks need no
                work. The blocks that it lists are read only where they say more than
                that, as those of BlockMask.from_kv_blocks may. Queries and keys are
                numbered from 0 on, whatever the lengths.
    scale       None: 1 / sqrt(d).
    enable_gqa  True: h may be a multiple of hkv.
    return_lse  True: (o, lse).
    kernel_options  a dict; those that PyTorch knows tune its kernels and change no
                result, here they do nothing. Others raise.
    return_aux  AuxRequest(lse=True): (o, AuxOutput). max_scores raises.

    Returns o, (b, h, s, dv) in the type of query; 0 for a query that sees no key.
    lse is (b, h, s) in f32, the natural logarithm, -inf for a query that sees no key.
    Gradients: of query, key, value, and of the floats that the functions capture, from
    o and lse, on the CPU, too.

    Inside of torch.compile, with fullgraph=True too, it is one operator of the graph, other
    lengths compile nothing again, and of a BlockMask with a mask_mod the blocks are not
    read. An autograd.Function in score_mod counts by its forward, which is differentiated
    here.

    Raises what PyTorch raises for arguments that do not fit; TraceError, where no kernel
    can do what a function does, with its file and line; TypeError for float64.
    """
    given = query, key, value
    if kernel_options is None and return_aux is None and not torch.compiler.is_dynamo_compiling():
        known, leaves, _ = _warm_key(query, key, value, score_mod, block_mask, scale, enable_gqa)
        results = known and warm.attend(known, query, key, value, (), leaves)
        if results is not None:
            return results if return_lse else results[0]
    _check_tensors(query, key, value)
    _check_heads(query, key, enable_gqa)
    _check_batch(query, key, block_mask)
    _check_block_mask(query, key, block_mask)
    _check_options(kernel_options)
    _check_results(return_lse, return_aux)
    query, key, value = _autocast(query, key, value)
    key, value = _like_query(query, "key", key), _like_query(query, "value", value)
    if key.shape[0] != query.shape[0]:
        key, value = (x.expand(query.shape[0], -1, -1, -1) for x in (key, value))
    mask_mod = None if block_mask is None else _mask_mod(block_mask)
    if torch.compiler.is_dynamo_compiling():
        o, lse = _padded_run(query, key, value, [], score_mod, mask_mod, scale, dict(_NOTHING_ELSE))
    else:
        sizes = *query.shape[:3], key.shape[2]
        (score, mask), kept = trace.known_regions(score_mod, mask_mod, device=query.device, sizes=sizes)
        known = variant = None
        if query is given[0] and key is given[1] and value is given[2]:
            known, _, variant = _warm_key(query, key, value, score_mod, block_mask, scale, enable_gqa)
        if (score_mod is not None or mask_mod is not None) and not is_known_by(kept, variant):
            known = None
        o, lse = _run(query, key, value, scale, score, mask, known, kept)
    if return_aux is not None:
        output = getattr(torch.nn.attention.flex_attention, "AuxOutput", _Aux)
        return o, output(lse=lse if return_aux.lse else None, max_scores=None)
    return (o, lse) if return_lse else o


def _warm_key(query, key, value, score_mod, block_mask, scale, enable_gqa):
    """(the key of this call or None, the tensors that its functions reach, the KeptRegions
    that are a part of the key), see warm.py."""
    mask_mod = token = None
    if block_mask is not None:
        looked_at = _seen(block_mask)
        if looked_at is None:
            return None, None, None
        mask_mod, token = looked_at.mask_mod, looked_at.token
    if score_mod is None and mask_mod is None:
        return warm.key(query, key, value, "flex", scale, bool(enable_gqa)), None, None
    seen, leaves = likeness.find((score_mod, mask_mod))
    found, variant = seen and warm.key(query, key, value, "flex", scale, bool(enable_gqa), seen, token,
                                       torch.get_default_dtype(), torch.is_grad_enabled()), None
    if found is not None and seen.has_reads:
        variant = trace.variant(seen, leaves, device=query.device, sizes=(*query.shape[:3], *key.shape[2:3]))
        found = variant and warm.narrower(found, variant)
    return found, leaves, variant


def _run(query, key, value, scale, score, mask, known, regions):
    dim, value_dim = query.shape[3], value.shape[3]
    if dim % 8 or value_dim % 8:
        known = None
    if scale is None and dim % 8:
        scale = 1 / math.sqrt(dim)
    query, key, value = (_padded(x) for x in (query, key, value))
    captures = []
    for region in (score, mask):
        captures += [one for one in (region.captures if region else ())
                     if one[0] not in [name for name, _, _ in captures]]
    text = _text(
        _ELEMENTS[query.dtype], query.shape[3], value.shape[3], None if scale is None else float(scale),
        score and score.lines, mask and mask.lines, tuple((name, type) for name, type, _ in captures))
    o, lse = call(text, query, key, value, [tensor for _, _, tensor in captures], known,
                  regions=regions)
    return (o if o.shape[3] == value_dim else o[..., :value_dim]), lse


@functools.lru_cache(maxsize=None)
def _text(element, dim, value_dim, scale, score, mask, captures):
    with warnings.catch_warnings():  # a score may ignore the products here
        warnings.filterwarnings("ignore", message="the score ignores x")
        return str(_attention(element, dim, value_dim, scale=scale, score=score, mask=mask, captures=captures,
                              numerics=forms.numerics(None)))


# Blocks

_LOOKED_AT = {}  # by the id of a BlockMask


class _LookedAt:
    """What a BlockMask meant: mask_mod, with the blocks that it lists where these say
    more: full ones are shown, partial ones as mask_mod has it, others are not."""

    def __init__(self, block_mask):
        number = id(block_mask)
        self.block_mask = weakref.ref(block_mask, lambda _: _LOOKED_AT.pop(number, None))
        self.facts, self.token = _facts(block_mask), warm.Token()
        self.mask_mod = block_mask.mask_mod
        if tuple(block_mask.BLOCK_SIZE) != (_LARGEST_BLOCK, _LARGEST_BLOCK):
            maps = _maps(block_mask)
            if maps is not None:
                self.mask_mod = _blocks_shown(block_mask.mask_mod, *maps, *block_mask.BLOCK_SIZE)


_TABLES = "kv_num_blocks", "kv_indices", "full_kv_num_blocks", "full_kv_indices"


def _facts(block_mask):
    """(what has to be the same object, how often tables were written to)"""
    state = vars(block_mask)
    tables = [state.get(name) for name in _TABLES]
    return [*tables, *map(state.get, ("mask_mod", "BLOCK_SIZE", "seq_lengths"))], list(map(_writes, tables))


def _writes(table):
    """Tensors that were made in inference mode do not tell."""
    return 0 if table is None or table.is_inference() else table._version


def _seen(block_mask):
    """What a BlockMask means, or None, where it was not looked at or has changed since."""
    found = _LOOKED_AT.get(id(block_mask))
    if found is None or found.block_mask() is not block_mask:
        return None
    (same, writes), (was_same, had_writes) = _facts(block_mask), found.facts
    return found if writes == had_writes and all(map(operator.is_, same, was_same)) else None


def _mask_mod(block_mask):
    """The function of a BlockMask. Looked at once, which waits for the GPU: mask_mod is
    evaluated at nine places of each block."""
    if torch.compiler.is_dynamo_compiling():
        return _mask_mod_of_graph(block_mask)
    found = _seen(block_mask)
    if found is None:
        found = _LOOKED_AT[id(block_mask)] = _LookedAt(block_mask)
    return found.mask_mod


def _mask_mod_of_graph(block_mask):
    """The same where no table can be looked at: mask_mod, and where this shows all, the
    blocks."""
    from torch.nn.attention.flex_attention import noop_mask

    if (block_mask.mask_mod is not noop_mask
            or tuple(block_mask.BLOCK_SIZE) == (_LARGEST_BLOCK, _LARGEST_BLOCK)):
        return block_mask.mask_mod
    counts = [-(-length // size) for length, size in zip(block_mask.shape[-2:], block_mask.BLOCK_SIZE)]
    return _blocks_shown(noop_mask, *_listed(block_mask, counts), *block_mask.BLOCK_SIZE)


def _blocks_shown(mask_mod, partial, full, rows, columns):
    batches, heads = partial.shape[:2]

    def mask(b, h, q, k):
        at = b if batches > 1 else 0, h if heads > 1 else 0, q // rows, k // columns
        return full[at] | (partial[at] & mask_mod(b, h, q, k))
    return mask


def _maps(block_mask):
    """(partial, full) blocks as flags, or None where mask_mod says the same."""
    from torch.nn.attention.flex_attention import create_mask

    device = block_mask.kv_num_blocks.device
    lengths, counts, places = block_mask.shape[-2:], [], []
    for length, size in zip(lengths, block_mask.BLOCK_SIZE):
        counts.append(-(-length // size))
        starts = torch.arange(counts[-1], device=device)[:, None] * size
        at = starts + torch.tensor([0, size // 2, size - 1], device=device)
        places.append(at.clamp(max=length - 1).flatten())
    partial, full = _listed(block_mask, counts)
    queries, keys = places
    seen = create_mask(lambda b, h, q, k: block_mask.mask_mod(b, h, queries[q], keys[k]),
                       *partial.shape[:2], len(queries), len(keys), device=device)
    seen = seen.unflatten(-1, (-1, 3)).unflatten(-3, (-1, 3))
    says_more = (seen.any(-1).any(-2) & ~(partial | full)) | (~seen.all(-1).all(-2) & full)
    return (partial, full) if bool(says_more.any()) else None


def _listed(block_mask, counts):
    """(partial, full) blocks as flags."""
    partial = _flags(block_mask.kv_num_blocks, block_mask.kv_indices, counts)
    full = torch.zeros_like(partial)
    if getattr(block_mask, "full_kv_num_blocks", None) is not None:
        full = _flags(block_mask.full_kv_num_blocks, block_mask.full_kv_indices, counts)
    return partial, full


def _flags(numbers, indices, counts):
    """Which blocks a table lists."""
    listed = torch.arange(indices.shape[-1], device=indices.device) < numbers[..., None]
    at = torch.where(listed, indices, counts[1]).long()
    flags = torch.zeros((*numbers.shape, counts[1] + 1), dtype=torch.bool, device=indices.device)
    return flags.scatter_(-1, at, True)[..., :counts[0], :counts[1]].contiguous()


# Checks, in PyTorch's order and words

def _check_tensors(query, key, value):
    tensors = {"query": query, "key": key, "value": value}
    if any(x.is_nested for x in tensors.values()):
        raise NotImplementedError("flex_attention: wanted dense tensors, got a NestedTensor")
    if query.device != key.device or query.device != value.device:
        raise ValueError(
            "Expected query, key, and value to have the same device type, but got query.device: "
            f"{query.device}, key.device: {key.device}, and value.device: {value.device} instead.")
    if any(x.dim() < 2 for x in tensors.values()):
        raise ValueError(
            "Expected query, key, and value to all be  at least 2 dimensional, but got query.dim: "
            f"{query.dim()}, key.dim: {key.dim()} and value.dim: {value.dim()} instead.")
    if query.size(-1) != key.size(-1):
        raise ValueError(f"Expect query and key/value to have the same embedding dimension but got "
                         f"E={query.size(-1)} and E={key.size(-1)}.")
    if any(x.dim() != 4 for x in tensors.values()):
        raise NotImplementedError("NYI: query, key, and value must be 4D tensors")
    if query.dtype not in _ELEMENTS:
        raise TypeError(f"query: wanted float16, bfloat16 or float32, got {query.dtype}")
    for name in ("key", "value"):
        size = tensors[name].shape[3]
        if not 1 <= size <= MAX_HEAD_DIM:
            raise ValueError(f"{name}: wanted 1 to {MAX_HEAD_DIM} elements in a head, got {size}")
    if key.shape[:3] != value.shape[:3]:
        raise ValueError(f"value: wanted the shape {tuple(key.shape[:3])} as key has, but for its last "
                         f"size, got {tuple(value.shape)}")


def _check_heads(query, key, enable_gqa):
    heads, kv_heads = query.size(1), key.size(1)
    if not enable_gqa and heads != kv_heads:
        raise ValueError(
            "Expect query and key/value to have the same number of heads "
            f"but got Hq={heads} and Hkv={kv_heads}. Try setting enable_gqa=True for GQA.")
    if enable_gqa and (kv_heads == 0 or heads % kv_heads):
        raise ValueError("Expect number of query heads to be a multiple of kv heads for GQA "
                         f"but got Hq={heads} and Hkv={kv_heads}.")


def _check_batch(query, key, block_mask):
    batch, kv_batch = query.size(0), key.size(0)
    if batch == kv_batch:
        return
    if block_mask is None:
        raise ValueError(
            "Expect query and key/value to have the same batch size, or non-none block_mask, "
            f"but got block_mask=None, Bq={batch}, and Bkv={kv_batch}.")
    masks = block_mask.kv_num_blocks.size(0)
    if masks != batch:
        raise ValueError(
            "Expect query and key/value to have the same batch size, or block_mask and query to have "
            f"the same batch size, but got Bq={batch}, Bkv={kv_batch}, B_block_mask={masks}.")
    if kv_batch != 1:
        raise RuntimeError(f"Bq and Bkv must broadcast. Got Bq={batch} and Bkv={kv_batch}")


def _check_block_mask(query, key, block_mask):
    if block_mask is None:
        return
    if not hasattr(block_mask, "mask_mod") or not hasattr(block_mask, "BLOCK_SIZE"):
        raise TypeError(f"block_mask: wanted a BlockMask or None, got {type(block_mask).__name__}: "
                        "create_block_mask makes one of a mask_mod")
    if getattr(block_mask.mask_mod, "__name__", "") == "_sliced_mask_mod_error":
        raise RuntimeError("Cannot use mask_mod from a sliced BlockMask")
    if block_mask.mask_mod is None:
        raise ValueError("block_mask: wanted one with a mask_mod, got mask_mod=None")
    if tuple(block_mask.BLOCK_SIZE) != (_LARGEST_BLOCK, _LARGEST_BLOCK):
        sizes = list(zip((query.size(2), key.size(2)), block_mask.shape[-2:]))
        for differ, word in ((any(size > made for size, made in sizes), "smaller"),
                             (any(size < made for size, made in sizes), "larger")):
            if differ:
                raise RuntimeError(
                    f"block_mask was created for a {word} length than you're using it for, you likely need "
                    f"to create a new block mask: its shape is {tuple(block_mask.shape)}, and there are "
                    f"{query.size(2)} queries and {key.size(2)} keys")
    if query.device != block_mask.kv_num_blocks.device:
        raise RuntimeError("Expect q/k/v and block_mask to be on the same device "
                           f"but got {query.device} and {block_mask.kv_num_blocks.device}.")


def _check_options(options):
    if options is None:
        return
    plain = {name: name[4:] if name.startswith(("fwd_", "bwd_")) else name for name in options}
    unknown = sorted(name for name in options if plain[name] not in _OPTIONS)
    if unknown:
        raise ValueError(f"kernel_options: got {', '.join(map(repr, unknown))}, which nothing here stands for")
    if "BACKEND" in options:
        if options.get("FORCE_USE_FLEX_ATTENTION", False):
            raise RuntimeError("BACKEND cannot be combined with legacy FORCE_USE_FLEX_ATTENTION.")
        if options["BACKEND"] not in _BACKENDS:
            raise ValueError(f"Invalid BACKEND value '{options['BACKEND']}'. Must be one of {_BACKENDS}")


def _check_results(return_lse, return_aux):
    if return_lse and return_aux is not None:
        raise ValueError("Cannot specify both return_lse and return_aux. "
                         "return_lse is deprecated, please use return_aux=AuxRequest(lse=True) instead.")
    if return_aux is not None and return_aux.max_scores:
        raise NotImplementedError("return_aux: got max_scores=True, and kernels do not keep the maxima: "
                                  "wanted AuxRequest(lse=True)")


def _like_query(query, name, x):
    """Keys and values that hold fewer bits, in the type of query."""
    if x.dtype == query.dtype:
        return x
    if not x.dtype.is_floating_point or torch.promote_types(x.dtype, query.dtype) != query.dtype:
        raise ValueError(f"Expected query, key, and value to have the same dtype, or {name} one that "
                         f"{query.dtype} holds, but got {name}.dtype: {x.dtype}")
    return x.to(query.dtype)
