// RUN: attn-opt %s --gpu-add-relayouts | FileCheck %s

// One kernel for each size of elements that an argument has: bf16 and f32 here,
// not the bytes of the workspace, and not the tensor of rank 5.
// CHECK-LABEL: gpu.module @f_kernels
// CHECK: gpu.func @f
// CHECK: gpu.func @f_relayout16(%[[FROM:.*]]: memref<?x?x?x?xi16, strided<[?, ?, ?, ?]>>, %[[TO:.*]]: memref<?x?x?x?xi16, strided<[?, ?, ?, ?]>>) kernel
// CHECK-SAME: known_block_size = array<i32: 256, 1, 1>
// CHECK-SAME: warp.relayout = array<i64: 2, 4096>
// CHECK-DAG: %[[Z:.*]] = gpu.block_id z
// CHECK-DAG: %[[Y:.*]] = gpu.block_id y
// CHECK-DAG: %[[COLUMNS:.*]] = memref.dim %[[FROM]], %c3
// CHECK: %[[END:.*]] = arith.minsi
// CHECK: scf.for %[[E:.*]] = %{{.*}} to %[[END]] step %c256
// CHECK: %[[ROW:.*]] = arith.divui %[[E]], %[[COLUMNS]]
// CHECK: %[[COLUMN:.*]] = arith.remui %[[E]], %[[COLUMNS]]
// CHECK: %[[X:.*]] = memref.load %[[FROM]][%[[Z]], %[[Y]], %[[ROW]], %[[COLUMN]]]
// CHECK: memref.store %[[X]], %[[TO]][%[[Z]], %[[Y]], %[[ROW]], %[[COLUMN]]]
// CHECK: gpu.func @f_relayout32
// CHECK-NOT: gpu.func
// CHECK: func.func @f
module attributes {gpu.container_module} {
  gpu.module @f_kernels {
    gpu.func @f(%a: memref<?x8xbf16>, %b: memref<?xf32>, %c: memref<1x1x1x1x1xf64>, %n: i32, %w: memref<16xi8>) kernel {
      gpu.return
    }
  }
  func.func @f(%a: memref<?x8xbf16>, %b: memref<?xf32>, %c: memref<1x1x1x1x1xf64>, %n: i32) {
    %one = arith.constant 1 : index
    %w = memref.alloc() : memref<16xi8>
    gpu.launch_func @f_kernels::@f blocks in (%one, %one, %one) threads in (%one, %one, %one)
      args(%a : memref<?x8xbf16>, %b : memref<?xf32>, %c : memref<1x1x1x1x1xf64>, %n : i32, %w : memref<16xi8>)
    return
  }
  // CHECK: func.func @launches_nothing
  func.func @launches_nothing(%a: memref<?x8xf16>) {
    return
  }
}
