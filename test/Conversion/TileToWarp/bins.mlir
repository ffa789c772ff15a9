// Bins lie in a slot that is cleared where they stood.
//
// RUN: attn-opt %s --convert-tile-to-warp | FileCheck %s

#plan = #attn.plan<target = sm_80, block_q = 64, block_k = 64, warps = 4>
#wide = #attn.plan<target = sm_80, block_q = 128, block_k = 64, warps = 4>

// A column for each of 128 lanes; a row for each bin, and one more.
// CHECK-LABEL: warp.kernel @table
// CHECK: %[[SLOT:.*]] = warp.alloc : <32x128xf32>
// CHECK: warp.clear_bins %[[SLOT]]
// CHECK: %[[INDEX:.*]] = warp.gather
// CHECK: warp.scatter_add %{{.*}}, %[[SLOT]][%[[INDEX]]] of 24 : <64x64xf32, acc, 4>, <32x128xf32>, !warp.frag<1x64xi32, acc, 4>
// CHECK: warp.store_bins %[[SLOT]] of 24, %{{.*}} : <32x128xf32>, memref<?x20xf32>
//
// A lane has elements in four rows.
// CHECK-LABEL: warp.kernel @rows
// CHECK: %[[SLOT:.*]] = warp.alloc : <104x128xf32>
// CHECK: warp.clear_bins %[[SLOT]]
// CHECK: warp.scatter_add %{{.*}}, %[[SLOT]][%{{.*}}] of 24 rows 128 :
// CHECK: warp.store_bins %[[SLOT]] of 24 rows 128,
func.func @bins(%numbers: memref<?xi32>, %out: memref<?x20xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %z = arith.constant 0 : i32
  tile.kernel @table plan(#plan) grid(%b, %h, %q) in (%n, %n, %n) {
    %ones = arith.constant dense<1.0> : vector<64x64xf32>
    %bins = tile.bins : memref<24xf32>
    %columns = tile.coords %z, 1 : vector<1x64xi32>
    %index = tile.gather %numbers[%columns] : memref<?xi32>, (vector<1x64xi32>) -> vector<1x64xi32>
    tile.scatter_add %ones, %bins[%index] : vector<64x64xf32>, memref<24xf32>, vector<1x64xi32>
    tile.store_bins %bins, %out[%q, %c0] : memref<24xf32>, memref<?x20xf32>
  }
  tile.kernel @rows plan(#wide) grid(%b, %h, %q) in (%n, %n, %n) {
    %ones = arith.constant dense<1.0> : vector<128x64xf32>
    %bins = tile.bins : memref<128x24xf32>
    %columns = tile.coords %z, 1 : vector<1x64xi32>
    tile.scatter_add %ones, %bins[%columns] : vector<128x64xf32>, memref<128x24xf32>, vector<1x64xi32>
    tile.store_bins %bins, %out[%q, %c0] : memref<128x24xf32>, memref<?x20xf32>
  }
  return
}
