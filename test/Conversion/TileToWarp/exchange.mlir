// Products that read what other warps computed: it goes through a slot. Where
// the rows of a result are too few for the warps, these share its columns.
//
// RUN: attn-opt %s --convert-tile-to-warp | FileCheck %s
// RUN: attn-opt %s --convert-tile-to-warp --warp-specialize | FileCheck %s --check-prefix=ROLES

// Where warps share rows, left operands of all products go through slots of their
// own, written one after the other; what is short is spread along the columns.
// GRID-LABEL: @grid(
// GRID: %[[D:.*]] = warp.alloc : <64x32xf32>
// GRID: %[[P:.*]] = warp.alloc : <64x32xf32>
// GRID: %[[S:.*]] = warp.mma mma_tf32 {{.*}} transpose_b : {{.*}}, <64x32xf32, acc, 4x2>
// GRID: %[[E:.*]] = math.exp2 %[[S]]
// GRID-NEXT: warp.store_frag %[[S]] to %[[P]]
// GRID-NEXT: warp.store_frag %[[E]] to %[[D]]
// GRID-NOT: warp.convert
// GRID: warp.mma mma_tf32 %[[P]], {{.*}} : {{.*}}, <64x64xf32, acc, 4x2>
// GRID: warp.mma mma_tf32 %[[D]], {{.*}} transpose_a : {{.*}}, <32x64xf32, acc, 8>
// GRID: warp.mma mma_tf32 %[[D]], {{.*}} : {{.*}}, <64x64xf32, acc, 4x2>
// RUN: attn-opt %S/Inputs/exchange-grid.mlir --convert-tile-to-warp | FileCheck %s --check-prefix=GRID

#plan = #attn.plan<target = sm_90a, block_q = 128, block_k = 64, warps = 8>
#mk = affine_map<(m, n, k) -> (m, k)>
#km = affine_map<(m, n, k) -> (k, m)>
#nk = affine_map<(m, n, k) -> (n, k)>
#kn = affine_map<(m, n, k) -> (k, n)>
#mn = affine_map<(m, n, k) -> (m, n)>
!view = memref<?x?x?x64xbf16, strided<[?, ?, ?, 1], offset: ?>>
!sums = memref<?x?x?x4096xf32>

// CHECK-LABEL: @add(
// ROLES-LABEL: @add(
func.func @add(%q: !view, %k: !view, %sums: !sums, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  tile.kernel @add plan(#plan) grid(%b, %h, %x) in (%n, %n, %n) {
    // CHECK: %[[S:.*]] = warp.alloc : <128x64xbf16, panels<128>>
    // CHECK: %[[K:.*]] = warp.alloc : <128x64xbf16, panels<128>>
    // ROLES: %[[S:.*]] = warp.ring fills(@softmax) drains(@softmax) : <1, 128x64xbf16, panels<128>>
    %kt = tile.load %k[%b, %h, %x, %c0] : !view, vector<128x64xbf16>
    %zs = arith.constant dense<0.0> : vector<128x64xf32>
    %zq = arith.constant dense<0.0> : vector<64x64xf32>
    scf.for %i = %c0 to %n step %c1 {
      %qt = tile.load %q[%b, %h, %i, %c0] : !view, vector<64x64xbf16>
      %s = vector.contract {indexing_maps = [#mk, #nk, #mn], iterator_types = ["parallel", "parallel", "reduction"], kind = #vector.kind<add>} %kt, %qt, %zs : vector<128x64xbf16>, vector<64x64xbf16> into vector<128x64xf32>
      // CHECK: %[[P:.*]] = warp.cast truncf {{.*}} to <128x64xbf16, acc, 8>
      %p = arith.truncf %s : vector<128x64xf32> to vector<128x64xbf16>
      // CHECK: warp.store_frag %[[P]] to %[[S]]
      // CHECK: %[[D:.*]] = warp.mma wgmma %[[S]], %[[K]], %{{.*}} transpose_a : {{.*}}, <64x64xf32, acc, 8>
      // ROLES: warp.store_frag %{{.*}} to %[[S]][%[[ITEM:.*]]] :
      // ROLES: %[[READ:.*]] = warp.await %[[S]][%[[ITEM]]]
      // ROLES: warp.mma wgmma %[[READ]], %{{.*}} transpose_a
      // ROLES: warp.release %[[READ]]
      %d = vector.contract {indexing_maps = [#km, #kn, #mn], iterator_types = ["parallel", "parallel", "reduction"], kind = #vector.kind<add>} %p, %kt, %zq : vector<128x64xbf16>, vector<128x64xbf16> into vector<64x64xf32>
      // CHECK: warp.store %[[D]], %{{.*}} accumulate packed
      tile.store %d, %sums[%b, %h, %i, %c0] accumulate packed : vector<64x64xf32>, !sums
      // A right operand that was computed goes the same way, and in the same
      // slot.
      // CHECK: warp.store_frag %[[P]] to %[[S]]
      // CHECK: warp.mma wgmma %[[K]], %[[S]], %{{.*}} transpose_a
      %e = vector.contract {indexing_maps = [#km, #kn, #mn], iterator_types = ["parallel", "parallel", "reduction"], kind = #vector.kind<add>} %kt, %p, %zq : vector<128x64xbf16>, vector<128x64xbf16> into vector<64x64xf32>
      tile.store %e, %sums[%b, %h, %i, %c0] accumulate packed : vector<64x64xf32>, !sums
    }
  }
  // CHECK: warp.kernel @round
  tile.kernel @round plan(#plan) grid(%b, %h, %x) in (%n, %n, %n) {
    // CHECK: %[[SUM:.*]] = warp.load %{{.*}} packed : memref<?x?x?x4096xf32> -> <64x64xf32, acc, 8>
    %sum = tile.load %sums[%b, %h, %x, %c0] packed : !sums, vector<64x64xf32>
    %half = arith.truncf %sum : vector<64x64xf32> to vector<64x64xbf16>
    tile.store %half, %q[%b, %h, %x, %c0] : vector<64x64xbf16>, !view
  }
  return
}
