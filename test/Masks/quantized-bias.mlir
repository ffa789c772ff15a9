// A bias in eight bits with a captured scale.
// score: x + at(c[0], i, j) * c[1] * 0.01
// capture: integers -100 100 : sq sk
// capture: normal

!t = tensor<?x?x?x32xbf16>
!l = tensor<?x?x?xf32>

func.func @attention(%q: !t, %k: !t, %v: !t, %c0: tensor<?x?xi8>, %c1: f32)
    -> (!t, !l) {
  %o, %lse = attn.attention %q, %k, %v captures(%c0, %c1)
    score(%x: f32, %b: i32, %h: i32, %i: i32, %j: i32,
          %bias: tensor<?x?xi8>, %scale: f32) {
      %t = attn.capture_load %bias[%i, %j] : tensor<?x?xi8>
      %f = arith.sitofp %t : i8 to f32
      %c100 = arith.constant 0.01 : f32
      %s = arith.mulf %scale, %c100 : f32
      %u = arith.mulf %f, %s : f32
      %y = arith.addf %x, %u : f32
      attn.yield %y : f32
    }
    : (!t, !t, !t, tensor<?x?xi8>, f32) -> (!t, !l)
  return %o, %lse : !t, !l
}
