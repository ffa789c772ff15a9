// RUN: attn-opt %s --attn-recompute --convert-attn-to-tile --tile-order-blocks --tile-peel-masks --tile-expand-scores --tile-expand-softmax --tile-loop-heads --split-input-file | FileCheck %s
// RUN: attn-opt %s --attn-recompute --convert-attn-to-tile --tile-expand-scores --tile-expand-softmax --tile-loop-heads --split-input-file --remarks-filter=.* --remark-policy=all -o /dev/null 2>&1 | FileCheck %s --check-prefix=REMARK

#plan = #attn.plan<target = sm_90a, block_q = 128, block_k = 64, warps = 8, with = ["tile-loop-heads"]>
!q = tensor<?x8x?x64xbf16>
!k = tensor<?x2x?x64xbf16>
!l = tensor<?x8x?xf32>

// Four heads share one of keys: there is no workspace of f32 for their parts,
// and no kernel that adds these up.
// REMARK: remark: [Passed] loop-heads
// CHECK-LABEL: func.func @causal
// CHECK-NOT: memref<?x8x?x64xf32>
// CHECK: %[[HEADS:.*]] = arith.constant 2 : index
// CHECK: tile.kernel @causal_d_query
// CHECK: tile.kernel @causal_d_key_value {{.*}} grid(%[[B:.*]], %[[H:.*]], %{{.*}}) in (%{{.*}}, %[[HEADS]], %{{.*}}) {
// Key and value are read once.
// CHECK: tile.load %{{.*}}[%[[B]], %[[H]], %[[ROW:.*]], %{{.*}}]
// CHECK: tile.load %{{.*}}[%[[B]], %[[H]], %[[ROW]], %{{.*}}]
// CHECK: %[[FIRST:.*]] = arith.muli %[[H]], %[[FOUR:.*]] : index
// CHECK: %[[SUMS:.*]]:2 = scf.for %[[I:.*]] = %{{.*}} to %[[FOUR]] step %{{.*}} iter_args(%[[V:.*]] = %{{.*}}, %[[K:.*]] = %{{.*}}) -> (vector<128x64xf32>, vector<128x64xf32>) {
// CHECK: %[[HEAD:.*]] = arith.addi %[[FIRST]], %[[I]] : index
// Loops over blocks with a mask, and without one.
// CHECK: %[[ONE:.*]]:2 = scf.for {{.*}} iter_args(%{{.*}} = %[[V]], %{{.*}} = %[[K]])
// CHECK: tile.load %{{.*}}[%[[B]], %[[HEAD]], %{{.*}}, %{{.*}}]
// CHECK: scf.for {{.*}} iter_args(%{{.*}} = %[[ONE]]#0, %{{.*}} = %[[ONE]]#1)
// CHECK: scf.yield %{{.*}}#0, %{{.*}}#1
// CHECK-NOT: scf.if
// CHECK: %[[DV:.*]] = arith.truncf %[[SUMS]]#0
// CHECK: tile.store %[[DV]], %{{.*}}[%[[B]], %[[H]], %[[ROW]], %{{.*}}]
// CHECK: arith.mulf %[[SUMS]]#1
// CHECK: tile.store %{{.*}}, %{{.*}}[%[[B]], %[[H]], %[[ROW]], %{{.*}}]
// CHECK-NOT: tile.kernel
func.func @causal(%q: !q, %k: !k, %v: !k, %o: !q, %lse: !l, %d_o: !q) -> (!q, !k, !k) {
  %d_q, %d_k, %d_v = attn.attention_backward %q, %k, %v, %o, %lse, %d_o {plan = #plan}
    mask(%b: i32, %h: i32, %i: i32, %j: i32) {
      %is_visible = arith.cmpi sge, %i, %j : i32
      attn.yield %is_visible : i1
    }
    : (!q, !k, !k, !q, !l, !q) -> (!q, !k, !k)
  return %d_q, %d_k, %d_v : !q, !k, !k
}

// -----

// Heads that nobody counted yet: a block of one head goes through one.
#plan = #attn.plan<target = sm_90a, block_q = 128, block_k = 64, warps = 8, with = ["tile-loop-heads"]>
!t = tensor<?x?x?x64xbf16>
!l = tensor<?x?x?xf32>

// REMARK: remark: [Passed] loop-heads
// CHECK-LABEL: func.func @unknown
// CHECK-SAME: (%{{[a-z0-9]+}}: memref<?x?x?x64xbf16, strided<[?, ?, ?, 1], offset: ?>>, %[[KEY:[a-z0-9]+]]: memref
// CHECK: %[[HEADS:.*]] = memref.dim %[[KEY]], %c1
// CHECK: %[[PER:.*]] = arith.divsi
// CHECK: tile.kernel @unknown_d_key_value {{.*}} grid(%{{.*}}, %[[H:.*]], %{{.*}}) in (%{{.*}}, %[[HEADS]], %{{.*}}) {
// CHECK: arith.muli %[[H]], %[[PER]] : index
// CHECK-NOT: tile.kernel
func.func @unknown(%q: !t, %k: !t, %v: !t, %o: !t, %lse: !l, %d_o: !t) -> (!t, !t, !t) {
  %d_q, %d_k, %d_v = attn.attention_backward %q, %k, %v, %o, %lse, %d_o {plan = #plan}
    : (!t, !t, !t, !t, !l, !t) -> (!t, !t, !t)
  return %d_q, %d_k, %d_v : !t, !t, !t
}

// -----

// A block that sees no query of one of its heads may not end.
#plan = #attn.plan<target = sm_90a, block_q = 128, block_k = 64, warps = 8>
!t = vector<128x64xf32>
!m = memref<1x4x128x64xf32>

// REMARK: remark: [Missed] loop-heads
// REMARK-SAME: a block may end for one of its heads
// CHECK-LABEL: func.func @ends
// CHECK: tile.kernel @parts
// CHECK: scf.if
// CHECK: tile.kernel @sum
func.func @ends(%perKeyHead: index, %ends: memref<4xi1>, %out: memref<1x2x128x64xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c4 = arith.constant 4 : index
  %true = arith.constant true
  %parts = memref.alloc() : !m
  tile.kernel @parts plan(#plan) grid(%b, %h, %x) in (%c1, %c4, %c1) {
    %keyHead = arith.divsi %h, %perKeyHead : index
    %isIdle = memref.load %ends[%h] : memref<4xi1>
    tile.exit_if %isIdle
    %zero = arith.constant dense<0.0> : !t
    %sum = scf.for %i = %c0 to %c2 step %c1 iter_args(%s = %zero) -> (!t) {
      scf.yield %s : !t
    }
    scf.if %true {
      tile.store %sum, %parts[%b, %h, %c0, %c0] : !t, !m
    } else {
      tile.store %sum, %out[%b, %keyHead, %c0, %c0] : !t, memref<1x2x128x64xf32>
    }
  }
  tile.kernel @sum plan(#plan) grid(%b, %h, %x) in (%c1, %c2, %c1) {
    %first = arith.muli %h, %perKeyHead : index
    %part = tile.load %parts[%b, %first, %c0, %c0] : !m, !t
    tile.store %part, %out[%b, %h, %c0, %c0] : !t, memref<1x2x128x64xf32>
  }
  return
}
