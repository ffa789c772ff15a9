// RUN: attn-opt %s --split-input-file --attn-plan=target=cpu --verify-diagnostics

func.func @cpu_warps(%q: tensor<1x1x?x64xf16>, %k: tensor<1x1x?x64xf16>)
    -> tensor<1x1x?x64xf16> {
  // expected-error @below {{plan is not feasible: warps = 4, cpu takes 1}}
  %o, %lse = attn.attention %q, %k, %k
    {plan = #attn.plan<target = cpu, block_q = 64, block_k = 16, warps = 4>}
    : (tensor<1x1x?x64xf16>, tensor<1x1x?x64xf16>, tensor<1x1x?x64xf16>) -> (tensor<1x1x?x64xf16>, tensor<1x1x?xf32>)
  return %o : tensor<1x1x?x64xf16>
}

// -----

func.func @cpu_stages(%q: tensor<1x1x?x64xf16>, %k: tensor<1x1x?x64xf16>)
    -> tensor<1x1x?x64xf16> {
  // expected-error @below {{plan is not feasible: stages = 2, cpu takes 1}}
  %o, %lse = attn.attention %q, %k, %k
    {plan = #attn.plan<target = cpu, block_q = 64, block_k = 16, stages = 2>}
    : (tensor<1x1x?x64xf16>, tensor<1x1x?x64xf16>, tensor<1x1x?x64xf16>) -> (tensor<1x1x?x64xf16>, tensor<1x1x?xf32>)
  return %o : tensor<1x1x?x64xf16>
}

// -----

func.func @cpu_registers(%q: tensor<1x1x?x64xf16>, %k: tensor<1x1x?x64xf16>)
    -> tensor<1x1x?x64xf16> {
  // expected-error @below {{plan is not feasible: q_in_registers = true, cpu has no register tiles}}
  %o, %lse = attn.attention %q, %k, %k
    {plan = #attn.plan<target = cpu, block_q = 64, block_k = 16, q_in_registers = true>}
    : (tensor<1x1x?x64xf16>, tensor<1x1x?x64xf16>, tensor<1x1x?x64xf16>) -> (tensor<1x1x?x64xf16>, tensor<1x1x?xf32>)
  return %o : tensor<1x1x?x64xf16>
}

// -----

func.func @cpu_block_q(%q: tensor<1x1x?x64xf16>, %k: tensor<1x1x?x64xf16>)
    -> tensor<1x1x?x64xf16> {
  // expected-error @below {{plan is not feasible: block_q = 1025, cpu takes at most 1024}}
  %o, %lse = attn.attention %q, %k, %k
    {plan = #attn.plan<target = cpu, block_q = 1025, block_k = 16>}
    : (tensor<1x1x?x64xf16>, tensor<1x1x?x64xf16>, tensor<1x1x?x64xf16>) -> (tensor<1x1x?x64xf16>, tensor<1x1x?xf32>)
  return %o : tensor<1x1x?x64xf16>
}

// -----

func.func @cpu_block_k(%q: tensor<1x1x?x64xf16>, %k: tensor<1x1x?x64xf16>)
    -> tensor<1x1x?x64xf16> {
  // expected-error @below {{plan is not feasible: block_k = 1025, cpu takes at most 1024}}
  %o, %lse = attn.attention %q, %k, %k
    {plan = #attn.plan<target = cpu, block_q = 1, block_k = 1025>}
    : (tensor<1x1x?x64xf16>, tensor<1x1x?x64xf16>, tensor<1x1x?x64xf16>) -> (tensor<1x1x?x64xf16>, tensor<1x1x?xf32>)
  return %o : tensor<1x1x?x64xf16>
}
