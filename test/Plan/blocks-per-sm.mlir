// Several blocks with roles share the registers and the shared memory of a
// multiprocessor.
// RUN: attn-compile %s --function=few --target=sm_90a --emit=warp | FileCheck %s --check-prefix=WARP
// RUN: attn-compile %s --function=few --target=sm_90a --emit=ptx | FileCheck %s --check-prefix=PTX
// RUN: attn-compile %s --function=few --target=sm_90a --emit=tile --disable-pass=warp-specialize | FileCheck %s --check-prefix=ONE
// RUN: not attn-compile %s --function=large --target=sm_90a --emit=tile 2>&1 | FileCheck %s --check-prefix=LARGE
// RUN: not attn-compile %s --function=stays --target=sm_90a --emit=tile 2>&1 | FileCheck %s --check-prefix=STAYS
// RUN: not attn-compile %s --function=ieee --target=sm_90a --emit=tile 2>&1 | FileCheck %s --check-prefix=IEEE
// RUN: not attn-compile %s --function=few --backward --target=sm_90a --emit=tile --plan='#attn.plan<target = sm_90a, block_q = 64, block_k = 64, warps = 4, scheduler = grid, blocks_per_sm = 2>' 2>&1 | FileCheck %s --check-prefix=BACKWARD

// Where it spills it still shares: it is not assembled again for one block.
// RUN: rm -f %t.count && env COUNT=%t.count SPILLS="48 0" attn-compile %s --function=wanted --target=sm_90a --ptxas=%S/../Pipelines/Inputs/saving-ptxas -o %t.attn
// RUN: wc -l < %t.count | FileCheck %s --check-prefix=RUNS
// RUNS: {{^1$}}

// WARP: warp.kernel @few {{.*}} warps(8) stages(2) per_sm(2) shared({{[0-9]+}}) scheduler(grid)
// WARP-DAG: warp.role @load copy warps(4) registers(40)
// WARP-DAG: warp.role @softmax compute warps(4) registers(216)
// PTX: .minnctapersm 2
// PTX-DAG: setmaxnreg.dec.sync.aligned.u32 40;
// PTX-DAG: setmaxnreg.inc.sync.aligned.u32 216;
// Without roles registers are not shared.
// ONE: plan(#attn.plan<target = sm_90a, block_q = 64, block_k = 64, warps = 4, stages = 2, scheduler = grid, without = ["warp-specialize"]>)
// BACKWARD: blocks_per_sm = 2, gradients take 1: only attention itself shares a multiprocessor
func.func @few(%q: tensor<2x16x?x128xbf16>, %k: tensor<2x16x?x128xbf16>, %v: tensor<2x16x?x128xbf16>) -> (tensor<2x16x?x128xbf16>, tensor<2x16x?xf32>) {
  %o, %lse = attn.attention %q, %k, %v
    {plan = #attn.plan<target = sm_90a, block_q = 64, block_k = 64, warps = 4, stages = 2, scheduler = grid, blocks_per_sm = 2>}
    : (tensor<2x16x?x128xbf16>, tensor<2x16x?x128xbf16>, tensor<2x16x?x128xbf16>)
      -> (tensor<2x16x?x128xbf16>, tensor<2x16x?xf32>)
  return %o, %lse : tensor<2x16x?x128xbf16>, tensor<2x16x?xf32>
}

// LARGE: plan is not feasible: Q tile 16384 B + K ring 4 x 16384 B + V ring 4 x 16384 B + barriers 144 B = 147600 B, each of 2 blocks of a multiprocessor has 115712 B
func.func @large(%q: tensor<2x16x?x128xbf16>, %k: tensor<2x16x?x128xbf16>) -> tensor<2x16x?x128xbf16> {
  %o, %lse = attn.attention %q, %k, %k
    {plan = #attn.plan<target = sm_90a, block_q = 64, block_k = 64, warps = 4, stages = 4, scheduler = grid, blocks_per_sm = 2>}
    : (tensor<2x16x?x128xbf16>, tensor<2x16x?x128xbf16>, tensor<2x16x?x128xbf16>)
      -> (tensor<2x16x?x128xbf16>, tensor<2x16x?xf32>)
  return %o : tensor<2x16x?x128xbf16>
}

// STAYS: plan is not feasible: blocks_per_sm = 2, expected scheduler = grid: other blocks stay, one for each multiprocessor
func.func @stays(%q: tensor<2x16x?x128xbf16>, %k: tensor<2x16x?x128xbf16>) -> tensor<2x16x?x128xbf16> {
  %o, %lse = attn.attention %q, %k, %k
    {plan = #attn.plan<target = sm_90a, block_q = 64, block_k = 64, warps = 4, stages = 2, blocks_per_sm = 2>}
    : (tensor<2x16x?x128xbf16>, tensor<2x16x?x128xbf16>, tensor<2x16x?x128xbf16>)
      -> (tensor<2x16x?x128xbf16>, tensor<2x16x?xf32>)
  return %o : tensor<2x16x?x128xbf16>
}

// IEEE: plan is not feasible: blocks_per_sm = 2, expected 1: such a kernel has no roles
func.func @ieee(%q: tensor<2x16x?x64xf32>, %k: tensor<2x16x?x64xf32>) -> tensor<2x16x?x64xf32> {
  %o, %lse = attn.attention %q, %k, %k
    {plan = #attn.plan<target = sm_90a, block_q = 64, block_k = 32, warps = 4, scheduler = grid, blocks_per_sm = 2>}
    : (tensor<2x16x?x64xf32>, tensor<2x16x?x64xf32>, tensor<2x16x?x64xf32>)
      -> (tensor<2x16x?x64xf32>, tensor<2x16x?xf32>)
  return %o : tensor<2x16x?x64xf32>
}

func.func @wanted(%q: tensor<2x16x?x128xbf16>, %k: tensor<2x16x?x128xbf16>) -> tensor<2x16x?x128xbf16> {
  %o, %lse = attn.attention %q, %k, %k
    {plan = #attn.plan<target = sm_90a, block_q = 64, block_k = 64, warps = 4, stages = 2, scheduler = grid, blocks_per_sm = 2>}
    : (tensor<2x16x?x128xbf16>, tensor<2x16x?x128xbf16>, tensor<2x16x?x128xbf16>)
      -> (tensor<2x16x?x128xbf16>, tensor<2x16x?xf32>)
  return %o : tensor<2x16x?x128xbf16>
}
