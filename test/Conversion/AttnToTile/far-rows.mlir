// lse of rows where f32 does not hold its fraction becomes two numbers.
//
// RUN: attn-opt %s --attn-recompute --convert-attn-to-tile --cse | FileCheck %s

#plan = #attn.plan<target = sm_80, block_q = 64, block_k = 32, warps = 4>
#wgmma = #attn.plan<target = sm_90a, block_q = 128, block_k = 64, warps = 8, stages = 2>
!t = tensor<2x4x?x64xbf16>
!l = tensor<2x4x?xf32>

// CHECK-LABEL: func.func @plain(
// CHECK: %[[OFFSET:.*]] = memref.alloc(%{{.*}}) : memref<2x4x?xf32>
// CHECK: %[[DELTA:.*]] = memref.alloc(%{{.*}}) : memref<2x4x?xf32>
// CHECK: %[[REST:.*]] = memref.alloc(%{{.*}}) : memref<2x4x?xf32>
// CHECK: %[[FAR:.*]] = memref.alloc(%{{.*}}) : memref<2x4x?xf32>
// CHECK: %[[HEADS:.*]] = memref.alloc() : memref<2x4xf32>
// CHECK: tile.kernel @plain_rows
// CHECK: %[[ANY:.*]] = vector.multi_reduction <or>
// CHECK: %[[VOTE:.*]] = arith.select %[[ANY]]
// CHECK: %[[VOTES:.*]] = vector.broadcast %[[VOTE]]
// CHECK: tile.store %[[VOTES]], %[[FAR]]
// CHECK: tile.store %{{.*}}, %[[REST]]
// CHECK: scf.if
// CHECK-NOT: tile.store
// CHECK: memref.store %{{.*}}, %[[HEADS]]

// A vote of each 32 rows, and nothing more where there is none.
// CHECK: tile.kernel @plain_far_rows
// CHECK-COUNT-2: memref.load %[[FAR]]
// CHECK-NOT: memref.load
// CHECK: tile.exit_if
// CHECK: %[[SAVED:.*]] = arith.select
// CHECK: %[[SUMS:.*]]:2 = scf.for
// CHECK: vector.contract
// The scale comes after the products, as where weights are computed.
// CHECK: %[[Y:.*]] = arith.mulf
// CHECK: vector.multi_reduction <maxnumf>, %[[Y]]
// CHECK: %[[LOG:.*]] = math.log %[[SUMS]]#1
// CHECK: %[[FIRST:.*]] = arith.select %[[LARGE:.*]], %[[SUMS]]#0, %[[SAVED]]
// CHECK: %[[MINUS:.*]] = arith.mulf %[[FIRST]]
// CHECK: %[[SECOND:.*]] = arith.select %[[LARGE]], %[[LOG]], %{{.*}}
// CHECK: %[[BITS:.*]] = arith.mulf %[[SECOND]]
// CHECK: %[[NEAR:.*]] = arith.mulf %[[SAVED]]
// CHECK: %[[OFFSETS:.*]] = arith.select %[[ISFAR:.*]], %[[MINUS]], %[[NEAR]]
// CHECK: %[[A:.*]] = vector.shape_cast %[[OFFSETS]]
// CHECK: tile.store %[[A]], %[[OFFSET]]
// CHECK: %[[RESTS:.*]] = arith.select %[[ISFAR]], %[[BITS]], %{{.*}}
// CHECK: %[[B:.*]] = vector.shape_cast %[[RESTS]]
// CHECK: tile.store %[[B]], %[[REST]]
// CHECK: memref.store %{{.*}}, %[[HEADS]]

// One number says whether the head has such rows, and rests are read there.
// CHECK: tile.kernel @plain_d_query
// CHECK: tile.gather %[[OFFSET]]
// CHECK: %[[NUMBER:.*]] = memref.load %[[HEADS]]
// CHECK: %[[HAS:.*]] = arith.cmpf une, %[[NUMBER]], %{{.*}} : f32
// CHECK: scf.for
// CHECK: scf.if %[[HAS]]
// CHECK: tile.gather %[[REST]]
// CHECK: arith.minimumf
// CHECK: else
// CHECK-NEXT: scf.yield
// CHECK: tile.kernel @plain_d_key_value
// CHECK: %[[NUMBER:.*]] = memref.load %[[HEADS]]
// CHECK: %[[HAS:.*]] = arith.cmpf une, %[[NUMBER]], %{{.*}} : f32
// CHECK: scf.for
// CHECK: tile.load %[[OFFSET]]
// CHECK: scf.if %[[HAS]]
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
// CHECK: %[[NEAR:.*]] = math.exp %
// CHECK: %[[WEIGHTS:.*]] = arith.minimumf
// CHECK: arith.select %{{.*}}, %[[WEIGHTS]], %[[NEAR]]
func.func @sunk(%q: !t, %k: !t, %v: !t, %o: !t, %lse: !l, %do: !t, %sink: tensor<4xf32>) -> (!t, tensor<4xf32>) {
  %dq, %dk, %dv, %ds = attn.attention_backward %q, %k, %v, %o, %lse, %do sink(%sink) {plan = #plan}
    : (!t, !t, !t, !t, !l, !t, tensor<4xf32>) -> (!t, !t, !t, tensor<4xf32>)
  return %dq, %ds : !t, tensor<4xf32>
}

// Where products are in flight each arm takes its own powers, behind both.
// CHECK-LABEL: func.func @in_flight(
// CHECK: tile.kernel @in_flight_d_key_value
// CHECK: scf.for
// CHECK-COUNT-2: vector.contract
// CHECK: scf.if
// CHECK: math.exp2
// CHECK: arith.minimumf
// CHECK: else
// CHECK: math.exp2
// CHECK-NEXT: scf.yield
func.func @in_flight(%q: !t, %k: !t, %v: !t, %o: !t, %lse: !l, %do: !t) -> (!t, !t, !t) {
  %dq, %dk, %dv = attn.attention_backward %q, %k, %v, %o, %lse, %do {plan = #wgmma}
    : (!t, !t, !t, !t, !l, !t) -> (!t, !t, !t)
  return %dq, %dk, %dv : !t, !t, !t
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
