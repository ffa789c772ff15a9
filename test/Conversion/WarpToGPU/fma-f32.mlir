// RUN: attn-opt %s --convert-warp-to-gpu --canonicalize --cse | FileCheck %s

!out = memref<?x8xf32, strided<[?, 1], offset: ?>>
!wide = memref<?x16xf32, strided<[?, 1], offset: ?>>

// A loop over steps of 8 columns of k. The lane's rows are eight numbers each, of
// A and of the transposed B; four elements of eight products each, which join
// the accumulator by an addition. The column goes through the swizzle: 8 columns
// are 32 bytes, and what is above a row's 64 is added.
// CHECK-LABEL: gpu.func @scores
// CHECK-NOT: nvvm.mma.sync
// CHECK-DAG: %[[STEP:.*]] = arith.constant 8 : i32
// CHECK-DAG: %[[END:.*]] = arith.constant 16 : i32
// CHECK-NOT: llvm.load
// CHECK: %{{.*}}:4 = scf.for %[[K:.*]] = %{{.*}} to %[[END]] step %[[STEP]] iter_args({{.*}}) -> (f32, f32, f32, f32) : i32 {
// CHECK: arith.muli %[[K]], %{{.*}} : i32
// CHECK: arith.remui
// CHECK: arith.xori
// CHECK-COUNT-8: llvm.load {{.*}} {alignment = 16 : i64} : !llvm.ptr<3> -> vector<4xf32>
// CHECK-NOT: llvm.load
// CHECK: %[[FIRST:.*]] = arith.mulf
// CHECK-NEXT: llvm.intr.fma(%{{.*}}, %{{.*}}, %[[FIRST]])
// CHECK-COUNT-5: llvm.intr.fma
// CHECK: %[[SUM:.*]] = llvm.intr.fma
// CHECK-NEXT: arith.addf %{{.*}}, %[[SUM]] : f32
// CHECK-COUNT-21: llvm.intr.fma
// CHECK-NOT: llvm.intr.fma
// CHECK: scf.yield
// CHECK-NOT: llvm.load
// CHECK-NOT: nvvm.mma.sync
// CHECK: gpu.return
func.func @scores(%m: !out) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  warp.kernel @scores blocks(%x, %y, %z) in (%c1, %c1, %c1) warps(4) shared(10240) {
    %zero = arith.constant 0.0 : f32
    %q = warp.alloc at 0 : !warp.slot<64x16xf32>
    %k = warp.alloc at 4096 : !warp.slot<8x16xf32>
    %acc = warp.splat %zero : !warp.frag<64x8xf32, acc, 4>
    %s = warp.mma fma_f32 %q, %k, %acc transpose_b : !warp.slot<64x16xf32>, !warp.slot<8x16xf32>, !warp.frag<64x8xf32, acc, 4>
    warp.store %s, %m[%c0, %c0] : !warp.frag<64x8xf32, acc, 4>, !out
  }
  return
}

// A in registers: four lanes hold a row, two neighbouring columns each; the
// registers of the next step move to the front. The columns of B are read row by
// row, two at a time, for each tile of 8.
// CHECK-LABEL: gpu.func @values
// CHECK: %{{.*}}:16 = scf.for %[[K:.*]] = %{{.*}} iter_args(
// CHECK-SAME: %[[R0:[^ ]*]] = %{{[^ ]*}}, %[[R1:[^ ]*]] = %{{[^ ]*}}, %[[R2:[^ ]*]] = %{{[^ ]*}}, %[[R3:[^ ]*]] = %{{[^ ]*}}, %[[R4:[^ ]*]] = %{{[^ ]*}}, %[[R5:[^ ]*]] = %{{[^ ]*}}, %[[R6:[^ ]*]] = %{{[^ ]*}}, %[[R7:[^ ]*]] = %{{[^ ]*}}) ->
// CHECK: nvvm.shfl.sync idx %{{.*}}, %[[R0]],
// CHECK: nvvm.shfl.sync idx %{{.*}}, %[[R2]],
// CHECK-COUNT-14: nvvm.shfl.sync idx
// CHECK-NOT: nvvm.shfl.sync
// CHECK-COUNT-8: llvm.load {{.*}} {alignment = 8 : i64} : !llvm.ptr<3> -> vector<2xf32>
// CHECK-NOT: llvm.load
// CHECK-COUNT-28: llvm.intr.fma
// CHECK-COUNT-8: llvm.load {{.*}} {alignment = 8 : i64} : !llvm.ptr<3> -> vector<2xf32>
// CHECK-COUNT-28: llvm.intr.fma
// CHECK-NOT: llvm.intr.fma
// CHECK: scf.yield {{.*}}, %[[R4]], %[[R5]], %[[R6]], %[[R7]], %[[R0]], %[[R1]], %[[R2]], %[[R3]] :
// CHECK: gpu.return
func.func @values(%m: !wide) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  warp.kernel @values blocks(%x, %y, %z) in (%c1, %c1, %c1) warps(4) shared(10240) {
    %zero = arith.constant 0.0 : f32
    %v = warp.alloc at 0 : !warp.slot<16x16xf32>
    %acc = warp.splat %zero : !warp.frag<64x16xf32, acc, 4>
    %base = arith.constant 0 : i32
    %c = warp.coords %base, 1 : !warp.frag<1x16xi32, acc, 4>
    %f = warp.cast sitofp %c : !warp.frag<1x16xi32, acc, 4> to !warp.frag<1x16xf32, acc, 4>
    %p = warp.broadcast %f : !warp.frag<1x16xf32, acc, 4> -> !warp.frag<64x16xf32, acc, 4>
    %a = warp.convert %p : !warp.frag<64x16xf32, acc, 4> -> !warp.frag<64x16xf32, a, 4>
    %o = warp.mma fma_f32 %a, %v, %acc : !warp.frag<64x16xf32, a, 4>, !warp.slot<16x16xf32>, !warp.frag<64x16xf32, acc, 4>
    warp.store %o, %m[%c0, %c0] : !warp.frag<64x16xf32, acc, 4>, !wide
  }
  return
}
