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
  warp.kernel @registers blocks(%i, %j, %k) in (%c1, %c1, %c1) warps(4) shared(0) {
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
  warp.kernel @pairs blocks(%i, %j, %k) in (%c1, %c1, %c1) warps(4) shared(0) {
    %f = warp.splat %x : !half
    %g = arith.addf %f, %f : !half
    warp.store %g, %o[%i, %i] : !half, memref<?x?xf16, strided<[?, 1]>>
  }
  return
}

// The columns of a lane are compared as constants, whatever the limit.
// CHECK-LABEL: gpu.func @columns
// CHECK-SAME: %[[LIMIT:.*]]: i32,
// CHECK: %[[DIFFERENCE:.*]] = llvm.intr.ssub.sat(%[[LIMIT]], %{{.*}}) : (i32, i32) -> i32
// CHECK: arith.cmpi sle, %c0_i32{{.*}}, %[[DIFFERENCE]]
// CHECK: arith.cmpi sle, %c1_i32{{.*}}, %[[DIFFERENCE]]
// CHECK: arith.cmpi sle, %c8_i32{{.*}}, %[[DIFFERENCE]]
func.func @columns(%limit: i32, %o: memref<?x?xi32, strided<[?, 1]>>) {
  %c1 = arith.constant 1 : index
  %base = arith.constant 64 : i32
  warp.kernel @columns blocks(%i, %j, %k) in (%c1, %c1, %c1) warps(4) shared(0) {
    %c = warp.coords %base, 1 : !warp.frag<1x16xi32, acc, 4>
    %l = warp.splat %limit : !warp.frag<1x16xi32, acc, 4>
    %m = arith.cmpi sle, %c, %l : !warp.frag<1x16xi32, acc, 4>
    %b = warp.broadcast %m : !warp.frag<1x16xi1, acc, 4> -> !warp.frag<64x16xi1, acc, 4>
    %n = warp.cast extui %b : !warp.frag<64x16xi1, acc, 4> to !warp.frag<64x16xi32, acc, 4>
    warp.store %n, %o[%i, %i] : !warp.frag<64x16xi32, acc, 4>, memref<?x?xi32, strided<[?, 1]>>
  }
  return
}
