#!/bin/bash
#===- package.sh - a wheel that needs neither LLVM nor the CUDA Toolkit ---===#
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
usage: tools/package.sh [options]

Builds one wheel with the compiler in it, for any Python 3.9 or newer on Linux
with this machine's libc or a newer one: LLVM and MLIR are linked into its
libattn.so. It compiles to PTX and runs on the CPU as it is; for a GPU it takes
the ptxas that it finds, or the driver. Then the wheel is installed into a new
virtual environment, where a kernel is compiled, run and compared.

  --output=DIR       where the wheel goes (default: dist)
  --build-dir=DIR    the static build (default: build-package)
  --library=FILE     take this libattn.so rather than build one
  --no-check         do not try the wheel
  --help             this text
EOF
}

output=dist
build=$source/build-package
library=
check=yes
for argument in "$@"; do
  case $argument in
    --output=*) output=${argument#*=} ;;
    --build-dir=*) build=${argument#*=} ;;
    --library=*) library=${argument#*=} ;;
    --no-check) check=no ;;
    --help) usage; exit 0 ;;
    *) echo "package.sh: unknown option '$argument'" >&2; usage >&2; exit 2 ;;
  esac
done
python=${PYTHON:-/usr/bin/python3}
mkdir -p "$output"
output=$(cd "$output" && pwd)

for module in pip setuptools wheel venv; do
  "$python" -c "import $module" 2>/dev/null ||
    { echo "package.sh: $python has no $module: apt-get install python3-$module" >&2; exit 1; }
done
if [ -z "$library" ]; then
  "$source/tools/setup.sh" --static --build-dir="$build" --target=lib/libattn.so --build-only
  library=$build/lib/libattn.so
fi
[ -f "$library" ] || { echo "package.sh: no file '$library'" >&2; exit 1; }
if readelf -d "$library" | grep -qE 'NEEDED.*lib(LLVM|MLIR)'; then
  echo "package.sh: '$library' needs LLVM's libraries, wanted one built with --static" >&2
  exit 1
fi

staging=$(mktemp -d)
trap 'rm -rf "$staging"' EXIT
cp "$source/python/pyproject.toml" "$source/python/setup.py" "$staging"
cp -r "$source/python/attn" "$staging/attn"
find "$staging" -name __pycache__ -prune -exec rm -rf {} +
strip --strip-unneeded -o "$staging/attn/libattn.so" "$library"
mkdir -p "$staging/attn/share/attn"
cp "$source/share/attn/plans.json" "$staging/attn/share/attn/"
ATTN_VERSION=$(sed -n 's/^project(attn .*VERSION \([0-9.]*\).*/\1/p' "$source/CMakeLists.txt")
export ATTN_VERSION
"$python" -m pip wheel --quiet --disable-pip-version-check --no-deps --no-build-isolation \
  --wheel-dir "$staging/wheel" "$staging"
wheel=$(basename "$staging"/wheel/*.whl)
mv "$staging/wheel/$wheel" "$output/$wheel"
echo "$output/$wheel: $(stat -c %s "$output/$wheel") bytes"
[ $check = yes ] || exit 0

"$python" -m venv --system-site-packages "$staging/venv"
"$staging/venv/bin/pip" install --quiet --disable-pip-version-check "$output/$wheel"
cd "$staging/venv" # not where the sources lie
env -u PYTHONPATH bin/python - <<'EOF'
import numpy
import attn

text = attn.attention("f32", 64, variants=["causal"])
q, k, v = (numpy.random.randn(1, 2, 50, 64).astype("f4") for _ in range(3))
o, lse = numpy.empty_like(q), numpy.empty(q.shape[:3], "f4")
attn.compile(text, target="cpu").launch(q, k, v, o, lse)
x = (q.astype("f8") @ k.astype("f8").swapaxes(2, 3)) / 8
x[..., ~numpy.tri(50, dtype=bool)] = -numpy.inf
p = numpy.exp(x - x.max(-1, keepdims=True))
error = abs(p / p.sum(-1, keepdims=True) @ v - o).max()
assert error < 1e-5, error
ptx = attn.compile(text, target="sm_90a").ptx
print(f"installed attn {attn.version()}: error {error:.1e} on the CPU, {len(ptx)} bytes of PTX")
EOF
