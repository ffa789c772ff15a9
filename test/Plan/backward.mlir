// Gradients have plans of their own; one of the forward does not stand for them.
//
// RUN: attn-opt %s --attn-plan=target=cpu | FileCheck %s --check-prefix=CPU
// RUN: attn-opt %s --attn-plan=target=sm_80 | FileCheck %s --check-prefix=SM80
// RUN: attn-opt %s --attn-plan=target=sm_90a | FileCheck %s --check-prefix=SM90
// RUN: attn-opt %s --attn-plan="target=sm_90a fixed" | FileCheck %s --check-prefix=FIXED
// RUN: attn-opt %s --attn-print-plans=target=sm_80 | FileCheck %s --check-prefix=PRINT
// RUN: not attn-opt %s --attn-plan="target=sm_80 plan=#attn.plan<target=sm_80,block_q=128,block_k=128,warps=4>" 2>&1 \
// RUN: | FileCheck %s --check-prefix=LARGE

// CPU-LABEL: @small
// CPU: plan = #attn.plan<target = cpu, block_q = 16, block_k = 32>
// SM80-LABEL: @small
// SM80: plan = #attn.plan<target = sm_80, block_q = 128, block_k = 32, warps = 4, stages = 2>
// SM90-LABEL: @small
// SM90: plan = #attn.plan<target = sm_90a, block_q = 128, block_k = 128, warps = 8, stages = 2, consumer_registers = 240, without = ["warp-make-async"]>
// What is picked for a pipeline that is fixed runs its passes.
// FIXED-LABEL: @small
// FIXED: plan = #attn.plan<target = sm_90a, block_q = 128, block_k = 128, warps = 8, stages = 3, consumer_registers = 240>
// Q and dO, two of K and of V, and two rows of lse and of delta.
// PRINT: block_q = 64, block_k = 64, warps = 4, stages = 2> shared 50176 B
// LARGE: error: 'attn.attention_backward' op plan is not feasible: about {{.*}} registers per thread, sm_80 has 255
!q = tensor<1x1x?x64xf16>
!l = tensor<1x1x?xf32>
func.func @small(%q: !q, %k: !q, %v: !q, %o: !q, %lse: !l, %do: !q) -> (!q, !q, !q) {
  %dq, %dk, %dv = attn.attention_backward %q, %k, %v, %o, %lse, %do
    : (!q, !q, !q, !q, !l, !q) -> (!q, !q, !q)
  return %dq, %dk, %dv : !q, !q, !q
}

// Keys and values in kernels of their own: a lane cannot hold both sums.
// SM80-LABEL: @large
// SM80: plan = #attn.plan<target = sm_80, block_q = 64, block_k = 32, warps = 4>
// SM90-LABEL: @large
// SM90: plan = #attn.plan<target = sm_90a, block_q = 128, block_k = 64, warps = 8>
!t = tensor<1x1x?x256xf16>
func.func @large(%q: !t, %k: !t, %v: !t, %o: !t, %lse: !l, %do: !t) -> (!t, !t, !t) {
  %dq, %dk, %dv = attn.attention_backward %q, %k, %v, %o, %lse, %do
    : (!t, !t, !t, !t, !l, !t) -> (!t, !t, !t)
  return %dq, %dk, %dv : !t, !t, !t
}

// What scores read wants more registers than usual.
// SM90-LABEL: @large_bias
// SM90: plan = #attn.plan<target = sm_90a, block_q = 128, block_k = 64, warps = 8, consumer_registers = 240>
func.func @large_bias(%q: !t, %k: !t, %v: !t, %o: !t, %lse: !l, %do: !t, %bias: tensor<?xf32>) -> (!t, !t, !t) {
  %dq, %dk, %dv = attn.attention_backward %q, %k, %v, %o, %lse, %do captures(%bias)
    score(%x: f32, %b: i32, %h: i32, %i: i32, %j: i32, %c: tensor<?xf32>) {
      %t = attn.capture_load %c[%j] : tensor<?xf32>
      %y = arith.addf %x, %t : f32
      attn.yield %y : f32
    } : (!t, !t, !t, !t, !l, !t, tensor<?xf32>) -> (!t, !t, !t)
  return %dq, %dk, %dv : !t, !t, !t
}

// Values of 128 leave room for a second stage.
// SM90-LABEL: @narrow_values
// SM90: plan = #attn.plan<target = sm_90a, block_q = 128, block_k = 64, warps = 8, stages = 2>
!u = tensor<1x1x?x192xf16>
!w = tensor<1x1x?x128xf16>
func.func @narrow_values(%q: !u, %k: !u, %v: !w, %o: !w, %lse: !l, %do: !w) -> (!u, !u, !w) {
  %dq, %dk, %dv = attn.attention_backward %q, %k, %v, %o, %lse, %do
    : (!u, !u, !w, !w, !l, !w) -> (!u, !u, !w)
  return %dq, %dk, %dv : !u, !u, !w
}

// SM80-LABEL: @in_any_order
// SM80: plan = #attn.plan<target = sm_80, block_q = 128, block_k = 32, warps = 4, stages = 2>
func.func @in_any_order(%q: !q, %k: !q, %v: !q, %o: !q, %lse: !l, %do: !q) -> (!q, !q, !q) {
  %dq, %dk, %dv = attn.attention_backward %q, %k, %v, %o, %lse, %do
    {numerics = #attn.numerics<deterministic = false>}
    : (!q, !q, !q, !q, !l, !q) -> (!q, !q, !q)
  return %dq, %dk, %dv : !q, !q, !q
}

// One program with all products has more of them for each tile that is read;
// what scores and masks read wants its registers.
// SM80-LABEL: @wide_in_any_order
// SM80: plan = #attn.plan<target = sm_80, block_q = 128, block_k = 64, warps = 8, stages = 2>
// SM80: plan = #attn.plan<target = sm_80, block_q = 64, block_k = 64, warps = 4, stages = 2>
// SM80: plan = #attn.plan<target = sm_80, block_q = 64, block_k = 64, warps = 4, stages = 2>
#any = #attn.numerics<deterministic = false>
!x = tensor<1x1x4096x128xf16>
!m = tensor<1x1x4096xf32>
!d = tensor<4096xi32>
func.func @wide_in_any_order(%q: !x, %lse: !m, %doc: !d) -> (!x, !x, !x, !x, !x, !x, !x, !x, !x) {
  %aq, %ak, %av = attn.attention_backward %q, %q, %q, %q, %lse, %q {numerics = #any}
    : (!x, !x, !x, !x, !m, !x) -> (!x, !x, !x)
  %bq, %bk, %bv = attn.attention_backward %q, %q, %q, %q, %lse, %q captures(%doc) {numerics = #any}
    mask(%b: i32, %h: i32, %i: i32, %j: i32, %c: !d) {
      %s = attn.capture_load %c[%i] : !d
      %t = attn.capture_load %c[%j] : !d
      %r = arith.cmpi eq, %s, %t : i32
      attn.yield %r : i1
    } : (!x, !x, !x, !x, !m, !x, !d) -> (!x, !x, !x)
  %cq, %ck, %cv = attn.attention_backward %q, %q, %q, %q, %lse, %q
    : (!x, !x, !x, !x, !m, !x) -> (!x, !x, !x)
  return %aq, %ak, %av, %bq, %bk, %bv, %cq, %ck, %cv : !x, !x, !x, !x, !x, !x, !x, !x, !x
}
