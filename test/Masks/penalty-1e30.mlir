// A finite penalty of -1e30 for keys after the query, and for all keys of every
// third query.
// score: x + np.where((j <= i) & (i % 3 != 0), np.float32(0), np.float32(-1e30))

!t = tensor<?x?x?x32xbf16>
!l = tensor<?x?x?xf32>

func.func @attention(%q: !t, %k: !t, %v: !t) -> (!t, !l) {
  %o, %lse = attn.attention %q, %k, %v
    score(%x: f32, %b: i32, %h: i32, %i: i32, %j: i32) {
      %none = arith.constant -1.0e30 : f32
      %zero = arith.constant 0.0 : f32
      %past = arith.cmpi sle, %j, %i : i32
      %c3 = arith.constant 3 : i32
      %c0 = arith.constant 0 : i32
      %third = arith.remui %i, %c3 : i32
      %some = arith.cmpi ne, %third, %c0 : i32
      %sees = arith.andi %past, %some : i1
      %t = arith.select %sees, %zero, %none : f32
      %y = arith.addf %x, %t : f32
      attn.yield %y : f32
    }
    : (!t, !t, !t) -> (!t, !l)
  return %o, %lse : !t, !l
}
