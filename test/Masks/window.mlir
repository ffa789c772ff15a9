// Keys at a distance of twenty at most, by an absolute value.
// mask: abs(i - j) <= 20

!t = tensor<?x?x?x32xbf16>
!l = tensor<?x?x?xf32>

func.func @attention(%q: !t, %k: !t, %v: !t) -> (!t, !l) {
  %o, %lse = attn.attention %q, %k, %v
    mask(%b: i32, %h: i32, %i: i32, %j: i32) {
      %c20 = arith.constant 20 : i32
      %d = arith.subi %i, %j : i32
      %a = math.absi %d : i32
      %m = arith.cmpi sle, %a, %c20 : i32
      attn.yield %m : i1
    }
    : (!t, !t, !t) -> (!t, !l)
  return %o, %lse : !t, !l
}
