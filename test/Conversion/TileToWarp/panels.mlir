// RUN: attn-opt %s -split-input-file -verify-diagnostics --convert-tile-to-warp | FileCheck %s

#mk = affine_map<(m, n, k) -> (m, k)>
#nk = affine_map<(m, n, k) -> (n, k)>
#kn = affine_map<(m, n, k) -> (k, n)>
#mn = affine_map<(m, n, k) -> (m, n)>
#plan = #attn.plan<target = sm_90a, block_q = 128, block_k = 96, warps = 8, stages = 2>
!q = memref<?x?x?x80xbf16, strided<[?, ?, ?, 1], offset: ?>>
!v = memref<?x?x?x128xbf16, strided<[?, ?, ?, 1], offset: ?>>

// Tiles of 16-bit elements lie in panels: 128 bytes if they divide the row, or
// 64. The weights of a block may be carried to the next.
// CHECK-LABEL: @kernel(
func.func @kernel(%q: !q, %k: !q, %v: !v, %out: !v, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  // CHECK: warp.kernel {{.*}} warps(8) stages(2) {
  tile.kernel @kernel plan(#plan) grid(%b, %h, %x) in (%n, %n, %n) {
    // CHECK-NEXT: %[[QS:.*]] = warp.alloc : <128x80xbf16, panels<64>>
    // CHECK-NEXT: %[[K0:.*]] = warp.alloc : <96x80xbf16, panels<64>>
    // CHECK-NEXT: %[[KS:.*]] = warp.alloc : <96x80xbf16, panels<64>>
    // CHECK-NEXT: %[[VS:.*]] = warp.alloc : <96x128xbf16, panels<128>>
    // CHECK-NEXT: %[[VL:.*]] = warp.alloc : <96x128xbf16, panels<128>>
    %zs = arith.constant dense<0.0> : vector<128x96xf32>
    %zo = arith.constant dense<0.0> : vector<128x128xf32>
    %qt = tile.load %q[%b, %h, %x, %c0] : !q, vector<128x80xbf16>
    %k0 = tile.load %k[%b, %h, %c0, %c0] : !q, vector<96x80xbf16>
    // CHECK: %[[S0:.*]] = warp.mma wgmma %[[QS]], %[[K0]], %{{.*}} transpose_b
    %s0 = vector.contract {indexing_maps = [#mk, #nk, #mn], iterator_types = ["parallel", "parallel", "reduction"], kind = #vector.kind<add>} %qt, %k0, %zs : vector<128x80xbf16>, vector<96x80xbf16> into vector<128x96xf32>
    // CHECK: %[[P0:.*]] = warp.cast truncf %[[S0]]
    %p0 = arith.truncf %s0 : vector<128x96xf32> to vector<128x96xbf16>
    // CHECK: scf.for {{.*}} iter_args(%[[O:.*]] = %{{.*}}, %[[P:.*]] = %[[P0]]) -> (!warp.frag<128x128xf32, acc, 8>, !warp.frag<128x96xbf16, acc, 8>)
    %r:2 = scf.for %i = %c1 to %n step %c1 iter_args(%o = %zo, %p = %p0) -> (vector<128x128xf32>, vector<128x96xbf16>) {
      %kt = tile.load %k[%b, %h, %i, %c0] : !q, vector<96x80xbf16>
      // CHECK: %[[S:.*]] = warp.mma wgmma %[[QS]], %[[KS]], %{{.*}} transpose_b
      %s = vector.contract {indexing_maps = [#mk, #nk, #mn], iterator_types = ["parallel", "parallel", "reduction"], kind = #vector.kind<add>} %qt, %kt, %zs : vector<128x80xbf16>, vector<96x80xbf16> into vector<128x96xf32>
      %before = arith.subi %i, %c1 : index
      %vt = tile.load %v[%b, %h, %before, %c0] : !v, vector<96x128xbf16>
      // CHECK: %[[A:.*]] = warp.convert %[[P]] : <128x96xbf16, acc, 8> -> <128x96xbf16, a, 8>
      // CHECK: warp.mma wgmma %[[A]], %[[VS]], %[[O]]
      %o1 = vector.contract {indexing_maps = [#mk, #kn, #mn], iterator_types = ["parallel", "parallel", "reduction"], kind = #vector.kind<add>} %p, %vt, %o : vector<128x96xbf16>, vector<96x128xbf16> into vector<128x128xf32>
      %p1 = arith.truncf %s : vector<128x96xf32> to vector<128x96xbf16>
      scf.yield %o1, %p1 : vector<128x128xf32>, vector<128x96xbf16>
    }
    %vl = tile.load %v[%b, %h, %n, %c0] : !v, vector<96x128xbf16>
    // CHECK: warp.mma wgmma %{{.*}}, %[[VL]], %{{.*}}
    %o2 = vector.contract {indexing_maps = [#mk, #kn, #mn], iterator_types = ["parallel", "parallel", "reduction"], kind = #vector.kind<add>} %r#1, %vl, %r#0 : vector<128x96xbf16>, vector<96x128xbf16> into vector<128x128xf32>
    %ob = arith.truncf %o2 : vector<128x128xf32> to vector<128x128xbf16>
    tile.store %ob, %out[%b, %h, %x, %c0] : vector<128x128xbf16>, !v
  }
  return
}

// The least and the greatest of what one warp holds.
// CHECK-LABEL: @extreme(
func.func @extreme(%ids: memref<?xi32>, %out: memref<?xi32>, %n: index, %acc: i32) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %i0 = arith.constant 0 : i32
  tile.kernel @extreme plan(#attn.plan<target = sm_80, block_q = 64, block_k = 32, warps = 1>) grid(%b, %h, %x) in (%n, %n, %n) {
    %rows = tile.coords %i0, 0 : vector<16x1xi32>
    %each = tile.gather %ids[%rows] : memref<?xi32>, (vector<16x1xi32>) -> vector<16x1xi32>
    // CHECK: %[[LEAST:.*]] = warp.extreme <least> %[[IDS:.*]] : <16x1xi32, acc, 1>
    // CHECK: arith.minsi %[[LEAST]], %{{.*}} : i32
    %least = vector.multi_reduction <minsi>, %each, %acc [0, 1] : vector<16x1xi32> to i32
    // CHECK: %[[GREATEST:.*]] = warp.extreme <greatest> %[[IDS]] : <16x1xi32, acc, 1>
    // CHECK: arith.maxsi %[[GREATEST]], %{{.*}} : i32
    %greatest = vector.multi_reduction <maxsi>, %each, %acc [0, 1] : vector<16x1xi32> to i32
    memref.store %least, %out[%c0] : memref<?xi32>
    memref.store %greatest, %out[%c1] : memref<?xi32>
  }
  return
}

// Whether any row needs something is answered by each warp for its rows.
// CHECK-LABEL: @vote(
func.func @vote(%out: memref<?x?x?x128xf32, strided<[?, ?, ?, 1], offset: ?>>, %n: index, %f: f32) {
  %c0 = arith.constant 0 : index
  %false = arith.constant false
  tile.kernel @vote plan(#plan) grid(%b, %h, %x) in (%n, %n, %n) {
    %l = vector.broadcast %f : f32 to vector<128x1xf32>
    // CHECK: %[[M:.*]] = arith.cmpf ult, %{{.*}}, %{{.*}} : !warp.frag<128x1xf32, acc, 8>
    %large = arith.cmpf ult, %l, %l : vector<128x1xf32>
    // CHECK: %[[ANY:.*]] = warp.any %[[M]] : <128x1xi1, acc, 8>
    %any = vector.multi_reduction <or>, %large, %false [0, 1] : vector<128x1xi1> to i1
    // CHECK: scf.if %[[ANY]] -> (!warp.frag<128x1xf32, acc, 8>)
    %r = scf.if %any -> (vector<128x1xf32>) {
      %e = math.exp2 %l : vector<128x1xf32>
      scf.yield %e : vector<128x1xf32>
    } else {
      scf.yield %l : vector<128x1xf32>
    }
    %o = vector.broadcast %r : vector<128x1xf32> to vector<128x128xf32>
    tile.store %o, %out[%b, %h, %x, %c0] : vector<128x128xf32>, memref<?x?x?x128xf32, strided<[?, ?, ?, 1], offset: ?>>
  }
  return
}

// -----

#mk = affine_map<(m, n, k) -> (m, k)>
#nk = affine_map<(m, n, k) -> (n, k)>
#mn = affine_map<(m, n, k) -> (m, n)>
#plan = #attn.plan<target = sm_90a, block_q = 64, block_k = 32, warps = 4>
!view = memref<?x?x?x64xf32, strided<[?, ?, ?, 1], offset: ?>>

// Those of f32 do not: the instruction would want the values transposed.
// CHECK-LABEL: @f32(
func.func @f32(%q: !view, %k: !view, %out: !view, %n: index) {
  %c0 = arith.constant 0 : index
  tile.kernel @f32 plan(#plan) grid(%b, %h, %x) in (%n, %n, %n) {
    // CHECK: warp.alloc : <64x64xf32>
    // CHECK-NEXT: warp.alloc : <32x64xf32>
    %qt = tile.load %q[%b, %h, %x, %c0] : !view, vector<64x64xf32>
    %kt = tile.load %k[%b, %h, %x, %c0] : !view, vector<32x64xf32>
    %zs = arith.constant dense<0.0> : vector<64x32xf32>
    %s = vector.contract {indexing_maps = [#mk, #nk, #mn], iterator_types = ["parallel", "parallel", "reduction"], kind = #vector.kind<add>} %qt, %kt, %zs : vector<64x64xf32>, vector<32x64xf32> into vector<64x32xf32>
    tile.store %s, %out[%b, %h, %x, %c0] : vector<64x32xf32>, !view
  }
  return
}

// -----

#plan = #attn.plan<target = sm_90a, block_q = 96, block_k = 32, warps = 6>

#mk = affine_map<(m, n, k) -> (m, k)>
#nk = affine_map<(m, n, k) -> (n, k)>
#mn = affine_map<(m, n, k) -> (m, n)>
!view = memref<?x?x?x64xbf16, strided<[?, ?, ?, 1], offset: ?>>

func.func @groups(%q: !view, %k: !view, %n: index) {
  %c0 = arith.constant 0 : index
  // expected-error@+1 {{'tile.kernel' op has a plan of 6 warps for products on sm_90a, expected groups of 4}}
  tile.kernel @groups plan(#plan) grid(%b, %h, %x) in (%n, %n, %n) {
    %qt = tile.load %q[%b, %h, %x, %c0] : !view, vector<96x64xbf16>
    %kt = tile.load %k[%b, %h, %x, %c0] : !view, vector<32x64xbf16>
    %zs = arith.constant dense<0.0> : vector<96x32xf32>
    %s = vector.contract {indexing_maps = [#mk, #nk, #mn], iterator_types = ["parallel", "parallel", "reduction"], kind = #vector.kind<add>} %qt, %kt, %zs : vector<96x64xbf16>, vector<32x64xbf16> into vector<96x32xf32>
  }
  return
}
