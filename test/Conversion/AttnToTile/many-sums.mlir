// Kernels of many sums of what goes back to captures have narrower tiles than the
// attention, and no more sums than there are registers for.
//
// RUN: attn-opt %s --split-input-file --attn-recompute --convert-attn-to-tile | FileCheck %s

// Six: tiles of 32 columns.
// CHECK-LABEL: func.func @six(
// CHECK: tile.kernel @six_far_rows plan({{.*}}block_k = 64
// CHECK: tile.kernel @six_capture_queries plan({{.*}}block_k = 32
// CHECK-NOT: tile.kernel @six_capture_queries
// CHECK: tile.kernel @six_capture_rows
#plan = #attn.plan<target = sm_90a, block_q = 128, block_k = 64, warps = 8, stages = 2>
!t = tensor<2x4x?x64xf16>
!l = tensor<2x4x?xf32>
!c = tensor<20xf32>
func.func @six(%q: !t, %k: !t, %l: !l, %s: !c) -> !c {
  %g:4 = attn.attention_backward %q, %k, %k, %q, %l, %q captures(%s) {grad_captures = array<i64: 0>, plan = #plan}
    score(%x: f32, %b: i32, %h: i32, %i: i32, %j: i32, %t: !c) {
      attn.yield %x : f32
    }
    pullback(%dy: f32, %x: f32, %b: i32, %h: i32, %i: i32, %j: i32, %t: !c) {
      %i0 = arith.constant 0 : i32
      attn.capture_add %dy, %t[%i0] : !c
      %i1 = arith.constant 1 : i32
      attn.capture_add %dy, %t[%i1] : !c
      %i2 = arith.constant 2 : i32
      attn.capture_add %dy, %t[%i2] : !c
      %i3 = arith.constant 3 : i32
      attn.capture_add %dy, %t[%i3] : !c
      %i4 = arith.constant 4 : i32
      attn.capture_add %dy, %t[%i4] : !c
      %i5 = arith.constant 5 : i32
      attn.capture_add %dy, %t[%i5] : !c
      attn.yield %dy : f32
    }
    : (!t, !t, !t, !t, !l, !t, !c) -> (!t, !t, !t, !c)
  return %g#3 : !c
}

// -----

// Twenty: two kernels of ten, whose tiles have 16 columns.
// CHECK-LABEL: func.func @twenty(
// CHECK: tile.kernel @twenty_far_rows plan({{.*}}block_k = 64
// CHECK: tile.kernel @twenty_capture_queries plan({{.*}}block_k = 16
// CHECK: scf.for {{.*}} -> (vector<128xf32>, vector<128xf32>, vector<128xf32>, vector<128xf32>, vector<128xf32>, vector<128xf32>, vector<128xf32>, vector<128xf32>, vector<128xf32>, vector<128xf32>) {
// CHECK: tile.kernel @twenty_capture_queries1 plan({{.*}}block_k = 16
// CHECK-NOT: tile.kernel @twenty_capture_queries
// CHECK: tile.kernel @twenty_capture_rows
// CHECK: tile.kernel @twenty_d_c0
// CHECK-NOT: tile.kernel
#plan = #attn.plan<target = sm_90a, block_q = 128, block_k = 64, warps = 8, stages = 2>
!t = tensor<2x4x?x64xf16>
!l = tensor<2x4x?xf32>
!c = tensor<20xf32>
func.func @twenty(%q: !t, %k: !t, %l: !l, %s: !c) -> !c {
  %g:4 = attn.attention_backward %q, %k, %k, %q, %l, %q captures(%s) {grad_captures = array<i64: 0>, plan = #plan}
    score(%x: f32, %b: i32, %h: i32, %i: i32, %j: i32, %t: !c) {
      attn.yield %x : f32
    }
    pullback(%dy: f32, %x: f32, %b: i32, %h: i32, %i: i32, %j: i32, %t: !c) {
      %i0 = arith.constant 0 : i32
      attn.capture_add %dy, %t[%i0] : !c
      %i1 = arith.constant 1 : i32
      attn.capture_add %dy, %t[%i1] : !c
      %i2 = arith.constant 2 : i32
      attn.capture_add %dy, %t[%i2] : !c
      %i3 = arith.constant 3 : i32
      attn.capture_add %dy, %t[%i3] : !c
      %i4 = arith.constant 4 : i32
      attn.capture_add %dy, %t[%i4] : !c
      %i5 = arith.constant 5 : i32
      attn.capture_add %dy, %t[%i5] : !c
      %i6 = arith.constant 6 : i32
      attn.capture_add %dy, %t[%i6] : !c
      %i7 = arith.constant 7 : i32
      attn.capture_add %dy, %t[%i7] : !c
      %i8 = arith.constant 8 : i32
      attn.capture_add %dy, %t[%i8] : !c
      %i9 = arith.constant 9 : i32
      attn.capture_add %dy, %t[%i9] : !c
      %i10 = arith.constant 10 : i32
      attn.capture_add %dy, %t[%i10] : !c
      %i11 = arith.constant 11 : i32
      attn.capture_add %dy, %t[%i11] : !c
      %i12 = arith.constant 12 : i32
      attn.capture_add %dy, %t[%i12] : !c
      %i13 = arith.constant 13 : i32
      attn.capture_add %dy, %t[%i13] : !c
      %i14 = arith.constant 14 : i32
      attn.capture_add %dy, %t[%i14] : !c
      %i15 = arith.constant 15 : i32
      attn.capture_add %dy, %t[%i15] : !c
      %i16 = arith.constant 16 : i32
      attn.capture_add %dy, %t[%i16] : !c
      %i17 = arith.constant 17 : i32
      attn.capture_add %dy, %t[%i17] : !c
      %i18 = arith.constant 18 : i32
      attn.capture_add %dy, %t[%i18] : !c
      %i19 = arith.constant 19 : i32
      attn.capture_add %dy, %t[%i19] : !c
      attn.yield %dy : f32
    }
    : (!t, !t, !t, !t, !l, !t, !c) -> (!t, !t, !t, !c)
  return %g#3 : !c
}
