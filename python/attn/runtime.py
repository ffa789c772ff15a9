#===----------------------------------------------------------------------===#
#
# Part of attn, an attention compiler.
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===----------------------------------------------------------------------===#
"""Artifacts and kernels: what the compiler made, and launches of it."""

import ctypes
import json
import struct
import warnings
import weakref

from . import _capi, debug, elements, plain, views
from .elements import WIDTHS


def _stream_handle(stream, values):
    if stream is None:
        for value in values:
            if views.is_torch(value) and value.is_cuda:
                return views.current_stream(value.device)
        return None
    for attribute in ("cuda_stream", "ptr"):
        if hasattr(stream, attribute):
            return getattr(stream, attribute)
    return int(stream)


_pointer = _capi.pointer
# Argument, where it holds a tensor.
_pack_tensor = struct.Struct("@iPqPP").pack_into


class _Owner:
    """Owns a handle of the C library. What it stands for never changes, so copies
    are the object itself; pickling makes another one."""

    def __init__(self, handle, destroy):
        self._handle = handle
        # Not at exit: threads and exit handlers may still use it, and the process
        # gives everything back.
        weakref.finalize(self, destroy, handle).atexit = False

    def __copy__(self):
        return self

    def __deepcopy__(self, memo):
        return self

    def __repr__(self):
        return f"<attn.{type(self).__name__} '{self.manifest['name']}' for {self.manifest['target']}>"


class _Functions:
    """What holds a function, and others that come with it. `manifest` is the
    function's, `companions()` are the others."""

    @property
    def functions(self):
        """The names of the functions: the first is the one that launch() runs."""
        return [self.manifest["name"], *(one.manifest["name"] for one in self.companions())]

    def function(self, name):
        """The one of that name."""
        for one in (self, *self.companions()):
            if one.manifest["name"] == name:
                return one
        raise _capi.AttnError(
            f"no function is called {name!r}{elements.nearest(name, self.functions)}: "
            f"there is {elements.listed(self.functions)}"
        )

    @property
    def backward(self):
        """The function with the gradients (compile(..., with_backward=True))."""
        for one in (self, *self.companions()):
            if one.gives_gradients:
                return one
        raise _capi.AttnError(
            f"there are no gradients of '{self.manifest['name']}': compile(..., with_backward=True) "
            "makes them"
        )


def _gives_gradients(infos):
    return any("d_output" in info["roles"] for info in infos)


class Kernel(_Owner, _Functions):
    """A kernel that can be launched, on a GPU or on the CPU of this process.

    copy.copy and copy.deepcopy return the kernel itself. A pickled one is loaded
    onto the GPU of the same number, or compiled again for the CPU it comes to."""

    def __init__(self, handle, device=-1):
        library = _capi.library()
        super().__init__(handle, library.attnKernelDestroy)
        self.manifest = json.loads(
            _capi.string(library.attnKernelGetManifest, handle)
        )
        infos = self.manifest["arguments"]
        self.gives_gradients = _gives_gradients(infos)
        self._are_tensors = [info["tensor"] for info in infos]
        self._scalars = [(number, info) for number, info in enumerate(infos) if not info["tensor"]]
        self._Arguments = _capi.Argument * len(infos)
        self._Shapes = ctypes.c_int64 * (2 * sum(len(info["shape"]) for info in infos))
        self._addresses = struct.Struct(f"{len(infos)}P").pack
        self._view_objects = getattr(library, "attnViewObjects", None)
        self._plain = plain.Launches(handle, infos)
        self._attn_launch, self._attn_launch_with_workspace = _capi.launchers()
        self._pointer, self._count = _capi.pointer(handle), _capi.size(len(infos))
        self._has_warned = False
        self._device = "cpu" if self.manifest["target"] == "cpu" else "cuda"
        self._index = device
        self._origin = None
        self.debugged = None  # the program whose promises launch() checks
        self._companions = []

    def add_companion(self, kernel):
        """A kernel that comes with this one: its gradients."""
        self._companions.append(kernel)

    def companions(self):
        return self._companions

    def set_origin(self, function, *arguments):
        """What makes this kernel again, where it is unpickled."""
        self._origin = function, arguments

    def __reduce__(self):
        if self._origin is None:
            raise TypeError("cannot pickle this kernel: it does not know what it was made of")
        if not self._companions:
            return self._origin
        return *self._origin, {"_companions": self._companions}

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
        if workspace is None and self.debugged is None:
            handle = None if stream is None or self._device == "cpu" else _stream_handle(stream, values)
            done = self._plain.launch(values, handle, self._device, self._index)
            if done == plain.LAUNCHED:
                return
            if done == plain.FAILED:
                raise _capi.error()
            if done == plain.NOT_PLAIN:
                self._launch_any(values, stream, None)
        else:
            self._launch_any(values, stream, workspace)
        if not self._has_warned and self.relayouts:
            self._has_warned = True
            lines = "; ".join(self.describe_launch(*values))
            warnings.warn(
                f"kernel '{self.manifest['name']}': {lines}", stacklevel=2
            )

    def _launch_any(self, values, stream, workspace):
        """launch() of whatever can be."""
        arguments = self.prepare(*values)
        if self.debugged is not None:
            self.describe_launch(*values)  # what is wrong with sizes comes first
            debug.check(self.debugged, self.manifest["arguments"], values)
        handle = None if self._device == "cpu" else _stream_handle(stream, values)
        self.launch_prepared(arguments, handle, workspace)

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

    def choose_variant(self, *values):
        """(number, reason): which of manifest["variants"] a launch on these
        arguments runs, and why; the reason is "" where there is no choice."""
        arguments = self.prepare(*values)
        number, reason = ctypes.c_int(), ctypes.c_char_p()
        if _capi.library().attnChooseVariant(
            self._handle, arguments, len(arguments), number, reason
        ):
            raise _capi.error()
        return number.value, reason.value.decode(errors="replace")

    def workspace_bytes(self, *values):
        """Bytes of memory that a launch on these arguments needs besides them;
        launch takes it from the driver where none is given."""
        return self.prepared_workspace_bytes(self.prepare(*values))

    def prepared_workspace_bytes(self, arguments):
        """The same for arguments that prepare() made."""
        size = ctypes.c_size_t()
        if _capi.library().attnGetWorkspaceBytes(
            self._handle, arguments, len(arguments), size
        ):
            raise _capi.error()
        return size.value

    def prepare(self, *values):
        """The arguments in the form that launch_prepared takes: for timing,
        and for launching again and again. They keep the tensors alive."""
        arguments = self._prepare_at_once(values)
        if arguments is not None:
            return arguments
        infos = self.manifest["arguments"]
        if len(values) != len(infos):
            names = ", ".join(info["name"] for info in infos)
            raise _capi.AttnError(
                f"kernel '{self.manifest['name']}' takes {len(infos)} arguments "
                f"(results included: {names}), got {len(values)}"
            )
        arguments = self._new_arguments()
        arguments.kept = [values]  # and what the C structures point to
        for argument, info, value in zip(arguments, infos, values):
            try:
                arguments.kept.append(self._fill(argument, info, value))
            except _capi.AttnError as error:
                raise _capi.AttnError(
                    f"argument '{info['name']}': {error}"
                ) from None
        return arguments

    def _new_arguments(self):
        arguments = self._Arguments()
        arguments.packed = _capi.pointer(ctypes.addressof(arguments)), self._count
        return arguments

    def _prepare_at_once(self, values):
        """prepare() in one call of C, for plain tensors of PyTorch in which nothing
        is wrong; None for others: who looks at each says what is."""
        exchange = views.exchange()
        if exchange is None or self._view_objects is None or len(values) != len(self._are_tensors):
            return None
        kinds = exchange.kinds
        for value, is_tensor in zip(values, self._are_tensors):
            if is_tensor and (type(value) not in kinds or value.is_neg()
                              or (value.requires_grad and exchange.is_grad_enabled())):
                return None
        arguments, shapes = self._new_arguments(), self._Shapes()
        arguments.kept = values, shapes
        try:
            for number, info in self._scalars:
                self._fill_scalar(arguments[number], info, values[number])
            failed = self._view_objects(
                self._handle, exchange.address, self._addresses(*map(id, values)), len(values),
                1 if self._device == "cpu" else 2, self._index if self._device == "cuda" else -1,
                arguments, shapes, len(shapes))
        except Exception:  # of PyTorch, or about a scalar
            return None
        return None if failed else arguments

    def launch_prepared(self, arguments, stream=None, workspace=None):
        """launch() of what prepare() made; `stream` is a handle, None: the default
        stream."""
        place, count = arguments.packed
        if stream is not None:
            stream = _pointer(stream)
        if workspace is None:
            failed = self._attn_launch(self._pointer, place, count, stream)
        else:
            address, size = self._memory(workspace)
            failed = self._attn_launch_with_workspace(
                self._pointer, place, count, _pointer(address), _capi.size(size), stream
            )
        if failed:
            raise _capi.error()

    def _memory(self, workspace):
        """(address, bytes) of a contiguous tensor of one-byte elements."""
        try:
            view = self._view(workspace)
        except _capi.AttnError as error:
            raise _capi.AttnError(f"workspace: {error}") from None
        if len(view.sizes) != 1 or view.strides != [1] or view.element != "uint8":
            raise _capi.AttnError(
                "workspace: wanted a contiguous tensor of bytes (uint8) of rank 1"
            )
        if view.is_read_only:
            raise _capi.AttnError("workspace: wanted memory to write to, got a read-only array")
        return view.address, view.sizes[0]

    def _view(self, value):
        """The view of a tensor that lies where the kernel runs."""
        view = views.view(value)
        if view.device != self._device:
            raise _capi.AttnError(
                f"wanted a tensor on {self._device}, got one on {view.device}"
            )
        if view.index is not None and self._index not in (-1, view.index):
            raise _capi.AttnError(
                f"wanted a tensor on cuda:{self._index}, got one on cuda:{view.index}"
            )
        return view

    def _fill(self, argument, info, value):
        if not info["tensor"]:
            return self._fill_scalar(argument, info, value)
        view = self._view(value)
        views.check_element(view.element, info["element"])
        if info["output"] and view.is_read_only:
            raise _capi.AttnError(
                "is a result: wanted memory to write to, got a read-only array"
            )
        rank = len(view.sizes)
        shape = (ctypes.c_int64 * (2 * rank))(*view.sizes, *view.strides)
        place = ctypes.addressof(shape)
        _pack_tensor(argument, 0, _capi.TENSOR, view.address, rank, place, place + 8 * rank)
        return shape

    @staticmethod
    def _fill_scalar(argument, info, value):
        if hasattr(value, "item"):
            if any(size != 1 for size in getattr(value, "shape", ())):
                raise _capi.AttnError(
                    f"wanted a number, got a tensor of shape {tuple(value.shape)}"
                )
            value = value.item()
        if isinstance(value, (bool, int)):
            # Signless in a kernel; regions read them with a sign.
            bits = WIDTHS[info["element"]] if info["element"][0] == "i" else 64
            is_key = info["name"] in ("seed", "offset")
            if not -(2**63) <= value < 2**63 or (bits > 1 and not is_key and value >= 2 ** (bits - 1)):
                raise _capi.AttnError(f"{value} does not fit i{bits}")
            argument.kind = _capi.INTEGER
            argument.value.integer = int(value)
        elif isinstance(value, float):
            argument.kind = _capi.REAL
            argument.value.real = value
        else:
            raise _capi.AttnError(f"wanted a number, got {type(value).__name__}")


class Artifact(_Owner, _Functions):
    """A compiled kernel as data: bytes that any process can load.

    copy.copy and copy.deepcopy return the artifact itself; pickling keeps its bytes
    (and neither its log nor whether it came from the cache)."""

    def __init__(self, handle):
        library = _capi.library()
        super().__init__(handle, library.attnArtifactDestroy)
        self.manifest = json.loads(
            _capi.string(library.attnArtifactGetManifest, handle)
        )
        self.gives_gradients = _gives_gradients(self.manifest["arguments"])
        self._kernels = {}  # by number of the GPU
        self._companions = None  # made when they are asked for
        self.debugged = None  # for its kernels

    def __reduce__(self):
        return Artifact.load, (self.bytes,), {"debugged": self.debugged}

    def companions(self):
        if self._companions is None:
            library = _capi.library()
            handles = [library.attnArtifactCopyFunction(self._handle, number)
                       for number in range(1, library.attnArtifactGetFunctionCount(self._handle))]
            self._companions = [Artifact(handle) for handle in handles]
            for companion in self._companions:
                companion.debugged = self.debugged
        return self._companions

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

    def on_device(self, device=-1, variant=None):
        """The kernel, loaded onto GPU number `device` (-1: the current one). With
        `variant` every launch runs that one, whatever the rule of the artifact."""
        library = _capi.library()
        handle = (library.attnLoad(self._handle, device) if variant is None
                  else library.attnLoadVariant(self._handle, device, variant))
        if not handle:
            raise _capi.error()
        kernel = Kernel(handle, device)
        kernel.set_origin(_on_device, self, device, variant)
        kernel.debugged = self.debugged
        return kernel

    def launch(self, *values, stream=None):
        """Kernel.launch on the GPU of the first torch tensor, else on the current
        one; loads there the first time."""
        device = views.gpu(values)
        if device not in self._kernels:
            try:
                self._kernels[device] = self.on_device(device)
            except _capi.AttnError as error:
                if not any(map(views.lies_on_cpu, values)):
                    raise
                raise _capi.AttnError(f"{error}: this artifact is for a GPU ({self.manifest['target']}), "
                                      'tensors on the CPU want compile(text, target="cpu")') from None
        self._kernels[device].launch(*values, stream=stream)


def _on_device(artifact, device, variant=None):
    return artifact.on_device(device, variant)
