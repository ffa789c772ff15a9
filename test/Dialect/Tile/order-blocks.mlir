// RUN: attn-opt %s --tile-order-blocks | FileCheck %s
// RUN: attn-opt %s --tile-order-blocks | attn-opt --tile-peel-masks | FileCheck %s --check-prefix=PEEL

!tile = vector<16x32xf32>
!row = vector<16x1xf32>
!rows = vector<16x1xi32>
!cols = vector<1x32xi32>

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
  %b32 = arith.constant 0 : i32
  tile.kernel @causal plan(#attn.plan<target = sm_80, block_q = 64, block_k = 64, warps = 4>) grid(%b, %h, %q) in (%c2, %c2, %nq) {
    %row = arith.muli %q, %c16 : index
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
  %b32 = arith.constant 0 : i32
  %width = arith.constant 40 : i32
  tile.kernel @window_is_untouched plan(#attn.plan<target = sm_80, block_q = 64, block_k = 64, warps = 4>) grid(%b, %h, %q) in (%c2, %c2, %nq) {
    %row = arith.muli %q, %c16 : index
    %row32 = arith.index_cast %row : index to i32
    %rows = tile.coords %row32, 0 : !rows
    %r:2 = scf.for %n = %c0 to %nk step %c1 iter_args(%m = %m0, %l = %l0) -> (!row, !row) {
      %col = arith.muli %n, %c32 : index
      %col32 = arith.index_cast %col : index to i32
      %cols = tile.coords %col32, 1 : !cols
      %y = tile.scores %x at(%b32, %b32, %rows, %cols) mask {
      ^bb0(%batch: i32, %head: i32, %i: i32, %j: i32):
        %a = arith.cmpi sle, %j, %i : i32
        %left = arith.subi %i, %width : i32
        %e = arith.cmpi sge, %j, %left : i32
        %mask = arith.andi %a, %e : i1
        tile.yield %mask : i1
      } : !tile, !rows, !cols
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
  %b32 = arith.constant 0 : i32
  tile.kernel @one_block_is_untouched plan(#attn.plan<target = sm_80, block_q = 64, block_k = 64, warps = 4>) grid(%b, %h, %q) in (%c2, %c2, %c1) {
    %row = arith.muli %q, %c16 : index
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
    tile.store %r#1, %lse[%b, %h, %row, %c0] : !row, memref<?x?x?x1xf32>
  }
  return
}
