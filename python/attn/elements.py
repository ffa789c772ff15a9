#===----------------------------------------------------------------------===#
#
# Part of attn, an attention compiler.
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===----------------------------------------------------------------------===#
"""Element types, by the names that MLIR, NumPy and PyTorch have for them."""

import difflib
import re

FLOATS = {"f16": 16, "bf16": 16, "f32": 32}
WIDTHS = {"i1": 1, "i8": 8, "i16": 16, "i32": 32, "i64": 64, **FLOATS}

# What NumPy and PyTorch call them.
LONG_NAMES = {
    "f16": "float16", "bf16": "bfloat16", "f32": "float32", "f64": "float64",
    "i1": "bool", "i8": "int8", "i16": "int16", "i32": "int32", "i64": "int64",
}
_SHORT_NAMES = {
    **{name: name for name in LONG_NAMES},
    **{long: name for name, long in LONG_NAMES.items()},
    "half": "f16", "double": "f64", "bool_": "i1", "short": "i16", "long": "i64",
}
_MODULES = re.compile(r"^(torch|numpy|np|jnp|jax\.numpy|ml_dtypes)\.")


def both_names(name):
    """"f16 (float16)"."""
    return f"{name} ({LONG_NAMES[name]})"


def listed(words):
    """"a, b or c"."""
    *first, last = words
    return f"{', '.join(first)} or {last}" if first else last


def nearest(word, words):
    """" (did you mean 'causal'?)", or nothing."""
    close = difflib.get_close_matches(word, list(words), 1)
    return f" (did you mean {close[0]!r}?)" if close else ""


def _word(given):
    """What a text, a NumPy type or a dtype of NumPy or PyTorch calls itself."""
    if isinstance(given, str):
        return given.strip()
    if isinstance(given, type):
        return given.__name__
    name = getattr(given, "name", None)  # numpy.dtype
    return name if isinstance(name, str) else str(given)


def element(given, wanted=tuple(WIDTHS)):
    """MLIR's name of an element type: "bf16" for "bfloat16", torch.bfloat16, …"""
    word = _MODULES.sub("", _word(given))
    name = _SHORT_NAMES.get(word)
    if name in wanted:
        return name
    choice = listed([both_names(name) for name in wanted])
    if name:
        raise ValueError(f"wanted elements of {choice}, got {both_names(name)}")
    if re.fullmatch(r"u(int)?(8|16|32|64|long|short)?", word):
        raise ValueError(f"{word}: regions read integers with a sign, wanted {choice}; "
                         "the next wider one holds all values")
    if word in ("float", "int"):
        raise ValueError(f"{word!r} has other sizes in other places: wanted {choice}")
    raise ValueError(f"unknown element type {word!r}{nearest(word, _SHORT_NAMES)}: wanted {choice}")


def captured_type(given):
    """MLIR's type of a capture: of "tensor<?x?xfloat32>", or a scalar's."""
    if not isinstance(given, str) or "<" not in given:
        return element(given)
    match = re.fullmatch(r"tensor<((?:(?:\?|\d+)x)*)([^<>]*)>", given.replace(" ", ""))
    if not match:
        raise ValueError(f"wanted a type like 'i32' or 'tensor<?x8xf32>', got {given!r}")
    return f"tensor<{match[1]}{element(match[2])}>"


def shape_and_element(type):
    """([None, 8], "f32") of "tensor<?x8xf32>", and (None, "i32") of a scalar."""
    if not type.startswith("tensor<"):
        return None, type
    *sizes, name = type.removeprefix("tensor<").removesuffix(">").split("x")
    return [None if size == "?" else int(size) for size in sizes], name
