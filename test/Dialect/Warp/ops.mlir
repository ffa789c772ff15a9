// RUN: attn-opt %s --verify-roundtrip | FileCheck %s

!view = memref<?x?x?x128xbf16, strided<[?, ?, ?, 1], offset: ?>>
!rows = memref<?x?x?xf32, strided<[?, ?, 1], offset: ?>>
!q = !warp.frag<128x128xbf16, a, 4>
!s = !warp.frag<128x64xf32, acc, 4>
!o = !warp.frag<128x128xf32, acc, 4>
!row = !warp.frag<128x1xf32, acc, 4>
!lanes = !warp.frag<128x4xf32, acc, 4>

// CHECK-LABEL: @kernel
func.func @kernel(%n: index, %q: !view, %k: !view, %out: !view, %lse: !rows,
                  %bias: memref<?x?xf32>, %ends: memref<?x?xi32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %true = arith.constant true
  // CHECK: warp.kernel @{{.*}} blocks(%[[X:.*]], %[[H:.*]], %[[B:.*]]) in (%{{.*}}, %{{.*}}, %{{.*}}) warps(4) shared(65536) {
  warp.kernel @kernel blocks(%x, %h, %b) in (%n, %n, %n) warps(4) shared(65536) {
    // CHECK: warp.alloc at 0 : <128x128xbf16>
    %slot = warp.alloc at 0 : !warp.slot<128x128xbf16>
    // CHECK: warp.ring at 32768 : <2, 64x128xbf16>
    %ring = warp.ring at 32768 : !warp.ring<2, 64x128xbf16>
    // CHECK: warp.copy %{{.*}}[%[[B]], %[[H]], %[[X]], %{{.*}}] to %{{.*}} : memref<{{.*}}>, <128x128xbf16>
    warp.copy %q[%b, %h, %x, %c0] to %slot : !view, !warp.slot<128x128xbf16>
    // CHECK: warp.copy_async %{{.*}}[%{{.*}}] to %{{.*}}[%{{.*}}] : memref
    warp.copy_async %k[%b, %h, %c0, %c0] to %ring[%c0] : !view, !warp.ring<2, 64x128xbf16>
    // CHECK: warp.copy_async %{{.*}}[%{{.*}}] to %{{.*}}[%{{.*}}] when %{{.*}} : memref
    warp.copy_async %k[%b, %h, %c1, %c0] to %ring[%c1] when %true : !view, !warp.ring<2, 64x128xbf16>
    // CHECK: warp.load_frag %{{.*}} : <128x128xbf16> -> <128x128xbf16, a, 4>
    %qf = warp.load_frag %slot : !warp.slot<128x128xbf16> -> !q
    // CHECK: warp.await %{{.*}}[%{{.*}}] : <2, 64x128xbf16> -> <64x128xbf16>
    %kt = warp.await %ring[%c0] : !warp.ring<2, 64x128xbf16> -> !warp.slot<64x128xbf16>
    %zero = arith.constant 0.0 : f32
    // CHECK: warp.splat %{{.*}} : <128x64xf32, acc, 4>
    %s0 = warp.splat %zero : !s
    // CHECK: warp.mma mma_sync %{{.*}}, %{{.*}}, %{{.*}} transpose_b : !warp.frag<128x128xbf16, a, 4>, <64x128xbf16>, <128x64xf32, acc, 4>
    %s = warp.mma mma_sync %qf, %kt, %s0 transpose_b : !q, !warp.slot<64x128xbf16>, !s
    // CHECK: warp.mma mma_sync %{{.*}}, %{{.*}}, %{{.*}} transpose_b : !warp.slot<128x128xbf16>, <64x128xbf16>
    %s2 = warp.mma mma_sync %slot, %kt, %s transpose_b : !warp.slot<128x128xbf16>, !warp.slot<64x128xbf16>, !s
    // CHECK: warp.any %{{.*}} : <128x1xi1, acc, 4>
    %flags = warp.splat %true : !warp.frag<128x1xi1, acc, 4>
    %any = warp.any %flags : !warp.frag<128x1xi1, acc, 4>
    // CHECK: warp.mask_word %{{.*}}
    // CHECK: warp.coords %{{.*}}, 0 : <128x1xi32, acc, 4>
    %i0 = arith.constant 0 : i32
    %word = warp.mask_word %i0
    %rows = warp.coords %i0, 0 : !warp.frag<128x1xi32, acc, 4>
    %cols = warp.coords %i0, 1 : !warp.frag<1x64xi32, acc, 4>
    // CHECK: warp.gather %{{.*}}[%{{.*}}, %{{.*}}] : memref<?x?xf32>, (!warp.frag<128x1xi32, acc, 4>, !warp.frag<1x64xi32, acc, 4>) -> !warp.frag<128x64xf32, acc, 4>
    %g = warp.gather %bias[%rows, %cols] : memref<?x?xf32>, (!warp.frag<128x1xi32, acc, 4>, !warp.frag<1x64xi32, acc, 4>) -> !s
    // CHECK: warp.gather %{{.*}}[%{{.*}}, %{{.*}}] : memref<?x?xf32>, (i32, !warp.frag<1x64xi32, acc, 4>) -> !warp.frag<1x64xf32, acc, 4>
    %g1 = warp.gather %bias[%i0, %cols] : memref<?x?xf32>, (i32, !warp.frag<1x64xi32, acc, 4>) -> !warp.frag<1x64xf32, acc, 4>
    // CHECK: warp.dot_rows %{{.*}}, %{{.*}}[%[[B]], %[[H]], %{{.*}}] : memref<{{.*}}>, memref<{{.*}}> -> <128x4xf32, acc, 4>
    %dots = warp.dot_rows %q, %k[%b, %h, %c0] : !view, !view -> !lanes
    // CHECK: warp.search %{{.*}}[%{{.*}}], %{{.*}} : memref<?x?xi32>, !warp.frag<128x1xi32, acc, 4>, (i32) -> !warp.frag<128x1xi32, acc, 4>
    %found = warp.search %ends[%i0], %rows : memref<?x?xi32>, !warp.frag<128x1xi32, acc, 4>, (i32) -> !warp.frag<128x1xi32, acc, 4>
    // CHECK: warp.search %{{.*}}[%{{.*}}], %{{.*}} : memref<?x?xi32>, i32, (i32) -> i32
    %one = warp.search %ends[%i0], %i0 : memref<?x?xi32>, i32, (i32) -> i32
    // Upstream arithmetic on fragments.
    // CHECK: arith.addf %{{.*}}, %{{.*}} : !warp.frag<128x64xf32, acc, 4>
    %s3 = arith.addf %s2, %g : !s
    // CHECK: math.exp2 %{{.*}} : !warp.frag<128x64xf32, acc, 4>
    %p = math.exp2 %s3 : !s
    // CHECK: warp.broadcast %{{.*}} : <128x1xi32, acc, 4> -> <128x64xi32, acc, 4>
    %ri = warp.broadcast %rows : !warp.frag<128x1xi32, acc, 4> -> !warp.frag<128x64xi32, acc, 4>
    %ci = warp.broadcast %cols : !warp.frag<1x64xi32, acc, 4> -> !warp.frag<128x64xi32, acc, 4>
    // CHECK: arith.cmpi sge, %{{.*}}, %{{.*}} : !warp.frag<128x64xi32, acc, 4>
    %visible = arith.cmpi sge, %ri, %ci : !warp.frag<128x64xi32, acc, 4>
    // CHECK: warp.select %{{.*}}, %{{.*}}, %{{.*}} : <128x64xi1, acc, 4>, <128x64xf32, acc, 4>
    %p2 = warp.select %visible, %p, %s0 : !warp.frag<128x64xi1, acc, 4>, !s
    // CHECK: warp.reduce <max> %{{.*}} : <128x64xf32, acc, 4> -> <128x1xf32, acc, 4>
    %m = warp.reduce <max> %p2 : !s -> !row
    // CHECK: warp.reduce <add> %{{.*}} : <128x64xf32, acc, 4> -> <128x4xf32, acc, 4>
    %part = warp.reduce <add> %p2 : !s -> !lanes
    // CHECK: warp.reduce <add> %{{.*}} : <128x4xf32, acc, 4> -> <128x1xf32, acc, 4>
    %sum = warp.reduce <add> %part : !lanes -> !row
    // CHECK: warp.broadcast %{{.*}} : <128x1xf32, acc, 4> -> <128x4xf32, acc, 4>
    %spread = warp.broadcast %m : !row -> !lanes
    // CHECK: warp.cast truncf %{{.*}} : <128x64xf32, acc, 4> to <128x64xbf16, acc, 4>
    %pt = warp.cast truncf %p2 : !s to !warp.frag<128x64xbf16, acc, 4>
    // CHECK: warp.convert %{{.*}} : <128x64xbf16, acc, 4> -> <128x64xbf16, a, 4>
    %pa = warp.convert %pt : !warp.frag<128x64xbf16, acc, 4> -> !warp.frag<128x64xbf16, a, 4>
    %o0 = warp.splat %zero : !o
    // CHECK: warp.mma mma_sync %{{.*}}, %{{.*}}, %{{.*}} : !warp.frag<128x64xbf16, a, 4>, <64x128xbf16>, <128x128xf32, acc, 4>
    %o = warp.mma mma_sync %pa, %kt, %o0 : !warp.frag<128x64xbf16, a, 4>, !warp.slot<64x128xbf16>, !o
    // CHECK: warp.release %{{.*}} : <64x128xbf16>
    warp.release %kt : !warp.slot<64x128xbf16>
    %ot = warp.cast truncf %o : !o to !warp.frag<128x128xbf16, acc, 4>
    // CHECK: warp.store %{{.*}}, %{{.*}}[%{{.*}}] : <128x128xbf16, acc, 4>, memref
    warp.store %ot, %out[%b, %h, %x, %c0] : !warp.frag<128x128xbf16, acc, 4>, !view
    // CHECK: warp.store %{{.*}}, %{{.*}}[%{{.*}}] rows : <128x1xf32, acc, 4>, memref
    warp.store %sum, %lse[%b, %h, %x] rows : !row, !rows
    // CHECK: warp.all {
    // CHECK-NEXT: ^bb0(%[[LANE:.*]]: index):
    // CHECK-NEXT: %[[IS_BEFORE:.*]] = arith.cmpi ult, %[[LANE]], %[[X]]
    // CHECK-NEXT: warp.yield %[[IS_BEFORE]] : i1
    %all = warp.all {
    ^bb0(%lane: index):
      %is_before = arith.cmpi ult, %lane, %x : index
      warp.yield %is_before : i1
    }
    // CHECK: %{{.*}}:2 = warp.group_bounds[%{{.*}}, %{{.*}}) of 64 {
    // CHECK-NEXT: ^bb0(%[[ROW:.*]]: index):
    // CHECK-NEXT: warp.yield %{{.*}}, %[[ROW]] : index, index
    %first, %end = warp.group_bounds [%c0, %x) of 64 {
    ^bb0(%row: index):
      warp.yield %c0, %row : index, index
    }
    // CHECK: %{{.*}}:4 = warp.group_bounds[%{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}) of 64 {
    %bounds:4 = warp.group_bounds [%c0, %c0, %x, %x) of 64 {
    ^bb0(%row: index):
      warp.yield %c0, %c0, %row, %x : index, index, index, index
    }
  }
  return
}

func.func @one_warp(%n: index, %i: i32) {
  warp.kernel @one_warp blocks(%x, %h, %b) in (%n, %n, %n) warps(1) {
    %ids = warp.splat %i : !warp.frag<16x1xi32, acc, 1>
    // CHECK: warp.extreme <least> %{{.*}} : <16x1xi32, acc, 1>
    %least = warp.extreme <least> %ids : !warp.frag<16x1xi32, acc, 1>
    // CHECK: warp.extreme <greatest> %{{.*}} : <16x1xi32, acc, 1>
    %greatest = warp.extreme <greatest> %ids : !warp.frag<16x1xi32, acc, 1>
  }
  return
}
