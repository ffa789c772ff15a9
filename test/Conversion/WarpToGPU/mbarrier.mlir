// RUN: attn-opt %s --convert-warp-to-gpu=chip=sm_90a --canonicalize --cse | FileCheck %s

!view = memref<?x64xbf16, strided<[?, 1]>>
!tile = !warp.slot<64x64xbf16, panels<128>>
!ring = !warp.ring<3, 64x64xbf16, panels<128>>

// Three slots with two barriers of 8 bytes each, after the 24576 bytes of the
// tiles. One thread sets them up: `full` for one arrival, that of the producer,
// `empty` for one of each of the four consumer warps.
// CHECK-LABEL: gpu.func @ring
// CHECK: %[[MEMORY:.*]] = llvm.ptrtoint
// CHECK: %[[THREAD:.*]] = arith.index_cast %thread_id_x
// CHECK: %[[IS_FIRST:.*]] = arith.cmpi slt, %[[THREAD]], %c1_i32
// CHECK: scf.if %[[IS_FIRST]] {
// CHECK-NEXT: %[[FULL0:.*]] = arith.addi %[[MEMORY]], %c24576_i32
// CHECK-NEXT: "mbarrier.init.shared::cta.b64 [$0], $1;", "r,r,~{memory}" %[[FULL0]], %c1_i32
// CHECK-NEXT: %[[EMPTY0:.*]] = arith.addi %[[MEMORY]], %c24584_i32
// CHECK-NEXT: "mbarrier.init.shared::cta.b64 [$0], $1;", "r,r,~{memory}" %[[EMPTY0]], %c4_i32
// CHECK-COUNT-4: mbarrier.init
// CHECK-NOT: mbarrier.init
// CHECK: "fence.mbarrier_init.release.cluster;", "~{memory}"
// CHECK: gpu.barrier
//
// The consumer. Item i is in slot i mod 3; it comes with the phase of parity
// i / 3 mod 2 of `full`. Its release is an arrival of lane 0 at `empty`.
// CHECK: scf.for %{{.*}} iter_args(%[[ITEM:.*]] = %c0)
// CHECK: %[[I:.*]] = arith.index_cast %[[ITEM]] : index to i32
// CHECK: %[[SLOT:.*]] = arith.remui %[[I]], %c3_i32
// CHECK: %[[BYTES:.*]] = arith.muli %[[SLOT]], %c16_i32
// CHECK: %[[FULL:.*]] = arith.addi %{{.*}}, %[[BYTES]]
// CHECK: %[[ROUND:.*]] = arith.divui %[[I]], %c3_i32
// CHECK: %[[PARITY:.*]] = arith.andi %[[ROUND]], %c1_i32
// CHECK: %[[EMPTY:.*]] = arith.addi %[[FULL]], %c8_i32
// CHECK: "{ .reg .pred done; AGAIN: mbarrier.try_wait.parity.shared::cta.b64 done, [$0], $1; @!done bra AGAIN; }", "r,r,~{memory}" %[[FULL]], %[[PARITY]]
// CHECK: "{ .reg .pred first; setp.eq.u32 first, $1, 0; @first mbarrier.arrive.shared::cta.b64 _, [$0]; }", "r,r,~{memory}" %[[EMPTY]],
//
// The producer waits at `empty` for the phase before, which a fresh barrier has
// after it; then it expects the bytes of the tile.
// CHECK: nvvm.setmaxregister decrease
// CHECK: scf.for
// CHECK: %[[ROUND:.*]] = arith.divui %{{.*}}, %c3_i32
// CHECK: %[[PARITY:.*]] = arith.andi %[[ROUND]], %c1_i32
// CHECK: %[[EMPTY:.*]] = arith.addi %[[FULL:.*]], %c8_i32
// CHECK: %[[BEFORE:.*]] = arith.xori %[[PARITY]], %c1_i32
// CHECK: mbarrier.try_wait.parity.shared::cta.b64 {{.*}} %[[EMPTY]], %[[BEFORE]]
// CHECK: "{ .reg .pred first; elect.sync _|first, -1; @first mbarrier.arrive.expect_tx.shared::cta.b64 _, [$0], $1; }", "r,r,~{memory}" %[[FULL]], %c8192_i32
func.func @ring(%n: index, %v: !view) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  warp.kernel @ring blocks(%x, %h, %b) in (%n, %c1, %c1) warps(8) shared(24624) {
    %r = warp.ring fills(@load) drains(@softmax) at 0 : !ring
    warp.role @load copy warps(4) registers(24) {
      %e = scf.for %i = %c0 to %n step %c1 iter_args(%item = %c0) -> (index) {
        warp.copy_async %v[%i, %c0] to %r[%item] by tma : !view, !ring
        %next = arith.addi %item, %c1 : index
        scf.yield %next : index
      }
    }
    warp.role @softmax compute warps(4) registers(240) {
      %e = scf.for %i = %c0 to %n step %c1 iter_args(%item = %c0) -> (index) {
        %s = warp.await %r[%item] : !ring -> !tile
        warp.release %s : !tile
        %next = arith.addi %item, %c1 : index
        scf.yield %next : index
      }
    }
  }
  return
}
