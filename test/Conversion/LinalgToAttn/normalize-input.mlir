// RUN: attn-opt %s --attn-normalize-input | FileCheck %s
// RUN: attn-opt %s --attn-raise | FileCheck %s --check-prefix=RAISE

// Nineteen spellings of one computation have one normal form.
// RUN: %python %S/Inputs/spellings.py scale_after_product scale_by_division \
// RUN:   scale_by_division_by_root scale_by_reciprocal_root scale_on_query \
// RUN:   scale_on_key scale_split_over_both scale_on_all_three_places \
// RUN:   scale_inside_the_contraction scale_as_whole_tensor softmax_spelled \
// RUN:   softmax_with_maxnum softmax_by_linalg_reduce softmax_by_linalg_broadcast \
// RUN:   softmax_without_maximum softmax_by_reciprocal softmax_scaled_inside \
// RUN:   softmax_exp_and_sum_fused softmax_on_transposed_scores \
// RUN:   --as=f32 > %t.mlir
// RUN: attn-opt %t.mlir --attn-normalize-input | %python %S/Inputs/same_form.py \
// RUN:   | FileCheck %s --check-prefix=SAME
// SAME: 19 functions, 1 forms

#qs = affine_map<(i, j, d) -> (i, d)>
#ks = affine_map<(i, j, d) -> (j, d)>
#ss = affine_map<(i, j, d) -> (i, j)>

// A scale on the query, a triangle after the product: in the normal form both
// are in the one operation between the products.

// CHECK-DAG: #[[Q:.*]] = affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2, d4)>
// CHECK-DAG: #[[K:.*]] = affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d3, d4)>
// CHECK-DAG: #[[S:.*]] = affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2, d3)>
// CHECK-DAG: #[[V:.*]] = affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d4, d3)>
// CHECK-LABEL: func.func @scale_and_triangle
// CHECK-SAME: (%[[ARG0:.*]]: tensor<32x64xf16>, %[[ARG1:.*]]: tensor<32x64xf16>, %[[ARG2:.*]]: tensor<32x64xf16>)
// CHECK-DAG: %[[Q4:.*]] = tensor.expand_shape %[[ARG0]]
// CHECK-DAG: %[[K4:.*]] = tensor.expand_shape %[[ARG1]]
// CHECK-DAG: %[[V4:.*]] = tensor.expand_shape %[[ARG2]]
// CHECK: %[[SUMS:.*]] = linalg.generic {indexing_maps = [#[[Q]], #[[K]], #[[S]]]
// CHECK-SAME: ins(%[[Q4]], %[[K4]] : tensor<1x1x32x64xf16>, tensor<1x1x32x64xf16>)
// CHECK: arith.extf
// CHECK: arith.extf
// CHECK: arith.mulf
// CHECK: arith.addf
// CHECK: linalg.generic
// CHECK-SAME: ins(%[[SUMS]]
// CHECK: %[[SCALE:.*]] = arith.constant 1.250000e-01 : f32
// CHECK-NEXT: %[[X:.*]] = arith.mulf %{{.*}}, %[[SCALE]] : f32
// CHECK: %[[I:.*]] = linalg.index 2 : index
// CHECK-NEXT: %[[I32:.*]] = arith.index_cast %[[I]] : index to i32
// CHECK-NEXT: %[[J:.*]] = linalg.index 3 : index
// CHECK-NEXT: %[[J32:.*]] = arith.index_cast %[[J]] : index to i32
// CHECK-NEXT: %[[M:.*]] = arith.cmpi sle, %[[J32]], %[[I32]] : i32
// CHECK-NEXT: %[[N:.*]] = arith.constant 0xFF800000 : f32
// CHECK-NEXT: arith.select %[[M]], %[[X]], %[[N]] : f32
// CHECK: arith.maximumf
// CHECK: arith.subf
// CHECK-NEXT: math.exp
// CHECK: arith.addf
// CHECK: arith.divf
// CHECK-NEXT: arith.truncf %{{.*}} : f32 to f16
// CHECK: linalg.generic {indexing_maps = [#[[Q]], #[[V]], #[[S]]]
// CHECK-SAME: %[[V4]] :
// RAISE-LABEL: func.func @scale_and_triangle
// RAISE-NOT: linalg.
// RAISE: attn.attention %{{.*}}, %{{.*}}, %{{.*}} {scale = 1.250000e-01 : f64}
// RAISE-NOT: linalg.
// RAISE: return
func.func @scale_and_triangle(%q: tensor<32x64xf16>, %k: tensor<32x64xf16>, %v: tensor<32x64xf16>) -> tensor<32x64xf16> {
  %zero = arith.constant 0.0 : f32
  %z16 = arith.constant 0.0 : f16
  %scale = arith.constant dense<0.125> : tensor<32x64xf16>
  %scaled = arith.mulf %q, %scale : tensor<32x64xf16>
  %es = tensor.empty() : tensor<32x32xf32>
  %s0 = linalg.fill ins(%zero : f32) outs(%es : tensor<32x32xf32>) -> tensor<32x32xf32>
  %s = linalg.matmul indexing_maps = [#qs, #ks, #ss] ins(%scaled, %k : tensor<32x64xf16>, tensor<32x64xf16>) outs(%s0 : tensor<32x32xf32>) -> tensor<32x32xf32>
  %mask = tensor.generate {
  ^bb0(%i: index, %j: index):
    %above = arith.cmpi ugt, %j, %i : index
    %n = arith.constant 0xFF800000 : f32
    %z = arith.constant 0.0 : f32
    %b = arith.select %above, %n, %z : f32
    tensor.yield %b : f32
  } : tensor<32x32xf32>
  %x = arith.addf %s, %mask : tensor<32x32xf32>
  %p = linalg.softmax dimension(1) ins(%x : tensor<32x32xf32>) outs(%es : tensor<32x32xf32>) -> tensor<32x32xf32>
  %p16 = arith.truncf %p : tensor<32x32xf32> to tensor<32x32xf16>
  %eo = tensor.empty() : tensor<32x64xf16>
  %o0 = linalg.fill ins(%z16 : f16) outs(%eo : tensor<32x64xf16>) -> tensor<32x64xf16>
  %o = linalg.matmul ins(%p16, %v : tensor<32x32xf16>, tensor<32x64xf16>) outs(%o0 : tensor<32x64xf16>) -> tensor<32x64xf16>
  return %o : tensor<32x64xf16>
}

// What is no attention keeps its operations.

// CHECK-LABEL: func.func @weights_scaled
// CHECK: linalg.matmul
// CHECK: linalg.softmax
// CHECK: arith.mulf
// CHECK: linalg.matmul
// CHECK-NOT: linalg.generic
func.func @weights_scaled(%q: tensor<32x64xf32>, %k: tensor<32x64xf32>, %v: tensor<32x64xf32>) -> tensor<32x64xf32> {
  %zero = arith.constant 0.0 : f32
  %es = tensor.empty() : tensor<32x32xf32>
  %s0 = linalg.fill ins(%zero : f32) outs(%es : tensor<32x32xf32>) -> tensor<32x32xf32>
  %s = linalg.matmul indexing_maps = [#qs, #ks, #ss] ins(%q, %k : tensor<32x64xf32>, tensor<32x64xf32>) outs(%s0 : tensor<32x32xf32>) -> tensor<32x32xf32>
  %p = linalg.softmax dimension(1) ins(%s : tensor<32x32xf32>) outs(%es : tensor<32x32xf32>) -> tensor<32x32xf32>
  %half = arith.constant dense<0.5> : tensor<32x32xf32>
  %w = arith.mulf %p, %half : tensor<32x32xf32>
  %eo = tensor.empty() : tensor<32x64xf32>
  %o0 = linalg.fill ins(%zero : f32) outs(%eo : tensor<32x64xf32>) -> tensor<32x64xf32>
  %o = linalg.matmul ins(%w, %v : tensor<32x32xf32>, tensor<32x64xf32>) outs(%o0 : tensor<32x64xf32>) -> tensor<32x64xf32>
  return %o : tensor<32x64xf32>
}
