// From a sine of any distance three parts of a multiple of pi are taken off, by
// products that are exact; one polynomial does for sine and cosine.
//
// RUN: attn-opt %s --convert-warp-to-gpu | FileCheck %s

!rows = !warp.frag<64x1xf32, acc, 4>

// CHECK-LABEL: gpu.func @sines
// CHECK: %[[N:.*]] = arith.subf
// CHECK: %[[R1:.*]] = llvm.intr.fma(%[[N]], %{{.*}}, %{{.*}}) : (f32, f32, f32) -> f32
// CHECK: %[[R2:.*]] = llvm.intr.fma(%[[N]], %{{.*}}, %[[R1]])
// CHECK: %[[R3:.*]] = llvm.intr.fma(%[[N]], %{{.*}}, %[[R2]])
// CHECK: arith.mulf %[[R3]], %[[R3]]
// CHECK-COUNT-4: llvm.intr.fma
// CHECK-NOT: arith.select
// CHECK: arith.maximumf
// CHECK-COUNT-8: llvm.intr.fma
// CHECK-NOT: llvm.intr.fma
// CHECK-NOT: arith.select
// CHECK: arith.maximumf
func.func @sines(%x: f32, %o: memref<?xf32>) {
  %c1 = arith.constant 1 : index
  warp.kernel @sines blocks(%i, %j, %k) in (%c1, %c1, %c1) warps(4) shared(0) {
    %f = warp.splat %x : !rows
    %a = math.sin %f : !rows
    %b = math.cos %a : !rows
    warp.store %b, %o[%i] rows : !rows, memref<?xf32>
  }
  return
}
