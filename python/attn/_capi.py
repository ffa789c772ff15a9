#===----------------------------------------------------------------------===#
#
# Part of attn, an attention compiler.
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===----------------------------------------------------------------------===#
"""attn-c/attn.h in ctypes: the only file that knows C."""

import ctypes
import pathlib
from ctypes import c_char_p, c_int, c_int32, c_int64, c_size_t, c_void_p

API_VERSION = 7  # that all functions but those of _SINCE need


class AttnError(RuntimeError):
    """What the compiler or the runtime refused, in its words."""


class LaunchSizes(ctypes.Structure):
    _fields_ = [
        ("struct_size", c_size_t),
        ("query_length", c_int64),
        ("key_length", c_int64),
        ("batch_heads", c_int64),
        ("multiprocessors", c_int64),
        ("batch_key_heads", c_int64),
    ]


class CompileOptions(ctypes.Structure):
    _fields_ = [
        ("struct_size", c_size_t),
        ("target", c_char_p),
        ("plan", c_char_p),
        ("cache_directory", c_char_p),
        ("ptxas", c_char_p),
        ("disabled_passes", c_char_p),
        ("enabled_passes", c_char_p),
        ("results_file", c_char_p),
        ("cpu", c_char_p),
        ("gpu", c_char_p),
        ("functions", c_int32),
        ("lse_gradient", c_int32),
        ("no_capture_gradients", c_int32),
        ("backward_plan", c_char_p),
        ("sizes", ctypes.POINTER(LaunchSizes)),  # since API version 11
    ]


class Tensor(ctypes.Structure):
    _fields_ = [
        ("data", c_void_p),
        ("rank", c_int64),
        ("sizes", ctypes.POINTER(c_int64)),
        ("strides", ctypes.POINTER(c_int64)),
    ]


class Value(ctypes.Union):
    _fields_ = [("tensor", Tensor), ("integer", c_int64), ("real", ctypes.c_double)]


class Argument(ctypes.Structure):
    _fields_ = [("kind", c_int32), ("value", Value)]


class Python(ctypes.Structure):
    FUNCTIONS = ("PyTuple_Size", "PyTuple_GetItem", "PyObject_Type", "PyObject_GetAttr",
                 "PyObject_CallMethodObjArgs", "Py_DecRef", "PyLong_AsLongLongAndOverflow",
                 "PyFloat_AsDouble", "PyEval_SaveThread", "PyEval_RestoreThread")
    _fields_ = [
        ("struct_size", c_size_t),
        ("functions", c_void_p * len(FUNCTIONS)),
        ("objects", c_void_p * 8),
        ("exchange", c_void_p),
        ("device_type", c_int32),
        ("device", c_int32),
    ]


TENSOR, INTEGER, REAL = 0, 1, 2
FORWARD, BACKWARD, BOTH, JVP = 0, 1, 2, 3

# name: (result, arguments)
_FUNCTIONS = {
    "attnGetApiVersion": (c_int, []),
    "attnGetVersion": (c_char_p, []),
    "attnErrorMessage": (c_char_p, []),
    "attnCompile": (
        c_void_p,
        [c_char_p, c_size_t, ctypes.POINTER(CompileOptions)],
    ),
    "attnCompileForCPU": (
        c_void_p,
        [c_char_p, c_size_t, ctypes.POINTER(CompileOptions)],
    ),
    "attnRaise": (c_void_p, [c_char_p, c_size_t]),
    "attnRaisedDestroy": (None, [c_void_p]),
    "attnRaisedGetText": (c_char_p, [c_void_p]),
    "attnRaisedGetLog": (c_char_p, [c_void_p]),
    "attnRaisedGetCount": (c_int, [c_void_p]),
    "attnArtifactParse": (c_void_p, [c_char_p, c_size_t]),
    "attnArtifactDestroy": (None, [c_void_p]),
    "attnArtifactGetBytes": (c_void_p, [c_void_p, ctypes.POINTER(c_size_t)]),
    "attnArtifactGetManifest": (c_char_p, [c_void_p]),
    "attnArtifactGetPTX": (c_char_p, [c_void_p]),
    "attnArtifactGetCubin": (c_void_p, [c_void_p, ctypes.POINTER(c_size_t)]),
    "attnArtifactGetLog": (c_char_p, [c_void_p]),
    "attnArtifactIsFromCache": (c_int, [c_void_p]),
    "attnArtifactGetFunctionCount": (c_int, [c_void_p]),
    "attnArtifactGetName": (c_char_p, [c_void_p, c_int]),
    "attnArtifactCopyFunction": (c_void_p, [c_void_p, c_int]),
    "attnLoad": (c_void_p, [c_void_p, c_int]),
    "attnLoadVariant": (c_void_p, [c_void_p, c_int, c_int]),
    "attnKernelDestroy": (None, [c_void_p]),
    "attnLaunch": (
        c_int,
        [c_void_p, ctypes.POINTER(Argument), c_size_t, c_void_p],
    ),
    "attnGetWorkspaceBytes": (
        c_int,
        [c_void_p, ctypes.POINTER(Argument), c_size_t, ctypes.POINTER(c_size_t)],
    ),
    "attnLaunchWithWorkspace": (
        c_int,
        [c_void_p, ctypes.POINTER(Argument), c_size_t, c_void_p, c_size_t, c_void_p],
    ),
    "attnViewObjects": (
        c_int,
        [c_void_p, c_void_p, c_void_p, c_size_t, c_int, c_int, ctypes.POINTER(Argument),
         ctypes.POINTER(c_int64), c_size_t],
    ),
    "attnLaunchObjects": (
        c_int,
        [c_void_p, c_void_p, ctypes.py_object, c_int, c_void_p],
    ),
    "attnDescribeLaunch": (
        c_int,
        [c_void_p, ctypes.POINTER(Argument), c_size_t, ctypes.POINTER(c_char_p)],
    ),
    "attnChooseVariant": (
        c_int,
        [c_void_p, ctypes.POINTER(Argument), c_size_t, ctypes.POINTER(c_int),
         ctypes.POINTER(c_char_p)],
    ),
    "attnKernelGetRelayouts": (c_int64, [c_void_p]),
    "attnSynchronize": (c_int, [c_void_p]),
    "attnKernelGetManifest": (c_char_p, [c_void_p]),
    "attnKernelGetLog": (c_char_p, [c_void_p]),
    "attnKernelGetRegisters": (c_int, [c_void_p]),
    "attnKernelGetLocalBytes": (c_int, [c_void_p]),
}

# Those that the runtime alone, libattn-runtime.so, does not have.
_COMPILER = ("attnCompile", "attnCompileForCPU")
# Those that came with a later API version.
_SINCE = {
    name: 8
    for name in ("attnRaise", "attnRaisedDestroy", "attnRaisedGetText", "attnRaisedGetLog",
                 "attnRaisedGetCount")
}
_SINCE["attnViewObjects"] = 9
_SINCE["attnLaunchObjects"] = 12
# Those that call Python's functions: they begin with its lock.
_LOCKED = ("attnViewObjects", "attnLaunchObjects")

_library = None
_path = None


def use_library(path):
    """Take libattn.so from `path`, or libattn-runtime.so, which loads and
    launches but does not compile; to be called before anything else."""
    global _path
    if _library is not None and str(path) != _path:
        raise AttnError(f"libattn.so was already loaded from {_path}")
    _path = str(path)


def _open():
    names = [_path] if _path else []
    for library in () if _path else ("libattn", "libattn-runtime"):
        beside = pathlib.Path(__file__).with_name(library + ".so")
        names += [str(beside), library + ".so.0", library + ".so"]
    reasons = []
    for name in names:
        try:
            return name, ctypes.CDLL(name)
        except OSError as error:
            reasons.append(str(error))
    raise AttnError("cannot load libattn.so: " + "; ".join(reasons))


def library():
    """The C library, with the types of its functions declared."""
    global _library, _path
    if _library is not None:
        return _library
    _path, opened = _open()
    locked = ctypes.PyDLL(_path, handle=opened._handle)
    for name, (result, arguments) in _FUNCTIONS.items():
        function = getattr(locked if name in _LOCKED else opened, name, None)
        if function is None and (name in _COMPILER or name in _SINCE):
            continue
        if function is None:
            raise AttnError(f"{_path} has no function {name}")
        function.restype = result
        function.argtypes = arguments
        setattr(opened, name, function)
    if opened.attnGetApiVersion() < API_VERSION:
        raise AttnError(
            f"{_path} has API version {opened.attnGetApiVersion()}, "
            f"wanted {API_VERSION}"
        )
    _library = opened
    return opened


def launchers():
    """(attnLaunch, attnLaunchWithWorkspace) that convert nothing, which is half of the
    time of a call: every argument is what `pointer` or `size` made, or None."""
    if not _LAUNCHERS:
        opened = library()
        for name in ("attnLaunch", "attnLaunchWithWorkspace"):
            function = opened[name]  # another object than opened.attnLaunch
            function.restype = c_int
            _LAUNCHERS.append(function)
    return _LAUNCHERS


_LAUNCHERS = []
# Arguments in the form that ctypes passes on as they are.
pointer, size = c_void_p.from_param, c_size_t.from_param


def compiler(function=_COMPILER[0]):
    """The same, if it can compile and has that function."""
    opened = library()
    if not hasattr(opened, _COMPILER[0]):
        raise AttnError(
            f"{_path} holds the runtime alone and cannot compile: "
            f"attn.use_library wants libattn.so for that"
        )
    if not hasattr(opened, function):
        raise AttnError(
            f"{_path} has API version {opened.attnGetApiVersion()}, "
            f"{function} wants {_SINCE[function]}"
        )
    return opened


def version():
    return library().attnGetVersion().decode()


def error():
    """The last failure of this thread as an exception."""
    return AttnError(library().attnErrorMessage().decode(errors="replace"))


def string(function, handle):
    return function(handle).decode(errors="replace")


def data(function, handle):
    size = c_size_t()
    pointer = function(handle, ctypes.byref(size))
    return ctypes.string_at(pointer, size.value) if size.value else b""
