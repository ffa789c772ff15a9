// RUN: attn-opt %s --attn-plan=target=sm_80 | FileCheck %s
// RUN: not attn-opt %s --attn-plan=target=cpu 2>&1 | FileCheck %s --check-prefix=CPU
// RUN: not attn-opt %s --attn-plan=target=tpu 2>&1 | FileCheck %s --check-prefix=TARGET
// RUN: not attn-opt %s --attn-plan='plan="#attn.plan<target = sm_80, block_q = 64>"' 2>&1 | FileCheck %s --check-prefix=TEXT
// RUN: not attn-opt %s --attn-plan='plan="#attn.causal"' 2>&1 | FileCheck %s --check-prefix=KIND

// CPU: 'attn.attention' op plan is for sm_80, the target is cpu
// TARGET: got target 'tpu', expected cpu, sm_80 or sm_90a
// TEXT: got plan '#attn.plan<target = sm_80, block_q = 64>', expected #attn.plan<…>: struct is missing required parameter: block_k
// KIND: got plan '#attn.causal', expected #attn.plan<…>

// The operation's own plan is kept.
// CHECK-LABEL: func.func @own
// CHECK: plan = #attn.plan<target = sm_80, block_q = 32, block_k = 16, warps = 2, stages = 4>
func.func @own(%q: tensor<1x1x?x64xf16>, %k: tensor<1x1x?x64xf16>)
    -> tensor<1x1x?x64xf16> {
  %o, %lse = attn.attention %q, %k, %k
    {plan = #attn.plan<target = sm_80, block_q = 32, block_k = 16, warps = 2, stages = 4>}
    : (tensor<1x1x?x64xf16>, tensor<1x1x?x64xf16>, tensor<1x1x?x64xf16>)
      -> (tensor<1x1x?x64xf16>, tensor<1x1x?xf32>)
  return %o : tensor<1x1x?x64xf16>
}
