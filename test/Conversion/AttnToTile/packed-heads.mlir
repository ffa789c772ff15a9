// RUN: attn-opt %s --convert-attn-to-tile | FileCheck %s
// RUN: attn-opt %s --convert-attn-to-tile --tile-peel-masks | FileCheck %s --check-prefix=PEEL

#plan = #attn.plan<target = sm_80, block_q = 64, block_k = 32, warps = 4, packed_heads = 4>
#split = #attn.plan<target = sm_80, block_q = 64, block_k = 32, warps = 4, split_keys = 8, packed_heads = 4>

// A part of four heads is one number of the grid, and all the heads of a key head.
// CHECK-LABEL: func.func @whole(
// CHECK-SAME: %[[Q:[a-z0-9]+]]: memref<?x8x?x64xbf16, strided<[?, ?, ?, 1], offset: ?>>, %[[K:[a-z0-9]+]]: memref<?x2x
// CHECK-SAME: %[[SINK:[a-z0-9]+]]: memref<8xf32
// CHECK-SAME: %[[O:[a-z0-9]+]]: memref<?x8x?x64xbf16, strided<[?, ?, ?, 1], offset: ?>>, %[[LSE:[a-z0-9]+]]: memref<?x8x?xf32
// CHECK-DAG: %[[C2:.*]] = arith.constant 2 : index
// CHECK-DAG: %[[C16:.*]] = arith.constant 16 : index
// CHECK: %[[BLOCKS:.*]] = arith.ceildivsi %{{.*}}, %[[C16]]
// CHECK: tile.kernel @whole {{.*}} grid(%[[B:.*]], %[[H:.*]], %[[X:.*]]) in (%{{.*}}, %[[C2]], %[[BLOCKS]])
// CHECK: %[[ROW:.*]] = arith.muli %[[X]], %[[C16]]
// CHECK: %[[HEAD:.*]] = arith.muli %[[H]], %{{.*}}
// CHECK: %[[N:.*]] = tile.coords %{{.*}}, 0 : vector<64x1xi32>
// CHECK: %[[R:.*]] = arith.constant dense<16> : vector<64x1xi32>
// CHECK: %[[G:.*]] = arith.divui %[[N]], %[[R]]
// CHECK: %[[HEADS:.*]] = arith.addi %{{.*}}, %[[G]]
// CHECK: %[[I:.*]] = arith.remui %[[N]], %[[R]]
// CHECK: %[[ROWS:.*]] = arith.addi %{{.*}}, %[[I]]
// CHECK: tile.load %[[Q]][%[[B]], %[[HEAD]], %[[ROW]], %{{.*}}] slices 4 :
// CHECK: scf.for
// CHECK: tile.load %[[K]][%[[B]], %[[H]], %{{.*}}, %{{.*}}] :
// CHECK: tile.scores %{{.*}} at(%{{.*}}, %[[HEADS]], %[[ROWS]], %{{.*}})
// CHECK: tile.gather %[[SINK]][%[[HEADS]]] : memref<8xf32, {{.*}}>, (vector<64x1xi32>) -> vector<64x1xf32>
// CHECK: tile.store %{{.*}}, %[[O]][%[[B]], %[[HEAD]], %[[ROW]], %{{.*}}] slices 4 : vector<64x64xbf16>
// CHECK: tile.store %{{.*}}, %[[LSE]][%[[B]], %[[HEAD]], %[[ROW]]] slices 4 : vector<64xf32>
func.func @whole(%q: tensor<?x8x?x64xbf16>, %k: tensor<?x2x?x64xbf16>, %v: tensor<?x2x?x64xbf16>, %sink: tensor<8xf32>)
    -> (tensor<?x8x?x64xbf16>, tensor<?x8x?xf32>) {
  %o, %lse = attn.attention %q, %k, %v sink(%sink) {plan = #plan}
    : (tensor<?x8x?x64xbf16>, tensor<?x2x?x64xbf16>, tensor<?x2x?x64xbf16>, tensor<8xf32>)
      -> (tensor<?x8x?x64xbf16>, tensor<?x8x?xf32>)
  return %o, %lse : tensor<?x8x?x64xbf16>, tensor<?x8x?xf32>
}

// How many heads share a key head is known at launch: the last part may be of
// fewer, and does not write those of the next key head.
// CHECK-LABEL: func.func @parts(
// CHECK: %[[GROUP:.*]] = arith.floordivsi
// CHECK: %[[PARTS:.*]] = arith.ceildivsi %[[GROUP]], %{{.*}}
// CHECK: %[[ALL:.*]] = arith.muli %{{.*}}, %[[PARTS]]
// CHECK: tile.kernel @parts {{.*}} grid(%{{.*}}, %[[H:.*]], %{{.*}}) in (%{{.*}}, %[[ALL]], %{{.*}})
// CHECK: %[[KEY:.*]] = arith.divsi %[[H]], %[[PARTS]]
// CHECK: %[[FIRST:.*]] = arith.muli %[[KEY]], %[[GROUP]]
// CHECK: %[[NUMBER:.*]] = arith.remsi %[[H]], %[[PARTS]]
// CHECK: %[[OFFSET:.*]] = arith.muli %[[NUMBER]], %{{.*}}
// CHECK: %[[HEAD:.*]] = arith.addi %[[FIRST]], %[[OFFSET]]
// CHECK: %[[END:.*]] = arith.addi %[[FIRST]], %[[GROUP]]
// CHECK: tile.load %{{.*}}[%{{.*}}, %[[HEAD]], %{{.*}}] slices 4 below(%[[END]])
// CHECK: tile.load %{{.*}}[%{{.*}}, %[[KEY]], %{{.*}}] :
// CHECK: tile.store %{{.*}}[%{{.*}}, %[[HEAD]], %{{.*}}] slices 4 below(%[[END]])
// CHECK: tile.store %{{.*}}[%{{.*}}, %[[HEAD]], %{{.*}}] slices 4 below(%[[END]])
func.func @parts(%q: tensor<?x?x?x64xbf16>, %k: tensor<?x?x?x64xbf16>, %v: tensor<?x?x?x64xbf16>)
    -> (tensor<?x?x?x64xbf16>, tensor<?x?x?xf32>) {
  %o, %lse = attn.attention %q, %k, %v {plan = #plan}
    : (tensor<?x?x?x64xbf16>, tensor<?x?x?x64xbf16>, tensor<?x?x?x64xbf16>)
      -> (tensor<?x?x?x64xbf16>, tensor<?x?x?xf32>)
  return %o, %lse : tensor<?x?x?x64xbf16>, tensor<?x?x?xf32>
}

// The kernel that merges parts of the keys has tiles of one head.
// CHECK-LABEL: func.func @split(
// CHECK: tile.kernel @split_parts
// CHECK-COUNT-3: tile.store {{.*}} slices 4 :
// CHECK: tile.kernel @split_merge
// CHECK-NOT: slices
// CHECK: return
func.func @split(%q: tensor<?x8x?x64xbf16>, %k: tensor<?x2x?x64xbf16>, %v: tensor<?x2x?x64xbf16>)
    -> (tensor<?x8x?x64xbf16>, tensor<?x8x?xf32>) {
  %o, %lse = attn.attention %q, %k, %v {plan = #split}
    : (tensor<?x8x?x64xbf16>, tensor<?x2x?x64xbf16>, tensor<?x2x?x64xbf16>)
      -> (tensor<?x8x?x64xbf16>, tensor<?x8x?xf32>)
  return %o, %lse : tensor<?x8x?x64xbf16>, tensor<?x8x?xf32>
}

// A tile has 16 queries of each head. Under a causal mask it sees the keys up to
// the last of these, and all of it those up to the first: blocks of 32 keys.
// PEEL-LABEL: func.func @causal(
// PEEL: tile.kernel @causal {{.*}} grid(%{{.*}}, %{{.*}}, %[[X:.*]]) in
// PEEL: %[[NEXT:.*]] = arith.addi %[[X]], %c1{{.*}} : index
// PEEL: arith.ceildivsi %[[NEXT]], %c2{{.*}} : index
// PEEL: arith.floordivsi %[[X]], %c2{{.*}} : index
// PEEL: scf.for %{{.*}} = %{{.*}} to %[[FULL:.*]] step
// PEEL: scf.for %{{.*}} = %[[FULL]] to
func.func @causal(%q: tensor<?x8x?x64xbf16>, %k: tensor<?x2x?x64xbf16>, %v: tensor<?x2x?x64xbf16>)
    -> (tensor<?x8x?x64xbf16>, tensor<?x8x?xf32>) {
  %o, %lse = attn.attention %q, %k, %v {plan = #plan} mask(%b: i32, %h: i32, %i: i32, %j: i32) {
    %m = arith.cmpi sle, %j, %i : i32
    attn.yield %m : i1
  } : (tensor<?x8x?x64xbf16>, tensor<?x2x?x64xbf16>, tensor<?x2x?x64xbf16>)
      -> (tensor<?x8x?x64xbf16>, tensor<?x8x?xf32>)
  return %o, %lse : tensor<?x8x?x64xbf16>, tensor<?x8x?xf32>
}
