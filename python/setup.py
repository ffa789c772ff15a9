#===----------------------------------------------------------------------===#
#
# Part of attn, an attention compiler.
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===----------------------------------------------------------------------===#
"""The package, with libattn.so and the measured plans if they lie in it, as
tools/package.sh puts them there: then the wheel is for this kind of machine
only, for any Python. Without them it takes the library that the loader finds."""

import os
import pathlib
import platform
import re
import sysconfig

import setuptools
from wheel.bdist_wheel import bdist_wheel

HERE = pathlib.Path(__file__).resolve().parent
HAS_LIBRARY = (HERE / "attn" / "libattn.so").exists()


def version():
    """Of the project, as CMake has it."""
    if "ATTN_VERSION" in os.environ:
        return os.environ["ATTN_VERSION"]
    text = (HERE.parent / "CMakeLists.txt").read_text()
    return re.search(r"project\(attn .*VERSION ([\d.]+)", text)[1]


class Wheel(bdist_wheel):
    """A library, but no extension module: any Python 3 loads it by ctypes."""

    def finalize_options(self):
        super().finalize_options()
        self.root_is_pure = not HAS_LIBRARY

    def get_tag(self):
        if not HAS_LIBRARY:
            return super().get_tag()
        machine = sysconfig.get_platform().replace("-", "_").replace(".", "_")
        name, number = platform.libc_ver()
        if name == "glibc":
            machine = machine.replace("linux_", f"manylinux_{number.replace('.', '_')}_", 1)
        return "py3", "none", machine


setuptools.setup(
    version=version(),
    packages=setuptools.find_packages(include=["attn", "attn.*"]),
    package_data={"attn": ["libattn.so", "share/attn/plans.json"]},
    cmdclass={"bdist_wheel": Wheel},
)
