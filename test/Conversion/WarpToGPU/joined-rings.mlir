// RUN: attn-opt %s --convert-warp-to-gpu=chip=sm_90a --canonicalize --cse | FileCheck %s

!view = memref<?x?x?x64xbf16, strided<[?, ?, ?, 1], offset: ?>>
!row = memref<?x?x?xf32>
!ring = !warp.ring<2, 64x64xbf16, panels<128>>
!rows = !warp.ring<2, 1x64xf32>
!t = !warp.slot<64x64xbf16, panels<128>>
!r = !warp.slot<1x64xf32>

// q and the row beside it come and go together: two barriers for each of two
// slots, of two arrivals of the copying warp and one of each that computes; each
// side waits once for both.
// CHECK-LABEL: gpu.func @together
// CHECK: mbarrier.init{{.*}}, %c2_i32
// CHECK: mbarrier.init{{.*}}, %c4_i32
// CHECK: mbarrier.init{{.*}}, %c2_i32
// CHECK: mbarrier.init{{.*}}, %c4_i32
// CHECK-NOT: mbarrier.init
// CHECK: nvvm.setmaxregister{{ +}}increase
// CHECK: mbarrier.try_wait
// CHECK-NOT: mbarrier.try_wait
// The row is read by lanes, and given back first: all of them meet before the
// arrival for both.
// CHECK: llvm.load %{{.*}} -> vector<2xf32>
// CHECK: nvvm.bar.warp.sync
// CHECK-NEXT: @first mbarrier.arrive.shared::cta.b64 _, [$0]; }"
// CHECK-NOT: @first mbarrier.arrive
// CHECK: nvvm.setmaxregister{{ +}}decrease
// CHECK: mbarrier.try_wait
// CHECK: mbarrier.arrive.expect_tx{{.*}}, %c8192_i32
// CHECK-NOT: mbarrier.try_wait
// CHECK: mbarrier.arrive.expect_tx{{.*}}, %c256_i32
func.func @together(%n: index, %q: !view, %lse: !row, %out: memref<?x?xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  warp.kernel @together blocks(%x, %h, %b) in (%n, %n, %n) warps(8) shared(16960) {
    %Q = warp.ring fills(@load) drains(@compute) at 0 : !ring
    %R = warp.ring fills(@load) drains(@compute) at 16384 : !rows
    warp.role @load copy warps(4) registers(24) {
      scf.for %i = %c0 to %n step %c1 iter_args(%item = %c0) -> (index) {
        warp.copy_async %q[%b, %h, %i, %c0] to %Q[%item] by tma : !view, !ring
        warp.copy_async %lse[%b, %h, %i] to %R[%item] by tma : !row, !rows
        %next = arith.addi %item, %c1 : index
        scf.yield %next : index
      }
    }
    warp.role @compute compute warps(4) registers(240) {
      scf.for %i = %c0 to %n step %c1 iter_args(%item = %c0) -> (index) {
        %qt = warp.await %Q[%item] : !ring -> !t
        %rt = warp.await %R[%item] : !rows -> !r
        %row = warp.load_frag %rt : !r -> !warp.frag<1x64xf32, acc, 4>
        %rows = warp.broadcast %row : !warp.frag<1x64xf32, acc, 4> -> !warp.frag<64x64xf32, acc, 4>
        warp.store %rows, %out[%item, %c0] : !warp.frag<64x64xf32, acc, 4>, memref<?x?xf32>
        warp.release %rt : !r
        warp.release %qt : !t
        %next = arith.addi %item, %c1 : index
        scf.yield %next : index
      }
    }
  }
  return
}

// One ring has an item more, before the loop: each waits for its own.
// CHECK-LABEL: gpu.func @one_more
// CHECK-COUNT-8: mbarrier.init
// CHECK-COUNT-3: mbarrier.try_wait
// CHECK: nvvm.setmaxregister{{ +}}decrease
// CHECK-COUNT-3: mbarrier.try_wait
func.func @one_more(%n: index, %q: !view, %lse: !row) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  warp.kernel @one_more blocks(%x, %h, %b) in (%n, %n, %n) warps(8) shared(16960) {
    %Q = warp.ring fills(@load) drains(@compute) at 0 : !ring
    %R = warp.ring fills(@load) drains(@compute) at 16384 : !rows
    warp.role @load copy warps(4) registers(24) {
      warp.copy_async %q[%b, %h, %c0, %c0] to %Q[%c0] by tma : !view, !ring
      scf.for %i = %c0 to %n step %c1 iter_args(%item = %c0, %more = %c1) -> (index, index) {
        warp.copy_async %q[%b, %h, %i, %c0] to %Q[%more] by tma : !view, !ring
        warp.copy_async %lse[%b, %h, %i] to %R[%item] by tma : !row, !rows
        %next = arith.addi %item, %c1 : index
        %last = arith.addi %more, %c1 : index
        scf.yield %next, %last : index, index
      }
    }
    warp.role @compute compute warps(4) registers(240) {
      %first = warp.await %Q[%c0] : !ring -> !t
      warp.release %first : !t
      scf.for %i = %c0 to %n step %c1 iter_args(%item = %c0, %more = %c1) -> (index, index) {
        %qt = warp.await %Q[%more] : !ring -> !t
        %rt = warp.await %R[%item] : !rows -> !r
        warp.release %qt : !t
        warp.release %rt : !r
        %next = arith.addi %item, %c1 : index
        %last = arith.addi %more, %c1 : index
        scf.yield %next, %last : index, index
      }
    }
  }
  return
}

// Between them is a tile of a ring of its own depth, whose slot is given back
// before it is awaited: waiting for both at the first would wait for that
// release.
// CHECK-LABEL: gpu.func @another_between
// CHECK-COUNT-10: mbarrier.init
// CHECK-COUNT-3: mbarrier.try_wait
// CHECK: nvvm.setmaxregister{{ +}}decrease
// CHECK-COUNT-3: mbarrier.try_wait
func.func @another_between(%n: index, %q: !view, %k: !view, %lse: !row) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  warp.kernel @another_between blocks(%x, %h, %b) in (%n, %n, %n) warps(8) shared(25168) {
    %Q = warp.ring fills(@load) drains(@compute) at 0 : !ring
    %R = warp.ring fills(@load) drains(@compute) at 24576 : !rows
    %K = warp.ring fills(@load) drains(@compute) at 16384 : !warp.ring<1, 64x64xbf16, panels<128>>
    warp.role @load copy warps(4) registers(24) {
      scf.for %i = %c0 to %n step %c1 iter_args(%item = %c0) -> (index) {
        warp.copy_async %q[%b, %h, %i, %c0] to %Q[%item] by tma : !view, !ring
        warp.copy_async %k[%b, %h, %i, %c0] to %K[%item] by tma : !view, !warp.ring<1, 64x64xbf16, panels<128>>
        warp.copy_async %lse[%b, %h, %i] to %R[%item] by tma : !row, !rows
        %next = arith.addi %item, %c1 : index
        scf.yield %next : index
      }
    }
    warp.role @compute compute warps(4) registers(240) {
      scf.for %i = %c0 to %n step %c1 iter_args(%item = %c0) -> (index) {
        %qt = warp.await %Q[%item] : !ring -> !t
        %kt = warp.await %K[%item] : !warp.ring<1, 64x64xbf16, panels<128>> -> !t
        %rt = warp.await %R[%item] : !rows -> !r
        warp.release %qt : !t
        warp.release %kt : !t
        warp.release %rt : !r
        %next = arith.addi %item, %c1 : index
        scf.yield %next : index
      }
    }
  }
  return
}
