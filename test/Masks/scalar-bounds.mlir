// Keys between two captured scalars.
// mask: (j >= c[0]) & (j < c[1])
// capture: integers 0 20
// capture: integers 60 90

!t = tensor<?x?x?x32xbf16>
!l = tensor<?x?x?xf32>

func.func @attention(%q: !t, %k: !t, %v: !t, %c0: i32, %c1: i32) -> (!t, !l) {
  %o, %lse = attn.attention %q, %k, %v captures(%c0, %c1)
    mask(%b: i32, %h: i32, %i: i32, %j: i32, %lo: i32, %hi: i32) {
      %above = arith.cmpi sge, %j, %lo : i32
      %below = arith.cmpi slt, %j, %hi : i32
      %m = arith.andi %above, %below : i1
      attn.yield %m : i1
    }
    : (!t, !t, !t, i32, i32) -> (!t, !l)
  return %o, %lse : !t, !l
}
