// Whole chunks of 32 keys up to the query's own.
// mask: j // 32 <= i // 32

!t = tensor<?x?x?x32xbf16>
!l = tensor<?x?x?xf32>

func.func @attention(%q: !t, %k: !t, %v: !t) -> (!t, !l) {
  %o, %lse = attn.attention %q, %k, %v
    mask(%b: i32, %h: i32, %i: i32, %j: i32) {
      %c32 = arith.constant 32 : i32
      %r = arith.divsi %i, %c32 : i32
      %s = arith.divsi %j, %c32 : i32
      %m = arith.cmpi sle, %s, %r : i32
      attn.yield %m : i1
    }
    : (!t, !t, !t) -> (!t, !l)
  return %o, %lse : !t, !l
}
