#===----------------------------------------------------------------------===#
#
# Part of attn, an attention compiler.
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===----------------------------------------------------------------------===#
"""Cases in several processes (test/Integration/GPU/case_pool.py): what passes, fails,
ends its process, does not end, or has no time."""

import argparse
import json
import pathlib
import subprocess
import sys

import pytest

pytest.importorskip("torch", reason="the cases are of PyTorch")

FOLDER = pathlib.Path(__file__).resolve().parents[1] / "Integration" / "GPU"
PROGRAM = '''
import argparse, os, sys, time

sys.path.insert(0, FOLDER)
import case_pool

case_pool.GRACE = 0.5


def check(torch, name, options):
    if name == "wrong":
        raise AssertionError("it is 3, wanted 4")
    if name == "ends":
        os._exit(5)
    if name == "hangs":
        time.sleep(1000)
    return case_pool.Verdict(f"{torch.ones(2).sum():.0f}", None if name == "absent" else True)


if __name__ == "__main__":
    parser = case_pool.add_arguments(argparse.ArgumentParser(), lib_required=False, device="cpu")
    options = case_pool.parse(parser)
    names = ["first", "wrong", "ends", "absent", "alone", "second", "third", "hangs"]
    sys.exit(case_pool.main(options, case_pool.chosen(options, names), check, "A test", alone=("alone",)))
'''


@pytest.fixture
def run(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(PROGRAM.replace("FOLDER", repr(str(FOLDER))).lstrip())

    def call(*options):
        options = [*options, "--json", tmp_path / "found.json"]
        done = subprocess.run([sys.executable, program, *options], capture_output=True, text=True)
        found = json.loads((tmp_path / "found.json").read_text()) if done.returncode < 2 else {}
        return done.returncode, done.stdout + done.stderr, found
    return call


def test_two_processes(run):
    code, said, found = run("--jobs", "2", "--only", "first,wrong,ends,absent,alone,second,third")
    assert code == 1 and "4 passed, 2 failed, 1 skipped, 0 left out" in said, said
    assert "second: ok: 2 (" in said and "wrong: it is 3, wanted 4" in said
    assert {one["case"]: one["wrong"] for one in found["failed"]} == {
        "wrong": "it is 3, wanted 4", "ends": "its process ended, with code 5"}
    assert found["summary"]["passed"] == 4 and list(found["slowest"])
    assert max(said.index(f"] {name}: ") for name in ("first", "second", "third")) < said.index("] alone: ")


def test_what_does_not_end(run):
    code, said, found = run("--jobs", "2", "--only", "first,hangs", "--time-limit", "15")
    assert code == 1 and "1 passed, 1 failed, 0 left out" in said, said
    assert "did not end" in found["failed"][0]["wrong"]


@pytest.mark.parametrize("jobs", ["1", "2"])
def test_no_time(run, jobs):
    code, said, found = run("--jobs", jobs, "--time-limit", "0")
    assert code == 1 and "0 passed, 0 failed, 8 left out" in said, said
    assert found["left_out"] == ["first", "wrong", "ends", "absent", "second", "third", "hangs", "alone"]


def test_parts(run):
    code, said, found = run("--part", "2/2", "--only", "first,second,third")
    assert code == 0 and "] second: ok" in said and "1 passed, 0 failed, 0 left out" in said, said
    assert run("--part", "3/2")[0] == 2


def test_whole_names(monkeypatch):
    monkeypatch.syspath_prepend(str(FOLDER))
    import case_pool

    def chosen(only, part="1/1"):
        return case_pool.chosen(argparse.Namespace(only=only, part=part), ["bert", "roberta", "albert", "t5"])
    assert chosen("") == ["bert", "roberta", "albert", "t5"] and chosen("", "2/2") == ["roberta", "t5"]
    assert chosen("bert") == ["bert"] and chosen("ber") == ["bert", "roberta", "albert"]
    assert chosen("t5,rob") == ["roberta", "t5"]
    with pytest.raises(SystemExit, match="wanted a part of a name, got 'gpt'"):
        chosen("bert,gpt")
