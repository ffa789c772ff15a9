// RUN: attn-opt %s --convert-tile-to-loops --canonicalize --cse | FileCheck %s

#plan = #attn.plan<target = cpu, block_q = 4, block_k = 8, warps = 2>

// Zeros, sums where the index is one of a bin, and one row of numbers: of the two
// that two warps would write the second has zeros.
// CHECK-LABEL: func @bins
// CHECK: %[[BINS:.*]] = memref.alloc() {{.*}}: memref<24xf32>
// CHECK: memref.store %cst, %[[BINS]]
// CHECK: %[[INSIDE:.*]] = arith.cmpi ult, %[[AT:.*]], %c24
// CHECK: scf.if %[[INSIDE]]
// CHECK-NEXT: %[[OLD:.*]] = memref.load %[[BINS]][%[[AT]]]
// CHECK-NEXT: %[[SUM:.*]] = arith.addf %[[OLD]],
// CHECK-NEXT: memref.store %[[SUM]], %[[BINS]][%[[AT]]]
// CHECK: scf.for %[[ROW:.*]] = %c0 to %c2
// CHECK: scf.if
// CHECK: %[[NUMBER:.*]] = memref.load %[[BINS]]
// CHECK: %[[IS:.*]] = arith.cmpi eq, %[[ROW]], %c0
// CHECK: %[[OWN:.*]] = arith.select %[[IS]], %[[NUMBER]], %cst
// CHECK: memref.store %[[OWN]], %arg0
func.func @bins(%out: memref<?x?xf32>, %x: memref<4x8xf32>, %numbers: memref<?xi32>, %n: index, %i: i32) {
  %c0 = arith.constant 0 : index
  tile.kernel @table plan(#plan) grid(%b, %h, %q) in (%n, %n, %n) {
    %bins = tile.bins : memref<24xf32>
    %t = tile.load %x[%c0, %c0] : memref<4x8xf32>, vector<4x8xf32>
    %keys = tile.coords %i, 1 : vector<1x8xi32>
    %index = tile.gather %numbers[%keys] : memref<?xi32>, (vector<1x8xi32>) -> vector<1x8xi32>
    tile.scatter_add %t, %bins[%index] : vector<4x8xf32>, memref<24xf32>, vector<1x8xi32>
    tile.store_bins %bins, %out[%q, %c0] : memref<24xf32>, memref<?x?xf32>
  }
  return
}
