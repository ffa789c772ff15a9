// RUN: attn-opt %s --pass-pipeline="builtin.module(func.func(warp-assign-resources),convert-warp-to-gpu{chip=sm_90a},canonicalize,cse)" | FileCheck %s

// A product reads %S until it is waited for. The warps met before that, for %T,
// but one of them may write %S while another's product still reads it.
// CHECK-LABEL: gpu.func @flight
// CHECK: wgmma.mma_async
// CHECK: stmatrix
// CHECK: gpu.barrier
// CHECK: wgmma.mma_async
// CHECK: wgmma.wait_group.sync.aligned 0
// CHECK: gpu.barrier
// CHECK: stmatrix
// CHECK: gpu.barrier
// CHECK: gpu.return
!view = memref<?x64xf32, strided<[?, 1]>>
!tile = !warp.slot<64x64xbf16, panels<128>>
!operand = !warp.frag<64x64xbf16, a, 4>
!half = !warp.frag<64x64xbf16, acc, 4>
!acc = !warp.frag<64x64xf32, acc, 4>
func.func @f(%out: !view) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %one = arith.constant 1.0 : bf16
  %zero = arith.constant 0.0 : f32
  warp.kernel @flight blocks(%x, %y, %z) in (%c1, %c1, %c1) warps(4) {
    %S = warp.alloc : !tile
    %T = warp.alloc : !tile
    %h = warp.splat %one : !half
    %p = warp.splat %one : !operand
    %z0 = warp.splat %zero : !acc
    warp.store_frag %h to %S : !half, !tile
    %a = warp.mma_async wgmma %p, %S, %z0 : !operand, !tile, !acc
    warp.store_frag %h to %T : !half, !tile
    %b = warp.mma_async wgmma %p, %T, %z0 : !operand, !tile, !acc
    %r = warp.wait %a : !warp.pending<64x64xf32, acc, 4>
    %s = warp.wait %b : !warp.pending<64x64xf32, acc, 4>
    %e = warp.cast truncf %r : !acc to !half
    warp.store_frag %e to %S : !half, !tile
    warp.store %s, %out[%c0, %c0] : !acc, !view
  }
  return
}
