// RUN: attn-opt %s --warp-persist | FileCheck %s
// RUN: attn-opt %s --warp-persist --remarks-filter=warp-persist -o /dev/null 2>&1 | FileCheck %s --check-prefix=REMARK

!view = memref<?x?x?x128xbf16, strided<[?, ?, ?, 1], offset: ?>>
!t = !warp.slot<64x128xbf16, panels<128>>
!f = !warp.frag<64x128xbf16, a, 4>

// x varies fastest, then the head.
// CHECK-LABEL: @even(
// CHECK-SAME: %[[NX:.*]]: index, %[[NY:.*]]: index, %[[NZ:.*]]: index, %[[N:.*]]: index
// CHECK: %[[XY:.*]] = arith.muli %[[NX]], %[[NY]]
// CHECK: %[[TILES:.*]] = arith.muli %[[XY]], %[[NZ]]
// CHECK: %[[ONE:.*]] = arith.constant 1 : index
// CHECK: warp.kernel @{{.*}} blocks(%[[FIRST:.*]], %{{.*}}, %{{.*}}) in (%[[TILES]], %[[ONE]], %[[ONE]]) warps(4) resident {
// CHECK-NEXT: warp.alloc
// CHECK-NEXT: %[[STEP:.*]] = gpu.grid_dim x
// CHECK: %[[FIRST32:.*]] = arith.index_cast %[[FIRST]] : index to i32
// CHECK-NEXT: %[[T:.*]] = arith.minui %[[FIRST32]], %{{.*}} : i32
// CHECK-NEXT: %[[NX32:.*]] = arith.index_cast %[[NX]] : index to i32
// CHECK-NEXT: %[[OUTER:.*]] = arith.divui %[[T]], %[[NX32]]
// CHECK-NEXT: %[[BELOW:.*]] = arith.muli %[[OUTER]], %[[NX32]]
// CHECK-NEXT: %[[X32:.*]] = arith.subi %[[T]], %[[BELOW]]
// CHECK-NEXT: %[[NY32:.*]] = arith.index_cast %[[NY]] : index to i32
// CHECK-NEXT: %[[Z32:.*]] = arith.divui %[[OUTER]], %[[NY32]]
// CHECK-NEXT: %[[HEADS:.*]] = arith.muli %[[Z32]], %[[NY32]]
// CHECK-NEXT: %[[Y32:.*]] = arith.subi %[[OUTER]], %[[HEADS]]
// CHECK: scf.while (%{{.*}} = %[[FIRST]], %{{.*}} = %{{.*}}, %{{.*}} = %{{.*}}, %{{.*}} = %{{.*}})
// CHECK: ^bb0(%[[TILE:.*]]: index, %[[X:.*]]: index, %[[Y:.*]]: index, %[[Z:.*]]: index):
// CHECK-NEXT: scf.for %[[I:.*]] = %{{.*}} to %[[N]]
// CHECK: warp.copy %{{.*}}[%[[Z]], %[[Y]], %[[X]], %[[I]]]
// CHECK: }
// CHECK-NEXT: %[[NEXT:.*]] = arith.addi %[[TILE]], %[[STEP]]
// CHECK: scf.yield %[[NEXT]],
func.func @even(%nx: index, %ny: index, %nz: index, %n: index, %k: !view) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  warp.kernel @even blocks(%x, %h, %b) in (%nx, %ny, %nz) warps(4) {
    %ks = warp.alloc : !t
    scf.for %i = %c0 to %n step %c1 {
      warp.copy %k[%b, %h, %x, %i] to %ks : !view, !t
      %f = warp.load_frag %ks : !t -> !f
    }
  }
  return
}

// The next tile is drawn before the last copy; the loop's bound is computed
// with its number.
// CHECK-LABEL: @uneven(
// CHECK: %[[COUNTER:.*]] = memref.alloc() {warp.drawn, warp.restored, warp.zeroed} : memref<1xi32>
// CHECK: warp.kernel @{{.*}} blocks(%[[FIRST:.*]], %{{.*}}, %{{.*}}) in (%[[TILES:.*]], %{{.*}}, %{{.*}}) warps(4) resident {
// CHECK: %[[END0:.*]] = arith.muli %[[X0:.*]], %{{.*}} : index
// CHECK-NEXT: scf.while (%[[T0:.*]] = %[[FIRST]], %{{.*}} = %[[X0]], %{{.*}} = %{{.*}}, %{{.*}} = %{{.*}}, %{{.*}} = %[[END0]]) :
// CHECK-NEXT: %[[LEFT:.*]] = arith.index_cast %[[T0]] : index to i32
// CHECK-NEXT: %[[RIGHT:.*]] = arith.index_cast %[[TILES]] : index to i32
// CHECK-NEXT: %[[MORE:.*]] = arith.cmpi ult, %[[LEFT]], %[[RIGHT]] : i32
// CHECK-NEXT: scf.condition(%[[MORE]]) %[[T0]],
// CHECK: ^bb0(%{{.*}}: index, %[[X:.*]]: index, %[[Y:.*]]: index, %[[Z:.*]]: index, %[[END:.*]]: index):
// CHECK-NEXT: scf.for %{{.*}} = %{{.*}} to %[[END]] step
// CHECK: warp.copy %{{.*}}[%[[Z]], %[[Y]], %[[X]],
// CHECK: }
// CHECK-NEXT: %[[NEXT:.*]] = warp.draw %[[COUNTER]] below %[[TILES]] : memref<1xi32>
// CHECK-NEXT: warp.copy
// CHECK: %[[NUMBER:.*]] = arith.index_cast %[[NEXT]] : index to i32
// CHECK-NEXT: %[[TILE:.*]] = arith.minui %[[NUMBER]],
// CHECK: scf.if
// CHECK-NEXT: %{{.*}} = arith.muli
// CHECK-NEXT: arith.divui %[[TILE]],
// CHECK: %[[NEXT_END:.*]] = arith.muli %[[NEXT_X:.*]], %{{.*}} : index
// CHECK-NEXT: scf.yield %[[NEXT]], %[[NEXT_X]], %{{.*}}, %{{.*}}, %[[NEXT_END]] :
func.func @uneven(%nx: index, %n: index, %k: !view) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  warp.kernel @uneven blocks(%x, %h, %b) in (%nx, %n, %n) warps(4) {
    %ks = warp.alloc : !t
    %end = arith.muli %x, %n : index
    scf.for %i = %c0 to %end step %c1 {
      warp.copy %k[%b, %h, %x, %i] to %ks : !view, !t
      %f = warp.load_frag %ks : !t -> !f
    }
    warp.copy %k[%b, %h, %x, %c0] to %ks : !view, !t
    %f = warp.load_frag %ks : !t -> !f
  }
  return
}

// A loop from the second block on: the first one's number is carried, for the
// block before the loop, too, and nobody divides again.
// CHECK-LABEL: @second_block(
// CHECK: scf.while
// CHECK: ^bb0(%{{.*}}: index, %[[X:.*]]: index, %[[Y:.*]]: index, %[[Z:.*]]: index, %[[BEGIN:.*]]: index):
// CHECK-NOT: arith.divui
// CHECK: warp.copy %{{.*}}[%[[Z]], %[[Y]], %[[BEGIN]], %[[BEGIN]]]
// CHECK: %[[SECOND:.*]] = arith.addi %[[BEGIN]], %{{.*}} : index
// CHECK: scf.for %{{.*}} = %[[SECOND]] to
// CHECK: %[[NEXT_BEGIN:.*]] = arith.divui %{{.*}} : index
// CHECK: scf.yield %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %[[NEXT_BEGIN]] :
func.func @second_block(%nx: index, %n: index, %k: !view) {
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  warp.kernel @second_block blocks(%x, %h, %b) in (%nx, %n, %n) warps(4) {
    %ks = warp.alloc : !t
    %next = warp.alloc : !t
    %begin = arith.divui %x, %c4 : index
    warp.copy %k[%b, %h, %begin, %begin] to %ks : !view, !t
    %f = warp.load_frag %ks : !t -> !f
    %second = arith.addi %begin, %c1 : index
    scf.for %i = %second to %n step %c1 {
      warp.copy %k[%b, %h, %begin, %i] to %next : !view, !t
      %g = warp.load_frag %next : !t -> !f
    }
  }
  return
}

// A plan may ask for either, or neither.
// CHECK-LABEL: @as_planned(
// CHECK: warp.kernel {{.*}} resident scheduler(static) {
// CHECK-NOT: warp.draw
// CHECK: warp.kernel {{.*}} resident scheduler(dynamic) {
// CHECK: warp.draw
// CHECK: warp.kernel {{.*}} warps(4) scheduler(grid) {
// CHECK-NOT: scf.while
// REMARK: persist{{.*}}the plan leaves the tiles to the grid
func.func @as_planned(%nx: index, %n: index, %k: !view) {
  %c0 = arith.constant 0 : index
  warp.kernel @as_planned blocks(%x, %h, %b) in (%nx, %n, %n) warps(4) scheduler(static) {
    %ks = warp.alloc : !t
    warp.copy %k[%b, %h, %x, %c0] to %ks : !view, !t
    %f = warp.load_frag %ks : !t -> !f
  }
  warp.kernel @as_planned_2 blocks(%x, %h, %b) in (%nx, %n, %n) warps(4) scheduler(dynamic) {
    %ks = warp.alloc : !t
    warp.copy %k[%b, %h, %x, %c0] to %ks : !view, !t
    %f = warp.load_frag %ks : !t -> !f
  }
  warp.kernel @as_planned_3 blocks(%x, %h, %b) in (%nx, %n, %n) warps(4) scheduler(grid) {
    %ks = warp.alloc : !t
    warp.copy %k[%b, %h, %x, %c0] to %ks : !view, !t
    %f = warp.load_frag %ks : !t -> !f
  }
  return
}

// REMARK: persist{{.*}}no tile is copied
// CHECK-LABEL: @no_copies(
func.func @no_copies(%nx: index) {
  warp.kernel @no_copies blocks(%x, %h, %b) in (%nx, %nx, %nx) warps(4) {
  }
  return
}

// Tiles without a visit nobody begins: the first one is looked for, and the next
// one where the numbers of the last end up. The first draw stands before all
// copies.
// CHECK-LABEL: @idle(
// CHECK-SAME: %[[NX:[a-z0-9]+]]: index
// CHECK-SAME: %[[VISITS:[a-z0-9]+]]: memref<?xi32>
// CHECK: %[[COUNTER:.*]] = memref.alloc()
// CHECK: warp.kernel @{{.*}} blocks(%[[OWN:.*]], %{{.*}}, %{{.*}}) in (%[[TILES:.*]], %{{.*}}, %{{.*}}) warps(4) resident {
// CHECK: %[[FIRST:.*]]:5 = scf.while (%[[T:.*]] = %[[OWN]]) : (index) -> (index, index, index, index, index) {
// CHECK: %[[COUNT:.*]] = memref.load %[[VISITS]][%[[X:.*]]]
// CHECK-NEXT: %[[IDLE:.*]] = arith.cmpi eq, %[[COUNT]],
// CHECK-NEXT: %[[END:.*]] = arith.index_cast %[[COUNT]]
// CHECK: %[[T32:.*]] = arith.index_cast %[[T]]
// CHECK-NEXT: %[[TILES32:.*]] = arith.index_cast %[[TILES]]
// CHECK-NEXT: %[[IS_TILE:.*]] = arith.cmpi ult, %[[T32]], %[[TILES32]]
// CHECK-NEXT: %[[PASS:.*]] = arith.andi %[[IS_TILE]], %[[IDLE]]
// CHECK-NEXT: scf.condition(%[[PASS]]) %[[T]], %[[X]], %{{.*}}, %{{.*}}, %[[END]]
// CHECK: ^bb0
// CHECK-NEXT: %[[DRAWN:.*]] = warp.draw %[[COUNTER]] below %[[TILES]]
// CHECK-NEXT: scf.yield %[[DRAWN]]
// CHECK: scf.while (%{{.*}} = %[[FIRST]]#0, %{{.*}} = %[[FIRST]]#1, %{{.*}} = %[[FIRST]]#2, %{{.*}} = %[[FIRST]]#3, %{{.*}} = %[[FIRST]]#4)
// CHECK-NOT: warp.exit_if
// CHECK: %[[EARLY:.*]] = warp.draw
// CHECK-COUNT-2: warp.copy
// CHECK: %[[NEXT:.*]]:5 = scf.while (%{{.*}} = %[[EARLY]])
// CHECK: warp.draw
// CHECK: scf.yield %[[NEXT]]#0, %[[NEXT]]#1, %[[NEXT]]#2, %[[NEXT]]#3, %[[NEXT]]#4
func.func @idle(%nx: index, %n: index, %visits: memref<?xi32>, %k: !view) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %none = arith.constant 0 : i32
  warp.kernel @idle blocks(%x, %h, %b) in (%nx, %n, %n) warps(4) {
    %ks = warp.alloc : !t
    %count = memref.load %visits[%x] : memref<?xi32>
    %nothing = arith.cmpi eq, %count, %none : i32
    warp.exit_if %nothing
    %end = arith.index_cast %count : i32 to index
    scf.for %i = %c0 to %end step %c1 {
      warp.copy %k[%b, %h, %x, %i] to %ks : !view, !t
      %f = warp.load_frag %ks : !t -> !f
    }
    warp.copy %k[%b, %h, %x, %c0] to %ks : !view, !t
    %f = warp.load_frag %ks : !t -> !f
  }
  return
}

// Tiles that are given in advance are passed over in steps, before the first one
// 32 at a time, of which those after the last one have no work either.
// CHECK-LABEL: @idle_in_steps(
// CHECK: %[[STEP:.*]] = gpu.grid_dim x
// CHECK: %[[START:.*]] = scf.while (%[[T:.*]] = %x) : (index) -> index {
// CHECK: %[[EXISTS:.*]] = arith.cmpi ult
// CHECK-NEXT: %[[ALL:.*]] = warp.all {
// CHECK-NEXT: ^bb0(%[[I:.*]]: index):
// CHECK-NEXT: %[[AWAY:.*]] = arith.muli %[[I]], %[[STEP]]
// CHECK-NEXT: arith.addi %[[T]], %[[AWAY]]
// CHECK: %[[IS_TILE:.*]] = arith.cmpi ult
// CHECK: %[[READ:.*]] = memref.load
// CHECK: %[[IDLE:.*]] = arith.select %[[IS_TILE]], %[[READ]], %true
// CHECK-NEXT: warp.yield %[[IDLE]] : i1
// CHECK: %[[PASS:.*]] = arith.andi %[[EXISTS]], %[[ALL]]
// CHECK-NEXT: scf.condition(%[[PASS]]) %[[T]] : index
// CHECK: %[[MANY:.*]] = arith.muli %[[STEP]], %c32
// CHECK-NEXT: arith.addi %{{.*}}, %[[MANY]]
// CHECK: %[[START32:.*]] = arith.index_cast %[[START]]
// CHECK: %[[EXISTS:.*]] = arith.cmpi ult, %[[START32]]
// CHECK: %[[NONE:.*]] = arith.xori %[[EXISTS]]
// CHECK-NEXT: warp.exit_if %[[NONE]]
// CHECK: scf.while (%{{.*}} = %[[START]])
// CHECK: memref.load
// CHECK: scf.condition
// CHECK: ^bb0(%[[T:[a-z0-9]+]]: index,
// CHECK-NEXT: arith.addi %[[T]], %[[STEP]]
// CHECK-NOT: warp.draw
func.func @idle_in_steps(%nx: index, %n: index, %visits: memref<?xi1>, %k: !view) {
  %c0 = arith.constant 0 : index
  warp.kernel @idle_in_steps blocks(%x, %h, %b) in (%nx, %n, %n) warps(4) scheduler(static) {
    %ks = warp.alloc : !t
    %nothing = memref.load %visits[%x] : memref<?xi1>
    warp.exit_if %nothing
    warp.copy %k[%b, %h, %x, %c0] to %ks : !view, !t
    %f = warp.load_frag %ks : !t -> !f
  }
  return
}

// Lanes search together: tiles of which a search says whether they are idle are
// asked for one by one.
// CHECK-LABEL: @idle_by_search(
// CHECK-NOT: warp.all {
// CHECK: scf.while
// CHECK: warp.search
// CHECK: scf.condition
func.func @idle_by_search(%nx: index, %n: index, %ends: memref<?xi32>, %k: !view) {
  %c0 = arith.constant 0 : index
  %none = arith.constant 0 : i32
  warp.kernel @idle_by_search blocks(%x, %h, %b) in (%nx, %n, %n) warps(4) scheduler(static) {
    %ks = warp.alloc : !t
    %row = arith.index_cast %x : index to i32
    %found = warp.search %ends[], %row : memref<?xi32>, i32, () -> i32
    %nothing = arith.cmpi eq, %found, %none : i32
    warp.exit_if %nothing
    warp.copy %k[%b, %h, %x, %c0] to %ks : !view, !t
    %f = warp.load_frag %ks : !t -> !f
  }
  return
}

// A block that stays asks at each tile, or not at all: what does not come from
// the tile's number is dropped.
// CHECK-LABEL: @idle_or_not(
// CHECK-NOT: warp.exit_if
func.func @idle_or_not(%nx: index, %nothing: i1, %k: !view) {
  %c0 = arith.constant 0 : index
  warp.kernel @idle_or_not blocks(%x, %h, %b) in (%nx, %nx, %nx) warps(4) {
    %ks = warp.alloc : !t
    warp.exit_if %nothing
    warp.copy %k[%b, %h, %x, %c0] to %ks : !view, !t
    %f = warp.load_frag %ks : !t -> !f
  }
  return
}

// What the block reads by its number it carries, and reads after the draw.
// CHECK-LABEL: @read(
// CHECK-SAME: %[[FIRSTS:[a-z0-9]+]]: memref<?xi32>
// CHECK: %[[READ:.*]] = memref.load %[[FIRSTS]]
// CHECK-NEXT: %[[FIRST:.*]] = arith.index_cast %[[READ]]
// CHECK: scf.while ({{.*}} = %[[FIRST]]) :
// CHECK: ^bb0({{.*}}, %[[ROW:[a-z0-9]+]]: index):
// CHECK-NOT: memref.load
// CHECK: warp.copy %{{.*}}[%{{.*}}, %{{.*}}, %{{.*}}, %[[ROW]]]
// CHECK: %[[AGAIN:.*]] = memref.load %[[FIRSTS]]
// CHECK-NEXT: %[[NEXT:.*]] = arith.index_cast %[[AGAIN]]
// CHECK-NEXT: scf.yield {{.*}}, %[[NEXT]] :
func.func @read(%nx: index, %n: index, %firsts: memref<?xi32>, %k: !view) {
  %c0 = arith.constant 0 : index
  warp.kernel @read blocks(%x, %h, %b) in (%nx, %n, %n) warps(4) scheduler(dynamic) {
    %ks = warp.alloc : !t
    %read = memref.load %firsts[%x] : memref<?xi32>
    %first = arith.index_cast %read : i32 to index
    warp.copy %k[%b, %h, %x, %first] to %ks : !view, !t
    %f = warp.load_frag %ks : !t -> !f
  }
  return
}

// Rows of numbers have the heads of their matrices, and what is added up counts
// among what should stay in the cache, of which there is less then: 4 MiB.
// CHECK-LABEL: @rows_and_sums(
// CHECK-SAME: %[[K:[a-z0-9]+]]: memref<?x?x?x128xbf16, strided<[?, ?, ?, 1], offset: ?>>, %[[LSE:[a-z0-9]+]]: memref<?x?x?xf32>, %[[SUMS:[a-z0-9]+]]: memref<?x?x?x8192xf32>)
// CHECK: scf.if
// CHECK: %[[TWO:.*]] = arith.constant 2 : index
// CHECK-NEXT: memref.dim %[[K]], %[[TWO]]
// CHECK-COUNT-2: memref.dim %[[K]]
// CHECK: arith.maxui
// CHECK: %[[TWO:.*]] = arith.constant 2 : index
// CHECK-NEXT: memref.dim %[[LSE]], %[[TWO]]
// CHECK: %[[ZERO:.*]] = arith.constant 0 : index
// CHECK-NEXT: memref.dim %[[LSE]], %[[ZERO]]
// CHECK: %[[ONE:.*]] = arith.constant 1 : index
// CHECK-NEXT: memref.dim %[[LSE]], %[[ONE]]
// CHECK: arith.maxui
// CHECK: %[[TWO:.*]] = arith.constant 2 : index
// CHECK-NEXT: %[[LENGTH:.*]] = memref.dim %[[SUMS]], %[[TWO]]
// CHECK-NEXT: %[[BLOCKS:.*]] = arith.index_cast %[[LENGTH]]
// CHECK-NEXT: %[[PIECES:.*]] = arith.constant 2048 : i32
// CHECK-NEXT: arith.muli %[[BLOCKS]], %[[PIECES]]
// CHECK-NOT: memref.dim
// CHECK: %[[KIB:.*]] = arith.constant 4096 : i32
// CHECK-NEXT: arith.divui %[[KIB]]
// CHECK: scf.while
func.func @rows_and_sums(%nx: index, %ny: index, %nz: index, %k: !view, %lse: memref<?x?x?xf32>, %sums: memref<?x?x?x8192xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  warp.kernel @rows_and_sums blocks(%x, %h, %b) in (%nx, %ny, %nz) warps(4) {
    %ks = warp.alloc : !t
    %ls = warp.alloc : !warp.slot<1x64xf32>
    %end = arith.addi %x, %c1 : index
    scf.for %i = %c0 to %end step %c1 {
      warp.copy %k[%b, %h, %i, %c0] to %ks : !view, !t
      warp.copy %lse[%b, %h, %i] to %ls : memref<?x?x?xf32>, !warp.slot<1x64xf32>
      %f = warp.load_frag %ks : !t -> !f
      %l = warp.load_frag %ls : !warp.slot<1x64xf32> -> !warp.frag<1x64xf32, acc, 4>
      %part = warp.broadcast %l : !warp.frag<1x64xf32, acc, 4> -> !warp.frag<128x64xf32, acc, 4>
      warp.store %part, %sums[%b, %h, %i, %c0] accumulate packed : !warp.frag<128x64xf32, acc, 4>, memref<?x?x?x8192xf32>
    }
  }
  return
}
