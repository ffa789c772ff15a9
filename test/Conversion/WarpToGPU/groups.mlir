// RUN: attn-opt %s --convert-warp-to-gpu=chip=sm_90a --gpu-share-warp-number --canonicalize --cse | FileCheck %s

!view = memref<?x64xbf16, strided<[?, 1]>>
!tile = !warp.slot<64x64xbf16, panels<128>>
!ring = !warp.ring<2, 64x64xbf16, panels<128>>

// A group's number is that of its warp among those of the role, divided by 4;
// what is computed from it is arithmetic.
// CHECK-LABEL: gpu.func @own_end
// CHECK-SAME: %[[N:[^:]*]]: index,
// CHECK: %[[WARP:.*]] = nvvm.shfl.sync idx
// CHECK: nvvm.setmaxregister increase
// CHECK: %[[GROUP32:.*]] = arith.divui %[[WARP]], %c4_i32
// CHECK: %[[GROUP:.*]] = arith.index_cast %[[GROUP32]] : i32 to index
// CHECK: %[[LEAST:.*]] = arith.maxsi %[[GROUP]], %c1 : index
// CHECK: %[[END:.*]] = arith.minsi %[[LEAST]], %[[N]] : index
// CHECK: scf.for %{{.*}} = %c0 to %[[END]] step %c1
// CHECK: scf.for %{{.*}} = %[[END]] to %[[N]] step %c1
// CHECK: nvvm.setmaxregister decrease
// CHECK-NOT: arith.minsi
// CHECK: scf.for %{{.*}} = %c0 to %[[N]] step %c1
func.func @own_end(%n: index, %v: !view, %out: memref<?xindex>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  warp.kernel @own_end blocks(%x, %h, %b) in (%n, %c1, %c1) warps(12) shared(16416) {
    %r = warp.ring fills(@load) drains(@softmax) at 0 : !ring
    warp.role @load copy warps(4) registers(24) {
      %r0 = scf.for %i = %c0 to %n step %c1 iter_args(%item = %c0) -> (index) {
        warp.copy_async %v[%i, %c0] to %r[%item] by tma : !view, !ring
        %next = arith.addi %item, %c1 : index
        scf.yield %next : index
      }
    }
    warp.role @softmax compute warps(8) registers(240) group(%group) {
      %least = arith.maxsi %group, %c1 : index
      %end = arith.minsi %least, %n : index
      %own = scf.for %i = %c0 to %end step %c1 iter_args(%item = %c0) -> (index) {
        %s = warp.await %r[%item] : !ring -> !tile
        memref.store %i, %out[%i] : memref<?xindex>
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

// A number that nobody asks for is not computed.
// CHECK-LABEL: gpu.func @unused
// CHECK-NOT: arith.divui %{{.*}}, %c4_i32
// CHECK: gpu.return
func.func @unused(%n: index) {
  warp.kernel @unused blocks(%x, %h, %b) in (%n, %n, %n) warps(12) shared(0) {
    warp.role @load copy warps(4) registers(24) {
    }
    warp.role @softmax compute warps(8) registers(240) {
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
    %first, %end = warp.group_bounds [%c0, %n) of 64 {
    ^bb0(%row: index):
      warp.yield %c0, %row : index, index
    }
    scf.for %i = %first to %end step %c1 {
      memref.store %i, %out[%i] : memref<?xindex>
    }
  }
  return
}
