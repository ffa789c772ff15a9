#===----------------------------------------------------------------------===#
#
# Part of attn, an attention compiler.
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===----------------------------------------------------------------------===#
"""Random attention programs whose gradients are checked: text, and what attn-run
is asked. A case is a function of (seed, index, longest) alone."""

import dataclasses
import random

ELEMENTS = ["bf16", "f16", "f32"]
NAMED_DIMS = [64, 128, 96, 80, 256, 32]
# Multiply-adds of one evaluation of the definition, which is slow.
MOST_WORK = 2.0e8

POSITIONS = "%b: i32, %h: i32, %i: i32, %j: i32"

# What a region may be: its lines, and the captures that they read as (name, type,
# shape of letters, or "" for a scalar). E stands for the element type of queries.
SCORES = {
    "distance": ([], """
        %d = arith.subi %i, %j : i32
        %f = arith.sitofp %d : i32 to f32
        %step = arith.constant 0.0078125 : f32
        %t = arith.mulf %f, %step : f32
        %y = arith.addf %x, %t : f32"""),
    "bent": ([], """
        %half = arith.constant 0.5 : f32
        %t = arith.mulf %x, %half : f32
        %u = math.tanh %t : f32
        %two = arith.constant 2.0 : f32
        %w = arith.mulf %u, %two : f32
        %e = math.exp %w : f32
        %y = arith.addf %w, %e : f32"""),
    "clamped": ([], """
        %low = arith.constant -0.75 : f32
        %high = arith.constant 1.5 : f32
        %a = math.absf %x : f32
        %c = math.clampf %x to [%low, %high] : f32
        %y = arith.subf %c, %a : f32"""),
    "hidden": ([], """
        %n = arith.constant 0xFF800000 : f32
        %t = arith.constant 0.5 : f32
        %g = arith.cmpf ogt, %x, %t : f32
        %y = arith.select %g, %n, %x : f32"""),
    "temperature": ([("counts", "tensor<?xi32>", "i")], """
        %n = attn.capture_load %counts[%i] : tensor<?xi32>
        %one = arith.constant 1 : i32
        %m = arith.addi %n, %one : i32
        %f = arith.sitofp %m : i32 to f32
        %y = arith.divf %x, %f : f32"""),
    "bias": ([("bias", "tensor<?x?x?xf32>", "hij")], """
        %t = attn.capture_load %bias[%h, %i, %j] : tensor<?x?x?xf32>
        %y = arith.addf %x, %t : f32"""),
    "keys": ([("bias", "tensor<?x?xE>", "bj")], """
        %t = attn.capture_load %bias[%b, %j] : tensor<?x?xE>
        WIDEN
        %y = arith.addf %x, %u : f32"""),
    "slopes": ([("slopes", "tensor<?xf32>", "h")], """
        %s = attn.capture_load %slopes[%h] : tensor<?xf32>
        %y = arith.mulf %x, %s : f32"""),
    "relative": ([("table", "tensor<?x65xf32>", "h:65")], """
        %d = arith.subi %j, %i : i32
        %low = arith.constant -32 : i32
        %high = arith.constant 32 : i32
        %a = arith.maxsi %d, %low : i32
        %c = arith.minsi %a, %high : i32
        %n = arith.addi %c, %high : i32
        %t = attn.capture_load %table[%h, %n] : tensor<?x65xf32>
        %y = arith.addf %x, %t : f32"""),
    "factor": ([("factor", "f32", "")], """
        %y = arith.mulf %x, %factor : f32"""),
    "queries": ([("gains", "tensor<?x?xf32>", "ih")], """
        %g = attn.capture_load %gains[%i, %h] : tensor<?x?xf32>
        %y = arith.mulf %x, %g : f32"""),
    "image": ([("table", "tensor<?x177x15xf32>", "h:177x15")], """
        %width = arith.constant 8 : i32
        %most = arith.constant 88 : i32
        %seven = arith.constant 7 : i32
        %iy = arith.divui %i, %width : i32
        %ix = arith.remui %i, %width : i32
        %jy = arith.divui %j, %width : i32
        %jx = arith.remui %j, %width : i32
        %dy = arith.subi %jy, %iy : i32
        %dx = arith.subi %jx, %ix : i32
        %row = arith.addi %dy, %most : i32
        %column = arith.addi %dx, %seven : i32
        %t = attn.capture_load %table[%h, %row, %column] : tensor<?x177x15xf32>
        %y = arith.addf %x, %t : f32"""),
}
MASKS = {
    "strided": ([], """
        %n = arith.constant 3 : i32
        %d = arith.subi %i, %j : i32
        %r = arith.remsi %d, %n : i32
        %zero = arith.constant 0 : i32
        %m = arith.cmpi eq, %r, %zero : i32"""),
    "documents": ([("ids", "tensor<?x?xi32>", "bl")], """
        %two = arith.constant 2 : i32
        %r = attn.capture_load %ids[%b, %i] : tensor<?x?xi32>
        %c = attn.capture_load %ids[%b, %j] : tensor<?x?xi32>
        %s = arith.shrui %r, %two : i32
        %t = arith.shrui %c, %two : i32
        %m = arith.cmpi eq, %s, %t : i32"""),
    "lengths": ([("lengths", "tensor<?xi32>", "b")], """
        %n = attn.capture_load %lengths[%b] : tensor<?xi32>
        %m = arith.cmpi slt, %j, %n : i32"""),
    "flags": ([("flags", "tensor<?x?xi1>", "ij")], """
        %m = attn.capture_load %flags[%i, %j] : tensor<?x?xi1>"""),
    "chunks": ([], """
        %n = arith.constant 48 : i32
        %r = arith.divsi %i, %n : i32
        %c = arith.divsi %j, %n : i32
        %m = arith.cmpi sge, %r, %c : i32"""),
    "prefix": ([("prefix", "i32", "")], """
        %a = arith.cmpi slt, %j, %prefix : i32
        %c = arith.cmpi sle, %j, %i : i32
        %m = arith.ori %a, %c : i1"""),
    "some_rows": ([], """
        %three = arith.constant 3 : i32
        %one = arith.constant 1 : i32
        %r = arith.andi %i, %three : i32
        %m = arith.cmpi ne, %r, %one : i32"""),
    "range": ([], """
        %low = arith.constant 65 : i32
        %high = arith.constant 190 : i32
        %a = arith.cmpi sge, %j, %low : i32
        %c = arith.cmpi slt, %j, %high : i32
        %m = arith.andi %a, %c : i1"""),
    "nothing": ([], """
        %m = arith.constant false"""),
}
PLANS = {
    "cpu": ["block_q = 8, block_k = 16", "block_q = 5, block_k = 7", "block_q = 32, block_k = 8"],
    "sm_80": ["block_q = 64, block_k = 64, warps = 4, stages = 2",
              "block_q = 64, block_k = 32, warps = 4, stages = 2",
              "block_q = 128, block_k = 32, warps = 8, stages = 2"],
    "sm_90a": ["block_q = 64, block_k = 64, warps = 4, stages = 2",
               "block_q = 128, block_k = 64, warps = 8, stages = 3",
               "block_q = 128, block_k = 32, warps = 8, stages = 2"],
}


@dataclasses.dataclass
class Case:
    """One program, and one call of it."""

    name: str
    element: str = "bf16"
    head_dim: int = 64
    value_dim: int = 64
    batch: int = 1
    kv_heads: int = 1
    group: int = 1  # query heads per key head
    queries: int = 130
    keys: int = 150
    known: str = ""  # letters of sizes that types tell: b, h, i, j
    variants: tuple = ()
    score: str = ""  # one of SCORES
    mask: str = ""  # one of MASKS
    sink: str = ""  # its element type
    dropout: float = 0.0
    scale: float = 0.0  # 0: the default
    lse_gradient: bool = False
    any_order: bool = False  # of sums: launches need not give the same bits; two programs
    # without a plan, one with it
    layout: str = "bhsd"
    padding: int = 0
    plan: int = -1  # of PLANS; -1: the compiler's
    loops_over_heads: bool = False  # a block of keys goes through the heads that share it
    seed: int = 0

    def sizes(self):
        return dict(b=self.batch, h=self.kv_heads * self.group, g=self.kv_heads, i=self.queries,
                    j=self.keys, l=max(self.queries, self.keys))

    def work(self):
        return (self.batch * self.kv_heads * self.group * self.queries * self.keys
                * (3 * self.head_dim + 2 * self.value_dim))

    def tensor(self, letters, *rest):
        known = self.known + ("g" if "h" in self.known else "")
        sizes = [self.sizes()[letter] if letter in known else "?" for letter in letters]
        return f"tensor<{'x'.join(str(part) for part in [*sizes, *rest])}>"

    def regions(self):
        """(keyword, arguments, lines, what it yields, captures) of each."""
        for keyword, name, table, first, end in [
            ("score", self.score, SCORES, "%x: f32, ", "%y : f32"),
            ("mask", self.mask, MASKS, "", "%m : i1"),
        ]:
            if name:
                captures, lines = table[name]
                widen = "%u = arith.addf %t, %t : f32" if self.element == "f32" else \
                    "%u = arith.extf %t : E to f32"
                lines = lines.replace("WIDEN", widen).replace("xE>", f"x{self.element}>")
                yield keyword, first, lines.replace(": E ", f": {self.element} "), end, captures

    def captures(self):
        """(name in the function, type, shape)"""
        return [(f"{keyword}_{name}", type.replace("xE>", f"x{self.element}>"), shape)
                for keyword, _, _, _, captures in self.regions() for name, type, shape in captures]

    def text(self):
        query, key = (self.tensor(letters, self.head_dim, self.element) for letters in ("bhi", "bgj"))
        value, output = (self.tensor(letters, self.value_dim, self.element) for letters in ("bgj", "bhi"))
        lse = self.tensor("bhi", "f32")
        arguments = [("q", query), ("k", key), ("v", value)]
        words, attributes = "", []
        if self.sink:
            arguments.append(("sink", self.tensor("h", self.sink)))
            words += " sink(%sink)"
        if self.dropout:
            arguments += [("seed", "i32"), ("offset", "i32")]
            words += " dropout(%seed, %offset)"
            attributes.append(f"dropout_p = {self.dropout} : f64")
        captures = [(name, type) for name, type, _ in self.captures()]
        if captures:
            words += f" captures({', '.join('%' + name for name, _ in captures)})"
        if self.scale:
            attributes.append(f"scale = {self.scale} : f64")
        if self.any_order:
            attributes.append("numerics = #attn.numerics<deterministic = false>")
        if self.variants:
            attributes.append(f"variants = [{', '.join('#attn.' + text for text in self.variants)}]")
        lines = []
        for keyword, first, body, end, own in self.regions():
            names = {f"{keyword}_{name}": name for name, _, _ in own}
            inner = "".join(f", %{names.get(name, name + '_too')}: {type}" for name, type in captures)
            lines += [f"    {keyword}({first}{POSITIONS}{inner}) {{{body}",
                      f"        attn.yield {end}", "    }"]
        signature = ", ".join(f"%{name}: {type}" for name, type in [*arguments, *captures])
        types = ", ".join(type for _, type in [*arguments, *captures])
        return "\n".join([
            f"func.func @attention({signature}) -> ({output}, {lse}) {{",
            f"  %o, %lse = attn.attention %q, %k, %v{words} {{{', '.join(attributes)}}}",
            *lines,
            f"    : ({types}) -> ({output}, {lse})",
            f"  return %o, %lse : {output}, {lse}",
            "}", ""])

    def flags(self, target):
        """What attn-run is asked, beside the program."""
        sizes = self.sizes()
        shape = (f"b={self.batch},h={sizes['h']},hkv={self.kv_heads},"
                 f"sq={self.queries},sk={self.keys}")
        listed = [f"--seed={self.seed}", f"--layout={self.layout}", f"--padding={self.padding}"]
        for number, (name, _, letters) in enumerate(self.captures()):
            if not letters:
                listed.append(f"--scalar=c{number}={0.75 if name == 'score_factor' else 37}")
                continue
            letters, _, more = letters.partition(":")
            all_sizes = [str(sizes[letter]) for letter in letters] + ([more] if more else [])
            shape += f",c{number}={'x'.join(all_sizes)}"
        if self.dropout:
            listed += [f"--scalar=seed={self.seed + 17}", "--scalar=offset=5"]
        if self.lse_gradient:
            listed.append("--lse-gradient")
        if self.plan >= 0:
            listed.append(f"--plan=#attn.plan<target = {target}, {PLANS[target][self.plan]}>")
        if self.loops_over_heads:
            listed.append("--enable-pass=tile-loop-heads")
        return [f"--shape={shape}", *listed]


def draw_length(rng, longest):
    """From 0 to longest: tiny, beside multiples of 64, odd, anything."""
    kind = rng.random()
    if kind < 0.02:
        return 0
    if kind < 0.15:
        return min(rng.randint(1, 7), longest)
    if kind < 0.5:
        return min(64 * rng.randint(1, max(1, longest // 64)) + rng.choice([-1, 0, 1]), longest)
    return min(2 * rng.randint(0, longest // 2) + 1, longest)


def draw_variants(rng):
    side = rng.choice(["bottom_right", "top_left"])
    chosen = []
    if rng.random() < 0.15:
        chosen.append(f"softcap<{rng.choice([2.0, 20.0])} : f32>")
    if rng.random() < 0.15:
        chosen.append(f"alibi<{side}>")
    if rng.random() < 0.3:
        chosen.append(f"causal<{side}>")
    if rng.random() < 0.15:
        left, right = rng.choice([(20, 10), (0, 64), (130, -1), (-1, 5)])
        chosen.append(f"window<left = {left}, right = {right}, alignment = {side}>")
    return tuple(chosen)


def shrink(case):
    """Until the definition takes not too long."""
    while case.work() > MOST_WORK:
        if case.batch > 1:
            case.batch = 1
        elif case.kv_heads > 1:
            case.kv_heads = 1
        elif case.queries > case.keys:
            case.queries = case.queries // 2 + 1
        else:
            case.keys = case.keys // 2 + 1


def make_case(seed, index, longest):
    rng = random.Random(f"gradients/{seed}/{index}")
    head_dim = NAMED_DIMS[index // 3 % len(NAMED_DIMS)] if index % 2 else rng.randrange(8, 257, 8)
    case = Case(
        name=f"{index}",
        element=ELEMENTS[index % 3],
        head_dim=head_dim,
        value_dim=head_dim if rng.random() < 0.7 else rng.randrange(8, 257, 8),
        batch=rng.choice([1, 1, 2, 3]),
        kv_heads=rng.choice([1, 1, 2, 3]),
        group=rng.choice([1, 1, 2, 4, 8]),
        queries=draw_length(rng, longest),
        keys=draw_length(rng, longest),
        known=rng.choice(["", "", "", "bh", "ij", "bhij"]),
        variants=draw_variants(rng),
        score=rng.choice([*SCORES]) if rng.random() < 0.4 else "",
        mask=rng.choice([*MASKS]) if rng.random() < 0.35 else "",
        sink=rng.choice(ELEMENTS) if rng.random() < 0.2 else "",
        dropout=rng.choice([0.1, 0.5]) if rng.random() < 0.2 else 0.0,
        scale=rng.choice([0.0, 0.0, 0.05, 0.3]),
        lse_gradient=rng.random() < 0.4,
        layout=rng.choice(["bhsd", "bshd"]),
        padding=rng.choice([0, 0, 1, 8]),
        plan=rng.choice([-1, -1, -1, 0, 1, 2]),
        seed=seed * 100003 + index,
    )
    if rng.random() < 0.2:
        case.keys = case.queries
    case.any_order = rng.random() < 0.4
    shrink(case)
    case.loops_over_heads = case.group > 1 and index % 2 == 0
    return case


def small_cases():
    """What a sanitizer looks at, which takes long."""
    return [
        Case("plain"),
        Case("causal", "f16", 128, 128, variants=("causal<bottom_right>",)),
        Case("grouped", "bf16", 80, 96, group=4, queries=65),
        Case("loops", "bf16", 64, 64, kv_heads=2, group=3, queries=70, keys=200, loops_over_heads=True),
        Case("tiny", "f16", 40, 40, queries=1, keys=1, lse_gradient=True),
        Case("f32", "f32", 64, 64, queries=70, keys=129),
        # By a plan of its own one program, though there are few queries.
        Case("any_order", "bf16", 64, 64, kv_heads=2, group=2, queries=190, keys=150, any_order=True, plan=1),
        # No heads to sum: kernels are left out of the launch.
        Case("any_order_heads", "bf16", 64, 64, kv_heads=4, queries=190, keys=650, any_order=True, plan=1),
        Case("wide", "bf16", 256, 256, queries=33, keys=257),
        Case("no_keys", "f16", 64, 64, queries=200, keys=77, variants=("causal<bottom_right>",)),
        Case("window", "bf16", 64, 64, queries=190, keys=190,
             variants=("window<left = 20, right = 10, alignment = bottom_right>",)),
        Case("dropout", "f16", 64, 64, kv_heads=2, group=2, sink="f32", dropout=0.3,
             variants=("softcap<20.0 : f32>", "alibi<bottom_right>")),
        Case("documents", "bf16", 192, 128, mask="documents", score="distance", keys=300,
             lse_gradient=True),
    ]


def repeated_cases():
    """What is launched many times: several blocks of each kind at once."""
    large = dict(batch=2, kv_heads=2, group=2, queries=517, keys=640)
    return [
        Case("full", "bf16", 64, 64, **large),
        Case("causal", "bf16", 128, 128, variants=("causal<bottom_right>",), **large),
        Case("loops", "bf16", 128, 128, variants=("causal<bottom_right>",), loops_over_heads=True, **large),
        Case("f32", "f32", 64, 64, **large),
        Case("wide", "f16", 256, 256, **large),
        Case("values", "bf16", 192, 128, **large),
        Case("window", "f16", 96, 96, variants=("window<left = 100, right = 30>",), **large),
        Case("dropout", "bf16", 64, 64, sink="f32", dropout=0.2, lse_gradient=True, **large),
        Case("documents", "f16", 128, 128, mask="documents", score="distance", **large),
    ]
