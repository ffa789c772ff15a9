// RUN: attn-opt %s --pass-pipeline="builtin.module(func.func(warp-assign-resources{shared-limit=232448}),convert-warp-to-gpu{chip=sm_90a},canonicalize,cse)" | FileCheck %s

// Two roles that compute and, after their warps, two that copy. `full` counts
// one arrival, that of the role that copies; `empty` one of each warp that
// drains the ring, which of the last ring are those of two roles. Rows are those
// of the warp in its role. Registers grow where they are the most.
// CHECK-LABEL: gpu.func @k
// CHECK-SAME: known_block_size = array<i32: 512, 1, 1>
// CHECK-COUNT-5: mbarrier.init.shared::cta.b64 [$0], $1;", "r,r,~{memory}" %{{.*}}, %c4_i32
// CHECK-COUNT-2: mbarrier.init.shared::cta.b64 [$0], $1;", "r,r,~{memory}" %{{.*}}, %c8_i32
// CHECK-NOT: mbarrier.init
// CHECK: %[[WARP:.*]] = arith.divui %{{.*}}, %c32_i32
// CHECK: %[[NUMBER:.*]] = nvvm.shfl.sync idx %{{.*}}, %[[WARP]],
// CHECK: %[[IS_FIRST:.*]] = arith.cmpi slt, %[[NUMBER]], %c4_i32
// CHECK: scf.if %[[IS_FIRST]] {
// CHECK: nvvm.setmaxregister increase 232
// CHECK: %[[ROW:.*]] = arith.muli %[[WARP]], %c16_i32
// CHECK: } else {
// CHECK: %[[NUMBER:.*]] = nvvm.shfl.sync idx %{{.*}}, %[[WARP]],
// CHECK: %[[IS_SECOND:.*]] = arith.cmpi slt, %[[NUMBER]], %c8_i32
// CHECK: scf.if %[[IS_SECOND]] {
// CHECK: nvvm.setmaxregister increase 232
// CHECK: %[[IN_ROLE:.*]] = arith.addi %[[WARP]], %c-4_i32
// CHECK: arith.muli %[[IN_ROLE]], %c16_i32
// CHECK: } else {
// CHECK: %[[NUMBER:.*]] = nvvm.shfl.sync idx %{{.*}}, %[[WARP]],
// CHECK: arith.cmpi slt, %[[NUMBER]], %c12_i32
// CHECK: nvvm.setmaxregister decrease 24
// CHECK: %[[NUMBER:.*]] = nvvm.shfl.sync idx %{{.*}}, %[[WARP]],
// CHECK: arith.cmpi eq, %[[NUMBER]], %c8_i32
// CHECK: cp.async.bulk.tensor
// CHECK: } else {
// CHECK: nvvm.setmaxregister decrease 24
// CHECK: %[[NUMBER:.*]] = nvvm.shfl.sync idx %{{.*}}, %[[WARP]],
// CHECK: arith.cmpi eq, %[[NUMBER]], %c12_i32
// CHECK: cp.async.bulk.tensor
// CHECK-NOT: first_warp
!view = memref<?x64xbf16, strided<[?, 1]>>
!out = memref<?x64xf32, strided<[?, 1]>>
!ring = !warp.ring<1, 64x64xbf16, panels<128>>
!two = !warp.ring<2, 64x64xbf16, panels<128>>
!tile = !warp.slot<64x64xbf16, panels<128>>
!acc = !warp.frag<64x64xf32, acc, 4>
func.func @f(%a: !view, %b: !view, %c: !view, %d: !view, %e: !view,
             %out0: !out, %out1: !out) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c64 = arith.constant 64 : index
  %zero = arith.constant 0.0 : f32
  warp.kernel @k blocks(%x, %y, %z) in (%c1, %c1, %c1) warps(16) {
    %A = warp.ring fills(@left) drains(@first) : !two
    %B = warp.ring fills(@right) drains(@first) : !ring
    %C = warp.ring fills(@right) drains(@second) : !ring
    %D = warp.ring fills(@left) drains(@second) : !ring
    %E = warp.ring fills(@right) drains(@first, @second) : !two
    warp.role @left copy warps(4) registers(24) {
      warp.copy_async %a[%c0, %c0] to %A[%c0] by tma : !view, !two
      warp.copy_async %a[%c64, %c0] to %A[%c1] by tma : !view, !two
      warp.copy_async %a[%c0, %c0] to %A[%c2] by tma : !view, !two
      warp.copy_async %d[%c0, %c0] to %D[%c0] by tma : !view, !ring
      warp.copy_async %d[%c64, %c0] to %D[%c1] by tma : !view, !ring
    }
    warp.role @right copy warps(4) registers(24) {
      warp.copy_async %c[%c0, %c0] to %C[%c0] by tma : !view, !ring
      warp.copy_async %c[%c64, %c0] to %C[%c1] by tma : !view, !ring
      warp.copy_async %b[%c0, %c0] to %B[%c0] by tma : !view, !ring
      warp.copy_async %b[%c64, %c0] to %B[%c1] by tma : !view, !ring
      %n = scf.for %i = %c0 to %c2 step %c1 iter_args(%item = %c0) -> (index) {
        %row = arith.muli %i, %c64 : index
        warp.copy_async %e[%row, %c0] to %E[%item] by tma : !view, !two
        %next = arith.addi %item, %c1 : index
        scf.yield %next : index
      }
    }
    warp.role @first compute warps(4) registers(232) {
      %s0 = warp.splat %zero : !acc
      %a0 = warp.await %A[%c0] : !two -> !tile
      %s1 = warp.mma wgmma %a0, %a0, %s0 transpose_b : !tile, !tile, !acc
      warp.release %a0 : !tile
      %a1 = warp.await %A[%c1] : !two -> !tile
      %sa = warp.mma wgmma %a1, %a1, %s1 transpose_b : !tile, !tile, !acc
      warp.release %a1 : !tile
      %a2 = warp.await %A[%c2] : !two -> !tile
      %s2 = warp.mma wgmma %a2, %a2, %sa transpose_b : !tile, !tile, !acc
      warp.release %a2 : !tile
      %b0 = warp.await %B[%c0] : !ring -> !tile
      %s3 = warp.mma wgmma %b0, %b0, %s2 transpose_b : !tile, !tile, !acc
      warp.release %b0 : !tile
      %b1 = warp.await %B[%c1] : !ring -> !tile
      %s4 = warp.mma wgmma %b1, %b1, %s3 transpose_b : !tile, !tile, !acc
      warp.release %b1 : !tile
      %r:2 = scf.for %i = %c0 to %c2 step %c1 iter_args(%item = %c0, %s = %s4) -> (index, !acc) {
        %t = warp.await %E[%item] : !two -> !tile
        %next = arith.addi %item, %c1 : index
        %sum = warp.mma wgmma %t, %t, %s transpose_b : !tile, !tile, !acc
        warp.release %t : !tile
        scf.yield %next, %sum : index, !acc
      }
      warp.store %r#1, %out0[%c0, %c0] : !acc, !out
    }
    warp.role @second compute warps(4) registers(232) {
      %s0 = warp.splat %zero : !acc
      %d0 = warp.await %D[%c0] : !ring -> !tile
      %s1 = warp.mma wgmma %d0, %d0, %s0 transpose_b : !tile, !tile, !acc
      warp.release %d0 : !tile
      %d1 = warp.await %D[%c1] : !ring -> !tile
      %s2 = warp.mma wgmma %d1, %d1, %s1 transpose_b : !tile, !tile, !acc
      warp.release %d1 : !tile
      %t0 = warp.await %C[%c0] : !ring -> !tile
      %s3 = warp.mma wgmma %t0, %t0, %s2 transpose_b : !tile, !tile, !acc
      warp.release %t0 : !tile
      %t1 = warp.await %C[%c1] : !ring -> !tile
      %s4 = warp.mma wgmma %t1, %t1, %s3 transpose_b : !tile, !tile, !acc
      warp.release %t1 : !tile
      %r:2 = scf.for %i = %c0 to %c2 step %c1 iter_args(%item = %c0, %s = %s4) -> (index, !acc) {
        %t = warp.await %E[%item] : !two -> !tile
        %next = arith.addi %item, %c1 : index
        %sum = warp.mma wgmma %t, %t, %s transpose_b : !tile, !tile, !acc
        warp.release %t : !tile
        scf.yield %next, %sum : index, !acc
      }
      warp.store %r#1, %out1[%c0, %c0] : !acc, !out
    }
  }
  return
}
