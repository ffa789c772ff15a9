#===----------------------------------------------------------------------===#
#
# Part of attn, an attention compiler.
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===----------------------------------------------------------------------===#
"""softmax(Q Kᵀ) V in ONNX graphs, as one node.

    model, report = attn.onnx.rewrite(model)

A found subgraph becomes a node FusedAttention of the domain `attn` (subgraph.py),
which computes what the nodes computed. What is not proved stays as it is; the report
has a line for each Softmax, and the edge that failed.
"""

import collections
import math

import numpy
import onnx
import onnx.inliner
from onnx import TensorProto

from .fused import LARGEST_HEAD
from .graph import Graph, attribute, reads

# Of a Softmax, by its first output: what it became ("attn.FusedAttention", or None), and
# the reason if it stays.
Finding = collections.namedtuple("Finding", "softmax node reason")

DOMAIN = "attn"
_KINDS = (TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.BFLOAT16)
_ISNAN = "IsNaN of the weights"


class _Stays(Exception):
    """Why a subgraph stays as it is."""


def rewrite(model):
    """(model, findings): a copy of a model in which each softmax(Q Kᵀ) V that could be
    proved is one node, and a Finding for each Softmax of the main graph. Functions of
    the model are inlined first; bodies of If, Loop and Scan stay as they are."""
    if model.functions:
        model = onnx.inliner.inline_local_functions(model)
    result = onnx.ModelProto()
    result.CopyFrom(model)
    graph, findings, places = Graph(result), [], {}
    for node in graph.nodes:
        if node.op_type != "Softmax" or node.domain not in ("", "ai.onnx"):
            continue
        try:
            product, made = _match(graph, node)
            places[product.output[0]] = made
            findings.append(Finding(node.output[0], f"{DOMAIN}.FusedAttention", None))
        except _Stays as stays:
            findings.append(Finding(node.output[0], None, str(stays)))
    if places:
        _replace(result, graph, places)
    return result, findings


def _match(graph, softmax):
    """(the MatMul with V, the nodes that do all of it)."""
    _check_axis(graph, softmax)
    product, guard, casts_of_weights = _after_softmax(graph, softmax)
    steps, casts, scores = _scores(graph, softmax.input[0])
    empty_rows = _empty_rows(graph, guard, steps)
    (q, by_q), v = _without_scale(graph, scores.input[0]), product.input[1]
    made = []
    k, by_k = _keys(graph, scores.input[1], product, made)
    k, v = _without_groups(graph, k, v)
    _check_types(graph, q, scores.input[1], v, casts + casts_of_weights)
    for what, name in (("Q", q), ("Kᵀ", scores.input[1]), ("V", v)):
        _check_rank(graph, what, name, 2)
    for step in steps:
        if step[0] in ("add", "select"):
            _check_rank(graph, "the mask", step[1], 0)
    _check_head(f"{scores.input[0]!r}: Q", graph.dims(scores.input[0])[-1],
                graph.dims(scores.input[1])[-2])
    _check_head(f"{v!r}: V", graph.dims(v)[-1])
    operands = [_operand(graph, step, product, made) for step in steps if step[0] in ("add", "select")]
    node = onnx.helper.make_node(
        "FusedAttention", [q, k, v, *operands], [product.output[0]], domain=DOMAIN,
        name=product.name or product.output[0], scale=by_q * by_k, empty_rows=empty_rows)
    if steps:
        numbers = [0.0 if step[0] == "add" else float(step[-1]) for step in steps]
        node.attribute.extend([onnx.helper.make_attribute("steps", [step[0] for step in steps]),
                               onnx.helper.make_attribute("values", numbers)])
    return product, [*made, node]


def _operand(graph, step, product, made):
    """The name of the mask of a step, with a node that turns flags where it wants that."""
    if step[0] == "add" or step[2]:
        return step[1]
    fresh = _fresh(graph, product.output[0] + "_shown")
    made.append(onnx.helper.make_node("Not", [step[1]], [fresh], name=fresh))
    return fresh


def _fresh(graph, name):
    while name in graph.makers or name in graph.readers or name in graph.fresh:
        name += "_"
    graph.fresh.add(name)
    return name


def _edge(graph, name, wanted):
    """A reason: which value is not what was wanted."""
    node = graph.makers.get(name)
    made = f"made by {node.op_type}" if node is not None else "an input or a constant"
    return _Stays(f"{name!r}, {made}: wanted {wanted}")


def _check_read_once(graph, name, what):
    """The only node that reads a value."""
    if name in graph.outputs:
        raise _Stays(f"{name!r}: {what} are a result of the model")
    readers = _readers(graph, name)
    if len(readers) != 1:
        others = ", ".join(sorted(node.op_type for node in readers))
        raise _Stays(f"{name!r}: {what} are read by {others or 'nothing'}: wanted one reader")
    return readers[0]


def _readers(graph, name):
    """The nodes that read a value, and not its type alone."""
    return [node for node in graph.readers[name] if node.op_type != "CastLike" or node.input[0] == name]


def _check_axis(graph, softmax):
    axis = attribute(softmax, "axis", -1 if graph.opset >= 13 else 1)
    rank = graph.rank(softmax.input[0])
    if axis != -1 and (rank is None or axis != rank - 1):
        raise _Stays(f"{softmax.output[0]!r}: a softmax over axis {axis} of rank "
                     f"{'?' if rank is None else rank}: wanted the last")


def _check_types(graph, q, keys, v, casts):
    """That all is of one type, save what is computed in f32 between."""
    for what, name in (("Q", q), ("Kᵀ", keys), ("V", v)):
        if graph.kind(name) not in _KINDS or graph.kind(name) != graph.kind(q):
            raise _Stays(f"{name!r}: {what} has elements of {_type_name(graph.kind(name))}: wanted float, "
                         "float16 or bfloat16, all of one")
    for name, kind in casts:
        if kind not in (TensorProto.FLOAT, graph.kind(q)):
            raise _Stays(f"{name!r}: a Cast to {_type_name(kind)} on the way from Q Kᵀ to V: wanted float "
                         f"or Q's own {_type_name(graph.kind(q))}")


def _type_name(kind):
    return TensorProto.DataType.Name(kind).lower()


def _check_rank(graph, what, name, least):
    rank = graph.rank(name)
    if rank is None or not least <= rank <= 4:
        raise _Stays(f"{name!r}: {what} has rank {'?' if rank is None else rank}: wanted {least} to 4")


def _check_head(what, *sizes):
    known = [size for size in sizes if isinstance(size, int)]
    if not known or not 0 < known[0] <= LARGEST_HEAD:
        raise _Stays(f"{what} has a head size of {known[0] if known else '?'}: wanted a known one of "
                     f"1 to {LARGEST_HEAD}")


def _passed_on(graph, node, casts):
    """The input that is a node's result, for kernels at least, which compute scores and
    weights in f32; None if it is another. Notes casts."""
    if node.op_type == "Cast":
        casts.append((node.output[0], attribute(node, "to")))
        return node.input[0]
    if node.op_type == "Dropout":
        training = graph.known(node.input[2]) if len(node.input) > 2 and node.input[2] else False
        has_mask = len(node.output) > 1 and node.output[1]
        return node.input[0] if training is not None and not training and not has_mask else None
    return node.input[0] if node.op_type == "Identity" else None


def _after_softmax(graph, softmax):
    """(the MatMul with V, the guard of rows that see nothing, casts between). The guard
    is None, "isnan", or the name of the mask whose rows it looks at."""
    name, guard, casts = softmax.output[0], None, []
    while True:
        where = _nan_guard(graph, name)
        if where is not None:
            guard, name = guard or _ISNAN, where.output[0]
            continue
        node = _check_read_once(graph, name, "the weights")
        if node.domain in ("", "ai.onnx"):
            if node.op_type == "MatMul" and node.input[0] == name:
                return node, guard, casts
            if _passed_on(graph, node, casts) == name:
                name = node.output[0]
                continue
            mask = _guarded_mask(graph, node, name)
            if mask is not None:
                guard, name = guard or mask, node.output[0]
                continue
        raise _Stays(f"{name!r}: the weights go to {node.op_type}: wanted the left side of a MatMul")


def _nan_guard(graph, name):
    """Where(IsNaN(w), 0, w), the only reader of the weights."""
    readers = _readers(graph, name)
    if sorted(node.op_type for node in readers) != ["IsNaN", "Where"] or name in graph.outputs:
        return None
    isnan, where = sorted(readers, key=lambda node: node.op_type)
    is_guard = (where.input[0] == isnan.output[0] and where.input[2] == name
                and graph.scalar(where.input[1]) == 0 and len(graph.readers[isnan.output[0]]) == 1)
    return where if is_guard else None


def _guarded_mask(graph, where, name):
    """The mask of Where(ReduceMax(mask) == -inf, 0, w), else None."""
    if where.op_type != "Where" or where.input[2] != name or graph.scalar(where.input[1]) != 0:
        return None
    equal = graph.maker(where.input[0])
    if equal is None or equal.op_type != "Equal" or graph.scalar(equal.input[1]) != -math.inf:
        return None
    reduce = graph.maker(equal.input[0])
    if reduce is None or reduce.op_type != "ReduceMax" or attribute(reduce, "keepdims", 1) != 1:
        return None
    axes = attribute(reduce, "axes")
    if axes is None and len(reduce.input) > 1:
        axes = graph.known(reduce.input[1])
    rank = graph.rank(reduce.input[0])
    if axes is None or not rank or [int(axis) % rank for axis in numpy.ravel(axes)] != [rank - 1]:
        return None
    return reduce.input[0]


def _scores(graph, name):
    """(steps from Q Kᵀ to the softmax, casts, the MatMul of the scores)."""
    _check_read_once(graph, name, "the scores")
    node, casts = graph.maker(name), []
    if node is None:
        raise _edge(graph, name, "scores, made by a MatMul")
    if node.op_type == "MatMul":
        return [], [], node
    if node.op_type == "Add":
        return _scores_of_two(graph, node)
    below, more = _passed_on(graph, node, casts), []
    if below is None:
        below, more = _step(graph, node)
    steps, further, product = _scores(graph, below)
    return steps + more, casts + further, product


def _scores_of_two(graph, node):
    """The scores of an Add: the side that leads to a MatMul, the first of two."""
    reasons = []
    for place in (0, 1):
        try:
            steps, casts, product = _scores(graph, node.input[place])
            return [*steps, ("add", node.input[1 - place])], casts, product
        except _Stays as stays:
            reasons.append(str(stays))
    raise _Stays("; ".join(reasons))


def _step(graph, node):
    """(the scores that a node reads, the steps that it makes of them)."""
    kind, names = node.op_type, node.input
    if kind == "Mul" and (capped := _softcap(graph, node)):
        return capped
    if kind in ("Mul", "Div"):
        found = _factor(graph, node)
        if found is None:
            raise _Stays(f"{node.output[0]!r}: {kind} of scores: wanted a constant number beside them")
        return names[found[0]], [("multiply", found[1])]
    if kind == "Where":
        for place in (1, 2):
            number = graph.scalar(names[3 - place])
            if number is not None and number == number:
                return names[place], [("select", names[0], place == 1, number)]
        raise _Stays(f"{node.output[0]!r}: Where of scores: wanted a constant number beside them")
    raise _edge(graph, node.output[0], "scores, made by MatMul, Add, Mul, Div, Where or Cast")


def _factor(graph, node):
    """(the input that is scaled, by which constant number) of a Mul or Div, else None."""
    for place in (0, 1) if node.op_type == "Mul" else (0,):
        number = graph.scalar(node.input[1 - place])
        if number and math.isfinite(number) and math.isfinite(1 / number):
            return place, number if node.op_type == "Mul" else 1 / number
    return None


def _softcap(graph, node):
    """(scores, steps) of c * tanh(x / c), or of another multiple of x below tanh; else
    None."""
    for place in (0, 1):
        tanh, cap = graph.maker(node.input[place]), graph.scalar(node.input[1 - place])
        if tanh is None or tanh.op_type != "Tanh" or not cap or not 0 < cap < math.inf:
            continue
        _check_read_once(graph, tanh.output[0], "the scores")
        inner = graph.maker(tanh.input[0])
        if inner is not None and inner.op_type == "Div" and graph.scalar(inner.input[1]) == cap:
            _check_read_once(graph, inner.output[0], "the scores")
            return inner.input[0], [("softcap", cap)]
        return tanh.input[0], [("multiply", cap), ("softcap", cap)]
    return None


def _empty_rows(graph, guard, steps):
    """What rows are that see no key: "nan", as in a softmax; "zero"; or "zero_nan",
    which are 0 where there is any NaN."""
    if guard is None:
        return "nan"
    if guard == _ISNAN:
        return "zero_nan"
    hiding = [step for step in steps if step[0] in ("add", "select")]
    if [_origin(graph, step[1]) for step in hiding] != [_origin(graph, guard)]:
        raise _Stays(f"{guard!r}: rows without a key are those of this mask: wanted it to be the mask of "
                     "the scores")
    return "zero"


def _origin(graph, name):
    """The value behind Identity and Cast."""
    node = graph.maker(name)
    while node is not None and node.op_type in ("Identity", "Cast", "CastLike"):
        name = node.input[0]
        node = graph.maker(name)
    return name


def _without_scale(graph, name):
    """(the value below products with constant numbers, the product of these)."""
    by, node = 1.0, graph.maker(name)
    while node is not None and node.op_type in ("Mul", "Div", "Identity"):
        found = (0, 1.0) if node.op_type == "Identity" else _factor(graph, node)
        if found is None:
            break
        name, by = node.input[found[0]], by * found[1]
        node = graph.maker(name)
    return name, by


def _keys(graph, name, product, made):
    """(K, the number on it) of Kᵀ, with the Transpose that makes it."""
    rank = graph.rank(name)
    source, by = _without_scale(graph, name)
    if rank is None or not 2 <= rank <= 4:
        raise _Stays(f"{name!r}: Kᵀ has rank {'?' if rank is None else rank}: wanted 2 to 4")
    order = list(range(rank))
    order[-2:] = order[:-3:-1]
    node = graph.maker(source)
    if node is not None and node.op_type == "Transpose":
        inner = list(attribute(node, "perm", list(range(rank))[::-1]))
        order = [inner[axis] for axis in order]
        source, more = _without_scale(graph, node.input[0])
        by *= more
    if order == list(range(rank)):
        return source, by
    fresh = _fresh(graph, product.output[0] + "_keys")
    made.append(onnx.helper.make_node("Transpose", [source], [fresh], perm=order, name=fresh))
    return fresh, by


def _without_groups(graph, k, v):
    """K and V before each of their heads was repeated, if both were, as often."""
    below = [_repeated(graph, name) for name in (k, v)]
    if None in below or len({group for _, group in below}) > 1:
        return k, v
    return below[0][0], below[1][0]


def _repeated(graph, name):
    """(x, (heads, times)) of Reshape(Expand(Unsqueeze(x))), which repeats heads."""
    names = [name]
    for kind in ("Reshape", "Expand", "Unsqueeze"):
        node = graph.maker(names[-1])
        if node is None or node.op_type != kind:
            return None
        names.append(node.input[0])
    axes = attribute(node, "axes") if len(node.input) < 2 else graph.known(node.input[1])
    outer, wide, source = (graph.dims(names[place]) for place in (0, 1, 3))
    if axes is None or list(numpy.ravel(axes)) != [2] or None in (outer, wide, source) or len(source) != 4:
        return None
    batch, heads, length, head = source
    times = wide[2] if len(wide) == 5 else None
    if None in source or not isinstance(heads, int) or not isinstance(times, int):
        return None
    if wide != [batch, heads, times, length, head] or outer != [batch, heads * times, length, head]:
        return None
    return names[-1], (heads, times)


def _replace(model, graph, places):
    """Puts nodes into the places of others, and drops what nothing reads then."""
    dropped = [node for node in graph.nodes if node.output and node.output[0] in places]
    gone = {id(node) for node in dropped}
    count = collections.Counter(name for node in graph.nodes if id(node) not in gone for name in reads(node))
    count.update(name for made in places.values() for node in made for name in reads(node))
    while dropped:
        for name in reads(dropped.pop()):
            maker = graph.makers.get(name)
            if maker is None or id(maker) in gone or any(
                    count[one] or one in graph.outputs for one in maker.output):
                continue
            gone.add(id(maker))
            count.subtract(reads(maker))
            dropped.append(maker)
    nodes = []
    for node in graph.nodes:
        if id(node) not in gone:
            nodes.append(node)
        nodes += places.get(node.output[0] if node.output else None, [])
    kept = [onnx.NodeProto.FromString(node.SerializeToString()) for node in nodes]
    names = {name for node in kept for name in node.output}
    infos = [onnx.ValueInfoProto.FromString(one.SerializeToString())
             for one in model.graph.value_info if one.name in names]
    del model.graph.node[:], model.graph.value_info[:]
    model.graph.node.extend(kept)
    model.graph.value_info.extend(infos)
    if all(one.domain != DOMAIN for one in model.opset_import):
        model.opset_import.append(onnx.helper.make_opsetid(DOMAIN, 1))
