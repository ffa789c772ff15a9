// RUN: not attn-opt --attn-sm90 %s 2>&1 | FileCheck %s
// The number of a ring item that is made from itself.
// CHECK: operand #0 does not dominate this use
func.func @w3_good(%n: index, %v: memref<?x?xbf16, strided<[?, 1]>>, %acc: !warp.frag<64x64xf32, acc, 4>) {
  warp.kernel @w3_good blocks(%x, %h, %b) in (%n, %n, %n) warps(4) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %c3 = arith.constant 3 : index
    %r = warp.ring : !warp.ring<2, 64x64xbf16>
    scf.for %i = %c0 to %n step %c1 {
      %s = warp.await %r[%i] : !warp.ring<2, 64x64xbf16> -> !warp.slot<64x64xbf16>
      %next = arith.addi %next, %c1 : index
      warp.copy_async %v[%x, %h] to %r[%next] : memref<?x?xbf16, strided<[?, 1]>>, !warp.ring<2, 64x64xbf16>
      warp.release %s : !warp.slot<64x64xbf16>
    }
  }
  return
}

