// RUN: attn-opt %s --warp-test-ahead | FileCheck %s
// RUN: attn-opt %s --warp-test-ahead=selective=true --remarks-filter=warp-test-ahead 2>&1 | FileCheck %s --check-prefix=FEW

!view = memref<?x?x?x128xbf16, strided<[?, ?, ?, 1], offset: ?>>
!ring = !warp.ring<2, 64x128xbf16, panels<128>>
!t = !warp.slot<64x128xbf16, panels<128>>
!s = !warp.frag<128x64xf32, acc, 8>
!o = !warp.frag<128x128xf32, acc, 8>
!a = !warp.frag<128x64xbf16, a, 8>
!qa = !warp.frag<128x128xbf16, a, 8>

// The keys of the next iteration are asked about before the last wait of this
// one, the values before the keys are awaited.
// FEW: [Missed] test-ahead | Category:warp-test-ahead{{.*}}loops of less than three groups, or with a mask or a score function, do not gain
// FEW-NOT: warp.test
// CHECK-LABEL: @one_step
func.func @one_step(%n: index, %k: !view, %v: !view) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  warp.kernel @one_step blocks(%x, %h, %b) in (%n, %n, %n) warps(12) {
    // CHECK: %[[KR:.*]] = warp.ring
    %K = warp.ring fills(@load) drains(@softmax) : !ring
    // CHECK: %[[VR:.*]] = warp.ring
    %V = warp.ring fills(@load) drains(@softmax) : !ring
    // CHECK: warp.role @load
    // CHECK-NOT: warp.test
    // CHECK: warp.role @softmax
    warp.role @load copy warps(4) {
      %r = scf.for %i = %c0 to %n step %c1 iter_args(%kn = %c0) -> (index) {
        warp.copy_async %k[%b, %h, %i, %c0] to %K[%kn] by tma : !view, !ring
        warp.copy_async %v[%b, %h, %i, %c0] to %V[%kn] by tma : !view, !ring
        %kn1 = arith.addi %kn, %c1 : index
        scf.yield %kn1 : index
      }
    }
    warp.role @softmax compute warps(8) {
      %zero = arith.constant 0.0 : f32
      %zs = warp.splat %zero : !s
      %zo = warp.splat %zero : !o
      %zb = warp.cast truncf %zs : !s to !warp.frag<128x64xbf16, acc, 8>
      %qb = warp.cast truncf %zo : !o to !warp.frag<128x128xbf16, acc, 8>
      %qa = warp.convert %qb : !warp.frag<128x128xbf16, acc, 8> -> !qa
      // CHECK: %[[NO:.*]] = arith.constant false
      // CHECK: scf.for {{.*}} iter_args(%{{.*}}, %[[N:.*]] = %{{.*}}, %[[THERE:.*]] = %[[NO]])
      %r:2 = scf.for %i = %c0 to %n step %c1 iter_args(%o = %zo, %kn = %c0) -> (!o, index) {
        // CHECK: %[[VTHERE:.*]] = warp.test %[[VR]][%[[N]]] : <2, 64x128xbf16, panels<128>>
        // CHECK: warp.await %[[KR]][%[[N]]] unless %[[THERE]]
        %kt = warp.await %K[%kn] : !ring -> !t
        %a = warp.convert %zb : !warp.frag<128x64xbf16, acc, 8> -> !a
        // CHECK: warp.turn
        %t:3 = warp.turn {
          %sp = warp.mma_async wgmma %qa, %kt, %zs transpose_b : !qa, !t, !s
          // CHECK: warp.await %[[VR]][%[[N]]] unless %[[VTHERE]]
          %vt = warp.await %V[%kn] : !ring -> !t
          %op = warp.mma_async wgmma %a, %vt, %o : !a, !t, !o
          warp.yield %sp, %vt, %op : !warp.pending<128x64xf32, acc, 8>, !t, !warp.pending<128x128xf32, acc, 8>
        } : !warp.pending<128x64xf32, acc, 8>, !t, !warp.pending<128x128xf32, acc, 8>
        // CHECK: warp.wait
        // CHECK: warp.release
        %s = warp.wait %t#0 : !warp.pending<128x64xf32, acc, 8>
        warp.release %kt : !t
        // CHECK: %[[NEXT:.*]] = arith.addi %[[N]], %{{.*}}
        // CHECK-NEXT: %[[KTHERE:.*]] = warp.test %[[KR]][%[[NEXT]]]
        // CHECK-NEXT: warp.wait
        %o1 = warp.wait %t#2 : !warp.pending<128x128xf32, acc, 8>
        warp.release %t#1 : !t
        %kn1 = arith.addi %kn, %c1 : index
        // CHECK: scf.yield %{{.*}}, %{{.*}}, %[[KTHERE]] : !warp.frag<128x128xf32, acc, 8>, index, i1
        scf.yield %o1, %kn1 : !o, index
      }
    }
  }
  return
}

// Two steps in a body: the keys of the second are asked about before the wait
// that stands before them. What a role fills for itself is awaited as it was.
// CHECK-LABEL: @two_steps
func.func @two_steps(%n: index, %k: !view) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  warp.kernel @two_steps blocks(%x, %h, %b) in (%n, %n, %n) warps(12) {
    // CHECK: %[[KR:.*]] = warp.ring
    %K = warp.ring fills(@load) drains(@softmax) : !ring
    // CHECK: %[[OWN:.*]] = warp.ring
    %D = warp.ring fills(@softmax) drains(@softmax) : !warp.ring<1, 128x64xbf16, panels<128>>
    warp.role @load copy warps(4) {
      %r = scf.for %i = %c0 to %n step %c2 iter_args(%kn = %c0) -> (index) {
        warp.copy_async %k[%b, %h, %i, %c0] to %K[%kn] by tma : !view, !ring
        %kn1 = arith.addi %kn, %c1 : index
        warp.copy_async %k[%b, %h, %i, %c0] to %K[%kn1] by tma : !view, !ring
        %kn2 = arith.addi %kn, %c2 : index
        scf.yield %kn2 : index
      }
    }
    warp.role @softmax compute warps(8) {
      %zero = arith.constant 0.0 : f32
      %zs = warp.splat %zero : !s
      %zo = warp.splat %zero : !o
      %zb = warp.cast truncf %zs : !s to !warp.frag<128x64xbf16, acc, 8>
      %qb = warp.cast truncf %zo : !o to !warp.frag<128x128xbf16, acc, 8>
      %qa = warp.convert %qb : !warp.frag<128x128xbf16, acc, 8> -> !qa
      // CHECK: scf.for {{.*}} iter_args(%[[N:.*]] = %{{.*}}, %{{.*}} = %{{.*}}, %[[THERE:.*]] = %{{.*}})
      %r:2 = scf.for %i = %c0 to %n step %c2 iter_args(%kn = %c0, %dn = %c0) -> (index, index) {
        // CHECK: warp.await %[[KR]][%[[N]]] unless %[[THERE]]
        %k0 = warp.await %K[%kn] : !ring -> !t
        %p0 = warp.mma_async wgmma %qa, %k0, %zs transpose_b : !qa, !t, !s
        // CHECK: %[[SECOND:.*]] = arith.addi %[[N]], %{{.*}}
        // CHECK-NEXT: %[[THERE1:.*]] = warp.test %[[KR]][%[[SECOND]]]
        // CHECK-NEXT: warp.wait
        %s0 = warp.wait %p0 : !warp.pending<128x64xf32, acc, 8>
        warp.release %k0 : !t
        %kn1 = arith.addi %kn, %c1 : index
        // CHECK: warp.await %[[KR]][{{.*}}] unless %[[THERE1]]
        %k1 = warp.await %K[%kn1] : !ring -> !t
        warp.store_frag %zb to %D[%dn] : !warp.frag<128x64xbf16, acc, 8>, !warp.ring<1, 128x64xbf16, panels<128>>
        // CHECK: warp.await %[[OWN]][%{{[a-z0-9]+}}] :
        %d = warp.await %D[%dn] : !warp.ring<1, 128x64xbf16, panels<128>> -> !warp.slot<128x64xbf16, panels<128>>
        %dn1 = arith.addi %dn, %c1 : index
        %p1 = warp.mma_async wgmma %qa, %k1, %zs transpose_b : !qa, !t, !s
        // CHECK: %[[THIRD:.*]] = arith.addi %[[N]], %{{.*}}
        // CHECK-NEXT: warp.test %[[KR]][%[[THIRD]]]
        // CHECK-NEXT: warp.wait
        %s1 = warp.wait %p1 : !warp.pending<128x64xf32, acc, 8>
        warp.release %k1 : !t
        warp.release %d : !warp.slot<128x64xbf16, panels<128>>
        %kn2 = arith.addi %kn, %c2 : index
        scf.yield %kn2, %dn1 : index, index
      }
    }
  }
  return
}
