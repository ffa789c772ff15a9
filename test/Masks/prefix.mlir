// All see the first forty keys; the rest is causal (prefix-LM).
// mask: (j < 40) | (j <= i)

!t = tensor<?x?x?x32xbf16>
!l = tensor<?x?x?xf32>

func.func @attention(%q: !t, %k: !t, %v: !t) -> (!t, !l) {
  %o, %lse = attn.attention %q, %k, %v
    mask(%b: i32, %h: i32, %i: i32, %j: i32) {
      %c40 = arith.constant 40 : i32
      %prefix = arith.cmpi slt, %j, %c40 : i32
      %past = arith.cmpi sle, %j, %i : i32
      %m = arith.ori %prefix, %past : i1
      attn.yield %m : i1
    }
    : (!t, !t, !t) -> (!t, !l)
  return %o, %lse : !t, !l
}
