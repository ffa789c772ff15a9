#===----------------------------------------------------------------------===#
#
# Part of attn, an attention compiler.
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===----------------------------------------------------------------------===#
"""What only data say, checked before a launch: compile(..., debug=True).

Two promises are looked at: captured tensors that are searched, or promised to be
sorted, are sorted; and indices stay inside of the captured tensors. An index that
does not reads 0, by definition; it is a mistake where the position is visible and
the element has a say in the result.

The regions are evaluated with NumPy, at all positions, from the lines of the
program; tensors of a GPU are copied. What is made of floats is not known here, but
for captured ones: indices and masks that depend on it are not looked at. Slow, and
not for every day.
"""

import re

from . import evaluate, views
from ._capi import AttnError
from .elements import shape_and_element

_ROWS = 1 << 22  # positions that are evaluated at once


def _numpy():
    try:
        import numpy
    except ImportError:
        raise AttnError("debug=True evaluates regions with NumPy, which is not installed") from None
    return numpy


def _host_array(value, element):
    """A captured tensor as an array of numbers of this process."""
    numpy = _numpy()
    if views.is_torch(value):
        value = value.detach()
        return (value.float() if element == "bf16" else value).cpu().numpy()
    if hasattr(value, "__cuda_array_interface__"):
        if not hasattr(value, "get"):
            raise AttnError(f"debug=True cannot copy a {type(value).__name__} from the GPU: wanted "
                            "a tensor of torch or CuPy")
        value = value.get()
    array = numpy.asarray(value)
    if element == "bf16":
        array = (array.view(numpy.uint16).astype(numpy.uint32) << 16).view(numpy.float32)
    return array


def check(program, infos, values):
    """Raises AttnError where the data of a launch break a promise of `program`,
    which is launched with `values` for the arguments `infos` of its manifest."""
    numpy = _numpy()
    given = {info["name"]: value for info, value in zip(infos, values)}
    tensors, scalars = {}, {}
    for name, type in program.captures:
        value, (shape, element) = given[name], shape_and_element(type)
        if shape is None:
            value = value.item() if hasattr(value, "item") else value
            scalars[name] = numpy.asarray(value).astype(evaluate.TYPES[element])
        else:
            tensors[name] = _host_array(value, element)
    for name in program.searched():
        _check_sorted(numpy, name, tensors[name])
    q, k = (next(views.view(value).sizes for info, value in zip(infos, values)
                 if role in info["roles"]) for role in ("query", "key"))
    sizes = dict(b=q[0], h=q[1], i=q[2], j=k[2])
    facts = dict(queries=q[2], keys=k[2], heads=q[1], offset=k[2] - q[2])
    scalars.update({name: numpy.int32(facts[name]) for name in program.facts})
    for at in _parts(sizes):
        _check_indices(numpy, program, tensors, scalars, sizes, at)


def _check_sorted(numpy, name, array):
    if array.ndim == 0 or array.shape[-1] < 2:
        return
    falls = numpy.argwhere(array[..., 1:] < array[..., :-1])
    if len(falls):
        *row, last = (int(index) for index in falls[0])
        first = array[(*row, last)]
        raise AttnError(
            f"capture {name!r} is not sorted: element {[*row, last + 1]} is "
            f"{array[(*row, last + 1)]}, after {first}"
        )


def _parts(sizes):
    """Ranges of positions, few enough to be evaluated at once."""
    rows = max(1, _ROWS // max(1, sizes["j"]))
    for b in range(sizes["b"]):
        for h in range(sizes["h"]):
            for first in range(0, sizes["i"], rows):
                yield b, h, first, min(first + rows, sizes["i"])


def _check_indices(numpy, program, tensors, scalars, sizes, at):
    b, h, first, last = at
    position = dict(b=numpy.int32(b), h=numpy.int32(h),
                    i=numpy.arange(first, last, dtype=numpy.int32)[:, None],
                    j=numpy.arange(sizes["j"], dtype=numpy.int32)[None, :])
    visible = numpy.ones((last - first, sizes["j"]), bool)
    for variant in program.variants:
        visible &= _shown(numpy, variant, position, sizes["j"] - sizes["i"])
    # The mask first: it says where scores matter.
    for keyword in ("mask", "score"):
        if keyword not in program.bodies:
            continue
        region = evaluate.Region(numpy, tensors, {**scalars, **position})
        result = region.run(program.bodies[keyword])
        wrong = numpy.broadcast_to(result.taint, visible.shape) & visible
        if wrong.any():
            i, j = (int(index) for index in numpy.argwhere(wrong)[0])
            raise AttnError(region.describe((i, j), visible.shape) + f" at batch entry {b}, head {h}, query "
                            f"{first + i}, key {j} (compile(..., debug=True) looks for this)")
        if keyword == "mask":
            if result.value is None:
                return
            visible = visible & result.value.astype(bool)


def _shown(numpy, variant, position, offset):
    """Where a variant shows keys."""
    numbers = dict(re.findall(r"(left|right)\s*=\s*(-?\d+)", variant))
    left, right = int(numbers.get("left", -1)), int(numbers.get("right", -1))
    if variant.startswith("#attn.causal"):
        right = 0
    distance = position["j"] - position["i"] - (0 if "top_left" in variant else offset)
    shown = numpy.ones(distance.shape, bool)
    if right >= 0:
        shown &= distance <= right
    if left >= 0:
        shown &= distance >= -left
    return shown
