// RUN: attn-opt %s --convert-warp-to-gpu | FileCheck %s

!rows = !warp.frag<64x1xf32, acc, 4>

// A logarithm of which an integer is made is right to the last bit; that of what
// is not positive and finite is the instruction's, as where nothing is decided.
// CHECK-LABEL: gpu.func @exact_logarithms
// CHECK-SAME: %[[X:[^:]*]]: f32
// CHECK: %[[QUICK:.*]] = llvm.call_intrinsic "llvm.nvvm.lg2.approx.f"(%[[X]])
// CHECK: arith.mulf %[[QUICK]]
// CHECK: %[[BITS:.*]] = arith.bitcast %{{.*}} : f32 to i32
// CHECK: arith.shrsi
// CHECK-COUNT-10: llvm.intr.fma
// CHECK: %[[SPECIAL:.*]] = llvm.call_intrinsic "llvm.nvvm.lg2.approx.f"(%[[X]])
// CHECK: %[[LOG:.*]] = arith.select %{{.*}}, %{{.*}}, %[[SPECIAL]]
// CHECK: arith.fptosi %[[LOG]]
// CHECK: gpu.return
func.func @exact_logarithms(%x: f32, %o: memref<?xf32>, %n: memref<?xi32>) {
  %c1 = arith.constant 1 : index
  warp.kernel @exact_logarithms blocks(%i, %j, %k) in (%c1, %c1, %c1) warps(4) shared(0) {
    %a = warp.splat %x : !rows
    %quick = math.log %a : !rows
    warp.store %quick, %o[%i] rows : !rows, memref<?xf32>
    %exact = math.log %a : !rows
    %z = warp.cast fptosi %exact : !rows to !warp.frag<64x1xi32, acc, 4>
    warp.store %z, %n[%i] rows : !warp.frag<64x1xi32, acc, 4>, memref<?xi32>
  }
  return
}
