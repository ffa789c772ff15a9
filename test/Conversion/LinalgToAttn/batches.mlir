// Batches in two dimensions, the sizes of which are not known, are one of attention.
// Regions divide by constants only: a captured table says which part of it each is.

// RUN: attn-opt %s --attn-raise --split-input-file | FileCheck %s
// RUN: attn-opt %s --convert-linalg-to-attn --split-input-file | FileCheck %s
// RUN: sed '/^.. -----/,$d' %s | attn-opt --attn-validate-raise -o /dev/null

// CHECK-LABEL: func.func @mask_of_one_batch(
// CHECK-SAME: %[[MASK:[a-z0-9]+]]: tensor<2x12x20xi1>)
// CHECK: %[[PARTS:.*]] = linalg.generic
// CHECK: %[[AT:.*]] = linalg.index 0
// CHECK: %[[I:.*]] = arith.index_cast %[[AT]] : index to i32
// CHECK: linalg.yield %[[I]]
// CHECK: %[[TABLE:.*]] = tensor.collapse_shape %[[PARTS]] {{.*}} into tensor<?xi32>
// CHECK: attn.attention {{.*}} captures(%[[MASK]], %[[TABLE]])
// CHECK-NEXT: mask(%[[B:.*]]: i32, %{{.*}}: i32, %[[Q:.*]]: i32, %[[K:.*]]: i32, %[[M:.*]]: tensor<2x12x20xi1>, %[[T:.*]]: tensor<?xi32>)
// CHECK-NEXT: %[[P:.*]] = attn.capture_load %[[T]][%[[B]]]
// CHECK-NEXT: attn.capture_load %[[M]][%[[P]], %[[Q]], %[[K]]]
func.func @mask_of_one_batch(%arg0: tensor<2x?x4x12x16xf32>, %arg1: tensor<2x?x4x20x16xf32>, %arg2: tensor<2x?x4x20x8xf32>, %arg3: tensor<2x12x20xi1>) -> (tensor<2x?x4x12x8xf32>) {
  %v1 = arith.constant 1 : index
  %v2 = tensor.dim %arg0, %v1 : tensor<2x?x4x12x16xf32>
  %v3 = arith.constant 0.0 : f32
  %v4 = tensor.empty(%v2) : tensor<2x?x4x12x20xf32>
  %v5 = linalg.fill ins(%v3 : f32) outs(%v4 : tensor<2x?x4x12x20xf32>) -> tensor<2x?x4x12x20xf32>
  %v6 = linalg.generic {indexing_maps = [affine_map<(b, c, h, i, j, d) -> (b, c, h, i, d)>, affine_map<(b, c, h, i, j, d) -> (b, c, h, j, d)>, affine_map<(b, c, h, i, j, d) -> (b, c, h, i, j)>], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel", "reduction"]} ins(%arg0, %arg1 : tensor<2x?x4x12x16xf32>, tensor<2x?x4x20x16xf32>) outs(%v5 : tensor<2x?x4x12x20xf32>) {
  ^bb0(%in0: f32, %in1: f32, %acc: f32):
    %m = arith.mulf %in0, %in1 : f32
    %y = arith.addf %acc, %m : f32
    linalg.yield %y : f32
  } -> tensor<2x?x4x12x20xf32>
  %v7 = tensor.empty(%v2) : tensor<2x?x4x12x20xf32>
  %v8 = linalg.generic {indexing_maps = [affine_map<(b, c, h, i, j) -> (b, c, h, i, j)>, affine_map<(b, c, h, i, j) -> (b, c, h, i, j)>], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]} ins(%v6 : tensor<2x?x4x12x20xf32>) outs(%v7 : tensor<2x?x4x12x20xf32>) {
  ^bb0(%in0: f32, %acc: f32):
    %c = arith.constant 0.25 : f32
    %y = arith.mulf %in0, %c : f32
    linalg.yield %y : f32
  } -> tensor<2x?x4x12x20xf32>
  %v9 = tensor.empty(%v2) : tensor<2x?x4x12x20xf32>
  %v10 = linalg.generic {indexing_maps = [affine_map<(b, c, h, i, j) -> (b, c, h, i, j)>, affine_map<(b, c, h, i, j) -> (b, i, j)>, affine_map<(b, c, h, i, j) -> (b, c, h, i, j)>], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]} ins(%v8, %arg3 : tensor<2x?x4x12x20xf32>, tensor<2x12x20xi1>) outs(%v9 : tensor<2x?x4x12x20xf32>) {
  ^bb0(%in0: f32, %in1: i1, %acc: f32):
    %n = arith.constant 0xFF800000 : f32
    %y = arith.select %in1, %in0, %n : f32
    linalg.yield %y : f32
  } -> tensor<2x?x4x12x20xf32>
  %v11 = tensor.empty(%v2) : tensor<2x?x4x12x20xf32>
  %v12 = linalg.softmax dimension(4) ins(%v10 : tensor<2x?x4x12x20xf32>) outs(%v11 : tensor<2x?x4x12x20xf32>) -> tensor<2x?x4x12x20xf32>
  %v13 = arith.constant 0.0 : f32
  %v14 = tensor.empty(%v2) : tensor<2x?x4x12x8xf32>
  %v15 = linalg.fill ins(%v13 : f32) outs(%v14 : tensor<2x?x4x12x8xf32>) -> tensor<2x?x4x12x8xf32>
  %v16 = linalg.generic {indexing_maps = [affine_map<(b, c, h, i, e, j) -> (b, c, h, i, j)>, affine_map<(b, c, h, i, e, j) -> (b, c, h, j, e)>, affine_map<(b, c, h, i, e, j) -> (b, c, h, i, e)>], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel", "reduction"]} ins(%v12, %arg2 : tensor<2x?x4x12x20xf32>, tensor<2x?x4x20x8xf32>) outs(%v15 : tensor<2x?x4x12x8xf32>) {
  ^bb0(%in0: f32, %in1: f32, %acc: f32):
    %m = arith.mulf %in0, %in1 : f32
    %y = arith.addf %acc, %m : f32
    linalg.yield %y : f32
  } -> tensor<2x?x4x12x8xf32>
  return %v16 : tensor<2x?x4x12x8xf32>
}

// -----

// Both parts.
// CHECK-LABEL: func.func @bias_of_both_batches(
// CHECK: attn.attention {{.*}} captures(%{{.*}}, %{{.*}}, %{{.*}})
// CHECK: attn.capture_load %{{.*}}[%[[B:.*]]] : tensor<?xi32>
// CHECK: attn.capture_load %{{.*}}[%[[B]]] : tensor<?xi32>
// CHECK: attn.capture_load %{{.*}} : tensor<?x?x12x20xf32>
func.func @bias_of_both_batches(%arg0: tensor<?x?x4x12x16xf32>, %arg1: tensor<?x?x4x20x16xf32>, %arg2: tensor<?x?x4x20x8xf32>, %arg3: tensor<?x?x12x20xf32>) -> (tensor<?x?x4x12x8xf32>) {
  %v1 = arith.constant 0 : index
  %v2 = tensor.dim %arg0, %v1 : tensor<?x?x4x12x16xf32>
  %v3 = arith.constant 1 : index
  %v4 = tensor.dim %arg0, %v3 : tensor<?x?x4x12x16xf32>
  %v5 = arith.constant 0.0 : f32
  %v6 = tensor.empty(%v2, %v4) : tensor<?x?x4x12x20xf32>
  %v7 = linalg.fill ins(%v5 : f32) outs(%v6 : tensor<?x?x4x12x20xf32>) -> tensor<?x?x4x12x20xf32>
  %v8 = linalg.generic {indexing_maps = [affine_map<(b, c, h, i, j, d) -> (b, c, h, i, d)>, affine_map<(b, c, h, i, j, d) -> (b, c, h, j, d)>, affine_map<(b, c, h, i, j, d) -> (b, c, h, i, j)>], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel", "reduction"]} ins(%arg0, %arg1 : tensor<?x?x4x12x16xf32>, tensor<?x?x4x20x16xf32>) outs(%v7 : tensor<?x?x4x12x20xf32>) {
  ^bb0(%in0: f32, %in1: f32, %acc: f32):
    %m = arith.mulf %in0, %in1 : f32
    %y = arith.addf %acc, %m : f32
    linalg.yield %y : f32
  } -> tensor<?x?x4x12x20xf32>
  %v9 = tensor.empty(%v2, %v4) : tensor<?x?x4x12x20xf32>
  %v10 = linalg.generic {indexing_maps = [affine_map<(b, c, h, i, j) -> (b, c, h, i, j)>, affine_map<(b, c, h, i, j) -> (b, c, h, i, j)>], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]} ins(%v8 : tensor<?x?x4x12x20xf32>) outs(%v9 : tensor<?x?x4x12x20xf32>) {
  ^bb0(%in0: f32, %acc: f32):
    %c = arith.constant 0.25 : f32
    %y = arith.mulf %in0, %c : f32
    linalg.yield %y : f32
  } -> tensor<?x?x4x12x20xf32>
  %v11 = tensor.empty(%v2, %v4) : tensor<?x?x4x12x20xf32>
  %v12 = linalg.generic {indexing_maps = [affine_map<(b, c, h, i, j) -> (b, c, h, i, j)>, affine_map<(b, c, h, i, j) -> (b, c, i, j)>, affine_map<(b, c, h, i, j) -> (b, c, h, i, j)>], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]} ins(%v10, %arg3 : tensor<?x?x4x12x20xf32>, tensor<?x?x12x20xf32>) outs(%v11 : tensor<?x?x4x12x20xf32>) {
  ^bb0(%in0: f32, %in1: f32, %acc: f32):
    %y = arith.addf %in0, %in1 : f32
    linalg.yield %y : f32
  } -> tensor<?x?x4x12x20xf32>
  %v13 = tensor.empty(%v2, %v4) : tensor<?x?x4x12x20xf32>
  %v14 = linalg.softmax dimension(4) ins(%v12 : tensor<?x?x4x12x20xf32>) outs(%v13 : tensor<?x?x4x12x20xf32>) -> tensor<?x?x4x12x20xf32>
  %v15 = arith.constant 0.0 : f32
  %v16 = tensor.empty(%v2, %v4) : tensor<?x?x4x12x8xf32>
  %v17 = linalg.fill ins(%v15 : f32) outs(%v16 : tensor<?x?x4x12x8xf32>) -> tensor<?x?x4x12x8xf32>
  %v18 = linalg.generic {indexing_maps = [affine_map<(b, c, h, i, e, j) -> (b, c, h, i, j)>, affine_map<(b, c, h, i, e, j) -> (b, c, h, j, e)>, affine_map<(b, c, h, i, e, j) -> (b, c, h, i, e)>], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel", "reduction"]} ins(%v14, %arg2 : tensor<?x?x4x12x20xf32>, tensor<?x?x4x20x8xf32>) outs(%v17 : tensor<?x?x4x12x8xf32>) {
  ^bb0(%in0: f32, %in1: f32, %acc: f32):
    %m = arith.mulf %in0, %in1 : f32
    %y = arith.addf %acc, %m : f32
    linalg.yield %y : f32
  } -> tensor<?x?x4x12x8xf32>
  return %v18 : tensor<?x?x4x12x8xf32>
}
