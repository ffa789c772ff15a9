// RUN: attn-opt %s --convert-warp-to-gpu="chip=sm_90a" | FileCheck %s

!view = memref<?x?xf32, strided<[?, 1]>>

// What stands after runs where there is work.
// CHECK-LABEL: gpu.func @idle(
// CHECK-SAME: %[[VISITS:[a-z0-9]+]]: memref<?xi1>
// CHECK: %[[X:.*]] = gpu.block_id x
// CHECK: %[[NOTHING:.*]] = memref.load %[[VISITS]][%[[X]]]
// CHECK: %[[TRUE:.*]] = arith.constant true
// CHECK-NEXT: %[[WORK:.*]] = arith.xori %[[NOTHING]], %[[TRUE]] : i1
// CHECK-NEXT: scf.if %[[WORK]] {
// CHECK: llvm.store
// CHECK: gpu.return
func.func @idle(%n: index, %visits: memref<?xi1>, %o: !view) {
  %c0 = arith.constant 0 : index
  %one = arith.constant 1.0 : f32
  warp.kernel @idle blocks(%x, %h, %b) in (%n, %n, %n) warps(1) {
    %nothing = memref.load %visits[%x] : memref<?xi1>
    warp.exit_if %nothing
    %f = warp.splat %one : !warp.frag<16x8xf32, acc, 1>
    warp.store %f, %o[%x, %c0] : !warp.frag<16x8xf32, acc, 1>, !view
  }
  return
}

// Idle blocks wait for the kernel before it, too.
// CHECK-LABEL: gpu.func @idle_beside(
// CHECK: scf.if
// CHECK: llvm.store
// CHECK: nvvm.griddepcontrol wait
// CHECK-NEXT: gpu.return
func.func @idle_beside(%n: index, %visits: memref<?xi1>, %o: !view) {
  %c0 = arith.constant 0 : index
  %one = arith.constant 1.0 : f32
  warp.kernel @idle_beside blocks(%x, %h, %b) in (%n, %n, %n) warps(1) starts(beside) {
    %nothing = memref.load %visits[%x] : memref<?xi1>
    warp.exit_if %nothing
    %f = warp.splat %one : !warp.frag<16x8xf32, acc, 1>
    warp.store %f, %o[%x, %c0] : !warp.frag<16x8xf32, acc, 1>, !view
  }
  return
}
