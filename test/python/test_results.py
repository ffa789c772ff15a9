#===----------------------------------------------------------------------===#
#
# Part of attn, an attention compiler.
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===----------------------------------------------------------------------===#
"""Files of results: how they are written, and that README.md says what they say."""

import dataclasses
import importlib
import pathlib
import subprocess
import sys

import attn
import pytest

TEST = pathlib.Path(__file__).resolve().parents[1]
GPU = TEST / "Integration" / "GPU"
RESULTS = sorted((TEST / "Benchmark" / "results").glob("*.json"))
sys.path[:0] = [str(GPU), str(TEST / "Benchmark")]
import readme  # noqa: E402
import results  # noqa: E402
import suite_summary  # noqa: E402
from cases import make_case  # noqa: E402

# ---------------------------------------------------------------------------
# The writer
# ---------------------------------------------------------------------------


def test_a_case_is_a_line(tmp_path):
    document = {
        "what": "something",
        "environment": {"gpu": "one", "driver": "a" * 120},
        "failures": [],
        "cases": results.table([{"d": 64, "s": 512, "ms": 0.25}, {"d": 128, "plan": "#p<a, b>"}]),
    }
    results.write(tmp_path / "file.json", document)
    assert results.read(tmp_path / "file.json") == document
    assert (tmp_path / "file.json").read_text().splitlines()[-6:] == [
        ' "cases": [',
        '  ["d", "s",  "ms", "plan"],',
        '  [64,  512,  0.25, null],',
        '  [128, null, null, "#p<a, b>"]',
        ' ]',
        '}',
    ]
    assert results.rows_of(document["cases"])[1] == {"d": 128, "plan": "#p<a, b>"}


def test_a_command_says_no_places():
    given = ["/home/x/suite.py", "--lib", "/home/x/lib.so", "--json=/tmp/out", "--commit", "abc",
             "--bin=/x/bin", "--cases", "3", "--plan", "#attn.plan<target = sm_80>"]
    assert results.command(given) == (
        "suite.py --lib LIB --bin BIN --cases 3 --plan '#attn.plan<target = sm_80>'")


CONTEST = [
    {"d": 64, "s": 512, "contestants": {
        "ours": {"plan": "#p", "ms": 1.0, "of_theirs": 2.0}, "theirs": {"ms": 2.0}}},
    {"d": 64, "s": 1024, "contestants": {
        "ours": {"plan": "#p", "ms": 1.0, "of_theirs": 0.5}, "theirs": {"ms": 0.5}}},
    {"d": 128, "s": 512, "contestants": {
        "ours": {"plan": "#q", "error": "differs"}, "theirs": {"ms": 0.5}}},
]


def test_a_contest():
    """Means with the case of the lowest ratio; what failed is no case."""
    found = results.contest("what", {"gpu": "one"}, CONTEST)
    assert results.rows_of(found["summary"]) == [
        {"contestant": "ours", "beside": "theirs", "cases": 2, "geometric_mean": 1.0,
         "lowest": 0.5, "d": 64, "s": 1024}]
    assert found["failures"] == [
        {"d": 128, "s": 512, "contestant": "ours", "plan": "#q", "error": "differs"}]
    assert [row[:3] for row in found["cases"][1:]] == [
        [64, 512, "ours"], [64, 512, "theirs"], [64, 1024, "ours"], [64, 1024, "theirs"],
        [128, 512, "theirs"]]
    assert found["cases"][0][-1] == "plan"


# ---------------------------------------------------------------------------
# The suite
# ---------------------------------------------------------------------------


def make_row(index, error=1e-3, failures=()):
    return {"index": index, "failures": list(failures), "e_o": error, "e_t0": 1e-3, "e_lse": 1e-6,
            "rmse_o": 1e-5, "rmse_t0": 2e-5, "empty_rows": 0, "registers": 255, "local_bytes": 0,
            "plan": "#attn.plan<target = sm_80>", "compile_seconds": 0.5,
            "case": dataclasses.asdict(make_case(1, index))}


def test_cases_that_passed_are_a_count():
    """300 cases are as long as 30, and the worst is named."""
    documents = []
    for count in (30, 300):
        rows = [make_row(index, 1.5e-3 if index == 17 else 1e-3) for index in range(count)]
        documents.append(suite_summary.summarize(rows, "suite.py --seed 1"))
    few, many = documents
    assert many["summary"]["passed"] == many["summary"]["cases"] == 300
    assert many["failures"] == []
    worst = results.rows_of(many["worst_of_passed"])[0]
    assert (worst["distance"], worst["value"], worst["case"]) == ("e(o)/e(t0)", 1.5, 17)
    assert len(results.render(many).splitlines()) <= len(results.render(few).splitlines()) + 5
    table = results.rows_of(many["passed_by_property"])
    assert sum(row["cases"] for row in table if row["property"] == "dtype") == 300


def test_a_case_that_failed_is_said_in_full():
    """With the command that repeats it; it is no distance of what passed."""
    rows = [make_row(0), make_row(1, 9.0, ["e(o) 9 > 0.002"]), make_row(2, 0, ["not run: …"])]
    summary = suite_summary.summarize(rows, "suite.py --seed 1")
    assert {key: summary["summary"][key] for key in ("cases", "run", "passed", "failed")} == {
        "cases": 3, "run": 2, "passed": 1, "failed": 1}
    failed, = summary["failures"]
    assert failed["repeat"] == "suite.py --seed 1 --only 1"
    assert failed["case"] == rows[1]["case"] and failed["failures"] == ["e(o) 9 > 0.002"]
    assert [row["value"] for row in results.rows_of(summary["worst_of_passed"])] == [1.0, 0.5, 1e-6]


def test_a_run_of_the_suite(tmp_path):
    """Of programs that are compiled only: a GPU runs them."""
    command = [sys.executable, str(GPU / "suite.py"), "--lib", attn._capi._path, "--cases", "2",
               "--dry-run", "--longest", "64", "--json", str(tmp_path / "suite.json")]
    subprocess.run(command, check=True, capture_output=True)
    found = results.read(tmp_path / "suite.json")
    assert found["command"] == "suite.py --lib LIB --cases 2 --dry-run --longest 64"
    assert found["summary"]["passed"] == 2
    assert "rows" not in found


WRITERS = ["ablation", "bench", "block_maps", "gradient_forms", "gradient_sizes", "lengths", "long", "rates", "stress", "suite", "variants"]


@pytest.mark.parametrize("name", WRITERS)
def test_one_writer(name):
    module = importlib.import_module(name)
    assert module.results is results
    text = (GPU / f"{name}.py").read_text()
    assert "results.write(options.json" in text and "indent=" not in text


# ---------------------------------------------------------------------------
# The files
# ---------------------------------------------------------------------------


@pytest.mark.parametrize("path", RESULTS, ids=lambda path: path.stem)
def test_a_file_can_be_read(path):
    text = path.read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 300
    document = results.read(path)
    assert text == results.render(document), "not as results.py writes it"
    assert document["what"]
    if "contestant" in document.get("cases", [[]])[0]:
        assert results.rows_of(document["summary"]) == results.means(
            results.rows_of(document["cases"]))


def test_passes_have_their_names_of_today():
    """A pass that is renamed is renamed in what was measured of it, too; a new one may not
    be measured yet."""
    found = results.read(TEST / "Benchmark" / "results" / "ablation.json")
    assert found["passes"].items() <= importlib.import_module("ablation").PASSES.items()
    named = {name.split()[-1] for name in (row["contestant"] for row in results.rows_of(found["cases"]))}
    assert named - {"passes"} == set(found["passes"])


def test_all_files_together():
    assert sum(len(path.read_text().splitlines()) for path in RESULTS) < 4000


README = (TEST.parent / "README.md").read_text(encoding="utf-8")


def test_readme_says_what_the_results_say():
    assert readme.updated(README) == (README, [])


@pytest.mark.parametrize("sentence", [sentence for sentence, _ in readme.SENTENCES])
def test_every_number_is_compared(sentence):
    """Each is changed in turn, said with its line, and put right."""
    match = readme.pattern(sentence).search(README)
    for group in range(1, sentence.count("{}") + 1):
        start, end = match.span(group)
        text, wrong = readme.updated(README[:start] + "9999" + README[end:])
        line = README.count("\n", 0, start) + 1
        assert len(wrong) == 1 and wrong[0].startswith(f"line {line}: got 9999")
        assert text == README


def test_every_cell_is_compared():
    text = README.replace("| 64 | no | 1024 | 28", "| 64 | no | 1024 | 29")
    assert text != README
    assert readme.updated(text) == (README, ["the table forward is not that of the results"])


def test_a_sentence_that_is_gone_is_missed():
    _, wrong = readme.updated(README.replace("of FlashAttention-2 (lowest", "of FA2 (lowest"))
    assert len(wrong) == 1 and wrong[0].startswith("found 0 times, wanted once: 'sm_80 is {} of")
    _, wrong = readme.updated(README.replace("<!-- results: forward -->", ""))
    assert wrong == ["no table between <!-- results: forward --> and <!-- end -->"]
