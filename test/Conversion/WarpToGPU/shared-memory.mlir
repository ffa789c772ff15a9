// RUN: attn-opt %s --convert-warp-to-gpu --canonicalize --cse | FileCheck %s
// RUN: attn-opt %S/wgmma.mlir --convert-warp-to-gpu=chip=sm_90a | FileCheck %s --check-prefix=PANELS
// PANELS: llvm.mlir.global external @attn_shared_memory() {addr_space = 3 : i32, alignment = 1024 : i64}

!small = !warp.slot<64x16xf16>
!large = !warp.slot<64x64xf16>

// One array of unknown size for all slots of a module, aligned as the most
// demanding of them; a slot is a number of bytes from its beginning.
// CHECK: llvm.mlir.global external @attn_shared_memory() {addr_space = 3 : i32, alignment = 128 : i64} : !llvm.array<0 x i8>
// CHECK-NOT: llvm.mlir.global
// CHECK-LABEL: gpu.func @two_slots
// CHECK-DAG: %[[OFFSET:.*]] = arith.constant 8192 : i32
// CHECK: %[[MEMORY:.*]] = llvm.mlir.addressof @attn_shared_memory : !llvm.ptr<3>
// CHECK: %[[FIRST:.*]] = llvm.ptrtoint %[[MEMORY]] : !llvm.ptr<3> to i32
// CHECK: %[[SECOND:.*]] = arith.addi %[[FIRST]], %[[OFFSET]] : i32
// CHECK: arith.addi %[[SECOND]], %{{.*}} : i32
// CHECK: nvvm.ldmatrix
// CHECK: arith.addi %[[FIRST]], %{{.*}} : i32
// CHECK: nvvm.ldmatrix
// The launch asks for as much as the kernel says.
// CHECK: func.func @two_slots
// CHECK: %[[BYTES:.*]] = arith.constant 10240 : i32
// CHECK: gpu.launch_func @two_slots_kernels::@two_slots {{.*}} dynamic_shared_memory_size %[[BYTES]]
func.func @two_slots() {
  %c1 = arith.constant 1 : index
  warp.kernel @two_slots blocks(%x, %y, %z) in (%c1, %c1, %c1) warps(4) shared(10240) {
    %s = warp.alloc at 8192 : !small
    %f = warp.load_frag %s : !small -> !warp.frag<64x16xf16, a, 4>
    %t = warp.alloc at 0 : !large
    %g = warp.load_frag %t : !large -> !warp.frag<64x64xf16, a, 4>
  }
  return
}
