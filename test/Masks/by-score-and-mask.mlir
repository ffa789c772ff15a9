// -inf by score in every other column, under a causal mask.
// mask: j < i
// score: np.where(j % 2 == 1, -np.inf, x)

!t = tensor<?x?x?x32xbf16>
!l = tensor<?x?x?xf32>

func.func @attention(%q: !t, %k: !t, %v: !t) -> (!t, !l) {
  %o, %lse = attn.attention %q, %k, %v
    score(%x: f32, %b: i32, %h: i32, %i: i32, %j: i32) {
      %minus = arith.constant 0xFF800000 : f32
      %odd = arith.trunci %j : i32 to i1
      %y = arith.select %odd, %minus, %x : f32
      attn.yield %y : f32
    }
    mask(%b: i32, %h: i32, %i: i32, %j: i32) {
      %m = arith.cmpi slt, %j, %i : i32
      attn.yield %m : i1
    }
    : (!t, !t, !t) -> (!t, !l)
  return %o, %lse : !t, !l
}
