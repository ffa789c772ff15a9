// RUN: attn-opt %s | attn-opt | FileCheck %s
// RUN: attn-opt %s --mlir-print-op-generic | attn-opt | FileCheck %s

!q = tensor<2x4x?x64xf16>
!k = tensor<2x2x?x64xf16>
!l = tensor<2x4x?xf32>

// CHECK-LABEL: func.func @smallest
// CHECK: %[[DQ:.*]], %[[DK:.*]], %[[DV:.*]] = attn.attention_backward %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} : (tensor<2x4x?x64xf16>,
// CHECK: return %[[DQ]], %[[DK]], %[[DV]]
func.func @smallest(%q: !q, %k: !k, %v: !k, %o: !q, %lse: !l, %do: !q) -> (!q, !k, !k) {
  %dq, %dk, %dv = attn.attention_backward %q, %k, %v, %o, %lse, %do
    : (!q, !k, !k, !q, !l, !q) -> (!q, !k, !k)
  return %dq, %dk, %dv : !q, !k, !k
}

// CHECK-LABEL: func.func @everything
// CHECK: %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} = attn.attention_backward %{{.*}} d_lse(%{{.*}}) sink(%{{.*}}) dropout(%{{.*}}, %{{.*}}) captures(%{{.*}}, %{{.*}}, %{{.*}}) {dropout_p = 1.000000e-01 : f64, grad_captures = array<i64: 0, 2>
// CHECK-NEXT: score(%{{.*}}: f32, %{{.*}}: i32, %{{.*}}: i32, %{{.*}}: i32, %{{.*}}: i32, %{{.*}}: tensor<?x?xbf16>, %{{.*}}: i32, %{{.*}}: f32) {
// CHECK: mask(
// CHECK: pullback(%[[DY:.*]]: f32, %{{.*}}: f32, %{{.*}}: i32, %{{.*}}: i32, %[[I:.*]]: i32, %[[J:.*]]: i32, %[[T:.*]]: tensor<?x?xbf16>, %{{.*}}: i32, %[[C:.*]]: f32) {
// CHECK-NEXT: attn.capture_add %[[DY]], %[[T]][%[[I]], %[[J]]] : tensor<?x?xbf16>
// CHECK-NEXT: attn.capture_add %[[DY]], %[[C]][] : f32
// CHECK-NEXT: attn.yield %[[DY]] : f32
// CHECK: -> (tensor<2x4x?x64xf16>, tensor<2x2x?x64xf16>, tensor<2x2x?x64xf16>, tensor<4xbf16>, tensor<?x?xbf16>, tensor<f32>)
func.func @everything(%q: !q, %k: !k, %v: !k, %o: !q, %lse: !l, %do: !q, %dlse: !l, %s: tensor<4xbf16>,
                      %a: i32, %bias: tensor<?x?xbf16>, %c: f32) -> (tensor<?x?xbf16>, tensor<f32>) {
  %dq, %dk, %dv, %ds, %db, %dc = attn.attention_backward %q, %k, %v, %o, %lse, %do
      d_lse(%dlse) sink(%s) dropout(%a, %a) captures(%bias, %a, %c)
      {dropout_p = 0.1, grad_captures = array<i64: 0, 2>, scale = 0.5, sorted_captures = array<i64>,
       numerics = #attn.numerics<deterministic = false>}
    score(%x: f32, %b: i32, %h: i32, %i: i32, %j: i32, %t: tensor<?x?xbf16>, %n: i32, %e: f32) {
      %u = attn.capture_load %t[%i, %j] : tensor<?x?xbf16>
      %w = arith.extf %u : bf16 to f32
      %z = arith.addf %x, %w : f32
      %y = arith.addf %z, %e : f32
      attn.yield %y : f32
    }
    mask(%b: i32, %h: i32, %i: i32, %j: i32, %t: tensor<?x?xbf16>, %n: i32, %e: f32) {
      %m = arith.cmpi sle, %j, %n : i32
      attn.yield %m : i1
    }
    pullback(%dy: f32, %x: f32, %b: i32, %h: i32, %i: i32, %j: i32, %t: tensor<?x?xbf16>, %n: i32, %e: f32) {
      attn.capture_add %dy, %t[%i, %j] : tensor<?x?xbf16>
      attn.capture_add %dy, %e[] : f32
      attn.yield %dy : f32
    }
    : (!q, !k, !k, !q, !l, !q, !l, tensor<4xbf16>, i32, i32, tensor<?x?xbf16>, i32, f32)
      -> (!q, !k, !k, tensor<4xbf16>, tensor<?x?xbf16>, tensor<f32>)
  return %db, %dc : tensor<?x?xbf16>, tensor<f32>
}
