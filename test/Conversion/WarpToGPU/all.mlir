// RUN: attn-opt %s --convert-warp-to-gpu="chip=sm_90a" | FileCheck %s

!view = memref<?x?xf32, strided<[?, 1]>>

// Each lane asks for its own number.
// CHECK-LABEL: gpu.func @idle(
// CHECK-SAME: %[[COUNTS:[a-z0-9]+]]: memref<?xi32>
// CHECK: %[[THREAD:.*]] = gpu.thread_id x
// CHECK: %[[LANE32:.*]] = arith.remui %{{.*}}, %{{.*}} : i32
// CHECK: %[[LANE:.*]] = arith.index_cast %[[LANE32]] : i32 to index
// CHECK: %[[TILE:.*]] = arith.addi %{{.*}}, %[[LANE]] : index
// CHECK: %[[COUNT:.*]] = memref.load %[[COUNTS]][%[[TILE]]]
// CHECK: %[[NONE:.*]] = arith.cmpi eq, %[[COUNT]],
// CHECK: %[[EVERY:.*]] = arith.constant -1 : i32
// CHECK: nvvm.vote.sync all %[[EVERY]], %[[NONE]] -> i1
// CHECK: scf.if
func.func @idle(%n: index, %counts: memref<?xi32>, %o: !view) {
  %c0 = arith.constant 0 : index
  %none = arith.constant 0 : i32
  %one = arith.constant 1.0 : f32
  warp.kernel @idle blocks(%x, %h, %b) in (%n, %n, %n) warps(1) {
    %nothing = warp.all {
    ^bb0(%i: index):
      %tile = arith.addi %x, %i : index
      %count = memref.load %counts[%tile] : memref<?xi32>
      %is_none = arith.cmpi eq, %count, %none : i32
      warp.yield %is_none : i1
    }
    warp.exit_if %nothing
    %f = warp.splat %one : !warp.frag<16x8xf32, acc, 1>
    warp.store %f, %o[%x, %c0] : !warp.frag<16x8xf32, acc, 1>, !view
  }
  return
}
