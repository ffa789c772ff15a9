// RUN: attn-opt %s --attn-plan=target=sm_90a | FileCheck %s
// RUN: attn-opt %s --attn-print-plans=target=sm_90a | FileCheck %s --check-prefix=PLANS
// RUN: not attn-opt %s --attn-plan='target=sm_90a plan="#attn.plan<target = sm_90a, block_q = 128, block_k = 128, warps = 8, stages = 3>"' 2>&1 | FileCheck %s --check-prefix=SHARED
// RUN: not attn-opt %s --attn-plan='target=sm_90a plan="#attn.plan<target = sm_90a, block_q = 64, block_k = 64, warps = 2>"' 2>&1 | FileCheck %s --check-prefix=WARPS

!q64 = tensor<2x8x?x64xbf16>
!q128 = tensor<2x8x?x128xf16>
!q192 = tensor<2x8x?x192xf16>
!q256 = tensor<2x8x?x256xf16>
!lse = tensor<2x8x?xf32>

// Groups of four warps share the registers: three for d = 64, where rows are long,
// two for large d.
// CHECK-LABEL: func.func @d64
// CHECK: plan = #attn.plan<target = sm_90a, block_q = 192, block_k = 128, warps = 12>
// PLANS-LABEL: // plans for tensor<2x8x?x64xbf16>
// PLANS: // #attn.plan<target = sm_90a, block_q = 64, block_k = 64, warps = 4, stages = 2> shared 41040 B, about 108 registers
// PLANS: // #attn.plan<target = sm_90a, block_q = 192, block_k = 128, warps = 12> shared {{[0-9]+}} B, about 156 registers, 1 blocks per SM, {{[0-9.]+}} clocks per score (pick)
// PLANS: // #attn.plan<target = sm_90a, block_q = 192, block_k = 128, warps = 12, stages = 2> shared 90192 B, about 156 registers, 1 blocks per SM
// WARPS: plan is not feasible: warps = 2, sm_90a takes 4, 8, 12 or 16
func.func @d64(%q: !q64, %k: !q64) -> !q64 {
  %o, %lse = attn.attention %q, %k, %k : (!q64, !q64, !q64) -> (!q64, !lse)
  return %o : !q64
}

// CHECK-LABEL: func.func @d128
// CHECK: plan = #attn.plan<target = sm_90a, block_q = 128, block_k = 128, warps = 8, stages = 2>
func.func @d128(%q: !q128, %k: !q128) -> !q128 {
  %o, %lse = attn.attention %q, %k, %k : (!q128, !q128, !q128) -> (!q128, !lse)
  return %o : !q128
}

// With a mask smaller blocks of keys are faster, unless rows are long and half of
// the blocks full.
// CHECK-LABEL: func.func @d128_masked
// CHECK: plan = #attn.plan<target = sm_90a, block_q = 128, block_k = 128, warps = 8>
func.func @d128_masked(%q: tensor<2x8x8192x128xbf16>, %k: tensor<2x8x?x128xbf16>) -> tensor<2x8x8192x128xbf16> {
  %o, %lse = attn.attention %q, %k, %k
    mask(%b: i32, %h: i32, %i: i32, %j: i32) {
      %m = arith.cmpi sge, %i, %j : i32
      attn.yield %m : i1
    } : (tensor<2x8x8192x128xbf16>, tensor<2x8x?x128xbf16>, tensor<2x8x?x128xbf16>) -> (tensor<2x8x8192x128xbf16>, tensor<2x8x8192xf32>)
  return %o : tensor<2x8x8192x128xbf16>
}

// Less than 1 % faster is no reason for a plan that takes the assembler four
// times as long.
// CHECK-LABEL: func.func @d128_masked_short
// CHECK: plan = #attn.plan<target = sm_90a, block_q = 128, block_k = 64, warps = 8, stages = 4, with = ["warp-turn-ends"]>
func.func @d128_masked_short(%q: tensor<2x8x4096x128xbf16>, %k: tensor<2x8x?x128xbf16>) -> tensor<2x8x4096x128xbf16> {
  %o, %lse = attn.attention %q, %k, %k {variants = [#attn.causal]}
    : (tensor<2x8x4096x128xbf16>, tensor<2x8x?x128xbf16>, tensor<2x8x?x128xbf16>) -> (tensor<2x8x4096x128xbf16>, tensor<2x8x4096xf32>)
  return %o : tensor<2x8x4096x128xbf16>
}

// The same said by name, as attn-bench sees it.
// CHECK-LABEL: func.func @d128_causal
// CHECK: plan = #attn.plan<target = sm_90a, block_q = 128, block_k = 128, warps = 8>
func.func @d128_causal(%q: !q128, %k: !q128) -> !q128 {
  %o, %lse = attn.attention %q, %k, %k {variants = [#attn.causal]} : (!q128, !q128, !q128) -> (!q128, !lse)
  return %o : !q128
}

// Short rows half of which are hidden: three groups, each at its own pace.
// CHECK-LABEL: func.func @d96_short_half
// CHECK: plan = #attn.plan<target = sm_90a, block_q = 192, block_k = 64, warps = 12, stages = 4, without = ["warp-insert-turns"]>
func.func @d96_short_half(%q: tensor<2x8x1024x96xbf16>) -> tensor<2x8x1024x96xbf16> {
  %o, %lse = attn.attention %q, %q, %q {variants = [#attn.causal]}
    : (tensor<2x8x1024x96xbf16>, tensor<2x8x1024x96xbf16>, tensor<2x8x1024x96xbf16>) -> (tensor<2x8x1024x96xbf16>, tensor<2x8x1024xf32>)
  return %o : tensor<2x8x1024x96xbf16>
}

// A window without an end on the right and one with, a mask of two comparisons,
// which is run, and one that hides a key.
// CHECK-LABEL: func.func @d128_windows
// CHECK: plan = #attn.plan<target = sm_90a, block_q = 128, block_k = 64, warps = 8, stages = 4>
// CHECK: plan = #attn.plan<target = sm_90a, block_q = 192, block_k = 64, warps = 12, stages = 4, without = ["warp-insert-turns"]>
// CHECK: plan = #attn.plan<target = sm_90a, block_q = 128, block_k = 128, warps = 8, stages = 2>
// CHECK: plan = #attn.plan<target = sm_90a, block_q = 128, block_k = 64, warps = 8, stages = 4>
func.func @d128_windows(%q: !q128, %k: !q128) -> (!q128, !q128, !q128, !q128) {
  %o, %lse = attn.attention %q, %k, %k {variants = [#attn.window<left = 9>]} : (!q128, !q128, !q128) -> (!q128, !lse)
  %o1, %lse1 = attn.attention %q, %k, %k {variants = [#attn.causal, #attn.window<left = 9>]} : (!q128, !q128, !q128) -> (!q128, !lse)
  %o2, %lse2 = attn.attention %q, %k, %k
    mask(%b: i32, %h: i32, %i: i32, %j: i32) {
      %past = arith.cmpi sge, %i, %j : i32
      %c9 = arith.constant 9 : i32
      %prefix = arith.cmpi slt, %j, %c9 : i32
      %m = arith.ori %past, %prefix : i1
      attn.yield %m : i1
    } : (!q128, !q128, !q128) -> (!q128, !lse)
  %o3, %lse3 = attn.attention %q, %k, %k
    mask(%b: i32, %h: i32, %i: i32, %j: i32) {
      %m = arith.cmpi ne, %i, %j : i32
      attn.yield %m : i1
    } : (!q128, !q128, !q128) -> (!q128, !lse)
  return %o, %o1, %o2, %o3 : !q128, !q128, !q128, !q128
}

// Small tiles where captured data says what is visible, three groups where it is
// sorted; at d = 128 where scores are computed upon.
// CHECK-LABEL: func.func @d64_documents
// CHECK: plan = #attn.plan<target = sm_90a, block_q = 192, block_k = 96, warps = 12, stages = 3>
func.func @d64_documents(%q: !q64, %k: !q64, %offsets: tensor<?xi32>) -> !q64 {
  %o, %lse = attn.attention %q, %k, %k captures(%offsets)
    mask(%b: i32, %h: i32, %i: i32, %j: i32, %at: tensor<?xi32>) {
      %m = attn.capture_search %at[], %i : tensor<?xi32>
      %n = attn.capture_search %at[], %j : tensor<?xi32>
      %s = arith.cmpi eq, %m, %n : i32
      attn.yield %s : i1
    } : (!q64, !q64, !q64, tensor<?xi32>) -> (!q64, !lse)
  return %o : !q64
}

// Softcaps want a fourth group to hide behind, but not those of a longer score.
// CHECK-LABEL: func.func @d64_softcap
// CHECK: plan = #attn.plan<target = sm_90a, block_q = 256, block_k = 64, warps = 16, stages = 4>
func.func @d64_softcap(%q: !q64, %k: !q64) -> !q64 {
  %o, %lse = attn.attention %q, %k, %k {variants = [#attn.softcap<30.0 : f32>, #attn.causal]} : (!q64, !q64, !q64) -> (!q64, !lse)
  return %o : !q64
}

// CHECK-LABEL: func.func @d64_softcap_alibi
// CHECK: plan = #attn.plan<target = sm_90a, block_q = 192, block_k = 96, warps = 12, stages = 3>
func.func @d64_softcap_alibi(%q: !q64, %k: !q64) -> !q64 {
  %o, %lse = attn.attention %q, %k, %k {variants = [#attn.softcap<30.0 : f32>, #attn.alibi]} : (!q64, !q64, !q64) -> (!q64, !lse)
  return %o : !q64
}

// CHECK-LABEL: func.func @d128_softcap
// CHECK: plan = #attn.plan<target = sm_90a, block_q = 192, block_k = 64, warps = 12, stages = 2>
func.func @d128_softcap(%q: !q128, %k: !q128) -> !q128 {
  %o, %lse = attn.attention %q, %k, %k {variants = [#attn.softcap<30.0 : f32>]} : (!q128, !q128, !q128) -> (!q128, !lse)
  return %o : !q128
}

// Random numbers take the registers of a fourth group.
// CHECK-LABEL: func.func @d64_dropout
// CHECK: plan = #attn.plan<target = sm_90a, block_q = 192, block_k = 64, warps = 12, stages = 4>
func.func @d64_dropout(%q: !q64, %k: !q64, %seed: i32, %offset: i32) -> !q64 {
  %o, %lse = attn.attention %q, %k, %k dropout(%seed, %offset) {dropout_p = 0.1 : f64}
    : (!q64, !q64, !q64, i32, i32) -> (!q64, !lse)
  return %o : !q64
}

// Three groups of 64 rows, but for sequences that are known to be short.
// CHECK-LABEL: func.func @d96
// CHECK: plan = #attn.plan<target = sm_90a, block_q = 192, block_k = 96, warps = 12, stages = 3>
func.func @d96(%q: tensor<2x8x?x96xbf16>) -> tensor<2x8x?x96xbf16> {
  %o, %lse = attn.attention %q, %q, %q : (tensor<2x8x?x96xbf16>, tensor<2x8x?x96xbf16>, tensor<2x8x?x96xbf16>) -> (tensor<2x8x?x96xbf16>, !lse)
  return %o : tensor<2x8x?x96xbf16>
}

// CHECK-LABEL: func.func @d96_short
// CHECK: plan = #attn.plan<target = sm_90a, block_q = 128, block_k = 128, warps = 8, stages = 2>
func.func @d96_short(%q: tensor<2x8x1024x96xbf16>) -> tensor<2x8x1024x96xbf16> {
  %o, %lse = attn.attention %q, %q, %q : (tensor<2x8x1024x96xbf16>, tensor<2x8x1024x96xbf16>, tensor<2x8x1024x96xbf16>) -> (tensor<2x8x1024x96xbf16>, tensor<2x8x1024xf32>)
  return %o : tensor<2x8x1024x96xbf16>
}

// CHECK-LABEL: func.func @d192_and_128
// CHECK: plan = #attn.plan<target = sm_90a, block_q = 128, block_k = 128, warps = 8, stages = 2>
// SHARED: plan is not feasible: Q tile 49152 B + K ring 3 x 49152 B + V ring 3 x 32768 B + barriers 112 B = 295024 B, sm_90a has 232448 B
func.func @d192_and_128(%q: !q192, %k: !q192, %v: !q128) -> !q128 {
  %o, %lse = attn.attention %q, %k, %v : (!q192, !q192, !q128) -> (!q128, !lse)
  return %o : !q128
}

// CHECK-LABEL: func.func @d256
// CHECK: plan = #attn.plan<target = sm_90a, block_q = 128, block_k = 64, warps = 8, stages = 2>
func.func @d256(%q: !q256, %k: !q256) -> !q256 {
  %o, %lse = attn.attention %q, %k, %k : (!q256, !q256, !q256) -> (!q256, !lse)
  return %o : !q256
}

// What is read for each key takes registers.
// CHECK-LABEL: func.func @d128_bias
// CHECK: plan = #attn.plan<target = sm_90a, block_q = 128, block_k = 96, warps = 8, stages = 2>
func.func @d128_bias(%q: !q128, %k: !q128, %bias: tensor<?x?xf32>) -> !q128 {
  %o, %lse = attn.attention %q, %k, %k captures(%bias)
    score(%x: f32, %b: i32, %h: i32, %i: i32, %j: i32, %c: tensor<?x?xf32>) {
      %next = arith.addi %j, %b : i32
      %t = attn.capture_load %c[%h, %next] : tensor<?x?xf32>
      %y = arith.addf %x, %t : f32
      attn.yield %y : f32
    } : (!q128, !q128, !q128, tensor<?x?xf32>) -> (!q128, !lse)
  return %o : !q128
}

// A number for each head does not.
// CHECK-LABEL: func.func @d128_slopes
// CHECK: plan = #attn.plan<target = sm_90a, block_q = 128, block_k = 128, warps = 8, stages = 2>
func.func @d128_slopes(%q: !q128, %k: !q128, %slopes: tensor<?xf32>) -> !q128 {
  %o, %lse = attn.attention %q, %k, %k captures(%slopes)
    score(%x: f32, %b: i32, %h: i32, %i: i32, %j: i32, %c: tensor<?xf32>) {
      %t = attn.capture_load %c[%h] : tensor<?xf32>
      %f = arith.sitofp %j : i32 to f32
      %m = arith.mulf %t, %f : f32
      %y = arith.addf %x, %m : f32
      attn.yield %y : f32
    } : (!q128, !q128, !q128, tensor<?xf32>) -> (!q128, !lse)
  return %o : !q128
}
