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
  warp.kernel @copy blocks(%x, %y, %z) in (%blocks, %c1, %c1) warps(4) shared(8192) {
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

// Kernels of one function are in one module, in order, each by its name. What
// the function allocates is an argument of each, after its own.
// CHECK: gpu.module @two_kernels
// CHECK: gpu.func @two_blocks(%{{.*}}: i32, %[[M0:.*]]: memref<?x2xi32>) kernel
// CHECK-SAME: known_block_size = array<i32: 32, 1, 1>
// CHECK: memref.store %{{.*}}, %[[M0]]
// CHECK: gpu.func @two(%{{.*}}: i32, %[[M1:.*]]: memref<?x2xi32>) kernel
// CHECK-SAME: known_block_size = array<i32: 128, 1, 1>
// CHECK: memref.load %[[M1]]
// CHECK: func @two(%[[N:.*]]: i32)
// CHECK: %[[MEMORY:.*]] = memref.alloc
// CHECK: gpu.launch_func @two_kernels::@two_blocks {{.*}} args(%[[N]] : i32, %[[MEMORY]] : memref<?x2xi32>)
// CHECK: gpu.launch_func @two_kernels::@two {{.*}} args(%[[N]] : i32, %[[MEMORY]] : memref<?x2xi32>)
// CHECK: memref.dealloc %[[MEMORY]]
func.func @two(%n: i32) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %blocks = arith.index_cast %n : i32 to index
  %memory = memref.alloc(%blocks) : memref<?x2xi32>
  warp.kernel @two_blocks blocks(%x, %y, %z) in (%blocks, %c1, %c1) warps(1) shared(0) {
    memref.store %n, %memory[%x, %c1] : memref<?x2xi32>
  }
  warp.kernel @two blocks(%x, %y, %z) in (%blocks, %c1, %c1) warps(4) shared(0) {
    %read = memref.load %memory[%x, %c1] : memref<?x2xi32>
    memref.store %read, %memory[%x, %c0] : memref<?x2xi32>
  }
  memref.dealloc %memory : memref<?x2xi32>
  return
}

// Kernels have all workspaces as arguments, so these are allocated before the
// first one, with what their sizes are made of.
// CHECK: gpu.func @early(%{{.*}}: i32, %{{.*}}: memref<?xi32>, %{{.*}}: memref<?xi32>) kernel
// CHECK: func @late_workspace(%[[N:.*]]: i32)
// CHECK: memref.alloc
// CHECK: %[[SIZE:.*]] = arith.index_cast %[[N]]
// CHECK: memref.alloc(%[[SIZE]])
// CHECK: gpu.launch_func @late_workspace_kernels::@early
// CHECK: gpu.launch_func @late_workspace_kernels::@late
func.func @late_workspace(%n: i32) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %first = memref.alloc(%c1) : memref<?xi32>
  warp.kernel @early blocks(%x, %y, %z) in (%c1, %c1, %c1) warps(1) shared(0) {
    memref.store %n, %first[%c0] : memref<?xi32>
  }
  %size = arith.index_cast %n : i32 to index
  %second = memref.alloc(%size) : memref<?xi32>
  warp.kernel @late blocks(%x, %y, %z) in (%c1, %c1, %c1) warps(1) shared(0) {
    memref.store %n, %second[%c0] : memref<?xi32>
  }
  return
}
