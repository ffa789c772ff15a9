// RUN: attn-opt %s --tile-overlap-products --tile-expand-scores | FileCheck %s
// RUN: sed "/^func.func @visits/,$ d" %s > %t.first
// RUN: attn-opt %t.first --tile-peel-masks --tile-overlap-products --tile-expand-scores | FileCheck %s --check-prefix=PEELED
// RUN: attn-opt %s --tile-overlap-products --remarks-filter-missed=.* --remark-policy=all -o /dev/null 2>&1 | FileCheck %s --check-prefix=REMARK

#qk_q = affine_map<(m, n, k) -> (m, k)>
#qk_k = affine_map<(m, n, k) -> (n, k)>
#pv_v = affine_map<(m, n, k) -> (k, n)>
#out = affine_map<(m, n, k) -> (m, n)>

!view = memref<?x16xf16, strided<[?, 1], offset: ?>>
!s = vector<16x32xf32>
!p = vector<16x32xf16>
!o = vector<16x16xf32>
!row = vector<16x1xf32>
!kv = vector<32x16xf16>
!q = vector<16x16xf16>

// The first block before the loop, its weights carried; block n - 1 of the values
// beside block n of the keys; the last product after the loop, from after the
// end of the values if there is no block.
// CHECK-LABEL: func.func @overlap(
// CHECK-SAME: %[[Q:[a-z0-9]+]]: vector<16x16xf16>, %[[K:[a-z0-9]+]]: memref<?x16xf16, strided<[?, 1], offset: ?>>, %[[V:[a-z0-9]+]]: memref<?x16xf16, strided<[?, 1], offset: ?>>
// CHECK-DAG: %[[C0:.*]] = arith.constant 0 : index
// CHECK-DAG: %[[C1:.*]] = arith.constant 1 : index
// CHECK-DAG: %[[C32:.*]] = arith.constant 32 : index
// CHECK: tile.kernel
// CHECK: %[[K0:.*]] = tile.load %[[K]]
// CHECK-NEXT: vector.contract {{.*}} %[[Q]], %[[K0]]
// CHECK: arith.select
// CHECK: %[[P0:.*]], %[[M0:.*]], %[[L0:.*]], %{{.*}} = tile.online_softmax %{{.*}} {guard}
// CHECK-NEXT: %[[PT0:.*]] = arith.truncf %[[P0]]
// CHECK-NOT: tile.load %[[V]]
// CHECK: %[[HI:.*]] = arith.maxsi %[[NK:.*]], %[[C1]] : index
// CHECK: %[[R:.*]]:4 = scf.for %[[N:.*]] = %[[C1]] to %[[HI]] step %[[C1]] iter_args(%[[O:.*]] = %{{.*}}, %[[M:.*]] = %[[M0]], %[[L:.*]] = %[[L0]], %[[P:.*]] = %[[PT0]])
// CHECK: %[[KN:.*]] = tile.load %[[K]]
// CHECK-NEXT: %[[S:.*]] = vector.contract {{.*}} %[[Q]], %[[KN]]
// CHECK-NEXT: %[[PREV:.*]] = arith.subi %[[N]], %[[C1]]
// CHECK-NEXT: %[[ROW:.*]] = arith.muli %[[PREV]], %[[C32]]
// CHECK-NEXT: %[[VP:.*]] = tile.load %[[V]][%[[ROW]], %[[C0]]]
// CHECK-NEXT: %[[O1:.*]] = vector.contract {{.*}} %[[P]], %[[VP]], %[[O]]
// CHECK: %[[P1:.*]], %[[M1:.*]], %[[L1:.*]], %[[C:.*]] = tile.online_softmax %{{.*}}, %[[M]], %[[L]]
// CHECK: %[[PT1:.*]] = arith.truncf %[[P1]]
// CHECK: %[[CB:.*]] = vector.broadcast %[[C]]
// CHECK: %[[O2:.*]] = arith.mulf %[[O1]], %[[CB]]
// CHECK: scf.yield %[[O2]], %[[M1]], %[[L1]], %[[PT1]]
// CHECK: %[[LAST:.*]] = arith.subi %[[NK]], %[[C1]]
// CHECK: %[[LASTROW:.*]] = arith.muli %[[LAST]], %[[C32]]
// CHECK: %[[END:.*]] = memref.dim %[[V]], %[[C0]]
// CHECK: %[[EXISTS:.*]] = arith.cmpi
// CHECK: %[[FROM:.*]] = arith.select %[[EXISTS]], %[[LASTROW]], %[[END]] : index
// CHECK: %[[VL:.*]] = tile.load %[[V]][%[[FROM]], %[[C0]]]
// CHECK: %[[RESULT:.*]] = vector.contract {{.*}} %[[R]]#3, %[[VL]], %[[R]]#0
// CHECK: tile.store %[[RESULT]]

// A chain stays a chain; the first block is masked, whichever loop it is of.
// PEELED-LABEL: func.func @overlap(
// PEELED: arith.select {{.*}} : vector<16x32xi1>
// PEELED: tile.online_softmax %{{.*}} {guard}
// PEELED: %[[A:.*]]:4 = scf.for %{{.*}} = %[[C1:.*]] to %[[FULL:.*]] step %[[C1]]
// PEELED-NOT: arith.select
// PEELED: scf.yield
// PEELED: %[[B:.*]]:4 = scf.for %{{.*}} = %[[FULL]] to %{{.*}} step %[[C1]] iter_args(%{{.*}} = %[[A]]#0, %{{.*}} = %[[A]]#1, %{{.*}} = %[[A]]#2, %{{.*}} = %[[A]]#3)
// PEELED: arith.select {{.*}} : vector<16x32xi1>
// PEELED: vector.contract {{.*}} %[[B]]#3, %{{.*}}, %[[B]]#0
func.func @overlap(%q: !q, %k: !view, %v: !view, %o0: !o, %m0: !row, %l0: !row,
                  %nq: index, %nk: index, %out: memref<?x16xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c16 = arith.constant 16 : index
  %c32 = arith.constant 32 : index
  %zero = arith.constant dense<0.0> : !s
  %nq32 = arith.index_cast %nq : index to i32
  %rows = tile.coords %nq32, 0 : vector<16x1xi32>
  tile.kernel @overlap plan(#attn.plan<target = sm_80, block_q = 64, block_k = 64, warps = 4>) grid(%batch, %head, %x) in (%nq, %nq, %nq) {
    %r:3 = scf.for %n = %c0 to %nk step %c1 iter_args(%o = %o0, %m = %m0, %l = %l0) -> (!o, !row, !row) {
      %col = arith.muli %n, %c32 : index
      %col32 = arith.index_cast %col : index to i32
      %cols = tile.coords %col32, 1 : vector<1x32xi32>
      %kt = tile.load %k[%col, %c0] : !view, !kv
      %s = vector.contract {indexing_maps = [#qk_q, #qk_k, #out], iterator_types = ["parallel", "parallel", "reduction"]} %q, %kt, %zero : !q, !kv into !s
      %y = tile.scores %s at(%nq32, %nq32, %rows, %cols) mask {
      ^bb0(%b: i32, %h: i32, %i: i32, %j: i32):
        %mask = arith.cmpi sle, %j, %i : i32
        tile.yield %mask : i1
      } : !s, vector<16x1xi32>, vector<1x32xi32>
      %p, %m1, %l1, %c = tile.online_softmax %y, %m, %l : !s, !row
      %vt = tile.load %v[%col, %c0] : !view, !kv
      %pt = arith.truncf %p : !s to !p
      %cb = vector.broadcast %c : !row to !o
      %os = arith.mulf %o, %cb : !o
      %o1 = vector.contract {indexing_maps = [#qk_q, #pv_v, #out], iterator_types = ["parallel", "parallel", "reduction"]} %pt, %vt, %os : !p, !kv into !o
      scf.yield %o1, %m1, %l1 : !o, !row, !row
    }
    tile.store %r#0, %out[%x, %c0] : !o, memref<?x16xf32>
  }
  return
}

// The loop counts visits, and dropout takes weights: the values are those of the
// block of the visit before, what is kept is that of this block.
// CHECK-LABEL: func.func @visits_and_dropout(
// CHECK: tile.online_softmax
// CHECK: %[[P0:.*]] = arith.truncf
// CHECK: %[[KEPT0:.*]] = arith.select %{{.*}}, %[[P0]],
// CHECK: %[[R:.*]]:4 = scf.for %[[T:[a-z0-9]+]] = {{.*}} %[[P:[a-z0-9]+]] = %[[KEPT0]])
// CHECK: %[[BEFORE:.*]] = arith.subi %[[T]], %{{.*}} : index
// CHECK: %[[FAR:.*]] = arith.cmpi sge, %[[BEFORE]]
// CHECK: %[[SHIFT:.*]] = arith.select %[[FAR]]
// CHECK: %[[BLOCK:.*]] = arith.addi %[[BEFORE]], %[[SHIFT]]
// CHECK: %[[COL:.*]] = arith.muli %[[BLOCK]]
// CHECK: %[[V:.*]] = tile.load %{{.*}}[%[[COL]],
// CHECK: vector.contract {{.*}} %[[P]], %[[V]]
// CHECK: tile.online_softmax
// CHECK: %[[P1:.*]] = arith.truncf
// CHECK: %[[KEPT1:.*]] = arith.select %{{.*}}, %[[P1]],
// CHECK: scf.yield %{{.*}}, %{{.*}}, %{{.*}}, %[[KEPT1]]
// CHECK: vector.contract {{.*}} %[[R]]#3
func.func @visits_and_dropout(%q: !q, %k: !view, %v: !view, %o0: !o, %m0: !row, %l0: !row,
                  %nq: index, %nk: index, %out: memref<?x16xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c16 = arith.constant 16 : index
  %c32 = arith.constant 32 : index
  %zero = arith.constant dense<0.0> : !s
  %none = arith.constant dense<0.0> : !p
  %nq32 = arith.index_cast %nq : index to i32
  %rows = tile.coords %nq32, 0 : vector<16x1xi32>
  tile.kernel @visits_and_dropout plan(#attn.plan<target = sm_80, block_q = 64, block_k = 64, warps = 4>) grid(%b, %h, %x) in (%nq, %nq, %nq) {
    %r:3 = scf.for %n = %c0 to %nk step %c1 iter_args(%o = %o0, %m = %m0, %l = %l0) -> (!o, !row, !row) {
      %far = arith.cmpi sge, %n, %c2 : index
      %shift = arith.select %far, %c16, %c0 : index
      %block = arith.addi %n, %shift : index
      %col = arith.muli %block, %c32 : index
      %col32 = arith.index_cast %col : index to i32
      %cols = tile.coords %col32, 1 : vector<1x32xi32>
      %kt = tile.load %k[%col, %c0] : !view, !kv
      %s = vector.contract {indexing_maps = [#qk_q, #qk_k, #out], iterator_types = ["parallel", "parallel", "reduction"]} %q, %kt, %zero : !q, !kv into !s
      %i = vector.broadcast %rows : vector<16x1xi32> to vector<16x32xi32>
      %j = vector.broadcast %cols : vector<1x32xi32> to vector<16x32xi32>
      %mask = arith.cmpi sle, %j, %i : vector<16x32xi32>
      %y = tile.scores %s at(%nq32, %nq32, %rows, %cols) mask {
      ^bb0(%batch: i32, %head: i32, %query: i32, %key: i32):
        %visible = arith.cmpi sle, %key, %query : i32
        tile.yield %visible : i1
      } : !s, vector<16x1xi32>, vector<1x32xi32>
      %p, %m1, %l1, %c = tile.online_softmax %y, %m, %l : !s, !row
      %vt = tile.load %v[%col, %c0] : !view, !kv
      %pr = arith.truncf %p : !s to !p
      %pt = arith.select %mask, %pr, %none : vector<16x32xi1>, !p
      %cb = vector.broadcast %c : !row to !o
      %os = arith.mulf %o, %cb : !o
      %o1 = vector.contract {indexing_maps = [#qk_q, #pv_v, #out], iterator_types = ["parallel", "parallel", "reduction"]} %pt, %vt, %os : !p, !kv into !o
      scf.yield %o1, %m1, %l1 : !o, !row, !row
    }
    tile.store %r#0, %out[%x, %c0] : !o, memref<?x16xf32>
  }
  return
}

// REMARK: overlap-products{{.*}}the correction does not only rescale the output
// CHECK-LABEL: func.func @not_rescaled(
// CHECK: scf.for {{.*}} iter_args(%{{[a-z0-9]+}} = %{{[a-z0-9]+}}, %{{[a-z0-9]+}} = %{{[a-z0-9]+}}, %{{[a-z0-9]+}} = %{{[a-z0-9]+}})
// CHECK: tile.store
func.func @not_rescaled(%q: !q, %k: !view, %v: !view, %o0: !o, %m0: !row, %l0: !row,
                  %nq: index, %nk: index, %out: memref<?x16xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c16 = arith.constant 16 : index
  %c32 = arith.constant 32 : index
  %zero = arith.constant dense<0.0> : !s
  %nq32 = arith.index_cast %nq : index to i32
  %rows = tile.coords %nq32, 0 : vector<16x1xi32>
  tile.kernel @not_rescaled plan(#attn.plan<target = sm_80, block_q = 64, block_k = 64, warps = 4>) grid(%b, %h, %x) in (%nq, %nq, %nq) {
    %r:3 = scf.for %n = %c0 to %nk step %c1 iter_args(%o = %o0, %m = %m0, %l = %l0) -> (!o, !row, !row) {
      %col = arith.muli %n, %c32 : index
      %col32 = arith.index_cast %col : index to i32
      %cols = tile.coords %col32, 1 : vector<1x32xi32>
      %kt = tile.load %k[%col, %c0] : !view, !kv
      %s = vector.contract {indexing_maps = [#qk_q, #qk_k, #out], iterator_types = ["parallel", "parallel", "reduction"]} %q, %kt, %zero : !q, !kv into !s
      %y = tile.scores %s at(%nq32, %nq32, %rows, %cols) mask {
      ^bb0(%batch: i32, %head: i32, %query: i32, %key: i32):
        %visible = arith.cmpi sle, %key, %query : i32
        tile.yield %visible : i1
      } : !s, vector<16x1xi32>, vector<1x32xi32>
      %p, %m1, %l1, %c = tile.online_softmax %y, %m, %l : !s, !row
      %vt = tile.load %v[%col, %c0] : !view, !kv
      %pt = arith.truncf %p : !s to !p
      %o1 = vector.contract {indexing_maps = [#qk_q, #pv_v, #out], iterator_types = ["parallel", "parallel", "reduction"]} %pt, %vt, %o : !p, !kv into !o
      scf.yield %o1, %m1, %l1 : !o, !row, !row
    }
    tile.store %r#0, %out[%x, %c0] : !o, memref<?x16xf32>
  }
  return
}

// REMARK: overlap-products{{.*}}the values are not those of the loop's key block
// CHECK-LABEL: func.func @values_of_another_block(
// CHECK: scf.for {{.*}} iter_args(%{{[a-z0-9]+}} = %{{[a-z0-9]+}}, %{{[a-z0-9]+}} = %{{[a-z0-9]+}}, %{{[a-z0-9]+}} = %{{[a-z0-9]+}})
// CHECK: tile.store
func.func @values_of_another_block(%q: !q, %k: !view, %v: !view, %o0: !o, %m0: !row, %l0: !row,
                  %nq: index, %nk: index, %out: memref<?x16xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c16 = arith.constant 16 : index
  %c32 = arith.constant 32 : index
  %zero = arith.constant dense<0.0> : !s
  %nq32 = arith.index_cast %nq : index to i32
  %rows = tile.coords %nq32, 0 : vector<16x1xi32>
  tile.kernel @values_of_another_block plan(#attn.plan<target = sm_80, block_q = 64, block_k = 64, warps = 4>) grid(%b, %h, %x) in (%nq, %nq, %nq) {
    %r:3 = scf.for %n = %c0 to %nk step %c1 iter_args(%o = %o0, %m = %m0, %l = %l0) -> (!o, !row, !row) {
      %col = arith.muli %n, %c32 : index
      %col32 = arith.index_cast %col : index to i32
      %cols = tile.coords %col32, 1 : vector<1x32xi32>
      %kt = tile.load %k[%col, %c0] : !view, !kv
      %s = vector.contract {indexing_maps = [#qk_q, #qk_k, #out], iterator_types = ["parallel", "parallel", "reduction"]} %q, %kt, %zero : !q, !kv into !s
      %y = tile.scores %s at(%nq32, %nq32, %rows, %cols) mask {
      ^bb0(%batch: i32, %head: i32, %query: i32, %key: i32):
        %visible = arith.cmpi sle, %key, %query : i32
        tile.yield %visible : i1
      } : !s, vector<16x1xi32>, vector<1x32xi32>
      %p, %m1, %l1, %c = tile.online_softmax %y, %m, %l : !s, !row
      %vt = tile.load %v[%c16, %c0] : !view, !kv
      %pt = arith.truncf %p : !s to !p
      %cb = vector.broadcast %c : !row to !o
      %os = arith.mulf %o, %cb : !o
      %o1 = vector.contract {indexing_maps = [#qk_q, #pv_v, #out], iterator_types = ["parallel", "parallel", "reduction"]} %pt, %vt, %os : !p, !kv into !o
      scf.yield %o1, %m1, %l1 : !o, !row, !row
    }
    tile.store %r#0, %out[%x, %c0] : !o, memref<?x16xf32>
  }
  return
}

// REMARK: overlap-products{{.*}}a loop over blocks does not count them one by one
// CHECK-LABEL: func.func @other_step(
// CHECK: scf.for {{.*}} iter_args(%{{[a-z0-9]+}} = %{{[a-z0-9]+}}, %{{[a-z0-9]+}} = %{{[a-z0-9]+}}, %{{[a-z0-9]+}} = %{{[a-z0-9]+}})
// CHECK: tile.store
func.func @other_step(%q: !q, %k: !view, %v: !view, %o0: !o, %m0: !row, %l0: !row,
                  %nq: index, %nk: index, %out: memref<?x16xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c16 = arith.constant 16 : index
  %c32 = arith.constant 32 : index
  %zero = arith.constant dense<0.0> : !s
  %nq32 = arith.index_cast %nq : index to i32
  %rows = tile.coords %nq32, 0 : vector<16x1xi32>
  tile.kernel @other_step plan(#attn.plan<target = sm_80, block_q = 64, block_k = 64, warps = 4>) grid(%b, %h, %x) in (%nq, %nq, %nq) {
    %r:3 = scf.for %n = %c0 to %nk step %c2 iter_args(%o = %o0, %m = %m0, %l = %l0) -> (!o, !row, !row) {
      %col = arith.muli %n, %c32 : index
      %col32 = arith.index_cast %col : index to i32
      %cols = tile.coords %col32, 1 : vector<1x32xi32>
      %kt = tile.load %k[%col, %c0] : !view, !kv
      %s = vector.contract {indexing_maps = [#qk_q, #qk_k, #out], iterator_types = ["parallel", "parallel", "reduction"]} %q, %kt, %zero : !q, !kv into !s
      %y = tile.scores %s at(%nq32, %nq32, %rows, %cols) mask {
      ^bb0(%batch: i32, %head: i32, %query: i32, %key: i32):
        %visible = arith.cmpi sle, %key, %query : i32
        tile.yield %visible : i1
      } : !s, vector<16x1xi32>, vector<1x32xi32>
      %p, %m1, %l1, %c = tile.online_softmax %y, %m, %l : !s, !row
      %vt = tile.load %v[%col, %c0] : !view, !kv
      %pt = arith.truncf %p : !s to !p
      %cb = vector.broadcast %c : !row to !o
      %os = arith.mulf %o, %cb : !o
      %o1 = vector.contract {indexing_maps = [#qk_q, #pv_v, #out], iterator_types = ["parallel", "parallel", "reduction"]} %pt, %vt, %os : !p, !kv into !o
      scf.yield %o1, %m1, %l1 : !o, !row, !row
    }
    tile.store %r#0, %out[%x, %c0] : !o, memref<?x16xf32>
  }
  return
}

// REMARK: overlap-products{{.*}}the rescaled output has another use
// CHECK-LABEL: func.func @rescaled_output_is_used(
// CHECK: scf.for {{.*}} iter_args(%{{[a-z0-9]+}} = %{{[a-z0-9]+}}, %{{[a-z0-9]+}} = %{{[a-z0-9]+}}, %{{[a-z0-9]+}} = %{{[a-z0-9]+}})
// CHECK: tile.store
func.func @rescaled_output_is_used(%q: !q, %k: !view, %v: !view, %o0: !o, %m0: !row, %l0: !row,
                  %nq: index, %nk: index, %out: memref<?x16xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c16 = arith.constant 16 : index
  %c32 = arith.constant 32 : index
  %zero = arith.constant dense<0.0> : !s
  %nq32 = arith.index_cast %nq : index to i32
  %rows = tile.coords %nq32, 0 : vector<16x1xi32>
  tile.kernel @rescaled_output_is_used plan(#attn.plan<target = sm_80, block_q = 64, block_k = 64, warps = 4>) grid(%b, %h, %x) in (%nq, %nq, %nq) {
    %r:3 = scf.for %n = %c0 to %nk step %c1 iter_args(%o = %o0, %m = %m0, %l = %l0) -> (!o, !row, !row) {
      %col = arith.muli %n, %c32 : index
      %col32 = arith.index_cast %col : index to i32
      %cols = tile.coords %col32, 1 : vector<1x32xi32>
      %kt = tile.load %k[%col, %c0] : !view, !kv
      %s = vector.contract {indexing_maps = [#qk_q, #qk_k, #out], iterator_types = ["parallel", "parallel", "reduction"]} %q, %kt, %zero : !q, !kv into !s
      %y = tile.scores %s at(%nq32, %nq32, %rows, %cols) mask {
      ^bb0(%batch: i32, %head: i32, %query: i32, %key: i32):
        %visible = arith.cmpi sle, %key, %query : i32
        tile.yield %visible : i1
      } : !s, vector<16x1xi32>, vector<1x32xi32>
      %p, %m1, %l1, %c = tile.online_softmax %y, %m, %l : !s, !row
      %vt = tile.load %v[%col, %c0] : !view, !kv
      %pt = arith.truncf %p : !s to !p
      %cb = vector.broadcast %c : !row to !o
      %os = arith.mulf %o, %cb : !o
      tile.store %os, %out[%n, %c0] : !o, memref<?x16xf32>
      %o1 = vector.contract {indexing_maps = [#qk_q, #pv_v, #out], iterator_types = ["parallel", "parallel", "reduction"]} %pt, %vt, %os : !p, !kv into !o
      scf.yield %o1, %m1, %l1 : !o, !row, !row
    }
    tile.store %r#0, %out[%x, %c0] : !o, memref<?x16xf32>
  }
  return
}

// REMARK: overlap-products{{.*}}there is no loop over blocks
// CHECK-LABEL: func.func @no_loop
// CHECK: tile.kernel
func.func @no_loop(%nq: index, %o: !o, %out: memref<?x16xf32>) {
  %c0 = arith.constant 0 : index
  tile.kernel @no_loop plan(#attn.plan<target = sm_80, block_q = 64, block_k = 64, warps = 4>) grid(%b, %h, %x) in (%nq, %nq, %nq) {
    tile.store %o, %out[%x, %c0] : !o, memref<?x16xf32>
  }
  return
}

// REMARK: overlap-products{{.*}}no product of queries and keys
// CHECK-LABEL: func.func @scores_read_no_product(
// CHECK: scf.for {{.*}} iter_args(%{{[a-z0-9]+}} = %{{[a-z0-9]+}}, %{{[a-z0-9]+}} = %{{[a-z0-9]+}}, %{{[a-z0-9]+}} = %{{[a-z0-9]+}})
// CHECK: tile.store
func.func @scores_read_no_product(%q: !q, %k: !view, %v: !view, %o0: !o, %m0: !row, %l0: !row,
                  %nq: index, %nk: index, %out: memref<?x16xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c16 = arith.constant 16 : index
  %c32 = arith.constant 32 : index
  %zero = arith.constant dense<0.0> : !s
  %nq32 = arith.index_cast %nq : index to i32
  %rows = tile.coords %nq32, 0 : vector<16x1xi32>
  tile.kernel @scores_read_no_product plan(#attn.plan<target = sm_80, block_q = 64, block_k = 64, warps = 4>) grid(%batch, %head, %x) in (%nq, %nq, %nq) {
    %r:3 = scf.for %n = %c0 to %nk step %c1 iter_args(%o = %o0, %m = %m0, %l = %l0) -> (!o, !row, !row) {
      %col = arith.muli %n, %c32 : index
      %col32 = arith.index_cast %col : index to i32
      %cols = tile.coords %col32, 1 : vector<1x32xi32>
      %kt = tile.load %k[%col, %c0] : !view, !kv
      %s = vector.contract {indexing_maps = [#qk_q, #qk_k, #out], iterator_types = ["parallel", "parallel", "reduction"]} %q, %kt, %zero : !q, !kv into !s
      %y = tile.scores %s at(%nq32, %nq32, %rows, %cols) score {
      ^bb0(%x0: f32, %b: i32, %h: i32, %i: i32, %j: i32):
        %distance = arith.subi %j, %i : i32
        %bias = arith.sitofp %distance : i32 to f32
        tile.yield %bias : f32
      } : !s, vector<16x1xi32>, vector<1x32xi32>
      %p, %m1, %l1, %c = tile.online_softmax %y, %m, %l : !s, !row
      %vt = tile.load %v[%col, %c0] : !view, !kv
      %pt = arith.truncf %p : !s to !p
      %cb = vector.broadcast %c : !row to !o
      %os = arith.mulf %o, %cb : !o
      %o1 = vector.contract {indexing_maps = [#qk_q, #pv_v, #out], iterator_types = ["parallel", "parallel", "reduction"]} %pt, %vt, %os : !p, !kv into !o
      scf.yield %o1, %m1, %l1 : !o, !row, !row
    }
    tile.store %r#0, %out[%x, %c0] : !o, memref<?x16xf32>
  }
  return
}
