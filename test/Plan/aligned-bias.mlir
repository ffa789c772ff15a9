// A bias of each query and key comes as tiles do where its rows are promised to be
// aligned: such kernels have registers for larger tiles.
//
// RUN: attn-opt %s --attn-plan=target=sm_90a | FileCheck %s
// RUN: attn-opt %s --attn-plan=target=sm_80 | FileCheck %s --check-prefix=SM80

!q = tensor<1x1x?x128xbf16>
!w = tensor<1x1x?x96xbf16>
!l = tensor<1x1x?xf32>
!b = tensor<?x?xbf16>

// CHECK-LABEL: @promised
// CHECK: plan = #attn.plan<target = sm_90a, block_q = 128, block_k = 64, warps = 8, stages = 2, consumer_registers = 240>
// SM80-LABEL: @promised
// SM80: plan = #attn.plan<target = sm_80, block_q = 64, block_k = 32, warps = 4, stages = 2>
func.func @promised(%q: !q, %k: !q, %v: !q, %o: !q, %lse: !l, %do: !q, %bias: !b {attn.aligned}) -> (!q, !q, !q) {
  %dq, %dk, %dv = attn.attention_backward %q, %k, %v, %o, %lse, %do captures(%bias)
    score(%x: f32, %b: i32, %h: i32, %i: i32, %j: i32, %t: !b) {
      %c = attn.capture_load %t[%i, %j] : !b
      %w = arith.extf %c : bf16 to f32
      %y = arith.addf %x, %w : f32
      attn.yield %y : f32
    }
    : (!q, !q, !q, !q, !l, !q, !b) -> (!q, !q, !q)
  return %dq, %dk, %dv : !q, !q, !q
}

// CHECK-LABEL: @not_promised
// CHECK: plan = #attn.plan<target = sm_90a, block_q = 128, block_k = 32, warps = 8, stages = 2>
func.func @not_promised(%q: !q, %k: !q, %v: !q, %o: !q, %lse: !l, %do: !q, %bias: !b) -> (!q, !q, !q) {
  %dq, %dk, %dv = attn.attention_backward %q, %k, %v, %o, %lse, %do captures(%bias)
    score(%x: f32, %b: i32, %h: i32, %i: i32, %j: i32, %t: !b) {
      %c = attn.capture_load %t[%i, %j] : !b
      %w = arith.extf %c : bf16 to f32
      %y = arith.addf %x, %w : f32
      attn.yield %y : f32
    }
    : (!q, !q, !q, !q, !l, !q, !b) -> (!q, !q, !q)
  return %dq, %dk, %dv : !q, !q, !q
}

// Its rows are columns of scores: what is read at the key first is no such bias.
// CHECK-LABEL: @keys_first
// CHECK: plan = #attn.plan<target = sm_90a, block_q = 128, block_k = 32, warps = 8, stages = 2>
func.func @keys_first(%q: !q, %k: !q, %v: !q, %o: !q, %lse: !l, %do: !q, %bias: !b {attn.aligned}) -> (!q, !q, !q) {
  %dq, %dk, %dv = attn.attention_backward %q, %k, %v, %o, %lse, %do captures(%bias)
    score(%x: f32, %b: i32, %h: i32, %i: i32, %j: i32, %t: !b) {
      %c = attn.capture_load %t[%j, %i] : !b
      %w = arith.extf %c : bf16 to f32
      %y = arith.addf %x, %w : f32
      attn.yield %y : f32
    }
    : (!q, !q, !q, !q, !l, !q, !b) -> (!q, !q, !q)
  return %dq, %dk, %dv : !q, !q, !q
}

// Three stages of 192 x 96 have no place beside those of keys and values.
// CHECK-LABEL: @forward
// CHECK: plan = #attn.plan<target = sm_90a, block_q = 128, block_k = 128, warps = 8, stages = 2>
func.func @forward(%q: !w, %k: !w, %v: !w, %bias: !b {attn.aligned}) -> (!w, !l) {
  %o, %lse = attn.attention %q, %k, %v captures(%bias)
    score(%x: f32, %b: i32, %h: i32, %i: i32, %j: i32, %t: !b) {
      %c = attn.capture_load %t[%i, %j] : !b
      %w = arith.extf %c : bf16 to f32
      %y = arith.addf %x, %w : f32
      attn.yield %y : f32
    }
    : (!w, !w, !w, !b) -> (!w, !l)
  return %o, %lse : !w, !l
}
