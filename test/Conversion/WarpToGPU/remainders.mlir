// RUN: attn-opt %s --convert-warp-to-gpu --canonicalize | FileCheck %s

!acc = !warp.frag<64x32xf32, acc, 4>
!int = !warp.frag<64x32xi32, acc, 4>
!mask = !warp.frag<64x32xi1, acc, 4>
!rows = !warp.frag<64x1xi32, acc, 4>
!cols = !warp.frag<1x32xi32, acc, 4>
!out = memref<?x?xf32, strided<[?, 1]>>

// Every 16th key before the row, as a floor leaves it: one remainder for each
// of two rows, whose place in the word is that of the key.
// CHECK-LABEL: gpu.func @floor
// CHECK-NOT: arith.floordivsi
// CHECK-DAG: %[[PATTERN:.*]] = arith.constant 286331153 : i32
// CHECK: %[[FIRST:.*]] = arith.andi %{{.*}}, %c15_i32
// CHECK: arith.shrui %{{.*}}, %c2_i32
// CHECK: arith.shli %[[PATTERN]], %{{.*}} : i32
// CHECK: %[[WORD:.*]] = llvm.inline_asm {{.*}}"mov.b32 $0, $1;"
// CHECK: %[[NEXT:.*]] = llvm.inline_asm {{.*}}"mov.b32 $0, $1;"
// CHECK: arith.andi %[[WORD]], %c1_i32
// CHECK: arith.andi %[[WORD]], %c128_i32
// CHECK: arith.andi %[[NEXT]], %c1_i32
// CHECK-NOT: llvm.inline_asm {{.*}}"mov.b32 $0, $1;"
// CHECK-NOT: arith.floordivsi
// CHECK: gpu.return
func.func @floor(%x: f32, %o: !out) {
  %c1 = arith.constant 1 : index
  %base = arith.constant 64 : i32
  warp.kernel @floor blocks(%i, %j, %k) in (%c1, %c1, %c1) warps(4) shared(0) {
    %r = warp.coords %base, 0 : !rows
    %c = warp.coords %base, 1 : !cols
    %rb = warp.broadcast %r : !rows -> !int
    %cb = warp.broadcast %c : !cols -> !int
    %d = arith.subi %rb, %cb : !int
    %c16 = arith.constant 16 : i32
    %c0 = arith.constant 0 : i32
    %m = warp.splat %c16 : !int
    %z = warp.splat %c0 : !int
    %q = arith.floordivsi %d, %m : !int
    %p = arith.muli %q, %m : !int
    %rest = arith.subi %d, %p : !int
    %each = arith.cmpi eq, %rest, %z : !int
    %zero = arith.constant 0.0 : f32
    %zeros = warp.splat %zero : !acc
    %xs = warp.splat %x : !acc
    %s = warp.select %each, %xs, %zeros : !mask, !acc
    warp.store %s, %o[%i, %i] : !acc, !out
  }
  return
}

// By 4 the lane's columns repeat after two: as many comparisons, and a word.
// CHECK-LABEL: gpu.func @bits
// CHECK-DAG: %[[EVEN:.*]] = arith.constant 85 : i32
// CHECK-DAG: %[[ODD:.*]] = arith.constant 170 : i32
// CHECK: %[[A:.*]] = arith.cmpi eq, %[[FIRST:.*]], %c0_i32
// CHECK: %[[B:.*]] = arith.cmpi eq, %[[FIRST]], %c1_i32
// CHECK: arith.select %[[A]], %[[EVEN]], %c0_i32
// CHECK: arith.select %[[B]], %[[ODD]], %c0_i32
// CHECK: %[[WORD:.*]] = arith.ori
// CHECK: llvm.inline_asm {{.*}}"mov.b32 $0, $1;"{{.*}} %[[WORD]]
func.func @bits(%x: f32, %o: !out) {
  %c1 = arith.constant 1 : index
  %base = arith.constant 64 : i32
  warp.kernel @bits blocks(%i, %j, %k) in (%c1, %c1, %c1) warps(4) shared(0) {
    %r = warp.coords %base, 0 : !rows
    %c = warp.coords %base, 1 : !cols
    %rb = warp.broadcast %r : !rows -> !int
    %cb = warp.broadcast %c : !cols -> !int
    %d = arith.subi %cb, %rb : !int
    %c3 = arith.constant 3 : i32
    %c0 = arith.constant 0 : i32
    %m = warp.splat %c3 : !int
    %z = warp.splat %c0 : !int
    %rest = arith.andi %d, %m : !int
    %each = arith.cmpi eq, %z, %rest : !int
    %zero = arith.constant 0.0 : f32
    %zeros = warp.splat %zero : !acc
    %xs = warp.splat %x : !acc
    %s = warp.select %each, %xs, %zeros : !mask, !acc
    warp.store %s, %o[%i, %i] : !acc, !out
  }
  return
}

// The remainder with the sign of the dividend: 0 is the same in both; others
// are not, and each element keeps its own.
// CHECK-LABEL: gpu.func @sign
// CHECK-COUNT-1: arith.remsi %{{.*}}, %c100_i32
// CHECK: arith.addi %{{.*}}, %c100_i32
// CHECK-COUNT-16: arith.remsi %{{.*}}, %c7_i32
func.func @sign(%x: f32, %o: !out) {
  %c1 = arith.constant 1 : index
  %base = arith.constant 64 : i32
  warp.kernel @sign blocks(%i, %j, %k) in (%c1, %c1, %c1) warps(4) shared(0) {
    %r = warp.coords %base, 0 : !rows
    %c = warp.coords %base, 1 : !cols
    %rb = warp.broadcast %r : !rows -> !int
    %cb = warp.broadcast %c : !cols -> !int
    %d = arith.subi %rb, %cb : !int
    %c100 = arith.constant 100 : i32
    %c7 = arith.constant 7 : i32
    %c0 = arith.constant 0 : i32
    %cm1 = arith.constant -1 : i32
    %m = warp.splat %c100 : !int
    %n = warp.splat %c7 : !int
    %z = warp.splat %c0 : !int
    %w = warp.splat %cm1 : !int
    %rest = arith.remsi %d, %m : !int
    %each = arith.cmpi ne, %rest, %z : !int
    %other = arith.remsi %d, %n : !int
    %last = arith.cmpi ne, %other, %w : !int
    %both = arith.andi %each, %last : !mask
    %zero = arith.constant 0.0 : f32
    %zeros = warp.splat %zero : !acc
    %xs = warp.splat %x : !acc
    %s = warp.select %both, %xs, %zeros : !mask, !acc
    warp.store %s, %o[%i, %i] : !acc, !out
  }
  return
}

// What may wrap around has no period but of a power of two.
// CHECK-LABEL: gpu.func @memory
// CHECK-COUNT-16: arith.remui
func.func @memory(%x: f32, %v: memref<?xi32>, %o: !out) {
  %c1 = arith.constant 1 : index
  %base = arith.constant 64 : i32
  warp.kernel @memory blocks(%i, %j, %k) in (%c1, %c1, %c1) warps(4) shared(0) {
    %r = warp.coords %base, 0 : !rows
    %g = warp.gather %v[%r] : memref<?xi32>, (!rows) -> !rows
    %c = warp.coords %base, 1 : !cols
    %rb = warp.broadcast %g : !rows -> !int
    %cb = warp.broadcast %c : !cols -> !int
    %d = arith.subi %rb, %cb : !int
    %c100 = arith.constant 100 : i32
    %c0 = arith.constant 0 : i32
    %m = warp.splat %c100 : !int
    %z = warp.splat %c0 : !int
    %rest = arith.remui %d, %m : !int
    %each = arith.cmpi eq, %rest, %z : !int
    %zero = arith.constant 0.0 : f32
    %zeros = warp.splat %zero : !acc
    %xs = warp.splat %x : !acc
    %s = warp.select %each, %xs, %zeros : !mask, !acc
    warp.store %s, %o[%i, %i] : !acc, !out
  }
  return
}

// The same remainder of row and key: known to be one, it is compared as it is.
// CHECK-LABEL: gpu.func @both_sides
// CHECK-NOT: arith.cmpi ult
// CHECK: arith.shli
// CHECK: llvm.inline_asm {{.*}}"mov.b32 $0, $1;"
// CHECK: gpu.return
// A number of the row that may be none: then no key has it.
// CHECK-LABEL: gpu.func @any_limit
// CHECK: arith.cmpi ult, %{{.*}}, %c32_i32
// CHECK: arith.select %{{.*}}, %{{.*}}, %c33554432_i32
func.func @both_sides(%x: f32, %o: !out) {
  %c1 = arith.constant 1 : index
  %base = arith.constant 64 : i32
  warp.kernel @both_sides blocks(%i, %j, %k) in (%c1, %c1, %c1) warps(4) shared(0) {
    %r = warp.coords %base, 0 : !rows
    %c = warp.coords %base, 1 : !cols
    %c31 = arith.constant 31 : i32
    %ofRows = warp.splat %c31 : !rows
    %ofColumns = warp.splat %c31 : !cols
    %rr = arith.andi %r, %ofRows : !rows
    %cr = arith.andi %c, %ofColumns : !cols
    %rb = warp.broadcast %rr : !rows -> !int
    %cb = warp.broadcast %cr : !cols -> !int
    %same = arith.cmpi eq, %rb, %cb : !int
    %zero = arith.constant 0.0 : f32
    %zeros = warp.splat %zero : !acc
    %xs = warp.splat %x : !acc
    %s = warp.select %same, %xs, %zeros : !mask, !acc
    warp.store %s, %o[%i, %i] : !acc, !out
  }
  return
}
func.func @any_limit(%x: f32, %v: memref<?xi32>, %o: !out) {
  %c1 = arith.constant 1 : index
  %base = arith.constant 64 : i32
  warp.kernel @any_limit blocks(%i, %j, %k) in (%c1, %c1, %c1) warps(4) shared(0) {
    %r = warp.coords %base, 0 : !rows
    %g = warp.gather %v[%r] : memref<?xi32>, (!rows) -> !rows
    %c = warp.coords %base, 1 : !cols
    %c31 = arith.constant 31 : i32
    %ofColumns = warp.splat %c31 : !cols
    %cr = arith.andi %c, %ofColumns : !cols
    %rb = warp.broadcast %g : !rows -> !int
    %cb = warp.broadcast %cr : !cols -> !int
    %same = arith.cmpi eq, %rb, %cb : !int
    %zero = arith.constant 0.0 : f32
    %zeros = warp.splat %zero : !acc
    %xs = warp.splat %x : !acc
    %s = warp.select %same, %xs, %zeros : !mask, !acc
    warp.store %s, %o[%i, %i] : !acc, !out
  }
  return
}
