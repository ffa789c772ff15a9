#===----------------------------------------------------------------------===#
#
# Part of attn, an attention compiler.
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===----------------------------------------------------------------------===#
"""Elements of the nodes of a graph as scalar code, the body of a linalg.generic.

Arithmetic is PyTorch's: operands are brought to one type, f16 and bf16 are computed in
f32 and rounded after each operation.
"""

import math

import torch

from . import activations, nodes, parts, softmaxes
from .activated import Activated
from .gathers import Gathers
from .indices import ZERO, Computed, Scalar, Unread
from .joins import JOINED, Joins

TYPES = {
    torch.float16: "f16", torch.bfloat16: "bf16", torch.float32: "f32", torch.float64: "f64",
    torch.bool: "i1", torch.int8: "i8", torch.int16: "i16", torch.int32: "i32", torch.int64: "i64",
}

_FLOAT_BINARY = {"add": "arith.addf", "sub": "arith.subf", "mul": "arith.mulf", "div": "arith.divf",
                 "maximum": "arith.maximumf", "minimum": "arith.minimumf", "pow": "math.powf"}
_INTEGER_BINARY = {"add": "arith.addi", "sub": "arith.subi", "mul": "arith.muli", "and": "arith.andi",
                   "or": "arith.ori", "xor": "arith.xori", "maximum": "arith.maxsi", "minimum": "arith.minsi"}
_COMPARED = {"eq": ("oeq", "eq"), "ne": ("une", "ne"), "lt": ("olt", "slt"), "le": ("ole", "sle"),
             "gt": ("ogt", "sgt"), "ge": ("oge", "sge")}
_UNARY = {"exp": "math.exp", "exp2": "math.exp2", "log": "math.log", "log2": "math.log2",
          "log1p": "math.log1p", "tanh": "math.tanh", "sqrt": "math.sqrt", "rsqrt": "math.rsqrt",
          "sin": "math.sin", "cos": "math.cos", "floor": "math.floor", "ceil": "math.ceil",
          "erf": "math.erf", "asin": "math.asin", "acos": "math.acos", "atan": "math.atan",
          "asinh": "math.asinh", "acosh": "math.acosh", "atanh": "math.atanh"}
_ARITHMETIC = ("add", "sub", "rsub", "mul", "div", "maximum", "minimum", "pow", "floordiv", "remainder", "and", "or",
               "xor")
_FILLED = {"zero": 0, "zeros": 0, "ones": 1, "zeros_like": 0, "ones_like": 1, "new_zeros": 0, "new_ones": 1}


def type_of(dtype):
    if dtype not in TYPES:
        raise Unread(f"elements of {str(dtype).replace('torch.', '')}")
    return TYPES[dtype]


def literal(number, dtype):
    """A constant as MLIR writes it."""
    kind = TYPES[dtype]
    if not dtype.is_floating_point:
        if dtype == torch.bool:
            return "true" if number else "false"
        return f"{int(number)} : {kind}"
    number = float(number)
    if math.isinf(number) or math.isnan(number):
        bits = {"f16": ("7C00", "FC00", "7E00"), "bf16": ("7F80", "FF80", "7FC0"),
                "f32": ("7F800000", "FF800000", "7FC00000"),
                "f64": ("7FF0000000000000", "FFF0000000000000", "7FF8000000000000")}[kind]
        return f"0x{bits[2 if math.isnan(number) else number < 0]} : {kind}"
    return f"{number:.17e} : {kind}"


def computed_in(dtype):
    return torch.float32 if dtype in (torch.float16, torch.bfloat16) else dtype


class Body(Gathers, Joins, Activated):
    """Lines of scalar code over the loops of one generic.

    outline  has tensors and sizes: element(node, indices, body), leaf(node, indices, at,
             body), size(expression).
    loops    the names of its positions, in order.
    """

    def __init__(self, outline, loops):
        self.outline, self.loops = outline, loops
        self.lines, self.inputs, self._known, self._count = [], [], {}, 0
        self._compared = {}  # the operands of the comparisons that flags are of
        self.is_joining = False  # elements may lie beyond the ends of their tensors, see joins.py
        self.parts = []  # which elements are read of parts that they may not be in, see parts.py

    # Lines.

    def emit(self, operation):
        name = f"%x{self._count}"
        self._count += 1
        self.lines.append(f"{name} = {operation}")
        return name

    def once(self, key, make):
        if key not in self._known:
            self._known[key] = make()
        return self._known[key]

    def number(self, number, dtype):
        if dtype == torch.bool:
            number = bool(number)
        text = literal(number, dtype)
        is_natural = dtype in (torch.int32, torch.int64) and number >= 0
        name = self.once(("number", text), lambda: self.emit(f"arith.constant {text}"))
        return Scalar(name, dtype, False, is_natural)

    @staticmethod
    def flag(name):
        return Scalar(name, torch.bool, False)

    def index_constant(self, number):
        return self.once(("index", number), lambda: self.emit(f"arith.constant {number} : index"))

    def cast(self, scalar, dtype):
        """A scalar of another type."""
        old, new = scalar.dtype, dtype
        if old == new:
            return scalar
        a, b = type_of(old), type_of(new)
        # What is cut off may leave a sign.
        scalar = scalar._replace(is_natural=scalar.is_natural and old != torch.int64 and new == torch.int64)
        if new == torch.bool:
            zero = self.number(0, old).name
            how = "arith.cmpf une" if old.is_floating_point else "arith.cmpi ne"
            return scalar._replace(name=self.emit(f"{how}, {scalar.name}, {zero} : {a}"), dtype=new)
        if old == torch.bool:
            how = "arith.uitofp" if new.is_floating_point else "arith.extui"
        elif old.is_floating_point and new.is_floating_point:
            if old.itemsize == new.itemsize:  # f16 and bf16
                return self.cast(self.cast(scalar, torch.float32), new)
            how = "arith.extf" if new.itemsize > old.itemsize else "arith.truncf"
        elif old.is_floating_point:
            how = "arith.fptosi"
        elif new.is_floating_point:
            how = "arith.sitofp"
        else:
            how = "arith.extsi" if new.itemsize > old.itemsize else "arith.trunci"
        return scalar._replace(name=self.emit(f"{how} {scalar.name} : {a} to {b}"), dtype=new)

    # Positions.

    def position(self, index):
        """An index as a value of type index."""
        if isinstance(index, Computed):
            return self.emit(f"arith.index_cast {index.scalar.name} : i64 to index")
        return self.once(("position", index), lambda: self._position(index))

    def _position(self, index):
        total = None
        for digit in index.digits:
            place = self.once(("loop", digit.var),
                              lambda: self.emit(f"linalg.index {self.loops.index(digit.var)} : index"))
            if digit.div != 1:
                place = self.emit(f"arith.divui {place}, {self._size(digit.div)} : index")
            if digit.div * digit.size != self.outline.extent(digit.var):
                place = self.emit(f"arith.remui {place}, {self._size(digit.size)} : index")
            if total is not None:
                total = self.emit(f"arith.muli {total}, {self._size(digit.size)} : index")
                place = self.emit(f"arith.addi {total}, {place} : index")
            total = place
        if total is None:
            return self._size(index.offset)
        if index.offset != 0:
            total = self.emit(f"arith.addi {total}, {self._size(index.offset)} : index")
        return total

    def _size(self, size):
        return self.index_constant(size) if isinstance(size, int) else self.outline.size(size)

    def integer(self, index):
        """An index as an i64."""
        if isinstance(index, Computed):
            return index.scalar
        place = self.position(index)
        name = self.once(("integer", index), lambda: self.emit(f"arith.index_cast {place} : index to i64"))
        return Scalar(name, torch.int64, False, is_natural=not isinstance(index.offset, int) or index.offset >= 0)

    # Elements.

    def read(self, node, indices, at):
        """The element of a node as `at` reads it."""
        try:
            try:
                node = self.outline.graph.resolve(node, at)
            except Unread as part:
                if self.outline.is_spine(node):
                    key = (node, tuple(indices), part.node)
                    return self.once(key, lambda: parts.element(self, node, list(indices), at, part.node))
                key = (node, tuple(indices), "written")
                return self.once(key, lambda: self._written(node, indices, at, part.node))
            key = (node, tuple(indices))
            if key not in self._known:
                found = self.outline.element(node, indices, self)
                self._known[key] = self._computed(node, indices, at) if found is None else found
            return self._known[key]
        except Unread as reason:
            reason.node = reason.node or node
            raise

    def _leaf(self, node, indices, at):
        if self.is_joining:
            raise Unread("a tensor of which a part is joined to others")
        return self.outline.leaf(node, indices, at, self)

    def _tried(self, make, otherwise):
        """What `make` reads, or else what the other does, without what the first left behind."""
        mark = len(self.lines), dict(self._known), self.outline.mark()
        try:
            return make()
        except Unread:
            self.lines, self._known = self.lines[:mark[0]], mark[1]
            self.outline.reset(mark[2])
            return otherwise()

    def _written(self, node, indices, at, write):
        """An element of a tensor that is no part of the scores and is written to in part, as masks
        are that show a few keys to all: a choice where a number is written, else an argument."""
        def leaf():
            return self._leaf(node, indices, at)
        if self.parts or nodes.value(node).requires_grad or not parts.writes_a_number(write):
            return leaf()
        return self._tried(lambda: parts.element(self, node, list(indices), at, write), leaf)

    def _computed(self, node, indices, at):
        """The same by the operation of the node, or else as an element of an argument."""
        if self.parts and nodes.shape(node) and not self.outline.is_spine(node):
            return self._leaf(node, indices, at)
        def make():
            found = self._operation(node, list(indices))
            if found.is_made and found.dtype.is_floating_point and not self.outline.is_spine(node) and (
                    self.outline.keeps_floats or not self.outline.is_pair(indices)) \
                    and not nodes.is_view(node) and nodes.name(node) not in _MOVES:
                raise Unread("a number that is computed once")
            return found
        if self.outline.is_spine(node):
            return make()
        return self._tried(make, lambda: self._leaf(node, indices, at))

    def _operand(self, node, given, indices, dtype):
        """An argument of an elementwise operation, in a type."""
        if nodes.is_tensor(given):
            return self.cast(self._broadcast(node, given, indices), dtype)
        number = nodes.known(given)
        if number is not None:
            return self.number(number, dtype)
        size = nodes.sized(given)
        if size is None:
            raise Unread(f"a number that {nodes.written_name(node)} gets from elsewhere")
        name = self.emit(f"arith.index_cast {self._size(size)} : index to i64")
        is_natural = isinstance(size, int) or bool(size.is_nonnegative)
        return self.cast(Scalar(name, torch.int64, False, is_natural), dtype)

    def _broadcast(self, node, given, indices):
        sizes = nodes.shape(given)
        inner = indices[len(indices) - len(sizes):]
        wide = nodes.shape(node)[len(indices) - len(sizes):]
        own = [ZERO if n == 1 and outer != 1 else index for n, outer, index in zip(sizes, wide, inner)]
        return self.read(given, own, node)

    def _made(self, name, dtype, *operands):
        return Scalar(name, dtype, any(operand.is_made for operand in operands))

    def _operation(self, node, indices):
        name = nodes.name(node)
        dtype = self.outline.dtype_of(node)
        type_of(dtype)
        if not self.outline.is_spine(node) and nodes.cuts_gradients(node):
            raise Unread("what gets no gradients")
        if name in ("min", "max") and nodes.is_tensor(nodes.argument(node, 1, "other")):
            name += "imum"
        if nodes.is_view(node) and not (name == "getitem" and self._advanced(node)):
            source = node.args[0]
            if name == "getitem" and not nodes.is_tensor(source):
                raise Unread("a part of several results")
            return self.read(source, parts.within(self, source, nodes.viewed(node, indices)), node)
        if name in _COMPARED:
            return self._compare(node, indices, name)
        if name in _UNARY:
            return self._unary(node, indices, dtype, _UNARY[name])
        if name in _FILLED:
            return self.number(_FILLED[name], dtype)
        if name in activations.READ_OF_TWO or name in activations.BY_A_NUMBER and dtype.is_floating_point:
            return self._activation_of_two(node, indices, dtype)
        if name in _ARITHMETIC:
            return self._arithmetic(node, indices, name, dtype)
        if name in activations.READ:
            return self._activation(node, indices, dtype)
        if name in JOINED:
            return self._read_joined(node, indices, dtype)
        if name in _METHODS:
            return getattr(self, _METHODS[name])(node, indices, dtype)
        raise Unread(f"{nodes.written_name(node)} is not an operation that is read" if name
                     else "an argument of the graph")

    def bind(self, places, scalars):
        """Scalars for arguments of a graph of scalars."""
        self._known.update({(place, ()): scalar for place, scalar in zip(places, scalars)})

    # Arithmetic.

    def _arithmetic(self, node, indices, name, dtype):
        first, second = nodes.argument(node, 0, "input"), nodes.argument(node, 1, "other")
        if name in ("pow",) and second is None:
            second = node.kwargs.get("exponent")
        if name == "rsub":
            first, second, name = second, first, "sub"
        if node.kwargs.get("rounding_mode") == "floor" and not dtype.is_floating_point:
            name = "floordiv"
        elif node.kwargs.get("rounding_mode") is not None:
            raise Unread("a division that is rounded")
        if name == "pow" and nodes.known(second) in (1, 2) and dtype.is_floating_point:
            second, name = (first, "mul") if nodes.known(second) == 2 else (1, "mul")
        wide = computed_in(dtype)

        def operand(given):
            return self.cast(self._operand(node, given, indices, dtype), wide) \
                if nodes.is_tensor(given) else self._operand(node, given, indices, wide)

        a, b = operand(first), operand(second)
        alpha = nodes.known(node.kwargs.get("alpha", 1))
        if alpha != 1:
            if alpha is None:
                raise Unread("an alpha that is computed")
            b = self._binary("mul", b, self.number(alpha, wide), wide)
        result = self._binary(name, a, b, wide)
        return self.cast(result._replace(is_made=True) if name == "pow" else result, dtype)

    def _binary(self, name, a, b, dtype):
        kind = TYPES[dtype]
        if dtype.is_floating_point and name in _FLOAT_BINARY:
            how = _FLOAT_BINARY[name]
        elif dtype == torch.bool and name in ("add", "mul", "and", "or", "xor"):
            how = _INTEGER_BINARY[{"add": "or", "mul": "and"}.get(name, name)]
        elif not dtype.is_floating_point and name in _INTEGER_BINARY:
            how = _INTEGER_BINARY[name]
        elif not dtype.is_floating_point and name in ("floordiv", "remainder"):
            result = self._made(self.emit(f"arith.floordivsi {a.name}, {b.name} : {kind}"), dtype, a, b)
            if name == "floordiv":
                return result
            return self._binary("sub", a, self._binary("mul", result, b, dtype), dtype)
        else:
            raise Unread(f"{name} of {str(dtype).replace('torch.', '')}")
        result = self._made(self.emit(f"{how} {a.name}, {b.name} : {kind}"), dtype, a, b)
        keeps = name in ("add", "mul", "maximum", "minimum") and dtype == torch.int64
        return result._replace(is_natural=keeps and a.is_natural and b.is_natural)

    def _compare(self, node, indices, name):
        first, second = nodes.argument(node, 0, "input"), nodes.argument(node, 1, "other")
        dtype = _common(first, second)
        if dtype == torch.bool and name not in ("eq", "ne"):
            dtype = torch.int32
        a, b = (self._operand(node, given, indices, dtype) for given in (first, second))
        kind = TYPES[dtype]
        how = "arith.cmpf " + _COMPARED[name][0] if dtype.is_floating_point else "arith.cmpi " + _COMPARED[name][1]
        flag = self.emit(f"{how}, {a.name}, {b.name} : {kind}")
        self._compared[flag] = {a.name, b.name}
        return self._made(flag, torch.bool, a, b)

    def _unary(self, node, indices, dtype, how):
        wide = computed_in(dtype)
        a = self._operand(node, node.args[0], indices, wide)
        result = Scalar(self.emit(f"{how} {a.name} : {TYPES[wide]}"), wide, True)
        return self.cast(result, dtype)

    def _read_neg(self, node, indices, dtype):
        a = self._operand(node, node.args[0], indices, dtype)
        if dtype.is_floating_point:
            return self._made(self.emit(f"arith.negf {a.name} : {TYPES[dtype]}"), dtype, a)
        return self._binary("sub", self.number(0, dtype), a, dtype)

    def _read_abs(self, node, indices, dtype):
        a = self._operand(node, node.args[0], indices, dtype)
        how = "math.absf" if dtype.is_floating_point else "math.absi"
        return self._made(self.emit(f"{how} {a.name} : {TYPES[dtype]}"), dtype, a)

    def _read_square(self, node, indices, dtype):
        wide = computed_in(dtype)
        a = self._operand(node, node.args[0], indices, wide)
        return self.cast(self._binary("mul", a, a, wide), dtype)

    def _read_not(self, node, indices, dtype):
        a = self._operand(node, node.args[0], indices, torch.bool if "logical" in nodes.name(node) else dtype)
        minus_one = self.number(-1 if a.dtype != torch.bool else True, a.dtype)
        result = self._binary("xor", a, minus_one, a.dtype)
        self._compared[result.name] = self._compared.get(a.name)
        return result

    def _read_logical(self, node, indices, dtype):
        a, b = (self._operand(node, given, indices, torch.bool)
                for given in (node.args[0], nodes.argument(node, 1, "other")))
        return self._binary(nodes.name(node).split("_")[1], a, b, torch.bool)

    def _read_cast(self, node, indices, dtype):
        source = node.args[0]
        if nodes.value(source).device != nodes.value(node).device:
            raise Unread("a tensor of another device")
        return self.cast(self.read(source, indices, node), dtype)

    def _read_detach(self, node, indices, dtype):
        if nodes.value(node.args[0]).requires_grad:
            raise Unread("detach")
        return self.read(node.args[0], indices, node)

    def _read_nan_to_num(self, node, indices, dtype):
        """Of weights, which are no numbers where a row sees no key, and never infinite."""
        given = [nodes.argument(node, n, key) for n, key in ((1, "nan"), (2, "posinf"), (3, "neginf"))]
        weights = softmaxes.behind_moves(node.args[0])
        if softmaxes.as_softmax(self.outline.graph, weights) is None or given[0] not in (None, 0):
            raise Unread("nan_to_num of other than a softmax, or to other than 0")
        a = self.read(node.args[0], indices, node)
        nothing = Scalar(self.emit(f"arith.cmpf uno, {a.name}, {a.name} : {TYPES[a.dtype]}"), torch.bool, False)
        return self._select(nothing, self.number(0, a.dtype), a, dtype)

    def _read_isnan(self, node, indices, dtype):
        a = self.read(node.args[0], indices, node)
        return self._made(self.emit(f"arith.cmpf uno, {a.name}, {a.name} : {TYPES[a.dtype]}"), torch.bool, a)

    def _read_dropout(self, node, indices, dtype):
        if not nodes.drops_nothing(node):
            raise Unread("dropout drops something")
        return self.read(node.args[0], indices, node)

    # Choices.

    def arithmetic(self, dtype):
        """Lines in the type that numbers of a type are computed in."""
        return activations.Lines(self, computed_in(dtype), TYPES[computed_in(dtype)])

    def _chosen(self, node, condition, a, b, dtype):
        """A choice of the graph, of which the slope is that of what is chosen."""
        if self._compared.get(condition.name) == {a.name, b.name} and dtype.is_floating_point and nodes.value(node).requires_grad:
            lines = self.arithmetic(dtype)
            a, b = (self.cast(activations.itself(lines, self.cast(x, lines.dtype)), dtype) for x in (a, b))
        return self._select(condition, a, b, dtype)

    def _select(self, condition, a, b, dtype):
        name = self.emit(f"arith.select {condition.name}, {a.name}, {b.name} : {TYPES[dtype]}")
        return self._made(name, dtype, a, b)

    def _read_where(self, node, indices, dtype):
        condition, first, second = (nodes.argument(node, n, key)
                                    for n, key in enumerate(("condition", "input", "other")))
        if name_of_method(node):  # x.where(condition, y)
            condition, first = first, condition
        if first is None or second is None:
            raise Unread("where without choices")
        c = self._operand(node, condition, indices, torch.bool)
        a, b = (self._operand(node, given, indices, dtype) for given in (first, second))
        return self._chosen(node, c, a, b, dtype)

    def _read_masked_fill(self, node, indices, dtype):
        c = self._operand(node, nodes.argument(node, 1, "mask"), indices, torch.bool)
        fill = self._operand(node, nodes.argument(node, 2, "value"), indices, dtype)
        return self._chosen(node, c, fill, self._operand(node, node.args[0], indices, dtype), dtype)

    def in_triangle(self, node, indices):
        """Whether tril or triu keeps an element."""
        diagonal = nodes.argument(node, 1, "diagonal", 0)
        row, column = self.integer(indices[-2]), self.integer(indices[-1])
        distance = self._binary("sub", column, row, torch.int64)
        bound = self._operand(node, diagonal, [], torch.int64)
        how = "sle" if nodes.name(node) == "tril" else "sge"
        return Scalar(self.emit(f"arith.cmpi {how}, {distance.name}, {bound.name} : i64"), torch.bool, False)

    def _read_triangle(self, node, indices, dtype):
        kept = self.in_triangle(node, indices)
        a = self.read(node.args[0], indices, node)
        if dtype == torch.bool:
            return self._binary("and", kept, a, dtype)
        return self._select(kept, a, self.number(0, dtype), dtype)

    # Tensors that are made.

    def _read_arange(self, node, indices, dtype):
        arguments = [each for each in node.args]
        if "start" in node.kwargs or "end" in node.kwargs:
            arguments = [node.kwargs.get("start", 0), *arguments, *([node.kwargs["end"]] if "end" in node.kwargs else [])]
        start, step = 0, node.kwargs.get("step", 1)
        if len(arguments) > 1:
            start = arguments[0]
        if len(arguments) > 2:
            step = arguments[2]
        if any(isinstance(nodes.known(each), float) for each in (start, step)):
            raise Unread("arange of floats")
        at = self.integer(indices[0])
        if nodes.known(step) != 1:
            at = self._binary("mul", at, self._operand(node, step, [], torch.int64), torch.int64)
        if nodes.known(start) != 0:
            at = self._binary("add", at, self._operand(node, start, [], torch.int64), torch.int64)
        return self.cast(at, dtype)._replace(is_natural=at.is_natural and dtype in (torch.int32, torch.int64))

    def _read_full(self, node, indices, dtype):
        places = {"full": 1, "full_like": 1, "new_full": 2, "scalar_tensor": 0, "tensor": 0, "as_tensor": 0}
        given = nodes.argument(node, places[nodes.name(node)], "fill_value", node.kwargs.get("data"))
        if nodes.is_tensor(given) and nodes.value(given).dim() == 0:
            return self.cast(self.read(given, [], node), dtype)
        if isinstance(given, (tuple, list)) or nodes.is_tensor(given):
            raise Unread("a tensor of several numbers")
        return self._operand(node, given, [], dtype)

    def _read_weighed(self, node, indices, dtype):
        """addcmul, addcdiv: x + factor (a b), or a / b; lerp: a + weight (b - a)."""
        kind, wide, names = nodes.name(node), computed_in(dtype), ("input", "tensor1", "tensor2")
        if kind == "lerp":
            names = ("input", "end", "weight")
        x, a, b = (self._operand(node, nodes.argument(node, n, name), indices, wide) for n, name in enumerate(names))
        if kind == "lerp":
            part = self._binary("mul", b, self._binary("sub", a, x, wide), wide)
        else:
            part = self._binary(kind[-3:], a, b, wide)
            factor = nodes.known(node.kwargs.get("value", 1))
            if factor is None or len(node.args) > 3:
                raise Unread("a factor that is computed")
            part = self._binary("mul", part, self.number(factor, wide), wide) if factor != 1 else part
        return self.cast(self._binary("add", x, part, wide), dtype)

    def _read_copy(self, node, indices, dtype):
        """fill_ and copy_: of a number, or a tensor."""
        return self._operand(node, nodes.argument(node, 1, "value" if nodes.name(node) == "fill" else "src"), indices, dtype)

    def _read_eye(self, node, indices, dtype):
        row, column = self.integer(indices[-2]), self.integer(indices[-1])
        same = Scalar(self.emit(f"arith.cmpi eq, {row.name}, {column.name} : i64"), torch.bool, False)
        return self.cast(same, dtype)

    # Products.

    def _read_baddbmm(self, node, indices, dtype):
        """beta input + alpha product, where the product is the spine's."""
        alpha, beta = (nodes.known(node.kwargs.get(key, 1)) for key in ("alpha", "beta"))
        if alpha is None or beta is None:
            raise Unread("a factor that is computed")
        wide = computed_in(dtype)
        result = self.cast(self.outline.raw_product(node, indices, self), wide)
        if alpha != 1:
            result = self._binary("mul", result, self.number(alpha, wide), wide)
        if beta != 0:
            added = self.cast(self._operand(node, node.args[0], indices, dtype), wide)
            if beta != 1:
                added = self._binary("mul", added, self.number(beta, wide), wide)
            result = self._binary("add", added, result, wide)
        return self.cast(result, dtype)


def name_of_method(node):
    return node.op == "call_method"


def _common(first, second):
    """The type that two operands are compared in."""
    dtypes = [nodes.value(each) if nodes.is_tensor(each) else nodes.known(each) for each in (first, second)]
    if any(each is None for each in dtypes):  # a size
        return next(each.dtype for each in dtypes if isinstance(each, torch.Tensor))
    return torch.result_type(*dtypes)


def is_read(node):
    """Whether an operation is one that Body reads element by element."""
    return nodes.is_view(node) or nodes.name(node) in _READ


# What costs nothing in a kernel.
_MOVES = ("to", "detach", "where", "masked_fill", "tril", "triu", "embedding", "index_select", "gather", "dropout")

_METHODS = {
    "neg": "_read_neg", "abs": "_read_abs", "relu": "_read_relu",
    "square": "_read_square", "clamp": "_read_clamp", "clamp_min": "_read_clamp", "clamp_max": "_read_clamp",
    "bitwise_not": "_read_not", "logical_not": "_read_not", "logical_and": "_read_logical",
    "logical_or": "_read_logical", "logical_xor": "_read_logical", "to": "_read_cast", "detach": "_read_detach",
    "dropout": "_read_dropout", "where": "_read_where", "masked_fill": "_read_masked_fill",
    "tril": "_read_triangle", "triu": "_read_triangle", "arange": "_read_arange", "full": "_read_full",
    "full_like": "_read_full", "new_full": "_read_full", "scalar_tensor": "_read_full", "tensor": "_read_full",
    "as_tensor": "_read_full", "eye": "_read_eye", "embedding": "_read_embedding",
    "index_select": "_read_index_select", "gather": "_read_gather", "getitem": "_read_getitem",
    "baddbmm": "_read_baddbmm", "addmm": "_read_baddbmm", "addcmul": "_read_weighed", "addcdiv": "_read_weighed",
    "lerp": "_read_weighed", "fill": "_read_copy", "copy": "_read_copy", "nan_to_num": "_read_nan_to_num", "isnan": "_read_isnan",
    "prelu": "_read_prelu",
}

_READ = frozenset((*_METHODS, *activations.READ, *activations.READ_OF_TWO, *activations.BY_A_NUMBER, *_COMPARED, *_UNARY, *_FILLED, *_ARITHMETIC, "min", "max"))
