#===----------------------------------------------------------------------===#
#
# Part of attn, an attention compiler.
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===----------------------------------------------------------------------===#
"""Programs as MLIR text, for those who do not want to write it."""


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
):
    """The text of @name(q, k, v, captures...) -> (o, lse).

    element   "f16", "bf16" or "f32".
    variants  attributes without their '#attn.': "causal", "softcap<30.0 : f32>".
    captures  (name, type) pairs, as in ("bias", "tensor<?x?xf32>").
    score     lines of MLIR that end in attn.yield of an f32; they see %x, %b,
              %h, %i, %j and the captures by their names.
    mask      the same, without %x, yielding an i1.
    Lengths are always known at launch only.
    """
    value_dim = head_dim if value_dim is None else value_dim

    def tensor(count, dim):
        return f"tensor<{batch}x{count}x?x{dim}x{element}>"

    q, k, v = tensor(heads, head_dim), tensor(kv_heads, head_dim), tensor(kv_heads, value_dim)
    o, l = tensor(heads, value_dim), f"tensor<{batch}x{heads}x?xf32>"
    # The blocks of the regions give the captures their names.
    outer = [("captured_" + key, type) for key, type in captures]
    arguments = [("q", q), ("k", k), ("v", v), *outer]
    attributes = []
    if scale is not None:
        attributes.append(f"scale = {float(scale)!r} : f64")
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
        + (f" captures({', '.join('%' + key for key, _ in outer)})" if captures else "")
        + (" {" + ", ".join(attributes) + "}" if attributes else ""),
    ]
    indices = [(index, "i32") for index in "bhij"]
    for keyword, body, first in (("score", score, [("x", "f32")]), ("mask", mask, [])):
        if body is None:
            continue
        block = ", ".join(f"%{key}: {type}" for key, type in [*first, *indices, *captures])
        lines.append(f"    {keyword}({block}) {{")
        lines += ["      " + line.strip() for line in body.strip().splitlines()]
        lines.append("    }")
    types = ", ".join([q, k, v, *(type for _, type in captures)])
    lines.append(f"    : ({types})")
    lines.append(f"      -> ({o}, {l})")
    lines.append(f"  return %o, %lse : {o}, {l}" if lse else f"  return %o : {o}")
    lines.append("}")
    return "\n".join(lines) + "\n"
