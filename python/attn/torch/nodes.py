#===----------------------------------------------------------------------===#
#
# Part of attn, an attention compiler.
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===----------------------------------------------------------------------===#
"""What a node of a graph of PyTorch is called, what it views, and what writes to it."""

import collections
import functools
import inspect
import operator
import re

import torch

from .indices import ZERO, Index, Unread, reshaped, size

# Other spellings.
_NAMES = {
    "iadd": "add", "isub": "sub", "imul": "mul", "itruediv": "div", "ifloordiv": "floordiv",
    "imod": "remainder", "iand": "and", "ior": "or", "ixor": "xor", "ipow": "pow",
    "truediv": "div", "true_divide": "div", "divide": "div", "multiply": "mul", "subtract": "sub",
    "floor_divide": "floordiv", "mod": "remainder", "and_": "and", "or_": "or", "bitwise_and": "and",
    "bitwise_or": "or", "bitwise_xor": "xor", "logical_and": "logical_and", "negative": "neg",
    "invert": "bitwise_not", "inv": "bitwise_not", "less": "lt", "less_equal": "le", "greater": "gt",
    "greater_equal": "ge", "not_equal": "ne", "absolute": "abs", "clip": "clamp", "arctan": "atan", "log_sigmoid": "logsigmoid", "special_expit": "sigmoid",
    "fix": "trunc",
    "special_expm1": "expm1", "special_erf": "erf", "special_erfc": "erfc", "sgn": "sign", "pos": "same", "positive": "same",
    "swapaxes": "transpose", "swapdims": "transpose", "moveaxis": "movedim", "_unsafe_view": "reshape",
    "view": "reshape", "view_as": "reshape", "reshape_as": "reshape", "_reshape_alias": "reshape",
    "broadcast_to": "expand", "expand_as": "expand", "imatmul": "matmul", "concat": "cat",
    "concatenate": "cat", "_softmax": "softmax", "_to_copy": "to", "type": "to", "type_as": "to",
    "float": "to", "half": "to", "bfloat16": "to", "bool": "to", "int": "to", "long": "to", "double": "to",
    "cuda": "to", "cpu": "to", "contiguous": "same", "clone": "same", "lift_fresh_copy": "same",
    "alias": "same", "_assert_tensor_metadata": "none", "amax": "max", "adjoint": "mT",
    "special_softmax": "softmax", "special_log_softmax": "log_softmax", "special_logsumexp": "logsumexp",
}
# Whose functions have the names that are read here. Others of these names mean other things:
# torch.masked.softmax has a mask.
_HOMES = re.compile(r"torch|torch\.(functional|nn\.functional|_tensor|_VF|_ops\.aten|ops\.higher_order)|torch\._C(\.\w+)?"
                    r"|_operator|math|builtins")
# What begins and ends a transform of torch.func in a graph.
_NESTING = re.compile(r"_(?:(\w+)_)?(increment_nesting|decrement_nesting|enter_dual_level|exit_dual_level)")
_BY_TARGET = {operator.and_: "and", operator.or_: "or", operator.not_: "not"}

_IN_PLACE = {getattr(operator, name) for name in
             ("iadd", "isub", "imul", "itruediv", "ifloordiv", "imod", "iand", "ior", "ixor", "ipow",
              "imatmul", "setitem", "ilshift", "irshift")}


def written_name(node):
    """What the graph calls it."""
    target = node.target
    if isinstance(target, str):
        return target
    schema = getattr(target, "_schema", None)
    if schema is not None:
        return schema.name.split("::")[-1]
    return getattr(target, "__name__", str(target))


def name(node):
    """One name for all spellings of an operation; "" for what computes nothing."""
    if node.op not in ("call_function", "call_method"):
        return ""
    if node.target in _BY_TARGET:
        return _BY_TARGET[node.target]
    given, home = written_name(node), getattr(node.target, "__module__", None)
    if home is not None and not _HOMES.fullmatch(home):
        return f"{home}.{given}"
    if given.endswith("_") and not given.endswith("__") and given not in ("and_", "or_", "not_"):
        given = given[:-1]
    return _NAMES.get(given, given)


def value(node):
    """The tensor without elements, number or tuple that a node stands for."""
    meta = node.meta
    return meta["example_value"] if "example_value" in meta else meta.get("val")


def is_tensor(node):
    return isinstance(node, torch.fx.Node) and isinstance(value(node), torch.Tensor)


def shape(node):
    return tuple(size(each) for each in value(node).shape)


_NUMPY_NAMES = {"dim": "axis", "keepdim": "keepdims", "input": "x", "other": "x2"}  # which PyTorch takes, too


def argument(node, position, keyword, default=None):
    """An argument by position, which may have been written by name."""
    if len(node.args) > position:
        return node.args[position]
    return node.kwargs.get(keyword, node.kwargs.get(_NUMPY_NAMES.get(keyword), default))


def known(given):
    """A number, also where a node stands for it; None for what is not known."""
    if isinstance(given, torch.fx.Node):
        given = value(given)
    if isinstance(given, torch.SymFloat) and given.node.has_hint():
        return float(given)  # guards: another number is another graph
    if isinstance(given, (bool, int, float)):
        return given
    return None


def sized(given):
    """A size: a number or a symbol; None for anything else."""
    if isinstance(given, torch.fx.Node):
        given = value(given)
    if isinstance(given, (int, torch.SymInt)) and not isinstance(given, bool):
        return size(given)
    return None


class Graph:
    """The order of the nodes of a graph, which write to what others hold, and which are
    inside of a transform of torch.func or of torch.no_grad."""

    def __init__(self, graph):
        self.order = {node: number for number, node in enumerate(graph.nodes)}
        self._writes, self._transforms, open_transforms = {}, {}, []
        self._without_gradients, has_gradients = set(), True
        for node in graph.nodes:
            if node.op == "call_function" and written_name(node) == "_set_grad_enabled":
                has_gradients = node.args[0] is not False
            if not has_gradients:
                self._without_gradients.add(node)
            for target in writes_to(node):
                self._writes.setdefault(storage(target), []).append(node)
            begun, ended = (_NESTING.fullmatch(written_name(node)) if node.op == "call_function" else None), False
            if begun:
                ended = begun[2] in ("decrement_nesting", "exit_dual_level")
                open_transforms.pop() if ended and open_transforms else open_transforms.append(begun[1] or "jvp")
            self._transforms[node] = tuple(open_transforms)

    def transforms(self, node):
        """The transforms of torch.func that a node is inside of: "vmap", "grad", "jvp"."""
        return self._transforms[node]

    def is_without_gradients(self, node):
        """Whether the graph has it inside of torch.no_grad()."""
        return node in self._without_gradients

    def _all_writes(self, node):
        return self._writes.get(storage(node), ()) if self._writes else ()

    def writes(self, node, reader, before):
        """The writes to the memory of `node` that come before a node and after `reader`
        has read it: its own is one of them."""
        first, last = self.order[reader], self.order[before]
        return [write for write in self._all_writes(node) if first <= self.order[write] < last]

    def writes_before(self, node, last):
        """The writes to the memory of `node` that come before another node."""
        return [write for write in self._all_writes(node) if self.order[write] < self.order[last]]

    def keeps(self, node, at):
        """Whether a node still holds what it was made with where `at` reads it."""
        try:
            return self.resolve(node, at) is node
        except Unread:
            return False

    def resolve(self, node, at):
        """The node that holds what `node` holds where `at` reads it."""
        first, end = self.order[node], self.order[at]
        writes = [write for write in self._all_writes(node) if first < self.order[write] < end]
        if not writes:
            return node
        last = writes[-1]
        target = next(target for target in writes_to(last) if storage(target) == storage(node))
        made = value(last)
        if not is_same_memory(node, target) or not isinstance(made, torch.Tensor) or made.shape != value(node).shape:
            raise Unread("a tensor that is written to in part", last)
        return last


def writes_to(node):
    """The tensors that a node writes to."""
    if node.op not in ("call_function", "call_method"):
        return []
    given = written_name(node)
    writes = (node.target in _IN_PLACE) or (given.endswith("_") and not given.endswith("__")
                                             and given not in ("and_", "or_", "not_", "is_", "requires_grad_"))
    place = _place_of_inplace(node.target)
    writes = writes or known(node.kwargs.get("inplace", place is not None and argument(node, place, "inplace"))) is True
    targets = [node.args[0] if node.args else node.kwargs.get("input")] if writes else []
    targets.append(node.kwargs.get("out"))
    schema = getattr(node.target, "_schema", None)
    for number, described in enumerate(schema.arguments if schema is not None else ()):
        if described.alias_info is not None and described.alias_info.is_write:
            targets.append(argument(node, number, described.name))
    targets = [each for target in targets for each in (target if isinstance(target, (tuple, list)) else [target])]
    return list(dict.fromkeys(target for target in targets if is_tensor(target)))


@functools.lru_cache(maxsize=None)
def _place_of_inplace(function):
    """At which place a function of PyTorch is told to write to its first argument."""
    if not callable(function) or isinstance(function, torch._ops.OpOverload):
        return None
    try:
        names = list(inspect.signature(function).parameters)
    except (TypeError, ValueError):  # of C++
        return None
    return names.index("inplace") if "inplace" in names else None


def storage(node):
    held = value(node)
    if not isinstance(held, torch.Tensor):
        return None
    try:
        return held.untyped_storage()._cdata
    except (NotImplementedError, RuntimeError):
        return None


def is_same_memory(one, other):
    """Whether elements of two tensors of one memory are at the same places of it."""
    a, b = value(one), value(other)
    return a.shape == b.shape and a.stride() == b.stride() and a.storage_offset() == b.storage_offset() \
        and a.dtype == b.dtype


# What takes nothing but sizes and a type of its first argument.
_LIKE = ("zeros_like", "ones_like", "full_like", "empty_like", "new_zeros", "new_ones", "new_full", "new_empty")


def cuts_gradients(node):
    """Whether nothing gets gradients through a node whose arguments want some: detach(), and
    all that is done inside of torch.no_grad()."""
    made = value(node)
    return name(node) not in _LIKE and made.is_floating_point() and not made.requires_grad and any(
        value(each).requires_grad for each in node.all_input_nodes if is_tensor(each))


# ---------------------------------------------------------------------------
# Views
# ---------------------------------------------------------------------------


def _transpose(node, indices):
    if name(node) in ("t", "T", "mT", "getattr"):  # the attribute, in PyTorch 2.11
        first, second = -2, -1
    else:
        first, second = argument(node, 1, "dim0"), argument(node, 2, "dim1")
    result = list(indices)
    result[first], result[second] = result[second], result[first]
    return result


def _permute(node, indices):
    order = argument(node, 1, "dims")
    if not isinstance(order, (tuple, list)):
        order = node.args[1:]
    result = [None] * len(indices)
    for index, place in zip(indices, order):
        result[place] = index
    return result


def _movedim(node, indices):
    sources, places = argument(node, 1, "source"), argument(node, 2, "destination")
    rank = len(indices)
    sources = [each % rank for each in (sources if isinstance(sources, (tuple, list)) else [sources])]
    places = [each % rank for each in (places if isinstance(places, (tuple, list)) else [places])]
    rest = [each for each in range(rank) if each not in sources]
    order = [sources[places.index(place)] if place in places else rest.pop(0) for place in range(rank)]
    result = [None] * rank
    for index, place in zip(indices, order):
        result[place] = index
    return result


def _unsqueeze(node, indices):
    dim = argument(node, 1, "dim") % len(indices)
    return indices[:dim] + indices[dim + 1:]


def _expand(node, indices):
    source = shape(node.args[0])
    indices = indices[len(indices) - len(source):]
    return [ZERO if size == 1 else index for size, index in zip(source, indices)]


def _reshape(node, indices):
    return reshaped(list(indices), shape(node), shape(node.args[0]))


def _select(node, indices):
    dim, index = argument(node, 1, "dim"), argument(node, 2, "index")
    source = shape(node.args[0])
    dim %= len(source)
    return indices[:dim] + [moved(ZERO, index, source[dim])] + indices[dim:]


def _narrow(node, indices):
    dim, start = argument(node, 1, "dim"), argument(node, 2, "start")
    dim %= len(indices)
    return indices[:dim] + [moved(indices[dim], start, shape(node.args[0])[dim])] + indices[dim + 1:]


def _interleave(node, indices):
    dim, count = argument(node, 2, "dim"), known(argument(node, 1, "repeats"))
    if dim is None or not isinstance(count, int):
        raise Unread("repeat_interleave of other than a number along a dimension")
    dim %= len(indices)
    source = shape(node.args[0])
    wide = source[:dim + 1] + (count,) + source[dim + 1:]
    flat = shape(node)
    return _dropped(reshaped(list(indices), flat, wide), wide, dim + 1)


def _dropped(indices, shape, dim):
    return indices[:dim] + indices[dim + 1:]


def moved(index, start, length):
    """An index behind `start`, which counts from the end where it is negative."""
    start = sized(start)
    if start is None or not isinstance(index, Index):
        raise Unread("a slice that starts at what is computed")
    if isinstance(start, int):
        start = start + length if start < 0 else start
    elif start.is_nonnegative is not True and not start.is_positive:
        raise Unread("a slice that starts at what may be negative")
    return Index(index.digits, index.offset + start)


def _slice(node, indices):
    """aten.slice."""
    dim, start, step = argument(node, 1, "dim", 0), argument(node, 2, "start", 0), argument(node, 4, "step", 1)
    if step != 1:
        raise Unread("a slice with a step")
    dim %= len(indices)
    return indices[:dim] + [moved(indices[dim], start or 0, shape(node.args[0])[dim])] + indices[dim + 1:]


def _getitem(node, indices):
    return item_indices(shape(node.args[0]), node.args[1], indices)


def item_indices(source, items, indices):
    """Indices of a tensor of shape `source`, for those of its item."""
    items = list(items) if isinstance(items, (tuple, list)) else [items]
    taken = sum(1 for item in items if item is not None and item is not Ellipsis)
    if Ellipsis in [item for item in items if not isinstance(item, torch.fx.Node)]:
        at = next(n for n, item in enumerate(items) if item is Ellipsis)
        items[at:at + 1] = [slice(None)] * (len(source) - taken)
    else:
        items += [slice(None)] * (len(source) - taken)
    rest, result = list(indices), []
    for item in items:
        if item is None:
            rest.pop(0)
        elif isinstance(item, slice):
            if known(item.step) not in (None, 1) or (item.step is not None and known(item.step) is None):
                raise Unread("a slice with a step")
            start = 0 if item.start is None else item.start
            result.append(moved(rest.pop(0), start, source[len(result)]))
        elif sized(item) is not None:
            result.append(moved(ZERO, item, source[len(result)]))
        else:
            raise Unread("an index that is a tensor")
    return result


def _flatten(node, indices):
    return _reshape(node, indices)


def _squeeze(node, indices):
    source, dims = shape(node.args[0]), argument(node, 1, "dim")
    if dims is None:
        gone = [n for n, each in enumerate(source) if each == 1]
    else:
        dims = dims if isinstance(dims, (tuple, list)) else [dims]
        gone = [dim % len(source) for dim in dims if source[dim] == 1]
    rest = list(indices)
    return [ZERO if n in gone else rest.pop(0) for n in range(len(source))]


_VIEWS = {
    "transpose": _transpose, "t": _transpose, "mT": _transpose, "permute": _permute, "movedim": _movedim,
    "unsqueeze": _unsqueeze, "squeeze": _squeeze, "expand": _expand, "reshape": _reshape, "flatten": _flatten,
    "unflatten": _reshape, "select": _select, "narrow": _narrow, "slice": _slice, "getitem": _getitem,
    "repeat_interleave": _interleave, "same": lambda node, indices: indices,
}


def is_view(node):
    """Whether it only moves elements, and the first argument has them."""
    if name(node) == "getattr":
        return node.args[1] in ("T", "mT") and is_tensor(node.args[0])
    return name(node) in _VIEWS and bool(node.args) and is_tensor(node.args[0]) and is_tensor(node)


def viewed(node, indices):
    """Indices of the first argument of a view."""
    view = _VIEWS[node.args[1] if name(node) == "getattr" else name(node)] \
        if not (name(node) == "getattr" and node.args[1] == "T") else _transpose
    result = view(node, list(indices))
    if len(result) != len(shape(node.args[0])):
        raise Unread(f"{written_name(node)} of dimensions that do not fit")
    return result


def drops_nothing(node):
    """Whether this dropout drops nothing."""
    share, training = known(argument(node, 1, "p", 0.5)), known(argument(node, 2, "training", True))
    return share == 0 or training is False


ADDED = ("baddbmm", "addmm")  # products to which something is added


def product_letters(node):
    """(a, b, letters of a, of b, of the result) of a product; None in place of the letter
    of a dimension that has size 1 where the result has more."""
    kind = name(node)
    if kind in ("matmul", "bmm", "__matmul__", "mm", "linalg_matmul"):
        a, b = argument(node, 0, "input"), argument(node, 1, "other", node.kwargs.get("mat2"))
        return _matmul(a, b, node)
    if kind == "inner" and is_tensor(node) and len(shape(node)) == 2:
        a, b = argument(node, 0, "input"), argument(node, 1, "other")
        return (a, b, ["i", "d"], ["j", "d"], ["i", "j"]) if len(shape(a)) == len(shape(b)) == 2 else None
    if kind in ADDED:
        a, b = (argument(node, n, {"baddbmm": "batch", "addmm": "mat"}[kind] + str(n)) for n in (1, 2))
        is_layer = kind == "addmm" and any(isinstance(value(each), torch.nn.Parameter) for each in node.all_input_nodes)
        return None if is_layer else _matmul(a, b, node)
    if kind == "einsum":
        return _einsum(node)
    return None


def _matmul(a, b, node):
    if not (is_tensor(a) and is_tensor(b)):
        return None
    sizes = shape(node)
    rank = len(sizes)
    if min(len(shape(a)), len(shape(b))) < 2 or rank > 6:
        return None
    batch = [f"n{number}" for number in range(rank - 2)]

    def letters(operand, last):
        own = shape(operand)[:-2]
        kept = batch[len(batch) - len(own):]
        outer = sizes[len(batch) - len(own):]
        return [None if n == 1 and wide != 1 else letter for n, wide, letter in zip(own, outer, kept)] + last

    return a, b, letters(a, ["i", "d"]), letters(b, ["d", "j"]), batch + ["i", "j"]


def _einsum(node):
    text = node.args[0]
    operands = node.args[1:]
    if len(operands) == 1 and isinstance(operands[0], (tuple, list)):
        operands = operands[0]
    if not isinstance(text, str) or len(operands) != 2 or not all(map(is_tensor, operands)):
        return None
    inputs, _, result = text.replace(" ", "").partition("->")
    first, second = inputs.split(",")
    wide = max(len(shape(operand)) - len(letters.replace("...", ""))
               for operand, letters in zip(operands, (first, second)))
    batch = [f"n{number}" for number in range(wide)]
    if "->" not in text:  # what is there once, by the alphabet
        result = "..." * ("..." in inputs) + "".join(sorted(
            x for x in inputs if x.isalpha() and inputs.count(x) == 1))

    def spelled(letters, rank):
        before, dots, after = letters.partition("...")
        count = rank - len(before) - len(after)
        return [*before, *batch[wide - count:], *after] if dots else [*before]
    result = spelled(result, len(shape(node)))
    letters = [spelled(own, len(shape(operand))) for own, operand in zip((first, second), operands)]
    if any(len(set(own)) != len(own) for own in (*letters, result)):
        return None
    sizes = collections.defaultdict(set)
    for own, operand in zip(letters, operands):
        for letter, size in zip(own, shape(operand)):
            sizes[letter].add(size)
    # What is of size 1 beside more is repeated.
    a, b = ([None if size == 1 and len(sizes[letter]) > 1 else letter for letter, size in zip(own, shape(operand))]
            for own, operand in zip(letters, operands))
    return operands[0], operands[1], a, b, result
