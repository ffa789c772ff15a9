// A bias by sine and cosine of positions.
// score: x + np.sin(0.1 * i) * np.cos(0.1 * j)

!t = tensor<?x?x?x32xbf16>
!l = tensor<?x?x?xf32>

func.func @attention(%q: !t, %k: !t, %v: !t) -> (!t, !l) {
  %o, %lse = attn.attention %q, %k, %v
    score(%x: f32, %b: i32, %h: i32, %i: i32, %j: i32) {
      %rate = arith.constant 0.1 : f32
      %r = arith.sitofp %i : i32 to f32
      %s = arith.uitofp %j : i32 to f32
      %u = arith.mulf %r, %rate : f32
      %w = arith.mulf %s, %rate : f32
      %sine = math.sin %u : f32
      %cosine = math.cos %w : f32
      %t = arith.mulf %sine, %cosine : f32
      %y = arith.addf %x, %t : f32
      attn.yield %y : f32
    }
    : (!t, !t, !t) -> (!t, !l)
  return %o, %lse : !t, !l
}
