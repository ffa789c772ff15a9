#===----------------------------------------------------------------------===#
#
# Part of attn, an attention compiler.
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===----------------------------------------------------------------------===#
"""A program of test/Masks with inputs for one call, on any target."""

import attn
import numpy as np

from cases import Case
from emulate import Artifact, Scalar
from emulated_case import Array, Inputs, judge, run
from masks import Mask, Shape

PLANS = {
    "cpu": "#attn.plan<target = cpu, block_q = 16, block_k = 16>",
    "sm_80": "#attn.plan<target = sm_80, block_q = 64, block_k = 32, warps = 4, stages = 2>",
    "sm_90a": "#attn.plan<target = sm_90a, block_q = 64, block_k = 64, warps = 4, stages = 2>",
}


def numpy_view(array):
    """As attn.Kernel takes it: bits, but for the types that NumPy has."""
    type = {"f16": np.float16, "f32": np.float32, "i1": np.bool_, "i8": np.int8,
            "i16": np.int16, "i32": np.int32, "i64": np.int64}.get(array.element)
    return array.view if type is None else array.view.view(type)


class MaskInputs(Inputs):
    def __init__(self, name, queries, keys, batch=2, kv_heads=1, group=2, seed=0):
        self.mask = Mask(name)
        super().__init__(Case(
            index=0, seed=seed, element="bf16", head_dim=32, value_dim=32, batch=batch,
            kv_heads=kv_heads, group=group, queries=queries, keys=keys,
            layouts=("bshd", "bhsd", "bshd", "bshd"), padding=((0, 0),) * 4))
        self.sizes = Shape(batch, kv_heads * group, kv_heads, queries, keys)
        rng = np.random.default_rng([seed, queries, keys])
        self.sink_values, self.extra = None, []
        for sink in self.mask.sink:
            array = Array(sink.element, [self.sizes.heads]).set(sink.values(self.sizes, rng))
            self.sink_values = array.values()
            self.extra.append(array)
        if self.mask.dropout:
            self.dropout_key = [int(word) for word in rng.integers(-2**31, 2**31, size=2)]
            self.extra += [Scalar("i32", word) for word in self.dropout_key]
        self.captured = []  # as the program sees them
        for capture in self.mask.captures:
            array = Array(capture.element, [self.sizes.size(word) for word in capture.shape] or [1])
            array.set(capture.values(self.sizes, rng))
            values = array.values()
            if capture.is_scalar:
                values = values.item()
                array = Scalar(capture.element, values)
            self.captures.append(array)
            self.captured.append(values)

    def arguments(self):
        return [self.query, self.key, self.value, *self.extra, *self.captures, self.output, self.lse]

    def flags(self, folder):
        """What tells attn-run and attn-simulate the sizes, and what regions read."""
        sizes = self.sizes
        listed = [f"--shape=b={sizes.batch},h={sizes.heads},hkv={sizes.kv_heads},"
                  f"sq={sizes.queries},sk={sizes.keys}"]
        names = (["sink"] if self.mask.sink else []) + (["seed", "offset"] if self.mask.dropout else [])
        names += [f"c{i}" for i in range(len(self.captures))]
        for name, array in zip(names, [*self.extra, *self.captures]):
            if isinstance(array, Scalar):
                listed.append(f"--scalar={name}={array.value!r}")
                continue
            file = folder / f"{name}.npy"
            np.save(file, array.values().astype(np.int64 if array.element[0] == "i" else np.float64))
            listed.append(f"--input={name}={file}")
        return listed

    def tensors(self):
        return [array if isinstance(array, Scalar) else array.tensor for array in self.arguments()]

    def numpy(self):
        return [array.value if isinstance(array, Scalar) else numpy_view(array)
                for array in self.arguments()]

    def sink(self, h):
        return None if self.sink_values is None else self.sink_values[h]

    def kept(self, b, h):
        if not self.mask.dropout:
            return None
        key = [word % 2**32 for word in self.dropout_key]
        return self.mask.kept(self.sizes, key, b, h)

    def visible(self, b):
        return self.mask.visible(self.sizes, self.captured, b, self.head)

    def has_score(self):
        return self.mask.score is not None

    def score(self, x, b, h):
        return self.mask.scored(x, self.sizes, self.captured, b, h)

    def evaluate(self, b, h, exact):
        self.head = h
        return super().evaluate(b, h, exact)


def compiled(name, target, plan=None):
    result = attn.compile(Mask(name).text, target=target, plan=plan or PLANS[target])
    return result if target == "cpu" else Artifact(result.bytes)


def check(program, inputs, blocks=None, seed=None):
    """Runs what `compiled` gave; returns what was wrong, in words."""
    if isinstance(program, Artifact):
        return run(inputs.case, program, blocks, seed, inputs)
    program.launch(*inputs.numpy())
    return judge(inputs.case, inputs, complete=True)
