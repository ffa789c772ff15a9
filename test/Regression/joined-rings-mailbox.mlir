// RUN: attn-opt %s --warp-assign-resources --convert-warp-to-gpu=chip=sm_90a | FileCheck %s

// @second fills A and B, but receives a number between: @first sends it when C
// has been given back, which @compute does before it awaits B. Had A and B one
// barrier, @compute would wait for B where it awaits A, for ever. Two barriers
// for each ring and for the mailbox.
// CHECK-LABEL: gpu.func @received_between
// CHECK-COUNT-8: mbarrier.init.shared
// CHECK-NOT: mbarrier.init.shared
!view = memref<?x?x64xbf16, strided<[?, ?, 1]>>
!ring = !warp.ring<1, 64x64xbf16, panels<128>>
!t = !warp.slot<64x64xbf16, panels<128>>
!mail = !warp.mailbox<1, 1>
func.func @received_between(%q: !view) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c64 = arith.constant 64 : index
  %rows = memref.dim %q, %c1 : !view
  %n = arith.ceildivsi %rows, %c64 : index
  warp.kernel @received_between blocks(%x, %h, %b) in (%c1, %c1, %c1) warps(12) {
    %A = warp.ring fills(@second) drains(@compute) : !ring
    %B = warp.ring fills(@second) drains(@compute) : !ring
    %C = warp.ring fills(@first) drains(@compute) : !ring
    %M = warp.mailbox fills(@first) drains(@second) : !mail
    warp.role @first copy warps(4) {
      %e:2 = scf.for %i = %c0 to %n step %c1 iter_args(%c = %c0, %m = %c0) -> (index, index) {
        warp.copy_async %q[%c0, %i, %c0] to %C[%c] by tma : !view, !ring
        %d = arith.addi %c, %c1 : index
        warp.copy_async %q[%c0, %i, %c0] to %C[%d] by tma : !view, !ring
        warp.send %i to %M[%m] : !mail
        %cn = arith.addi %c, %c2 : index
        %mn = arith.addi %m, %c1 : index
        scf.yield %cn, %mn : index, index
      }
    }
    warp.role @second copy warps(4) {
      %e:2 = scf.for %i = %c0 to %n step %c1 iter_args(%a = %c0, %m = %c0) -> (index, index) {
        warp.copy_async %q[%c0, %i, %c0] to %A[%a] by tma : !view, !ring
        %row = warp.receive %M[%m] : !mail
        warp.copy_async %q[%c0, %row, %c0] to %B[%a] by tma : !view, !ring
        %an = arith.addi %a, %c1 : index
        %mn = arith.addi %m, %c1 : index
        scf.yield %an, %mn : index, index
      }
    }
    warp.role @compute compute warps(4) {
      %e:2 = scf.for %i = %c0 to %n step %c1 iter_args(%a = %c0, %c = %c0) -> (index, index) {
        %at = warp.await %A[%a] : !ring -> !t
        %ct = warp.await %C[%c] : !ring -> !t
        warp.release %ct : !t
        %d = arith.addi %c, %c1 : index
        %dt = warp.await %C[%d] : !ring -> !t
        warp.release %dt : !t
        %bt = warp.await %B[%a] : !ring -> !t
        warp.release %at : !t
        warp.release %bt : !t
        %an = arith.addi %a, %c1 : index
        %cn = arith.addi %c, %c2 : index
        scf.yield %an, %cn : index, index
      }
    }
  }
  return
}
