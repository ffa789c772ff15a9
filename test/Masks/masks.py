#===----------------------------------------------------------------------===#
#
# Part of attn, an attention compiler.
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===----------------------------------------------------------------------===#
"""The programs of this directory, and what they compute, in NumPy.

Each file says in comments what its regions mean, and what to capture:

    // mask: (j <= i) & (at(c[0], b, j) != 0)
    // score: x + c[1][h]
    // capture: integers 0 9 : b sk
    // capture: normal : h

    // sink: normal : h
    // dropout: 0.25
    // longest: 192      queries and keys that the captured tables serve

`mask` and `score` are NumPy expressions of x, b, h, i, j, the lengths sq and
sk, and the captures c; at(c[0], b, j) reads 0 where an index is out of range,
upto(c[0], i) counts the elements <= i. The arguments of the function are
q, k, v, the sink, the seed and the offset of dropout, and the captures.

A capture is KIND : SHAPE, or KIND alone for a scalar; sizes are b, h, sq, sk,
l (the longer of these two), numbers, and size/number (rounded up). Kinds:

    integers LO HI   uniform, LO and HI included (LO and HI may be sizes)
    uniform LO HI    floats
    normal           floats of variance 1
    holes            0, or -inf with probability 1/3
    padded LOW       (b, 1, sq, sk): 0 for keys up to the query that are no
                     padding, which stands on the left; LOW for others (`lowest`:
                     the lowest finite number of the element type)
    ids COUNT        non-decreasing, from 0 to COUNT - 1
    sorted LO HI     integers that never decrease
    offsets          non-decreasing, from 0 to sk: ends of documents (or to the
                     size that follows)
    permutation      of 0 ... size - 1, along the last dimension
"""

import math
import pathlib
import re

import numpy as np

LOWEST = {"f32": -(2 - 2.0**-23) * 2.0**127, "bf16": -(2 - 2.0**-7) * 2.0**127, "f16": -65504.0}

DIRECTORY = pathlib.Path(__file__).resolve().parent


def names():
    return sorted(path.stem for path in DIRECTORY.glob("*.mlir"))


def at(array, *indices):
    """array[indices], 0 where one is out of range."""
    indices = np.broadcast_arrays(*indices)
    inside = np.ones(indices[0].shape, bool)
    for index, size in zip(indices, array.shape):
        inside &= (index >= 0) & (index < size)
    if not inside.any():
        return np.zeros(inside.shape, array.dtype)
    value = array[tuple(np.where(inside, index, 0) for index in indices)]
    return np.where(inside, value, np.zeros((), array.dtype))


def upto(row, values):
    """How many elements of a row are <= each of the values."""
    return np.searchsorted(row, values, side="right")


def philox(key, counter):
    """The first word of Philox4x32-10 for each of the counters."""
    c = [np.asarray(word).astype(np.uint64) for word in counter]
    k = [np.uint64(word) for word in key]
    low = np.uint64(2**32 - 1)
    for _ in range(10):
        first, second = c[0] * np.uint64(0xD2511F53), c[2] * np.uint64(0xCD9E8D57)
        shift = np.uint64(32)
        c = [(second >> shift) ^ c[1] ^ k[0], second & low,
             (first >> shift) ^ c[3] ^ k[1], first & low]
        k = [(word + step) & low for word, step in
             zip(k, (np.uint64(0x9E3779B9), np.uint64(0xBB67AE85)))]
    return c[0]


class Shape:
    """Sizes of one call."""

    def __init__(self, batch, heads, kv_heads, queries, keys):
        self.batch, self.heads, self.kv_heads = batch, heads, kv_heads
        self.queries, self.keys = queries, keys
        self.sizes = dict(b=batch, h=heads, sq=queries, sk=keys, l=max(queries, keys))

    def size(self, word):
        name, _, divisor = word.partition("/")
        value = self.sizes[name] if name in self.sizes else int(name)
        return -(-value // int(divisor or 1))


class Capture:
    def __init__(self, text, type):
        kind, _, shape = (part.strip() for part in text.partition(":"))
        self.kind, *self.limits = kind.split()
        self.shape = shape.split()
        self.is_scalar = not shape
        self.element = re.fullmatch(r"(?:tensor<.*x)?(\w+?)>?", type).group(1)

    def values(self, shape, rng):
        sizes = [shape.size(word) for word in self.shape]
        if self.kind in ("integers", "sorted", "ids"):
            first, last = 0, 0
            if self.kind == "ids":
                last = int(self.limits[0]) - 1
            else:
                first, last = (shape.size(limit) for limit in self.limits)
            drawn = rng.integers(first, last, size=sizes, endpoint=True)
            return drawn if self.kind == "integers" else np.sort(drawn)
        if self.kind == "offsets":
            end = shape.size(self.limits[0] if self.limits else "sk")
            drawn = np.sort(rng.integers(0, end, size=sizes, endpoint=True))
            drawn[..., 0], drawn[..., -1] = 0, end
            return drawn
        if self.kind == "permutation":
            row = np.broadcast_to(np.arange(sizes[-1]), sizes)
            return rng.permuted(row, axis=-1)
        if self.kind == "uniform":
            return rng.uniform(*(float(limit) for limit in self.limits), size=sizes)
        if self.kind == "padded":
            return self.padding(sizes, rng)
        if self.kind == "holes":
            return np.where(rng.random(sizes) < 1 / 3, -np.inf, 0.0)
        assert self.kind == "normal", self.kind
        return rng.standard_normal(sizes)


    def padding(self, sizes, rng):
        batch, _, queries, keys = sizes
        low = LOWEST[self.element] if self.limits[0] == "lowest" else float(self.limits[0])
        start = rng.integers(1, max(keys // 2, 1), size=(batch, 1, 1, 1), endpoint=True)
        i, j = np.arange(queries)[:, None], np.arange(keys)
        return np.where((j >= start) & (j <= i + keys - queries), 0.0, low)


class Mask:
    """One file."""

    def __init__(self, name):
        self.text = (DIRECTORY / f"{name}.mlir").read_text()
        comments = [line.removeprefix("//").strip() for line in self.text.splitlines()
                    if line.startswith("//")]

        def listed(key):
            return [c.removeprefix(key + ":").strip() for c in comments if c.startswith(key + ":")]
        # One line may be continued on the next.
        joined = []
        for comment in comments:
            if joined and joined[-1].endswith("\\"):
                joined[-1] = joined[-1][:-1] + comment
            else:
                joined.append(comment)
        comments = joined
        self.mask, self.score = (listed(key)[0] if listed(key) else None for key in ("mask", "score"))
        sink = re.search(r"%sink: (tensor<\?x\w+>)", self.text)
        self.sink = [Capture(text, sink.group(1)) for text in listed("sink")]
        self.dropout = float(listed("dropout")[0]) if listed("dropout") else 0
        # The most queries and keys that the tables serve.
        self.longest = int(listed("longest")[0]) if listed("longest") else math.inf
        signature = self.text.replace(" {attn.aligned}", "").split("{")[0]
        types = re.findall(r"%c\d+: ([^,)]*(?:<[^>]*>)?)", signature)
        self.captures = [Capture(text, type.strip()) for text, type in zip(listed("capture"), types)]
        if len(types) != len(self.captures):
            raise ValueError(f"{name}: {len(types)} captured arguments, {len(self.captures)} described")

    def lengths(self, pairs, number):
        """One of the (queries, keys) that the tables serve."""
        served = [pair for pair in pairs if max(pair) <= self.longest]
        return served[number % len(served)]

    def names(self, shape, captured, b, h):
        i, j = np.arange(shape.queries)[:, None], np.arange(shape.keys)[None, :]
        return dict(np=np, at=at, upto=upto, b=b, h=h, i=i, j=j, sq=shape.queries, sk=shape.keys, c=captured)

    def visible(self, shape, captured, b, h):
        full = (shape.queries, shape.keys)
        if self.mask is None:
            return np.ones(full, bool)
        return np.broadcast_to(eval(self.mask, self.names(shape, captured, b, h)), full) != 0

    def kept(self, shape, key, b, h):
        """What dropout multiplies the weights by."""
        i, j = np.arange(shape.queries)[:, None], np.arange(shape.keys)[None, :]
        i, j = np.broadcast_arrays(i, j)
        words = philox(key, (np.full_like(i, b), np.full_like(i, h), i, j))
        return (words >= round(self.dropout * 2**32)) / (1 - self.dropout)

    def scored(self, x, shape, captured, b, h):
        if self.score is None:
            return x
        with np.errstate(all="ignore"):
            return eval(self.score, dict(self.names(shape, captured, b, h), x=x))
