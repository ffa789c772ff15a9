// Every third key, backwards from the query.
// mask: (j <= i) & ((i - j) % 3 == 0)

!t = tensor<?x?x?x32xbf16>
!l = tensor<?x?x?xf32>

func.func @attention(%q: !t, %k: !t, %v: !t) -> (!t, !l) {
  %o, %lse = attn.attention %q, %k, %v
    mask(%b: i32, %h: i32, %i: i32, %j: i32) {
      %zero = arith.constant 0 : i32
      %three = arith.constant 3 : i32
      %d = arith.subi %i, %j : i32
      %r = arith.remsi %d, %three : i32
      %hit = arith.cmpi eq, %r, %zero : i32
      %past = arith.cmpi sge, %d, %zero : i32
      %m = arith.andi %hit, %past : i1
      attn.yield %m : i1
    }
    : (!t, !t, !t) -> (!t, !l)
  return %o, %lse : !t, !l
}
