// RUN: attn-opt %s --convert-warp-to-gpu="chip=sm_90a" | FileCheck %s

// What is computed of counts of keys and numbers of blocks has 32 bits.
!view = memref<?x?x?x64xbf16, strided<[?, ?, ?, 1]>>

// CHECK-LABEL: gpu.func @bounds(
func.func @bounds(%view: !view, %out: memref<1xi32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c64 = arith.constant 64 : index
  %c128 = arith.constant 128 : index
  %keys = memref.dim %view, %c2 : !view
  %blocks = arith.ceildivsi %keys, %c64 : index
  warp.kernel @bounds blocks(%x, %y, %z) in (%blocks, %c1, %c1) warps(4) shared(0) {
    // CHECK: %[[X:.*]] = arith.index_cast %{{.*}} : index to i32
    // CHECK: %[[ROW:.*]] = arith.muli %[[X]], %{{.*}} overflow<nsw> : i32
    // CHECK: %[[END:.*]] = arith.addi %[[ROW]], %{{.*}} overflow<nsw> : i32
    // The quotient of a number that is not negative is a shift.
    // CHECK: %[[DIM:.*]] = memref.dim
    // CHECK: %[[KEYS:.*]] = arith.index_cast %[[DIM]] : index to i32
    // CHECK: %[[UP:.*]] = arith.addi %[[KEYS]], %c63_i32 overflow<nsw> : i32
    // CHECK: %[[BLOCKS:.*]] = arith.divui %[[UP]], %c64_i32 : i32
    // CHECK: %[[LAST:.*]] = arith.minsi %[[END]], %[[BLOCKS]] : i32
    // CHECK: %[[BEHIND:.*]] = arith.cmpi sge, %[[LAST]], %[[ROW]] : i32
    // CHECK: %[[CHOSEN:.*]] = arith.select %[[BEHIND]], %[[LAST]], %[[ROW]] : i32
    // CHECK: memref.store %[[CHOSEN]]
    %row = arith.muli %x, %c64 : index
    %end = arith.addi %row, %c128 : index
    %last = arith.minsi %end, %blocks : index
    %isBehind = arith.cmpi sge, %last, %row : index
    %chosen = arith.select %isBehind, %last, %row : index
    %word = arith.index_cast %chosen : index to i32
    memref.store %word, %out[%c0] : memref<1xi32>
  }
  return
}

// A number of blocks of any size, and a dimension of a table, may be anything.
// CHECK-LABEL: gpu.func @blocks(
// CHECK-NOT: overflow<nsw>
func.func @blocks(%blocks: index, %out: memref<1xindex>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  warp.kernel @blocks blocks(%x, %y, %z) in (%blocks, %c1, %c1) warps(4) shared(0) {
    %row = arith.muli %x, %c64 : index
    memref.store %row, %out[%c0] : memref<1xindex>
  }
  return
}

// CHECK-LABEL: gpu.func @table(
// CHECK-NOT: arith.minsi {{.*}} : i32
// CHECK: arith.minsi {{.*}} : index
func.func @table(%table: memref<?xf32>, %out: memref<1xindex>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c5 = arith.constant 5 : index
  %size = memref.dim %table, %c0 : memref<?xf32>
  warp.kernel @table blocks(%x, %y, %z) in (%c1, %c1, %c1) warps(4) shared(0) {
    %more = arith.muli %size, %c5 : index
    %least = arith.minsi %more, %size : index
    memref.store %least, %out[%c0] : memref<1xindex>
  }
  return
}
