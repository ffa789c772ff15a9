// Numbers of each query or key that a score function adds are read while a
// warpgroup waits for its turn: tiles of several warpgroups, other than for
// places in tables, more numbers, and masks that data make.
//
// RUN: attn-opt %s --attn-plan=target=sm_90a | FileCheck %s

!q = tensor<1x8x?x64xbf16>
!w = tensor<1x8x?x128xbf16>
!l = tensor<1x8x?xf32>
!t = tensor<?x?xf32>

// CHECK-LABEL: @keys
// CHECK: plan = #attn.plan<target = sm_90a, block_q = 256, block_k = 64, warps = 16, stages = 4>
func.func @keys(%q: !q, %k: !q, %v: !q, %bias: !t) -> (!q, !l) {
  %o, %lse = attn.attention %q, %k, %v captures(%bias)
    score(%x: f32, %b: i32, %h: i32, %i: i32, %j: i32, %t: !t) {
      %c = attn.capture_load %t[%h, %j] : !t
      %y = arith.addf %x, %c : f32
      attn.yield %y : f32
    }
    : (!q, !q, !q, !t) -> (!q, !l)
  return %o, %lse : !q, !l
}

// CHECK-LABEL: @wide
// CHECK: plan = #attn.plan<target = sm_90a, block_q = 192, block_k = 64, warps = 12, stages = 2>
func.func @wide(%q: !w, %k: !w, %v: !w, %bias: !t) -> (!w, !l) {
  %o, %lse = attn.attention %q, %k, %v captures(%bias)
    score(%x: f32, %b: i32, %h: i32, %i: i32, %j: i32, %t: !t) {
      %c = attn.capture_load %t[%h, %j] : !t
      %y = arith.addf %x, %c : f32
      attn.yield %y : f32
    }
    : (!w, !w, !w, !t) -> (!w, !l)
  return %o, %lse : !w, !l
}

// Both of them, behind a causal mask.
// CHECK-LABEL: @causal
// CHECK: plan = #attn.plan<target = sm_90a, block_q = 192, block_k = 96, warps = 12, stages = 3>
func.func @causal(%q: !q, %k: !q, %v: !q, %bias: !t) -> (!q, !l) {
  %o, %lse = attn.attention %q, %k, %v captures(%bias) {variants = [#attn.causal]}
    score(%x: f32, %b: i32, %h: i32, %i: i32, %j: i32, %t: !t) {
      %c = attn.capture_load %t[%h, %j] : !t
      %d = attn.capture_load %t[%h, %i] : !t
      %e = arith.subf %d, %c : f32
      %y = arith.addf %x, %e : f32
      attn.yield %y : f32
    }
    : (!q, !q, !q, !t) -> (!q, !l)
  return %o, %lse : !q, !l
}

// CHECK-LABEL: @table
// CHECK: plan = #attn.plan<target = sm_90a, block_q = 192, block_k = 64, warps = 12, stages = 4>
func.func @table(%q: !q, %k: !q, %v: !q, %bias: !t) -> (!q, !l) {
  %o, %lse = attn.attention %q, %k, %v captures(%bias)
    score(%x: f32, %b: i32, %h: i32, %i: i32, %j: i32, %t: !t) {
      %d = arith.subi %i, %j : i32
      %c = attn.capture_load %t[%h, %d] : !t
      %y = arith.addf %x, %c : f32
      attn.yield %y : f32
    }
    : (!q, !q, !q, !t) -> (!q, !l)
  return %o, %lse : !q, !l
}

// The mask reads data by position.
// CHECK-LABEL: @by_data
// CHECK: plan = #attn.plan<target = sm_90a, block_q = 192, block_k = 64, warps = 12, stages = 4>
func.func @by_data(%q: !q, %k: !q, %v: !q, %bias: !t) -> (!q, !l) {
  %o, %lse = attn.attention %q, %k, %v captures(%bias)
    score(%x: f32, %b: i32, %h: i32, %i: i32, %j: i32, %t: !t) {
      %c = attn.capture_load %t[%h, %j] : !t
      %y = arith.addf %x, %c : f32
      attn.yield %y : f32
    } mask(%b: i32, %h: i32, %i: i32, %j: i32, %t: !t) {
      %c = attn.capture_load %t[%h, %j] : !t
      %d = attn.capture_load %t[%h, %i] : !t
      %m = arith.cmpf olt, %c, %d : f32
      attn.yield %m : i1
    }
    : (!q, !q, !q, !t) -> (!q, !l)
  return %o, %lse : !q, !l
}
