// RUN: attn-opt %s --convert-warp-to-gpu --canonicalize --cse | FileCheck %s

!q = !warp.slot<64x16xf32>
!k = !warp.slot<8x16xf32>
!s = !warp.frag<64x8xf32, acc, 4>

// A lane reads two floats of row lane / 4 at column 2 (lane mod 4): chunk
// column / 4, xor the row's swizzle, and the place in the chunk. One address for
// each operand, whose origin ptxas does not see; from it the rows 8 further are a
// constant (512 bytes), and other chunks an xor.
// CHECK-LABEL: gpu.func @operands
// CHECK: %[[MEMORY:.*]] = llvm.ptrtoint
// CHECK: %[[KEYS:.*]] = arith.addi %[[MEMORY]], %c4096_i32
// CHECK: %[[LANE:.*]] = arith.remui %{{.*}}, %c32_i32
// CHECK: %[[ROW:.*]] = arith.divui %[[LANE]], %c4_i32
// CHECK: %[[PAIR:.*]] = arith.remui %[[LANE]], %c4_i32
// CHECK: %[[COLUMN:.*]] = arith.muli %[[PAIR]], %c2_i32
// CHECK: %[[HALF:.*]] = arith.divui %[[ROW]], %c2_i32
// CHECK: %[[SWIZZLE:.*]] = arith.remui %[[HALF]], %c4_i32
// CHECK: %[[CHUNK:.*]] = arith.divui %[[COLUMN]], %c4_i32
// CHECK: %[[PLACE:.*]] = arith.xori %[[CHUNK]], %[[SWIZZLE]]
// CHECK: %[[INSIDE:.*]] = arith.remui %[[COLUMN]], %c4_i32
// CHECK: %[[INSIDE_BYTES:.*]] = arith.muli %[[INSIDE]], %c4_i32
// CHECK: %[[ROW_BYTES:.*]] = arith.muli %[[ROW]], %c64_i32
// CHECK: %[[CHUNK_BYTES:.*]] = arith.muli %[[PLACE]], %c16_i32
// CHECK: %[[A:.*]] = arith.addi %[[ROW_BYTES]], %[[CHUNK_BYTES]]
// CHECK: %[[B:.*]] = arith.addi %[[A]], %[[INSIDE_BYTES]]
// CHECK: %[[C:.*]] = arith.addi %[[KEYS]], %[[B]]
// CHECK: %[[KEY:.*]] = llvm.inline_asm has_side_effects {{.*}}"mov.b32 $0, $1;", "=r,r" %[[C]]
// CHECK: %[[QUERY:.*]] = llvm.inline_asm has_side_effects {{.*}}"mov.b32 $0, $1;"
// CHECK: %[[P:.*]] = llvm.inttoptr %[[QUERY]] : i32 to !llvm.ptr<3>
// CHECK: llvm.load %[[P]] {alignment = 8 : i64} : !llvm.ptr<3> -> vector<2xf32>
// CHECK: %[[P8:.*]] = llvm.getelementptr %[[P]][512]
// CHECK: llvm.load %[[P8]]
// CHECK: arith.xori %[[QUERY]], %c32_i32
func.func @operands(%zero: f32) {
  %c1 = arith.constant 1 : index
  warp.kernel @operands blocks(%x, %y, %z) in (%c1, %c1, %c1) warps(4) shared(4608) {
    %q = warp.alloc at 0 : !q
    %k = warp.alloc at 4096 : !k
    %acc = warp.splat %zero : !s
    %s = warp.mma mma_tf32 %q, %k, %acc transpose_b : !q, !k, !s
  }
  return
}
