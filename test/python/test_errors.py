#===----------------------------------------------------------------------===#
#
# Part of attn, an attention compiler.
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===----------------------------------------------------------------------===#
"""What is refused, and in which words."""

import sys
import types

import attn
import numpy
import pytest


@pytest.fixture(scope="module")
def kernel():
    return attn.compile(attn.attention("f32", 16), target="cpu")


def arguments(**changes):
    values = dict(
        q=numpy.zeros((1, 2, 5, 16), numpy.float32),
        k=numpy.zeros((1, 2, 7, 16), numpy.float32),
        v=numpy.zeros((1, 2, 7, 16), numpy.float32),
        o=numpy.zeros((1, 2, 5, 16), numpy.float32),
        lse=numpy.zeros((1, 2, 5), numpy.float32),
    )
    values.update(changes)
    return values.values()


def refused(kernel, values, *words):
    with pytest.raises(attn.AttnError) as caught:
        kernel.launch(*values)
    for word in words:
        assert word in str(caught.value)


def test_launch_is_fine(kernel):
    kernel.launch(*arguments())


def test_number_of_arguments(kernel):
    refused(kernel, list(arguments())[:3], "takes 5 arguments", "q, k, v, o, lse", "got 3")


def test_element_type(kernel):
    wrong = numpy.zeros((1, 2, 7, 16), numpy.float64)
    refused(kernel, arguments(k=wrong), "argument 'k'", "wanted elements of f32 (float32), got float64")


@pytest.mark.parametrize("dtype, words", [
    (">f4", "its elements, '>f4', have the byte order of another machine"),
    ("O", "wanted numbers, got an array of objects"),
    ("U3", "wanted numbers, got an array of '<U3'"),
    ("M8[s]", "wanted numbers, got an array of '<M8[s]'"),
    ("c8", "got complex64"),
    ("f2", "got float16"),
    ("?", "got bool"),
    ("u4", "got uint32"),
    ([("a", "f4")], "got void32"),
])
def test_arrays_of_other_kinds(kernel, dtype, words):
    refused(kernel, arguments(k=numpy.zeros((1, 2, 7, 16), dtype)), "argument 'k'", words)


def test_masked_array(kernel):
    wrong = numpy.ma.masked_less(numpy.zeros((1, 2, 7, 16), numpy.float32), 0)
    refused(kernel, arguments(k=wrong), "argument 'k'", "its mask would be ignored")


def test_read_only_arrays(kernel):
    values = arguments()
    for value in values:
        value.flags.writeable = False
    refused(kernel, values, "argument 'o': is a result: wanted memory to write to, got a read-only array")
    kernel.launch(*list(values)[:3], *list(arguments())[3:])
    borrowed = numpy.frombuffer(bytes(4 * 10), numpy.float32).reshape(1, 2, 5)
    refused(kernel, arguments(lse=borrowed), "argument 'lse': is a result")
    refused(kernel, arguments(lse=numpy.broadcast_to(numpy.float32(0), (1, 2, 5))), "argument 'lse': is a result")


def test_a_number_of_numpy_is_no_tensor(kernel):
    refused(kernel, arguments(lse=numpy.float32(3)), "argument 'lse'", "got the number 3.0")


def test_unsigned_captures():
    text = attn.attention("f32", 16, captures=[("ids", "tensor<?xi32>"), ("last", "i32"), ("near", "i8")],
                          mask=lambda p: (p.ids[p.j] > 0) & (p.j <= p.last) & (p.j - p.i < p.near))
    kernel = attn.compile(text, target="cpu")
    q, k, v, o, lse = arguments()
    ids = numpy.zeros(7, numpy.int32)
    refused(kernel, [q, k, v, ids.view(numpy.uint32), 3, 3, o, lse], "argument 'ids'",
            "wanted elements of i32 (int32), got uint32: they would be read with a sign")
    refused(kernel, [q, k, v, ids, 3 * 10**9, 3, o, lse], "argument 'last': 3000000000 does not fit i32")
    refused(kernel, [q, k, v, ids, 3, numpy.uint8(200), o, lse], "argument 'near': 200 does not fit i8")
    refused(kernel, [q, k, v, ids, ids, 3, o, lse], "argument 'last': wanted a number, got a tensor of shape (7,)")
    refused(kernel, [q, k, v, ids, 3.5, 3, o, lse], "('last'): wanted an integer")
    refused(kernel, [q, k, v, ids, "3", 3, o, lse], "argument 'last': wanted a number, got str")
    kernel.launch(q, k, v, ids, numpy.int64(3), numpy.array([3]), o, lse)


def test_seeds_have_no_sign():
    kernel = attn.compile(attn.attention("f32", 16, dropout_p=0.5), target="cpu")
    q, k, v, o, lse = arguments()
    kernel.launch(q, k, v, 2**32 - 1, 2**31, o, lse)


class Tensor:
    """What the package asks of torch's tensors."""

    is_cuda = requires_grad = False
    layout = "torch.strided"
    device = types.SimpleNamespace(type="cpu", index=None)

    def __init__(self, array, **attributes):
        self.array, self.dtype, self.shape = array, f"torch.{array.dtype}", array.shape
        self.__dict__.update(attributes)

    def data_ptr(self):
        return self.array.ctypes.data

    def stride(self):
        return [stride // self.array.itemsize for stride in self.array.strides]


def test_tensors_of_torch(kernel, monkeypatch):
    values = list(arguments())
    kernel.launch(*map(Tensor, values))

    def wrong(**attributes):
        return arguments(v=Tensor(values[2], **attributes))

    refused(kernel, wrong(requires_grad=True), "argument 'v': requires gradients, and there is no "
            "backward pass yet: pass .detach(), or launch under torch.no_grad()")
    refused(kernel, wrong(layout="torch.sparse_coo"), "wanted a strided tensor, got one of layout torch.sparse_coo")
    refused(kernel, wrong(is_neg=lambda: True), "its sign is not in memory")
    refused(kernel, wrong(device=types.SimpleNamespace(type="meta")), "wanted a tensor on cpu, got one on meta")
    refused(kernel, wrong(dtype="torch.float64"), "wanted elements of f32 (float32), got float64")
    grad = types.SimpleNamespace(is_grad_enabled=lambda: False)
    monkeypatch.setitem(sys.modules, "torch", grad)
    kernel.launch(*wrong(requires_grad=True))
    monkeypatch.setattr(grad, "is_grad_enabled", lambda: True)
    refused(kernel, wrong(requires_grad=True), "requires gradients")


def test_tensors_of_another_gpu(kernel):
    """A kernel of GPU 1, by what Python knows of it."""
    def on(index):
        return Tensor(array, is_cuda=True, device=types.SimpleNamespace(type="cuda", index=index))

    array = next(iter(arguments()))
    elsewhere = attn.Kernel.__new__(attn.Kernel)
    elsewhere.__dict__.update(kernel.__dict__, _device="cuda", _index=1)
    assert elsewhere._view(on(1)).address == array.ctypes.data
    with pytest.raises(attn.AttnError, match="wanted a tensor on cuda:1, got one on cuda:0"):
        elsewhere._view(on(0))


def test_artifacts_launch_where_the_tensors_are(monkeypatch):
    launches = []

    class Loaded:
        def __init__(self, device):
            self.device = device

        def launch(self, *values, stream):
            launches.append((self.device, id(self)))

    artifact = attn.compile(attn.attention("f32", 16))
    monkeypatch.setattr(attn.Artifact, "on_device", lambda self, device: Loaded(device))
    array = next(iter(arguments()))
    for index in (1, 0, 1):
        artifact.launch(Tensor(array, is_cuda=True, device=types.SimpleNamespace(type="cuda", index=index)))
    artifact.launch(array)
    assert [device for device, _ in launches] == [1, 0, 1, -1]
    assert launches[0] == launches[2]


def test_dlpack_is_named(kernel):
    class Other:
        def __dlpack__(self):
            raise AssertionError

    refused(kernel, arguments(q=Other()), "argument 'q'", "got Other (torch.from_dlpack or numpy.from_dlpack")


def test_shape(kernel):
    wrong = numpy.zeros((1, 2, 7, 24), numpy.float32)
    refused(kernel, arguments(k=wrong), "('k')", "?x?x?x16", "1x2x7x24")


def test_sizes_must_agree(kernel):
    wrong = numpy.zeros((1, 2, 8, 16), numpy.float32)
    refused(kernel, arguments(v=wrong), "8")


def test_head_counts(kernel):
    wrong = numpy.zeros((1, 3, 7, 16), numpy.float32)
    refused(kernel, arguments(k=wrong, v=wrong), "dimension 1 of 'q' must be a multiple of dimension 1 of 'k' (2 over 3)")


def test_captures_have_their_names():
    text = attn.attention("f32", 16, captures=[("bias", "tensor<?x?xf32>"), ("factor", "f32")],
                          score=lambda p: p.x + p.bias[p.i, p.j] * p.factor)
    kernel = attn.compile(text, target="cpu")
    assert [info["name"] for info in kernel.manifest["arguments"]] == ["q", "k", "v", "bias", "factor", "o", "lse"]
    q, k, v, o, lse = arguments()
    refused(kernel, [q, k, v, numpy.zeros(3, numpy.float32), 1.0, o, lse], "('bias'): wanted rank 2, got 1")
    # One that no name can be made of keeps its number, and so does a second one of its name.
    text = text.replace('loc("bias")', 'loc("a b")')
    assert attn.compile(text).manifest["arguments"][3]["name"] == "c0"
    text = text.replace('loc("a b")', 'loc("factor")')
    assert [info["name"] for info in attn.compile(text).manifest["arguments"][3:5]] == ["factor", "c1"]
    assert attn.compile(text.replace('loc("factor")', 'loc("q")')).manifest["arguments"][3]["name"] == "c0"


def test_results_may_not_overlap(kernel):
    wrong = numpy.lib.stride_tricks.as_strided(
        numpy.zeros(16, numpy.float32), (1, 2, 5, 16), (0, 0, 0, 4))
    refused(kernel, arguments(o=wrong), "('o')", "may not overlap")


def test_device(kernel):
    class OnDevice:
        __cuda_array_interface__ = {
            "shape": (1, 2, 7, 16),
            "typestr": "<f4",
            "data": (4096, False),
            "strides": None,
            "version": 3,
        }

    refused(kernel, arguments(k=OnDevice()), "argument 'k'", "on cpu, got one on cuda")


def test_not_a_tensor(kernel):
    refused(kernel, arguments(q=3), "argument 'q'", "wanted a torch tensor", "got int")


def test_malformed_text():
    with pytest.raises(attn.AttnError, match=r"1:1: error: "):
        attn.compile("nonsense", target="cpu")


def test_unknown_target():
    with pytest.raises(attn.AttnError, match="sm_12345"):
        attn.compile(attn.attention("bf16", 64), target="sm_12345")


def test_malformed_plan():
    with pytest.raises(attn.AttnError):
        attn.compile(attn.attention("f32", 64), target="cpu", plan="#attn.plan<nothing>")


def test_not_an_artifact():
    with pytest.raises(attn.AttnError, match="not an attn artifact"):
        attn.Artifact.load(b"ELF")


def test_version():
    assert attn.version().count(".") == 2
