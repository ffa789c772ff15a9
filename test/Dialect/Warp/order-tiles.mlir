// RUN: attn-opt %s --warp-order-tiles | FileCheck %s
// RUN: attn-opt %s --warp-order-tiles --remarks-filter=warp-order-tiles -o /dev/null 2>&1 | FileCheck %s --check-prefix=REMARK

!view = memref<?x?x?x128xbf16, strided<[?, ?, ?, 1], offset: ?>>
!t = !warp.slot<64x128xbf16>
!f = !warp.frag<64x128xbf16, a, 4>

// 16 heads a group; the last one has 512 tiles. In a group x is slowest.
// CHECK-LABEL: @longest_first(
// CHECK-SAME: %[[NX:.*]]: index, %[[NY:.*]]: index, %[[NZ:.*]]: index
// CHECK: %[[XY:.*]] = arith.muli %[[NX]], %[[NY]] : index
// CHECK: %[[TILES:.*]] = arith.muli %[[XY]], %[[NZ]] : index
// CHECK: warp.kernel @{{.*}} blocks(%[[TILE:.*]], %{{.*}}, %{{.*}}) in (%[[TILES]], %{{.*}}, %{{.*}}) warps(4) {
// CHECK: %[[HEADS:.*]] = arith.muli %{{.*}}, %{{.*}} : i32
// CHECK: %[[GROUP:.*]] = arith.constant 16 : i32
// CHECK: %[[NX32:.*]] = arith.index_cast %[[NX]] : index to i32
// CHECK: %[[MORE:.*]] = arith.constant 511 : i32
// CHECK: %[[ATEND:.*]] = arith.divui %{{.*}}, %[[NX32]] : i32
// CHECK: %[[REST:.*]] = arith.subi %[[HEADS]], %[[ATEND]] : i32
// CHECK: %[[OTHERS:.*]] = arith.maxsi %[[REST]], %{{.*}} : i32
// CHECK: %[[GROUPS:.*]] = arith.divui %[[OTHERS]], %[[GROUP]] : i32
// CHECK: %[[TILE32:.*]] = arith.index_cast %[[TILE]] : index to i32
// CHECK: %[[OWN:.*]] = scf.if
// CHECK: arith.muli %{{.*}}, %{{.*}} : i32
// CHECK: arith.subi
// CHECK-NEXT: %[[X32:.*]] = arith.divui
// CHECK-NEXT: arith.muli %[[X32]],
// CHECK-NEXT: %[[INGROUP:.*]] = arith.subi
// CHECK: %[[HEAD:.*]] = arith.addi %{{.*}}, %[[INGROUP]] : i32
// CHECK: %[[Z32:.*]] = arith.divui %[[HEAD]], %{{.*}} : i32
// CHECK: %[[Y32:.*]] = arith.subi %[[HEAD]]
// CHECK: %[[X:.*]] = arith.index_cast %[[X32]] : i32 to index
// CHECK: %[[Y:.*]] = arith.index_cast %[[Y32]] : i32 to index
// CHECK: %[[Z:.*]] = arith.index_cast %[[Z32]] : i32 to index
// CHECK: scf.for %[[I:.*]] = %{{.*}} to %[[X]] step
// CHECK: warp.copy %{{.*}}[%[[Z]], %[[Y]], %[[X]], %[[I]]]
// REMARK: [Passed] order-tiles | Category:warp-order-tiles | heads_at_a_time=16
// REMARK: [Passed] order-tiles | Category:warp-order-tiles | heads_at_a_time=4
func.func @longest_first(%nx: index, %ny: index, %nz: index, %k: !view) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  warp.kernel @longest_first blocks(%x, %h, %b) in (%nx, %ny, %nz) warps(4) {
    %ks = warp.alloc : !t
    scf.for %i = %c0 to %x step %c1 {
      warp.copy %k[%b, %h, %x, %i] to %ks : !view, !t
      %f = warp.load_frag %ks : !t -> !f
    }
  }
  return
}

// Sums in memory stay in the cache with fewer heads at a time.
// CHECK-LABEL: @sums(
// CHECK: warp.kernel
// CHECK: arith.constant 4 : i32
// CHECK: arith.constant 511 : i32
func.func @sums(%nx: index, %ny: index, %nz: index, %k: !view, %sum: memref<?x?x?x64xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %one = arith.constant 1.0 : f32
  warp.kernel @sums blocks(%x, %h, %b) in (%nx, %ny, %nz) warps(4) {
    %ks = warp.alloc : !t
    %part = warp.splat %one : !warp.frag<64x64xf32, acc, 4>
    scf.for %i = %c0 to %x step %c1 {
      warp.copy %k[%b, %h, %x, %i] to %ks : !view, !t
      %f = warp.load_frag %ks : !t -> !f
      warp.store %part, %sum[%b, %h, %i, %c0] accumulate : !warp.frag<64x64xf32, acc, 4>, memref<?x?x?x64xf32>
    }
  }
  return
}

// REMARK-NOT: {{@even|@no_copies}}
// REMARK: [Missed] order-tiles{{.*}}the plan leaves the tiles to the grid
// REMARK: [Missed] order-tiles{{.*}}the grid has no order but one
// CHECK-LABEL: @as_they_are(
// CHECK: warp.kernel @even blocks(%{{.*}}, %{{.*}}, %{{.*}}) in (%[[NX:.*]], %[[N:.*]], %[[N]])
// CHECK: warp.kernel @left_to_the_grid blocks(%{{.*}}, %{{.*}}, %{{.*}}) in (%[[NX]], %[[N]], %[[N]])
// CHECK: warp.kernel @no_copies blocks(%{{.*}}, %{{.*}}, %{{.*}}) in (%[[NX]], %[[N]], %[[N]])
// CHECK: warp.kernel @one_head blocks(%{{.*}}, %{{.*}}, %{{.*}}) in (%[[NX]], %c1, %c1)
func.func @as_they_are(%nx: index, %n: index, %k: !view, %sum: memref<?x?x?x64xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  warp.kernel @even blocks(%x, %h, %b) in (%nx, %n, %n) warps(4) {
    %ks = warp.alloc : !t
    scf.for %i = %c0 to %n step %c1 {
      warp.copy %k[%b, %h, %x, %i] to %ks : !view, !t
      %f = warp.load_frag %ks : !t -> !f
    }
  }
  warp.kernel @left_to_the_grid blocks(%x, %h, %b) in (%nx, %n, %n) warps(4) scheduler(grid) {
    %ks = warp.alloc : !t
    scf.for %i = %c0 to %x step %c1 {
      warp.copy %k[%b, %h, %x, %i] to %ks : !view, !t
      %f = warp.load_frag %ks : !t -> !f
    }
  }
  warp.kernel @no_copies blocks(%x, %h, %b) in (%nx, %n, %n) warps(4) {
    scf.for %i = %c0 to %x step %c1 {
      %one = arith.constant 1.0 : f32
      %part = warp.splat %one : !warp.frag<64x64xf32, acc, 4>
      warp.store %part, %sum[%b, %h, %i, %c0] : !warp.frag<64x64xf32, acc, 4>, memref<?x?x?x64xf32>
    }
  }
  warp.kernel @one_head blocks(%x, %h, %b) in (%nx, %c1, %c1) warps(4) {
    %ks = warp.alloc : !t
    scf.for %i = %c0 to %x step %c1 {
      warp.copy %k[%b, %h, %x, %i] to %ks : !view, !t
      %f = warp.load_frag %ks : !t -> !f
    }
  }
  return
}
