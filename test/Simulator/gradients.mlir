// Each line is a kernel, run under four schedules of its warps, and compared.

// DEFINE: %{any} = attn-simulate %s --target=sm_80 --backward --function=causal --shape=b=1,h=2,hkv=1,sq=130,sk=150
// DEFINE: %{fixed} = attn-simulate %s --target=sm_80 --backward --function=fixed --shape=b=1,h=2,hkv=1,sq=130,sk=150
// RUN: %{any} --plan="#attn.plan<target = sm_80, block_q = 64, block_k = 64, warps = 4, stages = 2>" | FileCheck %s
// Half of the warps have half of the columns of d_q.
// RUN: %{any} --plan="#attn.plan<target = sm_80, block_q = 128, block_k = 32, warps = 4, stages = 2>" | FileCheck %s
// RUN: %{any} --plan="#attn.plan<target = sm_80, block_q = 128, block_k = 64, warps = 8, stages = 3>" | FileCheck %s
// Taller blocks for d_q.
// RUN: %{fixed} --plan="#attn.plan<target = sm_80, block_q = 64, block_k = 64, warps = 4, stages = 2>" | FileCheck %s
// RUN: %{fixed} --plan="#attn.plan<target = sm_80, block_q = 128, block_k = 64, warps = 8, stages = 2>" | FileCheck %s
// Three programs, with rings of one slot and of two, and stores via the slots of
// keys and queries.
// RUN: attn-simulate %s --target=sm_90a --backward --function=wide --shape=b=1,h=2,hkv=1,sq=130,sk=150 | FileCheck %s

// CHECK: 4 schedules; d_q: error
func.func @causal(%q: tensor<?x?x?x64xbf16>, %k: tensor<?x?x?x64xbf16>, %v: tensor<?x?x?x64xbf16>) -> (tensor<?x?x?x64xbf16>, tensor<?x?x?xf32>) {
  %o, %lse = attn.attention %q, %k, %v {variants = [#attn.causal], numerics = #attn.numerics<deterministic = false>}
    : (tensor<?x?x?x64xbf16>, tensor<?x?x?x64xbf16>, tensor<?x?x?x64xbf16>)
      -> (tensor<?x?x?x64xbf16>, tensor<?x?x?xf32>)
  return %o, %lse : tensor<?x?x?x64xbf16>, tensor<?x?x?xf32>
}

func.func @fixed(%q: tensor<?x?x?x64xbf16>, %k: tensor<?x?x?x64xbf16>, %v: tensor<?x?x?x64xbf16>) -> (tensor<?x?x?x64xbf16>, tensor<?x?x?xf32>) {
  %o, %lse = attn.attention %q, %k, %v {variants = [#attn.causal]}
    : (tensor<?x?x?x64xbf16>, tensor<?x?x?x64xbf16>, tensor<?x?x?x64xbf16>)
      -> (tensor<?x?x?x64xbf16>, tensor<?x?x?xf32>)
  return %o, %lse : tensor<?x?x?x64xbf16>, tensor<?x?x?xf32>
}

func.func @wide(%q: tensor<?x?x?x256xbf16>, %k: tensor<?x?x?x256xbf16>, %v: tensor<?x?x?x256xbf16>) -> (tensor<?x?x?x256xbf16>, tensor<?x?x?xf32>) {
  %o, %lse = attn.attention %q, %k, %v {variants = [#attn.causal]}
    : (tensor<?x?x?x256xbf16>, tensor<?x?x?x256xbf16>, tensor<?x?x?x256xbf16>)
      -> (tensor<?x?x?x256xbf16>, tensor<?x?x?xf32>)
  return %o, %lse : tensor<?x?x?x256xbf16>, tensor<?x?x?xf32>
}
