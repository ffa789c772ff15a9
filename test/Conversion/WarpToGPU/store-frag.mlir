// RUN: attn-opt %s --pass-pipeline="builtin.module(func.func(warp-assign-resources{shared-limit=232448}),convert-warp-to-gpu{chip=sm_90a},canonicalize,cse)" | FileCheck %s

// The ring of the scores is filled by the four warps of a role and drained by
// those of two: `full` counts 4 arrivals, `empty` 8. A warp waits for the slot,
// writes its rows, makes them known to wgmma and arrives. The product that reads
// the slot transposed says so; its result is added to memory.
// CHECK-LABEL: gpu.func @k
// CHECK: mbarrier.init.shared::cta.b64 [$0], $1;", "r,r,~{memory}" %{{.*}}, %c1_i32
// CHECK: mbarrier.init.shared::cta.b64 [$0], $1;", "r,r,~{memory}" %{{.*}}, %c4_i32
// CHECK: mbarrier.init.shared::cta.b64 [$0], $1;", "r,r,~{memory}" %{{.*}}, %c1_i32
// CHECK: mbarrier.init.shared::cta.b64 [$0], $1;", "r,r,~{memory}" %{{.*}}, %c8_i32
// CHECK: mbarrier.init.shared::cta.b64 [$0], $1;", "r,r,~{memory}" %{{.*}}, %c4_i32
// CHECK: mbarrier.init.shared::cta.b64 [$0], $1;", "r,r,~{memory}" %{{.*}}, %c8_i32
// CHECK-NOT: mbarrier.init
// CHECK: nvvm.setmaxregister increase
// CHECK-COUNT-2: mbarrier.try_wait
// CHECK: left, right, 1, 1, 1, 0, 0;
// CHECK: mbarrier.try_wait
// CHECK: nvvm.stmatrix
// CHECK: "fence.proxy.async.shared::cta;"
// CHECK: nvvm.bar.warp.sync
// CHECK: mbarrier.arrive.shared::cta
// CHECK: mbarrier.try_wait
// CHECK: left, right, 1, 1, 1, 1, 1;
// CHECK: "red.relaxed.gpu.global.add.f32 [$0], $1;"
!view = memref<?x64xbf16, strided<[?, 1]>>
!out = memref<?x64xf32, strided<[?, 1]>>
!ring = !warp.ring<1, 64x64xbf16, panels<128>>
!tile = !warp.slot<64x64xbf16, panels<128>>
!acc = !warp.frag<64x64xf32, acc, 4>
!half = !warp.frag<64x64xbf16, acc, 4>
func.func @f(%a: !view, %b: !view, %c: !view, %d: !view, %e: !view,
             %out0: !out, %out1: !out) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c64 = arith.constant 64 : index
  %zero = arith.constant 0.0 : f32
  warp.kernel @k blocks(%x, %y, %z) in (%c1, %c1, %c1) warps(12) {
    %A = warp.ring fills(@load) drains(@scores) : !ring
    %B = warp.ring fills(@load) drains(@scores, @other) : !ring
    %S = warp.ring fills(@scores) drains(@scores, @other) : !ring
    warp.role @load copy warps(4) registers(24) {
      %n = scf.for %i = %c0 to %c2 step %c1 iter_args(%item = %c0) -> (index) {
        %row = arith.muli %i, %c64 : index
        warp.copy_async %a[%row, %c0] to %A[%item] by tma : !view, !ring
        warp.copy_async %b[%row, %c0] to %B[%item] by tma : !view, !ring
        %next = arith.addi %item, %c1 : index
        scf.yield %next : index
      }
    }
    warp.role @scores compute warps(4) registers(232) {
      %z0 = warp.splat %zero : !acc
      %n = scf.for %i = %c0 to %c2 step %c1 iter_args(%item = %c0) -> (index) {
        %ta = warp.await %A[%item] : !ring -> !tile
        %tb = warp.await %B[%item] : !ring -> !tile
        %s = warp.mma wgmma %ta, %tb, %z0 transpose_b : !tile, !tile, !acc
        warp.release %tb : !tile
        %h = warp.cast truncf %s : !acc to !half
        warp.store_frag %h to %S[%item] : !half, !ring
        %ts = warp.await %S[%item] : !ring -> !tile
        %next = arith.addi %item, %c1 : index
        %o = warp.mma wgmma %ts, %ta, %z0 transpose_a : !tile, !tile, !acc
        warp.release %ts : !tile
        warp.release %ta : !tile
        warp.store %o, %out0[%c0, %c0] accumulate : !acc, !out
        scf.yield %next : index
      }
    }
    warp.role @other compute warps(4) registers(232) {
      %z0 = warp.splat %zero : !acc
      %r:2 = scf.for %i = %c0 to %c2 step %c1 iter_args(%item = %c0, %o = %z0) -> (index, !acc) {
        %tb = warp.await %B[%item] : !ring -> !tile
        %ts = warp.await %S[%item] : !ring -> !tile
        %next = arith.addi %item, %c1 : index
        %o1 = warp.mma wgmma %ts, %tb, %o : !tile, !tile, !acc
        warp.release %ts : !tile
        warp.release %tb : !tile
        scf.yield %next, %o1 : index, !acc
      }
      warp.store %r#1, %out1[%c0, %c0] : !acc, !out
    }
  }
  return
}
