// RUN: attn-opt %s --verify-roundtrip | FileCheck %s
// RUN: attn-opt %s --mlir-print-op-generic | attn-opt | FileCheck %s

// CHECK-LABEL: func.func @plain
func.func @plain(%q: tensor<2x16x128x64xf16>, %k: tensor<2x16x256x64xf16>,
                 %v: tensor<2x16x256x64xf16>)
    -> (tensor<2x16x128x64xf16>, tensor<2x16x128xf32>) {
  // CHECK: %[[O:.*]], %[[L:.*]] = attn.attention %{{.*}}, %{{.*}}, %{{.*}} :
  // CHECK-SAME: (tensor<2x16x128x64xf16>, tensor<2x16x256x64xf16>, tensor<2x16x256x64xf16>)
  // CHECK-SAME: -> (tensor<2x16x128x64xf16>, tensor<2x16x128xf32>)
  %o, %lse = attn.attention %q, %k, %v
    : (tensor<2x16x128x64xf16>, tensor<2x16x256x64xf16>, tensor<2x16x256x64xf16>)
      -> (tensor<2x16x128x64xf16>, tensor<2x16x128xf32>)
  // CHECK: return %[[O]], %[[L]]
  return %o, %lse : tensor<2x16x128x64xf16>, tensor<2x16x128xf32>
}

// Every size but the head dimensions may be unknown; those of query and value
// may differ; query heads may be a multiple of key heads.
// CHECK-LABEL: func.func @dynamic_grouped
func.func @dynamic_grouped(%q: tensor<?x?x?x192xbf16>, %k: tensor<?x?x?x192xbf16>,
                           %v: tensor<?x2x?x128xbf16>)
    -> (tensor<?x8x?x128xbf16>, tensor<?x?x?xf32>) {
  // CHECK: attn.attention
  %o, %lse = attn.attention %q, %k, %v
    : (tensor<?x?x?x192xbf16>, tensor<?x?x?x192xbf16>, tensor<?x2x?x128xbf16>)
      -> (tensor<?x8x?x128xbf16>, tensor<?x?x?xf32>)
  return %o, %lse : tensor<?x8x?x128xbf16>, tensor<?x?x?xf32>
}

// CHECK-LABEL: func.func @attributes
// CHECK-SAME: plan = #attn.plan<target = cpu, block_q = 32, block_k = 48>
func.func @attributes(%q: tensor<1x1x?x40xf32>, %k: tensor<1x1x?x40xf32>)
    -> tensor<1x1x?x40xf32>
    attributes {plan = #attn.plan<target = cpu, block_q = 32, block_k = 48>} {
  // CHECK: attn.attention
  // CHECK-SAME: numerics = #attn.numerics<fast_math = false>
  // CHECK-SAME: plan = #attn.plan<target = sm_80, block_q = 128, block_k = 64, warps = 4, stages = 2, q_in_registers = true>
  // CHECK-SAME: scale = 1.250000e-01 : f64
  // CHECK-SAME: variants = [#attn.causal, #attn.causal<top_left>, #attn.window<left = 5, right = 0>, #attn.window<alignment = top_left>, #attn.softcap<5.000000e+01 : f32>, #attn.alibi]
  %o, %lse = attn.attention %q, %k, %k {
      scale = 0.125,
      variants = [#attn.causal, #attn.causal<top_left>,
                  #attn.window<left = 5, right = 0>,
                  #attn.window<alignment = top_left>,
                  #attn.softcap<50.0 : f32>, #attn.alibi<bottom_right>],
      numerics = #attn.numerics<fast_math = false>,
      plan = #attn.plan<target = sm_80, block_q = 128, block_k = 64, warps = 4,
                        stages = 2, q_in_registers = true>}
    : (tensor<1x1x?x40xf32>, tensor<1x1x?x40xf32>, tensor<1x1x?x40xf32>)
      -> (tensor<1x1x?x40xf32>, tensor<1x1x?xf32>)
  return %o : tensor<1x1x?x40xf32>
}

// CHECK-LABEL: func.func @ieee_products
// CHECK-SAME: attn.numerics = #attn.numerics<f32_products = ieee>
func.func @ieee_products(%q: tensor<1x1x?x40xf32>) -> tensor<1x1x?x40xf32>
    attributes {attn.numerics = #attn.numerics<f32_products = ieee>} {
  // CHECK: attn.attention {{.*}} {numerics = #attn.numerics<fast_math = false, f32_products = ieee>}
  %o, %lse = attn.attention %q, %q, %q {numerics = #attn.numerics<fast_math = false, f32_products = ieee>}
    : (tensor<1x1x?x40xf32>, tensor<1x1x?x40xf32>, tensor<1x1x?x40xf32>)
      -> (tensor<1x1x?x40xf32>, tensor<1x1x?xf32>)
  // CHECK: attn.attention {{.*}} {numerics = #attn.numerics}
  %o2, %lse2 = attn.attention %q, %q, %q {numerics = #attn.numerics<f32_products = tf32x3>}
    : (tensor<1x1x?x40xf32>, tensor<1x1x?x40xf32>, tensor<1x1x?x40xf32>)
      -> (tensor<1x1x?x40xf32>, tensor<1x1x?xf32>)
  return %o : tensor<1x1x?x40xf32>
}

// CHECK-LABEL: func.func @regions
func.func @regions(%q: tensor<2x16x?x64xbf16>, %k: tensor<2x4x?x64xbf16>,
                   %v: tensor<2x4x?x64xbf16>, %slopes: tensor<16xf32>, %n: i32)
    -> (tensor<2x16x?x64xbf16>, tensor<2x16x?xf32>) {
  // CHECK: attn.attention %{{.*}}, %{{.*}}, %{{.*}} captures(%{{.*}}, %{{.*}}) {scale = 1.250000e-01 : f64}
  // CHECK-NEXT: score(%[[X:.*]]: f32, %{{.*}}: i32, %[[H:.*]]: i32, %{{.*}}: i32, %{{.*}}: i32, %[[S:.*]]: tensor<16xf32>, %{{.*}}: i32) {
  // CHECK-NEXT: attn.capture_load %[[S]][%[[H]]] : tensor<16xf32>
  // CHECK: attn.yield %{{.*}} : f32
  // CHECK-NEXT: }
  // CHECK-NEXT: mask(%{{.*}}: i32, %{{.*}}: i32, %[[I:.*]]: i32, %[[J:.*]]: i32, %{{.*}}: tensor<16xf32>, %{{.*}}: i32) {
  // CHECK-NEXT: arith.cmpi sge, %[[I]], %[[J]] : i32
  // CHECK-NEXT: attn.yield %{{.*}} : i1
  // CHECK-NEXT: }
  // CHECK-NEXT: : (tensor<2x16x?x64xbf16>, tensor<2x4x?x64xbf16>, tensor<2x4x?x64xbf16>, tensor<16xf32>, i32)
  %o, %lse = attn.attention %q, %k, %v captures(%slopes, %n) {scale = 0.125}
    score(%x: f32, %b: i32, %h: i32, %i: i32, %j: i32, %s: tensor<16xf32>, %m: i32) {
      %slope = attn.capture_load %s[%h] : tensor<16xf32>
      %d = arith.subi %j, %i : i32
      %f = arith.sitofp %d : i32 to f32
      %t = arith.mulf %slope, %f : f32
      %y = arith.addf %x, %t : f32
      attn.yield %y : f32
    }
    mask(%b: i32, %h: i32, %i: i32, %j: i32, %s: tensor<16xf32>, %m: i32) {
      %c = arith.cmpi sge, %i, %j : i32
      attn.yield %c : i1
    }
    : (tensor<2x16x?x64xbf16>, tensor<2x4x?x64xbf16>, tensor<2x4x?x64xbf16>,
       tensor<16xf32>, i32)
      -> (tensor<2x16x?x64xbf16>, tensor<2x16x?xf32>)
  return %o, %lse : tensor<2x16x?x64xbf16>, tensor<2x16x?xf32>
}

// Captures of every kind, a tensor of rank 0, mask without score.
// CHECK-LABEL: func.func @captures
func.func @captures(%q: tensor<1x1x8x8xf32>, %a: tensor<i1>, %b: tensor<?x?x?x?xi8>,
                    %c: i1, %d: i8, %e: i16, %f: i64, %g: f16, %h: bf16)
    -> tensor<1x1x8x8xf32> {
  // CHECK: attn.attention %{{.*}}, %{{.*}}, %{{.*}} captures
  // CHECK-NEXT: mask(
  // CHECK-NEXT: attn.capture_load %{{.*}}[] : tensor<i1>
  %o, %lse = attn.attention %q, %q, %q captures(%a, %b, %c, %d, %e, %f, %g, %h)
    mask(%mb: i32, %mh: i32, %i: i32, %j: i32, %ma: tensor<i1>,
         %mm: tensor<?x?x?x?xi8>, %mc: i1, %md: i8, %me: i16, %mf: i64,
         %mg: f16, %mbf: bf16) {
      %0 = attn.capture_load %ma[] : tensor<i1>
      attn.yield %0 : i1
    }
    : (tensor<1x1x8x8xf32>, tensor<1x1x8x8xf32>, tensor<1x1x8x8xf32>,
       tensor<i1>, tensor<?x?x?x?xi8>, i1, i8, i16, i64, f16, bf16)
      -> (tensor<1x1x8x8xf32>, tensor<1x1x8xf32>)
  return %o : tensor<1x1x8x8xf32>
}

// CHECK-LABEL: func.func @sink_dropout_and_search
func.func @sink_dropout_and_search(%q: tensor<2x4x?x64xbf16>, %s: tensor<4xf32>,
                                   %seed: i32, %offset: i32, %starts: tensor<2x?xi32>,
                                   %ids: tensor<?xi16>) -> tensor<2x4x?x64xbf16> {
  // CHECK: attn.attention %{{.*}}, %{{.*}}, %{{.*}} sink(%{{.*}}) dropout(%{{.*}}, %{{.*}}) captures(%{{.*}}, %{{.*}}) {dropout_p = 1.000000e-01 : f64, sorted_captures = array<i64: 0, 1>}
  %o, %lse = attn.attention %q, %q, %q sink(%s) dropout(%seed, %offset)
      captures(%starts, %ids) {dropout_p = 0.1, sorted_captures = array<i64: 0, 1>}
    mask(%b: i32, %h: i32, %i: i32, %j: i32, %t: tensor<2x?xi32>, %d: tensor<?xi16>) {
      // CHECK: attn.capture_search %{{.*}}[%{{.*}}], %{{.*}} : tensor<2x?xi32>
      %m = attn.capture_search %t[%b], %i : tensor<2x?xi32>
      %n = attn.capture_search %t[%b], %j : tensor<2x?xi32>
      %same = arith.cmpi eq, %m, %n : i32
      attn.yield %same : i1
    }
    : (tensor<2x4x?x64xbf16>, tensor<2x4x?x64xbf16>, tensor<2x4x?x64xbf16>, tensor<4xf32>, i32, i32, tensor<2x?xi32>, tensor<?xi16>)
      -> (tensor<2x4x?x64xbf16>, tensor<2x4x?xf32>)
  return %o : tensor<2x4x?x64xbf16>
}

// The registers and the optional passes of a plan.
// CHECK-LABEL: func.func private @passes
// CHECK-SAME: plan = #attn.plan<target = sm_90a, block_q = 64, block_k = 64, warps = 4, consumer_registers = 200, blocks_per_sm = 2, without = ["tile-peel-masks", "warp-persist"], with = ["warp-double-buffer"]>
func.func private @passes() attributes {plan = #attn.plan<target = sm_90a, block_q = 64, block_k = 64, warps = 4,
    consumer_registers = 200, blocks_per_sm = 2, without = ["tile-peel-masks", "warp-persist"], with = ["warp-double-buffer"]>}
