# Part of attn, an attention compiler.
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Writes functions of linalg, tensor and arith as text.

Dimensions are letters: b batch, h head, g head of a group, k key head, i query,
j key, d head dimension, e value dimension. A tensor knows its letters, so the
indexing maps of an operation follow from those of its operands.
"""

SIZES = {"1": 1, "b": 2, "c": 3, "h": 4, "k": 2, "g": 2, "i": 12, "j": 20, "d": 16, "e": 8}
BITS = {"f16": 16, "bf16": 16, "f32": 32, "f64": 64}
LOWEST = {"f16": "0xFC00", "bf16": "0xFF80", "f32": "0xFF800000"}
FINFO = {"f16": "-65504.0", "bf16": "-3.38953139E+38", "f32": "-3.40282347E+38"}


class Tensor:
    def __init__(self, name, dims, dtype):
        self.name, self.dims, self.dtype = name, dims, dtype


class Graph:
    """One function. `dynamic` lists the letters whose sizes are unknown."""

    def __init__(self, name, dtype="f32", dynamic="", sizes=None):
        self.name, self.dtype, self.dynamic = name, dtype, dynamic
        self.sizes = dict(SIZES, **(sizes or {}))
        self.args, self.lines, self.known, self.count = [], [], {}, 0
        self.results = []

    # Types and names.

    def new(self):
        self.count += 1
        return f"%v{self.count}"

    def emit(self, line):
        self.lines.append("  " + line)

    def size(self, dim):
        return "?" if dim in self.dynamic else str(self.sizes.get(dim, dim))

    def type(self, dims, dtype):
        return "tensor<" + "".join(self.size(d) + "x" for d in dims) + dtype + ">"

    def typed(self, t):
        return self.type(t.dims, t.dtype)

    def arg(self, dims, dtype=None):
        t = Tensor(f"%arg{len(self.args)}", dims, dtype or self.dtype)
        self.args.append(f"{t.name}: {self.typed(t)}")
        for place, dim in enumerate(dims):
            if dim in self.dynamic and dim not in self.known:
                at, size = self.new(), self.new()
                self.emit(f"{at} = arith.constant {place} : index")
                self.emit(f"{size} = tensor.dim {t.name}, {at} : {self.typed(t)}")
                self.known[dim] = size
        return t

    def scalar_arg(self, dtype):
        name = f"%arg{len(self.args)}"
        self.args.append(f"{name}: {dtype}")
        return name

    def qkv(self, prefix="bh", dtype=None):
        return (
            self.arg(prefix + "id", dtype),
            self.arg(prefix + "jd", dtype),
            self.arg(prefix + "je", dtype),
        )

    # Tensors from nothing.

    def empty(self, dims, dtype=None):
        t = Tensor(self.new(), dims, dtype or self.dtype)
        sizes = ", ".join(self.known[d] for d in dims if d in self.dynamic)
        self.emit(f"{t.name} = tensor.empty({sizes}) : {self.typed(t)}")
        return t

    def constant(self, value, dtype=None):
        name, dtype = self.new(), dtype or self.dtype
        suffix = "" if dtype == "i1" else f" : {dtype}"
        self.emit(f"{name} = arith.constant {value}{suffix}")
        return name

    def fill(self, dims, value="0.0", dtype=None):
        dtype = dtype or self.dtype
        scalar = self.constant(value, dtype)
        t, out = self.empty(dims, dtype), self.new()
        self.emit(
            f"{out} = linalg.fill ins({scalar} : {dtype}) outs({t.name} : "
            f"{self.typed(t)}) -> {self.typed(t)}"
        )
        return Tensor(out, dims, dtype)

    def splat(self, dims, value, dtype=None):
        t = Tensor(self.new(), dims, dtype or self.dtype)
        self.emit(f"{t.name} = arith.constant dense<{value}> : {self.typed(t)}")
        return t

    # Structured operations.

    def generic(self, loops, inputs, out, body, reduced=""):
        """`body` is lines that use %0, %1, … for the inputs and %acc for the
        output, {i} for the position of letter i, and define %y."""

        def of(dims):
            names = ", ".join("0" if d == "1" else d for d in dims)
            return f"affine_map<({', '.join(loops)}) -> ({names})>"

        # 1 stands for a dimension of size 1: maps have a constant there.
        maps = ", ".join(of(t.dims) for t in inputs + [out])
        kinds = ", ".join(
            '"reduction"' if d in reduced else '"parallel"' for d in loops
        )
        result = Tensor(self.new(), out.dims, out.dtype)
        ins = ""
        if inputs:
            names = ", ".join(t.name for t in inputs)
            types = ", ".join(self.typed(t) for t in inputs)
            ins = f" ins({names} : {types})"
        self.emit(
            f"{result.name} = linalg.generic {{indexing_maps = [{maps}], "
            f"iterator_types = [{kinds}]}}{ins} "
            f"outs({out.name} : {self.typed(out)}) {{"
        )
        arguments = [f"%in{n}: {t.dtype}" for n, t in enumerate(inputs)]
        self.emit(f"^bb0({', '.join(arguments + [f'%acc: {out.dtype}'])}):")
        for number, dim in enumerate(loops):
            if "{" + dim + "}" in body:
                self.emit(f"  %at_{dim} = linalg.index {number} : index")
                body = body.replace("{" + dim + "}", f"%at_{dim}")
        for number in range(len(inputs)):
            body = body.replace(f"%{number}", f"%in{number}")
        for line in body.strip().split("\n"):
            self.emit("  " + line.strip())
        self.emit(f"  linalg.yield %y : {out.dtype}")
        self.emit(f"}} -> {self.typed(out)}")
        return result

    def einsum(self, spec, a, b, dtype=None, swap=False, init=None):
        """A contraction as linalg.generic, accumulated in `dtype`."""
        inputs, out = spec.split("->")
        first, second = inputs.split(",")
        dtype = dtype or a.dtype
        loops = "".join(dict.fromkeys(out + first + second))
        a = Tensor(a.name, first, a.dtype)
        b = Tensor(b.name, second, b.dtype)
        lines = []
        for number, t in enumerate((a, b)):
            if t.dtype == dtype:
                lines.append(f"%x{number} = arith.addf %{number}, %{number} : {dtype}")
                lines.pop()
                continue
            lines.append(f"%x{number} = arith.extf %{number} : {t.dtype} to {dtype}")
        use = [f"%x{n}" if t.dtype != dtype else f"%{n}" for n, t in enumerate((a, b))]
        if swap:
            use.reverse()
        lines.append(f"%m = arith.mulf {use[0]}, {use[1]} : {dtype}")
        order = ("%m", "%acc") if swap else ("%acc", "%m")
        lines.append(f"%y = arith.addf {order[0]}, {order[1]} : {dtype}")
        reduced = [d for d in loops if d not in out]
        return self.generic(
            loops,
            [a, b],
            init or self.fill(out, dtype=dtype),
            "\n".join(lines),
            reduced,
        )

    def named(self, op, a, b, dims, dtype=None, attributes=""):
        """linalg.matmul, linalg.batch_matmul, …"""
        init = self.fill(dims, dtype=dtype or a.dtype)
        out = Tensor(self.new(), dims, init.dtype)
        self.emit(
            f"{out.name} = linalg.{op} {attributes} ins({a.name}, {b.name} : "
            f"{self.typed(a)}, {self.typed(b)}) outs({init.name} : "
            f"{self.typed(init)}) -> {self.typed(out)}"
        )
        return out

    def map(self, inputs, body, dims=None, dtype=None):
        """An elementwise linalg.generic; inputs may lack dimensions."""
        dims = dims or inputs[0].dims
        dtype = dtype or inputs[0].dtype
        return self.generic(dims, inputs, self.empty(dims, dtype), body)

    def elementwise(self, op, *inputs):
        """arith or math on whole tensors."""
        out = Tensor(self.new(), inputs[0].dims, inputs[0].dtype)
        names = ", ".join(t.name for t in inputs)
        self.emit(f"{out.name} = {op} {names} : {self.typed(out)}")
        return out

    def cast(self, t, dtype, whole=False):
        if t.dtype == dtype:
            return t
        op = "extf" if BITS[dtype] > BITS[t.dtype] else "truncf"
        if whole:
            out = Tensor(self.new(), t.dims, dtype)
            self.emit(
                f"{out.name} = arith.{op} {t.name} : {self.typed(t)} to "
                f"{self.typed(out)}"
            )
            return out
        return self.map(
            [t], f"%y = arith.{op} %0 : {t.dtype} to {dtype}", dtype=dtype
        )

    def scale(self, t, value):
        return self.map(
            [t],
            f"%c = arith.constant {value} : {t.dtype}\n"
            f"%y = arith.mulf %0, %c : {t.dtype}",
        )

    def reduce(self, op, t, over, init=None, body="%x = arith.addf %0, %0 : T"):
        """A reduction of one tensor over one letter."""
        init = init or (LOWEST[t.dtype] if "max" in op else "0.0")
        dims = t.dims.replace(over, "")
        return self.generic(
            t.dims,
            [t],
            self.fill(dims, init, t.dtype),
            f"%y = arith.{op} %acc, %0 : {t.dtype}",
            over,
        )

    def linalg_reduce(self, op, t, over, init=None):
        init = init or (LOWEST[t.dtype] if "max" in op else "0.0")
        dims = t.dims.replace(over, "")
        start = self.fill(dims, init, t.dtype)
        out = Tensor(self.new(), dims, t.dtype)
        self.emit(
            f"{out.name} = linalg.reduce {{ arith.{op} }} ins({t.name} : "
            f"{self.typed(t)}) outs({start.name} : {self.typed(start)}) "
            f"dimensions = [{t.dims.index(over)}]"
        )
        return out

    def softmax(self, t, over="j"):
        init = self.empty(t.dims, t.dtype)
        out = Tensor(self.new(), t.dims, t.dtype)
        self.emit(
            f"{out.name} = linalg.softmax dimension({t.dims.index(over)}) "
            f"ins({t.name} : {self.typed(t)}) outs({init.name} : "
            f"{self.typed(init)}) -> {self.typed(out)}"
        )
        return out

    def spelled_softmax(self, t, over="j", maximum="maximumf"):
        """max, sub, exp, sum, div, each an operation."""
        top = self.reduce(maximum, t, over)
        x = self.binary("subf", t, top)
        p = self.unary("math.exp", x)
        return self.binary("divf", p, self.reduce("addf", p, over))

    def binary(self, op, a, b):
        """Elementwise, `b` broadcast to the letters of `a`."""
        return self.map([a, b], f"%y = arith.{op} %0, %1 : {a.dtype}")

    def unary(self, op, t):
        return self.map([t], f"%y = {op} %0 : {t.dtype}")

    # Views.

    def transpose(self, t, dims):
        order = [t.dims.index(d) for d in dims]
        init = self.empty(dims, t.dtype)
        out = Tensor(self.new(), dims, t.dtype)
        self.emit(
            f"{out.name} = linalg.transpose ins({t.name} : {self.typed(t)}) "
            f"outs({init.name} : {self.typed(init)}) permutation = {order}"
        )
        return out

    def generic_transpose(self, t, dims):
        return self.map(
            [t], f"%c = arith.constant 0 : i1\n%y = arith.select %c, %0, %0 : "
            f"{t.dtype}", dims
        )

    def broadcast(self, t, dims):
        added = [n for n, d in enumerate(dims) if d not in t.dims]
        init = self.empty(dims, t.dtype)
        out = Tensor(self.new(), dims, t.dtype)
        self.emit(
            f"{out.name} = linalg.broadcast ins({t.name} : {self.typed(t)}) "
            f"outs({init.name} : {self.typed(init)}) dimensions = {added}"
        )
        return out

    def reshape(self, t, groups, collapse, dims=None, dtype=None):
        """tensor.collapse_shape or expand_shape; `groups` as letters of the
        side with more dimensions, `dims` names the result."""
        number, parts = 0, []
        for group in groups:
            parts.append(list(range(number, number + len(group))))
            number += len(group)
        out = Tensor(self.new(), dims, t.dtype)
        sizes = ""
        if not collapse:
            shape = [self.known.get(d, self.size(d)) for d in dims]
            sizes = f" output_shape [{', '.join(shape)}]"
        self.emit(
            f"{out.name} = tensor.{'collapse' if collapse else 'expand'}_shape "
            f"{t.name} {parts}{sizes} : {self.typed(t)} into {self.typed(out)}"
        )
        return out

    def returns(self, *tensors):
        self.results = list(tensors)
        return self

    def text(self):
        types = ", ".join(self.typed(t) for t in self.results)
        names = ", ".join(t.name for t in self.results)
        lines = [f"func.func @{self.name}({', '.join(self.args)}) -> ({types}) {{"]
        lines += self.lines
        lines += [f"  return {names} : {types}", "}"]
        return "\n".join(lines) + "\n"
