# Builds the project's programs by what pkg-config says, and runs them.
#
# Part of attn, an attention compiler.
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# usage: pkg-config.sh CC WORK PROJECT; causal.h is in WORK.
set -eu
cc=$1 work=$2 project=$3

# build PROGRAM SOURCE PACKAGE LIBRARY...
build() {
  program=$1 source=$2 package=$3
  shift 3
  "$cc" "$project/$source" -I"$work" $(pkg-config --cflags "$package") \
    -o "$work/$program" "$@" \
    -Wl,-rpath,"$(pkg-config --variable=libdir "$package")"
}

build attn kernel.c attn $(pkg-config --libs attn)
"$work/attn" | sed -n 's/^load/attn: load/p'
build attn-compiles compile.c attn $(pkg-config --libs attn)
echo "attn: $("$work/attn-compiles")"
build runtime kernel.c attn-runtime $(pkg-config --libs attn-runtime)
"$work/runtime" | sed -n 's/^load/attn-runtime: load/p'
build static kernel.c attn-runtime \
  $(pkg-config --static --libs attn-runtime |
    sed 's/-lattn-runtime/-l:libattn-runtime.a/')
"$work/static" | sed -n 's/^load/static: load/p'
if build none compile.c attn-runtime $(pkg-config --libs attn-runtime) \
    2>"$work/log"; then
  echo "the runtime compiles"
elif grep -q attnCompileForCPU "$work/log"; then
  echo "the runtime does not compile"
fi
