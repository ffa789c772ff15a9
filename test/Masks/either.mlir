// Causal or in an odd chunk, not both.
// mask: (j <= i) ^ (j // 16 % 2 == 1)

!t = tensor<?x?x?x32xbf16>
!l = tensor<?x?x?xf32>

func.func @attention(%q: !t, %k: !t, %v: !t) -> (!t, !l) {
  %o, %lse = attn.attention %q, %k, %v
    mask(%b: i32, %h: i32, %i: i32, %j: i32) {
      %c16 = arith.constant 16 : i32
      %chunk = arith.divui %j, %c16 : i32
      %odd = arith.trunci %chunk : i32 to i1
      %past = arith.cmpi sle, %j, %i : i32
      %m = arith.xori %odd, %past : i1
      attn.yield %m : i1
    }
    : (!t, !t, !t) -> (!t, !l)
  return %o, %lse : !t, !l
}
