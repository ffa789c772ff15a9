// RUN: attn-opt %s --convert-attn-to-tile --tile-expand-scores | FileCheck %s
// RUN: attn-opt %s --convert-attn-to-tile --tile-overlap-products --tile-expand-scores | FileCheck %s --check-prefix=FIRST

!q = tensor<2x8x?x64xf16>
!lse = tensor<2x8x?xf32>
#plan = #attn.plan<target = cpu, block_q = 16, block_k = 32>

// What depends on the row alone is a column vector, computed before the loop;
// what depends on the key alone is a row vector. They stretch where they meet,
// and constants become splats.
// Nothing asks for the number of the head.
// CHECK-LABEL: func.func @shapes
// CHECK: tile.kernel @{{.*}} grid(%{{.*}}, %[[H:.*]], %{{.*}}) in
// CHECK-NOT: arith.index_cast %[[H]] : index to i32
// CHECK: %[[ROWS:.*]] = tile.coords %{{.*}}, 0 : vector<16x1xi32>
// CHECK: %[[R:.*]] = arith.addi %[[ROWS]], %{{.*}} : vector<16x1xi32>
// CHECK: scf.for
// CHECK: %[[COLS:.*]] = tile.coords %{{.*}}, 1 : vector<1x32xi32>
// CHECK: %[[X:.*]] = arith.mulf %{{.*}} : vector<16x32xf32>
// CHECK: %[[J:.*]] = arith.muli %[[COLS]], %{{.*}} : vector<1x32xi32>
// CHECK: %[[JB:.*]] = vector.broadcast %[[J]] : vector<1x32xi32> to vector<16x32xi32>
// CHECK: %[[RB:.*]] = vector.broadcast %[[R]] : vector<16x1xi32> to vector<16x32xi32>
// CHECK: %[[D:.*]] = arith.subi %[[JB]], %[[RB]] : vector<16x32xi32>
// CHECK: %[[F:.*]] = arith.sitofp %[[D]] : vector<16x32xi32> to vector<16x32xf32>
// CHECK: %[[Y:.*]] = arith.addf %[[X]], %[[F]] : vector<16x32xf32>
// CHECK: arith.select %{{.*}}, %[[Y]]
// CHECK: tile.online_softmax %{{.*}} {guard}
func.func @shapes(%q: !q, %k: !q, %v: !q) -> (!q, !lse) {
  %o, %lse = attn.attention %q, %k, %v {plan = #plan}
    score(%x: f32, %b: i32, %h: i32, %i: i32, %j: i32) {
      %c3 = arith.constant 3 : i32
      %r = arith.addi %i, %c3 : i32
      %t = arith.muli %j, %c3 : i32
      %d = arith.subi %t, %r : i32
      %f = arith.sitofp %d : i32 to f32
      %y = arith.addf %x, %f : f32
      attn.yield %y : f32
    } : (!q, !q, !q) -> (!q, !lse)
  return %o, %lse : !q, !lse
}

// The mask is the region's, and the end of the keys.
// CHECK-LABEL: func.func @mask
// CHECK-SAME: %{{[a-z0-9]+}}: memref<2x8x?x64xf16, strided<[?, ?, ?, 1], offset: ?>>, %[[K:[a-z0-9]+]]: memref
// CHECK: %[[SK:.*]] = memref.dim %[[K]]
// CHECK: %[[SK32:.*]] = arith.index_cast %[[SK]] : index to i32
// CHECK: %[[LEN:.*]] = vector.broadcast %[[SK32]] : i32 to vector<1x32xi32>
// CHECK: scf.for
// CHECK: %[[COLS:.*]] = tile.coords %{{.*}}, 1
// CHECK: %[[IN:.*]] = arith.cmpi slt, %[[COLS]], %[[LEN]] : vector<1x32xi32>
// CHECK: %[[INB:.*]] = vector.broadcast %[[IN]] : vector<1x32xi1> to vector<16x32xi1>
// CHECK: %[[M:.*]] = arith.cmpi sge, %{{.*}} : vector<16x32xi32>
// CHECK: %[[MASK:.*]] = arith.andi %[[M]], %[[INB]] : vector<16x32xi1>
// CHECK: arith.select %[[MASK]]
// CHECK: tile.online_softmax %{{.*}} {guard}
func.func @mask(%q: !q, %k: !q, %v: !q) -> (!q, !lse) {
  %o, %lse = attn.attention %q, %k, %v {plan = #plan}
    mask(%b: i32, %h: i32, %i: i32, %j: i32) {
      %m = arith.cmpi sge, %i, %j : i32
      attn.yield %m : i1
    } : (!q, !q, !q) -> (!q, !lse)
  return %o, %lse : !q, !lse
}

// A tensor read at row and key is a gather; per head it is one guarded load
// before the loop; per row a gather before the loop.
// CHECK-LABEL: func.func @captures
// CHECK-SAME: %[[BIAS:[a-z0-9]+]]: memref<8x?x?xf16, strided<[?, ?, 1], offset: ?>>
// CHECK-SAME: %[[SLOPE:[a-z0-9]+]]: memref<8xf32, strided<[1], offset: ?>>
// CHECK-SAME: %[[SINK:[a-z0-9]+]]: memref<?xf32, strided<[1], offset: ?>>
// CHECK: tile.kernel @{{.*}} plan({{.*}}) grid(%{{.*}}, %[[HEAD:.*]], %{{.*}}) in
// CHECK: %[[H:.*]] = arith.index_cast %[[HEAD]] : index to i32
// CHECK: %[[S:.*]] = scf.if %{{.*}} -> (f32) {
// CHECK:   %[[E:.*]] = memref.load %[[SLOPE]]
// CHECK:   scf.yield %[[E]]
// CHECK: } else {
// CHECK:   scf.yield
// CHECK: %[[SR:.*]] = tile.gather %[[SINK]][%{{.*}}] : memref<?xf32, {{.*}}>, (vector<16x1xi32>) -> vector<16x1xf32>
// CHECK: scf.for
// CHECK: %[[G:.*]] = tile.gather %[[BIAS]][%[[H]], %{{.*}}, %{{.*}}] : memref<8x?x?xf16, {{.*}}>, (i32, vector<16x1xi32>, vector<1x32xi32>) -> vector<16x32xf16>
// CHECK: %[[X:.*]] = arith.extf %[[G]] : vector<16x32xf16> to vector<16x32xf32>
// CHECK: %[[SB:.*]] = vector.broadcast %[[S]] : f32 to vector<16x32xf32>
// CHECK: arith.mulf %[[X]], %[[SB]]
// CHECK: vector.broadcast %[[SR]] : vector<16x1xf32> to vector<16x32xf32>
func.func @captures(%q: !q, %k: !q, %v: !q, %bias: tensor<8x?x?xf16>,
                    %slope: tensor<8xf32>, %sink: tensor<?xf32>) -> (!q, !lse) {
  %o, %lse = attn.attention %q, %k, %v captures(%bias, %slope, %sink) {plan = #plan}
    score(%x: f32, %b: i32, %h: i32, %i: i32, %j: i32, %t: tensor<8x?x?xf16>, %s: tensor<8xf32>, %u: tensor<?xf32>) {
      %a = attn.capture_load %t[%h, %i, %j] : tensor<8x?x?xf16>
      %e = attn.capture_load %s[%h] : tensor<8xf32>
      %f = attn.capture_load %u[%i] : tensor<?xf32>
      %w = arith.extf %a : f16 to f32
      %z = arith.mulf %w, %e : f32
      %y = arith.addf %x, %z : f32
      %y2 = arith.addf %y, %f : f32
      attn.yield %y2 : f32
    } : (!q, !q, !q, tensor<8x?x?xf16>, tensor<8xf32>, tensor<?xf32>) -> (!q, !lse)
  return %o, %lse : !q, !lse
}

// A condition on the head alone selects for the whole block.
// CHECK-LABEL: func.func @uniform_condition
// CHECK: %[[C:.*]] = arith.cmpi slt, %{{.*}} : i32
// CHECK: scf.for
// CHECK: %[[CB:.*]] = vector.broadcast %[[C]] : i1 to vector<16x32xi1>
// CHECK: arith.select %[[CB]], %{{.*}}, %{{.*}} : vector<16x32xi1>, vector<16x32xf32>
func.func @uniform_condition(%q: !q, %k: !q, %v: !q) -> (!q, !lse) {
  %o, %lse = attn.attention %q, %k, %v {plan = #plan}
    score(%x: f32, %b: i32, %h: i32, %i: i32, %j: i32) {
      %c2 = arith.constant 2 : i32
      %c = arith.cmpi slt, %h, %c2 : i32
      %t = math.tanh %x : f32
      %y = arith.select %c, %t, %x : f32
      attn.yield %y : f32
    } : (!q, !q, !q) -> (!q, !lse)
  return %o, %lse : !q, !lse
}

// A block of one key: what depends on it has the shape of a row statistic, and
// stays in the loop all the same.
// CHECK-LABEL: func.func @one_key
// CHECK: scf.for
// CHECK: %[[COLS:.*]] = tile.coords %{{.*}}, 1 : vector<1x1xi32>
// CHECK: arith.cmpi slt, %[[COLS]], %{{.*}} : vector<1x1xi32>
// CHECK: arith.muli %[[COLS]]
func.func @one_key(%q: !q, %k: !q, %v: !q) -> (!q, !lse) {
  %o, %lse = attn.attention %q, %k, %v {plan = #attn.plan<target = cpu, block_q = 1, block_k = 1>}
    mask(%b: i32, %h: i32, %i: i32, %j: i32) {
      %c3 = arith.constant 3 : i32
      %t = arith.muli %j, %c3 : i32
      %m = arith.cmpi sge, %i, %t : i32
      attn.yield %m : i1
    } : (!q, !q, !q) -> (!q, !lse)
  return %o, %lse : !q, !lse
}

// Queries along the columns: what depends on the key alone is computed before
// the loop over queries. Outside of a loop nothing moves.
// CHECK-LABEL: func.func @transposed(
// CHECK-SAME: %[[X:[a-z0-9]+]]: vector<16x32xf32>, %[[B:[a-z0-9]+]]: i32, %[[KEYS:[a-z0-9]+]]: vector<16x1xi32>
// CHECK: %[[LATER:.*]] = arith.addi %[[KEYS]], %{{.*}} : vector<16x1xi32>
// CHECK: scf.for
// CHECK: %[[QUERIES:.*]] = tile.coords %{{.*}}, 1 : vector<1x32xi32>
// CHECK: %[[JB:.*]] = vector.broadcast %[[LATER]] : vector<16x1xi32> to vector<16x32xi32>
// CHECK: %[[IB:.*]] = vector.broadcast %[[QUERIES]] : vector<1x32xi32> to vector<16x32xi32>
// CHECK: %[[MASK:.*]] = arith.cmpi sle, %[[JB]], %[[IB]] : vector<16x32xi32>
// CHECK: arith.select %[[MASK]], %[[X]], %{{.*}} : vector<16x32xi1>, vector<16x32xf32>
func.func @transposed(%x: vector<16x32xf32>, %b: i32, %keys: vector<16x1xi32>, %n: index, %acc: vector<16x32xf32>)
    -> vector<16x32xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c32 = arith.constant 32 : index
  %r = scf.for %q = %c0 to %n step %c1 iter_args(%a = %acc) -> (vector<16x32xf32>) {
    %row = arith.muli %q, %c32 : index
    %row32 = arith.index_cast %row : index to i32
    %queries = tile.coords %row32, 1 : vector<1x32xi32>
    %y = tile.scores %x at(%b, %b, %queries, %keys) mask {
    ^bb0(%batch: i32, %head: i32, %i: i32, %j: i32):
      %c3 = arith.constant 3 : i32
      %later = arith.addi %j, %c3 : i32
      %m = arith.cmpi sle, %later, %i : i32
      tile.yield %m : i1
    } : vector<16x32xf32>, vector<1x32xi32>, vector<16x1xi32>
    %s = arith.addf %a, %y : vector<16x32xf32>
    scf.yield %s : vector<16x32xf32>
  }
  return %r : vector<16x32xf32>
}

// CHECK-LABEL: func.func @alone(
// CHECK-SAME: %[[X:[a-z0-9]+]]: vector<16x32xf32>
// CHECK: %[[Y:.*]] = arith.negf %[[X]] : vector<16x32xf32>
// CHECK-NOT: arith.select
// CHECK: return %[[Y]], %[[X]]
func.func @alone(%x: vector<16x32xf32>, %b: i32, %i: vector<16x1xi32>, %j: vector<1x32xi32>)
    -> (vector<16x32xf32>, vector<16x32xf32>) {
  %y = tile.scores %x at(%b, %b, %i, %j) score {
  ^bb0(%s: f32, %batch: i32, %head: i32, %query: i32, %key: i32):
    %n = arith.negf %s : f32
    tile.yield %n : f32
  } : vector<16x32xf32>, vector<16x1xi32>, vector<1x32xi32>
  %z = tile.scores %x at(%b, %b, %i, %j) : vector<16x32xf32>, vector<16x1xi32>, vector<1x32xi32>
  return %y, %z : vector<16x32xf32>, vector<16x32xf32>
}

// The loops of a chain share what is computed before them.
// CHECK-LABEL: func.func @chain(
// CHECK: arith.addi %{{.*}} : vector<16x1xi32>
// CHECK: scf.for
// CHECK-NOT: arith.addi %{{.*}} : vector<16x1xi32>
// CHECK: return
func.func @chain(%x: vector<16x32xf32>, %b: i32, %i: vector<16x1xi32>, %mid: index, %n: index, %acc: vector<16x32xf32>)
    -> vector<16x32xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %r = scf.for %q = %c0 to %mid step %c1 iter_args(%a = %acc) -> (vector<16x32xf32>) {
    %col = arith.index_cast %q : index to i32
    %j = tile.coords %col, 1 : vector<1x32xi32>
    %y = tile.scores %x at(%b, %b, %i, %j) mask {
    ^bb0(%batch: i32, %head: i32, %query: i32, %key: i32):
      %c3 = arith.constant 3 : i32
      %later = arith.addi %query, %c3 : i32
      %m = arith.cmpi sle, %key, %later : i32
      tile.yield %m : i1
    } : vector<16x32xf32>, vector<16x1xi32>, vector<1x32xi32>
    %s = arith.addf %a, %y : vector<16x32xf32>
    scf.yield %s : vector<16x32xf32>
  }
  %t = scf.for %q = %mid to %n step %c1 iter_args(%a = %r) -> (vector<16x32xf32>) {
    %col = arith.index_cast %q : index to i32
    %j = tile.coords %col, 1 : vector<1x32xi32>
    %y = tile.scores %x at(%b, %b, %i, %j) mask {
    ^bb0(%batch: i32, %head: i32, %query: i32, %key: i32):
      %c3 = arith.constant 3 : i32
      %later = arith.addi %query, %c3 : i32
      %m = arith.cmpi slt, %key, %later : i32
      tile.yield %m : i1
    } : vector<16x32xf32>, vector<16x1xi32>, vector<1x32xi32>
    %s = arith.addf %a, %y : vector<16x32xf32>
    scf.yield %s : vector<16x32xf32>
  }
  return %t : vector<16x32xf32>
}

// Scores that nobody uses go with others.
// CHECK-LABEL: func.func @unused
// CHECK-NEXT: return
func.func @unused(%x: vector<16x32xf32>, %b: i32, %i: vector<16x1xi32>, %j: vector<1x32xi32>) {
  %y = tile.scores %x at(%b, %b, %i, %j) : vector<16x32xf32>, vector<16x1xi32>, vector<1x32xi32>
  %z = tile.scores %y at(%b, %b, %i, %j) : vector<16x32xf32>, vector<16x1xi32>, vector<1x32xi32>
  %u = tile.scores %x at(%b, %b, %i, %j) : vector<16x32xf32>, vector<16x1xi32>, vector<1x32xi32>
  return
}

// What goes back through a softcap, whose scores are finite, goes back where the
// mask shows the score; without a mask everywhere.
// CHECK-LABEL: func.func @pullback_by_mask(
// CHECK-SAME: %[[X:[a-z0-9]+]]: vector<16x32xf32>, %[[G:[a-z0-9]+]]: vector<16x32xf32>
// CHECK-NOT: arith.cmpf
// CHECK: %[[MASK:.*]] = arith.cmpi sle
// CHECK: %[[S:.*]] = arith.select %[[MASK]]
// CHECK: %[[B:.*]] = arith.select %[[MASK]], %[[G]], %{{.*}}
// CHECK: return %[[S]], %[[B]], %{{.*}}, %[[G]]
func.func @pullback_by_mask(%x: vector<16x32xf32>, %g: vector<16x32xf32>, %b: i32, %i: vector<16x1xi32>, %j: vector<1x32xi32>)
    -> (vector<16x32xf32>, vector<16x32xf32>, vector<16x32xf32>, vector<16x32xf32>) {
  %zero = arith.constant dense<0.0> : vector<16x32xf32>
  %low = arith.constant dense<0xFF800000> : vector<16x32xf32>
  %y = tile.scores %x at(%b, %b, %i, %j) score {
  ^bb0(%s: f32, %batch: i32, %head: i32, %query: i32, %key: i32):
    %t = math.tanh %s : f32
    tile.yield %t : f32
  } mask {
  ^bb0(%batch: i32, %head: i32, %query: i32, %key: i32):
    %m = arith.cmpi sle, %key, %query : i32
    tile.yield %m : i1
  } : vector<16x32xf32>, vector<16x1xi32>, vector<1x32xi32>
  %hidden = arith.cmpf oeq, %y, %low : vector<16x32xf32>
  %back = arith.select %hidden, %zero, %g : vector<16x32xi1>, vector<16x32xf32>
  %z = tile.scores %x at(%b, %b, %i, %j) score {
  ^bb0(%s: f32, %batch: i32, %head: i32, %query: i32, %key: i32):
    %t = math.sin %s : f32
    tile.yield %t : f32
  } : vector<16x32xf32>, vector<16x1xi32>, vector<1x32xi32>
  %never = arith.cmpf oeq, %z, %low : vector<16x32xf32>
  %all = arith.select %never, %zero, %g : vector<16x32xi1>, vector<16x32xf32>
  return %y, %back, %z, %all : vector<16x32xf32>, vector<16x32xf32>, vector<16x32xf32>, vector<16x32xf32>
}

// A score function without a limit may give -inf, and one that hides scores does.
// CHECK-LABEL: func.func @pullback_by_score(
// CHECK: arith.cmpf oeq
// CHECK: arith.cmpf oeq
func.func @pullback_by_score(%x: vector<16x32xf32>, %g: vector<16x32xf32>, %b: i32, %i: vector<16x1xi32>, %j: vector<1x32xi32>)
    -> (vector<16x32xf32>, vector<16x32xf32>) {
  %zero = arith.constant dense<0.0> : vector<16x32xf32>
  %low = arith.constant dense<0xFF800000> : vector<16x32xf32>
  %y = tile.scores %x at(%b, %b, %i, %j) score {
  ^bb0(%s: f32, %batch: i32, %head: i32, %query: i32, %key: i32):
    %n = arith.negf %s : f32
    tile.yield %n : f32
  } : vector<16x32xf32>, vector<16x1xi32>, vector<1x32xi32>
  %hidden = arith.cmpf oeq, %y, %low : vector<16x32xf32>
  %back = arith.select %hidden, %zero, %g : vector<16x32xi1>, vector<16x32xf32>
  %z = tile.scores %x at(%b, %b, %i, %j) score {
  ^bb0(%s: f32, %batch: i32, %head: i32, %query: i32, %key: i32):
    %inf = arith.constant 0xFF800000 : f32
    %t = math.tanh %s : f32
    %m = arith.cmpi sle, %key, %query : i32
    %u = arith.select %m, %t, %inf : f32
    tile.yield %u : f32
  } : vector<16x32xf32>, vector<16x1xi32>, vector<1x32xi32>
  %isHidden = arith.cmpf oeq, %z, %low : vector<16x32xf32>
  %some = arith.select %isHidden, %zero, %g : vector<16x32xi1>, vector<16x32xf32>
  return %back, %some : vector<16x32xf32>, vector<16x32xf32>
}

// A pullback takes the tanh of the score.
// CHECK-LABEL: func.func @shared_tanh(
// CHECK: %[[T:.*]] = math.tanh %{{.*}} fastmath<afn>
// CHECK-NOT: math.tanh
// CHECK: return %[[T]], %[[T]]
func.func @shared_tanh(%x: vector<16x32xf32>, %b: i32, %i: vector<16x1xi32>, %j: vector<1x32xi32>) -> (vector<16x32xf32>, vector<16x32xf32>) {
  %y = tile.scores %x at(%b, %b, %i, %j) score {
  ^bb0(%s: f32, %batch: i32, %head: i32, %query: i32, %key: i32):
    %t = math.tanh %s fastmath<afn> : f32
    tile.yield %t : f32
  } : vector<16x32xf32>, vector<16x1xi32>, vector<1x32xi32>
  %t = math.tanh %x : vector<16x32xf32>
  return %y, %t : vector<16x32xf32>, vector<16x32xf32>
}

// Where products overlap, the first block stands before the loop. What is read
// from memory for each row is asked for before its keys are; what is one number
// per key comes after the product.
// FIRST-LABEL: func.func @first_block
// FIRST-SAME: %{{[a-z0-9]+}}: memref<2x8x?x64xf16, strided<[?, ?, ?, 1], offset: ?>>, %[[K:[a-z0-9]+]]: memref
// FIRST-SAME: %[[DOC:[a-z0-9]+]]: memref<?xi32, strided<[1], offset: ?>>
// FIRST: tile.gather %[[DOC]][%{{.*}}] : memref<?xi32, {{.*}}>, (vector<16x1xi32>) -> vector<16x1xi32>
// FIRST: tile.load %[[K]]
// FIRST: vector.contract
// FIRST: tile.gather %[[DOC]][%{{.*}}] : memref<?xi32, {{.*}}>, (vector<1x32xi32>) -> vector<1x32xi32>
// FIRST: scf.for
// FIRST: tile.load %[[K]]
func.func @first_block(%q: !q, %k: !q, %v: !q, %doc: tensor<?xi32>) -> (!q, !lse) {
  %o, %lse = attn.attention %q, %k, %v captures(%doc) {plan = #plan}
    mask(%b: i32, %h: i32, %i: i32, %j: i32, %d: tensor<?xi32>) {
      %m = attn.capture_load %d[%i] : tensor<?xi32>
      %n = attn.capture_load %d[%j] : tensor<?xi32>
      %s = arith.cmpi eq, %m, %n : i32
      attn.yield %s : i1
    } : (!q, !q, !q, tensor<?xi32>) -> (!q, !lse)
  return %o, %lse : !q, !lse
}
