#===----------------------------------------------------------------------===#
#
# Part of attn, an attention compiler.
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===----------------------------------------------------------------------===#
"""Random attention programs: what they are, as text and as parameters.

A case is a function of (seed, index, longest) alone, so any one of them can be
run again by its number.
"""

import dataclasses
import pathlib
import random
import sys

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "python"))

NAMED_DIMS = [64, 128, 80, 96, 192, 256]
LAYOUTS = ["bshd", "bhsd"]
# The captured bias: which of (batch, head, query, key) it is indexed by.
BIASES = ["hij", "ij", "bj", "bhij", "h"]


@dataclasses.dataclass
class Case:
    index: int
    seed: int
    element: str  # f16, bf16
    head_dim: int
    value_dim: int
    batch: int
    kv_heads: int
    group: int  # query heads per key head
    queries: int
    keys: int
    layouts: tuple  # of q, k, v, o in memory
    padding: tuple  # rows and columns of storage around each, of q, k, v, o
    causal: str = ""  # "", bottom_right, top_left
    window: tuple = ()  # (left, right, alignment)
    softcap: float = 0.0
    alibi: str = ""  # as causal
    bias: str = ""  # one of BIASES
    bias_element: str = "f32"
    documents: bool = False  # a captured mask: same document only
    scale: float = 0.0  # 0: the default
    magnitude: float = 1.0  # of the queries
    f32_products: str = ""  # "ieee"; "": the default

    @property
    def heads(self):
        return self.kv_heads * self.group

    @property
    def scale_value(self):
        return self.scale or self.head_dim**-0.5

    @property
    def score_truncation(self):
        """What a score of 1 may lose in a tensor core, which cuts off what f32
        cannot hold of a sum after each step of 16 products (f32: three of 8):
        half a unit in the last place each."""
        steps = 3 * self.head_dim / 8 if self.element == "f32" else self.head_dim / 16
        return steps * 2.0**-24

    @property
    def is_split(self):
        """Each f32 product is three of TF32."""
        return self.element == "f32" and self.f32_products != "ieee"

    def variants(self):
        """In the order in which they apply."""
        listed = []
        if self.softcap:
            listed.append(f"softcap<{self.softcap!r} : f32>")
        if self.alibi:
            listed.append(f"alibi<{self.alibi}>")
        if self.causal:
            listed.append(f"causal<{self.causal}>")
        if self.window:
            left, right, alignment = self.window
            listed.append(
                f"window<left = {left}, right = {right}, alignment = {alignment}>"
            )
        return listed

    def bias_shape(self):
        sizes = dict(b=self.batch, h=self.heads, i=self.queries, j=self.keys)
        return [sizes[index] for index in self.bias]

    def program(self, name="attention"):
        import attn

        captures, score, mask = [], None, None
        if self.bias:
            type = f"tensor<{'?x' * len(self.bias)}{self.bias_element}>"
            indices = ", ".join("%" + index for index in self.bias)
            captures.append(("bias", type))
            score = f"%value = attn.capture_load %bias[{indices}] : {type}\n"
            term = "%value"
            if self.bias_element != "f32":
                score += f"%wide = arith.extf %value : {self.bias_element} to f32\n"
                term = "%wide"
            score += f"%sum = arith.addf %x, {term} : f32\nattn.yield %sum : f32"
        if self.documents:
            type = "tensor<?x?xi32>"
            captures += [("qdoc", type), ("kdoc", type)]
            mask = (
                f"%dq = attn.capture_load %qdoc[%b, %i] : {type}\n"
                f"%dk = attn.capture_load %kdoc[%b, %j] : {type}\n"
                "%same = arith.cmpi eq, %dq, %dk : i32\n"
                "attn.yield %same : i1"
            )
        return attn.attention(
            self.element,
            self.head_dim,
            self.value_dim,
            name=name,
            scale=self.scale or None,
            variants=self.variants(),
            captures=captures,
            score=score,
            mask=mask,
            numerics=self.f32_products and f"f32_products = {self.f32_products}",
        )

    def describe(self):
        dims = str(self.head_dim)
        if self.value_dim != self.head_dim:
            dims += f"/{self.value_dim}"
        words = [
            f"{self.element:4} d={dims:7} b={self.batch} h={self.heads}/{self.kv_heads}",
            f"{self.queries}x{self.keys}",
            "".join(layout[1] for layout in self.layouts),
        ]
        if self.magnitude != 1:
            words.append(f"x{self.magnitude:g}")
        words += [variant.split(" :")[0] for variant in self.variants()]
        if self.bias:
            words.append(f"bias[{','.join(self.bias)}]:{self.bias_element}")
        if self.documents:
            words.append("documents")
        if self.f32_products:
            words.append(self.f32_products)
        return " ".join(words)


def _length(rng, longest):
    """From 1 to longest: short, around multiples of 64, odd, anything."""
    kind = rng.random()
    if kind < 0.15:
        length = rng.randint(1, 70)
    elif kind < 0.4:
        length = 64 * rng.randint(1, 46) + rng.choice([-1, 0, 1])
    elif kind < 0.7:
        length = 2 * rng.randint(0, 1499) + 1
    else:
        length = rng.randint(1, 3000)
    return min(length, longest)


def make_case(seed, index, longest=3000):
    rng = random.Random(f"{seed}/{index}")
    if index % 3:
        head_dim = rng.randrange(40, 257, 8)
    else:
        head_dim = NAMED_DIMS[index // 3 % len(NAMED_DIMS)]
    value_dim = head_dim if rng.random() < 0.85 else rng.randrange(40, 257, 8)
    group = [1, 4, 8][index % 3]
    case = Case(
        index=index,
        seed=seed,
        element=["bf16", "f16"][index % 2],
        head_dim=head_dim,
        value_dim=value_dim,
        batch=rng.choice([1, 1, 2, 3]),
        kv_heads=rng.choice([1, 2, 3]) if group == 1 else rng.choice([1, 2]),
        group=group,
        queries=_length(rng, longest),
        keys=_length(rng, longest),
        layouts=tuple(rng.choice(LAYOUTS) for _ in range(4)),
        padding=tuple((rng.randint(0, 5), 8 * rng.randint(0, 3)) for _ in range(4)),
    )
    if rng.random() < 0.15:
        case.keys = case.queries  # the common case has to be among them
    sides = ["bottom_right", "top_left"]
    # Every tenth case is plain; of the others each has one to three features.
    features = ["causal", "window", "softcap", "alibi", "bias", "documents"]
    first = features[index % 10] if index % 10 < len(features) else None
    chosen = {first} if first else set()
    if index % 10 != 9:
        chosen |= {feature for feature in features if rng.random() < 0.15}
    if "causal" in chosen:
        case.causal = rng.choice(sides)
    if "window" in chosen:
        case.window = (
            rng.choice([-1, 0, rng.randint(0, 64), rng.randint(0, 1000)]),
            rng.choice([-1, 0, rng.randint(0, 64), rng.randint(0, 1000)]),
            rng.choice(sides),
        )
    if "softcap" in chosen:
        case.softcap = rng.choice([5.0, 30.0, 50.0])
    if "alibi" in chosen:
        case.alibi = rng.choice(sides)
    if "bias" in chosen:
        case.bias = rng.choice(BIASES)
        case.bias_element = rng.choice(["f32", case.element])
    case.documents = "documents" in chosen
    if rng.random() < 0.2:
        case.scale = rng.choice([0.05, 0.125, 0.3])
    if rng.random() < 0.15:
        case.magnitude = rng.choice([4.0, 10.0])
    if index % 75 == 61:
        case.keys = 0  # nothing to see: o = 0, lse = -inf
    if index % 25 == 18 and case.element == "f16":
        # Scores beyond the range of f16.
        case.magnitude, case.scale, case.softcap = 3000.0, 1.0, 0.0
    return case
