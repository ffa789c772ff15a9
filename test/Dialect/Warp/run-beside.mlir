// RUN: attn-opt %s --warp-run-beside | FileCheck %s
// RUN: attn-opt %s --warp-run-beside --remarks-filter=warp-run-beside -o %t 2>&1 | FileCheck %s --check-prefix=REMARK

!view = memref<?x?x?x64xbf16>
!ring = !warp.ring<2, 64x64xbf16, panels<128>>
!t = !warp.slot<64x64xbf16, panels<128>>
!f = !warp.frag<64x64xbf16, acc, 1>

// Each idle warp of each block takes every so many-th block of the grid before.
// CHECK-LABEL: func.func @beside(
// CHECK-SAME: %[[X:.*]]: index, %[[Y:.*]]: index, %[[Z:.*]]: index, %[[O:[a-z0-9]+]]: memref
// CHECK-NOT: warp.kernel @zeros
// CHECK: warp.kernel @main blocks(%[[BLOCK:.*]], %{{.*}}, %{{.*}}) in
// CHECK-NOT: warp.exit_if
// CHECK: warp.role @load copy warps(4) {
// CHECK-NEXT: warp.beside {
// CHECK-NEXT: ^bb0(%[[WARP:.*]]: index):
// CHECK-DAG: %[[BEFORE:.*]] = arith.muli %[[BLOCK]], %[[THREE:.*]] :
// CHECK-DAG: %[[FIRST:.*]] = arith.addi %[[BEFORE]], %[[WARP]]
// CHECK-DAG: %[[GRID:.*]] = gpu.grid_dim x
// CHECK-DAG: %[[STEP:.*]] = arith.muli %[[GRID]], %[[THREE]]
// CHECK-DAG: %[[XY:.*]] = arith.muli %[[X]], %[[Y]]
// CHECK-DAG: %[[ALL:.*]] = arith.muli %[[XY]], %[[Z]]
// CHECK: scf.for %[[I:.*]] = %[[FIRST]] to %[[ALL]] step %[[STEP]] {
// CHECK-NEXT: %[[ROW:.*]] = arith.divui %[[I]], %[[X]]
// CHECK-NEXT: %[[ROWS:.*]] = arith.muli %[[ROW]], %[[X]]
// CHECK-NEXT: %[[OWNX:.*]] = arith.subi %[[I]], %[[ROWS]]
// CHECK-NEXT: %[[OWNZ:.*]] = arith.divui %[[ROW]], %[[Y]]
// CHECK-NEXT: %[[PLANES:.*]] = arith.muli %[[OWNZ]], %[[Y]]
// CHECK-NEXT: %[[OWNY:.*]] = arith.subi %[[ROW]], %[[PLANES]]
// CHECK-NEXT: %[[BUSY:.*]] = memref.load %{{.*}}[%[[OWNX]]]
// CHECK-NEXT: %[[TRUE:.*]] = arith.constant true
// CHECK-NEXT: %[[IDLE:.*]] = arith.xori %[[BUSY]], %[[TRUE]]
// CHECK-NEXT: scf.if %[[IDLE]] {
// CHECK: %[[ZERO:.*]] = warp.splat
// CHECK-NEXT: warp.store %[[ZERO]], %[[O]][%[[OWNZ]], %[[OWNY]], %{{.*}}, %c0]
// CHECK: warp.copy_async
// CHECK: warp.role @softmax
// REMARK: run-beside.mlir:[[#@LINE+4]]{{.*}}[Passed] run-beside
func.func @beside(%nx: index, %ny: index, %nz: index, %o: !view, %busy: memref<?xi1>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  warp.kernel @zeros blocks(%x, %y, %z) in (%nx, %ny, %nz) warps(1) independent {
    %b = memref.load %busy[%x] : memref<?xi1>
    warp.exit_if %b
    %c64 = arith.constant 64 : index
    %row = arith.muli %x, %c64 : index
    %zero = arith.constant 0.0 : bf16
    %f = warp.splat %zero : !f
    warp.store %f, %o[%z, %y, %row, %c0] : !f, !view
  }
  warp.kernel @main blocks(%x, %y, %z) in (%nx, %c1, %c1) warps(8) resident {
    %r = warp.ring fills(@load) drains(@softmax) : !ring
    %none = memref.load %busy[%x] : memref<?xi1>
    warp.exit_if %none
    warp.role @load copy warps(4) {
      warp.copy_async %o[%c0, %c0, %c0, %c0] to %r[%c0] by tma : !view, !ring
    }
    warp.role @softmax compute warps(4) {
      %s = warp.await %r[%c0] : !ring -> !t
      warp.release %s : !t
    }
  }
  return
}

// CHECK-LABEL: @apart(
// CHECK: warp.kernel @needed
// CHECK: warp.kernel @wide
// CHECK: warp.kernel @last
// CHECK-NOT: warp.beside
// REMARK: [Missed] run-beside{{.*}}its blocks are more than a warp
// REMARK: [Missed] run-beside{{.*}}the kernel after it has no idle warps that stay
func.func @apart(%n: index, %o: !view) {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : bf16
  // Not said to be independent.
  warp.kernel @needed blocks(%x, %y, %z) in (%n, %n, %n) warps(1) {
    %f = warp.splat %zero : !f
    warp.store %f, %o[%z, %y, %x, %c0] : !f, !view
  }
  warp.kernel @wide blocks(%x, %y, %z) in (%n, %n, %n) warps(2) independent {
    %f = warp.splat %zero : !warp.frag<64x64xbf16, acc, 2>
    warp.store %f, %o[%z, %y, %x, %c0] : !warp.frag<64x64xbf16, acc, 2>, !view
  }
  warp.kernel @last blocks(%x, %y, %z) in (%n, %n, %n) warps(1) independent {
    %f = warp.splat %zero : !f
    warp.store %f, %o[%z, %y, %x, %c0] : !f, !view
  }
  return
}
