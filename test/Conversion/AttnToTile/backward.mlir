// Which kernels gradients become, and what they go through.
//
// RUN: attn-opt %s --attn-recompute --convert-attn-to-tile | FileCheck %s
// RUN: attn-opt %s --attn-recompute --convert-attn-to-tile --tile-order-blocks --tile-peel-masks | FileCheck %s --check-prefix=PEEL

#plan = #attn.plan<target = sm_80, block_q = 64, block_k = 32, warps = 4>
!t = tensor<2x4x?x64xbf16>
!l = tensor<2x4x?xf32>

// CHECK-LABEL: func.func @causal(
// CHECK-SAME: memref<2x4x?xf32, strided<[?, ?, 1], offset: ?>>
// Workspaces reach to the end of the last block.
// CHECK: %[[BLOCKS:.*]] = arith.ceildivsi %{{.*}}, %[[C64:.*]] : index
// CHECK: %[[PADDED:.*]] = arith.muli %[[BLOCKS]], %[[C64]] : index
// CHECK: %[[OFFSETS:.*]] = memref.alloc(%[[PADDED]]) : memref<2x4x?xf32>
// CHECK: %[[DELTA:.*]] = memref.alloc(%[[PADDED]]) : memref<2x4x?xf32>
// A warp alone has 32 rows.
// CHECK: %[[BY_WARPS:.*]] = arith.ceildivsi %[[PADDED]], %c32 : index
// CHECK: tile.kernel @causal_rows plan(#attn.plan<target = sm_80, block_q = 64, block_k = 32>) {{.*}} in (%{{.*}}, %{{.*}}, %[[BY_WARPS]])
// CHECK-NOT: tile.load
// CHECK: tile.store %{{.*}}, %[[OFFSETS]]
// CHECK-NOT: tile.store %{{.*}}, %[[DELTA]]

// It has the rows of dO, and computes delta of them before the loop: for all
// rows of the workspaces.
// CHECK: %[[ALL:.*]] = arith.ceildivsi %[[PADDED]], %[[C64]] : index
// CHECK: tile.kernel @causal_d_query {{.*}} in (%{{.*}}, %{{.*}}, %[[ALL]])
// CHECK: tile.gather %[[OFFSETS]]{{.*}} -> vector<64x1xf32>
// CHECK: vector.multi_reduction <add>, %{{.*}} [1] : vector<64x64xf32> to vector<64xf32>
// CHECK: tile.store %{{.*}}, %[[DELTA]]
// CHECK: scf.for {{.*}} -> (vector<64x64xf32>) {
// No product is in flight: weights are computed beside the second one.
// CHECK: vector.contract
// CHECK: tile.scores
// CHECK: } : vector<64x32xf32>, vector<64x1xi32>, vector<1x32xi32>
// CHECK: scf.if
// CHECK: vector.contract
// CHECK: math.exp2
// CHECK-NOT: vector.contract
// CHECK: arith.truncf %{{.*}} : vector<64x32xf32> to vector<64x32xbf16>
// CHECK: vector.contract {{.*}} into vector<64x64xf32>

// The rows of the scores are keys.
// CHECK: tile.kernel @causal_d_key_value
// CHECK: scf.for {{.*}} -> (vector<64x64xf32>, vector<64x64xf32>) {
// CHECK: tile.load %[[OFFSETS]]{{.*}}, vector<1x32xf32>
// CHECK: tile.scores
// CHECK: } : vector<64x32xf32>, vector<1x32xi32>, vector<64x1xi32>
// CHECK: tile.load %[[DELTA]]{{.*}}, vector<1x32xf32>
// CHECK-NOT: tile.kernel

// A query block sees the keys up to its own; a key block is seen from its own
// on.
// PEEL-LABEL: func.func @causal(
// PEEL: tile.kernel @causal_d_query {{.*}} grid(%{{.*}}, %{{.*}}, %[[X:.*]]) in
// PEEL: arith.subi %{{.*}}, %[[X]] : index
// PEEL: %[[FIRST:.*]] = scf.for %{{.*}} = %c0 to %[[FULL:.*]] step
// PEEL-NOT: mask {
// PEEL: scf.for %{{.*}} = %[[FULL]] to %{{.*}} step {{.*}} iter_args(%{{.*}} = %[[FIRST]])
// PEEL: mask {
// PEEL: tile.kernel @causal_d_key_value {{.*}} grid(%{{.*}}, %{{.*}}, %[[Y:.*]]) in
// PEEL-NOT: arith.subi %{{.*}}, %[[Y]] : index
// PEEL: scf.for %{{.*}} = %[[LOW:.*]] to %[[FULL:.*]] step
// PEEL: mask {
// PEEL: scf.for %{{.*}} = %[[FULL]] to %[[TAIL:.*]] step
// PEEL-NOT: mask {
// PEEL: scf.for %{{.*}} = %[[TAIL]] to
// PEEL: mask {
// PEEL: return
func.func @causal(%q: !t, %k: !t, %v: !t, %o: !t, %lse: !l, %do: !t) -> (!t, !t, !t) {
  %dq, %dk, %dv = attn.attention_backward %q, %k, %v, %o, %lse, %do {plan = #plan}
    mask(%b: i32, %h: i32, %i: i32, %j: i32) {
      %c = arith.cmpi sle, %j, %i : i32
      attn.yield %c : i1
    } : (!t, !t, !t, !t, !l, !t) -> (!t, !t, !t)
  return %dq, %dk, %dv : !t, !t, !t
}

// A sum over query heads for each key head, no gradient that nobody returns,
// and the gradient of a sink in two steps.
// CHECK-LABEL: func.func @grouped(
// CHECK: memref.alloc
// CHECK: memref.alloc
// Without d_query, delta has its place beside the offsets.
// CHECK: tile.kernel @grouped_rows
// CHECK-COUNT-2: tile.load
// CHECK: vector.multi_reduction <add>
// CHECK-NOT: d_query
// CHECK: %[[HEADS:.*]] = memref.alloc(%{{.*}}) : memref<2x4x?x64xf32>
// CHECK: tile.kernel @grouped_d_key
// CHECK: tile.store %{{.*}}, %[[HEADS]]
// CHECK: tile.kernel @grouped_sum_key {{.*}} in (%{{.*}}, %c1{{.*}},
// CHECK: scf.for
// CHECK: tile.gather %[[HEADS]]
// CHECK: tile.kernel @grouped_sink_parts
// CHECK: tile.kernel @grouped_d_sink
!k = tensor<2x1x?x64xbf16>
!s = tensor<4xf32>
func.func @grouped(%q: !t, %k: !k, %v: !k, %o: !t, %lse: !l, %do: !t, %sink: !s) -> (!k, !s) {
  %dq, %dk, %dv, %dsink = attn.attention_backward %q, %k, %v, %o, %lse, %do sink(%sink) {plan = #plan}
    : (!t, !k, !k, !t, !l, !t, !s) -> (!t, !k, !k, !s)
  return %dk, %dsink : !k, !s
}
