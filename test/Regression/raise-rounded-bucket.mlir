// RUN: attn-opt %s --attn-raise --split-input-file --remarks-filter=.* --remark-policy=all 2>%t | FileCheck %s
// RUN: FileCheck %s --check-prefix=REASON <%t
// RUN: attn-opt %s --split-input-file --attn-validate-raise -o /dev/null
// Casts are dropped where a score is made, which lives in f32. Before an
// integer or a choice they are part of what the graph says: positions of bf16 are
// even from 256 on.

#q = affine_map<(i, j, d) -> (i, d)>
#k = affine_map<(i, j, d) -> (j, d)>
#id = affine_map<(i, j) -> (i, j)>

// The distance is rounded for the bucket and for the choice, not for the score;
// the product in bf16 is one of f32, rounded.
// CHECK-LABEL: func.func @bf16
// CHECK: attn.attention
// CHECK: score(%[[X:.*]]: f32, %{{.*}}: i32, %{{.*}}: i32, %{{.*}}: i32, %{{.*}}: i32
// CHECK-DAG: %[[R:.*]] = arith.sitofp %{{.*}} : i32 to f32
// CHECK-DAG: %[[NARROW:.*]] = arith.truncf %[[R]] : f32 to bf16
// CHECK-DAG: %[[ROUNDED:.*]] = arith.extf %[[NARROW]] : bf16 to f32
// CHECK-DAG: %[[PRODUCT:.*]] = arith.mulf %[[ROUNDED]], %{{.*}} : f32
// CHECK-DAG: %[[NARROW2:.*]] = arith.truncf %[[PRODUCT]] : f32 to bf16
// CHECK-DAG: %[[ROUNDED2:.*]] = arith.extf %[[NARROW2]] : bf16 to f32
// CHECK-DAG: arith.fptosi %[[ROUNDED2]] : f32 to i32
// CHECK-DAG: arith.cmpf olt, %[[ROUNDED]], %{{.*}} : f32
// CHECK-DAG: arith.mulf %[[R]], %{{.*}} : f32
// CHECK: attn.yield
func.func @bf16(%q: tensor<8x16xf32>, %k: tensor<300x16xf32>, %v: tensor<300x16xf32>, %table: tensor<512xf32>) -> tensor<8x16xf32> {
  %zero = arith.constant 0.0 : f32
  %es = tensor.empty() : tensor<8x300xf32>
  %en = tensor.empty() : tensor<8x300xbf16>
  %s0 = linalg.fill ins(%zero : f32) outs(%es : tensor<8x300xf32>) -> tensor<8x300xf32>
  %s = linalg.generic {indexing_maps = [#q, #k, affine_map<(i, j, d) -> (i, j)>], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%q, %k : tensor<8x16xf32>, tensor<300x16xf32>) outs(%s0 : tensor<8x300xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %p = arith.mulf %a, %b : f32
    %y = arith.addf %c, %p : f32
    linalg.yield %y : f32
  } -> tensor<8x300xf32>
  // A tensor of its own: what reads it decides whether the rounding stays.
  %r = linalg.generic {indexing_maps = [#id], iterator_types = ["parallel", "parallel"]} outs(%en : tensor<8x300xbf16>) {
  ^bb0(%c: bf16):
    %i = linalg.index 0 : index
    %j = linalg.index 1 : index
    %d = arith.subi %j, %i : index
    %d32 = arith.index_cast %d : index to i32
    %n = math.absi %d32 : i32
    %f = arith.sitofp %n : i32 to f32
    %t = arith.truncf %f : f32 to bf16
    linalg.yield %t : bf16
  } -> tensor<8x300xbf16>
  %x = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%s, %r : tensor<8x300xf32>, tensor<8x300xbf16>) outs(%es : tensor<8x300xf32>) {
  ^bb0(%a: f32, %r16: bf16, %c: f32):
    %third = arith.constant 0.334 : bf16
    %share = arith.mulf %r16, %third : bf16
    %bucket = arith.fptosi %share : bf16 to i32
    %at = arith.index_cast %bucket : i32 to index
    %bias = tensor.extract %table[%at] : tensor<512xf32>
    %far = arith.constant 257.0 : f32
    %r32 = arith.extf %r16 : bf16 to f32
    %near = arith.cmpf olt, %r32, %far : f32
    %chosen = arith.select %near, %bias, %zero : f32
    %rate = arith.constant 0.01 : f32
    %slope = arith.mulf %r32, %rate : f32
    %y = arith.addf %a, %chosen : f32
    %w = arith.subf %y, %slope : f32
    linalg.yield %w : f32
  } -> tensor<8x300xf32>
  %p = linalg.softmax dimension(1) ins(%x : tensor<8x300xf32>) outs(%es : tensor<8x300xf32>) -> tensor<8x300xf32>
  %eo = tensor.empty() : tensor<8x16xf32>
  %o0 = linalg.fill ins(%zero : f32) outs(%eo : tensor<8x16xf32>) -> tensor<8x16xf32>
  %o = linalg.matmul ins(%p, %v : tensor<8x300xf32>, tensor<300x16xf32>) outs(%o0 : tensor<8x16xf32>) -> tensor<8x16xf32>
  return %o : tensor<8x16xf32>
}

// -----

// There is no f64 in a region: what f64 alone decides stays as it is. (That the
// scale was computed in f64 changes nothing, nor does an integer on its way to
// f32.)
// REASON: the scores make an integer or a choice of a number of f64
// CHECK-LABEL: func.func @f64
// CHECK-NOT: attn.attention
// CHECK-LABEL: func.func @through_f64
// CHECK: attn.attention {{.*}} {scale = 2.500000e-01 : f64}
// CHECK: %[[R:.*]] = arith.sitofp %{{.*}} : i32 to f32
// CHECK: %[[SHARE:.*]] = arith.mulf %[[R]], %{{.*}} : f32
// CHECK: arith.fptosi %[[SHARE]] : f32 to i64
#id = affine_map<(i, j) -> (i, j)>
func.func @f64(%q: tensor<8x16xf32>, %k: tensor<16x12xf32>, %v: tensor<12x16xf32>, %table: tensor<16xf32>) -> tensor<8x16xf32> {
  %zero = arith.constant 0.0 : f32
  %es = tensor.empty() : tensor<8x12xf32>
  %s0 = linalg.fill ins(%zero : f32) outs(%es : tensor<8x12xf32>) -> tensor<8x12xf32>
  %s = linalg.matmul ins(%q, %k : tensor<8x16xf32>, tensor<16x12xf32>) outs(%s0 : tensor<8x12xf32>) -> tensor<8x12xf32>
  %x = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%s : tensor<8x12xf32>) outs(%es : tensor<8x12xf32>) {
  ^bb0(%a: f32, %c: f32):
    %j = linalg.index 1 : index
    %j64 = arith.index_cast %j : index to i64
    %f = arith.sitofp %j64 : i64 to f64
    %third = arith.constant 0.333333333333333333 : f64
    %share = arith.mulf %f, %third : f64
    %bucket = arith.fptosi %share : f64 to i64
    %at = arith.index_cast %bucket : i64 to index
    %bias = tensor.extract %table[%at] : tensor<16xf32>
    %y = arith.addf %a, %bias : f32
    linalg.yield %y : f32
  } -> tensor<8x12xf32>
  %p = linalg.softmax dimension(1) ins(%x : tensor<8x12xf32>) outs(%es : tensor<8x12xf32>) -> tensor<8x12xf32>
  %eo = tensor.empty() : tensor<8x16xf32>
  %o0 = linalg.fill ins(%zero : f32) outs(%eo : tensor<8x16xf32>) -> tensor<8x16xf32>
  %o = linalg.matmul ins(%p, %v : tensor<8x12xf32>, tensor<12x16xf32>) outs(%o0 : tensor<8x16xf32>) -> tensor<8x16xf32>
  return %o : tensor<8x16xf32>
}
func.func @through_f64(%q: tensor<8x16xf32>, %k: tensor<16x12xf32>, %v: tensor<12x16xf32>, %table: tensor<16xf32>) -> tensor<8x16xf32> {
  %zero = arith.constant 0.0 : f32
  %es = tensor.empty() : tensor<8x12xf32>
  %s0 = linalg.fill ins(%zero : f32) outs(%es : tensor<8x12xf32>) -> tensor<8x12xf32>
  %s = linalg.matmul ins(%q, %k : tensor<8x16xf32>, tensor<16x12xf32>) outs(%s0 : tensor<8x12xf32>) -> tensor<8x12xf32>
  %x = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%s : tensor<8x12xf32>) outs(%es : tensor<8x12xf32>) {
  ^bb0(%a: f32, %c: f32):
    %sixteen = arith.constant 16.0 : f64
    %root = math.sqrt %sixteen : f64
    %root32 = arith.truncf %root : f64 to f32
    %scaled = arith.divf %a, %root32 : f32
    %j = linalg.index 1 : index
    %j64 = arith.index_cast %j : index to i64
    %f = arith.sitofp %j64 : i64 to f64
    %f32 = arith.truncf %f : f64 to f32
    %third = arith.constant 0.333333333333333333 : f64
    %third32 = arith.truncf %third : f64 to f32
    %share = arith.mulf %f32, %third32 : f32
    %bucket = arith.fptosi %share : f32 to i64
    %at = arith.index_cast %bucket : i64 to index
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
