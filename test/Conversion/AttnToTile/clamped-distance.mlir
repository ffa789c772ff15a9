// Sums for each query and distance, up to 90 to each side, that are more than there
// are bins: a chunk of them, of a block of queries, is of the keys as far away; the
// first one is of all that are farther, too, and so is the last.
//
// RUN: attn-opt %s --attn-recompute --convert-attn-to-tile | FileCheck %s

// CHECK-LABEL: func.func @near(
// CHECK: tile.kernel @near_capture_0_elements
// CHECK: %[[CHUNK:.*]] = arith.remsi %block, %c2
// CHECK: %[[NUMBER:.*]] = arith.divsi %block, %c2
// CHECK: %[[ROW:.*]] = arith.muli %[[NUMBER]], %c8
// CHECK: %[[FIRST:.*]] = arith.muli %[[CHUNK]], %c136
// CHECK: tile.bins : memref<8x136xf32>
// CHECK: %[[END:.*]] = arith.addi %[[FIRST]], %c136
// element = clamp(i - j) + 90: keys from row + 90 - (end - 1).
// CHECK: %[[OWN:.*]] = arith.addi %[[ROW]], %c90
// CHECK: %[[AFTER:.*]] = arith.subi %[[OWN]], %[[END]]
// CHECK: %[[LEAST:.*]] = arith.addi %[[AFTER]], %c1
// CHECK: %[[LAST:.*]] = arith.subi %[[OWN]], %[[FIRST]]
// CHECK: %[[MOST:.*]] = arith.addi %[[LAST]], %c8
// CHECK: %[[HASMOST:.*]] = arith.cmpi slt, %c180{{.*}}, %[[END]]
// CHECK: %[[BEGIN:.*]] = arith.select %[[HASMOST]], %c0{{.*}}, %[[LEAST]]
// CHECK: %[[HASLEAST:.*]] = arith.cmpi sge, %c0{{.*}}, %[[FIRST]]
// CHECK: %[[STOP:.*]] = arith.select %[[HASLEAST]], %[[LENGTH:.*]], %[[MOST]]
// CHECK: arith.maxsi %[[BEGIN]], %c0
// CHECK: %[[BEGIN32:.*]] = arith.index_cast
// CHECK: arith.maxsi %[[STOP]], %c0
// CHECK: %[[STOP32:.*]] = arith.index_cast
// CHECK: tile.scores
// CHECK: arith.cmpi sge, %[[J:.*]], %[[BEGIN32]]
// CHECK: arith.cmpi slt, %[[J]], %[[STOP32]]
#plan = #attn.plan<target = cpu, block_q = 8, block_k = 16>
!t = tensor<2x4x?x64xf16>
!l = tensor<2x4x?xf32>
!s = tensor<4x?x181xf32>
func.func @near(%q: !t, %k: !t, %l: !l, %s: !s) -> !s {
  %r:4 = attn.attention_backward %q, %k, %k, %q, %l, %q captures(%s) {grad_captures = array<i64: 0>, plan = #plan}
    score(%x: f32, %b: i32, %h: i32, %i: i32, %j: i32, %t: !s) {
      %reach = arith.constant 90 : i32
      %other = arith.constant -90 : i32
      %d = arith.subi %i, %j : i32
      %d0 = arith.maxsi %d, %other : i32
      %d1 = arith.minsi %d0, %reach : i32
      %n = arith.addi %d1, %reach : i32
      %u = attn.capture_load %t[%h, %i, %n] : !s
      %y = arith.addf %x, %u : f32
      attn.yield %y : f32
    }
    pullback(%dy: f32, %x: f32, %b: i32, %h: i32, %i: i32, %j: i32, %t: !s) {
      %reach = arith.constant 90 : i32
      %other = arith.constant -90 : i32
      %d = arith.subi %i, %j : i32
      %d0 = arith.maxsi %d, %other : i32
      %d1 = arith.minsi %d0, %reach : i32
      %n = arith.addi %d1, %reach : i32
      attn.capture_add %dy, %t[%h, %i, %n] : !s
      attn.yield %dy : f32
    }
    : (!t, !t, !t, !t, !l, !t, !s) -> (!t, !t, !t, !s)
  return %r#3 : !s
}
