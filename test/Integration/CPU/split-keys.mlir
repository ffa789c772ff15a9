// Keys in parts: more parts than blocks of keys, rows without keys, odd lengths,
// windows (whose blocks are shared out, not all), a sink, dropout, lists.
// DEFINE: %{plan} = --plan="#attn.plan<target = cpu, block_q = 16, block_k = 32, split_keys = 5>"
// DEFINE: %{run} = attn-run --target=cpu %{plan} --check
// RUN: %{run} %s --function=full --shape=b=2,h=4,hkv=2,sq=1,sk=333 | FileCheck %s
// RUN: %{run} %s --function=full --shape=b=1,h=1,sq=3,sk=31 | FileCheck %s
// RUN: %{run} %s --function=causal --shape=b=2,h=2,sq=37,sk=301 --layout=bshd | FileCheck %s
// RUN: %{run} %s --function=causal --shape=b=1,h=1,sq=100,sk=33 | FileCheck %s
// RUN: %{run} %s --function=window --shape=b=1,h=2,sq=90,sk=400 | FileCheck %s
// RUN: %{run} %s --function=sink --shape=b=1,h=3,sq=5,sk=100 --scalar=seed=1 --scalar=offset=2 | FileCheck %s
// RUN: %{run} %S/../../Masks/documents.mlir --shape=b=2,h=2,sq=20,sk=150,c0=2x150 | FileCheck %s
// RUN: %{run} %S/../../Masks/checkerboard.mlir --shape=b=1,h=2,sq=20,sk=150 | FileCheck %s
// Every row sees the first key, but not one of each part.
// RUN: attn-run --target=cpu --check %s --function=capped --shape=b=1,h=1,sq=100,sk=100 --plan="#attn.plan<target = cpu, block_q = 64, block_k = 16, split_keys = 5>" | FileCheck %s
// A large score leaves no room for the logarithm of the sum beside it.
// RUN: %{run} %s --function=far --shape=b=1,h=1,sq=5,sk=200 | FileCheck %s
// RUN: attn-run --target=cpu --check %s --function=full --shape=b=1,h=1,sq=2,sk=100 --plan="#attn.plan<target = cpu, block_q = 4, block_k = 5, split_keys = 64>" | FileCheck %s

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
  %o, %lse = attn.attention %q, %k, %v {variants = [#attn.window<left = 170, right = 5>]} : (!t, !t, !t) -> (!t, !l)
  return %o, %lse : !t, !l
}

func.func @capped(%q: !t, %k: !t, %v: !t) -> (!t, !l) {
  %o, %lse = attn.attention %q, %k, %v {variants = [#attn.softcap<20.0 : f32>, #attn.causal<top_left>]} : (!t, !t, !t) -> (!t, !l)
  return %o, %lse : !t, !l
}

func.func @sink(%q: !t, %k: !t, %v: !t, %sink: tensor<?xf32>, %seed: i32, %offset: i32) -> (!t, !l) {
  %o, %lse = attn.attention %q, %k, %v sink(%sink) dropout(%seed, %offset)
    {dropout_p = 0.25} : (!t, !t, !t, tensor<?xf32>, i32, i32) -> (!t, !l)
  return %o, %lse : !t, !l
}

func.func @far(%q: !t, %k: !t, %v: !t) -> (!t, !l) {
  %o, %lse = attn.attention %q, %k, %v
    score(%x: f32, %b: i32, %h: i32, %i: i32, %j: i32) {
      %large = arith.constant 1.0e8 : f32
      attn.yield %large : f32
    } mask(%b: i32, %h: i32, %i: i32, %j: i32) {
      %c100 = arith.constant 100 : i32
      %m = arith.cmpi sge, %j, %c100 : i32
      attn.yield %m : i1
    } : (!t, !t, !t) -> (!t, !l)
  return %o, %lse : !t, !l
}
