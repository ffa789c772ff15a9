// RUN: attn-opt %s --convert-attn-to-linalg --canonicalize | FileCheck %s
// RUN: attn-opt %s --convert-attn-to-linalg=precision=input --canonicalize | FileCheck %s --check-prefix=INPUT

!q = tensor<2x8x5x64xf16>
!k = tensor<2x2x7x64xf16>
!v = tensor<2x2x7x32xf16>
!o = tensor<2x8x5x32xf16>
!l = tensor<2x8x5xf32>

// CHECK-DAG: #[[Q:.*]] = affine_map<(d0, d1, d2, d3, d4, d5) -> (d0, d1, d2, d3, d5)>
// CHECK-DAG: #[[K:.*]] = affine_map<(d0, d1, d2, d3, d4, d5) -> (d0, d1, d4, d5)>
// CHECK-DAG: #[[S:.*]] = affine_map<(d0, d1, d2, d3, d4, d5) -> (d0, d1, d2, d3, d4)>

// Three products of queries and keys, three sums of values, in f64.
// CHECK-LABEL: func.func @definition
// CHECK-SAME: -> (tensor<2x8x5x32xf64>, tensor<2x8x5xf64>, tensor<2x8x5x32xf64>, tensor<2x8x5xf64>)
// CHECK-COUNT-3: linalg.generic {indexing_maps = [#[[Q]], #[[K]], #[[S]]]
// CHECK-COUNT-3: linalg.generic {indexing_maps = [#[[S]], #[[K]], #[[Q]]]
// CHECK-NOT: truncf
// Every step is rounded.
// INPUT-LABEL: func.func @definition
// INPUT-SAME: -> (tensor<2x8x5x32xf16>, tensor<2x8x5xf32>, tensor<2x8x5x32xf16>, tensor<2x8x5xf32>)
// INPUT: truncf
func.func @definition(%q: !q, %k: !k, %v: !v, %tq: !q, %tk: !k, %tv: !v) -> (!o, !l, !o, !l) {
  %o, %lse, %to, %tlse = attn.attention_jvp %q, %k, %v, %tq, %tk, %tv
    : (!q, !k, !v, !q, !k, !v) -> (!o, !l, !o, !l)
  return %o, %lse, %to, %tlse : !o, !l, !o, !l
}

// CHECK-LABEL: func.func @pushforward
// CHECK: math.tanh %{{.*}} : f64
// CHECK: arith.mulf %{{.*}}, %{{.*}} : f64
func.func @pushforward(%q: !q, %k: !k, %v: !v, %tq: !q, %tk: !k, %tv: !v) -> !l {
  %o, %lse, %to, %tlse = attn.attention_jvp %q, %k, %v, %tq, %tk, %tv
    pushforward(%tx: f32, %x: f32, %b: i32, %h: i32, %i: i32, %j: i32) {
      %y = math.tanh %x : f32
      %ty = arith.mulf %tx, %y : f32
      attn.yield %ty : f32
    }
    : (!q, !k, !v, !q, !k, !v) -> (!o, !l, !o, !l)
  return %tlse : !l
}
