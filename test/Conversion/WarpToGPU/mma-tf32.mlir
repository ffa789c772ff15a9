// RUN: attn-opt %s --convert-warp-to-gpu --canonicalize --cse | FileCheck %s

// f32: three products of tf32 per tile and k-step of 8, operands by plain loads.
// Two steps are summed from zero, the small products first, and join the
// accumulator by an addition, unless that is zero. Numbers are split as if all
// were finite; where a lane of the warp gets one that is not, the product is
// computed once more, step by step, with infinities.
// CHECK-LABEL: gpu.func @scores
// CHECK: llvm.load {{.*}} {alignment = 8 : i64} : !llvm.ptr<3> -> vector<2xf32>
// CHECK: %[[ROUND:.*]] = arith.addi %{{.*}}, %c4096_i32
// CHECK-NEXT: arith.andi %[[ROUND]], %c-8192_i32
// CHECK: nvvm.mma.sync {{.*}}C[%[[ZERO:.*]], %[[ZERO]], %[[ZERO]], %[[ZERO]]]{{.*}}multiplicandAPtxType = #nvvm.mma_type<tf32>{{.*}}shape = #nvvm.shape<m = 16, n = 8, k = 8>
// CHECK-COUNT-5: nvvm.mma.sync
// CHECK-NOT: nvvm.mma.sync
// CHECK-COUNT-3: arith.addf
// CHECK: %[[SIZE:.*]] = llvm.call_intrinsic "llvm.fabs"
// CHECK: %[[IS:.*]] = arith.cmpf olt, %[[SIZE]], %{{.*}} : f32
// CHECK: %[[NOT:.*]] = arith.xori %[[IS]], %true
// CHECK: %[[ANY:.*]] = nvvm.vote.sync any %{{.*}}, %[[NOT]] -> i1
// CHECK: scf.if %[[ANY]]
// CHECK: scf.for
// CHECK: arith.cmpf olt
// CHECK-COUNT-3: nvvm.mma.sync
// CHECK-NOT: nvvm.mma.sync
// CHECK: } else {
// CHECK: gpu.return
func.func @scores(%m: memref<?x8xf32, strided<[?, 1], offset: ?>>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  warp.kernel @scores blocks(%x, %y, %z) in (%c1, %c1, %c1) warps(4) shared(10240) {
    %zero = arith.constant 0.0 : f32
    %q = warp.alloc at 0 : !warp.slot<64x16xf32>
    %k = warp.alloc at 4096 : !warp.slot<8x16xf32>
    %acc = warp.splat %zero : !warp.frag<64x8xf32, acc, 4>
    %s = warp.mma mma_tf32 %q, %k, %acc transpose_b : !warp.slot<64x16xf32>, !warp.slot<8x16xf32>, !warp.frag<64x8xf32, acc, 4>
    warp.store %s, %m[%c0, %c0] : !warp.frag<64x8xf32, acc, 4>, memref<?x8xf32, strided<[?, 1], offset: ?>>
  }
  return
}

// With 160 columns in the accumulator each step is summed by itself. Four tiles of
// it take turns, from zero.
// CHECK-LABEL: gpu.func @wide
// CHECK: nvvm.mma.sync {{.*}}C[%[[ZERO:[^,]*]], %[[ZERO]], %[[ZERO]], %[[ZERO]]]
// CHECK-NOT: arith.addf
// CHECK: nvvm.mma.sync {{.*}}C[%[[ZERO]], %[[ZERO]], %[[ZERO]], %[[ZERO]]]
// CHECK-NOT: arith.addf
// CHECK: nvvm.mma.sync {{.*}}C[%[[ZERO]], %[[ZERO]], %[[ZERO]], %[[ZERO]]]
// CHECK-NOT: arith.addf
// CHECK: nvvm.mma.sync {{.*}}C[%[[ZERO]], %[[ZERO]], %[[ZERO]], %[[ZERO]]]
// CHECK-COUNT-8: nvvm.mma.sync
// CHECK-NOT: nvvm.mma.sync
// CHECK-COUNT-16: arith.addf
// CHECK-COUNT-12: nvvm.mma.sync
// CHECK-COUNT-16: arith.addf
func.func @wide(%m: memref<?x160xf32, strided<[?, 1], offset: ?>>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  warp.kernel @wide blocks(%x, %y, %z) in (%c1, %c1, %c1) warps(4) shared(20480) {
    %one = arith.constant 1.0 : f32
    %q = warp.alloc at 0 : !warp.slot<64x16xf32>
    %k = warp.alloc at 4096 : !warp.slot<160x16xf32>
    %acc = warp.splat %one : !warp.frag<64x160xf32, acc, 4>
    %s = warp.mma mma_tf32 %q, %k, %acc transpose_b : !warp.slot<64x16xf32>, !warp.slot<160x16xf32>, !warp.frag<64x160xf32, acc, 4>
    warp.store %s, %m[%c0, %c0] : !warp.frag<64x160xf32, acc, 4>, memref<?x160xf32, strided<[?, 1], offset: ?>>
  }
  return
}
