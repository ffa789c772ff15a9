#===----------------------------------------------------------------------===#
#
# Part of attn, an attention compiler.
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===----------------------------------------------------------------------===#
"""attention() on tensors of PyTorch, and run() for programs of one's own."""

import math

import torch

from . import forms, kernels, likeness, ops, programs, trace, warm
from .kept import is_known_by

_ELEMENTS = {torch.float16: "f16", torch.bfloat16: "bf16", torch.float32: "f32"}
MAX_HEAD_DIM = 256


def run(program, q, k, v, operands=()):
    """(o, lse) of a program on tensors.

    program   the text that attn.attention() returns.
    q, k, v   (b, h, s, d), (b, hkv, t, d), (b, hkv, t, dv) of the program's element
              type, on one device: any strides, h a multiple of hkv.
    operands  the other arguments of the program's function, in its order: tensors; a
              number is a tensor of one element of the CPU, which nobody waits for.
    o is (b, h, s, dv), lse (b, h, s) in f32. q, k, v, the sink, and captured floats
    may require gradients, of o and of lse. Tensors of the CPU run on the CPU.
    Raises attn.AttnError, where tensors do not fit the program or it cannot be compiled
    for their device.
    """
    return call(str(program), q, k, v, list(operands))


def call(program, q, k, v, operands, key=None, swaps=False, regions=None):
    """run() of a text and a list. With a key (warm.py) later calls that have it need not
    come here; swaps, regions: as warm.note has them."""
    if key is None:
        key, swaps, regions = warm.program_key(program, q, k, v, operands), False, None
        results = key and warm.attend(key, q, k, v, operands)
        if results is not None:
            return results
    if not torch.compiler.is_dynamo_compiling() and torch.is_grad_enabled() and type(q) in warm.PLAIN:
        ops.begin_gradients(program, q, k, v, operands)
    if key is None:
        return ops.forward(q, k, v, operands, program)
    results = warm.first(program, q, k, v, operands)
    warm.note(key, program, q, k, v, operands, swaps, regions)
    return results


@torch.compiler.assume_constant_result
def _text(**choice):
    return programs.text(programs.Choice(**choice))


def attention(
    q, k, v, *, score=None, mask=None, causal=False, window=None, softcap=None, alibi=None, sink=None,
    scale=None, dropout_p=0.0, kv_lens=None, cu_seqlens_q=None, cu_seqlens_k=None, return_lse=False,
    layout="bhsd", deterministic=None,
):
    """softmax(score(scale q k^T) where mask) v, as one kernel, with gradients.

    q         (b, h, s, d) in f16, bf16 or f32, or (b, s, h, d) with layout="bshd".
    k, v      (b, hkv, t, d) and (b, hkv, t, dv) alike; h is a multiple of hkv. Any
              strides; d and dv up to 256 (those that are no multiples of 8 are padded).
    causal    True or "bottom_right": the last query sees the last key and those before
              it, the query before one less; "top_left": the first query sees the first
              key alone.
    window    (left, right): keys from `left` before the query's own to `right` after
              it; -1 or None: no bound. A number stands for both. The query's own key is
              as causal says, or as bottom_right does.
    softcap   a number c: scores become c tanh(score / c).
    alibi     True: scores less 2^(-8 (head + 1) / h) times the distance to the query's
              own key. A tensor, (h,) or (b, h): these slopes.
    score     a function (x, b, h, i, j) -> x of PyTorch scalars: the score of query i
              and key j, from the scaled product x, after softcap and alibi.
    mask      a function (b, h, i, j) -> bool: whether query i sees key j, besides what
              causal, window and lengths show. Both may read tensors by these indices.
    sink      (h,), a logit of each head that joins the denominator of the softmax.
    scale     of the products; None: 1 / sqrt(d).
    dropout_p the share of weights that are dropped; the others grow by 1 / (1 - p). The
              seed comes from PyTorch's generator of the CPU.
    kv_lens   (b,) integers: of each entry of the batch only so many keys are there, and
              causal="bottom_right", window and alibi end at the last one of these.
    cu_seqlens_q, cu_seqlens_k
              (n + 1,) integers that do not fall: q is (queries, h, d), k and v are
              (keys, hkv, d), documents one after the other, and number r has the
              queries cu_seqlens_q[r] to cu_seqlens_q[r + 1] and sees its own keys. Without
              cu_seqlens_k the offsets of the queries. Score and mask functions see the
              number of the document as b, and positions inside of it. What lies after
              the last offset is one more document.
    deterministic  True: equal calls have gradients of equal bits. False: these may be
              sums in any order, where that is faster (forms.py). None: as
              torch.use_deterministic_algorithms says, which is asked when the gradients
              are computed. o and lse are always the same bits.
    return_lse  True: (o, lse), lse the logarithm of the denominators in f32, (b, h, s),
              or (h, queries).
    Returns o, as q with the last size of v. A query that sees no key has o = 0 and
    lse = -inf (without a sink). Gradients: of q, k, v, sink, slopes, lse and the floats
    that score and mask functions read.

    Under torch.autocast q, k and v are cast to its type. Nothing waits for the GPU;
    kernels are compiled at the first call with other types, head sizes or functions; on
    a GPU also with other lengths, where another plan is meant for these.
    Raises TypeError or ValueError for arguments that do not fit.
    """
    key = variant = None
    if (sink is None and dropout_p == 0 and kv_lens is None and cu_seqlens_q is None and cu_seqlens_k is None
            and not torch.compiler.is_dynamo_compiling()):
        key, leaves, variant = _warm_key(
            q, k, v, score, mask, (type(causal), causal, window, softcap, alibi, scale, layout, deterministic))
        results = key and warm.attend(key, q, k, v, (), leaves)
        if results is not None:
            return results if return_lse else results[0]
    q, k, v = _autocast(q, k, v)
    is_packed = cu_seqlens_q is not None or cu_seqlens_k is not None
    _check(q, k, v, is_packed, layout)
    if is_packed:
        q, k, v = (x.transpose(0, 1).unsqueeze(0) for x in (q, k, v))
    elif layout == "bshd":
        q, k, v = (x.transpose(1, 2) for x in (q, k, v))
    _check_heads(q, k, v)
    operands, choices = [], {"numerics": forms.numerics(deterministic)}
    choices["causal"] = _causal(causal)
    choices["window"] = _window(window)
    choices["softcap"] = _positive("softcap", softcap)
    choices["dropout_p"] = _dropout(dropout_p)
    choices["has_sink"] = sink is not None
    if sink is not None:
        operands.append(_vector("sink", sink, (q.shape[1],), q.device).float())
    if choices["dropout_p"] is not None:
        # Of the CPU: to know them nobody waits, and checkpoints draw them again.
        keys = torch.randint(0, 2**31 - 1, (2,), dtype=torch.int32, device="cpu")
        operands += [keys[0:1], keys[1:2]]
    choices["alibi"] = _slopes(alibi, q, cu_seqlens_q, operands)
    choices["has_lens"] = kv_lens is not None
    if kv_lens is not None:
        if is_packed:
            raise ValueError("got kv_lens and cu_seqlens: the latter say how many keys there are")
        operands.append(_integers("kv_lens", kv_lens, q.device, q.shape[0]))
    choices["packed"] = _offsets(cu_seqlens_q, cu_seqlens_k, q, operands)
    o, lse = _padded_run(q, k, v, operands, score, mask, scale, choices, key, layout == "bshd", variant)
    if is_packed:
        o, lse = o.squeeze(0).transpose(0, 1), lse.squeeze(0)
    elif layout == "bshd":
        o = o.transpose(1, 2)
    return (o, lse) if return_lse else o


def _warm_key(q, k, v, score, mask, rest):
    """(the key of this call or None, the tensors that the functions reach, the KeptRegions
    that are a part of the key), see warm.py."""
    if score is None and mask is None:
        return warm.key(q, k, v, "attention", rest), None, None
    seen, leaves = likeness.find((score, mask))
    found, variant = seen and warm.key(q, k, v, "attention", rest, seen, torch.get_default_dtype(),
                                       torch.is_grad_enabled()), None
    if found is not None and seen.has_reads:
        variant = trace.variant(
            seen, leaves, programs.NAMES, device=q.device, sizes=_sizes(q, k, swaps=rest[-2] == "bshd"))
        found = variant and warm.narrower(found, variant)
    return found, leaves, variant


def _sizes(q, k, swaps=False):
    """(batch, heads, queries, keys); swaps: q and k are (b, s, h, d)."""
    if not swaps:
        return *q.shape[:3], *k.shape[2:3]
    return *q.shape[:1], *q.shape[2:3], *q.shape[1:2], *k.shape[1:2]


def _known(size, first=8, step=8):
    """The size as a number: one that torch.compile does not know becomes one that it
    knows by being compared with all that there are (PyTorch 2.11 takes no other way)."""
    if torch.compiler.is_dynamo_compiling():
        for known in range(first, MAX_HEAD_DIM + 1, step):
            if size == known:
                return known
    return size


def _known_scale(scale, dim, padded):
    """The scale as a number, also where torch.compile has a symbol for it."""
    if scale is None and dim % 8 == 0:
        return None
    if scale is None:
        return 1 / math.sqrt(_known(dim, padded - 7, 1))
    if torch.compiler.is_dynamo_compiling():
        from torch.fx.experimental.symbolic_shapes import guard_scalar

        scale = guard_scalar(scale)
    return float(scale)


def _padded_run(q, k, v, operands, score, mask, scale, choices, key=None, swaps=False, variant=None):
    dim, value_dim = q.shape[3], v.shape[3]
    if dim % 8 or value_dim % 8:
        key = None
    q, k, v = (_padded(x) for x in (q, k, v))
    choices["element"] = _ELEMENTS[q.dtype]
    choices["head_dim"], choices["value_dim"] = _known(q.shape[3]), _known(v.shape[3])
    choices["scale"] = _known_scale(scale, dim, choices["head_dim"])
    if (score is not None or mask is not None) and torch.compiler.is_dynamo_compiling():
        from . import subgraphs  # and all of Dynamo

        o, lse = subgraphs.attend(q, k, v, operands, score, mask, choices)
    else:
        lines, kept = regions(score, mask, operands, q, k, choices["packed"])
        if (score is not None or mask is not None) and not is_known_by(kept, variant):
            key = None
        o, lse = call(_text(**choices, **lines), q, k, v, operands, key, swaps, kept)
    return (o if o.shape[3] == value_dim else o[..., :value_dim]), lse


def precompile(program, device=None, *, gradients=True, of_lse=False, of_captures=False, lengths=None):
    """Compiles a program before its first call, with its gradients, for all sizes.

    program   the text that attn.attention() returns, or several, in a list: they are
              compiled beside each other, on several threads.
    device    the one of the tensors; None: the current GPU, or the CPU where there is
              none. Kernels for a GPU are kept on disk for other processes.
    gradients False: those alone that need none.
    of_lse, of_captures  True: for gradients that come from lse; that floats captured by
              the program require.
    lengths   (queries, keys) of the calls: where numerics="deterministic = false" lets
              gradients be sums in any order, that form alone which such calls get. None:
              both, where calls may get either.
    A call of attention() uses programs of its own: run it once on small tensors.
    """
    if device is None:
        device = "cuda" if torch.cuda.is_available() else "cpu"
    device, wanted = torch.device(device), []
    for text in map(str, [program] if isinstance(program, str) else program):
        text = kernels.all_promised(text) if device.type == "cuda" else text
        wanted.append((kernels.in_order(text), None))
        if gradients:
            choice = kernels.Gradients(bool(of_lse), bool(of_captures))
            wanted += [(form, choice) for form in forms.possible(text, device, lengths)]
    kernels.precompile(wanted, device)


def _autocast(*tensors):
    kind = tensors[0].device.type
    if kind in ("cpu", "cuda") and torch.is_autocast_enabled(kind):
        dtype = torch.get_autocast_dtype(kind)
        return [x.to(dtype) if x.is_floating_point() and x.dtype != torch.float64 else x for x in tensors]
    return tensors


def _check(q, k, v, is_packed, layout):
    if layout not in ("bhsd", "bshd"):
        raise ValueError(f"layout: wanted 'bhsd' or 'bshd', got {layout!r}")
    if is_packed and layout != "bhsd":
        raise ValueError("layout: with cu_seqlens q is (queries, heads, head_dim), and there is no other")
    rank = 3 if is_packed else 4
    if (q.dim() == k.dim() == v.dim() == rank and q.dtype in _ELEMENTS and q.dtype == k.dtype == v.dtype
            and q.device == k.device == v.device):
        return
    for name, x in (("q", q), ("k", k), ("v", v)):
        if x.dim() != rank:
            raise ValueError(f"{name}: wanted {rank} dimensions{' with cu_seqlens' * is_packed}, got the "
                             f"shape {tuple(x.shape)}")
        if x.dtype not in _ELEMENTS:
            raise TypeError(f"{name}: wanted float16, bfloat16 or float32, got {x.dtype}")
        if x.dtype != q.dtype:
            raise TypeError(f"{name}: wanted {q.dtype} as q has, got {x.dtype}")
        if x.device != q.device:
            raise ValueError(f"{name}: wanted a tensor on {q.device} where q is, got one on {x.device}")


def _check_heads(q, k, v):
    """Of (b, h, s, d)."""
    q_sizes, k_sizes, v_sizes = q.shape, k.shape, v.shape
    for name, sizes in (("k", k_sizes), ("v", v_sizes)):
        if sizes[0] != q_sizes[0]:
            raise ValueError(f"{name}: wanted a batch of {q_sizes[0]} as q has, got {sizes[0]}")
        if sizes[1] != k_sizes[1]:
            raise ValueError(f"{name}: wanted {k_sizes[1]} heads as k has, got {sizes[1]}")
        if sizes[2] != k_sizes[2]:
            raise ValueError(f"{name}: wanted a length of {k_sizes[2]} as k has, got {sizes[2]}")
    for name, sizes in (("q", q_sizes), ("v", v_sizes)):
        if not 1 <= sizes[3] <= MAX_HEAD_DIM:
            raise ValueError(f"{name}: wanted 1 to {MAX_HEAD_DIM} elements in a head, got {sizes[3]}")
    if k_sizes[3] != q_sizes[3]:
        raise ValueError(f"k: wanted heads of {q_sizes[3]} elements as q has, got {k_sizes[3]}")
    if k_sizes[1] == 0 or q_sizes[1] % k_sizes[1]:
        raise ValueError(f"q: wanted a multiple of the {k_sizes[1]} heads of k, got {q_sizes[1]}")


def _causal(given):
    if given is True or given is False:
        return "bottom_right" if given else ""
    if given not in ("bottom_right", "top_left"):
        raise ValueError(f"causal: wanted True, False, 'bottom_right' or 'top_left', got {given!r}")
    return given


def _window(given):
    left, right = given if isinstance(given, (tuple, list)) else (given, given)
    bounds = []
    for bound in (left, right):
        bound = -1 if bound is None else bound
        if isinstance(bound, bool) or not isinstance(bound, int) or bound < -1:
            raise ValueError(f"window: wanted (left, right), numbers of keys or -1 for no bound, got {given!r}")
        bounds.append(bound)
    return tuple(bounds)


def _positive(name, given):
    if given is None:
        return None
    if not 0 < given < math.inf:
        raise ValueError(f"{name}: wanted a number above 0, got {given!r}")
    return float(given)


def _dropout(given):
    if not 0 <= given < 1:
        raise ValueError(f"dropout_p: wanted a share of at least 0 and below 1, got {given!r}")
    return float(given) if given else None


def _vector(name, given, shape, device):
    if not isinstance(given, torch.Tensor) or not given.is_floating_point():
        raise TypeError(f"{name}: wanted a tensor of floats, got {_kind(given)}")
    if given.shape != shape:
        raise ValueError(f"{name}: wanted the shape {tuple(shape)}, got {tuple(given.shape)}")
    return _beside(name, given, device)


def _kind(given):
    return f"a tensor of {given.dtype}" if isinstance(given, torch.Tensor) else type(given).__name__


def _beside(name, given, device):
    if given.device != device:
        raise ValueError(f"{name}: wanted a tensor on {device} where q is, got one on {given.device}")
    return given


def _integers(name, given, device, count=None):
    """A vector of i32."""
    if not isinstance(given, torch.Tensor) or given.dtype not in (torch.int32, torch.int64):
        raise TypeError(f"{name}: wanted a tensor of int32 or int64, got {_kind(given)}")
    if given.dim() != 1 or (count is not None and given.shape[0] != count):
        wanted = "one dimension" if count is None else f"the shape ({count},)"
        raise ValueError(f"{name}: wanted {wanted}, got the shape {tuple(given.shape)}")
    return _beside(name, given, device).to(torch.int32)


def _slopes(given, q, cu_seqlens_q, operands):
    if given is None or given is False:
        return ""
    if given is True:
        return "named"
    batch = q.shape[0] if cu_seqlens_q is None else cu_seqlens_q.shape[0] - 1
    is_wide = isinstance(given, torch.Tensor) and given.dim() == 2
    shape = (batch, q.shape[1]) if is_wide else (q.shape[1],)
    operands.append(_vector("alibi", given, shape, q.device).float())
    return "bh" if is_wide else "h"


def _offsets(cu_seqlens_q, cu_seqlens_k, q, operands):
    if cu_seqlens_q is None and cu_seqlens_k is None:
        return ""
    if cu_seqlens_q is None:
        raise ValueError("got cu_seqlens_k without cu_seqlens_q")
    operands.append(_integers("cu_seqlens_q", cu_seqlens_q, q.device))
    if cu_seqlens_k is None or cu_seqlens_k is cu_seqlens_q:
        return "one"
    operands.append(_integers("cu_seqlens_k", cu_seqlens_k, q.device, cu_seqlens_q.shape[0]))
    return "two"


def regions(score, mask, operands, q, k, packed):
    """(the fields of programs.Choice that say what these functions are, the KeptRegions that
    say it or None); what they capture goes to the end of `operands`."""
    sizes = _sizes(q, k)
    if packed or not all(isinstance(size, int) for size in sizes):
        sizes = None  # of documents, or of lengths that torch.compile leaves open
    if score is None and mask is None:
        return dict(score=None, mask=None, captures=()), None
    lines, captures = [], {}
    found, kept = trace.known_regions(score, mask, programs.NAMES, device=q.device, sizes=sizes)
    for region in found:
        lines.append(None if region is None else region.lines)
        if region is not None:
            captures.update((name, (type, tensor)) for name, type, tensor in region.captures)
    operands += [tensor for _, tensor in captures.values()]
    captures = tuple((name, type) for name, (type, _) in captures.items())
    return dict(score=lines[0], mask=lines[1], captures=captures), kept


def _padded(x):
    """With a last size that is a multiple of 8: zeros change no product."""
    missing = -x.shape[3] % 8
    return torch.nn.functional.pad(x, (0, missing)) if missing else x
