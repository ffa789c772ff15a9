// A plan with packed_heads, of attention and of nothing else.
// RUN: attn-opt %s --attn-plan='target=sm_90a plan="#attn.plan<target = sm_90a, block_q = 64, block_k = 128, warps = 4, stages = 2, split_keys = 16, packed_heads = 4>"' | FileCheck %s
// RUN: attn-opt %s --attn-plan='target=cpu plan="#attn.plan<target = cpu, block_q = 16, block_k = 32, packed_heads = 1>"' | FileCheck %s --check-prefix=ONE
// RUN: attn-compile %s --target=sm_80 --emit=tile --plan="query_length <= 16 -> #attn.plan<target = sm_80, block_q = 64, block_k = 64, warps = 4, packed_heads = 4>; #attn.plan<target = sm_80, block_q = 64, block_k = 64, warps = 4>" | FileCheck %s --check-prefix=RULE
// RUN: not attn-opt %s --attn-differentiate --attn-plan='target=sm_80 plan="#attn.plan<target = sm_80, block_q = 64, block_k = 64, warps = 4, packed_heads = 4>"' -o %t 2>&1 | FileCheck %s --check-prefix=GRADIENT
// RUN: not attn-opt %s --attn-differentiate=mode=jvp --attn-plan='target=cpu plan="#attn.plan<target = cpu, block_q = 16, block_k = 32, packed_heads = 2>"' -o %t 2>&1 | FileCheck %s --check-prefix=TANGENT
// RUN: not attn-opt %s --attn-plan='target=sm_80 plan="#attn.plan<target = sm_80, block_q = 128, block_k = 64, warps = 4, packed_heads = 8>"' -o %t 2>&1 | FileCheck %s --check-prefix=GROUP
// RUN: not attn-opt %s --attn-plan='target=sm_80 plan="#attn.plan<target = sm_80, block_q = 16, block_k = 64, warps = 1, packed_heads = 4>"' -o %t 2>&1 | FileCheck %s --check-prefix=ROWS
// RUN: not attn-opt %s --attn-plan='target=cpu plan="#attn.plan<target = cpu, block_q = 16, block_k = 32, packed_heads = 3>"' -o %t 2>&1 | FileCheck %s --check-prefix=CPU

// CHECK: plan = #attn.plan<target = sm_90a, block_q = 64, block_k = 128, warps = 4, stages = 2, split_keys = 16, packed_heads = 4>
// ONE: plan = #attn.plan<target = cpu, block_q = 16, block_k = 32>
// RULE: tile.kernel @{{.*}} plan({{.*}}, packed_heads = 4>)
// RULE: tile.kernel @{{.*}} plan(#attn.plan<target = sm_80, block_q = 64, block_k = 64, warps = 4>)
// GRADIENT: error: 'attn.attention_backward' op plan is not feasible: packed_heads = 4, gradients take 1: only attention itself has tiles of several heads
// TANGENT: error: 'attn.attention_jvp' op plan is not feasible: packed_heads = 2, tangents take 1: only attention itself has tiles of several heads
// GROUP: error: 'attn.attention' op plan is not feasible: packed_heads = 8, 4 query heads share a key head
// ROWS: error: 'attn.attention' op plan is not feasible: block_q = 16 is not a multiple of 32, 4 heads by 8 rows
// CPU: error: 'attn.attention' op plan is not feasible: block_q = 16 is not a multiple of 3, 3 heads

!q = tensor<?x8x?x64xbf16>
!k = tensor<?x2x?x64xbf16>
!l = tensor<?x8x?xf32>

func.func @f(%q: !q, %k: !k, %v: !k) -> (!q, !l) {
  %o, %lse = attn.attention %q, %k, %v : (!q, !k, !k) -> (!q, !l)
  return %o, %lse : !q, !l
}
