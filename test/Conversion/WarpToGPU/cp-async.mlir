// RUN: attn-opt %s --convert-warp-to-gpu --canonicalize --cse | FileCheck %s

// 128 threads, 8 chunks per row: 16 rows per pass, so the xor of a lane is the
// same in all four passes and they differ by constants.
// CHECK-LABEL: gpu.func @whole_rows
// CHECK-SAME: %[[A:.*]]: memref
// CHECK: %{{.*}}, %{{.*}}, %[[SIZES:.*]]:2, %[[STRIDES:.*]]:2 = memref.extract_strided_metadata %[[A]]
// CHECK: %[[CHUNK:.*]] = arith.remui %{{.*}}, %c8_i32
// CHECK: %[[ROW:.*]] = arith.divui %{{.*}}, %c8_i32
// CHECK: %[[LEFT:.*]] = arith.subi
// CHECK: %[[XOR:.*]] = arith.remui %[[ROW]], %c8_i32
// CHECK: arith.xori %[[CHUNK]], %[[XOR]]
// CHECK: %[[IN:.*]] = arith.cmpi sgt, %[[LEFT]], %c0_i32
// CHECK: %[[TO:.*]] = llvm.inttoptr %{{.*}} : i32 to !llvm.ptr<3>
// CHECK: %[[SIZE:.*]] = arith.select %[[IN]], %c16_i32, %c0_i32
// CHECK: nvvm.cp.async.shared.global %{{.*}}, %{{.*}}, 16, cache =  cg, %[[SIZE]]
// CHECK: llvm.getelementptr %[[TO]][2048]
// CHECK: nvvm.cp.async.shared.global
// CHECK: llvm.getelementptr %[[TO]][4096]
// CHECK: nvvm.cp.async.shared.global
// CHECK: llvm.getelementptr %[[TO]][6144]
// CHECK: nvvm.cp.async.shared.global
// CHECK-NOT: nvvm.cp.async.shared.global
// CHECK: gpu.return
func.func @whole_rows(%a: memref<?x64xbf16, strided<[?, 1]>>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  warp.kernel @whole_rows blocks(%x, %y, %z) in (%c1, %c1, %c1) warps(4) shared(8192) {
    %slot = warp.alloc at 0 : !warp.slot<64x64xbf16>
    warp.copy %a[%x, %c0] to %slot : memref<?x64xbf16, strided<[?, 1]>>, !warp.slot<64x64xbf16>
  }
  return
}

// 40 columns in a slot of 48: six chunks, two lanes per row, 64 rows per pass,
// three blocks. The last chunk does not exist: zeros.
// CHECK-LABEL: gpu.func @padding
// CHECK: nvvm.cp.async.shared.global
// CHECK: nvvm.cp.async.shared.global
// CHECK: arith.cmpi sge, %{{.*}}, %c40_i32
// CHECK: arith.andi
// CHECK: nvvm.cp.async.shared.global
// CHECK-NOT: nvvm.cp.async.shared.global
// CHECK: gpu.return
func.func @padding(%a: memref<?x40xf16, strided<[?, 1]>>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  warp.kernel @padding blocks(%x, %y, %z) in (%c1, %c1, %c1) warps(4) shared(8192) {
    %slot = warp.alloc at 0 : !warp.slot<64x48xf16>
    warp.copy %a[%x, %c0] to %slot : memref<?x40xf16, strided<[?, 1]>>, !warp.slot<64x48xf16>
  }
  return
}

// 16 rows, 64 rows per pass: some threads have nothing to do.
// CHECK-LABEL: gpu.func @spare_threads
// CHECK: %[[BUSY:.*]] = arith.cmpi slt, %{{.*}}, %c16_i32
// CHECK: scf.if %[[BUSY]]
// CHECK: nvvm.cp.async.shared.global
func.func @spare_threads(%a: memref<?x16xf16, strided<[?, 1]>>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  warp.kernel @spare_threads blocks(%x, %y, %z) in (%c1, %c1, %c1) warps(4) shared(8192) {
    %slot = warp.alloc at 0 : !warp.slot<16x16xf16>
    warp.copy %a[%x, %c0] to %slot : memref<?x16xf16, strided<[?, 1]>>, !warp.slot<16x16xf16>
  }
  return
}
