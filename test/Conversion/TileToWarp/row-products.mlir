// Sums of products of rows need no shared memory.
//
// RUN: attn-opt %s --split-input-file --verify-diagnostics --convert-tile-to-warp | FileCheck %s

#plan = #attn.plan<target = sm_80, block_q = 64, block_k = 64, warps = 4>
!view = memref<?x?x?x40xbf16, strided<[?, ?, ?, 1], offset: ?>>

// CHECK-LABEL: warp.kernel @delta
// CHECK-NOT: warp.alloc
// CHECK: %[[PARTS:.*]] = warp.dot_rows %[[X:.*]], %[[Y:.*]][%{{.*}}, %{{.*}}, %{{.*}}] : {{.*}} -> <64x4xf32, acc, 4>
// CHECK: %[[SUMS:.*]] = warp.reduce <add> %[[PARTS]]
// CHECK: warp.store %[[SUMS]], {{.*}} rows
func.func @delta(%x: !view, %y: !view, %sums: memref<?x?x?xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  tile.kernel @delta plan(#plan) grid(%b, %h, %q) in (%n, %n, %n) {
    %zero = arith.constant dense<0.0> : vector<64xf32>
    %s = tile.load %x[%b, %h, %q, %c0] : !view, vector<64x48xbf16>
    %t = tile.load %y[%b, %h, %q, %c0] : !view, vector<64x48xbf16>
    %u = arith.extf %s : vector<64x48xbf16> to vector<64x48xf32>
    %v = arith.extf %t : vector<64x48xbf16> to vector<64x48xf32>
    %p = arith.mulf %u, %v : vector<64x48xf32>
    %sum = vector.multi_reduction <add>, %p, %zero [1] : vector<64x48xf32> to vector<64xf32>
    tile.store %sum, %sums[%b, %h, %q] : vector<64xf32>, memref<?x?x?xf32>
  }
  return
}

// -----

#plan = #attn.plan<target = sm_80, block_q = 64, block_k = 64, warps = 4>

// A part of the rows only.
func.func @part(%x: memref<?x64xf32>, %sums: memref<?xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  tile.kernel @part plan(#plan) grid(%b, %h, %q) in (%n, %n, %n) {
    %zero = arith.constant dense<0.0> : vector<64xf32>
    // expected-error@+1 {{'tile.load' op is used by something else than vector.contract's lhs or rhs}}
    %s = tile.load %x[%q, %c0] : memref<?x64xf32>, vector<64x32xf32>
    %t = tile.load %x[%q, %c0] : memref<?x64xf32>, vector<64x32xf32>
    // expected-note@+1 {{used here}}
    %p = arith.mulf %s, %t : vector<64x32xf32>
    %sum = vector.multi_reduction <add>, %p, %zero [1] : vector<64x32xf32> to vector<64xf32>
    tile.store %sum, %sums[%q] : vector<64xf32>, memref<?xf32>
  }
  return
}
