// RUN: attn-opt %s --split-input-file --attn-recompute --verify-diagnostics

!t = tensor<1x1x?x64xf16>
!l = tensor<1x1x?xf32>
func.func @no_plan(%q: !t, %l: !l) -> !t {
  // expected-error @below {{'attn.attention_backward' op has no plan, which decides what its lanes can hold: run attn-plan first}}
  %dq, %dk, %dv = attn.attention_backward %q, %q, %q, %q, %l, %q : (!t, !t, !t, !t, !l, !t) -> (!t, !t, !t)
  return %dq : !t
}

// -----

!t = tensor<1x1x?x64xf16>
!l = tensor<1x1x?xf32>
#plan = #attn.plan<target = sm_90a, block_q = 128, block_k = 64, warps = 8>
#any = #attn.numerics<deterministic = false>
func.func @once_for_one_gradient(%q: !t, %l: !l) -> !t {
  // expected-error @below {{'attn.attention_backward' op cannot recompute scores once: nobody asks for both d_query and d_key}}
  %dq, %dk, %dv = attn.attention_backward %q, %q, %q, %q, %l, %q {plan = #plan, numerics = #any, recompute = #attn.recompute<scores = once>} : (!t, !t, !t, !t, !l, !t) -> (!t, !t, !t)
  return %dq : !t
}

// -----

!t = tensor<1x1x?x192xf16>
!l = tensor<1x1x?xf32>
#plan = #attn.plan<target = sm_90a, block_q = 64, block_k = 64, warps = 4>
func.func @twice_with_many_columns(%q: !t, %l: !l) -> (!t, !t) {
  // expected-error @below {{'attn.attention_backward' op cannot recompute scores twice: d_key and d_value have 384 columns, more than the 256 of which lanes have registers for both sums}}
  %dq, %dk, %dv = attn.attention_backward %q, %q, %q, %q, %l, %q {plan = #plan, recompute = #attn.recompute<scores = twice>} : (!t, !t, !t, !t, !l, !t) -> (!t, !t, !t)
  return %dq, %dk : !t, !t
}

// -----

!t = tensor<1x1x?x64xf16>
!l = tensor<1x1x?xf32>
#plan = #attn.plan<target = sm_90a, block_q = 128, block_k = 64, warps = 8, scores = once>
func.func @planned_once_in_order(%q: !t, %l: !l) -> (!t, !t) {
  // expected-error @below {{'attn.attention_backward' op cannot recompute scores once: sums are deterministic, and those of d_query have no order}}
  %dq, %dk, %dv = attn.attention_backward %q, %q, %q, %q, %l, %q {plan = #plan} : (!t, !t, !t, !t, !l, !t) -> (!t, !t, !t)
  return %dq, %dk : !t, !t
}

// -----

!t = tensor<1x1x?x64xf16>
!l = tensor<1x1x?xf32>
#plan = #attn.plan<target = sm_90a, block_q = 128, block_k = 64, warps = 8, scores = twice>
func.func @planned_otherwise(%q: !t, %l: !l) -> (!t, !t) {
  // expected-error @below {{'attn.attention_backward' op recomputes scores thrice, its plan twice: expected both to say the same, or one to leave it open}}
  %dq, %dk, %dv = attn.attention_backward %q, %q, %q, %q, %l, %q {plan = #plan, recompute = #attn.recompute<scores = thrice>} : (!t, !t, !t, !t, !l, !t) -> (!t, !t, !t)
  return %dq, %dk : !t, !t
}
