#!/usr/bin/env python3
#===----------------------------------------------------------------------===#
#
# Part of attn, an attention compiler.
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===----------------------------------------------------------------------===#
"""torch.compile(backend="attn") on a GPU: attention as people write it (the models of
test/python/torch_models.py) in bf16, with gradients, beside eager.

    backend_cases.py --lib build/lib/libattn.so
    backend_cases.py --lib ... --only Llama,T5 --dtype f16
    backend_cases.py --lib ... --device cpu --inner eager     a test of this program itself

Each softmax and call of attention has to become a kernel; errors beside float64 may be
twice (of gradients three times) those of eager in the same type. Models run in several
processes (case_pool.py). After --time-limit seconds no new one is begun: those left out
are listed. Exit code 0: all passed; 1: some did not; 77: no GPU.
"""

import argparse
import copy
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parents[3]
for place in ("python", "test/python", "test/Integration/GPU"):
    sys.path.insert(0, str(ROOT / place))
import case_pool  # noqa: E402
from case_pool import Verdict  # noqa: E402
from gpu import SKIP, find_torch  # noqa: E402
from model_errors import judge  # noqa: E402

WHAT = 'Models through torch.compile(backend="attn") beside eager'

ELEMENTS = {"bf16": "bfloat16", "f16": "float16"}


def run(torch, module, call, inputs, d_output):
    """(output, gradients of the parameters)"""
    parameters = dict(module.named_parameters())
    output = call(*inputs)
    gradients = torch.autograd.grad(output, list(parameters.values()), d_output.to(output), allow_unused=True)
    return output.detach(), {name: g for name, g in zip(parameters, gradients) if g is not None}


def check(cls, device, element="bf16", inner=None):
    """(what to say, whether the model is right)."""
    import torch

    import attn.torch
    from torch_models import BATCH, LENGTH, WIDTH

    dtype = getattr(torch, ELEMENTS[element])
    torch.manual_seed(0)
    module = cls()
    given = [torch.randn(BATCH, LENGTH, WIDTH), *(module.inputs() if hasattr(module, "inputs") else ())]
    d_output = torch.randn(BATCH, LENGTH, WIDTH).to(device, dtype)

    def inputs_in(dtype):
        return [x.to(device).to(dtype) if x.is_floating_point() else x.to(device) for x in inputs]

    inputs = [x.to(dtype) if x.is_floating_point() else x for x in given]
    module = module.to(device, dtype)
    wide = copy.deepcopy(module).double()
    exact = run(torch, wide, wide, inputs_in(torch.float64), d_output)
    inputs = inputs_in(dtype)
    rough = run(torch, module, module, inputs, d_output)
    explanation = attn.torch.explain(module, *inputs)
    torch._dynamo.reset()
    options = {} if inner is None else {"inner": inner}
    call = torch.compile(module, backend="attn", dynamic=True, options=options)
    said, agrees = judge(element, run(torch, module, call, inputs, d_output), rough, exact)
    if not explanation.raised == len(explanation) > 0:
        return str(explanation), False
    return said, agrees


def run_case(torch, name, options):
    from torch_models import MODELS

    models = {cls.__name__: cls for cls in MODELS}
    return Verdict(*check(models[name], options.device, options.dtype, options.inner))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dtype", default="bf16", choices=tuple(ELEMENTS))
    parser.add_argument("--inner", help="what the backend gives the rest of a graph to (default: its own)")
    options = case_pool.parse(case_pool.add_arguments(parser))
    if find_torch("cpu" if options.device == "cpu" else "sm_80") is None:
        return SKIP
    import torch_models

    names = case_pool.chosen(options, [cls.__name__ for cls in torch_models.MODELS])
    return case_pool.main(options, names, run_case, WHAT)


if __name__ == "__main__":
    sys.exit(main())
