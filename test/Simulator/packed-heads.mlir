// Rows of several query heads in a tile: every schedule gives what the
// definition gives, each element of the results is written once.
// DEFINE: %{sm80} = --target=sm_80 --plan="#attn.plan<target = sm_80, block_q = 64, block_k = 32, warps = 4, stages = 2, packed_heads = 4>"
// DEFINE: %{sm90} = --target=sm_90a --plan="#attn.plan<target = sm_90a, block_q = 64, block_k = 32, warps = 4, stages = 2, packed_heads = 4>"
// DEFINE: %{two} = --target=sm_90a --plan="#attn.plan<target = sm_90a, block_q = 128, block_k = 32, warps = 8, stages = 2, packed_heads = 16>"
// DEFINE: %{split} = --target=sm_90a --plan="#attn.plan<target = sm_90a, block_q = 64, block_k = 32, warps = 4, stages = 2, split_keys = 3, packed_heads = 8>"
// RUN: attn-simulate %s %{sm90} --function=causal --shape=b=1,h=8,hkv=2,sq=3,sk=150 | FileCheck %s
// RUN: attn-simulate %s %{sm80} --function=causal --shape=b=1,h=8,hkv=2,sq=3,sk=150 | FileCheck %s
// RUN: attn-simulate %s %{split} --function=causal --shape=b=1,h=8,hkv=1,sq=3,sk=150 | FileCheck %s
// Parts of heads that are not full, and of one, in tiles of two groups of warps.
// RUN: attn-simulate %s %{sm90} --function=causal --shape=b=2,h=6,hkv=1,sq=20,sk=70 | FileCheck %s
// RUN: attn-simulate %s %{sm80} --function=causal --shape=b=2,h=6,hkv=1,sq=20,sk=70 | FileCheck %s
// RUN: attn-simulate %s %{two} --function=causal --shape=b=1,h=18,hkv=1,sq=9,sk=70 | FileCheck %s
// RUN: attn-simulate %s %{two} --function=causal --shape=b=1,h=1,sq=9,sk=70 | FileCheck %s
// The scores of each head are others.
// RUN: attn-simulate %s %{sm90} --function=heads --shape=b=1,h=8,hkv=2,sq=3,sk=70,c0=8 | FileCheck %s
// RUN: attn-simulate %s %{sm80} --function=heads --shape=b=1,h=8,hkv=2,sq=3,sk=70,c0=8 | FileCheck %s
// RUN: attn-simulate %s %{split} --function=heads --shape=b=1,h=8,hkv=1,sq=3,sk=70,c0=8 | FileCheck %s
// No mask is left.
// RUN: attn-simulate %s %{sm90} --function=even | FileCheck %s
// RUN: attn-simulate %s %{sm80} --function=even | FileCheck %s

// CHECK: 4 schedules: error {{.*}}, bound

func.func @causal(%q: tensor<?x?x?x64xbf16>, %k: tensor<?x?x?x64xbf16>, %v: tensor<?x?x?x40xbf16>)
    -> (tensor<?x?x?x40xbf16>, tensor<?x?x?xf32>) {
  %o, %lse = attn.attention %q, %k, %v {variants = [#attn.causal]}
    : (tensor<?x?x?x64xbf16>, tensor<?x?x?x64xbf16>, tensor<?x?x?x40xbf16>)
      -> (tensor<?x?x?x40xbf16>, tensor<?x?x?xf32>)
  return %o, %lse : tensor<?x?x?x40xbf16>, tensor<?x?x?xf32>
}

func.func @heads(%q: tensor<?x?x?x64xbf16>, %k: tensor<?x?x?x64xbf16>, %v: tensor<?x?x?x64xbf16>, %slopes: tensor<?xf32>)
    -> (tensor<?x?x?x64xbf16>, tensor<?x?x?xf32>) {
  %o, %lse = attn.attention %q, %k, %v captures(%slopes)
    score(%x: f32, %b: i32, %h: i32, %i: i32, %j: i32, %s: tensor<?xf32>) {
      %slope = attn.capture_load %s[%h] : tensor<?xf32>
      %d = arith.subi %j, %i : i32
      %distance = arith.sitofp %d : i32 to f32
      %t = arith.mulf %slope, %distance : f32
      %y = arith.addf %x, %t : f32
      attn.yield %y : f32
    } mask(%b: i32, %h: i32, %i: i32, %j: i32, %s: tensor<?xf32>) {
      %c7 = arith.constant 7 : i32
      %reach = arith.muli %h, %c7 : i32
      %from = arith.subi %i, %reach : i32
      %m = arith.cmpi sge, %j, %from : i32
      attn.yield %m : i1
    } : (tensor<?x?x?x64xbf16>, tensor<?x?x?x64xbf16>, tensor<?x?x?x64xbf16>, tensor<?xf32>)
      -> (tensor<?x?x?x64xbf16>, tensor<?x?x?xf32>)
  return %o, %lse : tensor<?x?x?x64xbf16>, tensor<?x?x?xf32>
}

func.func @even(%q: tensor<1x4x3x64xbf16>, %k: tensor<1x1x64x64xbf16>, %v: tensor<1x1x64x64xbf16>)
    -> (tensor<1x4x3x64xbf16>, tensor<1x4x3xf32>) {
  %o, %lse = attn.attention %q, %k, %v
    : (tensor<1x4x3x64xbf16>, tensor<1x1x64x64xbf16>, tensor<1x1x64x64xbf16>)
      -> (tensor<1x4x3x64xbf16>, tensor<1x4x3xf32>)
  return %o, %lse : tensor<1x4x3x64xbf16>, tensor<1x4x3xf32>
}
