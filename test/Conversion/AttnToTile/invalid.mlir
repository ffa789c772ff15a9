// RUN: attn-opt %s --split-input-file --convert-attn-to-tile --verify-diagnostics

!t = tensor<1x1x?x64xf16>
!lse = tensor<1x1x?xf32>
#plan = #attn.plan<target = cpu, block_q = 8, block_k = 8>

func.func @no_plan(%q: !t, %k: !t) -> !t {
  // expected-error @below {{has no plan: run attn-plan first}}
  %o, %lse = attn.attention %q, %k, %k : (!t, !t, !t) -> (!t, !lse)
  return %o : !t
}

// -----

!t = tensor<1x1x?x64xf16>
!lse = tensor<1x1x?xf32>
#plan = #attn.plan<target = cpu, block_q = 8, block_k = 8>

func.func @variants(%q: !t, %k: !t) -> !t {
  // expected-error @below {{has variants, expected regions only: run attn-expand-variants first}}
  %o, %lse = attn.attention %q, %k, %k {plan = #plan, variants = [#attn.causal]}
    : (!t, !t, !t) -> (!t, !lse)
  return %o : !t
}

// -----

!t = tensor<1x1x?x64xf16>
!lse = tensor<1x1x?xf32>
#plan = #attn.plan<target = cpu, block_q = 8, block_k = 8>

func.func @two(%q: !t, %k: !t) -> !t {
  // expected-note @below {{first attention is here}}
  %o, %lse = attn.attention %q, %k, %k {plan = #plan} : (!t, !t, !t) -> (!t, !lse)
  // expected-error @below {{is the second attention of its function, expected one}}
  %o2, %lse2 = attn.attention %q, %k, %k {plan = #plan} : (!t, !t, !t) -> (!t, !lse)
  return %o : !t
}

// -----

!t = tensor<1x1x?x64xf16>
!lse = tensor<1x1x?xf32>
#plan = #attn.plan<target = cpu, block_q = 8, block_k = 8>

func.func @other_code(%q: !t, %k: !t) -> !t {
  // expected-error @below {{'arith.negf' op cannot be part of a kernel, expected attn.attention, tensor.dim of an argument or scalar code}}
  %n = arith.negf %q : !t
  %o, %lse = attn.attention %q, %k, %k {plan = #plan} : (!t, !t, !t) -> (!t, !lse)
  return %o : !t
}

// -----

!t = tensor<1x1x?x64xf16>
!lse = tensor<1x1x?xf32>
#plan = #attn.plan<target = cpu, block_q = 8, block_k = 8>

func.func @dim_of_result(%q: !t, %k: !t) -> !t {
  %c2 = arith.constant 2 : index
  %o, %lse = attn.attention %q, %k, %k {plan = #plan} : (!t, !t, !t) -> (!t, !lse)
  // expected-error @below {{'tensor.dim' op cannot be part of a kernel}}
  %d = tensor.dim %o, %c2 : !t
  return %o : !t
}

// -----

!t = tensor<1x1x?x64xf16>
!lse = tensor<1x1x?xf32>
#plan = #attn.plan<target = cpu, block_q = 8, block_k = 8>

func.func @dim_of_no_dimension(%q: !t, %k: !t) -> !t {
  %c4 = arith.constant 4 : index
  // expected-error @below {{'tensor.dim' op expected the number of one of 4 dimensions, got 4}}
  %d = tensor.dim %k, %c4 : !t
  %o, %lse = attn.attention %q, %k, %k {plan = #plan} : (!t, !t, !t) -> (!t, !lse)
  return %o : !t
}

// -----

!t = tensor<1x1x?x64xf16>
!lse = tensor<1x1x?xf32>
#plan = #attn.plan<target = cpu, block_q = 8, block_k = 8>

func.func @dim_of_a_value(%q: !t, %k: !t, %n: index) -> !t {
  // expected-error @below {{'tensor.dim' op expected the number of one of 4 dimensions, got a number that is no constant}}
  %d = tensor.dim %k, %n : !t
  %o, %lse = attn.attention %q, %k, %k {plan = #plan} : (!t, !t, !t) -> (!t, !lse)
  return %o : !t
}

// -----

!t = tensor<1x1x?x64xf16>
!lse = tensor<1x1x?xf32>
#plan = #attn.plan<target = cpu, block_q = 8, block_k = 8>

func.func @nested(%q: !t, %k: !t, %c: i1) -> !t {
  // expected-error @below {{'scf.if' op cannot be part of a kernel}}
  %r = scf.if %c -> !t {
    %o, %lse = attn.attention %q, %k, %k {plan = #plan} : (!t, !t, !t) -> (!t, !lse)
    scf.yield %o : !t
  } else {
    scf.yield %q : !t
  }
  return %r : !t
}

// -----

!t = tensor<1x1x?x64xf16>
!lse = tensor<1x1x?xf32>
#plan = #attn.plan<target = cpu, block_q = 8, block_k = 8>

// expected-error @below {{result #1 is not a result of the attention}}
func.func @returns_argument(%q: !t, %k: !t) -> (!t, !t) {
  %o, %lse = attn.attention %q, %k, %k {plan = #plan} : (!t, !t, !t) -> (!t, !lse)
  return %o, %q : !t, !t
}

// -----

!t = tensor<1x1x?x64xf16>
!lse = tensor<1x1x?xf32>
#plan = #attn.plan<target = cpu, block_q = 8, block_k = 8>

// expected-error @below {{argument #2 has type 'memref<4xf32>', expected a ranked tensor or a scalar}}
func.func @argument_type(%q: !t, %k: !t, %x: memref<4xf32>) -> !t {
  %o, %lse = attn.attention %q, %k, %k {plan = #plan} : (!t, !t, !t) -> (!t, !lse)
  return %o : !t
}

// -----

!t = tensor<1x1x?x64xf16>
!lse = tensor<1x1x?xf32>
#plan = #attn.plan<target = cpu, block_q = 8, block_k = 8>

// expected-error @below {{is called, but becomes a kernel with another type}}
func.func @called(%q: !t, %k: !t) -> !t {
  %o, %lse = attn.attention %q, %k, %k {plan = #plan} : (!t, !t, !t) -> (!t, !lse)
  return %o : !t
}
func.func @caller(%q: !t, %k: !t) -> !t {
  %o = call @called(%q, %k) : (!t, !t) -> !t
  return %o : !t
}

// -----

!t = tensor<1x1x?x64xf16>
!lse = tensor<1x1x?xf32>
#plan = #attn.plan<target = cpu, block_q = 8, block_k = 8>

// expected-error @below {{has 2 blocks, expected one: a kernel is one attn.attention with scalar code}}
func.func @blocks(%q: !t, %k: !t) -> !t {
  %o, %lse = attn.attention %q, %k, %k {plan = #plan} : (!t, !t, !t) -> (!t, !lse)
  cf.br ^bb1
^bb1:
  return %o : !t
}

// -----

!t = tensor<1x1x?x64xf16>
!lse = tensor<1x1x?xf32>
func.func @backward_without_plan(%q: !t, %k: !t, %lse: !lse) -> !t {
  // expected-error @below {{'attn.attention_backward' op has no plan: run attn-plan first}}
  %dq, %dk, %dv = attn.attention_backward %q, %k, %k, %q, %lse, %q : (!t, !t, !t, !t, !lse, !t) -> (!t, !t, !t)
  return %dq : !t
}

// -----

!t = tensor<1x1x?x64xf16>
!lse = tensor<1x1x?xf32>
#plan = #attn.plan<target = cpu, block_q = 8, block_k = 8>
func.func @gradient_at_a_pair_and_a_sum(%q: !t, %k: !t, %lse: !lse, %table: tensor<?x?x?xf32>) -> tensor<?x?x?xf32> {
  %dq, %dk, %dv, %d = attn.attention_backward %q, %k, %k, %q, %lse, %q
      captures(%table) {grad_captures = array<i64: 0>, plan = #plan}
    score(%x: f32, %b: i32, %h: i32, %i: i32, %j: i32, %t: tensor<?x?x?xf32>) {
      %n = arith.addi %i, %j : i32
      %s = attn.capture_load %t[%i, %j, %n] : tensor<?x?x?xf32>
      %y = arith.addf %x, %s : f32
      attn.yield %y : f32
    }
    pullback(%dy: f32, %x: f32, %b: i32, %h: i32, %i: i32, %j: i32, %t: tensor<?x?x?xf32>) {
      %n = arith.addi %i, %j : i32
      // expected-error @below {{'attn.capture_add' op adds to capture #0 at indices whose sums have no kernel, wanted query or key beside those of batch and head, or both as the last two, or computed ones and at most one of them}}
      attn.capture_add %dy, %t[%i, %j, %n] : tensor<?x?x?xf32>
      attn.yield %dy : f32
    }
    : (!t, !t, !t, !t, !lse, !t, tensor<?x?x?xf32>) -> (!t, !t, !t, tensor<?x?x?xf32>)
  return %d : tensor<?x?x?xf32>
}

// -----

!t = tensor<1x1x?x64xf16>
!lse = tensor<1x1x?xf32>
#plan = #attn.plan<target = cpu, block_q = 8, block_k = 8>
func.func @gradient_of_pairs_both_ways(%q: !t, %k: !t, %lse: !lse, %table: tensor<?x?xf32>) -> tensor<?x?xf32> {
  %dq, %dk, %dv, %d = attn.attention_backward %q, %k, %k, %q, %lse, %q
      captures(%table) {grad_captures = array<i64: 0>, plan = #plan}
    score(%x: f32, %b: i32, %h: i32, %i: i32, %j: i32, %t: tensor<?x?xf32>) {
      %s = attn.capture_load %t[%i, %j] : tensor<?x?xf32>
      %r = attn.capture_load %t[%j, %i] : tensor<?x?xf32>
      %w = arith.addf %s, %r : f32
      %y = arith.addf %x, %w : f32
      attn.yield %y : f32
    }
    pullback(%dy: f32, %x: f32, %b: i32, %h: i32, %i: i32, %j: i32, %t: tensor<?x?xf32>) {
      // expected-note @below {{here}}
      attn.capture_add %dy, %t[%j, %i] : tensor<?x?xf32>
      // expected-error @below {{'attn.capture_add' op adds to capture #0 at other indices than before, wanted the same where one of them are query and key}}
      attn.capture_add %dy, %t[%i, %j] : tensor<?x?xf32>
      attn.yield %dy : f32
    }
    : (!t, !t, !t, !t, !lse, !t, tensor<?x?xf32>) -> (!t, !t, !t, tensor<?x?xf32>)
  return %d : tensor<?x?xf32>
}

// -----

!t = tensor<1x1x?x64xf16>
!lse = tensor<1x1x?xf32>
#plan = #attn.plan<target = cpu, block_q = 8, block_k = 8>
func.func @gradient_of_pairs_before_heads(%q: !t, %k: !t, %lse: !lse, %table: tensor<?x?x?xf32>) -> tensor<?x?x?xf32> {
  %dq, %dk, %dv, %d = attn.attention_backward %q, %k, %k, %q, %lse, %q
      captures(%table) {grad_captures = array<i64: 0>, plan = #plan}
    score(%x: f32, %b: i32, %h: i32, %i: i32, %j: i32, %t: tensor<?x?x?xf32>) {
      %s = attn.capture_load %t[%i, %j, %h] : tensor<?x?x?xf32>
      %y = arith.addf %x, %s : f32
      attn.yield %y : f32
    }
    pullback(%dy: f32, %x: f32, %b: i32, %h: i32, %i: i32, %j: i32, %t: tensor<?x?x?xf32>) {
      // expected-error @below {{adds to capture #0 at indices whose sums have no kernel}}
      attn.capture_add %dy, %t[%i, %j, %h] : tensor<?x?x?xf32>
      attn.yield %dy : f32
    }
    : (!t, !t, !t, !t, !lse, !t, tensor<?x?x?xf32>) -> (!t, !t, !t, tensor<?x?x?xf32>)
  return %d : tensor<?x?x?xf32>
}

// -----

!t = tensor<1x1x?x64xf16>
!lse = tensor<1x1x?xf32>
#plan = #attn.plan<target = cpu, block_q = 8, block_k = 8>
func.func @backward_left_open(%q: !t, %k: !t, %lse: !lse) -> !t {
  // expected-error @below {{'attn.attention_backward' op leaves open what it recomputes: run attn-recompute first}}
  %dq, %dk, %dv = attn.attention_backward %q, %k, %k, %q, %lse, %q {plan = #plan, recompute = #attn.recompute<scores = twice>} : (!t, !t, !t, !t, !lse, !t) -> (!t, !t, !t)
  return %dq : !t
}

// -----

!t = tensor<1x1x?x256xf16>
!lse = tensor<1x1x?xf32>
#plan = #attn.plan<target = cpu, block_q = 8, block_k = 8>
func.func @backward_of_too_few_programs(%q: !t, %k: !t, %lse: !lse) -> !t {
  // expected-error @below {{'attn.attention_backward' op cannot recompute scores twice: d_key and d_value have 512 columns, more than the 256 of which lanes have registers for both sums}}
  %dq, %dk, %dv = attn.attention_backward %q, %k, %k, %q, %lse, %q {plan = #plan, recompute = #attn.recompute<scores = twice, lse = never>} : (!t, !t, !t, !t, !lse, !t) -> (!t, !t, !t)
  return %dq : !t
}
