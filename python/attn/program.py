#===----------------------------------------------------------------------===#
#
# Part of attn, an attention compiler.
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===----------------------------------------------------------------------===#
"""Programs as MLIR text, for those who do not want to write it."""

from . import expression


def attention(
    element,
    head_dim,
    value_dim=None,
    *,
    name="attention",
    batch="?",
    heads="?",
    kv_heads="?",
    scale=None,
    variants=(),
    captures=(),
    score=None,
    mask=None,
    numerics=None,
    lse=True,
    sink=False,
    dropout_p=None,
    sorted_captures=(),
):
    """The text of @name(q, k, v, [sink], [seed, offset], captures...) -> (o, lse).

    element   "f16", "bf16" or "f32".
    variants  attributes without their '#attn.': "causal", "softcap<30.0 : f32>".
    captures  (name, type) pairs, as in ("bias", "tensor<?x?xf32>").
    score     a function of a position (expression.py), or lines of MLIR that end
              in attn.yield of an f32; they see %x, %b, %h, %i, %j and the
              captures by their names.
    mask      the same, without x, giving an i1.
    sink      True: an argument behind v, a logit for each head that joins the
              denominator: (heads,) of f32.
    dropout_p the share of weights to drop; two i32 arguments, seed and offset.
    sorted_captures  names or numbers of captures that never decrease along their last
              dimension: a promise that lets kernels skip keys.
    Lengths are always known at launch only.
    """
    value_dim = head_dim if value_dim is None else value_dim

    def tensor(count, dim):
        return f"tensor<{batch}x{count}x?x{dim}x{element}>"

    q, k, v = tensor(heads, head_dim), tensor(kv_heads, head_dim), tensor(kv_heads, value_dim)
    o, l = tensor(heads, value_dim), f"tensor<{batch}x{heads}x?xf32>"
    # The blocks of the regions give the captures their names.
    outer = [("captured_" + key, type) for key, type in captures]
    sinks = [("sink", f"tensor<{heads}xf32>")] if sink else []
    keys = [] if dropout_p is None else [("seed", "i32"), ("offset", "i32")]
    arguments = [("q", q), ("k", k), ("v", v), *sinks, *keys, *outer]
    attributes = []
    if scale is not None:
        attributes.append(f"scale = {float(scale)!r} : f64")
    if dropout_p is not None:
        attributes.append(f"dropout_p = {float(dropout_p)!r} : f64")
    if sorted_captures:
        names = [key for key, _ in captures]
        unknown = [key for key in sorted_captures if key not in (*names, *range(len(names)))]
        if unknown:
            raise ValueError(f"sorted_captures: no capture is called {unknown[0]!r}")
        numbers = ", ".join(
            str(names.index(key) if key in names else key) for key in sorted_captures
        )
        attributes.append(f"sorted_captures = array<i64: {numbers}>")
    if variants:
        listed = ", ".join("#attn." + variant for variant in variants)
        attributes.append(f"variants = [{listed}]")
    if numerics:
        attributes.append(f"numerics = #attn.numerics<{numerics}>")
    lines = [
        f"func.func @{name}("
        + ", ".join(f"%{key}: {type}" for key, type in arguments)
        + f") -> ({o}, {l})" * bool(lse)
        + f") -> {o}" * (not lse)
        + " {",
        "  %o, %lse = attn.attention %q, %k, %v"
        + "".join(
            f" {word}({', '.join('%' + key for key, _ in group)})"
            for word, group in (("sink", sinks), ("dropout", keys), ("captures", outer))
            if group
        )
        + (" {" + ", ".join(attributes) + "}" if attributes else ""),
    ]
    indices = [(index, "i32") for index in "bhij"]
    for keyword, body, first in (("score", score, [("x", "f32")]), ("mask", mask, [])):
        if body is None:
            continue
        if callable(body):
            body = expression.trace(body, captures, is_score=keyword == "score")
        block = ", ".join(f"%{key}: {type}" for key, type in [*first, *indices, *captures])
        lines.append(f"    {keyword}({block}) {{")
        lines += ["      " + line.strip() for line in body.strip().splitlines()]
        lines.append("    }")
    types = ", ".join(type for _, type in arguments)
    lines.append(f"    : ({types})")
    lines.append(f"      -> ({o}, {l})")
    lines.append(f"  return %o, %lse : {o}, {l}" if lse else f"  return %o : {o}")
    lines.append("}")
    return "\n".join(lines) + "\n"
