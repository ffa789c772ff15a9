// RUN: attn-opt %s --convert-warp-to-gpu | FileCheck %s

!view = memref<?x?x64xbf16, strided<[?, ?, 1], offset: ?>>
!slot = !warp.slot<64x64xbf16>

// CHECK: module attributes {gpu.container_module}

// The kernel has the arguments of the function, and computes what it captures
// again.
// CHECK: gpu.module @copy_kernels [#nvvm.target<O = 3, chip = "sm_80", features = "+ptx80">]
// CHECK: gpu.func @copy(%[[A:.*]]: memref<?x?x64xbf16{{.*}}, %[[N:.*]]: i32) kernel
// CHECK-SAME: known_block_size = array<i32: 128, 1, 1>
// CHECK-DAG: arith.addi %[[N]], %[[N]]
// CHECK-DAG: gpu.block_id x
// CHECK-DAG: gpu.block_id y
// CHECK-DAG: gpu.block_id z
// CHECK: gpu.return

// The function launches it. What is copied in blocks of 16 bytes is aligned.
// CHECK: func @copy(%[[A:.*]]: memref<?x?x64xbf16{{.*}}, %[[N:.*]]: i32)
// CHECK: %[[ROWS:.*]] = memref.dim %[[A]], %c1
// CHECK: %[[GRID:.*]] = arith.ceildivsi %[[ROWS]], %c64
// CHECK: %[[ALIGNED:.*]] = memref.assume_alignment %[[A]], 16
// CHECK: gpu.launch_func @copy_kernels::@copy blocks in (%[[GRID]], %c1, %c1)
// CHECK-SAME: threads in (%c128, %{{.*}}, %{{.*}}) dynamic_shared_memory_size %c8192_i32
// CHECK-SAME: args(%[[ALIGNED]] : {{.*}}, %[[N]] : i32)
// CHECK-NOT: warp.
func.func @copy(%a: !view, %n: i32) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %rows = memref.dim %a, %c1 : !view
  %blocks = arith.ceildivsi %rows, %c64 : index
  %twice = arith.addi %n, %n : i32
  warp.kernel blocks(%x, %y, %z) in (%blocks, %c1, %c1) warps(4) shared(8192) {
    %slot = warp.alloc at 0 : !slot
    %row = arith.index_cast %twice : i32 to index
    warp.copy %a[%y, %row, %c0] to %slot : !view, !slot
  }
  return
}

// A function without a kernel is left alone.
// CHECK: func @other() {
// CHECK-NEXT: return
func.func @other() {
  return
}
