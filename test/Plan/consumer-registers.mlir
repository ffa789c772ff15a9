// The plan may say how many registers the threads that compute have; the others
// have what is left, until the assembler's instruction.
// RUN: attn-compile %s --function=split --target=sm_90a --emit=warp | FileCheck %s --check-prefix=WARP
// RUN: attn-compile %s --function=split --target=sm_90a --emit=ptx | FileCheck %s --check-prefix=PTX
// RUN: attn-compile %s --function=split --target=sm_90a --emit=tile --disable-pass=warp-specialize | FileCheck %s --check-prefix=ONE
// RUN: not attn-compile %s --function=wide --target=sm_90a --emit=tile 2>&1 | FileCheck %s --check-prefix=WIDE

// WARP: warp.kernel @split {{.*}} warps(12) stages(2) registers(240) shared(
// WARP-DAG: warp.role @load copy warps(4) registers(24)
// WARP-DAG: warp.role @softmax compute warps(8) registers(240)
// PTX-DAG: setmaxnreg.dec.sync.aligned.u32 24;
// PTX-DAG: setmaxnreg.inc.sync.aligned.u32 240;
// Without roles there is nothing to share.
// ONE: plan(#attn.plan<target = sm_90a, block_q = 128, block_k = 64, warps = 8, stages = 2, without = ["warp-specialize"]>)
func.func @split(%q: tensor<2x16x?x64xbf16>, %k: tensor<2x16x?x64xbf16>)
    -> tensor<2x16x?x64xbf16> {
  %o, %lse = attn.attention %q, %k, %k
    {plan = #attn.plan<target = sm_90a, block_q = 128, block_k = 64, warps = 8, stages = 2, consumer_registers = 240>}
    : (tensor<2x16x?x64xbf16>, tensor<2x16x?x64xbf16>, tensor<2x16x?x64xbf16>)
      -> (tensor<2x16x?x64xbf16>, tensor<2x16x?xf32>)
  return %o : tensor<2x16x?x64xbf16>
}

// WIDE: error: 'attn.attention' op plan is not feasible: consumer_registers = 240, expected none: such a kernel has no roles
func.func @wide(%q: tensor<2x16x?x64xf32>, %k: tensor<2x16x?x64xf32>)
    -> tensor<2x16x?x64xf32> {
  %o, %lse = attn.attention %q, %k, %k
    {plan = #attn.plan<target = sm_90a, block_q = 128, block_k = 32, warps = 8, consumer_registers = 240>}
    : (tensor<2x16x?x64xf32>, tensor<2x16x?x64xf32>, tensor<2x16x?x64xf32>)
      -> (tensor<2x16x?x64xf32>, tensor<2x16x?xf32>)
  return %o : tensor<2x16x?x64xf32>
}
