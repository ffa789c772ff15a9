#===----------------------------------------------------------------------===#
#
# Part of attn, an attention compiler.
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===----------------------------------------------------------------------===#
"""The outline of an attention whose products a graph has."""

from .. import nodes, softmaxes
from ..indices import ZERO, Index, Unread, whole
from ..reading import TYPES, Body, Scalar, computed_in
from .attention import Attention
from .function import element_of
from .operands import operand, substituted
from .positions import Positions

import torch


def _letters(node, reads):
    """The product `node` as (weights, values, letters...) if `reads` is one factor."""
    a, b, first, second, result = nodes.product_letters(node)
    if a is reads and b is not reads:
        return a, b, first, second, result
    if b is reads and a is not reads:
        return b, a, second, first, result
    return None


class Outline(Attention):
    """The graph between the product `scores` and the product `output`, whose factor
    `weights` is made of it."""

    # How many ways there are to tell heads from batches, and which of them this is.
    attempts = 1

    def __init__(self, graph, scores, output, weights, quotient=None, attempt=0):
        self.attempt, self.quotient = attempt, quotient
        self.graph, self.scores, self.output, self.weights = graph, scores, output, weights
        self._turned, self._is_part = set(), False
        self.replaced = self.like = quotient or output  # what goes, and a tensor of its type
        self.spine = _between(graph, scores, quotient or output)
        found = _letters(output, weights)
        if found is None:
            raise Unread("weights that are multiplied with themselves")
        _, self.values, self.of_weights, self.of_values, self.of_output = found
        summed = [x for x in self.of_weights if x is not None and x not in self.of_output]
        if len(summed) != 1 or summed[0] not in self.of_values:
            raise Unread("weights that are summed over other than keys")
        self.key = summed[0]
        own = [x for x in self.of_values if x is not None and x not in self.of_weights]
        if len(own) != 1:
            raise Unread("values of other than one dimension of their own")
        self.value_dim = own[0]
        self.sizes = self._sizes_of_letters()
        self._divided = softmaxes.divided_product(graph, quotient) if quotient else None
        if self._divided:
            self.of_output = [self.of_output[n] for n in self._divided.order]
        self._check_gradients()
        self.clears_nan = any(map(self._clears_nan, self.spine))

    def _check_gradients(self):
        """Between the products gradients go everywhere, as in a kernel, or nowhere. The maximum
        of a row has none in the end."""
        if self.graph.is_without_gradients(self.output):
            return
        for node in self.spine - {self.output, self.quotient}:
            is_maximum = nodes.name(node) == "max" or nodes.name(node) == "getitem" and nodes.name(node.args[0]) == "max"
            if self.graph.is_without_gradients(node) and not is_maximum and (
                    any(nodes.value(target).requires_grad for target in nodes.writes_to(node))
                    or nodes.is_tensor(node) and nodes.cuts_gradients(node)):
                raise Unread("torch.no_grad for a part of attention", node)

    def _clears_nan(self, node):
        """Whether weights that are no numbers become others by it: those of rows that see no
        key, which a kernel has anyway, and those of rows with a NaN or +inf among scores."""
        return nodes.name(node) in ("isnan", "nan_to_num") and any(
            node in _between(self.graph, each, self.output) for each in self.spine
            if nodes.name(each) == "exp" or softmaxes.as_softmax(self.graph, each) is not None)

    def _sizes_of_letters(self):
        sizes = {}
        for node, letters in ((self.weights, self.of_weights), (self.values, self.of_values),
                              (self.output, self.of_output)):
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
        outer = [x for x in self.of_output if x != self.value_dim]
        self._operands = None
        self._begin({x: self.sizes[x] for x in [*outer, self.key]}, outer, self.key, is_draft=True)
        at = {x: whole(x, self.sizes[x]) for x in [*outer, self.key]}
        self._product = None
        self._write_weights(at)
        if self._product is None:
            raise Unread("weights that no product of queries and keys is in")
        found = Positions(self, self._product, outer)
        self.canonical = found.canonical
        self._positions = {**found.at, self.value_dim: whole("e", self.canonical["e"])}
        self._begin(self.canonical, ["b", "h", "i"], "j")
        self._make_operands(*found.factors)
        return self._text(self._write_weights(self._positions))

    def _write_weights(self, positions):
        indices = [ZERO if x is None else positions[x] for x in self.of_weights]
        if self.quotient is None or self._divided:
            return self._materialise(self.weights, indices, self.function.last, self.output)
        # The sum, by which the product is divided, divides the weights.
        divisor = self.quotient.args[1]
        letters = self.of_output[len(self.of_output) - len(nodes.shape(divisor)):]
        own = [ZERO if x is None or size == 1 else positions[x] for x, size in zip(letters, nodes.shape(divisor))]
        return self._materialise(self.weights, indices, self.function.last, self.output, (divisor, own))

    def element(self, node, indices, body):
        """The element of a tensor of the spine; None: to be read."""
        if node not in self.spine:
            return None
        kind = nodes.name(node)
        if node is self.scores and kind not in nodes.ADDED:
            return body.cast(self.raw_product(node, indices, body), nodes.value(node).dtype)
        softmax = self._softmax_of(node)
        if softmax is not None:
            if not isinstance(softmax.dim, int):
                raise Unread("a softmax over no dimension that is given")
            return self._of_tensor(node, indices, softmax.dim % len(indices), self._softmax, body)
        if kind == "cat":
            return self._of_tensor(node, indices, nodes.argument(node, 1, "dim", 0) % len(indices),
                                   self._concatenate, body)
        if kind == "pad" and _added_number(node) is not None:
            return self._of_tensor(node, indices, len(indices) - 1, self._padded, body)
        if kind == "getitem" and nodes.name(node.args[0]) == "max" and node.args[1] == 0:
            return self._reduced(node, node.args[0], indices, body)
        dim = nodes.argument(node, 1, "dim")
        if kind in ("max", "sum") and dim is not None and not nodes.is_tensor(dim) and nodes.is_tensor(node):
            return self._reduced(node, node, indices, body)
        if kind == "detach" and self._is_of_rows(node):
            return body.read(node.args[0], indices, node)
        return None

    def _softmax_of(self, node):
        """The Softmax that a node is, or stands for where the product is divided; None: none."""
        if self._divided and node is self._divided.weights:
            return self._divided.softmax
        return softmaxes.as_softmax(self.graph, node)

    def _is_of_rows(self, node):
        """Whether it is the maximum of each row, of which the weights, a quotient of
        exponentials, know nothing."""
        source = node.args[0]
        if nodes.name(source) == "getitem":
            source = source.args[0]
        return nodes.name(source) == "max" and softmaxes.reduced_dim(source) is not None

    # -----------------------------------------------------------------------
    # Tensors of the spine: over the outer positions and keys
    # -----------------------------------------------------------------------

    def _materialise(self, node, indices, last, at, divisor=None, changes=(), is_part=False):
        """(tensor, type, variables) of the elements of a node over outer positions and
        the key `last`, divided by those of a divisor, (node, indices), or with the changes of a
        Softmax. is_part: others are joined with them, of whose rows they know nothing."""
        variables = [*self.function.outer, last]
        body = Body(self, variables)
        before, self._is_part = self._is_part, is_part
        try:
            scalar = body.read(node, indices, at)
        finally:
            self._is_part = before
        for change in changes:
            scalar = self._changed(body, scalar, change, indices, at)
        if divisor is not None:
            wide = computed_in(scalar.dtype)
            scalar = body._binary("div", body.cast(scalar, wide), body.cast(body.read(*divisor, at), wide), wide)
        if not body.lines and len(body.inputs) == 1 and body.inputs[0][2] == variables:
            return body.inputs[0]
        empty, type = self.function.empty(variables, TYPES[scalar.dtype])
        tensor = self.function.generic(variables, body.inputs, (empty, type, variables), body.lines, scalar.name)
        return tensor, type, variables

    @staticmethod
    def _changed(body, scalar, change, indices, softmax):
        """The element of scores with a change of a Softmax."""
        if change[0] == "mul":
            wide = computed_in(scalar.dtype)
            return body.cast(body._binary("mul", body.cast(scalar, wide), body.number(change[1], wide), wide), scalar.dtype)
        _, mask, how = change
        if how in ("tril", "triu"):
            flag, how = body.in_triangle(mask, indices), "is"
        else:
            sizes = nodes.shape(mask)
            own = [ZERO if size == 1 else index for size, index in zip(sizes, indices[len(indices) - len(sizes):])]
            flag = body.cast(body.read(mask, own, softmax), torch.bool)
        hidden = body.number(float("-inf"), scalar.dtype)
        return body._select(flag, *((scalar, hidden) if how == "is" else (hidden, scalar)), scalar.dtype)

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
        first = index.offset if isinstance(index, Index) else None
        if node in self._turned:  # as a whole where it is joined, from 1 on behind the softmax
            before = 0 if nodes.name(node) == "cat" else 1
            first = 0 if first == before and self.function.extents[last] == size - before else None
        if first != 0 or index._replace(offset=0) != whole(last, self.function.extents[last]):
            what = nodes.written_name(node)
            raise Unread(f"{what} runs over other positions than the keys of the product with values")
        if self.function.extents[last] != size:
            tensor = self._sliced(tensor, last)
        return self._input(tensor, nodes.value(node).dtype, body)

    def _sliced(self, tensor, last):
        """The keys before the last of them."""
        name, type, variables = tensor
        key = "slice", name, last
        if key not in self._tensors:
            dims, _ = self.function.dims([*variables[:-1], last])
            new = f"tensor<{dims}x{element_of(type)}>"
            sizes = [str(self.function.extents[var]) if text != "?" else self.function.length(var)
                     for var, text in zip([*variables[:-1], last], dims.split("x"))]
            name = self.function.line(
                f"tensor.extract_slice {name}[0, 0, 0, 0] [{', '.join(sizes)}] [1, 1, 1, 1] "
                f": {type} to {new}") if len(variables) == 4 else "%slice"
            self._tensors[key] = name, new, [*variables[:-1], last]
        return self._tensors[key]

    def _softmax(self, node, indices, dim):
        var = self.function.key_var(nodes.shape(node)[dim])
        softmax = self._softmax_of(node)
        source = softmax.scores
        at = [*indices[:dim], whole(var, self.function.extents[var]), *indices[dim + 1:]]
        if softmax.sink is None:
            source = self._without_rows(source, dim, node)
            self._turn(node, source, dim)
        scores = self._materialise(source, at, var, node, changes=softmax.changes, is_part=softmax.sink is not None)
        dtype, own = nodes.value(node).dtype, nodes.value(source).dtype
        wide = computed_in(dtype)
        if own.itemsize > wide.itemsize:
            raise Unread("a softmax in a narrower type")
        scores = self.function.cast(scores, own, wide)
        if softmax.sink is not None:
            scores = self._joined([scores, self._column(softmax.sink, wide)],
                                  self.function.key_var(self.function.extents[var] + 1), TYPES[wide])
        name, type, variables = scores
        weights = self.function.softmax(name, type, variables), type, variables
        if softmax.sink is not None:
            weights = self._sliced(weights, var)
        return self.function.cast(weights, wide, dtype)

    def _column(self, logit, dtype):
        """A logit of each head that is the same number for all: an argument."""
        one, heads = self.function.key_var(1), self.function.extents.get("h", 1)
        loops, kind = [*self.function.outer, one], TYPES[dtype]
        body, own = Body(self, loops), f"tensor<{heads}xf32>"
        logits = self.function.argument(None, (("full", heads, logit),), own)
        head = body.emit(f"linalg.index {loops.index('h')} : index") if "h" in loops else body.index_constant(0)
        read = body.emit(f"tensor.extract {logits}[{head}] : {own}")
        read = body.cast(Scalar(read, torch.float32, False), dtype)
        empty, narrow = self.function.empty(loops, kind)
        return self.function.generic(loops, [], (empty, narrow, loops), body.lines, read.name), narrow, loops

    def _turn(self, softmax, scores, dim):
        """Notes a softmax over one number and then keys, and what joins them: both are
        written with the keys first. A softmax does not see an order."""
        reader = softmax
        while nodes.name(scores) == "to" and self.graph.resolve(scores, reader) is scores:
            reader, scores = scores, scores.args[0]
        parts = nodes.argument(scores, 0, "tensors") if nodes.name(scores) == "cat" else ()
        if len(parts) == 2 and nodes.argument(scores, 1, "dim", 0) % len(nodes.shape(scores)) == dim \
                and nodes.shape(parts[0])[dim] == 1 and self.graph.resolve(scores, reader) is scores:
            self._turned |= {softmax, scores}

    def _without_rows(self, scores, dim, softmax):
        """Scores before a number was subtracted that is the same for the keys of a row: a
        softmax does not see it."""
        while nodes.name(scores) in ("sub", "add") and len(scores.args) == 2 and not nodes.writes_to(scores):
            first, rest = scores.args
            if not all(nodes.is_tensor(each) and self.graph.keeps(each, softmax) for each in (scores, first)):
                break
            rank = len(nodes.shape(scores))
            if not (nodes.is_tensor(first) and nodes.is_tensor(rest) and self.is_spine(rest) and self.is_spine(first)):
                break
            own = nodes.shape(rest)
            at = dim - rank + len(own)
            if nodes.shape(first) != nodes.shape(scores) or at >= 0 and own[at] != 1 or nodes.value(first).dtype != nodes.value(scores).dtype:
                break
            scores = first
        return scores

    def _concatenate(self, node, indices, dim):
        parts, tensors = nodes.argument(node, 0, "tensors"), []
        for part in reversed(parts) if node in self._turned else parts:
            var = self.function.key_var(nodes.shape(part)[dim])
            at = [*indices[:dim], whole(var, self.function.extents[var]), *indices[dim + 1:]]
            number = self._number(part) if nodes.shape(part)[dim] == 1 and node not in self._turned else None
            tensor = self._materialise(part, at, var, node, is_part=True) if number is None \
                else self._column(number, nodes.value(part).dtype)
            tensors.append(self.function.cast(tensor, nodes.value(part).dtype, nodes.value(node).dtype))
        return self._joined(tensors, self.function.key_var(nodes.shape(node)[dim]), TYPES[nodes.value(node).dtype])

    def _padded(self, node, indices, dim):
        """Scores with one more, a number, behind them."""
        source, dtype = nodes.argument(node, 0, "input"), nodes.value(node).dtype
        var = self.function.key_var(nodes.shape(source)[dim])
        at = [*indices[:dim], whole(var, self.function.extents[var])]
        return self._joined([self._materialise(source, at, var, node, is_part=True), self._column(_added_number(node), dtype)],
                            self.function.key_var(nodes.shape(node)[dim]), TYPES[dtype])

    def _number(self, node):
        """The number that all elements of a tensor are; None where they are not one, or not known."""
        reader = node
        while nodes.is_view(node) and self.graph.keeps(node, reader):
            reader, node = node, node.args[0]
        kind = nodes.name(node)
        if not self.graph.keeps(node, reader) or kind not in ("zeros", "ones", "new_zeros", "new_ones", "full", "new_full"):
            return None
        place = {"full": 1, "new_full": 2}.get(kind)
        return float(kind.endswith("ones")) if place is None else nodes.known(nodes.argument(node, place, "fill_value"))

    def _joined(self, tensors, var, kind):
        """Tensors one behind another, over the keys `var`."""
        variables = [*self.function.outer, var]
        sizes, _ = self.function.dims(variables)
        type = f"tensor<{sizes}x{kind}>"
        names, types = ", ".join(x[0] for x in tensors), ", ".join(x[1] for x in tensors)
        whole_of = self.function.line(f"tensor.concat dim({len(variables) - 1}) {names} : ({types}) -> {type}")
        return whole_of, type, variables

    def _reduced(self, node, reduction, indices, body):
        """A maximum or a sum over keys."""
        source = nodes.argument(reduction, 0, "input")
        kind, dim, rank = nodes.name(reduction), softmaxes.reduced_dim(reduction), len(nodes.shape(source))
        what = {"max": "a maximum", "sum": "a sum"}[kind]
        if self._is_part:
            raise Unread(f"{what} of a part of the scores")
        if dim is None:
            raise Unread(f"{what} over several dimensions")
        if reduction.kwargs.get("dtype") is not None:
            raise Unread(f"{what} in another type")
        if len(indices) == rank:
            indices = indices[:dim] + indices[dim + 1:]
        if (node, tuple(indices)) not in self._tensors:
            var = self.function.key_var(nodes.shape(source)[dim])
            at = [*indices[:dim], whole(var, self.function.extents[var]), *indices[dim:]]
            name, type, variables = self._materialise(source, at, var, reduction)
            dtype = nodes.value(source).dtype
            how, first = {"max": ("arith.maximumf", float("-inf")), "sum": ("arith.addf", 0)}[kind]
            init, out = self.function.filled(self.function.outer, first, dtype)
            lines = [f"%m = {how} %in0, %acc : {TYPES[dtype]}"]
            rows = list(self.function.outer)
            top = self.function.generic(variables, [(name, type, variables)], (init, out, rows), lines, "%m",
                                        variables[-1])
            self._tensors[node, tuple(indices)] = top, out, rows
        return self._input(self._tensors[node, tuple(indices)], nodes.value(node).dtype, body)

    # -----------------------------------------------------------------------
    # Query, key and value
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

    def _make_operands(self, a, first, b, second, summed):
        """The arguments %q, %k and %v, of the factors a and b and their letters."""
        result = {x: substituted(index, self._positions) for x, index in self._product.items()}
        result[summed] = whole("d", self.canonical["d"])

        def indices(letters, of):
            return [ZERO if x is None else of[x] for x in letters]

        self._operands = {"at": {x: result[x] for x in self._product}}
        factors = (("q", a, indices(first, result), "hid"), ("k", b, indices(second, result), "hjd"),
                   ("v", self.values, indices(self.of_values, self._positions), "hje"))
        found = {name: operand(self.graph, node, own, self.output if name == "v" else self.scores, dims,
                               self.canonical, name == "q") for name, node, own, dims in factors}
        self._kv_heads = {name: heads for name, (_, (_, heads)) in found.items()}
        most = max(self._kv_heads["k"], self._kv_heads["v"])
        for name, _, _, dims in factors:
            self._operands[name], (steps, heads) = found[name]
            node = self._operands[name].node
            if name != "q" and heads != most:  # one for all, of keys or of values alone
                if heads != 1 or most != self.canonical["h"]:
                    raise Unread(f"{self._kv_heads['k']} heads of keys and {self._kv_heads['v']} of values")
                steps, heads = (*steps, ("expand", 1, "h")), most
                self._kv_heads[name] = most
            if self.graph.writes(node, self._operands[name].at, self.output):
                raise Unread("queries, keys or values that are written to before they are used")
            self.function.operand(name, node, steps, heads, self.canonical[dims[2]])
        self.function.read_sizes()


def _added_number(node):
    """The number that pad(x, (0, 1)) puts behind the last dimension; None of another pad."""
    amounts, mode, number = (nodes.argument(node, n, name) for n, name in enumerate(("pad", "mode", "value"), 1))
    is_one = isinstance(amounts, (tuple, list)) and tuple(amounts) == (0, 1)
    return nodes.known(number or 0) if is_one and mode in (None, "constant") else None


def _between(graph, first, last):
    """The nodes on the way from one to another, of which some write to what others read."""
    before, after, stack = {last}, {first}, [last]
    while stack:
        node = stack.pop()
        for node in [*node.all_input_nodes, *graph.writes_before(node, last)]:
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
