// RUN: attn-opt %s --warp-share-columns --split-input-file --verify-roundtrip | FileCheck %s
// RUN: attn-opt %s --warp-share-columns=shared-limit=49152 --split-input-file --remarks-filter=warp-share-columns -o %t 2>&1 | FileCheck %s --check-prefix=LIMIT
// Where that slot does not fit, the product of d_query alone is in a grid.
// LIMIT: [Passed] share-columns | Category:warp-share-columns | products=1
// LIMIT: [Missed] share-columns | Category:warp-share-columns | Remark="no shared memory is left for what warps compute for others"

// One step of d_key and d_value, and a share of d_query. Of the tiles of 64x64 a
// warp has 32x32, and P goes through a slot of its own as dS does; both are
// written one after the other.
// CHECK-LABEL: @gradients
// CHECK: %[[DS:.*]] = warp.alloc : <64x64xbf16>
// CHECK: %[[OWN:.*]] = warp.alloc : <64x64xbf16>
// CHECK: %[[S:.*]] = warp.mma mma_sync {{.*}} transpose_b : {{.*}}, <64x64xf32, acc, 2x2>
// CHECK: warp.load_frag {{.*}} -> <1x64xf32, acc, 2x2>
// CHECK: %[[D:.*]] = warp.cast {{.*}} to <64x64xbf16, acc, 2x2>
// CHECK: %[[P:.*]] = warp.cast {{.*}} to <64x64xbf16, acc, 2x2>
// CHECK-NEXT: warp.store_frag %[[P]] to %[[OWN]]
// CHECK-NEXT: warp.store_frag %[[D]] to %[[DS]]
// CHECK-NOT: warp.convert
// CHECK: warp.mma mma_sync %[[OWN]], {{.*}} : {{.*}}, <64x128xf32, acc, 2x2>
// CHECK: warp.mma mma_sync %[[DS]], {{.*}} transpose_a : {{.*}}, <64x128xf32, acc, 2x2>
// CHECK: warp.mma mma_sync %[[DS]], {{.*}} : {{.*}}, <64x128xf32, acc, 2x2>
// CHECK: warp.store {{.*}} accumulate packed : <64x128xf32, acc, 2x2>
// What is read in another kernel as lanes hold it is in the same grid.
// CHECK: warp.load {{.*}} packed : {{.*}} -> <64x128xf32, acc, 2x2>
!tile = !warp.slot<64x128xbf16>
!half = !warp.slot<64x64xbf16>
!row = !warp.slot<1x64xf32>
!acc = !warp.frag<64x128xf32, acc, 4>
!s = !warp.frag<64x64xf32, acc, 4>
!p = !warp.frag<64x64xbf16, acc, 4>
!a = !warp.frag<64x64xbf16, a, 4>
!view = memref<?x128xbf16, strided<[?, 1]>>
func.func @gradients(%k: !view, %q: !view, %lse: memref<?xf32>, %sums: memref<?x8192xf32>,
                     %out: memref<?x128xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %zero = arith.constant 0.0 : f32
  warp.kernel @step blocks(%x, %y, %z) in (%c1, %c1, %c1) warps(4) {
    %DS = warp.alloc : !half
    %K = warp.alloc : !tile
    %Q = warp.alloc : !tile
    %L = warp.alloc : !row
    %z0 = warp.splat %zero : !s
    %z1 = warp.splat %zero : !acc
    warp.copy %k[%c0, %c0] to %K : !view, !tile
    %r:2 = scf.for %n = %c0 to %c8 step %c1 iter_args(%dv = %z1, %dk = %z1) -> (!acc, !acc) {
      warp.copy %q[%n, %c0] to %Q : !view, !tile
      warp.copy %lse[%n] to %L : memref<?xf32>, !row
      %s = warp.mma mma_sync %K, %Q, %z0 transpose_b : !tile, !tile, !s
      %l = warp.load_frag %L : !row -> !warp.frag<1x64xf32, acc, 4>
      %b = warp.broadcast %l : !warp.frag<1x64xf32, acc, 4> -> !s
      %t = arith.subf %s, %b : !s
      %e = math.exp2 %t : !s
      %g = arith.mulf %e, %t : !s
      %d = warp.cast truncf %g : !s to !p
      %p = warp.cast truncf %e : !s to !p
      %pa = warp.convert %p : !p -> !a
      %dv1 = warp.mma mma_sync %pa, %Q, %dv : !a, !tile, !acc
      warp.store_frag %d to %DS : !p, !half
      %dq = warp.mma mma_sync %DS, %K, %z1 transpose_a : !half, !tile, !acc
      %da = warp.convert %d : !p -> !a
      %dk1 = warp.mma mma_sync %da, %Q, %dk : !a, !tile, !acc
      warp.store %dq, %sums[%n, %c0] accumulate packed : !acc, memref<?x8192xf32>
      scf.yield %dv1, %dk1 : !acc, !acc
    }
    warp.store %r#0, %out[%c0, %c0] : !acc, memref<?x128xf32>
    warp.store %r#1, %out[%c8, %c0] : !acc, memref<?x128xf32>
  }
  warp.kernel @round blocks(%x, %y, %z) in (%c1, %c1, %c1) warps(4) {
    %t = warp.load %sums[%x, %c0] packed : memref<?x8192xf32> -> !acc
    warp.store %t, %out[%c0, %c0] : !acc, memref<?x128xf32>
  }
  return
}

// -----

// The rows of attention itself are reduced.
// CHECK-LABEL: @rows
// CHECK-NOT: acc, {{[0-9]+}}x
// CHECK: warp.convert
!tile = !warp.slot<64x128xbf16>
!s = !warp.frag<64x64xf32, acc, 4>
!a = !warp.frag<64x64xbf16, a, 4>
func.func @rows(%out: memref<?x128xf32>, %max: memref<?xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f32
  warp.kernel @step blocks(%x, %y, %z) in (%c1, %c1, %c1) warps(4) {
    %K = warp.alloc : !tile
    %Q = warp.alloc : !tile
    %z0 = warp.splat %zero : !s
    %z1 = warp.splat %zero : !warp.frag<64x128xf32, acc, 4>
    %s = warp.mma mma_sync %Q, %K, %z0 transpose_b : !tile, !tile, !s
    %m = warp.reduce <max> %s : !s -> !warp.frag<64x1xf32, acc, 4>
    warp.store %m, %max[%c0] rows : !warp.frag<64x1xf32, acc, 4>, memref<?xf32>
    %p = warp.cast truncf %s : !s to !warp.frag<64x64xbf16, acc, 4>
    %pa = warp.convert %p : !warp.frag<64x64xbf16, acc, 4> -> !a
    %o = warp.mma mma_sync %pa, %K, %z1 : !a, !tile, !warp.frag<64x128xf32, acc, 4>
    warp.store %o, %out[%c0, %c0] : !warp.frag<64x128xf32, acc, 4>, memref<?x128xf32>
  }
  return
}

// -----

// A warp has 32x32 already.
// CHECK-LABEL: @square
// CHECK-NOT: acc, {{[0-9]+}}x
// CHECK: warp.mma
!s = !warp.frag<128x32xf32, acc, 4>
func.func @square(%out: memref<?x32xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f32
  warp.kernel @step blocks(%x, %y, %z) in (%c1, %c1, %c1) warps(4) {
    %K = warp.alloc : !warp.slot<32x64xbf16>
    %Q = warp.alloc : !warp.slot<128x64xbf16>
    %z0 = warp.splat %zero : !s
    %s = warp.mma mma_sync %Q, %K, %z0 transpose_b : !warp.slot<128x64xbf16>, !warp.slot<32x64xbf16>, !s
    warp.store %s, %out[%c0, %c0] : !s, memref<?x32xf32>
  }
  return
}
