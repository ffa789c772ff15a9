// RUN: attn-opt %s --tile-order-blocks | FileCheck %s
// RUN: attn-opt %s --tile-order-blocks | attn-opt --tile-peel-masks | FileCheck %s --check-prefix=PEEL

!tile = vector<16x32xf32>
!row = vector<16x1xf32>
!rows = vector<16x1xi32>
!cols = vector<1x32xi32>
!coords = vector<16x32xi32>

// Later rows see more keys: block x of n becomes n - 1 - x, everywhere.
// CHECK-LABEL: func.func @causal
// CHECK-SAME: %[[NQ:[a-z0-9]+]]: index
// CHECK: %[[LAST:.*]] = arith.subi %[[NQ]], %{{.*}} : index
// CHECK: tile.kernel @{{.*}} plan({{.*}}) grid(%{{.*}}, %{{.*}}, %[[X:.*]]) in
// CHECK-NEXT: %[[R:.*]] = arith.subi %[[LAST]], %[[X]] : index
// CHECK-NOT: %[[X]]
// CHECK: arith.muli %[[R]]
// CHECK: return
// The bounds follow.
// PEEL-LABEL: func.func @causal
// PEEL: tile.kernel
// PEEL: %[[R:.*]] = arith.subi
// PEEL: arith.muli %[[R]]
// PEEL: arith.addi %[[R]]
func.func @causal(%x: !tile, %m0: !row, %l0: !row, %nq: index, %nk: index,
                  %lse: memref<?x?x?x1xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c16 = arith.constant 16 : index
  %c32 = arith.constant 32 : index
  %hidden = arith.constant dense<0xFF800000> : !tile
  tile.kernel @causal plan(#attn.plan<target = sm_80, block_q = 64, block_k = 64, warps = 4>) grid(%b, %h, %q) in (%c2, %c2, %nq) {
    %row = arith.muli %q, %c16 : index
    %row32 = arith.index_cast %row : index to i32
    %rows = tile.coords %row32, 0 : !rows
    %r:2 = scf.for %n = %c0 to %nk step %c1 iter_args(%m = %m0, %l = %l0) -> (!row, !row) {
      %col = arith.muli %n, %c32 : index
      %col32 = arith.index_cast %col : index to i32
      %cols = tile.coords %col32, 1 : !cols
      %i = vector.broadcast %rows : !rows to !coords
      %j = vector.broadcast %cols : !cols to !coords
      %mask = arith.cmpi sle, %j, %i : !coords
      %y = arith.select %mask, %x, %hidden : vector<16x32xi1>, !tile
      %p, %m1, %l1, %c = tile.online_softmax %y, %m, %l {guard} : !tile, !row
      scf.yield %m1, %l1 : !row, !row
    }
    tile.store %r#1, %lse[%b, %h, %row, %c0] : !row, memref<?x?x?x1xf32>
  }
  return
}

// A band is as long everywhere.
// CHECK-LABEL: func.func @window_is_untouched
// CHECK: tile.kernel @{{.*}} plan({{.*}}) grid(%{{.*}}, %{{.*}}, %[[X:.*]]) in
// CHECK-NEXT: arith.muli %[[X]]
func.func @window_is_untouched(%x: !tile, %m0: !row, %l0: !row, %nq: index, %nk: index,
                               %lse: memref<?x?x?x1xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c16 = arith.constant 16 : index
  %c32 = arith.constant 32 : index
  %hidden = arith.constant dense<0xFF800000> : !tile
  %width = arith.constant dense<40> : !coords
  tile.kernel @window_is_untouched plan(#attn.plan<target = sm_80, block_q = 64, block_k = 64, warps = 4>) grid(%b, %h, %q) in (%c2, %c2, %nq) {
    %row = arith.muli %q, %c16 : index
    %row32 = arith.index_cast %row : index to i32
    %rows = tile.coords %row32, 0 : !rows
    %r:2 = scf.for %n = %c0 to %nk step %c1 iter_args(%m = %m0, %l = %l0) -> (!row, !row) {
      %col = arith.muli %n, %c32 : index
      %col32 = arith.index_cast %col : index to i32
      %cols = tile.coords %col32, 1 : !cols
      %i = vector.broadcast %rows : !rows to !coords
      %j = vector.broadcast %cols : !cols to !coords
      %a = arith.cmpi sle, %j, %i : !coords
      %left = arith.subi %i, %width : !coords
      %e = arith.cmpi sge, %j, %left : !coords
      %mask = arith.andi %a, %e : vector<16x32xi1>
      %y = arith.select %mask, %x, %hidden : vector<16x32xi1>, !tile
      %p, %m1, %l1, %c = tile.online_softmax %y, %m, %l {guard} : !tile, !row
      scf.yield %m1, %l1 : !row, !row
    }
    tile.store %r#1, %lse[%b, %h, %row, %c0] : !row, memref<?x?x?x1xf32>
  }
  return
}

// One block has no order.
// CHECK-LABEL: func.func @one_block_is_untouched
// CHECK: tile.kernel @{{.*}} plan({{.*}}) grid(%{{.*}}, %{{.*}}, %[[X:.*]]) in
// CHECK-NEXT: arith.muli %[[X]]
func.func @one_block_is_untouched(%x: !tile, %m0: !row, %l0: !row, %nk: index,
                                  %lse: memref<?x?x?x1xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c16 = arith.constant 16 : index
  %c32 = arith.constant 32 : index
  %hidden = arith.constant dense<0xFF800000> : !tile
  tile.kernel @one_block_is_untouched plan(#attn.plan<target = sm_80, block_q = 64, block_k = 64, warps = 4>) grid(%b, %h, %q) in (%c2, %c2, %c1) {
    %row = arith.muli %q, %c16 : index
    %row32 = arith.index_cast %row : index to i32
    %rows = tile.coords %row32, 0 : !rows
    %r:2 = scf.for %n = %c0 to %nk step %c1 iter_args(%m = %m0, %l = %l0) -> (!row, !row) {
      %col = arith.muli %n, %c32 : index
      %col32 = arith.index_cast %col : index to i32
      %cols = tile.coords %col32, 1 : !cols
      %i = vector.broadcast %rows : !rows to !coords
      %j = vector.broadcast %cols : !cols to !coords
      %mask = arith.cmpi sle, %j, %i : !coords
      %y = arith.select %mask, %x, %hidden : vector<16x32xi1>, !tile
      %p, %m1, %l1, %c = tile.online_softmax %y, %m, %l {guard} : !tile, !row
      scf.yield %m1, %l1 : !row, !row
    }
    tile.store %r#1, %lse[%b, %h, %row, %c0] : !row, memref<?x?x?x1xf32>
  }
  return
}
