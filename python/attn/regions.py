#===----------------------------------------------------------------------===#
#
# Part of attn, an attention compiler.
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===----------------------------------------------------------------------===#
"""From a function of a position, or lines, to the body of a score or mask."""

import collections
import inspect
import re

from . import elements, expression

# i32 values that a function may ask for besides its position; each is captured
# where one does. `offset` joins the last query with the last key.
FACTS = {
    "queries": "the number of queries",
    "keys": "the number of keys",
    "heads": "the number of query heads",
    "offset": "keys - queries",
}
POSITIONS = ("x", "b", "h", "i", "j")

# Lines of MLIR, the facts that they ask for, and what a score is where it ignores x.
Body = collections.namedtuple("Body", "lines facts ignores_score")


class Position:
    """What a function of a region gets."""

    def __init__(self, lines, captures, is_score):
        self._lines, self._facts = lines, []
        self._names = [*POSITIONS[not is_score:], *(name for name, _ in captures), *FACTS]
        for name in POSITIONS[1:]:
            setattr(self, name, expression.Value(lines, "%" + name, "i32"))
        if is_score:
            self.x = expression.Value(lines, "%x", "f32")
        for name, type in captures:
            kind = expression.Capture if type.startswith("tensor<") else expression.Value
            setattr(self, name, kind(lines, "%" + name, type))

    def __getattr__(self, name):
        if name in FACTS:
            self._facts.append(name)
            value = expression.Value(self._lines, "%" + name, "i32")
            setattr(self, name, value)
            return value
        if name.startswith("_"):
            raise AttributeError(name)
        if name == "x":
            raise AttributeError("a mask does not see p.x: what depends on the score is a score")
        raise AttributeError(
            f"a position has no {name!r}{elements.nearest(name, self._names)}: "
            f"it has {elements.listed(self._names)}"
        )


def _check_callable(function, keyword):
    try:
        inspect.signature(function).bind(None)
    except TypeError:
        raise TypeError(
            f"{keyword}: wanted a function of one argument, a position with p.b, p.h, p.i and "
            f"p.j, got {function!r}"
        ) from None
    except ValueError:
        pass  # a builtin has no signature: calling it will tell


def _check_result(result, keyword):
    """The result of a function as a value, or a number or flag of Python."""
    wanted = "a number" if keyword == "score" else "a comparison or a flag"
    if result is None:
        raise TypeError(f"the {keyword} function returned nothing, wanted {wanted}: "
                        "is a `return` missing?")
    if not isinstance(result, expression.Value):
        try:
            result = expression.number(result)
        except TypeError:
            raise TypeError(f"a {keyword} wants {wanted}, got {expression.describe(result)}") from None
        is_flag = expression.is_flag(result)
    else:
        is_flag = result.type == "i1"
    if is_flag != (keyword == "mask"):
        hint = ": where() makes a score of a flag" if is_flag else ""
        raise TypeError(f"a {keyword} wants {wanted}, got {expression.describe(result)}{hint}")
    return result


def _trace(function, captures, keyword):
    _check_callable(function, keyword)
    lines, type = expression.Lines(), "f32" if keyword == "score" else "i1"
    position = Position(lines, captures, keyword == "score")
    result = _check_result(function(position), keyword)
    seen = "a function of the position alone"
    if not isinstance(result, expression.Value):
        seen = f"{result!r} everywhere"
        result = lines.constant(result, type)
    result = result.to(type)
    ignores = keyword == "score" and not lines.reaches("%x", result.name)
    return Body([*lines.text, f"attn.yield {result.name} : {type}"], position._facts,
                seen if ignores else None)


def body(region, captures, keyword):
    """The body of a region that is given as a function of a position, as lines of
    MLIR, or (a score) as a number."""
    if callable(region):
        return _trace(region, captures, keyword)
    if keyword == "score" and isinstance(region, (int, float)) and not isinstance(region, bool):
        constant = expression.Lines()
        value = constant.constant(region, "f32")
        return Body([*constant.text, f"attn.yield {value.name} : f32"], [], None)
    if not isinstance(region, str):
        raise TypeError(f"{keyword}: wanted a function of a position, or lines of MLIR, "
                        f"got {expression.describe(region)}")
    lines = [line.strip() for line in region.strip().splitlines()]
    if not any(line.startswith("attn.yield") for line in lines):
        raise ValueError(f"{keyword}: wanted lines of MLIR that end in attn.yield, got {region!r}")
    ignores = keyword == "score" and not re.search(r"%x\b", region)
    return Body(lines, [], "made without %x" if ignores else None)
