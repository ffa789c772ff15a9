// RUN: attn-opt %s --attn-differentiate=mode=jvp --split-input-file | FileCheck %s

!q = tensor<2x4x?x64xf16>
!k = tensor<2x2x?x64xf16>
!l = tensor<2x4x?xf32>

// The forward stays; there are no gradients. All results are there, whatever
// the function returns.
// CHECK-LABEL: func.func @plain(
// CHECK: attn.attention
// CHECK-NOT: @plain_forward
// CHECK-NOT: @plain_backward
// CHECK-LABEL: func.func @plain_jvp(
// CHECK-SAME: %[[Q:.*]]: tensor<2x4x?x64xf16>, %[[K:.*]]: tensor<2x2x?x64xf16>, %[[V:.*]]: tensor<2x2x?x64xf16>, %[[TQ:.*]]: tensor<2x4x?x64xf16>, %[[TK:.*]]: tensor<2x2x?x64xf16>, %[[TV:.*]]: tensor<2x2x?x64xf16>) -> (tensor<2x4x?x64xf16>, tensor<2x4x?xf32>, tensor<2x4x?x64xf16>, tensor<2x4x?xf32>) {
// CHECK-NEXT: %[[R:.*]], %[[LSE:.*]], %[[TO:.*]], %[[TLSE:.*]] = attn.attention_jvp %[[Q]], %[[K]], %[[V]], %[[TQ]], %[[TK]], %[[TV]] {numerics = #attn.numerics<fast_math = false>, scale = 5.000000e-01 : f64} : (
// CHECK-NEXT: return %[[R]], %[[LSE]], %[[TO]], %[[TLSE]]
func.func @plain(%q: !q, %k: !k, %v: !k) -> !q {
  %o, %lse = attn.attention %q, %k, %v
    {scale = 0.5, numerics = #attn.numerics<fast_math = false>,
     plan = #attn.plan<target = cpu, block_q = 8, block_k = 8>}
    : (!q, !k, !k) -> (!q, !l)
  return %o : !q
}

// -----

!q = tensor<1x1x4x8xf32>
!l = tensor<1x1x4xf32>

// Variants are written out; captures and the sink do not move.
// CHECK-LABEL: func.func @variants_jvp(
// CHECK: attn.attention_jvp {{.*}} sink(%{{.*}}) captures(%{{.*}})
// CHECK: score(
// CHECK: mask(
// CHECK: pushforward(%[[TX:.*]]: f32, %[[X:.*]]: f32,
// CHECK: %[[TANH:.*]] = math.tanh
// CHECK-NOT: attn.capture_load
// CHECK-NOT: attn.capture_add
// CHECK: attn.yield %{{.*}} : f32
func.func @variants(%q: !q, %k: !q, %v: !q, %s: tensor<1xf32>, %bias: tensor<4x4xf32>) -> (!q, !l) {
  %o, %lse = attn.attention %q, %k, %v sink(%s) captures(%bias)
    {variants = [#attn.causal, #attn.softcap<2.0 : f32>]}
    score(%x: f32, %b: i32, %h: i32, %i: i32, %j: i32, %t: tensor<4x4xf32>) {
      %c = attn.capture_load %t[%i, %j] : tensor<4x4xf32>
      %y = arith.addf %x, %c : f32
      attn.yield %y : f32
    }
    : (!q, !q, !q, tensor<1xf32>, tensor<4x4xf32>) -> (!q, !l)
  return %o, %lse : !q, !l
}

// -----

!q = tensor<1x1x4x8xf32>
!l = tensor<1x1x4xf32>

// One argument for all three has one tangent; a computed capture may stay.
// CHECK-LABEL: func.func @one_jvp(
// CHECK-SAME: %[[Q:.*]]: tensor<1x1x4x8xf32>, %{{.*}}: f32, %[[T:.*]]: tensor<1x1x4x8xf32>) ->
// CHECK: attn.attention_jvp %[[Q]], %[[Q]], %[[Q]], %[[T]], %[[T]], %[[T]] captures(
func.func @one(%q: !q, %c: f32) -> !q {
  %d = arith.mulf %c, %c : f32
  %o, %lse = attn.attention %q, %q, %q captures(%d)
    score(%x: f32, %b: i32, %h: i32, %i: i32, %j: i32, %t: f32) {
      %y = arith.addf %x, %t : f32
      attn.yield %y : f32
    }
    : (!q, !q, !q, f32) -> (!q, !l)
  return %o : !q
}
