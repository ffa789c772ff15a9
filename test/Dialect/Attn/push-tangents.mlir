// RUN: attn-opt %s --attn-push-tangents --split-input-file | FileCheck %s

#row = affine_map<(d0, d1) -> (d0)>
#all = affine_map<(d0, d1) -> (d0, d1)>

// A product and its sum: the tangent of an input is an input, that of an output
// an output; what is filled with constants does not move.
// CHECK-LABEL: func.func @sums(
// CHECK: return %{{.*}} : tensor<3xf64>
// CHECK-LABEL: func.func @sums_jvp(
// CHECK-SAME: %[[X:.*]]: tensor<3x4xf32>, %{{.*}}: tensor<2xi32>, %[[T:.*]]: tensor<3x4xf32>) -> (tensor<3xf64>, tensor<3xf64>) {
// CHECK: %[[FIRST:.*]] = linalg.fill
// CHECK: %[[ZERO:.*]] = linalg.fill
// CHECK: %[[R:.*]]:2 = linalg.generic {{.*}} ins(%[[X]], %[[T]] : {{.*}}) outs(%[[FIRST]], %[[ZERO]] : {{.*}}) {
// CHECK-NEXT: ^bb0(%[[E:.*]]: f32, %[[TE:.*]]: f32, %[[ACC:.*]]: f64, %[[TACC:.*]]: f64):
// CHECK-DAG: arith.extf %[[E]]
// CHECK-DAG: arith.extf %[[TE]]
// CHECK: linalg.yield %{{.*}}, %{{.*}} : f64, f64
// CHECK: return %[[R]]#0, %[[R]]#1
func.func @sums(%x: tensor<3x4xf32>, %n: tensor<2xi32>) -> tensor<3xf64> {
  %zero = arith.constant 0.0 : f64
  %empty = tensor.empty() : tensor<3xf64>
  %first = linalg.fill ins(%zero : f64) outs(%empty : tensor<3xf64>) -> tensor<3xf64>
  %sum = linalg.generic {indexing_maps = [#all, #row], iterator_types = ["parallel", "reduction"]}
    ins(%x : tensor<3x4xf32>) outs(%first : tensor<3xf64>) {
  ^bb0(%e: f32, %acc: f64):
    %w = arith.extf %e : f32 to f64
    %p = arith.mulf %w, %w : f64
    %s = arith.addf %acc, %p : f64
    linalg.yield %s : f64
  } -> tensor<3xf64>
  return %sum : tensor<3xf64>
}

// -----

// Loops carry tangents; what does not move has none.
// CHECK-LABEL: func.func @loop_jvp(
// CHECK-SAME: %[[X:.*]]: tensor<4xf32>, %[[T:.*]]: tensor<4xf32>)
// CHECK: scf.for {{.*}} iter_args(%{{.*}} = %[[X]], %{{.*}} = %[[T]]) -> (tensor<4xf32>, tensor<4xf32>) {
// CHECK: tensor.extract
// CHECK: tensor.extract
// CHECK: scf.if {{.*}} -> (f32, f32) {
// CHECK: tensor.insert
// CHECK: tensor.insert
// CHECK: scf.yield %{{.*}}, %{{.*}} : tensor<4xf32>, tensor<4xf32>
func.func @loop(%x: tensor<4xf32>) -> tensor<4xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %one = arith.constant 1.0 : f32
  %filled = linalg.fill ins(%one : f32) outs(%x : tensor<4xf32>) -> tensor<4xf32>
  %r = scf.for %i = %c0 to %c4 step %c1 iter_args(%a = %x) -> tensor<4xf32> {
    %e = tensor.extract %a[%i] : tensor<4xf32>
    %c = arith.cmpf ogt, %e, %one : f32
    %y = scf.if %c -> f32 {
      %s = math.sin %e : f32
      scf.yield %s : f32
    } else {
      scf.yield %one : f32
    }
    %n = tensor.insert %y into %a[%i] : tensor<4xf32>
    scf.yield %n : tensor<4xf32>
  }
  return %r : tensor<4xf32>
}

// -----

// Without linalg nothing is made.
// CHECK-LABEL: func.func @other
// CHECK-NOT: _jvp
func.func @other(%x: f32) -> f32 {
  return %x : f32
}
