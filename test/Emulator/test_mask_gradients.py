#===----------------------------------------------------------------------===#
#
# Part of attn, an attention compiler.
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===----------------------------------------------------------------------===#
"""The gradients of programs of test/Masks: PTX against the kernels for the CPU, which
attn-run checks with the definition. Both may be off by the bound of the error rule
(C16 of attn.attention_backward), so by twice of it from each other."""

import json
import subprocess
import zlib

import masks
import numpy as np
from emulate import Artifact, Scalar, launch
from emulated_case import Array
from mask_case import PLANS, MaskInputs
from test_masks import find_tool

LENGTHS = [(70, 130), (130, 70), (64, 64), (1, 97), (97, 161), (100, 33)]
SHARE = 16  # of the masks, without --all-masks
ALWAYS = [
    # Their rows of a large lse have it as two numbers.
    ("penalty-1e9", "sm_80"), ("lowest-and-empty", "sm_90a"),
    # Tables by distances in images: tiles begin before the first key.
    ("window-bias", "sm_80"), ("image-bias", "sm_80"), ("video-bias", "sm_90a"),
]


def pytest_generate_tests(metafunc):
    share = 1 if metafunc.config.getoption("--all-masks") else SHARE
    wanted = [(name, target) for name in masks.names()
              for number, target in enumerate(["sm_80", "sm_90a"])
              if (name, target) in ALWAYS or (zlib.crc32(name.encode()) // 5 + number) % share == 0]
    metafunc.parametrize("name, target", wanted)


class GradientInputs(MaskInputs):
    """With the results of the forward, and what comes back to its output."""

    def __init__(self, name, queries, keys, seed):
        super().__init__(name, queries, keys, batch=1, seed=seed)
        shape = (1, self.sizes.heads, queries)
        rows = [self.evaluate(0, h, exact=True) for h in range(self.sizes.heads)]
        self.output.set(np.array([[o for o, _ in rows]]))
        self.lse.set(np.array([[lse for _, lse in rows]]))
        d_output = np.random.default_rng(seed).standard_normal((*shape, self.case.value_dim))
        self.d_output = Array("bf16", d_output.shape).set(d_output)
        self.gradients = {f"d_{name}": Array("bf16", array.shape) for name, array in
                          [("q", self.query), ("k", self.key), ("v", self.value)]}
        for array in self.extra[: len(self.mask.sink)]:
            self.gradients["d_sink"] = Array(array.element, array.shape)
        for number, array in enumerate(self.captures):
            if "f" in array.element:
                shape = [] if isinstance(array, Scalar) else array.shape
                self.gradients[f"d_c{number}"] = Array(array.element, shape)

    def arguments(self):
        return [*super().arguments(), self.d_output, *self.gradients.values()]

    def flags(self, folder):
        listed = super().flags(folder)
        for name, array in [("q", self.query), ("k", self.key), ("v", self.value), ("o", self.output),
                            ("lse", self.lse), ("d_o", self.d_output)]:
            np.save(folder / f"{name}.npy", array.values())
            listed.append(f"--input={name}={folder / name}.npy")
        return listed


def compute_on_cpu(tool, program, inputs, folder):
    """(its gradients, their bounds), by name"""
    outputs = [f"--output={name}={folder / name}.npy" for name in inputs.gradients]
    done = subprocess.run([tool, *program, "--target=cpu", "--check", "--json", *inputs.flags(folder),
                           *outputs], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    checked = json.loads(done.stdout)["check"]["gradients"]
    values = {}
    for name, array in inputs.gradients.items():
        read = np.load(folder / f"{name}.npy")
        bits = read.view("u2").astype("u4") << 16 if array.element == "bf16" and read.dtype.itemsize == 2 else None
        values[name] = (read if bits is None else bits.view("f4")).astype(float)
    return values, {name: checked[name]["bound"] for name in values}


def test_gradients(name, target, tmp_path, pytestconfig):
    number = zlib.crc32(name.encode())
    inputs = GradientInputs(name, *LENGTHS[number // 11 % len(LENGTHS)], seed=number)
    program = [masks.DIRECTORY / f"{name}.mlir", "--backward"]
    wanted, bounds = compute_on_cpu(find_tool(pytestconfig, "attn-run"), program, inputs, tmp_path)
    file = tmp_path / "gradients.attn"
    done = subprocess.run([find_tool(pytestconfig, "attn-compile"), *program, f"--target={target}",
                           f"--plan={PLANS[target]}", "-o", file], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    launch(Artifact(file.read_bytes()),
           [array if isinstance(array, Scalar) else array.tensor for array in inputs.arguments()])
    wrong = []
    for gradient, array in inputs.gradients.items():
        if not array.is_outside_untouched():
            wrong.append(f"wrote outside of {gradient}")
        error = np.abs(array.values() - wanted[gradient]).max(initial=0)
        if not error <= 2 * bounds[gradient]:
            wrong.append(f"{gradient}: off by {error:.3g}, allowed {2 * bounds[gradient]:.3g}")
    assert wrong == []
