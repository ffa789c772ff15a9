// RUN: attn-opt %s | attn-opt | FileCheck %s
// RUN: attn-opt %s --mlir-print-op-generic | attn-opt | FileCheck %s
// RUN: attn-opt %s --attn-simplify | FileCheck %s --check-prefix=SIMPLE

!q = tensor<2x4x?x64xf16>
!k = tensor<2x2x?x64xf16>
!l = tensor<2x4x?xf32>

// CHECK-LABEL: func.func @smallest
// CHECK: %[[O:.*]], %[[LSE:.*]], %[[TO:.*]], %[[TLSE:.*]] = attn.attention_jvp %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} : (tensor<2x4x?x64xf16>,
// CHECK: return %[[O]], %[[LSE]], %[[TO]], %[[TLSE]]
func.func @smallest(%q: !q, %k: !k, %v: !k, %tq: !q, %tk: !k, %tv: !k) -> (!q, !l, !q, !l) {
  %o, %lse, %to, %tlse = attn.attention_jvp %q, %k, %v, %tq, %tk, %tv
    : (!q, !k, !k, !q, !k, !k) -> (!q, !l, !q, !l)
  return %o, %lse, %to, %tlse : !q, !l, !q, !l
}

// CHECK-LABEL: func.func @everything
// CHECK: attn.attention_jvp %{{.*}} sink(%{{.*}}) dropout(%{{.*}}, %{{.*}}) captures(%{{.*}}, %{{.*}}) {dropout_p = 1.000000e-01 : f64, numerics = #attn.numerics<deterministic = false>, scale = 5.000000e-01 : f64, sorted_captures = array<i64>}
// CHECK-NEXT: score(%{{.*}}: f32, %{{.*}}: i32, %{{.*}}: i32, %{{.*}}: i32, %{{.*}}: i32, %{{.*}}: tensor<?x?xbf16>, %{{.*}}: i32) {
// CHECK: mask(
// CHECK: pushforward(%[[TX:.*]]: f32, %{{.*}}: f32, %{{.*}}: i32, %{{.*}}: i32, %[[I:.*]]: i32, %[[J:.*]]: i32, %[[T:.*]]: tensor<?x?xbf16>, %{{.*}}: i32) {
// CHECK-NEXT: attn.capture_load %[[T]][%[[I]], %[[J]]]
// CHECK: attn.yield %{{.*}} : f32
// CHECK: -> (tensor<2x4x?x64xf16>, tensor<2x4x?xf32>, tensor<2x4x?x64xf16>, tensor<2x4x?xf32>)
func.func @everything(%q: !q, %k: !k, %v: !k, %tq: !q, %tk: !k, %tv: !k, %s: tensor<4xbf16>, %a: i32,
                      %table: tensor<?x?xbf16>) -> !q {
  %o, %lse, %to, %tlse = attn.attention_jvp %q, %k, %v, %tq, %tk, %tv
      sink(%s) dropout(%a, %a) captures(%table, %a)
      {dropout_p = 0.1, scale = 0.5, sorted_captures = array<i64>,
       numerics = #attn.numerics<deterministic = false>}
    score(%x: f32, %b: i32, %h: i32, %i: i32, %j: i32, %t: tensor<?x?xbf16>, %n: i32) {
      %u = attn.capture_load %t[%i, %j] : tensor<?x?xbf16>
      %w = arith.extf %u : bf16 to f32
      %y = arith.mulf %x, %w : f32
      attn.yield %y : f32
    }
    mask(%b: i32, %h: i32, %i: i32, %j: i32, %t: tensor<?x?xbf16>, %n: i32) {
      %m = arith.cmpi sle, %j, %n : i32
      attn.yield %m : i1
    }
    pushforward(%tx: f32, %x: f32, %b: i32, %h: i32, %i: i32, %j: i32, %t: tensor<?x?xbf16>, %n: i32) {
      %u = attn.capture_load %t[%i, %j] : tensor<?x?xbf16>
      %w = arith.extf %u : bf16 to f32
      %ty = arith.mulf %tx, %w : f32
      attn.yield %ty : f32
    }
    : (!q, !k, !k, !q, !k, !k, tensor<4xbf16>, i32, i32, tensor<?x?xbf16>, i32) -> (!q, !l, !q, !l)
  return %to : !q
}

// A pushforward that hands tx on goes, and with it captures that nobody reads.
// SIMPLE-LABEL: func.func @identity
// SIMPLE-NOT: captures
// SIMPLE-NOT: pushforward
// SIMPLE: return
func.func @identity(%q: !q, %k: !k, %v: !k, %tq: !q, %tk: !k, %tv: !k, %c: f32) -> !q {
  %o, %lse, %to, %tlse = attn.attention_jvp %q, %k, %v, %tq, %tk, %tv captures(%c)
    pushforward(%tx: f32, %x: f32, %b: i32, %h: i32, %i: i32, %j: i32, %f: f32) {
      attn.yield %tx : f32
    }
    : (!q, !k, !k, !q, !k, !k, f32) -> (!q, !l, !q, !l)
  return %to : !q
}
