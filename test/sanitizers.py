#===----------------------------------------------------------------------===#
#
# Part of attn, an attention compiler.
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===----------------------------------------------------------------------===#
"""How programs run that are built with ATTN_SANITIZE.

usage: sanitizers.py LLVM_TOOLS    prints the variables, NAME=VALUE
"""

import os
import sys


def environment(llvm_tools):
    return {
        # LLVM's libraries are as they are. Memory that our copies of its inline
        # functions mark as free is not for its own copies of them.
        "ASAN_OPTIONS": "allow_user_poisoning=0:detect_container_overflow=0:"
        # What the machine has not is an error of the program's, not a report.
        "allocator_may_return_null=1:max_allocation_size_mb=65536:detect_leaks="
        + os.environ.get("ATTN_TEST_LEAKS", "0"),
        "UBSAN_OPTIONS": "print_stacktrace=1",
        # The locks of libraries that are not instrumented are not seen.
        "TSAN_OPTIONS": "ignore_noninstrumented_modules=1",
        "ASAN_SYMBOLIZER_PATH": os.path.join(llvm_tools, "llvm-symbolizer"),
        "TSAN_SYMBOLIZER_PATH": os.path.join(llvm_tools, "llvm-symbolizer"),
    }


if __name__ == "__main__":
    for item in environment(sys.argv[1]).items():
        print("=".join(item))
