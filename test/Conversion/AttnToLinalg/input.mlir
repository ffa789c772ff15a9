// RUN: attn-opt %s --convert-attn-to-linalg=precision=input --canonicalize | FileCheck %s

!q = tensor<2x8x5x64xbf16>
!k = tensor<2x2x7x64xbf16>
!l = tensor<2x8x5xf32>

// Scores after scale, scores after score, probabilities, output: four
// roundings, and the softmax between them in f32. A score that the type cannot
// hold is not rounded.
// CHECK-LABEL: func.func @every_step_is_rounded
// CHECK-SAME: -> (tensor<2x8x5x64xbf16>, tensor<2x8x5xf32>)
// CHECK-DAG: %[[SCALE:.*]] = arith.constant 1.250000e-01 : f32
// CHECK-DAG: %[[LARGEST:.*]] = arith.constant 3.38953139E+38 : f32
// CHECK: linalg.generic
// CHECK: arith.mulf %{{.*}} : f32
// CHECK: linalg.generic
// CHECK: %[[X32:.*]] = arith.mulf %{{.*}}, %[[SCALE]] : f32
// CHECK: %[[SIZE:.*]] = math.absf %[[X32]] : f32
// CHECK: %[[LARGE:.*]] = arith.cmpf ogt, %[[SIZE]], %[[LARGEST]] : f32
// CHECK: %[[X16:.*]] = arith.truncf %[[X32]] : f32 to bf16
// CHECK: %[[XR:.*]] = arith.extf %[[X16]] : bf16 to f32
// CHECK: %[[X:.*]] = arith.select %[[LARGE]], %[[X32]], %[[XR]] : f32
// CHECK: %[[Y32:.*]] = arith.addf %[[X]], %[[X]] : f32
// CHECK: %[[Y16:.*]] = arith.truncf %[[Y32]] : f32 to bf16
// CHECK: %[[YR:.*]] = arith.extf %[[Y16]] : bf16 to f32
// CHECK: %[[Y:.*]] = arith.select %{{.*}}, %[[Y32]], %[[YR]] : f32
// CHECK: arith.select %{{.*}}, %[[Y]]
// CHECK: math.exp %{{.*}} : f32
// CHECK: %[[P32:.*]] = arith.divf %{{.*}} : f32
// CHECK: %[[P:.*]] = arith.select %{{.*}}, %{{.*}}, %[[P32]] : f32
// CHECK: arith.truncf %[[P]] : f32 to bf16
// CHECK: linalg.generic
// CHECK: arith.addf %{{.*}} : f32
// CHECK: linalg.generic
// CHECK: arith.truncf %{{.*}} : f32 to bf16
// CHECK: math.log %{{.*}} : f32
// CHECK: return %{{.*}}, %{{.*}} : tensor<2x8x5x64xbf16>, tensor<2x8x5xf32>
func.func @every_step_is_rounded(%q: !q, %k: !k) -> (!q, !l) {
  %o, %lse = attn.attention %q, %k, %k
    score(%x: f32, %b: i32, %h: i32, %i: i32, %j: i32) {
      %y = arith.addf %x, %x : f32
      attn.yield %y : f32
    }
    mask(%b: i32, %h: i32, %i: i32, %j: i32) {
      %m = arith.cmpi sge, %i, %j : i32
      attn.yield %m : i1
    }
    : (!q, !k, !k) -> (!q, !l)
  return %o, %lse : !q, !l
}

// CHECK-LABEL: func.func @f32_needs_no_rounding
// CHECK-NOT: truncf
// CHECK: return %{{.*}} : tensor<1x1x4x8xf32>
func.func @f32_needs_no_rounding(%q: tensor<1x1x4x8xf32>) -> tensor<1x1x4x8xf32> {
  %o, %lse = attn.attention %q, %q, %q
    : (tensor<1x1x4x8xf32>, tensor<1x1x4x8xf32>, tensor<1x1x4x8xf32>)
      -> (tensor<1x1x4x8xf32>, tensor<1x1x4xf32>)
  return %o : tensor<1x1x4x8xf32>
}
