// Sums by element: each lane adds to its own column.
//
// RUN: attn-opt %s --convert-warp-to-gpu=chip=sm_80 | FileCheck %s

!tile = !warp.frag<64x16xf32, acc, 4>
!column = !warp.frag<1x16xi32, acc, 4>

// Nobody of the warp reads any more; then 16 rows of 512 bytes.
// CHECK-LABEL: gpu.func @table
// CHECK: nvvm.bar.warp.sync
// CHECK-COUNT-16: llvm.store %cst{{.*}} : f32, !llvm.ptr<3>
// CHECK-NOT: llvm.store
// Of both rows of a column one number is added. An index that is out of range is
// the number of bins.
// CHECK: arith.addf
// CHECK: %[[BIN:.*]] = arith.minui %{{.*}}, %c12_i32
// CHECK: %[[ROW:.*]] = arith.muli %[[BIN]], %c512_i32
// CHECK: %[[AT:.*]] = arith.addi %{{.*}}, %[[ROW]]
// CHECK: %[[POINTER:.*]] = llvm.inttoptr %[[AT]]
// CHECK: %[[OLD:.*]] = llvm.load %[[POINTER]]
// Four bins are read before one is written; what is added to those before it a
// number takes along where it is the same bin.
// CHECK-COUNT-3: llvm.load
// CHECK-NOT: llvm.load
// CHECK: %[[FIRST:.*]] = arith.addf %[[OLD]],
// CHECK: %[[SECOND:.*]] = arith.addf
// CHECK: %[[SAME:.*]] = arith.cmpi eq, %{{.*}}, %[[BIN]]
// CHECK: %[[BOTH:.*]] = arith.addf %[[SECOND]],
// CHECK: arith.select %[[SAME]], %[[BOTH]], %[[SECOND]]
// CHECK-COUNT-5: arith.cmpi eq
// CHECK-NOT: arith.cmpi
// CHECK: llvm.store %[[FIRST]], %[[POINTER]]
// CHECK-COUNT-3: llvm.store {{.*}} : f32, !llvm.ptr<3>
// CHECK-NOT: llvm.store
// Each lane adds the columns of 32 lanes, every 32nd bin.
// CHECK: nvvm.bar.warp.sync
// CHECK: scf.for %{{.*}} = %{{.*}} to %c12_i32{{.*}} step %c32_i32
// CHECK-COUNT-32: llvm.load {{.*}} -> f32
// CHECK-NOT: llvm.load
// CHECK: scf.if
// CHECK: llvm.store {{.*}} : f32, !llvm.ptr<1>
func.func @table(%out: memref<?x12xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %one = arith.constant 1.0 : f32
  %two = arith.constant 2 : i32
  warp.kernel @table blocks(%i, %j, %k) in (%c1, %c1, %c1) warps(4) shared(8192) {
    %bins = warp.alloc at 0 : !warp.slot<16x128xf32>
    warp.clear_bins %bins : !warp.slot<16x128xf32>
    %value = warp.splat %one : !tile
    %index = warp.coords %two, 1 : !column
    warp.scatter_add %value, %bins[%index] of 12 : !tile, !warp.slot<16x128xf32>, !column
    warp.store_bins %bins of 12, %out[%i, %c0] : !warp.slot<16x128xf32>, memref<?x12xf32>
  }
  return
}

// Two rows of the tile in each lane: the second one's bins are one row of the slot
// further. Four lanes share a row.
// CHECK-LABEL: gpu.func @rows
// CHECK: %[[BIN:.*]] = arith.minui %{{.*}}, %c12_i32
// CHECK: arith.muli %[[BIN]], %c1024_i32
// CHECK: llvm.getelementptr %{{.*}}[512]
// Other rows have other bins: of four numbers two pairs are asked.
// CHECK-COUNT-2: arith.cmpi eq
// CHECK-NOT: arith.cmpi eq
// CHECK: llvm.store
// CHECK: scf.for %{{.*}} step %c4_i32
// CHECK-COUNT-4: llvm.load {{.*}} -> f32
// CHECK: llvm.store {{.*}} : f32, !llvm.ptr<1>
// CHECK-COUNT-4: llvm.load {{.*}} -> f32
// CHECK: llvm.store {{.*}} : f32, !llvm.ptr<1>
func.func @rows(%out: memref<?x12xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %one = arith.constant 1.0 : f32
  %zero = arith.constant 0 : i32
  warp.kernel @rows blocks(%i, %j, %k) in (%c1, %c1, %c1) warps(4) shared(16384) {
    %bins = warp.alloc at 0 : !warp.slot<32x128xf32>
    warp.clear_bins %bins : !warp.slot<32x128xf32>
    %value = warp.splat %one : !tile
    %index = warp.coords %zero, 1 : !column
    warp.scatter_add %value, %bins[%index] of 12 rows 64 : !tile, !warp.slot<32x128xf32>, !column
    warp.store_bins %bins of 12 rows 64, %out[%i, %c0] : !warp.slot<32x128xf32>, memref<?x12xf32>
  }
  return
}
