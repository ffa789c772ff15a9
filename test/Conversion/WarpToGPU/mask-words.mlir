// RUN: attn-opt %s --convert-warp-to-gpu --cse | FileCheck %s

!acc = !warp.frag<64x32xf32, acc, 4>
!int = !warp.frag<64x32xi32, acc, 4>
!mask = !warp.frag<64x32xi1, acc, 4>
!rows = !warp.frag<64x1xi32, acc, 4>
!cols = !warp.frag<1x32xi32, acc, 4>
!out = memref<?x?xf32, strided<[?, 1]>>

// Two limits per row: a word for each says which of the lane's eight columns
// are below, one word says both, and the selections of a row stand together.
// CHECK-LABEL: gpu.func @two_limits
// CHECK: %[[REST:.*]] = llvm.intr.ssub.sat
// CHECK: arith.minsi %[[REST]], %c32_i32
// CHECK: arith.shrui %{{.*}}, %c3_i32
// CHECK: arith.shli %{{.*}} : i64
// CHECK: %[[LESS:.*]] = llvm.inline_asm {{.*}}"mov.b32 $0, $1;"
// CHECK: arith.xori
// CHECK: %[[MORE:.*]] = llvm.inline_asm {{.*}}"mov.b32 $0, $1;"
// CHECK: arith.andi %[[LESS]], %[[MORE]] : i32
// CHECK: %[[BOTH:.*]] = llvm.inline_asm {{.*}}"mov.b32 $0, $1;"
// CHECK: %[[FIRST:.*]] = arith.andi %[[BOTH]], %c1_i32
// CHECK: %[[NEXT:.*]] = arith.andi %[[BOTH]], %c2_i32
// CHECK: %[[TEST:.*]] = arith.cmpi ne, %[[FIRST]]
// CHECK-NEXT: arith.select %[[TEST]]
// CHECK-NEXT: arith.cmpi ne, %[[NEXT]]
// CHECK-NEXT: arith.select
func.func @two_limits(%x: f32, %upper: memref<?xi32>, %lower: memref<?xi32>, %o: !out) {
  %c1 = arith.constant 1 : index
  %base = arith.constant 64 : i32
  warp.kernel @two_limits blocks(%i, %j, %k) in (%c1, %c1, %c1) warps(4) shared(0) {
    %r = warp.coords %base, 0 : !rows
    %u = warp.gather %upper[%r] : memref<?xi32>, (!rows) -> !rows
    %l = warp.gather %lower[%r] : memref<?xi32>, (!rows) -> !rows
    %c = warp.coords %base, 1 : !cols
    %cb = warp.broadcast %c : !cols -> !int
    %ub = warp.broadcast %u : !rows -> !int
    %lb = warp.broadcast %l : !rows -> !int
    %below = arith.cmpi slt, %cb, %ub : !int
    %behind = arith.cmpi sle, %lb, %cb : !int
    %both = arith.andi %below, %behind : !mask
    %zero = arith.constant 0.0 : f32
    %zeros = warp.splat %zero : !acc
    %xs = warp.splat %x : !acc
    %s = warp.select %both, %xs, %zeros : !mask, !acc
    warp.store %s, %o[%i, %i] : !acc, !out
  }
  return
}

// Bits of what assembly gives, the same move too, are tests like any: each
// element's own.
// CHECK-LABEL: gpu.func @other_assembly
// CHECK: %[[LEFT:.*]] = llvm.inline_asm {{.*}}"mov.b32 $0, $1;"
// CHECK: %[[RIGHT:.*]] = llvm.inline_asm {{.*}}"mov.b32 $0, $1;"
// CHECK-NOT: arith.andi %[[LEFT]], %[[RIGHT]]
// CHECK-NOT: "mov.b32 $0, $1;"
// CHECK: gpu.return
func.func @other_assembly(%x: f32, %n: i32, %m: i32, %o: !out) {
  %c1 = arith.constant 1 : index
  %bit = arith.constant 1 : i32
  %none = arith.constant 0 : i32
  warp.kernel @other_assembly blocks(%i, %j, %k) in (%c1, %c1, %c1) warps(4) shared(0) {
    %left = llvm.inline_asm "mov.b32 $0, $1;", "=r,r" %n : (i32) -> i32
    %right = llvm.inline_asm "mov.b32 $0, $1;", "=r,r" %m : (i32) -> i32
    %leftBit = arith.andi %left, %bit : i32
    %rightBit = arith.andi %right, %bit : i32
    %leftTest = arith.cmpi ne, %leftBit, %none : i32
    %rightTest = arith.cmpi ne, %rightBit, %none : i32
    %ls = warp.splat %leftTest : !mask
    %rs = warp.splat %rightTest : !mask
    %both = arith.andi %ls, %rs : !mask
    %zero = arith.constant 0.0 : f32
    %zeros = warp.splat %zero : !acc
    %xs = warp.splat %x : !acc
    %s = warp.select %both, %xs, %zeros : !mask, !acc
    warp.store %s, %o[%i, %i] : !acc, !out
  }
  return
}
