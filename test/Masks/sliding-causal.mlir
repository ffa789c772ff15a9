// The query's own key and the 23 before it.
// mask: (j <= i) & (j > i - 24)

!t = tensor<?x?x?x32xbf16>
!l = tensor<?x?x?xf32>

func.func @attention(%q: !t, %k: !t, %v: !t) -> (!t, !l) {
  %o, %lse = attn.attention %q, %k, %v
    mask(%b: i32, %h: i32, %i: i32, %j: i32) {
      %c24 = arith.constant 24 : i32
      %first = arith.subi %i, %c24 : i32
      %past = arith.cmpi sle, %j, %i : i32
      %near = arith.cmpi sgt, %j, %first : i32
      %m = arith.andi %past, %near : i1
      attn.yield %m : i1
    }
    : (!t, !t, !t) -> (!t, !l)
  return %o, %lse : !t, !l
}
