// RUN: attn-opt %s --convert-warp-to-gpu=chip=sm_90a --gpu-share-warp-number --canonicalize --cse | FileCheck %s

!view = memref<?x64xbf16, strided<[?, 1]>>
!tile = !warp.slot<64x64xbf16, panels<128>>
!ring = !warp.ring<2, 64x64xbf16, panels<128>>

// A group's first row is 64 times its number; its own end of the loop is at
// least one block after the first, and at most that of all. The producer goes
// through the blocks of all groups.
// CHECK-LABEL: gpu.func @own_end
// CHECK-SAME: %[[N:[^:]*]]: index,
// CHECK: %[[WARP:.*]] = nvvm.shfl.sync idx
// CHECK: nvvm.setmaxregister increase
// CHECK: %[[GROUP:.*]] = arith.divui %[[WARP]], %c4_i32
// CHECK: %[[ROW32:.*]] = arith.muli %[[GROUP]], %c64_i32
// CHECK: %[[ROW:.*]] = arith.index_cast %[[ROW32]] : i32 to index
// CHECK: %[[LEAST:.*]] = arith.maxsi %[[ROW]], %c1 : index
// CHECK: %[[END:.*]] = arith.minsi %[[LEAST]], %[[N]] : index
// CHECK: scf.for %{{.*}} = %c0 to %[[END]] step %c1
// CHECK: scf.for %{{.*}} = %[[END]] to %[[N]] step %c1
// CHECK: nvvm.setmaxregister decrease
// CHECK-NOT: arith.minsi
// CHECK: scf.for %{{.*}} = %c0 to %[[N]] step %c1
func.func @own_end(%n: index, %v: !view) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  warp.kernel @own_end blocks(%x, %h, %b) in (%n, %c1, %c1) warps(12) shared(16416) {
    %r = warp.ring fills(@load) drains(@softmax) at 0 : !ring
    warp.role @load copy warps(4) registers(24) {
      %first, %end = warp.narrow [%c0, %n) to [%c0, %n)
      %r0 = scf.for %i = %c0 to %end step %c1 iter_args(%item = %c0) -> (index) {
        warp.copy_async %v[%i, %c0] to %r[%item] by tma : !view, !ring
        %next = arith.addi %item, %c1 : index
        scf.yield %next : index
      }
    }
    warp.role @softmax compute warps(8) registers(240) {
      %row = warp.part_row of 64
      %first, %end = warp.narrow [%c0, %n) to [%c0, %row)
      %own = scf.for %i = %c0 to %end step %c1 iter_args(%item = %c0) -> (index) {
        %s = warp.await %r[%item] : !ring -> !tile
        warp.release %s : !tile
        %next = arith.addi %item, %c1 : index
        scf.yield %next : index
      }
      %others = scf.for %i = %end to %n step %c1 iter_args(%item = %own) -> (index) {
        %s = warp.await %r[%item] : !ring -> !tile
        warp.release %s : !tile
        %next = arith.addi %item, %c1 : index
        scf.yield %next : index
      }
    }
  }
  return
}

// In a kernel without roles all warps go through the same blocks.
// CHECK-LABEL: gpu.func @no_roles
// CHECK-SAME: %[[N:[^:]*]]: index
// CHECK-NOT: arith.minsi
// CHECK: scf.for %{{.*}} = %c0 to %[[N]] step %c1
func.func @no_roles(%n: index, %out: memref<?xindex>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  warp.kernel @no_roles blocks(%x, %h, %b) in (%n, %c1, %c1) warps(8) shared(0) {
    %row = warp.part_row of 64
    %first, %end = warp.narrow [%c0, %n) to [%c0, %row)
    scf.for %i = %first to %end step %c1 {
      memref.store %row, %out[%i] : memref<?xindex>
    }
  }
  return
}
