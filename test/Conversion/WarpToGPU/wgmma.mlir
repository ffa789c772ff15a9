// RUN: attn-opt %s --convert-warp-to-gpu=chip=sm_90a --canonicalize --cse | FileCheck %s

!q = !warp.slot<128x64xf16, panels<128>>
!k = !warp.slot<32x64xf16, panels<128>>
!v = !warp.slot<32x32xbf16, panels<64>>
!s = !warp.frag<128x32xf32, acc, 4>
!p = !warp.frag<64x32xbf16, a, 4>
!o = !warp.frag<64x32xf32, acc, 4>

// Both operands in slots, by descriptors of their first rows: two row steps of
// 64 x 64 by four steps of 16 along k, in one block of assembly with its wait.
// What starts at zero is not added to.
// CHECK-LABEL: gpu.func @slots
// CHECK: %[[ZERO:.*]] = llvm.mlir.undef : f32
// CHECK: llvm.inline_asm has_side_effects {{.*}}"{ .reg .b32 low; .reg .b64 left, right; wgmma.fence.sync.aligned; add.s32 low, $65, 0; mov.b64 left, {low, 1073741888}; add.s32 low, $64, 0; mov.b64 right, {low, 1073741888}; wgmma.mma_async.sync.aligned.m64n32k16.f32.f16.f16 {$0, $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15}, left, right, 0, 1, 1, 0, 0; add.s32 low, $65, 2;
// CHECK-SAME: $15}, left, right, 1, 1, 1, 0, 0; add.s32 low, $65, 4;
// CHECK-SAME: $15}, left, right, 1, 1, 1, 0, 0; add.s32 low, $65, 6;
// CHECK-SAME: $15}, left, right, 1, 1, 1, 0, 0; add.s32 low, $65, 512; mov.b64 left, {low, 1073741888}; add.s32 low, $64, 0; mov.b64 right, {low, 1073741888}; wgmma.mma_async.sync.aligned.m64n32k16.f32.f16.f16 {$16, $17,
// CHECK-SAME: $31}, left, right, 0, 1, 1, 0, 0;
// CHECK-SAME: $31}, left, right, 1, 1, 1, 0, 0; wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0; }", "=&f,{{.*}},r,r,~{memory}" %[[ZERO]], %[[ZERO]],
// CHECK-NOT: wgmma
// CHECK: gpu.return
func.func @slots() {
  %c1 = arith.constant 1 : index
  warp.kernel @slots blocks(%x, %y, %z) in (%c1, %c1, %c1) warps(4) shared(20480) {
    %zero = arith.constant 0.0 : f32
    %q = warp.alloc at 0 : !q
    %k = warp.alloc at 16384 : !k
    %acc = warp.splat %zero : !s
    %s = warp.mma wgmma %q, %k, %acc transpose_b : !q, !k, !s
  }
  return
}

// A in registers, four for each step of k; B is read along its rows, which the
// last number says; an accumulator that may be anything is added to.
// CHECK-LABEL: gpu.func @registers
// CHECK: %[[A:.*]] = llvm.bitcast %{{.*}} : vector<2xbf16> to i32
// CHECK: "{ .reg .b32 low; .reg .b64 left, right; wgmma.fence.sync.aligned; add.s32 low, $32, 0; mov.b64 right, {low, 2147483680}; wgmma.mma_async.sync.aligned.m64n32k16.f32.bf16.bf16 {$0,
// CHECK-SAME: $15}, {$33, $34, $35, $36}, right, 1, 1, 1, 1; add.s32 low, $32, 64;
// CHECK-SAME: $15}, {$37, $38, $39, $40}, right, 1, 1, 1, 1; wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0; }"
// CHECK-SAME: %[[A]], %[[A]], %[[A]]
func.func @registers(%old: f32) {
  %c1 = arith.constant 1 : index
  warp.kernel @registers blocks(%x, %y, %z) in (%c1, %c1, %c1) warps(4) shared(2048) {
    %one = arith.constant 1.0 : bf16
    %v = warp.alloc at 0 : !v
    %p = warp.splat %one : !p
    %acc = warp.splat %old : !o
    %o = warp.mma wgmma %p, %v, %acc : !p, !v, !o
  }
  return
}

// Tiles without panels are mma.sync's.
// CHECK-LABEL: gpu.func @plain
// CHECK-NOT: wgmma
// CHECK: nvvm.mma.sync
func.func @plain() {
  %c1 = arith.constant 1 : index
  warp.kernel @plain blocks(%x, %y, %z) in (%c1, %c1, %c1) warps(4) shared(2048) {
    %one = arith.constant 1.0 : bf16
    %zero = arith.constant 0.0 : f32
    %v = warp.alloc at 0 : !warp.slot<32x32xbf16>
    %p = warp.splat %one : !p
    %acc = warp.splat %zero : !o
    %o = warp.mma mma_sync %p, %v, %acc : !p, !warp.slot<32x32xbf16>, !o
  }
  return
}
