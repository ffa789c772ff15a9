// RUN: attn-opt %s --convert-warp-to-gpu --canonicalize --cse | FileCheck %s

!o = !warp.frag<64x16xbf16, acc, 4>
!wide = !warp.frag<64x48xbf16, acc, 4>
!rows = !warp.frag<64x1xf32, acc, 4>

// Rows 0 and 8 of the lane, each if it exists; a pair of columns at a time.
// CHECK-LABEL: gpu.func @tile
// CHECK: %[[LEFT:.*]] = arith.subi
// CHECK: %[[IN0:.*]] = arith.cmpi sgt, %[[LEFT]], %c0_i32
// CHECK: scf.if %[[IN0]]
// CHECK: llvm.store %{{.*}}, %[[P:.*]] {alignment = 4 : i64} : vector<2xbf16>, !llvm.ptr<1>
// CHECK: llvm.getelementptr %[[P]][16]
// CHECK: llvm.store {{.*}} : vector<2xbf16>
// CHECK: %[[IN8:.*]] = arith.cmpi sgt, %[[LEFT]], %c8_i32
// CHECK: scf.if %[[IN8]]
// CHECK-COUNT-2: llvm.store
// CHECK-NOT: llvm.store
func.func @tile(%x: bf16, %m: memref<?x16xbf16, strided<[?, 1], offset: ?>>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  warp.kernel @tile blocks(%i, %j, %k) in (%c1, %c1, %c1) warps(4) shared(0) {
    %f = warp.splat %x : !o
    warp.store %f, %m[%i, %c0] : !o, memref<?x16xbf16, strided<[?, 1], offset: ?>>
  }
  return
}

// Four lanes exchange 32 columns of a row, whether or not it exists, and each
// writes eight side by side; the last 16 columns go in pairs.
// CHECK-LABEL: gpu.func @pieces
// CHECK-COUNT-4: nvvm.shfl.sync bfly
// CHECK: scf.if
// CHECK: llvm.store %{{.*}} {alignment = 16 : i64} : vector<4xi32>, !llvm.ptr<1>
// CHECK-COUNT-2: llvm.store %{{.*}} {alignment = 4 : i64} : vector<2xbf16>
// CHECK-COUNT-4: nvvm.shfl.sync bfly
// CHECK: scf.if
// CHECK: llvm.store %{{.*}} : vector<4xi32>, !llvm.ptr<1>
// CHECK-COUNT-2: llvm.store %{{.*}} : vector<2xbf16>
// CHECK-NOT: llvm.store
func.func @pieces(%x: bf16, %m: memref<?x48xbf16, strided<[?, 1], offset: ?>>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  warp.kernel @pieces blocks(%i, %j, %k) in (%c1, %c1, %c1) warps(4) shared(0) {
    %f = warp.splat %x : !wide
    warp.store %f, %m[%i, %c0] : !wide, memref<?x48xbf16, strided<[?, 1], offset: ?>>
  }
  return
}

// Not from a column that is not known to begin such a piece.
// CHECK-LABEL: gpu.func @odd_column
// CHECK-NOT: vector<4xi32>
// CHECK: gpu.return
func.func @odd_column(%x: bf16, %m: memref<?x48xbf16, strided<[?, 1], offset: ?>>) {
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  warp.kernel @odd_column blocks(%i, %j, %k) in (%c1, %c1, %c1) warps(4) shared(0) {
    %f = warp.splat %x : !wide
    warp.store %f, %m[%i, %c4] : !wide, memref<?x48xbf16, strided<[?, 1], offset: ?>>
  }
  return
}

// Nor into rows that are not whole pieces: the next row begins between two.
// CHECK-LABEL: gpu.func @odd_rows
// CHECK-NOT: vector<4xi32>
// CHECK: gpu.return
func.func @odd_rows(%x: bf16, %m: memref<?x44xbf16, strided<[?, 1], offset: ?>>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  warp.kernel @odd_rows blocks(%i, %j, %k) in (%c1, %c1, %c1) warps(4) shared(0) {
    %f = warp.splat %x : !wide
    warp.store %f, %m[%i, %c0] : !wide, memref<?x44xbf16, strided<[?, 1], offset: ?>>
  }
  return
}

// The last 8 columns of the tile are padding.
// CHECK-LABEL: gpu.func @padding
// CHECK-COUNT-2: llvm.store {{.*}} : vector<2xbf16>
// CHECK-NOT: llvm.store
func.func @padding(%x: bf16, %m: memref<?x8xbf16, strided<[?, 1], offset: ?>>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  warp.kernel @padding blocks(%i, %j, %k) in (%c1, %c1, %c1) warps(4) shared(0) {
    %f = warp.splat %x : !o
    warp.store %f, %m[%i, %c0] : !o, memref<?x8xbf16, strided<[?, 1], offset: ?>>
  }
  return
}

// Unknown width: element by element.
// CHECK-LABEL: gpu.func @unknown_width
// CHECK: arith.cmpi sgt
// CHECK: scf.if
// CHECK: arith.cmpi sgt
// CHECK: scf.if
// CHECK: llvm.store {{.*}} {alignment = 2 : i64} : bf16
func.func @unknown_width(%x: bf16, %m: memref<?x?xbf16, strided<[?, 1], offset: ?>>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  warp.kernel @unknown_width blocks(%i, %j, %k) in (%c1, %c1, %c1) warps(4) shared(0) {
    %f = warp.splat %x : !o
    warp.store %f, %m[%i, %c0] : !o, memref<?x?xbf16, strided<[?, 1], offset: ?>>
  }
  return
}

// One lane of the four that know a row writes it.
// CHECK-LABEL: gpu.func @rows
// CHECK: %[[FIRST:.*]] = arith.cmpi slt, %{{.*}}, %c1_i32
// CHECK: scf.if %[[FIRST]]
// CHECK: scf.if
// CHECK: llvm.store {{.*}} : f32, !llvm.ptr<1>
// CHECK: scf.if
// CHECK: llvm.store {{.*}} : f32, !llvm.ptr<1>
func.func @rows(%x: f32, %m: memref<?xf32>) {
  %c1 = arith.constant 1 : index
  warp.kernel @rows blocks(%i, %j, %k) in (%c1, %c1, %c1) warps(4) shared(0) {
    %f = warp.splat %x : !rows
    warp.store %f, %m[%i] rows : !rows, memref<?xf32>
  }
  return
}

// Each 16 rows belong to a slice: the lane's row 0 and row 8 to that of its warp,
// which is written if it is below the end.
// CHECK-LABEL: gpu.func @slices
// CHECK: %[[FROM:.*]] = arith.subi %{{.*}}, %{{.*}} : i64
// CHECK: %[[SLICES:.*]] = arith.trunci %[[FROM]] : i64 to i32
// CHECK: %[[OWN0:.*]] = arith.remui %[[ROW:.*]], %c16_i32
// CHECK: %[[SLICE0:.*]] = arith.divui %[[ROW]], %c16_i32
// CHECK: %[[ROWIN:.*]] = arith.cmpi slt, %[[OWN0]], %{{.*}}
// CHECK: %[[SLICEIN:.*]] = arith.cmpi slt, %[[SLICE0]], %[[SLICES]]
// CHECK: %[[IN:.*]] = arith.andi %[[ROWIN]], %[[SLICEIN]]
// CHECK: scf.if %[[IN]]
// CHECK-COUNT-2: llvm.store
// CHECK: %[[ROW8:.*]] = arith.addi %[[ROW]], %c8_i32
// CHECK: arith.remui %[[ROW8]], %c16_i32
// CHECK: scf.if
// CHECK-COUNT-2: llvm.store
// CHECK-NOT: llvm.store
func.func @slices(%x: bf16, %m: memref<?x?x16xbf16, strided<[?, ?, 1], offset: ?>>, %end: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  warp.kernel @slices blocks(%i, %j, %k) in (%c1, %c1, %c1) warps(4) shared(0) {
    %f = warp.splat %x : !o
    warp.store %f, %m[%i, %j, %c0] slices 4 below(%end) : !o, memref<?x?x16xbf16, strided<[?, ?, 1], offset: ?>>
  }
  return
}
