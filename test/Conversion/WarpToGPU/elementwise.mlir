// RUN: attn-opt %s --convert-warp-to-gpu | FileCheck %s

!acc = !warp.frag<64x8xf32, acc, 4>
!half = !warp.frag<64x8xf16, acc, 4>

// One copy per register, attributes kept; a scalar condition serves them all.
// CHECK-LABEL: gpu.func @registers
// CHECK-SAME: %[[X:.*]]: f32, %[[C:.*]]: i1
// CHECK-COUNT-4: arith.mulf %[[X]], %[[X]] fastmath<contract> : f32
// CHECK-COUNT-4: arith.select %[[C]], %{{.*}}, %[[X]] : f32
// CHECK-NOT: arith.select
func.func @registers(%x: f32, %c: i1, %o: memref<?x?xf32, strided<[?, 1]>>) {
  %c1 = arith.constant 1 : index
  warp.kernel blocks(%i, %j, %k) in (%c1, %c1, %c1) warps(4) shared(0) {
    %f = warp.splat %x : !acc
    %g = arith.mulf %f, %f fastmath<contract> : !acc
    %h = arith.select %c, %g, %f : !acc
    warp.store %h, %o[%i, %i] : !acc, memref<?x?xf32, strided<[?, 1]>>
  }
  return
}

// 16-bit pairs are taken apart and put together again.
// CHECK-LABEL: gpu.func @pairs
// CHECK: llvm.extractelement %{{.*}} : vector<2xf16>
// CHECK-COUNT-4: arith.addf %{{.*}} : f16
// CHECK: llvm.insertelement
func.func @pairs(%x: f16, %o: memref<?x?xf16, strided<[?, 1]>>) {
  %c1 = arith.constant 1 : index
  warp.kernel blocks(%i, %j, %k) in (%c1, %c1, %c1) warps(4) shared(0) {
    %f = warp.splat %x : !half
    %g = arith.addf %f, %f : !half
    warp.store %g, %o[%i, %i] : !half, memref<?x?xf16, strided<[?, 1]>>
  }
  return
}
