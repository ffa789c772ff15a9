#===----------------------------------------------------------------------===#
#
# Part of attn, an attention compiler.
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===----------------------------------------------------------------------===#
"""Where tensors of PyTorch, NumPy and others lie, without importing these."""

import collections
import ctypes
import functools
import sys

from . import elements
from ._capi import AttnError

# `element` in NumPy's and PyTorch's words; `index` is the number of the GPU, where
# the tensor says it.
View = collections.namedtuple(
    "View", "address sizes strides element device index is_read_only")

_ORDERS = ("|", {"little": "<", "big": ">"}[sys.byteorder])
_KINDS = {"f": "float", "i": "int", "u": "uint", "c": "complex"}
_NONE = object()
# NumPy has no bf16: the bits travel as 16-bit integers, or as ml_dtypes has them.
_STAND_INS = {"bf16": ("int16", "uint16", "void16")}


# How C reads tensors of PyTorch: their exact types, and the address of their
# DLPackExchangeAPI.
Exchange = collections.namedtuple("Exchange", "kinds address is_grad_enabled")
_exchange = None, None  # the module, and what was found in it


def exchange():
    """PyTorch's; None where it is not loaded, or too old."""
    global _exchange
    module, found = _exchange
    torch = sys.modules.get("torch")
    if torch is not module or found is None:
        found = _find_exchange(torch)
        _exchange = torch, found
    return found


def _find_exchange(torch):
    tensor = getattr(torch, "Tensor", None)
    capsule = getattr(tensor, "__dlpack_c_exchange_api__", None)
    parameter = getattr(getattr(torch, "nn", None), "Parameter", None)
    if capsule is None or parameter is None or not hasattr(ctypes, "pythonapi"):
        return None
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    return Exchange((tensor, parameter), pointer(capsule, b"dlpack_exchange_api"), torch.is_grad_enabled)


def stream_reader(device):
    """A function that gives the handle of PyTorch's current stream on a CUDA device."""
    torch = sys.modules["torch"]
    handle = getattr(torch._C, "_cuda_getCurrentRawStream", None)
    if handle is None or device.index is None:
        return lambda: torch.cuda.current_stream(device).cuda_stream
    return functools.partial(handle, device.index)


def current_stream(device):
    """The handle of PyTorch's current stream on a CUDA device."""
    return stream_reader(device)()


def is_torch(value):
    return hasattr(value, "data_ptr") and hasattr(value, "stride")


def gpu(values):
    """The number of the GPU of the first tensor of PyTorch on one, -1 where there is
    none, or it has no number."""
    for value in values:
        if is_torch(value) and value.is_cuda:
            index = value.device.index
            return -1 if index is None else index
    return -1


def lies_on_cpu(value):
    """Whether this is a tensor of PyTorch on the CPU, or an array of NumPy."""
    return not value.is_cuda if is_torch(value) else hasattr(value, "__array_interface__")


def view(value):
    if is_torch(value):
        return _view_torch(value)
    numpy = sys.modules.get("numpy")
    if numpy is not None and isinstance(value, numpy.generic):
        raise AttnError(f"wanted a tensor, got the number {value}")
    interface = getattr(value, "__cuda_array_interface__", _NONE)
    if interface is not _NONE:
        return _view_interface(interface, "cuda")
    interface = getattr(value, "__array_interface__", _NONE)
    if interface is not _NONE:
        if hasattr(value, "mask") and hasattr(value, "fill_value"):
            raise AttnError("wanted a plain array, got a masked one: its mask would be "
                            "ignored, pass .filled(...)")
        return _view_interface(interface, "cpu")
    hint = ""
    if hasattr(value, "__dlpack__"):
        hint = " (torch.from_dlpack or numpy.from_dlpack makes a view of it)"
    raise AttnError(
        f"wanted a torch tensor, a NumPy array or an object with "
        f"__cuda_array_interface__, got {type(value).__name__}{hint}"
    )


def _view_torch(tensor):
    if getattr(tensor, "requires_grad", False) and _records_gradients():
        raise AttnError(
            "requires gradients, and there is no backward pass yet: pass .detach(), or "
            "launch under torch.no_grad()"
        )
    layout = str(getattr(tensor, "layout", "torch.strided"))
    if layout != "torch.strided":
        raise AttnError(f"wanted a strided tensor, got one of layout {layout}")
    if hasattr(tensor, "is_neg") and tensor.is_neg():
        raise AttnError("its sign is not in memory (is_neg()): pass .resolve_neg()")
    device = "cuda" if tensor.is_cuda else tensor.device.type
    return View(
        tensor.data_ptr(),
        list(tensor.shape),
        list(tensor.stride()),
        str(tensor.dtype).removeprefix("torch."),
        device,
        getattr(tensor.device, "index", None) if device == "cuda" else None,
        False,
    )


def _records_gradients():
    torch = sys.modules.get("torch")
    return torch is None or torch.is_grad_enabled()


def _view_interface(interface, device):
    data = interface.get("data")
    if not isinstance(data, tuple) or interface.get("mask") is not None:
        raise AttnError("wanted an array with an address and no mask")
    order, kind, size = interface["typestr"][0], *_kind_and_size(interface["typestr"])
    if order not in _ORDERS:
        raise AttnError(
            f"its elements, {interface['typestr']!r}, have the byte order of another "
            "machine: pass .astype(dtype.newbyteorder('='))"
        )
    shape, strides = list(interface["shape"]), interface.get("strides")
    if strides is None:
        strides, step = [], size
        for length in reversed(shape):
            strides.insert(0, step)
            step *= length
    if any(stride % size for stride in strides):
        raise AttnError("a stride is not a multiple of the element size")
    strides = [stride // size for stride in strides]
    return View(data[0], shape, strides, _name(kind, size), device, None, bool(data[1]))


def _kind_and_size(typestr):
    """('f', 4) of '<f4'."""
    kind, digits = typestr[1], typestr[2:]
    if kind in "bfiucV" and digits.isdigit() and int(digits) > 0:
        return kind, int(digits)
    raise AttnError(
        f"wanted numbers, got an array of {'objects' if kind == 'O' else repr(typestr)}"
    )


def _name(kind, size):
    if kind == "b":
        return "bool"
    return f"{_KINDS.get(kind, 'void')}{8 * size}"


def check_element(got, wanted):
    """That the elements of a view are those of the manifest."""
    name = elements.LONG_NAMES[wanted]
    if got == name or got in _STAND_INS.get(wanted, ()):
        return
    hint = ""
    if got.startswith("uint") and wanted.startswith("i"):
        hint = ": they would be read with a sign, convert them or capture wider ones"
    elif wanted == "bf16":
        hint = " (NumPy, which has none, passes their bits as uint16)"
    raise AttnError(f"wanted elements of {elements.both_names(wanted)}, got {got}{hint}")
