// Element types, head dimensions, static and dynamic shapes, plans.
// RUN: attn-run --target=cpu %s --function=f32 --shape=b=1,sq=50,sk=60 --check | FileCheck %s
// RUN: attn-run --target=cpu %s --function=f16 --shape=b=1,h=2,hkv=1,sq=20,sk=64 --check | FileCheck %s
// RUN: attn-run --target=cpu %s --function=static --check | FileCheck %s
// RUN: attn-run --target=cpu %s --function=large_head --shape=b=1,h=1,sq=20,sk=40 --check | FileCheck %s
// RUN: attn-run --target=cpu %s --function=self --shape=b=1,h=2,sq=40 --check | FileCheck %s
// RUN: attn-run --target=cpu %s --function=f16 --shape=b=1,h=2,sq=20,sk=64 --plan='#attn.plan<target = cpu, block_q = 3, block_k = 17>' --check | FileCheck %s --check-prefixes=PLAN,CHECK
// RUN: attn-run --target=cpu %s --function=f16 --shape=b=1,h=2,sq=20,sk=64 --plan='#attn.plan<target = cpu, block_q = 128, block_k = 128>' --check | FileCheck %s
// RUN: attn-run --target=cpu %s --function=f16 --shape=b=2,h=2,sq=7,sk=0 --check | FileCheck %s
// RUN: attn-run --target=cpu %s --function=f16 --shape=b=2,h=2,sq=0,sk=7 --check | FileCheck %s
// RUN: attn-run --target=cpu %s --function=f16 --shape=b=0,h=2,sq=5,sk=7 --check | FileCheck %s
// RUN: attn-run --target=cpu %s --function=output_only --shape=b=1,h=2,sq=5,sk=7 --check | FileCheck %s

// PLAN: block_q = 3, block_k = 17
// CHECK: check     PASS

func.func @f32(%q: tensor<?x8x?x24xf32>, %k: tensor<?x2x?x24xf32>, %v: tensor<?x2x?x40xf32>)
    -> (tensor<?x8x?x40xf32>, tensor<?x8x?xf32>) {
  %o, %lse = attn.attention %q, %k, %v {scale = 0.5}
    : (tensor<?x8x?x24xf32>, tensor<?x2x?x24xf32>, tensor<?x2x?x40xf32>) -> (tensor<?x8x?x40xf32>, tensor<?x8x?xf32>)
  return %o, %lse : tensor<?x8x?x40xf32>, tensor<?x8x?xf32>
}

func.func @f16(%q: tensor<?x?x?x192xf16>, %k: tensor<?x?x?x192xf16>, %v: tensor<?x?x?x128xf16>)
    -> (tensor<?x?x?x128xf16>, tensor<?x?x?xf32>) {
  %o, %lse = attn.attention %q, %k, %v
    : (tensor<?x?x?x192xf16>, tensor<?x?x?x192xf16>, tensor<?x?x?x128xf16>) -> (tensor<?x?x?x128xf16>, tensor<?x?x?xf32>)
  return %o, %lse : tensor<?x?x?x128xf16>, tensor<?x?x?xf32>
}

func.func @static(%q: tensor<2x4x9x8xbf16>, %k: tensor<2x2x21x8xbf16>, %v: tensor<2x2x21x8xbf16>)
    -> (tensor<2x4x9x8xbf16>, tensor<2x4x9xf32>) {
  %o, %lse = attn.attention %q, %k, %v {variants = [#attn.causal]}
    : (tensor<2x4x9x8xbf16>, tensor<2x2x21x8xbf16>, tensor<2x2x21x8xbf16>) -> (tensor<2x4x9x8xbf16>, tensor<2x4x9xf32>)
  return %o, %lse : tensor<2x4x9x8xbf16>, tensor<2x4x9xf32>
}

func.func @large_head(%q: tensor<?x?x?x256xbf16>, %k: tensor<?x?x?x256xbf16>, %v: tensor<?x?x?x256xbf16>)
    -> (tensor<?x?x?x256xbf16>, tensor<?x?x?xf32>) {
  %o, %lse = attn.attention %q, %k, %v
    : (tensor<?x?x?x256xbf16>, tensor<?x?x?x256xbf16>, tensor<?x?x?x256xbf16>) -> (tensor<?x?x?x256xbf16>, tensor<?x?x?xf32>)
  return %o, %lse : tensor<?x?x?x256xbf16>, tensor<?x?x?xf32>
}

// One tensor is key and value.
func.func @self(%q: tensor<?x?x?x32xf16>, %k: tensor<?x?x?x32xf16>)
    -> (tensor<?x?x?x32xf16>, tensor<?x?x?xf32>) {
  %o, %lse = attn.attention %q, %k, %k
    : (tensor<?x?x?x32xf16>, tensor<?x?x?x32xf16>, tensor<?x?x?x32xf16>) -> (tensor<?x?x?x32xf16>, tensor<?x?x?xf32>)
  return %o, %lse : tensor<?x?x?x32xf16>, tensor<?x?x?xf32>
}

func.func @output_only(%q: tensor<?x?x?x32xf16>, %k: tensor<?x?x?x32xf16>, %v: tensor<?x?x?x32xf16>)
    -> tensor<?x?x?x32xf16> {
  %o, %lse = attn.attention %q, %k, %v
    : (tensor<?x?x?x32xf16>, tensor<?x?x?x32xf16>, tensor<?x?x?x32xf16>) -> (tensor<?x?x?x32xf16>, tensor<?x?x?xf32>)
  return %o : tensor<?x?x?x32xf16>
}
