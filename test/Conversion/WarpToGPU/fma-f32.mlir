// RUN: attn-opt %s --convert-warp-to-gpu --canonicalize --cse | FileCheck %s

!out = memref<?x8xf32, strided<[?, 1], offset: ?>>
!wide = memref<?x16xf32, strided<[?, 1], offset: ?>>

// Two steps of 8 columns of k. The lane's rows are eight numbers each, of A and
// of the transposed B; four elements of eight products each, which join the
// accumulator by an addition.
// CHECK-LABEL: gpu.func @scores
// CHECK-NOT: nvvm.mma.sync
// CHECK-COUNT-8: llvm.load {{.*}} {alignment = 16 : i64} : !llvm.ptr<3> -> vector<4xf32>
// CHECK-NOT: llvm.load
// CHECK: %[[FIRST:.*]] = arith.mulf
// CHECK-NEXT: llvm.intr.fma(%{{.*}}, %{{.*}}, %[[FIRST]])
// CHECK-COUNT-5: llvm.intr.fma
// CHECK: %[[SUM:.*]] = llvm.intr.fma
// CHECK-NEXT: arith.addf %[[SUM]], %{{.*}} : f32
// CHECK-COUNT-21: llvm.intr.fma
// CHECK-NOT: llvm.intr.fma
// CHECK-COUNT-8: llvm.load {{.*}} {alignment = 16 : i64} : !llvm.ptr<3> -> vector<4xf32>
// CHECK-NOT: llvm.load
// CHECK-COUNT-28: llvm.intr.fma
// CHECK-NOT: llvm.intr.fma
// CHECK-NOT: nvvm.mma.sync
// CHECK: gpu.return
func.func @scores(%m: !out) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  warp.kernel blocks(%x, %y, %z) in (%c1, %c1, %c1) warps(4) shared(10240) {
    %zero = arith.constant 0.0 : f32
    %q = warp.alloc at 0 : !warp.slot<64x16xf32>
    %k = warp.alloc at 4096 : !warp.slot<8x16xf32>
    %acc = warp.splat %zero : !warp.frag<64x8xf32, acc, 4>
    %s = warp.mma %q, %k, %acc transpose_b ieee : !warp.slot<64x16xf32>, !warp.slot<8x16xf32>, !warp.frag<64x8xf32, acc, 4>
    warp.store %s, %m[%c0, %c0] : !warp.frag<64x8xf32, acc, 4>, !out
  }
  return
}

// A in registers: four lanes hold a row, two neighbouring columns each. The
// columns of B are read row by row, two at a time, for each tile of 8.
// CHECK-LABEL: gpu.func @values
// CHECK-COUNT-16: nvvm.shfl.sync idx
// CHECK-NOT: nvvm.shfl.sync
// CHECK-COUNT-8: llvm.load {{.*}} {alignment = 8 : i64} : !llvm.ptr<3> -> vector<2xf32>
// CHECK-NOT: llvm.load
// CHECK-COUNT-28: llvm.intr.fma
// CHECK-COUNT-8: llvm.load {{.*}} {alignment = 8 : i64} : !llvm.ptr<3> -> vector<2xf32>
// CHECK-COUNT-28: llvm.intr.fma
// CHECK-NOT: llvm.intr.fma
// CHECK-COUNT-16: nvvm.shfl.sync idx
// CHECK-COUNT-56: llvm.intr.fma
// CHECK-NOT: llvm.intr.fma
// CHECK: gpu.return
func.func @values(%m: !wide) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  warp.kernel blocks(%x, %y, %z) in (%c1, %c1, %c1) warps(4) shared(10240) {
    %zero = arith.constant 0.0 : f32
    %v = warp.alloc at 0 : !warp.slot<16x16xf32>
    %a = warp.splat %zero : !warp.frag<64x16xf32, a, 4>
    %acc = warp.splat %zero : !warp.frag<64x16xf32, acc, 4>
    %o = warp.mma %a, %v, %acc ieee : !warp.frag<64x16xf32, a, 4>, !warp.slot<16x16xf32>, !warp.frag<64x16xf32, acc, 4>
    warp.store %o, %m[%c0, %c0] : !warp.frag<64x16xf32, acc, 4>, !wide
  }
  return
}
