// RUN: attn-opt %s --tile-peel-masks --tile-expand-scores | FileCheck %s
// RUN: attn-opt %s --tile-peel-masks --tile-expand-scores --remarks-filter-missed=.* --remark-policy=all 2>&1 | FileCheck %s --check-prefix=REMARK

// Blocks of 16 queries and 32 keys; %row and %n * 32 are their first ones.
!tile = vector<16x32xf32>
!row = vector<16x1xf32>
!rows = vector<16x1xi32>
!cols = vector<1x32xi32>

// j <= i: everything shows up to block floor((row + 1) / 32), nothing from
// ceil((row + 16) / 32) on. The scores are an argument and may hold -inf, so
// the guard stays.
// CHECK-LABEL: func.func @causal(
// CHECK-SAME: %[[X:[a-z0-9]+]]: vector<16x32xf32>, %[[M0:[a-z0-9]+]]: vector<16x1xf32>, %[[L0:[a-z0-9]+]]: vector<16x1xf32>, %[[ROW:[a-z0-9]+]]: index, %[[NK:[a-z0-9]+]]: index
// CHECK-DAG: %[[C0:.*]] = arith.constant 0 : index
// CHECK-DAG: %[[C16:.*]] = arith.constant 16 : index
// CHECK: %[[END:.*]] = arith.addi %[[ROW]], %[[C16]] : index
// CHECK: %[[SOME:.*]] = arith.ceildivsi %[[END]], %{{.*}} : index
// CHECK: %[[HI0:.*]] = arith.minsi %[[NK]], %[[SOME]] : index
// CHECK: %[[HI:.*]] = arith.maxsi %[[HI0]], %[[C0]] : index
// CHECK: %[[FIRST:.*]] = arith.addi %[[ROW]], %{{.*}} : index
// CHECK: %[[ALL:.*]] = arith.floordivsi %[[FIRST]], %{{.*}} : index
// CHECK: %[[FULL0:.*]] = arith.minsi %[[ALL]], %[[HI]] : index
// CHECK: %[[FULL:.*]] = arith.maxsi %[[FULL0]], %[[C0]] : index
// CHECK: %[[A:.*]]:2 = scf.for %{{.*}} = %[[C0]] to %[[FULL]] step %{{.*}} iter_args(%{{.*}} = %[[M0]], %{{.*}} = %[[L0]])
// CHECK-NOT: arith.select
// CHECK: tile.online_softmax %[[X]], %{{.*}}, %{{.*}} {guard}
// CHECK: %[[B:.*]]:2 = scf.for %{{.*}} = %[[FULL]] to %[[HI]] step %{{.*}} iter_args(%{{.*}} = %[[A]]#0, %{{.*}} = %[[A]]#1)
// CHECK: arith.cmpi sle
// CHECK: %[[Y:.*]] = arith.select
// CHECK: tile.online_softmax %[[Y]], %{{.*}}, %{{.*}} {guard}
// CHECK: return %[[B]]#0, %[[B]]#1
func.func @causal(%x: !tile, %m0: !row, %l0: !row, %row: index, %nk: index)
    -> (!row, !row) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c32 = arith.constant 32 : index
  %b32 = arith.constant 0 : i32
  %row32 = arith.index_cast %row : index to i32
  %rows = tile.coords %row32, 0 : !rows
  %r:2 = scf.for %n = %c0 to %nk step %c1 iter_args(%m = %m0, %l = %l0) -> (!row, !row) {
    %col = arith.muli %n, %c32 : index
    %col32 = arith.index_cast %col : index to i32
    %cols = tile.coords %col32, 1 : !cols
    %y = tile.scores %x at(%b32, %b32, %rows, %cols) mask {
    ^bb0(%batch: i32, %head: i32, %i: i32, %j: i32):
      %mask = arith.cmpi sle, %j, %i : i32
      tile.yield %mask : i1
    } : !tile, !rows, !cols
    %p, %m1, %l1, %c = tile.online_softmax %y, %m, %l {guard} : !tile, !row
    scf.yield %m1, %l1 : !row, !row
  }
  return %r#0, %r#1 : !row, !row
}

// The end of the keys alone: the loop ends there already; at most one block
// shows a part.
// CHECK-LABEL: func.func @key_length(
// CHECK-SAME: %[[LENGTH:[a-z0-9]+]]: index)
// CHECK: %[[NB:.*]] = arith.ceildivsi %[[LENGTH]]
// CHECK-NOT: arith.ceildivsi
// CHECK: %[[ALL:.*]] = arith.floordivsi %[[LENGTH]]
// CHECK-NEXT: %[[FULL0:.*]] = arith.minsi %[[ALL]], %[[NB]] : index
// CHECK-NEXT: %[[FULL:.*]] = arith.maxsi %[[FULL0]], %{{.*}} : index
// CHECK-NEXT: %{{.*}} = scf.for %{{.*}} = %{{.*}} to %[[FULL]]
// CHECK-NOT: arith.select
// CHECK: scf.for %{{.*}} = %[[FULL]] to %[[NB]]
// CHECK: arith.select
func.func @key_length(%x: !tile, %m0: !row, %l0: !row, %row: index, %nk: index, %length: index)
    -> (!row, !row) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c32 = arith.constant 32 : index
  %b32 = arith.constant 0 : i32
  %row32 = arith.index_cast %row : index to i32
  %rows = tile.coords %row32, 0 : !rows
  %length32 = arith.index_cast %length : index to i32
  %blocks = arith.ceildivsi %length, %c32 : index
  %r:2 = scf.for %n = %c0 to %blocks step %c1 iter_args(%m = %m0, %l = %l0) -> (!row, !row) {
    %col = arith.muli %n, %c32 : index
    %col32 = arith.index_cast %col : index to i32
    %cols = tile.coords %col32, 1 : !cols
    %y = tile.scores %x at(%b32, %b32, %rows, %cols) mask {
    ^bb0(%batch: i32, %head: i32, %i: i32, %j: i32):
      %mask = arith.cmpi slt, %j, %length32 : i32
      tile.yield %mask : i1
    } : !tile, !rows, !cols
    %p, %m1, %l1, %c = tile.online_softmax %y, %m, %l {guard} : !tile, !row
    scf.yield %m1, %l1 : !row, !row
  }
  return %r#0, %r#1 : !row, !row
}

// 96 keys are three blocks: the mask is gone.
// CHECK-LABEL: func.func @static_multiple_needs_no_mask(
// CHECK-NOT: arith.select
// CHECK: %[[C3:.*]] = arith.constant 3 : index
// CHECK: scf.for %{{.*}} = %{{.*}} to %[[C3]]
// CHECK-NOT: scf.for
// CHECK: return
func.func @static_multiple_needs_no_mask(%x: !tile, %m0: !row, %l0: !row, %row: index, %nk: index)
    -> (!row, !row) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c32 = arith.constant 32 : index
  %b32 = arith.constant 0 : i32
  %row32 = arith.index_cast %row : index to i32
  %rows = tile.coords %row32, 0 : !rows
  %limit = arith.constant 96 : i32
  %blocks = arith.constant 3 : index
  %r:2 = scf.for %n = %c0 to %blocks step %c1 iter_args(%m = %m0, %l = %l0) -> (!row, !row) {
    %col = arith.muli %n, %c32 : index
    %col32 = arith.index_cast %col : index to i32
    %cols = tile.coords %col32, 1 : !cols
    %y = tile.scores %x at(%b32, %b32, %rows, %cols) mask {
    ^bb0(%batch: i32, %head: i32, %i: i32, %j: i32):
      %mask = arith.cmpi slt, %j, %limit : i32
      tile.yield %mask : i1
    } : !tile, !rows, !cols
    %p, %m1, %l1, %c = tile.online_softmax %y, %m, %l {guard} : !tile, !row
    scf.yield %m1, %l1 : !row, !row
  }
  return %r#0, %r#1 : !row, !row
}

// i - 40 <= j <= i + 8: three segments.
// CHECK-LABEL: func.func @window(
// CHECK-SAME: %[[X:[a-z0-9]+]]: vector<16x32xf32>, %[[M0:[a-z0-9]+]]: vector<16x1xf32>, %[[L0:[a-z0-9]+]]: vector<16x1xf32>, %[[ROW:[a-z0-9]+]]: index, %[[NK:[a-z0-9]+]]: index
// CHECK-DAG: %[[C0:.*]] = arith.constant 0 : index
// CHECK-DAG: %[[C24:.*]] = arith.constant 24 : index
// CHECK-DAG: %[[M40:.*]] = arith.constant -40 : index
// CHECK-DAG: %[[M25:.*]] = arith.constant -25 : index
// CHECK-DAG: %[[LASTROW:.*]] = arith.addi %[[ROW]], %[[C24]] : index
// CHECK-DAG: %[[SOMEHI:.*]] = arith.ceildivsi %[[LASTROW]]
// CHECK-DAG: %[[HI0:.*]] = arith.minsi %[[NK]], %[[SOMEHI]]
// CHECK-DAG: %[[FIRSTROW:.*]] = arith.addi %[[ROW]], %[[M40]] : index
// CHECK-DAG: %[[SOMELO:.*]] = arith.floordivsi %[[FIRSTROW]]
// CHECK-DAG: %[[LO:.*]] = arith.maxsi %[[SOMELO]], %[[C0]]
// CHECK-DAG: %[[ALLROW:.*]] = arith.addi %[[ROW]], %[[M25]] : index
// CHECK-DAG: %[[ALLLO:.*]] = arith.ceildivsi %[[ALLROW]]
// CHECK-DAG: %[[HI:.*]] = arith.maxsi %[[HI0]], %[[LO]]
// CHECK: %[[A:.*]]:2 = scf.for %{{.*}} = %[[LO]] to %[[FULLLO:.*]] step %{{.*}} iter_args(%{{.*}} = %[[M0]], %{{.*}} = %[[L0]])
// CHECK: arith.select
// CHECK: %[[B:.*]]:2 = scf.for %{{.*}} = %[[FULLLO]] to %[[FULLHI:.*]] step %{{.*}} iter_args(%{{.*}} = %[[A]]#0, %{{.*}} = %[[A]]#1)
// CHECK-NOT: arith.select
// CHECK: %[[C:.*]]:2 = scf.for %{{.*}} = %[[FULLHI]] to %[[HI]] step %{{.*}} iter_args(%{{.*}} = %[[B]]#0, %{{.*}} = %[[B]]#1)
// CHECK: arith.select
// CHECK: return %[[C]]#0, %[[C]]#1
func.func @window(%x: !tile, %m0: !row, %l0: !row, %row: index, %nk: index)
    -> (!row, !row) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c32 = arith.constant 32 : index
  %b32 = arith.constant 0 : i32
  %row32 = arith.index_cast %row : index to i32
  %rows = tile.coords %row32, 0 : !rows
  %c8 = arith.constant 8 : i32
  %c40 = arith.constant 40 : i32
  %r:2 = scf.for %n = %c0 to %nk step %c1 iter_args(%m = %m0, %l = %l0) -> (!row, !row) {
    %col = arith.muli %n, %c32 : index
    %col32 = arith.index_cast %col : index to i32
    %cols = tile.coords %col32, 1 : !cols
    %y = tile.scores %x at(%b32, %b32, %rows, %cols) mask {
    ^bb0(%batch: i32, %head: i32, %i: i32, %j: i32):
      %right = arith.addi %i, %c8 : i32
      %left = arith.subi %i, %c40 : i32
      %a = arith.cmpi sle, %j, %right : i32
      %b = arith.cmpi sge, %j, %left : i32
      %mask = arith.andi %a, %b : i1
      tile.yield %mask : i1
    } : !tile, !rows, !cols
    %p, %m1, %l1, %c = tile.online_softmax %y, %m, %l {guard} : !tile, !row
    scf.yield %m1, %l1 : !row, !row
  }
  return %r#0, %r#1 : !row, !row
}

// A mask read from memory may show anything: no segment without mask, but the
// blocks right of the diagonal are still not visited.
// CHECK-LABEL: func.func @opaque_conjunct_keeps_the_mask(
// CHECK-SAME: %[[ROW:[a-z0-9]+]]: index, %[[NK:[a-z0-9]+]]: index, %{{.*}}: memref
// CHECK: %[[SOME:.*]] = arith.ceildivsi
// CHECK: %[[HI0:.*]] = arith.minsi %[[NK]], %[[SOME]] : index
// CHECK: %[[HI:.*]] = arith.maxsi %[[HI0]]
// CHECK: scf.for %{{.*}} = %{{.*}} to %[[HI]]
// CHECK: tile.gather
// CHECK: arith.select
// CHECK-NOT: scf.for
// CHECK: return
func.func @opaque_conjunct_keeps_the_mask(%x: !tile, %m0: !row, %l0: !row, %row: index, %nk: index, %table: memref<?x?xi1>)
    -> (!row, !row) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c32 = arith.constant 32 : index
  %b32 = arith.constant 0 : i32
  %row32 = arith.index_cast %row : index to i32
  %rows = tile.coords %row32, 0 : !rows
  %r:2 = scf.for %n = %c0 to %nk step %c1 iter_args(%m = %m0, %l = %l0) -> (!row, !row) {
    %col = arith.muli %n, %c32 : index
    %col32 = arith.index_cast %col : index to i32
    %cols = tile.coords %col32, 1 : !cols
    %y = tile.scores %x at(%b32, %b32, %rows, %cols) mask {
    ^bb0(%batch: i32, %head: i32, %i: i32, %j: i32):
      %t = tile.gather %table[%i, %j] : memref<?x?xi1>, (i32, i32) -> i1
      %a = arith.cmpi sle, %j, %i : i32
      %mask = arith.andi %t, %a : i1
      tile.yield %mask : i1
    } : !tile, !rows, !cols
    %p, %m1, %l1, %c = tile.online_softmax %y, %m, %l {guard} : !tile, !row
    scf.yield %m1, %l1 : !row, !row
  }
  return %r#0, %r#1 : !row, !row
}

// REMARK: remark: {{.*}}peel-masks{{.*}}the mask depends on more than bounds of rows and keys
// CHECK-LABEL: func.func @only_opaque_is_untouched(
// CHECK-SAME: %{{[a-z0-9]+}}: index, %[[NK:[a-z0-9]+]]: index, %{{[a-z0-9]+}}: memref
// CHECK: scf.for %{{.*}} = %{{.*}} to %[[NK]]
// CHECK-NOT: scf.for
// CHECK: return
func.func @only_opaque_is_untouched(%x: !tile, %m0: !row, %l0: !row, %row: index, %nk: index, %table: memref<?x?xi1>)
    -> (!row, !row) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c32 = arith.constant 32 : index
  %b32 = arith.constant 0 : i32
  %row32 = arith.index_cast %row : index to i32
  %rows = tile.coords %row32, 0 : !rows
  %r:2 = scf.for %n = %c0 to %nk step %c1 iter_args(%m = %m0, %l = %l0) -> (!row, !row) {
    %col = arith.muli %n, %c32 : index
    %col32 = arith.index_cast %col : index to i32
    %cols = tile.coords %col32, 1 : !cols
    %y = tile.scores %x at(%b32, %b32, %rows, %cols) mask {
    ^bb0(%batch: i32, %head: i32, %i: i32, %j: i32):
      %mask = tile.gather %table[%i, %j] : memref<?x?xi1>, (i32, i32) -> i1
      tile.yield %mask : i1
    } : !tile, !rows, !cols
    %p, %m1, %l1, %c = tile.online_softmax %y, %m, %l {guard} : !tile, !row
    scf.yield %m1, %l1 : !row, !row
  }
  return %r#0, %r#1 : !row, !row
}

// j != i hides something around the diagonal only: two loops over visits, first
// those of the masked blocks, then those of the full ones before and after.
// CHECK-LABEL: func.func @not_equal(
// What lives as long as the loops has 32 bits.
// CHECK: %[[A:.*]]:2 = scf.for %[[T:.*]] = %{{.*}} to %[[MASKED:.*]] step
// CHECK: %[[VISIT:.*]] = arith.index_cast %[[T]] : index to i32
// CHECK: %[[BEHIND:.*]] = arith.cmpi sge, %[[VISIT]], %{{.*}} : i32
// CHECK: %[[SHIFT0:.*]] = arith.select %[[BEHIND]]
// CHECK: %[[LAST:.*]] = arith.cmpi sge, %[[VISIT]], %{{.*}} : i32
// CHECK: %[[SHIFT:.*]] = arith.select %[[LAST]], %{{.*}}, %[[SHIFT0]] : i32
// CHECK: %[[SUM:.*]] = arith.addi %[[VISIT]], %[[SHIFT]] : i32
// CHECK: %[[N:.*]] = arith.index_cast %[[SUM]] : i32 to index
// CHECK: arith.muli %[[N]]
// CHECK: arith.select {{.*}} : vector
// CHECK: %[[B:.*]]:2 = scf.for %{{.*}} = %[[MASKED]] to %{{.*}} step %{{.*}} iter_args(%{{.*}} = %[[A]]#0
// CHECK-NOT: arith.select {{.*}} : vector
// CHECK: return
func.func @not_equal(%x: !tile, %m0: !row, %l0: !row, %row: index, %nk: index)
    -> (!row, !row) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c32 = arith.constant 32 : index
  %b32 = arith.constant 0 : i32
  %row32 = arith.index_cast %row : index to i32
  %rows = tile.coords %row32, 0 : !rows
  %r:2 = scf.for %n = %c0 to %nk step %c1 iter_args(%m = %m0, %l = %l0) -> (!row, !row) {
    %col = arith.muli %n, %c32 : index
    %col32 = arith.index_cast %col : index to i32
    %cols = tile.coords %col32, 1 : !cols
    %y = tile.scores %x at(%b32, %b32, %rows, %cols) mask {
    ^bb0(%batch: i32, %head: i32, %i: i32, %j: i32):
      %mask = arith.cmpi ne, %j, %i : i32
      tile.yield %mask : i1
    } : !tile, !rows, !cols
    %p, %m1, %l1, %c = tile.online_softmax %y, %m, %l {guard} : !tile, !row
    scf.yield %m1, %l1 : !row, !row
  }
  return %r#0, %r#1 : !row, !row
}

// j <= i or j < 4: both parts start at block 0, so the greater end counts.
// CHECK-LABEL: func.func @prefix(
// CHECK-SAME: %[[ROW:[a-z0-9]+]]: index, %[[NK:[a-z0-9]+]]: index
// CHECK: %[[CAUSAL:.*]] = arith.minsi %[[NK]], %{{.*}} : index
// CHECK: %[[PREFIX:.*]] = arith.minsi %[[NK]], %{{.*}} : index
// CHECK: %[[HI0:.*]] = arith.maxsi %[[CAUSAL]], %[[PREFIX]] : index
// CHECK: %[[HI:.*]] = arith.maxsi %[[HI0]]
// CHECK: scf.for %{{.*}} = %{{.*}} to %[[FULL:.*]] step
// CHECK-NOT: arith.select
// CHECK: scf.for %{{.*}} = %[[FULL]] to %[[HI]]
// CHECK: arith.select
// CHECK-NOT: scf.for
// CHECK: return
func.func @prefix(%x: !tile, %m0: !row, %l0: !row, %row: index, %nk: index)
    -> (!row, !row) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c32 = arith.constant 32 : index
  %b32 = arith.constant 0 : i32
  %row32 = arith.index_cast %row : index to i32
  %rows = tile.coords %row32, 0 : !rows
  %sink = arith.constant 4 : i32
  %r:2 = scf.for %n = %c0 to %nk step %c1 iter_args(%m = %m0, %l = %l0) -> (!row, !row) {
    %col = arith.muli %n, %c32 : index
    %col32 = arith.index_cast %col : index to i32
    %cols = tile.coords %col32, 1 : !cols
    %y = tile.scores %x at(%b32, %b32, %rows, %cols) mask {
    ^bb0(%batch: i32, %head: i32, %i: i32, %j: i32):
      %a = arith.cmpi sle, %j, %i : i32
      %b = arith.cmpi slt, %j, %sink : i32
      %mask = arith.ori %a, %b : i1
      tile.yield %mask : i1
    } : !tile, !rows, !cols
    %p, %m1, %l1, %c = tile.online_softmax %y, %m, %l {guard} : !tile, !row
    scf.yield %m1, %l1 : !row, !row
  }
  return %r#0, %r#1 : !row, !row
}

// A condition on the rows alone shows a block's rows or not: all keys or none
// where it is the same for all rows.
// CHECK-LABEL: func.func @rows_alone(
// CHECK-SAME: %{{[a-z0-9]+}}: index, %[[NK:[a-z0-9]+]]: index, %{{[a-z0-9]+}}: i32)
// CHECK: %[[SOME:.*]] = arith.cmpi sge
// CHECK: %[[HI0:.*]] = arith.select %[[SOME]], %[[NK]], %[[C0:.*]] : index
// CHECK: %[[HI:.*]] = arith.maxsi %[[HI0]], %[[C0]] : index
// CHECK: %[[NOTALL:.*]] = arith.cmpi sge
// CHECK: %[[FULL0:.*]] = arith.select %[[NOTALL]], %[[C0]], %[[HI]] : index
// CHECK: %[[FULL1:.*]] = arith.minsi %[[FULL0]], %[[HI]] : index
// CHECK: %[[FULL:.*]] = arith.maxsi %[[FULL1]], %[[C0]] : index
// CHECK: scf.for %{{.*}} = %[[C0]] to %[[FULL]]
// CHECK: scf.for %{{.*}} = %[[FULL]] to %[[HI]]
func.func @rows_alone(%x: !tile, %m0: !row, %l0: !row, %row: index, %nk: index, %limit: i32)
    -> (!row, !row) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c32 = arith.constant 32 : index
  %b32 = arith.constant 0 : i32
  %row32 = arith.index_cast %row : index to i32
  %rows = tile.coords %row32, 0 : !rows
  %r:2 = scf.for %n = %c0 to %nk step %c1 iter_args(%m = %m0, %l = %l0) -> (!row, !row) {
    %col = arith.muli %n, %c32 : index
    %col32 = arith.index_cast %col : index to i32
    %cols = tile.coords %col32, 1 : !cols
    %y = tile.scores %x at(%b32, %b32, %rows, %cols) mask {
    ^bb0(%batch: i32, %head: i32, %i: i32, %j: i32):
      %mask = arith.cmpi slt, %i, %limit : i32
      tile.yield %mask : i1
    } : !tile, !rows, !cols
    %p, %m1, %l1, %c = tile.online_softmax %y, %m, %l {guard} : !tile, !row
    scf.yield %m1, %l1 : !row, !row
  }
  return %r#0, %r#1 : !row, !row
}

// The scores are a product of tiles: every row of a block where all keys show
// has a finite maximum.
// CHECK-LABEL: func.func @guard_goes_where_scores_are_finite(
// CHECK: scf.for
// CHECK: tile.online_softmax %{{[^{]*}} : vector
// CHECK: scf.for
// CHECK: tile.online_softmax %{{.*}}, %{{.*}}, %{{.*}} {guard} : vector
func.func @guard_goes_where_scores_are_finite(%x: !tile, %m0: !row, %l0: !row, %row: index, %nk: index, %q: vector<16x8xf32>, %k: vector<32x8xf32>)
    -> (!row, !row) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c32 = arith.constant 32 : index
  %b32 = arith.constant 0 : i32
  %row32 = arith.index_cast %row : index to i32
  %rows = tile.coords %row32, 0 : !rows
  %r:2 = scf.for %n = %c0 to %nk step %c1 iter_args(%m = %m0, %l = %l0) -> (!row, !row) {
    %col = arith.muli %n, %c32 : index
    %col32 = arith.index_cast %col : index to i32
    %cols = tile.coords %col32, 1 : !cols
    %s = vector.contract {indexing_maps = [
        affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n, k)>, affine_map<(m, n, k) -> (m, n)>],
        iterator_types = ["parallel", "parallel", "reduction"]} %q, %k, %x
      : vector<16x8xf32>, vector<32x8xf32> into !tile
    %t = math.tanh %s : !tile
    %y = tile.scores %t at(%b32, %b32, %rows, %cols) mask {
    ^bb0(%batch: i32, %head: i32, %i: i32, %j: i32):
      %mask = arith.cmpi sle, %j, %i : i32
      tile.yield %mask : i1
    } : !tile, !rows, !cols
    %p, %m1, %l1, %c = tile.online_softmax %y, %m, %l {guard} : !tile, !row
    scf.yield %m1, %l1 : !row, !row
  }
  return %r#0, %r#1 : !row, !row
}

// An infinite key gives scores of -inf.
// CHECK-LABEL: func.func @guard_stays_where_products_may_be_infinite(
// CHECK: scf.for
// CHECK: tile.online_softmax %{{[^{]*}} {guard} : vector
// CHECK: scf.for
// CHECK: tile.online_softmax %{{.*}}, %{{.*}}, %{{.*}} {guard} : vector
func.func @guard_stays_where_products_may_be_infinite(%x: !tile, %m0: !row, %l0: !row, %row: index, %nk: index, %q: vector<16x8xf32>, %k: vector<32x8xf32>)
    -> (!row, !row) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c32 = arith.constant 32 : index
  %b32 = arith.constant 0 : i32
  %row32 = arith.index_cast %row : index to i32
  %rows = tile.coords %row32, 0 : !rows
  %r:2 = scf.for %n = %c0 to %nk step %c1 iter_args(%m = %m0, %l = %l0) -> (!row, !row) {
    %col = arith.muli %n, %c32 : index
    %col32 = arith.index_cast %col : index to i32
    %cols = tile.coords %col32, 1 : !cols
    %s = vector.contract {indexing_maps = [
        affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n, k)>, affine_map<(m, n, k) -> (m, n)>],
        iterator_types = ["parallel", "parallel", "reduction"]} %q, %k, %x
      : vector<16x8xf32>, vector<32x8xf32> into !tile
    %y = tile.scores %s at(%b32, %b32, %rows, %cols) mask {
    ^bb0(%batch: i32, %head: i32, %i: i32, %j: i32):
      %mask = arith.cmpi sle, %j, %i : i32
      tile.yield %mask : i1
    } : !tile, !rows, !cols
    %p, %m1, %l1, %c = tile.online_softmax %y, %m, %l {guard} : !tile, !row
    scf.yield %m1, %l1 : !row, !row
  }
  return %r#0, %r#1 : !row, !row
}

// The columns do not start at %n * 32.
// CHECK-LABEL: func.func @other_steps_are_not_key_blocks(
// CHECK: scf.for
// CHECK: arith.select
// CHECK-NOT: scf.for
// CHECK: return
func.func @other_steps_are_not_key_blocks(%x: !tile, %m0: !row, %l0: !row, %row: index, %nk: index)
    -> (!row, !row) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c32 = arith.constant 32 : index
  %b32 = arith.constant 0 : i32
  %row32 = arith.index_cast %row : index to i32
  %rows = tile.coords %row32, 0 : !rows
  %r:2 = scf.for %n = %c0 to %nk step %c1 iter_args(%m = %m0, %l = %l0) -> (!row, !row) {
    %col = arith.muli %n, %c32 : index
    %col32 = arith.index_cast %col : index to i32
    %cols = tile.coords %col32, 1 : !cols
    %off32 = arith.addi %col32, %row32 : i32
    %other = tile.coords %off32, 1 : !cols
    %y = tile.scores %x at(%b32, %b32, %rows, %other) mask {
    ^bb0(%batch: i32, %head: i32, %i: i32, %j: i32):
      %mask = arith.cmpi sle, %j, %i : i32
      tile.yield %mask : i1
    } : !tile, !rows, !cols
    %p, %m1, %l1, %c = tile.online_softmax %y, %m, %l {guard} : !tile, !row
    scf.yield %m1, %l1 : !row, !row
  }
  return %r#0, %r#1 : !row, !row
}

// Nothing is masked: nothing to divide.
// CHECK-LABEL: func.func @no_mask
// CHECK: scf.for
// CHECK-NOT: scf.for
// CHECK: return
// REMARK: remark: {{.*}}peel-masks{{.*}}not one tile.scores that hides keys
func.func @no_mask(%m0: !row, %l0: !row, %nk: index, %scores: memref<?x32xf32>) -> !row {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %r:2 = scf.for %n = %c0 to %nk step %c1 iter_args(%m = %m0, %l = %l0) -> (!row, !row) {
    %x = tile.load %scores[%n, %c0] : memref<?x32xf32>, !tile
    %p, %m1, %l1, %c = tile.online_softmax %x, %m, %l : !tile, !row
    scf.yield %m1, %l1 : !row, !row
  }
  return %r#0 : !row
}

// Key blocks are counted in index.
// CHECK-LABEL: func.func @other_counter
// CHECK: scf.for
// CHECK-NOT: scf.for
// CHECK: return
func.func @other_counter(%x: !tile, %m0: !row, %l0: !row, %nk: i32) -> !row {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %rows = tile.coords %c0, 0 : !rows
  %r:2 = scf.for %n = %c0 to %nk step %c1 iter_args(%m = %m0, %l = %l0) -> (!row, !row) : i32 {
    %cols = tile.coords %n, 1 : !cols
    %y = tile.scores %x at(%c0, %c0, %rows, %cols) below(%nk) : !tile, !rows, !cols
    %p, %m1, %l1, %c = tile.online_softmax %y, %m, %l {guard} : !tile, !row
    scf.yield %m1, %l1 : !row, !row
  }
  return %r#0 : !row
}

// A window and the first keys, of so many keys: masked blocks begin where the
// diagonal or the end of the keys does, and both reach the last block: that is
// one piece. With the other one, of which the window begins, there are ten
// pieces (fourteen with three), and nine places where one goes on as the next.
// CHECK-LABEL: func.func @window_and_first_keys(
// CHECK: scf.for
// CHECK-COUNT-9: arith.cmpi sge, %{{.*}}, %{{.*}} : i32
// CHECK-NOT: arith.cmpi sge, %{{.*}}, %{{.*}} : i32
// CHECK: arith.muli
func.func @window_and_first_keys(%x: !tile, %m0: !row, %l0: !row, %row: index, %length: index, %place: i32)
    -> (!row, !row) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c32 = arith.constant 32 : index
  %b32 = arith.constant 0 : i32
  %row32 = arith.index_cast %row : index to i32
  %rows = tile.coords %row32, 0 : !rows
  %length32 = arith.index_cast %length : index to i32
  %reach = arith.constant 256 : i32
  %first = arith.constant 4 : i32
  %blocks = arith.ceildivsi %length, %c32 : index
  %r:2 = scf.for %n = %c0 to %blocks step %c1 iter_args(%m = %m0, %l = %l0) -> (!row, !row) {
    %col = arith.muli %n, %c32 : index
    %col32 = arith.index_cast %col : index to i32
    %cols = tile.coords %col32, 1 : !cols
    %y = tile.scores %x at(%b32, %b32, %rows, %cols) mask {
    ^bb0(%batch: i32, %head: i32, %i: i32, %j: i32):
      %there = arith.cmpi slt, %j, %length32 : i32
      %at = arith.addi %i, %place : i32
      %seen = arith.cmpi sle, %j, %at : i32
      %distance = arith.subi %at, %j : i32
      %near = arith.cmpi slt, %distance, %reach : i32
      %sink = arith.cmpi slt, %j, %first : i32
      %either = arith.ori %near, %sink : i1
      %both = arith.andi %seen, %either : i1
      %mask = arith.andi %there, %both : i1
      tile.yield %mask : i1
    } : !tile, !rows, !cols
    %p, %m1, %l1, %c = tile.online_softmax %y, %m, %l {guard} : !tile, !row
    scf.yield %m1, %l1 : !row, !row
  }
  return %r#0, %r#1 : !row, !row
}
