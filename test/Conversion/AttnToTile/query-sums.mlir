// Where sums may come in any order, blocks of keys add up the gradients of
// queries: five products in one kernel. Groups of rows then read what others
// compute, and go through the same blocks.
//
// RUN: attn-opt %s --attn-recompute --convert-attn-to-tile | FileCheck %s
// RUN: attn-opt %s --attn-recompute --convert-attn-to-tile --tile-peel-masks --tile-group-bounds --remarks-filter-missed=.* --remark-policy=all -o /dev/null 2>&1 | FileCheck %s --check-prefix=GROUPS

#plan = #attn.plan<target = sm_90a, block_q = 128, block_k = 64, warps = 8>
#any = #attn.numerics<deterministic = false>
!t = tensor<2x4x?x64xbf16>
!l = tensor<2x4x?xf32>

// CHECK-LABEL: func.func @summed(
// CHECK: %[[SUMS:.*]] = memref.alloc(%{{.*}}) : memref<2x4x?x4096xf32>
// The first of a block of queries has its sums begin with 0.
// CHECK: tile.kernel @summed_rows
// CHECK: %[[FIRST:.*]] = arith.muli %{{.*}}, %c32 : index
// CHECK: %[[REST:.*]] = arith.remui %[[FIRST]], %c64 : index
// CHECK: %[[IS_FIRST:.*]] = arith.cmpi eq, %[[REST]], %c0 : index
// CHECK: scf.if %[[IS_FIRST]] {
// CHECK: %[[NUMBER:.*]] = arith.divui %[[FIRST]], %c64 : index
// CHECK: tile.store %{{.*}}, %[[SUMS]][%{{.*}}, %{{.*}}, %[[NUMBER]], %c0] packed : vector<64x64xf32>
// CHECK-NOT: tile.store {{.*}} packed
// CHECK-NOT: @summed_d_query
// CHECK: tile.kernel @summed_d_key_value
// CHECK: scf.for
// CHECK-COUNT-5: vector.contract
// CHECK: tile.store %{{.*}}, %[[SUMS]]{{.*}} accumulate packed : vector<64x64xf32>
// CHECK: tile.kernel @summed_round_query
// CHECK: tile.load %[[SUMS]]{{.*}} packed
// CHECK: arith.truncf
// CHECK: tile.store
// CHECK-NOT: tile.kernel
// GROUPS: [Missed] group-bounds | {{.*}}"the parts of the rows read what others compute"
func.func @summed(%q: !t, %k: !t, %v: !t, %o: !t, %lse: !l, %do: !t) -> (!t, !t, !t) {
  %dq, %dk, %dv = attn.attention_backward %q, %k, %v, %o, %lse, %do {plan = #plan, numerics = #any} : (!t, !t, !t, !t, !l, !t) -> (!t, !t, !t)
  return %dq, %dk, %dv : !t, !t, !t
}

// Nobody asks for the gradient of keys, whose kernel would add.
// CHECK-LABEL: func.func @without_keys(
// CHECK-NOT: packed
// CHECK: tile.kernel @without_keys_d_query
func.func @without_keys(%q: !t, %k: !t, %v: !t, %o: !t, %lse: !l, %do: !t) -> !t {
  %dq, %dk, %dv = attn.attention_backward %q, %k, %v, %o, %lse, %do {plan = #plan, numerics = #any} : (!t, !t, !t, !t, !l, !t) -> (!t, !t, !t)
  return %dq : !t
}

// Without panels 96 columns of 192 are no whole patterns of the swizzle: two
// programs.
#sm80 = #attn.plan<target = sm_80, block_q = 64, block_k = 32, warps = 4>
!w = tensor<2x4x?x192xbf16>
!n = tensor<2x4x?x64xbf16>
// CHECK-LABEL: func.func @odd_halves(
// CHECK-NOT: packed
// CHECK: tile.kernel @odd_halves_d_query
func.func @odd_halves(%q: !w, %k: !w, %v: !n, %o: !n, %lse: !l, %do: !n) -> (!w, !w, !n) {
  %dq, %dk, %dv = attn.attention_backward %q, %k, %v, %o, %lse, %do {plan = #sm80, numerics = #any} : (!w, !w, !n, !n, !l, !n) -> (!w, !w, !n)
  return %dq, %dk, %dv : !w, !w, !n
}

// Whether query heads share a key head is seen at launch: then their sums are
// added, else each is rounded at once.
!d = tensor<?x?x?x64xbf16>
!e = tensor<?x?x?xf32>
// CHECK-LABEL: func.func @heads(
// CHECK: %[[SHARED:.*]] = arith.cmpi sgt, %{{.*}}, %{{.*}} : index
// CHECK: tile.kernel @heads_d_key_value
// CHECK: scf.if %[[SHARED]] {
// CHECK-NEXT: tile.store %{{.*}} : vector<128x64xf32>
// CHECK-NEXT: } else {
// CHECK: tile.store %{{.*}} : vector<128x64xbf16>
// CHECK: tile.kernel @heads_sum_value
func.func @heads(%q: !d, %k: !d, %v: !d, %o: !d, %lse: !e, %do: !d) -> (!d, !d, !d) {
  %dq, %dk, %dv = attn.attention_backward %q, %k, %v, %o, %lse, %do {plan = #plan} : (!d, !d, !d, !d, !e, !d) -> (!d, !d, !d)
  return %dq, %dk, %dv : !d, !d, !d
}

// Random numbers beside five products of 256 columns would spill.
!g = tensor<2x4x?x128xbf16>
// CHECK-LABEL: func.func @dropout(
// CHECK-NOT: packed
// CHECK: tile.kernel @dropout_d_query
func.func @dropout(%q: !g, %k: !g, %v: !g, %o: !g, %lse: !l, %do: !g, %seed: i32, %offset: i32) -> (!g, !g, !g) {
  %dq, %dk, %dv = attn.attention_backward %q, %k, %v, %o, %lse, %do dropout(%seed, %offset) {plan = #plan, numerics = #any, dropout_p = 0.25} : (!g, !g, !g, !g, !l, !g, i32, i32) -> (!g, !g, !g)
  return %dq, %dk, %dv : !g, !g, !g
}

// Few queries: two programs are faster.
!s = tensor<2x4x256x64xbf16>
!m = tensor<2x4x256xf32>
// CHECK-LABEL: func.func @few(
// CHECK-NOT: packed
// CHECK: tile.kernel @few_d_query
func.func @few(%q: !s, %k: !s, %v: !s, %o: !s, %lse: !m, %do: !s) -> (!s, !s, !s) {
  %dq, %dk, %dv = attn.attention_backward %q, %k, %v, %o, %lse, %do {plan = #plan, numerics = #any} : (!s, !s, !s, !s, !m, !s) -> (!s, !s, !s)
  return %dq, %dk, %dv : !s, !s, !s
}
