// A bias for each head, query and key.
// score: x + at(c[0], h, i, j)
// capture: normal : h sq sk

!t = tensor<?x?x?x32xbf16>
!l = tensor<?x?x?xf32>

func.func @attention(%q: !t, %k: !t, %v: !t, %c0: tensor<?x?x?xbf16>)
    -> (!t, !l) {
  %o, %lse = attn.attention %q, %k, %v captures(%c0)
    score(%x: f32, %b: i32, %h: i32, %i: i32, %j: i32,
          %bias: tensor<?x?x?xbf16>) {
      %t = attn.capture_load %bias[%h, %i, %j] : tensor<?x?x?xbf16>
      %w = arith.extf %t : bf16 to f32
      %y = arith.addf %x, %w : f32
      attn.yield %y : f32
    }
    : (!t, !t, !t, tensor<?x?x?xbf16>) -> (!t, !l)
  return %o, %lse : !t, !l
}
