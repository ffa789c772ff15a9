#!/bin/bash
#===- setup.sh - install, build, compile and check one example ------------===#
#
# Part of attn, an attention compiler.
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===-----------------------------------------------------------------------===#

set -euo pipefail
source=$(cd "$(dirname "$0")/.." && pwd)

usage() {
  cat <<EOF
usage: tools/setup.sh [options]

Installs the distribution packages that are missing (Debian 12; needs root only
when something is missing), builds attn, compiles test/Examples/causal.mlir for
sm_80 and runs it on the CPU against the float64 definition.

  --build-dir=DIR    build here (default: build)
  --jobs=N           compile N files at a time (default: one per core, or less
                     where memory is short)
  --static           link LLVM and MLIR into each tool (-DATTN_USE_DYLIB=OFF)
  --sanitize=LIST    build for address,undefined or for thread, to find faults
  --target=NAME      build this target only (default: all)
  --no-install       fail, rather than install, when a package is missing
  --build-only       stop after the build
  --help             this text
EOF
}

build=$source/build
jobs=
dylib=ON
sanitize=
optimize=-O2
target=all
install=yes
report=yes
for argument in "$@"; do
  case $argument in
    --build-dir=*) build=${argument#*=} ;;
    --jobs=*) jobs=${argument#*=} ;;
    --static) dylib=OFF ;;
    --sanitize=*) sanitize=${argument#*=}; optimize=-O1 ;;
    --target=*) target=${argument#*=} ;;
    --no-install) install=no ;;
    --build-only) report=no ;;
    --help) usage; exit 0 ;;
    *) echo "setup.sh: unknown option '$argument'" >&2; usage >&2; exit 2 ;;
  esac
done
mkdir -p "$build"
build=$(cd "$build" && pwd)

say() { printf '\n== %s (after %d s)\n' "$*" $SECONDS; }

#===- Packages ------------------------------------------------------------===#

packages=(cmake ninja-build ccache git
  clang-22 libclang-rt-22-dev lld-22 clang-format-22 libstdc++-12-dev
  llvm-22 llvm-22-dev llvm-22-tools libmlir-22-dev mlir-22-tools
  libzstd-dev zlib1g-dev libgtest-dev nlohmann-json3-dev
  python3 python3-numpy python3-pytest python3-pytest-xdist)

missing=()
for package in "${packages[@]}"; do
  status=$(dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null || true)
  [ "$status" = installed ] || missing+=("$package")
done
if [ ${#missing[@]} -gt 0 ]; then
  if [ $install = no ]; then
    echo "setup.sh: missing packages: ${missing[*]}" >&2
    exit 1
  fi
  as_root=()
  if [ "$(id -u)" != 0 ]; then
    command -v sudo >/dev/null ||
      { echo "setup.sh: run as root: apt-get install ${missing[*]}" >&2; exit 1; }
    as_root=(sudo)
  fi
  say "Installing ${missing[*]}"
  export DEBIAN_FRONTEND=noninteractive
  # A package source that does not answer is a warning: another may serve.
  "${as_root[@]}" apt-get -q update || true
  "${as_root[@]}" apt-get -q install -y --no-install-recommends "${missing[@]}"
fi

#===- Build ---------------------------------------------------------------===#

if [ -z "$jobs" ]; then
  # A translation unit with MLIR's headers takes up to 1.5 GiB.
  by_memory=$(($(awk '/MemAvailable/ {print $2}' /proc/meminfo) / 1572864))
  jobs=$(nproc)
  [ "$by_memory" -ge "$jobs" ] || jobs=$((by_memory > 1 ? by_memory : 1))
fi

say "Configuring $build"
cmake_dir=$(llvm-config-22 --cmakedir)
# What ccache needs to keep sources compiled with precompiled headers.
# On what is included it asks the compiler: the preprocessor cannot use them.
ccache="env;CCACHE_SLOPPINESS=pch_defines,time_macros;CCACHE_DEPEND=1;ccache"
cmake -G Ninja -S "$source" -B "$build" \
  -DCMAKE_BUILD_TYPE=Release -DCMAKE_CXX_FLAGS_RELEASE=$optimize \
  -DCMAKE_C_COMPILER=clang-22 -DCMAKE_CXX_COMPILER=clang++-22 \
  -DCMAKE_C_COMPILER_LAUNCHER="$ccache" -DCMAKE_CXX_COMPILER_LAUNCHER="$ccache" \
  -DLLVM_ENABLE_LLD=ON -DLLVM_DIR="$cmake_dir" -DMLIR_DIR="${cmake_dir%/llvm}/mlir" \
  -DPython3_EXECUTABLE=/usr/bin/python3 -DATTN_USE_DYLIB=$dylib \
  -DATTN_SANITIZE="$sanitize" \
  >"$build/configure.log" 2>&1 || { tail -n 40 "$build/configure.log"; exit 1; }

say "Building with $jobs jobs"
NINJA_STATUS='[%f/%t, %es] ' ninja -C "$build" -j "$jobs" "$target"

[ $report = yes ] || exit 0

#===- Report --------------------------------------------------------------===#

say "Report"
example=$source/test/Examples/causal.mlir
bin=$build/bin
out=$build/example
mkdir -p "$out"
line() { printf '  %-34s %s\n' "$1" "$2"; }

line "version" "$("$bin/attn-opt" --version | head -n 1)"
"$bin/attn-compile" "$example" --target=sm_80 --emit=ptx -o "$out/causal.ptx"
line "causal.mlir -> sm_80 PTX" "$(wc -c <"$out/causal.ptx") bytes, $out/causal.ptx"

ptxas=
for candidate in "${CUDAToolkit_ROOT:-}/bin/ptxas" "${CUDA_HOME:-}/bin/ptxas" \
                 "${CUDA_PATH:-}/bin/ptxas" "$(command -v ptxas || true)"; do
  [ -x "$candidate" ] && { ptxas=$candidate; break; }
done
if [ -n "$ptxas" ]; then
  "$bin/attn-compile" "$example" --target=sm_80 --emit=cubin -o "$out/causal.cubin"
  line "causal.mlir -> sm_80 cubin" "$(wc -c <"$out/causal.cubin") bytes, $out/causal.cubin"
else
  line "causal.mlir -> sm_80 cubin" "skipped: no ptxas (CUDAToolkit_ROOT, CUDA_HOME, PATH)"
fi

echo
echo "  causal.mlir on the CPU, against float64:"
"$bin/attn-run" "$example" --target=cpu --shape=b=1,h=4,hkv=2,sq=200,sk=300 --check
