// RUN: attn-opt %s --canonicalize | FileCheck %s

!q = tensor<1x4x32x64xf16>
!l = tensor<1x4x32xf32>

// CHECK-LABEL: func.func @dead_capture_is_dropped
// CHECK-SAME: %{{.*}}: {{.*}}, %{{.*}}: i32, %[[LIVE:.*]]: i32
// CHECK: attn.attention %{{.*}}, %{{.*}}, %{{.*}} captures(%[[LIVE]]){{$}}
// CHECK-NEXT: score(%{{.*}}: f32, %{{.*}}: i32, %{{.*}}: i32, %{{.*}}: i32, %{{.*}}: i32, %{{.*}}: i32) {
// CHECK: mask(%{{.*}}: i32, %{{.*}}: i32, %{{.*}}: i32, %[[J:.*]]: i32, %[[C:.*]]: i32) {
// CHECK-NEXT: arith.cmpi slt, %[[J]], %[[C]]
func.func @dead_capture_is_dropped(%q: !q, %dead: i32, %live: i32) -> !q {
  %o, %lse = attn.attention %q, %q, %q captures(%dead, %live)
    score(%x: f32, %b: i32, %h: i32, %i: i32, %j: i32, %d: i32, %m: i32) {
      %y = arith.negf %x : f32
      attn.yield %y : f32
    }
    mask(%b: i32, %h: i32, %i: i32, %j: i32, %d: i32, %m: i32) {
      %c = arith.cmpi slt, %j, %m : i32
      attn.yield %c : i1
    }
    : (!q, !q, !q, i32, i32) -> (!q, !l)
  return %o : !q
}

// CHECK-LABEL: func.func @captures_without_regions_are_dropped
// CHECK: attn.attention %{{.*}}, %{{.*}}, %{{.*}} :
func.func @captures_without_regions_are_dropped(%q: !q, %a: i32, %t: tensor<?xf32>) -> !q {
  %o, %lse = attn.attention %q, %q, %q captures(%a, %t)
    : (!q, !q, !q, i32, tensor<?xf32>) -> (!q, !l)
  return %o : !q
}

// CHECK-LABEL: func.func @equal_captures_are_merged
// CHECK: captures(%[[A:.*]], %[[B:.*]]){{$}}
// CHECK-NEXT: mask(%{{.*}}: i32, %{{.*}}: i32, %[[I:.*]]: i32, %[[J:.*]]: i32, %[[CA:.*]]: i32, %[[CB:.*]]: i32) {
// CHECK-DAG: arith.cmpi slt, %[[J]], %[[CA]]
// CHECK-DAG: arith.cmpi slt, %[[I]], %[[CA]]
// CHECK-DAG: arith.cmpi slt, %[[I]], %[[CB]]
func.func @equal_captures_are_merged(%q: !q, %a: i32, %b0: i32) -> !q {
  %o, %lse = attn.attention %q, %q, %q captures(%a, %b0, %a)
    mask(%b: i32, %h: i32, %i: i32, %j: i32, %ca: i32, %cb: i32, %cc: i32) {
      %0 = arith.cmpi slt, %j, %ca : i32
      %1 = arith.cmpi slt, %i, %cb : i32
      %2 = arith.cmpi slt, %i, %cc : i32
      %3 = arith.andi %0, %1 : i1
      %4 = arith.andi %3, %2 : i1
      attn.yield %4 : i1
    }
    : (!q, !q, !q, i32, i32, i32) -> (!q, !l)
  return %o : !q
}

// CHECK-LABEL: func.func @constant_capture_is_sunk
// CHECK-NOT: arith.constant
// CHECK: attn.attention %{{.*}}, %{{.*}}, %{{.*}}{{$}}
// CHECK-NEXT: mask(%{{.*}}: i32, %{{.*}}: i32, %{{.*}}: i32, %[[J:.*]]: i32) {
// CHECK-NEXT: %[[C:.*]] = arith.constant 7 : i32
// CHECK-NEXT: arith.cmpi slt, %[[J]], %[[C]]
func.func @constant_capture_is_sunk(%q: !q) -> !q {
  %c7 = arith.constant 7 : i32
  %o, %lse = attn.attention %q, %q, %q captures(%c7)
    mask(%b: i32, %h: i32, %i: i32, %j: i32, %m: i32) {
      %c = arith.cmpi slt, %j, %m : i32
      attn.yield %c : i1
    }
    : (!q, !q, !q, i32) -> (!q, !l)
  return %o : !q
}

// A table stays a table.
// CHECK-LABEL: func.func @constant_tensor_capture_stays
// CHECK: %[[T:.*]] = arith.constant dense
// CHECK: captures(%[[T]])
func.func @constant_tensor_capture_stays(%q: !q) -> !q {
  %t = arith.constant dense<[1.0, 2.0]> : tensor<2xf32>
  %o, %lse = attn.attention %q, %q, %q captures(%t)
    score(%x: f32, %b: i32, %h: i32, %i: i32, %j: i32, %s: tensor<2xf32>) {
      %c = attn.capture_load %s[%h] : tensor<2xf32>
      %y = arith.addf %x, %c : f32
      attn.yield %y : f32
    }
    : (!q, !q, !q, tensor<2xf32>) -> (!q, !l)
  return %o : !q
}

// CHECK-LABEL: func.func @identity_score_is_dropped
// CHECK-NOT: score
// CHECK: return
func.func @identity_score_is_dropped(%q: !q) -> !q {
  %o, %lse = attn.attention %q, %q, %q
    score(%x: f32, %b: i32, %h: i32, %i: i32, %j: i32) {
      attn.yield %x : f32
    }
    : (!q, !q, !q) -> (!q, !l)
  return %o : !q
}

// Yielding another f32 is not the identity.
// CHECK-LABEL: func.func @captured_score_stays
// CHECK: score(
// CHECK-NEXT: attn.yield
func.func @captured_score_stays(%q: !q, %f: f32) -> !q {
  %o, %lse = attn.attention %q, %q, %q captures(%f)
    score(%x: f32, %b: i32, %h: i32, %i: i32, %j: i32, %g: f32) {
      attn.yield %g : f32
    }
    : (!q, !q, !q, f32) -> (!q, !l)
  return %o : !q
}

// CHECK-LABEL: func.func @mask_all_true_is_dropped
// CHECK-NOT: mask(
// CHECK: return
func.func @mask_all_true_is_dropped(%q: !q) -> !q {
  %o, %lse = attn.attention %q, %q, %q
    mask(%b: i32, %h: i32, %i: i32, %j: i32) {
      %t = arith.constant true
      attn.yield %t : i1
    }
    : (!q, !q, !q) -> (!q, !l)
  return %o : !q
}

// CHECK-LABEL: func.func @mask_all_false_stays
// CHECK: mask(
func.func @mask_all_false_stays(%q: !q) -> !q {
  %o, %lse = attn.attention %q, %q, %q
    mask(%b: i32, %h: i32, %i: i32, %j: i32) {
      %t = arith.constant false
      attn.yield %t : i1
    }
    : (!q, !q, !q) -> (!q, !l)
  return %o : !q
}

// CHECK-LABEL: func.func @empty_variants_are_dropped
// CHECK-NOT: variants
// CHECK: return
func.func @empty_variants_are_dropped(%q: !q) -> !q {
  %o, %lse = attn.attention %q, %q, %q {variants = []} : (!q, !q, !q) -> (!q, !l)
  return %o : !q
}

// CHECK-LABEL: func.func @listed_variants_stay
// CHECK: variants = [#attn.causal]
func.func @listed_variants_stay(%q: !q) -> !q {
  %o, %lse = attn.attention %q, %q, %q {variants = [#attn.causal]} : (!q, !q, !q) -> (!q, !l)
  return %o : !q
}

// CHECK-LABEL: func.func @unused_attention_is_dropped
// CHECK-NEXT: return
func.func @unused_attention_is_dropped(%q: !q) {
  %o, %lse = attn.attention %q, %q, %q : (!q, !q, !q) -> (!q, !l)
  return
}

// CHECK-LABEL: func.func @promises_follow_their_captures
// CHECK: captures(%{{.*}}) {sorted_captures = array<i64: 0>}
func.func @promises_follow_their_captures(%q: !q, %a: tensor<4xi32>, %c: tensor<4xi32>) -> !q {
  %o, %lse = attn.attention %q, %q, %q captures(%a, %c) {sorted_captures = array<i64: 0, 1>}
    mask(%b: i32, %h: i32, %i: i32, %j: i32, %unused: tensor<4xi32>, %t: tensor<4xi32>) {
      %n = attn.capture_search %t[], %i : tensor<4xi32>
      %m = arith.cmpi sge, %n, %j : i32
      attn.yield %m : i1
    }
    : (!q, !q, !q, tensor<4xi32>, tensor<4xi32>) -> (!q, !l)
  return %o : !q
}

// CHECK-LABEL: func.func @equal_captures_keep_a_promise
// CHECK: captures(%{{.*}}) {sorted_captures = array<i64: 0>}
func.func @equal_captures_keep_a_promise(%q: !q, %a: tensor<4xi32>) -> !q {
  %o, %lse = attn.attention %q, %q, %q captures(%a, %a) {sorted_captures = array<i64: 1>}
    mask(%b: i32, %h: i32, %i: i32, %j: i32, %s: tensor<4xi32>, %t: tensor<4xi32>) {
      %n = attn.capture_load %s[%i] : tensor<4xi32>
      %p = attn.capture_load %t[%j] : tensor<4xi32>
      %m = arith.cmpi eq, %n, %p : i32
      attn.yield %m : i1
    }
    : (!q, !q, !q, tensor<4xi32>, tensor<4xi32>) -> (!q, !l)
  return %o : !q
}

// Captures without gradient go; those with one stay, under their new numbers,
// though nobody reads them or they are constants.
// CHECK-LABEL: func.func @captures_of_gradients_stay
// CHECK-SAME: %[[Q:[^:]*]]: tensor<1x4x32x64xf16>, %{{.*}}: tensor<1x4x32xf32>, %{{.*}}: i32, %[[G:.*]]: f32)
// CHECK: %[[ONE:.*]] = arith.constant 1.000000e+00 : f32
// CHECK: attn.attention_backward {{.*}} captures(%[[G]], %[[ONE]]) {grad_captures = array<i64: 0, 1>}
// CHECK-NEXT: pullback(%[[DY:.*]]: f32, %{{.*}}: f32, %{{.*}}: i32, %{{.*}}: i32, %{{.*}}: i32, %{{.*}}: i32, %[[E:.*]]: f32, %{{.*}}: f32) {
// CHECK-NEXT: attn.capture_add %[[DY]], %[[E]][] : f32
// CHECK-NEXT: attn.yield %[[DY]] : f32
func.func @captures_of_gradients_stay(%q: !q, %l: !l, %dead: i32, %g: f32) -> (tensor<f32>, tensor<f32>) {
  %one = arith.constant 1.0 : f32
  %r:5 = attn.attention_backward %q, %q, %q, %q, %l, %q captures(%dead, %g, %one) {grad_captures = array<i64: 1, 2>}
    score(%x: f32, %b: i32, %h: i32, %i: i32, %j: i32, %d: i32, %e: f32, %f: f32) {
      attn.yield %x : f32
    }
    mask(%b: i32, %h: i32, %i: i32, %j: i32, %d: i32, %e: f32, %f: f32) {
      %true = arith.constant true
      attn.yield %true : i1
    }
    pullback(%dy: f32, %x: f32, %b: i32, %h: i32, %i: i32, %j: i32, %d: i32, %e: f32, %f: f32) {
      attn.capture_add %dy, %e[] : f32
      attn.yield %dy : f32
    }
    : (!q, !q, !q, !q, !l, !q, i32, f32, f32) -> (!q, !q, !q, tensor<f32>, tensor<f32>)
  return %r#3, %r#4 : tensor<f32>, tensor<f32>
}

// CHECK-LABEL: func.func @identity_pullback
// CHECK: attn.attention_backward
// CHECK-NOT: pullback
// CHECK: return
func.func @identity_pullback(%q: !q, %l: !l) -> !q {
  %r:3 = attn.attention_backward %q, %q, %q, %q, %l, %q
    pullback(%dy: f32, %x: f32, %b: i32, %h: i32, %i: i32, %j: i32) {
      attn.yield %dy : f32
    }
    : (!q, !q, !q, !q, !l, !q) -> (!q, !q, !q)
  return %r#0 : !q
}
