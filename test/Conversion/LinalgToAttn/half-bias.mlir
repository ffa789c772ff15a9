// RUN: attn-opt %s --attn-raise | FileCheck %s

// A model in bf16 that adds a bias between its products: the sizes of the query
// make the shapes of what goes away, and go with it.

#q = affine_map<(b, h, i, j, d) -> (b, h, i, d)>
#k = affine_map<(b, h, i, j, d) -> (b, h, j, d)>
#s = affine_map<(b, h, i, j, d) -> (b, h, i, j)>
#p = affine_map<(b, h, i, e, j) -> (b, h, i, j)>
#v = affine_map<(b, h, i, e, j) -> (b, h, j, e)>
#o = affine_map<(b, h, i, e, j) -> (b, h, i, e)>
#id = affine_map<(b, h, i, j) -> (b, h, i, j)>

// CHECK-LABEL: func.func @attention
// CHECK-SAME: (%[[Q:[a-z0-9]+]]: tensor<?x4x?x8xbf16>,
// CHECK-NOT: arith.constant
// CHECK-NOT: tensor.dim
// CHECK: %[[O:.*]], %{{.*}} = attn.attention %[[Q]],
// CHECK: return %[[O]]
func.func @attention(%q: tensor<?x4x?x8xbf16>, %k: tensor<?x4x?x8xbf16>, %v: tensor<?x4x?x8xbf16>, %bias: tensor<?x?xbf16>) -> tensor<?x4x?x8xbf16> {
  %c0 = arith.constant 0 : index
  %batch = tensor.dim %q, %c0 : tensor<?x4x?x8xbf16>
  %c2 = arith.constant 2 : index
  %rows = tensor.dim %q, %c2 : tensor<?x4x?x8xbf16>
  %v4 = tensor.empty(%batch, %rows, %rows) : tensor<?x4x?x?xf32>
  %v5 = arith.constant 0.00000000000000000e+00 : f32
  %v6 = linalg.fill ins(%v5 : f32) outs(%v4 : tensor<?x4x?x?xf32>) -> tensor<?x4x?x?xf32>
  %v7 = linalg.generic {indexing_maps = [#q, #k, #s], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction"]}
      ins(%q, %k : tensor<?x4x?x8xbf16>, tensor<?x4x?x8xbf16>) outs(%v6 : tensor<?x4x?x?xf32>) {
  ^bb0(%in0: bf16, %in1: bf16, %acc: f32):
    %x0 = arith.extf %in0 : bf16 to f32
    %x1 = arith.extf %in1 : bf16 to f32
    %product = arith.mulf %x0, %x1 : f32
    %sum = arith.addf %acc, %product : f32
    linalg.yield %sum : f32
  } -> tensor<?x4x?x?xf32>
  %v8 = tensor.empty(%batch, %rows, %rows) : tensor<?x4x?x?xbf16>
  %v9 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%v7 : tensor<?x4x?x?xf32>) outs(%v8 : tensor<?x4x?x?xbf16>) {
  ^bb0(%in0: f32, %acc: bf16):
    %x0 = arith.truncf %in0 : f32 to bf16
    %x1 = arith.extf %x0 : bf16 to f32
    %x2 = arith.constant 2.99999999999999989e-01 : f32
    %x3 = arith.mulf %x1, %x2 : f32
    %x4 = arith.truncf %x3 : f32 to bf16
    %x5 = arith.extf %x4 : bf16 to f32
    %x6 = linalg.index 2 : index
    %x7 = linalg.index 3 : index
    %x8 = tensor.extract %bias[%x6, %x7] : tensor<?x?xbf16>
    %x9 = arith.extf %x8 : bf16 to f32
    %x10 = arith.addf %x5, %x9 : f32
    %x11 = arith.truncf %x10 : f32 to bf16
    linalg.yield %x11 : bf16
  } -> tensor<?x4x?x?xbf16>
  %v10 = arith.extf %v9 : tensor<?x4x?x?xbf16> to tensor<?x4x?x?xf32>
  %v11 = tensor.empty(%batch, %rows, %rows) : tensor<?x4x?x?xf32>
  %v12 = linalg.softmax dimension(3) ins(%v10 : tensor<?x4x?x?xf32>) outs(%v11 : tensor<?x4x?x?xf32>) -> tensor<?x4x?x?xf32>
  %v13 = arith.truncf %v12 : tensor<?x4x?x?xf32> to tensor<?x4x?x?xbf16>
  %v14 = tensor.empty(%batch, %rows) : tensor<?x4x?x8xf32>
  %v15 = arith.constant 0.00000000000000000e+00 : f32
  %v16 = linalg.fill ins(%v15 : f32) outs(%v14 : tensor<?x4x?x8xf32>) -> tensor<?x4x?x8xf32>
  %v17 = linalg.generic {indexing_maps = [#p, #v, #o], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction"]}
      ins(%v13, %v : tensor<?x4x?x?xbf16>, tensor<?x4x?x8xbf16>) outs(%v16 : tensor<?x4x?x8xf32>) {
  ^bb0(%in0: bf16, %in1: bf16, %acc: f32):
    %x0 = arith.extf %in0 : bf16 to f32
    %x1 = arith.extf %in1 : bf16 to f32
    %product = arith.mulf %x0, %x1 : f32
    %sum = arith.addf %acc, %product : f32
    linalg.yield %sum : f32
  } -> tensor<?x4x?x8xf32>
  %v18 = arith.truncf %v17 : tensor<?x4x?x8xf32> to tensor<?x4x?x8xbf16>
  return %v18 : tensor<?x4x?x8xbf16>
}
