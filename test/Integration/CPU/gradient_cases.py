#===----------------------------------------------------------------------===#
#
# Part of attn, an attention compiler.
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===----------------------------------------------------------------------===#
"""What gradients.py differentiates."""

import dataclasses
import re

import numpy


@dataclasses.dataclass
class Shape:
    b: int = 2
    h: int = 4
    hkv: int = 2
    sq: int = 3
    sk: int = 4
    d: int = 8
    dv: int = 16


def grid(values):
    """Numbers of f32 to which steps of 2^-7 may be added without rounding."""
    return numpy.array(numpy.round(numpy.asarray(values) * 256) / 256, numpy.float32)


def normal(*shape):
    return lambda rng: grid(rng.standard_normal(shape))


def signed(low, high, *shape):
    """Numbers of either sign whose size is between two others."""
    return lambda rng: grid(rng.uniform(low, high, shape) * rng.choice([-1, 1], shape))


def fixed(value):
    if isinstance(value, (int, float)):
        return lambda rng: value
    return lambda rng: numpy.array(value)


@dataclasses.dataclass
class Case:
    name: str
    score: str = None
    mask: str = None
    captures: list = dataclasses.field(default_factory=list)  # (name, type, maker)
    shape: Shape = dataclasses.field(default_factory=Shape)
    sink: object = None  # a maker
    dropout: float = None
    attributes: str = "scale = 0.5"
    samples: int = 12
    is_dynamic: bool = False
    check: object = None
    element: str = "f32"  # of query, key, value and output: also f16, bf16

    def dtype(self):
        """Of arrays here; numbers of bf16 are some of f32."""
        return numpy.float16 if self.element == "f16" else numpy.float32

    def tensors(self):
        s = self.shape
        sizes = [(s.b, s.h, s.sq, s.d), (s.b, s.hkv, s.sk, s.d), (s.b, s.hkv, s.sk, s.dv)]
        if self.sink:
            sizes.append((s.h,))
        return sizes

    def differentiated(self):
        numbers = list(range(len(self.tensors())))
        first = len(numbers) + (2 if self.dropout else 0)
        numbers += [first + i for i, (_, type, _) in enumerate(self.captures) if re.search(r"\bf(16|32)\b|xf(16|32)>", type)]
        return numbers

    def make_inputs(self, rng):
        sizes = self.tensors()
        inputs = [normal(*size)(rng).astype(self.dtype()) for size in sizes[:3]]
        if self.element == "bf16":
            # To these steps of 2^-7 may be added, too, without rounding.
            inputs = [numpy.round(numpy.clip(input / 2, -1, 1) * 128) / 128 for input in inputs]
        if self.sink:
            inputs.append(self.sink(rng))
        if self.dropout:
            inputs += [1234567, 42]
        return inputs + [maker(rng) for _, _, maker in self.captures]

    def text(self):
        s = self.shape

        def tensor(sizes):
            element = self.element if len(sizes) > 3 else "f32"
            if self.is_dynamic and len(sizes) > 2:
                sizes = ["?"] * 3 + list(sizes[3:])
            return f"tensor<{'x'.join(map(str, sizes))}x{element}>"

        types = [tensor(size) for size in self.tensors()]
        names = ["q", "k", "v", "sink"][: len(types)]
        if self.dropout:
            types += ["i32", "i32"]
            names += ["seed", "offset"]
        types += [type for _, type, _ in self.captures]
        names += [name for name, _, _ in self.captures]
        results = f"({tensor((s.b, s.h, s.sq, s.dv))}, {tensor((s.b, s.h, s.sq))})"
        arguments = ", ".join(f"%f_{n}: {t}" for n, t in zip(names, types))
        attributes = self.attributes + (f", dropout_p = {self.dropout}" if self.dropout else "")
        captured = ", ".join(f"%f_{n}" for n, _, _ in self.captures)
        own = "".join(f", %{n}: {t}" for n, t, _ in self.captures)
        lines = [
            f"func.func @{self.name}({arguments}) -> {results} attributes {{llvm.emit_c_interface}} {{",
            "%o, %lse = attn.attention %f_q, %f_k, %f_v"
            + (" sink(%f_sink)" if self.sink else "")
            + (" dropout(%f_seed, %f_offset)" if self.dropout else "")
            + (f" captures({captured})" if captured else "")
            + f" {{{attributes}}}",
        ]
        if self.score:
            lines.append(f"score(%x: f32, %b: i32, %h: i32, %i: i32, %j: i32{own}) {{\n{self.score}\n}}")
        if self.mask:
            lines.append(f"mask(%b: i32, %h: i32, %i: i32, %j: i32{own}) {{\n{self.mask}\n}}")
        lines += [f": ({', '.join(types)}) -> {results}", f"return %o, %lse : {results[1:-1]}", "}"]
        return "\n".join(lines)


CASES = []


def add(*args, **kwargs):
    CASES.append(Case(*args, **kwargs))


#===----------------------------------------------------------------------===#
# Operations: %u is between center - spread and center + spread, %t is far from it.
#===----------------------------------------------------------------------===#


OPERATIONS = []


def operation(name, lines, center=0.0, spread=1.0):
    """`lines` make %r of %u, %t and %p."""
    OPERATIONS.append((name, f"""
        %center = arith.constant {center} : f32
        %spread = arith.constant {spread} : f32
        %bent = math.tanh %x : f32
        %moved = arith.mulf %bent, %spread : f32
        %u = arith.addf %moved, %center : f32
        {lines}
        %scaled = arith.mulf %r, %p : f32"""))


def add_operations(group):
    """One score, the sum of some operations: a function each would take long."""
    body, sum = "%t = attn.capture_load %table[%i, %j] : tensor<3x4xf32>\n", "%x"
    for number, (_, lines) in enumerate(group):
        body += re.sub(r"%(?!(?:x|t|p)\b)(\w+)", rf"%\1_{number}", lines)
        body += f"\n%sum_{number} = arith.addf {sum}, %scaled_{number} : f32"
        sum = f"%sum_{number}"
    add("op_" + "_".join(name for name, _ in group), f"{body}\nattn.yield {sum} : f32",
        captures=[("table", "tensor<3x4xf32>", signed(2.25, 2.75, 3, 4)), ("p", "f32", fixed(0.75))],
        samples=6)


UNARY = {
    "math.exp": (0, 1), "math.exp2": (0, 1), "math.expm1": (0, 1),
    "math.log": (1.5, 1), "math.log2": (1.5, 1), "math.log10": (1.5, 1), "math.log1p": (0.5, 1),
    "math.sqrt": (1.5, 1), "math.rsqrt": (1.5, 1), "math.cbrt": (-1.5, 1),
    "math.sin": (0, 2), "math.cos": (0, 2), "math.tan": (0, 1), "math.asin": (0, 0.75),
    "math.acos": (0, 0.75), "math.atan": (0, 2), "math.sinh": (0, 2), "math.cosh": (0, 2),
    "math.tanh": (0, 2), "math.asinh": (0, 2), "math.acosh": (2.5, 1), "math.atanh": (0, 0.75),
    "math.erf": (0, 1.5), "math.erfc": (0, 1.5), "arith.negf": (0, 1),
    "math.floor": (0.5, 0.375), "math.ceil": (0.5, 0.375), "math.trunc": (0.5, 0.375),
    "math.round": (0.0, 0.375), "math.roundeven": (0.0, 0.375),
}
for op, (center, spread) in UNARY.items():
    operation(op.split(".")[1], f"%r = {op} %u : f32", float(center), float(spread))
for name, center in [("positive", 1.5), ("negative", -1.5)]:
    operation(f"absf_{name}", "%r = math.absf %u : f32", center)
    operation(f"copysign_{name}", "%r = math.copysign %u, %t : f32", center)
    operation(f"select_{name}", f"""
        %zero = arith.constant 0.0 : f32
        %c = arith.cmpf ogt, %t, %zero : f32
        %other = arith.mulf %t, %t : f32
        %r = arith.select %c, %u, %other : f32""", center)
for op in ["addf", "subf", "mulf", "divf", "maximumf", "minimumf", "maxnumf", "minnumf"]:
    operation(op, f"%r = arith.{op} %u, %t : f32")
    operation(op + "_swapped", f"%r = arith.{op} %t, %u : f32", 1.25, 0.75)
operation("powf", "%r = math.powf %u, %t : f32", 1.5)
operation("atan2", "%r = math.atan2 %u, %t : f32", 1.25, 0.75)
operation("fma", "%r = math.fma %u, %t, %x : f32")
operation("fma_last", "%r = math.fma %t, %p, %u : f32")
for power in [3, 1, 0, -2]:
    operation(f"fpowi_{power}".replace("-", "minus_"), f"""
        %n = arith.constant {power} : i32
        %r = math.fpowi %u, %n : f32, i32""", 1.5)
operation("sincos", """
        %s, %c = math.sincos %u : f32
        %c2 = arith.mulf %c, %t : f32
        %r = arith.mulf %s, %c2 : f32""")
operation("sine_of_sincos", "%r, %c = math.sincos %u : f32")
for name, bounds in [("inside", "%u to [%low, %high]"), ("lower_is_the_score", "%t to [%u, %most]"),
                     ("upper_is_the_score", "%t to [%low, %u]")]:
    value, _, rest = bounds.partition(" to ")
    operation(f"clampf_{name}", f"""
        %low = arith.constant -4.0 : f32
        %most = arith.constant 4.0 : f32
        %high = arith.addf %p, %t : f32
        %r = math.clampf {value} to {rest} : f32""")
operation("many_uses", """
        %a = arith.mulf %u, %u : f32
        %c = arith.mulf %a, %u : f32
        %d = arith.divf %c, %t : f32
        %r = arith.addf %d, %a : f32""")
operation("integers_are_flat", """
        %n = arith.fptosi %t : f32 to i32
        %f = arith.sitofp %n : i32 to f32
        %r = arith.mulf %f, %u : f32""")
for first in range(0, len(OPERATIONS), 5):
    add_operations(OPERATIONS[first : first + 5])

#===----------------------------------------------------------------------===#
# Parts of the operation
#===----------------------------------------------------------------------===#



def zeros(number, index, what):
    def check(inputs, gradients):
        if (gradients[number][index] != 0).any():
            yield f"{what} has a gradient"

    return check


add("plain")
add("default_scale", attributes="")
add("one_group", shape=Shape(h=3, hkv=1))
add("no_groups", shape=Shape(h=2, hkv=2, d=16, dv=8))
add("dynamic", is_dynamic=True, sink=normal(4), dropout=0.25,
    attributes="variants = [#attn.causal, #attn.softcap<2.0>, #attn.alibi]")
add("sink", sink=normal(4))
add("sink_of_minus_infinity", sink=fixed(numpy.full(4, -numpy.inf, numpy.float32)), samples=0,
    check=zeros(3, slice(None), "a sink of -inf"))
add("sink_and_empty_rows", sink=normal(4), shape=Shape(sq=5, sk=3), attributes="variants = [#attn.causal]")
add("dropout", dropout=0.4)
add("dropout_and_sink", dropout=0.4, sink=normal(4), attributes="variants = [#attn.causal]")
add("causal", attributes="variants = [#attn.causal]")
add("rows_without_keys", shape=Shape(sq=6, sk=3), attributes="variants = [#attn.causal]",
    check=zeros(0, (slice(None), slice(None), slice(0, 3)), "a row without keys"))
add("window", shape=Shape(sq=5, sk=6), attributes="variants = [#attn.window<left = 1, right = 1>]")
add("alibi", attributes="variants = [#attn.alibi]")
add("softcap", attributes="variants = [#attn.softcap<2.0>]")
add("everything", attributes="variants = [#attn.causal, #attn.softcap<2.0>, #attn.alibi]", sink=normal(4),
    dropout=0.3, shape=Shape(sq=5, sk=5),
    score="""
    %s = attn.capture_load %slopes[%h] : tensor<4xf32>
    %y = arith.mulf %x, %s : f32
    attn.yield %y : f32""",
    captures=[("slopes", "tensor<4xf32>", normal(4))])
add("documents", captures=[("ids", "tensor<2x4xi32>", fixed(numpy.array([[0, 0, 1, 1], [0, 1, 1, 2]], numpy.int32)))],
    shape=Shape(sq=4, sk=4),
    mask="""
    %a = attn.capture_load %ids[%b, %i] : tensor<2x4xi32>
    %c = attn.capture_load %ids[%b, %j] : tensor<2x4xi32>
    %m = arith.cmpi eq, %a, %c : i32
    attn.yield %m : i1""")


def bias(name, type, shape, indices, **kwargs):
    add(f"bias_{name}", f"""
    %v = attn.capture_load %bias[{indices}] : {type}
    %y = arith.addf %x, %v : f32
    attn.yield %y : f32""", captures=[("bias", type, normal(*shape))], **kwargs)


bias("full", "tensor<2x4x3x4xf32>", (2, 4, 3, 4), "%b, %h, %i, %j")
bias("heads", "tensor<4x3x4xf32>", (4, 3, 4), "%h, %i, %j")
bias("matrix", "tensor<?x?xf32>", (3, 4), "%i, %j")
bias("keys", "tensor<2x?xf32>", (2, 4), "%b, %j")
bias("queries", "tensor<3xf32>", (3,), "%i")
bias("number", "tensor<f32>", (), "")
bias("masked", "tensor<3x4xf32>", (3, 4), "%i, %j", attributes="variants = [#attn.causal<top_left>]",
     check=zeros(3, (0, slice(1, 4)), "a hidden element"))
bias("too_small", "tensor<3x3xf32>", (3, 3), "%i, %j")
add("bias_of_minus_infinity", """
    %v = attn.capture_load %bias[%i, %j] : tensor<3x4xf32>
    %y = arith.addf %x, %v : f32
    attn.yield %y : f32""",
    captures=[("bias", "tensor<3x4xf32>", fixed(numpy.array(
        [[-numpy.inf, 0, 1, 2], [0, 0, -numpy.inf, 1], [-numpy.inf] * 4], numpy.float32)))],
    samples=0, check=zeros(3, ([0, 1, 2], [0, 2, 1]), "a bias of -inf"))
add("infinite_slope_of_minus_infinity", """
    %u = attn.capture_load %bias[%i, %j] : tensor<3x4xf32>
    %v = math.log %u : f32
    %y = arith.addf %x, %v : f32
    attn.yield %y : f32""",
    captures=[("bias", "tensor<3x4xf32>", fixed(numpy.array(
        [[0, 1, 1, 2], [2, 1, 0, 1], [0] * 4], numpy.float32)))],
    samples=0, check=zeros(3, ([0, 1, 2], [0, 2, 1]), "the log of 0"))
add("relative_positions", """
    %two = arith.constant 2 : i32
    %distance = arith.subi %j, %i : i32
    %index = arith.addi %distance, %two : i32
    %v = attn.capture_load %table[%h, %index] : tensor<4x6xf32>
    %y = arith.addf %x, %v : f32
    attn.yield %y : f32""", captures=[("table", "tensor<4x6xf32>", normal(4, 6))])
add("buckets", """
    %distance = arith.subi %i, %j : i32
    %index = math.absi %distance : i32
    %bucket = attn.capture_load %buckets[%index] : tensor<4xi32>
    %v = attn.capture_load %table[%bucket] : tensor<2xf32>
    %y = arith.mulf %x, %v : f32
    attn.yield %y : f32""",
    captures=[("buckets", "tensor<4xi32>", fixed(numpy.array([0, 1, 1, 0], numpy.int32))),
              ("table", "tensor<2xf32>", normal(2))])
add("slopes", """
    %s = attn.capture_load %slopes[%h] : tensor<4xf32>
    %distance = arith.subi %j, %i : i32
    %f = arith.sitofp %distance : i32 to f32
    %t = arith.mulf %s, %f : f32
    %y = arith.addf %x, %t : f32
    attn.yield %y : f32""", captures=[("slopes", "tensor<4xf32>", normal(4))])
add("scalars", """
    %t = arith.mulf %x, %a : f32
    %u = math.tanh %t : f32
    %v = arith.mulf %u, %c : f32
    %w = arith.addf %v, %a : f32
    attn.yield %w : f32""", captures=[("a", "f32", fixed(0.5)), ("n", "i32", fixed(3)), ("c", "f32", fixed(1.25))])
add("same_capture_twice", """
    %u = attn.capture_load %table[%i] : tensor<4xf32>
    %v = attn.capture_load %table[%j] : tensor<4xf32>
    %t = arith.mulf %u, %v : f32
    %y = arith.addf %x, %t : f32
    attn.yield %y : f32""", captures=[("table", "tensor<4xf32>", normal(4))])
add("capture_of_the_mask", captures=[("limits", "tensor<4xf32>", fixed(numpy.array([0.5, 1.5, 2.5, 9.5], numpy.float32)))],
    mask="""
    %limit = attn.capture_load %limits[%h] : tensor<4xf32>
    %f = arith.sitofp %j : i32 to f32
    %m = arith.cmpf ole, %f, %limit : f32
    attn.yield %m : i1""", samples=4, check=zeros(3, slice(None), "a capture of the mask"))
add("score_without_x", """
    %y = attn.capture_load %table[%i, %j] : tensor<3x4xf32>
    attn.yield %y : f32""", captures=[("table", "tensor<3x4xf32>", normal(3, 4))],
    check=zeros(0, slice(None), "a query that no score reads"))


def narrow_inputs():
    """Some of the cases, with queries, keys and values of 16 bits."""
    names = ["plain", "one_group", "dynamic", "sink_and_empty_rows", "dropout_and_sink", "everything",
             "bias_full", "relative_positions"]
    return [dataclasses.replace(case, name=f"{case.name}_{element}", element=element, samples=5)
            for case in CASES if case.name in names for element in ("f16", "bf16")]


#===----------------------------------------------------------------------===#
# Points without derivative: slopes by %u and %t, which are captures.
#===----------------------------------------------------------------------===#


@dataclasses.dataclass
class Convention:
    case: Case
    first: float
    second: float


CONVENTIONS = []


def convention(name, line, u, t, first, second=0.0):
    score = f"""
        %u = attn.capture_load %first[] : tensor<f32>
        %t = attn.capture_load %second[] : tensor<f32>
        %dy = attn.capture_load %third[] : tensor<f32>
        {line}
        %y = arith.addf %r, %dy : f32
        attn.yield %y : f32"""
    captures = [(name, "tensor<f32>", fixed(numpy.array(value, numpy.float32)))
                for name, value in [("first", u), ("second", t), ("third", 0.25)]]
    case = Case(f"at_{name}", score, captures=captures, shape=Shape(1, 1, 1, 1, 1, 8, 8))
    CONVENTIONS.append(Convention(case, first, second))


INF, NAN = numpy.inf, numpy.nan
convention("absf_0", "%r = math.absf %u : f32", 0, 0, 0)
for op in ["maximumf", "minimumf"]:
    convention(f"{op}_equal", f"%r = arith.{op} %u, %t : f32", 1, 1, 0.5, 0.5)
for op in ["maxnumf", "minnumf"]:
    convention(f"{op}_equal", f"%r = arith.{op} %u, %t : f32", 1, 1, 1, 0)
    convention(f"{op}_nan_first", f"%r = arith.{op} %u, %t : f32", NAN, 1, 0, 1)
    convention(f"{op}_nan_second", f"%r = arith.{op} %u, %t : f32", 1, NAN, 1, 0)
convention("clampf_bound", "%r = math.clampf %u to [%t, %t] : f32", 2, 2, 1, 0)
convention("copysign_0", "%r = math.copysign %u, %t : f32", 0, -1, 0)
convention("powf_exponent_0", "%r = math.powf %u, %t : f32", 0, 0, 0, 0)
convention("powf_base_0", "%r = math.powf %u, %t : f32", 0, 2, 0, 0)
convention("fpowi_0", """
        %n = arith.constant 0 : i32
        %r = math.fpowi %u, %n : f32, i32""", 0, 0, 0)
convention("sqrt_0", "%r = math.sqrt %u : f32", 0, 0, INF)
convention("floor_1", "%r = math.floor %u : f32", 1, 0, 0)
convention("truncf", """
        %n = arith.truncf %u : f32 to f16
        %r = arith.extf %n : f16 to f32""", 0.3, 0, 1)
convention("product_in_f16", """
        %a = arith.truncf %u : f32 to f16
        %b16 = arith.truncf %t : f32 to f16
        %c = arith.mulf %a, %b16 : f16
        %r = arith.extf %c : f16 to f32""", 0.5, 3, 3, 0.5)
