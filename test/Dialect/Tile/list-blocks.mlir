// RUN: attn-opt %s --tile-list-blocks --tile-expand-scores --split-input-file --remarks-filter='.*' 2>%t.remarks | FileCheck %s
// RUN: FileCheck %s --check-prefix=REMARK < %t.remarks
// RUN: sed 's/constant 16 : i32/constant 32 : i32/' %s | attn-opt --tile-list-blocks --tile-expand-scores --split-input-file | FileCheck %s --check-prefix=WHOLE

#nk = affine_map<(m, n, k) -> (m, k)>
#kn = affine_map<(m, n, k) -> (n, k)>
#mn = affine_map<(m, n, k) -> (m, n)>
#vk = affine_map<(m, n, k) -> (k, n)>
!view = memref<?x?x?x16xf16, strided<[?, ?, ?, 1], offset: ?>>
!lse = memref<?x?x?xf32, strided<[?, ?, 1], offset: ?>>
!ids = memref<?x?xi32, strided<[?, 1], offset: ?>>

// The mask asks whether two documents are the same: nothing is known before it
// is evaluated. It depends on the batch and not on the head.
// REMARK: remark: [Passed] list-blocks
// CHECK-LABEL: func @documents(
// CHECK-SAME: %[[Q:[a-z0-9]+]]: memref<?x?x?x16xf16,
// CHECK-DAG: %[[B:.*]] = memref.dim %[[Q]], %c0
// CHECK-DAG: %[[SQ:.*]] = memref.dim %[[Q]], %c2
// CHECK-DAG: %[[NQ:.*]] = arith.ceildivsi %[[SQ]], %c32
// CHECK-DAG: %[[NK:.*]] = arith.ceildivsi %{{.*}}, %c8
// CHECK: %[[GROUPS:.*]] = arith.ceildivsi %[[NK]], %c16
// CHECK: %[[WIDTH:.*]] = arith.muli %[[GROUPS]], %c16
// CHECK: %[[STATES:.*]] = memref.alloc(%[[B]], %[[NQ]], %[[WIDTH]]) : memref<?x1x?x?xi8>
// CHECK: %[[COUNTS:.*]] = memref.alloc(%[[B]], %[[NQ]]) : memref<?x1x?x2xi32>
// CHECK: %[[LISTS:.*]] = memref.alloc(%[[B]], %[[NQ]], %{{.*}}) : memref<?x1x?x?xi32>

// Each pair of blocks.
// CHECK: %[[PAIRS:.*]] = arith.muli %[[NQ]], %{{.*}}
// CHECK: tile.kernel @{{.*}} plan({{.*}}) grid(%[[X:.*]], %[[Y:.*]], %[[Z:.*]]) in (%[[B]], %c1, %[[PAIRS]])
// CHECK: %[[QB:.*]] = arith.divui %[[Z]],
// CHECK: %[[KB:.*]] = arith.remui %[[Z]],
// The first and the last document of all rows, and of all columns: they tell
// which blocks show nothing, or all.
// CHECK: tile.gather %{{.*}} -> vector<32x1xi32>
// CHECK: tile.gather %{{.*}} -> vector<1x8xi32>
// CHECK: %[[LEAST:.*]] = vector.multi_reduction <minsi>, %{{.*}} [0, 1] : vector<32x1xi32> to i32
// CHECK: %[[GREATEST:.*]] = vector.multi_reduction <maxsi>, %{{.*}} [0, 1] : vector<32x1xi32> to i32
// CHECK: vector.multi_reduction <minsi>, %{{.*}} [0, 1] : vector<1x8xi32> to i32
// CHECK: vector.multi_reduction <maxsi>, %{{.*}} [0, 1] : vector<1x8xi32> to i32
// CHECK: arith.cmpi sle, %[[LEAST]],
// CHECK: arith.cmpi sle, %[[GREATEST]],
// CHECK: %[[ISOPEN:.*]] = arith.andi %[[ROUGH:.*]]#0, %[[ROUGH]]#1 : i1
// CHECK: scf.if %[[ISOPEN]] -> (i1, i1) {
// Others are looked at, sixteen rows at a time, until both are found.
// CHECK: scf.for %{{.*}} = %c0 to %c8 step %c8
// CHECK: tile.gather %{{.*}} -> vector<1x8xi32>
// CHECK: scf.for %[[R:.*]] = %c0 to %c32 step %c16 iter_args(%[[ANYSEEN:.*]] = %{{.*}}, %[[ANYHIDDEN:.*]] = %{{.*}})
// CHECK: %[[ISPARTIAL:.*]] = arith.andi %[[ANYSEEN]], %[[ANYHIDDEN]] : i1
// CHECK: scf.if %[[ISPARTIAL]] -> (i1, i1) {
// CHECK-NEXT: scf.yield %[[ANYSEEN]], %[[ANYHIDDEN]]
// CHECK-NEXT: } else {
// CHECK: tile.coords %{{.*}}, 0 : vector<16x1xi32>
// CHECK: tile.gather %{{.*}} -> vector<16x1xi32>
// CHECK: vector.multi_reduction <or>, %{{.*}} [0, 1] : vector<16x8xi1> to i1
// CHECK: vector.multi_reduction <or>, %{{.*}} [0, 1] : vector<16x8xi1> to i1
// CHECK: %[[IS:.*]] = arith.cmpi slt, %[[KB]], %[[NK]]
// CHECK: arith.andi %{{.*}}, %[[IS]]
// CHECK: memref.store %{{.*}}, %[[STATES]][%[[X]], %[[Y]], %[[QB]], %[[KB]]]

// Lists of them, sixteen key blocks at a time: those in front and all are
// counted, then the partial and the full ones are listed.
// CHECK: %[[PARTS:.*]] = arith.maxsi %[[GROUPS]], %c1
// CHECK: %[[ALLPARTS:.*]] = arith.muli %[[NQ]], %[[PARTS]]
// CHECK: tile.kernel @{{.*}} plan({{.*}}) grid(%{{.*}}, %{{.*}}, %[[Z2:.*]]) in (%[[B]], %c1, %[[ALLPARTS]])
// CHECK: %[[QB2:.*]] = arith.divui %[[Z2]], %[[PARTS]]
// CHECK: %[[PART2:.*]] = arith.remui %[[Z2]], %[[PARTS]]
// CHECK: %[[COUNTED:.*]]:4 = scf.for %[[OTHER:.*]] = %c0 to %[[GROUPS]]
// CHECK-COUNT-16: memref.load %[[STATES]][{{.*}}, %[[QB2]], %{{.*}}]
// CHECK: arith.cmpi slt, %[[OTHER]], %[[PART2]]
// CHECK: scf.yield
// CHECK: %[[HAS:.*]] = arith.cmpi slt, %[[PART2]], %[[GROUPS]]
// CHECK: scf.if %[[HAS]] {
// CHECK: %[[BEGIN:.*]] = arith.muli %[[PART2]], %c16
// CHECK: %[[BEHIND:.*]] = arith.addi %[[COUNTED]]#2, %[[COUNTED]]#1
// CHECK: scf.for %[[I:.*]] = %c0 to %c16 step %c1 iter_args(%[[AP:.*]] = %[[COUNTED]]#0, %[[AF:.*]] = %[[BEHIND]])
// CHECK: %[[BLOCK:.*]] = arith.addi %[[BEGIN]], %[[I]]
// CHECK: %[[STATE8:.*]] = memref.load %[[STATES]][{{.*}}, %[[BLOCK]]]
// CHECK: %[[STATE:.*]] = arith.extui %[[STATE8]]
// CHECK: %[[ANY:.*]] = arith.cmpi ne, %[[STATE]], %c0_i32
// CHECK: scf.if %[[ANY]] {
// CHECK: %[[ISP:.*]] = arith.cmpi eq, %[[STATE]], %c1_i32
// CHECK: %[[AT32:.*]] = arith.select %[[ISP]], %[[AP]], %[[AF]]
// CHECK: %[[AT:.*]] = arith.index_cast %[[AT32]]
// CHECK: memref.store %{{.*}}, %[[LISTS]][{{.*}}, %[[AT]]]
// CHECK: arith.addi %[[COUNTED]]#2, %[[COUNTED]]#3
// CHECK: memref.store %{{.*}}, %[[LISTS]]
// CHECK: memref.store %{{.*}}, %[[COUNTS]]
// CHECK: memref.store %{{.*}}, %[[COUNTS]]

// What is written where nothing shows, once more than for the rest.
// CHECK: tile.kernel @{{.*}} plan({{.*}}) grid(%[[B3:.*]], %[[H3:.*]], %[[Q3:.*]]) in ({{.*}}) independent
// CHECK: %[[P3:.*]] = memref.load %[[COUNTS]][%[[B3]], %c0, %[[Q3]], %c0]
// CHECK: %[[F3:.*]] = memref.load %[[COUNTS]][%[[B3]], %c0, %[[Q3]], %c1]
// CHECK: %[[ALL3:.*]] = arith.addi %[[P3]], %[[F3]]
// CHECK: %[[WORK:.*]] = arith.cmpi ne, %[[ALL3]], %c0_i32
// CHECK-NEXT: tile.exit_if %[[WORK]]
// CHECK-NOT: tile.load
// CHECK-NOT: scf.for
// CHECK: %[[NOTHING:.*]] = arith.constant dense<0.000000e+00> : vector<32x16xf16>
// CHECK-NEXT: tile.store %[[NOTHING]], %{{.*}}[%[[B3]], %[[H3]],
// CHECK-NEXT: }

// The kernel reads them.
// CHECK: tile.kernel @{{.*}} plan({{.*}}) grid(%[[BATCH:.*]], %{{.*}}, %[[QUERY:.*]]) in
// CHECK: arith.cmpi eq,
// CHECK-NEXT: tile.exit_if
// CHECK: %[[P32:.*]] = memref.load %[[COUNTS]][%[[BATCH]], %c0, %[[QUERY]], %c0]
// CHECK: %[[P:.*]] = arith.index_cast %[[P32]]
// CHECK: %[[F32:.*]] = memref.load %[[COUNTS]][%[[BATCH]], %c0, %[[QUERY]], %c1]
// CHECK: %[[F:.*]] = arith.index_cast %[[F32]]
// CHECK: %[[ALL:.*]] = arith.addi %[[P]], %[[F]]
// CHECK: %[[PART:.*]]:3 = scf.for %[[T:.*]] = %c0 to %[[P]]
// CHECK: %[[E0:.*]] = arith.maxsi %[[T]], %c0
// CHECK: %[[E:.*]] = arith.minsi %[[E0]], %[[ALL]]
// CHECK: %[[N32:.*]] = memref.load %[[LISTS]][%[[BATCH]], %c0, %[[QUERY]], %[[E]]]
// CHECK: %[[N:.*]] = arith.index_cast %[[N32]]
// CHECK: arith.muli %[[N]], %c8
// CHECK: arith.select %{{.*}} : vector<32x8xi1>, vector<32x8xf32>
// CHECK: scf.for %{{.*}} = %[[P]] to %[[ALL]] step %c1 iter_args(%{{.*}} = %[[PART]]#0,
// CHECK-NOT: arith.select {{.*}} : vector<32x8xi1>, vector<32x8xf32>
// CHECK: tile.online_softmax
// CHECK: memref.dealloc %[[STATES]]
// CHECK: memref.dealloc %[[COUNTS]]
// CHECK: memref.dealloc %[[LISTS]]
func.func @documents(%q: !view, %k: !view, %v: !view, %ids: !ids, %o: !view) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c8 = arith.constant 8 : index
  %c32 = arith.constant 32 : index
  %b = memref.dim %q, %c0 : !view
  %h = memref.dim %q, %c1 : !view
  %sq = memref.dim %q, %c2 : !view
  %sk = memref.dim %k, %c2 : !view
  %nq = arith.ceildivsi %sq, %c32 : index
  %nk = arith.ceildivsi %sk, %c8 : index
  %sk32 = arith.index_cast %sk : index to i32
  tile.kernel @documents plan(#attn.plan<target = sm_80, block_q = 64, block_k = 64, warps = 4>) grid(%batch, %head, %x) in (%b, %h, %nq) {
    %row = arith.muli %x, %c32 : index
    %row32 = arith.index_cast %row : index to i32
    %batch32 = arith.index_cast %batch : index to i32
    %rows = tile.coords %row32, 0 : vector<32x1xi32>
    %qt = tile.load %q[%batch, %head, %row, %c0] : !view, vector<32x16xf16>
    %o0 = arith.constant dense<0.0> : vector<32x16xf32>
    %m0 = arith.constant dense<0xFF800000> : vector<32x1xf32>
    %l0 = arith.constant dense<0.0> : vector<32x1xf32>
    %zero = arith.constant dense<0.0> : vector<32x8xf32>
    %r:3 = scf.for %n = %c0 to %nk step %c1 iter_args(%oi = %o0, %mi = %m0, %li = %l0)
        -> (vector<32x16xf32>, vector<32x1xf32>, vector<32x1xf32>) {
      %col = arith.muli %n, %c8 : index
      %col32 = arith.index_cast %col : index to i32
      %cols = tile.coords %col32, 1 : vector<1x8xi32>
      %kt = tile.load %k[%batch, %head, %col, %c0] : !view, vector<8x16xf16>
      %s = vector.contract {indexing_maps = [#nk, #kn, #mn], iterator_types = ["parallel", "parallel", "reduction"], kind = #vector.kind<add>} %qt, %kt, %zero : vector<32x16xf16>, vector<8x16xf16> into vector<32x8xf32>
      %y = tile.scores %s at(%batch32, %batch32, %rows, %cols) below(%sk32) mask {
      ^bb0(%bb: i32, %hh: i32, %i: i32, %j: i32):
        %mine = tile.gather %ids[%bb, %i] : !ids, (i32, i32) -> i32
        %theirs = tile.gather %ids[%bb, %j] : !ids, (i32, i32) -> i32
        %same = arith.cmpi eq, %mine, %theirs : i32
        tile.yield %same : i1
      } : vector<32x8xf32>, vector<32x1xi32>, vector<1x8xi32>
      %p, %m, %l, %alpha = tile.online_softmax %y, %mi, %li {guard} : vector<32x8xf32>, vector<32x1xf32>
      %vt = tile.load %v[%batch, %head, %col, %c0] : !view, vector<8x16xf16>
      %p16 = arith.truncf %p : vector<32x8xf32> to vector<32x8xf16>
      %ab = vector.broadcast %alpha : vector<32x1xf32> to vector<32x16xf32>
      %os = arith.mulf %oi, %ab : vector<32x16xf32>
      %on = vector.contract {indexing_maps = [#nk, #vk, #mn], iterator_types = ["parallel", "parallel", "reduction"], kind = #vector.kind<add>} %p16, %vt, %os : vector<32x8xf16>, vector<8x16xf16> into vector<32x16xf32>
      scf.yield %on, %m, %l : vector<32x16xf32>, vector<32x1xf32>, vector<32x1xf32>
    }
    %of = arith.truncf %r#0 : vector<32x16xf32> to vector<32x16xf16>
    tile.store %of, %o[%batch, %head, %row, %c0] : vector<32x16xf16>, !view
  }
  return
}

// -----

// Bounds say enough: the loop is left to tile-peel-masks.
// REMARK: remark: [Missed] list-blocks {{.*}} Remark="bounds of rows and keys say which blocks the mask leaves"
// CHECK-LABEL: func @causal(
// CHECK-NOT: memref.alloc
func.func @causal(%n: index, %x: index, %s: vector<32x8xf32>, %m0: vector<32x1xf32>) -> vector<32x1xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %c32 = arith.constant 32 : index
  tile.kernel @causal plan(#attn.plan<target = sm_80, block_q = 64, block_k = 64, warps = 4>) grid(%batch, %head, %qb) in (%n, %n, %n) {
    %row = arith.muli %qb, %c32 : index
    %row32 = arith.index_cast %row : index to i32
    %rows = tile.coords %row32, 0 : vector<32x1xi32>
    %r:2 = scf.for %t = %c0 to %n step %c1 iter_args(%mi = %m0, %li = %m0) -> (vector<32x1xf32>, vector<32x1xf32>) {
      %col = arith.muli %t, %c8 : index
      %col32 = arith.index_cast %col : index to i32
      %cols = tile.coords %col32, 1 : vector<1x8xi32>
      %y = tile.scores %s at(%row32, %row32, %rows, %cols) mask {
      ^bb0(%bb: i32, %hh: i32, %i: i32, %j: i32):
        %mask = arith.cmpi sge, %i, %j : i32
        tile.yield %mask : i1
      } : vector<32x8xf32>, vector<32x1xi32>, vector<1x8xi32>
      %p, %m, %l, %alpha = tile.online_softmax %y, %mi, %li {guard} : vector<32x8xf32>, vector<32x1xf32>
      scf.yield %m, %l : vector<32x1xf32>, vector<32x1xf32>
    }
  }
  return %m0 : vector<32x1xf32>
}

// -----

// REMARK: remark: [Missed] list-blocks {{.*}} Remark="the kernel loads no tile of queries before its loop"
// CHECK-LABEL: func @no_queries(
// CHECK-NOT: memref.alloc
func.func @no_queries(%n: index, %s: vector<32x8xf32>, %m0: vector<32x1xf32>, %map: memref<?xi1>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  tile.kernel @no_queries plan(#attn.plan<target = sm_80, block_q = 64, block_k = 64, warps = 4>) grid(%batch, %head, %qb) in (%n, %n, %n) {
    %r:2 = scf.for %t = %c0 to %n step %c1 iter_args(%mi = %m0, %li = %m0) -> (vector<32x1xf32>, vector<32x1xf32>) {
      %col = arith.muli %t, %c8 : index
      %col32 = arith.index_cast %col : index to i32
      %cols = tile.coords %col32, 1 : vector<1x8xi32>
      %rows = tile.coords %col32, 0 : vector<32x1xi32>
      %y = tile.scores %s at(%col32, %col32, %rows, %cols) mask {
      ^bb0(%bb: i32, %hh: i32, %i: i32, %j: i32):
        %mask = tile.gather %map[%j] : memref<?xi1>, (i32) -> i1
        tile.yield %mask : i1
      } : vector<32x8xf32>, vector<32x1xi32>, vector<1x8xi32>
      %p, %m, %l, %alpha = tile.online_softmax %y, %mi, %li {guard} : vector<32x8xf32>, vector<32x1xf32>
      scf.yield %m, %l : vector<32x1xf32>, vector<32x1xf32>
    }
  }
  return
}

// -----

// REMARK: remark: [Missed] list-blocks {{.*}} Remark="the scores are not those of a block of queries and of keys"
// CHECK-LABEL: func @other_rows(
// CHECK-NOT: memref.alloc
func.func @other_rows(%n: index, %s: vector<32x8xf32>, %m0: vector<32x1xf32>, %map: memref<?xi1>, %rows: vector<32x1xi32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  tile.kernel @other_rows plan(#attn.plan<target = sm_80, block_q = 64, block_k = 64, warps = 4>) grid(%batch, %head, %qb) in (%n, %n, %n) {
    %r:2 = scf.for %t = %c0 to %n step %c1 iter_args(%mi = %m0, %li = %m0) -> (vector<32x1xf32>, vector<32x1xf32>) {
      %col = arith.muli %t, %c8 : index
      %col32 = arith.index_cast %col : index to i32
      %cols = tile.coords %col32, 1 : vector<1x8xi32>
      %y = tile.scores %s at(%col32, %col32, %rows, %cols) mask {
      ^bb0(%bb: i32, %hh: i32, %i: i32, %j: i32):
        %mask = tile.gather %map[%j] : memref<?xi1>, (i32) -> i1
        tile.yield %mask : i1
      } : vector<32x8xf32>, vector<32x1xi32>, vector<1x8xi32>
      %p, %m, %l, %alpha = tile.online_softmax %y, %mi, %li {guard} : vector<32x8xf32>, vector<32x1xf32>
      scf.yield %m, %l : vector<32x1xf32>, vector<32x1xf32>
    }
  }
  return
}

// -----

#nk = affine_map<(m, n, k) -> (m, k)>
#kn = affine_map<(m, n, k) -> (n, k)>
#mn = affine_map<(m, n, k) -> (m, n)>
#vk = affine_map<(m, n, k) -> (k, n)>
!view = memref<?x?x?x16xf16, strided<[?, ?, ?, 1], offset: ?>>
!lse = memref<?x?x?xf32, strided<[?, ?, 1], offset: ?>>
!ids = memref<?x?xi32, strided<[?, 1], offset: ?>>

// A map of squares of 16 by 16: one element of each group of 16 rows and of 8
// columns tells everything, but for the end of the keys. Of these a block has two:
// 16 tiles by 16 blocks are looked at at once, tiles behind the last one as that
// one, first at one group of each and then at the other.
// REMARK: remark: [Passed] list-blocks
// CHECK-LABEL: func @block_map(
// CHECK-SAME: %[[MAP:[a-z0-9]+]]: memref<?x?xi32,
// CHECK: tile.kernel @block_map_block_states
// CHECK: %[[NUMBER:.*]] = tile.coords %{{.*}}, 0 : vector<16x1xi32>
// CHECK: %[[BLOCK:.*]] = tile.coords %{{.*}}, 1 : vector<1x16xi32>
// CHECK: %[[TILE:.*]] = arith.minsi %[[NUMBER]], %{{.*}}
// CHECK: %[[ROWS:.*]] = arith.muli %[[TILE]], %{{.*}} : vector<16x1xi32>
// CHECK: %[[COLS:.*]] = arith.muli %[[BLOCK]], %{{.*}} : vector<1x16xi32>
// CHECK: tile.gather %[[MAP]]{{.*}} -> vector<16x16xi32>
// CHECK: %[[ENDS:.*]] = vector.broadcast %[[END:.*]] : i32 to vector<1x16xi32>
// CHECK: arith.cmpi slt, %[[COLS]], %[[ENDS]] : vector<1x16xi32>
// CHECK: arith.subi %[[END]], %c7_i32
// CHECK: arith.cmpi slt, %[[COLS]], %{{.*}} : vector<1x16xi32>
// CHECK: arith.addi %[[ROWS]], %{{.*}} : vector<16x1xi32>
// CHECK: tile.gather %[[MAP]]{{.*}} -> vector<16x16xi32>
// CHECK: %[[SEEN:.*]] = arith.ori
// CHECK: %[[HIDDEN:.*]] = arith.ori
// CHECK: %[[EXISTS:.*]] = vector.broadcast %{{.*}} : vector<1x16xi1> to vector<16x16xi1>
// CHECK: %[[SOME:.*]] = arith.select %[[HIDDEN]], %{{.*}} : vector<16x16xi1>, vector<16x16xi8>
// CHECK: %[[SHOWS:.*]] = arith.andi %[[SEEN]], %[[EXISTS]]
// CHECK: %[[STATE:.*]] = arith.select %[[SHOWS]], %[[SOME]], %{{.*}}
// CHECK: tile.store %[[STATE]], {{.*}} : vector<16x16xi8>, memref<1x1x?x?xi8>
// CHECK-COUNT-2: tile.exit_if
// CHECK: tile.gather

// Of 32 by 16 a block is one group. What is listed shows then, up to the end of
// the keys.
// WHOLE-LABEL: func @block_map(
// WHOLE: tile.kernel @block_map_block_states
// WHOLE: %[[NUMBER:.*]] = tile.coords %{{.*}}, 0 : vector<16x1xi32>
// WHOLE: %[[BLOCK:.*]] = tile.coords %{{.*}}, 1 : vector<1x16xi32>
// WHOLE: %[[TILE:.*]] = arith.minsi %[[NUMBER]], %{{.*}}
// WHOLE: arith.muli %[[TILE]], %{{.*}} : vector<16x1xi32>
// WHOLE: arith.muli %[[BLOCK]], %{{.*}} : vector<1x16xi32>
// WHOLE: tile.gather %{{.*}} -> vector<16x16xi32>
// WHOLE-NOT: vector.multi_reduction
// WHOLE: tile.store %{{.*}} : vector<16x16xi8>, memref<1x1x?x?xi8>
// WHOLE-COUNT-2: tile.exit_if
// WHOLE-NOT: tile.gather
// WHOLE: %[[IN:.*]] = arith.cmpi slt, %{{.*}} : vector<1x8xi32>
// WHOLE: %[[MASK:.*]] = vector.broadcast %[[IN]] : vector<1x8xi1> to vector<32x8xi1>
// WHOLE: arith.select %[[MASK]], %{{.*}} : vector<32x8xi1>, vector<32x8xf32>
// WHOLE: scf.for
// WHOLE-NOT: tile.gather
// WHOLE-NOT: arith.select {{.*}} : vector<32x8xi1>, vector<32x8xf32>
// WHOLE: return
func.func @block_map(%q: !view, %k: !view, %v: !view, %map: !ids, %o: !view) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c8 = arith.constant 8 : index
  %c32 = arith.constant 32 : index
  %b = memref.dim %q, %c0 : !view
  %h = memref.dim %q, %c1 : !view
  %sq = memref.dim %q, %c2 : !view
  %sk = memref.dim %k, %c2 : !view
  %nq = arith.ceildivsi %sq, %c32 : index
  %nk = arith.ceildivsi %sk, %c8 : index
  %sk32 = arith.index_cast %sk : index to i32
  tile.kernel @block_map plan(#attn.plan<target = sm_80, block_q = 64, block_k = 64, warps = 4>) grid(%batch, %head, %x) in (%b, %h, %nq) {
    %row = arith.muli %x, %c32 : index
    %row32 = arith.index_cast %row : index to i32
    %batch32 = arith.index_cast %batch : index to i32
    %rows = tile.coords %row32, 0 : vector<32x1xi32>
    %qt = tile.load %q[%batch, %head, %row, %c0] : !view, vector<32x16xf16>
    %o0 = arith.constant dense<0.0> : vector<32x16xf32>
    %m0 = arith.constant dense<0xFF800000> : vector<32x1xf32>
    %l0 = arith.constant dense<0.0> : vector<32x1xf32>
    %zero = arith.constant dense<0.0> : vector<32x8xf32>
    %r:3 = scf.for %n = %c0 to %nk step %c1 iter_args(%oi = %o0, %mi = %m0, %li = %l0)
        -> (vector<32x16xf32>, vector<32x1xf32>, vector<32x1xf32>) {
      %col = arith.muli %n, %c8 : index
      %col32 = arith.index_cast %col : index to i32
      %cols = tile.coords %col32, 1 : vector<1x8xi32>
      %kt = tile.load %k[%batch, %head, %col, %c0] : !view, vector<8x16xf16>
      %s = vector.contract {indexing_maps = [#nk, #kn, #mn], iterator_types = ["parallel", "parallel", "reduction"], kind = #vector.kind<add>} %qt, %kt, %zero : vector<32x16xf16>, vector<8x16xf16> into vector<32x8xf32>
      %y = tile.scores %s at(%batch32, %batch32, %rows, %cols) below(%sk32) mask {
      ^bb0(%bb: i32, %hh: i32, %i: i32, %j: i32):
        %size = arith.constant 16 : i32
        %mine = arith.divui %i, %size : i32
        %width = arith.constant 4 : i32
        %theirs = arith.shrui %j, %width : i32
        %entry = tile.gather %map[%mine, %theirs] : !ids, (i32, i32) -> i32
        %nothing = arith.constant 0 : i32
        %mask = arith.cmpi ne, %entry, %nothing : i32
        tile.yield %mask : i1
      } : vector<32x8xf32>, vector<32x1xi32>, vector<1x8xi32>
      %p, %m, %l, %alpha = tile.online_softmax %y, %mi, %li {guard} : vector<32x8xf32>, vector<32x1xf32>
      %vt = tile.load %v[%batch, %head, %col, %c0] : !view, vector<8x16xf16>
      %p16 = arith.truncf %p : vector<32x8xf32> to vector<32x8xf16>
      %ab = vector.broadcast %alpha : vector<32x1xf32> to vector<32x16xf32>
      %os = arith.mulf %oi, %ab : vector<32x16xf32>
      %on = vector.contract {indexing_maps = [#nk, #vk, #mn], iterator_types = ["parallel", "parallel", "reduction"], kind = #vector.kind<add>} %p16, %vt, %os : vector<32x8xf16>, vector<8x16xf16> into vector<32x16xf32>
      scf.yield %on, %m, %l : vector<32x16xf32>, vector<32x1xf32>, vector<32x1xf32>
    }
    %of = arith.truncf %r#0 : vector<32x16xf32> to vector<32x16xf16>
    tile.store %of, %o[%batch, %head, %row, %c0] : vector<32x16xf16>, !view
  }
  return
}

// -----

// A loop that nobody wants anything of: no lists are made, and the kernel, which
// has no effect, is dropped with the scores.
// REMARK: remark: [Missed] list-blocks {{.*}} Remark="nothing uses the results of the loop"
// CHECK-LABEL: func.func @unused
// CHECK-NEXT: return
#nk = affine_map<(m, n, k) -> (m, k)>
#kn = affine_map<(m, n, k) -> (n, k)>
#mn = affine_map<(m, n, k) -> (m, n)>
#vk = affine_map<(m, n, k) -> (k, n)>
!view = memref<?x?x?x16xf16, strided<[?, ?, ?, 1], offset: ?>>
!lse = memref<?x?x?xf32, strided<[?, ?, 1], offset: ?>>
!ids = memref<?x?xi32, strided<[?, 1], offset: ?>>


func.func @unused(%q: !view, %k: !view, %v: !view, %map: !ids, %o: !view) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c8 = arith.constant 8 : index
  %c32 = arith.constant 32 : index
  %b = memref.dim %q, %c0 : !view
  %h = memref.dim %q, %c1 : !view
  %sq = memref.dim %q, %c2 : !view
  %sk = memref.dim %k, %c2 : !view
  %nq = arith.ceildivsi %sq, %c32 : index
  %nk = arith.ceildivsi %sk, %c8 : index
  %sk32 = arith.index_cast %sk : index to i32
  tile.kernel @unused plan(#attn.plan<target = sm_80, block_q = 64, block_k = 64, warps = 4>) grid(%batch, %head, %x) in (%b, %h, %nq) {
    %row = arith.muli %x, %c32 : index
    %row32 = arith.index_cast %row : index to i32
    %batch32 = arith.index_cast %batch : index to i32
    %rows = tile.coords %row32, 0 : vector<32x1xi32>
    %qt = tile.load %q[%batch, %head, %row, %c0] : !view, vector<32x16xf16>
    %o0 = arith.constant dense<0.0> : vector<32x16xf32>
    %m0 = arith.constant dense<0xFF800000> : vector<32x1xf32>
    %l0 = arith.constant dense<0.0> : vector<32x1xf32>
    %zero = arith.constant dense<0.0> : vector<32x8xf32>
    %r:3 = scf.for %n = %c0 to %nk step %c1 iter_args(%oi = %o0, %mi = %m0, %li = %l0)
        -> (vector<32x16xf32>, vector<32x1xf32>, vector<32x1xf32>) {
      %col = arith.muli %n, %c8 : index
      %col32 = arith.index_cast %col : index to i32
      %cols = tile.coords %col32, 1 : vector<1x8xi32>
      %kt = tile.load %k[%batch, %head, %col, %c0] : !view, vector<8x16xf16>
      %s = vector.contract {indexing_maps = [#nk, #kn, #mn], iterator_types = ["parallel", "parallel", "reduction"], kind = #vector.kind<add>} %qt, %kt, %zero : vector<32x16xf16>, vector<8x16xf16> into vector<32x8xf32>
      %y = tile.scores %s at(%batch32, %batch32, %rows, %cols) below(%sk32) mask {
      ^bb0(%bb: i32, %hh: i32, %i: i32, %j: i32):
        %size = arith.constant 16 : i32
        %mine = arith.divui %i, %size : i32
        %width = arith.constant 4 : i32
        %theirs = arith.shrui %j, %width : i32
        %entry = tile.gather %map[%mine, %theirs] : !ids, (i32, i32) -> i32
        %nothing = arith.constant 0 : i32
        %mask = arith.cmpi ne, %entry, %nothing : i32
        tile.yield %mask : i1
      } : vector<32x8xf32>, vector<32x1xi32>, vector<1x8xi32>
      %p, %m, %l, %alpha = tile.online_softmax %y, %mi, %li {guard} : vector<32x8xf32>, vector<32x1xf32>
      %vt = tile.load %v[%batch, %head, %col, %c0] : !view, vector<8x16xf16>
      %p16 = arith.truncf %p : vector<32x8xf32> to vector<32x8xf16>
      %ab = vector.broadcast %alpha : vector<32x1xf32> to vector<32x16xf32>
      %os = arith.mulf %oi, %ab : vector<32x16xf32>
      %on = vector.contract {indexing_maps = [#nk, #vk, #mn], iterator_types = ["parallel", "parallel", "reduction"], kind = #vector.kind<add>} %p16, %vt, %os : vector<32x8xf16>, vector<8x16xf16> into vector<32x16xf32>
      scf.yield %on, %m, %l : vector<32x16xf32>, vector<32x1xf32>, vector<32x1xf32>
    }
  }
  return
}

// -----

// A loop over blocks of queries, of a tile of keys: lists of those to which
// something of the tile shows. Queries past the end see nothing, and the mask
// says whether they hide something.
// REMARK: remark: [Passed] list-blocks
// CHECK-LABEL: func @queries(
// CHECK-SAME: %[[Q:[a-z0-9]+]]: memref<?x?x?x16xf16,
// CHECK-DAG: %[[B:.*]] = memref.dim %[[Q]], %c0
// CHECK-DAG: %[[SQ:.*]] = memref.dim %[[Q]], %c2
// CHECK-DAG: %[[NQ:.*]] = arith.ceildivsi %[[SQ]], %c8
// CHECK-DAG: %[[NK:.*]] = arith.ceildivsi %{{.*}}, %c32
// CHECK: %[[GROUPS:.*]] = arith.ceildivsi %[[NQ]], %c16
// CHECK: %[[WIDTH:.*]] = arith.muli %[[GROUPS]], %c16
// CHECK: %[[STATES:.*]] = memref.alloc(%[[B]], %[[NK]], %[[WIDTH]]) : memref<?x1x?x?xi8>
// CHECK: %[[COUNTS:.*]] = memref.alloc(%[[B]], %[[NK]]) : memref<?x1x?x2xi32>
// CHECK: %[[LISTS:.*]] = memref.alloc(%[[B]], %[[NK]], %{{.*}}) : memref<?x1x?x?xi32>

// CHECK: %[[SQ32:.*]] = arith.index_cast %[[SQ]]
// CHECK: tile.kernel @queries_block_states plan({{.*}}) grid(%[[X:.*]], %[[Y:.*]], %[[Z:.*]]) in (%[[B]], %c1, %{{.*}})
// CHECK: %[[KB:.*]] = arith.divui %[[Z]],
// CHECK: %[[QB:.*]] = arith.remui %[[Z]],
// CHECK: arith.muli %[[KB]], %c32
// CHECK: arith.muli %[[QB]], %c8
// CHECK-COUNT-4: vector.multi_reduction <{{minsi|maxsi}}>
// CHECK: %[[ISOPEN:.*]] = arith.andi %{{.*}}#0, %{{.*}}#1 : i1
// CHECK: scf.if %[[ISOPEN]] -> (i1, i1) {
// CHECK: %[[QUERIES:.*]] = tile.coords %{{.*}}, 1 : vector<1x8xi32>
// CHECK: tile.gather %{{.*}} -> vector<1x8xi32>
// CHECK: scf.for %{{.*}} = %c0 to %c32 step %c16
// CHECK: %[[KEYS:.*]] = tile.coords %{{.*}}, 0 : vector<16x1xi32>
// CHECK: tile.gather %{{.*}} -> vector<16x1xi32>
// CHECK: %[[MASK:.*]] = arith.cmpi eq, %{{.*}} : vector<16x8xi32>
// CHECK: %[[LIMIT:.*]] = vector.broadcast %[[SQ32]] : i32 to vector<1x8xi32>
// CHECK: arith.cmpi slt, %[[QUERIES]], %[[LIMIT]]
// CHECK: %[[EXISTS:.*]] = vector.broadcast %{{.*}} : vector<1x8xi1> to vector<16x8xi1>
// CHECK: arith.cmpi slt, %[[KEYS]], %{{.*}} : vector<16x1xi32>
// CHECK: %[[SHOWN:.*]] = arith.andi %[[MASK]], %{{.*}}
// CHECK: %[[SEEN:.*]] = arith.andi %[[SHOWN]], %[[EXISTS]]
// CHECK: %[[HIDDEN:.*]] = arith.xori %[[SHOWN]],
// CHECK-DAG: vector.multi_reduction <or>, %[[SEEN]],
// CHECK-DAG: vector.multi_reduction <or>, %[[HIDDEN]],
// CHECK: %[[IS:.*]] = arith.cmpi slt, %[[QB]], %[[NQ]]
// CHECK: memref.store %{{.*}}, %[[STATES]][%[[X]], %[[Y]], %[[KB]], %[[QB]]]
// CHECK: tile.kernel @queries_block_lists

// Keys that nobody sees have gradients of zero, wherever they are put.
// CHECK: tile.kernel @queries_empty_blocks {{.*}} independent
// CHECK: tile.exit_if
// CHECK-NOT: scf.for
// CHECK: scf.if
// CHECK-NEXT: tile.store %{{.*}} : vector<32x16xf32>
// CHECK-NEXT: } else {
// CHECK-NEXT: %[[NOTHING:.*]] = arith.constant dense<0.000000e+00> : vector<32x16xf16>
// CHECK-NEXT: tile.store %[[NOTHING]],

// CHECK: tile.kernel @queries plan({{.*}}) grid(%[[BATCH:.*]], %{{.*}}, %[[KEY:.*]]) in
// CHECK: tile.exit_if
// CHECK: memref.load %[[COUNTS]][%[[BATCH]], %c0, %[[KEY]], %c0]
// CHECK: memref.load %[[COUNTS]][%[[BATCH]], %c0, %[[KEY]], %c1]
// CHECK: %[[PART:.*]] = scf.for %{{.*}} = %c0 to %[[P:.*]] step
// CHECK: %[[N32:.*]] = memref.load %[[LISTS]][%[[BATCH]], %c0, %[[KEY]], %{{.*}}]
// CHECK: %[[N:.*]] = arith.index_cast %[[N32]]
// CHECK: %[[ROW:.*]] = arith.muli %[[N]], %c8
// CHECK: tile.load %[[Q]][%{{.*}}, %{{.*}}, %[[ROW]], %c0]
// CHECK: arith.select %{{.*}} : vector<32x8xi1>, vector<32x8xf32>
// CHECK: scf.for %{{.*}} = %[[P]] to %{{.*}} step %c1 iter_args(%{{.*}} = %[[PART]])
// CHECK: memref.load %[[LISTS]]
// CHECK-NOT: arith.select {{.*}} : vector<32x8xi1>, vector<32x8xf32>
// CHECK: memref.dealloc %[[STATES]]

#nk = affine_map<(m, n, k) -> (m, k)>
#kn = affine_map<(m, n, k) -> (n, k)>
#mn = affine_map<(m, n, k) -> (m, n)>
#vk = affine_map<(m, n, k) -> (k, n)>
!view = memref<?x?x?x16xf16, strided<[?, ?, ?, 1], offset: ?>>
!sums = memref<?x?x?x16xf32>
!ids = memref<?x?xi32, strided<[?, 1], offset: ?>>
func.func @queries(%q: !view, %k: !view, %ids: !ids, %dk: !view, %sums: !sums, %shared: i1) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c8 = arith.constant 8 : index
  %c32 = arith.constant 32 : index
  %b = memref.dim %q, %c0 : !view
  %h = memref.dim %q, %c1 : !view
  %sq = memref.dim %q, %c2 : !view
  %sk = memref.dim %k, %c2 : !view
  %nq = arith.ceildivsi %sq, %c8 : index
  %nk = arith.ceildivsi %sk, %c32 : index
  %sk32 = arith.index_cast %sk : index to i32
  tile.kernel @queries plan(#attn.plan<target = sm_80, block_q = 64, block_k = 64, warps = 4>) grid(%batch, %head, %x) in (%b, %h, %nk) {
    %first = arith.muli %x, %c32 : index
    %first32 = arith.index_cast %first : index to i32
    %batch32 = arith.index_cast %batch : index to i32
    %keys = tile.coords %first32, 0 : vector<32x1xi32>
    %kt = tile.load %k[%batch, %head, %first, %c0] : !view, vector<32x16xf16>
    %zero = arith.constant dense<0.0> : vector<32x16xf32>
    %none = arith.constant dense<0.0> : vector<32x8xf32>
    %r = scf.for %n = %c0 to %nq step %c1 iter_args(%sum = %zero) -> (vector<32x16xf32>) {
      %row = arith.muli %n, %c8 : index
      %row32 = arith.index_cast %row : index to i32
      %queries = tile.coords %row32, 1 : vector<1x8xi32>
      %qt = tile.load %q[%batch, %head, %row, %c0] : !view, vector<8x16xf16>
      %s = vector.contract {indexing_maps = [#nk, #kn, #mn], iterator_types = ["parallel", "parallel", "reduction"], kind = #vector.kind<add>} %kt, %qt, %none : vector<32x16xf16>, vector<8x16xf16> into vector<32x8xf32>
      %y = tile.scores %s at(%batch32, %batch32, %queries, %keys) below(%sk32) mask {
      ^bb0(%bb: i32, %hh: i32, %i: i32, %j: i32):
        %mine = tile.gather %ids[%bb, %i] : !ids, (i32, i32) -> i32
        %theirs = tile.gather %ids[%bb, %j] : !ids, (i32, i32) -> i32
        %same = arith.cmpi eq, %mine, %theirs : i32
        tile.yield %same : i1
      } : vector<32x8xf32>, vector<1x8xi32>, vector<32x1xi32>
      %p = math.exp %y : vector<32x8xf32>
      %p16 = arith.truncf %p : vector<32x8xf32> to vector<32x8xf16>
      %next = vector.contract {indexing_maps = [#nk, #vk, #mn], iterator_types = ["parallel", "parallel", "reduction"], kind = #vector.kind<add>} %p16, %qt, %sum : vector<32x8xf16>, vector<8x16xf16> into vector<32x16xf32>
      scf.yield %next : vector<32x16xf32>
    }
    scf.if %shared {
      tile.store %r, %sums[%batch, %head, %first, %c0] : vector<32x16xf32>, !sums
    } else {
      %of = arith.truncf %r : vector<32x16xf32> to vector<32x16xf16>
      tile.store %of, %dk[%batch, %head, %first, %c0] : vector<32x16xf16>, !view
    }
  }
  return
}

// -----

// Columns that are queries of which the loop loads nothing; and where a window
// says which range of queries is left, no list is made.
// REMARK: remark: [Missed] list-blocks {{.*}} Remark="the loop loads no block of queries"
// REMARK: remark: [Missed] list-blocks {{.*}} Remark="bounds of rows and keys leave ranges of queries"
// CHECK-LABEL: func @no_query_block(
// CHECK-NOT: memref.alloc
func.func @no_query_block(%n: index, %s: vector<32x8xf32>, %m0: vector<32x8xf32>, %map: memref<?xi1>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %c32 = arith.constant 32 : index
  tile.kernel @no_query_block plan(#attn.plan<target = sm_80, block_q = 64, block_k = 64, warps = 4>) grid(%batch, %head, %x) in (%n, %n, %n) {
    %first = arith.muli %x, %c32 : index
    %first32 = arith.index_cast %first : index to i32
    %keys = tile.coords %first32, 0 : vector<32x1xi32>
    %r = scf.for %t = %c0 to %n step %c1 iter_args(%sum = %m0) -> (vector<32x8xf32>) {
      %row = arith.muli %t, %c8 : index
      %row32 = arith.index_cast %row : index to i32
      %queries = tile.coords %row32, 1 : vector<1x8xi32>
      %y = tile.scores %s at(%row32, %row32, %queries, %keys) mask {
      ^bb0(%bb: i32, %hh: i32, %i: i32, %j: i32):
        %mask = tile.gather %map[%j] : memref<?xi1>, (i32) -> i1
        tile.yield %mask : i1
      } : vector<32x8xf32>, vector<1x8xi32>, vector<32x1xi32>
      scf.yield %y : vector<32x8xf32>
    }
  }
  tile.kernel @window plan(#attn.plan<target = sm_80, block_q = 64, block_k = 64, warps = 4>) grid(%batch, %head, %x) in (%n, %n, %n) {
    %first = arith.muli %x, %c32 : index
    %first32 = arith.index_cast %first : index to i32
    %keys = tile.coords %first32, 0 : vector<32x1xi32>
    %r = scf.for %t = %c0 to %n step %c1 iter_args(%sum = %m0) -> (vector<32x8xf32>) {
      %row = arith.muli %t, %c8 : index
      %row32 = arith.index_cast %row : index to i32
      %queries = tile.coords %row32, 1 : vector<1x8xi32>
      %y = tile.scores %s at(%row32, %row32, %queries, %keys) mask {
      ^bb0(%bb: i32, %hh: i32, %i: i32, %j: i32):
        %mask = tile.gather %map[%j] : memref<?xi1>, (i32) -> i1
        %c64 = arith.constant 64 : i32
        %distance = arith.subi %i, %j : i32
        %near = arith.cmpi ult, %distance, %c64 : i32
        %both = arith.andi %mask, %near : i1
        tile.yield %both : i1
      } : vector<32x8xf32>, vector<1x8xi32>, vector<32x1xi32>
      scf.yield %y : vector<32x8xf32>
    }
  }
  return
}
