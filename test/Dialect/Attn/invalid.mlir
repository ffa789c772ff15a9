// RUN: attn-opt %s --split-input-file --verify-diagnostics

func.func @attention_c1_rank(%q: tensor<4x16x64xf16>, %k: tensor<2x2x32x64xf16>, %v: tensor<2x2x32x64xf16>) {
  // expected-error @+1 {{'attn.attention' op wants query of rank 4, got 'tensor<4x16x64xf16>'}}
  %o, %lse = attn.attention %q, %k, %v
    : (tensor<4x16x64xf16>, tensor<2x2x32x64xf16>, tensor<2x2x32x64xf16>)
      -> (tensor<2x4x16x64xf16>, tensor<2x4x16xf32>)
  return
}

// -----

func.func @attention_c1_lse_rank(%q: tensor<2x4x16x64xf16>, %k: tensor<2x2x32x64xf16>, %v: tensor<2x2x32x64xf16>) {
  // expected-error @+1 {{'attn.attention' op wants lse of rank 3, got 'tensor<2x4x16x1xf32>'}}
  %o, %lse = attn.attention %q, %k, %v
    : (tensor<2x4x16x64xf16>, tensor<2x2x32x64xf16>, tensor<2x2x32x64xf16>)
      -> (tensor<2x4x16x64xf16>, tensor<2x4x16x1xf32>)
  return
}

// -----

func.func @attention_c1_encoding(%q: tensor<2x4x16x64xf16>, %k: tensor<2x2x32x64xf16, "blocked">, %v: tensor<2x2x32x64xf16>) {
  // expected-error @+1 {{'attn.attention' op wants key without an encoding, got 'tensor<2x2x32x64xf16, "blocked">'}}
  %o, %lse = attn.attention %q, %k, %v
    : (tensor<2x4x16x64xf16>, tensor<2x2x32x64xf16, "blocked">, tensor<2x2x32x64xf16>)
      -> (tensor<2x4x16x64xf16>, tensor<2x4x16xf32>)
  return
}

// -----

func.func @attention_c2_f64(%q: tensor<2x4x16x64xf64>, %k: tensor<2x2x32x64xf16>, %v: tensor<2x2x32x64xf16>) {
  // expected-error @+1 {{'attn.attention' op wants query of f16, bf16 or f32, got 'f64'}}
  %o, %lse = attn.attention %q, %k, %v
    : (tensor<2x4x16x64xf64>, tensor<2x2x32x64xf16>, tensor<2x2x32x64xf16>)
      -> (tensor<2x4x16x64xf16>, tensor<2x4x16xf32>)
  return
}

// -----

func.func @attention_c2_integer(%q: tensor<2x4x16x64xf16>, %k: tensor<2x2x32x64xf16>, %v: tensor<2x2x32x64xi8>) {
  // expected-error @+1 {{'attn.attention' op wants value of f16, bf16 or f32, got 'i8'}}
  %o, %lse = attn.attention %q, %k, %v
    : (tensor<2x4x16x64xf16>, tensor<2x2x32x64xf16>, tensor<2x2x32x64xi8>)
      -> (tensor<2x4x16x64xf16>, tensor<2x4x16xf32>)
  return
}

// -----

func.func @attention_c2_mixed(%q: tensor<2x4x16x64xf16>, %k: tensor<2x2x32x64xf16>, %v: tensor<2x2x32x64xbf16>) {
  // expected-error @+1 {{'attn.attention' op wants one element type, got 'f16' in query and 'bf16' in value}}
  %o, %lse = attn.attention %q, %k, %v
    : (tensor<2x4x16x64xf16>, tensor<2x2x32x64xf16>, tensor<2x2x32x64xbf16>)
      -> (tensor<2x4x16x64xf16>, tensor<2x4x16xf32>)
  return
}

// -----

func.func @attention_c2_output(%q: tensor<2x4x16x64xf16>, %k: tensor<2x2x32x64xf16>, %v: tensor<2x2x32x64xf16>) {
  // expected-error @+1 {{'attn.attention' op wants one element type, got 'f16' in query and 'f32' in output}}
  %o, %lse = attn.attention %q, %k, %v
    : (tensor<2x4x16x64xf16>, tensor<2x2x32x64xf16>, tensor<2x2x32x64xf16>)
      -> (tensor<2x4x16x64xf32>, tensor<2x4x16xf32>)
  return
}

// -----

func.func @attention_c2_lse(%q: tensor<2x4x16x64xf16>, %k: tensor<2x2x32x64xf16>, %v: tensor<2x2x32x64xf16>) {
  // expected-error @+1 {{'attn.attention' op wants lse of f32, got 'f16'}}
  %o, %lse = attn.attention %q, %k, %v
    : (tensor<2x4x16x64xf16>, tensor<2x2x32x64xf16>, tensor<2x2x32x64xf16>)
      -> (tensor<2x4x16x64xf16>, tensor<2x4x16xf16>)
  return
}

// -----

func.func @attention_c3_dynamic(%q: tensor<2x4x16x?xf16>, %k: tensor<2x2x32x64xf16>, %v: tensor<2x2x32x64xf16>) {
  // expected-error @+1 {{'attn.attention' op wants a static head dimension, got ? in query}}
  %o, %lse = attn.attention %q, %k, %v
    : (tensor<2x4x16x?xf16>, tensor<2x2x32x64xf16>, tensor<2x2x32x64xf16>)
      -> (tensor<2x4x16x64xf16>, tensor<2x4x16xf32>)
  return
}

// -----

func.func @attention_c3_dynamic_key(%q: tensor<2x4x16x64xf16>, %k: tensor<2x2x32x?xf16>, %v: tensor<2x2x32x64xf16>) {
  // expected-error @+1 {{'attn.attention' op wants a static head dimension, got ? in key}}
  %o, %lse = attn.attention %q, %k, %v
    : (tensor<2x4x16x64xf16>, tensor<2x2x32x?xf16>, tensor<2x2x32x64xf16>)
      -> (tensor<2x4x16x64xf16>, tensor<2x4x16xf32>)
  return
}

// -----

func.func @attention_c3_dynamic_output(%q: tensor<2x4x16x64xf16>, %k: tensor<2x2x32x64xf16>, %v: tensor<2x2x32x64xf16>) {
  // expected-error @+1 {{'attn.attention' op wants a static head dimension, got ? in output}}
  %o, %lse = attn.attention %q, %k, %v
    : (tensor<2x4x16x64xf16>, tensor<2x2x32x64xf16>, tensor<2x2x32x64xf16>)
      -> (tensor<2x4x16x?xf16>, tensor<2x4x16xf32>)
  return
}

// -----

func.func @attention_c3_multiple(%q: tensor<2x4x16x60xf16>, %k: tensor<2x2x32x60xf16>, %v: tensor<2x2x32x64xf16>) {
  // expected-error @+1 {{'attn.attention' op wants a head dimension that is a multiple of 8 in [8, 256], got 60 in query}}
  %o, %lse = attn.attention %q, %k, %v
    : (tensor<2x4x16x60xf16>, tensor<2x2x32x60xf16>, tensor<2x2x32x64xf16>)
      -> (tensor<2x4x16x64xf16>, tensor<2x4x16xf32>)
  return
}

// -----

func.func @attention_c3_zero(%q: tensor<2x4x16x0xf16>, %k: tensor<2x2x32x0xf16>, %v: tensor<2x2x32x64xf16>) {
  // expected-error @+1 {{'attn.attention' op wants a head dimension that is a multiple of 8 in [8, 256], got 0 in query}}
  %o, %lse = attn.attention %q, %k, %v
    : (tensor<2x4x16x0xf16>, tensor<2x2x32x0xf16>, tensor<2x2x32x64xf16>)
      -> (tensor<2x4x16x64xf16>, tensor<2x4x16xf32>)
  return
}

// -----

func.func @attention_c3_large(%q: tensor<2x4x16x64xf16>, %k: tensor<2x2x32x64xf16>, %v: tensor<2x2x32x264xf16>) {
  // expected-error @+1 {{'attn.attention' op wants a head dimension that is a multiple of 8 in [8, 256], got 264 in value}}
  %o, %lse = attn.attention %q, %k, %v
    : (tensor<2x4x16x64xf16>, tensor<2x2x32x64xf16>, tensor<2x2x32x264xf16>)
      -> (tensor<2x4x16x264xf16>, tensor<2x4x16xf32>)
  return
}

// -----

func.func @attention_c3_key(%q: tensor<2x4x16x64xf16>, %k: tensor<2x2x32x128xf16>, %v: tensor<2x2x32x64xf16>) {
  // expected-error @+1 {{'attn.attention' op wants one head dimension, got 64 in query and 128 in key}}
  %o, %lse = attn.attention %q, %k, %v
    : (tensor<2x4x16x64xf16>, tensor<2x2x32x128xf16>, tensor<2x2x32x64xf16>)
      -> (tensor<2x4x16x64xf16>, tensor<2x4x16xf32>)
  return
}

// -----

func.func @attention_c3_output(%q: tensor<2x4x16x64xf16>, %k: tensor<2x2x32x64xf16>, %v: tensor<2x2x32x64xf16>) {
  // expected-error @+1 {{'attn.attention' op wants one head dimension, got 64 in value and 128 in output}}
  %o, %lse = attn.attention %q, %k, %v
    : (tensor<2x4x16x64xf16>, tensor<2x2x32x64xf16>, tensor<2x2x32x64xf16>)
      -> (tensor<2x4x16x128xf16>, tensor<2x4x16xf32>)
  return
}

// -----

func.func @attention_c4_batch(%q: tensor<2x4x16x64xf16>, %k: tensor<2x2x32x64xf16>, %v: tensor<3x2x32x64xf16>) {
  // expected-error @+1 {{'attn.attention' op wants one batch size, got 2 in query and 3 in value}}
  %o, %lse = attn.attention %q, %k, %v
    : (tensor<2x4x16x64xf16>, tensor<2x2x32x64xf16>, tensor<3x2x32x64xf16>)
      -> (tensor<2x4x16x64xf16>, tensor<2x4x16xf32>)
  return
}

// -----

func.func @attention_c4_batch_past_unknown(%q: tensor<?x4x16x64xf16>, %k: tensor<2x2x32x64xf16>, %v: tensor<2x2x32x64xf16>) {
  // expected-error @+1 {{'attn.attention' op wants one batch size, got 2 in key and 1 in lse}}
  %o, %lse = attn.attention %q, %k, %v
    : (tensor<?x4x16x64xf16>, tensor<2x2x32x64xf16>, tensor<2x2x32x64xf16>)
      -> (tensor<2x4x16x64xf16>, tensor<1x4x16xf32>)
  return
}

// -----

func.func @attention_c4_query_heads(%q: tensor<2x4x16x64xf16>, %k: tensor<2x2x32x64xf16>, %v: tensor<2x2x32x64xf16>) {
  // expected-error @+1 {{'attn.attention' op wants one number of query heads, got 4 in query and 8 in output}}
  %o, %lse = attn.attention %q, %k, %v
    : (tensor<2x4x16x64xf16>, tensor<2x2x32x64xf16>, tensor<2x2x32x64xf16>)
      -> (tensor<2x8x16x64xf16>, tensor<2x4x16xf32>)
  return
}

// -----

func.func @attention_c4_key_heads(%q: tensor<2x4x16x64xf16>, %k: tensor<2x2x32x64xf16>, %v: tensor<2x4x32x64xf16>) {
  // expected-error @+1 {{'attn.attention' op wants one number of key heads, got 2 in key and 4 in value}}
  %o, %lse = attn.attention %q, %k, %v
    : (tensor<2x4x16x64xf16>, tensor<2x2x32x64xf16>, tensor<2x4x32x64xf16>)
      -> (tensor<2x4x16x64xf16>, tensor<2x4x16xf32>)
  return
}

// -----

func.func @attention_c4_query_length(%q: tensor<2x4x16x64xf16>, %k: tensor<2x2x32x64xf16>, %v: tensor<2x2x32x64xf16>) {
  // expected-error @+1 {{'attn.attention' op wants one query length, got 16 in query and 17 in lse}}
  %o, %lse = attn.attention %q, %k, %v
    : (tensor<2x4x16x64xf16>, tensor<2x2x32x64xf16>, tensor<2x2x32x64xf16>)
      -> (tensor<2x4x16x64xf16>, tensor<2x4x17xf32>)
  return
}

// -----

func.func @attention_c4_key_length(%q: tensor<2x4x16x64xf16>, %k: tensor<2x2x32x64xf16>, %v: tensor<2x2x31x64xf16>) {
  // expected-error @+1 {{'attn.attention' op wants one key length, got 32 in key and 31 in value}}
  %o, %lse = attn.attention %q, %k, %v
    : (tensor<2x4x16x64xf16>, tensor<2x2x32x64xf16>, tensor<2x2x31x64xf16>)
      -> (tensor<2x4x16x64xf16>, tensor<2x4x16xf32>)
  return
}

// -----

func.func @attention_c5_multiple(%q: tensor<2x4x16x64xf16>, %k: tensor<2x3x32x64xf16>, %v: tensor<2x3x32x64xf16>) {
  // expected-error @+1 {{'attn.attention' op wants a number of query heads that is a multiple of the number of key heads, got 4 and 3}}
  %o, %lse = attn.attention %q, %k, %v
    : (tensor<2x4x16x64xf16>, tensor<2x3x32x64xf16>, tensor<2x3x32x64xf16>)
      -> (tensor<2x4x16x64xf16>, tensor<2x4x16xf32>)
  return
}

// -----

func.func @attention_c5_multiple_of_value(%q: tensor<2x4x16x64xf16>, %k: tensor<2x?x32x64xf16>, %v: tensor<2x3x32x64xf16>) {
  // expected-error @+1 {{'attn.attention' op wants a number of query heads that is a multiple of the number of key heads, got 4 and 3}}
  %o, %lse = attn.attention %q, %k, %v
    : (tensor<2x4x16x64xf16>, tensor<2x?x32x64xf16>, tensor<2x3x32x64xf16>)
      -> (tensor<2x4x16x64xf16>, tensor<2x4x16xf32>)
  return
}

// -----

func.func @attention_c5_none(%q: tensor<2x4x16x64xf16>, %k: tensor<2x0x32x64xf16>, %v: tensor<2x0x32x64xf16>) {
  // expected-error @+1 {{'attn.attention' op wants at least one key head, got 0}}
  %o, %lse = attn.attention %q, %k, %v
    : (tensor<2x4x16x64xf16>, tensor<2x0x32x64xf16>, tensor<2x0x32x64xf16>)
      -> (tensor<2x4x16x64xf16>, tensor<2x4x16xf32>)
  return
}

// -----

func.func @attention_c6_query(%q: tensor<1x1x1073741825x64xf16>, %k: tensor<1x1x32x64xf16>, %v: tensor<1x1x32x64xf16>) {
  // expected-error @+1 {{'attn.attention' op wants a query length of at most 1073741824, got 1073741825}}
  %o, %lse = attn.attention %q, %k, %v
    : (tensor<1x1x1073741825x64xf16>, tensor<1x1x32x64xf16>, tensor<1x1x32x64xf16>)
      -> (tensor<1x1x1073741825x64xf16>, tensor<1x1x1073741825xf32>)
  return
}

// -----

func.func @attention_c6_batch(%q: tensor<1099511627776x1x0x64xf16>, %k: tensor<1099511627776x1x0x64xf16>, %v: tensor<1099511627776x1x0x64xf16>) {
  // expected-error @+1 {{'attn.attention' op wants a batch size of at most 1073741824, got 1099511627776}}
  %o, %lse = attn.attention %q, %k, %v
    : (tensor<1099511627776x1x0x64xf16>, tensor<1099511627776x1x0x64xf16>, tensor<1099511627776x1x0x64xf16>)
      -> (tensor<1099511627776x1x0x64xf16>, tensor<1099511627776x1x0xf32>)
  return
}

// -----

func.func @attention_c6_heads(%q: tensor<1x?x0x64xf16>, %k: tensor<1x1073741825x0x64xf16>, %v: tensor<1x?x0x64xf16>) {
  // expected-error @+1 {{'attn.attention' op wants a number of key heads of at most 1073741824, got 1073741825}}
  %o, %lse = attn.attention %q, %k, %v
    : (tensor<1x?x0x64xf16>, tensor<1x1073741825x0x64xf16>, tensor<1x?x0x64xf16>)
      -> (tensor<1x?x0x64xf16>, tensor<1x?x0xf32>)
  return
}

// -----

func.func @attention_c6_key(%q: tensor<2x4x16x64xf16>, %k: tensor<2x2x?x64xf16>, %v: tensor<2x2x1073741825x64xf16>) {
  // expected-error @+1 {{'attn.attention' op wants a key length of at most 1073741824, got 1073741825}}
  %o, %lse = attn.attention %q, %k, %v
    : (tensor<2x4x16x64xf16>, tensor<2x2x?x64xf16>, tensor<2x2x1073741825x64xf16>)
      -> (tensor<2x4x16x64xf16>, tensor<2x4x16xf32>)
  return
}

// -----

func.func @attention_c7_infinite(%q: tensor<2x4x16x64xf16>, %k: tensor<2x2x32x64xf16>, %v: tensor<2x2x32x64xf16>) {
  // expected-error @+1 {{'attn.attention' op wants a scale that is finite in f32, got 0x7FF0000000000000 : f64}}
  %o, %lse = attn.attention %q, %k, %v {scale = 0x7FF0000000000000 : f64}
    : (tensor<2x4x16x64xf16>, tensor<2x2x32x64xf16>, tensor<2x2x32x64xf16>)
      -> (tensor<2x4x16x64xf16>, tensor<2x4x16xf32>)
  return
}

// -----

func.func @attention_c7_beyond_f32(%q: tensor<2x4x16x64xf16>, %k: tensor<2x2x32x64xf16>, %v: tensor<2x2x32x64xf16>) {
  // expected-error @+1 {{'attn.attention' op wants a scale that is finite in f32, got 1.000000e+300 : f64}}
  %o, %lse = attn.attention %q, %k, %v {scale = 1.0e300}
    : (tensor<2x4x16x64xf16>, tensor<2x2x32x64xf16>, tensor<2x2x32x64xf16>)
      -> (tensor<2x4x16x64xf16>, tensor<2x4x16xf32>)
  return
}

// -----

func.func @attention_c7_type(%q: tensor<2x4x16x64xf16>, %k: tensor<2x2x32x64xf16>, %v: tensor<2x2x32x64xf16>) {
  // expected-error @+1 {{'attn.attention' op attribute 'scale' failed to satisfy constraint: 64-bit float attribute}}
  %o, %lse = attn.attention %q, %k, %v {scale = 0.5 : f32}
    : (tensor<2x4x16x64xf16>, tensor<2x2x32x64xf16>, tensor<2x2x32x64xf16>)
      -> (tensor<2x4x16x64xf16>, tensor<2x4x16xf32>)
  return
}

// -----

func.func @attention_c8_index(%q: tensor<2x4x16x64xf16>, %k: tensor<2x2x32x64xf16>, %v: tensor<2x2x32x64xf16>, %c0: i32, %c1: index) {
  // expected-error @+1 {{'attn.attention' op wants capture #1 to be i1, i8, i16, i32, i64, f16, bf16, f32 or a ranked tensor of these, got 'index'}}
  %o, %lse = attn.attention %q, %k, %v captures(%c0, %c1)
    : (tensor<2x4x16x64xf16>, tensor<2x2x32x64xf16>, tensor<2x2x32x64xf16>, i32, index)
      -> (tensor<2x4x16x64xf16>, tensor<2x4x16xf32>)
  return
}

// -----

func.func @attention_c8_f64(%q: tensor<2x4x16x64xf16>, %k: tensor<2x2x32x64xf16>, %v: tensor<2x2x32x64xf16>, %c0: i32, %c1: f64) {
  // expected-error @+1 {{'attn.attention' op wants capture #1 to be i1, i8, i16, i32, i64, f16, bf16, f32 or a ranked tensor of these, got 'f64'}}
  %o, %lse = attn.attention %q, %k, %v captures(%c0, %c1)
    : (tensor<2x4x16x64xf16>, tensor<2x2x32x64xf16>, tensor<2x2x32x64xf16>, i32, f64)
      -> (tensor<2x4x16x64xf16>, tensor<2x4x16xf32>)
  return
}

// -----

func.func @attention_c8_unranked(%q: tensor<2x4x16x64xf16>, %k: tensor<2x2x32x64xf16>, %v: tensor<2x2x32x64xf16>, %c0: i32, %c1: tensor<*xf32>) {
  // expected-error @+1 {{'attn.attention' op wants capture #1 to be i1, i8, i16, i32, i64, f16, bf16, f32 or a ranked tensor of these, got 'tensor<*xf32>'}}
  %o, %lse = attn.attention %q, %k, %v captures(%c0, %c1)
    : (tensor<2x4x16x64xf16>, tensor<2x2x32x64xf16>, tensor<2x2x32x64xf16>, i32, tensor<*xf32>)
      -> (tensor<2x4x16x64xf16>, tensor<2x4x16xf32>)
  return
}

// -----

func.func @attention_c8_element(%q: tensor<2x4x16x64xf16>, %k: tensor<2x2x32x64xf16>, %v: tensor<2x2x32x64xf16>, %c0: i32, %c1: tensor<4xindex>) {
  // expected-error @+1 {{'attn.attention' op wants capture #1 to be i1, i8, i16, i32, i64, f16, bf16, f32 or a ranked tensor of these, got 'tensor<4xindex>'}}
  %o, %lse = attn.attention %q, %k, %v captures(%c0, %c1)
    : (tensor<2x4x16x64xf16>, tensor<2x2x32x64xf16>, tensor<2x2x32x64xf16>, i32, tensor<4xindex>)
      -> (tensor<2x4x16x64xf16>, tensor<2x4x16xf32>)
  return
}

// -----

func.func @attention_c8_encoding(%q: tensor<2x4x16x64xf16>, %k: tensor<2x2x32x64xf16>, %v: tensor<2x2x32x64xf16>, %c0: i32, %c1: tensor<4xf32, "blocked">) {
  // expected-error @+1 {{'attn.attention' op wants capture #1 to be i1, i8, i16, i32, i64, f16, bf16, f32 or a ranked tensor of these, got 'tensor<4xf32, "blocked">'}}
  %o, %lse = attn.attention %q, %k, %v captures(%c0, %c1)
    : (tensor<2x4x16x64xf16>, tensor<2x2x32x64xf16>, tensor<2x2x32x64xf16>, i32, tensor<4xf32, "blocked">)
      -> (tensor<2x4x16x64xf16>, tensor<2x4x16xf32>)
  return
}

// -----

func.func @attention_c8_memref(%q: tensor<2x4x16x64xf16>, %k: tensor<2x2x32x64xf16>, %v: tensor<2x2x32x64xf16>, %c0: i32, %c1: memref<4xf32>) {
  // expected-error @+1 {{'attn.attention' op wants capture #1 to be i1, i8, i16, i32, i64, f16, bf16, f32 or a ranked tensor of these, got 'memref<4xf32>'}}
  %o, %lse = attn.attention %q, %k, %v captures(%c0, %c1)
    : (tensor<2x4x16x64xf16>, tensor<2x2x32x64xf16>, tensor<2x2x32x64xf16>, i32, memref<4xf32>)
      -> (tensor<2x4x16x64xf16>, tensor<2x4x16xf32>)
  return
}

// -----

func.func @attention_c9_arguments(%q: tensor<2x4x16x64xf16>, %k: tensor<2x2x32x64xf16>, %v: tensor<2x2x32x64xf16>) {
  // expected-error @+1 {{'attn.attention' op wants a score region over ('f32', 'i32', 'i32', 'i32', 'i32'), got ('f16', 'i32', 'i32', 'i32', 'i32')}}
  %o, %lse = attn.attention %q, %k, %v
    score(%x: f16, %b: i32, %h: i32, %i: i32, %j: i32) {
      %y = arith.extf %x : f16 to f32
      attn.yield %y : f32
    }
    : (tensor<2x4x16x64xf16>, tensor<2x2x32x64xf16>, tensor<2x2x32x64xf16>)
      -> (tensor<2x4x16x64xf16>, tensor<2x4x16xf32>)
  return
}

// -----

func.func @attention_c9_no_arguments(%q: tensor<2x4x16x64xf16>, %k: tensor<2x2x32x64xf16>, %v: tensor<2x2x32x64xf16>) {
  // expected-error @+1 {{'attn.attention' op wants a score region over ('f32', 'i32', 'i32', 'i32', 'i32'), got ()}}
  %o, %lse = attn.attention %q, %k, %v
    score() {
      %y = arith.constant 0.0 : f32
      attn.yield %y : f32
    }
    : (tensor<2x4x16x64xf16>, tensor<2x2x32x64xf16>, tensor<2x2x32x64xf16>)
      -> (tensor<2x4x16x64xf16>, tensor<2x4x16xf32>)
  return
}

// -----

func.func @attention_c9_captures(%q: tensor<2x4x16x64xf16>, %k: tensor<2x2x32x64xf16>, %v: tensor<2x2x32x64xf16>, %c0: tensor<4xf32>) {
  // expected-error @+1 {{'attn.attention' op wants a score region over ('f32', 'i32', 'i32', 'i32', 'i32', 'tensor<4xf32>'), got ('f32', 'i32', 'i32', 'i32', 'i32')}}
  %o, %lse = attn.attention %q, %k, %v captures(%c0)
    score(%x: f32, %b: i32, %h: i32, %i: i32, %j: i32) {
      attn.yield %x : f32
    }
    : (tensor<2x4x16x64xf16>, tensor<2x2x32x64xf16>, tensor<2x2x32x64xf16>, tensor<4xf32>)
      -> (tensor<2x4x16x64xf16>, tensor<2x4x16xf32>)
  return
}

// -----

func.func @attention_c9_yield(%q: tensor<2x4x16x64xf16>, %k: tensor<2x2x32x64xf16>, %v: tensor<2x2x32x64xf16>) {
  %o, %lse = attn.attention %q, %k, %v
    score(%x: f32, %b: i32, %h: i32, %i: i32, %j: i32) {
      // expected-error @+1 {{'attn.yield' op of a score region wants 'f32', got 'i32'}}
      attn.yield %i : i32
    }
    : (tensor<2x4x16x64xf16>, tensor<2x2x32x64xf16>, tensor<2x2x32x64xf16>)
      -> (tensor<2x4x16x64xf16>, tensor<2x4x16xf32>)
  return
}

// -----

func.func @attention_c10_arguments(%q: tensor<2x4x16x64xf16>, %k: tensor<2x2x32x64xf16>, %v: tensor<2x2x32x64xf16>) {
  // expected-error @+1 {{'attn.attention' op wants a mask region over ('i32', 'i32', 'i32', 'i32'), got ('f32', 'i32', 'i32', 'i32', 'i32')}}
  %o, %lse = attn.attention %q, %k, %v
    mask(%x: f32, %b: i32, %h: i32, %i: i32, %j: i32) {
      %m = arith.cmpi sge, %i, %j : i32
      attn.yield %m : i1
    }
    : (tensor<2x4x16x64xf16>, tensor<2x2x32x64xf16>, tensor<2x2x32x64xf16>)
      -> (tensor<2x4x16x64xf16>, tensor<2x4x16xf32>)
  return
}

// -----

func.func @attention_c10_yield(%q: tensor<2x4x16x64xf16>, %k: tensor<2x2x32x64xf16>, %v: tensor<2x2x32x64xf16>) {
  %o, %lse = attn.attention %q, %k, %v
    mask(%b: i32, %h: i32, %i: i32, %j: i32) {
      // expected-error @+1 {{'attn.yield' op of a mask region wants 'i1', got 'i32'}}
      attn.yield %i : i32
    }
    : (tensor<2x4x16x64xf16>, tensor<2x2x32x64xf16>, tensor<2x2x32x64xf16>)
      -> (tensor<2x4x16x64xf16>, tensor<2x4x16xf32>)
  return
}

// -----

func.func @attention_c11_call(%q: tensor<2x4x16x64xf16>, %k: tensor<2x2x32x64xf16>, %v: tensor<2x2x32x64xf16>) {
  %o, %lse = attn.attention %q, %k, %v
    mask(%b: i32, %h: i32, %i: i32, %j: i32) {
      // expected-error @+1 {{'func.call' op may not stand in a mask region: wanted arith, math, attn.capture_load, attn.capture_search or attn.yield}}
      func.call @f() : () -> ()
      %true = arith.constant true
      attn.yield %true : i1
    }
    : (tensor<2x4x16x64xf16>, tensor<2x2x32x64xf16>, tensor<2x2x32x64xf16>)
      -> (tensor<2x4x16x64xf16>, tensor<2x4x16xf32>)
  return
}
func.func private @f()

// -----

func.func @attention_c11_control_flow(%q: tensor<2x4x16x64xf16>, %k: tensor<2x2x32x64xf16>, %v: tensor<2x2x32x64xf16>) {
  %o, %lse = attn.attention %q, %k, %v
    mask(%b: i32, %h: i32, %i: i32, %j: i32) {
      %t = arith.constant true
      // expected-error @+1 {{'scf.if' op may not stand in a mask region: wanted arith, math, attn.capture_load, attn.capture_search or attn.yield}}
      scf.if %t {
      }
      %true = arith.constant true
      attn.yield %true : i1
    }
    : (tensor<2x4x16x64xf16>, tensor<2x2x32x64xf16>, tensor<2x2x32x64xf16>)
      -> (tensor<2x4x16x64xf16>, tensor<2x4x16xf32>)
  return
}

// -----

func.func @attention_c11_memory(%q: tensor<2x4x16x64xf16>, %k: tensor<2x2x32x64xf16>, %v: tensor<2x2x32x64xf16>) {
  %o, %lse = attn.attention %q, %k, %v
    score(%x: f32, %b: i32, %h: i32, %i: i32, %j: i32) {
      // expected-error @+1 {{'memref.alloc' op may not stand in a score region: wanted arith, math, attn.capture_load, attn.capture_search or attn.yield}}
      %m = memref.alloc() : memref<f32>
      attn.yield %x : f32
    }
    : (tensor<2x4x16x64xf16>, tensor<2x2x32x64xf16>, tensor<2x2x32x64xf16>)
      -> (tensor<2x4x16x64xf16>, tensor<2x4x16xf32>)
  return
}

// -----

func.func @attention_c11_index(%q: tensor<2x4x16x64xf16>, %k: tensor<2x2x32x64xf16>, %v: tensor<2x2x32x64xf16>) {
  %o, %lse = attn.attention %q, %k, %v
    mask(%b: i32, %h: i32, %i: i32, %j: i32) {
      // expected-error @+1 {{'arith.index_cast' op in a mask region wants i1, i8, i16, i32, i64, f16, bf16 or f32, got 'index'}}
      %n = arith.index_cast %i : i32 to index
      %true = arith.constant true
      attn.yield %true : i1
    }
    : (tensor<2x4x16x64xf16>, tensor<2x2x32x64xf16>, tensor<2x2x32x64xf16>)
      -> (tensor<2x4x16x64xf16>, tensor<2x4x16xf32>)
  return
}

// -----

func.func @attention_c11_f64(%q: tensor<2x4x16x64xf16>, %k: tensor<2x2x32x64xf16>, %v: tensor<2x2x32x64xf16>) {
  %o, %lse = attn.attention %q, %k, %v
    score(%x: f32, %b: i32, %h: i32, %i: i32, %j: i32) {
      // expected-error @+1 {{'arith.extf' op in a score region wants i1, i8, i16, i32, i64, f16, bf16 or f32, got 'f64'}}
      %n = arith.extf %x : f32 to f64
      attn.yield %x : f32
    }
    : (tensor<2x4x16x64xf16>, tensor<2x2x32x64xf16>, tensor<2x2x32x64xf16>)
      -> (tensor<2x4x16x64xf16>, tensor<2x4x16xf32>)
  return
}

// -----

func.func @attention_c11_vector(%q: tensor<2x4x16x64xf16>, %k: tensor<2x2x32x64xf16>, %v: tensor<2x2x32x64xf16>) {
  %o, %lse = attn.attention %q, %k, %v
    score(%x: f32, %b: i32, %h: i32, %i: i32, %j: i32) {
      // expected-error @+1 {{'arith.constant' op in a score region wants i1, i8, i16, i32, i64, f16, bf16 or f32, got 'vector<4xf32>'}}
      %n = arith.constant dense<0.0> : vector<4xf32>
      attn.yield %x : f32
    }
    : (tensor<2x4x16x64xf16>, tensor<2x2x32x64xf16>, tensor<2x2x32x64xf16>)
      -> (tensor<2x4x16x64xf16>, tensor<2x4x16xf32>)
  return
}

// -----

func.func @attention_c11_remf(%q: tensor<2x4x16x64xf16>, %k: tensor<2x2x32x64xf16>, %v: tensor<2x2x32x64xf16>) {
  %o, %lse = attn.attention %q, %k, %v
    mask(%b: i32, %h: i32, %i: i32, %j: i32) {
      %true = arith.constant true
      %f = arith.sitofp %i : i32 to f32
      // expected-error @+1 {{'arith.remf' op in a mask region has no code on a GPU: wanted x - y * trunc(x / y), whose error is the program's to judge}}
      %y = arith.remf %f, %f : f32
      attn.yield %true : i1
    }
    : (tensor<2x4x16x64xf16>, tensor<2x2x32x64xf16>, tensor<2x2x32x64xf16>)
      -> (tensor<2x4x16x64xf16>, tensor<2x4x16xf32>)
  return
}

// -----

func.func @attention_c11_wide_product(%q: tensor<2x4x16x64xf16>, %k: tensor<2x2x32x64xf16>, %v: tensor<2x2x32x64xf16>) {
  %o, %lse = attn.attention %q, %k, %v
    mask(%b: i32, %h: i32, %i: i32, %j: i32) {
      %true = arith.constant true
      %w = arith.extsi %j : i32 to i64
      // expected-error @+1 {{'arith.mului_extended' op in a mask region has no code on a GPU: wanted products of at most 32 bits}}
      %lo, %hi = arith.mului_extended %w, %w : i64
      attn.yield %true : i1
    }
    : (tensor<2x4x16x64xf16>, tensor<2x2x32x64xf16>, tensor<2x2x32x64xf16>)
      -> (tensor<2x4x16x64xf16>, tensor<2x4x16xf32>)
  return
}

// -----

func.func @attention_c11_power_of_flags(%q: tensor<2x4x16x64xf16>, %k: tensor<2x2x32x64xf16>, %v: tensor<2x2x32x64xf16>) {
  %o, %lse = attn.attention %q, %k, %v
    mask(%b: i32, %h: i32, %i: i32, %j: i32) {
      %true = arith.constant true
      // expected-error @+1 {{'math.ipowi' op in a mask region has no code on a GPU: wanted a power of 8 bits or more}}
      %p = math.ipowi %true, %true : i1
      attn.yield %true : i1
    }
    : (tensor<2x4x16x64xf16>, tensor<2x2x32x64xf16>, tensor<2x2x32x64xf16>)
      -> (tensor<2x4x16x64xf16>, tensor<2x4x16xf32>)
  return
}

// -----

func.func @attention_c11_divsi(%q: tensor<2x4x16x64xf16>, %k: tensor<2x2x32x64xf16>, %v: tensor<2x2x32x64xf16>) {
  %o, %lse = attn.attention %q, %k, %v
    mask(%b: i32, %h: i32, %i: i32, %j: i32) {
      // expected-error @+1 {{'arith.divsi' op in a mask region wants a constant divisor other than 0 and -1}}
      %n = arith.divsi %i, %j : i32
      %true = arith.constant true
      attn.yield %true : i1
    }
    : (tensor<2x4x16x64xf16>, tensor<2x2x32x64xf16>, tensor<2x2x32x64xf16>)
      -> (tensor<2x4x16x64xf16>, tensor<2x4x16xf32>)
  return
}

// -----

func.func @attention_c11_remui(%q: tensor<2x4x16x64xf16>, %k: tensor<2x2x32x64xf16>, %v: tensor<2x2x32x64xf16>) {
  %o, %lse = attn.attention %q, %k, %v
    mask(%b: i32, %h: i32, %i: i32, %j: i32) {
      // expected-error @+1 {{'arith.remui' op in a mask region wants a constant divisor other than 0 and -1}}
      %n = arith.remui %i, %j : i32
      %true = arith.constant true
      attn.yield %true : i1
    }
    : (tensor<2x4x16x64xf16>, tensor<2x2x32x64xf16>, tensor<2x2x32x64xf16>)
      -> (tensor<2x4x16x64xf16>, tensor<2x4x16xf32>)
  return
}

// -----

func.func @attention_c11_divide_by_zero(%q: tensor<2x4x16x64xf16>, %k: tensor<2x2x32x64xf16>, %v: tensor<2x2x32x64xf16>) {
  %o, %lse = attn.attention %q, %k, %v
    mask(%b: i32, %h: i32, %i: i32, %j: i32) {
      %z = arith.constant 0 : i32
      // expected-error @+1 {{'arith.floordivsi' op in a mask region wants a constant divisor other than 0 and -1}}
      %n = arith.floordivsi %i, %z : i32
      %true = arith.constant true
      attn.yield %true : i1
    }
    : (tensor<2x4x16x64xf16>, tensor<2x2x32x64xf16>, tensor<2x2x32x64xf16>)
      -> (tensor<2x4x16x64xf16>, tensor<2x4x16xf32>)
  return
}

// -----

func.func @attention_c11_divide_by_minus_one(%q: tensor<2x4x16x64xf16>, %k: tensor<2x2x32x64xf16>, %v: tensor<2x2x32x64xf16>) {
  %o, %lse = attn.attention %q, %k, %v
    mask(%b: i32, %h: i32, %i: i32, %j: i32) {
      %z = arith.constant -1 : i32
      // expected-error @+1 {{'arith.remsi' op in a mask region wants a constant divisor other than 0 and -1}}
      %n = arith.remsi %i, %z : i32
      %true = arith.constant true
      attn.yield %true : i1
    }
    : (tensor<2x4x16x64xf16>, tensor<2x2x32x64xf16>, tensor<2x2x32x64xf16>)
      -> (tensor<2x4x16x64xf16>, tensor<2x4x16xf32>)
  return
}

// -----

func.func @attention_c11_outer_value(%q: tensor<2x4x16x64xf16>, %n: i32) {
  // expected-note @+1 {{required by region isolation constraints}}
  %o, %lse = attn.attention %q, %q, %q
    mask(%b: i32, %h: i32, %i: i32, %j: i32) {
      // expected-error @+1 {{'arith.cmpi' op using value defined outside the region}}
      %m = arith.cmpi slt, %i, %n : i32
      attn.yield %m : i1
    }
    : (tensor<2x4x16x64xf16>, tensor<2x4x16x64xf16>, tensor<2x4x16x64xf16>)
      -> (tensor<2x4x16x64xf16>, tensor<2x4x16xf32>)
  return
}

// -----

func.func @attention_c12_unknown(%q: tensor<2x4x16x64xf16>, %k: tensor<2x2x32x64xf16>, %v: tensor<2x2x32x64xf16>) {
  // expected-error @+1 {{'attn.attention' op wants variants among #attn.causal, #attn.window, #attn.softcap and #attn.alibi, got "causal"}}
  %o, %lse = attn.attention %q, %k, %v {variants = [#attn.causal, "causal"]}
    : (tensor<2x4x16x64xf16>, tensor<2x2x32x64xf16>, tensor<2x2x32x64xf16>)
      -> (tensor<2x4x16x64xf16>, tensor<2x4x16xf32>)
  return
}

// -----

func.func @attention_c12_plan(%q: tensor<2x4x16x64xf16>, %k: tensor<2x2x32x64xf16>, %v: tensor<2x2x32x64xf16>) {
  // expected-error @+1 {{'attn.attention' op wants variants among #attn.causal, #attn.window, #attn.softcap and #attn.alibi, got #attn.numerics}}
  %o, %lse = attn.attention %q, %k, %v {variants = [#attn.numerics]}
    : (tensor<2x4x16x64xf16>, tensor<2x2x32x64xf16>, tensor<2x2x32x64xf16>)
      -> (tensor<2x4x16x64xf16>, tensor<2x4x16xf32>)
  return
}

// -----

func.func @attention_c12_not_a_list(%q: tensor<2x4x16x64xf16>, %k: tensor<2x2x32x64xf16>, %v: tensor<2x2x32x64xf16>) {
  // expected-error @+1 {{'attn.attention' op attribute 'variants' failed to satisfy constraint: array attribute}}
  %o, %lse = attn.attention %q, %k, %v {variants = #attn.causal}
    : (tensor<2x4x16x64xf16>, tensor<2x2x32x64xf16>, tensor<2x2x32x64xf16>)
      -> (tensor<2x4x16x64xf16>, tensor<2x4x16xf32>)
  return
}

// -----

func.func @attention_c13_misspelt(%q: tensor<2x4x16x64xf16>, %k: tensor<2x2x32x64xf16>, %v: tensor<2x2x32x64xf16>) {
  // expected-error @+1 {{'attn.attention' op has no attribute 'scal', did you mean 'scale'?}}
  %o, %lse = attn.attention %q, %k, %v {scal = 0.5}
    : (tensor<2x4x16x64xf16>, tensor<2x2x32x64xf16>, tensor<2x2x32x64xf16>)
      -> (tensor<2x4x16x64xf16>, tensor<2x4x16xf32>)
  return
}

// -----

func.func @attention_c13_misspelt_by_two(%q: tensor<2x4x16x64xf16>, %k: tensor<2x2x32x64xf16>) {
  // expected-error @+1 {{'attn.attention' op has no attribute 'drop_out', did you mean 'dropout_p'?}}
  %o, %lse = attn.attention %q, %k, %k {drop_out = 0.1}
    : (tensor<2x4x16x64xf16>, tensor<2x2x32x64xf16>, tensor<2x2x32x64xf16>)
      -> (tensor<2x4x16x64xf16>, tensor<2x4x16xf32>)
  return
}

// -----

// Nothing is spelt like it.
func.func @attention_c13_like_none(%q: tensor<2x4x16x64xf16>, %k: tensor<2x2x32x64xf16>) {
  // expected-error @+1 {{'attn.attention' op has no attribute 'color', expected among dropout_p, numerics, plan, scale, sorted_captures, variants}}
  %o, %lse = attn.attention %q, %k, %k {color = "red"}
    : (tensor<2x4x16x64xf16>, tensor<2x2x32x64xf16>, tensor<2x2x32x64xf16>)
      -> (tensor<2x4x16x64xf16>, tensor<2x4x16xf32>)
  return
}

// -----

func.func @attention_c13_own_dialect(%q: tensor<2x4x16x64xf16>, %k: tensor<2x2x32x64xf16>, %v: tensor<2x2x32x64xf16>) {
  // expected-error @+1 {{unknown attribute 'attn.scale' of the attn dialect}}
  %o, %lse = attn.attention %q, %k, %v {attn.scale = 0.5}
    : (tensor<2x4x16x64xf16>, tensor<2x2x32x64xf16>, tensor<2x2x32x64xf16>)
      -> (tensor<2x4x16x64xf16>, tensor<2x4x16xf32>)
  return
}

// -----

func.func @attention_c13_numerics(%q: tensor<2x4x16x64xf16>, %k: tensor<2x2x32x64xf16>, %v: tensor<2x2x32x64xf16>) {
  // expected-error @+1 {{'attn.attention' op attribute 'numerics' failed to satisfy constraint: the parts of the numerics contract that a program may choose}}
  %o, %lse = attn.attention %q, %k, %v {numerics = true}
    : (tensor<2x4x16x64xf16>, tensor<2x2x32x64xf16>, tensor<2x2x32x64xf16>)
      -> (tensor<2x4x16x64xf16>, tensor<2x4x16xf32>)
  return
}

// -----

func.func @attention_c13_plan(%q: tensor<2x4x16x64xf16>, %k: tensor<2x2x32x64xf16>, %v: tensor<2x2x32x64xf16>) {
  // expected-error @+1 {{'attn.attention' op attribute 'plan' failed to satisfy constraint: the variant of the kernel: every choice that changes speed and never the result}}
  %o, %lse = attn.attention %q, %k, %v {plan = 3}
    : (tensor<2x4x16x64xf16>, tensor<2x2x32x64xf16>, tensor<2x2x32x64xf16>)
      -> (tensor<2x4x16x64xf16>, tensor<2x4x16xf32>)
  return
}

// -----

func.func @capture_load_c1(%q: tensor<2x4x16x64xf16>, %k: tensor<2x2x32x64xf16>, %v: tensor<2x2x32x64xf16>, %c0: tensor<?x?xf32>) {
  %o, %lse = attn.attention %q, %k, %v captures(%c0)
    mask(%b: i32, %h: i32, %i: i32, %j: i32, %t: tensor<?x?xf32>) {
      // expected-error @+1 {{'attn.capture_load' op reads a tensor of rank 2 and wants as many indices, got 1}}
      %s = attn.capture_load %t[%i] : tensor<?x?xf32>
      %true = arith.constant true
      attn.yield %true : i1
    }
    : (tensor<2x4x16x64xf16>, tensor<2x2x32x64xf16>, tensor<2x2x32x64xf16>, tensor<?x?xf32>)
      -> (tensor<2x4x16x64xf16>, tensor<2x4x16xf32>)
  return
}

// -----

func.func @capture_load_c1_rank_0(%q: tensor<2x4x16x64xf16>, %k: tensor<2x2x32x64xf16>, %v: tensor<2x2x32x64xf16>, %c0: tensor<f32>) {
  %o, %lse = attn.attention %q, %k, %v captures(%c0)
    mask(%b: i32, %h: i32, %i: i32, %j: i32, %t: tensor<f32>) {
      // expected-error @+1 {{'attn.capture_load' op reads a tensor of rank 0 and wants as many indices, got 1}}
      %s = attn.capture_load %t[%i] : tensor<f32>
      %true = arith.constant true
      attn.yield %true : i1
    }
    : (tensor<2x4x16x64xf16>, tensor<2x2x32x64xf16>, tensor<2x2x32x64xf16>, tensor<f32>)
      -> (tensor<2x4x16x64xf16>, tensor<2x4x16xf32>)
  return
}

// -----

func.func @capture_load_outside(%t: tensor<4xf32>, %i: i32) {
  // expected-error @+1 {{'attn.capture_load' op expects parent op to be one of 'attn.attention, attn.attention_backward, attn.attention_jvp'}}
  %s = attn.capture_load %t[%i] : tensor<4xf32>
  return
}

// -----

func.func @yield_outside(%x: f32) {
  // expected-error @+1 {{'attn.yield' op expects parent op to be one of 'attn.attention, attn.attention_backward, attn.attention_jvp'}}
  attn.yield %x : f32
}

// -----

// expected-error @+1 {{'block_q' must be in [1, 65536], got 0}}
func.func private @plan_block_q() attributes {plan = #attn.plan<target = sm_80, block_q = 0, block_k = 64, warps = 4, stages = 2>}

// -----

// expected-error @+1 {{'block_k' must be in [1, 65536], got 65537}}
func.func private @plan_block_k() attributes {plan = #attn.plan<target = sm_80, block_q = 64, block_k = 65537, warps = 4, stages = 2>}

// -----

// expected-error @+1 {{'warps' must be in [1, 32], got 33}}
func.func private @plan_warps() attributes {plan = #attn.plan<target = sm_80, block_q = 64, block_k = 64, warps = 33, stages = 2>}

// -----

// expected-error @+1 {{'stages' must be in [1, 64], got -1}}
func.func private @plan_stages() attributes {plan = #attn.plan<target = sm_80, block_q = 64, block_k = 64, warps = 4, stages = -1>}

// -----

// expected-error @+1 {{'split_keys' must be in [1, 64], got 65}}
func.func private @plan_split_keys() attributes {plan = #attn.plan<target = sm_80, block_q = 64, block_k = 64, warps = 4, split_keys = 65>}

// -----

// expected-error @+1 {{'packed_heads' must be in [1, 64], got 0}}
func.func private @plan_packed_heads() attributes {plan = #attn.plan<target = sm_80, block_q = 64, block_k = 64, warps = 4, packed_heads = 0>}

// -----

// expected-error @+2 {{expected one of [cpu, sm_80, sm_90a] for what a kernel is compiled for, got: sm_90}}
// expected-error @+1 {{failed to parse Attn_PlanAttr parameter 'target'}}
func.func private @plan_target() attributes {plan = #attn.plan<target = sm_90, block_q = 64, block_k = 64>}

// -----

// expected-error @+2 {{expected one of [auto, grid, static, dynamic] for who gives a thread block its tiles, got: fair}}
// expected-error @+1 {{failed to parse Attn_PlanAttr parameter 'scheduler'}}
func.func private @plan_scheduler() attributes {plan = #attn.plan<target = sm_90a, block_q = 64, block_k = 64, scheduler = fair>}

// -----

// expected-error @+1 {{struct is missing required parameter: block_k}}
func.func private @plan_incomplete() attributes {plan = #attn.plan<target = cpu, block_q = 64>}

// -----

// expected-error @+2 {{expected one of [tf32x3, ieee] for how kernels for GPUs multiply f32, got: exact}}
// expected-error @+1 {{failed to parse Attn_NumericsAttr parameter 'f32_products'}}
func.func private @numerics_products() attributes {attn.numerics = #attn.numerics<f32_products = exact>}

// -----

func.func @ieee_products_of_bf16(%q: tensor<1x1x?x64xbf16>) {
  // expected-error @+1 {{'attn.attention' op wants f32_products = ieee with a query, key and value of f32 only, got 'bf16'}}
  %o, %lse = attn.attention %q, %q, %q {numerics = #attn.numerics<f32_products = ieee>}
    : (tensor<1x1x?x64xbf16>, tensor<1x1x?x64xbf16>, tensor<1x1x?x64xbf16>)
      -> (tensor<1x1x?x64xbf16>, tensor<1x1x?xf32>)
  return
}

// -----

// expected-error @+1 {{'attn.numerics' must be a #attn.numerics, got true}}
func.func private @numerics_of_another_kind() attributes {attn.numerics = true}

// -----

func.func @numerics_on_no_function() {
  // expected-error @+1 {{'attn.numerics' stands on a function, got 'arith.constant'}}
  %c = arith.constant {attn.numerics = #attn.numerics} 0 : i32
  return
}

// -----

func.func @numerics_on_no_function() {
  // expected-error @+1 {{'attn.numerics' stands on a function, got 'arith.constant'}}
  %c = arith.constant {attn.numerics = #attn.numerics} 0 : i32
  return
}

// -----

// Kernels have plans, functions have none.
// expected-error @+1 {{unknown attribute 'attn.plan' of the attn dialect}}
func.func private @plan_of_a_function() attributes {attn.plan = #attn.plan<target = cpu, block_q = 64, block_k = 64>}

// -----

// expected-error @+1 {{unknown attribute 'attn.speed' of the attn dialect}}
func.func private @unknown_attribute() attributes {attn.speed = 3}

// -----

// expected-error @+1 {{unknown attribute 'attn.name' of the attn dialect on argument 1}}
func.func private @unknown_argument_attribute(i32, i32 {attn.name = "n"})

// -----

// expected-error @+1 {{'attn.aligned' stands on an argument of a function that is a tensor, got argument 0 of 'func.func'}}
func.func private @aligned_number(i32 {attn.aligned})

// -----

// expected-error @+1 {{'attn.aligned' must be a unit attribute, got 16 : i64}}
func.func private @alignment(tensor<?x?xbf16> {attn.aligned = 16})

// -----

// expected-error @+1 {{'attn.constant' must be a unit attribute, got false}}
func.func private @constant(f32 {attn.constant = false})

// -----

// expected-error @+1 {{unknown attribute 'attn.name' of the attn dialect on result 0}}
func.func private @unknown_result_attribute() -> (i32 {attn.name = "n"})

// -----

// expected-error @+1 {{'left' must be in [-1, 1073741824], got -2}}
func.func private @window_left() attributes {test.value = #attn.window<left = -2>}

// -----

// expected-error @+1 {{'right' must be in [-1, 1073741824], got 1073741825}}
func.func private @window_right() attributes {test.value = #attn.window<right = 1073741825>}

// -----

// expected-error @+1 {{softcap wants a float literal like 30.0, got 30 : i64}}
func.func private @softcap_integer() attributes {test.value = #attn.softcap<30>}

// -----

// expected-error @+1 {{softcap must be f32 or f64, got 'f16'}}
func.func private @softcap_type() attributes {test.value = #attn.softcap<30.0 : f16>}

// -----

// expected-error @+1 {{softcap must be positive and finite in f32, got 0.000000e+00 : f64}}
func.func private @softcap_zero() attributes {test.value = #attn.softcap<0.0>}

// -----

// expected-error @+1 {{softcap must be positive and finite in f32, got -3.000000e+00 : f32}}
func.func private @softcap_negative() attributes {test.value = #attn.softcap<-3.0 : f32>}

// -----

// expected-error @+1 {{softcap must be positive and finite in f32, got 0x7F800000 : f32}}
func.func private @softcap_infinite() attributes {test.value = #attn.softcap<0x7F800000 : f32>}

// -----

// expected-error @+1 {{softcap must be positive and finite in f32, got 1.000000e+300 : f64}}
func.func private @softcap_beyond_f32() attributes {test.value = #attn.softcap<1.0e300>}

// -----

// expected-error @+1 {{softcap must be positive and finite in f32, got 1.401300e-45 : f32}}
func.func private @softcap_without_inverse() attributes {test.value = #attn.softcap<1.0e-45 : f32>}

// -----

// What the parser of the operation itself says.
func.func @two_results(%q: tensor<1x1x16x64xf16>) {
  // expected-error @+2 {{wanted two result types, output and lse, got 1}}
  %o, %lse = attn.attention %q, %q, %q
    : (tensor<1x1x16x64xf16>, tensor<1x1x16x64xf16>, tensor<1x1x16x64xf16>) -> tensor<1x1x16x64xf16>
  return
}

// -----

func.func @operand_count(%q: tensor<1x1x16x64xf16>) {
  // expected-error @+1 {{number of operands and types do not match: got 3 operands and 2 types}}
  %o, %lse = attn.attention %q, %q, %q
    : (tensor<1x1x16x64xf16>, tensor<1x1x16x64xf16>)
      -> (tensor<1x1x16x64xf16>, tensor<1x1x16xf32>)
  return
}

// -----

func.func @no_function_type(%q: tensor<1x1x16x64xf16>) {
  // expected-error @+1 {{invalid kind of type specified: expected builtin.function, but found 'tensor<1x1x16x64xf16>'}}
  %o, %lse = attn.attention %q, %q, %q : tensor<1x1x16x64xf16>
  return
}

// -----

func.func @two_operands(%q: tensor<1x1x16x64xf16>) {
  // expected-error @+1 {{expected ','}}
  %o, %lse = attn.attention %q, %q
    : (tensor<1x1x16x64xf16>, tensor<1x1x16x64xf16>) -> (tensor<1x1x16x64xf16>, tensor<1x1x16xf32>)
  return
}

// -----

func.func @empty_region(%q: tensor<1x1x16x64xf16>) {
  %o, %lse = attn.attention %q, %q, %q
    // expected-error @+1 {{'mask' region is empty: wanted an 'attn.yield', or no 'mask' at all}}
    mask() {
    }
    : (tensor<1x1x16x64xf16>, tensor<1x1x16x64xf16>, tensor<1x1x16x64xf16>)
      -> (tensor<1x1x16x64xf16>, tensor<1x1x16xf32>)
  return
}

// -----

func.func @mask_before_score(%q: tensor<1x1x16x64xf16>) {
  %o, %lse = attn.attention %q, %q, %q
    mask(%b: i32, %h: i32, %i: i32, %j: i32) {
      %t = arith.constant true
      attn.yield %t : i1
    // expected-error @+1 {{expected ':'}}
    }
    score(%x: f32, %b: i32, %h: i32, %i: i32, %j: i32) {
      attn.yield %x : f32
    }
    : (tensor<1x1x16x64xf16>, tensor<1x1x16x64xf16>, tensor<1x1x16x64xf16>)
      -> (tensor<1x1x16x64xf16>, tensor<1x1x16xf32>)
  return
}

// -----

func.func @two_blocks(%q: tensor<1x1x16x64xf16>) {
  // expected-error @+1 {{'attn.attention' op region #1 ('mask') failed to verify constraint: region with at most 1 blocks}}
  %o, %lse = attn.attention %q, %q, %q
    mask(%b: i32, %h: i32, %i: i32, %j: i32) {
      cf.br ^done
    ^done:
      %t = arith.constant true
      attn.yield %t : i1
    }
    : (tensor<1x1x16x64xf16>, tensor<1x1x16x64xf16>, tensor<1x1x16x64xf16>)
      -> (tensor<1x1x16x64xf16>, tensor<1x1x16xf32>)
  return
}

// -----

// The generic form skips that parser; the verifier says the rest.
func.func @generic_no_regions(%q: tensor<1x1x16x64xf16>) {
  // expected-error @+1 {{'attn.attention' op expected 2 regions}}
  %o, %lse = "attn.attention"(%q, %q, %q) : (tensor<1x1x16x64xf16>, tensor<1x1x16x64xf16>, tensor<1x1x16x64xf16>) -> (tensor<1x1x16x64xf16>, tensor<1x1x16xf32>)
  return
}

// -----

func.func @generic_two_operands(%q: tensor<1x1x16x64xf16>) {
  // expected-error @+1 {{'attn.attention' op expected 3 or more operands, but found 2}}
  %o, %lse = "attn.attention"(%q, %q) ({}, {}) : (tensor<1x1x16x64xf16>, tensor<1x1x16x64xf16>) -> (tensor<1x1x16x64xf16>, tensor<1x1x16xf32>)
  return
}

// -----

func.func @generic_scalar_query(%q: tensor<1x1x16x64xf16>, %n: i32) {
  // expected-error @+1 {{'attn.attention' op operand #0 must be ranked tensor of any type values, but got 'i32'}}
  %o, %lse = "attn.attention"(%n, %q, %q) <{operandSegmentSizes = array<i32: 1, 1, 1, 0, 0, 0>}> ({}, {}) : (i32, tensor<1x1x16x64xf16>, tensor<1x1x16x64xf16>) -> (tensor<1x1x16x64xf16>, tensor<1x1x16xf32>)
  return
}

// -----

func.func @generic_scalar_result(%q: tensor<1x1x16x64xf16>) {
  // expected-error @+1 {{'attn.attention' op result #1 must be ranked tensor of any type values, but got 'f32'}}
  %o, %lse = "attn.attention"(%q, %q, %q) <{operandSegmentSizes = array<i32: 1, 1, 1, 0, 0, 0>}> ({}, {}) : (tensor<1x1x16x64xf16>, tensor<1x1x16x64xf16>, tensor<1x1x16x64xf16>) -> (tensor<1x1x16x64xf16>, f32)
  return
}

// -----

func.func @generic_three_results(%q: tensor<1x1x16x64xf16>) {
  // expected-error @+1 {{'attn.attention' op expected 2 results}}
  %o:3 = "attn.attention"(%q, %q, %q) <{operandSegmentSizes = array<i32: 1, 1, 1, 0, 0, 0>}> ({}, {}) : (tensor<1x1x16x64xf16>, tensor<1x1x16x64xf16>, tensor<1x1x16x64xf16>) -> (tensor<1x1x16x64xf16>, tensor<1x1x16xf32>, tensor<1x1x16x64xf16>)
  return
}

// -----

func.func @generic_block_arguments(%q: tensor<1x1x16x64xf16>) {
  // expected-error @+1 {{'attn.attention' op wants a mask region over ('i32', 'i32', 'i32', 'i32'), got ('i1')}}
  %o, %lse = "attn.attention"(%q, %q, %q) <{operandSegmentSizes = array<i32: 1, 1, 1, 0, 0, 0>}> ({}, {
  ^bb0(%m: i1):
    "attn.yield"(%m) : (i1) -> ()
  }) : (tensor<1x1x16x64xf16>, tensor<1x1x16x64xf16>, tensor<1x1x16x64xf16>) -> (tensor<1x1x16x64xf16>, tensor<1x1x16xf32>)
  return
}

// -----

func.func @generic_empty_block(%q: tensor<1x1x16x64xf16>) {
  // expected-error @+1 {{empty block: expect at least a terminator}}
  %o, %lse = "attn.attention"(%q, %q, %q) <{operandSegmentSizes = array<i32: 1, 1, 1, 0, 0, 0>}> ({}, {
  ^bb0(%b: i32, %h: i32, %i: i32, %j: i32):
  }) : (tensor<1x1x16x64xf16>, tensor<1x1x16x64xf16>, tensor<1x1x16x64xf16>) -> (tensor<1x1x16x64xf16>, tensor<1x1x16xf32>)
  return
}

// -----

func.func @generic_property_type(%q: tensor<1x1x16x64xf16>) {
  // expected-error @+1 {{invalid properties {scale = 3 : i32} for op attn.attention: Invalid attribute `scale` in property conversion: 3 : i32}}
  %o, %lse = "attn.attention"(%q, %q, %q) <{scale = 3 : i32}> ({}, {}) : (tensor<1x1x16x64xf16>, tensor<1x1x16x64xf16>, tensor<1x1x16x64xf16>) -> (tensor<1x1x16x64xf16>, tensor<1x1x16xf32>)
  return
}

// -----

func.func @generic_segments(%q: tensor<1x1x16x64xf16>) {
  // expected-error @+1 {{'attn.attention' op operand count (3) does not match with the total size (0) specified in attribute 'operandSegmentSizes'}}
  %o, %lse = "attn.attention"(%q, %q, %q) ({}, {}) : (tensor<1x1x16x64xf16>, tensor<1x1x16x64xf16>, tensor<1x1x16x64xf16>) -> (tensor<1x1x16x64xf16>, tensor<1x1x16xf32>)
  return
}

// -----

func.func @attention_c26_rank(%q: tensor<2x4x16x64xf16>, %s: tensor<2x4xf32>) {
  // expected-error @+1 {{'attn.attention' op wants a sink of f16, bf16 or f32 and rank 1, got 'tensor<2x4xf32>'}}
  %o, %lse = attn.attention %q, %q, %q sink(%s) : (tensor<2x4x16x64xf16>, tensor<2x4x16x64xf16>, tensor<2x4x16x64xf16>, tensor<2x4xf32>) -> (tensor<2x4x16x64xf16>, tensor<2x4x16xf32>)
  return
}

// -----

func.func @attention_c26_heads(%q: tensor<2x4x16x64xf16>, %s: tensor<8xf32>) {
  // expected-error @+1 {{'attn.attention' op wants one number of query heads, got 4 in query and 8 in sink}}
  %o, %lse = attn.attention %q, %q, %q sink(%s) : (tensor<2x4x16x64xf16>, tensor<2x4x16x64xf16>, tensor<2x4x16x64xf16>, tensor<8xf32>) -> (tensor<2x4x16x64xf16>, tensor<2x4x16xf32>)
  return
}

// -----

func.func @attention_c26_two(%q: tensor<2x4x16x64xf16>, %s: tensor<4xf32>) {
  // expected-error @+1 {{wants one sink, got 2}}
  %o, %lse = attn.attention %q, %q, %q sink(%s, %s) : (tensor<2x4x16x64xf16>, tensor<2x4x16x64xf16>, tensor<2x4x16x64xf16>, tensor<4xf32>, tensor<4xf32>) -> (tensor<2x4x16x64xf16>, tensor<2x4x16xf32>)
  return
}

// -----

func.func @attention_c27_key(%q: tensor<2x4x16x64xf16>, %s: i32) {
  // expected-error @+1 {{'attn.attention' op wants two words of dropout key, seed and offset, got 1}}
  %o, %lse = attn.attention %q, %q, %q dropout(%s) {dropout_p = 0.5} : (tensor<2x4x16x64xf16>, tensor<2x4x16x64xf16>, tensor<2x4x16x64xf16>, i32) -> (tensor<2x4x16x64xf16>, tensor<2x4x16xf32>)
  return
}

// -----

func.func @attention_c27_no_p(%q: tensor<2x4x16x64xf16>, %s: i32) {
  // expected-error @+1 {{'attn.attention' op wants dropout_p and a dropout key together, got no dropout_p}}
  %o, %lse = attn.attention %q, %q, %q dropout(%s, %s) : (tensor<2x4x16x64xf16>, tensor<2x4x16x64xf16>, tensor<2x4x16x64xf16>, i32, i32) -> (tensor<2x4x16x64xf16>, tensor<2x4x16xf32>)
  return
}

// -----

func.func @attention_c27_no_key(%q: tensor<2x4x16x64xf16>) {
  // expected-error @+1 {{'attn.attention' op wants dropout_p and a dropout key together, got no key}}
  %o, %lse = attn.attention %q, %q, %q {dropout_p = 0.5} : (tensor<2x4x16x64xf16>, tensor<2x4x16x64xf16>, tensor<2x4x16x64xf16>) -> (tensor<2x4x16x64xf16>, tensor<2x4x16xf32>)
  return
}

// -----

func.func @attention_c27_range(%q: tensor<2x4x16x64xf16>, %s: i32) {
  // expected-error @+1 {{'attn.attention' op wants dropout_p in [0, 1), got 1.000000e+00 : f64}}
  %o, %lse = attn.attention %q, %q, %q dropout(%s, %s) {dropout_p = 1.0} : (tensor<2x4x16x64xf16>, tensor<2x4x16x64xf16>, tensor<2x4x16x64xf16>, i32, i32) -> (tensor<2x4x16x64xf16>, tensor<2x4x16xf32>)
  return
}

// -----

func.func @attention_c28_range(%q: tensor<2x4x16x64xf16>, %s: tensor<4xi32>) {
  // expected-error @+1 {{'attn.attention' op wants sorted_captures below the number of captures, 1, got 1}}
  %o, %lse = attn.attention %q, %q, %q captures(%s) {sorted_captures = array<i64: 1>} : (tensor<2x4x16x64xf16>, tensor<2x4x16x64xf16>, tensor<2x4x16x64xf16>, tensor<4xi32>) -> (tensor<2x4x16x64xf16>, tensor<2x4x16xf32>)
  return
}

// -----

func.func @attention_c28_twice(%q: tensor<2x4x16x64xf16>, %s: tensor<4xi32>) {
  // expected-error @+1 {{'attn.attention' op wants sorted_captures to list a capture once, got twice 0}}
  %o, %lse = attn.attention %q, %q, %q captures(%s) {sorted_captures = array<i64: 0, 0>} : (tensor<2x4x16x64xf16>, tensor<2x4x16x64xf16>, tensor<2x4x16x64xf16>, tensor<4xi32>) -> (tensor<2x4x16x64xf16>, tensor<2x4x16xf32>)
  return
}

// -----

func.func @attention_c28_type(%q: tensor<2x4x16x64xf16>, %s: tensor<4xf32>) {
  // expected-error @+1 {{'attn.attention' op wants sorted capture #0 to be a tensor of integers of rank 1 or more, got 'tensor<4xf32>'}}
  %o, %lse = attn.attention %q, %q, %q captures(%s) {sorted_captures = array<i64: 0>} : (tensor<2x4x16x64xf16>, tensor<2x4x16x64xf16>, tensor<2x4x16x64xf16>, tensor<4xf32>) -> (tensor<2x4x16x64xf16>, tensor<2x4x16xf32>)
  return
}

// -----

func.func @capture_search_c1_rank(%q: tensor<2x4x16x64xf16>, %s: tensor<i32>) {
  %o, %lse = attn.attention %q, %q, %q captures(%s)
    mask(%b: i32, %h: i32, %i: i32, %j: i32, %t: tensor<i32>) {
      // expected-error @+1 {{'attn.capture_search' op searches a tensor of i32 and rank 1 or more, got 'tensor<i32>'}}
      %n = attn.capture_search %t[], %i : tensor<i32>
      %m = arith.cmpi sge, %i, %n : i32
      attn.yield %m : i1
    } : (tensor<2x4x16x64xf16>, tensor<2x4x16x64xf16>, tensor<2x4x16x64xf16>, tensor<i32>) -> (tensor<2x4x16x64xf16>, tensor<2x4x16xf32>)
  return
}

// -----

func.func @capture_search_c1_element(%q: tensor<2x4x16x64xf16>, %s: tensor<4xi64>) {
  %o, %lse = attn.attention %q, %q, %q captures(%s)
    mask(%b: i32, %h: i32, %i: i32, %j: i32, %t: tensor<4xi64>) {
      // expected-error @+1 {{'attn.capture_search' op searches a tensor of i32 and rank 1 or more, got 'tensor<4xi64>'}}
      %n = attn.capture_search %t[], %i : tensor<4xi64>
      %m = arith.cmpi sge, %i, %n : i32
      attn.yield %m : i1
    } : (tensor<2x4x16x64xf16>, tensor<2x4x16x64xf16>, tensor<2x4x16x64xf16>, tensor<4xi64>) -> (tensor<2x4x16x64xf16>, tensor<2x4x16xf32>)
  return
}

// -----

func.func @capture_search_c1_indices(%q: tensor<2x4x16x64xf16>, %s: tensor<4x4xi32>) {
  %o, %lse = attn.attention %q, %q, %q captures(%s)
    mask(%b: i32, %h: i32, %i: i32, %j: i32, %t: tensor<4x4xi32>) {
      // expected-error @+1 {{'attn.capture_search' op searches a tensor of rank 2 and wants 1 leading indices, got 0}}
      %n = attn.capture_search %t[], %i : tensor<4x4xi32>
      %m = arith.cmpi sge, %i, %n : i32
      attn.yield %m : i1
    } : (tensor<2x4x16x64xf16>, tensor<2x4x16x64xf16>, tensor<2x4x16x64xf16>, tensor<4x4xi32>) -> (tensor<2x4x16x64xf16>, tensor<2x4x16xf32>)
  return
}

// -----

// expected-error @+2 {{'tile-expand-softmax' is no optional pass, expected one of tile-order-blocks, tile-list-blocks, }}
// expected-error @+1 {{failed to parse Attn_PlanAttr parameter 'without'}}
func.func private @plan_of_no_pass() attributes {plan = #attn.plan<target = cpu, block_q = 64, block_k = 64, without = ["tile-expand-softmax"]>}

// -----

// expected-error @+1 {{'warp-persist' is no optional pass on the way to sm_80, expected one of tile-order-blocks, }}
func.func private @plan_of_another_target() attributes {plan = #attn.plan<target = sm_80, block_q = 64, block_k = 64, with = ["warp-persist"]>}

// -----

// expected-error @+1 {{got without = [] and with = ["tile-lazy-max"], expected [] and []: what differs from the default of sm_80, in the order in which the passes run}}
func.func private @plan_with_the_default() attributes {plan = #attn.plan<target = sm_80, block_q = 64, block_k = 64, with = ["tile-lazy-max"]>}

// -----

// expected-error @+1 {{got without = ["tile-lazy-max", "tile-peel-masks"] and with = [], expected ["tile-peel-masks"] and []: what differs from the default of cpu}}
func.func private @plan_without_the_default() attributes {plan = #attn.plan<target = cpu, block_q = 64, block_k = 64, without = ["tile-lazy-max", "tile-peel-masks"]>}

// -----

// expected-error @+1 {{got without = ["tile-peel-masks", "tile-order-blocks", "tile-peel-masks"] and with = [], expected ["tile-order-blocks", "tile-peel-masks"] and []}}
func.func private @plan_out_of_order() attributes {plan = #attn.plan<target = cpu, block_q = 64, block_k = 64, without = ["tile-peel-masks", "tile-order-blocks", "tile-peel-masks"]>}

// -----

// expected-error @+1 {{got without = ["warp-double-buffer"] and with = ["warp-double-buffer"], expected [] and ["warp-double-buffer"]}}
func.func private @plan_with_and_without() attributes {plan = #attn.plan<target = sm_90a, block_q = 64, block_k = 64, without = ["warp-double-buffer"], with = ["warp-double-buffer"]>}

// -----

// expected-error @+1 {{'consumer_registers': got 236 registers per thread, expected a multiple of 8 in [24, 240] with 8 warps}}
func.func private @plan_registers() attributes {plan = #attn.plan<target = sm_90a, block_q = 128, block_k = 64, warps = 8, consumer_registers = 236>}

// -----

// expected-error @+1 {{'consumer_registers': got 232, what it is by default: expected it left out}}
func.func private @plan_registers_by_default() attributes {plan = #attn.plan<target = sm_90a, block_q = 128, block_k = 64, warps = 8, consumer_registers = 232>}

// -----

// expected-error @+1 {{'consumer_registers': got 240 of a kernel without roles}}
func.func private @plan_registers_of_a_target() attributes {plan = #attn.plan<target = sm_80, block_q = 128, block_k = 64, warps = 8, consumer_registers = 240>}

// -----

// expected-error @+1 {{'consumer_registers': got 240 of a kernel without roles}}
func.func private @plan_registers_without_roles() attributes {plan = #attn.plan<target = sm_90a, block_q = 128, block_k = 64, warps = 8, consumer_registers = 240, without = ["warp-specialize"]>}

// -----

// expected-error @+1 {{'blocks_per_sm': got 2 of a kernel without roles}}
func.func private @plan_blocks_of_a_target() attributes {plan = #attn.plan<target = sm_80, block_q = 64, block_k = 64, warps = 4, blocks_per_sm = 2>}

// -----

// expected-error @+1 {{'blocks_per_sm' must be in [1, 8], got 9}}
func.func private @plan_blocks() attributes {plan = #attn.plan<target = sm_90a, block_q = 64, block_k = 64, warps = 4, blocks_per_sm = 9>}

// -----

// expected-error @+1 {{'consumer_registers': got 240 registers per thread, expected a multiple of 8 in [24, 232] with 4 warps}}
func.func private @plan_registers_of_blocks() attributes {plan = #attn.plan<target = sm_90a, block_q = 64, block_k = 64, warps = 4, consumer_registers = 240, blocks_per_sm = 2>}
