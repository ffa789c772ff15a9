// RUN: attn-opt %s --convert-attn-to-tile --tile-expand-scores | FileCheck %s

#plan = #attn.plan<target = sm_80, block_q = 128, block_k = 64, warps = 4, stages = 2>

// CHECK-LABEL: func.func @plain(
// CHECK-SAME: %[[Q:[a-z0-9]+]]: memref<2x16x?x64xbf16, strided<[?, ?, ?, 1], offset: ?>>,
// CHECK-SAME: %[[K:[a-z0-9]+]]: memref<2x4x?x64xbf16, strided<[?, ?, ?, 1], offset: ?>>,
// CHECK-SAME: %[[V:[a-z0-9]+]]: memref<2x4x?x64xbf16, strided<[?, ?, ?, 1], offset: ?>>,
// CHECK-SAME: %[[O:[a-z0-9]+]]: memref<2x16x?x64xbf16, strided<[?, ?, ?, 1], offset: ?>>,
// CHECK-SAME: %[[LSE:[a-z0-9]+]]: memref<2x16x?xf32, strided<[?, ?, 1], offset: ?>>)
func.func @plain(%q: tensor<2x16x?x64xbf16>, %k: tensor<2x4x?x64xbf16>,
                 %v: tensor<2x4x?x64xbf16>)
    -> (tensor<2x16x?x64xbf16>, tensor<2x16x?xf32>) {
  // CHECK-DAG: %[[C0:.*]] = arith.constant 0 : index
  // CHECK-DAG: %[[C1:.*]] = arith.constant 1 : index
  // CHECK-DAG: %[[C4:.*]] = arith.constant 4 : index
  // CHECK-DAG: %[[C64:.*]] = arith.constant 64 : index
  // CHECK-DAG: %[[C128:.*]] = arith.constant 128 : index
  // CHECK-DAG: %[[SQ:.*]] = memref.dim %[[Q]]
  // CHECK-DAG: %[[NQ:.*]] = arith.ceildivsi %[[SQ]], %[[C128]]
  // CHECK-DAG: %[[SK:.*]] = memref.dim %[[K]]
  // CHECK-DAG: %[[NK:.*]] = arith.ceildivsi %[[SK]], %[[C64]]
  // CHECK: tile.kernel @plain plan(#attn.plan<target = sm_80, block_q = 128, block_k = 64, warps = 4, stages = 2>) grid(%[[B:.*]], %[[H:.*]], %[[X:.*]]) in (%{{.*}}, %{{.*}}, %[[NQ]]) {
  // CHECK: %[[HK:.*]] = arith.divsi %[[H]], %[[C4]]
  // CHECK: %[[ROW:.*]] = arith.muli %[[X]], %[[C128]]
  // CHECK: %[[QT:.*]] = tile.load %[[Q]][%[[B]], %[[H]], %[[ROW]], %[[C0]]] {{.*}}, vector<128x64xbf16>
  // CHECK: %[[R:.*]]:3 = scf.for %[[N:.*]] = %[[C0]] to %[[NK]] step %[[C1]]
  // CHECK-SAME: iter_args(%[[OA:.*]] = %{{.*}}, %[[M:.*]] = %{{.*}}, %[[L:.*]] = %{{.*}}) -> (vector<128x64xf32>, vector<128x1xf32>, vector<128x1xf32>)
  // CHECK: %[[COL:.*]] = arith.muli %[[N]], %[[C64]]
  // CHECK: %[[COLS:.*]] = tile.coords %{{.*}}, 1 : vector<1x64xi32>
  // CHECK: %[[KT:.*]] = tile.load %[[K]][%[[B]], %[[HK]], %[[COL]], %[[C0]]] {{.*}}, vector<64x64xbf16>
  // CHECK: %[[S:.*]] = vector.contract {{.*}} %[[QT]], %[[KT]], %{{.*}} : vector<128x64xbf16>, vector<64x64xbf16> into vector<128x64xf32>
  // CHECK: %[[SS:.*]] = arith.mulf %[[S]]
  // CHECK: arith.cmpi slt, %[[COLS]]
  // CHECK: %[[X2:.*]] = arith.select %{{.*}}, %[[SS]], %{{.*}} : vector<128x64xi1>, vector<128x64xf32>
  // CHECK: %[[P:.*]], %[[M2:.*]], %[[L2:.*]], %[[CORR:.*]] = tile.online_softmax %[[X2]], %[[M]], %[[L]] {guard} : vector<128x64xf32>, vector<128x1xf32>
  // CHECK: %[[VT:.*]] = tile.load %[[V]][%[[B]], %[[HK]], %[[COL]], %[[C0]]] {{.*}}, vector<64x64xbf16>
  // CHECK: %[[PT:.*]] = arith.truncf %[[P]]
  // CHECK: %[[CB:.*]] = vector.broadcast %[[CORR]] : vector<128x1xf32> to vector<128x64xf32>
  // CHECK: %[[OR:.*]] = arith.mulf %[[OA]], %[[CB]]
  // CHECK: %[[O2:.*]] = vector.contract {{.*}} %[[PT]], %[[VT]], %[[OR]]
  // CHECK: scf.yield %[[O2]], %[[M2]], %[[L2]]
  // CHECK: %[[EMPTY:.*]] = arith.cmpf oeq, %[[R]]#2
  // CHECK: %[[INV:.*]] = arith.divf %{{.*}}, %[[R]]#2
  // CHECK: arith.select %[[EMPTY]], %{{.*}}, %[[INV]]
  // CHECK: tile.store %{{.*}}, %[[O]][%[[B]], %[[H]], %[[ROW]], %[[C0]]] : vector<128x64xbf16>
  // CHECK: %[[LOG:.*]] = math.log %[[R]]#2
  // CHECK: arith.addf %[[R]]#1, %[[LOG]]
  // CHECK: vector.shape_cast %{{.*}} : vector<128x1xf32> to vector<128xf32>
  // CHECK: tile.store %{{.*}}, %[[LSE]][%[[B]], %[[H]], %[[ROW]]] : vector<128xf32>
  // CHECK: return
  %o, %lse = attn.attention %q, %k, %v {plan = #plan}
      : (tensor<2x16x?x64xbf16>, tensor<2x4x?x64xbf16>, tensor<2x4x?x64xbf16>)
        -> (tensor<2x16x?x64xbf16>, tensor<2x16x?xf32>)
  return %o, %lse : tensor<2x16x?x64xbf16>, tensor<2x16x?xf32>
}

!q = tensor<?x?x?x64xf16>
!l = tensor<?x?x?xf32>

// The sink of the head joins after the loop; dropout takes from the rounded
// weights, and the end divides by what stays.
// CHECK-LABEL: func.func @sink_and_dropout
// CHECK-SAME: %[[SINK:[^:]*]]: memref<?xf32, {{.*}}, %[[SEED:[^:]*]]: i32, %[[OFFSET:[^:]*]]: i32
// CHECK: tile.kernel @{{.*}} plan({{.*}}) grid(%{{.*}}, %[[H:.*]], %{{.*}}) in
// CHECK: scf.for
// CHECK: %[[P:.*]] = arith.truncf %{{.*}} : vector<128x64xf32> to vector<128x64xf16>
// CHECK: %[[KEEP:.*]] = arith.cmpi uge, %{{.*}}, %{{.*}} : vector<128x64xi32>
// CHECK: %[[KEPT:.*]] = arith.select %[[KEEP]], %[[P]], %{{.*}} : vector<128x64xi1>, vector<128x64xf16>
// CHECK: vector.contract {{.*}} %[[KEPT]],
// CHECK: %[[LOGIT:.*]] = memref.load %[[SINK]][%[[H]]]
// CHECK: %[[ROWS:.*]] = vector.broadcast %[[LOGIT]] : f32 to vector<128x1xf32>
// CHECK: %[[MAX:.*]] = arith.maximumf %{{.*}}, %[[ROWS]]
// CHECK: %[[REF:.*]] = arith.select %{{.*}}, %{{.*}}, %[[MAX]]
// CHECK: arith.subf %[[ROWS]], %[[REF]]
// CHECK: %[[SHARE:.*]] = arith.constant dense<1.33333337> : vector<128x1xf32>
// CHECK: arith.divf %[[SHARE]]
func.func @sink_and_dropout(%q: !q, %k: !q, %v: !q, %s: tensor<?xf32>, %seed: i32, %offset: i32) -> !q {
  %o, %lse = attn.attention %q, %k, %v sink(%s) dropout(%seed, %offset)
    {dropout_p = 0.25, plan = #attn.plan<target = cpu, block_q = 128, block_k = 64>}
    : (!q, !q, !q, tensor<?xf32>, i32, i32) -> (!q, !l)
  return %o : !q
}
