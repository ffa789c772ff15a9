// RUN: attn-opt %s --convert-warp-to-gpu --canonicalize --cse | FileCheck %s

!slot = !warp.slot<64x64xf16>
!frag = !warp.frag<64x64xf16, a, 4>

// A lane's row of the box and its chunk, xor the row's swizzle; nobody sees
// where that comes from. The next 16 columns are two chunks further, which is an
// xor of 32 bytes: an address for each of the four.
// CHECK-LABEL: gpu.func @a_operand
// CHECK: %[[BASE:.*]] = llvm.inline_asm has_side_effects {{.*}}"mov.b32 $0, $1;"
// CHECK: %[[P0:.*]] = llvm.inttoptr %[[BASE]] : i32 to !llvm.ptr<3>
// CHECK: nvvm.ldmatrix %[[P0]] {eltType = #nvvm.ld_st_matrix_elt_type<b16>, layout = #nvvm.mma_layout<row>, num = 4 : i32
// CHECK: %[[X1:.*]] = arith.xori %[[BASE]], %c32_i32
// CHECK: %[[P1:.*]] = llvm.inttoptr %[[X1]]
// CHECK: nvvm.ldmatrix %[[P1]]
// CHECK: %[[X2:.*]] = arith.xori %[[BASE]], %c64_i32
// CHECK: %[[P2:.*]] = llvm.inttoptr %[[X2]]
// CHECK: nvvm.ldmatrix %[[P2]]
// CHECK: %[[X3:.*]] = arith.xori %[[BASE]], %c96_i32
// CHECK: %[[P3:.*]] = llvm.inttoptr %[[X3]]
// CHECK: nvvm.ldmatrix %[[P3]]
// CHECK-NOT: nvvm.ldmatrix
// CHECK: gpu.return
func.func @a_operand() {
  %c1 = arith.constant 1 : index
  warp.kernel @a_operand blocks(%x, %y, %z) in (%c1, %c1, %c1) warps(4) shared(8192) {
    %s = warp.alloc at 0 : !slot
    %f = warp.load_frag %s : !slot -> !frag
  }
  return
}
