// RUN: attn-opt %s --convert-warp-to-gpu=chip=sm_90a --canonicalize --cse | FileCheck %s

!view = memref<?x?x?x128xbf16, strided<[?, ?, ?, 1], offset: ?>>
!t = !warp.slot<64x128xbf16, panels<128>>
!ring = !warp.ring<2, 64x128xbf16, panels<128>>
!s = !warp.frag<128x64xf32, acc, 8>
!o = !warp.frag<128x128xf32, acc, 8>
!qs = !warp.slot<128x128xbf16, panels<128>>

// The text of what sm_90a adds, in order: barriers of the three slots, one
// arrival for full and one for each of the 8 consumer warps for empty; the
// branch of the roles; turns between named barriers of two groups; the two
// chains of a step, each one block; waits for all but one and for all; an
// arrival of lane 0 for the release. The producer waits for the slot, expects
// its bytes and starts a copy per panel.
// It runs beside the kernel before it, and waits for that when its roles end.
// CHECK-LABEL: gpu.func @step
// CHECK-SAME: llvm.align = 64 : i64, llvm.byval = !llvm.array<128 x i8>
// CHECK-SAME: known_block_size = array<i32: 384, 1, 1>
// CHECK: "mbarrier.init.shared::cta.b64 [$0], $1;", "r,r,~{memory}" %{{.*}}, %c1_i32
// CHECK: "mbarrier.init.shared::cta.b64 [$0], $1;", "r,r,~{memory}" %{{.*}}, %c8_i32
// CHECK: "mbarrier.init.shared::cta.b64 [$0], $1;", "r,r,~{memory}" %{{.*}}, %c1_i32
// CHECK: "mbarrier.init.shared::cta.b64 [$0], $1;", "r,r,~{memory}" %{{.*}}, %c8_i32
// CHECK: "mbarrier.init.shared::cta.b64 [$0], $1;", "r,r,~{memory}" %{{.*}}, %c1_i32
// CHECK: "mbarrier.init.shared::cta.b64 [$0], $1;", "r,r,~{memory}" %{{.*}}, %c8_i32
// CHECK-NOT: {{mbarrier.init|griddepcontrol}}
// CHECK: "fence.mbarrier_init.release.cluster;"
// CHECK: gpu.barrier
// CHECK: scf.if
// CHECK-NEXT: nvvm.setmaxregister{{ +}}increase 240
// CHECK: scf.if
// CHECK-NEXT: {{.*}}"bar.arrive $0, $1;", "r,r,~{memory}" %c1_i32, %c256_i32
// CHECK: mbarrier.try_wait.parity.shared::cta.b64 done, [$0], $1; @!done bra AGAIN; }", "r,r,~{memory}" %{{.*}}, %c0_i32
// CHECK: scf.for
// CHECK: mbarrier.try_wait.parity
// CHECK: nvvm.barrier id = %{{.*}} number_of_threads = %c256_i32
// CHECK: "{ .reg .b32 low; .reg .b64 left, right; wgmma.fence.sync.aligned; add.s32 low, $65, 0; mov.b64 left, {low, 1073741888}; add.s32 low, $64, 0; mov.b64 right, {low, 1073741888}; wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 {$0, $1,
// CHECK-SAME: $31}, left, right, 0, 1, 1, 0, 0; add.s32 low, $65, 2;
// CHECK-SAME: $31}, left, right, 1, 1, 1, 0, 0; wgmma.commit_group.sync.aligned; }"
// CHECK: "{ .reg .b32 low; .reg .b64 left, right; wgmma.fence.sync.aligned; add.s32 low, $128, 0; mov.b64 right, {low, 1073741888}; wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 {$0, $1,
// CHECK-SAME: $63}, {$129, $130, $131, $132}, right, 1, 1, 1, 1; add.s32 low, $128, 128;
// CHECK-SAME: wgmma.commit_group.sync.aligned; }"
// CHECK: "bar.arrive $0, $1;"
// CHECK: "wgmma.wait_group.sync.aligned 1;", "=&f,
// CHECK: "wgmma.wait_group.sync.aligned 0;", "=&f,
// CHECK: "{ .reg .pred first; setp.eq.u32 first, $1, 0; @first mbarrier.arrive.shared::cta.b64 _, [$0]; }"
// CHECK: } else {
// CHECK-NEXT: nvvm.setmaxregister{{ +}}decrease 24
// CHECK: scf.if
// CHECK: mbarrier.try_wait.parity.shared::cta.b64 done, [$0], $1; @!done bra AGAIN; }", "r,r,~{memory}" %{{.*}}, %c1_i32
// CHECK: "{ .reg .pred first; elect.sync _|first, -1; @first mbarrier.arrive.expect_tx.shared::cta.b64 _, [$0], $1; }", "r,r,~{memory}" %{{.*}}, %c32768_i32
// CHECK: "{ .reg .pred first; elect.sync _|first, -1; @first cp.async.bulk.tensor.5d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [$0], [$1, {$3, $4, $5, $6, $7}], [$2]; }"
// CHECK: scf.for
// CHECK: mbarrier.try_wait.parity
// CHECK: "{ .reg .pred first; elect.sync _|first, -1; @first mbarrier.arrive.expect_tx.shared::cta.b64 _, [$0], $1; }", "r,r,~{memory}" %{{.*}}, %c16384_i32
// CHECK-COUNT-1: cp.async.bulk.tensor
// CHECK-NOT: {{cp.async.bulk.tensor|griddepcontrol}}
// CHECK: nvvm.griddepcontrol wait
// CHECK-NEXT: gpu.return
func.func @step(%n: index, %q: !view, %k: !view, %out: memref<?x?xf32, strided<[?, 1], offset: ?>>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f32
  warp.kernel @step blocks(%x, %h, %b) in (%n, %n, %n) warps(12) shared(65584) starts(beside) {
    %Q = warp.ring fills(@load) drains(@softmax) at 0 : !warp.ring<1, 128x128xbf16, panels<128>>
    %K = warp.ring fills(@load) drains(@softmax) at 32768 : !ring
    warp.role @load copy warps(4) registers(24) {
      warp.copy_async %q[%b, %h, %x, %c0] to %Q[%c0] by tma : !view, !warp.ring<1, 128x128xbf16, panels<128>>
      %r = scf.for %i = %c0 to %n step %c1 iter_args(%item = %c0) -> (index) {
        warp.copy_async %k[%b, %h, %i, %c0] to %K[%item] by tma : !view, !ring
        %next = arith.addi %item, %c1 : index
        scf.yield %next : index
      }
    }
    warp.role @softmax compute warps(8) registers(240) {
      %z = warp.splat %zero : !s
      %zo = warp.splat %zero : !o
      %qt = warp.await %Q[%c0] : !warp.ring<1, 128x128xbf16, panels<128>> -> !qs
      %r:2 = scf.for %i = %c0 to %n step %c1 iter_args(%item = %c0, %o = %zo) -> (index, !o) {
        %kt = warp.await %K[%item] : !ring -> !t
        %next = arith.addi %item, %c1 : index
        %zb = warp.cast truncf %z : !s to !warp.frag<128x64xbf16, acc, 8>
        %a = warp.convert %zb : !warp.frag<128x64xbf16, acc, 8> -> !warp.frag<128x64xbf16, a, 8>
        %p:2 = warp.turn {
          %sp = warp.mma_async wgmma %qt, %kt, %z transpose_b : !qs, !t, !s
          %op = warp.mma_async wgmma %a, %kt, %o : !warp.frag<128x64xbf16, a, 8>, !t, !o
          warp.yield %sp, %op : !warp.pending<128x64xf32, acc, 8>, !warp.pending<128x128xf32, acc, 8>
        } : !warp.pending<128x64xf32, acc, 8>, !warp.pending<128x128xf32, acc, 8>
        %s = warp.wait %p#0 : !warp.pending<128x64xf32, acc, 8>
        %o1 = warp.wait %p#1 : !warp.pending<128x128xf32, acc, 8>
        warp.release %kt : !t
        scf.yield %next, %o1 : index, !o
      }
      warp.release %qt : !qs
      warp.store %r#1, %out[%x, %c0] : !o, memref<?x?xf32, strided<[?, 1], offset: ?>>
    }
  }
  return
}
