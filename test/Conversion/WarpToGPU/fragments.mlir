// RUN: attn-opt %s --convert-warp-to-gpu | FileCheck %s

!acc = !warp.frag<64x8xf32, acc, 4>
!acci = !warp.frag<64x8xi32, acc, 4>
!rows = !warp.frag<64x1xf32, acc, 4>
!rowsi = !warp.frag<64x1xi32, acc, 4>
!part = !warp.frag<64x4xf32, acc, 4>
!columns = !warp.frag<1x8xi32, acc, 4>
!half = !warp.frag<64x16xbf16, acc, 4>
!wide = !warp.frag<64x16xf32, acc, 4>
!a = !warp.frag<64x16xbf16, a, 4>
!out = memref<?x?xf32, strided<[?, 1]>>
!lse = memref<?xf32>

// Two rows per lane, four lanes per row: the lane's own two columns, then the
// neighbours'.
// CHECK-LABEL: gpu.func @reduce
// CHECK: %[[R0:.*]] = arith.addf %[[X:.*]], %[[X]] : f32
// CHECK: %[[R1:.*]] = arith.addf
// CHECK: %[[N0:.*]] = nvvm.shfl.sync bfly %{{.*}}, %[[R0]], %c1_i32
// CHECK: %[[S0:.*]] = arith.addf %[[R0]], %[[N0]]
// CHECK: nvvm.shfl.sync bfly %{{.*}}, %[[R1]], %c1_i32
// CHECK: nvvm.shfl.sync bfly %{{.*}}, %[[S0]], %c2_i32
// CHECK: nvvm.shfl.sync bfly
// CHECK-NOT: nvvm.shfl.sync
func.func @reduce(%x: f32, %o: !lse) {
  %c1 = arith.constant 1 : index
  warp.kernel @reduce blocks(%i, %j, %k) in (%c1, %c1, %c1) warps(4) shared(0) {
    %f = warp.splat %x : !acc
    %r = warp.reduce <add> %f : !acc -> !rows
    warp.store %r, %o[%i] rows : !rows, !lse
  }
  return
}

// Each lane keeps its part: no exchange until the last step.
// CHECK-LABEL: gpu.func @partial
// CHECK-COUNT-2: arith.addf
// CHECK-COUNT-2: arith.mulf
// CHECK-COUNT-2: nvvm.shfl.sync bfly %{{.*}}, %c1_i32
// CHECK-COUNT-2: nvvm.shfl.sync bfly %{{.*}}, %c2_i32
// CHECK-NOT: nvvm.shfl.sync
func.func @partial(%x: f32, %o: !lse) {
  %c1 = arith.constant 1 : index
  warp.kernel @partial blocks(%i, %j, %k) in (%c1, %c1, %c1) warps(4) shared(0) {
    %f = warp.splat %x : !acc
    %one = warp.splat %x : !rows
    %ones = warp.broadcast %one : !rows -> !part
    %p = warp.reduce <add> %f : !acc -> !part
    %q = arith.mulf %p, %ones : !part
    %r = warp.reduce <add> %q : !part -> !rows
    warp.store %r, %o[%i] rows : !rows, !lse
  }
  return
}

// Row: base + 16 warp + lane / 4 (+ 8). Column: base + 2 (lane mod 4) (+ 1).
// CHECK-LABEL: gpu.func @coords
// CHECK-SAME: %[[B:.*]]: i32
// CHECK: %[[COL0:.*]] = arith.addi %[[B]], %{{.*}} : i32
// CHECK: %[[COL1:.*]] = arith.addi %[[COL0]], %c1_i32
// CHECK: arith.divui %{{.*}}, %c32_i32
// CHECK: arith.muli %{{.*}}, %c16_i32
// CHECK: arith.divui %{{.*}}, %c4_i32
// CHECK: %[[ROW0:.*]] = arith.addi %[[B]], %{{.*}} : i32
// CHECK: %[[ROW1:.*]] = arith.addi %[[ROW0]], %c8_i32
// Broadcast: registers (row 0, col 0), (row 0, col 1), (row 8, col 0), …, whose
// sums are one and constants.
// CHECK: %[[SUM:.*]] = arith.addi %[[ROW0]], %[[COL0]]
// CHECK: arith.addi %[[SUM]], %c1_i32
// CHECK: arith.addi %[[SUM]], %c8_i32
// CHECK: arith.addi %[[SUM]], %c9_i32
// CHECK-NOT: arith.addi %[[ROW1]]
func.func @coords(%base: i32, %o: memref<?x?xi32, strided<[?, 1]>>) {
  %c1 = arith.constant 1 : index
  warp.kernel @coords blocks(%i, %j, %k) in (%c1, %c1, %c1) warps(4) shared(0) {
    %r = warp.coords %base, 0 : !rowsi
    %c = warp.coords %base, 1 : !columns
    %rb = warp.broadcast %r : !rowsi -> !acci
    %cb = warp.broadcast %c : !columns -> !acci
    %s = arith.addi %rb, %cb : !acci
    warp.store %s, %o[%i, %i] : !acci, memref<?x?xi32, strided<[?, 1]>>
  }
  return
}

// One conversion per pair of columns; the A operand is the same pairs.
// CHECK-LABEL: gpu.func @truncate
// CHECK: %[[P:.*]] = nvvm.convert.f32x2.to.bf16x2 %[[X:.*]], %[[X]] {rnd = #nvvm.fp_rnd_mode<rn>} : vector<2xbf16>
// CHECK-COUNT-3: nvvm.convert.f32x2.to.bf16x2
// CHECK-NOT: nvvm.convert
// CHECK: %[[A:.*]] = llvm.bitcast %[[P]] : vector<2xbf16> to i32
// CHECK: nvvm.mma.sync A[%[[A]]
func.func @truncate(%x: f32, %o: !out) {
  %c1 = arith.constant 1 : index
  warp.kernel @truncate blocks(%i, %j, %k) in (%c1, %c1, %c1) warps(4) shared(512) {
    %v = warp.alloc at 0 : !warp.slot<16x16xbf16>
    %f = warp.splat %x : !wide
    %h = warp.cast truncf %f : !wide to !half
    %a = warp.convert %h : !half -> !a
    %r = warp.mma mma_sync %a, %v, %f : !a, !warp.slot<16x16xbf16>, !wide
    warp.store %r, %o[%i, %i] : !wide, !out
  }
  return
}

// Fragments go round loops and through branches as their registers.
// CHECK-LABEL: gpu.func @carried
// CHECK: %[[R:.*]]:4 = scf.for {{.*}} -> (f32, f32, f32, f32)
// CHECK: scf.if {{.*}} -> (f32, f32, f32, f32)
func.func @carried(%x: f32, %n: index, %o: !out) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  warp.kernel @carried blocks(%i, %j, %k) in (%c1, %c1, %c1) warps(4) shared(0) {
    %f = warp.splat %x : !acc
    %r = scf.for %it = %c0 to %n step %c1 iter_args(%g = %f) -> !acc {
      %odd = arith.cmpi eq, %it, %c1 : index
      %h = scf.if %odd -> !acc {
        %t = arith.addf %g, %f : !acc
        scf.yield %t : !acc
      } else {
        scf.yield %g : !acc
      }
      scf.yield %h : !acc
    }
    warp.store %r, %o[%i, %i] : !acc, !out
  }
  return
}

// CHECK-LABEL: gpu.func @select
// CHECK: %[[C:.*]] = arith.cmpf olt
// CHECK: arith.select %[[C]], %{{.*}}, %{{.*}} : f32
func.func @select(%x: f32, %o: !out) {
  %c1 = arith.constant 1 : index
  warp.kernel @select blocks(%i, %j, %k) in (%c1, %c1, %c1) warps(4) shared(0) {
    %f = warp.splat %x : !acc
    %g = arith.addf %f, %f : !acc
    %c = arith.cmpf olt, %f, %g : !acc
    %r = warp.select %c, %f, %g : !warp.frag<64x8xi1, acc, 4>, !acc
    warp.store %r, %o[%i, %i] : !acc, !out
  }
  return
}

// What a lane holds of 16 rows, two of them, then what the others have.
// CHECK-LABEL: gpu.func @extreme
// CHECK: %[[LEAST:.*]] = arith.minsi %[[R0:.*]], %[[R1:.*]] : i32
// CHECK: nvvm.redux.sync min %[[LEAST]], %c-1_i32
// CHECK: %[[GREATEST:.*]] = arith.maxsi %[[R0]], %[[R1]] : i32
// CHECK: nvvm.redux.sync max %[[GREATEST]], %c-1_i32
func.func @extreme(%out: memref<?xi32>, %n: index, %i: i32) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  warp.kernel @extreme blocks(%x, %h, %b) in (%n, %n, %n) warps(1) {
    %rows = warp.coords %i, 0 : !warp.frag<16x1xi32, acc, 1>
    %least = warp.extreme <least> %rows : !warp.frag<16x1xi32, acc, 1>
    %greatest = warp.extreme <greatest> %rows : !warp.frag<16x1xi32, acc, 1>
    memref.store %least, %out[%c0] : memref<?xi32>
    memref.store %greatest, %out[%c1] : memref<?xi32>
  }
  return
}
