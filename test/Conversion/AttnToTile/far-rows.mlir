// lse of rows where f32 does not hold its fraction becomes two numbers.
//
// RUN: attn-opt %s --attn-recompute --convert-attn-to-tile --cse | FileCheck %s

#plan = #attn.plan<target = sm_80, block_q = 64, block_k = 32, warps = 4>
!t = tensor<2x4x?x64xbf16>
!l = tensor<2x4x?xf32>

// CHECK-LABEL: func.func @plain(
// CHECK: %[[LSE:.*]] = memref.alloc(%{{.*}}) : memref<2x4x?xf32>
// CHECK: %[[DELTA:.*]] = memref.alloc(%{{.*}}) : memref<2x4x?xf32>
// CHECK: %[[REST:.*]] = memref.alloc(%{{.*}}) : memref<2x4x?xf32>
// CHECK: %[[FAR:.*]] = memref.alloc(%{{.*}}) : memref<2x4x?xf32>
// CHECK: tile.kernel @plain_rows
// CHECK: %[[ANY:.*]] = vector.multi_reduction <or>
// CHECK: %[[VOTE:.*]] = arith.select %[[ANY]]
// CHECK: %[[VOTES:.*]] = vector.broadcast %[[VOTE]]
// CHECK: tile.store %[[VOTES]], %[[FAR]]
// CHECK: tile.store %{{.*}}, %[[REST]]

// A vote of each 16 rows, and nothing more where there is none.
// CHECK: tile.kernel @plain_far_rows
// CHECK-COUNT-4: memref.load %[[FAR]]
// CHECK-NOT: memref.load
// CHECK: tile.exit_if
// CHECK: %[[SAVED:.*]] = tile.gather %[[LSE]]
// CHECK: %[[SUMS:.*]]:2 = scf.for
// CHECK: vector.contract
// The scale comes after the products, as where weights are computed.
// CHECK: %[[Y:.*]] = arith.mulf
// CHECK: vector.multi_reduction <maxnumf>, %[[Y]]
// CHECK: %[[LOG:.*]] = math.log %[[SUMS]]#1
// CHECK: %[[FIRST:.*]] = arith.select %[[ISFAR:.*]], %[[SUMS]]#0, %[[SAVED]]
// CHECK: %[[SECOND:.*]] = arith.select %[[ISFAR]], %[[LOG]], %{{.*}}
// CHECK: %[[A:.*]] = vector.shape_cast %[[FIRST]]
// CHECK: tile.store %[[A]], %[[LSE]]
// CHECK: %[[B:.*]] = vector.shape_cast %[[SECOND]]
// CHECK: tile.store %[[B]], %[[REST]]

// CHECK: tile.kernel @plain_d_query
// CHECK: tile.gather %[[LSE]]
// CHECK: tile.gather %[[REST]]
// CHECK: arith.minimumf
// CHECK: tile.kernel @plain_d_key_value
// CHECK: tile.load %[[LSE]]
// CHECK: tile.gather %[[REST]]
// CHECK: arith.minimumf
func.func @plain(%q: !t, %k: !t, %v: !t, %o: !t, %lse: !l, %do: !t) -> (!t, !t, !t) {
  %dq, %dk, %dv = attn.attention_backward %q, %k, %v, %o, %lse, %do {plan = #plan}
    : (!t, !t, !t, !t, !l, !t) -> (!t, !t, !t)
  return %dq, %dk, %dv : !t, !t, !t
}

// A sink is there from the start.
// CHECK-LABEL: func.func @sunk(
// CHECK: tile.kernel @sunk_far_rows
// CHECK: %[[LOGIT:.*]] = memref.load %{{.*}} : memref<4xf32
// CHECK: %[[START:.*]] = vector.broadcast %[[LOGIT]] : f32 to vector<64x1xf32>
// CHECK: scf.for {{.*}} iter_args(%{{.*}} = %[[START]], %{{.*}} = %{{.*}})
// CHECK: tile.kernel @sunk_sink_parts
// CHECK: arith.minimumf
func.func @sunk(%q: !t, %k: !t, %v: !t, %o: !t, %lse: !l, %do: !t, %sink: tensor<4xf32>) -> (!t, tensor<4xf32>) {
  %dq, %dk, %dv, %ds = attn.attention_backward %q, %k, %v, %o, %lse, %do sink(%sink) {plan = #plan}
    : (!t, !t, !t, !t, !l, !t, tensor<4xf32>) -> (!t, !t, !t, tensor<4xf32>)
  return %dq, %ds : !t, tensor<4xf32>
}

// Scores that are known to be small have no such rows.
// CHECK-LABEL: func.func @capped(
// CHECK-NOT: far_rows
// CHECK-NOT: arith.minimumf
// CHECK: return
func.func @capped(%q: !t, %k: !t, %v: !t, %o: !t, %lse: !l, %do: !t) -> (!t, !t, !t) {
  %dq, %dk, %dv = attn.attention_backward %q, %k, %v, %o, %lse, %do {plan = #plan}
    score(%x: f32, %b: i32, %h: i32, %i: i32, %j: i32) {
      %cap = arith.constant 50.0 : f32
      %t = math.tanh %x : f32
      %y = arith.mulf %t, %cap : f32
      attn.yield %y : f32
    } : (!t, !t, !t, !t, !l, !t) -> (!t, !t, !t)
  return %dq, %dk, %dv : !t, !t, !t
}
