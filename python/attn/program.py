#===----------------------------------------------------------------------===#
#
# Part of attn, an attention compiler.
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===----------------------------------------------------------------------===#
"""Programs as MLIR text, for those who do not want to write it."""

import math
import operator
import re
import warnings

from . import elements, regions

class Program(str):
    """The text, and what it was made of (for debug.py)."""

    captures, facts, variants, sorted, bodies = (), (), (), (), {}

    def searched(self):
        """Captures that have to be sorted."""
        names = re.findall(r"attn\.capture_search %(\w+)", self)
        return sorted({*names, *self.sorted})


VARIANTS = ("causal", "window", "softcap", "alibi")
_IDENTIFIER = re.compile(r"[A-Za-z][A-Za-z0-9_]*")


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
    aligned_captures=(),
    constant_captures=(),
):
    """The text of @name(q, k, v, [sink], [seed, offset], captures...) -> (o, lse).

    element   "f16", "bf16" or "f32", also as "float16", numpy.float32 or
              torch.bfloat16.
    variants  a list of attributes without their '#attn.': ["causal"],
              ["softcap<30.0 : f32>"].
    captures  (name, type) pairs, as in ("bias", "tensor<?x?xf32>"); the names are
              those of launch errors too.
    score     a function of a position (expression.py), or lines of MLIR that end
              in attn.yield of an f32; they see %x, %b, %h, %i, %j and the
              captures by their names. A number is the score of all keys.
    mask      the same, without x, giving an i1.
    numerics  fields of #attn.numerics: "fast_math = false", "f32_products = ieee".
    sink      True: an argument after v, a logit for each head that joins the
              denominator: (heads,) of f32.
    dropout_p the share of weights to drop; two i32 arguments, seed and offset.
    sorted_captures  names or numbers of captures that never decrease along their last
              dimension: a promise that lets kernels skip keys.
    aligned_captures  names or numbers of captured tensors whose address, and strides but
              for the last one, are multiples of 16 bytes: a promise with which 16-bit floats
              of each query and key come to kernels of sm_90a as tiles of keys do. Where it
              is broken, the tensor is copied at each launch.
    constant_captures  names or numbers of captures of floats that have no gradient.
    Lengths are always known at launch only.
    """
    element = elements.element(element, ("f16", "bf16", "f32"))
    head_dim = _head_dim("head_dim", head_dim)
    value_dim = head_dim if value_dim is None else _head_dim("value_dim", value_dim)
    batch, heads, kv_heads = _sizes(batch=batch, heads=heads, kv_heads=kv_heads)
    if not isinstance(name, str) or not _IDENTIFIER.fullmatch(name):
        raise ValueError(f"name: wanted a letter, then letters, digits and _, got {name!r}")

    def tensor(count, dim):
        return f"tensor<{batch}x{count}x?x{dim}x{element}>"

    q, k, v = tensor(heads, head_dim), tensor(kv_heads, head_dim), tensor(kv_heads, value_dim)
    o, l = tensor(heads, value_dim), f"tensor<{batch}x{heads}x?xf32>"
    sinks = [("sink", f"tensor<{heads}xf32>")] if sink else []
    keys = [] if dropout_p is None else [("seed", "i32"), ("offset", "i32")]
    inputs = [("q", q), ("k", k), ("v", v), *sinks, *keys]
    captures = _checked_captures(captures, [key for key, _ in inputs] + ["o", "lse"])
    variants = [_variant(variant) for variant in _list("variants", variants)]
    in_order = [_sorted_number(key, captures) for key in _list("sorted_captures", sorted_captures)]
    aligned = [_aligned_number(key, captures) for key in _list("aligned_captures", aligned_captures)]
    constant = [_number_of("constant_captures", key, captures)
                for key in _list("constant_captures", constant_captures)]
    attributes = _attributes(scale, dropout_p, in_order, variants, numerics)

    bodies, facts = {}, []
    for keyword, region in (("score", score), ("mask", mask)):
        if region is not None:
            body = regions.body(region, captures, keyword)
            bodies[keyword] = body.lines
            facts += [fact for fact in body.facts if fact not in facts]
            if body.ignores_score:
                warnings.warn(
                    "the score ignores x, the scaled product of query and key: it is "
                    f"{body.ignores_score}, and weights do not depend on queries and keys "
                    "(score=NUMBER is a constant one without this warning)",
                    stacklevel=2,
                )
    # The function has other names for captures than the blocks of its regions; a
    # location tells the manifest theirs.
    outer = [("captured_" + key, type) for key, type in captures]
    inner = [*captures, *((fact, "i32") for fact in facts)]
    parameters = [f"%{key}: {type}" for key, type in inputs]
    for number, (key, type) in enumerate(captures):
        marks = ", ".join(["attn.aligned"] * (number in aligned) + ["attn.constant"] * (number in constant))
        parameters.append(f'%captured_{key}: {type}{f" {{{marks}}}" * bool(marks)} loc("{key}")')
    captured = [*outer, *(("fact_" + fact, "i32") for fact in facts)]
    lines = [
        f"func.func @{name}({', '.join(parameters)})"
        + (f" -> ({o}, {l}) {{" if lse else f" -> {o} {{"),
        *_fact_lines(facts, q, k),
        "  %o, %lse = attn.attention %q, %k, %v"
        + "".join(
            f" {word}({', '.join('%' + key for key, _ in group)})"
            for word, group in (("sink", sinks), ("dropout", keys), ("captures", captured))
            if group
        )
        + (" {" + ", ".join(attributes) + "}" if attributes else ""),
    ]
    for keyword, body in bodies.items():
        first = [("x", "f32")] if keyword == "score" else []
        first += [(index, "i32") for index in "bhij"]
        block = ", ".join(f"%{key}: {type}" for key, type in [*first, *inner])
        lines.append(f"    {keyword}({block}) {{")
        lines += ["      " + line for line in body]
        lines.append("    }")
    types = ", ".join(type for _, type in [*inputs, *captured])
    lines.append(f"    : ({types})")
    lines.append(f"      -> ({o}, {l})")
    lines.append(f"  return %o, %lse : {o}, {l}" if lse else f"  return %o : {o}")
    lines.append("}")
    program = Program("\n".join(lines) + "\n")
    program.captures, program.facts, program.variants = captures, facts, variants
    program.sorted, program.bodies = [captures[number][0] for number in in_order], bodies
    return program


def _integer(what, given):
    try:
        return operator.index(given)
    except TypeError:
        raise TypeError(f"{what}: wanted an integer, got {given!r}") from None


def _head_dim(what, given):
    size = _integer(what, given)
    if size % 8 or not 8 <= size <= 256:
        raise ValueError(f"{what}: wanted a multiple of 8 up to 256, got {size}")
    return size


def _sizes(**sizes):
    for what, given in sizes.items():
        if given != "?" and _integer(what, given) < 1:
            raise ValueError(f"{what}: wanted '?' or at least 1, got {given}")
    heads, kv_heads = sizes["heads"], sizes["kv_heads"]
    if "?" not in (heads, kv_heads) and heads % kv_heads:
        raise ValueError(f"{heads} heads over {kv_heads} key heads: wanted a multiple of these")
    return sizes.values()


def _checked_captures(captures, arguments):
    """(name, type) pairs, with types as MLIR has them."""
    checked = []
    for pair in captures.items() if isinstance(captures, dict) else captures:
        if isinstance(pair, str) or len(pair) != 2:
            raise TypeError(f"captures: wanted (name, type) pairs, got {pair!r}")
        name, type = pair
        if not isinstance(name, str) or not _IDENTIFIER.fullmatch(name):
            raise ValueError(f"a capture cannot be called {name!r}: wanted a letter, then letters, "
                             "digits and _")
        for taken, why in (
            (regions.POSITIONS, "a part of the position"),
            (regions.FACTS, "p." + name + " is " + regions.FACTS.get(name, "")),
            (arguments, "an argument or result of the function"),
            ([other for other, _ in checked], "another capture"),
        ):
            if name in taken:
                raise ValueError(f"a capture cannot be called {name!r}: that is {why}")
        try:
            checked.append((name, elements.captured_type(type)))
        except ValueError as error:
            raise ValueError(f"capture {name!r}: {error}") from None
    return checked


def _attributes(scale, dropout_p, in_order, variants, numerics):
    attributes = []
    if scale is not None:
        if not math.isfinite(scale):
            raise ValueError(f"scale: wanted a finite number, got {scale}")
        attributes.append(f"scale = {_float(scale)} : f64")
    if dropout_p is not None:
        if not 0 <= dropout_p < 1:
            raise ValueError(f"dropout_p: wanted a share of at least 0 and below 1, got {dropout_p}")
        attributes.append(f"dropout_p = {_float(dropout_p)} : f64")
    if in_order:
        attributes.append(f"sorted_captures = array<i64: {', '.join(map(str, in_order))}>")
    if variants:
        attributes.append(f"variants = [{', '.join(variants)}]")
    if numerics:
        attributes.append(f"numerics = #attn.numerics<{numerics}>")
    return attributes


def _float(number):
    """As MLIR writes it: 1.0e-05 where Python has 1e-05."""
    text = repr(float(number))
    return text if "." in text else text.replace("e", ".0e")


def _list(what, given):
    if isinstance(given, str):
        raise TypeError(f"{what}: wanted a list, as in [{given!r}], got the text {given!r}")
    return given


def _number_of(what, key, captures):
    names = [name for name, _ in captures]
    if key in names:
        return names.index(key)
    if key not in range(len(names)):
        raise ValueError(f"{what}: no capture is called {key!r}{elements.nearest(str(key), names)}")
    return key


def _sorted_number(key, captures):
    key = _number_of("sorted_captures", key, captures)
    name, type = captures[key]
    shape, element = elements.shape_and_element(type)
    if not shape or element in elements.FLOATS:
        raise ValueError(f"sorted_captures: wanted tensors of integers, {name!r} is {type}")
    return key


def _aligned_number(key, captures):
    key = _number_of("aligned_captures", key, captures)
    name, type = captures[key]
    if not type.startswith("tensor"):
        raise ValueError(f"aligned_captures: wanted tensors, {name!r} is {type}")
    return key


def _variant(given):
    if not isinstance(given, str):
        raise TypeError(f"variants: wanted texts like 'causal', got {given!r}")
    text = given.strip().removeprefix("#attn.")
    word = re.match(r"\w*", text)[0]
    if word not in VARIANTS:
        raise ValueError(f"unknown variant {given!r}{elements.nearest(word, VARIANTS)}: "
                         f"wanted {elements.listed(VARIANTS)}")
    return "#attn." + text


def _fact_lines(facts, q, k):
    """Code of the function that computes what regions ask for."""
    sizes = {"queries": ("q", q, 2), "keys": ("k", k, 2), "heads": ("q", q, 1)}
    wanted = {size for fact in facts
              for size in (("queries", "keys") if fact == "offset" else (fact,))}
    lines = []
    for size in sorted(wanted):
        tensor, type, dim = sizes[size]
        lines.append(f"  %dim_{size} = arith.constant {dim} : index")
        lines.append(f"  %size_{size} = tensor.dim %{tensor}, %dim_{size} : {type}")
    if "offset" in facts:
        lines.append("  %size_offset = arith.subi %size_keys, %size_queries : index")
    lines += [f"  %fact_{fact} = arith.index_cast %size_{fact} : index to i32" for fact in facts]
    return lines
