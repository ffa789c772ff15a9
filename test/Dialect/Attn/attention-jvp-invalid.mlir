// RUN: attn-opt %s --split-input-file --verify-diagnostics

!q = tensor<2x4x16x64xf16>
!l = tensor<2x4x16xf32>
func.func @attention_jvp_c1_scale(%q: !q) {
  // expected-error @+1 {{'attn.attention_jvp' op wants a scale that is finite in f32, got 1.000000e+300 : f64}}
  %r:4 = attn.attention_jvp %q, %q, %q, %q, %q, %q {scale = 1.0e300} : (!q, !q, !q, !q, !q, !q) -> (!q, !l, !q, !l)
  return
}

// -----

!q = tensor<2x4x16x64xf16>
!l = tensor<2x4x16xf32>
func.func @attention_jvp_c1_dropout(%q: !q) {
  // expected-error @+1 {{'attn.attention_jvp' op wants dropout_p and a dropout key together, got no key}}
  %r:4 = attn.attention_jvp %q, %q, %q, %q, %q, %q {dropout_p = 0.5} : (!q, !q, !q, !q, !q, !q) -> (!q, !l, !q, !l)
  return
}

// -----

!q = tensor<2x4x16x64xf16>
!l = tensor<2x4x16xf32>
func.func @attention_jvp_c2_length(%q: !q, %t: tensor<2x4x32x64xf16>) {
  // expected-error @+1 {{'attn.attention_jvp' op wants one key length, got 16 in key and 32 in t_key}}
  %r:4 = attn.attention_jvp %q, %q, %q, %q, %t, %q : (!q, !q, !q, !q, tensor<2x4x32x64xf16>, !q) -> (!q, !l, !q, !l)
  return
}

// -----

!q = tensor<2x4x16x64xf16>
!l = tensor<2x4x16xf32>
func.func @attention_jvp_c2_element(%q: !q, %t: tensor<2x4x16x64xf32>) {
  // expected-error @+1 {{'attn.attention_jvp' op wants one element type, got 'f16' in query and 'f32' in t_value}}
  %r:4 = attn.attention_jvp %q, %q, %q, %q, %q, %t : (!q, !q, !q, !q, !q, tensor<2x4x16x64xf32>) -> (!q, !l, !q, !l)
  return
}

// -----

!q = tensor<2x4x16x64xf16>
!l = tensor<2x4x16xf32>
func.func @attention_jvp_c2_result(%q: !q) {
  // expected-error @+1 {{'attn.attention_jvp' op wants t_lse of f32, got 'f16'}}
  %r:4 = attn.attention_jvp %q, %q, %q, %q, %q, %q : (!q, !q, !q, !q, !q, !q) -> (!q, !l, !q, tensor<2x4x16xf16>)
  return
}

// -----

!q = tensor<2x4x16x64xf16>
!l = tensor<2x4x16xf32>
func.func @attention_jvp_results(%q: !q) {
  // expected-error @+1 {{wanted four result types, output, lse, t_output and t_lse, got 2}}
  %r:2 = attn.attention_jvp %q, %q, %q, %q, %q, %q : (!q, !q, !q, !q, !q, !q) -> (!q, !l)
  return
}

// -----

!q = tensor<2x4x16x64xf16>
!l = tensor<2x4x16xf32>
func.func @attention_jvp_c3_arguments(%q: !q) {
  // expected-error @+1 {{'attn.attention_jvp' op wants a pushforward region over ('f32', 'f32', 'i32', 'i32', 'i32', 'i32'), got ('f32', 'f32')}}
  %r:4 = attn.attention_jvp %q, %q, %q, %q, %q, %q
    pushforward(%tx: f32, %x: f32) {
      attn.yield %tx : f32
    } : (!q, !q, !q, !q, !q, !q) -> (!q, !l, !q, !l)
  return
}

// -----

!q = tensor<2x4x16x64xf16>
!l = tensor<2x4x16xf32>
func.func @attention_jvp_c3_yield(%q: !q) {
  %r:4 = attn.attention_jvp %q, %q, %q, %q, %q, %q
    pushforward(%tx: f32, %x: f32, %b: i32, %h: i32, %i: i32, %j: i32) {
      // expected-error @+1 {{'attn.yield' op of a pushforward region wants 'f32', got 'i32'}}
      attn.yield %b : i32
    } : (!q, !q, !q, !q, !q, !q) -> (!q, !l, !q, !l)
  return
}

// -----

!q = tensor<2x4x16x64xf16>
!l = tensor<2x4x16xf32>
func.func @attention_jvp_c3_add(%q: !q, %c: f32) {
  %r:4 = attn.attention_jvp %q, %q, %q, %q, %q, %q captures(%c)
    pushforward(%tx: f32, %x: f32, %b: i32, %h: i32, %i: i32, %j: i32, %f: f32) {
      // expected-error @+1 {{'attn.capture_add' op expects parent op 'attn.attention_backward'}}
      attn.capture_add %tx, %f[] : f32
      attn.yield %tx : f32
    } : (!q, !q, !q, !q, !q, !q, f32) -> (!q, !l, !q, !l)
  return
}

// -----

!q = tensor<2x4x16x64xf16>
!l = tensor<2x4x16xf32>
func.func @attention_jvp_c4_variants(%q: !q) {
  // expected-error @+1 {{variants}}
  %r:4 = attn.attention_jvp %q, %q, %q, %q, %q, %q {variants = [#attn.causal]} : (!q, !q, !q, !q, !q, !q) -> (!q, !l, !q, !l)
  return
}
