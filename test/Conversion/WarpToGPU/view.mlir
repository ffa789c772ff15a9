// RUN: attn-opt %s --convert-warp-to-gpu --canonicalize --cse --split-input-file | FileCheck %s

!o = !warp.frag<64x16xbf16, acc, 4>
!m = memref<?x16xbf16, strided<[?, 1], offset: ?>>

// Where element [i, j] lies, in bytes: what a type does not say is asked of the
// memref. All of it in i64: a tensor may have more than 2^31 elements.
// CHECK-LABEL: gpu.func @dynamic
// CHECK-DAG: %[[BYTES:.*]] = arith.constant 2 : i64
// CHECK: %{{.*}}, %[[OFFSET:.*]], %[[SIZES:.*]]:2, %[[STRIDES:.*]]:2 = memref.extract_strided_metadata
// CHECK: %[[SIZE:.*]] = arith.index_cast %[[SIZES]]#0 : index to i64
// CHECK: %[[STRIDE:.*]] = arith.index_cast %[[STRIDES]]#0 : index to i64
// CHECK: %[[POINTER:.*]] = memref.extract_aligned_pointer_as_index
// CHECK: %[[BASE:.*]] = arith.index_cast %[[POINTER]] : index to i64
// CHECK: %[[SKIPPED:.*]] = arith.index_cast %[[OFFSET]] : index to i64
// CHECK: %[[SKIPPEDBYTES:.*]] = arith.muli %[[SKIPPED]], %[[BYTES]] : i64
// CHECK: %[[FIRST:.*]] = arith.addi %[[BASE]], %[[SKIPPEDBYTES]] : i64
// CHECK: %[[ROW:.*]] = arith.addi {{.*}} : i64
// CHECK: %[[COLUMN:.*]] = arith.extsi {{.*}} : i32 to i64
// The rows that are left: fewer than 2^31.
// CHECK: %[[ALL:.*]] = arith.trunci %[[SIZE]] : i64 to i32
// CHECK: %[[BEFORE:.*]] = arith.trunci %[[ROW]] : i64 to i32
// CHECK: arith.subi %[[ALL]], %[[BEFORE]] : i32
// CHECK: %[[ROWS:.*]] = arith.muli %[[ROW]], %[[STRIDE]] : i64
// CHECK: %[[ELEMENTS:.*]] = arith.addi %[[ROWS]], %[[COLUMN]] : i64
// CHECK: %[[PLACE:.*]] = arith.muli %[[ELEMENTS]], %[[BYTES]] : i64
// CHECK: arith.addi %[[FIRST]], %[[PLACE]] : i64
func.func @dynamic(%x: bf16, %m: !m) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  warp.kernel @dynamic blocks(%i, %j, %k) in (%c1, %c1, %c1) warps(4) shared(0) {
    %f = warp.splat %x : !o
    warp.store %f, %m[%i, %c0] : !o, !m
  }
  return
}

// -----

!o = !warp.frag<64x16xbf16, acc, 4>
!m = memref<64x16xbf16, strided<[24, 1], offset: 5>>

// Five elements are ten bytes, a row 24 elements, eight of them 384 bytes; no
// row is missing, so none is asked for.
// CHECK-LABEL: gpu.func @static
// CHECK-DAG: %[[OFFSET:.*]] = arith.constant 10 : i64
// CHECK-DAG: %[[EIGHT:.*]] = arith.constant 384 : i64
// CHECK-DAG: %[[STRIDE:.*]] = arith.constant 24 : i64
// CHECK: arith.addi %{{.*}}, %[[OFFSET]] : i64
// CHECK: arith.muli %{{.*}}, %[[STRIDE]] : i64
// CHECK: arith.addi %{{.*}}, %[[EIGHT]] : i64
func.func @static(%x: bf16, %m: !m) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  warp.kernel @static blocks(%i, %j, %k) in (%c1, %c1, %c1) warps(4) shared(0) {
    %f = warp.splat %x : !o
    warp.store %f, %m[%c0, %c0] : !o, !m
  }
  return
}
