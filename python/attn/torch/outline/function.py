#===----------------------------------------------------------------------===#
#
# Part of attn, an attention compiler.
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===----------------------------------------------------------------------===#
"""The text of one function of linalg while it is written.

A tensor is (name, type, variables): its dimensions are b, h and i (`outer`) and keys, or
others that a product is summed over. Sizes that are not known are read from the operands
%q and %k.
"""

import collections

from .. import nodes
from ..indices import Unread
from ..reading import TYPES, literal, type_of

# An argument: a node, how it is brought into form (steps on it), and its type.
Argument = collections.namedtuple("Argument", "name type node steps")


class Function:
    """extents   {variable: size}, of the `outer` variables, the key `last`, and others
    is_draft  the text will be thrown away: sizes need not be known"""

    def __init__(self, extents, outer, last, is_draft=False):
        self.extents, self.outer, self.last, self.is_draft = dict(extents), outer, last, is_draft
        if not is_draft:
            self.extents.update({var: padded(extents[var]) for var in "de"})
        self.lines, self.arguments, self._names = [], [], {}
        self._sizes, self._reads, self._count = {}, {}, 0
        self.key_vars = {self.extents[last]: last}

    def line(self, operation, key=None):
        """The result of an operation; one that has a key is written once."""
        if key is not None and key in self._sizes:
            return self._sizes[key]
        name = f"%v{self._count}"
        self._count += 1
        self.lines.append(f"{name} = {operation}")
        if key is not None:
            self._sizes[key] = name
        return name

    def argument(self, node, steps, type):
        """The name of an argument that is made of a node by steps."""
        key = node, steps
        if key not in self._names:
            self._names[key] = f"%t{len(self.arguments)}"
            self.arguments.append(Argument(self._names[key], type, node, steps))
        return self._names[key]

    def operand(self, name, node, steps, heads, dim):
        """Makes %q, %k or %v an argument: (batch, heads, length, dim), with zeros behind what
        it has."""
        kind = type_of(nodes.value(node).dtype)
        if padded(dim) != dim:
            steps = (*steps, ("pad", (0, padded(dim) - dim)))
        self.arguments.append(Argument("%" + name, f"tensor<?x{heads}x?x{padded(dim)}x{kind}>", node, steps))

    def mark(self):
        """What reset() takes: arguments that come after are forgotten."""
        return len(self.arguments)

    def reset(self, mark):
        for argument in self.arguments[mark:]:
            del self._names[argument.node, argument.steps]
        del self.arguments[mark:]

    def key_var(self, size):
        """The variable of keys of which there are so many."""
        if size not in self.key_vars:
            # No letter of a product: the batches of one are n0, n1 ...
            var = f"one{len(self.key_vars)}" if size == 1 else f"m{len(self.key_vars)}"
            self.key_vars[size] = var
            self.extents[var] = size
        return self.key_vars[size]

    def size(self, expression):
        """The value of a size, of type index."""
        if isinstance(expression, int):
            return self.line(f"arith.constant {expression} : index", ("constant", expression))
        known = self._sizes.get(expression)
        if known:
            return known
        import sympy

        if self.is_draft:
            return "%unknown"
        if isinstance(expression, (sympy.Add, sympy.Mul)) or isinstance(expression, sympy.Integer):
            if isinstance(expression, sympy.Integer):
                return self.size(int(expression))
            how = "arith.addi" if isinstance(expression, sympy.Add) else "arith.muli"
            first, *rest = [self.size(part) for part in expression.args]
            for part in rest:
                first = self.line(f"{how} {first}, {part} : index")
            return first
        raise Unread(f"the size {expression}, which is no size of query or key")

    def length(self, var):
        """The value of the size of a variable."""
        known = self._reads.get(var)
        if known is None:
            extent = self.extents[var]
            known = self._reads[var] = self._keys_beside(extent) or self.size(extent)
        return known

    def _keys_beside(self, extent):
        """A known size of keys, which is read where theirs is: so much more or less."""
        keys = self.extents[self.last]
        if "j" not in self._reads or not isinstance(extent, int) or not isinstance(keys, int):
            return None
        return self.line(f"arith.addi {self._reads['j']}, {self.size(extent - keys)} : index")

    def dims(self, variables):
        """(text of the type's sizes, values of the unknown ones)"""
        texts, unknown = [], []
        for var in variables:
            extent = self.extents[var]
            if var == "h" or var.startswith("one") or var in ("d", "e") and isinstance(extent, int):
                texts.append(str(extent))
            else:
                texts.append("?")
                unknown.append(self.length(var))
        return "x".join(texts), unknown

    def empty(self, variables, kind):
        """(name, type)"""
        sizes, unknown = self.dims(variables)
        type = f"tensor<{sizes}x{kind}>"
        return self.line(f"tensor.empty({', '.join(unknown)}) : {type}"), type

    def filled(self, variables, number, dtype):
        """(name, type)"""
        empty, type = self.empty(variables, TYPES[dtype])
        constant = self.line(f"arith.constant {literal(number, dtype)}")
        return self.line(f"linalg.fill ins({constant} : {TYPES[dtype]}) outs({empty} : {type}) -> {type}"), type

    def generic(self, loops, inputs, out, lines, result, reduced=""):
        """inputs: (tensor, type, variables); out: (tensor, type, variables)."""
        def map_of(variables):
            return f"affine_map<({', '.join(loops)}) -> ({', '.join(variables)})>"

        ins = ""
        if inputs:
            ins = (f" ins({', '.join(x[0] for x in inputs)} : {', '.join(x[1] for x in inputs)})")
        kinds = ", ".join('"reduction"' if loop in reduced else '"parallel"' for loop in loops)
        maps = ", ".join(map_of(x[2]) for x in [*inputs, out])
        block = [f"%in{n}: {element_of(x[1])}" for n, x in enumerate(inputs)] + [f"%acc: {element_of(out[1])}"]
        return self.line(
            f"linalg.generic {{indexing_maps = [{maps}], iterator_types = [{kinds}]}}{ins} "
            f"outs({out[0]} : {out[1]}) {{\n  ^bb0({', '.join(block)}):\n    "
            + "\n    ".join([*lines, f"linalg.yield {result} : {element_of(out[1])}"])
            + f"\n  }} -> {out[1]}")

    def softmax(self, name, type, variables):
        """Over the last dimension."""
        empty, _ = self.empty(variables, element_of(type))
        return self.line(f"linalg.softmax dimension({len(variables) - 1}) ins({name} : {type}) "
                         f"outs({empty} : {type}) -> {type}")

    def cast(self, tensor, old, new):
        """A tensor of floats in another type."""
        if old == new:
            return tensor
        name, type, variables = tensor
        wide = f"{type[:type.rindex('x')]}x{TYPES[new]}>"
        how = "arith.extf" if new.itemsize > old.itemsize else "arith.truncf"
        return self.line(f"{how} {name} : {type} to {wide}"), wide, variables

    def read_sizes(self):
        """One tensor.dim for each length."""
        for var, name, dim in (("b", "q", 0), ("i", "q", 2), ("j", "k", 2)):
            extent = self.extents[var]
            if var == "j" and extent == self.extents["i"]:
                self._reads["j"] = self._reads["i"]
                continue
            constant = self.line(f"arith.constant {dim} : index", ("constant", dim))
            self._reads[var] = self.line(f"tensor.dim %{name}, {constant} : {self.type_of(name)}")
            if not isinstance(extent, int):
                self._sizes[extent] = self._reads[var]

    def type_of(self, name):
        """The type of %q, %k or %v."""
        return next(argument.type for argument in self.arguments if argument.name == "%" + name)

    def text(self, result):
        """The whole, which returns a tensor."""
        name, type, _ = result
        parameters = ", ".join(f"{each.name}: {each.type}" for each in self.arguments)
        lines = "\n".join("  " + line for line in self.lines)
        return f"func.func @attention({parameters}) -> {type} {{\n{lines}\n  return {name} : {type}\n}}\n"


def padded(dim):
    """The head dimension of a kernel for one of the graph."""
    return dim + -dim % 8


def dtype_of(kind):
    return next(dtype for dtype, name in TYPES.items() if name == kind)


def element_of(type):
    return type[type.rindex("x") + 1:-1] if "x" in type else type[7:-1]
