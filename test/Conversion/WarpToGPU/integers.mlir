// RUN: attn-opt %s --convert-warp-to-gpu=chip=sm_90a --canonicalize --cse | FileCheck %s

!o = !warp.frag<64x16xbf16, acc, 4>
!m = memref<64x16xbf16>

// The number of the warp in the block is taken from lane 0 where all lanes must
// agree; the rows of a lane are those of its warp's number in its role, which
// begins at warp 4 here. Divisors are powers of two and the numbers unsigned.
// CHECK-LABEL: gpu.func @second_role
// CHECK: %[[THREAD:.*]] = arith.index_cast %thread_id_x : index to i32
// CHECK: %[[WARP:.*]] = arith.divui %[[THREAD]], %c32_i32 : i32
// CHECK: %[[SAME:.*]] = nvvm.shfl.sync idx %c-1_i32, %[[WARP]], %c0_i32, %c31_i32 : i32 -> i32
// CHECK: arith.cmpi slt, %[[SAME]], %c4_i32 : i32
// CHECK: } else {
// CHECK: %[[IN_ROLE:.*]] = arith.addi %[[WARP]], %c-4_i32 : i32
// CHECK: %[[FIRST:.*]] = arith.muli %[[IN_ROLE]], %c16_i32 : i32
// CHECK: %[[LANE:.*]] = arith.remui %[[THREAD]], %c32_i32 : i32
// CHECK: %[[GROUP:.*]] = arith.divui %[[LANE]], %c4_i32 : i32
// CHECK: %[[ROW:.*]] = arith.addi %[[FIRST]], %[[GROUP]] : i32
// CHECK: arith.extsi %[[ROW]] : i32 to i64
// CHECK: %[[IN_ROW:.*]] = arith.remui %[[LANE]], %c4_i32 : i32
// CHECK: arith.muli %[[IN_ROW]], %c2_i32 : i32
func.func @second_role(%x: bf16, %m: !m) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  warp.kernel @second_role blocks(%i, %j, %k) in (%c1, %c1, %c1) warps(8) shared(0) {
    warp.role @first compute warps(4) {
    }
    warp.role @second compute warps(4) {
      %f = warp.splat %x : !o
      warp.store %f, %m[%c0, %c0] : !o, !m
    }
  }
  return
}
