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

// Tiles of 16-bit elements in panels are read four matrices of 8x8 at a time: 16
// rows of a warp, 16 columns. The second panel of 64 columns lies 64 x 128 bytes
// after the first.
// CHECK-LABEL: gpu.func @matrices
// CHECK-COUNT-4: nvvm.ldmatrix {{.*}} {eltType = #nvvm.ld_st_matrix_elt_type<b16>, layout = #nvvm.mma_layout<row>, num = 4
// CHECK: llvm.getelementptr %{{.*}}[8192]
// CHECK-COUNT-4: nvvm.ldmatrix {{.*}} layout = #nvvm.mma_layout<row>, num = 4
// CHECK-NOT: nvvm.ldmatrix
// CHECK: gpu.return
func.func @matrices(%view: memref<?x128xbf16>, %out: memref<?x128xbf16>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  warp.kernel @matrices blocks(%x, %y, %z) in (%c1, %c1, %c1) warps(4) {
    %S = warp.alloc : !warp.slot<64x128xbf16, panels<128>>
    warp.copy %view[%x, %c0] to %S : memref<?x128xbf16>, !warp.slot<64x128xbf16, panels<128>>
    %t = warp.load_frag %S : !warp.slot<64x128xbf16, panels<128>> -> !warp.frag<64x128xbf16, acc, 4>
    warp.store %t, %out[%c0, %c0] : !warp.frag<64x128xbf16, acc, 4>, memref<?x128xbf16>
  }
  return
}

// Rows of the slot that are columns of the fragment: the rows of warp 4 and its
// neighbours lie in the second panel. 24 columns are 16 and 8.
// CHECK-LABEL: gpu.func @transposed
// CHECK: nvvm.ldmatrix {{.*}} layout = #nvvm.mma_layout<col>, num = 4
// CHECK: nvvm.ldmatrix {{.*}} layout = #nvvm.mma_layout<col>, num = 2
// CHECK-NOT: nvvm.ldmatrix
// CHECK: gpu.return
func.func @transposed(%view: memref<?x128xf16>, %out: memref<?x24xf16>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  warp.kernel @transposed blocks(%x, %y, %z) in (%c1, %c1, %c1) warps(8) {
    %S = warp.alloc : !warp.slot<24x128xf16, panels<128>>
    warp.copy %view[%x, %c0] to %S : memref<?x128xf16>, !warp.slot<24x128xf16, panels<128>>
    %t = warp.load_frag %S transpose : !warp.slot<24x128xf16, panels<128>> -> !warp.frag<128x24xf16, acc, 8>
    warp.store %t, %out[%c0, %c0] : !warp.frag<128x24xf16, acc, 8>, memref<?x24xf16>
  }
  return
}
