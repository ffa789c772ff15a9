// At d = 128 score functions that are differentiated, and random numbers, want
// registers: their gradients take smaller blocks, which do not spill. A softcap
// alone does with more registers for the consumers.
//
// RUN: attn-opt %s --attn-expand-variants --attn-differentiate --attn-plan=target=sm_90a | FileCheck %s --check-prefix=SM90
// RUN: attn-opt %s --attn-expand-variants --attn-differentiate --attn-plan=target=sm_80 | FileCheck %s --check-prefix=SM80

!t = tensor<1x4x?x128xbf16>
!l = tensor<1x4x?xf32>

// SM90-LABEL: @softcap_backward
// SM90: attn.attention_backward {{.*}}plan = #attn.plan<target = sm_90a, block_q = 128, block_k = 64, warps = 8, stages = 2, consumer_registers = 240>
// SM80-LABEL: @softcap_backward
// SM80: attn.attention_backward {{.*}}plan = #attn.plan<target = sm_80, block_q = 64, block_k = 32, warps = 4, stages = 2>
func.func @softcap(%q: !t, %k: !t, %v: !t) -> (!t, !l) {
  %o, %lse = attn.attention %q, %k, %v {variants = [#attn.softcap<20.0 : f32>]} : (!t, !t, !t) -> (!t, !l)
  return %o, %lse : !t, !l
}

// SM90-LABEL: @softcap_any_backward
// SM90: attn.attention_backward {{.*}}plan = #attn.plan<target = sm_90a, block_q = 128, block_k = 64, warps = 8, stages = 2, consumer_registers = 240>
func.func @softcap_any(%q: !t, %k: !t, %v: !t) -> (!t, !l) {
  %o, %lse = attn.attention %q, %k, %v {variants = [#attn.softcap<20.0 : f32>], numerics = #attn.numerics<deterministic = false>}
    : (!t, !t, !t) -> (!t, !l)
  return %o, %lse : !t, !l
}

// SM90-LABEL: @softcap_and_bias_backward
// SM90: attn.attention_backward {{.*}}plan = #attn.plan<target = sm_90a, block_q = 128, block_k = 32, warps = 8, stages = 3>
func.func @softcap_and_bias(%q: !t, %k: !t, %v: !t) -> (!t, !l) {
  %o, %lse = attn.attention %q, %k, %v {variants = [#attn.softcap<20.0 : f32>, #attn.alibi]} : (!t, !t, !t) -> (!t, !l)
  return %o, %lse : !t, !l
}

// What is added to scores has no derivative that costs.
// SM90-LABEL: @alibi_backward
// SM90: attn.attention_backward {{.*}}plan = #attn.plan<target = sm_90a, block_q = 128, block_k = 64, warps = 8, stages = 2, consumer_registers = 240>
func.func @alibi(%q: !t, %k: !t, %v: !t) -> (!t, !l) {
  %o, %lse = attn.attention %q, %k, %v {variants = [#attn.alibi]} : (!t, !t, !t) -> (!t, !l)
  return %o, %lse : !t, !l
}

// SM90-LABEL: @dropout_backward
// SM90: attn.attention_backward {{.*}}plan = #attn.plan<target = sm_90a, block_q = 128, block_k = 32, warps = 8, stages = 2>
func.func @dropout(%q: !t, %k: !t, %v: !t, %seed: i32, %offset: i32) -> (!t, !l) {
  %o, %lse = attn.attention %q, %k, %v dropout(%seed, %offset) {dropout_p = 1.0e-01 : f64}
    : (!t, !t, !t, i32, i32) -> (!t, !l)
  return %o, %lse : !t, !l
}

// At d = 256, too.
// SM90-LABEL: @wide_softcap_backward
// SM90: attn.attention_backward {{.*}}plan = #attn.plan<target = sm_90a, block_q = 128, block_k = 64, warps = 8, consumer_registers = 240>
func.func @wide_softcap(%q: tensor<1x4x?x256xbf16>, %k: tensor<1x4x?x256xbf16>, %v: tensor<1x4x?x256xbf16>) -> (tensor<1x4x?x256xbf16>, !l) {
  %o, %lse = attn.attention %q, %k, %v {variants = [#attn.softcap<20.0 : f32>]}
    : (tensor<1x4x?x256xbf16>, tensor<1x4x?x256xbf16>, tensor<1x4x?x256xbf16>) -> (tensor<1x4x?x256xbf16>, !l)
  return %o, %lse : tensor<1x4x?x256xbf16>, !l
}

// SM90-LABEL: @wide_square_backward
// SM90: attn.attention_backward {{.*}}plan = #attn.plan<target = sm_90a, block_q = 128, block_k = 32, warps = 8, stages = 2, consumer_registers = 240>
func.func @wide_square(%q: tensor<1x4x?x256xbf16>, %k: tensor<1x4x?x256xbf16>, %v: tensor<1x4x?x256xbf16>) -> (tensor<1x4x?x256xbf16>, !l) {
  %o, %lse = attn.attention %q, %k, %v
    score(%x: f32, %b: i32, %h: i32, %i: i32, %j: i32) {
      %y = arith.mulf %x, %x : f32
      attn.yield %y : f32
    }
    : (tensor<1x4x?x256xbf16>, tensor<1x4x?x256xbf16>, tensor<1x4x?x256xbf16>) -> (tensor<1x4x?x256xbf16>, !l)
  return %o, %lse : tensor<1x4x?x256xbf16>, !l
}
