// RUN: attn-opt %s --split-input-file --attn-plan=target=sm_80 --verify-diagnostics

func.func @shared_bytes(%q: tensor<1x1x?x256xf16>, %k: tensor<1x1x?x256xf16>)
    -> tensor<1x1x?x256xf16> {
  // expected-error @below {{plan is not feasible: Q tile 65536 B + K ring 2 x 65536 B + V ring 2 x 65536 B = 327680 B, sm_80 has 166912 B}}
  %o, %lse = attn.attention %q, %k, %k
    {plan = #attn.plan<target = sm_80, block_q = 128, block_k = 128, warps = 8, stages = 2>}
    : (tensor<1x1x?x256xf16>, tensor<1x1x?x256xf16>, tensor<1x1x?x256xf16>) -> (tensor<1x1x?x256xf16>, tensor<1x1x?xf32>)
  return %o : tensor<1x1x?x256xf16>
}

// -----

func.func @scheduler(%q: tensor<1x1x?x64xf16>) -> tensor<1x1x?x64xf16> {
  // expected-error @below {{plan is not feasible: scheduler is dynamic, expected auto or grid on sm_80}}
  %o, %lse = attn.attention %q, %q, %q
    {plan = #attn.plan<target = sm_80, block_q = 64, block_k = 64, warps = 4, scheduler = dynamic>}
    : (tensor<1x1x?x64xf16>, tensor<1x1x?x64xf16>, tensor<1x1x?x64xf16>) -> (tensor<1x1x?x64xf16>, tensor<1x1x?xf32>)
  return %o : tensor<1x1x?x64xf16>
}

// -----

func.func @shared_bytes_of_f32(%q: tensor<1x1x?x128xf32>, %k: tensor<1x1x?x128xf32>)
    -> tensor<1x1x?x128xf32> {
  // expected-error @below {{plan is not feasible: Q tile 65536 B + K ring 2 x 32768 B + V ring 2 x 32768 B = 196608 B, sm_80 has 166912 B}}
  %o, %lse = attn.attention %q, %k, %k
    {plan = #attn.plan<target = sm_80, block_q = 128, block_k = 64, warps = 8, stages = 2>}
    : (tensor<1x1x?x128xf32>, tensor<1x1x?x128xf32>, tensor<1x1x?x128xf32>) -> (tensor<1x1x?x128xf32>, tensor<1x1x?xf32>)
  return %o : tensor<1x1x?x128xf32>
}

// -----

// With products of TF32 it would fit: 32 less.
func.func @registers_of_multiply_adds(%q: tensor<1x1x?x128xf32>) -> tensor<1x1x?x128xf32> {
  // expected-error @below {{plan is not feasible: about 268 registers per thread, sm_80 has 255}}
  %o, %lse = attn.attention %q, %q, %q
    {plan = #attn.plan<target = sm_80, block_q = 128, block_k = 48, warps = 4>,
     numerics = #attn.numerics<f32_products = ieee>}
    : (tensor<1x1x?x128xf32>, tensor<1x1x?x128xf32>, tensor<1x1x?x128xf32>) -> (tensor<1x1x?x128xf32>, tensor<1x1x?xf32>)
  return %o : tensor<1x1x?x128xf32>
}

// -----

func.func @registers(%q: tensor<1x1x?x256xf16>, %k: tensor<1x1x?x256xf16>)
    -> tensor<1x1x?x256xf16> {
  // expected-error @below {{plan is not feasible: about 380 registers per thread, sm_80 has 255}}
  %o, %lse = attn.attention %q, %k, %k
    {plan = #attn.plan<target = sm_80, block_q = 128, block_k = 64, warps = 4>}
    : (tensor<1x1x?x256xf16>, tensor<1x1x?x256xf16>, tensor<1x1x?x256xf16>) -> (tensor<1x1x?x256xf16>, tensor<1x1x?xf32>)
  return %o : tensor<1x1x?x256xf16>
}

// -----

func.func @rows_per_warp(%q: tensor<1x1x?x64xf16>, %k: tensor<1x1x?x64xf16>)
    -> tensor<1x1x?x64xf16> {
  // expected-error @below {{plan is not feasible: block_q = 96 is not a multiple of 64, 16 rows per warp}}
  %o, %lse = attn.attention %q, %k, %k
    {plan = #attn.plan<target = sm_80, block_q = 96, block_k = 64, warps = 4>}
    : (tensor<1x1x?x64xf16>, tensor<1x1x?x64xf16>, tensor<1x1x?x64xf16>) -> (tensor<1x1x?x64xf16>, tensor<1x1x?xf32>)
  return %o : tensor<1x1x?x64xf16>
}

// -----

func.func @keys_per_step(%q: tensor<1x1x?x64xf16>, %k: tensor<1x1x?x64xf16>)
    -> tensor<1x1x?x64xf16> {
  // expected-error @below {{plan is not feasible: block_k = 40 is not a multiple of 16, the depth of a matrix instruction}}
  %o, %lse = attn.attention %q, %k, %k
    {plan = #attn.plan<target = sm_80, block_q = 64, block_k = 40, warps = 4>}
    : (tensor<1x1x?x64xf16>, tensor<1x1x?x64xf16>, tensor<1x1x?x64xf16>) -> (tensor<1x1x?x64xf16>, tensor<1x1x?xf32>)
  return %o : tensor<1x1x?x64xf16>
}

// -----

func.func @warps(%q: tensor<1x1x?x64xf16>, %k: tensor<1x1x?x64xf16>)
    -> tensor<1x1x?x64xf16> {
  // expected-error @below {{plan is not feasible: warps = 3, sm_80 takes 1, 2, 4 or 8}}
  %o, %lse = attn.attention %q, %k, %k
    {plan = #attn.plan<target = sm_80, block_q = 48, block_k = 64, warps = 3>}
    : (tensor<1x1x?x64xf16>, tensor<1x1x?x64xf16>, tensor<1x1x?x64xf16>) -> (tensor<1x1x?x64xf16>, tensor<1x1x?xf32>)
  return %o : tensor<1x1x?x64xf16>
}

// -----

func.func @stages(%q: tensor<1x1x?x64xf16>, %k: tensor<1x1x?x64xf16>)
    -> tensor<1x1x?x64xf16> {
  // expected-error @below {{plan is not feasible: stages = 5, sm_80 takes 1 to 4}}
  %o, %lse = attn.attention %q, %k, %k
    {plan = #attn.plan<target = sm_80, block_q = 64, block_k = 16, warps = 4, stages = 5>}
    : (tensor<1x1x?x64xf16>, tensor<1x1x?x64xf16>, tensor<1x1x?x64xf16>) -> (tensor<1x1x?x64xf16>, tensor<1x1x?xf32>)
  return %o : tensor<1x1x?x64xf16>
}

// -----

func.func @scores_of_no_gradients(%q: tensor<1x1x?x64xf16>) -> tensor<1x1x?x64xf16> {
  // expected-error @below {{plan is not feasible: scores is twice, expected auto of what is no gradients}}
  %o, %lse = attn.attention %q, %q, %q
    {plan = #attn.plan<target = sm_80, block_q = 64, block_k = 64, warps = 4, scores = twice>}
    : (tensor<1x1x?x64xf16>, tensor<1x1x?x64xf16>, tensor<1x1x?x64xf16>) -> (tensor<1x1x?x64xf16>, tensor<1x1x?xf32>)
  return %o : tensor<1x1x?x64xf16>
}
