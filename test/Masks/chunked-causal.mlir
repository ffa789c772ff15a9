// Causal inside chunks of 32, by shifts.
// mask: (i // 32 == j // 32) & (j <= i)

!t = tensor<?x?x?x32xbf16>
!l = tensor<?x?x?xf32>

func.func @attention(%q: !t, %k: !t, %v: !t) -> (!t, !l) {
  %o, %lse = attn.attention %q, %k, %v
    mask(%b: i32, %h: i32, %i: i32, %j: i32) {
      %c5 = arith.constant 5 : i32
      %r = arith.shrsi %i, %c5 : i32
      %s = arith.shrsi %j, %c5 : i32
      %same = arith.cmpi eq, %r, %s : i32
      %past = arith.cmpi sle, %j, %i : i32
      %m = arith.andi %same, %past : i1
      attn.yield %m : i1
    }
    : (!t, !t, !t) -> (!t, !l)
  return %o, %lse : !t, !l
}
