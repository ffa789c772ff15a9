// RUN: attn-opt %s --convert-warp-to-gpu="chip=sm_80" | FileCheck %s

// 128 bytes per row: 8 lanes write one, 4 rows at once.
// CHECK-LABEL: gpu.func @rows(
// CHECK: %[[PIECES:.*]] = arith.constant 8 : i32
// CHECK: arith.divui %{{.*}}, %[[PIECES]]
// CHECK: %[[ONES:.*]] = arith.constant dense<1065369472> : vector<4xi32>
// CHECK-COUNT-4: llvm.store %[[ONES]], %{{.*}} {alignment = 16 : i64} : vector<4xi32>
// CHECK-NOT: llvm.store
// CHECK: gpu.return
func.func @rows(%n: index, %o: memref<?x64xbf16, strided<[?, 1]>>) {
  %c0 = arith.constant 0 : index
  %one = arith.constant 1.0 : bf16
  warp.kernel @rows blocks(%x, %h, %b) in (%n, %n, %n) warps(1) {
    %f = warp.splat %one : !warp.frag<16x64xbf16, acc, 1>
    warp.store %f, %o[%x, %c0] : !warp.frag<16x64xbf16, acc, 1>, memref<?x64xbf16, strided<[?, 1]>>
  }
  return
}

// 40 columns are 5 pieces, a row is one lane's; the tile is wider, and ends in
// front of the last lane.
// CHECK-LABEL: gpu.func @narrow(
// CHECK: %[[ROWS:.*]] = arith.constant 16 : i32
// CHECK: %[[IN_TILE:.*]] = arith.subi %[[ROWS]],
// CHECK: arith.minsi %{{.*}}, %[[IN_TILE]]
// CHECK-COUNT-5: llvm.store %{{.*}} {alignment = 16 : i64} : vector<4xi32>
// CHECK-NOT: llvm.store
// CHECK: gpu.return
func.func @narrow(%n: index, %o: memref<?x40xbf16, strided<[?, 1]>>) {
  %c0 = arith.constant 0 : index
  %one = arith.constant 1.0 : bf16
  warp.kernel @narrow blocks(%x, %h, %b) in (%n, %n, %n) warps(1) {
    %f = warp.splat %one : !warp.frag<16x48xbf16, acc, 1>
    warp.store %f, %o[%x, %c0] : !warp.frag<16x48xbf16, acc, 1>, memref<?x40xbf16, strided<[?, 1]>>
  }
  return
}

// Rows that are no whole pieces, strides that are not 1, other numbers: element
// by element.
// CHECK-LABEL: gpu.func @unknown_columns(
// CHECK-NOT: vector<4xi32>
func.func @unknown_columns(%n: index, %x0: bf16, %o: memref<?x?xbf16, strided<[?, 1]>>,
                           %s: memref<?x16xbf16, strided<[?, ?]>>, %p: memref<?x16xbf16, strided<[?, 1]>>) {
  %c0 = arith.constant 0 : index
  %one = arith.constant 1.0 : bf16
  warp.kernel @unknown_columns blocks(%x, %h, %b) in (%n, %n, %n) warps(1) {
    %f = warp.splat %one : !warp.frag<16x16xbf16, acc, 1>
    warp.store %f, %o[%x, %c0] : !warp.frag<16x16xbf16, acc, 1>, memref<?x?xbf16, strided<[?, 1]>>
    warp.store %f, %s[%x, %c0] : !warp.frag<16x16xbf16, acc, 1>, memref<?x16xbf16, strided<[?, ?]>>
    %g = warp.splat %x0 : !warp.frag<16x16xbf16, acc, 1>
    warp.store %g, %p[%x, %c0] : !warp.frag<16x16xbf16, acc, 1>, memref<?x16xbf16, strided<[?, 1]>>
  }
  return
}
