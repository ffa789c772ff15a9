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

// The distance of a row to its columns falls: the same word from the other
// side. What is one number for a row joins it as all ones or none.
// CHECK-LABEL: gpu.func @distance_or_row
// CHECK: %[[D:.*]] = arith.subi %{{.*}}, %{{.*}} : i32
// CHECK: %[[REST:.*]] = llvm.intr.ssub.sat(%[[D]], %c512_i32)
// CHECK: arith.minsi %[[REST]], %c31_i32
// CHECK: arith.xori
// CHECK: %[[NEAR:.*]] = llvm.inline_asm {{.*}}"mov.b32 $0, $1;"
// CHECK: %[[ROW:.*]] = arith.select %{{.*}}, %c255_i32{{.*}}, %c0_i32
// CHECK: %[[SAME:.*]] = llvm.inline_asm {{.*}}"mov.b32 $0, $1;"{{.*}} %[[ROW]]
// CHECK: %[[BOTH:.*]] = arith.ori %[[SAME]], %[[NEAR]] : i32
// CHECK: %[[WORD:.*]] = llvm.inline_asm {{.*}}"mov.b32 $0, $1;"{{.*}} %[[BOTH]]
// CHECK: arith.andi %[[WORD]], %c1_i32
func.func @distance_or_row(%x: f32, %limit: i32, %o: !out) {
  %c1 = arith.constant 1 : index
  %base = arith.constant 64 : i32
  warp.kernel @distance_or_row blocks(%i, %j, %k) in (%c1, %c1, %c1) warps(4) shared(0) {
    %r = warp.coords %base, 0 : !rows
    %c = warp.coords %base, 1 : !cols
    %rb = warp.broadcast %r : !rows -> !int
    %cb = warp.broadcast %c : !cols -> !int
    %d = arith.subi %rb, %cb : !int
    %c512 = arith.constant 512 : i32
    %far = warp.splat %c512 : !int
    %near = arith.cmpi slt, %d, %far : !int
    %ls = warp.splat %limit : !rows
    %first = arith.cmpi slt, %r, %ls : !rows
    %firsts = warp.broadcast %first : !warp.frag<64x1xi1, acc, 4> -> !mask
    %both = arith.ori %firsts, %near : !mask
    %zero = arith.constant 0.0 : f32
    %zeros = warp.splat %zero : !acc
    %xs = warp.splat %x : !acc
    %s = warp.select %both, %xs, %zeros : !mask, !acc
    warp.store %s, %o[%i, %i] : !acc, !out
  }
  return
}

// Of what differs from element to element there is no word: where it selects,
// it meets the test of a bit in assembly.
// CHECK-LABEL: gpu.func @each_element
// CHECK: %[[SAME:.*]] = arith.cmpi eq
// CHECK: %[[WORD:.*]] = llvm.inline_asm {{.*}}"mov.b32 $0, $1;"
// CHECK-NOT: "mov.b32 $0, $1;"
// CHECK: %[[BOTH:.*]] = llvm.inline_asm {{.*}}"{ .reg .b32 one; .reg .pred isOne; and.b32 one, $1, 1; setp.ne.b32 isOne, one, 0; and.pred $0, isOne, $2; }", "=b,r,b" %[[WORD]], %[[SAME]] : (i32, i1) -> i1
// CHECK-NEXT: arith.select %[[BOTH]]
// CHECK: gpu.return
func.func @each_element(%x: f32, %v: memref<?xi32>, %limit: i32, %o: !out) {
  %c1 = arith.constant 1 : index
  %base = arith.constant 64 : i32
  warp.kernel @each_element blocks(%i, %j, %k) in (%c1, %c1, %c1) warps(4) shared(0) {
    %c = warp.coords %base, 1 : !cols
    %g = warp.gather %v[%c] : memref<?xi32>, (!cols) -> !cols
    %ls = warp.splat %limit : !cols
    %below = arith.cmpi slt, %c, %ls : !cols
    %same = arith.cmpi eq, %g, %ls : !cols
    %shown = arith.andi %below, %same : !warp.frag<1x32xi1, acc, 4>
    %both = warp.broadcast %shown : !warp.frag<1x32xi1, acc, 4> -> !mask
    %zero = arith.constant 0.0 : f32
    %zeros = warp.splat %zero : !acc
    %xs = warp.splat %x : !acc
    %s = warp.select %both, %xs, %zeros : !mask, !acc
    warp.store %s, %o[%i, %i] : !acc, !out
  }
  return
}

// A key that is one of two numbers of its row, with 16 columns of it in a lane:
// a word with one bit for each number, and one word for both. Fewer columns are
// compared one by one.
!wide = !warp.frag<64x64xf32, acc, 4>
!wideInt = !warp.frag<64x64xi32, acc, 4>
!wideMask = !warp.frag<64x64xi1, acc, 4>
!wideCols = !warp.frag<1x64xi32, acc, 4>
// CHECK-LABEL: gpu.func @named
// CHECK: %[[REST:.*]] = llvm.intr.ssub.sat
// CHECK: %[[BIT:.*]] = arith.shli %c1_i32
// CHECK: %[[OTHERS:.*]] = arith.andi %[[REST]], %c-122_i32
// CHECK: %[[OWN:.*]] = arith.cmpi eq, %[[OTHERS]], %c0_i32
// CHECK: arith.select %[[OWN]], %[[BIT]], %c0_i32
// CHECK-NOT: arith.ori %{{.*}} : i1
// CHECK: %[[EITHER:.*]] = arith.ori %{{.*}} : i32
// CHECK-NEXT: llvm.inline_asm {{.*}}"mov.b32 $0, $1;", "=r,r" %[[EITHER]]
// CHECK-NOT: arith.ori %{{.*}} : i1
// CHECK-LABEL: gpu.func @few
// CHECK-NOT: "mov.b32 $0, $1;"
// CHECK: gpu.return
func.func @named(%x: f32, %one: memref<?xi32>, %two: memref<?xi32>, %o: !out) {
  %c1 = arith.constant 1 : index
  %base = arith.constant 64 : i32
  warp.kernel @named blocks(%i, %j, %k) in (%c1, %c1, %c1) warps(4) shared(0) {
    %r = warp.coords %base, 0 : !rows
    %u = warp.gather %one[%r] : memref<?xi32>, (!rows) -> !rows
    %l = warp.gather %two[%r] : memref<?xi32>, (!rows) -> !rows
    %c = warp.coords %base, 1 : !wideCols
    %cb = warp.broadcast %c : !wideCols -> !wideInt
    %ub = warp.broadcast %u : !rows -> !wideInt
    %lb = warp.broadcast %l : !rows -> !wideInt
    %first = arith.cmpi eq, %ub, %cb : !wideInt
    %second = arith.cmpi eq, %cb, %lb : !wideInt
    %either = arith.ori %first, %second : !wideMask
    %zero = arith.constant 0.0 : f32
    %zeros = warp.splat %zero : !wide
    %xs = warp.splat %x : !wide
    %s = warp.select %either, %xs, %zeros : !wideMask, !wide
    warp.store %s, %o[%i, %i] : !wide, !out
  }
  return
}

func.func @few(%x: f32, %one: memref<?xi32>, %o: !out) {
  %c1 = arith.constant 1 : index
  %base = arith.constant 64 : i32
  warp.kernel @few blocks(%i, %j, %k) in (%c1, %c1, %c1) warps(4) shared(0) {
    %r = warp.coords %base, 0 : !rows
    %u = warp.gather %one[%r] : memref<?xi32>, (!rows) -> !rows
    %c = warp.coords %base, 1 : !cols
    %cb = warp.broadcast %c : !cols -> !int
    %ub = warp.broadcast %u : !rows -> !int
    %same = arith.cmpi eq, %ub, %cb : !int
    %zero = arith.constant 0.0 : f32
    %zeros = warp.splat %zero : !acc
    %xs = warp.splat %x : !acc
    %s = warp.select %same, %xs, %zeros : !mask, !acc
    warp.store %s, %o[%i, %i] : !acc, !out
  }
  return
}
