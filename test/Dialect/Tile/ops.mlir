// RUN: attn-opt %s | FileCheck %s
// RUN: attn-opt %s --mlir-print-op-generic | attn-opt | FileCheck %s

!view = memref<?x4x?x80xbf16, strided<[?, ?, ?, 1], offset: ?>>

// CHECK-LABEL: func.func @memory
func.func @memory(%k: !view, %b: index, %h: index, %row: index) {
  %c0 = arith.constant 0 : index
  // CHECK: %[[T:.*]] = tile.load %{{.*}}[%{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}] : memref<?x4x?x80xbf16, strided<[?, ?, ?, 1], offset: ?>>, vector<64x80xbf16>
  %t = tile.load %k[%b, %h, %row, %c0] : !view, vector<64x80xbf16>
  // CHECK: tile.store %[[T]], %{{.*}}[%{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}] : vector<64x80xbf16>, memref<?x4x?x80xbf16, strided<[?, ?, ?, 1], offset: ?>>
  tile.store %t, %k[%b, %h, %row, %c0] : vector<64x80xbf16>, !view
  return
}

// CHECK-LABEL: func.func @gather
func.func @gather(%table: memref<?x?x?xf32>, %h: i32, %rows: vector<64x1xi32>,
                  %cols: vector<1x32xi32>) -> vector<64x32xf32> {
  // CHECK: tile.gather %{{.*}}[%{{.*}}, %{{.*}}, %{{.*}}] : memref<?x?x?xf32>, (i32, vector<64x1xi32>, vector<1x32xi32>) -> vector<64x32xf32>
  %bias = tile.gather %table[%h, %rows, %cols]
    : memref<?x?x?xf32>, (i32, vector<64x1xi32>, vector<1x32xi32>) -> vector<64x32xf32>
  return %bias : vector<64x32xf32>
}

// CHECK-LABEL: func.func @gather_rank0
func.func @gather_rank0(%table: memref<f32>) -> vector<64x1xf32> {
  // CHECK: tile.gather %{{.*}}[] : memref<f32>, () -> vector<64x1xf32>
  %r = tile.gather %table[] : memref<f32>, () -> vector<64x1xf32>
  return %r : vector<64x1xf32>
}

// CHECK-LABEL: func.func @coords
func.func @coords(%base: i32) -> (vector<128x1xi32>, vector<1x64xi32>) {
  // CHECK: tile.coords %{{.*}}, 0 : vector<128x1xi32>
  %rows = tile.coords %base, 0 : vector<128x1xi32>
  // CHECK: tile.coords %{{.*}}, 1 : vector<1x64xi32>
  %cols = tile.coords %base, 1 : vector<1x64xi32>
  return %rows, %cols : vector<128x1xi32>, vector<1x64xi32>
}

// CHECK-LABEL: func.func @softmax
func.func @softmax(%s: vector<16x32xf32>, %m: vector<16x1xf32>,
                   %l: vector<16x1xf32>) -> vector<16x32xf32> {
  // CHECK: tile.online_softmax %{{.*}}, %{{.*}}, %{{.*}} : vector<16x32xf32>, vector<16x1xf32>
  %p, %m1, %l1, %c1 = tile.online_softmax %s, %m, %l
    : vector<16x32xf32>, vector<16x1xf32>
  // CHECK: tile.online_softmax %{{.*}}, %{{.*}}, %{{.*}} {exp2, guard, scale = 1.250000e-01 : f32}
  %p2, %m2, %l2, %c2 = tile.online_softmax %p, %m1, %l1
    {exp2, guard, scale = 0.125 : f32} : vector<16x32xf32>, vector<16x1xf32>
  // CHECK: tile.online_softmax %{{.*}}, %{{.*}}, %{{.*}} {exact}
  %p3, %m3, %l3, %c3 = tile.online_softmax %p2, %m2, %l2 {exact}
    : vector<16x32xf32>, vector<16x1xf32>
  return %p3 : vector<16x32xf32>
}

// CHECK-LABEL: func.func @search
func.func @search(%t: memref<?x?xi32>, %e: memref<?xi32>, %b: i32,
                  %rows: vector<16x1xi32>) -> (vector<16x1xi32>, i32) {
  // CHECK: tile.search %{{.*}}[%{{.*}}], %{{.*}} : memref<?x?xi32>, vector<16x1xi32>, (i32) -> vector<16x1xi32>
  %n = tile.search %t[%b], %rows : memref<?x?xi32>, vector<16x1xi32>, (i32) -> vector<16x1xi32>
  // CHECK: tile.search %{{.*}}[], %{{.*}} : memref<?xi32>, i32, () -> i32
  %s = tile.search %e[], %b : memref<?xi32>, i32, () -> i32
  // CHECK: tile.gather %{{.*}}[%{{.*}}] {sorted} : memref<?xi32>, (vector<16x1xi32>) -> vector<16x1xi32>
  %g = tile.gather %e[%rows] {sorted} : memref<?xi32>, (vector<16x1xi32>) -> vector<16x1xi32>
  return %n, %s : vector<16x1xi32>, i32
}

// CHECK-LABEL: func.func @idle
func.func @idle(%n: index, %visits: memref<?xi32>) {
  %c0 = arith.constant 0 : i32
  tile.kernel @idle plan(#attn.plan<target = sm_80, block_q = 64, block_k = 64, warps = 4>) grid(%b, %h, %x) in (%n, %n, %n) {
    %count = memref.load %visits[%x] : memref<?xi32>
    %nothing = arith.cmpi eq, %count, %c0 : i32
    // CHECK: tile.exit_if %{{.*}}
    tile.exit_if %nothing
  }
  return
}

// CHECK-LABEL: func.func @shares
func.func @shares(%n: index) {
  tile.kernel @shares plan(#attn.plan<target = sm_80, block_q = 64, block_k = 64, warps = 4>) grid(%b, %h, %x) in (%n, %n, %n) {
    // CHECK: tile.share_blocks %{{.*}} of 8
    tile.share_blocks %b of 8
  }
  return
}

// CHECK-LABEL: func.func @groups
func.func @groups(%lo: index, %hi: index) -> (index, index) {
  // CHECK: tile.group_bounds[%[[LO:.*]], %{{.*}}) of 64 {
  // CHECK-NEXT: ^bb0(%[[ROW:.*]]: index):
  // CHECK-NEXT: tile.yield %[[LO]], %[[ROW]] : index, index
  %first, %end = tile.group_bounds [%lo, %hi) of 64 {
  ^bb0(%row: index):
    tile.yield %lo, %row : index, index
  }
  // CHECK: tile.group_bounds[%{{.*}}, %{{.*}}, %{{.*}}) of 64 {
  %bounds:3 = tile.group_bounds [%lo, %lo, %hi) of 64 {
  ^bb0(%row: index):
    tile.yield %lo, %row, %hi : index, index, index
  }
  return %first, %end : index, index
}

// CHECK-LABEL: func.func @scores
func.func @scores(%x: vector<16x32xf32>, %b: i32, %h: i32, %n: i32,
                  %i: vector<16x1xi32>, %j: vector<1x32xi32>,
                  %table: memref<?x?xf32>, %ends: memref<?xi32>)
    -> (vector<16x32xf32>, vector<16x32xf32>, vector<16x32xf32>) {
  // CHECK: tile.scores %{{.*}} at(%{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}) below(%{{.*}}) score {
  // CHECK-NEXT: ^bb0(%[[S:.*]]: f32, %{{.*}}: i32, %[[H:.*]]: i32, %{{.*}}: i32, %[[J:.*]]: i32):
  // CHECK-NEXT: %[[BIAS:.*]] = tile.gather %{{.*}}[%[[H]], %[[J]]] : memref<?x?xf32>, (i32, i32) -> f32
  // CHECK: } mask {
  // CHECK: tile.yield %{{.*}} : i1
  // CHECK-NEXT: } : vector<16x32xf32>, vector<16x1xi32>, vector<1x32xi32>
  %y = tile.scores %x at(%b, %h, %i, %j) below(%n) score {
  ^bb0(%s: f32, %batch: i32, %head: i32, %query: i32, %key: i32):
    %bias = tile.gather %table[%head, %key] : memref<?x?xf32>, (i32, i32) -> f32
    %sum = arith.addf %s, %bias : f32
    tile.yield %sum : f32
  } mask {
  ^bb0(%batch: i32, %head: i32, %query: i32, %key: i32):
    %c0 = arith.constant 0 : index
    %size = memref.dim %ends, %c0 : memref<?xi32>
    %last = arith.index_cast %size : index to i32
    %document = tile.search %ends[], %query : memref<?xi32>, i32, () -> i32
    %visible = arith.cmpi slt, %document, %last : i32
    tile.yield %visible : i1
  } : vector<16x32xf32>, vector<16x1xi32>, vector<1x32xi32>
  // CHECK: tile.scores %{{.*}} at(%{{.*}}) : vector<16x32xf32>
  %z = tile.scores %x at(%b, %h, %i, %j) : vector<16x32xf32>, vector<16x1xi32>, vector<1x32xi32>
  // Keys along the rows, queries along the columns.
  // CHECK: tile.scores %{{.*}} at(%{{.*}}) mask {
  // CHECK: } : vector<16x32xf32>, vector<1x32xi32>, vector<16x1xi32>
  %t = tile.scores %x at(%b, %h, %j, %i) mask {
  ^bb0(%batch: i32, %head: i32, %query: i32, %key: i32):
    %causal = arith.cmpi sle, %key, %query : i32
    tile.yield %causal : i1
  } : vector<16x32xf32>, vector<1x32xi32>, vector<16x1xi32>
  return %y, %z, %t : vector<16x32xf32>, vector<16x32xf32>, vector<16x32xf32>
}

// Kernels of one function, one after the other.
// CHECK-LABEL: @kernels(
func.func @kernels(%n: index) {
  // CHECK: tile.kernel @first plan(#attn.plan<target = cpu, block_q = 8, block_k = 8>) grid(%{{.*}}, %{{.*}}, %{{.*}}) in (%{{.*}}, %{{.*}}, %{{.*}}) {
  // CHECK-NEXT: }
  tile.kernel @first plan(#attn.plan<target = cpu, block_q = 8, block_k = 8>) grid(%b, %h, %x) in (%n, %n, %n) {
  }
  // CHECK-NEXT: tile.kernel @second {{.*}} attributes {test.note = 1 : i64} {
  tile.kernel @second plan(#attn.plan<target = cpu, block_q = 8, block_k = 8>) grid(%b, %h, %x) in (%n, %n, %n) attributes {test.note = 1} {
  }
  return
}

// CHECK-LABEL: @sums(
func.func @sums(%m: memref<?x?xf32>, %packed: memref<?x32xf32>, %t: vector<4x8xf32>, %i: index)
    -> vector<4x8xf32> {
  %c0 = arith.constant 0 : index
  // CHECK: tile.store %{{.*}}, %{{.*}}[%{{.*}}, %{{.*}}] accumulate : vector<4x8xf32>, memref<?x?xf32>
  tile.store %t, %m[%i, %i] accumulate : vector<4x8xf32>, memref<?x?xf32>
  // CHECK: tile.store %{{.*}}, %{{.*}}[%{{.*}}, %{{.*}}] packed : vector<4x8xf32>, memref<?x32xf32>
  tile.store %t, %packed[%i, %c0] packed : vector<4x8xf32>, memref<?x32xf32>
  // CHECK: tile.store %{{.*}}, %{{.*}}[%{{.*}}, %{{.*}}] accumulate packed : vector<4x8xf32>, memref<?x32xf32>
  tile.store %t, %packed[%i, %c0] accumulate packed : vector<4x8xf32>, memref<?x32xf32>
  // CHECK: tile.load %{{.*}}[%{{.*}}, %{{.*}}] packed : memref<?x32xf32>, vector<4x8xf32>
  %sum = tile.load %packed[%i, %c0] packed : memref<?x32xf32>, vector<4x8xf32>
  return %sum : vector<4x8xf32>
}

// CHECK-LABEL: @slices(
func.func @slices(%q: memref<?x?x?x64xf32>, %lse: memref<?x?x?xf32>, %t: vector<16xf32>, %b: i32, %i: index,
                  %x: vector<16x32xf32>, %heads: vector<16x1xi32>, %rows: vector<16x1xi32>, %keys: vector<1x32xi32>) {
  %c0 = arith.constant 0 : index
  // CHECK: %[[Q:.*]] = tile.load %{{.*}}[%{{.*}}] slices 2 : memref<?x?x?x64xf32>, vector<16x64xf32>
  %q0 = tile.load %q[%i, %i, %i, %c0] slices 2 : memref<?x?x?x64xf32>, vector<16x64xf32>
  // CHECK: tile.load %{{.*}}[%{{.*}}] slices 2 below(%{{.*}}) : memref<?x?x?x64xf32>, vector<16x64xf32>
  %q1 = tile.load %q[%i, %i, %i, %c0] slices 2 below(%i) : memref<?x?x?x64xf32>, vector<16x64xf32>
  // CHECK: tile.store %[[Q]], %{{.*}}[%{{.*}}] slices 2 below(%{{.*}}) : vector<16x64xf32>, memref<?x?x?x64xf32>
  tile.store %q0, %q[%i, %i, %i, %c0] slices 2 below(%i) : vector<16x64xf32>, memref<?x?x?x64xf32>
  // CHECK: tile.store %{{.*}}, %{{.*}}[%{{.*}}] slices 4 : vector<16xf32>, memref<?x?x?xf32>
  tile.store %t, %lse[%i, %i, %i] slices 4 : vector<16xf32>, memref<?x?x?xf32>
  // CHECK: tile.scores %{{.*}} at(%{{.*}}) : vector<16x32xf32>, vector<16x1xi32>, vector<1x32xi32>, vector<16x1xi32>
  %y = tile.scores %x at(%b, %heads, %rows, %keys) : vector<16x32xf32>, vector<16x1xi32>, vector<1x32xi32>, vector<16x1xi32>
  return
}
