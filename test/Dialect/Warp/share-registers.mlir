// RUN: attn-opt %s --warp-share-registers --remarks-filter=warp-share-registers 2>%t | FileCheck %s
// RUN: FileCheck %s --check-prefix=SAID < %t

!view = memref<?x?x?x128xbf16, strided<[?, ?, ?, 1], offset: ?>>
!two = !warp.ring<2, 128x128xbf16, panels<128>>
!k = !warp.slot<128x128xbf16, panels<128>>
!s = !warp.frag<128x128xf32, acc, 8>

// The loop of the producer uses more numbers than it has registers.
// CHECK-LABEL: @many_numbers
// CHECK: warp.role @load copy warps(4) registers(56)
// CHECK: warp.role @softmax compute warps(8) registers(224)
// SAID: [Passed] share-registers {{.*}}registers=16
func.func @many_numbers(%n: index, %q: !view, %a0: index, %a1: index, %a2: index, %a3: index, %a4: index, %a5: index, %a6: index, %a7: index, %a8: index, %a9: index, %a10: index, %a11: index, %a12: index, %a13: index, %a14: index, %a15: index, %a16: index, %a17: index, %a18: index, %a19: index, %a20: index, %a21: index, %a22: index, %a23: index, %a24: index, %a25: index, %a26: index, %a27: index, %a28: index, %a29: index, %a30: index, %a31: index, %a32: index, %a33: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  warp.kernel @many_numbers blocks(%x, %h, %b) in (%n, %c1, %c1) warps(12) {
    %K = warp.ring fills(@load) drains(@softmax) : !two
    warp.role @load copy warps(4) registers(40) {
      %end = scf.for %t = %c0 to %n step %c1 iter_args(%item = %c0) -> (index) {
        %s0 = arith.addi %t, %x : index
        %s1 = arith.addi %s0, %a0 : index
        %s2 = arith.addi %s1, %a1 : index
        %s3 = arith.addi %s2, %a2 : index
        %s4 = arith.addi %s3, %a3 : index
        %s5 = arith.addi %s4, %a4 : index
        %s6 = arith.addi %s5, %a5 : index
        %s7 = arith.addi %s6, %a6 : index
        %s8 = arith.addi %s7, %a7 : index
        %s9 = arith.addi %s8, %a8 : index
        %s10 = arith.addi %s9, %a9 : index
        %s11 = arith.addi %s10, %a10 : index
        %s12 = arith.addi %s11, %a11 : index
        %s13 = arith.addi %s12, %a12 : index
        %s14 = arith.addi %s13, %a13 : index
        %s15 = arith.addi %s14, %a14 : index
        %s16 = arith.addi %s15, %a15 : index
        %s17 = arith.addi %s16, %a16 : index
        %s18 = arith.addi %s17, %a17 : index
        %s19 = arith.addi %s18, %a18 : index
        %s20 = arith.addi %s19, %a19 : index
        %s21 = arith.addi %s20, %a20 : index
        %s22 = arith.addi %s21, %a21 : index
        %s23 = arith.addi %s22, %a22 : index
        %s24 = arith.addi %s23, %a23 : index
        %s25 = arith.addi %s24, %a24 : index
        %s26 = arith.addi %s25, %a25 : index
        %s27 = arith.addi %s26, %a26 : index
        %s28 = arith.addi %s27, %a27 : index
        %s29 = arith.addi %s28, %a28 : index
        %s30 = arith.addi %s29, %a29 : index
        %s31 = arith.addi %s30, %a30 : index
        %s32 = arith.addi %s31, %a31 : index
        %s33 = arith.addi %s32, %a32 : index
        %s34 = arith.addi %s33, %a33 : index
        warp.copy_async %q[%b, %h, %s34, %c0] to %K[%item] by tma : !view, !two
        %next = arith.addi %item, %c1 : index
        scf.yield %next : index
      }
    }
    warp.role @softmax compute warps(8) registers(232) {
      %zero = arith.constant 0.0 : f32
      %z = warp.splat %zero : !s
      %end = scf.for %t = %c0 to %n step %c1 iter_args(%item = %c0) -> (index) {
        %kt = warp.await %K[%item] : !two -> !k
        %s = warp.mma wgmma %kt, %kt, %z transpose_b : !k, !k, !s
        warp.release %kt : !k
        %next = arith.addi %item, %c1 : index
        scf.yield %next : index
      }
    }
  }
  return
}

// Few numbers.
// CHECK-LABEL: @few_numbers
// CHECK: warp.role @load copy warps(4) registers(40)
// CHECK: warp.role @softmax compute warps(8) registers(232)
// SAID: [Missed] share-registers {{.*}}the producer has what it needs, or the consumer nothing to spare
func.func @few_numbers(%n: index, %q: !view, %a0: index, %a1: index, %a2: index, %a3: index, %a4: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  warp.kernel @few_numbers blocks(%x, %h, %b) in (%n, %c1, %c1) warps(12) {
    %K = warp.ring fills(@load) drains(@softmax) : !two
    warp.role @load copy warps(4) registers(40) {
      %end = scf.for %t = %c0 to %n step %c1 iter_args(%item = %c0) -> (index) {
        %s0 = arith.addi %t, %x : index
        %s1 = arith.addi %s0, %a0 : index
        %s2 = arith.addi %s1, %a1 : index
        %s3 = arith.addi %s2, %a2 : index
        %s4 = arith.addi %s3, %a3 : index
        %s5 = arith.addi %s4, %a4 : index
        warp.copy_async %q[%b, %h, %s5, %c0] to %K[%item] by tma : !view, !two
        %next = arith.addi %item, %c1 : index
        scf.yield %next : index
      }
    }
    warp.role @softmax compute warps(8) registers(232) {
      %zero = arith.constant 0.0 : f32
      %z = warp.splat %zero : !s
      %end = scf.for %t = %c0 to %n step %c1 iter_args(%item = %c0) -> (index) {
        %kt = warp.await %K[%item] : !two -> !k
        %s = warp.mma wgmma %kt, %kt, %z transpose_b : !k, !k, !s
        warp.release %kt : !k
        %next = arith.addi %item, %c1 : index
        scf.yield %next : index
      }
    }
  }
  return
}

// The plan says it.
// CHECK-LABEL: @said
// CHECK: warp.role @load copy warps(4) registers(24)
// CHECK: warp.role @softmax compute warps(8) registers(240)
// SAID: [Missed] share-registers {{.*}}the plan says how many registers the consumer has
func.func @said(%n: index, %q: !view, %a0: index, %a1: index, %a2: index, %a3: index, %a4: index, %a5: index, %a6: index, %a7: index, %a8: index, %a9: index, %a10: index, %a11: index, %a12: index, %a13: index, %a14: index, %a15: index, %a16: index, %a17: index, %a18: index, %a19: index, %a20: index, %a21: index, %a22: index, %a23: index, %a24: index, %a25: index, %a26: index, %a27: index, %a28: index, %a29: index, %a30: index, %a31: index, %a32: index, %a33: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  warp.kernel @said blocks(%x, %h, %b) in (%n, %c1, %c1) warps(12) registers(240) {
    %K = warp.ring fills(@load) drains(@softmax) : !two
    warp.role @load copy warps(4) registers(24) {
      %end = scf.for %t = %c0 to %n step %c1 iter_args(%item = %c0) -> (index) {
        %s0 = arith.addi %t, %x : index
        %s1 = arith.addi %s0, %a0 : index
        %s2 = arith.addi %s1, %a1 : index
        %s3 = arith.addi %s2, %a2 : index
        %s4 = arith.addi %s3, %a3 : index
        %s5 = arith.addi %s4, %a4 : index
        %s6 = arith.addi %s5, %a5 : index
        %s7 = arith.addi %s6, %a6 : index
        %s8 = arith.addi %s7, %a7 : index
        %s9 = arith.addi %s8, %a8 : index
        %s10 = arith.addi %s9, %a9 : index
        %s11 = arith.addi %s10, %a10 : index
        %s12 = arith.addi %s11, %a11 : index
        %s13 = arith.addi %s12, %a12 : index
        %s14 = arith.addi %s13, %a13 : index
        %s15 = arith.addi %s14, %a14 : index
        %s16 = arith.addi %s15, %a15 : index
        %s17 = arith.addi %s16, %a16 : index
        %s18 = arith.addi %s17, %a17 : index
        %s19 = arith.addi %s18, %a18 : index
        %s20 = arith.addi %s19, %a19 : index
        %s21 = arith.addi %s20, %a20 : index
        %s22 = arith.addi %s21, %a21 : index
        %s23 = arith.addi %s22, %a22 : index
        %s24 = arith.addi %s23, %a23 : index
        %s25 = arith.addi %s24, %a24 : index
        %s26 = arith.addi %s25, %a25 : index
        %s27 = arith.addi %s26, %a26 : index
        %s28 = arith.addi %s27, %a27 : index
        %s29 = arith.addi %s28, %a28 : index
        %s30 = arith.addi %s29, %a29 : index
        %s31 = arith.addi %s30, %a30 : index
        %s32 = arith.addi %s31, %a31 : index
        %s33 = arith.addi %s32, %a32 : index
        %s34 = arith.addi %s33, %a33 : index
        warp.copy_async %q[%b, %h, %s34, %c0] to %K[%item] by tma : !view, !two
        %next = arith.addi %item, %c1 : index
        scf.yield %next : index
      }
    }
    warp.role @softmax compute warps(8) registers(240) {
      %zero = arith.constant 0.0 : f32
      %z = warp.splat %zero : !s
      %end = scf.for %t = %c0 to %n step %c1 iter_args(%item = %c0) -> (index) {
        %kt = warp.await %K[%item] : !two -> !k
        %s = warp.mma wgmma %kt, %kt, %z transpose_b : !k, !k, !s
        warp.release %kt : !k
        %next = arith.addi %item, %c1 : index
        scf.yield %next : index
      }
    }
  }
  return
}
