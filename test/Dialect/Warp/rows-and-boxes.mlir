// RUN: attn-opt %s --verify-roundtrip -split-input-file -verify-diagnostics | FileCheck %s

// CHECK-LABEL: @rows
func.func @rows(%n: index, %sums: memref<?x?xf32, strided<[?, 1]>>, %flat: memref<?xf32>) {
  %c0 = arith.constant 0 : index
  warp.kernel @k blocks(%x, %y, %z) in (%n, %n, %n) warps(4) {
    %R = warp.ring : !warp.ring<2, 1x64xf32>
    %S = warp.alloc : !warp.slot<1x32xf32>
    %T = warp.alloc : !warp.slot<64x64xf32, panels<128>>
    // CHECK: warp.copy_async %{{.*}}[%{{.*}}, %{{.*}}] to %{{.*}}[%{{.*}}] : memref<?x?xf32, strided<[?, 1]>>, <2, 1x64xf32>
    warp.copy_async %sums[%x, %y] to %R[%c0] : memref<?x?xf32, strided<[?, 1]>>, !warp.ring<2, 1x64xf32>
    warp.copy %flat[%y] to %S : memref<?xf32>, !warp.slot<1x32xf32>
    %s = warp.await %R[%c0] : !warp.ring<2, 1x64xf32> -> !warp.slot<1x64xf32>
    // CHECK: warp.load_frag %{{.*}} : <1x64xf32> -> <1x64xf32, acc, 4>
    %columns = warp.load_frag %s : !warp.slot<1x64xf32> -> !warp.frag<1x64xf32, acc, 4>
    // CHECK: warp.load_frag %{{.*}} : <1x64xf32> -> <64x1xf32, acc, 4>
    %rows = warp.load_frag %s : !warp.slot<1x64xf32> -> !warp.frag<64x1xf32, acc, 4>
    warp.release %s : !warp.slot<1x64xf32>
    %t = warp.load_frag %T : !warp.slot<64x64xf32, panels<128>> -> !warp.frag<64x64xf32, acc, 4>
  }
  return
}

// CHECK-LABEL: @boxes
func.func @boxes(%n: index, %pool: memref<?x16x64xbf16>) {
  %c0 = arith.constant 0 : index
  warp.kernel @k blocks(%x, %y, %z) in (%n, %n, %n) warps(4) {
    %R = warp.ring : !warp.ring<1, 32x64xbf16>
    // CHECK: warp.copy_async %{{.*}}[%[[X:.*]], %[[C0:.*]], %[[C0]]], [%[[Y:.*]], %[[C0]], %[[C0]]] to %{{.*}}[%[[C0]]] : memref<?x16x64xbf16>, <1, 32x64xbf16>
    warp.copy_async %pool[%x, %c0, %c0], [%y, %c0, %c0] to %R[%c0] : memref<?x16x64xbf16>, !warp.ring<1, 32x64xbf16>
    %s = warp.await %R[%c0] : !warp.ring<1, 32x64xbf16> -> !warp.slot<32x64xbf16>
    warp.release %s : !warp.slot<32x64xbf16>
    %S = warp.alloc : !warp.slot<32x64xbf16>
    // CHECK: warp.copy %{{.*}}[%[[X]], %[[C0]], %[[C0]]], [%[[Y]], %[[C0]], %[[C0]]] to %{{.*}} : memref<?x16x64xbf16>, <32x64xbf16>
    warp.copy %pool[%x, %c0, %c0], [%y, %c0, %c0] to %S : memref<?x16x64xbf16>, !warp.slot<32x64xbf16>
  }
  return
}

// CHECK-LABEL: @slices
func.func @slices(%n: index, %o: memref<?x?x64xbf16>, %lse: memref<?x?xf32>, %value: bf16, %number: f32) {
  %c0 = arith.constant 0 : index
  warp.kernel @k blocks(%x, %y, %z) in (%n, %n, %n) warps(4) {
    %t = warp.splat %value : !warp.frag<64x64xbf16, acc, 4>
    %l = warp.splat %number : !warp.frag<64x1xf32, acc, 4>
    // CHECK: warp.store %{{.*}}, %{{.*}}[%{{.*}}] slices 8 : <64x64xbf16, acc, 4>, memref<?x?x64xbf16>
    warp.store %t, %o[%x, %y, %c0] slices 8 : !warp.frag<64x64xbf16, acc, 4>, memref<?x?x64xbf16>
    // CHECK: warp.store %{{.*}}, %{{.*}}[%{{.*}}] rows slices 4 below(%{{.*}}) : <64x1xf32, acc, 4>, memref<?x?xf32>
    warp.store %l, %lse[%x, %y] rows slices 4 below(%z) : !warp.frag<64x1xf32, acc, 4>, memref<?x?xf32>
  }
  return
}

// -----

func.func @copy_of_4_rows(%n: index, %pool: memref<?x64xbf16>) {
  %c0 = arith.constant 0 : index
  warp.kernel @k blocks(%x, %y, %z) in (%n, %n, %n) warps(4) {
    %S = warp.alloc : !warp.slot<16x64xbf16>
    // expected-error@+1 {{'warp.copy' op fills 16 rows from 3 boxes, expected equal parts of a multiple of 8}}
    warp.copy %pool[%x, %c0], [%y, %c0], [%z, %c0] to %S : memref<?x64xbf16>, !warp.slot<16x64xbf16>
  }
  return
}

// -----

func.func @slices_of_4_rows(%n: index, %o: memref<?x?x64xbf16>, %value: bf16) {
  %c0 = arith.constant 0 : index
  warp.kernel @k blocks(%x, %y, %z) in (%n, %n, %n) warps(4) {
    %t = warp.splat %value : !warp.frag<64x64xbf16, acc, 4>
    // expected-error@+1 {{'warp.store' op writes 64 rows to 16 slices, expected equal parts of a multiple of 8}}
    warp.store %t, %o[%x, %y, %c0] slices 16 : !warp.frag<64x64xbf16, acc, 4>, memref<?x?x64xbf16>
  }
  return
}

// -----

func.func @one_slice_below(%n: index, %o: memref<?x?x64xbf16>, %value: bf16) {
  %c0 = arith.constant 0 : index
  warp.kernel @k blocks(%x, %y, %z) in (%n, %n, %n) warps(4) {
    %t = warp.splat %value : !warp.frag<64x64xbf16, acc, 4>
    // expected-error@+1 {{'warp.store' op has 1 slice below an index, expected several}}
    warp.store %t, %o[%x, %y, %c0] below(%z) : !warp.frag<64x64xbf16, acc, 4>, memref<?x?x64xbf16>
  }
  return
}

// -----

func.func @slices_without_a_dimension(%n: index, %o: memref<?x64xbf16>, %value: bf16) {
  %c0 = arith.constant 0 : index
  warp.kernel @k blocks(%x, %y, %z) in (%n, %n, %n) warps(4) {
    %t = warp.splat %value : !warp.frag<64x64xbf16, acc, 4>
    // expected-error@+1 {{'warp.store' op writes slices of a memref of rank 2, expected at least 3}}
    warp.store %t, %o[%x, %c0] slices 2 : !warp.frag<64x64xbf16, acc, 4>, memref<?x64xbf16>
  }
  return
}

// -----

func.func @store_c3_slot(%n: index, %o: memref<?x?x64xbf16>, %value: bf16) {
  %c0 = arith.constant 0 : index
  warp.kernel @k blocks(%x, %y, %z) in (%n, %n, %n) warps(4) {
    %S = warp.alloc : !warp.slot<64x64xbf16>
    %t = warp.splat %value : !warp.frag<64x64xbf16, acc, 4>
    // expected-error@+1 {{'warp.store' op writes slices, expected that it goes via no slot and is neither packed nor accumulated}}
    warp.store %t, %o[%x, %y, %c0] slices 2 via %S : !warp.frag<64x64xbf16, acc, 4>, memref<?x?x64xbf16>, !warp.slot<64x64xbf16>
  }
  return
}

// -----

// expected-error@+1 {{slot: got a row of elements of 2 bytes, expected 4}}
func.func @row_of_halves(%s: !warp.slot<1x64xbf16>) { return }

// -----

// expected-error@+1 {{slot: got a row of 48 columns, expected a multiple of 32}}
func.func @row_of_48(%s: !warp.slot<1x48xf32>) { return }

// -----

// expected-error@+1 {{slot: got a row in panels, expected none}}
func.func @row_in_panels(%s: !warp.ring<2, 1x64xf32, panels<128>>) { return }

// -----

func.func @tile_of_rank_1(%n: index, %flat: memref<?xf32>) {
  warp.kernel @k blocks(%x, %y, %z) in (%n, %n, %n) warps(4) {
    %S = warp.alloc : !warp.slot<64x64xf32>
    // expected-error@+1 {{'warp.copy' op got a memref of rank 1, expected at least 2}}
    warp.copy %flat[%y] to %S : memref<?xf32>, !warp.slot<64x64xf32>
  }
  return
}

// -----

func.func @row_as_tile(%n: index) {
  warp.kernel @k blocks(%x, %y, %z) in (%n, %n, %n) warps(4) {
    %S = warp.alloc : !warp.slot<1x64xf32>
    // expected-error@+1 {{'warp.load_frag' op gives '!warp.frag<64x64xf32, acc, 4>' from '!warp.slot<1x64xf32>', expected the same shape and elements}}
    %t = warp.load_frag %S : !warp.slot<1x64xf32> -> !warp.frag<64x64xf32, acc, 4>
  }
  return
}

// -----

func.func @row_stored(%n: index, %f: f32) {
  warp.kernel @k blocks(%x, %y, %z) in (%n, %n, %n) warps(4) {
    %S = warp.alloc : !warp.slot<1x64xf32>
    %r = warp.splat %f : !warp.frag<1x64xf32, acc, 4>
    // expected-error@+1 {{'warp.store_frag' op stores one row, expected a tile}}
    warp.store_frag %r to %S : !warp.frag<1x64xf32, acc, 4>, !warp.slot<1x64xf32>
  }
  return
}

// -----

func.func @boxes_of_4_rows(%n: index, %pool: memref<?x64xbf16>) {
  %c0 = arith.constant 0 : index
  warp.kernel @k blocks(%x, %y, %z) in (%n, %n, %n) warps(4) {
    %R = warp.ring : !warp.ring<1, 16x64xbf16>
    // expected-error@+1 {{'warp.copy_async' op fills 16 rows from 3 boxes, expected equal parts of a multiple of 8}}
    warp.copy_async %pool[%x, %c0], [%y, %c0], [%z, %c0] to %R[%c0] : memref<?x64xbf16>, !warp.ring<1, 16x64xbf16>
  }
  return
}

// -----

func.func @boxes_of_other_ranks(%n: index, %pool: memref<?x64xbf16>) {
  %c0 = arith.constant 0 : index
  warp.kernel @k blocks(%x, %y, %z) in (%n, %n, %n) warps(4) {
    %R = warp.ring : !warp.ring<1, 16x64xbf16>
    // expected-error@+1 {{got a box of 1 indices, the first has 2}}
    warp.copy_async %pool[%x, %c0], [%y] to %R[%c0] : memref<?x64xbf16>, !warp.ring<1, 16x64xbf16>
  }
  return
}

// -----

func.func @one_box_of_two(%n: index, %pool: memref<?x64xbf16>) {
  %c0 = arith.constant 0 : index
  warp.kernel @k blocks(%x, %y, %z) in (%n, %n, %n) warps(4) {
    %R = warp.ring : !warp.ring<1, 16x64xbf16>
    // expected-error@+1 {{'warp.copy_async' op got 4 indices for a memref of rank 2}}
    warp.copy_async %pool[%x, %c0, %y, %c0] to %R[%c0] : memref<?x64xbf16>, !warp.ring<1, 16x64xbf16>
  }
  return
}
