// Nine heads are three groups of a number that a scalar says: it is three. A
// dimension of a known size was taken apart into parts that are not known.
// RUN: attn-opt %s --attn-raise | FileCheck %s
// RUN: attn-opt %s --attn-raise | attn-opt -o %t.again

#keys = affine_map<(b, h, g, j, d) -> (b, h, j, d)>
#groups = affine_map<(b, h, g, j, d) -> (b, h, g, j, d)>
#q = affine_map<(b, h, i, j, d) -> (b, h, i, d)>
#k = affine_map<(b, h, i, j, d) -> (b, h, j, d)>
#s = affine_map<(b, h, i, j, d) -> (b, h, i, j)>

// CHECK-LABEL: func.func @groups
// CHECK: attn.attention %arg0, %arg1, %arg2
// CHECK-SAME: (tensor<2x9x4x8xf32>, tensor<2x3x6x8xf32>, tensor<2x3x6x8xf32>)
func.func @groups(%q: tensor<2x9x4x8xf32>, %k: tensor<2x3x6x8xf32>,
                  %v: tensor<2x3x6x8xf32>, %n: i32) -> tensor<2x9x4x8xf32> {
  %zero = arith.constant 0.0 : f32
  %size = arith.index_cast %n : i32 to index
  %e = tensor.empty(%size) : tensor<2x3x?x6x8xf32>
  %k5 = linalg.generic {indexing_maps = [#keys, #groups],
      iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]}
      ins(%k : tensor<2x3x6x8xf32>) outs(%e : tensor<2x3x?x6x8xf32>) {
  ^bb0(%in: f32, %out: f32):
    linalg.yield %in : f32
  } -> tensor<2x3x?x6x8xf32>
  %v5 = linalg.generic {indexing_maps = [#keys, #groups],
      iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]}
      ins(%v : tensor<2x3x6x8xf32>) outs(%e : tensor<2x3x?x6x8xf32>) {
  ^bb0(%in: f32, %out: f32):
    linalg.yield %in : f32
  } -> tensor<2x3x?x6x8xf32>
  %kc = tensor.collapse_shape %k5 [[0], [1, 2], [3], [4]]
      : tensor<2x3x?x6x8xf32> into tensor<2x?x6x8xf32>
  %kh = tensor.cast %kc : tensor<2x?x6x8xf32> to tensor<2x9x6x8xf32>
  %vc = tensor.collapse_shape %v5 [[0], [1, 2], [3], [4]]
      : tensor<2x3x?x6x8xf32> into tensor<2x?x6x8xf32>
  %vh = tensor.cast %vc : tensor<2x?x6x8xf32> to tensor<2x9x6x8xf32>
  %es = tensor.empty() : tensor<2x9x4x6xf32>
  %zs = linalg.fill ins(%zero : f32) outs(%es : tensor<2x9x4x6xf32>) -> tensor<2x9x4x6xf32>
  %s = linalg.generic {indexing_maps = [#q, #k, #s],
      iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction"]}
      ins(%q, %kh : tensor<2x9x4x8xf32>, tensor<2x9x6x8xf32>)
      outs(%zs : tensor<2x9x4x6xf32>) {
  ^bb0(%a: f32, %b: f32, %out: f32):
    %p = arith.mulf %a, %b : f32
    %t = arith.addf %out, %p : f32
    linalg.yield %t : f32
  } -> tensor<2x9x4x6xf32>
  %w = linalg.softmax dimension(3) ins(%s : tensor<2x9x4x6xf32>)
      outs(%es : tensor<2x9x4x6xf32>) -> tensor<2x9x4x6xf32>
  %eo = tensor.empty() : tensor<2x9x4x8xf32>
  %zo = linalg.fill ins(%zero : f32) outs(%eo : tensor<2x9x4x8xf32>) -> tensor<2x9x4x8xf32>
  %o = linalg.generic {indexing_maps = [#s, #k, #q],
      iterator_types = ["parallel", "parallel", "parallel", "reduction", "parallel"]}
      ins(%w, %vh : tensor<2x9x4x6xf32>, tensor<2x9x6x8xf32>)
      outs(%zo : tensor<2x9x4x8xf32>) {
  ^bb0(%a: f32, %b: f32, %out: f32):
    %p = arith.mulf %a, %b : f32
    %t = arith.addf %out, %p : f32
    linalg.yield %t : f32
  } -> tensor<2x9x4x8xf32>
  return %o : tensor<2x9x4x8xf32>
}
