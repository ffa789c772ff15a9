// Which kernels gradients of captures become.
//
// RUN: attn-opt %s --split-input-file --attn-recompute --convert-attn-to-tile | FileCheck %s

// A slope per head and a number: the keys of a query are summed in one kernel
// for both, then the queries in another, then batch entries, and heads for the
// number.
// CHECK-LABEL: func.func @numbers(
// CHECK: tile.kernel @numbers_d_query
// CHECK-NOT: tile.kernel @numbers_capture
// CHECK: %[[A:.*]] = memref.alloc(%{{.*}}) : memref<2x2x4x?xf32>
// CHECK: tile.kernel @numbers_capture_queries
// CHECK: scf.for {{.*}} -> (vector<8xf32>, vector<8xf32>) {
// CHECK: %[[Y:.*]] = tile.scores
// Weights without the rounding of lse * log2(e), which all of a row would share.
// CHECK: scf.if
// CHECK: math.exp2
// CHECK: else
// CHECK: %[[EXCESS:.*]] = arith.subf %[[Y]]
// CHECK: %[[LIMITED:.*]] = arith.minimumf %[[EXCESS]]
// CHECK: math.exp %[[LIMITED]]
// CHECK: tile.store %{{.*}}, %[[A]][%c0,
// CHECK: tile.store %{{.*}}, %[[A]][%c1,
// CHECK: %[[SUMS:.*]] = memref.alloc() : memref<2x2x4xf32>
// CHECK: tile.kernel @numbers_capture_rows
// CHECK: tile.gather %[[A]]
// CHECK: tile.store %{{.*}}, %[[SUMS]]
// CHECK: tile.kernel @numbers_d_c0
// CHECK: scf.for %{{.*}} = %c0 to %c2
// CHECK: %[[P:.*]] = arith.index_cast %c0 :
// CHECK: tile.gather %[[SUMS]][%[[P]],
// CHECK: tile.store {{.*}} memref<4xf32
// CHECK: %[[ONE:.*]] = memref.alloc() : memref<1xf32>
// CHECK: tile.kernel @numbers_d_c1
// CHECK: scf.for %{{.*}} = %c0 to %c8
// CHECK: %[[P:.*]] = arith.index_cast %c1 :
// CHECK: tile.gather %[[SUMS]][%[[P]],
// CHECK: tile.store {{.*}}, %[[ONE]]
// CHECK: tile.kernel @numbers_d_c1_number
// CHECK: %[[N:.*]] = memref.load %[[ONE]]
// CHECK: memref.store %[[N]], %{{.*}}[] : memref<f32
// CHECK-NOT: tile.kernel
#plan = #attn.plan<target = cpu, block_q = 8, block_k = 16>
!t = tensor<2x4x?x64xf16>
!l = tensor<2x4x?xf32>
func.func @numbers(%q: !t, %k: !t, %l: !l, %s: tensor<4xf32>, %f: f32) -> (!t, tensor<4xf32>, tensor<f32>) {
  %r:5 = attn.attention_backward %q, %k, %k, %q, %l, %q captures(%s, %f) {grad_captures = array<i64: 0, 1>, plan = #plan}
    score(%x: f32, %b: i32, %h: i32, %i: i32, %j: i32, %t: tensor<4xf32>, %g: f32) {
      %u = attn.capture_load %t[%h] : tensor<4xf32>
      %v = arith.mulf %u, %g : f32
      %y = arith.mulf %x, %v : f32
      attn.yield %y : f32
    }
    pullback(%dy: f32, %x: f32, %b: i32, %h: i32, %i: i32, %j: i32, %t: tensor<4xf32>, %g: f32) {
      %u = attn.capture_load %t[%h] : tensor<4xf32>
      %v = arith.mulf %u, %g : f32
      %dv = arith.mulf %dy, %x : f32
      %du = arith.mulf %dv, %g : f32
      %dg = arith.mulf %dv, %u : f32
      attn.capture_add %du, %t[%h] : tensor<4xf32>
      attn.capture_add %dg, %g[] : f32
      %dx = arith.mulf %dy, %v : f32
      attn.yield %dx : f32
    }
    : (!t, !t, !t, !t, !l, !t, tensor<4xf32>, f32) -> (!t, !t, !t, tensor<4xf32>, tensor<f32>)
  return %r#0, %r#3, %r#4 : !t, tensor<4xf32>, tensor<f32>
}

// -----

// A bias for all batch entries: a block of it has one owner, which goes through
// them. There is nothing to be peeled: hidden elements have a gradient, too, 0.
// CHECK-LABEL: func.func @pairs(
// CHECK: tile.kernel @pairs_d_c0 plan(#attn.plan<target = cpu, block_q = 8, block_k = 16>) grid(%{{.*}}, %{{.*}}, %[[X:.*]]) in (%c1, %c1, %{{.*}}) {
// CHECK: arith.remsi %[[X]]
// CHECK: %[[SUM:.*]] = scf.for %{{.*}} = %c0 to %c2 {{.*}} -> (vector<8x16xf32>) {
// CHECK-NOT: tile.scores
// CHECK: arith.addf %{{.*}} : vector<8x16xf32>
// CHECK: arith.truncf %[[SUM]]
// CHECK: tile.store {{.*}} memref<4x?x?xf16
// CHECK-NOT: tile.kernel
#plan = #attn.plan<target = cpu, block_q = 8, block_k = 16>
!t = tensor<2x4x?x64xf16>
!l = tensor<2x4x?xf32>
func.func @pairs(%q: !t, %k: !t, %l: !l, %s: tensor<4x?x?xf16>) -> tensor<4x?x?xf16> {
  %r:4 = attn.attention_backward %q, %k, %k, %q, %l, %q captures(%s) {grad_captures = array<i64: 0>, plan = #plan}
    score(%x: f32, %b: i32, %h: i32, %i: i32, %j: i32, %t: tensor<4x?x?xf16>) {
      %u = attn.capture_load %t[%h, %i, %j] : tensor<4x?x?xf16>
      %v = arith.extf %u : f16 to f32
      %y = arith.addf %x, %v : f32
      attn.yield %y : f32
    }
    pullback(%dy: f32, %x: f32, %b: i32, %h: i32, %i: i32, %j: i32, %t: tensor<4x?x?xf16>) {
      attn.capture_add %dy, %t[%h, %i, %j] : tensor<4x?x?xf16>
      attn.yield %dy : f32
    }
    : (!t, !t, !t, !t, !l, !t, tensor<4x?x?xf16>) -> (!t, !t, !t, tensor<4x?x?xf16>)
  return %r#3 : tensor<4x?x?xf16>
}

// -----

// What a mask reads of its batch entry is read in the loop over these, before
// the scores that it hides.
// CHECK-LABEL: func.func @pairs_of_lengths(
// CHECK: tile.kernel @pairs_of_lengths_d_c0
// CHECK: scf.for
// CHECK: %[[LENGTH:.*]] = scf.if
// CHECK: vector.broadcast %[[LENGTH]] : i32
// CHECK-NOT: tile.kernel
#plan = #attn.plan<target = cpu, block_q = 8, block_k = 16>
!t = tensor<2x4x?x64xf16>
!l = tensor<2x4x?xf32>
func.func @pairs_of_lengths(%q: !t, %k: !t, %l: !l, %s: tensor<4x?x?xf32>, %n: tensor<2xi32>) -> tensor<4x?x?xf32> {
  %r:4 = attn.attention_backward %q, %k, %k, %q, %l, %q captures(%s, %n) {grad_captures = array<i64: 0>, plan = #plan}
    score(%x: f32, %b: i32, %h: i32, %i: i32, %j: i32, %t: tensor<4x?x?xf32>, %m: tensor<2xi32>) {
      %u = attn.capture_load %t[%h, %i, %j] : tensor<4x?x?xf32>
      %y = arith.addf %x, %u : f32
      attn.yield %y : f32
    }
    mask(%b: i32, %h: i32, %i: i32, %j: i32, %t: tensor<4x?x?xf32>, %m: tensor<2xi32>) {
      %u = attn.capture_load %m[%b] : tensor<2xi32>
      %y = arith.cmpi slt, %j, %u : i32
      attn.yield %y : i1
    }
    pullback(%dy: f32, %x: f32, %b: i32, %h: i32, %i: i32, %j: i32, %t: tensor<4x?x?xf32>, %m: tensor<2xi32>) {
      attn.capture_add %dy, %t[%h, %i, %j] : tensor<4x?x?xf32>
      attn.yield %dy : f32
    }
    : (!t, !t, !t, !t, !l, !t, tensor<4x?x?xf32>, tensor<2xi32>) -> (!t, !t, !t, tensor<4x?x?xf32>)
  return %r#3 : tensor<4x?x?xf32>
}

// -----

// Two numbers for a query: of its own, and of a key. Both have sums of their own,
// which are added up at the end.
// CHECK-LABEL: func.func @query_and_key(
// CHECK: tile.kernel @query_and_key_capture_queries
// CHECK: tile.store %{{.*}}, %[[ROWS:[a-z0-9_]*]][
// CHECK: tile.kernel @query_and_key_capture_keys
// CHECK: tile.store %{{.*}}, %[[KEYS:[a-z0-9_]*]][
// CHECK: tile.kernel @query_and_key_d_c0
// CHECK: tile.gather %[[ROWS]]
// CHECK: tile.gather %[[KEYS]]
// CHECK: tile.store
// CHECK-NOT: tile.kernel
#plan = #attn.plan<target = cpu, block_q = 8, block_k = 16>
!t = tensor<2x4x?x64xf16>
!l = tensor<2x4x?xf32>
func.func @query_and_key(%q: !t, %k: !t, %l: !l, %s: tensor<?xf32>) -> tensor<?xf32> {
  %r:4 = attn.attention_backward %q, %k, %k, %q, %l, %q captures(%s) {grad_captures = array<i64: 0>, plan = #plan}
    score(%x: f32, %b: i32, %h: i32, %i: i32, %j: i32, %t: tensor<?xf32>) {
      %u = attn.capture_load %t[%i] : tensor<?xf32>
      %v = attn.capture_load %t[%j] : tensor<?xf32>
      %w = arith.addf %u, %v : f32
      %y = arith.addf %x, %w : f32
      attn.yield %y : f32
    }
    pullback(%dy: f32, %x: f32, %b: i32, %h: i32, %i: i32, %j: i32, %t: tensor<?xf32>) {
      attn.capture_add %dy, %t[%i] : tensor<?xf32>
      attn.capture_add %dy, %t[%j] : tensor<?xf32>
      attn.yield %dy : f32
    }
    : (!t, !t, !t, !t, !l, !t, tensor<?xf32>) -> (!t, !t, !t, tensor<?xf32>)
  return %r#3 : tensor<?xf32>
}

// -----

// Relative positions: blocks along a diagonal are one sum, stored as a block;
// its diagonals are the sums by distance. The index is a distance and a number:
// each element of the table reads the sum that it is. A place of these blocks has
// one distance: the bias of the scores is read before the loop, in which only what
// is by query is.
// CHECK-LABEL: func.func @distances(
// CHECK: %[[STORED:.*]] = memref.alloc(%{{.*}}) : memref<2x4x?x8xf32>
// CHECK: tile.kernel @distances_capture_0_diagonals
// CHECK: %[[BIAS:.*]] = tile.gather %arg3[%{{.*}}, %{{.*}}] : memref<4x?xf32, {{.*}} -> vector<8x8xf32>
// CHECK: scf.for {{.*}} -> (vector<8x8xf32>) {
// CHECK: tile.gather %{{.*}} -> vector<8x1xf32>
// CHECK: arith.addf %{{.*}}, %[[BIAS]] : vector<8x8xf32>
// CHECK-NOT: tile.gather %arg3
// CHECK: tile.store %{{.*}}, %[[STORED]]
// CHECK: %[[SUMS:.*]] = memref.alloc(%{{.*}}) : memref<2x4x?xf32>
// CHECK: tile.kernel @distances_capture_0_distances
// CHECK: arith.divui
// CHECK: arith.remui
// CHECK: tile.gather %[[STORED]]
// CHECK: tile.store %{{.*}}, %[[SUMS]]
// CHECK: tile.kernel @distances_d_c0
// CHECK-NOT: arith.cmpi
// CHECK: tile.gather %[[SUMS]]{{.*}} -> vector<8x1xf32>
// CHECK: tile.store
// CHECK-NOT: tile.kernel
#plan = #attn.plan<target = cpu, block_q = 8, block_k = 16>
!t = tensor<2x4x?x64xf16>
!l = tensor<2x4x?xf32>
func.func @distances(%q: !t, %k: !t, %l: !l, %s: tensor<4x?xf32>) -> tensor<4x?xf32> {
  %r:4 = attn.attention_backward %q, %k, %k, %q, %l, %q captures(%s) {grad_captures = array<i64: 0>, plan = #plan}
    score(%x: f32, %b: i32, %h: i32, %i: i32, %j: i32, %t: tensor<4x?xf32>) {
      %c = arith.constant 100 : i32
      %d = arith.subi %j, %i : i32
      %n = arith.addi %d, %c : i32
      %u = attn.capture_load %t[%h, %n] : tensor<4x?xf32>
      %y = arith.addf %x, %u : f32
      attn.yield %y : f32
    }
    pullback(%dy: f32, %x: f32, %b: i32, %h: i32, %i: i32, %j: i32, %t: tensor<4x?xf32>) {
      %c = arith.constant 100 : i32
      %d = arith.subi %j, %i : i32
      %n = arith.addi %d, %c : i32
      attn.capture_add %dy, %t[%h, %n] : tensor<4x?xf32>
      attn.yield %dy : f32
    }
    : (!t, !t, !t, !t, !l, !t, tensor<4x?xf32>) -> (!t, !t, !t, tensor<4x?xf32>)
  return %r#3 : tensor<4x?xf32>
}

// -----

// Eight warps that share 128 queries have registers for 64 keys of a diagonal,
// though the other kernels take 32 at a time: a block of queries is read half as
// often. At 256 columns, and with f32, whose slots would be too large, there are
// 32.
// CHECK-LABEL: func.func @wide_distances(
// CHECK: memref.alloc(%{{.*}}) : memref<2x4x?x64xf32>
// CHECK: tile.kernel @wide_distances_capture_0_diagonals plan(#attn.plan<target = sm_90a, block_q = 128, block_k = 64, warps = 8>)
// CHECK: scf.for {{.*}} -> (vector<128x64xf32>) {
// CHECK: tile.kernel @wide_distances_capture_0_distances plan(#attn.plan<target = sm_90a, block_q = 128, block_k = 32, warps = 8, stages = 2>)
// CHECK-LABEL: func.func @widest_heads(
// CHECK: tile.kernel @widest_heads_capture_0_diagonals plan(#attn.plan<target = sm_90a, block_q = 128, block_k = 32, warps = 8>)
// CHECK-LABEL: func.func @large_elements(
// CHECK: tile.kernel @large_elements_capture_0_diagonals plan(#attn.plan<target = sm_80, block_q = 64, block_k = 32, warps = 4>)
#plan = #attn.plan<target = sm_90a, block_q = 128, block_k = 32, warps = 8, stages = 2>
#small = #attn.plan<target = sm_80, block_q = 64, block_k = 32, warps = 4>
func.func @wide_distances(%q: tensor<2x4x?x128xf16>, %k: tensor<2x4x?x128xf16>, %l: tensor<2x4x?xf32>, %s: tensor<4x?xf32>) -> tensor<4x?xf32> {
  %r:4 = attn.attention_backward %q, %k, %k, %q, %l, %q captures(%s) {grad_captures = array<i64: 0>, plan = #plan}
    score(%x: f32, %b: i32, %h: i32, %i: i32, %j: i32, %t: tensor<4x?xf32>) {
      %d = arith.subi %j, %i : i32
      %u = attn.capture_load %t[%h, %d] : tensor<4x?xf32>
      %y = arith.addf %x, %u : f32
      attn.yield %y : f32
    }
    pullback(%dy: f32, %x: f32, %b: i32, %h: i32, %i: i32, %j: i32, %t: tensor<4x?xf32>) {
      %d = arith.subi %j, %i : i32
      attn.capture_add %dy, %t[%h, %d] : tensor<4x?xf32>
      attn.yield %dy : f32
    }
    : (tensor<2x4x?x128xf16>, tensor<2x4x?x128xf16>, tensor<2x4x?x128xf16>, tensor<2x4x?x128xf16>, tensor<2x4x?xf32>, tensor<2x4x?x128xf16>, tensor<4x?xf32>)
      -> (tensor<2x4x?x128xf16>, tensor<2x4x?x128xf16>, tensor<2x4x?x128xf16>, tensor<4x?xf32>)
  return %r#3 : tensor<4x?xf32>
}

func.func @widest_heads(%q: tensor<2x4x?x256xf16>, %k: tensor<2x4x?x256xf16>, %l: tensor<2x4x?xf32>, %s: tensor<4x?xf32>) -> tensor<4x?xf32> {
  %r:4 = attn.attention_backward %q, %k, %k, %q, %l, %q captures(%s) {grad_captures = array<i64: 0>, plan = #plan}
    score(%x: f32, %b: i32, %h: i32, %i: i32, %j: i32, %t: tensor<4x?xf32>) {
      %d = arith.subi %j, %i : i32
      %u = attn.capture_load %t[%h, %d] : tensor<4x?xf32>
      %y = arith.addf %x, %u : f32
      attn.yield %y : f32
    }
    pullback(%dy: f32, %x: f32, %b: i32, %h: i32, %i: i32, %j: i32, %t: tensor<4x?xf32>) {
      %d = arith.subi %j, %i : i32
      attn.capture_add %dy, %t[%h, %d] : tensor<4x?xf32>
      attn.yield %dy : f32
    }
    : (tensor<2x4x?x256xf16>, tensor<2x4x?x256xf16>, tensor<2x4x?x256xf16>, tensor<2x4x?x256xf16>, tensor<2x4x?xf32>, tensor<2x4x?x256xf16>, tensor<4x?xf32>)
      -> (tensor<2x4x?x256xf16>, tensor<2x4x?x256xf16>, tensor<2x4x?x256xf16>, tensor<4x?xf32>)
  return %r#3 : tensor<4x?xf32>
}

func.func @large_elements(%q: tensor<2x4x?x128xf32>, %k: tensor<2x4x?x128xf32>, %l: tensor<2x4x?xf32>, %s: tensor<4x?xf32>) -> tensor<4x?xf32> {
  %r:4 = attn.attention_backward %q, %k, %k, %q, %l, %q captures(%s) {grad_captures = array<i64: 0>, plan = #small}
    score(%x: f32, %b: i32, %h: i32, %i: i32, %j: i32, %t: tensor<4x?xf32>) {
      %d = arith.subi %j, %i : i32
      %u = attn.capture_load %t[%h, %d] : tensor<4x?xf32>
      %y = arith.addf %x, %u : f32
      attn.yield %y : f32
    }
    pullback(%dy: f32, %x: f32, %b: i32, %h: i32, %i: i32, %j: i32, %t: tensor<4x?xf32>) {
      %d = arith.subi %j, %i : i32
      attn.capture_add %dy, %t[%h, %d] : tensor<4x?xf32>
      attn.yield %dy : f32
    }
    : (tensor<2x4x?x128xf32>, tensor<2x4x?x128xf32>, tensor<2x4x?x128xf32>, tensor<2x4x?x128xf32>, tensor<2x4x?xf32>, tensor<2x4x?x128xf32>, tensor<4x?xf32>)
      -> (tensor<2x4x?x128xf32>, tensor<2x4x?x128xf32>, tensor<2x4x?x128xf32>, tensor<4x?xf32>)
  return %r#3 : tensor<4x?xf32>
}

// -----

// What no score reads has a gradient of 0.
// CHECK-LABEL: func.func @unread(
// CHECK: tile.kernel @unread_rows
// CHECK-NOT: tile.kernel @unread_capture
// CHECK: tile.kernel @unread_d_c0
// CHECK-NOT: scf.for
// CHECK: tile.store %cst{{.*}}, %{{.*}} : vector<8xf32>, memref<?xf32
#plan = #attn.plan<target = cpu, block_q = 8, block_k = 16>
!t = tensor<2x4x?x64xf16>
!l = tensor<2x4x?xf32>
func.func @unread(%q: !t, %k: !t, %l: !l, %s: tensor<?xf32>) -> tensor<?xf32> {
  %r:4 = attn.attention_backward %q, %k, %k, %q, %l, %q captures(%s) {grad_captures = array<i64: 0>, plan = #plan}
    : (!t, !t, !t, !t, !l, !t, tensor<?xf32>) -> (!t, !t, !t, tensor<?xf32>)
  return %r#3 : tensor<?xf32>
}

// -----

// Of other indices nothing is known: a block of queries has a bin for each
// element, 64 at a time. Numbers past the table are those of no element.
// CHECK-LABEL: func.func @table(
// CHECK: %[[STORED:.*]] = memref.alloc(%{{.*}}, %{{.*}}) : memref<2x4x?x?xf32>
// CHECK: tile.kernel @table_capture_0_elements
// CHECK-DAG: %[[BLOCK:.*]] = arith.divsi
// CHECK-DAG: %[[FIRST:.*]] = arith.muli %{{.*}}, %c64
// CHECK: %[[BINS:.*]] = tile.bins : memref<64xf32>
// CHECK: scf.for
// CHECK: arith.remui
// CHECK: %[[INSIDE:.*]] = arith.cmpi ult,
// CHECK: arith.select %[[INSIDE]], %{{.*}}, %{{.*}} : vector<8x16xi1>, vector<8x16xi32>
// CHECK: %[[NUMBER:.*]] = arith.subi
// CHECK: tile.scatter_add %{{.*}}, %[[BINS]][%[[NUMBER]]]
// CHECK: %[[PART:.*]] = arith.muli %[[BLOCK]], %c1
// CHECK: tile.store_bins %[[BINS]], %[[STORED]][%batch, %head, %[[PART]], %[[FIRST]]]
// CHECK: tile.kernel @table_capture_0_table
// CHECK: tile.gather %[[STORED]]
// CHECK: tile.store %{{.*}}, %[[SUMS:[a-z0-9_]*]][
// CHECK: tile.kernel @table_d_c0
// CHECK: tile.gather %[[SUMS]]
// CHECK-NOT: arith.cmpi
// CHECK: tile.store
// CHECK-NOT: tile.kernel
#plan = #attn.plan<target = cpu, block_q = 8, block_k = 16>
!t = tensor<2x4x?x64xf16>
!l = tensor<2x4x?xf32>
func.func @table(%q: !t, %k: !t, %l: !l, %s: tensor<?x4xf32>) -> tensor<?x4xf32> {
  %r:4 = attn.attention_backward %q, %k, %k, %q, %l, %q captures(%s) {grad_captures = array<i64: 0>, plan = #plan}
    score(%x: f32, %b: i32, %h: i32, %i: i32, %j: i32, %t: tensor<?x4xf32>) {
      %c = arith.constant 20 : i32
      %d = arith.addi %j, %i : i32
      %n = arith.remui %d, %c : i32
      %u = attn.capture_load %t[%n, %h] : tensor<?x4xf32>
      %y = arith.addf %x, %u : f32
      attn.yield %y : f32
    }
    pullback(%dy: f32, %x: f32, %b: i32, %h: i32, %i: i32, %j: i32, %t: tensor<?x4xf32>) {
      %c = arith.constant 20 : i32
      %d = arith.addi %j, %i : i32
      %n = arith.remui %d, %c : i32
      attn.capture_add %dy, %t[%n, %h] : tensor<?x4xf32>
      attn.yield %dy : f32
    }
    : (!t, !t, !t, !t, !l, !t, tensor<?x4xf32>) -> (!t, !t, !t, tensor<?x4xf32>)
  return %r#3 : tensor<?x4xf32>
}

// -----

// In f32 what goes back to the weights rounds to nearest: less delta, little of
// it may be left. Other kernels have it from tensor cores.
// CHECK-LABEL: func.func @rounded(
// CHECK-NOT: tile.ieee
// CHECK: tile.kernel @rounded_capture_queries
// CHECK: vector.contract {{.*}}, %cst{{[_0-9]*}} : vector
// CHECK-NEXT: vector.contract {{.*}} {tile.ieee} : vector
// CHECK-NOT: tile.ieee
#plan = #attn.plan<target = cpu, block_q = 8, block_k = 16>
!t = tensor<2x4x?x64xf32>
!l = tensor<2x4x?xf32>
func.func @rounded(%q: !t, %k: !t, %l: !l, %s: tensor<4xf32>) -> (!t, tensor<4xf32>) {
  %r:4 = attn.attention_backward %q, %k, %k, %q, %l, %q captures(%s) {grad_captures = array<i64: 0>, plan = #plan}
    score(%x: f32, %b: i32, %h: i32, %i: i32, %j: i32, %t: tensor<4xf32>) {
      %u = attn.capture_load %t[%h] : tensor<4xf32>
      %y = arith.mulf %x, %u : f32
      attn.yield %y : f32
    }
    pullback(%dy: f32, %x: f32, %b: i32, %h: i32, %i: i32, %j: i32, %t: tensor<4xf32>) {
      %u = attn.capture_load %t[%h] : tensor<4xf32>
      %dv = arith.mulf %dy, %x : f32
      attn.capture_add %dv, %t[%h] : tensor<4xf32>
      %dx = arith.mulf %dy, %u : f32
      attn.yield %dx : f32
    }
    : (!t, !t, !t, !t, !l, !t, tensor<4xf32>) -> (!t, !t, !t, tensor<4xf32>)
  return %r#0, %r#3 : !t, tensor<4xf32>
}

// -----

// Distances in an image of three columns: of a block of eight queries six are
// two of its rows, and the next block is six further on. Keys before the first
// one are hidden. The bias is read before the loop. Sums are numbered by rows and
// by columns apart, and each element of the table reads its own.
// CHECK-LABEL: func.func @image(
// CHECK: tile.kernel @image_capture_0_diagonals
// CHECK: %[[BIAS:.*]] = tile.gather %arg3[{{.*}} : memref<?x?xf32, {{.*}} -> vector<8x8xf32>
// CHECK: scf.for {{.*}} -> (vector<8x8xf32>) {
// CHECK-NOT: tile.gather %arg3
// CHECK: arith.addf %{{.*}}, %[[BIAS]] : vector<8x8xf32>
// CHECK: arith.cmpi sge, {{.*}} : vector<1x8xi32>
// CHECK: %[[SUMS:.*]] = memref.alloc(%{{.*}}) : memref<2x4x?x5xf32>
// CHECK: tile.kernel @image_capture_0_distances
// CHECK: tile.store %{{.*}}, %[[SUMS]][
// CHECK: tile.kernel @image_d_c0
// CHECK-NOT: arith.cmpi
// CHECK: tile.gather %[[SUMS]]{{.*}} -> vector<8x1xf32>
//
// Of a row of twelve there are two blocks of queries. The limit of the columns
// does not say which sum is an element's: all of one row are asked for it.
// CHECK-LABEL: func.func @wide_image(
// CHECK: tile.kernel @wide_image_capture_0_diagonals
// CHECK: arith.divsi
// CHECK: arith.remsi
// CHECK: %[[WIDE:.*]] = memref.alloc(%{{.*}}) : memref<2x4x?x23xf32>
// CHECK: tile.kernel @wide_image_d_c0
// CHECK: %[[ROW:.*]] = tile.gather %[[WIDE]]{{.*}} -> vector<8x16xf32>
// CHECK: %[[IS:.*]] = arith.cmpi eq,
// CHECK: arith.select %[[IS]], %[[ROW]]
//
// Quotients by three and by two have no digits that both are made of, and one of a
// position that was moved is none of a digit: these are any tables.
// CHECK-LABEL: func.func @two_images(
// CHECK: tile.kernel @two_images_capture_0_elements
// CHECK-LABEL: func.func @moved_image(
// CHECK: tile.kernel @moved_image_capture_0_elements
#plan = #attn.plan<target = cpu, block_q = 8, block_k = 16>
!t = tensor<2x4x?x64xf16>
!l = tensor<2x4x?xf32>
func.func @image(%q: !t, %k: !t, %l: !l, %s: tensor<?x?xf32>) -> tensor<?x?xf32> {
  %r:4 = attn.attention_backward %q, %k, %k, %q, %l, %q captures(%s) {grad_captures = array<i64: 0>, plan = #plan}
    score(%x: f32, %b: i32, %h: i32, %i: i32, %j: i32, %t: tensor<?x?xf32>) {
      %a = arith.constant 3 : i32
      %z = arith.constant 3 : i32
      %c = arith.constant 9 : i32
      %iy = arith.floordivsi %i, %a : i32
      %jy = arith.floordivsi %j, %a : i32
      %ix = arith.remsi %i, %z : i32
      %jx = arith.remsi %j, %z : i32
      %dy0 = arith.subi %iy, %jy : i32
      %n = arith.addi %dy0, %c : i32
      %dx0 = arith.subi %jx, %ix : i32
      %m = arith.addi %dx0, %c : i32
      %u = attn.capture_load %t[%n, %m] : tensor<?x?xf32>
      %y = arith.addf %x, %u : f32
      attn.yield %y : f32
    }
    pullback(%dy: f32, %x: f32, %b: i32, %h: i32, %i: i32, %j: i32, %t: tensor<?x?xf32>) {
      %a = arith.constant 3 : i32
      %z = arith.constant 3 : i32
      %c = arith.constant 9 : i32
      %iy = arith.floordivsi %i, %a : i32
      %jy = arith.floordivsi %j, %a : i32
      %ix = arith.remsi %i, %z : i32
      %jx = arith.remsi %j, %z : i32
      %dy0 = arith.subi %iy, %jy : i32
      %n = arith.addi %dy0, %c : i32
      %dx0 = arith.subi %jx, %ix : i32
      %m = arith.addi %dx0, %c : i32
      attn.capture_add %dy, %t[%n, %m] : tensor<?x?xf32>
      attn.yield %dy : f32
    }
    : (!t, !t, !t, !t, !l, !t, tensor<?x?xf32>) -> (!t, !t, !t, tensor<?x?xf32>)
  return %r#3 : tensor<?x?xf32>
}
func.func @wide_image(%q: !t, %k: !t, %l: !l, %s: tensor<?x?xf32>) -> tensor<?x?xf32> {
  %r:4 = attn.attention_backward %q, %k, %k, %q, %l, %q captures(%s) {grad_captures = array<i64: 0>, plan = #plan}
    score(%x: f32, %b: i32, %h: i32, %i: i32, %j: i32, %t: tensor<?x?xf32>) {
      %a = arith.constant 12 : i32
      %z = arith.constant 12 : i32
      %c = arith.constant 9 : i32
      %iy = arith.floordivsi %i, %a : i32
      %jy = arith.floordivsi %j, %a : i32
      %ix = arith.remsi %i, %z : i32
      %jx = arith.remsi %j, %z : i32
      %dy0 = arith.subi %iy, %jy : i32
      %n = arith.addi %dy0, %c : i32
      %dx0 = arith.subi %jx, %ix : i32
      %m = arith.addi %dx0, %c : i32
      %e = arith.minsi %m, %c : i32
      %u = attn.capture_load %t[%n, %e] : tensor<?x?xf32>
      %y = arith.addf %x, %u : f32
      attn.yield %y : f32
    }
    pullback(%dy: f32, %x: f32, %b: i32, %h: i32, %i: i32, %j: i32, %t: tensor<?x?xf32>) {
      %a = arith.constant 12 : i32
      %z = arith.constant 12 : i32
      %c = arith.constant 9 : i32
      %iy = arith.floordivsi %i, %a : i32
      %jy = arith.floordivsi %j, %a : i32
      %ix = arith.remsi %i, %z : i32
      %jx = arith.remsi %j, %z : i32
      %dy0 = arith.subi %iy, %jy : i32
      %n = arith.addi %dy0, %c : i32
      %dx0 = arith.subi %jx, %ix : i32
      %m = arith.addi %dx0, %c : i32
      %e = arith.minsi %m, %c : i32
      attn.capture_add %dy, %t[%n, %e] : tensor<?x?xf32>
      attn.yield %dy : f32
    }
    : (!t, !t, !t, !t, !l, !t, tensor<?x?xf32>) -> (!t, !t, !t, tensor<?x?xf32>)
  return %r#3 : tensor<?x?xf32>
}
func.func @two_images(%q: !t, %k: !t, %l: !l, %s: tensor<?x?xf32>) -> tensor<?x?xf32> {
  %r:4 = attn.attention_backward %q, %k, %k, %q, %l, %q captures(%s) {grad_captures = array<i64: 0>, plan = #plan}
    score(%x: f32, %b: i32, %h: i32, %i: i32, %j: i32, %t: tensor<?x?xf32>) {
      %a = arith.constant 3 : i32
      %z = arith.constant 2 : i32
      %c = arith.constant 9 : i32
      %iy = arith.floordivsi %i, %a : i32
      %jy = arith.floordivsi %j, %a : i32
      %ix = arith.remsi %i, %z : i32
      %jx = arith.remsi %j, %z : i32
      %dy0 = arith.subi %iy, %jy : i32
      %n = arith.addi %dy0, %c : i32
      %dx0 = arith.subi %jx, %ix : i32
      %m = arith.addi %dx0, %c : i32
      %u = attn.capture_load %t[%n, %m] : tensor<?x?xf32>
      %y = arith.addf %x, %u : f32
      attn.yield %y : f32
    }
    pullback(%dy: f32, %x: f32, %b: i32, %h: i32, %i: i32, %j: i32, %t: tensor<?x?xf32>) {
      %a = arith.constant 3 : i32
      %z = arith.constant 2 : i32
      %c = arith.constant 9 : i32
      %iy = arith.floordivsi %i, %a : i32
      %jy = arith.floordivsi %j, %a : i32
      %ix = arith.remsi %i, %z : i32
      %jx = arith.remsi %j, %z : i32
      %dy0 = arith.subi %iy, %jy : i32
      %n = arith.addi %dy0, %c : i32
      %dx0 = arith.subi %jx, %ix : i32
      %m = arith.addi %dx0, %c : i32
      attn.capture_add %dy, %t[%n, %m] : tensor<?x?xf32>
      attn.yield %dy : f32
    }
    : (!t, !t, !t, !t, !l, !t, tensor<?x?xf32>) -> (!t, !t, !t, tensor<?x?xf32>)
  return %r#3 : tensor<?x?xf32>
}
func.func @moved_image(%q: !t, %k: !t, %l: !l, %s: tensor<?x?xf32>) -> tensor<?x?xf32> {
  %r:4 = attn.attention_backward %q, %k, %k, %q, %l, %q captures(%s) {grad_captures = array<i64: 0>, plan = #plan}
    score(%x: f32, %b: i32, %h: i32, %i: i32, %j: i32, %t: tensor<?x?xf32>) {
      %a = arith.constant 3 : i32
      %z = arith.constant 3 : i32
      %c = arith.constant 9 : i32
      %i1 = arith.addi %i, %c : i32
      %iy = arith.floordivsi %i1, %a : i32
      %jy = arith.floordivsi %j, %a : i32
      %ix = arith.remsi %i, %z : i32
      %jx = arith.remsi %j, %z : i32
      %dy0 = arith.subi %iy, %jy : i32
      %n = arith.addi %dy0, %c : i32
      %dx0 = arith.subi %jx, %ix : i32
      %m = arith.addi %dx0, %c : i32
      %u = attn.capture_load %t[%n, %m] : tensor<?x?xf32>
      %y = arith.addf %x, %u : f32
      attn.yield %y : f32
    }
    pullback(%dy: f32, %x: f32, %b: i32, %h: i32, %i: i32, %j: i32, %t: tensor<?x?xf32>) {
      %a = arith.constant 3 : i32
      %z = arith.constant 3 : i32
      %c = arith.constant 9 : i32
      %i1 = arith.addi %i, %c : i32
      %iy = arith.floordivsi %i1, %a : i32
      %jy = arith.floordivsi %j, %a : i32
      %ix = arith.remsi %i, %z : i32
      %jx = arith.remsi %j, %z : i32
      %dy0 = arith.subi %iy, %jy : i32
      %n = arith.addi %dy0, %c : i32
      %dx0 = arith.subi %jx, %ix : i32
      %m = arith.addi %dx0, %c : i32
      attn.capture_add %dy, %t[%n, %m] : tensor<?x?xf32>
      attn.yield %dy : f32
    }
    : (!t, !t, !t, !t, !l, !t, tensor<?x?xf32>) -> (!t, !t, !t, tensor<?x?xf32>)
  return %r#3 : tensor<?x?xf32>
}

// -----

// Elements of each query by what keys are: bins of rows. Few elements have few
// bins. What is stored is the gradient, if batch entries and heads share nothing.
// CHECK-LABEL: func.func @rows(
// CHECK: %[[STORED:.*]] = memref.alloc(%{{.*}}) : memref<2x4x?x12xf32>
// CHECK: tile.kernel @rows_capture_0_elements
// CHECK: %[[BINS:.*]] = tile.bins : memref<8x16xf32>
// CHECK: tile.scatter_add %{{.*}}, %[[BINS]][%{{.*}}]
// CHECK: tile.store_bins %[[BINS]], %[[STORED]][%batch, %head, %[[ROW:.*]], %{{.*}}] : memref<8x16xf32>
// CHECK-NOT: @rows_capture_0_table
// CHECK: tile.kernel @rows_d_c0
// CHECK: tile.gather %[[STORED]]
//
// And of each key by what queries are: their blocks pass by.
// CHECK-LABEL: func.func @columns(
// CHECK: tile.kernel @columns_capture_0_elements
// CHECK: tile.load %{{.*}} : {{.*}}vector<8x64xf16>
// CHECK: tile.bins : memref<8x16xf32>
// CHECK: scf.for
// CHECK: tile.load %{{.*}} : {{.*}}vector<16x64xf16>
#plan = #attn.plan<target = cpu, block_q = 8, block_k = 16>
!t = tensor<2x4x?x64xf16>
!l = tensor<2x4x?xf32>
!s = tensor<2x4x?x12xf32>
func.func @rows(%q: !t, %k: !t, %l: !l, %s: !s, %kinds: tensor<?xi32>) -> !s {
  %r:4 = attn.attention_backward %q, %k, %k, %q, %l, %q captures(%s, %kinds) {grad_captures = array<i64: 0>, plan = #plan}
    score(%x: f32, %b: i32, %h: i32, %i: i32, %j: i32, %t: !s, %o: tensor<?xi32>) {
      %n = attn.capture_load %o[%j] : tensor<?xi32>
      %u = attn.capture_load %t[%b, %h, %i, %n] : !s
      %y = arith.addf %x, %u : f32
      attn.yield %y : f32
    }
    pullback(%dy: f32, %x: f32, %b: i32, %h: i32, %i: i32, %j: i32, %t: !s, %o: tensor<?xi32>) {
      %n = attn.capture_load %o[%j] : tensor<?xi32>
      attn.capture_add %dy, %t[%b, %h, %i, %n] : !s
      attn.yield %dy : f32
    }
    : (!t, !t, !t, !t, !l, !t, !s, tensor<?xi32>) -> (!t, !t, !t, !s)
  return %r#3 : !s
}
func.func @columns(%q: !t, %k: !t, %l: !l, %s: !s, %kinds: tensor<?xi32>) -> !s {
  %r:4 = attn.attention_backward %q, %k, %k, %q, %l, %q captures(%s, %kinds) {grad_captures = array<i64: 0>, plan = #plan}
    score(%x: f32, %b: i32, %h: i32, %i: i32, %j: i32, %t: !s, %o: tensor<?xi32>) {
      %n = attn.capture_load %o[%i] : tensor<?xi32>
      %u = attn.capture_load %t[%b, %h, %j, %n] : !s
      %y = arith.addf %x, %u : f32
      attn.yield %y : f32
    }
    pullback(%dy: f32, %x: f32, %b: i32, %h: i32, %i: i32, %j: i32, %t: !s, %o: tensor<?xi32>) {
      %n = attn.capture_load %o[%i] : tensor<?xi32>
      attn.capture_add %dy, %t[%b, %h, %j, %n] : !s
      attn.yield %dy : f32
    }
    : (!t, !t, !t, !t, !l, !t, !s, tensor<?xi32>) -> (!t, !t, !t, !s)
  return %r#3 : !s
}

// -----

// Tables of kinds of pairs: all scores are made once for both, and the reads of
// one table add to the same bins. Rows of queries have a kernel of their own.
// CHECK-LABEL: func.func @tables(
// CHECK: %[[A:.*]] = memref.alloc(%{{.*}}) : memref<2x4x?x7xf32>
// CHECK: %[[B:.*]] = memref.alloc(%{{.*}}) : memref<2x4x?x20xf32>
// CHECK: tile.kernel @tables_capture_0_elements
// CHECK-DAG: %[[OF_A:.*]] = tile.bins : memref<8xf32>
// CHECK-DAG: %[[OF_B:.*]] = tile.bins : memref<24xf32>
// CHECK: scf.for
// CHECK: tile.scatter_add %{{.*}}, %[[OF_A]][
// CHECK: tile.scatter_add %{{.*}}, %[[OF_A]][
// CHECK: tile.scatter_add %{{.*}}, %[[OF_B]][
// CHECK: tile.store_bins %[[OF_A]], %[[A]]
// CHECK: tile.store_bins %[[OF_B]], %[[B]]
// CHECK: tile.kernel @tables_capture_0_table
// CHECK: tile.kernel @tables_capture_2_table
// CHECK: tile.kernel @tables_capture_3_elements
// CHECK: tile.bins : memref<8x8xf32>
// CHECK: tile.kernel @tables_d_c1
// CHECK-COUNT-1: tile.gather
// CHECK-NOT: tile.gather
// CHECK: tile.kernel @tables_d_c2
// CHECK: tile.kernel @tables_d_c3
// CHECK-NOT: tile.kernel
#plan = #attn.plan<target = cpu, block_q = 8, block_k = 16>
!t = tensor<2x4x?x64xf16>
!l = tensor<2x4x?xf32>
!c = tensor<?x?xi32>
!a = tensor<4x7xf32>
!b = tensor<20xf32>
!r = tensor<4x?x5xf32>
func.func @tables(%q: !t, %k: !t, %l: !l, %c: !c, %a: !a, %b: !b, %r: !r) -> (!a, !b, !r) {
  %g:6 = attn.attention_backward %q, %k, %k, %q, %l, %q captures(%c, %a, %b, %r) {grad_captures = array<i64: 1, 2, 3>, plan = #plan}
    score(%x: f32, %bb: i32, %h: i32, %i: i32, %j: i32, %tc: !c, %ta: !a, %tb: !b, %tr: !r) {
      attn.yield %x : f32
    }
    pullback(%dy: f32, %x: f32, %bb: i32, %h: i32, %i: i32, %j: i32, %tc: !c, %ta: !a, %tb: !b, %tr: !r) {
      %one = arith.constant 1 : i32
      %kind = attn.capture_load %tc[%i, %j] : !c
      %next = arith.addi %kind, %one : i32
      attn.capture_add %dy, %ta[%h, %kind] : !a
      attn.capture_add %x, %ta[%h, %next] : !a
      attn.capture_add %dy, %tb[%kind] : !b
      attn.capture_add %dy, %tr[%h, %i, %kind] : !r
      attn.yield %dy : f32
    }
    : (!t, !t, !t, !t, !l, !t, !c, !a, !b, !r) -> (!t, !t, !t, !a, !b, !r)
  return %g#3, %g#4, %g#5 : !a, !b, !r
}
