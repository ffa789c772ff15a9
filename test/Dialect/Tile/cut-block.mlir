// The block that the end of the keys cuts is visited first, so that no masked
// loop is left beside the first block that tile-overlap-products computes. Where
// that pass does not run, the order stays.
// RUN: attn-opt %s --attn-to-tile="target=sm_90a lazy-max=false" --mlir-print-ir-after=tile-reverse-keys -o /dev/null 2>&1 | FileCheck %s --check-prefixes=CHECK,LOOPS
// RUN: attn-opt %s --attn-to-tile="target=sm_90a lazy-max=false" | FileCheck %s --check-prefixes=CHECK,ONE
// RUN: attn-opt %s --attn-to-tile="target=sm_90a lazy-max=false overlap-products=false" | FileCheck %s --check-prefix=PLAIN
// RUN: attn-opt %s --attn-to-tile="target=sm_90a lazy-max=false group-bounds=false" | FileCheck %s --check-prefix=NOGROUP

!t = tensor<?x?x?x64xbf16>
!lse = tensor<?x?x?xf32>

// CHECK-LABEL: func.func @full(
// CHECK: arith.ceildivsi
// CHECK: %[[HI:.*]] = arith.ceildivsi
// CHECK: tile.kernel
// CHECK: %[[LAST:.*]] = arith.subi %[[HI]], %[[C1:.*]] : index
// CHECK: %[[FIRST:.*]] = arith.minsi %[[HI]], %[[C1]] : index
// CHECK: %[[G:.*]]:3 = tile.group_bounds[%[[C0:.*]], %[[FIRST]], %[[HI]])
// LOOPS: scf.for %[[T:.*]] = %[[C0]] to %[[G]]#1 step
// LOOPS-NEXT: %[[D:.*]] = arith.subi %[[LAST]], %[[T]]
// LOOPS-NEXT: %[[N:.*]] = arith.maxsi %[[D]], %[[C0]]
// LOOPS: tile.scores {{.*}} below(
// LOOPS: scf.for %[[T:.*]] = %[[G]]#1 to %[[G]]#2 step
// LOOPS-NEXT: %[[D:.*]] = arith.subi %[[LAST]], %[[T]]
// LOOPS-NEXT: arith.maxsi %[[D]], %[[C0]]
// LOOPS-NOT: below(
// LOOPS: scf.yield
// ONE: %[[END:.*]] = arith.maxsi %[[G]]#2, %[[C1]]
// ONE: scf.for %{{.*}} = %[[C1]] to %[[END]] step
// CHECK-NOT: scf.for
// CHECK: return
// PLAIN-LABEL: func.func @full(
// PLAIN: arith.floordivsi
// PLAIN-COUNT-2: scf.for
// NOGROUP-LABEL: func.func @full(
// NOGROUP-COUNT-1: scf.for
// NOGROUP-NOT: scf.for
// NOGROUP: return
func.func @full(%q: !t, %k: !t, %v: !t) -> (!t, !lse) {
  %o, %lse = attn.attention %q, %k, %v
    score(%s: f32, %b: i32, %h: i32, %i: i32, %j: i32) {
      %y = math.tanh %s : f32
      attn.yield %y : f32
    } : (!t, !t, !t) -> (!t, !lse)
  return %o, %lse : !t, !lse
}

// Without a score function a copy of the step is little.
// CHECK-LABEL: func.func @plain(
// CHECK-COUNT-2: scf.for
// CHECK-NOT: scf.for
// CHECK: return
func.func @plain(%q: !t, %k: !t, %v: !t) -> (!t, !lse) {
  %o, %lse = attn.attention %q, %k, %v : (!t, !t, !t) -> (!t, !lse)
  return %o, %lse : !t, !lse
}

// Ends that data says, for all rows of a batch entry.
// CHECK-LABEL: func.func @padded(
// LOOPS-COUNT-2: scf.for
// ONE-COUNT-1: scf.for
// CHECK-NOT: scf.for
// CHECK: return
// NOGROUP-LABEL: func.func @padded(
// NOGROUP-COUNT-1: scf.for
// NOGROUP-NOT: scf.for
// NOGROUP: return
func.func @padded(%q: !t, %k: !t, %v: !t, %length: tensor<?xi32>) -> (!t, !lse) {
  %o, %lse = attn.attention %q, %k, %v captures(%length)
    score(%s: f32, %b: i32, %h: i32, %i: i32, %j: i32, %end: tensor<?xi32>) {
      %y = math.tanh %s : f32
      attn.yield %y : f32
    }
    mask(%b: i32, %h: i32, %i: i32, %j: i32, %end: tensor<?xi32>) {
      %n = attn.capture_load %end[%b] : tensor<?xi32>
      %shown = arith.cmpi slt, %j, %n : i32
      attn.yield %shown : i1
    } : (!t, !t, !t, tensor<?xi32>) -> (!t, !lse)
  return %o, %lse : !t, !lse
}

// The diagonal cuts several blocks.
// CHECK-LABEL: func.func @causal(
// CHECK-COUNT-2: scf.for
// CHECK-NOT: scf.for
// CHECK: return
func.func @causal(%q: !t, %k: !t, %v: !t) -> (!t, !lse) {
  %o, %lse = attn.attention %q, %k, %v
    score(%s: f32, %b: i32, %h: i32, %i: i32, %j: i32) {
      %y = math.tanh %s : f32
      attn.yield %y : f32
    }
    mask(%b: i32, %h: i32, %i: i32, %j: i32) {
      %shown = arith.cmpi sle, %j, %i : i32
      attn.yield %shown : i1
    } : (!t, !t, !t) -> (!t, !lse)
  return %o, %lse : !t, !lse
}

// Scores that fall with the key are largest where they begin.
// CHECK-LABEL: func.func @falls(
// CHECK-COUNT-2: scf.for
// CHECK-NOT: scf.for
// CHECK: return
func.func @falls(%q: !t, %k: !t, %v: !t) -> (!t, !lse) {
  %o, %lse = attn.attention %q, %k, %v
    score(%s: f32, %b: i32, %h: i32, %i: i32, %j: i32) {
      %d = arith.subi %i, %j : i32
      %f = arith.sitofp %d : i32 to f32
      %y = arith.addf %s, %f : f32
      attn.yield %y : f32
    } : (!t, !t, !t) -> (!t, !lse)
  return %o, %lse : !t, !lse
}
