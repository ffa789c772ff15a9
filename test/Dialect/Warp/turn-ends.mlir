// RUN: attn-opt %s --warp-turn-ends | FileCheck %s
// RUN: attn-opt %s --warp-turn-ends --remarks-filter=warp-turn-ends -o /dev/null 2>&1 | FileCheck %s --check-prefix=REMARK

!view = memref<?x?x?x128xbf16, strided<[?, ?, ?, 1], offset: ?>>
!ring = !warp.ring<2, 64x128xbf16, panels<128>>
!t = !warp.slot<64x128xbf16, panels<128>>
!s = !warp.frag<128x64xf32, acc, 8>
!o = !warp.frag<128x128xf32, acc, 8>
!a = !warp.frag<128x64xbf16, a, 8>
!qa = !warp.frag<128x128xbf16, a, 8>
!sp = !warp.pending<128x64xf32, acc, 8>
!op = !warp.pending<128x128xf32, acc, 8>

// The scores of the first block and the last P V are issued in a turn of their
// own; the turns of the loop stay.
// CHECK-LABEL: @tile
func.func @tile(%n: index, %k: !view, %v: !view) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  // REMARK: [Passed] turn-ends | Category:warp-turn-ends | turns=2
  warp.kernel @tile blocks(%x, %h, %b) in (%n, %n, %n) warps(12) {
    %K = warp.ring fills(@load) drains(@softmax) : !ring
    %V = warp.ring fills(@load) drains(@softmax) : !ring
    warp.role @load copy warps(4) {
      warp.copy_async %k[%b, %h, %c0, %c0] to %K[%c0] by tma : !view, !ring
      %r:2 = scf.for %i = %c1 to %n step %c1 iter_args(%kn = %c1, %vn = %c0) -> (index, index) {
        warp.copy_async %k[%b, %h, %i, %c0] to %K[%kn] by tma : !view, !ring
        %kn1 = arith.addi %kn, %c1 : index
        warp.copy_async %v[%b, %h, %i, %c0] to %V[%vn] by tma : !view, !ring
        %vn1 = arith.addi %vn, %c1 : index
        scf.yield %kn1, %vn1 : index, index
      }
      warp.copy_async %v[%b, %h, %n, %c0] to %V[%r#1] by tma : !view, !ring
    }
    warp.role @softmax compute warps(8) {
      %zero = arith.constant 0.0 : f32
      %zs = warp.splat %zero : !s
      %zo = warp.splat %zero : !o
      %zb = warp.cast truncf %zs : !s to !warp.frag<128x64xbf16, acc, 8>
      %qb = warp.cast truncf %zo : !o to !warp.frag<128x128xbf16, acc, 8>
      %qa = warp.convert %qb : !warp.frag<128x128xbf16, acc, 8> -> !qa
      // CHECK: %[[K:.*]] = warp.await
      // CHECK-NEXT: %[[T:.*]] = warp.turn {
      // CHECK-NEXT: %[[P:.*]] = warp.mma_async wgmma %{{.*}}, %[[K]]
      // CHECK-NEXT: warp.yield %[[P]] : !warp.pending<128x64xf32, acc, 8>
      // CHECK-NEXT: } : !warp.pending<128x64xf32, acc, 8>
      // CHECK-NEXT: warp.wait %[[T]]
      %k0 = warp.await %K[%c0] : !ring -> !t
      %p0 = warp.mma_async wgmma %qa, %k0, %zs transpose_b : !qa, !t, !s
      %s0 = warp.wait %p0 : !sp
      warp.release %k0 : !t
      // CHECK: scf.for
      // CHECK: warp.turn {
      // CHECK-COUNT-2: warp.mma_async
      // CHECK-NOT: warp.turn
      %r:3 = scf.for %i = %c1 to %n step %c1 iter_args(%o = %zo, %kn = %c1, %vn = %c0) -> (!o, index, index) {
        %kt = warp.await %K[%kn] : !ring -> !t
        %kn1 = arith.addi %kn, %c1 : index
        %vn1 = arith.addi %vn, %c1 : index
        %a = warp.convert %zb : !warp.frag<128x64xbf16, acc, 8> -> !a
        %both:3 = warp.turn {
          %sp = warp.mma_async wgmma %qa, %kt, %zs transpose_b : !qa, !t, !s
          %vt = warp.await %V[%vn] : !ring -> !t
          %op = warp.mma_async wgmma %a, %vt, %o : !a, !t, !o
          warp.yield %sp, %vt, %op : !sp, !t, !op
        } : !sp, !t, !op
        %s = warp.wait %both#0 : !sp
        warp.release %kt : !t
        %o1 = warp.wait %both#2 : !op
        warp.release %both#1 : !t
        scf.yield %o1, %kn1, %vn1 : !o, index, index
      }
      // CHECK: %[[V:.*]] = warp.await
      // CHECK: %[[L:.*]] = warp.turn {
      // CHECK-NEXT: %[[O:.*]] = warp.mma_async wgmma %{{.*}}, %[[V]]
      // CHECK-NEXT: warp.yield %[[O]]
      // CHECK: warp.wait %[[L]]
      %v0 = warp.await %V[%r#2] : !ring -> !t
      %a0 = warp.convert %zb : !warp.frag<128x64xbf16, acc, 8> -> !a
      %l = warp.mma_async wgmma %a0, %v0, %r#0 : !a, !t, !o
      %o2 = warp.wait %l : !op
      warp.release %v0 : !t
    }
  }
  return
}

// CHECK-LABEL: @no_turns
// CHECK-NOT: warp.turn
func.func @no_turns(%n: index, %k: !view) {
  %c0 = arith.constant 0 : index
  // REMARK: {{^}}{{.*}}:[[@LINE+1]]:{{.*}} Remark="no products of a loop take turns"
  warp.kernel @no_turns blocks(%x, %h, %b) in (%n, %n, %n) warps(12) {
    %K = warp.ring fills(@load) drains(@softmax) : !ring
    warp.role @load copy warps(4) {
      warp.copy_async %k[%b, %h, %c0, %c0] to %K[%c0] by tma : !view, !ring
    }
    warp.role @softmax compute warps(8) {
      %zero = arith.constant 0.0 : f32
      %zs = warp.splat %zero : !s
      %zo = warp.splat %zero : !o
      %qb = warp.cast truncf %zo : !o to !warp.frag<128x128xbf16, acc, 8>
      %qa = warp.convert %qb : !warp.frag<128x128xbf16, acc, 8> -> !qa
      %k0 = warp.await %K[%c0] : !ring -> !t
      %p0 = warp.mma_async wgmma %qa, %k0, %zs transpose_b : !qa, !t, !s
      %s0 = warp.wait %p0 : !sp
      warp.release %k0 : !t
    }
  }
  return
}

// Groups pass over blocks: with one product behind the loop they are one turn
// apart, with two they would be two turns apart.
// CHECK-LABEL: @one_behind
// CHECK-COUNT-3: warp.turn
func.func @one_behind(%n: index, %k: !view) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  // REMARK: [Passed] turn-ends | Category:warp-turn-ends | turns=1
  warp.kernel @one_behind blocks(%x, %h, %b) in (%n, %n, %n) warps(12) {
    %K = warp.ring fills(@load) drains(@softmax) : !ring
    %Q = warp.ring fills(@load) drains(@softmax) : !warp.ring<1, 64x128xbf16, panels<128>>
    warp.role @load copy warps(4) {
      warp.copy_async %k[%b, %h, %c0, %c0] to %Q[%c0] by tma : !view, !warp.ring<1, 64x128xbf16, panels<128>>
      scf.for %i = %c0 to %n step %c1 iter_args(%j = %c0) -> (index) {
        warp.copy_async %k[%b, %h, %i, %c0] to %K[%j] by tma : !view, !ring
        %j1 = arith.addi %j, %c1 : index
        scf.yield %j1 : index
      }
    }
    warp.role @softmax compute warps(8) group(%group) {
      %zero = arith.constant 0.0 : f32
      %zo = warp.splat %zero : !o
      %zs = warp.splat %zero : !s
      %zb = warp.cast truncf %zs : !s to !warp.frag<128x64xbf16, acc, 8>
      %a = warp.convert %zb : !warp.frag<128x64xbf16, acc, 8> -> !a
      %q = warp.await %Q[%c0] : !warp.ring<1, 64x128xbf16, panels<128>> -> !t
      %one = arith.maxsi %group, %c1 : index
      %end = arith.minsi %one, %n : index
      %own = scf.for %i = %c0 to %end step %c1 iter_args(%j = %c0) -> (index) {
        %kt = warp.await %K[%j] : !ring -> !t
        %p = warp.turn {
          %op = warp.mma_async wgmma %a, %kt, %zo : !a, !t, !o
          warp.yield %op : !op
        } : !op
        %o = warp.wait %p : !op
        warp.release %kt : !t
        %j1 = arith.addi %j, %c1 : index
        scf.yield %j1 : index
      }
      %b1 = warp.mma_async wgmma %a, %q, %zo : !a, !t, !o
      %o1 = warp.wait %b1 : !op
      warp.release %q : !t
      scf.for %i = %end to %n step %c1 iter_args(%j = %own) -> (index) {
        warp.turn {
          warp.yield
        }
        %s = warp.await %K[%j] : !ring -> !t
        warp.release %s : !t
        %j1 = arith.addi %j, %c1 : index
        scf.yield %j1 : index
      }
    }
  }
  return
}

// CHECK-LABEL: @two_behind
// CHECK-COUNT-2: warp.turn
// CHECK-NOT: warp.turn
func.func @two_behind(%n: index, %k: !view) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  // REMARK: {{^}}{{.*}}:[[@LINE+1]]:{{.*}} Remark="groups that pass over blocks would be several turns apart"
  warp.kernel @two_behind blocks(%x, %h, %b) in (%n, %n, %n) warps(12) {
    %K = warp.ring fills(@load) drains(@softmax) : !ring
    %Q = warp.ring fills(@load) drains(@softmax) : !warp.ring<1, 64x128xbf16, panels<128>>
    warp.role @load copy warps(4) {
      warp.copy_async %k[%b, %h, %c0, %c0] to %Q[%c0] by tma : !view, !warp.ring<1, 64x128xbf16, panels<128>>
      scf.for %i = %c0 to %n step %c1 iter_args(%j = %c0) -> (index) {
        warp.copy_async %k[%b, %h, %i, %c0] to %K[%j] by tma : !view, !ring
        %j1 = arith.addi %j, %c1 : index
        scf.yield %j1 : index
      }
    }
    warp.role @softmax compute warps(8) group(%group) {
      %zero = arith.constant 0.0 : f32
      %zo = warp.splat %zero : !o
      %zs = warp.splat %zero : !s
      %zb = warp.cast truncf %zs : !s to !warp.frag<128x64xbf16, acc, 8>
      %a = warp.convert %zb : !warp.frag<128x64xbf16, acc, 8> -> !a
      %q = warp.await %Q[%c0] : !warp.ring<1, 64x128xbf16, panels<128>> -> !t
      %one = arith.maxsi %group, %c1 : index
      %end = arith.minsi %one, %n : index
      %own = scf.for %i = %c0 to %end step %c1 iter_args(%j = %c0) -> (index) {
        %kt = warp.await %K[%j] : !ring -> !t
        %p = warp.turn {
          %op = warp.mma_async wgmma %a, %kt, %zo : !a, !t, !o
          warp.yield %op : !op
        } : !op
        %o = warp.wait %p : !op
        warp.release %kt : !t
        %j1 = arith.addi %j, %c1 : index
        scf.yield %j1 : index
      }
      %b1 = warp.mma_async wgmma %a, %q, %zo : !a, !t, !o
      %b2 = warp.mma_async wgmma %a, %q, %zo : !a, !t, !o
      %o1 = warp.wait %b1 : !op
      %o2 = warp.wait %b2 : !op
      warp.release %q : !t
      scf.for %i = %end to %n step %c1 iter_args(%j = %own) -> (index) {
        warp.turn {
          warp.yield
        }
        %s = warp.await %K[%j] : !ring -> !t
        warp.release %s : !t
        %j1 = arith.addi %j, %c1 : index
        scf.yield %j1 : index
      }
    }
  }
  return
}
