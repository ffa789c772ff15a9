#===----------------------------------------------------------------------===#
#
# Part of attn, an attention compiler.
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===----------------------------------------------------------------------===#
"""Attention in graphs of PyTorch: found, proved and replaced by attn::forward."""

import collections
import functools
import operator

import torch

from .._capi import AttnError
from ..raising import raise_
from . import contractions, forms, inlining, kernels, nodes, ops, places, raised, reading, softmaxes, spelling
from .indices import Index, Unread
from .outline import CallOutline, FlexOutline, Outline
from .sdpa import scaled_dot_product_attention

# One softmax, or one call of an attention function.
#   kind    "softmax", "scaled_dot_product_attention" or "flex_attention"
#   name    of its node in the graph
#   place   the file and line it comes from, "" where nobody knows
#   raised  whether a kernel takes its place
#   remark  what was recognised, or the edge that failed
#   program the text of the kernel's program; None, too, for a call that goes to
#           attn.torch's function of the same name
#   edge    file, line and text of what failed, "" where nobody knows
Found = collections.namedtuple("Found", "kind name place raised remark program edge", defaults=("",))

_MAX_STEPS = 40  # from a softmax to its product
_CALLS = ("scaled_dot_product_attention", "flex_attention")


# A Found, its node, and what replaces it: a program with the outline that it is of, or
# the drop-in function.
Rewritten = collections.namedtuple("Rewritten", "found node outline program dropin")


def replace(module):
    """Puts attn::forward in the place of each attention of a graph (and of the graphs
    in it) that is proved to be one; returns a list of Found."""
    found = []
    for part in module.modules():
        if isinstance(part, torch.fx.GraphModule):
            found += replace_in(part.graph)
            part.recompile()
    return found


def replace_in(graph):
    """The same for one graph."""
    spell(graph)
    rewritten = analyse(graph)
    replaced = {}
    for each in rewritten:
        if each.program is not None:
            _replace_one(graph, each, replaced)
        elif each.dropin is not None:
            each.node.target = each.dropin
    graph.lint()
    return [each.found for each in rewritten]


def spell(graph):
    """Spells a graph as analyse() reads it; it computes the same."""
    inlining.inline(graph)
    spelling.spell(graph)
    contractions.spell(graph)


def analyse(graph):
    """What there is, without a change: a list of Rewritten."""
    order, result = nodes.Graph(graph), []
    for node in graph.nodes:
        kind = nodes.name(node)
        is_call = kind in _CALLS
        outline = program = dropin = edge = None
        is_possible = False
        try:
            if not is_call and not softmaxes.is_softmax(order, node):
                continue
            _check_transforms(order, node)
            is_possible = True
            outline, program, remark = (_of_call if is_call else _of_softmax)(order, node)
        except Unread as reason:
            remark, edge = str(reason), reason.node or node
            if is_possible and kind == "scaled_dot_product_attention" and _is_served(node):
                dropin, remark = scaled_dot_product_attention, f"by the drop-in function: {remark}"
        except Exception as error:  # a fault of this package is no reason not to compile a model
            remark = f"this could not be read: {type(error).__name__}: {error}"
        found = Found(kind if is_call else "softmax", node.name, places.written(node), (program or dropin) is not None, remark,
                      program.text if program is not None else None, places.quoted(edge) if edge is not None else "")
        result.append(Rewritten(found, node, outline, program, dropin))
    # A softmax whose weights are divided again is a part of another.
    inner = {each for rewritten in result if rewritten.program is not None for each in rewritten.outline.spine}
    return [each for each in result if each.found.raised or each.node not in inner]


# ---------------------------------------------------------------------------
# What is there
# ---------------------------------------------------------------------------


def _weights(graph, softmax):
    """(weights, product, quotient): the product with the values, its factor, and what it is
    divided by; None: nothing."""
    product = softmaxes.divided_product(graph, softmax)
    if product is not None:
        return product.factor, product.product, softmax
    node, parts = softmax, softmaxes.divided(graph, softmax)
    if parts is not None and nodes.name(parts[0]) != "exp":  # the product is divided
        output = parts[0]
        for factor in (nodes.product_letters(output) or ())[:2]:
            if nodes.name(softmaxes.behind_moves(factor)) == "exp":
                return factor, output, softmax
        if nodes.product_letters(softmaxes.behind_moves(output)):
            raise Unread("a view of the product with values is divided", softmax)
    for _ in range(_MAX_STEPS):
        users = [user for user in node.users if not _is_guard(user, node)]
        if any(user.op == "output" for user in users):
            raise Unread(f"the weights are {'also ' * (len(users) > 1)}returned or kept in an attribute", node)
        if len(users) != 1:
            what = nodes_read(users)
            raise Unread(f"the weights are read by several operations: {what}" if users
                         else "nothing reads the weights", users[-1] if users else node)
        user = users[0]
        if nodes.product_letters(user):
            return node, user, None
        if nodes.name(user) == "dropout" and not nodes.drops_nothing(user):
            raise Unread("dropout drops weights: PyTorch's generator says which", user)
        if not nodes.is_tensor(user) or not (reading.is_read(user) or nodes.name(user) == "cat"):
            raise Unread(f"the weights are read by {nodes.written_name(user)}", user)
        node = user
    raise Unread("no product with values is near the softmax")


def _is_guard(node, weights):
    """Whether it only says where weights are no numbers, to what replaces them."""
    return nodes.name(node) in ("isnan", "bitwise_not", "logical_not", "zeros_like") and all(
        user in weights.users or _is_guard(user, weights) for user in node.users)


def nodes_read(users):
    return ", ".join(sorted({nodes.written_name(user) for user in users}))


# Products that are not read as such, those of vectors and of three factors among them; with a
# parameter they are layers.
_UNREAD_PRODUCTS = ("linear", "bilinear", "addmm", "addbmm", "tensordot", "einsum", "matmul", "__matmul__", "mv", "cdist",
                    "cosine_similarity")


def _products(graph, softmax):
    """(the products that scores may be made of, the nearest first; the nearest that is not
    read, or None)"""
    seen, queue, found, unread = {softmax}, collections.deque([softmax]), [], None
    inner = softmaxes.as_softmax(graph, softmax)
    while queue and len(seen) < 1000:
        reader = queue.popleft()
        for node in [inner.scores] if inner and reader is softmax else reader.all_input_nodes:
            if node in seen:
                continue
            seen.add(node)
            if nodes.product_letters(node):
                found.append(node)
                continue
            if unread is None and nodes.name(node) in _UNREAD_PRODUCTS and not any(
                    isinstance(nodes.value(each), torch.nn.Parameter) for each in node.all_input_nodes):
                unread = node
            if nodes.name(node) not in ("linear", "layer_norm", "softmax", "scaled_dot_product_attention"):
                queue.append(node)
    return found, unread


def _of_softmax(graph, softmax):
    weights, output, quotient = _weights(graph, softmax)
    reason = None
    products, unread = _products(graph, softmax if quotient is None else weights)
    for product in products:
        attempt, attempts = 0, 1
        while attempt < attempts:
            for keeps_floats in (False, True):
                outline = None
                try:
                    outline = Outline(graph, product, output, weights, quotient, attempt)
                    return _prove(outline, keeps_floats)
                except Unread as error:
                    error.node = error.node or _edge(str(error), softmax, product, output)
                    reason = reason or error
            attempt, attempts = attempt + 1, outline.attempts if outline else 1
    if reason is None and unread is not None:
        reason = Unread(f"no product of queries and keys is before the softmax: {nodes.written_name(unread)} "
                        "is not read as one", unread)
    raise reason or Unread("no product of queries and keys is before the softmax")


_NAMED = (  # what reasons of the compiler speak of, and which node that is
    ("the product with the values", "output"), ("values", "output"), ("the weights are", "weights"),
    ("queries", "product"), ("query", "product"), ("keys", "product"), ("scale", "product"), ("scores", "product"),
)


def _edge(reason, softmax, product, output):
    """The node that a reason without one speaks of; None where that is not known."""
    named = next((node for words, node in _NAMED if words in reason), None)
    if named != "weights":
        return {"output": output, "product": product}.get(named)
    node, = softmax.users
    while node is not output and (nodes.is_view(node) or nodes.name(node) in ("to", "dropout")):
        node, = node.users
    return node


def _of_call(graph, call):
    reason = None
    for keeps_floats in (False, True):
        try:
            if nodes.name(call) == "flex_attention":
                outline = FlexOutline(graph, call, call.graph.owning_module)
            else:
                outline = CallOutline(graph, call)
            return _prove(outline, keeps_floats)
        except Unread as error:
            reason = reason or error
    raise reason


def _is_served(call):
    """Whether attn.torch.scaled_dot_product_attention takes what PyTorch's gets here."""
    query, key, value = (nodes.argument(call, n, name) for n, name in enumerate(("query", "key", "value")))
    mask = nodes.argument(call, 3, "attn_mask")
    tensors = [nodes.value(each) for each in (query, key, value)]
    dims = [nodes.shape(each)[-1] for each in (query, value)]
    return (
        len({tensor.dtype for tensor in tensors}) == 1
        and tensors[0].dtype in _ELEMENTS
        and all(tensor.device.type in ("cpu", "cuda") for tensor in tensors)
        and all(isinstance(dim, int) and dim <= 256 for dim in dims)
        and all(isinstance(size, int) for each in (query, key, value) for size in nodes.shape(each)[1:-2])
        and (mask is None or nodes.value(mask).dtype in (torch.bool, torch.float32, tensors[0].dtype))
        and all(nodes.known(nodes.argument(call, n, name, 0)) is not None
                for n, name in ((4, "dropout_p"), (5, "is_causal")))
        and (call.kwargs.get("scale") is None or nodes.known(call.kwargs["scale"]) is not None)
    )


@functools.lru_cache(maxsize=None)
def _raised(text):
    return raise_(text)


def _prove(outline, keeps_floats):
    """(outline, raised program, remark)"""
    outline.keeps_floats = keeps_floats
    text = outline.text()
    try:
        after, log = _raised(text)
    except AttnError as error:
        raise Unread(str(error).splitlines()[0]) from None
    if not any(": raised: " in line for line in log):
        raise Unread(log[-1].split(": not raised: ")[-1] if log else "what was found does not look like attention")
    program = raised.program(after)
    program = program._replace(text=forms.with_numerics(program.text, forms.numerics(None)))
    try:
        kernels.forward(program.text, nodes.value(outline.like).device, _lengths(outline.function.extents))
    except AttnError as error:
        raise Unread(str(error).splitlines()[0]) from None
    _check_gradients(outline, program)
    remark = log[-1].split(": raised: ")[-1]
    if program.element == "f32" and any(
            nodes.value(each.node).dtype != torch.float32 for each in outline.arguments if each.name in ("%q", "%k", "%v")):
        remark += ", in f32, to which queries, keys or values are widened"
    return outline, program, remark


def _lengths(extents):
    """kernels.lengths of the calls that will be; None where they are not known."""
    batch, heads, queries, keys = (extents.get(var, 1) for var in "bhij")
    if not all(isinstance(size, int) for size in (batch, heads, queries, keys)):
        return None
    return queries, keys, batch * heads, batch * heads


def _check_transforms(graph, node):
    """Kernels have no derivatives of the forward mode, and none of derivatives."""
    transforms = graph.transforms(node)
    if "jvp" in transforms:
        raise Unread("inside of torch.func.jvp: a kernel has no derivatives of the forward mode")
    if transforms.count("grad") > 1 or "grad" in transforms and torch.is_grad_enabled() and any(
            nodes.value(each).requires_grad for each in graph.order if each.op == "placeholder" and nodes.is_tensor(each)):
        raise Unread("inside of torch.func.grad, of what has gradients: a kernel has no gradients of gradients")


def _check_gradients(outline, program):
    """Captures that kernels have no gradients of are refused here."""
    captured = [nodes.value(node) for node in (outline.arguments[number].node for number in program.operands) if node]
    if any(tensor.requires_grad and tensor.is_floating_point() for tensor in captured):
        try:
            kernels.compile_backward(kernels.in_order(program.text), nodes.value(outline.like).device, False, True)
        except AttnError as error:
            raise Unread("gradients: " + str(error).splitlines()[0]) from None


# ---------------------------------------------------------------------------
# What takes its place
# ---------------------------------------------------------------------------


def _replace_one(graph, rewritten, replaced):
    outline, program, old = rewritten.outline, rewritten.program, rewritten.outline.replaced
    with graph.inserting_before(old):
        named = {each.name: each for each in outline.arguments}
        factors = [_argument(graph, outline, named["%" + name], replaced) for name in "qkv"]
        wanted = next(dtype for dtype, name in _ELEMENTS.items() if name == program.element)
        factors = [_cast(graph, factor, nodes.value(named["%" + name].node).dtype, wanted)
                   for name, factor in zip("qkv", factors)]
        operands = [_argument(graph, outline, outline.arguments[number], replaced) for number in program.operands]
        target = ops.forward if outline.graph.transforms(old) else torch.ops.attn.forward.default
        both = graph.call_function(target, (*factors, operands, program.text))
        result = graph.call_function(operator.getitem, (both, 0))
        if outline.clears_nan:
            result = _without_nan(graph, result, graph.call_function(operator.getitem, (both, 1)))
        result = _in_form(graph, result, outline, replaced)
        new = _cast(graph, result, wanted, nodes.value(old).dtype)
    new.meta = dict(old.meta)
    old.replace_all_uses_with(new)
    replaced[old] = new
    for node in _dead(graph, outline):
        graph.erase_node(node)


def _without_nan(graph, result, lse):
    """0 in rows with a NaN or +inf among their scores."""
    is_number = graph.call_method("lt", (graph.call_method("detach", (lse,)), float("inf")))
    hidden = graph.call_method("unsqueeze", (graph.call_method("logical_not", (is_number,)), -1))
    return graph.call_method("masked_fill", (result, hidden, 0.0))


_ELEMENTS = {torch.float16: "f16", torch.bfloat16: "bf16", torch.float32: "f32"}


def _cast(graph, node, old, new):
    return node if old == new else graph.call_method("to", (node, new))


def _argument(graph, outline, argument, replaced):
    node = replaced.get(argument.node, argument.node)
    for step in argument.steps:
        if step[0] == "full":  # there is no node
            node = graph.call_function(torch.full, ((step[1],), step[2]), {
                "dtype": torch.float32, "device": nodes.value(outline.like).device})
        elif step[0] == "expand":
            node = _expanded(graph, outline, node, step, argument, replaced)
        elif step[0] == "reshape":
            node = graph.call_method("reshape", (node, step[1]))
        elif step[0] == "behind":
            node = graph.call_function(operator.getitem, (node, (*[slice(None)] * step[1], slice(step[2], None))))
        elif step[0] == "pad":
            node = graph.call_function(torch.nn.functional.pad, (node, step[1]))
        else:
            node = graph.call_method(step[0], (node, *step[1:]))
    return node


def _expanded(graph, outline, node, step, argument, replaced):
    """Along one dimension: to a size that is known, or that another factor has."""
    _, place, var = step
    extent = outline.extent(var)
    if not isinstance(extent, int):
        other = next((each for each in outline.arguments if each.name in ("%q", "%k", "%v") and each is not argument
                      and all(own[0] != "expand" or own[2] != var for own in each.steps)), None)
        if other is None:
            raise AttnError("no factor has the batch")
        extent = graph.call_method("size", (_argument(graph, outline, other, replaced), 0))
    sizes = [-1] * 4
    sizes[place] = extent
    return graph.call_method("expand", (node, *sizes))


def _in_form(graph, node, outline, replaced):
    """(b, h, i, e) as the product of weights and values had it."""
    parts, dim = [], outline.canonical["e"]
    if dim != outline.extent("e"):
        node = graph.call_method("narrow", (node, -1, 0, dim))
    for var in "bhie":
        own = outline.parts_of(var)
        if not own:
            node = graph.call_method("select", (node, len(parts), 0))
            continue
        if len(own) > 1:
            sizes = [digit.size if isinstance(digit.size, int) else -1 for digit in own]
            for digit in outline.unknown(own)[1:]:
                values, dim = outline.size_of(digit)
                sizes[own.index(digit)] = graph.call_method("size", (replaced.get(values, values), dim))
            node = graph.call_method("unflatten", (node, len(parts), tuple(sizes)))
        parts += own
    order = [parts.index(digit) for index in outline.result for digit in index.digits]
    if order != list(range(len(order))):
        node = graph.call_method("permute", (node, tuple(order)))
    for dim, index in enumerate(outline.result):
        assert isinstance(index, Index)
        if not index.digits:
            node = graph.call_method("unsqueeze", (node, dim))
        elif len(index.digits) > 1:
            node = graph.call_method("flatten", (node, dim, dim + len(index.digits) - 1))
    return node


_PURE = {
    "softmax", "cat", "max", "getattr", "matmul", "bmm", "baddbmm", "einsum", "size", "dropout", "add", "sub",
    "mul", "div", "eq", "ne", "lt", "le", "gt", "ge", "where", "masked_fill", "to", "and", "or", "xor", "tril",
    "triu", "arange", "full", "zeros", "ones", "embedding", "tanh", "neg", "bitwise_not", "logical_not", "detach",
    "scaled_dot_product_attention", "flex_attention", "argsort", "sum", "abs", "log", "exp", "clamp", "minimum", "maximum", "full_like", "zeros_like",
    "hstack", "vstack", "pow", "floordiv", "remainder", "rsub", "sigmoid", "logical_and", "logical_or", "__matmul__", "mm", "inner",
    "linalg_matmul", "logsumexp", "addmm", "log_softmax", "pad", "nan_to_num",
}


def _dead(graph, outline):
    """What nothing reads since the output was replaced, users first. A write is read by all
    that reads the memory behind it."""
    spine = {nodes.storage(node) for node in outline.spine if nodes.is_tensor(node)}
    candidates, order, writes = {outline.replaced}, {}, {}
    for number, node in enumerate(graph.nodes):
        order[node], targets = number, nodes.writes_to(node)
        if targets and all(nodes.storage(target) in spine for target in targets):
            candidates.add(node)
            for target in targets:
                writes.setdefault(nodes.storage(target), []).append(node)
        elif not targets and (reading.is_read(node) or nodes.name(node) in _PURE) and (
                nodes.name(node) != "dropout" or nodes.drops_nothing(node)):
            candidates.add(node)
    stack = [node for node in graph.nodes if node not in candidates]
    while stack:
        node = stack.pop()
        for each in node.all_input_nodes:
            written = writes.get(nodes.storage(each), ()) if nodes.is_tensor(each) else ()
            needed = {each, *(write for write in written if order[write] < order[node])} & candidates
            candidates -= needed
            stack += needed
    return [node for node in reversed(graph.nodes) if node in candidates]
