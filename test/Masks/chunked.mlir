// Chunks of 48 positions that see themselves only.
// mask: i // 48 == j // 48

!t = tensor<?x?x?x32xbf16>
!l = tensor<?x?x?xf32>

func.func @attention(%q: !t, %k: !t, %v: !t) -> (!t, !l) {
  %o, %lse = attn.attention %q, %k, %v
    mask(%b: i32, %h: i32, %i: i32, %j: i32) {
      %c48 = arith.constant 48 : i32
      %r = arith.floordivsi %i, %c48 : i32
      %s = arith.floordivsi %j, %c48 : i32
      %m = arith.cmpi eq, %r, %s : i32
      attn.yield %m : i1
    }
    : (!t, !t, !t) -> (!t, !l)
  return %o, %lse : !t, !l
}
