// Attention and its tangents as one kernel on the CPU, against the definition in
// float64: masks, score functions, sinks, dropout, shared key heads, lengths that
// no block divides, rows without keys.

// RUN: attn-opt %s --attn-differentiate=mode=jvp -o %t.mlir
// RUN: attn-run %s --jvp --target=cpu --function=plain --shape=b=2,h=4,hkv=2,sq=37,sk=67 --check | FileCheck %s
// RUN: attn-run %t.mlir --target=cpu --function=causal_jvp --shape=b=1,h=2,sq=50,sk=33 --check | FileCheck %s
// RUN: attn-run %t.mlir --target=cpu --function=window_jvp --shape=b=1,h=2,sq=41,sk=90 --check | FileCheck %s
// RUN: attn-run %t.mlir --target=cpu --function=scores_jvp --shape=b=1,h=4,hkv=2,sq=33,sk=40,c0=4 --check | FileCheck %s
// RUN: attn-run %t.mlir --target=cpu --function=sink_jvp --shape=b=1,h=4,sq=29,sk=20 --scalar=seed=5 --scalar=offset=7 --check | FileCheck %s
// RUN: attn-run %t.mlir --target=cpu --function=log_jvp --shape=b=1,h=1,sq=9,sk=10,c0=9x10 --check | FileCheck %s

// RUN: not attn-run %s --jvp --backward --function=plain 2>&1 | FileCheck %s --check-prefix=ONE
// ONE: got --jvp and --backward: tangents or gradients?

// CHECK: error     t_o
// CHECK: error     t_lse
// CHECK: error     o
// CHECK: check     PASS

!t = tensor<?x?x?x40xf16>
!l = tensor<?x?x?xf32>
!f = tensor<?x?x?x24xf32>
!g = tensor<?x?x?x40xf32>

func.func @plain(%q: !t, %k: !t, %v: !t) -> !t {
  %o, %lse = attn.attention %q, %k, %v : (!t, !t, !t) -> (!t, !l)
  return %o : !t
}

func.func @causal(%q: !t, %k: !t, %v: !t) -> !t {
  %o, %lse = attn.attention %q, %k, %v {variants = [#attn.causal]} : (!t, !t, !t) -> (!t, !l)
  return %o : !t
}

func.func @window(%q: !f, %k: !f, %v: !g) -> !g {
  %o, %lse = attn.attention %q, %k, %v {variants = [#attn.window<left = 7, right = 2>]} : (!f, !f, !g) -> (!g, !l)
  return %o : !g
}

func.func @scores(%q: !t, %k: !t, %v: !t, %c: tensor<?xf32>) -> !t {
  %o, %lse = attn.attention %q, %k, %v captures(%c)
    {variants = [#attn.softcap<3.0 : f32>, #attn.alibi, #attn.causal]}
    score(%x: f32, %b: i32, %h: i32, %i: i32, %j: i32, %t: tensor<?xf32>) {
      %s = attn.capture_load %t[%h] : tensor<?xf32>
      %y = arith.mulf %x, %s : f32
      attn.yield %y : f32
    }
    : (!t, !t, !t, tensor<?xf32>) -> (!t, !l)
  return %o : !t
}

func.func @sink(%q: !f, %k: !f, %v: !f, %sink: tensor<?xf32>, %seed: i32, %offset: i32) -> !f {
  %o, %lse = attn.attention %q, %k, %v sink(%sink) dropout(%seed, %offset)
    {dropout_p = 0.3, variants = [#attn.causal]}
    : (!f, !f, !f, tensor<?xf32>, i32, i32) -> (!f, !l)
  return %o : !f
}

// The slope is infinite where the score is -inf.
func.func @log(%q: !f, %k: !f, %v: !f, %c: tensor<?x?xf32>) -> !f {
  %o, %lse = attn.attention %q, %k, %v captures(%c)
    score(%x: f32, %b: i32, %h: i32, %i: i32, %j: i32, %t: tensor<?x?xf32>) {
      %s = attn.capture_load %t[%i, %j] : tensor<?x?xf32>
      %zero = arith.constant 0.0 : f32
      %one = arith.constant 1.0 : f32
      %p = arith.maximumf %s, %zero : f32
      %e = math.exp %x : f32
      %u = arith.mulf %p, %e : f32
      %y = math.log %u : f32
      attn.yield %y : f32
    }
    : (!f, !f, !f, tensor<?x?xf32>) -> (!f, !l)
  return %o : !f
}
