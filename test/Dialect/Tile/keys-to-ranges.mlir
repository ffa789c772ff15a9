// RUN: attn-opt %s --split-input-file --tile-keys-to-ranges | FileCheck %s
// RUN: attn-opt %s --split-input-file --tile-keys-to-ranges --remarks-filter=.* --remark-policy=all 2>&1 | FileCheck %s --check-prefix=REMARK

// Blocks of 16 queries and 32 keys.
!tile = vector<16x32xf32>
!mask = vector<16x32xi1>
!row = vector<16x1xf32>
!rows = vector<16x1xi32>
!cols = vector<1x32xi32>
!coords = vector<16x32xi32>

// Documents by offsets: document x of the row begins at offset x - 1 and ends
// in front of offset x. The two upper bounds are one: the end of the document
// and the row itself.
// CHECK-LABEL: func.func @documents(
// CHECK-SAME: %{{.*}}: vector<16x32xf32>, %{{.*}}: vector<16x1xf32>, %{{.*}}: vector<16x1xf32>, %[[OFFSETS:[a-z0-9]+]]: memref<?xi32>, %[[ROW:[a-z0-9]+]]: i32
// CHECK: %[[ROWS:.*]] = tile.coords %[[ROW]], 0
// CHECK: %[[X:.*]] = tile.search %[[OFFSETS]][], %[[ROWS]]
// CHECK: %[[BEHIND:.*]] = arith.cmpi sge, %[[X]], %[[SIZE:.*]] :
// CHECK: %[[BEFORE:.*]] = arith.cmpi slt, %[[X]], %{{.*}}
// CHECK: %[[LIMIT:.*]] = arith.select %[[BEFORE]], %{{.*}}, %{{.*}}
// CHECK: %[[OUTSIDE:.*]] = arith.ori %[[BEHIND]], %[[BEFORE]]
// CHECK: %[[END0:.*]] = tile.gather %[[OFFSETS]][%[[X]]]
// CHECK: %[[END:.*]] = arith.select %[[OUTSIDE]], %[[LIMIT]], %[[END0]]
// CHECK: %[[X0:.*]] = arith.maxsi %[[X]], %{{.*}}
// CHECK: %[[Y:.*]] = arith.subi %[[X0]], %{{.*}}
// CHECK: %[[START0:.*]] = tile.gather %[[OFFSETS]][%[[Y]]]
// CHECK: %[[START:.*]] = arith.select %{{.*}}, %{{.*}}, %[[START0]]
// CHECK: %[[NEXT:.*]] = arith.addi %{{.*}}, %{{.*}} : vector<16x1xi32>
// CHECK: %[[STOP:.*]] = arith.minsi %[[END]], %[[NEXT]]
// CHECK: scf.for
// CHECK-NOT: tile.search
// CHECK: %[[COLS:.*]] = tile.coords %{{.*}}, 1
// CHECK: %[[KEYS:.*]] = vector.broadcast %[[COLS]]
// CHECK: %[[FROM:.*]] = vector.broadcast %[[START]]
// CHECK: %[[A:.*]] = arith.cmpi sge, %[[KEYS]], %[[FROM]]
// CHECK: %[[TO:.*]] = vector.broadcast %[[STOP]]
// CHECK: %[[B:.*]] = arith.cmpi slt, %[[KEYS]], %[[TO]]
// CHECK: %[[MASK:.*]] = arith.andi %[[A]], %[[B]]
// CHECK-NEXT: arith.select %[[MASK]]
// REMARK: remark: [Passed] keys-to-ranges{{.*}}comparisons=1{{.*}}masks=1
func.func @documents(%x: !tile, %m0: !row, %l0: !row, %offsets: memref<?xi32>,
                     %row: i32, %nk: index) -> !row {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c32 = arith.constant 32 : index
  %hidden = arith.constant dense<0xFF800000> : !tile
  %rows = tile.coords %row, 0 : !rows
  %of_row = tile.search %offsets[], %rows : memref<?xi32>, !rows, () -> !rows
  %r:2 = scf.for %n = %c0 to %nk step %c1 iter_args(%m = %m0, %l = %l0) -> (!row, !row) {
    %col = arith.muli %n, %c32 : index
    %col32 = arith.index_cast %col : index to i32
    %cols = tile.coords %col32, 1 : !cols
    %i = vector.broadcast %rows : !rows to !coords
    %j = vector.broadcast %cols : !cols to !coords
    %of_key = tile.search %offsets[], %cols : memref<?xi32>, !cols, () -> !cols
    %a = vector.broadcast %of_row : !rows to !coords
    %b = vector.broadcast %of_key : !cols to !coords
    %same = arith.cmpi eq, %a, %b : !coords
    %past = arith.cmpi sle, %j, %i : !coords
    %mask = arith.andi %same, %past : !mask
    %y = arith.select %mask, %x, %hidden : !mask, !tile
    %p, %m1, %l1, %c = tile.online_softmax %y, %m, %l {guard} : !tile, !row
    scf.yield %m1, %l1 : !row, !row
  }
  return %r#0 : !row
}

// -----

// Sorted numbers: two searches per row. Keys behind their end read 0.
!tile = vector<16x32xf32>
!mask = vector<16x32xi1>
!row = vector<16x1xf32>
!rows = vector<16x1xi32>
!cols = vector<1x32xi32>
!coords = vector<16x32xi32>

// CHECK-LABEL: func.func @numbers(
// CHECK-SAME: %[[IDS:[a-z0-9]+]]: memref<?xi32>, %[[OF:[a-z0-9]+]]: vector<16x1xi32>
// CHECK: %[[ABOVE:.*]] = tile.search %[[IDS]][], %[[OF]]
// CHECK: %[[LESS:.*]] = arith.subi %[[OF]]
// CHECK: %[[BELOW:.*]] = tile.search %[[IDS]][], %[[LESS]]
// CHECK: %[[FROM:.*]] = arith.select %{{.*}}, %{{.*}}, %[[BELOW]]
// CHECK: %[[ZERO:.*]] = arith.cmpi eq, %{{.*}}, %[[OF]]
// CHECK: %[[TAIL:.*]] = arith.select %[[ZERO]]
// CHECK: scf.for
// CHECK-NOT: tile.gather
// CHECK: %[[FROMS:.*]] = vector.broadcast %[[FROM]]
// CHECK: %[[A:.*]] = arith.cmpi sge, %[[KEYS:.*]], %[[FROMS]]
// CHECK: %[[ABOVES:.*]] = vector.broadcast %[[ABOVE]]
// CHECK: %[[B:.*]] = arith.cmpi slt, %[[KEYS]], %[[ABOVES]]
// CHECK: %[[INSIDE:.*]] = arith.andi %[[A]], %[[B]]
// CHECK: %[[TAILS:.*]] = vector.broadcast %[[TAIL]]
// CHECK: %[[C:.*]] = arith.cmpi sge, %[[KEYS]], %[[TAILS]]
// CHECK: arith.ori %[[INSIDE]], %[[C]]
func.func @numbers(%x: !tile, %m0: !row, %l0: !row, %ids: memref<?xi32>,
                   %of_row: !rows, %nk: index) -> !row {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c32 = arith.constant 32 : index
  %hidden = arith.constant dense<0xFF800000> : !tile
  %r:2 = scf.for %n = %c0 to %nk step %c1 iter_args(%m = %m0, %l = %l0) -> (!row, !row) {
    %col = arith.muli %n, %c32 : index
    %col32 = arith.index_cast %col : index to i32
    %cols = tile.coords %col32, 1 : !cols
    %of_key = tile.gather %ids[%cols] {sorted} : memref<?xi32>, (!cols) -> !cols
    %a = vector.broadcast %of_row : !rows to !coords
    %b = vector.broadcast %of_key : !cols to !coords
    %same = arith.cmpi eq, %b, %a : !coords
    %y = arith.select %same, %x, %hidden : !mask, !tile
    %p, %m1, %l1, %c = tile.online_softmax %y, %m, %l {guard} : !tile, !row
    scf.yield %m1, %l1 : !row, !row
  }
  return %r#0 : !row
}

// -----

// No promise that the numbers are sorted, no sign, a search for something else
// than the key: nothing changes.
!tile = vector<16x32xf32>
!mask = vector<16x32xi1>
!row = vector<16x1xf32>
!rows = vector<16x1xi32>
!cols = vector<1x32xi32>
!coords = vector<16x32xi32>

// CHECK-LABEL: func.func @other(
// CHECK: scf.for
// CHECK: tile.gather
// CHECK: arith.cmpi eq
// CHECK: tile.search
// CHECK: arith.cmpi ult
// CHECK: tile.search
// CHECK: arith.cmpi eq
// REMARK: remark: [Missed] keys-to-ranges{{.*}}no mask compares sorted data of a key, or has two bounds of keys on one side
func.func @other(%x: !tile, %m0: !row, %l0: !row, %ids: memref<?xi32>,
                 %of_row: !rows, %nk: index) -> !row {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c32 = arith.constant 32 : index
  %hidden = arith.constant dense<0xFF800000> : !tile
  %r:2 = scf.for %n = %c0 to %nk step %c1 iter_args(%m = %m0, %l = %l0) -> (!row, !row) {
    %col = arith.muli %n, %c32 : index
    %col32 = arith.index_cast %col : index to i32
    %cols = tile.coords %col32, 1 : !cols
    %a = vector.broadcast %of_row : !rows to !coords
    %unsorted = tile.gather %ids[%cols] : memref<?xi32>, (!cols) -> !cols
    %b = vector.broadcast %unsorted : !cols to !coords
    %one = arith.cmpi eq, %b, %a : !coords
    %found = tile.search %ids[], %cols : memref<?xi32>, !cols, () -> !cols
    %c = vector.broadcast %found : !cols to !coords
    %two = arith.cmpi ult, %c, %a : !coords
    %double = arith.addi %cols, %cols : !cols
    %beyond = tile.search %ids[], %double : memref<?xi32>, !cols, () -> !cols
    %d = vector.broadcast %beyond : !cols to !coords
    %three = arith.cmpi eq, %d, %a : !coords
    %both = arith.andi %one, %two : !mask
    %all = arith.andi %both, %three : !mask
    %y = arith.select %all, %x, %hidden : !mask, !tile
    %p, %m1, %l1, %e = tile.online_softmax %y, %m, %l {guard} : !tile, !row
    scf.yield %m1, %l1 : !row, !row
  }
  return %r#0 : !row
}

// -----

// Distances are bounds, too: of row - key below 100, not below 0 and at most 7
// away there remain one lower and one upper bound.
!tile = vector<16x32xf32>
!mask = vector<16x32xi1>
!row = vector<16x1xf32>
!rows = vector<16x1xi32>
!cols = vector<1x32xi32>
!coords = vector<16x32xi32>

// CHECK-LABEL: func.func @distances(
// CHECK: %[[ROWS:.*]] = tile.coords %{{.*}}, 0
// CHECK-DAG: arith.addi %{{.*}}, %{{.*}} : vector<16x1xi32>
// CHECK: scf.for
// CHECK-NOT: arith.subi
// CHECK: arith.cmpi sge
// CHECK-NOT: arith.subi
// CHECK: arith.cmpi slt
// CHECK: %[[MASK:.*]] = arith.andi
// CHECK-NEXT: arith.select %[[MASK]]
func.func @distances(%x: !tile, %m0: !row, %l0: !row, %row: i32, %nk: index) -> !row {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c32 = arith.constant 32 : index
  %hidden = arith.constant dense<0xFF800000> : !tile
  %hundred = arith.constant dense<100> : !coords
  %seven = arith.constant dense<7> : !coords
  %rows = tile.coords %row, 0 : !rows
  %r:2 = scf.for %n = %c0 to %nk step %c1 iter_args(%m = %m0, %l = %l0) -> (!row, !row) {
    %col = arith.muli %n, %c32 : index
    %col32 = arith.index_cast %col : index to i32
    %cols = tile.coords %col32, 1 : !cols
    %i = vector.broadcast %rows : !rows to !coords
    %j = vector.broadcast %cols : !cols to !coords
    %d = arith.subi %i, %j : !coords
    %near = arith.cmpi ult, %d, %hundred : !coords
    %e = arith.subi %j, %i : !coords
    %a = math.absi %e : !coords
    %nearer = arith.cmpi sle, %a, %seven : !coords
    %mask = arith.andi %near, %nearer : !mask
    %y = arith.select %mask, %x, %hidden : !mask, !tile
    %p, %m1, %l1, %c = tile.online_softmax %y, %m, %l {guard} : !tile, !row
    scf.yield %m1, %l1 : !row, !row
  }
  return %r#0 : !row
}
