// RUN: attn-opt %s --attn-raise | FileCheck %s

// scores * m + (1 - m) * -1e9: taken apart, 1e9 * m + scores * m - 1e9 would lose
// the scores, of which 1e9 leaves nothing.

#q = affine_map<(b, h, i, j, d) -> (b, h, i, d)>
#k = affine_map<(b, h, i, j, d) -> (b, h, j, d)>
#s = affine_map<(b, h, i, j, d) -> (b, h, i, j)>
#p = affine_map<(b, h, i, e, j) -> (b, h, i, j)>
#v = affine_map<(b, h, i, e, j) -> (b, h, j, e)>
#o = affine_map<(b, h, i, e, j) -> (b, h, i, e)>
#id = affine_map<(b, h, i, j) -> (b, h, i, j)>
#m = affine_map<(b, h, i, j) -> (i, j)>

// CHECK-LABEL: func.func @attention
// CHECK: score(%[[X:[a-z0-9]+]]: f32,
// CHECK: %[[M:.*]] = attn.capture_load
// CHECK-DAG: %[[SEEN:.*]] = arith.mulf %[[M]], %[[X]]
// CHECK-DAG: %[[REST:.*]] = arith.subf %{{.*}}, %[[M]]
// CHECK-DAG: %[[PENALTY:.*]] = arith.mulf %[[REST]], %{{.*}}
// CHECK: %[[SUM:.*]] = arith.addf
// CHECK-NEXT: attn.yield %[[SUM]]
func.func @attention(%q: tensor<2x4x16x8xf32>, %k: tensor<2x4x16x8xf32>, %v: tensor<2x4x16x8xf32>, %mask: tensor<16x16xf32>) -> tensor<2x4x16x8xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<2x4x16x16xf32>
  %start = linalg.fill ins(%zero : f32) outs(%empty : tensor<2x4x16x16xf32>) -> tensor<2x4x16x16xf32>
  %product = linalg.generic {indexing_maps = [#q, #k, #s], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction"]}
      ins(%q, %k : tensor<2x4x16x8xf32>, tensor<2x4x16x8xf32>) outs(%start : tensor<2x4x16x16xf32>) {
  ^bb0(%a: f32, %b: f32, %sum: f32):
    %x = arith.mulf %a, %b : f32
    %y = arith.addf %sum, %x : f32
    linalg.yield %y : f32
  } -> tensor<2x4x16x16xf32>
  %scores = linalg.generic {indexing_maps = [#id, #m, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%product, %mask : tensor<2x4x16x16xf32>, tensor<16x16xf32>) outs(%empty : tensor<2x4x16x16xf32>) {
  ^bb0(%x: f32, %m: f32, %unused: f32):
    %one = arith.constant 1.0 : f32
    %lowest = arith.constant -1.0e9 : f32
    %seen = arith.mulf %x, %m : f32
    %rest = arith.subf %one, %m : f32
    %penalty = arith.mulf %rest, %lowest : f32
    %y = arith.addf %seen, %penalty : f32
    linalg.yield %y : f32
  } -> tensor<2x4x16x16xf32>
  %weights = linalg.softmax dimension(3) ins(%scores : tensor<2x4x16x16xf32>) outs(%empty : tensor<2x4x16x16xf32>) -> tensor<2x4x16x16xf32>
  %none = tensor.empty() : tensor<2x4x16x8xf32>
  %begin = linalg.fill ins(%zero : f32) outs(%none : tensor<2x4x16x8xf32>) -> tensor<2x4x16x8xf32>
  %out = linalg.generic {indexing_maps = [#p, #v, #o], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction"]}
      ins(%weights, %v : tensor<2x4x16x16xf32>, tensor<2x4x16x8xf32>) outs(%begin : tensor<2x4x16x8xf32>) {
  ^bb0(%a: f32, %b: f32, %sum: f32):
    %x = arith.mulf %a, %b : f32
    %y = arith.addf %sum, %x : f32
    linalg.yield %y : f32
  } -> tensor<2x4x16x8xf32>
  return %out : tensor<2x4x16x8xf32>
}
