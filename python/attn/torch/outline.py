#===----------------------------------------------------------------------===#
#
# Part of attn, an attention compiler.
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===----------------------------------------------------------------------===#
"""One attention of a graph as text of linalg, for attn-raise to prove.

From the product with the values back to the product of queries and keys (the spine) all
is written over the positions b, h, i, j of attention; what is beside it (masks, biases)
is read where it is computed from positions, and is an argument where it is not.
"""

import collections

from . import nodes
from .indices import ZERO, Digit, Index, Unread, joined, product, quotient, whole
from .reading import TYPES, Body, Scalar, computed_in, type_of

import torch

# An argument: a node, how it is brought into form (steps on it), and its type.
Argument = collections.namedtuple("Argument", "name type node steps")
# A factor of a product before what is done to each element.
Operand = collections.namedtuple("Operand", "node indices steps")


def _letters(node, reads):
    """The product `node` as (weights, values, letters...) if `reads` is one factor."""
    a, b, first, second, result = nodes.product_letters(node)
    if a is reads and b is not reads:
        return a, b, first, second, result
    if b is reads and a is not reads:
        return b, a, second, first, result
    return None


class Outline:
    """The graph between the product `scores` and the product `output`, whose factor
    `weights` is made of it."""

    def __init__(self, graph, scores, output, weights):
        self.graph, self.scores, self.output, self.weights = graph, scores, output, weights
        self.replaced = self.like = output  # what goes, and a tensor of its type
        self.spine = _between(scores, output)
        found = _letters(output, weights)
        if found is None:
            raise Unread("weights that are multiplied with themselves")
        _, self.values, self._of_weights, self._of_values, self._of_output = found
        summed = [x for x in self._of_weights if x is not None and x not in self._of_output]
        if len(summed) != 1 or summed[0] not in self._of_values:
            raise Unread("weights that are summed over other than keys")
        self._key = summed[0]
        own = [x for x in self._of_values if x is not None and x not in self._of_weights]
        if len(own) != 1:
            raise Unread("values of other than one dimension of their own")
        self._value_dim = own[0]
        self._sizes = self._sizes_of_letters()

    def _sizes_of_letters(self):
        sizes = {}
        for node, letters in ((self.weights, self._of_weights), (self.values, self._of_values),
                              (self.output, self._of_output)):
            for letter, size in zip(letters, nodes.shape(node)):
                if letter is not None and sizes.get(letter, 1) == 1:
                    sizes[letter] = size
        return sizes

    # -----------------------------------------------------------------------
    # The whole
    # -----------------------------------------------------------------------

    def text(self):
        """The text of the function; then `arguments` has what it is called with."""
        # First over the positions of the output, to see which the product of queries
        # and keys has; then over those of attention.
        outer = [x for x in self._of_output if x != self._value_dim]
        self._operands = None
        self._begin({x: self._sizes[x] for x in [*outer, self._key]}, outer, self._key)
        at = {x: whole(x, self._sizes[x]) for x in [*outer, self._key]}
        self._product = None
        self._write_weights(at)
        if self._product is None:
            raise Unread("weights that no product of queries and keys is in")
        positions = self._positions = self._plan(outer)
        self._positions[self._value_dim] = whole("e", self._canonical["e"])
        self._begin(self._canonical, ["b", "h", "i"], "j")
        self._make_operands(positions)
        return self._function(self._write_weights(positions))

    def _begin(self, extents, outer, key):
        self._extents, self._outer, self._last = dict(extents), outer, key
        self._lines, self._tensors, self.arguments, self._names = [], {}, [], {}
        self._sizes_known, self._count, self._reads = {}, 0, {}
        self._key_vars = {self._extents[key]: key}

    def _write_weights(self, positions):
        indices = [ZERO if x is None else positions[x] for x in self._of_weights]
        return self._materialise(self.weights, indices, self._last, self.output)

    # -----------------------------------------------------------------------
    # What Body asks for
    # -----------------------------------------------------------------------

    keeps_floats = False  # floats are not computed in the kernel, but arguments of it

    def dtype_of(self, node):
        """The type that the elements of a node are computed in."""
        return nodes.value(node).dtype

    def extent(self, var):
        return self._extents[var]

    def is_spine(self, node):
        return node in self.spine

    def is_pair(self, indices):
        """Whether an element belongs to a query and a key."""
        variables = set()
        for index in indices:
            if not isinstance(index, Index):
                return True
            variables |= {digit.var for digit in index.digits}
        keys = set(self._key_vars.values())
        return bool(variables & keys) and self._outer[-1] in variables

    def mark(self):
        return len(self.arguments)

    def reset(self, mark):
        for argument in self.arguments[mark:]:
            del self._names[argument.node, argument.steps]
        del self.arguments[mark:]

    def size(self, expression):
        """The value of a size, of type index."""
        if isinstance(expression, int):
            return self._line(f"arith.constant {expression} : index", ("constant", expression))
        known = self._sizes_known.get(expression)
        if known:
            return known
        import sympy

        if self._operands is None:
            return "%unknown"  # in text that is thrown away
        if isinstance(expression, (sympy.Add, sympy.Mul)) or isinstance(expression, sympy.Integer):
            if isinstance(expression, sympy.Integer):
                return self.size(int(expression))
            how = "arith.addi" if isinstance(expression, sympy.Add) else "arith.muli"
            first, *rest = [self.size(part) for part in expression.args]
            for part in rest:
                first = self._line(f"{how} {first}, {part} : index")
            return first
        raise Unread(f"the size {expression}, which is no size of query or key")

    def element(self, node, indices, body):
        """The element of a tensor of the spine; None: to be read."""
        if node not in self.spine:
            return None
        kind = nodes.name(node)
        if node is self.scores and kind != "baddbmm":
            return body.cast(self.raw_product(node, indices, body), nodes.value(node).dtype)
        if kind == "softmax":
            dim = nodes.argument(node, 1, "dim")
            if not isinstance(dim, int):
                raise Unread("a softmax over no dimension that is given")
            return self._of_tensor(node, indices, dim % len(indices), self._softmax, body)
        if kind == "cat":
            return self._of_tensor(node, indices, nodes.argument(node, 1, "dim", 0) % len(indices),
                                   self._concatenate, body)
        if kind == "getitem" and nodes.name(node.args[0]) == "max" and node.args[1] == 0:
            return self._maximum(node, node.args[0], indices, body)
        if kind == "max" and nodes.argument(node, 1, "dim") is not None and nodes.is_tensor(node):
            return self._maximum(node, node, indices, body)
        return None

    def leaf(self, node, indices, at, body):
        """The element of a tensor that is an argument."""
        if self.graph.writes(node, self.graph.order[at], self.graph.order[self.output]):
            raise Unread("a tensor that is written to before its values are used")
        held, steps, places, sizes = nodes.value(node), [], [], []
        if not isinstance(held, torch.Tensor):
            raise Unread("a part of several results")
        if held.device != nodes.value(self.like).device:
            raise Unread("a tensor of another device")
        dtype = held.dtype
        if dtype == torch.uint8:
            dtype = torch.int32
            steps.append(("to", dtype))
        removed = 0
        for dim, (index, size) in enumerate(zip(indices, nodes.shape(node))):
            if isinstance(index, Index) and not index.digits and isinstance(index.offset, int):
                steps.append(("select", dim - removed, index.offset))
                removed += 1
                continue
            is_heads = isinstance(index, Index) and index.offset == 0 and len(index.digits) == 1 \
                and index.digits[0].var == "h" and isinstance(size, int)
            places.append(body.position(index))
            sizes.append(str(size) if is_heads else "?")
        if not places:
            steps.append(("reshape", 1))
            places, sizes = [body.index_constant(0)], ["1"]
        type = f"tensor<{'x'.join([*sizes, type_of(dtype)])}>"
        name = self._argument(node, tuple(steps), type)
        scalar = Scalar(body.emit(f"tensor.extract {name}[{', '.join(places)}] : {type}"), dtype,
                        dtype.is_floating_point)
        return body.cast(scalar, held.dtype) if held.dtype != torch.uint8 else scalar

    def _argument(self, node, steps, type):
        key = node, steps
        if key not in self._names:
            self._names[key] = f"%t{len(self.arguments)}"
            self.arguments.append(Argument(self._names[key], type, node, steps))
        return self._names[key]

    # -----------------------------------------------------------------------
    # Tensors of the spine: over the outer positions and keys
    # -----------------------------------------------------------------------

    def _line(self, operation, key=None):
        if key is not None and key in self._sizes_known:
            return self._sizes_known[key]
        name = f"%v{self._count}"
        self._count += 1
        self._lines.append(f"{name} = {operation}")
        if key is not None:
            self._sizes_known[key] = name
        return name

    def _dims(self, variables):
        """(text of the type's sizes, values of the unknown ones)"""
        texts, unknown = [], []
        for var in variables:
            extent = self._extents[var]
            if var == "h" or var.startswith("one") or var in ("d", "e") and isinstance(extent, int):
                texts.append(str(extent))
            else:
                texts.append("?")
                unknown.append(self._length(var))
        return "x".join(texts), unknown

    def _length(self, var):
        known = self._reads.get(var)
        if known is None:
            extent = self._extents[var]
            known = self._reads[var] = self.size(extent)
        return known

    def _empty(self, variables, kind):
        sizes, unknown = self._dims(variables)
        type = f"tensor<{sizes}x{kind}>"
        return self._line(f"tensor.empty({', '.join(unknown)}) : {type}"), type

    def _filled(self, variables, number, dtype):
        from .reading import literal

        empty, type = self._empty(variables, TYPES[dtype])
        constant = self._line(f"arith.constant {literal(number, dtype)}")
        return self._line(f"linalg.fill ins({constant} : {TYPES[dtype]}) outs({empty} : {type}) -> {type}"), type

    def _generic(self, loops, inputs, out, lines, result, reduced=""):
        """inputs: (tensor, type, variables); out: (tensor, type, variables)."""
        def map_of(variables):
            return f"affine_map<({', '.join(loops)}) -> ({', '.join(variables)})>"

        ins = ""
        if inputs:
            ins = (f" ins({', '.join(x[0] for x in inputs)} : {', '.join(x[1] for x in inputs)})")
        kinds = ", ".join('"reduction"' if loop in reduced else '"parallel"' for loop in loops)
        maps = ", ".join(map_of(x[2]) for x in [*inputs, out])
        block = [f"%in{n}: {_element(x[1])}" for n, x in enumerate(inputs)] + [f"%acc: {_element(out[1])}"]
        return self._line(
            f"linalg.generic {{indexing_maps = [{maps}], iterator_types = [{kinds}]}}{ins} "
            f"outs({out[0]} : {out[1]}) {{\n  ^bb0({', '.join(block)}):\n    "
            + "\n    ".join([*lines, f"linalg.yield {result} : {_element(out[1])}"])
            + f"\n  }} -> {out[1]}")

    def _key_var(self, size):
        if size not in self._key_vars:
            var = f"one{len(self._key_vars)}" if size == 1 else f"n{len(self._key_vars)}"
            self._key_vars[size] = var
            self._extents[var] = size
        return self._key_vars[size]

    def _materialise(self, node, indices, last, at):
        """(tensor, type, variables) of the elements of a node over outer positions and
        the key `last`."""
        variables = [*self._outer, last]
        body = Body(self, variables)
        scalar = body.read(node, indices, at)
        if not body.lines and len(body.inputs) == 1 and body.inputs[0][2] == variables:
            return body.inputs[0]
        empty, type = self._empty(variables, TYPES[scalar.dtype])
        tensor = self._generic(variables, body.inputs, (empty, type, variables), body.lines, scalar.name)
        return tensor, type, variables

    def _input(self, tensor, dtype, body):
        if tensor not in body.inputs:
            body.inputs.append(tensor)
        return Scalar(f"%in{body.inputs.index(tensor)}", dtype, False)

    def _of_tensor(self, node, indices, dim, make, body):
        """An element of what `make` makes, at the key of the body."""
        rest, index = tuple(indices[:dim] + indices[dim + 1:]), indices[dim]
        size = nodes.shape(node)[dim]
        if (node, rest) not in self._tensors:
            self._tensors[node, rest] = make(node, list(indices), dim)
        tensor = self._tensors[node, rest]
        last = body.loops[-1]
        if index != whole(last, self._extents[last]):
            what = nodes.written_name(node)
            raise Unread(f"{what} runs over other positions than the keys of the product with values")
        if self._extents[last] != size:
            tensor = self._sliced(tensor, last)
        return self._input(tensor, nodes.value(node).dtype, body)

    def _sliced(self, tensor, last):
        """The keys before the last of them."""
        name, type, variables = tensor
        key = "slice", name, last
        if key not in self._tensors:
            dims, _ = self._dims([*variables[:-1], last])
            new = f"tensor<{dims}x{_element(type)}>"
            sizes = [str(self._extents[var]) if text != "?" else self._length(var)
                     for var, text in zip([*variables[:-1], last], dims.split("x"))]
            name = self._line(f"tensor.extract_slice {name}[0, 0, 0, 0] [{', '.join(sizes)}] [1, 1, 1, 1] "
                              f": {type} to {new}") if len(variables) == 4 else "%slice"
            self._tensors[key] = name, new, [*variables[:-1], last]
        return self._tensors[key]

    def _cast_tensor(self, tensor, old, new):
        if old == new:
            return tensor
        name, type, variables = tensor
        wide = f"{type[:type.rindex('x')]}x{TYPES[new]}>"
        how = "arith.extf" if new.itemsize > old.itemsize else "arith.truncf"
        return self._line(f"{how} {name} : {type} to {wide}"), wide, variables

    def _softmax(self, node, indices, dim):
        var = self._key_var(nodes.shape(node)[dim])
        source = nodes.argument(node, 0, "input")
        at = [*indices[:dim], whole(var, self._extents[var]), *indices[dim + 1:]]
        scores = self._materialise(source, at, var, node)
        dtype, own = nodes.value(node).dtype, nodes.value(source).dtype
        wide = computed_in(dtype)
        if own.itemsize > wide.itemsize:
            raise Unread("a softmax in a narrower type")
        name, type, variables = self._cast_tensor(scores, own, wide)
        empty, _ = self._empty(variables, TYPES[wide])
        name = self._line(f"linalg.softmax dimension({len(variables) - 1}) ins({name} : {type}) "
                          f"outs({empty} : {type}) -> {type}")
        return self._cast_tensor((name, type, variables), wide, dtype)

    def _concatenate(self, node, indices, dim):
        parts, tensors = nodes.argument(node, 0, "tensors"), []
        for part in parts:
            var = self._key_var(nodes.shape(part)[dim])
            at = [*indices[:dim], whole(var, self._extents[var]), *indices[dim + 1:]]
            tensor = self._materialise(part, at, var, node)
            tensors.append(self._cast_tensor(tensor, nodes.value(part).dtype, nodes.value(node).dtype))
        var = self._key_var(nodes.shape(node)[dim])
        variables = [*self._outer, var]
        sizes, _ = self._dims(variables)
        type = f"tensor<{sizes}x{TYPES[nodes.value(node).dtype]}>"
        names, types = ", ".join(x[0] for x in tensors), ", ".join(x[1] for x in tensors)
        return self._line(f"tensor.concat dim({len(variables) - 1}) {names} : ({types}) -> {type}"), type, variables

    def _maximum(self, node, maximum, indices, body):
        """max over keys."""
        source = nodes.argument(maximum, 0, "input")
        rank = len(nodes.shape(source))
        dim = nodes.argument(maximum, 1, "dim")
        if isinstance(dim, (tuple, list)):
            dim, = dim if len(dim) == 1 else (None,)
        if not isinstance(dim, int) or nodes.is_tensor(dim):
            raise Unread("a maximum over several dimensions")
        dim %= rank
        if len(indices) == rank:
            indices = indices[:dim] + indices[dim + 1:]
        if (node, tuple(indices)) not in self._tensors:
            var = self._key_var(nodes.shape(source)[dim])
            at = [*indices[:dim], whole(var, self._extents[var]), *indices[dim:]]
            name, type, variables = self._materialise(source, at, var, maximum)
            dtype = nodes.value(source).dtype
            init, out = self._filled(self._outer, float("-inf"), dtype)
            lines = [f"%m = arith.maximumf %in0, %acc : {TYPES[dtype]}"]
            top = self._generic(variables, [(name, type, variables)], (init, out, list(self._outer)), lines, "%m",
                                variables[-1])
            self._tensors[node, tuple(indices)] = top, out, list(self._outer)
        return self._input(self._tensors[node, tuple(indices)], nodes.value(node).dtype, body)

    # -----------------------------------------------------------------------
    # The product of queries and keys
    # -----------------------------------------------------------------------

    def raw_product(self, node, indices, body):
        """The element of the product, in f32."""
        if node is not self.scores:
            raise Unread("a product of other tensors")
        letters = nodes.product_letters(node)[4]
        at = dict(zip(letters, indices))
        if self._product is None:
            self._product = at
        elif self._operands is None and at != self._product or \
                self._operands is not None and at != self._operands["at"]:
            raise Unread("the product of queries and keys in two places")
        wide = torch.promote_types(torch.float32, nodes.value(node).dtype)
        if self._operands is None:
            return Scalar("%product", wide, False)
        if body.loops[-1] != "j":
            raise Unread("the scores at other keys")
        return self._input(self._written_product(), wide, body)

    def _plan(self, outer):
        """Positions of attention for the letters of the output."""
        a, b, first, second, result = nodes.product_letters(self.scores)
        key = [x for x in result if self._key in {digit.var for digit in self._product[x].digits}]
        if len(key) != 1 or self._product[key[0]] != whole(self._key, self._sizes[self._key]):
            raise Unread("the keys of the scores are not those of the weights")
        key = key[0]
        if key in first:
            a, b, first, second = b, a, second, first
        if key in first:
            raise Unread("both factors of the scores have keys")
        summed = [x for x in first if x is not None and x not in result]
        if len(summed) != 1 or summed[0] not in second:
            raise Unread("the product of queries and keys sums over other than one dimension")
        rows = [x for x in result if x in first and x not in second]
        if not rows or [x for x in result if x in second and x not in first] != [key]:
            raise Unread("queries and keys do not have positions of their own")
        row = rows[-1]
        row_vars = self._product[row].digits
        if len(row_vars) > 1 or (row_vars and row_vars[0].div != 1) or self._product[row].offset != 0:
            raise Unread("the queries of the scores are not those of the output")
        if row_vars:
            row_var = row_vars[0].var
        else:  # one query
            row_var = next((x for x in reversed(outer) if self._sizes[x] == 1), None)
        others = [x for x in outer if x != row_var]
        positions = {self._key: whole("j", self._sizes[self._key])}
        rows_size = 1 if row_var is None else self._sizes[row_var]
        if row_var is not None:
            positions[row_var] = whole("i", rows_size)
        batch, heads = self._batch_and_heads(others, a, first, row)
        sizes = {"b": product(size for _, _, size in batch), "h": product(size for _, _, size in heads)}
        if not isinstance(sizes["h"], int):
            raise Unread(f"{sizes['h']} heads: wanted a number that is known")
        parts = {letter: [] for letter in others}
        for var, group in (("b", batch), ("h", heads)):
            div = 1
            for letter, own_div, size in reversed(group):
                parts[letter].append((own_div, Digit(var, div, size)))
                div = div * size
        for letter, own in parts.items():  # at most two: batches before heads
            own.sort(key=lambda part: part[0] == 1)
            positions[letter] = Index(joined([digit for _, digit in own]), 0)
        self._canonical = {"b": sizes["b"], "h": sizes["h"], "i": rows_size, "j": self._sizes[self._key],
                           "d": nodes.shape(a)[first.index(summed[0])],
                           "e": self._sizes[self._value_dim]}
        for dim in "de":
            if not isinstance(self._canonical[dim], int):
                raise Unread("a head dimension that is not known")
        self._factors = a, first, b, second, summed[0], key
        return positions

    def _batch_and_heads(self, letters, a, first, row):
        """Digits (letter, div, size) of the letters that are batch, and heads."""
        whole_of = [(x, 1, self._sizes[x]) for x in letters]
        if len(letters) == 0:
            return [], []
        if len(letters) == 1:
            heads = self._heads_in(letters[0])
            if heads is None:
                return whole_of, []
            return [(letters[0], heads, quotient(self._sizes[letters[0]], heads))], [(letters[0], 1, heads)]
        if len(letters) == 2:
            if not isinstance(self._sizes[letters[1]], int) and isinstance(self._sizes[letters[0]], int):
                return whole_of[1:], whole_of[:1]
            return whole_of[:1], whole_of[1:]
        if len(letters) == 3:
            is_group = letters[2] not in self._of_values or self._product_lacks(letters[2])
            return (whole_of[:1], whole_of[1:]) if is_group else (whole_of[:2], whole_of[2:])
        raise Unread(f"{len(letters)} dimensions beside queries and keys")

    def _product_lacks(self, letter):
        """Whether keys have no position for a letter of the output."""
        _, _, first, second, result = nodes.product_letters(self.scores)
        for x in result:
            if self._product[x].digits and self._product[x].digits[0].var == letter:
                return x not in first or x not in second
        return False

    def _heads_in(self, letter):
        """How many heads are in one dimension with batches; None: none that are seen."""
        found = set()
        for x, index in self._product.items():
            found |= {digit.size for digit in index.digits if digit.var == letter and digit.div == 1}
        a, b, first, second, _ = nodes.product_letters(self.scores)
        for node, own in ((a, first), (b, second), (self.values, self._of_values)):
            indices = []
            for x, size in zip(own, nodes.shape(node)):
                at = self._product.get(x) if node is not self.values else (
                    whole(x, self._sizes[x]) if x in self._sizes else None)
                indices.append(whole("d", size) if at is None and x is not None else at or ZERO)
            for _, state, _ in _walk(self.graph, node, indices, self.output):
                for index in state:
                    found |= {digit.size for digit in index.digits if digit.var == letter and digit.div == 1}
        smaller = [size for size in found if isinstance(size, int) and size != self._sizes[letter] and size > 1]
        return max(smaller) if smaller else None

    # -----------------------------------------------------------------------
    # Query, key and value
    # -----------------------------------------------------------------------

    def _make_operands(self, positions):
        a, first, b, second, summed, key = self._factors
        result = {x: _substituted(index, positions) for x, index in self._product.items()}
        result[summed] = whole("d", self._canonical["d"])

        def indices(letters, of):
            return [ZERO if x is None else of[x] for x in letters]

        values = {**positions, self._value_dim: whole("e", self._canonical["e"])}
        self._operands = {"at": {x: result[x] for x in self._product}}
        self._kv_heads = {}
        for name, node, own, dims in (("q", a, indices(first, result), "hid"), ("k", b, indices(second, result), "hjd"),
                                      ("v", self.values, indices(self._of_values, values), "hje")):
            operand, (steps, heads) = _operand(self.graph, node, own, self.output, dims, self._canonical, name == "q")
            self._operands[name], node = operand, operand.node
            if self.graph.writes(node, self.graph.order[node], self.graph.order[self.output]):
                raise Unread("queries, keys or values that are written to before they are used")
            kind = type_of(nodes.value(node).dtype)
            last = self._canonical[dims[2]]
            self._kv_heads[name] = heads
            self.arguments.append(Argument("%" + name, f"tensor<?x{heads}x?x{last}x{kind}>", node, steps))
            self._names[node, ("operand", name)] = "%" + name
        if self._kv_heads["k"] != self._kv_heads["v"]:
            raise Unread(f"{self._kv_heads['k']} heads of keys and {self._kv_heads['v']} of values")
        self._read_sizes()

    def _read_sizes(self):
        """One tensor.dim for each length."""
        for var, name, dim in (("b", "q", 0), ("i", "q", 2), ("j", "k", 2)):
            extent = self._canonical[var]
            if var == "j" and extent == self._canonical["i"]:
                self._reads["j"] = self._reads["i"]
                continue
            constant = self._line(f"arith.constant {dim} : index", ("constant", dim))
            self._reads[var] = self._line(f"tensor.dim %{name}, {constant} : {self._type_of(name)}")
            if not isinstance(extent, int):
                self._sizes_known[extent] = self._reads[var]

    def _type_of(self, name):
        return next(argument.type for argument in self.arguments if argument.name == "%" + name)

    def _wide(self, name, dims):
        """Keys or values, once for each query head."""
        heads, wanted = self._kv_heads[name], self._canonical["h"]
        tensor, type = "%" + name, self._type_of(name)
        if heads == wanted:
            return tensor, type, ["b", "h", *dims]
        kind, last = _element(type), self._canonical[dims[1]]
        group = wanted // heads
        wide = f"tensor<?x{heads}x{group}x?x{last}x{kind}>"
        empty = self._line(f"tensor.empty({self._length('b')}, {self._length('j')}) : {wide}")
        loops = ["b", "kv", "g", "j", dims[1]]
        tensor = self._generic(loops, [(tensor, type, ["b", "kv", "j", dims[1]])], (empty, wide, loops), [], "%in0")
        flat = f"tensor<?x{wanted}x?x{last}x{kind}>"
        name = self._line(f"tensor.collapse_shape {tensor} [[0], [1, 2], [3], [4]] : {wide} into {flat}")
        return name, flat, ["b", "h", *dims]

    def _sum(self, first, second, loops, variables, reduced, steps, result):
        """The generic of a product of type `result`, which is summed in f32 (or wider)."""
        dtypes = [_dtype(_element(x[1])) for x in (first, second)]
        wide = torch.promote_types(result, torch.float32)
        body, factors = Body(self, loops), []
        for number, (dtype, each) in enumerate(zip(dtypes, steps)):
            scalar = Scalar(f"%in{number}", dtype, True)
            for step in each:
                if step[0] == "cast":
                    scalar = body.cast(scalar, step[1])
                    continue
                inner = computed_in(step[2])
                scalar = body._binary(step[0], body.cast(scalar, inner), body.number(step[1], inner), inner)
                scalar = body.cast(scalar, step[2])
            factors.append(body.cast(body.cast(scalar, result), wide))  # under autocast
        kind = TYPES[wide]
        body.lines += [f"%product = arith.mulf {factors[0].name}, {factors[1].name} : {kind}",
                       f"%sum = arith.addf %acc, %product : {kind}"]
        init, type = self._filled(variables, 0, wide)
        name = self._generic(loops, [first, second], (init, type, variables), body.lines, "%sum", reduced)
        return name, type, variables

    def _written_product(self):
        if "product" not in self._tensors:
            query = "%q", self._type_of("q"), ["b", "h", "i", "d"]
            self._tensors["product"] = self._sum(
                query, self._wide("k", "jd"), ["b", "h", "i", "j", "d"], ["b", "h", "i", "j"], "d",
                [self._operands["q"].steps, self._operands["k"].steps],
                nodes.value(self.scores or self.like).dtype)
        return self._tensors["product"]

    def _function(self, weights):
        dtype = nodes.value(self.like).dtype
        name, type, variables = self._sum(weights, self._wide("v", "je"), ["b", "h", "i", "e", "j"],
                                          ["b", "h", "i", "e"], "j", [(), self._operands["v"].steps], dtype)
        if nodes.name(self.output) == "baddbmm":
            raise Unread("baddbmm of weights and values")
        name, type, _ = self._cast_tensor((name, type, variables), _dtype(_element(type)), dtype)
        # The positions of the output, for who brings the result into its form.
        self.result = [self._positions[x] for x in self._of_output]
        parameters = ", ".join(f"{each.name}: {each.type}" for each in self.arguments)
        lines = "\n".join("  " + line for line in self._lines)
        return f"func.func @attention({parameters}) -> {type} {{\n{lines}\n  return {name} : {type}\n}}\n"


def _dtype(kind):
    return next(dtype for dtype, name in TYPES.items() if name == kind)


def _element(type):
    return type[type.rindex("x") + 1:-1] if "x" in type else type[7:-1]


def _between(first, last):
    """The nodes on the way from one to another."""
    before, after, stack = {last}, {first}, [last]
    while stack:
        for node in stack.pop().all_input_nodes:
            if node not in before:
                before.add(node)
                stack.append(node)
    stack = [first]
    while stack:
        for node in stack.pop().users:
            if node in before and node not in after:
                after.add(node)
                stack.append(node)
    return after


def _substituted(index, positions):
    """An index over letters of the output as one over positions of attention."""
    digits = []
    for digit in index.digits:
        own = positions[digit.var].digits
        total = product(each.size for each in own)
        if digit.div == 1 and quotient(total, digit.size) == 1:
            digits += own
            continue
        rest, taken = list(own), []
        skipped = 1
        while skipped != digit.div:
            skipped = skipped * rest.pop().size
        while product(each.size for each in taken) != digit.size:
            if not rest:
                raise Unread("a reshape that takes dimensions apart unevenly")
            taken.insert(0, rest.pop())
        digits += taken
    return Index(joined(digits), index.offset)


def _walk(graph, node, indices, at):
    """(node, indices, steps) from a factor of a product back to what it is made of."""
    steps = ()
    while True:
        yield node, indices, steps
        try:
            if graph.resolve(node, at) is not node or not isinstance(node, torch.fx.Node):
                return
            kind, dtype = nodes.name(node), nodes.value(node).dtype
            if nodes.is_view(node) and not (kind == "getitem" and not nodes.is_tensor(node.args[0])):
                indices, at, node = nodes.viewed(node, indices), node, node.args[0]
                if not all(isinstance(index, Index) for index in indices):
                    return
            elif kind == "to" and nodes.is_tensor(node.args[0]) and nodes.value(node.args[0]).device \
                    == nodes.value(node).device and nodes.value(node.args[0]).dtype.is_floating_point:
                if nodes.value(node.args[0]).dtype.itemsize > dtype.itemsize:
                    return  # rounded: the kernel is one of the narrow type
                if nodes.value(node.args[0]).dtype != dtype:
                    steps = (("cast", dtype), *steps)
                node, at = node.args[0], node
            elif kind in ("mul", "div") and not node.kwargs and not node.target == "mul_":
                first, second = node.args
                if kind == "mul" and nodes.known(first) is not None:
                    first, second = second, first
                if not nodes.is_tensor(first) or nodes.known(second) is None \
                        or nodes.value(first).dtype != dtype:
                    return
                steps = ((kind, nodes.known(second), dtype), *steps)
                node, at = first, node
            elif kind == "dropout" and nodes.drops_nothing(node):
                node, at = node.args[0], node
            else:
                return
        except Unread:
            return


def _heads_of(indices):
    return frozenset(digit for index in indices for digit in index.digits if digit.var == "h")


def _operand(graph, node, indices, at, dims, extents, is_query):
    """Where a factor of a product is taken from, and (steps, heads) of _arranged: before
    what is done to its elements and to its heads, where the fewest steps are left."""
    states = list(_walk(graph, node, indices, at))
    last, best, reason = states[-1], None, None
    for state in reversed(states):
        if state[2] != last[2] or _count(_heads_of(state[1])) != _count(_heads_of(last[1])):
            break
        operand = Operand(*state)
        try:
            arranged = _arranged(operand, dims, extents, is_query)
        except Unread as error:
            reason = reason or error
            continue
        if best is None or len(arranged[0]) <= len(best[1][0]):
            best = operand, arranged
    if best is None:
        raise reason
    return best


def _count(digits):
    return product(digit.size for digit in digits)


def _arranged(operand, dims, extents, is_query):
    """(steps, heads) that make (b, heads, length, dim) of an operand."""
    steps, digits = [], []
    for index, size in zip(operand.indices, nodes.shape(operand.node)):
        if index.offset != 0 and index.digits:
            raise Unread("a part of queries, keys or values")
        if not index.digits:
            steps.append(("select", len(digits), index.offset))
            continue
        if len(index.digits) > 1:
            sizes = [digit.size if isinstance(digit.size, int) else -1 for digit in index.digits]
            if sizes.count(-1) > 1:
                raise Unread("several unknown sizes in one dimension")
            steps.append(("unflatten", len(digits), tuple(sizes)))
        if quotient(product(digit.size for digit in index.digits), size) != 1:
            raise Unread("a part of queries, keys or values")
        digits += index.digits
    wanted, order, heads = ["b", *dims], [], 1
    groups = []
    for var in wanted:
        own = sorted((digit for digit in digits if digit.var == var),
                     key=lambda digit: (digit.div == 1, -digit.div if isinstance(digit.div, int) else 0))
        groups.append(own)
        order += [digits.index(digit) for digit in own]
        found = joined(own)
        if len(found) > 1:
            raise Unread("heads or batches that are apart")
        is_whole = not found or (found[0].div == 1 and found[0].size == extents[var])
        if var == "h":
            heads = found[0].size if found else 1
            if found and not is_whole and found[0].div * found[0].size != extents["h"]:
                raise Unread("heads that are a part of a group")
        elif not is_whole:
            raise Unread("a part of batches or positions")
    if len(order) != len(digits):
        raise Unread("positions that are not those of attention")
    if order != list(range(len(order))):
        steps.append(("permute", tuple(order)))
    for place, (var, own) in enumerate(zip(wanted, groups)):
        if len(own) > 1:
            steps.append(("flatten", place, place + len(own) - 1))
        elif not own:
            steps.append(("unsqueeze", place))
    for place, (var, own) in enumerate(zip(wanted, groups)):
        if not own and extents[var] != 1 and (var != "h" or is_query):
            steps.append(("expand", place, var))
    if is_query:
        heads = extents["h"]
    return tuple(steps), heads


class CallOutline(Outline):
    """The same for a call of scaled_dot_product_attention: there is nothing to find, but
    what its mask is computed from."""

    def __init__(self, graph, call):
        self.graph, self.output, self.spine, self.scores = graph, call, frozenset(), None
        names = ("query", "key", "value", "attn_mask", "dropout_p", "is_causal")
        defaults = (None, None, None, None, 0.0, False)
        (self._query, self._keys, self.values, self._mask, dropout, self._causal) = (
            nodes.argument(call, n, name, default) for n, (name, default) in enumerate(zip(names, defaults)))
        self._scale, self._grouped = call.kwargs.get("scale"), call.kwargs.get("enable_gqa", False)
        if nodes.known(dropout) != 0:
            raise Unread("dropout drops weights")
        if self._scale is not None and nodes.known(self._scale) is None:
            raise Unread("a scale that is computed")
        if nodes.known(self._causal) is None:
            raise Unread("is_causal is computed")
        self._set_factors()

    def _set_factors(self):
        """Checks query, key and value, and takes their sizes."""
        self.replaced, self.like = self.output, self._query
        q, k, v = (nodes.shape(each) for each in (self._query, self._keys, self.values))
        if not len(q) == len(k) == len(v) == 4:
            raise Unread(f"a query of {len(q)} dimensions, wanted 4")
        if len({nodes.value(each).dtype for each in (self._query, self._keys, self.values)}) != 1:
            raise Unread("query, key and value of several types")
        heads = (q[1], k[1], v[1])
        if not all(isinstance(size, int) for size in (*heads, q[3], v[3])):
            raise Unread("heads or a head dimension that are not known")
        if k[1] != v[1] or (not self._grouped and q[1] != k[1]) or q[1] % k[1]:
            raise Unread(f"heads {q[1]}, {k[1]} and {v[1]} of query, key and value")
        if not q[0] == k[0] == v[0]:
            raise Unread("batches of several sizes")
        self._canonical = {"b": q[0], "h": q[1], "i": q[2], "j": k[2], "d": q[3], "e": v[3]}

    def text(self):
        self._operands = None
        self._begin(self._canonical, ["b", "h", "i"], "j")
        self._operands = {"q": Operand(self._query, (), ()), "k": Operand(self._keys, (), ()),
                          "v": Operand(self.values, (), ())}
        self._kv_heads = {"k": nodes.shape(self._keys)[1], "v": nodes.shape(self.values)[1]}
        for name, node in (("q", self._query), ("k", self._keys), ("v", self.values)):
            sizes, kind = nodes.shape(node), type_of(nodes.value(node).dtype)
            self.arguments.append(Argument("%" + name, f"tensor<?x{sizes[1]}x?x{sizes[3]}x{kind}>", node, ()))
            self._names[node, ("operand", name)] = "%" + name
        self._read_sizes()
        name, type, variables = self._written_product()
        body, dtype = Body(self, ["b", "h", "i", "j"]), nodes.value(self.like).dtype
        wide = computed_in(dtype)
        scale = nodes.known(self._scale) if self._scale is not None else self._canonical["d"] ** -0.5
        scores = body._binary("mul", Scalar("%in0", wide, False), body.number(scale, wide), wide)
        at = [whole(var, self._canonical[var]) for var in "bhij"]
        scores = self._changed(body, scores, at, wide)
        empty, type = self._empty(variables, TYPES[wide])
        scores = self._generic(variables, [(name, type, variables)], (empty, type, variables), body.lines, scores.name)
        empty, _ = self._empty(variables, TYPES[wide])
        weights = self._line(f"linalg.softmax dimension(3) ins({scores} : {type}) outs({empty} : {type}) -> {type}")
        self._positions = dict(zip("bhie", [*at[:3], whole("e", self._canonical["e"])]))
        self._of_output = "bhie"
        return self._function(self._cast_tensor((weights, type, variables), wide, dtype))

    def _changed(self, body, scores, at, wide):
        """Scores with the mask."""
        hidden = body.number(float("-inf"), wide)
        if self._causal:
            visible = body.emit(f"arith.cmpi sle, {body.integer(at[3]).name}, {body.integer(at[2]).name} : i64")
            scores = body._select(Scalar(visible, torch.bool, False), scores, hidden, wide)
        if self._mask is not None:
            sizes = nodes.shape(self._mask)
            own = [ZERO if n == 1 else index for n, index in zip(sizes, at[4 - len(sizes):])]
            mask = body.read(self._mask, own, self.output)
            scores = body._select(mask, scores, hidden, wide) if mask.dtype == torch.bool \
                else body._binary("add", scores, body.cast(mask, wide), wide)
        return scores


_NO_BLOCKS = 1 << 30  # the block of a BlockMask that is none


class FlexOutline(CallOutline):
    """The same for flex_attention: its functions are graphs of scalars."""

    def __init__(self, graph, call, modules):
        (self._query, self._keys, self.values, score, blocks, self._scale, options, *captured) = call.args
        self.graph, self.output, self.spine, self.scores = graph, call, frozenset(), None
        self._grouped = True
        if self._scale is not None and nodes.known(self._scale) is None:
            raise Unread("a scale that is computed")
        users = [user for user in call.users if user.users]
        if [nodes.argument(user, 1, "index") for user in users] != [0]:
            raise Unread("flex_attention returns more than the output")
        self._set_factors()
        self.replaced = users[0]
        self._functions, self._outer_of = [], {}
        for function, inputs, buffers in ((score, 5, captured[0]), (blocks[-1], 4, captured[1])):
            inner = getattr(modules, function.target).graph
            places = [node for node in inner.nodes if node.op == "placeholder"]
            result, = next(node for node in inner.nodes if node.op == "output").args
            for node in inner.nodes:
                graph.order[node] = graph.order[call]
            self._outer_of.update(zip(places[inputs:], buffers))
            result = result[0] if isinstance(result, (tuple, list)) else result
            if not isinstance(result, torch.fx.Node):
                raise Unread("a function that returns a number")
            self._functions.append((places[:inputs], result))
        sees_all = nodes.name(self._functions[1][1]) in ("new_ones", "ones")
        if sees_all and min(each for each in blocks[-3:-1] if isinstance(each, int)) < _NO_BLOCKS:
            raise Unread("a BlockMask without a function")

    def dtype_of(self, node):
        """Scores are f32 between the operations of the functions."""
        dtype = nodes.value(node).dtype
        is_inner = node.graph is not self.output.graph and nodes.name(node) != "to"
        return torch.float32 if is_inner and dtype in (torch.float16, torch.bfloat16) else dtype

    def is_spine(self, node):
        return node.graph is not self.output.graph

    def element(self, node, indices, body):
        outer = self._outer_of.get(node)
        if isinstance(outer, torch.fx.Node):
            return body.read(outer, indices, self.output)
        return None

    def _changed(self, body, scores, at, wide):
        positions = [body.cast(body.integer(index), torch.int32)._replace(is_natural=True) for index in at]
        (score_inputs, score), (mask_inputs, mask) = self._functions
        body.bind(score_inputs, [scores, *positions])
        body.bind(mask_inputs, positions)
        scores = body.cast(body.read(score, [], self.output), wide)
        visible = body.cast(body.read(mask, [], self.output), torch.bool)
        return body._select(visible, scores, body.number(float("-inf"), wide), wide)
