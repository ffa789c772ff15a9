// What gradients compute again, and why.
//
// RUN: attn-opt %s --attn-recompute | FileCheck %s
// RUN: attn-opt %s --attn-recompute --attn-recompute | FileCheck %s
// RUN: attn-opt %s --attn-recompute --remarks-filter=.* --remark-policy=all -o /dev/null 2>&1 | FileCheck %s --check-prefix=REMARK

#plan = #attn.plan<target = sm_90a, block_q = 128, block_k = 64, warps = 8>
#any = #attn.numerics<deterministic = false>
!t = tensor<2x4x?x64xbf16>
!l = tensor<2x4x?xf32>

// Sums have an order: two programs. By row, block and score, as sizes are unknown.
// CHECK-LABEL: func.func @ordered(
// CHECK: recompute = #attn.recompute<scores = twice, lse = far_rows>
// REMARK: recompute.mlir:[[#@LINE+4]]:{{.*}} [Analysis] scores | Category:attn-recompute{{.*}} | once="bytes 512 by row + 512 by row and block, operations 640 by score", reason="sums are deterministic, and those of d_query have no order", recomputed=twice, saved="bytes 6 by score, operations 640 by score", thrice="bytes 0, operations 1024 by score", twice="bytes 0, operations 896 by score"
// REMARK: [Analysis] lse | Category:attn-recompute{{.*}} | always="bytes 16 by row, operations 132 by score", never="bytes 8 by row, operations 0", reason="scores may be large", recomputed=far_rows
// REMARK: [Analysis] delta | Category:attn-recompute{{.*}} | by-block="bytes 128 by row and block, operations 128 by row and block", once="bytes 8 by row, operations 128 by row", recomputed=once
func.func @ordered(%q: !t, %k: !t, %v: !t, %o: !t, %lse: !l, %do: !t) -> (!t, !t, !t) {
  %dq, %dk, %dv = attn.attention_backward %q, %k, %v, %o, %lse, %do {plan = #plan}
    : (!t, !t, !t, !t, !l, !t) -> (!t, !t, !t)
  return %dq, %dk, %dv : !t, !t, !t
}

// CHECK-LABEL: func.func @in_any_order(
// CHECK: recompute = #attn.recompute<scores = once, lse = far_rows>
// REMARK: [Analysis] scores {{.*}} reason="sums may be in any order", recomputed=once
func.func @in_any_order(%q: !t, %k: !t, %v: !t, %o: !t, %lse: !l, %do: !t) -> (!t, !t, !t) {
  %dq, %dk, %dv = attn.attention_backward %q, %k, %v, %o, %lse, %do {plan = #plan, numerics = #any}
    : (!t, !t, !t, !t, !l, !t) -> (!t, !t, !t)
  return %dq, %dk, %dv : !t, !t, !t
}

// Nobody asks for d_key.
// CHECK-LABEL: func.func @of_values(
// CHECK: recompute = #attn.recompute<scores = twice,
// REMARK: [Analysis] scores {{.*}} reason="nobody asks for both d_query and d_key", recomputed=twice
func.func @of_values(%q: !t, %k: !t, %v: !t, %o: !t, %lse: !l, %do: !t) -> (!t, !t) {
  %dq, %dk, %dv = attn.attention_backward %q, %k, %v, %o, %lse, %do {plan = #plan, numerics = #any}
    : (!t, !t, !t, !t, !l, !t) -> (!t, !t, !t)
  return %dq, %dv : !t, !t
}

// Few queries, of which all is known: 8 x 256 rows, 2 blocks of keys, 2^19 scores.
// CHECK-LABEL: func.func @short(
// CHECK: recompute = #attn.recompute<scores = twice, lse = far_rows>
// REMARK: [Analysis] scores {{.*}} once="bytes 3145728, operations 335544320", reason="up to 866 queries two programs are faster", recomputed=twice, saved="bytes 3145728, operations 335544320", thrice="bytes 0, operations 536870912", twice="bytes 0, operations 469762048"
!s = tensor<2x4x256x64xbf16>
!r = tensor<2x4x256xf32>
func.func @short(%q: !s, %k: !s, %v: !s, %o: !s, %lse: !r, %do: !s) -> (!s, !s, !s) {
  %dq, %dk, %dv = attn.attention_backward %q, %k, %v, %o, %lse, %do {plan = #plan, numerics = #any}
    : (!s, !s, !s, !s, !r, !s) -> (!s, !s, !s)
  return %dq, %dk, %dv : !s, !s, !s
}

// So many are short for a GPU alone that was measured, and with a mask more are.
#older = #attn.plan<target = sm_80, block_q = 64, block_k = 64, warps = 4>
!m = tensor<2x4x900x64xbf16>
!n = tensor<2x4x900xf32>
// CHECK-LABEL: func.func @middle(
// CHECK: recompute = #attn.recompute<scores = once,
// CHECK: recompute = #attn.recompute<scores = twice,
// CHECK: recompute = #attn.recompute<scores = once,
// CHECK: recompute = #attn.recompute<scores = twice,
// REMARK: [Analysis] scores {{.*}} reason="sums may be in any order", recomputed=once
// REMARK: [Analysis] scores {{.*}} reason="up to 1739 queries two programs are faster", recomputed=twice
// REMARK: [Analysis] scores {{.*}} reason="sums may be in any order", recomputed=once
// REMARK: [Analysis] scores {{.*}} reason="up to 942 queries two programs are faster", recomputed=twice
func.func @middle(%q: !m, %k: !m, %v: !m, %o: !m, %lse: !n, %do: !m) -> (!m, !m, !m, !m, !m, !m, !m, !m) {
  %aq, %ak, %av = attn.attention_backward %q, %k, %v, %o, %lse, %do {plan = #plan, numerics = #any}
    : (!m, !m, !m, !m, !n, !m) -> (!m, !m, !m)
  %bq, %bk, %bv = attn.attention_backward %q, %k, %v, %o, %lse, %do {plan = #plan, numerics = #any}
    mask(%b: i32, %h: i32, %i: i32, %j: i32) {
      %m = arith.cmpi sge, %i, %j : i32
      attn.yield %m : i1
    } : (!m, !m, !m, !m, !n, !m) -> (!m, !m, !m)
  %cq, %ck, %cv = attn.attention_backward %q, %k, %v, %o, %lse, %do {plan = #older, numerics = #any}
    : (!m, !m, !m, !m, !n, !m) -> (!m, !m, !m)
  %dq, %dk, %dv = attn.attention_backward %q, %k, %v, %o, %lse, %do {plan = #older, numerics = #any}
    mask(%b: i32, %h: i32, %i: i32, %j: i32) {
      %m = arith.cmpi sge, %i, %j : i32
      attn.yield %m : i1
    } : (!m, !m, !m, !m, !n, !m) -> (!m, !m, !m)
  return %aq, %ak, %bq, %bk, %cq, %ck, %dq, %dk : !m, !m, !m, !m, !m, !m, !m, !m
}

// A plan for some of the lengths that are not known.
#two = #attn.plan<target = sm_90a, block_q = 128, block_k = 64, warps = 8, scores = twice>
// CHECK-LABEL: func.func @planned(
// CHECK: recompute = #attn.recompute<scores = twice, lse = far_rows>
// CHECK: recompute = #attn.recompute<scores = twice, lse = always>
// REMARK: [Analysis] scores {{.*}} reason="the plan says so", recomputed=twice
// REMARK: [Analysis] scores {{.*}} reason="asked for", recomputed=twice
func.func @planned(%q: !t, %k: !t, %v: !t, %o: !t, %lse: !l, %do: !t) -> (!t, !t, !t, !t) {
  %dq, %dk, %dv = attn.attention_backward %q, %k, %v, %o, %lse, %do {plan = #two, numerics = #any}
    : (!t, !t, !t, !t, !l, !t) -> (!t, !t, !t)
  %eq, %ek, %ev = attn.attention_backward %q, %k, %v, %o, %lse, %do {plan = #two, numerics = #any, recompute = #attn.recompute<scores = twice, lse = always>}
    : (!t, !t, !t, !t, !l, !t) -> (!t, !t, !t)
  return %dq, %dk, %eq, %ek : !t, !t, !t, !t
}

// 96 columns of 192 are no whole patterns of the swizzle of tiles without
// panels; those with panels have narrower ones.
#sm80 = #attn.plan<target = sm_80, block_q = 64, block_k = 32, warps = 4>
!w = tensor<2x4x?x192xbf16>
// CHECK-LABEL: func.func @odd_halves(
// CHECK: recompute = #attn.recompute<scores = twice,
// REMARK: [Analysis] scores {{.*}} reason="the warps of the plan cannot share a product of 32 rows and 192 columns", recomputed=twice
func.func @odd_halves(%q: !w, %k: !w, %v: !t, %o: !t, %lse: !l, %do: !t) -> (!w, !w, !t) {
  %dq, %dk, %dv = attn.attention_backward %q, %k, %v, %o, %lse, %do {plan = #sm80, numerics = #any}
    : (!w, !w, !t, !t, !l, !t) -> (!w, !w, !t)
  return %dq, %dk, %dv : !w, !w, !t
}

// CHECK-LABEL: func.func @wide_queries(
// CHECK: recompute = #attn.recompute<scores = twice,
// REMARK: [Analysis] scores {{.*}} reason="sums of 192 columns of d_query leave no registers for products in flight", recomputed=twice
func.func @wide_queries(%q: !w, %k: !w, %v: !t, %o: !t, %lse: !l, %do: !t) -> (!w, !w, !t) {
  %dq, %dk, %dv = attn.attention_backward %q, %k, %v, %o, %lse, %do {plan = #plan, numerics = #any}
    : (!w, !w, !t, !t, !l, !t) -> (!w, !w, !t)
  return %dq, %dk, %dv : !w, !w, !t
}

// CHECK-LABEL: func.func @many_columns(
// CHECK: recompute = #attn.recompute<scores = thrice, lse = far_rows>
// REMARK: [Analysis] scores {{.*}} reason="d_key and d_value have 384 columns, more than the 256 of which lanes have registers for both sums", recomputed=thrice
func.func @many_columns(%q: !w, %k: !w, %v: !w, %o: !w, %lse: !l, %do: !w) -> (!w, !w, !w) {
  %dq, %dk, %dv = attn.attention_backward %q, %k, %v, %o, %lse, %do {plan = #plan, numerics = #any}
    : (!w, !w, !w, !w, !l, !w) -> (!w, !w, !w)
  return %dq, %dk, %dv : !w, !w, !w
}

// A bound of the scores; tanh is there twice, and computed once; random numbers.
!g = tensor<2x4x?x128xbf16>
// CHECK-LABEL: func.func @bounded(
// CHECK: recompute = #attn.recompute<scores = twice, lse = never>
// REMARK: [Analysis] scores {{.*}} reason="beside products of 256 columns a score function or random numbers would spill", recomputed=twice
// REMARK: [Analysis] lse {{.*}} reason="the score function yields no more", recomputed=never
// REMARK: [Analysis] score-function | Category:attn-recompute{{.*}} | costly=1, recomputed="once by program and element", saved="bytes 12 by score, operations 0", shared-with-pullback=1
// REMARK: [Analysis] dropout | Category:attn-recompute{{.*}} | drawn="bytes 0, operations 20 by score", recomputed="once by program and element", saved="bytes 0.375 by score, operations 0"
func.func @bounded(%q: !g, %k: !g, %v: !g, %o: !g, %lse: !l, %do: !g, %a: i32) -> (!g, !g, !g) {
  %dq, %dk, %dv = attn.attention_backward %q, %k, %v, %o, %lse, %do dropout(%a, %a) {plan = #plan, numerics = #any, dropout_p = 0.25}
    score(%x: f32, %b: i32, %h: i32, %i: i32, %j: i32) {
      %y = math.tanh %x : f32
      attn.yield %y : f32
    }
    pullback(%dy: f32, %x: f32, %b: i32, %h: i32, %i: i32, %j: i32) {
      %y = math.tanh %x : f32
      %y2 = arith.mulf %y, %y : f32
      %e = arith.mulf %dy, %y2 : f32
      %dx = arith.subf %dy, %e : f32
      attn.yield %dx : f32
    } : (!g, !g, !g, !g, !l, !g, i32, i32) -> (!g, !g, !g)
  return %dq, %dk, %dv : !g, !g, !g
}

// What was set stays; what was left open is decided.
// CHECK-LABEL: func.func @kept(
// CHECK: recompute = #attn.recompute<scores = thrice, lse = far_rows>
// CHECK: recompute = #attn.recompute<scores = twice, lse = always>
// REMARK: [Analysis] scores {{.*}} reason="asked for", recomputed=thrice
// REMARK: [Analysis] lse {{.*}} reason="scores may be large", recomputed=far_rows
// REMARK: [Analysis] scores {{.*}} reason="nobody asks for both d_query and d_key", recomputed=twice
// REMARK: [Analysis] lse {{.*}} reason="asked for", recomputed=always
func.func @kept(%q: !t, %k: !t, %v: !t, %o: !t, %lse: !l, %do: !t) -> (!t, !t) {
  %dq, %dk, %dv = attn.attention_backward %q, %k, %v, %o, %lse, %do {plan = #plan, recompute = #attn.recompute<scores = thrice>}
    : (!t, !t, !t, !t, !l, !t) -> (!t, !t, !t)
  %eq, %ek, %ev = attn.attention_backward %q, %k, %v, %o, %lse, %do {plan = #plan, recompute = #attn.recompute<lse = always>}
    : (!t, !t, !t, !t, !l, !t) -> (!t, !t, !t)
  return %dq, %eq : !t, !t
}
