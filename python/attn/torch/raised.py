#===----------------------------------------------------------------------===#
#
# Part of attn, an attention compiler.
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===----------------------------------------------------------------------===#
"""From what attn-raise returns to a program that run() takes."""

import collections
import re

from . import programs
from .indices import Unread

# The text, which arguments of the function it has after v (by number), and the element
# type that q, k and v are brought to.
RaisedProgram = collections.namedtuple("RaisedProgram", "text operands element")

_NAME = re.compile(r"%[\w$.-]+")
MAX_LINES = 200  # of regions: a lane of a GPU computes them for each of its scores


def program(text):
    """The program of a function that is one attn.attention of its first three arguments."""
    start = re.search(r"func\.func @\w+\((.*)\) -> \S+ \{\n", text)
    if not start or text.count("attn.attention ") != 1:
        raise Unread("the raised text is no function with one attn.attention")
    parameters = re.findall(r"(%\w+): (tensor<[^>]*>|\w+)", start[1])
    operations = _operations(text[start.end():])
    made = {}
    for operation in operations:
        head = operation.split(" = ", 1)
        if len(head) == 2:
            for name in _NAME.findall(head[0]):
                made[name] = operation
    attention = next(operation for operation in operations if " = attn.attention " in operation)
    match = re.match(r"\s*(%[\w$.-]+), (%[\w$.-]+) = attn\.attention (%[\w$.-]+), (%[\w$.-]+), (%[\w$.-]+)", attention)
    if not match:
        raise Unread("the raised text has an attn.attention of another form")
    output, lse, *factors = match.groups()
    if attention.count("\n") > MAX_LINES:
        raise Unread(f"scores and mask of more than {MAX_LINES} operations")
    for factor, (own, _) in zip(factors, parameters):
        if _through_casts(_widened(factor, made, text), made) != own:
            dims = [int(type.split("x")[-2]) for _, type in parameters[:3] if type.split("x")[-2].isdigit()]
            uneven = next((dim for dim in dims if dim % 8), None)
            if uneven is not None:
                raise Unread(f"a head dimension of {uneven}, wanted a multiple of 8")
            raise Unread("query, key or value are not arguments of the raised function")
        attention = re.sub(re.escape(factor) + r"(?![\w$.-])", own, attention, count=1)
    returned = re.match(r"\s*return (%[\w$.-]+) :", operations[-1])
    if not returned or _through_casts(returned[1], made) != output:
        raise Unread("the raised function returns other than what attention does")
    types = re.search(r"\s: \((tensor<.*)\)\s*-> \((.*), (tensor<[^>]*xf32>)\)\s*$", attention)
    if not types:
        raise Unread("the raised text has an attn.attention of another form")
    query, key, value = re.findall(r"tensor<[^>]*>", types[1])[:3]
    first = attention.split("\n")[0]
    kept = _needed(_NAME.findall(first.split(" = ", 1)[1])[3:], made)
    used = set(_NAME.findall(first)) | {name for line in kept for name in _NAME.findall(line)}
    if any("linalg." in line or "{" in line for line in kept):
        raise Unread("what attention captures is computed by other than scalar code")
    operands = [number for number, (name, _) in enumerate(parameters) if number > 2 and name in used]
    signature = [f"{name}: {type}" for (name, _), type in zip(parameters, (query, key, value))]
    # A location tells the manifest the names of captures.
    signature += [f'{": ".join(parameters[number])} loc("capture_{place}")' for place, number in enumerate(operands)]
    body = "\n".join([*(_retyped(line, parameters, (query, key, value)) for line in kept), attention])
    sink = re.search(r" sink\((%[\w$.-]+)\)", first)
    if sink and sink[1] not in [parameters[number][0] for number in operands]:
        raise Unread("the sink is no argument of the raised function")
    result = (f"func.func @attention({', '.join(signature)}) -> ({types[2]}, {types[3]}) {{\n{body}\n"
              f"    return {output}, {lse} : {types[2]}, {types[3]}\n}}\n")
    if sink:
        result = re.sub(re.escape(sink[1]) + r"(: tensor<[^>]*>) loc\(\"[^\"]*\"\)", r"%sink\1", result)
        result = result.replace(f" sink({sink[1]})", " sink(%sink)")
    return RaisedProgram(programs.one_line(result), operands, query[query.rindex("x") + 1:-1])


def _operations(body):
    """The operations of the function's block, those with regions whole."""
    operations = []
    for line in body.split("\n"):
        if line.startswith("  }"):
            break
        if line.startswith("    ") and line[4:5] not in (" ", "}", ":", "-", "^"):
            operations.append(line)
        elif operations:
            operations[-1] += "\n" + line
    return operations


def _through_casts(name, made):
    while True:
        cast = re.match(r"\s*%[\w$.-]+ = arith\.(?:extf|truncf) (%[\w$.-]+) :", made.get(name, ""))
        if not cast:
            return name
        name = cast[1]


def _retyped(line, parameters, types):
    """An operation that reads the size of q, k or v, where these get other types."""
    for (name, old), new in zip(parameters, types):
        line = re.sub(rf"({re.escape(name)}, %[\w$.-]+ : ){re.escape(old)}", lambda match: match[1] + new, line)
    return line


def _widened(name, made, text):
    """What a tensor is before its elements are widened, one by one; else the tensor."""
    generic = re.match(
        r"\s*%[\w$.-]+ = linalg\.generic \{indexing_maps = \[(#map\d*), \1\], iterator_types = \[([^\]]*)\]\} "
        r"ins\((%[\w$.-]+) : [^)]*\) outs\([^)]*\) \{\n"
        r"\s*\^bb0\((%[\w$.-]+): \w+, %[\w$.-]+: \w+\):\n"
        r"\s*(%[\w$.-]+) = arith\.extf \4 : \w+ to \w+\n"
        r"\s*linalg\.yield \5 : \w+\n\s*\} -> tensor<[^>]*>$", made.get(name, ""))
    if not generic or set(generic[2].split(", ")) != {'"parallel"'}:
        return name
    is_identity = re.search(rf"^{generic[1]} = affine_map<\(([^)]*)\) -> \(\1\)>$", text, re.MULTILINE)
    return generic[3] if is_identity else name


def _needed(names, made):
    """The operations that `names` are made by, in order."""
    needed, stack = set(), list(names)
    while stack:
        operation = made.get(stack.pop())
        if operation and operation not in needed and " = attn.attention " not in operation:
            needed.add(operation)
            stack += _NAME.findall(operation.split(" = ", 1)[1])
    return [operation for operation in dict.fromkeys(made.values()) if operation in needed]
