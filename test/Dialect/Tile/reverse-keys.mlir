// RUN: attn-opt %s --tile-reverse-keys | FileCheck %s
// RUN: attn-opt %s --tile-reverse-keys --remarks-filter-missed=.* --remark-policy=all -o /dev/null 2>&1 | FileCheck %s --check-prefix=REMARK

!s = vector<16x32xf32>
!row = vector<16x1xf32>

// Two loops, one after the other, in the other order: first the masked one,
// guarded now. A visit after the last has the number of the first block.
// CHECK-LABEL: func.func @chain(
// CHECK-SAME: %[[LO:[a-z0-9]+]]: index, %[[FULL:[a-z0-9]+]]: index, %[[HI:[a-z0-9]+]]: index
// CHECK: tile.kernel
// CHECK: %[[SUM:.*]] = arith.addi %[[HI]], %[[LO]] : index
// CHECK: %[[LAST:.*]] = arith.subi %[[SUM]], %{{.*}} : index
// CHECK: %[[MIDDLE:.*]] = arith.subi %[[SUM]], %[[FULL]] : index
// CHECK: %[[A:.*]]:2 = scf.for %[[T:[a-z0-9]+]] = %[[LO]] to %[[MIDDLE]] step %{{.*}} iter_args(%[[M:.*]] = %[[M0:.*]], %[[L:.*]] = %[[L0:.*]])
// CHECK-NEXT: %[[D:.*]] = arith.subi %[[LAST]], %[[T]] : index
// CHECK-NEXT: %[[N:.*]] = arith.maxsi %[[D]], %[[LO]] : index
// CHECK-NEXT: %[[COL:.*]] = arith.muli %[[N]], %{{.*}} : index
// CHECK: mask {
// CHECK: tile.online_softmax %{{.*}}, %[[M]], %[[L]] {guard}
// CHECK: %[[B:.*]]:2 = scf.for %[[T:[a-z0-9]+]] = %[[MIDDLE]] to %[[HI]] step %{{.*}} iter_args(%[[M:.*]] = %[[A]]#0, %[[L:.*]] = %[[A]]#1)
// CHECK-NEXT: %[[D:.*]] = arith.subi %[[LAST]], %[[T]] : index
// CHECK-NEXT: %[[N:.*]] = arith.maxsi %[[D]], %[[LO]] : index
// CHECK-NOT: mask {
// CHECK: tile.online_softmax %{{.*}}, %[[M]], %[[L]] :
// CHECK: tile.store %[[B]]#0
func.func @chain(%lo: index, %full: index, %hi: index, %x: !s, %rate: f32,
                 %m0: !row, %l0: !row, %out: memref<?x1xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c32 = arith.constant 32 : index
  %zero = arith.constant 0 : i32
  %rows = tile.coords %zero, 0 : vector<16x1xi32>
  tile.kernel @chain plan(#attn.plan<target = sm_80, block_q = 64, block_k = 64, warps = 4>) grid(%batch, %head, %q) in (%hi, %hi, %hi) {
    %a:2 = scf.for %n = %lo to %full step %c1 iter_args(%m = %m0, %l = %l0) -> (!row, !row) {
      %col = arith.muli %n, %c32 : index
      %col32 = arith.index_cast %col : index to i32
      %cols = tile.coords %col32, 1 : vector<1x32xi32>
      %y = tile.scores %x at(%zero, %zero, %rows, %cols) score {
      ^bb0(%s: f32, %bi: i32, %hi32: i32, %i: i32, %j: i32):
        %f = arith.sitofp %j : i32 to f32
        %y2 = math.fma %f, %rate, %s : f32
        tile.yield %y2 : f32
      } : !s, vector<16x1xi32>, vector<1x32xi32>
      %p, %m1, %l1, %c = tile.online_softmax %y, %m, %l : !s, !row
      scf.yield %m1, %l1 : !row, !row
    }
    %b:2 = scf.for %n = %full to %hi step %c1 iter_args(%m = %a#0, %l = %a#1) -> (!row, !row) {
      %col = arith.muli %n, %c32 : index
      %col32 = arith.index_cast %col : index to i32
      %cols = tile.coords %col32, 1 : vector<1x32xi32>
      %y = tile.scores %x at(%zero, %zero, %rows, %cols) score {
      ^bb0(%s: f32, %bi: i32, %hi32: i32, %i: i32, %j: i32):
        %f = arith.sitofp %j : i32 to f32
        %y2 = math.fma %f, %rate, %s : f32
        tile.yield %y2 : f32
      } mask {
      ^bb0(%bi: i32, %hi32: i32, %i: i32, %j: i32):
        %shown = arith.cmpi sle, %j, %i : i32
        tile.yield %shown : i1
      } : !s, vector<16x1xi32>, vector<1x32xi32>
      %p, %m1, %l1, %c = tile.online_softmax %y, %m, %l : !s, !row
      scf.yield %m1, %l1 : !row, !row
    }
    tile.store %b#0, %out[%q, %c0] : !row, memref<?x1xf32>
  }
  return
}

// x - exp2(-h) (i - j): grows. One loop from the first block on keeps its bounds.
// CHECK-LABEL: func.func @alibi(
// CHECK-SAME: %[[HI:[a-z0-9]+]]: index
// CHECK: %[[LAST:.*]] = arith.subi %[[HI]], %{{.*}} : index
// CHECK: scf.for %[[T:[a-z0-9]+]] = %[[C0:.*]] to %[[HI]]
// CHECK-NEXT: %[[D:.*]] = arith.subi %[[LAST]], %[[T]]
// CHECK-NEXT: arith.maxsi %[[D]], %[[C0]]
func.func @alibi(%hi: index, %x: !s, %h: f32, %rows: vector<16x1xi32>, %m0: !row, %l0: !row,
                 %out: memref<?x1xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c32 = arith.constant 32 : index
  %zero = arith.constant 0 : i32
  tile.kernel @alibi plan(#attn.plan<target = sm_80, block_q = 64, block_k = 64, warps = 4>) grid(%batch, %head, %q) in (%hi, %hi, %hi) {
    %less = arith.negf %h : f32
    %slope = math.exp2 %less : f32
    %a:2 = scf.for %n = %c0 to %hi step %c1 iter_args(%m = %m0, %l = %l0) -> (!row, !row) {
      %col = arith.muli %n, %c32 : index
      %col32 = arith.index_cast %col : index to i32
      %cols = tile.coords %col32, 1 : vector<1x32xi32>
      %y = tile.scores %x at(%zero, %zero, %rows, %cols) score {
      ^bb0(%s: f32, %bi: i32, %hi32: i32, %i: i32, %j: i32):
        %d = arith.subi %i, %j : i32
        %f = arith.sitofp %d : i32 to f32
        %bias = arith.mulf %slope, %f : f32
        %y2 = arith.subf %s, %bias : f32
        tile.yield %y2 : f32
      } : !s, vector<16x1xi32>, vector<1x32xi32>
      %p, %m1, %l1, %c = tile.online_softmax %y, %m, %l : !s, !row
      scf.yield %m1, %l1 : !row, !row
    }
    tile.store %a#0, %out[%q, %c0] : !row, memref<?x1xf32>
  }
  return
}

// tanh(x + max(j, 7) / 2), or something fixed: grows, as far as it has a trend.
// CHECK-LABEL: func.func @monotonic(
// CHECK: scf.for %[[T:[a-z0-9]+]] = {{.*}}
// CHECK-NEXT: arith.subi %{{.*}}, %[[T]]
func.func @monotonic(%hi: index, %x: !s, %m0: !row, %l0: !row, %out: memref<?x1xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c32 = arith.constant 32 : index
  %two = arith.constant 2.0 : f32
  %seven = arith.constant 7 : i32
  %zero = arith.constant 0 : i32
  %rows = tile.coords %zero, 0 : vector<16x1xi32>
  tile.kernel @monotonic plan(#attn.plan<target = sm_80, block_q = 64, block_k = 64, warps = 4>) grid(%batch, %head, %q) in (%hi, %hi, %hi) {
    %a:2 = scf.for %n = %c0 to %hi step %c1 iter_args(%m = %m0, %l = %l0) -> (!row, !row) {
      %col = arith.muli %n, %c32 : index
      %col32 = arith.index_cast %col : index to i32
      %cols = tile.coords %col32, 1 : vector<1x32xi32>
      %y = tile.scores %x at(%zero, %zero, %rows, %cols) score {
      ^bb0(%s: f32, %bi: i32, %hi32: i32, %i: i32, %j: i32):
        %k = arith.maxsi %j, %seven : i32
        %f = arith.sitofp %k : i32 to f32
        %bias = arith.divf %f, %two : f32
        %sum = arith.addf %s, %bias : f32
        %y2 = math.tanh %sum : f32
        %far = arith.cmpi slt, %i, %seven : i32
        %z = arith.select %far, %two, %y2 : f32
        tile.yield %z : f32
      } : !s, vector<16x1xi32>, vector<1x32xi32>
      %p, %m1, %l1, %c = tile.online_softmax %y, %m, %l : !s, !row
      scf.yield %m1, %l1 : !row, !row
    }
    tile.store %a#0, %out[%q, %c0] : !row, memref<?x1xf32>
  }
  return
}

// x - 0.5 j falls.
// REMARK: reverse-keys{{.*}}nothing that is added to the scores grows with the key
// CHECK-LABEL: func.func @falls(
// CHECK: scf.for %[[N:[a-z0-9]+]] = {{.*}}
// CHECK-NEXT: arith.muli %[[N]]
func.func @falls(%hi: index, %x: !s, %m0: !row, %l0: !row, %out: memref<?x1xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c32 = arith.constant 32 : index
  %rate = arith.constant -0.5 : f32
  %zero = arith.constant 0 : i32
  %rows = tile.coords %zero, 0 : vector<16x1xi32>
  tile.kernel @falls plan(#attn.plan<target = sm_80, block_q = 64, block_k = 64, warps = 4>) grid(%batch, %head, %q) in (%hi, %hi, %hi) {
    %a:2 = scf.for %n = %c0 to %hi step %c1 iter_args(%m = %m0, %l = %l0) -> (!row, !row) {
      %col = arith.muli %n, %c32 : index
      %col32 = arith.index_cast %col : index to i32
      %cols = tile.coords %col32, 1 : vector<1x32xi32>
      %y = tile.scores %x at(%zero, %zero, %rows, %cols) score {
      ^bb0(%s: f32, %bi: i32, %hi32: i32, %i: i32, %j: i32):
        %f = arith.sitofp %j : i32 to f32
        %bias = arith.mulf %f, %rate : f32
        %y2 = arith.addf %s, %bias : f32
        tile.yield %y2 : f32
      } : !s, vector<16x1xi32>, vector<1x32xi32>
      %p, %m1, %l1, %c = tile.online_softmax %y, %m, %l : !s, !row
      scf.yield %m1, %l1 : !row, !row
    }
    tile.store %a#0, %out[%q, %c0] : !row, memref<?x1xf32>
  }
  return
}

// x + r |i - j|, or something times j: who knows.
// REMARK: reverse-keys{{.*}}nothing that is added to the scores grows with the key
// CHECK-LABEL: func.func @both_sides(
// CHECK: scf.for %[[N:[a-z0-9]+]] = {{.*}}
// CHECK-NEXT: arith.muli %[[N]]
func.func @both_sides(%hi: index, %k: memref<?x32xf32>, %rate: f32, %rows: vector<16x1xi32>, %m0: !row, %l0: !row,
                      %out: memref<?x1xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c32 = arith.constant 32 : index
  %zero = arith.constant 0 : i32
  tile.kernel @both_sides plan(#attn.plan<target = sm_80, block_q = 64, block_k = 64, warps = 4>) grid(%batch, %head, %q) in (%hi, %hi, %hi) {
    %a:2 = scf.for %n = %c0 to %hi step %c1 iter_args(%m = %m0, %l = %l0) -> (!row, !row) {
      %col = arith.muli %n, %c32 : index
      %x = tile.load %k[%col, %c0] : memref<?x32xf32>, !s
      %col32 = arith.index_cast %col : index to i32
      %cols = tile.coords %col32, 1 : vector<1x32xi32>
      %y = tile.scores %x at(%zero, %zero, %rows, %cols) score {
      ^bb0(%s: f32, %bi: i32, %hi32: i32, %i: i32, %j: i32):
        %d = arith.subi %i, %j : i32
        %f = arith.sitofp %d : i32 to f32
        %abs = math.absf %f : f32
        %bias = arith.mulf %abs, %rate : f32
        %warm = arith.mulf %s, %f : f32
        %sum = arith.addf %s, %bias : f32
        %y2 = arith.addf %sum, %warm : f32
        tile.yield %y2 : f32
      } : !s, vector<16x1xi32>, vector<1x32xi32>
      %p, %m1, %l1, %c = tile.online_softmax %y, %m, %l : !s, !row
      scf.yield %m1, %l1 : !row, !row
    }
    tile.store %a#0, %out[%q, %c0] : !row, memref<?x1xf32>
  }
  return
}

// REMARK: reverse-keys{{.*}}the loops count visits of key blocks in an order of their own
// CHECK-LABEL: func.func @visits(
// CHECK: scf.for %[[N:[a-z0-9]+]] = {{.*}}
// CHECK-NEXT: arith.cmpi sge, %[[N]]
func.func @visits(%hi: index, %gap: index, %x: !s, %rate: f32, %m0: !row, %l0: !row, %out: memref<?x1xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c32 = arith.constant 32 : index
  %zero = arith.constant 0 : i32
  %rows = tile.coords %zero, 0 : vector<16x1xi32>
  tile.kernel @visits plan(#attn.plan<target = sm_80, block_q = 64, block_k = 64, warps = 4>) grid(%batch, %head, %q) in (%hi, %hi, %hi) {
    %a:2 = scf.for %t = %c0 to %hi step %c1 iter_args(%m = %m0, %l = %l0) -> (!row, !row) {
      %behind = arith.cmpi sge, %t, %gap : index
      %shift = arith.select %behind, %gap, %c0 : index
      %n = arith.addi %t, %shift : index
      %col = arith.muli %n, %c32 : index
      %col32 = arith.index_cast %col : index to i32
      %cols = tile.coords %col32, 1 : vector<1x32xi32>
      %y = tile.scores %x at(%zero, %zero, %rows, %cols) score {
      ^bb0(%s: f32, %bi: i32, %hi32: i32, %i: i32, %j: i32):
        %f = arith.sitofp %j : i32 to f32
        %y2 = math.fma %f, %rate, %s : f32
        tile.yield %y2 : f32
      } : !s, vector<16x1xi32>, vector<1x32xi32>
      %p, %m1, %l1, %c = tile.online_softmax %y, %m, %l : !s, !row
      scf.yield %m1, %l1 : !row, !row
    }
    tile.store %a#0, %out[%q, %c0] : !row, memref<?x1xf32>
  }
  return
}

// The first loop has a reader of its own.
// REMARK: reverse-keys{{.*}}what a loop over blocks gives does not go on in the next one alone
// CHECK-LABEL: func.func @no_chain(
// CHECK: scf.for %[[N:[a-z0-9]+]] = {{.*}}
// CHECK-NEXT: arith.muli %[[N]]
func.func @no_chain(%full: index, %hi: index, %x: !s, %rate: f32, %m0: !row, %l0: !row, %out: memref<?x1xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c32 = arith.constant 32 : index
  %zero = arith.constant 0 : i32
  %rows = tile.coords %zero, 0 : vector<16x1xi32>
  tile.kernel @no_chain plan(#attn.plan<target = sm_80, block_q = 64, block_k = 64, warps = 4>) grid(%batch, %head, %q) in (%hi, %hi, %hi) {
    %a:2 = scf.for %n = %c0 to %full step %c1 iter_args(%m = %m0, %l = %l0) -> (!row, !row) {
      %col = arith.muli %n, %c32 : index
      %col32 = arith.index_cast %col : index to i32
      %cols = tile.coords %col32, 1 : vector<1x32xi32>
      %y = tile.scores %x at(%zero, %zero, %rows, %cols) score {
      ^bb0(%s: f32, %bi: i32, %hi32: i32, %i: i32, %j: i32):
        %f = arith.sitofp %j : i32 to f32
        %y2 = math.fma %f, %rate, %s : f32
        tile.yield %y2 : f32
      } : !s, vector<16x1xi32>, vector<1x32xi32>
      %p, %m1, %l1, %c = tile.online_softmax %y, %m, %l : !s, !row
      scf.yield %m1, %l1 : !row, !row
    }
    tile.store %a#0, %out[%q, %c0] : !row, memref<?x1xf32>
    %b:2 = scf.for %n = %full to %hi step %c1 iter_args(%m = %a#0, %l = %a#1) -> (!row, !row) {
      %col = arith.muli %n, %c32 : index
      %col32 = arith.index_cast %col : index to i32
      %cols = tile.coords %col32, 1 : vector<1x32xi32>
      %y = tile.scores %x at(%zero, %zero, %rows, %cols) score {
      ^bb0(%s: f32, %bi: i32, %hi32: i32, %i: i32, %j: i32):
        %f = arith.sitofp %j : i32 to f32
        %y2 = math.fma %f, %rate, %s : f32
        tile.yield %y2 : f32
      } : !s, vector<16x1xi32>, vector<1x32xi32>
      %p, %m1, %l1, %c = tile.online_softmax %y, %m, %l : !s, !row
      scf.yield %m1, %l1 : !row, !row
    }
    tile.store %b#0, %out[%q, %c0] : !row, memref<?x1xf32>
  }
  return
}

// REMARK: reverse-keys{{.*}}a loop over blocks does not count them one by one
// CHECK-LABEL: func.func @other_step(
// CHECK: scf.for %[[N:[a-z0-9]+]] = {{.*}}
// CHECK-NEXT: arith.muli %[[N]]
func.func @other_step(%hi: index, %x: !s, %rate: f32, %m0: !row, %l0: !row, %out: memref<?x1xf32>) {
  %c0 = arith.constant 0 : index
  %c2 = arith.constant 2 : index
  %c32 = arith.constant 32 : index
  %zero = arith.constant 0 : i32
  %rows = tile.coords %zero, 0 : vector<16x1xi32>
  tile.kernel @other_step plan(#attn.plan<target = sm_80, block_q = 64, block_k = 64, warps = 4>) grid(%batch, %head, %q) in (%hi, %hi, %hi) {
    %a:2 = scf.for %n = %c0 to %hi step %c2 iter_args(%m = %m0, %l = %l0) -> (!row, !row) {
      %col = arith.muli %n, %c32 : index
      %col32 = arith.index_cast %col : index to i32
      %cols = tile.coords %col32, 1 : vector<1x32xi32>
      %y = tile.scores %x at(%zero, %zero, %rows, %cols) score {
      ^bb0(%s: f32, %bi: i32, %hi32: i32, %i: i32, %j: i32):
        %f = arith.sitofp %j : i32 to f32
        %y2 = math.fma %f, %rate, %s : f32
        tile.yield %y2 : f32
      } : !s, vector<16x1xi32>, vector<1x32xi32>
      %p, %m1, %l1, %c = tile.online_softmax %y, %m, %l : !s, !row
      scf.yield %m1, %l1 : !row, !row
    }
    tile.store %a#0, %out[%q, %c0] : !row, memref<?x1xf32>
  }
  return
}

// REMARK: reverse-keys{{.*}}there is no loop over blocks
// CHECK-LABEL: func.func @no_loop(
func.func @no_loop(%n: index, %o: !row, %out: memref<?x1xf32>) {
  %c0 = arith.constant 0 : index
  tile.kernel @no_loop plan(#attn.plan<target = sm_80, block_q = 64, block_k = 64, warps = 4>) grid(%batch, %head, %q) in (%n, %n, %n) {
    tile.store %o, %out[%q, %c0] : !row, memref<?x1xf32>
  }
  return
}
