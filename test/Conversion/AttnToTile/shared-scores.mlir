// What score and pullback both compute, a kernel computes once for each element.
//
// RUN: attn-opt %s --attn-recompute --convert-attn-to-tile --tile-expand-scores | FileCheck %s

#plan = #attn.plan<target = cpu, block_q = 16, block_k = 32>
!t = tensor<2x4x?x64xf32>
!l = tensor<2x4x?xf32>

// Scores are multiplied by 1 on both ways, or on none.
// CHECK-LABEL: func.func @scale_of_one(
// CHECK: tile.kernel @scale_of_one_d_query
// CHECK: math.tanh
// CHECK-NOT: math.tanh
// CHECK: tile.kernel @scale_of_one_d_key_value
// CHECK: math.tanh
// CHECK-NOT: math.tanh
// CHECK: return
func.func @scale_of_one(%q: !t, %k: !t, %v: !t, %o: !t, %lse: !l, %do: !t) -> (!t, !t, !t) {
  %dq, %dk, %dv = attn.attention_backward %q, %k, %v, %o, %lse, %do {plan = #plan, scale = 1.0}
    score(%x: f32, %b: i32, %h: i32, %i: i32, %j: i32) {
      %y = math.tanh %x : f32
      attn.yield %y : f32
    }
    pullback(%dy: f32, %x: f32, %b: i32, %h: i32, %i: i32, %j: i32) {
      %y = math.tanh %x : f32
      %y2 = arith.mulf %y, %y : f32
      %e = arith.mulf %dy, %y2 : f32
      %dx = arith.subf %dy, %e : f32
      attn.yield %dx : f32
    } : (!t, !t, !t, !t, !l, !t) -> (!t, !t, !t)
  return %dq, %dk, %dv : !t, !t, !t
}

// A number of each head is read once, before the loop.
// CHECK-LABEL: func.func @element_of_a_head(
// CHECK: tile.kernel @element_of_a_head_d_query
// CHECK: memref.load
// CHECK-NOT: memref.load
// CHECK: scf.for
// CHECK: math.tanh
// CHECK-NOT: math.tanh
// CHECK: tile.kernel @element_of_a_head_d_key_value
// CHECK: memref.load
// CHECK-NOT: memref.load
// CHECK: scf.for
// CHECK: math.tanh
// CHECK-NOT: math.tanh
// CHECK: return
func.func @element_of_a_head(%q: !t, %k: !t, %v: !t, %o: !t, %lse: !l, %do: !t, %c: tensor<?xf32>) -> (!t, !t, !t) {
  %dq, %dk, %dv = attn.attention_backward %q, %k, %v, %o, %lse, %do captures(%c) {plan = #plan}
    score(%x: f32, %b: i32, %h: i32, %i: i32, %j: i32, %s: tensor<?xf32>) {
      %w = attn.capture_load %s[%h] : tensor<?xf32>
      %z = arith.addf %x, %w : f32
      %y = math.tanh %z : f32
      attn.yield %y : f32
    }
    pullback(%dy: f32, %x: f32, %b: i32, %h: i32, %i: i32, %j: i32, %s: tensor<?xf32>) {
      %w = attn.capture_load %s[%h] : tensor<?xf32>
      %z = arith.addf %x, %w : f32
      %y = math.tanh %z : f32
      %y2 = arith.mulf %y, %y : f32
      %e = arith.mulf %dy, %y2 : f32
      %dx = arith.subf %dy, %e : f32
      attn.yield %dx : f32
    } : (!t, !t, !t, !t, !l, !t, tensor<?xf32>) -> (!t, !t, !t)
  return %dq, %dk, %dv : !t, !t, !t
}

// The gradient of a bias is summed over batch entries and heads, which share
// what is read of it: once, before the loop.
// CHECK-LABEL: func.func @element_of_a_pair(
// CHECK: tile.kernel @element_of_a_pair_d_c0
// CHECK: tile.gather %{{.*}} : memref<?x?xf32
// CHECK: scf.for
// CHECK-NOT: tile.gather %{{.*}} : memref<?x?xf32
// CHECK: math.tanh
// CHECK-NOT: tile.gather %{{.*}} : memref<?x?xf32
// CHECK-NOT: math.tanh
// CHECK: return
func.func @element_of_a_pair(%q: !t, %k: !t, %v: !t, %o: !t, %lse: !l, %do: !t, %c: tensor<?x?xf32>) -> (tensor<?x?xf32>) {
  %dq, %dk, %dv, %dc = attn.attention_backward %q, %k, %v, %o, %lse, %do captures(%c) {plan = #plan, grad_captures = array<i64: 0>}
    score(%x: f32, %b: i32, %h: i32, %i: i32, %j: i32, %s: tensor<?x?xf32>) {
      %w = attn.capture_load %s[%i, %j] : tensor<?x?xf32>
      %z = arith.addf %x, %w : f32
      %y = math.tanh %z : f32
      attn.yield %y : f32
    }
    pullback(%dy: f32, %x: f32, %b: i32, %h: i32, %i: i32, %j: i32, %s: tensor<?x?xf32>) {
      %w = attn.capture_load %s[%i, %j] : tensor<?x?xf32>
      %z = arith.addf %x, %w : f32
      %y = math.tanh %z : f32
      %y2 = arith.mulf %y, %y : f32
      %e = arith.mulf %dy, %y2 : f32
      %dx = arith.subf %dy, %e : f32
      attn.capture_add %dx, %s[%i, %j] : tensor<?x?xf32>
      attn.yield %dx : f32
    } : (!t, !t, !t, !t, !l, !t, tensor<?x?xf32>) -> (!t, !t, !t, tensor<?x?xf32>)
  return %dc : tensor<?x?xf32>
}
