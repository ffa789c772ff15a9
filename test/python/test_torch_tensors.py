#===----------------------------------------------------------------------===#
#
# Part of attn, an attention compiler.
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===----------------------------------------------------------------------===#
"""Launches on tensors of PyTorch: C reads them all in one call, and what is wrong
is said as where Python looks at each."""

import os
import pathlib
import subprocess
import sys
import threading
import time

import attn
import pytest
from attn import _capi, plain, views

torch = pytest.importorskip("torch")
if views.exchange() is None:
    pytest.skip("this PyTorch has no exchange of DLPack in C", allow_module_level=True)


@pytest.fixture(scope="module")
def kernel():
    return attn.compile(attn.attention("f32", 16), target="cpu")


@pytest.fixture(scope="module")
def masked():
    text = attn.attention("bf16", 16, captures=[("last", "tensor<?xi32>"), ("on", "tensor<?xi1>"), ("near", "i32"),
                                                ("gain", "f32")],
                          mask=lambda p: (p.j <= p.last[p.b]) & p.on[p.j] & (p.i - p.j < p.near),
                          score=lambda p: p.x * p.gain)
    return attn.compile(text, target="cpu")


def arguments(**changes):
    torch.manual_seed(1)
    values = dict(
        q=torch.randn(1, 2, 5, 16), k=torch.randn(1, 2, 7, 16), v=torch.randn(1, 2, 7, 16),
        o=torch.zeros(1, 2, 5, 16), lse=torch.zeros(1, 2, 5),
    )
    values.update(changes)
    return list(values.values())


def one_by_one(patch):
    patch.setattr(views, "exchange", lambda: None)


def test_one_call_reads_all(kernel, masked, monkeypatch):
    values, others = arguments(), arguments()
    parts = [torch.randn(2, 2, 7, 16).bfloat16() for _ in range(3)]
    captured = [torch.tensor([3, 6], dtype=torch.int32), torch.ones(7, dtype=torch.bool), 4, 0.5]
    results = [[torch.zeros(2, 2, 7, 16).bfloat16(), torch.zeros(2, 2, 7)] for _ in range(2)]
    with monkeypatch.context() as patch:
        one_by_one(patch)
        kernel.launch(*others)
        masked.launch(*parts, *captured, *results[0])
    monkeypatch.setattr(views, "_view_torch", None)
    for _ in range(2):
        kernel.launch(*values)
        masked.launch(*parts, *captured, *results[1])
    assert others[3].abs().max() > 0
    for one, other in zip([*values, *results[0]], [*others, *results[1]]):
        assert torch.equal(one, other)
    # A parameter, where no gradients are recorded; a slice; other numbers.
    values[0] = torch.nn.Parameter(values[0])
    with torch.no_grad():
        kernel.launch(*values)
    captured[2] = 1
    masked.launch(*parts, *captured, *results[1])
    assert not torch.equal(results[0][0], results[1][0])


def test_one_call_launches(kernel, masked, monkeypatch):
    """Neither prepare() nor attnLaunch has a part in it."""
    if not hasattr(_capi.library(), "attnLaunchObjects"):
        pytest.skip("this library has no attnLaunchObjects")
    values, others = arguments(), arguments()
    numbers = [torch.tensor([3], dtype=torch.int32), torch.ones(7, dtype=torch.bool)]
    parts = [torch.randn(1, 2, 7, 16).bfloat16() for _ in range(3)]
    results = torch.zeros(1, 2, 7, 16).bfloat16(), torch.zeros(1, 2, 7)
    kernel.launch_prepared(kernel.prepare(*others))
    monkeypatch.setattr(attn.Kernel, "prepare", None)
    kernel.launch(*values)
    assert torch.equal(values[3], others[3])
    for near, gain in ((4, 0.5), (True, 1), (-3, False)):
        masked.launch(*parts, *numbers, near, gain, *results)
    values[0] = torch.nn.Parameter(values[0])
    with torch.no_grad():
        kernel.launch(*values, stream=3)  # which the CPU ignores
    for wrong in ((values, 4), (others[:4], 4), ([*others[:3], None, others[4]], 4)):
        with pytest.raises(TypeError):  # prepare() is asked what is wrong
            kernel.launch(*wrong[0])
    for near in (2**31, 2**63, -2**63 - 1, numbers[0], "4", 4.5j):
        with pytest.raises(TypeError):
            masked.launch(*parts, *numbers, near, 0.5, *results)


def test_streams_of_gpus(kernel, monkeypatch):
    """One call for a GPU: its number, or the first tensor's, says which stream; one that is given stays."""
    class OnGPU:
        def get_device(self):
            return 3

    monkeypatch.setattr(torch._C, "_cuda_getCurrentRawStream", lambda index: 100 + index, raising=False)
    seen = []
    for index in (2, -1):
        launches = plain.Launches(kernel._handle, kernel.manifest["arguments"])
        launches._call = lambda handle, place, values, records, stream: seen.append(
            (_capi.Python.from_address(place).device_type, _capi.Python.from_address(place).device, stream))
        for stream in (None, 0, 7):
            launches.launch((OnGPU(),), stream, "cuda", index)
    assert seen == [(2, 2, 102), (2, 2, 0), (2, 2, 7), (2, -1, 103), (2, -1, 0), (2, -1, 7)]
    assert launches.launch((), None, "cuda", -1) == plain.NOT_PLAIN


def test_launches_leave_the_lock(kernel):
    """Python goes on in other threads while a kernel runs on the CPU."""
    ticks, is_done = [], threading.Event()

    def tick():
        while not is_done.wait(1e-3):
            ticks.append(time.perf_counter())

    thread = threading.Thread(target=tick)
    thread.start()
    length, start, stop = 1024, 0, 0
    while stop - start < 0.05:  # however fast the processor is
        length *= 2
        q, k, v, o = (torch.zeros(1, 1, length, 16) for _ in range(4))
        start = time.perf_counter()
        kernel.launch(q, k, v, o, torch.zeros(1, 1, length))
        stop = time.perf_counter()
    is_done.set()
    thread.join()
    assert any(start + 5e-3 < at < stop - 5e-3 for at in ticks)


def test_other_addresses(kernel, monkeypatch):
    monkeypatch.setattr(views, "_view_torch", None)
    stores = [torch.randn(3, *value.shape) for value in arguments()]
    for number in (0, 1, 2, 1):
        values = [store[number] for store in stores]
        kernel.launch(*values)
        expected = torch.softmax(values[0] @ values[1].mT / 4, -1) @ values[2]
        assert (values[3] - expected).abs().max() < 1e-5


def wrong_arguments():
    zeros = torch.zeros(1, 2, 7, 16)

    class Named(torch.Tensor):
        pass

    return {
        "element": dict(k=zeros.double()),
        "bits of bf16": dict(k=zeros.bfloat16()),
        "signs": dict(k=torch.zeros(1, 2, 7, 16, dtype=torch.uint32)),
        "rank": dict(k=zeros[0]),
        "shape": dict(k=torch.zeros(1, 2, 7, 24)),
        "sizes": dict(v=torch.zeros(1, 2, 8, 16)),
        "gradients": dict(v=zeros.clone().requires_grad_()),
        "parameter": dict(v=torch.nn.Parameter(zeros)),
        "sign": dict(k=torch.zeros(1, 2, 7, 16, dtype=torch.complex64).conj().imag),
        "sparse": dict(k=zeros.to_sparse()),
        "meta": dict(k=zeros.to("meta")),
        "complex": dict(k=zeros.cfloat()),
        "overlap": dict(o=zeros[:, :, :5], k=zeros),
        "itself": dict(o=torch.zeros(1, 2, 1, 16).expand(1, 2, 5, 16)),
        "number": dict(k=1.0),
        "none": dict(k=None),
        "list": dict(k=[1.0]),
        "subclass": dict(k=zeros.double().as_subclass(Named)),
        "more": dict(more=zeros),
    }


@pytest.mark.parametrize("what", wrong_arguments())
def test_the_same_errors(kernel, what, monkeypatch):
    kernel.launch(*arguments())
    values = arguments(**wrong_arguments()[what])
    with pytest.raises(attn.AttnError) as caught:
        kernel.launch(*values)
    one_by_one(monkeypatch)
    with pytest.raises(attn.AttnError) as expected:
        kernel.launch(*values)
    assert str(caught.value) == str(expected.value)


@pytest.mark.parametrize("near, gain", [(2**31, 0.5), ("1", 0.5), (1.5, 0.5), (None, 0.5), (torch.zeros(2), 0.5),
                                        (4, None), (4, "x")])
def test_the_same_errors_about_scalars(masked, near, gain, monkeypatch):
    parts = [torch.zeros(1, 2, 7, 16).bfloat16() for _ in range(4)]
    values = [*parts[:3], torch.zeros(1, dtype=torch.int32), torch.ones(7, dtype=torch.bool), near, gain,
              parts[3], torch.zeros(1, 2, 7)]
    with pytest.raises(attn.AttnError) as caught:
        masked.launch(*values)
    one_by_one(monkeypatch)
    with pytest.raises(attn.AttnError) as expected:
        masked.launch(*values)
    assert str(caught.value) == str(expected.value)


def test_subclasses_are_looked_at(kernel):
    """Their attributes may be their own."""
    class Named(torch.Tensor):
        pass

    values, others = arguments(), arguments()
    kernel.launch(*values)
    kernel.launch(*(value.as_subclass(Named) for value in others))
    assert torch.equal(values[3], others[3])


def test_prepared_arguments_keep_sizes(kernel):
    """Whatever becomes of the tensor: they are of the time of prepare()."""
    values, others = arguments(), arguments()
    kernel.launch(*others)
    prepared = kernel.prepare(*values)
    query = values[0]
    query.transpose_(2, 3)
    kernel.launch_prepared(prepared)
    assert torch.equal(values[3], others[3])
    assert query.shape == (1, 2, 16, 5)


def test_copies_are_told_of(kernel):
    fresh = attn.compile(attn.attention("f32", 16), target="cpu")
    values = arguments(q=torch.randn(1, 2, 16, 5).mT)
    fresh.launch(*arguments())
    with pytest.warns(UserWarning, match="'q' is copied first"):
        fresh.launch(*values)
    expected = torch.softmax(values[0] @ values[1].mT / 4, -1) @ values[2]
    assert (values[3] - expected).abs().max() < 1e-5


def test_what_launches_cost_is_measured():
    """The script runs, on a stand-in for the driver, which a build of the tests has."""
    library = pathlib.Path(_capi._path)
    driver = library.parent.parent / "test" / "Unit" / "FakeDriver"
    if not driver.is_dir():
        pytest.skip("no stand-in for the driver was built")
    script = pathlib.Path(__file__).parents[1] / "Integration" / "GPU" / "launch_cost.py"
    done = subprocess.run(
        [sys.executable, str(script), "--lib", str(library), "--calls", "--stand-in", "--batches=1",
         "--launches=2"], text=True, capture_output=True, env={**os.environ, "LD_LIBRARY_PATH": str(driver)})
    assert done.returncode == 0, done.stderr
    for words in ("10 arguments   kernel.launch", "gradients      artifact.launch"):
        assert words in done.stdout
