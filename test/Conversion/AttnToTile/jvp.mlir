// The kernel of attention and its tangents, and what it goes through.
//
// RUN: attn-opt %s --convert-attn-to-tile | FileCheck %s
// RUN: attn-opt %s --convert-attn-to-tile --tile-peel-masks | FileCheck %s --check-prefix=PEEL
// RUN: attn-opt %s --attn-to-tile=target=sm_80 | FileCheck %s --check-prefix=FLAT

#plan = #attn.plan<target = sm_80, block_q = 64, block_k = 32, warps = 4>
!t = tensor<2x4x?x64xbf16>
!l = tensor<2x4x?xf32>

// One kernel, one loop: what it carries are two tiles and three numbers of each
// row.
// CHECK-LABEL: func.func @causal(
// CHECK: tile.kernel @causal
// CHECK: %[[Q:.*]] = tile.load %{{.*}}, vector<64x64xbf16>
// CHECK: %[[TQ:.*]] = tile.load %{{.*}}, vector<64x64xbf16>
// CHECK: scf.for {{.*}} -> (vector<64x64xf32>, vector<64x64xf32>, vector<64x1xf32>, vector<64x1xf32>, vector<64x1xf32>) {
// CHECK: %[[K:.*]] = tile.load %{{.*}}, vector<32x64xbf16>
// CHECK: %[[S:.*]] = vector.contract {{.*}} %[[Q]], %[[K]],
// CHECK: %[[T1:.*]] = vector.contract {{.*}} %[[TQ]], %[[K]],
// CHECK: %[[TK:.*]] = tile.load
// CHECK: %[[T2:.*]] = vector.contract {{.*}} %[[Q]], %[[TK]], %[[T1]]
// CHECK: tile.scores %[[S]]
// CHECK: %[[P:.*]], %{{.*}}, %{{.*}}, %{{.*}} = tile.online_softmax
// The slope of tanh, of a block.
// CHECK: math.tanh %{{.*}} : vector<64x32xf32>
// CHECK: arith.cmpf oeq, %[[P]], %{{.*}} : vector<64x32xf32>
// CHECK: vector.multi_reduction
// CHECK: %[[F:.*]] = arith.truncf %[[P]]
// CHECK: %[[TF:.*]] = arith.truncf
// CHECK: %[[V:.*]] = tile.load
// CHECK: vector.contract {{.*}} %[[F]], %[[V]],
// CHECK: %[[SUM:.*]] = vector.contract {{.*}} %[[TF]], %[[V]],
// CHECK: %[[TV:.*]] = tile.load
// CHECK: vector.contract {{.*}} %[[F]], %[[TV]], %[[SUM]]
// CHECK: scf.yield
// CHECK-COUNT-4: tile.store
// CHECK-NOT: tile.kernel

// Blocks that the mask hides are not visited, and full ones have none.
// PEEL-LABEL: func.func @causal(
// PEEL-COUNT-2: scf.for
// FLAT-LABEL: func.func @causal(
// FLAT-NOT: tile.scores
// FLAT: math.exp2
func.func @causal(%q: !t, %k: !t, %v: !t, %tq: !t, %tk: !t, %tv: !t) -> (!t, !l, !t, !l) {
  %o, %lse, %to, %tlse = attn.attention_jvp %q, %k, %v, %tq, %tk, %tv {plan = #plan}
    score(%x: f32, %b: i32, %h: i32, %i: i32, %j: i32) {
      %y = math.tanh %x : f32
      attn.yield %y : f32
    }
    mask(%b: i32, %h: i32, %i: i32, %j: i32) {
      %m = arith.cmpi sge, %i, %j : i32
      attn.yield %m : i1
    }
    pushforward(%tx: f32, %x: f32, %b: i32, %h: i32, %i: i32, %j: i32) {
      %one = arith.constant 1.0 : f32
      %y = math.tanh %x : f32
      %y2 = arith.mulf %y, %y : f32
      %slope = arith.subf %one, %y2 : f32
      %ty = arith.mulf %tx, %slope : f32
      attn.yield %ty : f32
    }
    : (!t, !t, !t, !t, !t, !t) -> (!t, !l, !t, !l)
  return %o, %lse, %to, %tlse : !t, !l, !t, !l
}
