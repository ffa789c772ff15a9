// Every variant, over lengths that are no multiple of a block, both layouts.
// RUN: attn-run --target=cpu %s --function=causal --shape=b=2,h=3,sq=70,sk=70 --check | FileCheck %s
// RUN: attn-run --target=cpu %s --function=causal --shape=b=1,h=4,hkv=2,sq=33,sk=100 --layout=bshd --check | FileCheck %s
// RUN: attn-run --target=cpu %s --function=causal --shape=b=1,h=1,sq=100,sk=33 --check | FileCheck %s
// RUN: attn-run --target=cpu %s --function=causal_top_left --shape=b=1,h=2,sq=40,sk=77 --check | FileCheck %s
// RUN: attn-run --target=cpu %s --function=window --shape=b=1,h=2,sq=90,sk=120 --layout=bshd --check | FileCheck %s
// RUN: attn-run --target=cpu %s --function=softcap --shape=b=1,h=2,sq=40,sk=50 --check | FileCheck %s
// RUN: attn-run --target=cpu %s --function=alibi --shape=b=1,h=6,hkv=2,sq=40,sk=50 --check | FileCheck %s
// RUN: attn-run --target=cpu %s --function=all --shape=b=2,h=8,hkv=1,sq=65,sk=129 --seed=3 --check | FileCheck %s

// CHECK: target    cpu
// CHECK: check     PASS

!t = tensor<?x?x?x40xf16>
!l = tensor<?x?x?xf32>

func.func @causal(%q: !t, %k: !t, %v: !t) -> (!t, !l) {
  %o, %lse = attn.attention %q, %k, %v {variants = [#attn.causal]} : (!t, !t, !t) -> (!t, !l)
  return %o, %lse : !t, !l
}

func.func @causal_top_left(%q: !t, %k: !t, %v: !t) -> (!t, !l) {
  %o, %lse = attn.attention %q, %k, %v {variants = [#attn.causal<top_left>]} : (!t, !t, !t) -> (!t, !l)
  return %o, %lse : !t, !l
}

func.func @window(%q: !t, %k: !t, %v: !t) -> (!t, !l) {
  %o, %lse = attn.attention %q, %k, %v {variants = [#attn.window<left = 17, right = 5>]} : (!t, !t, !t) -> (!t, !l)
  return %o, %lse : !t, !l
}

func.func @softcap(%q: !t, %k: !t, %v: !t) -> (!t, !l) {
  %o, %lse = attn.attention %q, %k, %v {variants = [#attn.softcap<2.0 : f32>]} : (!t, !t, !t) -> (!t, !l)
  return %o, %lse : !t, !l
}

func.func @alibi(%q: !t, %k: !t, %v: !t) -> (!t, !l) {
  %o, %lse = attn.attention %q, %k, %v {variants = [#attn.alibi]} : (!t, !t, !t) -> (!t, !l)
  return %o, %lse : !t, !l
}

func.func @all(%q: !t, %k: !t, %v: !t) -> (!t, !l) {
  %o, %lse = attn.attention %q, %k, %v {
    variants = [#attn.causal, #attn.window<left = 50, right = -1>, #attn.softcap<4.0 : f32>, #attn.alibi]
  } : (!t, !t, !t) -> (!t, !l)
  return %o, %lse : !t, !l
}
