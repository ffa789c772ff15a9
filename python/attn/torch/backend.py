#===----------------------------------------------------------------------===#
#
# Part of attn, an attention compiler.
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===----------------------------------------------------------------------===#
"""torch.compile(model, backend="attn"), attn.torch.enable() and explain()."""

import functools
import os
import warnings

import torch

from . import replacing

INNER = ("inductor", "aot_eager", "eager")
_LIMIT = 100  # characters of a remark in a table


class Explanation(list):
    """What explain() found: a list of Found, which prints as a table.

    raised  how many became kernels.
    graphs  how many graphs the model was traced to.
    """

    graphs = 0

    @property
    def raised(self):
        return sum(found.raised for found in self)

    def __str__(self):
        lines = [f"{self.raised} of {len(self)} softmaxes and calls of attention raised, in {self.graphs} "
                 f"graph{'s' * (self.graphs != 1)}"]
        for found in self:
            mark = "raised    " if found.raised else "not raised"
            place = os.path.join(*found.place.split(os.sep)[-2:]) if found.place else ""
            lines.append(f"  {mark} {found.kind} {found.name}{f' ({place})' if place else ''}: {found.remark}")
            if found.edge:
                lines.append(f"    at {found.edge}")
        if not self.graphs:
            lines.append("  PyTorch made no graph of it: TORCH_LOGS=graph_breaks says why")
        return "\n".join(lines)

    __repr__ = __str__


def backend(module, example_inputs, *, inner=None, options=None, mode=None, listener=None):
    """The backend "attn" of torch.compile: each attention of a graph that is proved to be
    one becomes a kernel, the rest goes to another backend.

    options  a dictionary: "inner": "inductor" (the default where its compiler works),
             "aot_eager" or "eager" (else) for the rest; all other options are Inductor's.
    listener gets the list of Found of each graph.
    """
    options = dict(options or {})
    inner = options.pop("inner", inner)
    if inner is None:
        inner = "inductor" if _has_inductor(_devices(module)) else "eager"
    if inner not in INNER:
        raise ValueError(f"inner: wanted {', '.join(INNER[:-1])} or {INNER[-1]}, got {inner!r}")
    if inner != "inductor" and (options or mode not in (None, "default")):
        given = ", ".join([*options, *(["mode"] if mode not in (None, "default") else [])])
        raise ValueError(f"options of Inductor ({given}) come with inner='inductor', got {inner!r}")
    found = replacing.replace(module)
    if listener is not None:
        listener(found)
    if inner == "eager":
        return module.forward
    if inner == "aot_eager":
        from torch._dynamo.backends.debugging import aot_eager

        return aot_eager(module, example_inputs)
    from torch._inductor.compile_fx import compile_fx

    patches = dict(options)
    if mode is not None and mode != "default":
        patches = {**torch._inductor.list_mode_options(mode), **patches}
    return compile_fx(module, example_inputs, config_patches=patches or None)


def _devices(module):
    return frozenset(
        value.device.type
        for node in module.graph.nodes
        for value in [node.meta.get("example_value")]
        if isinstance(value, torch.Tensor)
    )


@functools.lru_cache(maxsize=None)
def _has_inductor(devices):
    """Whether Inductor has the compilers that tensors of these devices want."""
    try:
        if "cpu" in devices:
            from torch._inductor.cpp_builder import get_cpp_compiler

            get_cpp_compiler()
        if "cuda" in devices:
            from torch.utils._triton import has_triton

            if not has_triton():
                raise RuntimeError("Triton does not work")
    except Exception as error:  # whatever is missing
        warnings.warn(f"attn: the graph around attention runs eagerly, for Inductor has no compiler: "
                      f"{str(error).splitlines()[0] if str(error) else type(error).__name__}", stacklevel=2)
        return False
    return True


def explain(model, *inputs, **keywords):
    """Which attentions of a model become kernels, and why the others do not.

    model    a module or function, called as model(*inputs, **keywords), once, in eager
             mode. Sizes are known, as in the first call of torch.compile(model,
             backend="attn"); those of torch._dynamo.mark_dynamic(input, dim) are not.
    Returns an Explanation, a list with a Found for each softmax and each call of
    scaled_dot_product_attention in the graphs that torch.compile makes: kind, name, place,
    raised, remark (what was recognised, or the edge that failed), program and edge ("file:line:
    text" of what failed in the model's code, "" where nothing did).
    """
    explanation = Explanation()

    def note(module, example_inputs):
        for part in module.modules():
            if isinstance(part, torch.fx.GraphModule):
                replacing.spell(part.graph)
                part.recompile()
                explanation.extend(each.found for each in replacing.analyse(part.graph))
        explanation.graphs += 1
        return module.forward

    torch._dynamo.reset()
    try:
        torch.compile(model, backend=note)(*inputs, **keywords)
    finally:
        torch._dynamo.reset()
    return explanation


# ---------------------------------------------------------------------------
# As a pass of Inductor
# ---------------------------------------------------------------------------


class _Pass:
    """A pass before gradients, after the one that was there."""

    def __init__(self, before):
        self.before = before

    def __call__(self, graph):
        if self.before is not None:
            self.before(graph)
        replacing.replace_in(graph)

    def uuid(self):
        return "attn"


def enable(wanted=True):
    """From now on Inductor (torch.compile without a backend) replaces attention by
    kernels, too; enable(False) ends that. A pass that was set before runs before."""
    from torch._inductor import config

    current = config.pre_grad_custom_pass
    if wanted and not isinstance(current, _Pass):
        config.pre_grad_custom_pass = _Pass(current)
    elif not wanted and isinstance(current, _Pass):
        config.pre_grad_custom_pass = current.before


def register():
    """Makes "attn" a name of a backend of torch.compile."""
    from torch._dynamo.backends.registry import _COMPILER_FNS, register_backend

    if "attn" not in _COMPILER_FNS:
        register_backend(backend, name="attn")
