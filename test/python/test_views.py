#===----------------------------------------------------------------------===#
#
# Part of attn, an attention compiler.
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===----------------------------------------------------------------------===#
"""Functions whose arguments have other dimensions than the attention in them:
reshapes and transposes move no element, against NumPy."""

import attn
import numpy
import pytest
from test_cpu import reference

Q, K, O = "tensor<?x4x?x16xf32>", "tensor<?x4x?x16xf32>", "tensor<?x4x?x16xf32>"


def attention(q, k, v, types=(Q, K, O), lse="tensor<?x4x?xf32>"):
    """The line of the operation."""
    q_type, k_type, o_type = types
    return (f"%o, %lse = attn.attention {q}, {k}, {v} : ({q_type}, {k_type}, {k_type})"
            f" -> ({o_type}, {lse})\n")


def function(arguments, results, body):
    listed = ", ".join(f"%{name}: {type}" for name, type in zip("qkv", arguments))
    names = ", ".join(name for name, _ in results)
    types = ", ".join(type for _, type in results)
    return f"func.func @f({listed}) -> ({types}) {{\n{body}return {names} : {types}\n}}\n"


def rank_2():
    one = "tensor<1x1x?x16xf32>"
    body = "%c0 = arith.constant 0 : index\n"
    for name in "qkv":
        body += (f"%n{name} = tensor.dim %{name}, %c0 : tensor<?x16xf32>\n"
                 f"%{name}4 = tensor.expand_shape %{name} [[0, 1, 2], [3]] "
                 f"output_shape [1, 1, %n{name}, 16] : tensor<?x16xf32> into {one}\n")
    body += attention("%q4", "%k4", "%v4", (one, one, one), "tensor<1x1x?xf32>")
    body += ("%o2 = tensor.collapse_shape %o [[0, 1, 2], [3]] : " + one + " into tensor<?x16xf32>\n"
             "%lse1 = tensor.collapse_shape %lse [[0, 1, 2]] : tensor<1x1x?xf32> into tensor<?xf32>\n")
    text = function(["tensor<?x16xf32>"] * 3, [("%o2", "tensor<?x16xf32>"), ("%lse1", "tensor<?xf32>")], body)
    return text, (9, 16), (11, 16), (9, 16), (9,), lambda x: x[None, None]


def projections():
    """(batch, length, heads * dim), as a matrix product leaves them."""
    flat, split = "tensor<?x?x64xf32>", "tensor<?x?x4x16xf32>"
    body = "%c0 = arith.constant 0 : index\n%c1 = arith.constant 1 : index\n"
    for name in "qkv":
        body += (f"%b{name} = tensor.dim %{name}, %c0 : {flat}\n"
                 f"%n{name} = tensor.dim %{name}, %c1 : {flat}\n"
                 f"%{name}5 = tensor.expand_shape %{name} [[0], [1], [2, 3]] "
                 f"output_shape [%b{name}, %n{name}, 4, 16] : {flat} into {split}\n"
                 f"%e{name} = tensor.empty(%b{name}, %n{name}) : {Q}\n"
                 f"%{name}4 = linalg.transpose ins(%{name}5 : {split}) outs(%e{name} : {Q}) "
                 f"permutation = [0, 2, 1, 3]\n")
    body += attention("%q4", "%k4", "%v4")
    body += (f"%eo = tensor.empty(%bq, %nq) : {split}\n"
             f"%o5 = linalg.transpose ins(%o : {O}) outs(%eo : {split}) permutation = [0, 2, 1, 3]\n"
             f"%o3 = tensor.collapse_shape %o5 [[0], [1], [2, 3]] : {split} into {flat}\n")
    text = function([flat] * 3, [("%o3", flat), ("%lse", "tensor<?x4x?xf32>")], body)
    return (text, (2, 9, 64), (2, 11, 64), (2, 9, 64), (2, 4, 9),
            lambda x: x.reshape(*x.shape[:2], 4, 16).transpose(0, 2, 1, 3))


def rank_5():
    """(batch, key head, group, length, dim)."""
    five, key = "tensor<2x2x3x?x16xf32>", "tensor<2x2x?x16xf32>"
    query = "tensor<2x6x?x16xf32>"
    body = ("%c3 = arith.constant 3 : index\n"
            f"%n = tensor.dim %q, %c3 : {five}\n"
            f"%q4 = tensor.collapse_shape %q [[0], [1, 2], [3], [4]] : {five} into {query}\n")
    body += attention("%q4", "%k", "%v", (query, key, query), "tensor<2x6x?xf32>")
    body += (f"%o5 = tensor.expand_shape %o [[0], [1, 2], [3], [4]] output_shape [2, 2, 3, %n, 16] : "
             f"{query} into {five}\n")
    text = function([five, key, key], [("%o5", five), ("%lse", "tensor<2x6x?xf32>")], body)

    def seen(x):
        return x if x.ndim == 4 else x.reshape(2, 6, *x.shape[3:])

    return text, (2, 2, 3, 9, 16), (2, 2, 11, 16), (2, 2, 3, 9, 16), (2, 6, 9), seen


def repeated_as_tiles():
    """Head h has key head h mod 2: no strides show the heads in groups."""
    query, key, five = "tensor<2x6x9x16xf32>", "tensor<2x2x11x16xf32>", "tensor<2x3x2x9x16xf32>"
    turned = "tensor<2x2x3x9x16xf32>"
    body = (f"%q5 = tensor.expand_shape %q [[0], [1, 2], [3], [4]] output_shape [2, 3, 2, 9, 16] : "
            f"{query} into {five}\n%e = tensor.empty() : {turned}\n"
            f"%t = linalg.transpose ins(%q5 : {five}) outs(%e : {turned}) permutation = [0, 2, 1, 3, 4]\n"
            f"%q4 = tensor.collapse_shape %t [[0], [1, 2], [3], [4]] : {turned} into {query}\n")
    body += attention("%q4", "%k", "%v", (query, key, query), "tensor<2x6x9xf32>")
    body += (f"%o5 = tensor.expand_shape %o [[0], [1, 2], [3], [4]] output_shape [2, 2, 3, 9, 16] : "
             f"{query} into {turned}\n%eo = tensor.empty() : {five}\n"
             f"%ot = linalg.transpose ins(%o5 : {turned}) outs(%eo : {five}) permutation = [0, 2, 1, 3, 4]\n"
             f"%o4 = tensor.collapse_shape %ot [[0], [1, 2], [3], [4]] : {five} into {query}\n")
    text = function([query, key, key], [("%o4", query), ("%lse", "tensor<2x6x9xf32>")], body)
    order = [0, 2, 4, 1, 3, 5]

    def seen(x):
        return x[:, order] if x.shape[1] == 6 else x

    return text, (2, 6, 9, 16), (2, 2, 11, 16), (2, 6, 9, 16), (2, 6, 9), seen


PROGRAMS = [rank_2, projections, rank_5, repeated_as_tiles]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_against_numpy(program):
    text, q_shape, k_shape, o_shape, lse_shape, seen = program()
    rng = numpy.random.default_rng(1)
    q, k, v = (rng.standard_normal(shape).astype(numpy.float32)
               for shape in (q_shape, k_shape, k_shape))
    o, lse = numpy.full(o_shape, numpy.nan, numpy.float32), numpy.zeros(lse_shape, numpy.float32)
    kernel = attn.compile(text, target="cpu")
    kernel.launch(q, k, v, o, lse)
    expected, expected_lse = reference(seen(q), seen(k), seen(v), 0.25)
    assert numpy.abs(seen(o) - expected).max() < 5e-6
    assert numpy.abs(lse.reshape(expected_lse.shape) - expected_lse).max() < 5e-6
    if program is repeated_as_tiles:
        assert kernel.relayouts == 2
        return
    # The same with gaps between all rows.
    assert kernel.relayouts == 0
    wide = [numpy.repeat(x, 2, axis=-2)[..., ::2, :] for x in (q, k, v)]
    other = numpy.zeros((*o_shape, 2), numpy.float32)[..., 0]
    kernel.launch(*wide, other, lse)
    assert kernel.relayouts == 1
    assert (other == o).all()


def test_sink_of_grouped_heads():
    """(key head, group): the logits of a graph in five dimensions."""
    text, q_shape, k_shape, o_shape, lse_shape, seen = rank_5()
    text = text.replace("%v: tensor<2x2x?x16xf32>)", "%v: tensor<2x2x?x16xf32>, %s: tensor<2x3xf32>)")
    text = text.replace("%o, %lse =", "%s1 = tensor.collapse_shape %s [[0, 1]] : tensor<2x3xf32> into "
                        "tensor<6xf32>\n%o, %lse =")
    text = text.replace("%q4, %k, %v :", "%q4, %k, %v sink(%s1) :")
    text = text.replace("tensor<2x2x?x16xf32>) -> (tensor<2x6x?x16xf32>",
                        "tensor<2x2x?x16xf32>, tensor<6xf32>) -> (tensor<2x6x?x16xf32>")
    rng = numpy.random.default_rng(3)
    q, k, v, sink = (rng.standard_normal(shape).astype(numpy.float32)
                     for shape in (q_shape, k_shape, k_shape, (2, 3)))
    o, lse = numpy.zeros(o_shape, numpy.float32), numpy.zeros(lse_shape, numpy.float32)
    kernel = attn.compile(text, target="cpu")
    assert [info["name"] for info in kernel.manifest["arguments"]] == ["q", "k", "v", "sink", "o", "lse"]
    kernel.launch(q, k, v, sink, o, lse)
    plain, plain_lse = reference(seen(q), k, v, 0.25)
    total = numpy.logaddexp(plain_lse, sink.reshape(1, 6, 1))
    assert numpy.abs(lse - total).max() < 5e-6
    assert numpy.abs(seen(o) - plain * numpy.exp(plain_lse - total)[..., None]).max() < 5e-6


def test_heads_at_launch():
    """As many as the columns hold."""
    flat, split, four = "tensor<?x?xf32>", "tensor<1x?x?x16xf32>", "tensor<1x?x?x16xf32>"
    body = ("%c0 = arith.constant 0 : index\n%c1 = arith.constant 1 : index\n"
            "%c16 = arith.constant 16 : index\n")
    for name in "qkv":
        body += (f"%n{name} = tensor.dim %{name}, %c0 : {flat}\n"
                 f"%w{name} = tensor.dim %{name}, %c1 : {flat}\n"
                 f"%h{name} = arith.divui %w{name}, %c16 : index\n"
                 f"%{name}5 = tensor.expand_shape %{name} [[0, 1], [2, 3]] "
                 f"output_shape [1, %n{name}, %h{name}, 16] : {flat} into {split}\n"
                 f"%e{name} = tensor.empty(%h{name}, %n{name}) : {four}\n"
                 f"%{name}4 = linalg.transpose ins(%{name}5 : {split}) outs(%e{name} : {four}) "
                 f"permutation = [0, 2, 1, 3]\n")
    body += attention("%q4", "%k4", "%v4", (four, four, four), "tensor<1x?x?xf32>")
    text = function([flat] * 3, [("%o", four), ("%lse", "tensor<1x?x?xf32>")], body)
    kernel = attn.compile(text, target="cpu")
    rng = numpy.random.default_rng(2)
    q, k, v = (rng.standard_normal((7, 48)).astype(numpy.float32) for _ in range(3))
    o, lse = numpy.zeros((1, 3, 7, 16), numpy.float32), numpy.zeros((1, 3, 7), numpy.float32)
    kernel.launch(q, k, v, o, lse)
    seen = [x.reshape(1, 7, 3, 16).transpose(0, 2, 1, 3) for x in (q, k, v)]
    assert numpy.abs(o - reference(*seen, 0.25)[0]).max() < 5e-6
    with pytest.raises(attn.AttnError, match="size of dimension 1 is 40, wanted a multiple of 16"):
        kernel.launch(q[:, :40], k, v, o, lse)


@pytest.mark.parametrize("change", [
    ("%o3 = tensor.collapse_shape %o5", "%x = arith.addf %o5, %o5 : tensor<?x?x4x16xf32>\n"
     "%o3 = tensor.collapse_shape %x"),
    ("%q4, %k4, %v4 :", "%q4, %k4, %e :"),
])
def test_what_is_more_than_an_attention_is_said(change):
    text = projections()[0]
    assert change[0] in text
    text = text.replace(*change).replace("%e :", "%ek :")
    with pytest.warns(UserWarning, match="does more than one attention: what is compiled is '.*_attention_0'"):
        kernel = attn.compile(text, target="cpu")
    assert kernel.manifest["name"].endswith("_attention_0")
