// RUN: attn-opt %s --convert-attn-to-tile --tile-expand-scores | FileCheck %s

#plan = #attn.plan<target = cpu, block_q = 7, block_k = 5>

// Head dimensions are padded to 16 in the vectors, not in memory; query and
// value may differ.
// CHECK-LABEL: func.func @d40_and_72
// CHECK: tile.load %{{.*}} : memref<1x1x?x40xf16, {{.*}}>, vector<7x48xf16>
// CHECK: tile.load %{{.*}} : memref<1x1x?x40xf16, {{.*}}>, vector<5x48xf16>
// CHECK: tile.load %{{.*}} : memref<1x1x?x72xf16, {{.*}}>, vector<5x80xf16>
// CHECK: tile.store %{{.*}} : vector<7x80xf16>, memref<1x1x?x72xf16
func.func @d40_and_72(%q: tensor<1x1x?x40xf16>, %k: tensor<1x1x?x40xf16>,
                      %v: tensor<1x1x?x72xf16>) -> tensor<1x1x?x72xf16> {
  %o, %lse = attn.attention %q, %k, %v {plan = #plan}
    : (tensor<1x1x?x40xf16>, tensor<1x1x?x40xf16>, tensor<1x1x?x72xf16>)
      -> (tensor<1x1x?x72xf16>, tensor<1x1x?xf32>)
  return %o : tensor<1x1x?x72xf16>
}

// f32 is not rounded on the way to the second product.
// CHECK-LABEL: func.func @f32
// CHECK-NOT: arith.truncf
// CHECK: return
func.func @f32(%q: tensor<1x1x?x64xf32>, %k: tensor<1x1x?x64xf32>)
    -> tensor<1x1x?x64xf32> {
  %o, %lse = attn.attention %q, %k, %k {plan = #plan}
    : (tensor<1x1x?x64xf32>, tensor<1x1x?x64xf32>, tensor<1x1x?x64xf32>)
      -> (tensor<1x1x?x64xf32>, tensor<1x1x?xf32>)
  return %o : tensor<1x1x?x64xf32>
}

// Static lengths are constants: 3 blocks of 7 queries, 6 of 5 keys.
// CHECK-LABEL: func.func @static_lengths
// CHECK-DAG: %[[C3:.*]] = arith.constant 3 : index
// CHECK-DAG: %[[C6:.*]] = arith.constant 6 : index
// CHECK: tile.kernel {{.*}} in (%{{.*}}, %{{.*}}, %[[C3]])
// CHECK: scf.for %{{.*}} = %{{.*}} to %[[C6]]
func.func @static_lengths(%q: tensor<1x2x20x64xbf16>, %k: tensor<1x2x30x64xbf16>)
    -> tensor<1x2x20x64xbf16> {
  %o, %lse = attn.attention %q, %k, %k {plan = #plan}
    : (tensor<1x2x20x64xbf16>, tensor<1x2x30x64xbf16>, tensor<1x2x30x64xbf16>)
      -> (tensor<1x2x20x64xbf16>, tensor<1x2x20xf32>)
  return %o : tensor<1x2x20x64xbf16>
}

// The group of a query head is known at run time only.
// CHECK-LABEL: func.func @dynamic_heads
// CHECK-DAG: %[[C1:.*]] = arith.constant 1 : index
// CHECK-DAG: %[[H:.*]] = memref.dim %arg0, %[[C1]] :
// CHECK-DAG: %[[HK:.*]] = memref.dim %arg1, %[[C1]] :
// CHECK-DAG: %[[HK1:.*]] = arith.maxsi %[[HK]], %{{.*}} : index
// CHECK: %[[G:.*]] = arith.divsi %[[H]], %[[HK1]]
// CHECK: tile.kernel @{{.*}} plan({{.*}}) grid(%{{.*}}, %[[HI:.*]], %{{.*}}) in
// CHECK: arith.divsi %[[HI]], %[[G]]
func.func @dynamic_heads(%q: tensor<?x?x?x64xbf16>, %k: tensor<?x?x?x64xbf16>,
                         %v: tensor<?x?x?x64xbf16>) -> tensor<?x?x?x64xbf16> {
  %o, %lse = attn.attention %q, %k, %v {plan = #plan}
    : (tensor<?x?x?x64xbf16>, tensor<?x?x?x64xbf16>, tensor<?x?x?x64xbf16>)
      -> (tensor<?x?x?x64xbf16>, tensor<?x?x?xf32>)
  return %o : tensor<?x?x?x64xbf16>
}

// Only what is returned is stored.
// CHECK-LABEL: func.func @lse_only
// CHECK-NOT: tile.store {{.*}}bf16
// CHECK: tile.store %{{.*}} : vector<7xf32>, memref<?x?x?xf32
// CHECK-NOT: tile.store
// CHECK: return
func.func @lse_only(%q: tensor<?x?x?x64xbf16>, %k: tensor<?x?x?x64xbf16>)
    -> tensor<?x?x?xf32> {
  %o, %lse = attn.attention %q, %k, %k {plan = #plan}
    : (tensor<?x?x?x64xbf16>, tensor<?x?x?x64xbf16>, tensor<?x?x?x64xbf16>)
      -> (tensor<?x?x?x64xbf16>, tensor<?x?x?xf32>)
  return %lse : tensor<?x?x?xf32>
}

// The contract asks for the exponential itself.
// CHECK-LABEL: func.func @no_fast_math
// CHECK: tile.online_softmax %{{.*}} {exact, guard}
func.func @no_fast_math(%q: tensor<1x1x?x64xf32>, %k: tensor<1x1x?x64xf32>)
    -> tensor<1x1x?x64xf32> {
  %o, %lse = attn.attention %q, %k, %k {plan = #plan, numerics = #attn.numerics<fast_math = false>}
    : (tensor<1x1x?x64xf32>, tensor<1x1x?x64xf32>, tensor<1x1x?x64xf32>)
      -> (tensor<1x1x?x64xf32>, tensor<1x1x?xf32>)
  return %o : tensor<1x1x?x64xf32>
}

// Products of f32 by multiply-adds ask for it too; the tensor cores hear of it
// through the function.
// CHECK-LABEL: func.func @ieee_products
// CHECK-SAME: attn.numerics = #attn.numerics<f32_products = ieee>
// CHECK: tile.online_softmax %{{.*}} {exact, guard}
func.func @ieee_products(%q: tensor<1x1x?x64xf32>, %k: tensor<1x1x?x64xf32>)
    -> tensor<1x1x?x64xf32> {
  %o, %lse = attn.attention %q, %k, %k {plan = #plan, numerics = #attn.numerics<f32_products = ieee>}
    : (tensor<1x1x?x64xf32>, tensor<1x1x?x64xf32>, tensor<1x1x?x64xf32>)
      -> (tensor<1x1x?x64xf32>, tensor<1x1x?xf32>)
  return %o : tensor<1x1x?x64xf32>
}

// CHECK-LABEL: func.func @other(
// CHECK-SAME: %{{.*}}: tensor<4xf32>) -> tensor<4xf32>
func.func @other(%x: tensor<4xf32>) -> tensor<4xf32> {
  return %x : tensor<4xf32>
}
