// RUN: attn-opt %s --tile-lazy-max | FileCheck %s
// RUN: attn-opt %s --tile-lazy-max --remarks-filter-missed=.* --remark-policy=all -o /dev/null 2>&1 | FileCheck %s --check-prefix=REMARK

!s = vector<16x32xf32>
!o = vector<16x8xf32>
!row = vector<16x1xf32>

// The weights with the old maximum; with the true one if a row sum is too
// large, or not a number, or the maximum of any row itself large: steps that are
// done once more look at it for the next one, and the first is looked at before
// the loop.
// CHECK-LABEL: func.func @lazy
// CHECK-SAME: %[[S:[a-z0-9]+]]: vector<16x32xf32>
// CHECK-SAME: %[[M0:[a-z0-9]+]]: vector<16x1xf32>, %[[L0:[a-z0-9]+]]: vector<16x1xf32>
// CHECK: %[[SIZE0:.*]] = math.absf %[[M0]]
// CHECK: %[[FAR0:.*]] = arith.cmpf uge, %[[SIZE0]]
// CHECK: %[[ANY0:.*]] = vector.multi_reduction <or>, %[[FAR0]], %{{.*}} [0, 1] : vector<16x1xi1> to i1
// CHECK: scf.for {{.*}} iter_args(%[[O:.*]] = %{{.*}}, %[[M:.*]] = %[[M0]], %[[L:.*]] = %[[L0]], %[[ANY:.*]] = %[[ANY0]]) ->
// CHECK: %[[LOG2E:.*]] = arith.constant dense<-1.44269502> : vector<16x1xf32>
// CHECK: %[[REF:.*]] = arith.mulf %[[M]], %[[LOG2E]]
// CHECK: %[[OFFSET:.*]] = vector.broadcast %[[REF]]
// CHECK: %[[F:.*]] = arith.constant dense<0.72134751> : vector<16x32xf32>
// CHECK: %[[X:.*]] = math.fma %[[S]], %[[F]], %[[OFFSET]]
// CHECK: %[[P:.*]] = math.exp2 %[[X]]
// CHECK: %[[SUM:.*]] = vector.multi_reduction <add>, %[[P]]
// CHECK: %[[SUMS:.*]] = vector.shape_cast %[[SUM]]
// CHECK: %[[L1:.*]] = arith.addf %[[L]], %[[SUMS]]
// CHECK: %[[LIMIT:.*]] = arith.constant dense<1.84467441E+19>
// CHECK: %[[LARGE:.*]] = arith.cmpf uge, %[[SUMS]], %[[LIMIT]]
// CHECK: %[[NO:.*]] = arith.constant false
// CHECK: %[[VOTE:.*]] = vector.multi_reduction <or>, %[[LARGE]], %[[NO]] [0, 1] : vector<16x1xi1> to i1
// CHECK: %[[REDO:.*]] = arith.ori %[[VOTE]], %[[ANY]]
// CHECK: %[[R:.*]]:5 = scf.if %[[REDO]]
// CHECK: %[[P2:.*]], %[[M2:.*]], %[[L2:.*]], %[[C:.*]] = tile.online_softmax %[[S]], %[[M]], %[[L]] {exp2, guard, scale = 5.000000e-01 : f32}
// CHECK: %[[SIZE:.*]] = math.absf %[[M2]]
// CHECK: %[[FAR:.*]] = arith.cmpf uge, %[[SIZE]]
// CHECK: %[[NEXT:.*]] = vector.multi_reduction <or>, %[[FAR]]
// CHECK: scf.yield %[[P2]], %[[M2]], %[[L2]], %[[C]], %[[NEXT]]
// CHECK: } else {
// CHECK: %[[ONE:.*]] = arith.constant dense<1.000000e+00>
// CHECK: scf.yield %[[P]], %[[M]], %[[L1]], %[[ONE]], %[[NO]]
// CHECK: %[[OR:.*]] = scf.if %[[REDO]]
// CHECK: %[[CB:.*]] = vector.broadcast %[[R]]#3
// CHECK: %[[O2:.*]] = arith.mulf %[[O]], %[[CB]]
// CHECK: scf.yield %[[O2]]
// CHECK: } else {
// CHECK: scf.yield %[[O]]
// CHECK: arith.addf %[[OR]]
// CHECK: scf.yield %{{.*}}, %[[R]]#1, %[[R]]#2, %[[R]]#4
func.func @lazy(%s: !s, %o0: !o, %m0: !row, %l0: !row, %pv: !o, %n: index) -> !o {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %r:3 = scf.for %i = %c0 to %n step %c1 iter_args(%o = %o0, %m = %m0, %l = %l0) -> (!o, !row, !row) {
    %p, %m1, %l1, %c = tile.online_softmax %s, %m, %l {exp2, scale = 0.5 : f32} : !s, !row
    %cb = vector.broadcast %c : !row to !o
    %os = arith.mulf %o, %cb : !o
    %o1 = arith.addf %os, %pv : !o
    scf.yield %o1, %m1, %l1 : !o, !row, !row
  }
  return %r#0 : !o
}

// Weights that become f16 must stay below its largest number; they are rounded
// on both ways.
// CHECK-LABEL: func.func @f16_weights
// CHECK: scf.for
// CHECK: %[[P:.*]] = math.exp2
// CHECK: %[[SUMS:.*]] = vector.shape_cast
// CHECK: %[[LIMIT:.*]] = arith.constant dense<3.276800e+04> : vector<16x1xf32>
// CHECK: arith.cmpf uge, %[[SUMS]], %[[LIMIT]]
// CHECK: %[[P16:.*]] = arith.truncf %[[P]] : vector<16x32xf32> to vector<16x32xf16>
// CHECK: %[[R:.*]]:5 = scf.if %{{.*}} -> (vector<16x32xf16>,
// CHECK: %[[Q:.*]], %{{.*}}, %{{.*}}, %{{.*}} = tile.online_softmax
// CHECK: arith.truncf %[[Q]]
// CHECK: } else {
// CHECK: scf.yield %[[P16]]
// CHECK: tile.store %[[R]]#0
func.func @f16_weights(%s: !s, %o0: !o, %m0: !row, %l0: !row, %out: memref<?x32xf16>, %n: index) -> !o {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %r:3 = scf.for %i = %c0 to %n step %c1 iter_args(%o = %o0, %m = %m0, %l = %l0) -> (!o, !row, !row) {
    %p, %m1, %l1, %c = tile.online_softmax %s, %m, %l {exp2} : !s, !row
    %p16 = arith.truncf %p : !s to vector<16x32xf16>
    tile.store %p16, %out[%i, %c0] : vector<16x32xf16>, memref<?x32xf16>
    %cb = vector.broadcast %c : !row to !o
    %os = arith.mulf %o, %cb : !o
    scf.yield %os, %m1, %l1 : !o, !row, !row
  }
  return %r#0 : !o
}

// REMARK: lazy-max{{.*}}the exponential is not an exp2
// CHECK-LABEL: func.func @exact
// CHECK-NOT: scf.if
// CHECK: return
func.func @exact(%s: !s, %o0: !o, %m0: !row, %l0: !row, %n: index) -> !o {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %r:3 = scf.for %i = %c0 to %n step %c1 iter_args(%o = %o0, %m = %m0, %l = %l0) -> (!o, !row, !row) {
    %p, %m1, %l1, %c = tile.online_softmax %s, %m, %l {exact} : !s, !row
    %cb = vector.broadcast %c : !row to !o
    %os = arith.mulf %o, %cb : !o
    scf.yield %os, %m1, %l1 : !o, !row, !row
  }
  return %r#0 : !o
}

// REMARK: lazy-max{{.*}}the correction does not only rescale the output
// CHECK-LABEL: func.func @correction_is_used
// CHECK-NOT: scf.if
// CHECK: return
func.func @correction_is_used(%s: !s, %m0: !row, %l0: !row, %n: index) -> !row {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %r:2 = scf.for %i = %c0 to %n step %c1 iter_args(%m = %m0, %l = %l0) -> (!row, !row) {
    %p, %m1, %l1, %c = tile.online_softmax %s, %m, %l {exp2} : !s, !row
    scf.yield %c, %l1 : !row, !row
  }
  return %r#0 : !row
}

// REMARK: lazy-max{{.*}}the output is computed after the softmax
// CHECK-LABEL: func.func @output_comes_later
// CHECK-NOT: scf.if
// CHECK: return
func.func @output_comes_later(%s: !s, %o0: !o, %m0: !row, %l0: !row, %n: index) -> !o {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %r:3 = scf.for %i = %c0 to %n step %c1 iter_args(%o = %o0, %m = %m0, %l = %l0) -> (!o, !row, !row) {
    %p, %m1, %l1, %c = tile.online_softmax %s, %m, %l {exp2} : !s, !row
    %later = arith.negf %o : !o
    %cb = vector.broadcast %c : !row to !o
    %os = arith.mulf %later, %cb : !o
    scf.yield %os, %m1, %l1 : !o, !row, !row
  }
  return %r#0 : !o
}

// The first block, before the loops, has no maximum to keep.
// CHECK-LABEL: func.func @first_block_is_untouched
// CHECK-NOT: scf.if
// CHECK: return
func.func @first_block_is_untouched(%s: !s, %o: !o, %m: !row, %l: !row) -> !o {
  %p, %m1, %l1, %c = tile.online_softmax %s, %m, %l {exp2} : !s, !row
  %cb = vector.broadcast %c : !row to !o
  %os = arith.mulf %o, %cb : !o
  return %os : !o
}

// A rate times a position is no part of the scores but of the reference; what is
// done once more needs the scores.
// CHECK-LABEL: func.func @bias
// CHECK-SAME: %[[S:[a-z0-9]+]]: vector<16x32xf32>, %[[I:[a-z0-9]+]]: vector<16x32xi32>, %[[R:[a-z0-9]+]]: f32
// CHECK: scf.for
// CHECK: %[[N:.*]] = arith.sitofp %[[I]]
// CHECK: %[[RATE:.*]] = vector.broadcast %[[R]]
// CHECK: %[[OFFSET:.*]] = vector.broadcast %{{.*}} : vector<16x1xf32> to vector<16x32xf32>
// CHECK: %[[F:.*]] = arith.constant dense<0.72134751> : vector<16x32xf32>
// CHECK: %[[C:.*]] = arith.constant 0.72134751 : f32
// CHECK: %[[RC:.*]] = arith.mulf %[[R]], %[[C]] : f32
// CHECK: %[[SCALED:.*]] = vector.broadcast %[[RC]]
// CHECK: %[[REF:.*]] = math.fma %[[N]], %[[SCALED]], %[[OFFSET]] fastmath<reassoc>
// CHECK: %[[X:.*]] = math.fma %[[S]], %[[F]], %[[REF]] :
// CHECK: math.exp2 %[[X]]
// CHECK: scf.if
// CHECK: %[[BIASED:.*]] = math.fma %[[RATE]], %[[N]], %[[S]] :
// CHECK: tile.online_softmax %[[BIASED]]
func.func @bias(%s: !s, %i: vector<16x32xi32>, %r: f32, %o0: !o, %m0: !row, %l0: !row, %n: index) -> !o {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %a:3 = scf.for %k = %c0 to %n step %c1 iter_args(%o = %o0, %m = %m0, %l = %l0) -> (!o, !row, !row) {
    %f = arith.sitofp %i : vector<16x32xi32> to !s
    %rate = vector.broadcast %r : f32 to !s
    %x = math.fma %rate, %f, %s : !s
    %p, %m1, %l1, %c = tile.online_softmax %x, %m, %l {exp2, scale = 0.5 : f32} : !s, !row
    %cb = vector.broadcast %c : !row to !o
    %os = arith.mulf %o, %cb : !o
    scf.yield %os, %m1, %l1 : !o, !row, !row
  }
  return %a#0 : !o
}

// A rate that changes in the loop stays where it is.
// CHECK-LABEL: func.func @rate_of_the_loop
// CHECK-COUNT-2: math.fma
// CHECK-NOT: reassoc
// CHECK: return
func.func @rate_of_the_loop(%s: !s, %i: vector<16x32xi32>, %r: f32, %o0: !o, %m0: !row, %l0: !row, %n: index) -> !o {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %a:3 = scf.for %k = %c0 to %n step %c1 iter_args(%o = %o0, %m = %m0, %l = %l0) -> (!o, !row, !row) {
    %f = arith.sitofp %i : vector<16x32xi32> to !s
    %k32 = arith.index_cast %k : index to i32
    %kf = arith.sitofp %k32 : i32 to f32
    %rate = vector.broadcast %kf : f32 to !s
    %x = math.fma %rate, %f, %s : !s
    %p, %m1, %l1, %c = tile.online_softmax %x, %m, %l {exp2, scale = 0.5 : f32} : !s, !row
    %cb = vector.broadcast %c : !row to !o
    %os = arith.mulf %o, %cb : !o
    scf.yield %os, %m1, %l1 : !o, !row, !row
  }
  return %a#0 : !o
}

// The factor of the scores goes into the one of the exponent; where the scores
// are wanted, they get it.
// CHECK-LABEL: func.func @scaled_bias
// CHECK-SAME: %[[S:[a-z0-9]+]]: vector<16x32xf32>
// CHECK: scf.for
// CHECK: arith.constant dense<0.72134751> : vector<16x32xf32>
// CHECK: arith.constant 1.44269502 : f32
// CHECK: %[[X:.*]] = math.fma %[[S]], %{{.*}}, %{{.*}} :
// CHECK: math.exp2 %[[X]]
// CHECK: scf.if
// CHECK: %[[SCALED:.*]] = arith.mulf %[[S]]
// CHECK: %[[BIASED:.*]] = math.fma %{{.*}}, %{{.*}}, %[[SCALED]] :
// CHECK: tile.online_softmax %[[BIASED]]
func.func @scaled_bias(%s: !s, %i: vector<16x32xi32>, %r: f32, %o0: !o, %m0: !row, %l0: !row, %n: index) -> !o {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %scale = arith.constant dense<0.5> : !s
  %a:3 = scf.for %k = %c0 to %n step %c1 iter_args(%o = %o0, %m = %m0, %l = %l0) -> (!o, !row, !row) {
    %f = arith.sitofp %i : vector<16x32xi32> to !s
    %rate = vector.broadcast %r : f32 to !s
    %y = arith.mulf %s, %scale : !s
    %x = math.fma %f, %rate, %y : !s
    %p, %m1, %l1, %c = tile.online_softmax %x, %m, %l {exp2} : !s, !row
    %cb = vector.broadcast %c : !row to !o
    %os = arith.mulf %o, %cb : !o
    scf.yield %os, %m1, %l1 : !o, !row, !row
  }
  return %a#0 : !o
}

// A bias that is one number for all keys of a loop goes into the reference of
// the rows: one multiply-add per score, as without a bias.
// CHECK-LABEL: func.func @row_bias
// CHECK-SAME: %[[S:[a-z0-9]+]]: vector<16x32xf32>, %[[R:[a-z0-9]+]]: f32
// CHECK: scf.for
// CHECK: %[[BIAS:.*]] = vector.broadcast %[[R]] : f32 to vector<16x32xf32>
// CHECK: %[[M:.*]] = arith.mulf %{{.*}}, %{{.*}} : vector<16x1xf32>
// CHECK: %[[C:.*]] = arith.constant 1.44269502 : f32
// CHECK: %[[RC:.*]] = arith.mulf %[[R]], %[[C]] : f32
// CHECK: %[[RATE:.*]] = vector.broadcast %[[RC]] : f32 to vector<16x1xf32>
// CHECK: %[[SUM:.*]] = arith.addf %[[M]], %[[RATE]] : vector<16x1xf32>
// CHECK: %[[REF:.*]] = vector.broadcast %[[SUM]] : vector<16x1xf32> to vector<16x32xf32>
// CHECK: %[[F:.*]] = arith.constant dense<0.18033{{[0-9]*}}> : vector<16x32xf32>
// CHECK: %[[X:.*]] = math.fma %[[S]], %[[F]], %[[REF]] :
// CHECK: math.exp2 %[[X]]
// CHECK: scf.if
// CHECK: %[[BIASED:.*]] = math.fma %[[S]], %{{.*}}, %[[BIAS]] :
// CHECK: tile.online_softmax %[[BIASED]]
func.func @row_bias(%s: !s, %r: f32, %o0: !o, %m0: !row, %l0: !row, %n: index) -> !o {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %scale = arith.constant dense<0.125> : !s
  %a:3 = scf.for %k = %c0 to %n step %c1 iter_args(%o = %o0, %m = %m0, %l = %l0) -> (!o, !row, !row) {
    %bias = vector.broadcast %r : f32 to !s
    %x = math.fma %s, %scale, %bias : !s
    %p, %m1, %l1, %c = tile.online_softmax %x, %m, %l {exp2} : !s, !row
    %cb = vector.broadcast %c : !row to !o
    %os = arith.mulf %o, %cb : !o
    scf.yield %os, %m1, %l1 : !o, !row, !row
  }
  return %a#0 : !o
}

// One that differs from key to key does not.
// CHECK-LABEL: func.func @key_bias
// CHECK: math.fma
// CHECK: math.fma
// CHECK: math.exp2
func.func @key_bias(%s: !s, %r: vector<1x32xf32>, %o0: !o, %m0: !row, %l0: !row, %n: index) -> !o {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %scale = arith.constant dense<0.125> : !s
  %a:3 = scf.for %k = %c0 to %n step %c1 iter_args(%o = %o0, %m = %m0, %l = %l0) -> (!o, !row, !row) {
    %bias = vector.broadcast %r : vector<1x32xf32> to !s
    %x = math.fma %s, %scale, %bias : !s
    %p, %m1, %l1, %c = tile.online_softmax %x, %m, %l {exp2} : !s, !row
    %cb = vector.broadcast %c : !row to !o
    %os = arith.mulf %o, %cb : !o
    scf.yield %os, %m1, %l1 : !o, !row, !row
  }
  return %a#0 : !o
}

// A distance as it is makes large maxima: the reference is subtracted first, and
// no step is done once more because it is large.
// CHECK-LABEL: func.func @distance
// CHECK-SAME: %[[S:[a-z0-9]+]]: vector<16x32xf32>
// CHECK-NOT: math.absf
// CHECK: scf.for {{.*}} iter_args(%{{.*}} = %{{.*}}, %[[M:.*]] = %{{.*}}, %{{.*}} = %{{.*}}) ->
// CHECK: %[[D:.*]] = arith.sitofp
// CHECK: %[[Y:.*]] = math.fma %[[S]], %{{.*}}, %[[D]]
// CHECK: %[[REF:.*]] = vector.broadcast %[[M]] : vector<16x1xf32> to vector<16x32xf32>
// CHECK: %[[BELOW:.*]] = arith.subf %[[Y]], %[[REF]]
// CHECK: %[[F:.*]] = arith.constant dense<1.44269502> : vector<16x32xf32>
// CHECK: %[[X:.*]] = arith.mulf %[[BELOW]], %[[F]]
// CHECK: math.exp2 %[[X]]
// CHECK: %[[LARGE:.*]] = arith.cmpf uge
// CHECK: %[[VOTE:.*]] = vector.multi_reduction <or>, %[[LARGE]]
// CHECK-NOT: arith.ori
// CHECK: scf.if %[[VOTE]]
// CHECK: tile.online_softmax %[[Y]], %[[M]], %{{.*}} {exp2, guard}
// CHECK-NOT: math.absf
// CHECK: return
func.func @distance(%s: !s, %d: vector<16x32xi32>, %o0: !o, %m0: !row, %l0: !row, %n: index) -> !o {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %scale = arith.constant dense<0.125> : !s
  %a:3 = scf.for %k = %c0 to %n step %c1 iter_args(%o = %o0, %m = %m0, %l = %l0) -> (!o, !row, !row) {
    %f = arith.sitofp %d : vector<16x32xi32> to !s
    %x = math.fma %s, %scale, %f : !s
    %p, %m1, %l1, %c = tile.online_softmax %x, %m, %l {exp2} : !s, !row
    %cb = vector.broadcast %c : !row to !o
    %os = arith.mulf %o, %cb : !o
    scf.yield %os, %m1, %l1 : !o, !row, !row
  }
  return %a#0 : !o
}

// So does a key's position times a rate, of what a mask shows.
// CHECK-LABEL: func.func @position_of_keys
// CHECK-NOT: math.absf
// CHECK: %[[SHOWN:.*]] = arith.select
// CHECK: arith.subf %[[SHOWN]], %{{.*}} : vector<16x32xf32>
// CHECK-NOT: math.absf
// CHECK: return
func.func @position_of_keys(%s: !s, %j: vector<1x32xi32>, %rate: vector<1x32xf32>, %mask: vector<16x32xi1>,
                            %o0: !o, %m0: !row, %l0: !row, %n: index) -> !o {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %none = arith.constant dense<0xFF800000> : !s
  %a:3 = scf.for %k = %c0 to %n step %c1 iter_args(%o = %o0, %m = %m0, %l = %l0) -> (!o, !row, !row) {
    %f = arith.sitofp %j : vector<1x32xi32> to vector<1x32xf32>
    %t = arith.mulf %f, %rate : vector<1x32xf32>
    %b = vector.broadcast %t : vector<1x32xf32> to !s
    %y = arith.addf %s, %b : !s
    %x = arith.select %mask, %y, %none : vector<16x32xi1>, !s
    %p, %m1, %l1, %c = tile.online_softmax %x, %m, %l {exp2} : !s, !row
    %cb = vector.broadcast %c : !row to !o
    %os = arith.mulf %o, %cb : !o
    scf.yield %os, %m1, %l1 : !o, !row, !row
  }
  return %a#0 : !o
}

// Scores that are known to be small have no large maxima.
// CHECK-LABEL: func.func @bounded
// CHECK: scf.for
// CHECK: %[[SUMS:.*]] = vector.shape_cast
// CHECK: arith.cmpf uge, %[[SUMS]]
// CHECK-NOT: math.absf
// CHECK: tile.online_softmax %{{.*}} {bounded, exp2, guard}
// CHECK-NOT: math.absf
// CHECK: return
func.func @bounded(%s: !s, %o0: !o, %m0: !row, %l0: !row, %n: index) -> !o {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %r:3 = scf.for %i = %c0 to %n step %c1 iter_args(%o = %o0, %m = %m0, %l = %l0) -> (!o, !row, !row) {
    %p, %m1, %l1, %c = tile.online_softmax %s, %m, %l {bounded, exp2} : !s, !row
    %cb = vector.broadcast %c : !row to !o
    %os = arith.mulf %o, %cb : !o
    scf.yield %os, %m1, %l1 : !o, !row, !row
  }
  return %r#0 : !o
}

// From a first step and from one loop to the next goes the maximum, which is
// looked at before each loop.
// CHECK-LABEL: func.func @loops
// CHECK: %[[P:.*]], %[[M:.*]], %[[L:.*]], %{{.*}} = tile.online_softmax
// CHECK: math.absf %[[M]]
// CHECK: %[[FIRST:.*]] = vector.multi_reduction <or>
// CHECK: %[[R:.*]]:4 = scf.for {{.*}} iter_args(%{{.*}} = %{{.*}}, %{{.*}} = %[[M]], %{{.*}} = %[[L]], %{{.*}} = %[[FIRST]])
// CHECK: math.absf %[[R]]#1
// CHECK: %[[SECOND:.*]] = vector.multi_reduction <or>
// CHECK: %[[T:.*]]:4 = scf.for {{.*}} iter_args(%{{.*}} = %[[R]]#0, %{{.*}} = %[[R]]#1, %{{.*}} = %[[R]]#2, %{{.*}} = %[[SECOND]])
// CHECK: return %[[T]]#0, %[[T]]#2
func.func @loops(%s: !s, %o0: !o, %m0: !row, %n: index) -> (!o, !row) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %l0 = arith.constant dense<0.0> : !row
  %p, %m, %l, %c = tile.online_softmax %s, %m0, %l0 {exp2} : !s, !row
  %r:3 = scf.for %i = %c0 to %n step %c1 iter_args(%o = %o0, %m1 = %m, %l1 = %l) -> (!o, !row, !row) {
    %p1, %m2, %l2, %c2 = tile.online_softmax %s, %m1, %l1 {exp2} : !s, !row
    %cb = vector.broadcast %c2 : !row to !o
    %os = arith.mulf %o, %cb : !o
    scf.yield %os, %m2, %l2 : !o, !row, !row
  }
  %t:3 = scf.for %i = %n to %n step %c1 iter_args(%o = %r#0, %m1 = %r#1, %l1 = %r#2) -> (!o, !row, !row) {
    %p1, %m2, %l2, %c2 = tile.online_softmax %s, %m1, %l1 {exp2} : !s, !row
    %cb = vector.broadcast %c2 : !row to !o
    %os = arith.mulf %o, %cb : !o
    scf.yield %os, %m2, %l2 : !o, !row, !row
  }
  return %t#0, %t#2 : !o, !row
}

// A loop that does something else with its maximum looks at it in each turn.
// CHECK-LABEL: func.func @maximum_of_the_loop
// CHECK: scf.for {{.*}} iter_args(%{{.*}} = %{{.*}}, %[[M:.*]] = %{{.*}}, %{{.*}} = %{{.*}}) ->
// CHECK: math.absf %[[M]]
// CHECK: %[[ANY:.*]] = vector.multi_reduction <or>
// CHECK: %[[REDO:.*]] = arith.ori %{{.*}}, %[[ANY]]
// CHECK: scf.if %[[REDO]]
// CHECK: tile.online_softmax
// CHECK-NOT: math.absf
// CHECK: return
func.func @maximum_of_the_loop(%s: !s, %o0: !o, %m0: !row, %l0: !row, %n: index) -> !o {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %r:3 = scf.for %i = %c0 to %n step %c1 iter_args(%o = %o0, %m = %m0, %l = %l0) -> (!o, !row, !row) {
    %p, %m1, %l1, %c = tile.online_softmax %s, %m, %l {exp2, scale = 0.5 : f32} : !s, !row
    %cb = vector.broadcast %c : !row to !o
    %os = arith.mulf %o, %cb : !o
    %m2 = arith.maxnumf %m1, %m0 : !row
    scf.yield %os, %m2, %l1 : !o, !row, !row
  }
  return %r#0 : !o
}
