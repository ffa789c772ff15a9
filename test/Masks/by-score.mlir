// The score of keys after the query is -inf; there is no mask.
// score: np.where(j <= i, x, -np.inf)

!t = tensor<?x?x?x32xbf16>
!l = tensor<?x?x?xf32>

func.func @attention(%q: !t, %k: !t, %v: !t) -> (!t, !l) {
  %o, %lse = attn.attention %q, %k, %v
    score(%x: f32, %b: i32, %h: i32, %i: i32, %j: i32) {
      %minus = arith.constant 0xFF800000 : f32
      %past = arith.cmpi sle, %j, %i : i32
      %y = arith.select %past, %x, %minus : f32
      attn.yield %y : f32
    }
    : (!t, !t, !t) -> (!t, !l)
  return %o, %lse : !t, !l
}
