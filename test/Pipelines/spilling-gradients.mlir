// Gradients for sm_90a may spill 2 KB before other tiles are tried, for sm_80 288
// bytes: there nobody has measured what the others take.
//
// RUN: rm -f %t.* && env ENTRY=own_backward_d_key_value COUNT=%t.some SPILLS="300 0" attn-compile %s --backward --target=sm_90a --ptxas=%S/Inputs/counting-ptxas -o %t.attn 2>&1 | FileCheck %s --check-prefix=SOME --implicit-check-not="is taken"
// RUN: env ENTRY=own_backward_d_key_value COUNT=%t.many SPILLS="3000 0" attn-compile %s --backward --target=sm_90a --ptxas=%S/Inputs/counting-ptxas -o %t.attn 2>&1 | FileCheck %s --check-prefix=MANY --implicit-check-not=warning
// RUN: env ENTRY=own_backward_d_key_value COUNT=%t.80 SPILLS="300 0" attn-compile %s --backward --target=sm_80 --ptxas=%S/Inputs/counting-ptxas -o %t.attn 2>&1 | FileCheck %s --check-prefix=SM80 --implicit-check-not=warning
//
// SOME: warning: kernel {{.*}} spills: 300 bytes of stores
// MANY: remark: plan {{.*}} spills {{[0-9]+}} bytes; {{.*}} is taken, which spills nothing
// SM80: remark: plan {{.*}} spills {{[0-9]+}} bytes; {{.*}} is taken, which spills nothing

!q = tensor<2x4x1024x64xbf16>
!l = tensor<2x4x1024xf32>
func.func @own(%q: !q, %k: !q, %v: !q) -> (!q, !l) {
  %o, %lse = attn.attention %q, %k, %v : (!q, !q, !q) -> (!q, !l)
  return %o, %lse : !q, !l
}
