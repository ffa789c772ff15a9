#!/bin/bash
#===- frameworks.sh - PyTorch, ONNX and JAX, to test attn beside them -----===#
#
# Part of attn, an attention compiler.
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===-----------------------------------------------------------------------===#

set -euo pipefail

usage() {
  cat <<EOF
usage: tools/frameworks.sh [--dir=DIR]

Makes a virtual environment with PyTorch, transformers, ONNX and JAX, or takes the
one that is there, and prints the path of its Python: what tools/check.sh
--frameworks tests attn.torch, attn.transformers and attn.onnx with. They come from
PyPI: some 3 GB to load, 7 GB on disk. Exit status 1: they cannot be had, and why.

  --dir=DIR   default: \$XDG_CACHE_HOME/attn/frameworks, or ~/.cache/attn/frameworks
EOF
}

place=${XDG_CACHE_HOME:-${HOME:-/tmp}/.cache}/attn/frameworks
for argument in "$@"; do
  case $argument in
    --dir=*) place=${argument#*=} ;;
    --help) usage; exit 0 ;;
    *) echo "frameworks.sh: unknown option '$argument'" >&2; usage >&2; exit 2 ;;
  esac
done
packages=(torch==2.15.0 transformers==5.23.0 onnx==1.23.2 jax==0.10.2)
python=$place/bin/python
wanted="import torch, transformers, onnx, jax, numpy, pytest, xdist"

fail() { echo "frameworks.sh: $*" >&2; exit 1; }

if [ -x "$python" ] && "$python" -c "$wanted" 2>/dev/null; then
  echo "$python"
  exit 0
fi
mkdir -p "$(dirname "$place")"
free=$(df --output=avail -BG "$(dirname "$place")" | tail -n 1 | tr -dc 0-9)
[ "$free" -ge 12 ] || fail "$free GB are free beside $place, wanted 12"
rm -rf "$place"
log=$place.log
echo "frameworks.sh: ${packages[*]} into $place" >&2
# pytest comes from the distribution, as for the other tests.
{
  /usr/bin/python3 -m venv --system-site-packages "$place" &&
    timeout 1200 "$place/bin/pip" install --disable-pip-version-check --no-input "${packages[@]}"
} >"$log" 2>&1 || { reason=$(grep -iE 'error' "$log" | tail -n 1); rm -rf "$place"; fail "${reason:-no answer in time, see $log}"; }
"$python" -c "$wanted" >>"$log" 2>&1 || { rm -rf "$place"; fail "$(tail -n 1 "$log")"; }
echo "$python"
