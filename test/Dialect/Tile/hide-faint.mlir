// Linear biases: key blocks so far from the one of the greatest bias that they
// have no weight are not visited. Three kernels before say how far that is.

// DEFINE: %{peeled} = --attn-expand-variants --attn-plan=target=sm_90a --convert-attn-to-tile --tile-peel-masks --tile-peel-scores
// RUN: attn-opt %s %{peeled} --tile-hide-faint | FileCheck %s
// RUN: attn-opt %s %{peeled} --tile-hide-faint --remarks-filter-missed=.* --remark-policy=all -o /dev/null 2>&1 | FileCheck %s --check-prefix=REMARK

!t = tensor<?x?x?x64xbf16>
!l = tensor<?x?x?xf32>

// Norms of rows of keys, infinite where a value is not finite.
// CHECK-LABEL: func.func @causal(
// CHECK: tile.kernel @causal_key_norms
// CHECK: %[[K:.*]] = tile.load %arg1[%batch, %head, %[[ROW:.*]], %{{.*}}] : {{.*}}, vector<32x64xbf16>
// CHECK: %[[KX:.*]] = arith.extf %[[K]]
// CHECK: %[[SQUARES:.*]] = arith.mulf %[[KX]], %[[KX]]
// CHECK: %[[KSUM:.*]] = vector.multi_reduction <add>, %[[SQUARES]]
// CHECK: tile.load %arg2[%batch, %head, %[[ROW]], %{{.*}}]
// CHECK: %[[FINITE:.*]] = arith.cmpf olt, %{{.*}}, %[[INF:.*]] : vector<32xf32>
// CHECK: arith.select %[[FINITE]], %[[KSUM]], %[[INF]]
// CHECK: vector.multi_reduction <maxsi>
// CHECK: memref.store %{{.*}}, %[[KNORMS:.*]][%batch, %head, %block]
// CHECK: tile.kernel @causal_query_norms
// CHECK: tile.load %arg0
// CHECK: memref.store %{{.*}}, %[[QNORMS:.*]][%batch, %head, %block]
// The head's own slope, and that of the key head.
// CHECK: tile.kernel @causal_widths
// CHECK: %[[KV:.*]] = arith.divsi %head
// CHECK: tile.gather %[[QNORMS]]
// CHECK: tile.gather %[[KNORMS]]
// CHECK: %[[SLOPE:.*]] = math.exp2
// CHECK: arith.mulf %{{.*}}, %[[SLOPE]]
// CHECK: %[[ROOT:.*]] = math.sqrt
// CHECK: %[[BOUND:.*]] = arith.mulf %{{.*}}, %[[ROOT]] : f32
// CHECK: %[[GAP:.*]] = math.fma %[[BOUND]]
// CHECK: arith.divf %[[GAP]], %{{.*}} : f32
// CHECK: memref.store %{{.*}}, %[[WIDTHS:.*]][%batch, %head] : memref<?x?xi32>
// The loop without a mask begins later; where it ends stays.
// CHECK: tile.kernel @causal plan
// CHECK: %[[W:.*]] = memref.load %[[WIDTHS]][%batch, %head]
// CHECK: %[[WIDTH:.*]] = arith.index_cast %[[W]]
// CHECK: %[[KEY:.*]] = arith.subi %{{.*}}, %[[WIDTH]]
// CHECK: %[[BLOCK:.*]] = arith.floordivsi %[[KEY]]
// CHECK: %[[MIN:.*]] = arith.minsi %[[BLOCK]], %[[FULL:.*]] : index
// CHECK: %[[LO:.*]] = arith.maxsi %{{.*}}, %[[MIN]] : index
// CHECK: scf.for %{{.*}} = %[[LO]] to %[[FULL]]
// CHECK: scf.for %{{.*}} = %[[FULL]] to
// CHECK: memref.dealloc %[[KNORMS]]
// CHECK: memref.dealloc %[[QNORMS]]
// CHECK: memref.dealloc %[[WIDTHS]]
func.func @causal(%q: !t, %k: !t, %v: !t) -> (!t, !l) {
  %o, %lse = attn.attention %q, %k, %v {variants = [#attn.alibi, #attn.causal]} : (!t, !t, !t) -> (!t, !l)
  return %o, %lse : !t, !l
}
// Three loops, one after the other.
// CHECK-LABEL: func.func @window(
// CHECK: tile.kernel @window plan
// CHECK: scf.for %{{.*}} = %{{.*}} to %[[A:.*]] step
// CHECK: scf.for %{{.*}} = %[[A]] to %[[B:.*]] step
// CHECK: scf.for %{{.*}} = %[[B]] to
func.func @window(%q: !t, %k: !t, %v: !t) -> (!t, !l) {
  %o, %lse = attn.attention %q, %k, %v {variants = [#attn.alibi, #attn.window<left = 1024, right = 0>]} : (!t, !t, !t) -> (!t, !l)
  return %o, %lse : !t, !l
}
// The nearest key is the first one.
// CHECK-LABEL: func.func @falls(
// CHECK: tile.kernel @falls plan
// CHECK: %[[W:.*]] = memref.load %{{.*}}[%batch, %head]
// CHECK: %[[WIDTH:.*]] = arith.index_cast %[[W]]
// CHECK: %[[FAR:.*]] = arith.addi %c0, %[[WIDTH]]
// CHECK: %[[LAST:.*]] = arith.floordivsi %[[FAR]]
// CHECK: %[[END:.*]] = arith.addi %[[LAST]]
// CHECK: %[[A:.*]] = arith.minsi %{{.*}}, %[[END]]
// CHECK: %[[B:.*]] = arith.minsi %{{.*}}, %[[END]]
// CHECK: scf.for %{{.*}} = %c0 to %[[A]]
// CHECK: scf.for %{{.*}} = %[[A]] to %[[B]]
func.func @falls(%q: !t, %k: !t, %v: !t) -> (!t, !l) {
  %o, %lse = attn.attention %q, %k, %v
    score(%x: f32, %b: i32, %h: i32, %i: i32, %j: i32) {
      %d = arith.subi %i, %j : i32
      %f = arith.sitofp %d : i32 to f32
      %y = arith.addf %x, %f : f32
      attn.yield %y : f32
    } : (!t, !t, !t) -> (!t, !l)
  return %o, %lse : !t, !l
}
// The nearest key of a row is its own: the tile has one more for each row.
// CHECK-LABEL: func.func @both_sides(
// CHECK: tile.kernel @both_sides plan
// CHECK: %[[W:.*]] = memref.load %{{.*}}[%batch, %head]
// CHECK: %[[WIDTH:.*]] = arith.index_cast %[[W]]
// CHECK: %[[LASTROW:.*]] = arith.addi %[[OWN:.*]], %c191
// CHECK: %[[FAR:.*]] = arith.addi %[[LASTROW]], %[[WIDTH]]
// CHECK: %[[LASTBLOCK:.*]] = arith.floordivsi %[[FAR]]
// CHECK: %[[END:.*]] = arith.addi %[[LASTBLOCK]]
// CHECK: arith.minsi %{{.*}}, %[[END]]
// CHECK: %[[HI:.*]] = arith.minsi %{{.*}}, %[[END]]
// CHECK: %[[NEAR:.*]] = arith.subi %[[OWN]], %[[WIDTH]]
// CHECK: %[[BLOCK:.*]] = arith.floordivsi %[[NEAR]]
// CHECK: %[[FIRST:.*]] = arith.minsi %[[BLOCK]], %[[HI]]
// CHECK: %[[LO:.*]] = arith.maxsi %{{.*}}, %[[FIRST]]
// CHECK: %[[FULL:.*]] = arith.maxsi %{{.*}}, %[[FIRST]]
// CHECK: scf.for %{{.*}} = %[[LO]] to %[[FULL]]
// CHECK: scf.for %{{.*}} = %[[FULL]] to %[[HI]]
func.func @both_sides(%q: !t, %k: !t, %v: !t) -> (!t, !l) {
  %o, %lse = attn.attention %q, %k, %v {variants = [#attn.alibi]} : (!t, !t, !t) -> (!t, !l)
  return %o, %lse : !t, !l
}
// CHECK-NOT: _norms
func.func @capped(%q: !t, %k: !t, %v: !t) -> (!t, !l) {
  // REMARK: [[#@LINE+1]]:{{[0-9]+}}: remark: [Missed] hide-faint | Category:tile-hide-faint | Remark="scores are not linear in the product and the key's position"
  %o, %lse = attn.attention %q, %k, %v {variants = [#attn.softcap<20.0 : f32>, #attn.alibi, #attn.causal]} : (!t, !t, !t) -> (!t, !l)
  return %o, %lse : !t, !l
}
func.func @documents(%q: !t, %k: !t, %v: !t, %ids: tensor<?xi32>) -> (!t, !l) {
  // REMARK: [[#@LINE+1]]:{{[0-9]+}}: remark: [Missed] hide-faint | Category:tile-hide-faint | Remark="the mask does not show each row one interval of keys"
  %o, %lse = attn.attention %q, %k, %v captures(%ids) {variants = [#attn.alibi, #attn.causal]}
    mask(%b: i32, %h: i32, %i: i32, %j: i32, %id: tensor<?xi32>) {
      %m = attn.capture_load %id[%i] : tensor<?xi32>
      %n = attn.capture_load %id[%j] : tensor<?xi32>
      %s = arith.cmpi eq, %m, %n : i32
      attn.yield %s : i1
    } : (!t, !t, !t, tensor<?xi32>) -> (!t, !l)
  return %o, %lse : !t, !l
}
// A window whose first key says nothing of the head's slope: which key has the
// greatest bias is not known.
func.func @falls_in_window(%q: !t, %k: !t, %v: !t) -> (!t, !l) {
  // REMARK: [[#@LINE+1]]:{{[0-9]+}}: remark: [Missed] hide-faint | Category:tile-hide-faint | Remark="which key of a row has the greatest bias is not known"
  %o, %lse = attn.attention %q, %k, %v {variants = [#attn.window<left = 1024, right = 0>]}
    score(%x: f32, %b: i32, %h: i32, %i: i32, %j: i32) {
      %f = arith.sitofp %j : i32 to f32
      %y = arith.subf %x, %f : f32
      attn.yield %y : f32
    } : (!t, !t, !t) -> (!t, !l)
  return %o, %lse : !t, !l
}
