// RUN: attn-opt %s --pass-pipeline="builtin.module(func.func(warp-assign-resources{shared-limit=232448}),convert-warp-to-gpu,canonicalize,cse)" | FileCheck %s

// A row has no swizzle: a lane reads its pairs of columns 32 bytes apart, or its
// two rows of 16. Each thread copies one element of it.
// CHECK-LABEL: gpu.func @row
// CHECK: nvvm.cp.async.shared.global {{.*}} 4, cache = ca
// CHECK: gpu.barrier
// CHECK-COUNT-4: llvm.load %{{.*}} {alignment = 8 : i64} : !llvm.ptr<3> -> vector<2xf32>
// CHECK: llvm.load %{{.*}} {alignment = 4 : i64} : !llvm.ptr<3> -> f32
// CHECK: %[[NEXT:.*]] = llvm.getelementptr %{{.*}}[32]
// CHECK: llvm.load %[[NEXT]] {alignment = 4 : i64} : !llvm.ptr<3> -> f32
// CHECK: gpu.return
func.func @row(%sums: memref<?xf32>, %out: memref<?x32xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  warp.kernel @row blocks(%x, %y, %z) in (%c1, %c1, %c1) warps(2) {
    %S = warp.alloc : !warp.slot<1x32xf32>
    warp.copy %sums[%x] to %S : memref<?xf32>, !warp.slot<1x32xf32>
    %columns = warp.load_frag %S : !warp.slot<1x32xf32> -> !warp.frag<1x32xf32, acc, 2>
    %rows = warp.load_frag %S : !warp.slot<1x32xf32> -> !warp.frag<32x1xf32, acc, 2>
    %a = warp.broadcast %columns : !warp.frag<1x32xf32, acc, 2> -> !warp.frag<32x32xf32, acc, 2>
    %b = warp.broadcast %rows : !warp.frag<32x1xf32, acc, 2> -> !warp.frag<32x32xf32, acc, 2>
    %s = arith.addf %a, %b : !warp.frag<32x32xf32, acc, 2>
    warp.store %s, %out[%c0, %c0] : !warp.frag<32x32xf32, acc, 2>, memref<?x32xf32>
  }
  return
}

// The second panel of 32 columns lies 64 x 128 bytes after the first.
// CHECK-LABEL: gpu.func @tile
// CHECK: llvm.getelementptr %{{.*}}[1024]
// CHECK: llvm.getelementptr %{{.*}}[8192]
// CHECK: gpu.return
func.func @tile(%view: memref<?x64xf32>, %out: memref<?x64xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  warp.kernel @tile blocks(%x, %y, %z) in (%c1, %c1, %c1) warps(4) {
    %S = warp.alloc : !warp.slot<64x64xf32, panels<128>>
    warp.copy %view[%x, %c0] to %S : memref<?x64xf32>, !warp.slot<64x64xf32, panels<128>>
    %t = warp.load_frag %S : !warp.slot<64x64xf32, panels<128>> -> !warp.frag<64x64xf32, acc, 4>
    warp.store %t, %out[%c0, %c0] : !warp.frag<64x64xf32, acc, 4>, memref<?x64xf32>
  }
  return
}
