// RUN: attn-opt %s --convert-warp-to-gpu --canonicalize --cse | FileCheck %s

// Distances that are limited, and then moved: as long as no limit holds, and no
// number of 32 bits wraps around, they are read at one address plus constants.
// Elsewhere each has its address.
// CHECK-LABEL: gpu.func @clamped
// CHECK: %[[INSIDE:.*]] = arith.cmpi ult
// CHECK: arith.cmpi ult
// CHECK: %[[LOW:.*]] = arith.cmpi sge, %{{.*}}, %c-3_i64
// CHECK: arith.cmpi sle, %{{.*}}, %c2147483647_i64
// CHECK: %[[LEAST:.*]] = arith.cmpi sge, %{{.*}}, %c-2147483648_i64
// CHECK: arith.cmpi sle, %{{.*}}, %c5_i64
// CHECK: scf.if %{{.*}} -> (f32, f32, f32, f32, f32, f32, f32, f32)
// CHECK-NEXT: llvm.load %[[P:.*]] {alignment = 4 : i64}
// CHECK-COUNT-7: llvm.getelementptr %[[P]]
// CHECK: } else {
// CHECK: scf.if
// CHECK-COUNT-8: llvm.load
// CHECK: scf.yield %cst, %cst, %cst, %cst, %cst, %cst, %cst, %cst
func.func @clamped(%table: memref<?xf32>, %m: memref<?x32xf32>, %base: i32) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %low = arith.constant -3 : i32
  %high = arith.constant 5 : i32
  %three = arith.constant 3 : i32
  warp.kernel @clamped blocks(%i, %j, %k) in (%c1, %c1, %c1) warps(4) shared(0) {
    %c = warp.coords %base, 1 : !warp.frag<1x32xi32, acc, 4>
    %least = warp.splat %low : !warp.frag<1x32xi32, acc, 4>
    %most = warp.splat %high : !warp.frag<1x32xi32, acc, 4>
    %shift = warp.splat %three : !warp.frag<1x32xi32, acc, 4>
    %x = arith.minsi %c, %most : !warp.frag<1x32xi32, acc, 4>
    %y = arith.maxsi %x, %least : !warp.frag<1x32xi32, acc, 4>
    %at = arith.addi %y, %shift : !warp.frag<1x32xi32, acc, 4>
    %b = warp.gather %table[%at] : memref<?xf32>, (!warp.frag<1x32xi32, acc, 4>) -> !warp.frag<1x32xf32, acc, 4>
    %f = warp.broadcast %b : !warp.frag<1x32xf32, acc, 4> -> !warp.frag<64x32xf32, acc, 4>
    warp.store %f, %m[%i, %c0] : !warp.frag<64x32xf32, acc, 4>, memref<?x32xf32>
  }
  return
}
