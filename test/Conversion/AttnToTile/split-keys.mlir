// RUN: attn-opt %s --convert-attn-to-tile | FileCheck %s

#plan = #attn.plan<target = sm_80, block_q = 64, block_k = 32, warps = 4, stages = 2, split_keys = 16>

// Parts of the keys, then their sum: batch entry and part are one number of the
// grid. The statistics are two numbers per row.
// CHECK-LABEL: func.func @split(
// CHECK-SAME: %[[Q:[a-z0-9]+]]: memref<?x4x?x64xbf16, {{.*}}>, %[[K:[a-z0-9]+]]: memref<?x2x
// CHECK-SAME: %[[O:[a-z0-9]+]]: memref<?x4x?x64xbf16, strided<[?, ?, ?, 1], offset: ?>>, %[[LSE:[a-z0-9]+]]: memref<?x4x?xf32
// CHECK-DAG: %[[C0:.*]] = arith.constant 0 : index
// CHECK-DAG: %[[C16:.*]] = arith.constant 16 : index
// CHECK: %[[PARTS:.*]] = arith.muli %[[BATCHES:.*]], %[[C16]]
// CHECK: %[[SUMS:.*]] = memref.alloc(%[[PARTS]], %[[ROWS:.*]]) : memref<?x4x?x64xf32>
// CHECK: %[[MAXIMA:.*]] = memref.alloc(%[[PARTS]], %[[ROWS]]) : memref<?x4x?xf32>
// CHECK: %[[TOTALS:.*]] = memref.alloc(%[[PARTS]], %[[ROWS]]) : memref<?x4x?xf32>
// CHECK: tile.kernel @split_parts plan(#attn.plan<{{.*}}, warps = 4, stages = 2, split_keys = 16>) grid(%[[N:.*]], %[[H:.*]], %[[X:.*]]) in (%[[PARTS]],
// CHECK: %[[B:.*]] = arith.divui %[[N]], %[[C16]]
// CHECK: %[[P:.*]] = arith.remui %[[N]], %[[C16]]
// CHECK: tile.share_blocks %[[P]] of 16
// CHECK: %[[ROW:.*]] = arith.muli %[[X]]
// CHECK: tile.load %[[Q]][%[[B]], %[[H]], %[[ROW]], %[[C0]]]
// CHECK: %[[STATE:.*]]:3 = scf.for
// CHECK-NOT: memref.load
// CHECK: tile.store %[[STATE]]#0, %[[SUMS]][%[[N]], %[[H]], %[[ROW]], %[[C0]]] : vector<64x64xf32>
// CHECK: %[[M:.*]] = vector.shape_cast %[[STATE]]#1
// CHECK: tile.store %[[M]], %[[MAXIMA]][%[[N]], %[[H]], %[[ROW]]]
// CHECK: %[[L:.*]] = vector.shape_cast %[[STATE]]#2
// CHECK: tile.store %[[L]], %[[TOTALS]][%[[N]], %[[H]], %[[ROW]]]

// CHECK: tile.kernel @split_merge plan(#attn.plan<{{.*}}, stages = 2, split_keys = 16>) grid(%[[MB:.*]], %[[MH:.*]], %[[MX:.*]]) in (%[[BATCHES]],
// CHECK-DAG: %[[COLUMN:.*]] = arith.remui %[[MX]], %{{.*}}
// CHECK-DAG: %[[FIRST:.*]] = arith.cmpi eq, %[[COLUMN]], %[[C0]]
// Eight parts are read, then joined one after the other.
// CHECK: %[[SUM:.*]]:3 = scf.for %[[PART:.*]] = %[[C0]] to %[[C16]] step %c8 iter_args(%[[M0:.*]] = %{{.*}}, %[[L0:.*]] = %{{.*}}, %[[O0:.*]] = %{{.*}}) -> (vector<16x1xf32>, vector<16x1xf32>, vector<16x16xf32>)
// CHECK: %[[FROM:.*]] = arith.muli %[[MB]], %[[C16]]
// CHECK: arith.addi %[[FROM]], %[[PART]]
// CHECK: %[[MP:.*]] = tile.gather %[[MAXIMA]][%{{.*}}, %{{.*}}, %[[NEAR:.*]]] {inside}
// CHECK: %[[LP:.*]] = tile.gather %[[TOTALS]][%{{.*}}, %[[NEAR]]] {inside}
// CHECK: %[[OP:.*]] = tile.gather %[[SUMS]][%{{.*}}, %[[NEAR]], %{{.*}}] {aligned, inside}
// CHECK-COUNT-21: tile.gather
// CHECK-NOT: tile.gather
// CHECK: %[[M1:.*]] = arith.maximumf %[[M0]], %[[MP]]
// CHECK: %[[NONE:.*]] = arith.cmpf oeq, %[[M1]], %[[INF:.*]] :
// CHECK: %[[REF:.*]] = arith.select %[[NONE]], %{{.*}}, %[[M1]]
// CHECK: %[[D0:.*]] = arith.subf %[[M0]], %[[REF]]
// CHECK: %[[W0:.*]] = math.exp %[[D0]]
// CHECK: %[[DP:.*]] = arith.subf %[[MP]], %[[REF]]
// CHECK: %[[WP:.*]] = math.exp %[[DP]]
// CHECK: %[[KEPT:.*]] = arith.mulf %[[L0]], %[[W0]]
// CHECK: %[[L1:.*]] = math.fma %[[LP]], %[[WP]], %[[KEPT]] : vector<16x1xf32>
// CHECK: %[[O1:.*]] = math.fma %[[OP]], %{{.*}}, %{{.*}} : vector<16x16xf32>
// CHECK: arith.maximumf %[[M1]], %{{.*}}
// CHECK: math.fma %{{.*}}, %{{.*}}, %{{.*}} : vector<16x16xf32>
// CHECK-COUNT-5: arith.maximumf
// CHECK: %[[M8:.*]] = arith.maximumf
// CHECK-NOT: arith.maximumf
// CHECK: %[[L8:.*]] = math.fma
// CHECK: %[[O8:.*]] = math.fma
// CHECK: scf.yield %[[M8]], %[[L8]], %[[O8]]
// The sink joins once, after all parts.
// CHECK: memref.load %{{.*}}[%[[MH]]]
// CHECK: tile.store %{{.*}}, %[[O]][%[[MB]], %[[MH]], %{{.*}}, %{{.*}}] : vector<16x16xbf16>
// One block of columns writes lse.
// CHECK: scf.if %[[FIRST]]
// CHECK-NEXT: tile.store %{{.*}}, %[[LSE]][%[[MB]], %[[MH]], %{{.*}}] : vector<16xf32>
// CHECK: memref.dealloc %[[SUMS]]
// CHECK: memref.dealloc %[[MAXIMA]]
// CHECK: memref.dealloc %[[TOTALS]]
func.func @split(%q: tensor<?x4x?x64xbf16>, %k: tensor<?x2x?x64xbf16>, %v: tensor<?x2x?x64xbf16>,
                 %sink: tensor<4xf32>) -> (tensor<?x4x?x64xbf16>, tensor<?x4x?xf32>) {
  %o, %lse = attn.attention %q, %k, %v sink(%sink) {plan = #plan}
    : (tensor<?x4x?x64xbf16>, tensor<?x2x?x64xbf16>, tensor<?x2x?x64xbf16>, tensor<4xf32>)
      -> (tensor<?x4x?x64xbf16>, tensor<?x4x?xf32>)
  return %o, %lse : tensor<?x4x?x64xbf16>, tensor<?x4x?xf32>
}

// Of lse alone no sums are kept.
// CHECK-LABEL: func.func @only_lse(
// CHECK-COUNT-2: memref.alloc
// CHECK-NOT: memref.alloc
// CHECK: tile.kernel @only_lse_parts
// CHECK-COUNT-2: tile.store
// CHECK: tile.kernel @only_lse_merge
// CHECK-COUNT-16: tile.gather
// CHECK-NOT: tile.gather
// CHECK-NOT: scf.if
// CHECK: tile.store
// CHECK: return
func.func @only_lse(%q: tensor<?x?x?x64xbf16>, %k: tensor<?x?x?x64xbf16>) -> tensor<?x?x?xf32> {
  %o, %lse = attn.attention %q, %k, %k {plan = #plan}
    : (tensor<?x?x?x64xbf16>, tensor<?x?x?x64xbf16>, tensor<?x?x?x64xbf16>)
      -> (tensor<?x?x?x64xbf16>, tensor<?x?x?xf32>)
  return %lse : tensor<?x?x?xf32>
}
