// RUN: attn-opt %s --convert-warp-to-gpu --canonicalize --cse | FileCheck %s

// Elements of a row that lie behind one another, and are all there, are read at
// one address plus constants; else those that are there, one by one.
// CHECK-LABEL: gpu.func @gather_runs
// CHECK: %[[FIRST:.*]] = arith.cmpi ult, %[[AT:.*]], %[[SIZE:.*]] : i64
// CHECK: %[[END:.*]] = arith.addi %[[AT]], %c25_i64
// CHECK: %[[LAST:.*]] = arith.cmpi ult, %[[END]], %[[SIZE]]
// CHECK: %[[ALL:.*]] = arith.andi %[[FIRST]], %[[LAST]]
// CHECK: scf.if %[[ALL]] -> (f32, f32, f32, f32, f32, f32, f32, f32)
// CHECK-NEXT: llvm.load %[[P:.*]] {alignment = 4 : i64}
// CHECK-NEXT: llvm.getelementptr %[[P]][4]
// CHECK-NEXT: llvm.load
// CHECK-NEXT: llvm.getelementptr %[[P]][32]
// CHECK-COUNT-5: llvm.getelementptr %[[P]]
// CHECK: } else {
// CHECK-NEXT: scf.if %[[FIRST]] -> (f32)
// CHECK-NEXT: llvm.load %[[P]]
// CHECK: scf.yield %cst
// CHECK: arith.cmpi ult
// CHECK-COUNT-7: scf.if
func.func @gather_runs(%row: memref<?xf32>, %m: memref<?x32xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %base = arith.constant 3 : i32
  warp.kernel @gather_runs blocks(%i, %j, %k) in (%c1, %c1, %c1) warps(4) shared(0) {
    %c = warp.coords %base, 1 : !warp.frag<1x32xi32, acc, 4>
    %b = warp.gather %row[%c] : memref<?xf32>, (!warp.frag<1x32xi32, acc, 4>) -> !warp.frag<1x32xf32, acc, 4>
    %f = warp.broadcast %b : !warp.frag<1x32xf32, acc, 4> -> !warp.frag<64x32xf32, acc, 4>
    warp.store %f, %m[%i, %c0] : !warp.frag<64x32xf32, acc, 4>, memref<?x32xf32>
  }
  return
}

// What is said to be inside is not tested.
// CHECK-LABEL: gpu.func @gather_inside
// CHECK-NOT: scf.if
// CHECK-NOT: arith.cmpi ult
// CHECK-COUNT-8: llvm.load
// CHECK: gpu.return
func.func @gather_inside(%row: memref<?xf32>, %m: memref<64x32xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %base = arith.constant 3 : i32
  warp.kernel @gather_inside blocks(%i, %j, %k) in (%c1, %c1, %c1) warps(4) shared(0) {
    %c = warp.coords %base, 1 : !warp.frag<1x32xi32, acc, 4>
    %b = warp.gather %row[%c] {inside} : memref<?xf32>, (!warp.frag<1x32xi32, acc, 4>) -> !warp.frag<1x32xf32, acc, 4>
    %f = warp.broadcast %b : !warp.frag<1x32xf32, acc, 4> -> !warp.frag<64x32xf32, acc, 4>
    warp.store %f, %m[%c0, %c0] : !warp.frag<64x32xf32, acc, 4>, memref<64x32xf32>
  }
  return
}

// Pairs that are said to be aligned are read at once.
// CHECK-LABEL: gpu.func @gather_pairs
// CHECK-COUNT-4: llvm.load %{{.*}} {alignment = 8 : i64} : !llvm.ptr<1> -> vector<2xf32>
// CHECK-NOT: llvm.load
// CHECK: gpu.return
func.func @gather_pairs(%rows: memref<16x16xf32>, %m: memref<16x16xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0 : i32
  warp.kernel @gather_pairs blocks(%i, %j, %k) in (%c1, %c1, %c1) warps(1) shared(0) {
    %r = warp.coords %zero, 0 : !warp.frag<16x1xi32, acc, 1>
    %c = warp.coords %zero, 1 : !warp.frag<1x16xi32, acc, 1>
    %f = warp.gather %rows[%r, %c] {aligned, inside} : memref<16x16xf32>, (!warp.frag<16x1xi32, acc, 1>, !warp.frag<1x16xi32, acc, 1>) -> !warp.frag<16x16xf32, acc, 1>
    warp.store %f, %m[%c0, %c0] : !warp.frag<16x16xf32, acc, 1>, memref<16x16xf32>
  }
  return
}

// So are pairs that happen to be aligned.
// CHECK-LABEL: gpu.func @gather_aligned_pairs
// CHECK: %[[ADDRESS:.*]] = llvm.ptrtoint %{{.*}} : !llvm.ptr<1> to i32
// CHECK: arith.andi %[[ADDRESS]], %c3_i32
// CHECK: scf.if
// CHECK-COUNT-4: llvm.load %{{.*}} {alignment = 4 : i64} : !llvm.ptr<1> -> vector<2xbf16>
// CHECK: } else {
// CHECK-COUNT-8: llvm.load %{{.*}} {alignment = 2 : i64} : !llvm.ptr<1> -> bf16
func.func @gather_aligned_pairs(%rows: memref<16x16xbf16, strided<[?, 1], offset: ?>>, %m: memref<16x16xbf16>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0 : i32
  warp.kernel @gather_aligned_pairs blocks(%i, %j, %k) in (%c1, %c1, %c1) warps(1) shared(0) {
    %r = warp.coords %zero, 0 : !warp.frag<16x1xi32, acc, 1>
    %c = warp.coords %zero, 1 : !warp.frag<1x16xi32, acc, 1>
    %f = warp.gather %rows[%r, %c] {inside} : memref<16x16xbf16, strided<[?, 1], offset: ?>>, (!warp.frag<16x1xi32, acc, 1>, !warp.frag<1x16xi32, acc, 1>) -> !warp.frag<16x16xbf16, acc, 1>
    warp.store %f, %m[%c0, %c0] : !warp.frag<16x16xbf16, acc, 1>, memref<16x16xbf16>
  }
  return
}
