#===----------------------------------------------------------------------===#
#
# Part of attn, an attention compiler.
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===----------------------------------------------------------------------===#
"""What compiled programs call: every operation a region may hold, tiled, and a
definition, compiled for processors that need not be the one at hand.

usage: libcalls.py FOLDER

Prints for each processor what neither the C library nor libm has.
"""

import ctypes
import pathlib
import subprocess
import sys

TEST = pathlib.Path(__file__).resolve().parent.parent.parent
for folder in ("Emulator", "Integration/GPU", "Masks", "../python"):
    sys.path.insert(0, str(TEST / folder))

from test_operations import BATCHES, program

PROCESSORS = [
    ("x86_64", "x86-64"),
    ("x86_64", "haswell"),
    ("x86_64", "skylake-avx512"),
    ("x86_64", "sapphirerapids"),
    ("aarch64", "generic"),
]


def call(*command, input=None):
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, input=input).stdout


def main():
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True)
    libraries = ctypes.CDLL("libm.so.6")  # finds those of libc too
    texts = []
    for number, cases in enumerate(BATCHES):
        source = folder / f"{number}.mlir"
        source.write_text(program(cases)[1])
        texts.append(folder / f"{number}.ll")
        call("attn-compile", source, "--target=cpu", "--emit=llvm", "-o", texts[-1])
    texts.append(folder / "definition.ll")
    lowered = call("attn-opt", TEST / "Tools" / "Inputs" / "bits16.mlir", "--attn-oracle=precision=input")
    texts[-1].write_text(call("mlir-translate", "--mlir-to-llvmir", input=lowered))
    for architecture, processor in PROCESSORS:
        missing, found = set(), set()
        for text in texts:
            code = text.with_suffix(".o")
            call("llc", f"-mtriple={architecture}-linux-gnu", "-mcpu=" + processor, "-filetype=obj", text, "-o", code)
            for symbol in call("llvm-nm", "--undefined-only", "--just-symbol-name", code).split():
                (found if hasattr(libraries, symbol) else missing).add(symbol)
        print(f"{architecture} {processor}: {' '.join(sorted(missing)) or 'nothing'} beside "
              + " ".join(sorted(found)))


main()
