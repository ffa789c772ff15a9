// RUN: attn-opt %s --convert-attn-to-linalg --canonicalize | FileCheck %s
// RUN: attn-opt %s --convert-attn-to-linalg=precision=input --canonicalize | FileCheck %s --check-prefix=INPUT
// RUN: attn-opt %s --convert-attn-to-linalg=precision=saved --canonicalize | FileCheck %s --check-prefix=SAVED

!q = tensor<2x8x5x64xf16>
!k = tensor<2x2x7x64xf16>
!v = tensor<2x2x7x32xf16>
!o = tensor<2x8x5x32xf16>
!l = tensor<2x8x5xf32>

// CHECK-DAG: #[[Q:.*]] = affine_map<(d0, d1, d2, d3, d4, d5) -> (d0, d1, d2, d3, d5)>
// CHECK-DAG: #[[K:.*]] = affine_map<(d0, d1, d2, d3, d4, d5) -> (d0, d1, d4, d5)>
// CHECK-DAG: #[[S:.*]] = affine_map<(d0, d1, d2, d3, d4, d5) -> (d0, d1, d2, d3, d4)>

// Sums over the heads of a group and the queries, in f64; lse and output are
// not read.
// CHECK-LABEL: func.func @definition
// CHECK-SAME: %{{.*}}: tensor<2x8x5x64xf16>, %{{.*}}: tensor<2x2x7x64xf16>, %{{.*}}: tensor<2x2x7x32xf16>, %[[O:.*]]: tensor<2x8x5x32xf16>, %[[LSE:.*]]: tensor<2x8x5xf32>, %[[DO:.*]]: tensor<2x8x5x32xf16>) -> (tensor<2x8x5x64xf64>, tensor<2x2x7x64xf64>, tensor<2x2x7x32xf64>)
// CHECK-NOT: %[[O]]
// CHECK-NOT: %[[LSE]]
// CHECK: tensor.expand_shape %[[DO]]
// CHECK: linalg.generic {indexing_maps = [#[[S]], #[[K]], #[[Q]]], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction", "parallel"]}
// CHECK: linalg.generic {indexing_maps = [#[[S]], #[[Q]], #[[K]]], iterator_types = ["parallel", "parallel", "reduction", "reduction", "parallel", "parallel"]}
// CHECK: linalg.generic {indexing_maps = [#[[S]], #[[Q]], #[[K]]], iterator_types = ["parallel", "parallel", "reduction", "reduction", "parallel", "parallel"]}
// CHECK-NOT: truncf
// INPUT-LABEL: func.func @definition
// INPUT-SAME: -> (tensor<2x8x5x64xf16>, tensor<2x2x7x64xf16>, tensor<2x2x7x32xf16>)
// In f64 output may be read as it was saved.
// SAVED-LABEL: func.func @definition
// SAVED-SAME: %[[O:[^:]*]]: tensor<2x8x5x32xf16>, %[[LSE:[^:]*]]: tensor<2x8x5xf32>, %[[DO:[^:]*]]: tensor<2x8x5x32xf16>) -> (tensor<2x8x5x64xf64>, tensor<2x2x7x64xf64>, tensor<2x2x7x32xf64>)
// SAVED-NOT: %[[LSE]]
// SAVED: tensor.expand_shape %[[DO]]
// SAVED: tensor.expand_shape %[[O]]
// SAVED-NOT: truncf
func.func @definition(%q: !q, %k: !k, %v: !v, %o: !o, %lse: !l, %do: !o) -> (!q, !k, !v) {
  %dq, %dk, %dv = attn.attention_backward %q, %k, %v, %o, %lse, %do
    : (!q, !k, !v, !o, !l, !o) -> (!q, !k, !v)
  return %dq, %dk, %dv : !q, !k, !v
}

// A pullback runs in loops over positions, where the score is not -inf.
// CHECK-LABEL: func.func @pullback
// CHECK-SAME: -> tensor<5x7xf64>
// CHECK: %[[FOUND:.*]]:2 = scf.for
// CHECK-COUNT-4: scf.for
// CHECK: %[[SCORE:.*]] = tensor.extract
// CHECK: %[[NONE:.*]] = arith.cmpf oeq, %[[SCORE]], %{{.*}} : f64
// CHECK: scf.if %[[NONE]]
// CHECK: } else {
// CHECK: %[[DY:.*]] = tensor.extract
// CHECK: scf.if
// CHECK: %[[OLD:.*]] = tensor.extract
// CHECK: %[[NEW:.*]] = arith.addf %[[OLD]], %[[DY]] : f64
// CHECK: tensor.insert %[[NEW]]
// CHECK: return %[[FOUND]]#0
// INPUT-LABEL: func.func @pullback
// INPUT-SAME: -> tensor<5x7xbf16>
// INPUT: arith.addf %{{.*}}, %{{.*}} : f32
// INPUT: arith.truncf %{{.*}} : f32 to bf16
func.func @pullback(%q: !q, %k: !k, %v: !v, %o: !o, %lse: !l, %do: !o, %bias: tensor<5x7xbf16>) -> tensor<5x7xbf16> {
  %dq, %dk, %dv, %db = attn.attention_backward %q, %k, %v, %o, %lse, %do captures(%bias) {grad_captures = array<i64: 0>}
    pullback(%dy: f32, %x: f32, %b: i32, %h: i32, %i: i32, %j: i32, %t: tensor<5x7xbf16>) {
      attn.capture_add %dy, %t[%i, %j] : tensor<5x7xbf16>
      attn.yield %dy : f32
    }
    : (!q, !k, !v, !o, !l, !o, tensor<5x7xbf16>) -> (!q, !k, !v, tensor<5x7xbf16>)
  return %db : tensor<5x7xbf16>
}
