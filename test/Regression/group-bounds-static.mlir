// Where the number of key blocks is known the loops of the role that copies must
// not fold: those of the role that computes depend on the group and do not.
// RUN: attn-opt %s --attn-sm90 | FileCheck %s
// RUN: attn-opt %s --attn-sm90=peel-masks=false | FileCheck %s
// RUN: attn-opt %s --attn-sm90="overlap-products=false persist=false" | FileCheck %s

// CHECK-LABEL: func.func @ragged(
// CHECK: gpu.launch_func
func.func @ragged(%q: tensor<1x2x300x32xbf16>, %k: tensor<1x2x129x32xbf16>,
                  %v: tensor<1x2x129x32xbf16>) -> (tensor<1x2x300x32xbf16>, tensor<1x2x300xf32>) {
  %o, %lse = attn.attention %q, %k, %v {plan = #attn.plan<target = sm_90a, block_q = 128, block_k = 64, warps = 8, stages = 2>}
    : (tensor<1x2x300x32xbf16>, tensor<1x2x129x32xbf16>, tensor<1x2x129x32xbf16>)
      -> (tensor<1x2x300x32xbf16>, tensor<1x2x300xf32>)
  return %o, %lse : tensor<1x2x300x32xbf16>, tensor<1x2x300xf32>
}

// One block of keys.
// CHECK-LABEL: func.func @one(
// CHECK: gpu.launch_func
func.func @one(%q: tensor<1x1x100x64xbf16>, %k: tensor<1x1x5x64xbf16>,
               %v: tensor<1x1x5x64xbf16>) -> (tensor<1x1x100x64xbf16>, tensor<1x1x100xf32>) {
  %o, %lse = attn.attention %q, %k, %v {variants = [#attn.causal], plan = #attn.plan<target = sm_90a, block_q = 128, block_k = 128, warps = 8, stages = 2>}
    : (tensor<1x1x100x64xbf16>, tensor<1x1x5x64xbf16>, tensor<1x1x5x64xbf16>)
      -> (tensor<1x1x100x64xbf16>, tensor<1x1x100xf32>)
  return %o, %lse : tensor<1x1x100x64xbf16>, tensor<1x1x100xf32>
}

// Blocks that a group passes over at both ends, of a range that is known.
// CHECK-LABEL: func.func @both_ends(
// CHECK: gpu.launch_func
func.func @both_ends(%q: tensor<1x1x512x64xbf16>, %k: tensor<1x1x100x64xbf16>,
                     %v: tensor<1x1x100x64xbf16>) -> (tensor<1x1x512x64xbf16>, tensor<1x1x512xf32>) {
  %o, %lse = attn.attention %q, %k, %v {variants = [#attn.window<left = 0, right = 64>], plan = #attn.plan<target = sm_90a, block_q = 256, block_k = 64, warps = 16, stages = 2>}
    : (tensor<1x1x512x64xbf16>, tensor<1x1x100x64xbf16>, tensor<1x1x100x64xbf16>)
      -> (tensor<1x1x512x64xbf16>, tensor<1x1x512xf32>)
  return %o, %lse : tensor<1x1x512x64xbf16>, tensor<1x1x512xf32>
}
