// The score times a constant, then a bias by position.
// mask: j <= i
// score: 2 * x + 0.125 * j

!t = tensor<?x?x?x32xbf16>
!l = tensor<?x?x?xf32>

func.func @attention(%q: !t, %k: !t, %v: !t) -> (!t, !l) {
  %o, %lse = attn.attention %q, %k, %v
    score(%x: f32, %b: i32, %h: i32, %i: i32, %j: i32) {
      %rate = arith.constant 2.0 : f32
      %step = arith.constant 0.125 : f32
      %f = arith.sitofp %j : i32 to f32
      %t = arith.mulf %f, %step : f32
      %s = arith.mulf %x, %rate : f32
      %y = arith.addf %s, %t : f32
      attn.yield %y : f32
    }
    mask(%b: i32, %h: i32, %i: i32, %j: i32) {
      %m = arith.cmpi sle, %j, %i : i32
      attn.yield %m : i1
    }
    : (!t, !t, !t) -> (!t, !l)
  return %o, %lse : !t, !l
}
