// RUN: attn-opt %s --tile-fold-exp2 | FileCheck %s
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
// REMARK: fold-exp2{{.*}}neither a softmax nor exp2(fma(scores, log2(e), offset)) takes the scores
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

// Weights of gradients are powers of two already: the factor takes the scale.
// CHECK-LABEL: func.func @weights_of_known_rows
// CHECK-SAME: %[[OFFSET:[a-z0-9]+]]: vector<16x1xf32>
func.func @weights_of_known_rows(%s: !tile, %b: i32, %h: i32, %i: !rows, %j: !cols, %offset: !row) -> !tile {
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
  // CHECK: %[[ROW:.*]] = vector.broadcast %[[OFFSET]]
  // CHECK: %[[FACTOR:.*]] = arith.constant dense<0.180336878>
  // CHECK: %[[E:.*]] = math.fma %[[X]], %[[FACTOR]], %[[ROW]]
  // CHECK: math.exp2 %[[E]]
  %log2e = arith.constant dense<1.44269502> : !tile
  %o = vector.broadcast %offset : !row to !tile
  %e = math.fma %x, %log2e, %o : !tile
  %p = math.exp2 %e : !tile
  return %p : !tile
}

// In the arm of heads with far rows, the first one, scores are multiplied as
// they were.
// CHECK-LABEL: func.func @weights_in_two_arms
// CHECK-SAME: %[[OFFSET:[a-z0-9]+]]: vector<16x1xf32>, %[[RESTS:[a-z0-9]+]]: memref<?xf32>
func.func @weights_in_two_arms(%s: !tile, %b: i32, %h: i32, %i: !rows, %j: !cols, %offset: !row, %rests: memref<?xf32>, %far: i1) -> !tile {
  // CHECK: %[[X:.*]] = tile.scores
  %x = tile.scores %s at(%b, %h, %i, %j) score {
  ^bb0(%y: f32, %batch: i32, %head: i32, %row: i32, %col: i32):
    %c = arith.constant 0.125 : f32
    %z = arith.mulf %y, %c : f32
    tile.yield %z : f32
  } : !tile, !rows, !cols
  %log2e = arith.constant dense<1.44269502> : !tile
  %o = vector.broadcast %offset : !row to !tile
  // CHECK: %[[P:.*]] = scf.if
  %p = scf.if %far -> !tile {
    // CHECK: %[[SCALE:.*]] = arith.constant dense<1.250000e-01>
    // CHECK: %[[SCALED:.*]] = arith.mulf %[[X]], %[[SCALE]]
    // CHECK: %[[EXCESS:.*]] = arith.addf %[[SCALED]]
    %d = arith.addf %x, %o : !tile
    %rest = tile.gather %rests[%i] : memref<?xf32>, (!rows) -> !row
    %r = vector.broadcast %rest : !row to !tile
    // CHECK: math.fma %[[EXCESS]], %[[LOG2E:.*]], %{{.*}}
    %e = math.fma %d, %log2e, %r : !tile
    %q = math.exp2 %e : !tile
    scf.yield %q : !tile
  } else {
    // CHECK: else
    // CHECK: math.fma %[[X]], %[[FACTOR:[a-z0-9_]+]],
    %e = math.fma %x, %log2e, %o : !tile
    %q = math.exp2 %e : !tile
    scf.yield %q : !tile
  }
  // CHECK: return %[[P]]
  return %p : !tile
}

// Powers behind the branch: what the first arm gives lacks the scale, too.
// CHECK-LABEL: func.func @weights_behind_a_branch
// CHECK-SAME: %[[OFFSET:[a-z0-9]+]]: vector<16x1xf32>, %[[REST:[a-z0-9]+]]: vector<16x1xf32>
func.func @weights_behind_a_branch(%s: !tile, %b: i32, %h: i32, %i: !rows, %j: !cols, %offset: !row, %rest: !row, %far: i1) -> !tile {
  // CHECK: %[[X:.*]] = tile.scores
  %x = tile.scores %s at(%b, %h, %i, %j) score {
  ^bb0(%y: f32, %batch: i32, %head: i32, %row: i32, %col: i32):
    %c = arith.constant 0.125 : f32
    %z = arith.mulf %y, %c : f32
    tile.yield %z : f32
  } : !tile, !rows, !cols
  // CHECK: %[[PARTS:.*]]:2 = scf.if
  %parts:2 = scf.if %far -> (!tile, !row) {
    // CHECK: %[[SCALED:.*]] = arith.mulf %[[X]], %{{.*}}
    // CHECK: %[[EXCESS:.*]] = arith.addf %[[SCALED]]
    // CHECK: %[[INVERSE:.*]] = arith.constant dense<8.000000e+00>
    // CHECK: %[[MOVED:.*]] = arith.mulf %[[EXCESS]], %[[INVERSE]]
    // CHECK: scf.yield %[[MOVED]], %[[REST]]
    %o = vector.broadcast %offset : !row to !tile
    %d = arith.addf %x, %o : !tile
    scf.yield %d, %rest : !tile, !row
  } else {
    // CHECK: scf.yield %[[X]], %[[OFFSET]]
    scf.yield %x, %offset : !tile, !row
  }
  // CHECK: %[[ROW:.*]] = vector.broadcast %[[PARTS]]#1
  // CHECK: %[[FACTOR:.*]] = arith.constant dense<0.180336878>
  // CHECK: math.fma %[[PARTS]]#0, %[[FACTOR]], %[[ROW]]
  %log2e = arith.constant dense<1.44269502> : !tile
  %r = vector.broadcast %parts#1 : !row to !tile
  %e = math.fma %parts#0, %log2e, %r : !tile
  %p = math.exp2 %e : !tile
  return %p : !tile
}

// The branch stays where scores are small, too: whoever made it knows what for.
// An offset may lie along the columns.
// CHECK-LABEL: func.func @weights_of_small_scores
// CHECK-SAME: %[[OFFSET:[a-z0-9]+]]: vector<1x32xf32>
func.func @weights_of_small_scores(%s: !tile, %b: i32, %h: i32, %i: !rows, %j: !cols, %offset: vector<1x32xf32>, %far: i1) -> !tile {
  // CHECK: %[[X:.*]] = tile.scores
  %x = tile.scores %s at(%b, %h, %i, %j) score {
  ^bb0(%y: f32, %batch: i32, %head: i32, %row: i32, %col: i32):
    %cap = arith.constant 50.0 : f32
    %t = math.tanh %y : f32
    // CHECK-NOT: arith.mulf
    %z = arith.mulf %t, %cap : f32
    tile.yield %z : f32
  } : !tile, !rows, !cols
  // CHECK: %[[ROW:.*]] = vector.broadcast %[[OFFSET]]
  // CHECK: %[[P:.*]] = scf.if
  // CHECK: %[[CAPPED:.*]] = arith.mulf %[[X]], %{{.*}}
  // CHECK: arith.addf %[[CAPPED]], %[[ROW]]
  // CHECK: else
  // CHECK: %[[FACTOR:.*]] = arith.constant dense<72.134
  // CHECK: %[[E:.*]] = math.fma %[[X]], %[[FACTOR]], %[[ROW]]
  // CHECK: math.exp2 %[[E]]
  // CHECK: return %[[P]]
  %log2e = arith.constant dense<1.44269502> : !tile
  %o = vector.broadcast %offset : vector<1x32xf32> to !tile
  %p = scf.if %far -> !tile {
    %d = arith.addf %x, %o : !tile
    %e = math.fma %d, %log2e, %o : !tile
    %q = math.exp2 %e : !tile
    scf.yield %q : !tile
  } else {
    %e = math.fma %x, %log2e, %o : !tile
    %q = math.exp2 %e : !tile
    scf.yield %q : !tile
  }
  return %p : !tile
}

// What a pullback computes again, and the score that it looks at, stay as they
// are written.
// CHECK-LABEL: func.func @weights_beside_a_pullback
func.func @weights_beside_a_pullback(%s: !tile, %b: i32, %h: i32, %i: !rows, %j: !cols, %offset: !row) -> (!tile, vector<16x32xi1>) {
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
  %log2e = arith.constant dense<1.44269502> : !tile
  %o = vector.broadcast %offset : !row to !tile
  %e = math.fma %x, %log2e, %o : !tile
  %p = math.exp2 %e : !tile
  %low = arith.constant dense<0xFF800000> : !tile
  %hidden = arith.cmpf oeq, %x, %low : !tile
  return %p, %hidden : !tile, vector<16x32xi1>
}

// Near misses: another factor, scores in another place, an exponent that goes
// elsewhere, no power of it.
// CHECK-LABEL: func.func @other_powers
// CHECK: arith.constant 1.250000e-01
// CHECK: arith.mulf
// CHECK: return
func.func @other_powers(%s: !tile, %b: i32, %h: i32, %i: !rows, %j: !cols, %o: !tile) -> (!tile, !tile, !tile, !tile, !tile) {
  %x = tile.scores %s at(%b, %h, %i, %j) score {
  ^bb0(%y: f32, %batch: i32, %head: i32, %row: i32, %col: i32):
    %c = arith.constant 0.125 : f32
    %z = arith.mulf %y, %c : f32
    tile.yield %z : f32
  } : !tile, !rows, !cols
  %log2e = arith.constant dense<1.44269502> : !tile
  %two = arith.constant dense<2.0> : !tile
  %e0 = math.fma %x, %two, %o : !tile
  %p0 = math.exp2 %e0 : !tile
  %e1 = math.fma %o, %log2e, %x : !tile
  %p1 = math.exp2 %e1 : !tile
  %e2 = math.fma %x, %log2e, %o : !tile
  %p2 = math.exp2 %e2 : !tile
  %e3 = math.fma %x, %log2e, %two : !tile
  %p3 = math.exp %e3 : !tile
  return %p0, %p1, %e2, %p2, %p3 : !tile, !tile, !tile, !tile, !tile
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
