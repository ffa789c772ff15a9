// The default schedules, and what is left of them without their optional passes.

// DEFINE: %{groups} = #attn.plan<target = sm_90a, block_q = 256, block_k = 64, warps = 16, stages = 3>

// RUN: attn-simulate %s --target=sm_90a --function=causal --shape=b=1,h=2,hkv=1,sq=150,sk=330 | FileCheck %s
// RUN: attn-simulate %s --target=sm_90a --function=causal --shape=b=1,h=1,sq=150,sk=330 --disable-pass=tile-overlap-products,warp-specialize,warp-make-async,warp-insert-turns | FileCheck %s
// RUN: attn-simulate %s --target=sm_90a --function=causal --plan="#attn.plan<target = sm_90a, block_q = 128, block_k = 32, warps = 8, stages = 3>" --shape=b=1,h=2,hkv=1,sq=150,sk=330 --enable-pass=warp-double-buffer | FileCheck %s
// RUN: attn-simulate %s --target=sm_90a --function=bias --shape=b=1,h=2,sq=70,sk=300,c0=2x70x300 --enable-pass=warp-double-buffer | FileCheck %s
// RUN: attn-simulate %s --function=causal --target=sm_80 --shape=b=1,h=2,hkv=1,sq=150,sk=330 | FileCheck %s
// RUN: attn-simulate %s --function=causal --target=sm_80 --shape=b=1,h=1,sq=150,sk=330 --disable-pass=warp-buffer,tile-peel-masks | FileCheck %s
// RUN: attn-simulate %s --target=sm_90a --function=bias --shape=b=1,h=2,sq=70,sk=300,c0=2x70x300 | FileCheck %s
// RUN: attn-simulate %s --function=bias --target=sm_80 --shape=b=1,h=2,sq=70,sk=300,c0=2x70x300 | FileCheck %s

// Each group of 64 rows has full blocks of its own: where no block is full for
// all rows, in the other order, and in gradients.
// RUN: attn-simulate %s --target=sm_90a --function=window --plan="%{groups}" --shape=b=1,h=2,hkv=1,sq=300,sk=330 | FileCheck %s
// RUN: attn-simulate %s --target=sm_90a --function=falling --plan="%{groups}" --shape=b=1,h=2,hkv=1,sq=300,sk=330 | FileCheck %s
// RUN: attn-simulate %s --target=sm_90a --function=window --backward --seeds=2 --shape=b=1,h=1,hkv=1,sq=330,sk=200 | FileCheck %s --check-prefix=GRADIENTS

// CHECK: 4 schedules: error {{.*}}, bound
// GRADIENTS: 2 schedules; d_q: error {{.*}}, bound

// Another order of the warps finds the same deadlock: none.
// RUN: attn-simulate %s --target=sm_90a --function=causal --shape=b=1,h=1,sq=40,sk=200 --seeds=16 | FileCheck %s --check-prefix=MANY
// MANY: 16 schedules

// RUN: not attn-simulate %s --target=sm_90a --function=causal --shape=b=1,h=1,sq=64,zz=3 2>&1 | FileCheck %s --check-prefix=SHAPE
// SHAPE: attn-simulate: error: {{.*}}zz

func.func @causal(%q: tensor<?x?x?x64xbf16>, %k: tensor<?x?x?x64xbf16>,
                  %v: tensor<?x?x?x64xbf16>)
    -> (tensor<?x?x?x64xbf16>, tensor<?x?x?xf32>) {
  %o, %lse = attn.attention %q, %k, %v {variants = [#attn.causal]}
    : (tensor<?x?x?x64xbf16>, tensor<?x?x?x64xbf16>, tensor<?x?x?x64xbf16>)
      -> (tensor<?x?x?x64xbf16>, tensor<?x?x?xf32>)
  return %o, %lse : tensor<?x?x?x64xbf16>, tensor<?x?x?xf32>
}

func.func @window(%q: tensor<?x?x?x64xbf16>, %k: tensor<?x?x?x64xbf16>,
                  %v: tensor<?x?x?x64xbf16>)
    -> (tensor<?x?x?x64xbf16>, tensor<?x?x?xf32>) {
  %o, %lse = attn.attention %q, %k, %v {variants = [#attn.window<left = 200, right = 0>]}
    : (tensor<?x?x?x64xbf16>, tensor<?x?x?x64xbf16>, tensor<?x?x?x64xbf16>)
      -> (tensor<?x?x?x64xbf16>, tensor<?x?x?xf32>)
  return %o, %lse : tensor<?x?x?x64xbf16>, tensor<?x?x?xf32>
}

func.func @falling(%q: tensor<?x?x?x64xbf16>, %k: tensor<?x?x?x64xbf16>,
                   %v: tensor<?x?x?x64xbf16>)
    -> (tensor<?x?x?x64xbf16>, tensor<?x?x?xf32>) {
  %o, %lse = attn.attention %q, %k, %v {variants = [#attn.window<left = 200, right = 0>, #attn.alibi]}
    : (tensor<?x?x?x64xbf16>, tensor<?x?x?x64xbf16>, tensor<?x?x?x64xbf16>)
      -> (tensor<?x?x?x64xbf16>, tensor<?x?x?xf32>)
  return %o, %lse : tensor<?x?x?x64xbf16>, tensor<?x?x?xf32>
}

func.func @bias(%q: tensor<?x?x?x40xf16>, %k: tensor<?x?x?x40xf16>,
                %v: tensor<?x?x?x72xf16>, %bias: tensor<?x?x?xf16>)
    -> (tensor<?x?x?x72xf16>, tensor<?x?x?xf32>) {
  %o, %lse = attn.attention %q, %k, %v captures(%bias)
    {variants = [#attn.softcap<20.0 : f32>]}
    score(%x: f32, %b: i32, %h: i32, %i: i32, %j: i32, %c: tensor<?x?x?xf16>) {
      %e = attn.capture_load %c[%h, %i, %j] : tensor<?x?x?xf16>
      %w = arith.extf %e : f16 to f32
      %y = arith.addf %x, %w : f32
      attn.yield %y : f32
    }
    : (tensor<?x?x?x40xf16>, tensor<?x?x?x40xf16>, tensor<?x?x?x72xf16>,
       tensor<?x?x?xf16>) -> (tensor<?x?x?x72xf16>, tensor<?x?x?xf32>)
  return %o, %lse : tensor<?x?x?x72xf16>, tensor<?x?x?xf32>
}
