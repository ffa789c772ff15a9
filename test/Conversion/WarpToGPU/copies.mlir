// RUN: attn-opt %s --convert-warp-to-gpu | FileCheck %s

!view = memref<?x64xbf16, strided<[?, 1], offset: ?>>
!slot = !warp.slot<64x64xbf16>
!ring = !warp.ring<3, 64x64xbf16>
!one = !warp.ring<1, 64x64xbf16>

// Nobody reads the old content any more, everybody sees the new one.
// CHECK-LABEL: gpu.func @sync
// CHECK: gpu.barrier
// CHECK: nvvm.cp.async.shared.global
// CHECK: nvvm.cp.async.commit.group
// CHECK: nvvm.cp.async.wait.group 0
// CHECK: gpu.barrier
// CHECK: gpu.return
func.func @sync(%a: !view) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  warp.kernel @sync blocks(%x, %y, %z) in (%c1, %c1, %c1) warps(4) shared(8192) {
    %slot = warp.alloc at 0 : !slot
    warp.copy %a[%x, %c0] to %slot : !view, !slot
  }
  return
}

// Item i is in slot i mod depth. A group is committed even if the condition is
// false.
// CHECK-LABEL: gpu.func @async
// CHECK: %[[BASE:.*]] = arith.addi %{{.*}}, %c256_i32
// CHECK: scf.if
// CHECK: %[[SLOT:.*]] = arith.remui %{{.*}}, %c3_i32
// CHECK: %[[BYTES:.*]] = arith.muli %[[SLOT]], %c8192_i32
// CHECK: arith.addi %[[BASE]], %[[BYTES]]
// CHECK: nvvm.cp.async.shared.global
// CHECK: }
// CHECK-NEXT: nvvm.cp.async.commit.group
// CHECK: nvvm.cp.async.wait.group 0
// CHECK-NEXT: gpu.barrier
func.func @async(%a: !view) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  warp.kernel @async blocks(%x, %y, %z) in (%c1, %c1, %c1) warps(4) shared(24832) {
    %ring = warp.ring at 256 : !ring
    %more = arith.cmpi slt, %x, %c1 : index
    warp.copy_async %a[%x, %c0] to %ring[%x] when %more : !view, !ring
    %slot = warp.await %ring[%x] : !ring -> !slot
    warp.release %slot : !slot
  }
  return
}

// CHECK-LABEL: gpu.func @depth_one
// CHECK-NOT: remui %{{.*}}, %c1_i32
// CHECK: gpu.return
func.func @depth_one(%a: !view) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  warp.kernel @depth_one blocks(%x, %y, %z) in (%c1, %c1, %c1) warps(4) shared(8192) {
    %ring = warp.ring at 0 : !one
    warp.copy_async %a[%x, %c0] to %ring[%x] : !view, !one
    %slot = warp.await %ring[%x] : !one -> !slot
    warp.release %slot : !slot
  }
  return
}
