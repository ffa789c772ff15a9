// Rows of two tensors, 16 bytes for each lane and load.
//
// RUN: attn-opt %s --convert-warp-to-gpu=chip=sm_80 | FileCheck %s

!view = memref<?x?x64xbf16, strided<[?, ?, 1]>>
!parts = !warp.frag<64x4xf32, acc, 4>
!sums = !warp.frag<64x1xf32, acc, 4>

// A row past the end is read as the last one, and gives 0. All loads of two
// rows come before the first product.
// CHECK-LABEL: gpu.func @whole_rows
// CHECK: %[[LEFT:.*]] = arith.minsi
// CHECK: %[[LAST:.*]] = arith.addi %[[LEFT]], %c-1_i32
// CHECK: arith.minsi %[[LAST]], %c0_i32
// CHECK-COUNT-8: llvm.load %{{.*}} {alignment = 16 : i64} : !llvm.ptr<1> -> vector<4xi32>
// CHECK-NOT: llvm.load
// CHECK-COUNT-32: llvm.intr.fma
// CHECK: %[[FIRST:.*]] = arith.cmpi sgt, %[[LEFT]], %c0_i32
// CHECK: arith.select %[[FIRST]], %{{.*}}, %cst
// CHECK: %[[SECOND:.*]] = arith.cmpi sgt, %[[LEFT]], %c8_i32
// CHECK: arith.select %[[SECOND]], %{{.*}}, %cst
// Both tensors lie where such loads may read.
// CHECK-LABEL: func.func @whole_rows
// CHECK-COUNT-2: memref.assume_alignment %{{.*}}, 16
func.func @whole_rows(%x: !view, %y: !view, %sums: memref<?x?xf32>) {
  %c1 = arith.constant 1 : index
  warp.kernel @whole_rows blocks(%i, %j, %k) in (%c1, %c1, %c1) warps(4) shared(0) {
    %parts = warp.dot_rows %x, %y[%k, %i] : !view, !view -> !parts
    %sum = warp.reduce <add> %parts : !parts -> !sums
    warp.store %sum, %sums[%k, %i] rows : !sums, memref<?x?xf32>
  }
  return
}

// Five chunks: one lane has two.
// CHECK-LABEL: gpu.func @part_of_a_step
// CHECK: %[[HAS:.*]] = arith.cmpi slt, %{{.*}}, %c1_i32
// CHECK: arith.select %[[HAS]], %{{.*}}, %{{.*}} : i32
// CHECK: llvm.intr.fma
// CHECK: arith.select %{{.*}}, %{{.*}}, %{{.*}} : f32
func.func @part_of_a_step(%x: memref<?x40xf16>, %y: memref<?x40xf16>, %sums: memref<?xf32>) {
  %c1 = arith.constant 1 : index
  warp.kernel @part_of_a_step blocks(%i, %j, %k) in (%c1, %c1, %c1) warps(4) shared(0) {
    %parts = warp.dot_rows %x, %y[%i] : memref<?x40xf16>, memref<?x40xf16> -> !parts
    %sum = warp.reduce <add> %parts : !parts -> !sums
    warp.store %sum, %sums[%i] rows : !sums, memref<?xf32>
  }
  return
}
