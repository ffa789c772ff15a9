// A causal window by one unsigned comparison.
// mask: (i - j >= 0) & (i - j < 24)

!t = tensor<?x?x?x32xbf16>
!l = tensor<?x?x?xf32>

func.func @attention(%q: !t, %k: !t, %v: !t) -> (!t, !l) {
  %o, %lse = attn.attention %q, %k, %v
    mask(%b: i32, %h: i32, %i: i32, %j: i32) {
      %c24 = arith.constant 24 : i32
      %d = arith.subi %i, %j : i32
      %m = arith.cmpi ult, %d, %c24 : i32
      attn.yield %m : i1
    }
    : (!t, !t, !t) -> (!t, !l)
  return %o, %lse : !t, !l
}
