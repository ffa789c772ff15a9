// Gradients have no plans yet: whoever is asked for one says so.
//
// RUN: attn-opt %s --attn-plan=target=sm_90a --verify-diagnostics
// RUN: attn-opt %s --attn-print-plans=target=sm_90a --verify-diagnostics
// RUN: attn-opt %s --attn-cpu --verify-diagnostics
// RUN: attn-opt %s --attn-sm80 --verify-diagnostics
// RUN: not attn-compile %s --target=sm_90a --emit=ptx 2>&1 | FileCheck %s

// CHECK: error: 'attn.attention_backward' op has no kernels yet, wanted attn.attention only: convert-attn-to-linalg has its definition
!q = tensor<1x1x?x64xf16>
!l = tensor<1x1x?xf32>
func.func @backward(%q: !q, %k: !q, %v: !q, %o: !q, %lse: !l, %do: !q) -> (!q, !q, !q) {
  // expected-error @+1 {{'attn.attention_backward' op has no kernels yet, wanted attn.attention only: convert-attn-to-linalg has its definition}}
  %dq, %dk, %dv = attn.attention_backward %q, %k, %v, %o, %lse, %do
    : (!q, !q, !q, !q, !l, !q) -> (!q, !q, !q)
  return %dq, %dk, %dv : !q, !q, !q
}
