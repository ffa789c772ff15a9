// RUN: attn-opt %s --convert-warp-to-gpu=chip=sm_90a --canonicalize --cse | FileCheck %s

!v = !warp.slot<32x32xbf16, panels<64>>
!rows = !warp.slot<32x32xbf16>
!p = !warp.frag<64x32xbf16, a, 4>
!o = !warp.frag<64x32xf32, acc, 4>

// Each product is what its atom says, also side by side. What starts at zero is
// added to nothing, what starts elsewhere to that: by wgmma the first of two
// steps says so, mma.sync is given the numbers.
// CHECK-LABEL: gpu.func @atoms
// CHECK-SAME: %[[OLD:.*]]: f32
// CHECK: wgmma.mma_async.sync.aligned.m64n32k16{{[^;]*}} right, 0, 1, 1, 1;
// CHECK-SAME: wgmma.mma_async.sync.aligned.m64n32k16{{[^;]*}} right, 1, 1, 1, 1;
// CHECK: nvvm.mma.sync {{.*}}C[%[[OLD]], %[[OLD]], %[[OLD]], %[[OLD]]]
// CHECK: nvvm.mma.sync
func.func @atoms(%old: f32) {
  %c1 = arith.constant 1 : index
  warp.kernel @atoms blocks(%x, %y, %z) in (%c1, %c1, %c1) warps(4) shared(4096) {
    %zero = arith.constant 0.0 : f32
    %one = arith.constant 1.0 : bf16
    %v = warp.alloc at 0 : !v
    %rows = warp.alloc at 2048 : !rows
    %p = warp.splat %one : !p
    %none = warp.splat %zero : !o
    %some = warp.splat %old : !o
    %a = warp.mma wgmma %p, %v, %none : !p, !v, !o
    %b = warp.mma mma_sync %p, %rows, %some : !p, !rows, !o
  }
  return
}

// Two in flight: a wait lets the registers of both through, and those of A of
// the product it waits for, which no one may write before. It leaves the
// younger one.
// CHECK-LABEL: gpu.func @in_flight
// CHECK: %[[FIRST:.*]] = llvm.inline_asm {{.*}}wgmma.commit_group.sync.aligned; }"
// CHECK: %[[F0:.*]] = llvm.extractvalue %[[FIRST]][0]
// CHECK: %[[SECOND:.*]] = llvm.inline_asm {{.*}}wgmma.commit_group.sync.aligned; }"
// CHECK: %[[S0:.*]] = llvm.extractvalue %[[SECOND]][0]
// CHECK: %[[WAIT:.*]] = llvm.inline_asm {{.*}}"wgmma.wait_group.sync.aligned 1;", "=&f,{{.*}},r,r,r,r,r,r,r,r,~{memory}" %[[F0]],
// CHECK-SAME: %[[S0]],
// CHECK: %[[LATER:.*]] = llvm.extractvalue %[[WAIT]][16]
// CHECK: llvm.inline_asm {{.*}}"wgmma.wait_group.sync.aligned 0;", "=&f,{{.*}}" %[[LATER]],
func.func @in_flight(%old: f32) {
  %c1 = arith.constant 1 : index
  warp.kernel @in_flight blocks(%x, %y, %z) in (%c1, %c1, %c1) warps(4) shared(2048) {
    %one = arith.constant 1.0 : bf16
    %v = warp.alloc at 0 : !v
    %p = warp.splat %one : !p
    %acc = warp.splat %old : !o
    %a = warp.mma_async wgmma %p, %v, %acc : !p, !v, !o
    %b = warp.mma_async wgmma %p, %v, %acc : !p, !v, !o
    %r = warp.wait %a : !warp.pending<64x32xf32, acc, 4>
    %s = warp.wait %b : !warp.pending<64x32xf32, acc, 4>
  }
  return
}
