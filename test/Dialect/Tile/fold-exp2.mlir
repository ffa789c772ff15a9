// RUN: attn-opt %s --tile-fold-exp2 | FileCheck %s
// RUN: attn-opt %s --tile-fold-exp2 --remarks-filter=.* --remark-policy=all -o /dev/null 2>&1 | FileCheck %s --check-prefix=REMARK

!tile = vector<16x32xf32>
!mask = vector<16x32xi1>
!row = vector<16x1xf32>

// CHECK-LABEL: func.func @scale_moves_into_the_softmax
// CHECK-SAME: %[[S:[a-z0-9]+]]: vector<16x32xf32>
func.func @scale_moves_into_the_softmax(%s: !tile, %m: !row, %l: !row) -> !tile {
  %c = arith.constant dense<0.125> : !tile
  // CHECK-NOT: arith.mulf
  %x = arith.mulf %s, %c : !tile
  // CHECK: tile.online_softmax %[[S]], %{{.*}}, %{{.*}} {exp2, scale = 1.250000e-01 : f32}
  %p, %m1, %l1, %c1 = tile.online_softmax %x, %m, %l : !tile, !row
  return %p : !tile
}

// CHECK-LABEL: func.func @scale_passes_the_mask
// CHECK-SAME: %[[S:[a-z0-9]+]]: vector<16x32xf32>, %[[MASK:[a-z0-9]+]]: vector<16x32xi1>
func.func @scale_passes_the_mask(%s: !tile, %mask: !mask, %m: !row, %l: !row) -> !tile {
  %c = arith.constant dense<0.125> : !tile
  %hidden = arith.constant dense<0xFF800000> : !tile
  // CHECK-NOT: arith.mulf
  %x = arith.mulf %c, %s : !tile
  // CHECK: %[[X:.*]] = arith.select %[[MASK]], %[[S]], %{{.*}}
  %y = arith.select %mask, %x, %hidden : !mask, !tile
  // CHECK: tile.online_softmax %[[X]], %{{.*}}, %{{.*}} {exp2, guard, scale = 1.250000e-01 : f32}
  %p, %m1, %l1, %c1 = tile.online_softmax %y, %m, %l {guard} : !tile, !row
  return %p : !tile
}

// The cap of a softcap is such a factor; the scale below tanh is not. Scores
// within a cap are known to be small.
// REMARK: one fma per score", bound=5.0000{{[0-9]+}}e+01
// CHECK-LABEL: func.func @last_factor_of_a_score
func.func @last_factor_of_a_score(%s: !tile, %m: !row, %l: !row) -> !tile {
  %inner = arith.constant dense<0.0025> : !tile
  %cap = arith.constant dense<50.0> : !tile
  // CHECK: %[[X:.*]] = arith.mulf
  %x = arith.mulf %s, %inner : !tile
  // CHECK: %[[T:.*]] = math.tanh %[[X]]
  %t = math.tanh %x : !tile
  // CHECK-NOT: arith.mulf
  %y = arith.mulf %t, %cap : !tile
  // CHECK: tile.online_softmax %[[T]], %{{.*}}, %{{.*}} {bounded, exp2, scale = 5.000000e+01 : f32}
  %p, %m1, %l1, %c1 = tile.online_softmax %y, %m, %l : !tile, !row
  return %p : !tile
}

// The factor stays with the scores; product and sum are one operation.
// CHECK-LABEL: func.func @bias_after_the_scale
// CHECK-SAME: %[[S:[a-z0-9]+]]: vector<16x32xf32>, %[[BIAS:[a-z0-9]+]]: vector<16x32xf32>
func.func @bias_after_the_scale(%s: !tile, %bias: !tile, %m: !row, %l: !row) -> !tile {
  // CHECK: %[[C:.*]] = arith.constant dense<1.250000e-01>
  %c = arith.constant dense<0.125> : !tile
  %x = arith.mulf %s, %c : !tile
  // CHECK: %[[Y:.*]] = math.fma %[[S]], %[[C]], %[[BIAS]]
  // CHECK-NOT: arith
  %y = arith.addf %x, %bias : !tile
  // CHECK: tile.online_softmax %[[Y]], %{{.*}}, %{{.*}} {exp2} :
  %p, %m1, %l1, %c1 = tile.online_softmax %y, %m, %l : !tile, !row
  return %p : !tile
}

// The maximum of negatively scaled scores is not the scaled maximum.
// CHECK-LABEL: func.func @negative_factor_stays
func.func @negative_factor_stays(%s: !tile, %m: !row, %l: !row) -> !tile {
  %c = arith.constant dense<-0.125> : !tile
  // CHECK: arith.mulf
  %x = arith.mulf %s, %c : !tile
  // CHECK: tile.online_softmax %{{.*}} {exp2} :
  %p, %m1, %l1, %c1 = tile.online_softmax %x, %m, %l : !tile, !row
  return %p : !tile
}

// CHECK-LABEL: func.func @mask_with_a_finite_value_stays
func.func @mask_with_a_finite_value_stays(%s: !tile, %mask: !mask, %m: !row, %l: !row) -> !tile {
  %c = arith.constant dense<0.125> : !tile
  %hidden = arith.constant dense<-1.0e4> : !tile
  // CHECK: arith.mulf
  %x = arith.mulf %s, %c : !tile
  %y = arith.select %mask, %x, %hidden : !mask, !tile
  // CHECK: tile.online_softmax %{{.*}} {exp2} :
  %p, %m1, %l1, %c1 = tile.online_softmax %y, %m, %l : !tile, !row
  return %p : !tile
}

// CHECK-LABEL: func.func @product_of_two_tiles_stays
func.func @product_of_two_tiles_stays(%s: !tile, %t: !tile, %m: !row, %l: !row) -> !tile {
  // CHECK: arith.mulf
  %x = arith.mulf %s, %t : !tile
  // CHECK: tile.online_softmax %{{.*}} {exp2} :
  %p, %m1, %l1, %c1 = tile.online_softmax %x, %m, %l : !tile, !row
  return %p : !tile
}

// CHECK-LABEL: func.func @exact_is_not_touched
func.func @exact_is_not_touched(%s: !tile, %m: !row, %l: !row) -> !tile {
  %c = arith.constant dense<0.125> : !tile
  // CHECK: arith.mulf
  %x = arith.mulf %s, %c : !tile
  // CHECK: tile.online_softmax %{{.*}} {exact} :
  %p, %m1, %l1, %c1 = tile.online_softmax %x, %m, %l {exact} : !tile, !row
  return %p : !tile
}

// A softcap: two factors below tanh become one, the one above moves.
// CHECK-LABEL: func.func @factors_merge
// CHECK-SAME: %[[S:[a-z0-9]+]]: vector<16x32xf32>
func.func @factors_merge(%s: !tile, %m: !row, %l: !row) -> !tile {
  // CHECK: %[[F:.*]] = arith.constant dense<6.250000e-02> : vector<16x32xf32>
  %scale = arith.constant dense<0.125> : !tile
  %inverse = arith.constant dense<0.5> : !tile
  %cap = arith.constant dense<2.0> : !tile
  // CHECK: %[[X:.*]] = arith.mulf %[[S]], %[[F]]
  %x = arith.mulf %s, %scale : !tile
  // CHECK-NOT: arith.mulf
  %y = arith.mulf %x, %inverse : !tile
  // CHECK: %[[T:.*]] = math.tanh %[[X]]
  %t = math.tanh %y : !tile
  %z = arith.mulf %t, %cap : !tile
  // CHECK: tile.online_softmax %[[T]], %{{.*}}, %{{.*}} {bounded, exp2, scale = 2.000000e+00 : f32}
  %p, %m1, %l1, %c1 = tile.online_softmax %z, %m, %l : !tile, !row
  return %p : !tile
}

// CHECK-LABEL: func.func @factors_with_another_use_stay
func.func @factors_with_another_use_stay(%s: !tile, %m: !row, %l: !row) -> !tile {
  %a = arith.constant dense<0.125> : !tile
  %b = arith.constant dense<0.5> : !tile
  // CHECK: arith.mulf
  %x = arith.mulf %s, %a : !tile
  // CHECK: arith.mulf
  %y = arith.mulf %x, %b : !tile
  %t = math.tanh %y : !tile
  %z = arith.addf %t, %x : !tile
  %p, %m1, %l1, %c1 = tile.online_softmax %z, %m, %l : !tile, !row
  return %p : !tile
}

// ALiBi: what is added is an integer times a slope: one fma with these two.
// CHECK-LABEL: func.func @distance_times_slope
// CHECK-SAME: %[[S:[a-z0-9]+]]: vector<16x32xf32>, %[[D:[a-z0-9]+]]: vector<16x32xi32>, %[[SLOPE:[a-z0-9]+]]: f32
func.func @distance_times_slope(%s: !tile, %d: vector<16x32xi32>, %slope: f32, %m: !row, %l: !row) -> !tile {
  // CHECK: %[[RATE:.*]] = arith.negf %[[SLOPE]] : f32
  %c = arith.constant dense<0.125> : !tile
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %r = scf.for %i = %c0 to %c1 step %c1 iter_args(%o = %s) -> !tile {
    %x = arith.mulf %s, %c : !tile
    // CHECK: scf.for
    // CHECK: %[[X:.*]] = arith.mulf %[[S]]
    // CHECK: %[[F:.*]] = arith.sitofp %[[D]]
    %f = arith.sitofp %d : vector<16x32xi32> to !tile
    %slopes = vector.broadcast %slope : f32 to !tile
    %b = arith.mulf %slopes, %f : !tile
    // CHECK: %[[RATES:.*]] = vector.broadcast %[[RATE]]
    // CHECK: %[[Y:.*]] = math.fma %[[F]], %[[RATES]], %[[X]]
    // CHECK-NOT: arith.{{mulf|subf}}
    %y = arith.subf %x, %b : !tile
    // CHECK: tile.online_softmax %[[Y]], %{{.*}}, %{{.*}} {exp2} :
    %p, %m1, %l1, %c2 = tile.online_softmax %y, %m, %l : !tile, !row
    scf.yield %p : !tile
  }
  return %r : !tile
}

// What is no position, and not there for all scores alike, stays outside.
// CHECK-LABEL: func.func @float_times_slope
func.func @float_times_slope(%s: !tile, %f: !tile, %slope: f32, %m: !row, %l: !row) -> !tile {
  %c = arith.constant dense<0.125> : !tile
  %x = arith.mulf %s, %c : !tile
  %slopes = vector.broadcast %slope : f32 to !tile
  // CHECK: %[[B:.*]] = arith.mulf
  %b = arith.mulf %slopes, %f : !tile
  // CHECK: %[[Y:.*]] = math.fma %{{.*}}, %{{.*}}, %[[B]]
  %y = arith.addf %x, %b : !tile
  // CHECK: tile.online_softmax %[[Y]], %{{.*}}, %{{.*}} {exp2} :
  %p, %m1, %l1, %c2 = tile.online_softmax %y, %m, %l : !tile, !row
  return %p : !tile
}

// What bounds scores, and what does not: a clamp does, at both ends; a sum is as
// small as its parts; a hidden key counts for nothing; positions may be large.
// CHECK-LABEL: func.func @bounds
// CHECK-SAME: %[[S:[a-z0-9]+]]: vector<16x32xf32>
func.func @bounds(%s: !tile, %mask: !mask, %i: vector<16x32xi32>, %m: !row, %l: !row) {
  %lo = arith.constant dense<-40.0> : !tile
  %hi = arith.constant dense<60.0> : !tile
  %large = arith.constant dense<400.0> : !tile
  %hidden = arith.constant dense<0xFF800000> : !tile
  %a = arith.maximumf %s, %lo : !tile
  // REMARK: scores are not known to be at most 512
  // CHECK: tile.online_softmax %{{.*}} {exp2} :
  %p0:4 = tile.online_softmax %a, %m, %l : !tile, !row
  %b = arith.minimumf %a, %hi : !tile
  // REMARK: bound=6.0000{{[0-9]+}}e+01
  // CHECK: tile.online_softmax %{{.*}} {bounded, exp2} :
  %p1:4 = tile.online_softmax %b, %m, %l : !tile, !row
  %c = arith.addf %b, %large : !tile
  // REMARK: bound=4.60{{[0-9]+}}e+02
  // CHECK: tile.online_softmax %{{.*}} {bounded, exp2} :
  %p2:4 = tile.online_softmax %c, %m, %l : !tile, !row
  %d = arith.select %mask, %c, %hidden : !mask, !tile
  // CHECK: tile.online_softmax %{{.*}} {bounded, exp2} :
  %p3:4 = tile.online_softmax %d, %m, %l : !tile, !row
  %e = arith.addf %c, %large : !tile
  // CHECK: tile.online_softmax %{{.*}} {exp2} :
  %p4:4 = tile.online_softmax %e, %m, %l : !tile, !row
  %f = arith.sitofp %i : vector<16x32xi32> to !tile
  // CHECK: tile.online_softmax %{{.*}} {exp2} :
  %p5:4 = tile.online_softmax %f, %m, %l : !tile, !row
  // The -inf of one operand may become the largest one.
  %g = arith.maximumf %d, %f : !tile
  // CHECK: tile.online_softmax %{{.*}} {exp2} :
  %p6:4 = tile.online_softmax %g, %m, %l : !tile, !row
  return
}

// An integer and a choice are made of products and sums: what leads there keeps
// every rounding, and all the rest is put together as ever.
// CHECK-LABEL: func.func @decisions_stay_as_written
// CHECK-SAME: %[[S:[a-z0-9]+]]: vector<16x32xf32>, %[[R:[a-z0-9]+]]: vector<16x32xf32>
func.func @decisions_stay_as_written(%s: !tile, %r: !tile, %table: memref<?xf32>, %m: !row, %l: !row) -> !tile {
  // CHECK-DAG: %[[A:.*]] = arith.constant dense<0.024390{{[0-9]*}}> : vector<16x32xf32>
  // CHECK-DAG: %[[B:.*]] = arith.constant dense<4.100000e+01> : vector<16x32xf32>
  // CHECK-DAG: %[[START:.*]] = arith.constant dense<3.000000e-01> : vector<16x32xf32>
  %a = arith.constant dense<0.024390243902439025> : !tile
  %b = arith.constant dense<41.0> : !tile
  %start = arith.constant dense<0.3> : !tile
  // CHECK: %[[SHARE:.*]] = arith.mulf %[[R]], %[[A]]
  // CHECK: %[[BACK:.*]] = arith.mulf %[[SHARE]], %[[B]]
  // CHECK: %[[MOVED:.*]] = arith.addf %[[BACK]], %[[START]]
  // CHECK: %[[FLOOR:.*]] = math.floor %[[MOVED]]
  // CHECK: arith.fptosi %[[FLOOR]]
  %share = arith.mulf %r, %a : !tile
  %back = arith.mulf %share, %b : !tile
  %moved = arith.addf %back, %start : !tile
  %floor = math.floor %moved : !tile
  %bucket = arith.fptosi %floor : !tile to vector<16x32xi32>
  %bias = tile.gather %table[%bucket] : memref<?xf32>, (vector<16x32xi32>) -> !tile
  // CHECK: %[[SHARE:.*]] = arith.mulf %[[S]], %[[A]]
  // CHECK: %[[BACK:.*]] = arith.mulf %[[SHARE]], %[[B]]
  // CHECK: %[[LESS:.*]] = arith.cmpf olt, %[[BACK]], %[[R]]
  %scaled = arith.mulf %s, %a : !tile
  %twice = arith.mulf %scaled, %b : !tile
  %less = arith.cmpf olt, %twice, %r : !tile
  // CHECK-NOT: arith.mulf
  // CHECK: %[[AB:.*]] = arith.constant dense<{{(1.0|0.99999).*}}> : vector<16x32xf32>
  // CHECK: math.fma %[[S]], %[[AB]]
  %first = arith.mulf %s, %a : !tile
  %second = arith.mulf %first, %b : !tile
  %sum = arith.addf %second, %bias : !tile
  %chosen = arith.select %less, %sum, %bias : !mask, !tile
  %p, %m1, %l1, %c1 = tile.online_softmax %chosen, %m, %l : !tile, !row
  return %p : !tile
}
