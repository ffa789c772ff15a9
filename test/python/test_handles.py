#===----------------------------------------------------------------------===#
#
# Part of attn, an attention compiler.
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===----------------------------------------------------------------------===#
"""What owns memory of the library: copies, pickles, lifetimes."""

import copy
import ctypes
import gc
import pathlib
import pickle
import subprocess
import sys
import textwrap

import attn
import numpy
import pytest
from attn.prepared import Prepared
from test_cpu import tensors

TEXT = attn.attention("f32", 16, variants=["causal"])


@pytest.fixture(scope="module")
def artifact():
    return attn.compile(TEXT)


def result(kernel):
    q, k, v, o, lse = tensors(1, 2, 1, 9, 12, 16)
    kernel.launch(q, k, v, o, lse)
    return o


def run(program):
    """In a process of its own, with this library: what is wrong may end it."""
    setup = f"import sys; sys.path[:0] = {sys.path!r}; import attn; "
    setup += f"attn.use_library({attn._capi._path!r}); text = {TEXT!r}\n"
    return subprocess.run([sys.executable, "-c", setup + textwrap.dedent(program)],
                          capture_output=True, text=True)


def test_pickled_artifact(artifact):
    again = pickle.loads(pickle.dumps(artifact))
    assert again._handle != artifact._handle
    assert again.bytes == artifact.bytes and again.manifest == artifact.manifest


def test_pickled_artifact_elsewhere(artifact, tmp_path):
    path = tmp_path / "artifact"
    path.write_bytes(pickle.dumps(artifact))
    other = run(f"""
        import pickle
        print(".entry" in pickle.load(open({str(path)!r}, "rb")).ptx)
    """)
    assert other.stdout == "True\n", other.stderr


def test_copies_are_the_same(artifact):
    kernel = attn.compile(TEXT, target="cpu", disable=["tile-overlap-products"])
    for handle in (artifact, kernel):
        assert copy.copy(handle) is handle
        assert copy.deepcopy({"key": [handle]})["key"][0] is handle


def test_copies_outlive_the_first():
    ended = run("""
        import copy, gc, numpy
        q, o = numpy.ones((1, 1, 8, 16), numpy.float32), numpy.zeros((1, 1, 8, 16), numpy.float32)
        kernel = attn.compile(text, target="cpu")
        kernel = copy.deepcopy(kernel)
        gc.collect()
        kernel.launch(q, q, q, o, numpy.zeros((1, 1, 8), numpy.float32))
        print(o.sum())
    """)
    assert ended.stdout == "128.0\n", (ended.returncode, ended.stderr)


def test_pickled_kernel_of_the_cpu():
    plan = "#attn.plan<target = cpu, block_q = 16, block_k = 16>"
    kernel = attn.compile(TEXT, target="cpu", plan=plan, disable=["tile-overlap-products"])
    again = pickle.loads(pickle.dumps(kernel))
    assert again._handle != kernel._handle
    assert again.manifest["variants"][0]["plan"].startswith(plan[:-1])
    assert (result(again) == result(kernel)).all()


def test_pickled_kernel_of_a_gpu(artifact, monkeypatch):
    """It is loaded onto the GPU of the same number, and runs the same variant."""
    asked = []
    monkeypatch.setattr(attn.Artifact, "on_device",
                        lambda self, *arguments: asked.append((self.bytes, *arguments)))
    kernel = attn.compile(TEXT, target="cpu")  # stands in for one
    kernel.set_origin(attn.runtime._on_device, artifact, 3, 1)
    pickle.loads(pickle.dumps(kernel))
    assert asked == [(artifact.bytes, 3, 1)]


def test_prepared_arguments_are_not_copied():
    kernel = attn.compile(TEXT, target="cpu")
    arguments = kernel.prepare(*tensors(1, 2, 1, 9, 12, 16))
    for make in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(ValueError, match="pointers cannot be pickled"):
            make(arguments)


def test_prepared_arguments_keep_tensors():
    class Memory(numpy.ndarray):
        freed = False

        def __del__(self):
            Memory.freed = True

    kernel = attn.compile(TEXT, target="cpu")
    q, *rest = tensors(1, 2, 1, 9, 12, 16)
    arguments = kernel.prepare(q.view(Memory), *rest)
    gc.collect()
    assert not Memory.freed
    kernel.launch_prepared(arguments)
    del arguments
    gc.collect()
    assert Memory.freed


def test_prepared_arguments_of_another_kernel():
    kernel = attn.compile(TEXT, target="cpu")
    other = attn.compile(attn.attention("f32", 16, variants=["causal"], captures=[("slopes", "tensor<?xf32>")],
                                        score="""%s = attn.capture_load %slopes[%h] : tensor<?xf32>
      %y = arith.addf %x, %s : f32
      attn.yield %y : f32"""), target="cpu")
    q, k, v, o, lse = tensors(1, 2, 1, 9, 12, 16)
    arguments = other.prepare(q, k, v, numpy.zeros(2, numpy.float32), o, lse)
    with pytest.raises(attn.AttnError, match="5 arguments.*got 6"):
        kernel.launch_prepared(arguments)


def test_streams_of_prepared_launches():
    """Handles of streams, as a CPU kernel ignores them; nothing else is one."""
    kernel = attn.compile(TEXT, target="cpu")
    arguments = kernel.prepare(*tensors(1, 2, 1, 9, 12, 16))
    for stream in (None, 0, 1, 2**63, ctypes.c_void_p(7)):
        kernel.launch_prepared(arguments, stream)
    for stream in (1.5, [], object()):
        with pytest.raises(TypeError):
            kernel.launch_prepared(arguments, stream)


def test_launches_on_new_addresses():
    """attn.prepared launches on what lies at other addresses."""
    kernel = attn.compile(TEXT, target="cpu")
    q, k, v, o, lse = tensors(1, 2, 1, 9, 12, 16)
    prepared = Prepared(kernel, [q, k, v, o, lse])
    kernel.launch(q, k, v, o, lse)
    others = [one.copy() for one in (q, k, v)] + [numpy.zeros_like(one) for one in (o, lse)]
    for stream in (None, 3):
        others[3][:] = 0
        prepared.launch([one.ctypes.data for one in others], stream)
        assert (others[3] == o).all() and (others[4] == lse).all()
    with pytest.raises(attn.AttnError, match="overlaps"):
        prepared.launch([one.ctypes.data for one in (*others[:3], others[0], others[4])])


@pytest.mark.parametrize("order", ["first", "last"])
def test_use_while_the_interpreter_ends(order):
    """Exit handlers run in any order, and modules still hold kernels after them."""
    first = "attn.compile(text, target='cpu')" if order == "first" else ""
    ended = run(f"""
        import atexit, numpy
        {first}
        q, o = numpy.ones((1, 1, 8, 16), numpy.float32), numpy.zeros((1, 1, 8, 16), numpy.float32)
        lse = numpy.zeros((1, 1, 8), numpy.float32)
        def launch():
            kernel.launch(q, q, q, o, lse)
            print(o.sum(), len(artifact.bytes) > 1000)
        atexit.register(launch)
        kernel, artifact = attn.compile(text, target="cpu"), attn.compile(text)
        class Late:
            def __del__(self):
                launch()
        late = Late()
        late.itself = late  # collected when modules are
    """)
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.startswith("128.0 True\n"), ended.stderr


def test_use_by_a_thread_while_the_interpreter_ends():
    ended = run("""
        import numpy, threading, time
        kernel = attn.compile(text, target="cpu")
        q, o = numpy.ones((1, 1, 400, 16), numpy.float32), numpy.zeros((1, 1, 400, 16), numpy.float32)
        lse = numpy.zeros((1, 1, 400), numpy.float32)
        def forever():
            while True:
                kernel.launch(q, q, q, o, lse)
        threading.Thread(target=forever, daemon=True).start()
        time.sleep(0.1)
        print("end")
    """)
    assert ended.returncode == 0 and ended.stdout == "end\n", ended.stderr
