#!/usr/bin/env python3
#===----------------------------------------------------------------------===#
#
# Part of attn, an attention compiler.
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===----------------------------------------------------------------------===#
"""Ten small cases under compute-sanitizer: memcheck, racecheck and initcheck.

    sanitize.py --lib build/lib/libattn.so [--sanitizer PATH] [--tools memcheck]
    sanitize.py --lib ... --child            the cases alone, unsupervised

Only the driver, libattn.so and NumPy are used, so that what the sanitizer sees
is the kernels of the cases. Inputs are exact allocations: a byte beyond one is
an error of memcheck. The results are compared with float64 as well. Exit code
0: clean; 1: not; 77: no GPU or no compute-sanitizer.
"""

import argparse
import ctypes
import os
import pathlib
import re
import shutil
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
sys.path.insert(0, str(HERE.parents[2] / "python"))

from cases import Case  # noqa: E402
from gpu import SKIP  # noqa: E402


def cases():
    """Small ones: every feature, both types, tails in all dimensions."""

    def case(index, **changes):
        fields = dict(
            index=index,
            seed=0,
            element=["bf16", "f16"][index % 2],
            head_dim=64,
            value_dim=64,
            batch=1,
            kv_heads=1,
            group=1,
            queries=130,
            keys=150,
            layouts=("bhsd",) * 4,
            padding=((0, 0),) * 4,
        )
        fields.update(changes)
        return Case(**fields)

    return [
        case(0),
        case(1, head_dim=128, value_dim=128, causal="bottom_right"),
        case(2, head_dim=40, value_dim=40, queries=1, keys=1),
        case(3, head_dim=80, value_dim=96, kv_heads=1, group=4, queries=65),
        case(4, head_dim=256, value_dim=256, queries=33, keys=257),
        case(5, causal="bottom_right", queries=200, keys=77),
        case(6, window=(20, 10, "bottom_right"), queries=190, keys=190),
        case(7, softcap=30.0, alibi="bottom_right", kv_heads=2, group=2),
        case(8, bias="hij", head_dim=96, value_dim=96, batch=2),
        case(9, documents=True, head_dim=192, value_dim=192, keys=300),
    ]


# ---------------------------------------------------------------------------
# The child
# ---------------------------------------------------------------------------


class Device:
    """As much of the driver as this file needs."""

    def __init__(self):
        try:
            self.cuda = ctypes.CDLL("libcuda.so.1")
        except OSError:
            raise SystemExit(SKIP) from None
        self.call("cuInit", 0)
        context, device = ctypes.c_void_p(), ctypes.c_int()
        self.call("cuDeviceGet", ctypes.byref(device), 0)
        self.call("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
        self.call("cuCtxSetCurrent", context)
        self.allocations = []

    def call(self, name, *arguments):
        code = getattr(self.cuda, name)(*arguments)
        if code:
            raise RuntimeError(f"{name} failed with CUDA error {code}")

    def allocate(self, size):
        pointer = ctypes.c_uint64()
        self.call("cuMemAlloc_v2", ctypes.byref(pointer), ctypes.c_size_t(max(size, 1)))
        self.allocations.append(pointer)
        return pointer.value

    def free_all(self):
        for pointer in self.allocations:
            self.call("cuMemFree_v2", pointer)
        self.allocations = []


class Tensor:
    """Device memory with the contents, or only the shape, of an array."""

    def __init__(self, device, array, typestr, fill=True):
        self.device, self.array = device, array
        self.pointer = device.allocate(array.nbytes)
        if fill:
            device.call(
                "cuMemcpyHtoD_v2",
                ctypes.c_uint64(self.pointer),
                ctypes.c_void_p(array.ctypes.data),
                ctypes.c_size_t(array.nbytes),
            )
        self.__cuda_array_interface__ = {
            "shape": array.shape,
            "typestr": typestr,
            "data": (self.pointer, False),
            "strides": None,
            "version": 3,
        }

    def read(self):
        self.device.call(
            "cuMemcpyDtoH_v2",
            ctypes.c_void_p(self.array.ctypes.data),
            ctypes.c_uint64(self.pointer),
            ctypes.c_size_t(self.array.nbytes),
        )
        return self.array


def to_bits(numpy, values, element):
    """float32 to the 16-bit type, as (its bits, what they mean)."""
    if element == "f16":
        half = values.astype(numpy.float16)
        return half, half.astype(numpy.float64)
    bits = values.view(numpy.uint32)
    rounded = (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16
    meaning = (rounded.astype(numpy.uint32) << 16).view(numpy.float32)
    return rounded.astype(numpy.uint16), meaning.astype(numpy.float64)


def expected(numpy, case, q, k, v, bias, documents):
    """(o, lse) in float64."""
    k, v = k.repeat(case.group, axis=1), v.repeat(case.group, axis=1)
    x = numpy.einsum("bhid,bhjd->bhij", q, k) * case.scale_value
    offset = case.keys - case.queries
    i, j = numpy.arange(case.queries)[:, None] + offset, numpy.arange(case.keys)[None, :]
    if case.softcap:
        x = case.softcap * numpy.tanh(x / case.softcap)
    if case.alibi:
        slopes = 2.0 ** (-8.0 * numpy.arange(1, case.heads + 1) / case.heads)
        x = x - slopes[None, :, None, None] * numpy.abs(i - j)
    if bias is not None:
        x = x + bias
    mask = numpy.ones((case.queries, case.keys), bool)
    if case.causal:
        mask &= j <= i
    if case.window:
        mask &= (j - i >= -case.window[0]) & (j - i <= case.window[1])
    if documents:
        mask &= documents[0][0][:, None] == documents[1][0][None, :]
    x = numpy.where(mask, x, -numpy.inf)
    top = x.max(axis=-1, keepdims=True)
    top = numpy.where(numpy.isinf(top), 0, top)
    p = numpy.exp(x - top)
    total = p.sum(axis=-1, keepdims=True)
    o = numpy.einsum("bhij,bhje->bhie", p / numpy.where(total == 0, 1, total), v)
    with numpy.errstate(divide="ignore"):
        return o, (top + numpy.log(total))[..., 0]


def run_case(numpy, attn, device, case, target="sm_80"):
    rng = numpy.random.default_rng(case.index)
    kv = (case.batch, case.kv_heads, case.keys)
    shapes = [
        (case.batch, case.heads, case.queries, case.head_dim),
        (*kv, case.head_dim),
        (*kv, case.value_dim),
    ]
    typestr = {"f16": "<f2", "bf16": "<u2"}[case.element]
    pairs = [
        to_bits(numpy, rng.standard_normal(shape).astype(numpy.float32), case.element)
        for shape in shapes
    ]
    tensors = [Tensor(device, bits, typestr) for bits, _ in pairs]
    bias = documents = None
    if case.bias:
        bias = rng.standard_normal(case.bias_shape()).astype(numpy.float32)
        tensors.append(Tensor(device, bias, "<f4"))
    if case.documents:
        documents = [
            (numpy.arange(size, dtype=numpy.int32) // 100)[None].repeat(case.batch, axis=0)
            for size in (case.queries, case.keys)
        ]
        tensors += [Tensor(device, ids, "<i4") for ids in documents]
    shape = (case.batch, case.heads, case.queries)
    o_bits = numpy.zeros((*shape, case.value_dim), pairs[0][0].dtype)
    # initcheck does not see what TMA writes; NaN in its place is seen below.
    o_bits.view(numpy.uint16)[...] = 0x7FFF
    o = Tensor(device, o_bits, typestr, fill=target != "sm_80")
    lse = Tensor(device, numpy.zeros(shape, numpy.float32), "<f4", fill=False)
    kernel = attn.compile(case.program(), target=target).on_device()
    kernel.launch(*tensors, o, lse)
    kernel.synchronize()
    exact, exact_lse = expected(numpy, case, *(meaning for _, meaning in pairs), bias, documents)
    got = o.read()
    if case.element == "bf16":
        got = (got.astype(numpy.uint32) << 16).view(numpy.float32)
    error = numpy.abs(got.astype(numpy.float64) - exact).max()
    got_lse = lse.read().astype(numpy.float64)
    seen = numpy.isfinite(exact_lse)
    error_lse = numpy.abs(got_lse[seen] - exact_lse[seen]).max()
    fine = error < 0.03 and error_lse < 1e-4 and (got_lse[~seen] == -numpy.inf).all()
    device.free_all()
    print(
        f"{'ok  ' if fine else 'FAIL'} #{case.index} {case.describe()} "
        f"e {error:.2e} lse {error_lse:.1e}",
        flush=True,
    )
    return fine


def child(options):
    import attn
    import numpy

    attn.use_library(options.lib)
    device = Device()
    wanted = [case for case in cases() if options.only in (None, case.index)]
    return 0 if all([run_case(numpy, attn, device, case, options.target) for case in wanted]) else 1


# ---------------------------------------------------------------------------
# The parent
# ---------------------------------------------------------------------------


def find_sanitizer(path):
    places = [path] if path else ["compute-sanitizer"]
    for variable in ("CUDAToolkit_ROOT", "CUDA_HOME"):
        if not path and variable in os.environ:
            places.append(os.path.join(os.environ[variable], "bin", places[0]))
    return next(filter(None, map(shutil.which, places)), None)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--lib", required=True)
    parser.add_argument("--target", default="sm_80", help="sm_80 or sm_90a")
    parser.add_argument("--sanitizer", help="path of compute-sanitizer")
    parser.add_argument("--tools", default="memcheck,racecheck,initcheck")
    parser.add_argument("--only", type=int, help="number of one case")
    parser.add_argument("--time-limit", type=float, default=300, help="seconds per tool")
    parser.add_argument("--child", action="store_true")
    options = parser.parse_args()
    if options.child:
        return child(options)
    tool = find_sanitizer(options.sanitizer)
    if not tool:
        print("skipped: no compute-sanitizer (--sanitizer, PATH, CUDAToolkit_ROOT, CUDA_HOME)")
        return SKIP
    command = [sys.executable, __file__, "--child", "--lib", options.lib]
    command += ["--target", options.target]
    if options.only is not None:
        command += ["--only", str(options.only)]
    bad = 0
    for name in options.tools.split(","):
        print(f"-- {name}", flush=True)
        supervised = [tool, "--tool", name, "--error-exitcode", "9"]
        try:
            result = subprocess.run(
                supervised + command,
                capture_output=True,
                text=True,
                timeout=options.time_limit,
            )
        except subprocess.TimeoutExpired:
            print(f"FAIL {name}: more than {options.time_limit:.0f} s")
            bad += 1
            continue
        output = result.stdout + result.stderr
        if result.returncode == SKIP:
            print("skipped: no GPU")
            return SKIP
        if "Device not supported" in output:
            print("skipped: compute-sanitizer does not support this machine")
            return SKIP
        print("\n".join(output.splitlines()[-60:]))
        clean = result.returncode == 0 and re.search(
            r"ERROR SUMMARY: 0 errors|RACECHECK SUMMARY: 0 hazards", output
        )
        bad += not clean
        print(f"{'clean' if clean else 'NOT CLEAN'}: {name}", flush=True)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
