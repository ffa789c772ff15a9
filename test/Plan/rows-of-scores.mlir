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

// Gradients: one program has the products where nothing is read by position,
// or only rows, of which no sums come with them. Two have tables, and sums.
!b = tensor<8xf32>

// CHECK-LABEL: @heads
// CHECK: plan = #attn.plan<target = sm_90a, block_q = 128, block_k = 64, warps = 8, stages = 2, consumer_registers = 240>
func.func @heads(%q: !w, %k: !w, %v: !w, %o: !w, %lse: !l, %do: !w, %slopes: !b) -> (!w, !w, !w, !b) {
  %dq, %dk, %dv, %ds = attn.attention_backward %q, %k, %v, %o, %lse, %do captures(%slopes) {grad_captures = array<i64: 0>, numerics = #attn.numerics<deterministic = false>}
    score(%x: f32, %b: i32, %h: i32, %i: i32, %j: i32, %t: !b) {
      %c = attn.capture_load %t[%h] : !b
      %d = arith.subi %i, %j : i32
      %e = arith.sitofp %d : i32 to f32
      %f = arith.mulf %c, %e : f32
      %y = arith.subf %x, %f : f32
      attn.yield %y : f32
    } pullback(%dy: f32, %x: f32, %b: i32, %h: i32, %i: i32, %j: i32, %t: !b) {
      %d = arith.subi %j, %i : i32
      %e = arith.sitofp %d : i32 to f32
      %f = arith.mulf %dy, %e : f32
      attn.capture_add %f, %t[%h] : !b
      attn.yield %dy : f32
    }
    : (!w, !w, !w, !w, !l, !w, !b) -> (!w, !w, !w, !b)
  return %dq, %dk, %dv, %ds : !w, !w, !w, !b
}

// CHECK-LABEL: @keys_alone
// CHECK: plan = #attn.plan<target = sm_90a, block_q = 128, block_k = 64, warps = 8, stages = 2, consumer_registers = 240>
func.func @keys_alone(%q: !w, %k: !w, %v: !w, %o: !w, %lse: !l, %do: !w, %bias: !t) -> (!w, !w, !w) {
  %dq, %dk, %dv = attn.attention_backward %q, %k, %v, %o, %lse, %do captures(%bias)
    score(%x: f32, %b: i32, %h: i32, %i: i32, %j: i32, %t: !t) {
      %c = attn.capture_load %t[%h, %j] : !t
      %y = arith.addf %x, %c : f32
      attn.yield %y : f32
    }
    : (!w, !w, !w, !w, !l, !w, !t) -> (!w, !w, !w)
  return %dq, %dk, %dv : !w, !w, !w
}

// CHECK-LABEL: @keys_and_sums
// CHECK: plan = #attn.plan<target = sm_90a, block_q = 128, block_k = 32, warps = 8, stages = 3>
func.func @keys_and_sums(%q: !w, %k: !w, %v: !w, %o: !w, %lse: !l, %do: !w, %bias: !t) -> (!w, !w, !w, !t) {
  %dq, %dk, %dv, %db = attn.attention_backward %q, %k, %v, %o, %lse, %do captures(%bias) {grad_captures = array<i64: 0>}
    score(%x: f32, %b: i32, %h: i32, %i: i32, %j: i32, %t: !t) {
      %c = attn.capture_load %t[%h, %j] : !t
      %y = arith.addf %x, %c : f32
      attn.yield %y : f32
    } pullback(%dy: f32, %x: f32, %b: i32, %h: i32, %i: i32, %j: i32, %t: !t) {
      attn.capture_add %dy, %t[%h, %j] : !t
      attn.yield %dy : f32
    }
    : (!w, !w, !w, !w, !l, !w, !t) -> (!w, !w, !w, !t)
  return %dq, %dk, %dv, %db : !w, !w, !w, !t
}

// CHECK-LABEL: @temperatures
// CHECK: plan = #attn.plan<target = sm_90a, block_q = 128, block_k = 32, warps = 8, stages = 3>
func.func @temperatures(%q: !w, %k: !w, %v: !w, %o: !w, %lse: !l, %do: !w, %scales: !b) -> (!w, !w, !w) {
  %dq, %dk, %dv = attn.attention_backward %q, %k, %v, %o, %lse, %do captures(%scales)
    score(%x: f32, %b: i32, %h: i32, %i: i32, %j: i32, %t: !b) {
      %c = attn.capture_load %t[%h] : !b
      %y = arith.mulf %x, %c : f32
      attn.yield %y : f32
    } pullback(%dy: f32, %x: f32, %b: i32, %h: i32, %i: i32, %j: i32, %t: !b) {
      %c = attn.capture_load %t[%h] : !b
      %y = arith.mulf %dy, %c : f32
      attn.yield %y : f32
    }
    : (!w, !w, !w, !w, !l, !w, !b) -> (!w, !w, !w)
  return %dq, %dk, %dv : !w, !w, !w
}
