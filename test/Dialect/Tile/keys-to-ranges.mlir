// RUN: attn-opt %s --split-input-file --tile-keys-to-ranges | FileCheck %s
// RUN: attn-opt %s --split-input-file --tile-keys-to-ranges --remarks-filter=.* --remark-policy=all 2>&1 | FileCheck %s --check-prefix=REMARK
// RUN: attn-opt %s --split-input-file --tile-keys-to-ranges --tile-expand-scores | FileCheck %s --check-prefix=EXPANDED

// Blocks of 16 queries and 32 keys.
!tile = vector<16x32xf32>
!row = vector<16x1xf32>
!rows = vector<16x1xi32>
!cols = vector<1x32xi32>

// Documents by offsets: document x of the row begins at offset x - 1 and ends
// before offset x. The three upper bounds are one: the end of the document,
// the row itself and the number of keys.
// CHECK-LABEL: func.func @documents(
// CHECK-SAME: %[[OFFSETS:[a-z0-9]+]]: memref<?xi32>, %{{.*}}: i32, %[[LENGTH:[a-z0-9]+]]: i32
// CHECK: tile.scores %{{[a-z0-9]+}} at(%{{.*}}) mask {
// CHECK-NEXT: ^bb0(%{{.*}}: i32, %{{.*}}: i32, %[[I:.*]]: i32, %[[J:.*]]: i32):
// CHECK: %[[X:.*]] = tile.search %[[OFFSETS]][], %[[I]]
// CHECK-NOT: tile.search
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
// CHECK-NOT: arith.cmpi sle
// CHECK: %[[A:.*]] = arith.cmpi sge, %[[J]], %[[START]]
// CHECK: %[[SHORT:.*]] = arith.minsi %[[LENGTH]], %[[END]]
// CHECK: %[[NEXT:.*]] = arith.addi %{{.*}}, %{{.*}} : i32
// CHECK: %[[STOP:.*]] = arith.minsi %[[SHORT]], %[[NEXT]]
// CHECK: %[[B:.*]] = arith.cmpi slt, %[[J]], %[[STOP]]
// CHECK: %[[MASK:.*]] = arith.andi %[[A]], %[[B]]
// CHECK-NEXT: tile.yield %[[MASK]]
// REMARK: remark: [Passed] keys-to-ranges{{.*}}comparisons=1{{.*}}masks=1

// What is the same for all keys is computed before the loop.
// EXPANDED-LABEL: func.func @documents(
// EXPANDED: tile.search %{{.*}} : memref<?xi32>, vector<16x1xi32>
// EXPANDED: %[[SHORT:.*]] = arith.minsi
// EXPANDED: %[[STOP:.*]] = arith.minsi %[[SHORT]]
// EXPANDED: scf.for
// EXPANDED-NOT: tile.search
// EXPANDED: %[[COLS:.*]] = tile.coords %{{.*}}, 1
// EXPANDED: %[[KEYS:.*]] = vector.broadcast %[[COLS]]
// EXPANDED: %[[FROM:.*]] = vector.broadcast
// EXPANDED: %[[A:.*]] = arith.cmpi sge, %[[KEYS]], %[[FROM]]
// EXPANDED: %[[TO:.*]] = vector.broadcast %[[STOP]]
// EXPANDED: %[[B:.*]] = arith.cmpi slt, %[[KEYS]], %[[TO]]
// EXPANDED: %[[MASK:.*]] = arith.andi %[[A]], %[[B]]
// EXPANDED-NEXT: arith.select %[[MASK]]
func.func @documents(%x: !tile, %m0: !row, %l0: !row, %offsets: memref<?xi32>,
                     %row: i32, %length: i32, %nk: index) -> !row {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c32 = arith.constant 32 : index
  %rows = tile.coords %row, 0 : !rows
  %r:2 = scf.for %n = %c0 to %nk step %c1 iter_args(%m = %m0, %l = %l0) -> (!row, !row) {
    %col = arith.muli %n, %c32 : index
    %col32 = arith.index_cast %col : index to i32
    %cols = tile.coords %col32, 1 : !cols
    %y = tile.scores %x at(%row, %row, %rows, %cols) below(%length) mask {
    ^bb0(%b: i32, %h: i32, %i: i32, %j: i32):
      %of_row = tile.search %offsets[], %i : memref<?xi32>, i32, () -> i32
      %of_key = tile.search %offsets[], %j : memref<?xi32>, i32, () -> i32
      %same = arith.cmpi eq, %of_row, %of_key : i32
      %past = arith.cmpi sle, %j, %i : i32
      %mask = arith.andi %same, %past : i1
      tile.yield %mask : i1
    } : !tile, !rows, !cols
    %p, %m1, %l1, %c = tile.online_softmax %y, %m, %l {guard} : !tile, !row
    scf.yield %m1, %l1 : !row, !row
  }
  return %r#0 : !row
}

// -----

// Sorted numbers: two searches per row. Keys after their end read 0. A score
// function compares them likewise.
!tile = vector<16x32xf32>
!row = vector<16x1xf32>
!rows = vector<16x1xi32>
!cols = vector<1x32xi32>

// CHECK-LABEL: func.func @numbers(
// CHECK-SAME: %[[IDS:[a-z0-9]+]]: memref<?xi32>, %[[OTHERS:[a-z0-9]+]]: memref<?xi32>
// CHECK: score {
// CHECK-NOT: tile.gather %[[IDS]]
// CHECK: tile.search %[[IDS]]
// CHECK: arith.select {{.*}} : f32
// CHECK: mask {
// CHECK-NEXT: ^bb0(%{{.*}}: i32, %{{.*}}: i32, %[[I:.*]]: i32, %[[J:.*]]: i32):
// CHECK: %[[OF:.*]] = tile.gather %[[OTHERS]][%[[I]]]
// CHECK-NOT: tile.gather
// CHECK: %[[ABOVE:.*]] = tile.search %[[IDS]][], %[[OF]]
// CHECK: %[[LESS:.*]] = arith.subi %[[OF]]
// CHECK: %[[BELOW:.*]] = tile.search %[[IDS]][], %[[LESS]]
// CHECK: %[[FROM:.*]] = arith.select %{{.*}}, %{{.*}}, %[[BELOW]]
// CHECK: %[[A:.*]] = arith.cmpi sge, %[[J]], %[[FROM]]
// CHECK: %[[B:.*]] = arith.cmpi slt, %[[J]], %[[ABOVE]]
// CHECK: %[[INSIDE:.*]] = arith.andi %[[A]], %[[B]]
// CHECK: %[[ZERO:.*]] = arith.cmpi eq, %{{.*}}, %[[OF]]
// CHECK: %[[TAIL:.*]] = arith.select %[[ZERO]]
// CHECK: %[[C:.*]] = arith.cmpi sge, %[[J]], %[[TAIL]]
// CHECK: arith.ori %[[INSIDE]], %[[C]]
// REMARK: remark: [Passed] keys-to-ranges{{.*}}comparisons=2{{.*}}masks=0
func.func @numbers(%x: !tile, %m0: !row, %l0: !row, %ids: memref<?xi32>,
                   %others: memref<?xi32>, %row: i32, %nk: index) -> !row {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c32 = arith.constant 32 : index
  %rows = tile.coords %row, 0 : !rows
  %r:2 = scf.for %n = %c0 to %nk step %c1 iter_args(%m = %m0, %l = %l0) -> (!row, !row) {
    %col = arith.muli %n, %c32 : index
    %col32 = arith.index_cast %col : index to i32
    %cols = tile.coords %col32, 1 : !cols
    %y = tile.scores %x at(%row, %row, %rows, %cols) score {
    ^bb0(%s: f32, %b: i32, %h: i32, %i: i32, %j: i32):
      %zero = arith.constant 0.0 : f32
      %of_key = tile.gather %ids[%j] {sorted} : memref<?xi32>, (i32) -> i32
      %less = arith.cmpi sgt, %row, %of_key : i32
      %z = arith.select %less, %s, %zero : f32
      tile.yield %z : f32
    } mask {
    ^bb0(%b: i32, %h: i32, %i: i32, %j: i32):
      %of_row = tile.gather %others[%i] : memref<?xi32>, (i32) -> i32
      %of_key = tile.gather %ids[%j] {sorted} : memref<?xi32>, (i32) -> i32
      %same = arith.cmpi eq, %of_key, %of_row : i32
      tile.yield %same : i1
    } : !tile, !rows, !cols
    %p, %m1, %l1, %c = tile.online_softmax %y, %m, %l {guard} : !tile, !row
    scf.yield %m1, %l1 : !row, !row
  }
  return %r#0 : !row
}

// -----

// No promise that the numbers are sorted, no sign, a search for something else
// than the key, a limit that depends on the key or that may trap: nothing
// changes.
!tile = vector<16x32xf32>
!row = vector<16x1xf32>
!rows = vector<16x1xi32>
!cols = vector<1x32xi32>

// CHECK-LABEL: func.func @other(
// CHECK: scf.for
// CHECK: tile.gather
// CHECK: arith.cmpi eq
// CHECK: tile.search
// CHECK: arith.cmpi ult
// CHECK: tile.search
// CHECK: arith.cmpi eq
// CHECK-NEXT: arith.cmpi eq
// CHECK-NEXT: arith.divsi
// CHECK-NEXT: arith.cmpi slt
// CHECK-NEXT: arith.cmpi slt
// REMARK: remark: [Missed] keys-to-ranges{{.*}}no mask compares sorted data or a quotient of a key, a distance or 64 bits, or has two bounds of keys on one side
func.func @other(%x: !tile, %m0: !row, %l0: !row, %ids: memref<?xi32>,
                 %row: i32, %d: i32, %nk: index) -> !row {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c32 = arith.constant 32 : index
  %rows = tile.coords %row, 0 : !rows
  %r:2 = scf.for %n = %c0 to %nk step %c1 iter_args(%m = %m0, %l = %l0) -> (!row, !row) {
    %col = arith.muli %n, %c32 : index
    %col32 = arith.index_cast %col : index to i32
    %cols = tile.coords %col32, 1 : !cols
    %y = tile.scores %x at(%row, %row, %rows, %cols) mask {
    ^bb0(%b: i32, %h: i32, %i: i32, %j: i32):
      %unsorted = tile.gather %ids[%j] : memref<?xi32>, (i32) -> i32
      %one = arith.cmpi eq, %unsorted, %i : i32
      %found = tile.search %ids[], %j : memref<?xi32>, i32, () -> i32
      %two = arith.cmpi ult, %found, %i : i32
      %double = arith.addi %j, %j : i32
      %beyond = tile.search %ids[], %double : memref<?xi32>, i32, () -> i32
      %three = arith.cmpi eq, %beyond, %i : i32
      %four = arith.cmpi eq, %found, %j : i32
      %quotient = arith.divsi %i, %d : i32
      %five = arith.cmpi slt, %j, %quotient : i32
      %six = arith.cmpi slt, %j, %i : i32
      %a = arith.andi %one, %two : i1
      %b2 = arith.andi %three, %four : i1
      %c = arith.andi %five, %six : i1
      %e = arith.andi %a, %b2 : i1
      %all = arith.andi %e, %c : i1
      tile.yield %all : i1
    } : !tile, !rows, !cols
    %p, %m1, %l1, %f = tile.online_softmax %y, %m, %l {guard} : !tile, !row
    scf.yield %m1, %l1 : !row, !row
  }
  return %r#0 : !row
}

// -----

// Distances are bounds, too: of row - key below 100, not below 0 and at most 7
// away there remain one lower and one upper bound.
!tile = vector<16x32xf32>
!row = vector<16x1xf32>
!rows = vector<16x1xi32>
!cols = vector<1x32xi32>

// CHECK-LABEL: func.func @distances(
// CHECK: mask {
// CHECK-NOT: arith.subi
// CHECK: arith.cmpi sge
// CHECK-NOT: arith.subi
// CHECK: arith.cmpi slt
// CHECK: %[[MASK:.*]] = arith.andi
// CHECK-NEXT: tile.yield %[[MASK]]
func.func @distances(%x: !tile, %m0: !row, %l0: !row, %row: i32, %nk: index) -> !row {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c32 = arith.constant 32 : index
  %rows = tile.coords %row, 0 : !rows
  %r:2 = scf.for %n = %c0 to %nk step %c1 iter_args(%m = %m0, %l = %l0) -> (!row, !row) {
    %col = arith.muli %n, %c32 : index
    %col32 = arith.index_cast %col : index to i32
    %cols = tile.coords %col32, 1 : !cols
    %y = tile.scores %x at(%row, %row, %rows, %cols) mask {
    ^bb0(%b: i32, %h: i32, %i: i32, %j: i32):
      %hundred = arith.constant 100 : i32
      %seven = arith.constant 7 : i32
      %d = arith.subi %i, %j : i32
      %near = arith.cmpi ult, %d, %hundred : i32
      %e = arith.subi %j, %i : i32
      %a = math.absi %e : i32
      %nearer = arith.cmpi sle, %a, %seven : i32
      %mask = arith.andi %near, %nearer : i1
      tile.yield %mask : i1
    } : !tile, !rows, !cols
    %p, %m1, %l1, %c = tile.online_softmax %y, %m, %l {guard} : !tile, !row
    scf.yield %m1, %l1 : !row, !row
  }
  return %r#0 : !row
}

// -----

!tile = vector<16x32xf32>
!row = vector<16x1xf32>
!rows = vector<16x1xi32>
!cols = vector<1x32xi32>

// Chunks of 8 and what precedes: the chunk's first key is the row's quotient
// times 8, its end one of two upper bounds. A distance is two comparisons. What
// the row's quotient is not of may be beyond 32 bits.
// CHECK-LABEL: func.func @quotients(
// CHECK-SAME: %[[IDS:[a-z0-9]+]]: memref<?xi32>
// CHECK: ^bb0(%{{.*}}: i32, %{{.*}}: i32, %[[I:.*]]: i32, %[[J:.*]]: i32):
// CHECK: %[[CHUNK:.*]] = arith.floordivsi %[[I]], %{{.*}}
// CHECK-NOT: arith.floordivsi
// CHECK: %[[FIRST:.*]] = arith.muli %[[CHUNK]], %{{.*}}
// CHECK: %[[LEAST:.*]] = arith.minsi %[[FIRST]], %{{.*}}
// CHECK: %[[END:.*]] = arith.addi %[[LEAST]], %{{.*}}
// CHECK: %[[ID:.*]] = tile.gather %[[IDS]]
// CHECK: %[[NEXT:.*]] = arith.addi %[[ID]], %{{.*}}
// CHECK: %[[BOUND:.*]] = arith.muli %[[NEXT]], %{{.*}}
// CHECK: %[[LOW:.*]] = arith.cmpi slt, %[[ID]], %c-306783379_i32
// CHECK: %[[HIGH:.*]] = arith.cmpi sgt, %[[ID]], %c306783377_i32
// CHECK: %[[B0:.*]] = arith.select %[[LOW]], %c-2147483648_i32{{.*}}, %[[BOUND]]
// CHECK: %[[B1:.*]] = arith.select %[[HIGH]], %c2147483647_i32{{.*}}, %[[B0]]
// CHECK: %[[D:.*]] = arith.subi %[[I]], %[[J]]
// CHECK: %[[NEAR:.*]] = arith.cmpi sle, %[[D]], %c5_i32
// CHECK: %[[BEFORE:.*]] = arith.cmpi sge, %[[D]], %c-5_i32
// CHECK: %[[BOTH:.*]] = arith.andi %[[NEAR]], %[[BEFORE]]
// CHECK: %[[ANY:.*]] = arith.ori %{{.*}}, %[[BOTH]]
// CHECK: %[[FROM:.*]] = arith.cmpi sge, %[[J]], %[[FIRST]]
// CHECK: %[[LIMIT:.*]] = arith.minsi %[[END]], %{{.*}}
// CHECK: arith.cmpi slt, %[[J]], %[[LIMIT]]
// REMARK: remark: [Passed] keys-to-ranges{{.*}}comparisons=3{{.*}}masks=1
func.func @quotients(%x: !tile, %m0: !row, %l0: !row, %ids: memref<?xi32>, %row: i32, %nk: index) -> !row {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c32 = arith.constant 32 : index
  %rows = tile.coords %row, 0 : !rows
  %r:2 = scf.for %n = %c0 to %nk step %c1 iter_args(%m = %m0, %l = %l0) -> (!row, !row) {
    %col = arith.muli %n, %c32 : index
    %col32 = arith.index_cast %col : index to i32
    %cols = tile.coords %col32, 1 : !cols
    %y = tile.scores %x at(%row, %row, %rows, %cols) mask {
    ^bb0(%b: i32, %h: i32, %i: i32, %j: i32):
      %c8 = arith.constant 8 : i32
      %c7 = arith.constant 7 : i32
      %c5 = arith.constant 5 : i32
      %a = arith.floordivsi %i, %c8 : i32
      %c = arith.floordivsi %j, %c8 : i32
      %same = arith.cmpi eq, %a, %c : i32
      %past = arith.cmpi sge, %i, %j : i32
      %id = tile.gather %ids[%i] : memref<?xi32>, (i32) -> i32
      %e = arith.divsi %j, %c7 : i32
      %below = arith.cmpi sge, %id, %e : i32
      %d = arith.subi %i, %j : i32
      %away = math.absi %d : i32
      %near = arith.cmpi sle, %away, %c5 : i32
      %any = arith.ori %below, %near : i1
      %f = arith.andi %same, %past : i1
      %mask = arith.andi %f, %any : i1
      tile.yield %mask : i1
    } : !tile, !rows, !cols
    %p, %m1, %l1, %k = tile.online_softmax %y, %m, %l {guard} : !tile, !row
    scf.yield %m1, %l1 : !row, !row
  }
  return %r#1 : !row
}

// Of what memory holds, of what truncates a negative number, without a sign, of
// positions near 2^31, and by 1: quotients and distances stay.
// CHECK-LABEL: func.func @other_quotients(
// CHECK: arith.floordivsi
// CHECK: arith.divsi
// CHECK-COUNT-3: arith.floordivsi
// CHECK: math.absi
// CHECK: tile.yield
func.func @other_quotients(%x: !tile, %m0: !row, %l0: !row, %ids: memref<?xi32>, %row: i32, %nk: index) -> !row {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c32 = arith.constant 32 : index
  %rows = tile.coords %row, 0 : !rows
  %r:2 = scf.for %n = %c0 to %nk step %c1 iter_args(%m = %m0, %l = %l0) -> (!row, !row) {
    %col = arith.muli %n, %c32 : index
    %col32 = arith.index_cast %col : index to i32
    %cols = tile.coords %col32, 1 : !cols
    %y = tile.scores %x at(%row, %row, %rows, %cols) mask {
    ^bb0(%b: i32, %h: i32, %i: i32, %j: i32):
      %c8 = arith.constant 8 : i32
      %id = tile.gather %ids[%j] : memref<?xi32>, (i32) -> i32
      %q = arith.floordivsi %id, %c8 : i32
      %s = arith.cmpi slt, %q, %i : i32
      %d = arith.subi %i, %j : i32
      %t = arith.divsi %d, %c8 : i32
      %u = arith.cmpi slt, %t, %c8 : i32
      %v = arith.floordivsi %j, %c8 : i32
      %w = arith.cmpi ult, %v, %i : i32
      %top = arith.constant 2147483584 : i32
      %late = arith.addi %j, %top : i32
      %e = arith.floordivsi %late, %c8 : i32
      %f = arith.cmpi slt, %e, %i : i32
      %one = arith.constant 1 : i32
      %g = arith.floordivsi %j, %one : i32
      %k1 = arith.cmpi sle, %g, %i : i32
      %y = math.absi %id : i32
      %z = arith.cmpi slt, %y, %c8 : i32
      %su = arith.andi %s, %u : i1
      %wz = arith.andi %w, %z : i1
      %fk = arith.andi %f, %k1 : i1
      %suwz = arith.ori %su, %wz : i1
      %mask = arith.ori %suwz, %fk : i1
      tile.yield %mask : i1
    } : !tile, !rows, !cols
    %p, %m1, %l1, %k = tile.online_softmax %y, %m, %l {guard} : !tile, !row
    scf.yield %m1, %l1 : !row, !row
  }
  return %r#1 : !row
}

// -----

// Numbers of 64 bits at a row and at a head are the nearest ones of 32 bits, of
// which the mask has one upper bound. One of each score, and a position that is
// captured, stay long.
!tile = vector<16x32xf32>
!row = vector<16x1xf32>
!rows = vector<16x1xi32>
!cols = vector<1x32xi32>

// CHECK-LABEL: func.func @longer(
// CHECK: mask {
// CHECK: ^bb0(%{{.*}}: i32, %[[H:.*]]: i32, %[[I:.*]]: i32, %[[J:.*]]: i32):
// CHECK-DAG: %[[OF_ROW:.*]] = tile.gather %{{.*}}[%[[I]]]
// CHECK-DAG: %[[DISTANCE:.*]] = arith.subi %[[I]], %[[J]] : i32
// CHECK: arith.maxsi %[[OF_ROW]], %{{.*}} : i64
// CHECK: arith.minsi
// CHECK: %[[NARROW:.*]] = arith.trunci
// CHECK: arith.cmpi sle, %[[DISTANCE]], %[[NARROW]] : i32
// CHECK-NEXT: arith.cmpi sle, %{{.*}}, %{{.*}} : i64
// CHECK-NEXT: arith.cmpi sle, %{{.*}}, %[[OF_ROW]] : i64
// CHECK: %[[LAST:.*]] = arith.trunci
// CHECK: %[[END:.*]] = arith.minsi %[[LAST]], %{{.*}} : i32
// CHECK: arith.cmpi slt, %[[J]], %[[END]] : i32
// REMARK: remark: [Passed] keys-to-ranges{{.*}}comparisons=2{{.*}}masks=1
func.func @longer(%x: !tile, %m0: !row, %l0: !row, %limits: memref<?xi64>,
                  %pairs: memref<?x?xi64>, %ids: memref<?xi32>, %row: i32,
                  %end: i64, %nk: index) -> !row {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c32 = arith.constant 32 : index
  %rows = tile.coords %row, 0 : !rows
  %r:2 = scf.for %n = %c0 to %nk step %c1 iter_args(%m = %m0, %l = %l0) -> (!row, !row) {
    %col = arith.muli %n, %c32 : index
    %col32 = arith.index_cast %col : index to i32
    %cols = tile.coords %col32, 1 : !cols
    %y = tile.scores %x at(%row, %row, %rows, %cols) mask {
    ^bb0(%b: i32, %h: i32, %i: i32, %j: i32):
      %of_row = tile.gather %limits[%i] : memref<?xi64>, (i32) -> i64
      %of_pair = tile.gather %pairs[%i, %j] : memref<?x?xi64>, (i32, i32) -> i64
      %id = tile.gather %ids[%j] : memref<?xi32>, (i32) -> i32
      %distance = arith.subi %i, %j : i32
      %d = arith.extsi %distance : i32 to i64
      %key = arith.extsi %j : i32 to i64
      %of_key = arith.extsi %id : i32 to i64
      %near = arith.cmpi sle, %d, %of_row : i64
      %paired = arith.cmpi sle, %d, %of_pair : i64
      %known = arith.cmpi sle, %of_key, %of_row : i64
      %inside = arith.cmpi sgt, %end, %key : i64
      %before = arith.cmpi sge, %i, %j : i32
      %m1 = arith.andi %near, %paired : i1
      %m2 = arith.andi %m1, %known : i1
      %m3 = arith.andi %m2, %inside : i1
      %m4 = arith.andi %m3, %before : i1
      tile.yield %m4 : i1
    } : !tile, !rows, !cols
    %p, %m1, %l1, %c = tile.online_softmax %y, %m, %l {guard} : !tile, !row
    scf.yield %m1, %l1 : !row, !row
  }
  return %r#0 : !row
}
