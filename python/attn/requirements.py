#===----------------------------------------------------------------------===#
#
# Part of attn, an attention compiler.
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===----------------------------------------------------------------------===#
"""Packages that a part of this one wants, and `import attn` does not."""

import importlib
import re


def wanted(who, name, lowest):
    """Imports the package `name`. Raises ImportError in the words of who wanted it where it
    is not installed, or older than version `lowest` ("2.9")."""
    try:
        found = importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name != name:
            raise
        raise ModuleNotFoundError(f"{who} wants {name} {lowest} or newer, which is not installed: "
                                  f"pip install '{name}>={lowest}'", name=name) from None
    version = re.match(r"\d+(\.\d+)*", getattr(found, "__version__", ""))
    if version and _numbers(version[0]) < _numbers(lowest):
        raise ImportError(f"{who} wants {name} {lowest} or newer, got {found.__version__}: "
                          f"pip install '{name}>={lowest}'", name=name)


def _numbers(version):
    return tuple(map(int, version.split(".")))
