// RUN: attn-opt %s --attn-expand-variants --convert-attn-to-tile --tile-peel-masks --tile-peel-scores --mlir-print-local-scope | FileCheck %s
// RUN: attn-opt %s --attn-expand-variants --convert-attn-to-tile --tile-peel-masks --tile-peel-scores --remarks-filter=tile-peel-scores --remark-policy=all -o /dev/null 2>&1 | FileCheck %s --check-prefix=REMARK

// Blocks of 16 queries and 32 keys: 16 x - j. All pairs of block n have a
// distance of at least 20 if 16 x - (32 n + 31) >= 20, and of at most -20 if
// 16 x + 15 - 32 n <= -20. The blocks at the end of the keys, which are masked,
// stay one loop.
// CHECK-LABEL: func.func @clamp(
// CHECK-DAG: %[[C16:.*]] = arith.constant 16 : index
// CHECK-DAG: %[[LO:.*]] = arith.constant 0 : index
// CHECK: tile.kernel {{.*}} grid(%{{.*}}, %{{.*}}, %[[BLOCK:.*]]) in
// CHECK-DAG: %[[ROWS:.*]] = arith.muli %[[BLOCK]], %{{.*}} : index
// CHECK-DAG: %[[BEFORE:.*]] = arith.floordivsi %[[A:.*]], %{{.*}} : index
// CHECK-DAG: %[[AFTER:.*]] = arith.ceildivsi %[[B:.*]], %{{.*}} : index
// CHECK: scf.for %{{.*}} = %[[LO]] to %[[FIRST:[a-z0-9_]+]] step
// CHECK-NOT: arith.minsi
// CHECK-NOT: arith.maxsi
// CHECK: %[[MOST:.*]] = arith.constant 40 : i32
// CHECK: tile.gather %{{.*}}[%{{.*}}, %[[MOST]]]
// CHECK: scf.for %{{.*}} = %[[FIRST]] to %[[END:[a-z0-9_]+]] step
// CHECK: arith.maxsi
// CHECK: arith.minsi
// CHECK: scf.for %{{.*}} = %[[END]] to %[[FULL:[a-z0-9_]+]] step
// CHECK-NOT: arith.minsi
// CHECK: %[[LEAST:.*]] = arith.constant 0 : i32
// CHECK: tile.gather %{{.*}}[%{{.*}}, %[[LEAST]]]
// CHECK: scf.for %{{.*}} = %[[FULL]] to %{{.*}} step
// CHECK: below(
// CHECK: arith.maxsi
// REMARK: [Passed] peel-scores | {{.*}}loops=3
func.func @clamp(%q: tensor<?x?x?x16xf32>, %k: tensor<?x?x?x16xf32>, %v: tensor<?x?x?x16xf32>,
                 %table: tensor<?x41xf32>) -> (tensor<?x?x?x16xf32>, tensor<?x?x?xf32>) {
  %o, %lse = attn.attention %q, %k, %v captures(%table) {plan = #attn.plan<target = cpu, block_q = 16, block_k = 32>}
    score(%x: f32, %b: i32, %h: i32, %i: i32, %j: i32, %t: tensor<?x41xf32>) {
      %d = arith.subi %i, %j : i32
      %c-20 = arith.constant -20 : i32
      %c20 = arith.constant 20 : i32
      %a = arith.maxsi %d, %c-20 : i32
      %c = arith.minsi %a, %c20 : i32
      %n = arith.addi %c, %c20 : i32
      %e = attn.capture_load %t[%h, %n] : tensor<?x41xf32>
      %y = arith.addf %x, %e : f32
      attn.yield %y : f32
    }
    : (tensor<?x?x?x16xf32>, tensor<?x?x?x16xf32>, tensor<?x?x?x16xf32>, tensor<?x41xf32>)
      -> (tensor<?x?x?x16xf32>, tensor<?x?x?xf32>)
  return %o, %lse : tensor<?x?x?x16xf32>, tensor<?x?x?xf32>
}

// Under a causal mask nothing is to the right of the band: two loops.
// CHECK-LABEL: func.func @causal(
// CHECK: scf.for %{{.*}} = %{{.*}} to %[[FIRST:[a-z0-9_]+]] step
// CHECK: tile.gather %{{.*}}[%{{.*}}, %c40_i32]
// CHECK: scf.for %{{.*}} = %[[FIRST]] to %[[FULL:[a-z0-9_]+]] step
// CHECK: arith.minsi
// CHECK-NOT: mask
// CHECK: scf.for %{{.*}} = %[[FULL]] to %{{.*}} step
// CHECK: mask {
// REMARK: [Passed] peel-scores | {{.*}}loops=2
func.func @causal(%q: tensor<?x?x?x16xf32>, %k: tensor<?x?x?x16xf32>, %v: tensor<?x?x?x16xf32>,
                  %table: tensor<?x41xf32>) -> (tensor<?x?x?x16xf32>, tensor<?x?x?xf32>) {
  %o, %lse = attn.attention %q, %k, %v captures(%table) {plan = #attn.plan<target = cpu, block_q = 16, block_k = 32>}
    score(%x: f32, %b: i32, %h: i32, %i: i32, %j: i32, %t: tensor<?x41xf32>) {
      %d = arith.subi %i, %j : i32
      %c-20 = arith.constant -20 : i32
      %c20 = arith.constant 20 : i32
      %a = arith.maxsi %d, %c-20 : i32
      %c = arith.minsi %a, %c20 : i32
      %n = arith.addi %c, %c20 : i32
      %e = attn.capture_load %t[%h, %n] : tensor<?x41xf32>
      %y = arith.addf %x, %e : f32
      attn.yield %y : f32
    }
    mask(%b: i32, %h: i32, %i: i32, %j: i32, %t: tensor<?x41xf32>) {
      %m = arith.cmpi sge, %i, %j : i32
      attn.yield %m : i1
    }
    : (tensor<?x?x?x16xf32>, tensor<?x?x?x16xf32>, tensor<?x?x?x16xf32>, tensor<?x41xf32>)
      -> (tensor<?x?x?x16xf32>, tensor<?x?x?xf32>)
  return %o, %lse : tensor<?x?x?x16xf32>, tensor<?x?x?xf32>
}

// The magnitude of the distance, and which side it is on: on either side three
// operations are decided. Lengths are multiples of the blocks: the only loop
// hides nothing.
// CHECK-LABEL: func.func @buckets(
// CHECK: scf.for
// CHECK: tile.scores
// CHECK-NOT: math.absi
// CHECK: tile.gather %{{.*}}[%{{.*}}, %c9_i32]
// CHECK: scf.for
// CHECK: arith.cmpi
// CHECK: math.absi
// CHECK: scf.for
// CHECK-NOT: math.absi
// CHECK: tile.gather %{{.*}}[%{{.*}}, %c19_i32]
// REMARK: [Passed] peel-scores | {{.*}}loops=3
func.func @buckets(%q: tensor<1x2x256x16xf32>, %k: tensor<1x2x256x16xf32>, %v: tensor<1x2x256x16xf32>,
                   %table: tensor<2x20xf32>) -> (tensor<1x2x256x16xf32>, tensor<1x2x256xf32>) {
  %o, %lse = attn.attention %q, %k, %v captures(%table) {plan = #attn.plan<target = cpu, block_q = 16, block_k = 32>}
    score(%x: f32, %b: i32, %h: i32, %i: i32, %j: i32, %t: tensor<2x20xf32>) {
      %d = arith.subi %i, %j : i32
      %c9 = arith.constant 9 : i32
      %c10 = arith.constant 10 : i32
      %c0 = arith.constant 0 : i32
      %right = arith.cmpi slt, %d, %c0 : i32
      %shift = arith.select %right, %c10, %c0 : i32
      %far = math.absi %d : i32
      %near = arith.minsi %far, %c9 : i32
      %n = arith.addi %near, %shift : i32
      %e = attn.capture_load %t[%h, %n] : tensor<2x20xf32>
      %y = arith.addf %x, %e : f32
      attn.yield %y : f32
    }
    : (tensor<1x2x256x16xf32>, tensor<1x2x256x16xf32>, tensor<1x2x256x16xf32>, tensor<2x20xf32>)
      -> (tensor<1x2x256x16xf32>, tensor<1x2x256xf32>)
  return %o, %lse : tensor<1x2x256x16xf32>, tensor<1x2x256xf32>
}

// Where only near pairs have a function of their own, the rest has none.
// CHECK-LABEL: func.func @near_function(
// CHECK: scf.for
// CHECK-NOT: math.tanh
// CHECK: scf.for
// CHECK: math.tanh
// CHECK: scf.for
// CHECK-NOT: math.tanh
// CHECK: return
// REMARK: [Passed] peel-scores | {{.*}}loops=3
func.func @near_function(%q: tensor<1x2x256x16xf32>, %k: tensor<1x2x256x16xf32>, %v: tensor<1x2x256x16xf32>)
    -> (tensor<1x2x256x16xf32>, tensor<1x2x256xf32>) {
  %o, %lse = attn.attention %q, %k, %v {plan = #attn.plan<target = cpu, block_q = 16, block_k = 32>}
    score(%x: f32, %b: i32, %h: i32, %i: i32, %j: i32) {
      %d = arith.subi %i, %j : i32
      %far = math.absi %d : i32
      %c9 = arith.constant 9 : i32
      %near = arith.cmpi slt, %far, %c9 : i32
      %s = math.tanh %x : f32
      %y = arith.select %near, %s, %x : f32
      attn.yield %y : f32
    }
    : (tensor<1x2x256x16xf32>, tensor<1x2x256x16xf32>, tensor<1x2x256x16xf32>)
      -> (tensor<1x2x256x16xf32>, tensor<1x2x256xf32>)
  return %o, %lse : tensor<1x2x256x16xf32>, tensor<1x2x256xf32>
}

// Buckets by the logarithm of the distance, 4 + 4 log(d / 4) / log(4) of 8. From
// 12 on it is more than 7, rounding or not: 16 x - (32 n + 31) >= 12.
// CHECK-LABEL: func.func @logarithms(
// CHECK: scf.for
// CHECK-NOT: math.log
// CHECK: tile.gather %{{.*}}[%{{.*}}, %c7_i32]
// CHECK: scf.for
// CHECK: math.log
// CHECK: scf.for
// CHECK: mask {
// REMARK: [Passed] peel-scores | {{.*}}loops=2
func.func @logarithms(%q: tensor<?x?x?x16xf32>, %k: tensor<?x?x?x16xf32>, %v: tensor<?x?x?x16xf32>,
                      %table: tensor<?x8xf32>) -> (tensor<?x?x?x16xf32>, tensor<?x?x?xf32>) {
  %o, %lse = attn.attention %q, %k, %v captures(%table) {plan = #attn.plan<target = cpu, block_q = 16, block_k = 32>}
    score(%x: f32, %b: i32, %h: i32, %i: i32, %j: i32, %t: tensor<?x8xf32>) {
      %c0 = arith.constant 0 : i32
      %c4 = arith.constant 4 : i32
      %c7 = arith.constant 7 : i32
      %quarter = arith.constant 0.25 : f32
      %rate = arith.constant 2.88539 : f32
      %s = arith.subi %i, %j : i32
      %d = arith.maxsi %s, %c0 : i32
      %near = arith.cmpi slt, %d, %c4 : i32
      %f = arith.sitofp %d : i32 to f32
      %g = arith.mulf %f, %quarter : f32
      %l = math.log %g : f32
      %m = arith.mulf %l, %rate : f32
      %n = arith.fptosi %m : f32 to i32
      %a = arith.addi %n, %c4 : i32
      %far = arith.minsi %a, %c7 : i32
      %bucket = arith.select %near, %d, %far : i32
      %e = attn.capture_load %t[%h, %bucket] : tensor<?x8xf32>
      %y = arith.addf %x, %e : f32
      attn.yield %y : f32
    }
    mask(%b: i32, %h: i32, %i: i32, %j: i32, %t: tensor<?x8xf32>) {
      %m = arith.cmpi sge, %i, %j : i32
      attn.yield %m : i1
    }
    : (tensor<?x?x?x16xf32>, tensor<?x?x?x16xf32>, tensor<?x?x?x16xf32>, tensor<?x8xf32>)
      -> (tensor<?x?x?x16xf32>, tensor<?x?x?xf32>)
  return %o, %lse : tensor<?x?x?x16xf32>, tensor<?x?x?xf32>
}

// A logarithm that no distance brings to the last bucket.
// CHECK-LABEL: func.func @endless_logarithms(
// CHECK-COUNT-2: scf.for
// CHECK-NOT: scf.for
// CHECK: return
// REMARK: [Missed] peel-scores | {{.*}}"nothing that takes long is the same
func.func @endless_logarithms(%q: tensor<?x?x?x16xf32>, %k: tensor<?x?x?x16xf32>, %v: tensor<?x?x?x16xf32>,
                      %table: tensor<?x8xf32>) -> (tensor<?x?x?x16xf32>, tensor<?x?x?xf32>) {
  %o, %lse = attn.attention %q, %k, %v captures(%table) {plan = #attn.plan<target = cpu, block_q = 16, block_k = 32>}
    score(%x: f32, %b: i32, %h: i32, %i: i32, %j: i32, %t: tensor<?x8xf32>) {
      %c0 = arith.constant 0 : i32
      %c4 = arith.constant 4 : i32
      %c7 = arith.constant 1000 : i32
      %quarter = arith.constant 0.25 : f32
      %rate = arith.constant 2.88539 : f32
      %s = arith.subi %i, %j : i32
      %d = arith.maxsi %s, %c0 : i32
      %near = arith.cmpi slt, %d, %c4 : i32
      %f = arith.sitofp %d : i32 to f32
      %g = arith.mulf %f, %quarter : f32
      %l = math.log %g : f32
      %m = arith.mulf %l, %rate : f32
      %n = arith.fptosi %m : f32 to i32
      %a = arith.addi %n, %c4 : i32
      %far = arith.minsi %a, %c7 : i32
      %bucket = arith.select %near, %d, %far : i32
      %e = attn.capture_load %t[%h, %bucket] : tensor<?x8xf32>
      %y = arith.addf %x, %e : f32
      attn.yield %y : f32
    }
    mask(%b: i32, %h: i32, %i: i32, %j: i32, %t: tensor<?x8xf32>) {
      %m = arith.cmpi sge, %i, %j : i32
      attn.yield %m : i1
    }
    : (tensor<?x?x?x16xf32>, tensor<?x?x?x16xf32>, tensor<?x?x?x16xf32>, tensor<?x8xf32>)
      -> (tensor<?x?x?x16xf32>, tensor<?x?x?xf32>)
  return %o, %lse : tensor<?x?x?x16xf32>, tensor<?x?x?xf32>
}

// Nothing saturates: a bias for each distance.
// CHECK-LABEL: func.func @all_distances(
// CHECK-COUNT-2: scf.for
// CHECK-NOT: scf.for
// CHECK: return
// REMARK: [Missed] peel-scores | {{.*}}"nothing that takes long is the same for all scores of the blocks before, or after, some block"
func.func @all_distances(%q: tensor<?x?x?x16xf32>, %k: tensor<?x?x?x16xf32>, %v: tensor<?x?x?x16xf32>,
                         %table: tensor<?xf32>) -> (tensor<?x?x?x16xf32>, tensor<?x?x?xf32>) {
  %o, %lse = attn.attention %q, %k, %v captures(%table) {plan = #attn.plan<target = cpu, block_q = 16, block_k = 32>}
    score(%x: f32, %b: i32, %h: i32, %i: i32, %j: i32, %t: tensor<?xf32>) {
      %d = arith.subi %i, %j : i32
      %far = math.absi %d : i32
      %e = attn.capture_load %t[%far] : tensor<?xf32>
      %y = arith.addf %x, %e : f32
      attn.yield %y : f32
    }
    : (tensor<?x?x?x16xf32>, tensor<?x?x?x16xf32>, tensor<?x?x?x16xf32>, tensor<?xf32>)
      -> (tensor<?x?x?x16xf32>, tensor<?x?x?xf32>)
  return %o, %lse : tensor<?x?x?x16xf32>, tensor<?x?x?xf32>
}

// A clamp of a remainder changes with every block, and not in one direction.
// CHECK-LABEL: func.func @remainder(
// CHECK-COUNT-2: scf.for
// CHECK-NOT: scf.for
// CHECK: return
// REMARK: [Missed] peel-scores | {{.*}}"nothing that takes long is the same
func.func @remainder(%q: tensor<?x?x?x16xf32>, %k: tensor<?x?x?x16xf32>, %v: tensor<?x?x?x16xf32>,
                     %table: tensor<?xf32>) -> (tensor<?x?x?x16xf32>, tensor<?x?x?xf32>) {
  %o, %lse = attn.attention %q, %k, %v captures(%table) {plan = #attn.plan<target = cpu, block_q = 16, block_k = 32>}
    score(%x: f32, %b: i32, %h: i32, %i: i32, %j: i32, %t: tensor<?xf32>) {
      %c100 = arith.constant 100 : i32
      %c20 = arith.constant 20 : i32
      %d = arith.subi %i, %j : i32
      %r = arith.remsi %d, %c100 : i32
      %near = arith.minsi %r, %c20 : i32
      %e = attn.capture_load %t[%near] : tensor<?xf32>
      %y = arith.addf %x, %e : f32
      attn.yield %y : f32
    }
    : (tensor<?x?x?x16xf32>, tensor<?x?x?x16xf32>, tensor<?x?x?x16xf32>, tensor<?xf32>)
      -> (tensor<?x?x?x16xf32>, tensor<?x?x?xf32>)
  return %o, %lse : tensor<?x?x?x16xf32>, tensor<?x?x?xf32>
}

// Nothing is won: the clamp is arithmetic, and so is what takes it.
// CHECK-LABEL: func.func @cheap(
// CHECK-COUNT-2: scf.for
// CHECK-NOT: scf.for
// CHECK: return
// REMARK: [Missed] peel-scores | {{.*}}"no score function reads memory, or takes long, for each score"
func.func @cheap(%q: tensor<?x?x?x16xf32>, %k: tensor<?x?x?x16xf32>, %v: tensor<?x?x?x16xf32>)
    -> (tensor<?x?x?x16xf32>, tensor<?x?x?xf32>) {
  %o, %lse = attn.attention %q, %k, %v {plan = #attn.plan<target = cpu, block_q = 16, block_k = 32>}
    score(%x: f32, %b: i32, %h: i32, %i: i32, %j: i32) {
      %d = arith.subi %i, %j : i32
      %c20 = arith.constant 20 : i32
      %near = arith.minsi %d, %c20 : i32
      %e = arith.sitofp %near : i32 to f32
      %y = arith.addf %x, %e : f32
      attn.yield %y : f32
    }
    : (tensor<?x?x?x16xf32>, tensor<?x?x?x16xf32>, tensor<?x?x?x16xf32>)
      -> (tensor<?x?x?x16xf32>, tensor<?x?x?xf32>)
  return %o, %lse : tensor<?x?x?x16xf32>, tensor<?x?x?xf32>
}

// CHECK-LABEL: func.func @no_loop(
// REMARK: [Missed] peel-scores | {{.*}}"there is no loop over blocks with a score function"
func.func @no_loop(%n: index) {
  tile.kernel @no_loop plan(#attn.plan<target = cpu, block_q = 16, block_k = 32>) grid(%b, %h, %x) in (%n, %n, %n) {
  }
  return
}
