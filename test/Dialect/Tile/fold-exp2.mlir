// RUN: attn-opt %s --tile-fold-exp2 | FileCheck %s
// RUN: attn-opt %s --tile-fold-exp2=own-powers | FileCheck %s --check-prefix=OWN
// RUN: attn-opt %s --tile-fold-exp2 --remarks-filter=.* --remark-policy=all -o /dev/null 2>&1 | FileCheck %s --check-prefix=REMARK

!tile = vector<16x32xf32>
!row = vector<16x1xf32>
!rows = vector<16x1xi32>
!cols = vector<1x32xi32>

// CHECK-LABEL: func.func @scale_moves_into_the_softmax
// CHECK-SAME: %[[S:[a-z0-9]+]]: vector<16x32xf32>
// CHECK-NEXT: %[[X:.*]] = tile.scores %[[S]] at({{[^)]*}}) :
// CHECK-NEXT: tile.online_softmax %[[X]], %{{.*}}, %{{.*}} {exp2, scale = 1.250000e-01 : f32}
func.func @scale_moves_into_the_softmax(%s: !tile, %b: i32, %h: i32, %i: !rows, %j: !cols, %m: !row, %l: !row) -> !tile {
  %x = tile.scores %s at(%b, %h, %i, %j) score {
  ^bb0(%y: f32, %batch: i32, %head: i32, %row: i32, %col: i32):
    %c = arith.constant 0.125 : f32
    %z = arith.mulf %y, %c : f32
    tile.yield %z : f32
  } : !tile, !rows, !cols
  %p:4 = tile.online_softmax %x, %m, %l : !tile, !row
  return %p#0 : !tile
}

// CHECK-LABEL: func.func @scale_passes_the_mask
// CHECK-SAME: %[[S:[a-z0-9]+]]: vector<16x32xf32>
// CHECK-NEXT: tile.scores %[[S]] at({{[^)]*}}) mask
// CHECK: tile.online_softmax %{{.*}} {exp2, guard, scale = 1.250000e-01 : f32}
func.func @scale_passes_the_mask(%s: !tile, %b: i32, %h: i32, %i: !rows, %j: !cols, %m: !row, %l: !row) -> !tile {
  %x = tile.scores %s at(%b, %h, %i, %j) score {
  ^bb0(%y: f32, %batch: i32, %head: i32, %row: i32, %col: i32):
    %c = arith.constant 0.125 : f32
    %z = arith.mulf %c, %y : f32
    tile.yield %z : f32
  } mask {
  ^bb0(%batch: i32, %head: i32, %row: i32, %col: i32):
    %visible = arith.cmpi sle, %col, %row : i32
    tile.yield %visible : i1
  } : !tile, !rows, !cols
  %p:4 = tile.online_softmax %x, %m, %l {guard} : !tile, !row
  return %p#0 : !tile
}

// A score function that hides scores itself.
// CHECK-LABEL: func.func @scale_passes_hidden_scores
func.func @scale_passes_hidden_scores(%s: !tile, %b: i32, %h: i32, %i: !rows, %j: !cols, %m: !row, %l: !row) -> !tile {
  %x = tile.scores %s at(%b, %h, %i, %j) score {
  ^bb0(%y: f32, %batch: i32, %head: i32, %row: i32, %col: i32):
    // CHECK: ^bb0(%[[Y:[a-z0-9]+]]: f32
    // CHECK-NOT: arith.mulf
    // CHECK: arith.select %{{.*}}, %[[Y]], %{{.*}} : f32
    %c = arith.constant 0.125 : f32
    %hidden = arith.constant 0xFF800000 : f32
    %z = arith.mulf %c, %y : f32
    %visible = arith.cmpi sle, %col, %row : i32
    %v = arith.select %visible, %z, %hidden : f32
    tile.yield %v : f32
  } : !tile, !rows, !cols
  // CHECK: tile.online_softmax %{{.*}} {exp2, scale = 1.250000e-01 : f32}
  %p:4 = tile.online_softmax %x, %m, %l : !tile, !row
  return %p#0 : !tile
}

// The cap of a softcap is such a factor; the scale below tanh is not. Scores
// within a cap are known to be small.
// REMARK: one fma per score", bound=5.0000{{[0-9]+}}e+01
// CHECK-LABEL: func.func @last_factor_of_a_score
func.func @last_factor_of_a_score(%s: !tile, %b: i32, %h: i32, %i: !rows, %j: !cols, %m: !row, %l: !row) -> !tile {
  %x = tile.scores %s at(%b, %h, %i, %j) score {
  ^bb0(%y: f32, %batch: i32, %head: i32, %row: i32, %col: i32):
    %inner = arith.constant 0.0025 : f32
    %cap = arith.constant 50.0 : f32
    // CHECK: %[[X:.*]] = arith.mulf
    %u = arith.mulf %y, %inner : f32
    // CHECK: %[[T:.*]] = math.tanh %[[X]]
    %t = math.tanh %u : f32
    // CHECK-NEXT: tile.yield %[[T]]
    %z = arith.mulf %t, %cap : f32
    tile.yield %z : f32
  } : !tile, !rows, !cols
  // CHECK: tile.online_softmax %{{.*}} {bounded, exp2, scale = 5.000000e+01 : f32}
  %p:4 = tile.online_softmax %x, %m, %l : !tile, !row
  return %p#0 : !tile
}

// The factor stays with the scores; product and sum are one operation.
// CHECK-LABEL: func.func @bias_after_the_scale
func.func @bias_after_the_scale(%s: !tile, %b: i32, %h: i32, %i: !rows, %j: !cols, %table: memref<?x?xf32>, %m: !row, %l: !row) -> !tile {
  %x = tile.scores %s at(%b, %h, %i, %j) score {
  ^bb0(%y: f32, %batch: i32, %head: i32, %row: i32, %col: i32):
    // CHECK: ^bb0(%[[Y:[a-z0-9]+]]: f32
    // CHECK: %[[C:.*]] = arith.constant 1.250000e-01
    %c = arith.constant 0.125 : f32
    %z = arith.mulf %y, %c : f32
    // CHECK: %[[BIAS:.*]] = tile.gather
    %bias = tile.gather %table[%row, %col] : memref<?x?xf32>, (i32, i32) -> f32
    // CHECK-NEXT: %[[Z:.*]] = math.fma %[[Y]], %[[C]], %[[BIAS]]
    // CHECK-NEXT: tile.yield %[[Z]]
    %sum = arith.addf %z, %bias : f32
    tile.yield %sum : f32
  } : !tile, !rows, !cols
  // CHECK: tile.online_softmax %{{.*}} {exp2} :
  %p:4 = tile.online_softmax %x, %m, %l : !tile, !row
  return %p#0 : !tile
}

// The maximum of negatively scaled scores is not the scaled maximum.
// CHECK-LABEL: func.func @negative_factor_stays
func.func @negative_factor_stays(%s: !tile, %b: i32, %h: i32, %i: !rows, %j: !cols, %m: !row, %l: !row) -> !tile {
  %x = tile.scores %s at(%b, %h, %i, %j) score {
  ^bb0(%y: f32, %batch: i32, %head: i32, %row: i32, %col: i32):
    %c = arith.constant -0.125 : f32
    // CHECK: arith.mulf
    %z = arith.mulf %y, %c : f32
    tile.yield %z : f32
  } : !tile, !rows, !cols
  // CHECK: tile.online_softmax %{{.*}} {exp2} :
  %p:4 = tile.online_softmax %x, %m, %l : !tile, !row
  return %p#0 : !tile
}

// CHECK-LABEL: func.func @choice_of_a_finite_value_stays
func.func @choice_of_a_finite_value_stays(%s: !tile, %b: i32, %h: i32, %i: !rows, %j: !cols, %m: !row, %l: !row) -> !tile {
  %x = tile.scores %s at(%b, %h, %i, %j) score {
  ^bb0(%y: f32, %batch: i32, %head: i32, %row: i32, %col: i32):
    %c = arith.constant 0.125 : f32
    %low = arith.constant -1.0e4 : f32
    // CHECK: arith.mulf
    %z = arith.mulf %y, %c : f32
    %visible = arith.cmpi sle, %col, %row : i32
    %v = arith.select %visible, %z, %low : f32
    tile.yield %v : f32
  } : !tile, !rows, !cols
  // CHECK: tile.online_softmax %{{.*}} {exp2} :
  %p:4 = tile.online_softmax %x, %m, %l : !tile, !row
  return %p#0 : !tile
}

// CHECK-LABEL: func.func @product_of_two_scores_stays
func.func @product_of_two_scores_stays(%s: !tile, %b: i32, %h: i32, %i: !rows, %j: !cols, %table: memref<?x?xf32>, %m: !row, %l: !row) -> !tile {
  %x = tile.scores %s at(%b, %h, %i, %j) score {
  ^bb0(%y: f32, %batch: i32, %head: i32, %row: i32, %col: i32):
    %t = tile.gather %table[%row, %col] : memref<?x?xf32>, (i32, i32) -> f32
    // CHECK: arith.mulf
    %z = arith.mulf %y, %t : f32
    tile.yield %z : f32
  } : !tile, !rows, !cols
  // CHECK: tile.online_softmax %{{.*}} {exp2} :
  %p:4 = tile.online_softmax %x, %m, %l : !tile, !row
  return %p#0 : !tile
}

// CHECK-LABEL: func.func @exact_is_not_touched
func.func @exact_is_not_touched(%s: !tile, %b: i32, %h: i32, %i: !rows, %j: !cols, %m: !row, %l: !row) -> !tile {
  %x = tile.scores %s at(%b, %h, %i, %j) score {
  ^bb0(%y: f32, %batch: i32, %head: i32, %row: i32, %col: i32):
    %c = arith.constant 0.125 : f32
    // CHECK: arith.mulf
    %z = arith.mulf %y, %c : f32
    tile.yield %z : f32
  } : !tile, !rows, !cols
  // CHECK: tile.online_softmax %{{.*}} {exact} :
  %p:4 = tile.online_softmax %x, %m, %l {exact} : !tile, !row
  return %p#0 : !tile
}

// A softcap: two factors below tanh become one, the one above moves.
// CHECK-LABEL: func.func @factors_merge
func.func @factors_merge(%s: !tile, %b: i32, %h: i32, %i: !rows, %j: !cols, %m: !row, %l: !row) -> !tile {
  %x = tile.scores %s at(%b, %h, %i, %j) score {
  ^bb0(%y: f32, %batch: i32, %head: i32, %row: i32, %col: i32):
    // CHECK: ^bb0(%[[Y:[a-z0-9]+]]: f32
    // CHECK: %[[F:.*]] = arith.constant 6.250000e-02 : f32
    %scale = arith.constant 0.125 : f32
    %inverse = arith.constant 0.5 : f32
    %cap = arith.constant 2.0 : f32
    // CHECK-NEXT: %[[X:.*]] = arith.mulf %[[Y]], %[[F]]
    %u = arith.mulf %y, %scale : f32
    %v = arith.mulf %u, %inverse : f32
    // CHECK-NEXT: %[[T:.*]] = math.tanh %[[X]]
    %t = math.tanh %v : f32
    // CHECK-NEXT: tile.yield %[[T]]
    %z = arith.mulf %t, %cap : f32
    tile.yield %z : f32
  } : !tile, !rows, !cols
  // CHECK: tile.online_softmax %{{.*}} {bounded, exp2, scale = 2.000000e+00 : f32}
  %p:4 = tile.online_softmax %x, %m, %l : !tile, !row
  return %p#0 : !tile
}

// CHECK-LABEL: func.func @factors_with_another_use_stay
func.func @factors_with_another_use_stay(%s: !tile, %b: i32, %h: i32, %i: !rows, %j: !cols, %m: !row, %l: !row) -> !tile {
  %x = tile.scores %s at(%b, %h, %i, %j) score {
  ^bb0(%y: f32, %batch: i32, %head: i32, %row: i32, %col: i32):
    %a = arith.constant 0.125 : f32
    %c = arith.constant 0.5 : f32
    // CHECK: arith.mulf
    %u = arith.mulf %y, %a : f32
    // CHECK: arith.mulf
    %v = arith.mulf %u, %c : f32
    %t = math.tanh %v : f32
    %z = arith.addf %t, %u : f32
    tile.yield %z : f32
  } : !tile, !rows, !cols
  %p:4 = tile.online_softmax %x, %m, %l : !tile, !row
  return %p#0 : !tile
}

// What is the same for all keys is computed once for a row: as it is written.
// CHECK-LABEL: func.func @factors_of_a_row_stay
func.func @factors_of_a_row_stay(%s: !tile, %b: i32, %h: i32, %i: !rows, %j: !cols, %table: memref<?xf32>, %m: !row, %l: !row) -> !tile {
  %x = tile.scores %s at(%b, %h, %i, %j) score {
  ^bb0(%y: f32, %batch: i32, %head: i32, %row: i32, %col: i32):
    %a = arith.constant 0.3 : f32
    %slope = tile.gather %table[%row] : memref<?xf32>, (i32) -> f32
    // CHECK: %[[U:.*]] = arith.mulf
    // CHECK: %[[V:.*]] = arith.mulf %[[U]]
    // CHECK: arith.addf %{{.*}}, %[[V]]
    %u = arith.mulf %slope, %a : f32
    %v = arith.mulf %u, %a : f32
    %z = arith.addf %y, %v : f32
    tile.yield %z : f32
  } : !tile, !rows, !cols
  %p:4 = tile.online_softmax %x, %m, %l : !tile, !row
  return %p#0 : !tile
}

// ALiBi: what is added is an integer times a slope: one fma with these two.
// CHECK-LABEL: func.func @distance_times_slope
func.func @distance_times_slope(%s: !tile, %b: i32, %h: i32, %i: !rows, %j: !cols, %slopes: memref<?xf32>, %m: !row, %l: !row) -> !tile {
  %x = tile.scores %s at(%b, %h, %i, %j) score {
  ^bb0(%y: f32, %batch: i32, %head: i32, %row: i32, %col: i32):
    %c = arith.constant 0.125 : f32
    // CHECK: %[[X:.*]] = arith.mulf
    %u = arith.mulf %y, %c : f32
    // CHECK: %[[SLOPE:.*]] = tile.gather
    // CHECK-NEXT: %[[RATE:.*]] = arith.negf %[[SLOPE]] : f32
    %slope = tile.gather %slopes[%head] : memref<?xf32>, (i32) -> f32
    %d = arith.subi %row, %col : i32
    // CHECK: %[[F:.*]] = arith.sitofp
    %f = arith.sitofp %d : i32 to f32
    %bias = arith.mulf %slope, %f : f32
    // CHECK-NEXT: %[[Z:.*]] = math.fma %[[F]], %[[RATE]], %[[X]]
    // CHECK-NEXT: tile.yield %[[Z]]
    %z = arith.subf %u, %bias : f32
    tile.yield %z : f32
  } : !tile, !rows, !cols
  // CHECK: tile.online_softmax %{{.*}} {exp2} :
  %p:4 = tile.online_softmax %x, %m, %l : !tile, !row
  return %p#0 : !tile
}

// Where the score function hides scores after that nobody takes these two into
// the reference: the sum takes the scale in.
// CHECK-LABEL: func.func @distance_times_slope_hidden
func.func @distance_times_slope_hidden(%s: !tile, %b: i32, %h: i32, %i: !rows, %j: !cols, %slopes: memref<?xf32>, %m: !row, %l: !row) -> !tile {
  %x = tile.scores %s at(%b, %h, %i, %j) score {
  ^bb0(%y: f32, %batch: i32, %head: i32, %row: i32, %col: i32):
    // CHECK: ^bb0(%[[Y:[a-z0-9]+]]: f32
    // CHECK: %[[C:.*]] = arith.constant 1.250000e-01 : f32
    %c = arith.constant 0.125 : f32
    %hidden = arith.constant 0xFF800000 : f32
    %u = arith.mulf %y, %c : f32
    %slope = tile.gather %slopes[%head] : memref<?xf32>, (i32) -> f32
    %d = arith.subi %col, %row : i32
    %f = arith.sitofp %d : i32 to f32
    // CHECK: %[[B:.*]] = arith.mulf
    %bias = arith.mulf %slope, %f : f32
    // CHECK-NEXT: %[[Z:.*]] = math.fma %[[Y]], %[[C]], %[[B]]
    %z = arith.addf %u, %bias : f32
    %visible = arith.cmpi sle, %col, %row : i32
    // CHECK: arith.select %{{.*}}, %[[Z]], %{{.*}} : f32
    %v = arith.select %visible, %z, %hidden : f32
    tile.yield %v : f32
  } : !tile, !rows, !cols
  // CHECK: tile.online_softmax %{{.*}} {exp2} :
  %p:4 = tile.online_softmax %x, %m, %l : !tile, !row
  return %p#0 : !tile
}

// A rate that differs from key to key, and a number that is no position: the sum
// takes the scale in.
// CHECK-LABEL: func.func @rate_of_a_key
func.func @rate_of_a_key(%s: !tile, %b: i32, %h: i32, %i: !rows, %j: !cols, %slopes: memref<?xf32>, %m: !row, %l: !row) -> !tile {
  %x = tile.scores %s at(%b, %h, %i, %j) score {
  ^bb0(%y: f32, %batch: i32, %head: i32, %row: i32, %col: i32):
    %c = arith.constant 0.125 : f32
    %u = arith.mulf %y, %c : f32
    %slope = tile.gather %slopes[%col] : memref<?xf32>, (i32) -> f32
    %d = arith.subi %row, %col : i32
    %f = arith.sitofp %d : i32 to f32
    // CHECK: %[[B:.*]] = arith.mulf
    %bias = arith.mulf %slope, %f : f32
    // CHECK-NEXT: math.fma %{{.*}}, %{{.*}}, %[[B]]
    %z = arith.addf %u, %bias : f32
    tile.yield %z : f32
  } : !tile, !rows, !cols
  // CHECK: tile.online_softmax %{{.*}} {exp2} :
  %p:4 = tile.online_softmax %x, %m, %l : !tile, !row
  return %p#0 : !tile
}

// What bounds scores, and what does not: a clamp does, at both ends; a sum is as
// small as its parts; a hidden key counts for nothing; positions may be large.

// CHECK-LABEL: func.func @bounded_below
// REMARK: scores are not known to be at most 512
func.func @bounded_below(%s: !tile, %b: i32, %h: i32, %i: !rows, %j: !cols, %m: !row, %l: !row) -> !tile {
  %x = tile.scores %s at(%b, %h, %i, %j) score {
  ^bb0(%y: f32, %batch: i32, %head: i32, %row: i32, %col: i32):
    %low = arith.constant -40.0 : f32
    %a = arith.maximumf %y, %low : f32
    tile.yield %a : f32
  } : !tile, !rows, !cols
  // CHECK: tile.online_softmax %{{.*}} {exp2} :
  %p:4 = tile.online_softmax %x, %m, %l : !tile, !row
  return %p#0 : !tile
}

// CHECK-LABEL: func.func @clamped
// REMARK: bound=6.0000{{[0-9]+}}e+01
func.func @clamped(%s: !tile, %b: i32, %h: i32, %i: !rows, %j: !cols, %m: !row, %l: !row) -> !tile {
  %x = tile.scores %s at(%b, %h, %i, %j) score {
  ^bb0(%y: f32, %batch: i32, %head: i32, %row: i32, %col: i32):
    %low = arith.constant -40.0 : f32
    %high = arith.constant 60.0 : f32
    %a = arith.maximumf %y, %low : f32
    %c = arith.minimumf %a, %high : f32
    tile.yield %c : f32
  } : !tile, !rows, !cols
  // CHECK: tile.online_softmax %{{.*}} {bounded, exp2} :
  %p:4 = tile.online_softmax %x, %m, %l : !tile, !row
  return %p#0 : !tile
}

// CHECK-LABEL: func.func @small_sum
// REMARK: bound=4.60{{[0-9]+}}e+02
func.func @small_sum(%s: !tile, %b: i32, %h: i32, %i: !rows, %j: !cols, %m: !row, %l: !row) -> !tile {
  %x = tile.scores %s at(%b, %h, %i, %j) score {
  ^bb0(%y: f32, %batch: i32, %head: i32, %row: i32, %col: i32):
    %low = arith.constant -40.0 : f32
    %high = arith.constant 60.0 : f32
    %a = arith.maximumf %y, %low : f32
    %c = arith.minimumf %a, %high : f32
    %large = arith.constant 400.0 : f32
    %d = arith.addf %c, %large : f32
    tile.yield %d : f32
  } mask {
  ^bb0(%batch: i32, %head: i32, %row: i32, %col: i32):
    %visible = arith.cmpi sle, %col, %row : i32
    tile.yield %visible : i1
  } : !tile, !rows, !cols
  // CHECK: tile.online_softmax %{{.*}} {bounded, exp2} :
  %p:4 = tile.online_softmax %x, %m, %l : !tile, !row
  return %p#0 : !tile
}

// CHECK-LABEL: func.func @hidden_scores
func.func @hidden_scores(%s: !tile, %b: i32, %h: i32, %i: !rows, %j: !cols, %m: !row, %l: !row) -> !tile {
  %x = tile.scores %s at(%b, %h, %i, %j) score {
  ^bb0(%y: f32, %batch: i32, %head: i32, %row: i32, %col: i32):
    %low = arith.constant -40.0 : f32
    %high = arith.constant 60.0 : f32
    %a = arith.maximumf %y, %low : f32
    %c = arith.minimumf %a, %high : f32
    %large = arith.constant 400.0 : f32
    %d = arith.addf %c, %large : f32
    %hidden = arith.constant 0xFF800000 : f32
    %visible = arith.cmpi sle, %col, %row : i32
    %e = arith.select %visible, %d, %hidden : f32
    tile.yield %e : f32
  } : !tile, !rows, !cols
  // CHECK: tile.online_softmax %{{.*}} {bounded, exp2} :
  %p:4 = tile.online_softmax %x, %m, %l : !tile, !row
  return %p#0 : !tile
}

// CHECK-LABEL: func.func @large_sum
func.func @large_sum(%s: !tile, %b: i32, %h: i32, %i: !rows, %j: !cols, %m: !row, %l: !row) -> !tile {
  %x = tile.scores %s at(%b, %h, %i, %j) score {
  ^bb0(%y: f32, %batch: i32, %head: i32, %row: i32, %col: i32):
    %low = arith.constant -40.0 : f32
    %high = arith.constant 60.0 : f32
    %a = arith.maximumf %y, %low : f32
    %c = arith.minimumf %a, %high : f32
    %large = arith.constant 400.0 : f32
    %d = arith.addf %c, %large : f32
    %e = arith.addf %d, %large : f32
    tile.yield %e : f32
  } : !tile, !rows, !cols
  // CHECK: tile.online_softmax %{{.*}} {exp2} :
  %p:4 = tile.online_softmax %x, %m, %l : !tile, !row
  return %p#0 : !tile
}

// CHECK-LABEL: func.func @positions
func.func @positions(%s: !tile, %b: i32, %h: i32, %i: !rows, %j: !cols, %m: !row, %l: !row) -> !tile {
  %x = tile.scores %s at(%b, %h, %i, %j) score {
  ^bb0(%y: f32, %batch: i32, %head: i32, %row: i32, %col: i32):
    %f = arith.sitofp %row : i32 to f32
    tile.yield %f : f32
  } : !tile, !rows, !cols
  // CHECK: tile.online_softmax %{{.*}} {exp2} :
  %p:4 = tile.online_softmax %x, %m, %l : !tile, !row
  return %p#0 : !tile
}

// The -inf of one operand may become the largest one.
// CHECK-LABEL: func.func @hidden_scores_of_an_operand
func.func @hidden_scores_of_an_operand(%s: !tile, %b: i32, %h: i32, %i: !rows, %j: !cols, %m: !row, %l: !row) -> !tile {
  %x = tile.scores %s at(%b, %h, %i, %j) score {
  ^bb0(%y: f32, %batch: i32, %head: i32, %row: i32, %col: i32):
    %low = arith.constant -40.0 : f32
    %high = arith.constant 60.0 : f32
    %a = arith.maximumf %y, %low : f32
    %c = arith.minimumf %a, %high : f32
    %large = arith.constant 400.0 : f32
    %d = arith.addf %c, %large : f32
    %hidden = arith.constant 0xFF800000 : f32
    %visible = arith.cmpi sle, %col, %row : i32
    %e = arith.select %visible, %d, %hidden : f32
    %f = arith.sitofp %row : i32 to f32
    %g = arith.maximumf %e, %f : f32
    tile.yield %g : f32
  } : !tile, !rows, !cols
  // CHECK: tile.online_softmax %{{.*}} {exp2} :
  %p:4 = tile.online_softmax %x, %m, %l : !tile, !row
  return %p#0 : !tile
}

// An integer and a choice are made of products and sums: what leads there keeps
// every rounding, and all the rest is put together as ever.
// CHECK-LABEL: func.func @decisions_stay_as_written
func.func @decisions_stay_as_written(%s: !tile, %b: i32, %h: i32, %i: !rows, %j: !cols, %numbers: memref<?x?xf32>, %table: memref<?xf32>, %m: !row, %l: !row) -> !tile {
  %x = tile.scores %s at(%b, %h, %i, %j) score {
  ^bb0(%y: f32, %batch: i32, %head: i32, %row: i32, %col: i32):
    // CHECK: ^bb0(%[[Y:[a-z0-9]+]]: f32
    // CHECK-DAG: %[[A:.*]] = arith.constant 0.024390{{[0-9]*}} : f32
    // CHECK-DAG: %[[B:.*]] = arith.constant 4.100000e+01 : f32
    // CHECK-DAG: %[[START:.*]] = arith.constant 3.000000e-01 : f32
    %a = arith.constant 0.024390243902439025 : f32
    %c = arith.constant 41.0 : f32
    %start = arith.constant 0.3 : f32
    // CHECK: %[[R:.*]] = tile.gather
    %r = tile.gather %numbers[%row, %col] : memref<?x?xf32>, (i32, i32) -> f32
    // CHECK: %[[SHARE:.*]] = arith.mulf %[[R]], %[[A]]
    // CHECK: %[[BACK:.*]] = arith.mulf %[[SHARE]], %[[B]]
    // CHECK: %[[MOVED:.*]] = arith.addf %[[BACK]], %[[START]]
    // CHECK: %[[FLOOR:.*]] = math.floor %[[MOVED]]
    // CHECK: arith.fptosi %[[FLOOR]]
    %share = arith.mulf %r, %a : f32
    %back = arith.mulf %share, %c : f32
    %moved = arith.addf %back, %start : f32
    %floor = math.floor %moved : f32
    %bucket = arith.fptosi %floor : f32 to i32
    %bias = tile.gather %table[%bucket] : memref<?xf32>, (i32) -> f32
    // CHECK: %[[SHARE:.*]] = arith.mulf %[[Y]], %[[A]]
    // CHECK: %[[BACK:.*]] = arith.mulf %[[SHARE]], %[[B]]
    // CHECK: %[[LESS:.*]] = arith.cmpf olt, %[[BACK]], %[[R]]
    %scaled = arith.mulf %y, %a : f32
    %twice = arith.mulf %scaled, %c : f32
    %less = arith.cmpf olt, %twice, %r : f32
    // CHECK-NOT: arith.mulf
    // CHECK: %[[AB:.*]] = arith.constant {{(1.0|0.99999).*}} : f32
    // CHECK: math.fma %[[Y]], %[[AB]]
    %first = arith.mulf %y, %a : f32
    %second = arith.mulf %first, %c : f32
    %sum = arith.addf %second, %bias : f32
    %chosen = arith.select %less, %sum, %bias : f32
    tile.yield %chosen : f32
  } : !tile, !rows, !cols
  %p:4 = tile.online_softmax %x, %m, %l : !tile, !row
  return %p#0 : !tile
}

// CHECK-LABEL: func.func @scores_that_go_elsewhere
// REMARK: fold-exp2{{.*}}neither a softmax nor exp(scores - lse) takes the scores
func.func @scores_that_go_elsewhere(%s: !tile, %b: i32, %h: i32, %i: !rows, %j: !cols) -> !tile {
  %x = tile.scores %s at(%b, %h, %i, %j) score {
  ^bb0(%y: f32, %batch: i32, %head: i32, %row: i32, %col: i32):
    %c = arith.constant 0.125 : f32
    // CHECK: arith.mulf
    %z = arith.mulf %y, %c : f32
    tile.yield %z : f32
  } : !tile, !rows, !cols
  return %x : !tile
}

// Weights of gradients, with an lse for each row. What is the same in each turn
// is computed before the loop.
// CHECK-LABEL: func.func @weights_of_known_rows
// CHECK-SAME: %[[LSE:[a-z0-9]+]]: vector<16x1xf32>
// OWN-LABEL: func.func @weights_of_known_rows
// OWN-SAME: %[[LSE:[a-z0-9]+]]: vector<16x1xf32>
// OWN: %[[FAR:.*]] = vector.multi_reduction <or>
// OWN: %[[X:.*]] = tile.scores
func.func @weights_of_known_rows(%s: !tile, %b: i32, %h: i32, %i: !rows, %j: !cols, %lse: !row, %n: index) -> !tile {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant dense<0.0> : !tile
  // CHECK: %[[SIZE:.*]] = math.absf %[[LSE]]
  // CHECK: %[[LARGE:.*]] = arith.cmpf uge, %[[SIZE]], %{{.*}} : vector<16x1xf32>
  // CHECK: %[[FAR:.*]] = vector.multi_reduction <or>, %[[LARGE]]
  // CHECK: scf.for
  %sum = scf.for %t = %c0 to %n step %c1 iter_args(%a = %zero) -> !tile {
    // CHECK: %[[X:.*]] = tile.scores %{{.*}} at({{[^)]*}}) mask
    %x = tile.scores %s at(%b, %h, %i, %j) score {
    ^bb0(%y: f32, %batch: i32, %head: i32, %row: i32, %col: i32):
      %c = arith.constant 0.125 : f32
      %z = arith.mulf %y, %c : f32
      tile.yield %z : f32
    } mask {
    ^bb0(%batch: i32, %head: i32, %row: i32, %col: i32):
      %visible = arith.cmpi sle, %col, %row : i32
      tile.yield %visible : i1
    } : !tile, !rows, !cols
    // CHECK: %[[PARTS:.*]]:2 = scf.if %[[FAR]]
    // CHECK: %[[SCALE:.*]] = arith.constant dense<1.250000e-01>
    // CHECK: %[[SCALED:.*]] = arith.mulf %[[X]], %[[SCALE]]
    // CHECK: %[[STRETCHED:.*]] = vector.broadcast %[[LSE]]
    // CHECK: %[[EXCESS:.*]] = arith.subf %[[SCALED]], %[[STRETCHED]]
    // CHECK: %[[INVERSE:.*]] = arith.constant dense<8.000000e+00>
    // CHECK: %[[MOVED:.*]] = arith.mulf %[[EXCESS]], %[[INVERSE]]
    // CHECK: scf.yield %[[MOVED]], %{{.*}}
    // CHECK: else
    // CHECK: %[[LOG2E:.*]] = arith.constant dense<-1.442695
    // CHECK: %[[OFFSET:.*]] = arith.mulf %[[LSE]], %[[LOG2E]] : vector<16x1xf32>
    // CHECK: scf.yield %[[X]], %[[OFFSET]]
    // CHECK: %[[ROW:.*]] = vector.broadcast %[[PARTS]]#1
    // CHECK: %[[FACTOR:.*]] = arith.constant dense<0.180336
    // CHECK: %[[E:.*]] = math.fma %[[PARTS]]#0, %[[FACTOR]], %[[ROW]]
    // CHECK: math.exp2 %[[E]]
    // CHECK-NOT: math.exp
    // OWN: %[[P:.*]] = scf.if %[[FAR]] -> (vector<16x32xf32>)
    // OWN: %[[SCALE:.*]] = arith.constant dense<1.250000e-01>
    // OWN: %[[SCALED:.*]] = arith.mulf %[[X]], %[[SCALE]]
    // OWN: %[[STRETCHED:.*]] = vector.broadcast %[[LSE]]
    // OWN: %[[EXCESS:.*]] = arith.subf %[[SCALED]], %[[STRETCHED]]
    // OWN: %[[LOG2E:.*]] = arith.constant dense<1.442695
    // OWN: %[[FAR_E:.*]] = arith.mulf %[[EXCESS]], %[[LOG2E]]
    // OWN: %[[FAR_P:.*]] = math.exp2 %[[FAR_E]]
    // OWN-NEXT: scf.yield %[[FAR_P]]
    // OWN: else
    // OWN: %[[MINUS:.*]] = arith.constant dense<-1.442695
    // OWN: %[[OFFSET:.*]] = arith.mulf %[[LSE]], %[[MINUS]] : vector<16x1xf32>
    // OWN: %[[ROW:.*]] = vector.broadcast %[[OFFSET]]
    // OWN: %[[FACTOR:.*]] = arith.constant dense<0.180336
    // OWN: %[[E:.*]] = math.fma %[[X]], %[[FACTOR]], %[[ROW]]
    // OWN: %[[NEAR_P:.*]] = math.exp2 %[[E]]
    // OWN-NEXT: scf.yield %[[NEAR_P]]
    // OWN: arith.addf %{{.*}}, %[[P]]
    %l = vector.broadcast %lse : !row to !tile
    %d = arith.subf %x, %l : !tile
    %p = math.exp %d : !tile
    %next = arith.addf %a, %p : !tile
    scf.yield %next : !tile
  }
  return %sum : !tile
}

// Scores that are small ask nothing; an lse may lie along the columns, too.
// CHECK-LABEL: func.func @weights_of_small_scores
// CHECK-SAME: %[[LSE:[a-z0-9]+]]: vector<1x32xf32>
func.func @weights_of_small_scores(%s: !tile, %b: i32, %h: i32, %i: !rows, %j: !cols, %lse: vector<1x32xf32>) -> !tile {
  // CHECK: %[[X:.*]] = tile.scores
  %x = tile.scores %s at(%b, %h, %i, %j) score {
  ^bb0(%y: f32, %batch: i32, %head: i32, %row: i32, %col: i32):
    %cap = arith.constant 50.0 : f32
    %t = math.tanh %y : f32
    // CHECK-NOT: arith.mulf
    %z = arith.mulf %t, %cap : f32
    tile.yield %z : f32
  } : !tile, !rows, !cols
  // CHECK: %[[OFFSET:.*]] = arith.mulf %[[LSE]], %{{.*}} : vector<1x32xf32>
  // CHECK-NOT: scf.if
  // CHECK: %[[ROW:.*]] = vector.broadcast %[[OFFSET]]
  // CHECK: %[[FACTOR:.*]] = arith.constant dense<72.134
  // CHECK: %[[E:.*]] = math.fma %[[X]], %[[FACTOR]], %[[ROW]]
  // CHECK: math.exp2 %[[E]]
  %l = vector.broadcast %lse : vector<1x32xf32> to !tile
  %d = arith.subf %x, %l : !tile
  %p = math.exp %d : !tile
  return %p : !tile
}

// The rest of an lse that is large is read where one is, and nowhere else.
// CHECK-LABEL: func.func @weights_of_two_numbers
// CHECK-SAME: %[[LSE:[a-z0-9]+]]: vector<16x1xf32>, %[[RESTS:[a-z0-9]+]]: memref<?xf32>
// OWN-LABEL: func.func @weights_of_two_numbers
// OWN-SAME: %[[LSE:[a-z0-9]+]]: vector<16x1xf32>, %[[RESTS:[a-z0-9]+]]: memref<?xf32>
// OWN: %[[X:.*]] = tile.scores
func.func @weights_of_two_numbers(%s: !tile, %b: i32, %h: i32, %i: !rows, %j: !cols, %lse: !row, %rests: memref<?xf32>) -> !tile {
  // CHECK: %[[X:.*]] = tile.scores
  %x = tile.scores %s at(%b, %h, %i, %j) score {
  ^bb0(%y: f32, %batch: i32, %head: i32, %row: i32, %col: i32):
    %c = arith.constant 0.125 : f32
    %z = arith.mulf %y, %c : f32
    tile.yield %z : f32
  } : !tile, !rows, !cols
  // CHECK-NOT: tile.gather
  // CHECK: scf.if
  // CHECK: %[[SCALED:.*]] = arith.mulf %[[X]]
  // CHECK: %[[FIRST:.*]] = arith.subf %[[SCALED]], %{{.*}}
  // CHECK: %[[READ:.*]] = tile.gather %[[RESTS]][%{{.*}}]
  // CHECK: %[[REST:.*]] = vector.broadcast %[[READ]]
  // CHECK: %[[BOTH:.*]] = arith.subf %[[FIRST]], %[[REST]]
  // CHECK: %[[MOST:.*]] = arith.minimumf %[[BOTH]], %{{.*}}
  // CHECK: arith.mulf %[[MOST]]
  // CHECK: else
  // CHECK-NEXT: arith.constant
  // CHECK-NEXT: arith.mulf %[[LSE]]
  // CHECK-NEXT: scf.yield %[[X]]
  // CHECK-NOT: math.exp %
  // CHECK: math.exp2

  // OWN-NOT: tile.gather
  // OWN: scf.if
  // OWN: %[[SCALED:.*]] = arith.mulf %[[X]]
  // OWN: %[[FIRST:.*]] = arith.subf %[[SCALED]], %{{.*}}
  // OWN: %[[READ:.*]] = tile.gather %[[RESTS]][%{{.*}}]
  // OWN: %[[REST:.*]] = vector.broadcast %[[READ]]
  // OWN: %[[BOTH:.*]] = arith.subf %[[FIRST]], %[[REST]]
  // OWN: %[[E:.*]] = arith.mulf %[[BOTH]]
  // OWN: %[[P:.*]] = math.exp2 %[[E]]
  // OWN: %[[ONE:.*]] = arith.constant dense<1.000000e+00>
  // OWN: %[[MOST:.*]] = arith.minimumf %[[P]], %[[ONE]]
  // OWN: scf.yield %[[MOST]]
  // OWN: else
  // OWN-NEXT: arith.constant
  // OWN-NEXT: arith.mulf %[[LSE]]
  // OWN-NOT: math.exp %
  // OWN: math.exp2
  %rest = tile.gather %rests[%i] : memref<?xf32>, (!rows) -> !row
  %l = vector.broadcast %lse : !row to !tile
  %d = arith.subf %x, %l : !tile
  %m = vector.broadcast %rest : !row to !tile
  %e = arith.subf %d, %m : !tile
  %zero = arith.constant dense<0.0> : !tile
  %f = arith.minimumf %e, %zero : !tile
  %p = math.exp %f : !tile
  return %p : !tile
}

// What a pullback computes again, and the score that it looks at, stay as they
// are written.
// CHECK-LABEL: func.func @weights_beside_a_pullback
func.func @weights_beside_a_pullback(%s: !tile, %b: i32, %h: i32, %i: !rows, %j: !cols, %lse: !row) -> (!tile, vector<16x32xi1>) {
  %x = tile.scores %s at(%b, %h, %i, %j) score {
  ^bb0(%y: f32, %batch: i32, %head: i32, %row: i32, %col: i32):
    %scale = arith.constant 0.125 : f32
    %inverse = arith.constant 0.5 : f32
    %cap = arith.constant 2.0 : f32
    // CHECK: %[[U:.*]] = arith.mulf
    %u = arith.mulf %y, %scale : f32
    // CHECK: arith.mulf %[[U]]
    %v = arith.mulf %u, %inverse : f32
    %t = math.tanh %v : f32
    // CHECK: arith.mulf
    %z = arith.mulf %t, %cap : f32
    tile.yield %z : f32
  } : !tile, !rows, !cols
  // CHECK: %[[FACTOR:.*]] = arith.constant dense<1.442695
  // CHECK: math.fma %{{.*}}, %[[FACTOR]], %{{.*}}
  // CHECK: math.exp2
  %l = vector.broadcast %lse : !row to !tile
  %d = arith.subf %x, %l : !tile
  %p = math.exp %d : !tile
  %low = arith.constant dense<0xFF800000> : !tile
  %hidden = arith.cmpf oeq, %x, %low : !tile
  return %p, %hidden : !tile, vector<16x32xi1>
}

// Near misses: the other difference, one that goes elsewhere, a difference of
// tiles, a limit that is not 0.
// CHECK-LABEL: func.func @exponentials_of_other_differences
// CHECK-NOT: math.exp2
// CHECK: return
func.func @exponentials_of_other_differences(%s: !tile, %b: i32, %h: i32, %i: !rows, %j: !cols, %lse: !row, %other: !tile) -> (!tile, !tile, !tile, !tile, !tile) {
  %x = tile.scores %s at(%b, %h, %i, %j) score {
  ^bb0(%y: f32, %batch: i32, %head: i32, %row: i32, %col: i32):
    %c = arith.constant 0.125 : f32
    %z = arith.mulf %y, %c : f32
    tile.yield %z : f32
  } : !tile, !rows, !cols
  %l = vector.broadcast %lse : !row to !tile
  %d0 = arith.subf %l, %x : !tile
  %p0 = math.exp %d0 : !tile
  %d1 = arith.subf %x, %l : !tile
  %p1 = math.exp %d1 : !tile
  %d2 = arith.subf %x, %other : !tile
  %p2 = math.exp %d2 : !tile
  %d3 = arith.subf %x, %l : !tile
  %e3 = arith.subf %d3, %l : !tile
  %one = arith.constant dense<1.0> : !tile
  %f3 = arith.minimumf %e3, %one : !tile
  %p3 = math.exp %f3 : !tile
  return %p0, %p1, %p2, %d1, %p3 : !tile, !tile, !tile, !tile, !tile
}

#lhs = affine_map<(m, n, k) -> (m, k)>
#rhs = affine_map<(m, n, k) -> (n, k)>
#out = affine_map<(m, n, k) -> (m, n)>

// Of a cap that is not large an error of tanh matters beside 1 only, and of
// 16-bit numbers. A cap of 100, f32 and what is added afterwards: as it is written.
// CHECK-LABEL: func.func @approximate_caps
// CHECK: math.tanh %{{.*}} fastmath<afn>
// CHECK: math.tanh %{{.*}} : f32
// CHECK: math.tanh %{{.*}} : f32
// CHECK: math.tanh %{{.*}} : f32
func.func @approximate_caps(%q: vector<16x8xbf16>, %k: vector<32x8xbf16>, %q32: vector<16x8xf32>, %k32: vector<32x8xf32>, %b: i32, %h: i32, %i: !rows, %j: !cols, %m: !row, %l: !row) -> (!tile, !tile, !tile, !tile) {
  %zero = arith.constant dense<0.0> : !tile
  %s = vector.contract {indexing_maps = [#lhs, #rhs, #out], iterator_types = ["parallel", "parallel", "reduction"], kind = #vector.kind<add>} %q, %k, %zero : vector<16x8xbf16>, vector<32x8xbf16> into !tile
  %s32 = vector.contract {indexing_maps = [#lhs, #rhs, #out], iterator_types = ["parallel", "parallel", "reduction"], kind = #vector.kind<add>} %q32, %k32, %zero : vector<16x8xf32>, vector<32x8xf32> into !tile
  %x0 = tile.scores %s at(%b, %h, %i, %j) score {
  ^bb0(%y: f32, %batch: i32, %head: i32, %row: i32, %col: i32):
    %cap = arith.constant 50.0 : f32
    %t = math.tanh %y : f32
    %z = arith.mulf %t, %cap : f32
    tile.yield %z : f32
  } : !tile, !rows, !cols
  %p0:4 = tile.online_softmax %x0, %m, %l : !tile, !row
  %x1 = tile.scores %s at(%b, %h, %i, %j) score {
  ^bb0(%y: f32, %batch: i32, %head: i32, %row: i32, %col: i32):
    %cap = arith.constant 100.0 : f32
    %t = math.tanh %y : f32
    %z = arith.mulf %t, %cap : f32
    tile.yield %z : f32
  } : !tile, !rows, !cols
  %p1:4 = tile.online_softmax %x1, %m, %l : !tile, !row
  %x2 = tile.scores %s32 at(%b, %h, %i, %j) score {
  ^bb0(%y: f32, %batch: i32, %head: i32, %row: i32, %col: i32):
    %cap = arith.constant 50.0 : f32
    %t = math.tanh %y : f32
    %z = arith.mulf %t, %cap : f32
    tile.yield %z : f32
  } : !tile, !rows, !cols
  %p2:4 = tile.online_softmax %x2, %m, %l : !tile, !row
  %x3 = tile.scores %s at(%b, %h, %i, %j) score {
  ^bb0(%y: f32, %batch: i32, %head: i32, %row: i32, %col: i32):
    %t = math.tanh %y : f32
    %z = arith.addf %t, %y : f32
    tile.yield %z : f32
  } : !tile, !rows, !cols
  %p3:4 = tile.online_softmax %x3, %m, %l : !tile, !row
  return %p0#0, %p1#0, %p2#0, %p3#0 : !tile, !tile, !tile, !tile
}
