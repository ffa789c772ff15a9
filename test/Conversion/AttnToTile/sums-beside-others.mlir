// What goes back to captures by query is added up in the kernel of d_query, and by
// key in that of d_key: beside products of 16 bits, up to two of each. A block that
// goes through several heads has sums for none of them.
//
// RUN: attn-opt %s --split-input-file --attn-recompute --convert-attn-to-tile | FileCheck %s

// CHECK-LABEL: func.func @both(
// CHECK: %[[QUERIES:.*]] = memref.alloc(%{{.*}}) : memref<2x4x?xf32>
// CHECK: tile.kernel @both_d_query
// CHECK: %[[LOOP:.*]]:2 = scf.for {{.*}} -> (vector<128x64xf32>, vector<128xf32>) {
// CHECK: %[[ROWS:.*]] = vector.multi_reduction <add>
// CHECK: %[[SUM:.*]] = arith.addf %{{.*}}, %{{.*}} : vector<128xf32>
// CHECK: %[[PRODUCT:.*]] = vector.contract
// CHECK: scf.yield %[[PRODUCT]], %[[SUM]]
// CHECK: tile.store %[[LOOP]]#1, %[[QUERIES]]
// CHECK: %[[KEYS:.*]] = memref.alloc(%{{.*}}) : memref<2x4x?xf32>
// CHECK: tile.kernel @both_d_key_value
// CHECK: %[[LOOP:.*]]:3 = scf.for {{.*}} -> (vector<128x64xf32>, vector<128x64xf32>, vector<128xf32>) {
// CHECK: tile.store %[[LOOP]]#2, %[[KEYS]]
// CHECK-NOT: tile.kernel @both_capture_queries
// CHECK-NOT: tile.kernel @both_capture_keys
// CHECK: tile.kernel @both_d_c0
// CHECK: tile.kernel @both_d_c1
#plan = #attn.plan<target = sm_90a, block_q = 128, block_k = 64, warps = 8, stages = 2, scores = twice>
!t = tensor<2x4x?x64xbf16>
!l = tensor<2x4x?xf32>
!s = tensor<2x4x?xf32>
func.func @both(%q: !t, %k: !t, %l: !l, %d: !t, %s: !s, %u: !s) -> (!t, !t, !t, !s, !s) {
  %r:5 = attn.attention_backward %q, %k, %k, %q, %l, %d captures(%s, %u) {grad_captures = array<i64: 0, 1>, plan = #plan}
    score(%x: f32, %b: i32, %h: i32, %i: i32, %j: i32, %rows: !s, %columns: !s) {
      %row = attn.capture_load %rows[%b, %h, %i] : !s
      %column = attn.capture_load %columns[%b, %h, %j] : !s
      %z = arith.addf %x, %row : f32
      %y = arith.addf %z, %column : f32
      attn.yield %y : f32
    }
    pullback(%dy: f32, %x: f32, %b: i32, %h: i32, %i: i32, %j: i32, %rows: !s, %columns: !s) {
      attn.capture_add %dy, %rows[%b, %h, %i] : !s
      attn.capture_add %dy, %columns[%b, %h, %j] : !s
      attn.yield %dy : f32
    }
    : (!t, !t, !t, !t, !l, !t, !s, !s) -> (!t, !t, !t, !s, !s)
  return %r#0, %r#1, %r#2, %r#3, %r#4 : !t, !t, !t, !s, !s
}

// -----

// CHECK-LABEL: func.func @heads(
// CHECK: tile.kernel @heads_d_key_value
// CHECK: scf.for {{.*}} -> (vector<128x64xf32>, vector<128x64xf32>) {
// CHECK: tile.kernel @heads_capture_keys
#plan = #attn.plan<target = sm_90a, block_q = 128, block_k = 64, warps = 8, stages = 2, scores = twice, with = ["tile-loop-heads"]>
!t = tensor<2x4x?x64xbf16>
!l = tensor<2x4x?xf32>
!s = tensor<2x4x?xf32>
func.func @heads(%q: !t, %k: !t, %l: !l, %d: !t, %s: !s) -> (!t, !t, !t, !s) {
  %r:4 = attn.attention_backward %q, %k, %k, %q, %l, %d captures(%s) {grad_captures = array<i64: 0>, plan = #plan}
    score(%x: f32, %b: i32, %h: i32, %i: i32, %j: i32, %columns: !s) {
      %column = attn.capture_load %columns[%b, %h, %j] : !s
      %y = arith.addf %x, %column : f32
      attn.yield %y : f32
    }
    pullback(%dy: f32, %x: f32, %b: i32, %h: i32, %i: i32, %j: i32, %columns: !s) {
      attn.capture_add %dy, %columns[%b, %h, %j] : !s
      attn.yield %dy : f32
    }
    : (!t, !t, !t, !t, !l, !t, !s) -> (!t, !t, !t, !s)
  return %r#0, %r#1, %r#2, %r#3 : !t, !t, !t, !s
}
