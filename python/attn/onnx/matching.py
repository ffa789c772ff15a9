#===----------------------------------------------------------------------===#
#
# Part of attn, an attention compiler.
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===----------------------------------------------------------------------===#
"""Which nodes of a graph are softmax(Q Kᵀ) V, and why others are not."""

import collections
import math

import numpy
from onnx import TensorProto

from .fused import LARGEST_HEAD
from .graph import attribute

# What a softmax is part of: the MatMul with V; the names of Q, K and V, and the number on
# the scores; the axes that a transposition makes K of `k` with, or None; steps; what
# rows are that see no key (subgraph.py); how many heads stand beside the batch where
# scores are reshaped on their way, else None.
Match = collections.namedtuple("Match", "product q k v scale order steps empty_rows heads")

# Of fused.py, with the name of its operand, whether flags say what is shown, and the
# rank of the scores there.
Step = collections.namedtuple("Step", "kind number operand is_shown rank", defaults=(0.0, None, True, None))

# The way from Q Kᵀ to a softmax: (name, type) of casts, heads of reshapes.
_Way = collections.namedtuple("_Way", "steps casts heads product")

_KINDS = (TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.BFLOAT16)
_ISNAN = "IsNaN of the weights"


class Stays(Exception):
    """Why a subgraph stays as it is."""


def match(graph, softmax):
    """The Match of a Softmax; raises Stays."""
    _check_axis(graph, softmax)
    product, guard, after = _after_softmax(graph, softmax)
    way = _scores(graph, softmax.input[0])
    empty_rows = _empty_rows(graph, guard, way.steps)
    left, right = way.product.input
    (q, by_q), v = _without_scale(graph, left), product.input[1]
    k, by_k, order = _keys(graph, right)
    k, v = _without_groups(graph, k, v, order)
    _check_types(graph, q, right, v, way.casts + after.casts)
    for what, name in (("Q", q), ("Q", left), ("Kᵀ", right), ("V", v)):
        _check_rank(graph, what, name, 2)
    for step in way.steps:
        if step.operand is not None:
            _check_rank(graph, "the mask", step.operand, 0)
    _check_head(f"{left!r}: Q", graph.dims(left)[-1], graph.dims(right)[-2])
    _check_head(f"{v!r}: V", graph.dims(v)[-1])
    heads = _heads(graph, way.heads + after.heads, [q, right, v], way.steps)
    return Match(product, q, k, v, by_q * by_k, order, way.steps, empty_rows, heads)


def _edge(graph, name, wanted):
    """A reason: which value is not what was wanted."""
    node = graph.makers.get(name)
    made = f"made by {node.op_type}" if node is not None else "an input or a constant"
    return Stays(f"{name!r}, {made}: wanted {wanted}")


def _check_read_once(graph, name, what):
    """The only node that reads a value."""
    if name in graph.outputs:
        raise Stays(f"{name!r}: {what} are a result of the model")
    readers = _readers(graph, name)
    if len(readers) != 1:
        others = ", ".join(sorted(node.op_type for node in readers))
        raise Stays(f"{name!r}: {what} are read by {others or 'nothing'}: wanted one reader")
    return readers[0]


def _readers(graph, name):
    """The nodes that read a value, and not its type alone."""
    return [node for node in graph.readers[name] if node.op_type != "CastLike" or node.input[0] == name]


def _check_axis(graph, softmax):
    axis = attribute(softmax, "axis", -1 if graph.opset >= 13 else 1)
    rank = graph.rank(softmax.input[0])
    if axis != -1 and (rank is None or axis != rank - 1):
        raise Stays(f"{softmax.output[0]!r}: a softmax over axis {axis} of rank "
                     f"{'?' if rank is None else rank}: wanted the last")


def _check_types(graph, q, keys, v, casts):
    """That all is of one type, save what is computed in f32 between."""
    for what, name in (("Q", q), ("Kᵀ", keys), ("V", v)):
        if graph.kind(name) not in _KINDS or graph.kind(name) != graph.kind(q):
            raise Stays(f"{name!r}: {what} has elements of {_type_name(graph.kind(name))}: wanted float, "
                         "float16 or bfloat16, all of one")
    for name, kind in casts:
        if kind not in (TensorProto.FLOAT, graph.kind(q)):
            raise Stays(f"{name!r}: a Cast to {_type_name(kind)} on the way from Q Kᵀ to V: wanted float "
                         f"or Q's own {_type_name(graph.kind(q))}")


def _type_name(kind):
    return TensorProto.DataType.Name(kind).lower()


def _check_rank(graph, what, name, least):
    rank = graph.rank(name)
    if rank is None or not least <= rank <= 4:
        raise Stays(f"{name!r}: {what} has rank {'?' if rank is None else rank}: wanted {least} to 4")


def _check_head(what, *sizes):
    known = [size for size in sizes if isinstance(size, int)]
    if not known or not 0 < known[0] <= LARGEST_HEAD:
        raise Stays(f"{what} has a head size of {known[0] if known else '?'}: wanted a known one of "
                     f"1 to {LARGEST_HEAD}")


def _passed_on(graph, node, way):
    """The input that is a node's result, for kernels at least, which compute scores and
    weights in f32; None if it is another. Notes casts and reshapes in `way`."""
    if node.op_type == "Reshape" and (heads := _regrouped(graph, node)):
        way.heads.append(heads)
        return node.input[0]
    if node.op_type == "Cast":
        way.casts.append((node.output[0], attribute(node, "to")))
        return node.input[0]
    if node.op_type == "Dropout":
        training = graph.known(node.input[2]) if len(node.input) > 2 and node.input[2] else False
        has_mask = len(node.output) > 1 and node.output[1]
        return node.input[0] if training is not None and not training and not has_mask else None
    return node.input[0] if node.op_type == "Identity" else None


def _after_softmax(graph, softmax):
    """(the MatMul with V, the guard of rows that see nothing, the way between). The
    guard is None, "isnan", or the name of the mask whose rows it looks at."""
    name, guard, way = softmax.output[0], None, _Way([], [], [], None)
    while True:
        where = _nan_guard(graph, name)
        if where is not None:
            guard, name = guard or _ISNAN, where.output[0]
            continue
        node = _check_read_once(graph, name, "the weights")
        if node.domain in ("", "ai.onnx"):
            if node.op_type == "MatMul" and node.input[0] == name:
                return node, guard, way
            if _passed_on(graph, node, way) == name:
                name = node.output[0]
                continue
            mask = _guarded_mask(graph, node, name)
            if mask is not None:
                guard, name = guard or mask, node.output[0]
                continue
        raise Stays(f"{name!r}: the weights go to {node.op_type}: wanted the left side of a MatMul")


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
    """The way from Q Kᵀ to a value."""
    _check_read_once(graph, name, "the scores")
    node = graph.maker(name)
    if node is None:
        raise _edge(graph, name, "scores, made by a MatMul")
    if node.op_type == "MatMul":
        return _Way([], [], [], node)
    if node.op_type == "Add":
        return _scores_of_two(graph, node)
    more = _Way([], [], [], None)
    below = _passed_on(graph, node, more)
    if below is None:
        below, steps = _step(graph, node)
        more.steps.extend(steps)
    return _joined(_scores(graph, below), more)


def _joined(way, more):
    return _Way(way.steps + more.steps, way.casts + more.casts, way.heads + more.heads, way.product)


def _scores_of_two(graph, node):
    """The scores of an Add: the side that leads to a MatMul, the first of two."""
    reasons = []
    for place in (0, 1):
        try:
            way = _scores(graph, node.input[place])
        except Stays as stays:
            reasons.append(str(stays))
            continue
        step = Step("add", operand=node.input[1 - place], rank=graph.rank(node.output[0]))
        return _joined(way, _Way([step], [], [], None))
    raise Stays("; ".join(reasons))


def _step(graph, node):
    """(the scores that a node reads, the steps that it makes of them)."""
    kind, names = node.op_type, node.input
    if kind == "Mul" and (capped := _softcap(graph, node)):
        return capped
    if kind in ("Mul", "Div"):
        found = _factor(graph, node)
        if found is None:
            raise Stays(f"{node.output[0]!r}: {kind} of scores: wanted a constant number beside them")
        return names[found[0]], [Step("multiply", found[1])]
    if kind == "Where":
        for place in (1, 2):
            number = graph.scalar(names[3 - place])
            if number is not None and number == number:
                return names[place], [Step("select", number, names[0], place == 1, graph.rank(node.output[0]))]
        raise Stays(f"{node.output[0]!r}: Where of scores: wanted a constant number beside them")
    raise _edge(graph, node.output[0], "scores, made by MatMul, Add, Mul, Div, Where, Cast or a Reshape "
                 "of the batch")


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
            return inner.input[0], [Step("softcap", cap)]
        return tanh.input[0], [Step("multiply", cap), Step("softcap", cap)]
    return None


def _empty_rows(graph, guard, steps):
    """What rows are that see no key: "nan", as in a softmax; "zero"; or "zero_nan",
    which are 0 where there is any NaN."""
    if guard is None:
        return "nan"
    if guard == _ISNAN:
        return "zero_nan"
    hiding = [step.operand for step in steps if step.operand is not None]
    if [_origin(graph, name) for name in hiding] != [_origin(graph, guard)]:
        raise Stays(f"{guard!r}: rows without a key are those of this mask: wanted it to be the mask of "
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


def _keys(graph, name):
    """(a value, the number on it, the axes that make K of it or None) of Kᵀ."""
    rank = graph.rank(name)
    source, by = _without_scale(graph, name)
    if rank is None or not 2 <= rank <= 4:
        raise Stays(f"{name!r}: Kᵀ has rank {'?' if rank is None else rank}: wanted 2 to 4")
    order = list(range(rank))
    order[-2:] = order[:-3:-1]
    node = graph.maker(source)
    if node is not None and node.op_type == "Transpose":
        inner = list(attribute(node, "perm", list(range(rank))[::-1]))
        order = [inner[axis] for axis in order]
        source, more = _without_scale(graph, node.input[0])
        by *= more
    return source, by, None if order == list(range(rank)) else order


def _without_groups(graph, k, v, order):
    """K and V before each of their heads was repeated, if both were, as often."""
    if order is not None:
        return k, v
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


def _regrouped(graph, node):
    """How many heads a Reshape from (batch * heads, queries, keys) to (batch, heads,
    queries, keys), or back, has."""
    ranks = [graph.dims(name) for name in (node.input[0], node.output[0])]
    if None in ranks or sorted(map(len, ranks)) != [3, 4]:
        return None
    merged, split = sorted(ranks, key=len)
    is_same = None not in merged[1:] and merged[1:] == split[2:]
    return split[1] if is_same and isinstance(split[1], int) and split[1] > 0 else None


def _heads(graph, found, names, steps):
    """The number of heads where scores are regrouped, None where they are not. All that is of
    rank 3 is to have batch * heads in front, or 1."""
    if not found:
        return None
    if len(set(found)) > 1:
        raise Stays(f"the scores are regrouped into {' and '.join(map(str, sorted(set(found))))} heads")
    for name in names + [step.operand for step in steps if step.rank == 3 and step.operand is not None]:
        dims = graph.dims(name)
        if len(dims) == 3 and dims[0] != 1 and not (isinstance(dims[0], int) and dims[0] % found[0] == 0):
            raise Stays(f"{name!r}: {dims[0]} before what is regrouped into {found[0]} heads: "
                        "wanted a known multiple, or 1")
    for step in steps:
        if step.operand is not None and step.rank is None:
            raise Stays(f"{step.operand!r}: it joins scores of an unknown rank, which are regrouped")
    if graph.opset < 15:
        raise Stays(f"opset {graph.opset} has no Shape of a part, which regrouped scores want: 15 has")
    return found[0]
