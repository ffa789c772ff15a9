// RUN: attn-simulate %s --target=sm_80 --shape=b=2,h=4,hkv=2,sq=5,sk=7

// A pullback without a score function: what both compute was counted.

!q = tensor<2x4x5x64xf16>
!k = tensor<2x2x7x64xf16>
!v = tensor<2x2x7x32xf16>
!o = tensor<2x4x5x32xf16>
!l = tensor<2x4x5xf32>

func.func @pullback(%q: !q, %k: !k, %v: !v, %o: !o, %lse: !l, %do: !o,
                    %bias: tensor<5x7xbf16>) -> tensor<5x7xbf16> {
  %dq, %dk, %dv, %db = attn.attention_backward %q, %k, %v, %o, %lse, %do
    captures(%bias) {grad_captures = array<i64: 0>}
    pullback(%dy: f32, %x: f32, %b: i32, %h: i32, %i: i32, %j: i32,
             %t: tensor<5x7xbf16>) {
      attn.capture_add %dy, %t[%i, %j] : tensor<5x7xbf16>
      attn.yield %dy : f32
    }
    : (!q, !k, !v, !o, !l, !o, tensor<5x7xbf16>)
      -> (!q, !k, !v, tensor<5x7xbf16>)
  return %db : tensor<5x7xbf16>
}
