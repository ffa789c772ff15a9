// Quotients and remainders of keys that a table is read by, where blocks and the
// divisor fit each other.
//
// RUN: attn-opt %s --convert-attn-to-tile --tile-expand-scores | FileCheck %s

!q = tensor<2x8x?x64xf16>
!lse = tensor<2x8x?xf32>
!t = tensor<8x?x?xf32>
#plan = #attn.plan<target = cpu, block_q = 16, block_k = 32>

// A block of 32 keys is one row of an image, so that its number is a scalar, and
// the places of keys in a row are those of all blocks: they are read once.
// CHECK-LABEL: func.func @one_row
// CHECK: %[[PLACES:.*]] = tile.coords %c0{{.*}}, 1 : vector<1x32xi32>
// CHECK: tile.gather %{{.*}}[%{{.*}}, %{{.*}}, %[[PLACES]]] {{.*}} -> vector<16x32xf32>
// CHECK: scf.for
// CHECK: %[[ROW:.*]] = arith.floordivsi %{{.*}}, %c32{{.*}} : i32
// CHECK: tile.gather %{{.*}}[%{{.*}}, %{{.*}}, %[[ROW]]] {{.*}} -> vector<16x1xf32>
// CHECK-NOT: tile.gather
func.func @one_row(%q: !q, %k: !q, %v: !q, %a: !t, %b: !t) -> (!q, !lse) {
  %o, %lse = attn.attention %q, %k, %v captures(%a, %b) {plan = #plan}
    score(%x: f32, %n: i32, %h: i32, %i: i32, %j: i32, %s: !t, %t: !t) {
      %c = arith.constant 32 : i32
      %row = arith.floordivsi %j, %c : i32
      %first = arith.muli %row, %c : i32
      %place = arith.subi %j, %first : i32
      %y = attn.capture_load %s[%h, %i, %row] : !t
      %z = attn.capture_load %t[%h, %i, %place] : !t
      %w = arith.addf %y, %z : f32
      %u = arith.addf %x, %w : f32
      attn.yield %u : f32
    } : (!q, !q, !q, !t, !t) -> (!q, !lse)
  return %o, %lse : !q, !lse
}

// Two blocks are a row: the places of a block begin at 0 or at 32.
// CHECK-LABEL: func.func @half_a_row
// CHECK: scf.for
// CHECK: %[[ROW:.*]] = arith.floordivsi %[[BASE:.*]], %c64{{.*}} : i32
// CHECK: %[[START:.*]] = arith.muli %[[ROW]], %c64
// CHECK: %[[FIRST:.*]] = arith.subi %[[BASE]], %[[START]]
// CHECK: %[[PLACES:.*]] = tile.coords %[[FIRST]], 1 : vector<1x32xi32>
// CHECK: tile.gather %{{.*}}[%{{.*}}, %{{.*}}, %[[PLACES]]] {{.*}} -> vector<16x32xf32>
func.func @half_a_row(%q: !q, %k: !q, %v: !q, %a: !t) -> (!q, !lse) {
  %o, %lse = attn.attention %q, %k, %v captures(%a) {plan = #plan}
    score(%x: f32, %n: i32, %h: i32, %i: i32, %j: i32, %s: !t) {
      %c = arith.constant 64 : i32
      %row = arith.floordivsi %j, %c : i32
      %first = arith.muli %row, %c : i32
      %place = arith.subi %j, %first : i32
      %y = attn.capture_load %s[%h, %i, %place] : !t
      %u = arith.addf %x, %y : f32
      attn.yield %u : f32
    } : (!q, !q, !q, !t) -> (!q, !lse)
  return %o, %lse : !q, !lse
}

// Two rows in a block: their places are those of all blocks, their numbers are
// not one. Of rows of 24 keys nothing is known.
// CHECK-LABEL: func.func @two_rows
// CHECK: %[[KEYS:.*]] = tile.coords %c0{{.*}}, 1 : vector<1x32xi32>
// CHECK: %[[WHOLE:.*]] = arith.muli
// CHECK: %[[PLACES:.*]] = arith.subi %[[KEYS]], %[[WHOLE]] : vector<1x32xi32>
// CHECK: tile.gather %{{.*}}[%{{.*}}, %{{.*}}, %[[PLACES]]] {{.*}} -> vector<16x32xf32>
// CHECK: scf.for
// CHECK: arith.floordivsi %{{.*}} : vector<1x32xi32>
// CHECK: tile.gather {{.*}} -> vector<16x32xf32>
// CHECK-LABEL: func.func @other_rows
// CHECK-NOT: tile.gather
// CHECK: scf.for
// CHECK: tile.gather {{.*}} -> vector<16x32xf32>
func.func @two_rows(%q: !q, %k: !q, %v: !q, %a: !t, %b: !t) -> (!q, !lse) {
  %o, %lse = attn.attention %q, %k, %v captures(%a, %b) {plan = #plan}
    score(%x: f32, %n: i32, %h: i32, %i: i32, %j: i32, %s: !t, %t: !t) {
      %c = arith.constant 16 : i32
      %row = arith.floordivsi %j, %c : i32
      %first = arith.muli %row, %c : i32
      %place = arith.subi %j, %first : i32
      %y = attn.capture_load %s[%h, %i, %row] : !t
      %z = attn.capture_load %t[%h, %i, %place] : !t
      %w = arith.addf %y, %z : f32
      %u = arith.addf %x, %w : f32
      attn.yield %u : f32
    } : (!q, !q, !q, !t, !t) -> (!q, !lse)
  return %o, %lse : !q, !lse
}
func.func @other_rows(%q: !q, %k: !q, %v: !q, %a: !t) -> (!q, !lse) {
  %o, %lse = attn.attention %q, %k, %v captures(%a) {plan = #plan}
    score(%x: f32, %n: i32, %h: i32, %i: i32, %j: i32, %s: !t) {
      %c = arith.constant 24 : i32
      %row = arith.floordivsi %j, %c : i32
      %first = arith.muli %row, %c : i32
      %place = arith.subi %j, %first : i32
      %y = attn.capture_load %s[%h, %i, %place] : !t
      %u = arith.addf %x, %y : f32
      attn.yield %u : f32
    } : (!q, !q, !q, !t) -> (!q, !lse)
  return %o, %lse : !q, !lse
}
