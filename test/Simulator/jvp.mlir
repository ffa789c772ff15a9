// Attention and its tangents in one kernel, on both targets.

// RUN: attn-simulate %s --jvp --target=sm_90a --function=causal --shape=b=1,h=2,hkv=1,sq=150,sk=170 | FileCheck %s
// RUN: attn-simulate %s --jvp --target=sm_80 --function=causal --shape=b=1,h=2,hkv=1,sq=90,sk=130 | FileCheck %s
// RUN: attn-simulate %s --jvp --target=sm_90a --function=scores --shape=b=1,h=2,sq=70,sk=100 | FileCheck %s
// RUN: attn-simulate %s --jvp --target=sm_80 --function=scores --shape=b=1,h=2,sq=70,sk=100 | FileCheck %s
// RUN: attn-simulate %s --jvp --target=sm_80 --function=single --shape=b=1,h=1,sq=40,sk=70 | FileCheck %s
// RUN: attn-simulate %s --jvp --target=sm_90a --function=causal --shape=b=1,h=1,sq=70,sk=100 --disable-pass=warp-specialize,warp-make-async,tile-peel-masks | FileCheck %s

// CHECK: 4 schedules: error {{.*}}; t_o: error {{.*}}; t_lse: error

!t = tensor<?x?x?x64xbf16>
!u = tensor<?x?x?x40xf16>
!v = tensor<?x?x?x72xf16>
!f = tensor<?x?x?x32xf32>
!l = tensor<?x?x?xf32>

func.func @causal(%q: !t, %k: !t, %v: !t) -> !t {
  %o, %lse = attn.attention %q, %k, %v {variants = [#attn.causal]} : (!t, !t, !t) -> (!t, !l)
  return %o : !t
}

func.func @scores(%q: !u, %k: !u, %v: !v, %sink: tensor<2xf32>) -> !v {
  %o, %lse = attn.attention %q, %k, %v sink(%sink)
    {variants = [#attn.window<left = 40, right = 0>, #attn.softcap<3.0 : f32>, #attn.alibi]}
    : (!u, !u, !v, tensor<2xf32>) -> (!v, !l)
  return %o : !v
}

func.func @single(%q: !f, %k: !f, %v: !f) -> !f {
  %o, %lse = attn.attention %q, %k, %v : (!f, !f, !f) -> (!f, !l)
  return %o : !f
}
