// RUN: attn-opt %s --convert-tile-to-loops --canonicalize --cse | FileCheck %s

!m = memref<?x?x20xf32, strided<[?, ?, 1], offset: ?>>

// Rows outside the memref, and a slice outside it, read 0: only the part of
// the box inside is visited. Column bounds are known: 16 of the 20 remain.
// CHECK-LABEL: func @load_is_clipped
// CHECK-SAME: %[[M:.*]]: memref<?x?x20xf32{{.*}}, %[[O:.*]]: memref<?x?x20xf32{{.*}}, %[[I:.*]]: index, %[[J:.*]]: index
func.func @load_is_clipped(%m: !m, %o: !m, %i: index, %j: index) {
  %c4 = arith.constant 4 : index
  // CHECK: %[[BUF:.*]] = memref.alloc() {{.*}} : memref<8x32xf32>
  // CHECK: memref.store %[[ZERO:.*]], %[[BUF]]
  // CHECK: arith.subi %c0, %[[J]]
  // CHECK: %[[SIZE:.*]] = memref.dim %[[M]], %c1
  // CHECK: arith.subi %[[SIZE]], %[[J]]
  // CHECK: arith.cmpi slt, %[[I]],
  // CHECK: scf.for %[[R:.*]] = %{{.*}} to
  // CHECK-NEXT: scf.for %[[C:.*]] = %c0 to %c16
  // CHECK: %[[X:.*]] = memref.load %[[M]][%[[I]],
  // CHECK: memref.store %[[X]], %[[BUF]][%[[R]], %[[C]]]
  %t = tile.load %m[%i, %j, %c4] : !m, vector<8x32xf32>
  // CHECK: memref.load %[[BUF]]
  // CHECK-NEXT: arith.addi
  // CHECK-NEXT: arith.addi
  // CHECK-NEXT: memref.store %{{.*}}, %[[O]]
  tile.store %t, %o[%i, %j, %c4] : vector<8x32xf32>, !m
  // CHECK: memref.dealloc %[[BUF]]
  return
}

// A value with one user is computed in the loops of its user; a value with two
// gets a buffer.
// CHECK-LABEL: func @one_user_is_fused
func.func @one_user_is_fused(%m: memref<4x8xf32>, %o: memref<4x8xf32>) {
  %c0 = arith.constant 0 : index
  %two = arith.constant dense<2.0> : vector<4x8xf32>
  // CHECK: %[[E:.*]] = memref.alloc() {{.*}} : memref<4x8xf32>
  // CHECK: %[[T:.*]] = memref.alloc() {{.*}} : memref<4x8xf32>
  // CHECK-NOT: memref.alloc
  %t = tile.load %m[%c0, %c0] : memref<4x8xf32>, vector<4x8xf32>
  // CHECK: %[[A:.*]] = memref.load %[[T]]
  // CHECK-NEXT: %[[B:.*]] = arith.mulf %[[A]], %cst
  // CHECK-NEXT: %[[C:.*]] = math.exp %[[B]]
  // CHECK-NEXT: memref.store %[[C]], %[[E]]
  %a = arith.mulf %t, %two : vector<4x8xf32>
  %e = math.exp %a : vector<4x8xf32>
  // CHECK: arith.addf
  // CHECK-NEXT: memref.store %{{.*}}, %arg1
  %s = arith.addf %e, %e : vector<4x8xf32>
  tile.store %s, %o[%c0, %c0] : vector<4x8xf32>, memref<4x8xf32>
  return
}

// Carried vectors live in one buffer each; a swap goes through copies.
// CHECK-LABEL: func @swap_is_a_parallel_assignment
func.func @swap_is_a_parallel_assignment(%m: memref<4x8xf32>, %n: index) -> index {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %x = arith.constant dense<1.0> : vector<4x8xf32>
  %y = arith.constant dense<2.0> : vector<4x8xf32>
  // CHECK: %[[T1:.*]] = memref.alloc
  // CHECK-NEXT: %[[T0:.*]] = memref.alloc
  // CHECK-NEXT: %[[Y:.*]] = memref.alloc
  // CHECK-NEXT: %[[X:.*]] = memref.alloc
  // CHECK: %[[R:.*]] = scf.for {{.*}} iter_args(%{{.*}} = %c0) -> (index)
  %r:3 = scf.for %i = %c0 to %n step %c1 iter_args(%a = %x, %k = %c0, %b = %y)
      -> (vector<4x8xf32>, index, vector<4x8xf32>) {
    // CHECK: load %[[Y]]
    // CHECK-NEXT: store %{{.*}}, %[[T0]]
    // CHECK: load %[[X]]
    // CHECK-NEXT: store %{{.*}}, %[[T1]]
    // CHECK: load %[[T0]]
    // CHECK-NEXT: store %{{.*}}, %[[X]]
    // CHECK: load %[[T1]]
    // CHECK-NEXT: store %{{.*}}, %[[Y]]
    %k1 = arith.addi %k, %i : index
    scf.yield %b, %k1, %a : vector<4x8xf32>, index, vector<4x8xf32>
  }
  // CHECK: load %[[X]]
  tile.store %r#0, %m[%c0, %c0] : vector<4x8xf32>, memref<4x8xf32>
  return %r#1 : index
}

// Both operands are extended once; the inner loop runs along rows.
// CHECK-LABEL: func @contract_f16
func.func @contract_f16(%q: memref<4x16xf16>, %k: memref<8x16xf16>, %o: memref<4x8xf32>) {
  %c0 = arith.constant 0 : index
  %zero = arith.constant dense<0.0> : vector<4x8xf32>
  // CHECK: %[[S:.*]] = memref.alloc() {{.*}} : memref<4x8xf32>
  // CHECK: %[[K:.*]] = memref.alloc() {{.*}} : memref<16x8xf32>
  // CHECK: %[[Q:.*]] = memref.alloc() {{.*}} : memref<4x16xf32>
  // CHECK: arith.extf
  // CHECK: arith.extf
  // CHECK: scf.for %[[I:.*]] = %c0 to %c4
  // CHECK: scf.for %[[D:.*]] = %c0 to %c16
  // CHECK: scf.for %[[J:.*]] = %c0 to %c8
  // CHECK: %[[A:.*]] = memref.load %[[Q]][%[[I]], %[[D]]]
  // CHECK: %[[B:.*]] = memref.load %[[K]][%[[D]], %[[J]]]
  // CHECK: %[[C:.*]] = memref.load %[[S]][%[[I]], %[[J]]]
  // CHECK: %[[P:.*]] = arith.mulf %[[A]], %[[B]] fastmath<contract>
  // CHECK: arith.addf %[[P]], %[[C]] fastmath<contract>
  %a = tile.load %q[%c0, %c0] : memref<4x16xf16>, vector<4x16xf16>
  %b = tile.load %k[%c0, %c0] : memref<8x16xf16>, vector<8x16xf16>
  %s = vector.contract {
    indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n, k)>, affine_map<(m, n, k) -> (m, n)>],
    iterator_types = ["parallel", "parallel", "reduction"]} %a, %b, %zero
    : vector<4x16xf16>, vector<8x16xf16> into vector<4x8xf32>
  tile.store %s, %o[%c0, %c0] : vector<4x8xf32>, memref<4x8xf32>
  return
}

// Products that f32 does not have exactly are rounded with the sum, so that
// results are those of any processor.
// CHECK-LABEL: func @contract_f32
func.func @contract_f32(%q: memref<4x16xf32>, %k: memref<8x16xf32>, %o: memref<4x8xf32>) {
  %c0 = arith.constant 0 : index
  %zero = arith.constant dense<0.0> : vector<4x8xf32>
  // CHECK: math.fma %{{.*}}, %{{.*}}, %{{.*}} : f32
  // CHECK-NOT: fastmath
  %a = tile.load %q[%c0, %c0] : memref<4x16xf32>, vector<4x16xf32>
  %b = tile.load %k[%c0, %c0] : memref<8x16xf32>, vector<8x16xf32>
  %s = vector.contract {
    indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n, k)>, affine_map<(m, n, k) -> (m, n)>],
    iterator_types = ["parallel", "parallel", "reduction"]} %a, %b, %zero
    : vector<4x16xf32>, vector<8x16xf32> into vector<4x8xf32>
  tile.store %s, %o[%c0, %c0] : vector<4x8xf32>, memref<4x8xf32>
  return
}

// CHECK-LABEL: func @gather_out_of_range_reads_0
func.func @gather_out_of_range_reads_0(%t: memref<?x?xf32>, %o: memref<4x8xf32>, %h: i32, %r: i32) {
  %c0 = arith.constant 0 : index
  // CHECK: arith.cmpi sge
  // CHECK: arith.cmpi slt
  // CHECK: %[[X:.*]] = scf.if
  // CHECK-NEXT: memref.load %arg0
  // CHECK: } else {
  // CHECK-NEXT: scf.yield %cst
  %cols = tile.coords %r, 1 : vector<1x8xi32>
  %g = tile.gather %t[%h, %cols] : memref<?x?xf32>, (i32, vector<1x8xi32>) -> vector<4x8xf32>
  tile.store %g, %o[%c0, %c0] : vector<4x8xf32>, memref<4x8xf32>
  return
}

// CHECK-LABEL: func @no_vectors
// CHECK-NEXT: return
func.func @no_vectors() {
  return
}

// By halves; a leading index out of range leaves nothing to search.
// CHECK-LABEL: func @search
// CHECK-SAME: %[[T:[^:]*]]: memref<?x?xi32>
// CHECK: scf.for
// CHECK: %[[SIZE:.*]] = memref.dim %[[T]], %c1
// CHECK: %[[LOW:.*]] = arith.select %{{.*}}, %[[SIZE]], %{{.*}} : index
// CHECK: %[[END:.*]] = arith.select %{{.*}}, %[[LOW]], %{{.*}} : index
// CHECK: scf.while (%[[A:.*]] = %{{.*}}, %[[B:.*]] = %[[END]])
// CHECK: arith.cmpi slt, %[[A]], %[[B]] : index
// CHECK: %[[E:.*]] = memref.load %[[T]]
// CHECK: arith.cmpi sle, %[[E]], %{{.*}} : i32
// CHECK-NOT: tile.search
func.func @search(%t: memref<?x?xi32>, %o: memref<4x1xi32>, %b: i32, %r: i32) {
  %c0 = arith.constant 0 : index
  %rows = tile.coords %r, 0 : vector<4x1xi32>
  %n = tile.search %t[%b], %rows : memref<?x?xi32>, vector<4x1xi32>, (i32) -> vector<4x1xi32>
  tile.store %n, %o[%c0, %c0] : vector<4x1xi32>, memref<4x1xi32>
  return
}

// CHECK-LABEL: func @scalar_search
// CHECK: scf.while
// CHECK: arith.index_cast %{{.*}} : index to i32
// CHECK-NOT: tile.search
func.func @scalar_search(%t: memref<?xi32>, %o: memref<4x1xi32>, %v: i32) {
  %c0 = arith.constant 0 : index
  %n = tile.search %t[], %v : memref<?xi32>, i32, () -> i32
  %rows = tile.coords %n, 0 : vector<4x1xi32>
  tile.store %rows, %o[%c0, %c0] : vector<4x1xi32>, memref<4x1xi32>
  return
}

// Packed tiles lie row after row; sums are added to what is there.
// CHECK-LABEL: @packed(
func.func @packed(%m: memref<?x32xf32>, %i: index) {
  %c0 = arith.constant 0 : index
  // CHECK: %[[ROW:.*]] = arith.muli %{{.*}}, %{{.*}} : index
  // CHECK: %[[AT:.*]] = arith.addi %[[ROW]], %{{.*}} : index
  // CHECK: %[[X:.*]] = memref.load %[[M:.*]][%[[I:.*]], %[[AT]]] : memref<?x32xf32>
  // CHECK: memref.store %[[X]]
  %t = tile.load %m[%i, %c0] packed : memref<?x32xf32>, vector<4x8xf32>
  // CHECK: %[[OLD:.*]] = memref.load %[[M]][%[[I]], %[[TO:.*]]] : memref<?x32xf32>
  // CHECK: %[[NEW:.*]] = arith.addf %[[OLD]], %{{.*}} : f32
  // CHECK: memref.store %[[NEW]], %[[M]][%[[I]], %[[TO]]] : memref<?x32xf32>
  tile.store %t, %m[%i, %c0] accumulate packed : vector<4x8xf32>, memref<?x32xf32>
  return
}
