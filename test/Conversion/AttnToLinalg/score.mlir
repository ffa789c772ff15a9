// RUN: attn-opt %s --convert-attn-to-linalg=precision=score --canonicalize | FileCheck %s

!q = tensor<1x2x5x16xbf16>
!k = tensor<1x2x7x16xbf16>
!l = tensor<1x2x5xf32>

// The score region alone is in f32, all before and after it in f64.
// CHECK-LABEL: func.func @narrow_score
// CHECK-SAME: -> (tensor<1x2x5x16xf64>, tensor<1x2x5xf64>)
// CHECK: arith.addf %{{.*}} fastmath<reassoc> : f64
// CHECK: %[[SCALED:.*]] = arith.mulf %{{.*}} : f64
// CHECK: %[[X:.*]] = arith.truncf %[[SCALED]] : f64 to f32
// CHECK: %[[T:.*]] = math.tanh %[[X]] : f32
// CHECK: %[[Y:.*]] = arith.mulf %[[T]], %{{.*}} : f32
// CHECK: %[[WIDE:.*]] = arith.extf %[[Y]] : f32 to f64
// CHECK: arith.select %{{.*}}, %[[WIDE]], %{{.*}} : f64
// CHECK-NOT: truncf
// CHECK: math.exp %{{.*}} : f64
func.func @narrow_score(%q: !q, %k: !k, %v: !k) -> (!q, !l) {
  %o, %lse = attn.attention %q, %k, %v
    score(%x: f32, %b: i32, %h: i32, %i: i32, %j: i32) {
      %t = math.tanh %x : f32
      %large = arith.constant 3.0e+08 : f32
      %y = arith.mulf %t, %large : f32
      attn.yield %y : f32
    }
    mask(%b: i32, %h: i32, %i: i32, %j: i32) {
      %visible = arith.cmpi sle, %j, %i : i32
      attn.yield %visible : i1
    }
    : (!q, !k, !k) -> (!q, !l)
  return %o, %lse : !q, !l
}
