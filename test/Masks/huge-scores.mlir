// Scores of 3e38 beside ordinary ones: the mean of the values that have them.
// score: np.where((i + j) % 7 == 0, np.float32(3e38), x)

!t = tensor<?x?x?x32xbf16>
!l = tensor<?x?x?xf32>

func.func @attention(%q: !t, %k: !t, %v: !t) -> (!t, !l) {
  %o, %lse = attn.attention %q, %k, %v
    score(%x: f32, %b: i32, %h: i32, %i: i32, %j: i32) {
      %c7 = arith.constant 7 : i32
      %zero = arith.constant 0 : i32
      %huge = arith.constant 3.0e38 : f32
      %s = arith.addi %i, %j : i32
      %r = arith.remui %s, %c7 : i32
      %is = arith.cmpi eq, %r, %zero : i32
      %y = arith.select %is, %huge, %x : f32
      attn.yield %y : f32
    }
    : (!t, !t, !t) -> (!t, !l)
  return %o, %lse : !t, !l
}
