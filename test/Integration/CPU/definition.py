#===----------------------------------------------------------------------===#
#
# Part of attn, an attention compiler.
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===----------------------------------------------------------------------===#
"""Functions of a program with attention, as their definition computes them.

attn-opt lowers a module by attn-oracle, LLVM makes a library of it, ctypes calls
that. Arrays of NumPy go in; what a function returns are arguments at the end.
"""

import argparse
import ctypes
import pathlib
import subprocess

import numpy


def parse_options(description):
    """What a test of programs takes."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--bin", required=True, help="where attn-opt is")
    parser.add_argument("--cc", default="cc")
    parser.add_argument("--mlir-lib", required=True)
    parser.add_argument("--work", required=True)
    parser.add_argument("--only", help="a part of the names of cases")
    return parser.parse_args()


def call_tool(command, text):
    result = subprocess.run(command, input=text, capture_output=True)
    if result.returncode:
        raise RuntimeError(f"{command[0]} failed:\n{result.stderr.decode()[:4000]}")
    return result.stdout


def describe(array):
    """The memref descriptor of an array."""
    rank = array.ndim

    class Descriptor(ctypes.Structure):
        _fields_ = [
            ("allocated", ctypes.c_void_p),
            ("aligned", ctypes.c_void_p),
            ("offset", ctypes.c_int64),
            ("sizes", ctypes.c_int64 * max(rank, 1)),
            ("strides", ctypes.c_int64 * max(rank, 1)),
        ][: 5 if rank else 3]

    descriptor = Descriptor(array.ctypes.data, array.ctypes.data, 0)
    for dim in range(rank):
        descriptor.sizes[dim] = array.shape[dim]
        descriptor.strides[dim] = array.strides[dim] // array.itemsize
    return descriptor


def as_argument(value):
    if isinstance(value, numpy.ndarray):
        return ctypes.byref(describe(value))
    return ctypes.c_int32(value) if isinstance(value, int) else ctypes.c_float(value)


class Program:
    """The functions of cases, which have llvm.emit_c_interface."""

    def __init__(self, cases, options, passes, name):
        self.names = {case.name for case in cases}
        text = "\n".join(case.text() for case in cases)
        work = pathlib.Path(options.work)
        work.mkdir(parents=True, exist_ok=True)
        lowered = call_tool([f"{options.bin}/attn-opt", *passes, "-"], text.encode())
        llvm = call_tool([f"{options.mlir_lib}/../bin/mlir-translate", "--mlir-to-llvmir"], lowered)
        object_file, library = work / f"{name}.o", work / f"{name}.so"
        call_tool([f"{options.mlir_lib}/../bin/llc", "-O0", "-relocation-model=pic", "-filetype=obj", "-o", str(object_file)], llvm)
        call_tool(
            [options.cc, "-shared", "-o", str(library), str(object_file), "-lm",
             f"-L{options.mlir_lib}", "-lmlir_c_runner_utils", f"-Wl,-rpath,{options.mlir_lib}"], b"")
        self.library = ctypes.CDLL(str(library))

    def call(self, name, inputs, results):
        """Fills the arrays `results`, which start as NaN."""
        for result in results:
            result.fill(numpy.nan)
        function = getattr(self.library, f"_mlir_ciface_{name}")
        function.restype = None
        function(*[as_argument(value) for value in [*inputs, *results]])
        return results
