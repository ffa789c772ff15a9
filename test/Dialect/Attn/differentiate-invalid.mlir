// RUN: attn-opt %s --attn-differentiate --split-input-file --verify-diagnostics

!q = tensor<1x1x4x8xf32>
!l = tensor<1x1x4xf32>
func.func @no_derivative(%q: !q, %k: !q, %v: !q, %c: f16) -> (!q, !l) {
  %o, %lse = attn.attention %q, %k, %v captures(%c)
    score(%x: f32, %b: i32, %h: i32, %i: i32, %j: i32, %d: f16) {
      // expected-error @+1 {{'arith.bitcast' op in a score region has no known derivative: wanted operations that attn-differentiate lists}}
      %e = arith.bitcast %d : f16 to bf16
      %f = arith.extf %e : bf16 to f32
      %y = arith.addf %x, %f : f32
      attn.yield %y : f32
    }
    : (!q, !q, !q, f16) -> (!q, !l)
  return %o, %lse : !q, !l
}

// -----

!q = tensor<1x1x4x8xf32>
!l = tensor<1x1x4xf32>
func.func @computed(%q: !q, %k: !q, %v: !q, %c: f32) -> (!q, !l) {
  %d = arith.mulf %c, %c : f32
  // expected-error @+1 {{'attn.attention' op has a capture #0 that is computed, wanted an argument of the function: only attention is differentiated}}
  %o, %lse = attn.attention %q, %k, %v captures(%d)
    score(%x: f32, %b: i32, %h: i32, %i: i32, %j: i32, %e: f32) {
      %y = arith.mulf %x, %e : f32
      attn.yield %y : f32
    }
    : (!q, !q, !q, f32) -> (!q, !l)
  return %o, %lse : !q, !l
}

// -----

!q = tensor<1x1x4x8xf32>
!l = tensor<1x1x4xf32>
func.func @shared(%q: !q, %v: !q) -> (!q, !l) {
  // expected-error @+1 {{'attn.attention' op has a key that is another operand too, wanted an argument for each: gradients are not added up}}
  %o, %lse = attn.attention %q, %q, %v : (!q, !q, !q) -> (!q, !l)
  return %o, %lse : !q, !l
}

// -----

!q = tensor<1x1x4x8xf32>
!l = tensor<1x1x4xf32>
// expected-error @+1 {{'func.func' op result #1 is not a result of the attention: only attention is differentiated}}
func.func @result(%q: !q, %k: !q, %v: !q) -> (!q, !q) {
  %o, %lse = attn.attention %q, %k, %v : (!q, !q, !q) -> (!q, !l)
  return %o, %q : !q, !q
}

// -----

!q = tensor<1x1x4x8xf32>
!l = tensor<1x1x4xf32>
// expected-error @+1 {{'func.func' op result #1 is returned twice, wanted once}}
func.func @twice(%q: !q, %k: !q, %v: !q) -> (!q, !q) {
  %o, %lse = attn.attention %q, %k, %v : (!q, !q, !q) -> (!q, !l)
  return %o, %o : !q, !q
}

// -----

!q = tensor<1x1x4x8xf32>
!l = tensor<1x1x4xf32>
func.func @two(%q: !q, %k: !q, %v: !q) -> (!q, !l) {
  // expected-note @+1 {{first attention is here}}
  %o, %lse = attn.attention %q, %k, %v : (!q, !q, !q) -> (!q, !l)
  // expected-error @+1 {{'attn.attention' op is the second attention of its function, wanted one}}
  %p, %lse2 = attn.attention %o, %k, %v : (!q, !q, !q) -> (!q, !l)
  return %p, %lse2 : !q, !l
}

// -----

!q = tensor<1x1x4x8xf32>
!l = tensor<1x1x4xf32>
func.func @nested(%q: !q, %k: !q, %v: !q, %c: i1) -> !q {
  %r = scf.if %c -> !q {
    // expected-error @+1 {{'attn.attention' op wants to be in the only block of a func.func to be differentiated}}
    %o, %lse = attn.attention %q, %k, %v : (!q, !q, !q) -> (!q, !l)
    scf.yield %o : !q
  } else {
    scf.yield %q : !q
  }
  return %r : !q
}

// -----

!q = tensor<1x1x4x8xf32>
!l = tensor<1x1x4xf32>
func.func @f(%q: !q, %k: !q, %v: !q) -> (!q, !l) {
  %o, %lse = attn.attention %q, %k, %v : (!q, !q, !q) -> (!q, !l)
  return %o, %lse : !q, !l
}
// expected-error @+1 {{'@f_backward' is there already, wanted the name for what is made of '@f'}}
func.func private @f_backward()
