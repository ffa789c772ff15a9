// RUN: attn-opt %s --attn-simplify | FileCheck %s

!q = tensor<1x4x?x64xf16>
!l = tensor<1x4x?xf32>

// The chain that fed only a dead capture goes with it; the one that something
// else needs stays.
// CHECK-LABEL: func.func @dead_capture_and_its_feeders
// CHECK-NOT: tensor.dim
// CHECK: %[[KEPT:.*]] = arith.addi
// CHECK-NOT: arith
// CHECK: attn.attention %{{.*}}, %{{.*}}, %{{.*}} :
// CHECK: return %{{.*}}, %[[KEPT]]
func.func @dead_capture_and_its_feeders(%q: !q, %n: i32) -> (!q, i32) {
  %c2 = arith.constant 2 : index
  %d = tensor.dim %q, %c2 : !q
  %t = arith.index_cast %d : index to i32
  %u = arith.addi %n, %n : i32
  %o, %lse = attn.attention %q, %q, %q captures(%t, %u)
    mask(%b: i32, %h: i32, %i: i32, %j: i32, %x: i32, %y: i32) {
      %true = arith.constant true
      attn.yield %true : i1
    }
    : (!q, !q, !q, i32, i32) -> (!q, !l)
  return %o, %u : !q, i32
}

// CHECK-LABEL: func.func @folds_in_bodies
// CHECK: attn.attention
// CHECK-NEXT: score(%[[X:.*]]: f32, %{{.*}}) {
// CHECK-NEXT: %[[Y:.*]] = arith.addf %[[X]], %[[X]] : f32
// CHECK-NEXT: attn.yield %[[Y]] : f32
// CHECK-NEXT: }
// CHECK-NEXT: mask(%{{.*}}: i32, %{{.*}}: i32, %[[I:.*]]: i32, %[[J:.*]]: i32) {
// CHECK-NEXT: %[[M:.*]] = arith.cmpi sle, %[[J]], %[[I]] : i32
// CHECK-NEXT: attn.yield %[[M]] : i1
func.func @folds_in_bodies(%q: !q) -> !q {
  %o, %lse = attn.attention %q, %q, %q
    score(%x: f32, %b: i32, %h: i32, %i: i32, %j: i32) {
      %one = arith.constant 1.0 : f32
      %z = arith.mulf %x, %one : f32
      %y = arith.addf %z, %x : f32
      attn.yield %y : f32
    }
    mask(%b: i32, %h: i32, %i: i32, %j: i32) {
      %zero = arith.constant 0 : i32
      %k = arith.addi %i, %zero : i32
      %m = arith.cmpi sle, %j, %k : i32
      %n = arith.cmpi sle, %j, %i : i32
      %both = arith.andi %m, %n : i1
      attn.yield %both : i1
    }
    : (!q, !q, !q) -> (!q, !l)
  return %o : !q
}

// Two captures that are equal once the code before them is one... are not
// made so here: that code is not in a region.
// CHECK-LABEL: func.func @code_outside_stays
// CHECK: %[[A:.*]] = arith.addi
// CHECK: %[[B:.*]] = arith.addi
// CHECK: %[[C:.*]] = arith.muli
// CHECK: attn.attention %{{.*}}, %{{.*}}, %{{.*}} captures(%[[A]], %[[B]])
// CHECK: return %{{.*}}, %[[C]]
func.func @code_outside_stays(%q: !q, %n: i32) -> (!q, i32) {
  %u = arith.addi %n, %n : i32
  %v = arith.addi %n, %n : i32
  %one = arith.constant 1 : i32
  %w = arith.muli %n, %one : i32
  %o, %lse = attn.attention %q, %q, %q captures(%u, %v)
    mask(%b: i32, %h: i32, %i: i32, %j: i32, %x: i32, %y: i32) {
      %m = arith.cmpi slt, %i, %x : i32
      %n1 = arith.cmpi slt, %j, %y : i32
      %both = arith.andi %m, %n1 : i1
      attn.yield %both : i1
    }
    : (!q, !q, !q, i32, i32) -> (!q, !l)
  return %o, %w : !q, i32
}

// CHECK-LABEL: func.func @mask_all_false_stays
// CHECK: mask(
// CHECK-NEXT: %[[F:.*]] = arith.constant false
// CHECK-NEXT: attn.yield %[[F]] : i1
func.func @mask_all_false_stays(%q: !q) -> !q {
  %o, %lse = attn.attention %q, %q, %q
    mask(%b: i32, %h: i32, %i: i32, %j: i32) {
      %f = arith.cmpi slt, %i, %i : i32
      attn.yield %f : i1
    }
    : (!q, !q, !q) -> (!q, !l)
  return %o : !q
}
