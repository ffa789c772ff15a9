// The score negated: its scale is below zero.
// score: -x

!t = tensor<?x?x?x32xbf16>
!l = tensor<?x?x?xf32>

func.func @attention(%q: !t, %k: !t, %v: !t) -> (!t, !l) {
  %o, %lse = attn.attention %q, %k, %v
    score(%x: f32, %b: i32, %h: i32, %i: i32, %j: i32) {
      %y = arith.negf %x : f32
      attn.yield %y : f32
    }
    : (!t, !t, !t) -> (!t, !l)
  return %o, %lse : !t, !l
}
