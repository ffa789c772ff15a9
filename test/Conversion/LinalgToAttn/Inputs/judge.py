#!/usr/bin/env python3
# Part of attn, an attention compiler.
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Says which functions of the table are not what their names say.

usage: attn-opt … | judge.py INPUT

INPUT is what attn-opt read, through attn-opt itself, so that both print alike.
A raised_ function holds attention and no exponential any more; a kept_ function
is as it was, letter by letter.
"""

import re
import sys

HEAD = re.compile(r"^  func\.func @(\w+)", re.M)


def split(text):
    """The text of each function by its name, maps written out."""
    maps = dict(re.findall(r"^(#map\d*) = (.*)$", text, re.M))
    text = re.sub(r"#map\d*", lambda m: maps.get(m.group(), m.group()), text)
    starts = list(HEAD.finditer(text))
    ends = [m.start() for m in starts[1:]] + [len(text)]
    return {m.group(1): text[m.start() : e].strip() for m, e in zip(starts, ends)}


def main(path):
    with open(path, encoding="utf-8") as f:
        before = split(f.read())
    after = split(sys.stdin.read())
    wrong = []
    for name, text in before.items():
        result = after[name]
        if name.startswith("raised_"):
            if "attn.attention" not in result:
                wrong.append(f"{name}: not raised")
            elif re.search(r"math\.exp2? |linalg\.softmax", result):
                wrong.append(f"{name}: parts of the graph are left")
        elif "attn.attention" in result:
            wrong.append(f"{name}: raised")
        elif result.rstrip("}").strip() != text.rstrip("}").strip():
            wrong.append(f"{name}: changed")
    print("\n".join(wrong + [f"{len(before)} functions, {len(wrong)} wrong"]))
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
