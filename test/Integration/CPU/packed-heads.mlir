// Rows of several query heads in a tile: parts of fewer heads than a tile has,
// heads that the scores, the mask, the sink and dropout see, odd lengths, and
// more queries than a tile takes of a head; beside parts of the keys.
// DEFINE: %{plan} = --plan="#attn.plan<target = cpu, block_q = 16, block_k = 32, packed_heads = 4>"
// DEFINE: %{split} = --plan="#attn.plan<target = cpu, block_q = 12, block_k = 32, split_keys = 3, packed_heads = 3>"
// DEFINE: %{run} = attn-run --target=cpu --check
// RUN: %{run} %{plan} %s --function=full --shape=b=2,h=8,hkv=2,sq=1,sk=133 | FileCheck %s
// RUN: %{run} %{plan} %s --function=full --shape=b=1,h=18,hkv=3,sq=7,sk=33 --layout=bshd | FileCheck %s
// RUN: %{run} %{plan} %s --function=full --shape=b=1,h=2,hkv=2,sq=9,sk=70 | FileCheck %s
// RUN: %{run} %{split} %s --function=full --shape=b=2,h=10,hkv=2,sq=3,sk=150 | FileCheck %s
// RUN: %{run} %{plan} %s --function=causal --shape=b=2,h=4,hkv=1,sq=37,sk=101 | FileCheck %s
// RUN: %{run} %{plan} %s --function=causal --shape=b=1,h=5,hkv=1,sq=100,sk=33 | FileCheck %s
// RUN: %{run} %{split} %s --function=window --shape=b=1,h=6,hkv=2,sq=90,sk=200 | FileCheck %s
// RUN: %{run} %{plan} %s --function=heads --shape=b=2,h=12,hkv=2,sq=21,sk=130,c0=12,c1=12 | FileCheck %s
// RUN: %{run} %{split} %s --function=heads --shape=b=1,h=8,hkv=1,sq=5,sk=130,c0=8,c1=8 | FileCheck %s
// RUN: %{run} %{plan} %s --function=sink --shape=b=1,h=6,hkv=1,sq=5,sk=100 --scalar=seed=1 --scalar=offset=2 | FileCheck %s
// RUN: %{run} %{split} %s --function=sink --shape=b=1,h=6,hkv=2,sq=5,sk=100 --scalar=seed=1 --scalar=offset=2 | FileCheck %s
// RUN: %{run} %{plan} %s --function=known | FileCheck %s
// RUN: %{run} %{plan} %S/../../Masks/documents.mlir --shape=b=2,h=4,hkv=1,sq=20,sk=150,c0=2x150 | FileCheck %s
// RUN: %{run} %{plan} %S/../../Masks/checkerboard.mlir --shape=b=1,h=4,hkv=2,sq=20,sk=150 | FileCheck %s

// CHECK: check     PASS

!t = tensor<?x?x?x40xf16>
!l = tensor<?x?x?xf32>

func.func @full(%q: !t, %k: !t, %v: !t) -> (!t, !l) {
  %o, %lse = attn.attention %q, %k, %v : (!t, !t, !t) -> (!t, !l)
  return %o, %lse : !t, !l
}

func.func @causal(%q: !t, %k: !t, %v: !t) -> (!t, !l) {
  %o, %lse = attn.attention %q, %k, %v {variants = [#attn.causal]} : (!t, !t, !t) -> (!t, !l)
  return %o, %lse : !t, !l
}

func.func @window(%q: !t, %k: !t, %v: !t) -> (!t, !l) {
  %o, %lse = attn.attention %q, %k, %v {variants = [#attn.window<left = 70, right = 5>]} : (!t, !t, !t) -> (!t, !l)
  return %o, %lse : !t, !l
}

// Each head has a slope, and a window of its own.
func.func @heads(%q: !t, %k: !t, %v: !t, %slopes: tensor<?xf32>, %first: tensor<?xi32>) -> (!t, !l) {
  %o, %lse = attn.attention %q, %k, %v captures(%slopes, %first)
    score(%x: f32, %b: i32, %h: i32, %i: i32, %j: i32, %s: tensor<?xf32>, %f: tensor<?xi32>) {
      %slope = attn.capture_load %s[%h] : tensor<?xf32>
      %d = arith.subi %j, %i : i32
      %distance = arith.sitofp %d : i32 to f32
      %t = arith.mulf %slope, %distance : f32
      %y = arith.addf %x, %t : f32
      attn.yield %y : f32
    } mask(%b: i32, %h: i32, %i: i32, %j: i32, %s: tensor<?xf32>, %f: tensor<?xi32>) {
      %c7 = arith.constant 7 : i32
      %reach = arith.muli %h, %c7 : i32
      %from = arith.subi %i, %reach : i32
      %near = arith.cmpi sge, %j, %from : i32
      %least = attn.capture_load %f[%h] : tensor<?xi32>
      %late = arith.cmpi sge, %j, %least : i32
      %m = arith.andi %near, %late : i1
      attn.yield %m : i1
    } : (!t, !t, !t, tensor<?xf32>, tensor<?xi32>) -> (!t, !l)
  return %o, %lse : !t, !l
}

func.func @sink(%q: !t, %k: !t, %v: !t, %sink: tensor<?xf32>, %seed: i32, %offset: i32) -> (!t, !l) {
  %o, %lse = attn.attention %q, %k, %v sink(%sink) dropout(%seed, %offset)
    {dropout_p = 0.25} : (!t, !t, !t, tensor<?xf32>, i32, i32) -> (!t, !l)
  return %o, %lse : !t, !l
}

func.func @known(%q: tensor<1x8x3x64xbf16>, %k: tensor<1x2x150x64xbf16>, %v: tensor<1x2x150x64xbf16>)
    -> (tensor<1x8x3x64xbf16>, tensor<1x8x3xf32>) {
  %o, %lse = attn.attention %q, %k, %v {variants = [#attn.causal]}
    : (tensor<1x8x3x64xbf16>, tensor<1x2x150x64xbf16>, tensor<1x2x150x64xbf16>)
      -> (tensor<1x8x3x64xbf16>, tensor<1x8x3xf32>)
  return %o, %lse : tensor<1x8x3x64xbf16>, tensor<1x8x3xf32>
}
