// RUN: attn-opt %s --split-input-file --verify-diagnostics

func.func @attention_backward_c1_encoding(%q: tensor<2x4x16x64xf16>, %k: tensor<2x2x32x64xf16, "blocked">, %v: tensor<2x2x32x64xf16>, %o: tensor<2x4x16x64xf16>, %lse: tensor<2x4x16xf32>, %do: tensor<2x4x16x64xf16>) {
  // expected-error @+1 {{'attn.attention_backward' op wants key without an encoding, got 'tensor<2x2x32x64xf16, "blocked">'}}
  %r0, %r1, %r2 = attn.attention_backward %q, %k, %v, %o, %lse, %do
    : (tensor<2x4x16x64xf16>, tensor<2x2x32x64xf16, "blocked">, tensor<2x2x32x64xf16>, tensor<2x4x16x64xf16>, tensor<2x4x16xf32>, tensor<2x4x16x64xf16>)
      -> (tensor<2x4x16x64xf16>, tensor<2x2x32x64xf16>, tensor<2x2x32x64xf16>)
  return
}

// -----

func.func @attention_backward_c1_scale(%q: tensor<2x4x16x64xf16>, %k: tensor<2x2x32x64xf16>, %v: tensor<2x2x32x64xf16>, %o: tensor<2x4x16x64xf16>, %lse: tensor<2x4x16xf32>, %do: tensor<2x4x16x64xf16>) {
  // expected-error @+1 {{'attn.attention_backward' op wants a scale that is finite in f32, got 1.000000e+300 : f64}}
  %r0, %r1, %r2 = attn.attention_backward %q, %k, %v, %o, %lse, %do {scale = 1.0e300}
    : (tensor<2x4x16x64xf16>, tensor<2x2x32x64xf16>, tensor<2x2x32x64xf16>, tensor<2x4x16x64xf16>, tensor<2x4x16xf32>, tensor<2x4x16x64xf16>)
      -> (tensor<2x4x16x64xf16>, tensor<2x2x32x64xf16>, tensor<2x2x32x64xf16>)
  return
}

// -----

func.func @attention_backward_c1_capture(%q: tensor<2x4x16x64xf16>, %k: tensor<2x2x32x64xf16>, %v: tensor<2x2x32x64xf16>, %o: tensor<2x4x16x64xf16>, %lse: tensor<2x4x16xf32>, %do: tensor<2x4x16x64xf16>, %c: f64) {
  // expected-error @+1 {{'attn.attention_backward' op wants capture #0 to be i1, i8, i16, i32, i64, f16, bf16, f32 or a ranked tensor of these, got 'f64'}}
  %r0, %r1, %r2 = attn.attention_backward %q, %k, %v, %o, %lse, %do captures(%c)
    : (tensor<2x4x16x64xf16>, tensor<2x2x32x64xf16>, tensor<2x2x32x64xf16>, tensor<2x4x16x64xf16>, tensor<2x4x16xf32>, tensor<2x4x16x64xf16>, f64)
      -> (tensor<2x4x16x64xf16>, tensor<2x2x32x64xf16>, tensor<2x2x32x64xf16>)
  return
}

// -----

func.func @attention_backward_c1_mask(%q: tensor<2x4x16x64xf16>, %k: tensor<2x2x32x64xf16>, %v: tensor<2x2x32x64xf16>, %o: tensor<2x4x16x64xf16>, %lse: tensor<2x4x16xf32>, %do: tensor<2x4x16x64xf16>) {
  // expected-error @+1 {{'attn.attention_backward' op wants a mask region over ('i32', 'i32', 'i32', 'i32'), got ('i32')}}
  %r0, %r1, %r2 = attn.attention_backward %q, %k, %v, %o, %lse, %do
    mask(%b: i32) {
      %m = arith.constant true
      attn.yield %m : i1
    }
    : (tensor<2x4x16x64xf16>, tensor<2x2x32x64xf16>, tensor<2x2x32x64xf16>, tensor<2x4x16x64xf16>, tensor<2x4x16xf32>, tensor<2x4x16x64xf16>)
      -> (tensor<2x4x16x64xf16>, tensor<2x2x32x64xf16>, tensor<2x2x32x64xf16>)
  return
}

// -----

func.func @attention_backward_c2_rank(%q: tensor<2x4x16x64xf16>, %k: tensor<2x2x32x64xf16>, %v: tensor<2x2x32x64xf16>, %o: tensor<2x4x16x64xf16>, %lse: tensor<2x4x16xf32>, %do: tensor<4x16x64xf16>) {
  // expected-error @+1 {{'attn.attention_backward' op wants d_output of rank 4, got 'tensor<4x16x64xf16>'}}
  %r0, %r1, %r2 = attn.attention_backward %q, %k, %v, %o, %lse, %do
    : (tensor<2x4x16x64xf16>, tensor<2x2x32x64xf16>, tensor<2x2x32x64xf16>, tensor<2x4x16x64xf16>, tensor<2x4x16xf32>, tensor<4x16x64xf16>)
      -> (tensor<2x4x16x64xf16>, tensor<2x2x32x64xf16>, tensor<2x2x32x64xf16>)
  return
}

// -----

func.func @attention_backward_c2_element(%q: tensor<2x4x16x64xf16>, %k: tensor<2x2x32x64xf16>, %v: tensor<2x2x32x64xf16>, %o: tensor<2x4x16x64xf16>, %lse: tensor<2x4x16xf32>, %do: tensor<2x4x16x64xf16>) {
  // expected-error @+1 {{'attn.attention_backward' op wants one element type, got 'f16' in query and 'f32' in d_key}}
  %r0, %r1, %r2 = attn.attention_backward %q, %k, %v, %o, %lse, %do
    : (tensor<2x4x16x64xf16>, tensor<2x2x32x64xf16>, tensor<2x2x32x64xf16>, tensor<2x4x16x64xf16>, tensor<2x4x16xf32>, tensor<2x4x16x64xf16>)
      -> (tensor<2x4x16x64xf16>, tensor<2x2x32x64xf32>, tensor<2x2x32x64xf16>)
  return
}

// -----

func.func @attention_backward_c2_lse(%q: tensor<2x4x16x64xf16>, %k: tensor<2x2x32x64xf16>, %v: tensor<2x2x32x64xf16>, %o: tensor<2x4x16x64xf16>, %lse: tensor<2x4x16xf16>, %do: tensor<2x4x16x64xf16>) {
  // expected-error @+1 {{'attn.attention_backward' op wants lse of f32, got 'f16'}}
  %r0, %r1, %r2 = attn.attention_backward %q, %k, %v, %o, %lse, %do
    : (tensor<2x4x16x64xf16>, tensor<2x2x32x64xf16>, tensor<2x2x32x64xf16>, tensor<2x4x16x64xf16>, tensor<2x4x16xf16>, tensor<2x4x16x64xf16>)
      -> (tensor<2x4x16x64xf16>, tensor<2x2x32x64xf16>, tensor<2x2x32x64xf16>)
  return
}

// -----

func.func @attention_backward_c2_d_lse(%q: tensor<2x4x16x64xf16>, %k: tensor<2x2x32x64xf16>, %v: tensor<2x2x32x64xf16>, %o: tensor<2x4x16x64xf16>, %lse: tensor<2x4x16xf32>, %do: tensor<2x4x16x64xf16>, %dl: tensor<2x4xf32>) {
  // expected-error @+1 {{'attn.attention_backward' op wants d_lse of rank 3, got 'tensor<2x4xf32>'}}
  %r0, %r1, %r2 = attn.attention_backward %q, %k, %v, %o, %lse, %do d_lse(%dl)
    : (tensor<2x4x16x64xf16>, tensor<2x2x32x64xf16>, tensor<2x2x32x64xf16>, tensor<2x4x16x64xf16>, tensor<2x4x16xf32>, tensor<2x4x16x64xf16>, tensor<2x4xf32>)
      -> (tensor<2x4x16x64xf16>, tensor<2x2x32x64xf16>, tensor<2x2x32x64xf16>)
  return
}

// -----

func.func @attention_backward_c2_sizes(%q: tensor<2x4x16x64xf16>, %k: tensor<2x2x32x64xf16>, %v: tensor<2x2x32x64xf16>, %o: tensor<2x4x16x64xf16>, %lse: tensor<2x4x16xf32>, %do: tensor<2x4x16x64xf16>) {
  // expected-error @+1 {{'attn.attention_backward' op wants one query length, got 16 in query and 17 in d_query}}
  %r0, %r1, %r2 = attn.attention_backward %q, %k, %v, %o, %lse, %do
    : (tensor<2x4x16x64xf16>, tensor<2x2x32x64xf16>, tensor<2x2x32x64xf16>, tensor<2x4x16x64xf16>, tensor<2x4x16xf32>, tensor<2x4x16x64xf16>)
      -> (tensor<2x4x17x64xf16>, tensor<2x2x32x64xf16>, tensor<2x2x32x64xf16>)
  return
}

// -----

func.func @attention_backward_c2_dims(%q: tensor<2x4x16x64xf16>, %k: tensor<2x2x32x64xf16>, %v: tensor<2x2x32x64xf16>, %o: tensor<2x4x16x64xf16>, %lse: tensor<2x4x16xf32>, %do: tensor<2x4x16x32xf16>) {
  // expected-error @+1 {{'attn.attention_backward' op wants one head dimension, got 64 in value and 32 in d_output}}
  %r0, %r1, %r2 = attn.attention_backward %q, %k, %v, %o, %lse, %do
    : (tensor<2x4x16x64xf16>, tensor<2x2x32x64xf16>, tensor<2x2x32x64xf16>, tensor<2x4x16x64xf16>, tensor<2x4x16xf32>, tensor<2x4x16x32xf16>)
      -> (tensor<2x4x16x64xf16>, tensor<2x2x32x64xf16>, tensor<2x2x32x64xf16>)
  return
}

// -----

func.func @attention_backward_c3_type(%q: tensor<2x4x16x64xf16>, %k: tensor<2x2x32x64xf16>, %v: tensor<2x2x32x64xf16>, %o: tensor<2x4x16x64xf16>, %lse: tensor<2x4x16xf32>, %do: tensor<2x4x16x64xf16>, %s: tensor<4xf32>) {
  // expected-error @+1 {{'attn.attention_backward' op wants d_sink of the type of sink, 'tensor<4xf32>', got 'tensor<4xf16>'}}
  %r0, %r1, %r2, %r3 = attn.attention_backward %q, %k, %v, %o, %lse, %do sink(%s)
    : (tensor<2x4x16x64xf16>, tensor<2x2x32x64xf16>, tensor<2x2x32x64xf16>, tensor<2x4x16x64xf16>, tensor<2x4x16xf32>, tensor<2x4x16x64xf16>, tensor<4xf32>)
      -> (tensor<2x4x16x64xf16>, tensor<2x2x32x64xf16>, tensor<2x2x32x64xf16>, tensor<4xf16>)
  return
}

// -----

func.func @attention_backward_c4_number(%q: tensor<2x4x16x64xf16>, %k: tensor<2x2x32x64xf16>, %v: tensor<2x2x32x64xf16>, %o: tensor<2x4x16x64xf16>, %lse: tensor<2x4x16xf32>, %do: tensor<2x4x16x64xf16>, %c: f32) {
  // expected-error @+1 {{'attn.attention_backward' op wants grad_captures below the number of captures, 1, got 1}}
  %r0, %r1, %r2, %r3 = attn.attention_backward %q, %k, %v, %o, %lse, %do captures(%c) {grad_captures = array<i64: 1>}
    : (tensor<2x4x16x64xf16>, tensor<2x2x32x64xf16>, tensor<2x2x32x64xf16>, tensor<2x4x16x64xf16>, tensor<2x4x16xf32>, tensor<2x4x16x64xf16>, f32)
      -> (tensor<2x4x16x64xf16>, tensor<2x2x32x64xf16>, tensor<2x2x32x64xf16>, tensor<f32>)
  return
}

// -----

func.func @attention_backward_c4_order(%q: tensor<2x4x16x64xf16>, %k: tensor<2x2x32x64xf16>, %v: tensor<2x2x32x64xf16>, %o: tensor<2x4x16x64xf16>, %lse: tensor<2x4x16xf32>, %do: tensor<2x4x16x64xf16>, %c: f32) {
  // expected-error @+1 {{'attn.attention_backward' op wants grad_captures in rising order, got 0 after 1}}
  %r0, %r1, %r2, %r3, %r4 = attn.attention_backward %q, %k, %v, %o, %lse, %do captures(%c, %c) {grad_captures = array<i64: 1, 0>}
    : (tensor<2x4x16x64xf16>, tensor<2x2x32x64xf16>, tensor<2x2x32x64xf16>, tensor<2x4x16x64xf16>, tensor<2x4x16xf32>, tensor<2x4x16x64xf16>, f32, f32)
      -> (tensor<2x4x16x64xf16>, tensor<2x2x32x64xf16>, tensor<2x2x32x64xf16>, tensor<f32>, tensor<f32>)
  return
}

// -----

func.func @attention_backward_c4_integer(%q: tensor<2x4x16x64xf16>, %k: tensor<2x2x32x64xf16>, %v: tensor<2x2x32x64xf16>, %o: tensor<2x4x16x64xf16>, %lse: tensor<2x4x16xf32>, %do: tensor<2x4x16x64xf16>, %c: tensor<4xi32>) {
  // expected-error @+1 {{'attn.attention_backward' op wants no gradient of capture #0, which is of integers: 'tensor<4xi32>'}}
  %r0, %r1, %r2, %r3 = attn.attention_backward %q, %k, %v, %o, %lse, %do captures(%c) {grad_captures = array<i64: 0>}
    : (tensor<2x4x16x64xf16>, tensor<2x2x32x64xf16>, tensor<2x2x32x64xf16>, tensor<2x4x16x64xf16>, tensor<2x4x16xf32>, tensor<2x4x16x64xf16>, tensor<4xi32>)
      -> (tensor<2x4x16x64xf16>, tensor<2x2x32x64xf16>, tensor<2x2x32x64xf16>, tensor<4xi32>)
  return
}

// -----

func.func @attention_backward_c4_count(%q: tensor<2x4x16x64xf16>, %k: tensor<2x2x32x64xf16>, %v: tensor<2x2x32x64xf16>, %o: tensor<2x4x16x64xf16>, %lse: tensor<2x4x16xf32>, %do: tensor<2x4x16x64xf16>, %c: f32) {
  // expected-error @+1 {{'attn.attention_backward' op wants one gradient for each of the 1 captures of grad_captures, got 0}}
  %r0, %r1, %r2 = attn.attention_backward %q, %k, %v, %o, %lse, %do captures(%c) {grad_captures = array<i64: 0>}
    : (tensor<2x4x16x64xf16>, tensor<2x2x32x64xf16>, tensor<2x2x32x64xf16>, tensor<2x4x16x64xf16>, tensor<2x4x16xf32>, tensor<2x4x16x64xf16>, f32)
      -> (tensor<2x4x16x64xf16>, tensor<2x2x32x64xf16>, tensor<2x2x32x64xf16>)
  return
}

// -----

func.func @attention_backward_c4_type(%q: tensor<2x4x16x64xf16>, %k: tensor<2x2x32x64xf16>, %v: tensor<2x2x32x64xf16>, %o: tensor<2x4x16x64xf16>, %lse: tensor<2x4x16xf32>, %do: tensor<2x4x16x64xf16>, %c: f32) {
  // expected-error @+1 {{'attn.attention_backward' op wants a gradient of capture #0 of type 'tensor<f32>', got 'tensor<1xf32>'}}
  %r0, %r1, %r2, %r3 = attn.attention_backward %q, %k, %v, %o, %lse, %do captures(%c) {grad_captures = array<i64: 0>}
    : (tensor<2x4x16x64xf16>, tensor<2x2x32x64xf16>, tensor<2x2x32x64xf16>, tensor<2x4x16x64xf16>, tensor<2x4x16xf32>, tensor<2x4x16x64xf16>, f32)
      -> (tensor<2x4x16x64xf16>, tensor<2x2x32x64xf16>, tensor<2x2x32x64xf16>, tensor<1xf32>)
  return
}

// -----

func.func @attention_backward_c5_arguments(%q: tensor<2x4x16x64xf16>, %k: tensor<2x2x32x64xf16>, %v: tensor<2x2x32x64xf16>, %o: tensor<2x4x16x64xf16>, %lse: tensor<2x4x16xf32>, %do: tensor<2x4x16x64xf16>) {
  // expected-error @+1 {{'attn.attention_backward' op wants a pullback region over ('f32', 'f32', 'i32', 'i32', 'i32', 'i32'), got ('f32')}}
  %r0, %r1, %r2 = attn.attention_backward %q, %k, %v, %o, %lse, %do
    pullback(%dy: f32) {
      attn.yield %dy : f32
    }
    : (tensor<2x4x16x64xf16>, tensor<2x2x32x64xf16>, tensor<2x2x32x64xf16>, tensor<2x4x16x64xf16>, tensor<2x4x16xf32>, tensor<2x4x16x64xf16>)
      -> (tensor<2x4x16x64xf16>, tensor<2x2x32x64xf16>, tensor<2x2x32x64xf16>)
  return
}

// -----

func.func @attention_backward_c5_result(%q: tensor<2x4x16x64xf16>, %k: tensor<2x2x32x64xf16>, %v: tensor<2x2x32x64xf16>, %o: tensor<2x4x16x64xf16>, %lse: tensor<2x4x16xf32>, %do: tensor<2x4x16x64xf16>) {
  %r0, %r1, %r2 = attn.attention_backward %q, %k, %v, %o, %lse, %do
    pullback(%dy: f32, %x: f32, %b: i32, %h: i32, %i: i32, %j: i32) {
      // expected-error @+1 {{'attn.yield' op of a pullback region wants 'f32', got 'i32'}}
      attn.yield %i : i32
    }
    : (tensor<2x4x16x64xf16>, tensor<2x2x32x64xf16>, tensor<2x2x32x64xf16>, tensor<2x4x16x64xf16>, tensor<2x4x16xf32>, tensor<2x4x16x64xf16>)
      -> (tensor<2x4x16x64xf16>, tensor<2x2x32x64xf16>, tensor<2x2x32x64xf16>)
  return
}

// -----

func.func @attention_backward_c5_body(%q: tensor<2x4x16x64xf16>, %k: tensor<2x2x32x64xf16>, %v: tensor<2x2x32x64xf16>, %o: tensor<2x4x16x64xf16>, %lse: tensor<2x4x16xf32>, %do: tensor<2x4x16x64xf16>) {
  %r0, %r1, %r2 = attn.attention_backward %q, %k, %v, %o, %lse, %do
    pullback(%dy: f32, %x: f32, %b: i32, %h: i32, %i: i32, %j: i32) {
      // expected-error @+1 {{'arith.remf' op in a pullback region has no code on a GPU}}
      %r = arith.remf %dy, %x : f32
      attn.yield %r : f32
    }
    : (tensor<2x4x16x64xf16>, tensor<2x2x32x64xf16>, tensor<2x2x32x64xf16>, tensor<2x4x16x64xf16>, tensor<2x4x16xf32>, tensor<2x4x16x64xf16>)
      -> (tensor<2x4x16x64xf16>, tensor<2x2x32x64xf16>, tensor<2x2x32x64xf16>)
  return
}

// -----

func.func @attention_backward_c6_region(%q: tensor<2x4x16x64xf16>, %k: tensor<2x2x32x64xf16>, %v: tensor<2x2x32x64xf16>, %o: tensor<2x4x16x64xf16>, %lse: tensor<2x4x16xf32>, %do: tensor<2x4x16x64xf16>, %c: f32) {
  %r0, %r1, %r2, %r3 = attn.attention_backward %q, %k, %v, %o, %lse, %do captures(%c) {grad_captures = array<i64: 0>}
    score(%x: f32, %b: i32, %h: i32, %i: i32, %j: i32, %e: f32) {
      // expected-error @+1 {{'attn.capture_add' op stands in a score region, wanted a pullback}}
      attn.capture_add %x, %e[] : f32
      attn.yield %x : f32
    }
    : (tensor<2x4x16x64xf16>, tensor<2x2x32x64xf16>, tensor<2x2x32x64xf16>, tensor<2x4x16x64xf16>, tensor<2x4x16xf32>, tensor<2x4x16x64xf16>, f32)
      -> (tensor<2x4x16x64xf16>, tensor<2x2x32x64xf16>, tensor<2x2x32x64xf16>, tensor<f32>)
  return
}

// -----

func.func @attention_backward_c6_no_capture(%q: tensor<2x4x16x64xf16>, %k: tensor<2x2x32x64xf16>, %v: tensor<2x2x32x64xf16>, %o: tensor<2x4x16x64xf16>, %lse: tensor<2x4x16xf32>, %do: tensor<2x4x16x64xf16>) {
  %r0, %r1, %r2 = attn.attention_backward %q, %k, %v, %o, %lse, %do
    pullback(%dy: f32, %x: f32, %b: i32, %h: i32, %i: i32, %j: i32) {
      // expected-error @+1 {{'attn.capture_add' op adds to what is no capture, wanted one that grad_captures lists}}
      attn.capture_add %dy, %x[] : f32
      attn.yield %dy : f32
    }
    : (tensor<2x4x16x64xf16>, tensor<2x2x32x64xf16>, tensor<2x2x32x64xf16>, tensor<2x4x16x64xf16>, tensor<2x4x16xf32>, tensor<2x4x16x64xf16>)
      -> (tensor<2x4x16x64xf16>, tensor<2x2x32x64xf16>, tensor<2x2x32x64xf16>)
  return
}

// -----

func.func @attention_backward_c6_not_listed(%q: tensor<2x4x16x64xf16>, %k: tensor<2x2x32x64xf16>, %v: tensor<2x2x32x64xf16>, %o: tensor<2x4x16x64xf16>, %lse: tensor<2x4x16xf32>, %do: tensor<2x4x16x64xf16>, %c: f32) {
  %r0, %r1, %r2 = attn.attention_backward %q, %k, %v, %o, %lse, %do captures(%c)
    pullback(%dy: f32, %x: f32, %b: i32, %h: i32, %i: i32, %j: i32, %e: f32) {
      // expected-error @+1 {{'attn.capture_add' op adds to capture #0, wanted one that grad_captures lists}}
      attn.capture_add %dy, %e[] : f32
      attn.yield %dy : f32
    }
    : (tensor<2x4x16x64xf16>, tensor<2x2x32x64xf16>, tensor<2x2x32x64xf16>, tensor<2x4x16x64xf16>, tensor<2x4x16xf32>, tensor<2x4x16x64xf16>, f32)
      -> (tensor<2x4x16x64xf16>, tensor<2x2x32x64xf16>, tensor<2x2x32x64xf16>)
  return
}

// -----

func.func @attention_backward_c7_variants(%q: tensor<2x4x16x64xf16>, %k: tensor<2x2x32x64xf16>, %v: tensor<2x2x32x64xf16>, %o: tensor<2x4x16x64xf16>, %lse: tensor<2x4x16xf32>, %do: tensor<2x4x16x64xf16>) {
  // expected-error @+1 {{'attn.attention_backward' op has no attribute 'variants', expected among dropout_p, grad_captures, numerics, plan, recompute, scale, sorted_captures}}
  %r0, %r1, %r2 = attn.attention_backward %q, %k, %v, %o, %lse, %do {variants = [#attn.causal]}
    : (tensor<2x4x16x64xf16>, tensor<2x2x32x64xf16>, tensor<2x2x32x64xf16>, tensor<2x4x16x64xf16>, tensor<2x4x16xf32>, tensor<2x4x16x64xf16>)
      -> (tensor<2x4x16x64xf16>, tensor<2x2x32x64xf16>, tensor<2x2x32x64xf16>)
  return
}

// -----

func.func @attention_backward_capture_add_c1(%q: tensor<2x4x16x64xf16>, %k: tensor<2x2x32x64xf16>, %v: tensor<2x2x32x64xf16>, %o: tensor<2x4x16x64xf16>, %lse: tensor<2x4x16xf32>, %do: tensor<2x4x16x64xf16>, %c: tensor<4xf32>) {
  %r0, %r1, %r2, %r3 = attn.attention_backward %q, %k, %v, %o, %lse, %do captures(%c) {grad_captures = array<i64: 0>}
    pullback(%dy: f32, %x: f32, %b: i32, %h: i32, %i: i32, %j: i32, %e: tensor<4xf32>) {
      // expected-error @+1 {{'attn.capture_add' op adds to 'tensor<4xf32>' and wants 1 indices, got 0}}
      attn.capture_add %dy, %e[] : tensor<4xf32>
      attn.yield %dy : f32
    }
    : (tensor<2x4x16x64xf16>, tensor<2x2x32x64xf16>, tensor<2x2x32x64xf16>, tensor<2x4x16x64xf16>, tensor<2x4x16xf32>, tensor<2x4x16x64xf16>, tensor<4xf32>)
      -> (tensor<2x4x16x64xf16>, tensor<2x2x32x64xf16>, tensor<2x2x32x64xf16>, tensor<4xf32>)
  return
}

// -----

func.func @capture_add_parent(%a: f32) {
  // expected-error @+1 {{'attn.capture_add' op expects parent op 'attn.attention_backward'}}
  attn.capture_add %a, %a[] : f32
  return
}

// -----

func.func @syntax_results(%q: tensor<2x4x16x64xf16>, %l: tensor<2x4x16xf32>) {
  %r:2 = attn.attention_backward %q, %q, %q, %q, %l, %q
    // expected-error @+1 {{wanted result types of d_query, d_key, d_value and d_captures, got 2}}
    : (tensor<2x4x16x64xf16>, tensor<2x4x16x64xf16>, tensor<2x4x16x64xf16>, tensor<2x4x16x64xf16>, tensor<2x4x16xf32>, tensor<2x4x16x64xf16>) -> (tensor<2x4x16x64xf16>, tensor<2x4x16x64xf16>)
  return
}

// -----

func.func @syntax_d_lse(%q: tensor<2x4x16x64xf16>, %l: tensor<2x4x16xf32>) {
  // expected-error @+1 {{wants one d_lse, got 2}}
  %r:3 = attn.attention_backward %q, %q, %q, %q, %l, %q d_lse(%l, %l)
    : (tensor<2x4x16x64xf16>, tensor<2x4x16x64xf16>, tensor<2x4x16x64xf16>, tensor<2x4x16x64xf16>, tensor<2x4x16xf32>, tensor<2x4x16x64xf16>, tensor<2x4x16xf32>, tensor<2x4x16xf32>) -> (tensor<2x4x16x64xf16>, tensor<2x4x16x64xf16>, tensor<2x4x16x64xf16>)
  return
}

// -----

!t = tensor<2x4x16x64xf16>
!l = tensor<2x4x16xf32>
func.func @backward_c20_order(%q: !t, %l: !l) {
  // expected-error @+1 {{'attn.attention_backward' op wants numerics with deterministic = false where scores are recomputed once, got deterministic ones}}
  %r:3 = attn.attention_backward %q, %q, %q, %q, %l, %q {recompute = #attn.recompute<scores = once>}
    : (!t, !t, !t, !t, !l, !t) -> (!t, !t, !t)
  return
}

// -----

!t = tensor<2x4x16x64xf32>
!l = tensor<2x4x16xf32>
func.func @backward_c20_ieee(%q: !t, %l: !l) {
  // expected-error @+1 {{'attn.attention_backward' op wants f32_products = tf32x3 where scores are recomputed once, got ieee}}
  %r:3 = attn.attention_backward %q, %q, %q, %q, %l, %q {numerics = #attn.numerics<deterministic = false, f32_products = ieee>, recompute = #attn.recompute<scores = once>}
    : (!t, !t, !t, !t, !l, !t) -> (!t, !t, !t)
  return
}
