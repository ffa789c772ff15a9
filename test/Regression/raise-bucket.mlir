// RUN: attn-opt %s --attn-raise | FileCheck %s
// RUN: attn-opt %s --attn-validate-raise=cpu=%cpu -o /dev/null
// An integer is made of a float: 1 / 41 * 41 is less than 1 in f32, so keys beside
// the diagonal are in bucket 0. Constants that are put together (41 / 41) moved
// them to the next one.

#q = affine_map<(i, j, d) -> (i, d)>
#k = affine_map<(i, j, d) -> (j, d)>
#s = affine_map<(i, j, d) -> (i, j)>
#id = affine_map<(i, j) -> (i, j)>

// CHECK-LABEL: func.func @bucket
// CHECK: attn.attention {{.*}} {scale = 3.125000e-02 : f64}
// CHECK: %[[C:.*]] = arith.constant 4.100000e+01 : f32
// CHECK: %[[SHARE:.*]] = arith.divf %{{.*}}, %[[C]] : f32
// CHECK: %[[BACK:.*]] = arith.mulf %[[SHARE]], %[[C]] : f32
// CHECK: arith.fptosi %[[BACK]] : f32 to i32
func.func @bucket(%q: tensor<8x16xf32>, %k: tensor<12x16xf32>, %v: tensor<12x16xf32>, %table: tensor<16xf32>) -> tensor<8x16xf32> {
  %zero = arith.constant 0.0 : f32
  %es = tensor.empty() : tensor<8x12xf32>
  %s0 = linalg.fill ins(%zero : f32) outs(%es : tensor<8x12xf32>) -> tensor<8x12xf32>
  %s = linalg.generic {indexing_maps = [#q, #k, #s], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%q, %k : tensor<8x16xf32>, tensor<12x16xf32>) outs(%s0 : tensor<8x12xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %y = math.fma %a, %b, %c : f32
    linalg.yield %y : f32
  } -> tensor<8x12xf32>
  %x = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%s : tensor<8x12xf32>) outs(%es : tensor<8x12xf32>) {
  ^bb0(%a: f32, %c: f32):
    // A product of the graph has one scale, however it is written.
    %three = arith.constant 3.0 : f32
    %factor = arith.constant 0.09375 : f32
    %third = arith.divf %a, %three : f32
    %scaled = arith.mulf %third, %factor : f32
    %i = linalg.index 0 : index
    %j = linalg.index 1 : index
    %d = arith.subi %j, %i : index
    %d32 = arith.index_cast %d : index to i32
    %r = math.absi %d32 : i32
    %f = arith.sitofp %r : i32 to f32
    %size = arith.constant 41.0 : f32
    %share = arith.divf %f, %size : f32
    %back = arith.mulf %share, %size : f32
    %bucket = arith.fptosi %back : f32 to i32
    %at = arith.index_cast %bucket : i32 to index
    %bias = tensor.extract %table[%at] : tensor<16xf32>
    %y = arith.addf %scaled, %bias : f32
    linalg.yield %y : f32
  } -> tensor<8x12xf32>
  %p = linalg.softmax dimension(1) ins(%x : tensor<8x12xf32>) outs(%es : tensor<8x12xf32>) -> tensor<8x12xf32>
  %eo = tensor.empty() : tensor<8x16xf32>
  %o0 = linalg.fill ins(%zero : f32) outs(%eo : tensor<8x16xf32>) -> tensor<8x16xf32>
  %o = linalg.matmul ins(%p, %v : tensor<8x12xf32>, tensor<12x16xf32>) outs(%o0 : tensor<8x16xf32>) -> tensor<8x16xf32>
  return %o : tensor<8x16xf32>
}
