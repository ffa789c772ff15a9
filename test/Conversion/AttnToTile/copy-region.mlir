// RUN: attn-opt %s --convert-attn-to-tile | FileCheck %s

!q = tensor<2x8x?x64xf16>
!lse = tensor<2x8x?xf32>
#plan = #attn.plan<target = cpu, block_q = 16, block_k = 32>

// The regions stay scalar, the scale stands in that of the score; captured tensors are read where they are, and the
// promise that one is sorted goes along.
// CHECK-LABEL: func.func @regions(
// CHECK-SAME: %[[TABLE:[a-z0-9]+]]: memref<?x?xf32, strided<[?, 1], offset: ?>>, %[[IDS:[a-z0-9]+]]: memref<?xi32, strided<[1], offset: ?>>, %[[FACTOR:[a-z0-9]+]]: f32
// CHECK: %[[N:.*]] = arith.index_cast %{{.*}} : index to i32
// CHECK: %[[ROWS:.*]] = tile.coords %{{.*}}, 0 : vector<16x1xi32>
// CHECK: scf.for
// CHECK: %[[COLS:.*]] = tile.coords %{{.*}}, 1 : vector<1x32xi32>
// CHECK: %[[X:.*]] = vector.contract
// CHECK-NEXT: %[[Y:.*]] = tile.scores %[[X]] at(%{{.*}}, %{{.*}}, %[[ROWS]], %[[COLS]]) below(%[[N]]) score {
// CHECK-NEXT: ^bb0(%[[S0:.*]]: f32, %{{.*}}: i32, %[[H:.*]]: i32, %{{.*}}: i32, %[[J:.*]]: i32):
// CHECK: %[[S:.*]] = arith.mulf %[[S0]], %{{.*}} : f32
// CHECK-NEXT: %[[BIAS:.*]] = tile.gather %[[TABLE]][%[[H]], %[[J]]]
// CHECK-NEXT: %[[SCALED:.*]] = arith.mulf %[[BIAS]], %[[FACTOR]] : f32
// CHECK-NEXT: %[[SUM:.*]] = arith.addf %[[S]], %[[SCALED]] : f32
// CHECK-NEXT: tile.yield %[[SUM]] : f32
// CHECK: } mask {
// CHECK-NEXT: ^bb0(%{{.*}}: i32, %{{.*}}: i32, %[[I:.*]]: i32, %[[K:.*]]: i32):
// CHECK-NEXT: %[[A:.*]] = tile.gather %[[IDS]][%[[I]]] {sorted}
// CHECK-NEXT: %[[B:.*]] = tile.search %[[IDS]][], %[[K]]
// CHECK-NEXT: %[[M:.*]] = arith.cmpi sle, %[[A]], %[[B]] : i32
// CHECK-NEXT: tile.yield %[[M]] : i1
// CHECK: tile.online_softmax %[[Y]]
func.func @regions(%q: !q, %k: !q, %v: !q, %table: tensor<?x?xf32>, %ids: tensor<?xi32>, %factor: f32) -> (!q, !lse) {
  %o, %lse = attn.attention %q, %k, %v captures(%table, %ids, %factor) {plan = #plan, sorted_captures = array<i64: 1>}
    score(%x: f32, %b: i32, %h: i32, %i: i32, %j: i32, %t: tensor<?x?xf32>, %d: tensor<?xi32>, %f: f32) {
      %bias = attn.capture_load %t[%h, %j] : tensor<?x?xf32>
      %scaled = arith.mulf %bias, %f : f32
      %y = arith.addf %x, %scaled : f32
      attn.yield %y : f32
    }
    mask(%b: i32, %h: i32, %i: i32, %j: i32, %t: tensor<?x?xf32>, %d: tensor<?xi32>, %f: f32) {
      %a = attn.capture_load %d[%i] : tensor<?xi32>
      %n = attn.capture_search %d[], %j : tensor<?xi32>
      %m = arith.cmpi sle, %a, %n : i32
      attn.yield %m : i1
    } : (!q, !q, !q, tensor<?x?xf32>, tensor<?xi32>, f32) -> (!q, !lse)
  return %o, %lse : !q, !lse
}
