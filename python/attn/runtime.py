#===----------------------------------------------------------------------===#
#
# Part of attn, an attention compiler.
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===----------------------------------------------------------------------===#
"""Artifacts, kernels, and the views of tensors that they are launched with."""

import ctypes
import json
import warnings
import weakref

from . import _capi

# What a tensor of each element type looks like from Python: torch's name, and
# NumPy type strings (of the array interfaces). NumPy has no bf16: the bits
# travel as 16-bit integers.
_ELEMENTS = {
    "f16": ("torch.float16", ["f2"]),
    "bf16": ("torch.bfloat16", ["u2", "i2", "V2"]),
    "f32": ("torch.float32", ["f4"]),
    "f64": ("torch.float64", ["f8"]),
    "i1": ("torch.bool", ["b1"]),
    "i8": ("torch.int8", ["i1", "u1"]),
    "i16": ("torch.int16", ["i2", "u2"]),
    "i32": ("torch.int32", ["i4", "u4"]),
    "i64": ("torch.int64", ["i8", "u8"]),
}


def _is_torch(value):
    return hasattr(value, "data_ptr") and hasattr(value, "stride")


def _view_torch(tensor):
    strides = list(tensor.stride())
    device = "cuda" if tensor.is_cuda else tensor.device.type
    return tensor.data_ptr(), list(tensor.shape), strides, str(tensor.dtype), device


def _view_interface(interface, device):
    shape = list(interface["shape"])
    typestr = interface["typestr"][1:]
    size = int(typestr[1:])
    strides = interface.get("strides")
    if strides is None:
        strides, step = [], size
        for length in reversed(shape):
            strides.insert(0, step)
            step *= length
    if any(stride % size for stride in strides):
        raise _capi.AttnError("a stride is not a multiple of the element size")
    strides = [stride // size for stride in strides]
    return interface["data"][0], shape, strides, typestr, device


def _view(value):
    """(address, sizes, strides in elements, type name, device) of a tensor."""
    if _is_torch(value):
        return _view_torch(value)
    if hasattr(value, "__cuda_array_interface__"):
        return _view_interface(value.__cuda_array_interface__, "cuda")
    if hasattr(value, "__array_interface__"):
        return _view_interface(value.__array_interface__, "cpu")
    raise _capi.AttnError(
        f"wanted a torch tensor, a NumPy array or an object with "
        f"__cuda_array_interface__, got {type(value).__name__}"
    )


def _stream_handle(stream, values):
    if stream is None:
        for value in values:
            if _is_torch(value) and value.is_cuda:
                import torch

                return torch.cuda.current_stream(value.device).cuda_stream
        return None
    for attribute in ("cuda_stream", "ptr"):
        if hasattr(stream, attribute):
            return getattr(stream, attribute)
    return int(stream)


class Kernel:
    """A kernel that can be launched, on a GPU or on the CPU of this process."""

    def __init__(self, handle):
        library = _capi.library()
        self._handle = handle
        self._finalizer = weakref.finalize(self, library.attnKernelDestroy, handle)
        self.manifest = json.loads(
            _capi.string(library.attnKernelGetManifest, handle)
        )
        self._has_warned = False
        self._device = "cpu" if self.manifest["target"] == "cpu" else "cuda"

    @property
    def log(self):
        """What the driver said when it compiled the PTX."""
        return _capi.string(_capi.library().attnKernelGetLog, self._handle)

    @property
    def registers(self):
        return _capi.library().attnKernelGetRegisters(self._handle)

    @property
    def local_bytes(self):
        """Local memory (spills) per thread, in bytes."""
        return _capi.library().attnKernelGetLocalBytes(self._handle)

    def synchronize(self):
        if _capi.library().attnSynchronize(self._handle):
            raise _capi.error()

    def launch(self, *values, stream=None, workspace=None):
        """Runs on the arguments of the source function, then one tensor for
        each of its results. On a GPU: puts the kernel into `stream` (an
        integer handle or a stream of torch or CuPy; None: torch's current one
        for torch tensors, else the default stream) and does not wait. A tensor
        of bytes as `workspace` is used instead of memory from the driver; it
        must have workspace_bytes() bytes. A tensor whose layout the kernel cannot
        take (see describe_launch) is copied: a warning says so, once."""
        arguments = self.prepare(*values)
        handle = None if self._device == "cpu" else _stream_handle(stream, values)
        self.launch_prepared(arguments, handle, workspace)
        if not self._has_warned and self.relayouts:
            self._has_warned = True
            lines = "; ".join(self.describe_launch(*values))
            warnings.warn(
                f"kernel '{self.manifest['name']}': {lines}", stacklevel=2
            )

    @property
    def relayouts(self):
        """How many tensors launches have copied because of their layout."""
        return _capi.library().attnKernelGetRelayouts(self._handle)

    def describe_launch(self, *values):
        """What a launch on these arguments does besides its kernels: a line for
        each tensor that is copied, with the reason."""
        arguments = self.prepare(*values)
        text = ctypes.c_char_p()
        if _capi.library().attnDescribeLaunch(
            self._handle, arguments, len(arguments), text
        ):
            raise _capi.error()
        return text.value.decode(errors="replace").splitlines()

    def workspace_bytes(self, *values):
        """Bytes of memory that a launch on these arguments needs besides them;
        launch takes it from the driver where none is given."""
        arguments = self.prepare(*values)
        size = ctypes.c_size_t()
        if _capi.library().attnGetWorkspaceBytes(
            self._handle, arguments, len(arguments), size
        ):
            raise _capi.error()
        return size.value

    def prepare(self, *values):
        """The arguments in the form that launch_prepared takes: for timing,
        and for launching again and again. The tensors must stay alive."""
        infos = self.manifest["arguments"]
        if len(values) != len(infos):
            names = ", ".join(info["name"] for info in infos)
            raise _capi.AttnError(
                f"kernel '{self.manifest['name']}' takes {len(infos)} arguments "
                f"(results included: {names}), got {len(values)}"
            )
        arguments = (_capi.Argument * len(values))()
        arguments.kept = []  # what the C structures point to
        for argument, info, value in zip(arguments, infos, values):
            try:
                arguments.kept.append(self._fill(argument, info, value))
            except _capi.AttnError as error:
                raise _capi.AttnError(
                    f"argument '{info['name']}': {error}"
                ) from None
        return arguments

    def launch_prepared(self, arguments, stream=None, workspace=None):
        if workspace is None:
            failed = _capi.library().attnLaunch(
                self._handle, arguments, len(arguments), stream
            )
        else:
            address, count = self._memory(workspace)
            failed = _capi.library().attnLaunchWithWorkspace(
                self._handle, arguments, len(arguments), address, count, stream
            )
        if failed:
            raise _capi.error()

    def _memory(self, workspace):
        """(address, bytes) of a contiguous tensor of one-byte elements."""
        address, sizes, strides, element, device = _view(workspace)
        if len(sizes) != 1 or strides != [1] or element not in ("torch.uint8", "u1"):
            raise _capi.AttnError(
                "workspace: wanted a contiguous tensor of bytes (uint8) of rank 1"
            )
        if device != self._device:
            raise _capi.AttnError(
                f"workspace: wanted a tensor on {self._device}, got one on {device}"
            )
        return address, sizes[0]

    def _fill(self, argument, info, value):
        if not info["tensor"]:
            return self._fill_scalar(argument, value)
        address, sizes, strides, element, device = _view(value)
        torch_name, numpy_names = _ELEMENTS[info["element"]]
        if element != torch_name and element not in numpy_names:
            raise _capi.AttnError(
                f"wanted elements of {info['element']}, got {element}"
            )
        if device != self._device:
            raise _capi.AttnError(
                f"wanted a tensor on {self._device}, got one on {device}"
            )
        array = ctypes.c_int64 * len(sizes)
        kept = array(*sizes), array(*strides)
        argument.kind = _capi.TENSOR
        argument.value.tensor = _capi.Tensor(address or None, len(sizes), *kept)
        return kept

    @staticmethod
    def _fill_scalar(argument, value):
        if hasattr(value, "item"):
            value = value.item()
        if isinstance(value, (bool, int)):
            if not -(2**63) <= value < 2**63:
                raise _capi.AttnError(f"{value} does not fit 64 bits")
            argument.kind = _capi.INTEGER
            argument.value.integer = int(value)
        elif isinstance(value, float):
            argument.kind = _capi.REAL
            argument.value.real = value
        else:
            raise _capi.AttnError(f"wanted a number, got {type(value).__name__}")


class Artifact:
    """A compiled kernel as data: bytes that any process can load."""

    def __init__(self, handle):
        library = _capi.library()
        self._handle = handle
        self._finalizer = weakref.finalize(
            self, library.attnArtifactDestroy, handle
        )
        self.manifest = json.loads(
            _capi.string(library.attnArtifactGetManifest, handle)
        )
        self._kernel = None

    @staticmethod
    def load(data):
        """An artifact from the bytes of an artifact file."""
        handle = _capi.library().attnArtifactParse(bytes(data), len(data))
        if not handle:
            raise _capi.error()
        return Artifact(handle)

    @property
    def bytes(self):
        """The bytes of an artifact file."""
        return _capi.data(_capi.library().attnArtifactGetBytes, self._handle)

    @property
    def ptx(self):
        return _capi.string(_capi.library().attnArtifactGetPTX, self._handle)

    @property
    def cubin(self):
        return _capi.data(_capi.library().attnArtifactGetCubin, self._handle)

    @property
    def log(self):
        """Warnings and remarks of the compilation."""
        return _capi.string(_capi.library().attnArtifactGetLog, self._handle)

    @property
    def from_cache(self):
        return bool(_capi.library().attnArtifactIsFromCache(self._handle))

    def on_device(self, device=-1):
        """The kernel, loaded onto GPU number `device` (-1: the current one)."""
        handle = _capi.library().attnLoad(self._handle, device)
        if not handle:
            raise _capi.error()
        return Kernel(handle)

    def launch(self, *values, stream=None):
        """Kernel.launch on the current GPU; loads there the first time."""
        if self._kernel is None:
            self._kernel = self.on_device()
        self._kernel.launch(*values, stream=stream)
