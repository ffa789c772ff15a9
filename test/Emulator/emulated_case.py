#===----------------------------------------------------------------------===#
#
# Part of attn, an attention compiler.
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===----------------------------------------------------------------------===#
"""A random case of the GPU suite (test/Integration/GPU/cases.py) on the emulated
GPU: its inputs, what attention of them is, and the error rule, in NumPy."""

import numpy as np

import error_rule
from emulate import Tensor, grid_of, launch
from floats import DECODE, ENCODE, f32_to_f16

BITS = {"f16": np.uint16, "bf16": np.uint16, "f32": np.uint32, "i1": np.uint8,
        "i8": np.uint8, "i16": np.uint16, "i32": np.uint32, "i64": np.uint64}
POISON = {"f16": 0x7FAD, "bf16": 0x7FAD, "f32": 0x7FC0DEAD, "i1": 1, "i8": 0x7D,
          "i16": 0x7FAD, "i32": 0x7FC0DEAD, "i64": 0x7FC0DEAD7FC0DEAD}


def encode(element, values):
    if element == "f32":
        return np.asarray(values, np.float32).view(np.uint32)
    if element[0] == "i":
        return np.asarray(values).astype(np.int64).astype(BITS[element])
    return ENCODE[element](np.asarray(values, np.float32))


def decode(element, bits):
    if element == "f32":
        return np.ascontiguousarray(bits).view(np.float32)
    if element[0] == "i":
        signed = np.ascontiguousarray(bits)
        return signed.view(f"i{signed.itemsize}").astype(np.int64)
    return DECODE[element](bits)


class Array:
    """A tensor in poisoned storage, as a view of its bits. A layout of "bshd+1":
    one element after the start of the memory."""

    def __init__(self, element, shape, layout="bhsd", padding=(0, 0)):
        self.element, self.shape = element, tuple(shape)
        layout, _, first = layout.partition("+")
        first = int(first or 0)
        order = list(range(len(shape)))
        if len(shape) == 4:
            order = ["bhsd".index(letter) for letter in layout]
        sizes = list(shape)
        if len(shape) == 4:
            sizes[2] += padding[0]
            sizes[3] += padding[1]
        sizes = [sizes[i] for i in order]
        whole = np.full(first + int(np.prod(sizes)), POISON[element], BITS[element])
        self.storage = whole[first:].reshape(sizes)
        view = self.storage.transpose(np.argsort(order))
        self.view = view[tuple(slice(0, n) for n in shape)]
        self.untouched = np.ones(self.storage.shape, bool)
        self.untouched.transpose(np.argsort(order))[tuple(slice(0, n) for n in shape)] = False
        item = self.storage.itemsize
        strides = [s // item for s in self.view.strides]
        self.tensor = Tensor(element, list(shape), strides, whole, first)

    def set(self, values):
        self.view[...] = encode(self.element, values).reshape(self.shape)
        return self

    def values(self):
        """float64; integers as they are."""
        with np.errstate(invalid="ignore"):  # the poison is a signalling NaN
            values = decode(self.element, self.view).reshape(self.shape)
            return values if self.element[0] == "i" else values.astype(np.float64)

    def is_outside_untouched(self):
        return bool((self.storage[self.untouched] == POISON[self.element]).all())


class Inputs:
    def __init__(self, case):
        self.case = case
        rng = np.random.default_rng(1000003 * case.seed + case.index)
        kv = (case.batch, case.kv_heads, case.keys)
        shapes = [(case.batch, case.heads, case.queries, case.head_dim),
                  (*kv, case.head_dim), (*kv, case.value_dim)]
        arrays = []
        for i, shape in enumerate(shapes):
            array = Array(case.element, shape, case.layouts[i], case.padding[i])
            factor = case.magnitude if i == 0 else 1.0
            arrays.append(array.set(rng.standard_normal(shape) * factor))
        self.query, self.key, self.value = arrays
        self.captures, self.bias = [], None
        if case.bias:
            shape = case.bias_shape()
            self.bias = Array(case.bias_element, shape).set(rng.standard_normal(shape))
            self.captures.append(self.bias)
        if case.documents:
            documents = max(1, max(case.queries, case.keys) // 40)
            for length in (case.queries, case.keys):
                ids = np.arange(length) * documents // max(length, 1)
                array = Array("i32", (case.batch, length))
                self.captures.append(array.set(np.tile(ids, (case.batch, 1))))
        shape = (case.batch, case.heads, case.queries, case.value_dim)
        self.output = Array(case.element, shape, case.layouts[3], case.padding[3])
        self.lse = Array("f32", shape[:3])
        self.largest_score = 0  # of those evaluated, before the score function

    def tensors(self):
        arrays = [self.query, self.key, self.value, *self.captures, self.output, self.lse]
        return [array.tensor for array in arrays]

    def offset(self, alignment):
        return self.case.keys - self.case.queries if alignment == "bottom_right" else 0

    def visible(self, b):
        case = self.case
        i, j = np.arange(case.queries)[:, None], np.arange(case.keys)[None, :]
        mask = np.ones((case.queries, case.keys), bool)
        if case.causal:
            mask &= j <= i + self.offset(case.causal)
        if case.window:
            left, right, alignment = case.window
            distance = j - (i + self.offset(alignment))
            mask &= (distance >= -left) if left >= 0 else True
            mask &= (distance <= right) if right >= 0 else True
        if case.documents:
            queries, keys = (array.view.view(np.int32) for array in self.captures[-2:])
            mask &= queries[b][:, None] == keys[b][None, :]
        return mask

    def has_score(self):
        return self.case.softcap or self.case.alibi or self.case.bias

    def score(self, x, b, h):
        case = self.case
        i, j = np.arange(case.queries)[:, None], np.arange(case.keys)[None, :]
        if case.softcap:
            x = case.softcap * np.tanh(x / case.softcap)
        if case.alibi:
            slope = 2.0 ** (-8.0 * (h + 1) / case.heads)
            x = x - slope * np.abs(i + self.offset(case.alibi) - j)
        if self.bias is not None:
            at = dict(b=b, h=h, i=slice(None), j=slice(None))
            bias = self.bias.values()[tuple(at[index] for index in case.bias)]
            if "j" in case.bias and "i" not in case.bias:
                bias = bias[None, :]
            x = x + bias
        return x

    def sink(self, h):
        """The logit that joins the denominator, or None."""

    def kept(self, b, h):
        """What dropout multiplies the weights by, or None."""

    def evaluate(self, b, h, exact):
        """o and lse of one head: in float64, or with every unfused step rounded
        to the input type and a softmax in f32 (t0 of the error rule)."""
        case = self.case

        def rounded(x):
            return x if exact else decode(case.element, encode(case.element, x)).astype(np.float64)

        kv = h // case.group
        # t0 multiplies and sums in f32, as an unfused evaluation does.
        compute = np.float64 if exact else np.float32
        q, k, v = (array.values()[b, head].astype(compute) for array, head in
                   ((self.query, h), (self.key, kv), (self.value, kv)))
        x = q @ k.T * case.scale_value
        self.largest_score = max(self.largest_score, np.abs(x).max(initial=0))

        def stored(x):
            """A score that the type cannot hold stays in f32."""
            return np.where(np.abs(x) > error_rule.LARGEST[case.element], x, rounded(x))

        x = stored(x)
        if self.has_score():
            x = stored(self.score(x, b, h))
        x = np.where(self.visible(b), x, -np.inf)
        sink, kept = self.sink(h), self.kept(b, h)
        initial = -np.inf if sink is None else sink
        top = x.max(axis=1, initial=initial, keepdims=True)
        reference = np.where(np.isinf(top), 0, top)
        # In f32 for t0: differences, exponentials and their sum are rounded.
        p = np.exp((x - reference).astype(compute).astype(np.float64)).astype(compute)
        total = p.sum(axis=1, keepdims=True)
        if sink is not None:
            total = total + np.exp(sink - reference).astype(compute)
        with np.errstate(divide="ignore"):
            lse = (top + np.log(total))[:, 0]
        p = rounded(p / np.where(total == 0, 1, total))
        p = p if kept is None else rounded(p * kept)
        return rounded(p.astype(compute) @ v), lse


def run(case, artifact, blocks=None, seed=None, inputs=None):
    """Runs at most `blocks` blocks of the grid, chosen at random, and returns
    what was wrong, in words."""
    inputs = inputs or Inputs(case)
    tensors = inputs.tensors()
    grid = grid_of(artifact, tensors)
    everything = [(x, y, z) for z in range(grid[2]) for y in range(grid[1]) for x in range(grid[0])]
    chosen = everything
    if blocks is not None and blocks < len(everything):
        rng = np.random.default_rng(case.index)
        chosen = [everything[i] for i in rng.permutation(len(everything))[:blocks]]
    launch(artifact, tensors, chosen, seed)
    return judge(case, inputs, complete=len(chosen) == len(everything))


def judge(case, inputs, complete):
    wrong = []
    if not (inputs.output.is_outside_untouched() and inputs.lse.is_outside_untouched()):
        wrong.append("wrote outside the results")
    written = inputs.lse.view != POISON["f32"]
    if complete and not written.all():
        wrong.append("left results unwritten")
    if not written.any():
        wrong.append("wrote nothing")
    worst, worst0, square, square0, elements = 0.0, 0.0, 0.0, 0.0, 0
    square_rounded, largest = 0.0, 0.0
    for b in range(case.batch):
        for h in range(case.heads):
            rows = written[b, h]
            if not rows.any():
                continue
            exact, exact_lse = inputs.evaluate(b, h, exact=True)
            plain, _ = inputs.evaluate(b, h, exact=False)
            o, lse = inputs.output.values()[b, h][rows], inputs.lse.values()[b, h][rows]
            exact, exact_lse, plain = exact[rows], exact_lse[rows], plain[rows]
            empty = np.isneginf(exact_lse)  # (a sink alone leaves o = 0, too)
            if (o[empty] != 0).any() or not np.isneginf(lse[empty]).all():
                wrong.append("a row without a visible key is not o = 0, lse = -inf")
            seen = ~empty
            if not seen.any():
                continue
            if not np.isfinite(o[seen]).all():
                wrong.append("o is not finite")
            error, error0 = np.abs(o - exact)[seen], np.abs(plain - exact)[seen]
            worst, worst0 = max(worst, error.max()), max(worst0, error0.max())
            square, square0 = square + (error**2).sum(), square0 + (error0**2).sum()
            elements += error.size
            largest = max(largest, np.abs(exact[seen]).max())
            rounded = decode(case.element, encode(case.element, exact[seen]))
            square_rounded += ((rounded - exact[seen]) ** 2).sum()
            loss = case.score_truncation * inputs.largest_score
            allowed = np.array([error_rule.lse_bound(value, loss) for value in exact_lse[seen]])
            error_lse = np.abs(lse[seen] - exact_lse[seen])
            if not (error_lse <= allowed).all():
                wrong.append(f"lse error {error_lse.max():.3g}")
    if elements == 0:
        return wrong
    bound = error_rule.error_bound(case.element, worst0, largest)
    if not worst <= bound:
        wrong.append(f"e(o) {worst:.3g} > {bound:.3g}, e(t0) {worst0:.3g}")
    # A few rows scatter: where the rule does not judge, a tenth on top.
    slack = 1.0 if elements >= error_rule.ENOUGH else 1.1
    rmse, rmse0, rounding = (np.sqrt(total / elements)
                             for total in (square, square0, square_rounded))
    bound = slack * error_rule.rmse_bound(case.element, rmse0, rounding,
                                          np.abs(inputs.value.values()).max(), case.is_split,
                                          case.score_truncation * inputs.largest_score)
    if not rmse <= bound:
        wrong.append(f"RMSE {rmse:.3g} > {bound:.3g}, RMSE(t0) {rmse0:.3g}, {elements} elements")
    return wrong
