// RUN: attn-opt %s --pass-pipeline="builtin.module(func.func(warp-assign-resources),convert-warp-to-gpu{chip=sm_80},canonicalize,cse)" | FileCheck %s

// All warps meet before and after a fragment is written to a slot: before it by
// the barrier of the copy, after which nobody has read the slot. The left
// operand comes transposed out of it, 16 of its columns for each warp.
// test/Unit/RolesTest.cpp runs the lanes of this.
// CHECK-LABEL: gpu.func @k
// CHECK: nvvm.mma.sync
// CHECK-NOT: gpu.barrier
// CHECK: llvm.store %{{.*}} : vector<2xbf16>, !llvm.ptr<3>
// CHECK: gpu.barrier
// CHECK: nvvm.ldmatrix %{{.*}} {{.*}}layout = #nvvm.mma_layout<col>
// CHECK: nvvm.mma.sync
// CHECK: "red.relaxed.gpu.global.add.f32 [$0], $1;"
!view = memref<?x64xbf16, strided<[?, 1]>>
!out = memref<?x64xf32, strided<[?, 1]>>
!tile = !warp.slot<64x64xbf16>
!acc = !warp.frag<64x64xf32, acc, 4>
!half = !warp.frag<64x64xbf16, acc, 4>
func.func @f(%a: !view, %b: !view, %c: !view, %d: !view, %e: !view,
             %out0: !out, %out1: !out) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f32
  warp.kernel @k blocks(%x, %y, %z) in (%c1, %c1, %c1) warps(4) {
    %A = warp.alloc : !tile
    %B = warp.alloc : !tile
    %S = warp.alloc : !tile
    %z0 = warp.splat %zero : !acc
    warp.copy %a[%c0, %c0] to %A : !view, !tile
    warp.copy %b[%c0, %c0] to %B : !view, !tile
    %s = warp.mma mma_sync %A, %B, %z0 transpose_b : !tile, !tile, !acc
    %h = warp.cast truncf %s : !acc to !half
    warp.store_frag %h to %S : !half, !tile
    %o0 = warp.mma mma_sync %S, %A, %z0 transpose_a : !tile, !tile, !acc
    %o1 = warp.mma mma_sync %S, %B, %z0 : !tile, !tile, !acc
    warp.store %o0, %out0[%c0, %c0] accumulate : !acc, !out
    warp.store %o1, %out1[%c0, %c0] : !acc, !out
  }
  return
}
