#===----------------------------------------------------------------------===#
#
# Part of attn, an attention compiler.
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===----------------------------------------------------------------------===#
"""Files of results: how every suite writes what it measured, and how they are read.

A file is JSON that a person can read: what was done, the command, the machine, a
summary, what failed, in full, and one line for each case of a measurement. Cases
of a test that passed are a count. A table is a list of rows, the first of which
has the names of the columns.
"""

import json
import pathlib
import shlex
import statistics
import sys

WIDTH = 120  # of lines that are not rows
DEPTH = 3  # what lies deeper stays on one line
# Options whose values are places on one machine: their names stand for them.
PLACES = ("--lib", "--old", "--old-python", "--bin", "--artifacts", "--results")
UNSAID = ("--json", "--commit")  # the file itself; it stands in "environment"


def command(arguments=None):
    """The command line, without what differs from one machine to the next."""
    given = list(sys.argv if arguments is None else arguments)
    words = [pathlib.Path(given.pop(0)).name]
    while given:
        word = given.pop(0)
        name = word.split("=")[0]
        if name in PLACES + UNSAID and "=" not in word:
            given = given[1:]
        if name in PLACES:
            words += [name, name[2:].upper()]
        elif name not in UNSAID:
            words.append(word)
    return shlex.join(words)


# ---------------------------------------------------------------------------
# Tables
# ---------------------------------------------------------------------------


def table(rows, last=()):
    """Rows of a table, from dictionaries; the columns named in `last` at the end.
    What a row does not have is None."""
    names = list(dict.fromkeys(name for row in rows for name in row))
    names.sort(key=lambda name: name in last)
    return [names, *([row.get(name) for name in names] for row in rows)] if rows else []


def rows_of(table):
    """The dictionaries of a table, without what is None."""
    names, *rows = table or [[]]
    return [{name: value for name, value in zip(names, row) if value is not None} for row in rows]


def is_table(value):
    return (
        isinstance(value, list)
        and len(value) > 1
        and all(isinstance(row, list) and len(row) == len(value[0]) for row in value)
        and all(isinstance(name, str) for name in value[0])
    )


# ---------------------------------------------------------------------------
# Contests: cases, and several that compete in each
# ---------------------------------------------------------------------------
#
# Programs that measure keep a row for each case: the names of the case, and
# "contestants", {name: {"plan": …, "ms": …, "of_PEER": …, "error": …}}.


def case_of(row):
    return {name: value for name, value in row.items() if name != "contestants"}


def lines(rows):
    """A row for each case and contestant."""
    return [
        {**case_of(row), "contestant": name, **{k: v for k, v in entry.items() if k != "error"}}
        for row in rows
        for name, entry in row["contestants"].items()
        if "ms" in entry
    ]


def failures(rows):
    """What could not be measured, and why."""
    return [
        {**case_of(row), "contestant": name, **entry}
        for row in rows
        for name, entry in row["contestants"].items()
        if "error" in entry
    ]


def means(lines):
    """Of each contestant beside each peer: the geometric mean of the ratios, the
    lowest, and the case of the lowest."""
    found = {}
    for line in lines:
        for name, ratio in line.items():
            if name.startswith("of_"):
                found.setdefault((line["contestant"], name[3:]), []).append((ratio, line))
    summary = []
    for (contestant, peer), ratios in found.items():
        lowest, line = min(ratios, key=lambda item: item[0])
        names = list(line)[: list(line).index("contestant")]
        summary.append({
            "contestant": contestant, "beside": peer, "cases": len(ratios),
            "geometric_mean": round(statistics.geometric_mean(ratio for ratio, _ in ratios), 4),
            "lowest": lowest, **{name: line[name] for name in names},
        })
    return summary


def contest(what, environment, rows, **more):
    measured = lines(rows)
    return {
        "what": what,
        "command": command(),
        "environment": environment,
        **more,
        "summary": table(means(measured)),
        "failures": failures(rows),
        "cases": table(measured, last=("plan",)),
    }


# ---------------------------------------------------------------------------
# Files
# ---------------------------------------------------------------------------


def _flat(value):
    return json.dumps(value, ensure_ascii=False)


def _align(table):
    cells = [[_flat(cell) for cell in row] for row in table]
    widths = [max(map(len, column)) for column in zip(*cells)]
    for row in cells:
        padded = [f"{cell}, ".ljust(width + 2) for cell, width in zip(row[:-1], widths)]
        yield "[" + "".join(padded) + row[-1] + "]"


def _render(value, depth):
    flat = _flat(value)
    inner, outer = " " * (depth + 1), " " * depth
    if is_table(value):
        items = list(_align(value))
    elif not isinstance(value, (dict, list)) or not value or depth == DEPTH:
        return flat
    elif depth and len(flat) + depth <= WIDTH:
        return flat
    elif isinstance(value, dict):
        items = [f"{_flat(key)}: {_render(item, depth + 1)}" for key, item in value.items()]
    else:
        items = [_render(item, depth + 1) for item in value]
    first, last = "{}" if isinstance(value, dict) else "[]"
    return first + "\n" + ",\n".join(inner + item for item in items) + "\n" + outer + last


def render(document):
    return _render(document, 0) + "\n"


def write(path, document):
    pathlib.Path(path).write_text(render(document), encoding="utf-8")


def read(path):
    return json.loads(pathlib.Path(path).read_text(encoding="utf-8"))
