// RUN: attn-opt %s --attn-raise | FileCheck %s
// RUN: attn-opt %s --attn-raise --remarks-filter=.* -o /dev/null 2>&1 \
// RUN:   | FileCheck %s --check-prefix=REMARK

#q = affine_map<(b, h, i, j, d) -> (b, h, i, d)>
#k = affine_map<(b, h, i, j, d) -> (b, h, j, d)>
#s = affine_map<(b, h, i, j, d) -> (b, h, i, j)>
#p = affine_map<(b, h, i, e, j) -> (b, h, i, j)>
#v = affine_map<(b, h, i, e, j) -> (b, h, j, e)>
#o = affine_map<(b, h, i, e, j) -> (b, h, i, e)>
#id = affine_map<(b, h, i, j) -> (b, h, i, j)>

// The scale is one number of the operation, the triangle its mask; where every
// row sees a key, the lowest number of f32 hides as -inf does.

// CHECK-LABEL: func.func @causal_with_lowest
// CHECK-SAME: (%[[Q:.*]]: tensor<2x4x32x64xf32>, %[[K:.*]]: tensor<2x4x48x64xf32>, %[[V:.*]]: tensor<2x4x48x64xf32>)
// CHECK-NEXT: %[[O:.*]], %{{.*}} = attn.attention %[[Q]], %[[K]], %[[V]] {scale = 1.250000e-01 : f64}
// CHECK-NEXT: mask(%{{.*}}: i32, %{{.*}}: i32, %[[I:.*]]: i32, %[[J:.*]]: i32)
// CHECK-NEXT: %[[M:.*]] = arith.cmpi sle, %[[J]], %[[I]] : i32
// CHECK-NEXT: attn.yield %[[M]] : i1
// CHECK: return %[[O]]
// REMARK: raise.mlir:[[@LINE+27]]:{{.*}} [Passed] raise | Category:convert-linalg-to-attn | Remark="attention with scale 0.125, mask"
func.func @causal_with_lowest(%q: tensor<2x4x32x64xf32>, %k: tensor<2x4x48x64xf32>, %v: tensor<2x4x48x64xf32>) -> tensor<2x4x32x64xf32> {
  %zero = arith.constant 0.0 : f32
  %lowest = arith.constant -3.40282347E+38 : f32
  %eight = arith.constant 8.0 : f32
  %es = tensor.empty() : tensor<2x4x32x48xf32>
  %s0 = linalg.fill ins(%zero : f32) outs(%es : tensor<2x4x32x48xf32>) -> tensor<2x4x32x48xf32>
  %s = linalg.generic {indexing_maps = [#q, #k, #s], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction"]}
      ins(%q, %k : tensor<2x4x32x64xf32>, tensor<2x4x48x64xf32>) outs(%s0 : tensor<2x4x32x48xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %m = arith.mulf %a, %b : f32
    %r = arith.addf %c, %m : f32
    linalg.yield %r : f32
  } -> tensor<2x4x32x48xf32>
  %x = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%s : tensor<2x4x32x48xf32>) outs(%es : tensor<2x4x32x48xf32>) {
  ^bb0(%a: f32, %c: f32):
    %i = linalg.index 2 : index
    %j = linalg.index 3 : index
    %y = arith.divf %a, %eight : f32
    %above = arith.cmpi ugt, %j, %i : index
    %r = arith.select %above, %lowest, %y : f32
    linalg.yield %r : f32
  } -> tensor<2x4x32x48xf32>
  %p = linalg.softmax dimension(3) ins(%x : tensor<2x4x32x48xf32>) outs(%es : tensor<2x4x32x48xf32>) -> tensor<2x4x32x48xf32>
  %eo = tensor.empty() : tensor<2x4x32x64xf32>
  %o0 = linalg.fill ins(%zero : f32) outs(%eo : tensor<2x4x32x64xf32>) -> tensor<2x4x32x64xf32>
  %o = linalg.generic {indexing_maps = [#p, #v, #o], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction"]}
      ins(%p, %v : tensor<2x4x32x48xf32>, tensor<2x4x48x64xf32>) outs(%o0 : tensor<2x4x32x64xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %m = arith.mulf %a, %b : f32
    %r = arith.addf %c, %m : f32
    linalg.yield %r : f32
  } -> tensor<2x4x32x64xf32>
  return %o : tensor<2x4x32x64xf32>
}

// Two dimensions become four; the mask of an argument may leave a row without a
// key, and then the lowest number gives it equal weights: it stays a score.

// CHECK-LABEL: func.func @two_dimensions
// CHECK-SAME: (%[[Q:.*]]: tensor<?x64xf16>, %[[K:.*]]: tensor<?x64xf16>, %[[V:.*]]: tensor<?x64xf16>, %[[MASK:.*]]: tensor<?x?xi1>)
// CHECK-DAG: %[[Q4:.*]] = tensor.expand_shape %[[Q]] {{\[\[}}0, 1, 2], [3]]
// CHECK-DAG: %[[K4:.*]] = tensor.expand_shape %[[K]] {{\[\[}}0, 1, 2], [3]]
// CHECK-DAG: %[[V4:.*]] = tensor.expand_shape %[[V]] {{\[\[}}0, 1, 2], [3]]
// CHECK: %[[O:.*]], %{{.*}} = attn.attention %[[Q4]], %[[K4]], %[[V4]] captures(%[[MASK]]) {scale = 1.000000e+00 : f64}
// CHECK-NEXT: score(%[[X:.*]]: f32, %{{.*}}: i32, %{{.*}}: i32, %[[I:.*]]: i32, %[[J:.*]]: i32, %[[M:.*]]: tensor<?x?xi1>)
// CHECK-DAG: %[[C:.*]] = attn.capture_load %[[M]][%[[I]], %[[J]]]
// CHECK-DAG: %[[LOW:.*]] = arith.constant -3.40282347E+38 : f32
// CHECK: %[[Y:.*]] = arith.select %[[C]], %[[X]], %[[LOW]] : f32
// CHECK-NEXT: attn.yield %[[Y]]
// CHECK: tensor.collapse_shape %[[O]]
// REMARK: [Passed] raise | Category:convert-linalg-to-attn | Remark="attention with scale 1, score; a finite mask is part of the score, as a row may see no key"
func.func @two_dimensions(%q: tensor<?x64xf16>, %k: tensor<?x64xf16>, %v: tensor<?x64xf16>, %mask: tensor<?x?xi1>) -> tensor<?x64xf16> {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %z16 = arith.constant 0.0 : f16
  %n = tensor.dim %q, %c0 : tensor<?x64xf16>
  %t = tensor.dim %k, %c0 : tensor<?x64xf16>
  %et = tensor.empty(%t) : tensor<64x?xf16>
  %kt = linalg.transpose ins(%k : tensor<?x64xf16>) outs(%et : tensor<64x?xf16>) permutation = [1, 0]
  %es = tensor.empty(%n, %t) : tensor<?x?xf32>
  %s0 = linalg.fill ins(%zero : f32) outs(%es : tensor<?x?xf32>) -> tensor<?x?xf32>
  %s = linalg.matmul ins(%q, %kt : tensor<?x64xf16>, tensor<64x?xf16>) outs(%s0 : tensor<?x?xf32>) -> tensor<?x?xf32>
  %low = arith.constant -3.40282347E+38 : f32
  %lowest = tensor.splat %low[%n, %t] : tensor<?x?xf32>
  %x = arith.select %mask, %s, %lowest : tensor<?x?xi1>, tensor<?x?xf32>
  %p = linalg.softmax dimension(1) ins(%x : tensor<?x?xf32>) outs(%es : tensor<?x?xf32>) -> tensor<?x?xf32>
  %p16 = arith.truncf %p : tensor<?x?xf32> to tensor<?x?xf16>
  %eo = tensor.empty(%n) : tensor<?x64xf16>
  %o0 = linalg.fill ins(%z16 : f16) outs(%eo : tensor<?x64xf16>) -> tensor<?x64xf16>
  %o = linalg.matmul ins(%p16, %v : tensor<?x?xf16>, tensor<?x64xf16>) outs(%o0 : tensor<?x64xf16>) -> tensor<?x64xf16>
  return %o : tensor<?x64xf16>
}

// The softmax runs over queries: not a letter changes.

// CHECK-LABEL: func.func @softmax_over_queries
// CHECK-NOT: attn.attention
// CHECK: linalg.transpose
// CHECK: linalg.matmul
// CHECK: linalg.softmax dimension(0)
// CHECK: linalg.matmul
// REMARK: [Missed] raise | Category:convert-linalg-to-attn | Remark="the sum of the exponentials runs over another dimension than that of the keys"
func.func @softmax_over_queries(%q: tensor<32x64xf32>, %k: tensor<48x64xf32>, %v: tensor<48x64xf32>) -> tensor<32x64xf32> {
  %zero = arith.constant 0.0 : f32
  %et = tensor.empty() : tensor<64x48xf32>
  %kt = linalg.transpose ins(%k : tensor<48x64xf32>) outs(%et : tensor<64x48xf32>) permutation = [1, 0]
  %es = tensor.empty() : tensor<32x48xf32>
  %s0 = linalg.fill ins(%zero : f32) outs(%es : tensor<32x48xf32>) -> tensor<32x48xf32>
  %s = linalg.matmul ins(%q, %kt : tensor<32x64xf32>, tensor<64x48xf32>) outs(%s0 : tensor<32x48xf32>) -> tensor<32x48xf32>
  %p = linalg.softmax dimension(0) ins(%s : tensor<32x48xf32>) outs(%es : tensor<32x48xf32>) -> tensor<32x48xf32>
  %eo = tensor.empty() : tensor<32x64xf32>
  %o0 = linalg.fill ins(%zero : f32) outs(%eo : tensor<32x64xf32>) -> tensor<32x64xf32>
  %o = linalg.matmul ins(%p, %v : tensor<32x48xf32>, tensor<48x64xf32>) outs(%o0 : tensor<32x64xf32>) -> tensor<32x64xf32>
  return %o : tensor<32x64xf32>
}

// Projections of an MLP with an exponential between them are not even missed.

// CHECK-LABEL: func.func @no_softmax
// CHECK-NOT: attn.attention
// REMARK-NOT: raise |
func.func @no_softmax(%q: tensor<32x64xf32>, %k: tensor<64x48xf32>, %v: tensor<48x64xf32>) -> tensor<32x64xf32> {
  %zero = arith.constant 0.0 : f32
  %es = tensor.empty() : tensor<32x48xf32>
  %s0 = linalg.fill ins(%zero : f32) outs(%es : tensor<32x48xf32>) -> tensor<32x48xf32>
  %s = linalg.matmul ins(%q, %k : tensor<32x64xf32>, tensor<64x48xf32>) outs(%s0 : tensor<32x48xf32>) -> tensor<32x48xf32>
  %p = math.exp %s : tensor<32x48xf32>
  %eo = tensor.empty() : tensor<32x64xf32>
  %o0 = linalg.fill ins(%zero : f32) outs(%eo : tensor<32x64xf32>) -> tensor<32x64xf32>
  %o = linalg.matmul ins(%p, %v : tensor<32x48xf32>, tensor<48x64xf32>) outs(%o0 : tensor<32x64xf32>) -> tensor<32x64xf32>
  return %o : tensor<32x64xf32>
}
