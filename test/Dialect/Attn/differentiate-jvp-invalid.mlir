// RUN: attn-opt %s --attn-differentiate=mode=jvp --split-input-file --verify-diagnostics
// RUN: echo "module {}" | not attn-opt - --attn-differentiate="mode=jvp lse-gradient=true" 2>&1 | FileCheck %s
// CHECK: attn-differentiate got lse-gradient with mode=jvp, wanted it with mode=vjp

!q = tensor<1x1x4x8xf32>
!l = tensor<1x1x4xf32>
func.func @computed(%q: !q, %k: !q) -> !q {
  %v = arith.addf %q, %k : !q
  // expected-error @+1 {{'attn.attention' op has a value that is computed, wanted an argument of the function: only attention is differentiated}}
  %o, %lse = attn.attention %q, %k, %v : (!q, !q, !q) -> (!q, !l)
  return %o : !q
}

// -----

!q = tensor<1x1x4x8xf32>
!l = tensor<1x1x4xf32>
func.func @moving_capture(%q: !q, %k: !q) -> !q {
  // expected-error @+1 {{'attn.attention' op has a capture #0 that is made of its query, key or value, wanted one that does not move with them}}
  %o, %lse = attn.attention %q, %k, %k captures(%k)
    score(%x: f32, %b: i32, %h: i32, %i: i32, %j: i32, %t: tensor<1x1x4x8xf32>) {
      %c = attn.capture_load %t[%b, %h, %j, %b] : tensor<1x1x4x8xf32>
      %y = arith.addf %x, %c : f32
      attn.yield %y : f32
    }
    : (!q, !q, !q, !q) -> (!q, !l)
  return %o : !q
}

// -----

!q = tensor<1x1x4x8xf32>
!l = tensor<1x1x4xf32>
func.func @no_derivative(%q: !q, %k: !q) -> !q {
  %o, %lse = attn.attention %q, %k, %k
    score(%x: f32, %b: i32, %h: i32, %i: i32, %j: i32) {
      %n = arith.truncf %x : f32 to f16
      // expected-error @+1 {{'arith.bitcast' op in a score region has no known derivative: wanted operations that attn-differentiate lists}}
      %e = arith.bitcast %n : f16 to bf16
      %y = arith.extf %e : bf16 to f32
      attn.yield %y : f32
    }
    : (!q, !q, !q) -> (!q, !l)
  return %o : !q
}

// -----

!q = tensor<1x1x4x8xf32>
!l = tensor<1x1x4xf32>
func.func @taken(%q: !q) -> !q {
  %o, %lse = attn.attention %q, %q, %q : (!q, !q, !q) -> (!q, !l)
  return %o : !q
}
// expected-error @+1 {{'@taken_jvp' is there already, wanted the name for what is made of '@taken'}}
func.func @taken_jvp() {
  return
}
