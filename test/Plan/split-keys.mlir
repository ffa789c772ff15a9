// A plan with split_keys, of attention and of d_query.
// RUN: attn-opt %s --attn-plan='target=sm_90a plan="#attn.plan<target = sm_90a, block_q = 64, block_k = 128, warps = 4, stages = 2, split_keys = 16>"' | FileCheck %s
// RUN: attn-opt %s --attn-plan='target=cpu plan="#attn.plan<target = cpu, block_q = 16, block_k = 32, split_keys = 1>"' | FileCheck %s --check-prefix=ONE
// RUN: attn-compile %s --target=sm_80 --emit=tile --plan="query_length <= 64 -> #attn.plan<target = sm_80, block_q = 64, block_k = 64, warps = 4, split_keys = 8>; #attn.plan<target = sm_80, block_q = 64, block_k = 64, warps = 4>" | FileCheck %s --check-prefix=RULE
// RUN: attn-opt %s --attn-differentiate --attn-plan='target=sm_80 plan="#attn.plan<target = sm_80, block_q = 64, block_k = 64, warps = 4, split_keys = 8>"' | FileCheck %s --check-prefix=GRADIENT
// RUN: not attn-opt %s --attn-differentiate=mode=jvp --attn-plan='target=cpu plan="#attn.plan<target = cpu, block_q = 16, block_k = 32, split_keys = 2>"' -o %t 2>&1 | FileCheck %s --check-prefix=TANGENT

// CHECK: plan = #attn.plan<target = sm_90a, block_q = 64, block_k = 128, warps = 4, stages = 2, split_keys = 16>
// ONE: plan = #attn.plan<target = cpu, block_q = 16, block_k = 32>
// RULE: tile.kernel @{{.*}}_parts plan({{.*}}, split_keys = 8>)
// RULE: tile.kernel @{{.*}}_merge plan(#attn.plan<target = sm_80, block_q = 64, block_k = 64, split_keys = 8>)
// RULE: tile.kernel @{{.*}} plan(#attn.plan<target = sm_80, block_q = 64, block_k = 64, warps = 4>)
// GRADIENT: attn.attention_backward {{.*}} split_keys = 8>
// TANGENT: error: 'attn.attention_jvp' op plan is not feasible: split_keys = 2, tangents take 1: only attention and its gradients merge parts

!t = tensor<?x?x?x64xbf16>
!l = tensor<?x?x?xf32>

func.func @f(%q: !t, %k: !t, %v: !t) -> (!t, !l) {
  %o, %lse = attn.attention %q, %k, %v : (!t, !t, !t) -> (!t, !l)
  return %o, %lse : !t, !l
}
