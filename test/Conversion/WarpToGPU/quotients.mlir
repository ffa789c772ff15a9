// RUN: attn-opt %s --convert-warp-to-gpu --canonicalize --cse | FileCheck %s

// Elements of few blocks: one load for each block that they may lie in. Columns
// 0, 1, 8, 9, ... 25 from the lane's first one on lie in at most three blocks of
// 16, and the place of the first in its block tells in which.
// CHECK-LABEL: gpu.func @gather_blocks
// CHECK: %[[BLOCK:.*]] = arith.shrsi %[[FIRST:.*]], %c4_i32
// CHECK: %[[REST:.*]] = arith.andi %[[FIRST]], %c15_i32
// CHECK: arith.cmpi uge, %[[REST]], %c15_i32
// CHECK: arith.cmpi uge, %[[REST]], %c8_i32
// CHECK: arith.cmpi uge, %[[REST]], %c7_i32
// CHECK-NOT: arith.cmpi uge
// CHECK-COUNT-3: llvm.load
// CHECK-NOT: llvm.load
// CHECK: gpu.return
func.func @gather_blocks(%map: memref<?xi32, strided<[?]>>, %m: memref<?x32xf32>, %base: i32) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c16 = arith.constant 16 : i32
  warp.kernel @gather_blocks blocks(%i, %j, %k) in (%c1, %c1, %c1) warps(4) shared(0) {
    %c = warp.coords %base, 1 : !warp.frag<1x32xi32, acc, 4>
    %size = warp.splat %c16 : !warp.frag<1x32xi32, acc, 4>
    %block = arith.floordivsi %c, %size : !warp.frag<1x32xi32, acc, 4>
    %b = warp.gather %map[%block] : memref<?xi32, strided<[?]>>, (!warp.frag<1x32xi32, acc, 4>) -> !warp.frag<1x32xi32, acc, 4>
    %n = warp.cast sitofp %b : !warp.frag<1x32xi32, acc, 4> to !warp.frag<1x32xf32, acc, 4>
    %f = warp.broadcast %n : !warp.frag<1x32xf32, acc, 4> -> !warp.frag<64x32xf32, acc, 4>
    warp.store %f, %m[%i, %c0] : !warp.frag<64x32xf32, acc, 4>, memref<?x32xf32>
  }
  return
}

// Any divisor will do. Quotients of what may wrap around are none of these, and
// nothing is won where there are nearly as many blocks as elements.
// CHECK-LABEL: gpu.func @gather_other_blocks
// CHECK: arith.subi
// CHECK-COUNT-2: llvm.load
// CHECK-COUNT-8: llvm.load
// CHECK-COUNT-8: llvm.load
// CHECK-NOT: llvm.load
// CHECK: gpu.return
func.func @gather_other_blocks(%map: memref<?xi32, strided<[?]>>, %m: memref<?x32xf32>, %base: i32) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c5 = arith.constant 5 : i32
  %c100 = arith.constant 100 : i32
  %most = arith.constant 2147483640 : i32
  warp.kernel @gather_other_blocks blocks(%i, %j, %k) in (%c1, %c1, %c1) warps(4) shared(0) {
    %c = warp.coords %base, 1 : !warp.frag<1x32xi32, acc, 4>
    %size = warp.splat %c100 : !warp.frag<1x32xi32, acc, 4>
    %block = arith.floordivsi %c, %size : !warp.frag<1x32xi32, acc, 4>
    %b = warp.gather %map[%block] : memref<?xi32, strided<[?]>>, (!warp.frag<1x32xi32, acc, 4>) -> !warp.frag<1x32xi32, acc, 4>
    %offset = warp.splat %most : !warp.frag<1x32xi32, acc, 4>
    %moved = arith.addi %c, %offset : !warp.frag<1x32xi32, acc, 4>
    %wrapped = arith.floordivsi %moved, %size : !warp.frag<1x32xi32, acc, 4>
    %w = warp.gather %map[%wrapped] : memref<?xi32, strided<[?]>>, (!warp.frag<1x32xi32, acc, 4>) -> !warp.frag<1x32xi32, acc, 4>
    %few = warp.splat %c5 : !warp.frag<1x32xi32, acc, 4>
    %small = arith.floordivsi %c, %few : !warp.frag<1x32xi32, acc, 4>
    %s = warp.gather %map[%small] : memref<?xi32, strided<[?]>>, (!warp.frag<1x32xi32, acc, 4>) -> !warp.frag<1x32xi32, acc, 4>
    %bw = arith.addi %b, %w : !warp.frag<1x32xi32, acc, 4>
    %sum = arith.addi %bw, %s : !warp.frag<1x32xi32, acc, 4>
    %n = warp.cast sitofp %sum : !warp.frag<1x32xi32, acc, 4> to !warp.frag<1x32xf32, acc, 4>
    %f = warp.broadcast %n : !warp.frag<1x32xf32, acc, 4> -> !warp.frag<64x32xf32, acc, 4>
    warp.store %f, %m[%i, %c0] : !warp.frag<64x32xf32, acc, 4>, memref<?x32xf32>
  }
  return
}
