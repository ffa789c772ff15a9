// RUN: attn-opt %s --convert-tile-to-warp | FileCheck %s

#mk = affine_map<(m, n, k) -> (m, k)>
#nk = affine_map<(m, n, k) -> (n, k)>
#mn = affine_map<(m, n, k) -> (m, n)>
#plan = #attn.plan<target = sm_90a, block_q = 128, block_k = 64, warps = 8, stages = 2>
#wide = #attn.plan<target = sm_90a, block_q = 128, block_k = 128, warps = 8, stages = 4>
!q = memref<?x?x?x64xbf16, strided<[?, ?, ?, 1], offset: ?>>
!bias = memref<?x?x?xbf16, strided<[?, ?, 1], offset: ?>>

// A bias of each query and key is copied as tiles of keys are; in a tile of keys
// by queries its rows are columns.
// CHECK-LABEL: func.func @boxes(
// CHECK: warp.kernel
// CHECK: warp.alloc : <128x64xbf16, panels<128>>
// CHECK: scf.for %[[I:.*]] =
// CHECK: warp.copy %arg{{[0-9]+}}[%{{.*}}, %{{.*}}, %{{.*}}] to %[[S:.*]] : memref<?x?x?xbf16
// CHECK: %[[F:.*]] = warp.load_frag %[[S]] : <128x64xbf16, panels<128>> -> <128x64xbf16, acc, 8>
// CHECK: warp.cast extf %[[F]]
// CHECK: warp.copy %arg{{[0-9]+}}[{{.*}}] to %[[T:.*]] : memref<?x?x?xbf16
// CHECK: warp.load_frag %[[T]] transpose : <64x128xbf16, panels<128>> -> <128x64xbf16, acc, 8>
// CHECK-NOT: warp.gather
func.func @boxes(%q: !q, %k: !q, %bias: !bias {attn.aligned}, %other: !bias {attn.aligned}, %out: memref<?x64xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  tile.kernel @boxes plan(#plan) grid(%b, %h, %x) in (%n, %n, %n) {
    %z = arith.constant dense<0.0> : vector<128x64xf32>
    %head = arith.index_cast %h : index to i32
    %row = arith.index_cast %x : index to i32
    %rows = tile.coords %row, 0 : vector<128x1xi32>
    %qt = tile.load %q[%b, %h, %x, %c0] : !q, vector<128x64xbf16>
    %sum = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %z) -> (vector<128x64xf32>) {
      %kt = tile.load %k[%b, %h, %i, %c0] : !q, vector<64x64xbf16>
      %s = vector.contract {indexing_maps = [#mk, #nk, #mn], iterator_types = ["parallel", "parallel", "reduction"], kind = #vector.kind<add>} %qt, %kt, %z : vector<128x64xbf16>, vector<64x64xbf16> into vector<128x64xf32>
      %column = arith.index_cast %i : index to i32
      %columns = tile.coords %column, 1 : vector<1x64xi32>
      %g = tile.gather %bias[%head, %rows, %columns] : !bias, (i32, vector<128x1xi32>, vector<1x64xi32>) -> vector<128x64xbf16>
      %w = arith.extf %g : vector<128x64xbf16> to vector<128x64xf32>
      %t = tile.gather %other[%head, %columns, %rows] : !bias, (i32, vector<1x64xi32>, vector<128x1xi32>) -> vector<128x64xbf16>
      %u = arith.extf %t : vector<128x64xbf16> to vector<128x64xf32>
      %a = arith.addf %s, %w : vector<128x64xf32>
      %c = arith.addf %a, %u : vector<128x64xf32>
      %e = arith.addf %acc, %c : vector<128x64xf32>
      scf.yield %e : vector<128x64xf32>
    }
    tile.store %sum, %out[%x, %c0] : vector<128x64xf32>, memref<?x64xf32>
  }
  return
}

// Nothing is promised of the first tensor; the second is read at other places, too,
// the third twice; the fourth has more dimensions than a tensor map.
// CHECK-LABEL: func.func @others(
// CHECK: scf.for
// CHECK-COUNT-6: warp.gather
func.func @others(%q: !q, %k: !q, %bias: !bias, %other: !bias {attn.aligned}, %twice: !bias {attn.aligned}, %deep: memref<?x?x?x?x?xbf16, strided<[?, ?, ?, ?, 1], offset: ?>> {attn.aligned}, %out: memref<?x64xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  tile.kernel @others plan(#plan) grid(%b, %h, %x) in (%n, %n, %n) {
    %z = arith.constant dense<0.0> : vector<128x64xf32>
    %head = arith.index_cast %h : index to i32
    %row = arith.index_cast %x : index to i32
    %rows = tile.coords %row, 0 : vector<128x1xi32>
    %qt = tile.load %q[%b, %h, %x, %c0] : !q, vector<128x64xbf16>
    %sum = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %z) -> (vector<128x64xf32>) {
      %kt = tile.load %k[%b, %h, %i, %c0] : !q, vector<64x64xbf16>
      %s = vector.contract {indexing_maps = [#mk, #nk, #mn], iterator_types = ["parallel", "parallel", "reduction"], kind = #vector.kind<add>} %qt, %kt, %z : vector<128x64xbf16>, vector<64x64xbf16> into vector<128x64xf32>
      %column = arith.index_cast %i : index to i32
      %columns = tile.coords %column, 1 : vector<1x64xi32>
      %two = arith.constant dense<2> : vector<1x64xi32>
      %every = arith.muli %columns, %two : vector<1x64xi32>
      %g = tile.gather %bias[%head, %rows, %columns] : !bias, (i32, vector<128x1xi32>, vector<1x64xi32>) -> vector<128x64xbf16>
      %w = arith.extf %g : vector<128x64xbf16> to vector<128x64xf32>
      %t = tile.gather %other[%head, %rows, %every] : !bias, (i32, vector<128x1xi32>, vector<1x64xi32>) -> vector<128x64xbf16>
      %u = arith.extf %t : vector<128x64xbf16> to vector<128x64xf32>
      %l = tile.gather %other[%head, %rows, %columns] : !bias, (i32, vector<128x1xi32>, vector<1x64xi32>) -> vector<128x64xbf16>
      %m = arith.extf %l : vector<128x64xbf16> to vector<128x64xf32>
      %a = arith.addf %s, %w : vector<128x64xf32>
      %c = arith.addf %a, %u : vector<128x64xf32>
      %first = tile.gather %twice[%head, %rows, %columns] : !bias, (i32, vector<128x1xi32>, vector<1x64xi32>) -> vector<128x64xbf16>
      %second = tile.gather %twice[%row, %rows, %columns] : !bias, (i32, vector<128x1xi32>, vector<1x64xi32>) -> vector<128x64xbf16>
      %third = tile.gather %deep[%head, %row, %row, %rows, %columns] : memref<?x?x?x?x?xbf16, strided<[?, ?, ?, ?, 1], offset: ?>>, (i32, i32, i32, vector<128x1xi32>, vector<1x64xi32>) -> vector<128x64xbf16>
      %two0 = arith.addf %first, %second : vector<128x64xbf16>
      %both = arith.addf %two0, %third : vector<128x64xbf16>
      %wide = arith.extf %both : vector<128x64xbf16> to vector<128x64xf32>
      %d0 = arith.addf %c, %m : vector<128x64xf32>
      %d = arith.addf %d0, %wide : vector<128x64xf32>
      %e = arith.addf %acc, %d : vector<128x64xf32>
      scf.yield %e : vector<128x64xf32>
    }
    tile.store %sum, %out[%x, %c0] : vector<128x64xf32>, memref<?x64xf32>
  }
  return
}

// Four tiles of 128 x 128, beside as many of keys, are more than there is place for.
// CHECK-LABEL: func.func @full(
// CHECK: scf.for
// CHECK: warp.gather
func.func @full(%q: !q, %k: memref<?x?x?x128xbf16, strided<[?, ?, ?, 1], offset: ?>>, %p: memref<?x?x?x128xbf16, strided<[?, ?, ?, 1], offset: ?>>, %bias: !bias {attn.aligned}, %out: memref<?x128xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  tile.kernel @full plan(#wide) grid(%b, %h, %x) in (%n, %n, %n) {
    %z = arith.constant dense<0.0> : vector<128x128xf32>
    %head = arith.index_cast %h : index to i32
    %row = arith.index_cast %x : index to i32
    %rows = tile.coords %row, 0 : vector<128x1xi32>
    %qt = tile.load %p[%b, %h, %x, %c0] : memref<?x?x?x128xbf16, strided<[?, ?, ?, 1], offset: ?>>, vector<128x128xbf16>
    %sum = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %z) -> (vector<128x128xf32>) {
      %kt = tile.load %k[%b, %h, %i, %c0] : memref<?x?x?x128xbf16, strided<[?, ?, ?, 1], offset: ?>>, vector<128x128xbf16>
      %s = vector.contract {indexing_maps = [#mk, #nk, #mn], iterator_types = ["parallel", "parallel", "reduction"], kind = #vector.kind<add>} %qt, %kt, %z : vector<128x128xbf16>, vector<128x128xbf16> into vector<128x128xf32>
      %column = arith.index_cast %i : index to i32
      %columns = tile.coords %column, 1 : vector<1x128xi32>
      %g = tile.gather %bias[%head, %rows, %columns] : !bias, (i32, vector<128x1xi32>, vector<1x128xi32>) -> vector<128x128xbf16>
      %w = arith.extf %g : vector<128x128xbf16> to vector<128x128xf32>
      %a = arith.addf %s, %w : vector<128x128xf32>
      %e = arith.addf %acc, %a : vector<128x128xf32>
      scf.yield %e : vector<128x128xf32>
    }
    tile.store %sum, %out[%x, %c0] : vector<128x128xf32>, memref<?x128xf32>
  }
  return
}
