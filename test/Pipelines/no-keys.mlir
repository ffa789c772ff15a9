// Without a key there are no states of blocks to find, and no kernel that finds them:
// the manifest has the others.
// RUN: attn-compile %s --target=sm_80 --dump-to=%t-80 -o %t.attn
// RUN: FileCheck %s < %t-80/9-manifest.json
// RUN: attn-compile %s --target=sm_90a --dump-to=%t-90 -o %t.attn
// RUN: FileCheck %s < %t-90/9-manifest.json
// CHECK-NOT: _block_states"
// CHECK: "entry": "attention_block_lists"
// CHECK: "entry": "attention"
// RUN: attn-compile %s --target=sm_80 --backward --dump-to=%t-b80 -o %t.attn
// RUN: FileCheck %s --check-prefix=BACK < %t-b80/9-manifest.json
// RUN: attn-compile %s --target=sm_90a --backward --dump-to=%t-b90 -o %t.attn
// RUN: FileCheck %s --check-prefix=BACK < %t-b90/9-manifest.json
// BACK-NOT: _block_states"
// BACK: "entry": "attention_backward_d_query"
// BACK: "entry": "attention_backward_d_key_value"

!q = tensor<?x?x641x64xbf16>
!k = tensor<?x?x0x64xbf16>
!flags = tensor<?x?xi1>

func.func @attention(%q: !q, %k: !k, %v: !k, %flags: !flags) -> (!q, tensor<?x?x641xf32>) {
  %o, %lse = attn.attention %q, %k, %v captures(%flags) {variants = [#attn.causal]}
    mask(%b: i32, %h: i32, %i: i32, %j: i32, %c: !flags) {
      %m = attn.capture_load %c[%i, %j] : !flags
      attn.yield %m : i1
    }
    : (!q, !k, !k, !flags) -> (!q, tensor<?x?x641xf32>)
  return %o, %lse : !q, tensor<?x?x641xf32>
}
