// A parabola in 64 bits.
// mask: j * j * 1000000 <= (i * 5000000000) >> 5

!t = tensor<?x?x?x32xbf16>
!l = tensor<?x?x?xf32>

func.func @attention(%q: !t, %k: !t, %v: !t) -> (!t, !l) {
  %o, %lse = attn.attention %q, %k, %v
    mask(%b: i32, %h: i32, %i: i32, %j: i32) {
      %one = arith.constant 5000000000 : i64
      %c1s = arith.constant 5 : i64
      %scale = arith.constant 1000000 : i64
      %r = arith.extsi %i : i32 to i64
      %s = arith.extui %j : i32 to i64
      %p = arith.muli %s, %s : i64
      %t = arith.muli %p, %scale : i64
      %u = arith.muli %r, %one : i64
      %n = arith.shrsi %u, %c1s : i64
      %m = arith.cmpi sle, %t, %n : i64
      attn.yield %m : i1
    }
    : (!t, !t, !t) -> (!t, !l)
  return %o, %lse : !t, !l
}
