// RUN: attn-opt %s --attn-recompute --convert-attn-to-tile | FileCheck %s

#plan = #attn.plan<target = sm_80, block_q = 64, block_k = 32, warps = 4, split_keys = 6>
#any = #attn.numerics<deterministic = false>
!t = tensor<2x4x?x64xbf16>
!l = tensor<2x4x?xf32>

// Six blocks share the keys of a block of queries: batch entry and part are one
// number of the grid. A kernel adds up their sums, in their order, two at a time, and
// multiplies by the scale. One program, which would be possible, is not for
// parts.
// CHECK-LABEL: func.func @split(
// CHECK: tile.kernel @split_rows
// CHECK: %[[SUMS:.*]] = memref.alloc(%{{.*}}) : memref<12x4x?x64xf32>
// CHECK: tile.kernel @split_d_query plan({{.*}}split_keys = 6>) grid(%[[B:.*]], %[[N:.*]], %[[X:.*]]) in (%c12, %c4, %{{.*}})
// CHECK: %[[H:.*]] = arith.divui %[[B]], %c6
// CHECK: %[[P:.*]] = arith.remui %[[B]], %c6
// CHECK: tile.share_blocks %[[P]] of 6
// CHECK: tile.load %{{.*}}[%[[H]], %[[N]],
// CHECK: %[[SUM:.*]] = scf.for
// CHECK: tile.store %[[SUM]], %[[SUMS]][%[[B]], %[[N]], %{{.*}}] : vector<{{.*}}xf32>
// CHECK: tile.kernel @split_sum_query plan({{.*}}) grid(%[[MB:.*]], %[[MH:.*]], %{{.*}}) in
// CHECK: %[[FIRST:.*]] = arith.muli %[[MB]], %c6
// CHECK: %[[END:.*]] = arith.addi %[[FIRST]], %c6
// CHECK: scf.for %{{.*}} = %[[FIRST]] to %[[END]] step %c2
// CHECK-COUNT-2: tile.gather %[[SUMS]]
// CHECK: tile.store
// CHECK: tile.kernel @split_d_key_value
// CHECK-NOT: tile.share_blocks
func.func @split(%q: !t, %k: !t, %v: !t, %o: !t, %lse: !l, %do: !t) -> (!t, !t, !t) {
  %dq, %dk, %dv = attn.attention_backward %q, %k, %v, %o, %lse, %do {plan = #plan, numerics = #any}
    : (!t, !t, !t, !t, !l, !t) -> (!t, !t, !t)
  return %dq, %dk, %dv : !t, !t, !t
}
