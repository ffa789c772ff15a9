#!/bin/bash
#===- check.sh - every test that needs no GPU -----------------------------===#
#
# Part of attn, an attention compiler.
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===-----------------------------------------------------------------------===#

set -uo pipefail
{ # Read completely before it runs: the file may change meanwhile.
source=$(cd "$(dirname "$0")/.." && pwd)

usage() {
  cat <<EOF
usage: tools/check.sh [options]

Brings the build up to date and runs every test: format, lint, the lit suite
(with the C API and the examples), GoogleTest, Python, kernels' PTX in an
emulator and warp kernels in a simulator. Tests that need ptxas or a GPU are
skipped where there is none. The last line is "N passed, N failed".

What runs programs on the CPU runs twice: with all that this processor has, and
with what every processor of its kind has. Two suites run at a time, each with
half of the jobs: the end of one has no use for all of them.

  --build-dir=DIR    the build (default: build)
  --jobs=N           run N tests at a time (default: one per core)
  --no-build         test what is there
  --sanitize         the lit suite, GoogleTest and Python once more, with the
                     project's code under AddressSanitizer and
                     UndefinedBehaviorSanitizer, and threads that launch, share
                     a cache and compile under ThreadSanitizer: builds anew, in
                     DIR-sanitize, DIR-thread
  --sanitize=plain   the same for what needs no MLIR: a few minutes
  --frameworks       attn.torch, attn.transformers, attn.onnx and the example of JAX
                     on the CPU, with what tools/frameworks.sh installs; where it
                     cannot they are skipped, and it says why
  --help             this text
EOF
}

build=$source/build
jobs=$(nproc)
make=yes
sanitize=none
frameworks=no
for argument in "$@"; do
  case $argument in
    --build-dir=*) build=${argument#*=} ;;
    --jobs=*) jobs=${argument#*=} ;;
    --no-build) make=no ;;
    --sanitize) sanitize=all ;;
    --sanitize=plain) sanitize=plain ;;
    --frameworks) frameworks=yes ;;
    --help) usage; exit 0 ;;
    *) echo "check.sh: unknown option '$argument'" >&2; usage >&2; exit 2 ;;
  esac
done

cd "$source" || exit 1
if [ $make = yes ]; then
  tools/setup.sh --build-dir="$build" --build-only || exit 1
fi
build=$(cd "$build" && pwd) || exit 1
results=$build/test-results
export TIMEFORMAT='%0R %0U %0S'
rm -rf "$results"
mkdir -p "$results"
python=/usr/bin/python3
lit=$(llvm-config-22 --bindir)/lit
broken=0

# What every processor of this kind has, in LLVM's words.
case $(uname -m) in
  x86_64) plain=x86-64 ;;
  *) plain=generic ;;
esac

say() { printf '\n== %s\n' "$*"; }

# suite NAME COMMAND...: runs it and prints what it said. A suite that fails
# without having written its results counts as one failure.
suite() {
  local name=$1 log=$results/$1.log
  shift
  { time "$@" >"$log" 2>&1 || [ -s "$results/$name.xml" ] || {
    echo "$name: stopped without results" >>"$log"
    touch "$results/$name.broken"
  }; } 2>"$results/$name.time"
  flock "$results" sh -c 'printf "\n== %s\n" "$1"; cat "$2"' - "$name" "$log"
}

# beside COMMAND...: runs it while another one runs.
lanes=$((jobs > 1 ? 2 : 1))
running=0
beside() {
  if [ $running = $lanes ]; then
    wait -n
    running=$((running - 1))
  fi
  "$@" &
  running=$((running + 1))
}

# lit_suite NAME ARGUMENTS...: tests that lit finds.
lit_suite() {
  suite "$1" $python "$lit" -s -v --no-progress-bar -j "$jobs" \
    --xunit-xml-output="$results/$1.xml" "${@:2}"
}

# pytest_suite NAME ARGUMENTS...: tests in Python, in a process for each job.
environment=(PYTHONPATH="$source/python" PYTHONDONTWRITEBYTECODE=1)
pytest_suite() {
  suite "$1" env "${environment[@]}" $python -m pytest -q -p no:cacheprovider \
    -n "$jobs" --junitxml="$results/$1.xml" "${@:2}"
}

format() {
  git ls-files -z '*.h' '*.cpp' '*.c' |
    xargs -0 -n 50 -P "$jobs" clang-format-22 --dry-run -Werror &&
    echo "every source is formatted"
}

formatted=0
say format
format 2>&1 | head -n 60
[ "${PIPESTATUS[0]}" = 0 ] && formatted=1

suite lint $python .ci/lint.py --junit="$results/lint.xml"

# Those whose subject is what is computed on the CPU, once more for the plain
# processor. Not beside the same tests for this one: they write the same files.
on_this_processor() {
  lit_suite lit "$build/test"
  mapfile -t runs < <(cd test && ls Integration/CPU/*.mlir Target/views.mlir \
    Tools/attn-run-{cpu,large-scores,score-loss}.test &&
    grep -rlE 'RUN:.*%cpu' --include='*.mlir' --include='*.test' --include='*.c' .)
  lit_suite lit-plain --param=cpu=$plain "${runs[@]/#/$build/test/}"
}
unit_tests() {
  lit_suite unit "$build/test/Unit"
  lit_suite unit-plain --param=cpu=$plain \
    --filter='HostProgram|NarrowFloats|TilePasses|TileProperty' \
    "$build/test/Unit"
}
python_tests() {
  pytest_suite python --lib="$build/lib/libattn.so" "$source/test/python"
  pytest_suite python-plain --lib="$build/lib/libattn.so" --cpu=$plain \
    "$source"/test/python/test_{cpu,gpu_cases,views}.py
}

# Each process has threads of its own: one takes as long as two.
frameworks_tests() {
  local place
  if ! place=$(tools/frameworks.sh 2>"$results/frameworks.reason"); then
    printf '\n== frameworks: skipped: %s\n' "$(tail -n 1 "$results/frameworks.reason")"
    return
  fi
  suite frameworks env "${environment[@]}" OMP_NUM_THREADS=1 "$place" -m pytest -q \
    -p no:cacheprovider -n "$jobs" --junitxml="$results/frameworks.xml" \
    --lib="$build/lib/libattn.so" \
    "$source"/test/python/test_{torch,transformers,onnx,jax}*.py
}

# The longest first: then neither lane runs alone for long.
all_jobs=$jobs
jobs=$(((jobs + lanes - 1) / lanes))
beside on_this_processor
[ $frameworks = no ] || beside frameworks_tests
beside pytest_suite emulator --lib="$build/lib/libattn.so" \
  "$source/test/Emulator"
beside python_tests
beside unit_tests
beside pytest_suite simulator --simulate="$build/bin/attn-simulate" \
  "$source/test/Simulator"
wait
jobs=$all_jobs

#===- Sanitizers ----------------------------------------------------------===#

# instrument FOLDER LIST TARGET: a build under sanitizers.
instrument() {
  [ $make = no ] || tools/setup.sh --build-dir="$1" --sanitize="$2" \
    --target="$3" --build-only || broken=$((broken + 1))
}

if [ $sanitize != none ]; then
  target=attn-plain-tests
  [ $sanitize = plain ] || target=all
  say "build for sanitizers"
  instrument "$build-thread" thread attn-plain-tests
  instrument "$build-sanitize" address,undefined $target
  lit_suite threads "$build-thread/test/Unit"
  lit_suite unit-memory "$build-sanitize/test/Unit"
fi
if [ $sanitize = all ]; then
  instrument "$build-thread" thread capi-threads
  lit_suite threads-compile "$build-thread/test/CAPI/threads.c"
  lit_suite lit-memory "$build-sanitize/test"
  # The program, Python, is as it is: the sanitizers' functions come first.
  runtime=$(clang-22 -print-file-name=libclang_rt.asan-$(uname -m).so)
  mapfile -t -O ${#environment[@]} environment < \
    <($python test/sanitizers.py "$(llvm-config-22 --bindir)")
  environment+=(LD_PRELOAD="$runtime")
  pytest_suite python-memory --lib="$build-sanitize/lib/libattn.so" \
    "$source/test/python"
fi

for file in "$results"/*.broken; do
  [ ! -e "$file" ] || broken=$((broken + 1))
done

say summary
$python - "$results" $formatted $broken <<'EOF'
import glob, os, sys
import xml.etree.ElementTree as tree

results, formatted, broken = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
passed, failed = formatted, 1 - formatted + broken
print(f"  {'format':15} {formatted:5} passed {1 - formatted:5} failed")
for path in sorted(glob.glob(os.path.join(results, "*.xml"))):
    good = bad = skipped = 0
    for case in tree.parse(path).getroot().iter("testcase"):
        if case.find("failure") is not None or case.find("error") is not None:
            bad += 1
        elif case.find("skipped") is not None:
            skipped += 1
        else:
            good += 1
    name = os.path.splitext(os.path.basename(path))[0]
    with open(os.path.splitext(path)[0] + ".time") as file:
        wall, user, system = map(int, file.read().split()[-3:])
    print(f"  {name:15} {good:5} passed {bad:5} failed {skipped:5} skipped"
          f"{wall:6} s {user + system:6} s of processors")
    passed, failed = passed + good, failed + bad
print()
print(f"{passed} passed, {failed} failed")
sys.exit(1 if failed or not passed else 0)
EOF
exit $?
}
