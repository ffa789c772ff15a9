// Keys at least ten positions back: the first rows see none.
// mask: j <= i - 10

!t = tensor<?x?x?x32xbf16>
!l = tensor<?x?x?xf32>

func.func @attention(%q: !t, %k: !t, %v: !t) -> (!t, !l) {
  %o, %lse = attn.attention %q, %k, %v
    mask(%b: i32, %h: i32, %i: i32, %j: i32) {
      %c10 = arith.constant 10 : i32
      %last = arith.subi %i, %c10 : i32
      %m = arith.cmpi sle, %j, %last : i32
      attn.yield %m : i1
    }
    : (!t, !t, !t) -> (!t, !l)
  return %o, %lse : !t, !l
}
