// A table's gradient computes where each score's bias was read, beside the score
// function: what is decided of one is decided of the other.
//
// RUN: attn-opt %s --attn-differentiate --attn-plan=target=sm_90a --attn-recompute --convert-attn-to-tile --tile-peel-masks --tile-peel-scores --mlir-print-local-scope | FileCheck %s
// RUN: attn-opt %s --attn-differentiate --attn-plan=target=sm_90a --attn-recompute --convert-attn-to-tile --tile-peel-masks | FileCheck %s --check-prefix=BEFORE

!q = tensor<1x8x?x64xbf16>
!l = tensor<1x8x?xf32>
!kinds = tensor<?xi32>
!table = tensor<8x2x12xf32>

// BEFORE-LABEL: tile.kernel @buckets_backward_capture_0_elements
// BEFORE: scf.for
// BEFORE: math.log2 {{.*}} : f32
// BEFORE: math.log2 {{.*}} : vector
// BEFORE: tile.scatter_add

// Far to the left and to the right all buckets are the last one.
// CHECK-LABEL: tile.kernel @buckets_backward_capture_0_elements
// CHECK: scf.for
// CHECK-NOT: math.log2
// CHECK: arith.constant dense<11> : vector<128x64xi32>
// CHECK-NOT: math.log2
// CHECK: tile.scatter_add
// CHECK: scf.for
// CHECK: math.log2 {{.*}} : f32
// CHECK: math.log2 {{.*}} : vector<128x64xf32>
// CHECK: tile.scatter_add
// CHECK: scf.for
// CHECK-NOT: math.log2
// CHECK: tile.scatter_add
func.func @buckets(%q: !q, %k: !q, %v: !q, %kinds: !kinds, %table: !table) -> (!q, !l) {
  %o, %lse = attn.attention %q, %k, %v captures(%kinds, %table)
    score(%x: f32, %b: i32, %h: i32, %i: i32, %j: i32, %c0: !kinds, %c1: !table) {
      %one = arith.constant 1 : i32
      %last = arith.constant 11 : i32
      %three = arith.constant 3.0 : f32
      %d = arith.subi %i, %j : i32
      %a = math.absi %d : i32
      %p = arith.maxsi %a, %one : i32
      %f = arith.sitofp %p : i32 to f32
      %log = math.log2 %f : f32
      %t = arith.mulf %log, %three : f32
      %n = arith.fptosi %t : f32 to i32
      %bucket = arith.minsi %n, %last : i32
      %kind = attn.capture_load %c0[%i] : !kinds
      %bias = attn.capture_load %c1[%h, %kind, %bucket] : !table
      %y = arith.addf %x, %bias : f32
      attn.yield %y : f32
    }
    : (!q, !q, !q, !kinds, !table) -> (!q, !l)
  return %o, %lse : !q, !l
}
