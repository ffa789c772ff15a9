#===----------------------------------------------------------------------===#
#
# Part of attn, an attention compiler.
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===----------------------------------------------------------------------===#
"""Score and mask functions inside of torch.compile: Dynamo turns them into a graph, which
is read where autograd meets it and becomes a program; all other stages see
attn::forward.

Dynamo takes functions of its caller only together with a higher-order operator. Ours
wraps a body that calls both functions on scalars, and attn::marked on all that attention
is given: its results have the sizes of attention's, and its arguments tell, among the
inputs of the graph, which is which.
"""

import ast
import inspect
import types

import torch
from torch._higher_order_ops.base_hop import BaseHOP
from torch.overrides import TorchFunctionMode

from . import launches, programs

_LIBRARY = torch.library.Library("attn", "FRAGMENT")
_LIBRARY.define("marked(Tensor q, Tensor k, Tensor v, Tensor[] scalars, Tensor[] operands) -> (Tensor, Tensor)",
                tags=(torch.Tag.pt2_compliant_tag,))


@torch.library.register_fake("attn::marked")
def _fake_marked(q, k, v, scalars, operands):
    return launches.empty_results(q, v)


_LIBRARY.define("apart(Tensor x) -> Tensor", tags=(torch.Tag.pt2_compliant_tag,))


# The tensor itself. While Dynamo traces it is another one (see _Traced): it refuses inputs
# of a higher-order operator that are views of one tensor, as q, k and v of models are.
_LIBRARY.impl("apart", lambda x: x, "CompositeImplicitAutograd")


class _WithFunctions(BaseHOP):
    """(o, lse, results of functions) of a body that holds attn::marked. Keywords: choice,
    what else the program depends on, as text; has_score, has_mask."""

    def __init__(self):
        super().__init__("attn_with_functions")

    def __call__(self, subgraph, *inputs, **keywords):
        if isinstance(subgraph, types.FunctionType) and not torch.compiler.is_compiling():
            return _without_graph(subgraph, inputs, keywords)
        return super().__call__(subgraph, *inputs, **keywords)

    def gen_schema(self, subgraph, *inputs, **keywords):
        with _Traced():  # traces the body once more
            return super().gen_schema(subgraph, *inputs, **keywords)

    def _call_Autograd(self, subgraph, *inputs, **keywords):
        return _attend(subgraph, inputs, keywords)

    def _call_CompositeExplicitAutograd(self, subgraph, *inputs, **keywords):
        return _attend(subgraph, inputs, keywords)

    def _call_Functionalize(self, context, subgraph, *inputs, **keywords):
        inputs = context.unwrap_tensors(inputs)
        with context.redispatch_to_next():
            return context.wrap_tensors(_attend(subgraph, inputs, keywords))

    def _call_ProxyTorchDispatchMode(self, proxy_mode, subgraph, *inputs, **keywords):
        with proxy_mode:
            return _attend(subgraph, inputs, keywords)


_with_functions = _WithFunctions()


@torch.compiler.assume_constant_result
def _written(**choice):
    return repr(choice)


def attend(q, k, v, operands, score, mask, choice):
    """(o, lse) of a program with these functions, for Dynamo to see; `choice` is the rest
    of programs.Choice."""
    x = torch.zeros((), dtype=torch.float32, device=q.device)
    positions = [torch.zeros((), dtype=torch.int32, device=q.device) for _ in range(4)]

    def body(q, k, v, x, b, h, i, j, *operands):
        results = list(torch.ops.attn.marked(q, k, v, [x, b, h, i, j], list(operands)))
        if score is not None:
            results.append(_owned(score(x, b, h, i, j), x))
        if mask is not None:
            results.append(_owned(mask(b, h, i, j), x))
        return tuple(results)
    written, depth = _written(**choice), _begin_tracing()
    q, k, v, *operands = (torch.ops.attn.apart(tensor) for tensor in (q, k, v, *operands))
    o, lse, *_ = _with_functions(
        body, q, k, v, x, *positions, *operands, choice=written, has_score=score is not None,
        has_mask=mask is not None)
    _end_tracing(depth)
    return o, lse


def _owned(value, x):
    """The result of a function as a tensor that is none of the inputs."""
    if isinstance(value, torch.Tensor):
        return value.clone()
    return torch.full((), value, device=x.device)


class _Traced(TorchFunctionMode):
    """What operations give while Dynamo traces, which sees nothing of it: the graph has
    them as they were. Indices without dimensions, which would be numbers of Python's that
    nobody knows, are vectors of one element; what is taken apart is a copy."""

    def __torch_function__(self, function, types, args=(), kwargs=None):
        if function is torch.Tensor.__getitem__:
            return _element(args[0], args[1] if isinstance(args[1], tuple) else (args[1],))
        if function in (torch.ops.attn.apart, torch.ops.attn.apart.default):
            return args[0].clone()
        return function(*args, **(kwargs or {}))


# Dynamo calls these where it meets them; what an error leaves open its cleanup ends.

@torch.compiler.assume_constant_result
def _begin_tracing():
    from torch._dynamo.symbolic_convert import InstructionTranslator

    depth = torch._C._len_torch_function_stack()
    InstructionTranslator.current_tx().output.add_cleanup_hook(lambda: _leave(depth))
    _Traced().__enter__()
    return depth


@torch.compiler.assume_constant_result
def _end_tracing(depth):
    _leave(depth)
    return True


def _leave(depth):
    while torch._C._len_torch_function_stack() > depth:
        _Traced().__exit__(None, None, None)  # of the one on top


def _element(x, at):
    """x[at]."""
    if any(i is Ellipsis for i in at):
        place = [i is Ellipsis for i in at].index(True)
        rest = x.dim() - len([i for i in at if i is not None]) + 1
        at = (*at[:place], *[slice(None)] * rest, *at[place + 1:])
    sizes = [i.dim() if isinstance(i, torch.Tensor) and i.dtype != torch.bool else -1 for i in at]
    if 0 not in sizes:
        return x[at]
    found = x[tuple(i.reshape(1) if size == 0 else i for i, size in zip(at, sizes))]
    if max(sizes) > 0 or any(isinstance(i, (list, torch.Tensor)) and size < 0 for i, size in zip(at, sizes)):
        return found  # another index is a vector
    # The one element stands where the indices did, or in front, where something is between.
    kept = [size for i, size in zip(at, sizes) if not isinstance(i, int)]
    first = kept.index(0)
    together = kept[first:first + kept.count(0)]
    return found.select(first if max(together) == min(together) else 0, 0)


def _attend(module, inputs, keywords):
    module = getattr(module, "fn", module)
    nodes = list(module.graph.nodes)
    given = dict(zip([node for node in nodes if node.op == "placeholder"], inputs))
    marked = next(node for node in nodes if "attn.marked" in str(node.target))
    *tensors, scalars, operands = marked.args
    q, k, v = (given[node] for node in tensors)
    results = list(nodes[-1].args[0][2:])
    functions = {"score": None, "mask": None}
    for kind, names in (("score", scalars), ("mask", scalars[1:])):
        if keywords["has_" + kind]:
            functions[kind] = _function(module, results.pop(0), given, names)
    results = _run(q, k, v, [given[node] for node in operands], functions["score"], functions["mask"], keywords)
    unused = [given[scalars[0]].clone() for function in functions.values() if function]
    return (*results, *unused)


@torch.compiler.disable
def _without_graph(body, inputs, keywords):
    """The same where Dynamo could not read the functions, and gave up: with the body
    itself."""
    functions = inspect.getclosurevars(body).nonlocals
    (q, k, v), operands = inputs[:3], list(inputs[8:])
    return _run(q, k, v, operands, functions.get("score"), functions.get("mask"), keywords)


def _run(q, k, v, operands, score, mask, keywords):
    from .functional import regions

    choice = ast.literal_eval(keywords["choice"])
    choice.update(regions(score, mask, operands, q, k, choice["packed"])[0])
    return torch.ops.attn.forward(q, k, v, operands, programs.text(programs.Choice(**choice)))


def _function(module, result, given, names):
    """The function of the placeholders `names` that computes the node `result`."""
    needed, rest = set(), [result]
    while rest:
        node = rest.pop()
        if node not in needed:
            needed.add(node)
            rest += node.all_input_nodes

    def function(*values):
        known = {**given, **dict(zip(names, values))}

        def look(arguments):
            return torch.fx.node.map_arg(arguments, lambda node: known[node])
        for node in module.graph.nodes:
            # Whether there are gradients is said between the operations.
            if (node not in needed or node in known) and node.target is not torch._C._set_grad_enabled:
                continue
            arguments, keywords = look(node.args), look(node.kwargs)
            if node.op == "get_attr":
                known[node] = getattr(module, node.target)
            elif node.op == "call_method":
                known[node] = getattr(arguments[0], node.target)(*arguments[1:], **keywords)
            elif node.op == "call_module":
                known[node] = module.get_submodule(node.target)(*arguments, **keywords)
            else:
                known[node] = node.target(*arguments, **keywords)
        return known[result]
    return function
