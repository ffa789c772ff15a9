// RUN: attn-opt %s --convert-warp-to-gpu --canonicalize --cse | FileCheck %s

!acc = !warp.frag<128x16xf32, acc, 4>
!qslot = !warp.slot<128x32xbf16>
!kslot = !warp.slot<16x32xbf16>
!vslot = !warp.slot<32x16xf16>
!vacc = !warp.frag<64x16xf32, acc, 4>
!p = !warp.frag<64x32xf16, a, 4>

// Q K^T, both in shared memory: two row groups per warp share each B operand.
// CHECK-LABEL: gpu.func @scores
// First k-step: A of both row groups (64 rows of 64 bytes apart), one B.
// CHECK: %[[A:.*]] = llvm.inttoptr
// CHECK: nvvm.ldmatrix %[[A]] {eltType = #nvvm.ld_st_matrix_elt_type<b16>, layout = #nvvm.mma_layout<row>, num = 4 : i32
// CHECK: llvm.getelementptr %[[A]][4096]
// CHECK: nvvm.ldmatrix
// CHECK: nvvm.ldmatrix {{.*}}layout = #nvvm.mma_layout<row>
// CHECK-COUNT-4: nvvm.mma.sync {{.*}}multiplicandAPtxType = #nvvm.mma_type<bf16>{{.*}}shape = #nvvm.shape<m = 16, n = 8, k = 16>
// Second k-step: the same addresses, 32 bytes further before the xor.
// CHECK: nvvm.ldmatrix
// CHECK: nvvm.ldmatrix
// CHECK: nvvm.ldmatrix
// CHECK-COUNT-4: nvvm.mma.sync
// CHECK-NOT: nvvm.mma.sync
// CHECK: gpu.return
func.func @scores() {
  %c1 = arith.constant 1 : index
  warp.kernel @scores blocks(%x, %y, %z) in (%c1, %c1, %c1) warps(4) shared(16384) {
    %zero = arith.constant 0.0 : f32
    %q = warp.alloc at 0 : !qslot
    %k = warp.alloc at 8192 : !kslot
    %acc = warp.splat %zero : !acc
    %s = warp.mma mma_sync %q, %k, %acc transpose_b : !qslot, !kslot, !acc
  }
  return
}

// P V: A in registers, B transposed on the way.
// CHECK-LABEL: gpu.func @output
// CHECK: nvvm.ldmatrix {{.*}}layout = #nvvm.mma_layout<col>, num = 4
// CHECK-COUNT-2: nvvm.mma.sync {{.*}} : (vector<2xf16>, vector<2xf16>, f32)
// CHECK: nvvm.ldmatrix {{.*}}layout = #nvvm.mma_layout<col>, num = 4
// CHECK-COUNT-2: nvvm.mma.sync
// CHECK-NOT: nvvm.mma.sync
// CHECK: gpu.return
func.func @output() {
  %c1 = arith.constant 1 : index
  warp.kernel @output blocks(%x, %y, %z) in (%c1, %c1, %c1) warps(4) shared(16384) {
    %zero = arith.constant 0.0 : f32
    %one = arith.constant 1.0 : f16
    %v = warp.alloc at 0 : !vslot
    %p = warp.splat %one : !p
    %acc = warp.splat %zero : !vacc
    %o = warp.mma mma_sync %p, %v, %acc : !p, !vslot, !vacc
  }
  return
}

// CHECK-LABEL: gpu.func @load_frag
// CHECK-COUNT-2: nvvm.ldmatrix {{.*}}layout = #nvvm.mma_layout<row>, num = 4
// CHECK-NOT: nvvm.ldmatrix
// CHECK: gpu.return
func.func @load_frag() {
  %c1 = arith.constant 1 : index
  warp.kernel @load_frag blocks(%x, %y, %z) in (%c1, %c1, %c1) warps(4) shared(16384) {
    %q = warp.alloc at 0 : !warp.slot<64x32xf16>
    %p = warp.load_frag %q : !warp.slot<64x32xf16> -> !p
  }
  return
}

// 32 rows are two warps, so each half of the four has half of the columns: the
// warp's rows of A, read transposed, and its columns of B differ.
// CHECK-LABEL: gpu.func @shared_columns
// CHECK-DAG: %[[TWO:.*]] = arith.constant 2 : i32
// CHECK-DAG: arith.remui %[[WARP:.*]], %[[TWO]]
// CHECK-DAG: arith.divui %[[WARP]], %[[TWO]]
// Two k-steps of 16 x 32: A once, B twice, four instructions.
// CHECK: nvvm.ldmatrix {{.*}}layout = #nvvm.mma_layout<col>
// CHECK: nvvm.ldmatrix {{.*}}layout = #nvvm.mma_layout<col>
// CHECK-COUNT-2: nvvm.mma.sync
// CHECK: nvvm.ldmatrix
// CHECK-COUNT-2: nvvm.mma.sync
// CHECK: nvvm.ldmatrix
// CHECK: nvvm.ldmatrix
// CHECK-COUNT-2: nvvm.mma.sync
// CHECK: nvvm.ldmatrix
// CHECK-COUNT-2: nvvm.mma.sync
// CHECK-NOT: nvvm.mma.sync
// CHECK: gpu.return
func.func @shared_columns() {
  %c1 = arith.constant 1 : index
  warp.kernel @shared_columns blocks(%x, %y, %z) in (%c1, %c1, %c1) warps(4) shared(8192) {
    %zero = arith.constant 0.0 : f32
    %ds = warp.alloc at 0 : !warp.slot<32x32xbf16>
    %k = warp.alloc at 2048 : !warp.slot<32x64xbf16>
    %acc = warp.splat %zero : !warp.frag<32x64xf32, acc, 4>
    %dq = warp.mma mma_sync %ds, %k, %acc transpose_a : !warp.slot<32x32xbf16>, !warp.slot<32x64xbf16>, !warp.frag<32x64xf32, acc, 4>
  }
  return
}
