#===----------------------------------------------------------------------===#
#
# Part of attn, an attention compiler.
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===----------------------------------------------------------------------===#
"""Whether docs/artifact.md describes the given artifacts: every key of their
manifests and every operation of their expressions, and no other keys.

usage: documented.py DOCUMENT ARTIFACT..."""

import json
import re
import sys

EXPRESSIONS = ("sizes", "grid", "lhs", "rhs")


def operations(value):
    if isinstance(value, list):
        if value and isinstance(value[0], str):
            yield value[0]
        for item in value:
            yield from operations(item)


def walk(value, keys, names):
    if isinstance(value, list):
        for item in value:
            walk(item, keys, names)
    elif isinstance(value, dict):
        for key, item in value.items():
            keys.add(key)
            if key in EXPRESSIONS:
                names.update(operations(item))
            walk(item, keys, names)


document = open(sys.argv[1]).read()
keys, names = set(), set()
for path in sys.argv[2:]:
    magic, size, rest = open(path, "rb").read().split(b"\n", 2)
    assert f"`{magic.decode()}`" in document, magic
    walk(json.loads(rest[: int(size)]), keys, names)

manifest = document[document.index("## The manifest") :]
described = set(re.findall(r"`([a-z_]+)`", manifest))
elements = {"f16", "bf16", "f32", "f64", "i1", "i8", "i16", "i32", "i64"}
roles = {"query", "key", "value", "sink", "seed", "offset", "capture", "output", "lse"}
one_of_rule = {"of_rule", "variant_of_rule"}  # for the sizes of a launch: test_variants.py
rules = {"query_length", "key_length", "batch_heads", "batch_key_heads", "multiprocessors", "and"}
print("not described:", sorted(keys - described))
print("not there:", sorted(described - keys - elements - roles - one_of_rule - rules))
print("operations not described:", [n for n in sorted(names) if f'["{n}"' not in manifest])
