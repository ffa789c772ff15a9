#!/usr/bin/env python3
# Part of attn, an attention compiler.
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Counts the different function bodies on stdin, names of values aside."""

import re
import sys


def main():
    text = sys.stdin.read()
    bodies = {}
    for part in re.split(r"(?=^  func\.func )", text, flags=re.M)[1:]:
        name = re.match(r"  func\.func @(\w+)", part).group(1)
        names = {}

        def rename(match):
            return names.setdefault(match.group(), f"%{len(names)}")

        # Constants stand where they were first used.
        body = [
            line
            for line in part.split("\n")[1:]
            if line.strip() not in ("", "}") and " = tensor.dim " not in line
        ]
        body = re.sub(r"%[\w#]+", rename, "\n".join(body))
        bodies.setdefault(body, []).append(name)
    print(sum(map(len, bodies.values())), "functions,", len(bodies), "forms")
    for members in bodies.values():
        print(" ", *members)


if __name__ == "__main__":
    main()
