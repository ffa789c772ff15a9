// RUN: attn-opt %s --attn-expand-variants | FileCheck %s

!q = tensor<2x4x16x64xf16>
!k = tensor<2x4x24x64xf16>
!l = tensor<2x4x16xf32>
!dq = tensor<2x?x?x64xf16>
!dk = tensor<2x?x?x64xf16>
!dl = tensor<2x?x?xf32>

// The last query sees the last key: the offset is 24 - 16.
// CHECK-LABEL: func.func @causal(
// CHECK-NOT: tensor.dim
// CHECK: attn.attention
// CHECK-NOT: variants
// CHECK-NOT: score
// CHECK: mask(%{{.*}}: i32, %{{.*}}: i32, %[[I:.*]]: i32, %[[J:.*]]: i32) {
// CHECK: %[[OFFSET:.*]] = arith.constant 8 : i32
// CHECK: %[[LAST:.*]] = arith.addi %[[I]], %[[OFFSET]] : i32
// CHECK: %[[SEEN:.*]] = arith.cmpi sle, %[[J]], %[[LAST]] : i32
// CHECK: attn.yield %[[SEEN]] : i1
func.func @causal(%q: !q, %k: !k) -> (!q, !l) {
  %o, %lse = attn.attention %q, %k, %k {variants = [#attn.causal]}
    : (!q, !k, !k) -> (!q, !l)
  return %o, %lse : !q, !l
}

// CHECK-LABEL: func.func @causal_top_left(
// CHECK: mask(%{{.*}}: i32, %{{.*}}: i32, %[[I:.*]]: i32, %[[J:.*]]: i32) {
// CHECK-NEXT: %[[SEEN:.*]] = arith.cmpi sle, %[[J]], %[[I]] : i32
// CHECK-NEXT: attn.yield %[[SEEN]] : i1
func.func @causal_top_left(%q: !q, %k: !k) -> !q {
  %o, %lse = attn.attention %q, %k, %k {variants = [#attn.causal<top_left>]}
    : (!q, !k, !k) -> (!q, !l)
  return %o : !q
}

// Unknown lengths: the offset is a capture, after those there were, and other
// attributes stay.
// CHECK-LABEL: func.func @causal_dynamic(
// CHECK-SAME: %[[Q:.*]]: tensor<2x?x?x64xf16>, %[[K:.*]]: tensor<2x?x?x64xf16>, %[[N:.*]]: i32
// CHECK-DAG: %[[KEYS:.*]] = tensor.dim %[[K]], %c2
// CHECK-DAG: %[[QUERIES:.*]] = tensor.dim %[[Q]], %c2
// CHECK: %[[DIFFERENCE:.*]] = arith.subi %[[KEYS]], %[[QUERIES]] : index
// CHECK: %[[CAST:.*]] = arith.index_cast %[[DIFFERENCE]] : index to i32
// CHECK: attn.attention %[[Q]], %[[K]], %[[K]] captures(%[[N]], %[[CAST]])
// CHECK-SAME: plan = #attn.plan<target = cpu, block_q = 16, block_k = 16>
// CHECK-SAME: scale = 5.000000e-01 : f64
// CHECK-SAME: some.mark
// CHECK: mask(%{{.*}}: i32, %{{.*}}: i32, %[[I:.*]]: i32, %[[J:.*]]: i32, %[[N2:.*]]: i32, %[[OFFSET:.*]]: i32) {
// CHECK: %[[LAST:.*]] = arith.addi %[[I]], %[[OFFSET]] : i32
// CHECK: %[[SEEN:.*]] = arith.cmpi sle, %[[J]], %[[LAST]] : i32
// CHECK: %[[USER:.*]] = arith.cmpi slt, %[[J]], %[[N2]] : i32
// CHECK: %[[BOTH:.*]] = arith.andi %[[SEEN]], %[[USER]] : i1
// CHECK: attn.yield %[[BOTH]] : i1
func.func @causal_dynamic(%q: !dq, %k: !dk, %n: i32) -> !dq {
  %o, %lse = attn.attention %q, %k, %k captures(%n) {
      scale = 0.5, variants = [#attn.causal], some.mark,
      plan = #attn.plan<target = cpu, block_q = 16, block_k = 16>}
    mask(%b: i32, %h: i32, %i: i32, %j: i32, %m: i32) {
      %c = arith.cmpi slt, %j, %m : i32
      attn.yield %c : i1
    }
    : (!dq, !dk, !dk, i32) -> (!dq, !dl)
  return %o : !dq
}

// CHECK-LABEL: func.func @window(
// CHECK: mask(%{{.*}}: i32, %{{.*}}: i32, %[[I:.*]]: i32, %[[J:.*]]: i32) {
// CHECK: %[[C10:.*]] = arith.constant 10 : i32
// CHECK: %[[LAST:.*]] = arith.addi %[[I]], %[[C10]] : i32
// CHECK: %[[BEFORE:.*]] = arith.cmpi sle, %[[J]], %[[LAST]] : i32
// CHECK: %[[C3:.*]] = arith.constant 3 : i32
// CHECK: %[[FIRST:.*]] = arith.addi %[[I]], %[[C3]] : i32
// CHECK: %[[AFTER:.*]] = arith.cmpi sge, %[[J]], %[[FIRST]] : i32
// CHECK: arith.andi %[[BEFORE]], %[[AFTER]] : i1
func.func @window(%q: !q, %k: !k) -> !q {
  %o, %lse = attn.attention %q, %k, %k {variants = [#attn.window<left = 5, right = 2>]}
    : (!q, !k, !k) -> (!q, !l)
  return %o : !q
}

// A side that is unbounded costs nothing.
// CHECK-LABEL: func.func @window_left_only(
// CHECK: mask(%{{.*}}: i32, %{{.*}}: i32, %[[I:.*]]: i32, %[[J:.*]]: i32) {
// CHECK-NEXT: %[[C:.*]] = arith.constant -5 : i32
// CHECK-NEXT: %[[FIRST:.*]] = arith.addi %[[I]], %[[C]] : i32
// CHECK-NEXT: %[[AFTER:.*]] = arith.cmpi sge, %[[J]], %[[FIRST]] : i32
// CHECK-NEXT: attn.yield %[[AFTER]] : i1
func.func @window_left_only(%q: !q, %k: !k) -> !q {
  %o, %lse = attn.attention %q, %k, %k
    {variants = [#attn.window<left = 5, alignment = top_left>]}
    : (!q, !k, !k) -> (!q, !l)
  return %o : !q
}

// CHECK-LABEL: func.func @window_unbounded(
// CHECK-NOT: mask(
// CHECK: return
func.func @window_unbounded(%q: !dq, %k: !dk) -> !dq {
  %o, %lse = attn.attention %q, %k, %k
    {variants = [#attn.window<left = -1>]} : (!dq, !dk, !dk) -> (!dq, !dl)
  return %o : !dq
}

// CHECK-LABEL: func.func @softcap(
// CHECK: score(%[[X:.*]]: f32, %{{.*}}) {
// CHECK: %[[INVERSE:.*]] = arith.constant 2.000000e-02 : f32
// CHECK: %[[RATIO:.*]] = arith.mulf %[[X]], %[[INVERSE]] : f32
// CHECK: %[[BENT:.*]] = math.tanh %[[RATIO]] : f32
// CHECK: %[[CAP:.*]] = arith.constant 5.000000e+01 : f32
// CHECK: %[[Y:.*]] = arith.mulf %[[BENT]], %[[CAP]] : f32
// CHECK: attn.yield %[[Y]] : f32
// CHECK-NOT: mask
func.func @softcap(%q: !q, %k: !k) -> !q {
  %o, %lse = attn.attention %q, %k, %k {variants = [#attn.softcap<50.0>]}
    : (!q, !k, !k) -> (!q, !l)
  return %o : !q
}

// Four heads: slopes 2^-2, 2^-4, 2^-6, 2^-8.
// CHECK-LABEL: func.func @alibi(
// CHECK: score(%[[X:.*]]: f32, %{{.*}}: i32, %[[H:.*]]: i32, %[[I:.*]]: i32, %[[J:.*]]: i32) {
// CHECK-DAG: %[[RATE:.*]] = arith.constant -2.000000e+00 : f32
// CHECK-DAG: %[[ONE:.*]] = arith.constant 1 : i32
// CHECK: %[[H1:.*]] = arith.addi %[[H]], %[[ONE]] : i32
// CHECK: %[[RANK:.*]] = arith.sitofp %[[H1]] : i32 to f32
// CHECK: %[[POWER:.*]] = arith.mulf %[[RATE]], %[[RANK]] : f32
// CHECK: %[[SLOPE:.*]] = math.exp2 %[[POWER]] : f32
// CHECK: %[[C8:.*]] = arith.constant 8 : i32
// CHECK: %[[DIAGONAL:.*]] = arith.addi %[[I]], %[[C8]] : i32
// CHECK: %[[D:.*]] = arith.subi %[[DIAGONAL]], %[[J]] : i32
// CHECK: %[[F:.*]] = arith.sitofp %[[D]] : i32 to f32
// CHECK: %[[ABS:.*]] = math.absf %[[F]] : f32
// CHECK: %[[BIAS:.*]] = arith.mulf %[[SLOPE]], %[[ABS]] : f32
// CHECK: arith.subf %[[X]], %[[BIAS]] : f32
func.func @alibi(%q: !q, %k: !k) -> !q {
  %o, %lse = attn.attention %q, %k, %k {variants = [#attn.alibi]}
    : (!q, !k, !k) -> (!q, !l)
  return %o : !q
}

// CHECK-LABEL: func.func @alibi_dynamic(
// CHECK: tensor.dim %{{.*}}, %c1
// CHECK: attn.attention %{{.*}}, %{{.*}}, %{{.*}} captures(%{{.*}}){{$}}
// CHECK-NEXT: score(%[[X:.*]]: f32, %{{.*}}: i32, %[[H:.*]]: i32, %[[I:.*]]: i32, %[[J:.*]]: i32, %[[HEADS:.*]]: i32) {
// CHECK: arith.sitofp %[[HEADS]] : i32 to f32
// CHECK: arith.divf
// CHECK: arith.subi %[[I]], %[[J]] : i32
// CHECK-NOT: mask(
func.func @alibi_dynamic(%q: !dq, %k: !dk) -> !dq {
  %o, %lse = attn.attention %q, %k, %k {variants = [#attn.alibi<top_left>]}
    : (!dq, !dk, !dk) -> (!dq, !dl)
  return %o : !dq
}

// Keys after the diagonal are hidden; after another diagonal they need not be.
// CHECK-LABEL: func.func @alibi_causal(
// CHECK: arith.sitofp
// CHECK-NOT: math.absf
// CHECK: arith.subf
// CHECK-LABEL: func.func @alibi_window(
// CHECK-NOT: math.absf
// CHECK: arith.subf
// CHECK-LABEL: func.func @alibi_other_diagonal(
// CHECK: math.absf
func.func @alibi_causal(%q: !dq, %k: !dk) -> !dq {
  %o, %lse = attn.attention %q, %k, %k {variants = [#attn.alibi, #attn.causal]}
    : (!dq, !dk, !dk) -> (!dq, !dl)
  return %o : !dq
}
func.func @alibi_window(%q: !dq, %k: !dk) -> !dq {
  %o, %lse = attn.attention %q, %k, %k {variants = [#attn.window<left = 7, right = 0>, #attn.alibi]}
    : (!dq, !dk, !dk) -> (!dq, !dl)
  return %o : !dq
}
func.func @alibi_other_diagonal(%q: !dq, %k: !dk) -> !dq {
  %o, %lse = attn.attention %q, %k, %k {variants = [#attn.alibi, #attn.causal<top_left>, #attn.window<left = 7, right = 1>]}
    : (!dq, !dk, !dk) -> (!dq, !dl)
  return %o : !dq
}

// The listed order, then the score region there was. One offset serves both
// regions; what they capture already keeps its number.
// CHECK-LABEL: func.func @everything(
// CHECK: attn.attention %{{.*}}, %{{.*}}, %{{.*}} captures(%{{.*}}, %{{.*}}, %{{.*}}){{$}}
// CHECK-NEXT: score(%[[X:.*]]: f32, %{{.*}}: i32, %{{.*}}: i32, %[[I:.*]]: i32, %{{.*}}: i32, %[[BIAS:.*]]: tensor<?xf32>, %[[OFFSET:.*]]: i32, %{{.*}}: i32) {
// CHECK: arith.addi %[[I]], %[[OFFSET]] : i32
// CHECK: %[[A:.*]] = arith.subf %[[X]]
// CHECK: arith.mulf %[[A]]
// CHECK: %[[S:.*]] = arith.mulf
// CHECK: %[[B:.*]] = attn.capture_load %[[BIAS]][%[[I]]]
// CHECK: %[[Y:.*]] = arith.addf %[[S]], %[[B]] : f32
// CHECK: attn.yield %[[Y]] : f32
// CHECK: mask(%{{.*}}: i32, %{{.*}}: i32, %{{.*}}: i32, %{{.*}}: i32, %{{.*}}: tensor<?xf32>, %{{.*}}: i32, %{{.*}}: i32) {
// CHECK: arith.cmpi sle
// CHECK: arith.cmpi sge
// CHECK: attn.yield
func.func @everything(%q: !dq, %k: !dk, %bias: tensor<?xf32>) -> !dq {
  %o, %lse = attn.attention %q, %k, %k captures(%bias)
    {variants = [#attn.alibi, #attn.causal, #attn.softcap<30.0>, #attn.window<left = 7>]}
    score(%x: f32, %b: i32, %h: i32, %i: i32, %j: i32, %t: tensor<?xf32>) {
      %s = attn.capture_load %t[%i] : tensor<?xf32>
      %y = arith.addf %x, %s : f32
      attn.yield %y : f32
    }
    : (!dq, !dk, !dk, tensor<?xf32>) -> (!dq, !dl)
  return %o : !dq
}

// A score that a mask variant does not touch gets the new capture too.
// CHECK-LABEL: func.func @score_beside_mask(
// CHECK: score(%[[X:.*]]: f32, %{{.*}}: i32, %{{.*}}: i32, %{{.*}}: i32, %{{.*}}: i32, %{{.*}}: i32) {
// CHECK-NEXT: %[[Y:.*]] = arith.negf %[[X]] : f32
// CHECK-NEXT: attn.yield %[[Y]] : f32
func.func @score_beside_mask(%q: !dq, %k: !dk) -> !dq {
  %o, %lse = attn.attention %q, %k, %k {variants = [#attn.causal]}
    score(%x: f32, %b: i32, %h: i32, %i: i32, %j: i32) {
      %y = arith.negf %x : f32
      attn.yield %y : f32
    }
    : (!dq, !dk, !dk) -> (!dq, !dl)
  return %o : !dq
}

// Nothing listed: regions and captures stay as they are.
// CHECK-LABEL: func.func @no_variants(
// CHECK: attn.attention %{{.*}}, %{{.*}}, %{{.*}} captures(%{{.*}}){{$}}
// CHECK-NEXT: mask(%{{.*}}: i32, %{{.*}}: i32, %{{.*}}: i32, %{{.*}}: i32, %[[M:.*]]: i1) {
// CHECK-NEXT: attn.yield %[[M]] : i1
func.func @no_variants(%q: !q, %k: !k, %m: i1) -> !q {
  %o, %lse = attn.attention %q, %k, %k captures(%m)
    mask(%b: i32, %h: i32, %i: i32, %j: i32, %c: i1) {
      attn.yield %c : i1
    }
    : (!q, !k, !k, i1) -> (!q, !l)
  return %o : !q
}
