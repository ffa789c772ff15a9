// RUN: attn-opt %s --convert-warp-to-gpu --canonicalize --cse | FileCheck %s

// Four lanes read a row of truth values together, 16 bytes each, where it is
// aligned for the whole warp: 32 columns are two words of four bytes each. They
// pack their bytes, exchange what they packed, and take their columns of it.
// Elsewhere each reads its own, byte by byte. The elements are bits of a word.
// CHECK-LABEL: gpu.func @bit_rows
// CHECK: %[[LOW:.*]] = arith.trunci %{{.*}} : i64 to i32
// CHECK: %[[FIRST:.*]] = arith.subi %[[LOW]]
// CHECK: arith.andi %[[FIRST]], %c7_i32
// CHECK: %[[ALL:.*]] = nvvm.vote.sync all
// CHECK: scf.if %[[ALL]] -> (i32) {
// CHECK: llvm.load %{{.*}} {alignment = 8 : i64} : !llvm.ptr<1> -> vector<2xi32>
// CHECK-COUNT-2: llvm.intr.fshl
// CHECK-COUNT-4: nvvm.shfl.sync idx
// CHECK: } else {
// CHECK: scf.if %{{.*}} -> (i1, i1, i1, i1, i1, i1, i1, i1)
// CHECK-COUNT-8: llvm.load %{{.*}} -> i1
// CHECK: llvm.inline_asm {{.*}}"mov.b32 $0, $1;"
// CHECK-COUNT-8: arith.cmpi ne
func.func @bit_rows(%seen: memref<?x?xi1>, %m: memref<?x32xf32>, %row: i32, %column: i32) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  warp.kernel @bit_rows blocks(%i, %j, %k) in (%c1, %c1, %c1) warps(1) shared(0) {
    %c = warp.coords %column, 1 : !warp.frag<1x32xi32, acc, 1>
    %b = warp.gather %seen[%row, %c] : memref<?x?xi1>, (i32, !warp.frag<1x32xi32, acc, 1>) -> !warp.frag<1x32xi1, acc, 1>
    %n = warp.cast uitofp %b : !warp.frag<1x32xi1, acc, 1> to !warp.frag<1x32xf32, acc, 1>
    %f = warp.broadcast %n : !warp.frag<1x32xf32, acc, 1> -> !warp.frag<16x32xf32, acc, 1>
    warp.store %f, %m[%i, %c0] : !warp.frag<16x32xf32, acc, 1>, memref<?x32xf32>
  }
  return
}

// Rows of other sizes, and in other orders, are read byte by byte.
// CHECK-LABEL: gpu.func @other_rows
// CHECK-NOT: nvvm.shfl
// CHECK: gpu.return
func.func @other_rows(%seen: memref<?x?xi1>, %m: memref<?x16xf32>, %row: i32, %column: i32) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  warp.kernel @other_rows blocks(%i, %j, %k) in (%c1, %c1, %c1) warps(1) shared(0) {
    %c = warp.coords %column, 1 : !warp.frag<1x16xi32, acc, 1>
    %b = warp.gather %seen[%row, %c] : memref<?x?xi1>, (i32, !warp.frag<1x16xi32, acc, 1>) -> !warp.frag<1x16xi1, acc, 1>
    %n = warp.cast uitofp %b : !warp.frag<1x16xi1, acc, 1> to !warp.frag<1x16xf32, acc, 1>
    %f = warp.broadcast %n : !warp.frag<1x16xf32, acc, 1> -> !warp.frag<16x16xf32, acc, 1>
    warp.store %f, %m[%i, %c0] : !warp.frag<16x16xf32, acc, 1>, memref<?x16xf32>
  }
  return
}
