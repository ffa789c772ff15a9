#===----------------------------------------------------------------------===#
#
# Part of attn, an attention compiler.
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===----------------------------------------------------------------------===#
"""Elements of what activations of a graph make, as scalar code: what they are called with. What
they are is in activations.py."""

import math

from . import activations, nodes
from .indices import ZERO, Unread


class Activated:
    """What a Body has of them."""

    def _activation(self, node, indices, dtype):
        function, others = activations.READ[nodes.name(node)]
        given = {}
        if node.kwargs.get("decimals"):
            raise Unread(f"{nodes.written_name(node)} to decimals")
        if not dtype.is_floating_point:
            raise Unread(f"{nodes.written_name(node)} of {str(dtype).replace('torch.', '')}")
        for name, place in others:
            written = nodes.argument(node, place, name)
            if written is None:
                continue
            given[name] = written if isinstance(written, str) else nodes.known(written)
            if given[name] is None:
                raise Unread(f"a number that {nodes.written_name(node)} gets from elsewhere")
        lines = self.arithmetic(dtype)
        x = self._operand(node, nodes.argument(node, 0, "input"), indices, lines.dtype)
        return self.cast(function(lines, x, **given), dtype)

    def _activation_of_two(self, node, indices, dtype):
        name, lines = nodes.name(node), self.arithmetic(dtype)
        first, second = nodes.argument(node, 0, "input"), nodes.argument(node, 1, "other")
        if not all(nodes.value(x).is_floating_point() for x in (first, second) if nodes.is_tensor(x)):
            raise Unread(f"{nodes.written_name(node)} of other than floats")
        function = activations.READ_OF_TWO.get(name)
        if function is None:
            function, divisor = activations.BY_A_NUMBER[name], nodes.known(second)
            if divisor is None or not 0 < divisor < math.inf:
                raise Unread(f"{nodes.written_name(node)} of floats by other than a positive number")
        a, b = (self.cast(self._operand(node, given, indices, dtype if nodes.is_tensor(given) else lines.dtype), lines.dtype)
                for given in (first, second))
        return self.cast(function(lines, a, b), dtype)

    def _read_prelu(self, node, indices, dtype):
        """The slope is one for all, or one for each of the second dimension."""
        lines, slope = self.arithmetic(dtype), nodes.argument(node, 1, "weight")
        own = [ZERO if size == 1 else indices[1] for size in nodes.shape(slope)]
        a = self._operand(node, nodes.argument(node, 0, "input"), indices, lines.dtype)
        b = self.cast(self.read(slope, own, node), lines.dtype)
        return self.cast(activations.prelu(lines, a, b), dtype)

    def _read_relu(self, node, indices, dtype):
        a, lines = self._operand(node, node.args[0], indices, dtype), self.arithmetic(dtype)
        if nodes.value(node).requires_grad:
            return self.cast(activations.relu(lines, self.cast(a, lines.dtype)), dtype)
        return self._binary("maximum", a, self.number(0, dtype), dtype)

    def _read_clamp(self, node, indices, dtype):
        result = self._operand(node, node.args[0], indices, dtype)
        name = nodes.name(node)
        low = nodes.argument(node, 1, "min") if name != "clamp_max" else None
        high = nodes.argument(node, 1, "max") if name == "clamp_max" else (
            nodes.argument(node, 2, "max") if name == "clamp" else None)
        if nodes.value(node).requires_grad and not any(map(nodes.is_tensor, (low, high))):
            known = [None if bound is None else nodes.known(bound) for bound in (low, high)]
            if any(bound is not None and number is None for bound, number in zip((low, high), known)):
                raise Unread(f"a number that {nodes.written_name(node)} gets from elsewhere")
            lines = self.arithmetic(dtype)
            return self.cast(activations.clamp(lines, self.cast(result, lines.dtype), *known), dtype)
        for bound, how in ((low, "maximum"), (high, "minimum")):
            if bound is not None:
                result = self._binary(how, result, self._operand(node, bound, indices, dtype), dtype)
        return result
