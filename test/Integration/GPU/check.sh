#!/bin/sh
# check.sh PYTHON LIBATTN CASES: the GPU suite, one long sequence, the drop-ins of
# attn.torch, and compute-sanitizer. Code 77 of a program says that it was skipped.
here=$(dirname "$0")
bad=0
run() {
  "$python" "$here/$@"
  code=$?
  [ $code -eq 0 ] || [ $code -eq 77 ] || bad=1
}
python=$1 lib=$2 cases=$3
run suite.py --lib "$lib" --cases "$cases"
[ $code -eq 77 ] && exit 0
run runtime.py --lib "$lib"
run programs.py --lib "$lib"
run stress.py --lib "$lib" --target sm_80
run stress.py --lib "$lib" --target sm_90a
run suite.py --lib "$lib" --long 262144
run suite.py --lib "$lib" --huge
run dropin_cases.py --lib "$lib"
run torch_cases.py --lib "$lib" --time-limit 500
run form_cases.py --lib "$lib" --time-limit 300
run flex_cases.py --lib "$lib" --time-limit 500
run masked_decode.py --lib "$lib" --time-limit 300
run backend_cases.py --lib "$lib" --time-limit 500
run ../CPU/families.py --lib "$lib" --device cuda --dtype bf16 --time-limit 500
run ../CPU/flex_matrix.py --lib "$lib" --device cuda --count 400 --lengthen 4 --time-limit 400
run ../CPU/flash_matrix.py --lib "$lib" --device cuda --count 400 --lengthen 3 --time-limit 400
run sanitize.py --lib "$lib"
exit $bad
