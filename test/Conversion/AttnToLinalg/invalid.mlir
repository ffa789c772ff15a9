// RUN: attn-opt %s --convert-attn-to-linalg --split-input-file --verify-diagnostics

!q = tensor<1x1x4x8xf32>
func.func @variants(%q: !q) -> !q {
  // expected-error @+1 {{'attn.attention' op has variants: run attn-expand-variants first}}
  %o, %lse = attn.attention %q, %q, %q {variants = [#attn.causal]}
    : (!q, !q, !q) -> (!q, tensor<1x1x4xf32>)
  return %o : !q
}

// -----

!q = tensor<1x1x4x8xf32>
module {
  %q = tensor.empty() : !q
  // expected-error @+1 {{'attn.attention' op wants to be in a func.func to become linalg}}
  %o, %lse = attn.attention %q, %q, %q : (!q, !q, !q) -> (!q, tensor<1x1x4xf32>)
}

// -----

!q = tensor<1x1x4x8xf32>
func.func @callee(%q: !q) -> !q {
  %o, %lse = attn.attention %q, %q, %q : (!q, !q, !q) -> (!q, tensor<1x1x4xf32>)
  return %o : !q
}
func.func @caller(%q: !q) -> !q {
  // expected-error @+1 {{refers to '@callee', whose results become f64; wanted a func.call, got 'func.constant'}}
  %f = func.constant @callee : (!q) -> !q
  %r = call_indirect %f(%q) : (!q) -> !q
  return %r : !q
}
