// Two windows with a gap between them.
// mask: (abs(i - j) < 8) | (abs(i - j - 70) < 8)

!t = tensor<?x?x?x32xbf16>
!l = tensor<?x?x?xf32>

func.func @attention(%q: !t, %k: !t, %v: !t) -> (!t, !l) {
  %o, %lse = attn.attention %q, %k, %v
    mask(%b: i32, %h: i32, %i: i32, %j: i32) {
      %c8 = arith.constant 8 : i32
      %c70 = arith.constant 70 : i32
      %d = arith.subi %i, %j : i32
      %a = math.absi %d : i32
      %near = arith.cmpi slt, %a, %c8 : i32
      %e = arith.subi %d, %c70 : i32
      %f = math.absi %e : i32
      %far = arith.cmpi slt, %f, %c8 : i32
      %m = arith.ori %near, %far : i1
      attn.yield %m : i1
    }
    : (!t, !t, !t) -> (!t, !l)
  return %o, %lse : !t, !l
}
