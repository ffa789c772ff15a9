// Pairs of an even sum.
// mask: (i + j) % 2 == 0

!t = tensor<?x?x?x32xbf16>
!l = tensor<?x?x?xf32>

func.func @attention(%q: !t, %k: !t, %v: !t) -> (!t, !l) {
  %o, %lse = attn.attention %q, %k, %v
    mask(%b: i32, %h: i32, %i: i32, %j: i32) {
      %sum = arith.addi %i, %j : i32
      %odd = arith.trunci %sum : i32 to i1
      %true = arith.constant true
      %m = arith.xori %odd, %true : i1
      attn.yield %m : i1
    }
    : (!t, !t, !t) -> (!t, !l)
  return %o, %lse : !t, !l
}
