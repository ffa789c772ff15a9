// RUN: attn-opt %s --split-input-file --verify-diagnostics | FileCheck %s

#plan = #attn.plan<target = sm_80, block_q = 64, block_k = 32, warps = 4>

// CHECK-LABEL: tile.kernel @table
// CHECK: %[[BINS:.*]] = tile.bins : memref<24xf32>
// CHECK: scf.for
// CHECK: tile.scatter_add %{{.*}}, %[[BINS]][%{{.*}}] : vector<64x32xf32>, memref<24xf32>, vector<64x1xi32>
// CHECK: tile.store_bins %[[BINS]], %{{.*}}[%{{.*}}, %{{.*}}] : memref<24xf32>, memref<?x?xf32>
// CHECK-LABEL: tile.kernel @rows
// CHECK: tile.bins : memref<64x24xf32>
func.func @ops(%out: memref<?x?xf32>, %index: vector<64x1xi32>, %t: vector<64x32xf32>, %i: i32, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  tile.kernel @table plan(#plan) grid(%b, %h, %q) in (%n, %n, %n) {
    %bins = tile.bins : memref<24xf32>
    scf.for %k = %c0 to %n step %c1 {
      tile.scatter_add %t, %bins[%index] : vector<64x32xf32>, memref<24xf32>, vector<64x1xi32>
    }
    tile.store_bins %bins, %out[%q, %c0] : memref<24xf32>, memref<?x?xf32>
  }
  tile.kernel @rows plan(#plan) grid(%b, %h, %q) in (%n, %n, %n) {
    %bins = tile.bins : memref<64x24xf32>
    tile.scatter_add %t, %bins[%i] : vector<64x32xf32>, memref<64x24xf32>, i32
    tile.store_bins %bins, %out[%q, %c0] : memref<64x24xf32>, memref<?x?xf32>
  }
  return
}

// -----

func.func @bins_c1() {
  // expected-error@+1 {{'tile.bins' op does not stand directly in a tile.kernel}}
  %bins = tile.bins : memref<24xf32>
  return
}

// -----

#plan = #attn.plan<target = sm_80, block_q = 64, block_k = 32, warps = 4>
func.func @bins_c2(%n: index) {
  tile.kernel @f plan(#plan) grid(%b, %h, %q) in (%n, %n, %n) {
    // expected-error@+1 {{'tile.bins' op makes 'memref<?xf32>', expected f32 of rank 1 or 2, fixed sizes, no layout}}
    %bins = tile.bins : memref<?xf32>
  }
  return
}

// -----

#plan = #attn.plan<target = sm_80, block_q = 64, block_k = 32, warps = 4>
func.func @bins_c3(%n: index, %at: vector<4x8xi32>) {
  tile.kernel @f plan(#plan) grid(%b, %h, %q) in (%n, %n, %n) {
    %bins = tile.bins : memref<24xf32>
    // expected-error@+1 {{'tile.gather' op uses bins, expected tile.scatter_add or tile.store_bins}}
    %x = tile.gather %bins[%at] : memref<24xf32>, (vector<4x8xi32>) -> vector<4x8xf32>
  }
  return
}

// -----

#plan = #attn.plan<target = sm_80, block_q = 64, block_k = 32, warps = 4>
func.func @bins_c3_order(%n: index, %t: vector<64x32xf32>, %i: i32, %out: memref<?x?xf32>) {
  tile.kernel @f plan(#plan) grid(%b, %h, %q) in (%n, %n, %n) {
    %bins = tile.bins : memref<24xf32>
    tile.store_bins %bins, %out[%q, %q] : memref<24xf32>, memref<?x?xf32>
    // expected-error@+1 {{'tile.scatter_add' op adds to bins that are stored before}}
    tile.scatter_add %t, %bins[%i] : vector<64x32xf32>, memref<24xf32>, i32
  }
  return
}

// -----

#plan = #attn.plan<target = sm_80, block_q = 64, block_k = 32, warps = 4>
func.func @bins_c3_twice(%n: index, %out: memref<?x?xf32>) {
  tile.kernel @f plan(#plan) grid(%b, %h, %q) in (%n, %n, %n) {
    %bins = tile.bins : memref<24xf32>
    // expected-error@+1 {{'tile.store_bins' op stores bins that are stored elsewhere, too}}
    tile.store_bins %bins, %out[%q, %q] : memref<24xf32>, memref<?x?xf32>
    tile.store_bins %bins, %out[%h, %q] : memref<24xf32>, memref<?x?xf32>
  }
  return
}

// -----

#plan = #attn.plan<target = sm_80, block_q = 64, block_k = 32, warps = 4>
func.func @bins_c3_loop(%n: index, %out: memref<?x?xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  tile.kernel @f plan(#plan) grid(%b, %h, %q) in (%n, %n, %n) {
    %bins = tile.bins : memref<24xf32>
    scf.for %k = %c0 to %n step %c1 {
      // expected-error@+1 {{'tile.store_bins' op does not stand in the block of its bins}}
      tile.store_bins %bins, %out[%q, %q] : memref<24xf32>, memref<?x?xf32>
    }
  }
  return
}

// -----

func.func @scatter_add_c1(%t: vector<64x32xf16>, %bins: memref<24xf32>, %i: i32) {
  // expected-error@+1 {{'tile.scatter_add' op adds 'vector<64x32xf16>', expected rank 2 and f32}}
  tile.scatter_add %t, %bins[%i] : vector<64x32xf16>, memref<24xf32>, i32
  return
}

// -----

func.func @scatter_add_c2(%t: vector<64x32xf32>, %bins: memref<32x24xf32>, %i: i32) {
  // expected-error@+1 {{'tile.scatter_add' op adds 'vector<64x32xf32>' to bins of 32 rows}}
  tile.scatter_add %t, %bins[%i] : vector<64x32xf32>, memref<32x24xf32>, i32
  return
}

// -----

func.func @scatter_add_c3(%t: vector<64x32xf32>, %bins: memref<24xf32>, %i: vector<64x2xi32>) {
  // expected-error@+1 {{'tile.scatter_add' op has an index of type 'vector<64x2xi32>', expected i32 or a vector of i32 that stretches to 'vector<64x32xf32>'}}
  tile.scatter_add %t, %bins[%i] : vector<64x32xf32>, memref<24xf32>, vector<64x2xi32>
  return
}

// -----

func.func @store_bins_c1(%bins: memref<24xf32>, %out: memref<?xf32>, %i: index) {
  // expected-error@+1 {{'tile.store_bins' op writes to 'memref<?xf32>', expected rank 2 or more and f32}}
  tile.store_bins %bins, %out[%i] : memref<24xf32>, memref<?xf32>
  return
}

// -----

func.func @store_bins_c1_indices(%bins: memref<24xf32>, %out: memref<?x?xf32>, %i: index) {
  // expected-error@+1 {{'tile.store_bins' op got 1 indices, expected one per dimension of 'memref<?x?xf32>'}}
  tile.store_bins %bins, %out[%i] : memref<24xf32>, memref<?x?xf32>
  return
}
