// A captured temperature for each head, in f16.
// score: x * np.exp(c[0][h])
// capture: normal : h

!t = tensor<?x?x?x32xbf16>
!l = tensor<?x?x?xf32>

func.func @attention(%q: !t, %k: !t, %v: !t, %c0: tensor<?xf16>) -> (!t, !l) {
  %o, %lse = attn.attention %q, %k, %v captures(%c0)
    score(%x: f32, %b: i32, %h: i32, %i: i32, %j: i32, %rates: tensor<?xf16>) {
      %t = attn.capture_load %rates[%h] : tensor<?xf16>
      %r = arith.extf %t : f16 to f32
      %e = math.exp %r : f32
      %y = arith.mulf %x, %e : f32
      attn.yield %y : f32
    }
    : (!t, !t, !t, tensor<?xf16>) -> (!t, !l)
  return %o, %lse : !t, !l
}
