#===----------------------------------------------------------------------===#
#
# Part of attn, an attention compiler.
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===----------------------------------------------------------------------===#
"""Compiles many programs, each in a process of its own, several at once.

As a program:
compiling.py LIB IN.mlir OUT.attn TARGET [PLAN [DISABLE [ENABLE [PYTHON]]]]
"""

import concurrent.futures
import os
import pathlib
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[3]


def _compile_one(
    library, source, output, target, plan="", disable="", enable="", python="", backward=""
):
    sys.path.insert(0, python or str(ROOT / "python"))
    import attn

    attn.use_library(library)
    try:
        artifact = attn.compile(
            pathlib.Path(source).read_text(),
            target=target,
            plan=plan,
            disable=disable,
            enable=enable,
            **({"backward": True} if backward else {}),
        )
    except attn.AttnError as error:
        print(error, file=sys.stderr)
        return 1
    if target != "cpu":
        # In one step, so that a reader never sees half of it.
        pathlib.Path(output + ".part").write_bytes(artifact.bytes)
        os.replace(output + ".part", output)
    if target != "cpu" and artifact.log:
        pathlib.Path(output + ".log").write_text(artifact.log)
    return 0


class Compiler:
    """compile(name, text) puts NAME.mlir, then NAME.attn or NAME.error (and
    NAME.seconds) into the directory; several run at once."""

    def __init__(self, library, directory, target="sm_80", jobs=None, timeout=120, python="",
                 backward=False):
        self.library = str(library)
        self.backward = backward  # the gradients of the programs, instead of these
        self.python = str(python)  # the directory of the package attn; default: this tree's
        self.directory = pathlib.Path(directory)
        self.directory.mkdir(parents=True, exist_ok=True)
        self.target = target
        self.timeout = timeout
        self.pool = concurrent.futures.ThreadPoolExecutor(jobs or os.cpu_count())

    def compile(self, name, text, plan="", disable="", enable=""):
        """A future of (seconds, error or "")."""
        return self.pool.submit(self._run, name, text, plan, disable, enable)

    def _run(self, name, text, plan, disable, enable):
        source = self.directory / f"{name}.mlir"
        output = self.directory / f"{name}.attn"
        source.write_text(text)
        if output.exists():
            output.unlink()
        command = [sys.executable, __file__, self.library, source, output]
        command += [self.target, plan, disable, enable, self.python, "backward" * self.backward]
        start = time.time()
        try:
            result = subprocess.run(
                command, capture_output=True, text=True, timeout=self.timeout
            )
            error = result.stderr.strip() if result.returncode else ""
            if result.returncode < 0:
                error = f"compiler died of signal {-result.returncode}: {error[-2000:]}"
            elif result.returncode and not error:
                error = f"compiler left with code {result.returncode}"
        except subprocess.TimeoutExpired:
            error = f"compiler took more than {self.timeout} s"
        if error:
            (self.directory / f"{name}.error").write_text(error)
        return time.time() - start, error

    def close(self):
        self.pool.shutdown(wait=False, cancel_futures=True)


if __name__ == "__main__":
    sys.exit(_compile_one(*sys.argv[1:]))
