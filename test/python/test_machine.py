#===----------------------------------------------------------------------===#
#
# Part of attn, an attention compiler.
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===----------------------------------------------------------------------===#
"""What a machine has of its own, and no kernel may depend on."""

import os
import pathlib
import platform
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import attn
import numpy as np
import pytest

TEXT = attn.attention("bf16", 64, variants=["softcap<2.5 : f32>"], scale=0.3)
# As attn-bench writes it: numbers with a decimal point.
RESULTS = pathlib.Path(__file__).resolve().parents[2] / "share" / "attn" / "plans.json"


def in_a_process(code, *arguments, **environment):
    """What `code` prints in a Python of its own."""
    prelude = "import sys, attn; attn.use_library(sys.argv[1]);"
    environment = {"PATH": os.environ["PATH"], **environment}
    for name in ("LD_PRELOAD", "ASAN_OPTIONS", "PYTHONPATH"):
        if name in os.environ:
            environment[name] = os.environ[name]
    return subprocess.run(
        [sys.executable, "-c", prelude + code, attn._capi._path, *map(str, arguments)],
        check=True, capture_output=True, text=True, env=environment).stdout


DIGEST = """
import hashlib, locale
locale.setlocale(locale.LC_ALL, "")
kernel = attn.compile(sys.argv[2], target="sm_90a", results=sys.argv[3])
print(hashlib.sha256(kernel.bytes).hexdigest(), locale.localeconv()["decimal_point"])
"""


def test_a_locale_with_a_decimal_comma(tmp_path):
    """Texts, files of results and artifacts have points."""
    name = "de_DE.UTF-8"
    try:
        made = subprocess.run(["localedef", "-i", "de_DE", "-f", "UTF-8", str(tmp_path / name)],
                              capture_output=True)
    except FileNotFoundError:
        pytest.skip("no localedef")
    if not (tmp_path / name).exists():
        pytest.skip(f"no such locale: {made.stderr}")
    plain, point = in_a_process(DIGEST, TEXT, RESULTS, LC_ALL="C").split()
    german, comma = in_a_process(DIGEST, TEXT, RESULTS, LC_ALL=name, LOCPATH=str(tmp_path)).split()
    assert (point, comma) == (".", ",")
    assert german == plain


def test_a_path_with_spaces(tmp_path):
    cache = tmp_path / "a cache" / "of mine"
    first = attn.compile(TEXT, cache=cache)
    second = attn.compile(TEXT, cache=cache)
    assert (first.from_cache, second.from_cache) == (False, True)
    assert first.bytes == second.bytes


def test_no_home():
    """A cache is asked for and has no place; nothing else needs one."""
    code = """
try:
    attn.compile(sys.argv[2], cache="")
except attn.AttnError as error:
    print(error)
print(len(attn.compile(sys.argv[2]).bytes) > 0)
"""
    assert in_a_process(code, TEXT).splitlines() == [
        "no cache directory: neither XDG_CACHE_HOME nor HOME is set", "True"]


def test_a_cache_that_cannot_be_written(tmp_path):
    """A warning, and a kernel."""
    (tmp_path / "file").write_text("")
    artifact = attn.compile(TEXT, cache=tmp_path / "file")
    assert artifact.bytes
    assert "warning: not cached: " in artifact.log


def call(cpu):
    kernel = attn.compile(attn.attention("f32", 16), target="cpu", cpu=cpu)
    rng = np.random.default_rng(0)
    q, k, v = (rng.standard_normal((1, 2, 9, 16), dtype=np.float32) for _ in range(3))
    o, lse = np.empty_like(q), np.empty(q.shape[:3], np.float32)
    kernel.launch(q, k, v, o, lse)
    return o


@pytest.mark.skipif(platform.machine() != "x86_64", reason="names of x86")
def test_the_processor():
    np.testing.assert_allclose(call("x86-64"), call("native"), rtol=1e-5, atol=1e-6)
    with pytest.raises(attn.AttnError, match="unknown processor 'abacus', expected native, .*x86-64"):
        call("abacus")
    with pytest.raises(ValueError, match='cpu=.* is for target="cpu", got target=.sm_80'):
        attn.compile(TEXT, cpu="x86-64")


COUNTED = """
import hashlib, os
if sys.argv[3] == "one":
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    assert len(os.sched_getaffinity(0)) == 1
print(hashlib.sha256(attn.compile(sys.argv[2]).bytes).hexdigest())
"""


def test_processors_that_may_be_used():
    """A kernel does not depend on how many there are."""
    assert in_a_process(COUNTED, TEXT, "one") == in_a_process(COUNTED, TEXT, "all")


@pytest.mark.filterwarnings("ignore:.*is copied first")
def test_many_threads():
    """Eight compile at once, sixty-four launch at once: as one does."""
    threads = ThreadPoolExecutor(64)
    alone = attn.compile(TEXT).bytes
    assert {artifact.bytes for artifact in threads.map(attn.compile, [TEXT] * 8)} == {alone}

    kernel = attn.compile(attn.attention("f32", 16), target="cpu")

    def launch(seed):
        rng = np.random.default_rng(seed)
        # Every other element: these tensors are copied.
        q, k, v = (rng.standard_normal((1, 2, 40, 32), dtype=np.float32)[..., ::2] for _ in range(3))
        o, lse = np.empty((1, 2, 40, 16), np.float32), np.empty((1, 2, 40), np.float32)
        kernel.launch(q, k, v, o, lse)
        return o.tobytes() + lse.tobytes()

    expected = [launch(seed) for seed in range(64)]
    assert list(threads.map(launch, range(64))) == expected

