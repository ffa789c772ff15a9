// RUN: attn-opt %s --verify-roundtrip | FileCheck %s

!view = memref<?x?x?x128xbf16, strided<[?, ?, ?, 1], offset: ?>>
!qring = !warp.ring<1, 128x128xbf16, panels<128>>
!ring = !warp.ring<2, 64x128xbf16, panels<128>>
!q = !warp.slot<128x128xbf16, panels<128>>
!t = !warp.slot<64x128xbf16, panels<128>>
!s = !warp.frag<128x64xf32, acc, 8>
!o = !warp.frag<128x128xf32, acc, 8>
!p = !warp.frag<128x64xbf16, acc, 8>
!a = !warp.frag<128x64xbf16, a, 8>

// Overlapped products: the product with V of the block before beside that with K.
// CHECK-LABEL: @overlapped
func.func @overlapped(%n: index, %q: !view, %k: !view, %v: !view, %out: !view) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  // CHECK: warp.kernel {{.*}} warps(12) shared(98464) {
  warp.kernel @overlapped blocks(%x, %h, %b) in (%n, %n, %n) warps(12) shared(98464) {
    // CHECK: %[[Q:.*]] = warp.ring fills(@load) drains(@softmax) at 0 : <1, 128x128xbf16, panels<128>>
    %Q = warp.ring fills(@load) drains(@softmax) at 0 : !qring
    %K = warp.ring fills(@load) drains(@softmax) at 32768 : !ring
    %V = warp.ring fills(@load) drains(@softmax) at 65536 : !ring
    // CHECK: warp.role @load copy warps(4) registers(24) {
    warp.role @load copy warps(4) registers(24) {
      warp.copy_async %q[%b, %h, %x, %c0] to %Q[%c0] by tma : !view, !qring
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
    // CHECK: warp.role @softmax compute warps(8) registers(240) {
    warp.role @softmax compute warps(8) registers(240) {
      %zero = arith.constant 0.0 : f32
      %zs = warp.splat %zero : !s
      %zo = warp.splat %zero : !o
      %qt = warp.await %Q[%c0] : !qring -> !q
      %k0 = warp.await %K[%c0] : !ring -> !t
      // CHECK: %[[SP:.*]] = warp.mma_async wgmma %{{.*}}, %{{.*}}, %{{.*}} transpose_b : !warp.slot<128x128xbf16, panels<128>>, <64x128xbf16, panels<128>>, <128x64xf32, acc, 8>
      %sp0 = warp.mma_async wgmma %qt, %k0, %zs transpose_b : !q, !t, !s
      // CHECK: warp.wait %[[SP]] : <128x64xf32, acc, 8>
      %s0 = warp.wait %sp0 : !warp.pending<128x64xf32, acc, 8>
      warp.release %k0 : !t
      %p0 = warp.cast truncf %s0 : !s to !p
      %r:4 = scf.for %i = %c1 to %n step %c1 iter_args(%o = %zo, %p = %p0, %kn = %c1, %vn = %c0) -> (!o, !p, index, index) {
        %kt = warp.await %K[%kn] : !ring -> !t
        %kn1 = arith.addi %kn, %c1 : index
        %a = warp.convert %p : !p -> !a
        // CHECK: %[[T:.*]]:3 = warp.turn {
        %sp, %op, %vt = warp.turn {
          %1 = warp.mma_async wgmma %qt, %kt, %zs transpose_b : !q, !t, !s
          %2 = warp.await %V[%vn] : !ring -> !t
          %3 = warp.mma_async wgmma %a, %2, %o : !a, !t, !o
          // CHECK: warp.yield %{{.*}}, %{{.*}}, %{{.*}} : !warp.pending<128x64xf32, acc, 8>, !warp.pending<128x128xf32, acc, 8>, !warp.slot<64x128xbf16, panels<128>>
          warp.yield %1, %3, %2 : !warp.pending<128x64xf32, acc, 8>, !warp.pending<128x128xf32, acc, 8>, !t
        // CHECK: } : !warp.pending<128x64xf32, acc, 8>, !warp.pending<128x128xf32, acc, 8>, !warp.slot<64x128xbf16, panels<128>>
        } : !warp.pending<128x64xf32, acc, 8>, !warp.pending<128x128xf32, acc, 8>, !t
        %vn1 = arith.addi %vn, %c1 : index
        // CHECK: warp.wait %[[T]]#0 : <128x64xf32, acc, 8>
        %s = warp.wait %sp : !warp.pending<128x64xf32, acc, 8>
        warp.release %kt : !t
        %e = math.exp2 %s : !s
        %o1 = warp.wait %op : !warp.pending<128x128xf32, acc, 8>
        warp.release %vt : !t
        %p1 = warp.cast truncf %e : !s to !p
        scf.yield %o1, %p1, %kn1, %vn1 : !o, !p, index, index
      }
      warp.release %qt : !q
      %vl = warp.await %V[%r#3] : !ring -> !t
      %al = warp.convert %r#1 : !p -> !a
      %ol = warp.mma wgmma %al, %vl, %r#0 : !a, !t, !o
      warp.release %vl : !t
      %ob = warp.cast truncf %ol : !o to !warp.frag<128x128xbf16, acc, 8>
      warp.store %ob, %out[%b, %h, %x, %c0] : !warp.frag<128x128xbf16, acc, 8>, !view
    }
  }
  return
}
