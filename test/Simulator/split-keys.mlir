// Keys in parts, in both kernels of a split plan: every schedule gives what the
// definition gives, each element of the results is written once.
// DEFINE: %{sm80} = --target=sm_80 --plan="#attn.plan<target = sm_80, block_q = 64, block_k = 32, warps = 4, stages = 2, split_keys = 5>"
// DEFINE: %{sm90} = --target=sm_90a --plan="#attn.plan<target = sm_90a, block_q = 128, block_k = 32, warps = 8, stages = 2, split_keys = 5>"
// RUN: attn-simulate %s %{sm90} --function=causal --shape=b=2,h=2,hkv=1,sq=5,sk=330 | FileCheck %s
// RUN: attn-simulate %s %{sm80} --function=causal --shape=b=2,h=2,hkv=1,sq=5,sk=330 | FileCheck %s
// Rows without keys, and parts without blocks.
// RUN: attn-simulate %s %{sm90} --function=causal --shape=b=1,h=1,sq=150,sk=70 | FileCheck %s
// RUN: attn-simulate %s %{sm80} --function=causal --shape=b=1,h=1,sq=150,sk=70 | FileCheck %s
// No mask is left, and there are more parts than blocks.
// RUN: attn-simulate %s %{sm90} --function=even | FileCheck %s
// RUN: attn-simulate %s %{sm80} --function=even | FileCheck %s
// Visits in an order of their own, and fewer of them than parts.
// RUN: attn-simulate %S/../Masks/checkerboard.mlir %{sm90} --shape=b=1,h=1,sq=5,sk=97 | FileCheck %s
// RUN: attn-simulate %S/../Masks/block-table.mlir %{sm90} --shape=b=1,h=1,sq=5,sk=97,c0=1x13 | FileCheck %s

// CHECK: 4 schedules: error {{.*}}, bound

func.func @causal(%q: tensor<?x?x?x64xbf16>, %k: tensor<?x?x?x64xbf16>, %v: tensor<?x?x?x40xbf16>)
    -> (tensor<?x?x?x40xbf16>, tensor<?x?x?xf32>) {
  %o, %lse = attn.attention %q, %k, %v {variants = [#attn.causal]}
    : (tensor<?x?x?x64xbf16>, tensor<?x?x?x64xbf16>, tensor<?x?x?x40xbf16>)
      -> (tensor<?x?x?x40xbf16>, tensor<?x?x?xf32>)
  return %o, %lse : tensor<?x?x?x40xbf16>, tensor<?x?x?xf32>
}

func.func @even(%q: tensor<1x2x3x64xbf16>, %k: tensor<1x2x64x64xbf16>, %v: tensor<1x2x64x64xbf16>)
    -> (tensor<1x2x3x64xbf16>, tensor<1x2x3xf32>) {
  %o, %lse = attn.attention %q, %k, %v
    : (tensor<1x2x3x64xbf16>, tensor<1x2x64x64xbf16>, tensor<1x2x64x64xbf16>)
      -> (tensor<1x2x3x64xbf16>, tensor<1x2x3xf32>)
  return %o, %lse : tensor<1x2x3x64xbf16>, tensor<1x2x3xf32>
}
