#===----------------------------------------------------------------------===#
#
# Part of attn, an attention compiler.
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===----------------------------------------------------------------------===#
"""What a run of the suite came to: counts, the worst of what passed, and what
failed, in full."""

import collections

import results
from cases import Case

# What a failure says first: the kinds that are counted.
KINDS = ("compile", "attn", "RMSE", "e(o)", "lse", "o is not finite", "two launches",
         "wrote outside", "a row without", "the worker", "no answer", "not run")
PROPERTIES = {
    "dtype": lambda case: case["element"],
    "head_dim": lambda case: "<=64 <=128 <=192 <=256".split()[(case["head_dim"] - 1) // 64],
    "group": lambda case: case["group"],
    "causal": lambda case: case["causal"] or "-",
    "window": lambda case: "window" if case["window"] else "-",
    "softcap": lambda case: "softcap" if case["softcap"] else "-",
    "alibi": lambda case: case["alibi"] or "-",
    "bias": lambda case: case["bias"] or "-",
    "documents": lambda case: "documents" if case["documents"] else "-",
}
# Of cases that ran; ratios where the plain evaluation has an error at all.
DISTANCES = {
    "e(o)/e(t0)": lambda row: row["e_o"] / row["e_t0"] if row["e_t0"] else None,
    "RMSE(o)/RMSE(t0)": lambda row: row["rmse_o"] / row["rmse_t0"] if row["rmse_t0"] else None,
    "lse error": lambda row: row["e_lse"],
}


def kind_of(failure):
    return next((words for words in KINDS if failure.startswith(words)), "other")


def _was_run(row):
    return not any(kind_of(failure) == "not run" for failure in row["failures"])


def _describe(row):
    return Case(**row["case"]).describe()


def _by_property(rows):
    for name, key in PROPERTIES.items():
        counts = collections.defaultdict(lambda: [0, 0])
        for row in rows:
            entry = counts[str(key(row["case"]))]
            entry[0] += not row["failures"]
            entry[1] += 1
        for value, (passed, cases) in sorted(counts.items()):
            yield {"property": name, "value": value, "passed": passed, "cases": cases}


def _worst(rows):
    """The largest distance of those that passed, and whose it is."""
    passed = [row for row in rows if not row["failures"] and "e_o" in row]
    for name, distance in DISTANCES.items():
        values = [(value, row) for row in passed if (value := distance(row)) is not None]
        if values:
            value, row = max(values, key=lambda item: item[0])
            yield {"distance": name, "value": float(f"{value:.4g}"), "case": row["index"],
                   "describe": _describe(row)}


def _counts(rows):
    ran = [row for row in rows if "e_o" in row]
    counts = {
        "cases": len(rows),
        "run": sum(map(_was_run, rows)),
        "passed": sum(not row["failures"] for row in rows),
        "failed": sum(bool(row["failures"]) and _was_run(row) for row in rows),
    }
    if ran:
        counts["with_rows_that_see_no_key"] = sum(row["empty_rows"] > 0 for row in ran)
        counts["kernels_with_local_memory"] = sum(row["local_bytes"] > 0 for row in ran)
        counts["different_plans"] = len({row["plan"] for row in ran})
    seconds = sorted(row["compile_seconds"] for row in rows)
    if seconds and seconds[-1]:
        counts["compile_seconds"] = {"median": seconds[len(seconds) // 2], "worst": seconds[-1]}
    return counts


def summarize(rows, command):
    """Counts, the worst distances, a table by property, and every case that
    failed with all that is known of it."""
    failed = [row for row in rows if row["failures"] and _was_run(row)]
    return {
        "summary": _counts(rows),
        "worst_of_passed": results.table(list(_worst(rows))),
        "passed_by_property": results.table(list(_by_property(rows))),
        "failures": [
            {"repeat": f"{command} --only {row['index']}", "describe": _describe(row), **row}
            for row in failed
        ],
    }


def show(summary):
    counts = summary["summary"]
    print(f"\n{counts['passed']} of {counts['cases']} cases passed")
    if counts["run"] < counts["cases"]:
        print(f"  not run: {counts['cases'] - counts['run']}")
    kinds = collections.defaultdict(list)
    for row in summary["failures"]:
        for kind in {kind_of(failure) for failure in row["failures"]}:
            kinds[kind].append(row["index"])
    for kind, numbers in sorted(kinds.items(), key=lambda item: -len(item[1])):
        print(f"  {kind:16} {len(numbers):4}  {','.join(map(str, numbers[:40]))}")
    print("\n  passed / cases by property")
    cells = collections.defaultdict(list)
    for row in results.rows_of(summary["passed_by_property"]):
        cells[row["property"]].append(f"{row['value']} {row['passed']}/{row['cases']}")
    for name, values in cells.items():
        print(f"  {name:10} {'  '.join(values)}")
    print()
    for row in results.rows_of(summary["worst_of_passed"]):
        print(f"  worst {row['distance']} {row['value']:.4g}: case {row['case']}, {row['describe']}")
    for name, value in list(counts.items())[4:]:
        print(f"  {name}: {value}")
