// RUN: attn-opt %s --convert-tile-to-warp | FileCheck %s

#mk = affine_map<(m, n, k) -> (m, k)>
#nk = affine_map<(m, n, k) -> (n, k)>
#mn = affine_map<(m, n, k) -> (m, n)>
#plan = #attn.plan<target = sm_80, block_q = 64, block_k = 32, warps = 4>
!view = memref<?x?x?x64xf32, strided<[?, ?, ?, 1], offset: ?>>

// The function's numerics say how f32 is multiplied.
// CHECK-LABEL: @multiply_adds
// CHECK: warp.mma fma_f32 %{{.*}}, %{{.*}}, %{{.*}} transpose_b : !warp.slot<64x64xf32>
func.func @multiply_adds(%q: !view, %k: !view, %n: index)
    attributes {attn.numerics = #attn.numerics<f32_products = ieee>} {
  %c0 = arith.constant 0 : index
  tile.kernel @multiply_adds plan(#plan) grid(%b, %h, %x) in (%n, %n, %n) {
    %qt = tile.load %q[%b, %h, %x, %c0] : !view, vector<64x64xf32>
    %kt = tile.load %k[%b, %h, %x, %c0] : !view, vector<32x64xf32>
    %zs = arith.constant dense<0.0> : vector<64x32xf32>
    %s = vector.contract {indexing_maps = [#mk, #nk, #mn], iterator_types = ["parallel", "parallel", "reduction"], kind = #vector.kind<add>} %qt, %kt, %zs : vector<64x64xf32>, vector<32x64xf32> into vector<64x32xf32>
    tile.store %s, %k[%b, %h, %x, %c0] : vector<64x32xf32>, !view
  }
  return
}

// CHECK-LABEL: @tensor_cores
// CHECK: warp.mma mma_tf32 %{{.*}}, %{{.*}}, %{{.*}} transpose_b : !warp.slot<64x64xf32>
func.func @tensor_cores(%q: !view, %k: !view, %n: index)
    attributes {attn.numerics = #attn.numerics<fast_math = false>} {
  %c0 = arith.constant 0 : index
  tile.kernel @tensor_cores plan(#plan) grid(%b, %h, %x) in (%n, %n, %n) {
    %qt = tile.load %q[%b, %h, %x, %c0] : !view, vector<64x64xf32>
    %kt = tile.load %k[%b, %h, %x, %c0] : !view, vector<32x64xf32>
    %zs = arith.constant dense<0.0> : vector<64x32xf32>
    %s = vector.contract {indexing_maps = [#mk, #nk, #mn], iterator_types = ["parallel", "parallel", "reduction"], kind = #vector.kind<add>} %qt, %kt, %zs : vector<64x64xf32>, vector<32x64xf32> into vector<64x32xf32>
    tile.store %s, %k[%b, %h, %x, %c0] : vector<64x32xf32>, !view
  }
  return
}

// Products that ask for it alone.
// CHECK-LABEL: @one_of_two
// CHECK: warp.mma mma_tf32
// CHECK: warp.mma fma_f32
// CHECK-NOT: warp.mma
func.func @one_of_two(%q: !view, %k: !view, %n: index) {
  %c0 = arith.constant 0 : index
  tile.kernel @one_of_two plan(#plan) grid(%b, %h, %x) in (%n, %n, %n) {
    %qt = tile.load %q[%b, %h, %x, %c0] : !view, vector<64x64xf32>
    %kt = tile.load %k[%b, %h, %x, %c0] : !view, vector<32x64xf32>
    %zs = arith.constant dense<0.0> : vector<64x32xf32>
    %s = vector.contract {indexing_maps = [#mk, #nk, #mn], iterator_types = ["parallel", "parallel", "reduction"], kind = #vector.kind<add>} %qt, %kt, %zs : vector<64x64xf32>, vector<32x64xf32> into vector<64x32xf32>
    tile.store %s, %k[%b, %h, %x, %c0] : vector<64x32xf32>, !view
    %t = vector.contract {indexing_maps = [#mk, #nk, #mn], iterator_types = ["parallel", "parallel", "reduction"], kind = #vector.kind<add>, tile.ieee} %qt, %kt, %zs : vector<64x64xf32>, vector<32x64xf32> into vector<64x32xf32>
    tile.store %t, %q[%b, %h, %x, %c0] : vector<64x32xf32>, !view
  }
  return
}
