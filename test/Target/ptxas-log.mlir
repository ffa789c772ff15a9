// What ptxas says is kept, and said.
// RUN: attn-compile %s --ptxas=%S/Inputs/spilling-ptxas --dump-to=%t -o %t.attn 2>&1 | FileCheck %s --check-prefix=WARN
// RUN: FileCheck %s --check-prefix=KEPT < %t/9-manifest.json
// WARN: warning: kernel 'fits' spills: 88 bytes of stores, 72 bytes of loads, with 255 registers
// WARN: warning: kernel 'fits': ptxas warning : Value of threads per SM for entry fits is out of range.
// KEPT: "cubin_bytes": 5
// KEPT: "registers": 255
// KEPT: "spill_store_bytes": 88
// KEPT: "spill_load_bytes": 72

// A kernel that ptxas serialized is not what the plan promised.
// RUN: rm -f %t.serial && not attn-compile %s --ptxas=%S/Inputs/serializing-ptxas -o %t.serial 2>&1 | FileCheck %s --check-prefix=SERIAL
// RUN: not ls %t.serial
// SERIAL: error: plan #attn.plan<{{.*}}> cannot be kept: ptxas info    : (C7510) Potential Performance Loss

// On request it is an error, and then there is no file.
// RUN: rm -f %t.strict && not attn-compile %s --ptxas=%S/Inputs/spilling-ptxas --strict -o %t.strict 2>&1 | FileCheck %s --check-prefix=STRICT
// RUN: not ls %t.strict
// STRICT: error: kernel 'fits' spills: 88 bytes of stores
// STRICT: error: kernel 'fits': ptxas warning : Value of threads per SM

// RUN: not attn-compile %s --ptxas=%S/Inputs/failing-ptxas -o %t.strict 2>&1 | FileCheck %s --check-prefix=FATAL
// FATAL: error: {{.*}}failing-ptxas failed
// FATAL: ptxas fatal   : Unresolved extern function 'f'

// No assembler: PTX goes into the artifact; a cubin is refused.
// RUN: not attn-compile %s --emit=cubin --ptxas=%t.none 2>&1 | FileCheck %s --check-prefix=NONE
// RUN: not env -u CUDA_HOME -u CUDA_PATH -u CUDAToolkit_ROOT PATH=/nowhere %attn_tools_dir/attn-compile %s --emit=cubin 2>&1 | FileCheck %s --check-prefix=PATH
// NONE: error: '{{.*}}none' is neither a ptxas nor a CUDA Toolkit with one: a cubin needs the CUDA Toolkit, PTX does not
// PATH: error: no ptxas on the PATH: a cubin needs the CUDA Toolkit, PTX does not

func.func @fits(%q: tensor<?x?x?x64xbf16>, %k: tensor<?x?x?x64xbf16>, %v: tensor<?x?x?x64xbf16>) -> tensor<?x?x?x64xbf16> {
  %o, %lse = attn.attention %q, %k, %v {plan = #attn.plan<target = sm_80, block_q = 64, block_k = 64, warps = 4, stages = 2>}
    : (tensor<?x?x?x64xbf16>, tensor<?x?x?x64xbf16>, tensor<?x?x?x64xbf16>) -> (tensor<?x?x?x64xbf16>, tensor<?x?x?xf32>)
  return %o : tensor<?x?x?x64xbf16>
}
