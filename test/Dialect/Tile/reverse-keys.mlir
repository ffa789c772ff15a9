// RUN: attn-opt %s --tile-reverse-keys | FileCheck %s
// RUN: attn-opt %s --tile-reverse-keys --remarks-filter-missed=.* --remark-policy=all -o /dev/null 2>&1 | FileCheck %s --check-prefix=REMARK

!s = vector<16x32xf32>
!i = vector<16x32xi32>
!row = vector<16x1xf32>

// Two loops, one behind the other, in the other order: first the masked one,
// guarded now. A visit behind the last has the number of the first block.
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
// CHECK: arith.select
// CHECK-NEXT: tile.online_softmax %{{.*}}, %[[M]], %[[L]] {guard}
// CHECK: %[[B:.*]]:2 = scf.for %[[T:[a-z0-9]+]] = %[[MIDDLE]] to %[[HI]] step %{{.*}} iter_args(%[[M:.*]] = %[[A]]#0, %[[L:.*]] = %[[A]]#1)
// CHECK-NEXT: %[[D:.*]] = arith.subi %[[LAST]], %[[T]] : index
// CHECK-NEXT: %[[N:.*]] = arith.maxsi %[[D]], %[[LO]] : index
// CHECK-NOT: arith.select
// CHECK: tile.online_softmax %{{.*}}, %[[M]], %[[L]] :
// CHECK: tile.store %[[B]]#0
func.func @chain(%lo: index, %full: index, %hi: index, %x: !s, %r: f32, %mask: vector<16x32xi1>,
                 %m0: !row, %l0: !row, %out: memref<?x1xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c32 = arith.constant 32 : index
  %hidden = arith.constant dense<0xFF800000> : !s
  %rate = vector.broadcast %r : f32 to !s
  tile.kernel @chain plan(#attn.plan<target = sm_80, block_q = 64, block_k = 64, warps = 4>) grid(%batch, %head, %q) in (%hi, %hi, %hi) {
    %a:2 = scf.for %n = %lo to %full step %c1 iter_args(%m = %m0, %l = %l0) -> (!row, !row) {
      %col = arith.muli %n, %c32 : index
      %col32 = arith.index_cast %col : index to i32
      %cols = tile.coords %col32, 1 : vector<1x32xi32>
      %j = vector.broadcast %cols : vector<1x32xi32> to !i
      %f = arith.sitofp %j : !i to !s
      %y = math.fma %f, %rate, %x : !s
      %p, %m1, %l1, %c = tile.online_softmax %y, %m, %l : !s, !row
      scf.yield %m1, %l1 : !row, !row
    }
    %b:2 = scf.for %n = %full to %hi step %c1 iter_args(%m = %a#0, %l = %a#1) -> (!row, !row) {
      %col = arith.muli %n, %c32 : index
      %col32 = arith.index_cast %col : index to i32
      %cols = tile.coords %col32, 1 : vector<1x32xi32>
      %j = vector.broadcast %cols : vector<1x32xi32> to !i
      %f = arith.sitofp %j : !i to !s
      %y = math.fma %f, %rate, %x : !s
      %z = arith.select %mask, %y, %hidden : vector<16x32xi1>, !s
      %p, %m1, %l1, %c = tile.online_softmax %z, %m, %l : !s, !row
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
  tile.kernel @alibi plan(#attn.plan<target = sm_80, block_q = 64, block_k = 64, warps = 4>) grid(%batch, %head, %q) in (%hi, %hi, %hi) {
    %less = arith.negf %h : f32
    %slope = math.exp2 %less : f32
    %a:2 = scf.for %n = %c0 to %hi step %c1 iter_args(%m = %m0, %l = %l0) -> (!row, !row) {
      %col = arith.muli %n, %c32 : index
      %col32 = arith.index_cast %col : index to i32
      %cols = tile.coords %col32, 1 : vector<1x32xi32>
      %j = vector.broadcast %cols : vector<1x32xi32> to !i
      %i = vector.broadcast %rows : vector<16x1xi32> to !i
      %d = arith.subi %i, %j : !i
      %f = arith.sitofp %d : !i to !s
      %rate = vector.broadcast %slope : f32 to !s
      %bias = arith.mulf %rate, %f : !s
      %y = arith.subf %x, %bias : !s
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
func.func @monotonic(%hi: index, %x: !s, %far: vector<16x32xi1>, %m0: !row, %l0: !row, %out: memref<?x1xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c32 = arith.constant 32 : index
  %two = arith.constant dense<2.0> : !s
  %seven = arith.constant dense<7> : !i
  tile.kernel @monotonic plan(#attn.plan<target = sm_80, block_q = 64, block_k = 64, warps = 4>) grid(%batch, %head, %q) in (%hi, %hi, %hi) {
    %a:2 = scf.for %n = %c0 to %hi step %c1 iter_args(%m = %m0, %l = %l0) -> (!row, !row) {
      %col = arith.muli %n, %c32 : index
      %col32 = arith.index_cast %col : index to i32
      %cols = tile.coords %col32, 1 : vector<1x32xi32>
      %j = vector.broadcast %cols : vector<1x32xi32> to !i
      %k = arith.maxsi %j, %seven : !i
      %f = arith.sitofp %k : !i to !s
      %bias = arith.divf %f, %two : !s
      %sum = arith.addf %x, %bias : !s
      %y = math.tanh %sum : !s
      %z = arith.select %far, %two, %y : vector<16x32xi1>, !s
      %p, %m1, %l1, %c = tile.online_softmax %z, %m, %l : !s, !row
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
  %rate = arith.constant dense<-0.5> : !s
  tile.kernel @falls plan(#attn.plan<target = sm_80, block_q = 64, block_k = 64, warps = 4>) grid(%batch, %head, %q) in (%hi, %hi, %hi) {
    %a:2 = scf.for %n = %c0 to %hi step %c1 iter_args(%m = %m0, %l = %l0) -> (!row, !row) {
      %col = arith.muli %n, %c32 : index
      %col32 = arith.index_cast %col : index to i32
      %cols = tile.coords %col32, 1 : vector<1x32xi32>
      %j = vector.broadcast %cols : vector<1x32xi32> to !i
      %f = arith.sitofp %j : !i to !s
      %bias = arith.mulf %f, %rate : !s
      %y = arith.addf %x, %bias : !s
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
func.func @both_sides(%hi: index, %k: memref<?x32xf32>, %rate: !s, %rows: vector<16x1xi32>, %m0: !row, %l0: !row,
                      %out: memref<?x1xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c32 = arith.constant 32 : index
  tile.kernel @both_sides plan(#attn.plan<target = sm_80, block_q = 64, block_k = 64, warps = 4>) grid(%batch, %head, %q) in (%hi, %hi, %hi) {
    %a:2 = scf.for %n = %c0 to %hi step %c1 iter_args(%m = %m0, %l = %l0) -> (!row, !row) {
      %col = arith.muli %n, %c32 : index
      %x = tile.load %k[%col, %c0] : memref<?x32xf32>, !s
      %col32 = arith.index_cast %col : index to i32
      %cols = tile.coords %col32, 1 : vector<1x32xi32>
      %j = vector.broadcast %cols : vector<1x32xi32> to !i
      %i = vector.broadcast %rows : vector<16x1xi32> to !i
      %d = arith.subi %i, %j : !i
      %f = arith.sitofp %d : !i to !s
      %abs = math.absf %f : !s
      %bias = arith.mulf %abs, %rate : !s
      %warm = arith.mulf %x, %f : !s
      %sum = arith.addf %x, %bias : !s
      %y = arith.addf %sum, %warm : !s
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
func.func @visits(%hi: index, %gap: index, %x: !s, %rate: !s, %m0: !row, %l0: !row, %out: memref<?x1xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c32 = arith.constant 32 : index
  tile.kernel @visits plan(#attn.plan<target = sm_80, block_q = 64, block_k = 64, warps = 4>) grid(%batch, %head, %q) in (%hi, %hi, %hi) {
    %a:2 = scf.for %t = %c0 to %hi step %c1 iter_args(%m = %m0, %l = %l0) -> (!row, !row) {
      %behind = arith.cmpi sge, %t, %gap : index
      %shift = arith.select %behind, %gap, %c0 : index
      %n = arith.addi %t, %shift : index
      %col = arith.muli %n, %c32 : index
      %col32 = arith.index_cast %col : index to i32
      %cols = tile.coords %col32, 1 : vector<1x32xi32>
      %j = vector.broadcast %cols : vector<1x32xi32> to !i
      %f = arith.sitofp %j : !i to !s
      %y = math.fma %f, %rate, %x : !s
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
func.func @no_chain(%full: index, %hi: index, %x: !s, %rate: !s, %m0: !row, %l0: !row, %out: memref<?x1xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c32 = arith.constant 32 : index
  tile.kernel @no_chain plan(#attn.plan<target = sm_80, block_q = 64, block_k = 64, warps = 4>) grid(%batch, %head, %q) in (%hi, %hi, %hi) {
    %a:2 = scf.for %n = %c0 to %full step %c1 iter_args(%m = %m0, %l = %l0) -> (!row, !row) {
      %col = arith.muli %n, %c32 : index
      %col32 = arith.index_cast %col : index to i32
      %cols = tile.coords %col32, 1 : vector<1x32xi32>
      %j = vector.broadcast %cols : vector<1x32xi32> to !i
      %f = arith.sitofp %j : !i to !s
      %y = math.fma %f, %rate, %x : !s
      %p, %m1, %l1, %c = tile.online_softmax %y, %m, %l : !s, !row
      scf.yield %m1, %l1 : !row, !row
    }
    tile.store %a#0, %out[%q, %c0] : !row, memref<?x1xf32>
    %b:2 = scf.for %n = %full to %hi step %c1 iter_args(%m = %a#0, %l = %a#1) -> (!row, !row) {
      %col = arith.muli %n, %c32 : index
      %col32 = arith.index_cast %col : index to i32
      %cols = tile.coords %col32, 1 : vector<1x32xi32>
      %j = vector.broadcast %cols : vector<1x32xi32> to !i
      %f = arith.sitofp %j : !i to !s
      %y = math.fma %f, %rate, %x : !s
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
func.func @other_step(%hi: index, %x: !s, %rate: !s, %m0: !row, %l0: !row, %out: memref<?x1xf32>) {
  %c0 = arith.constant 0 : index
  %c2 = arith.constant 2 : index
  %c32 = arith.constant 32 : index
  tile.kernel @other_step plan(#attn.plan<target = sm_80, block_q = 64, block_k = 64, warps = 4>) grid(%batch, %head, %q) in (%hi, %hi, %hi) {
    %a:2 = scf.for %n = %c0 to %hi step %c2 iter_args(%m = %m0, %l = %l0) -> (!row, !row) {
      %col = arith.muli %n, %c32 : index
      %col32 = arith.index_cast %col : index to i32
      %cols = tile.coords %col32, 1 : vector<1x32xi32>
      %j = vector.broadcast %cols : vector<1x32xi32> to !i
      %f = arith.sitofp %j : !i to !s
      %y = math.fma %f, %rate, %x : !s
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
