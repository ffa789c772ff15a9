// Groups of which each may go through fewer blocks of keys, where it is known how
// many there are: the producer's loops over one or none go away.
// RUN: attn-compile %s --function=small --target=sm_90a --emit=ptx --plan="#attn.plan<target = sm_90a, block_q = 128, block_k = 128, warps = 8, stages = 2>" | FileCheck %s
// RUN: attn-simulate %s --function=small --target=sm_90a --plan="#attn.plan<target = sm_90a, block_q = 128, block_k = 128, warps = 8, stages = 2>" | FileCheck %s --check-prefix=RIGHT
// RUN: attn-simulate %s --function=tail --target=sm_90a --plan="#attn.plan<target = sm_90a, block_q = 128, block_k = 64, warps = 8, stages = 4>" | FileCheck %s --check-prefix=RIGHT
// CHECK: .entry small(
// RIGHT: schedules: error {{.*}}, bound
!q = tensor<1x2x64x128xbf16>
!lse = tensor<1x2x64xf32>
func.func @small(%q: !q, %k: !q, %v: !q) -> (!q, !lse) {
  %o, %lse = attn.attention %q, %k, %v {variants = [#attn.causal]}
    : (!q, !q, !q) -> (!q, !lse)
  return %o, %lse : !q, !lse
}

!r = tensor<1x2x200x128xbf16>
func.func @tail(%q: !r, %k: !r, %v: !r) -> (!r, tensor<1x2x200xf32>) {
  %o, %lse = attn.attention %q, %k, %v : (!r, !r, !r) -> (!r, tensor<1x2x200xf32>)
  return %o, %lse : !r, tensor<1x2x200xf32>
}
