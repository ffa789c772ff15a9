// RUN: attn-opt %s --split-input-file --verify-diagnostics | FileCheck %s

!tile = !warp.frag<128x64xf32, acc, 8>
!column = !warp.frag<1x64xi32, acc, 8>

// CHECK-LABEL: warp.kernel @ops
// CHECK: %[[A:.*]] = warp.alloc : <72x256xf32>
// CHECK: warp.clear_bins %[[A]] : <72x256xf32>
// CHECK: warp.scatter_add %{{.*}}, %[[A]][%{{.*}}] of 64 : <128x64xf32, acc, 8>, <72x256xf32>, i32
// CHECK: warp.store_bins %[[A]] of 64, %{{.*}}[%{{.*}}, %{{.*}}] : <72x256xf32>, memref<?x?xf32>
// CHECK: warp.scatter_add %{{.*}} of 24 rows 128 :
// CHECK: warp.store_bins %{{.*}} of 24 rows 128,
func.func @ops(%n: index, %x: f32, %i: i32, %out: memref<?x?xf32>) {
  warp.kernel @ops blocks(%b, %h, %q) in (%n, %n, %n) warps(8) {
    %bins = warp.alloc : !warp.slot<72x256xf32>
    %rows = warp.alloc : !warp.slot<56x256xf32>
    %t = warp.splat %x : !tile
    %columns = warp.coords %i, 1 : !column
    warp.clear_bins %bins : !warp.slot<72x256xf32>
    warp.scatter_add %t, %bins[%i] of 64 : !tile, !warp.slot<72x256xf32>, i32
    warp.store_bins %bins of 64, %out[%q, %b] : !warp.slot<72x256xf32>, memref<?x?xf32>
    warp.clear_bins %rows : !warp.slot<56x256xf32>
    warp.scatter_add %t, %rows[%columns] of 24 rows 128 : !tile, !warp.slot<56x256xf32>, !column
    warp.store_bins %rows of 24 rows 128, %out[%q, %b] : !warp.slot<56x256xf32>, memref<?x?xf32>
  }
  return
}

// -----

!tile = !warp.frag<128x64xf32, acc, 8>
func.func @scatter_add_slot(%n: index, %x: f32, %i: i32) {
  warp.kernel @f blocks(%b, %h, %q) in (%n, %n, %n) warps(8) {
    %bins = warp.alloc : !warp.slot<64x256xf32>
    %t = warp.splat %x : !tile
    // expected-error@+1 {{'warp.scatter_add' op has 64 bins in '!warp.slot<64x256xf32>', expected '!warp.slot<72x256xf32>'}}
    warp.scatter_add %t, %bins[%i] of 64 : !tile, !warp.slot<64x256xf32>, i32
  }
  return
}

// -----

!tile = !warp.frag<128x64xf32, acc, 8>
func.func @scatter_add_rows(%n: index, %x: f32, %i: i32) {
  warp.kernel @f blocks(%b, %h, %q) in (%n, %n, %n) warps(8) {
    %bins = warp.alloc : !warp.slot<56x256xf32>
    %t = warp.splat %x : !tile
    // expected-error@+1 {{'warp.scatter_add' op adds '!warp.frag<128x64xf32, acc, 8>' to bins of 256 rows}}
    warp.scatter_add %t, %bins[%i] of 24 rows 256 : !tile, !warp.slot<56x256xf32>, i32
  }
  return
}

// -----

// Two warps have parts of each row.
!tile = !warp.frag<64x64xf32, acc, 8>
func.func @scatter_add_shared_rows(%n: index, %x: f32, %i: i32) {
  warp.kernel @f blocks(%b, %h, %q) in (%n, %n, %n) warps(8) {
    %bins = warp.alloc : !warp.slot<56x256xf32>
    %t = warp.splat %x : !tile
    // expected-error@+1 {{'warp.scatter_add' op has bins of 64 rows: got 64 rows, expected a multiple of 16 rows x 8 warps}}
    warp.scatter_add %t, %bins[%i] of 24 rows 64 : !tile, !warp.slot<56x256xf32>, i32
  }
  return
}

// -----

// The warps of a grid, too.
!tile = !warp.frag<64x64xf32, acc, 2x2>
func.func @scatter_add_grid(%n: index, %x: f32, %i: i32) {
  warp.kernel @f blocks(%b, %h, %q) in (%n, %n, %n) warps(4) {
    %bins = warp.alloc : !warp.slot<56x128xf32>
    %t = warp.splat %x : !tile
    // expected-error@+1 {{'warp.scatter_add' op adds '!warp.frag<64x64xf32, acc, 2x2>' to bins of 64 rows}}
    warp.scatter_add %t, %bins[%i] of 24 rows 64 : !tile, !warp.slot<56x128xf32>, i32
  }
  return
}

// -----

!row = !warp.frag<128x1xf32, acc, 8>
func.func @scatter_add_slice(%n: index, %x: f32, %i: i32) {
  warp.kernel @f blocks(%b, %h, %q) in (%n, %n, %n) warps(8) {
    %bins = warp.alloc : !warp.slot<72x256xf32>
    %t = warp.splat %x : !row
    // expected-error@+1 {{'warp.scatter_add' op adds '!warp.frag<128x1xf32, acc, 8>', expected a whole tile of f32, 'acc'}}
    warp.scatter_add %t, %bins[%i] of 64 : !row, !warp.slot<72x256xf32>, i32
  }
  return
}

// -----

!tile = !warp.frag<128x64xf32, acc, 8>
func.func @scatter_add_index(%n: index, %x: f32, %j: index) {
  warp.kernel @f blocks(%b, %h, %q) in (%n, %n, %n) warps(8) {
    %bins = warp.alloc : !warp.slot<72x256xf32>
    %t = warp.splat %x : !tile
    // expected-error@+1 {{'warp.scatter_add' op has an index of type 'index', expected i32 or a fragment of i32 that stretches to '!warp.frag<128x64xf32, acc, 8>'}}
    warp.scatter_add %t, %bins[%j] of 64 : !tile, !warp.slot<72x256xf32>, index
  }
  return
}

// -----

func.func @store_bins_none(%n: index, %out: memref<?x?xf32>) {
  warp.kernel @f blocks(%b, %h, %q) in (%n, %n, %n) warps(8) {
    %bins = warp.alloc : !warp.slot<72x256xf32>
    // expected-error@+1 {{'warp.store_bins' op has 0 bins for 0 rows and 8 warps, expected bins of some warps}}
    warp.store_bins %bins of 0, %out[%q, %b] : !warp.slot<72x256xf32>, memref<?x?xf32>
  }
  return
}

// -----

func.func @store_bins_view(%n: index, %out: memref<?x?xf16>) {
  warp.kernel @f blocks(%b, %h, %q) in (%n, %n, %n) warps(8) {
    %bins = warp.alloc : !warp.slot<72x256xf32>
    // expected-error@+1 {{'warp.store_bins' op writes to 'memref<?x?xf16>', expected rank 2 or more and f32}}
    warp.store_bins %bins of 64, %out[%q, %b] : !warp.slot<72x256xf32>, memref<?x?xf16>
  }
  return
}

// -----

func.func @store_bins_indices(%n: index, %out: memref<?x?xf32>) {
  warp.kernel @f blocks(%b, %h, %q) in (%n, %n, %n) warps(8) {
    %bins = warp.alloc : !warp.slot<72x256xf32>
    // expected-error@+1 {{'warp.store_bins' op got 1 indices, expected one per dimension of 'memref<?x?xf32>'}}
    warp.store_bins %bins of 64, %out[%q] : !warp.slot<72x256xf32>, memref<?x?xf32>
  }
  return
}

// -----

!tile = !warp.frag<64x128xf32, acc, 4>
func.func @shared_slot(%n: index, %x: f32, %i: i32) {
  warp.kernel @f blocks(%b, %h, %q) in (%n, %n, %n) warps(4) {
    %bins = warp.alloc : !warp.slot<64x128xf32>
    %t = warp.splat %x : !tile
    warp.store_frag %t to %bins : !tile, !warp.slot<64x128xf32>
    // expected-error@+1 {{'warp.scatter_add' op has bins in a slot that is used for something else, expected one of warp.alloc for them alone}}
    warp.scatter_add %t, %bins[%i] of 63 : !tile, !warp.slot<64x128xf32>, i32
  }
  return
}
