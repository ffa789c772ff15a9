// RUN: attn-opt %s --pass-pipeline="builtin.module(func.func(warp-assign-resources),convert-warp-to-gpu{chip=sm_80},canonicalize,cse)" | FileCheck %s

!view = memref<?x64xbf16, strided<[?, 1]>>
!out = memref<?x64xf32, strided<[?, 1]>>
!tile = !warp.slot<64x64xbf16>
!ring = !warp.ring<2, 64x64xbf16>
!acc = !warp.frag<64x64xf32, acc, 4>
!half = !warp.frag<64x64xbf16, acc, 4>

// The warps meet at the top of a step, and once after both tiles are written: the
// second one is another's slot, and nobody has read either since the top.
// CHECK-LABEL: gpu.func @steps
// CHECK: scf.for
// CHECK: gpu.barrier
// CHECK: nvvm.mma.sync
// CHECK-NOT: gpu.barrier
// CHECK: llvm.store %{{.*}} : vector<2xbf16>, !llvm.ptr<3>
// CHECK-NOT: gpu.barrier
// CHECK: gpu.barrier
// CHECK-NOT: gpu.barrier
// CHECK: nvvm.ldmatrix
// CHECK-NOT: gpu.barrier
// CHECK: scf.yield
func.func @two_tiles(%a: !view, %b: !view, %out0: !out) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %c64 = arith.constant 64 : index
  %zero = arith.constant 0.0 : f32
  warp.kernel @steps blocks(%x, %y, %z) in (%c1, %c1, %c1) warps(4) {
    %A = warp.ring : !ring
    %S = warp.alloc : !tile
    %T = warp.alloc : !tile
    %z0 = warp.splat %zero : !acc
    warp.copy_async %a[%c0, %c0] to %A[%c0] : !view, !ring
    %sum = scf.for %n = %c0 to %c8 step %c1 iter_args(%o = %z0) -> (!acc) {
      %t = warp.await %A[%n] : !ring -> !tile
      %next = arith.addi %n, %c1 : index
      %row = arith.muli %next, %c64 : index
      warp.copy_async %a[%row, %c0] to %A[%next] : !view, !ring
      %s = warp.mma mma_sync %t, %t, %z0 transpose_b : !tile, !tile, !acc
      %h = warp.cast truncf %s : !acc to !half
      %d = arith.addf %s, %s : !acc
      %e = warp.cast truncf %d : !acc to !half
      warp.store_frag %h to %S : !half, !tile
      warp.store_frag %e to %T : !half, !tile
      %o0 = warp.mma mma_sync %S, %t, %o transpose_a : !tile, !tile, !acc
      %o1 = warp.mma mma_sync %T, %t, %o0 transpose_a : !tile, !tile, !acc
      warp.release %t : !tile
      scf.yield %o1 : !acc
    }
    warp.store %sum, %out0[%c0, %c0] : !acc, !out
  }
  return
}

// The second tile goes where the first one is still read.
// CHECK-LABEL: gpu.func @again
// CHECK: gpu.barrier
// CHECK: nvvm.mma.sync
// CHECK: llvm.store %{{.*}} : vector<2xbf16>, !llvm.ptr<3>
// CHECK: gpu.barrier
// CHECK: nvvm.ldmatrix
// CHECK: nvvm.mma.sync
// CHECK: gpu.barrier
// CHECK: llvm.store %{{.*}} : vector<2xbf16>, !llvm.ptr<3>
// CHECK: gpu.barrier
// CHECK: nvvm.ldmatrix
func.func @one_slot(%a: !view, %out0: !out) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f32
  warp.kernel @again blocks(%x, %y, %z) in (%c1, %c1, %c1) warps(4) {
    %A = warp.alloc : !tile
    %S = warp.alloc : !tile
    %z0 = warp.splat %zero : !acc
    warp.copy %a[%c0, %c0] to %A : !view, !tile
    %s = warp.mma mma_sync %A, %A, %z0 transpose_b : !tile, !tile, !acc
    %h = warp.cast truncf %s : !acc to !half
    warp.store_frag %h to %S : !half, !tile
    %o0 = warp.mma mma_sync %S, %A, %z0 transpose_a : !tile, !tile, !acc
    %e = warp.cast truncf %o0 : !acc to !half
    warp.store_frag %e to %S : !half, !tile
    %o1 = warp.mma mma_sync %S, %A, %o0 transpose_a : !tile, !tile, !acc
    warp.store %o1, %out0[%c0, %c0] : !acc, !out
  }
  return
}
