// RUN: attn-opt %s --warp-insert-turns --allow-unregistered-dialect | FileCheck %s
// RUN: attn-opt %s --warp-insert-turns --allow-unregistered-dialect --remarks-filter=warp-insert-turns -o /dev/null 2>&1 | FileCheck %s --check-prefix=REMARK

!view = memref<?x?x?x128xbf16, strided<[?, ?, ?, 1], offset: ?>>
!ring = !warp.ring<2, 64x128xbf16, panels<128>>
!one = !warp.ring<1, 64x128xbf16, panels<128>>
!t = !warp.slot<64x128xbf16, panels<128>>
!s = !warp.frag<128x64xf32, acc, 8>
!o = !warp.frag<128x128xf32, acc, 8>
!a = !warp.frag<128x64xbf16, a, 8>
!qa = !warp.frag<128x128xbf16, a, 8>

// What does not depend on the products stands before the turn; the await
// between them is part of it and its slot is yielded.
// CHECK-LABEL: @pair
func.func @pair(%n: index, %k: !view, %v: !view) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  warp.kernel @pair blocks(%x, %h, %b) in (%n, %n, %n) warps(12) {
    %K = warp.ring fills(@load) drains(@softmax) : !ring
    %V = warp.ring fills(@load) drains(@softmax) : !ring
    warp.role @load copy warps(4) {
      %r:2 = scf.for %i = %c0 to %n step %c1 iter_args(%kn = %c0, %vn = %c0) -> (index, index) {
        warp.copy_async %k[%b, %h, %i, %c0] to %K[%kn] by tma : !view, !ring
        %kn1 = arith.addi %kn, %c1 : index
        warp.copy_async %v[%b, %h, %i, %c0] to %V[%vn] by tma : !view, !ring
        %vn1 = arith.addi %vn, %c1 : index
        scf.yield %kn1, %vn1 : index, index
      }
    }
    warp.role @softmax compute warps(8) {
      %zero = arith.constant 0.0 : f32
      %zs = warp.splat %zero : !s
      %zo = warp.splat %zero : !o
      %zb = warp.cast truncf %zs : !s to !warp.frag<128x64xbf16, acc, 8>
      %qb = warp.cast truncf %zo : !o to !warp.frag<128x128xbf16, acc, 8>
      %qa = warp.convert %qb : !warp.frag<128x128xbf16, acc, 8> -> !qa
      // CHECK: scf.for
      %r:3 = scf.for %i = %c0 to %n step %c1 iter_args(%o = %zo, %kn = %c0, %vn = %c0) -> (!o, index, index) {
        // CHECK: %[[K:.*]] = warp.await
        %kt = warp.await %K[%kn] : !ring -> !t
        %kn1 = arith.addi %kn, %c1 : index
        // CHECK: %[[VN:.*]] = arith.addi
        // CHECK: %[[A:.*]] = warp.convert
        // CHECK-NEXT: %[[T:.*]]:3 = warp.turn {
        // CHECK-NEXT: %[[SP:.*]] = warp.mma_async wgmma %{{.*}}, %[[K]]
        // CHECK-NEXT: %[[V:.*]] = warp.await
        // CHECK-NEXT: %[[OP:.*]] = warp.mma_async wgmma %[[A]], %[[V]]
        // CHECK-NEXT: warp.yield %[[SP]], %[[V]], %[[OP]] : !warp.pending<128x64xf32, acc, 8>, !warp.slot<64x128xbf16, panels<128>>, !warp.pending<128x128xf32, acc, 8>
        // CHECK-NEXT: }
        %sp = warp.mma_async wgmma %qa, %kt, %zs transpose_b : !qa, !t, !s
        %vt = warp.await %V[%vn] : !ring -> !t
        %vn1 = arith.addi %vn, %c1 : index
        %a = warp.convert %zb : !warp.frag<128x64xbf16, acc, 8> -> !a
        %op = warp.mma_async wgmma %a, %vt, %o : !a, !t, !o
        // CHECK: warp.wait %[[T]]#0
        %s = warp.wait %sp : !warp.pending<128x64xf32, acc, 8>
        warp.release %kt : !t
        // CHECK: warp.wait %[[T]]#2
        %o1 = warp.wait %op : !warp.pending<128x128xf32, acc, 8>
        // CHECK: warp.release %[[T]]#1
        warp.release %vt : !t
        scf.yield %o1, %kn1, %vn1 : !o, index, index
      }
    }
  }
  return
}

// Each product is done before the next is issued.
// CHECK-LABEL: @one_after_the_other
// CHECK-NOT: warp.turn
func.func @one_after_the_other(%n: index, %k: !view) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  // REMARK: {{^}}{{.*}}:[[@LINE+1]]:{{.*}} Remark="no two products are in flight together in a loop"
  warp.kernel @one_after_the_other blocks(%x, %h, %b) in (%n, %n, %n) warps(12) {
    %K = warp.ring fills(@load) drains(@softmax) : !ring
    warp.role @load copy warps(4) {
      %r = scf.for %i = %c0 to %n step %c1 iter_args(%kn = %c0) -> (index) {
        warp.copy_async %k[%b, %h, %i, %c0] to %K[%kn] by tma : !view, !ring
        %kn1 = arith.addi %kn, %c1 : index
        scf.yield %kn1 : index
      }
    }
    warp.role @softmax compute warps(8) {
      %zero = arith.constant 0.0 : f32
      %zs = warp.splat %zero : !s
      %zo = warp.splat %zero : !o
      %qb = warp.cast truncf %zo : !o to !warp.frag<128x128xbf16, acc, 8>
      %qa = warp.convert %qb : !warp.frag<128x128xbf16, acc, 8> -> !qa
      %r = scf.for %i = %c0 to %n step %c1 iter_args(%kn = %c0) -> (index) {
        %kt = warp.await %K[%kn] : !ring -> !t
        %kn1 = arith.addi %kn, %c1 : index
        %sp = warp.mma_async wgmma %qa, %kt, %zs transpose_b : !qa, !t, !s
        %s = warp.wait %sp : !warp.pending<128x64xf32, acc, 8>
        %tp = warp.mma_async wgmma %qa, %kt, %s transpose_b : !qa, !t, !s
        %t = warp.wait %tp : !warp.pending<128x64xf32, acc, 8>
        warp.release %kt : !t
        scf.yield %kn1 : index
      }
    }
  }
  return
}

// Two products of scores, then three: both take turns.
// CHECK-LABEL: @twice
func.func @twice(%n: index, %k: !view) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  warp.kernel @twice blocks(%x, %h, %b) in (%n, %n, %n) warps(12) {
    %K = warp.ring fills(@load) drains(@softmax) : !ring
    warp.role @load copy warps(4) {
      %r = scf.for %i = %c0 to %n step %c1 iter_args(%kn = %c0) -> (index) {
        warp.copy_async %k[%b, %h, %i, %c0] to %K[%kn] by tma : !view, !ring
        %kn1 = arith.addi %kn, %c1 : index
        scf.yield %kn1 : index
      }
    }
    warp.role @softmax compute warps(8) {
      %zero = arith.constant 0.0 : f32
      %zs = warp.splat %zero : !s
      %zo = warp.splat %zero : !o
      %zb = warp.cast truncf %zs : !s to !warp.frag<128x64xbf16, acc, 8>
      %a = warp.convert %zb : !warp.frag<128x64xbf16, acc, 8> -> !a
      %qb = warp.cast truncf %zo : !o to !warp.frag<128x128xbf16, acc, 8>
      %qa = warp.convert %qb : !warp.frag<128x128xbf16, acc, 8> -> !qa
      %r:4 = scf.for %i = %c0 to %n step %c1 iter_args(%x0 = %zo, %y0 = %zo, %z0 = %zo, %kn = %c0) -> (!o, !o, !o, index) {
        %kt = warp.await %K[%kn] : !ring -> !t
        %kn1 = arith.addi %kn, %c1 : index
        // CHECK: warp.await
        // CHECK: warp.turn {
        // CHECK-COUNT-2: warp.mma_async
        // CHECK-COUNT-2: warp.wait
        // CHECK-NEXT: warp.turn {
        // CHECK-COUNT-3: warp.mma_async
        // CHECK-NOT: warp.turn
        %sp = warp.mma_async wgmma %qa, %kt, %zs transpose_b : !qa, !t, !s
        %tp = warp.mma_async wgmma %qa, %kt, %zs transpose_b : !qa, !t, !s
        %s = warp.wait %sp : !warp.pending<128x64xf32, acc, 8>
        %t = warp.wait %tp : !warp.pending<128x64xf32, acc, 8>
        %xp = warp.mma_async wgmma %a, %kt, %x0 : !a, !t, !o
        %yp = warp.mma_async wgmma %a, %kt, %y0 : !a, !t, !o
        %zp = warp.mma_async wgmma %a, %kt, %z0 : !a, !t, !o
        %x1 = warp.wait %xp : !warp.pending<128x128xf32, acc, 8>
        %y1 = warp.wait %yp : !warp.pending<128x128xf32, acc, 8>
        %z1 = warp.wait %zp : !warp.pending<128x128xf32, acc, 8>
        warp.release %kt : !t
        scf.yield %x1, %y1, %z1, %kn1 : !o, !o, !o, index
      }
    }
  }
  return
}

// A group that has its turn would wait until the others, whose turns come
// later, have left the only slot of the values.
// CHECK-LABEL: @one_slot(
// CHECK-NOT: warp.turn
func.func @one_slot(%n: index, %k: !view, %v: !view) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  // REMARK: {{^}}{{.*}}:[[@LINE+1]]:{{.*}} Remark="in its turn a group would wait for a ring of one slot, which the others have to leave"
  warp.kernel @one_slot blocks(%x, %h, %b) in (%n, %n, %n) warps(12) {
    %K = warp.ring fills(@load) drains(@softmax) : !ring
    %V = warp.ring fills(@load) drains(@softmax) : !one
    warp.role @load copy warps(4) {
      %r = scf.for %i = %c0 to %n step %c1 iter_args(%j = %c0) -> (index) {
        warp.copy_async %k[%b, %h, %i, %c0] to %K[%j] by tma : !view, !ring
        warp.copy_async %v[%b, %h, %i, %c0] to %V[%j] by tma : !view, !one
        %j1 = arith.addi %j, %c1 : index
        scf.yield %j1 : index
      }
    }
    warp.role @softmax compute warps(8) {
      %zero = arith.constant 0.0 : f32
      %zs = warp.splat %zero : !s
      %zo = warp.splat %zero : !o
      %qb = warp.cast truncf %zo : !o to !warp.frag<128x128xbf16, acc, 8>
      %qa = warp.convert %qb : !warp.frag<128x128xbf16, acc, 8> -> !qa
      %r = scf.for %i = %c0 to %n step %c1 iter_args(%j = %c0) -> (index) {
        %kt = warp.await %K[%j] : !ring -> !t
        %sp = warp.mma_async wgmma %qa, %kt, %zs transpose_b : !qa, !t, !s
        %vt = warp.await %V[%j] : !one -> !t
        %tp = warp.mma_async wgmma %qa, %vt, %zs transpose_b : !qa, !t, !s
        %s = warp.wait %sp : !warp.pending<128x64xf32, acc, 8>
        warp.release %kt : !t
        %t = warp.wait %tp : !warp.pending<128x64xf32, acc, 8>
        warp.release %vt : !t
        %j1 = arith.addi %j, %c1 : index
        scf.yield %j1 : index
      }
    }
  }
  return
}

// It may wait for one slot before its turn.
// CHECK-LABEL: @one_slot_before(
func.func @one_slot_before(%n: index, %k: !view, %v: !view) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  warp.kernel @one_slot_before blocks(%x, %h, %b) in (%n, %n, %n) warps(12) {
    %K = warp.ring fills(@load) drains(@softmax) : !one
    %V = warp.ring fills(@load) drains(@softmax) : !ring
    warp.role @load copy warps(4) {
      %r = scf.for %i = %c0 to %n step %c1 iter_args(%j = %c0) -> (index) {
        warp.copy_async %k[%b, %h, %i, %c0] to %K[%j] by tma : !view, !one
        warp.copy_async %v[%b, %h, %i, %c0] to %V[%j] by tma : !view, !ring
        %j1 = arith.addi %j, %c1 : index
        scf.yield %j1 : index
      }
    }
    warp.role @softmax compute warps(8) {
      %zero = arith.constant 0.0 : f32
      %zs = warp.splat %zero : !s
      %zo = warp.splat %zero : !o
      %qb = warp.cast truncf %zo : !o to !warp.frag<128x128xbf16, acc, 8>
      %qa = warp.convert %qb : !warp.frag<128x128xbf16, acc, 8> -> !qa
      %r = scf.for %i = %c0 to %n step %c1 iter_args(%j = %c0) -> (index) {
        // CHECK: warp.await %{{.*}} : <1,
        // CHECK-NEXT: warp.turn {
        // CHECK-NEXT: warp.mma_async
        // CHECK-NEXT: warp.await %{{.*}} : <2,
        // CHECK-NEXT: warp.mma_async
        %kt = warp.await %K[%j] : !one -> !t
        %sp = warp.mma_async wgmma %qa, %kt, %zs transpose_b : !qa, !t, !s
        %vt = warp.await %V[%j] : !ring -> !t
        %tp = warp.mma_async wgmma %qa, %vt, %zs transpose_b : !qa, !t, !s
        %s = warp.wait %sp : !warp.pending<128x64xf32, acc, 8>
        warp.release %kt : !t
        %t = warp.wait %tp : !warp.pending<128x64xf32, acc, 8>
        warp.release %vt : !t
        %j1 = arith.addi %j, %c1 : index
        scf.yield %j1 : index
      }
    }
  }
  return
}

// A single group has nobody to take turns with.
// CHECK-LABEL: @one_group
// CHECK-NOT: warp.turn
func.func @one_group(%n: index) {
  // REMARK: {{^}}{{.*}}:[[@LINE+1]]:{{.*}} Remark="there is no role of two or more groups"
  warp.kernel @one_group blocks(%x, %h, %b) in (%n, %n, %n) warps(8) {
    warp.role @load copy warps(4) {
    }
    warp.role @softmax compute warps(4) {
    }
  }
  return
}

// Numbers of each key are read before the turn, and what their places are
// computed from; not as many as a lane has of 128 keys, nor what is read at a
// place that a product gives.
// CHECK-LABEL: @rows
func.func @rows(%n: index, %k: !view, %v: !view, %t: memref<?xf32, strided<[1], offset: ?>>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  warp.kernel @rows blocks(%x, %h, %b) in (%n, %n, %n) warps(12) {
    %K = warp.ring fills(@load) drains(@softmax) : !ring
    %V = warp.ring fills(@load) drains(@softmax) : !ring
    warp.role @load copy warps(4) {
      %r:2 = scf.for %i = %c0 to %n step %c1 iter_args(%kn = %c0, %vn = %c0) -> (index, index) {
        warp.copy_async %k[%b, %h, %i, %c0] to %K[%kn] by tma : !view, !ring
        %kn1 = arith.addi %kn, %c1 : index
        warp.copy_async %v[%b, %h, %i, %c0] to %V[%vn] by tma : !view, !ring
        %vn1 = arith.addi %vn, %c1 : index
        scf.yield %kn1, %vn1 : index, index
      }
    }
    warp.role @softmax compute warps(8) {
      %zero = arith.constant 0.0 : f32
      %first = arith.constant 0 : i32
      %zs = warp.splat %zero : !s
      %zo = warp.splat %zero : !o
      %zb = warp.cast truncf %zs : !s to !warp.frag<128x64xbf16, acc, 8>
      %qb = warp.cast truncf %zo : !o to !warp.frag<128x128xbf16, acc, 8>
      %qa = warp.convert %qb : !warp.frag<128x128xbf16, acc, 8> -> !qa
      // CHECK: scf.for
      %r:3 = scf.for %i = %c0 to %n step %c1 iter_args(%o = %zo, %kn = %c0, %vn = %c0) -> (!o, index, index) {
        %kt = warp.await %K[%kn] : !ring -> !t
        %kn1 = arith.addi %kn, %c1 : index
        %a = warp.convert %zb : !warp.frag<128x64xbf16, acc, 8> -> !a
        // CHECK: %[[KEYS:.*]] = warp.coords %{{.*}}, 1 : <1x64xi32, acc, 8>
        // CHECK: %[[TWICE:.*]] = arith.addi %[[KEYS]], %[[KEYS]]
        // CHECK: %[[FEW:.*]] = warp.gather %{{.*}}[%[[TWICE]]]
        // CHECK: warp.turn {
        // CHECK-NOT: warp.gather
        // CHECK: warp.wait
        // CHECK: %[[MANY:.*]] = warp.gather {{.*}} -> !warp.frag<1x128xf32, acc, 8>
        // CHECK: warp.gather {{.*}} -> !warp.frag<1x64xf32, acc, 8>
        // CHECK: "use"(%[[FEW]], %[[MANY]]
        %sp = warp.mma_async wgmma %qa, %kt, %zs transpose_b : !qa, !t, !s
        %vt = warp.await %V[%vn] : !ring -> !t
        %vn1 = arith.addi %vn, %c1 : index
        %op = warp.mma_async wgmma %a, %vt, %o : !a, !t, !o
        %s = warp.wait %sp : !warp.pending<128x64xf32, acc, 8>
        warp.release %kt : !t
        %keys = warp.coords %first, 1 : !warp.frag<1x64xi32, acc, 8>
        %twice = arith.addi %keys, %keys : !warp.frag<1x64xi32, acc, 8>
        %few = warp.gather %t[%twice] : memref<?xf32, strided<[1], offset: ?>>, (!warp.frag<1x64xi32, acc, 8>) -> !warp.frag<1x64xf32, acc, 8>
        %all = warp.coords %first, 1 : !warp.frag<1x128xi32, acc, 8>
        %many = warp.gather %t[%all] : memref<?xf32, strided<[1], offset: ?>>, (!warp.frag<1x128xi32, acc, 8>) -> !warp.frag<1x128xf32, acc, 8>
        %place = "place"(%s) : (!s) -> !warp.frag<1x64xi32, acc, 8>
        %found = warp.gather %t[%place] : memref<?xf32, strided<[1], offset: ?>>, (!warp.frag<1x64xi32, acc, 8>) -> !warp.frag<1x64xf32, acc, 8>
        "use"(%few, %many, %found) : (!warp.frag<1x64xf32, acc, 8>, !warp.frag<1x128xf32, acc, 8>, !warp.frag<1x64xf32, acc, 8>) -> ()
        %o1 = warp.wait %op : !warp.pending<128x128xf32, acc, 8>
        warp.release %vt : !t
        scf.yield %o1, %kn1, %vn1 : !o, index, index
      }
    }
  }
  return
}
