// RUN: attn-opt %s --attn-expand-variants --convert-attn-to-tile --tile-list-blocks --tile-peel-masks --tile-share-blocks | FileCheck %s
// RUN: attn-opt %s --attn-expand-variants --convert-attn-to-tile --tile-list-blocks --tile-peel-masks --tile-share-blocks | FileCheck %s --check-prefix=GONE
// RUN: attn-opt %S/Inputs/share-blocks-apart.mlir --tile-share-blocks | FileCheck %s --check-prefix=APART
// RUN: not attn-opt %S/Inputs/share-blocks-dependent.mlir --tile-share-blocks -o %t 2>&1 | FileCheck %s --check-prefix=DEPENDENT

// GONE-NOT: tile.share_blocks
// DEPENDENT: error: 'tile.share_blocks' op finds no loops to share out: a loop over blocks gives something else than tiles

// Loops that do not go on where the one before ends, as those over two lists, are
// shared one by one. One of them may have nothing to go through.
// APART: tile.kernel @f {{.*}} grid(%[[P:.*]], %[[H:.*]], %[[X:.*]]) in
// APART: %[[END:.*]] = arith.maxsi %[[H]], %c0
// APART: arith.divui
// APART: %[[FIRST:.*]] = arith.minsi %{{.*}}, %[[END]]
// APART: %[[LAST:.*]] = arith.minsi %{{.*}}, %[[END]]
// APART: scf.for %{{.*}} = %[[FIRST]] to %[[LAST]] step
// APART: %[[END2:.*]] = arith.maxsi %[[X]], %c1
// APART: %[[ALL:.*]] = arith.subi %[[END2]], %c1
// APART: %[[FIRST2:.*]] = arith.minsi %{{.*}}, %[[END2]]
// APART: %[[LAST2:.*]] = arith.minsi %{{.*}}, %[[END2]]
// APART: scf.for %{{.*}} = %[[FIRST2]] to %[[LAST2]] step

!t = tensor<?x?x?x64xbf16>
!l = tensor<?x?x?xf32>
#plan = #attn.plan<target = sm_80, block_q = 64, block_k = 32, warps = 4, stages = 2, split_keys = 4>

// What a window leaves is divided, not all keys; the bounds between the masked
// and the full blocks lie within. Rows may have seen nothing in other parts: the
// masked loops are guarded. An empty part gives what it started with.
// CHECK-LABEL: func.func @window
// CHECK: tile.kernel @window_parts
// CHECK: %[[P:.*]] = arith.remui
// CHECK: %[[COUNT:.*]] = arith.subi %[[HI:.*]], %[[LO:.*]] : index
// CHECK: %[[RAISED:.*]] = arith.addi %[[COUNT]], %c3
// CHECK: %[[SIZE:.*]] = arith.divui %[[RAISED]], %c4
// CHECK: %[[OFFSET:.*]] = arith.muli %[[SIZE]], %[[P]]
// CHECK: %[[BEGIN:.*]] = arith.addi %[[LO]], %[[OFFSET]]
// CHECK: %[[FIRST:.*]] = arith.minsi %[[BEGIN]], %[[HI]]
// CHECK: %[[NEXT:.*]] = arith.addi %[[FIRST]], %[[SIZE]]
// CHECK: %[[END:.*]] = arith.minsi %[[NEXT]], %[[HI]]
// CHECK: %[[A:.*]] = arith.maxsi %{{.*}}, %[[FIRST]]
// CHECK: %[[AB:.*]] = arith.minsi %[[A]], %[[END]]
// CHECK: %[[B:.*]] = arith.maxsi %{{.*}}, %[[FIRST]]
// CHECK: %[[BC:.*]] = arith.minsi %[[B]], %[[END]]
// CHECK: scf.for %{{.*}} = %[[FIRST]] to %[[AB]] step
// CHECK: tile.online_softmax {{.*}} {guard}
// CHECK: scf.for %{{.*}} = %[[AB]] to %[[BC]] step
// CHECK: %[[R:.*]]:3 = scf.for %{{.*}} = %[[BC]] to %[[END]] step
// CHECK: tile.online_softmax {{.*}} {guard}
// CHECK: %[[ANY:.*]] = arith.cmpi slt, %[[FIRST]], %[[END]]
// CHECK: %[[TAKEN:.*]] = vector.broadcast %[[ANY]] : i1 to vector<64x64xi1>
// CHECK: %[[O:.*]] = arith.select %[[TAKEN]], %[[R]]#0, %
// CHECK: tile.store %[[O]]
func.func @window(%q: !t, %k: !t, %v: !t) -> (!t, !l) {
  %o, %lse = attn.attention %q, %k, %v {variants = [#attn.window<left = 512, right = 0>], plan = #plan} : (!t, !t, !t) -> (!t, !l)
  return %o, %lse : !t, !l
}

// Visits of a list are divided as blocks are.
// CHECK-LABEL: func.func @list
// CHECK: tile.kernel @list_parts_block_states
// CHECK: tile.kernel @list_parts plan
// CHECK: %[[RAISED:.*]] = arith.addi %[[LISTED:.*]], %c3
// CHECK: arith.divui %[[RAISED]], %c4
// CHECK: %[[FROM:.*]] = arith.minsi %{{.*}}, %[[LISTED]]
// CHECK: %[[TO:.*]] = arith.minsi %{{.*}}, %[[LISTED]]
// CHECK: scf.for %{{.*}} = %[[FROM]] to
// CHECK: memref.load %{{.*}}[{{.*}}] : memref<?x1x?x?xi32>
// CHECK: scf.for %{{.*}} = %{{.*}} to %[[TO]] step
func.func @list(%q: !t, %k: !t, %v: !t, %ids: tensor<?x?xi32>) -> (!t, !l) {
  %o, %lse = attn.attention %q, %k, %v captures(%ids) {plan = #plan}
    mask(%b: i32, %h: i32, %i: i32, %j: i32, %c: tensor<?x?xi32>) {
      %r = attn.capture_load %c[%b, %i] : tensor<?x?xi32>
      %s = attn.capture_load %c[%b, %j] : tensor<?x?xi32>
      %m = arith.cmpi eq, %r, %s : i32
      attn.yield %m : i1
    } : (!t, !t, !t, tensor<?x?xi32>) -> (!t, !l)
  return %o, %lse : !t, !l
}

// No loop is left to share out.
// CHECK-LABEL: func.func @nothing
// CHECK: tile.kernel @nothing_parts
// CHECK-NOT: scf.for
// CHECK: tile.kernel @nothing_merge
func.func @nothing(%q: !t, %k: !t, %v: !t) -> (!t, !l) {
  %o, %lse = attn.attention %q, %k, %v {plan = #plan}
    mask(%b: i32, %h: i32, %i: i32, %j: i32) {
      %m = arith.constant false
      attn.yield %m : i1
    } : (!t, !t, !t) -> (!t, !l)
  return %o, %lse : !t, !l
}
