// RUN: attn-opt %s --tile-expand-softmax | FileCheck %s

!tile = vector<16x32xf32>
!row = vector<16x1xf32>

// CHECK-LABEL: func.func @plain_uses_exp
// CHECK-SAME: %[[S:[a-z0-9]+]]: vector<16x32xf32>, %[[M:[a-z0-9]+]]: vector<16x1xf32>, %[[L:[a-z0-9]+]]: vector<16x1xf32>
func.func @plain_uses_exp(%s: !tile, %m: !row, %l: !row) -> (!tile, !row, !row, !row) {
  // CHECK: %[[R:.*]] = vector.multi_reduction <maxnumf>, %[[S]], %{{.*}} [1] : vector<16x32xf32> to vector<16xf32>
  // CHECK: %[[R1:.*]] = vector.shape_cast %[[R]] : vector<16xf32> to vector<16x1xf32>
  // CHECK: %[[M2:.*]] = arith.maxnumf %[[M]], %[[R1]]
  // CHECK-NOT: arith.select
  // CHECK: %[[MB:.*]] = vector.broadcast %[[M2]] : vector<16x1xf32> to vector<16x32xf32>
  // CHECK: %[[D:.*]] = arith.subf %[[S]], %[[MB]]
  // CHECK: %[[P:.*]] = math.exp %[[D]]
  // CHECK: %[[DM:.*]] = arith.subf %[[M]], %[[M2]]
  // CHECK: %[[C:.*]] = math.exp %[[DM]]
  // CHECK: %[[SUM:.*]] = vector.multi_reduction <add>, %[[P]], %{{.*}} [1] : vector<16x32xf32> to vector<16xf32>
  // CHECK: %[[SUM1:.*]] = vector.shape_cast %[[SUM]]
  // CHECK: %[[L2:.*]] = math.fma %[[L]], %[[C]], %[[SUM1]]
  // CHECK: return %[[P]], %[[M2]], %[[L2]], %[[C]]
  %p, %m1, %l1, %c1 = tile.online_softmax %s, %m, %l : !tile, !row
  return %p, %m1, %l1, %c1 : !tile, !row, !row, !row
}

// CHECK-LABEL: func.func @scale_without_exp2_multiplies_the_scores
// CHECK-SAME: %[[S:[a-z0-9]+]]: vector<16x32xf32>
func.func @scale_without_exp2_multiplies_the_scores(%s: !tile, %m: !row, %l: !row) -> !tile {
  // CHECK: vector.multi_reduction <maxnumf>, %[[S]]
  // CHECK: %[[X:.*]] = arith.mulf %[[S]], %{{.*}} : vector<16x32xf32>
  // CHECK: arith.subf %[[X]]
  %p, %m1, %l1, %c1 = tile.online_softmax %s, %m, %l {scale = 0.5 : f32} : !tile, !row
  return %p : !tile
}

// CHECK-LABEL: func.func @bounded_exp2_is_one_fma_per_score
// CHECK-SAME: %[[S:[a-z0-9]+]]: vector<16x32xf32>, %[[M:[a-z0-9]+]]: vector<16x1xf32>
func.func @bounded_exp2_is_one_fma_per_score(%s: !tile, %m: !row, %l: !row) -> (!tile, !row) {
  // CHECK: %[[R1:.*]] = vector.shape_cast
  // CHECK: %[[SCALE:.*]] = arith.constant dense<5.000000e-01> : vector<16x1xf32>
  // CHECK: %[[X:.*]] = arith.mulf %[[R1]], %[[SCALE]]
  // CHECK: %[[M2:.*]] = arith.maxnumf %[[M]], %[[X]]
  // CHECK: %[[E:.*]] = arith.constant dense<1.44269502> : vector<16x1xf32>
  // CHECK: %[[REF:.*]] = arith.mulf %[[M2]], %[[E]]
  // CHECK: %[[NEG:.*]] = arith.negf %[[REF]]
  // CHECK: %[[OFFSET:.*]] = vector.broadcast %[[NEG]]
  // CHECK: %[[F:.*]] = arith.constant dense<0.72134751> : vector<16x32xf32>
  // CHECK: %[[A:.*]] = math.fma %[[S]], %[[F]], %[[OFFSET]]
  // CHECK: math.exp2 %[[A]]
  // CHECK: %[[D:.*]] = arith.subf %[[M]], %[[M2]]
  // CHECK: %[[DE:.*]] = arith.mulf %[[D]], %[[E]]
  // CHECK: %[[C:.*]] = math.exp2 %[[DE]]
  // CHECK-NOT: math.exp
  %p, %m1, %l1, %c1 = tile.online_softmax %s, %m, %l {bounded, exp2, scale = 0.5 : f32} : !tile, !row
  return %p, %c1 : !tile, !row
}

// Scores of any size, in a step that is done once more: the block's own maximum
// is subtracted before the factor, and what that is below the reference is added.
// CHECK-LABEL: func.func @exp2_of_any_score
// CHECK-SAME: %[[S:[a-z0-9]+]]: vector<16x32xf32>, %[[M:[a-z0-9]+]]: vector<16x1xf32>
func.func @exp2_of_any_score(%s: !tile, %m: !row, %l: !row, %again: i1) -> !tile {
  // CHECK: %[[TOP:.*]] = vector.shape_cast
  // CHECK: %[[SCALED:.*]] = arith.mulf %[[TOP]], %{{.*}} : vector<16x1xf32>
  // CHECK: %[[M2:.*]] = arith.maxnumf %[[M]], %[[SCALED]]
  // CHECK: %[[E:.*]] = arith.constant dense<1.44269502> : vector<16x1xf32>
  // CHECK-NOT: scf.if
  // CHECK: %[[EMPTY:.*]] = arith.cmpf oeq, %[[TOP]], %{{.*}}
  // CHECK: %[[SHIFT:.*]] = arith.select %[[EMPTY]], %{{.*}}, %[[TOP]]
  // CHECK: %[[SHIFTS:.*]] = vector.broadcast %[[SHIFT]]
  // CHECK: %[[BELOW:.*]] = arith.subf %[[SCALED]], %[[M2]]
  // CHECK-DAG: %[[D:.*]] = arith.subf %[[S]], %[[SHIFTS]]
  // CHECK-DAG: %[[OFFSET:.*]] = arith.mulf %[[BELOW]], %[[E]]
  // CHECK: %[[OFFSETS:.*]] = vector.broadcast %[[OFFSET]]
  // CHECK: %[[F:.*]] = arith.constant dense<0.72134751> : vector<16x32xf32>
  // CHECK: %[[A:.*]] = math.fma %[[D]], %[[F]], %[[OFFSETS]]
  // CHECK: math.exp2 %[[A]]
  %r = scf.if %again -> !tile {
    %p, %m1, %l1, %c1 = tile.online_softmax %s, %m, %l {exp2, scale = 0.5 : f32} : !tile, !row
    scf.yield %p : !tile
  } else {
    scf.yield %s : !tile
  }
  return %r : !tile
}

// Anywhere else only where the reference of any row is large.
// CHECK-LABEL: func.func @exp2_in_a_loop
// CHECK-SAME: %[[S:[a-z0-9]+]]: vector<16x32xf32>
func.func @exp2_in_a_loop(%s: !tile, %p0: !tile, %m0: !row, %l0: !row, %n: index) -> !tile {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  // CHECK: scf.for
  // CHECK: %[[M2:.*]] = arith.maxnumf
  // CHECK: %[[SIZE:.*]] = math.absf %[[M2]]
  // CHECK: %[[LARGE:.*]] = arith.constant dense<5.120000e+02>
  // CHECK: %[[FAR:.*]] = arith.cmpf uge, %[[SIZE]], %[[LARGE]]
  // CHECK: %[[ANY:.*]] = vector.multi_reduction <or>, %[[FAR]]
  // CHECK: %[[X:.*]]:2 = scf.if %[[ANY]]
  // CHECK: arith.subf %[[S]]
  // CHECK: scf.yield
  // CHECK: else
  // CHECK: %[[REF:.*]] = arith.mulf %[[M2]]
  // CHECK: %[[NEG:.*]] = arith.negf %[[REF]]
  // CHECK: scf.yield %[[S]], %[[NEG]]
  // CHECK: %[[OFFSETS:.*]] = vector.broadcast %[[X]]#1
  // CHECK: math.fma %[[X]]#0, %{{.*}}, %[[OFFSETS]]
  %r:3 = scf.for %i = %c0 to %n step %c1 iter_args(%p = %p0, %m = %m0, %l = %l0) -> (!tile, !row, !row) {
    %q, %m1, %l1, %c = tile.online_softmax %s, %m, %l {exp2, scale = 0.5 : f32} : !tile, !row
    scf.yield %q, %m1, %l1 : !tile, !row, !row
  }
  return %r#0 : !tile
}

// CHECK-LABEL: func.func @guard_replaces_minus_inf
func.func @guard_replaces_minus_inf(%s: !tile, %m: !row, %l: !row) -> (!tile, !row) {
  // CHECK: %[[M2:.*]] = arith.maxnumf
  // CHECK: %[[E:.*]] = arith.cmpf oeq, %[[M2]]
  // CHECK: %[[REF:.*]] = arith.select %[[E]], %{{.*}}, %[[M2]] : vector<16x1xi1>, vector<16x1xf32>
  // CHECK: vector.broadcast %[[REF]]
  // CHECK: return %{{.*}}, %[[M2]]
  %p, %m1, %l1, %c1 = tile.online_softmax %s, %m, %l {guard} : !tile, !row
  return %p, %m1 : !tile, !row
}
