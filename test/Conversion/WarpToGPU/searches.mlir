// RUN: attn-opt %s --convert-warp-to-gpu --canonicalize | FileCheck %s

!ends = memref<?x?xi32, strided<[?, ?], offset: ?>>
!found = !warp.frag<64x1xi32, acc, 4>

// All rows of a warp search in one row of memory: the places of the lowest and
// of the highest number, which are found together, bound those of all.
// CHECK-LABEL: gpu.func @rows
// CHECK: %[[LEAST:.*]] = arith.minsi %[[V0:.*]], %[[V1:.*]] : i32
// CHECK: %[[MOST:.*]] = arith.maxsi %[[V0]], %[[V1]] : i32
// CHECK: %[[LOWEST:.*]] = nvvm.redux.sync  min %[[LEAST]], %c-1_i32
// CHECK: %[[HIGHEST:.*]] = nvvm.redux.sync  max %[[MOST]], %c-1_i32
// CHECK: %[[LOW:.*]]:2 = scf.while
// CHECK: arith.cmpi sle, %{{.*}}, %[[LOWEST]]
// CHECK: nvvm.vote.sync ballot
// CHECK: %[[DIFFER:.*]] = arith.cmpi ne, %[[LOWEST]], %[[HIGHEST]]
// CHECK: %[[HIGH:.*]] = scf.if %[[DIFFER]] -> (i32) {
// CHECK: scf.while (%{{.*}} = %[[LOW]]#0,
// CHECK: arith.cmpi sle, %{{.*}}, %[[HIGHEST]]
// CHECK: } else {
// CHECK-NEXT: scf.yield %[[LOW]]#0
// The highest bit of the span first; both rows of a lane in one loop.
// CHECK: %[[SPAN:.*]] = arith.subi %[[HIGH]], %[[LOW]]#0
// CHECK: "llvm.intr.ctlz"(%[[SPAN]]) <{is_zero_poison = false}> : (i32) -> i32
// CHECK: scf.while (%[[STEP:.*]] = %{{.*}}, %[[A:.*]] = %[[LOW]]#0, %[[B:.*]] = %[[LOW]]#0) : (i32, i32, i32) -> (i32, i32, i32)
// CHECK: arith.cmpi ne, %[[STEP]], %c0_i32
// CHECK: ^bb0(%[[S:.*]]: i32, %[[P0:.*]]: i32, %[[P1:.*]]: i32):
// CHECK: %[[NEXT:.*]] = arith.shrui %[[S]], %c1_i32
// CHECK: %[[E0:.*]] = arith.addi %[[P0]], %[[S]]
// CHECK: %[[FITS0:.*]] = arith.cmpi ule, %[[E0]], %[[HIGH]]
// CHECK: %[[X0:.*]] = llvm.load
// CHECK: %[[E1:.*]] = arith.addi %[[P1]], %[[S]]
// CHECK: %[[X1:.*]] = llvm.load
// CHECK: %[[LE0:.*]] = arith.cmpi sle, %[[X0]]
// CHECK: %[[TAKE0:.*]] = arith.andi %[[FITS0]], %[[LE0]]
// CHECK: %[[N0:.*]] = arith.select %[[TAKE0]], %[[E0]], %[[P0]]
// CHECK: %[[N1:.*]] = arith.select %{{.*}}, %[[E1]], %[[P1]]
// CHECK: scf.yield %[[NEXT]], %[[N0]], %[[N1]]
func.func @rows(%ends: !ends, %m: memref<?xi32>, %batch: i32) {
  %c1 = arith.constant 1 : index
  %base = arith.constant 3 : i32
  warp.kernel @rows blocks(%i, %j, %k) in (%c1, %c1, %c1) warps(4) shared(0) {
    %r = warp.coords %base, 0 : !found
    %n = warp.search %ends[%batch], %r : !ends, !found, (i32) -> !found
    warp.store %n, %m[%i] rows : !found, memref<?xi32>
  }
  return
}

// Rows of memory that differ from row to row: nothing is common. The highest
// bit of the size first; where the row does not exist its size is 0, and nothing
// of it is taken.
// CHECK-LABEL: gpu.func @own_rows
// CHECK-NOT: nvvm.redux.sync
// CHECK: "llvm.intr.ctlz"(%[[SIZE:.*]]) <{is_zero_poison = false}> : (i32) -> i32
// CHECK: scf.while (%{{.*}} = %{{.*}}, %{{.*}} = %c0_i32, %{{.*}} = %c0_i32) : (i32, i32, i32) -> (i32, i32, i32)
func.func @own_rows(%ends: !ends, %m: memref<?xi32>) {
  %c1 = arith.constant 1 : index
  %base = arith.constant 3 : i32
  warp.kernel @own_rows blocks(%i, %j, %k) in (%c1, %c1, %c1) warps(4) shared(0) {
    %r = warp.coords %base, 0 : !found
    %n = warp.search %ends[%r], %r : !ends, !found, (!found) -> !found
    warp.store %n, %m[%i] rows : !found, memref<?xi32>
  }
  return
}

// One number for all lanes: 32 elements at a time, and a vote.
// CHECK-LABEL: gpu.func @scalar
// CHECK: scf.while (%[[LOW:.*]] = %c0_i32, %[[LENGTH:.*]] = %{{.*}}) : (i32, i32) -> (i32, i32)
// CHECK: ^bb0(%[[LOW:.*]]: i32, %[[LENGTH:.*]]: i32):
// CHECK: %[[ROUND:.*]] = arith.shrui %{{.*}}, %c5_i32
// CHECK: %[[PIECE:.*]] = arith.addi %[[ROUND]], %c1_i32
// CHECK: %[[EXISTS:.*]] = arith.cmpi ult, %{{.*}}, %[[LENGTH]]
// CHECK: llvm.load
// CHECK: %[[COUNTS:.*]] = arith.andi %[[EXISTS]]
// CHECK: %[[VOTES:.*]] = nvvm.vote.sync ballot %{{.*}}, %[[COUNTS]] -> i32
// CHECK: %[[PIECES:.*]] = llvm.intr.ctpop(%[[VOTES]])
// CHECK: %[[PASSED:.*]] = arith.muli %[[PIECES]], %[[PIECE]]
// CHECK: %[[REST:.*]] = arith.minsi
// CHECK: %[[NEXT:.*]] = arith.addi %[[LOW]], %[[PASSED]]
// CHECK: scf.yield %[[NEXT]], %[[REST]]
func.func @scalar(%ends: memref<?xi32>, %m: memref<?xi32>, %value: i32) {
  %c1 = arith.constant 1 : index
  warp.kernel @scalar blocks(%i, %j, %k) in (%c1, %c1, %c1) warps(4) shared(0) {
    %n = warp.search %ends[], %value : memref<?xi32>, i32, () -> i32
    %f = warp.splat %n : !found
    warp.store %f, %m[%i] rows : !found, memref<?xi32>
  }
  return
}
