// RUN: attn-opt %s --warp-deepen-rings | FileCheck %s
// RUN: attn-opt %s --warp-deepen-rings=shared-limit=90000 --remarks-filter=warp-deepen-rings 2>&1 | FileCheck %s --check-prefix=TIGHT

!view = memref<?x?x?x128xbf16, strided<[?, ?, ?, 1], offset: ?>>
!one = !warp.ring<1, 128x128xbf16, panels<128>>
!two = !warp.ring<2, 64x128xbf16, panels<128>>
!q = !warp.slot<128x128xbf16, panels<128>>
!k = !warp.slot<64x128xbf16, panels<128>>
!s = !warp.frag<128x64xf32, acc, 8>

// The queries' ring is refilled for each tile; the keys' keeps its stages.
// CHECK-LABEL: @resident
// CHECK: %[[Q:.*]] = warp.ring fills(@load) drains(@softmax) : <2, 128x128xbf16, panels<128>>
// CHECK-NEXT: warp.ring fills(@load) drains(@softmax) : <2, 64x128xbf16, panels<128>>
// CHECK: warp.copy_async {{.*}} to %[[Q]]{{.*}}, <2, 128x128xbf16, panels<128>>
// CHECK: warp.await %[[Q]]{{.*}} : <2, 128x128xbf16, panels<128>> -> <128x128xbf16, panels<128>>
// TIGHT: remark: [Missed] deepen-rings {{.*}}a second slot would make it 98368 bytes of shared memory of 90000
func.func @resident(%n: index, %q: !view, %k: !view) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  warp.kernel @resident blocks(%x, %h, %b) in (%n, %c1, %c1) warps(12) resident {
    %Q = warp.ring fills(@load) drains(@softmax) : !one
    %K = warp.ring fills(@load) drains(@softmax) : !two
    %blocks = gpu.grid_dim x
    warp.role @load copy warps(4) {
      %end = scf.for %t = %x to %n step %blocks iter_args(%i = %c0) -> (index) {
        warp.copy_async %q[%b, %h, %t, %c0] to %Q[%i] by tma : !view, !one
        warp.copy_async %k[%b, %h, %t, %c0] to %K[%i] by tma : !view, !two
        %next = arith.addi %i, %c1 : index
        scf.yield %next : index
      }
    }
    warp.role @softmax compute warps(8) {
      %zero = arith.constant 0.0 : f32
      %z = warp.splat %zero : !s
      %end = scf.for %t = %x to %n step %blocks iter_args(%i = %c0) -> (index) {
        %qt = warp.await %Q[%i] : !one -> !q
        %kt = warp.await %K[%i] : !two -> !k
        %s = warp.mma wgmma %qt, %kt, %z transpose_b : !q, !k, !s
        warp.release %qt : !q
        warp.release %kt : !k
        %next = arith.addi %i, %c1 : index
        scf.yield %next : index
      }
    }
  }
  return
}

// A block that ends with its tile loads no queries ahead.
// CHECK-LABEL: @grid
// CHECK: warp.ring fills(@load) drains(@softmax) : <1, 128x128xbf16, panels<128>>
func.func @grid(%n: index, %q: !view) {
  %c0 = arith.constant 0 : index
  warp.kernel @grid blocks(%x, %h, %b) in (%n, %n, %n) warps(12) {
    %Q = warp.ring fills(@load) drains(@softmax) : !one
    warp.role @load copy warps(4) {
      warp.copy_async %q[%b, %h, %x, %c0] to %Q[%c0] by tma : !view, !one
    }
    warp.role @softmax compute warps(8) {
      %qt = warp.await %Q[%c0] : !one -> !q
      warp.release %qt : !q
    }
  }
  return
}
